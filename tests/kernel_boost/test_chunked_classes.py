"""Kernel boosting of classes in collections of dask: what it would be in memory."""

import numpy as np
import pytest
from dask_tools import chunked
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from kernel_boost.toy_chunks import FixedFactor
from skbounds import EarlyStoppedKernelBoostClassifier
from skbounds.kernel_boost import _boost, _chunked
from skbounds.kernel_boost._folds import Folds, n_folds_used

da = pytest.importorskip("dask.array", reason="extra scale not installed")
dd = pytest.importorskip("dask.dataframe", reason="extra scale not installed")
pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")

N = 6500
X, Y = make_moons(N, noise=0.35, random_state=0)
Y3 = np.array(["a", "b", "c"])[Y + (X[:, 0] > 1.0)]
WEIGHT = np.random.default_rng(0).integers(0, 4, N).astype(float)
TEST, TRUTH = make_moons(800, noise=0.35, random_state=1)


def boost(**params):
    defaults = {"max_rank": 100, "gamma": 1.0, "random_state": 0, "solver": "lowrank",
                "rank_tol": 0.0, "rank_gain_tol": 0.0}  # fmt: skip
    return EarlyStoppedKernelBoostClassifier(**defaults | params)


def both(monkeypatch, y, weight=None, **params):
    """Return fits in chunks and in memory, with the same landmarks and folds."""
    plans = []
    plain = _chunked.Plan.of_chunk

    def spy(self, *args):
        plans.append(self)
        return plain(self, *args)

    monkeypatch.setattr(_chunked.Plan, "of_chunk", spy)
    there = boost(**params).fit(
        chunked(X, 1300), chunked(y, 1300),
        None if weight is None else chunked(weight, 1300),
    )  # fmt: skip
    plan = plans[0]

    def folds(self, rows, targets, w, kept, rng, *args, codes=None):
        number = _chunked.fold_numbers(
            X, 0, plan.seed, plan.n_folds, by_value=plan.by_value
        )[kept]
        own = [np.flatnonzero(number == k) for k in range(plan.n_used)]
        return Folds(own, [w[r] for r in own], float(len(kept)))

    model = boost(**params)
    monkeypatch.setattr(type(model), "_make_folds", folds)
    pivots = there.landmark_indices_
    if weight is not None:
        # Numbers among those of positive weight.
        pivots = np.searchsorted(np.flatnonzero(weight), pivots)
    monkeypatch.setattr(_boost, "KernelFactor", FixedFactor(pivots))
    return there, model.fit(X, y, weight)


