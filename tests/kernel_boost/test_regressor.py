"""The regressor: solvers that agree, invariances, attributes and scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernel_boost.toy import KERNELS, at_the_last_step, gram, make, regression
from skbounds.kernel_boost import EarlyStoppedKernelBoost

SOLVERS = ["eigh", "lowrank", "gd"]
# A factor that grows until nothing is left.
WHOLE = {"rank_tol": 0.0, "rank_gain_tol": 0.0, "random_state": 0}

every_solver = pytest.mark.parametrize("solver", SOLVERS)


def fixed(T, kernel="laplacian", **options):
    """Exactly T steps."""
    return make("squared", kernel, stopping=None, max_iter=T, **options)


# ------------------------------------------------------------------ solvers that agree


@pytest.mark.parametrize("kernel", ["laplacian", "sobolev", "rbf"])
@pytest.mark.parametrize("T", [1, 2, 30, 1000, 10**6])
@pytest.mark.parametrize("average", [False, True])
def test_full_rank_is_exact(kernel, T, average):
    """A factor with as many columns as rows gives what all eigenvectors give."""
    X, y = regression(0, 40)
    X_new, _ = regression(1, 9)
    exact = fixed(T, kernel, average=average, solver="eigh").fit(X, y)
    whole = fixed(
        T, kernel, average=average, solver="lowrank", max_rank=40, **WHOLE,
        step_size=exact.step_size_,
    ).fit(X, y)  # fmt: skip
    if kernel != "rbf":
        assert whole.rank_ == 40
        assert_allclose(whole.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
    # What the factor lacks is bounded by what is left of the trace.
    slack = 1e-8 + np.sqrt(40) * whole.missing_df_
    size = np.sqrt(np.mean((y - y.mean()) ** 2))
    assert_allclose(whole.predict(X), exact.predict(X), atol=slack * size)
    if slack < 1e-6:
        assert_allclose(whole.predict(X_new), exact.predict(X_new), atol=1e-6 * size)
    assert abs(whole.df_ - exact.df_) <= whole.missing_df_ + 1e-7


@pytest.mark.parametrize("T", [1, 5, 40, 300])
@pytest.mark.parametrize("average", [False, True])
def test_spectral_is_iterative(T, average):
    """Filters of eigenvalues give what steps give."""
    X, y = regression(2, 25)
    spectral = fixed(T, average=average, solver="eigh").fit(X, y)
    steps = fixed(T, average=average, solver="gd").fit(X, y)
    assert_allclose(steps.predict(X), spectral.predict(X), rtol=1e-9)
    assert_allclose(steps.dual_coef_, spectral.dual_coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(steps.df_, spectral.df_, rtol=1e-9)
    assert_allclose(steps.step_size_, spectral.step_size_, rtol=1e-9)


@pytest.mark.parametrize("rank", [1, 4, 17])
@pytest.mark.parametrize("T", [3, 50, 4000])
def test_low_rank_is_boosting_of_the_approximate_kernel(rank, T):
    """The landmarks' approximation of the kernel matrix, boosted by plain steps."""
    X, y = regression(3, 24)
    new, _ = regression(4, 6)
    model = fixed(
        T, solver="lowrank", max_rank=rank, rank_tol=0.0, random_state=1
    ).fit(X, y)  # fmt: skip
    G = gram(X, **KERNELS["laplacian"])
    pivots = model.landmark_indices_
    assert len(pivots) == model.rank_ == rank
    small = ref.lowrank_gram(G, pivots)
    mu = ref.eigenvalues(small)
    assert_allclose(model.step_size_, 1.0 / mu[0], rtol=1e-9)
    c = ref.spectral_coefficients(small, y, model.step_size_, T, y.mean())
    assert_allclose(model.predict(X), y.mean() + small @ c, rtol=1e-8)
    cross = gram(new, X[pivots], **KERNELS["laplacian"])
    found = ref.lowrank_predict(cross, G, pivots, c)
    assert_allclose(model.predict(new), y.mean() + found, rtol=1e-7)
    # The certificate.
    tau = ref.residual_diagonal(G, pivots).mean()
    assert_allclose(model.residual_trace_, tau, rtol=1e-9)
    assert_allclose(model.missing_df_, model.step_size_ * T * tau, rtol=1e-9)
    df = ref.degrees_of_freedom(ref.eigenvalues(G), 1.0 / ref.eigenvalues(G)[0], T)
    slack = 1.0 + tau / mu[0]
    assert df <= (model.df_ + model.missing_df_) * slack


