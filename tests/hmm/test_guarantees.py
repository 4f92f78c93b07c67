"""What the model says of itself, and the chapter's experiments."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import hmm as ref

from hmm.toy import (
    at,
    fit_from,
    fit_symmetric,
    random_sequences,
    random_theta,
    separated,
    symmetric_at,
    symmetric_data,
    unfinished,
)
from skbounds.hmm import BaumWelchHMM


def symmetric(X, **options):
    """A converged symmetric model."""
    options = {"sigma": 1.0, "random_state": 0, **options}
    return BaumWelchHMM(structure="symmetric", **options).fit(X)


# --------------------------------------------------------------------------- attributes


def test_symmetric_attributes():
    """Signal-to-noise ratio and mixing of the symmetric model."""
    X, _ = symmetric_data(0, 400, [1.2, -0.5], 0.2)
    model = symmetric(X, sigma=0.9)
    zeta = model.transmat_[0, 0]
    assert_allclose(model.snr_, np.linalg.norm(model.means_[1]) / 0.9, rtol=1e-12)
    assert_allclose(model.rho_mix_, abs(2 * zeta - 1), rtol=1e-12)
    assert_allclose(model.eps_mix_, 2 * min(zeta, 1 - zeta), rtol=1e-12)
    assert_allclose(model.eps_mix_, ref.eps_mix(model.transmat_), rtol=1e-9)
    assert_allclose(model.reversible_gap_, 0.0, atol=1e-15)
    assert_allclose(model.transmat_, ref.symmetric_transmat(zeta), rtol=1e-14)
    for k in (0, 1, 2, 5, 30):
        expected = ref.truncation_bound(zeta, k)
        assert_allclose(model.truncation_bound(k), expected, rtol=1e-10)
    for bad in (-1, 0.5, "2"):
        with pytest.raises((ValueError, TypeError)):
            model.truncation_bound(bad)


def test_symmetric_only():
    """The general model has no signal-to-noise ratio."""
    X, _ = symmetric_data(1, 60, [2.0], 0.2)
    model = BaumWelchHMM(random_state=0).fit(X)
    assert not hasattr(model, "snr_")
    refitted = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
    refitted.set_params(structure="free").fit(X)
    assert not hasattr(refitted, "snr_")


@pytest.mark.parametrize("s", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_general_attributes(s, seed):
    """Mixing constant and violation of reversibility, by definition."""
    model = fit_from(random_sequences(seed, [30, 20], 1), random_theta(seed, s, 1))
    A = model.transmat_
    assert_allclose(model.eps_mix_, ref.eps_mix(A), rtol=1e-8)
    assert_allclose(model.rho_mix_, 1 - ref.eps_mix(A), rtol=1e-8)
    gap = ref.reversible_gap(A)
    assert_allclose(model.reversible_gap_, gap, rtol=1e-8, atol=1e-13)
    assert (gap > 1e-4) == (s > 2)


def test_mixing_with_a_zero():
    """A forbidden step: no mixing constant."""
    theta = random_theta(2, 3, 1, zeros=1)
    model = fit_from(random_sequences(2, [30], 1), theta)
    assert (model.transmat_ == 0).any()
    assert model.eps_mix_ == 0.0
    assert model.rho_mix_ == 1.0


def test_mixing_time():
    """rho_mix bounds how fast the fitted chain forgets its start (2.4)."""
    for seed in range(10):
        model = fit_from(random_sequences(seed, [60], 1), random_theta(seed, 3, 1))
        A, law = model.transmat_, ref.stationary(model.transmat_)
        M = np.eye(3)
        for t in range(1, 8):
            M = M @ A
            distance = 0.5 * np.abs(M - law).sum(axis=1).max()
            assert distance <= model.rho_mix_**t + 1e-12


def test_forgetting():
    """Posteriors forget a change k rows away as fast as the bound says."""
    X, _ = symmetric_data(3, 60, [0.8], 0.9)
    model = symmetric_at([0.8], 0.9, 1.0)
    P = model.predict_proba(X)[:, 1]
    worst = 0.0
    for far in (-50.0, 50.0):
        changed = X.copy()
        changed[30] = far
        gap = 2.0 * np.abs(model.predict_proba(changed)[:, 1] - P)
        for k in range(1, 20):
            # Both differ from the window that ends before the change.
            bound = 2.0 * ref.truncation_bound(0.9, k)
            assert gap[30 + k + 1] <= bound
            assert gap[30 - k - 1] <= bound
            worst = max(worst, gap[30 + k + 1] / bound)
    assert worst > 0.02


@pytest.mark.parametrize("zeta", [0.06, 0.5, 0.94])
def test_bound_of_the_fitted_model(zeta):
    """`truncation_bound` holds for the model's own posteriors."""
    X, _ = symmetric_data(4, 400, [1.0, 0.3], zeta)
    model = symmetric(X)
    P = model.predict_proba(X)[:, 1]
    mu, found = model.means_[1], model.transmat_[0, 0]
    for k in (1, 3, 6):
        cut = symmetric_at(mu, found, 1.0, window=k).predict_proba(X)[:, 1]
        assert 2.0 * np.abs(cut - P).max() <= model.truncation_bound(k) + 1e-14


