"""Mean losses over kernels: closed forms, sampling, identities and limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import bolstering as ref
from scipy.stats import f as fisher
from scipy.stats import t as student
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bolstering.toy import (
    A_X,
    A_Y,
    B_X,
    B_Y,
    C_X,
    C_Y,
    classification,
    covariances,
    regression,
    scales,
)
from skbounds.bolstering import BolsteredScorer
from skbounds.bolstering._smoothed import _closed, _nodes
from skbounds.bolstering._smoothed._nodes import (
    hermite_nodes,
    integration_nodes,
)

# Kernels that are too wide on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:The kernels add:UserWarning")

LOSSES = {
    "squared": ref.squared,
    "absolute": ref.absolute,
    "zero_one": ref.zero_one,
}


def estimate(estimator, X, y, kernel, *, sample_weight=None, **options):
    """The record of a scorer, by the method "x" unless told otherwise."""
    scorer = BolsteredScorer(**{"method": "x", "kernel": kernel, **options})
    return scorer.estimate(estimator, X, y, sample_weight=sample_weight)


def closed(estimator, X, y, kernel, **options):
    """An error that is exact, and says so."""
    found = estimate(estimator, X, y, kernel, integration="closed", **options)
    assert found.integration_error == found.standard_error == 0.0
    automatic = estimate(estimator, X, y, kernel, **options)
    assert automatic.error == found.error
    return found.error


def behind(*steps):
    return lambda last: make_pipeline(*clone(list(steps)), last)


# Steps that map the features affinely.
AFFINE = {
    "bare": lambda last: last,
    "scaled": behind(StandardScaler()),
    "boxed": behind(MinMaxScaler()),
    "whitened": behind(PCA(whiten=True)),
    "twice": lambda last: make_pipeline(
        PCA(), "passthrough", MinMaxScaler((-1, 3)), last
    ),
    "nested": lambda last: make_pipeline(
        StandardScaler(), make_pipeline(PCA(n_components=2), last)
    ),
}
affine = pytest.mark.parametrize("steps", AFFINE)

# ---------------------------------------------------------------- known numbers

A_QUADRATIC = make_pipeline(PolynomialFeatures(2), LinearRegression())


@pytest.mark.parametrize(
    "X, y, model, method, kernel, expected",
    [
        (A_X, A_Y, LinearRegression(), "resub", "auto", 0.0182515337),
        (A_X, A_Y, LinearRegression(), "x", "mpe", 0.0907743531),
        (A_X, A_Y, LinearRegression(), "x", "mm", 0.0994952611),
        (A_X, A_Y, LinearRegression(), "x", "mm_exact", 0.3581053482),
        (A_X, A_Y, LinearRegression(), "xy", "mpe", 0.0279970459),
        (A_X, A_Y, LinearRegression(), "xy", "mpe_limit", 0.0296587423),
        (A_X, A_Y, LinearRegression(), "y", "auto", 0.1277607362),
        (A_X, A_Y, LinearRegression(), "x+posterior", "mpe", 0.2002835555),
        (A_X, A_Y, A_QUADRATIC, "resub", "auto", 0.0178459697),
        (A_X, A_Y, A_QUADRATIC, "x", "mpe", 0.0899130409),
        (A_X, A_Y, A_QUADRATIC, "x", "mm", 0.0960327042),
        (A_X, A_Y, A_QUADRATIC, "xy", "mpe", 0.0291519927),
        (B_X, B_Y, LinearRegression(), "resub", "auto", 0.0014501134),
        (B_X, B_Y, LinearRegression(), "x", "mpe", 0.0986634911),
        (B_X, B_Y, LinearRegression(), "x", "mm", 0.1762399726),
        (B_X, B_Y, LinearRegression(), "xy", "mpe", 0.0020436674),
        (B_X, B_Y, LinearRegression(), "y", "auto", 0.0130510204),
    ],
)
def test_oracles_of_regression(X, y, model, method, kernel, expected):
    """Numbers known to ten digits."""
    found = BolsteredScorer(method=method, kernel=kernel, standardize=False)
    found = found.estimate(clone(model).fit(X, y), X, y)
    assert found.integration_error == 0.0
    # Algorithm 1 stops at changes of 1e-8.
    tolerance = 1e-7 if kernel == "mpe" else 0.0
    assert_allclose(found.error, expected, rtol=tolerance, atol=6e-11)


class FixedRegressor(RegressorMixin, BaseEstimator):
    """A function of X that is fitted already."""

    def __init__(self, function):
        self.function = function

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return self.function(np.asarray(X))


def test_oracle_of_a_fixed_quadratic():
    """0.9 + x1 + 0.4 x2 + 0.3 x1^2 - 0.4 x1 x2 + 0.5 x2^2, kernels of Algorithm 1."""
    model = make_pipeline(PolynomialFeatures(2), LinearRegression(fit_intercept=False))
    model.fit(B_X, B_Y)
    model[-1].coef_ = np.array([0.9, 1.0, 0.4, 0.3, -0.4, 0.5])
    actual = closed(model, B_X, B_Y, "mpe", standardize=False)
    assert_allclose(actual, 0.1417758945, rtol=1e-7)


@pytest.mark.parametrize(
    "method, expected", [("x", 0.6912951119), ("xy", 0.7290381488)]
)
def test_oracle_of_a_radial_line(method, expected):
    """0.4 + sum_k a_k exp(-2 (t - x_k)^2), kernels of Algorithm 1."""
    model = KernelRidge(kernel="rbf", gamma=2.0).fit(A_X, A_Y)
    model.dual_coef_ = np.array([1.0, -0.5, 0.8, 0.3, 1.2])
    # The line's constant moves to the targets.
    y = A_Y - 0.4
    options = {"method": method, "standardize": False}
    assert_allclose(ref.resub_error(model.predict, A_X, y), 0.6702540959, atol=6e-11)
    assert_allclose(closed(model, A_X, y, "mpe", **options), expected, rtol=1e-7)


@pytest.mark.parametrize(
    "kernel, expected", [(0.1, 0.0198986486), ("mm", 0.0871692770)]
)
def test_oracles_of_a_tree(kernel, expected):
    """Cuts at 0.225 and 0.8, leaves 1.05, 1.45 and 2.1."""
    leaf_means = [1.05, 1.05, 1.45, 1.45, 2.1]
    model = DecisionTreeRegressor(max_leaf_nodes=3).fit(A_X, leaf_means)
    leaves = sorted(value for _, _, value in ref.leaf_boxes(model))
    assert_allclose(leaves, [1.05, 1.45, 2.1], rtol=1e-12)
    assert_allclose(ref.resub_error(model.predict, A_X, A_Y), 0.01, rtol=1e-12)
    actual = closed(model, A_X, A_Y, kernel, standardize=False)
    # Trees take single precision features: cuts are off by up to 3e-8.
    assert_allclose(actual, expected, rtol=0, atol=3e-9)


def linear_rule(offset):
    """The classifier sign(x1 + x2 - offset) of labels -1 and 1."""
    model = LogisticRegression().fit(C_X, C_Y)
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([-offset])
    return model


@pytest.mark.parametrize(
    "offset, options, expected",
    [
        (2.2, {"method": "resub"}, 0.0),
        (2.2, {}, 0.1746878603),
        (1.15, {"method": "resub"}, 1 / 3),
        (1.15, {}, 0.2320843659),
        (1.15, {"semi": True}, 0.3880005166),
        (2.2, {"method": "y"}, 0.2345960800),
    ],
)
def test_oracles_of_classification(offset, options, expected):
    """Numbers known to ten digits; the kernel is the default one of classes."""
    options = {"standardize": False, **options}
    found = estimate(linear_rule(offset), C_X, C_Y, "auto", **options)
    assert found.integration_error == 0.0
    assert_allclose(found.error, expected, rtol=0, atol=6e-11)


def test_oracle_of_a_fixed_width():
    """psi = 2 x with deviation 0.5: the error rises by exactly 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=200)
    model = LinearRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([2.0]), 0.0
    found = estimate(model, X, y, 0.5, standardize=False)
    assert_allclose(found.increment, 1.0, rtol=1e-12)


