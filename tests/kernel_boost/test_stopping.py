"""Stopping rules against their definitions, evaluated slowly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from sklearn.exceptions import ConvergenceWarning

from kernel_boost.toy import (
    KERNELS,
    at_the_last_step,
    caught,
    classification,
    codes,
    gram,
    line,
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
from skbounds.kernel_boost import EarlyStoppedKernelBoost, StoppingPathDisplay

SEEDS = [0, 1, 2]
RULES = ["gcv", "cp", "aicc", "loo", "discrepancy", "theory"]

every_seed = pytest.mark.parametrize("seed", SEEDS)
intercepts = pytest.mark.parametrize("intercept", [True, False])
averages = pytest.mark.parametrize("average", [True, False])


def stopped(stopping, X, y, *, seed=0, weights=None, **options):
    """Fit the regressor; the chosen time may be the last."""
    options = {"solver": "eigh", "fit_intercept": True, **options}
    kernel = options.pop("kernel", "rbf")
    with at_the_last_step():
        model = make("squared", kernel, stopping=stopping, **options)
        return model.fit(X, y, weights)


def slow_path(model, X, y, kernel="rbf", weights=None):
    """Statistics of the reference at the times of the model's path."""
    return ref.spectral_path(
        gram(X, **KERNELS[kernel]), y, model.step_size_, model.stopping_path_["t"],
        model.intercept_, model.average, weights,
    )  # fmt: skip


def assert_chosen(model, criterion, df, n, margin=0.0, extra=0.0):
    """The path holds the criterion where it counts, and T is at its minimum."""
    path = model.stopping_path_
    allowed = [ref.allowed(d, n, margin, extra) for d in df]
    allowed = np.array(allowed) & ~np.isnan(criterion)
    assert_allclose(path["df"], df, rtol=1e-8)
    assert_allclose(path["criterion"][allowed], criterion[allowed], rtol=1e-8)
    assert not np.any(np.isfinite(path["criterion"][~allowed]))
    best = ref.select(criterion, df, n, margin, extra)
    assert model.n_iter_ == path["t"][best]
    assert_allclose(model.df_, df[best], rtol=1e-8)


# ---------------------------------------------------------------------- squared loss


@pytest.mark.slow
@every_seed
@intercepts
@averages
@pytest.mark.parametrize("margin", [0.0, 1.0, 2.5])
def test_gcv(seed, intercept, average, margin):
    """df + margin sqrt(df) + the offset, and both guards, on every time of the path."""
    X, y = regression(seed, 16)
    model = stopped(
        "gcv", X, y, kernel="laplacian", fit_intercept=intercept, average=average,
        df_margin=margin, max_iter=3000,
    )  # fmt: skip
    slow = slow_path(model, X, y, "laplacian")
    extra = float(intercept)
    criterion = np.array(
        [
            ref.gcv(rss, df, 16, margin, extra)
            for rss, df in zip(slow["rss"], slow["df"], strict=True)
        ]
    )
    # The guard of the penalty holds for a margin of zero too.
    used = slow["df"] + margin * np.sqrt(slow["df"]) + extra
    criterion[used > 0.95 * 16] = np.nan
    assert_chosen(model, criterion, slow["df"], 16, margin, extra)
    # Not all times are allowed: the guards were needed.
    assert not np.all(np.isfinite(model.stopping_path_["criterion"]))


@pytest.mark.filterwarnings("ignore:The kernel sees the rows")
@pytest.mark.parametrize("n", [5, 10, 20])
def test_guard_of_few_rows(n):
    """Few rows: no fit that nearly interpolates is chosen."""
    for seed in range(10):
        X, y = regression(seed, n, 3)
        model = stopped("gcv", X, y)
        df = model.df_
        assert df <= 0.9 * n
        assert df + np.sqrt(df) + 1.0 <= 0.95 * n or model.n_iter_ == 1


def test_no_time_is_allowed():
    """Where even the first time uses too much, it is the one that is chosen."""
    X, y = regression(0, 3)
    model = stopped("gcv", X, y, df_margin=30.0)
    assert model.n_iter_ == 1


