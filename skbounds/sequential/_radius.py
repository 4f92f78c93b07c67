"""Confidence radii that hold at all times, and what follows from them.

With d = min(delta, 1/10) and natural logarithms

    beta(n, delta) = log(1/d) + 3 log log(1/d) + (3/2) log log(e n),
    phi_n(delta) = sqrt(2 sigma^2 beta(n, delta) / n),

the means of n sub-Gaussian rewards stay within phi_n(delta) of their expectation at one
side, for all n at once, with probability 1 - delta. (4.3) prints phi without the factor
2 sigma^2, which is valid for sigma^2 = 1/2 only.
"""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega

# Confidences above are treated like this one, (4.4).
LARGEST_DELTA = 0.1
# beta(1, 1/10).
LEAST_BETA = np.log(10.0) + 3.0 * np.log(np.log(10.0))


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
