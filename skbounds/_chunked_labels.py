"""Classes of labels that are in chunks."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from skbounds._labels import check_labels, code_labels


def weights_of_labels(y, weight):
    """Return the labels of a chunk and the sums of their weights."""
    labels, codes = np.unique(check_labels(y), return_inverse=True)
    return labels, np.bincount(codes, weight)


def join_classes(found):
    """Return the classes and the sums of their weights.

    Parameters
    ----------
    found : list
        Of what `weights_of_labels` returns.
    """
    labels = np.concatenate([labels for labels, _ in found])
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, np.bincount(codes, np.concatenate([w for _, w in found]))


def codes_of(y, classes):
    """Return the numbers of the classes of a chunk's labels."""
    return code_labels(check_labels(y, known=True), classes)
