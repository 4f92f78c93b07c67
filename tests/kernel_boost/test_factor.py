"""The random-pivoted factor, the radius and the filters, below the estimators."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from scipy.stats import chi2

from skbounds.kernel_boost._factor import KernelFactor, accept_pivots
from skbounds.kernel_boost._filters import boosting_filter, residual_filter
from skbounds.kernel_boost._radius import (
    critical_radius,
    localised_complexity,
    theory_time,
)

seeds = st.integers(0, 10_000)
positive = st.floats(0.05, 20.0)


def rough(seed, n, d=2):
    """A kernel matrix of full rank with a slow decay."""
    rng = np.random.default_rng(seed)
    return ref.gram(rng.uniform(0.0, 2.0, size=(n, d)), kernel="laplacian")


def random_gram(seed, n, rank=None):
    """A kernel matrix with unequal diagonal entries."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank or n)) * rng.uniform(0.3, 2.0, size=(n, 1))
    return A @ A.T


def spectrum(seed, n):
    """Decreasing eigenvalues with any decay."""
    rng = np.random.default_rng(seed)
    return np.sort(np.exp(rng.uniform(-12.0, 1.0, size=n)))[::-1]


def factor_of(G, max_rank, seed=0, weights=None):
    """An empty factor of a matrix that is there already."""
    weights = np.ones(len(G)) if weights is None else np.asarray(weights, dtype=float)
    block = lambda rows, others: G[rows][:, others]
    rng = np.random.default_rng(seed)
    return KernelFactor(block, np.diag(G).copy(), weights, max_rank, rng)


# ------------------------------------------------------------------------- the factor


@pytest.mark.parametrize("n", [1, 2, 7, 60, 150])
def test_full_rank(n):
    """F F' = G once every row is a pivot."""
    G = rough(n, n)
    factor = factor_of(G, n)
    factor.grow(n)
    assert factor.rank == n
    assert_array_equal(np.sort(factor.pivots), np.arange(n))
    assert_allclose(factor.factor @ factor.factor.T, G, atol=1e-12)
    assert_allclose(factor.residual, 0.0, atol=1e-12)


@pytest.mark.parametrize("r", [1, 5, 33, 80])
def test_partial_rank(r):
    """Columns and residual are those of the pivots one by one."""
    G = rough(3, 120)
    factor = factor_of(G, 100)
    factor.grow(r)
    assert factor.rank == r == len(set(factor.pivots))
    expected = ref.partial_cholesky(G, factor.pivots)
    assert_allclose(factor.factor, expected, atol=1e-12)
    residual = ref.residual_diagonal(G, factor.pivots)
    assert_allclose(factor.residual, residual, atol=1e-12)
    assert np.all(factor.residual >= 0.0)
    assert_array_equal(factor.residual[factor.pivots], 0.0)


@pytest.mark.parametrize("stops", [(1, 2, 3), (8, 16, 32, 64), (5, 70)])
def test_nested(stops):
    """Growing keeps the pivots and columns that are there."""
    factor = factor_of(rough(5, 100), 80)
    pivots, columns = np.empty(0), np.empty((100, 0))
    for r in stops:
        factor.grow(r)
        assert factor.rank == r
        assert_array_equal(factor.pivots[: len(pivots)], pivots)
        assert_array_equal(factor.factor[:, : columns.shape[1]], columns)
        pivots, columns = factor.pivots.copy(), factor.factor.copy()


def test_max_rank():
    """No more columns than allowed, and no more than there are rows."""
    factor = factor_of(rough(5, 40), 12)
    factor.grow(1000)
    assert factor.rank == 12
    factor = factor_of(rough(5, 40), 1000)
    factor.grow(1000)
    assert factor.rank == 40


@pytest.mark.parametrize("rank", [1, 3, 10])
def test_exhausted(rank):
    """A matrix of low rank ends the growth at its rank."""
    G = random_gram(1, 50, rank)
    factor = factor_of(G, 50)
    factor.grow(50)
    assert factor.exhausted
    assert factor.rank == rank
    assert_allclose(factor.factor @ factor.factor.T, G, atol=1e-9 * np.trace(G))


def test_duplicates():
    """Of equal rows only one becomes a pivot."""
    G = np.kron(rough(6, 9), np.ones((4, 4)))
    factor = factor_of(G, 36)
    factor.grow(36)
    assert factor.rank == 9
    assert len(set(factor.pivots // 4)) == 9


def test_nothing_to_factor():
    """The zero matrix has a factor without columns."""
    factor = factor_of(np.zeros((5, 5)), 5)
    factor.grow(5)
    assert factor.rank == 0
    assert factor.exhausted


def test_rows_without_weight_are_no_pivots():
    """Pivots are drawn in proportion to weight times residual."""
    weights = np.ones(30)
    weights[10:] = 0.0
    for seed in range(5):
        factor = factor_of(rough(8, 30), 10, seed, weights)
        factor.grow(10)
        assert np.all(factor.pivots < 10)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, (1.0, 3.0, 2.0, 0.5)], ids=["equal", "not"])
