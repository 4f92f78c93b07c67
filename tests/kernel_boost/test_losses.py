"""Losses of regression other than the squared one: paths, scales, outliers, scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import (
    d2_pinball_score,
    d2_tweedie_score,
    mean_poisson_deviance,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, KFold

from kernel_boost import slow_references as slow
from kernel_boost.toy import KERNELS, at_the_last_step, gram, regression
from skbounds.kernel_boost import EarlyStoppedKernelBoost, StoppingPathDisplay
from skbounds.kernel_boost._loss_solver import scale_of
from skbounds.kernel_boost._losses import Huber, Pinball, Poisson, weighted_quantile

LOSSES = ("huber", "absolute_error", "quantile", "poisson")
every_loss = pytest.mark.parametrize("loss", LOSSES)


def data(loss, seed=0, n=50):
    X, y = regression(seed, n=n)
    if loss == "poisson":
        y = np.random.default_rng(seed).poisson(np.exp(0.5 * y)).astype(float)
    return X, y


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


# --------------------------------------------------------------- losses by themselves


@given(
    seed=st.integers(0, 10_000),
    delta=st.floats(0.05, 3.0),
    q=st.floats(0.05, 0.95),
)
@settings(max_examples=40)
def test_slopes_and_curvatures(seed, delta, q):
    """Slopes are differences of the mean, curvatures those of slopes."""
    rng = np.random.default_rng(seed)
    f, w = rng.normal(size=9), rng.uniform(0.5, 2.0, size=9)
    for loss, y in (
        (Huber(delta), rng.normal(size=9)),
        (Pinball(q, delta), rng.normal(size=9)),
        (Poisson(), rng.poisson(1.0, size=9) * 1.0),
    ):
        slope = slow.numerical_gradient(lambda f, y=y, s=loss: s.risk(y, f, w), f, 1e-7)
        assert_allclose(loss.pull(y, f, w), slope, atol=2e-6)
        several = np.stack([f, f + 1.0], axis=1)
        weights = np.stack([w, 2.0 * w], axis=1)
        for name in ("risk", "deviance", "curvature"):
            found = getattr(loss, name)(y[:, None], several, weights)
            one = getattr(loss, name)(y, f, w)
            other = getattr(loss, name)(y, f + 1.0, 2.0 * w)
            assert_allclose(found, [one, other], rtol=1e-12)
    exact = Pinball(q, 1e-9)
    assert_allclose(exact.risk(y, f, w), exact.deviance(y, f, w), atol=1e-7)


def test_floor_of_counts():
    """No values have less loss than the counts themselves."""
    y, w = np.array([0.0, 1.0, 5.0]), np.array([0.2, 0.5, 0.3])
    best = Poisson().risk(y, np.log(np.maximum(y, 1e-12)), w)
    assert_allclose(Poisson.floor(y, w), best, atol=1e-10)


@given(seed=st.integers(0, 10_000), q=st.sampled_from([0.1, 0.25, 0.5, 0.7, 0.9]))
def test_quantiles(seed, q):
    """Weighted quantiles are those of repeated values, and minimise the loss."""
    rng = np.random.default_rng(seed)
    y, w = np.round(rng.normal(size=8), 1), rng.integers(1, 4, size=8)
    found = weighted_quantile(y, w * 1.0, q)
    assert_allclose(found, weighted_quantile(np.repeat(y, w), np.ones(w.sum()), q))
    loss = Pinball(q, 1.0)
    losses = [loss.deviance(y, np.full(8, v), w * 1.0) for v in (*y, found)]
    assert losses[-1] <= min(losses) + 1e-12


def test_scale():
    """The deviation of normal values; with clusters, outliers and constants, too."""
    rng = np.random.default_rng(0)
    ones = np.ones(4000)
    y = rng.normal(scale=3.0, size=4000)
    assert_allclose(scale_of(y, ones), 3.0, rtol=0.05)
    spoilt = np.where(rng.random(4000) < 0.05, 1e6, y)
    assert_allclose(scale_of(spoilt, ones), 3.0, rtol=0.2)
    clusters = np.sign(rng.random(4000) - 0.45) + 1e-6 * y
    assert 0.1 < scale_of(clusters, ones) < 2.0
    assert scale_of(np.full(5, 7.0), np.ones(5)) == 0.0


# ------------------------------------------------------------------------- the path


@every_loss
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_path(loss, intercept, solver):
    """Losses on rows left out and in are those of small plain steps, to 2 %."""
    X, y = data(loss)
    w = np.random.default_rng(1).integers(1, 3, size=50).astype(float)
    cv = KFold(3)
    model = EarlyStoppedKernelBoost(
        **KERNELS["rbf"], loss=loss, quantile=0.7, delta=0.8, cv=cv, solver=solver,
        fit_intercept=intercept, random_state=0,
    ).fit(X, y, w)  # fmt: skip
    held = np.zeros((50, 3))
    for k, (_, test) in enumerate(cv.split(X)):
        held[test, k] = w[test]
    scale = scale_of(y, w)
    how = {
        "huber": ("huber", {"delta": 0.8}),
        "absolute_error": ("huber", {"delta": 0.1 * scale}),
        "quantile": ("quantile", {"q": 0.7, "h": 0.1 * scale}),
        "poisson": ("poisson", {}),
    }[loss]
    path, G = model.stopping_path_, gram(X, **KERNELS["rbf"])
    # Without an offset the first steps are far: the curvature changes within them.
    close, compared = 0.025 if intercept else 0.08, 0
    for k, t in enumerate(path["t"]):
        if t > 64:
            break
        expected, values = slow.kfold_flow_score(
            G, y, w, held, model.step_size_, t, how[0], 8, intercept, **how[1]
        )
        floor = Poisson.floor(y, held.sum(axis=1) / w.sum()) if loss == "poisson" else 0
        assert_allclose(path["criterion"][k] - floor, expected - floor, rtol=close)
        if loss != "quantile":
            inside = w @ slow.scoring_loss(y, values, how[0], **how[1]) / w.sum()
            assert_allclose(path["train_loss"][k] - floor, inside - floor, rtol=close)
        compared += 1
    assert compared >= 5
    assert model.n_iter_ == path["t"][np.argmin(path["criterion"])]


@every_loss
def test_plain_steps(loss):
    """solver="gd" takes the steps of (3.9) one by one."""
    X, y = data(loss)
    with at_the_last_step():
        model = EarlyStoppedKernelBoost(
            **KERNELS["rbf"], loss=loss, quantile=0.71, delta=0.8, solver="gd",
            max_iter=30,
        ).fit(X, y)  # fmt: skip
    G = gram(X, **KERNELS["rbf"])
    scale = scale_of(y, np.ones(50))
    name, options = {
        "huber": ("huber", {"delta": 0.8}),
        "absolute_error": ("huber", {"delta": 0.1 * scale}),
        "quantile": ("quantile", {"q": 0.71, "h": 0.1 * scale}),
        "poisson": ("poisson", {}),
    }[loss]
    for t, values in zip((3, 17), model.staged_predict(X, [3, 17]), strict=True):
        expected = slow.flow_values(
            G, y, np.ones(50), 50.0, model.step_size_, t, name, split=1, **options
        )
        expected = np.exp(expected) if loss == "poisson" else expected
        assert_allclose(values, expected, rtol=1e-8, atol=1e-8)


@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(LOSSES),
    delta=st.floats(1e-3, 2.0),
)
@settings(max_examples=25)
def test_risk_never_rises(seed, loss, delta):
    X, y = data(loss, seed, n=40)
    if loss == "poisson" and not y.any():
        return
    with at_the_last_step():
        model = EarlyStoppedKernelBoost(
            **KERNELS["laplacian"], loss=loss, delta=delta, max_iter=10_000
        ).fit(X, y)
    steps = np.diff(model.stopping_path_["train_loss"])
    assert steps.max(initial=0.0) <= 1e-12 * (1.0 + np.abs(y).max())


@every_loss
def test_stages(loss):
    """The last stage is the prediction; stages are those of the path."""
    X, y = data(loss)
    model = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(X, y)
    *_, last = model.staged_predict(X)
    assert_allclose(last, model.predict(X), rtol=1e-10)
    if loss == "poisson":
        assert (model.predict(X) > 0.0).all()


# ------------------------------------------------------------------------ invariances


@pytest.mark.parametrize("loss", ["huber", "absolute_error", "quantile"])
@pytest.mark.parametrize("unit", [1e-6, 3.0, 1e9])
def test_units_of_targets(loss, unit):
    X, y = data(loss)
    model = EarlyStoppedKernelBoost(loss=loss, quantile=0.8, random_state=0)
    one = clone(model).fit(X, y)
    other = clone(model).fit(X, unit * (y + 2.0))
    assert one.n_iter_ == other.n_iter_
    assert_allclose(other.predict(X), unit * (one.predict(X) + 2.0), rtol=1e-5)
    assert_allclose(other.noise_, unit * one.noise_, rtol=1e-5)


@pytest.mark.parametrize("loss", ["huber", "absolute_error", "quantile"])
def test_mirrored_targets(loss):
    X, y = data(loss)
    one = EarlyStoppedKernelBoost(loss=loss, quantile=0.8, random_state=0).fit(X, y)
    other = EarlyStoppedKernelBoost(loss=loss, quantile=0.2, random_state=0).fit(X, -y)
    assert_allclose(other.predict(X), -one.predict(X), rtol=1e-6, atol=1e-8)


@every_loss
def test_repetition(loss):
    X, y = data(loss)
    w = np.random.default_rng(2).integers(1, 4, size=50)
    copies = np.random.default_rng(3).permutation(np.repeat(np.arange(50), w))
    model = EarlyStoppedKernelBoost(**KERNELS["laplacian"], loss=loss, random_state=0)
    one = clone(model).fit(X, y, w)
    other = clone(model).fit(X[copies], y[copies])
    assert one.n_iter_ == other.n_iter_
    assert_allclose(other.predict(X), one.predict(X), rtol=1e-7)


# ------------------------------------------------------------------- what they are for


def test_outliers():
    """One target of 1e6, and a twentieth with a hundred times the noise."""
    X, f = make_friedman1(2400, random_state=0)
    rng = np.random.default_rng(0)
    y = f + rng.normal(size=2400)
    spoilt, many = y.copy(), y.copy()
    spoilt[0] = 1e6
    many[:400] += 100.0 * rng.normal(size=400) * (rng.random(400) < 0.05)
    model = EarlyStoppedKernelBoost(loss="huber", relevance=None, random_state=0)
    error = lambda y, model: rmse(
        clone(model).fit(X[:400], y[:400]).predict(X[400:]), f[400:]
    )
    clean = error(y, model)
    assert error(spoilt, model) < 1.1 * clean + 0.15
    assert error(many, model) < 1.3 * clean
    squared = EarlyStoppedKernelBoost(relevance=None, random_state=0)
    assert clean < 1.12 * error(y, squared)
    assert error(spoilt, squared) > 100.0
    scaled = EarlyStoppedKernelBoost(loss="huber", random_state=0)
    assert error(spoilt, scaled) < 0.6


def test_targets_without_noise():
    """The bend does not vanish with the noise, nor with clustered targets."""
    x = np.random.default_rng(0).uniform(-3, 3, size=(150, 1))
    y = np.sin(2.0 * x[:, 0])
    for loss in ("huber", "absolute_error"):
        model = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(x, y)
        assert rmse(model.predict(x), y) < 0.01
    steps = np.sign(x[:, 0]) + 1e-3 * y
    for loss in ("huber", "absolute_error", "quantile"):
        with at_the_last_step():
            model = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(x, steps)
        assert rmse(model.predict(x), steps) < 0.2


def test_far_targets_are_reached():
    """Whatever the ratio of the targets' range to the bend, as by plain steps."""
    x = np.random.default_rng(0).uniform(-3, 3, size=(100, 1))
    y = np.sin(2.0 * x[:, 0])
    options = {"loss": "huber", "delta": 1e-3, "gamma": 1.0, "stopping": None}
    flow = EarlyStoppedKernelBoost(**options, max_iter=20_000).fit(x, y)
    plain = EarlyStoppedKernelBoost(**options, max_iter=20_000, solver="gd").fit(x, y)
    assert rmse(plain.predict(x), y) < 0.1
    assert rmse(flow.predict(x), plain.predict(x)) < 0.1


