"""Details that no other test saw: found by small changes of the code."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import hmm as ref
from reference import hmm_more as more

from hmm.toy import parameters
from skbounds.hmm import BaumWelchHMM, _em
from skbounds.hmm._fit import _best
from skbounds.hmm._mixing import contraction_rate
from skbounds.hmm._starts import Guesses


def test_rate_of_no_changes():
    """Changes that are all zero contract at no rate."""
    assert np.isnan(contraction_rate([0.0, 0.0, 0.0, 0.0]))
    assert np.isnan(contraction_rate([1.0, 1.0]))
    assert_allclose(contraction_rate([1.0, 0.5, 0.25, 0.0, 0.0]), 0.5)


def test_covariances_that_rounding_made_asymmetric():
    """Zeros elsewhere do not make it an error; real asymmetry is one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    good = np.repeat(np.diag([1.0, 2.0, 3.0])[None], 2, axis=0)
    good[:, 0, 1], good[:, 1, 0] = 0.3, 0.3 + 1e-12
    options = {"n_components": 2, "max_iter": 2, "tol": 0.0, "random_state": 0}
    with pytest.warns(UserWarning):
        BaumWelchHMM(covariances_init=good, **options).fit(X)
    bad = good.copy()
    bad[1, 0, 1] += 1e-3
    with pytest.raises(ValueError, match="covariances_init must be symmetric"):
        BaumWelchHMM(covariances_init=bad, **options).fit(X)


def test_standard_errors_of_the_start():
    """Of many sequences, by differences of the log-likelihood of another program."""
    theta = {
        "startprob": np.array([0.6, 0.4]),
        "transmat": np.array([[0.8, 0.2], [0.3, 0.7]]),
        "means": np.array([[0.0], [2.5]]),
        "covariances": np.array([[[1.0]], [[0.7]]]),
    }
    rng = np.random.default_rng(0)
    sequences = [ref.sample(n, theta, rng)[0] for n in [12, 9, 15] * 6]
    model = BaumWelchHMM(
        covariance_type="full", reg_covar=0.0, tol=1e-14, max_iter=5000, random_state=0
    ).fit(np.vstack(sequences), lengths=[len(x) for x in sequences])
    assert 0.05 < model.startprob_[0] < 0.95
    (pack, unpack), _ = more.free_parameters(parameters(model), "gaussian", "full")

    def unpack_all(v):
        return {**unpack(v[:-1]), "startprob": np.array([v[-1], 1.0 - v[-1]])}

    free = (lambda theta: np.append(pack(theta), theta["startprob"][0]), unpack_all)
    V = np.linalg.inv(more.information(sequences, parameters(model), "gaussian", free))
    error = np.sqrt(V[-1, -1])
    assert_allclose(model.standard_errors_["startprob"], [error, error], rtol=2e-6)
    errors = model.standard_errors_["means"]
    assert_allclose(errors, np.sqrt(np.diag(V))[:2, None], rtol=2e-6)


def test_memberships_of_a_start_are_laws():
    guesses = SimpleNamespace(hmm=SimpleNamespace(n_components=3))
    labels = np.array([0, 2, 2, 1])
    found = Guesses._memberships(guesses, labels)
    assert_allclose(found.sum(axis=1), 1.0)
    assert (found > 0.0).all() and (found.argmax(axis=1) == labels).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_of_several_groups(monkeypatch, n_jobs):
    """The same fit whether sequences are in one group or in seven."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(420, 1)), axis=0) % 5.0
    lengths = [60] * 7

    def fit():
        with pytest.warns(UserWarning):
            return BaumWelchHMM(
                n_components=2, max_iter=3, tol=0.0, random_state=0, n_jobs=n_jobs
            ).fit(X, lengths=lengths)

    whole = fit()
    monkeypatch.setattr(_em, "_GROUP_ROWS", 50)
    cut = fit()
    for name in ("startprob_", "transmat_", "means_", "covariances_"):
        assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9)


def test_the_best_start_is_the_one_that_ended_best():
    ends = {"slow": [-9.0, -5.0, -4.0], "fast": [-6.0, -3.0, -4.5]}
    climbs = [SimpleNamespace(name=name, history=end) for name, end in ends.items()]
    assert _best(climbs, lambda climb: [], None).name == "slow"
