"""The loops over a stream: features, play, learning and accounts in one pass, compiled.

Every row is played before it is learnt; nothing that is learnt depends on the draws.
A stream may be cut anywhere: state lives in the arrays that the caller hands over, and
rows are processed one by one with the same arithmetic.

Layout. A table has one row per feature and one for the intercept: first the weights of
all outputs (and experts, side by side), then what belongs to the feature, so that a
sparse row touches few cache lines. Rows are padded to multiples of 16 for the
vectoriser; padding never matters.

Equation, theorem and section numbers: Sakaue, Bao, Tsuchiya and Oki (2024).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skbounds._jit import borrow, prefetch
from skbounds.fenchel_young._rows import (
    LOGISTIC,
    _compile,
    decode,
    loss_at,
    loss_between,
    respond,
    softplus,
)

# Learners; all but the mixture have one weight matrix.
OGD, ADAPTIVE, PARAMETER_FREE, DUAL, MIXTURE = range(5)
# Feature maps.
RAW, STANDARDIZE, FIRST_MAGNITUDE = range(3)

# Entries of the vector of scalar state.
(
    ROWS,  # rows learnt, all passes
    ROUNDS,  # rows played and accounted for
    EXPECTED,  # sum of expected target losses
    REALISED,  # sum of realised target losses
    SURROGATE,  # sum of surrogate losses of what was played
    SURROGATE_BASE,  # the same for the learner that carries the theorem
    INNER,  # sum of <gradient, W_t> of that learner
    GRADIENT_SQUARED,  # sum of its squared gradient norms
    NORM_SUM,  # sum of squared row norms
    NORM_MAX,  # largest squared row norm
    BEYOND,  # rows longer than the given norm
    FACTOR,  # the weights are this times the table
    WEIGHT_NORM,  # squared norm of the weights (adaptive) or direction (coin betting)
    STEP_SUM,  # sum of squared gradients in the step size
    WEALTH,
    BET,
    BET_SUM,
    CUMULATED,  # sum over rounds of the factor, for averages
    CUMULATED_BASE,  # the same for expert 0 of a mixture
) = range(19)
N_SCALARS = 19

# Reassociation lets sums vectorise; finite-math flags would break the handling of
# infinities and are left out.
_SUMS = {"nsz", "arcp", "contract", "afn", "reassoc"}
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer
_BET_RATE = 2.0 / (2.0 - math.log(3.0))
_SMALL_FACTOR = 1e-6


class Settings(NamedTuple):
    """What is fixed for a stream."""

    learner: int
    loss: int
    structure: int
    decoding: int
    scaling: int
    intercept: bool
    mu: float
    step: float  # natural step of OGD, or of expert 0
    scale: float  # factor of the surrogate loss
    norm_limit: float
    diameter: float
    gradient_limit: float
    share: float
    clip: float


class State(NamedTuple):
    """What changes with every row; arrays that a learner does not use have length 0."""

    table: np.ndarray
    average: np.ndarray  # with CUMULATED times the table: the sum of all weights
    gradient: np.ndarray  # sum of the gradients, where the table does not tell it
    mean: np.ndarray
    square: np.ndarray
    weights: np.ndarray  # of the experts, one row per mixed prediction
    rates: np.ndarray  # step multipliers of the experts
    scalars: np.ndarray


class Scratch(NamedTuple):
    """Memory for one row, allocated once."""

    idx: np.ndarray
    val: np.ndarray
    rate: np.ndarray
    out: np.ndarray
    fast: np.ndarray
    slow: np.ndarray
    score: np.ndarray
    power: np.ndarray
    delta: np.ndarray
    work: np.ndarray
    bits: np.ndarray  # work seen as integers
    u: np.ndarray
    mean: np.ndarray
    chance: np.ndarray
    play: np.ndarray


def aligned_zeros(n_rows, n_columns, dtype):
    """Return zeros that start on a cache line; memory is touched when it is used."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(n_rows * n_columns + 64 // itemsize, dtype)
    offset = (-memory.ctypes.data % 64) // itemsize
    return memory[offset : offset + n_rows * n_columns].reshape(n_rows, n_columns)