@pytest.mark.parametrize("mean", [1.0, 30.0, 3000.0])
def test_counts(mean):
    """Means of any size: nearly all of the deviance is explained."""
    X, f = make_friedman1(1400, random_state=0)
    rate = mean * np.exp(f / 8.0 - 1.8)
    y = np.random.default_rng(0).poisson(rate)
    model = EarlyStoppedKernelBoost(loss="poisson", random_state=0)
    ours = mean_poisson_deviance(
        rate[400:], model.fit(X[:400], y[:400]).predict(X[400:])
    )
    constant = np.full(1000, y[:400].mean())
    assert ours < 0.35 * mean_poisson_deviance(rate[400:], constant)
    with at_the_last_step():
        plain = EarlyStoppedKernelBoost(
            loss="poisson", gamma=0.3, solver="gd", max_iter=50
        )
        assert plain.fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.05


def test_quantiles_of_noise():
    """The share of targets below, on other rows, is about the quantile."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3300, 1))
    y = np.sin(2.0 * X[:, 0]) + (0.3 + 0.2 * X[:, 0] ** 2) * rng.normal(size=3300)
    for q in (0.1, 0.5, 0.9):
        model = EarlyStoppedKernelBoost(loss="quantile", quantile=q, random_state=0)
        below = y[300:] < model.fit(X[:300], y[:300]).predict(X[300:])
        assert abs(below.mean() - q) < 0.08


# --------------------------------------------------------------------- the estimator


def test_scores():
    X, y = data("poisson", n=80)
    given = {"random_state": 0, "gamma": 0.6}
    for loss, score in (
        ("squared", r2_score),
        ("huber", r2_score),
        ("quantile", lambda y, p: d2_pinball_score(y, p, alpha=0.3)),
        ("poisson", lambda y, p: d2_tweedie_score(y, p, power=1)),
    ):
        model = EarlyStoppedKernelBoost(loss=loss, quantile=0.3, **given).fit(X, y)
        assert_allclose(model.score(X, y), score(y, model.predict(X)))


def test_searched():
    X, y = data("poisson", n=60)
    grid = {"loss": ["squared", *LOSSES], "stopping": ["auto", "cv"]}
    search = GridSearchCV(
        EarlyStoppedKernelBoost(gamma=0.6, random_state=0), grid, cv=3
    )
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_loss
@pytest.mark.parametrize("stopping", ["cv", "validation", None])
def test_rules(loss, stopping):
    X, y = data(loss)
    limit = 50 if stopping is None else None
    model = EarlyStoppedKernelBoost(
        loss=loss, stopping=stopping, max_iter=limit, random_state=0
    ).fit(X, y)
    assert model.stopping_ == stopping
    assert np.isfinite(model.predict(X)).all()
    display = StoppingPathDisplay.from_estimator(model, X, y, plot=False)
    if loss in ("huber", "absolute_error") and stopping != "validation":
        # On the training rows it is the training loss.
        assert_allclose(display.held_out, display.train_loss, rtol=1e-8)
    if loss == "poisson" and stopping != "validation":
        assert_allclose(display.held_out, display.train_loss, rtol=1e-6, atol=1e-9)
    assert np.isfinite(display.held_out).all()
    again = EarlyStoppedKernelBoost(
        loss=loss, stopping="validation", random_state=0
    ).fit(X, y, X_val=X, y_val=y)
    assert np.isfinite(again.predict(X)).all()


@pytest.mark.parametrize("loss", ["huber", "absolute_error", "quantile"])
@pytest.mark.parametrize("value", [0.0, 1e-6, 5.0])
def test_constant_targets(loss, value):
    X, _ = data(loss)
    model = EarlyStoppedKernelBoost(loss=loss, quantile=0.9, random_state=0)
    model.fit(X, np.full(50, value))
    assert_allclose(model.predict(X), value, rtol=1e-6, atol=1e-8)
    assert model.noise_ <= 1e-8
    without = clone(model).set_params(fit_intercept=False, loss="huber")
    with at_the_last_step():
        without.fit(X, np.full(50, value))
    assert_allclose(without.predict(X), value, rtol=0.05, atol=1e-8)


def test_little_memory():
    """The pilot's factor may be streamed, that of the path is smaller instead."""
    X, f = make_friedman1(700, random_state=0)
    y = f + np.random.default_rng(0).normal(size=700)
    with config_context(working_memory=1), at_the_last_step():
        model = EarlyStoppedKernelBoost(loss="huber", random_state=0).fit(X, y)
        assert model.rank_ <= 187
        assert model.score(X, y) > 0.9


