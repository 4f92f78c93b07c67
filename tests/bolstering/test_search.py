"""One fit instead of cross-validation: splitter, function and search."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import (
    FitFailedWarning,
    NotFittedError,
    UnsetMetadataPassedError,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    check_scoring,
    f1_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from bolstering.toy import classification, label, regression
from skbounds.bolstering import (
    BolsteredScorer,
    BolsteredSearchCV,
    FullSampleSplit,
    bolstered_val_score,
)

DEPTHS = {"max_depth": [1, 2, 4]}
TREE = DecisionTreeClassifier(random_state=0)


class Listener:
    """Keeps what fits are given, over all clones."""

    fits = []


class Weighted(RegressorMixin, BaseEstimator):
    """Predicts a weighted mean; remembers what its fits were given."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y, sample_weight=None, note=None):
        Listener.fits.append((np.asarray(X)[:, 0], sample_weight, note))
        self.mean_ = self.shift + np.average(y, axis=0, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class WeightedClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the class of most weight; remembers what its fits were given."""

    def fit(self, X, y, sample_weight=None, note=None):
        Listener.fits.append((np.asarray(X)[:, 0], sample_weight, note))
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.best_ = self.classes_[np.bincount(codes, sample_weight).argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.best_)


class Brittle(ClassifierMixin, BaseEstimator):
    """Fails with some parameters, or where it has few rows."""

    def __init__(self, fails=False, at_least=0):
        self.fails = fails
        self.at_least = at_least

    def fit(self, X, y):
        if self.fails or len(y) < self.at_least:
            raise RuntimeError("refuses")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


# The splitter


def test_full_sample_split():
    """One split with everything on both sides, for whatever has a length."""
    splitter = FullSampleSplit()
    for X in (
        np.zeros((5, 2)),
        [[1]] * 5,
        sparse.csr_array((5, 2)),
        pd.Series([0] * 5),
    ):
        [(train, test)] = splitter.split(X)
        assert_array_equal(train, np.arange(5))
        assert_array_equal(test, np.arange(5))
        assert train is not None and train.dtype.kind == "i"
    assert splitter.get_n_splits() == splitter.get_n_splits(X, None, None) == 1
    assert repr(splitter) == "FullSampleSplit()"
    assert isinstance(pickle.loads(pickle.dumps(splitter)), FullSampleSplit)
    with pytest.raises(ValueError, match="groups"):
        list(splitter.split(np.zeros((5, 2)), groups=[0, 0, 1, 1, 1]))


def test_groups_are_for_parts():
    """The search keeps them together; one split and one fit cannot."""
    X, y = classification(0, n=48)
    groups = np.array(list("abcdefgh"))[np.arange(48) % 8]
    search = BolsteredSearchCV(TREE, DEPTHS).fit(X, y, groups=groups)
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        model = clone(TREE).set_params(**params)
        [expected] = bolstered_val_score(model, X, y, groups=groups)
        assert score == pytest.approx(expected, rel=1e-12)
        assert score != bolstered_val_score(model, X, y)[0]
    with config_context(enable_metadata_routing=True):
        routed = BolsteredSearchCV(TREE, DEPTHS).fit(X, y, groups=groups)
    assert_array_equal(
        routed.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="LeaveOneGroupOut"):
        BolsteredSearchCV(TREE, DEPTHS).fit(X, y, groups=np.arange(48) % 4)
    with pytest.raises(ValueError, match=r"groups.*method='x'"):
        BolsteredSearchCV(TREE, DEPTHS, method="x").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups"):
        cross_validate(
            TREE, X, y, scoring=BolsteredScorer(), cv=FullSampleSplit(),
            params={"groups": groups},
        )  # fmt: skip


# What candidates are ranked by


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_those_of_held_out_errors(seed):
    """Scores are corrected errors, ranks are not of these (A.2)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(36, 3))
    y = (X[:, 0] + 1.5 * rng.normal(size=36) > 0.6).astype(int)
    grid = {"max_depth": [1, 2, 3, 5, 8], "min_samples_leaf": [1, 3, 6, 9]}
    search = BolsteredSearchCV(TREE, grid).fit(X, y)
    found = [
        BolsteredScorer().estimate(clone(TREE).set_params(**params).fit(X, y), X, y)
        for params in search.cv_results_["params"]
    ]
    scores = 1.0 - np.array([record.error for record in found])
    assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-12)
    held_out = np.array([record.hold_out for record in found])
    ranks = search.cv_results_["rank_test_score"]
    assert_array_equal(ranks, 1 + (held_out[:, None] > held_out + 1e-12).sum(axis=1))
    assert search.best_index_ == np.argmin(ranks)
    assert search.best_score_ == pytest.approx(scores[search.best_index_])


