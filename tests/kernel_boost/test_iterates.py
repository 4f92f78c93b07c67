"""Every iterate against the plain loop of functional gradient steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from scipy import sparse
from scipy.integrate import simpson

from kernel_boost.toy import (
    KERNELS,
    LOSSES,
    at_the_last_step,
    classification,
    codes,
    gram,
    make,
    mean_loss,
    offset_of,
    problem,
    raw,
    reference_path,
    regression,
    signs,
    staged,
)
from skbounds.kernel_boost._flow import Flow
from skbounds.kernel_boost._losses import Exponential, Logistic, Softmax

TIMES = [1, 2, 3, 7, 19]
EXACT = {"rtol": 1e-9, "atol": 1e-9}
# Largest curvature of each loss.
SMOOTHNESS = {"squared": 1.0, "logistic": 0.25, "softmax": 0.5}

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_kernel = pytest.mark.parametrize("kernel", list(KERNELS))
every_solver = pytest.mark.parametrize("solver", ["eigh", "gd"])


def plain(loss, kernel="rbf", solver="gd", **options):
    """The plain iteration; outside of solver "gd" a step size asks for it."""
    options = {"stopping": None, "max_iter": TIMES[-1], **options}
    return make(loss, kernel, solver=solver, **options)


def expected_path(loss, X, y, G, step, intercept, log_risk=False, w=None):
    """The reference's offset and coefficients after 0, ..., 19 steps."""
    offset = offset_of(loss, y, w) if intercept else 0.0
    path = reference_path(G, y, loss, step, TIMES[-1], offset, log_risk, w)
    return offset, path


def minkowski(x, z, scale=1.0):
    """A kernel function of two rows."""
    return np.exp(-scale * np.abs(x - z).sum())


# ---------------------------------------------------------------- the steps themselves


@every_loss
@every_kernel
@every_solver
@pytest.mark.parametrize("intercept", [True, False])
def test_constant_steps(loss, kernel, solver, intercept):
    """Iterates with an absolute step size, on the rows and on new ones."""
    X, y = problem(loss, 1)
    new = problem(loss, 2)[0][:5]
    G = gram(X, **KERNELS[kernel])
    step = 0.7 / np.diag(G).max()
    model = plain(loss, kernel, solver, step_size=step, fit_intercept=intercept)
    model.fit(X, y)
    offset, path = expected_path(loss, X, y, G, step, intercept)
    cross = gram(new, X, **KERNELS[kernel])
    for points, matrix in ((X, G), (new, cross)):
        values = ref.values(path, matrix, offset)
        assert_allclose(raw(model, points), values[-1], **EXACT)
        found = staged(model, points, TIMES)
        if loss == "softmax":
            # The probabilities that the stages give know no common shift.
            values = values - values.mean(axis=2, keepdims=True)
        assert_allclose(found, values[TIMES], **EXACT)
    assert np.ptp(values[-1]) > 1e-2
    assert_allclose(model.intercept_, offset, rtol=1e-12)


@every_loss
@every_kernel
@pytest.mark.parametrize("rate", [1.0, 0.3, 1.7])
def test_default_steps(loss, kernel, rate):
    """The largest stable step times the learning rate; log-risk steps."""
    X, y = problem(loss, 3)
    G = gram(X, **KERNELS[kernel])
    step = ref.default_step(loss, G, rate)
    log_risk = loss == "exponential"
    offset, path = expected_path(loss, X, y, G, step, True, log_risk)
    model = plain(loss, kernel, learning_rate=rate).fit(X, y)
    assert_allclose(model.step_size_, step, rtol=1e-10)
    assert_allclose(raw(model, X), ref.values(path, G, offset)[-1], **EXACT)


@every_loss
@every_solver
@pytest.mark.parametrize("constant", [True, False])
def test_averaged_iterates(loss, solver, constant):
    """The mean of the iterates 1, ..., T, the start not counted."""
    X, y = problem(loss, 4)
    G = gram(X, **KERNELS["rbf"])
    log_risk = loss == "exponential" and not constant
    step = 0.8 if constant else ref.default_step(loss, G)
    model = plain(
        loss, "rbf", solver, average=True, step_size=step if constant else None
    ).fit(X, y)
    offset, path = expected_path(loss, X, y, G, step, True, log_risk)
    values = ref.values(ref.averaged_path(path), G, offset)
    assert_allclose(raw(model, X), values[-1], **EXACT)
    if loss == "softmax":
        values = values - values.mean(axis=2, keepdims=True)
    assert_allclose(staged(model, X, TIMES), values[TIMES], **EXACT)


