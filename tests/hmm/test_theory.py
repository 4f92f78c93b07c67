"""The theory's objects against enumeration, and its constants."""

from math import exp, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import hmm as ref
from reference import hmm_more as more

from hmm.toy import A, B, random_sequences, symmetric_data, unfinished
from skbounds.hmm import (
    BaumWelchHMM,
    contraction_factor,
    n_em_steps,
    statistical_radius,
    symmetric_em_operator,
    symmetric_population_operator,
    symmetric_surrogate,
    truncation_error,
)


@pytest.mark.parametrize("seed", range(5))
def test_surrogate(seed):
    """Its value by enumeration, its gradient by differences."""
    rng = np.random.default_rng(seed)
    X = random_sequences(seed, [5], 2)[0]
    mu, zeta, mu0, zeta0 = rng.normal(size=2), 0.3, rng.normal(size=2), 0.8
    value, by_mean, by_beta = symmetric_surrogate(
        mu, zeta, X, at=(mu0, zeta0), sigma=0.7
    )
    assert_allclose(value, more.q_n(mu, zeta, X, mu0, zeta0, 0.7), rtol=1e-12)
    h = 1e-5

    def q(mu, zeta):
        return more.q_n(mu, zeta, X, mu0, zeta0, 0.7)

    for k in range(2):
        e = h * np.eye(2)[k]
        slope = (q(mu + e, zeta) - q(mu - e, zeta)) / (2 * h)
        assert_allclose(by_mean[k], slope, rtol=1e-6, atol=1e-8)
    beta = ref.beta_of(zeta)

    def stay(beta):
        return 1.0 / (1.0 + exp(-2.0 * beta))

    slope = (q(mu, stay(beta + h)) - q(mu, stay(beta - h))) / (2 * h)
    assert_allclose(by_beta, slope, rtol=1e-6)


@pytest.mark.parametrize("case", [A, B], ids=["A", "B"])
def test_operator(case):
    """The worked examples, and the truncated step by enumeration."""
    mu, zeta = symmetric_em_operator(
        case["mu"], case["zeta"], case["X"], sigma=case["sigma"], mixing_bound=0.99
    )
    assert_allclose(mu, case["new_mu"], rtol=1e-10)
    assert_allclose(zeta, case["new_zeta"], rtol=1e-10)
    theta = ref.symmetric_theta(case["mu"], case["zeta"], case["sigma"])
    B_ = ref.emissions(case["X"], theta)
    gamma, xi = ref.window_posteriors(B_, [0.5, 0.5], theta["transmat"], 1)
    w = gamma[:, 1] - gamma[:, 0]
    mu, zeta = symmetric_em_operator(
        case["mu"], case["zeta"], case["X"], sigma=case["sigma"], mixing_bound=0.99,
        window=1,
    )  # fmt: skip
    n = len(case["X"])
    assert_allclose(mu, w @ case["X"] / n, rtol=1e-10)
    agreement = sum(pair[0, 0] + pair[1, 1] for pair in xi)
    assert_allclose(zeta, (case["zeta"] + agreement) / n, rtol=1e-10)


def test_population_operator_keeps_the_truth():
    """The true parameters are its fixed point, within the error that it states."""
    true = np.array([0.6, -0.8, 0.0])
    for seed in range(6):
        step = symmetric_population_operator(
            true, 0.3, true_mean=true, true_stay=0.3, sigma=1.0, random_state=seed
        )
        assert np.linalg.norm(step.mean - true) < 4 * step.mean_error
        assert abs(step.stay - 0.3) < 4 * step.stay_error
        assert 0 < step.mean_error < 0.01 and 0 < step.stay_error < 0.01


def test_population_operator_elsewhere():
    """The mean of the sample's steps on many long samples."""
    true, mu = np.array([1.0, 0.0]), np.array([0.5, 0.7])
    steps = []
    for seed in range(200):
        X, _ = symmetric_data(seed, 2000, true, 0.2)
        found, zeta = symmetric_em_operator(mu, 0.6, X, sigma=1.0)
        steps.append([*found, zeta])
    mean, error = np.mean(steps, axis=0), np.std(steps, axis=0) / sqrt(200)
    step = symmetric_population_operator(
        mu, 0.6, true_mean=true, true_stay=0.2, sigma=1.0, random_state=0
    )
    gaps = np.abs(np.r_[step.mean, step.stay] - mean)
    stated = np.r_[step.mean_error, step.mean_error, step.stay_error]
    assert (gaps < 4 * np.hypot(error, stated) + 1e-3).all()


