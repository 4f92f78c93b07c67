"""From the start to convergence: stopping, orientation, several starts, criteria."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref
from sklearn.exceptions import ConvergenceWarning

from hmm.toy import (
    COVARIANCES,
    caught,
    fit_from,
    fit_symmetric,
    parameters,
    random_sequences,
    random_theta,
    rows,
    separated,
    start,
    symmetric_at,
    symmetric_data,
    unfinished,
)
from skbounds.hmm import BaumWelchHMM

every_covariance = pytest.mark.parametrize("covariance_type", COVARIANCES)


# ----------------------------------------------------------------------------- stopping


@pytest.mark.parametrize("structure", ["free", "symmetric"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_tolerance_is_per_row(structure, tol):
    """The last gain per row is below the tolerance, all others are not."""
    X, _ = symmetric_data(0, 300, [1.2, 0.4], 0.3)
    options = {"structure": structure, "tol": tol, "max_iter": 2000}
    if structure == "symmetric":
        options["sigma"] = 1.0
    model = BaumWelchHMM(random_state=0, **options)
    assert not caught(model.fit, X)
    assert model.converged_
    gains = np.diff(model.history_) / len(X)
    assert len(gains) == model.n_iter_
    assert gains[-1] < tol
    assert gains[:-1].min() >= tol


def test_iterations_run_out():
    """`max_iter` counts M-steps; a warning says that they were too few."""
    X, _ = symmetric_data(1, 200, [0.8], 0.3)
    for max_iter in (1, 4):
        model = BaumWelchHMM(random_state=0, max_iter=max_iter)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X)
        assert model.n_iter_ == max_iter
        assert len(model.history_) == max_iter + 1
        assert not model.converged_


def test_history_ends_at_the_result():
    """The last entry is the log-likelihood of the fitted parameters."""
    sequences, _, _ = separated(0)
    X, lengths = rows(sequences)
    for options in ({}, {"window": 2}, {"startprob": "stationary"}):
        model = BaumWelchHMM(3, random_state=0, **options).fit(X, lengths=lengths)
        expected = ref.loglik(sequences, parameters(model))
        assert_allclose(model.history_[-1], expected, rtol=1e-10)
        assert_allclose(model.score(X, lengths=lengths) * len(X), expected, rtol=1e-10)


@every_covariance
def test_fixed_point(covariance_type):
    """At convergence another update of the reference changes nothing."""
    sequences, _, _ = separated(1, n=150, gap=2.5)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(
        3,
        covariance_type=covariance_type,
        tol=1e-13,
        max_iter=3000,
        reg_covar=0.0,
        random_state=0,
    )
    with unfinished():
        model.fit(X, lengths=lengths)
    theta = parameters(model)
    new = ref.em_update(sequences, theta, covariance_type)
    for name, value in theta.items():
        assert_allclose(new[name], value, atol=3e-5, err_msg=name)


def test_finds_the_truth():
    """Clear states are found, with their parameters."""
    sequences, states, theta = separated(2, n=3000)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(3, covariance_type="full", random_state=0)
    model.fit(X, lengths=lengths)
    assert_allclose(model.means_, theta["means"], atol=0.2)
    assert_allclose(model.covariances_, theta["covariances"], atol=0.2)
    assert_allclose(model.transmat_, theta["transmat"], atol=0.08)
    found = model.predict(X, lengths=lengths)
    assert np.mean(found == np.concatenate(states)) > 0.98


# ----------------------------------------------------------------------------- the rate


RATES = [(0, 1.0, 0.25), (1, 0.8, 0.7), (2, 1.5, 0.4)]


@pytest.mark.parametrize("seed, eta, zeta", RATES)
def test_contraction_rate(seed, eta, zeta):
    """It is the spectral radius of EM's Jacobian at the fixed point."""
    mu = eta * np.array([0.8, 0.6])
    X, _ = symmetric_data(seed, 120, mu, zeta)
    expected, state = ref.symmetric_rate([X], mu, zeta, 1.0)
    assert 0.05 < expected < 0.95
    model = BaumWelchHMM(
        structure="symmetric", sigma=1.0, means_init=mu, tol=1e-11, max_iter=3000
    ).fit(X)
    assert_allclose(model.means_[1], state[:2], atol=1e-4)
    assert_allclose(model.contraction_rate_, expected, rtol=0.03)


