"""Which rows belong to which sequence."""

from __future__ import annotations

import numpy as np

from skbounds._frames import only_column
from skbounds._labels import refuse_missing


class Sequences:
    """Sequences of rows, one after the other.

    Attributes
    ----------
    starts : ndarray of int of shape (n_sequences + 1,)
        First row of each sequence once rows are arranged, and the number of rows.
    order : ndarray of int of shape (n_samples,) or None
        Rows of equal labels brought together, in their order; None where they are.
    """

    def __init__(self, starts, order=None):
        self.starts, self.order = starts, order

    def arrange(self, values):
        """Return rows sequence after sequence."""
        return values if self.order is None else values[self.order]

    def restore(self, values):
        """Return what was found for arranged rows, in the order of the rows given."""
        if self.order is None:
            return values
        found = np.empty_like(values)
        found[self.order] = values
        return found


def find_sequences(n_samples, sequence_id=None, lengths=None):
    """Return the `Sequences` of rows.

    Parameters
    ----------
    n_samples : int
    sequence_id : array-like of shape (n_samples,) or None
        Rows of equal labels are a sequence in their order, adjacent or not.
    lengths : array-like of int or None
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
        return Sequences(np.r_[0, np.cumsum(sizes)].astype(np.int64))
    if sequence_id is None:
        return Sequences(np.array([0, n_samples], dtype=np.int64))
    labels = np.asarray(only_column(sequence_id))
    if labels.shape != (n_samples,):
        raise ValueError(
            f"sequence_id must have one entry for each of the {n_samples} rows; got "
            f"shape {labels.shape}."
        )
    refuse_missing(labels, "sequence_id")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    starts = np.r_[0, changes, n_samples].astype(np.int64)
    blocks = labels[starts[:-1]].tolist()
    # Numbers of sequences in the order of their first rows.
    number = {}
    for label in blocks:
        number.setdefault(label, len(number))
    if len(number) == len(blocks):
        return Sequences(starts)
    codes = np.repeat([number[label] for label in blocks], np.diff(starts))
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    return Sequences(np.r_[0, np.cumsum(sizes)].astype(np.int64), order)
