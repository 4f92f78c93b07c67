"""Grids of penalties."""

from __future__ import annotations

from numbers import Integral

import numpy as np


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
