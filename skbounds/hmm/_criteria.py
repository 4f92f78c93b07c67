"""Information criteria of a fitted hidden Markov model."""

from __future__ import annotations

import numpy as np


class InformationCriteria:
    """Mixin: the likelihood, less a price of the parameters."""

    def bic(self, X, *, sequence_id=None, lengths=None):
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

    def aic(self, X, *, sequence_id=None, lengths=None):
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
        if "transmat" not in fixed:
            is_free = self._params_["structure"] == "free"
            size += s * (s - 1) if is_free else s * (s + 1) // 2 - 1
        if self._params_["startprob"] == "free" and "startprob" not in fixed:
            size += s - 1
        return size
