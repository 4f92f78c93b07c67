"""Numbers of rows that depend on their values and a seed, and on nothing else.

Of each feature the ranks of its distinct values are hashed: neither the order of the
rows, nor their repetition, nor the units of a feature change which rows come first.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from skbounds._copies import looks_continuous
from skbounds._hashes import GOLDEN, key_of, mix

# Digits of a kernel matrix that are not rounding.
_DIGITS = 6


def row_hashes(X, seed, *, kernel_matrix=False):
    """Return a hash of each row; rows of equal values have the same one.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
        Sparse rows have the hashes of dense ones.
    seed : int
    kernel_matrix : bool
        X is one, whose columns are rows as well: the set of a row's values counts, in
        whatever columns.

    Returns
    -------
    hashes : ndarray of uint64 of shape (n,)
    """
    seed = np.uint64(seed)
    with np.errstate(over="ignore"):
        if kernel_matrix:
            total = _of_kernel_matrix(X, key_of(seed, 0))
        elif issparse(X):
            total = _of_sparse(X, seed)
        else:
            total = np.zeros(len(X), dtype=np.uint64)
            for j, column in enumerate(X.T):
                total += _of_column(column, key_of(seed, j))
        return mix(total)


def value_hashes(X, seed):
    """Return a hash of each row's values themselves: of rows that are not all here.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
        Sparse rows have other hashes than dense ones.
    seed : int
    """
    seed = np.uint64(seed)
    with np.errstate(over="ignore"):
        if issparse(X):
            entries = X.tocoo(copy=True)
            entries.sum_duplicates()
            kept = entries.data != 0.0
            values = entries.data[kept].astype(np.float64).view(np.uint64)
            own = mix(values ^ key_of(seed, entries.col[kept]))
            total = np.zeros(X.shape[0], dtype=np.uint64)
            np.add.at(total, entries.row[kept], own)
            return mix(total)
        total = np.zeros(len(X), dtype=np.uint64)
        for j, column in enumerate(X.T):
            # Zero has two signs.
            values = np.ascontiguousarray(column + 0.0, dtype=np.float64)
            total += mix(values.view(np.uint64) ^ key_of(seed, j))
        return mix(total)


def sort_rows(hashes, targets, first_key=None):
    """Return rows in the order of their hashes, and where another row begins.

    Parameters
    ----------
    hashes : ndarray of shape (n,)
    targets : ndarray of shape (n, m) or None
        What rows that are the same share as well; they decide on the order of rows of
        equal hashes only.
    first_key : ndarray of shape (n,) or None
        What rows are sorted by before.

    Returns
    -------
    order : ndarray of int of shape (n,)
    begins : ndarray of bool of shape (n,)
        Whether the row in this place differs from the one before.
    """
    keys = [hashes] if first_key is None else [hashes, first_key]
    columns = [] if targets is None else list(targets.T)
    order = np.lexsort((*columns, *keys))
    begins = np.zeros(len(order), dtype=bool)
    begins[:1] = True
    for key in (*columns, *keys):
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    return order, begins


def are_copies(X, hashes, order, begins, weight):
    """Tell whether equal rows are copies, and not other observations.

    They are none where no feature looks continuous, nor where at least half of the
    points with several rows have several targets: what was measured again there.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    hashes : ndarray of shape (n,)
    order, begins : ndarray of shape (n,)
        Of `sort_rows`.
    weight : ndarray of shape (n,)
        Numbers of rows.
    """
    _, point = np.unique(hashes, return_inverse=True)
    n_targets = np.bincount(point[order], weights=begins)
    is_repeated = np.bincount(point, weights=weight) >= 2.0
    is_repeated |= n_targets > 1
    measured_again = 2 * int((n_targets > 1).sum()) >= max(int(is_repeated.sum()), 1)
    return not measured_again and looks_continuous(X)


def count_originals(X, targets, weight):
    """Return how many rows there are but for copies; None if equal rows are no copies.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n, m)
    weight : ndarray of shape (n,)
    """
    hashes = row_hashes(X, 0)
    order, begins = sort_rows(hashes, targets)
    if not are_copies(X, hashes, order, begins, weight):
        return None
    return int(begins.sum())


def unit_hashes(hashes, numbers, count):
    """Return other hashes for all observations of a point but its first.

    Parameters
    ----------
    hashes, numbers, count : ndarray of shape (n,)
        Of the observations: their point's hash, class, and how many of this class and
        point are before.
    """
    with np.errstate(over="ignore"):
        keys = key_of(np.uint64(0), numbers) + GOLDEN * count.astype(np.uint64)
        return np.where(count > 0, mix(hashes ^ mix(keys)), hashes)


def _of_column(column, key):
    ranks = np.unique(column, return_inverse=True)[1].ravel()
    return mix(ranks.astype(np.uint64) ^ key)


def _of_kernel_matrix(X, key):
    largest = np.abs(X).max(initial=0.0)
    rounded = np.round(X / (largest if largest > 0.0 else 1.0), _DIGITS) + 0.0
    total = np.empty(len(X), dtype=np.uint64)
    for i, row in enumerate(rounded):
        total[i] = mix(np.unique(row).view(np.uint64) ^ key).sum()
    return total


def _of_sparse(X, seed):
    """Hash what is not zero, and the zeros of all columns at once."""
    n, d = X.shape
    entries = X.tocoo(copy=True)
    entries.sum_duplicates()
    kept = np.flatnonzero(entries.data)
    rows, columns = entries.row[kept], entries.col[kept]
    # A zero for each column that has one, with row number n.
    with_zero = np.flatnonzero(np.bincount(columns, minlength=d) < n)
    rows = np.concatenate([rows, np.full(len(with_zero), n)])
    columns = np.concatenate([columns, with_zero]).astype(np.intp)
    values = np.concatenate([entries.data[kept], np.zeros(len(with_zero))])
    order = np.lexsort((values, columns))
    sorted_columns, sorted_values = columns[order], values[order]
    new_column = np.r_[True, np.diff(sorted_columns) != 0]
    new_value = new_column | np.r_[True, np.diff(sorted_values) != 0.0]
    count = np.cumsum(new_value) - 1
    first = np.maximum.accumulate(np.where(new_column, count, 0))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = (count - first).astype(np.uint64)
    hashes = mix(ranks ^ key_of(seed, columns))
    zeros = np.zeros(d, dtype=np.uint64)
    is_zero = rows == n
    zeros[columns[is_zero]] = hashes[is_zero]
    total = np.full(n, zeros.sum(), dtype=np.uint64)
    own = ~is_zero
    np.add.at(total, rows[own], hashes[own] - zeros[columns[own]])
    return total
