"""Bounds on a vote from its members' joint mistakes, and weights that minimise them.

Useful for diverse members; members along a path of C are nearly copies.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from skbounds.pac_bayes._bounds import c_bound, complexity
from skbounds.pac_bayes._constants import invert_lower, invert_upper, kl_complexity

_MAX_ITER = 2000
_TOLERANCE = 1e-9
# Members up to which the C-bound, which is not convex, is searched as well.
_MOST_SEARCHED = 200


def second_order(wrong, codes, weights, shares):
    """Return how often two members drawn both err, and how often they disagree.

    Parameters
    ----------
    wrong : ndarray of bool of shape (n_rows, n_members)
    codes : ndarray of int of shape (n_rows, n_members)
    weights : ndarray of shape (n_members,)
    shares : ndarray of shape (n_rows,)
        What each row counts in a mean.
    """
    both, one = wrong @ weights, (codes == 1) @ weights
    joint = float(min(shares @ both**2, 1.0))
    apart = float(np.clip(shares @ (2.0 * one * (1.0 - one)), 0.0, 0.5))
    return joint, apart


def tandem_limit(joint_risk, kl, n_rows, delta):
    """Return a limit for the risk that two members drawn both err."""
    level = kl_complexity(n_rows, "exact") - np.log(delta)
    return invert_upper(joint_risk, (2.0 * kl + level) / n_rows)


def c_limit(risk, disagreement, kl, n_rows, delta):
    """Return the C-bound from limits for risk and disagreement, half of delta each."""
    half = kl_complexity(n_rows, "exact") - np.log(0.5 * delta)
    return c_bound(
        invert_upper(risk, (kl + half) / n_rows),
        invert_lower(disagreement, (2.0 * kl + half) / n_rows),
    )


def best_vote(wrong, codes, prior, level, n_classes, sample):
    """Return weights with a small tandem bound or, with two classes, C-bound.

    Both bounds hold for all weights at once, so that any weights may be chosen.
    """
    m, shares = sample.size, sample.shares
    share = level / 4.0 if n_classes == 2 else level / 2.0

    def tandem(q):
        joint, _ = second_order(wrong, codes, q, shares)
        return 4.0 * float(tandem_limit(joint, complexity(q, prior, "kl"), m, share))

    joint = (wrong.T * shares) @ wrong
    best = tandem_posterior(joint, m, prior, share)
    value = tandem(best)
    support = np.flatnonzero(prior)
    if n_classes > 2 or len(support) > _MOST_SEARCHED:
        return best
    risks = shares @ wrong

    def by_risk_and_disagreement(theta):
        q = np.zeros(len(prior))
        q[support] = softmax(np.log(prior[support]) + theta)
        _, apart = second_order(wrong, codes, q, shares)
        risk = min(float(q @ risks), 1.0)
        return c_limit(risk, apart, complexity(q, prior, "kl"), m, share), q

    start = np.log(np.maximum(best[support], 1e-300) / prior[support])
    start = np.maximum(start - start.max(), -30.0)
    for at in (start, np.zeros(len(support))):
        found = minimize(
            lambda theta: by_risk_and_disagreement(theta)[0],
            at,
            method="L-BFGS-B",
            options={"maxiter": 30},
        )
        c_value, q = by_risk_and_disagreement(found.x)
        if c_value < value:
            value, best = c_value, q
    return best


def tandem_posterior(joint, n_rows, prior, delta):
    """Return the weights that minimise the tandem bound in its lambda form.

    With E = q'Tq and c = ln(xi(m) / delta) the bound is the least over lambda of
    E / (1 - lambda/2) + (2 KL + c) / (m lambda (1 - lambda/2)): for fixed lambda it is
    convex in q, and lambda has a closed form; each is improved in turn, the weights by
    proximal steps in relative entropy. Their sizes are such that the quadratic part
    stays below its model: a step that merely lowers the bound may end in a corner,
    which steps of this kind do not leave.

    Parameters
    ----------
    joint : ndarray of shape (n_members, n_members)
        Share of rows on which two members both err.
    n_rows : int
    prior : ndarray of shape (n_members,)
    delta : float
    """
    support = np.flatnonzero(prior)
    T, log_p = joint[np.ix_(support, support)], np.log(prior[support])
    level = kl_complexity(n_rows, "exact") - np.log(delta)

    def value_of(log_q, q):
        cost = 2.0 * max(float(q @ (log_q - log_p)), 0.0) + level
        risk = max(float(q @ T @ q), 0.0)
        lam = 2.0 / (np.sqrt(2.0 * n_rows * risk / cost + 1.0) + 1.0)
        left = 1.0 - 0.5 * lam
        return risk / left + cost / (n_rows * lam * left), lam

    log_q, q = log_p, prior[support]
    value, lam = value_of(log_q, q)
    resistance = 1.0
    for _ in range(_MAX_ITER):
        left = 1.0 - 0.5 * lam
        product = T @ q
        price = 2.0 / (n_rows * lam * left)
        while True:
            raw = resistance * log_q + price * log_p - 2.0 * product / left
            new_log = log_softmax(raw / (resistance + price))
            trial = np.exp(new_log)
            step = trial - q
            distance = max(float(trial @ (new_log - log_q)), 0.0)
            excess = float(step @ T @ step) / left
            if excess <= resistance * distance + 1e-15:
                break
            resistance *= 2.0
        new_value, lam = value_of(new_log, trial)
        gain, value = value - new_value, new_value
        log_q, q = new_log, trial
        resistance *= 0.5
        if gain < _TOLERANCE:
            break
    result = np.zeros(len(prior))
    result[support] = q
    return result