@pytest.mark.parametrize("seed", [0, 4])
def test_ranks_by_both_errors_differ(seed):
    """By little: candidates that predict a class more often are corrected less."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 1.5 * rng.normal(size=300) > 1.0).astype(int)
    grid = {
        "n_neighbors": [1, 2, 3, 4, 5, 6, 8, 10, 12, 14],
        "weights": ["uniform", "distance"],
        "p": [1, 2, 9],
    }
    results = BolsteredSearchCV(KNeighborsClassifier(), grid).fit(X, y).cv_results_
    scores, ranks = results["mean_test_score"], results["rank_test_score"]
    later = ranks[:, None] > ranks
    assert (scores[:, None] > scores + 1e-6)[later].any()


@pytest.mark.parametrize("what", ["repeat another row", "holds nearly all"])
def test_rows_are_warned_of_once(what):
    """By the search, and not by each of its candidates."""
    X, y = classification(5, n=40)
    if what == "repeat another row":
        X[30:], y[30:] = X[:10], y[:10]
    else:
        X[5, 1] = 1e6
    grid = {"var_smoothing": [1e-9, 0.3, 3.0]}
    with pytest.warns(UserWarning, match=what) as caught:
        BolsteredSearchCV(GaussianNB(), grid).fit(X, y)
    assert sum(what in str(warning.message) for warning in caught) == 1


def test_only_the_winner_is_fitted_on_all_rows():
    """Candidates have six fits on halves each."""
    X, y = classification(1, n=40)
    Listener.fits = []
    search = BolsteredSearchCV(WeightedClassifier(), [{}, {}, {}]).fit(X, y)
    sizes = [len(rows) for rows, _, _ in Listener.fits]
    assert sorted(sizes) == [20] * 18 + [40]
    assert sizes[-1] == 40
    Listener.fits = []
    BolsteredSearchCV(WeightedClassifier(), [{}, {}], refit=False).fit(X, y)
    assert [len(rows) for rows, _, _ in Listener.fits] == [20] * 12
    assert hasattr(search, "best_estimator_")


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", make_scorer(f1_score)], ids=label)
def test_scores_that_are_no_means(scoring):
    """Those of the function, and ranks of these."""
    X, y = classification(3, n=45)
    grid = {"var_smoothing": [1e-9, 0.3, 3.0]}
    search = BolsteredSearchCV(GaussianNB(), grid, scoring=scoring).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    expected = [
        bolstered_val_score(GaussianNB(**params), X, y, scoring=scoring)[0]
        for params in search.cv_results_["params"]
    ]
    assert_allclose(scores, expected, rtol=1e-12)
    assert search.best_index_ == np.argmax(scores)
    assert search.score(X, y) == pytest.approx(
        check_scoring(search.best_estimator_, scoring)(search.best_estimator_, X, y)
    )


def test_scorers_as_losses():
    """The best candidate's plain score is that of the scorer."""
    X, y = classification(3, n=45)
    scorer = make_scorer(f1_score)
    grid = {"var_smoothing": [1e-9, 0.3, 3.0]}
    search = BolsteredSearchCV(GaussianNB(), grid, loss=scorer).fit(X, y)
    expected = BolsteredSearchCV(GaussianNB(), grid, scoring="f1").fit(X, y)
    assert search.best_params_ == expected.best_params_
    assert search.best_score_ == pytest.approx(expected.best_score_)
    assert search.score(X, y) == pytest.approx(expected.score(X, y))


@pytest.mark.parametrize("as_dict", [False, True])
def test_several_scores(as_dict):
    """By name; `refit` says which decides."""
    X, y = classification(4, n=45)
    scoring = ["roc_auc", "accuracy", "neg_log_loss"]
    names = ["a", "b", "c"] if as_dict else scoring
    given = dict(zip(names, scoring, strict=True)) if as_dict else scoring
    grid = {"var_smoothing": [1e-9, 0.3, 3.0]}
    with pytest.raises(ValueError, match="refit"):
        BolsteredSearchCV(GaussianNB(), grid, scoring=given).fit(X, y)
    for index, name in enumerate(names):
        search = BolsteredSearchCV(GaussianNB(), grid, scoring=given, refit=name)
        results = search.fit(X, y).cv_results_
        for own, known in zip(names, scoring, strict=True):
            expected = [
                bolstered_val_score(GaussianNB(**params), X, y, scoring=known)[0]
                for params in results["params"]
            ]
            assert_allclose(results[f"mean_test_{own}"], expected, rtol=1e-12)
        assert search.best_index_ == np.argmin(results[f"rank_test_{name}"])
        assert search.best_score_ == results[f"mean_test_{name}"][search.best_index_]
        assert search.multimetric_
        plain = check_scoring(search.best_estimator_, scoring[index])
        assert search.score(X, y) == pytest.approx(plain(search.best_estimator_, X, y))


# The same in three ways


@pytest.mark.parametrize("options", [{}, {"method": "x"}, {"n_repeats": 2}])
def test_cross_val_score_with_the_splitter(options):
    """The function, scikit-learn's function, and the scorer by hand."""
    X, y = classification(1, n=40)
    by_hand = BolsteredScorer(**options).estimate(clone(TREE).fit(X, y), X, y)
    scorer = BolsteredScorer(**options)
    found = cross_val_score(TREE, X, y, scoring=scorer, cv=FullSampleSplit())
    assert_array_equal(found, [-by_hand.error])
    assert_array_equal(
        bolstered_val_score(TREE, X, y, loss="zero_one", **options), found
    )
    accuracy = bolstered_val_score(TREE, X, y, **options)
    assert accuracy.shape == (1,)
    assert_allclose(accuracy, 1.0 + found, rtol=1e-14)
    assert not hasattr(TREE, "tree_")