@pytest.mark.parametrize("r", [1, 2, 3])
def test_law_of_the_pivots(weights, r):
    """Sequences of pivots have the law of drawing one after another.

    All sequences are enumerated; the chi-square test fails once in 1e5 seeds.
    """
    G, draws = random_gram(11, 4), 4000
    sequences = list(permutations(range(4), r))
    counts = dict.fromkeys(sequences, 0)
    for seed in range(draws):
        factor = factor_of(G, r, seed, weights)
        factor.grow(r)
        counts[tuple(int(p) for p in factor.pivots)] += 1
    law = np.array([ref.pivot_probability(G, s, weights) for s in sequences])
    assert_allclose(law.sum(), 1.0, rtol=1e-12)
    found = np.array(list(counts.values()))
    # Rare sequences are counted together.
    rare = law * draws < 5.0
    law, found = (
        np.append(values[~rare], values[rare].sum()) for values in (law, found)
    )
    keep = law > 0.0
    statistic = np.sum((found - draws * law)[keep] ** 2 / (draws * law[keep]))
    assert statistic < chi2.isf(1e-5, keep.sum() - 1)


@given(seeds, st.integers(1, 8), st.booleans())
def test_accepted_pivots(seed, b, repeat):
    """Each proposal is accepted by the share of its residual that is left."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(b, size=b) if repeat else np.arange(b)
    H, uniforms = random_gram(seed, b)[np.ix_(rows, rows)], rng.random(b)
    expected = []
    for j in range(b):
        left = H[j, j]
        if expected:
            cross = H[expected, j]
            left -= cross @ np.linalg.solve(H[np.ix_(expected, expected)], cross)
        if left >= uniforms[j] * H[j, j] and left > 1e-9 * H[j, j]:
            expected.append(j)
    assert_array_equal(accept_pivots(H.copy(), uniforms), expected)


@given(seeds, st.integers(1, 29), st.floats(0.0, 8.0), st.booleans())
def test_missing_degrees_of_freedom(seed, r, log_t, random):
    """0 <= df(K) - df(K_hat) <= alpha t tau for every time and any pivots."""
    G = random_gram(seed, 30) if random else rough(seed, 30)
    factor = factor_of(G, 30, seed)
    factor.grow(r)
    mu, tau = ref.eigenvalues(G), factor.residual.sum() / 30
    few = np.linalg.eigvalsh(factor.factor.T @ factor.factor / 30).clip(0.0)
    alpha, t = 1.0 / mu[0], np.floor(10.0**log_t)
    df = ref.degrees_of_freedom(mu, alpha, t)
    missing = df - ref.degrees_of_freedom(few, alpha, t)
    # At t = 1 the upper bound is attained.
    rounding = 1e-12 * 30 * t
    assert -min(rounding, 1e-6) <= missing
    assert missing <= alpha * t * tau + rounding


# ------------------------------------------------------------------------- the filters


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("step", [0.1, 0.9, 1.0, 1.6])
def test_filters(step, average):
    """Filters equal their literal definition for every stable step."""
    mu = np.array([1.0, 0.6, 0.1, 1e-3, 1e-9, 1e-16, 0.0])
    times = np.array([1.0, 2.0, 3.0, 10.0, 101.0])
    found = boosting_filter(mu, step, times, average=average)
    expected = [ref.filters(mu, step, t, average) for t in times]
    assert_allclose(found, expected, rtol=1e-9, atol=1e-30)
    if not average:
        left = residual_filter(mu, step, times)
        assert_allclose(left, 1.0 - np.array(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("product", [1e-9, 1e-6, 1e-3, 0.5, 3.0])
@pytest.mark.parametrize("t", [1.0, 2.0, 1e3, 1e6])
def test_averaged_filter_of_small_eigenvalues(product, t):
    """The averaged filter keeps its digits where alpha t mu is small."""
    mu = product / t
    found = boosting_filter(np.array([mu]), 1.0, np.array([t]), average=True)
    expected = ref.filter_average_closed(mu, 1.0, t)
    assert_allclose(found, expected, rtol=1e-9)


@given(seeds, st.floats(0.0, 6.0), st.floats(0.0, 6.0))
def test_filters_grow_with_time(seed, first, second):
    """0 <= averaged <= last <= 1, and both increase."""
    mu = spectrum(seed, 12)
    times = np.floor(10.0 ** np.sort([first, second]))
    last = boosting_filter(mu, 1.0 / mu[0], times)
    mean = boosting_filter(mu, 1.0 / mu[0], times, average=True)
    assert np.all(mean >= 0.0)
    assert np.all(mean <= last * (1.0 + 1e-9))
    assert np.all(last <= 1.0)
    assert np.all(np.diff(last, axis=0) >= 0.0)
    assert np.all(np.diff(mean, axis=0) >= -1e-9 * mean[1:])


# -------------------------------------------------------------------------- the radius


@given(seeds, st.integers(1, 40), positive, positive, st.integers(0, 60))
def test_critical_radius(seed, r, noise, norm, more):
    """The root of (sigma / rho) R(delta) = delta^2, as bisection finds it."""
    mu, n = spectrum(seed, r), r + more
    delta = critical_radius(mu, noise, norm, n)
    expected = ref.critical_radius_bisection(mu, noise / norm, n)
    assert_allclose(delta**2, expected, rtol=1e-9)
    inside = localised_complexity(mu, np.array([delta]), n)[0]
    assert_allclose(noise / norm * inside, delta**2, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("n_equal", [1, 3, 10])
def test_critical_radius_of_equal_eigenvalues(scale, n_equal):
    """Ties between eigenvalues and roots at an eigenvalue are no trouble."""
    mu, n = np.full(n_equal, scale), 10.0
    for noise in scale**0.5 * np.array([1e-3, 1.0, (n / n_equal) ** 0.5, 50.0]):
        delta = critical_radius(mu, noise, 1.0, n)
        expected = ref.critical_radius_bisection(mu, noise, n)
        assert_allclose(delta**2, expected, rtol=1e-9)


@given(seeds, st.integers(1, 30), positive, positive, st.floats(1e-4, 1e4))
def test_critical_radius_scales(seed, r, noise, norm, s):
    """mu -> s mu with sigma -> sqrt(s) sigma, or rho -> rho / sqrt(s): s delta^2."""
    mu = spectrum(seed, r)
    squared = critical_radius(mu, noise, norm, r) ** 2
    louder = critical_radius(s * mu, noise * s**0.5, norm, r) ** 2
    smaller = critical_radius(s * mu, noise, norm / s**0.5, r) ** 2
    assert_allclose([louder, smaller], s * squared, rtol=1e-9)


@given(seeds, st.integers(1, 30), positive, positive, st.floats(1.0, 100.0))
def test_critical_radius_is_monotone(seed, r, noise, norm, more):
    """Larger with more noise, smaller with a larger norm or more rows."""
    mu = spectrum(seed, r)
    radius = critical_radius(mu, noise, norm, r)
    slack = 1.0 + 1e-9
    assert critical_radius(mu, more * noise, norm, r) * slack >= radius
    assert critical_radius(mu, noise, more * norm, r) <= radius * slack
    assert critical_radius(mu, noise, norm, more * r) <= radius * slack


def test_order_of_eigenvalues():
    """The radius does not depend on their order, and zeros change nothing."""
    mu = spectrum(3, 15)
    expected = critical_radius(mu, 0.4, 2.0, 20)
    shuffled = np.random.default_rng(0).permutation(np.append(mu, np.zeros(4)))
    assert_allclose(critical_radius(shuffled, 0.4, 2.0, 20), expected, rtol=1e-12)


def test_no_noise():
    """Without noise there is no reason to stop, and without a target to go on."""
    mu = spectrum(3, 5)
    assert critical_radius(mu, 0.0, 1.0, 5) == 0.0
    assert theory_time(0.0, 1.0) == np.inf
    assert critical_radius(mu, 1.0, 0.0, 5) == np.inf
    assert theory_time(np.inf, 1.0) == 1


@given(st.floats(1e-4, 3.0), st.floats(0.01, 5.0), st.floats(0.01, 1.0))
def test_theory_time(radius, step, curvature):
    """T = floor(1 / (alpha m delta^2)), at least one step."""
    expected = max(1, int(np.floor(1.0 / (step * curvature * radius**2))))
    assert theory_time(radius, step, curvature) == expected


@given(seeds, positive, positive, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_theory_time_has_no_units(seed, noise, norm, s, a):
    """k -> s k and y -> a y leave T as it is, whatever rounding does to floors."""
    mu = spectrum(seed, 20)
    plain = critical_radius(mu, noise, norm, 20)
    scaled = critical_radius(s * mu, a * noise, a * norm / s**0.5, 20)
    times = [
        theory_time(plain, 1.0 / mu[0]),
        theory_time(scaled * (1.0 + 1e-10), 1.0 / (s * mu[0])),
        theory_time(scaled * (1.0 - 1e-10), 1.0 / (s * mu[0])),
    ]
    assert times[1] <= times[0] <= times[2]
    assert times[2] - times[1] <= 1 + 1e-9 * times[0]


@given(seeds, st.floats(1e-3, 2.0))
def test_localised_complexity(seed, delta):
    """R(delta) by its sum; R increases, R(delta) / delta does not."""
    mu = spectrum(seed, 25)
    radii = np.array([delta, 1.5 * delta])
    R = localised_complexity(mu, radii, 40)
    assert_allclose(R, [ref.complexity(mu, d, 40) for d in radii], rtol=1e-12)
    assert R[0] <= R[1] * (1.0 + 1e-12)
    assert R[0] / radii[0] >= R[1] / radii[1] * (1.0 - 1e-12)
