"""Sample minmax predictors of dask collections: what they are in memory."""

import dask_tools
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skbounds import (
    GaussianSMP,
    MultinomialSMP,
    PoissonSMP,
    RidgeSMP,
    SMPLogisticRegression,
    SMPLogisticRegressionCV,
)
from skbounds._collections import Chunks
from skbounds.smp._base_fit import fit_base
from skbounds.smp._design import Design
from skbounds.smp._logistic_chunks import ChunkedData, fit_chunks, read_chunks

da = pytest.importorskip("dask.array", reason="extra scale not installed")
dd = pytest.importorskip("dask.dataframe", reason="extra scale not installed")
pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")

RNG = np.random.default_rng(0)
N, D = 400, 5
X = RNG.normal(size=(N, D)) * [1.0, 30.0, 1e-3, 1.0, 2.0] + [0.0, 1e4, 0.0, -3.0, 0.0]
Y = X @ [1.0, 0.1, 500.0, 0.0, -0.5] + RNG.normal(size=N)
WEIGHT = RNG.integers(0, 3, N).astype(float)
TEST = X[:20] + 0.1


def chunked(values, size=130):
    return dask_tools.chunked(values, size)


def numbers_of(model):
    """Return all fitted numbers but those that depend on signs of eigenvectors."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            if (
                isinstance(value, (float, int, np.ndarray))
                and name != "feature_names_in_"
            ):
                found[name] = value
    return found


def same(there, here, rtol=1e-8):
    one, other = numbers_of(there), numbers_of(here)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, atol=1e-9,
                                   err_msg=name)  # fmt: skip


RIDGES = {
    "default": {},
    "loo": {"alpha": "loo"},
    "theory": {"alpha": "theory", "fit_intercept": False, "sigma": 1.0},
    "none": {"alpha": 0},
    "joint": {"alpha": 0, "sigma": "joint"},
    "bayes": {"alpha": 3.0, "width": "bayes"},
    "no intercept": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "sigma": 2.0},
}


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", RIDGES)
def test_ridge_is_what_it_is_in_memory(case, weighted, outputs):
    params = RIDGES[case]
    y = Y if outputs == 1 else np.column_stack([Y, np.sin(Y)])
    weight = WEIGHT if weighted else None
    here = RidgeSMP(**params).fit(X, y, weight)
    there = RidgeSMP(**params).fit(
        chunked(X), chunked(y), None if weight is None else chunked(weight)
    )
    # Of columns with offsets of 1e4 the rows' own factorisation has more digits.
    rtol = 1e-6 if params.get("alpha") in ("theory", 0) else 1e-7
    same(there, here, rtol)
    np.testing.assert_allclose(
        there.predict_quantiles(TEST), here.predict_quantiles(TEST), rtol=rtol
    )
    if params.get("sigma") == "joint":
        return
    for name in (
        "excess_risk_",
        "excess_risk_penalized_",
        "effective_dimension_ratio_",
    ):
        np.testing.assert_allclose(
            getattr(there, name), getattr(here, name), rtol=1e-5, err_msg=name
        )
    np.testing.assert_allclose(
        there.excess_risk_interval(), here.excess_risk_interval(), rtol=1e-5
    )


def test_ridge_of_sparse_chunks_and_frames():
    rows = np.where(np.abs(X - X.mean(axis=0)) > X.std(axis=0), 1.0, 0.0) * [
        1,
        2,
        3,
        4,
        5,
    ]
    here = RidgeSMP().fit(sp.csr_array(rows), Y)
    there = RidgeSMP().fit(chunked(rows).map_blocks(sp.csr_matrix), chunked(Y))
    same(there, here, 1e-7)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["y"] = Y
    table = dd.from_pandas(frame, chunksize=90)
    table = table[table["b"] < 1e9]
    model = RidgeSMP().fit(table[list("abcde")], table["y"])
    same(model, RidgeSMP().fit(frame[list("abcde")], Y), 1e-7)
    assert model.feature_names_in_.tolist() == list("abcde")
    lazy = model.predict(table[list("abcde")])
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy, model.predict(frame[list("abcde")]), rtol=1e-10)


def test_ridge_predictions_are_lazy():
    model = RidgeSMP().fit(chunked(X), chunked(np.column_stack([Y, -Y])))
    rows = chunked(TEST, 7)
    mean, std = model.predict(rows, return_std=True)
    assert isinstance(mean, da.Array) and mean.shape == (20, 2)
    known = model.predict(TEST, return_std=True)
    np.testing.assert_allclose(mean.compute(), known[0], rtol=1e-10)
    np.testing.assert_allclose(std.compute(), known[1], rtol=1e-10)
    interval = model.predict_interval(rows, 0.8)
    np.testing.assert_allclose(interval, model.predict_interval(TEST, 0.8), rtol=1e-10)
    np.testing.assert_allclose(
        model.log_normalizer(rows), model.log_normalizer(TEST), rtol=1e-9
    )
    with pytest.raises(NotFittedError):
        RidgeSMP().predict(rows)


BAD = [
    ({"alpha": 0}, np.column_stack([X, X[:, 0]]), Y, "full column rank"),
    ({}, np.where(X > X[:, 1].max() - 1e-9, np.inf, X), Y, "infinity"),
    ({}, X, np.where(Y > Y.max() - 1e-9, np.nan, Y), "NaN"),
    ({"alpha": 0, "sigma": "joint"}, X, np.zeros(N), "needs residuals"),
    ({"alpha": 1.0, "sigma": "joint"}, X, Y, "set alpha=0"),
]


@pytest.mark.parametrize(("params", "rows", "y", "words"), BAD)
def test_ridge_refuses(params, rows, y, words):
    model = RidgeSMP(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(chunked(rows), chunked(y))
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="at least one non-zero"):
        RidgeSMP().fit(chunked(X), chunked(Y), np.zeros(N))


def test_ridge_warns_of_constant_targets():
    with pytest.warns(UserWarning, match="noise scale is zero"):
        there = RidgeSMP().fit(chunked(X), chunked(np.full(N, 3.0)))
    with pytest.warns(UserWarning, match="noise scale is zero"):
        here = RidgeSMP().fit(X, np.full(N, 3.0))
    np.testing.assert_allclose(there.sigma_, here.sigma_)


@pytest.mark.parametrize("variant", ["smp", "minimax", "mle"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian(variant, weighted):
    weight = WEIGHT if weighted else None
    here = GaussianSMP(variant=variant).fit(X, sample_weight=weight)
    there = GaussianSMP(variant=variant).fit(
        chunked(X), sample_weight=None if weight is None else chunked(weight)
    )
    same(there, here, 1e-12)
    lazy = there.score_samples(chunked(TEST, 6))
    np.testing.assert_allclose(lazy, here.score_samples(TEST), rtol=1e-8)


COUNTS = RNG.poisson(4.0, N)
KINDS = np.array(["b", "a", "c"])[RNG.integers(0, 3, N)]


@pytest.mark.parametrize("form", ["vector", "column", "frame", "series"])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_and_categories(form, weighted):
    for values, make in ((COUNTS, PoissonSMP), (KINDS, MultinomialSMP)):
        weight = WEIGHT if weighted else None
        here = make().fit(values[:, None], sample_weight=weight)
        table = dd.from_pandas(pd.DataFrame({"k": values, "w": WEIGHT}), chunksize=90)
        forms = {
            "vector": lambda v=values: chunked(v),
            "column": lambda v=values: chunked(v[:, None]),
            "frame": lambda t=table: t[["k"]],
            "series": lambda t=table: t["k"],
        }
        if weighted:
            weight = table["w"] if form in ("frame", "series") else chunked(WEIGHT)
        there = make().fit(forms[form](), sample_weight=weight)
        known = numbers_of(here)
        for name, value in known.items():
            np.testing.assert_allclose(getattr(there, name), value, rtol=1e-12)
        if make is MultinomialSMP:
            assert there.categories_[0].tolist() == ["a", "b", "c"]
        lazy = there.score_samples(forms[form]())
        expected = here.score_samples(values[:, None])
        np.testing.assert_allclose(np.asarray(lazy), expected, rtol=1e-12)


def test_densities_refuse():
    with pytest.raises(ValueError, match="non-negative integers") as caught:
        PoissonSMP().fit(chunked(np.where(np.arange(N) == 300, -1, COUNTS)))
    assert caught.value.__notes__ == ["In chunk 2 of the collection."]
    with pytest.raises(ValueError, match="one variable"):
        PoissonSMP().fit(chunked(X))
    with pytest.raises(ValueError, match="unknown categories"):
        MultinomialSMP(categories=[["a", "b"]]).fit(chunked(KINDS))
    fixed = MultinomialSMP(categories=[["a", "b", "c", "d"]]).fit(chunked(KINDS))
    assert fixed.bound_valid_ and len(fixed.proba_) == 4


# --------------------------------------------------------------- logistic regression

SCALED = RNG.normal(size=(500, 4)) * [1, 30, 0.01, 1] + [0, 1e3, 0, 1]
BINARY = (SCALED @ [1, 0.03, 50, 0] - 30 + 2 * RNG.normal(size=500) > 0).astype(int)
SEVERAL = np.array(["u", "v", "w"])[BINARY + (SCALED[:, 0] > 1)]
COUNT = RNG.integers(0, 3, 500).astype(float)
LOGISTICS = {
    "default": {},
    "theory": {"C": "theory"},
    "no intercept": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 2.0},
    "balanced": {"class_weight": "balanced"},
    "plug-in": {"virtual_weight": 0},
    "hardly a penalty": {"C": 1e30},
}


def logistic(**params):
    return SMPLogisticRegression(method="one-step", **params)


@pytest.mark.filterwarnings("ignore:The bound")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", [BINARY, SEVERAL], ids=["two", "three"])
@pytest.mark.parametrize("case", LOGISTICS)
def test_logistic_is_what_it_is_in_memory(case, y, weighted):
    weight = COUNT if weighted else None
    here = logistic(**LOGISTICS[case]).fit(SCALED, y, weight)
    there = logistic(**LOGISTICS[case]).fit(chunked(SCALED), chunked(y), weight)
    assert there.classes_.tolist() == here.classes_.tolist()
    assert there.bound_valid_ == here.bound_valid_
    names = ["coef_", "intercept_", "C_", "lambda_", "loo_log_loss_",
             "log_normalizer_mean_", "excess_risk_", "excess_risk_penalized_",
             "effective_dimension_ratio_"]  # fmt: skip
    for name in names:
        np.testing.assert_allclose(
            getattr(there, name), getattr(here, name), rtol=1e-8, atol=1e-10,
            err_msg=name,
        )  # fmt: skip
    np.testing.assert_allclose(there.theory_bound(1.0), here.theory_bound(1.0))
    np.testing.assert_allclose(
        there.excess_risk_interval(), here.excess_risk_interval(), rtol=1e-6
    )
    np.testing.assert_allclose(
        there.predict_proba(SCALED), here.predict_proba(SCALED), rtol=0, atol=1e-10
    )


def test_logistic_of_separated_classes():
    y = (SCALED[:, 0] > 0).astype(int)
    for C in (1.0, 1e6):
        here = logistic(C=C).fit(SCALED, y)
        there = logistic(C=C).fit(chunked(SCALED), chunked(y))
        np.testing.assert_allclose(
            there.predict_proba(SCALED), here.predict_proba(SCALED), atol=1e-7
        )
        assert np.isnan(there.excess_risk_) and np.isnan(here.excess_risk_)
        assert there.loo_log_loss_ == pytest.approx(here.loo_log_loss_, rel=1e-6)


def test_logistic_of_sparse_chunks_and_frames():
    rows = np.where(np.abs(SCALED - SCALED.mean(axis=0)) > SCALED.std(axis=0), 1.0, 0.0)
    here = logistic().fit(sp.csr_array(rows), BINARY)
    there = logistic().fit(chunked(rows).map_blocks(sp.csr_matrix), chunked(BINARY))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-8)
    assert there.loo_log_loss_ == pytest.approx(here.loo_log_loss_, rel=1e-8)
    frame = pd.DataFrame(SCALED, columns=list("abcd"))
    frame["y"] = pd.Categorical(SEVERAL)
    table = dd.from_pandas(frame, chunksize=90)
    table = table[(table["d"] > 0) | (table.index > 89)]
    model = logistic().fit(table[list("abcd")], table["y"])
    kept = table.compute()
    known = logistic().fit(kept[list("abcd")], kept["y"])
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-7)
    assert model.feature_names_in_.tolist() == list("abcd")
    for name in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        lazy = getattr(model, name)(table[list("abcd")])
        assert isinstance(lazy, da.Array)
        expected = getattr(model, name)(kept[list("abcd")])
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9)
        else:
            assert lazy.compute().tolist() == expected.tolist()
    two = logistic().fit(chunked(SCALED), chunked(BINARY))
    assert two.predict_interval(chunked(SCALED, 70)).shape == (500, 2)


@pytest.mark.parametrize(
    ("params", "y", "words"),
    [
        ({"method": "exact"}, BINARY, "method must be 'one-step'"),
        ({"C": "loo"}, BINARY, "C a finite number"),
        ({"C": np.inf}, BINARY, "C a finite number"),
        ({}, np.zeros(500), "only one class"),
        ({}, SCALED[:, 0], "Unknown label type"),
        ({"class_weight": {0: 0.0}}, BINARY, "class_weight must give"),
    ],
)
def test_logistic_refuses(params, y, words):
    model = SMPLogisticRegression(**{"method": "one-step", **params})
    with pytest.raises(ValueError, match=words):
        model.fit(chunked(SCALED), chunked(y))
    assert not hasattr(model, "classes_")


def test_logistic_in_chunks_of_any_size():
    fits = [logistic().fit(chunked(SCALED, n), chunked(BINARY, n)) for n in (500, 33)]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        logistic(max_iter=1).fit(chunked(SCALED), chunked(BINARY))


POOLS = {
    "default": {},
    "given penalties": {"Cs": [1e-3, 0.1, 10.0]},
    "intercept": {"calibrate": "intercept"},
    "none": {"calibrate": "none"},
    "best": {"aggregation": "best"},
    "no intercept": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True},
    "balanced": {"class_weight": "balanced"},
    "weights": {"virtual_weights": [0.0, 1.0]},
    "slow": {"learning_rate": 0.1},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", [BINARY, SEVERAL], ids=["two", "three"])
@pytest.mark.parametrize("case", POOLS)
def test_pool_is_what_it_is_in_memory(case, y, weighted):
    weight = COUNT if weighted else None
    params = {"method": "one-step", "Cs": 4, **POOLS[case]}
    here = SMPLogisticRegressionCV(**params).fit(SCALED, y, weight)
    there = SMPLogisticRegressionCV(**params).fit(chunked(SCALED), chunked(y), weight)
    for name in ("loo_log_loss_", "loo_log_loss_path_", "weights_", "shifted_weights_",
                 "null_weights_", "_shifts_", "C_", "Cs_", "coef_", "intercept_",
                 "virtual_weight_", "virtual_weight_mean_"):  # fmt: skip
        np.testing.assert_allclose(
            getattr(there, name), getattr(here, name), rtol=1e-7, atol=1e-8,
            err_msg=name,
        )  # fmt: skip
    np.testing.assert_allclose(
        there.predict_proba(SCALED), here.predict_proba(SCALED), rtol=0, atol=1e-8
    )


def test_pool_of_more_rows_than_the_unit_is_found_from(monkeypatch):
    monkeypatch.setattr("skbounds.smp._logistic_cv._UNIT_ROWS", 200)
    here = SMPLogisticRegressionCV(method="one-step").fit(SCALED, BINARY)
    there = SMPLogisticRegressionCV().fit(chunked(SCALED), chunked(BINARY))
    assert there.method_ == "one-step"
    np.testing.assert_allclose(there.Cs_, here.Cs_, rtol=0.3)
    gaps = np.abs(there.predict_proba(SCALED) - here.predict_proba(SCALED))
    assert gaps.max() < 0.02
    lazy = there.predict_proba(chunked(SCALED, 60))
    np.testing.assert_allclose(lazy, there.predict_proba(SCALED), rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "y", "words"),
    [
        ({"method": "exact"}, BINARY, "method must be"),
        ({"loo": "exact"}, BINARY, "and loo too"),
        ({"loo": "folds"}, BINARY, "and loo too"),
        ({}, np.zeros(500), "only one class"),
        ({"Cs": [-1.0]}, BINARY, "Cs must hold positive"),
    ],
)
def test_pool_refuses(params, y, words):
    model = SMPLogisticRegressionCV(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(chunked(SCALED), chunked(y))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_a_newton_step_is_a_pass(n_classes, far, monkeypatch):
    """And more from a start that whole steps go too far from."""
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    cuts = [0.0, 2.0][: n_classes - 1]
    codes = np.digitize(rows @ [1.0, 2.0, 0.0, 1.0, 0.0] + RNG.normal(size=N), cuts)
    penalty, names, sums = np.full(D, 0.1), [], ChunkedData.sums

    def counted(self, function, *shared):
        names.append(function.__name__)
        return sums(self, function, *shared)

    make = lambda mean, classes, factors: Design(D)
    data = read_chunks(
        Chunks(chunked(rows), chunked(codes), target="labels"), make, None
    )
    start = np.full((n_classes - 1, D), -far)
    monkeypatch.setattr(ChunkedData, "sums", counted)
    there, _ = fit_chunks(data, penalty, start)
    here = fit_base(rows, codes, np.ones(N), penalty, n_classes, theta=start)
    np.testing.assert_allclose(there.theta, here.theta, rtol=1e-9)
    assert there.n_iter == here.n_iter
    steps = names.count("_evaluate") - 1
    if far:
        assert there.n_iter < steps <= 2 * there.n_iter
        assert "_loss" in names
    else:
        assert names == ["_evaluate"] * (1 + there.n_iter)


def test_a_large_hessian_is_told(monkeypatch):
    monkeypatch.setattr("skbounds.smp._base_fit._LARGE_SIDE", 4)
    model = SMPLogisticRegression(method="one-step")
    with pytest.warns(UserWarning, match="The Hessian has 6 rows"):
        model.fit(chunked(X), chunked((Y > np.median(Y)).astype(int)))
