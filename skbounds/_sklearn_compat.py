"""The only module that imports private names of scikit-learn.

What is imported here has the same meaning in every supported version; differences
between versions are levelled in this file and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    InvalidParameterError,
    Options,
    RealNotInt,
    StrOptions,
)
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import _is_fitted as is_fitted
from sklearn.utils.validation import _num_samples as num_samples

from skbounds._typing import Function
from skbounds._validation import as_numbers

if TYPE_CHECKING:
    # scikit-learn has no types; functions keep theirs under these decorators.
    def _fit_context(
        *, prefer_skip_nested_validation: bool
    ) -> Callable[[Function], Function]: ...

    def available_if(check: Callable) -> Callable[[Function], Function]: ...

    def validate_params(
        parameter_constraints: dict, *, prefer_skip_nested_validation: bool
    ) -> Callable[[Function], Function]: ...
else:
    from sklearn.base import _fit_context
    from sklearn.utils._param_validation import validate_params
    from sklearn.utils.metaestimators import available_if

# Weights within these limits have finite sums of products with squares of features.
_LARGEST_WEIGHT = 1e15
# What is less, beside the largest weight, is lost in the rounding of any sum.
_NOTHING = 1e-30

__all__ = [
    "HasMethods",
    "Hidden",
    "Integral",
    "Interval",
    "InvalidParameterError",
    "Options",
    "Real",
    "RealNotInt",
    "StrOptions",
    "_fit_context",
    "available_if",
    "check_method_params",
    "check_sample_weight",
    "is_fitted",
    "is_scorer",
    "neighbors_data",
    "num_samples",
    "routing_enabled",
    "safe_indexing",
    "validate_params",
    "visual_block",
]


def check_sample_weight(sample_weight, X) -> np.ndarray:
    """Return float64 sample weights: neither negative, nor all zero, nor too large.

    Weights that are nothing beside the largest are zero.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        None means weight one for each row.
    X : {ndarray, sparse matrix}
        The rows, for their number.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,)
    """
    if sample_weight is None:
        return np.ones(num_samples(X))
    with np.errstate(over="ignore", invalid="ignore"):
        if not isinstance(sample_weight, Real):
            sample_weight = as_numbers(sample_weight, "sample_weight")
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    # scikit-learn has no look at a single number.
    if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        raise ValueError(
            f"sample_weight must be finite and not negative; got {float(weight[0])!r}."
        )
    # scikit-learn before 1.9 lets this pass.
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    largest = float(weight.max())
    if not 1.0 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"The largest of sample_weight is {largest:.3g}; it must be between "
            f"{1.0 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}. Divide by a constant."
        )
    return np.where(weight < _NOTHING * largest, 0.0, weight)


def is_scorer(item) -> bool:
    """Tell whether something is a scorer as ``make_scorer`` makes them."""
    return isinstance(item, _BaseScorer)


def neighbors_data(estimator):
    """Return the rows and targets that fitted nearest neighbours look among.

    Targets of classifiers are numbers of classes.
    """
    return estimator._fit_X, estimator._y


def visual_block(estimator, caption: str | None):
    """Return an estimator's place in HTML diagrams, with a line below its name."""
    try:
        from sklearn.utils._repr_html.estimator import _VisualBlock
    except ImportError:
        from sklearn.utils._estimator_html_repr import _VisualBlock
    return _VisualBlock(
        "single", estimator, names=type(estimator).__name__,
        name_details=str(estimator), name_caption=caption,
    )  # fmt: skip