# ---------------------------------------------------------------- closed forms


@affine
@pytest.mark.parametrize("m", [None, 3])
@pytest.mark.parametrize("method", ["x", "xy"])
def test_linear_models(steps, m, method):
    """Exact by four Gauss-Hermite points per direction."""
    X, y = regression(0, m=m)
    model = AFFINE[steps](LinearRegression()).fit(X, y)
    rng = np.random.default_rng(1)
    q = 2 + (m or 1 if method == "xy" else 0)
    S = covariances(rng, len(X), q)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=4)
    assert_allclose(closed(model, X, y, S, method=method), expected, rtol=1e-11)


@pytest.mark.parametrize("steps", ["bare", "scaled", "whitened"])
@pytest.mark.parametrize("after", [[], [StandardScaler()]], ids=["", "then scaled"])
@pytest.mark.parametrize("m", [None, 2])
@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("degree", [1, 2])
def test_quadratic_models(steps, after, m, method, degree):
    """Polynomials of affine maps of the features, as many outputs as wanted."""
    X, y = regression(2, m=m)
    last = make_pipeline(PolynomialFeatures(degree), *after, Ridge(1e-3))
    model = AFFINE[steps](last).fit(X, y)
    rng = np.random.default_rng(3)
    q = 2 + (m or 1 if method == "xy" else 0)
    S = covariances(rng, len(X), q)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=4)
    # Steps are probed at a few points: a few digits go to differences.
    assert_allclose(closed(model, X, y, S, method=method), expected, rtol=1e-9)


@pytest.mark.parametrize("steps", ["bare", "scaled"])
@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("method", ["x", "xy"])
def test_polynomials_by_the_product_rule(steps, degree, method):
    """degree + 1 points per direction are exact; twice as many change nothing."""
    X, y = regression(4, n=12)
    last = make_pipeline(PolynomialFeatures(degree), Ridge(0.1))
    model = AFFINE[steps](last).fit(X, y)
    S = covariances(np.random.default_rng(5), len(X), 3 if method == "xy" else 2)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=2 * degree)
    found = estimate(model, X, y, S, method=method, integration="closed")
    assert found.integration_error == 0.0
    # The rows, their moved copies, and the comparison with what was recognised.
    size = len(X) * (degree + 1) ** 2
    assert size + len(X) <= found.n_evaluations <= size + 3 * len(X)
    assert_allclose(found.error, expected, rtol=1e-9)


RADIAL = {
    "svr": SVR(gamma=0.4, C=3.0),
    "svr scale": SVR(gamma="scale", C=3.0),
    "nusvr": NuSVR(gamma=0.3, C=3.0, nu=0.7),
    "kernel ridge": KernelRidge(kernel="rbf", alpha=0.1, gamma=0.4),
    "kernel ridge, default": KernelRidge(kernel="rbf", alpha=0.1),
    "gaussian process": GaussianProcessRegressor(
        ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1), optimizer=None
    ),
    "gaussian process, normalised": GaussianProcessRegressor(
        1.7 * RBF(1.5), alpha=0.1, optimizer=None, normalize_y=True
    ),
}


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("steps", ["bare", "scaled", "whitened"])
@pytest.mark.parametrize("method, d", [("x", 2), ("xy", 1)])
def test_radial_models(name, steps, method, d):
    """Smooth functions: 36 points per direction leave less than 1e-10."""
    X, y = regression(6, n=6, d=d)
    model = AFFINE[steps](clone(RADIAL[name])).fit(X, y)
    S = covariances(np.random.default_rng(7), len(X), 2, size=0.25)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=36)
    assert_allclose(closed(model, X, y, S, method=method), expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["svr", "gaussian process, normalised"])
def test_radial_models_of_two_features_and_the_target(name):
    """Correlation with both features: 24 points for each of three directions."""
    X, y = regression(6, n=6)
    model = make_pipeline(StandardScaler(), PCA(), clone(RADIAL[name])).fit(X, y)
    S = covariances(np.random.default_rng(7), len(X), 3, size=0.25)
    expected = ref.bolstered_xy_error(model.predict, X, y, S, order=24)
    assert_allclose(closed(model, X, y, S, method="xy"), expected, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel ridge", "gaussian process, normalised"])
@pytest.mark.parametrize("method", ["x", "xy"])
def test_radial_models_of_several_targets(name, method):
    """Joint kernels with two outputs, each with a mean of its own."""
    X, y = regression(8, n=5, d=1, m=2)
    model = clone(RADIAL[name]).fit(X, y)
    q = 3 if method == "xy" else 1
    S = covariances(np.random.default_rng(9), len(X), q, size=0.25)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=36)
    assert_allclose(closed(model, X, y, S, method=method), expected, rtol=1e-8)


def deviations_of(X, labels=None):
    """Deviations of kernel="mm_diag" in units of the columns, (n, d)."""
    Z, _, sd = ref.standardize(X)
    labels = np.zeros(len(X)) if labels is None else labels
    found = np.empty_like(Z)
    for label in np.unique(labels):
        rows = labels == label
        found[rows] = ref.mm_diag(Z[rows], distinct=True) * sd
    return found


def scaled_boxes(model, X, deviations):
    """Leaf boxes, rows and deviations in the coordinates that the tree sees."""
    if not hasattr(model, "steps"):
        return ref.leaf_boxes(model), X, deviations
    for _, step in model.steps[:-1]:
        ahead = step.transform(X + 1.0) - step.transform(X)
        X, deviations = step.transform(X), deviations * ahead
    return ref.leaf_boxes(model[-1]), X, deviations


TREE_STEPS = pytest.mark.parametrize("steps", ["bare", "scaled", "boxed"])


@TREE_STEPS
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("m", [None, 2])
def test_regression_trees(steps, loss, m):
    """Masses of boxes times losses of leaves, for any loss."""
    X, y = regression(10, n=14, d=3, m=m)
    model = AFFINE[steps](DecisionTreeRegressor(min_samples_leaf=2)).fit(X, y)
    boxes, Z, widths = scaled_boxes(model, X, deviations_of(X))
    expected = ref.piecewise_error(boxes, Z, y, widths, LOSSES[loss])
    assert_allclose(closed(model, X, y, "mm_diag", loss=loss), expected, rtol=1e-10)


def test_large_radial_models_are_sampled(monkeypatch):
    """Where pairs of centres cost more than predictions."""
    X, y = regression(6)
    model = SVR(gamma=0.4, C=3.0).fit(X, y)
    assert estimate(model, X, y, "mpe").integration_error == 0.0
    size = len(X) * len(model.support_vectors_) ** 2
    monkeypatch.setattr(_closed, "LARGEST_RADIAL", size)
    assert estimate(model, X, y, "mpe").integration_error == 0.0
    monkeypatch.setattr(_closed, "LARGEST_RADIAL", size - 1)
    assert estimate(model, X, y, "mpe").integration_error > 0.0


