"""Input as people have it: kinds of labels, dataframes, offsets and extreme numbers.

Tables drive the tests: `FORMS` and `label_forms` turn plain data into other forms of
the same data, of which every estimator must make the same; `KINDS` spoils the numbers,
of which it must make finite predictions, or an error that says what is wrong.
"""

import re
import warnings

import numpy as np
import pytest
from common import instances, make_data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skbounds import (
    BaumWelchHMM,
    BolsteredScorer,
    BolsteredSearchCV,
    EarlyStoppedKernelBoostClassifier,
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    KernelRidgeSMP,
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    SMPClassifier,
    SMPLogisticRegression,
    SMPRegressor,
    bolstered_val_score,
)

pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")
pl = pytest.importorskip("polars", reason="test extra not installed (oldest versions)")
pa = pytest.importorskip("pyarrow", reason="test extra not installed (oldest versions)")

NAMES = ["x0", "x1", "x2"]
# The first configuration of each class, with rows of features.
ESTIMATORS = list({type(e): e for e in reversed(instances())}.values())
ESTIMATORS = [e for e in ESTIMATORS if not get_tags(e).input_tags.pairwise]
by_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda e: type(e).__name__
)
WITH_LABELS = [
    e for e in ESTIMATORS if is_classifier(e) and "Multilabel" not in type(e).__name__
]


def fitted(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X, y)


def output(estimator, X):
    """Return what a fitted estimator says of rows, as an array."""
    for name in ("predict_proba", "predict", "score_samples"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name)(X))
    return estimator.kernel_  # BolsteredScorer


# ------------------------------------------------ the same data in another form


def pandas_frame(X):
    return pd.DataFrame(X, columns=NAMES)


FORMS = {
    "pandas": pandas_frame,
    "nullable": lambda X: pandas_frame(X).astype("Float64"),
    "arrow-backed": lambda X: pandas_frame(X).astype("double[pyarrow]"),
    "polars": lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32).astype(np.float64),
    "lists": lambda X: X.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@by_estimator
def test_rows_in_any_form_give_the_same(estimator, form):
    X, y = make_data(estimator, n_samples=60)
    X = X.astype(np.float32).astype(np.float64)
    expected = output(fitted(estimator, X, y), X)
    rows = FORMS[form](X)
    model = fitted(estimator, rows, y)
    given = rows if not isinstance(estimator, BolsteredScorer) else X
    found = output(model, given)
    if expected.dtype.kind == "f":
        assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    else:
        assert_array_equal(found, expected)


DATES = pd.Series(pd.date_range("2020-01-01", periods=60, freq="h"))


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow-backed"])
@by_estimator
def test_dates_that_a_pipeline_does_not_use(estimator, library):
    """Dates, times and durations stand in the frame, and no estimator looks at them."""
    X, y = make_data(estimator, n_samples=60)
    frame = pandas_frame(X).assign(
        when=DATES, day=DATES.dt.date.astype("datetime64[s]"), lasts=DATES - DATES[0]
    )
    if library == "polars":
        frame = pl.from_pandas(frame).with_columns(pl.col("day").cast(pl.Date))
    elif library == "arrow-backed":
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    select = make_column_transformer(("passthrough", NAMES))
    pipe = make_pipeline(select, clone(estimator))
    if isinstance(estimator, BolsteredScorer):
        scores = bolstered_val_score(
            make_pipeline(select, GaussianNB()), frame, (y > 0).astype(int)
        )
        plain = bolstered_val_score(GaussianNB(), X, (y > 0).astype(int))
        assert_allclose(scores, plain, atol=0.06)
        return
    model = fitted(pipe, frame, y)
    expected = output(fitted(estimator, X, y), X)
    assert_allclose(
        output(model, frame), expected, rtol=1e-8, atol=1e-10
    ) if expected.dtype.kind == "f" else assert_array_equal(
        output(model, frame), expected
    )


# ------------------------------------------------ the same labels in another form


