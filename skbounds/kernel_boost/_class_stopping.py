"""When to stop a boosted classifier."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from skbounds._blocks import row_blocks
from skbounds.kernel_boost._flow import phi_1
from skbounds.kernel_boost._losses import Softmax
from skbounds.kernel_boost._radius import critical_radius

_CHUNK = 4096
# What a row keeps of its own pull at least when it is left out.
_LEAST_SLACK = 1e-3


def running_df(eigenvalues, exposure, n_free):
    """Return sum_j 1 - exp(-mu_j int m d eta), times the free outputs."""
    shares = -np.expm1(-exposure * eigenvalues)
    return float(n_free * shares.sum())


def aic(deviance, df, n_samples, margin):
    """Return deviance + (df + margin sqrt(df)) / n."""
    return deviance + (df + margin * np.sqrt(df)) / n_samples


def leave_one_out(loss, psi, mu, y, f, stage, weight, n_samples, *, mean_curvature):
    """Return the approximate leave-one-out log loss at a stage of the flow.

    f_i without row i is f_i + g_i phi'_i / (1 - g_i phi''_i), where g_i is how far the
    row's own slope has moved its value by now. For several classes phi'' is a matrix.

    Parameters
    ----------
    loss : class of `_losses`
    psi : ndarray of shape (n, r)
    mu : ndarray of shape (r,)
    y, f : ndarray of shape (n,) or (n, K)
    stage : Stage
    weight : ndarray of shape (n,)
        Of sum one.
    n_samples : float
        Sum of the weights as counts.
    mean_curvature : bool
        Take g for the mean curvature that the flow has had: n r operations. Otherwise
        for the rows' curvatures of now, through eigenvectors; several classes always
        have the former.
    """
    if f.ndim == 2 or mean_curvature:
        reach = stage.plain * phi_1(stage.exposure * mu)
        own = np.empty(len(psi))
        for rows in row_blocks(len(psi), _CHUNK):
            own[rows] = np.square(psi[rows]) @ reach / n_samples
        if loss is Softmax:
            return loss.deviance(y, f + _without_row(own, y, f), weight)
        own = own.reshape(-1, *[1] * (f.ndim - 1))
        return loss.deviance(y, f + _shifted(own, *loss.bends(y, f)), weight)
    slopes, curvature = loss.bends(y, f)
    scaled = psi * np.sqrt(weight * curvature)[:, None]
    hessian = blas.dsyrk(1.0, scaled.T, lower=1)
    sizes, vectors = np.linalg.eigh(hessian)
    reach = stage.plain * phi_1(stage.plain * np.maximum(sizes, 0.0))
    turned = psi @ (vectors * np.sqrt(reach))
    own = np.einsum("ij,ij->i", turned, turned) / n_samples
    return loss.deviance(y, f + _shifted(own, slopes, curvature), weight)


def _shifted(own, slopes, curvature):
    return own * slopes / np.maximum(1.0 - own * curvature, _LEAST_SLACK)


def _without_row(own, Y, F):
    """Return how the softmax loss's values move without the row itself."""
    P = softmax(F, axis=1)
    identity = np.eye(P.shape[1])
    bend = P[:, :, None] * (identity - P[:, None, :])
    # At most half of the pull may be the row's own, as 1 - g phi'' >= 1/2 says.
    own = np.minimum(own, 0.5 / np.abs(bend).sum(axis=2).max(axis=1))
    slack = identity - own[:, None, None] * bend
    return own[:, None] * np.linalg.solve(slack, (P - Y)[:, :, None])[:, :, 0]


def class_constants(loss_name, share):
    """Return curvature m and noise of the working response at a class frequency."""
    variance = share * (1.0 - share)
    if loss_name == "exponential":
        return 2.0 * np.sqrt(variance), 0.5 / np.sqrt(variance)
    return variance, 1.0 / np.sqrt(variance)


def working_norm(spectrum, noise):
    """Return the norm of a working response's fit of greatest evidence.

    The noise is known; the coefficients are taken for draws of
    N(0, noise^2 (1 + q W mu_j)).

    Parameters
    ----------
    spectrum : Spectrum
        Of one working response.
    noise : float
    """
    n, mu = spectrum.n_samples, spectrum.eigenvalues
    if not len(mu):
        return 0.0
    b = spectrum.coefficients[:, 0]

    def score(log_q):
        grown = 1.0 + np.multiply.outer(np.exp(log_q), n * mu)
        fit = n * (b**2 / grown).sum(axis=-1) / noise**2
        return fit + np.log(grown).sum(axis=-1)

    log_q = np.log(np.geomspace(1e-6, 1e6, 49) / mu.sum())
    best = int(np.argmin(score(log_q)))
    around = log_q[[max(best - 1, 0), min(best + 1, len(log_q) - 1)]]
    found = minimize_scalar(score, bounds=around, method="bounded").x
    grown = np.exp(found) * n * mu
    return float(np.sqrt(((grown / (1.0 + grown)) ** 2 * b**2 / mu).sum()))


def theory_exposure(eigenvalues, noise, norm, n_samples):
    """Return 1 / delta^2, which m times the learning time is to reach."""
    radius = critical_radius(eigenvalues, noise, norm, n_samples)
    return np.inf if radius == 0.0 else 1.0 / radius**2
