"""What can be seen of an estimator from outside."""

from __future__ import annotations

from numbers import Integral

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


def check_rows_fitted(estimator, n_rows, n_columns):
    """Refuse to score other rows than those fitted, where the estimator tells.

    With an ordinary splitter a scorer is handed rows that were held out.
    """
    known = getattr(estimator, "n_features_in_", n_columns)
    if n_columns and known != n_columns:
        raise ValueError(
            f"X has {n_columns} features, but {type(estimator).__name__} was fitted on "
            f"{known} features."
        )
    for exact, number in _numbers_of_rows(estimator):
        # Trees do not count rows of weight 0: they may have seen more than they say.
        if number > n_rows or (exact and number != n_rows):
            raise ValueError(
                f"BolsteredScorer scores the rows that the estimator was fitted on, "
                f"all of them: {type(estimator).__name__} was fitted on {number} rows "
                f"and is scored on {n_rows}. Use bolstered_val_score, "
                "BolsteredSearchCV, or cv=FullSampleSplit() instead of a number of "
                "folds."
            )


def _numbers_of_rows(estimator):
    """Yield whether a number of rows is exact, and the number, for all who tell."""
    steps, last = final_step(estimator)
    for part in (*steps, last):
        seen = getattr(part, "n_samples_seen_", None)
        if isinstance(seen, Integral):
            yield True, int(seen)
    fitted = getattr(last, "n_samples_fit_", None)
    if isinstance(fitted, Integral):
        yield True, int(fitted)
    shape = getattr(last, "shape_fit_", None)
    if isinstance(shape, tuple):
        yield True, int(shape[0])
    for name in ("X_fit_", "X_train_"):
        rows = getattr(last, name, None)
        if hasattr(rows, "shape") and len(rows.shape) > 1:
            yield True, int(rows.shape[0])
    members = getattr(last, "estimators_", None)
    one = np.ravel(np.asarray(members, dtype=object))[:1] if members is not None else []
    for part in (last, *one):
        tree = getattr(part, "tree_", None)
        if tree is not None:
            yield False, int(tree.n_node_samples[0])
