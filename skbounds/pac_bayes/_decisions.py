"""What any classifier says of rows: its labels, and how sure it is of them."""

from __future__ import annotations

import numpy as np
from scipy.special import logit
from sklearn.frozen import FrozenEstimator

from skbounds._labels import code_labels

# Probabilities nearer to 0 and 1 are taken for these.
_LEAST = 1e-3


def member_codes(member, X, classes) -> np.ndarray:
    """Return the codes of the labels that a member predicts."""
    return code_labels(member.predict(X), classes)


def _decides_pairs(member, n_classes):
    """Whether decision values are of pairs of classes, of which 3 have 3."""
    while isinstance(member, FrozenEstimator):
        member = member.estimator
    return n_classes == 3 and any(
        name.endswith("decision_function_shape") and value == "ovo"
        for name, value in member.get_params().items()
    )


def member_decisions(member, X, classes) -> np.ndarray:
    """Return decision values of some classes, from whatever a classifier offers.

    Its decision function, the logits of its probabilities, or its votes.

    Parameters
    ----------
    member : classifier
        Fitted.
    X : array-like
    classes : ndarray of shape (n_classes,)
        Sorted; the member may know others.

    Returns
    -------
    decisions : ndarray of shape (n, n_classes), or (n, 1) for two classes
    """
    known = np.asarray(member.classes_)
    found = None
    if hasattr(member, "decision_function"):
        found = np.asarray(member.decision_function(X), dtype=np.float64)
        if found.ndim == 1:
            found = np.column_stack([-found, found])
            found *= 0.5
        if found.shape[1] != len(known) or _decides_pairs(member, len(known)):
            found = None
    if found is None and hasattr(member, "predict_proba"):
        shares = np.clip(member.predict_proba(X), _LEAST, 1.0 - _LEAST)
        found = 0.5 * logit(shares) if len(known) == 2 else np.log(shares)
    if found is None or not np.isfinite(found).all():
        codes = code_labels(member.predict(X), known)
        found = np.where(codes[:, None] == np.arange(len(known)), 0.5, -0.5)
    result = np.empty((len(found), len(classes)))
    result[:] = found.min(axis=1, keepdims=True) - 1.0
    places = code_labels(known, classes)
    result[:, places[places >= 0]] = found[:, places >= 0]
    if len(classes) == 2:
        return result[:, 1:] - result[:, :1]
    return result
