"""The scorer as part of scikit-learn: inputs, protocols, refusals and the picture."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import ndtr
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from sklearn.metrics import (
    f1_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
)
from sklearn.model_selection import KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bolstering.toy import classification, label, polars, regression
from skbounds.bolstering import BolsteredEstimateDisplay, BolsteredScorer

LDA = LinearDiscriminantAnalysis()
METHODS = ("auto", "x", "y", "xy", "x+posterior", "resub")


def squared(y, predictions):
    return 2.0 * (y - predictions) ** 2


def absolute(y, predictions):
    return 2.0 * np.abs(y - predictions)


def zero_one(y, predictions):
    return 3.0 * (y != predictions)


def log(y, predictions):
    return 1.0 * (y != predictions)


def score(estimator, X, y, sample_weight=None, **options):
    return BolsteredScorer(**options)(estimator, X, y, sample_weight=sample_weight)


def estimate(estimator, X, y, sample_weight=None, **options):
    return BolsteredScorer(**options).estimate(estimator, X, y, sample_weight)


def messages(action, *args, **kwargs):
    """Return the warnings' texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action(*args, **kwargs)
    return [str(item.message) for item in caught]


class Recorder:
    """Keeps what estimators get, over all clones."""

    seen = []

    @classmethod
    def forget(cls):
        cls.seen = []
        return cls


class Probe(TransformerMixin, BaseEstimator):
    """Passes X on, and remembers it."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        Recorder.seen.append(("fit", X))
        return self

    def transform(self, X):
        Recorder.seen.append(("transform", X))
        return X


class Sign(ClassifierMixin, BaseEstimator):
    """Predicts the sign of the first column; learns nothing."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > 0.0).astype(int)]


class NotANumber(RegressorMixin, BaseEstimator):
    """Predicts NaN for all rows but those it has seen."""

    def fit(self, X, y):
        self.known_ = set(np.asarray(X, dtype=float)[:, 0])
        return self

    def predict(self, X):
        known = [value in self.known_ for value in np.asarray(X, dtype=float)[:, 0]]
        return np.where(known, 0.0, np.nan)


# The protocol


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("weighted", [False, True])
def test_resubstitution_of_regressors_is_that_of_the_metrics(loss, weighted):
    """Minus the weighted training error, by scikit-learn's own functions."""
    X, y = regression(0, n=30, m=2)
    w = np.random.default_rng(1).integers(0, 4, 30) if weighted else None
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    metric = {"squared": mean_squared_error, "absolute": mean_absolute_error}[loss]
    expected = metric(y, model.predict(X), sample_weight=w)
    found = estimate(model, X, y, w, method="resub", loss=loss)
    assert found.error == pytest.approx(expected, rel=1e-12)
    assert found.resubstitution == pytest.approx(expected, rel=1e-12)
    assert (found.increment, found.n_fits, found.method) == (0.0, 0, "resub")
    assert score(model, X, y, w, method="resub", loss=loss) == -found.error


@pytest.mark.parametrize("labels", [[0, 1, 2], ["c", "a", "b"], [2.0, -1.0, 0.0]])
def test_resubstitution_of_classifiers_is_that_of_the_metrics(labels):
    """Zero-one and log loss, whatever the order of the labels."""
    X, y = classification(0, n=45, n_classes=3, labels=labels)
    w = np.random.default_rng(1).uniform(size=45)
    model = GaussianNB().fit(X, y)
    error = 1.0 - model.score(X, y, w)
    expected = log_loss(y, model.predict_proba(X), sample_weight=w)
    assert error > 0.0
    found = score(model, X, y, w, method="resub", loss=["zero_one", "log"])
    assert found == {
        "neg_zero_one": pytest.approx(-error, rel=1e-12),
        "neg_log": pytest.approx(-expected, rel=1e-9),
    }


@pytest.mark.parametrize("method", ["auto", "x", "resub"])
def test_several_losses_are_those_of_separate_scorers(method):
    """A list of losses returns a dict; one set of predictions serves all."""
    X, y = classification(1, n=40)
    model = GaussianNB().fit(X, y)
    losses = ["log", "zero_one", absolute_gap]
    found = score(model, X, y, method=method, loss=losses)
    names = ["log", "zero_one", "absolute_gap"]
    assert list(found) == [f"neg_{name}" for name in names]
    for loss, name in zip(losses, names, strict=True):
        single = score(model, X, y, method=method, loss=loss)
        assert isinstance(single, float)
        assert found[f"neg_{name}"] == pytest.approx(single, rel=1e-12)
    records = estimate(model, X, y, method=method, loss=losses)
    assert [record.loss for record in records.values()] == names
    assert list(score(model, X, y, method=method, loss=["log"])) == ["neg_log"]


def absolute_gap(y, predictions):
    return np.abs(y - predictions).astype(float)


@pytest.mark.parametrize("method", ["auto", "x", "xy", "resub"])
@pytest.mark.parametrize("loss", [squared, absolute])
def test_regression_losses_of_the_user_are_called_whatever_their_names(method, loss):
    """A function named as a built-in loss is not replaced by it."""
    X, y = regression(2, n=30)
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    twice = score(model, X, y, method=method, loss=loss, integration="auto")
    once = score(model, X, y, method=method, loss=loss.__name__)
    if method == "auto" and loss is squared:
        # The built-in loss has folds of its own.
        once = score(model, X, y, loss=lambda y, p: (y - p) ** 2)
    # Closed forms beside quasi-Monte Carlo: not to the last digit.
    assert twice == pytest.approx(2.0 * once, rel=0.05)


@pytest.mark.parametrize("method", ["x", "resub"])
@pytest.mark.parametrize(("loss", "factor"), [(zero_one, 3.0), (log, 1.0)])
def test_classification_losses_of_the_user_are_called_whatever_their_names(
    method, loss, factor
):
    """They get labels, also if they are named as the loss of probabilities."""
    X, y = classification(2, n=30)
    model = LDA.fit(X, y)
    found = score(model, X, y, method=method, loss=loss)
    expected = factor * score(model, X, y, method=method, loss="zero_one")
    assert found == pytest.approx(expected, abs=0.02 * factor)


def test_losses_of_the_user_are_checked():
    """One number per row; a list may not repeat a name."""
    X, y = regression(2, n=30)
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match=r"number per row"):
        score(model, X, y, loss=lambda y, p: np.mean(np.abs(y - p)))
    with pytest.raises(ValueError, match="repeat"):
        score(model, X, y, loss=["squared", "squared"])
    with pytest.raises(ValueError, match="empty"):
        score(model, X, y, loss=[])
    with pytest.raises(ValueError, match=r"loss.*'hinge'"):
        score(model, X, y, loss=["hinge"])


