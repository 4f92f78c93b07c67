"""Which rows belong to which sequence."""

from __future__ import annotations

import numpy as np

from skbounds._frames import only_column
from skbounds._labels import refuse_missing


def sequence_starts(n_samples, sequence_id=None, lengths=None):
    """Return the first row of each sequence, and the number of rows.

    Parameters
    ----------
    n_samples : int
    sequence_id : array-like of shape (n_samples,) or None
        Rows of a sequence are adjacent.
    lengths : array-like of int or None

    Returns
    -------
    starts : ndarray of int of shape (n_sequences + 1,)
    """
    if sequence_id is not None and lengths is not None:
        raise ValueError("sequence_id and lengths say the same; give one of them only.")
    if lengths is not None:
        sizes = np.asarray(lengths)
        whole = sizes.ndim == 1 and len(sizes) > 0 and sizes.dtype.kind in "iuf"
        if not whole or not ((sizes >= 1) & (sizes == np.round(sizes))).all():
            raise ValueError(f"lengths must be positive integers; got {lengths!r}.")
        if sizes.sum() != n_samples:
            raise ValueError(
                f"lengths must add up to the number of rows, {n_samples}; they add up "
                f"to {int(sizes.sum())}."
            )
        return np.r_[0, np.cumsum(sizes)].astype(np.int64)
    if sequence_id is None:
        return np.array([0, n_samples], dtype=np.int64)
    labels = np.asarray(only_column(sequence_id))
    if labels.shape != (n_samples,):
        raise ValueError(
            f"sequence_id must have one entry for each of the {n_samples} rows; got "
            f"shape {labels.shape}."
        )
    refuse_missing(labels, "sequence_id")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    starts = np.r_[0, changes, n_samples].astype(np.int64)
    first = labels[starts[:-1]].tolist()
    if len(set(first)) < len(first):
        raise ValueError(
            "sequence_id is interleaved: the rows of a sequence must stand one after "
            "the other, in the order of time."
        )
    return starts
