"""The five-point examples: every number that an independent program found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import kernel_boost as ref

from kernel_boost.oracles import GAMMAS, LABELS, NUMBERS, STEP, WEIGHTS, X, Y
from kernel_boost.toy import at_the_last_step, mean_loss, raw, staged
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
)
from skbounds.kernel_boost._filters import boosting_filter
from skbounds.kernel_boost._radius import (
    critical_radius,
    localised_complexity,
    theory_time,
)

X, Y, LABELS = np.array(X)[:, None], np.array(Y), np.array(LABELS)
POINTS = np.array([[0.0], [0.5], [1.0]])
# The numbers were written down with twelve digits.
EXACT = {"rtol": 1e-10, "atol": 1e-11}

# (eigenvalue mu_1, delta^2, 1 / (0.75 delta^2)) of x_i = (i - 1/2) / n, variance 1/2.
RADII = {
    50: (1.35109155035, 0.0371392856291, 35.9008879883),
    100: (1.3510483026, 0.0234429124219, 56.8757545709),
    200: (1.3510374908, 0.0143842375246, 92.6940570225),
    400: (1.35103478786, 0.00898104726477, 148.4607857),
}
# Gaussian width over R, from 300 draws with n = 50.
WIDTHS = {
    0.1: 1.21079650966,
    0.2: 1.19760772843,
    0.4: 1.17303785173,
    0.8: 1.07647969842,
}

every_kernel = pytest.mark.parametrize("kernel", list(NUMBERS))
every_loss = pytest.mark.parametrize("loss", ["squared", "logistic", "exponential"])
every_solver = pytest.mark.parametrize("solver", ["eigh", "gd"])


def boosted(loss, kernel, solver="eigh", y=None, weights=None, rows=X, **options):
    """Fit the plain iteration with the examples' step size."""
    options = {
        "kernel": kernel,
        "gamma": GAMMAS.get(kernel),
        "solver": solver,
        "fit_intercept": False,
        "step_size": STEP,
        "stopping": None,
        "max_iter": 20,
        **options,
    }
    if loss == "squared":
        model = EarlyStoppedKernelBoost(**options)
        return model.fit(rows, Y if y is None else y, weights)
    name = {"logistic": "log_loss", "exponential": "exponential"}[loss]
    model = EarlyStoppedKernelBoostClassifier(loss=name, **options)
    return model.fit(rows, LABELS if y is None else y, weights)


def position(model, t):
    """Where a time is on the stopping path."""
    k = int(np.searchsorted(model.stopping_path_["t"], t))
    assert model.stopping_path_["t"][k] == t
    return k


@every_kernel
@every_loss
@every_solver
def test_iterates(kernel, loss, solver):
    """f^1, f^2, f^5 and f^20 on the rows, as stages of one fit."""
    model = boosted(loss, kernel, solver)
    expected = [NUMBERS[kernel][f"{loss} f^{t}"] for t in (1, 2, 5, 20)]
    assert_allclose(staged(model, X, [1, 2, 5, 20]), expected, **EXACT)
    assert_allclose(raw(model, X), expected[-1], **EXACT)
    assert model.n_iter_ == 20
    assert model.step_size_ == STEP
    assert np.all(model.intercept_ == 0.0)


@every_kernel
@every_loss
@every_solver
def test_new_points(kernel, loss, solver):
    """f^20 away from the rows."""
    model = boosted(loss, kernel, solver)
    expected = NUMBERS[kernel][f"{loss} f^20 at 0, .5, 1"]
    assert_allclose(raw(model, POINTS), expected, **EXACT)


@every_kernel
@every_loss
@every_solver
def test_averages(kernel, loss, solver):
    """The averaged iterate on the rows and away from them."""
    model = boosted(loss, kernel, solver, average=True)
    numbers = NUMBERS[kernel]
    assert_allclose(raw(model, X), numbers[f"{loss} fbar^20"], **EXACT)
    expected = numbers[f"{loss} fbar^20 at 0, .5, 1"]
    assert_allclose(raw(model, POINTS), expected, **EXACT)


@every_kernel
@every_loss
@every_solver
def test_coefficients(kernel, loss, solver):
    """The dual coefficients, in the order of the rows that they belong to."""
    model = boosted(loss, kernel, solver)
    expected = np.array(NUMBERS[kernel][f"{loss} c^20"])
    assert_allclose(model.dual_coef_, expected[model.landmark_indices_], rtol=1e-7)
    assert_allclose(model.X_fit_, X[model.landmark_indices_])
    assert sorted(model.landmark_indices_) == [0, 1, 2, 3, 4]


