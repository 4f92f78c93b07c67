"""Sequential minimal optimisation of a two-class SVM on shared rows of a kernel matrix.

With beta = y alpha the dual problem is to maximise y'beta - beta'K beta / 2 subject to
sum(beta) = 0 and low <= beta <= high. Its gradient v = y - K beta is kept up to date. A
problem's rows are a few *segments* of consecutive rows of the kernel matrix, one row of
the integer array ``segments`` each: first row of the matrix, first entry of beta and v,
length.

Rows of K come from a pool that many problems share: ``pool[slot_of[i]]`` is row i. If
one is missing (slot -1), a function returns its number and may be called again when it
is there; all progress is kept. Working pairs are chosen by second-order information
(Fan, Chen and Lin 2005, "Working set selection using second order information for
training support vector machines", JMLR 6).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from skbounds._jit import borrow, compile_nogil, where_greater

# A function that says nothing about fastmath takes it over from its first caller.
_compile = partial(compile_nogil, error_model="numpy", fastmath=False)
DONE = -1
# Entries per block of a maximum. Its position is looked for in the best block only.
_BLOCK = 256
_STRIDE = 16
# Entries that are able to be in a violating pair are worked on by themselves if they
# are at most this share of all, and this many: their matrix is to stay in the cache.
_FEW_SHARE, _FEW = 0.6, 300
# Iterations on all entries before (and between): this many, or a share of n if more.
_ROUND, _ROUND_SHARE = 16, 0.125
# Least curvature along a pair, for kernels that are not positive definite.
_MIN_CURVATURE = 1e-12
_FAR = 1e300


@_compile()
def _step_and_scan(k_i, k_j, step, v, rise, fall):
    """Subtract step (K_i - K_j) from v; return its extremes.

    Returns the largest v of an entry that may rise, the block where it is, and the
    least v of an entry that may fall.
    """
    best, best_block, least = -_FAR, 0, _FAR
    for start in range(0, len(v), _BLOCK):
        stop = min(start + _BLOCK, len(v))
        # The compiler vectorises loops over slices, whose indices are not negative.
        part_i, part_j, part = k_i[start:stop], k_j[start:stop], v[start:stop]
        part_rise, part_fall = rise[start:stop], fall[start:stop]
        top, bottom = -_FAR, _FAR
        for t in range(len(part)):
            value = part[t] - step * (part_i[t] - part_j[t])
            part[t] = value
            upper, lower = value + part_rise[t], value + part_fall[t]
            top = where_greater(upper, top, upper, top)
            bottom = where_greater(bottom, lower, lower, bottom)
        if top > best:
            best, best_block = top, start
        least = min(least, bottom)
    return best, best_block, least


@_compile(inline="always")
def _gain(difference, curvature):
    """Return what a pair gains (twice), from its violation and its curvature."""
    difference = where_greater(difference, 0.0, difference, 0.0)
    curvature = where_greater(curvature, _MIN_CURVATURE, curvature, _MIN_CURVATURE)
    return difference * difference / curvature


@_compile()
def _best_gain(k_i, diagonal, v, fall, v_i, k_ii):
    """Return the largest gain of a pair (i, .) of a block."""
    # Writing the gains down, to find the place later, would cost more than the rest.
    top = 0.0
    for t in range(len(k_i)):
        curvature = k_ii + diagonal[t] - 2.0 * k_i[t]
        gain = _gain(v_i - (v[t] + fall[t]), curvature)
        top = where_greater(gain, top, gain, top)
    return top


@_compile()
def _partner(k_i, diagonal, v, fall, v_i, k_ii, wanted):
    """Return where in a block the gain is `wanted`, up to rounding."""
    start, found = 0, 0
    while not found and start < len(k_i):
        stop = min(start + _STRIDE, len(k_i))
        part, other = k_i[start:stop], diagonal[start:stop]
        part_v, part_fall = v[start:stop], fall[start:stop]
        # No early exit inside: this way the comparison vectorises.
        for t in range(len(part)):
            curvature = k_ii + other[t] - 2.0 * part[t]
            gain = _gain(v_i - (part_v[t] + part_fall[t]), curvature)
            found |= gain >= wanted * (1.0 - 1e-12)
        start += _STRIDE
    best, place = -1.0, 0
    for t in range(max(start - _STRIDE, 0), min(start, len(k_i))):
        curvature = k_ii + diagonal[t] - 2.0 * k_i[t]
        gain = _gain(v_i - (v[t] + fall[t]), curvature)
        if gain > best:
            best, place = gain, t
    return place


@_compile()
def _position(values, others, wanted):
    """Return where the sum of two arrays has a value that is known to be there."""
    start, found = 0, 0
    while not found and start + _STRIDE <= len(values):
        part, other = values[start : start + _STRIDE], others[start : start + _STRIDE]
        # No early exit inside: this way the comparison vectorises.
        for t in range(_STRIDE):
            found |= part[t] + other[t] == wanted
        start += _STRIDE
    t = start - _STRIDE if found else start
    while t < len(values) - 1 and values[t] + others[t] != wanted:
        t += 1
    return t


@_compile()
def _mark(beta, low, high, rise, fall):
    """Mark the entries that may not rise or not fall by a huge number to be added."""
    for t in range(len(beta)):
        rise[t] = 0.0 if beta[t] < high[t] else -_FAR
        fall[t] = 0.0 if beta[t] > low[t] else _FAR


@_compile()
def _move(beta, low, high, rise, fall, i, j, step):
    """Raise entry i and lower entry j as far as the bounds allow; return how far."""
    room_i, room_j = high[i] - beta[i], beta[j] - low[j]
    step = min(step, min(room_i, room_j))
    beta[i] = high[i] if step == room_i else beta[i] + step
    beta[j] = low[j] if step == room_j else beta[j] - step
    for t in (i, j):
        rise[t] = 0.0 if beta[t] < high[t] else -_FAR
        fall[t] = 0.0 if beta[t] > low[t] else _FAR
    return step


@_compile()
def _raise_bounds(C, weight, low, high, beta, v, beta_seen, outputs):
    """Set the bounds for a larger C, and stretch the solution along its ray.

    The best factor is y'beta / beta'K beta; it is exact where all entries are at their
    bounds. Everything linear in beta is scaled along.
    """
    linear, quadratic, room = 0.0, 0.0, np.inf
    for t in range(len(beta)):
        bound = C * weight[t]
        low[t], high[t] = min(bound, 0.0), max(bound, 0.0)
        y = 1.0 if bound > 0.0 else -1.0
        linear += y * beta[t]
        quadratic += beta[t] * (y - v[t])
        if beta[t] != 0.0:
            room = min(room, bound / beta[t])
    if not quadratic > 0.0:
        return
    scale = min(max(1.0, linear / quadratic), room)
    for t in range(len(beta)):
        y = 1.0 if weight[t] > 0.0 else -1.0
        v[t] = y - scale * (y - v[t])
        # Rounding must not carry an entry over its bound.
        beta[t] = min(max(scale * beta[t], low[t]), high[t])
        beta_seen[t] *= scale
    for t in range(len(outputs)):
        outputs[t] *= scale


@_compile()
def _iterate(
    pool, slot_of, stamp, clock, diagonal, segments, beta, v, work, settings, limit
):
    """Do up to `limit` iterations in all; return the row that is missing, or DONE.

    Arguments are those of `solve`; the extremes of v are written to ``settings``.
    """
    pool, slot_of, diagonal = borrow(pool), borrow(slot_of), borrow(diagonal)
    segments, beta, v, work = borrow(segments), borrow(beta), borrow(v), borrow(work)
    stamp, low, high, rise, fall = borrow(stamp), work[0], work[1], work[2], work[3]
    slot_i, slot_j, step = 0, 0, 0.0
    while True:
        v_i, v_least, column_i, first_i, block_i = -_FAR, _FAR, 0, 0, 0
        for s in range(len(segments)):
            column, first, length = segments[s]
            top, block, bottom = _step_and_scan(
                pool[slot_i, column : column + length],
                pool[slot_j, column : column + length],
                step,
                v[first : first + length],
                rise[first : first + length],
                fall[first : first + length],
            )
            if top > v_i:
                v_i, column_i, first_i, block_i = top, column, first, first + block
            v_least = min(v_least, bottom)
        settings[6], settings[7] = v_i, v_least
        if v_i - v_least <= settings[1] or settings[4] >= limit:
            return DONE
        i = block_i + _position(v[block_i:], rise[block_i:], v_i)
        row_i = column_i + i - first_i
        slot_i = slot_of[row_i]
        if slot_i < 0:
            return row_i
        k_ii = diagonal[row_i]
        best, column_j, first_j, size_j = 0.0, 0, 0, 0
        for s in range(len(segments)):
            column, first, length = segments[s]
            for start in range(0, length, _BLOCK):
                size = min(_BLOCK, length - start)
                at, to = first + start, column + start
                top = _best_gain(
                    pool[slot_i, to : to + size], diagonal[to : to + size],
                    v[at : at + size], fall[at : at + size], v_i, k_ii,
                )  # fmt: skip
                if top > best:
                    best, column_j, first_j, size_j = top, to, at, size
        if best == 0.0:
            # Only rounding is left to gain.
            settings[7] = v_i
            return DONE
        place = _partner(
            pool[slot_i, column_j : column_j + size_j],
            diagonal[column_j : column_j + size_j],
            v[first_j : first_j + size_j], fall[first_j : first_j + size_j],
            v_i, k_ii, best,
        )  # fmt: skip
        j, row_j = first_j + place, column_j + place
        slot_j = slot_of[row_j]
        if slot_j < 0:
            return row_j
        clock[0] += 1
        stamp[slot_i] = clock[0]
        stamp[slot_j] = clock[0]
        curvature = k_ii + diagonal[row_j] - 2.0 * pool[slot_i, row_j]
        step = (v_i - v[j]) / max(curvature, _MIN_CURVATURE)
        step = _move(beta, low, high, rise, fall, i, j, step)
        settings[4] += 1.0


@_compile()
def _iterate_few(matrix, inverse, beta, v, work, settings, limit):
    """Do up to `limit` iterations in all on a small matrix that is all there.

    Its curvatures come inverted, as dividing would take longer than all the rest.
    """
    matrix, inverse = borrow(matrix), borrow(inverse)
    beta, v, work = borrow(beta), borrow(v), borrow(work)
    low, high, rise, fall, gains, zeros = (
        work[0], work[1], work[2], work[3], work[4], work[5],
    )  # fmt: skip
    i, j, step = 0, 0, 0.0
    while True:
        k_i, k_j, v_i, v_least = matrix[i], matrix[j], -_FAR, _FAR
        for t in range(len(v)):
            value = v[t] - step * (k_i[t] - k_j[t])
            v[t] = value
            upper, lower = value + rise[t], value + fall[t]
            v_i = where_greater(upper, v_i, upper, v_i)
            v_least = where_greater(v_least, lower, lower, v_least)
        if v_i - v_least <= settings[1] or settings[4] >= limit:
            return
        i = _position(v, rise, v_i)
        inverse_i, best = inverse[i], 0.0
        for t in range(len(v)):
            difference = v_i - (v[t] + fall[t])
            difference = where_greater(difference, 0.0, difference, 0.0)
            gain = difference * difference * inverse_i[t]
            gains[t] = gain
            best = where_greater(gain, best, gain, best)
        if best == 0.0:
            return
        j = _position(gains, zeros, best)
        step = (v_i - v[j]) * inverse_i[j]
        step = _move(beta, low, high, rise, fall, i, j, step)
        settings[4] += 1.0


@_compile()
def _gather(row, diagonal, columns, own, few, inverse):
    """Copy some columns of a row, and invert the curvatures of its pairs with them."""
    for b in range(len(columns)):
        few[b] = row[columns[b]]
    k_ii = diagonal[own]
    for b in range(len(columns)):
        curvature = k_ii + diagonal[columns[b]] - 2.0 * few[b]
        inverse[b] = 1.0 / max(curvature, _MIN_CURVATURE)


@_compile()
def _shrink(
    pool, slot_of, stamp, clock, diagonal, segments, beta, v, work, settings, limit
):
    """Iterate on the entries only that are able to be in a violating pair.

    They are few near the optimum, and of their rows only these entries are needed. Does
    nothing if they are not few, or if a row is missing.
    """
    pool, slot_of, segments = borrow(pool), borrow(slot_of), borrow(segments)
    beta, v, work = borrow(beta), borrow(v), borrow(work)
    rise, fall, top, bottom = work[2], work[3], settings[6], settings[7]
    n_active = 0
    for t in range(len(v)):
        n_active += (v[t] + rise[t] > bottom) | (v[t] + fall[t] < top)
    if n_active > min(_FEW, _FEW_SHARE * len(v)):
        return
    entries = np.empty(n_active, dtype=np.int64)
    columns = np.empty(n_active, dtype=np.int64)
    slots = np.empty(n_active, dtype=np.int64)
    n_active = 0
    for s in range(len(segments)):
        column, first, length = segments[s]
        for t in range(first, first + length):
            if v[t] + rise[t] > bottom or v[t] + fall[t] < top:
                entries[n_active] = t
                columns[n_active] = column + t - first
                slots[n_active] = slot_of[column + t - first]
                if slots[n_active] < 0:
                    return
                n_active += 1
    matrix = np.empty((n_active, n_active))
    inverse = np.empty((n_active, n_active))
    few_beta, few_v = np.empty(n_active), np.empty(n_active)
    few_work = np.zeros((6, n_active))
    for a in range(n_active):
        few_beta[a], few_v[a] = beta[entries[a]], v[entries[a]]
        for k in range(4):
            few_work[k, a] = work[k, entries[a]]
        _gather(pool[slots[a]], diagonal, columns, columns[a], matrix[a], inverse[a])
    _iterate_few(matrix, inverse, few_beta, few_v, few_work, settings, limit)
    for a in range(n_active):
        change = few_beta[a] - beta[entries[a]]
        if change == 0.0:
            continue
        beta[entries[a]] = few_beta[a]
        rise[entries[a]], fall[entries[a]] = few_work[2, a], few_work[3, a]
        clock[0] += 1
        stamp[slots[a]] = clock[0]
        for s in range(len(segments)):
            column, first, length = segments[s]
            row = pool[slots[a], column : column + length]
            part = v[first : first + length]
            for t in range(length):
                part[t] -= change * row[t]


@_compile()
def solve(
    pool, slot_of, stamp, clock, diagonal, segments, weight, beta, v, beta_seen,
    outputs, work, settings,
):  # fmt: skip
    """Improve beta until no pair violates optimality by more than the tolerance.

    Parameters
    ----------
    pool : ndarray of shape (n_slots, n)
    slot_of : ndarray of int of shape (n,)
    stamp : ndarray of int of shape (n_slots,)
        When a slot was last used, in units of ``clock``; updated.
    clock : ndarray of int of shape (1,)
    diagonal : ndarray of shape (n,)
        The diagonal of K.
    segments : ndarray of int of shape (n_segments, 3)
    weight : ndarray of shape (n_problem,)
        Factor of C for each entry, with the sign of its class: the bounds are 0 and
        C times this.
    beta, v : ndarrays of shape (n_problem,)
        Updated in place.
    beta_seen, outputs : ndarrays
        See `update_outputs`; scaled with beta.
    work : ndarray of shape (4, n_problem)
        Scratch, kept until the solution is found.
    settings : ndarray of shape (8,)
        C, tolerance, most iterations; 0 for a C that was not begun yet. Iterations so
        far, the bias and the extremes of v are written to the last four.

    Returns
    -------
    missing : int
        The row that is missing, or DONE.
    """
    low, high = work[0], work[1]
    if settings[3] == 0.0:
        _raise_bounds(settings[0], weight, low, high, beta, v, beta_seen, outputs)
        settings[3] = 1.0
    _mark(beta, low, high, work[2], work[3])
    tolerance, most = settings[1], settings[2]
    period = max(_ROUND, _ROUND_SHARE * len(beta))
    while True:
        missing = _iterate(
            pool, slot_of, stamp, clock, diagonal, segments, beta, v, work, settings,
            min(most, settings[4] + period),
        )  # fmt: skip
        if missing != DONE:
            return missing
        if settings[6] - settings[7] <= tolerance or settings[4] >= most:
            break
        _shrink(
            pool, slot_of, stamp, clock, diagonal, segments, beta, v, work, settings,
            most,
        )  # fmt: skip
    total, count = 0.0, 0
    for t in range(len(beta)):
        if low[t] < beta[t] < high[t]:
            total += v[t]
            count += 1
    settings[5] = total / count if count else 0.5 * (settings[6] + settings[7])
    return DONE


@_compile()
def update_outputs(
    pool, slot_of, stamp, clock, row_numbers, beta, beta_seen, targets, outputs
):
    """Bring the decision values of other rows (without bias) up to date with beta.

    `row_numbers` has the row of each entry; `targets` are segments of the other rows;
    `beta_seen` is what `outputs` contains already. Returns the row that is missing, or
    DONE.
    """
    pool, outputs, targets = borrow(pool), borrow(outputs), borrow(targets)
    for t in range(len(beta)):
        change = beta[t] - beta_seen[t]
        if change == 0.0:
            continue
        slot = slot_of[row_numbers[t]]
        if slot < 0:
            return row_numbers[t]
        clock[0] += 1
        stamp[slot] = clock[0]
        for u in range(len(targets)):
            column, first, length = targets[u]
            k_row = pool[slot, column : column + length]
            part = outputs[first : first + length]
            for k in range(length):
                part[k] += change * k_row[k]
        beta_seen[t] = beta[t]
    return DONE
