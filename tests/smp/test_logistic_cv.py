"""SMPLogisticRegressionCV against the slow pool, and its own promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import smp as reference
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV
from skbounds.smp._pool import pool_leave_one_out_loss, pool_weights

from .test_logistic import INTERCEPTS, intercepts, make_problem

CS = [0.05, 1.0, 10.0]
WEIGHTS = [0, 0.5, 1]


def fit_both(n_classes, loo, *, sample_weight=True, intercept=None, method="exact"):
    X, codes, weight, rows = make_problem(24, 3, n_classes=n_classes, seed=8)
    weight = weight if sample_weight else None
    options = {"loo": loo, **(intercept or {})}
    expected = reference.pool(
        X, codes, CS, WEIGHTS, n_classes=n_classes, sample_weight=weight, **options
    )
    model = SMPLogisticRegressionCV(
        CS, virtual_weights=WEIGHTS, method=method, **options
    ).fit(X, codes, sample_weight=weight)
    return model, expected, rows


@intercepts
@pytest.mark.parametrize("loo", ["one-step", "exact"])
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_equals_the_slow_pool(n_classes, loo, intercept):
    """Losses, weights, leave-one-out loss and exact predictions."""
    for sample_weight in (False, True):
        model, expected, rows = fit_both(
            n_classes, loo, sample_weight=sample_weight, intercept=intercept
        )
        assert_allclose(model.loo_log_loss_path_, expected["path"], atol=1e-9)
        assert_allclose(model.weights_, expected["kept_weights"], atol=1e-8)
        assert model.loo_log_loss_ == pytest.approx(expected["loo_log_loss"], abs=1e-8)
        slow = [reference.pool_predict(expected, row) for row in rows]
        assert_allclose(model.predict_proba(rows), slow, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_step_predictions_equal_their_definition(n_classes):
    """The default for more classes and more rows."""
    model, expected, rows = fit_both(n_classes, "one-step", method="one-step")
    slow = [reference.pool_predict(expected, row, method="one-step") for row in rows]
    assert_allclose(model.predict_proba(rows), slow, atol=1e-8)


def test_sparse_and_wide():
    """CSR rows and more features than rows give the dense results."""
    for n, d in [(30, 4), (12, 40)]:
        X, codes, weight, rows = make_problem(n, d)
        dense = SMPLogisticRegressionCV().fit(X, codes, sample_weight=weight)
        other = SMPLogisticRegressionCV()
        other.fit(sparse.csr_array(X), codes, sample_weight=weight)
        assert_allclose(other.weights_, dense.weights_, atol=1e-7)
        assert_allclose(
            other.predict_proba(sparse.csr_array(rows)),
            dense.predict_proba(rows),
            atol=1e-7,
        )


def test_one_candidate_is_the_textbook_class_up_to_the_penalty_factor():
    """A single candidate with weight 1; with weight 0 it is the plug-in."""
    X, codes, _, rows = make_problem(200, 3)
    single = SMPLogisticRegressionCV([1.0], virtual_weights=[1]).fit(X, codes)
    textbook = SMPLogisticRegression(1.0).fit(X, codes)
    difference = single.predict_proba(rows) - textbook.predict_proba(rows)
    # The factor's exponent is the difference of squared norms over 2 C (n + 1).
    assert 0 < np.abs(difference).max() < 5e-3
    assert_array_equal(single.weights_, [[1.0]])
    plug_in = SMPLogisticRegressionCV([1.0], virtual_weights=[0]).fit(X, codes)
    plain = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky")
    plain.fit(X, codes)
    assert_allclose(plug_in.predict_proba(rows), plain.predict_proba(rows), atol=1e-7)
    assert_allclose(plug_in.coef_, plain.coef_, atol=1e-7)


@given(seed=st.integers(0, 10**6), learning_rate=st.floats(0.1, 3))
def test_pool_is_never_much_worse_than_its_best_candidate(seed, learning_rate):
    """The deterministic inequality on the leave-one-out sample (Jensen and Gibbs)."""
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=(7, 20)) * rng.uniform(0.1, 3, size=(7, 1))
    counts = np.ones(20)
    weights = pool_weights(losses, counts, learning_rate, "pool")
    assert weights.sum() == pytest.approx(1)
    positive = weights > 0
    pooled = -np.log(weights[positive] @ np.exp(-losses[positive]))
    slack = np.log(7) / (learning_rate * 20)
    # Leaving out weights below a thousandth costs at most 7e-3 relative mass.
    assert pooled.mean() <= losses.mean(axis=1).min() + slack + 1e-12
    assert pool_leave_one_out_loss(losses, counts, learning_rate, "pool") > 0


def test_best_aggregation_selects():
    """aggregation='best' puts all weight on the smallest leave-one-out loss."""
    X, codes, _, rows = make_problem(30, 3)
    model = SMPLogisticRegressionCV(CS, aggregation="best").fit(X, codes)
    best = np.unravel_index(model.loo_log_loss_path_.argmin(), model.weights_.shape)
    assert model.weights_[best] == 1 and model.weights_.sum() == 1
    assert model.C_ == CS[best[0]]
    assert model.virtual_weight_ == model.virtual_weights_[best[1]]
    single = SMPLogisticRegressionCV(
        [model.C_], virtual_weights=[model.virtual_weight_]
    ).fit(X, codes)
    assert_allclose(single.predict_proba(rows), model.predict_proba(rows), atol=1e-9)
    assert_allclose(single.coef_, model.coef_, atol=1e-9)


def test_auto_method_is_decided_in_fit():
    """Exact for two classes and few rows, else one-step."""
    X, codes, _, _ = make_problem(600, 2)
    assert SMPLogisticRegressionCV().fit(X[:500], codes[:500]).method_ == "exact"
    large = SMPLogisticRegressionCV().fit(X, codes)
    assert large.method_ == "one-step" and large._training_ == {}
    X, codes, _, _ = make_problem(30, 2, n_classes=3)
    assert SMPLogisticRegressionCV().fit(X, codes).method_ == "one-step"


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]))
def test_repetition_permutation_renaming(seed, n_classes):
    """Weights are counts; rows and labels may be permuted and renamed."""
    X, codes, _, rows = make_problem(14, 2, n_classes=n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, size=14)
    counts[:n_classes] = 1
    options = {"Cs": CS, "virtual_weights": WEIGHTS, "method": "one-step"}
    weighted = SMPLogisticRegressionCV(**options).fit(X, codes, sample_weight=counts)
    repeated = SMPLogisticRegressionCV(**options)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(codes, counts))
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-8)
    assert weighted.loo_log_loss_ == pytest.approx(repeated.loo_log_loss_, abs=1e-8)
    proba = weighted.predict_proba(rows)
    assert_allclose(proba, repeated.predict_proba(rows), atol=1e-8)
    order = rng.permutation(14)
    names = np.array(["b", "c", "a"])[:n_classes]
    renamed = SMPLogisticRegressionCV(**options)
    renamed.fit(X[order], names[codes[order]], sample_weight=counts[order])
    back = renamed.predict_proba(rows)[:, np.argsort(np.argsort(names))]
    assert_allclose(back, proba, atol=1e-8)


def test_interval_contains_the_probability():
    """Both virtual fits, pooled; their mixture lies between."""
    X, codes, _, rows = make_problem(40, 3)
    model = SMPLogisticRegressionCV().fit(X, codes)
    lower, upper = model.predict_interval(rows).T
    proba = model.predict_proba(rows)[:, 1]
    assert np.all(lower <= proba) and np.all(proba <= upper)
    assert_allclose(np.exp(model.predict_log_proba(rows))[:, 1], proba, atol=1e-14)
    multi = SMPLogisticRegressionCV().fit(*load_wine(return_X_y=True))
    assert not hasattr(multi, "predict_interval")


def test_leave_one_out_estimate_is_near_the_test_loss():
    """On real data, and the separable half does not collapse to one half."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:100], order[100:]
    model = make_pipeline(StandardScaler(), SMPLogisticRegressionCV())
    model.fit(X[train], y[train])
    loss = log_loss(y[test], model.predict_proba(X[test]))
    assert loss < 0.12
    assert model[-1].loo_log_loss_ == pytest.approx(loss, abs=0.05)
    assert model[-1].virtual_weight_mean_ < 0.5