SEARCHES = [
    (TREE, DEPTHS, {}),
    (TREE, DEPTHS, {"method": "x", "kernel": "mm_diag"}),
    (SVC(), {"C": [0.1, 1.0, 10.0]}, {"n_repeats": 2}),
    (GaussianNB(), {"var_smoothing": [1e-9, 0.1, 1.0]}, {"loss": "log"}),
    (KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, {"random_state": 3}),
    (Ridge(), {"alpha": [0.01, 1.0, 100.0]}, {}),
    (Ridge(), {"alpha": [0.01, 1.0, 100.0]}, {"method": "xy"}),
    (DecisionTreeRegressor(random_state=0), DEPTHS, {"loss": "absolute"}),
    (DecisionTreeRegressor(random_state=0), DEPTHS, {"n_repeats": 2}),
]


@pytest.mark.parametrize(("estimator", "grid", "options"), SEARCHES, ids=label)
def test_both_searches_agree(estimator, grid, options):
    """Same scores up to the score's definition, same ranking, same choice."""
    is_class = isinstance(estimator, ClassifierMixin)
    X, y = (classification if is_class else regression)(2, n=40)
    plain = GridSearchCV(
        estimator, grid, scoring=BolsteredScorer(**options), cv=FullSampleSplit()
    ).fit(X, y)
    search = BolsteredSearchCV(estimator, grid, **options).fit(X, y)
    errors = -plain.cv_results_["mean_test_score"]
    assert len(set(errors)) > 1
    expected = -errors
    if "loss" not in options:
        expected = 1.0 - (errors if is_class else errors / y.var())
    assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    ranks = [s.cv_results_["rank_test_score"] for s in (plain, search)]
    assert_array_equal(*ranks)
    assert search.best_params_ == plain.best_params_
    assert search.n_splits_ == 1
    for params, error in zip(search.cv_results_["params"], errors, strict=True):
        fitted = clone(estimator).set_params(**params).fit(X, y)
        assert BolsteredScorer(**options)(fitted, X, y) == -error
    assert_array_equal(search.predict(X), plain.predict(X))


@pytest.mark.parametrize("method", ["auto", "x"])
def test_number_of_jobs_changes_no_bit(method):
    """One process or two, and again with the same search."""
    X, y = classification(3, n=40)
    searches = [
        BolsteredSearchCV(TREE, DEPTHS, method=method, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(*scores)
    again = searches[0].fit(X, y).cv_results_["mean_test_score"]
    assert_array_equal(again, scores[0])
    if method == "auto":
        # Closed forms do not draw.
        other = clone(searches[0]).set_params(random_state=1).fit(X, y)
        assert (other.cv_results_["mean_test_score"] != scores[0]).any()


def test_several_losses():
    """One search for all, refitted by one of them; scores are those of each alone."""
    X, y = regression(4, n=40)
    losses = ["squared", "absolute"]
    names = ["neg_squared", "neg_absolute"]
    model, grid = DecisionTreeRegressor(random_state=0), DEPTHS
    plain = GridSearchCV(
        model, grid, scoring=BolsteredScorer(loss=losses), cv=FullSampleSplit(),
        refit="neg_squared",
    ).fit(X, y)  # fmt: skip
    for refit, loss in zip(names, losses, strict=True):
        search = BolsteredSearchCV(model, grid, loss=losses, refit=refit).fit(X, y)
        assert search.multimetric_
        for name, single in zip(names, losses, strict=True):
            key = f"mean_test_{name}"
            alone = BolsteredSearchCV(model, grid, loss=single).fit(X, y)
            expected = alone.cv_results_["mean_test_score"]
            assert_allclose(search.cv_results_[key], expected, rtol=1e-12)
            assert_allclose(plain.cv_results_[key], expected, rtol=1e-12)
        metric = {"squared": mean_squared_error, "absolute": mean_absolute_error}[loss]
        X_new, y_new = regression(5, n=30)
        expected = -metric(y_new, search.best_estimator_.predict(X_new))
        assert search.score(X_new, y_new) == pytest.approx(expected)
    with pytest.raises(ValueError, match="refit"):
        BolsteredSearchCV(model, grid, loss=losses).fit(X, y)


# The function


def test_exact_leave_one_out():
    """R squared of least squares is one minus the LOO residuals' share of var y."""
    X, y = regression(5, n=30)
    left_out = cross_val_predict(LinearRegression(), X, y, cv=LeaveOneOut())
    found = bolstered_val_score(LinearRegression(), X, y)
    assert_allclose(found, 1.0 - np.mean((y - left_out) ** 2) / y.var(), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize("gamma", [None, 0.3])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_leave_one_out_of_an_unfitted_kernel_ridge(kernel, gamma, scoring):
    """As of n refits, whether the function fits or not."""
    X, y = regression(6, n=30, d=3)
    model = KernelRidge(alpha=0.2, kernel=kernel, gamma=gamma)
    left_out = cross_val_predict(model, X, y, cv=LeaveOneOut())
    expected = -np.abs(y - left_out).mean()
    if scoring is None:
        expected = 1.0 - np.mean((y - left_out) ** 2) / y.var()
    found = bolstered_val_score(model, X, y, scoring=scoring)
    assert_allclose(found, expected, rtol=1e-9)
    found = bolstered_val_score(model, X.tolist(), y, scoring=scoring)
    assert_allclose(found, expected, rtol=1e-9)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"kernel": "none"}, "kernel"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "scale"}, "gamma"),
    ],
)
def test_bad_parameters_of_kernel_ridge(params, message):
    X, y = regression(6, n=30)
    model = KernelRidge(**{"kernel": "rbf", **params})
    with pytest.raises(ValueError, match=message):
        bolstered_val_score(model, X, y)


