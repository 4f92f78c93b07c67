"""The practical default: matched folds, leave-one-out, and the blend of both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import bolstering as ref
from scipy.sparse import csr_array
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bolstering.toy import classification, regression
from skbounds.bolstering import BolsteredScorer
from skbounds.bolstering._blend import BlendOptions, make_plan
from skbounds.bolstering._smoothed._nodes import integration_nodes
from skbounds.bolstering._table import Table

DEFAULTS = {
    "n_repeats": 1,
    "n_nodes": "auto",
    "holdout_scale": 0.7,
    "n_neighbors": 3,
    "shrink": "auto",
    "clip": 2.0,
    "random_state": 0,
}
SAME = {"rtol": 1e-12, "atol": 1e-15}


def plan_of(X, y, *, n_folds, classes=True, **options):
    """The package's own folds and nodes, which do not depend on the estimator."""
    options = BlendOptions(
        **{**DEFAULTS, **options}, n_folds=n_folds, standardize=True
    )  # fmt: skip
    codes = np.unique(y, return_inverse=True)[1] if classes else None
    targets = None if classes else np.asarray(y, dtype=float).reshape(len(y), -1)
    return make_plan(Table(X, []), targets, codes, np.ones(len(y)), options)


def estimate(model, X, y, *, sample_weight=None, **options):
    """The record of the default method."""
    options = {"categorical_features": [], **options}
    return BolsteredScorer(**options).estimate(model, X, y, sample_weight=sample_weight)


def by_the_reference(model, X, y, *, n_folds, **options):
    """The reference's blend with the package's folds and nodes."""
    plan = plan_of(X, y, n_folds=n_folds, **options)
    assert_array_equal(plan.moving, np.arange(len(X)))
    nodes = plan.moves / plan.measure.kernels.roots[:, None, None]
    names = {"n_neighbors": "neighbors"}
    chosen = {
        names.get(name, name): value
        for name, value in {**DEFAULTS, **options}.items()
        if name in ("holdout_scale", "n_neighbors", "shrink", "clip")
    }
    if chosen["shrink"] == "auto":
        chosen["shrink"] = 0.5
    return ref.auto_classification(model, X, y, plan.folds, nodes, **chosen)


def assert_blends(found, expected, *, votes_for_itself=False):
    """All parts of a record of zero-one loss."""
    parts = found.components
    assert_allclose(parts["hold_out"], expected["H"], **SAME)
    assert_allclose(parts["moved_hold_out"], expected["S"], **SAME)
    assert_allclose(parts["neighbor_labels"], expected["nl"], **SAME)
    assert ("bolstered" in parts) != votes_for_itself
    if not votes_for_itself:
        assert_allclose(parts["bolstered"], expected["g"], **SAME)
    assert_allclose(parts["center"], expected["C"], **SAME)
    assert_allclose(found.standard_error, expected["se"], **SAME)
    assert_allclose(found.resubstitution, expected["resub"], **SAME)
    assert_allclose(parts["resubstitution"], expected["resub"], **SAME)
    assert_allclose(found.error, expected["estimate"], **SAME)
    assert_allclose(found.increment, expected["estimate"] - expected["resub"], **SAME)
    assert found.kernel == "mm" and found.loss == "zero_one"


# ---------------------------------------------------------------- classification

