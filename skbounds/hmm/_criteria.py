"""Information criteria of a fitted hidden Markov model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skbounds._typing import MatrixLike


class InformationCriteria:
    """Mixin: the likelihood, less a price of the parameters."""

    if TYPE_CHECKING:
        # Of the classes that it is mixed into.
        def __getattr__(self, name: str) -> Any: ...

    def bic(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> float:
        """Return the Bayesian information criterion.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        bic : float
            Lower is better.
        """
        rows = self.score_samples(X, sequence_id=sequence_id, lengths=lengths)
        return float(self._n_parameters() * np.log(len(rows)) - 2.0 * rows.sum())

    def aic(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> float:
        """Return the Akaike information criterion.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        aic : float
            Lower is better.
        """
        rows = self.score_samples(X, sequence_id=sequence_id, lengths=lengths)
        return float(2.0 * self._n_parameters() - 2.0 * rows.sum())

    def _n_parameters(self):
        s = len(self.transmat_)
        if self._params_["structure"] == "symmetric":
            return self.means_.shape[1] + 1
        fixed = self._params_["fixed"]
        fixed = {fixed} if isinstance(fixed, str) else set(fixed)
        family = self._family()
        law = family.private(self._law())
        free = [name for name in family.names if name not in fixed]
        size = sum(family.n_parameters_of(name, law) for name in free)
        # Zeros at the start stay.
        given = self._params_["transmat_init"]
        possible = np.ones((s, s)) if given is None else np.asarray(given) > 0.0
        if "transmat" not in fixed:
            if self._params_["structure"] == "free":
                size += int(possible.sum()) - s
            else:
                size += int(np.triu(possible).sum()) - 1
        given = self._params_["startprob_init"]
        possible = np.ones(s) if given is None else np.asarray(given) > 0.0
        if self._params_["startprob"] == "free" and "startprob" not in fixed:
            size += int(possible.sum()) - 1
        return size