def test_conventions_of_counts():
    """Scikit-learn's checks with targets that are not negative."""
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(
        EarlyStoppedKernelBoost(loss="poisson", gamma=0.5), on_fail=None, on_skip=None
    )
    failed = [one["check_name"] for one in found if one["status"] == "failed"]
    assert not failed


def test_delta():
    X, y = data("huber")
    assert EarlyStoppedKernelBoost(loss="huber", delta=0.4).fit(X, y).delta_ == 0.4
    found = EarlyStoppedKernelBoost(loss="huber").fit(X, y)
    pilot = EarlyStoppedKernelBoost(loss="absolute_error").fit(X, y)
    scale = scale_of(y - pilot.predict(X), np.ones(50))
    assert_allclose(found.delta_, max(1.345 * scale, pilot.delta_), rtol=1e-6)
    assert EarlyStoppedKernelBoost().fit(X, y).delta_ is None
    assert EarlyStoppedKernelBoost(loss="quantile").fit(X, y).delta_ is None


def test_default_rule():
    """The default is a rule of the loss; the squared loss keeps its own."""
    X, y = data("huber")
    assert EarlyStoppedKernelBoost(loss="huber").fit(X, y).stopping_ == "cv"
    model = EarlyStoppedKernelBoost(gamma=0.6).fit(X, y)
    assert model.stopping_ == "gcv"
    explicit = EarlyStoppedKernelBoost(gamma=0.6, stopping="gcv").fit(X, y)
    assert_array_equal(explicit.predict(X), model.predict(X))