CLASSIFIERS = {
    "lda": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(random_state=0),
    "svc": make_pipeline(StandardScaler(), SVC(C=3.0)),
    "forest": RandomForestClassifier(5, random_state=0),
    "neighbours": KNeighborsClassifier(3),
}
PROBLEMS = {
    "small": {"n": 40, "labels": ["no", "yes"]},
    "large": {"n": 70, "d": 3},
    "three classes": {"n": 61, "n_classes": 3, "labels": [7, -2, 3]},
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_blend_of_classification(name, problem):
    """Every part, with the folds and nodes handed to the reference."""
    X, y = classification(3, **PROBLEMS[problem])
    n_folds = 2 if problem == "small" else 4
    model = clone(CLASSIFIERS[name]).fit(X, y)
    found = estimate(model, X, y)
    votes = name == "neighbours"
    expected = by_the_reference(model, X, y, n_folds=n_folds)
    assert_blends(found, expected, votes_for_itself=votes)
    assert found.n_fits == n_folds
    assert 0.0 < found.integration_error < found.standard_error
    folds = "exact leave-one-out" if votes else f"{n_folds} matched folds"
    assert found.method == f"auto ({folds}, blended)"


@pytest.mark.parametrize(
    "options",
    [
        {"n_folds": 2, "n_repeats": 3},
        {"n_folds": 4, "n_repeats": 2},
        {"n_folds": 4, "holdout_scale": 0.0, "n_neighbors": 1},
        {"n_folds": 2, "holdout_scale": 1.5, "n_neighbors": 39},
        {"n_folds": 2, "n_nodes": 1},
        {"n_folds": 2, "n_nodes": 12},
        {"n_folds": 2, "shrink": 1.0, "clip": 0.3},
        {"n_folds": 2, "shrink": 1.0, "clip": 100.0},
        {"n_folds": 2, "shrink": 0.25, "random_state": 9},
    ],
)
@pytest.mark.parametrize("name", ["tree", "neighbours"])
def test_options_of_the_blend(name, options):
    """Repeats, nodes, neighbours, scale, shrinkage and clipping."""
    X, y = classification(4, n=40)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    found = estimate(model, X, y, **options)
    expected = by_the_reference(model, X, y, **options)
    assert_blends(found, expected, votes_for_itself=name == "neighbours")
    assert found.n_fits == options["n_folds"] * options.get("n_repeats", 1)


def test_clipping_does_something():
    """A centre further from the hold-out error than allowed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = estimate(model, X, y, clip=0.02, shrink=1.0)
    gap = found.components["center"] - found.components["hold_out"]
    assert abs(gap) > 0.02 * found.standard_error
    step = np.sign(gap) * 0.02 * found.standard_error
    assert_allclose(found.error, found.components["hold_out"] + step, rtol=1e-12)


@pytest.mark.parametrize("options", [{"shrink": 0.0}, {"clip": 0.0}])
@pytest.mark.parametrize("name", ["lda", "neighbours"])
def test_no_blend(name, options):
    """The hold-out error by itself; without a share no row is moved."""
    X, y = classification(5, n=40)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    found = estimate(model, X, y, **options)
    expected = by_the_reference(model, X, y, n_folds=2, **options)
    assert_allclose(found.error, expected["H"], **SAME)
    if "shrink" in options:
        assert "center" not in found.components
        assert found.n_fits == (0 if name == "neighbours" else 2)
        assert "blended" not in found.method


def test_neighbours_with_weights_by_distance():
    """No leave-one-out: the general rule."""
    X, y = classification(6, n=40)
    model = KNeighborsClassifier(3, weights="distance").fit(X, y)
    found = estimate(model, X, y)
    assert_blends(found, by_the_reference(model, X, y, n_folds=2))
    assert found.method == "auto (2 matched folds, blended)"


def test_constant_columns_do_not_count():
    """Neither for distances nor for moves."""
    X, y = classification(7, n=40)
    model = DecisionTreeClassifier(random_state=0)
    wide = np.insert(X, 1, 5.0, axis=1)
    expected = estimate(model.fit(X, y), X, y)
    found = estimate(model.fit(wide, y), wide, y)
    assert found.components == expected.components


def test_categorical_columns_do_not_move():
    """The estimator sees them as they are, the matching and the moves do not."""
    X, y = classification(8, n=40, d=3)
    X[:, 1] = np.arange(40) % 2
    seen = []

    class Watching(LinearDiscriminantAnalysis):
        def predict(self, X):
            seen.append(X)
            return super().predict(X)

    model = Watching().fit(X, y)
    estimate(model, X, y, categorical_features=[1])
    columns = np.concatenate(seen)
    assert set(columns[:, 1]) == {0.0, 1.0}
    assert len(np.unique(columns[:, 0])) > 200


# ---------------------------------------------------------------- folds


@pytest.mark.parametrize("n_folds", [2, 4])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_folds_of_classification(n_folds, problem):
    """Groups within classes in standardised columns; equal numbers of rows."""
    X, y = classification(9, **PROBLEMS[problem])
    folds = plan_of(X, y, n_folds=n_folds, n_repeats=3).folds
    matching = ref.matched_pairs if n_folds == 2 else ref.matched_groups
    groups, leftover = matching(X, y)
    assert folds.shape == (3, len(y))
    assert ref.folds_follow(folds[0], groups, leftover, n_folds)
    assert ref.folds_follow(folds[1], groups, leftover, n_folds)
    assert ref.folds_follow(folds[2], groups, leftover, n_folds)
    assert (folds[0] != folds[1]).any() and (folds[1] != folds[2]).any()
    counts = np.array([np.bincount(row, minlength=n_folds) for row in folds])
    assert (np.ptp(counts, axis=1) <= 1).all()


@pytest.mark.parametrize("n, m", [(8, None), (21, None), (43, 2)])
def test_folds_of_regression(n, m):
    """Matched in X and y together, each standardised."""
    X, y = regression(10, n=n, m=m)
    [folds] = plan_of(X, y, n_folds=4, classes=False).folds
    groups, leftover = ref.matched_groups(X, target=y)
    assert ref.folds_follow(folds, groups, leftover, 4)
    assert np.ptp(np.bincount(folds, minlength=4)) <= 1


@pytest.mark.parametrize(
    "n, smallest, expected",
    [(59, 29, 2), (60, 30, 4), (100, 8, 4), (100, 7, 2), (20, 4, 2)],
)
def test_number_of_folds(n, smallest, expected):
    """Two below 60 rows, and where a class has fewer than eight."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), (np.arange(n) < smallest).astype(int)
    found = estimate(LinearDiscriminantAnalysis().fit(X, y), X, y)
    assert found.n_fits == expected


@pytest.mark.parametrize("n, n_moving, n_nodes", [
    (100, 100, 4), (101, 101, 2), (200, 200, 2), (201, 200, 2), (499, 200, 2)
])  # fmt: skip
def test_budget_of_moved_rows(n, n_moving, n_nodes):
    """At most 400 in all: fewer nodes first, then some of the rows only."""
    X, y = classification(11, n=n)
    plan = plan_of(X, y, n_folds=4)
    assert plan.moves.shape == (n_moving, n_nodes, 2)
    assert len(np.unique(plan.moving)) == n_moving
    assert plan.moving.min() >= 0 and plan.moving.max() < n


@pytest.mark.parametrize("n", [30, 60, 150])
def test_more_nodes_move_no_fewer_rows(n):
    """Where the budget cuts a number that was asked for, it cuts to the budget."""
    X, y = classification(48, n=n)
    sizes = [
        np.prod(plan_of(X, y, n_folds=2, n_nodes=n_nodes).moves.shape[:2])
        for n_nodes in (2, 4, 8, 12, 16, 24, 64)
    ]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("n", [60, 300])
def test_moves_are_antithetic_normal(n):
    """Each node with its opposite; standard normal within 5 standard errors."""
    X, y = classification(12, n=n)
    plan = plan_of(X, y, n_folds=4)
    nodes = plan.moves / plan.measure.kernels.roots[plan.moving, None, None]
    half = nodes.shape[1] // 2
    assert_allclose(nodes[:, :half], -nodes[:, half:], rtol=1e-14)
    one_of_two = nodes[:, :half].reshape(-1, 2)
    size = len(one_of_two)
    assert np.abs(one_of_two.mean(axis=0)).max() < 5 / np.sqrt(size)
    assert np.abs(np.cov(one_of_two.T) - np.eye(2)).max() < 5 * np.sqrt(2 / size)


def test_bolstered_part_is_unbiased():
    """Its mean over 60 seeds, against normal mass beyond the line.

    A t test with 59 degrees of freedom: false alarms have probability 1e-4.
    """
    X, y = classification(50, n=40)
    model = LinearDiscriminantAnalysis().fit(X, y)
    found = [estimate(model, X, y, random_state=seed).components for seed in range(60)]
    drawn = np.array([parts["bolstered"] for parts in found])
    Z, _, sd = ref.standardize(X)
    sigma = ref.mm_approx(Z, "median", y, dim=2)
    S = [np.diag((sigma[label] * sd) ** 2) for label in y]
    exact = ref.linear_classifier_error(
        model.coef_[0], model.intercept_[0], X, 2 * y - 1, S
    )
    error = drawn.std(ddof=1) / np.sqrt(60)
    assert abs(drawn.mean() - exact) < student.ppf(1 - 5e-5, 59) * error
    assert error < 0.01


# ---------------------------------------------------------------- leave-one-out


def laplacian(a, b):
    return np.exp(-np.abs(a - b).sum())


FREE = {
    "least squares": LinearRegression(),
    "without intercept": LinearRegression(fit_intercept=False),
    "ridge": Ridge(0.7),
    "ridge without intercept": Ridge(0.7, fit_intercept=False),
    "kernel ridge": KernelRidge(alpha=0.3, kernel="rbf", gamma=0.4),
    "linear kernel ridge": KernelRidge(alpha=0.3),
    "polynomial kernel ridge": KernelRidge(alpha=0.3, kernel="poly", degree=2),
    "callable kernel": KernelRidge(
        alpha=0.3, kernel=lambda a, b: np.exp(-abs(a - b).sum())
    ),
    "neighbours": KNeighborsRegressor(4),
}


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("m", [None, 2])
def test_leave_one_out_is_what_refits_give(name, m):
    """n refits, one target or two; no fit is made."""
    X, y = regression(13, n=20, d=3, m=m)
    model = clone(FREE[name]).fit(X, y)
    found = estimate(model, X, y)
    expected = ref.leave_one_out_error(model, X, y, ref.squared)
    assert_allclose(found.components["hold_out"], expected, rtol=1e-9)
    assert_allclose(found.error, expected, rtol=1e-9)
    assert_allclose(found.standard_error, expected * np.sqrt(2 / 20), rtol=1e-9)
    resub = ref.resub_error(model.predict, X, y)
    assert_allclose(found.resubstitution, resub, rtol=1e-9)
    assert (found.method, found.n_fits) == ("auto (exact leave-one-out)", 0)
    assert found.integration_error == 0.0
    again = estimate(model, X, y, loss="absolute")
    expected = ref.leave_one_out_error(model, X, y, ref.absolute)
    assert_allclose(again.error, expected, rtol=1e-9)


@pytest.mark.parametrize("n, d", [(12, 30), (12, 12), (12, 11)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leave_one_out_of_ridge_with_many_features(n, d, fit_intercept):
    """More columns than rows."""
    X, y = regression(14, n=n, d=d)
    model = Ridge(0.5, fit_intercept=fit_intercept).fit(X, y)
    found = estimate(model, X, y)
    expected = ref.leave_one_out_error(model, X, y, ref.squared)
    assert_allclose(found.error, expected, rtol=1e-9)
    assert found.n_fits == 0


def test_leave_one_out_of_dependent_columns():
    """Least squares of least norm: fits without a row keep the dependence."""
    X, y = regression(15, n=15, d=2)
    X = np.column_stack([X, X @ [1.0, -2.0], np.full(15, 3.0)])
    model = LinearRegression().fit(X, y)
    found = estimate(model, X, y)
    expected = ref.leave_one_out_error(model, X, y, ref.squared)
    assert_allclose(found.error, expected, rtol=1e-8)
    assert found.n_fits == 0


def test_leave_one_out_of_a_given_kernel():
    """Rows and columns of the kernel matrix are left out."""
    X, y = regression(16, n=20)
    K = rbf_kernel(X, gamma=0.4)
    model = KernelRidge(alpha=0.3, kernel="precomputed").fit(K, y)
    errors = []
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        part = clone(model).fit(K[np.ix_(rest, rest)], y[rest])
        errors.append((y[i] - part.predict(K[[i]][:, rest])[0]) ** 2)
    found = estimate(model, K, y)
    assert_allclose(found.error, np.mean(errors), rtol=1e-9)
    assert found.n_fits == 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_leave_one_out_of_neighbours(n_classes, k):
    """Votes of the other rows, ties to the first class; labels that are text."""
    X, y = classification(17, n=40, n_classes=n_classes, labels=list("qbz")[:n_classes])
    model = KNeighborsClassifier(k).fit(X, y)
    found = estimate(model, X, y, shrink=0.0)
    expected = ref.leave_one_out_error(model, X, y, ref.zero_one)
    assert_allclose(found.error, expected, rtol=1e-12)
    assert_allclose(found.resubstitution, np.mean(model.predict(X) != y), rtol=1e-12)
    assert found.n_fits == 0


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_leave_one_out_of_neighbours_by_another_metric(metric):
    """The estimator's own neighbours count."""
    X, y = regression(18, n=20)
    model = KNeighborsRegressor(3, metric=metric).fit(X, y)
    expected = ref.leave_one_out_error(model, X, y, ref.squared)
    assert_allclose(estimate(model, X, y).error, expected, rtol=1e-10)


def hold_out_error(model, X, y, loss, n_folds=4):
    """Mean loss on the package's own folds."""
    [folds] = plan_of(X, y, n_folds=n_folds, classes=loss is ref.zero_one).folds
    total = 0.0
    for k in range(n_folds):
        part = clone(model).fit(X[folds != k], y[folds != k])
        total += loss(y[folds == k], part.predict(X[folds == k])).sum()
    return total / len(y)


FOLDED = {
    "positive": LinearRegression(positive=True),
    "positive ridge": Ridge(positive=True),
    "by distance": KNeighborsRegressor(3, weights="distance"),
    "pipeline": make_pipeline(StandardScaler(), Ridge()),
    "subclass": type("Special", (Ridge,), {})(),
    "tree": DecisionTreeRegressor(random_state=0),
    "kernel machine": SVR(),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folds_where_no_formula_applies(name):
    """Errors of four fits on matched folds."""
    X, y = regression(19, n=20)
    model = clone(FOLDED[name]).fit(X, y)
    found = estimate(model, X, y)
    assert (found.method, found.n_fits) == ("auto (4 matched folds)", 4)
    expected = hold_out_error(model, X, y, ref.squared)
    assert_allclose(found.error, expected, rtol=1e-10)
    assert_allclose(found.standard_error, expected * np.sqrt(2 / 20), rtol=1e-10)


@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), KernelRidge()])
def test_folds_where_the_fit_had_weights(model):
    """The hat matrix is another one then."""
    X, y = regression(20, n=20)
    w = np.random.default_rng(0).uniform(0.1, 3.0, size=20)
    model = clone(model).fit(X, y, sample_weight=w)
    found = estimate(model, X, y)
    assert (found.method, found.n_fits) == ("auto (4 matched folds)", 4)
    assert_allclose(found.error, hold_out_error(model, X, y, ref.squared), rtol=1e-10)


@pytest.mark.parametrize(
    "model", [LinearRegression(positive=True), Ridge(positive=True)]
)
def test_folds_where_signs_are_constrained_to_what_they_are(model):
    """The constraint may bind without a row, even if it does not with it."""
    X, _ = regression(21, n=20)
    y = X @ [1.0, 2.0] + np.random.default_rng(0).normal(size=20)
    model = clone(model).fit(X, y)
    assert (model.coef_ > 0.5).all()
    assert estimate(model, X, y).method == "auto (4 matched folds)"


def test_folds_where_every_target_has_an_alpha_of_its_own():
    """No single hat matrix."""
    X, y = regression(21, n=20, m=2)
    found = estimate(Ridge(np.array([0.1, 2.0])).fit(X, y), X, y)
    assert (found.method, found.n_fits) == ("auto (4 matched folds)", 4)


def test_leave_one_out_needs_the_rows_in_the_order_of_the_fit():
    """The same rows in another order: the same model, and the same error."""
    X, y = regression(22, n=20)
    order = np.random.default_rng(0).permutation(20)
    model = KNeighborsRegressor(3).fit(X[order], y[order])
    found = estimate(model, X, y)
    resub = ref.resub_error(model.predict, X, y)
    assert_allclose(found.resubstitution, resub, rtol=1e-10)
    assert found.error == pytest.approx(
        ref.leave_one_out_error(model, X, y, ref.squared), rel=1e-10
    ) or found.error == pytest.approx(
        hold_out_error(model, X, y, ref.squared), rel=1e-10
    )


@pytest.mark.parametrize("model", [KNeighborsRegressor(3), Ridge(), KernelRidge()])
def test_leave_one_out_needs_the_rows_of_the_fit(model):
    """As many other rows: no formula knows of them."""
    X, y = regression(23, n=20)
    others, z = regression(24, n=20)
    model = clone(model).fit(others, z)
    found = estimate(model, X, y)
    assert_allclose(
        found.resubstitution, ref.resub_error(model.predict, X, y), rtol=1e-9
    )
    assert (found.method, found.n_fits) == ("auto (4 matched folds)", 4)


def test_neighbours_scored_on_the_other_half():
    """Halves of the same size, as ordinary cross-validation hands them over."""
    rng = np.random.default_rng(47)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) + 2.0 * y[:, None]
    model = KNeighborsClassifier(5).fit(X[:100], y[:100])
    true = np.mean(model.predict(X[100:]) != y[100:])
    rest = rng.permutation(100) + 100
    found = estimate(model, X[rest], y[rest])
    assert true < 0.2
    assert found.resubstitution == pytest.approx(true, rel=1e-12)
    assert found.error < 0.3


