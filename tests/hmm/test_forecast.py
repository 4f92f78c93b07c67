"""What comes next: forecasts against mixtures of the states' laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as plain
from reference import hmm_more as ref
from scipy.stats import norm

from hmm.laws import (
    drawn,
    either,
    every_emission,
    every_kind,
    law_at,
    model_of,
    rows_for,
    together,
    told,
    width,
)
from hmm.toy import random_sequences, symmetric_at
from skbounds.hmm import BaumWelchHMM, HMMForecast

with_moments = pytest.mark.parametrize("emission", ["gaussian", "student", "poisson"])
LEVELS = [0.001, 0.05, 0.3, 0.5, 0.77, 0.99, 0.9999]


def steady(emission, covariance_type="full", seed=0, s=3):
    """A random model whose laws have two moments."""
    theta = model_of(emission, covariance_type, seed, s)
    if emission == "student":
        theta["df"] = np.array([2.5, 9.0, 4.0])[:s]
    return theta


# --------------------------------------------------------------------------------- laws


@either
@every_kind
def test_laws_and_moments(emission, covariance_type, missing):
    """Laws of states, means, covariances and categories of several steps."""
    theta = steady(emission, covariance_type, 3)
    x = rows_for(emission, 3, [6], missing)[0]
    ahead = law_at(theta, emission, covariance_type).forecast(
        told(x, emission), steps=4
    )
    assert isinstance(ahead, HMMForecast)
    expected = ref.forecast(x, theta, emission, 4)
    assert ahead.state_proba.shape == expected[0].shape
    assert_allclose(ahead.state_proba, expected[0], rtol=1e-11)
    assert_allclose(ahead.filtered, ref.filtered(x, theta, emission)[-1], rtol=1e-11)
    assert np.isnan(ahead.log_density)
    if emission == "categorical":
        for found, law in zip(ahead.category_proba, expected[1], strict=True):
            assert_allclose(found, law, rtol=1e-11)
    else:
        assert ahead.mean.shape == expected[1].shape
        assert ahead.covariance.shape == expected[2].shape
        assert_allclose(ahead.mean, expected[1], rtol=1e-10)
        assert_allclose(ahead.covariance, expected[2], rtol=1e-10, atol=1e-13)


@every_emission
def test_one_step_by_default(emission):
    """The default is the next row."""
    theta = steady(emission)
    X = told(rows_for(emission, 3, [6])[0], emission)
    model = law_at(theta, emission)
    one, three = model.forecast(X), model.forecast(X, 3)
    assert one.state_proba.shape == (1, 3)
    assert_array_equal(one.state_proba, three.state_proba[:1])


@every_emission
def test_last_filtered_law(emission):
    """That of `filter_proba`, sequence by sequence."""
    theta = model_of(emission, s=3)
    sequences = rows_for(emission, 5, [5, 1, 4], missing=True)
    X, lengths = together(sequences, emission)
    model = law_at(theta, emission)
    F = model.filter_proba(X, lengths=lengths)
    last = np.cumsum(lengths) - 1
    ahead = model.forecast(X, lengths=lengths)
    assert_array_equal(ahead.filtered, F[last])
    laws = np.array([ref.filtered(x, theta, emission)[-1] for x in sequences])
    assert_allclose(ahead.filtered, laws, rtol=1e-11)


def test_symmetric_model():
    """It is a general one."""
    mu, zeta, sigma = np.array([0.8, -0.5]), 0.3, 1.3
    theta = plain.symmetric_theta(mu, zeta, sigma)
    x = random_sequences(1, [6], 2)[0]
    x[2, 0] = np.nan
    ahead = symmetric_at(mu, zeta, sigma).forecast(x, steps=3)
    laws, means, covariances = ref.forecast(x, theta, "gaussian", 3)
    assert_allclose(ahead.state_proba, laws, rtol=1e-10)
    assert_allclose(ahead.mean, means, rtol=1e-10)
    assert_allclose(ahead.covariance, covariances, rtol=1e-10, atol=1e-13)
    value = ref.forecast_cdf(x, theta, "gaussian", 2, 1, ahead.quantile(0.2)[1, 1])
    assert_allclose(value, 0.2, rtol=1e-10)


def test_far_ahead():
    """The states' law goes to the stationary one."""
    theta = steady("gaussian")
    x = rows_for("gaussian", 3, [6])[0]
    ahead = law_at(theta, "gaussian").forecast(x, steps=300)
    law = plain.stationary(theta["transmat"])
    assert_allclose(ahead.state_proba[-1], law, rtol=1e-9)
    assert_allclose(ahead.mean[-1], law @ theta["means"], rtol=1e-9)
    assert np.abs(ahead.state_proba[0] / law - 1.0).max() > 0.05


