"""Collections of dask: what chunks may be, and what is refused."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from dask_tools import chunked
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

from skbounds import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    GaussianSMP,
    MultinomialSMP,
    PoissonSMP,
    RidgeSMP,
    SMPLogisticRegression,
    SMPLogisticRegressionCV,
)
from skbounds._base import is_collection
from skbounds._collections import Chunks, draw_rows

dask = pytest.importorskip("dask", reason="extra scale not installed")
da = pytest.importorskip("dask.array", reason="extra scale not installed")
dd = pytest.importorskip("dask.dataframe", reason="extra scale not installed")
pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + RNG.normal(size=N)
C = (Y > 0).astype(int)
SMALL = {"max_rank": 20, "gamma": 0.5, "random_state": 0}
MODELS = {
    "ridge": (RidgeSMP(), Y),
    "boost": (EarlyStoppedKernelBoost(relevance=None, **SMALL), Y),
    "logistic": (SMPLogisticRegression(method="one-step"), C),
    "pool": (SMPLogisticRegressionCV(method="one-step", Cs=3), C),
    "classes": (EarlyStoppedKernelBoostClassifier(**SMALL), C),
}
OF_NUMBERS, OF_LABELS = ["ridge", "boost"], ["logistic", "pool", "classes"]
by_model = pytest.mark.parametrize("name", MODELS)
by_labels = pytest.mark.parametrize("name", OF_LABELS)
by_numbers = pytest.mark.parametrize("name", OF_NUMBERS)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Make samples small, so that a few hundred rows are more than they have."""
    monkeypatch.setattr("skbounds.kernel_boost._solvers._FEWEST_ROWS", 100)
    monkeypatch.setattr("skbounds.kernel_boost._solvers._ROWS_PER_PIVOT", 2)


def ch(values, size=130):
    return chunked(values, size)


def new(name):
    model, y = MODELS[name]
    return clone(model), y


@quiet
@by_model
def test_chunks_that_do_not_count(name):
    model, y = new(name)
    weight = np.where(np.arange(N) < 130, 0.0, 1.0)
    there = model.fit(ch(X), ch(y), weight).predict(X)
    known = model.fit(ch(X[130:]), ch(y[130:])).predict(X)
    if name in ("ridge", "logistic", "pool"):
        # The samples of the others depend on the numbers of the rows.
        np.testing.assert_allclose(there, known, rtol=1e-8)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["y"], frame["g"] = y, np.arange(N) // 100
    table = dd.from_pandas(frame, chunksize=100)
    # Filters leave a chunk without rows.
    table = table[table["g"] != 1]
    model.fit(table[list("abc")], table["y"])
    assert np.asarray(model.predict(table[list("abc")])).shape == (300,)


@by_model
def test_missing_and_odd_targets(name):
    model, y = new(name)
    bad = y.astype(float)
    bad[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(ch(X), ch(bad), np.where(np.arange(N) == 5, 0.0, 1.0))
    with pytest.raises(ValueError, match="y must be passed"):
        model.fit(ch(X), None)
    with pytest.raises(ValueError, match="y must have an entry for each row"):
        model.fit(ch(X), 3.0)
    for weight in (2.0, "a"):
        with pytest.raises(ValueError, match="sample_weight must have an entry"):
            model.fit(ch(X), ch(y), weight)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(ch(X), ch(y), np.zeros(N))


@by_numbers
def test_targets_that_are_no_numbers(name):
    model, _ = new(name)
    with pytest.raises(ValueError, match="Complex data"):
        model.fit(ch(X), ch(Y + 1j))
    with pytest.raises(ValueError, match="dim 3"):
        model.fit(ch(X), ch(np.zeros((N, 2, 2))))
    with pytest.raises(ValueError, match="could not convert"):
        model.fit(ch(X), ch(np.full(N, "a")))


@quiet
@by_labels
def test_labels_of_several_kinds(name):
    model, _ = new(name)
    labels = ["ab"[v] for v in C]
    assert model.fit(ch(X), labels).classes_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="missing"):
        model.fit(ch(X), [np.nan, *labels[1:]])

    def partly_text(part, block_info=None):
        first = block_info[0]["chunk-location"] == (0,)
        return part.astype(str) if first else part

    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(ch(X, 200), ch(C, 200).map_blocks(partly_text, dtype=object))
    with pytest.warns(DataConversionWarning):
        model.fit(ch(X), ch(C[:, None]))


@by_labels
def test_labels_that_change_from_pass_to_pass(name):
    model, _ = new(name)
    calls = []

    def changing(part):
        calls.append(1)
        return part + 5 * (len(calls) > 12)

    y = ch(C).map_blocks(changing, meta=np.empty(0, int))
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match="the same each time"),
    ):
        model.fit(ch(X), y)


def test_rare_class_that_the_unit_does_not_see(monkeypatch):
    monkeypatch.setattr("skbounds.smp._logistic_cv._UNIT_ROWS", 200)
    y = C.copy()
    y[np.setdiff1d(np.arange(N), draw_rows(Chunks(ch(X)), 0, 201))[0]] = 2
    model = SMPLogisticRegressionCV(Cs=3, class_weight={0: 1.0, 1: 1.0, 2: 5.0})
    assert model.fit(ch(X), ch(y)).classes_.tolist() == [0, 1, 2]


