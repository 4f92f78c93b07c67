"""Groups of close rows, made without looking at their targets."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from skbounds.bolstering._smoothed._neighbors import FEW_ROWS, nearest_rows

# Neighbours per row that the matching looks at before it asks for more.
_LISTED = 10


def groups_of_four(points):
    """Return groups of four close rows, and the rows left over.

    The closest two rows that are left are paired, again and again; then the pairs, by
    their mid-points.

    Parameters
    ----------
    points : ndarray of shape (n, d)

    Returns
    -------
    groups : ndarray of int of shape (n // 4, 4)
    leftover : ndarray of int
    """
    pairs, single = match_pairs(points)
    # As if found one by one: it matters where pairs of pairs are equally distant.
    gaps = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], gaps))]
    centers = 0.5 * (points[pairs[:, 0]] + points[pairs[:, 1]])
    twos, alone = match_pairs(centers)
    return pairs[twos].reshape(-1, 4), np.concatenate([pairs[alone].ravel(), single])


def match_pairs(points):
    """Match rows in pairs, always the closest two that are left.

    Ties go to the first rows. Looks at each row's nearest neighbours only: the nearest
    one that is left is the row's best partner, and two that are each other's best are
    the closest pair sooner or later.

    Parameters
    ----------
    points : ndarray of shape (n, d)

    Returns
    -------
    pairs : ndarray of int of shape (n // 2, 2)
    leftover : ndarray of int of shape (n % 2,)
    """
    n = len(points)
    if not points.shape[1]:
        # Without coordinates any two rows are as close as any others.
        return np.arange(n - n % 2).reshape(-1, 2), np.arange(n - n % 2, n)
    rest, pairs = np.arange(n), []
    best_of = _best_of_few(points) if n <= FEW_ROWS else _best_of_many(points)
    best, is_left = np.full(n, -1), np.ones(n, dtype=bool)
    while len(rest) > 1:
        best[rest] = best_of(rest)
        mutual = rest[(best[best[rest]] == rest) & (rest < best[rest])]
        if not len(mutual):
            # A circle of equal distances: take one of its pairs.
            gaps = ((points[rest] - points[best[rest]]) ** 2).sum(axis=1)
            mutual = rest[[gaps.argmin()]]
        pairs.append(np.column_stack([mutual, best[mutual]]))
        is_left[pairs[-1]] = False
        rest = np.flatnonzero(is_left)
    if not pairs:
        return np.empty((0, 2), dtype=np.intp), rest
    return np.sort(np.concatenate(pairs), axis=1), rest


def _best_of_few(points):
    """Return a function from the rows left to the nearest of them for each."""
    distances = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)

    def best_of(rest):
        part = distances if len(rest) == len(points) else distances[np.ix_(rest, rest)]
        return rest[part.argmin(axis=1)]

    return best_of


def _best_of_many(points):
    """Return a function from the rows left to the nearest of them for each.

    Each row has a list of its nearest rows, made anew when none of them is left.
    """
    n = len(points)
    lists = np.tile(np.arange(n)[:, None], (1, _LISTED))
    is_left = np.zeros(n, dtype=bool)

    def usable(rest):
        # A row's own number fills up lists where few are left.
        return is_left[lists[rest]] & (lists[rest] != rest[:, None])

    def best_of(rest):
        is_left[:] = False
        is_left[rest] = True
        empty = np.flatnonzero(~usable(rest).any(axis=1))
        if len(empty):
            k = min(_LISTED, len(rest) - 1)
            _, found = nearest_rows(points[rest], k, empty)
            lists[rest[empty]] = rest[empty][:, None]
            lists[rest[empty], :k] = rest[found]
        return lists[rest, usable(rest).argmax(axis=1)]

    return best_of
