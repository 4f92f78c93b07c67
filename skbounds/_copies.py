"""Rows that repeat other rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

# Values that a column of measurements has at least; fewer repeat by chance.
_FEW_VALUES = 10


def copy_ids(values, codes):
    """Return a number for each row, the same for rows that are the same.

    Parameters
    ----------
    values : {ndarray, sparse matrix} of shape (n, d)
        Numbers; NaN equals NaN.
    codes : ndarray of shape (n,) or (n, m)
        What else must be equal: targets.

    Returns
    -------
    ids : ndarray of int of shape (n,) or None
        None where no column looks continuous, and rows repeat by chance.
    """
    n, d = values.shape
    if n < 2:
        return np.arange(n)
    # Rows that are the same are next to each other in the order of a projection.
    direction = np.random.RandomState(0).standard_normal(d)
    with np.errstate(over="ignore", invalid="ignore"):
        known = values if issparse(values) else np.nan_to_num(values)
        keys = np.asarray(known @ direction).ravel()
        order = np.argsort(keys, kind="stable")
        apart = ~(np.diff(keys[order]) <= 1e-9 * np.abs(keys[order[1:]]))
    run = np.empty(n, dtype=np.intp)
    run[order] = np.r_[0, np.cumsum(apart)]
    codes = np.asarray(codes).reshape(n, -1)
    places = np.unique(codes[:, 0], return_inverse=True)[1].ravel()
    order = np.lexsort((places, run))
    close = np.flatnonzero(np.diff(run[order]) == 0)
    first, second = order[close], order[close + 1]
    equal = _equal_rows(values, first, second)
    equal &= (codes[first] == codes[second]).all(axis=1)
    if equal.any() and not looks_continuous(values):
        return None
    begins = np.ones(n, dtype=bool)
    begins[close[equal] + 1] = False
    ids = np.empty(n, dtype=np.intp)
    ids[order] = np.cumsum(begins) - 1
    return ids


def looks_continuous(values):
    """Tell whether rows of these features that are the same are copies."""
    if issparse(values):
        return len(np.unique(values.data)) > _FEW_VALUES
    return bool((count_values(values) > _FEW_VALUES).any())


def _equal_rows(values, first, second):
    if issparse(values):
        values = values.tocsr()
        return np.asarray(abs(values[first] - values[second]).sum(axis=1)).ravel() == 0
    one, other = values[first], values[second]
    same = one == other
    same |= np.isnan(one) & np.isnan(other)
    return same.all(axis=1)


def count_values(values):
    """Return the number of distinct values of each column."""
    ordered = np.sort(values, axis=0)
    return 1 + (ordered[1:] > ordered[:-1]).sum(axis=0)