def test_neighbours_that_are_the_row_itself():
    """Repeated rows with labels that differ: predictions are the estimator's own."""
    X, y = classification(25, n=40)
    X[20:] = X[:20]
    y[20:] = 1 - y[:20]
    model = KNeighborsClassifier(1).fit(X, y)
    found = estimate(model, X, y)
    assert_allclose(found.resubstitution, np.mean(model.predict(X) != y), rtol=1e-12)


# ---------------------------------------------------------------- regression


def nodes_of_regression(n, d):
    """Nodes of both kernels: the target's own direction takes -1 and 1 instead."""
    [(_, nodes)] = integration_nodes(n, 32, d, kind="qmc", seed=0)
    nodes = nodes.reshape(n, 32, d)
    ones = np.ones((n, 32, 1))
    both = [np.concatenate([nodes, sign * ones], axis=2) for sign in (-1, 1)]
    return nodes, np.concatenate(both, axis=1)


def assert_blends_squares(found, expected, tolerance):
    parts = found.components
    assert_allclose(parts["x"], expected["x"], rtol=tolerance)
    assert_allclose(parts["xy"], expected["xy"], rtol=tolerance)
    assert_allclose(parts["hold_out"], expected["H"], rtol=tolerance)
    assert_allclose(parts["center"], expected["C"], rtol=tolerance)
    assert_allclose(found.standard_error, expected["se"], rtol=tolerance)
    assert_allclose(found.error, expected["estimate"], rtol=tolerance)
    assert_allclose(found.resubstitution, expected["resub"], rtol=tolerance)