@pytest.mark.parametrize("shape", ["one", "per row"])
def test_regression_trees_with_diagonal_arrays(shape):
    """The form of the argument does not matter."""
    X, y = regression(10, n=14, d=3)
    model = DecisionTreeRegressor(min_samples_leaf=2).fit(X, y)
    deviations, S = scales(np.random.default_rng(11), len(X), 3)
    if shape == "one":
        deviations, S = np.tile(deviations[:1], (len(X), 1)), S[0]
    expected = ref.piecewise_error(ref.leaf_boxes(model), X, y, deviations)
    sampled = estimate(model, X, y, S, integration="qmc", n_nodes=1024)
    # 8 standard errors of 3 degrees of freedom: exceeded with probability 0.004.
    assert abs(sampled.error - expected) < 8 * sampled.integration_error
    assert_allclose(closed(model, X, y, S), expected, rtol=1e-10)


@TREE_STEPS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_trees(steps, n_classes):
    """Zero-one loss and semi-bolstering, labels that are text."""
    X, y = classification(12, n=24, n_classes=n_classes, labels=list("qbz")[:n_classes])
    model = AFFINE[steps](DecisionTreeClassifier(max_depth=3)).fit(X, y)
    boxes, Z, widths = scaled_boxes(model, X, deviations_of(X, y))
    rows = zip(Z, y, widths, strict=True)
    losses = np.array([ref.piecewise_loss(boxes, *row, ref.zero_one) for row in rows])
    own = model.predict(X) != y
    assert own.any()
    assert_allclose(closed(model, X, y, "mm_diag"), losses.mean(), rtol=1e-10)
    semi = np.where(own, 1.0, losses).mean()
    assert_allclose(closed(model, X, y, "mm_diag", semi=True), semi, rtol=1e-10)


def log_loss(classes):
    """Log loss of labels and rows of probabilities, clipped as floats have to be."""

    def loss(y, shares):
        share = np.asarray(shares)[:, list(classes).index(y)]
        return -np.log(np.maximum(share, np.finfo(float).eps))

    return loss


def with_shares(boxes, model):
    """Boxes with the tree's probabilities, asked for at a point inside."""
    found = []
    for low, high, _ in boxes:
        inside = np.where(np.isfinite(high), high - 1e-3, low + 1e-3)
        inside = np.where(np.isfinite(inside), inside, 0.0)
        found.append((low, high, model.predict_proba(inside[None])[0]))
    return found


def test_log_loss_of_a_tree():
    """Leaves with and without all classes."""
    X, y = classification(14, n=24, n_classes=3, labels=list("qbz"))
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    boxes = with_shares(ref.leaf_boxes(model), model)
    loss = log_loss(model.classes_)
    expected = ref.piecewise_error(boxes, X, y, deviations_of(X, y), loss)
    assert_allclose(closed(model, X, y, "mm_diag", loss="log"), expected, rtol=1e-10)


def test_own_loss_of_a_tree():
    """A callable of targets and predictions, not symmetric."""
    X, y = regression(16, n=14)
    model = DecisionTreeRegressor(min_samples_leaf=2).fit(X, y)
    pinball = lambda y, z: np.maximum(0.8 * (y - z), 0.2 * (z - y))
    boxes = ref.leaf_boxes(model)
    expected = ref.piecewise_error(boxes, X, y, deviations_of(X), pinball)
    assert_allclose(closed(model, X, y, "mm_diag", loss=pinball), expected, rtol=1e-10)


def test_trees_with_features_that_do_not_move():
    """Single precision decides on which side of a cut a row lies."""
    rng = np.random.default_rng(18)
    X = np.column_stack([rng.integers(0, 4, size=30) / 4.0, rng.normal(size=30)])
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=30)
    model = DecisionTreeRegressor(min_samples_leaf=3).fit(X, y)
    cut = model.tree_.threshold[model.tree_.feature == 0][0]
    # Above the cut by less than single precision can tell.
    X[0, 0] = cut * (1 + 1e-12)
    assert X[0, 0] > cut >= np.float32(X[0, 0])
    widths = np.column_stack([np.zeros(30), deviations_of(X[:, 1:])])
    expected = ref.piecewise_error(ref.leaf_boxes(model), X, y, widths)
    actual = closed(model, X, y, "mm_diag", categorical_features=[0])
    assert_allclose(actual, expected, rtol=1e-10)


def test_joint_kernels_of_trees():
    """Independent targets: their variance is added; with correlation: sampling."""
    X, y = regression(19, n=12)
    model = DecisionTreeRegressor(min_samples_leaf=2).fit(X, y)
    found = estimate(model, X, y, "mm", method="xy")
    assert found.integration_error == 0.0
    Z = ref.standardize(np.column_stack([X, y]))[0]
    sigma = ref.mm_approx(Z)
    widths = np.tile(sigma * X.std(axis=0), (12, 1))
    expected = ref.piecewise_error(ref.leaf_boxes(model), X, y, widths)
    assert_allclose(found.error, expected + (sigma * y.std()) ** 2, rtol=1e-9)
    assert estimate(model, X, y, "mpe", method="xy").integration_error > 0.0


LINEAR_CLASSIFIERS = {
    "lda": LinearDiscriminantAnalysis(),
    "logistic": LogisticRegression(C=0.7),
    "svc": LinearSVC(),
    "libsvm": SVC(kernel="linear"),
    "ridge": RidgeClassifier(),
}


def as_line(model, d):
    """Slopes and intercept of a decision function that is linear."""
    b = model.decision_function(np.zeros((1, d)))[0]
    return model.decision_function(np.eye(d)) - b, b


@affine
@pytest.mark.parametrize("name", LINEAR_CLASSIFIERS)
@pytest.mark.parametrize("semi", [False, True])
def test_linear_classifiers(steps, name, semi):
    """Normal mass beyond the line; labels that are text."""
    X, y = classification(20, labels=["no", "yes"])
    model = AFFINE[steps](clone(LINEAR_CLASSIFIERS[name])).fit(X, y)
    assert (model.predict(X) != y).any()
    S = covariances(np.random.default_rng(21), len(X), 2, size=0.6)
    signs = np.where(y == "yes", 1, -1)
    expected = ref.linear_classifier_error(*as_line(model, 2), X, signs, S, semi)
    assert_allclose(closed(model, X, y, S, semi=semi), expected, rtol=1e-9)


def test_rows_on_the_line():
    """They contribute one half; where nothing moves the first class is predicted."""
    model = linear_rule(2.2)
    X, y = np.array([[1.1, 1.1], [2.2, 0.0]]), np.array([-1, 1])
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([-2.2])
    assert_array_equal(model.decision_function(X), [0.0, 0.0])
    assert_allclose(closed(model, X, y, np.eye(2)), 0.5, rtol=1e-15)
    # Where nothing moves the rounding of a root decides nothing.
    found = estimate(model, X, np.array([-1, -1]), np.zeros((2, 2)))
    assert found.error == found.resubstitution == 0.0


def test_dataframes_have_closed_forms_too():
    """By position, also where a scaler knows the names."""
    X, y = regression(22)
    frame = pd.DataFrame(X, columns=["height", "width"])
    S = covariances(np.random.default_rng(23), len(X), 2)
    last = make_pipeline(PolynomialFeatures(2), LinearRegression())
    model = make_pipeline(StandardScaler(), last)
    expected = ref.bolstered_error(model.fit(X, y).predict, X, y, S, order=4)
    assert_allclose(closed(model.fit(frame, y), frame, y, S), expected, rtol=1e-9)