def test_contraction_rate_of_the_general_model():
    """Two states on the line, all parameters free."""
    X, _ = symmetric_data(3, 80, [1.3], 0.8)
    theta = {
        "startprob": np.array([0.5, 0.5]),
        "transmat": ref.symmetric_transmat(0.7),
        "means": np.array([[-1.0], [1.0]]),
        "covariances": np.ones((2, 1, 1)),
    }
    model = BaumWelchHMM(
        covariance_type="full", reg_covar=0.0, tol=1e-12, max_iter=5000, **start(theta)
    )
    with unfinished():
        model.fit(X)
    fitted = parameters(model)

    def unpack(v):
        return {
            "startprob": fitted["startprob"],
            "transmat": np.array([[v[0], 1 - v[0]], [1 - v[1], v[1]]]),
            "means": np.array([[v[2]], [v[3]]]),
            "covariances": np.array([[[v[4]]], [[v[5]]]]),
        }

    def update(v):
        new = ref.em_update([X], unpack(v))
        A, C = new["transmat"], new["covariances"].ravel()
        return np.array([A[0, 0], A[1, 1], *new["means"].ravel(), *C])

    A, C = fitted["transmat"], fitted["covariances"].ravel()
    point = np.array([A[0, 0], A[1, 1], *fitted["means"].ravel(), *C])
    expected = ref.spectral_radius(ref.jacobian(update, point))
    assert_allclose(model.contraction_rate_, expected, rtol=0.05)


@pytest.mark.parametrize("seed, eta, zeta", RATES)
def test_contraction_rate_at_the_limit_of_rounding(seed, eta, zeta):
    """Iterations that only move rounding errors do not spoil the rate."""
    mu = eta * np.array([0.8, 0.6])
    X, _ = symmetric_data(seed, 120, mu, zeta)
    expected, _ = ref.symmetric_rate([X], mu, zeta, 1.0)
    model = fit_symmetric([X], mu, 0.5, 1.0, 1000)
    assert_allclose(model.contraction_rate_, expected, rtol=0.05)


# -------------------------------------------------------------------------- orientation


@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_order_of_states(seed, init):
    """Ascending lexicographic order of the means, whatever the seed."""
    sequences, _, theta = separated(3)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(3, random_state=seed, init=init, n_init=5)
    model.fit(X[:, ::-1], lengths=lengths)
    M = model.means_
    assert_array_equal(np.lexsort(M.T[::-1]), np.arange(3))
    true = theta["means"][:, ::-1]
    assert_allclose(M[M[:, 1].argsort()], true[true[:, 1].argsort()], atol=0.6)


def test_order_of_everything():
    """Start law, transitions and covariances are in the order of the means."""
    sequences, states, theta = separated(4, n=1500)
    X, lengths = rows(sequences)
    for seed in range(3):
        model = BaumWelchHMM(3, covariance_type="full", random_state=seed)
        model.fit(X, lengths=lengths)
        assert_allclose(model.means_, theta["means"], atol=0.4)
        assert_allclose(model.covariances_, theta["covariances"], atol=0.3)
        assert_allclose(model.transmat_, theta["transmat"], atol=0.1)
        first = np.mean([[z[0] == j for j in range(3)] for z in states], axis=0)
        assert_allclose(model.startprob_, first, atol=1e-3)


def test_order_that_is_given():
    """States keep the order of `means_init`."""
    sequences, _, theta = separated(5)
    X, lengths = rows(sequences)
    order = [2, 0, 1]
    model = BaumWelchHMM(3, means_init=theta["means"][order])
    model.fit(X, lengths=lengths)
    assert_allclose(model.means_, theta["means"][order], atol=0.6)
    assert model.transmat_[0, 1] < model.transmat_[2, 1] + 0.2