def test_params_clone_repr_and_pickle():
    """A used scorer is as good as new after all of them, and carries no data away."""
    X, y = classification(3, n=200)
    model = GaussianNB().fit(X, y)
    scorer = BolsteredScorer(n_repeats=2, loss="log", categorical_features=[])
    assert repr(scorer).startswith("BolsteredScorer(")
    assert "n_repeats=2" in repr(scorer) and "lam" not in repr(scorer)
    empty = len(pickle.dumps(scorer))
    first = scorer(model, X, y)
    assert len(pickle.dumps(scorer)) == empty < X.nbytes
    for copy in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
        assert copy.get_params() == scorer.get_params()
        assert copy(model, X, y) == first
    with pytest.raises(NotFittedError):
        scorer.sample()
    with pytest.raises(AttributeError, match="kernel_"):
        scorer.kernel_  # noqa: B018


def test_scoring_does_not_change_its_arguments():
    """Neither data nor the fitted estimator."""
    X, y = classification(3, n=40)
    w = np.random.default_rng(0).uniform(size=40)
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    before = [X.copy(), y.copy(), w.copy(), pickle.dumps(model)]
    for method in ("auto", "x"):
        score(model, X, y, w, method=method, loss=["zero_one", "log"])
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert_array_equal(w, before[2])
    assert pickle.dumps(model) == before[3]


def test_scoring_leaves_a_fit_alone():
    """A fitted scorer that scores other rows keeps its kernels."""
    X, y = classification(3, n=40)
    scorer = BolsteredScorer().fit(X, y)
    kernels, drawn = scorer.kernel_.copy(), scorer.sample(3, random_state=0)
    others, labels = classification(4, n=50, d=3)
    scorer(GaussianNB().fit(others, labels), others, labels)
    assert_array_equal(scorer.kernel_, kernels)
    assert_array_equal(scorer.sample(3, random_state=0)[0], drawn[0])
    assert scorer.n_features_in_ == 2


def test_a_failed_fit_leaves_the_last_one():
    """Nothing is half written."""
    X, y = regression(3, n=20)
    scorer = BolsteredScorer(method="x").fit(X, y)
    kernels = scorer.kernel_.copy()
    with pytest.raises(ValueError, match="NaN"):
        scorer.fit(np.full((20, 3), np.nan), y)
    assert scorer.n_features_in_ == 2
    assert_array_equal(scorer.kernel_, kernels)


def test_set_score_request():
    """As scikit-learn's scorers: with routing only, kept by clones."""
    with pytest.raises(RuntimeError, match="routing"):
        BolsteredScorer().set_score_request(sample_weight=True)
    with config_context(enable_metadata_routing=True):
        scorer = BolsteredScorer()
        assert scorer.set_score_request(sample_weight=True) is scorer
        for item in (scorer, clone(scorer)):
            requests = item.get_metadata_routing().score.requests
            assert requests == {"sample_weight": True}
        assert not BolsteredScorer().get_metadata_routing().score.requests
        # Nothing said changes nothing.
        scorer.set_score_request()
        requests = scorer.get_metadata_routing().score.requests
        assert requests == {"sample_weight": True}


# What is prepared once


CHANGES = [
    *[({"method": "x"}, {"kernel": kernel}) for kernel in ("mm_diag", 0.3, np.eye(2))],
    ({"method": "x", "kernel": "mpe"}, {"lam": 30.0}),
    ({"method": "x", "kernel": "mm"}, {"standardize": False}),
    ({"method": "x", "kernel": "mm_exact"}, {"random_state": 5}),
    ({"method": "x", "integration": "qmc"}, {"n_nodes": 8}),
    ({"method": "x"}, {"integration": "mc"}),
    ({"method": "x"}, {"semi": True}),
    ({"method": "x"}, {"categorical_features": [0]}),
    ({"method": "x"}, {"loss": "log"}),
    ({"method": "x"}, {"method": "auto"}),
    ({}, {"method": "x"}),
    ({}, {"categorical_features": [1]}),
    ({}, {"random_state": 5}),
    ({}, {"standardize": False}),
    ({}, {"n_folds": 6}),
    ({}, {"n_repeats": 2}),
    ({}, {"learning_ratio": 0.5}),
]


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=label)
def test_changed_parameters_count(before, after):
    """A used scorer with new parameters is a new scorer with these."""
    X, y = classification(11, n=48)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    scorer = BolsteredScorer(**before)
    first = scorer.estimate(model, X, y)
    second = scorer.set_params(**after).estimate(model, X, y)
    fresh = estimate(model, X, y, **{**before, **after})
    assert second == fresh
    assert second != first


