"""Information criteria of a fitted hidden Markov model."""

from __future__ import annotations

import numpy as np

from skbounds.hmm import _emissions


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
        s, d = self.means_.shape
        if self._params_["structure"] == "symmetric":
            return d + 1
        start = s - 1 if self._params_["startprob"] == "free" else 0
        kind = self._params_["covariance_type"]
        return start + s * (s - 1) + _emissions.n_parameters(kind, s, d)
