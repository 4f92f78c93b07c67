"""Decoding, scores and samples of fitted models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref
from scipy.stats import chi2

from hmm.toy import (
    COVARIANCES,
    assert_parameters,
    at,
    fit_from,
    posteriors,
    random_sequences,
    random_theta,
    rows,
    separated,
    symmetric_at,
)
from skbounds.hmm import BaumWelchHMM


@pytest.mark.parametrize("s", [1, 2, 3, 4])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_all_outputs(s, covariance_type):
    """Everything that can be asked, by enumeration."""
    theta = random_theta(s, s, 2, covariance_type)
    sequences = random_sequences(s, [4, 3, 1, 4], 2)
    X, lengths = rows(sequences)
    ids = np.repeat(["d", "a", "c", "b"], lengths)
    model = at(theta, covariance_type=covariance_type)
    found = [ref.evaluate(x, theta, method="paths") for x in sequences]
    total = sum(f["loglik"] for f in found)
    gamma = np.vstack([f["gamma"] for f in found])
    steps = [
        ref.enumerate_conditionals(
            ref.emissions(x, theta), theta["startprob"], theta["transmat"]
        )
        for x in sequences
    ]
    for told in ({"lengths": lengths}, {"sequence_id": ids}):
        P = model.predict_proba(X, **told)
        assert_allclose(P, gamma, rtol=1e-9, atol=1e-13)
        assert_array_equal(model.predict(X, **told), gamma.argmax(axis=1))
        assert_allclose(model.score(X, **told), total / 12, rtol=1e-11)
        assert_allclose(model.score(X, None, **told), total / 12, rtol=1e-11)
        each = model.score_samples(X, **told)
        assert_allclose(each, np.concatenate(steps), rtol=1e-9, atol=1e-12)
        value, path = model.decode(X, **told)
        expected = sum(f["viterbi_log_prob"] for f in found)
        assert_allclose(value, expected, rtol=1e-11)
        assert_array_equal(path, np.concatenate([f["viterbi"] for f in found]))
        assert isinstance(value, float)
        assert np.issubdtype(path.dtype, np.integer)


def test_two_decoders():
    """The likeliest path is not the path of likeliest states."""
    differ = 0
    for seed in range(6):
        theta = random_theta(seed, 3, 1, "diag")
        x = random_sequences(seed, [40], 1)[0]
        best = ref.evaluate(x, theta)
        one = at(theta, decoder="map").predict(x)
        two = at(theta, decoder="viterbi").predict(x)
        assert_array_equal(one, best["gamma"].argmax(axis=1))
        assert_array_equal(two, best["viterbi"])
        assert_array_equal(at(theta).decode(x)[1], best["viterbi"])
        differ += np.any(one != two)
    assert differ > 0


def test_path_respects_zeros():
    """Forbidden steps are not decoded, however well a row fits."""
    theta = random_theta(7, 3, 1)
    theta["transmat"] = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    theta["startprob"] = np.array([0.0, 0.5, 0.5])
    theta["means"] = np.array([[0.0], [5.0], [10.0]])
    theta["covariances"] = np.ones((3, 1, 1))
    x = np.random.default_rng(0).uniform(0, 10, size=(60, 1))
    value, path = at(theta).decode(x)
    assert path[0] != 0
    assert (theta["transmat"][path[:-1], path[1:]] > 0).all()
    expected = ref.evaluate(x, theta)
    assert_array_equal(path, expected["viterbi"])
    assert_allclose(value, expected["viterbi_log_prob"], rtol=1e-12)


# One row rules a state out beyond double precision, and later ones rule it in.
IDENTITY, ONWARDS = np.eye(2), np.array([[0.9, 0.1], [0.0, 1.0]])
LATE = {
    "no way across": (IDENTITY, [0.5, 0.5], [-15.0, 30.0, 30.0, 30.0, 30.0, 30.0]),
    "backwards": (IDENTITY, [0.5, 0.5], [30.0, 30.0, 30.0, 30.0, 30.0, -15.0]),
    "in the middle": (IDENTITY, [0.5, 0.5], [30.0, 30.0, -15.0, 30.0, 30.0]),
    "no way back": (ONWARDS, [1.0, 0.0], [0.0, 45.0, 0.0, 0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("kind", LATE)
def test_evidence_that_comes_late(kind):
    """A state that one row makes improbable beyond double precision may still win."""
    A, law, x = LATE[kind]
    theta = {
        "startprob": np.array(law),
        "transmat": A,
        "means": np.array([[0.0], [30.0]]),
        "covariances": np.ones((2, 1, 1)),
    }
    x = np.array(x)[:, None]
    expected = ref.evaluate(x, theta)
    model = at(theta)
    value, path = model.decode(x)
    assert_allclose(value, expected["viterbi_log_prob"], rtol=1e-12)
    assert_array_equal(path, expected["viterbi"])
    assert_allclose(model.score(x) * len(x), expected["loglik"], rtol=1e-10)
    steps = ref.smooth(ref.emissions(x, theta), law, A)["conditional"]
    assert_allclose(model.score_samples(x), steps, rtol=1e-9, atol=1e-9)
    assert_allclose(model.predict_proba(x), expected["gamma"], atol=1e-10)
    wide = at(theta, window=len(x))
    assert_allclose(wide.predict_proba(x), expected["gamma"], atol=1e-10)
    new = ref.em_update([x], theta, reg=0.1)
    model = fit_from([x], theta, reg_covar=0.1)
    assert_parameters(model, new, rtol=1e-9, atol=1e-10)


def test_long_sequence():
    """Nothing over- or underflows along 50000 rows."""
    theta = random_theta(8, 3, 2)
    model = at(theta)
    X, _ = model.sample(50_000, random_state=0)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    # A stretch in the middle knows its neighbourhood only.
    part = slice(24_900, 25_100)
    near = ref.smooth(
        ref.emissions(X[part], theta), ref.stationary(theta["transmat"]),
        theta["transmat"],
    )  # fmt: skip
    assert_allclose(P[part][80:120], near["gamma"][80:120], atol=1e-6)
    assert_allclose(
        model.score_samples(X)[part][80:120], near["conditional"][80:120], atol=1e-6
    )


def test_rows_before_do_not_change():
    """`score_samples` looks back only."""
    theta = random_theta(9, 3, 2)
    x = random_sequences(9, [20], 2)[0]
    model = at(theta)
    each = model.score_samples(x)
    for stop in (1, 7, 19):
        assert_allclose(model.score_samples(x[:stop]), each[:stop], rtol=1e-10)


# ------------------------------------------------------------------------------ samples


def test_sample_shapes_and_seeds():
    """Rows and states; the same seed, the same draw."""
    model = at(random_theta(10, 3, 2))
    X, z = model.sample(7, random_state=0)
    assert X.shape == (7, 2)
    assert z.shape == (7,)
    assert np.issubdtype(z.dtype, np.integer)
    again = model.sample(7, random_state=0)
    assert_array_equal(X, again[0])
    assert_array_equal(z, again[1])
    assert np.abs(model.sample(7, random_state=1)[0] - X).max() > 1e-6
    one = model.sample(1, random_state=np.random.RandomState(3))
    assert one[0].shape == (1, 2)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_law_of_samples(covariance_type):
    """Transitions, outputs and first states follow the model's laws."""
    s, n = 3, 30_000
    theta = random_theta(11, s, 2, covariance_type)
    theta["transmat"][0] = [0.5, 0.5, 0.0]
    model = at(theta, covariance_type=covariance_type)
    X, z = model.sample(n, random_state=0)
    for j in range(s):
        own = z == j
        gaps = X[own] - theta["means"][j]
        C = theta["covariances"][j]
        # Chi-square statistics of the mean and of the second moments.
        m = own.sum()
        statistic = m * gaps.mean(axis=0) @ np.linalg.solve(C, gaps.mean(axis=0))
        assert statistic < chi2.ppf(1 - 1e-5, 2)
        moments = gaps.T @ gaps / m
        error = np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / m)
        assert (np.abs(moments - C) < 4.5 * error).all()
        after = z[1:][z[:-1] == j]
        shares = np.bincount(after, minlength=s) / len(after)
        P = theta["transmat"][j]
        error = np.sqrt(P * (1 - P) / len(after))
        assert (np.abs(shares - P) <= 4.5 * error).all()
    rng = np.random.RandomState(1)
    first = [model.sample(1, random_state=rng)[1][0] for _ in range(3000)]
    shares = np.bincount(first, minlength=s) / 3000
    p = theta["startprob"]
    assert (np.abs(shares - p) <= 4.5 * np.sqrt(p * (1 - p) / 3000)).all()


