"""Exact means of losses of simple models under normal kernels.

All functions return one value per row. `kernels` are in q coordinates; `map_` of shape
(k, q) takes them to the k coordinates of the model. With joint kernels on (X, y) the
target moves linearly with the features, by `lift` L_yx of the root [[L_xx, 0],
[L_yx, L_yy]], and has variance `noise` besides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from skbounds._blocks import memory_limit, row_blocks

# Products of rows and pairs of centres beyond which sampling is faster.
LARGEST_RADIAL = 20_000_000
# Products of rows and leaves beyond which sampling is faster.
LARGEST_TREE = 500_000


@dataclass(frozen=True)
class Joint:
    """Roots of joint kernels on (X, y).

    Attributes
    ----------
    features : ndarray of shape (n or 1, r, q)
        Root of the features' part.
    targets : ndarray of shape (n or 1, m, q)
        Root of the targets' part, in units of y.
    """

    features: np.ndarray
    targets: np.ndarray


def split_joint(kernels, n_dimensions, target_scale):
    """Return the roots of features and targets of joint kernels.

    With lower triangular roots the targets move with the features by the first
    `n_dimensions` columns of their part, and independently by the others.
    """
    roots = kernels.matrices()
    return Joint(
        roots[:, :n_dimensions], target_scale[:, None] * roots[:, n_dimensions:]
    )


def linear_squared(residuals, slopes, kernels):
    """Return mean squared losses of a linear model, averaged over outputs.

    Parameters
    ----------
    residuals : ndarray of shape (n, m)
    slopes : ndarray of shape (m, q)
        Of the prediction minus the target, along the kernels' coordinates.
    kernels : Kernels
    """
    moved = [kernels.quadratic(slope) for slope in slopes]
    return (residuals**2 + np.stack(moved, axis=1)).mean(axis=1)


def linear_zero_one(margins, slopes, kernels, still):
    """Return the probabilities that a moved margin is negative.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Decision values, positive where the row is classified correctly.
    slopes : ndarray of shape (q,)
    kernels : Kernels
    still : ndarray of shape (n,)
        Errors of rows whose margin does not move.
    """
    deviation = np.broadcast_to(np.sqrt(kernels.quadratic(slopes)), margins.shape)
    error = np.array(still, dtype=np.float64)
    moves = deviation > 0.0
    error[moves] = ndtr(-margins[moves] / deviation[moves])
    return error


def quadratic_squared(residuals, slopes, matrices, roots, lifts, noise):
    """Return mean squared losses of quadratic models, averaged over outputs.

    Parameters
    ----------
    residuals : ndarray of shape (n, m)
    slopes : ndarray of shape (n, m, k)
        Gradients at the rows.
    matrices : ndarray of shape (m, k, k)
        The prediction moves by slope u + u' matrix u.
    roots : ndarray of shape (n or 1, k, q)
        Of the covariances of u.
    lifts : ndarray of shape (n or 1, m, q)
        What the targets move by, in the same standard normal coordinates.
    noise : ndarray of shape (n or 1, m)
    """
    turned = slopes @ roots - lifts
    inner = roots.transpose(0, 2, 1)[:, None] @ matrices @ roots[:, None]
    trace = np.trace(inner, axis1=2, axis2=3)
    losses = (
        (residuals - trace) ** 2
        + (turned**2).sum(axis=2)
        + 2.0 * (inner**2).sum(axis=(2, 3))
        + noise
    )
    return losses.mean(axis=1)


def box_losses(centers, sharp, deviations, lows, highs, losses):
    """Return mean losses of a piecewise constant model.

    Parameters
    ----------
    centers : ndarray of shape (n, k)
    sharp : ndarray of shape (n, k)
        The centres as the model rounds them, for coordinates that do not move.
    deviations : ndarray of shape (n or 1, k)
    lows, highs : ndarray of shape (n_leaves, k)
    losses : ndarray of shape (n, n_leaves)
    """
    n, k = centers.shape
    deviations = np.broadcast_to(deviations, centers.shape)
    result = np.empty(n)
    for rows in row_blocks(n, memory_limit() // (8 * len(lows))):
        mass = np.ones((rows.stop - rows.start, len(lows)))
        for c in range(k):
            low, high = lows[:, c], highs[:, c]
            if not (np.isfinite(low) | np.isfinite(high)).any():
                continue
            x, s = centers[rows, c, None], deviations[rows, c, None]
            still = s[:, 0] == 0.0
            scale = np.where(s > 0.0, s, 1.0)
            share = ndtr((high - x) / scale) - ndtr((low - x) / scale)
            at = sharp[rows, c, None][still]
            share[still] = (low < at) & (at <= high)
            mass *= share
        result[rows] = (mass * losses[rows]).sum(axis=1)
    return result


def radial_squared(model, points, targets, roots, lifts, noise):
    """Return mean squared losses of sums of radial functions, averaged over outputs.

    Parameters
    ----------
    model : Radial
    points : ndarray of shape (n, k)
        Rows in the model's coordinates.
    targets : ndarray of shape (n, m)
    roots : ndarray of shape (n, k, q)
    lifts : ndarray of shape (n, m, q)
    noise : ndarray of shape (n, m)
    """
    n, k = points.shape
    identity, gamma = np.eye(k), model.gamma
    first, second = np.empty((2, *targets.shape))
    pulls = np.empty((n, len(model.intercept), k))
    halves = _half_products(model)
    for i in range(n):
        covariance = roots[i] @ roots[i].T
        offsets = points[i] - model.centers
        root = np.linalg.cholesky(identity + 2.0 * gamma * covariance)
        scaled = solve_triangular(root, offsets.T, lower=True)
        heights = np.exp(-gamma * (scaled**2).sum(axis=0)) / root.diagonal().prod()
        first[i] = heights @ model.weights
        back = solve_triangular(root, scaled, lower=True, trans="T")
        pulls[i] = -2.0 * gamma * ((heights * back) @ model.weights).T
        root = np.linalg.cholesky(identity + 4.0 * gamma * covariance)
        scaled = solve_triangular(root, offsets.T, lower=True)
        products = scaled.T @ scaled
        squares = products.diagonal()
        # |x - (c_k + c_l) / 2|^2 in the metric, from the offsets of both.
        middle = 0.25 * (squares[:, None] + squares + 2.0 * products)
        pairs = np.exp(halves - 2.0 * gamma * middle) / root.diagonal().prod()
        second[i] = ((pairs @ model.weights) * model.weights).sum(axis=0)
    targets = targets - model.intercept
    # E t f with t = y + lift g: Stein's identity.
    cross = np.einsum("imq,ikq,imk->im", lifts, roots, pulls)
    moved = (lifts**2).sum(axis=2)
    losses = targets**2 + moved - 2.0 * (targets * first + cross) + second + noise
    return losses.mean(axis=1)


def _half_products(model):
    """Return -gamma |c_k - c_l|^2 / 2 for all pairs of centres."""
    products = model.centers @ model.centers.T
    squares = products.diagonal()
    gaps = squares[:, None] + squares - 2.0 * products
    return -0.5 * model.gamma * np.maximum(gaps, 0.0)