# ---------------------------------------------------------------------------- quantiles


@either
@pytest.mark.parametrize("emission", ["gaussian", "student"])
def test_quantiles(emission, missing):
    """The distribution function there is the level."""
    theta = steady(emission)
    x = rows_for(emission, 4, [6], missing)[0]
    found = law_at(theta, emission).forecast(x, 3).quantile(LEVELS)
    assert found.shape == (3, 3, len(LEVELS))
    for h in range(3):
        for k in range(3):
            for i, level in enumerate(LEVELS):
                value = found[h, k, i]
                cdf = ref.forecast_cdf(x, theta, emission, h + 1, k, value)
                assert_allclose(cdf, level, rtol=1e-10)


@either
def test_quantiles_of_counts(missing):
    """The least count whose distribution function reaches the level."""
    theta = steady("poisson")
    theta["means"][0, 1] = 0.0
    theta["means"][:, 2] = [0.0, 0.001, 0.002]
    x = rows_for("poisson", 4, [6], missing)[0]
    x[:, 1:] = np.minimum(x[:, 1:], 0.0)
    found = law_at(theta, "poisson").forecast(x, 3).quantile(LEVELS)
    assert found.shape == (3, 3, len(LEVELS))
    assert_array_equal(found, np.round(found))
    assert found[..., 2].max() > 0.0
    for h in range(3):
        for k in range(3):
            for i, level in enumerate(LEVELS):
                value = found[h, k, i]
                assert value >= 0.0
                enough = ref.forecast_cdf(x, theta, "poisson", h + 1, k, value)
                less = ref.forecast_cdf(x, theta, "poisson", h + 1, k, value - 1)
                assert enough >= level > less


@with_moments
def test_shapes_of_quantiles(emission):
    """A number, a list of numbers, and intervals; several sequences come first."""
    theta = steady(emission)
    sequences = rows_for(emission, 4, [6, 2, 5, 1])
    X, lengths = together(sequences, emission)
    model = law_at(theta, emission)
    one = model.forecast(X[:6], 2)
    assert one.quantile(0.3).shape == (2, 3)
    assert one.quantile([0.3]).shape == (2, 3, 1)
    assert_array_equal(one.quantile([0.3])[..., 0], one.quantile(0.3))
    two = one.quantile(np.array([0.6, 0.3]))
    assert_allclose(two[..., 1], one.quantile(0.3), rtol=1e-14)
    assert (two[..., 0] >= two[..., 1]).all()
    ahead = model.forecast(X, 2, lengths=lengths)
    assert ahead.quantile(0.3).shape == (4, 2, 3)
    assert ahead.interval(0.5).shape == (4, 2, 3, 2)
    assert_array_equal(ahead.interval(0.5), ahead.quantile([0.25, 0.75]))
    assert_array_equal(ahead.interval(), ahead.interval(0.9))
    assert_allclose(one.interval(0.9)[..., 0], one.quantile(0.05), rtol=1e-12)
    for k, x in enumerate(sequences):
        own = model.forecast(x, 2)
        assert_allclose(ahead.quantile(0.3)[k], own.quantile(0.3), rtol=1e-12)


def test_quantiles_of_one_state():
    """Those of the law itself."""
    theta = model_of("gaussian", s=1)
    x = rows_for("gaussian", 4, [3])[0]
    found = law_at(theta, "gaussian").forecast(x, 2).quantile([0.5, 0.975])
    deviation = np.sqrt(np.diagonal(theta["covariances"][0]))
    for h in range(2):
        assert_allclose(found[h, :, 0], theta["means"][0], rtol=1e-12)
        expected = theta["means"][0] + 1.959963984540054 * deviation
        assert_allclose(found[h, :, 1], expected, rtol=1e-12)


def test_states_far_apart():
    """Quantiles between the states, in a gap without any probability, are resolved."""
    theta = model_of("gaussian", s=2)
    theta["means"] = np.array([[-1e6, 0, 0], [1e6, 0, 0]])
    theta["covariances"] = np.array([np.eye(3)] * 2)
    model = law_at(theta, "gaussian")
    ahead = model.forecast([[-1e6, 0.3, 0.1]])
    p = theta["transmat"][0, 0]
    for level in (0.4 * p, 0.99 * p, p + 0.3 * (1 - p)):
        value = ahead.quantile(level)[0, 0]
        cdf = ref.forecast_cdf(
            np.array([[-1e6, 0.3, 0.1]]), theta, "gaussian", 1, 0, value
        )
        # A unit in the last place of the value is 1e-10.
        assert_allclose(cdf, level, atol=1e-10)


# ------------------------------------------------------------------------- many and new


@either
@every_kind
def test_several_sequences(emission, covariance_type, missing):
    """One forecast for each, in the order of their first rows."""
    theta = steady(emission, covariance_type, 2)
    sequences = rows_for(emission, 6, [5, 1, 4], missing)
    X, lengths = together(sequences, emission)
    model = law_at(theta, emission, covariance_type)
    mixed = np.array([1, 0, 1, 1, 2, 2, 1, 2, 1, 2])
    order = np.argsort(mixed, kind="stable")
    blocks = [order[mixed[order] == k] for k in (1, 0, 2)]
    scattered = np.empty_like(X)
    scattered[np.concatenate(blocks)] = X
    for ahead in (
        model.forecast(X, 3, lengths=lengths),
        model.forecast(X, 3, sequence_id=np.repeat(["b", "c", "a"], lengths)),
        model.forecast(scattered, 3, sequence_id=mixed),
    ):
        for k, x in enumerate(sequences):
            expected = ref.forecast(x, theta, emission, 3)
            assert_allclose(ahead.state_proba[k], expected[0], rtol=1e-11)
            if emission == "categorical":
                for found, law in zip(ahead.category_proba, expected[1], strict=True):
                    assert_allclose(found[k], law, rtol=1e-11)
            else:
                assert_allclose(ahead.mean[k], expected[1], rtol=1e-10)
                assert_allclose(
                    ahead.covariance[k], expected[2], rtol=1e-10, atol=1e-13
                )


def test_one_sequence_with_lengths():
    """Told that there is one sequence, there is an axis for it."""
    theta = steady("gaussian")
    x = rows_for("gaussian", 4, [6])[0]
    model = law_at(theta, "gaussian")
    ahead = model.forecast(x, 2, lengths=[6])
    assert ahead.state_proba.shape == (1, 2, 3)
    assert ahead.covariance.shape == (1, 2, 3, 3)
    assert_array_equal(ahead.mean[0], model.forecast(x, 2).mean)
    assert ahead.update(x[:1]).log_density.shape == (1,)


@every_kind
def test_updates(emission, covariance_type):
    """Row by row is as good as all rows at once, whatever is missing."""
    theta = steady(emission, covariance_type, 2)
    x = rows_for(emission, 8, [12], missing=True)[0]
    X = told(x, emission)
    assert np.isnan(X[2:]).all(axis=1).any()
    assert (np.isnan(X[2:]).any(axis=1) & ~np.isnan(X[2:]).all(axis=1)).any()
    model = law_at(theta, emission, covariance_type)
    steps = model.score_samples(X)
    ahead = model.forecast(X[:2], 2)
    for i in range(2, len(X)):
        before = ahead.filtered.copy()
        new = ahead.update(X[i])
        assert_array_equal(ahead.filtered, before)
        ahead = new
        assert ahead.steps == 2
        expected = ref.state_laws(x[: i + 1], theta, emission, 2)
        assert_allclose(ahead.state_proba, expected, rtol=1e-10)
        assert isinstance(ahead.log_density, float)
        assert_allclose(ahead.log_density, steps[i], rtol=1e-10, atol=1e-12)
        B = ref.log_outputs(x[: i + 1], theta, emission)
        totals = [
            plain.smooth(B[:n], theta["startprob"], theta["transmat"])["loglik"]
            for n in (i, i + 1)
        ]
        gain = totals[1] - totals[0]
        assert_allclose(ahead.log_density, gain, rtol=1e-9, atol=1e-10)
    if emission != "categorical":
        whole = model.forecast(X, 2)
        assert_allclose(ahead.mean, whole.mean, rtol=1e-10)
        assert_allclose(ahead.quantile(0.1), whole.quantile(0.1), rtol=1e-10)


