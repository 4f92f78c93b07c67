"""Bad input and misuse: clear errors, and the state as it was."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbounds.sequential import (
    LORD,
    MABFDR,
    AlphaSpending,
    BestArmTest,
    LORDPlusPlus,
    LORDPrime,
    always_valid_pvalue,
    lil_delta,
    lil_radius,
    sample_complexity_bound,
    simulate_best_arm_tests,
)


def dump(item):
    return json.dumps(item.to_dict(), sort_keys=True)


@pytest.mark.parametrize("rule", [LORD, LORDPrime, LORDPlusPlus, AlphaSpending])
@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan, np.inf])
def test_p_values_that_are_none(rule, p):
    procedure = rule(0.1)
    procedure.test(0.001)
    before = dump(procedure)
    with pytest.raises(ValueError, match="p_value must be in"):
        procedure.test(p)
    assert dump(procedure) == before
    with pytest.raises(ValueError, match="p_values must be in"):
        procedure.fit([0.1, p])
    assert dump(procedure) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LORD(0.0), "alpha must be in"),
        (lambda: LORD(1.5), "alpha must be in"),
        (lambda: LORD(0.1, w0=0.1), "w0 must be in"),
        (lambda: LORD(0.1, w0=0.0), "w0 must be in"),
        (lambda: LORD(0.1, gamma=[0.9, 0.2]), "sum of at most 1"),
        (lambda: LORD(0.1, gamma=[0.9, -0.2]), "not negative"),
        (lambda: LORD(0.1, gamma=[0.9, np.nan]), "finite"),
        (lambda: LORD(0.1, gamma="other"), "gamma must be"),
        (lambda: LORD(0.1, horizon=0), "horizon must be"),
        (lambda: LORDPlusPlus(0.1, w0=0.2), "w0 must be in"),
        (lambda: LORDPrime(0.1, gamma=[2.0]), "sum of at most 1"),
    ],
)
def test_parameters_of_procedures(make, message):
    """Told at the first use."""
    for use in (lambda p: p.test(0.5), lambda p: p.fit([0.5]), lambda p: p.next_level_):
        with pytest.raises(ValueError, match=message):
            use(make())


def test_decisions_that_are_none():
    with pytest.raises(ValueError, match="True or False"):
        LORD(0.1).update(0.01)


@pytest.mark.parametrize("rule", [LORD, LORDPrime, LORDPlusPlus])
def test_levels_past_the_horizon(rule):
    procedure = rule(0.1, horizon=5)
    for _ in range(5):
        assert procedure.next_level_ > 0.0
        procedure.test(0.0)
    assert procedure.next_level_ == 0.0
    # Nor is a p-value of 0 at most a level of 0.
    assert not procedure.test(0.001)
    assert not procedure.test(0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_arms": 1}, "n_arms must be"),
        ({"n_arms": 2.5}, "n_arms must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": None}, "sigma"),
        ({"max_pulls": 3}, "max_pulls must be"),
        ({"max_pulls": np.inf}, "max_pulls must be"),
        ({"sampler": "thompson"}, "sampler must be"),
    ],
)
def test_parameters_of_experiments(options, message):
    good = {"n_arms": 4, "evidence": "lil", "sigma": 1.0, "max_pulls": 100}
    with pytest.raises(ValueError, match=message):
        BestArmTest(**{**good, **options}).ask()


def test_sigma_is_no_guess():
    with pytest.raises(ValueError, match="sigma"):
        BestArmTest(4, evidence="lil", max_pulls=100).ask()
    with pytest.raises(ValueError, match="sigma"):
        MABFDR(evidence="lil", max_pulls=100).begin(4)
    with pytest.raises(TypeError, match="sigma"):
        lil_radius(10, 0.1)


@pytest.mark.parametrize("sigma", [1e-163, 0.0, -1.0, np.inf, np.nan, 1e160])
def test_scales_whose_squares_are_no_numbers(sigma):
    """p-values of 0 came of them."""
    for make in (
        lambda: BestArmTest(4, evidence="lil", sigma=sigma, max_pulls=100).ask(),
        lambda: lil_radius(10, 0.1, sigma=sigma),
    ):
        with pytest.raises(ValueError, match="sigma, the sub-Gaussian scale"):
            make()
    test = BestArmTest(2, evidence="lil", sigma=1e-140, max_pulls=100, random_state=0)
    test.run(lambda arm, size, rng: 1e-140 * rng.normal(size=size))
    assert 0.0 < test.p_value_ <= 1.0


def test_one_alpha_of_a_study():
    """A procedure has its own; another one is an error, also the default's number."""
    options = {"evidence": "lil", "sigma": 1.0, "max_pulls": 100}
    with pytest.raises(ValueError, match=r"procedure has alpha=0\.2, and alpha=0\.05"):
        _ = MABFDR(LORD(0.2), alpha=0.05, **options).next_level_
    plain = MABFDR(LORD(0.2), **options)
    assert plain.next_level_ == MABFDR(LORD(0.2), alpha=0.2, **options).next_level_
    assert plain.next_level_ == MABFDR(alpha=0.2, **options).next_level_
    assert MABFDR(**options).next_level_ == MABFDR(alpha=0.05, **options).next_level_


