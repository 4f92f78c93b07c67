"""Details that no other test saw: found by small changes of the code."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbounds.sequential import (
    MABFDR,
    AlphaSpending,
    BatchBH,
    BestArmTest,
    planned_pulls,
    simulate_best_arm_tests,
)
from skbounds.sequential._functions import draw_seeds


@pytest.mark.parametrize("make", [int, np.random.RandomState, np.random.default_rng])
def test_seeds_are_many(make):
    """Runs of a simulation do not repeat each other."""
    assert len(np.unique(draw_seeds(make(0), 1000))) == 1000


def test_evalues_at_rejection_are_those_of_the_p_values():
    """A run ends when the adjusted e-value is at its largest."""
    means = np.tile([0.0, 0.5, 0.6, 0.0], (30, 1))
    found = simulate_best_arm_tests(
        means, until="rejected", max_pulls=5000, delta=0.01, random_state=0
    )
    ended = found["n_pulls"] < 5000
    assert ended.sum() > 10
    p, evalue = -found["log_p_value"], found["log_evalue"]
    assert (p[ended] >= np.log(100.0)).all() and (p[~ended] < np.log(100.0)).all()
    assert_allclose(evalue[ended], p[ended], rtol=1e-12)
    # Before, it may have been larger.
    assert (evalue[~ended] <= p[~ended]).all()


def test_levels_of_experiments_are_below_one():
    """Also those of rules that would reject whatever comes."""
    study = MABFDR(alpha=0.1, sigma=1.0, max_pulls=10, random_state=0)
    study.begin(2)
    for level, expected in ((1.0, 1.0), (0.0, 0.0)):
        delta = study._make(3, level, 0, {}).delta
        assert 0.0 < delta < 1.0
        assert_allclose(delta, expected, atol=1e-9)


def test_standard_error_of_bounded_rewards():
    """From each reward and the mean of those before it, so that it is a little more."""
    rng = np.random.default_rng(0)
    x = rng.beta([[2.0], [5.0]], 2.0, size=(2, 400))
    test = BestArmTest(2, rewards="bounded", max_pulls=10**4)
    test.observe(np.repeat([0, 1], 400), x.ravel())
    engine = test._engine_
    expected = x.var(axis=1, ddof=1) / 400
    found = [engine.variance_of_mean(arm) for arm in (0, 1)]
    assert_allclose(found, expected, rtol=0.05)


def test_lifts_of_arms_that_were_not_tried():
    """By the law of the iterated logarithm: any, and of the others an interval."""
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=10**4)
    rng = np.random.default_rng(0)
    test.observe(np.repeat([0, 1], 50), rng.normal(size=100))
    lower, upper = test.lift_intervals(0.05)
    assert lower[2] == -np.inf and upper[2] == np.inf
    gap = test.means_[1] - test.means_[0]
    assert_allclose(0.5 * (lower[1] + upper[1]), gap, rtol=1e-12)
    # Wider than for one time only and the mean of each arm.
    assert 1.0 < (upper[1] - gap) / (2.0 * 1.96 * np.sqrt(1 / 50)) < 3.0


def test_simulated_tests_end_when_their_p_value_allows_it():
    """By the law of the iterated logarithm: at once, and not before."""
    means = np.tile([0.0, 1.0, 0.2, 0.1], (1000, 1))
    found = simulate_best_arm_tests(
        means, evidence="lil", max_pulls=10**4, delta=0.1, sigma=1.0, random_state=0
    )
    assert (found["certified"] > 0).all()
    p = np.exp(found["log_p_value"])
    assert p.max() <= 0.1
    # One more reward each makes that much of a difference.
    assert np.quantile(p, 0.5) > 0.075 and np.quantile(p, 0.9) > 0.09


def test_planned_rewards_of_conversions():
    """The formula of the docstring, at rates up to one."""
    for base, lift in ((0.1, 0.02), (0.5, 0.5), (0.0, 0.3)):
        better = base + lift
        variances = base * (1.0 - base) + better * (1.0 - better)
        expected = 2.0 * variances / lift**2 * (np.log(1.0 / 0.05) + 2.6)
        found = planned_pulls(lift, rewards="binary", base_rate=base, level=0.05)
        assert found == np.ceil(expected)


def test_simulated_rates_may_be_zero_and_one():
    found = simulate_best_arm_tests(
        [[0.0, 1.0]], rewards="bernoulli", max_pulls=1000, random_state=0
    )
    assert found["best"].tolist() == [1]


def test_batches_take_sequences_that_do_not_increase():
    with pytest.raises(ValueError, match="gamma"):
        BatchBH(gamma=[0.1, 0.2, 0.3]).test([0.5])
    assert BatchBH(gamma=[0.3, 0.2, 0.1]).test([0.5]).tolist() == [False]


def test_open_tests_of_alpha_spending_are_written_down():
    """Levels are 6 alpha / (pi t)^2, also of tests that are not decided yet."""
    procedure = AlphaSpending(0.1)
    procedure.test(0.5)
    procedure.begin()
    procedure.begin()
    state = procedure.to_dict()
    again = AlphaSpending.from_dict(state)
    assert again.to_dict() == state
    assert_allclose(again.next_level_, 6.0 * 0.1 / (np.pi * 4) ** 2)
