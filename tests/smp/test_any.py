"""SMPClassifier and SMPRegressor: refits of anything, and one step of some models."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp, xlogy
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbounds import (
    KernelRidgeSMP,
    PoissonSMP,
    RidgeSMP,
    SMPClassifier,
    SMPLogisticRegression,
    SMPRegressor,
)
from skbounds.smp._glm import GLM


def exact(**params):
    return LogisticRegression(tol=1e-11, max_iter=10_000, **params)


def make_classes(n_classes, n=25):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, 3))
    y = np.arange(n) % n_classes
    return X, y, np.vstack([2.0 * rng.normal(size=(4, 3)), 10.0 * X[:1]])


# ------------------------------------------------------------------------ classes


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["refit", "influence"])
def test_is_smp_logistic_regression(n_classes, weighted, method):
    """Probabilities and normalisers where both exist."""
    X, y, rows = make_classes(n_classes)
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    for C in (0.3, 5.0):
        ours = SMPClassifier(exact(C=C), method=method)
        ours.fit(X, y, sample_weight=weight)
        built_in = "exact" if method == "refit" else "one-step"
        known = SMPLogisticRegression(C=C, method=built_in)
        known.fit(X, y, sample_weight=weight)
        assert_allclose(ours.predict_proba(rows), known.predict_proba(rows), atol=1e-5)
        found = ours.log_normalizer(rows)
        assert_allclose(found, known.log_normalizer(rows), atol=1e-5)


def test_leave_one_out_of_refits_is_that_of_one_row_less():
    """By hand; and SMPLogisticRegression's, with the penalty of as many rows."""
    X, y, _ = make_classes(3)
    ours = SMPClassifier(exact()).fit(X, y)
    losses, normalisers = [], []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        left = SMPClassifier(exact()).fit(X[others], y[others])
        losses.append(-left.predict_log_proba(X[[i]])[0, y[i]])
        normalisers.append(left.log_normalizer(X[[i]])[0])
    assert ours.loo_log_loss_ == pytest.approx(np.mean(losses), abs=1e-6)
    assert ours.log_normalizer_mean_ == pytest.approx(np.mean(normalisers), abs=1e-6)
    # SMPLogisticRegression keeps the penalty per observation at one row less.
    n = len(y)
    known = SMPLogisticRegression(C=1.0).fit(X, y)
    scaled = SMPClassifier(exact(C=(n + 1.0) / n)).fit(X, y)
    assert scaled.loo_log_loss_ == pytest.approx(known.loo_log_loss_, abs=1e-5)
    assert scaled.log_normalizer_mean_ == pytest.approx(
        known.log_normalizer_mean_, abs=1e-5
    )


@pytest.mark.parametrize("method", ["refit", "influence"])
def test_weights_of_the_classifier_are_repetitions(method):
    X, y, rows = make_classes(2)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = SMPClassifier(exact(), method=method).fit(X, y, sample_weight=weight)
    index = np.repeat(np.arange(len(y)), weight)
    repeated = SMPClassifier(exact(), method=method).fit(X[index], y[index])
    assert_allclose(
        weighted.predict_proba(rows), repeated.predict_proba(rows), atol=1e-6
    )
    for name in ("loo_log_loss_", "log_normalizer_mean_"):
        assert getattr(weighted, name) == pytest.approx(
            getattr(repeated, name), abs=1e-6
        )


def test_refits_are_the_definition():
    """For a classifier without a penalty, labels that are texts, a virtual weight."""
    X, codes, rows = make_classes(3)
    y = np.array(["a", "b", "c"])[codes]
    for virtual_weight in (1.0, 0.4):
        model = SMPClassifier(GaussianNB(), virtual_weight=virtual_weight).fit(X, y)
        expected = np.empty((len(rows), 3))
        for r, row in enumerate(rows):
            for k, label in enumerate("abc"):
                fit = GaussianNB().fit(
                    np.vstack([X, row]),
                    np.append(y, label),
                    sample_weight=np.append(np.ones(len(y)), virtual_weight),
                )
                expected[r, k] = fit.predict_proba(row[None])[0, k]
        assert_allclose(model.log_normalizer(rows), np.log(expected.sum(axis=1)))
        expected /= expected.sum(axis=1, keepdims=True)
        assert_allclose(model.predict_proba(rows), expected, rtol=1e-9)
        assert model.predict(rows).tolist() == y[:3][expected.argmax(axis=1)].tolist()


