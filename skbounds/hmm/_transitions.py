"""The M-step of the chain: any transition matrix, a stationary or a reversible one."""

from __future__ import annotations

import numpy as np

from skbounds.hmm._mixing import stationary_law

# Steps of the inner searches, and the relative gain at which they end.
_MAX_STEPS, _NO_GAIN = 200, 1e-15
# Expected numbers of pairs below which a row of the matrix was not visited.
_UNVISITED = 1e-300


def free_step(pairs, before):
    """Return rows proportional to the pairs; rows without any stay as they were."""
    total = pairs.sum(axis=1, keepdims=True)
    if total.min() > _UNVISITED:
        return pairs / total
    visited = total > _UNVISITED
    return np.where(visited, pairs / np.where(visited, total, 1.0), before)


def objective(transition, pairs, first):
    """Return sum of pairs log A + first log pi(A); the second only if not None."""
    seen = pairs > 0.0
    if (transition[seen] <= 0.0).any():
        return -np.inf
    value = float(pairs[seen] @ np.log(transition[seen]))
    if first is None:
        return value
    law = stationary_law(transition)
    starts = first > 0.0
    if (law[starts] <= 0.0).any():
        return -np.inf
    return value + float(first[starts] @ np.log(law[starts]))


def law_gradient(transition, first):
    """Return the derivative of sum first log pi(A) by the entries of A, or None.

    Up to a constant in each row, which rows of sum one do not feel. pi' dA Z is the
    change of pi, with Z the inverse of I - A + 1 pi'. None where A has no unique law.
    """
    law = stationary_law(transition)
    s = len(law)
    matrix = np.eye(s) - transition + law
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    ratio = np.where(first > 0.0, first / np.where(law > 0.0, law, 1.0), 0.0)
    gradient = np.outer(law, inverse @ ratio)
    return gradient if np.isfinite(gradient).all() else None


def stationary_step(pairs, first, before):
    """Return the transition matrix of greatest likelihood with sequences from its law.

    The maximum of sum pairs log A + sum first log pi(A). Each round replaces log pi by
    its tangent, for which rows are found exactly (A_jk = pairs_jk / (l_j - g_jk) with
    l_j the root that makes them sum to 1), and goes there as far as the value grows:
    it never falls, and goes on until the value hardly grows, for 200 rounds at most.
    Two rounds are extrapolated to a third where that is better still. Rows that no pair
    leaves stay as they were.
    """
    current = free_step(pairs, before)
    value = objective(current, pairs, first)
    old = objective(before, pairs, first)
    if not value >= old:
        current, value = before, old
    if not np.isfinite(value):
        return free_step(pairs, before)
    last = None
    for _ in range(_MAX_STEPS):
        gradient = law_gradient(current, first)
        if gradient is None:
            break
        target = np.array(
            [
                _tangent_row(c, g, a)
                for c, g, a in zip(pairs, gradient, current, strict=True)
            ]
        )
        step, share = target - current, 1.0
        while share > 1e-10:
            found = current + share * step
            new = objective(found, pairs, first)
            if new > value:
                break
            share *= 0.5
        else:
            break
        move = found - current
        if last is not None:
            # The next points of a geometric sequence.
            size = float((last * last).sum())
            ratio = float((move * last).sum()) / size if size > 0.0 else 0.0
            if 0.05 < ratio < 0.99:
                beyond = found + ratio / (1.0 - ratio) * move
                if (beyond >= 0.0).all():
                    better = objective(beyond, pairs, first)
                    if better > new:
                        found, new, move = beyond, better, None
        gain, value, current, last = new - value, new, found, move
        if gain <= _NO_GAIN * abs(value):
            break
    return current / current.sum(axis=1, keepdims=True)


