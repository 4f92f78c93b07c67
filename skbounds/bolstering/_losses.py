"""Losses, from targets and predictions to a number per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NAMES = ("squared", "absolute", "zero_one", "log")
_CLASSIFICATION = ("zero_one", "log")
# The least probability whose logarithm is taken.
_LEAST = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Loss:
    """A loss.

    Attributes
    ----------
    name : str
    function : callable or None
        The user's own.
    """

    name: str
    function: object = None

    @property
    def kind(self):
        """What the loss is, where that is known."""
        return self.name if self.function is None else "own"

    @property
    def response(self):
        """What of the estimator the loss is of."""
        return "predict_proba" if self.kind == "log" else "predict"

    def __call__(self, targets, predictions, classes=None):
        """Return the losses.

        Parameters
        ----------
        targets : ndarray of shape (n,) or (n, m)
        predictions : ndarray of shape (n,) or (n, m), or (n, n_classes)
        classes : ndarray or None
            Of the columns of probabilities.

        Returns
        -------
        losses : ndarray of shape (n,)
        """
        if self.function is not None:
            losses = np.asarray(self.function(targets, predictions), dtype=np.float64)
            if losses.shape != (len(targets),):
                raise ValueError(
                    f"loss={self.name} must return one number per row, shape "
                    f"({len(targets)},); got shape {losses.shape}."
                )
        elif self.kind == "zero_one":
            losses = (targets != predictions).astype(np.float64)
        elif self.kind == "log":
            columns = np.searchsorted(classes, targets)
            likelihood = predictions[np.arange(len(targets)), columns]
            losses = -np.log(np.clip(likelihood, _LEAST, 1.0))
        else:
            gaps = np.asarray(targets, dtype=np.float64) - predictions
            losses = gaps**2 if self.kind == "squared" else np.abs(gaps)
            if losses.ndim == 2:
                losses = losses.mean(axis=1)
        if not np.isfinite(losses).all():
            raise ValueError(
                f"loss={self.name!r} is not finite for a moved row: the estimator "
                "predicts NaN or infinity outside the range of its data."
            )
        return losses


def resolve_losses(loss, classification):
    """Return the losses asked for, as a list.

    Parameters
    ----------
    loss : str, callable or list of these
    classification : bool
    """
    given = loss if isinstance(loss, (list, tuple)) else [loss]
    if not len(given):
        raise ValueError("loss must not be an empty list.")
    found = []
    for item in given:
        if callable(item):
            name = getattr(item, "__name__", repr(item))
            taken = [other.name for other in found]
            number = 1 + sum(other.startswith(name) for other in taken)
            found.append(Loss(f"{name}_{number}" if name in taken else name, item))
            continue
        if item == "auto":
            item = "zero_one" if classification else "squared"
        if item not in NAMES:
            raise ValueError(
                f"loss must be 'auto', one of {NAMES}, a callable or a list of these; "
                f"got {item!r}."
            )
        if (item in _CLASSIFICATION) != classification:
            kind = "a classifier" if classification else "a regressor"
            raise ValueError(f"loss={item!r} does not suit {kind}.")
        found.append(Loss(item))
    names = [item.name for item in found]
    if len(set(names)) < len(names):
        raise ValueError(f"loss must not repeat a loss; got {names!r}.")
    return found


def respond(estimator, X, response):
    """Return predictions as an array; (n, 1) counts as (n,)."""
    method = getattr(estimator, response, None)
    if method is None:
        raise AttributeError(
            f"{type(estimator).__name__} has no {response}, which the loss needs."
        )
    result = np.asarray(method(X))
    if response == "predict" and result.ndim == 2 and result.shape[1] == 1:
        result = result[:, 0]
    if result.dtype.kind == "f" and not np.isfinite(result).all():
        raise ValueError(
            f"{type(estimator).__name__} predicts NaN or infinity for some rows: moved "
            "rows may leave the range that the estimator is defined on."
        )
    return result