def test_a_classifier_that_learns_by_heart_knows_nothing():
    """A full tree fits every virtual label: all are equally likely, log Z = log K."""
    X, y, rows = make_classes(3)
    model = SMPClassifier(DecisionTreeClassifier()).fit(X, y)
    assert_allclose(model.predict_proba(rows), 1 / 3)
    assert_allclose(model.log_normalizer(rows), np.log(3))
    assert model.log_normalizer_mean_ == pytest.approx(np.log(3))


def test_last_layers_are_logistic_regressions_on_their_features():
    """Influence after Nystroem; a pipeline that is refitted sees the virtual row."""
    X, y, rows = make_classes(2, n=40)
    features = Nystroem(n_components=8, random_state=0)
    model = SMPClassifier(make_pipeline(features, exact()), method="influence")
    model.fit(X, y)
    Z, T = features.fit_transform(X), features.transform(rows)
    known = SMPLogisticRegression(method="one-step").fit(Z, y)
    assert_allclose(model.predict_proba(rows), known.predict_proba(T), atol=1e-5)
    whole = SMPClassifier(make_pipeline(StandardScaler(), exact())).fit(X, y)
    by_hand = []
    for label in (0, 1):
        fit = make_pipeline(StandardScaler(), exact()).fit(
            np.vstack([X, rows[:1]]), np.append(y, label)
        )
        penalty = np.sum(fit[-1].coef_ ** 2) / (2.0 * (len(y) + 1))
        by_hand.append(np.log(fit.predict_proba(rows[:1])[0, label]) - penalty)
    assert whole.log_normalizer(rows[:1])[0] == pytest.approx(logsumexp(by_hand))


@pytest.mark.parametrize("n_jobs", [2])
def test_jobs_do_not_change_anything(n_jobs):
    X, y, rows = make_classes(3)
    tree = DecisionTreeClassifier(max_depth=2, splitter="random")
    alone = SMPClassifier(tree).fit(X, y)
    shared = SMPClassifier(tree, n_jobs=n_jobs).fit(X, y)
    assert np.array_equal(alone.predict_proba(rows), shared.predict_proba(rows))
    assert alone.loo_log_loss_ == shared.loo_log_loss_
    other = SMPClassifier(tree, random_state=1).fit(X, y)
    assert not np.array_equal(alone.predict_proba(rows), other.predict_proba(rows))


def test_tables_of_any_kind():
    """Dataframes with texts, polars, sparse rows, lists of texts."""
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    from sklearn.feature_extraction.text import CountVectorizer

    kinds, y = np.array(["r", "g", "b"] * 6), np.arange(18) % 2
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), exact())
    frame = pd.DataFrame({"kind": kinds}, index=np.arange(18)[::-1])
    frames = SMPClassifier(model).fit(frame, y).predict_proba(frame[:4])
    polars = pl.DataFrame({"kind": kinds})
    found = SMPClassifier(model).fit(polars, y).predict_proba(polars[:4])
    assert_allclose(found, frames)
    X = OneHotEncoder().fit_transform(frame)
    ours = SMPClassifier(exact()).fit(X, y)
    assert_allclose(
        ours.predict_proba(sparse.csr_array(X)[:4]),
        SMPClassifier(exact()).fit(X.toarray(), y).predict_proba(X[:4].toarray()),
    )
    texts = ["good day", "bad day", "good", "bad night"] * 3
    words = SMPClassifier(make_pipeline(CountVectorizer(), exact()))
    assert words.fit(texts, ["p", "n"] * 6).predict(["good good"])[0] == "p"


