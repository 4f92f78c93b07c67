"""Labels as positions among sorted classes."""

from __future__ import annotations

import numpy as np


def code_labels(labels, classes) -> np.ndarray:
    """Return the position of each label among sorted classes, -1 for others.

    Parameters
    ----------
    labels : array-like of shape (n,)
    classes : ndarray of shape (n_classes,)
        Sorted.
    """
    labels = np.asarray(labels)
    try:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError:
        # Texts and numbers in one array have no order.
        places = {label: code for code, label in enumerate(classes.tolist())}
        return np.array([places.get(v, -1) for v in labels.tolist()], dtype=np.intp)
    return np.where(classes[codes] == labels, codes, -1)
