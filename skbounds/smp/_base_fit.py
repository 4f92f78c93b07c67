"""Penalised logistic and softmax regression by Newton's method.

The objective, with sample weights ``v_i`` and penalties ``pen_j``, is

    F(theta) = sum_i v_i loss(y_i, raw_i) + 1/2 sum_j pen_j theta_j^2 .

Two classes have one raw prediction (the log-odds). K > 2 classes use the symmetric
softmax model of scikit-learn; its optimum satisfies ``sum_k theta_k = 0``, so it is
solved in ``K - 1`` orthonormal directions of that subspace, where the problem is
strictly convex also with an unpenalised intercept.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from skbounds._base import warn_user
from skbounds._blocks import row_blocks
from skbounds.smp._tilts import label_targets

# A Newton step that changes no raw prediction by more than this leaves an error of the
# order of its square.
LAST_STEP = 1e-9
# Of the mean square of a column; and the share of its curvature without separation
# below which it counts as separated.
_SMALLEST_PENALTY, _SEPARATED = 1e-14, 1e-9
# Up to so many columns the products of all pairs are cheaper than a matrix product for
# every pair of classes.
_FEW_COLUMNS = 150
# A Hessian that costs more steps of conjugate gradients than this is formed rarely:
# when an old one makes them take so many.
_DEAR, _MAX_CG_STEPS = 20, 30
# Side of a Hessian that takes gigabytes and minutes.
_LARGE_SIDE = 8000


@cache
def contrasts(n_classes: int) -> np.ndarray:
    """Return orthonormal columns spanning the sum-zero vectors; [[1.]] if binary."""
    basis = np.ones((1, 1)) if n_classes == 2 else linalg.helmert(n_classes).T.copy("C")
    basis.flags.writeable = False  # shared by all callers
    return basis


def raw_to_proba(raw: np.ndarray) -> np.ndarray:
    """Map raw predictions (1 or K rows) to gradients' probabilities, same shape."""
    return expit(raw) if raw.shape[0] == 1 else softmax(raw, axis=0)


def log_loss_per_sample(raw: np.ndarray, onehot: np.ndarray) -> np.ndarray:
    """Return the log loss of each column; ``onehot`` may be (1 or K, n)."""
    if raw.shape[0] == 1:
        return -log_expit(np.where(onehot[0] > 0.5, raw[0], -raw[0]))
    return logsumexp(raw, axis=0) - np.sum(raw * onehot, axis=0)


