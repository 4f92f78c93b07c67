"""Checks and forms of arrays before they reach compiled code."""

from __future__ import annotations

from math import sqrt

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from skbounds import _magnitude
from skbounds._blocks import row_blocks

# Squares of entries must not overflow; in single precision, where features are not
# scaled, products with weights must not either.
_LARGEST = 1e150
_LARGEST_SINGLE = 1e15
# Magnitudes of one scale differ by less than this factor.
_UNLIKE = 8.0
# Squares of weights, and of their inverses, are doubles.
_LARGEST_WEIGHT = 1e100


def aligned_zeros(n_rows, n_columns, dtype):
    """Return zeros that start on a cache line; memory is touched when it is used."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(n_rows * n_columns + 64 // itemsize, dtype)
    offset = (-memory.ctypes.data % 64) // itemsize
    return memory[offset : offset + n_rows * n_columns].reshape(n_rows, n_columns)


def csr_arrays(X):
    """Return data, int32 indices and int64 index pointers."""
    return (
        np.require(X.data, requirements=["C", "A"]),
        np.require(X.indices, np.int32, ["C", "A"]),
        np.require(X.indptr, np.int64, ["C", "A"]),
    )


def check_magnitude(values, name, *, raw):
    """Refuse what is not finite or has no finite square."""
    if raw and values.dtype == np.float32:
        limit = _LARGEST_SINGLE
    else:
        limit = _LARGEST
    _magnitude.check_magnitude(values, name, limit=limit)


def canonical_rows(X):
    """Return rows whose indices can be trusted, each feature once."""
    if sp.issparse(X):
        X.check_format(full_check=True)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def adapted_magnitudes(columns, values, n_columns, adapts):
    """Return the magnitudes that the entries of a sparse stream are divided by.

    Parameters
    ----------
    columns : ndarray of int of shape (n,)
        Of the entries, in the order of the stream.
    values : ndarray of shape (n,)
        None of them 0.
    n_columns : int
    adapts : bool
        Whether magnitudes follow entries that are unlike them, half of the way.
    """
    sizes = np.abs(values)
    if not adapts:
        known, first = np.unique(columns, return_index=True)
        magnitude = np.ones(n_columns)
        magnitude[known] = sizes[first]
        return magnitude[columns]
    magnitude, result = {}, np.empty(len(sizes))
    for place, (j, a) in enumerate(zip(columns.tolist(), sizes.tolist(), strict=True)):
        m = magnitude.get(j, a)
        if a > _UNLIKE * m or _UNLIKE * a < m:
            m *= sqrt(a / m)
        magnitude[j] = result[place] = m
    return result


def check_experts(experts):
    """Return the step multipliers of a mixture's experts."""
    try:
        values = np.asarray(experts, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(
            "experts must be a sequence of positive finite step multipliers; got "
            f"{experts!r}."
        )
    return values


def check_row_weights(sample_weight, n, dtype=np.float64):
    """Return the weights of n rows as doubles, or None where all are 1.

    Streams of single precision keep sums of their squares, and steps over them, in it.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},); got {weight.shape}.")
    single = dtype == np.float32
    largest = _LARGEST_SINGLE if single else _LARGEST_WEIGHT
    good = (weight >= 1.0 / largest) & (weight <= largest)
    good |= weight == 0.0
    if not good.all():
        raise ValueError(
            f"sample_weight must be 0, or from {1.0 / largest:g} to "
            f"{largest:g}{' in single precision' if single else ''}; got weights like "
            f"{weight[~good][0]:g}."
        )
    return None if (weight == 1.0).all() else weight


def largest_norm(X, weight, intercept):
    """Return the largest squared row norm, each times the weight of its row."""
    largest = 0.0
    for block in row_blocks(X.shape[0], 4096):
        norms = row_norms(X[block].astype(np.float64), squared=True) + intercept
        if weight is not None:
            norms = norms * weight[block]
        largest = max(largest, float(norms.max()))
    return largest