def make_scratch(state, n_outputs, longest, n_targets):
    """Return scratch memory for rows with at most ``longest`` entries."""
    dtype = state.table.dtype
    padded = state.table.shape[1]
    width = n_outputs * max(1, len(state.rates))
    work = aligned_zeros(1, width, np.float64)[0]
    return Scratch(
        idx=np.arange(longest + 1, dtype=np.int32),
        val=aligned_zeros(1, longest + 1, dtype)[0],
        rate=aligned_zeros(1, longest + 1, dtype)[0],
        out=aligned_zeros(1, padded, dtype)[0],
        fast=aligned_zeros(1, padded, dtype)[0],
        slow=aligned_zeros(1, padded, dtype)[0],
        score=aligned_zeros(1, width, np.float64)[0],
        power=aligned_zeros(1, width, np.float64)[0],
        delta=aligned_zeros(1, width, np.float64)[0],
        work=work,
        bits=work.view(np.int64),
        u=np.zeros(n_outputs),
        mean=np.zeros(n_outputs),
        chance=np.zeros(state.weights.shape),
        play=np.zeros((1, n_targets), np.int64),
    )


# ---------------------------------------------------------------- features


@_compile(fastmath=_SUMS, forceinline=True)
def _standardize(X, i, count, clip, mean, square, val):
    """Welford's update with the row itself, then the clipped standardised row."""
    inverse = 1.0 / count
    for j in range(len(mean)):
        x = np.float64(X[i, j])
        change = x - mean[j]
        centre = mean[j] + change * inverse
        spread = square[j] + change * (x - centre)
        mean[j] = centre
        square[j] = spread
        z = (x - centre) * math.sqrt(count / spread) if spread > 0.0 else 0.0
        val[j] = min(max(z, -clip), clip)


@_compile(forceinline=True)
def _fill_dense(scaling, X, i, count, clip, mean, square, intercept, val):
    """Fill val with a dense row as the learner sees it."""
    n_features = X.shape[1]
    if scaling == STANDARDIZE:
        _standardize(X, i, count, clip, mean, square, val)
    else:
        for j in range(n_features):
            val[j] = X[i, j]
    if intercept:
        val[n_features] = 1.0


@_compile(forceinline=True)
def _fill_sparse(
    scaling, data, indices, start, stop, clip, table, column, intercept, idx, val
):
    """Fill idx and val with a sparse row as the learner sees it; return its length.

    A feature's scale is its first non-zero magnitude.
    """
    n = 0
    for position in range(start, stop):
        x = data[position]
        if x == 0.0:
            continue
        j = indices[position]
        if scaling == FIRST_MAGNITUDE:
            if table[j, column] == 0.0:
                table[j, column] = abs(x)
            x = min(max(x / table[j, column], -clip), clip)
        idx[n] = j
        val[n] = x
        n += 1
    if intercept:
        idx[n] = len(table) - 1
        val[n] = 1.0
        n += 1
    return n


@_compile(fastmath=_SUMS, forceinline=True)
def _squared_norm(val, start, stop):
    total = 0.0
    for j in range(start, stop):
        total += np.float64(val[j]) * np.float64(val[j])
    return total


# ---------------------------------------------------------------- weights


def _make_score(width):
    """Return a function that fills out with the scores of a row.

    In the table's precision. Of a width known to the compiler, inner loops unroll.
    """

    @_compile(fastmath=_SUMS, forceinline=True)
    def score(idx, val, n, table, out):
        size = width if width > 0 else table.shape[1]
        for k in range(size):
            out[k] = 0.0
        j = 0
        while j + 4 <= n:
            a, b, c, d = idx[j], idx[j + 1], idx[j + 2], idx[j + 3]
            va, vb, vc, vd = val[j], val[j + 1], val[j + 2], val[j + 3]
            for k in range(size):
                out[k] += (
                    va * table[a, k]
                    + vb * table[b, k]
                    + vc * table[c, k]
                    + vd * table[d, k]
                )
            j += 4
        while j < n:
            a, va = idx[j], val[j]
            for k in range(size):
                out[k] += va * table[a, k]
            j += 1

    return score


def _make_descend(width):
    """Return a function for ``W_i -= rate_i fast + x_i slow`` on a row's features."""

    @_compile(fastmath=_SUMS, forceinline=True)
    def descend(idx, val, n, rate, fast, slow, table):
        size = width if width > 0 else table.shape[1]
        for j in range(n):
            i, c, x = idx[j], rate[j], val[j]
            for k in range(size):
                table[i, k] -= c * fast[k] + x * slow[k]

    return descend


