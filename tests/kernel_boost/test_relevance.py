"""Scales of features: the evidence, the guard, clipping, and additive kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1

from kernel_boost import slow_references as slow
from kernel_boost.toy import at_the_last_step
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    RelevanceDisplay,
)
from skbounds.kernel_boost import _relevance as relevance_module
from skbounds.kernel_boost._anova import find_weights
from skbounds.kernel_boost._relevance import draw_sample, find_relevance, objective


def sparse_signal(seed, n=120, d=6):
    """Two of the features matter, in other units each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1]
    units = 10.0 ** rng.uniform(-4, 4, size=d)
    return X * units + rng.normal(size=d) * units, f + 0.2 * rng.normal(size=n), f


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


# -------------------------------------------------------------------- the evidence


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(8, 30),
    d=st.integers(1, 5),
    m=st.integers(1, 3),
    log_lam=st.floats(-6.0, 2.0),
)
@settings(max_examples=40)
def test_objective(seed, n, d, m, log_lam):
    """The value is that of the definition, the gradient that of differences."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, m))
    w = rng.integers(1, 4, size=n).astype(float)
    sample = draw_sample(X, Y, w, 3)
    log_a = rng.normal(size=d) - 1.0
    value, gradient = objective(log_a, log_lam, sample)
    plain = lambda x: slow.ard_objective(
        x[:-1], x[-1], sample.X, sample.targets, sample.weight
    )
    x = np.append(log_a, log_lam)
    assert_allclose(value, plain(x), rtol=1e-9)
    expected = slow.numerical_gradient(plain, x)
    assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_sample():
    """Distinct rows of all weights, standardised with the weights."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    X[:, 2] = 5.0
    w = rng.integers(1, 4, size=700)
    copies = rng.permutation(np.repeat(np.arange(700), w))
    one = draw_sample(X, y, w.astype(float), 1)
    other = draw_sample(X[copies], y[copies], np.ones(len(copies)), 1)
    for name in ("X", "targets", "weight", "deviation"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.X.shape == (500, 3)
    mean = np.average(X[:, 0], weights=w)
    sd = np.sqrt(np.average((X[:, 0] - mean) ** 2, weights=w))
    assert_allclose(one.deviation[:2][0], sd, rtol=1e-12)
    assert one.deviation[2] == 0.0
    share = one.weight / one.weight.sum()
    assert_allclose(share @ one.targets, 0.0, atol=1e-12)
    assert_allclose(share @ one.targets**2, 1.0, rtol=1e-12)
    assert draw_sample(X, np.ones((700, 1)), w * 1.0, 1) is None
    wide = rng.normal(size=(700, 31))
    assert len(draw_sample(wide, y, w * 1.0, 1).X) == 300


def test_minimum_is_one():
    """No step along a feature lowers the objective where the search ends."""
    X, y, _ = sparse_signal(1)
    sample = draw_sample(X, y[:, None], np.ones(len(y)), 0)
    a = find_relevance(sample)
    best = min(
        objective(np.log(a), log_lam, sample)[0] for log_lam in np.linspace(-8, 2, 41)
    )
    for j in range(X.shape[1]):
        for factor in (0.5, 2.0):
            other = a.copy()
            other[j] *= factor
            value = min(
                objective(np.log(other), log_lam, sample)[0]
                for log_lam in np.linspace(-8, 2, 41)
            )
            # Half a nat: after so many steps the search is content.
            assert value > best - 1.0
    assert min(a[0], a[1]) > 10.0 * a[2:].max()


# ------------------------------------------------------------------- the estimators


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute_error"])
def test_finds_the_features(loss):
    X, y, f = sparse_signal(2, n=260)
    model = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(X[:130], y[:130])
    plain = clone(model).set_params(relevance=None).fit(X[:130], y[:130])
    assert model.relevance_[:2].min() > 5.0 * model.relevance_[2:].max()
    assert plain.relevance_ is None
    ours, theirs = (rmse(m.predict(X[130:]), f[130:]) for m in (model, plain))
    assert ours < 0.5 * theirs


def test_friedman():
    """Three draws of friedman1 with 300 rows; one width leaves an error of 1.43."""
    errors, noises = [], []
    for seed in range(3):
        X, f = make_friedman1(1300, random_state=seed)
        y = f + np.random.default_rng(seed).normal(size=1300)
        model = EarlyStoppedKernelBoost(random_state=0).fit(X[:300], y[:300])
        errors.append(rmse(model.predict(X[300:]), f[300:]))
        noises.append(model.noise_)
    assert np.mean(errors) < 0.60
    assert 0.9 < np.mean(noises) < 1.1


def test_guard():
    """Where features matter alike, or none does, there is one width."""
    X, y = load_diabetes(return_X_y=True)
    kept = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=100)
        model = EarlyStoppedKernelBoost(random_state=0)
        kept.append(model.fit(rng.normal(size=(100, 4)), noise).relevance_ is not None)
    assert sum(kept) <= 1
    plain = EarlyStoppedKernelBoost(relevance=None, random_state=0).fit(X, y)
    model = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
    assert model.relevance_ is None
    assert_allclose(model.predict(X), plain.predict(X), rtol=1e-10)