def reduced_hessian(Z, proba: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the Hessian of the weighted log loss in reduced coordinates.

    Parameters
    ----------
    Z : {ndarray, sparse array} of shape (n_samples, p)
    proba : ndarray of shape (1 or K, n_samples)
    weight : ndarray of shape (n_samples,)

    Returns
    -------
    hessian : ndarray of shape (k * p, k * p)
        With ``k = 1`` or ``K - 1`` blocks.
    """

    def weighted_gram(w):
        if sparse.issparse(Z):
            return (Z.T @ Z.multiply(w[:, None])).toarray()
        return Z.T @ (Z * w[:, None])

    if proba.shape[0] == 1:
        return weighted_gram(weight * proba[0] * (1.0 - proba[0]))
    Q = contrasts(proba.shape[0])
    k, p = Q.shape[1], Z.shape[1]
    mean = Q.T @ proba
    first, second = np.tril_indices(k)
    weights = (Q[:, first] * Q[:, second]).T @ proba - mean[first] * mean[second]
    weights *= weight
    if sparse.issparse(Z) or k < 3 or p > _FEW_COLUMNS:
        blocks = map(weighted_gram, weights)
    else:
        blocks = _weighted_grams(Z, weights)
    hessian = np.empty((k, p, k, p))
    for a, b, block in zip(first, second, blocks, strict=True):
        hessian[a, :, b] = hessian[b, :, a] = block
    return hessian.reshape(k * p, k * p)


def _weighted_grams(Z, weights):
    """Return ``Z' diag(w) Z`` for each w: the products of all columns are shared."""
    n_samples, p = Z.shape
    first, second = np.triu_indices(p)
    starts = np.flatnonzero(first == second)
    entries = np.zeros((len(weights), len(first)))
    transposed = np.ascontiguousarray(Z.T)
    for rows in row_blocks(n_samples, max(2**20 // len(first), 64)):
        part = transposed[:, rows]
        products = np.empty((len(first), part.shape[1]))
        for j, start in enumerate(starts):
            products[start : start + p - j] = part[j:] * part[j]
        entries += weights[:, rows] @ products.T
    result = np.empty((len(weights), p, p))
    result[:, first, second] = result[:, second, first] = entries
    return result


def step_length(direction_raw: np.ndarray, axis) -> np.ndarray:
    """Return ``log(1 + r) / r``, the step that is safe without evaluating anything.

    The log losses are quasi self-concordant: along a direction that changes raw
    predictions by at most ``r`` (range over the classes), the Hessian changes at most
    by the factor ``exp(r t)`` at step ``t``; minimising the resulting upper bound gives
    this length. ``r <= 1`` returns 1: the full Newton step then decreases the objective
    already by the same bound.
    """
    largest = np.max(np.abs(direction_raw), axis=axis)
    return safe_step(largest, several=direction_raw.shape[-2] > 1)


def safe_step(largest, *, several):
    """Return the same from the largest change of a raw prediction.

    Parameters
    ----------
    largest : float or ndarray
    several : bool
        Whether there is a raw prediction for each class.
    """
    r = np.maximum(largest * (2.0 if several else 1.0), 1e-300)
    return np.where(r <= 1.0, 1.0, np.log1p(r) / r)


def is_last_step(size, previous, largest):
    """Return whether Newton's method has converged with this step.

    Parameters
    ----------
    size, previous : float or ndarray
        Largest change of a raw prediction by this step and by the last one.
    largest : float or ndarray
        Largest raw prediction, whose rounding sets a floor: there steps stop shrinking.
    """
    scale = np.minimum(1.0 + largest, 1e3)
    floor = (size <= 1e-6 * scale) & (size >= 0.5 * previous)
    return (size <= LAST_STEP) | floor


@dataclass
class BaseFit:
    """The n-point fit and what all virtual fits share.

    Attributes
    ----------
    n_classes : int
    penalty : ndarray of shape (p,)
        Ridge strength per coordinate (1/C or 0).
    theta : ndarray of shape (k, p)
        Coefficients in reduced directions.
    inv_factor : ndarray of shape (k * p, k * p)
        Inverse of the lower Cholesky factor of the Hessian.
    n_iter : int
        Newton steps taken.
    Z : {ndarray, sparse array} of shape (n_samples, p) or None
        Training rows; None where one-step predictions are all that is wanted.
    weight : ndarray of shape (n_samples,) or None
    proba : ndarray of shape (1 or K, n_samples) or None
    """

    n_classes: int
    penalty: np.ndarray
    theta: np.ndarray
    inv_factor: np.ndarray
    n_iter: int = 0
    Z: Any = None
    weight: Any = None
    proba: Any = None

    def raw(self, features) -> np.ndarray:
        """Return raw predictions of coordinate rows, shape (1 or K, n)."""
        return raw_predictions(self.theta, features, self.n_classes)

    def class_theta(self) -> np.ndarray:
        """Return coefficients per class (K rows) or of the positive class (1 row)."""
        return contrasts(self.n_classes) @ self.theta


def raw_predictions(theta: np.ndarray, features, n_classes: int) -> np.ndarray:
    """Return raw predictions, shape (1 or K, n), for reduced coefficients."""
    return contrasts(n_classes) @ (features @ theta.T).T


def factorize(hessian: np.ndarray) -> np.ndarray:
    """Return the inverse of the lower Cholesky factor of a positive matrix.

    Saturated probabilities and tiny penalties can leave the matrix singular to working
    precision; then the diagonal is raised by the smallest amount that helps.
    """
    if not np.isfinite(hessian).all():
        raise np.linalg.LinAlgError("The Hessian of the log loss is not finite.")
    jitter = np.finfo(float).eps * np.trace(hessian) / len(hessian)
    work = hessian
    for _ in range(30):
        factor, info = linalg.lapack.dpotrf(work, lower=1, clean=1)
        if info == 0:
            inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
            return inverse
        work = hessian + max(jitter, np.finfo(float).tiny) * np.eye(len(hessian))
        jitter *= 10.0
    raise np.linalg.LinAlgError("The Hessian of the log loss is not positive definite.")


def residuals(raw, proba, onehot):
    """Return ``proba - onehot``, exact also where a row is all but certain."""
    if len(raw) == 1:
        sign = 2.0 * onehot - 1.0
        return -sign * expit(-sign * raw)
    others = np.where(onehot > 0.5, 0.0, proba)
    return others - onehot * others.sum(axis=0)


def _floor(Z, weight):
    """Return the least penalties that doubles can tell from none beside such rows."""
    squares = Z.multiply(Z) if sparse.issparse(Z) else Z * Z
    return smallest_penalties(np.asarray(squares.T @ weight).ravel() / weight.sum())


def smallest_penalties(squares):
    """Return the same from the mean squares of the columns."""
    return _SMALLEST_PENALTY * np.where(squares > 0.0, squares, squares.mean())


def _resolved(Z, weight, penalty, proba):
    """Return penalties raised where a fit has left coordinates without curvature.

    All rows that see such a coordinate are separated, and only the penalty holds them.
    What a larger one changes is of its order times the square of the log-odds.
    """
    curvature = weight * np.max(proba * (1.0 - proba), axis=0)
    squares = Z.multiply(Z) if sparse.issparse(Z) else Z * Z
    left = np.asarray(squares.T @ curvature).ravel()
    lost = left <= _SEPARATED * np.asarray(squares.T @ weight).ravel()
    floor = _floor(Z, weight)
    return np.where(lost & (penalty > 0.0), np.maximum(penalty, floor), penalty)


def _hessian_cost(Z, k):
    """Return the cost of a Hessian and its factor, in steps of conjugate gradients."""
    n, p = Z.shape
    if sparse.issparse(Z):
        n = Z.nnz / p
    # Multiplications of the blocks and of the factor; of two passes over the rows and
    # of the preconditioner, and what a call takes in any case.
    hessian = 0.5 * k * (k + 1) * n * p**2 + (k * p) ** 3 / 3
    return hessian / (2.0 * n * p * (k + 1) + 2.0 * (k * p) ** 2 + 1e6)


def _newton_cg(Z, proba, weight, penalty, gradient, inv_factor, tol):
    """Return a Newton direction up to a relative error, None if it takes too long."""
    Q = contrasts(max(len(proba), 2))

    def multiply(v):
        change = Q @ (Z @ v.T).T
        if len(proba) == 1:
            change *= proba * (1.0 - proba)
        else:
            change -= np.sum(proba * change, axis=0)
            change *= proba
        return (Z.T @ (Q.T @ (change * weight)).T).T + penalty * v

    def precondition(v):
        inner = linalg.blas.dtrmv(inv_factor, v.ravel(), lower=1)
        return linalg.blas.dtrmv(inv_factor, inner, lower=1, trans=1).reshape(v.shape)

    residual = -gradient
    solution, search = np.zeros_like(residual), precondition(residual)
    squared = first = np.sum(residual * search)
    for _ in range(_MAX_CG_STEPS):
        product = multiply(search)
        length = squared / np.sum(search * product)
        if not np.isfinite(length):
            return None
        solution += length * search
        residual = residual - length * product
        conditioned = precondition(residual)
        squared, last = np.sum(residual * conditioned), squared
        if squared <= tol**2 * first:
            return solution
        search = conditioned + (squared / last) * search
    return None


def fit_base(Z, codes, weight, penalty, n_classes, **options) -> BaseFit:
    """Minimise the penalised log loss, as :func:`_fit` does, with penalties that count.

    Penalties too small for the curvature of separated rows are raised to the least that
    can be told from none.
    """
    data = (Z, codes, weight)
    raised = np.where(penalty > 0.0, np.maximum(penalty, _floor(Z, weight)), 0.0)
    if np.array_equal(raised, penalty):
        return _fit(*data, penalty, n_classes, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = _fit(*data, raised, n_classes, **options)
    options = {**options, "theta": first.theta, "near": None}
    penalty = _resolved(Z, weight, penalty, first.proba)
    last = _fit(*data, penalty, n_classes, **options)
    last.n_iter += first.n_iter
    return last


def warn_of_side(side):
    """Warn of a Hessian with so many rows that it takes gigabytes."""
    if side > _LARGE_SIDE:
        warn_user(
            f"The Hessian has {side} rows (coefficients times classes less one): "
            f"{3 * 8e-9 * side**2:.0f} GB and minutes per Newton step. Reduce the "
            "number of features first."
        )


def warn_of_max_iter(max_iter):
    """Warn that Newton's method has not converged."""
    warn_user(
        f"Newton's method did not converge in max_iter={max_iter} iterations; "
        "increase max_iter or scale the features.",
        ConvergenceWarning,
    )


def _fit(
    Z,
    codes: np.ndarray,
    weight: np.ndarray,
    penalty: np.ndarray,
    n_classes: int,
    *,
    theta: np.ndarray | None = None,
    near: BaseFit | None = None,
    max_iter: int = 100,
) -> BaseFit:
    """Minimise the penalised log loss of the n training rows to machine precision.

    Parameters
    ----------
    Z : {ndarray, sparse array} of shape (n_samples, p)
    codes : ndarray of shape (n_samples,), int
        Labels 0..K-1.
    weight : ndarray of shape (n_samples,)
    penalty : ndarray of shape (p,)
    n_classes : int
    theta : ndarray of shape (k, p), default=None
        Starting point.
    near : BaseFit, default=None
        A fit to the same rows with other penalties, to start from.
    max_iter : int, default=100
        Largest number of Newton steps; a ``ConvergenceWarning`` when it is reached.
    """
    warn_of_side((max(n_classes, 2) - 1) * Z.shape[1])
    onehot = label_targets(n_classes)[codes].T
    Q = contrasts(n_classes)
    k, p = Q.shape[1], Z.shape[1]
    if near is not None:
        theta = near.theta
    theta = np.zeros((k, p)) if theta is None else theta.copy()
    full_penalty = np.tile(penalty, k)

    def objective(theta, raw):
        loss = weight @ log_loss_per_sample(raw, onehot)
        return loss + 0.5 * np.sum(penalty * theta**2)

    def factor(proba):
        hessian = reduced_hessian(Z, proba, weight)
        hessian.flat[:: k * p + 1] += full_penalty
        return factorize(hessian)

    # Where a Hessian is dear, directions come from conjugate gradients, preconditioned
    # by an old one.
    lazy = _hessian_cost(Z, k) > _DEAR
    inv_factor: Any = near.inv_factor if lazy and near is not None else None
    raw = raw_predictions(theta, Z, n_classes)
    n_iter, converged, previous = 0, False, np.inf
    while not converged and n_iter < max_iter:
        n_iter += 1
        proba = raw_to_proba(raw)
        residual = Q.T @ (residuals(raw, proba, onehot) * weight)
        gradient = (Z.T @ residual.T).T + penalty * theta
        direction = None
        if lazy and inv_factor is not None:
            direction = _newton_cg(
                Z, proba, weight, penalty, gradient, inv_factor, min(1e-2, previous)
            )
        if direction is None:
            inv_factor = factor(proba)
            direction = -(inv_factor.T @ (inv_factor @ gradient.ravel()))
            direction = direction.reshape(k, p)
        change = raw_predictions(direction, Z, n_classes)
        size = np.max(np.abs(change))
        step, safe = 1.0, float(step_length(change, axis=None))
        if safe < 1.0:
            value = objective(theta, raw)
            descent = np.sum(gradient * direction)
            while step > safe and not (
                objective(theta + step * direction, raw + step * change)
                <= value + 1e-4 * step * descent
            ):
                step = max(step / 4.0, safe)
        theta, raw = theta + step * direction, raw + step * change
        converged = bool(is_last_step(size, previous, np.abs(raw).max()))
        previous = size
    if not converged:
        warn_of_max_iter(max_iter)
    proba = raw_to_proba(raw_predictions(theta, Z, n_classes))
    if lazy:
        inv_factor = factor(proba)
    return BaseFit(n_classes, penalty, theta, inv_factor, n_iter, Z, weight, proba)
