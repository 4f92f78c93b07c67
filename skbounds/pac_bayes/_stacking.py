"""Weights that the training part decides on, from errors in inner folds."""

from __future__ import annotations

import numpy as np

# Prior weights below this share of the largest are set to zero.
_NEGLIGIBLE = 1e-3
# Members of a path this many inner errors worse than the best have no say.
MOST_EXCESS_ERRORS = 7
# Of 0, 1/2 and 1, by 30 trees and 12 mixed learners on bupa, ionosphere, mammographic,
# pima, german, phoneme, sonar, heart, australian, wdbc and simulations.
_SLACK = 0.5
# Rates at which weights may fall with errors; 0 are equal weights.
STACKING_ETAS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def informed_prior(
    errors: np.ndarray, eta: float, most_excess: float = np.inf
) -> np.ndarray:
    """Return weights proportional to exp(-eta errors), negligible ones removed.

    Infinitely many errors give weight zero, also with ``eta = 0``; so do more than
    `most_excess` above the least.
    """
    excess = errors - np.min(errors)
    weight = np.zeros(len(errors))
    kept = np.isfinite(excess) & (excess <= most_excess)
    weight[kept] = np.exp(-eta * excess[kept])
    weight[weight < _NEGLIGIBLE * weight.max()] = 0.0
    return weight / weight.sum()


def stacked_prior(votes, truth, n_classes, usable):
    """Return the most equal weights whose vote errs about least on held-out rows.

    The rate that errs least is largely chance among rates whose votes differ in few
    rows, and equal weights err least where members are alike. So the smallest rate is
    taken whose vote errs more often by at most half a standard error of the difference
    (`_SLACK`); a standard error is the root of the number of rows on which one of the
    two votes errs.

    Parameters
    ----------
    votes : ndarray of int of shape (n_rows, n_members)
        Codes predicted for rows that were held out; -1 for none.
    truth : ndarray of int of shape (n_rows,)
    n_classes : int
    usable : ndarray of bool of shape (n_members,)
        Members that may have weight.

    Returns
    -------
    prior : ndarray of shape (n_members,)
    eta : float
        The rate at which weights fall with errors.
    vote_errors : ndarray of int of shape (n_etas,)
        Errors of the vote for each of `STACKING_ETAS`.
    """
    errors = np.where(usable, np.sum(votes != truth[:, None], axis=0), np.inf)
    known = votes >= 0
    found, mistakes = [], []
    for eta in STACKING_ETAS:
        weight = informed_prior(errors, eta)
        shares = vote_shares(votes, weight, n_classes)
        wrong = plurality(shares) != truth
        # Where no member votes, nothing is predicted.
        wrong |= ~(known @ weight > 0.0)
        found.append(weight)
        mistakes.append(wrong)
    mistakes = np.array(mistakes)
    vote_errors = mistakes.sum(axis=1)
    # The largest rate of those that err least: the others are measured against it.
    least = int(np.flatnonzero(vote_errors == vote_errors.min())[-1])
    differ = np.sum(mistakes != mistakes[least], axis=1)
    best = int(np.argmax(vote_errors - vote_errors[least] <= _SLACK * np.sqrt(differ)))
    return found[best], STACKING_ETAS[best], vote_errors


def vote_shares(codes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the weight of the members that predict each class, to 12 digits.

    Rounding makes equal weights exact ties.
    """
    shares = np.column_stack([(codes == k) @ weights for k in range(n_classes)])
    return np.round(shares, 12)


def plurality(shares: np.ndarray) -> np.ndarray:
    """Return the class with the largest share, ties to the smaller one."""
    return np.argmax(shares, axis=1)
