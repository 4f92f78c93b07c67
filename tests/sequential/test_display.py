"""Pictures show the numbers of experiments and procedures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.sequential import (
    LORD,
    MABFDR,
    BestArmDisplay,
    BestArmTest,
    LORDPlusPlus,
    OnlineFDRDisplay,
)

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    """No figure stays open."""
    yield
    pyplot.close("all")


def test_an_experiment_over_time():
    """Means are those so far, and bounds are the test's at the end."""
    rng = np.random.default_rng(0)
    arms = np.tile([0, 1, 2], 50)
    rewards = arms + rng.normal(size=150)
    display = BestArmDisplay.from_log(
        arms, rewards, n_arms=3, evidence="lil", sigma=1.0
    )
    assert_array_equal(display.times, np.arange(1, 151))
    for time in (3, 40, 150):
        expected = [rewards[:time][arms[:time] == i].mean() for i in range(3)]
        assert_allclose(display.means[time - 1], expected)
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=1000).observe(
        arms, rewards
    )
    assert_allclose([display.lower[-1], display.upper[-1]], test.confidence_bounds())
    assert (np.diff(display.log_p_values) <= 0.0).all()
    # Arms without rewards have no line.
    assert np.isnan(display.lower[0, 1:]).all()
    lines = [line.get_label() for line in display.ax_.get_lines()]
    assert lines == ["control", "arm 1", "arm 2"]
    _, ax = pyplot.subplots()
    assert display.plot(ax=ax).ax_ is ax


def test_lifts_that_nothing_is_adopted_for():
    """What is left out is not drawn."""
    zeros, ones = np.zeros((2, 2)), np.ones((2, 2))
    display = BestArmDisplay(
        times=np.array([1, 2]), means=zeros, lower=-ones, upper=ones,
        log_p_values=np.zeros(2), lifts=True,
    )  # fmt: skip
    labels = [line.get_label() for line in display.plot().ax_.get_lines()]
    assert "arm 1" in labels and "arm 1 may be adopted" not in labels


@pytest.mark.parametrize("rule", [LORD, LORDPlusPlus])
def test_a_procedure(rule):
    """Levels, decisions and wealth of a batch; the procedure itself stays untouched."""
    p = np.random.default_rng(0).uniform(size=60) ** 4
    procedure = rule(0.1)
    procedure.test(0.0)
    display = OnlineFDRDisplay.from_procedure(procedure, p)
    assert procedure.n_tests_ == 1
    assert_array_equal(display.rejected, p <= display.levels)
    assert 0 < display.rejected.sum() < 60
    replay = rule(0.1)
    for k in range(60):
        assert display.levels[k] == replay.next_level_
        replay.test(p[k])
        assert display.wealth[k] == replay.wealth_
    assert len(display.ax_.get_lines()) == 3
    assert len(display.figure_.axes) == 2


def test_a_study():
    """What the history says, and the wealth after each experiment."""
    study = MABFDR(LORD(0.1), evidence="lil", sigma=1.0, max_pulls=200, random_state=0)
    wealth = []
    for shift in (3.0, 0.0, 3.0, -1.0):
        test = study.begin(3)
        test.run(lambda arm, size, rng, s=shift: s * arm + rng.normal(size=size))
        study.finish(test)
        wealth.append(study.wealth_)
    display = OnlineFDRDisplay.from_study(study, plot=False)
    assert not pyplot.get_fignums()
    assert_array_equal(display.rejected, [True, False, True, False])
    assert_array_equal(display.wealth, wealth)
    assert_array_equal(display.levels, [entry["level"] for entry in study.history_])
    assert display.plot().figure_.axes
