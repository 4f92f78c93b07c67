"""Compiled steps of the best-arm test."""

from __future__ import annotations

from functools import partial

import numpy as np

from skbounds._jit import compile_nogil
from skbounds.sequential._radius import log_p_value

_compile = partial(compile_nogil, error_model="numpy", fastmath=False)

# What `decide` returns beside an arm that is certified.
GO_ON = -1


@_compile()
def radii(counts, x_lower, x_upper, sigma, lower, upper):
    """Fill in the radii of the lower and the upper bounds.

    Parameters
    ----------
    counts : ndarray of shape (n_arms,)
    x_lower, x_upper : float
        log(1/d) + 3 log log(1/d) at delta / 2K and at delta / 2.
    sigma : float
    lower, upper : ndarray of shape (n_arms,)
    """
    for i in range(len(counts)):
        growth = 1.5 * np.log1p(np.log(counts[i]))
        scale = 2.0 * sigma * sigma / counts[i]
        lower[i] = np.sqrt(scale * (x_lower + growth))
        upper[i] = np.sqrt(scale * (x_upper + growth))


@_compile()
def decide(means, lower, upper, epsilon, arms):
    """Stop, or choose the arms of the next round (Algorithm 1).

    Ties go to the lowest number.

    Parameters
    ----------
    means : ndarray of shape (n_arms,)
    lower, upper : ndarray of shape (n_arms,)
        Radii.
    epsilon : float
    arms : ndarray of int of shape (4,)
        Arms of the next round, filled in.

    Returns
    -------
    certified : int
        The arm that is certified, or -1.
    n_arms : int
        Number of arms of the next round.
    """
    n = len(means)
    best = 0
    for i in range(1, n):
        if means[i] > means[best]:
            best = i
    rival = -1
    for i in range(n):
        if i != best and (
            rival < 0 or means[i] + upper[i] > means[rival] + upper[rival]
        ):
            rival = i
    control_wins = True
    for i in range(1, n):
        if not means[0] - lower[0] > means[i] + upper[i] - epsilon:
            control_wins = False
    if control_wins:
        return 0, 0
    least = means[best] - lower[best]
    if (
        least > means[rival] + upper[rival] - epsilon
        and least > means[0] + upper[0] + epsilon
    ):
        return best, 0
    arms[0], arms[1] = best, rival
    count = 2
    if epsilon > 0.0:
        top = 1
        for i in range(2, n):
            if means[i] + upper[i] > means[top] + upper[top]:
                top = i
        for arm in (0, top):
            known = False
            for k in range(count):
                if arms[k] == arm:
                    known = True
            if not known:
                arms[count] = arm
                count += 1
    return GO_ON, count


@_compile()
def watch(means, counts, changed, sigma, epsilon, log_p):
    """Return the running minimum of the p-value's logarithm.

    Parameters
    ----------
    means, counts : ndarray of shape (n_arms,)
    changed : ndarray of bool of shape (n_arms,)
        Arms that have new rewards.
    sigma, epsilon : float
    log_p : float
        The minimum so far.
    """
    if counts[0] < 1.0:
        return log_p
    n = len(means)
    for i in range(1, n):
        if counts[i] >= 1.0 and (changed[0] or changed[i]):
            log_p = log_p_value(
                means[i] - means[0] - epsilon, counts[i], counts[0], n - 1, sigma, log_p
            )
    return log_p


@_compile()
def replay(arms, rewards, counts, sums, x_lower, x_upper, sigma, epsilon, log_p):
    """Take rewards one by one; return the first certified arm and the p-value.

    Parameters
    ----------
    arms : ndarray of int of shape (n,)
    rewards : ndarray of shape (n,)
    counts, sums : ndarray of shape (n_arms,)
        Updated.
    x_lower, x_upper : float
        As for `radii`.
    sigma, epsilon, log_p : float

    Returns
    -------
    certified : int
        -1 for none.
    log_p : float
        Running minimum of the p-value's logarithm.
    """
    n = len(counts)
    lower, upper, spare = np.empty(n), np.empty(n), np.empty(4, dtype=np.int64)
    certified, n_tried = GO_ON, 0
    for i in range(n):
        if counts[i] > 0.0:
            n_tried += 1
    changed, means = np.zeros(n, dtype=np.bool_), np.zeros(n)
    for i in range(n):
        if counts[i] > 0.0:
            means[i] = sums[i] / counts[i]
    for t in range(len(arms)):
        i = arms[t]
        if counts[i] == 0.0:
            n_tried += 1
        counts[i] += 1.0
        sums[i] += rewards[t]
        means[i] = sums[i] / counts[i]
        changed[i] = True
        log_p = watch(means, counts, changed, sigma, epsilon, log_p)
        changed[i] = False
        if certified < 0 and n_tried == n:
            radii(counts, x_lower, x_upper, sigma, lower, upper)
            certified, _ = decide(means, lower, upper, epsilon, spare)
    return certified, log_p


@_compile()
def simulate(
    expected,
    sigma,
    epsilon,
    x_lower,
    x_upper,
    max_pulls,
    uniform,
    bernoulli,
    seed,
    counts,
    sums,
):
    """Run one test on simulated rewards.

    Returns
    -------
    certified, best, n_pulls : int
    log_p : float
    """
    np.random.seed(seed)
    n = len(expected)
    means, lower, upper = np.zeros(n), np.zeros(n), np.zeros(n)
    changed, arms = np.zeros(n, dtype=np.bool_), np.zeros(4, dtype=np.int64)
    n_pulls, log_p, certified, size = 0, 0.0, GO_ON, n
    everything = True
    while n_pulls + size <= max_pulls:
        for k in range(size):
            i = k if everything else arms[k]
            if bernoulli:
                reward = 1.0 if np.random.random() < expected[i] else 0.0
            else:
                reward = expected[i] + sigma * np.random.standard_normal()
            counts[i] += 1.0
            sums[i] += reward
            means[i] = sums[i] / counts[i]
            changed[i] = True
        n_pulls += size
        log_p = watch(means, counts, changed, sigma, epsilon, log_p)
        for i in range(n):
            changed[i] = False
        radii(counts, x_lower, x_upper, sigma, lower, upper)
        certified, size = decide(means, lower, upper, epsilon, arms)
        if certified >= 0:
            break
        everything = uniform
        if uniform:
            size = n
    best = 0
    for i in range(1, n):
        if means[i] > means[best]:
            best = i
    return certified, best, n_pulls, log_p
