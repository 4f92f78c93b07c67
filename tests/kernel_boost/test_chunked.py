"""Kernel boosting of collections of dask: what it would be in memory."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from dask_tools import chunked, two_processes
from scipy import linalg
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError

from kernel_boost.toy_chunks import FixedFactor
from skbounds import EarlyStoppedKernelBoost, KernelRidgeSMP
from skbounds.kernel_boost import _boost, _chunked
from skbounds.kernel_boost._folds import n_folds_used

da = pytest.importorskip("dask.array", reason="extra scale not installed")
dd = pytest.importorskip("dask.dataframe", reason="extra scale not installed")
pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")

N, D = 6000, 4
X, Y = make_friedman1(N, n_features=5, noise=1.0, random_state=0)
X = X[:, :D]
WEIGHT = np.random.default_rng(0).integers(0, 4, N).astype(float)
TEST = make_friedman1(500, n_features=5, noise=0.0, random_state=1)[0][:, :D]


def boost(**params):
    defaults = {"max_rank": 200, "gamma": 1.0, "relevance": None, "random_state": 0}
    return EarlyStoppedKernelBoost(**defaults | params)


def reference(model, y, weight, n_offset=1, folds=None):
    """Return the whole path by its definition, with the model's landmarks.

    Returns
    -------
    fit : callable
        ``fit(T, X)`` is the function after T steps at rows.
    curves : dict
        At the model's times: df, mean squared residuals, and errors without folds.
    """
    kernel, Z = model._kernel_, model.X_fit_
    L = linalg.cholesky(kernel(Z, Z), lower=True)
    features = lambda rows: linalg.solve_triangular(L, kernel(rows, Z).T, lower=True).T
    F, p = features(X), weight / weight.sum()
    alpha = model.step_size_
    y = y.reshape(len(y), -1)

    def path(p_own):
        """Return F coefficients after T steps on rows of these shares."""
        offset = p_own @ y / p_own.sum() * n_offset
        mu, V = linalg.eigh(F.T @ (F * p_own[:, None]))
        keep = mu > 1e-13 * mu.max()
        mu, V = mu[keep], V[:, keep]
        b = V.T @ (F.T @ (p_own[:, None] * (y - offset)))
        at = lambda T: V @ ((learnt(alpha * mu, T) / mu)[:, None] * b)
        return at, offset, mu

    at, offset, mu = path(p)
    times = model.stopping_path_["t"]
    df = np.array([learnt(alpha * mu, T).sum() for T in times])
    rss = np.array([p @ (y - offset - F @ at(T)) ** 2 for T in times])
    curves = {"df": df, "rss": rss}
    if folds is not None:
        total, errors = 0.0, np.zeros((len(times), y.shape[1]))
        for own in folds:
            out = np.zeros(len(y))
            out[own] = p[own]
            own_at, own_offset, _ = path(p - out)
            total += out.sum()
            for k, T in enumerate(times):
                errors[k] += 0.5 * out @ (y - own_offset - F @ own_at(T)) ** 2
        curves["errors"] = errors / total
    return lambda T, rows: features(rows) @ at(T) + offset, curves


def learnt(rates, T):
    """Return 1 - (1 - rate)^T."""
    with np.errstate(divide="ignore"):
        return -np.expm1(T * np.log1p(-np.minimum(rates, 1.0)))


def gcv(curves, n):
    used = curves["df"] + np.sqrt(curves["df"]) + 1.0
    value = curves["rss"] / (1.0 - used / n)[:, None] ** 2
    return np.where(curves["df"][:, None] <= 0.9 * n, value, np.inf)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["gcv", "cp", "theory", None])
def test_path_is_that_of_all_rows(rule, weighted):
    w = WEIGHT if weighted else np.ones(N)
    more = {"max_iter": 5000} if rule is None else {}
    model = boost(stopping=rule, **more).fit(
        chunked(X), chunked(Y), chunked(w) if weighted else None
    )
    fit, curves = reference(model, Y, w)
    np.testing.assert_allclose(model.predict(TEST), fit(model.n_iter_, TEST)[:, 0],
                               rtol=0, atol=1e-8)  # fmt: skip
    path = model.stopping_path_
    np.testing.assert_allclose(path["df"], curves["df"], rtol=1e-8)
    np.testing.assert_allclose(2.0 * path["train_loss"], curves["rss"][:, 0], rtol=1e-8)
    if rule == "gcv":
        values = gcv(curves, w.sum())[:, 0]
        np.testing.assert_allclose(path["criterion"], values, rtol=1e-8)
        assert values[path["t"] == model.n_iter_] <= values.min() * (1 + 1e-10)
    # What the landmarks miss of the trace.
    K = model._kernel_(X, model.X_fit_)
    L = linalg.cholesky(model._kernel_(model.X_fit_, model.X_fit_), lower=True)
    F = linalg.solve_triangular(L, K.T, lower=True)
    missing = (w / w.sum()) @ (1.0 - (F**2).sum(axis=0))
    assert model.residual_trace_ == pytest.approx(missing, rel=1e-6)
    at = X[model.landmark_indices_]
    np.testing.assert_array_equal(at, model.X_fit_)
    assert (w[model.landmark_indices_] > 0).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("by_value", [True, False])
def test_folds_are_left_out_exactly(intercept, by_value, monkeypatch):
    if not by_value:
        monkeypatch.setattr(_chunked, "are_copies", lambda *args: False)
    y = np.column_stack([Y, Y**2 / 30])
    model = boost(stopping="cv", fit_intercept=intercept).fit(chunked(X), chunked(y))
    seed = model._hash_seed(model_rng(model), 0)
    number = _chunked.fold_numbers(X, 0, seed, 5, by_value=by_value)
    used = n_folds_used(5, N, False)
    folds = [np.flatnonzero(number == k) for k in range(used)]
    fit, curves = reference(model, y, np.ones(N), float(intercept), folds)
    found = model.stopping_path_["criterion"]
    np.testing.assert_allclose(found, curves["errors"], rtol=1e-7)
    for k, T in enumerate(model.n_iter_):
        np.testing.assert_allclose(model.predict(TEST)[:, k], fit(T, TEST)[:, k],
                                   rtol=0, atol=1e-7)  # fmt: skip
    # As many in each, about.
    sizes = np.bincount(number, minlength=5)
    assert abs(sizes - N / 5).max() < 5 * np.sqrt(N / 5)


def model_rng(model):
    """Return a generator in the state in which folds were dealt out."""
    rng = model._rng()
    rng.integers(2**63)
    return Spawner(rng)


class Spawner:
    """Spawns as many generators as a fit has before its folds."""

    def __init__(self, rng):
        self.rng = rng

    def spawn(self, n):
        return self.rng.spawn(n)


@pytest.mark.parametrize("rule", ["auto", "cp", "discrepancy", "theory", "aicc"])
def test_same_landmarks_same_fit_as_in_memory(rule, monkeypatch):
    given = {"stopping": rule, "solver": "lowrank", "rank_gain_tol": 0.0,
             "rank_tol": 0.0}  # fmt: skip
    there = boost(**given).fit(chunked(X), chunked(Y))
    monkeypatch.setattr(_boost, "KernelFactor", FixedFactor(there.landmark_indices_))
    here = boost(**given).fit(X, Y)
    assert here.n_iter_ == there.n_iter_
    for name in ("df_", "noise_", "norm_", "critical_radius_", "residual_trace_",
                 "missing_df_", "step_size_", "intercept_"):  # fmt: skip
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-8), (
            name
        )
    np.testing.assert_allclose(there.predict(TEST), here.predict(TEST), rtol=1e-8)


@pytest.mark.parametrize("kind", ["auto", "ard", None, "array"])
def test_as_good_as_in_memory(kind):
    rows, y = make_friedman1(12_000, n_features=6, noise=1.0, random_state=3)
    test, truth = make_friedman1(2000, n_features=6, noise=0.0, random_state=4)
    noisy = truth + np.random.default_rng(0).normal(size=2000)
    if kind == "array":
        kind = [1.0, 1.0, 0.5, 0.3, 0.2, 0.0]
    error = lambda model: np.sqrt(np.mean((model.predict(test) - noisy) ** 2))
    ours, others = [], []
    for seed in range(3):
        model = EarlyStoppedKernelBoost(relevance=kind, max_rank=256, random_state=seed)
        ours.append(error(model.fit(chunked(rows, 2500), chunked(y, 2500))))
        others.append(error(model.fit(rows, y)))
    assert np.mean(ours) < 1.05 * np.mean(others)
    if kind is not None:
        assert model.relevance_ is not None


def test_scales_of_an_array_are_those_of_all_rows():
    rows = X * [1.0, 1e4, 1e-3, 1.0] + [0.0, 1e6, 0.0, 5.0]
    model = boost(relevance=[1.0, 2.0, 0.0, 0.5], gamma="auto")
    there, here = model.fit(chunked(rows), chunked(Y))._kernel_.scale, None
    here = (
        boost(relevance=[1.0, 2.0, 0.0, 0.5], gamma="auto").fit(rows, Y)._kernel_.scale
    )
    np.testing.assert_allclose(there.factor, here.factor, rtol=1e-9)
    np.testing.assert_array_equal(there.low, here.low)
    np.testing.assert_array_equal(there.high, here.high)


@pytest.mark.parametrize("rule", ["gcv", "cv"])
def test_division_into_chunks_does_not_count(rule):
    fits = [
        boost(stopping=rule).fit(chunked(X, size), chunked(Y, other))
        for size, other in [(1000, 1000), (577, 3000), (6000, 50)]
    ]
    for model in fits[1:]:
        np.testing.assert_array_equal(
            model.landmark_indices_, fits[0].landmark_indices_
        )
        assert model.n_iter_ == fits[0].n_iter_
        np.testing.assert_allclose(
            model.predict(TEST), fits[0].predict(TEST), rtol=1e-8
        )


def frames(size=1700):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"], frame["w"] = Y, WEIGHT
    return dd.from_pandas(frame, chunksize=size)


def test_dataframes():
    table = frames()
    # A filter leaves chunks of unknown sizes, of which some may be empty.
    table = table[table["w"] >= 0]
    model = boost().fit(table[list("abcd")], table["y"], sample_weight=table["w"])
    expected = boost().fit(chunked(X), chunked(Y), chunked(WEIGHT))
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
    assert model.feature_names_in_.tolist() == list("abcd")
    empty = table[(table["a"] < 0.5) | (table.index < 1700)]
    some = empty.compute()
    model = boost().fit(empty[list("abcd")], empty["y"])
    assert model._path_ and len(some) < N
    lazy = model.predict(table[list("abcd")])
    assert isinstance(lazy, da.Array)
    with pytest.raises(ValueError, match="feature names"):
        np.asarray(model.predict(table[list("bacd")]))
    known = model.predict(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_allclose(lazy, known, rtol=1e-9)


def test_targets_in_memory_and_several_of_them():
    y = np.column_stack([Y, -Y, np.sin(Y)])
    one = boost().fit(chunked(X), y, WEIGHT)
    other = boost().fit(chunked(X), chunked(y), chunked(WEIGHT))
    lazy = other.predict(chunked(TEST, 70))
    assert lazy.shape == (500, 3)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_allclose(one.predict(TEST), lazy, rtol=1e-9, atol=1e-9)


def test_sparse_chunks():
    rows = np.where(X > 0.6, X, 0.0)
    blocks = chunked(rows).map_blocks(sp.csr_matrix)
    there = boost().fit(blocks, chunked(Y))
    here = boost().fit(chunked(rows), chunked(Y))
    np.testing.assert_allclose(there.predict(TEST), here.predict(TEST), rtol=1e-6)


def test_small_collections_are_fitted_in_memory():
    few = slice(0, 700)
    for kind in (None, "auto"):
        given = {"relevance": kind, "gamma": "auto"}
        there = boost(**given).fit(chunked(X[few], 300), chunked(Y[few], 300))
        here = boost(**given).fit(X[few], Y[few])
        np.testing.assert_array_equal(there.predict(TEST), here.predict(TEST))
    table = frames().loc[:699]
    there = boost().fit(table[list("abcd")], table["y"], table["w"])
    here = boost().fit(pd.DataFrame(X[few], columns=list("abcd")), Y[few], WEIGHT[few])
    assert there.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)


def test_validation_rows():
    truth = make_friedman1(500, n_features=5, noise=0.0, random_state=1)[1]
    model = boost(stopping="validation").fit(
        chunked(X), chunked(Y), X_val=TEST, y_val=truth
    )
    errors = model.stopping_path_["criterion"]
    k = int(np.flatnonzero(model.stopping_path_["t"] == model.n_iter_)[0])
    assert errors[k] == pytest.approx(0.5 * np.mean((model.predict(TEST) - truth) ** 2))


BAD = [
    ({"loss": "huber"}, {}, "loss is made of sums"),
    ({"intervals": True}, {}, "intervals keep a number"),
    ({"stopping": "loo"}, {}, "'loo' needs all"),
    ({"kernel": "precomputed"}, {}, "kernel is a function"),
    ({"solver": "eigh"}, {}, "solver is 'lowrank'"),
    ({"stopping": "cv"}, {"groups": np.zeros(N)}, "groups are for rows in memory"),
    ({"stopping": "cv", "cv": [(np.arange(9), np.arange(9))]}, {}, "number of folds"),
    ({"stopping": "validation"}, {}, "give X_val"),
    ({}, {"sample_weight": np.full(N, -1.0)}, "none of them negative"),
    ({}, {"sample_weight": np.zeros(N)}, "at least one non-zero"),
    ({}, {"sample_weight": np.ones(N - 1)}, "inconsistent numbers"),
    ({"relevance": [1.0]}, {}, "relevance must have a number for each"),
    ({"kernel": "sigmoid", "coef0": -1.0}, {}, "positive semidefinite"),
]


@pytest.mark.parametrize(("params", "given", "words"), BAD)
def test_what_is_refused(params, given, words):
    model = boost(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(chunked(X), chunked(Y), **given)
    with pytest.raises(NotFittedError):
        model.predict(TEST)


def test_errors_of_chunks_are_their_own():
    bad = X.copy()
    bad[4000, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN") as caught:
        boost().fit(chunked(bad), chunked(Y))
    assert caught.value.__notes__ == ["In chunk 2 of the collection."]

    def fail(block):
        if len(block) < 1700:
            raise ZeroDivisionError("what the user's code said")
        return block

    rows = chunked(X).map_blocks(fail, meta=np.empty((0, 0)))
    with pytest.raises(ZeroDivisionError, match="what the user's code said"):
        boost().fit(rows, chunked(Y))
    with pytest.raises(ValueError, match="chunks"):
        boost().fit(frames()[list("abcd")], frames(1000)["y"])
    with pytest.raises(ValueError, match="collection of dask too"):
        boost().fit(frames()[list("abcd")], Y)
    with pytest.raises(ValueError, match="inconsistent"):
        boost().fit(chunked(X), chunked(Y[:-1]))
    y = Y.copy()
    y[7] = np.inf
    with pytest.raises(ValueError, match="Input y contains infinity"):
        boost().fit(chunked(X), chunked(y))


def test_predictions_are_lazy_and_refuse_other_rows():
    calls = []

    def count(block):
        calls.append(len(block))
        return block

    model = boost().fit(chunked(X), chunked(Y))
    lazy = model.predict(chunked(TEST, 100).map_blocks(count, meta=np.empty((0, 0))))
    assert not calls
    np.testing.assert_allclose(lazy.compute(), model.predict(TEST), rtol=1e-9)
    assert calls == [100] * 5
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(chunked(TEST[:, :3]))
    with pytest.raises(NotFittedError):
        boost().predict(chunked(TEST))


def test_other_estimators_say_that_they_compute():
    with pytest.warns(UserWarning, match="into arrays in memory"):
        KernelRidgeSMP().fit(chunked(X[:200]), chunked(Y[:200]))


def test_a_worker_that_is_killed_changes_nothing():
    expected = boost().fit(chunked(X, 300), chunked(Y, 300))
    with two_processes() as client:
        slow = chunked(X, 300).map_blocks(_slowly, meta=np.empty((0, 0)))
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.6, os.kill, (victim, signal.SIGKILL))
        timer.start()
        found = boost().fit(slow, chunked(Y, 300))
        timer.join()
        client.wait_for_workers(2)
        assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    assert found.n_iter_ == expected.n_iter_


def _slowly(block):
    import time

    time.sleep(0.1)
    return block