# The widths of 4 to 7, 8 to 11 and 12 to 15 classes with the default experts.
_score_any, _score_48, _score_64 = _make_score(0), _make_score(48), _make_score(64)
_descend_any, _descend_32 = _make_descend(0), _make_descend(32)
_descend_48, _descend_64 = _make_descend(48), _make_descend(64)


@_compile(forceinline=True)
def _score(idx, val, n, table, out):
    if table.shape[1] == 48:
        _score_48(idx, val, n, table, out)
    elif table.shape[1] == 64:
        _score_64(idx, val, n, table, out)
    else:
        _score_any(idx, val, n, table, out)


@_compile(forceinline=True)
def _descend(idx, val, n, rate, fast, slow, table):
    if table.shape[1] == 32:
        _descend_32(idx, val, n, rate, fast, slow, table)
    elif table.shape[1] == 48:
        _descend_48(idx, val, n, rate, fast, slow, table)
    elif table.shape[1] == 64:
        _descend_64(idx, val, n, rate, fast, slow, table)
    else:
        _descend_any(idx, val, n, rate, fast, slow, table)


@_compile(fastmath=_SUMS, forceinline=True)
def _rates(idx, val, n, table, column, feature, energy, rate):
    """Update the features' accumulators and fill their step sizes.

    ``G_i += g^2 energy; rate_i = g / sqrt(G_i + 2 feature^2)`` with g = feature x_i:
    the damping is the largest squared gradient of a unit feature.
    """
    damping = table.dtype.type(2.0 * feature * feature)
    feature = table.dtype.type(feature)
    energy = table.dtype.type(energy)
    for j in range(n):
        g = feature * val[j]
        squares = table[idx[j], column] + g * g * energy
        table[idx[j], column] = squares
        rate[j] = squares + damping
    for j in range(n):
        rate[j] = feature * val[j] / math.sqrt(rate[j])


@_compile(forceinline=True)
def _exp(x, out, work, bits, n):
    """Fill out with exp(x) for x <= 0, accurate to a few units in the last place.

    Cody and Waite's reduction and a Taylor polynomial: the library's function does not
    vectorise. ``bits`` is ``work`` seen as integers.
    """
    for k in range(n):
        work[k] = max(x[k], -700.0) * _LOG2E + _MAGIC
    for k in range(n):
        power = work[k] - _MAGIC
        r = (max(x[k], -700.0) - power * _LN2_HIGH) - power * _LN2_LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        out[k] = p * r + 1.0
    for k in range(n):
        bits[k] = (bits[k] + 1023) << 52
    for k in range(n):
        out[k] *= work[k]


# ---------------------------------------------------------------- mixture


@_compile(forceinline=True)
def _softmax_experts(score, power, work, bits, y, n_outputs, chance, weights, u, delta):
    """Run softmax experts and mix them; return their losses on the label y.

    ``chance[0, m]`` becomes the probability that expert m gave to y, ``delta`` the
    residuals of all experts, ``u`` the mixed probabilities.

    Returns
    -------
    loss_base, inner : float
        Expert 0's log-loss, and <delta, theta> for it.
    """
    n_experts = chance.shape[1]
    for m in range(n_experts):
        begin = m * n_outputs
        top = score[begin]
        for k in range(begin + 1, begin + n_outputs):
            top = max(top, score[k])
        for k in range(begin, begin + n_outputs):
            score[k] -= top
    _exp(score, power, work, bits, n_experts * n_outputs)
    loss_base, inner = 0.0, 0.0
    for m in range(n_experts):
        total = 0.0
        for k in range(m * n_outputs, (m + 1) * n_outputs):
            total += power[k]
        chance[0, m] = 1.0 / total
    loss_base = -math.log(chance[0, 0]) - score[y]
    for k in range(n_outputs):
        mixed = 0.0
        for m in range(n_experts):
            probability = power[m * n_outputs + k] * chance[0, m]
            delta[m * n_outputs + k] = probability
            mixed += weights[0, m] * probability
        u[k] = mixed
    for m in range(n_experts):
        chance[0, m] = delta[m * n_outputs + y]
        delta[m * n_outputs + y] -= 1.0
    for k in range(n_outputs):
        inner += delta[k] * score[k]
    return loss_base, inner


