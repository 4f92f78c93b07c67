"""Leave-one-out predictions that cost no fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skbounds._sklearn_compat import neighbors_data

# What is left of 1 - H_ii where a row determines its own prediction.
_LEAST_SLACK = 1e-8
# Pivot of the scaled normal equations below which columns are orthogonalised instead.
_LEAST_PIVOT = 1e-3
# The fit is to be that of these rows, without weights: relative difference.
_AGREEMENT = 1e-6


@dataclass(frozen=True)
class LeftOut:
    """Predictions at the rows, and those of fits without the row.

    Attributes
    ----------
    left_out, at_rows : ndarray of shape (n,) or (n, m)
    """

    left_out: np.ndarray
    at_rows: np.ndarray


def has_formula(estimator):
    """Tell whether an estimator is of a kind that has exact leave-one-out."""
    return type(estimator) in (
        KNeighborsClassifier,
        KNeighborsRegressor,
        LinearRegression,
        Ridge,
        KernelRidge,
    )


def leave_one_out(question):
    """Return leave-one-out predictions, or None where there is no exact formula.

    For nearest neighbours with uniform weights, and by
    y_i - (y_i - f(x_i)) / (1 - H_ii) for linear smoothers with hat matrix H.

    Parameters
    ----------
    question : Question
    """
    estimator, targets = question.estimator, question.targets
    X = question.table.X
    kind = type(estimator)
    if kind in (KNeighborsClassifier, KNeighborsRegressor):
        return _of_neighbors(question)
    y = targets.reshape(len(targets), -1)
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if kind in (LinearRegression, Ridge) and not estimator.positive:
        alpha = estimator.alpha if kind is Ridge else 0.0
        if np.ndim(alpha) > 0:
            return None
        values = np.asarray(values, dtype=np.float64)
        fitted, slack = _ridge(values, y, alpha, estimator.fit_intercept)
    elif kind is KernelRidge and np.ndim(estimator.alpha) == 0:
        fitted, slack = _kernel_ridge(estimator, values, y)
    else:
        return None
    if not (slack > _LEAST_SLACK).all():
        return None
    predictions = question.ask(X)
    difference = np.abs(fitted - predictions.reshape(y.shape)).max()
    if difference > _AGREEMENT * np.abs(y - y.mean(axis=0)).max():
        return None
    left_out = y - (y - fitted) / slack[:, None]
    return LeftOut(left_out.reshape(targets.shape), predictions)


def _ridge(X, y, alpha, fit_intercept):
    """Return the fitted values and 1 - H_ii of ridge regression."""
    n, d = X.shape
    share = 0.0
    shift = np.zeros(y.shape[1])
    if fit_intercept:
        share, shift = 1.0 / n, y.mean(axis=0)
        X, y = X - X.mean(axis=0), y - shift
    if d < n:
        root = _root_of_hat_matrix(X, alpha)
        leverage = (root**2).sum(axis=1)
        return root @ (root.T @ y) + shift, 1.0 - leverage - share
    if alpha == 0.0:
        return y + shift, np.zeros(n)
    solution, diagonal = _solve(X @ X.T, y, alpha)
    return y - alpha * solution + shift, alpha * diagonal - share


def _root_of_hat_matrix(X, alpha):
    """Return R of at most d columns with R R' = X (X'X + alpha I)^-1 X'."""
    n, d = X.shape
    gram = X.T @ X
    gram.flat[:: d + 1] += alpha
    lengths = np.sqrt(gram.diagonal())
    if lengths.all():
        gram /= lengths[:, None] * lengths
        root, info = linalg.lapack.dpotrf(gram, lower=1)
        # The products have lost digits where columns nearly depend on each other.
        if info == 0 and root.diagonal().min(initial=1.0) > _LEAST_PIVOT:
            return linalg.blas.dtrsm(1.0, root, X / lengths, side=1, lower=1, trans_a=1)
    if alpha > 0.0:
        stacked = np.vstack([X, np.sqrt(alpha) * np.eye(d)])
        return linalg.qr(stacked, mode="economic", check_finite=False)[0][:n]
    # Pivoted: columns that depend on others come last and are left out.
    basis, triangle, _ = linalg.qr(
        X, mode="economic", pivoting=True, check_finite=False
    )
    sizes = np.abs(triangle.diagonal())
    eps = np.finfo(np.float64).eps
    return basis[:, sizes > max(n, d) * eps * sizes.max(initial=0.0)]


def _kernel_ridge(estimator, X, y):
    """Return the fitted values and 1 - H_ii of kernel ridge regression."""
    if estimator.kernel == "precomputed":
        K = np.asarray(X, dtype=np.float64)
    elif callable(estimator.kernel):
        K = pairwise_kernels(
            X, metric=estimator.kernel, **(estimator.kernel_params or {})
        )
    else:
        K = pairwise_kernels(
            X, metric=estimator.kernel, filter_params=True, gamma=estimator.gamma,
            degree=estimator.degree, coef0=estimator.coef0,
        )  # fmt: skip
    solution, diagonal = _solve(K, y, estimator.alpha)
    return y - estimator.alpha * solution, estimator.alpha * diagonal


def _solve(K, y, alpha):
    """Return (K + alpha I)^-1 y, and the diagonal of the inverse."""
    K = K.copy()
    K.flat[:: len(K) + 1] += alpha
    root, info = linalg.lapack.dpotrf(K, lower=1)
    if info:
        # Not positive definite: leave it to the folds.
        return np.full_like(y, np.nan), np.zeros(len(K))
    solution, _ = linalg.lapack.dpotrs(root, y, lower=1)
    inverse, _ = linalg.lapack.dtrtri(root, lower=1)
    return solution, (np.tril(inverse) ** 2).sum(axis=0)


def _of_neighbors(question):
    """Return what the nearest other rows predict, and the nearest rows."""
    estimator, targets = question.estimator, question.targets
    X = question.table.X
    k, n = estimator.n_neighbors, len(targets)
    if estimator.weights != "uniform" or k >= n:
        return None
    if not _was_fitted_on(estimator, X, targets):
        return None
    distances, others = estimator.kneighbors()
    nearest = np.column_stack([np.arange(n), others[:, : k - 1]])
    at_rows, left_out = (_vote(estimator, targets, rows) for rows in (nearest, others))
    # Among rows that are the same the estimator need not take the row itself.
    repeated = np.flatnonzero(distances[:, 0] == 0.0)
    if len(repeated):
        at_rows[repeated] = question.ask(question.table.take(repeated))
    return LeftOut(left_out, at_rows)


def _was_fitted_on(estimator, X, targets):
    """Tell whether nearest neighbours were fitted on these rows, in this order."""
    rows, known = neighbors_data(estimator)
    if isinstance(estimator, KNeighborsClassifier):
        known = estimator.classes_[known] if np.ndim(known) == 1 else known
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    return (
        isinstance(rows, np.ndarray)
        and np.array_equal(rows, values)
        and np.array_equal(known, targets)
    )


def _vote(estimator, targets, rows):
    if isinstance(estimator, KNeighborsRegressor):
        return targets[rows].mean(axis=1)
    codes = np.searchsorted(estimator.classes_, targets)[rows]
    votes = (codes[:, :, None] == np.arange(len(estimator.classes_))).sum(axis=1)
    return estimator.classes_[votes.argmax(axis=1)]
