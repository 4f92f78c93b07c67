"""What can be seen of an estimator from outside."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def final_step(estimator):
    """Return the steps before the last, and the last."""
    if isinstance(estimator, Pipeline):
        steps = [
            step for _, step in estimator.steps if step not in (None, "passthrough")
        ]
        before, last = final_step(steps[-1])
        return steps[:-1] + before, last
    return [], estimator


def is_fitted(model):
    """Tell whether a model was fitted, also where scikit-learn does not ask for it.

    A Gaussian process predicts by its prior before.
    """
    if isinstance(model, GaussianProcessRegressor):
        return hasattr(model, "X_train_")
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _has_means_of(scaler, X):
    """Tell whether a scaler's means are those of rows."""
    means = getattr(scaler, "mean_", None)
    if means is None or not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        return False
    if X.ndim != 2 or X.shape[1] != len(means):
        return False
    return bool(np.allclose(X.mean(axis=0), means, rtol=1e-6, atol=1e-12))


def check_refittable(estimator):
    """Refuse estimators that fits on parts of the rows would not change."""
    parts = [final_step(estimator)[1], *estimator.get_params(deep=True).values()]
    if any(
        isinstance(part, FrozenEstimator)
        and (is_classifier(part) or is_regressor(part))
        for part in parts
    ):
        raise ValueError(
            "method='auto' refits the estimator on parts of the data, which a "
            "FrozenEstimator does not do; choose method='x', 'y' or 'xy'."
        )


def check_rows_fitted(estimator, rows):
    """Refuse to score other rows than those fitted, where the estimator tells.

    With an ordinary splitter a scorer is handed rows that were held out.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    rows : Rows
        Rows of weight 0 may or may not have been fitted.
    """
    n_columns, name = rows.table.n_columns, type(estimator).__name__
    known = getattr(estimator, "n_features_in_", n_columns)
    if n_columns and known != n_columns:
        raise ValueError(
            f"X has {n_columns} features, but {name} was fitted on {known} features."
        )
    allowed = {rows.n_given, rows.table.n_rows}
    for exact, number in _numbers_of_rows(estimator, rows):
        # Trees do not count rows of weight 0: they may have seen more than they say.
        if number > rows.n_given or (exact and number not in allowed):
            raise ValueError(
                "BolsteredScorer scores the rows that the estimator was fitted on, all "
                f"of them: {name} was fitted on {number} rows and is scored on "
                f"{rows.n_given}. Use bolstered_val_score, BolsteredSearchCV, or "
                "cv=FullSampleSplit() instead of a number of folds."
            )


def _numbers_of_rows(estimator, rows):
    """Yield whether a number of rows is exact, and the number, for all who tell."""
    steps, last = final_step(estimator)
    for part in (*steps, last):
        seen = getattr(part, "n_samples_seen_", None)
        # A sum of weights where there were any: a whole number by chance, or where all
        # weights are equal, when the means are plain ones.
        if not isinstance(seen, Real) or not float(seen).is_integer():
            continue
        if not _has_means_of(part, rows.table.X):
            yield True, int(seen)
    fitted = getattr(last, "n_samples_fit_", None)
    if isinstance(fitted, Integral):
        yield True, int(fitted)
    shape = getattr(last, "shape_fit_", None)
    if isinstance(shape, tuple):
        yield True, int(shape[0])
    for name in ("X_fit_", "X_train_"):
        kept = getattr(last, name, None)
        if hasattr(kept, "shape") and len(kept.shape) > 1:
            yield True, int(kept.shape[0])
    members = getattr(last, "estimators_", None)
    one = np.ravel(np.asarray(members, dtype=object))[:1] if members is not None else []
    for part in (last, *one):
        tree = getattr(part, "tree_", None)
        if tree is not None:
            yield False, int(tree.n_node_samples[0])