@pytest.mark.filterwarnings("ignore:The kernel sees the rows")
@given(
    seed=st.integers(0, 10_000),
    rank=st.integers(1, 29),
    log_T=st.floats(0.0, 5.0),
    kernel=st.sampled_from(["laplacian", "rbf", "sobolev"]),
)
@settings(max_examples=40)
def test_missing_degrees_of_freedom(seed, rank, log_T, kernel):
    """The dense spectrum has at most `missing_df_` more, with the same step."""
    X, y = regression(seed, 30)
    mu = ref.eigenvalues(gram(X, **KERNELS[kernel]))
    T = int(10.0**log_T)
    model = fixed(
        T, kernel, solver="lowrank", max_rank=rank, rank_tol=0.0, random_state=seed,
        step_size=1.0 / mu[0],
    ).fit(X, y)  # fmt: skip
    missing = ref.degrees_of_freedom(mu, 1.0 / mu[0], T) - model.df_
    rounding = 1e-11 * T + 1e-9
    assert -rounding <= missing <= model.missing_df_ + rounding


@pytest.mark.parametrize("tol", [0.5, 0.05, 0.0])
def test_rank_certificate(tol):
    """The factor grows until little is missing, or there are as many as allowed."""
    X, y = regression(5, 200, 2)
    model = make(
        "squared", "rbf", solver="lowrank", rank_tol=tol, rank_gain_tol=0.0,
        max_rank=200, random_state=0,
    ).fit(X, y)  # fmt: skip
    exhausted = model.residual_trace_ < 1e-10
    assert model.missing_df_ <= tol * model.df_ or model.rank_ == 200 or exhausted
    assert model.rank_ <= 200
    expected = model.step_size_ * model.n_iter_ * model.residual_trace_
    assert_allclose(model.missing_df_, expected, rtol=1e-12)


def test_certified_fit_is_near_to_the_exact_one():
    """The function differs by at most what the certificate says."""
    X, y = regression(6, 150)
    low = make("squared", "rbf", solver="lowrank", random_state=0).fit(X, y)
    exact = fixed(low.n_iter_, "rbf", solver="eigh", step_size=low.step_size_ * 0.999)
    exact.fit(X, y)
    distance = np.sqrt(np.mean((low.predict(X) - exact.predict(X)) ** 2))
    bound = low.missing_df_ + 0.002 * low.df_
    assert distance <= bound * np.std(y) + 1e-3 * np.std(y)
    assert 1.0 < low.df_ < 150


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [None, 2])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_streamed_factor(weighted, m, kernel):
    """A factor that does not fit into memory gives what one that fits would give."""
    X, y = regression(7, 600, m=m)
    w = np.random.default_rng(6).integers(0, 4, size=600) if weighted else None
    model = fixed(
        50, kernel, solver="lowrank", max_rank=60, rank_tol=0.0, random_state=0
    )
    with config_context(working_memory=0.05):
        model.fit(X, y, w)
        found = model.predict(X)
    pivots = model.landmark_indices_
    assert 1 < len(pivots) <= 60
    w = np.ones(600) if w is None else w
    G = gram(X, **KERNELS[kernel])
    L = np.linalg.cholesky(G[np.ix_(pivots, pivots)])
    F = np.linalg.solve(L, G[pivots]).T
    share = w / w.sum()
    left = share @ (np.diag(G) - np.sum(F**2, axis=1))
    assert_allclose(model.residual_trace_, left, rtol=1e-6, atol=1e-10)
    centred, c = y - model.intercept_, np.zeros_like(y)
    for _ in range(50):
        slopes = (share * (centred - F @ (F.T @ c)).T).T
        c = c + model.step_size_ * slopes
    expected = model.intercept_ + F @ (F.T @ c)
    assert_allclose(found, expected, rtol=1e-6)
    assert_allclose(model.predict(X), found, rtol=1e-12)