@every_loss
@every_solver
def test_sparse_rows(loss, solver):
    """Sparse rows give what dense rows give."""
    X, y = problem(loss, 5)
    X = np.where(X < 1.0, 0.0, X)
    for kernel in ("rbf", "laplacian", "linear", "poly"):
        G = gram(X, **KERNELS[kernel])
        step = 0.7 / np.diag(G).max()
        offset, path = expected_path(loss, X, y, G, step, True)
        for container in (sparse.csr_array, sparse.csc_matrix):
            model = plain(loss, kernel, solver, step_size=step).fit(container(X), y)
            values = ref.values(path, G, offset)[-1]
            assert_allclose(raw(model, container(X)), values, **EXACT)


@every_loss
@every_solver
def test_precomputed_kernel(loss, solver):
    """The kernel matrix in place of the rows."""
    X, y = problem(loss, 6)
    new = problem(loss, 7)[0][:4]
    G = gram(X, **KERNELS["laplacian"])
    offset, path = expected_path(loss, X, y, G, 0.6, True)
    model = plain(loss, "precomputed", solver, step_size=0.6).fit(G, y)
    assert_allclose(raw(model, G), ref.values(path, G, offset)[-1], **EXACT)
    cross = gram(new, X, **KERNELS["laplacian"])
    assert_allclose(raw(model, cross), ref.values(path, cross, offset)[-1], **EXACT)


@every_loss
@every_solver
def test_callable_kernel(loss, solver):
    """A function of two rows with parameters of its own."""
    X, y = problem(loss, 8)
    G = gram(X, kernel="laplacian", gamma=0.4)
    offset, path = expected_path(loss, X, y, G, 0.6, True)
    model = make(
        loss, minkowski, kernel_params={"scale": 0.4}, solver=solver, step_size=0.6,
        stopping=None, max_iter=TIMES[-1],
    ).fit(X, y)  # fmt: skip
    assert_allclose(raw(model, X), ref.values(path, G, offset)[-1], **EXACT)


@every_loss
@every_solver
def test_weighted_steps(loss, solver):
    """Weights multiply the slopes, and their sum takes the place of n."""
    X, y = problem(loss, 9)
    w = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y))
    G = gram(X, **KERNELS["rbf"])
    offset, path = expected_path(loss, X, y, G, 0.9, True, w=w)
    model = plain(loss, "rbf", solver, step_size=0.9).fit(X, y, w)
    assert_allclose(raw(model, X), ref.values(path, G, offset)[-1], **EXACT)
    assert_allclose(model.intercept_, offset, rtol=1e-12)


@pytest.mark.parametrize("constant", [True, False])
def test_one_against_the_rest(constant):
    """The exponential loss of three classes: a booster per class."""
    X, y = classification(10, 18, n_classes=3)
    G = gram(X, **KERNELS["rbf"])
    step = 0.5
    options = {"step_size": step} if constant else {"learning_rate": step}
    model = plain("exponential", **options).fit(X, y)
    columns, offsets = [], []
    for k in range(3):
        own = np.where(y == k, 1.0, -1.0)
        offsets.append(ref.start_offset("exponential", own))
        path, _ = ref.boost(
            G, own, "exponential", step, TIMES[-1], offsets[-1], not constant
        )
        columns.append(ref.values(path, G, offsets[-1])[-1])
    F = np.array(columns).T
    assert_allclose(model.decision_function(X), F, **EXACT)
    P = ref.one_vs_rest_probability(F)
    assert_allclose(model.predict_proba(X), P, **EXACT)
    assert_array_equal(model.predict(X), P.argmax(axis=1))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_outputs_side_by_side(average, intercept):
    """Several targets: each has its own iterates with the common step."""
    X, Y = regression(11, m=3)
    G = gram(X, **KERNELS["rbf"])
    model = plain("squared", average=average, fit_intercept=intercept).fit(X, Y)
    step = ref.default_step("squared", G)
    for j in range(3):
        offset, path = expected_path("squared", X, Y[:, j], G, step, intercept)
        path = ref.averaged_path(path) if average else path
        values = ref.values(path, G, offset)[-1]
        assert_allclose(model.predict(X)[:, j], values, **EXACT)