def test_logistic_regressions_of_all_kinds():
    """Chosen by cross-validation, with a scaled intercept, in nested pipelines."""
    X, y, rows = make_classes(2)
    grid = {"Cs": [0.5], "cv": 3, "tol": 1e-10}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        grid |= {"l1_ratios": (0.0,), "use_legacy_attributes": False}
        grid |= {"scoring": "neg_log_loss"}
    chosen = SMPClassifier(LogisticRegressionCV(**grid), method="influence").fit(X, y)
    known = SMPLogisticRegression(C=0.5, method="one-step").fit(X, y)
    assert_allclose(chosen.predict_proba(rows), known.predict_proba(rows), atol=1e-5)
    scaled = exact(solver="liblinear", intercept_scaling=10.0)
    options = {"penalize_intercept": True, "intercept_scaling": 10.0}
    for method, built_in in (("influence", "one-step"), ("refit", "exact")):
        ours = SMPClassifier(scaled, method=method).fit(X, y)
        known = SMPLogisticRegression(method=built_in, **options).fit(X, y)
        found = ours.predict_proba(rows)
        assert_allclose(found, known.predict_proba(rows), atol=1e-4)
    inner = make_pipeline(StandardScaler(), exact(C=0.1))
    nested = make_pipeline(StandardScaler(), inner)
    for method in ("influence", "refit"):
        found = SMPClassifier(nested, method=method).fit(X, y).log_normalizer(rows)
        flat = SMPClassifier(inner, method=method).fit(X, y).log_normalizer(rows)
        assert_allclose(found, flat, atol=1e-8)
    far = SMPClassifier(method="influence").fit(X, y).predict_proba(rows * 1e200)
    assert np.isfinite(far).all()


def test_a_class_of_one_row_is_left_out():
    """What remains is one class, which a refit gives probability one."""
    X, _, _ = make_classes(2)
    y = np.zeros(len(X), dtype=int)
    y[0] = 1
    model = SMPClassifier(exact()).fit(X, y)
    weighted = SMPClassifier(exact()).fit(X, y, sample_weight=np.ones(len(y)))
    assert 0.0 < model.loo_log_loss_ < 1.0
    assert model.loo_log_loss_ == pytest.approx(weighted.loo_log_loss_, abs=1e-3)


def test_rows_of_other_tables_than_the_training_rows():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X, y, rows = make_classes(2)
    names = ["a", "b", "c"]
    kinds = [
        lambda Z: Z,
        lambda Z: pd.DataFrame(Z, columns=names),
        lambda Z: pl.DataFrame(Z, schema=names),
        sparse.csr_array,
    ]
    expected = SMPClassifier(exact()).fit(X, y).predict_proba(rows)
    for training in kinds:
        model = SMPClassifier(exact()).fit(training(X), y)
        for predicted in kinds:
            with warnings.catch_warnings():
                # Of names on one side only.
                warnings.simplefilter("ignore", UserWarning)
                found = model.predict_proba(predicted(rows))
            assert_allclose(found, expected, atol=1e-8)
    whole = pl.DataFrame(np.round(rows).astype(int), schema=names)
    SMPClassifier(exact()).fit(pl.DataFrame(X, schema=names), y).predict_proba(whole)


def test_what_a_classifier_cannot_do():
    X, y, rows = make_classes(2)
    with pytest.raises(ValueError, match="has no sample_weight"):
        SMPClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="has no sample_weight"):
        SMPClassifier(KNeighborsClassifier(), virtual_weight=0.5).fit(X, y)
    with pytest.raises(ValueError, match="method='influence' needs a Logistic"):
        SMPClassifier(GaussianNB(), method="influence").fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        balanced = exact(class_weight="balanced")
        SMPClassifier(balanced, method="influence").fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        SMPClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="features"):
        SMPClassifier().fit(X, y).predict(rows[:, :2])


def test_shares_of_classes_become_the_rule_of_succession():
    """Laplace and its normaliser, from a classifier that looks at no feature."""
    rng = np.random.default_rng(0)

    class Rate(GaussianNB):
        """Without features: the share of each class."""

        def predict_proba(self, X):
            return np.tile(self.class_prior_, (len(X), 1))

    y = np.array([0] * 3 + [1] * 5)
    model = SMPClassifier(Rate()).fit(rng.normal(size=(8, 1)), y)
    assert_allclose(model.predict_proba([[0.0]]), [[0.4, 0.6]])
    assert model.log_normalizer([[0.0]])[0] == pytest.approx(np.log(10 / 9))


# ------------------------------------------------------------------------ numbers


