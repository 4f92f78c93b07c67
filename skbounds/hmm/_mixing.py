"""How fast a chain forgets."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

# What is less probable does not happen.
_NEVER = 1e-290
# Changes that the rate of convergence is taken from, and where they end.
_LAST, _ROUNDING = 6, 1e-10
# Share of the log-likelihood that is a rounding error of it.
_NO_GAIN = 1e-13


def stationary_law(transition):
    """Return pi with pi' A = pi', of sum one.

    By elimination without subtractions (Grassmann, Taksar and Heyman 1985), which is
    accurate in every entry. States that the chain leaves for good have probability 0;
    if it can end in several sets of states, these have weights in proportion to their
    sizes.
    """
    possible = transition > _NEVER
    if possible.all():
        return _irreducible_law(transition)
    n_sets, labels = connected_components(possible, connection="strong")
    law = np.zeros(len(transition))
    for label in range(n_sets):
        inside = labels == label
        if not possible[np.ix_(inside, ~inside)].any():
            part = _irreducible_law(transition[np.ix_(inside, inside)])
            law[inside] = inside.sum() * part
    return law / law.sum()


def _irreducible_law(transition):
    A = transition.copy()
    s = len(A)
    for k in range(s - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += A[:k, [k]] * A[[k], :k]
    law = np.ones(s)
    for k in range(1, s):
        law[k] = law[:k] @ A[:k, k]
        # Returns that hardly ever happen would let it overflow.
        law[: k + 1] /= law[: k + 1].max()
    return law / law.sum()


def mixing_constant(transition, law):
    """Return the largest eps with eps <= A(j, k) / pi(k) <= 1 / eps, (2.3)."""
    positive = law > 0.0
    if not positive.all() or not (transition > 0.0).all():
        return 0.0
    with np.errstate(over="ignore"):
        ratio = transition / law
        return float(np.minimum(ratio, 1.0 / ratio).min())


def reversible_gap(transition, law):
    """Return max |pi_j A(j, k) - pi_k A(k, j)|, 0 for a reversible chain, (2.2)."""
    flow = law[:, None] * transition
    return float(np.abs(flow - flow.T).max())


def projective_diameter(transition):
    """Return the largest log of A(i, j) A(k, l) / (A(i, l) A(k, j)); inf for zeros."""
    if not (transition > _NEVER).all():
        return np.inf
    logs = np.log(transition)
    # Of two rows the spread of the differences of their logarithms.
    gaps = logs[:, None, :] - logs[None, :, :]
    return float(np.ptp(gaps, axis=2).max())


def truncation_bound(transition, k):
    """Return a bound of what windows of reach k change in the law of a state.

    Of the sum over states of absolute differences, for any start law of the window;
    see `BaumWelchHMM.truncation_bound`.
    """
    diameter = projective_diameter(transition)
    if k == 0 or not np.isfinite(diameter):
        # One state has one law.
        return 2.0 if len(transition) > 1 else 0.0
    tau = np.tanh(diameter / 4.0)
    distance = diameter * (tau ** (k - 1) + tau**k)
    return float(2.0 * np.tanh(distance / 4.0))


def contraction_rate(changes):
    """Return the factor per iteration of the last changes of the parameters.

    nan where there are fewer than three, or nothing changed any more.
    """
    changes = np.asarray(changes, dtype=np.float64)
    if not len(changes):
        return np.nan
    # Beyond, changes are rounding errors.
    rounding = np.flatnonzero(changes <= _ROUNDING * changes.max())
    last = changes[: rounding[0] if len(rounding) else None][-_LAST:]
    if len(last) < 3:
        return np.nan
    # The slope of a line through their logarithms.
    places = np.arange(len(last)) - 0.5 * (len(last) - 1)
    return float(np.exp(places @ np.log(last) / (places @ places)))


def optimization_error(changes, rate):
    """Return how far the last iterate is from the fixed point, nan where not known."""
    if not len(changes) or np.isnan(rate):
        return 0.0 if len(changes) and changes[-1] == 0.0 else np.nan
    return float(changes[-1] * rate / (1.0 - rate)) if rate < 1.0 else np.inf


def draw_states(start, transition, n, n_sequences, rng):
    """Return the states of chains of n steps, one after the other."""
    heights = rng.uniform(size=(n_sequences, n))
    laws = np.cumsum(transition, axis=1)
    states = np.empty((n_sequences, n), dtype=np.int64)
    law = np.cumsum(start)
    if n_sequences == 1:
        for i in range(n):
            # The last entry of a law is 1 up to rounding.
            found = np.searchsorted(law, heights[0, i], side="right")
            states[0, i] = min(found, len(law) - 1)
            law = laws[states[0, i]]
        return states.ravel()
    edges = np.broadcast_to(law, (n_sequences, len(law)))
    for i in range(n):
        found = (heights[:, [i]] >= edges[:, :-1]).sum(axis=1)
        states[:, i] = found
        edges = laws[found]
    return states.ravel()


def remaining_gain(history):
    """Return how much the log-likelihood will still rise, as its last gains tell.

    Gains shrink by a factor in the end; it is taken as the larger one of the last two,
    and what is left is the sum of a geometric series. inf where gains do not shrink.
    """
    gains = np.abs(np.diff(history[-4:]))
    rounding = _NO_GAIN * max(abs(history[-1]), 1.0)
    if len(gains) and gains[-1] <= rounding:
        return float(gains[-1])
    if len(gains) < 3:
        return np.inf
    ratio = float(np.max(gains[1:] / np.maximum(gains[:-1], rounding)))
    return gains[-1] * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf
