"""The classifier: invariances, links, labels and scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from scipy.special import expit, log_expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernel_boost.toy import (
    KERNELS,
    at_the_last_step,
    classification,
    gram,
    make,
    offset_of,
    problem,
    reference_path,
    staged,
)
from skbounds.kernel_boost import EarlyStoppedKernelBoostClassifier

LOSSES = ["logistic", "exponential", "softmax"]
WHOLE = {"rank_tol": 0.0, "rank_gain_tol": 0.0, "random_state": 0}

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_solver = pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])


def fixed(loss, T, kernel="laplacian", **options):
    """Exactly T steps."""
    return make(loss, kernel, stopping=None, max_iter=T, **options)


def fit(model, *data, **more):
    """Fit; the chosen time may be the last."""
    with at_the_last_step():
        return model.fit(*data, **more)


# ------------------------------------------------------------------ solvers that agree


@every_loss
@pytest.mark.parametrize(
    "constant, average", [(True, False), (True, True), (False, True)]
)
@pytest.mark.parametrize("T", [1, 20, 150])
def test_solvers_agree(loss, constant, average, T):
    """The plain iteration in rows, in all eigenvectors and in a whole factor."""
    X, y = problem(loss, 0, n=30)
    options = {"average": average}
    if constant:
        options["step_size"] = 0.9
    steps = fixed(loss, T, solver="gd", **options).fit(X, y)
    for solver in ("eigh", "lowrank"):
        model = fixed(loss, T, solver=solver, max_rank=30, **options, **WHOLE).fit(X, y)
        assert_allclose(
            model.decision_function(X), steps.decision_function(X), rtol=1e-8, atol=1e-8
        )
        assert model.n_iter_ == steps.n_iter_ == T


@every_loss
@pytest.mark.parametrize("rank", [2, 9])
def test_low_rank_is_boosting_of_the_approximate_kernel(loss, rank):
    """The landmarks' approximation of the kernel matrix, boosted by plain steps."""
    X, y = problem(loss, 1, n=24)
    new, _ = problem(loss, 2, n=5)
    model = fixed(
        loss, 25, solver="lowrank", step_size=0.8, max_rank=rank, rank_tol=0.0,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    pivots, G = model.landmark_indices_, gram(X, **KERNELS["laplacian"])
    assert len(pivots) == rank
    small, offset = ref.lowrank_gram(G, pivots), offset_of(loss, y)
    path = reference_path(small, y, loss, 0.8, 25, offset)
    expected = ref.values(path[-1:], small, offset)[0]
    assert_allclose(model.decision_function(X), expected, rtol=1e-7, atol=1e-8)
    cross = gram(new, X[pivots], **KERNELS["laplacian"])
    found = offset + ref.lowrank_predict(cross, G, pivots, path[-1])
    assert_allclose(model.decision_function(new), found, rtol=1e-6, atol=1e-7)
    tau = ref.residual_diagonal(G, pivots).mean()
    assert_allclose(model.residual_trace_, tau, rtol=1e-9)


@every_loss
@pytest.mark.parametrize("stopping", ["auto", "aic"])
def test_default_of_many_rows_is_near_to_the_exact_one(loss, stopping):
    """Landmarks and fewer components move probabilities by little."""
    X, y = problem(loss, 2, n=250)
    exact = fit(make(loss, "rbf", solver="eigh", stopping=stopping), X, y)
    low = fit(
        make(loss, "rbf", solver="lowrank", stopping=stopping, random_state=0), X, y
    )
    assert np.abs(exact.predict_proba(X) - low.predict_proba(X)).max() < 0.05
    assert 0.5 < low.n_iter_ / exact.n_iter_ < 2.0


# ------------------------------------------------------------------------- invariances


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "gd"])
@pytest.mark.parametrize("stopping", ["auto", "alo", "aic", "theory", None])
def test_weights_are_repetitions(loss, solver, stopping):
    """Whole weights repeat rows, weights of zero delete them."""
    X, y = problem(loss, 3, n=27)
    counts = np.random.default_rng(0).integers(0, 4, size=27)
    counts[:3] = 1
    model = make(loss, "laplacian", solver=solver, stopping=stopping, max_iter=100)
    weighted = fit(clone(model), X, y, counts)
    repeated = fit(clone(model), np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.n_iter_ == repeated.n_iter_
    found = weighted.decision_function(X)
    assert_allclose(found, repeated.decision_function(X), rtol=1e-8, atol=1e-9)
    for name in ("df_", "norm_", "noise_", "critical_radius_", "intercept_"):
        expected = getattr(repeated, name)
        assert_allclose(getattr(weighted, name), expected, rtol=1e-6, err_msg=name)


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "gd"])
@pytest.mark.parametrize("stopping", ["auto", "aic", "theory", None])
def test_order_of_rows(loss, solver, stopping):
    """Permuted rows give the same function."""
    X, y = problem(loss, 4, n=30)
    order = np.random.default_rng(1).permutation(30)
    model = make(loss, "laplacian", solver=solver, stopping=stopping, max_iter=150)
    first, second = fit(clone(model), X, y), fit(clone(model), X[order], y[order])
    assert first.n_iter_ == second.n_iter_
    assert_allclose(
        second.decision_function(X), first.decision_function(X), rtol=1e-8, atol=1e-9
    )