def test_exactly_as_many_rows_as_the_unit_is_found_from(monkeypatch):
    monkeypatch.setattr("skbounds.smp._logistic_cv._UNIT_ROWS", N)
    weight = RNG.integers(1, 30, N) * np.where(np.abs(X[:, 1]) > 2, 50.0, 1.0)
    there = SMPLogisticRegressionCV(method="one-step").fit(ch(X), ch(C), weight)
    here = SMPLogisticRegressionCV(method="one-step").fit(X, C, weight)
    np.testing.assert_allclose(there.Cs_, here.Cs_)


def test_samples_are_drawn_by_weight():
    weight = np.where(np.arange(N) < 100, 9.0, 1.0)
    drawn, trials = np.zeros(N), np.zeros(N)
    for seed in range(200):
        numbers = draw_rows(Chunks(ch(X), weight=weight), seed, 40)
        assert len(np.unique(numbers)) == 40
        drawn[numbers] += 1.0 / 200
    rng = np.random.default_rng(1)
    for _ in range(2000):
        # One by one, without replacement.
        trials[rng.choice(N, 40, replace=False, p=weight / weight.sum())] += 1.0 / 2000
    # About 30 of 40 are heavy, give or take 2.7; four standard errors of the mean.
    assert abs(drawn[:100].sum() - trials[:100].sum()) < 4 * 2.7 / np.sqrt(200)


def test_predictions_are_of_the_model_as_it_was():
    model = RidgeSMP().fit(X, Y)
    lazy, known = model.predict(ch(X)), model.predict(X)
    model.fit(X, -Y)
    np.testing.assert_allclose(lazy, known)


@pytest.mark.parametrize("model", [GaussianSMP(), PoissonSMP(), MultinomialSMP()])
def test_densities_take_dense_rows(model):
    rows = np.abs(X.round())
    rows = rows if isinstance(model, GaussianSMP) else rows[:, :1]
    with pytest.raises(TypeError, match="Sparse data"):
        model.fit(ch(rows).map_blocks(sp.csr_matrix))


def test_categories_of_several_kinds():
    values = C.astype(object)[:, None]
    values[3, 0] = None
    with pytest.raises(ValueError, match="one kind"):
        MultinomialSMP().fit(ch(values))
    mixed = C.astype(object)
    mixed[:130] = [str(v) for v in mixed[:130]]
    with pytest.raises(ValueError, match="several kinds"):
        MultinomialSMP().fit(ch(mixed))


@quiet
def test_points_measured_again_are_no_copies():
    rng = np.random.default_rng(0)
    points = rng.uniform(-2, 2, size=(12, 2))
    rows = points[rng.integers(0, 12, 6000)]
    y = 4 / (1 + np.exp(-3 * np.sin(2 * rows[:, 0]))) + 0.5 * rng.normal(size=6000)
    truth = 4 / (1 + np.exp(-3 * np.sin(2 * points[:, 0])))
    model = EarlyStoppedKernelBoost(stopping="cv", max_rank=60, random_state=0)
    errors = [
        np.sqrt(np.mean((model.fit(*data).predict(points) - truth) ** 2))
        for data in ((ch(rows, 1500), ch(y, 1500)), (rows, y))
    ]
    assert errors[0] < 2 * errors[1]


@quiet
def test_warnings_of_weights():
    boost, _ = new("boost")
    with pytest.warns(UserWarning, match="sum to 4"):
        boost.fit(ch(X), ch(Y), np.full(N, 0.01))
    with pytest.warns(UserWarning, match="3 times on average"):
        boost.fit(ch(X), ch(Y), np.full(N, 3.0))
    y = C.copy()
    y[0] = 2
    with pytest.warns(UserWarning, match=r"fewer than two: \[2\]"):
        new("classes")[0].fit(ch(X), ch(y))


def test_names_of_columns():
    frame = pd.DataFrame(X, columns=[0, 1, 2])
    y = dd.from_pandas(pd.Series(Y), npartitions=3)
    model = RidgeSMP().fit(dd.from_pandas(frame, npartitions=3), y)
    assert not hasattr(model, "feature_names_in_")
    frame.columns = ["a", 1, 2]
    with pytest.raises(TypeError, match="string names"):
        RidgeSMP().fit(dd.from_pandas(frame, npartitions=3), y)


def test_what_is_a_collection():
    assert is_collection(ch(X)) and is_collection(dd.from_pandas(pd.Series(Y)))
    for other in (X, [1], dask.delayed(X), None):
        assert not is_collection(other)


def test_columns_in_chunks_of_unknown_rows():
    kept = ch(X)[:, 0] > -9
    y = da.from_array(np.column_stack([Y, -Y]), chunks=(130, 1))[kept]
    there = RidgeSMP().fit(da.from_array(X, chunks=(130, 1))[kept], y)
    here = RidgeSMP().fit(X, np.column_stack([Y, -Y]))
    np.testing.assert_allclose(there.coef_, here.coef_)


def test_a_failed_fit_leaves_what_was():
    model = RidgeSMP().fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(ch(np.where(X > 2, np.nan, X)), ch(Y))
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(NotFittedError):
        RidgeSMP().predict(ch(X))


@by_model
def test_no_warnings_of_numpy(name):
    model, y = new(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", DeprecationWarning)
        model.fit(ch(X), ch(y))