@every_seed
@averages
def test_cp_with_known_noise(seed, average):
    """Mallows' criterion with the noise that is given."""
    X, y = regression(seed, 16)
    model = stopped("cp", X, y, noise=0.4, average=average, max_iter=3000)
    slow = slow_path(model, X, y)
    criterion = np.array(
        [
            ref.mallows_cp(rss, df, 16, 0.4)
            for rss, df in zip(slow["rss"], slow["df"], strict=True)
        ]
    )
    assert_chosen(model, criterion, slow["df"], 16)
    assert model.noise_ == 0.4


@every_seed
def test_cp_with_estimated_noise(seed):
    """The noise of greatest marginal likelihood."""
    X, y = regression(seed, 20)
    model = stopped("cp", X, y, max_iter=3000)
    slow = slow_path(model, X, y)
    criterion = np.array(
        [
            ref.mallows_cp(rss, df, 20, model.noise_)
            for rss, df in zip(slow["rss"], slow["df"], strict=True)
        ]
    )
    assert_chosen(model, criterion, slow["df"], 20)
    G = gram(X, **KERNELS["rbf"])
    assert_allclose(model.noise_, ref.marginal_sigma(G, y), rtol=1e-2)
    # A noise that differs costs likelihood: what was found costs none.
    _, q, _ = ref.evidence(G, y - y.mean())
    scores = [
        ref.marginal_likelihood(G, y - y.mean(), q, s2=s**2)[0]
        for s in (model.noise_, ref.marginal_sigma(G, y))
    ]
    assert scores[0] - scores[1] < 1e-2


@every_seed
@averages
def test_aicc(seed, average):
    """The corrected AIC."""
    X, y = regression(seed, 16)
    model = stopped("aicc", X, y, average=average, max_iter=3000)
    slow = slow_path(model, X, y)
    criterion = np.array(
        [ref.aicc(rss, df, 16) for rss, df in zip(slow["rss"], slow["df"], strict=True)]
    )
    assert_chosen(model, criterion, slow["df"], 16)


@every_seed
@intercepts
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_exact_leave_one_out(seed, intercept, kernel):
    """The criterion equals refits without each row, along the whole path."""
    X, y = regression(seed, 11)
    model = stopped("loo", X, y, kernel=kernel, fit_intercept=intercept, max_iter=60)
    residuals = ref.loo_residuals(
        gram(X, **KERNELS[kernel]), y, model.step_size_, 60,
        "mean" if intercept else "zero",
    )  # fmt: skip
    path = model.stopping_path_
    criterion = np.mean(residuals**2, axis=1)[path["t"].astype(int)]
    assert_allclose(path["criterion"], criterion, rtol=1e-9)
    assert model.n_iter_ == path["t"][np.argmin(criterion)]
    assert len(path["t"]) > 30


@intercepts
def test_exact_leave_one_out_by_estimators(intercept):
    """Without the reference: estimators that are fitted without a row."""
    X, Y = regression(4, 9, m=2)
    model = stopped("loo", X, Y, fit_intercept=intercept, max_iter=25)
    step, times = model.step_size_, model.stopping_path_["t"]
    errors = np.zeros((len(times), 2))
    for i in range(9):
        rest = np.arange(9) != i
        # The step per row that is left is that of all rows.
        part = make(
            "squared", solver="gd", stopping=None, max_iter=25, step_size=step * 8 / 9,
            fit_intercept=intercept,
        ).fit(X[rest], Y[rest])  # fmt: skip
        found = np.array(list(part.staged_predict(X[[i]], t=times)))
        errors += (found[:, 0] - Y[i]) ** 2 / 9
    assert_allclose(model.stopping_path_["criterion"], errors, rtol=1e-9)
    assert_array_equal(model.n_iter_, times[np.argmin(errors, axis=0)])


@every_seed
@averages
@pytest.mark.parametrize("noise", [0.3, 0.6, 1.0])
def test_discrepancy(seed, average, noise):
    """The first time whose residual is as small as the noise."""
    X, y = regression(seed, 16)
    model = stopped("discrepancy", X, y, noise=noise, average=average, max_iter=40)
    slow = slow_path(model, X, y)
    first = ref.select_discrepancy(slow["rss"], noise)
    assert model.n_iter_ == model.stopping_path_["t"][first]