@every_solver
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("stopping", ["auto", "aic", "theory", "validation"])
def test_swapped_labels(solver, loss, stopping):
    """The other label first: the function turns around."""
    X, y = classification(5, 50)
    y[:8] = 1
    model = make(
        loss, "laplacian", solver=solver, stopping=stopping, max_iter=100,
        random_state=0,
    )  # fmt: skip
    first = fit(clone(model), X, y)
    second = fit(clone(model), X, 1 - y)
    if stopping != "validation":
        assert first.n_iter_ == second.n_iter_
        assert_allclose(
            second.decision_function(X), -first.decision_function(X), rtol=1e-8,
            atol=1e-9,
        )  # fmt: skip
    assert_allclose(second.intercept_, -first.intercept_, rtol=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_renamed_classes(solver):
    """Several classes in another order: the columns move, nothing else."""
    X, y = classification(6, 36, n_classes=3)
    names = np.array([7, 3, 5])
    model = make("softmax", "laplacian", solver=solver, max_iter=100)
    first, second = fit(clone(model), X, y), fit(clone(model), X, names[y])
    assert_array_equal(second.classes_, [3, 5, 7])
    columns = [2, 0, 1]
    assert first.n_iter_ == second.n_iter_
    assert_allclose(
        second.predict_proba(X)[:, columns], first.predict_proba(X), rtol=1e-8
    )


@every_loss
def test_scaled_kernel(loss):
    """k -> s k: default steps, stopping time and function stay."""
    X, y = problem(loss, 7, n=30)
    G = gram(X, **KERNELS["laplacian"])
    model = make(loss, "precomputed", solver="eigh", max_iter=200)
    first, second = fit(clone(model), G, y), fit(clone(model), 25.0 * G, y)
    assert first.n_iter_ == second.n_iter_
    assert_allclose(
        second.decision_function(25.0 * G), first.decision_function(G), rtol=1e-8
    )


# --------------------------------------------------------------------- links and labels


@every_loss
@every_solver
@pytest.mark.parametrize("intercept", [True, False])
def test_links(loss, solver, intercept):
    """Probabilities, decision function, labels and the dual form fit together."""
    X, y = problem(loss, 8, n=36)
    model = fit(
        make(
            loss, "laplacian", solver=solver, fit_intercept=intercept, max_iter=100,
            random_state=0,
        ), X, y,
    )  # fmt: skip
    f, P = model.decision_function(X), model.predict_proba(X)
    K = gram(X, model.X_fit_, **KERNELS["laplacian"])
    expected = K @ model.dual_coef_ + model.intercept_
    assert_allclose(f, expected, rtol=1e-8, atol=1e-9)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    if loss == "softmax":
        assert f.shape == P.shape == (36, 3)
        assert_allclose(P, ref.softmax(f), rtol=1e-10)
        assert_allclose(f.sum(axis=1), 0.0, atol=1e-9)
        labels = f.argmax(axis=1)
        assert np.shape(model.intercept_) == (3,)
    else:
        assert f.shape == (36,)
        assert_allclose(P[:, 1], ref.probability(loss, f), rtol=1e-10)
        labels = (f > 0.0).astype(int)
        assert np.ndim(model.intercept_) == 0
    assert_array_equal(model.predict(X), model.classes_[labels])
    assert_allclose(model.intercept_, offset_of(loss, y) if intercept else 0.0)
    assert isinstance(model.n_iter_, int)


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        ["b", "c", "a"],
        [-1, 1],
        [10, 2, 7],
        [True, False],
        [0.0, 1.0],
    ],
    ids=lambda labels: "-".join(map(str, labels)),
)
def test_labels(labels):
    """Strings, negative numbers and booleans; classes in sorted order."""
    labels = np.array(labels)
    X, codes = classification(9, 30, n_classes=len(labels))
    order = np.argsort(labels)
    model = fit(make("logistic", "laplacian", max_iter=50), X, labels[codes])
    assert_array_equal(model.classes_, np.sort(labels))
    assert model.classes_.dtype == labels.dtype
    assert model.predict(X).dtype == labels.dtype
    plain = fit(make("logistic", "laplacian", max_iter=50), X, np.argsort(order)[codes])
    assert_allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert_array_equal(model.predict(X), np.sort(labels)[plain.predict(X)])
    assert model.score(X, labels[codes]) > 0.6