@pytest.mark.parametrize("options", [
    {"shrink": 0.3}, {"shrink": 1.0, "clip": 50.0}, {"shrink": 1.0, "clip": 0.1}
])  # fmt: skip
def test_blend_of_least_squares(options):
    """Leave-one-out, and exact means over both kernels."""
    X, y = regression(26, n=20)
    model = LinearRegression().fit(X, y)
    found = estimate(model, X, y, **options)
    expected = ref.auto_regression(model, X, y, order=3, **options)
    assert_blends_squares(found, expected, 1e-9)
    assert found.integration_error == 0.0
    assert found.method == "auto (exact leave-one-out, blended)"


def test_blend_of_neighbours():
    """Leave-one-out, and means over the package's own nodes."""
    X, y = regression(27, n=20)
    model = KNeighborsRegressor(3).fit(X, y)
    found = estimate(model, X, y, shrink=0.3)
    nodes, joint = nodes_of_regression(20, 2)
    expected = ref.auto_regression(
        model, X, y, nodes_x=nodes, nodes_xy=joint, shrink=0.3
    )
    assert_blends_squares(found, expected, 1e-9)
    assert found.integration_error > 0.0


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_blend_of_forests(n_repeats):
    """Folds, and means over the package's own nodes."""
    X, y = regression(28, n=20)
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    found = estimate(model, X, y, shrink=0.3, n_repeats=n_repeats)
    nodes, joint = nodes_of_regression(20, 2)
    plan = plan_of(X, y, n_folds=4, classes=False, n_repeats=n_repeats)
    expected = ref.auto_regression(
        model, X, y, plan.folds, nodes_x=nodes, nodes_xy=joint, shrink=0.3
    )
    assert_blends_squares(found, expected, 1e-9)
    assert found.n_fits == 4 * n_repeats
    assert found.method == "auto (4 matched folds, blended)"