def test_automatic_solver():
    """All eigenvectors for few rows, landmarks for many."""
    X, y = regression(7, 500)
    small = make("squared", "rbf").fit(X, y)
    assert len(small.landmark_indices_) == 500
    X, y = regression(8, 501)
    large = make("squared", "rbf", random_state=0).fit(X, y)
    assert len(large.landmark_indices_) < 501
    assert large.X_fit_.shape == (len(large.landmark_indices_), 2)


# ----------------------------------------------------------------------- invariances


@pytest.mark.parametrize("solver", ["eigh", "gd"])
@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", "theory", None])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_weights_are_repetitions(solver, stopping, kernel):
    """Whole weights repeat rows, weights of zero delete them."""
    X, y = regression(9, 24)
    counts = np.random.default_rng(0).integers(0, 4, size=24)
    model = make(
        "squared", kernel, solver=solver, stopping=stopping, max_iter=200, noise=0.5
    )
    with at_the_last_step():
        weighted = clone(model).fit(X, y, counts)
        repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.n_iter_ == repeated.n_iter_
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    for name in ("df_", "norm_", "noise_", "critical_radius_", "intercept_"):
        found = getattr(weighted, name)
        assert_allclose(found, getattr(repeated, name), rtol=1e-6, err_msg=name)
    assert np.all(counts[weighted.landmark_indices_] > 0)
    r = min(len(weighted.eigenvalues_), 8)
    assert_allclose(weighted.eigenvalues_[:r], repeated.eigenvalues_[:r], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The kernel sees the rows")
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_weights_are_repetitions_for_gamma(kernel):
    """Also with every default, for so few rows that nothing is random."""
    X, y = regression(9, 24)
    counts = np.random.default_rng(0).integers(0, 4, size=24)
    weighted = EarlyStoppedKernelBoost(kernel).fit(X, y, counts)
    repeated = EarlyStoppedKernelBoost(kernel).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    assert weighted.gamma_ == repeated.gamma_
    assert_allclose(
        weighted.gamma_path_["score"], repeated.gamma_path_["score"], rtol=1e-3
    )
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_precomputed_weights_are_repetitions(solver):
    """Also of a kernel matrix, whose columns stay those of all rows."""
    X, y = regression(10, 20)
    G = gram(X, **KERNELS["laplacian"])
    counts = np.random.default_rng(1).integers(0, 3, size=20)
    rows = np.repeat(np.arange(20), counts)
    options = {"solver": solver, "max_rank": 60, **WHOLE}
    weighted = fixed(40, "precomputed", **options).fit(G, y, counts)
    repeated = fixed(40, "precomputed", **options).fit(G[np.ix_(rows, rows)], y[rows])
    found = weighted.predict(G)
    assert_allclose(found, repeated.predict(G[:, rows]), rtol=1e-7)


def test_weights_of_the_low_rank_path():
    """Landmarks differ by chance, the function hardly."""
    X, y = regression(11, 60)
    counts = np.random.default_rng(2).integers(0, 4, size=60)
    options = {"solver": "lowrank", "max_rank": 240, **WHOLE}
    weighted = fixed(60, **options).fit(X, y, counts)
    repeated = fixed(60, **options).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


@pytest.mark.parametrize("solver", ["eigh", "gd"])
@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", "loo", "theory"])
def test_order_of_rows(solver, stopping):
    """Permuted rows give the same function."""
    X, y = regression(12, 24)
    order = np.random.default_rng(3).permutation(24)
    model = make("squared", "laplacian", solver=solver, stopping=stopping, max_iter=300)
    with at_the_last_step():
        first = clone(model).fit(X, y)
        second = clone(model).fit(X[order], y[order])
    assert first.n_iter_ == second.n_iter_
    assert_allclose(second.predict(X), first.predict(X), rtol=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
@pytest.mark.parametrize("factor, shift", [(-1.0, 0.0), (1e4, 0.0), (1e-4, 5.0)])
def test_targets_have_no_units(solver, factor, shift):
    """y -> a y + b: the function follows, and the time stays."""
    X, y = regression(13, 30)
    model = make("squared", "rbf", solver=solver, random_state=0)
    first = clone(model).fit(X, y)
    second = clone(model).fit(X, factor * y + shift)
    assert first.n_iter_ == second.n_iter_
    assert_allclose(
        second.predict(X), factor * first.predict(X) + shift, rtol=1e-7, atol=1e-10
    )
    assert_allclose(second.norm_, abs(factor) * first.norm_, rtol=1e-6)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_constant_weights(solver):
    """Equal weights of one change nothing."""
    X, y = regression(14, 30)
    model = make("squared", "rbf", solver=solver, random_state=0)
    first = clone(model).fit(X, y).predict(X)
    second = clone(model).fit(X, y, np.ones(30)).predict(X)
    assert_allclose(second, first, rtol=1e-12)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_translated_features(solver):
    """A radial kernel knows no origin, however far away."""
    X, y = regression(15, 30)
    model = fixed(50, "rbf", solver=solver, random_state=0)
    first = clone(model).fit(X, y).predict(X)
    second = clone(model).fit(X + 1e5, y).predict(X + 1e5)
    assert_allclose(second, first, rtol=1e-7)


# -------------------------------------------------------------------------- attributes


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
@pytest.mark.parametrize("m", [None, 1, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_shapes(solver, m, intercept):
    """Shapes of predictions and attributes for a flat y, one column and several."""
    X, y = regression(16, 30, m=m)
    model = make(
        "squared", "laplacian", solver=solver, fit_intercept=intercept, random_state=0
    ).fit(X, y)
    tail = () if m is None else (m,)
    landmarks = len(model.landmark_indices_)
    assert model.predict(X[:7]).shape == (7, *tail)
    assert np.shape(model.dual_coef_) == (landmarks, *tail)
    for name in ("intercept_", "n_iter_", "noise_", "norm_", "critical_radius_", "df_"):
        assert np.shape(getattr(model, name)) == tail, name
    path = model.stopping_path_
    for name in ("criterion", "train_loss"):
        assert path[name].shape == (len(path["t"]), *tail)
    assert path["df"].shape == path["t"].shape
    assert model.n_features_in_ == 2
    assert model.eigenvalues_.shape == (model.rank_,)
    assert np.all(np.diff(model.eigenvalues_) <= 0.0)
    assert np.all(model.eigenvalues_ > 0.0)
    K = gram(X, model.X_fit_, **KERNELS["laplacian"])
    expected = K @ model.dual_coef_ + model.intercept_
    assert_allclose(model.predict(X), expected, rtol=1e-9, atol=1e-12)
    if m is None:
        assert isinstance(model.n_iter_, int)
        assert isinstance(model.intercept_, float)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_eigenvalues(solver):
    """Those of D^(1/2) G D^(1/2) / W, without the ones that are rounding."""
    X, y = regression(17, 20)
    X = np.concatenate([X, X[:5]])
    y = np.concatenate([y, y[:5]])
    w = np.random.default_rng(4).uniform(0.3, 2.0, size=25)
    model = fixed(
        30, solver=solver, max_rank=25, rank_tol=0.0, rank_gain_tol=0.0
    ).fit(X, y, w)  # fmt: skip
    mu = ref.eigenvalues(gram(X, **KERNELS["laplacian"]), w)
    # Five rows are there twice.
    assert model.rank_ == 20
    assert_allclose(model.eigenvalues_, mu[:20], rtol=1e-8)


@pytest.mark.parametrize("gamma", ["scale", None, 0.3])
def test_gamma(gamma):
    """The meanings of gamma that need no search."""
    X, y = regression(18, 30)
    w = np.random.default_rng(5).uniform(0.3, 2.0, size=30)
    model = EarlyStoppedKernelBoost(gamma=gamma).fit(X, y, w)
    centred = X - np.average(X, axis=0, weights=w).mean()
    variance = np.average((centred**2).mean(axis=1), weights=w)
    expected = {"scale": 1.0 / (2.0 * variance), None: 0.5, 0.3: 0.3}[gamma]
    assert_allclose(model.gamma_, expected, rtol=1e-12)
    assert model.gamma_path_ is None
    plain = EarlyStoppedKernelBoost(gamma="scale").fit(X, y)
    assert_allclose(plain.gamma_, 1.0 / (2.0 * X.var()), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_gamma_by_evidence(kernel, solver):
    """The score is the evidence of each gamma, and the best one is taken."""
    X, y = regression(19, 60)
    model = EarlyStoppedKernelBoost(kernel, solver=solver, random_state=0).fit(X, y)
    path = model.gamma_path_
    assert len(path["gamma"]) >= 9
    assert np.all(np.diff(path["gamma"]) > 0.0)
    assert model.gamma_ == path["gamma"][np.argmin(path["score"])]
    slow = ref.evidence_path(X, y, path["gamma"], kernel)
    # Constants do not matter.
    shift = slow.min() - path["score"].min()
    assert_allclose(path["score"] + shift, slow, rtol=0.0, atol=0.3)
    ratios = path["gamma"][1:] / path["gamma"][:-1]
    assert_allclose(ratios, np.where(ratios < 3.0, 2.0, 4.0), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "cosine"])
def test_gamma_of_other_kernels(kernel):
    """Nothing is searched where gamma is no width."""
    X, y = regression(20, 30)
    model = EarlyStoppedKernelBoost(kernel).fit(X, y)
    assert model.gamma_ == 0.5
    assert model.gamma_path_ is None


# ------------------------------------------------------------------------ predictions


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("m", [None, 2])
def test_stages_are_fits(solver, average, m):
    """The prediction at t is that of a model of t steps; at 0 there is the offset."""
    X, y = regression(21, 25, m=m)
    options = {"solver": solver, "average": average, "max_rank": 25, **WHOLE}
    model = fixed(60, **options).fit(X, y)
    times = [1, 2, 9, 59, 60]
    for t, found in zip(times, model.staged_predict(X, t=times), strict=True):
        expected = fixed(t, **options).fit(X, y).predict(X)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    start = next(iter(model.staged_predict(X, t=[0])))
    assert_allclose(start, np.broadcast_to(model.intercept_, y.shape), rtol=1e-12)


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_default_stages(solver):
    """Without times: those of the path, and the prediction at last."""
    X, y = regression(22, 40)
    model = make("squared", "rbf", solver=solver, random_state=0).fit(X, y)
    stages = list(model.staged_predict(X))
    assert_allclose(stages[-1], model.predict(X), rtol=1e-9)
    t = model.stopping_path_["t"]
    assert len(stages) == np.sum(t < model.n_iter_) + 1
    losses = [np.mean((y - f) ** 2) / 2 for f in stages[:-1]]
    expected = model.stopping_path_["train_loss"][: len(losses)]
    assert_allclose(losses, expected, rtol=1e-8)


@pytest.mark.parametrize("t", [[2, 1], [1, 1], [1.5], [-1], [[1, 2]], []])
def test_stages_at_impossible_times(t):
    """Times increase and are whole."""
    X, y = regression(23, 20)
    model = fixed(10, solver="eigh").fit(X, y)
    with pytest.raises(ValueError, match="t must"):
        list(model.staged_predict(X, t=t))


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_predictions_do_not_depend_on_company(solver):
    """A row's prediction is its own."""
    X, y = regression(24, 40)
    new, _ = regression(25, 11)
    model = make("squared", "rbf", solver=solver, random_state=0).fit(X, y)
    alone = [model.predict(row[None])[0] for row in new]
    assert_allclose(model.predict(new), alone, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "sobolev", "precomputed"])
def test_little_working_memory(kernel):
    """Predictions are the same in blocks of a few rows."""
    X, y = regression(25, 200)
    data = gram(X, **KERNELS["rbf"]) if kernel == "precomputed" else X
    model = make("squared", kernel, solver="eigh").fit(data, y)
    expected = model.predict(data)
    with config_context(working_memory=0.01):
        assert_allclose(model.predict(data), expected, rtol=1e-12)
        *_, last = model.staged_predict(data)
    assert_allclose(last, expected, rtol=1e-8)


# ------------------------------------------------------------------------ scikit-learn


def test_lists():
    """Plain lists and whole numbers are data too."""
    X, y = [[0, 1], [2, 3], [3, 1], [2, 2], [1, 1]], [1, 2, 3, 4, 0]
    model = make("squared", "rbf", gamma=0.2).fit(X, y)
    expected = make("squared", "rbf", gamma=0.2).fit(
        np.array(X, float), np.array(y, float)
    )
    assert_array_equal(model.predict(X), expected.predict(X))


def test_unfitted():
    """Predictions need a fit."""
    model = EarlyStoppedKernelBoost()
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])
    with pytest.raises(NotFittedError):
        list(model.staged_predict([[1.0]]))


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank", "banded"])
def test_copies(solver):
    """Pickles predict the same bits, clones forget."""
    X, y = regression(26, 40, 1)
    model = make("squared", "sobolev", solver=solver, random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict(X), model.predict(X))
    stages = zip(copy.staged_predict(X), model.staged_predict(X), strict=True)
    for found, expected in stages:
        assert_array_equal(found, expected)
    assert not hasattr(clone(model), "dual_coef_")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_same_seed(solver, kernel):
    """Bits repeat; another seed gives other landmarks."""
    X, y = regression(27, 300)
    options = {"solver": solver, "stopping": "gcv", "max_rank": 40}
    fits = [
        EarlyStoppedKernelBoost(kernel, **options, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    ]
    assert_array_equal(fits[0].predict(X), fits[1].predict(X))
    assert fits[0].gamma_ == fits[1].gamma_
    if solver == "lowrank":
        assert set(fits[0].landmark_indices_) != set(fits[2].landmark_indices_)


def test_generator_of_seeds():
    """A RandomState moves on from fit to fit, and fit does not touch numpy's own."""
    X, y = regression(28, 200)
    rng = np.random.RandomState(0)
    model = make("squared", "rbf", solver="lowrank", max_rank=20, random_state=rng)
    before = np.random.get_state()[1].copy()
    first = model.fit(X, y).landmark_indices_
    second = model.fit(X, y).landmark_indices_
    assert not np.array_equal(first, second)
    assert_array_equal(np.random.get_state()[1], before)


def test_refit_forgets():
    """A second fit leaves nothing of the first one."""
    X, y = regression(29, 40)
    model = make("squared", "rbf", solver="lowrank", random_state=0).fit(X, y)
    model.set_params(kernel="linear", solver="eigh").fit(X[:, :1], y)
    fresh = make("squared", "linear", solver="eigh").fit(X[:, :1], y)
    assert sorted(vars(model)) == sorted(vars(fresh))
    assert model.n_features_in_ == 1


def test_parameters_changed_after_the_fit():
    """Predictions are those of the parameters at the time of the fit."""
    X, y = regression(30, 30)
    model = make("squared", "laplacian", solver="eigh").fit(X, y)
    expected = model.predict(X)
    model.set_params(kernel="rbf", gamma=3.0, average=True, fit_intercept=False)
    assert_array_equal(model.predict(X), expected)
    *_, last = model.staged_predict(X)
    assert_allclose(last, expected, rtol=1e-9)


def test_data_frames():
    """Names of columns are kept and checked."""
    X, y = regression(31, 30)
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = make("squared", "rbf").fit(frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, ["width", "height"])
    assert_array_equal(model.predict(frame), model.predict(frame.copy()))
    plain = make("squared", "rbf").fit(X, y)
    assert_allclose(plain.predict(X), model.predict(frame), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["height", "width"]])


def test_single_precision():
    """float32 features: nearly the same function."""
    X, y = regression(32, 40)
    for solver in SOLVERS:
        model = fixed(50, "rbf", solver=solver, random_state=0)
        expected = clone(model).fit(X, y).predict(X)
        found = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
        assert_allclose(
            found.predict(X.astype(np.float32)), expected, rtol=2e-5, atol=1e-5
        )


def test_pipeline_and_grid():
    """In a pipeline, tuned over the kernel's width; the best one is a good one."""
    X, y = make_friedman1(150, n_features=6, noise=0.5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), EarlyStoppedKernelBoost())
    grid = {"earlystoppedkernelboost__gamma": [0.02, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"earlystoppedkernelboost__gamma": 0.02}
    linear = cross_val_score(LinearRegression(), X, y, cv=3).mean()
    assert search.best_score_ > linear + 0.05


@pytest.mark.parametrize("stopping", ["gcv", "validation"])
def test_precomputed_cross_validation(stopping):
    """Cross-validation slices rows and columns of a kernel matrix."""
    X, y = regression(33, 60)
    options = {"stopping": stopping, "random_state": 0, "solver": "eigh"}
    folds = KFold(4)
    with at_the_last_step():
        direct = cross_val_score(make("squared", "rbf", **options), X, y, cv=folds)
        model = make("squared", "precomputed", **options)
        found = cross_val_score(model, gram(X, **KERNELS["rbf"]), y, cv=folds)
    assert_allclose(found, direct, rtol=1e-6)


def test_learns():
    """Much better than a line on a curved target, with every default."""
    X, y = make_friedman1(400, noise=0.3, random_state=1)
    X_test, y_test = make_friedman1(400, noise=0.0, random_state=2)
    model = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
    line = LinearRegression().fit(X, y)
    assert model.score(X_test, y_test) > 0.9 > line.score(X_test, y_test)


def test_verbose(capsys):
    """Nothing is printed unless asked for."""
    X, y = regression(34, 60)
    make("squared", "rbf", solver="lowrank").fit(X, y)
    assert capsys.readouterr().out == ""


def test_a_rank_that_is_cut_off_is_told():
    """Where much may be missing, and only there; "auto" goes on."""
    X, y = make_friedman1(3000, noise=0.1, random_state=0)
    options = {"gamma": 0.5, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="rank 512 may miss up to .* raise it"):
        cut = EarlyStoppedKernelBoost(**options).fit(X, y)
    assert cut.missing_df_ > 0.5 * cut.df_ and cut.rank_ == 512
    quiet = [
        # Much noise, few features, all that there is, and a rank of one's own.
        (make_friedman1(3000, noise=1.0, random_state=0), {"gamma": "auto"}),
        ((X[:, :1], y), {}),
        ((X[:400], y[:400]), {"solver": "lowrank"}),
        ((X[:300], y[:300]), {"solver": "eigh"}),
    ]
    for (rows, targets), more in quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            model = EarlyStoppedKernelBoost(**{**options, **more}).fit(rows, targets)
        assert model.missing_df_ <= 0.5 * model.df_
    with pytest.warns(ConvergenceWarning, match="rank 64 may miss"):
        EarlyStoppedKernelBoost(max_rank=64, **options).fit(X, y)


@pytest.mark.slow
def test_automatic_ranks():
    """The error of friedman1 with little noise; no more than it takes elsewhere."""
    options = {"relevance": None, "random_state": 0}
    X, y = make_friedman1(3000, noise=0.1, random_state=0)
    rows, truth = make_friedman1(2000, noise=0.0, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = EarlyStoppedKernelBoost(max_rank="auto", **options).fit(X, y)
    error = np.sqrt(np.mean((model.predict(rows) - truth) ** 2))
    assert error < 0.17 and 512 < model.rank_ <= 2048
    assert model.missing_df_ <= 0.5 * model.df_
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    for rank in (512, "auto"):
        model = EarlyStoppedKernelBoost(max_rank=rank, **options).fit(X, y)
        assert model.rank_ == 512
    few = EarlyStoppedKernelBoost(max_rank="auto", solver="lowrank", **options)
    usual = clone(few).set_params(max_rank=512)
    found = few.fit(X[:700], y[:700]).predict(rows)
    assert_allclose(found, usual.fit(X[:700], y[:700]).predict(rows), rtol=1e-9)
