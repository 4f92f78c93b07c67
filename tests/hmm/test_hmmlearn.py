"""Agreement with hmmlearn, its priors set to zero."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hmm.toy import COVARIANCES, G, at, fit_from, random_sequences, random_theta, rows
from skbounds.hmm import BaumWelchHMM

peer = pytest.importorskip("hmmlearn.hmm")


def their_model(theta, covariance_type, n_iter=1):
    """Their estimator with these parameters and no prior."""
    model = peer.GaussianHMM(
        len(theta["means"]),
        covariance_type,
        min_covar=0.0,
        startprob_prior=1.0,
        transmat_prior=1.0,
        means_weight=0.0,
        covars_prior=0.0,
        covars_weight=0.0,
        n_iter=n_iter,
        tol=-np.inf,
        init_params="",
        implementation="log",
    )
    C = theta["covariances"]
    model.n_features = theta["means"].shape[1]
    model.startprob_ = theta["startprob"]
    model.transmat_ = theta["transmat"]
    model.means_ = theta["means"]
    model.covars_ = {
        "full": C,
        "diag": np.diagonal(C, axis1=1, axis2=2),
        "spherical": C[:, 0, 0],
        "tied": C[0],
    }[covariance_type]
    return model


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("s", [2, 3])
def test_outputs(covariance_type, s):
    """Likelihood, posteriors and both decoders."""
    theta = random_theta(s, s, 2, covariance_type)
    X, lengths = rows(random_sequences(s, [30, 12, 1], 2))
    theirs, ours = their_model(theta, covariance_type), at(theta)
    assert_allclose(
        ours.score(X, lengths=lengths) * len(X), theirs.score(X, lengths), rtol=1e-10
    )
    expected = theirs.predict_proba(X, lengths)
    assert_allclose(ours.predict_proba(X, lengths=lengths), expected, atol=1e-9)
    value, path = theirs.decode(X, lengths, algorithm="viterbi")
    assert_allclose(ours.decode(X, lengths=lengths)[0], value, rtol=1e-10)
    assert_array_equal(ours.decode(X, lengths=lengths)[1], path)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_updates(covariance_type):
    """One update and ten."""
    theta = random_theta(4, 2, 2, covariance_type)
    sequences = random_sequences(4, [40, 25], 2)
    X, lengths = rows(sequences)
    for n_iter in (1, 10):
        theirs = their_model(theta, covariance_type, n_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(X, lengths)
        ours = fit_from(sequences, theta, n_iter, covariance_type=covariance_type)
        assert_allclose(ours.means_, theirs.means_, rtol=1e-6, atol=1e-8)
        assert_allclose(ours.transmat_, theirs.transmat_, rtol=1e-6, atol=1e-8)
        assert_allclose(ours.startprob_, theirs.startprob_, rtol=1e-6, atol=1e-8)
        # Their spherical covariances come once per state and feature.
        expected = theirs.covars_[:: len(theirs.covars_) // 2]
        assert_allclose(ours.covariances_, expected, rtol=1e-6, atol=1e-8)


def test_worked_example():
    """Case G of the specification."""
    X, lengths = rows(G["sequences"])
    theirs = their_model(G["theta"], "full")
    assert_allclose(theirs.score(X, lengths), G["loglik"], rtol=1e-11)


@pytest.mark.parametrize("n_iter", [1, 10])
def test_counts(n_iter):
    """Poisson outputs, their prior without weight."""
    rng = np.random.default_rng(0)
    X = rng.poisson([2.0, 5.0], size=(60, 2))
    rates = np.array([[1.0, 6.0], [3.0, 4.0]])
    A = np.array([[0.7, 0.3], [0.4, 0.6]])
    theirs = peer.PoissonHMM(
        2, lambdas_prior=0.0, lambdas_weight=0.0, n_iter=n_iter, tol=-np.inf,
        init_params="",
    )  # fmt: skip
    theirs.startprob_, theirs.transmat_, theirs.lambdas_ = np.full(2, 0.5), A, rates
    ours = BaumWelchHMM(
        2, emission="poisson", means_init=rates, transmat_init=A, tol=0.0,
        max_iter=n_iter,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, [35, 25])
        ours.fit(X, lengths=[35, 25])
    assert_allclose(ours.means_, theirs.lambdas_, rtol=1e-7)
    assert_allclose(ours.transmat_, theirs.transmat_, rtol=1e-7)
    expected = theirs.predict_proba(X, [35, 25])
    assert_allclose(ours.predict_proba(X, lengths=[35, 25]), expected, atol=1e-9)


@pytest.mark.parametrize("n_iter", [1, 10])
def test_categories(n_iter):
    """One column of four categories."""
    rng = np.random.default_rng(1)
    X = rng.integers(4, size=(60, 1))
    table = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.2, 0.5]])
    A = np.array([[0.7, 0.3], [0.4, 0.6]])
    theirs = peer.CategoricalHMM(2, n_iter=n_iter, tol=-np.inf, init_params="")
    theirs.startprob_, theirs.transmat_ = np.full(2, 0.5), A
    theirs.emissionprob_, theirs.n_features = table, 4
    ours = BaumWelchHMM(
        2, emission="categorical", emission_proba_init=table, transmat_init=A, tol=0.0,
        max_iter=n_iter,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, [35, 25])
        ours.fit(X, lengths=[35, 25])
    assert_allclose(ours.emission_proba_[0], theirs.emissionprob_, rtol=1e-7)
    assert_allclose(ours.transmat_, theirs.transmat_, rtol=1e-7)
    assert_allclose(
        ours.score(X, lengths=[35, 25]) * 60, theirs.score(X, [35, 25]), rtol=1e-9
    )
