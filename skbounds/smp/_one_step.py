"""One-step virtual fits: what is left when the base objective is taken as quadratic.

Replacing the n-point objective by its second-order expansion at the base fit turns a
tilted refit (see ``_virtual``) into an equation for the raw prediction at its own row:
with the leverage ``B`` of the row,

    raw = raw_0 + B (target - slope * softmax(raw)) .
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp, softmax

from skbounds._blocks import memory_limit, row_blocks
from skbounds._core import smp as _core
from skbounds.smp._base_fit import BaseFit, contrasts, step_length
from skbounds.smp._tilts import label_targets

# Accuracy of the raw predictions that solve the one-step equation of K classes.
_ROOT_TOL = 1e-11
_MAX_CHORD_STEPS = 20
_SLOW_CHORD = 0.3
_MAX_NEWTON_STEPS = 100


def whitened_rows(base: BaseFit, features) -> np.ndarray:
    """Return ``L^{-1} (e_j kron z)`` for all rows, shape (n_rows, k, k * p)."""
    q = len(base.inv_factor)
    p = len(base.penalty)
    k = q // p
    if k == 1:
        return np.asarray(features @ base.inv_factor.T)[:, None, :]
    blocks = base.inv_factor.reshape(q * k, p)
    whitened = (features @ blocks.T).reshape(-1, q, k)
    return np.ascontiguousarray(whitened.transpose(0, 2, 1))


def gram(T: np.ndarray) -> np.ndarray:
    """Return ``T T'`` per row, (n, k, k), for T of shape (n, k, q)."""
    if T.shape[1] == 1:
        return np.einsum("nq,nq->n", T[:, 0], T[:, 0])[:, None, None]
    return T @ T.transpose(0, 2, 1)


