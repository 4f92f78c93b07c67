"""Limits of the sizes of numbers, within which squares and sums of them are finite."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

# Squares of entries, summed over millions of them, are finite below the first, and more
# than rounding above the second.
LARGEST, SMALLEST = 1e145, 1e-145


def check_magnitude(values, name, *, limit=LARGEST) -> None:
    """Refuse what is not finite, or too large to compute with.

    Parameters
    ----------
    values : {ndarray, sparse matrix}
    name : str
        For the message.
    limit : float
    """
    values = values.data if issparse(values) else np.asarray(values)
    # Two passes instead of a copy of absolute values.
    top = float(values.max(initial=0.0))
    largest = max(top, -float(values.min(initial=0.0)))
    if not (largest < limit and top == top):
        what = "NaN or infinity" if not np.isfinite(largest) else f"{largest:.3g}"
        raise ValueError(
            f"{name} contains {what}; entries must be below {limit:g} in absolute "
            "value. Divide by a constant, or leave out values that stand for missing "
            "ones."
        )


def check_size_of_targets(y) -> None:
    """Refuse targets whose squares vanish, in some column.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, n_outputs)
    """
    sizes = np.atleast_1d(np.abs(y).max(axis=0, initial=0.0))
    small = sizes[(sizes > 0.0) & (sizes < SMALLEST)]
    if len(small):
        raise ValueError(
            f"y is at most {small[0]:.3g} in absolute value; squares of such numbers "
            "vanish. Multiply by a constant."
        )


def check_spread_of_targets(y, smallest=SMALLEST) -> None:
    """Refuse targets that vary, but whose squared deviations vanish.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, n_outputs)
    smallest : float
    """
    spread = float(np.ptp(y, axis=0).max(initial=0.0)) if len(y) else 0.0
    if 0.0 < spread < smallest:
        raise ValueError(
            f"y varies by {spread:.3g} only; squares of such numbers vanish. "
            "Multiply by a constant."
        )