@every_loss
@every_solver
def test_many_steps(loss, solver):
    """No digits are lost over hundreds of steps."""
    X, y = problem(loss, 12, n=8)
    G = gram(X, **KERNELS["laplacian"])
    offset = offset_of(loss, y)
    path = reference_path(G, y, loss, 1.1, 400, offset)
    model = plain(loss, "laplacian", solver, step_size=1.1, max_iter=400).fit(X, y)
    assert_allclose(raw(model, X), ref.values(path, G, offset)[-1], **EXACT)


# ------------------------------------------------------------------ what steps preserve


@every_loss
@every_solver
def test_train_loss_is_that_of_the_stages(loss, solver):
    """The path's loss is the mean loss of the predictions at its times."""
    X, y = problem(loss, 13)
    w = np.random.default_rng(1).uniform(0.2, 3.0, size=len(y))
    model = plain(loss, "rbf", solver, step_size=0.9).fit(X, y, w)
    path = model.stopping_path_
    values = staged(model, X, path["t"])
    expected = [mean_loss(loss, y, f, w) for f in values]
    assert_allclose(path["train_loss"], expected, rtol=1e-9)
    assert path["t"][-1] == TIMES[-1]
    assert path["criterion"] is None


@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    share=st.floats(0.02, 1.0),
    kernel=st.sampled_from(["rbf", "laplacian", "linear", "sobolev"]),
    constant=st.booleans(),
)
@settings(max_examples=60)
def test_train_loss_decreases(seed, loss, share, kernel, constant):
    """Steps of at most 1 / (M mu_1) never raise the training loss."""
    X, y = problem(loss, seed, n=12)
    if loss == "exponential":
        model = plain(loss, kernel, learning_rate=share, max_iter=40)
    elif constant:
        largest = ref.eigenvalues(gram(X, **KERNELS[kernel]))[0]
        step = share / (SMOOTHNESS[loss] * largest)
        model = plain(loss, kernel, step_size=step, max_iter=40)
    else:
        model = plain(loss, kernel, learning_rate=share, max_iter=40)
    losses = model.fit(X, y).stopping_path_["train_loss"]
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    start = mean_loss(
        loss,
        y,
        np.zeros((len(y), 3)[: y.ndim + (loss == "softmax")]) + offset_of(loss, y),
    )
    assert losses[0] <= start * (1.0 + 1e-12)


@given(seed=st.integers(0, 10_000), share=st.floats(1.0, 1.98))
@settings(max_examples=20)
def test_squared_loss_decreases_up_to_twice_the_step(seed, share):
    """Squared loss: up to 2 / mu_1 the training loss still decreases."""
    X, y = regression(seed, 10)
    largest = ref.eigenvalues(gram(X, **KERNELS["rbf"]))[0]
    for solver in ("eigh", "gd"):
        model = plain("squared", "rbf", solver, step_size=share / largest, max_iter=30)
        losses = model.fit(X, y).stopping_path_["train_loss"]
        assert np.all(np.diff(losses) < 1e-13)


@pytest.mark.parametrize("solver", ["eigh", "gd"])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_swapped_labels(loss, solver):
    """y -> -y turns the function around."""
    X, y = classification(14)
    found = [
        raw(plain(loss, solver=solver, step_size=0.8).fit(X, labels), X)
        for labels in (y, 1 - y)
    ]
    assert_allclose(found[0], -found[1], rtol=1e-12, atol=1e-14)


