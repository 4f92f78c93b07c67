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
    mean = fitted - lambda_ * (inflation / shrinkage) * s
    unit_std = inflation / np.sqrt(shrinkage)
    penalty = (
        0.5
        * lambda_
        * (squared_norm - (np.sqrt(lambda_) * s) ** 2 / shrinkage)
        / sigma**2
    )
    return mean, sigma * unit_std, np.log(unit_std) - penalty


def bayes_law(fitted, h, sigma):
    """Return mean and standard deviation of the flat prior's predictive law."""
    return fitted, sigma * np.sqrt(1.0 + h)[:, None]


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
    with np.errstate(over="ignore"):
        return -0.5 * z**2 - np.log(std) - 0.5 * LOG_2PI


def normal_crps(y, mean, std):
    """Return the continuous ranked probability score of a normal law."""
    z = (y - mean) / std
    density = np.exp(normal_log_density(z, 1.0))
    score = z * (2.0 * special.ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)
    return std * score


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
        + 0.5 * (np.log(rss) + np.log1p(h))
        + special.betaln(0.5, 0.5 * kappa)
        + np.log(special.hyp1f1(0.5, 0.5 * (1.0 + kappa), -c))
        - 0.5 * LOG_2PI
    )


def _joint_log_kernel(r, h, rss, n, kappa):
    total = (n + 1.0) * (1.0 + kappa)
    # In units where Rss = 1 + x^2; hypot does not overflow.
    x = np.abs(r) / (np.sqrt(rss) * np.sqrt(1.0 + h))
    length = np.hypot(1.0, x)
    log_variance = np.log(rss / total) + 2.0 * np.log(length)
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(x), 1.0, x / length) ** 2
    exponent = -0.5 * total / (1.0 + h) * share
    return -0.5 * (1.0 + kappa) * log_variance + exponent - 0.5 * LOG_2PI


def joint_log_density(r, h, rss, n, kappa):
    """Return the log density of the scale-free law at distance r from its centre."""
    kernel = _joint_log_kernel(r, h, rss, n, kappa)
    return kernel - joint_log_normalizer(h, rss, n, kappa)


def joint_quantiles(probabilities, h, rss, n, kappa):
    """Return quantiles of the scale-free law, as distances from its centre.

    The law is symmetric and nearly normal in the middle, with power tails
    ``r^{-(1 + kappa)}`` of tiny mass. With ``w = 1 - rss / Rss(r)``, the mass beyond r
    is a Gauss-Legendre integral for ``w < 1/2`` and a series of incomplete beta
    functions with positive terms for ``w >= 1/2``. Both are inverted on the logarithmic
    scale by bracketed Newton iteration.

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
        Infinite where the quantile is beyond the largest double.
    """
    tail = np.minimum(probabilities, 1.0 - probabilities)
    sign = np.sign(probabilities - 0.5)
    h, tail = (a.ravel() for a in np.broadcast_arrays(h[:, None], tail[None, :]))
    log_tail = np.log(tail)
    # r where w = 1/2, and the logarithm of the mass beyond it.
    border = np.sqrt(rss) * np.sqrt(1.0 + h)
    c = (n + 1.0) * (1.0 + kappa) / (2.0 * (1.0 + h))
    half = np.full_like(c, np.log(0.5))
    log_outside = _log_tail_mass(half, c, kappa)
    distance = np.zeros(len(tail))

    middle = (log_tail >= log_outside) & (tail < 0.5)
    if middle.any():
        distance[middle] = border[middle] * _middle_quantiles(
            log_tail[middle], log_outside[middle], c[middle], kappa
        )
    far = log_tail < log_outside
    if far.any():
        cf, target, top = c[far], log_tail[far], half[far]

        def excess(log_v):
            value = _log_tail_mass(log_v, cf, kappa)
            log_slope = (
                0.5 * kappa * log_v
                - 0.5 * np.log1p(-np.exp(log_v))
                + cf * np.expm1(log_v)
                - _log_tail_total(cf, kappa)
                + np.log(0.5)
            )
            return value - target, np.exp(log_slope - value)

        # The mass falls no faster than the power v^{kappa / 2}.
        low = np.log(0.5) + (2.0 / kappa) * (target - log_outside[far])
        log_v = _bracketed_newton(excess, low - 1.0, top, low)
        # sqrt(1 / v - 1), in a form that overflows only with the result.
        with np.errstate(over="ignore"):
            ratio = np.exp(-0.5 * log_v) * np.sqrt(-np.expm1(log_v))
            distance[far] = border[far] * ratio
    return sign * distance.reshape(-1, len(probabilities))


def _middle_quantiles(log_tail, log_outside, c, kappa):
    """Solve for quantiles with ``w < 1/2``, in units of the border."""
    log_total = _log_tail_total(c, kappa)

    def mass(x):
        value = _log_mass_beyond(x, c, kappa, log_outside)
        return log_tail - value, np.exp(_log_kernel(x, c, kappa) - log_total - value)

    start = -special.ndtri_exp(log_tail) / np.sqrt(2.0 * c)
    return _bracketed_newton(
        mass, np.zeros(len(c)), np.ones(len(c)), np.minimum(start, 1.0)
    )


