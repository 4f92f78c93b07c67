"""The first-order spline kernel of one feature: its own path against dense algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref

from kernel_boost.toy import at_the_last_step, line, make
from skbounds.kernel_boost import EarlyStoppedKernelBoost
from skbounds.kernel_boost._chain import fit_chain, make_chain, merge_cells

FEW, MANY = [1, 2, 3, 5, 7], [8, 9, 10, 13, 50, 500, 5000, 100_000]

every_time = pytest.mark.parametrize("T", FEW + MANY)


def banded(T, **options):
    """The path of T steps."""
    return EarlyStoppedKernelBoost(
        "sobolev", solver="banded", stopping=None, max_iter=T, **options
    )


def dense(model, X, y, weights=None, times=None):
    """The reference's path with the model's step and offset."""
    times = [np.max(model.n_iter_)] if times is None else times
    return ref.sobolev_path(
        X[:, 0], y, times, weights, model.step_size_, model.intercept_
    )


def assert_near(found, expected, error, y):
    """Values agree up to what the filter's error makes of the targets.

    The error is a maximum over some points: twice as much is allowed.
    """
    size = np.sqrt(np.sum((y - y.mean()) ** 2)) + np.abs(y).max()
    assert_allclose(found, expected, rtol=1e-9, atol=2.0 * error * size + 1e-11)


# ---------------------------------------------------------------------------- one path


@every_time
@pytest.mark.parametrize("n, ties", [(60, 0), (60, 15), (7, 3)])
def test_fit_and_degrees_of_freedom(T, n, ties):
    """Values at the rows and df, with and without ties."""
    X, y = line(n + ties, n, ties)
    model = banded(T).fit(X, y)
    assert 0.0 <= model.filter_error_ < 1e-5
    slow = dense(model, X, y)
    assert_near(model.predict(X), slow["fit"][0], model.filter_error_, y)
    knots = len(slow["knots"])
    assert_allclose(
        model.df_, slow["df"][0], rtol=1e-9, atol=2.0 * knots * model.filter_error_
    )
    assert model.n_iter_ == T
    assert np.ptp(slow["fit"][0]) > 0.01


@pytest.mark.parametrize("T", [2, 8, 500, 100_000])
def test_filter_error(T):
    """Few steps are exact, and later ones nearly so."""
    X, y = line(1, 40)
    error = banded(T).fit(X, y).filter_error_
    assert error == 0.0 if T < 8 else 0.0 < error < 1e-6


@every_time
def test_weights(T):
    """Weights that are no whole numbers."""
    X, y = line(2, 50, 8)
    w = np.random.default_rng(0).uniform(0.1, 5.0, size=50)
    model = banded(T).fit(X, y, w)
    slow = dense(model, X, y, w)
    assert_allclose(model.intercept_, np.average(y, weights=w), rtol=1e-12)
    assert_near(model.predict(X), slow["fit"][0], model.filter_error_, y)
    assert_allclose(
        model.df_, slow["df"][0], rtol=1e-9, atol=100.0 * model.filter_error_
    )


@every_time
def test_outputs(T):
    """Several outputs are fitted side by side."""
    X, Y = line(3, 40, 4, m=3)
    model = banded(T).fit(X, Y)
    assert model.predict(X).shape == (40, 3)
    for j in range(3):
        slow = ref.sobolev_path(
            X[:, 0], Y[:, j], [T], None, model.step_size_, model.intercept_[j]
        )
        found = model.predict(X)[:, j]
        assert_near(found, slow["fit"][0], model.filter_error_, Y[:, j])


@pytest.mark.parametrize("T", [1, 4, 8, 100, 100_000])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "x, y",
    [
        ((0.7,), (2.0,)),
        ((0.7, 0.7, 0.7), (2.0, 1.0, -1.0)),
        ((0.0, 1.5), (1.0, -2.0)),
        ((0.3, 0.3, 0.9), (1.0, 3.0, -2.0)),
    ],
    ids=["one row", "one knot", "two knots", "two knots and a tie"],
)
def test_one_or_two_knots(x, y, T, intercept):
    """N = 1 and N = 2."""
    X, y = np.array(x)[:, None], np.array(y)
    model = banded(T, fit_intercept=intercept).fit(X, y)
    slow = dense(model, X, y)
    assert_near(model.predict(X), slow["fit"][0], model.filter_error_, y)
    assert_allclose(
        model.df_, slow["df"][0], rtol=1e-9, atol=1e-11 + 4.0 * model.filter_error_
    )


@pytest.mark.parametrize("T", [3, 8, 200, 100_000])
@pytest.mark.parametrize("spacing", [1e-6, 1e-12, 1e-15])
def test_small_spacings(T, spacing):
    """Points that all but coincide, near others that do not."""
    rng = np.random.default_rng(5)
    x = np.repeat(np.array([0.0, 0.2, 0.5, 0.6, 0.9]), 4)
    x = x + spacing * np.tile(np.arange(4), 5)
    X, y = rng.permutation(x)[:, None], rng.normal(size=20)
    model = banded(T).fit(X, y)
    slow = dense(model, X, y)
    # The dense eigenvectors know such spacings less well than the chain does.
    error = max(model.filter_error_, 1e-9 if T > 1000 else 0.0)
    assert_near(model.predict(X), slow["fit"][0], error, y)


@pytest.mark.parametrize("T", [5, 300])
def test_neighbouring_numbers(T):
    """Ties of one floating-point number beside ties of the next one."""
    x = np.random.default_rng(0).uniform(0.5, 2.0, size=40)
    x = np.repeat(np.concatenate([x, np.nextafter(x, 3.0)]), 3)
    y = np.cos(5.0 * x) + np.tile([0.0, 0.1, -0.1], 80)
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=240)
    model = banded(T).fit(x[:, None], y, w)
    slow = dense(model, x[:, None], y, w)
    assert_near(model.predict(x[:, None]), slow["fit"][0], model.filter_error_, y)


@pytest.mark.parametrize("T", [5, 300])
def test_merged_points_are_the_limit(T):
    """Spacings that go to zero lead to ties."""
    X, y = line(6, 30)
    X = np.concatenate([X, X])
    y = np.concatenate([y, y + 1.0])
    apart = X + np.repeat([0.0, 1e-13], 30)[:, None]
    step = 0.5 / ref.eigenvalues(ref.gram(X, kernel="sobolev"))[0]
    first = banded(T, step_size=step).fit(X, y).predict(X)
    second = banded(T, step_size=step).fit(apart, y).predict(X)
    assert_allclose(second, first, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("T", [4, 40, 4000])
def test_scales_of_the_feature(scale, T):
    """Features of any size that is not negative."""
    X, y = line(7, 40, 5)
    X = scale * X
    model = banded(T).fit(X, y)
    slow = dense(model, X, y)
    assert_near(model.predict(X), slow["fit"][0], model.filter_error_, y)


@pytest.mark.parametrize("T", [3, 12, 700])
def test_plain_iteration(T):
    """The same number of plain steps."""
    X, y = line(8, 20, 3)
    model = banded(T).fit(X, y)
    G = ref.gram(X, kernel="sobolev")
    path, _ = ref.boost(G, y, "squared", model.step_size_, T, model.intercept_)
    values = ref.values(path[-1:], G, model.intercept_)[0]
    assert_near(model.predict(X), values, model.filter_error_, y)


@pytest.mark.parametrize("n", [2, 30, 200, 700])
def test_step_size(n):
    """The default step is stable, and not much shorter than the longest one."""
    X, y = line(9, n)
    x = X[:, 0]
    largest = ref.eigenvalues(1.0 + np.minimum.outer(x, x))[0]
    step = banded(10).fit(X, y).step_size_
    assert 0.95 / largest <= step <= (1.0 + 1e-9) / largest


@pytest.mark.parametrize("share", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("T", [3, 40])
def test_step_sizes_that_are_given(share, T):
    """Any stable step is taken; beyond 1 / mu_1 by other means than the chain."""
    X, y = line(10, 30, 4)
    step = share / ref.eigenvalues(ref.gram(X, kernel="sobolev"))[0]
    model = banded(T, step_size=step)
    if share > 1.0:
        with pytest.raises(ValueError, match="mu_1"):
            model.fit(X, y)
        model.set_params(solver="auto")
    model.fit(X, y)
    assert model.step_size_ == step
    slow = dense(model, X, y)
    assert_near(model.predict(X), slow["fit"][0], model.filter_error_, y)


# ------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("T", [4, 60, 3000])
@pytest.mark.parametrize("intercept", [True, False])
def test_predictions(T, intercept):
    """Linear between knots, constant on the right, on the left c (1 + x)."""
    X, y = line(11, 25, 5)
    X = X + 0.4
    model = banded(T, fit_intercept=intercept).fit(X, y)
    knots = np.unique(X)
    at_knots = model.predict(knots[:, None])
    points = np.concatenate(
        [
            [0.0, 0.1, knots[0] - 1e-9, knots[-1] + 1e-9, knots[-1] + 1.0, 1e6],
            0.3 * knots[1:] + 0.7 * knots[:-1],
            knots,
        ]
    )
    found = model.predict(points[:, None])
    expected = ref.sobolev_interpolate(knots, at_knots, points, model.intercept_)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert_array_equal(found[3:6], [found[3]] * 3)


@pytest.mark.parametrize("T", [4, 60, 3000])
@pytest.mark.parametrize("m", [None, 2])
def test_dual_coefficients(T, m):
    """f(x) = offset + k(x, X_fit_) dual_coef_, as for other kernels."""
    X, y = line(12, 25, 5, m)
    model = banded(T).fit(X, y)
    points = np.linspace(0.0, 3.0, 31)
    K = 1.0 + np.minimum.outer(points, np.ravel(model.X_fit_))
    expected = model.intercept_ + K @ model.dual_coef_
    assert_allclose(model.predict(points[:, None]), expected, rtol=1e-8, atol=1e-9)
    assert_array_equal(model.X_fit_, X[model.landmark_indices_])


def test_predictions_do_not_depend_on_company():
    """A row's prediction is its own."""
    X, y = line(13, 40)
    model = banded(200).fit(X, y)
    points = np.linspace(0.0, 3.0, 17)[:, None]
    alone = [model.predict(point[None])[0] for point in points]
    assert_array_equal(model.predict(points), alone)