def test_blend_of_polynomials():
    """Folds, and exact means over both kernels."""
    X, y = regression(29, n=24)
    model = make_pipeline(PolynomialFeatures(2), Ridge(0.1)).fit(X, y)
    found = estimate(model, X, y, shrink=0.5)
    plan = plan_of(X, y, n_folds=4, classes=False)
    expected = ref.auto_regression(model, X, y, plan.folds, shrink=0.5, order=4)
    assert_blends_squares(found, expected, 1e-9)


# ---------------------------------------------------------------- other losses


def test_log_loss_on_folds():
    """Probabilities of the folds' fits; nothing is blended."""
    X, y = classification(30, n=40, labels=["no", "yes"])
    model = LogisticRegression().fit(X, y)
    [folds] = plan_of(X, y, n_folds=2).folds
    losses = np.empty(40)
    for k in range(2):
        part = clone(model).fit(X[folds != k], y[folds != k])
        shares = part.predict_proba(X[folds == k])
        columns = (y[folds == k] == "yes").astype(int)
        losses[folds == k] = -np.log(shares[np.arange(len(columns)), columns])
    found = estimate(model, X, y, loss="log")
    assert_allclose(found.error, losses.mean(), rtol=1e-12)
    assert_allclose(found.standard_error, losses.std() / np.sqrt(40), rtol=1e-10)
    assert found.method == "auto (2 matched folds)"


