"""``class_weight`` where the mathematics has it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from skbounds import (
    EarlyStoppedKernelBoostClassifier,
    SMPLogisticRegression,
    SMPLogisticRegressionCV,
)
from skbounds._weights import class_factors

ESTIMATORS = [
    SMPLogisticRegression(),
    SMPLogisticRegression(method="one-step"),
    SMPLogisticRegressionCV(),
    EarlyStoppedKernelBoostClassifier(random_state=0),
    EarlyStoppedKernelBoostClassifier(
        random_state=0, stopping="validation", loss="exponential"
    ),
]
by_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def data(n=150, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))
    scores[:, 0] -= 1.5
    return X, np.array(["u", "v", "w"])[scores.argmax(axis=1)]


def with_weight(estimator, class_weight):
    return type(estimator)(**{**estimator.get_params(), "class_weight": class_weight})


@by_estimator
def test_is_a_factor_of_the_rows_weights(estimator):
    """Rescaled to their sum; the weights of rows multiply it."""
    if getattr(estimator, "stopping", None) == "validation":
        pytest.skip("draws rows by their weights; see the test of equal weights")
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    factor = {"u": 3.0, "v": 0.5, "w": 1.0}
    own = weight * np.array([factor[label] for label in y])
    own *= weight.sum() / own.sum()
    found = with_weight(estimator, factor).fit(X, y, sample_weight=weight)
    expected = with_weight(estimator, None).fit(X, y, sample_weight=own)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-8)


@by_estimator
def test_balanced_and_equal_weights(estimator):
    """'balanced' counts weights; the same factor for all is none."""
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    totals = {label: weight[y == label].sum() for label in "uvw"}
    factors = {k: weight.sum() / (3.0 * v) for k, v in totals.items()}
    one = with_weight(estimator, "balanced").fit(X, y, sample_weight=weight)
    two = with_weight(estimator, factors).fit(X, y, sample_weight=weight)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-8)
    plain = with_weight(estimator, None).fit(X, y)
    same = with_weight(estimator, dict.fromkeys("uvw", 7.0)).fit(X, y)
    assert_allclose(same.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    assert not np.allclose(one.predict_proba(X), plain.predict_proba(X), atol=0.02)


@by_estimator
def test_rare_classes_are_found_more_often(estimator):
    X, y = data(n=300)
    plain, weighted = (with_weight(estimator, w).fit(X, y) for w in (None, "balanced"))
    rare = y == "u"
    assert rare.mean() < 0.25
    recall = [np.mean(m.predict(X[rare]) == "u") for m in (plain, weighted)]
    assert recall[1] > recall[0]


def test_equals_scikit_learn_where_both_have_it():
    """The plug-in predictor with the same penalty: weights of the same sum."""
    X, y = data(n_classes=2)
    factor = {"u": 2.0, "v": 1.0}
    smp = SMPLogisticRegression(class_weight=factor, virtual_weight=0.0).fit(X, y)
    total = sum(factor[label] for label in y)
    peer = LogisticRegression(C=len(y) / total, class_weight=factor, tol=1e-10)
    assert_allclose(smp.coef_, peer.fit(X, y).coef_, rtol=1e-5)


def test_the_theorem_is_not_about_weighted_classes():
    X, y = data(n_classes=2)
    options = {"C": "theory", "penalize_intercept": True}
    assert SMPLogisticRegression(**options).fit(X, y).bound_valid_
    weighted = SMPLogisticRegression(**options, class_weight="balanced").fit(X, y)
    assert not weighted.bound_valid_


@pytest.mark.parametrize(
    "bad", [{"u": 0.0}, {"u": -1.0}, {"u": np.nan}, {"u": np.inf}], ids=str
)
def test_bad_weights(bad):
    X, y = data()
    for estimator in (ESTIMATORS[0], ESTIMATORS[3]):
        with pytest.raises(ValueError, match="class_weight must give every class a"):
            with_weight(estimator, bad).fit(X, y)


def test_factors_keep_the_sum():
    codes, weight = np.array([0, 0, 1, 1, 1, 2]), np.array([1.0, 2, 1, 1, 1, 0.5])
    classes = np.array([5, 6, 7])
    for given in (None, "balanced", {5: 4.0}):
        factors = class_factors(given, classes, codes, weight)
        assert_allclose(factors[codes] @ weight, weight.sum())
    assert_array_equal(class_factors(None, classes, codes, weight), np.ones(3))
    totals = np.bincount(codes, weight) * class_factors(
        "balanced", classes, codes, weight
    )
    assert_allclose(totals, totals[0])