@_compile(fastmath=_SUMS, forceinline=True)
def _sigmoid_experts(score, power, work, bits, targets, row, chance, weights, u, delta):
    """Run independent sigmoid experts per label and mix them label by label."""
    n_outputs = targets.shape[1]
    n_experts = weights.shape[1]
    n = n_outputs * n_experts
    for k in range(n):
        delta[k] = -abs(score[k])
    _exp(delta, power, work, bits, n)
    loss_base, inner = 0.0, 0.0
    for k in range(n_outputs):
        u[k] = 0.0
    for m in range(n_experts):
        begin = m * n_outputs
        for k in range(n_outputs):
            tail = power[begin + k]
            upper = 1.0 / (1.0 + tail)
            lower = tail * upper
            one = upper if score[begin + k] >= 0.0 else lower
            zero = lower if score[begin + k] >= 0.0 else upper
            u[k] += weights[k, m] * one
            chance[k, m] = one if targets[row, k] == 1 else zero
            delta[begin + k] = -zero if targets[row, k] == 1 else one
    for k in range(n_outputs):
        loss_base += softplus(-score[k] if targets[row, k] == 1 else score[k])
        inner += delta[k] * score[k]
    return loss_base, inner


@_compile(forceinline=True)
def _reweigh(group, loss, score, power, label, n_outputs, chance, weights, share):
    """Update the Bayes weights of one label's experts; return the mixed log-loss.

    The weights are shared in proportion to the loss. ``chance`` is overwritten.
    """
    n_experts = weights.shape[1]
    mixed = 0.0
    for m in range(n_experts):
        mixed += weights[group, m] * chance[group, m]
    if mixed > 1e-290:
        alpha = share * (1.0 - min(mixed, 1.0))
        factor = (1.0 - alpha) / mixed
        for m in range(n_experts):
            weights[group, m] *= factor * chance[group, m]
            weights[group, m] += alpha / n_experts
            # Without sharing, underflow would remove an expert for good.
            weights[group, m] = max(weights[group, m], 1e-300)
        return -math.log(mixed)
    # All experts' probabilities underflow: the same with logarithms.
    top = -np.inf
    for m in range(n_experts):
        begin = m * n_outputs
        if loss == LOGISTIC:
            total = 0.0
            for k in range(begin, begin + n_outputs):
                total += power[k]
            value = score[begin + label] - math.log(total)
        else:
            margin = score[begin + group]
            value = -softplus(-margin if label == 1 else margin)
        chance[group, m] = value + math.log(max(weights[group, m], 1e-300))
        top = max(top, chance[group, m])
    total = 0.0
    for m in range(n_experts):
        chance[group, m] = math.exp(chance[group, m] - top)
        total += chance[group, m]
    for m in range(n_experts):
        weights[group, m] = (1.0 - share) * chance[group, m] / total + share / n_experts
    return -top - math.log(total)


@_compile(forceinline=True)
def _mixture_round(settings, state, scratch, n, targets, row, uniforms, plays, to, log):
    """Play and learn one row of n entries with the mixture.

    Expert 0 is dual-averaged OGD (Theorem 4.2 for an unknown norm), the others are
    AdaGrad with one accumulator per feature. ``log`` tells whether to account.
    """
    idx, val, rate = scratch.idx, scratch.val, scratch.rate
    score, delta, u, mean = scratch.score, scratch.delta, scratch.u, scratch.mean
    out, fast, slow = scratch.out, scratch.fast, scratch.slow
    table, rates, scalars = state.table, state.rates, state.scalars
    n_experts = len(rates)
    n_outputs = len(u)
    width = n_outputs * n_experts
    norm = _squared_norm(val, 0, n)
    scalars[ROWS] += 1.0
    scalars[NORM_SUM] += norm
    scalars[NORM_MAX] = max(scalars[NORM_MAX], norm)
    active = scalars[NORM_SUM] > 0.0
    feature, base = 0.0, 0.0
    if active:
        feature = math.sqrt(scalars[ROWS] / scalars[NORM_SUM])
        base = settings.step / scalars[NORM_MAX]
        _score(idx, val, n, table, out)
        for k in range(n_outputs):
            score[k] = base * out[k]
        for k in range(n_outputs, width):
            score[k] = feature * out[k]
    else:
        for k in range(width):
            score[k] = 0.0
    if settings.loss == LOGISTIC:
        loss_base, inner = _softmax_experts(
            score,
            scratch.power,
            scratch.work,
            scratch.bits,
            targets[row, 0],
            n_outputs,
            scratch.chance,
            state.weights,
            u,
            delta,
        )
    else:
        loss_base, inner = _sigmoid_experts(
            score,
            scratch.power,
            scratch.work,
            scratch.bits,
            targets,
            row,
            scratch.chance,
            state.weights,
            u,
            delta,
        )
    decode(settings.structure, settings.decoding, u, uniforms, row, plays, to, mean)
    structure = settings.structure
    value = 0.0
    for group in range(len(state.weights)):
        value += _reweigh(
            group,
            settings.loss,
            score,
            scratch.power,
            targets[row, group],
            n_outputs,
            scratch.chance,
            state.weights,
            settings.share,
        )
    if log:
        scalars[ROUNDS] += 1.0
        scalars[EXPECTED] += loss_at(structure, mean, targets, row)
        scalars[REALISED] += loss_between(structure, n_outputs, plays, to, targets, row)
        scalars[SURROGATE] += value
        scalars[SURROGATE_BASE] += loss_base
        scalars[INNER] += inner
        scalars[GRADIENT_SQUARED] += _squared_norm(delta, 0, n_outputs) * norm
    if not active:
        return
    energy = 0.0
    if n_experts > 1:
        energy = _squared_norm(delta, n_outputs, width) / (n_experts - 1)
    for k in range(n_outputs):
        slow[k] = delta[k]
    for m in range(1, n_experts):
        for k in range(m * n_outputs, (m + 1) * n_outputs):
            fast[k] = rates[m] * delta[k]
    _rates(idx, val, n, table, width, feature, energy, rate)
    _descend(idx, val, n, rate, fast, slow, table)
    scalars[CUMULATED] += feature
    scalars[CUMULATED_BASE] += base
    average = state.average
    if len(average) > 0:
        for j in range(n):
            i = idx[j]
            first = scalars[CUMULATED] * rate[j]
            second = scalars[CUMULATED_BASE] * val[j]
            for k in range(width):
                average[i, k] += first * fast[k] + second * slow[k]


