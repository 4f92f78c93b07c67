"""Branches that no other test takes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skbounds.smp import _folds
from skbounds.smp._bounds import logistic_bound
from skbounds.smp._calibration import intercept_shift
from skbounds.smp._excess import mean_and_error
from skbounds.smp._folds import spectral_scale
from skbounds.smp._grid import feature_scale
from skbounds.smp._logistic_chunks import _loss
from skbounds.smp._refits import logistic_strength, penalty_root


def test_bound_where_all_rows_are_zero():
    """Then c(v) = e^v (e^v - 1) / v is its limit, 1."""
    found = logistic_bound(0.5, 0.1, 99.0, 0.0, 2.0)
    assert_allclose(found, 0.5 / 100.0 + 0.5 * 0.1 * 4.0)
    near = logistic_bound(0.5, 0.1, 99.0, 1e-9, 2.0)
    assert_allclose(near, found, rtol=1e-6)


def test_mean_that_is_not_finite():
    mean, error = mean_and_error(np.array([1.0, np.inf]), np.ones(2))
    assert mean == np.inf
    assert np.isnan(error)
    mean, error = mean_and_error(np.array([1.0, 3.0]), np.ones(2))
    assert (mean, error) == (2.0, np.sqrt(0.5))


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_scales_of_rows_without_spread(kind):
    weight = np.ones(6)
    for scale in (feature_scale, spectral_scale):
        assert scale(kind(np.zeros((6, 2))), weight, centred=False) == 1.0
        assert scale(kind(np.full((6, 2), 3.0)), weight, centred=True) == 1.0
        assert_allclose(
            scale(kind(np.full((6, 2), 3.0)), weight, centred=False),
            3.0 * (1.0 if scale is feature_scale else np.sqrt(2.0)),
        )


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("centred", [True, False])
def test_spectrum_of_the_covariance(kind, centred):
    X, weight = np.random.default_rng(0).normal(size=(30, 4)), np.arange(1.0, 31.0)
    share = weight / weight.sum()
    middle = X - share @ X if centred else X
    values = np.linalg.eigvalsh(middle.T @ (share[:, None] * middle))
    found = spectral_scale(kind(X), weight, centred=centred)
    assert_allclose(found, np.sqrt((values**2).sum() / values.sum()))


def test_spectrum_of_many_rows(monkeypatch):
    """From some of them, which here are as good as all."""
    X = np.tile([[3.0, 0.0], [0.0, 3.0]], (20, 1))
    monkeypatch.setattr(_folds, "_SPECTRUM_ROWS", 7)
    one = spectral_scale(np.tile([[3.0, 0.0]], (20, 1)), np.ones(20), centred=False)
    assert_allclose(one, 3.0)
    # Of k and 7 - k rows: the largest eigenvalues are those of two directions.
    share = np.arange(8) / 7.0
    possible = 3.0 * np.sqrt(share**2 + (1.0 - share) ** 2)
    found = spectral_scale(X, np.ones(40), centred=False)
    assert np.isclose(found, possible).any()


def test_shift_of_weights_that_differ_by_many_orders():
    log_odds, codes = np.zeros(2), np.array([0, 1])
    assert_allclose(intercept_shift(log_odds, codes, np.array([1.0, 3.0])), np.log(3.0))
    found = intercept_shift(log_odds, codes, np.array([1e-300, 1.0]))
    assert_allclose(found, 300.0 * np.log(10.0), rtol=1e-6)


def test_loss_of_no_rows():
    total, size = _loss(np.empty((0, 2)), np.empty(0, int), np.empty(0), 2, None)
    assert total == 0.0
    assert size == 0.0


def test_strength_of_penalties_that_are_not_of_squares():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    ridge = LogisticRegression(C=0.5).fit(X, y)
    assert logistic_strength(ridge) == 0.5
    without = LogisticRegression(C=0.5).fit(X, y)
    without.penalty = "l1"
    assert logistic_strength(without) is None
    assert penalty_root(without, 20.0).shape == (0,)


def test_counts_without_an_intercept():
    from skbounds import SMPRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    model = SMPRegressor(PoissonRegressor(fit_intercept=False), method="influence").fit(
        X, y
    )
    plain = PoissonRegressor(fit_intercept=False).fit(X, y)
    assert_array_equal(model.estimator_.coef_, plain.coef_)
    assert model._features(X).shape == (60, 2)


def test_categories_without_weight():
    da = pytest.importorskip("dask.array", reason="extra scale not installed")
    from skbounds import GaussianSMP, MultinomialSMP

    X = da.ones((6, 1), chunks=3)
    for model in (MultinomialSMP(), GaussianSMP()):
        with pytest.raises(ValueError, match=r"[Ww]eight"):
            model.fit(X, sample_weight=da.zeros(6, chunks=3))