def make_numbers(n=30):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=n)
    return X, y, np.vstack([2.0 * rng.normal(size=(4, 3)), 10.0 * X[:1]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_is_ridge_smp(weighted, alpha):
    X, y, rows = make_numbers()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    estimator = LinearRegression() if alpha == 0 else Ridge(alpha, solver="cholesky")
    ours = SMPRegressor(estimator, sigma=0.7).fit(X, y, sample_weight=weight)
    known = RidgeSMP(alpha=alpha, sigma=0.7).fit(X, y, sample_weight=weight)
    for mine, theirs in zip(
        ours.predict(rows, return_std=True),
        known.predict(rows, return_std=True),
        strict=True,
    ):
        assert_allclose(mine, theirs, rtol=1e-8)
    found = ours.log_normalizer(rows)
    assert_allclose(found, known.log_normalizer(rows), atol=1e-8)
    assert_allclose(ours.cdf(rows, y[:5]), known.cdf(rows, y[:5]), atol=1e-8)
    assert_allclose(ours.crps(rows, y[:5]), known.crps(rows, y[:5]), rtol=1e-7)
    assert_allclose(ours.log_density(rows, y[:5]), known.log_density(rows, y[:5]))
    assert_allclose(ours.predict_interval(rows), known.predict_interval(rows))
    if alpha == 0.0:
        loo = SMPRegressor(estimator).fit(X, y, sample_weight=weight)
        known = RidgeSMP(alpha=0.0, sigma="loo").fit(X, y, sample_weight=weight)
        assert loo.sigma_ == pytest.approx(known.sigma_[0])
        assert loo.loo_log_loss_ == pytest.approx(known.loo_log_loss_)
        assert loo.log_normalizer_mean_ == pytest.approx(known.log_normalizer_mean_)


def test_is_kernel_ridge_smp():
    X, y, rows = make_numbers()
    ours = SMPRegressor(KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3), sigma=1.0)
    known = KernelRidgeSMP(alpha=0.5, kernel="rbf", gamma=0.3, sigma=1.0).fit(X, y)
    found = ours.fit(X, y).predict(rows, return_std=True)
    for mine, theirs in zip(found, known.predict(rows, return_std=True), strict=True):
        assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.log_normalizer(rows), known.log_normalizer(rows), atol=1e-7)


def test_nearest_neighbours_in_closed_form():
    """k neighbours, the row itself among them: b = 1 / k."""
    X, y, _ = make_numbers()
    k, row = 4, X[:1] + 1e-9
    model = SMPRegressor(KNeighborsRegressor(k), sigma=1.0).fit(X, y)
    nearest = np.argsort(np.sum((X - row) ** 2, axis=1))[: k - 1]
    mean, std = model.predict(row, return_std=True)
    assert mean[0] == pytest.approx(y[nearest].mean())
    assert std[0] == pytest.approx(k / (k - 1))
    assert model.log_normalizer(row)[0] == pytest.approx(np.log(k / (k - 1)))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SplineTransformer(), Ridge()),
        GaussianProcessRegressor(RBF(1.0), alpha=0.3, optimizer=None),
    ],
    ids=["splines", "process"],
)
def test_other_smoothers_and_their_scale(estimator):
    """The scale makes standardised leave-one-out errors one on average."""
    X, y, rows = make_numbers()
    model = SMPRegressor(estimator).fit(X, y)
    z = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        left = SMPRegressor(clone(estimator), sigma=1.0).fit(X[others], y[others])
        mean, std = left.predict(X[[i]], return_std=True)
        z.append((y[i] - mean[0]) / std[0])
    assert model.sigma_ == pytest.approx(np.sqrt(np.mean(np.square(z))), rel=1e-6)
    assert model.sample(rows, 3, random_state=0).shape == (5, 3)


def test_offsets_of_targets_do_not_matter():
    """Nor do rows far away: the closed form of RidgeSMP."""
    X, y, rows = make_numbers()
    for shift in (0.0, 1e8):
        for estimator, alpha in ((Ridge(solver="svd"), 1.0), (LinearRegression(), 0.0)):
            ours = SMPRegressor(estimator, sigma=1.0).fit(X, y + shift)
            known = RidgeSMP(alpha=alpha, sigma=1.0).fit(X, y)
            found = ours.log_normalizer(rows)
            assert_allclose(found, known.log_normalizer(rows), rtol=1e-4, atol=1e-6)
            mean, std = ours.predict(rows, return_std=True)
            assert_allclose(mean - shift, known.predict(rows), rtol=1e-5, atol=1e-5)
            assert_allclose(std, known.predict(rows, return_std=True)[1], rtol=1e-6)
    ours = SMPRegressor(Ridge(solver="svd"), sigma=1.0).fit(X, y)
    known = RidgeSMP(alpha=1.0, sigma=1.0).fit(X, y)
    far = X[:1] * 1e4
    found = ours.predict(far, return_std=True)
    assert_allclose(found, known.predict(far, return_std=True), rtol=1e-4)