def label_forms(codes):
    """Return names and columns of three levels, "c" < "a" < "b" where ordered."""
    levels = ["c", "a", "b"]
    texts = np.array(levels)[codes]
    ordered = pd.Series(pd.Categorical.from_codes(codes, levels, ordered=True))
    return {
        "list": texts.tolist(),
        "object": texts.astype(object),
        "categorical": pd.Series(texts).astype("category"),
        "ordered": ordered,
        "ordered frame": ordered.to_frame("y"),
        "string[pyarrow]": pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        "polars": pl.Series("y", texts),
        "polars Enum": pl.Series("y", texts, dtype=pl.Enum(levels)),
        "polars Enum frame": pl.DataFrame(
            {"y": pl.Series(texts, dtype=pl.Enum(levels))}
        ),
        "polars Categorical": pl.Series("y", texts, dtype=pl.Categorical),
        "pyarrow": pa.array(texts),
    }


@pytest.mark.parametrize("form", label_forms(np.zeros(1, int)))
@pytest.mark.parametrize("estimator", WITH_LABELS, ids=lambda e: type(e).__name__)
def test_labels_in_any_form_give_the_same(estimator, form):
    """The predictions of plain texts; the ordinal classifier takes a declared order."""
    X, _ = make_data(estimator, n_samples=60)
    signal = X[:, 0] - 0.5 * X[:, 1]
    codes = np.digitize(signal, [-0.5, 0.5])
    y = label_forms(codes)[form]
    model = fitted(estimator, X, y)
    ordinal = isinstance(estimator, FenchelYoungOnlineOrdinalClassifier)
    if ordinal and ("ordered" in form or "Enum" in form):
        assert model.classes_.tolist() == ["c", "a", "b"]
        reference = fitted(estimator, X, codes)
        assert_array_equal(
            model.predict(X), np.array(["c", "a", "b"])[reference.predict(X)]
        )
        assert_allclose(model.predict_proba(X), reference.predict_proba(X))
        return
    reference = fitted(estimator, X, np.array(["c", "a", "b"])[codes])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert_array_equal(model.predict(X), reference.predict(X))
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X), reference.predict_proba(X))


@pytest.mark.parametrize(
    "dtype", ["Int64", "boolean", "int64[pyarrow]", "bool[pyarrow]"]
)
@pytest.mark.parametrize("estimator", WITH_LABELS, ids=lambda e: type(e).__name__)
def test_nullable_labels_stay_whole(estimator, dtype):
    """Whole numbers and truth values do not become floats."""
    if isinstance(estimator, BolsteredSearchCV):
        # It has the classes of scikit-learn's estimator, which makes floats of them.
        estimator = BolsteredSearchCV(SMPLogisticRegression(), {"C": [1.0, 2.0]})
    X, _ = make_data(estimator, n_samples=60)
    y = pd.Series((X[:, 0] > 0).astype(int), dtype="Int64").astype(dtype)
    model = fitted(estimator, X, y)
    assert model.classes_.dtype.kind == ("b" if "bool" in dtype else "i")
    assert_array_equal(model.classes_, [0, 1])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("estimator", WITH_LABELS, ids=lambda e: type(e).__name__)
def test_missing_labels_have_one_message(estimator, missing):
    X, _ = make_data(estimator, n_samples=40)
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[3] = missing
    for labels in (y, pd.Series(y), y.tolist()):
        with pytest.raises(ValueError, match="Input y contains NaN, None or another"):
            clone(estimator).fit(X, labels)
    with pytest.raises(ValueError, match="Input y contains NaN, None or another"):
        bolstered_val_score(LogisticRegression(), X, y)


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
def test_dates_as_classes(unit):
    """Whatever type and unit a single date has."""
    X, _ = make_data(FenchelYoungOnlineClassifier(), n_samples=40)
    days = np.array(["2020-01-01", "2021-05-05"], dtype=f"datetime64[{unit}]")
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(X, days[(X[:, 0] > 0).astype(int)])
    for label in (days[0], pd.Timestamp(days[0]), days[0].astype("datetime64[us]")):
        assert clf.learn_one(X[0], label) in days
    with pytest.raises(ValueError, match="not in classes_"):
        clf.learn_one(X[0], np.datetime64("1999-01-01"))


# ------------------------------------------------ classes that are not sorted


class Unsorted(ClassifierMixin, BaseEstimator):
    """A classifier whose classes_ are in another order than its columns' names."""

    def __init__(self, order=("good", "bad", "worst")):
        self.order = order

    def fit(self, X, y, sample_weight=None):
        self.model_ = LogisticRegression().fit(X, y, sample_weight)
        known = self.model_.classes_.tolist()
        self.columns_ = [known.index(label) for label in self.order if label in known]
        self.classes_ = self.model_.classes_[self.columns_]
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, self.columns_]


