"""The objects of the theory against closed forms, limits and slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit

from kernel_boost import slow_references as slow
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    boosting_constants,
    critical_radius,
    exponential_family,
    kernel_regularity,
    literal_stopping_time,
    localised_complexity,
    population_critical_radius,
    sobolev_eigenvalues,
    stopped_error_bound,
)

spectra = st.lists(st.floats(1e-6, 2.0), min_size=1, max_size=12).map(
    lambda values: np.sort(values)[::-1]
)


def sobolev_matrix(n):
    x = (np.arange(n) + 0.5) / n
    return (1.0 + np.minimum.outer(x, x)) / n


# ------------------------------------------------------------------------ complexity


@given(mu=spectra, delta=st.floats(1e-3, 3.0))
def test_capped(mu, delta):
    n = len(mu)
    expected = np.sqrt(np.minimum(delta**2, mu).sum() / n)
    assert_allclose(localised_complexity(mu, delta, n), expected)
    several = localised_complexity(mu, [delta, 2.0 * delta], n)
    assert_allclose(several[0], expected)
    assert several.shape == (2,)


@pytest.mark.parametrize("delta", [0.05, 0.3, 1.0])
def test_gaussian(delta):
    """The supremum over two ellipsoids, draw by draw, and within constants of R."""
    mu = np.linalg.eigvalsh(sobolev_matrix(40))[::-1]
    found = localised_complexity(
        mu, delta, 40, kind="gaussian", n_draws=4000, random_state=0
    )
    mean, error = slow.gaussian_complexity(mu, delta, 40, 400, 1)
    assert abs(found - mean) < 5.0 * error
    ratio = found / localised_complexity(mu, delta, 40)
    assert 0.5 < ratio < np.sqrt(2.0) + 0.05


def test_gaussian_limits():
    """Of a large ball only the norm counts, of a small one only the size."""
    mu = np.array([1.0, 0.5, 0.25])
    how = {"kind": "gaussian", "n_draws": 2000, "random_state": 0}
    z = np.random.RandomState(0).normal(size=(2000, 3)) ** 2
    large = localised_complexity(mu, 100.0, 3, **how)
    assert_allclose(
        large, np.sqrt((z * mu).sum(axis=1)).mean() / np.sqrt(3.0), rtol=1e-6
    )
    small = localised_complexity(mu, 1e-4, 3, **how)
    assert_allclose(
        small, 1e-4 * np.sqrt(z.sum(axis=1)).mean() / np.sqrt(3.0), rtol=1e-6
    )
    assert localised_complexity(mu, 0.0, 3, **how) == 0.0
    tiny = localised_complexity(1e-200 * mu, 0.3e-100, 3, **how)
    assert_allclose(tiny, 1e-100 * localised_complexity(mu, 0.3, 3, **how), rtol=1e-9)


# --------------------------------------------------------------------------- radius


@given(mu=spectra, noise=st.floats(0.01, 5.0), norm=st.floats(0.1, 10.0))
def test_radius(mu, noise, norm):
    """At the radius the complexity is that of the noise; below it is more."""
    n = len(mu)
    delta = critical_radius(mu, noise, n, norm=norm)
    R = localised_complexity(mu, delta, n)
    assert_allclose(noise / norm * R, delta**2, rtol=1e-8)
    less = 0.9 * delta
    assert noise / norm * localised_complexity(mu, less, n) > less**2


def test_radius_of_the_gaussian_complexity():
    mu = np.linalg.eigvalsh(sobolev_matrix(50))[::-1]
    how = {"kind": "gaussian", "n_draws": 500, "random_state": 3}
    delta = critical_radius(mu, 0.5, 50, norm=2.0, **how)
    G = localised_complexity(mu, delta, 50, **how)
    assert_allclose(0.25 * G, delta**2, rtol=1e-6)
    capped = critical_radius(mu, 0.5, 50, norm=2.0)
    assert 0.7 < delta / capped < 1.5
    assert critical_radius(mu, 0.0, 50, kind="gaussian") == 0.0


def test_radius_of_the_estimator():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 1)), rng.normal(size=60)
    model = EarlyStoppedKernelBoost(
        "sobolev", solver="eigh", noise=0.7, norm=1.3, stopping="theory"
    ).fit(X, y)
    expected = critical_radius(model.eigenvalues_, 0.7, 60, norm=1.3)
    assert_allclose(model.critical_radius_, expected, rtol=1e-12)


# ------------------------------------------------------------------------ population


def test_sobolev_eigenvalues():
    """Roots of cot w = w; the limit of kernel matrices; the trace of the kernel."""
    mu = sobolev_eigenvalues(2000)
    w = 1.0 / np.sqrt(mu[:50])
    assert_allclose(np.cos(w), w * np.sin(w), atol=1e-9)
    assert (np.diff(mu) < 0.0).all()
    assert_allclose(
        mu[:6], np.linalg.eigvalsh(sobolev_matrix(3000))[::-1][:6], rtol=1e-5
    )
    # The integral of 1 + x, less what the others have.
    assert_allclose(mu.sum() + 1.0 / (np.pi**2 * 2000), 1.5, rtol=1e-5)


@pytest.mark.parametrize("n", [50, 400])
def test_population_radius(n):
    """That of a kernel matrix of many rows, with the noise of few."""
    matrix = np.linalg.eigvalsh(sobolev_matrix(2000))[::-1]
    expected = critical_radius(np.maximum(matrix, 0.0), 0.5, n)
    assert_allclose(population_critical_radius("sobolev", 0.5, n), expected, rtol=0.01)


def test_population_radius_of_decays():
    """Corollary 5: the orders of the radius for polynomial and exponential decay."""
    for beta in (1.0, 2.0):
        found = [
            population_critical_radius(lambda j, b=beta: j ** (-2.0 * b), 1.0, n) ** 2
            for n in (1e3, 1e5)
        ]
        slope = np.log(found[1] / found[0]) / np.log(100.0)
        assert_allclose(slope, -2.0 * beta / (2.0 * beta + 1.0), atol=0.03)
    found = [
        population_critical_radius(lambda j: np.exp(-j), 1.0, n, n_terms=200) ** 2
        for n in (1e3, 1e5)
    ]
    expected = (np.log(1e5) / 1e5) / (np.log(1e3) / 1e3)
    assert_allclose(found[1] / found[0], expected, rtol=0.25)
    with pytest.raises(ValueError, match="decreasing"):
        population_critical_radius(lambda j: j, 1.0, 10)


# ------------------------------------------------------------------ constants and times


@given(norm=st.floats(0.0, 20.0), noise=st.floats(0.0, 20.0))
def test_constants(norm, noise):
    """m and M are the extremes of phi'' on [-D, D], B the largest slope."""
    squared = boosting_constants("squared", norm, noise=noise)
    assert_allclose(squared.radius**2, 2.0 * max(norm**2, 32.0, noise**2))
    assert (squared.strong_convexity, squared.smoothness) == (1.0, 1.0)
    logistic = boosting_constants("log_loss", norm)
    D = logistic.radius + norm
    f = np.linspace(-D, D, 10_001)
    curvature = expit(f) * expit(-f)
    assert_allclose(logistic.strong_convexity, curvature.min(), rtol=1e-9)
    assert_allclose(logistic.smoothness, curvature.max(), rtol=1e-9)
    assert logistic.slope_bound == 1.0
    assert logistic.largest_step == 0.25
    exponential = boosting_constants("exponential", norm)
    assert_allclose(exponential.strong_convexity, np.exp(-D))
    assert_allclose(exponential.smoothness, np.exp(D))
    assert_allclose(exponential.slope_bound, np.exp(D))
    assert_allclose(exponential.largest_step, np.exp(-D))


def test_constants_are_refused():
    with pytest.raises(ValueError, match="noise is for loss='squared'"):
        boosting_constants("log_loss", 1.0, noise=1.0)
    with pytest.raises(ValueError, match="noise is for loss='squared'"):
        boosting_constants("squared", 1.0)
    assert boosting_constants("exponential", 1e6).strong_convexity > 0.0


@given(radius=st.floats(1e-3, 2.0), m=st.floats(1e-3, 1.0), M=st.floats(0.1, 20.0))
@settings(max_examples=50)
def test_times(radius, m, M):
    theorem = literal_stopping_time(radius, strong_convexity=m, smoothness=M)
    assert theorem.value <= m / (8.0 * M * radius**2) * (1.0 + 1e-11)
    assert theorem.value + 1.0 > m / (8.0 * M * radius**2)
    assert theorem.holds == (radius <= M / m)
    corollary = literal_stopping_time(radius, smoothness=M, rule="corollary")
    assert corollary.value == np.floor((1.0 + 1e-12) / (radius**2 * max(8.0, M)))


def test_times_of_the_oracle():
    """delta_n^2 = .0411896 on five points: the theorem allows three steps."""
    assert literal_stopping_time(np.sqrt(0.0411896134972)).value == 3.0
    assert literal_stopping_time(np.sqrt(0.116855666279)).value == 1.0
    assert literal_stopping_time(np.sqrt(0.303100599975)).value == 0.0


def test_bound():
    found = stopped_error_bound(0.1, 12, 0.5, strong_convexity=0.5, smoothness=2.0)
    assert_allclose(found.value, 1.0 / (0.5 * 0.5 * 12) + 0.01 / 0.25)
    risk = stopped_error_bound(
        0.1, 12, 0.5, strong_convexity=0.5, smoothness=2.0, of="risk"
    )
    assert_allclose(risk.value, 2.0 * found.value)
    assert not found.holds
    assert stopped_error_bound(0.1, 12, 1.0).holds
    assert not stopped_error_bound(0.1, 13, 1.0).holds
    assert not stopped_error_bound(0.1, 12, 1.1).holds
    assert not stopped_error_bound(1.5, 1, 1.0).conditions["delta_n <= M / m"]


def test_bound_has_the_order_of_the_error():
    """The chapter's experiment: (3.16) over the mean error hardly depends on n."""
    ratios = []
    for n in (50, 200, 800):
        x = (np.arange(n) + 1.0)[:, None] / n
        f = np.abs(x[:, 0] - 0.5) - 0.25
        errors = []
        for seed in range(20):
            y = f + np.random.default_rng(seed).normal(scale=0.5**0.5, size=n)
            model = EarlyStoppedKernelBoost(
                "sobolev", solver="eigh", stopping="theory", noise=0.5**0.5, norm=1.0,
                average=True, fit_intercept=False,
            ).fit(x, y)  # fmt: skip
            errors.append(np.mean((model.predict(x) - f) ** 2))
        # The kernel is at most two: alpha times two for one of at most one.
        bound = stopped_error_bound(
            model.critical_radius_, model.n_iter_, model.step_size_
        )
        ratios.append(bound.value / np.mean(errors))
    assert 1.0 < min(ratios)
    assert max(ratios) / min(ratios) < 2.5