@every_emission
def test_updates_of_several_sequences(emission):
    """One row for each, or none where it is missing."""
    theta = steady(emission)
    sequences = rows_for(emission, 6, [5, 1, 4])
    X, lengths = together(sequences, emission)
    rows = rows_for(emission, 9, [3])[0]
    rows[1] = np.nan
    rows[2, 0] = np.nan
    model = law_at(theta, emission)
    ahead = model.forecast(X, 2, lengths=lengths).update(told(rows, emission))
    assert ahead.log_density.shape == (3,)
    for k, x in enumerate(sequences):
        longer = np.vstack([x, rows[k]])
        expected = ref.state_laws(longer, theta, emission, 2)
        assert_allclose(ahead.state_proba[k], expected, rtol=1e-10)
        value = model.score_samples(told(longer, emission))[-1]
        assert_allclose(ahead.log_density[k], value, rtol=1e-10, atol=1e-12)


def test_zeros_of_the_transition_matrix():
    """A chain that only moves on, and a state that was left for good."""
    theta = steady("gaussian")
    theta["transmat"] = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    theta["startprob"] = np.array([0.0, 1.0, 0.0])
    x = rows_for("gaussian", 4, [5])[0]
    ahead = law_at(theta, "gaussian").forecast(x[:4], 3)
    laws, means, covariances = ref.forecast(x[:4], theta, "gaussian", 3)
    assert_allclose(ahead.state_proba, laws, rtol=1e-11)
    assert_array_equal(ahead.state_proba[:, 0], 0.0)
    assert_allclose(ahead.mean, means, rtol=1e-10)
    assert_allclose(ahead.covariance, covariances, rtol=1e-10)
    expected = ref.state_laws(x, theta, "gaussian", 3)
    assert_allclose(ahead.update(x[4]).state_proba, expected, rtol=1e-11)


# -------------------------------------------------------------------------- heavy tails


def test_laws_without_variance():
    """With two degrees of freedom or fewer variances are infinite, means are not."""
    theta = model_of("student", s=2)
    theta["df"] = np.array([1.5, 9.0])
    x = rows_for("student", 4, [5])[0]
    ahead = law_at(theta, "student").forecast(x, 2)
    laws = ref.state_laws(x, theta, "student", 2)
    assert_allclose(ahead.mean, laws @ theta["means"], rtol=1e-11)
    variances = np.diagonal(ahead.covariance, axis1=1, axis2=2)
    assert_array_equal(variances, np.full((2, 3), np.inf))
    theta["df"] = np.array([2.0, 9.0])
    ahead = law_at(theta, "student").forecast(x, 2)
    variances = np.diagonal(ahead.covariance, axis1=1, axis2=2)
    assert_array_equal(variances, np.full((2, 3), np.inf))


def test_laws_without_mean():
    """With one degree of freedom or fewer there is no mean; quantiles there are."""
    for df in (1.0, 0.6):
        theta = model_of("student", s=2)
        theta["df"] = np.array([df, 9.0])
        x = rows_for("student", 4, [5])[0]
        ahead = law_at(theta, "student").forecast(x, 2)
        assert np.isnan(ahead.mean).all()
        variances = np.diagonal(ahead.covariance, axis1=1, axis2=2)
        assert not np.isfinite(variances).any()
        value = ahead.quantile(0.9)[1, 2]
        cdf = ref.forecast_cdf(x, theta, "student", 2, 2, value)
        assert_allclose(cdf, 0.9, rtol=1e-10)


@pytest.mark.parametrize("df", [1.5, 0.8])
def test_states_that_cannot_come(df):
    """Moments that a state lacks do not matter if it has no probability."""
    theta = model_of("student", s=2)
    theta["df"] = np.array([df, 9.0])
    theta["transmat"] = np.array([[0.5, 0.5], [0.0, 1.0]])
    theta["startprob"] = np.array([0.0, 1.0])
    x = rows_for("student", 4, [5])[0]
    ahead = law_at(theta, "student").forecast(x, 2)
    assert_array_equal(ahead.state_proba, [[0.0, 1.0]] * 2)
    assert_allclose(ahead.mean, [theta["means"][1]] * 2, rtol=1e-12)
    expected = 9 / 7 * theta["covariances"][1]
    assert_allclose(ahead.covariance, [expected] * 2, rtol=1e-12)