@pytest.mark.parametrize("model", [LogisticRegression(), KNeighborsClassifier(3)])
def test_several_losses_share_fits(model):
    """The same as one at a time; a blended loss among them moves rows once."""
    X, y = classification(31, n=40)
    model = clone(model).fit(X, y)
    together = estimate(model, X, y, loss=["zero_one", "log"])
    assert together["log"].error == estimate(model, X, y, loss="log").error
    if isinstance(model, LogisticRegression):
        alone = estimate(model, X, y, loss="zero_one")
        assert together["zero_one"].components == alone.components
    assert together["zero_one"].n_fits == 2


# ---------------------------------------------------------------- counts


class Counting(BaseEstimator):
    """Counts the fits and the predicted rows of all its clones."""

    counts = {"fits": 0, "rows": 0}

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        self.counts["fits"] += 1
        self.fitted_ = clone(self.estimator).fit(X, y)
        if hasattr(self.fitted_, "classes_"):
            self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X):
        self.counts["rows"] += len(X)
        return self.fitted_.predict(X)

    def predict_proba(self, X):
        self.counts["rows"] += len(X)
        return self.fitted_.predict_proba(X)


class CountingClassifier(ClassifierMixin, Counting):
    pass


class CountingRegressor(RegressorMixin, Counting):
    pass


