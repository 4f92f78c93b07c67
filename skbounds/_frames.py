"""Dataframes of any library, column by column."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_frame(X) -> bool:
    """Tell whether this is a dataframe of pandas, polars, pyarrow or the like."""
    return hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2


def column_names(X) -> list:
    """Return the names of a dataframe's columns."""
    # pyarrow's columns are the columns themselves.
    return list(getattr(X, "column_names", X.columns))


def column(X, k):
    """Return a dataframe's column by its number."""
    if hasattr(X, "iloc"):
        return X.iloc[:, k]
    k = int(k)
    return X.column(k) if hasattr(X, "column_names") else X.to_series(k)


def to_array(X):
    """Return a dataframe as an array; anything else as it is."""
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    if is_frame(X):
        return np.column_stack([np.asarray(column(X, k)) for k in range(X.shape[1])])
    return X


def with_columns(X, numbers, values):
    """Return a copy of a dataframe in which some columns have other values.

    Parameters
    ----------
    X : DataFrame
    numbers : sequence of int
    values : ndarray of shape (n, len(numbers))
    """
    if hasattr(X, "iloc"):
        X = X.copy()
        for number, new in zip(numbers, values.T, strict=True):
            X.isetitem(number, new)
        return X
    names = column_names(X)
    if hasattr(X, "with_columns"):
        series = type(X.to_series(0))
        pairs = zip(numbers, values.T, strict=True)
        return X.with_columns([series(names[number], new) for number, new in pairs])
    for number, new in zip(numbers, values.T, strict=True):
        X = X.set_column(int(number), names[number], [new])
    return X


def only_column(y):
    """Return the only column of a dataframe; anything else as it is."""
    return column(y, 0) if is_frame(y) and y.shape[1] == 1 else y


def is_number(values) -> bool:
    """Tell whether a column holds numbers (and no truth values or dates)."""
    dtype: Any = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is not None:
        return kind in "iuf"
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric())
    return np.asarray(values).dtype.kind in "iuf"


def is_vector(X) -> bool:
    """Tell whether this is one row of numbers, or a single one: no table at all."""
    try:
        X = X if hasattr(X, "shape") else np.asarray(X)
    except ValueError:
        # Rows of several lengths.
        return False
    if len(X.shape) == 0:
        return True
    return len(X.shape) == 1 and np.asarray(X).dtype.kind in "biufc"


def is_table(X) -> bool:
    """Tell whether rows are lists of columns, and not texts, dicts or images."""
    if not hasattr(X, "shape") and hasattr(X, "__array__"):
        X = np.asarray(X)
    if hasattr(X, "shape"):
        return len(X.shape) == 2
    try:
        return np.ndim(X[0]) == 1 and not isinstance(X[0], (str, bytes, dict))
    except (TypeError, ValueError, IndexError, KeyError):
        return False
