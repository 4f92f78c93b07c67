"""CV+ intervals: from the functions without each fold, and what they missed there."""

from __future__ import annotations

import numpy as np

from skbounds._base import warn_user

# Shares of a number of rows are exact up to this.
_ROUNDING = 1e-9
_MOST_HALVINGS = 2100


def cv_plus(fits, predictions, level):
    """Return the bounds of CV+ intervals.

    With k(i) the fold that row i was left out with and e_i what the function without it
    missed there, the bounds are the floor((1 - level) (n + 1))-th smallest of
    f_k(i)(x) - |e_i| and the ceil(level (n + 1))-th smallest of f_k(i)(x) + |e_i|.
    Where the features' scales were chosen on the rows left out as well, e_i is widened.

    Parameters
    ----------
    fits : FoldFits
    predictions : ndarray of shape (n_new, n_folds)
    level : float

    Returns
    -------
    bounds : ndarray of shape (n_new, 2)
        Infinite where the rank is outside of the rows.
    """
    n = fits.weight.sum()
    low = np.floor((1.0 - level) * (n + 1.0) + _ROUNDING)
    high = np.ceil(level * (n + 1.0) - _ROUNDING)
    if low < 1.0 or high > n:
        warn_user(
            f"level={level:g} needs at least {1.0 / (1.0 - level) - 1.0:.0f} rows, "
            f"there are {n:g}: the intervals have no bounds."
        )
        return np.tile([-np.inf, np.inf], (len(predictions), 1))
    sizes = fits.widening * np.abs(fits.residual)
    folds = []
    for k in range(predictions.shape[1]):
        own = np.flatnonzero(fits.fold == k)
        own = own[np.argsort(sizes[own], kind="stable")]
        folds.append((sizes[own], np.concatenate([[0.0], np.cumsum(fits.weight[own])])))
    # The lower bound mirrors the upper one: -(f - |e|) = -f + |e|.
    lower = -_ranked(-predictions, folds, n + 1.0 - low)
    return np.column_stack([lower, _ranked(predictions, folds, high)])


def _ranked(predictions, folds, rank):
    """Return the value of a rank among f_k + e_i over all rows i, by bisection."""
    rank = rank - _ROUNDING
    low = np.full(len(predictions), np.inf)
    high = np.full(len(predictions), -np.inf)
    for f, (sizes, _) in zip(predictions.T, folds, strict=True):
        low = np.minimum(low, f + sizes[0])
        high = np.maximum(high, f + sizes[-1])
    low = np.nextafter(low, -np.inf)

    # The least of the doubles that have enough values at or below them is one of the
    # values, up to the rounding of a difference.
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * low + 0.5 * high
        if not ((low < middle) & (middle < high)).any():
            break
        below = np.zeros(len(predictions))
        for f, (sizes, total) in zip(predictions.T, folds, strict=True):
            below += total[np.searchsorted(sizes, middle - f, side="right")]
        enough = below >= rank
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high