@pytest.fixture(scope="module")
def levels():
    """The rows of a public report: three named levels, and their codes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    s = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=200)
    codes = np.digitize(s, [-0.6, 0.6])
    return X, codes, np.array(["good", "bad", "worst"])[codes]


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
@pytest.mark.parametrize("method", ["auto", "resub", "x", "y", "x+posterior"])
def test_error_estimates_of_unsorted_classes(levels, method, scoring):
    """As with sorted ones: columns are found by their class."""
    X, _, y = levels
    options = {"scoring": scoring, "method": method}
    found = bolstered_val_score(Unsorted(), X, y, **options)
    expected = bolstered_val_score(LogisticRegression(), X, y, **options)
    assert_allclose(found, expected, rtol=1e-9)


def test_searches_and_votes_over_unsorted_classes(levels):
    X, _, y = levels
    grid = {"order": [("good", "bad", "worst"), ("bad", "good", "worst")]}
    search = BolsteredSearchCV(Unsorted(), grid, scoring="neg_log_loss").fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert_allclose(scores[0], scores[1], rtol=1e-12)
    votes = [
        PACBayesEnsembleClassifier([member, GaussianNB()], random_state=0).fit(X, y)
        for member in (Unsorted(), Unsorted(("bad", "good", "worst")))
    ]
    assert_allclose(votes[0].predict_proba(X), votes[1].predict_proba(X), rtol=1e-9)
    assert votes[0].vote_bound_ == votes[1].vote_bound_


@pytest.mark.parametrize(
    ("method", "value"), [("resub", -0.458), ("x", -0.694), ("y", None)]
)
@pytest.mark.parametrize(
    "names", [["good", "bad", "worst"], ["small", "medium", "large"]]
)
def test_estimates_of_ordered_categories(levels, names, method, value):
    """The numbers of integer codes, whatever the levels are called."""
    X, codes, _ = levels
    y = pd.Series(pd.Categorical.from_codes(codes, names, ordered=True))
    options = {"scoring": "neg_log_loss", "method": method}
    make = FenchelYoungOnlineOrdinalClassifier
    found = bolstered_val_score(make(), X, y, **options)
    assert_allclose(found, bolstered_val_score(make(), X, codes, **options), rtol=1e-9)
    if value is not None:
        assert_allclose(found, value, atol=5e-4)


def test_members_see_the_order_of_categories(levels):
    """An ordinal classifier as a member, and on the parts of an error estimate."""
    X, codes, _ = levels
    names = ["good", "bad", "worst"]
    y = pd.Series(pd.Categorical.from_codes(codes, names, ordered=True))
    make = FenchelYoungOnlineOrdinalClassifier
    vote = PACBayesEnsembleClassifier([make(random_state=0)], random_state=0)
    by_name = clone(vote).fit(X, y).predict(X)
    by_code = clone(vote).fit(X, codes).predict(X)
    assert np.mean(by_name == np.array(names)[codes]) > 0.8
    assert_array_equal(by_name, np.array(names)[by_code])
    scores = [
        bolstered_val_score(make(), X, labels)[0] for labels in (y, y.to_frame(), codes)
    ]
    assert scores[0] == scores[1]
    # Classes in another order are dealt to other parts.
    assert_allclose(scores[0], scores[2], atol=0.03)


def test_texts_without_an_order_are_warned_of():
    X, _ = make_data(FenchelYoungOnlineOrdinalClassifier(), n_samples=60)
    texts = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    make = FenchelYoungOnlineOrdinalClassifier
    with pytest.warns(UserWarning, match="alphabetical order: high < low < mid"):
        make().fit(X, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().partial_fit(X, texts, classes=["low", "mid", "high"])
        make().fit(
            X, pd.Series(pd.Categorical(texts, ["low", "mid", "high"], ordered=True))
        )
        make().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
        make().fit(X, np.where(X[:, 0] > 0, "yes", "no"))


# ------------------------------------------------ names of single rows


def test_single_rows_are_checked_by_name():
    X, _ = make_data(FenchelYoungOnlineClassifier(), n_samples=60)
    frame, y = pandas_frame(X), (X[:, 0] > 0).astype(int)
    clf = FenchelYoungOnlineClassifier(random_state=0).partial_fit(frame, y)
    other = FenchelYoungOnlineClassifier(random_state=0).partial_fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        clf.learn_one(frame.iloc[0][::-1], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _, row in frame.iterrows():
            clf.learn_one(row, 1)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        other.learn_one(X[0], 1)
    with warnings.catch_warnings():
        # Once is enough for a stream.
        warnings.simplefilter("error")
        for row in X[1:]:
            other.learn_one(row, 1)
    assert_array_equal(clf.coef_, other.coef_)


# ------------------------------------------------ numbers that spoil a table


def with_entry(value):
    def change(X):
        X = X.copy()
        X[7, 0] = value
        return X

    return change


KINDS = {
    "sentinel": with_entry(999999999.0),
    "sentinel 1e20": with_entry(1e20),
    "offset": lambda X: X + [1e7, 0.0, 0.0],
    "offset of all": lambda X: X + 1e6,
    "x 1e100": lambda X: X * 1e100,
    "x 1e-100": lambda X: X * 1e-100,
    "x 1e154": lambda X: X * 1e154,
    "x 1e160": lambda X: X * 1e160,
    "x 1e-160": lambda X: X * 1e-160,
}
WRAPPERS = (
    BolsteredSearchCV,
    PACBayesEnsembleClassifier,
    SMPClassifier,
    SMPRegressor,
)
# What an error may say, of the user's numbers.
SAYS = re.compile(
    r"entries must be below|varies by|squares vanish|too far from any model|too large "
    r"to compute|values beyond|Negative values|is not finite"
)


@pytest.mark.parametrize("kind", KINDS)
@by_estimator
def test_spoilt_numbers_are_borne_or_named(estimator, kind):
    """Finite answers that agree with what the model says of itself, or one error."""
    X, y = make_data(estimator, n_samples=80)
    rows = KINDS[kind](X)
    if get_tags(estimator).input_tags.positive_only:
        rows = np.abs(rows)
    if isinstance(estimator, WRAPPERS):
        # Of scikit-learn's members nothing is promised.
        estimator = clone(estimator)
        if isinstance(estimator, BolsteredSearchCV):
            estimator.set_params(
                estimator=SMPLogisticRegression(), param_grid={"C": [1.0, 2.0]}
            )
        elif isinstance(estimator, SMPClassifier):
            estimator.set_params(estimator=SMPLogisticRegression(), method="refit")
        elif isinstance(estimator, SMPRegressor):
            estimator.set_params(estimator=Ridge(solver="svd"), method="refit")
        else:
            estimator.set_params(estimators=[SMPLogisticRegression()])
    try:
        model = fitted(estimator, rows, y)
    except ValueError as error:
        assert SAYS.search(str(error)), error
        return
    if isinstance(estimator, BolsteredScorer):
        assert np.isfinite(model.kernel_).all()
        return
    answers = output(model, rows)
    if answers.dtype.kind == "f":
        assert np.isfinite(answers).all()
    for name, value in vars(model).items():
        if isinstance(value, float) and name.endswith(("loss_", "bound_", "noise_")):
            assert not np.isnan(value) or np.isnan(
                getattr(fitted(estimator, X, y), name)
            ), name


LEARNS = [
    SMPLogisticRegression(),
    EarlyStoppedKernelBoostClassifier(random_state=0),
    PACBayesSVMEnsemble(random_state=0, standardize=True),
    FenchelYoungOnlineClassifier(random_state=0),
]


@pytest.mark.parametrize("kind", ["offset", "x 1e100"])
@pytest.mark.parametrize("estimator", LEARNS, ids=lambda e: type(e).__name__)
def test_offsets_and_large_units_cost_nothing(estimator, kind):
    """Accuracy on the rows, as without them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    rows = KINDS[kind](X)
    plain = fitted(estimator, X, y).score(X, y)
    assert fitted(estimator, rows, y).score(rows, y) > plain - 0.03


