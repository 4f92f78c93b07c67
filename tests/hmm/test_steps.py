"""Single updates against the sum over all state paths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref
from reference import hmm_more as more

from hmm.toy import (
    COVARIANCES,
    A,
    B,
    assert_parameters,
    at,
    fit_from,
    fit_symmetric,
    parameters,
    posteriors,
    random_sequences,
    random_theta,
    rows,
    symmetric_at,
    symmetric_data,
)

every_covariance = pytest.mark.parametrize("covariance_type", COVARIANCES)


def agrees(sequences, theta, covariance_type="full", rtol=1e-9, atol=1e-11, **options):
    """One update and both log-likelihoods are those of the reference."""
    reg = options.get("reg_covar", 0.0)
    window = options.get("window")
    model = fit_from(sequences, theta, covariance_type=covariance_type, **options)
    new = ref.em_update(sequences, theta, covariance_type, reg, window)
    assert_parameters(model, new, rtol, atol)
    expected = [ref.loglik(sequences, theta), ref.loglik(sequences, new)]
    assert_allclose(model.history_, expected, rtol=rtol)
    return model


# ------------------------------------------------------------------------------- E-step


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("s", [1, 2, 3, 4])
@every_covariance
def test_every_kind(covariance_type, s, d):
    """All numbers of states and kinds of covariance, several sequences."""
    theta = random_theta(10 * s + d, s, d, covariance_type)
    sequences = random_sequences(s, [4, 1, 3, 4, 2], d)
    agrees(sequences, theta, covariance_type)


@pytest.mark.parametrize("s", [1, 2, 3, 5, 8])
def test_longer_sequences(s):
    """More rows and more states than can be enumerated."""
    theta = random_theta(s, s, 2, "diag")
    sequences = random_sequences(s, [40, 17], 2)
    agrees(sequences, theta, "diag")


def test_many_short_sequences():
    """Many lengths in no order, some alike."""
    theta = random_theta(3, 3, 1, "diag")
    lengths = np.random.default_rng(0).integers(1, 6, size=40)
    agrees(random_sequences(3, lengths, 1), theta, "diag")


@pytest.mark.parametrize("s", [3, 4])
def test_zeros_in_the_transition_matrix(s):
    """Forbidden steps stay forbidden, and are not counted."""
    theta = random_theta(s, s, 2, zeros=s - 2)
    assert np.sum(theta["transmat"] == 0) == s - 2
    model = agrees(random_sequences(s, [4, 3], 2), theta)
    assert_array_equal(model.transmat_[theta["transmat"] == 0], 0.0)


def test_left_to_right():
    """A chain that only moves on, from a sure start."""
    theta = random_theta(5, 3, 2)
    theta["transmat"] = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    theta["startprob"] = np.array([1.0, 0.0, 0.0])
    sequences = random_sequences(5, [5, 4], 2)
    model = agrees(sequences, theta)
    assert_array_equal(model.startprob_, [1.0, 0.0, 0.0])
    assert_array_equal(model.transmat_[2], [0.0, 0.0, 1.0])
    X, lengths = rows(sequences)
    P = model.predict_proba(X, lengths=lengths)
    assert_allclose(P[[0, 5]], [[1.0, 0.0, 0.0]] * 2)


def test_cycle_without_choice():
    """A deterministic cycle: the only path has to be found."""
    theta = random_theta(6, 3, 1)
    theta["transmat"] = np.roll(np.eye(3), 1, axis=1)
    theta["startprob"] = np.array([0.2, 0.5, 0.3])
    agrees(random_sequences(6, [5, 5, 5], 1), theta)


@pytest.mark.parametrize("far", [1e3, 1e5])
def test_path_against_the_densities(far):
    """The rows suit a state that the chain cannot reach: no row of zeros is divided."""
    theta = random_theta(7, 2, 1)
    theta["means"] = np.array([[0.0], [far]])
    theta["covariances"] = np.ones((2, 1, 1))
    theta["transmat"] = np.eye(2)
    theta["startprob"] = np.array([0.5, 0.5])
    x = np.array([[far], [0.3], [-0.2], [0.1], [far]])
    model = at(theta, covariance_type="full")
    expected = ref.evaluate(x, theta)
    assert_allclose(model.score(x) * 5, expected["loglik"], rtol=1e-12)
    assert_allclose(model.predict_proba(x), expected["gamma"], atol=1e-12)
    assert_allclose(model.predict_proba(x)[:, 0], 1.0)
    value, path = model.decode(x)
    assert_allclose(value, expected["viterbi_log_prob"], rtol=1e-12)
    assert_array_equal(path, 0)
    steps = ref.smooth(ref.emissions(x, theta), [0.5, 0.5], np.eye(2))["conditional"]
    assert_allclose(model.score_samples(x), steps, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_scale(scale, covariance_type):
    """The unit of measurement shifts the log-likelihood and nothing else."""
    theta = random_theta(8, 3, 2, covariance_type)
    sequences = random_sequences(8, [5, 3], 2)
    base = fit_from(sequences, theta, covariance_type=covariance_type)
    scaled = {
        **theta,
        "means": scale * theta["means"],
        "covariances": scale**2 * theta["covariances"],
    }
    data = [scale * x for x in sequences]
    model = fit_from(data, scaled, covariance_type=covariance_type)
    assert_allclose(model.history_, base.history_ - 16 * np.log(scale), rtol=1e-9)
    assert_allclose(model.transmat_, base.transmat_, rtol=1e-8)
    assert_allclose(model.means_, scale * base.means_, rtol=1e-8)
    assert_allclose(model.covariances_, scale**2 * base.covariances_, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_wrong_scale(scale):
    """Rows far outside, or far inside, the scale of the model."""
    theta = random_theta(9, 3, 2)
    x = scale * random_sequences(9, [5], 2)[0]
    model = at(theta)
    expected = ref.evaluate(x, theta)
    assert_allclose(model.score(x) * 5, expected["loglik"], rtol=1e-9)
    assert_allclose(model.predict_proba(x), expected["gamma"], rtol=1e-6, atol=1e-12)
    assert_array_equal(model.decode(x)[1], expected["viterbi"])


@every_covariance
def test_clusters_far_apart(covariance_type):
    """Clusters 1e4 standard deviations apart keep six digits of their variances."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=60)
    X = 1e4 * z[:, None] + rng.normal(size=(60, 1))
    theta = {
        "startprob": np.array([0.5, 0.5]),
        "transmat": np.full((2, 2), 0.5),
        "means": np.array([[0.0], [1e4]]),
        "covariances": np.ones((2, 1, 1)),
    }
    model = fit_from([X], theta, 2, covariance_type=covariance_type)
    variances = np.array([X[z == j].var() for j in (0, 1)])
    if covariance_type == "tied":
        variances = np.full(2, variances @ np.bincount(z) / 60)
    assert_allclose(model.covariances_.ravel(), variances, rtol=1e-6)
    assert_allclose(model.score(X) * 60, ref.loglik([X], parameters(model)), rtol=1e-7)


