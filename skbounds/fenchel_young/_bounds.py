"""Regret bounds and certificates as plain formulas.

Notation: ``ratio`` bounds the expected target loss per unit of the unscaled surrogate
loss S, ``curvature`` the squared residual per unit of S, ``scale`` is the factor c of
the surrogate loss ``c S``, ``length`` the largest row norm C and ``norm`` the
comparator's Frobenius norm. Then the surrogate gap is ``a = 1 - ratio / c`` and the
gradients satisfy ``|grad|^2 <= b c S`` with ``b = c curvature C^2``. A natural step s
is the step of gradient descent on S; ``m = s curvature C^2 / 2`` is what it costs.

Theorem numbers: Sakaue, Bao, Tsuchiya and Oki (2024).
"""

from __future__ import annotations

from math import inf, isfinite, log, nan

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

# Rates of the supermartingales that are mixed.
_RATES = np.geomspace(1e-3, 8.0, 60)


def surrogate_gap(ratio: float, scale: float) -> float:
    """Return a, negative or -inf where the decoding has no gap."""
    return 1.0 - ratio / scale


def natural_step(gap: float, curvature: float, length: float) -> float:
    """Return the step of Theorem 4.2 on the unscaled loss; 0 for rows of length 0."""
    if length == 0.0:
        return 0.0
    cost = 0.5 if not isfinite(gap) or gap <= 0.0 else min(0.5, gap)
    return 2.0 * cost / (curvature * length * length)


def constant_step_bound(
    gap: float, scale: float, curvature: float, length: float, step: float, norm: float
) -> float:
    """Return the bound of Theorem 4.2 for any step that the gap pays for.

    ``(1 - a) b |U|^2 / (4 (1 - m) m)`` for m <= a, else nan.
    """
    if not gap > 0.0:
        return nan
    if length == 0.0:
        return 0.0
    cost = 0.5 * step * curvature * length * length
    if not (0.0 < cost <= gap * (1.0 + 1e-9) and cost < 1.0):
        return nan
    regularity = scale * curvature * length * length
    return (1.0 - gap) * regularity * norm * norm / (4.0 * (1.0 - cost) * cost)


def constant_step_high_probability_bound(
    gap: float,
    scale: float,
    curvature: float,
    length: float,
    step: float,
    norm: float,
    loss_range: float,
    delta: float,
) -> float:
    """Return the corrected bound of Theorem 4.3, for the step a / b; else nan.

    ``((1 - a) b |U|^2 / (1 - a/2) + gamma D ln(1/delta)) / a``; the proof's last
    display drops the factor ``1 / (1 - a/2)``.
    """
    cost = 0.5 * step * curvature * length * length
    if not 0.0 < gap < 1.0 or abs(cost - 0.5 * gap) > 1e-9:
        return nan
    regularity = scale * curvature * length * length
    fixed = (1.0 - gap) * regularity * norm * norm / (1.0 - 0.5 * gap)
    return (fixed + loss_range * log(1.0 / delta)) / gap


def mixture_ratio(ratio: float, share: float) -> float:
    """Return the ratio for a mixture: sharing costs a factor of the log-loss."""
    factor = 1.0 + log(1.0 - share)
    return ratio / factor if factor > 0.0 else inf


def mixture_step(ratio: float, curvature: float) -> float:
    """Return the largest step of expert 0 that the gap pays for, in units of 1/C^2.

    Rounded down to two digits: .62 for the softmax with the default sharing.
    """
    step = 2.0 * (1.0 - ratio) / curvature
    return int(100.0 * step) / 100.0 if step >= 0.01 else step


def mixture_bound(
    ratio: float,
    curvature: float,
    length: float,
    step: float,
    norm: float,
    log_experts: float,
) -> float:
    """Return ``C^2 |U|^2 / (2 s) + ratio ln M``; nan if the step exceeds the gap."""
    if not 0.0 < 0.5 * step * curvature <= 1.0 - ratio:
        return nan
    return length * length * norm * norm / (2.0 * step) + ratio * log_experts


def adaptive_bound(
    gap: float, scale: float, curvature: float, length: float, diameter: float
) -> float:
    """Return the bound of Theorem E.1 for comparators in the ball; nan if no gap."""
    if not 0.0 < gap <= 1.0:
        return nan
    regularity = scale * curvature * length * length
    return 2.0 * (1.0 - gap) * regularity * diameter * diameter / gap


def linear_certificate(
    expected: float, surrogate: float, inner: float, product: float
) -> float:
    """Return what the accounts prove about the regret, for any learner.

    By convexity the surrogate regret is at most ``sum <grad, W_t> - <U, sum grad>``;
    the expected target loss replaces the learner's own surrogate loss. `product` is
    ``-<U, sum grad>``, or ``|U| |sum grad|`` for all U of a norm.
    """
    return inner + product - surrogate + expected


def draw_margin(variance: float, delta: float) -> float:
    """Return B: at all times ``sum L_t <= sum e_t + B``, with probability 1 - delta.

    L_t in [0, 1] has the mean e_t given the past, and the variance sums to at most
    ``sum e_t (1 - e_t)``. By Bennett's inequality exp(l (L - e) - V (e^l - 1 - l)) is a
    supermartingale; their mean over rates l is at most 1 / delta at all times (Ville).
    """
    budget = -log(delta) + log(len(_RATES))

    def excess(margin):
        powers = _RATES * margin - variance * (np.expm1(_RATES) - _RATES)
        return logsumexp(powers) - budget

    upper = 1.0
    while excess(upper) < 0.0:
        upper *= 2.0
    return float(brentq(excess, 0.0, upper, xtol=1e-12, rtol=1e-13))


def anytime_interval(total: float, n: int, alpha: float) -> tuple[float, float]:
    """Return limits for the mean of the conditional means of losses, at all times.

    Parameters
    ----------
    total : float
        Sum of the losses, which are in [0, 1].
    n : int
        Their number.
    alpha : float
        Probability that the limits fail at some time.

    With R_t the conditional means, prod exp(l L_t) / (1 + R_t (e^l - 1)) is a
    supermartingale for every l, and its logarithm is concave in the R_t, which may be
    replaced by their mean; mixed over rates l of both signs.
    """
    if n == 0:
        return 0.0, 1.0
    budget = log(2.0 / alpha) + log(len(_RATES))

    def excess(mean, sign):
        rates = sign * _RATES
        powers = rates * total - n * np.log1p(mean * np.expm1(rates))
        return logsumexp(powers) - budget

    center = min(max(total / n, 0.0), 1.0)
    low, high = 0.0, 1.0
    if excess(0.0, 1.0) > 0.0:
        low = brentq(excess, 0.0, center, args=(1.0,), xtol=1e-13, rtol=1e-13)
    if excess(1.0, -1.0) > 0.0:
        high = brentq(excess, center, 1.0, args=(-1.0,), xtol=1e-13, rtol=1e-13)
    return float(low), float(high)
