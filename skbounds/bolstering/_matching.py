"""Folds in which every held-out row has a close relative in the training part."""

from __future__ import annotations

import numpy as np

from skbounds.bolstering._neighbors import match_pairs


def matched_groups(points, codes, n_folds):
    """Return groups of as many close rows as there are folds, and the rows left over.

    Rows are paired within their class, always the closest two that are left; for four
    folds the pairs are then paired by their centres.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    codes : ndarray of int of shape (n,) or None
        Classes.
    n_folds : {2, 4}

    Returns
    -------
    groups : ndarray of int of shape (n_groups, n_folds)
    leftover : ndarray of int
    """
    classes = [np.arange(len(points))]
    if codes is not None:
        classes = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
    groups, leftover = [], []
    for rows in classes:
        pairs, rest = match_pairs(points[rows])
        if n_folds == 4:
            centers = 0.5 * (points[rows][pairs[:, 0]] + points[rows][pairs[:, 1]])
            of_pairs, single = match_pairs(centers)
            rest = np.concatenate([pairs[single].ravel(), rest])
            pairs = pairs[of_pairs].reshape(-1, 4)
        groups.append(rows[pairs])
        leftover.append(rows[rest])
    return np.concatenate(groups), np.concatenate(leftover)


def assign_folds(groups, leftover, n_rows, rng):
    """Deal the rows of each group to the folds at random, those left over in turn.

    Returns
    -------
    folds : ndarray of int of shape (n_rows,)
    """
    n_folds = groups.shape[1]
    folds = np.empty(n_rows, dtype=np.intp)
    orders = np.tile(np.arange(n_folds), (len(groups), 1))
    folds[groups] = rng.permuted(orders, axis=1)
    n_rounds = -(-len(leftover) // n_folds)
    rounds = rng.permuted(np.tile(np.arange(n_folds), (n_rounds, 1)), axis=1)
    folds[leftover] = rounds.ravel()[: len(leftover)]
    return folds
