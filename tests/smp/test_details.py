"""Details that no other test saw: found by small changes of the code."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbounds.smp import SMPRegressor
from skbounds.smp._design import Design
from skbounds.smp._folds import is_wide
from skbounds.smp._logistic_chunks import _evaluate, _loss


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 3.0])
def test_features_are_divided_by_their_scale(scale):
    X = np.arange(6.0).reshape(3, 2)
    design = Design(2, center=np.array([1.0, 2.0]), intercept=1.0, scale=scale)
    expected = np.column_stack([X / scale - [1.0, 2.0], np.ones(3)])
    assert_allclose(design.transform(X), expected)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1000, 1500), False), ((1000, 2000), False), ((1000, 2001), True),
        ((3000, 2500), False), ((3000, 3001), True), ((500, 10**5), False),
        ((501, 10**5), True),
    ],
)  # fmt: skip
def test_wide_tables_have_more_columns_than_rows_and_many(shape, expected):
    assert is_wide(np.broadcast_to(0.0, shape)) is expected


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chunks_without_rows_add_nothing(n_classes):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n_classes - 1, 4))
    Z, codes = rng.normal(size=(5, 4)), np.arange(5) % n_classes
    for function, more in ((_evaluate, (theta, theta)), (_loss, (theta,))):
        full = function(Z, codes, np.ones(5), n_classes, *more)
        empty = function(Z[:0], codes[:0], np.ones(0), n_classes, *more)
        assert [np.shape(part) for part in empty] == [np.shape(part) for part in full]
        assert not any(np.any(part) for part in empty)


def test_targets_whose_squares_vanish_are_refused_in_words():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 1)), 1e-300 * rng.normal(size=12)
    with pytest.raises(ValueError, match=r"squares|too small"):
        SMPRegressor().fit(X, y).predict(X)