# ---------------------------------------------------------------- one learner


@_compile(fastmath=_SUMS, forceinline=True)
def _score_single(idx, val, n, table, theta):
    """Fill theta with the sums of a row's table entries, in float64."""
    for k in range(len(theta)):
        theta[k] = 0.0
    for j in range(n):
        i, x = idx[j], np.float64(val[j])
        for k in range(len(theta)):
            theta[k] += x * table[i, k]


@_compile(fastmath=_SUMS, forceinline=True)
def _add_outer(idx, val, n, coefficient, residual, table):
    """``table += coefficient * x residual^T`` on the row's features."""
    for j in range(n):
        i, x = idx[j], coefficient * np.float64(val[j])
        for k in range(len(residual)):
            table[i, k] += x * residual[k]


@_compile()
def _rescale(table, average, n_outputs, scalars):
    """Move a small common factor into the table."""
    factor = scalars[FACTOR]
    for j in range(len(table)):
        for k in range(n_outputs):
            if len(average) > 0:
                average[j, k] += scalars[CUMULATED] * table[j, k]
            table[j, k] *= factor
    scalars[CUMULATED] = 0.0
    scalars[FACTOR] = 1.0


@_compile()
def _single_round(settings, state, scratch, n, targets, row, uniforms, plays, to, log):
    """Play and learn one row with one weight matrix (Algorithm 2).

    The weights are FACTOR times the table; every update adds a multiple of
    ``x residual^T`` to the table and may change the factor.
    """
    learner, scale = settings.learner, settings.scale
    idx, val = scratch.idx, scratch.val
    theta, u, residual, mean = scratch.score, scratch.u, scratch.delta, scratch.mean
    table, average, scalars = state.table, state.average, state.scalars
    gradient_limit, norm_limit = settings.gradient_limit, settings.norm_limit
    structure = settings.structure
    norm = _squared_norm(val, 0, n)
    scalars[ROWS] += 1.0
    scalars[NORM_SUM] += norm
    scalars[NORM_MAX] = max(scalars[NORM_MAX], norm)
    if norm > norm_limit * norm_limit * (1.0 + 1e-12):
        scalars[BEYOND] += 1.0
    factor = scalars[FACTOR]
    if learner == DUAL:
        factor = settings.step / scalars[NORM_MAX] if scalars[NORM_MAX] > 0.0 else 0.0
    elif learner == PARAMETER_FREE:
        stake = scalars[BET] * scalars[WEALTH]
        factor *= stake
    _score_single(idx, val, n, table, theta)
    for k in range(len(theta)):
        theta[k] *= factor
    value = scale * respond(
        settings.loss, structure, settings.mu, theta, targets, row, u, residual
    )
    decode(structure, settings.decoding, u, uniforms, row, plays, to, mean)
    inner, squared = 0.0, 0.0
    for k in range(len(theta)):
        inner += theta[k] * residual[k]
        squared += residual[k] * residual[k]
    inner *= scale
    squared *= scale * scale * norm
    if log:
        scalars[ROUNDS] += 1.0
        scalars[EXPECTED] += loss_at(structure, mean, targets, row)
        scalars[REALISED] += loss_between(
            structure, len(theta), plays, to, targets, row
        )
        scalars[SURROGATE] += value
        scalars[SURROGATE_BASE] += value
        scalars[INNER] += inner
        scalars[GRADIENT_SQUARED] += squared
    scalars[CUMULATED] += factor
    # The table loses coefficient * x residual^T.
    coefficient = 0.0
    shrink = 1.0
    if learner == OGD:
        coefficient = settings.step
    elif learner == DUAL:
        coefficient = 1.0
    elif learner == ADAPTIVE:
        scalars[STEP_SUM] += squared
        if squared > 0.0:
            rate = settings.diameter / math.sqrt(2.0 * scalars[STEP_SUM])
            coefficient = rate * scale / scalars[FACTOR]
            length = scalars[WEIGHT_NORM] - 2.0 * rate * inner + rate * rate * squared
            radius = 0.5 * settings.diameter
            if length > radius * radius:
                shrink = radius / math.sqrt(length)
                length = radius * radius
            scalars[WEIGHT_NORM] = max(length, 0.0)
    elif squared > 0.0:
        # Coin betting on the magnitude, AdaGrad in the unit ball on the direction.
        size = math.sqrt(squared) / gradient_limit
        unit = scale / gradient_limit
        if size > 1.0:
            unit /= size
            size = 1.0
        slope = 0.0
        # <g, V>: the scores without the stake; the table itself where that is 0.
        _score_single(idx, val, n, table, theta)
        for k in range(len(theta)):
            slope += theta[k] * residual[k]
        slope *= scalars[FACTOR] * unit
        zeta = slope / (1.0 - slope * scalars[BET])
        scalars[WEALTH] -= slope * stake
        scalars[BET_SUM] += zeta * zeta
        bet = scalars[BET] - _BET_RATE * zeta / scalars[BET_SUM]
        scalars[BET] = min(max(bet, -0.5), 0.5)
        scalars[STEP_SUM] += size * size
        rate = math.sqrt(2.0 / scalars[STEP_SUM])
        coefficient = rate * unit / scalars[FACTOR]
        length = scalars[WEIGHT_NORM] - 2.0 * rate * slope + rate * rate * size * size
        if length > 1.0:
            shrink = 1.0 / math.sqrt(length)
            length = 1.0
        scalars[WEIGHT_NORM] = max(length, 0.0)
    _add_outer(idx, val, n, -coefficient, residual, table)
    if len(average) > 0:
        _add_outer(idx, val, n, coefficient * scalars[CUMULATED], residual, average)
    if len(state.gradient) > 0 and log:
        _add_outer(idx, val, n, scale, residual, state.gradient)
    if shrink < 1.0:
        scalars[FACTOR] *= shrink
        if scalars[FACTOR] < _SMALL_FACTOR:
            _rescale(table, average, len(theta), scalars)


