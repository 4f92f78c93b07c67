"""Grids of penalties."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

# Share of the rows that are in for sure, and the part of the mean variance that they
# have where the others rule it (.73 for a normal law).
_INNER = 0.9
_RULED = 0.25


def check_grid(grid, name: str, *, decades: tuple[float, float]) -> np.ndarray:
    """Return a 1-d float array from a number of log-spaced points or an array."""
    if isinstance(grid, Integral):
        return np.logspace(*decades, grid)
    try:
        values = np.asarray(grid, dtype=float)
    except ValueError:
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"{name} must be a positive integer or a non-empty 1-d array; got {grid!r}."
        )
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name} must hold positive finite numbers; got {grid!r}.")
    return values


def feature_scale(X, weight: np.ndarray, *, centred: bool) -> float:
    """Return the root of the mean of the columns' variances, without constant columns.

    Of their mean squares where they are not centred; 1 where nothing varies. Where some
    rows are so far out that they rule it, theirs are left out.
    """
    total = weight.sum()
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    # Squares of what is tiny would vanish.
    X = X / largest
    if sparse.issparse(X):
        mean = np.asarray(X.T @ weight).ravel() / total
        square = np.asarray(X.multiply(X).T @ weight).ravel() / total
        variance = square - mean**2
        # Rounding of a difference of squares.
        varies = variance > 1e-12 * square
    else:
        mean = weight @ X / total
        square = weight @ X**2 / total
        variance = weight @ (X - mean) ** 2 / total
        varies = (np.ptp(X, axis=0) > 0.0) & (variance > 0.0)
    if not centred:
        variance, varies = square, square > 0.0
    if not varies.any():
        return 1.0
    found = float(variance[varies].mean())
    # The same about medians, without the tenth of the rows that is furthest out.
    distance = _squared_distances(X[:, varies], weight, centred) / varies.sum()
    order = np.argsort(distance, kind="stable")
    # The row at the border counts with the part of its weight that is inside.
    ends = np.minimum(np.cumsum(weight[order]), _INNER * total)
    inside = np.diff(ends, prepend=0.0)
    rest = float(inside @ distance[order] / (_INNER * total))
    if 0.0 < rest < _RULED * found:
        found = rest
    # Of the smallest doubles a part is nothing.
    return largest * float(np.sqrt(found)) or largest


def _squared_distances(X, weight, centred):
    """Return squared distances of rows from the columns' medians, or from 0."""
    squares = row_norms(X, squared=True)
    if not centred:
        return squares
    n_samples, n_features = X.shape
    medians = np.zeros(n_features)
    columns = np.arange(n_features)
    if sparse.issparse(X):
        # Where most entries are zero, so is the median.
        filled = np.asarray((X != 0).T @ weight).ravel()
        columns = np.flatnonzero(filled >= 0.5 * weight.sum())
    for j in columns:
        values = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
        order = np.argsort(values, kind="stable")
        half = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
        medians[j] = values[order[min(int(half), n_samples - 1)]]
    if sparse.issparse(X):
        moved = squares - 2.0 * np.asarray(X @ medians).ravel() + medians @ medians
        return np.maximum(moved, 0.0)
    return row_norms(X - medians, squared=True)
