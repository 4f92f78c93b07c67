"""One-step virtual fits: what is left when the base objective is taken as quadratic.

Replacing the n-point objective by its second-order expansion at the base fit turns a
tilted refit (see ``_virtual``) into an equation for the raw prediction at its own row:
with the leverage ``B`` of the row,

    raw = raw_0 + B (target - slope * softmax(raw)) .
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, log_expit, log_softmax, softmax

from skbounds._blocks import memory_limit, row_blocks
from skbounds._core import smp as _core
from skbounds.smp._base_fit import BaseFit, contrasts
from skbounds.smp._tilts import (
    label_scores,
    label_targets,
    log_normalize,
    virtual_tilts,
)

# Above this the inverse Hessian takes the place of its factor's inverse, unless too
# much precision were lost.
_MANY, _WELL_CONDITIONED = 15, 1e4


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


def leverages(base: BaseFit, features) -> np.ndarray:
    """Return the Gram matrices of ``whitened_rows``, without these, (n_rows, k, k)."""
    q = len(base.inv_factor)
    p = len(base.penalty)
    k = q // p
    diagonal = base.inv_factor.diagonal()
    if k > _MANY and diagonal.max() < _WELL_CONDITIONED * diagonal.min():
        # An entry at a time would go through memory k times.
        inverse, _ = linalg.lapack.dlauum(base.inv_factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        rows = features.toarray() if sparse.issparse(features) else features
        result = np.empty((len(rows), k, k))
        for a in range(k):
            part = (rows @ inverse[a * p : (a + 1) * p]).reshape(-1, k, p)
            result[:, a] = (part @ rows[:, :, None])[:, :, 0]
        return result
    # The factor is triangular: a block's rows before its own are zero.
    parts = [
        np.asarray(features @ base.inv_factor[b * p :, b * p : (b + 1) * p].T)
        for b in range(k)
    ]
    result = np.empty((features.shape[0], k, k))
    for a in range(k):
        for b in range(a, k):
            entry = np.einsum("nq,nq->n", parts[a][:, (b - a) * p :], parts[b])
            result[:, a, b] = result[:, b, a] = entry
    return result


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


def one_step_raw(
    raw: np.ndarray, leverage: np.ndarray, slope: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Solve the one-step equation of K classes.

    Parameters
    ----------
    raw : ndarray of shape (n_rows, K)
    leverage : ndarray of shape (n_rows, K - 1, K - 1)
    slope : ndarray of shape (n_rows, n_tilts)
        Equal within every K tilts (one for each label), or all over. Best in ascending
        order; negative ones take one Newton step.
    target : ndarray of shape (n_rows, n_tilts, K)

    Returns
    -------
    raw : ndarray of shape (n_rows, n_tilts, K)
    """
    # Those with one slope are solved together.
    same = np.all(slope == slope[:, :1])
    slope = slope[:, :1] if same else slope[:, :: target.shape[2]]
    solution = np.empty(target.shape)
    arrays = map(np.ascontiguousarray, (raw, leverage, slope, target))
    _core.softmax_roots(*arrays, contrasts(target.shape[2]), solution)
    return solution


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
        block = features[rows]
        if need_norm:
            T = whitened_rows(base, block)
        B = gram(T) if need_norm else leverages(base, block)
        raw[rows] = _solve_quadratic(
            base.raw(block).T, B, slope[rows], target[rows], base.n_classes
        )
        if squared_norm is not None:
            u = one_step_multiplier(raw[rows], slope[rows], target[rows])
            squared_norm[rows] = _squared_norm(base, T, u)
    return raw, squared_norm


