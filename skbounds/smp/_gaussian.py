"""Predictive laws of the Gaussian linear sample minmax predictor.

Notation, for coordinates without the unpenalised intercept: ``A = sum v x x' + alpha``
the ridge matrix, ``theta`` the ridge coefficients, ``u = A^{-1} x``, ``h = x'u`` (plus
``1 / W`` for an unpenalised intercept, W the total weight), ``q = |u|^2``,
``s = theta'u``, ``lambda = alpha / (W + 1)``.
"""

from __future__ import annotations

import numpy as np
from scipy import special

LOG_2PI = np.log(2.0 * np.pi)


def ridge_law(fitted, h, q, s, squared_norm, lambda_, sigma):
    """Return mean, standard deviation and log normaliser, (31)-(32) of Theorem 5.

    In the form that needs no refit and loses no digits for large ``h``:

        var / sigma^2 = (1 + h)^2 / (1 + lambda q)
        mean = fitted - lambda (1 + h) s / (1 + lambda q)

    Parameters
    ----------
    fitted : ndarray of shape (m, n_outputs)
        Ridge predictions.
    h, q : ndarray of shape (m,)
    s : ndarray of shape (m, n_outputs)
    squared_norm : ndarray of shape (n_outputs,)
        Squared norms of the penalised coefficients.
    lambda_ : float
    sigma : ndarray of shape (n_outputs,)

    Returns
    -------
    mean, std, log_normalizer : ndarray of shape (m, n_outputs)
    """
    inflation = (1.0 + h)[:, None]
    shrinkage = (1.0 + lambda_ * q)[:, None]
    mean = fitted - lambda_ * inflation * s / shrinkage
    unit_std = inflation / np.sqrt(shrinkage)
    penalty = 0.5 * lambda_ * (squared_norm - lambda_ * s**2 / shrinkage) / sigma**2
    return mean, sigma * unit_std, np.log(unit_std) - penalty


def leave_one_out_law(fitted, leverage, k, b, y, removed, lambda_):
    """Return the leave-one-out laws of training rows from the fit to all of them.

    With the row's own label as virtual label the augmented sample is the full sample:
    one fit, with total penalty ``W lambda``, gives all laws. One unit ``removed`` of a
    row's weight is left out.

    Parameters
    ----------
    fitted, b, y : ndarray of shape (n, n_outputs)
        Fitted values, ``x' A^{-1} theta`` and targets.
    leverage, k, removed : ndarray of shape (n,)
        ``x' A^{-1} x`` (plus 1 / W), ``|A^{-1} x|^2``, unit left out.
    lambda_ : float

    Returns
    -------
    z : ndarray of shape (n, n_outputs)
        ``(y - mean) / std`` for noise scale 1.
    log_std : ndarray of shape (n,)
        For noise scale 1.
    """
    rest = (1.0 - removed * leverage)[:, None]
    shrink = (lambda_ * removed)[:, None]
    precision = rest**2 + shrink * (removed * k)[:, None]
    shift = rest * (fitted - (removed * leverage)[:, None] * y)
    shift -= shrink * (b - (removed * k)[:, None] * y)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(
            precision > 0.0, (y * precision - shift) / np.sqrt(precision), y - fitted
        )
        return z, -0.5 * np.log(precision[:, 0])


def normal_log_density(z, std):
    """Return the log density of a normal law at standardised residuals."""
    return -0.5 * z**2 - np.log(std) - 0.5 * LOG_2PI


# Scale-free law -----------------------------------------------------------------------
#
# The model {N(<theta, x>, sigma^2)} over theta *and* sigma with penalty kappa log sigma
# per observation. With N = (W + 1)(1 + kappa), r the distance to the least-squares
# prediction and Rss(r) = rss + r^2 / (1 + h), the predictive density is proportional to
#
#     (Rss / N)^{-(1 + kappa) / 2} exp(-N / 2 * (r / (1 + h))^2 / Rss) .


def joint_log_normalizer(h, rss, n, kappa):
    """Return log Z of the scale-free law, in closed form."""
    total = (n + 1.0) * (1.0 + kappa)
    c = total / (2.0 * (1.0 + h))
    return (
        -0.5 * (1.0 + kappa) * np.log(rss / total)
        + 0.5 * np.log(rss * (1.0 + h))
        + special.betaln(0.5, 0.5 * kappa)
        + np.log(special.hyp1f1(0.5, 0.5 * (1.0 + kappa), -c))
        - 0.5 * LOG_2PI
    )


def _joint_log_kernel(r, h, rss, n, kappa):
    total = (n + 1.0) * (1.0 + kappa)
    augmented = rss + r**2 / (1.0 + h)
    exponent = -0.5 * total * (r / (1.0 + h)) ** 2 / augmented
    return -0.5 * (1.0 + kappa) * np.log(augmented / total) + exponent - 0.5 * LOG_2PI


def joint_log_density(r, h, rss, n, kappa):
    """Return the log density of the scale-free law at distance r from its centre."""
    kernel = _joint_log_kernel(r, h, rss, n, kappa)
    return kernel - joint_log_normalizer(h, rss, n, kappa)


