"""Details that no other test saw: found by small changes of the code."""

from types import SimpleNamespace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skbounds.kernel_boost import EarlyStoppedKernelBoost
from skbounds.kernel_boost._flow_path import ClassLaw
from skbounds.kernel_boost._hashes import value_hashes
from skbounds.kernel_boost._loss_solver import scale_of


def test_hashes_of_sparse_rows():
    """Explicit zeros do not count, other entries do."""
    X = np.random.default_rng(0).integers(-1, 2, size=(40, 6)).astype(float)
    full = sparse.csr_array(
        (X.ravel(), np.tile(np.arange(6), 40), np.arange(0, 241, 6)), shape=X.shape
    )
    assert full.nnz == 240
    hashes = value_hashes(full, 7)
    assert_array_equal(hashes, value_hashes(sparse.csr_array(X), 7))
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0))


def test_shares_of_classes_are_kept_off_both_ends():
    law = SimpleNamespace(
        loss=SimpleNamespace(start=lambda shares: shares), with_offset=True
    )
    found = ClassLaw.constant_of(law, np.array([0.0, 0.4, 1.0]), 8.0)
    assert_allclose(found, [0.1, 0.4, 0.9])


def test_bend_is_that_of_huber():
    """At 1.345 robust deviations of the residuals of a robust fit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 1))
    y = np.sin(6.0 * X[:, 0]) + rng.normal(size=80)
    found = EarlyStoppedKernelBoost(loss="huber", gamma=5.0, random_state=0).fit(X, y)
    residuals = y - found.predict(X)
    ratio = found.delta_ / scale_of(residuals, np.ones(80))
    assert 1.1 < ratio < 1.6
