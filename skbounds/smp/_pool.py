"""Weights of a linear pool of predictors from their leave-one-out losses."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

# Candidates below this fraction of the largest weight are left out of the pool: their
# predictions cost as much as any other's and change nothing.
_NEGLIGIBLE = 1e-3


def pool_weights(
    losses: np.ndarray, counts: np.ndarray, learning_rate: float, aggregation: str
) -> np.ndarray:
    """Return the exponential weights ``q_j ~ exp(-learning_rate * S_j)``.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_samples)
        Leave-one-out log losses.
    counts : ndarray of shape (n_samples,)
        Repetition counts; ``S_j`` is the weighted sum over the samples.
    learning_rate : float
    aggregation : {'pool', 'best'}
        'best' puts all weight on the first candidate with the smallest sum.

    Returns
    -------
    weights : ndarray of shape (n_candidates,)
    """
    total = losses @ counts
    if aggregation == "best":
        weights = np.zeros(len(total))
        weights[np.argmin(total)] = 1.0
        return weights
    weights = softmax(-learning_rate * total)
    weights[weights < _NEGLIGIBLE * weights.max()] = 0.0
    return weights / weights.sum()


def pool_leave_one_out_loss(
    losses: np.ndarray, counts: np.ndarray, learning_rate: float, aggregation: str
) -> float:
    """Return the mean log loss of the pool, each row scored by weights without it.

    One unit ``min(1, count)`` of a row is left out of its own weights, so that integer
    counts equal repetition.
    """
    total = losses @ counts
    pooled = pool_row_losses(losses, counts, total, learning_rate, aggregation)
    return float(pooled @ counts / counts.sum())


def pool_row_losses(losses, counts, total, learning_rate, aggregation) -> np.ndarray:
    """Return the losses of the pool at some rows, by weights without each.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n)
    counts : ndarray of shape (n,)
    total : ndarray of shape (n_candidates,)
        Sums over all rows.
    """
    others = total[:, None] - np.minimum(counts, 1.0) * losses
    if aggregation == "best":
        chosen = np.argmin(others, axis=0)
        return losses[chosen, np.arange(losses.shape[1])]
    # Sums of large weights have few digits to spare.
    weights = -learning_rate * (others - others.min(axis=0))
    weights -= logsumexp(weights, axis=0)
    return -logsumexp(weights - losses, axis=0)