@every_loss
def test_scaled_kernel(loss):
    """k -> s k with alpha -> alpha / s leaves the iterates; so do default steps."""
    X, y = problem(loss, 15)
    G = gram(X, **KERNELS["rbf"])
    for options in ({"step_size": 0.8}, {}):
        first = plain(loss, "precomputed", **options).fit(G, y)
        scaled = {name: value / 40.0 for name, value in options.items()}
        second = plain(loss, "precomputed", **scaled).fit(40.0 * G, y)
        assert_allclose(raw(second, 40.0 * G), raw(first, G), rtol=1e-11, atol=1e-12)


def test_softmax_of_two_classes():
    """Softmax with two columns is the logistic loss with a step twice as long."""
    X, y = classification(16)
    G, n = gram(X, **KERNELS["rbf"]), len(y)
    w = np.random.default_rng(2).dirichlet(np.ones(n))
    F, f = np.zeros((n, 2)), np.zeros(n)
    Y = np.eye(2)[y]
    for _ in range(30):
        F = F - 0.9 * G @ Softmax.pull(Y, F, w)
        f = f - 1.8 * G @ Logistic.pull(signs(y), f, w)
        assert_allclose(F[:, 1] - F[:, 0], f, rtol=1e-12)
        assert_allclose(F.sum(axis=1), 0.0, atol=1e-13)
        assert_allclose(
            Softmax.risk(Y, F, w), Logistic.risk(signs(y), f, w), rtol=1e-12
        )


# ----------------------------------------------------------------------------- losses


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_losses_of_labels(loss):
    """Risk, slopes and curvature are those of the definitions, for moderate values."""
    rng = np.random.default_rng(3)
    y, f = rng.choice([-1.0, 1.0], size=9), 2.0 * rng.normal(size=9)
    w = rng.dirichlet(np.ones(9))
    kind = {"logistic": Logistic, "exponential": Exponential}[loss]
    risk = ref.risk(loss, y, f, w)
    slopes = np.array([ref.dphi(loss, a, b) for a, b in zip(y, f, strict=True)])
    bends = np.array([ref.d2phi(loss, a, b) for a, b in zip(y, f, strict=True)])
    assert_allclose(kind.bends(y, f), [slopes, bends], rtol=1e-12)
    if loss == "exponential":
        # Steps on the logarithm of the risk.
        assert_allclose(kind.risk(y, f, w), np.log(risk), rtol=1e-12)
        assert_allclose(kind.pull(y, f, w), w * slopes / risk, rtol=1e-12)
    else:
        assert_allclose(kind.risk(y, f, w), risk, rtol=1e-12)
        assert_allclose(kind.pull(y, f, w), w * slopes, rtol=1e-12)
        assert_allclose(kind.curvature(y, f, w), w @ bends, rtol=1e-12)


@pytest.mark.parametrize(
    "kind", [Logistic, Exponential], ids=lambda kind: kind.__name__
)
def test_losses_far_out(kind):
    """Values at which the exponential overflows give finite slopes and risks."""
    y, w = np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.25)
    f = np.array([1500.0, -1500.0, -1400.0, 1300.0])
    assert np.isfinite(kind.risk(y, f, w))
    slopes = kind.pull(y, f, w)
    assert np.all(np.isfinite(slopes))
    assert slopes[2] < 0.0
    assert_allclose(slopes[:2], 0.0, atol=1e-300)


def test_softmax_loss():
    """Risk and slopes of several classes, at moderate and at huge values."""
    rng = np.random.default_rng(4)
    labels, F = rng.integers(4, size=9), 2.0 * rng.normal(size=(9, 4))
    Y, w = np.eye(4)[labels], rng.dirichlet(np.ones(9))
    assert_allclose(Softmax.risk(Y, F, w), ref.softmax_risk(labels, F, w), rtol=1e-12)
    pull = w[:, None] * (ref.softmax(F) - Y)
    assert_allclose(Softmax.pull(Y, F, w), pull, rtol=1e-11)
    shifted = Softmax.pull(Y, F + 2000.0, w)
    assert_allclose(shifted, pull, rtol=1e-8)


# --------------------------------------------------------------------------- the flow