def test_fit_with_a_window():
    """A wide enough window changes the fit by little, a narrow one by more."""
    X, _ = symmetric_data(5, 500, [0.9], 0.85)
    options = {"tol": 1e-10, "max_iter": 2000, "means_init": [0.5]}
    full = symmetric(X, **options)
    gaps = []
    for k in (1, 4, 16, 64):
        model = symmetric(X, window=k, **options)
        gaps.append(abs(model.means_[1, 0] - full.means_[1, 0]))
    assert gaps[0] > 1e-3
    assert gaps[2] < 0.1 * gaps[0]
    assert gaps[3] < 1e-5


def test_rate_needs_iterations():
    """No rate after fewer than three changes, and then a number."""
    X, _ = symmetric_data(6, 60, [0.8], 0.3)
    assert np.isnan(fit_symmetric([X], [0.5], 0.5, 1.0, 1).contraction_rate_)
    rate = fit_symmetric([X], [0.5], 0.5, 1.0, 30).contraction_rate_
    assert 0.0 < rate < 1.0


# ---------------------------------------------------------------------- the experiments


def experiment(eta, n_draws=8, n=1000, d=10, seed=0):
    """Fits of the chapter's setting: rates, distances to mu, and the starts."""
    result = []
    for k in range(n_draws):
        rng = np.random.default_rng([seed, k])
        mu = rng.normal(size=d)
        mu *= eta / np.linalg.norm(mu)
        X, _ = symmetric_data(1000 * seed + k, n, mu, 0.2)
        shift = rng.normal(size=d)
        shift *= 0.25 * eta * rng.random() ** (1 / d) / np.linalg.norm(shift)
        result.append((X, mu, mu + shift))
    return result


TABLE = {
    # eta: (mean rate, smallest, largest, final distance)
    0.707: (0.822, 0.77, 0.86, 0.148),
    1.0: (0.622, 0.56, 0.68, 0.127),
    1.5: (0.312, 0.26, 0.36, 0.111),
    2.0: (0.124, 0.10, 0.15, 0.104),
}


@pytest.mark.slow
@pytest.mark.parametrize("eta", TABLE)
def test_table(eta):
    """Contraction rates and floors of the specification's table."""
    mean, low, high, floor = TABLE[eta]
    rates, distances = [], []
    for X, mu, begin in experiment(eta, 16):
        model = symmetric(X, means_init=begin, tol=1e-12, max_iter=2000)
        rates.append(model.contraction_rate_)
        distances.append(np.linalg.norm(model.means_[1] - mu))
    assert low <= np.mean(rates) <= high
    assert abs(np.mean(rates) - mean) < 0.4 * (high - low)
    assert_allclose(np.mean(distances), floor, rtol=0.2)


@pytest.mark.slow
def test_linear_convergence():
    """The distance to where EM ends shrinks by the reported rate per iteration."""
    X, _, begin = experiment(1.0, 1)[0]
    with unfinished():
        end = symmetric(X, means_init=begin, tol=0.0, max_iter=200)
    gaps = []
    for t in (10, 20, 30):
        with unfinished():
            model = symmetric(X, means_init=begin, tol=0.0, max_iter=t)
        gaps.append(np.linalg.norm(model.means_[1] - end.means_[1]))
    slopes = np.exp(np.diff(np.log(gaps)) / 10)
    assert_allclose(slopes, end.contraction_rate_, rtol=0.05)


@pytest.mark.slow
def test_statistical_error_shrinks_with_the_rows():
    """Close to the root of d / n (measured: 1.00 to 1.17 times)."""
    for n in (500, 4000):
        draws = experiment(1.5, 6, n=n, seed=1)
        distance = [
            np.linalg.norm(symmetric(X, means_init=begin).means_[1] - mu)
            for X, mu, begin in draws
        ]
        assert 0.75 < np.mean(distance) / np.sqrt(10 / n) < 1.45