@pytest.mark.parametrize("counts", [(38, 2), (39, 1), (1, 39)])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_rare_classes(counts, loss):
    """One or two rows of a class are enough."""
    X, _ = classification(10, 40)
    y = np.repeat([0, 1], counts)
    model = fit(make(loss, "rbf"), X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    share = np.clip(counts[1] / 40, 1.0 / 42.0, 41.0 / 42.0)
    odds = np.log(share / (1.0 - share))
    assert_allclose(model.intercept_, odds / (1.0 if loss == "logistic" else 2.0))


@every_loss
@every_solver
def test_separable_classes(loss, solver):
    """Without a minimum of the risk the values stay finite, and labels are right."""
    rng = np.random.default_rng(2)
    y = np.arange(45) % (3 if loss == "softmax" else 2)
    X = 10.0 * y[:, None] + rng.uniform(size=(45, 2))
    model = fit(make(loss, "rbf", solver=solver, max_iter=3000, random_state=0), X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert_array_equal(model.predict(X), y)


@every_loss
def test_pure_noise(loss):
    """Labels without any signal: probabilities stay near to the shares."""
    excess = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = (
            rng.uniform(size=(120, 2)),
            rng.integers(3 if loss == "softmax" else 2, size=120),
        )
        model = fit(make(loss, "rbf", gamma=5.0, solver="eigh"), X, y)
        P = model.predict_proba(rng.uniform(size=(200, 2)))
        n_classes = P.shape[1]
        excess.append(np.mean(-np.log(P)) - np.log(n_classes))
    # A fit that interpolates has an excess of more than one.
    assert np.mean(excess) < 0.08


# ------------------------------------------------------------------------- predictions


@every_loss
@every_solver
@pytest.mark.parametrize("average", [False, True])
def test_stages_are_fits(loss, solver, average):
    """The prediction at t is that of a model of t plain steps; at 0 the shares."""
    X, y = problem(loss, 11, n=24)
    options = {
        "solver": solver,
        "average": average,
        "step_size": 0.7,
        "max_rank": 24,
        **WHOLE,
    }
    model = fixed(loss, 40, **options).fit(X, y)
    times = [1, 2, 11, 39, 40]
    stages = zip(
        times, model.staged_predict(X, t=times), model.staged_predict_proba(X, t=times),
        strict=True,
    )  # fmt: skip
    for t, labels, P in stages:
        other = fixed(loss, t, **options).fit(X, y)
        assert_allclose(P, other.predict_proba(X), rtol=1e-9)
        assert_array_equal(labels, other.predict(X))
    start = next(iter(model.staged_predict_proba(X, t=[0])))
    assert_allclose(start, start[:1] * np.ones((24, 1)), rtol=1e-12)
    assert_allclose(start[0], np.bincount(y) / 24, rtol=1e-9)


@every_loss
@pytest.mark.parametrize("average", [False, True])
def test_stages_of_long_paths(loss, average):
    """Also between hundreds of steps each stage is that of as many plain steps."""
    X, y = problem(loss, 11, n=20)
    options = {"solver": "gd", "average": average, "step_size": 0.7}
    model = fixed(loss, 300, **options).fit(X, y)
    times = [63, 64, 65, 100, 211, 299]
    for t, P in zip(times, model.staged_predict_proba(X, t=times), strict=True):
        expected = fixed(loss, t, **options).fit(X, y).predict_proba(X)
        assert_allclose(P, expected, rtol=1e-8)


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_stages_of_the_flow(loss, solver):
    """A given number of steps of the flow; stages are near to fits of as many."""
    X, y = problem(loss, 11, n=40)
    options = {"solver": solver, "max_rank": 40, **WHOLE}
    model = fixed(loss, 60, **options).fit(X, y)
    assert model.n_iter_ == 60
    times = [1, 3, 17, 45, 60]
    for t, P in zip(times, model.staged_predict_proba(X, t=times), strict=True):
        other = fixed(loss, t, **options).fit(X, y)
        assert other.n_iter_ == t
        assert np.abs(P - other.predict_proba(X)).max() < 0.02


@every_loss
@every_solver
@pytest.mark.parametrize("stopping", ["auto", "validation", None])
def test_default_stages(loss, solver, stopping):
    """Without times: those of the path, and the prediction at last."""
    X, y = problem(loss, 12, n=40)
    model = fit(
        make(
            loss, "laplacian", solver=solver, stopping=stopping, max_iter=60,
            random_state=0,
        ), X, y,
    )  # fmt: skip
    stages = list(model.staged_predict_proba(X))
    assert_allclose(stages[-1], model.predict_proba(X), rtol=1e-8)
    labels = list(model.staged_predict(X))
    assert_array_equal(labels[-1], model.predict(X))
    t = model.stopping_path_["t"]
    assert len(stages) == len(labels) == np.sum(t < model.n_iter_) + 1
    if stopping == "validation" or loss == "exponential":
        return
    losses = [log_loss(y, P) for P in stages[:-1]]
    expected = model.stopping_path_["train_loss"][: len(losses)]
    assert_allclose(losses, expected, rtol=1e-8)


@pytest.mark.parametrize("t", [[2, 1], [1, 1], [1.5], [-1], [[1, 2]], []])
@pytest.mark.parametrize("method", ["staged_predict", "staged_predict_proba"])
def test_stages_at_impossible_times(t, method):
    """Times increase and are whole."""
    X, y = classification(13, 20)
    model = fixed("logistic", 10, solver="eigh", step_size=0.5).fit(X, y)
    with pytest.raises(ValueError, match="t must"):
        list(getattr(model, method)(X, t=t))


@every_solver
def test_predictions_do_not_depend_on_company(solver):
    """A row's probabilities are its own."""
    X, y = classification(14, 40)
    model = fit(make("logistic", "rbf", solver=solver, random_state=0), X, y)
    alone = np.concatenate([model.predict_proba(row[None]) for row in X])
    assert_allclose(model.predict_proba(X), alone, rtol=1e-12)


def test_stages_between_those_of_the_path():
    """Stages at any whole times lie on the same path, in their order."""
    X, y = classification(15, 40)
    model = fit(make("logistic", "laplacian", solver="eigh", stopping="aic"), X, y)
    times = np.unique(np.linspace(1, model.n_iter_, 8).astype(int))
    found = staged(model, X, times)
    losses = [-np.mean(log_expit(np.where(y == 1, f, -f))) for f in found]
    assert np.all(np.diff(losses) < 0.0)
    assert_allclose(found[-1], model.decision_function(X), rtol=1e-7)


# ------------------------------------------------------------------------ scikit-learn


def test_unfitted():
    """Predictions need a fit."""
    model = EarlyStoppedKernelBoostClassifier()
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(model, method)([[1.0]])
    with pytest.raises(NotFittedError):
        list(model.staged_predict_proba([[1.0]]))


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_copies(loss, solver):
    """Pickles predict the same bits, clones forget."""
    X, y = problem(loss, 16, n=40)
    model = fit(make(loss, "rbf", solver=solver, max_iter=60, random_state=0), X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    stages = zip(
        copy.staged_predict_proba(X), model.staged_predict_proba(X), strict=True
    )
    for found, expected in stages:
        assert_array_equal(found, expected)
    assert not hasattr(clone(model), "dual_coef_")


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_same_seed(loss, solver):
    """Bits repeat; another seed gives other landmarks."""
    X, y = problem(loss, 17, n=200)
    name = "exponential" if loss == "exponential" else "log_loss"
    fits = [
        fit(
            EarlyStoppedKernelBoostClassifier(
                loss=name, solver=solver, max_rank=40, random_state=seed
            ), X, y,
        )
        for seed in (0, 0, 1)
    ]  # fmt: skip
    assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert fits[0].gamma_ == fits[1].gamma_
    if solver == "lowrank":
        assert set(fits[0].landmark_indices_) != set(fits[2].landmark_indices_)


def test_refit_forgets():
    """A second fit leaves nothing of the first one."""
    X, y = classification(18, 60)
    model = fit(make("logistic", "rbf", solver="lowrank", random_state=0), X, y)
    three = classification(19, 45, n_classes=3)
    fit(model.set_params(kernel="linear", solver="eigh"), *three)
    fresh = make("softmax", "linear", solver="eigh", gamma=0.6, random_state=0)
    fit(fresh, *three)
    assert sorted(vars(model)) == sorted(vars(fresh))
    assert_allclose(model.predict_proba(X), fresh.predict_proba(X), rtol=1e-12)


def test_data_frames():
    """Names of columns are kept and checked; labels may be a series of strings."""
    X, y = classification(20, 40, labels=["no", "yes"])
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = fit(make("logistic", "rbf"), frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, ["width", "height"])
    plain = fit(make("logistic", "rbf"), X, y)
    assert_allclose(plain.predict_proba(X), model.predict_proba(frame), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["height", "width"]])


@every_loss
def test_single_precision(loss):
    """float32 features: nearly the same function."""
    X, y = problem(loss, 21, n=40)
    for solver in ("eigh", "gd", "lowrank"):
        model = fixed(loss, 40, "rbf", solver=solver, step_size=0.8, random_state=0)
        expected = clone(model).fit(X, y).predict_proba(X)
        found = clone(model).fit(X.astype(np.float32), y)
        assert_allclose(
            found.predict_proba(X.astype(np.float32)), expected, rtol=1e-4, atol=1e-6
        )


def circle(seed, n=300):
    """Labels inside and outside of a circle, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    flipped = rng.random(n) < 0.1
    return X, np.where(flipped, np.where(y == "in", "out", "in"), y)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_learns(loss):
    """Much better than a line on a round border, with every default."""
    X, y = circle(0)
    X_test, y_test = circle(1, 1000)
    model = fit(EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0), X, y)
    line = LogisticRegression().fit(X, y)
    assert model.score(X_test, y_test) > 0.83
    found = log_loss(y_test, model.predict_proba(X_test))
    assert found < 0.45 < 0.6 < log_loss(y_test, line.predict_proba(X_test))


def test_pipeline_and_grid():
    """In a pipeline, tuned over the kernel's width."""
    X, y = circle(2, 150)
    pipeline = make_pipeline(StandardScaler(), EarlyStoppedKernelBoostClassifier())
    grid = {"earlystoppedkernelboostclassifier__gamma": [1e-3, 0.4]}
    with at_the_last_step():
        search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"earlystoppedkernelboostclassifier__gamma": 0.4}


@every_loss
@pytest.mark.parametrize("stopping", ["auto", "validation"])
def test_precomputed_cross_validation(loss, stopping):
    """Cross-validation slices rows and columns of a kernel matrix."""
    X, y = problem(loss, 22, n=60)
    options = {"stopping": stopping, "random_state": 0, "solver": "eigh"}
    options["max_iter"] = 100
    check = {"cv": StratifiedKFold(3), "scoring": "neg_log_loss"}
    with at_the_last_step():
        direct = cross_val_score(make(loss, "rbf", **options), X, y, **check)
        model = make(loss, "precomputed", **options)
        found = cross_val_score(model, gram(X, **KERNELS["rbf"]), y, **check)
    assert_allclose(found, direct, rtol=1e-6)


def test_automatic_solver():
    """All eigenvectors for few rows, landmarks for many."""
    X, y = circle(3, 500)
    small = fit(make("logistic", "rbf", stopping="aic"), X, y)
    assert len(small.landmark_indices_) == 500
    X, y = circle(4, 501)
    large = fit(make("logistic", "rbf", stopping="aic", random_state=0), X, y)
    assert len(large.landmark_indices_) < 501
    assert large.X_fit_.shape == (len(large.landmark_indices_), 2)


@pytest.mark.parametrize("solver", ["banded", "auto"])
def test_one_feature(solver):
    """The first-order spline kernel of one feature, if need be without a chain."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(120, 1))
    y = rng.random(120) < expit(8.0 * (np.abs(x[:, 0] - 0.5) - 0.25))
    model = make("logistic", "sobolev", solver=solver)
    if solver == "banded":
        with pytest.raises(ValueError, match="banded"):
            model.fit(x, y)
        return
    f = fit(model, x, y).decision_function([[0.02], [0.5], [0.98]])
    assert f[1] < f[0] and f[1] < f[2]


def test_a_rank_that_is_cut_off_is_told():
    """Many features, sure labels: more dimensions than the factor may have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    options = {"gamma": 1.0, "random_state": 0, "rank_gain_tol": 0.0}
    with pytest.warns(ConvergenceWarning, match="rank 128 may miss"):
        cut = EarlyStoppedKernelBoostClassifier(max_rank=128, **options).fit(X, y)
    assert cut.missing_df_ > 0.5 * cut.df_
    model = EarlyStoppedKernelBoostClassifier(max_rank="auto", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    assert model.missing_df_ <= 0.5 * model.df_
    assert model.score(X, y) > cut.score(X, y)
    # 160 columns of so many rows.
    with config_context(working_memory=1200 * 160 * 8 / 2**20):
        with pytest.warns(ConvergenceWarning, match="rank 160 may .* working_memory"):
            held = EarlyStoppedKernelBoostClassifier(**options).fit(X, y)
        assert held.rank_ == 160
        with pytest.warns(ConvergenceWarning, match="max_rank=100 is too small"):
            EarlyStoppedKernelBoostClassifier(max_rank=100, **options).fit(X, y)
