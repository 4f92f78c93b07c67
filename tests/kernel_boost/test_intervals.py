"""Intervals by CV+: against refits and sorting, and their coverage."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.utils import shuffle

from kernel_boost import slow_references as slow
from kernel_boost.toy import KERNELS, at_the_last_step, gram, line, regression
from skbounds.kernel_boost import EarlyStoppedKernelBoost
from skbounds.kernel_boost._fold_paths import FoldFits
from skbounds.kernel_boost._intervals import cv_plus

LEVELS = (0.5, 0.8, 0.9)


def test_against_refits():
    """Bounds are those of refits by plain steps, sorted, for whole weights."""
    X, y = regression(0, n=40)
    new, _ = regression(1, n=15)
    w = np.random.default_rng(0).integers(1, 4, size=40).astype(float)
    numbers = np.arange(40) % 4
    held = np.where(numbers[:, None] == np.arange(4), w[:, None], 0.0)
    with at_the_last_step():
        model = EarlyStoppedKernelBoost(
            **KERNELS["rbf"], intervals=True, cv=PredefinedSplit(numbers),
            stopping=None, max_iter=150,
        ).fit(X, y, w)  # fmt: skip
    G = gram(X, **KERNELS["rbf"])
    fits = slow.kfold_squared(G, y, w, held, model.step_size_, 150)
    K = gram(new, X, **KERNELS["rbf"])
    predictions = np.column_stack([offset + K @ c for offset, c, _ in fits])
    residuals = y - np.array([fits[k][2][i] for i, k in enumerate(numbers)])
    for level in LEVELS:
        low, high = slow.cv_plus_interval(predictions, residuals, numbers, level, w)
        bounds = model.predict_interval(new, level)
        assert_allclose(bounds[:, 0], low, atol=1e-8)
        assert_allclose(bounds[:, 1], high, atol=1e-8)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 60),
    level=st.floats(0.05, 0.99),
    weighted=st.booleans(),
    ties=st.booleans(),
)
@settings(max_examples=80)
def test_ranks(seed, n, level, weighted, ties):
    """The bisection finds the value of the rank that sorting finds."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation(np.arange(n) % 3)
    residual, predictions = rng.normal(size=n), rng.normal(size=(7, 3)) * 1e3
    if ties:
        residual, predictions = np.round(residual), np.round(predictions)
    weight = rng.integers(1, 4, size=n) * 1.0 if weighted else np.ones(n)
    fits = FoldFits(None, np.zeros(3), fold, residual, weight)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = cv_plus(fits, predictions, level)
    low, high = slow.cv_plus_interval(predictions, residual, fold, level, weight)
    assert_allclose(bounds[:, 0], low, rtol=1e-12, atol=1e-12)
    assert_allclose(bounds[:, 1], high, rtol=1e-12, atol=1e-12)


def test_on_the_line():
    """Chains of the banded solver have the intervals of its dense twin."""
    X, y = line(2, n=80)
    cv = KFold(5, shuffle=True, random_state=0)
    options = {
        "kernel": "sobolev", "intervals": True, "cv": cv, "stopping": None,
        "max_iter": 60,
    }  # fmt: skip
    banded = EarlyStoppedKernelBoost(**options).fit(X, y)
    dense = EarlyStoppedKernelBoost(
        **options, solver="eigh", step_size=banded.step_size_
    ).fit(X, y)
    new = np.linspace(0.0, 2.5, 30)[:, None]
    assert "knots" in banded._path_
    assert_allclose(
        banded.predict_interval(new), dense.predict_interval(new), atol=1e-5
    )


@pytest.mark.parametrize("loss", ["huber", "absolute_error"])
def test_other_losses(loss):
    """Each row's residual is that of a fit without its fold for the same time."""
    X, y = regression(3, n=60)
    numbers = np.arange(60) % 3
    options = {**KERNELS["rbf"], "loss": "huber", "random_state": 0}
    with at_the_last_step():
        model = EarlyStoppedKernelBoost(
        **{**options, "loss": loss}, intervals=True, cv=PredefinedSplit(numbers),
        max_iter=32,
    ).fit(X, y)  # fmt: skip
    fits, T = model._folds_, model.n_iter_
    for k in range(3):
        train = numbers != k
        with at_the_last_step():
            one = EarlyStoppedKernelBoost(
                **options, delta=model.delta_, stopping=None, max_iter=T,
                step_size=model.step_size_ * train.mean() / 8,
            )  # fmt: skip
            one.set_params(max_iter=8 * T).fit(X[train], y[train])
        own = fits.residual[fits.fold == k]
        expected = y[~train] - one.predict(X[~train])
        assert np.sqrt(np.mean((own - expected) ** 2)) < 0.1 * np.std(y)