# ----------------------------------------------------------- regularity and families


def test_regularity():
    """Of j^(-2 b) the ratio tends to 1 / (2 b - 1); of a flat tail it does not."""
    j = np.arange(1.0, 1e6)
    for beta, limit in ((1.0, 1.0), (2.0, 1.0 / 3.0)):
        found = kernel_regularity(j ** (-2.0 * beta), 1e-2 if beta == 1.0 else 1e-3)
        assert_allclose(found.ratio, limit, rtol=0.1)
        assert kernel_regularity(j ** (-2.0 * beta), 1e-2, constant=1.1).is_regular
    flat = np.r_[1.0, np.full(10_000, 1e-4)]
    assert not kernel_regularity(flat, 0.1).is_regular
    assert kernel_regularity([1.0, 0.9], 0.1).dimension == 2


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson"])
def test_families(name):
    family = exponential_family(name)
    f = np.linspace(-3.0, 3.0, 61)
    step = 1e-5
    slope = (family.cumulant(f + step) - family.cumulant(f - step)) / (2.0 * step)
    assert_allclose(family.mean(f), slope, rtol=1e-6, atol=1e-8)
    bend = (family.mean(f + step) - family.mean(f - step)) / (2.0 * step)
    assert_allclose(family.variance(f), bend, rtol=1e-6, atol=1e-8)
    assert family.variance(f).max() <= family.curvature_bound
    assert family.is_minimax == (name != "poisson")


@pytest.mark.parametrize(
    ("function", "arguments", "match"),
    [
        (localised_complexity, ([-1.0], 0.1, 5), "eigenvalues must be"),
        (localised_complexity, ([[1.0]], 0.1, 5), "one-dimensional"),
        (localised_complexity, ([1.0], -0.1, 5), "radius"),
        (critical_radius, ([1.0], -1.0, 5), "'noise' parameter"),
        (critical_radius, ([1.0], 1e200, 5), "'noise' parameter"),
        (literal_stopping_time, (0.0,), "'radius' parameter"),
        (stopped_error_bound, (0.1, 0, 1.0), "'n_iter' parameter"),
        (exponential_family, ("gamma",), "'name' parameter"),
        (kernel_regularity, ([np.nan], 0.1), "from 0 to 1e"),
        (literal_stopping_time, (1e-300,), "'radius' parameter"),
        (stopped_error_bound, (1e300, 10, 1.0), "'radius' parameter"),
        (boosting_constants, ("log_loss", 1e300), "'norm' parameter"),
        (localised_complexity, ([1.0], [1e300], 5), "radius must be in"),
    ],
)
def test_what_is_refused(function, arguments, match):
    with pytest.raises(ValueError, match=match):
        function(*arguments)