@pytest.mark.parametrize("standardize", [True, False])
def test_sparse_rows_have_linear_forms(standardize):
    """A width in units of the deviations, or of the columns."""
    from scipy.sparse import csr_array

    X, y = regression(24, d=3)
    X[np.abs(X) < 0.7] = 0.0
    model = LinearRegression().fit(X, y)
    sd = X.std(axis=0) if standardize else np.ones(3)
    expected = ref.bolstered_error(
        model.predict, X, y, [np.diag((0.3 * sd) ** 2)] * len(X), order=4
    )
    sparse = csr_array(X)
    actual = closed(model, sparse, y, 0.3, standardize=standardize)
    assert_allclose(actual, expected, rtol=1e-11)
    labels = np.where(y > np.median(y), 1, -1)
    rule = LogisticRegression().fit(X, labels)
    kernels = [np.diag((0.3 * sd) ** 2)] * len(X)
    expected = ref.linear_classifier_error(*as_line(rule, 3), X, labels, kernels)
    actual = closed(rule, sparse, labels, 0.3, standardize=standardize)
    assert_allclose(actual, expected, rtol=1e-11)


# ---------------------------------------------------------------- no closed form


NO_CLOSED_FORM = r"integration='closed'.*no closed form"


class CubedRegression(LinearRegression):
    """Has coef_ and intercept_, but does not predict by them."""

    def predict(self, X):
        return super().predict(X) ** 3


@pytest.mark.parametrize(
    "model, options",
    [
        (KNeighborsRegressor(3), {}),
        (RandomForestRegressor(3, random_state=0), {}),
        (CubedRegression(), {}),
        (LinearRegression(), {"loss": "absolute"}),
        (LinearRegression(), {"loss": ["squared", "absolute"]}),
        (SVR(kernel="poly"), {}),
        (make_pipeline(MinMaxScaler(clip=True), LinearRegression()), {}),
        (make_pipeline(PCA(), DecisionTreeRegressor()), {}),
        (DecisionTreeRegressor(), {"kernel": "mpe"}),
        (make_pipeline(MinMaxScaler(), PolynomialFeatures(40), Ridge()), {}),
    ],
)
def test_no_closed_form_of_regression(model, options):
    """Refused by "closed", sampled by "auto"."""
    X, y = regression(25, n=12)
    model = clone(model).fit(X, y)
    options = {"kernel": 0.3, **options}
    with pytest.raises(ValueError, match=NO_CLOSED_FORM):
        BolsteredScorer(method="x", integration="closed", **options)(model, X, y)
    found = BolsteredScorer(method="x", **options).estimate(model, X, y)
    record = found["squared"] if isinstance(found, dict) else found
    assert record.integration_error > 0.0


@pytest.mark.parametrize(
    "model, n_classes, loss",
    [
        (KNeighborsClassifier(3), 2, "zero_one"),
        (GaussianNB(), 2, "zero_one"),
        (LogisticRegression(), 3, "zero_one"),
        (LogisticRegression(), 2, "log"),
        (SVC(), 2, "zero_one"),
    ],
)
def test_no_closed_form_of_classification(model, n_classes, loss):
    """Refused by "closed", sampled by "auto"."""
    X, y = classification(26, n_classes=n_classes)
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=NO_CLOSED_FORM):
        estimate(model, X, y, 0.3, integration="closed", loss=loss)
    assert estimate(model, X, y, 0.3, loss=loss).integration_error > 0.0


# ---------------------------------------------------------------- sampling

SEEDS = 40


def sampling_errors(model, X, y, S, exact, kind, **options):
    """Errors and reported standard errors of as many seeds."""
    found = [
        estimate(model, X, y, S, integration=kind, random_state=seed, **options)
        for seed in range(SEEDS)
    ]
    errors = np.array([record.error - exact for record in found])
    return errors, np.array([record.integration_error for record in found])


def assert_calibrated(errors, reported):
    """Unbiased, and as large as they say: false alarms have probability 1e-4 each.

    Means of four streams, nearly normal: t with 39 degrees of freedom, and F with 40
    and 3 * 40.
    """
    t = errors.mean() / (errors.std(ddof=1) / np.sqrt(SEEDS))
    assert abs(t) < student.ppf(1 - 5e-5, SEEDS - 1)
    ratio = np.mean(errors**2) / np.mean(reported**2)
    low, high = fisher.ppf([5e-5, 1 - 5e-5], SEEDS, 3 * SEEDS)
    assert low < ratio < high


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qmc", "mc"])
@pytest.mark.parametrize("method", ["x", "xy"])
def test_sampling_of_a_radial_model(kind, method):
    """Against the closed form, itself tested against quadrature above."""
    X, y = regression(27, n=12)
    model = SVR(gamma=0.4, C=3.0).fit(X, y)
    q = 3 if method == "xy" else 2
    S = covariances(np.random.default_rng(28), len(X), q)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    exact = error(model.predict, X, y, S, order=24)
    errors, reported = sampling_errors(model, X, y, S, exact, kind, method=method)
    assert_calibrated(errors, reported)


def test_low_discrepancy_is_worth_something():
    """Less than a third of the random numbers' error."""
    X, y = regression(27, n=60)
    model = make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, y)
    S = covariances(np.random.default_rng(28), len(X), 2)
    exact = ref.bolstered_error(model.predict, X, y, S, order=4)
    quasi, _ = sampling_errors(model, X, y, S, exact, "qmc")
    random, _ = sampling_errors(model, X, y, S, exact, "mc")
    assert np.mean(quasi**2) < np.mean(random**2) / 9


@pytest.mark.parametrize("kind", ["qmc", "mc"])
def test_sampling_of_a_tree(kind):
    """A function with jumps, absolute loss."""
    X, y = regression(29, n=20)
    model = DecisionTreeRegressor(min_samples_leaf=2).fit(X, y)
    deviations, S = scales(np.random.default_rng(30), len(X), 2)
    exact = ref.piecewise_error(ref.leaf_boxes(model), X, y, deviations, ref.absolute)
    errors, reported = sampling_errors(
        model, X, y, S, exact, kind, loss="absolute", n_nodes=64
    )
    assert_calibrated(errors, reported)


@pytest.mark.parametrize("kind", ["qmc", "mc"])
def test_sampling_of_three_classes(kind):
    """Intervals along a dense grid, for argmax of three lines."""
    X, y = classification(31, n=18, n_classes=3)
    model = LogisticRegression().fit(X, y)
    S = covariances(np.random.default_rng(32), len(X), 2, size=0.8)
    exact = np.mean(
        [
            ref.multiclass_linear_loss_2d(model.coef_, model.intercept_, *row)
            for row in zip(X, y, S, strict=True)
        ]
    )
    assert_calibrated(*sampling_errors(model, X, y, S, exact, kind))


def test_sampling_of_joint_kernels_for_absolute_loss():
    """A linear model's residuals are normal: sd sqrt(2 / pi) at mean 0 and so on."""
    from scipy.stats import norm

    X, y = regression(33)
    model = LinearRegression().fit(X, y)
    S = covariances(np.random.default_rng(34), len(X), 3)
    a = np.r_[-model.coef_, 1.0]
    r, s = y - model.predict(X), np.sqrt(np.einsum("a,iab,b->i", a, S, a))
    exact = np.mean(2 * s * norm.pdf(r / s) + r * (2 * norm.cdf(r / s) - 1))
    errors, reported = sampling_errors(
        model, X, y, S, exact, "qmc", loss="absolute", method="xy"
    )
    assert_calibrated(errors, reported)


@pytest.mark.parametrize("kind", ["qmc", "mc"])
@pytest.mark.parametrize("q", [1, 5, 60])
def test_nodes_do_not_depend_on_blocks(kind, q):
    """Bit for bit, whatever the working memory."""
    whole = list(integration_nodes(300, 12, q, kind=kind, seed=3))
    with config_context(working_memory=0.02):
        parts = list(integration_nodes(300, 12, q, kind=kind, seed=3))
    assert len(whole) == 1 < len(parts)
    stops = [rows.stop for rows, _ in parts]
    assert [rows.start for rows, _ in parts] == [0, *stops[:-1]]
    assert_array_equal(np.concatenate([nodes for _, nodes in parts]), whole[0][1])


