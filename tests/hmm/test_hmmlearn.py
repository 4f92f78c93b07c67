"""Agreement with hmmlearn, its priors set to zero."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hmm.toy import COVARIANCES, G, at, fit_from, random_sequences, random_theta, rows

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