def test_far_apart():
    """Means 1e3 standard deviations apart, and a location far from zero."""
    theta = random_theta(11, 3, 1)
    theta["means"] = np.array([[0.0], [1e3], [2e3]])
    theta["covariances"] = np.ones((3, 1, 1))
    x = np.array([[0.1], [1e3], [2e3 + 0.5], [1e3 - 1.0], [0.3], [-0.4]])
    agrees([x], theta, reg_covar=0.5)
    model = at(theta)
    assert_allclose(model.predict_proba(x), np.eye(3)[[0, 1, 2, 1, 0, 0]], atol=1e-14)


@every_covariance
@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_location(shift, covariance_type):
    """A far location costs no more digits than it must."""
    theta = random_theta(12, 2, 2, covariance_type)
    sequences = random_sequences(12, [5, 4], 2)
    base = fit_from(sequences, theta, covariance_type=covariance_type)
    moved = {**theta, "means": theta["means"] + shift}
    data = [x + shift for x in sequences]
    model = fit_from(data, moved, covariance_type=covariance_type)
    # The data themselves are rounded to about shift * 1e-16.
    tol = 100.0 * shift * 1e-16
    assert_allclose(model.history_, base.history_, rtol=1e3 * tol)
    assert_allclose(model.transmat_, base.transmat_, rtol=1e4 * tol)
    assert_allclose(model.means_ - shift, base.means_, atol=1e4 * tol)
    assert_allclose(model.covariances_, base.covariances_, atol=1e4 * tol)


