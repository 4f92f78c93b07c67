"""Confidence radii that hold at all times, and what follows from them.

With d = min(delta, 1/10) and natural logarithms

    beta(n, delta) = log(1/d) + 3 log log(1/d) + (3/2) log log(e n),
    phi_n(delta) = sqrt(2 sigma^2 beta(n, delta) / n),

the means of n sub-Gaussian rewards stay within phi_n(delta) of their expectation at one
side, for all n at once, with probability 1 - delta. (4.3) prints phi without the factor
2 sigma^2, which is valid for sigma^2 = 1/2 only.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import wrightomega

from skbounds._jit import compile_nogil

_compile = partial(compile_nogil, error_model="numpy", fastmath=False)

# Confidences above are treated like this one, (4.4).
LARGEST_DELTA = 0.1
# beta(1, 1/10).
LEAST_BETA = np.log(10.0) + 3.0 * np.log(np.log(10.0))
# Logarithms of p-values: Newton's method has converged, or has failed.
_TOLERANCE, _MOST_STEPS = 1e-14, 100


def beta(n, log_delta):
    """Return beta(n, delta) from log(delta).

    Parameters
    ----------
    n, log_delta : array-like
    """
    x = np.maximum(-np.asarray(log_delta, dtype=np.float64), -np.log(LARGEST_DELTA))
    return x + 3.0 * np.log(x) + growth(n)


def growth(n):
    """Return (3/2) log log(e n), the part of beta that depends on n."""
    return 1.5 * np.log1p(np.log(np.asarray(n, dtype=np.float64)))


def radius(n, delta, sigma):
    """Return phi_n(delta)."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.sqrt(2.0 * sigma**2 * beta(n, np.log(delta)) / n)


def log_delta_of(n, size, sigma):
    """Return log(delta) with phi_n(delta) = size; 0 below the radius at 1/10.

    B = log(1/d) + 3 log log(1/d) is solved by Wright's omega function:
    log(1/d) = 3 omega(B / 3 - log 3).
    """
    B = np.asarray(n * np.square(size) / (2.0 * sigma**2) - growth(n))
    x = 3.0 * np.real(wrightomega(B / 3.0 - np.log(3.0)))
    # Rounding must not make the radius at 1/10 something else.
    rounding = 1e-13 * (LEAST_BETA + growth(n))
    found = np.minimum(-x, np.log(LARGEST_DELTA))
    return np.where(B >= LEAST_BETA - rounding, found, 0.0)


@_compile()
def gap_radius(x, n_arm, n_control, n_alternatives, sigma):
    """Return G = phi_{n_i}(gamma / 2K) + phi_{n_0}(gamma / 2) at gamma = exp(-x).

    Parameters
    ----------
    x : float
        At least 0.
    n_arm, n_control : float
    n_alternatives : int
        K.
    sigma : float

    Returns
    -------
    value, slope : float
        And its derivative by x.
    """
    least = np.log(10.0)
    value = slope = 0.0
    for n, shift in (
        (n_arm, np.log(2.0 * n_alternatives)),
        (n_control, np.log(2.0)),
    ):
        u = x + shift
        # Rounding must not hide that a kink was passed.
        active = u > least + 1e-15
        u = max(u, least)
        b = u + 3.0 * np.log(u) + 1.5 * np.log1p(np.log(n))
        size = np.sqrt(2.0 * sigma * sigma * b / n)
        value += size
        if active:
            slope += size * 0.5 * (1.0 + 3.0 / u) / b
    return value, slope


@_compile()
def log_p_value(gap, n_arm, n_control, n_alternatives, sigma, known):
    """Return log P_{i,t} of an alternative, if it is below a known value.

    P = 1 iff D <= G(1); else the root of G(gamma) = D. In x = -log(gamma) G is concave
    and increasing between kinks, so that Newton's method from the left end of a piece
    goes up to the root and stays below it.

    Parameters
    ----------
    gap : float
        D = mean of the arm - mean of the control - epsilon.
    n_arm, n_control : float
    n_alternatives : int
    sigma : float
    known : float
        log P so far, at most 0: returned unless the new one is smaller.
    """
    start = -known
    value, _ = gap_radius(start, n_arm, n_control, n_alternatives, sigma)
    if not gap > value:
        return known
    # Where the second of the two radii begins to depend on gamma.
    kink = np.log(5.0)
    if start < kink:
        value, _ = gap_radius(kink, n_arm, n_control, n_alternatives, sigma)
        first = np.log(5.0 / n_alternatives)
        if gap > value:
            start = kink
        elif first > start:
            at_first, _ = gap_radius(first, n_arm, n_control, n_alternatives, sigma)
            # Constant up to there: gamma jumps from 1 to K / 5.
            start = first
            if not gap > at_first:
                return known
    # To the right of a kink, where the slope is that of the next piece.
    x = start + 1e-13 * max(start, 1.0)
    for _ in range(_MOST_STEPS):
        value, slope = gap_radius(x, n_arm, n_control, n_alternatives, sigma)
        step = (gap - value) / slope
        if not step > _TOLERANCE * max(x, 1.0):
            break
        x += step
    # Up to rounding this is below the root: the p-value is not smaller than it is.
    return min(-x, known)