@pytest.mark.parametrize("relevance", [None, "auto"])
def test_coverage(relevance):
    """Intervals of level .9 cover nine tenths, with scales as well."""
    found = []
    for seed in range(6):
        X, f = make_friedman1(700, random_state=seed)
        y = f + np.random.default_rng(seed).normal(size=700)
        model = EarlyStoppedKernelBoost(
            relevance=relevance, intervals=True, random_state=0
        ).fit(X[:150], y[:150])
        low, high = model.predict_interval(X[150:], 0.9).T
        found.append(np.mean((low <= y[150:]) & (y[150:] <= high)))
    assert 0.87 < np.mean(found) < 0.95


def test_scales_widen():
    """By one over n for each scale that was chosen on the rows left out as well."""
    X, y = make_friedman1(120, noise=1.0, random_state=0)
    model = EarlyStoppedKernelBoost(intervals=True, random_state=0).fit(X, y)
    s = np.sqrt(model.relevance_)
    expected = 1.0 + s.sum() ** 2 / (s**2).sum() / 120
    given = EarlyStoppedKernelBoost(
        intervals=True, relevance=model.relevance_, gamma=1.0, random_state=0
    ).fit(X, y)
    width = lambda model: np.ptp(model.predict_interval(X[:1], 0.5))
    assert given._folds_.widening == 1.0
    assert_allclose(model._folds_.widening, expected)
    assert_array_equal(model._folds_.residual, given._folds_.residual)
    assert width(model) > width(given)


def test_coverage_with_many_scales():
    """300 features, 80 rows: without the widening .85 of new targets."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(480, 300))
        y = 3.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] + 0.5 * rng.normal(size=480)
        model = EarlyStoppedKernelBoost(intervals=True, random_state=0)
        low, high = model.fit(X[:80], y[:80]).predict_interval(X[80:], 0.9).T
        found.append(np.mean((low <= y[80:]) & (y[80:] <= high)))
    assert 0.87 < np.mean(found) < 0.96


def test_levels_are_nested():
    X, y = load_diabetes(return_X_y=True)
    X, y = shuffle(X, y, random_state=0)
    model = EarlyStoppedKernelBoost(intervals=True, random_state=0).fit(
        X[:200], y[:200]
    )
    widest = None
    for level in (0.95, 0.8, 0.5, 0.1):
        bounds = model.predict_interval(X[200:], level)
        assert (bounds[:, 0] <= bounds[:, 1]).all()
        if widest is not None:
            assert (bounds[:, 0] >= widest[:, 0]).all()
            assert (bounds[:, 1] <= widest[:, 1]).all()
        widest = bounds


def test_too_few_rows_are_told():
    X, y = regression(4, n=14)
    model = EarlyStoppedKernelBoost(intervals=True, gamma=0.6, random_state=0)
    model.fit(X, y)
    with pytest.warns(UserWarning, match="needs at least 19 rows, there are 14"):
        bounds = model.predict_interval(X, 0.95)
    assert_array_equal(bounds, np.tile([-np.inf, np.inf], (14, 1)))


def test_repetition():
    X, y = regression(5, n=40)
    w = np.random.default_rng(1).integers(1, 4, size=40)
    copies = np.repeat(np.arange(40), w)
    for loss in ("squared", "huber"):
        model = EarlyStoppedKernelBoost(
            **KERNELS["rbf"], loss=loss, intervals=True, stopping="cv"
        )
        one = clone(model).fit(X, y, w).predict_interval(X, 0.8)
        other = clone(model).fit(X[copies], y[copies]).predict_interval(X, 0.8)
        assert_allclose(other, one, atol=1e-7)


def test_ten_folds_or_those_of_a_splitter():
    X, y = regression(6, n=60)
    options = {"intervals": True, **KERNELS["rbf"]}
    for cv in (2, 5, None):
        model = EarlyStoppedKernelBoost(**options, cv=cv).fit(X, y)
        assert len(np.unique(model._folds_.fold)) == 10
    model = EarlyStoppedKernelBoost(**options, cv=KFold(3)).fit(X, y)
    assert len(np.unique(model._folds_.fold)) == 3
    with pytest.raises(ValueError, match="cover all rows; 10 of 60 are in none"):
        numbers = np.r_[np.full(10, -1), np.arange(50) % 2]
        EarlyStoppedKernelBoost(**options, cv=PredefinedSplit(numbers)).fit(X, y)


def test_where_there_are_none():
    X, y = regression(7, n=40, m=2)
    plain = EarlyStoppedKernelBoost().fit(X, y[:, 0])
    assert not hasattr(plain, "predict_interval")
    assert hasattr(EarlyStoppedKernelBoost(intervals=True), "predict_interval")
    with pytest.raises(ValueError, match="is for one output"):
        EarlyStoppedKernelBoost(intervals=True).fit(X, y)
    for loss in ("quantile", "poisson"):
        model = EarlyStoppedKernelBoost(loss=loss, intervals=True)
        assert not hasattr(model, "predict_interval")
        with pytest.raises(ValueError, match="'huber' or 'absolute_error'"):
            model.fit(X, np.abs(y[:, 0]))
    model = EarlyStoppedKernelBoost(intervals=True).fit(X, y[:, 0])
    for level in (0.0, 1.0, -1, "high"):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            model.predict_interval(X, level)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_interval(X), model.predict_interval(X))
