"""Recursions along sequences.

Rows of several sequences stand one after the other; ``starts`` has the number of each
one's first row, and of the row after the last. Densities are those of the states,
divided by the largest of the row.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from skbounds._jit import compile_nogil

_compile = partial(compile_nogil, error_model="numpy", fastmath=False)


@_compile()
def subtract_largest(values, result, largest):
    """Fill in values minus the largest of their row, and the largest ones.

    Rows of a few values are what numpy's reductions are slow for.

    Parameters
    ----------
    values, result : ndarray of shape (n, s)
    largest : ndarray of shape (n,)
    """
    n, s = values.shape
    for i in range(n):
        top = values[i, 0]
        for k in range(1, s):
            top = max(top, values[i, k])
        largest[i] = top
        for k in range(s):
            result[i, k] = values[i, k] - top


# Probabilities below have lost digits, or are about to be lost.
_TINY = 1e-290


@_compile()
def forward(density, starts, start, transition, careful, filtered, scale):
    """Fill in filtered probabilities and p(x_t | x_<t) over the row's scale.

    Returns the number of sequences that underflow; the first scale of these is 0.

    Parameters
    ----------
    density : ndarray of shape (n, s)
    starts : ndarray of int of shape (n_sequences + 1,)
    start : ndarray of shape (s,)
    transition : ndarray of shape (s, s)
    careful : bool
        Whether a state that has vanished may be the only way to another, because of
        transitions that are (nearly) impossible: its sequence underflows then.
    filtered : ndarray of shape (n, s)
    scale : ndarray of shape (n,)
    """
    s = density.shape[1]
    failed = 0
    for q in range(len(starts) - 1):
        bad = False
        for i in range(starts[q], starts[q + 1]):
            total = 0.0
            if i == starts[q]:
                for k in range(s):
                    value = start[k] * density[i, k]
                    if careful and start[k] > 0.0 and value < _TINY:
                        bad = True
                    filtered[i, k] = value
                    total += value
            else:
                for k in range(s):
                    value = 0.0
                    for j in range(s):
                        value += filtered[i - 1, j] * transition[j, k]
                    before = value
                    value *= density[i, k]
                    if careful and before > 0.0 and value < _TINY:
                        bad = True
                    filtered[i, k] = value
                    total += value
            scale[i] = total
            if bad or not total > _TINY:
                bad = True
                break
            inverse = 1.0 / total
            for k in range(s):
                filtered[i, k] *= inverse
        if bad:
            scale[starts[q]] = 0.0
            failed += 1
    return failed


@_compile()
def backward(density, starts, transition, filtered, scale, posterior, pairs):
    """Fill in posteriors, and add up those of pairs of neighbours.

    Sequences whose first scale is 0 are left out.

    Parameters
    ----------
    density, starts, transition, filtered, scale : as for `forward`
    posterior : ndarray of shape (n, s)
    pairs : ndarray of shape (s, s)
        Sums of p(z_i = j, z_{i+1} = k | x) over A(j, k).
    """
    s = density.shape[1]
    after, ahead = np.empty(s), np.empty(s)
    for q in range(len(starts) - 1):
        first, last = starts[q], starts[q + 1] - 1
        if scale[first] == 0.0:
            continue
        for k in range(s):
            after[k] = 1.0
            posterior[last, k] = filtered[last, k]
        for i in range(last - 1, first - 1, -1):
            inverse = 1.0 / scale[i + 1]
            for k in range(s):
                ahead[k] = density[i + 1, k] * after[k] * inverse
            for j in range(s):
                value = 0.0
                weight = filtered[i, j]
                for k in range(s):
                    value += transition[j, k] * ahead[k]
                    pairs[j, k] += weight * ahead[k]
                after[j] = value
                posterior[i, j] = weight * value


@_compile()
def log_pass(log_density, first, stop, log_start, log_transition, posterior, pairs):
    """Do the same for one sequence with logarithms, which nothing can underflow.

    Returns the conditional log-likelihoods of the rows.

    Parameters
    ----------
    log_density : ndarray of shape (n, s)
    first, stop : int
        Rows of the sequence.
    log_start : ndarray of shape (s,)
    log_transition : ndarray of shape (s, s)
    posterior : ndarray of shape (n, s)
    pairs : ndarray of shape (s, s)
        Sums of the pairs' posteriors themselves are added.
    """
    s, n = log_density.shape[1], stop - first
    ahead = np.empty((n, s))
    rows = np.empty(n)
    work = np.empty(s)
    before = 0.0
    for i in range(n):
        for k in range(s):
            if i == 0:
                ahead[0, k] = log_start[k] + log_density[first, k]
            else:
                for j in range(s):
                    work[j] = ahead[i - 1, j] + log_transition[j, k]
                ahead[i, k] = _log_sum(work) + log_density[first + i, k]
        total = _log_sum(ahead[i])
        rows[i] = total - before
        before = total
    after, new = np.zeros(s), np.empty(s)
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            for j in range(s):
                for k in range(s):
                    work[k] = (
                        log_transition[j, k] + log_density[first + i + 1, k] + after[k]
                    )
                    pairs[j, k] += np.exp(ahead[i, j] + work[k] - before)
                new[j] = _log_sum(work)
            after[:] = new
        for k in range(s):
            posterior[first + i, k] = np.exp(ahead[i, k] + after[k] - before)
    return rows


@_compile()
def _log_sum(values):
    largest = -np.inf
    for value in values:
        largest = max(largest, value)
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return largest + np.log(total)


@_compile()
def viterbi(log_density, starts, log_start, log_transition, states):
    """Fill in the most probable states, and return their joint log-probability."""
    n, s = log_density.shape
    back = np.empty((n, s), dtype=np.int32)
    best, new = np.empty(s), np.empty(s)
    joint = 0.0
    for q in range(len(starts) - 1):
        first, stop = starts[q], starts[q + 1]
        for k in range(s):
            best[k] = log_start[k] + log_density[first, k]
        for i in range(first + 1, stop):
            for k in range(s):
                at, value = 0, best[0] + log_transition[0, k]
                for j in range(1, s):
                    other = best[j] + log_transition[j, k]
                    if other > value:
                        at, value = j, other
                back[i, k] = at
                new[k] = value + log_density[i, k]
            best[:] = new
        state = 0
        for k in range(1, s):
            if best[k] > best[state]:
                state = k
        joint += best[state]
        for i in range(stop - 1, first - 1, -1):
            states[i] = state
            if i > first:
                state = back[i, state]
    return joint


@_compile()
def windows(
    density,
    starts,
    start,
    stationary,
    transition,
    careful,
    reach,
    posterior,
    pairs,
    failed,
):
    """Fill in posteriors given the rows at most `reach` away.

    Each window is started from the stationary law, or from the start law at the first
    row of its sequence. Pairs are those of a row and the one before it, given the
    window of the row. Rows whose window underflows are marked.

    Parameters
    ----------
    density, starts, transition : as for `forward`
    start, stationary : ndarray of shape (s,)
    reach : int
    posterior : ndarray of shape (n, s)
    pairs : ndarray of shape (s, s)
        The pairs' posteriors are added.
    failed : ndarray of bool of shape (n,)
    """
    s = density.shape[1]
    ahead, before, new = np.empty(s), np.empty(s), np.empty(s)
    after, back = np.empty(s), np.empty(s)
    for q in range(len(starts) - 1):
        first, stop = starts[q], starts[q + 1]
        for i in range(first, stop):
            low, high = max(first, i - reach), min(stop - 1, i + reach)
            law = start if low == first else stationary
            good = True
            for k in range(s):
                ahead[k] = law[k] * density[low, k]
                before[k] = 0.0
                if careful and law[k] > 0.0 and ahead[k] < _TINY:
                    good = False
            for t in range(low, i + 1):
                if t > low:
                    for k in range(s):
                        before[k] = ahead[k]
                    for k in range(s):
                        value = 0.0
                        for j in range(s):
                            value += before[j] * transition[j, k]
                        new[k] = value * density[t, k]
                        if careful and value > 0.0 and new[k] < _TINY:
                            good = False
                    for k in range(s):
                        ahead[k] = new[k]
                total = 0.0
                for k in range(s):
                    total += ahead[k]
                if not (good and total > _TINY):
                    good = False
                    break
                if t < i:
                    for k in range(s):
                        ahead[k] /= total
            if not good:
                failed[i] = True
                continue
            for k in range(s):
                after[k] = 1.0
            for t in range(high, i, -1):
                total = 0.0
                for j in range(s):
                    value = 0.0
                    for k in range(s):
                        value += transition[j, k] * density[t, k] * after[k]
                    back[j] = value
                    total += value
                if not total > _TINY:
                    good = False
                    break
                for j in range(s):
                    after[j] = back[j] / total
            total = 0.0
            for k in range(s):
                posterior[i, k] = ahead[k] * after[k]
                total += posterior[i, k]
            if not (good and total > _TINY):
                failed[i] = True
                continue
            for k in range(s):
                posterior[i, k] /= total
            if i > first:
                for k in range(s):
                    end = density[i, k] * after[k] / total
                    for j in range(s):
                        pairs[j, k] += before[j] * transition[j, k] * end


@_compile()
def fields(lean, starts, tilt, left, right):
    """Fill in the hyperbolic tangents of the fields of the symmetric chain.

    T_i = t (u_{i-1} + T_{i-1}) / (1 + u_{i-1} T_{i-1}), and the same backwards, with
    u the tangents of the rows' own fields and t = tanh(beta).

    Parameters
    ----------
    lean : ndarray of shape (n,)
        u, the tangents of the rows' own fields.
    starts : ndarray of int of shape (n_sequences + 1,)
    tilt : float
        t.
    left, right : ndarray of shape (n,)
    """
    for q in range(len(starts) - 1):
        first, stop = starts[q], starts[q + 1]
        value = 0.0
        left[first] = 0.0
        for i in range(first, stop - 1):
            u = lean[i]
            value = tilt * (u + value) / (1.0 + u * value)
            left[i + 1] = value
        value = 0.0
        right[stop - 1] = 0.0
        for i in range(stop - 1, first, -1):
            u = lean[i]
            value = tilt * (u + value) / (1.0 + u * value)
            right[i - 1] = value


@_compile()
def fields_in_blocks(lean, tilt, overlap, n_lanes, left, right):
    """Do the same for one long sequence, in blocks that overlap.

    Blocks are swept in lockstep. Each begins with a field of 0, `overlap` rows before
    its own rows: the map is a contraction by |t|, so that what is wrong with that is
    gone by then.

    Parameters
    ----------
    lean, tilt, left, right : as for `fields`
    overlap : int
    n_lanes : int
        Number of blocks.
    """
    n = len(lean)
    size = (n + n_lanes - 1) // n_lanes
    ahead, back = np.zeros(n_lanes), np.zeros(n_lanes)
    for step in range(-overlap, size):
        for lane in range(n_lanes):
            # The field at row i comes from row i - 1.
            i = lane * size + step
            if 1 <= i < n:
                u = lean[i - 1]
                ahead[lane] = tilt * (u + ahead[lane]) / (1.0 + u * ahead[lane])
            else:
                ahead[lane] = 0.0
            if step >= 0 and i < n:
                left[i] = ahead[lane]
        for lane in range(n_lanes):
            i = (lane + 1) * size - 1 - step
            if 0 <= i < n - 1:
                u = lean[i + 1]
                back[lane] = tilt * (u + back[lane]) / (1.0 + u * back[lane])
            else:
                back[lane] = 0.0
            if step >= 0 and 0 <= i < n:
                right[i] = back[lane]
