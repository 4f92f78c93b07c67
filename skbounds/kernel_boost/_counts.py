"""Draws of rows whose weights are numbers of equal rows."""

from __future__ import annotations

import numpy as np

# Numpy's hypergeometric draws end here.
_MANY = 1e9


def split_counts(weight, fraction, rng, groups=None):
    """Split weights into those of a training and a validation part.

    Whole weights are numbers of equal rows, which are drawn one by one: as of the rows
    repeated. Other weights go to one of the parts with their row.

    Parameters
    ----------
    weight : ndarray of shape (n,)
    fraction : float
        Share of the validation part.
    rng : Generator
    groups : ndarray of int of shape (n,) or None
        Classes, each of which is split.

    Returns
    -------
    train, held_out : ndarray of shape (n,)
        Of sum `weight`.
    """
    held_out = np.zeros(len(weight))
    whole = (weight == np.round(weight)).all()
    groups = np.zeros(len(weight), dtype=int) if groups is None else groups
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        counts = weight[rows] if whole else np.ones(len(rows))
        size = int(np.ceil(fraction * counts.sum()))
        drawn = draw_counts(counts, size, rng)
        held_out[rows] = drawn if whole else weight[rows] * drawn
    return weight - held_out, held_out


def draw_counts(counts, size, rng):
    """Draw some of the rows that whole counts stand for, without replacement."""
    if counts.sum() >= _MANY:
        # Hardly any is drawn twice.
        drawn = rng.multinomial(int(size), counts / counts.sum())
        return np.minimum(drawn, counts).astype(np.float64)
    return rng.multivariate_hypergeometric(
        counts.astype(np.int64), min(size, int(counts.sum())), method="marginals"
    ).astype(np.float64)
