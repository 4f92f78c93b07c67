"""What the estimators of all topics share beyond scikit-learn's own base classes."""

from __future__ import annotations

import inspect
import sys
import warnings
from functools import cache, wraps
from types import FrameType
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from skbounds import __version__
from skbounds._callbacks import OF_A_FIT, CallbackSupportMixin, fit_task
from skbounds._sklearn_compat import is_fitted, visual_block
from skbounds._typing import Function
from skbounds._validation import validate_data


class Versioned:
    """Mixin: pickles know the version of this package that they were written by."""

    def __getstate__(self):
        return {**super().__getstate__(), "_skbounds_version": __version__}

    def __setstate__(self, state):
        if not isinstance(state, dict):
            raise TypeError(
                f"the state of {type(self).__name__} must be a dict; got "
                f"{type(state).__name__}."
            )
        state = dict(state)
        before = state.pop("_skbounds_version", "0.1 or earlier")
        if before != __version__:
            warn_user(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=f"{__version__} of skbounds",
                    original_sklearn_version=before,
                )
            )
        else:
            missing = [name for name in self._get_param_names() if name not in state]
            if missing:
                name = type(self).__name__
                raise ValueError(f"the state of {name} lacks the parameters {missing}.")
        super().__setstate__(state)


class PlainEstimator(Versioned, BaseEstimator):
    """``BaseEstimator`` of this package.

    Keeps attributes that are computed on first access out of ``dir``: the HTML diagram
    reads everything listed there, and showing an estimator must not start to compute.
    """

    _lazy_attributes: tuple[str, ...] = ()

    @classmethod
    def _get_param_names(cls):
        # scikit-learn looks them up in the signature again at every fit and clone.
        return list(_names_in_signature(cls))

    def __dir__(self):
        # As in scikit-learn (1.9): conditional methods count only if available.
        return [
            name
            for name in object.__dir__(self)
            if name not in self._lazy_attributes and hasattr(self, name)
        ]


class SkboundsEstimator(CallbackSupportMixin, PlainEstimator):
    """The same for what has a fit, of which scikit-learn's callbacks hear."""

    # Whether fits take collections of dask as they are.
    _takes_collections = False


class KnowsItsError:
    """Mixin: the HTML diagram of a fitted estimator says what it knows of its error."""

    def _knowledge(self) -> str | None:
        """Return it in a line, for an estimator that is fitted; None if nothing."""
        return None

    def _sk_visual_block_(self):
        return visual_block(self, self._knowledge() if is_fitted(self) else None)


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package and scikit-learn's decorators."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(
        ("skbounds.", "sklearn.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@cache
def _names_in_signature(cls: type[PlainEstimator]) -> tuple[str, ...]:
    return tuple(super(PlainEstimator, cls)._get_param_names())  # type: ignore[misc]


def validate_floats(estimator, X, *, reset: bool) -> np.ndarray:
    """Return rows in double precision, as ``validate_data`` does with nan allowed.

    A plain array of finite numbers passes without its looks for all other kinds of
    tables, which take as long as the predictions themselves for a few hundred rows.
    """
    plain = type(X) is np.ndarray and X.ndim == 2 and X.size > 0
    if plain and X.dtype.kind in "fiu" and not hasattr(estimator, "feature_names_in_"):
        rows = X.astype(np.float64, copy=False)
        # Overflowing sums are for the long way as well.
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(rows.sum())
        if finite and reset:
            estimator.n_features_in_ = X.shape[1]
        if finite and X.shape[1] == estimator.n_features_in_:
            return rows
    return validate_data(
        estimator, X, dtype=np.float64, reset=reset, ensure_all_finite="allow-nan"
    )


def is_collection(X) -> bool:
    """Tell whether something is a collection of dask."""
    # Of the class: delayed objects of dask have every attribute.
    names = ("__dask_graph__", "to_delayed", "ndim", "shape")
    return all(hasattr(type(X), name) for name in names)


def _tell_of_collections(estimator, arguments) -> None:
    """Warn where collections of dask are going to be arrays in memory."""
    if getattr(estimator, "_takes_collections", False):
        return
    if any(is_collection(one) for one in arguments):
        warn_user(
            f"{type(estimator).__name__} computes collections of dask into arrays in "
            "memory: its fit is no sum over the rows."
        )


def fit_from_scratch(fit: Function) -> Function:
    """Make ``fit`` forget the previous fit, and leave nothing behind if it fails.

    Fitted attributes, public or private, end with an underscore. They are dropped
    before the call; after an exception the estimator is as it was before. Predictions
    read the parameters that decide what was fitted from ``_params_``, so that changing
    a parameter afterwards has no effect before the next fit. scikit-learn's callbacks
    hear of the fit.
    """

    @wraps(fit)
    def wrapper(self, *args: Any, **kwargs: Any):
        _tell_of_collections(self, (*args, *kwargs.values()))
        before = dict(vars(self))
        for name in before:
            if name.endswith("_") and not name.startswith("__"):
                delattr(self, name)
        try:
            with fit_task(self, signature, args, kwargs):
                result = fit(self, *args, **kwargs)
                self._params_ = {
                    name: getattr(self, name) for name in self._get_param_names()
                }
            return result
        except BaseException:
            now = vars(self)
            kept = {name: now[name] for name in OF_A_FIT if name in now}
            now.clear()
            now.update(before | kept)
            raise

    signature = inspect.signature(fit)
    return cast(Function, wrapper)


def unchanged_on_error(method: Function) -> Function:
    """Make a method that continues a fit leave the estimator as it was if it fails."""

    @wraps(method)
    def wrapper(self, *args: Any, **kwargs: Any):
        _tell_of_collections(self, (*args, *kwargs.values()))
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Function, wrapper)
