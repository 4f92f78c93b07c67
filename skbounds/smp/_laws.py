"""What predictors with a law per row and output can be asked."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbounds._base import KnowsItsError
from skbounds._collections import lazy_on_collections
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import Integral, Real
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import as_numbers, check_array


class ExpectsItsLogLoss(KnowsItsError):
    """Mixin: what leave-one-out says of the log loss."""

    def _knowledge(self):
        # Showing an estimator does not compute.
        lazy = "loo_log_loss_" in self._lazy_attributes
        loss = None if lazy else getattr(self, "loo_log_loss_", None)
        if loss is None or not np.isfinite(loss).all():
            return None
        return f"expects a log loss of {np.mean(loss):.3g} on new rows"


class PredictiveLaws(metaclass=ABCMeta):
    """Mixin: quantiles, densities, scores and draws of predictive laws.

    Subclasses say what they are, with a last axis of outputs, and have
    ``_single_output_`` and ``_n_outputs``.
    """

    @abstractmethod
    def _quantiles_of(self, X, levels):
        """Return quantiles (n_samples, n_quantiles, n_outputs)."""

    @abstractmethod
    def _log_density_of(self, X, y):
        """Return log densities (n_samples, n_outputs)."""

    @abstractmethod
    def _cdf_of(self, X, y):
        """Return distribution functions (n_samples, n_outputs)."""

    @abstractmethod
    def _crps_of(self, X, y):
        """Return continuous ranked probability scores (n_samples, n_outputs)."""

    @abstractmethod
    def _draws_of(self, X, size, rng):
        """Return draws (n_samples, size, n_outputs)."""

    def _by_output(self, values):
        """Drop the axis of outputs (the last) where y was 1-d."""
        return values[..., 0] if self._single_output_ else values

    def _check_targets(self, X, y):
        """Return targets (n_samples, n_outputs) that go with the rows and the fit."""
        check_is_fitted(self)
        y = check_array(as_numbers(y), ensure_2d=False, input_name="y")
        check_magnitude(y, "y")
        y = y.reshape(len(y), -1)
        expected = 1 if self._single_output_ else self._n_outputs
        if y.shape[1] != expected:
            raise ValueError(
                f"y has {y.shape[1]} outputs, but the estimator was fitted with "
                f"{expected}."
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(y):
            raise ValueError(
                f"X and y have different numbers of rows: {n_rows} and {len(y)}."
            )
        return y

    @lazy_on_collections
    def predict_quantiles(
        self, X: MatrixLike, quantiles: float | ArrayLike = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Predict quantiles of the predictive law.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        quantiles : float or array-like of shape (n_quantiles,), \
                default=(0.05, 0.5, 0.95)
            Probabilities, strictly between 0 and 1.

        Returns
        -------
        y_quantiles : ndarray of shape (n_samples, n_quantiles) or \
                (n_samples, n_quantiles, n_outputs)
            Quantiles.
        """
        check_is_fitted(self)
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(
                f"quantiles must lie strictly between 0 and 1; got {quantiles!r}."
            )
        return self._by_output(self._quantiles_of(X, levels))

    @lazy_on_collections
    def predict_interval(self, X: MatrixLike, level: float = 0.9) -> np.ndarray:
        """Predict central intervals.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        level : float, default=0.9
            Probability of the interval, in (0, 1).

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, 2, n_outputs)
            Quantiles at ``(1 - level) / 2`` and ``(1 + level) / 2``.
        """
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must lie in (0, 1); got {level!r}.")
        tail = 0.5 * (1.0 - level)
        return self.predict_quantiles(X, (tail, 1.0 - tail))

    def log_density(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Compute the log predictive density at observed targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log density in nats per row, summed over the outputs.
        """
        y = self._check_targets(X, y)
        return self._log_density_of(X, y).sum(axis=1)

    def cdf(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Compute the predictive distribution function at observed targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        probability : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Uniform over [0, 1] where the law is right.
        """
        y = self._check_targets(X, y)
        return self._by_output(self._cdf_of(X, y))

    def sample(
        self, X: MatrixLike, n_samples: int = 1, random_state: RandomState = None
    ) -> np.ndarray:
        """Draw targets from the predictive laws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        n_samples : int, default=1
            Draws per row.

        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        y_drawn : ndarray of shape (n_rows, n_samples) or \
                (n_rows, n_samples, n_outputs)
            Draws, independent over outputs.
        """
        check_is_fitted(self)
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(
                f"n_samples must be a positive integer; got {n_samples!r}."
            )
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        return self._by_output(self._draws_of(X, int(n_samples), rng))

    def crps(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Compute the continuous ranked probability score of the predictive laws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        score : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In units of y, smaller is better; infinite for laws without a mean
            (``sigma='joint'``, and components with one degree of freedom).
        """
        y = self._check_targets(X, y)
        return self._by_output(self._crps_of(X, y))