@every_kernel
@every_loss
@every_solver
def test_train_loss(kernel, loss, solver):
    """The mean loss along the path."""
    model = boosted(loss, kernel, solver)
    expected = NUMBERS[kernel][f"{loss} L_n at 0,1,2,5,20"][1:]
    found = model.stopping_path_["train_loss"]
    found = [found[position(model, t)] for t in (1, 2, 5, 20)]
    assert_allclose(found, expected, **EXACT)


@every_kernel
@every_loss
@every_solver
def test_weights(kernel, loss, solver):
    """f^5 of weighted rows."""
    model = boosted(loss, kernel, solver, weights=WEIGHTS, max_iter=5)
    assert_allclose(raw(model, X), NUMBERS[kernel][f"{loss} weights: f^5"], **EXACT)


@every_kernel
@every_loss
@every_solver
def test_offset(kernel, loss, solver):
    """f^5 from an offset of 0.2.

    A sixth row, which the kernel separates from all others and from itself, moves the
    offset and nothing else; the step makes up for its weight.
    """
    G = np.zeros((6, 6))
    G[:5, :5] = ref.gram(X, kernel=kernel, gamma=GAMMAS[kernel])
    if loss == "squared":
        y, extra = np.append(Y, 0.0), Y.sum() / 0.2 - 5.0
    else:
        # Three rows against two and the extra one's weight: the odds that are needed.
        odds = np.exp(0.2 if loss == "logistic" else 0.4)
        y, extra = np.append(LABELS, -1), 3.0 / odds - 2.0
    weights = np.append(np.ones(5), extra)
    model = boosted(
        loss, "precomputed", solver, y, weights, G, max_iter=5, fit_intercept=True,
        step_size=STEP * (5.0 + extra) / 5.0,
    )  # fmt: skip
    assert_allclose(model.intercept_, 0.2, rtol=1e-12)
    expected = NUMBERS[kernel][f"{loss} offset .2: f^5"]
    assert_allclose(raw(model, G)[:5], expected, **EXACT)


@every_kernel
def test_log_risk_steps(kernel):
    """The exponential loss without a step size: steps divided by the mean loss."""
    largest = ref.gram(X, kernel=kernel, gamma=GAMMAS[kernel]).max()
    model = boosted(
        "exponential", kernel, "gd", step_size=None, learning_rate=0.5 * largest
    )
    row = "exponential, log-risk steps a=.5: "
    assert_allclose(raw(model, X), NUMBERS[kernel][f"{row}f^20"], **EXACT)
    assert_allclose(model.step_size_, 0.5, rtol=1e-12)
    risk = NUMBERS[kernel][f"{row}eta_20, L_n(f^20)"][1]
    assert_allclose(model.stopping_path_["train_loss"][-1], risk, **EXACT)


@every_kernel
@every_solver
def test_spectrum(kernel, solver):
    """The eigenvalues of the normalised kernel matrix, in their order."""
    model = boosted("squared", kernel, solver)
    assert_allclose(model.eigenvalues_, NUMBERS[kernel]["mu"], rtol=1e-9)
    assert model.rank_ == 5


@every_kernel
@pytest.mark.parametrize("average", [False, True])
def test_degrees_of_freedom_and_criteria(kernel, average):
    """df, generalised cross-validation and the corrected AIC after 20 steps."""
    row = "squared df, gcv, aicc" + (", averaged" if average else "")
    df, gcv, aicc = NUMBERS[kernel][row]
    model = boosted("squared", kernel, average=average)
    assert_allclose(model.df_, df, **EXACT)
    options = {"average": average, "df_margin": 0.0}
    for stopping, expected in (("gcv", gcv), ("aicc", aicc)):
        with at_the_last_step():
            model = boosted("squared", kernel, stopping=stopping, **options)
        found = model.stopping_path_["criterion"][position(model, 20)]
        if np.isnan(expected):
            # More degrees of freedom than the criterion can judge.
            assert not np.isfinite(found)
        else:
            assert_allclose(found, expected, rtol=1e-9)
        assert_allclose(model.stopping_path_["df"][position(model, 20)], df, **EXACT)


@every_kernel
def test_leave_one_out(kernel):
    """The exact leave-one-out criterion after 1, 5 and 20 steps."""
    with at_the_last_step():
        model = boosted("squared", kernel, stopping="loo")
    found = model.stopping_path_["criterion"]
    found = [found[position(model, t)] for t in (1, 5, 20)]
    assert_allclose(found, NUMBERS[kernel]["squared LOO mse t=1,5,20"], rtol=1e-9)
    residuals = np.array(NUMBERS[kernel]["squared LOO residuals t=20"])
    assert_allclose(found[-1], np.mean(residuals**2), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["sobolev", "laplacian"])