@pytest.mark.parametrize("kind", ["qmc", "mc"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("n_nodes", [2, 4, 7, 12])
def test_sampled_estimates_are_means_over_nodes(kind, loss, n_nodes):
    """Row by row and stream by stream; their spread is the error reported."""
    X, y = regression(66)
    w = np.random.default_rng(67).uniform(0.2, 3.0, size=len(X))
    S = covariances(np.random.default_rng(68), len(X), 2)
    model = KNeighborsRegressor(3).fit(X, y)
    [(_, nodes)] = integration_nodes(len(X), n_nodes, 2, kind=kind, seed=5)
    assert nodes.shape == (len(X), n_nodes, 2)
    moved = X[:, None] + np.einsum("iab,isb->isa", np.linalg.cholesky(S), nodes)
    predictions = model.predict(moved.reshape(-1, 2)).reshape(len(X), n_nodes)
    gaps = np.abs(y[:, None] - predictions)
    means = np.average(gaps**2 if loss == "squared" else gaps, axis=0, weights=w)
    # Four streams, as equal as they can be, one after the other.
    streams = [part.mean() for part in np.array_split(means, min(4, n_nodes))]
    found = estimate(
        model, X, y, S, loss=loss, integration=kind, n_nodes=n_nodes,
        random_state=5, sample_weight=w,
    )  # fmt: skip
    assert_allclose(found.error, means.mean(), rtol=1e-12)
    spread = np.std(streams, ddof=1) / np.sqrt(len(streams))
    assert_allclose(found.integration_error, spread, rtol=1e-9)
    assert found.standard_error == found.integration_error


@pytest.mark.parametrize("kind", ["qmc", "mc"])
def test_streams_of_nodes_are_standard_normal(kind):
    """Four streams that differ; means and covariances within 6 standard errors."""
    [(_, nodes)] = integration_nodes(500, 32, 3, kind=kind, seed=1)
    assert nodes.shape == (500, 32, 3)
    assert len(np.unique(nodes[0, :, 0])) == 32
    flat = nodes.reshape(-1, 3)
    # Of independent draws; Sobol points are closer.
    assert np.abs(flat.mean(axis=0)).max() < 6 / np.sqrt(len(flat))
    assert np.abs(np.cov(flat.T) - np.eye(3)).max() < 6 * np.sqrt(2 / len(flat))


@pytest.mark.parametrize("n_points, q", [(1, 2), (4, 1), (3, 3)])
def test_product_rule(n_points, q):
    """The reference's nodes and weights, in any order."""
    order = lambda nodes, weights: sorted(
        [*np.round(node, 12), round(weight, 12)]
        for node, weight in zip(nodes, weights, strict=True)
    )
    assert_allclose(
        order(*hermite_nodes(n_points, q)), order(*ref.hermite(q, n_points)), atol=1e-11
    )


MODELS = [
    KNeighborsRegressor(3),
    DecisionTreeRegressor(random_state=0),
    SVR(gamma=0.4),
    make_pipeline(PolynomialFeatures(3), Ridge()),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("integration", ["auto", "qmc", "mc"])
def test_estimates_do_not_depend_on_blocks(model, method, integration, monkeypatch):
    """Working memory, and predictions of few rows at a time.

    The rounding of BLAS may depend on the size of a block.
    """
    X, y = regression(35, n=60)
    model = clone(model).fit(X, y)
    run = lambda: estimate(model, X, y, "mpe", method=method, integration=integration)
    whole = run()
    with config_context(working_memory=0.01):
        limited = run()
    monkeypatch.setattr(_nodes, "ROWS", 100)
    few = run()
    assert_allclose([limited.error, few.error], whole.error, rtol=1e-12)
    assert limited.n_evaluations == few.n_evaluations == whole.n_evaluations


@pytest.mark.parametrize("integration", ["qmc", "mc"])
def test_seeds(integration):
    """The same seed gives the same bits, another one does not."""
    X, y = regression(36)
    model = KNeighborsRegressor(3).fit(X, y)
    run = lambda seed: estimate(
        model, X, y, "mpe", integration=integration, random_state=seed
    )
    assert run(0) == run(0)
    assert run(0).error != run(1).error
    same = run(np.random.RandomState(5))
    assert same == run(np.random.RandomState(5))


def test_another_seed_counts_for_kernels_too():
    """A scorer keeps what it prepared, but not beyond a change of its parameters."""
    model = LinearRegression().fit(B_X, B_Y)
    scorer = BolsteredScorer(method="x", kernel="mm_exact", random_state=0)
    scorer(model, B_X, B_Y)
    scorer.set_params(random_state=1)
    fresh = BolsteredScorer(method="x", kernel="mm_exact", random_state=1)
    assert scorer(model, B_X, B_Y) == fresh(model, B_X, B_Y)


class CountingKNeighbors(KNeighborsRegressor):
    """Counts the rows that it predicts."""

    n_rows = 0

    def predict(self, X):
        self.n_rows += len(X)
        return super().predict(X)


class CountingTree(DecisionTreeRegressor):
    """Counts the rows that it predicts."""

    n_rows = 0

    def predict(self, X):
        self.n_rows += len(X)
        return super().predict(X)


class CountingLine(LinearRegression):
    """Counts the rows that it predicts."""

    n_rows = 0

    def predict(self, X):
        self.n_rows += len(X)
        return super().predict(X)


@pytest.mark.parametrize("n_nodes", [1, 3, 5, 30, 32])
@pytest.mark.parametrize("method", ["x", "y", "xy", "x+posterior", "resub"])
def test_counts_of_evaluations(n_nodes, method):
    """The rows that the estimator was asked for."""
    X, y = regression(37)
    model = CountingKNeighbors(3).fit(X, y)
    found = estimate(
        model, X, y, "mm", method=method, n_nodes=n_nodes, posterior=BayesianRidge(),
        loss="absolute",
    )  # fmt: skip
    assert found.n_fits == 0
    assert found.n_evaluations == model.n_rows


@pytest.mark.parametrize("make", [CountingTree, CountingLine])
def test_counts_of_evaluations_of_closed_forms(make):
    """Comparisons with the estimator's own predictions count too."""
    X, y = regression(38)
    model = make().fit(X, y)
    found = estimate(model, X, y, "mm", integration="closed")
    assert found.n_evaluations == model.n_rows


# ---------------------------------------------------------------- the Y direction


@pytest.mark.parametrize("m", [None, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("steps", ["bare", "scaled", "polynomial"])
def test_flat_posterior(m, fit_intercept, steps):
    """RSS (n + p) / (n (n - p - 2)), also of several targets and of powers."""
    X, y = regression(39, n=15, m=m)
    build = {**AFFINE, "polynomial": behind(PolynomialFeatures(2, include_bias=False))}
    model = build[steps](LinearRegression(fit_intercept=fit_intercept)).fit(X, y)
    Z = X if steps == "bare" else model[:-1].transform(X)
    design = np.column_stack([np.ones(15), Z]) if fit_intercept else Z
    columns = y.reshape(15, -1).T
    expected = np.mean([ref.flat_posterior_error(design, column) for column in columns])
    found = estimate(model, X, y, "auto", method="y")
    assert found.integration_error == 0.0
    assert_allclose(found.error, expected, rtol=1e-10)


def test_flat_posterior_needs_rows():
    """n > p + 2; the error names the numbers."""
    X, y = regression(40, n=5)
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="more than 5 rows; got 5"):
        estimate(model, X, y, "auto", method="y")


def laws(name, X, y):
    """A fitted or unfitted posterior, and the law at the rows by its own word."""
    if name == "flat":
        mean, variance = ref.flat_posterior(np.column_stack([np.ones(len(X)), X]), y)
        return None, mean, variance
    if name == "bayesian ridge":
        model = BayesianRidge()
    elif name == "noisy process":
        model = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.2), optimizer=None)
    else:
        model = GaussianProcessRegressor(
            RBF(2.0), alpha=0.2, optimizer=None, normalize_y=True
        )
    mean, deviation = clone(model).fit(X, y).predict(X, return_std=True)
    # Noise that only the diagonal knows of counts, in units of y.
    noise = 0.2 * y.var() if name == "noiseless process" else 0.0
    return model, mean, deviation**2 + noise


POSTERIORS = ["flat", "bayesian ridge", "noisy process", "noiseless process"]


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("is_fitted", [True, False])
def test_predictive_laws(name, is_fitted):
    """v + (m - psi)^2 at the rows, and its mean over kernels at fixed m."""
    X, y = regression(41, n=12)
    posterior, mean, variance = laws(name, X, y)
    model = make_pipeline(PolynomialFeatures(2), LinearRegression())
    if name == "flat":
        model = LinearRegression()
    model.fit(X, y)
    if posterior is not None and is_fitted:
        posterior.fit(X, y)
    S = covariances(np.random.default_rng(42), len(X), 2)
    found = estimate(model, X, y, "auto", method="y", posterior=posterior)
    expected = ref.posterior_error(model.predict, X, mean, variance)
    assert_allclose(found.error, expected, rtol=1e-10)
    found = estimate(model, X, y, S, method="x+posterior", posterior=posterior)
    assert found.integration_error == 0.0
    expected = ref.x_posterior_error(model.predict, X, mean, variance, S, order=4)
    assert_allclose(found.error, expected, rtol=1e-9)


def test_estimators_with_deviations_are_their_own_posterior():
    """BayesianRidge predicts its law."""
    X, y = regression(43, n=12)
    model = BayesianRidge().fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    expected = ref.posterior_error(model.predict, X, mean, deviation**2)
    found = estimate(model, X, y, "auto", method="y")
    assert_allclose(found.error, expected, rtol=1e-12)


def test_absolute_loss_under_predictive_laws():
    """Normal and Student's: quadrature of |y - psi|, within the error reported."""
    from scipy.integrate import quad

    X, y = regression(44, n=12)
    model = LinearRegression().fit(X, y)
    _mean, variance = ref.flat_posterior(np.column_stack([np.ones(12), X]), y)
    dof = 12 - 3
    scale = np.sqrt(variance * (dof - 2) / dof)
    # Its centre is the prediction, so that one integral serves all rows.
    one = quad(lambda t: abs(t) * student.pdf(t, dof), -np.inf, np.inf)[0]
    exact = np.mean(scale) * one
    found = [
        estimate(model, X, y, "auto", method="y", loss="absolute", random_state=seed)
        for seed in range(SEEDS)
    ]
    errors = np.array([record.error - exact for record in found])
    assert_calibrated(errors, np.array([record.integration_error for record in found]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("own", [True, False])
def test_posterior_probabilities(n_classes, own):
    """1 - P(predicted class), by the classifier or by another."""
    X, y = classification(45, n_classes=n_classes, labels=list("qbz")[:n_classes])
    model = LogisticRegression().fit(X, y)
    other = None if own else GaussianNB()
    shares = (model if own else clone(other).fit(X, y)).predict_proba(X)
    columns = np.searchsorted(model.classes_, model.predict(X))
    found = estimate(model, X, y, "auto", method="y", posterior=other)
    expected = ref.posterior_probability_error(shares, columns)
    assert_allclose(found.error, expected, rtol=1e-12)
    assert found.integration_error == 0.0


@pytest.mark.parametrize("kind", ["tree", "line"])
def test_posterior_probabilities_over_kernels(kind):
    """The law stays that of the row while the features move."""
    X, y = classification(46, labels=["no", "yes"])
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    if kind == "line":
        model = LogisticRegression().fit(X, y)
    shares = GaussianNB().fit(X, y).predict_proba(X)
    deviations = deviations_of(X, y)
    S = deviations[:, :, None] ** 2 * np.eye(2)

    def wrong(i, label):
        if kind == "tree":
            boxes = ref.leaf_boxes(model)
            return ref.piecewise_loss(boxes, X[i], label, deviations[i], ref.zero_one)
        sign = 1 if label == "yes" else -1
        return ref.linear_classifier_loss(*as_line(model, 2), X[i], sign, S[i])

    expected = np.mean(
        [
            shares[i, 0] * wrong(i, "no") + shares[i, 1] * wrong(i, "yes")
            for i in range(len(X))
        ]
    )
    options = {"method": "x+posterior", "posterior": GaussianNB()}
    assert_allclose(closed(model, X, y, "mm_diag", **options), expected, rtol=1e-10)


# ---------------------------------------------------------------- several losses


@pytest.mark.parametrize("integration", ["qmc", "mc"])
@pytest.mark.parametrize("model", [KNeighborsRegressor(3), LinearRegression()])
def test_several_losses_at_once(integration, model):
    """The same as one at a time, from the same predictions."""
    X, y = regression(48)
    model = clone(model).fit(X, y)
    log_cosh = lambda y, z: np.log(np.cosh(y - z))
    losses = ["squared", "absolute", log_cosh]
    run = lambda loss: estimate(model, X, y, "mm", loss=loss, integration=integration)
    together = run(losses)
    assert list(together) == ["squared", "absolute", "<lambda>"]
    assert list(together.values()) == [run(loss) for loss in losses]


def test_several_losses_of_a_tree():
    """All in closed form, labels and probabilities."""
    X, y = classification(49, n_classes=3)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    run = lambda loss: estimate(model, X, y, "mm", loss=loss, integration="closed")
    together = run(["zero_one", "log"])
    assert together["zero_one"].components == run("zero_one").components
    assert together["log"].components == run("log").components
    assert together["log"].error != together["zero_one"].error


@pytest.mark.parametrize("method", ["x", "xy", "y", "x+posterior"])
def test_several_losses_with_a_closed_form_among_them(method):
    """The squared loss is sampled together with the other, within its error.

    Eight standard errors of 3 degrees of freedom are exceeded with probability 0.004.
    """
    X, y = regression(50)
    model = LinearRegression().fit(X, y)
    run = lambda loss: estimate(model, X, y, "mm", loss=loss, method=method)
    together, alone = run(["squared", "absolute"])["squared"], run("squared")
    assert alone.integration_error == 0.0
    gap = abs(together.error - alone.error)
    assert 0.0 < gap < 8 * together.integration_error


def test_scores_are_minus_errors():
    """A number, or a dict with the losses' names."""
    X, y = regression(51)
    model = LinearRegression().fit(X, y)
    scorer = BolsteredScorer(method="xy")
    assert scorer(model, X, y) == -scorer.estimate(model, X, y).error
    scorer = BolsteredScorer(method="x", loss=["squared", "absolute"])
    found = scorer.estimate(model, X, y)
    expected = {"neg_squared": -found["squared"].error}
    expected["neg_absolute"] = -found["absolute"].error
    assert scorer(model, X, y) == expected


# ---------------------------------------------------------------- identities


def problems(smallest=6):
    """Seeds, sizes and dimensions of random problems."""
    return st.tuples(
        st.integers(0, 10**6), st.integers(smallest, 14), st.integers(1, 3)
    )


REGRESSORS = {
    "line": LinearRegression(),
    "curve": make_pipeline(PolynomialFeatures(2), Ridge(0.1)),
    "cubic": make_pipeline(PolynomialFeatures(3), Ridge(0.1)),
    "radial": SVR(gamma=0.3),
    "tree": DecisionTreeRegressor(min_samples_leaf=2, random_state=0),
    "neighbours": KNeighborsRegressor(2),
}
few = settings(max_examples=12)
each_regressor = pytest.mark.parametrize("name", REGRESSORS)


@each_regressor
@pytest.mark.parametrize("method", ["x", "xy"])
@few
@given(problems())
def test_no_kernel_is_resubstitution(name, method, problem):
    """Exactly at S = 0, nearly for tiny kernels; by closed forms and sampling."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    expected = ref.resub_error(model.predict, X, y)
    q = d + (method == "xy")
    run = lambda S, kind: estimate(model, X, y, S, method=method, integration=kind)
    for kind in ("auto", "qmc"):
        found = run(np.zeros((q, q)), kind)
        assert_allclose(found.error, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(found.resubstitution, expected, rtol=1e-12, atol=1e-15)
    if name not in ("tree", "neighbours"):
        tiny = run(1e-12 * np.eye(q), "auto")
        # Slopes and curvatures are below 100: O(trace).
        assert_allclose(tiny.error, expected, rtol=1e-6, atol=1e-8)


@few
@given(problems())
def test_linear_identities(problem):
    """Closed increments of limit kernels: 2 n / (n - 1)^2 times a mean square."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = LinearRegression().fit(X, y)
    resub, fitted = ref.resub_error(model.predict, X, y), model.predict(X)
    factor = 2 * n / (n - 1) ** 2
    xy = estimate(model, X, y, "mpe_limit", method="xy")
    assert_allclose(xy.error, resub * (1 + factor), rtol=1e-8)
    x = estimate(model, X, y, "mpe_limit")
    assert_allclose(x.increment, factor * fitted.var(), rtol=1e-8, atol=1e-14)
    S = covariances(np.random.default_rng(seed), n, d + 1)
    xy = estimate(model, X, y, S, method="xy")
    a = np.r_[-model.coef_, 1.0]
    increment = np.einsum("a,iab,b->i", a, S, a).mean()
    assert_allclose(xy.increment, increment, rtol=1e-9)


@each_regressor
@few
@given(problems())
def test_joint_kernels_without_correlation(name, problem):
    """X-bolstering plus the mean variance of the targets."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    rng = np.random.default_rng(seed)
    S = np.zeros((n, d + 1, d + 1))
    S[:, :d, :d], S[:, d, d] = covariances(rng, n, d), rng.uniform(size=n)
    x = estimate(model, X, y, S[:, :d, :d])
    xy = estimate(model, X, y, S, method="xy")
    # Where it is sampled the nodes are the same: d coordinates, the others are exact.
    assert_allclose(xy.error, x.error + S[:, d, d].mean(), rtol=1e-9)


@each_regressor
@few
@given(problems(), st.floats(0.05, 2))
def test_spherical_joint_kernels(name, problem, tau):
    """One deviation for features and target, raw units: its square is added."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    run = lambda method: estimate(
        model, X, y, tau, method=method, standardize=False
    ).error  # fmt: skip
    assert_allclose(run("xy"), run("x") + tau**2, rtol=1e-9)


class Around(RegressorMixin, BaseEstimator):
    """A law around the rows' own targets."""

    def __init__(self, deviation):
        self.deviation = deviation

    def fit(self, X, y):
        self.y_ = y
        return self

    def predict(self, X, return_std=False):
        return (self.y_, np.full(len(X), self.deviation)) if return_std else self.y_


@each_regressor
@few
@given(problems(), st.floats(0.05, 2))
def test_laws_around_the_targets(name, problem, tau):
    """N(y_i, tau^2) adds tau^2 to resubstitution, and to X-bolstering."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    run = lambda method: estimate(
        model, X, y, 0.3, method=method, posterior=Around(tau)
    ).error  # fmt: skip
    assert_allclose(run("y"), run("resub") + tau**2, rtol=1e-9)
    assert_allclose(run("x+posterior"), run("x") + tau**2, rtol=1e-9)


@each_regressor
@few
@given(problems())
def test_jensen(name, problem):
    """The mean square is at least the square of the mean."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    found = estimate(model, X, y, 0.3, loss=["squared", signed])
    assert found["squared"].error >= found["signed"].error ** 2 * (1 - 1e-12)


def signed(y, prediction):
    return y - prediction


@few
@given(problems())
def test_constant_predictions(problem):
    """No kernel matters."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = DecisionTreeRegressor(min_samples_leaf=n).fit(X, y)
    S = covariances(np.random.default_rng(seed), n, d)
    for kind in ("auto", "qmc"):
        found = estimate(model, X, y, S, integration=kind)
        assert_allclose(found.error, y.var(), rtol=1e-10)


@pytest.mark.parametrize("name", ["line", "curve", "cubic", "radial", "tree"])
@pytest.mark.parametrize("method, kernel", [("x", "mm"), ("x", "mpe"), ("xy", "mpe")])
@few
@given(problems())
def test_order_of_rows(name, method, kernel, problem):
    """Closed forms do not depend on it; sampled estimates within their errors."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = clone(REGRESSORS[name]).fit(X, y)
    order = np.random.default_rng(seed).permutation(n)
    run = lambda rows: estimate(model, X[rows], y[rows], kernel, method=method)
    one, other = run(np.arange(n)), run(order)
    # 30 standard errors of 3 degrees of freedom: false alarms are below 1e-4.
    error = np.hypot(one.integration_error, other.integration_error)
    assert_allclose(one.error, other.error, rtol=1e-8, atol=30 * error)


@pytest.mark.parametrize("name", ["curve", "neighbours"])
@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("kernel", ["mm", "mpe", "mm_diag", 0.3])
@few
@given(problems())
def test_units_of_the_features(name, method, kernel, problem):
    """Standardised kernels do not know them; nor where the origin is."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = make_pipeline(StandardScaler(), clone(REGRESSORS[name]))
    rng = np.random.default_rng(seed)
    Z = X * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    run = lambda X: estimate(model.fit(X, y), X, y, kernel, method=method).error
    assert_allclose(run(Z), run(X), rtol=1e-7)


@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("kernel", ["mm", "mpe", "mpe_limit"])
@few
@given(problems(), st.floats(0.1, 10), st.floats(-3, 3))
def test_units_of_the_target(method, kernel, problem, a, b):
    """y -> a y + b multiplies squared errors by a^2, with an equivariant learner."""
    seed, n, d = problem
    X, y = regression(seed, n, d)
    model = make_pipeline(PolynomialFeatures(2), Ridge(0.1))
    run = lambda y: estimate(model.fit(X, y), X, y, kernel, method=method).error
    assert_allclose(run(a * y + b), a**2 * run(y), rtol=1e-7)


@pytest.mark.parametrize("kernel", ["mm", "mpe", "mm_exact"])
@few
@given(st.integers(0, 10**6))
def test_rotations(kernel, seed):
    """Of kernels without standardisation, in the plane."""
    X, y = regression(seed, 8, 2)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(2, 2)))[0]
    model = make_pipeline(PolynomialFeatures(2), LinearRegression())
    run = lambda X: estimate(
        model.fit(X, y), X, y, kernel, standardize=False
    ).error  # fmt: skip
    # Draws of the exact width do not turn with the rows: 2 percent of a width.
    tolerance = 0.2 if kernel == "mm_exact" else 1e-7
    assert_allclose(run(X @ turn.T), run(X), rtol=tolerance)


@pytest.mark.parametrize("steps", ["bare", "scaled"])
@few
@given(st.integers(0, 10**6), st.floats(0.05, 3))
def test_errors_of_linear_classifiers_are_probabilities(steps, seed, width):
    """In [0, 1]; semi-bolstered errors are the largest of the three."""
    X, y = classification(seed, n=16)
    model = AFFINE[steps](LinearDiscriminantAnalysis()).fit(X, y)
    plain, semi = (estimate(model, X, y, width, semi=semi) for semi in (False, True))
    assert 0.0 < plain.error < 1.0
    assert semi.error >= max(plain.error, semi.resubstitution) - 1e-15
    # At least as many errors, at most one row's worth each.
    assert semi.error <= plain.error + semi.resubstitution + 1e-15
    assert semi.method == "semi-bolstered x"


@few
@given(problems())
def test_interpolation(problem):
    """The nearest neighbour makes no errors where it stands."""
    seed, n, d = problem
    X, y = classification(seed, n, d)
    found = estimate(KNeighborsClassifier(1).fit(X, y), X, y, 1.0)
    assert found.resubstitution == 0.0 < found.error


# ---------------------------------------------------------------- weights

WEIGHTED = [
    (LinearRegression(), {"method": "x", "kernel": "mm"}),
    (LinearRegression(), {"method": "xy", "kernel": "mpe"}),
    (LinearRegression(), {"method": "resub"}),
    (DecisionTreeRegressor(max_depth=2), {"method": "x", "kernel": "mm"}),
    (KNeighborsRegressor(3), {"method": "x", "kernel": "mpe_limit"}),
    (KNeighborsRegressor(3), {"method": "xy", "kernel": "mm", "loss": "absolute"}),
    (BayesianRidge(), {"method": "y"}),
]
weighted = pytest.mark.parametrize("model, options", WEIGHTED)


@weighted
def test_rows_of_weight_zero_do_not_exist(model, options):
    """The same as without these rows, bit for bit."""
    X, y = regression(52, n=14)
    w = np.random.default_rng(53).uniform(0.2, 3.0, size=14)
    w[[0, 5, 13]] = 0.0
    kept = w > 0
    model = clone(model).fit(X[kept], y[kept])
    scorer = BolsteredScorer(**options)
    whole = scorer.estimate(model, X, y, sample_weight=w)
    assert whole == scorer.estimate(model, X[kept], y[kept], sample_weight=w[kept])


@weighted
def test_equal_weights_and_their_scale_do_not_matter(model, options):
    """Importances are relative."""
    X, y = regression(54, n=14)
    w = np.random.default_rng(55).exponential(size=14) ** 2 + 0.01
    model = clone(model).fit(X, y)
    run = lambda w: BolsteredScorer(**options).estimate(model, X, y, sample_weight=w)
    assert_allclose(run(np.full(14, 0.3)).error, run(None).error, rtol=1e-9)
    assert_allclose(run(7 * w).error, run(w).error, rtol=1e-9)
    assert abs(run(w).error / run(None).error - 1) > 1e-3


@pytest.mark.parametrize("method", ["x", "xy"])
def test_weights_of_losses(method):
    """The weighted mean of the rows' losses, given kernels."""
    X, y = regression(56)
    w = np.random.default_rng(57).uniform(0.2, 3.0, size=len(X))
    model = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(X, y)
    S = covariances(np.random.default_rng(58), len(X), 3 if method == "xy" else 2)
    error = ref.bolstered_xy_error if method == "xy" else ref.bolstered_error
    expected = error(model.predict, X, y, S, order=4, weights=w)
    found = estimate(model, X, y, S, method=method, sample_weight=w)
    assert_allclose(found.error, expected, rtol=1e-9)
    resub = ref.resub_error(model.predict, X, y, weights=w)
    assert_allclose(found.resubstitution, resub, rtol=1e-12)


def test_weights_of_kernels_and_losses():
    """Semi-bolstered, widths by class with weighted distances."""
    X, y = classification(59)
    w = np.random.default_rng(60).uniform(0.2, 3.0, size=len(X))
    model = LinearDiscriminantAnalysis().fit(X, y)
    sd = np.sqrt(w @ (X - w @ X / w.sum()) ** 2 / w.sum())
    sigma = ref.mm_approx(X / sd, "median", y, dim=2, weights=w)
    S = [np.diag((sigma[label] * sd) ** 2) for label in y]
    expected = ref.linear_classifier_error(
        *as_line(model, 2), X, 2 * y - 1, S, True, weights=w
    )
    found = estimate(model, X, y, "auto", semi=True, sample_weight=w)
    assert_allclose(found.error, expected, rtol=1e-10)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "xy"}, "method='xy' moves the targets"),
        ({"method": "x", "loss": "squared"}, "does not suit a classifier"),
        ({"method": "x", "loss": "log", "semi": True}, "semi=True is for"),
        ({"method": "y", "semi": True}, "semi=True is for"),
        ({"method": "x", "loss": []}, "must not be an empty list"),
        ({"method": "x", "loss": ["log", "log"]}, "must not repeat"),
        ({"method": "x", "loss": ["hinge"]}, "loss must be"),
    ],
)
def test_refusals_of_classification(options, message):
    """Combinations that mean nothing."""
    X, y = classification(61)
    with pytest.raises(ValueError, match=message):
        BolsteredScorer(**options)(LogisticRegression().fit(X, y), X, y)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "xy", "kernel": "mm", "standardize": False}, "standardize=True"),
        ({"method": "x", "loss": "zero_one"}, "does not suit a regressor"),
        ({"method": "x", "loss": lambda y, z: (y - z).sum()}, "one number per row"),
    ],
)
def test_refusals_of_regression(options, message):
    """Combinations that mean nothing."""
    X, y = regression(62)
    with pytest.raises(ValueError, match=message):
        BolsteredScorer(**options)(LinearRegression().fit(X, y), X, y)