@pytest.mark.parametrize("n", [40, 90, 200, 300])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_repeats": 2},
        {"n_nodes": 1},
        {"n_nodes": 3},
        {"shrink": 0.0},
        {"loss": "log"},
    ],
)
def test_counts_of_classification(n, options):
    """Fits besides the one given, and rows predicted."""
    X, y = classification(32, n=n)
    model = CountingClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    Counting.counts.update(fits=0, rows=0)
    found = estimate(model, X, y, **options)
    assert found.n_fits == Counting.counts["fits"]
    assert found.n_evaluations == Counting.counts["rows"]
    if not options:
        # The rows twice (once held out), and at most 400 moved rows, twice.
        assert found.n_evaluations <= 2 * n + 2 * 400


@pytest.mark.parametrize("options", [{}, {"shrink": 0.3}, {"n_repeats": 3}])
def test_counts_of_regression(options):
    """Fits besides the one given, and rows predicted."""
    X, y = regression(33, n=20)
    model = CountingRegressor(DecisionTreeRegressor()).fit(X, y)
    Counting.counts.update(fits=0, rows=0)
    found = estimate(model, X, y, **options)
    assert found.n_fits == Counting.counts["fits"]
    assert found.n_evaluations == Counting.counts["rows"]


# ---------------------------------------------------------------- weights, seeds


@pytest.mark.parametrize("name", ["lda", "neighbours"])
def test_weights_of_classification(name):
    """Rows of weight zero do not exist; equal weights are none."""
    X, y = classification(34, n=46)
    w = np.random.default_rng(0).uniform(0.2, 3.0, size=46)
    w[[0, 5, 13, 21]] = 0.0
    kept = w > 0
    model = clone(CLASSIFIERS[name]).fit(X[kept], y[kept])
    whole = estimate(model, X, y, sample_weight=w)
    dropped = estimate(model, X[kept], y[kept], sample_weight=w[kept])
    assert whole == dropped
    plain = estimate(model, X[kept], y[kept])
    equal = estimate(model, X[kept], y[kept], sample_weight=np.full(kept.sum(), 0.3))
    assert_allclose(equal.error, plain.error, rtol=1e-12)
    assert_allclose(equal.standard_error, plain.standard_error, rtol=1e-12)
    scaled = estimate(model, X[kept], y[kept], sample_weight=7 * w[kept])
    assert_allclose(scaled.error, dropped.error, rtol=1e-12)
    assert dropped.error != plain.error


