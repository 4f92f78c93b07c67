"""Validation and prediction that the logistic SMP estimators share."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, warn_user
from skbounds._blocks import memory_limit, row_blocks
from skbounds._collections import lazy_on_collections
from skbounds._labels import check_several, validate_labelled
from skbounds._magnitude import LARGEST, check_magnitude
from skbounds._sklearn_compat import available_if, check_sample_weight
from skbounds._typing import MatrixLike
from skbounds._validation import validate_data
from skbounds._weights import class_factors
from skbounds.smp._design import Design, make_design
from skbounds.smp._virtual import solve_virtual

# So many times as far away as the training rows nothing changes any more.
_FAR = 1e60


def _is_binary(estimator):
    if hasattr(estimator, "classes_") and len(estimator.classes_) > 2:
        raise AttributeError(
            "predict_interval is defined for two classes; this estimator was fitted "
            f"with {len(estimator.classes_)}."
        )
    return True


class BaseSMPClassifier(ClassifierMixin, SkboundsEstimator):
    """Validation and prediction shared by the logistic SMP estimators.

    Subclasses implement ``_log_proba`` and ``_interval`` on coordinate rows.
    """

    def _validate_training(self, X, y, sample_weight):
        """Return rows of positive weight, their codes, weights and the classes."""
        X, y = validate_labelled(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C"
        )
        check_magnitude(X, "X")
        values = X.data if sparse.issparse(X) else X
        largest = float(np.abs(values).max(initial=0.0))
        if largest < np.finfo(float).tiny:
            # Inverses of such numbers are beyond the range of doubles.
            X = X * 0.0
        self._extent_ = max(1.0, largest)
        weight = check_sample_weight(sample_weight, X)
        keep = weight > 0
        if not keep.all():
            X, y, weight = X[keep], y[keep], weight[keep]
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        classes, codes = np.unique(y, return_inverse=True)
        check_several(classes, type(self).__name__)
        if self.class_weight is not None:
            factors = class_factors(self.class_weight, classes, codes, weight)
            weight = weight * factors[codes]
        return X, codes, weight, classes

    def _make_design(self, X, weight):
        return make_design(
            X,
            weight,
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.penalize_intercept,
            intercept_scaling=self.intercept_scaling,
        )

    def _warn_unconverged(self, n_failed, n_total):
        if n_failed:
            warn_user(
                f"{n_failed} of {n_total} virtual fits did not converge in "
                f"max_iter={self.max_iter} Newton iterations; increase max_iter or "
                "scale the features.",
                ConvergenceWarning,
            )

    def _virtual_fits(self, base, features, slope, target):
        """Solve tilted problems exactly and report those that failed."""
        fits = solve_virtual(
            base,
            features,
            slope,
            target,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        self._warn_unconverged(fits.n_failed, slope.size)
        return fits.raw, fits.squared_norm

    def _doubles_per_row(self):
        """Return about how many doubles the virtual fits of a row take."""
        return 8 * len(self.classes_) ** 2

    def _map_rows(self, function, X):
        """Apply ``function`` to coordinate rows of X in blocks of bounded memory."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        design = Design(**self._design_)
        # Leverages beyond the range of doubles: the limit is reached long before.
        limit = min(_FAR * self._extent_, LARGEST * min(1.0, design.scale))
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        if sparse.issparse(X):
            largest = np.abs(X).max(axis=1).toarray().reshape(-1, 1)
        else:
            largest = np.abs(X).max(axis=1, initial=0.0, keepdims=True)
        if np.any(largest > limit):
            factor = limit / np.maximum(largest, limit)
            X = X.multiply(factor).tocsr() if sparse.issparse(X) else X * factor
        width = 3 * (X.shape[1] + design.n_coordinates) + self._doubles_per_row()
        parts = [
            function(design.transform(X[rows]))
            for rows in row_blocks(X.shape[0], memory_limit() // width)
        ]
        return np.concatenate(parts)

    @lazy_on_collections
    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict logarithms of class probabilities.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._map_rows(self._log_proba, X)

    @lazy_on_collections
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict class probabilities.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one.
        """
        return np.exp(self.predict_log_proba(X))

    @lazy_on_collections
    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Predict log-odds (two classes) or log probabilities (more).

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive log-odds mean ``classes_[1]``. Not linear in X.
        """
        log_proba = self.predict_log_proba(X)
        if log_proba.shape[1] == 2:
            return log_proba[:, 1] - log_proba[:, 0]
        return log_proba

    @lazy_on_collections
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the most probable class.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels. Far from all training rows this may differ from the side of
            the hyperplane ``coef_``, ``intercept_``: there either label could have
            been fitted.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    @available_if(_is_binary)
    @lazy_on_collections
    def predict_interval(self, X: MatrixLike) -> np.ndarray:
        """Predict the probabilities under the two virtual fits.

        Only for two classes.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Probability of ``classes_[1]`` when the row is added with label
            ``classes_[0]`` (lower) and ``classes_[1]`` (upper). The plug-in probability
            lies between them. Not a confidence interval.
        """
        return self._map_rows(self._interval, X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