def test_kernel_ridge_with_weights_is_fitted_with_them():
    """Leave-one-out has no formula then: folds are fitted, with the weights."""
    X, y = regression(6, n=40, d=2)
    weights = np.r_[np.ones(20), np.full(20, 0.01)]
    model = KernelRidge(alpha=0.2, kernel="rbf")
    plain = bolstered_val_score(model, X, y)
    weighted = bolstered_val_score(model, X, y, params={"sample_weight": weights})
    assert weighted != plain


def test_singular_kernel_ridge():
    """A kernel matrix that cannot be factorised leaves the errors to folds."""
    X, y = regression(6, n=30, d=2)
    model = KernelRidge(alpha=1e-30, kernel="linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bolstered_val_score(model, X, y)
    assert np.isfinite(found).all()


def test_errors_held_out():
    """A vote of the majority errs on the minority in whatever folds."""
    X, y = classification(5, n=40)
    y = np.r_[np.zeros(25, dtype=int), np.ones(15, dtype=int)]
    found = bolstered_val_score(DummyClassifier(), X, y)
    assert_allclose(found, 25 / 40)
    X, y = regression(5, n=40, m=3)
    found = bolstered_val_score(DummyRegressor(), X, y)
    assert -0.3 < found[0] < 0.0


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        ("neg_mean_squared_error", lambda y, p: -mean_squared_error(y, p)),
        ("neg_mean_absolute_error", lambda y, p: -mean_absolute_error(y, p)),
        ("r2", r2_score),
        (None, r2_score),
    ],
)
def test_scorings_of_regressors(scoring, metric):
    """Signs and units are those of scikit-learn: on the training rows, its values."""
    X, y = regression(6, n=30)
    model = DecisionTreeRegressor(max_depth=2)
    expected = metric(y, clone(model).fit(X, y).predict(X))
    found = bolstered_val_score(model, X, y, scoring=scoring, method="resub")
    assert_allclose(found, [expected], rtol=1e-12)
    bolstered = bolstered_val_score(model, X, y, scoring=scoring, method="x")
    assert bolstered[0] < expected


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", None])
def test_scorings_of_classifiers(scoring):
    """Signs and units are those of scikit-learn: on the training rows, its values."""
    X, y = classification(6, n=30, labels=["b", "a"])
    model = GaussianNB().fit(X, y)
    expected = accuracy_score(y, model.predict(X))
    if scoring == "neg_log_loss":
        expected = -log_loss(y, model.predict_proba(X))
    found = bolstered_val_score(model, X, y, scoring=scoring, method="resub")
    assert_allclose(found, [expected], rtol=1e-9)


def test_several_outputs():
    """Errors are averaged over outputs; R squared is one minus error over variance."""
    X, y = regression(7, n=30, m=2)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    error = mean_squared_error(y, model.predict(X))
    options = {"method": "resub"}
    assert_allclose(
        bolstered_val_score(model, X, y, scoring="neg_mean_squared_error", **options),
        -error,
    )
    expected = 1.0 - error / y.var(axis=0).mean()
    assert_allclose(bolstered_val_score(model, X, y, **options), expected)
    assert_allclose(bolstered_val_score(model, X, pd.DataFrame(y), **options), expected)
    for method in ("auto", "x", "xy"):
        found = bolstered_val_score(model, X, y, method=method)
        assert found.shape == (1,) and found[0] < expected


def test_losses_by_name_or_function():
    """An option loss means minus its mean, as with a scorer."""
    X, y = regression(7, n=30)
    model = DecisionTreeRegressor(max_depth=2)
    gap = np.abs(y - clone(model).fit(X, y).predict(X))
    for loss in ("absolute", lambda y, p: np.abs(y - p)):
        found = bolstered_val_score(model, X, y, loss=loss, method="resub")
        assert_allclose(found, [-gap.mean()])


def test_wrong_arguments():
    """Contradictions, and what belongs to cross-validation."""
    X, y = regression(8, n=30)
    with pytest.raises(ValueError, match=r"scoring and loss"):
        bolstered_val_score(Ridge(), X, y, scoring="r2", loss="squared")
    with pytest.raises(ValueError, match=r"cv"):
        bolstered_val_score(Ridge(), X, y, cv=5)
    with pytest.raises(TypeError, match="shrinkage"):
        bolstered_val_score(Ridge(), X, y, shrinkage=0.3)
    for scoring in ("no_such_score", r2_score, 3.5, [], ["r2", "r2"]):
        with pytest.raises(ValueError, match="scoring"):
            bolstered_val_score(Ridge(), X, y, scoring=scoring)
    with pytest.raises(ValueError, match="suit"):
        bolstered_val_score(Ridge(), X, y, scoring="accuracy")
    with pytest.raises(ValueError, match="suit"):
        bolstered_val_score(GaussianNB(), *classification(8), scoring="r2")
    with pytest.raises(AttributeError, match="predict_proba"):
        bolstered_val_score(
            LinearSVC(), *classification(8), scoring="neg_log_loss", method="x"
        )
    with pytest.raises(ValueError, match="classifiers and regressors"):
        bolstered_val_score(KMeans(2, n_init=1), X, y)
    with pytest.raises(ValueError, match="'shrink' parameter"):
        bolstered_val_score(Ridge(), X, y, shrink=2.0)
    with pytest.raises(ValueError, match=r"y.*None|None.*y"):
        bolstered_val_score(KNeighborsClassifier(), X, None)
    with pytest.raises(ValueError, match="inconsistent"):
        bolstered_val_score(Ridge(), X, y[:-1])