# ------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("steps", [0, -1, 1.5, 2.0, "2", True, None])
def test_wrong_number_of_steps(steps):
    """A positive integer."""
    theta = model_of("gaussian")
    x = rows_for("gaussian", 4, [5])[0]
    with pytest.raises(ValueError, match="steps must be a positive integer"):
        law_at(theta, "gaussian").forecast(x, steps)


@every_emission
def test_wrong_rows(emission):
    """The next row, one for each sequence, of finite numbers or nan."""
    theta = model_of(emission)
    X, lengths = together(rows_for(emission, 4, [5, 4]), emission)
    model = law_at(theta, emission)
    one, two = model.forecast(X), model.forecast(X, lengths=lengths)
    d = width(emission)
    infinite = X[0].copy()
    infinite[1] = np.inf
    for row in (X[:1], X[:2], X[0, :-1], np.append(X[0], 1.0), X[0, 0], infinite):
        with pytest.raises(ValueError, match=rf"next row.*shape \({d},\)"):
            one.update(row)
    for row in (X[0], X[:1], X[:3], X[:2, :-1]):
        with pytest.raises(ValueError, match=rf"next row.*shape \(2, {d}\)"):
            two.update(row)


def test_rows_of_another_kind():
    """New rows are checked as those of the fit are."""
    x = rows_for("poisson", 4, [5])[0]
    ahead = law_at(model_of("poisson"), "poisson").forecast(x)
    for bad in (-1.0, 0.5):
        with pytest.raises(ValueError, match=f"counts.*{bad:g}"):
            ahead.update([1.0, bad, 2.0])
    X = told(rows_for("categorical", 4, [5])[0], "categorical")
    ahead = law_at(model_of("categorical"), "categorical").forecast(X)
    with pytest.raises(ValueError, match=r"column 0 .*categories.*-2\.0"):
        ahead.update([-2.0, 0.5])


def test_impossible_rows():
    """Rows of density 0 are refused, and the forecast stays."""
    theta = model_of("categorical", s=2)
    theta["emission_proba"][0][:] = [[0.0, 0.5, 0.5], [0.0, 0.2, 0.8]]
    X = told(np.ones((3, 2)), "categorical")
    ahead = law_at(theta, "categorical").forecast(X)
    with pytest.raises(ValueError, match="impossible"):
        ahead.update(told(np.zeros((1, 2)), "categorical")[0])
    assert_array_equal(ahead.category_proba[0][:, 0], 0.0)
    x = rows_for("gaussian", 4, [5])[0]
    ahead = law_at(model_of("gaussian"), "gaussian").forecast(x)
    for far in (1e160, 1e300):
        with pytest.raises(ValueError, match=r"impossible|far"):
            ahead.update([0.0, far, 0.0])


@with_moments
@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 1.1, np.nan, [0.5, 1.0], [[0.5]]])
def test_wrong_levels(emission, q):
    """Levels are inside (0, 1)."""
    x = rows_for(emission, 4, [5])[0]
    ahead = law_at(model_of(emission), emission).forecast(x)
    with pytest.raises(ValueError, match="q must be in"):
        ahead.quantile(q)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 2.0, np.nan, [0.5, 0.9], "0.5"])
def test_wrong_interval(level):
    """One number inside (0, 1)."""
    x = rows_for("gaussian", 4, [5])[0]
    ahead = law_at(model_of("gaussian"), "gaussian").forecast(x)
    with pytest.raises(ValueError, match="level must be in"):
        ahead.interval(level)


def test_what_laws_do_not_have():
    """Categories have no moments, others no probabilities of categories."""
    X = told(rows_for("categorical", 4, [5])[0], "categorical")
    ahead = law_at(model_of("categorical"), "categorical").forecast(X)
    for name in ("mean", "covariance"):
        assert not hasattr(ahead, name)
    with pytest.raises(AttributeError, match="category_proba"):
        ahead.quantile(0.5)
    for emission in ("gaussian", "student", "poisson"):
        x = rows_for(emission, 4, [5])[0]
        ahead = law_at(model_of(emission), emission).forecast(x)
        assert not hasattr(ahead, "category_proba")