def one_step_eta(
    eta: np.ndarray, leverage: np.ndarray, slope: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Solve the one-step equation of two classes.

    Parameters
    ----------
    eta, leverage : ndarray of shape (n_rows,)
    slope, target : ndarray of shape (n_rows, n_tilts)

    Returns
    -------
    eta : ndarray of shape (n_rows, n_tilts)
    """
    root = np.empty(slope.shape)
    arrays = map(np.ascontiguousarray, (eta, leverage, slope, target))
    _core.one_step_roots(*arrays, root)
    return root


def one_step_multiplier(
    raw: np.ndarray, leverage: np.ndarray, slope: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Solve the one-step equation of K classes in reduced coordinates.

    With ``raw = raw_0 + Q B u`` the unknown ``u`` minimises the strictly convex
    ``u'Bu/2 + slope * logsumexp(raw) - <target, raw>``. All tilts of a row with the
    same slope share the matrix of a chord iteration; where that does not contract,
    damped Newton steps follow. Non-positive slopes take one Newton step.

    Parameters
    ----------
    raw : ndarray of shape (n_rows, K)
    leverage : ndarray of shape (n_rows, K - 1, K - 1)
    slope : ndarray of shape (n_rows, n_tilts)
    target : ndarray of shape (n_rows, n_tilts, K)

    Returns
    -------
    u : ndarray of shape (n_rows, n_tilts, K - 1)
    """
    n_rows, _, n_classes = target.shape
    Q = contrasts(n_classes)
    proba = softmax(raw, axis=1)
    curvature = reduced_curvature(proba, Q) @ leverage
    slopes, group = np.unique(slope, axis=1, return_inverse=True)
    identity = np.eye(Q.shape[1])
    chord = np.linalg.inv(identity + slopes[:, :, None, None] * curvature[:, None])
    spread = leverage @ Q.T
    reduced_target = target @ Q

    def chord_step(rows, gradient):
        step = np.empty_like(gradient)
        for index in range(slopes.shape[1]):
            mine = group == index
            transposed = chord[rows, index].transpose(0, 2, 1)
            step[:, mine] = gradient[:, mine] @ transposed
        return step

    residual = reduced_target - slope[:, :, None] * (proba @ Q)[:, None, :]
    u = chord_step(slice(None), residual)
    settled = slope <= 0.0
    slow = np.zeros(slope.shape, dtype=bool)
    previous = np.full(slope.shape, np.inf)
    rows = np.arange(n_rows)
    for _ in range(_MAX_CHORD_STEPS):
        rows = rows[~np.all((settled | slow)[rows], axis=1)]
        if len(rows) == 0:
            break
        own = raw[rows, None, :] + u[rows] @ spread[rows]
        gradient = u[rows] - reduced_target[rows]
        gradient += slope[rows][:, :, None] * (softmax(own, axis=2) @ Q)
        step = chord_step(rows, gradient)
        size = np.abs(step @ spread[rows]).max(axis=2)
        step[slope[rows] <= 0.0] = 0.0
        u[rows] -= step
        settled[rows] |= size <= _ROOT_TOL
        slow[rows] |= size > _SLOW_CHORD * previous[rows]
        previous[rows] = size
    row, tilt = np.nonzero(~settled)
    if len(row):
        u[row, tilt] = _newton_multiplier(
            raw[row],
            leverage[row],
            slope[row, tilt],
            target[row, tilt],
            u[row, tilt],
            Q,
        )
    return u


def _newton_multiplier(raw, leverage, slope, target, start, Q):
    """Finish problems (b,) by damped Newton steps, from ``start`` where it is good."""
    identity = np.eye(Q.shape[1])
    active = np.arange(len(raw))

    def objective(index, u, own):
        quadratic = 0.5 * np.einsum("bk,bkl,bl->b", u, leverage[index], u)
        tilt = np.sum(target[index] * own, axis=1)
        return quadratic + slope[index] * logsumexp(own, axis=1) - tilt

    own = raw + (leverage @ start[:, :, None])[:, :, 0] @ Q.T
    better = objective(active, start, own) < objective(active, 0.0 * start, raw)
    u = np.where(better[:, None], start, 0.0)
    for _ in range(_MAX_NEWTON_STEPS):
        B, a = leverage[active], slope[active]
        own = raw[active] + (B @ u[active][:, :, None])[:, :, 0] @ Q.T
        proba = softmax(own, axis=1)
        gradient = u[active] + (a[:, None] * proba - target[active]) @ Q
        system = identity + a[:, None, None] * (reduced_curvature(proba, Q) @ B)
        step = -np.linalg.solve(system, gradient[:, :, None])
        change = (Q @ (B @ step))[:, :, 0]
        step = step[:, :, 0]
        descent = np.einsum("bk,bkl,bl->b", gradient, B, step)
        safe = step_length(change[:, :, None], axis=(1, 2))
        length = np.ones(len(active))
        searching = np.flatnonzero(safe < 1.0)
        value = objective(active[searching], u[active[searching]], own[searching])
        while len(searching):
            t = length[searching, None]
            trial = objective(
                active[searching],
                u[active[searching]] + t * step[searching],
                own[searching] + t * change[searching],
            )
            poor = ~(trial <= value + 1e-4 * t[:, 0] * descent[searching])
            poor &= length[searching] > safe[searching]
            searching, value = searching[poor], value[poor]
            length[searching] = np.maximum(length[searching] / 4.0, safe[searching])
        u[active] += length[:, None] * step
        scale = 1.0 + np.abs(own).max(axis=1)
        active = active[np.abs(change).max(axis=1) > _ROOT_TOL * scale]
        if len(active) == 0:
            break
    return u


def one_step_fits(
    base: BaseFit,
    features,
    slope: np.ndarray,
    target: np.ndarray,
    *,
    need_norm: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what ``solve_virtual`` does, with the base Hessian for the training rows.

    Costs O(q^2) per row, q the number of coefficients, and no training data.

    Returns
    -------
    raw : ndarray of shape (n_rows, n_tilts, 1 or K)
    squared_norm : ndarray of shape (n_rows, n_tilts) or None
    """
    raw = np.empty(target.shape)
    squared_norm = np.empty(slope.shape) if need_norm else None
    for rows in row_blocks(len(target), _rows_per_block(base)):
        T = whitened_rows(base, features[rows])
        own = base.raw(features[rows]).T
        raw[rows], u = _solve_quadratic(
            own, gram(T), slope[rows], target[rows], base.n_classes
        )
        if need_norm:
            squared_norm[rows] = _squared_norm(base, T, u)
    return raw, squared_norm


def one_step_leave_one_out(
    base: BaseFit,
    codes: np.ndarray,
    removed: np.ndarray,
    added: np.ndarray,
    *,
    need_norm: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Take each training row out by one Newton step, then add virtual labels.

    Parameters
    ----------
    base : BaseFit
    codes : ndarray of shape (n_samples,), int
        Labels.
    removed : ndarray of shape (n_samples,)
        Amount of the row's observation that is left out, at most its weight.
    added : ndarray of shape (n_samples, n_weights)
        Weights of the virtual observations.

    Returns
    -------
    raw : ndarray of shape (n_samples, n_weights, L, 1 or K)
    squared_norm : ndarray of shape (n_samples, n_weights, L) or None
    """
    targets = label_targets(base.n_classes)
    Q = contrasts(base.n_classes)
    n_samples, n_labels, n_weights = len(codes), len(targets), added.shape[1]
    raw = np.empty((n_samples, n_weights * n_labels, targets.shape[1]))
    squared_norm = np.empty(raw.shape[:2]) if need_norm else None
    identity = np.eye(Q.shape[1])
    for rows in row_blocks(n_samples, _rows_per_block(base)):
        T = whitened_rows(base, base.Z[rows])
        B = gram(T)
        proba = base.proba[:, rows].T
        amount = removed[rows][:, None, None]
        S = reduced_curvature(proba, Q)
        # (I - u B S)^{-1}; weights keep u S B below the identity.
        downdate = np.linalg.inv(identity - amount * (B @ S))
        residual = (amount[:, :, 0] * (proba - targets[codes[rows]])) @ Q
        B_less = downdate @ B
        raw_less = base.raw(base.Z[rows]).T
        raw_less = raw_less + (B_less @ residual[:, :, None])[:, :, 0] @ Q.T
        w = np.repeat(added[rows], n_labels, axis=1)
        target = w[:, :, None] * np.tile(targets, (n_weights, 1))
        raw[rows], u = _solve_quadratic(raw_less, B_less, w, target, base.n_classes)
        if need_norm:
            total = (u + residual[:, None, :]) @ downdate
            squared_norm[rows] = _squared_norm(base, T, total)
    shape = (n_samples, n_weights, n_labels)
    return (
        raw.reshape(*shape, -1),
        squared_norm.reshape(shape) if need_norm else None,
    )


def _rows_per_block(base: BaseFit) -> int:
    """Return a block that fits the cache but is not too small for whole-array work."""
    q = len(base.inv_factor)
    width = q * (q // len(base.penalty))
    return min(max(2**17 // width, 256), memory_limit() // (4 * width))


def reduced_curvature(proba: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return ``Q' (diag p - p p') Q`` per row of ``proba`` (p (1 - p) if binary)."""
    if len(Q) == 1:
        return (proba * (1.0 - proba))[:, :, None]
    mean = proba @ Q
    return (Q.T * proba[:, None, :]) @ Q - mean[:, :, None] * mean[:, None, :]


def _solve_quadratic(raw, leverage, slope, target, n_classes):
    """Solve the one-step equation for tilts (m, t); return raw and the multiplier u."""
    if n_classes == 2:
        eta = one_step_eta(raw[:, 0], leverage[:, 0, 0], slope, target[:, :, 0])
        return eta[:, :, None], (target[:, :, 0] - slope * expit(eta))[:, :, None]
    u = one_step_multiplier(raw, leverage, slope, target)
    return raw[:, None, :] + u @ (leverage @ contrasts(n_classes).T), u


def _squared_norm(base, T, u):
    """Return the penalised squared norm of ``theta_0 + L^{-T} T' u`` per tilt."""
    penalized = np.tile(base.penalty > 0, T.shape[1])
    theta = base.theta.ravel()[penalized]
    V = T.reshape(-1, T.shape[2]) @ base.inv_factor[:, penalized]
    V = V.reshape(*T.shape[:2], -1)
    cross = V @ theta
    if T.shape[1] == 1:
        u = u[:, :, 0]
        return theta @ theta + u * (2.0 * cross + u * gram(V)[:, 0])
    linear = (u @ cross[:, :, None])[:, :, 0]
    return theta @ theta + 2.0 * linear + np.einsum("mtk,mkl,mtl->mt", u, gram(V), u)
