"""Branches that no other test takes."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.pac_bayes import PACBayesSVMEnsemble, _kernels
from skbounds.pac_bayes._kernels import scale_gamma
from skbounds.pac_bayes._svm_ensemble import _among
from skbounds.pac_bayes._svm_schemes import _calibrate


def test_gammas():
    X = np.random.default_rng(0).normal(size=(30, 4))
    assert scale_gamma("auto", X) == 0.25
    assert_allclose(scale_gamma("scale", X), 0.25 / X.var())
    assert scale_gamma(3, X) == 3.0


def test_typical_gamma_of_many_rows(monkeypatch):
    """Of some rows it is what it is of these, and all rows are alike here."""
    monkeypatch.setattr(_kernels, "_SIGEST_ROWS", 10)
    X = np.eye(40)
    # All squared distances are 2.
    assert_allclose(scale_gamma("sigest", X), 0.5)
    assert_allclose(scale_gamma("sigest", 3.0 * X), 0.5 / 9.0)


def test_scores_of_two_among_three_classes():
    """One column is that of the second class; what was not there is last."""
    scores = np.array([[2.0], [-1.0]])
    found = _among(scores, np.array([0, 2]), 3)
    assert_array_equal(found, [[-2.0, -3.0, 2.0], [1.0, -2.0, -1.0]])
    assert_array_equal(found.argmax(axis=1), [2, 0])


def test_scores_of_one_of_two_classes():
    scores = np.array([[2.0]])
    assert_array_equal(_among(scores, np.array([0]), 2), [[-2.0]])
    assert_array_equal(_among(scores, np.array([1]), 2), [[2.0]])


def test_calibration_without_scores_of_a_voter():
    truth = np.array([0, 1, 0, 1])
    assert _calibrate(None, np.ones(2)) is None
    assert _calibrate(({0: truth}, truth), np.array([0.5, 0.5])) is None


def test_rows_to_certify_that_no_kernel_matrix_has():
    K, y = np.eye(20), np.arange(20) % 2
    model = PACBayesSVMEnsemble(kernel="precomputed", refit=True)
    with pytest.raises(ValueError, match="refit=True needs the kernel matrix of all"):
        model.fit(K, y, X_cert=K, y_cert=y)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_refitted_on_rows_to_certify(kind):
    """Then the members are of all rows, and nothing is certified any more."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0.0).astype(int)
    model = PACBayesSVMEnsemble(refit=True, random_state=0)
    model.fit(kind(X[:40]), y[:40], X_cert=kind(X[40:]), y_cert=y[40:])
    assert not model.certified_
    assert "not certified: refitted on the certification rows" in model._knowledge()
    assert (model.predict(kind(X)) == y).mean() > 0.9
