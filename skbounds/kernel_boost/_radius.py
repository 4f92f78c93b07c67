"""Localised complexity and the critical radius (section 3.3 of the thesis)."""

from __future__ import annotations

import numpy as np


def localised_complexity(eigenvalues, radius, n_samples):
    """Return R(delta) = sqrt(sum_j min(delta^2, mu_j) / n), (3.20)."""
    capped = np.minimum(np.square(radius)[..., None], eigenvalues)
    return np.sqrt(capped.sum(axis=-1) / n_samples)


def critical_radius(eigenvalues, noise, norm, n_samples):
    """Return delta_n, the root of (sigma / rho) R(delta) = delta^2, (3.15).

    On the interval of delta^2 in which exactly k eigenvalues are larger the equation is
    quadratic; the right k is found among the sorted eigenvalues.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
        Of the normalised kernel matrix, not negative.
    noise : float
        Standard deviation sigma.
    norm : float
        Hilbert norm rho of the target.
    n_samples : float
    """
    if noise == 0.0 or not np.any(eigenvalues):
        return 0.0
    if norm == 0.0:
        return np.inf
    mu = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1]
    scale = (noise / norm) ** 2 / n_samples
    tail = np.concatenate([np.cumsum(mu[::-1])[::-1], [0.0]])
    k = np.arange(len(mu) + 1)
    squared = 0.5 * (scale * k + np.sqrt((scale * k) ** 2 + 4.0 * scale * tail))
    above = np.concatenate([[np.inf], mu])
    below = np.concatenate([mu, [0.0]])
    # Rounding may put the root just outside of its interval.
    gap = np.maximum(squared - above, 0.0) + np.maximum(below - squared, 0.0)
    return float(np.sqrt(squared[np.argmin(gap)]))


def theory_time(radius, step_size, curvature=1.0):
    """Return T = floor(1 / (alpha m delta^2)), at least 1."""
    if radius == 0.0:
        return np.inf
    return max(1.0, float(np.floor(1.0 / (step_size * curvature * radius**2))))
