"""Checks of numbers; scikit-learn's without what NumPy warns of while they look."""

from __future__ import annotations

from functools import wraps
from numbers import Real
from typing import TypeGuard

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite as _assert_all_finite
from sklearn.utils import check_array as _check_array
from sklearn.utils.multiclass import (
    check_classification_targets as _check_classification_targets,
)
from sklearn.utils.multiclass import type_of_target as _type_of_target
from sklearn.utils.validation import validate_data as _validate_data

__all__ = [
    "as_numbers",
    "assert_all_finite",
    "check_array",
    "check_classification_targets",
    "is_number",
    "type_of_target",
    "validate_data",
]


def _without_overflow(check):
    """Make a check silent about sums and casts of large numbers, which it looks at."""

    @wraps(check)
    def wrapper(*args, **kwargs):
        with np.errstate(over="ignore", invalid="ignore"):
            return check(*args, **kwargs)

    return wrapper


assert_all_finite = _without_overflow(_assert_all_finite)
check_array = _without_overflow(_check_array)
check_classification_targets = _without_overflow(_check_classification_targets)
type_of_target = _without_overflow(_type_of_target)


@wraps(_validate_data)
def validate_data(*args, **kwargs):
    """Call scikit-learn's function; its look at lists of no rows is an IndexError."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _validate_data(*args, **kwargs)
    except IndexError:
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        ) from None


def is_number(value) -> TypeGuard[float]:
    """Tell whether this is a real number, and no truth value."""
    return isinstance(value, (Real, np.floating, np.integer)) and not isinstance(
        value, (bool, np.bool_)
    )


def as_numbers(y, name="y"):
    """Return targets that are numbers in double precision, of whatever type they came.

    Shape and finiteness are for others to look at.

    Parameters
    ----------
    y : array-like or None
        None is returned as it is.
    name : str, default='y'
        For messages.
    """
    if y is None:
        return y
    what = f"{name} must hold numbers; got "
    if issparse(y):
        raise ValueError(f"{what}a sparse matrix. Use toarray().")
    try:
        values = y if hasattr(y, "dtype") and hasattr(y, "shape") else np.asarray(y)
    except ValueError:
        raise ValueError(f"{what}rows of several lengths.") from None
    kind = getattr(values.dtype, "kind", "O") if hasattr(values, "dtype") else "O"
    if kind in "mM":
        raise ValueError(f"{what}dates or durations.")
    if kind == "c":
        raise ValueError(f"Complex data not supported. {what}complex numbers.")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _check_array(
                values, dtype=np.float64, ensure_2d=False, allow_nd=True,
                ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0,
                input_name=name,
            )  # fmt: skip
    except (TypeError, ValueError):
        shown = np.ravel(np.asarray(values, dtype=object))[:3].tolist()
        raise ValueError(f"{what}values like {shown!r}.") from None
