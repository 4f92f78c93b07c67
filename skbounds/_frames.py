"""Dataframes of any library, column by column."""

from __future__ import annotations

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
    return X.column(k) if hasattr(X, "column_names") else X.to_series(k)


def only_column(y):
    """Return the only column of a dataframe; anything else as it is."""
    return column(y, 0) if is_frame(y) and y.shape[1] == 1 else y


def is_number(values) -> bool:
    """Tell whether a column holds numbers (and no truth values or dates)."""
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is not None:
        return kind in "iuf"
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric())
    return np.asarray(values).dtype.kind in "iuf"


def is_table(X) -> bool:
    """Tell whether rows are lists of columns, and not texts, dicts or images."""
    if hasattr(X, "ndim") or hasattr(X, "shape"):
        return len(X.shape) == 2
    try:
        return np.ndim(X[0]) == 1 and not isinstance(X[0], (str, bytes, dict))
    except (TypeError, ValueError, IndexError, KeyError):
        return False