@every_seed
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("noise, norm", [(0.4, 2.0), (2.0, 1.0), (0.05, 5.0)])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_theory_with_known_noise_and_norm(seed, kernel, noise, norm, solver):
    """T = floor(1 / (alpha delta^2)), at least 1, with delta of noise over norm."""
    X, y = regression(seed, 20)
    model = stopped(
        "theory", X, y, kernel=kernel, noise=noise, norm=norm, solver=solver
    )
    mu = ref.eigenvalues(gram(X, **KERNELS[kernel]))
    squared = ref.critical_radius_bisection(mu, noise / norm, 20)
    assert_allclose(model.critical_radius_, np.sqrt(squared), rtol=1e-7)
    assert (model.noise_, model.norm_) == (noise, norm)
    T = ref.theory_iterations(mu, 20, model.step_size_, noise, norm)
    assert model.n_iter_ == T
    assert model.stopping_path_["criterion"] is None


@every_seed
def test_theory_with_estimates(seed):
    """The estimated noise, and the norm of the fit that cross-validation stops."""
    X, y = regression(seed, 20)
    model = stopped("theory", X, y)
    pilot = stopped("gcv", X, y)
    slow = slow_path(pilot, X, y)
    where = int(np.searchsorted(slow["times"], pilot.n_iter_))
    likely = stopped("cp", X, y)
    assert_allclose(model.noise_, likely.noise_, rtol=1e-6)
    assert_allclose(model.norm_, slow["norm"][where], rtol=1e-6)
    squared = ref.critical_radius_bisection(
        model.eigenvalues_, model.noise_ / model.norm_, 20
    )
    assert_allclose(model.critical_radius_**2, squared, rtol=1e-7)
    assert model.n_iter_ == max(1, np.floor(1.0 / (model.step_size_ * squared)))


@pytest.mark.parametrize(
    "scale, factor, shift", [(30.0, 1.0, 0.0), (1.0, -4.0, 7.0), (0.01, 100.0, -3.0)]
)
@pytest.mark.parametrize("stopping", ["theory", "gcv", "cp", "aicc", "loo"])
def test_rules_have_no_units(stopping, scale, factor, shift):
    """k -> s k and y -> a y + b leave T as it is; the function follows."""
    X, y = regression(5, 24, 1)
    y = np.sin(3.0 * X[:, 0]) + 0.3 * (y - 1.0) / np.std(y)
    G = gram(X, **KERNELS["laplacian"])
    last = 400 if stopping == "loo" else 4000
    options = {"kernel": "precomputed", "max_iter": last}
    first = stopped(stopping, G, y, **options)
    second = stopped(stopping, scale * G, factor * y + shift, **options)
    assert second.n_iter_ == first.n_iter_
    assert 1 < first.n_iter_ < last
    assert_allclose(
        second.predict(scale * G), factor * first.predict(G) + shift, rtol=1e-8
    )
    assert_allclose(second.noise_, abs(factor) * first.noise_, rtol=1e-6)
    norm = abs(factor) * first.norm_ / scale**0.5
    assert_allclose(second.norm_, norm, rtol=1e-6)
    radius = first.critical_radius_ * scale**0.5
    assert_allclose(second.critical_radius_, radius, rtol=1e-6)


@pytest.mark.parametrize(
    "stopping, solver",
    [
        (stopping, solver)
        for stopping in (*RULES, "validation", None)
        for solver in ("eigh", "lowrank", "gd")
        # Exact leave-one-out needs all eigenvectors.
        if (stopping, solver) != ("loo", "lowrank")
    ],
)
def test_radius_is_always_there(stopping, solver):
    """Every rule leaves the critical radius of its noise and norm."""
    X, y = regression(6, 24)
    model = stopped(stopping, X, y, solver=solver, max_iter=50, random_state=0)
    assert model.noise_ > 0.0
    assert model.norm_ > 0.0
    squared = ref.critical_radius_bisection(
        model.eigenvalues_, model.noise_ / model.norm_, 24
    )
    assert_allclose(model.critical_radius_**2, squared, rtol=1e-7)


@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", None])
@averages
def test_norm_of_the_fit(stopping, average):
    """norm_ is the Hilbert norm of the function without its offset."""
    X, y = regression(7, 20)
    model = stopped(stopping, X, y, kernel="laplacian", average=average, max_iter=80)
    G = gram(model.X_fit_, **KERNELS["laplacian"])
    assert_allclose(model.norm_, ref.hilbert_norm(model.dual_coef_, G), rtol=1e-6)


