"""Gaussian outputs: log-densities, and their fit to weighted rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

_LOG_2PI = np.log(2.0 * np.pi)
# Expected number of rows below which a state has seen none.
_LEAST_WEIGHT = 1e-290


# Squares of centred rows in units of the variances, up to which products of matrices
# lose no more than a few digits.
_LARGE = 1e7


class Rows:
    """Rows and their squares, centred.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    center : ndarray of shape (d,)
    """

    def __init__(self, X, center):
        self.center = center
        self.values = X - center
        self.largest = np.abs(self.values).max(axis=0) ** 2
        self._squares = None

    def __len__(self):
        return len(self.values)

    @property
    def squares(self):
        if self._squares is None:
            self._squares = self.values**2
        return self._squares


def log_densities(rows, means, covariances, covariance_type):
    """Return log N(x_i; m_j, S_j) as an array of shape (n, s).

    Parameters
    ----------
    rows : Rows
    means : ndarray of shape (s, d)
    covariances : ndarray
        Of shape (s, d, d) for "full", (s, d) for "diag", (s,) for "spherical" and
        (d, d) for "tied".
    covariance_type : str
    """
    means = means - rows.center
    s, d = means.shape
    if covariance_type in ("diag", "spherical"):
        variances = np.broadcast_to(
            covariances if covariance_type == "diag" else covariances[:, None], (s, d)
        )
        precision = 1.0 / variances
        if (rows.largest * precision).max() > _LARGE:
            return _one_by_one(rows, means, precision)
        constant = (
            d * _LOG_2PI
            + np.log(variances).sum(axis=1)
            + (means**2 * precision).sum(axis=1)
        )
        result = rows.squares @ (-0.5 * precision.T)
        result += rows.values @ (means * precision).T
        result -= 0.5 * constant
        return result
    if covariance_type == "tied":
        root = _root(covariances)
        least = np.linalg.eigvalsh(covariances)[0]
        if rows.largest.sum() > _LARGE * least:
            covariances = np.repeat(covariances[None], s, axis=0)
            return _by_roots(rows, means, covariances)
        turned = solve_triangular(root, rows.values.T, lower=True).T
        centers = solve_triangular(root, means.T, lower=True).T
        result = turned @ centers.T
        result -= 0.5 * (turned**2).sum(axis=1)[:, None]
        result -= 0.5 * ((centers**2).sum(axis=1) + d * _LOG_2PI)
        return result - np.log(np.diagonal(root)).sum()
    return _by_roots(rows, means, covariances)


def _by_roots(rows, means, covariances):
    s, d = means.shape
    result = np.empty((len(rows), s))
    for j in range(s):
        root = _root(covariances[j])
        gaps = solve_triangular(root, (rows.values - means[j]).T, lower=True)
        result[:, j] = -0.5 * np.einsum("ij,ij->j", gaps, gaps)
        result[:, j] -= 0.5 * d * _LOG_2PI + np.log(np.diagonal(root)).sum()
    return result


def _root(covariance):
    """Return the Cholesky factor; an error also where only rounding makes it one."""
    root = np.linalg.cholesky(covariance)
    pivots = np.diagonal(root) ** 2
    rounding = 10.0 * len(root) * np.finfo(np.float64).eps
    if (pivots <= rounding * np.diagonal(covariance)).any():
        raise np.linalg.LinAlgError("a covariance matrix is singular")
    return root


def _one_by_one(rows, means, precision):
    """Return log-densities for diagonal matrices from differences to each mean."""
    s, d = means.shape
    result = np.empty((len(rows), s))
    for j in range(s):
        result[:, j] = (rows.values - means[j]) ** 2 @ (-0.5 * precision[j])
        result[:, j] -= 0.5 * (d * _LOG_2PI - np.log(precision[j]).sum())
    return result


def fit_gaussians(rows, posterior, before, covariance_type, reg_covar):
    """Return means and covariances of greatest likelihood for weighted rows.

    Parameters
    ----------
    rows : Rows
    posterior : ndarray of shape (n, s)
    before : tuple of ndarray
        Means and covariances that states without rows keep.
    covariance_type : str
    reg_covar : ndarray of shape (d,)
        Added to the variances of the columns.

    Returns
    -------
    means, covariances : ndarray
    """
    weight = posterior.sum(axis=0)
    seen = weight > _LEAST_WEIGHT
    safe = np.where(seen, weight, 1.0)[:, None]
    centred = posterior.T @ rows.values / safe
    means = np.where(seen[:, None], centred + rows.center, before[0])
    d = means.shape[1]
    if covariance_type in ("diag", "spherical"):
        variances = posterior.T @ rows.squares / safe - centred**2
        if (rows.largest > _LARGE * variances[seen]).any():
            for j in np.flatnonzero(seen):
                gaps = (rows.values - centred[j]) ** 2
                variances[j] = posterior[:, j] @ gaps / weight[j]
        variances = np.maximum(variances, 0.0)
        if covariance_type == "spherical":
            variances, reg_covar = variances.mean(axis=1), reg_covar.mean()
        shape = (len(weight), *[1] * (variances.ndim - 1))
        variances = np.where(seen.reshape(shape), variances + reg_covar, before[1])
        if not (variances > 0.0).all():
            raise np.linalg.LinAlgError("a variance is 0")
        return means, variances
    covariances = np.empty((len(weight), d, d))
    for j in range(len(weight)):
        gaps = rows.values - centred[j]
        covariances[j] = (posterior[:, [j]] * gaps).T @ gaps
    ridge = np.diag(reg_covar)
    if covariance_type == "tied":
        return means, covariances[seen].sum(axis=0) / weight[seen].sum() + ridge
    covariances = covariances / safe[:, :, None] + ridge
    return means, np.where(seen[:, None, None], covariances, before[1])


def empty_states(posterior):
    """Return the numbers of the states that have seen no row."""
    return np.flatnonzero(posterior.sum(axis=0) <= _LEAST_WEIGHT)


def expand(covariances, covariance_type, s, d):
    """Return covariance matrices of shape (s, d, d)."""
    if covariance_type == "full":
        return covariances.copy()
    if covariance_type == "tied":
        return np.repeat(covariances[None], s, axis=0)
    if covariance_type == "spherical":
        return covariances[:, None, None] * np.eye(d)
    return covariances[:, :, None] * np.eye(d)


def compress(covariances, covariance_type):
    """Return what a type of covariance keeps of matrices of shape (s, d, d)."""
    if covariance_type == "full":
        return covariances.copy()
    if covariance_type == "tied":
        return covariances.mean(axis=0)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if covariance_type == "spherical":
        return variances.mean(axis=1)
    return variances.copy()


def n_parameters(covariance_type, s, d):
    """Return the number of free parameters of means and covariances."""
    matrix = d * (d + 1) // 2
    sizes = {"full": s * matrix, "tied": matrix, "diag": s * d, "spherical": s}
    return s * d + sizes[covariance_type]