def one_step_leave_one_out(
    base: BaseFit, codes: np.ndarray, removed: np.ndarray, added: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Take each training row out by one Newton step, then add virtual labels.

    Parameters
    ----------
    base : BaseFit
    codes : ndarray of shape (n_samples,), int
        Labels.
    removed : ndarray of shape (n_samples,)
        Amount of the row's observation that is left out, at most its weight.
    added : ndarray of shape (n_samples,)
        Weights of the virtual observations.

    Returns
    -------
    raw : ndarray of shape (n_samples, L, 1 or K)
    squared_norm : ndarray of shape (n_samples, L)
    """
    targets = label_targets(base.n_classes)
    Q = contrasts(base.n_classes)
    raw = np.empty((len(codes), *targets.shape))
    squared_norm = np.empty(raw.shape[:2])
    for rows in row_blocks(len(codes), _rows_per_block(base)):
        block, amount, own = base.Z[rows], removed[rows], targets[codes[rows]]
        T, proba = whitened_rows(base, block), base.proba[:, rows].T
        B = gram(T)
        system = np.eye(Q.shape[1]) - amount[:, None, None] * (
            reduced_curvature(proba, Q) @ B
        )
        less, raw_less = _without(base.raw(block).T, B, amount, codes[rows])
        slope = np.repeat(added[rows][:, None], len(targets), axis=1)
        target = slope[:, :, None] * targets
        raw[rows] = _solve_quadratic(raw_less, less, slope, target, base.n_classes)
        u = one_step_multiplier(raw[rows], slope, target)
        u = u + ((amount[:, None] * (proba - own)) @ Q)[:, None]
        # Through the Hessian without the row.
        total = np.linalg.solve(system[:, None], u[..., None])[..., 0]
        squared_norm[rows] = _squared_norm(base, T, total)
    return raw, squared_norm


def one_step_leave_one_out_log_proba(
    base: BaseFit, codes: np.ndarray, removed: np.ndarray, virtual_weights: np.ndarray
) -> np.ndarray:
    """Return log probabilities by the same, without penalty factors.

    Parameters
    ----------
    base, codes, removed
        As above.
    virtual_weights : ndarray of shape (n_weights,)

    Returns
    -------
    log_proba : ndarray of shape (n_samples, n_weights, L)
    """
    n_classes = base.n_classes
    result = np.empty((len(codes), len(virtual_weights), n_classes))
    positive = virtual_weights > 0
    for rows in row_blocks(len(codes), _rows_per_block(base)):
        block = base.Z[rows]
        less, raw = _without(
            base.raw(block).T, leverages(base, block), removed[rows], codes[rows]
        )
        plain = np.hstack([-raw, raw]) if n_classes == 2 else raw
        plain = log_expit(plain) if n_classes == 2 else log_softmax(plain, axis=1)
        result[rows, ~positive] = plain[:, None]
        if not positive.any():
            continue
        slope, target = virtual_tilts(len(raw), virtual_weights[positive], n_classes)
        raw = _solve_quadratic(raw, less, slope, target, n_classes)
        raw = raw.reshape(len(raw), -1, n_classes, target.shape[2])
        result[rows, positive] = log_normalize(label_scores(raw))[0]
    return result


def _without(raw, leverage, removed, codes):
    """Return leverages and raw predictions one Newton step without the rows."""
    if leverage.shape[1] > 1:
        raw = np.ascontiguousarray(raw)
        Q = contrasts(raw.shape[1])
        _core.softmax_downdates(raw, leverage, removed, codes, Q)
        return leverage, raw
    proba, removed = expit(raw), removed[:, None]
    # Weights keep the product below one.
    curvature = removed * proba * (1.0 - proba)
    less = leverage / (1.0 - curvature * leverage[:, 0])[:, :, None]
    return less, raw + less[:, 0] * removed * (proba - codes[:, None])


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
    """Solve the one-step equation for tilts (m, t); return raw predictions."""
    if n_classes == 2:
        return one_step_eta(raw[:, 0], leverage[:, 0, 0], slope, target[:, :, 0])[
            :, :, None
        ]
    return one_step_raw(raw, leverage, slope, target)


def one_step_multiplier(raw, slope, target):
    """Return what solutions (m, t, 1 or K) multiply their leverages with, (m, t, k)."""
    Q = contrasts(2 if raw.shape[2] == 1 else raw.shape[2])
    proba = expit(raw) if raw.shape[2] == 1 else softmax(raw, axis=2)
    return (target - slope[:, :, None] * proba) @ Q


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