def test_two_hundred_thousand_steps(kernel):
    """The last iterate goes through all targets; no digits are lost on the way."""
    model = boosted("squared", kernel, max_iter=200_000)
    assert_allclose(raw(model, X), Y, atol=1e-13)


@every_kernel
@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0])
def test_theory(kernel, sigma):
    """The critical radius, and the stopping times of three rules that use it."""
    row = f"sigma={sigma}: delta_n^2, T(a=.75), T thm3, T RWY"
    squared, T, T_theorem, T_rwy = NUMBERS[kernel][row]
    model = boosted(
        "squared", kernel, stopping="theory", noise=sigma, norm=1.0, max_iter=None
    )
    radius = model.critical_radius_
    assert_allclose(radius**2, squared, rtol=1e-9)
    assert model.n_iter_ == T
    assert (model.noise_, model.norm_) == (sigma, 1.0)
    assert np.floor(1.0 / (8.0 * radius**2)) == T_theorem
    eta = STEP * np.arange(1, 50)
    inside = localised_complexity(model.eigenvalues_, eta**-0.5, 5)
    allowed = inside <= 1.0 / (2.0 * np.e * sigma * eta)
    assert np.argmin(allowed) == T_rwy
    assert not allowed[int(T_rwy) :].any()


@pytest.mark.parametrize("n", list(RADII))
def test_radius_of_the_first_order_spline(n):
    """The critical radius of an equidistant design and the time it leads to."""
    largest, squared, time = RADII[n]
    x = (np.arange(n) + 0.5) / n
    mu = ref.eigenvalues(1.0 + np.minimum.outer(x, x))
    assert_allclose(mu[0], largest, rtol=1e-10)
    radius = critical_radius(mu, np.sqrt(0.5), 1.0, n)
    assert_allclose(radius**2, squared, rtol=1e-10)
    assert theory_time(radius, STEP) == np.floor(time)
    model = EarlyStoppedKernelBoost(
        "sobolev", stopping="theory", noise=np.sqrt(0.5), norm=1.0, step_size=STEP,
        solver="eigh", fit_intercept=False,
    ).fit(x[:, None], np.cos(3.0 * x))  # fmt: skip
    assert model.n_iter_ == np.floor(time)
    assert_allclose(model.critical_radius_**2, squared, rtol=1e-9)


@pytest.mark.parametrize("delta", list(WIDTHS))
def test_gaussian_width(delta):
    """R bounds the Gaussian width up to the ratio that a simulation found.

    Both simulations err; four standard errors fail once in 15 000 runs.
    """
    x = (np.arange(50) + 0.5) / 50
    G = 1.0 + np.minimum.outer(x, x)
    R = localised_complexity(ref.eigenvalues(G), np.array(delta), 50)
    rng = np.random.default_rng(7)
    mean, error = ref.localised_complexity(G, delta, 60, rng)
    both = error * np.sqrt(1.0 + 60.0 / 300.0)
    assert abs(mean / R - WIDTHS[delta]) < 4.0 * both / R


@every_solver
def test_one_row(solver):
    """n = 1, G = 2, y = 3, step 1/4: f = 1.5, 2.25, 2.625."""
    model = boosted(
        "squared", "precomputed", solver, np.array([3.0]), rows=np.array([[2.0]]),
        step_size=0.25, max_iter=3,
    )  # fmt: skip
    found = staged(model, np.array([[2.0]]), [1, 2, 3])
    assert_allclose(found[:, 0], [1.5, 2.25, 2.625], rtol=1e-14)


@every_kernel
def test_filters_alone(kernel):
    """The filters' sums are the degrees of freedom, without an estimator."""
    mu = np.array(NUMBERS[kernel]["mu"])
    for average, row in ((False, ""), (True, ", averaged")):
        h = boosting_filter(mu, STEP, np.array([20.0]), average=average)
        df = NUMBERS[kernel]["squared df, gcv, aicc" + row][0]
        assert_allclose(h.sum(axis=1), df, rtol=1e-9)


@every_kernel
@every_loss
def test_mean_loss_of_the_tests(kernel, loss):
    """The tests' own mean loss gives the numbers of the path."""
    y = Y if loss == "squared" else LABELS
    f = np.array(NUMBERS[kernel][f"{loss} f^20"])
    expected = NUMBERS[kernel][f"{loss} L_n at 0,1,2,5,20"][-1]
    assert_allclose(mean_loss(loss, y, f), expected, rtol=1e-10)