# ---------------------------------------------------------------- loops
#
# Written out for both kinds of learners: one loop would compile both where one is
# used, and loops made by a function of the kind could not be cached on disk.


@_compile(forceinline=True)
def _borrow_state(state):
    return State(
        borrow(state.table),
        borrow(state.average),
        borrow(state.gradient),
        borrow(state.mean),
        borrow(state.square),
        borrow(state.weights),
        borrow(state.rates),
        borrow(state.scalars),
    )


@_compile(forceinline=True)
def _borrow_scratch(scratch):
    return Scratch(
        borrow(scratch.idx),
        borrow(scratch.val),
        borrow(scratch.rate),
        borrow(scratch.out),
        borrow(scratch.fast),
        borrow(scratch.slow),
        borrow(scratch.score),
        borrow(scratch.power),
        borrow(scratch.delta),
        borrow(scratch.work),
        borrow(scratch.bits),
        borrow(scratch.u),
        borrow(scratch.mean),
        borrow(scratch.chance),
        borrow(scratch.play),
    )


@_compile()
def mixture_dense(settings, state, scratch, X, targets, uniforms, plays, log):
    """Play and learn the rows of a dense stream with the mixture.

    ``plays`` may have length 0: then they are only accounted for.
    """
    state, scratch = _borrow_state(state), _borrow_scratch(scratch)
    X, targets, uniforms = borrow(X), borrow(targets), borrow(uniforms)
    keep = len(plays) > 0
    plays = borrow(plays) if keep else scratch.play
    n = X.shape[1] + (1 if settings.intercept else 0)
    for i in range(len(X)):
        _fill_dense(
            settings.scaling,
            X,
            i,
            state.scalars[ROWS] + 1.0,
            settings.clip,
            state.mean,
            state.square,
            settings.intercept,
            scratch.val,
        )
        to = i if keep else 0
        _mixture_round(
            settings, state, scratch, n, targets, i, uniforms, plays, to, log
        )