def test_improbable_state_keeps_its_digits():
    """Small posteriors are not differences from one."""
    theta = ref.symmetric_theta([3.0], 0.6, 1.0)
    x = np.array([[4.0], [5.0], [4.5]])
    expected = ref.evaluate(x, theta)["gamma"][:, 0]
    assert expected.max() < 1e-9
    assert_allclose(at(theta).predict_proba(x)[:, 0], expected, rtol=1e-6)


def test_improbable_state_keeps_its_digits_symmetric():
    """The same for the closed forms."""
    theta = ref.symmetric_theta([3.0], 0.6, 1.0)
    x = np.array([[4.0], [5.0], [4.5]])
    expected = ref.evaluate(x, theta)["gamma"]
    found = symmetric_at([3.0], 0.6, 1.0).predict_proba(x)
    assert_allclose(found[:, 0], expected[:, 0], rtol=1e-6)
    found = symmetric_at([3.0], 0.6, 1.0).predict_proba(-x)
    assert_allclose(found[:, 1], expected[:, 0], rtol=1e-6)


# ------------------------------------------------------------------------------- M-step


@every_covariance
def test_added_variance(covariance_type):
    """`reg_covar` is added to the diagonal after the update."""
    theta = random_theta(13, 2, 3, covariance_type)
    sequences = random_sequences(13, [5, 5, 3], 3)
    agrees(sequences, theta, covariance_type, reg_covar=0.25)


@every_covariance
def test_shape_of_covariances(covariance_type):
    """Covariances are full symmetric matrices of their kind."""
    s, d = 3, 3
    theta = random_theta(14, s, d, covariance_type)
    model = fit_from(
        random_sequences(14, [30], d), theta, 3, covariance_type=covariance_type
    )
    C = model.covariances_
    assert C.shape == (s, d, d)
    assert_allclose(C, np.swapaxes(C, 1, 2))
    off = C[:, ~np.eye(d, dtype=bool)]
    if covariance_type in ("diag", "spherical"):
        assert_array_equal(off, 0.0)
    else:
        assert np.abs(off).min() > 0
    if covariance_type == "spherical":
        for c in C:
            assert_allclose(np.diag(c), c[0, 0], rtol=1e-14)
    if covariance_type == "tied":
        assert_array_equal(C[1:], C[:-1])


@every_covariance
def test_several_updates(covariance_type):
    """Five updates and all log-likelihoods of a history."""
    theta = random_theta(15, 2, 2, covariance_type)
    sequences = random_sequences(15, [8, 6, 10], 2)
    path, logliks = ref.em(sequences, theta, 5, covariance_type=covariance_type)
    model = fit_from(sequences, theta, 5, covariance_type=covariance_type)
    assert model.n_iter_ == 5
    assert_allclose(model.history_, logliks, rtol=1e-9)
    assert_parameters(model, path[-1], rtol=1e-7, atol=1e-10)