def test_rewards_that_nobody_asked_for():
    test = BestArmTest(3, evidence="lil", sigma=0.5, max_pulls=100)
    before = dump(test)
    with pytest.raises(ValueError, match="asked for"):
        test.tell([0, 1, 2], [0.1, 0.2, 0.3])
    arms = test.ask()
    asked = dump(test)
    assert asked != before
    cases = [
        ([0, 1], [0.1, 0.2], "asked for"),
        ([0, 1, 1], [0.1, 0.2, 0.3], "asked for"),
        ([0, 1, 3], [0.1, 0.2, 0.3], "cannot be added"),
        ([0, 1, -1], [0.1, 0.2, 0.3], "integers in"),
        ([0, 1, 2], [0.1, 0.2], "same length"),
        ([0, 1, 2], [0.1, 0.2, np.nan], "finite"),
        ([0, 1, 2], [0.1, 0.2, 1.5], r"sigma=0.5 is for rewards in \[0, 1\]"),
        ([0.0, 1.0, 2.0], [0.1, 0.2, 0.3], "integers"),
    ]
    for told, rewards, message in cases:
        with pytest.raises(ValueError, match=message):
            test.tell(told, rewards)
        assert dump(test) == asked
    with pytest.raises(ValueError, match="tell their rewards first"):
        test.observe([0], [0.5])
    test.tell(arms[::-1], [0.3, 0.2, 0.1])
    np.testing.assert_allclose(test.means_, [0.1, 0.2, 0.3])


def test_end_of_an_experiment():
    test = BestArmTest(2, evidence="lil", sigma=1.0, max_pulls=10)
    while not test.done_:
        test.tell(test.ask(), np.zeros(2))
    assert test.n_pulls_ == 10
    with pytest.raises(ValueError, match="has ended"):
        test.ask()
    for level in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="level must be"):
            test.rejected(level)
    assert not test.rejected(0.0)


def test_misuse_of_studies():
    study = MABFDR(alpha=0.1, evidence="lil", sigma=1.0, max_pulls=100, random_state=0)
    test = study.begin(3)
    with pytest.raises(ValueError, match="is open"):
        study.begin(3)
    with pytest.raises(ValueError, match="begin has opened"):
        study.finish(BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100))
    assert study.history_ == []
    study.finish(test)
    with pytest.raises(ValueError, match="begin has opened"):
        study.finish(test)
    assert len(study.history_) == 1
    with pytest.raises(ValueError, match="max_pulls must be"):
        study.begin(101)
    with pytest.raises(ValueError, match="max_pulls must be"):
        MABFDR(evidence="lil", sigma=1.0, max_pulls=1).begin(2)
    assert study.open_ is None
    with pytest.raises(ValueError, match="alpha"):
        MABFDR(LORD(0.2), alpha=0.1, evidence="lil", sigma=1.0, max_pulls=100).begin(3)
    own = MABFDR(LORD(0.2), evidence="lil", sigma=1.0, max_pulls=100)
    assert own.next_level_ == LORD(0.2).next_level_
    with pytest.raises(ValueError, match="procedure must be"):
        MABFDR("lord", evidence="lil", sigma=1.0, max_pulls=100).begin(3)


