"""Where EM starts: what is given, checked, or clusters."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from skbounds.hmm import _emissions

# Of a column's variance that is added to the variances of the states.
_SHARE = 1e-6
# A millionth of smaller ones is not computed with.
_LEAST_VARIANCE = 1e-280


def law(name, given, shape):
    """Return probabilities that were given, or all the same."""
    if given is None:
        return np.full(shape, 1.0 / shape[-1])
    found = np.array(given, dtype=np.float64)
    good = found.shape == shape and np.isfinite(found).all() and (found >= 0.0).all()
    if not good or (np.abs(found.sum(axis=-1) - 1.0) > 1e-6).any():
        raise ValueError(
            f"{name} must be probabilities of shape {shape}, each row of sum 1; "
            f"got {given!r}."
        )
    return found / found.sum(axis=-1, keepdims=True)


def variance_floor(reg_covar, X):
    """Return what is added to the variances of the columns."""
    if not isinstance(reg_covar, str):
        return np.full(X.shape[1], float(reg_covar))
    variances, constant = X.var(axis=0), np.ptp(X, axis=0) == 0.0
    vanishing = ~constant & (variances < _LEAST_VARIANCE)
    if vanishing.any():
        raise ValueError(
            "X has columns whose squares vanish, "
            f"{np.flatnonzero(vanishing).tolist()}: multiply them by a number, or give "
            "reg_covar."
        )
    # A constant has no scale but its own size.
    size = np.where(X[0] ** 2 < _LEAST_VARIANCE, 1.0, X[0] ** 2)
    return _SHARE * np.where(constant, size, variances)


def covariances(hmm, X, floor):
    """Return covariances at the start."""
    s, d = hmm.n_components, X.shape[1]
    if hmm.covariances_init is None:
        matrix = np.diag(X.var(axis=0) + floor)
        matrices = np.repeat(matrix[None], s, axis=0)
    else:
        matrices = np.array(hmm.covariances_init, dtype=np.float64)
        if matrices.shape != (s, d, d) or not np.isfinite(matrices).all():
            raise ValueError(
                f"covariances_init must be of shape {(s, d, d)}; got shape "
                f"{matrices.shape}."
            )
        asymmetry = np.abs(matrices - matrices.transpose(0, 2, 1)).max()
        least = np.linalg.eigvalsh(matrices).min()
        if asymmetry > 1e-8 * np.abs(matrices).max() or least <= 0.0:
            raise ValueError(
                "covariances_init must be symmetric and positive definite; the "
                f"least eigenvalue is {least:.3g}."
            )
    variances = np.diagonal(matrices, axis1=1, axis2=2)
    if (variances <= 0.0).any():
        raise ValueError(
            "a column of X is constant, which has no density; increase reg_covar="
            f"{hmm.reg_covar}."
        )
    return _emissions.compress(matrices, hmm.covariance_type)


def means(hmm, X, rng):
    """Return means at the start."""
    s, d = hmm.n_components, X.shape[1]
    if hmm.means_init is not None:
        found = check_array(hmm.means_init, dtype=np.float64, input_name="means_init")
        if found.shape != (s, d):
            raise ValueError(
                f"means_init must be of shape {(s, d)}; got {found.shape}."
            )
        if len(np.unique(found, axis=0)) < s:
            raise ValueError(
                "means_init has states with the same mean, which EM cannot tell "
                f"apart: {found.tolist()}."
            )
        return found
    return _apart(_starting_points(hmm, X, s, rng), X, rng)


def _starting_points(hmm, X, s, rng):
    if hmm.init == "random":
        return X[rng.permutation(len(X))[:s]].copy()
    search = KMeans(s, n_init=1, random_state=rng.randint(2**31 - 1))
    with warnings.catch_warnings():
        # Of fewer distinct rows than clusters: their means are moved apart.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centers = search.fit(X).cluster_centers_
    # In the order of the other starting values, if these are given.
    return centers[np.lexsort(centers.T[::-1])]


def symmetric_mean(hmm, X, rng):
    """Return mu at the start."""
    d = X.shape[1]
    if hmm.means_init is None:
        first, second = _apart(_starting_points(hmm, X, 2, rng), X, rng)
        return 0.5 * (second - first)
    found = np.array(hmm.means_init, dtype=np.float64)
    if found.shape == (2, d):
        if np.abs(found[0] + found[1]).max() > 1e-8 * np.abs(found).max():
            raise ValueError(
                "means_init of structure='symmetric' must be -mu and mu; got "
                f"{found.tolist()}."
            )
        found = found[1]
    if found.shape != (d,) or not np.isfinite(found).all():
        raise ValueError(
            f"means_init must be of shape {(2, d)} or {(d,)}; got {found.shape}."
        )
    if not found.any():
        raise ValueError("means_init is 0, where EM stays: the states coincide.")
    return found


def _apart(means, X, rng):
    """Move means that coincide: EM cannot tell such states apart."""
    for _ in range(10):
        if len(np.unique(means, axis=0)) == len(means):
            return means
        scale = np.maximum(X.std(axis=0), 1e-8 * np.maximum(np.abs(means).max(), 1.0))
        means = means + 1e-3 * scale * rng.standard_normal(means.shape)
    return means