@pytest.mark.parametrize("value", [1e7, 999999999.0, 1e20, 1e100])
@pytest.mark.parametrize("n", [200, 1000])
def test_kernels_stand_one_sentinel(value, n):
    """R squared of the kernel ridge regression, .9, on all rows; and without it.

    Distances are taken from the median, and coordinate by coordinate far away.
    """
    from sklearn.kernel_ridge import KernelRidge

    from skbounds import EarlyStoppedKernelBoost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    s = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    Z = with_entry(value)(X)
    peer = KernelRidge(kernel="rbf", alpha=0.1).fit(Z, s).score(X, s)
    assert peer > 0.9
    for model in (
        EarlyStoppedKernelBoost(random_state=0),
        EarlyStoppedKernelBoost(random_state=0, solver="lowrank"),
        KernelRidgeSMP("loo", kernel="rbf"),
    ):
        assert fitted(model, Z, s).score(X, s) > peer - 0.04


def test_many_sentinels_and_offsets_keep_distances():
    """Rows that share a far value are as close to each other as without it."""
    from scipy.spatial.distance import cdist

    from skbounds._distances import CentredRows, rbf

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    far = X.copy()
    far[::3, 1] += 1e9
    far[1::3, 1] -= 3e12
    for rows, gamma in ((X, 0.5), (X + 1e7, 0.5), (far, 0.5), (1e30 * far, 5e-61)):
        points = CentredRows(rows)
        expected = np.exp(-gamma * cdist(rows, rows, "sqeuclidean"))
        assert_allclose(rbf(points, points, gamma), expected, rtol=1e-7, atol=1e-9)
        from scipy.sparse import csr_matrix

        sparse = CentredRows(csr_matrix(rows))
        assert_allclose(rbf(sparse, sparse, gamma), expected, rtol=1e-7, atol=1e-9)
        assert_allclose(
            rbf(sparse.with_others(rows), sparse, gamma), expected, rtol=1e-7, atol=1e-9
        )


