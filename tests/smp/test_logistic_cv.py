"""SMPLogisticRegressionCV against the slow pool, and its own promises."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import smp as reference
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, log_expit, softmax
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV
from skbounds.smp._calibration import intercept_shift, shifted_losses
from skbounds.smp._grid import feature_scale
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
        CS, virtual_weights=WEIGHTS, calibrate="none", method=method, **options
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
    single = SMPLogisticRegressionCV([1.0], virtual_weights=[1], calibrate="none")
    single.fit(X, codes)
    textbook = SMPLogisticRegression(1.0).fit(X, codes)
    difference = single.predict_proba(rows) - textbook.predict_proba(rows)
    # The factor's exponent is the difference of squared norms over 2 C (n + 1).
    assert 0 < np.abs(difference).max() < 5e-3
    assert_array_equal(single.weights_, [[1.0]])
    plug_in = SMPLogisticRegressionCV([1.0], virtual_weights=[0], calibrate="none")
    plug_in.fit(X, codes)
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
    options = {"aggregation": "best", "calibrate": "none"}
    model = SMPLogisticRegressionCV(CS, **options).fit(X, codes)
    best = np.unravel_index(model.loo_log_loss_path_.argmin(), model.weights_.shape)
    assert model.weights_[best] == 1 and model.weights_.sum() == 1
    assert model.C_ == CS[best[0]]
    assert model.virtual_weight_ == model.virtual_weights_[best[1]]
    single = SMPLogisticRegressionCV(
        [model.C_], virtual_weights=[model.virtual_weight_], calibrate="none"
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
        ({"calibrate": "yes"}, "'calibrate' parameter"),
        ({"Cs": "many"}, "'Cs' parameter"),
        ({"virtual_weights": "many"}, "'virtual_weights' parameter"),
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


# ------------------------------------------------------------ rates, units and noise


def slow_calibrated_pool(X, codes, weight, Cs, virtual_weights, mode):
    """Return candidates as (loo losses, prediction of a row), from the definitions."""
    expected = reference.pool(
        X, codes, Cs, virtual_weights, n_classes=2, sample_weight=weight
    )
    unit, ones, total = np.minimum(weight, 1.0), weight @ codes, weight.sum()
    candidates = []
    for j, m in np.ndindex(len(Cs), len(virtual_weights)):
        w = virtual_weights[m]
        own = np.exp(-expected["losses"][j, m])
        p = np.where(codes == 1, own, 1.0 - own)
        log_odds = np.log(p) - np.log1p(-p)

        def plain(x, C=Cs[j], w=w):
            return np.exp(reference._log_pool(expected["data"], x, C, w, "exact"))

        if mode == "pool" or w == 0:
            candidates.append((-np.log(own), plain))
        if w == 0:
            continue
        excess = partial(lambda eta, b: weight @ expit(eta + b) - ones, log_odds)
        b = brentq(excess, -50, 50, xtol=1e-13)
        s = expit(log_odds + b)
        v = s * (1.0 - s)
        move = unit * (s - codes) / (weight @ v - unit * v)
        eta = log_odds + b + np.clip(move, -1, 1)

        def shifted(x, plain=plain, b=b):
            q = plain(x)
            one = expit(np.log(q[1]) - np.log(q[0]) + b)
            return np.array([1.0 - one, one])

        candidates.append((-log_expit(np.where(codes == 1, eta, -eta)), shifted))
    for w in (0.5, 1.0) if mode == "pool" else ():
        p = (np.where(codes == 1, ones, total - ones) - unit + w) / (
            total - unit + 2 * w
        )
        rate = (ones + w) / (total + 2 * w)
        candidates.append((-np.log(p), lambda x, r=rate: np.array([1 - r, r])))
    return candidates


@pytest.mark.parametrize("mode", ["pool", "intercept"])
@pytest.mark.parametrize("weighted", [False, True])
def test_calibrated_pools_equal_a_slow_one(mode, weighted):
    X, codes, weight, rows = make_problem(20, 2, seed=3)
    weight = weight if weighted else np.ones(20)
    model = SMPLogisticRegressionCV(
        CS, virtual_weights=WEIGHTS, calibrate=mode, method="exact"
    ).fit(X, codes, sample_weight=weight)
    candidates = slow_calibrated_pool(X, codes, weight, CS, WEIGHTS, mode)
    losses = np.array([losses for losses, _ in candidates])
    assert len(losses) == {"pool": 9 + 6 + 2, "intercept": 9}[mode]
    q = softmax(-(losses @ weight))
    q[q < 1e-3 * q.max()] = 0.0
    q /= q.sum()
    total = model.weights_.sum() + model.null_weights_.sum()
    assert total == pytest.approx(1.0)
    assert (model.shifted_weights_ <= model.weights_ + 1e-15).all()
    assert (model.shifted_weights_[:, 0] == 0.0).all()
    if mode == "pool":
        assert_allclose(model.null_weights_, q[-2:], atol=1e-8)
    assert_allclose(
        model.loo_log_loss_, pool_leave_one_out_loss(losses, weight, 1.0, "pool")
    )
    slow = [
        sum(qj * f(row) for qj, (_, f) in zip(q, candidates, strict=True) if qj > 0)
        for row in rows
    ]
    assert_allclose(model.predict_proba(rows), slow, atol=1e-7)
    low, high = model.predict_interval(rows).T
    assert (low <= model.predict_proba(rows)[:, 1] + 1e-9).all()
    assert (model.predict_proba(rows)[:, 1] <= high + 1e-9).all()


def test_the_shift_without_a_row_is_near_that_of_a_new_equation():
    """One Newton step, against solving for the shift without each row."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=60)
    codes = (rng.random(60) < expit(log_odds)).astype(int)
    weight = np.ones(60)
    b = intercept_shift(log_odds, codes, weight)
    assert expit(log_odds + b).sum() == pytest.approx(codes.sum(), abs=1e-9)
    found = shifted_losses(log_odds, codes, weight, b)
    for i in range(60):
        rest = np.arange(60) != i
        own = log_odds[i] + intercept_shift(log_odds[rest], codes[rest], weight[rest])
        exact = -log_expit(own if codes[i] else -own)
        assert found[i] == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_unit_of_all_features_does_not_matter(n_classes, intercept):
    X, codes, weight, rows = make_problem(40, 3, n_classes=n_classes)
    container = np.asarray if intercept else sparse.csr_array
    plain = SMPLogisticRegressionCV(fit_intercept=intercept)
    plain.fit(container(X), codes, sample_weight=weight)
    for unit in (1 / 64, 1e-8, 1e8):
        other = SMPLogisticRegressionCV(fit_intercept=intercept)
        other.fit(container(X * unit), codes, sample_weight=weight)
        assert_allclose(
            other.predict_proba(container(rows * unit)),
            plain.predict_proba(container(rows)),
            atol=1e-8,
        )
        assert_allclose(other.Cs_ * unit**2, plain.Cs_, rtol=1e-9)
        assert_allclose(other.coef_ * unit, plain.coef_, rtol=1e-6, atol=1e-9)
    assert len(plain.Cs_) == (7 if n_classes == 2 else 9)
    assert len(plain.virtual_weights_) == (4 if n_classes == 2 else 3)
    literal = SMPLogisticRegressionCV(plain.Cs_, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        literal.fit(container(X), codes, sample_weight=weight)
    assert_allclose(
        literal.predict_proba(container(rows)),
        plain.predict_proba(container(rows)),
        atol=1e-8,
    )


def test_constant_columns_do_not_count_in_the_unit():
    X, codes, _, _ = make_problem(40, 3)
    plain = SMPLogisticRegressionCV().fit(X, codes)
    more = np.hstack([X, np.full((40, 5), 3.0)])
    other = SMPLogisticRegressionCV().fit(more, codes)
    assert_allclose(other.Cs_, plain.Cs_)


def test_a_few_rows_do_not_rule_the_unit():
    """A sentinel or a row of other units; spread-out laws keep their variance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 0.5]
    weight = np.ones(60)
    plain = feature_scale(X, weight, centred=True)
    assert plain == pytest.approx(np.sqrt(X.var(axis=0).mean()), rel=1e-12)
    spoilt = X.copy()
    spoilt[7] *= 1e6
    assert 0.5 * plain < feature_scale(spoilt, weight, centred=True) < plain
    dotted = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    found = feature_scale(dotted, weight, centred=True)
    assert found == pytest.approx(np.sqrt(dotted.toarray().var(axis=0).mean()))
    rare = (rng.random((200, 4)) < 0.05).astype(float)
    found = feature_scale(rare, np.ones(200), centred=True)
    assert 0.3 < found / np.sqrt(rare.var(axis=0).mean()) < 1.0 + 1e-9


def test_a_grid_that_is_too_short_is_told():
    X, codes, _, _ = make_problem(200, 2)
    with pytest.warns(UserWarning, match="include larger values"):
        SMPLogisticRegressionCV([1e-4, 1e-3]).fit(X, codes)
    noise = np.random.default_rng(0).permutation(codes)
    with pytest.warns(UserWarning, match="include smaller values"):
        SMPLogisticRegressionCV([10.0, 100.0], calibrate="none").fit(X, noise)


@pytest.mark.slow
def test_rare_classes_and_noise():
    """Of 60 samples: the mean probability, and the price of looking at noise."""
    rng = np.random.default_rng(0)
    pool, plain, only, losses = [], [], [], []
    for _ in range(60):
        X = rng.normal(size=(100, 5))
        eta = X[:, 0] - 4.2
        y = (rng.random(100) < expit(eta)).astype(int)
        y[:1] = 1
        test = rng.normal(size=(500, 5))
        truth = expit(test[:, 0] - 4.2)
        found = []
        for mode in ("pool", "none", "intercept"):
            model = SMPLogisticRegressionCV(calibrate=mode).fit(X, y)
            p = model.predict_proba(test)[:, 1]
            found.append(
                (
                    p.mean() - truth.mean(),
                    -np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p)),
                )
            )
        pool.append(found[0])
        plain.append(found[1])
        only.append(found[2])
        codes = rng.permutation(np.arange(100) % 2)
        noise = {
            mode: SMPLogisticRegressionCV(calibrate=mode).fit(X, codes)
            for mode in ("pool", "none")
        }
        for mode, model in noise.items():
            p = model.predict_proba(test)[:, 1]
            losses.append((mode, -0.5 * np.mean(np.log(p) + np.log1p(-p))))
    pool, plain, only = (np.mean(a, axis=0) for a in (pool, plain, only))
    assert abs(only[0]) < abs(pool[0]) < abs(plain[0])
    assert pool[1] < plain[1] + 0.001
    mean = {m: np.mean([v for k, v in losses if k == m]) for m in ("pool", "none")}
    assert mean["pool"] < mean["none"]


@pytest.mark.parametrize("ratio", [1e-6, 1e-10, 1e-12, 1e-20])
def test_weights_of_very_different_size(ratio):
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(40, 2))
        y = (np.arange(40) < 20).astype(int)
        weight = np.where(y == 0, ratio, 1.0)
        model = SMPLogisticRegressionCV().fit(X, y, sample_weight=weight)
        assert np.isfinite(model.predict_proba(X)).all()


def test_heavy_weights_keep_the_digits_of_the_loss():
    X, codes, _, _ = make_problem(40, 2)
    plain = SMPLogisticRegressionCV([1.0], calibrate="none", virtual_weights=[0, 1])
    for scale in (1e13, 1e15):
        model = SMPLogisticRegressionCV(
            [1.0 / scale], calibrate="none", virtual_weights=[0, 1]
        ).fit(X, codes, sample_weight=np.full(40, scale))
        plain.fit(X, codes, sample_weight=np.full(40, 1e6))
        assert 0.0 < model.loo_log_loss_ < 1.0
        best = model.loo_log_loss_path_.min()
        assert model.loo_log_loss_ == pytest.approx(best, rel=1e-6)


def test_the_unit_with_outliers_counts_repetitions_and_is_that_of_sparse_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:3] *= 30
    count = rng.integers(1, 6, size=30)
    repeated = feature_scale(
        np.repeat(X, count, axis=0), np.ones(count.sum()), centred=True
    )
    assert feature_scale(X, count.astype(float), centred=True) == pytest.approx(
        repeated
    )
    assert repeated < 0.5 * np.sqrt(np.average(X.var(axis=0)))
    Z = rng.poisson(1.0, size=(60, 8)).astype(float)
    Z[:4] *= 60
    Z[:, 1:] += 5
    weight = np.ones(60)
    dense = feature_scale(Z, weight, centred=True)
    assert feature_scale(sparse.csr_array(Z), weight, centred=True) == pytest.approx(
        dense
    )


def test_the_penalty_of_a_penalised_intercept_is_that_of_C():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * 10 + 30
    y = (X[:, 0] - 30 + 5 * rng.normal(size=80) > 0).astype(int)
    options = {"penalize_intercept": True, "calibrate": "none"}
    model = SMPLogisticRegressionCV(**options).fit(X, y)
    plain = SMPLogisticRegression(model.C_, penalize_intercept=True).fit(X, y)
    assert_allclose(model.intercept_, plain.intercept_, rtol=1e-6)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    again = SMPLogisticRegressionCV(model.Cs_, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again.fit(X, y)
    assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-7)


def test_the_best_candidate_is_the_one_that_is_used():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 5))
        y = (rng.random(50) < 0.3).astype(int)
        y[:2] = 0, 1
        model = SMPLogisticRegressionCV(5, aggregation="best").fit(X, y)
        assert model.weights_.sum() + model.null_weights_.sum() == pytest.approx(1.0)
        if model.weights_.any():
            j, m = np.argwhere(model.weights_ > 0)[0]
            assert model.C_ == model.Cs_[j]
            assert model.virtual_weight_ == model.virtual_weights_[m]


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e140])
def test_penalties_in_absurd_units_are_numbers(scale):
    """Cs_ stays within what doubles hold; predictions are those of plain units."""
    X, codes, _, rows = make_problem(40, 2)
    plain = SMPLogisticRegressionCV().fit(X, codes)
    moved = SMPLogisticRegressionCV().fit(X * scale, codes)
    assert np.isfinite(moved.Cs_).all() and (moved.Cs_ > 0.0).all()
    assert np.isfinite(moved.C_)
    expected = plain.predict_proba(rows[:3])
    assert_allclose(moved.predict_proba(rows[:3] * scale), expected, atol=1e-6)


@pytest.mark.parametrize("small", [1e-12, 1e-5])
def test_grids_with_penalties_of_all_sizes(small):
    """Whatever the fit before: numbers, and those of each penalty alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(25, size=150)
    X = 2.0 * rng.normal(size=(25, 5))[y] + rng.normal(size=(150, 5))
    options = {"virtual_weights": [0.0], "calibrate": "none"}
    both = SMPLogisticRegressionCV([small, 1e20], **options)
    with pytest.warns(UserWarning, match="an end of Cs"):
        both.fit(X, y)
    assert np.isfinite(both.predict_proba(X)).all()
    for index, C in enumerate([small, 1e20]):
        alone = SMPLogisticRegressionCV([C], **options).fit(X, y)
        path = both.loo_log_loss_path_[index]
        assert_allclose(path, alone.loo_log_loss_path_[0], rtol=1e-6)


def test_many_classes_leave_virtual_observations_out():
    """By default; the candidates without are those of a pool that has both."""
    rng = np.random.default_rng(0)
    y = np.arange(63) % 21
    X = 2.0 * rng.normal(size=(21, 5))[y] + rng.normal(size=(63, 5))
    model = SMPLogisticRegressionCV().fit(X, y)
    assert model.virtual_weights_.tolist() == [0.0]
    both = SMPLogisticRegressionCV(virtual_weights=[0, 0.25, 1]).fit(X, y)
    assert_allclose(both.loo_log_loss_path_[:, :1], model.loo_log_loss_path_)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    few = SMPLogisticRegressionCV().fit(X[y < 20], y[y < 20])
    assert few.virtual_weights_.tolist() == [0.0, 0.25, 1.0]
