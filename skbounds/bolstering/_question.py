"""A fitted estimator, its rows, and what is to be known about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from skbounds._sklearn_compat import num_samples
from skbounds.bolstering._losses import respond


@dataclass(frozen=True)
class Question:
    """A fitted estimator, its rows, and what is to be known about it.

    Attributes
    ----------
    estimator : estimator
    table : Table
    targets : ndarray of shape (n,) or (n, m)
        Labels, or numbers.
    weight : ndarray of shape (n,)
    losses : list of Loss
    asked : list of int
        Numbers of rows that were predicted.
    """

    estimator: object
    table: object
    targets: np.ndarray
    weight: np.ndarray
    losses: list
    asked: list = field(default_factory=list)

    @cached_property
    def at_rows(self):
        """What the losses are of, at the rows."""
        return self.responses(self.table.X)

    @property
    def classes(self):
        return getattr(self.estimator, "classes_", None)

    def note(self, predictions):
        """Count predictions at the rows that were found without asking for them."""
        self.asked.append(len(predictions))
        return predictions

    def ask(self, X, method="predict", *, moved=False):
        """Return predictions.

        Parameters
        ----------
        X : array-like
        method : str
        moved : bool
            Whether some of the rows were moved: errors are then about that.
        """
        self.asked.append(num_samples(X))
        if not moved:
            return respond(self.estimator, X, method)
        try:
            return respond(self.estimator, X, method)
        except Exception as error:
            raise ValueError(
                f"{type(self.estimator).__name__} failed on moved rows, which may have "
                "left the range it is defined on (logarithms, codes of categories): "
                f"{error} Name such columns in categorical_features, or transform them "
                "before."
            ) from error

    def responses(self, X, *, moved=False):
        """Return what the losses are of, by name of the method."""
        names = dict.fromkeys(loss.response for loss in self.losses)
        return {name: self.ask(X, name, moved=moved) for name in names}

    def evaluate(self, targets, responses):
        """Return the losses by name."""
        return {
            loss.name: loss(targets, responses[loss.response], self.classes)
            for loss in self.losses
        }