@pytest.mark.slow
def test_starts_outside_of_the_basin():
    """Random directions lead to mu or to -mu."""
    for eta in (1.0, 2.0):
        X, mu, _ = experiment(eta, 1, seed=2)[0]
        rng = np.random.default_rng(0)
        for _ in range(10):
            begin = rng.normal(size=10)
            begin *= eta / np.linalg.norm(begin)
            model = symmetric(X, means_init=begin, max_iter=3000, tol=1e-9)
            end = model.means_[1]
            gap = min(np.linalg.norm(end - mu), np.linalg.norm(end + mu))
            assert gap < 0.25


@pytest.mark.slow
def test_memory_helps():
    """Fitting the chain beats the mixture of the same rows (zeta frozen at 1/2)."""
    gains = []
    for X, mu, begin in experiment(1.0, 12, seed=3):
        chain = symmetric(X, means_init=begin)
        mixture = symmetric_frozen(X, begin)
        assert_allclose(mixture.transmat_, 0.5, atol=1e-8)
        gains.append(
            np.linalg.norm(mixture.means_[1] - mu)
            - np.linalg.norm(chain.means_[1] - mu)
        )
    assert np.mean(gains) > 0


def symmetric_frozen(X, begin):
    """The mixture: zeta cannot move."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return symmetric(X, means_init=begin, mixing_bound=1e-9)


@pytest.mark.slow
def test_sign_of_beta_is_irrelevant():
    """zeta = 0.8 is as easy as 0.2: the same rate and floor."""
    rates = []
    for zeta in (0.2, 0.8):
        found = []
        for k in range(6):
            mu = np.full(10, 1.5 / np.sqrt(10))
            X, _ = symmetric_data(k, 1000, mu, zeta)
            model = symmetric(X, means_init=0.9 * mu, tol=1e-11)
            found.append(model.contraction_rate_)
        rates.append(np.mean(found))
    assert_allclose(rates, 0.315, atol=0.05)


def test_separated_states_mix_slowly():
    """Sticky chains have a small mixing constant."""
    sequences, _, theta = separated(6)
    X = np.vstack(sequences)
    model = BaumWelchHMM(3, random_state=0).fit(X, lengths=[100, 100, 100])
    assert model.eps_mix_ < 0.6
    assert_allclose(model.eps_mix_, ref.eps_mix(theta["transmat"]), atol=0.15)


# -------------------------------------------------------------------------- forgetting


@pytest.mark.parametrize("zeros", [0, 1])
@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_filtered_probabilities(seed, s, zeros):
    """By enumeration of all paths; several sequences."""
    theta = random_theta(seed, s, 2, zeros=min(zeros, s - 1))
    sequences = random_sequences(seed, [5, 1, 4], 2)
    model = at(theta)
    X, lengths = np.vstack(sequences), [len(x) for x in sequences]
    found = model.filter_proba(X, lengths=lengths)
    expected = []
    for x in sequences:
        B = ref.emissions(x, theta)
        for t in range(1, len(x) + 1):
            paths = ref.enumerate_paths(B[:t], theta["startprob"], theta["transmat"])
            expected.append(paths["gamma"][-1])
    assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    ends = np.cumsum(lengths) - 1
    smoothed = model.predict_proba(X, lengths=lengths)
    assert_allclose(found[ends], smoothed[ends], rtol=1e-10, atol=1e-13)


def test_filtered_probabilities_of_the_symmetric_model():
    X, _ = symmetric_data(0, 8, [1.2, -0.5], 0.2)
    model = symmetric_at([1.0, -0.4], 0.3, 1.0)
    found = model.filter_proba(X)
    for t in range(1, 9):
        assert_allclose(found[t - 1], model.predict_proba(X[:t])[-1], rtol=1e-12)


def test_filtered_probabilities_where_all_vanish():
    """A row that is far from all states of positive probability."""
    theta = {
        "startprob": np.array([1.0, 0.0]),
        "transmat": np.array([[1.0 - 1e-12, 1e-12], [0.5, 0.5]]),
        "means": np.array([[0.0], [60.0]]),
        "covariances": np.ones((2, 1, 1)),
    }
    X = np.array([[0.0], [60.0], [60.0], [0.0]])
    model = at(theta)
    found = model.filter_proba(X)
    for t in range(1, 5):
        assert_allclose(found[t - 1], model.predict_proba(X[:t])[-1], atol=1e-12)


def posterior(B, law, A, i):
    """Law of state i, by sums and products."""
    ahead = law * B[0]
    for row in B[1 : i + 1]:
        ahead = (ahead @ A) * row
        ahead /= ahead.sum()
    after = np.ones(len(A))
    for row in B[:i:-1]:
        after = A @ (row * after)
        after /= after.sum()
    return ahead * after / (ahead @ after)


@pytest.mark.parametrize("s", [2, 3, 5])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_truncation_of_every_chain(s, k):
    """Never violated, whatever the rows, the chain and the law of the window."""
    worst = 0.0
    for seed in range(60):
        rng = np.random.default_rng([seed, s, k])
        # Chains that mix well and badly, densities that say little and much.
        A = rng.dirichlet(np.full(s, rng.choice([0.5, 2.0, 20.0])), size=s)
        theta = random_theta(seed, s, 1) | {"transmat": A}
        bound = at(theta).truncation_bound(k)
        B = np.exp(rng.choice([0.3, 2.0, 10.0]) * rng.normal(size=(40, s)))
        for i in (0, 3, 20, 39):
            low, high = max(i - k, 0), min(i + k + 1, 40)
            law = theta["startprob"] if low == 0 else rng.dirichlet(np.full(s, 0.2))
            gap = posterior(B, theta["startprob"], A, i)
            gap = np.abs(gap - posterior(B[low:high], law, A, i - low)).sum()
            assert gap <= bound * (1.0 + 1e-9) + 1e-12
            worst = max(worst, gap / bound)
    # It is not idle: some windows come near.
    assert worst > (0.05 if k <= 4 else 0.001)


def test_truncation_by_closed_forms():
    """Of two states, no reach, and a zero."""
    A = np.array([[0.8, 0.2], [0.3, 0.7]])
    theta = random_theta(0, 2, 1) | {"transmat": A}
    diameter = np.log(0.8 * 0.7 / (0.2 * 0.3))
    tau = np.tanh(diameter / 4)
    for k in (1, 3, 7):
        distance = diameter * (tau ** (k - 1) + tau**k)
        assert_allclose(at(theta).truncation_bound(k), 2 * np.tanh(distance / 4))
    assert at(theta).truncation_bound(0) == 2.0
    theta["transmat"] = np.array([[1.0, 0.0], [0.3, 0.7]])
    assert at(theta).truncation_bound(50) == 2.0
    assert at(random_theta(0, 1, 1)).truncation_bound(0) == 0.0
    # The symmetric one is sharper.
    for k in (1, 5):
        theta["transmat"] = ref.symmetric_transmat(0.3)
        sharper = symmetric_at([1.0], 0.3, 1.0).truncation_bound(k)
        assert sharper <= at(theta).truncation_bound(k)
    for bad in (-1, 0.5, "2", True):
        with pytest.raises(ValueError, match="k must be an integer"):
            at(theta).truncation_bound(bad)


# ------------------------------------------------------------------------------- units


@pytest.mark.parametrize("power", [-8, -3, 3, 8])
@pytest.mark.parametrize("kind", ["diag", "full", "spherical", "tied"])
def test_units_do_not_matter(kind, power):
    """With the default floor: the same states in other units."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(2, size=30), 20)
    X = rng.normal(3.0 * states[:, None], 1.0 + states[:, None], size=(600, 2))
    scale = 10.0**power
    options = {"covariance_type": kind, "random_state": 0, "tol": 1e-9}
    plain = BaumWelchHMM(**options).fit(X)
    other = BaumWelchHMM(**options).fit(scale * X)
    assert_allclose(other.means_, scale * plain.means_, rtol=1e-6)
    assert_allclose(other.covariances_, scale**2 * plain.covariances_, rtol=1e-5,
                    atol=1e-9 * scale**2)  # fmt: skip
    assert_allclose(other.transmat_, plain.transmat_, rtol=1e-5)
    assert (other.predict(scale * X) == plain.predict(X)).all()


def test_regimes_of_small_returns():
    """Standard deviations of 5e-4 and 2e-3 are told apart."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(2, size=60), 50)
    X = rng.normal(0.0, np.where(states == 1, 2e-3, 5e-4))[:, None]
    model = BaumWelchHMM(random_state=0).fit(X)
    deviations = np.sqrt(model.covariances_[:, 0, 0])
    assert_allclose(np.sort(deviations), [5e-4, 2e-3], rtol=0.1)
    agree = np.mean(model.predict(X) == states)
    assert max(agree, 1.0 - agree) > 0.95
