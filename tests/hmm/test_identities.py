"""Identities that hold for all data (specification, section 7)."""

from math import tanh

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref

from hmm.toy import (
    COVARIANCES,
    at,
    caught,
    fit_from,
    fit_symmetric,
    parameters,
    random_sequences,
    random_theta,
    rows,
    symmetric_at,
    symmetric_data,
)
from skbounds.hmm import BaumWelchHMM

seeds = st.integers(0, 10_000)
zetas = st.floats(0.06, 0.94)
few = settings(max_examples=20)


def symmetric_case(seed, d=2, n=12):
    """Rows of norm about one, a mean of norm about one and a noise scale."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=d), rng.uniform(0.6, 1.5)


# ------------------------------------------------------------------------ probabilities


@given(seeds, st.integers(1, 5), st.sampled_from([None, 1, 3]))
def test_rows_sum_to_one(seed, s, window):
    """Posteriors, start law and transition matrix are laws."""
    theta = random_theta(seed, s, 2)
    sequences = random_sequences(seed, [7, 1, 4], 2)
    X, lengths = rows(sequences)
    model = fit_from(sequences, theta, reg_covar=1e-3, window=window)
    P = model.predict_proba(X, lengths=lengths)
    assert P.shape == (12, s)
    assert P.min() >= 0
    for law in (P, model.transmat_, model.startprob_[None]):
        assert_allclose(law.sum(axis=1), 1.0, rtol=1e-13)
    best = model.predict(X, lengths=lengths)
    assert_allclose(P[np.arange(12), best], P.max(axis=1), rtol=1e-12)


@given(seeds, st.integers(1, 4))
def test_scores_add_up(seed, s):
    """`score` is the mean of `score_samples`, the history its sum."""
    theta = random_theta(seed, s, 2)
    sequences = random_sequences(seed, [7, 1, 4], 2)
    X, lengths = rows(sequences)
    model = fit_from(sequences, theta, reg_covar=1e-3)
    each = model.score_samples(X, lengths=lengths)
    assert_allclose(model.score(X, lengths=lengths), each.mean(), rtol=1e-11)
    assert_allclose(model.history_[-1], each.sum(), rtol=1e-11)
    one = [model.score_samples(x) for x in sequences]
    assert_allclose(each, np.concatenate(one), rtol=1e-10, atol=1e-12)


# -------------------------------------------------------------------- Fisher's identity


@given(seeds, zetas)
@few
def test_fisher_mu(seed, zeta):
    """The gradient of the log-likelihood in mu is that of Q: one update tells it."""
    X, mu, sigma = symmetric_case(seed)
    model = fit_symmetric([X], mu, zeta, sigma)
    gradient = (len(X) * (model.means_[1] - mu)) / sigma**2
    step = 1e-4
    for a in range(len(mu)):
        e = step * np.eye(len(mu))[a]
        up = fit_symmetric([X], mu + e, zeta, sigma).history_[0]
        down = fit_symmetric([X], mu - e, zeta, sigma).history_[0]
        assert_allclose((up - down) / (2 * step), gradient[a], rtol=1e-5, atol=1e-5)


@given(seeds, st.floats(0.15, 0.85))
@few
def test_fisher_beta(seed, zeta):
    """The same in beta: sum of E Z_i Z_{i+1} - tanh(beta)."""
    X, mu, sigma = symmetric_case(seed)
    options = {"mixing_bound": 0.999}
    model = fit_symmetric([X], mu, zeta, sigma, **options)
    q = len(X) * model.transmat_[0, 0] - zeta
    gradient = 2.0 * q - (len(X) - 1) * (1.0 + 2.0 * zeta - 1.0)
    beta, step = ref.beta_of(zeta), 1e-4
    values = [
        fit_symmetric([X], mu, 0.5 * (1 + tanh(b)), sigma, **options).history_[0]
        for b in (beta + step, beta - step)
    ]
    assert_allclose((values[0] - values[1]) / (2 * step), gradient, atol=1e-4)


# ----------------------------------------------------------------------------- monotone


@given(seeds, st.integers(1, 4), st.sampled_from(COVARIANCES))
def test_likelihood_never_falls(seed, s, covariance_type):
    """Free start law, nothing added to the diagonal."""
    theta = random_theta(seed, s, 2, covariance_type)
    sequences = random_sequences(seed, [25, 1, 14, 20], 2)
    model = fit_from(sequences, theta, 15, covariance_type=covariance_type)
    assert len(model.history_) == model.n_iter_ + 1
    assert np.diff(model.history_).min() >= -1e-9 * np.abs(model.history_).max()


@given(seeds, zetas, st.sampled_from([0.3, 0.9]))
def test_likelihood_never_falls_symmetric(seed, zeta, bound):
    """The projected update climbs too, from a feasible start."""
    X, mu, sigma = symmetric_case(seed, n=30)
    zeta = np.clip(zeta, (1 - bound) / 2, (1 + bound) / 2)
    model = fit_symmetric([X[:20], X[20:]], mu, zeta, sigma, 20, mixing_bound=bound)
    assert np.diff(model.history_).min() >= -1e-9 * np.abs(model.history_).max()


# --------------------------------------------------------------------------- symmetries


@given(seeds, st.integers(2, 4))
def test_time_reversal(seed, s):
    """A reversible chain in equilibrium does not know the direction of time."""
    rng = np.random.default_rng(seed)
    flow = rng.uniform(0.05, 1.0, size=(s, s))
    flow = flow + flow.T
    theta = random_theta(seed, s, 2)
    theta["transmat"] = flow / flow.sum(axis=1, keepdims=True)
    theta["startprob"] = flow.sum(axis=1) / flow.sum()
    x = random_sequences(seed, [9], 2)[0]
    one, two = at(theta), at(theta)
    assert_allclose(one.score(x), two.score(x[::-1]), rtol=1e-10)
    P, Q = one.predict_proba(x), two.predict_proba(x[::-1])
    assert_allclose(P, Q[::-1], rtol=1e-8, atol=1e-11)


@given(seeds)
@few
def test_time_reversal_gap(seed):
    """The gap is zero for two states, and for no typical chain of three."""
    sequences = random_sequences(seed, [12, 9], 1)
    model = fit_from(sequences, random_theta(seed, 2, 1))
    assert_allclose(model.reversible_gap_, 0.0, atol=1e-12)
    model = fit_from(sequences, random_theta(seed, 3, 1))
    expected = ref.reversible_gap(model.transmat_)
    assert_allclose(model.reversible_gap_, expected, rtol=1e-7, atol=1e-12)
    assert_allclose(model.eps_mix_, ref.eps_mix(model.transmat_), rtol=1e-7)
    assert_allclose(model.rho_mix_, 1.0 - model.eps_mix_, rtol=1e-12)


@given(seeds, zetas)
def test_sign_of_mu(seed, zeta):
    """The other sign of mu: the same likelihood, swapped states, the other update."""
    X, mu, sigma = symmetric_case(seed)
    one = fit_symmetric([X], mu, zeta, sigma)
    two = fit_symmetric([X], -mu, zeta, sigma)
    assert_allclose(one.history_, two.history_, rtol=1e-12)
    assert_allclose(one.means_[1], -two.means_[1], rtol=1e-10, atol=1e-13)
    assert_allclose(one.transmat_, two.transmat_, rtol=1e-12)
    one, two = symmetric_at(mu, zeta, sigma), symmetric_at(-mu, zeta, sigma)
    P, Q = one.predict_proba(X), two.predict_proba(X)
    assert_allclose(P, Q[:, ::-1], rtol=1e-10, atol=1e-13)


@given(seeds, zetas)
def test_sign_of_rows(seed, zeta):
    """The other sign of the rows: the same update, all posteriors swapped."""
    X, mu, sigma = symmetric_case(seed)
    one = fit_symmetric([X], mu, zeta, sigma, 3)
    two = fit_symmetric([-X], mu, zeta, sigma, 3)
    assert_allclose(one.history_, two.history_, rtol=1e-12)
    assert_allclose(one.means_, two.means_, rtol=1e-9, atol=1e-12)
    P, Q = one.predict_proba(X), one.predict_proba(-X)
    assert_allclose(P, Q[:, ::-1], rtol=1e-10, atol=1e-13)


@given(seeds, st.sampled_from(["free", "symmetric"]))
def test_rotation(seed, structure):
    """Rotated rows and means give rotated means."""
    d = 3
    rng = np.random.default_rng(seed)
    R = np.linalg.qr(rng.normal(size=(d, d)))[0]
    if structure == "symmetric":
        X, mu, sigma = symmetric_case(seed, d)
        one = fit_symmetric([X], mu, 0.7, sigma, 3)
        two = fit_symmetric([X @ R], mu @ R, 0.7, sigma, 3)
    else:
        theta = random_theta(seed, 2, d)
        X = random_sequences(seed, [20], d)[0]
        turned = {
            **theta,
            "means": theta["means"] @ R,
            "covariances": R.T @ theta["covariances"] @ R,
        }
        one, two = fit_from([X], theta, 3), fit_from([X @ R], turned, 3)
        C = R.T @ one.covariances_ @ R
        assert_allclose(two.covariances_, C, rtol=1e-6, atol=1e-8)
    assert_allclose(one.history_, two.history_, rtol=1e-8)
    assert_allclose(one.means_ @ R, two.means_, rtol=1e-6, atol=1e-8)
    assert_allclose(one.transmat_, two.transmat_, rtol=1e-6, atol=1e-9)


@given(seeds, st.integers(2, 4), st.sampled_from(COVARIANCES))
def test_permuted_states(seed, s, covariance_type):
    """States in another order, everything else in that order."""
    theta = random_theta(seed, s, 2, covariance_type)
    order = np.random.default_rng(seed).permutation(s)
    other = {name: value[order] for name, value in theta.items()}
    other["transmat"] = other["transmat"][:, order]
    sequences = random_sequences(seed, [9, 6], 2)
    X, lengths = rows(sequences)
    options = {"covariance_type": covariance_type, "reg_covar": 1e-2}
    one = fit_from(sequences, theta, 2, **options)
    two = fit_from(sequences, other, 2, **options)
    assert_allclose(one.history_, two.history_, rtol=1e-9)
    for name in ("startprob_", "means_", "covariances_"):
        assert_allclose(
            getattr(one, name)[order], getattr(two, name), rtol=1e-6, atol=1e-8
        )
    expected = one.transmat_[np.ix_(order, order)]
    assert_allclose(expected, two.transmat_, rtol=1e-6, atol=1e-8)
    P = one.predict_proba(X, lengths=lengths)[:, order]
    found = two.predict_proba(X, lengths=lengths)
    assert_allclose(P, found, rtol=1e-6, atol=1e-8)


@given(seeds, st.sampled_from(["free", "symmetric"]))
def test_permuted_sequences(seed, structure):
    """The order of the sequences does not matter; where they are cut does."""
    lengths = [5, 1, 8, 2, 8, 3]
    order = np.random.default_rng(seed).permutation(len(lengths))
    sequences = random_sequences(seed, lengths, 2)
    mixed = [sequences[k] for k in order]
    if structure == "symmetric":
        _, mu, sigma = symmetric_case(seed)
        fit = lambda data: fit_symmetric(data, mu, 0.7, sigma, 3)
    else:
        theta = random_theta(seed, 2, 2)
        fit = lambda data: fit_from(data, theta, 3, reg_covar=1e-2)
    one, two = fit(sequences), fit(mixed)
    assert_allclose(one.history_, two.history_, rtol=1e-10)
    for name, value in parameters(two).items():
        assert_allclose(
            parameters(one)[name], value, rtol=1e-7, atol=1e-10, err_msg=name
        )
    X, found = rows(sequences)
    P = np.split(one.predict_proba(X, lengths=found), np.cumsum(found)[:-1])
    X, found = rows(mixed)
    Q = one.predict_proba(X, lengths=found)
    assert_allclose(np.vstack([P[k] for k in order]), Q, rtol=1e-10, atol=1e-13)
    whole = fit([np.vstack(sequences)])
    assert abs(whole.history_[0] - one.history_[0]) > 1e-6


@given(seeds)
@few
def test_one_sequence_by_any_name(seed):
    """No lengths, lengths=[n] and one label are the same."""
    X = random_sequences(seed, [15], 2)[0]
    given = [{}, {"lengths": [15]}, {"sequence_id": np.full(15, 7)}]
    models = []
    for options in given:
        model = BaumWelchHMM(2, random_state=0, max_iter=3, tol=0.0)
        caught(model.fit, X, **options)
        models.append(model)
        P = model.predict_proba(X, **options)
        assert_array_equal(P, model.predict_proba(X))
    for model in models[1:]:
        assert_array_equal(model.history_, models[0].history_)
        assert_array_equal(model.means_, models[0].means_)


# ------------------------------------------------------------------------ special cases


@given(seeds)
def test_no_memory(seed):
    """zeta = 1/2 is a mixture: each row alone."""
    X, mu, sigma = symmetric_case(seed)
    model = symmetric_at(mu, 0.5, sigma)
    w = np.tanh(X @ mu / sigma**2)
    P = model.predict_proba(X)
    assert_allclose(P[:, 1] - P[:, 0], w, rtol=1e-9, atol=1e-13)
    model = fit_symmetric([X], mu, 0.5, sigma)
    assert_allclose(model.means_[1], w @ X / len(X), rtol=1e-10)


@given(seeds, zetas)
def test_reference_without_signal(seed, zeta):
    """mu = 0 is a fixed point of the reference, and zeta stays."""
    X, mu, sigma = symmetric_case(seed, n=5)
    new_mu, new_zeta = ref.symmetric_update([X], 0.0 * mu, zeta, sigma, 0.99)
    assert_allclose(new_mu, 0.0, atol=1e-14)
    assert_allclose(new_zeta, zeta, rtol=1e-12)


@given(seeds, zetas)
@few
def test_tiny_signal(seed, zeta):
    """Close to mu = 0 the posteriors are flat, zeta stays."""
    X, mu, sigma = symmetric_case(seed)
    model = fit_symmetric([X], 1e-9 * mu, zeta, sigma, mixing_bound=0.99)
    assert_allclose(model.transmat_[0, 0], zeta, rtol=1e-8)
    assert np.abs(model.means_).max() < 1e-7


@given(seeds, zetas)
@few
def test_no_noise(seed, zeta):
    """A small sigma assigns each row to the nearer mean."""
    X, mu, _ = symmetric_case(seed)
    side = X @ mu
    X = X[np.abs(side) > 0.05]
    model = symmetric_at(mu, zeta, 0.01)
    expected = (X @ mu > 0).astype(float)
    assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-12)
    model = fit_symmetric([X], mu, zeta, 0.01)
    sign = np.sign(X @ mu)
    assert_allclose(model.means_[1], sign @ X / len(X), rtol=1e-10)
    same = np.sum(sign[1:] == sign[:-1])
    expected = np.clip((zeta + same) / len(X), 0.05, 0.95)
    assert_allclose(model.transmat_[0, 0], expected, rtol=1e-9)


@given(seeds, zetas)
def test_single_rows(seed, zeta):
    """One row: E Z = tanh g, and zeta stays."""
    X, mu, sigma = symmetric_case(seed)
    sequences = [x[None] for x in X]
    model = fit_symmetric(sequences, mu, zeta, sigma, mixing_bound=0.99)
    w = np.tanh(X @ mu / sigma**2)
    assert_allclose(model.means_[1], w @ X / len(X), rtol=1e-10)
    assert_allclose(model.transmat_[0, 0], zeta, rtol=1e-12)
    P = symmetric_at(mu, zeta, sigma).predict_proba(X, lengths=[1] * len(X))
    assert_allclose(P[:, 1] - P[:, 0], w, rtol=1e-9, atol=1e-13)


@given(seeds, st.sampled_from(COVARIANCES))
@few
def test_one_state(seed, covariance_type):
    """One state is a Gaussian fit, whatever the sequences."""
    X = np.random.default_rng(seed).normal(size=(30, 3)) @ np.diag([1.0, 2.0, 3.0]) + 5
    model = BaumWelchHMM(1, covariance_type=covariance_type, reg_covar=0.0)
    model.fit(X, lengths=[10, 20])
    C = np.cov(X.T, bias=True)
    if covariance_type == "diag":
        C = np.diag(np.diag(C))
    elif covariance_type == "spherical":
        C = np.trace(C) / 3 * np.eye(3)
    assert_allclose(model.means_, X.mean(axis=0)[None], rtol=1e-12)
    assert_allclose(model.covariances_, C[None], rtol=1e-10, atol=1e-12)
    assert_allclose(model.transmat_, [[1.0]])
    assert_allclose(model.startprob_, [1.0])
    expected = [ref.log_gaussian(x, X.mean(axis=0), C) for x in X]
    assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    assert model.converged_
    assert_array_equal(model.predict(X), 0)
    assert_allclose(model.eps_mix_, 1.0)
    shuffled = np.random.default_rng(0).permutation(30)
    assert_allclose(model.score_samples(X[shuffled]), np.array(expected)[shuffled])


# ------------------------------------------------------------------------ bounds of 3.2


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_truncation_bounds(k):
    """Thirty random models keep within the computable bounds."""
    tightest = 0.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        zeta = rng.uniform(0.06, 0.94)
        mu = rng.normal(size=2) * rng.choice([0.1, 0.5, 1.0, 3.0])
        X = symmetric_data(seed, 40, mu, rng.uniform(0.1, 0.9))[0]
        full, cut = symmetric_at(mu, zeta, 1.0), symmetric_at(mu, zeta, 1.0, window=k)
        change = 2.0 * np.abs(full.predict_proba(X) - cut.predict_proba(X))[:, 1].max()
        bound = ref.truncation_bound(zeta, k)
        assert change <= bound + 1e-14
        tightest = max(tightest, change / bound)
        full = fit_symmetric([X], mu, zeta, 1.0, mixing_bound=0.99)
        cut = fit_symmetric([X], mu, zeta, 1.0, mixing_bound=0.99, window=k)
        change = np.linalg.norm(full.means_[1] - cut.means_[1])
        assert change <= ref.mean_update_bound(X, zeta, k) + 1e-14
        change = abs(full.transmat_[0, 0] - cut.transmat_[0, 0])
        assert change <= ref.zeta_update_bound(zeta, k) + 1e-14
        assert_allclose(
            full.truncation_bound(k),
            ref.truncation_bound(full.transmat_[0, 0], k),
            rtol=1e-10,
        )
    assert tightest > 0.3


def test_truncation_of_the_table():
    """The bounds of the specification's table: eta = 1, zeta = 0.2."""
    mu = np.full(10, 10**-0.5)
    X = symmetric_data(0, 2000, mu, 0.2)[0]
    full = symmetric_at(mu, 0.2, 1.0).predict_proba(X)
    printed = {1: 0.83, 2: 0.50, 4: 0.18, 8: 0.023, 16: 3.9e-4, 32: 1.1e-7}
    for k, value in printed.items():
        assert_allclose(ref.truncation_bound(0.2, k), value, rtol=0.03)
        model = symmetric_at(mu, 0.2, 1.0, window=k)
        change = 2.0 * np.abs(model.predict_proba(X) - full)[:, 1].max()
        assert change <= value * 1.03
        if k <= 4:
            assert change > 0.1 * value