@pytest.mark.parametrize("mu", [[-1.5, 1.0], [1.5, -1.0], [0.0, -2.0]])
@pytest.mark.parametrize("seed", range(3))
def test_orientation_of_the_symmetric_model(mu, seed):
    """State 1 is the one whose first coordinate that is not zero is positive."""
    X, _ = symmetric_data(6, 300, mu, 0.3)
    if mu[0] == 0.0:
        X[:, 0] = 0.0
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=seed).fit(X)
    m = model.means_
    assert_allclose(m[0], -m[1])
    assert m[1][np.flatnonzero(m[1])[0]] > 0
    expected = np.array(mu) * np.sign(mu[0] or mu[1])
    assert_allclose(m[1], expected, atol=0.3)


def test_both_forms_of_a_symmetric_start():
    """mu alone, or the pair (-mu, mu)."""
    X, _ = symmetric_data(7, 60, [1.0, 0.5], 0.3)
    one = fit_symmetric([X], [0.7, 0.9], 0.6, 1.0, 3)
    two = fit_symmetric([X], [[-0.7, -0.9], [0.7, 0.9]], 0.6, 1.0, 3)
    assert_array_equal(one.means_, two.means_)
    assert_array_equal(one.history_, two.history_)


# ----------------------------------------------------------------------- several starts


def test_random_state():
    """The same seed, the same model."""
    X = np.vstack(random_sequences(8, [60], 2))
    fits = []
    for seed in (0, 0, 1, 2, 3):
        model = BaumWelchHMM(4, init="random", random_state=seed, max_iter=20)
        with unfinished():
            fits.append(model.fit(X).history_)
    assert_array_equal(fits[0], fits[1])
    assert len({f[0] for f in fits}) > 2


@pytest.mark.parametrize("structure", ["free", "symmetric"])
def test_best_of_several_starts(structure):
    """More starts never do worse than the first one, and sometimes better."""
    better = 0
    for seed in range(6):
        X = np.vstack(random_sequences(seed, [40], 2))
        options = {"init": "random", "random_state": seed, "max_iter": 30}
        if structure == "symmetric":
            options |= {"structure": "symmetric", "sigma": 0.7}
        else:
            options |= {"n_components": 3, "reg_covar": 0.1}
        with unfinished():
            one = BaumWelchHMM(**options).fit(X)
            many = BaumWelchHMM(n_init=6, **options).fit(X)
        assert many.history_[-1] >= one.history_[-1] - 1e-9
        better += many.history_[-1] > one.history_[-1] + 1e-3
    # The symmetric model has a single optimum, mostly.
    assert better >= 2 or structure == "symmetric"