def test_long_masks_are_told_apart():
    """Also where their text is cut short."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 1500)), rng.normal(size=10)
    model = Ridge().fit(X, y)
    masks = np.zeros((2, 1500), dtype=bool)
    masks[1, 100:900] = True
    scorer = BolsteredScorer(method="x", kernel=0.5, categorical_features=masks[0])
    first = scorer(model, X, y)
    second = scorer.set_params(categorical_features=masks[1])(model, X, y)
    options = {"method": "x", "kernel": 0.5}
    fresh = score(model, X, y, categorical_features=masks[1], **options)
    assert second == fresh > first


def test_kernels_of_the_user_are_read_every_time():
    """An array changed in place, and a function that returns something else."""
    X, y = regression(4, n=20)
    model = Ridge().fit(X, y)
    resubstitution = np.mean((y - model.predict(X)) ** 2)
    kernel = np.eye(2)
    scorer = BolsteredScorer(method="x", kernel=kernel)
    called = BolsteredScorer(method="x", kernel=lambda X, y: kernel)
    for size in (1.0, 2.0):
        kernel[:] = size * np.eye(2)
        expected = resubstitution + size * (model.coef_**2).sum()
        assert scorer(model, X, y) == pytest.approx(-expected)
        assert called(model, X, y) == pytest.approx(-expected)


@pytest.mark.parametrize("method", ["auto", "x"])
@pytest.mark.parametrize("which", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("kind", ["array", "list", "frame"])
def test_data_changed_in_place_count(method, which, kind):
    """The scorer keeps no array of the user's that may change behind its back."""
    X, y = classification(6, n=40)
    w = np.random.default_rng(7).uniform(0.1, 2.0, size=40)
    given = {"X": X.copy(), "y": y.copy(), "sample_weight": w.copy()}
    others = {"X": X[::-1] * 2.0, "y": y[::-1].copy(), "sample_weight": w[::-1] ** 2}
    model = GaussianNB().fit(X, y)
    pack = {"array": lambda X: X, "list": np.ndarray.tolist, "frame": pd.DataFrame}
    pack = pack[kind]
    scorer = BolsteredScorer(method=method)

    def call(X, y, sample_weight):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return scorer(model, pack(X), y, sample_weight=sample_weight)

    first = call(**given)
    given[which][:] = others[which]
    changed = call(**given)
    expected = {"X": X, "y": y, "sample_weight": w, which: others[which]}
    expected["X"] = pack(expected["X"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert changed == score(model, **expected, method=method)
    assert changed != first
    # The first data again, in new arrays.
    assert call(X, y, w) == first
    # What was prepared for these must not follow their changes.
    scorer = clone(scorer)
    given = {"X": X.copy(), "y": y.copy(), "sample_weight": w.copy()}
    assert call(**given) == first
    given[which][:] = others[which]
    assert call(X, y, w) == first


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits(method):
    """Repeated calls, new scorers and generators with the same seed."""
    X, y = regression(5, n=40)
    model = BayesianRidge().fit(X, y)
    scorer = BolsteredScorer(method=method, integration="qmc")
    first = scorer.estimate(model, X, y)
    assert scorer.estimate(model, X, y) == first
    assert clone(scorer).estimate(model, X, y) == first
    draws = [
        estimate(model, X, y, method=method, random_state=np.random.RandomState(3))
        for _ in range(2)
    ]
    assert draws[0] == draws[1]


# Inputs


@pytest.mark.parametrize("method", ["auto", "x"])
@pytest.mark.parametrize("kind", ["list", "fortran", "frame", "polars", "object"])
def test_kinds_of_tables(method, kind):
    """The same numbers give the same estimate however they are stored."""
    X, y = classification(8, n=40)
    pack = {
        "list": np.ndarray.tolist,
        "fortran": np.asfortranarray,
        "frame": lambda X: pd.DataFrame(X, columns=["a", "b"]),
        "polars": lambda X: polars().DataFrame(X, schema=["a", "b"]),
        "object": lambda X: X.astype(object),
    }[kind]
    model = make_pipeline(StandardScaler(), LDA)
    expected = score(clone(model).fit(X, y), X, y, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = score(clone(model).fit(pack(X), y), pack(X), y, method=method)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", ["auto", "x", "xy"])
def test_single_precision(method):
    """Rows in single precision give about the estimate of their values."""
    X, y = regression(8, n=40)
    X = X.astype(np.float32)
    model = LinearRegression()
    found = score(model.fit(X, y), X, y.astype(np.float32), method=method)
    X = X.astype(float)
    assert found == pytest.approx(score(model.fit(X, y), X, y, method=method), rel=1e-4)


@pytest.mark.parametrize("pack", [lambda X: X, lambda X: pd.DataFrame(X)])
def test_whole_numbers_are_moved_as_floats(pack):
    """Moved rows that would be rounded are not moved."""
    rng = np.random.default_rng(0)
    X = rng.integers(-40, 40, size=(40, 2))
    y = (X[:, 0] + rng.normal(size=40) * 20 > 0).astype(int)
    model = make_pipeline(Probe(), LDA).fit(pack(X), y)
    recorder = Recorder.forget()
    score(model, pack(X), y, method="x", integration="qmc")
    moved = [np.asarray(rows) for name, rows in recorder.seen if name == "transform"]
    shares = np.concatenate([rows % 1.0 != 0.0 for rows in moved])
    assert (shares.mean(axis=0) > 0.3).all()


def mixed(kind, n=60):
    """A table with five kinds of columns; the targets depend on all of them."""
    rng = np.random.default_rng(12)
    columns = {
        "width": rng.normal(size=n) * 10.0,
        "count": rng.integers(0, 50, size=n),
        "flag": rng.random(n) < 0.5,
        "text": rng.choice(["u", "v", "w"], size=n),
        "kind": rng.choice(["p", "q"], size=n),
    }
    signal = columns["width"] / 10.0 + columns["flag"] + (columns["text"] == "u")
    y = np.where(signal + rng.normal(size=n) > 0.7, "yes", "no")
    if kind == "pandas":
        frame = pd.DataFrame(columns)
        return frame.assign(kind=frame["kind"].astype("category")), y
    frame = polars().DataFrame(columns)
    return frame.with_columns(polars().col("kind").cast(polars().Categorical)), y


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("method", ["auto", "x"])
@pytest.mark.parametrize("fixed", [[], ["count"]])
def test_frames_with_columns_of_all_kinds(kind, method, fixed):
    """Columns that stay keep their values and types in all that an estimator gets."""
    X, y = mixed(kind)
    coder = make_column_transformer(
        (OneHotEncoder(), ["flag", "text", "kind"]),
        (StandardScaler(), ["width", "count"]),
        verbose_feature_names_out=False,
        sparse_threshold=0.0,
    )
    model = make_pipeline(Probe(), coder, LDA).fit(X, y)
    recorder = Recorder.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimate(model, X, y, method=method, categorical_features=fixed)
    assert 0.0 < found.error < 0.5
    stay = ["flag", "text", "kind", *fixed]
    given = {
        tuple(str(v) for v in row)
        for row in zip(*(list(X[name]) for name in stay), strict=True)
    }
    known = set(X["width"])
    n_moved = 0
    for _, rows in recorder.seen:
        assert type(rows) is type(X)
        assert list(rows.columns) == list(X.columns)
        for name in stay:
            assert rows[name].dtype == X[name].dtype
        seen = zip(*(list(rows[name]) for name in stay), strict=True)
        assert {tuple(str(v) for v in row) for row in seen} <= given
        n_moved += len(set(rows["width"]) - known)
    assert n_moved > 60 if method == "x" else n_moved == 0


@pytest.mark.parametrize("method", ["auto", "x"])
@pytest.mark.parametrize("kind", ["array", "pandas"])
def test_missing_values_in_frozen_columns(method, kind):
    """They stay missing; the estimator says what it makes of them."""
    X, y = classification(12, n=40, d=3)
    X[::3, 1] = np.nan
    packed = pd.DataFrame(X) if kind == "pandas" else X
    model = make_pipeline(Probe(), SimpleImputer(), LDA).fit(packed, y)
    recorder = Recorder.forget()
    score(model, packed, y, method=method, categorical_features=[1])
    for _, rows in recorder.seen:
        column = np.asarray(rows)[:, 1]
        assert np.isnan(column).any()
        assert np.isin(column[~np.isnan(column)], X[:, 1]).all()
    if method == "auto":
        # Nothing is moved: no need to say which columns stay.
        assert np.isfinite(score(model, packed, y))
        return
    with pytest.raises(ValueError, match="NaN"):
        score(model, packed, y, method=method)


def test_rows_keep_their_frozen_values():
    """Each moved row has the categories of the row it comes from, not of another."""
    X, y = mixed("pandas")
    X["width"] = 1000.0 * np.arange(60)
    X = X.drop(columns="count")
    coder = make_column_transformer((OneHotEncoder(), ["flag", "text", "kind"]))
    model = make_pipeline(Probe(), coder, GaussianNB())
    model.set_params(columntransformer__sparse_threshold=0.0).fit(X, y)
    recorder = Recorder.forget()
    score(model, X, y, method="x", kernel=1e-4)
    for _, rows in recorder.seen:
        source = X.iloc[np.rint(rows["width"] / 1000.0).astype(int)]
        for name in ("flag", "text", "kind"):
            assert (rows[name].to_numpy() == source[name].to_numpy()).all()


@pytest.mark.parametrize("method", ["auto", "x"])
def test_categorical_features_by_mask_number_and_name(method):
    """All three mean the same, in arrays and in dataframes."""
    X, y = classification(9, n=40, d=3)
    X[:, 1] = np.arange(40) % 4
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LDA.fit(X, y)
    framed = clone(LDA).fit(frame, y)
    found = [
        score(
            model, X, y, method=method, categorical_features=chosen, integration="qmc"
        )
        for chosen in ([1], np.array([False, True, False]), [False, True, False], [-2])
    ]
    found += [
        score(
            framed,
            frame,
            y,
            method=method,
            categorical_features=chosen,
            integration="qmc",
        )
        for chosen in (["b"], [1], pd.Index(["b"]))
    ]
    assert found == pytest.approx([found[0]] * len(found), rel=1e-12)
    assert found[0] != score(model, X, y, method=method, categorical_features=[])


def test_dataframes_have_closed_forms_too():
    """All columns are numbers, whether or not some of them stay as they are."""
    X, y = regression(9, n=40, d=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    options = {"method": "x", "kernel": 0.5, "integration": "closed"}
    for fixed in ([], [1]):
        options["categorical_features"] = fixed
        expected = score(Ridge().fit(X, y), X, y, **options)
        found = score(Ridge().fit(frame, y), frame, y, **options)
        assert found == pytest.approx(expected, rel=1e-12)


def test_categorical_columns_do_not_count_for_widths():
    """The scale of such a column is of no importance."""
    X, y = regression(9, n=30, d=2)
    code = np.arange(30) % 3
    model = Ridge().fit(X, y)
    widths = [
        BolsteredScorer(method="x", kernel="mm", categorical_features=[2])
        .fit(np.column_stack([X, size * code]), y)
        .kernel_
        for size in (1.0, 1e6)
    ]
    assert_allclose(widths[0], widths[1])
    alone = BolsteredScorer(method="x", kernel="mm").fit(X, y).kernel_
    assert_allclose(widths[0][:2, :2], alone)
    assert_array_equal(widths[0][2], 0.0)
    del model


def test_few_values_are_warned_of_once_told_apart():
    """None warns where rows are moved, an empty list does not."""
    X, y = classification(9, n=40, d=3)
    X[:, 1] = np.arange(40) % 4
    model = LDA.fit(X, y)
    assert any("[1]" in text for text in messages(score, model, X, y, method="x"))
    assert messages(score, model, X, y, method="x", categorical_features=[]) == []
    assert messages(score, model, X, y, method="x", categorical_features=[1]) == []
    assert messages(score, model, X, y) == []


@pytest.mark.parametrize(
    ("chosen", "match"),
    [
        ([3], "categorical_features"),
        ([True], "categorical_features"),
        (["a"], "categorical_features"),
        ("a", "categorical_features"),
    ],
)
def test_wrong_categorical_features(chosen, match):
    """The message names the parameter."""
    X, y = classification(9, n=40)
    with pytest.raises(ValueError, match=match):
        score(LDA.fit(X, y), X, y, categorical_features=chosen)
    frame = pd.DataFrame(X, columns=["b", "c"])
    with pytest.raises(ValueError, match=match):
        score(LDA.fit(frame, y), frame, y, categorical_features=chosen)


@pytest.mark.parametrize("method", ["auto", "x", "xy"])
def test_constant_columns_change_nothing(method):
    """They are never moved."""
    X, y = regression(10, n=40)
    wide = np.column_stack([np.full(40, 7.0), X, np.zeros(40)])
    model = make_pipeline(Probe(), Ridge()).fit(wide, y)
    recorder = Recorder.forget()
    found = score(model, wide, y, method=method, integration="qmc")
    for _, rows in recorder.seen:
        assert_array_equal(rows[:, [0, 3]], np.full((len(rows), 2), [7.0, 0.0]))
    plain = make_pipeline(Probe(), Ridge()).fit(X, y)
    expected = score(plain, X, y, method=method, integration="qmc")
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["constant", "categorical", "text"])
def test_nothing_to_move(kind):
    """One fit gives the resubstitution error, with a warning; folds still work."""
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(40, 2))
    y = (X[:, 0] + rng.normal(size=40) > 1.0).astype(int)
    options = {}
    if kind == "constant":
        X = np.ones((40, 2))
    elif kind == "text":
        X = np.array(["a", "b", "c"])[X]
    else:
        options = {"categorical_features": [0, 1]}
    encoder = ColumnTransformer([("", OneHotEncoder(), [0, 1])], sparse_threshold=0.0)
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=2)).fit(X, y)
    wrong = 1.0 - model.score(X, y)
    with pytest.warns(UserWarning, match="No feature can be moved"):
        found = estimate(model, X, y, method="x", **options)
    assert found.error == pytest.approx(wrong)
    by_parts = estimate(model, X, y, **options)
    assert by_parts.resubstitution == pytest.approx(wrong)
    assert by_parts.n_fits == 6
    assert 0.0 < by_parts.error < 1.0