# ------------------------------------------------ rows that are no tables of numbers


def test_frames_of_pyarrow():
    """Where scikit-learn's own tools take them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=100) > 0).astype(int)
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    assert cross_val_score(LogisticRegression(), table, y).shape == (5,)
    for method in ("auto", "resub", "x"):
        found = bolstered_val_score(LogisticRegression(), table, y, method=method)
        expected = bolstered_val_score(LogisticRegression(), X, y, method=method)
        assert_allclose(found, expected, rtol=1e-9)
    search = BolsteredSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}).fit(table, y)
    assert search.best_score_ > 0.7


def texts(y):
    words = np.where(y == 1, "good nice", "bad awful")
    return [f"{word} {i % 3}" for i, word in enumerate(words)]


@pytest.mark.parametrize("form", ["list", "Series", "array", "dicts", "3-d"])
def test_texts_dicts_and_images(form):
    """Nothing is moved; members and folds get them as they came."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import FunctionTransformer

    y = np.random.default_rng(0).integers(2, size=80)
    first = CountVectorizer()
    X = texts(y)
    if form == "Series":
        X = pd.Series(X)
    elif form == "array":
        X = np.array(X, dtype=object)
    elif form == "dicts":
        X, first = [{"word": text.split()[0]} for text in X], DictVectorizer()
    elif form == "3-d":
        X = np.random.default_rng(1).normal(size=(80, 4, 2)) + 3.0 * y[:, None, None]
        first = FunctionTransformer(_flat)
    model = make_pipeline(first, LogisticRegression())
    assert bolstered_val_score(model, X, y)[0] > 0.95
    search = BolsteredSearchCV(model, {"logisticregression__C": [0.5, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.95
    vote = PACBayesEnsembleClassifier([model], random_state=0).fit(X, y)
    assert np.mean(vote.predict(X) == y) > 0.95
    assert vote.predict_randomized(X, random_state=0).shape == y.shape


def _flat(X):
    return X.reshape(len(X), -1)


# ------------------------------------------------ single numbers


def test_constant_targets_have_the_score_of_scikit_learn():
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    for model in (Ridge(), DecisionTreeRegressor()):
        assert bolstered_val_score(model, X, np.full(30, 3.0)) == [1.0]


def test_neighbours_that_parts_do_not_have_are_explained():
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(2, size=100)
    with pytest.raises(ValueError, match="n_neighbors") as caught:
        bolstered_val_score(KNeighborsClassifier(n_neighbors=90), X, y)
    assert "moved" not in str(caught.value)
    assert "parts of the 100 rows" in caught.value.__notes__[0]


def test_hmm_at_extremes():
    """The one estimator without targets: values that no state is near."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    model = BaumWelchHMM(random_state=0).fit(X)
    with pytest.raises(ValueError, match="too far from any model"):
        model.predict(X * 1e160)