def test_unfitted():
    """A model without a fit has nothing to say."""
    with pytest.raises(ValueError, match="not fitted"):
        BaumWelchHMM().forecast(np.zeros((3, 2)))


def test_forecast_of_a_model_that_is_fitted_again():
    """A forecast keeps the parameters that it was made with."""
    theta = steady("gaussian")
    x = rows_for("gaussian", 4, [30])[0]
    model = law_at(theta, "gaussian")
    ahead = model.forecast(x, 2)
    before = ahead.mean.copy(), ahead.quantile(0.1).copy()
    model.set_params(max_iter=3, means_init=None, covariances_init=None)
    with pytest.warns(UserWarning):
        model.fit(5.0 + 2.0 * x)
    assert_array_equal(ahead.mean, before[0])
    assert_array_equal(ahead.quantile(0.1), before[1])
    assert np.abs(model.forecast(x, 2).mean - before[0]).max() > 0.1


# ----------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("emission", ["gaussian", "student"])
def test_coverage(emission):
    """Intervals of 90 % under the true model cover 90 % of the next rows."""
    theta = model_of(emission, "full", 2, 3)
    n = 2000
    x, _ = drawn(theta, emission, 7, np.random.default_rng(0), n)
    model = law_at(theta, emission)
    ahead = model.forecast(x[:, :6].reshape(-1, 3), lengths=[6] * n)
    ends = ahead.interval(0.9)[:, 0]
    inside = (ends[..., 0] <= x[:, 6]) & (x[:, 6] <= ends[..., 1])
    assert (np.abs(inside.mean(axis=0) - 0.9) < 3 * np.sqrt(0.09 / n)).all()
    # Both sides alike, and no wider than they must be.
    below = (x[:, 6] < ends[..., 0]).mean(axis=0)
    assert (np.abs(below - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n)).all()


def test_coverage_of_updates():
    """The same row by row along one sequence; errors are independent."""
    theta = model_of("gaussian", "full", 2, 3)
    n = 2000
    x = drawn(theta, "gaussian", n + 1, np.random.default_rng(1))[0][0]
    ahead = law_at(theta, "gaussian").forecast(x[:1])
    below = np.empty((n, 3))
    total = 0.0
    for i in range(n):
        law = ahead.state_proba[0]
        z = (x[i + 1] - theta["means"]) / np.sqrt(
            np.diagonal(theta["covariances"], axis1=1, axis2=2)
        )
        below[i] = law @ norm.cdf(z)
        ahead = ahead.update(x[i + 1])
        total += ahead.log_density
    # Values of the distribution functions are uniform.
    inside = ((below > 0.05) & (below < 0.95)).mean(axis=0)
    assert (np.abs(inside - 0.9) < 3 * np.sqrt(0.09 / n)).all()
    value = ref.loglik([x], theta, "gaussian", method="forward")
    first = ref.loglik([x[:1]], theta, "gaussian", method="forward")
    assert_allclose(total, value - first, rtol=1e-10)


def test_coverage_of_counts():
    """Rows lie in their intervals as often as the distribution functions say."""
    theta = model_of("poisson", "diag", 2, 2)
    n = 2000
    x, _ = drawn(theta, "poisson", 4, np.random.default_rng(2), n)
    model = law_at(theta, "poisson")
    ahead = model.forecast(x[:, :3].reshape(-1, 3), lengths=[3] * n)
    ends = ahead.interval(0.9)[:, 0]
    inside = (ends[..., 0] <= x[:, 3]) & (x[:, 3] <= ends[..., 1])
    p = np.empty((n, 3))
    for i in range(n):
        for k in range(3):
            low, high = (
                ref.forecast_cdf(x[i, :3], theta, "poisson", 1, k, v)
                for v in (ends[i, k, 0] - 1, ends[i, k, 1])
            )
            p[i, k] = high - low
    assert p.min() >= 0.9
    gap = (inside - p).mean(axis=0)
    assert (np.abs(gap) < 3 * np.sqrt((p * (1 - p)).mean(axis=0) / n)).all()