def test_several_losses_by_name():
    """Minus the losses, as from the scorer."""
    X, y = regression(8, n=30)
    model = DecisionTreeRegressor(random_state=0)
    found = bolstered_val_score(model, X, y, loss=["squared", "absolute"])
    assert list(found) == ["neg_squared", "neg_absolute"]
    for name in ("squared", "absolute"):
        [expected] = bolstered_val_score(model, X, y, loss=name)
        assert_allclose(found[f"neg_{name}"], [expected], rtol=1e-12)


def test_pipelines_and_frames():
    """Steps are refitted with the folds, on rows as they were given."""
    X, y = classification(9, n=60)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        c=np.where(X[:, 0] > 0, "u", "v")
    )
    coder = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["c"])
    )
    model = make_pipeline(coder, LogisticRegression())
    found = bolstered_val_score(model, frame, y, categorical_features=[])
    assert 0.5 < found[0] < 1.0
    by_number = bolstered_val_score(model, frame, y, categorical_features=[2])
    assert_array_equal(found, by_number)
    search = BolsteredSearchCV(
        model,
        {"logisticregression__C": [0.1, 1.0], "columntransformer__remainder": ["drop"]},
        categorical_features=["c"],
    ).fit(frame, y)
    assert_allclose(search.cv_results_["mean_test_score"][1], found[0], rtol=1e-12)
    assert_array_equal(search.feature_names_in_, ["a", "b", "c"])
    assert search.score(frame, y) == search.best_estimator_.score(frame, y)


@pytest.mark.parametrize("n_neighbors", [5, 30])
def test_neighbors_in_folds(n_neighbors):
    """What cross-validation can do is done as well: 30 neighbours of 50 rows."""
    X, y = classification(10, n=50)
    model = KNeighborsClassifier(n_neighbors)
    assert 0.0 < cross_val_score(model, X, y, cv=5).mean() < 1.0
    assert 0.0 < bolstered_val_score(model, X, y)[0] < 1.0


# Parameters of fits


def by_row(values, weights):
    return dict(zip(values.tolist(), weights.tolist(), strict=True))


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("how", ["function", "search"])
@pytest.mark.parametrize("model", [Weighted(), WeightedClassifier()])
@pytest.mark.parametrize("pack", [np.asarray, list, pd.Series])
def test_fit_parameters_reach_all_fits(how, routing, model, pack):
    """Cut to the rows of each fit; what has no entry per row is left as it is."""
    is_class = isinstance(model, ClassifierMixin)
    X, y = (classification if is_class else regression)(11, n=40)
    w = np.random.default_rng(0).uniform(0.5, 3.0, size=40)
    expected = by_row(X[:, 0], w)
    given = {"sample_weight": pack(w), "note": "hello"}
    Listener.fits = []
    with config_context(enable_metadata_routing=routing):
        model = clone(model)
        if routing:
            model.set_fit_request(sample_weight=True, note=True)
        if how == "function":
            bolstered_val_score(model, X, y, params=given)
        else:
            grid = {"shift": [0.0]} if not is_class else [{}]
            BolsteredSearchCV(model, grid, refit=False).fit(X, y, **given)
    # Six halves, or four times three folds of four.
    assert len(Listener.fits) == (6 if is_class else 4)
    sizes = []
    for values, weights, note in Listener.fits:
        assert by_row(values, np.asarray(weights)) == {v: expected[v] for v in values}
        assert note == "hello"
        sizes.append(len(values))
    assert set(sizes) == ({20} if is_class else {30})


def test_fit_parameters_of_steps():
    """By the pipeline's names without routing, as in cross_val_score."""
    X, y = regression(11, n=40)
    w = np.random.default_rng(0).uniform(0.5, 3.0, size=40)
    model = make_pipeline(StandardScaler(), Weighted())
    Listener.fits = []
    bolstered_val_score(model, X, y, params={"weighted__sample_weight": w})
    assert [len(weights) for _, weights, _ in Listener.fits] == [30, 30, 30, 30]


def test_fit_parameters_matter():
    """Fits with weights have no leave-one-out formula of fits without."""
    X, y = regression(12, n=40)
    w = np.random.default_rng(0).uniform(0.1, 5.0, size=40)
    params = {"sample_weight": w}
    found = bolstered_val_score(
        LinearRegression(), X, y, scoring="neg_mean_squared_error", params=params
    )
    errors = []
    for i in range(40):
        rest = np.arange(40) != i
        fitted = LinearRegression().fit(X[rest], y[rest], sample_weight=w[rest])
        errors.append((y[i] - fitted.predict(X[[i]])[0]) ** 2)
    # Four folds are close to leave-one-out.
    assert found[0] == pytest.approx(-np.mean(errors), rel=0.2)
    scorer = BolsteredScorer()
    fitted = LinearRegression().fit(X, y, sample_weight=w)
    assert "leave-one-out" not in scorer.estimate(fitted, X, y).method


def test_unknown_fit_parameters():
    """They are not swallowed."""
    X, y = regression(12, n=40)
    for params in ({"weight": np.ones(40)}, {"groups": np.ones(40)}):
        with pytest.raises(TypeError, match=next(iter(params))):
            bolstered_val_score(Ridge(), X, y, params=params)