def test_training_rows_are_copied():
    X, y, rows = make_numbers()
    model, classes = SMPRegressor(sigma=1.0), SMPClassifier(GaussianNB())
    labels = (y > 0).astype(int)
    before = model.fit(X, y).predict(rows), classes.fit(X, labels).predict_proba(rows)
    X[:], y[:], labels[:] = 0.0, 0.0, 0
    assert_allclose(model.predict(rows), before[0], rtol=0)
    assert_allclose(classes.predict_proba(rows), before[1], rtol=0)


def test_what_a_regressor_cannot_do():
    X, y, _ = make_numbers()
    for estimator in (ElasticNet(), DecisionTreeRegressor(max_depth=3)):
        with pytest.raises(ValueError, match="affine"):
            SMPRegressor(estimator).fit(X, y)
    for estimator in (DecisionTreeRegressor(), KNeighborsRegressor(1)):
        with pytest.raises(ValueError, match="all the way"):
            SMPRegressor(estimator).fit(X, y)
    with pytest.raises(ValueError, match="affine"):
        SMPRegressor(RidgeCV([1e-3, 1e3])).fit(X, y)
    # Unlike the training rows, which have a copy: alone with its own target.
    nearest = SMPRegressor(KNeighborsRegressor(4, weights="distance"), sigma=1.0)
    copies = nearest.fit(np.vstack([X, X]), np.append(y, y + 1.0))
    with pytest.warns(UserWarning, match="At 1 of 1 rows .* all the way"):
        _, std = copies.predict([[0.1, 0.2, 0.3]], return_std=True)
    assert std[0] > 1e12
    # One row so far away that nothing else counts for it is no interpolation.
    away = X.copy()
    away[7, 0] = 1e9
    found = SMPRegressor(Ridge(solver="svd"), sigma=1.0).fit(away, y).predict(X)
    assert_allclose(found, RidgeSMP(sigma=1.0).fit(away, y).predict(X), atol=1e-4)
    with pytest.raises(ValueError, match="entries must be below"):
        SMPRegressor().fit(X * 1e150, y)
    with pytest.raises(ValueError, match="method='influence' needs"):
        SMPRegressor(Ridge(), method="influence").fit(X, y)
    with pytest.raises(ValueError, match="alpha > 0"):
        SMPRegressor(PoissonRegressor(alpha=0), method="influence").fit(X, np.abs(y))
    with pytest.raises(ValueError, match="no noise scale"):
        SMPRegressor(PoissonRegressor(), method="influence", sigma=2.0).fit(
            X, np.abs(y)
        )
    with pytest.raises(ValueError, match="at least 2"):
        SMPRegressor().fit(X[:1], y[:1])


# ------------------------------------------------------------------- Poisson, gamma


def tight(family, alpha=0.1):
    return family(alpha=alpha, tol=1e-12, max_iter=10_000)


