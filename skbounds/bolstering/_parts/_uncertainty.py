"""How far estimates from held-out rows are from the true error.

Fits on overlapping parts are wrong about the same rows: variances are those of
independent rows times a factor, which was chosen where the truth is known and checked
on other data (the benchmarks have the coverage).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

# Factors of the variance, of an error and of a difference of two.
KAPPA, KAPPA_PAIRED = 1.6, 2.5


def check_level(level):
    """Return a confidence level in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie in (0, 1); got {level!r}.")
    return float(level)


def effective_size(weight):
    """Return the number of rows of equal weight that say as much."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def zero_one_error(error, n):
    """Return the standard error of an error rate from n rows; never 0."""
    return float(np.sqrt(KAPPA * (error * (1.0 - error) + 1.0 / n) / n))


def mean_error(losses, weight):
    """Return the standard error of a mean of losses, roughly."""
    n = effective_size(weight)
    return float(np.sqrt(KAPPA * _variance(losses, weight) / n))


def _variance(values, weight):
    center = np.average(values, weights=weight)
    n = effective_size(weight)
    if n <= 1.0:
        return np.nan
    return np.average((values - center) ** 2, weights=weight) * n / (n - 1.0)


def wilson_interval(error, n, level):
    """Return Wilson's interval for an error rate, as if of n / KAPPA rows."""
    z, n = ndtri(0.5 * (1.0 + check_level(level))), n / KAPPA
    shrink = 1.0 + z**2 / n
    center = (error + 0.5 * z**2 / n) / shrink
    half = z / shrink * np.sqrt(error * (1.0 - error) / n + 0.25 * (z / n) ** 2)
    return max(0.0, float(center - half)), min(1.0, float(center + half))


def normal_interval(error, standard_error, level):
    """Return a normal interval."""
    half = ndtri(0.5 * (1.0 + check_level(level))) * standard_error
    return float(error - half), float(error + half)


def student_interval(difference, standard_error, dof, level):
    """Return Student's interval."""
    half = stdtrit(dof, 0.5 * (1.0 + check_level(level))) * standard_error
    return float(difference - half), float(difference + half)


def paired(difference, gaps, weight, least=1.0):
    """Return standard error, degrees of freedom and p-value of a difference.

    Parameters
    ----------
    difference : float
    gaps : ndarray of shape (n,)
        Differences of the rows' losses.
    weight : ndarray of shape (n,)
    least : float
        In units of 1 / n^2, what is added to the variance of a row's difference.
    """
    n = effective_size(weight)
    variance = _variance(gaps, weight) + least / n**2
    error = float(np.sqrt(KAPPA_PAIRED * variance / n))
    dof = n - 1.0
    if error == 0.0:
        return error, dof, 1.0 if difference == 0.0 else 0.0
    return error, dof, float(2.0 * stdtr(dof, -abs(difference) / error))
