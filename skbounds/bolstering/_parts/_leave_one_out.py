"""Leave-one-out predictions that cost no fit."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
)

from skbounds._frames import to_array
from skbounds._sklearn_compat import neighbors_data
from skbounds.bolstering._estimators import final_step
from skbounds.bolstering._question import Question
from skbounds.bolstering._table import Table, is_plain

# What is left of 1 - H_ii where a row determines its own prediction.
_LEAST_SLACK = 1e-8
# Pivot of the scaled normal equations below which columns are orthogonalised instead.
_LEAST_PIVOT = 1e-3
# Rows beyond which the choice of a penalty is not repeated without each of them.
_MOST_CHOICES = 3000
# Steps that map each row by itself, whatever the others are.
_FIXED = (Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures)
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
    steps, last = final_step(estimator)
    if not all(isinstance(step, _FIXED) for step in steps):
        return False
    if type(last) is GaussianProcessRegressor:
        # Parameters that are learnt again without each row have no formula.
        given = last.kernel is not None and not last.kernel.n_dims
        return last.optimizer is None or given
    if type(last) is RidgeCV:
        return last.cv is None and last.scoring is None and not last.alpha_per_target
    if type(last) is KNeighborsRegressor:
        return last.weights == "uniform"
    if type(last) in (LinearRegression, Ridge) and last.positive:
        return False
    return type(last) in (LinearRegression, Ridge, KernelRidge)


def leave_one_out(question):
    """Return leave-one-out predictions, or None where there is no exact formula.

    For nearest neighbours with uniform weights, and by
    y_i - (y_i - f(x_i)) / (1 - H_ii) for linear smoothers with hat matrix H.

    Parameters
    ----------
    question : Question
        About a regressor.
    """
    steps, estimator = final_step(question.estimator)
    if steps:
        question = _behind(steps, estimator, question)
        if question is None:
            return None
    targets, X = question.targets, question.table.X
    kind = type(estimator)
    if kind is KNeighborsRegressor:
        return _of_neighbors(question)
    y = targets.reshape(len(targets), -1)
    values = to_array(X)
    if issparse(values):
        return None
    known = None
    if kind in (LinearRegression, Ridge) and not estimator.positive:
        alpha = estimator.alpha if kind is Ridge else 0.0
        if np.ndim(alpha) > 0:
            return None
        values = np.asarray(values, dtype=np.float64)
        fitted, slack = _ridge(values, y, alpha, estimator.fit_intercept)
        left_out = y - (y - fitted) / _positive(slack)
        known = _by_coefficients(estimator, X)
    elif kind is RidgeCV:
        if len(y) > _MOST_CHOICES:
            return None
        values = np.asarray(values, dtype=np.float64)
        fitted, slack, left_out = _ridge_cv(estimator, values, y)
        known = _by_coefficients(estimator, X)
    elif kind is KernelRidge and np.ndim(estimator.alpha) == 0:
        fitted, slack, known = _kernel_ridge(estimator, values, y)
        left_out = y - (y - fitted) / _positive(slack)
    elif kind is GaussianProcessRegressor:
        fitted, slack, left_out = _gaussian_process(estimator, y)
    else:
        return None
    if not (slack > _LEAST_SLACK).all():
        return None
    predictions = question.ask(X) if known is None else question.note(known)
    if predictions.size != y.size:
        return None
    difference = np.abs(fitted - predictions.reshape(y.shape)).max()
    if difference > _AGREEMENT * np.abs(y - y.mean(axis=0)).max():
        return None
    return LeftOut(left_out.reshape(targets.shape), predictions)


def _positive(slack):
    return np.where(slack > _LEAST_SLACK, slack, np.nan)[:, None]


def _behind(steps, estimator, question):
    """Return the question about the last step, if those before look at no other row."""
    X, n = question.table.X, question.table.n_rows
    # Some rows in another order: a function of each row gives the same for them.
    some = np.random.RandomState(0).permutation(n)[: max(1, n // 2)]
    part = question.table.take(some)
    for step in steps:
        X, part = step.transform(X), step.transform(part)
    if issparse(X) or issparse(part):
        return None
    part, whole = (np.asarray(rows, dtype=np.float64) for rows in (part, X))
    if len(whole) != n or part.shape != whole[some].shape:
        return None
    if not np.allclose(part, whole[some], rtol=1e-10, atol=0.0, equal_nan=True):
        # A function of the whole table, such as a scaling.
        return None
    table = Table(X, [], moved=False)
    return Question(
        estimator, table, question.targets, question.weight, question.losses,
        question.asked,
    )  # fmt: skip


def _ridge_cv(estimator, X, y):
    """Return what `_ridge` does for the chosen penalty, and leave-one-out predictions.

    Without row i the penalty is the one with the least leave-one-out error among the
    other rows: errors without two rows are those of the two by the inverse of their
    block of I - H.
    """
    n = len(y)
    share = 1.0 / n if estimator.fit_intercept else 0.0
    center = np.full(n, share) @ X
    basis, lengths, _ = linalg.svd(X - center, full_matrices=False)
    best = np.full(n, np.inf)
    left_out = np.empty_like(y)
    fitted, slack = np.full_like(y, np.nan), np.zeros(n)
    for alpha in np.ravel(estimator.alphas):
        hat = (basis * (lengths**2 / (lengths**2 + alpha))) @ basis.T + share
        own = 1.0 - hat.diagonal()
        if not (own > _LEAST_SLACK).all():
            return fitted, np.zeros(n), left_out
        residuals = y - hat @ y
        block = own[:, None] * own - hat**2
        np.fill_diagonal(block, 1.0)
        # Residual of j without i and j: line i, column j.
        squares = 0.0
        for e in residuals.T:
            pair = (own[:, None] * e + hat * e[:, None]) / block
            squares = squares + pair**2
        np.fill_diagonal(squares, 0.0)
        error = squares.sum(axis=1)
        better = error < best
        best[better] = error[better]
        left_out[better] = (y - residuals / own[:, None])[better]
        if alpha == estimator.alpha_:
            fitted, slack = y - residuals, own
    return fitted, slack, left_out


def _gaussian_process(estimator, y):
    """Return fitted values, 1 where there is slack, and leave-one-out predictions.

    With given parameters of the kernel. Where targets are normalised the mean of the
    others is subtracted from each row's; the deviation has no effect on means.
    """
    n = len(estimator.X_train_)
    if n != len(y):
        return np.full_like(y, np.nan), np.zeros(len(y)), y
    K = estimator.kernel_(estimator.X_train_)
    alpha = np.broadcast_to(np.asarray(estimator.alpha, dtype=np.float64), n)
    center = y.mean(axis=0) if estimator.normalize_y else np.zeros(y.shape[1])
    K.flat[:: n + 1] += alpha
    try:
        root = linalg.cho_factor(K, lower=True)
    except linalg.LinAlgError:
        return np.full_like(y, np.nan), np.zeros(n), y
    inverse = linalg.cho_solve(root, np.eye(n))
    own = inverse.diagonal()[:, None]
    solution = inverse @ (y - center)
    # Noise in the kernel is on its diagonal, but not between rows to predict.
    fitted = center + estimator.kernel_(estimator.X_train_, estimator.X_train_) @ (
        solution
    )
    left_out = y - solution / own
    if estimator.normalize_y:
        # Linear in the targets less the mean of the others, and that mean added.
        mean = (n * center - y) / (n - 1.0)
        ones = 1.0 - inverse.sum(axis=1, keepdims=True) / own
        left_out = (y - (inverse @ y) / own) + mean * (1.0 - ones)
    return fitted, np.ones(n), left_out


def _by_coefficients(estimator, X):
    """Return what a linear model predicts at plain rows; None for others."""
    if type(X) is not np.ndarray or X.dtype != np.float64:
        return None
    if estimator.coef_.shape[-1] != X.shape[1]:
        return None
    predictions = X @ estimator.coef_.T + estimator.intercept_
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        return predictions[:, 0]
    return predictions


def _ridge(X, y, alpha, fit_intercept):
    """Return the fitted values and 1 - H_ii of ridge regression."""
    n, d = X.shape
    share = 0.0
    shift = np.zeros(y.shape[1])
    if fit_intercept:
        share = 1.0 / n
        # Faster than `mean` along the rows.
        each = np.full(n, share)
        shift = each @ y
        X, y = X - each @ X, y - shift
    if d < n:
        root = _root_of_hat_matrix(X, alpha)
        leverage = np.einsum("ij,ij->i", root, root)
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
            inverse, _ = linalg.lapack.dtrtri(root, lower=1)
            return X @ (np.tril(inverse).T / lengths[:, None])
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


def leave_one_out_unfitted(estimator, X, y):
    """Return leave-one-out predictions of an estimator that is yet to be fitted.

    None where they are not cheaper than those of a fitted one. Kernel ridge regression
    would spend on the fit what these cost already: a kernel matrix and its
    factorisation.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
    """
    if type(estimator) is not KernelRidge or not (is_plain(X, 2) and is_plain(y, 1)):
        return None
    alpha, gamma = estimator.alpha, estimator.gamma
    known = (
        estimator.kernel in ("linear", "rbf", "laplacian")
        and isinstance(alpha, Real)
        and alpha > 0.0
        and (gamma is None or (isinstance(gamma, Real) and gamma >= 0.0))
        and len(X) == len(y) > 1
    )
    if not known:
        # Rare kernels, and errors, are left to the fit.
        return None
    solution, diagonal = _solve(_kernel_matrix(estimator, X), y, alpha)
    if not (alpha * diagonal > _LEAST_SLACK).all():
        return None
    return LeftOut(y - solution / diagonal, y - alpha * solution)


def _kernel_matrix(estimator, X):
    if estimator.kernel == "precomputed":
        return np.array(X, dtype=np.float64)
    if callable(estimator.kernel):
        return pairwise_kernels(
            X, metric=estimator.kernel, n_jobs=1, **(estimator.kernel_params or {})
        )
    return pairwise_kernels(
        X, metric=estimator.kernel, filter_params=True, gamma=estimator.gamma,
        degree=estimator.degree, coef0=estimator.coef0, n_jobs=1,
    )  # fmt: skip


def _kernel_ridge(estimator, X, y):
    """Return the fitted values and 1 - H_ii of kernel ridge regression.

    And what the estimator predicts, if it has these rows.
    """
    K = _kernel_matrix(estimator, X)
    known = None
    if type(X) is np.ndarray and np.array_equal(estimator.X_fit_, X):
        known = K @ estimator.dual_coef_
        if known.ndim == 2 and known.shape[1] == 1:
            known = known[:, 0]
    solution, diagonal = _solve(K, y, estimator.alpha)
    return y - estimator.alpha * solution, estimator.alpha * diagonal, known


def _solve(K, y, alpha):
    """Return (K + alpha I)^-1 y, and the diagonal of the inverse. Overwrites K."""
    K.flat[:: len(K) + 1] += alpha
    # LAPACK's columns are the rows: the matrix is symmetric.
    root, info = linalg.lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=1)
    if info:
        # Not positive definite: leave it to the folds.
        return np.full_like(y, np.nan), np.zeros(len(K))
    solution, _ = linalg.lapack.dpotrs(root, y, lower=0)
    inverse, _ = linalg.lapack.dtrtri(root, lower=0, overwrite_c=1)
    return solution, np.einsum("ij,ij->i", inverse, inverse)


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
    at_rows, left_out = (targets[rows].mean(axis=1) for rows in (nearest, others))
    # Among rows that are the same the estimator need not take the row itself.
    repeated = np.flatnonzero(distances[:, 0] == 0.0)
    if len(repeated):
        at_rows[repeated] = question.ask(question.table.take(repeated))
    return LeftOut(left_out, at_rows)


def _was_fitted_on(estimator, X, targets):
    """Tell whether nearest neighbours were fitted on these rows, in this order."""
    rows, known = neighbors_data(estimator)
    values = to_array(X)
    return (
        isinstance(rows, np.ndarray)
        and np.array_equal(rows, values)
        and np.array_equal(known, targets)
    )