@pytest.mark.parametrize("last", [5, 400])
def test_stages(last):
    """Stages equal fits of as many steps."""
    X, y = line(14, 40)
    model = banded(last).fit(X, y)
    times = [1, 4, 5] if last == 5 else [1, 7, 8, 9, 100, 400]
    for t, found in zip(times, model.staged_predict(X, t=times), strict=True):
        assert_allclose(found, banded(t).fit(X, y).predict(X), rtol=1e-9, atol=1e-12)


# --------------------------------------------------------------------------- stopping


@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", "discrepancy", "theory"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rules(stopping, weighted):
    """Criteria along the path, and T at the least of them."""
    X, y = line(15, 120, 30)
    rng = np.random.default_rng(1)
    w = rng.integers(1, 4, size=120) if weighted else None
    noise, norm = 0.3, 2.0
    model = EarlyStoppedKernelBoost(
        "sobolev", stopping=stopping, noise=noise, norm=norm
    ).fit(X, y, w)
    n = 120 if w is None else w.sum()
    path = model.stopping_path_
    assert model.filter_error_ is not None
    slow = dense(model, X, y, w, path["t"])
    assert_allclose(path["df"], slow["df"], rtol=1e-4)
    assert_allclose(path["train_loss"], 0.5 * slow["rss"], rtol=1e-4)
    if stopping == "theory":
        squared = ref.critical_radius_bisection(slow["mu"], noise / norm, n)
        assert_allclose(model.critical_radius_**2, squared, rtol=1e-6)
        assert model.n_iter_ == np.floor(1.0 / (model.step_size_ * squared))
        assert path["criterion"] is None
        return
    if stopping == "discrepancy":
        first = ref.select_discrepancy(slow["rss"], noise)
        assert model.n_iter_ == path["t"][first]
        return
    criterion = []
    for rss, df in zip(slow["rss"], slow["df"], strict=True):
        if stopping == "gcv":
            criterion.append(ref.gcv(rss, df, n, 1.0, 1.0))
        elif stopping == "cp":
            criterion.append(ref.mallows_cp(rss, df, n, noise))
        else:
            criterion.append(ref.aicc(rss, df, n))
    margin, extra = (1.0, 1.0) if stopping == "gcv" else (0.0, 0.0)
    best = ref.select(np.array(criterion), slow["df"], n, margin, extra)
    assert model.n_iter_ == path["t"][best]
    near = np.abs(np.arange(len(criterion)) - best) <= 5
    assert_allclose(path["criterion"][near], np.array(criterion)[near], rtol=1e-4)


