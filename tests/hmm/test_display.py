"""Pictures show the model's numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hmm.toy import rows, separated, symmetric_data
from skbounds.hmm import BaumWelchHMM, EMConvergenceDisplay, HMMDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    """No figure stays open."""
    yield
    pyplot.close("all")


def test_posteriors_along_sequences():
    """The probabilities that the model gives, and where sequences start."""
    sequences, states, _ = separated(0, n=60)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(3, random_state=0).fit(X, lengths=lengths)
    display = HMMDisplay.from_estimator(
        model, X, lengths=lengths, states=np.concatenate(states)
    )
    expected = model.predict_proba(X, lengths=lengths)
    assert_array_equal(display.probabilities, expected)
    assert_array_equal(display.starts, [0, 20, 40, 60])
    assert display.ax_.figure is display.figure_
    assert display.ax_.get_legend() is not None
    areas = display.ax_.collections
    assert len(areas) >= 3
    top = max(path.vertices[:, 1].max() for path in areas[2].get_paths())
    assert_allclose(top, 1.0)
    _, ax = pyplot.subplots()
    assert display.plot(ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="states"):
        HMMDisplay.from_estimator(model, X, lengths=lengths, states=[0, 1])


def test_no_figure_without_wish():
    """`plot=False` computes only."""
    X, _ = symmetric_data(0, 40, [2.0], 0.2)
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
    display = HMMDisplay.from_estimator(model, X, plot=False)
    assert not pyplot.get_fignums()
    assert_array_equal(display.probabilities, model.predict_proba(X))


def test_convergence():
    """Optimisation errors shrink to nothing, statistical errors to a floor."""
    mu = [1.2, 0.6]
    X, _ = symmetric_data(1, 800, mu, 0.2)
    model = BaumWelchHMM(structure="symmetric", sigma=1.0)
    display = EMConvergenceDisplay.from_estimator(
        model,
        X,
        true_means=[[-1.2, -0.6], [1.2, 0.6]],
        n_starts=3,
        n_iter=40,
        random_state=0,
    )
    assert len(display.optimisation) == len(display.statistical) == 3
    end = BaumWelchHMM(
        structure="symmetric", sigma=1.0, means_init=mu, tol=1e-12, max_iter=1000
    ).fit(X)
    floor = np.linalg.norm(end.means_[1] - mu)
    for errors, distances in zip(
        display.optimisation, display.statistical, strict=True
    ):
        assert 1e-3 < errors[0] < 0.6 * np.linalg.norm(mu)
        assert errors[30] < 1e-4 * errors[0]
        rate = (errors[12] / errors[4]) ** (1 / 8)
        assert_allclose(rate, end.contraction_rate_, atol=0.05)
        # Of both means together, which is the root of two times the one of mu.
        assert_allclose(distances[-1], np.sqrt(2.0) * floor, rtol=1e-3)
    assert display.ax_.get_yscale() == "log"
    assert len(display.ax_.lines) == 6