@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", "loo"])
def test_a_time_per_output(stopping):
    """Outputs are stopped one by one: each as if it were alone."""
    X, Y = regression(8, 20, m=3)
    Y[:, 2] = np.random.default_rng(0).normal(size=20)
    options = {} if stopping == "loo" else {"noise": 0.5}
    model = stopped(stopping, X, Y, max_iter=500, **options)
    alone = [stopped(stopping, X, y, max_iter=500, **options) for y in Y.T]
    assert_array_equal(model.n_iter_, [one.n_iter_ for one in alone])
    predicted = np.column_stack([one.predict(X) for one in alone])
    assert_allclose(model.predict(X), predicted, rtol=1e-9, atol=1e-10)
    path = model.stopping_path_
    for name in ("criterion", "train_loss"):
        expected = np.column_stack([one.stopping_path_[name] for one in alone])
        assert_allclose(path[name], expected, rtol=1e-9)
    for name in ("noise_", "norm_", "critical_radius_", "df_", "intercept_"):
        expected = [getattr(one, name) for one in alone]
        assert_allclose(getattr(model, name), expected, rtol=1e-7)
    assert path["df"].shape == path["t"].shape


@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
def test_one_rule_for_all_solvers(solver):
    """The chosen time and the path do not depend on how the path was computed."""
    X, y = regression(9, 24)
    expected = stopped("gcv", X, y, kernel="laplacian", max_iter=200)
    model = stopped(
        "gcv", X, y, kernel="laplacian", max_iter=200, solver=solver, max_rank=24,
        rank_tol=0.0, rank_gain_tol=0.0, random_state=0, step_size=expected.step_size_,
    )  # fmt: skip
    assert model.n_iter_ == expected.n_iter_
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-8)
    for name in ("criterion", "df", "train_loss"):
        theirs = np.interp(
            model.stopping_path_["t"], expected.stopping_path_["t"],
            expected.stopping_path_[name],
        )  # fmt: skip
        common = np.isin(model.stopping_path_["t"], expected.stopping_path_["t"])
        assert common.sum() > 20
        assert_allclose(model.stopping_path_[name][common], theirs[common], rtol=1e-7)


# ------------------------------------------------------------------------- validation


@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential", "softmax"])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_validation_with_own_data(loss, solver):
    """T is where the loss of the staged predictions on the user's rows is least."""
    X, y = problem(loss, 10, n=30)
    X_val, y_val = problem(loss, 10, n=40)
    X_val = X_val + np.random.default_rng(0).uniform(0.0, 0.1, size=X_val.shape)
    rate = {"learning_rate": 0.5}
    with at_the_last_step():
        model = make(
            loss, stopping="validation", solver=solver, max_iter=120,
            n_iter_no_change=10_000, **rate,
        ).fit(X, y, X_val=X_val, y_val=y_val)  # fmt: skip
    times = model.stopping_path_["t"]
    full = make(loss, stopping=None, solver="gd", max_iter=120, **rate).fit(X, y)
    found = staged(full, X_val, times)
    if loss == "exponential":
        # Of the probabilities: a few rows far out do not decide.
        losses = np.array([ref.deviance(loss, signs(y_val), f) for f in found])
    else:
        losses = np.array([mean_loss(loss, y_val, f) for f in found])
    slack = 1e-9 if loss == "squared" or solver == "gd" else 5e-2
    where = int(np.searchsorted(times, model.n_iter_))
    assert losses[where] <= losses.min() * (1.0 + slack)
    assert_allclose(model.stopping_path_["criterion"], losses, rtol=max(slack, 1e-8))
    if slack < 1e-8:
        assert_allclose(
            raw(model, X_val), raw_at(full, X_val, model.n_iter_), rtol=1e-8
        )


def raw_at(model, X, t):
    """Function values after t steps; rows of several classes are centred already."""
    return staged(model, X, [t])[0]


