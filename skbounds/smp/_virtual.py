"""Fits to the training data plus one tilted row, many at a time.

All the refits that the sample minmax predictor and its leave-one-out formulas need
have one form. With F the objective of the base fit and ``raw(theta) = theta . z`` the
prediction at one row z,

    theta = argmin F(theta) + slope * loss(raw) - <target - slope * onehot, raw> ,

where ``slope`` and ``target`` say which observations at z come and go: adding one with
label y and weight w is ``slope = w, target = w e_y``; taking out the training row's own
observation subtracts its weight and label from both. The gradient of the tilt is
``slope * softmax(raw) - target``. A changed label leaves ``slope = 0``: a linear tilt.

The chord iteration works in whitened coordinates ``delta = L'(theta - theta_0)``, L
the Cholesky factor of the base Hessian: it keeps that Hessian for the n training rows,
takes the tilt's curvature exactly (Sherman-Morrison-Woodbury), and needs per iteration
two matrix products over all problems of a block and one compiled element-wise pass.
Binary problems start from the solution's Taylor expansion in the tilt, one expansion
for all tilts of a row. Problems that do not contract (high leverage, tiny penalties,
rows far away) are finished by damped Newton steps with their own curvature, whose
directions come from conjugate gradients in the same coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from scipy.special import expit, logsumexp, softmax
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from skbounds._blocks import memory_limit, row_blocks
from skbounds._core import smp as _core
from skbounds.smp._base_fit import (
    BaseFit,
    contrasts,
    is_last_step,
    step_length,
)
from skbounds.smp._one_step import (
    gram,
    one_step_eta,
    one_step_multiplier,
    one_step_raw,
    reduced_curvature,
    whitened_rows,
)
from skbounds.smp._tilts import leave_one_out_tilts

# Doubles per block of the chord iteration: small enough for the processor's cache.
_BLOCK_SIZE = 2**17
# A problem that shrinks its step by less than this factor goes to Newton.
_SLOW = 0.7
_MAX_CHORD_STEPS = 30
# Keeps rounding errors from becoming long steps along directions without curvature.
_JITTER = 1e-13
# Relative accuracy of Newton directions.
_CG_TOL = 1e-2
_MAX_CG_STEPS = 200


@dataclass
class VirtualFits:
    """Result of :func:`solve_virtual`.

    Attributes
    ----------
    raw : ndarray of shape (n_rows, n_tilts, 1 or K)
        Raw predictions of each tilted fit at its own row.
    squared_norm : ndarray of shape (n_rows, n_tilts)
        Squared norm of the penalised coefficients.
    n_failed : int
        Problems not solved to the tolerance.
    n_newton : int
        Problems finished by Newton steps of their own.
    """

    raw: np.ndarray
    squared_norm: np.ndarray
    n_failed: int
    n_newton: int


def solve_virtual(
    base: BaseFit,
    features,
    slope: np.ndarray,
    target: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
) -> VirtualFits:
    """Solve ``n_tilts`` tilted problems at each row.

    Parameters
    ----------
    base : BaseFit
    features : {ndarray, sparse array} of shape (n_rows, p)
        Rows in model coordinates.
    slope : ndarray of shape (n_rows, n_tilts)
    target : ndarray of shape (n_rows, n_tilts, 1 or K)
    tol : float
        Accuracy of the raw predictions at the rows.
    max_iter : int
        Largest number of Newton steps for problems that need their own Hessian.
    n_jobs : int or None
        Threads over blocks of rows.
    """
    n_rows, n_tilts, n_raw = target.shape
    n_samples = base.Z.shape[0]
    # Three arrays of a block's size are alive at a time; the lower limit keeps the
    # matrix products efficient for very many training rows.
    entries = n_tilts * n_raw * n_samples
    size = min(max(_BLOCK_SIZE // entries, 8), memory_limit() // (3 * entries))
    blocks = list(row_blocks(n_rows, size))

    def solve(rows):
        block = features[rows]
        if sparse.issparse(block):
            block = block.toarray()
        return _solve_block(base, block, slope[rows], target[rows], tol, max_iter)

    if len(blocks) == 1 or effective_n_jobs(n_jobs) == 1:
        parts = [solve(rows) for rows in blocks]
    else:
        with threadpool_limits(1, user_api="blas"):
            parts = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(solve)(rows) for rows in blocks
            )
    if not parts:
        return VirtualFits(np.empty(target.shape), np.empty(slope.shape), 0, 0)
    raw, squared_norm, n_failed, n_newton = zip(*parts, strict=True)
    return VirtualFits(
        np.concatenate(raw), np.concatenate(squared_norm), sum(n_failed), sum(n_newton)
    )


def exact_leave_one_out(base, codes, removed, added, **options):
    """Solve the refits in which each training row gets every possible label instead.

    Parameters
    ----------
    base : BaseFit
    codes : ndarray of shape (n_samples,), int
        Labels.
    removed, added : ndarray of shape (n_samples,)
        Amount of the row's own observation that is left out, and weight of the virtual
        one that comes in. Where the two agree, the refit with the row's own label is
        the base fit, and only the other labels are solved.
    **options : dict
        As for :func:`solve_virtual`.

    Returns
    -------
    fits : VirtualFits
        With one tilt per label.
    """
    slope, target = leave_one_out_tilts(codes, removed, added, base.n_classes)
    if not np.array_equal(removed, added):
        return solve_virtual(base, base.Z, slope, target, **options)
    n_samples, n_labels = slope.shape
    rows = np.arange(n_samples)[:, None]
    others = (codes[:, None] + np.arange(1, n_labels)) % n_labels
    fits = solve_virtual(
        base, base.Z, slope[rows, others], target[rows, others], **options
    )
    raw = np.empty(target.shape)
    squared_norm = np.empty(slope.shape)
    raw[rows, others], squared_norm[rows, others] = fits.raw, fits.squared_norm
    own = codes[:, None]
    raw[rows, own] = base.raw(base.Z).T[:, None, :]
    squared_norm[rows, own] = np.sum(base.theta**2 @ (base.penalty > 0))
    return VirtualFits(raw, squared_norm, fits.n_failed, fits.n_newton)


def _forward(base, V):
    """Return changes of raw predictions at the training rows, (b, 1 or K, n)."""
    Q = contrasts(base.n_classes)
    b = len(V)
    full = V if len(Q) == 1 else (Q @ V.reshape(b, Q.shape[1], -1)).reshape(b, -1)
    full = full.reshape(b * len(Q), -1)
    change = (base.Z @ full.T).T if sparse.issparse(base.Z) else full @ base.Z.T
    return np.ascontiguousarray(change).reshape(b, len(Q), -1)


def _adjoint(base, D):
    """Pull changes of gradients (b, 1 or K, n) back to coordinates (b, k * p)."""
    Q = contrasts(base.n_classes)
    b = len(D)
    pulled = D.reshape(b * len(Q), -1)
    pulled = (base.Z.T @ pulled.T).T if sparse.issparse(base.Z) else pulled @ base.Z
    if len(Q) == 1:
        return pulled
    return (Q.T @ pulled.reshape(b, len(Q), -1)).reshape(b, -1)


def _tilt_gradient(raw, slope, target):
    proba = expit(raw) if raw.shape[1] == 1 else softmax(raw, axis=1)
    return proba, slope[:, None] * proba - target


def _chord_step(T, leverage, gradient, proba, slope, Q):
    """Solve ``(I + slope T S T') step = gradient`` for each problem."""
    inner = (T @ gradient[:, :, None])[:, :, 0]
    if T.shape[1] == 1:
        curvature = slope * (proba * (1.0 - proba))[:, 0]
        inner[:, 0] *= curvature / (1.0 + curvature * leverage[:, 0, 0])
        return gradient - inner[:, :1] * T[:, 0, :]
    S = slope[:, None, None] * reduced_curvature(proba, Q)
    system = np.eye(S.shape[1]) + S @ leverage
    inner = np.linalg.solve(system, S @ inner[:, :, None])
    return gradient - (inner.transpose(0, 2, 1) @ T)[:, 0, :]


def _accelerate(delta, step, last):
    """Take the chord step, with the secant of the last two (Anderson's method).

    Returns the new iterates and what the next call needs.
    """
    plain = delta - step
    if last is None:
        return plain, (plain, step)
    difference = step - last[1]
    length = np.einsum("bq,bq->b", difference, difference)
    mix = np.einsum("bq,bq->b", step, difference) / np.maximum(length, 1e-300)
    # Beyond this the secant extrapolates from noise or from a diverging pair.
    mix = np.clip(mix, -1.0, 1.0)[:, None]
    return plain - mix * (plain - last[0]), (plain, step)


def _solve_block(base, features, slope, target, tol, max_iter):
    n_rows, n_tilts, n_raw = target.shape
    Q = contrasts(base.n_classes)
    T_rows = whitened_rows(base, features)
    leverage_rows = gram(T_rows)
    raw_rows = base.raw(features).T
    row = np.repeat(np.arange(n_rows), n_tilts)
    n_problems = len(row)
    penalty = np.tile(base.penalty, Q.shape[1])

    if n_raw == 1:
        delta = _expanded_start(
            base, T_rows[:, 0], leverage_rows[:, 0, 0], raw_rows[:, 0], slope, target
        )
        curvature = base.weight * base.proba[0] * (1.0 - base.proba[0])
    else:
        first = one_step_raw(raw_rows, leverage_rows, slope, target)
        u = one_step_multiplier(first, slope, target)
        delta = (u @ T_rows).reshape(n_problems, -1)
    slope, target = slope.ravel(), target.reshape(-1, n_raw)

    start = delta
    raw = np.empty((n_problems, n_raw))
    squared_norm = np.empty(n_problems)
    failed = np.zeros(n_problems, dtype=bool)
    active = np.arange(n_problems)
    previous = np.full(n_problems, np.inf)
    last = None
    scale = 1.0 + np.sqrt(leverage_rows.trace(axis1=1, axis2=2))[row]
    for _ in range(_MAX_CHORD_STEPS):
        T = T_rows[row[active]]
        V = delta @ base.inv_factor
        change = _forward(base, V)
        largest = np.empty(len(active))
        if n_raw == 1:
            _core.binary_increments(change[:, 0, :], base.proba[0], curvature, largest)
        else:
            _core.softmax_increments(change, base.proba, base.weight, largest)
        usable = largest < np.inf
        own = raw_rows[row[active]] + (T @ delta[:, :, None])[:, :, 0] @ Q.T
        proba, tilt = _tilt_gradient(own, slope[active], target[active])
        gradient = (_adjoint(base, change) + penalty * V) @ base.inv_factor.T
        gradient += ((tilt @ Q)[:, None, :] @ T)[:, 0, :]
        step = _chord_step(
            T, leverage_rows[row[active]], gradient, proba, slope[active], Q
        )
        size = np.sqrt(np.einsum("bq,bq->b", step, step)) * scale[active]
        delta, last = _accelerate(delta, step, last)
        ratio = size / previous
        # What is left after this step is about rate / (1 - rate) times the step. The
        # first step has no ratio yet; as the log losses are quasi self-concordant, the
        # frozen Hessian is right up to the factor exp(r), r the largest change of a
        # raw prediction (or of a difference of two).
        # The same at the row itself, whose curvature the step takes where it begins.
        factor = 1.0 if n_raw == 1 else 2.0
        own_change = np.abs((T @ step[:, :, None])[:, :, 0]).max(axis=1)
        bound = np.expm1(np.minimum(factor * np.maximum(largest, own_change), 1.0))
        rate = np.where(np.isfinite(previous), ratio, bound)
        remaining = rate / np.maximum(1.0 - rate, 0.1)
        done = usable & (size * np.minimum(remaining, 1.0) <= tol)
        slow = ~usable | ((ratio > _SLOW) & ~done) | ~np.isfinite(size)
        slow[done] = False
        if done.any():
            index = active[done]
            raw[index] = (
                raw_rows[row[index]] + (T[done] @ delta[done, :, None])[:, :, 0] @ Q.T
            )
            theta = base.theta.ravel() + delta[done] @ base.inv_factor
            squared_norm[index] = theta**2 @ (penalty > 0)
        failed[active[slow]] = True
        keep = ~(done | slow)
        active, delta, previous = active[keep], delta[keep], size[keep]
        last = last[0][keep], last[1][keep]
        if len(active) == 0:
            break
    failed[active] = True
    n_newton = int(failed.sum())
    n_failed = 0
    if n_newton:
        index = np.flatnonzero(failed)
        raw[index], squared_norm[index], n_failed = _newton(
            base,
            features[row[index]],
            slope[index],
            target[index],
            start[index] @ base.inv_factor,
            max_iter,
        )
    return (
        raw.reshape(n_rows, n_tilts, n_raw),
        squared_norm.reshape(n_rows, n_tilts),
        n_failed,
        n_newton,
    )


def _expanded_start(base, t, leverage, eta, slope, target):
    """Return a start from the Taylor expansion of the solution in the tilt.

    The solutions for all tilts of a row lie on one curve: with ``c`` the tilt's
    residual, ``delta(c) = c t + c^2 v_2 + c^3 v_3 + O(c^4)``. Its coefficients cost
    two passes for the row, however many tilts it has.
    """
    p0 = base.proba[0]
    curvature = base.weight * p0 * (1.0 - p0)
    # Derivatives of the sigmoid over 2! and 3!.
    second = curvature * (0.5 - p0)
    third = curvature * (1.0 / 6.0 - p0 * (1.0 - p0))
    first = one_step_eta(eta, leverage, slope, target[:, :, 0])
    row = np.repeat(np.arange(len(t)), slope.shape[1])
    slope, target, first = slope.ravel(), target.ravel(), first.ravel()
    c = target - slope * expit(first)
    delta = c[:, None] * t[row]

    change = _forward(base, t @ base.inv_factor)[:, 0, :]
    # Beyond this the series is of no use, and the one-step solution is kept.
    useful = np.abs(change).max(axis=1) <= 0.5
    if not useful.any():
        return delta
    t, change = t[useful], change[useful]
    terms = np.empty_like(change)
    _core.second_order_terms(change, second, terms)
    v2 = -_adjoint(base, terms) @ base.inv_factor.T
    bend = _forward(base, v2 @ base.inv_factor)[:, 0, :]
    _core.third_order_terms(change, bend, second, third)
    v3 = -_adjoint(base, bend) @ base.inv_factor.T

    position = np.cumsum(useful) - 1
    mine = useful[row]
    index = position[row[mine]]
    h = leverage[row[mine]]
    b2 = np.einsum("bq,bq->b", t, v2)[index]
    b3 = np.einsum("bq,bq->b", t, v3)[index]
    e, a, b, c = eta[row[mine]], slope[mine], target[mine], c[mine]
    for _ in range(6):
        proba = expit(e + c * (h + c * (b2 + c * b3)))
        value = c - b + a * proba
        rate = 1.0 + a * proba * (1.0 - proba) * (h + c * (2.0 * b2 + 3.0 * c * b3))
        c = c - value / np.maximum(rate, 0.5)
    c = c[:, None]
    delta[mine] = c * (t[index] + c * (v2[index] + c * v3[index]))
    return delta


def _newton(base, features, slope, target, start, max_iter):
    """Finish problems by damped Newton steps, each with its own curvature.

    ``start`` are changes of the coefficients to begin with where they are better than
    none. Returns raw predictions, squared norms and the number of problems that did not
    converge.
    """
    n_problems, n_raw = target.shape
    q, n_samples = len(base.inv_factor), base.Z.shape[0]
    # Alive per problem: a few arrays over the training rows and over the coefficients.
    size = min(256, memory_limit() // (8 * (n_raw * n_samples + q)))
    raw = np.empty((n_problems, n_raw))
    squared_norm = np.empty(n_problems)
    n_failed = 0
    for rows in row_blocks(n_problems, size):
        raw[rows], squared_norm[rows], failed = _newton_batch(
            base,
            features[rows],
            slope[rows],
            target[rows],
            start[rows],
            max_iter,
        )
        n_failed += failed
    return raw, squared_norm, n_failed


def _newton_direction(base, proba, gradient, S, z, damping):
    """Return Newton directions and, to fall back on, preconditioned gradients.

    Conjugate gradients in the whitened coordinates of the base fit, where its Hessian
    is the identity: they take about as many steps as training rows changed their
    curvature, and no problem's own Hessian is ever formed.
    """
    penalty = np.tile(base.penalty, base.theta.shape[0])
    binary = proba.shape[1] == 1
    weight = proba * (1.0 - proba) * base.weight if binary else proba

    def multiply(v, weight, T, S, damping):
        V = v @ base.inv_factor
        change = _forward(base, V)
        if binary:
            change *= weight
        else:
            mean = np.sum(weight * change, axis=1, keepdims=True)
            change = weight * (change - mean) * base.weight
        product = (_adjoint(base, change) + penalty * V) @ base.inv_factor.T
        inner = S @ (T @ v[:, :, None])
        return product + (inner.transpose(0, 2, 1) @ T)[:, 0] + damping[:, None] * v

    residual = -gradient @ base.inv_factor.T
    plain = residual @ base.inv_factor
    result = np.zeros_like(residual)
    squared = np.einsum("bq,bq->b", residual, residual)
    target = _CG_TOL**2 * squared
    active = np.arange(len(residual))
    solution, search = result.copy(), residual.copy()
    problem = (weight, whitened_rows(base, z), S, damping)
    for _ in range(_MAX_CG_STEPS):
        product = multiply(search, *problem)
        curvature = np.einsum("bq,bq->b", search, product)
        going = (squared > target) & (curvature > 0.0)
        # Finished problems take steps of length zero.
        length = np.where(going, squared / np.where(going, curvature, 1.0), 0.0)
        solution += length[:, None] * search
        residual -= length[:, None] * product
        previous, squared = squared, np.einsum("bq,bq->b", residual, residual)
        search = residual + (squared / np.maximum(previous, 1e-300))[:, None] * search
        going &= squared > target
        if np.count_nonzero(going) <= 0.7 * len(active):
            result[active] = solution
            if not going.any():
                break
            active, solution, search = active[going], solution[going], search[going]
            residual, squared = residual[going], squared[going]
            target = target[going]
            problem = tuple(part[going] for part in problem)
    result[active] = solution
    return result @ base.inv_factor, plain


def _newton_batch(base, features, slope, target, start, max_iter):
    """Solve one batch; works on the change ``V`` of the coefficients.

    The base gradient vanishes at the base fit, so no labels are needed.
    """
    Q = contrasts(base.n_classes)
    k, p = base.theta.shape
    q = k * p
    n_problems, n_raw = target.shape
    penalty = np.tile(base.penalty, k)
    raw_train = base.raw(base.Z)
    raw_own = base.raw(features).T
    base_gradient = (base.proba * base.weight).ravel()

    def log_partition(raw):
        if n_raw == 1:
            # logaddexp(0, raw), at the speed of vectorised exponentials.
            x = raw[:, 0]
            return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
        return logsumexp(raw, axis=1)

    def objective(index, V, change, own):
        training = log_partition(raw_train + change) @ base.weight
        training -= change.reshape(len(change), len(base_gradient)) @ base_gradient
        tilt = slope[index] * log_partition(own) - np.sum(target[index] * own, axis=1)
        return training + 0.5 * V**2 @ penalty + tilt

    def move(V, z):
        """Return the changes of raw predictions at the training rows and own row."""
        return _forward(base, V), (V.reshape(-1, k, p) @ z[:, :, None])[:, :, 0] @ Q.T

    active = np.arange(n_problems)
    damping = np.full(n_problems, _JITTER)
    V = start.copy()
    change, own = move(V, features)
    own += raw_own
    at_base = objective(active, 0.0 * V, 0.0 * change, raw_own)
    worse = ~(objective(active, V, change, own) <= at_base)
    V[worse], change[worse], own[worse] = 0.0, 0.0, raw_own[worse]
    previous = np.full(n_problems, np.inf)
    for _ in range(max_iter):
        raw = raw_train + change[active]
        proba = expit(raw) if n_raw == 1 else softmax(raw, axis=1)
        gradient = _adjoint(base, (proba - base.proba) * base.weight)
        gradient += penalty * V[active]
        own_proba, tilt = _tilt_gradient(own[active], slope[active], target[active])
        z = features[active]
        gradient += ((tilt @ Q)[:, :, None] * z[:, None, :]).reshape(-1, q)
        S = slope[active][:, None, None] * reduced_curvature(own_proba, Q)
        direction, plain = _newton_direction(
            base, proba, gradient, S, z, damping[active]
        )
        descent = np.einsum("bq,bq->b", direction, gradient)
        uphill = ~(descent < 0.0)
        direction[uphill] = plain[uphill]
        descent[uphill] = np.einsum("bq,bq->b", direction, gradient)[uphill]
        direction_train, direction_own = move(direction, z)
        both = np.concatenate([direction_train, direction_own[:, :, None]], axis=2)
        size = np.abs(both).max(axis=(1, 2))
        safe = step_length(both, axis=(1, 2))

        length = np.ones(len(active))
        searching = np.flatnonzero(safe < 1.0)
        index = active[searching]
        value = objective(index, V[index], change[index], own[index])
        while len(searching):
            index, t = active[searching], length[searching]
            trial = objective(
                index,
                V[index] + t[:, None] * direction[searching],
                change[index] + t[:, None, None] * direction_train[searching],
                own[index] + t[:, None] * direction_own[searching],
            )
            poor = ~(trial <= value + 1e-4 * t * descent[searching])
            poor &= t > safe[searching]
            searching, value = searching[poor], value[poor]
            length[searching] = np.maximum(length[searching] / 4.0, safe[searching])
        V[active] += length[:, None] * direction
        change[active] += length[:, None, None] * direction_train
        own[active] += length[:, None] * direction_own
        # A vanishing Newton decrement with steps that stay large is a minimum at
        # infinity: the tilt took the last row of a class, and only the unpenalised
        # intercept still moves. No observation can gain more than the decrement.
        largest = np.abs(raw).max(axis=(1, 2))
        largest = np.maximum(largest, np.abs(own[active]).max(axis=1))
        done = is_last_step(size, previous, largest)
        done |= -descent <= 1e-14
        done &= damping[active] == _JITTER
        # Levenberg: a flat direction that makes the line search crawl is damped, so
        # that it does not hold up the others.
        short, full = active[length < 0.1], active[length == 1.0]
        damping[short] = np.maximum(10.0 * damping[short], 1e-10)
        damping[full] = np.maximum(1e-4 * damping[full], _JITTER)
        active, previous = active[~done], size[~done]
        if len(active) == 0:
            break
    theta = base.theta.ravel() + V
    return own, theta**2 @ (penalty > 0), len(active)
