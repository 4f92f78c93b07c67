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

from math import expm1, inf, isfinite, log, nan

from scipy.optimize import brentq


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


def deviation_bound(slack: float, loss_range: float, delta: float) -> float:
    """Return how far realised losses exceed their expectations, but rarely.

    With probability 1 - delta, ``sum L_t <= slack sum E_t[L_t] + t`` for losses in
    [0, loss_range] and the t that is returned.

    By the exponential martingale: ``E exp(x L) <= exp((e^{x R} - 1) E[L] / R)``, and
    ``(e^z - 1) / z = slack`` at z = x R. nan unless slack > 1.
    """
    if not slack > 1.0 + 1e-12:
        return nan
    upper = 1.0
    while expm1(upper) / upper < slack:
        upper *= 2.0
    z = brentq(lambda z: expm1(z) / z - slack, 1e-14, upper, xtol=1e-14)
    return loss_range * log(1.0 / delta) / z


def averaged_step_high_probability_bound(
    ratio: float,
    scale: float,
    curvature: float,
    length: float,
    step: float,
    norm: float,
    extra: float,
    loss_range: float,
    delta: float,
) -> float:
    """Return a high-probability bound for dual averaging, alone or in a mixture.

    With the step in units of 1 / C^2, ``S_0 (1 - m) <= S(U) + C^2 |U|^2 / (2 s)`` and
    ``E <= ratio (S_0 + extra)``; what the step leaves of the gap pays for the deviation
    of the realised losses. nan where it leaves nothing.
    """
    cost = 0.5 * step * curvature
    if not 0.0 < cost < 1.0 or not 0.0 < ratio < inf:
        return nan
    slack = scale * (1.0 - cost) / ratio
    fixed = scale * length * length * norm * norm / (2.0 * step)
    return fixed + slack * ratio * extra + deviation_bound(slack, loss_range, delta)


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
    expected: float, surrogate: float, inner: float, gradient_norm: float, norm: float
) -> float:
    """Return what the accounts prove about the regret, for any learner.

    By convexity the surrogate regret is at most ``sum <grad, W_t> + |U| |sum grad|``;
    the expected target loss replaces the learner's own surrogate loss.
    """
    return inner + norm * gradient_norm - surrogate + expected