def test_folds_only_stop_earlier():
    """Few rows of many features: what folds say is heard where it is caution."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 100))
        y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=50)
        model = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
        plain = EarlyStoppedKernelBoost(stopping="gcv", random_state=0).fit(X, y)
        assert model.n_iter_ <= plain.n_iter_


def test_guard_of_many_rows(monkeypatch):
    """With more rows than the guard looks at the decision is that of some of them."""
    from skbounds.kernel_boost import _squared_solver

    X, y, _ = sparse_signal(3, n=260)
    whole = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
    monkeypatch.setattr(_squared_solver, "_GUARD_ROWS", 100)
    part = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
    assert_allclose(part.relevance_, whole.relevance_)
    assert_allclose(part.predict(X), whole.predict(X), rtol=1e-6, atol=1e-6)


def test_array():
    """The scales of a fit, given, make the same fit; gamma multiplies them."""
    X, y, _ = sparse_signal(4)
    found = EarlyStoppedKernelBoost(relevance="ard").fit(X, y)
    assert found.gamma_ == 1.0
    given = EarlyStoppedKernelBoost(relevance=found.relevance_, gamma=1.0).fit(X, y)
    assert_array_equal(given.predict(X), found.predict(X))
    twice = EarlyStoppedKernelBoost(
        relevance=(0.5 * found.relevance_).tolist(), gamma=2.0
    ).fit(X, y)
    assert_allclose(twice.predict(X), found.predict(X), rtol=1e-8)
    searched = EarlyStoppedKernelBoost(relevance=found.relevance_).fit(X, y)
    assert len(searched.gamma_path_["gamma"]) == 9


def test_kernel_is_that_of_the_definition():
    X, y, _ = sparse_signal(5, n=60)
    model = EarlyStoppedKernelBoost(relevance="ard", clip=False).fit(X, y)
    standard = X / X.std(axis=0)
    gaps = (standard[:, None] - standard[model.landmark_indices_]) ** 2
    K = np.exp(-(gaps * model.relevance_).sum(axis=2))
    assert_allclose(
        K @ model.dual_coef_ + model.intercept_, model.predict(X), rtol=1e-6
    )


def test_clip():
    """New rows count as the nearest ones of the training range, feature by feature."""
    X, y, _ = sparse_signal(6)
    low, high = X.min(axis=0), X.max(axis=0)
    far = X + 3.0 * (X - X.mean(axis=0))
    model = EarlyStoppedKernelBoost(relevance="ard").fit(X, y)
    assert_array_equal(model.predict(far), model.predict(np.clip(far, low, high)))
    loose = EarlyStoppedKernelBoost(relevance="ard", clip=False).fit(X, y)
    assert_array_equal(loose.predict(X), model.predict(X))
    assert rmse(loose.predict(far), model.predict(far)) > 0.1
    plain = EarlyStoppedKernelBoost(relevance=None).fit(X, y)
    assert rmse(plain.predict(far), plain.predict(np.clip(far, low, high))) > 0.0


def test_clip_with_one_width():
    """Also where "auto" keeps one width: a column that counts rows, say."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), np.arange(300.0)])
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=300)
    model = EarlyStoppedKernelBoost(random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.8
    low, high = X[:200].min(axis=0), X[:200].max(axis=0)
    more = 0.0 if model.relevance_ is not None else 0.1 * (high - low)
    nearest = np.clip(X, low - more, high + more)
    assert_array_equal(model.predict(X), model.predict(nearest))


@given(seed=st.integers(0, 1000), log_unit=st.floats(-8.0, 8.0))
@settings(max_examples=10)
def test_units_do_not_count(seed, log_unit):
    X, y, _ = sparse_signal(seed, n=60, d=3)
    unit = 10.0**log_unit
    one = EarlyStoppedKernelBoost(relevance="ard").fit(X, y)
    other = EarlyStoppedKernelBoost(relevance="ard").fit(X * unit, 3.0 * y - 1.0)
    assert_allclose(other.relevance_, one.relevance_, rtol=1e-3, atol=1e-6)
    assert_allclose(other.predict(X * unit), 3.0 * one.predict(X) - 1.0, atol=1e-3)


def test_repetition_and_order():
    """At defaults, too: scales, guard and stopping know no order and no copies."""
    X, y, _ = sparse_signal(7, n=60)
    w = np.random.default_rng(0).integers(1, 4, size=60)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(60), w))
    for options in ({}, {"relevance": "ard"}, {"kernel": "anova"}, {"loss": "huber"}):
        model = EarlyStoppedKernelBoost(stopping="cv", random_state=0, **options)
        one = clone(model).fit(X, y, w)
        other = clone(model).fit(X[copies], y[copies])
        assert one.relevance_ is not None
        assert_allclose(other.relevance_, one.relevance_, rtol=1e-10)
        assert one.n_iter_ == other.n_iter_
        assert_allclose(other.predict(X), one.predict(X), rtol=1e-6, atol=1e-7)