def test_predictions_that_are_not_finite():
    """A logarithm outside its range."""
    rng = np.random.default_rng(63)
    X, y = rng.uniform(0.01, 1, size=(20, 1)), rng.normal(size=20)

    def logarithm(X):
        with np.errstate(invalid="ignore"):
            return np.log(X[:, 0])

    model = FixedRegressor(logarithm)
    with pytest.raises(ValueError, match="predicts NaN or infinity"):
        BolsteredScorer(method="x", kernel=1.0)(model, X, y)


def test_missing_values_are_refused():
    """They have no distance."""
    X, y = regression(64)
    model = DecisionTreeRegressor().fit(X, y)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        BolsteredScorer(method="x")(model, X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_random_forests_of_classes(n_classes):
    """Sampled zero-one and log losses against a dense grid, one feature.

    The grid errs by less than 1e-4; 8 standard errors of 4 streams are exceeded with
    probability 0.004.
    """
    labels = list("qbz")[:n_classes]
    X, y = classification(65, n=24, d=1, n_classes=n_classes, labels=labels)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    S = np.full((len(X), 1, 1), 0.09)
    grid = {"order": 40_001, "rule": "grid"}
    exact = ref.bolstered_error(model.predict, X, y, S, ref.zero_one, **grid)
    found = estimate(model, X, y, np.array([[0.09]]), n_nodes=256)
    assert abs(found.error - exact) < 1e-4 + 8 * found.integration_error
    loss = log_loss(model.classes_)
    exact = ref.bolstered_error(model.predict_proba, X, y, S, loss, **grid)
    found = estimate(model, X, y, np.array([[0.09]]), n_nodes=256, loss="log")
    assert abs(found.error - exact) < 1e-3 + 8 * found.integration_error
