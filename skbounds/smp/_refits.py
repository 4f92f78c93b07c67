"""Refits of any scikit-learn estimator with one more row, a label at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import linalg, sparse
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from skbounds._frames import to_array
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import (
    check_sample_weight,
    num_samples,
    safe_indexing,
)
from skbounds._validation import check_array, validate_data


def last_step(estimator):
    """Return the last step of a pipeline (of pipelines), anything else as it is."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def stack_rows(X, rows):
    """Return the rows of both, in the first one's kind of table."""
    if sparse.issparse(X):
        return sparse.vstack([sparse.csr_array(X), sparse.csr_array(rows)]).tocsr()
    if sparse.issparse(rows):
        rows = rows.toarray()
    if hasattr(X, "iloc"):
        import pandas as pd

        if not hasattr(rows, "iloc"):
            rows = pd.DataFrame(np.asarray(to_array(rows)), columns=X.columns)
        # Categories that only one part has would make texts of a column.
        kinds = {
            name: kind
            for name, kind in zip(X.columns, X.dtypes, strict=True)
            if isinstance(kind, pd.CategoricalDtype)
        }
        return pd.concat([X, rows.astype(kinds)], axis=0, ignore_index=True)
    if hasattr(X, "vstack"):
        if not hasattr(rows, "vstack"):
            rows = type(X)(np.asarray(to_array(rows)), schema=X.columns)
        return X.vstack(rows.cast(dict(X.schema)))
    if hasattr(X, "shape") or hasattr(rows, "shape"):
        return np.concatenate([np.asarray(X), np.asarray(to_array(rows))])
    return [*X, *rows]


# Of an entry of a row, in any unit.
_FAR = 1e60


@dataclass
class TrainingRows:
    """What is fitted again with one more row.

    Attributes
    ----------
    estimator : estimator
        Not fitted; all its random states are set.
    X : rows
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
        None where all weights are 1.
    virtual_weight : float
        Weight of the row that is added.
    n_jobs : int or None
    """

    estimator: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    virtual_weight: float = 1.0
    n_jobs: int | None = None

    @property
    def counts(self):
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def check_weights(self):
        """Raise a clear error where weights are needed and cannot be had."""
        if self.weight is None and self.virtual_weight == 1.0:
            return
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"{type(self.estimator).__name__}.fit has no sample_weight, so rows "
                "cannot have weights; give none, and virtual_weight=1."
            )

    def fit(self):
        """Return a fit to the training rows."""
        return self._fit(self.X, self.y, self.weight)

    def map_added(self, rows, labels, function):
        """Return ``function(fit, r, row, label)`` of the fits with one more row.

        ``labels(r)`` are those to try at row r. The result has a list per row.
        """
        n, m = len(self.y), num_samples(rows)
        stacked = stack_rows(self.X, rows)
        weight = None
        if self.weight is not None or self.virtual_weight != 1.0:
            weight = np.append(self.counts, self.virtual_weight)

        def task(r):
            index = np.append(np.arange(n), n + r)
            X, row = safe_indexing(stacked, index), safe_indexing(rows, [r])
            return [
                function(self._fit(X, np.append(self.y, label), weight), r, row, label)
                for label in labels(r)
            ]

        return self._map(task, m)

    def map_replaced(self, labels, function):
        """Return the same of the fits in which a training row has another label.

        A row of weight v loses ``min(1, v)`` of it and gains ``virtual_weight`` times
        that with the label.
        """
        n = len(self.y)

        def task(i):
            row = safe_indexing(self.X, [i])
            index = np.arange(n)
            weight = None
            if self.weight is not None or self.virtual_weight != 1.0:
                unit = min(1.0, self.counts[i])
                index = np.append(index, i)
                weight = np.append(self.counts, self.virtual_weight * unit)
                weight[i] -= unit
            X = safe_indexing(self.X, index)
            found = []
            for label in labels(i):
                y = self.y[index].copy()
                y[-1 if weight is not None else i] = label
                found.append(function(self._fit(X, y, weight), i, row, label))
            return found

        return self._map(task, n)

    def _fit(self, X, y, weight):
        if is_classifier(self.estimator) and (y == y[0]).all():
            # The last row of another class has got this one's label.
            return DummyClassifier().fit(np.zeros((len(y), 1)), y)
        model = clone(self.estimator)
        return (
            model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
        )

    def _map(self, task, size):
        if effective_n_jobs(self.n_jobs) == 1:
            return [task(r) for r in range(size)]
        return Parallel(n_jobs=self.n_jobs)(delayed(task)(r) for r in range(size))


