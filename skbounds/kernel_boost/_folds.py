"""Folds that depend on the rows' values and a seed, and not on their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbounds.kernel_boost._hashes import (
    are_copies,
    row_hashes,
    sort_rows,
    unit_hashes,
)

# Rows up to which each fold is left out in its turn; beyond, so many in all.
_ENOUGH = 4000
# Observations up to which each is dealt out by a hash of its own.
_MOST_UNITS = 2**22


@dataclass(frozen=True)
class Folds:
    """Which rows are left out together, and how much of their weight.

    Attributes
    ----------
    rows : list of ndarray of int
        Of each fold that is left out.
    held : list of ndarray
        The weights that are left out, at most those of the rows.
    n_units : float
        How many rows there are, left out or not: copies are one where they stay
        together.
    """

    rows: list
    held: list
    n_units: float

    def __len__(self):
        return len(self.rows)

    @property
    def total(self):
        """The sum of all weights that are left out."""
        return float(sum(held.sum() for held in self.held))

    def dense(self, n):
        """Return the weights that are left out, (n, n_folds)."""
        table = np.zeros((n, len(self)))
        for k, (rows, held) in enumerate(zip(self.rows, self.held, strict=True)):
            table[rows, k] = held
        return table

    def scaled(self, factors):
        """Return the folds with the rows' weights multiplied."""
        held = [w * factors[rows] for rows, w in zip(self.rows, self.held, strict=True)]
        return Folds(self.rows, held, self.n_units)


def hash_folds(
    X, targets, weight, n_folds, seed, *, codes, groups, kernel_matrix, all_folds
):
    """Return folds by the order of the rows' hashes.

    Rows are sorted by class and hash and dealt out one by one. Copies of a row stay
    together. Where equal rows are other observations, a row of weight w stands for w of
    them, each with a hash of its own: dealt out one after the other, those that are
    left out at a point would have the mean of the others, and noise would look like
    what can be learnt. In both cases whole weights are the same as repetition. Groups
    stay together.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n, m) or None
        What rows that are the same share as well, beside their class.
    weight : ndarray of shape (n,)
        Positive.
    n_folds : int
    seed : int
    codes : ndarray of int of shape (n,) or None
        Classes, each of which is dealt out.
    groups : ndarray of shape (n,) or None
    kernel_matrix : bool
        Whether X is one.
    all_folds : bool
        Leave out each fold, however many rows there are.

    Returns
    -------
    folds : Folds
    """
    hashes = row_hashes(X, seed, kernel_matrix=kernel_matrix)
    rank = None if codes is None else _places(codes, hashes)[codes]
    order, begins = sort_rows(hashes, targets, rank)
    n_distinct = int(begins.sum())
    if groups is not None:
        _, unit = np.unique(groups, return_inverse=True)
        place = _places(unit.ravel(), hashes)
        unit, n_units = place[unit.ravel()], len(place)
    elif n_distinct > 1 and are_copies(X, hashes, order, begins, weight):
        _, point = np.unique(hashes, return_inverse=True)
        n_units = n_distinct
        # A point in several classes is where the first of them is.
        first = np.full(n_units, n_units)
        np.minimum.at(first, point[order], np.cumsum(begins) - 1)
        unit = first[point]
    else:
        return _counted(
            order, hashes, rank, weight, n_folds, n_distinct, all_folds, seed
        )
    if n_units < 2:
        raise ValueError(
            "groups must name at least 2 groups, which are left out in turn; got 1."
        )
    n_folds = min(n_folds, n_units)
    fold = unit % n_folds
    used = range(n_folds_used(n_folds, n_distinct, all_folds))
    rows = [np.flatnonzero(fold == k) for k in used]
    return Folds(rows, [weight[own] for own in rows], float(n_distinct))


def _places(codes, hashes):
    """Return the places of classes or groups in the order of their least hashes.

    Names do not count.
    """
    least = np.full(codes.max() + 1, np.iinfo(np.uint64).max)
    np.minimum.at(least, codes, hashes)
    place = np.empty(len(least), dtype=np.intp)
    place[np.argsort(least, kind="stable")] = np.arange(len(least))
    return place