def _tangent_row(pairs, gradient, before):
    """Return the row a of sum one that maximises pairs log a + gradient a."""
    seen = pairs > 0.0
    total = pairs.sum()
    if total <= _UNVISITED:
        return before
    c, g = pairs[seen], gradient[seen]
    g = g - g.max()
    # The sum of c / (l - g) falls from infinity to 0 beyond 0; Newton on its
    # reciprocal, which is concave and nearly linear.
    level = c[g == 0.0].sum()
    for _ in range(50):
        a = c / np.maximum(level - g, 1e-150)
        size = a.sum()
        slope = (a / np.maximum(level - g, 1e-150)).sum()
        new = level + size * (size - 1.0) / slope
        if abs(new - level) <= 1e-15 * abs(level):
            level = new
            break
        level = new
    row = np.zeros_like(before)
    row[seen] = c / np.maximum(level - g, 1e-150)
    return row / row.sum()


def reversible_step(pairs, first, before):
    """Return the reversible transition matrix of greatest likelihood, (2.2).

    A_jk = F_jk / F_j with symmetric flows F. In their logarithms the objective, pairs
    log F - (sum of pairs - first) log F_j - sum(first) log sum F, is concave but for
    states with more starts than leaves: Newton's method with the concave part's second
    derivatives, damped so that the value never falls. `first` is None for free start
    laws.
    """
    s = len(pairs)
    law = stationary_law(before)
    flows = law[:, None] * before
    flows = 0.5 * (flows + flows.T)
    counts = pairs + pairs.T
    upper = np.triu_indices(s)
    possible = counts[upper] > 0.0
    if not possible.any():
        return before
    rows, columns = upper[0][possible], upper[1][possible]
    weight = np.where(rows == columns, 0.5, 1.0) * counts[rows, columns]
    # Rows that no pair reaches stay as they were.
    reached = np.zeros(s, dtype=bool)
    reached[rows], reached[columns] = True, True
    members = np.zeros((s, len(rows)))
    members[rows, np.arange(len(rows))] = 1.0
    members[columns, np.arange(len(rows))] = 1.0
    begins = np.zeros(s) if first is None else np.where(reached, first, 0.0)
    leaves = pairs.sum(axis=1)
    log_flow = np.log(np.maximum(flows[rows, columns], 1e-300))

    def parts(log_flow):
        flow = np.exp(log_flow)
        size = members @ flow
        return flow, size, float(size.sum())

    def value_of(log_flow):
        _, size, total = parts(log_flow)
        logs = np.log(size[reached])
        result = weight @ log_flow - (leaves - begins)[reached] @ logs
        return result - begins.sum() * np.log(total)

    value = value_of(log_flow)
    for _ in range(_MAX_STEPS):
        flow, size, total = parts(log_flow)
        safe = np.where(reached, size, 1.0)
        shares = members * flow / safe[:, None]
        overall = members.sum(axis=0) * flow / total
        net = np.where(reached, leaves - begins, 0.0)
        gradient = weight - net @ shares - begins.sum() * overall
        # Of the concave part only: a direction of ascent.
        kept = np.maximum(net, 0.0)
        hessian = np.diag(kept @ shares) - (shares.T * kept) @ shares
        hessian += begins.sum() * (np.diag(overall) - np.outer(overall, overall))
        ridge = 1e-12 * max(np.trace(hessian) / len(rows), 1e-300)
        hessian[np.diag_indices(len(rows))] += ridge
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        largest = np.abs(step).max()
        if largest > 3.0:
            step *= 3.0 / largest
        share = 1.0
        while share > 1e-10:
            new = value_of(log_flow + share * step)
            if new > value:
                break
            share *= 0.5
        else:
            break
        log_flow = log_flow + share * step
        log_flow -= np.log(parts(log_flow)[2])
        gain, value = new - value, new
        if gain <= _NO_GAIN * max(abs(value), 1.0):
            break
    matrix = np.zeros((s, s))
    matrix[rows, columns] = np.exp(log_flow)
    matrix[columns, rows] = matrix[rows, columns]
    size = matrix.sum(axis=1, keepdims=True)
    return np.where(size > 0.0, matrix / np.where(size > 0.0, size, 1.0), before)


def symmetrised(transition):
    """Return the reversible chain with the mean of the flows in both directions."""
    law = stationary_law(transition)
    flows = law[:, None] * transition
    flows = flows + flows.T
    size = flows.sum(axis=1, keepdims=True)
    return np.where(size > 0.0, flows / np.where(size > 0.0, size, 1.0), transition)