def test_classifier():
    """Only on request; then the features that matter are found."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 8))
    y = (np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=300) > 0).astype(int)
    for how in (None, "auto"):
        model = EarlyStoppedKernelBoostClassifier(relevance=how, random_state=0)
        assert model.fit(X[:150], y[:150]).relevance_ is None
    found = clone(model).set_params(relevance="ard").fit(X[:150], y[:150])
    assert found.relevance_.argmax() == 0
    assert found.score(X[150:], y[150:]) > model.score(X[150:], y[150:]) + 0.05
    given = clone(model).set_params(relevance=found.relevance_, gamma=1.0)
    assert_array_equal(
        given.fit(X[:150], y[:150]).predict_proba(X), found.predict_proba(X)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "laplacian"},
        {"gamma": 0.5},
        {"gamma": "scale"},
        {"loss": "quantile"},
        {"loss": "poisson"},
        {"kernel": "precomputed"},
    ],
)
def test_automatic_means_none_elsewhere(options):
    X, y, _ = sparse_signal(9, n=50, d=2)
    y = np.abs(y)
    if options.get("kernel") == "precomputed":
        X = np.exp(-((X[:, None, 0] - X[None, :, 0]) ** 2) / X[:, 0].var())
    with at_the_last_step():
        model = EarlyStoppedKernelBoost(**options, random_state=0).fit(X, y)
        plain = clone(model).set_params(relevance=None).fit(X, y)
    assert model.relevance_ is None
    assert_array_equal(model.predict(X), plain.predict(X))


def test_sparse_rows_and_single_features():
    X, y, _ = sparse_signal(10, n=50)
    sparse = EarlyStoppedKernelBoost(random_state=0).fit(csr_matrix(X), y)
    assert sparse.relevance_ is None
    assert EarlyStoppedKernelBoost(random_state=0).fit(X[:, :1], y).relevance_ is None


def test_what_is_refused():
    X, y, _ = sparse_signal(11, n=40)
    fit = lambda **options: EarlyStoppedKernelBoost(**options).fit(X, y)
    with pytest.raises(ValueError, match="is for kernel='rbf' and 'anova'; got"):
        EarlyStoppedKernelBoost("sobolev", relevance="ard").fit(abs(X), y)
    with pytest.raises(ValueError, match="an array as relevance is for kernel='rbf'"):
        fit(kernel="laplacian", relevance=np.ones(6))
    with pytest.raises(ValueError, match="got a sparse matrix"):
        EarlyStoppedKernelBoost(relevance="ard").fit(csr_matrix(X), y)
    with pytest.raises(ValueError, match="leave gamma='auto'; got gamma=2"):
        fit(relevance="ard", gamma=2.0)
    with pytest.raises(ValueError, match=r"shape \(6,\); got shape \(5,\)"):
        fit(relevance=np.ones(5))
    with pytest.raises(ValueError, match="negative numbers, nor zeros only"):
        fit(relevance=-np.ones(6))
    with pytest.raises(ValueError, match="negative numbers, nor zeros only"):
        fit(relevance=np.zeros(6))
    with pytest.raises(ValueError, match="NaN"):
        fit(relevance=[1, 2, np.nan, 1, 1, 1])
    with pytest.raises(ValueError, match="at most 50 features"):
        EarlyStoppedKernelBoost("anova").fit(np.ones((20, 51)), y[:20])
    with pytest.raises(ValueError, match="takes gamma='auto' or the number g"):
        fit(kernel="anova", gamma="scale")


@pytest.mark.parametrize("how", ["auto", "ard"])
def test_nothing_to_learn(how):
    """Constant targets, constant features, and both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    for rows, y in (
        (X, np.full(30, 2.0)),
        (np.ones((30, 3)), rng.normal(size=30)),
        (np.ones((30, 3)), np.full(30, 2.0)),
    ):
        model = EarlyStoppedKernelBoost(relevance=how, random_state=0).fit(rows, y)
        assert model.relevance_ is None
        assert_allclose(model.predict(rows).mean(), y.mean(), rtol=1e-9)
    X[:, 1] = 7.0
    model = EarlyStoppedKernelBoost(relevance="ard").fit(X, X[:, 0])
    assert model.relevance_[1] == 0.0