def test_routing_is_asked_for():
    """With routing on, a weight that nobody asked for is an error."""
    X, y = regression(13, n=40)
    w = np.ones(40)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            bolstered_val_score(Ridge(), X, y, params={"sample_weight": w})
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            BolsteredSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, y, sample_weight=w)
        with pytest.raises(TypeError, match="weights"):
            bolstered_val_score(Ridge(), X, y, params={"weights": w})


def test_weights_are_routed_to_the_scorer():
    """In a grid search, and in cross_validate, where the scorer asks for them."""
    X, y = regression(13, n=40)
    w = np.random.default_rng(0).uniform(0.1, 5.0, size=40)
    model = DecisionTreeRegressor(max_depth=2)
    split = {"cv": FullSampleSplit()}
    with config_context(enable_metadata_routing=True):
        for wanted, key in ((True, "sample_weight"), ("importance", "importance")):
            scorer = BolsteredScorer().set_score_request(sample_weight=wanted)
            estimator = clone(model).set_fit_request(sample_weight=False)
            grid = {"max_depth": [1, 2]}
            search = GridSearchCV(estimator, grid, scoring=scorer, **split)
            search.fit(X, y, **{key: w})
            found = cross_validate(
                estimator, X, y, scoring=scorer, params={key: w}, **split
            )
            fitted = clone(model).fit(X, y)
            expected = BolsteredScorer()(fitted, X, y, w)
            assert search.cv_results_["mean_test_score"][1] == pytest.approx(expected)
            assert_allclose(found["test_score"], expected)
            assert expected != BolsteredScorer()(fitted, X, y)
        scorer = BolsteredScorer().set_score_request(sample_weight=False)
        estimator = clone(model).set_fit_request(sample_weight=True)
        search = GridSearchCV(estimator, {"max_depth": [2]}, scoring=scorer, **split)
        fitted = clone(model).fit(X, y, sample_weight=w)
        expected = BolsteredScorer()(fitted, X, y)
        assert search.fit(X, y, sample_weight=w).best_score_ == pytest.approx(expected)


@pytest.mark.parametrize("routing", [False, True])
def test_searches_pass_weights_on(routing):
    """A search inside cross_validate passes weights on to all fits of its estimator."""
    X, y = regression(14, n=40)
    w = np.random.default_rng(0).uniform(0.1, 5.0, size=40)
    Listener.fits = []
    with config_context(enable_metadata_routing=routing):
        model = Weighted()
        if routing:
            model.set_fit_request(sample_weight=True)
        search = BolsteredSearchCV(model, {"shift": [0.0, 0.1]})
        router = search.get_metadata_routing()
        consumed = router.consumes("fit", ["sample_weight", "other"])
        assert consumed == ({"sample_weight"} if routing else set())
        cross_validate(
            search, X, y, cv=2, params={"sample_weight": w}, error_score="raise"
        )
    # Per candidate four folds, and the last fit.
    assert len(Listener.fits) == 2 * (2 * 4 + 1)
    expected = by_row(X[:, 0], w)
    for values, weights, _ in Listener.fits:
        assert by_row(values, weights) == {v: expected[v] for v in values}


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_fits_mean_the_same_in_search_and_function(routing):
    """They are documented as parameters of fits; the score is the same in both."""
    X, y = regression(14, n=40)
    w = np.random.default_rng(0).uniform(0.1, 5.0, size=40)
    with config_context(enable_metadata_routing=routing):
        model = Weighted()
        if routing:
            model.set_fit_request(sample_weight=True)
        search = BolsteredSearchCV(model, {"shift": [0.0]}).fit(X, y, sample_weight=w)
        found = bolstered_val_score(model, X, y, params={"sample_weight": w})
    assert search.best_score_ == pytest.approx(found[0])


# The search as an estimator


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        ({}, lambda m, X, y: m.score(X, y)),
        ({"scoring": "accuracy"}, lambda m, X, y: m.score(X, y)),
        ({"scoring": "neg_log_loss"}, lambda m, X, y: -log_loss(y, m.predict_proba(X))),
        ({"loss": "log"}, lambda m, X, y: -log_loss(y, m.predict_proba(X))),
        ({"loss": "zero_one"}, lambda m, X, y: m.score(X, y) - 1.0),
        ({"loss": lambda y, p: 2.0 * (y != p)}, lambda m, X, y: 2 * m.score(X, y) - 2),
        (
            {"loss": ["zero_one"], "refit": "neg_zero_one"},
            lambda m, X, y: m.score(X, y) - 1.0,
        ),
    ],
)  # fmt: skip
def test_scores_of_classifiers_are_plain(options, metric):
    """On new rows, by scikit-learn's own metrics, without any smoothing."""
    X, y = classification(15, n=40)
    X_new, y_new = classification(16, n=50)
    search = BolsteredSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 0.5]}, **options)
    search.fit(X, y)
    fitted = clone(GaussianNB()).set_params(**search.best_params_).fit(X, y)
    expected = metric(fitted, X_new, y_new)
    assert search.score(X_new, y_new) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        ({}, r2_score),
        ({"scoring": "r2"}, r2_score),
        ({"loss": "squared"}, lambda y, p: -mean_squared_error(y, p)),
        ({"loss": "absolute"}, lambda y, p: -mean_absolute_error(y, p)),
    ],
)
def test_scores_of_regressors_are_plain(options, metric):
    """On new rows, by scikit-learn's own metrics, without any smoothing."""
    X, y = regression(15, n=40)
    X_new, y_new = regression(16, n=30)
    search = BolsteredSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, **options).fit(X, y)
    expected = metric(y_new, search.predict(X_new))
    assert search.score(X_new, y_new) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", lambda y, p: (y - p) ** 2])
