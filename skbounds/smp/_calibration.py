"""Candidates of the pool that get the rate of the classes right.

Virtual observations of both labels pull probabilities towards one half, and with them
their mean. A shifted candidate has the log-odds moved by one number so that the
leave-one-out probabilities sum to the number of ones, as those of the plug-in do
(Puhr, Heinze, Nold, Lusa and Geroldinger, 2017, do the same for Firth's penalty); a
null candidate does not look at the features at all.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit

# Weights of the virtual observations of a null candidate's classes.
NULL_WEIGHTS = (0.5, 1.0)
# The loss of a candidate that could not be computed.
WORST = 1e4
# A row moves its own shift by at most this much.
_LARGEST_MOVE = 1.0


def intercept_shift(log_odds, codes, weight) -> float:
    """Return b with ``sum_i w_i sigma(log_odds_i + b)`` the weight of the ones.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
        By leave-one-out.
    codes : ndarray of shape (n,)
        0 and 1, both there.
    weight : ndarray of shape (n,)
    """
    ones, zeros = weight @ codes, weight @ (1 - codes)

    def excess(b):
        # Ones that are too many: without cancellation where one class is rare.
        eta = log_odds + b
        over = weight @ np.where(codes == 0, expit(eta), 0.0)
        return float(over - weight @ np.where(codes == 1, expit(-eta), 0.0))

    # At these ends all probabilities are on one side of the rate.
    rate = np.log(ones) - np.log(zeros)
    low, high = rate - log_odds.max() - 1e-6, rate - log_odds.min() + 1e-6
    if not (excess(low) < 0.0 < excess(high)):
        # Rounding of weights that differ by many orders decides.
        return float(min((low, high), key=lambda b: abs(excess(b))))
    return float(brentq(excess, low, high))


def shifted_losses(log_odds, codes, weight, shift) -> np.ndarray:
    """Return leave-one-out log losses with a shift that does without the row too.

    By one Newton step out of the shift of all rows.
    """
    curvature = expit(log_odds + shift) * expit(-log_odds - shift)
    return shifted_row_losses(log_odds, codes, weight, shift, weight @ curvature)


def shifted_row_losses(log_odds, codes, weight, shift, total) -> np.ndarray:
    """Return the same for some of the rows.

    Parameters
    ----------
    total : float
        Weighted sum of p (1 - p) at the shift, over all rows.
    """
    proba = expit(log_odds + shift)
    curvature = proba * (1.0 - proba)
    unit = np.minimum(weight, 1.0)
    others = np.maximum(total - unit * curvature, 1e-300)
    move = unit * (proba - codes) / others
    own = log_odds + shift + np.clip(move, -_LARGEST_MOVE, _LARGEST_MOVE)
    return -log_expit(np.where(codes == 1, own, -own))


def null_proba(counts, added) -> np.ndarray:
    """Return the class probabilities of a null candidate."""
    return (counts + added) / (counts.sum() + added * len(counts))


def null_losses(codes, weight, n_classes, added) -> np.ndarray:
    """Return the leave-one-out log losses of a null candidate."""
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    return null_row_losses(codes, weight, counts, added)


def null_row_losses(codes, weight, counts, added) -> np.ndarray:
    """Return the same for some of the rows, from the weights of all classes."""
    n_classes, unit = len(counts), np.minimum(weight, 1.0)
    own = counts[codes] - unit + added
    return np.log(counts.sum() - unit + added * n_classes) - np.log(own)