@pytest.mark.parametrize("n", [60, 300])
def test_choice_is_that_of_all_times(n):
    """No time of a fine grid has a much smaller criterion than the chosen one."""
    X, y = line(16, n)
    model = EarlyStoppedKernelBoost("sobolev").fit(X, y)
    times = np.unique(np.round(np.geomspace(1.0, 1e6, 300)))
    slow = dense(model, X, y, times=times)
    values = [
        ref.gcv(rss, df, n, 1.0, 1.0) if ref.allowed(df, n, 1.0, 1.0) else np.inf
        for rss, df in zip(slow["rss"], slow["df"], strict=True)
    ]
    own = dense(model, X, y, times=[model.n_iter_])
    chosen = ref.gcv(own["rss"][0], own["df"][0], n, 1.0, 1.0)
    assert chosen <= 1.005 * min(values)


def test_solver_of_one_feature():
    """One feature with this kernel takes the banded path by itself."""
    X, y = line(17, 60)
    model = EarlyStoppedKernelBoost("sobolev").fit(X, y)
    forced = EarlyStoppedKernelBoost("sobolev", solver="banded").fit(X, y)
    assert_array_equal(model.predict(X), forced.predict(X))
    assert model.n_iter_ == forced.n_iter_


@pytest.mark.parametrize("kernel, d", [("sobolev", 2), ("rbf", 1)])
def test_what_is_not_banded(kernel, d):
    """More features or another kernel have no banded inverse."""
    X = np.random.default_rng(0).uniform(size=(20, d))
    model = EarlyStoppedKernelBoost(kernel, gamma=1.0, solver="banded")
    with pytest.raises(ValueError, match="banded"):
        model.fit(X, X[:, 0])


