"""Statistics of columns against NumPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.hmm import _columns


@pytest.mark.parametrize("d", [1, 3, 4, 200, 300])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000, 5001])
def test_columns(n, d):
    """Whatever number of rows fits side by side; far from 0 as well."""
    X = 1e6 + np.random.default_rng(n * d).normal(size=(n, d))
    for ufunc in (np.maximum, np.minimum):
        assert_array_equal(_columns.reduce_columns(ufunc, X), ufunc.reduce(X, axis=0))
    assert_allclose(_columns.means(X), X.mean(axis=0), rtol=1e-14)
    assert_allclose(_columns.variances(X), X.var(axis=0), rtol=1e-9, atol=1e-18)
    assert_array_equal(_columns.means(X[:, ::-1]).shape, (d,))
    assert_allclose(_columns.means(X[:, ::-1]), X.mean(axis=0)[::-1], rtol=1e-14)


def test_missing_entries():
    """A column with one has none of the statistics; the others keep theirs."""
    X = np.random.default_rng(0).normal(size=(500, 3))
    X[77, 1] = np.nan
    for found in (_columns.means(X), _columns.variances(X)):
        assert_array_equal(np.isnan(found), [False, True, False])