def test_weighted_scores(loss):
    """Weights of new rows are used by every kind of loss, or refused."""
    X, y = regression(15, n=40)
    w = np.random.default_rng(0).uniform(size=40)
    search = BolsteredSearchCV(Ridge(), {"alpha": [0.1]}, loss=loss).fit(X, y)
    expected = -mean_squared_error(y, search.predict(X), sample_weight=w)
    assert search.score(X, y, sample_weight=w) == pytest.approx(expected)


def test_refit_by_a_function():
    """It gets the results and returns a candidate's number."""
    X, y = classification(17, n=40)
    search = BolsteredSearchCV(TREE, DEPTHS, refit=lambda results: 1).fit(X, y)
    assert search.best_params_ == {"max_depth": 2}
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    several = BolsteredSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 0.5]}, loss=["zero_one", "log"],
        refit=lambda results: int(results["mean_test_neg_log"].argmax()),
    ).fit(X, y)  # fmt: skip
    assert several.best_index_ == several.cv_results_["rank_test_neg_log"].argmin()
    # No loss is named: the message must say so.
    with pytest.raises((ValueError, KeyError), match=r"refit|loss"):
        several.score(X, y)


def test_without_refit():
    """Results, but no predictions and no score."""
    X, y = classification(17, n=40)
    search = BolsteredSearchCV(TREE, DEPTHS, refit=False).fit(X, y)
    assert search.best_params_["max_depth"] in DEPTHS["max_depth"]
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")
    with pytest.raises(AttributeError):
        search.score(X, y)


def test_methods_are_those_of_the_estimator():
    """Before and after the fit."""
    X, y = classification(18, n=40, labels=["u", "v"])
    search = BolsteredSearchCV(LinearSVC(), {"C": [0.1, 1.0]})
    for item in (search, clone(search).fit(X, y)):
        assert hasattr(item, "predict") and hasattr(item, "decision_function")
        assert not hasattr(item, "predict_proba") and not hasattr(item, "transform")
    assert not hasattr(search, "classes_")
    with pytest.raises(NotFittedError):
        search.predict(X)
    with pytest.raises(NotFittedError):
        search.score(X, y)
    search.fit(X, y)
    assert_array_equal(search.classes_, ["u", "v"])
    assert search.n_features_in_ == 2
    best = search.best_estimator_
    assert_array_equal(search.predict(X), best.predict(X))
    assert_array_equal(search.decision_function(X), best.decision_function(X))
    found = BolsteredSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}).fit(X, y)
    assert_array_equal(found.predict_proba(X), found.best_estimator_.predict_proba(X))
    regressor = BolsteredSearchCV(Ridge(), {"alpha": [1.0]})
    assert get_tags(regressor).estimator_type == "regressor"
    assert not hasattr(regressor.fit(X, X[:, 0]), "classes_")


def test_failed_candidates():
    """They score error_score, with a warning; the best of the others is chosen."""
    X, y = classification(19, n=40)
    grid = {"fails": [True, False]}
    search = BolsteredSearchCV(Brittle(), grid, error_score=-5.0)
    with pytest.warns(FitFailedWarning, match="refuses"):
        search.fit(X, y)
    assert search.cv_results_["mean_test_score"][0] == -5.0
    assert search.best_params_ == {"fails": False}
    with pytest.raises(RuntimeError, match="refuses"):
        BolsteredSearchCV(Brittle(), grid, error_score="raise").fit(X, y)
    # Fails on all parts, but not on all rows.
    grid = {"at_least": [35, 5]}
    with pytest.warns(FitFailedWarning, match="refuses"):
        search = BolsteredSearchCV(Brittle(), grid).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.best_params_ == {"at_least": 5}
    with pytest.raises(RuntimeError, match="refuses"):
        BolsteredSearchCV(Brittle(), grid, error_score="raise").fit(X, y)


def test_a_failed_search_leaves_the_last_one():
    """Nothing is half written."""
    X, y = classification(19, n=40)
    search = BolsteredSearchCV(TREE, DEPTHS).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    with pytest.raises(ValueError):
        search.fit(X, None)
    with pytest.raises(ValueError):
        search.set_params(param_grid={"depth": [1]}).fit(X, y)
    assert search.cv_results_["mean_test_score"] is scores


def test_clone_and_pickle():
    """Before and after the fit; a pickle has the results but not the rows."""
    X, y = classification(20, n=400)
    search = BolsteredSearchCV(TREE, DEPTHS, method="x", n_nodes=4)
    assert (
        clone(search).get_params(deep=False).keys() == search.get_params(False).keys()
    )
    search.fit(X, y)
    size = len(pickle.dumps(search))
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.predict(X), search.predict(X))
    assert again.best_score_ == search.best_score_
    assert not hasattr(clone(search), "best_params_")
    model = len(pickle.dumps(search.best_estimator_))
    assert size < model + X.nbytes
    assert "BolsteredSearchCV" in repr(search)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kernel": "mm"}, "kernel"),
        ({"kernel": 0.5}, "kernel"),
        ({"method": "xy"}, "method='xy'"),
        ({"semi": True}, "semi"),
        ({"loss": "squared"}, "loss='squared'"),
        ({"scoring": "r2"}, "suit"),
        ({"categorical_features": [7]}, "categorical_features"),
        ({"method": "x", "kernel": np.eye(5)}, "kernel"),
    ],
    ids=label,
)
def test_contradictions_are_no_failed_candidates(options, match):
    """A search that cannot score any candidate raises, and does not choose one."""
    X, y = classification(21, n=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(ValueError, match=f"(?s){match}"):
            BolsteredSearchCV(TREE, DEPTHS, **options).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scoring", 3.5),
        ("method", "cv"),
        ("kernel", "rbf"),
        ("n_folds", 5),
        ("shrink", -1.0),
        ("refit", 3.5),
        ("error_score", "ignore"),
        ("return_train_score", "no"),
        ("random_state", "a"),
    ],
)
def test_invalid_parameters(name, value):
    """The message names the parameter."""
    X, y = classification(21, n=40)
    search = BolsteredSearchCV(TREE, DEPTHS, **{name: value})
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        search.fit(X, y)


