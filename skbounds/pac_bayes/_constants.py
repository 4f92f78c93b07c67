"""The binary relative entropy, its inverse, and the constants of the bounds.

All functions are accurate to about 1e-13 for any number of rows up to 1e9.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaincc, xlogy

# ln J(m) / m for the linear distance: l + ln(1 - l (1 - 1/e)) at l = 1 / (e - 1).
LINEAR_KL_RATE = 1.0 / np.expm1(1.0) + np.log1p(-np.exp(-1.0))

# Beyond it 1 - r is below rounding.
_LARGEST_BUDGET = 1e4
# Below it a probability counts as zero.
_LEAST_RISK = 1e-300

# Printed constants exist for no larger number of rows (Table 5).
PAPER_MAX_SAMPLES = 1028


def invert_upper(q: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Return sup{r >= q : kl(q || r) <= c}.

    Parameters
    ----------
    q, c : array-likes of the same shape
        Probabilities and non-negative budgets (infinite ones allowed).

    Returns
    -------
    r : ndarray
    """
    q = np.asarray(q, dtype=np.float64)
    c = np.minimum(c, _LARGEST_BUDGET)
    w = _log_shrinkage(q, 1.0 - q, c)
    # Where q is as good as zero, to the last digit of small budgets.
    return np.where(
        q > _LEAST_RISK,
        np.minimum(q - (1.0 - q) * np.expm1(w), 1.0),
        np.maximum(q, -np.expm1(-c)),
    )


def invert_lower(q: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Return inf{r <= q : kl(q || r) <= c}."""
    q = np.asarray(q, dtype=np.float64)
    c = np.minimum(c, _LARGEST_BUDGET)
    return q * np.exp(_log_shrinkage(1.0 - q, q, c))


def _log_shrinkage(q, rest, c) -> np.ndarray:
    """Return ln((1 - r) / (1 - q)) for the largest r with kl(q || r) <= c.

    `rest` is 1 - q, which the caller may know to more digits.
    """
    # For q = 0 all of kl is -ln(1 - r); for q = 1 there is nothing above.
    w = np.where(rest > 0.0, -c, 0.0)
    inside = np.asarray((q > _LEAST_RISK) & (rest > 0.0) & (c > 0.0))
    if not inside.any():
        return w
    q, rest, c = q[inside], rest[inside], c[inside]
    # With 1 - r = (1 - q) e^w, kl is convex and decreasing in w <= 0, so that Newton's
    # method from a point with kl >= c never overshoots. Two such points: kl is at
    # least 2 (r - q)^2, and at least q ln q - (1 - q) w.
    start = np.minimum(np.sqrt(0.5 * c), 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        first = np.log1p(-np.minimum(start / rest, 1.0))
        u = np.maximum(first, (xlogy(q, q) - c) / rest)
    u = np.maximum(u, -1e300)
    active = np.arange(len(q))
    for _ in range(200):
        at, p, other, budget = u[active], q[active], rest[active], c[active]
        drop = -other * np.expm1(at)
        value = -p * np.log1p(drop / p) - other * at
        slope = other * (p * np.exp(at) / (p + drop) - 1.0)
        # At 0 the slope vanishes: the budget is below rounding.
        step = np.where(slope < 0.0, (budget - value) / np.minimum(slope, -1e-300), 0)
        moved = np.minimum(at + np.maximum(step, 0.0), 0.0)
        u[active] = moved
        active = active[moved - at > 1e-15 * np.abs(at)]
        if not len(active):
            break
    w[inside] = u
    return w


@lru_cache(maxsize=4096)
def log_maurer_sum(n_samples: int) -> float:
    """Return ln of sum_k C(m, k) (k/m)^k (1 - k/m)^(m-k).

    The sum is 1 + Q(m) with Ramanujan's Q(m) = sum_{j>=1} m! / ((m-j)! m^j), that is
    m! e^m m^-m times the regularised incomplete gamma function at (m, m).
    """
    m = float(n_samples)
    if m < 100.0:
        return float(np.log1p(np.sum(np.cumprod(1.0 - np.arange(m) / m))))
    # ln(m! e^m / m^m) by Stirling's series: the terms themselves are huge.
    stirling = 0.5 * np.log(2.0 * np.pi * m) + 1.0 / (12.0 * m)
    stirling += (1.0 / (1260.0 * m**2) - 1.0 / 360.0) / m**3
    return float(np.log1p(np.exp(stirling) * gammaincc(m, m)))


def kl_complexity(n_samples: int, constants: str) -> float:
    """Return c_m, the term of the bounds with KL divergence beside ln(1/delta)."""
    if constants == "classical":
        return float(np.log(2.0 * np.sqrt(n_samples)))
    return log_maurer_sum(int(n_samples))


def chi2_moment(n_samples: int, distance: str, constants: str) -> float:
    """Return I(m) = sup_l E phi(k/m, l)^2 for k ~ Bin(m, l).

    Linear: Lemma 2's 1/(4m). Squared: from the fourth central moment
    m x (1 + 3 (m-2) x), x = l (1-l), which the paper's Lemma 3 has with x in place of
    x^2. kl: see `_entropy_moment`.
    """
    m = float(n_samples)
    if distance == "linear":
        return 0.25 / m
    if distance == "squared":
        if constants == "paper":
            if n_samples == 1:
                raise ValueError(
                    "constants='paper' has no valid constant for one row and "
                    "distance='squared'; use constants='exact'."
                )
            return (12.0 * m - 11.0) / (16.0 * m**3)
        return 1.0 / 12.0 if n_samples == 1 else (3.0 * m - 2.0) / (16.0 * m**3)
    if constants == "paper":
        n_samples = min(n_samples, PAPER_MAX_SAMPLES)
    return _entropy_moment(int(n_samples), constants == "paper")


@lru_cache(maxsize=4096)
def _entropy_moment(n_samples: int, unsquared_ends: bool) -> float:
    """Return sup_l E kl(k/m || l)^2, k ~ Bin(m, l).

    The maximum is at l = 1/2 for few rows, else near l = 2.65 / m: few successes. With
    `unsquared_ends` the terms k = 0 and k = m enter by their first power, which is what
    the printed table has.
    """
    m = float(n_samples)
    k = np.arange(min(n_samples, 400) + 1.0)
    # ln C(m, k) - k ln m, without the huge terms that cancel in it.
    steps = np.log1p(-k[:-1] / m) - np.log(k[1:])
    log_choose = np.concatenate([[0.0], np.cumsum(steps)])
    end = (k == 0.0) | (k == m)

    def negative_moment(a):
        log_pmf = log_choose + k * np.log(a) + (m - k) * np.log1p(-a / m)
        with np.errstate(divide="ignore", invalid="ignore"):
            other = np.where(k < m, (m - k) * np.log1p((a - k) / (m - a)), 0.0)
        kl = np.maximum(xlogy(k, k / a) + other, 0.0) / m
        power = np.where(end & unsquared_ends, kl, kl**2)
        return -np.sum(np.exp(log_pmf) * power)

    high = min(6.0, 0.5 * m)
    grid = np.linspace(0.01 * high, high, 100)
    values = [negative_moment(a) for a in grid]
    best = int(np.argmin(values))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        negative_moment, bounds=bracket, method="bounded", options={"xatol": 1e-9}
    )
    # The factor covers the optimiser's error, so that the bound stays one.
    return -min(found.fun, values[best]) * (1.0 + 1e-9)
