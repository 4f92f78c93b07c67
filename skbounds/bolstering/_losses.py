"""Losses, from targets and predictions to a number per row, and scores of parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbounds._labels import code_labels
from skbounds._sklearn_compat import is_scorer

NAMES = ("squared", "absolute", "zero_one", "log", "brier")
CLASSIFICATION = ("zero_one", "log", "brier")
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
        return "predict_proba" if self.kind in ("log", "brier") else "predict"

    def __call__(self, targets, predictions, classes=None):
        """Return the losses.

        Parameters
        ----------
        targets : ndarray of shape (n,) or (n, m)
        predictions : ndarray of shape (n,) or (n, m), or (n, n_classes)
        classes : ndarray or None
            Of the columns of probabilities, in any order.

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
            likelihood = _own_probability(targets, predictions, classes)
            losses = -np.log(np.clip(likelihood, _LEAST, 1.0))
        elif self.kind == "brier":
            own = _own_probability(targets, predictions, classes)
            # |p - e|^2; with two classes half of it, as scikit-learn has it.
            losses = (predictions**2).sum(axis=1) - 2.0 * own + 1.0
            if predictions.shape[1] == 2:
                losses = 0.5 * losses
        else:
            gaps = np.asarray(targets, dtype=np.float64) - predictions
            losses = gaps**2 if self.kind == "squared" else np.abs(gaps)
            if losses.ndim == 2:
                losses = losses.mean(axis=1)
        if not np.isfinite(losses).all():
            raise ValueError(
                f"loss={self.name!r} is not finite for some rows: the estimator "
                "predicts NaN or infinity (moved rows may be outside the range of its "
                "data)."
            )
        return losses


@dataclass(frozen=True)
class Score:
    """A score of a fitted estimator on some rows that is no mean of losses.

    Attributes
    ----------
    name : str
    scorer : callable
        ``scorer(estimator, X, y)``.
    """

    name: str
    scorer: object

    kind = "score"
    response = None

    @property
    def function(self):
        """The scorer."""
        return self.scorer


def score_name(item):
    """Return the name of a function, or of the metric behind a scorer."""
    metric = getattr(item, "_score_func", item)
    return getattr(metric, "__name__", None) or repr(item)


def _own_probability(targets, probabilities, classes):
    """Return what each row's own class got; 0 for classes that are not known."""
    places = code_labels(targets, classes)
    own = probabilities[np.arange(len(targets)), places]
    return np.where(places < 0, 0.0, own)


def resolve_losses(loss, classification):
    """Return the losses and scores asked for, as a list.

    Parameters
    ----------
    loss : str, callable, Score or list of these
    classification : bool
    """
    given = loss if isinstance(loss, (list, tuple)) else [loss]
    if not len(given):
        raise ValueError("loss must not be an empty list.")
    found = []
    for item in given:
        if isinstance(item, Score) or (isinstance(item, Loss) and item.function):
            found.append(item)
            continue
        if isinstance(item, Loss):
            item = item.name
        if callable(item):
            name = score_name(item)
            taken = [other.name for other in found]
            number = 1 + sum(other.startswith(name) for other in taken)
            name = f"{name}_{number}" if name in taken else name
            found.append(Score(name, item) if is_scorer(item) else Loss(name, item))
            continue
        if item == "auto":
            item = "zero_one" if classification else "squared"
        if item not in NAMES:
            raise ValueError(
                f"loss must be 'auto', one of {NAMES}, a callable or a list of these; "
                f"got {item!r}."
            )
        if (item in CLASSIFICATION) != classification:
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
            f"{type(estimator).__name__} predicts NaN or infinity for some rows (moved "
            "rows may leave the range that the estimator is defined on)."
        )
    return result