def test_extreme_leverage_roots():
    """One-hot columns give leverages near one; the roots must still be exact."""
    rng = np.random.default_rng(0)
    X = np.eye(30)[rng.integers(30, size=40)] * 100.0
    codes = rng.integers(2, size=40)
    expected = reference.pool(X, codes, [1.0, 10.0], [0.5, 1], n_classes=2)
    model = SMPLogisticRegressionCV([1.0, 10.0], virtual_weights=[0.5, 1])
    model.fit(X, codes)
    assert_allclose(model.loo_log_loss_path_, expected["path"], atol=1e-7)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, "Cs must be a positive integer or a non-empty"),
        ({"Cs": [0.0]}, "Cs must hold positive finite numbers"),
        ({"Cs": 0}, "'Cs' parameter"),
        ({"virtual_weights": []}, "virtual_weights must be a non-empty 1-d array"),
        ({"virtual_weights": [2.0]}, r"virtual_weights must lie in \[0, 1\]"),
        ({"aggregation": "mean"}, "'aggregation' parameter"),
        ({"loo": "none"}, "'loo' parameter"),
        ({"method": "fast"}, "'method' parameter"),
        ({"learning_rate": 0}, "'learning_rate' parameter"),
    ],
)
def test_bad_parameters(params, message):
    """Messages name the parameter."""
    X, codes, _, _ = make_problem(10, 2)
    with pytest.raises(ValueError, match=message):
        SMPLogisticRegressionCV(**params).fit(X, codes)


def test_bad_data():
    """One class, continuous labels, NaN, negative weights, wrong width."""
    X, codes, _, _ = make_problem(10, 2)
    model = SMPLogisticRegressionCV()
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(10))
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, np.linspace(0, 1, 10))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), codes)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, codes, sample_weight=-np.ones(10))
    assert not any(name.endswith("_") for name in vars(model))
    with pytest.raises(ValueError, match="3 features"):
        model.fit(X, codes).predict_proba(np.ones((1, 3)))


def test_intercept_options_are_distinct():
    """The three intercept modes are three models."""
    X, codes, _, rows = make_problem(30, 3)
    results = [
        SMPLogisticRegressionCV(**options).fit(X + 1, codes).predict_proba(rows)
        for options in INTERCEPTS.values()
    ]
    assert not np.allclose(results[0], results[1])
    assert not np.allclose(results[1], results[2])