def test_validation_on_the_line():
    """Also of the spline kernel of one feature."""
    X, y = line(11, 60, 5)
    X_val, y_val = line(12, 40)
    y_val = np.abs(X_val[:, 0] - 1.0)
    model = make(
        "squared", "sobolev", stopping="validation", n_iter_no_change=10_000
    ).fit(X, y, X_val=X_val, y_val=y_val)
    path = model.stopping_path_
    full = make("squared", "sobolev", stopping=None, max_iter=int(path["t"][-1])).fit(
        X, y
    )
    found = np.array(list(full.staged_predict(X_val, t=path["t"])))
    losses = np.mean((found - y_val) ** 2, axis=1) / 2.0
    assert_allclose(path["criterion"], losses, rtol=1e-6)
    assert model.n_iter_ == path["t"][np.argmin(losses)]
    assert 1 < model.n_iter_ < path["t"][-1]


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("solver", ["eigh", "gd", "lowrank"])
@pytest.mark.parametrize("weighted", [False, True])
def test_validation_with_a_kernel_matrix(loss, solver, weighted):
    """Validation rows are rows of the kernel with all training rows."""
    X, y = problem(loss, 13, n=61)
    X, X_val, y, y_val = X[:40], X[40:], y[:40], y[40:]
    w = np.random.default_rng(0).integers(0, 3, size=40) if weighted else None
    options = {
        "stopping": "validation",
        "solver": solver,
        "max_iter": 200,
        "max_rank": 40,
        "rank_tol": 0.0,
        "rank_gain_tol": 0.0,
        "random_state": 0,
    }
    G, cross = (gram(rows, X, **KERNELS["laplacian"]) for rows in (X, X_val))
    with at_the_last_step():
        direct = make(loss, "laplacian", **options).fit(
            X, y, w, X_val=X_val, y_val=y_val
        )
        model = make(loss, "precomputed", **options).fit(
            G, y, w, X_val=cross, y_val=y_val
        )
    assert model.n_iter_ == direct.n_iter_
    expected = direct.stopping_path_["criterion"]
    assert_allclose(model.stopping_path_["criterion"], expected, rtol=1e-8)
    assert_allclose(raw(model, cross), raw(direct, X_val), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("patience", [1, 3])
def test_patience(patience):
    """The path is left at the first best time that so many others do not beat."""
    X, y = regression(11, 30)
    X_val, y_val = regression(12, 12)
    options = {"stopping": "validation", "solver": "eigh", "max_iter": 3000}
    with at_the_last_step():
        model = make("squared", "laplacian", **options, n_iter_no_change=patience)
        model.fit(X, y, X_val=X_val, y_val=y_val)
    path = model.stopping_path_
    best = 0
    for k, value in enumerate(path["criterion"]):
        if value < path["criterion"][best]:
            best = k
        elif k - best >= patience:
            break
    assert model.n_iter_ == path["t"][best]


def test_validation_weights():
    """Validation rows of weight zero are not there; weights are repetitions."""
    X, y = regression(11, 30)
    X_val, y_val = regression(12, 12)
    counts = np.array([0, 1, 2] * 4)
    options = {"stopping": "validation", "solver": "eigh", "max_iter": 300}
    with at_the_last_step():
        model = make("squared", **options).fit(
            X, y, X_val=X_val, y_val=y_val, sample_weight_val=counts
        )
        again = make("squared", **options).fit(
            X, y, X_val=np.repeat(X_val, counts, axis=0), y_val=np.repeat(y_val, counts)
        )
        plain = make("squared", **options).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_iter_ == again.n_iter_
    path = model.stopping_path_["criterion"]
    assert_allclose(path, again.stopping_path_["criterion"], rtol=1e-10)
    assert np.abs(path / plain.stopping_path_["criterion"] - 1.0).max() > 1e-3


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_validation_with_a_split(loss, solver):
    """An internal split: the same for the same seed, and all rows in the end."""
    X, y = problem(loss, 13, n=60)
    found = []
    for seed in (0, 0, 1):
        with at_the_last_step():
            model = make(
                loss, stopping="validation", solver=solver, max_iter=200,
                validation_fraction=0.3, random_state=seed,
            ).fit(X, y)  # fmt: skip
        found.append(raw(model, X))
        assert 1 <= model.n_iter_ <= 200
        assert len(model.X_fit_) == 60
    assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0.0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_learning_time_of_all_rows(loss, solver):
    """A time found on half of the rows counts twice: steps per row are half as long.

    Where there is no signal the first step is often the best: no fit then takes fewer
    than two.
    """
    times = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(size=(80, 1)), rng.normal(size=80)
        y = y if loss == "squared" else y > 0.0
        with at_the_last_step():
            model = make(
                loss, "rbf", stopping="validation", validation_fraction=0.5,
                solver=solver, random_state=seed,
            ).fit(X, y)  # fmt: skip
        times.append(model.n_iter_)
    assert min(times) == 2


# ---------------------------------------------------------------------- classification


def slow_aic(model, loss, X, y, margin):
    """AIC with the running curvature, from the reference's flow."""
    G, path = gram(X, **KERNELS["laplacian"]), model.stopping_path_
    offset, mu = offset_of(loss, y), ref.eigenvalues(gram(X, **KERNELS["laplacian"]))
    etas = model.step_size_ * path["t"]
    if loss == "softmax":
        flow = ref.flow_softmax(G, codes(y), 3, etas, offset)
    else:
        flow = ref.flow(G, signs(y), loss, etas, offset, log_risk=loss == "exponential")
    criterion = []
    for eta, f in zip(etas, ref.values(flow, G, offset), strict=True):
        if loss == "softmax":
            df = ref.df_softmax(mu, f, eta)
            value = ref.softmax_risk(codes(y), f)
            criterion.append(value + (df + margin * np.sqrt(df)) / len(y))
            continue
        labels = signs(y)
        curvature = ref.running_curvature(loss, labels, f)
        # Log-risk steps: the plain risk's learning time is eta over the risk.
        time = eta / ref.risk(loss, labels, f) if loss == "exponential" else eta
        df = ref.df_classification(mu, time, curvature)
        criterion.append(ref.aic(loss, labels, f, df, margin))
    return np.array(criterion)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_aic(loss, margin):
    """The criterion is the deviance plus (df + margin sqrt(df)) / n, nearly.

    The flow is integrated in coarse steps and the curvature may be averaged over the
    path or be that of its end: the criterion is one of moderate accuracy.
    """
    X, y = problem(loss, 14, n=30)
    with at_the_last_step():
        model = make(
            loss, "laplacian", stopping="aic", solver="eigh", df_margin=margin,
            max_iter=200,
        ).fit(X, y)  # fmt: skip
    criterion = slow_aic(model, loss, X, y, margin)
    path = model.stopping_path_
    near = path["t"] <= 2 * model.n_iter_
    assert_allclose(path["criterion"][near], criterion[near], rtol=0.1)
    assert model.n_iter_ == path["t"][np.argmin(path["criterion"])]


def left_out_losses(loss, X, y, step, n_steps):
    """Mean log-loss of refits without each row after 0, ..., n_steps steps."""
    scores = ref.loo_scores(
        gram(X, **KERNELS["laplacian"]), signs(y), loss, step, n_steps,
        offset_of(loss, y), log_risk=loss == "exponential",
    )  # fmt: skip
    return np.array([ref.deviance(loss, signs(y), f) for f in scores])


@every_seed
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_approximate_leave_one_out(loss, solver, seed):
    """The chosen time has nearly the least leave-one-out loss of refits."""
    X, y = problem(loss, seed, n=24)
    options = {"stopping": "alo", "solver": solver, "max_iter": 60}
    with at_the_last_step():
        model = make(loss, "laplacian", **options).fit(X, y)
    losses = left_out_losses(loss, X, y, model.step_size_, 60)
    assert losses[model.n_iter_] <= 1.03 * losses[1:].min()
    path = model.stopping_path_
    near = path["t"] <= model.n_iter_
    expected = losses[path["t"].astype(int)]
    assert_allclose(path["criterion"][near], expected[near], rtol=0.05)


@pytest.mark.parametrize("loss", ["softmax", "exponential"])
def test_approximate_leave_one_out_of_three_classes(loss):
    """Several classes, against fits without each row."""
    X, y = classification(23, 24, n_classes=3)
    options = {"solver": "gd", "fit_intercept": False, "max_iter": 50}
    with at_the_last_step():
        model = make(loss, "laplacian", stopping="alo", **options).fit(X, y)
    times = np.arange(1, 51)
    losses = np.zeros(50)
    rate = {"learning_rate": 1.0} if loss == "exponential" else {}
    for i in range(24):
        rest = np.arange(24) != i
        if loss == "softmax":
            # The step per row that is left is that of all rows.
            rate = {"step_size": model.step_size_ * 23 / 24}
        part = make(loss, "laplacian", stopping=None, **options, **rate)
        part.fit(X[rest], y[rest])
        for k, P in enumerate(part.staged_predict_proba(X[[i]], t=times)):
            losses[k] -= np.log(P[0, y[i]]) / 24
    assert losses[model.n_iter_ - 1] <= 1.03 * losses.min()


@every_seed
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_bracketed_leave_one_out(loss, seed):
    """ "auto" looks at the times around the least AIC, and does not lose by it."""
    X, y = problem(loss, seed, n=24)
    options = {"solver": "eigh", "max_iter": 200}
    with at_the_last_step():
        aic = make(loss, "laplacian", stopping="aic", **options).fit(X, y)
        model = make(loss, "laplacian", stopping="auto", **options).fit(X, y)
    t = aic.stopping_path_["t"]
    assert_array_equal(model.stopping_path_["t"], t)
    assert abs(np.argmax(t == model.n_iter_) - np.argmax(t == aic.n_iter_)) <= 3
    last = max(model.n_iter_, aic.n_iter_)
    losses = left_out_losses(loss, X, y, model.step_size_, last)
    assert losses[model.n_iter_] <= 1.02 * losses[aic.n_iter_]


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_theory_of_classifiers(loss, solver):
    """delta of noise over norm; T = floor(1 / (alpha m delta^2)), m of the classes."""
    X, y = classification(16, 30)
    y[:6] = 1
    with at_the_last_step():
        model = make(
            loss, "laplacian", stopping="theory", solver=solver, noise=2.0, norm=3.0
        ).fit(X, y)  # fmt: skip
    mu = ref.eigenvalues(gram(X, **KERNELS["laplacian"]))
    squared = ref.critical_radius_bisection(mu, 2.0 / 3.0, 30)
    assert_allclose(model.critical_radius_**2, squared, rtol=1e-7)
    assert (model.noise_, model.norm_) == (2.0, 3.0)
    m = ref.frequency_curvature(loss, signs(y))
    if loss == "logistic":
        assert model.n_iter_ == max(1, np.floor(1.0 / (model.step_size_ * m * squared)))
    else:
        # Log-risk steps count in units of the risk, which begins at m.
        time = 1.0 / (model.step_size_ * squared)
        assert 0.5 * time - 1.0 <= model.n_iter_ <= time + 1.0


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_noise_of_classifiers(loss):
    """The noise of the working response is known up to the class share."""
    X, y = classification(17, 40)
    y[:8] = 1
    with at_the_last_step():
        model = make(loss, stopping="aic", solver="eigh").fit(X, y)
    name = "logistic" if loss == "logistic" else "exponential"
    _, noise = ref.curvature_and_noise(name, np.mean(y == 1))
    assert_allclose(model.noise_, noise, rtol=0.05)
    squared = ref.critical_radius_bisection(
        model.eigenvalues_, model.noise_ / model.norm_, 40
    )
    assert_allclose(model.critical_radius_**2, squared, rtol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
@pytest.mark.parametrize("stopping", ["auto", "alo", "aic", "theory", "validation"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd"])
def test_every_rule_of_classifiers(loss, stopping, solver):
    """All attributes are there, and the train loss is that of the prediction."""
    X, y = problem(loss, 18, n=45)
    with at_the_last_step():
        model = make(
            loss, stopping=stopping, solver=solver, max_iter=150, random_state=0
        ).fit(X, y)  # fmt: skip
    path = model.stopping_path_
    assert {"t", "criterion", "df", "train_loss"} <= set(path)
    assert path["t"].ndim == path["train_loss"].ndim == path["df"].ndim == 1
    assert 1 <= model.n_iter_ <= 150
    for name in ("critical_radius_", "noise_", "norm_", "df_", "step_size_"):
        assert np.isfinite(getattr(model, name)) and getattr(model, name) > 0.0, name
    where = np.flatnonzero(path["t"] == model.n_iter_)
    if len(where) and stopping != "validation":
        found = mean_loss(loss, y, raw(model, X))
        assert_allclose(path["train_loss"][where[0]], found, rtol=1e-7)
    f = model.decision_function(X)
    assert f.shape == ((45, 3) if loss == "softmax" else (45,))


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
def test_flow_is_near_to_the_plain_iteration(loss):
    """A classifier that stops by itself is where that many steps lead, nearly."""
    X, y = problem(loss, 19, n=40)
    with at_the_last_step():
        model = make(loss, "laplacian", stopping="aic", solver="eigh").fit(X, y)
    G, T = gram(X, **KERNELS["laplacian"]), model.n_iter_
    # A quarter of the step: nearer to the flow.
    path = reference_path(
        G, y, loss, model.step_size_ / 4, 4 * T, offset_of(loss, y),
        loss == "exponential",
    )  # fmt: skip
    f = ref.values(path[-1:], G, offset_of(loss, y))[0]
    deviation = np.abs(raw(model, X) - f).max() / np.abs(f).max()
    assert deviation < 0.06


# ------------------------------------------------------------------- limits and picture


@pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd"])
def test_limit_is_reached(solver):
    """A warning where the rule would have gone on; none for a given number of steps."""
    X, y = regression(20, 40)
    options = {"solver": solver, "max_iter": 2, "random_state": 0}
    model = make("squared", **options)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert not caught(make("squared", stopping=None, **options).fit, X, y)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "softmax"])
def test_limit_is_reached_by_classifiers(loss):
    """Classifiers say so too."""
    X, y = problem(loss, 21, n=60)
    model = make(loss, solver="eigh", max_iter=1, learning_rate=0.05)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("stopping", ["rule", "theory", None])
def test_display(loss, stopping):
    """The picture holds the path, T and the theory's T."""
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    X, y = problem(loss, 22, n=40)
    options = {} if stopping == "rule" else {"stopping": stopping}
    with at_the_last_step():
        model = make(loss, solver="eigh", max_iter=300, **options).fit(X, y)
    display = StoppingPathDisplay.from_estimator(model)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xscale() == "log"
    marked = [
        line.get_xdata()[0]
        for line in display.ax_.lines
        if len(set(np.ravel(line.get_xdata()))) == 1
    ]
    assert np.any(np.isclose(np.array(marked, dtype=float), model.n_iter_))
    pyplot.close(display.figure_)


@pytest.mark.parametrize("kernel", ["rbf", "sobolev"])
@pytest.mark.parametrize("weighted", [False, True])
def test_noise_by_residuals(kernel, weighted):
    """What a fit takes of pure noise is given back: the trace of (I - S)'(I - S)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, size=(30, 1))
    y = np.sin(5.0 * X[:, 0]) + 0.3 * rng.normal(size=30)
    weight = rng.integers(1, 4, size=30) if weighted else np.ones(30, dtype=int)
    rows = np.repeat(np.arange(30), weight)
    # Copies of a row are fitted exactly by the rule that has only them.
    rules = [(None, {"max_iter": 40}), ("gcv", {})]
    for stopping, more in rules[: 1 if weighted else 2]:
        model = EarlyStoppedKernelBoost(kernel, stopping=stopping, **more)
        if kernel == "rbf":
            model.set_params(gamma=2.0)
        model.fit(X, y, sample_weight=weight if weighted else None)
        n = len(rows)
        mu = ref.eigenvalues(ref.gram(X[rows], kernel=kernel, gamma=2.0))
        h = 1.0 - (1.0 - model.step_size_ * np.clip(mu, 0.0, None)) ** model.n_iter_
        rss = np.sum((y - model.predict(X))[rows] ** 2)
        free = n - 1.0 - np.sum(2.0 * h - h**2)
        assert_allclose(model.noise_, np.sqrt(rss / free), rtol=1e-6)


def test_noise_of_pure_noise():
    """On average it is what it is; that of greatest likelihood is two thirds of it."""
    found, likely = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
        for stopping, store in (("gcv", found), ("cp", likely)):
            model = EarlyStoppedKernelBoost(stopping=stopping, random_state=0)
            store.append(model.fit(X, y).noise_)
    assert 0.85 < np.mean(found) < 1.1
    assert np.mean(likely) < 0.8
