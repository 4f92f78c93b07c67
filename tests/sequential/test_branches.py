"""Branches that no other test takes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.sequential import (
    ELOND,
    LORD,
    MABFDR,
    BatchBH,
    BestArmDisplay,
    BestArmTest,
    LORDPlusPlus,
    OnlineFDRDisplay,
    best_arm_discovery_rate,
    lil_radius,
    log_evalue,
    online_ebh,
    planned_pulls,
    sample_complexity_bound,
    simulate_best_arm_tests,
)
from skbounds.sequential._functions import as_floats
from skbounds.sequential._history import ExactHistory, gauss_quadrature


@pytest.mark.parametrize("value", [np.nan, np.inf, "1", [1.0], True])
@pytest.mark.parametrize("name", ["covariate_coef", "covariate_mean"])
def test_covariates_that_are_no_numbers(name, value):
    test = BestArmTest(2, **{name: value})
    with pytest.raises(ValueError, match=f"{name} must be a finite number; got"):
        test.ask()


@pytest.mark.parametrize("value", [1, "yes", None])
def test_ratio_that_is_no_flag(value):
    with pytest.raises(ValueError, match="ratio must be True or False; got"):
        BestArmTest(2, ratio=value).ask()


@pytest.mark.parametrize("size", [0, -1, 1.5, "2", True])
def test_ask_for_no_number(size):
    with pytest.raises(ValueError, match="size must be a positive integer or None"):
        BestArmTest(3).ask(size)


def test_ask_for_a_size_of_rounds():
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    with pytest.raises(ValueError, match="size is for evidence='eprocess'"):
        test.ask(2)
    test.ask()
    with pytest.raises(ValueError, match="withdraw is for evidence='eprocess'"):
        test.withdraw([0])


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, np.nan, "0.1", None])
def test_alpha_of_online_ebh(alpha):
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\); got"):
        online_ebh([1.0], alpha)


@pytest.mark.parametrize("epsilon", [np.nan, np.inf, "0", None])
def test_epsilon_that_is_no_number(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a number of at most"):
        log_evalue((3, 1.0), (3, 0.0), rewards="normal", sigma=1.0, epsilon=epsilon)


@pytest.mark.parametrize("base_rate", [None, -0.1, 0.95, np.nan, "0.1"])
def test_base_rate_and_lift_beyond_1(base_rate):
    message = r"base_rate.* must be in \[0, 1 - lift\]; got"
    with pytest.raises(ValueError, match=message):
        planned_pulls(0.1, rewards="binary", base_rate=base_rate)


def test_lift_that_takes_too_many_rewards():
    assert planned_pulls(1e-3, rewards="normal", sigma=1.0) < 1e9
    with pytest.raises(ValueError, match="lift must not be that small; got 1e-200"):
        planned_pulls(1e-200, rewards="normal", sigma=1.0)


@pytest.mark.parametrize("overlap", [1, "yes", None])
def test_overlap_that_is_no_flag(overlap):
    study = MABFDR(alpha=0.1, max_pulls=100, overlap=overlap)
    with pytest.raises(ValueError, match="overlap must be True or False; got"):
        study.begin(2)


def test_values_in_two_dimensions():
    message = r"e_values must be one-dimensional; got shape \(1, 2\)"
    with pytest.raises(ValueError, match=message):
        ELOND(0.1).fit([[1.0, 2.0]])
    message = r"p_values must be one-dimensional; got shape \(1, 2\)"
    with pytest.raises(ValueError, match=message):
        LORD(0.1).fit([[0.1, 0.2]])
    message = r"rewards must have 1 dimension; got shape \(1, 2\)"
    with pytest.raises(ValueError, match=message):
        as_floats([[0.0, 1.0]], "rewards")


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_e_values_that_are_none(value):
    with pytest.raises(ValueError, match="e_values must be 0 or more, without NaN"):
        ELOND(0.1).fit([3.0, value])


@pytest.mark.parametrize("arms", [[-1], [2]])
def test_arms_that_are_not_there(arms):
    message = r"arms must be integers in \[0, 2\); got"
    with pytest.raises(ValueError, match=message):
        best_arm_discovery_rate([True], arms, [[0.0, 1.0]])


@pytest.mark.parametrize("delta", [0.0, 1.0, [0.1, np.nan]])
def test_delta_of_simulated_tests(delta):
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        simulate_best_arm_tests([[0.0, 1.0]] * 2, delta=delta, max_pulls=10)


def test_no_simulated_tests():
    found = simulate_best_arm_tests(np.empty((0, 3)), max_pulls=10)
    kinds = {name: (value.shape, value.dtype.kind) for name, value in found.items()}
    assert kinds == {
        "certified": ((0,), "i"),
        "best": ((0,), "i"),
        "n_pulls": ((0,), "i"),
        "log_p_value": ((0,), "f"),
        "log_evalue": ((0,), "f"),
    }


def test_gap_that_no_number_of_rounds_finds():
    """Where the radius is above it at any number of rewards that is looked at."""
    gap = lil_radius(2**50, 0.0125, sigma=1.0)
    assert sample_complexity_bound([0.0, gap], 0.05, sigma=1.0) == np.inf
    assert sample_complexity_bound([0.0, 1e5 * gap], 0.05, sigma=1.0) < np.inf


@pytest.mark.parametrize("kind", [LORD, BatchBH])
def test_state_of_another_procedure(kind):
    other = ELOND(0.1)
    other.test(2.0)
    with pytest.raises(ValueError, match=f"state of 'ELOND', not of '{kind.__name__}'"):
        kind.from_dict(other.to_dict())


def test_study_of_an_unknown_procedure():
    study = MABFDR(alpha=0.1, max_pulls=100)
    state = study.to_dict()
    state["procedure"] = {**state["procedure"], "procedure": "Other"}
    with pytest.raises(
        ValueError, match=r"procedure must be one of \[.*\]; got 'Other'"
    ):
        MABFDR.from_dict(state)


def test_study_of_the_first_version_with_none_open():
    study = MABFDR(alpha=0.1, max_pulls=100, sigma=1.0)
    state = study.to_dict()
    state["open"] = None
    again = MABFDR.from_dict(state)
    assert again.open_experiments_ == {}
    assert again.begin(2).delta == study.begin(2).delta


def test_test_of_other_numbers_of_arms():
    test = BestArmTest(3)
    test.observe([0, 1, 2], [0.0, 1.0, 2.0])
    state = test.to_dict()
    with pytest.raises(ValueError, match="another number of arms than n_arms"):
        BestArmTest.from_dict({**state, "counts": state["counts"][:2]})
    with pytest.raises(ValueError, match=r"3 integers .* as .outstanding."):
        BestArmTest.from_dict({**state, "outstanding": [0, 0]})
    state["params"] = {**state["params"], "n_arms": 2}
    with pytest.raises(ValueError, match="another number of arms than n_arms"):
        BestArmTest.from_dict(state)


def test_generator_that_is_unknown():
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=500, random_state=0)
    test.run(lambda arm, size, rng: rng.normal(size=size) + 9.0 * arm)
    state = test.to_dict()
    state["rng"] = {**state["rng"], "bit_generator": "Other"}
    with pytest.raises(ValueError, match=r"generator must be one of .*; got 'Other'"):
        BestArmTest.from_dict(state)


def test_no_rewards():
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    for low, high in (test.confidence_bounds(), test.lift_intervals(0.1)):
        assert (low[1:] == -np.inf).all()
        assert (high[1:] == np.inf).all()
    assert test.confidence_bounds()[0][0] == -np.inf


def test_round_while_first_rewards_are_on_their_way():
    test = BestArmTest(3, sampler="lucb", sigma=1.0)
    assert_array_equal(test.ask(), [0, 1, 2])
    assert_array_equal(test.ask(), [0, 1, 2])
    test.tell([0, 1], [0.0, 1.0])
    assert_array_equal(test.ask(), [0, 1, 2])


def test_ratio_before_any_denominator():
    """Of units with denominators 0 the mean is not known, and counts as 0."""
    test = BestArmTest(2, ratio=True)
    test.observe([0, 1], [3.0, 4.0], denominators=[0.0, 0.0])
    assert_array_equal(test.means_, [0.0, 0.0])
    test.observe([0, 1], [3.0, 4.0], denominators=[2.0, 1.0])
    assert_allclose(test.means_, [3.0, 8.0])


def test_ratio_one_at_a_time():
    rng = np.random.default_rng(0)
    arms, y, z = np.tile([0, 1], 20), rng.random(40), 1.0 + rng.random(40)
    single, whole = BestArmTest(2, ratio=True), BestArmTest(2, ratio=True)
    for arm, a, b in zip(arms, y, z, strict=True):
        single.observe([arm], [a], denominators=[b])
    whole.observe(arms, y, denominators=z)
    for arm in (0, 1):
        expected = y[arms == arm].sum() / z[arms == arm].sum()
        assert_allclose([single.means_[arm], whole.means_[arm]], expected)
    asked = BestArmTest(2, ratio=True)
    arms = asked.ask(6)
    asked.tell(arms, y[:6], denominators=z[:6])
    for arm in (0, 1):
        expected = y[:6][arms == arm].sum() / z[:6][arms == arm].sum()
        assert_allclose(asked.means_[arm], expected)


def test_quadrature_of_equal_points():
    points, weights = gauss_quadrature(np.full(6, 3.0), np.arange(6.0))
    assert_array_equal(points, [3.0])
    assert_array_equal(weights, [15.0])


def test_quadrature_of_few_different_points():
    given, shares = np.array([1.0, 1.0, 2.0, 5.0, 5.0]), np.arange(1.0, 6.0)
    points, weights = gauss_quadrature(given, shares)
    for power in range(8):
        assert_allclose(weights @ points**power, shares @ given**power, rtol=1e-12)


def test_history_without_rejections():
    procedure = LORDPlusPlus(0.1, gamma=[0.5, 0.3, 0.1])
    levels = [procedure.next_level_]
    for _ in range(2):
        procedure.test(0.9)
        levels.append(procedure.next_level_)
    # Half of alpha is the starting wealth, spent by gamma.
    assert_allclose(levels, 0.05 * np.array([0.5, 0.3, 0.1]))
    assert ExactHistory().sum(3, procedure._gamma_) == 0.0


def test_estimate_with_memory():
    """A share of levels and of rejections is remembered at each test."""
    memory, spent, found = 0.9, 0.0, 0.0
    procedure = LORDPlusPlus(0.1, memory=memory)
    for p in (1e-9, 0.5, 1e-9, 0.7, 0.9):
        level = procedure.next_level_
        rejected = procedure.test(p)
        spent = memory * spent + level
        found = memory * found + rejected
        assert_allclose(procedure.fdp_estimate_, spent / max(found, 1.0))


class TestReports:
    def test_none_of_the_experiments(self):
        report = MABFDR(alpha=0.1, max_pulls=100).report()
        assert report.rows == []
        assert str(report).startswith(
            "0 discoveries in 0 experiments\n  procedure: ADDIS"
        )
        assert "adopted" not in str(report)

    def test_control_is_best(self):
        test = BestArmTest(["old", "new"], evidence="lil", sigma=1.0, max_pulls=500)
        test.observe(["old", "new"] * 200, [5.0, 0.0] * 200)
        assert test.is_certified_
        assert test.report().title == "old is the best arm: keep the control"

    def test_ended_without_a_decision(self):
        test = BestArmTest(2, max_pulls=6, sigma=1.0)
        test.observe([0, 1] * 3, [0.0, 0.1] * 3)
        report = test.report()
        assert test.done_
        assert report.title == "the test has ended without a decision"
        assert "expected further rewards" not in report.summary

    def test_another_arm_than_the_best_one(self):
        """What looked better once may be adopted, though another looks best now."""
        names = ["old", "first", "second"]
        test = BestArmTest(names, sigma=1.0, delta=1e-6)
        test.observe(["old", "first"] * 10, [0.0, 2.0] * 10)
        test.observe(["second"], [3.0])
        p_value = test.p_values_[1]
        assert 1e-6 < p_value < 0.05
        assert test.recommendation_ == "second"
        report = test.report(level=0.05)
        assert report.title == "first may be adopted"
        assert report.summary["adopted"] == "first"
        assert test.report(level=1e-6).title == "not decided yet"

    def test_further_rewards_of_arms_that_are_not_better(self):
        test = BestArmTest(2, sigma=1.0)
        test.observe([0, 1], [1.0, 0.0])
        assert test.report().summary["expected further rewards"] is None
        # Nor of those that were never tried.
        test = BestArmTest(2, sigma=1.0, epsilon=5.0)
        test.observe([0, 1], [0.0, 1.0])
        assert test.report().summary["expected further rewards"] is None

    @pytest.mark.parametrize("options", [{"sigma": 2.0}, {"rewards": "binary"}, {}])
    def test_further_rewards(self, options):
        """As many as a test of that lift and these variances takes, less those now."""
        test = BestArmTest(2, **options)
        control, new = np.arange(40) % 2.0, (np.arange(40) % 4 > 0) * 1.0
        if not options:
            # Those of two values must be told to be "binary".
            control[0], new[0] = -1.0, -1.0
        test.observe([0, 1] * 40, np.column_stack([control, new]).ravel())
        variance = {
            "sigma": lambda v: 4.0,
            "rewards": lambda v: v.mean() * (1.0 - v.mean()),
        }.get(next(iter(options), None), lambda v: v.var(ddof=1))
        lift = new.mean() - control.mean()
        sigma = np.sqrt((variance(control) + variance(new)) / 2.0)
        each = planned_pulls(lift, rewards="normal", sigma=sigma)
        more = test.report().summary["expected further rewards"]
        # Of two arms, each of them rounded up.
        assert 2 * each - 80 - 2 <= more <= 2 * each - 80


@pytest.mark.usefixtures("pictures")
class TestDisplays:
    def test_logs_that_cannot_be(self):
        with pytest.raises(ValueError, match="arms and rewards must be at least one"):
            BestArmDisplay.from_log([], [], n_arms=2)
        with pytest.raises(ValueError, match="n_arms must be given, or test"):
            BestArmDisplay.from_log([0, 1], [0.0, 1.0])
        for options in ({"ratio": True}, {"covariate_mean": 0.0}):
            test = BestArmTest(2, **options)
            with pytest.raises(ValueError, match="must be without covariates and rat"):
                BestArmDisplay.from_log([0, 1], [0.0, 1.0], test=test)

    def test_log_of_a_test(self):
        test = BestArmTest(["old", "new"], sigma=1.0, delta=0.1)
        arms, rewards = ["old", "new"] * 30, [0.0, 3.0] * 30
        display = BestArmDisplay.from_log(arms, rewards, test=test)
        assert test.n_pulls_ == 0
        assert display.level == 0.1
        assert_allclose(display.means[-1], [0.0, 3.0])
        # The first time at which the arm's p-value is at most the level.
        one = BestArmTest(["old", "new"], sigma=1.0, delta=0.1)
        expected = 0
        for time in display.times:
            one.observe(arms[one.n_pulls_ : time], rewards[one.n_pulls_ : time])
            if one.p_values_[1] <= 0.1:
                expected = time
                break
        assert expected > 2
        assert display.adopted_at.tolist() == [0, expected]
        labels = display.ax_.get_legend_handles_labels()[1]
        assert "new may be adopted" in labels

    def test_bounds_of_the_first_version(self):
        display = BestArmDisplay.from_log(
            [0, 1] * 20, [0.0, 1.0] * 20, n_arms=2, evidence="lil", sigma=1.0
        )
        test = BestArmTest(2, evidence="lil", sigma=1.0, delta=0.05, max_pulls=42)
        test.observe([0, 1] * 20, [0.0, 1.0] * 20)
        low, high = test.confidence_bounds()
        assert not display.lifts
        assert display.adopted_at is None
        assert_allclose(display.lower[-1], low)
        assert_allclose(display.upper[-1], high)
        assert_allclose(display.means[-1], [0.0, 1.0])

    def test_arms_that_were_not_tried(self):
        """Without bounds the axis is left as it is."""
        display = BestArmDisplay.from_log([1], [2.0], n_arms=2, sigma=1.0)
        assert np.isnan(display.lower[:, 1]).all()
        assert display.ax_.get_ylim()[0] < display.ax_.get_ylim()[1]

    def test_e_values(self):
        values = np.array([1e4, 0.5, 20.0])
        display = OnlineFDRDisplay.from_procedure(ELOND(0.1), values)
        assert_allclose(display.p_values, [1e-4, 1.0, 0.05])
        assert_array_equal(display.rejected, ELOND(0.1).fit(values).rejected_)

    def test_study_without_wealth(self):
        study = MABFDR(LORD(0.1), sigma=1.0, max_pulls=500, random_state=0)
        study.run([(2, lambda arm, size, rng: 3.0 * arm + rng.normal(size=size))] * 2)
        known = OnlineFDRDisplay.from_study(study, plot=False).wealth
        state = study.to_dict()
        for entry in state["history"]:
            del entry["wealth"]
        old = MABFDR.from_dict(state)
        display = OnlineFDRDisplay.from_study(old)
        assert len(known) == 2
        assert_allclose(display.wealth, known)

    def test_without_wealth(self):
        display = OnlineFDRDisplay(
            levels=np.array([0.1, 0.2]), p_values=np.array([0.05, 0.5]),
            rejected=np.array([True, False]),
        )  # fmt: skip
        figure = display.plot().ax_.figure
        assert len(figure.axes) == 1
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "wealth" not in labels
        assert "p-value, rejected" in labels


@pytest.mark.parametrize("base_rate", [0.0, 0.1, 0.9])
def test_rewards_of_two_values(base_rate):
    """As many as of normal rewards of the same variances."""
    better = base_rate + 0.1
    variances = base_rate * (1.0 - base_rate) + better * (1.0 - better)
    expected = planned_pulls(0.1, rewards="normal", sigma=np.sqrt(variances / 2.0))
    found = planned_pulls(0.1, rewards="binary", base_rate=base_rate)
    # Rounded up from about the same number.
    assert abs(found - expected) <= 1


def test_further_rewards_without_any_of_the_control():
    test = BestArmTest(2, sigma=1.0)
    test.observe([1], [1.0])
    report = test.report()
    assert report.summary["expected further rewards"] is None
    assert report.summary["rewards so far"] == 1