# --------------------------------------------------------------------------- invariance


@pytest.mark.parametrize("T", [3, 40, 5000])
def test_weights_are_repetitions(T):
    """Whole weights repeat rows, zeros delete them."""
    X, y = line(18, 30, 4)
    counts = np.random.default_rng(2).integers(0, 4, size=30)
    weighted = banded(T).fit(X, y, counts)
    repeated = banded(T).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    assert_allclose(weighted.df_, repeated.df_, rtol=1e-9)
    assert_allclose(weighted.step_size_, repeated.step_size_, rtol=1e-9)


def test_weights_are_repetitions_for_the_rule():
    """Also for a time that is chosen."""
    X, y = line(19, 50, 4)
    counts = np.random.default_rng(3).integers(0, 4, size=50)
    rows = np.repeat(np.arange(50), counts)
    model = EarlyStoppedKernelBoost("sobolev")
    weighted = model.fit(X, y, counts).predict(X)
    T, noise = model.n_iter_, model.noise_
    repeated = model.fit(X[rows], y[rows]).predict(X)
    assert model.n_iter_ == T
    assert_allclose(repeated, weighted, rtol=1e-9)
    assert_allclose(model.noise_, noise, rtol=1e-3)


@given(st.integers(0, 10_000), st.sampled_from([2, 8, 90]))
def test_order_of_rows(seed, T):
    """Permuted rows give the same function, y -> -y the opposite one."""
    X, y = line(seed, 12, 2)
    order = np.random.default_rng(seed).permutation(12)
    first = banded(T).fit(X, y).predict(X)
    second = banded(T).fit(X[order], y[order]).predict(X)
    assert_allclose(second, first, rtol=1e-9, atol=1e-11)
    assert_allclose(banded(T).fit(X, -y).predict(X), -first, rtol=1e-9, atol=1e-11)


# -------------------------------------------------------------------------- the chain


def test_merged_rows():
    """Knots in order, with weights, means and what varies within them."""
    X, y = line(20, 30, 10)
    w = np.random.default_rng(4).uniform(0.2, 2.0, size=30)
    chain = make_chain(X[:, 0], y[:, None], w)
    slow = ref.sobolev_path(X[:, 0], y, [1], w)
    assert_array_equal(chain.knots, slow["knots"])
    assert_allclose(chain.weight, slow["knot_weight"], rtol=1e-12)
    assert_allclose(chain.means[:, 0], slow["knot_mean"], rtol=1e-12)
    assert_allclose(chain.within, slow["within"], rtol=1e-10)


def test_merged_cells():
    """Cells of consecutive knots keep the weight, the mean and the sum of squares."""
    X, y = line(22, 50, 15, m=2)
    w = np.random.default_rng(6).uniform(0.2, 2.0, size=50)
    chain = make_chain(X[:, 0], y, w)
    cells = merge_cells(chain, 7)
    assert len(cells.knots) == 7
    assert_allclose(cells.weight.sum(), w.sum(), rtol=1e-12)
    assert_allclose(cells.weight @ cells.means, w @ y, rtol=1e-12)
    squares = cells.weight @ cells.means**2 + cells.within
    assert_allclose(squares, w @ y**2, rtol=1e-12)
    assert_array_equal(merge_cells(chain, 50).knots, chain.knots)


@pytest.mark.parametrize("T", [8, 9, 11, 15, 30, 77, 1000, 123_456])
def test_chain(T):
    """Values and leverages at the knots."""
    X, y = line(21, 40, 8)
    w = np.random.default_rng(5).uniform(0.2, 2.0, size=40)
    chain = make_chain(X[:, 0], y[:, None], w)
    slow = ref.sobolev_path(X[:, 0], y, [T], w)
    values, leverage, error = fit_chain(chain, slow["alpha"], T)
    assert error < 1e-5
    assert_near(values[:, 0], slow["knot_fit"][0], error, y)
    expected = slow["knot_leverage"][0]
    assert_allclose(leverage, expected, rtol=1e-9, atol=2.0 * error + 1e-11)


def test_large_chain():
    """A hundred thousand rows in well under a second's work, finite and smooth."""
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(100_000, 1))
    target = np.abs(X[:, 0] - 0.5)
    with at_the_last_step():
        model = make("squared", "sobolev").fit(
            X, target + 0.5 * rng.normal(size=len(X))
        )
    error = np.sqrt(np.mean((model.predict(X) - target) ** 2))
    assert error < 0.02
    assert 5.0 < model.df_ < 60.0