@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("kernel", ["mm", 0.3])
@pytest.mark.parametrize("rows", ["continuous", "duplicated", "collinear"])
def test_sparse_regression_is_dense_regression(method, kernel, rows):
    """Closed forms of linear models, or a refusal; never another number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + 1.0
    if rows == "duplicated":
        X[20:30] = X[:10]
    elif rows == "collinear":
        X = np.column_stack([X, X[:, 0] + X[:, 1]])
    y = X[:, :3] @ [1.0, 2.0, 3.0] + rng.normal(size=40)
    model = Ridge().fit(X, y)
    expected = score(model, X, y, method=method, kernel=kernel)
    for pack in (sparse.csr_array, sparse.csc_matrix):
        try:
            found = score(model, pack(X), y, method=method, kernel=kernel)
        except ValueError as error:
            assert "sparse" in str(error)
        else:
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()])
def test_sparse_classification_is_dense_classification(model):
    """Binary linear classifiers have a closed form of the zero-one loss."""
    X, y = classification(10, n=40, labels=["a", "b"])
    model = clone(model).fit(X, y)
    expected = score(model, X, y, method="x", kernel="mm")
    found = estimate(model, sparse.csr_array(X), y, method="x", kernel="mm")
    assert found.error == pytest.approx(-expected, rel=1e-9)
    assert found.integration_error == 0.0
    semi = score(model, X, y, method="x", kernel="mm", semi=True)
    assert semi < expected
    found = score(model, sparse.csr_array(X), y, method="x", kernel="mm", semi=True)
    assert found == pytest.approx(semi, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (DecisionTreeClassifier(), {"method": "x", "kernel": "mm"}),
        (LogisticRegression(), {"method": "x", "kernel": "mm", "loss": "log"}),
        (LogisticRegression(), {"method": "x", "kernel": "mpe"}),
        (LogisticRegression(), {"method": "x", "kernel": "mm", "integration": "qmc"}),
    ],
    ids=label,
)
def test_other_sparse_rows_are_refused(model, options):
    """With a message that says so."""
    X, y = classification(10, n=40)
    X = sparse.csr_array(X)
    with pytest.raises(ValueError, match=r"[Ss]parse"):
        score(clone(model).fit(X, y), X, y, **options)


@pytest.mark.parametrize("method", ["auto", "x", "y", "resub"])
@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1.0, 1.0], ["b", "c"]]
)
def test_labels_of_all_types(method, labels):
    """The estimate depends on which rows are equal only."""
    X, codes = classification(13, n=40)
    model = GaussianNB()
    expected = score(
        clone(model).fit(X, codes), X, codes, method=method, loss=["zero_one", "log"]
    )
    labels = np.array(labels)
    kinds = [labels[codes].tolist(), pd.Series(labels[codes]), labels[codes][:, None]]
    if labels.dtype.kind == "U":
        kinds.append(labels[codes].astype(object))
    for y in [labels[codes], *kinds]:
        fitted = clone(model).fit(X, np.ravel(y))
        found = score(fitted, X, y, method=method, loss=["zero_one", "log"])
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", [GaussianNB(), SVC(), KNeighborsClassifier(3)])
def test_many_classes_of_different_sizes(model):
    """Errors between those of an oracle and of guessing."""
    rng = np.random.default_rng(14)
    y = np.repeat(list("abcde"), [30, 20, 15, 8, 8])
    centers = dict(zip("abcde", rng.normal(size=(5, 2)) * 3.0, strict=True))
    X = np.array([centers[label] for label in y]) + rng.normal(size=(81, 2))
    found = estimate(clone(model).fit(X, y), X, y)
    assert found.n_fits == 6
    assert 0.0 < found.error < 51 / 81
    assert found.error >= found.resubstitution


def test_more_features_than_rows():
    """No direction is moved in that the rows do not span."""
    rng = np.random.default_rng(15)
    X = rng.normal(size=(20, 50))
    y = np.arange(20) % 2
    X[:, 0] += 4.0 * y
    model = make_pipeline(Probe(), SVC()).fit(X, y)
    recorder = Recorder.forget()
    for method in ("auto", "x"):
        assert 0.0 <= -score(model, X, y, method=method) < 0.7
    center = X.mean(axis=0)
    span = np.linalg.svd(X - center, full_matrices=False)[2][:19]
    for _, rows in recorder.seen:
        rest = rows - center
        assert_allclose(rest - rest @ span.T @ span, 0.0, atol=1e-8)


@pytest.mark.parametrize("method", ["auto", "x"])
def test_duplicated_rows(method):
    """Finite estimates; where rows are held out there is one warning of copies."""
    X, y = classification(16, n=20)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    for model in (GaussianNB(), DecisionTreeClassifier(random_state=0)):
        texts = messages(estimate, model.fit(X, y), X, y, method=method)
        assert len(texts) == (method == "auto")
        assert all("50% of the rows repeat" in text for text in texts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = estimate(model, X, y, method=method)
        assert 0.0 <= found.error <= 1.0


def test_resubstitution_of_neighbors_with_duplicates():
    """It is what predict says, also where equal rows have different labels."""
    X, _ = classification(0, n=20)
    X, y = np.repeat(X, 3, axis=0), np.arange(60) % 2
    model = KNeighborsClassifier(1).fit(X, y)
    wrong = 1.0 - model.score(X, y)
    assert wrong > 0.0
    assert estimate(model, X, y).resubstitution == pytest.approx(wrong)


def test_weights_are_importances():
    """Their scale does not matter; rows of weight 0 do not count at all."""
    X, y = classification(17, n=40)
    w = np.random.default_rng(0).uniform(0.5, 2.0, size=40)
    model = GaussianNB().fit(X, y)
    for method in ("auto", "x"):
        first = score(model, X, y, w, method=method)
        assert first == pytest.approx(score(model, X, y, 3.0 * w, method=method))
        assert first != score(model, X, y, method=method)
        w0 = np.r_[w, np.zeros(5)]
        X0 = np.vstack([X, 100.0 + X[:5]])
        y0 = np.r_[y, 1 - y[:5]]
        assert first == pytest.approx(score(model, X0, y0, w0, method=method))
        assert first == score(model, X, y, pd.Series(w), method=method)


def test_one_fit_is_a_normal_probability():
    """A threshold that no closed form recognises: mean Phi(-margin / width)."""
    X = np.random.default_rng(18).normal(size=(60, 1))
    y = (X[:, 0] + 0.5 * np.random.default_rng(19).normal(size=60) > 0).astype(int)
    scale = X.std()
    margins = np.where(y == 1, X[:, 0], -X[:, 0])
    found = estimate(Sign().fit(X, y), X, y, method="x", kernel=0.4, n_nodes=256)
    error = ndtr(-margins / (0.4 * scale))
    assert found.error == pytest.approx(error.mean(), abs=0.003)
    assert found.resubstitution == np.mean(margins <= 0.0)
    semi = estimate(
        Sign().fit(X, y), X, y, method="x", kernel=0.4, n_nodes=256, semi=True
    )
    expected = np.where(margins <= 0.0, 1.0, error).mean()
    assert semi.error == pytest.approx(expected, abs=0.003)


# Refusals


def test_estimators_that_do_not_suit():
    """Unfitted, of another kind, or without the method that a loss needs."""
    X, y = classification(20, n=40)
    with pytest.raises(NotFittedError):
        score(GaussianNB(), X, y)
    with pytest.raises(NotFittedError):
        score(make_pipeline(StandardScaler(), GaussianNB()), X, y)
    for other in (KMeans(2, n_init=1), StandardScaler()):
        with pytest.raises(ValueError, match="classifiers and regressors"):
            score(other.fit(X), X, y)
    for method in ("auto", "x", "resub"):
        with pytest.raises(AttributeError, match="predict_proba"):
            score(LinearSVC().fit(X, y), X, y, method=method, loss="log")
    for method in ("y", "x+posterior"):
        with pytest.raises(ValueError, match="posterior"):
            score(LinearSVC().fit(X, y), X, y, method=method)
    X, y = regression(20, n=40)
    with pytest.raises(ValueError, match="posterior"):
        score(DecisionTreeRegressor().fit(X, y), X, y, method="y")


@pytest.mark.parametrize("method", ["auto", "x", "xy", "resub"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(method, value):
    """In X, y and the weights."""
    X, y = regression(21, n=40)
    w = np.ones(40)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    for name, array in {"X": X, "y": y, "sample_weight": w}.items():
        given = {"X": X, "y": y, "sample_weight": w, name: array.copy()}
        given[name][0] = value
        if method == "auto" and name == "X" and np.isnan(value):
            # The tree takes them.
            assert np.isfinite(score(model, **given))
            continue
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            score(model, **given, method=method)


@pytest.mark.parametrize("label", [np.nan, None])
def test_labels_that_are_none(label):
    """A missing label is refused."""
    X, y = classification(21, n=40)
    model = GaussianNB().fit(X, y)
    for dtype in (float, object):
        y_bad = y.astype(dtype)
        y_bad[0] = label
        with warnings.catch_warnings(), pytest.raises(ValueError):
            # scikit-learn casts before it looks.
            warnings.simplefilter("ignore", RuntimeWarning)
            score(model, X, y_bad)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(39), "39|shape"),
        (np.ones((40, 2)), "1D|shape"),
        (np.r_[-1.0, np.ones(39)], "[Nn]egative"),
        (np.zeros(40), "non-zero"),
        (["a"] * 40, "sample_weight must hold numbers; got values like"),
    ],
)
def test_wrong_weights(weight, match):
    """Of another length, negative, all zero, or no numbers."""
    X, y = classification(22, n=40)
    with pytest.raises(ValueError, match=match):
        score(GaussianNB().fit(X, y), X, y, weight)


@pytest.mark.parametrize("method", ["auto", "x"])
@pytest.mark.parametrize(
    "model", [GaussianNB(), KNeighborsClassifier(3), DecisionTreeClassifier()]
)
def test_other_columns_than_fitted(method, model):
    """X with more or fewer columns than the estimator knows."""
    X, y = classification(23, n=40)
    model = clone(model).fit(X, y)
    for other in (X[:, :1], np.hstack([X, X])):
        with pytest.raises(ValueError, match="features"):
            score(model, other, y, method=method)


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(3)])
def test_neighbors_of_other_rows_are_not_left_out(model):
    """Two folds of equal size: what is left out are no rows that were not fitted.

    Scoring held-out rows is a misuse, but a documented one: the smoothed error of
    these rows, at least. Here classes are far apart and every error must be small.
    """
    rng = np.random.default_rng(24)
    y = rng.permutation(np.arange(60) % 2)
    X = rng.normal(size=(60, 2)) + 12.0 * y[:, None]
    found = cross_val_score(clone(model), X, y, cv=KFold(2), scoring=BolsteredScorer())
    assert (found > -0.1).all()


def test_wrong_targets():
    """None, of another length, of unknown labels, of too many columns, or texts."""
    X, y = classification(25, n=40)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match=r"y.*None|None.*y"):
        score(model, X, None)
    with pytest.raises(ValueError, match="inconsistent"):
        score(model, X, y[:-1])
    with pytest.raises(ValueError, match="fitted on"):
        score(model, X, y + 1)
    with pytest.raises(ValueError, match="fitted on"):
        score(model, X, y.astype(str))
    with pytest.raises(ValueError, match=r"multi|shape"):
        score(model, X, np.column_stack([y, y]))
    X, y = regression(25, n=40)
    with pytest.raises(ValueError, match="y must hold numbers; got values like"):
        score(Ridge().fit(X, y), X, ["a"] * 40)
    with pytest.raises(ValueError, match=r"fitted|shape|outputs"):
        score(DecisionTreeRegressor().fit(X, y), X, np.column_stack([y, y, y]))


def test_labels_of_another_type_are_unknown():
    """Texts that look like the numbers an estimator knows, also with many classes."""
    rng = np.random.default_rng(26)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 20
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="fitted on"):
        score(model, X, y.astype(str))


INVALID = [
    ("method", "z"),
    ("kernel", "gauss"),
    ("kernel", -1.0),
    ("kernel", np.nan),
    ("kernel", None),
    ("loss", "hinge"),
    ("loss", None),
    ("standardize", "yes"),
    ("semi", None),
    ("lam", 0.0),
    ("lam", "a"),
    ("posterior", "bayes"),
    ("posterior", StandardScaler()),
    ("integration", "exact"),
    ("n_nodes", 0),
    ("n_nodes", 2.5),
    ("n_folds", 3),
    ("n_folds", 10),
    ("n_repeats", 0),
    ("holdout_scale", -0.1),
    ("n_neighbors", 0),
    ("shrink", 1.5),
    ("shrink", "half"),
    ("clip", -1.0),
    ("categorical_features", 3),
    ("random_state", "zero"),
    ("random_state", -1.5),
]


@pytest.mark.parametrize(("name", "value"), INVALID, ids=label)
def test_invalid_parameters(name, value):
    """The message names the parameter, when scoring and when fitting."""
    X, y = regression(27, n=40)
    scorer = BolsteredScorer(**{name: value})
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        scorer(Ridge().fit(X, y), X, y)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        scorer.fit(X, y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "xy"}, "method='xy'"),
        ({"semi": True}, "semi"),
        ({"semi": True, "method": "x", "loss": "log"}, "semi"),
        ({"semi": True, "method": "x", "loss": ["zero_one", "log"]}, "semi"),
        ({"semi": True, "method": "y"}, "semi"),
        ({"kernel": "mm"}, "kernel.*method='auto'"),
        ({"kernel": 0.5}, "kernel.*method='auto'"),
        ({"kernel": np.eye(2)}, "kernel.*method='auto'"),
        ({"kernel": lambda X, y: np.eye(2)}, "kernel.*method='auto'"),
        ({"loss": "squared"}, "loss='squared'"),
        ({"loss": ["zero_one", "absolute"]}, "loss='absolute'"),
    ],
    ids=label,
)
def test_parameters_that_do_not_go_together(options, match):
    """With a classifier fitted on 14 rows."""
    X, y = classification(28, n=14)
    with pytest.raises(ValueError, match=f"(?s){match}"):
        score(GaussianNB().fit(X, y), X, y, **options)


def test_classification_losses_do_not_suit_regressors():
    """And semi-bolstering neither."""
    X, y = regression(28, n=40)
    model = Ridge().fit(X, y)
    for loss in ("zero_one", "log"):
        with pytest.raises(ValueError, match=f"loss='{loss}'"):
            score(model, X, y, loss=loss)
    with pytest.raises(ValueError, match="semi"):
        score(model, X, y, method="x", semi=True)


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (np.eye(3), "kernel.*shape"),
        (np.ones(2), "kernel.*shape"),
        (np.stack([np.eye(2)] * 7), "kernel.*shape"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "kernel.*symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "kernel.*semidefinite"),
        (-np.eye(2), "kernel.*semidefinite"),
        (np.full((2, 2), np.nan), "kernel.*finite"),
        ([[1.0], [0.0, 1.0]], "kernel"),
        ([["a", "b"], ["c", "d"]], "kernel"),
        (lambda X, y: np.eye(3), "kernel.*shape"),
        (lambda X, y: None, "kernel"),
    ],
    ids=label,
)
def test_wrong_kernels(kernel, match):
    """Of another shape, not symmetric, indefinite, or no numbers."""
    X, y = regression(29, n=20)
    with pytest.raises(ValueError, match=f"(?s){match}"):
        score(Ridge().fit(X, y), X, y, method="x", kernel=kernel)


def test_kernels_on_categorical_columns_are_refused():
    """They would move what must stay."""
    X, y = regression(29, n=20)
    with pytest.raises(ValueError, match="categorical"):
        score(
            Ridge().fit(X, y), X, y, method="x", kernel=np.eye(2),
            categorical_features=[0],
        )  # fmt: skip


def test_a_kernel_of_width_zero_moves_nothing():
    """The resubstitution error, and nothing untrue is said of the rows."""
    X, y = regression(29, n=20)
    model = Ridge().fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = estimate(model, X, y, method="x", kernel=0.0)
    assert found.error == pytest.approx(np.mean((y - model.predict(X)) ** 2))
    assert not any("same" in str(item.message) for item in caught)


def test_frozen_estimators():
    """They cannot be refitted; one fit is all the other methods need."""
    X, y = classification(32, n=40)
    model = GaussianNB().fit(X, y)
    frozen = FrozenEstimator(model)
    with pytest.raises(ValueError, match="FrozenEstimator"):
        score(frozen, X, y)
    found = score(frozen, X, y, method="x")
    assert found == score(model, X, y, method="x")


def test_frozen_estimators_in_a_pipeline():
    """Held-out rows that the frozen part was fitted on are not held out."""
    X, y = classification(32, n=40)
    frozen = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(X, y))
    model = make_pipeline(FunctionTransformer(), frozen).fit(X, y)
    with pytest.raises(ValueError, match="FrozenEstimator"):
        score(model, X, y)


def test_few_rows_do_not_thaw_a_frozen_estimator():
    """Refused whatever the number of rows."""
    X, y = classification(32, n=6)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match="FrozenEstimator"):
        score(frozen, X, y)


@pytest.mark.parametrize("options", [{"method": "x"}, {}])
def test_predictions_that_turn_nan(options):
    """A model that knows no number elsewhere is told of by name of the loss."""
    X, y = regression(33, n=20)
    with pytest.raises(ValueError, match=r"predicts NaN or infinity"):
        score(NotANumber().fit(X, y), X, y, **options)


def test_pipelines_that_turn_nan():
    """The logarithm of a moved row may be NaN: no classifier makes a label of that."""
    X, y = classification(34, n=60)
    X = np.exp(3.0 * X)
    model = make_pipeline(FunctionTransformer(quiet_log), LDA).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        score(model, X, y, method="x")
    # Without moved rows there is no such thing.
    assert -0.5 < score(model, X, y) <= 0.0


def quiet_log(X):
    with np.errstate(invalid="ignore"):
        return np.log(X)


@pytest.mark.parametrize("method", ["auto", "x"])
def test_kernel_matrices_are_no_rows(method):
    """Entries of a precomputed kernel cannot be moved; the message says so."""
    X, y = classification(35, n=40)
    K = X @ X.T
    with pytest.raises(ValueError, match=r"precomputed|pairwise|kernel matri"):
        score(SVC(kernel="precomputed").fit(K, y), K, y, method=method)


def test_integration_error_of_a_single_node_is_not_nought():
    """Zero means a closed form; otherwise the error is positive or unknown."""
    X, y = regression(36, n=20)
    model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    exact = estimate(model, X, y, method="x", kernel="mm")
    assert exact.integration_error == 0.0
    found = estimate(model, X, y, method="x", kernel="mm", integration="mc", n_nodes=1)
    assert found.error != exact.error
    assert found.integration_error != 0.0


@pytest.mark.parametrize("n_nodes", [1, 3, 7, 8])
def test_as_many_moved_rows_as_asked_for(n_nodes):
    """At most rounded up to four streams; what is said to be predicted is what is."""
    X, y = classification(36, n=20)
    model = make_pipeline(Probe(), GaussianNB()).fit(X, y)
    recorder = Recorder.forget()
    record = estimate(model, X, y, method="x", n_nodes=n_nodes, integration="qmc")
    found = sum(len(rows) for name, rows in recorder.seen if name == "transform")
    assert found == record.n_evaluations
    assert n_nodes <= found / 20 - 1 <= (n_nodes if n_nodes < 4 else 8)


def test_posteriors_are_fitted_where_they_are_not():
    """A fitted one is used as it is."""
    X, y = regression(37, n=40)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    posterior = BayesianRidge()
    found = score(model, X, y, method="y", posterior=posterior)
    assert not hasattr(posterior, "coef_")
    posterior.fit(X, y)
    mean, deviation = posterior.predict(X, return_std=True)
    expected = np.mean((mean - model.predict(X)) ** 2 + deviation**2)
    assert found == pytest.approx(-expected)
    assert score(model, X, y, method="y", posterior=posterior) == pytest.approx(found)
    other = BayesianRidge().fit(X, -y)
    assert score(model, X, y, method="y", posterior=other) != pytest.approx(found)


def test_fit_takes_posteriors_as_they_are():
    """A fitted one is used by fit as by estimate."""
    X, y = regression(37, n=40)
    far = BayesianRidge().fit(X, 100.0 + y)
    for method in ("y", "x+posterior"):
        scorer = BolsteredScorer(method=method, posterior=far).fit(X, y)
        assert scorer.sample(200, random_state=0)[1].mean() > 90.0
        scorer = BolsteredScorer(method=method, posterior=BayesianRidge()).fit(X, y)
        assert abs(scorer.sample(200, random_state=0)[1].mean()) < 10.0


@pytest.mark.parametrize("labels", [(5, 7), (0, 7), (-1, 0)])
def test_posteriors_that_know_other_labels(labels):
    """A class without a probability is no class with that of another one."""
    X, y = classification(37, n=40)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    posterior = GaussianNB().fit(X, np.array(labels)[y])
    with pytest.raises(ValueError, match=r"posterior|class|label"):
        score(model, X, y, method="y", posterior=posterior)


def test_wide_posteriors_are_not_called_kernels():
    """Method "y" has no kernel that a warning could be about."""
    X, y = regression(37, n=40)
    model = DecisionTreeRegressor(max_depth=4).fit(X, y)
    posterior = BayesianRidge().fit(X, 3.0 * y)
    caught = messages(score, model, X, y, method="y", posterior=posterior)
    assert not any("ernel" in text for text in caught)


# Sampling


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_samples_are_of_the_kind_given(kind):
    """Moved numbers, categories as they were, labels of their rows."""
    X, y = classification(38, n=40, labels=["a", "b"])
    if kind != "array":
        X, y = mixed(kind)
    scorer = BolsteredScorer(method="x", categorical_features=[]).fit(X, y)
    drawn, labels = scorer.sample(500, random_state=0)
    assert type(drawn) is type(X)
    assert len(drawn) == len(labels) == 500
    assert set(labels) == set(y)
    if kind == "array":
        assert len(np.unique(drawn[:, 0])) == 500
        return
    assert list(drawn.columns) == list(X.columns)
    assert drawn["text"].dtype == X["text"].dtype
    assert len(set(drawn["width"])) == 500
    again, _ = scorer.sample(500, random_state=0)
    assert drawn.equals(again)


def test_samples_have_the_moments_of_the_measure():
    """Mean of the rows, and their covariance plus the mean kernel."""
    X, y = regression(39, n=30)
    scorer = BolsteredScorer(method="xy", kernel="mpe").fit(X, y)
    drawn, targets = scorer.sample(200_000, random_state=0)
    found = np.column_stack([drawn, targets])
    rows = np.column_stack([X, y])
    expected = np.cov(rows.T, bias=True) + scorer.kernel_.mean(axis=0)
    assert_allclose(found.mean(axis=0), rows.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(found.T), expected, rtol=0.05, atol=0.03)


# The picture


def test_display_has_the_numbers_of_the_scorer():
    """The estimate, the folds' errors and the test error are those by hand."""
    X, y = classification(40, n=60, labels=["a", "b"])
    X_test, y_test = classification(40, n=200, labels=["a", "b"])
    model = GaussianNB()
    display = BolsteredEstimateDisplay.from_estimator(
        model, X, y, X_test=X_test, y_test=y_test, cv=5, plot=False
    )
    fitted = clone(model).fit(X, y)
    assert display.estimate == estimate(fitted, X, y)
    assert_allclose(display.fold_errors, 1.0 - cross_val_score(model, X, y, cv=5))
    assert display.test_error == pytest.approx(1.0 - fitted.score(X_test, y_test))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("loss", ["zero_one", "log", "brier"])