def make_positive(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    mean = np.exp(0.5 + X @ [0.5, -0.3, 0.0])
    return X, rng.poisson(mean), mean * rng.gamma(2.0, 0.5, size=n)


@parametrize_with_checks(
    [
        SMPRegressor(PoissonRegressor(), method="influence"),
        SMPRegressor(GammaRegressor(), method="influence"),
    ]
)
def test_sklearn_suite(estimator, check):
    """The common tests of this package have targets of any sign."""
    check(estimator)


def test_counts_without_features_are_the_exact_predictor():
    """PoissonSMP, and Z = 1 + 1 / n."""
    counts = np.random.default_rng(0).poisson(3.0, size=12)
    zero = np.zeros((12, 1))
    model = SMPRegressor(tight(PoissonRegressor), method="influence").fit(zero, counts)
    k = np.arange(12)
    expected = PoissonSMP().fit(counts).score_samples(k)
    assert_allclose(model.log_density(zero, k), expected, atol=1e-9)
    assert_allclose(model.log_normalizer(zero[:1]), np.log(13 / 12))
    # One row less, up to the error of the step that takes it out.
    assert model.log_normalizer_mean_ == pytest.approx(np.log(12 / 11), abs=5e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_laws_of_counts_are_their_definition(weighted):
    """One Newton step per count, on the scale of the mean, with the penalty."""
    X, y, _ = make_positive()
    weight = np.ones(len(y))
    if weighted:
        weight = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    alpha = 0.1
    model = SMPRegressor(tight(PoissonRegressor, alpha), method="influence")
    model.fit(X, y, sample_weight=weight if weighted else None)
    glm = model.estimator_
    theta = np.append(glm.coef_, glm.intercept_)
    P = np.array([1.0, 1.0, 1.0, 0.0])
    Z = np.column_stack([X, np.ones(len(X))])
    total = weight.sum() + 1.0
    H = (Z.T * (weight * np.exp(Z @ theta))) @ Z + np.diag(total * alpha * P)
    start = theta - alpha * np.linalg.solve(H, P * theta)
    row = np.array([1.0, -2.0, 0.5, 1.0])
    t = np.linalg.solve(H, row)
    h, mu = row @ t, np.exp(row @ start)
    k = np.arange(400.0)
    c = (k - mu) / (1.0 + h * mu)
    moved = mu + h * mu * c
    norms = ((start + c[:, None] * t) ** 2) @ P
    values = xlogy(k, moved) - moved - gammaln(k + 1) - 0.5 * alpha * norms
    rows = np.tile(row[:3], (400, 1))
    log_normaliser = logsumexp(values)
    assert model.log_normalizer(rows[:1])[0] == pytest.approx(log_normaliser, abs=1e-9)
    proba = np.exp(values - log_normaliser)
    assert_allclose(model.log_density(rows, k), values - log_normaliser, atol=1e-9)
    assert_allclose(model.cdf(rows, k), np.cumsum(proba), atol=1e-9)
    mean = proba @ k
    found = model.predict(rows[:1], return_std=True)
    assert found[0][0] == pytest.approx(mean, rel=1e-6)
    assert found[1][0] == pytest.approx(np.sqrt(proba @ (k - mean) ** 2), rel=1e-6)
    crps = np.sum((np.cumsum(proba) - (k >= 3)) ** 2)
    assert model.crps(rows[:1], [3])[0] == pytest.approx(crps, rel=1e-6)
    low = np.searchsorted(np.cumsum(proba), 0.3)
    assert model.predict_quantiles(rows[:1], 0.3)[0, 0] == low
    draws = model.sample(rows[:1], 4000, random_state=0)[0]
    assert abs(draws.mean() - mean) < 5 * found[1][0] / np.sqrt(4000)
    assert np.array_equal(draws, np.floor(draws))


def test_laws_of_large_counts_are_continuous():
    """Beyond what can be enumerated: total mass, mean, quantiles, by brute force."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = rng.poisson(np.exp(9.0 + 0.3 * X[:, 0]))
    model = SMPRegressor(tight(PoissonRegressor), method="influence").fit(X, y)
    row = np.array([[0.5, 0.1]])
    k = np.arange(40_000.0)
    proba = np.exp(model.log_density(np.tile(row, (len(k), 1)), k))
    assert proba.sum() == pytest.approx(1.0, abs=1e-5)
    mean, std = model.predict(row, return_std=True)
    assert mean[0] == pytest.approx(proba @ k, rel=1e-5)
    assert std[0] == pytest.approx(np.sqrt(proba @ (k - proba @ k) ** 2), rel=1e-3)
    median = np.searchsorted(np.cumsum(proba), 0.5)
    assert abs(model.predict_quantiles(row, 0.5)[0, 0] - median) <= 1


@pytest.mark.parametrize("row", [[10, 0], [0, -100], [0, 20], [3, 3], [0.3, 0.2]])
def test_laws_of_counts_far_from_all_rows(row):
    """Sums over millions of counts; whatever rows are predicted beside."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.poisson(np.exp(0.5 + 0.5 * X[:, 0]))
    model = SMPRegressor(tight(PoissonRegressor, 0.01), method="influence").fit(X, y)
    row = np.array([row], dtype=float)
    glm = GLM(**model._glm_)
    k = np.arange(2_000_000.0)
    values = glm.log_likelihood(glm.added(model._features(row)), k[None])[0]
    expected = logsumexp(values)
    assert model.log_normalizer(row)[0] == pytest.approx(expected, abs=2e-5)
    proba = np.exp(values - expected)
    mean, std = model.predict(row, return_std=True)
    assert mean[0] == pytest.approx(proba @ k, rel=1e-4)
    moment = np.sqrt(proba @ (k - proba @ k) ** 2)
    assert std[0] == pytest.approx(moment, rel=1e-3)
    both = model.predict(np.vstack([row, [[0.0, -60.0]]]))
    assert both[0] == pytest.approx(mean[0], rel=1e-13)


def test_laws_of_positive_numbers_far_from_all_rows():
    """With two modes, with a huge scale, of a single row: the right numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.exp(0.5 * X[:, 0]) * rng.gamma(2, 0.5, size=60)
    model = SMPRegressor(tight(GammaRegressor, 1e-4), method="influence").fit(X, y)
    row = np.array([[0.0, 100.0]])
    glm = GLM(**model._glm_)
    t = np.linspace(-400.0, 100.0, 500_001)
    steps = glm.added(model._features(row))
    values = glm.log_density(steps, t[None], model.sigma_**-2)[0] + t
    expected = logsumexp(values) + np.log(t[1] - t[0])
    assert model.log_normalizer(row)[0] == pytest.approx(expected, abs=1e-5)
    share = np.cumsum(np.exp(values - logsumexp(values)))
    median = np.exp(t[np.searchsorted(share, 0.5)])
    found = model.predict_quantiles(row, 0.5)[0, 0]
    assert found == pytest.approx(median, rel=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = SMPRegressor(tight(GammaRegressor), method="influence", sigma=30.0)
        assert np.isfinite(wide.fit(X, y).predict(X[:3])).all()
        assert np.isfinite(wide.fit(X[:1], y[:1]).log_normalizer(X[:1])).all()
        assert np.isfinite(model.log_normalizer([[0.0, 500.0]])).all()


def test_numbers_that_are_no_counts_have_no_law_of_counts():
    X, y, _ = make_positive()
    model = SMPRegressor(PoissonRegressor(), method="influence")
    with pytest.warns(UserWarning, match="whole numbers"):
        model.fit(X, y + 0.5)
    assert np.isnan(model.loo_log_loss_)
    assert (model.log_density(X, y + 0.5) == -np.inf).all()
    with pytest.raises(ValueError, match="no curvature"):
        twice = np.column_stack([X[:, 0], X[:, 0]])
        SMPRegressor(tight(PoissonRegressor, 1e-18), method="influence").fit(
            twice, y
        ).predict(twice[:1])


def test_laws_of_positive_numbers_integrate_to_one():
    X, _, y = make_positive()
    model = SMPRegressor(tight(GammaRegressor), method="influence").fit(X, y)
    ends = {"limit": 500, "epsabs": 1e-10}
    for row in (X[:1], 4.0 * X[:1], np.zeros((1, 3))):

        def law(u, row=row):
            return np.exp(model.log_density(row, [np.exp(u)])[0] + u)

        def cdf(v, row=row):
            return model.cdf(row, [v])[0]

        mass = quad(law, -40, 20, points=[-1, 0, 1], **ends)[0]
        assert mass == pytest.approx(1.0, abs=1e-5)
        mean = quad(lambda u, law=law: np.exp(u) * law(u), -40, 20, **ends)[0]
        assert model.predict(row)[0] == pytest.approx(mean, rel=1e-5)
        median = model.predict_quantiles(row, 0.5)[0, 0]
        half = quad(law, -40, np.log(median), points=[-1.0], **ends)[0]
        assert half == pytest.approx(0.5, abs=1e-5)
        assert cdf(median) == pytest.approx(0.5, abs=1e-6)
        crps = quad(lambda v, cdf=cdf: cdf(v) ** 2, 0, 2)[0]
        crps += quad(lambda v, cdf=cdf: (1.0 - cdf(v)) ** 2, 2, 200, limit=200)[0]
        assert model.crps(row, [2.0])[0] == pytest.approx(crps, rel=1e-4)
    assert model.log_density(X[:1], [-1.0])[0] == -np.inf


def test_the_gamma_scale_is_the_best_one():
    X, _, y = make_positive()
    best = SMPRegressor(tight(GammaRegressor), method="influence").fit(X, y)
    for factor in (0.9, 1.1):
        other = SMPRegressor(
            tight(GammaRegressor), method="influence", sigma=factor * best.sigma_
        ).fit(X, y)
        assert other.loo_log_loss_ > best.loo_log_loss_


@pytest.mark.parametrize("family", [PoissonRegressor, GammaRegressor])
def test_leaving_a_row_out_is_one_step_from_leaving_it_out(family):
    """Of the order of the square of the leverage, with many rows."""
    X, counts, numbers = make_positive(n=400)
    y = counts if family is PoissonRegressor else numbers
    model = SMPRegressor(tight(family), method="influence", sigma="loo").fit(X, y)
    sigma = 1.0 if family is PoissonRegressor else model.sigma_
    losses = -model._loo()[0]
    for i in (0, 1, 2, 3):
        others = np.arange(len(y)) != i
        left = SMPRegressor(tight(family), method="influence", sigma=sigma)
        left.fit(X[others], y[others])
        found = left.log_density(X[[i]], y[[i]])[0]
        assert losses[i] == pytest.approx(found, abs=5e-4)


def test_weights_of_models_for_counts_are_repetitions():
    X, y, _ = make_positive()
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    index = np.repeat(np.arange(len(y)), weight)
    for family in (PoissonRegressor, GammaRegressor):
        target = y + (family is GammaRegressor)
        model = SMPRegressor(tight(family), method="influence")
        weighted = clone(model).fit(X, target, sample_weight=weight)
        repeated = clone(model).fit(X[index], target[index])
        for name in ("sigma_", "loo_log_loss_", "log_normalizer_mean_"):
            assert getattr(weighted, name) == pytest.approx(
                getattr(repeated, name), rel=1e-4
            )


@pytest.mark.slow
@pytest.mark.parametrize("n, d", [(20, 3), (50, 5)])
def test_laws_beat_the_plug_in_where_rows_are_few(n, d):
    """Overdispersed counts and gamma numbers; intervals cover about what they say."""
    from scipy.stats import gamma, poisson

    rng = np.random.default_rng(n)
    gains, coverage = [], []
    theta = np.append([0.6, -0.4], np.zeros(d - 2))
    for _ in range(40):
        X, rows = rng.normal(size=(n, d)), rng.normal(size=(200, d))
        draw = lambda X: np.exp(0.5 + X @ theta) * rng.gamma(2, 0.5, size=len(X))
        y, truth = draw(X), draw(rows)
        counts, seen = rng.poisson(y), rng.poisson(truth)
        model = SMPRegressor(PoissonRegressor(alpha=0.1), method="influence")
        model.fit(X, counts)
        plug_in = poisson.logpmf(seen, model.estimator_.predict(rows)).mean()
        gain = model.log_density(rows, seen).mean() - plug_in
        model = SMPRegressor(GammaRegressor(alpha=0.1), method="influence").fit(X, y)
        fitted = model.estimator_.predict(X)
        shape = 1.0 / np.mean((y / fitted - 1.0) ** 2)
        plug_in = gamma.logpdf(
            truth, shape, scale=model.estimator_.predict(rows) / shape
        ).mean()
        gains.append([gain, model.log_density(rows, truth).mean() - plug_in])
        low, high = model.predict_interval(rows).T
        coverage.append(np.mean((low < truth) & (truth < high)))
    mean, error = np.mean(gains, axis=0), np.std(gains, axis=0) / np.sqrt(40)
    assert (mean - 2.0 * error > 0.0).all()
    assert 0.85 < np.mean(coverage) < 0.93


def test_discriminant_analysis_gains_on_few_rows():
    """Improved by taking back what it is too sure of, on few rows of many columns."""
    rng = np.random.default_rng(0)
    gain = []
    for _ in range(5):
        X = rng.normal(size=(240, 8))
        y = (X[:, 0] + rng.logistic(size=240) > 0).astype(int)
        plain = LinearDiscriminantAnalysis().fit(X[:40], y[:40])
        ours = SMPClassifier(LinearDiscriminantAnalysis()).fit(X[:40], y[:40])
        at = np.arange(200), y[40:]
        gain.append(
            np.mean(ours.predict_log_proba(X[40:])[at])
            - np.mean(plain.predict_log_proba(X[40:])[at])
        )
    assert np.mean(gain) > 0.0
