"""Weights of classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils import compute_class_weight


def class_factors(class_weight, classes, codes, weight) -> np.ndarray:
    """Return what the rows of each class count, with weights that keep their sum.

    Parameters
    ----------
    class_weight : dict, 'balanced' or None
    classes : ndarray of shape (n_classes,)
    codes : ndarray of int of shape (n_samples,)
    weight : ndarray of shape (n_samples,)

    Returns
    -------
    factors : ndarray of shape (n_classes,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    totals = np.bincount(codes, weight, minlength=len(classes))
    if isinstance(class_weight, str):
        # Of the weights, not of the rows: a weight of two is two rows.
        return weight.sum() / (len(classes) * totals)
    factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not ((factors > 0.0) & np.isfinite(factors)).all():
        raise ValueError(
            "class_weight must give every class a positive finite weight; got "
            f"{class_weight!r}."
        )
    return factors * (weight.sum() / (factors @ totals))