def test_what_is_refused():
    X, y = data("huber")
    fit = lambda **options: EarlyStoppedKernelBoost(**options).fit(X, y)
    for rule in ("gcv", "cp", "loo", "aicc", "discrepancy", "theory"):
        with pytest.raises(ValueError, match="is for the squared loss"):
            fit(loss="huber", stopping=rule)
    with pytest.raises(ValueError, match="is for the squared loss"):
        fit(loss="huber", stopping=None, max_iter=5, intervals=True)
    with pytest.raises(ValueError, match="solver='banded' is for the squared loss"):
        EarlyStoppedKernelBoost("sobolev", loss="huber", solver="banded").fit(
            X[:, :1], y
        )
    with pytest.raises(ValueError, match="is for one output"):
        EarlyStoppedKernelBoost(loss="huber").fit(X, np.column_stack([y, y]))
    for bad in (-np.abs(y), np.zeros(50), np.abs(y) * 1e20):
        with pytest.raises(ValueError, match="needs y that is not negative"):
            EarlyStoppedKernelBoost(loss="poisson").fit(X, bad)
    with pytest.raises(ValueError, match="needs y_val that is not negative"):
        EarlyStoppedKernelBoost(loss="poisson", stopping="validation").fit(
            X, np.abs(y), X_val=X, y_val=-np.abs(y)
        )
    for name, value in (("delta", 0.0), ("delta", "small"), ("quantile", 1.0)):
        with pytest.raises(ValueError, match=f"The '{name}' parameter"):
            fit(**{name: value})
    with pytest.raises(ValueError, match="steps of 1000 are too large"):
        EarlyStoppedKernelBoost(loss="poisson", step_size=1e3).fit(X, 50 * np.abs(y))


def test_column_of_targets():
    X, y = data("huber")
    model = EarlyStoppedKernelBoost(loss="huber")
    with pytest.warns(UserWarning, match="column-vector"):
        column = clone(model).fit(X, y[:, None])
    assert_array_equal(column.predict(X), model.fit(X, y).predict(X))


def test_copies_are_told():
    """Rules that count rows take copies and weights for other rows, and say so."""
    X, y = regression(0, n=60)
    copied = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    with pytest.warns(UserWarning, match="Rows count 2 times on average"):
        EarlyStoppedKernelBoost().fit(*copied)
    with pytest.warns(UserWarning, match="Rows count 1.5 times"):
        EarlyStoppedKernelBoost().fit(X, y, np.full(60, 1.5))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EarlyStoppedKernelBoost(stopping="cv").fit(*copied)
        EarlyStoppedKernelBoost().fit(X, y, np.full(60, 1.1))
        EarlyStoppedKernelBoost().fit(np.round(X), y)