def joint_quantiles(probabilities, h, rss, n, kappa):
    """Return quantiles of the scale-free law, as distances from its centre.

    The law is symmetric and nearly normal in the middle, with power tails
    ``r^{-(1 + kappa)}`` of tiny mass. In the middle, its distribution function is a
    Gauss-Legendre integral; in the tails, with ``v = rss / Rss(r)`` below one half,
    it is a series of incomplete beta functions with positive terms. Both are inverted
    by bracketed Newton iteration.

    Parameters
    ----------
    probabilities : ndarray of shape (n_quantiles,)
        In (0, 1).
    h : ndarray of shape (m,)
    rss : float
    n : float
    kappa : float

    Returns
    -------
    distance : ndarray of shape (m, n_quantiles)
    """
    tail = np.minimum(probabilities, 1.0 - probabilities)
    sign = np.sign(probabilities - 0.5)
    h, tail = (a.ravel() for a in np.broadcast_arrays(h[:, None], tail[None, :]))
    # r where v = 1/2, and the mass beyond it.
    border = np.sqrt(rss * (1.0 + h))
    total = (n + 1.0) * (1.0 + kappa)
    c = total / (2.0 * (1.0 + h))
    outside = _tail_mass(np.full_like(c, np.log(0.5)), c, kappa)
    distance = np.zeros(len(tail))

    middle = (tail >= outside) & (tail < 0.5)
    if middle.any():
        hm, cm, tm = h[middle], c[middle], tail[middle]
        scale = border[middle]
        log_z = joint_log_normalizer(hm, rss, n, kappa)
        nodes, node_weights = special.roots_legendre(80)
        nodes, node_weights = 0.5 * (nodes + 1.0), 0.5 * node_weights

        def mass(x):
            r = x * scale
            grid = r[:, None] * nodes
            kernel = _joint_log_kernel(grid, hm[:, None], rss, n, kappa)
            value = r * (np.exp(kernel - log_z[:, None]) @ node_weights)
            slope = np.exp(_joint_log_kernel(r, hm, rss, n, kappa) - log_z) * scale
            return value - (0.5 - tm), slope

        start = np.minimum(special.ndtri(1.0 - tm) / np.sqrt(2.0 * cm), 1.0)
        distance[middle] = scale * _bracketed_newton(
            mass, np.zeros(len(tm)), np.ones(len(tm)), start
        )
    far = tail < outside
    if far.any():
        cf, tf = c[far], tail[far]

        def excess(log_v):
            value = _tail_mass(log_v, cf, kappa)
            density = np.exp(
                0.5 * kappa * log_v
                - 0.5 * np.log1p(-np.exp(log_v))
                + cf * np.expm1(log_v)
                - _log_tail_total(cf, kappa)
            )
            return np.log(value / tf), 0.5 * density / value

        # P(V < v) is at least its value without the series, a pure power of v.
        low = (2.0 / kappa) * (
            np.log(tf / _tail_mass(np.full_like(cf, np.log(0.5)), cf, kappa))
        ) + np.log(0.5)
        low = np.minimum(low, np.log(0.5))
        log_v = _bracketed_newton(excess, low - 1.0, np.full_like(cf, np.log(0.5)), low)
        with np.errstate(over="ignore"):
            distance[far] = border[far] * np.sqrt(np.expm1(-log_v))
    return sign * distance.reshape(-1, len(probabilities))


def _log_tail_total(c, kappa):
    """Return log of the integral of ``v^(kappa/2-1) (1-v)^(-1/2) e^(c(v-1))``."""
    return special.betaln(0.5, 0.5 * kappa) + np.log(
        special.hyp1f1(0.5, 0.5 * (1.0 + kappa), -c)
    )


def _tail_mass(log_v, c, kappa):
    """Return the mass of one tail: half of P(V < v), for v <= 1/2.

    V has density proportional to ``v^{kappa/2 - 1} (1 - v)^{-1/2} e^{cv}``. Expanding
    the exponential gives incomplete beta functions; term j behaves like a Poisson
    probability with mean ``c v``.
    """
    v = np.exp(log_v)
    result = np.zeros(len(c))
    # e^{-c/2} underflows beyond: no mass that a double could represent.
    rows = np.flatnonzero(c * (1.0 - v) < 740.0)
    if len(rows) == 0:
        return result
    v, c, log_v = v[rows], c[rows], log_v[rows]
    mean = c * v
    n_terms = int(np.max(mean + 12.0 * np.sqrt(mean) + 30.0))
    total = np.zeros(len(c))
    for j in range(n_terms):
        a = 0.5 * kappa + j
        # B_v(a, 1/2) as power times a hypergeometric series: no underflow for tiny v.
        log_beta = a * log_v - np.log(a) + np.log(special.hyp2f1(a, 0.5, a + 1.0, v))
        total += np.exp(special.xlogy(j, c) - special.gammaln(j + 1.0) - c + log_beta)
    result[rows] = 0.5 * total / np.exp(_log_tail_total(c, kappa))
    return result


def _bracketed_newton(function, low, high, start, max_iter=200):
    """Solve increasing equations elementwise, safeguarded by bisection.

    ``function(x)`` returns values and derivatives; the roots lie in [low, high].
    """
    x = np.clip(start, low, high)
    for _ in range(max_iter):
        value, slope = function(x)
        low = np.where(value < 0.0, x, low)
        high = np.where(value > 0.0, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            trial = x - value / slope
        inside = (trial >= low) & (trial <= high)
        trial = np.where(inside, trial, 0.5 * (low + high))
        change = np.abs(trial - x)
        x = trial
        if np.all(change <= 1e-14 * (np.abs(x) + 1e-300)):
            break
    return x