CASES = {
    "two": (Y, None, {}),
    "weights": (Y, WEIGHT, {}),
    "three": (Y3, None, {"max_rank": 60}),
    "three, weights": (Y3, WEIGHT, {"max_rank": 60, "class_weight": "balanced"}),
    "balanced": (Y, None, {"class_weight": {0: 1.0, 1: 3.0}}),
    "no intercept": (Y, None, {"fit_intercept": False}),
    "aic": (Y, None, {"stopping": "aic"}),
    "theory": (Y, WEIGHT, {"stopping": "theory"}),
    "exponential": (Y, None, {"loss": "exponential"}),
    "exponential, weights": (Y, WEIGHT, {"loss": "exponential", "stopping": "aic"}),
    "exponential, three": (Y3, WEIGHT, {"loss": "exponential", "max_rank": 60}),
    "exponential, theory": (Y, None, {"loss": "exponential", "stopping": "theory"}),
    "fixed": (Y3, None, {"stopping": None, "max_iter": 300, "max_rank": 60}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_same_landmarks_same_fit_as_in_memory(case, monkeypatch):
    y, weight, params = CASES[case]
    there, here = both(monkeypatch, y, weight, **params)
    assert there.n_iter_ == here.n_iter_
    for name in ("df_", "norm_", "step_size_", "critical_radius_", "noise_"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-8), (
            name
        )
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-12)
    np.testing.assert_allclose(
        there.predict_proba(TEST), here.predict_proba(TEST), rtol=0, atol=1e-8
    )
    for name in there.stopping_path_:
        one, other = there.stopping_path_[name], here.stopping_path_[name]
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-8, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_as_good_as_in_memory():
    rows, y = make_moons(9000, noise=0.35, random_state=2)
    ours, others = [], []
    for seed in range(3):
        model = EarlyStoppedKernelBoostClassifier(max_rank=128, random_state=seed)
        model.fit(chunked(rows, 2000), chunked(y, 2000))
        ours.append(log_loss(TRUTH, model.predict_proba(TEST)))
        model.fit(rows, y)
        others.append(log_loss(TRUTH, model.predict_proba(TEST)))
    assert np.mean(ours) < 1.05 * np.mean(others)


def test_division_into_chunks_does_not_count():
    fits = [
        boost(max_rank=40).fit(chunked(X, size), chunked(Y, size))
        for size in (6500, 1000, 413)
    ]
    for model in fits[1:]:
        assert model.n_iter_ == fits[0].n_iter_
        np.testing.assert_allclose(
            model.predict_proba(TEST), fits[0].predict_proba(TEST), rtol=1e-8
        )


def test_dataframes_and_lazy_predictions():
    frame = pd.DataFrame(X, columns=["u", "v"])
    frame["kind"] = pd.Categorical(Y3)
    table = dd.from_pandas(frame, chunksize=1300)
    model = boost(max_rank=40).fit(table[["u", "v"]], table["kind"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.feature_names_in_.tolist() == ["u", "v"]
    known = boost(max_rank=40).fit(chunked(X, 1300), chunked(Y3, 1300))
    np.testing.assert_allclose(model.dual_coef_, known.dual_coef_, rtol=1e-10)
    rows = pd.DataFrame(TEST, columns=["u", "v"])
    lazy = dd.from_pandas(rows, chunksize=300)
    for name in ("predict_proba", "decision_function", "predict"):
        found = getattr(model, name)(lazy)
        assert isinstance(found, da.Array)
        expected = getattr(model, name)(rows)
        assert found.dtype == expected.dtype
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-9)
        else:
            np.testing.assert_array_equal(found.compute(), expected)
    two = boost(max_rank=40).fit(chunked(X), chunked(Y))
    assert two.decision_function(chunked(TEST, 90)).shape == (800,)


def test_small_collections_are_fitted_in_memory():
    few = slice(0, 300)
    there = boost().fit(chunked(X[few], 100), chunked(Y3[few], 100))
    here = boost().fit(X[few], Y3[few])
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)


def test_validation_rows():
    model = boost(max_rank=40, stopping="validation").fit(
        chunked(X), chunked(Y), X_val=TEST, y_val=TRUTH
    )
    k = int(np.flatnonzero(model.stopping_path_["t"] == model.n_iter_)[0])
    assert model.stopping_path_["criterion"][k] == pytest.approx(
        log_loss(TRUTH, model.predict_proba(TEST)), rel=1e-9
    )


BAD = [
    ({"stopping": "alo"}, Y, {}, "leaves out no single rows"),
    ({"step_size": 0.1}, Y, {}, "step_size is for rows in memory"),
    ({"average": True}, Y, {}, "average is for rows in memory"),
    ({"solver": "gd"}, Y, {}, "solver is 'lowrank' then"),
    ({"stopping": "validation"}, Y, {}, "give X_val"),
    ({}, Y, {"groups": np.zeros(N)}, "groups are for rows in memory"),
    ({}, np.zeros(N), {}, "only one class"),
    ({}, X[:, 0], {}, "Unknown label type"),
    ({}, np.where(Y, Y, np.nan), {}, "NaN"),
    ({"class_weight": {0: -1.0}}, Y, {}, "class_weight must give"),
]


@pytest.mark.parametrize(("params", "y", "given", "words"), BAD)
def test_what_is_refused(params, y, given, words):
    model = boost(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(chunked(X), chunked(y), **given)
    assert not hasattr(model, "classes_")


def test_rare_folds_and_number_of_folds():
    assert n_folds_used(5, N, False) == 4
    model = boost(max_rank=40, cv=3).fit(chunked(X), chunked(Y))
    assert model.stopping_ == "cv"