# ------------------------------------------------------------------ additive kernels


def additive(seed, n=160, d=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1]) + np.cos(3.0 * X[:, 2]) + X[:, 3]
    return X, f + 0.3 * rng.normal(size=n), f


def test_anova_kernel_is_that_of_the_definition():
    X, y, _ = additive(0, n=60)
    model = EarlyStoppedKernelBoost("anova", relevance=None, clip=False).fit(X, y)
    Z = X / X.std(axis=0)
    gaps = (Z[:, None] - Z[model.landmark_indices_]) ** 2
    w, anova = model.anova_weights_, model._kernel_.anova
    K = np.exp(-anova.width * gaps) @ w[:-1]
    K += w[-1] * np.exp(-gaps @ model.relevance_)
    assert_allclose(w.sum(), 1.0, rtol=1e-12)
    assert_allclose(
        K @ model.dual_coef_ + model.intercept_, model.predict(X), rtol=1e-5
    )


def test_anova_weights_are_of_greatest_evidence():
    """The gradient that they are found with is that of the evidence by definition."""
    X, y, _ = additive(1, n=40, d=4)
    sample = draw_sample(X, y[:, None], np.ones(40), 0)
    a = find_relevance(sample)
    width, weights = find_weights(sample, a, (0.5,))
    assert width == 0.5

    def evidence(logs):
        Z, t, n = sample.X, sample.targets[:, 0] - sample.targets[:, 0].mean(), 40
        H = np.eye(n) - 1.0 / n
        gaps = (Z[:, None] - Z) ** 2
        parts = [np.exp(-0.5 * gaps[:, :, j]) for j in range(4)]
        parts.append(np.exp(-gaps @ a))
        C = np.eye(n) + sum(
            np.exp(v) * H @ K @ H for v, K in zip(logs, parts, strict=True)
        )
        q = t @ np.linalg.solve(C, t)
        return n * np.log(q / n) + np.linalg.slogdet(C)[1]

    shares = np.log(np.maximum(weights, 1e-7))
    scales = np.linspace(-4, 10, 141)
    values = [evidence(shares + s) for s in scales]
    best = shares + scales[int(np.argmin(values))]
    for j in range(5):
        for step in (-0.5, 0.5):
            other = best.copy()
            other[j] += step
            assert evidence(other) > min(values) - 0.02