def _counted(order, hashes, rank, weight, n_folds, n_distinct, all_folds, seed):
    """Return the folds of rows that are dealt out as often as they count."""
    w = weight[order]
    total = float(w.sum())
    n_units = max(total, float(n_distinct))
    if (w == np.round(w)).all():
        n_folds = int(min(n_folds, total))
        used = n_folds_used(n_folds, n_distinct, all_folds)
        if total > _MOST_UNITS:
            rng = np.random.default_rng(seed)
            counts = rng.multinomial(w.astype(np.int64), np.full(n_folds, 1 / n_folds))
            held = counts.T[:used].astype(np.float64)
        else:
            place = np.repeat(np.arange(len(order)), w.astype(np.intp))
            place = place[_order_of_units(order[place], hashes, rank)]
            held = [
                np.bincount(place[k::n_folds], minlength=len(order)).astype(np.float64)
                for k in range(used)
            ]
    else:
        n_folds = min(n_folds, len(w))
        # Weights that are less than one on average are relative ones.
        scale = max(1.0, len(w) / total)
        fold = np.floor((np.cumsum(w) - 0.5 * w) * scale) % n_folds
        k = np.arange(n_folds_used(n_folds, n_distinct, all_folds))[:, None]
        held = np.where(fold == k, w, 0.0)
    rows = [np.flatnonzero(own) for own in held]
    found = [(order[r], own[r]) for r, own in zip(rows, held, strict=True) if len(r)]
    return Folds([rows for rows, _ in found], [own for _, own in found], n_units)


def _order_of_units(rows, hashes, rank):
    """Return the order in which observations are dealt out, by class and own hash."""
    point = hashes[rows]
    number = np.zeros(len(rows), dtype=np.intp) if rank is None else rank[rows]
    begins = np.r_[True, (np.diff(point) != 0) | (np.diff(number) != 0)]
    places = np.arange(len(rows))
    count = places - np.maximum.accumulate(np.where(begins, places, 0))
    return np.lexsort((unit_hashes(point, number, count), number))


def n_folds_used(n_folds, n_rows, all_folds):
    if all_folds:
        return n_folds
    return min(n_folds, int(np.ceil(_ENOUGH * n_folds / n_rows)))


def given_folds(fold, weight):
    """Return the folds of given numbers, negative for rows that are never left out."""
    rows = [np.flatnonzero(fold == k) for k in range(fold.max() + 1)]
    rows = [own for own in rows if len(own)]
    n_units = max(float(weight.sum()), float(len(weight)))
    return Folds(rows, [weight[own] for own in rows], n_units)


def _test_rows(split, n):
    """Return the row numbers of a test set, checked."""
    if not isinstance(split, (tuple, list)) or len(split) != 2:
        raise ValueError(
            "cv must be a number, a cross-validation generator or an iterable of "
            f"pairs of training and test rows; got {split!r} in it."
        )
    test = np.asarray(split[1])
    if test.dtype == bool and test.shape == (n,):
        return np.flatnonzero(test)
    if test.ndim != 1 or (len(test) and test.dtype.kind not in "iu"):
        raise ValueError(
            f"test rows of cv must be numbers of rows or a mask of {n} rows; got "
            f"an array of shape {test.shape} and type {test.dtype}."
        )
    test = test.astype(np.intp)
    if ((test < 0) | (test >= n)).any():
        raise ValueError(f"test rows of cv must be in [0, {n}); got {test.tolist()}.")
    return test


def numbers_of_split(splits, n, *, complete):
    """Return the number of the test set that each row is in, -1 for none.

    Parameters
    ----------
    splits : iterable of (train, test)
    n : int
    complete : bool
        Whether each row must be in one.
    """
    fold = np.full(n, -1)
    for k, split in enumerate(splits):
        test = _test_rows(split, n)
        if (fold[test] >= 0).any() or len(np.unique(test)) < len(test):
            raise ValueError(
                "the test sets of cv must be disjoint; a row is in two of them."
            )
        fold[test] = k
    if (fold < 0).all():
        raise ValueError("cv has no test rows.")
    if complete and (fold < 0).any():
        raise ValueError(
            "intervals=True needs a cv whose test sets cover all rows; "
            f"{(fold < 0).sum()} of {n} are in none."
        )
    return fold