@_compile(forceinline=True)
def _prefetch_row(indices, indptr, i, table):
    """Load the table's rows for row i while the one before is worked on."""
    if i + 1 < len(indptr):
        line = 64 // table.itemsize
        for position in range(indptr[i], indptr[i + 1]):
            j = indices[position]
            for k in range(0, table.shape[1], line):
                prefetch(table, j, k)


@_compile()
def mixture_sparse(
    settings, state, scratch, data, indices, indptr, targets, uniforms, plays, log
):
    """Play and learn the rows of a CSR stream with the mixture."""
    state, scratch = _borrow_state(state), _borrow_scratch(scratch)
    data, indices, indptr = borrow(data), borrow(indices), borrow(indptr)
    targets, uniforms = borrow(targets), borrow(uniforms)
    keep = len(plays) > 0
    plays = borrow(plays) if keep else scratch.play
    column = len(scratch.u) * len(state.rates) + 1
    for i in range(len(targets)):
        _prefetch_row(indices, indptr, i + 1, state.table)
        n = _fill_sparse(
            settings.scaling,
            data,
            indices,
            indptr[i],
            indptr[i + 1],
            settings.clip,
            state.table,
            column,
            settings.intercept,
            scratch.idx,
            scratch.val,
        )
        to = i if keep else 0
        _mixture_round(
            settings, state, scratch, n, targets, i, uniforms, plays, to, log
        )


@_compile()
def single_dense(settings, state, scratch, X, targets, uniforms, plays, log):
    """Play and learn the rows of a dense stream with one weight matrix.

    ``plays`` may have length 0: then they are only accounted for.
    """
    state, scratch = _borrow_state(state), _borrow_scratch(scratch)
    X, targets, uniforms = borrow(X), borrow(targets), borrow(uniforms)
    keep = len(plays) > 0
    plays = borrow(plays) if keep else scratch.play
    n = X.shape[1] + (1 if settings.intercept else 0)
    for i in range(len(X)):
        _fill_dense(
            settings.scaling,
            X,
            i,
            state.scalars[ROWS] + 1.0,
            settings.clip,
            state.mean,
            state.square,
            settings.intercept,
            scratch.val,
        )
        to = i if keep else 0
        _single_round(settings, state, scratch, n, targets, i, uniforms, plays, to, log)


@_compile()
def single_sparse(
    settings, state, scratch, data, indices, indptr, targets, uniforms, plays, log
):
    """Play and learn the rows of a CSR stream with one weight matrix."""
    state, scratch = _borrow_state(state), _borrow_scratch(scratch)
    data, indices, indptr = borrow(data), borrow(indices), borrow(indptr)
    targets, uniforms = borrow(targets), borrow(uniforms)
    keep = len(plays) > 0
    plays = borrow(plays) if keep else scratch.play
    column = len(scratch.u)
    for i in range(len(targets)):
        n = _fill_sparse(
            settings.scaling,
            data,
            indices,
            indptr[i],
            indptr[i + 1],
            settings.clip,
            state.table,
            column,
            settings.intercept,
            scratch.idx,
            scratch.val,
        )
        to = i if keep else 0
        _single_round(settings, state, scratch, n, targets, i, uniforms, plays, to, log)


@_compile()
def features_dense(scaling, intercept, clip, X, mean, square, first, out):
    """Fill out with the rows of a dense stream as the learner sees them."""
    for i in range(len(X)):
        count = first + i + 1.0
        _fill_dense(scaling, X, i, count, clip, mean, square, intercept, out[i])