def logistic_strength(model) -> float | None:
    """Return C of a logistic regression with a squared norm as penalty, else None."""
    chosen = isinstance(model, LogisticRegressionCV)
    ratio: Any = getattr(model, "l1_ratio_" if chosen else "l1_ratio", None)
    ratio = np.ravel([0.0 if part is None else part for part in np.ravel(ratio)])
    # Newer versions say by the ratio alone, older ones by a name.
    name = getattr(model, "penalty", "l2")
    if ratio.any() or name in ("l1", "elasticnet", None, "none"):
        return None
    return float(np.ravel(model.C_ if chosen else model.C)[0])


def penalty_root(fitted, total: float) -> np.ndarray:
    """Return v with ``|v|^2 / 2`` the penalty per observation of a fit, if known.

    Of squared norms that the fit's objective adds to ``total`` log losses: those of
    ``LogisticRegression``, ``Ridge`` and ``KernelRidge`` (these for noise scale 1).
    None of anything else counts.
    """
    model = last_step(fitted)
    if isinstance(model, LogisticRegression):
        C = logistic_strength(model)
        if C is None:
            return np.zeros(0)
        values = model.coef_.ravel()
        if model.solver == "liblinear" and model.fit_intercept:
            values = np.append(values, model.intercept_ / model.intercept_scaling)
        return values / np.sqrt(C * total)
    if isinstance(model, Ridge):
        return np.sqrt(model.alpha / total) * np.ravel(model.coef_)
    if isinstance(model, KernelRidge):
        params = model.kernel_params or {}
        if not callable(model.kernel):
            params = {
                "gamma": model.gamma,
                "degree": model.degree,
                "coef0": model.coef0,
            }
        K = pairwise_kernels(
            model.X_fit_, metric=model.kernel, filter_params=True, n_jobs=1, **params
        )
        values, vectors = linalg.eigh(K)
        root = np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ model.dual_coef_.ravel())
        return np.sqrt(model.alpha / total) * root
    return np.zeros(0)


def require_targets(estimator, y) -> None:
    """Raise scikit-learn's error where there are no targets."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )


def weighted_rows(estimator, X, y, sample_weight):
    """Return rows of positive weight, targets and weights (None: all are 1).

    X stays of the kind that it is; what it holds is for the estimator to judge.
    """
    X, y = indexable(X, y)
    validate_data(estimator, X, skip_check_array=True)
    values = X.data if sparse.issparse(X) else X
    if getattr(getattr(values, "dtype", None), "kind", "") == "f":
        # Missing values are for the estimator to judge.
        check_magnitude(values[np.isfinite(values)], "X")
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, X)
        kept = np.flatnonzero(weight > 0)
        X, y, weight = safe_indexing(X, kept), y[kept], weight[kept]
    elif num_samples(X):
        # Refits come later: what is changed by then must not matter.
        X, y = safe_indexing(X, np.arange(num_samples(X))), y.copy()
    if len(y) == 0:
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        )
    return X, y, weight


def as_features(fitted, X) -> np.ndarray:
    """Return what the last step of a pipeline sees, or the rows themselves."""
    while isinstance(fitted, Pipeline):
        X = fitted[:-1].transform(X) if len(fitted.steps) > 1 else X
        fitted = fitted[-1]
    Z = check_array(X, accept_sparse=False, dtype=np.float64)
    # Beyond, products of leverages are no numbers.
    largest = np.abs(Z).max(axis=1, initial=0.0, keepdims=True)
    if np.any(largest > _FAR):
        Z = Z * (_FAR / np.maximum(largest, _FAR))
    return Z
