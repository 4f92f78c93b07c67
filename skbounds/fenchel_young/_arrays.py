"""Checks and forms of arrays before they reach compiled code."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

# Squares of entries must not overflow; in single precision, where features are not
# scaled, products with weights must not either.
_LARGEST = 1e150
_LARGEST_SINGLE = 1e15


def get_kernel(learner, sparse):
    """Return the compiled loop."""
    from skbounds.fenchel_young import _streams

    kind = "mixture" if learner == "mixture" else "single"
    return getattr(_streams, f"{kind}_{'sparse' if sparse else 'dense'}")


def csr_arrays(X):
    """Return data, int32 indices and int64 index pointers."""
    return (
        read_only(X.data),
        read_only(np.asarray(X.indices, dtype=np.int32)),
        read_only(np.asarray(X.indptr, dtype=np.int64)),
    )


def read_only(array):
    """Return a read-only view: one compiled specialisation serves all inputs."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


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