def test_scoring_and_loss_exclude_each_other():
    """As in the function."""
    X, y = classification(21, n=40)
    with pytest.raises(ValueError, match="scoring and loss"):
        BolsteredSearchCV(TREE, DEPTHS, scoring="accuracy", loss="log").fit(X, y)
    with pytest.raises(TypeError, match="cv"):
        BolsteredSearchCV(TREE, DEPTHS, cv=5)


def test_targets_are_needed():
    """The message says so, with a search as well."""
    X, _ = classification(21, n=40)
    with pytest.raises(ValueError, match=r"'y'|requires y"):
        BolsteredSearchCV(TREE, DEPTHS).fit(X)


def test_sparse_rows():
    """Linear models have closed forms; nothing else is moved in silence."""
    X, y = regression(22, n=40)
    options = {"method": "x", "kernel": "mm"}
    grid = {"alpha": [0.1, 10.0]}
    dense = BolsteredSearchCV(Ridge(), grid, **options).fit(X, y)
    found = BolsteredSearchCV(Ridge(), grid, **options).fit(sparse.csr_array(X), y)
    assert_allclose(
        found.cv_results_["mean_test_score"],
        dense.cv_results_["mean_test_score"],
        rtol=1e-7,
    )
    with pytest.raises(ValueError, match=r"[Ss]parse"):
        BolsteredSearchCV(Ridge(), grid, method="x", kernel="mpe").fit(
            sparse.csr_array(X), y
        )
    # Parts of them are fitted as any rows are.
    X, y = classification(22, n=40)
    grid = {"C": [0.01, 1.0]}
    dense = BolsteredSearchCV(LogisticRegression(), grid).fit(X, y)
    found = BolsteredSearchCV(LogisticRegression(), grid).fit(sparse.csr_array(X), y)
    assert_allclose(
        found.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"]
    )


def test_train_scores_are_the_test_scores():
    """There is one split, with the same rows in both parts."""
    X, y = classification(23, n=40)
    found = BolsteredSearchCV(TREE, DEPTHS, return_train_score=True).fit(X, y)
    results = found.cv_results_
    assert_array_equal(results["mean_train_score"], results["mean_test_score"])
    assert_array_equal(results["std_test_score"], 0.0)
    assert (
        "mean_train_score" not in BolsteredSearchCV(TREE, DEPTHS).fit(X, y).cv_results_
    )


def test_candidates_are_moved_alike():
    """Equal candidates get equal scores, whatever comes between them."""
    X, y = classification(15, n=40)
    grid = {"max_depth": [2, 4, 2, 1, 2]}
    for options in ({}, {"method": "x", "integration": "mc"}):
        search = BolsteredSearchCV(TREE, grid, **options).fit(X, y)
        scores = search.cv_results_["mean_test_score"]
        assert scores[0] == scores[2] == scores[4]
        assert len(set(scores)) > 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_generators_are_drawn_from_once(n_jobs):
    """With a generator, too, all candidates have the same folds and moved rows."""
    X, y = classification(15, n=40)
    grid = {"max_depth": [2, 4, 2, 2]}
    seed = np.random.RandomState(0)
    search = BolsteredSearchCV(TREE, grid, random_state=seed, n_jobs=n_jobs).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] == scores[2] == scores[3]


def test_last_steps_from_the_grid():
    """What is fitted decides on the loss, not what stands in its place before."""
    X, y = classification(26, n=40)
    grid = {"last": [SVC(), GaussianNB()]}
    model = Pipeline([("scale", StandardScaler()), ("last", "passthrough")])
    plain = GridSearchCV(model, grid, scoring=BolsteredScorer(), cv=FullSampleSplit())
    expected = plain.fit(X, y).cv_results_["mean_test_score"]
    search = BolsteredSearchCV(model, grid, scoring="accuracy").fit(X, y)
    assert_allclose(search.cv_results_["mean_test_score"], 1.0 + expected)
    search = BolsteredSearchCV(model, grid).fit(X, y)
    assert_allclose(search.cv_results_["mean_test_score"], 1.0 + expected)


def test_a_search_can_be_searched_and_scored():
    """Nested: the outer scorer refits the whole inner search in its folds."""
    X, y = classification(25, n=40)
    search = BolsteredSearchCV(TREE, DEPTHS)
    outer = bolstered_val_score(search, X, y)
    assert outer.shape == (1,) and 0.3 < outer[0] < 1.0
    assert 0.3 < cross_val_score(search, X, y, cv=3).mean() <= 1.0