def test_losses_of_classes_are_for_classes(loss):
    """Kernels are chosen within classes; numbers are none."""
    X, y = classification(41, n=40)
    kernel = BolsteredScorer(method="x").fit(X, y).kernel_
    assert_array_equal(BolsteredScorer(method="x", loss=loss).fit(X, y).kernel_, kernel)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        BolsteredScorer(method="x", loss=loss).fit(X, y + 0.5)


def test_display_draws_the_numbers():
    """Every number of the data is a coordinate somewhere."""
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    X, y = classification(40, n=60)
    _, ax = plt.subplots()
    display = BolsteredEstimateDisplay.from_estimator(
        GaussianNB(), X, y, X_test=X, y_test=y, cv=3, ax=ax
    )
    assert display.ax_ is ax and display.figure_ is ax.figure
    drawn = np.concatenate([np.ravel(line.get_xdata()) for line in ax.get_lines()])
    found = display.estimate
    numbers = [found.error, found.resubstitution, display.test_error]
    numbers += [found.hold_out, found.no_information, *display.fold_errors]
    for number in numbers:
        assert np.isclose(drawn.astype(float), number).any()
    assert "zero_one" in ax.get_xlabel()
    names = [label.get_text() for label in ax.get_yticklabels()]
    # Training, held-out and no-information error, estimate, and cross-validation.
    assert len(names) == len(set(names)) == 5
    plt.close("all")