def _log_kernel(x, c, kappa):
    """With x = r / border: (1 + x^2)^{-(1 + kappa) / 2} e^{-c w}, unnormalised."""
    return -0.5 * (1.0 + kappa) * np.log1p(x**2) - c * x**2 / (1.0 + x**2)


def _log_mass_beyond(x, c, kappa, log_outside):
    """Return the log mass of one tail from x on, in units of the border, x <= 1."""
    nodes, node_weights = special.roots_legendre(80)
    nodes, node_weights = 0.5 * (nodes + 1.0), 0.5 * node_weights
    # Beyond w + 45 / c the density has fallen by e^{-45}.
    w = np.minimum(x**2 / (1.0 + x**2) + 45.0 / c, 0.5)
    width = np.sqrt(w / (1.0 - w)) - x
    grid = x[:, None] + width[:, None] * nodes
    at_x = _log_kernel(x, c, kappa)
    values = np.exp(_log_kernel(grid, c[:, None], kappa) - at_x[:, None])
    with np.errstate(divide="ignore"):
        inside = np.log(np.maximum(width, 0.0) * (values @ node_weights))
    inside = inside + at_x - _log_tail_total(c, kappa)
    return np.logaddexp(inside, log_outside)


def _log_tail_total(c, kappa):
    """Return log of the integral of ``v^(kappa/2-1) (1-v)^(-1/2) e^(c(v-1))``."""
    return special.betaln(0.5, 0.5 * kappa) + np.log(
        special.hyp1f1(0.5, 0.5 * (1.0 + kappa), -c)
    )


def _log_tail_mass(log_v, c, kappa):
    """Return the log mass of one tail: half of P(V < v), for v <= 1/2.

    V has density proportional to ``v^{kappa/2 - 1} (1 - v)^{-1/2} e^{cv}``. Expanding
    the exponential gives incomplete beta functions; term j behaves like a Poisson
    probability with mean ``c v``.
    """
    v = np.exp(log_v)
    result = np.full(len(c), -np.inf)
    # Further out than any probability that a double can hold.
    rows = np.flatnonzero(c * (1.0 - v) < 800.0)
    if len(rows) == 0:
        return result
    v, c, log_v = v[rows], c[rows], log_v[rows]
    mean = c * v
    n_terms = int(np.max(mean + 12.0 * np.sqrt(mean) + 30.0))
    total = np.full(len(c), -np.inf)
    for j in range(n_terms):
        a = 0.5 * kappa + j
        # B_v(a, 1/2) as a power times a hypergeometric series: no underflow.
        log_beta = a * log_v - np.log(a) + np.log(special.hyp2f1(a, 0.5, a + 1.0, v))
        term = special.xlogy(j, c) - special.gammaln(j + 1.0) - c + log_beta
        total = np.logaddexp(total, term)
    result[rows] = total + np.log(0.5) - _log_tail_total(c, kappa)
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


def joint_cdf(r, h, rss, n, kappa):
    """Return the distribution function of the scale-free law at distances r.

    Parameters
    ----------
    r, h : ndarray of one shape
    rss, n, kappa : float
    """
    r, h = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(r, h))
    c = (n + 1.0) * (1.0 + kappa) / (2.0 * (1.0 + h.ravel()))
    x = np.abs(r.ravel()) / np.sqrt(rss * (1.0 + h.ravel()))
    log_tail = np.empty(len(x))
    far = x >= 1.0
    with np.errstate(divide="ignore"):
        log_v = -2.0 * np.log(np.hypot(1.0, x[far]))
    log_tail[far] = _log_tail_mass(log_v, c[far], kappa)
    near = ~far
    half = np.full(np.count_nonzero(near), np.log(0.5))
    outside = _log_tail_mass(half, c[near], kappa)
    log_tail[near] = _log_mass_beyond(x[near], c[near], kappa, outside)
    tail = np.minimum(np.exp(log_tail), 0.5).reshape(r.shape)
    return np.where(r > 0.0, 1.0 - tail, tail)


def joint_sample(h, rss, n, kappa, size, rng):
    """Return draws of distances from the centre of the scale-free law, (m, size).

    ``1 / (1 + x^2)`` is a mixture of beta variables, by the expansion of its density.
    """
    result = np.empty((len(h), size))
    c = (n + 1.0) * (1.0 + kappa) / (2.0 * (1.0 + h))
    for i, mean in enumerate(c):
        j = np.arange(int(mean + 12.0 * np.sqrt(mean) + 30.0))
        logarithms = special.xlogy(j, mean) - special.gammaln(j + 1.0)
        logarithms += special.betaln(0.5 * kappa + j, 0.5)
        ends = np.cumsum(np.exp(logarithms - logarithms.max()))
        term = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
        a = 0.5 * kappa + np.minimum(term, len(j) - 1)
        # Of a beta variable with a tiny parameter the logarithm, which does not vanish.
        log_g = np.log(rng.gamma(a + 1.0)) + np.log(rng.random(size)) / a
        log_other = np.log(rng.gamma(0.5, size=size))
        with np.errstate(over="ignore"):
            x = np.exp(0.5 * (log_other - log_g))
            result[i] = np.sqrt(rss * (1.0 + h[i])) * x
    return result * np.where(rng.random(result.shape) < 0.5, -1.0, 1.0)
