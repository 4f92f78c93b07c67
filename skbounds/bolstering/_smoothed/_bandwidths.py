"""Widths of spherical kernels by the method of moments.

A kernel N(x_i, sigma^2 I) at each of the n rows is as wide as makes the mean distance
of a draw to its nearest row equal to the mean distance `dbar` of a row to its nearest
other row (Marcondes and Braga-Neto, section 5.1). sigma is a standard deviation.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.spatial import KDTree
from scipy.special import chdtri, gammaln, ndtr

from skbounds.bolstering._smoothed._neighbors import nearest_distances
from skbounds.bolstering._smoothed._nodes import normal_points, sobol

# Draws per row with which the exact equation is solved in more than one dimension.
_EXACT_NODES = 256
# A normal law has no mass worth counting further out than so many deviations.
_REACH = 8.5


def chi_mean(n_features):
    """Return the mean of a chi law: a draw's mean distance to its kernel's centre."""
    half = 0.5 * n_features
    return np.sqrt(2.0) * np.exp(gammaln(half + 0.5) - gammaln(half))


def chi_median(n_features):
    """Return the median of a chi law (Braga-Neto and Dougherty 2004)."""
    return np.sqrt(chdtri(n_features, 0.5))


def mean_nearest_distance(points, weight):
    """Return the weighted mean of the rows' distances to the nearest distinct row."""
    return float(np.average(nearest_distances(points), weights=weight))


def approximate_width(points, weight, *, center="mean"):
    """Return sigma of (21): the nearest row to a draw is taken to be its centre.

    By Proposition 15 this is a lower bound of the exact width.
    """
    chi = {"mean": chi_mean, "median": chi_median}[center]
    return mean_nearest_distance(points, weight) / chi(points.shape[1])


def exact_width(points, weight, *, random_state):
    """Return the smallest sigma that solves (20), Lemma 14.

    In one dimension the equation is in closed form. In more, the draws are fixed, so
    that the mean distance is a function of sigma that can be solved for.
    """
    target = mean_nearest_distance(points, weight)
    if target == 0.0:
        return 0.0
    if points.shape[1] == 1:
        mean_distance = _expected_distance_on_a_line(points[:, 0], weight)
    else:
        mean_distance = _expected_distance_by_draws(points, weight, random_state)
    excess = lambda sigma: mean_distance(sigma) - target
    low = 0.5 * target / chi_mean(points.shape[1])
    high = low
    while excess(high) < 0.0:
        low, high = high, 1.25 * high
    return brentq(excess, low, high, xtol=1e-14, rtol=1e-13) if low < high else low


def _expected_distance_on_a_line(x, weight):
    """Return the function sigma -> E min_j |draw - x_j| of one feature."""
    centres = np.unique(x)
    middles = 0.5 * (centres[1:] + centres[:-1])
    # Half cells: from a centre to a middle, where the centre is the nearest row.
    starts = np.r_[centres, -np.inf, middles]
    stops = np.r_[middles, np.inf, centres]
    owners = np.r_[centres, centres]
    signs = np.repeat([1.0, -1.0], len(centres))
    order = np.argsort(np.where(np.isfinite(starts), starts, -np.inf), kind="stable")
    starts, stops, owners, signs = (
        part[order] for part in (starts, stops, owners, signs)
    )

    def mean_distance(sigma):
        total = 0.0
        for mu, w in zip(x, weight, strict=True):
            first = np.searchsorted(stops, mu - _REACH * sigma)
            last = np.searchsorted(starts, mu + _REACH * sigma)
            a = (starts[first:last] - mu) / sigma
            b = (stops[first:last] - mu) / sigma
            mass = ndtr(b) - ndtr(a)
            slope = _density(b) - _density(a)
            parts = (mu - owners[first:last]) * mass - sigma * slope
            total += w * (signs[first:last] @ parts)
        return total / weight.sum()

    return mean_distance


def _density(t):
    return np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)


def _expected_distance_by_draws(points, weight, random_state):
    """Return the function sigma -> E min_j |draw - x_j| with fixed draws."""
    nodes = normal_points(sobol(points.shape[1], random_state), _EXACT_NODES)
    tree = KDTree(points)

    def mean_distance(sigma):
        total = 0.0
        for center, w in zip(points, weight, strict=True):
            total += w * tree.query(center + sigma * nodes)[0].mean()
        return total / weight.sum()

    return mean_distance


def diagonal_widths(points, weight):
    """Return a width per feature, each by itself ("naive Bayes bolstering")."""
    return np.array([approximate_width(column[:, None], weight) for column in points.T])


def widths_by_class(points, codes, weight, *, center="median"):
    """Return the approximate width of each class, among the rows of the class.

    A class whose rows are all the same has no distance of its own; it gets that to the
    nearest row of any class.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    codes : ndarray of int of shape (n,)
        Classes 0, 1, ..., all present.
    weight : ndarray of shape (n,)
    center : {'mean', 'median'}

    Returns
    -------
    widths : ndarray of shape (n_classes,)
    """
    chi = {"mean": chi_mean, "median": chi_median}[center](points.shape[1])
    widths = np.empty(codes.max() + 1)
    for code in range(len(widths)):
        rows = np.flatnonzero(codes == code)
        distance = mean_nearest_distance(points[rows], weight[rows])
        if distance == 0.0 and len(rows) < len(points):
            others = np.flatnonzero(codes != code)
            gaps, _ = KDTree(points[others]).query(points[rows])
            distance = np.average(gaps, weights=weight[rows])
        widths[code] = distance / chi
    return widths