def test_stationary_start():
    """With the tied start law the transition matrix is the exact maximiser."""
    theta = random_theta(16, 3, 2)
    theta["startprob"] = ref.stationary(theta["transmat"])
    sequences = random_sequences(16, [5, 4, 4], 2)
    model = fit_from(sequences, theta, startprob="stationary")
    new = ref.em_update(sequences, theta)
    parts = [ref.evaluate(x, theta) for x in sequences]
    pairs = sum(part["xi"].sum(axis=0) for part in parts)
    first = sum(part["gamma"][0] for part in parts)
    best, value = more.stationary_m_step(pairs, first, theta["transmat"])
    assert np.abs(best - new["transmat"]).max() > 0.02
    new["transmat"], new["startprob"] = best, ref.stationary(best)
    assert_parameters(model, new, rtol=1e-5, atol=1e-6)
    found = more.transition_objective(pairs, first, model.transmat_)
    assert abs(found - value) < 1e-9
    expected = [ref.loglik(sequences, theta), ref.loglik(sequences, new)]
    assert_allclose(model.history_, expected, rtol=1e-8)
    longer = random_sequences(16, [30, 25], 2)
    model = fit_from(longer, theta, 20, startprob="stationary")
    law = model.startprob_
    assert_allclose(law @ model.transmat_, law, rtol=1e-10)


def test_single_rows_leave_the_transition_matrix():
    """Sequences of one row count for means and start law, not for A."""
    theta = random_theta(17, 2, 1)
    sequences = random_sequences(17, [1] * 9, 1)
    model = agrees(sequences, theta)
    assert_array_equal(model.transmat_, theta["transmat"])
    assert np.abs(model.startprob_ - theta["startprob"]).max() > 1e-3
    mixed = [*sequences, *random_sequences(18, [3, 4], 1)]
    agrees(mixed, theta)


# ------------------------------------------------------------------- symmetric, general


@pytest.mark.parametrize("zeta", [0.2, 0.5, 0.85])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_symmetric_and_general_posteriors(d, zeta):
    """The closed forms say what the general recursion says at the same parameters."""
    mu = np.linspace(1.0, 0.3, d)
    sequences = [symmetric_data(k, n, mu, zeta, 0.8)[0] for k, n in enumerate((40, 9))]
    X, lengths = rows(sequences)
    one = fit_symmetric(sequences, 0.7 * mu, 0.4, 0.8, 2)
    two = at(parameters(one))
    assert_allclose(one.means_[1] + one.means_[0], 0.0, atol=1e-15)
    for name in ("predict_proba", "score_samples", "predict", "score"):
        found = getattr(one, name)(X, lengths=lengths)
        expected = getattr(two, name)(X, lengths=lengths)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
    found, expected = one.decode(X, lengths=lengths), two.decode(X, lengths=lengths)
    assert_allclose(found[0], expected[0], rtol=1e-10)
    assert_array_equal(found[1], expected[1])
    expected = posteriors(sequences, parameters(one))
    found = one.predict_proba(X, lengths=lengths)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lengths", [[300], [1, 1, 1], [50, 1, 7, 120], [1]])
def test_symmetric_step_of_long_sequences(lengths):
    """One update through the closed forms of the reference."""
    mu, zeta, sigma = np.array([0.9, -0.4]), 0.3, 1.2
    sequences = [
        symmetric_data(n + k, n, mu, zeta, sigma)[0] for k, n in enumerate(lengths)
    ]
    new_mu, new_zeta = ref.fields_update(sequences, mu, 0.6, sigma)
    model = fit_symmetric(sequences, mu, 0.6, sigma)
    assert_allclose(model.means_[1], new_mu, rtol=1e-10)
    assert_allclose(model.transmat_[1, 1], new_zeta, rtol=1e-10)
    expected = sum(ref.fields(x, mu, 0.6, sigma)["loglik"] for x in sequences)
    assert_allclose(model.history_[0], expected, rtol=1e-11)


