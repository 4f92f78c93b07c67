"""Nearest rows."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from skbounds._blocks import memory_limit, row_blocks

# Looking at all pairs is faster than a tree for this few rows, ...
FEW_ROWS = 600
# ... or in more dimensions than this.
_TREE_DIMENSIONS = 12


def nearest_rows(points, n_neighbors, queries=None):
    """Find the nearest other rows of each row.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    n_neighbors : int
        At most n - 1.
    queries : ndarray of int or None
        Rows to find the neighbours of; None: all.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_neighbors)
        Increasing along a row.
    neighbors : ndarray of int of shape (n_queries, n_neighbors)
        Among equally distant ones the first rows come first.
    """
    rows = np.arange(len(points)) if queries is None else queries
    # One more than asked for tells whether the last place is tied.
    k = min(n_neighbors + 1, len(points) - 1)
    if len(points) <= FEW_ROWS:
        distances = _distances_to_others(points, rows)
        if n_neighbors == 1:
            others = distances.argmin(axis=1)[:, None]
            return np.take_along_axis(distances, others, axis=1), others
        others = np.argpartition(distances, k - 1, axis=1)[:, :k]
    else:
        if points.shape[1] <= _TREE_DIMENSIONS:
            _, found = KDTree(points).query(points[rows], k=k + 1)
        else:
            found = _nearest_by_products(points, rows, k + 1)
        # A row's own number goes last, also where duplicates have crowded it out.
        is_self = found == rows[:, None]
        is_self[:, -1] |= ~is_self.any(axis=1)
        others = found[~is_self].reshape(len(rows), k)
    distances = np.sqrt(((points[others] - points[rows][:, None]) ** 2).sum(axis=2))
    order = np.lexsort((others, distances), axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    others = np.take_along_axis(others, order, axis=1)
    if k > n_neighbors:
        tied = np.flatnonzero(distances[:, -1] == distances[:, -2])
        for block in row_blocks(len(tied), memory_limit() // (4 * len(points))):
            part = _distances_to_others(points, rows[tied[block]])
            nearest = part.argsort(axis=1, kind="stable")[:, :k]
            others[tied[block]] = nearest
            distances[tied[block]] = np.take_along_axis(part, nearest, axis=1)
    return distances[:, :n_neighbors], others[:, :n_neighbors]


def _distances_to_others(points, rows):
    """Return distances of some rows to all; a row is infinitely far from itself."""
    distances = cdist(points[rows], points)
    distances[np.arange(len(rows)), rows] = np.inf
    return distances


def _nearest_by_products(points, rows, k):
    """Return the k nearest rows, themselves included, from inner products."""
    centred = points - points.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    found = np.empty((len(rows), k), dtype=np.intp)
    for block in row_blocks(len(rows), memory_limit() // (4 * len(points))):
        distances = squares - 2.0 * centred[rows[block]] @ centred.T
        found[block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return found


def nearest_distances(points):
    """Return each row's distance to the nearest row that differs from it.

    Rows without such a row get 0.
    """
    if len(points) < 2:
        return np.zeros(len(points))
    distances = nearest_rows(points, 1)[0][:, 0]
    if (distances > 0.0).all():
        return distances
    distinct, inverse = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) == 1:
        return np.zeros(len(points))
    return nearest_rows(distinct, 1)[0][inverse.ravel(), 0]