def test_weights_of_leave_one_out():
    """The weighted mean of the losses."""
    X, y = regression(35, n=20)
    w = np.random.default_rng(0).uniform(0.2, 3.0, size=20)
    model = LinearRegression().fit(X, y)
    losses = [
        ref.squared(y[i], clone(model).fit(np.delete(X, i, 0), np.delete(y, i))
                    .predict(X[[i]]))[0]
        for i in range(20)
    ]  # fmt: skip
    found = estimate(model, X, y, sample_weight=w)
    assert_allclose(found.error, np.average(losses, weights=w), rtol=1e-9)
    # As many rows as would have the same variance of the mean.
    size = w.sum() ** 2 / (w**2).sum()
    assert_allclose(found.standard_error, found.error * np.sqrt(2 / size), rtol=1e-12)
    found = estimate(model, X, y, sample_weight=w, loss="absolute")
    gaps = np.sqrt(losses)
    mean = np.average(gaps, weights=w)
    assert_allclose(found.error, mean, rtol=1e-9)
    variance = np.average((gaps - mean) ** 2, weights=w)
    assert_allclose(found.standard_error, np.sqrt(variance / size), rtol=1e-9)


def test_seeds_of_the_blend():
    """The same seed gives the same record."""
    X, y = classification(36, n=40)
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert estimate(model, X, y) == estimate(model, X, y)
    errors = {estimate(model, X, y, random_state=seed).error for seed in range(5)}
    assert len(errors) > 1


def test_models_are_compared_on_the_same_folds_and_moves():
    """One scorer, and a new one for each model."""
    X, y = classification(37, n=40)
    scorer = BolsteredScorer()
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    lda = LinearDiscriminantAnalysis().fit(X, y)
    scorer(tree, X, y)
    assert scorer.estimate(lda, X, y) == estimate(lda, X, y)


# ---------------------------------------------------------------- refusals


def test_too_few_rows_of_a_class():
    """One warning, and the method with one fit."""
    X, y = classification(38, n=30)
    y[:] = 0
    y[:3] = 1
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.warns(UserWarning, match="too few rows.*[Cc]ross-validation") as caught:
        found = estimate(model, X, y)
    assert len(caught) == 1
    assert found == estimate(model, X, y, method="x")
    assert found.method == "x" and found.n_fits == 0


@pytest.mark.filterwarnings("ignore:The kernels add:UserWarning")
def test_too_few_rows_of_regression():
    """Four folds of two rows are the least."""
    X, y = regression(39, n=7)
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="too few rows"):
        found = estimate(model, X, y)
    assert found == estimate(model, X, y, method="x")


@pytest.mark.filterwarnings("ignore:The kernels add:UserWarning")
def test_leave_one_out_of_few_rows():
    """It needs no folds, and so no eight rows."""
    X, y = regression(40, n=7)
    model = LinearRegression().fit(X, y)
    found = estimate(model, X, y)
    expected = ref.leave_one_out_error(model, X, y, ref.squared)
    assert_allclose(found.error, expected, rtol=1e-9)


@pytest.mark.parametrize("n_folds, smallest", [(2, 3), (4, 3)])
def test_folds_that_rows_do_not_allow(n_folds, smallest):
    """The error names the numbers, and cross-validation."""
    X, y = classification(41, n=30)
    y[:] = 0
    y[:smallest] = 1
    model = LinearDiscriminantAnalysis().fit(X, y)
    message = f"n_folds={n_folds} needs at least 4 rows of each class.*"
    with pytest.raises(ValueError, match=message + "cross-validation"):
        estimate(model, X, y, n_folds=n_folds)


def test_frozen_estimators_are_refused():
    """They cannot be fitted on folds; the other methods take them."""
    X, y = classification(42, n=40)
    model = FrozenEstimator(LinearDiscriminantAnalysis().fit(X, y))
    with pytest.raises(ValueError, match=r"FrozenEstimator.*method='x'"):
        estimate(model, X, y)
    assert estimate(model, X, y, method="x").n_fits == 0


def test_sparse_rows_are_refused():
    """They cannot be moved without becoming dense."""
    X, y = classification(43, n=40)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"sparse X.*dense"):
        estimate(model, csr_array(X), y)


@pytest.mark.parametrize(
    "kernel", ["mm", "mpe", 0.3, np.eye(2), lambda X, y: np.eye(2)]
)
def test_kernels_are_for_the_other_methods(kernel):
    """The default has a kernel of its own."""
    X, y = classification(44, n=40)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="method='auto'"):
        estimate(model, X, y, kernel=kernel)


def test_many_rows_are_warned_of():
    """There is no evidence beyond 500."""
    X, y = classification(45, n=501)
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.warns(UserWarning, match="There are 501 rows"):
        estimate(model, X, y)