def test_states_of_other_classes():
    with pytest.raises(ValueError, match="state of 'LORD'"):
        LORDPrime.from_dict(LORD(0.1).to_dict())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lil_radius(0, 0.1, sigma=1.0), "at least 1"),
        (lambda: lil_radius(10, 0.0, sigma=1.0), "delta must be"),
        (lambda: lil_radius(10, 0.1, sigma=-1.0), "sigma"),
        (lambda: lil_delta(10, -0.1, sigma=1.0), "radius must not"),
        (lambda: always_valid_pvalue([0.0], [1], sigma=1.0), "two arms"),
        (lambda: always_valid_pvalue([0.0, 1.0], [1], sigma=1.0), "counts"),
        (lambda: always_valid_pvalue([0.0, np.nan], [1, 1], sigma=1.0), "NaN"),
        (lambda: sample_complexity_bound([0.0, 1.0], 0.0, sigma=1.0), "delta"),
        (
            lambda: simulate_best_arm_tests([[0, 1]], evidence="lil", max_pulls=1),
            "max_pulls",
        ),
        (
            lambda: simulate_best_arm_tests(
                [[0, 1]], evidence="lil", max_pulls=9, rewards="t"
            ),
            "rewards must be",
        ),
    ],
)
def test_functions(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_parameters_after_the_start_change_nothing():
    """They are those that tests under way began with."""
    procedure = LORD(0.1).fit([0.0, 0.9])
    before, wealth = dump(procedure), procedure.wealth_
    procedure.set_params(alpha=0.9, gamma=[0.5, 0.5])
    assert dump(procedure) == before
    assert procedure.wealth_ == wealth
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    test.observe([0, 1, 2], [0.0, 0.0, 0.0])
    test.set_params(n_arms=10**6)
    with pytest.raises(ValueError, match="integers in"):
        test.observe([5000], [1.0])
    assert len(test.counts_) == 3


def test_numpy_numbers_are_written_down():
    for procedure in (
        LORD(np.float32(0.1), horizon=np.int64(5)),
        LORD(0.1, w0=np.float32(0.01)),
        LORDPlusPlus(0.1, gamma=[np.float32(0.5), np.float64(0.25)]),
    ):
        procedure.fit([0.01, 0.2])
        again = type(procedure).from_dict(json.loads(json.dumps(procedure.to_dict())))
        assert again.next_level_ == procedure.next_level_


def test_nothing_is_learnt_from_nan():
    """Not a number is no gap."""
    with pytest.raises(ValueError, match="counts"):
        always_valid_pvalue([0.0, -5.0], [np.inf, 10], sigma=1.0)
    with pytest.raises(ValueError, match="finite"):
        simulate_best_arm_tests([[np.nan, 1.0]], evidence="lil", max_pulls=10)
    with pytest.raises(ValueError, match="Bernoulli"):
        simulate_best_arm_tests(
            [[2.0, 1.0]], evidence="lil", max_pulls=10, rewards="bernoulli"
        )
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    with pytest.raises(ValueError, match="finite"):
        test.observe([0, 0, 1], [-1.7e308, -1.7e308, 0.0])


def test_the_radius_at_a_tenth():
    """Its inverse is a tenth, not 1."""
    for n in (1, 7, 100, 12345):
        radius = lil_radius(n, 0.1, sigma=0.7)
        assert abs(lil_delta(n, radius, sigma=0.7) - 0.1) < 1e-12


def test_logs_certify_like_steps():
    """Whatever the chunks."""
    rng = np.random.default_rng(0)
    arms = np.tile([0, 1, 2], 500)
    rewards = np.where(np.arange(1500) < 300, 1.5 * arms, 0.0)
    rewards = rewards + rng.normal(size=1500)
    whole, steps = (
        BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=3000) for _ in range(2)
    )
    whole.observe(arms, rewards)
    for arm, reward in zip(arms, rewards, strict=True):
        steps.observe([arm], [reward])
    assert steps.is_certified_
    assert whole.recommendation_ == steps.recommendation_
    assert whole.done_ == steps.done_
    assert whole.log_p_value_ == steps.log_p_value_


