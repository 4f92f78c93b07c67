"""A scale for each feature, by the evidence of a Gaussian process on some of the rows.

On standardised features k(x, x') = exp(-sum_j a_j (x_j - x'_j)^2). With D = diag(w),
N = sum w, C = K + lam D^-1 and targets y_c of mean 0 and variance 1, minus twice the
log evidence with the scale of each target profiled out is

    J = sum_c N log(q_c / N)
        + m ((N - n) log lam + sum log w + log det C),    q_c = y_c' C^-1 y_c,

and a log-Cauchy prior around the mean of log a is added, which lets single features go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from skbounds._callbacks import as_task
from skbounds.kernel_boost._hashes import (
    count_originals,
    row_hashes,
    sort_rows,
)

# Rows that the evidence is computed on, fewer where there are many features.
_ROWS, _FEWER_ROWS, _MANY_FEATURES = 500, 300, 30
_GRID = 4.0 ** np.arange(-3, 4)
_PENALTIES = (1e-3, 1e-2, 0.1, 1.0)
_START_ITERATIONS, _ITERATIONS = 30, 60
# log a is kept within these of its start, and lambda within its own limits.
_DOWN, _UP = 14.0, 7.0
_LOWEST, _HIGHEST = 1e-6, 1e3
# With one width new rows may be outside of the range by this share of it: functions of
# a wide kernel are nearly linear, and right a little further.
_WIDENED = 0.1
# A feature that varies by less than this share of its size is constant.
_CONSTANT = 1e-12
_FAILED = 1e100


@dataclass(frozen=True)
class FeatureScale:
    """Where features are clipped, and what they are multiplied by.

    Attributes
    ----------
    relevance : ndarray of shape (d,) or None
        a, of standardised features; None where features are clipped only.
    factor : ndarray of shape (d,)
        sqrt(a) over the standard deviation.
    low, high : ndarray of shape (d,) or None
        The range of the training rows.
    """

    relevance: np.ndarray | None
    factor: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None

    def clipped(self, X):
        """Return rows, clipped."""
        X = X.toarray() if hasattr(X, "toarray") else X
        return X if self.low is None else np.clip(X, self.low, self.high)

    def __call__(self, X):
        """Return rows, clipped and scaled."""
        return self.clipped(X) * self.factor


@dataclass(frozen=True)
class Sample:
    """Distinct rows in an order that depends on nothing but their values.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised.
    targets : ndarray of shape (n, m)
        Of mean 0 and variance 1.
    weight : ndarray of shape (n,)
    deviation : ndarray of shape (d,)
        Standard deviations of all rows' features, 0 for constants.
    """

    X: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    deviation: np.ndarray


def draw_sample(X, targets, weight, seed):
    """Return the rows for the evidence; None where no target varies.

    Rows of equal values are one of their total weight, so that whole weights are the
    same as repetition; which rows are taken depends on their hashes.
    """
    order, begins = sort_rows(row_hashes(X, seed), targets)
    weight = np.bincount(np.cumsum(begins) - 1, weights=weight[order])
    X, targets = X[order[begins]], targets[order[begins]]
    deviation = feature_deviations(X, weight)
    size = _ROWS if X.shape[1] <= _MANY_FEATURES else _FEWER_ROWS
    share = weight / weight.sum()
    centre = share @ X
    X, targets, weight = X[:size], targets[:size], weight[:size]
    X = (X - centre) * inverse_of(deviation)
    originals = count_originals(X, targets, weight)
    if originals is not None:
        # Copies are no evidence: rows count once on average.
        weight = weight * (originals / weight.sum())
    share = weight / weight.sum()
    largest = np.abs(targets).max(axis=0)
    targets = targets - share @ targets
    spread = np.sqrt(share @ targets**2)
    varies = (spread > _CONSTANT * largest) & (spread > 1e-153)
    if not varies.any() or not deviation.any():
        return None
    return Sample(X, targets[:, varies] / spread[varies], weight, deviation)


def feature_deviations(X, weight):
    """Return weighted standard deviations, exactly 0 for constant features."""
    share = weight / weight.sum()
    centred = X - share @ X
    deviation = np.sqrt(share @ centred**2)
    deviation[deviation <= _CONSTANT * np.abs(X).max(axis=0)] = 0.0
    return deviation


def inverse_of(deviation):
    """Return one over the deviations, 0 for constants."""
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)


def objective(log_a, log_lam, sample):
    """Return J with the prior, and its gradient in (log a, log lambda).

    Parameters
    ----------
    log_a : ndarray of shape (d,)
    log_lam : float
    sample : Sample
    """
    X, a = sample.X, np.exp(log_a)
    scaled = X * np.sqrt(a)
    J, W, K, slope = evidence(gaussian(scaled), log_lam, sample)
    gap = log_a - log_a.mean()
    J += 2.0 * np.log1p(gap**2).sum()
    if W is None:
        return J, np.zeros(len(a) + 1)
    H = W * K
    inner = (X * X).T @ H.sum(axis=1) - np.einsum("ij,ij->j", X, H @ X)
    prior = 4.0 * gap / (1.0 + gap**2)
    return J, np.append(-2.0 * a * inner + prior - prior.mean(), slope)


def gaussian(X):
    """Return exp(-|x - x'|^2) of rows."""
    squares = np.einsum("ij,ij->i", X, X)
    K = X @ (2.0 * X.T)
    K -= squares[:, None]
    K -= squares
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)