def make_flow(loss, seed, n=14):
    """The flow of a loss in all eigenvectors; with what the reference needs."""
    X, y = problem(loss, seed, n)
    G = gram(X, **KERNELS["laplacian"])
    mu, U = ref.decompose(G)
    psi = U * np.sqrt(n * mu)
    kind = {"logistic": Logistic, "exponential": Exponential, "softmax": Softmax}[loss]
    targets = np.eye(3)[codes(y)] if loss == "softmax" else signs(y)
    offset = offset_of(loss, y)
    share = np.full((n, 1), 1.0 / n)
    flow = Flow(kind, psi, [None], [mu], targets, share, [offset])
    return flow, G, y, offset


def exact_flow(loss, G, y, offset, times):
    """Values of the differential equation's solution."""
    if loss == "softmax":
        path = ref.flow_softmax(G, codes(y), 3, times, offset)
    else:
        path = ref.flow(
            G, signs(y), loss, times, offset, log_risk=loss == "exponential"
        )
    return ref.values(path, G, offset)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
def test_flow_converges(loss):
    """A finer grid of learning times leads to the flow, with an error of order two."""
    flow, G, y, offset = make_flow(loss, 17)
    end = {"logistic": 12.0, "softmax": 12.0, "exponential": 3.0}[loss]
    expected = exact_flow(loss, G, y, offset, [end])[-1]
    errors = []
    for count in (8, 32, 128):
        *_, last = flow.run(np.linspace(0.0, end, count + 1)[1:])
        errors.append(
            np.abs(last.path(0).values - expected).max() / np.abs(expected).max()
        )
    assert errors[1] < errors[0] / 6.0
    assert errors[2] < errors[1] / 6.0
    assert errors[2] < 1e-3


def test_exposure_of_the_flow():
    """The integral of the curvature over learning time, with an error of order two."""
    flow, G, y, offset = make_flow("logistic", 17)
    etas = np.linspace(0.0, 12.0, 401)
    curvatures = [
        ref.running_curvature("logistic", signs(y), f)
        for f in exact_flow("logistic", G, y, offset, etas)
    ]
    expected = simpson(curvatures, x=etas)
    errors = []
    for count in (8, 32, 128):
        *_, last = flow.run(np.linspace(0.0, 12.0, count + 1)[1:])
        errors.append(abs(last.exposure[0] / expected - 1.0))
    assert errors[1] < errors[0] / 6.0
    assert errors[2] < errors[1] / 6.0
    assert errors[2] < 1e-4


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
def test_flow_is_boosting_with_small_steps(loss):
    """Plain iterations with steps of a sixty-fourth end where the flow ends."""
    flow, G, y, offset = make_flow(loss, 18)
    end, n_steps = 2.0, 512
    *_, joint = flow.run(np.linspace(0.0, end, 129)[1:])
    last = joint.path(0)
    distances = []
    for count in (n_steps // 4, n_steps):
        path = reference_path(
            G, y, loss, end / count, count, offset, loss == "exponential"
        )
        values = ref.values(path[-1:], G, offset)[0]
        distances.append(np.abs(values - last.values).max())
    # The plain iteration has an error of order one.
    assert distances[1] < distances[0] / 3.0
    assert distances[1] < 5e-3 * np.abs(last.values - offset).max()


@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(["logistic", "exponential", "softmax"]),
    ratio=st.floats(1.1, 20.0),
)
@settings(max_examples=40)
def test_flow_decreases_the_risk(seed, loss, ratio):
    """However coarse the grid of times, the risk never rises and stays finite."""
    flow, *_ = make_flow(loss, seed, n=10)
    times = np.geomspace(0.5, 0.5 * ratio**12, 13)
    risks = [flow.start().risk, *(stage.risk for stage in flow.run(times))]
    assert np.all(np.isfinite(risks))
    assert np.all(np.diff(risks, axis=0) <= 1e-12)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_train_loss_of_the_default_decreases(loss, solver):
    """Along the path of a classifier that stops by itself."""
    X, y = problem(loss, 19, n=60)
    with at_the_last_step():
        model = make(loss, solver=solver, random_state=0).fit(X, y)
    path = model.stopping_path_
    assert len(path["t"]) > 6
    assert np.all(np.diff(path["train_loss"]) <= 1e-12)
    assert np.all(np.diff(path["t"]) > 0)
