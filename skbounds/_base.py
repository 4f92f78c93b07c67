"""What the estimators of all topics share beyond scikit-learn's own base classes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from skbounds import __version__


class Versioned:
    """Mixin: pickles know the version of this package that they were written by."""

    def __getstate__(self):
        return {**super().__getstate__(), "_skbounds_version": __version__}

    def __setstate__(self, state):
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
        super().__setstate__(state)


class SkboundsEstimator(Versioned, BaseEstimator):
    """``BaseEstimator`` of this package.

    Keeps attributes that are computed on first access out of ``dir``: the HTML diagram
    reads everything listed there, and showing an estimator must not start to compute.
    """

    _lazy_attributes: tuple[str, ...] = ()

    def __dir__(self):
        # As in scikit-learn (1.9): conditional methods count only if available.
        return [
            name
            for name in object.__dir__(self)
            if name not in self._lazy_attributes and hasattr(self, name)
        ]


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package and scikit-learn's decorators."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(
        ("skbounds.", "sklearn.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@cache
def _parameter_names(cls: type) -> tuple[str, ...]:
    """Return what ``get_params`` looks up in the signature at every call."""
    return tuple(cls._get_param_names())


def fit_from_scratch(fit: Callable) -> Callable:
    """Make ``fit`` forget the previous fit, and leave nothing behind if it fails.

    Fitted attributes, public or private, end with an underscore. They are dropped
    before the call; after an exception the estimator is as it was before. Predictions
    read the parameters that decide what was fitted from ``_params_``, so that changing
    a parameter afterwards has no effect before the next fit.
    """

    @wraps(fit)
    def wrapper(self, *args: Any, **kwargs: Any):
        before = dict(vars(self))
        for name in before:
            if name.endswith("_") and not name.startswith("__"):
                delattr(self, name)
        try:
            result = fit(self, *args, **kwargs)
            self._params_ = {
                name: getattr(self, name) for name in _parameter_names(type(self))
            }
            return result
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapper


def unchanged_on_error(method: Callable) -> Callable:
    """Make a method that continues a fit leave the estimator as it was if it fails."""

    @wraps(method)
    def wrapper(self, *args: Any, **kwargs: Any):
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapper
