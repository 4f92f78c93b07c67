"""What t boosting steps make of the targets, eigenvalue by eigenvalue.

For the squared loss f^t = sum_j h_t(mu_j) b_j u_j with h_t(mu) = 1 - (1 - alpha mu)^t
(3.9). The average of the iterates 1, ..., t has its own filter.
"""

from __future__ import annotations

import numpy as np

# Below this alpha mu t the averaged filter is its series, of so many terms.
_SERIES, _TERMS = 0.1, 9


def residual_filter(eigenvalues, step_size, times):
    """Return (1 - alpha mu)^t, what is left of each component.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
    step_size : float
    times : ndarray of shape (n_times,)
        Whole numbers where ``alpha mu > 1``.

    Returns
    -------
    left : ndarray of shape (n_times, r)
    """
    share = step_size * np.asarray(eigenvalues, dtype=np.float64)
    times = np.asarray(times, dtype=np.float64)[:, None]
    small = share < 0.5
    left = np.empty((len(times), len(share)))
    # Powers of numbers near one lose the digits that large t makes count.
    left[:, small] = np.exp(times * np.log1p(-share[small]))
    left[:, ~small] = (1.0 - share[~small]) ** times
    return left


def boosting_filter(eigenvalues, step_size, times, *, average=False):
    """Return h_t(mu), or the filter of the averaged iterate.

    Returns
    -------
    filters : ndarray of shape (n_times, r)
    """
    share = step_size * np.asarray(eigenvalues, dtype=np.float64)
    times = np.asarray(times, dtype=np.float64)
    small = share < 0.5
    left = residual_filter(eigenvalues, step_size, times)
    filters = 1.0 - left
    filters[:, small] = -np.expm1(times[:, None] * np.log1p(-share[small]))
    if not average:
        return filters
    t = times[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        averaged = 1.0 - (1.0 - share) * filters / (t * share)
    # 1 - (1 - x) (1 - (1 - x)^t) / (t x) = sum_k (-1)^(k + 1) x^k C(t + 1, k + 1) / t.
    x = np.where((t > 0.0) & (t * share < _SERIES), share, 0.0)
    term = 0.5 * x * (t + 1.0)
    series = term.copy()
    for k in range(1, _TERMS):
        term = -term * x * (t - k) / (k + 2)
        series += term
    return np.where(t * share < _SERIES, series, averaged)
