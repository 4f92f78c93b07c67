"""Branches that no other test takes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.hmm import (
    BaumWelchHMM,
    EMConvergenceDisplay,
    statistical_radius,
    symmetric_em_operator,
)
from skbounds.hmm._em import _one_window, filtering
from skbounds.hmm._emissions._student import LARGEST_DF, LEAST_DF, degrees_of_freedom
from skbounds.hmm._mixing import contraction_rate
from skbounds.hmm._transitions import free_step, objective, stationary_step


def two_states(n=80):
    rng = np.random.default_rng(0)
    spins = np.repeat([-1.0, 1.0], n // 4)
    spins = np.r_[spins, spins]
    return spins[:, None] * 2.0 + rng.normal(size=(n, 1))


def test_rate_without_changes():
    assert np.isnan(contraction_rate([]))


@pytest.mark.parametrize("mean", [[[1.0, 2.0]], [np.nan], [1.0, np.inf]])
def test_means_that_are_no_vectors(mean):
    with pytest.raises(ValueError, match="mean must be a finite vector; got"):
        symmetric_em_operator(mean, 0.8, np.ones((4, 2)), sigma=1.0)


def test_degrees_of_freedom_at_the_ends():
    assert degrees_of_freedom(1.0) == LARGEST_DF
    assert degrees_of_freedom(-1e9) == LEAST_DF
    assert LEAST_DF < degrees_of_freedom(-1.1) < LARGEST_DF


def test_objective_without_starts():
    transition, pairs = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[3.0, 1], [2, 4]])
    expected = (pairs * np.log(transition)).sum()
    assert_allclose(objective(transition, pairs, None), expected)
    # With the law that the chain is at, of which the starts are taken.
    first = np.array([1.0, 2.0])
    law = np.array([4.0, 3.0]) / 7.0
    found = objective(transition, pairs, first)
    assert_allclose(found, expected + first @ np.log(law))


def test_step_where_starts_are_impossible():
    """No state is left, but by pairs: the step is that of the pairs alone."""
    pairs, first = np.array([[0.0, 2.0], [0.0, 3.0]]), np.array([1.0, 0.0])
    before = np.array([[0.0, 1.0], [0.0, 1.0]])
    found = stationary_step(pairs, first, before)
    assert_array_equal(found, free_step(pairs, before))
    assert_array_equal(found, before)


class TestRowsThatAreImpossible:
    """Where densities in double precision are 0, logarithms decide."""

    chain = np.array([0.5, 0.5]), np.eye(2)

    def test_filter(self):
        log_density = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
        with pytest.raises(
            ValueError, match="impossible under the model's transitions"
        ):
            filtering(log_density, np.array([0, 2]), *self.chain)

    def test_filter_of_states_far_apart(self):
        """States that underflow are followed by logarithms."""
        log_density = np.array([[0.0, -2000.0], [-4000.0, 0.0]])
        found = filtering(log_density, np.array([0, 2]), *self.chain)
        # The first state has -4000, the second one -2000.
        assert_allclose(found, [[1.0, 0.0], [0.0, 1.0]], atol=1e-300)

    def test_window(self):
        log_density = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
        with np.errstate(divide="ignore"):
            start, transition = (np.log(part) for part in self.chain)
        with pytest.raises(ValueError, match="rows of a window are impossible"):
            _one_window(log_density, 1, start, transition)

    def test_window_of_one_row(self):
        """There is no pair, and the law is that of the row."""
        log_density = np.log([[0.2, 0.6]])
        start, transition = np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5))
        law, pair = _one_window(log_density, 0, start, transition)
        assert_allclose(law, [0.25, 0.75])
        assert pair == 0.0


def test_sequences_that_cannot_be_decoded():
    """A chain that stays where it is meets a value that its state never gives."""
    X = np.array([[0], [1], [0], [1], [1], [0], [1], [0]])
    model = BaumWelchHMM(2, emission="categorical", max_iter=2, tol=0.0, random_state=0)
    with pytest.warns(UserWarning):
        model.fit(X)
    model.transmat_, model.startprob_ = np.eye(2), np.array([1.0, 0.0])
    for table in model.emission_proba_:
        table[:] = np.eye(2)
    log_prob, states = model.decode(np.zeros((4, 1), dtype=int))
    assert_allclose(log_prob, 0.0, atol=1e-12)
    assert_array_equal(states, np.zeros(4))
    with pytest.raises(
        ValueError, match="no sequence of states has a positive density"
    ):
        model.decode(X)


def test_symmetric_model():
    X = two_states()
    options = {"structure": "symmetric", "sigma": 1.0, "mixing_bound": 0.95}
    model = BaumWelchHMM(**options, random_state=0).fit(X)
    errors = model.standard_errors_["means"]
    assert_allclose(errors[0], errors[1])
    assert_allclose(statistical_radius(model), np.linalg.norm(errors[1]))


def test_radius_of_the_general_model():
    model = BaumWelchHMM(n_components=2, random_state=0).fit(two_states())
    errors = model.standard_errors_["means"]
    assert errors.shape == (2, 1)
    assert_allclose(statistical_radius(model), np.sqrt((errors**2).sum()))


@pytest.mark.usefixtures("pictures")
class TestDisplays:
    def test_means_of_categories(self):
        model = BaumWelchHMM(emission="categorical")
        with pytest.raises(ValueError, match="emission='categorical' has not"):
            EMConvergenceDisplay.from_estimator(model, np.zeros((4, 1), dtype=int))

    @pytest.mark.parametrize("structure", ["symmetric", None])
    def test_about_the_fitted_means(self, structure):
        """Without true means there are distances to the end of each path only."""
        import matplotlib.pyplot as plt

        options = {}
        if structure:
            options = {"structure": structure, "sigma": 1.0, "mixing_bound": 0.99}
        model = BaumWelchHMM(2, random_state=0, **options)
        _, ax = plt.subplots()
        display = EMConvergenceDisplay.from_estimator(
            model, two_states(), n_starts=2, n_iter=4, random_state=0, ax=ax
        )
        assert display.ax_ is ax
        assert display.statistical is None
        assert len(display.optimisation) == 2
        for errors in display.optimisation:
            assert len(errors) == 5
            assert errors[-1] < errors[0]
        labels = ax.get_legend_handles_labels()[1]
        assert not any("true" in label for label in labels)


class TestStandardErrors:
    def test_other_kinds_of_the_symmetric_model(self):
        options = {"structure": "symmetric", "sigma": 1.0, "mixing_bound": 0.99}
        model = BaumWelchHMM(**options).fit(two_states())
        with pytest.raises(ValueError, match="has kind='observed' only"):
            model.standard_errors("sandwich")

    def test_what_is_fixed(self):
        """It has none; of the rest states that are seen would tell more (Louis)."""
        X = two_states()
        known = {
            "means_init": [[-2.0], [2.0]],
            "transmat_init": [[0.95, 0.05], [0.05, 0.95]],
        }
        fixed = BaumWelchHMM(**known, fixed=("means", "transmat"), tol=1e-10)
        fixed.fit(X)
        errors = fixed.standard_errors_
        assert np.isnan(errors["means"]).all()
        assert np.isnan(errors["transmat"]).all()
        found = errors["covariances"].ravel()
        size = fixed.predict_proba(X).sum(axis=0)
        seen = fixed.covariances_.ravel() * np.sqrt(2.0 / size)
        assert (found >= seen).all()
        # Of states that are four deviations apart not much more.
        assert (found <= 1.5 * seen).all()

    def test_nothing_is_free(self):
        known = {
            "means_init": [[-2.0], [2.0]],
            "covariances_init": np.ones((2, 1, 1)),
            "transmat_init": [[0.95, 0.05], [0.05, 0.95]],
        }
        fixed = ("means", "covariances", "transmat", "startprob")
        model = BaumWelchHMM(**known, startprob_init=[0.5, 0.5], fixed=fixed)
        errors = model.fit(two_states()).standard_errors_
        assert errors
        for name, values in errors.items():
            assert np.isnan(values).all(), name


def test_gain_that_is_not_known():
    """One step tells nothing of the rate of the others."""
    model = BaumWelchHMM(2, max_iter=1, tol=0.0, random_state=0)
    with pytest.warns(UserWarning):
        model.fit(two_states())
    assert not np.isfinite(model.remaining_gain_)
    assert "left to gain is not known" in model._knowledge()
