"""The rates of the thesis' experiments (section 3.4), as far as they are safe to ask.

Design points i / n, kernel 1 + min(x, x'), target |x - 1/2| - 1/4, steps of 3/4. The
fitted values are those of the averaged iterates.
"""

import numpy as np
import pytest
from scipy.special import expit

from skbounds.kernel_boost import EarlyStoppedKernelBoost
from skbounds.kernel_boost._radius import critical_radius, theory_time

SIZES, N_TRIALS, STEP = (100, 200, 400, 800), 40, 0.75
# Squared norm of the target: f(0)^2 plus the integral of the squared slope.
NORM = np.sqrt(17 / 16)


def target(n):
    return np.abs(np.arange(1, n + 1) / n - 0.5) - 0.25


def product(values):
    """K v for the design points, by cumulative sums instead of a matrix."""
    n = len(values)
    x = np.arange(1, n + 1)[:, None] / n
    before = np.cumsum(values, axis=0)
    return (before[-1] + np.cumsum(x * values, axis=0) + x * (before[-1] - before)) / n


def eigenvalues(n):
    x = np.arange(1, n + 1) / n
    return np.linalg.eigvalsh(1.0 + np.minimum.outer(x, x))[::-1] / n


def errors(slope, truth, times):
    """Mean squared errors: of the averages at some times, and of the best last one."""
    values, total = np.zeros((len(truth), N_TRIALS)), np.zeros((len(truth), N_TRIALS))
    best, found = np.full(N_TRIALS, np.inf), {}
    for t in range(1, max(times) + 1):
        values -= STEP * product(slope(values))
        total += values
        best = np.minimum(best, ((values - truth) ** 2).mean(axis=0))
        if t in times:
            found[t] = ((total / t - truth) ** 2).mean()
    return [found[t] for t in times], best.mean()


def experiment(loss):
    """Return log-log slopes by rule, and the last error of "theory" over the best."""
    rng = np.random.default_rng(0)
    rows, best = [], 0.0
    for n in SIZES:
        truth = target(n)[:, None]
        if loss == "l2":
            m, noise, norm = 1.0, np.sqrt(0.5), NORM
        elif loss == "logit":
            m, noise, norm = 0.25, 2.0 / np.sqrt(5.0), NORM
        else:
            truth = 0.5 * truth
            m, noise, norm = 1.0, 1.0 / np.sqrt(5.0), 0.5 * NORM
        rule = theory_time(critical_radius(eigenvalues(n), noise, norm, n), STEP, m)
        times = [round((7 * n) ** kappa) for kappa in (1 / 3, 2 / 3, 1)] + [int(rule)]
        if loss == "l2":
            y = truth + np.sqrt(0.5) * rng.normal(size=(n, N_TRIALS))
            slope = lambda f, y=y: f - y
        else:
            share = rng.binomial(5, expit(target(n)), size=(N_TRIALS, n)).T / 5
            if loss == "logit":
                slope = lambda f, share=share: expit(f) - share
            else:
                slope = lambda f, share=share: (
                    (1.0 - share) * np.exp(f) - share * np.exp(-f)
                )
        row, best = errors(slope, truth, times)
        rows.append(row)
    slopes = np.polyfit(np.log(SIZES), np.log(rows), 1)[0]
    return dict(zip(("1/3", "2/3", "1", "rule"), slopes, strict=True)), row[-1] / best


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["l2", "logit", "exp"])
def test_rates(loss):
    """T = (7n)^(2/3) is about right, (7n)^(1/3) too short and 7n too long.

    For the logistic loss the three cannot be told apart at these sizes. The rule of
    the eigenvalues has the rate, and comes near to the best time in hindsight.
    """
    slopes, loss_of_rule = experiment(loss)
    if loss != "logit":
        assert slopes["2/3"] <= -0.65
        assert slopes["1/3"] >= -0.4
        assert slopes["1"] >= slopes["2/3"] + 0.1
    assert slopes["rule"] <= -0.6
    assert loss_of_rule <= 1.6


@pytest.mark.parametrize("n, T", [(50, 37), (100, 59), (200, 96), (400, 154)])
def test_the_estimator_knows_the_time_of_the_experiment(n, T):
    """With noise and norm given, "theory" takes the times of the experiment."""
    X = np.arange(1, n + 1)[:, None] / n
    y = target(n) + np.random.default_rng(0).normal(size=n)
    model = EarlyStoppedKernelBoost(
        "sobolev", stopping="theory", noise=np.sqrt(0.5), norm=NORM, step_size=STEP,
        fit_intercept=False, solver="eigh",
    ).fit(X, y)  # fmt: skip
    assert model.n_iter_ == T