def test_bad_starts_among_good_ones():
    """A start that breaks down does not take the others with it."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(12, 2)), 6.0 + rng.normal(size=(12, 2))])
    options = {"covariance_type": "full", "init": "random", "reg_covar": 0.0}
    alone, together = [], []
    for seed in range(10):
        for n_init, found in ((1, alone), (10, together)):
            model = BaumWelchHMM(3, n_init=n_init, random_state=seed, **options)
            try:
                with unfinished():
                    model.fit(X)
            except ValueError as error:
                assert "reg_covar" in str(error)
                found.append(False)
            else:
                assert np.isfinite(model.history_).all()
                found.append(True)
    # The first of ten starts is the one that is tried alone.
    assert 0 < sum(alone) < 10
    assert all(t for a, t in zip(alone, together, strict=True) if a)


# ----------------------------------------------------------------------------- criteria


@every_covariance
@pytest.mark.parametrize("law", ["free", "stationary"])
@pytest.mark.parametrize("s", [1, 3])
def test_criteria(covariance_type, law, s):
    """Bayes' and Akaike's criterion with the parameters written out."""
    d, n = 2, 60
    counts = {"full": s * 3, "diag": s * 2, "spherical": s, "tied": 3}
    p = s * (s - 1) + s * d + counts[covariance_type]
    if law == "free":
        p += s - 1
    assert p == ref.n_parameters(s, d, covariance_type, startprob=law)
    sequences = random_sequences(10, [35, 25], d)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(
        s, covariance_type=covariance_type, startprob=law, random_state=0, max_iter=10
    )
    with unfinished():
        model.fit(X, lengths=lengths)
    value = ref.loglik(sequences, parameters(model))
    assert_allclose(model.bic(X, lengths=lengths), -2 * value + p * np.log(n))
    assert_allclose(model.aic(X, lengths=lengths), -2 * value + 2 * p)
    ids = np.repeat([1, 0], lengths)
    assert_allclose(model.bic(X, sequence_id=ids), ref.bic(value, n, p))


def test_criteria_of_the_symmetric_model():
    """mu and zeta are its parameters."""
    X, _ = symmetric_data(11, 50, [1.0, 0.5, 0.2], 0.3)
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
    value = ref.loglik([X], parameters(model))
    assert_allclose(model.bic(X), -2 * value + 4 * np.log(50))
    assert_allclose(model.aic(X), -2 * value + 8)


def test_criterion_finds_the_number_of_states():
    """Three clear states."""
    sequences, _, _ = separated(12, n=600)
    X, lengths = rows(sequences)
    values = []
    for s in range(1, 6):
        model = BaumWelchHMM(s, random_state=0, n_init=3)
        with unfinished():
            model.fit(X, lengths=lengths)
        values.append(model.bic(X, lengths=lengths))
    assert np.argmin(values) == 2


# ------------------------------------------------------------------ blocks of one sweep


@pytest.mark.parametrize("zeta", [0.05, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("n", [1023, 6007])
def test_long_symmetric_sequence(n, zeta):
    """However a long sequence is cut for speed: the recursions row by row."""
    mu = np.array([0.7, 0.4])
    X, _ = symmetric_data(13, n, mu, zeta)
    model = symmetric_at(mu, zeta, 1.0)
    expected = ref.fields(X, mu, zeta, 1.0)
    P = model.predict_proba(X)
    assert_allclose(P[:, 1] - P[:, 0], expected["mean"], atol=1e-13)
    assert_allclose(model.score(X) * n, expected["loglik"], rtol=1e-12)
    new_mu, new_zeta = ref.fields_update([X], mu, zeta, 1.0, 0.99)
    model = fit_symmetric([X], mu, zeta, 1.0, mixing_bound=0.99)
    assert_allclose(model.means_[1], new_mu, rtol=1e-10)
    assert_allclose(model.transmat_[0, 0], new_zeta, rtol=1e-10)


def test_two_long_sequences():
    """Nothing flows from one to the other."""
    mu, zeta = np.array([0.7]), 0.9
    both = [symmetric_data(k, 3000, mu, zeta)[0] for k in (14, 15)]
    new_mu, new_zeta = ref.fields_update(both, mu, zeta, 1.0)
    model = fit_symmetric(both, mu, zeta, 1.0)
    assert_allclose(model.means_[1], new_mu, rtol=1e-10)
    assert_allclose(model.transmat_[0, 0], new_zeta, rtol=1e-10)


def test_general_fit_of_symmetric_data():
    """Free and symmetric structure agree on data of the latter."""
    mu = np.array([1.5, -0.5])
    X, z = symmetric_data(16, 4000, mu, 0.8)
    free = BaumWelchHMM(covariance_type="spherical", random_state=0).fit(X)
    tied = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
    assert_allclose(free.means_, tied.means_, atol=0.1)
    assert_allclose(free.transmat_, tied.transmat_, atol=0.05)
    for model in (free, tied):
        assert np.mean(model.predict(X) == (z > 0)) > 0.9


def test_start_is_used():
    """Each part of a given start matters, and none is changed by the fit."""
    theta = random_theta(17, 2, 2, "full")
    sequences = random_sequences(17, [20, 15], 2)
    kept = {name: value.copy() for name, value in theta.items()}
    base = fit_from(sequences, theta, 2)
    for name, value in kept.items():
        assert_array_equal(theta[name], value)
    for name in theta:
        other = {**theta, name: random_theta(18, 2, 2, "full")[name]}
        assert abs(fit_from(sequences, other, 2).history_[0] - base.history_[0]) > 1e-6