def test_levels_near_one():
    """Are no confidence that is refused."""
    study = MABFDR(
        LORD(0.9, w0=0.1, gamma=[0.01, 0.99]),
        evidence="lil",
        sigma=1.0,
        max_pulls=10,
        random_state=0,
    )
    for rejected in [True] * 8 + [False]:
        study._start()
        study._procedure_.update(rejected)
    assert study.next_level_ == 1.0
    test = study.begin(2)
    assert test.delta < 1.0


@pytest.mark.parametrize("rule", [LORD, LORDPrime, LORDPlusPlus, AlphaSpending])
def test_decisions_of_others_from_the_first_on(rule):
    """`update` needs no look at the level before."""
    told, tested = rule(), rule()
    for p in (0.0, 0.5, 0.0, 0.9):
        told.update(tested.test(p))
        assert told.wealth_ == tested.wealth_
        assert told.next_level_ == tested.next_level_


@pytest.mark.parametrize("level", [None, "0.05", [0.05], np.nan, -0.1, 1.1])
def test_levels_that_are_none(level):
    """Refused by name."""
    test = BestArmTest(2, evidence="lil", sigma=1.0, max_pulls=10)
    with pytest.raises(ValueError, match="level must be in"):
        test.rejected(level)


@pytest.mark.parametrize("rewards", [[0.0, 0.0], [], [np.nan], None])
def test_draws_that_misbehave(rewards):
    """One finite reward for each that is asked for; nothing is learnt otherwise."""
    test = BestArmTest(2, evidence="lil", sigma=1.0, max_pulls=10, random_state=0)
    with pytest.raises((ValueError, TypeError)):
        test.run(lambda arm, size, rng: rewards)
    assert_array_equal(test.counts_, [0, 0])


@pytest.mark.parametrize("rule", [LORD, LORDPlusPlus])
@pytest.mark.parametrize("w0, words", [(1e-9, "before"), (0.05 * (1 - 1e-9), "after")])
def test_initial_wealth_near_its_limits(rule, w0, words):
    """One warning; usual values are silent (tests turn no warning off)."""
    with pytest.warns(UserWarning, match=f"w0=.*{words} the first") as found:
        rule(0.05, w0=w0).fit([0.5, 0.0])
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for usual in (None, 0.0025, 0.045):
            rule(0.05, w0=usual).fit([0.5, 0.0])


def test_the_control_in_front():
    """No rejection where the control has become the best, however small P was."""
    test = BestArmTest(2, evidence="lil", sigma=1.0, max_pulls=1000, delta=1e-12)
    test.observe(np.tile([0, 1], 30), np.tile([0.0, 3.0], 30))
    assert test.rejected(0.05)
    before = test.p_value_
    test.observe(np.zeros(20, dtype=int), np.full(20, 100.0))
    assert test.p_value_ == before
    assert test.recommendation_ == 0
    assert not test.rejected(0.05)


def test_means_of_arms_without_rewards():
    """`means_` and `counts_` of a test under way can be given; other NaN cannot."""
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    test.observe([0, 2] * 20, [0.0, 3.0] * 20)
    assert np.isnan(test.means_[1])
    p = always_valid_pvalue(test.means_, test.counts_, sigma=1.0)
    assert p == always_valid_pvalue([0.0, 5.0, 3.0], [20, 0, 20], sigma=1.0)
    assert p < 0.05
    with pytest.raises(ValueError, match="means"):
        always_valid_pvalue([0.0, np.nan, 3.0], [20, 1, 20], sigma=1.0)