def evidence(K, log_lam, sample, *, with_gradient=True):
    """Return J without a prior, dJ/dK, K and dJ/dlog lambda.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    log_lam : float
    sample : Sample
    """
    y, w, lam = sample.targets, sample.weight, np.exp(log_lam)
    n, m = y.shape
    total = w.sum()
    C = K.copy(order="F")
    C[np.diag_indices(n)] += lam / w
    root, failed = lapack.dpotrf(C, lower=1, overwrite_a=1)
    if failed:
        return _FAILED, None, K, 0.0
    alpha, _ = lapack.dpotrs(root, y, lower=1)
    q = np.maximum(np.einsum("ij,ij->j", y, alpha), 1e-300)
    J = total * np.log(q / total).sum()
    determinant = 2.0 * np.log(root.diagonal()).sum()
    J += m * ((total - n) * log_lam + np.log(w).sum() + determinant)
    if not with_gradient:
        return J, None, K, 0.0
    inverse, _ = lapack.dpotri(root, lower=1, overwrite_c=1)
    W = np.tril(inverse)
    W += np.tril(W, -1).T
    W *= m
    W -= (alpha * (total / q)) @ alpha.T
    slope = lam * (W.diagonal() / w).sum() + m * (total - n)
    return J, W, K, slope


@as_task("relevance")
def find_relevance(sample):
    """Return a of least J.

    Parameters
    ----------
    sample : Sample

    Returns
    -------
    relevance : ndarray of shape (d,)
        0 for constant features.
    """
    used = np.flatnonzero(sample.deviation)
    part = Sample(sample.X[:, used], sample.targets, sample.weight, sample.deviation)
    log_gamma, log_lam = _isotropic(part)
    d = len(used)
    bounds = [(log_gamma - _DOWN, log_gamma + _UP)] * d + [_limits()]
    found = minimize(
        lambda x: objective(x[:-1], x[-1], part),
        np.append(np.full(d, log_gamma), log_lam),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _ITERATIONS},
    )
    relevance = np.zeros(len(sample.deviation))
    relevance[used] = np.exp(found.x[:-1])
    return relevance


def _limits():
    return np.log(_LOWEST), np.log(_HIGHEST)


def _isotropic(sample):
    """Return log gamma and log lambda of least J for equal scales."""
    scales = np.einsum("ij,ij->i", sample.X, sample.X)
    gaps = scales[:, None] + scales - 2.0 * (sample.X @ sample.X.T)
    np.maximum(gaps, 0.0, out=gaps)
    start = 1.0 / _median(gaps, sample.weight)
    best = (np.inf, 0.0, 0.0)
    for gamma in start * _GRID:
        K = np.exp(-gamma * gaps)
        for lam in _PENALTIES:
            J = evidence(K, np.log(lam), sample, with_gradient=False)[0]
            best = min(best, (J, np.log(gamma), np.log(lam)))

    def judge(x):
        gamma = np.exp(x[0])
        J, W, K, slope = evidence(np.exp(-gamma * gaps), x[1], sample)
        if W is None:
            return J, np.zeros(2)
        return J, np.array([-gamma * np.einsum("ij,ij,ij->", W, K, gaps), slope])

    low, high = np.log(start * _GRID[[0, -1]])
    found = minimize(
        judge,
        best[1:],
        jac=True,
        method="L-BFGS-B",
        bounds=[(low - 3.0, high + 3.0), _limits()],
        options={"maxiter": _START_ITERATIONS},
    )
    return tuple(found.x) if found.fun <= best[0] else best[1:]


def _median(gaps, weight):
    """Return the weighted median of the squared distances of rows that differ."""
    first, second = np.triu_indices(len(gaps), 1)
    sizes, pairs = gaps[first, second], weight[first] * weight[second]
    apart = sizes > 1e-12
    if not apart.any():
        return 1.0
    order = np.argsort(sizes[apart], kind="stable")
    total = np.cumsum(pairs[apart][order])
    return float(sizes[apart][order[np.searchsorted(total, 0.5 * total[-1])]])


def clip_only(X):
    """Return a scale of one for each feature, and the range of these rows, widened."""
    ends = widened(X.min(axis=0), X.max(axis=0))
    return FeatureScale(None, np.ones(X.shape[1]), *ends)


def widened(low, high):
    """Return the ends of a range, widened."""
    more = _WIDENED * (high - low)
    return low - more, high + more


def make_scale(relevance, X, weight, *, clip):
    """Return how features of these rows are scaled.

    Parameters
    ----------
    relevance : ndarray of shape (d,)
    X : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
    clip : bool
        Whether new rows are clipped to the range of these.
    """
    factor = np.sqrt(relevance) * inverse_of(feature_deviations(X, weight))
    low, high = (X.min(axis=0), X.max(axis=0)) if clip else (None, None)
    return FeatureScale(np.asarray(relevance, dtype=np.float64), factor, low, high)