def test_anova_learns_sums():
    X, y, f = additive(2, n=1000)
    errors = {}
    for name, options in {
        "one width": {"relevance": None},
        "scales": {"relevance": "ard"},
        "anova": {"kernel": "anova"},
        "anova, unguarded": {"kernel": "anova", "relevance": None},
    }.items():
        model = EarlyStoppedKernelBoost(random_state=0, **options)
        errors[name] = rmse(model.fit(X[:200], y[:200]).predict(X[200:]), f[200:])
    assert errors["anova"] == errors["anova, unguarded"]
    assert errors["anova"] < 0.6 * errors["scales"]
    assert errors["anova"] < 0.6 * errors["one width"]


def test_guard_of_anova():
    """Noise is not worth an additive kernel: the answer is that of one width."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    model = EarlyStoppedKernelBoost("anova", random_state=0).fit(X, y)
    plain = EarlyStoppedKernelBoost(relevance=None, random_state=0).fit(X, y)
    assert model.anova_weights_ is None
    assert_allclose(model.predict(X), plain.predict(X), rtol=1e-8)
    forced = EarlyStoppedKernelBoost("anova", relevance="ard", random_state=0)
    assert forced.fit(X, y).anova_weights_ is not None


def test_anova_of_classes():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 6))
    y = (np.cos(3 * X[:, 0]) + np.cos(3 * X[:, 1]) + 0.3 * rng.normal(size=400) > 0) * 1
    plain = EarlyStoppedKernelBoostClassifier(random_state=0).fit(X[:200], y[:200])
    model = EarlyStoppedKernelBoostClassifier("anova", random_state=0)
    model.fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) + 0.05
    assert set(np.argsort(-model.anova_weights_[:-1])[:2]) == {0, 1}


def test_number_as_width_of_anova():
    X, y, _ = additive(5)
    model = EarlyStoppedKernelBoost("anova", gamma=0.7, relevance=None).fit(X, y)
    assert model._kernel_.anova.width == 0.7


# ----------------------------------------------------------------------- the picture


def test_display():
    pytest.importorskip("matplotlib").use("Agg")
    X, y, _ = sparse_signal(12, d=25)
    model = EarlyStoppedKernelBoost(relevance="ard").fit(X, y)
    display = RelevanceDisplay.from_estimator(model, max_features=5)
    assert len(display.names) == len(display.bars_) == 5
    assert display.names[:2] == ["x0", "x1"]
    assert_allclose(display.relevance[0], np.sqrt(model.relevance_[0]))
    plain = EarlyStoppedKernelBoost(relevance=None).fit(X, y)
    with pytest.raises(ValueError, match="relevance_ is None"):
        RelevanceDisplay.from_estimator(plain)


def test_failed_factor_is_no_minimum():
    """Where the matrix cannot be factored the value is beyond all others."""
    sample = draw_sample(
        np.ones((5, 1)) * np.arange(5)[:, None], np.eye(5)[:, :1], np.ones(5), 0
    )
    bad = -np.ones((5, 5))
    assert relevance_module.evidence(bad, -10.0, sample)[0] >= 1e99
