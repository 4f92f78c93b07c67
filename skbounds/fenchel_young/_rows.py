"""One row of each structure: prediction, loss, decoding and exact draws, compiled.

Five polytopes, seven losses, one interface. Scores ``theta`` and points ``u`` are
float64 vectors of length D; a target or play is an int64 vector in the user's form:

============= ============== =================================================
structure     D              target and play
============= ============== =================================================
simplex       classes        one entry: the class code
cube          labels         the 0/1 labels
chain         levels - 1     one entry: the level code; its vertex starts with
                             that many ones
permutahedron items          the values 1..D, the largest on top
birkhoff      items squared  the position of each item, from 0
============= ============== =================================================

Equation, theorem and algorithm numbers: Sakaue, Bao, Tsuchiya and Oki (2024).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from skbounds._jit import compile_nogil

# Divisions that check for zero do not vectorise. A function that says nothing about
# fastmath takes it over from the one that calls it first.
_compile = partial(compile_nogil, error_model="numpy", fastmath=False)

# The two simplices differ in the norm of Algorithm 1.
SIMPLEX, EUCLIDEAN_SIMPLEX, CUBE, CHAIN, PERMUTAHEDRON, BIRKHOFF = range(6)
RANDOMIZED, ARGMAX, SAMPLE, COORDINATEWISE = range(4)
(
    LOGISTIC,
    SPARSEMAX,
    CUBE_SPARSEMAP,
    CUBE_SIGMOID,
    CHAIN_SPARSEMAP,
    PERMUTAHEDRON_SPARSEMAP,
    BIRKHOFF_ENTROPIC,
) = range(7)

# Matrix scaling stops when every row sum is this close to one.
_SINKHORN_TOLERANCE = 1e-10
_SINKHORN_MAX_ITER = 60
_NEWTON_MAX_ITER = 200
# Beyond this range of scores exponentials lose digits and scaling is slow anyway.
_SINKHORN_RANGE = 30.0
# Entries of a doubly stochastic matrix this close to 0 or 1 count as integral.
_INTEGRAL = 1e-12


# ---------------------------------------------------------------- predictions


@_compile()
def _softmax(theta, u):
    """Fill u with the softmax; return the log-sum-exp."""
    top = theta[0]
    for k in range(1, len(theta)):
        top = max(top, theta[k])
    total = 0.0
    for k in range(len(theta)):
        u[k] = math.exp(theta[k] - top)
        total += u[k]
    for k in range(len(theta)):
        u[k] /= total
    return top + math.log(total)


@_compile()
def _project_simplex(theta, u):
    """Fill u with the Euclidean projection on the probability simplex."""
    ordered = np.sort(theta)
    n = len(theta)
    # Relative to the largest score, so that 1 does not drown in it.
    top = ordered[n - 1]
    total, threshold = 0.0, 0.0
    for k in range(n):
        score = ordered[n - 1 - k] - top
        total += score
        candidate = (total - 1.0) / (k + 1)
        if score <= candidate:
            break
        threshold = candidate
    for k in range(n):
        u[k] = max(0.0, theta[k] - top - threshold)


@_compile()
def _pool_adjacent(values, out):
    """Fill out with the non-increasing isotonic regression of the values."""
    n = len(values)
    mean = np.empty(n)
    size = np.empty(n, np.int64)
    blocks = 0
    for i in range(n):
        mean[blocks] = values[i]
        size[blocks] = 1
        blocks += 1
        while blocks > 1 and mean[blocks - 2] <= mean[blocks - 1]:
            both = size[blocks - 2] + size[blocks - 1]
            mean[blocks - 2] += (
                (mean[blocks - 1] - mean[blocks - 2]) * size[blocks - 1] / both
            )
            size[blocks - 2] = both
            blocks -= 1
    position = 0
    for block in range(blocks):
        for _ in range(size[block]):
            out[position] = mean[block]
            position += 1


@_compile()
def _project_permutahedron(theta, u):
    """Fill u with the projection on the permutahedron of (D, ..., 1).

    Sorted decreasingly it is ``s - isotonic(s - (D, ..., 1))`` (Appendix C.1).
    """
    n = len(theta)
    order = np.argsort(-theta, kind="mergesort")
    # Nothing is pooled across a gap of n or more: cutting gaps there changes nothing,
    # and keeps the digits of the small ones beside huge scores.
    ordered = np.zeros(n)
    for i in range(n - 2, -1, -1):
        gap = theta[order[i]] - theta[order[i + 1]]
        ordered[i] = ordered[i + 1] + min(gap, float(n))
    excess = np.empty(n)
    for i in range(n):
        excess[i] = ordered[i] - (n - i)
    pooled = np.empty(n)
    _pool_adjacent(excess, pooled)
    for i in range(n):
        u[order[i]] = ordered[i] - pooled[i]


@_compile()
def _assign(gain, columns, row, prices):
    """Fill a row of columns with the assignment of largest gain (Hungarian method).

    ``prices`` becomes the rows' dual variables: with some column prices,
    ``gain_ij + row_i + column_j <= 0``, and 0 on the assignment.
    """
    n = columns.shape[1]
    row_price = np.zeros(n + 1)
    column_price = np.zeros(n + 1)
    row_of = np.zeros(n + 1, np.int64)
    before = np.zeros(n + 1, np.int64)
    slack = np.empty(n + 1)
    used = np.empty(n + 1, np.bool_)
    for i in range(1, n + 1):
        row_of[0] = i
        j = 0
        slack[:] = np.inf
        used[:] = False
        while True:
            used[j] = True
            at = row_of[j]
            step, best = np.inf, 0
            for k in range(1, n + 1):
                if not used[k]:
                    reduced = (
                        -gain[(at - 1) * n + k - 1] - row_price[at] - column_price[k]
                    )
                    if reduced < slack[k]:
                        slack[k] = reduced
                        before[k] = j
                    if slack[k] < step:
                        step, best = slack[k], k
            for k in range(n + 1):
                if used[k]:
                    row_price[row_of[k]] += step
                    column_price[k] -= step
                else:
                    slack[k] -= step
            j = best
            if row_of[j] == 0:
                break
        while j != 0:
            row_of[j] = row_of[before[j]]
            j = before[j]
    for k in range(1, n + 1):
        columns[row, row_of[k] - 1] = k - 1
        prices[k - 1] = row_price[k]


@_compile()
def _scale_matrix(theta, mu, high, left):
    """Scale ``exp(mu * (theta - high))`` alternately; return whether it converged.

    ``left`` becomes the logarithms of the row factors.
    """
    n = len(left)
    kernel = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            kernel[i, j] = math.exp(mu * (theta[i * n + j] - high))
    rows = np.ones(n)
    right = np.empty(n)
    columns = np.empty(n)
    # Row sums tell something only where the column sums are right.
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += kernel[i, j]
        right[j] = 1.0 / total
    converged = False
    for _ in range(_SINKHORN_MAX_ITER):
        worst = 0.0
        for j in range(n):
            columns[j] = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += kernel[i, j] * right[j]
            worst = max(worst, abs(rows[i] * total - 1.0))
            rows[i] = 1.0 / total
            for j in range(n):
                columns[j] += kernel[i, j] * rows[i]
        if worst <= _SINKHORN_TOLERANCE:
            converged = True
            break
        for j in range(n):
            right[j] = 1.0 / columns[j]
    for i in range(n):
        left[i] = math.log(rows[i])
    return converged


@_compile()
def _normalise_columns(theta, mu, left, matrix):
    """Fill the matrix whose columns sum to one; return the dual objective."""
    n = len(left)
    value = 0.0
    for i in range(n):
        value += left[i]
    for j in range(n):
        top = -np.inf
        for i in range(n):
            top = max(top, mu * theta[i * n + j] + left[i])
        total = 0.0
        for i in range(n):
            matrix[i, j] = math.exp(mu * theta[i * n + j] + left[i] - top)
            total += matrix[i, j]
        for i in range(n):
            matrix[i, j] /= total
        value -= top + math.log(total)
    return value


@_compile()
def _newton_direction(matrix, gradient, step):
    """Solve the dual's Newton system, a graph Laplacian; the first entry stays 0.

    Couplings ``sum_j P_ij P_kj`` may be tiny, and are the reason why alternate scaling
    is slow: elimination on the couplings loses nothing to cancellation.
    """
    n = len(gradient)
    system = np.zeros((n, n))
    for i in range(n):
        step[i] = gradient[i]
        for k in range(n):
            if k != i:
                for j in range(n):
                    system[i, k] += matrix[i, j] * matrix[k, j]
    diagonal = np.zeros(n)
    for i in range(n - 1, 0, -1):
        for k in range(i):
            diagonal[i] += system[i, k]
        if diagonal[i] <= 0.0:
            continue
        for k in range(i):
            ratio = system[k, i] / diagonal[i]
            step[k] += ratio * step[i]
            for m in range(i):
                if m != k:
                    system[k, m] += ratio * system[i, m]
    step[0] = 0.0
    for i in range(1, n):
        if diagonal[i] <= 0.0:
            step[i] = 0.0
            continue
        for k in range(i):
            step[i] += system[i, k] * step[k]
        step[i] /= diagonal[i]


@_compile()
def _newton_dual(theta, mu, left):
    """Maximise the entropic projection's dual in the row factors' logarithms.

    Damped Newton steps; where one does not ascend, a step of alternate scaling.
    """
    n = len(left)
    matrix, trial_matrix = np.empty((n, n)), np.empty((n, n))
    gradient, step, trial = np.empty(n), np.empty(n), np.empty(n)
    value = _normalise_columns(theta, mu, left, matrix)
    for _ in range(_NEWTON_MAX_ITER):
        worst = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += matrix[i, j]
            gradient[i] = 1.0 - total
            worst = max(worst, abs(gradient[i]))
        if worst <= _SINKHORN_TOLERANCE:
            break
        _newton_direction(matrix, gradient, step)
        slope, longest = 0.0, 0.0
        for i in range(n):
            slope += step[i] * gradient[i]
            longest = max(longest, abs(step[i]))
        rate = min(1.0, 30.0 / longest) if longest > 0.0 else 0.0
        accepted = False
        while slope > 0.0 and rate > 1e-4:
            for i in range(n):
                trial[i] = left[i] + rate * step[i]
            new = _normalise_columns(theta, mu, trial, trial_matrix)
            # Close to the optimum the gain drowns in rounding.
            if new >= value + 0.1 * rate * slope - 1e-12 * (1.0 + abs(value)):
                accepted = True
                break
            rate *= 0.3
        if not accepted:
            for i in range(n):
                trial[i] = left[i] - math.log(max(1.0 - gradient[i], 1e-300))
            new = _normalise_columns(theta, mu, trial, trial_matrix)
        value = new
        for i in range(n):
            left[i] = trial[i]
        matrix, trial_matrix = trial_matrix, matrix


@_compile()
def _project_birkhoff(theta, mu, u):
    """Fill u with the entropic projection on the doubly stochastic matrices.

    Alternate scaling of ``exp(mu * theta)`` (Sinkhorn), then Newton's method where
    that is slow; the last step makes both marginals exact, scaling rows and columns
    down and adding the missing mass as a rank-one matrix.
    """
    n = round(math.sqrt(len(theta)))
    low, high = theta[0], theta[0]
    for value in theta:
        low = min(low, value)
        high = max(high, value)
    left = np.empty(n)
    kernel = np.empty((n, n))
    converged = False
    if mu * (high - low) <= _SINKHORN_RANGE:
        converged = _scale_matrix(theta, mu, high, left)
    else:
        # The assignment's prices are the optimal factors without regularisation.
        _assign(theta, np.empty((1, n), np.int64), 0, left)
        for i in range(n):
            left[i] *= mu
    if not converged:
        _newton_dual(theta, mu, left)
    _normalise_columns(theta, mu, left, kernel)
    rows = np.empty(n)
    columns = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += kernel[i, j]
        factor = min(1.0, 1.0 / total) if total > 0.0 else 1.0
        for j in range(n):
            kernel[i, j] *= factor
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += kernel[i, j]
        factor = min(1.0, 1.0 / total) if total > 0.0 else 1.0
        for i in range(n):
            kernel[i, j] *= factor
    missing = 0.0
    for i in range(n):
        rows[i] = 1.0
        for j in range(n):
            rows[i] -= kernel[i, j]
        missing += rows[i]
    for j in range(n):
        columns[j] = 1.0
        for i in range(n):
            columns[j] -= kernel[i, j]
    for i in range(n):
        for j in range(n):
            extra = rows[i] * columns[j] / missing if missing > 0.0 else 0.0
            u[i * n + j] = max(0.0, kernel[i, j] + extra)


@_compile()
def softplus(value):
    """Return log(1 + exp(value)) without overflow."""
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


@_compile()
def sigmoid(value):
    """Return 1 / (1 + exp(-value)) without overflow."""
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    power = math.exp(value)
    return power / (1.0 + power)


@_compile()
def predict(loss, mu, theta, u):
    """Fill u with the regularised prediction (Definition 2.2).

    Returns the log-sum-exp of the scores for the logistic loss, else 0.
    """
    if loss == LOGISTIC:
        return _softmax(theta, u)
    if loss == SPARSEMAX:
        _project_simplex(theta, u)
    elif loss == CUBE_SPARSEMAP:
        for i in range(len(theta)):
            u[i] = min(max(theta[i], 0.0), 1.0)
    elif loss == CUBE_SIGMOID:
        for i in range(len(theta)):
            u[i] = sigmoid(theta[i])
    elif loss == CHAIN_SPARSEMAP:
        _pool_adjacent(theta, u)
        for i in range(len(theta)):
            u[i] = min(max(u[i], 0.0), 1.0)
    elif loss == PERMUTAHEDRON_SPARSEMAP:
        _project_permutahedron(theta, u)
    else:
        _project_birkhoff(theta, mu, u)
    return 0.0


@_compile(forceinline=True)
def fill_vertex(structure, targets, row, y):
    """Fill y with the vertex that a target stands for."""
    if structure <= EUCLIDEAN_SIMPLEX:
        for i in range(len(y)):
            y[i] = 0.0
        y[targets[row, 0]] = 1.0
    elif structure == CHAIN:
        for i in range(len(y)):
            y[i] = 1.0 if i < targets[row, 0] else 0.0
    elif structure == BIRKHOFF:
        n = targets.shape[1]
        for i in range(len(y)):
            y[i] = 0.0
        for i in range(n):
            y[i * n + targets[row, i]] = 1.0
    else:
        for i in range(len(y)):
            y[i] = targets[row, i]


@_compile()
def respond(loss, structure, mu, theta, targets, row, u, residual):
    """Fill u and the residual ``u - y``; return the unscaled loss S(theta; y)."""
    normalizer = predict(loss, mu, theta, u)
    fill_vertex(structure, targets, row, residual)
    value = 0.0
    if loss == LOGISTIC:
        value = normalizer - theta[targets[row, 0]]
    elif loss == CUBE_SIGMOID:
        for i in range(len(theta)):
            value += softplus(-theta[i] if residual[i] == 1.0 else theta[i])
    elif loss == BIRKHOFF_ENTROPIC:
        for i in range(len(theta)):
            value += theta[i] * (u[i] - residual[i])
            if u[i] > 0.0:
                value -= u[i] * math.log(u[i]) / mu
    else:
        # |y - theta|^2 / 2 - |u - theta|^2 / 2, as a product: no cancellation.
        for i in range(len(theta)):
            value += 0.5 * (residual[i] - u[i]) * (residual[i] + u[i] - 2.0 * theta[i])
    for i in range(len(theta)):
        residual[i] = u[i] - residual[i]
    return max(value, 0.0)


# ---------------------------------------------------------------- decoding


@_compile(forceinline=True)
def nearest(structure, u, vertices, row):
    """Fill a row with the vertex nearest to u, in the user's form (Prop. 3.2, C.1).

    Ties: the lower class, label 0, the earlier item below.
    """
    if structure <= EUCLIDEAN_SIMPLEX:
        best = 0
        for k in range(1, len(u)):
            if u[k] > u[best]:
                best = k
        vertices[row, 0] = best
    elif structure == CUBE:
        for i in range(len(u)):
            vertices[row, i] = 1 if u[i] > 0.5 else 0
    elif structure == CHAIN:
        level = 0
        for i in range(len(u)):
            if u[i] > 0.5:
                level += 1
        vertices[row, 0] = level
    elif structure == PERMUTAHEDRON:
        order = np.argsort(u, kind="mergesort")
        for i in range(len(u)):
            vertices[row, order[i]] = i + 1
    else:
        # Equal probabilities differ by errors of the scaling, which must not decide.
        gain = np.empty(len(u))
        for i in range(len(u)):
            gain[i] = np.rint(u[i] * 2.0**30)
        _assign(gain, vertices, row, np.empty(vertices.shape[1]))


@_compile(forceinline=True)
def _law_of_coordinate(u):
    """Return P(1) when Algorithm 1 is run on one coordinate."""
    return 2.0 * u * u if u <= 0.5 else 1.0 - 2.0 * (1.0 - u) * (1.0 - u)


@_compile(forceinline=True)
def mixing_rate(structure, u, vertices, row):
    """Return p = min(1, 2 |y* - u| / nu), the chance that Algorithm 1 randomises.

    The norms are l1 with nu = 2 (simplex) and nu = 4 (birkhoff), l2 with nu = 1
    (cube, chain) and nu = sqrt 2 (permutahedron, simplex of the sparsemax loss).
    """
    if structure == SIMPLEX:
        return min(1.0, 2.0 * (1.0 - u[vertices[row, 0]]))
    if structure == BIRKHOFF:
        n = vertices.shape[1]
        gap = float(n)
        for i in range(n):
            gap -= u[i * n + vertices[row, i]]
        return min(1.0, max(gap, 0.0))
    total = 0.0
    if structure == CHAIN:
        for i in range(len(u)):
            one = 1.0 if i < vertices[row, 0] else 0.0
            total += (u[i] - one) ** 2
    elif structure == EUCLIDEAN_SIMPLEX:
        for k in range(len(u)):
            one = 1.0 if k == vertices[row, 0] else 0.0
            total += (u[k] - one) ** 2
    else:
        for i in range(len(u)):
            total += (u[i] - vertices[row, i]) ** 2
    if structure == PERMUTAHEDRON or structure == EUCLIDEAN_SIMPLEX:
        return min(1.0, math.sqrt(2.0 * total))
    return min(1.0, 2.0 * math.sqrt(total))


@_compile(forceinline=True)
def loss_at(structure, u, targets, row):
    """Return the target loss L(u; y), affine in the point u of the polytope."""
    n = len(u)
    total = 0.0
    if structure <= EUCLIDEAN_SIMPLEX:
        return 1.0 - u[targets[row, 0]]
    if structure == CUBE:
        for i in range(n):
            total += abs(u[i] - targets[row, i])
        return total / n
    if structure == CHAIN:
        for i in range(n):
            total += 1.0 - u[i] if i < targets[row, 0] else u[i]
        return total / n
    if structure == PERMUTAHEDRON:
        if n == 1:
            return 0.0
        for i in range(n):
            total += targets[row, i] * (targets[row, i] - u[i])
        return 6.0 * total / (n * (n * n - 1.0))
    items = targets.shape[1]
    for i in range(items):
        total += 1.0 - u[i * items + targets[row, i]]
    return total / items


@_compile(forceinline=True)
def loss_between(structure, n_outputs, plays, play_row, targets, row):
    """Return the target loss of a play."""
    total = 0.0
    if structure <= EUCLIDEAN_SIMPLEX:
        return 0.0 if plays[play_row, 0] == targets[row, 0] else 1.0
    if structure == CHAIN:
        return abs(plays[play_row, 0] - targets[row, 0]) / n_outputs
    n = targets.shape[1]
    if structure == PERMUTAHEDRON:
        if n == 1:
            return 0.0
        for i in range(n):
            total += (plays[play_row, i] - targets[row, i]) ** 2
        return 3.0 * total / (n * (n * n - 1.0))
    for i in range(n):
        if plays[play_row, i] != targets[row, i]:
            total += 1.0
    return total / n


@_compile()
def _draw_permutation(u, uniforms, row, first, plays, to):
    """Fill a play with a random permutation of mean u (a chain of T-transforms).

    Sorted, u is majorised by w = (D, ..., 1). Moving w to u takes at most D - 1
    transfers between two positions (Hardy, Littlewood and Polya); swapping the two
    with the matching probability, in the same order, has mean u.
    """
    n = len(u)
    order = np.argsort(-u, kind="mergesort")
    weight = np.empty(n)
    value = np.empty(n, np.int64)
    for i in range(n):
        weight[i] = n - i
        value[i] = n - i
    for step in range(n - 1):
        upper = -1
        for i in range(n):
            if u[order[i]] < weight[i] - _INTEGRAL * n:
                upper = i
        if upper < 0:
            break
        lower = upper + 1
        while lower < n and u[order[lower]] <= weight[lower]:
            lower += 1
        if lower == n:
            break
        shift = min(weight[upper] - u[order[upper]], u[order[lower]] - weight[lower])
        chance = shift / (weight[upper] - weight[lower])
        weight[upper] -= shift
        weight[lower] += shift
        if uniforms[row, first + step] < chance:
            value[upper], value[lower] = value[lower], value[upper]
    for i in range(n):
        plays[to, order[i]] = value[i]


@_compile()
def _draw_assignment(u, uniforms, row, first, plays, to):
    """Fill a play with a random assignment of mean u (cycle rounding).

    While an entry is fractional, walk rows and columns through fractional entries to a
    cycle and shift mass alternately along it, up or down with the probabilities that
    keep the mean; each step makes at least one entry integral.
    """
    n = plays.shape[1]
    matrix = u.copy()
    for i in range(n * n):
        if matrix[i] < _INTEGRAL:
            matrix[i] = 0.0
        elif matrix[i] > 1.0 - _INTEGRAL:
            matrix[i] = 1.0
    row_step = np.empty(n, np.int64)
    column_step = np.empty(n, np.int64)
    path = np.empty(2 * n + 2, np.int64)
    start = 0
    for draw in range(n * n):
        found = -1
        for i in range(start, n):
            for j in range(n):
                if 0.0 < matrix[i * n + j] < 1.0:
                    found = i
                    break
            if found >= 0:
                break
        if found < 0:
            break
        start = found
        row_step[:] = -1
        column_step[:] = -1
        line, column, length, begin = found, -1, 0, -1
        while begin < 0:
            row_step[line] = length
            following = -1
            for j in range(n):
                if j != column and 0.0 < matrix[line * n + j] < 1.0:
                    following = j
                    break
            if following < 0:
                break
            path[length] = line * n + following
            length += 1
            column = following
            if column_step[column] >= 0:
                begin = column_step[column]
                break
            column_step[column] = length
            following = -1
            for i in range(n):
                if i != line and 0.0 < matrix[i * n + column] < 1.0:
                    following = i
                    break
            if following < 0:
                break
            path[length] = following * n + column
            length += 1
            line = following
            if row_step[line] >= 0:
                begin = row_step[line]
        if begin < 0:
            # A lone fractional entry is rounding error.
            entry = path[max(length - 1, 0)]
            matrix[entry] = 1.0 if matrix[entry] > 0.5 else 0.0
            continue
        up, down = 1.0, 1.0
        for k in range(begin, length):
            entry = matrix[path[k]]
            if (k - begin) % 2 == 0:
                up, down = min(up, 1.0 - entry), min(down, entry)
            else:
                up, down = min(up, entry), min(down, 1.0 - entry)
        shift = up if uniforms[row, first + draw] * (up + down) < down else -down
        for k in range(begin, length):
            entry = path[k]
            matrix[entry] += shift if (k - begin) % 2 == 0 else -shift
            if matrix[entry] < _INTEGRAL:
                matrix[entry] = 0.0
            elif matrix[entry] > 1.0 - _INTEGRAL:
                matrix[entry] = 1.0
    taken = np.zeros(n, np.bool_)
    valid = True
    for i in range(n):
        best = 0
        for j in range(1, n):
            if matrix[i * n + j] > matrix[i * n + best]:
                best = j
        plays[to, i] = best
        valid = valid and not taken[best]
        taken[best] = True
    if not valid:
        _assign(matrix, plays, to, np.empty(n))


@_compile(forceinline=True)
def sample_vertex(structure, u, uniforms, row, first, plays, to):
    """Fill a play with a random vertex of mean u, from ``uniforms[row, first:]``."""
    if structure <= EUCLIDEAN_SIMPLEX:
        total = 0.0
        for k in range(len(u)):
            if u[k] > 0.0:
                plays[to, 0] = k
                total += u[k]
                if uniforms[row, first] < total:
                    break
    elif structure == CUBE:
        for i in range(len(u)):
            plays[to, i] = 1 if uniforms[row, first + i] < u[i] else 0
    elif structure == CHAIN:
        level = 0
        while level < len(u) and uniforms[row, first] < u[level]:
            level += 1
        plays[to, 0] = level
    elif structure == PERMUTAHEDRON:
        _draw_permutation(u, uniforms, row, first, plays, to)
    else:
        _draw_assignment(u, uniforms, row, first, plays, to)


@_compile(forceinline=True)
def _surely_randomises(u, n):
    """Tell cheaply that no assignment comes near u: row maxima bound its gain."""
    gap = float(n)
    for i in range(n):
        best = u[i * n]
        for j in range(1, n):
            best = max(best, u[i * n + j])
        gap -= best
    return gap >= 1.0


@_compile(forceinline=True)
def decode(structure, decoding, u, uniforms, row, plays, to, mean):
    """Play on u: fill a play with a draw and mean with E[vertex] of the decoding.

    Algorithm 1 draws the nearest vertex with probability 1 - p and otherwise a random
    vertex of mean u, so its mean is ``(1 - p) y* + p u``.
    """
    n = len(u)
    if decoding == COORDINATEWISE:
        for i in range(n):
            mean[i] = _law_of_coordinate(u[i])
        sample_vertex(structure, mean, uniforms, row, 0, plays, to)
        return
    if decoding == SAMPLE or (
        structure == BIRKHOFF
        and decoding == RANDOMIZED
        and _surely_randomises(u, plays.shape[1])
    ):
        for i in range(n):
            mean[i] = u[i]
        first = 0 if decoding == SAMPLE else 1
        sample_vertex(structure, u, uniforms, row, first, plays, to)
        return
    nearest(structure, u, plays, to)
    fill_vertex(structure, plays, to, mean)
    if decoding == ARGMAX:
        return
    rate = mixing_rate(structure, u, plays, to)
    for i in range(n):
        mean[i] += rate * (u[i] - mean[i])
    if uniforms[row, 0] < rate:
        sample_vertex(structure, u, uniforms, row, 1, plays, to)


# ---------------------------------------------------------------- many rows


@_compile()
def predict_rows(loss, mu, theta, u):
    """Fill the rows of u with the regularised predictions of the rows of theta."""
    for i in range(len(theta)):
        predict(loss, mu, theta[i], u[i])


@_compile()
def respond_rows(loss, structure, mu, theta, targets, values, residual):
    """Fill the losses and residuals of all rows."""
    u = np.empty(theta.shape[1])
    for i in range(len(theta)):
        values[i] = respond(loss, structure, mu, theta[i], targets, i, u, residual[i])


@_compile()
def nearest_rows(structure, u, vertices):
    """Fill the nearest vertices of all rows."""
    for i in range(len(u)):
        nearest(structure, u[i], vertices, i)


@_compile()
def decode_rows(structure, decoding, u, uniforms, plays, means):
    """Fill plays and their means for all rows."""
    for i in range(len(u)):
        decode(structure, decoding, u[i], uniforms, i, plays, i, means[i])
