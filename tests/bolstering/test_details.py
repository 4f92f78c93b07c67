"""Details that no other test saw: found by small changes of the code."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.bolstering._parts._deals import SCHEMES, _dealer
from skbounds.bolstering._parts._leave_one_out import _root_of_hat_matrix
from skbounds.bolstering._parts._matching import groups_of_four, match_pairs
from skbounds.bolstering._smoothed._estimate import _warn_of_increment


@pytest.mark.parametrize("n", [2, 5, 8, 11])
def test_rows_without_coordinates_are_matched(n):
    """Any two of them, each once."""
    pairs, left = match_pairs(np.empty((n, 0)))
    assert pairs.shape == (n // 2, 2) and len(left) == n % 2
    assert_array_equal(np.sort(np.append(pairs, left)), np.arange(n))
    groups, left = groups_of_four(np.empty((n, 0)))
    assert groups.shape == (n // 4, 4)
    assert_array_equal(np.sort(np.append(groups, left)), np.arange(n))


def test_hat_matrix_of_columns_that_are_zero():
    """Nothing is projected on."""
    assert _root_of_hat_matrix(np.zeros((5, 2)), 0.0).shape == (5, 0)
    X = np.column_stack([np.arange(5.0), np.zeros(5)])
    root = _root_of_hat_matrix(X, 0.0)
    x = X[:, :1]
    assert_allclose(root @ root.T, x @ x.T / (x.T @ x), atol=1e-15)


@pytest.mark.parametrize("n", range(8, 14))
def test_rows_without_coordinates_are_dealt(n):
    """Each to one of four folds, of sizes that differ by one at most."""
    codes = np.arange(n) % 2
    table = SimpleNamespace(n_rows=n, points=lambda *args, **kwargs: np.empty((n, 0)))
    rows = SimpleNamespace(table=table, codes=codes, weight=None)
    for name in ("halves", "matched"):
        folds = _dealer(SCHEMES[name], rows, True)(np.random.default_rng(0))
        sizes = np.bincount(folds, minlength=4)
        assert len(sizes) == 4 and np.ptp(sizes) <= 1


def test_folds_are_balanced_by_class_where_their_scheme_says_so():
    """A class of six rows has as many in each fold as any two folds can have."""
    n = 60
    codes = np.repeat([0, 1], [54, 6])
    X = np.random.default_rng(0).normal(size=(n, 2))
    table = SimpleNamespace(n_rows=n, points=lambda *args, **kwargs: X)
    rows = SimpleNamespace(table=table, codes=codes, weight=None)
    for name, scheme in SCHEMES.items():
        if not scheme.by_class or scheme.kind == "groups":
            continue
        for seed in range(20):
            folds = _dealer(scheme, rows, True)(np.random.default_rng(seed))
            rare = np.bincount(folds[codes == 1], minlength=scheme.n_folds)
            assert np.ptp(rare) <= 1, name
    assert [n for n, s in SCHEMES.items() if not s.by_class] == [
        "matched", "random", "groups"
    ]  # fmt: skip


def test_warning_of_increments_is_in_units_of_the_variance():
    y = np.array([[0.0], [0.0], [0.0], [10.0]])
    rows = SimpleNamespace(matrix=y, weight=np.ones(4))
    variance = y.var()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_of_increment(0.49 * variance, rows)
    with pytest.warns(UserWarning, match=r"more than 0\.5 of the variance"):
        _warn_of_increment(0.51 * variance, rows)
