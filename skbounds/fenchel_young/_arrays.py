"""Checks and forms of arrays before they reach compiled code."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

# Squares of entries must not overflow; in single precision, where features are not
# scaled, products with weights must not either.
_LARGEST = 1e150
_LARGEST_SINGLE = 1e15


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
    # Two passes instead of a copy of absolute values.
    top = float(values.max(initial=0.0))
    largest = max(top, -float(values.min(initial=0.0)))
    if not (largest < limit and top == top):
        what = "NaN or infinity" if not np.isfinite(largest) else f"{largest:.3g}"
        raise ValueError(f"{name} contains {what}; entries must be below {limit:g}.")


def canonical_rows(X):
    """Return rows whose indices can be trusted, each feature once."""
    if sp.issparse(X):
        X.check_format(full_check=True)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X
