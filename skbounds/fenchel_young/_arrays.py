"""Checks and forms of arrays before they reach compiled code."""

from __future__ import annotations

import numpy as np

# Squares of entries must not overflow.
_LARGEST = 1e150


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


def check_magnitude(values, name):
    """Refuse what is not finite or has no finite square."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < _LARGEST:
        what = "NaN or infinity" if not np.isfinite(largest) else f"{largest:.3g}"
        raise ValueError(f"{name} contains {what}; entries must be below {_LARGEST:g}.")