@pytest.mark.parametrize("zeta", [0.02, 0.98])
@pytest.mark.parametrize("bound", [0.3, 0.9])
def test_projection(zeta, bound):
    """A sticky, or a restless, chain is stopped at the edge of the feasible set."""
    x, _ = symmetric_data(1, 200, [3.0], zeta)
    model = fit_symmetric([x], [2.0], 0.5, 1.0, 30, mixing_bound=bound)
    expected = (1.0 + np.sign(zeta - 0.5) * bound) / 2.0
    assert_allclose(model.transmat_[0, 0], expected, rtol=1e-14)
    assert_allclose(model.rho_mix_, bound, rtol=1e-12)


@pytest.mark.parametrize("case", [A, B], ids=["A", "B"])
@pytest.mark.parametrize("seed", [0, 1])
def test_symmetric_small_cases(case, seed):
    """Random rows with the parameters of the worked examples, by enumeration."""
    d = len(case["mu"])
    sequences = random_sequences(seed, [5, 1, 3], d, scale=2.0)
    args = (case["mu"], case["zeta"], case["sigma"])
    path = ref.symmetric_em(sequences, *args, n_iter=3)
    model = fit_symmetric(sequences, *args, 3)
    assert_allclose(model.means_[1], path[-1][0], rtol=1e-10, atol=1e-13)
    assert_allclose(model.transmat_[0, 0], path[-1][1], rtol=1e-10)
    logliks = [
        ref.loglik(sequences, ref.symmetric_theta(m, z, case["sigma"])) for m, z in path
    ]
    assert_allclose(model.history_, logliks, rtol=1e-11)


# ------------------------------------------------------------------------------- window


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("s", [2, 3])
def test_window_posteriors(s, k):
    """Each row's posterior is the enumeration over its own window."""
    theta = random_theta(20 + s, s, 2)
    theta["covariances"] *= 9.0
    sequences = random_sequences(20, [6, 1, 4], 2)
    X, lengths = rows(sequences)
    model = at(theta, window=k)
    expected = posteriors(sequences, theta, window=k)
    found = model.predict_proba(X, lengths=lengths)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(found - posteriors(sequences, theta)).max() > 1e-7
    assert_array_equal(model.predict(X, lengths=lengths), expected.argmax(axis=1))
    plain = at(theta)
    for name in ("score", "score_samples"):
        one = getattr(model, name)(X, lengths=lengths)
        assert_allclose(one, getattr(plain, name)(X, lengths=lengths), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2])
@every_covariance
def test_window_step(covariance_type, k):
    """One truncated update of the general model."""
    theta = random_theta(23, 2, 2, covariance_type)
    sequences = random_sequences(23, [6, 1, 5], 2)
    agrees(sequences, theta, covariance_type, window=k)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("case", [A, B], ids=["A", "B"])
def test_window_step_symmetric(case, k):
    """One truncated update of the symmetric model."""
    sequences = [case["X"], *random_sequences(24, [6, 1], len(case["mu"]))]
    args = (case["mu"], case["zeta"], case["sigma"])
    mu, zeta = ref.symmetric_update(sequences, *args, window=k)
    model = fit_symmetric(sequences, *args, window=k)
    assert_allclose(model.means_[1], mu, rtol=1e-10)
    assert_allclose(model.transmat_[0, 0], zeta, rtol=1e-10)
    theta = ref.symmetric_theta(*args)
    assert_allclose(model.history_[0], ref.loglik(sequences, theta), rtol=1e-11)


@pytest.mark.parametrize("k", [6, 7, 100])
def test_wide_window(k):
    """A window of all rows is no window."""
    theta = random_theta(25, 3, 2)
    sequences = random_sequences(25, [6, 4], 2)
    one = fit_from(sequences, theta, 3, window=k)
    two = fit_from(sequences, theta, 3)
    assert_parameters(one, parameters(two), rtol=1e-10)
    one = fit_symmetric(sequences, [1.0, 0.5], 0.7, 1.0, 3, window=k)
    two = fit_symmetric(sequences, [1.0, 0.5], 0.7, 1.0, 3)
    assert_parameters(one, parameters(two), rtol=1e-10)