def test_display_of_scores():
    """The folds' scores are of the same sign as the estimate, if there are any."""
    X, y = classification(40, n=60)
    scorer = BolsteredScorer(loss=make_scorer(f1_score))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            display = BolsteredEstimateDisplay.from_estimator(
                GaussianNB(), X, y, scorer=scorer, cv=3, plot=False
            )
        except ValueError as error:
            assert "score" in str(error)
            return
    expected = cross_val_score(GaussianNB(), X, y, scoring="f1", cv=3)
    assert_allclose(display.fold_errors, -expected)


def test_display_of_one_fit():
    """The bar of one fit is its integration error, and is called so."""
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    X, y = regression(41, n=40)
    display = BolsteredEstimateDisplay.from_estimator(
        DecisionTreeRegressor(max_depth=3), X, y, cv=None,
        scorer=BolsteredScorer(method="x"),
    )  # fmt: skip
    assert display.fold_errors is None and display.test_error is None
    legend = display.ax_.get_legend()
    texts = " ".join(text.get_text() for text in legend.get_texts())
    assert "integration error" in texts
    assert "standard error" not in texts.replace("integration error", "")
    plt.close("all")


def test_display_refuses_what_it_cannot_draw():
    """Several losses, and test rows without their targets."""
    X, y = regression(41, n=40)
    with pytest.raises(ValueError, match="loss"):
        BolsteredEstimateDisplay.from_estimator(
            Ridge(), X, y, scorer=BolsteredScorer(loss=["squared"]), plot=False
        )
    with pytest.raises(ValueError, match="X_test"):
        BolsteredEstimateDisplay.from_estimator(Ridge(), X, y, X_test=X, plot=False)
