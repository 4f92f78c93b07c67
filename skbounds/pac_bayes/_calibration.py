"""Scores and probabilities that rank rows finely and never contradict the vote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

# What is left of a score or probability on the wrong side of the vote.
_SLIVER = 1e-6
# Part of the averaged decisions in the scores of several classes.
_FINE = 1e-3
_MAX_ITER = 100
# Range of the log of a temperature's reciprocal, in units of the decisions' range.
_LOG_SLOPES = (-6.0, 6.0)
# Fewer held-out rows calibrate nothing.
LEAST_ROWS = 10
# A share of the vote counts as seen on at most so many rows.
_MOST_TRIALS = 20


@dataclass(frozen=True)
class Platt:
    """Probabilities sigmoid(slope f + offset) of the second of two classes.

    Attributes
    ----------
    slope, offset : float
    """

    slope: float
    offset: float

    def __call__(self, decision):
        """Return probabilities (n, 2), for decisions (n, 1)."""
        one = expit(self.slope * decision[:, 0] + self.offset)
        return np.column_stack([1.0 - one, one])


@dataclass(frozen=True)
class Temperature:
    """Probabilities softmax(slope f) of several classes.

    Attributes
    ----------
    slope : float
    """

    slope: float

    def __call__(self, decision):
        """Return probabilities, for decisions (n, n_classes)."""
        return softmax(self.slope * decision, axis=1)


def fit_platt(decision: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return slope and offset by maximum likelihood on Platt's smoothed targets.

    A negative slope would turn the ranking round: it is set to 0, which leaves the base
    rate.

    Parameters
    ----------
    decision : ndarray of shape (n,)
    positive : ndarray of bool of shape (n,)
    """
    n_positive, n = int(positive.sum()), len(positive)
    target = np.where(
        positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n - n_positive + 2.0)
    )
    base = target.mean()
    base = np.log(base / (1.0 - base))
    center, scale = decision.mean(), decision.std()
    if not scale > 1e-12 * np.abs(decision).max():
        return 0.0, base
    z = (decision - center) / scale
    loss = lambda at: np.sum(
        np.logaddexp(0.0, at[0] * z + at[1]) - target * (at[0] * z + at[1])
    )
    # Newton's method on a convex function of two numbers.
    at, value = np.array([0.0, base]), loss(np.array([0.0, base]))
    for _ in range(_MAX_ITER):
        p = expit(at[0] * z + at[1])
        gap, curvature = p - target, p * (1.0 - p)
        slope = np.array([gap @ z, gap.sum()])
        cross = curvature @ z
        hessian = np.array([[curvature @ z**2, cross], [cross, curvature.sum()]])
        hessian.flat[::3] += 1e-12 * n
        step = np.linalg.solve(hessian, slope)
        size = 1.0
        while (new_value := loss(at - size * step)) > value and size > 1e-6:
            size *= 0.5
        at = at - size * step
        done = np.abs(size * step).max() < 1e-12 * (1.0 + np.abs(at).max())
        value = min(value, new_value)
        if done:
            break
    slope = at[0] / scale
    if slope <= 0.0:
        return 0.0, base
    return float(slope), float(at[1] - slope * center)


def fit_temperature(decision, truth) -> float:
    """Return the slope by maximum likelihood, on targets smoothed as Platt's.

    One number for all classes keeps their order and cannot follow single rows.

    Parameters
    ----------
    decision : ndarray of shape (n, n_classes)
    truth : ndarray of int of shape (n,)
    """
    n_classes = decision.shape[1]
    counts = np.bincount(truth, minlength=n_classes)[truth]
    own = (counts + 1.0) / (counts + 2.0)
    target = np.repeat(((1.0 - own) / (n_classes - 1))[:, None], n_classes, axis=1)
    target[np.arange(len(truth)), truth] = own
    spread = np.ptp(decision, axis=1).mean()
    if not spread > 0.0:
        return 0.0

    def loss(log_slope):
        shares = log_softmax(np.exp(log_slope) / spread * decision, axis=1)
        return -np.sum(target * shares)

    found = minimize_scalar(loss, bounds=_LOG_SLOPES, method="bounded")
    return float(np.exp(found.x) / spread)


def fit_calibration(decision, truth) -> Platt | Temperature | None:
    """Return the calibration of held-out decisions, or None with too few rows.

    Parameters
    ----------
    decision : ndarray of shape (n, n_columns)
        Averaged decisions; one column for two classes.
    truth : ndarray of int of shape (n,)
        Classes as the columns have them.
    """
    if len(truth) < LEAST_ROWS:
        return None
    if decision.shape[1] == 1:
        return Platt(*fit_platt(decision[:, 0], truth == 1))
    return Temperature(fit_temperature(decision, truth))


def side_decision(decision, voted_one):
    """Return decisions of two classes, positive exactly where the vote is class 1.

    On the wrong side a sliver is left, which keeps the order.

    Parameters
    ----------
    decision : ndarray of shape (n,)
    voted_one : ndarray of bool of shape (n,)
    """
    tiny = np.finfo(np.float64).tiny
    up = np.maximum(decision, np.maximum(_SLIVER * expit(decision), tiny))
    down = np.minimum(decision, -np.maximum(_SLIVER * expit(-decision), tiny))
    return np.where(voted_one, up, down)


def side_probability(probability, voted_one):
    """Return probabilities of class 1 on the vote's side of one half."""
    up = np.maximum(probability, 0.5 + _SLIVER * (0.5 + probability))
    down = np.minimum(probability, 0.5 - _SLIVER * (1.5 - probability))
    return np.where(voted_one, up, down)


def ranked_shares(shares, decision, voted):
    """Return scores of several classes: shares, refined by averaged decisions.

    Parameters
    ----------
    shares, decision : ndarray of shape (n, n_classes)
    voted : ndarray of int of shape (n,)
    """
    return lead(shares + _FINE * softmax(decision, axis=1), voted)


def lead(scores, voted):
    """Return scores of which the voted class has the largest."""
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, voted] = -np.inf
    best = others.max(axis=1)
    own = scores[rows, voted]
    result = scores.copy()
    result[rows, voted] = np.where(own > best, own, best + _SLIVER)
    return result


def smoothed_shares(shares, n_rows):
    """Return shares as if seen on at most 20 rows, with one more for each class."""
    m = min(n_rows, _MOST_TRIALS)
    return (m * shares + 1.0) / (m + shares.shape[1])