def test_stated_errors():
    """Repetitions vary as they say."""
    true = np.array([0.8])
    found = [
        symmetric_population_operator(
            [0.4],
            0.7,
            true_mean=true,
            true_stay=0.2,
            sigma=1.0,
            n_samples=5000,
            random_state=seed,
        )
        for seed in range(200)
    ]
    spread = np.std([step.mean[0] for step in found])
    assert_allclose(np.mean([s.mean_error for s in found]), spread, rtol=0.2)
    spread = np.std([step.stay for step in found])
    assert_allclose(np.mean([s.stay_error for s in found]), spread, rtol=0.25)


def test_truncated_population_operator():
    """It is within the bound of windows of the one without."""
    arguments = {"true_mean": [1.0], "true_stay": 0.2, "sigma": 1.0, "random_state": 0}
    whole = symmetric_population_operator([0.7], 0.3, **arguments)
    beta, rate = abs(ref.beta_of(0.3)), 0.4
    gaps = []
    for k in (1, 3, 6):
        step = symmetric_population_operator([0.7], 0.3, window=k, **arguments)
        gaps.append(abs(step.mean[0] - whole.mean[0]))
        # The mean of |X| is below the root of the mean of its square.
        assert gaps[-1] <= 2 * beta * rate**k * sqrt(2.0)
    assert gaps[0] > 10 * gaps[1] > 0


def test_constants():
    """The formulas with their constants."""
    for eta, b, C1, c2 in [(0.5, 0.9, 1.0, 1 / 32), (3.0, 0.5, 2.0, 0.3)]:
        expected = C1 * eta**2 * (eta**2 + 1) * exp(-c2 * eta**2) / (1 - b**2)
        assert_allclose(contraction_factor(eta, b, C1=C1, c2=c2), expected)
    # With the one explicit constant it is below 1 for very clear states only.
    assert contraction_factor(8.0, 0.5) > 1.0 > contraction_factor(25.0, 0.5)
    found = truncation_error(
        50, n_components=3, eps_mix=0.5, pi_min=0.2, strong_concavity=0.3, C=2.0
    )
    expected = sqrt(2.0 * 81 / (0.3 * 0.5**9 * 0.04) * (1 - 0.1) ** 50)
    assert_allclose(found, expected)
    for radius, error, rate in [(0.25, 1e-3, 0.6), (1.0, 1e-8, 0.93)]:
        T = n_em_steps(radius, error, rate)
        assert 2 * radius * rate**T <= error < 2 * radius * rate ** (T - 1)
    assert n_em_steps(0.1, 1.0, 0.5) == 0


def test_steps_that_em_takes():
    """After as many as the rate says the optimisation error is what was asked for."""
    mu = np.array([1.2, 0.0])
    X, _ = symmetric_data(0, 1000, mu, 0.2)
    options = {"structure": "symmetric", "sigma": 1.0}
    end = BaumWelchHMM(means_init=mu, tol=1e-13, max_iter=500, **options).fit(X)
    T = n_em_steps(0.3, 1e-4, end.contraction_rate_)
    with unfinished():
        short = BaumWelchHMM(means_init=mu * 0.8, tol=0.0, max_iter=T, **options).fit(X)
    assert np.linalg.norm(short.means_[1] - end.means_[1]) < 1e-4
    assert 3 < T < 30


def test_statistical_radius():
    """What estimates vary by, in repetitions; with known states it would be smaller."""
    mu, n = np.array([1.5, 0.0, 0.0]), 500
    gaps, stated = [], []
    for seed in range(120):
        X, _ = symmetric_data(seed, n, mu, 0.2)
        model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
        gaps.append(np.linalg.norm(model.means_[1] - mu) ** 2)
        stated.append(statistical_radius(model))
    assert_allclose(np.mean(stated), sqrt(np.mean(gaps)), rtol=0.12)
    assert np.mean(stated) > sqrt(3 / n)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: contraction_factor(-1.0, 0.5), "snr"),
        (lambda: contraction_factor(1.0, 1.0), "mixing_bound"),
        (lambda: n_em_steps(1.0, 1.0, 1.0), "rate"),
        (lambda: symmetric_em_operator([1.0], 1.5, [[1.0]], sigma=1.0), "stay"),
        (lambda: symmetric_em_operator([1.0, 2.0], 0.5, [[1.0]], sigma=1.0), "mean"),
        (lambda: symmetric_em_operator([1.0], 0.5, [[1.0]], sigma=0.0), "sigma"),
        (
            lambda: symmetric_population_operator(
                [1.0], 0.5, true_mean=[1.0], true_stay=0.5, sigma=1.0, n_samples=10
            ),
            "n_samples",
        ),
    ],
)
def test_bad_input(call, message):
    """Named in the error."""
    with pytest.raises(ValueError, match=message):
        call()


def test_logarithm_of_the_rate():
    """`n_em_steps` has the sign that the text has not."""
    assert n_em_steps(0.5, exp(-2.9), exp(-1.0)) == 3
    assert log(2 * 0.5 / exp(-2.9)) / log(exp(-1.0)) < 0
