"""Predictive laws of the targets given the features."""

from __future__ import annotations

import inspect

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.pipeline import Pipeline

from skbounds._labels import code_labels
from skbounds.bolstering._estimators import final_step, is_fitted
from skbounds.bolstering._smoothed._smoothing import Law


def flat_posterior(features, targets, fit_intercept=True):
    """Return the predictive law of a linear model with a flat prior, at its own rows.

    With the prior 1 / sigma^2: Student's law with n - p degrees of freedom around the
    least squares fit, with variance s^2 (1 + h_ii)(n - p) / (n - p - 2).

    Parameters
    ----------
    features : ndarray of shape (n, d)
    targets : ndarray of shape (n, m)
    fit_intercept : bool
    """
    n = len(features)
    design = features
    if fit_intercept:
        design = np.column_stack([np.ones(n), features])
    basis, triangle, _ = linalg.qr(design, mode="economic", pivoting=True)
    sizes = np.abs(triangle.diagonal())
    basis = basis[:, sizes > n * np.finfo(np.float64).eps * sizes.max()]
    p = basis.shape[1]
    if n <= p + 2:
        raise ValueError(
            f"the flat posterior of a linear model with {p} coefficients needs more "
            f"than {p + 2} rows; got {n}. Give a posterior with a prior, such as "
            "BayesianRidge."
        )
    fitted = basis @ (basis.T @ targets)
    noise = ((targets - fitted) ** 2).sum(axis=0) / (n - p)
    leverage = (basis**2).sum(axis=1)
    variance = noise * (1.0 + leverage[:, None]) * (n - p) / (n - p - 2)
    return Law(fitted, variance, float(n - p))


def predictive_law(estimator, rows, posterior):
    """Return the law of the targets of regression, by what is available.

    The posterior, if one is given; the estimator, if it predicts a standard deviation;
    or, for linear models, the flat posterior.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    rows : object
        With ``table`` and ``matrix``.
    posterior : estimator or None
        Fitted, or to be fitted on the rows.
    """
    X, y = rows.table.X, rows.matrix
    if posterior is not None:
        return _own_law(fitted(posterior, X, rows.targets_to_fit()), X, y)
    if _gives_deviations(estimator):
        return _own_law(estimator, X, y)
    _, last = final_step(estimator)
    if not (hasattr(last, "coef_") and hasattr(last, "intercept_")):
        raise ValueError(
            f"there is no predictive law for {type(last).__name__}: give a posterior, "
            "an estimator with predict(X, return_std=True)."
        )
    features = X
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        features = estimator[:-1].transform(X)
    if hasattr(features, "toarray"):
        features = features.toarray()
    fit_intercept = getattr(last, "fit_intercept", True)
    return flat_posterior(np.asarray(features, dtype=np.float64), y, fit_intercept)


def predictive_probabilities(estimator, rows, posterior=None):
    """Return P(class | row), shape (n, n_classes), columns as in ``rows.classes``."""
    model = estimator
    if posterior is not None:
        model = fitted(posterior, rows.table.X, rows.targets_to_fit())
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has no predict_proba: give a posterior that does."
        )
    shares = np.asarray(model.predict_proba(rows.table.X))
    known = model.classes_.tolist()
    if not set(rows.classes.tolist()) <= set(known):
        raise ValueError(
            f"the posterior knows the classes {known!r}, and y has "
            f"{rows.classes.tolist()!r}."
        )
    return shares[:, code_labels(rows.classes, model.classes_)]


def fitted(model, X, y):
    if not is_fitted(model):
        return clone(model).fit(X, y)
    return model


def _gives_deviations(estimator):
    _, last = final_step(estimator)
    try:
        return "return_std" in inspect.signature(last.predict).parameters
    except (TypeError, ValueError, AttributeError):
        return False


def _own_law(model, X, y):
    if not _gives_deviations(model):
        raise ValueError(
            f"posterior must have predict(X, return_std=True); got {model!r}."
        )
    mean, deviation = model.predict(X, return_std=True)
    variance = np.asarray(deviation, dtype=np.float64).reshape(y.shape) ** 2
    _, last = final_step(model)
    if isinstance(last, GaussianProcessRegressor) and not _has_noise(last.kernel_):
        # Its deviation is that of the function; the targets scatter around it.
        scale = np.broadcast_to(np.asarray(last._y_train_std) ** 2, y.shape[1])
        alpha = np.broadcast_to(np.asarray(last.alpha, dtype=np.float64), len(y))
        variance = variance + alpha[:, None] * scale
    return Law(np.asarray(mean, dtype=np.float64).reshape(y.shape), variance)


def _has_noise(kernel):
    parts = [getattr(kernel, name) for name in ("k1", "k2") if hasattr(kernel, name)]
    return isinstance(kernel, WhiteKernel) or any(map(_has_noise, parts))
