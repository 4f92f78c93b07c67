"""Classes of labels that are in chunks."""

from __future__ import annotations

import numpy as np

from skbounds._labels import code_labels
from skbounds._validation import check_classification_targets


def weights_of_labels(y, weight):
    """Return the labels of a chunk and the sums of their weights."""
    labels, codes = np.unique(y, return_inverse=True)
    return labels, np.bincount(codes, weight)


def join_values(parts):
    """Return values of several arrays, none of which is text beside numbers."""
    kinds = {_kind(part) for part in parts if len(part)}
    if len(kinds) > 1:
        raise ValueError(
            "Unknown label type: chunks hold values of several kinds, "
            f"{' and '.join(sorted(kinds))}."
        )
    return np.concatenate(parts)


def _kind(values):
    if values.dtype.kind in "US" or all(isinstance(v, str) for v in values.tolist()):
        return "texts"
    if values.dtype.kind in "mM":
        return "dates"
    return "objects" if values.dtype.kind == "O" else "numbers"


def join_classes(found):
    """Return the classes and the sums of their weights.

    Parameters
    ----------
    found : list
        Of what `weights_of_labels` returns.
    """
    labels = join_values([labels for labels, _ in found])
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, np.bincount(codes, np.concatenate([w for _, w in found]))


def codes_of(y, classes):
    """Return the numbers of the classes of a chunk's labels."""
    codes = code_labels(y, classes)
    if (codes < 0).any():
        raise ValueError(
            f"y has a label that was not there in the pass before, "
            f"{y[codes < 0].tolist()[0]!r}: collections must be the same each time."
        )
    return codes
