"""Logistic regression on rows in chunks: Newton steps of a pass each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.utils.extmath import row_norms

from skbounds._blocks import memory_limit, row_blocks
from skbounds._chunked_labels import codes_of, join_classes, weights_of_labels
from skbounds._collections import Chunks, rows_that_count
from skbounds._magnitude import check_magnitude
from skbounds._weights import class_factors
from skbounds.smp._base_fit import (
    BaseFit,
    contrasts,
    factorize,
    is_last_step,
    log_loss_per_sample,
    raw_predictions,
    raw_to_proba,
    reduced_hessian,
    residuals,
    safe_step,
    smallest_penalties,
    warn_of_max_iter,
    warn_of_side,
)
from skbounds.smp._calibration import WORST, null_row_losses, shifted_row_losses
from skbounds.smp._design import Design
from skbounds.smp._excess import (
    LARGEST_LEVERAGE,
    SEPARATED,
    Excess,
    from_moments,
    moments,
    penalized_terms,
    plain_terms,
)
from skbounds.smp._one_step import (
    one_step_leave_one_out,
    one_step_leave_one_out_log_proba,
)
from skbounds.smp._pool import pool_row_losses, pool_weights
from skbounds.smp._tilts import label_scores, label_targets, log_normalize

# Passes for the shifts of the log-odds, and their accuracy.
_MOST_SHIFTS, _SHIFT_TOLERANCE = 60, 1e-12


@dataclass(frozen=True)
class Rows:
    """How chunks become coordinates, codes and weights.

    Attributes
    ----------
    design : Design
    classes : ndarray of shape (K,)
    factors : ndarray of shape (K,)
        What rows of a class count, times their weights.
    extra : int
        Numbers that functions of a block make of each row besides.
    """

    design: Design
    classes: np.ndarray
    factors: np.ndarray
    extra: int = 0

    @property
    def n_classes(self):
        return len(self.classes)

    def blocks(self, X, y, weight):
        """Yield coordinates, codes and weights of rows that count."""
        X, y, weight, _ = rows_that_count(X, y, weight)
        codes = codes_of(y, self.classes) if len(y) else np.zeros(0, int)
        weight = weight * self.factors[codes]
        width = 4 * (X.shape[1] + self.design.n_coordinates + self.n_classes)
        width += self.extra
        for rows in row_blocks(len(y), memory_limit() // width):
            Z = self.design.transform(X[rows])
            if sparse.issparse(Z):
                Z = sparse.csr_array(Z)
            yield Z, codes[rows], weight[rows]


@dataclass
class ChunkedData:
    """Rows in chunks and what is known of all of them.

    Attributes
    ----------
    chunks : Chunks
    rows : Rows
    total : float
        Sum of the weights.
    least_weight : float
    extent, radius2 : float
        Largest entry, and largest squared norm of a row.
    second : ndarray of shape (p, p)
        Second moments of coordinates, times the total.
    mean_square : float
        Mean squared norm of the rows.
    counts : ndarray of shape (K,)
        Weights of the classes.
    """

    chunks: Chunks
    rows: Rows
    total: float
    least_weight: float
    extent: float
    radius2: float
    second: np.ndarray
    mean_square: float
    counts: np.ndarray

    def sums(self, function, *shared):
        """Return the sums of what a function makes of blocks of rows; a pass.

        Parameters
        ----------
        function : callable
            ``function(Z, codes, weight, n_classes, *shared)`` returns a tuple of
            arrays, of which the last has largest values and is not added.
        """
        return self.chunks.sums(
            _of_chunk, self.rows, function, shared, combine=_add_and_compare
        )


def _of_chunk(X, y, weight, rows, function, shared):
    parts = [
        function(Z, codes, w, rows.n_classes, *shared)
        for Z, codes, w in rows.blocks(X, y, weight)
    ]
    if not parts:
        Z = np.zeros((0, rows.design.n_coordinates))
        parts = [function(Z, np.zeros(0, int), np.zeros(0), rows.n_classes, *shared)]
    return _add_and_compare(*parts)


def _add_and_compare(*parts):
    """Return sums, and of the last ones the largest."""
    *sums, tops = zip(*parts, strict=True)
    return (*(sum(values) for values in sums), np.max(tops, axis=0))


def read_chunks(chunks, make_design, class_weight) -> ChunkedData:
    """Run the passes of the facts and of the second moments.

    Parameters
    ----------
    chunks : Chunks
    make_design : callable
        ``make_design(mean, classes, factors)`` returns the coordinates, centred or
        not; the mean is None for sparse rows.
    class_weight : dict, 'balanced' or None
    """
    found = [part for part in chunks.map(_facts_of) if part is not None]
    if not found:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    classes, totals = join_classes([part[0] for part in found])
    total, x_sum, is_sparse = (
        sum(column) for column in zip(*(part[1] for part in found), strict=True)
    )
    largest = np.max([part[2] for part in found], axis=0)
    factors = class_factors(class_weight, classes, np.arange(len(classes)), totals)
    design = make_design(None if is_sparse else x_sum / total, classes, factors)
    rows = Rows(design, classes, factors)
    data = ChunkedData(
        chunks,
        rows,
        total=float((totals * factors).sum()),
        least_weight=float(-largest[0]),
        extent=max(1.0, float(largest[1])),
        radius2=float(largest[2]),
        second=np.empty((0, 0)),
        mean_square=np.nan,
        counts=totals * factors,
    )
    if len(classes) > 1:
        second, squares, _ = data.sums(_second_moments)
        data.second, data.mean_square = second, float(squares / total)
    return data


def _facts_of(X, y, weight):
    X, y, weight, _ = rows_that_count(X, y, weight)
    if not len(y):
        return None
    check_magnitude(X, "X")
    values = X.data if sparse.issparse(X) else X
    ends = (-weight.min(), np.abs(values).max(initial=0.0))
    radius2 = row_norms(X, squared=True).max()
    sums = (weight.sum(), np.asarray(X.T @ weight).ravel(), sparse.issparse(X))
    return weights_of_labels(y, weight), sums, (*ends, radius2)


def _second_moments(Z, codes, weight, n_classes):
    if sparse.issparse(Z):
        second = (Z.T @ Z.multiply(weight[:, None])).toarray()
    else:
        second = Z.T @ (Z * weight[:, None])
    squares = row_norms(Z, squared=True) if Z.shape[0] else np.zeros(0)
    return second, np.array(weight @ squares), np.array(0.0)


# ----------------------------------------------------------------------------- Newton


def _evaluate(Z, codes, weight, n_classes, theta, direction):
    """Return the loss, its gradient and Hessian, and two largest numbers.

    The latter are of raw predictions, and of what a direction changes them by.
    """
    k, p = theta.shape
    if not Z.shape[0]:
        return np.array(0.0), np.zeros((k, p)), np.zeros((k * p, k * p)), np.zeros(2)
    raw = raw_predictions(theta, Z, n_classes)
    onehot = label_targets(n_classes)[codes].T
    proba = raw_to_proba(raw)
    residual = contrasts(n_classes).T @ (residuals(raw, proba, onehot) * weight)
    loss = np.array(weight @ log_loss_per_sample(raw, onehot))
    gradient = np.asarray((Z.T @ residual.T).T)
    change = raw_predictions(direction, Z, n_classes)
    ends = np.array([np.abs(raw).max(), np.abs(change).max()])
    return loss, gradient, reduced_hessian(Z, proba, weight), ends


def _loss(Z, codes, weight, n_classes, theta):
    if not Z.shape[0]:
        return np.array(0.0), np.array(0.0)
    raw = raw_predictions(theta, Z, n_classes)
    onehot = label_targets(n_classes)[codes].T
    return np.array(weight @ log_loss_per_sample(raw, onehot)), np.array(0.0)


def fit_chunks(data, penalty, theta=None, *, max_iter=100):
    """Minimise the penalised log loss, as `fit_base` does.

    Returns
    -------
    base : BaseFit
        Without rows.
    ends : tuple
        Gradient, and the largest raw prediction.
    """
    n_classes = data.rows.n_classes
    k, p = contrasts(n_classes).shape[1], len(penalty)
    squares = data.second.diagonal() / data.total
    penalty = np.where(
        penalty > 0.0, np.maximum(penalty, smallest_penalties(squares)), 0.0
    )
    theta = np.zeros((k, p)) if theta is None else theta.copy()
    warn_of_side(k * p)
    full = np.tile(penalty, k)

    def objective(loss, theta):
        return float(loss) + 0.5 * np.sum(penalty * theta**2)

    def at(theta, direction):
        loss, gradient, hessian, ends = data.sums(_evaluate, theta, direction)
        hessian.flat[:: k * p + 1] += full
        return objective(loss, theta), gradient + penalty * theta, hessian, ends

    value, gradient, hessian, (largest, _) = at(theta, np.zeros((k, p)))
    inv_factor = factorize(hessian)
    n_iter, converged, previous = 0, False, np.inf
    while not converged and n_iter < max_iter:
        n_iter += 1
        direction = -(inv_factor.T @ (inv_factor @ gradient.ravel())).reshape(k, p)
        # The whole step is nearly always the one to be taken: a pass tells whether, and
        # what is to be known there.
        moved = theta + direction
        found = at(moved, direction)
        size = found[3][1]
        step, safe = 1.0, float(safe_step(size, several=n_classes > 2))
        if safe < 1.0:
            descent, there = np.sum(gradient * direction), found[0]
            while step > safe and not there <= value + 1e-4 * step * descent:
                step = max(step / 4.0, safe)
                moved = theta + step * direction
                if step > safe:
                    there = objective(data.sums(_loss, moved)[0], moved)
            if step < 1.0:
                found = at(moved, direction)
        theta = moved
        value, gradient, hessian, (largest, _) = found
        inv_factor = factorize(hessian)
        converged = bool(is_last_step(size, previous, largest))
        previous = size
    if not converged:
        warn_of_max_iter(max_iter)
    base = BaseFit(n_classes, penalty, theta, inv_factor, n_iter)
    return base, (gradient, largest)


def likeliest_fit(data, theta):
    """Return the unpenalised fit of two classes, None where it does not exist."""
    p = len(data.second)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            base, (gradient, largest) = fit_chunks(data, np.zeros(p), theta)
        except np.linalg.LinAlgError:
            return None
    half = base.inv_factor @ gradient.ravel()
    return base if largest < SEPARATED and half @ half < 1e-8 else None


# ----------------------------------------------------------------------- leave-one-out


@dataclass(frozen=True)
class Question:
    """What is asked of each row without itself.

    Attributes
    ----------
    base : BaseFit
        The fit to all rows with the same penalty per observation.
    best : BaseFit or None
        That without a penalty.
    lambda_ : float
    virtual_weight : float
    pull : ndarray of shape (p,)
        The penalty's gradient by the number of rows.
    """

    base: BaseFit
    best: BaseFit | None
    lambda_: float
    virtual_weight: float
    pull: np.ndarray


def _without_rows(Z, codes, weight, n_classes, question):
    """Return sums of losses, log normalisers and terms of the excess risk."""
    nothing = np.zeros(2)
    if not len(codes):
        return nothing, nothing, nothing, nothing, np.array(0.0)
    own = lambda base: replace(
        base, Z=Z, weight=weight, proba=raw_to_proba(base.raw(Z))
    )
    base, unit = own(question.base), np.minimum(weight, 1.0)
    raw, squared_norm = one_step_leave_one_out(
        base, codes, unit, question.virtual_weight * unit
    )
    scores = label_scores(raw) - 0.5 * question.lambda_ * squared_norm
    log_proba, log_normalizer = log_normalize(scores)
    loss = -log_proba[np.arange(len(codes)), codes]
    figures = np.array([weight @ loss, weight @ log_normalizer])
    if n_classes > 2:
        return figures, nothing, nothing, nothing, np.array(0.0)
    terms = penalized_terms(base, codes, unit, log_normalizer, question.pull)
    penalized = moments(terms, weight)
    if question.best is None:
        return figures, penalized, nothing, nothing, np.array(np.inf)
    terms, squared, curved, largest = plain_terms(own(question.best), codes, unit, loss)
    # Numerator and denominator of the dimension ratio.
    ratio = np.array([weight @ (unit * squared), weight @ curved])
    return figures, penalized, moments(terms, weight), ratio, np.array(largest)


def leave_one_out_chunks(data, penalized, C, theta, *, virtual_weight, max_iter):
    """Return leave-one-out loss, log normaliser and the estimates of the excess."""
    lambda_ = 1.0 / ((data.total + 1.0) * C)
    base, _ = fit_chunks(
        data, penalized * (data.total * lambda_), theta, max_iter=max_iter
    )
    best = None
    if data.rows.n_classes == 2 and data.total > len(penalized):
        best = likeliest_fit(data, base.theta)
    pull = base.penalty * base.theta[0] / data.total
    question = Question(base, best, lambda_, virtual_weight, pull)
    figures, penal, plain, ratio, largest = data.sums(_without_rows, question)
    loss, log_normalizer = figures / data.total
    excess, minmax = Excess(), virtual_weight == 1
    if data.rows.n_classes == 2:
        if minmax:
            excess.penalized, excess.penalized_error = from_moments(penal, data.total)
        if best is not None and largest <= LARGEST_LEVERAGE:
            excess.risk, excess.risk_error = from_moments(plain, data.total)
            excess.dimension_ratio = float(ratio[0] / ratio[1])
    return float(loss), float(log_normalizer) if minmax else np.nan, excess


# ------------------------------------------------------------------ pools of candidates


@dataclass(frozen=True)
class Candidates:
    """Fits with several penalties, and virtual observations of several weights.

    Attributes
    ----------
    bases : list of BaseFit
        One for each penalty.
    virtual_weights : ndarray of shape (n_weights,)
    plain, movable : ndarray of bool of shape (n_penalties, n_weights)
        Which are candidates as they are, and with shifted log-odds.
    null_weights : tuple of float
        Of candidates that do not look at the features.
    shifts, curvatures : ndarray of shape (n_penalties, n_weights)
        Of the log-odds, and sums of p (1 - p) there.
    counts : ndarray of shape (K,)
    """

    bases: list
    virtual_weights: np.ndarray
    plain: np.ndarray
    movable: np.ndarray
    null_weights: tuple
    shifts: np.ndarray
    curvatures: np.ndarray
    counts: np.ndarray

    def log_proba(self, Z, codes, weight):
        """Return leave-one-out log probabilities, (n_penalties, n, n_weights, K)."""
        unit, found = np.minimum(weight, 1.0), []
        for base in self.bases:
            own = replace(base, Z=Z, weight=weight, proba=raw_to_proba(base.raw(Z)))
            found.append(
                one_step_leave_one_out_log_proba(own, codes, unit, self.virtual_weights)
            )
        return np.array(found)

    def losses(self, Z, codes, weight):
        """Return the losses of all candidates, (n_candidates, n)."""
        log_proba = self.log_proba(Z, codes, weight)
        n = len(codes)
        parts = [-log_proba[:, np.arange(n), :, codes].transpose(1, 2, 0)[self.plain]]
        if self.movable.any():
            log_odds = log_odds_of(log_proba)
            parts.append(
                np.array(
                    [
                        shifted_row_losses(
                            log_odds[at], codes, weight, self.shifts[at],
                            self.curvatures[at],
                        )
                        for at in zip(*np.nonzero(self.movable), strict=True)
                    ]
                ).reshape(self.movable.sum(), n)
            )  # fmt: skip
        parts += [
            null_row_losses(codes, weight, self.counts, added)[None]
            for added in self.null_weights
        ]
        return np.nan_to_num(np.concatenate(parts), nan=WORST, posinf=WORST)


def log_odds_of(log_proba):
    """Return log-odds (n_penalties, n_weights, n) of two classes."""
    return (log_proba[..., 1] - log_proba[..., 0]).transpose(0, 2, 1)


def _totals(Z, codes, weight, n_classes, candidates):
    """Return the sums of the plain losses, and how far log-odds go."""
    log_proba = candidates.log_proba(Z, codes, weight)
    losses = -log_proba[:, np.arange(len(codes)), :, codes]
    sums = np.einsum("n,ncm->cm", weight, losses)
    shape = (2, *candidates.plain.shape)
    if n_classes > 2 or not len(codes):
        return sums, np.full(shape, -np.inf)
    log_odds = log_odds_of(log_proba)
    return sums, np.array([log_odds.max(axis=2), -log_odds.min(axis=2)])


def _excesses(Z, codes, weight, n_classes, candidates, shifts):
    """Return by how much probabilities exceed the ones, and their curvature."""
    if not len(codes):
        return np.zeros(shifts.shape), np.zeros(shifts.shape), np.array(0.0)
    eta = log_odds_of(candidates.log_proba(Z, codes, weight)) + shifts[:, :, None]
    over = np.where(codes == 0, expit(eta), -expit(-eta))
    return over @ weight, (expit(eta) * expit(-eta)) @ weight, np.array(0.0)


def _sums_of_all(Z, codes, weight, n_classes, candidates):
    return candidates.losses(Z, codes, weight) @ weight, np.array(0.0)


def _sum_of_pool(Z, codes, weight, n_classes, candidates, total, learning_rate, how):
    losses = candidates.losses(Z, codes, weight)
    pooled = pool_row_losses(losses, weight, total, learning_rate, how)
    return np.array(pooled @ weight), np.array(0.0)


def find_shifts(data, candidates, ends):
    """Return the shifts of `intercept_shift`, and the curvatures there.

    By Newton steps of all candidates at once, within brackets that shrink.

    Parameters
    ----------
    data : ChunkedData
    candidates : Candidates
    ends : ndarray of shape (2, n_penalties, n_weights)
        Largest and minus the least log-odds.
    """
    rate = np.log(data.counts[1]) - np.log(data.counts[0])
    low, high = rate - ends[0] - 1e-6, rate + ends[1] + 1e-6
    shifts = np.clip(np.zeros(low.shape), low, high)
    for _ in range(_MOST_SHIFTS):
        excess, curvature, _ = data.sums(_excesses, candidates, shifts)
        low, high = (
            np.where(excess < 0.0, shifts, low),
            np.where(excess > 0.0, shifts, high),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            step = excess / curvature
        moved = shifts - step
        inside = np.isfinite(moved) & (moved > low) & (moved < high)
        moved = np.where(inside, moved, 0.5 * (low + high))
        moved = np.where(excess == 0.0, shifts, moved)
        done = np.abs(moved - shifts) <= _SHIFT_TOLERANCE * (1.0 + np.abs(shifts))
        shifts = moved
        if done.all():
            break
    return shifts, curvature


def judge_chunks(data, candidates, *, learning_rate, aggregation):
    """Return what the pool is made from.

    Returns
    -------
    candidates : Candidates
        With shifts.
    path : ndarray of shape (n_penalties, n_weights)
        Mean leave-one-out losses.
    pooled : ndarray of shape (n_candidates,)
        Weights of plain, shifted and null candidates.
    loss : float
        Leave-one-out loss of the pool.
    """
    path, ends = data.sums(_totals, candidates)
    if candidates.movable.any():
        shifts, curvatures = find_shifts(data, candidates, ends)
        candidates = replace(
            candidates, shifts=np.where(candidates.movable, shifts, 0.0),
            curvatures=curvatures,
        )  # fmt: skip
    total, _ = data.sums(_sums_of_all, candidates)
    pooled = pool_weights(total[:, None], np.ones(1), learning_rate, aggregation)
    loss, _ = data.sums(_sum_of_pool, candidates, total, learning_rate, aggregation)
    return candidates, path / data.total, pooled, float(loss) / data.total