@pytest.mark.slow
def test_law_of_symmetric_samples():
    """The symmetric model draws from -mu and mu."""
    model = symmetric_at([1.0, -0.5], 0.8, 0.7)
    X, z = model.sample(20_000, random_state=0)
    sign = 2.0 * z - 1.0
    assert abs(sign.mean()) < 5 * np.sqrt(9 / 20_000)
    assert_allclose((sign[:, None] * X).mean(axis=0), [1.0, -0.5], atol=0.025)
    gaps = X - sign[:, None] * np.array([1.0, -0.5])
    assert_allclose(np.cov(gaps.T), 0.49 * np.eye(2), atol=0.025)
    assert_allclose(np.mean(z[1:] == z[:-1]), 0.8, atol=0.013)


@pytest.mark.slow
def test_score_is_the_entropy_rate():
    """No other model scores better on a long sample, on average."""
    theta = random_theta(12, 2, 2)
    model = at(theta)
    X, _ = model.sample(20_000, random_state=0)
    for seed in range(5):
        other = {
            **theta,
            "means": theta["means"] + 0.2 * random_theta(seed, 2, 2)["means"],
        }
        assert model.score(X) > at(other).score(X)


def test_more_rows_find_more():
    """A refit on a sample of the fitted model finds it again."""
    sequences, _, _ = separated(13)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(3, random_state=0).fit(X, lengths=lengths)
    drawn, z = model.sample(5000, random_state=0)
    again = BaumWelchHMM(3, random_state=0).fit(drawn)
    assert_allclose(again.means_, model.means_, atol=0.2)
    assert_allclose(again.transmat_, model.transmat_, atol=0.06)
    assert np.mean(again.predict(drawn) == z) > 0.97


def test_improvement_by_context():
    """Neighbouring rows help: fewer wrong states than row by row."""
    model = symmetric_at([0.8], 0.95, 1.0)
    X, z = model.sample(4000, random_state=0)
    alone = model.predict(X, lengths=[1] * len(X))
    assert np.mean(model.predict(X) != z) < 0.6 * np.mean(alone != z)
    assert_allclose(
        model.predict_proba(X[:8]),
        posteriors([X[:8]], ref.symmetric_theta([0.8], 0.95, 1.0)),
        rtol=1e-9,
    )
