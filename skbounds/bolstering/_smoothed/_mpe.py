"""Kernels that make the rows likely under each other: Algorithm 1, "MPE".

Each of n rows z_i in R^q has a kernel N(z_i, S_i). Starting from S_i = I,

    E-step: w_ij = (lam + N(z_j; z_i, S_i)) / (lam (n - 1) + sum_{k != j} N(z_j; z_k, S_k))
    M-step: S_i = sum_{j != i} w_ij (z_j - z_i)(z_j - z_i)' / (n - 1)

until the kernels do not change (Marcondes and Braga-Neto, section 5.2). This is a
regularised fixed point, not the maximum of the pseudo-likelihood (22), which has none.
"""  # noqa: E501

from __future__ import annotations

import numpy as np

from skbounds._base import warn_user
from skbounds._blocks import memory_limit, row_blocks

MAX_ITER = 500
TOLERANCE = 1e-8
_RIDGE = 1e-10


def limit_kernels(points, weight):
    """Return the fixed points for lam -> infinity.

    sum_j c_j (z_j - z_i)(z_j - z_i)' / ((n - 1)(c - c_i)) with weights c_j of sum c;
    without weights (n - 1)^-2 sum_j (z_j - z_i)(z_j - z_i)'.

    Parameters
    ----------
    points : ndarray of shape (n, q)
    weight : ndarray of shape (n,)
        Scaled to sum n.

    Returns
    -------
    kernels : ndarray of shape (n, q, q)
    """
    n = len(points)
    total = weight.sum()
    center = weight @ points / total
    offsets = points - center
    scatter = (weight[:, None] * offsets).T @ offsets
    outer = total * offsets[:, :, None] * offsets[:, None, :]
    return (scatter + outer) / ((n - 1) * (total - weight))[:, None, None]


def mpe_kernels(points, weight, *, lam, tol=TOLERANCE, max_iter=MAX_ITER):
    """Return the kernels of Algorithm 1.

    Parameters
    ----------
    points : ndarray of shape (n, q)
        Of rank q.
    weight : ndarray of shape (n,)
        Importances, scaled to sum n; they enter the M-step.
    lam : float
        In units of a density.

    Returns
    -------
    kernels : ndarray of shape (n, q, q)
    n_iter : int
    """
    n, q = points.shape
    points = points - points.mean(axis=0)
    kernels = np.broadcast_to(np.eye(q), (n, q, q))
    products = (points[:, :, None] * points[:, None, :]).reshape(n, q * q)
    # The first update may be large without meaning anything: no test before it.
    for n_iter in range(1, max_iter + 1):
        log_density = _log_densities(points, kernels)
        log_terms = np.logaddexp(np.log(lam), log_density)
        np.fill_diagonal(log_terms, -np.inf)
        top = log_terms.max(axis=0)
        shares = np.exp(log_terms - top)
        shares /= shares.sum(axis=0)
        shares *= weight
        # sum_j s_ij (z_j - z_i)(z_j - z_i)', multiplied out.
        mass = shares.sum(axis=1)
        first = shares @ points
        cross = first[:, :, None] * points[:, None, :]
        updated = (shares @ products).reshape(n, q, q)
        updated -= cross + cross.transpose(0, 2, 1)
        updated += mass[:, None, None] * products.reshape(n, q, q)
        updated /= (weight.sum() - weight)[:, None, None]
        change = np.abs(updated - kernels).max()
        kernels = updated
        if change < tol:
            return kernels, n_iter
    warn_user(
        f"The kernels of kernel='mpe' still change by {change:.2g} after {max_iter} "
        "iterations; kernel='mpe_limit' has a closed form."
    )
    return kernels, max_iter


def _cholesky(matrices, ridge):
    """Return Cholesky factors, also of what rounding has made indefinite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        sizes, axes = np.linalg.eigh(matrices)
        sizes = np.maximum(sizes, np.diagonal(ridge, axis1=1, axis2=2))
        positive = (axes * sizes[:, None, :]) @ axes.transpose(0, 2, 1)
        return np.linalg.cholesky(positive + ridge)


def _log_densities(points, kernels):
    """Return log N(z_j; z_i, S_i), shape (n, n)."""
    n, q = points.shape
    trace = np.trace(kernels, axis1=1, axis2=2)
    result = np.empty((n, n))
    for block in row_blocks(n, memory_limit() // (4 * n * q)):
        ridge = (_RIDGE * trace[block] / q + 1e-300)[:, None, None] * np.eye(q)
        roots = _cholesky(kernels[block] + ridge, ridge)
        offsets = points[None] - points[block][:, None]
        inverse = np.linalg.inv(roots)
        scaled = offsets @ inverse.transpose(0, 2, 1)
        logdet = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        result[block] = -0.5 * (scaled**2).sum(axis=2) - logdet[:, None]
    return result - 0.5 * q * np.log(2.0 * np.pi)
