"""Statistics of the columns of long and narrow arrays.

NumPy reduces along the rows with an inner loop as long as a row: ten times as slow for
a few columns as with many rows side by side, as here.
"""

from __future__ import annotations

import warnings

import numpy as np

# Numbers that are reduced at once.
_WIDTH = 256


def _side_by_side(X):
    """Return most rows, several in one, and the others."""
    many = max(1, _WIDTH // X.shape[1])
    n = len(X) // many * many
    if many == 1 or n == 0 or not X.flags.c_contiguous:
        return X[:0], X
    return X[:n].reshape(-1, many * X.shape[1]), X[n:]


def reduce_columns(ufunc, X):
    """Return ``ufunc.reduce(X, axis=0)``."""
    wide, rest = _side_by_side(X)
    if not len(wide):
        return ufunc.reduce(rest, axis=0)
    part = ufunc.reduce(wide, axis=0).reshape(-1, X.shape[1])
    return ufunc.reduce(np.concatenate([part, rest]), axis=0)


def means(X):
    """Return the means of the columns."""
    return reduce_columns(np.add, X) / len(X)


def variances(X):
    """Return the variances of the columns."""
    center = means(X)
    wide, rest = _side_by_side(X)
    gaps = rest - center
    total = np.einsum("ij,ij->j", gaps, gaps)
    if len(wide):
        gaps = wide - np.tile(center, wide.shape[1] // X.shape[1])
        squares = np.einsum("ij,ij->j", gaps, gaps)
        total = total + squares.reshape(-1, X.shape[1]).sum(axis=0)
    return total / len(X)


def deviations(X):
    """Return the standard deviations of the columns, 1 for constant ones."""
    found = np.sqrt(variances(X))
    return np.where(found > 0.0, found, 1.0)


def standard(X):
    """Return columns about their means, in units of their deviations."""
    return (X - means(X)) / deviations(X)


def filled(X):
    """Return rows with missing entries at the columns' means."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        center = np.nan_to_num(np.nanmean(X, axis=0))
    return np.where(missing, center, X)
