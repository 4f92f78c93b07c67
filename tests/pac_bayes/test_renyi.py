"""Bounds of any Renyi order, and how concentrated weights are."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import pac_bayes as ref
from scipy.special import logsumexp, rel_entr
from scipy.stats import binom

from skbounds.pac_bayes import (
    chi2_constant,
    pac_bayes_bound,
    posterior_concentration,
    renyi_bound,
    renyi_constant,
)

DISTANCES = ["linear", "squared", "kl"]
distances = pytest.mark.parametrize("distance", DISTANCES)
Q, P, L = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.10, 0.12, 0.20]


def log_moments(m, distance, order, risks):
    """Logarithms of E |phi(k/m, l)|^(order / (order - 1)), by full sums."""
    k = np.arange(m + 1)
    result = []
    for l in risks:
        x = k / m
        phi = {
            "linear": np.abs(x - l),
            "squared": (x - l) ** 2,
            "kl": np.maximum(rel_entr(x, l) + rel_entr(1 - x, 1 - l), 0.0),
        }[distance]
        with np.errstate(divide="ignore"):
            terms = binom.logpmf(k, m, l) + order / (order - 1) * np.log(phi)
        result.append(logsumexp(terms))
    return np.array(result)


@pytest.mark.slow
@distances
@pytest.mark.parametrize("m", [1, 7, 60])
@pytest.mark.parametrize("order", [1.02, 1.2, 2.0, 30.0])
def test_constant_is_a_supremum(distance, m, order):
    """Not below any point of a fine grid, and not far above its maximum."""
    grid = np.unique(np.r_[np.geomspace(1e-25, 0.5, 350), np.linspace(0.01, 1, 99)])
    best = log_moments(m, distance, order, grid[grid < 1]).max()
    found = np.log(renyi_constant(m, distance, order))
    assert found >= best - 1e-9
    assert found <= best + 1e-2 * order / (order - 1)


@pytest.mark.slow
@distances
@pytest.mark.parametrize("order", [1.0005, 1.003, 1.01, 1.03])
def test_constants_of_orders_near_one(distance, order):
    """High moments are tiny, not nothing: a constant of 0 would prove too much."""
    m = 2000
    grid = np.geomspace(1e-25, 0.5, 300)
    best = log_moments(m, distance, order, grid).max()
    power = (order - 1) / order
    value = renyi_bound(Q, L, m, order=order, delta=0.05, distance=distance)
    # The radius in logarithms, which do not underflow.
    spread = np.sum(np.array(Q) ** order * 3.0 ** (order - 1)) ** (1 / order)
    radius = spread * np.exp(power * (best - np.log(0.05)))
    mean = np.dot(Q, L)
    expected = {
        "linear": lambda: mean + radius,
        "squared": lambda: mean + np.sqrt(radius),
        "kl": lambda: ref.kl_inverse(mean, radius),
    }[distance]()
    assert_allclose(value, expected, rtol=2e-3)


@distances
def test_orders_near_infinity(distance):
    """The spread tends to the largest ratio, the moment to the first one."""
    m, risks = 100, np.array(L)
    grid = np.linspace(0.005, 0.995, 199)
    moment = np.exp(log_moments(m, distance, 1e9, grid).max())
    radius = max(np.array(Q) / P) * moment / 0.1
    mean = np.dot(Q, risks)
    expected = {
        "linear": mean + radius,
        "squared": mean + np.sqrt(radius),
        "kl": ref.kl_inverse(mean, radius),
    }[distance]
    for order in (2e3, 1e5):
        value = renyi_bound(
            Q, risks, m, order=order, delta=0.1, distance=distance, prior=P
        )
        assert_allclose(value, expected, rtol=5e-3)


@distances
@pytest.mark.parametrize("m", [1, 10, 200])
def test_order_two_is_the_chi_square_bound(distance, m):
    """The same constant, the same bound, with any prior."""
    assert_allclose(
        renyi_constant(m, distance, 2.0), chi2_constant(m, distance), rtol=1e-6
    )
    rng = np.random.default_rng(m)
    for prior in (None, rng.dirichlet(np.ones(5))):
        q, risks = rng.dirichlet(np.ones(5), size=3), rng.uniform(0, 0.4, size=(3, 5))
        found = renyi_bound(
            q, risks, m, order=2, delta=0.05, distance=distance, prior=prior
        )
        options = {"delta": 0.05, "divergence": "chi2", "distance": distance}
        assert_allclose(
            found, pac_bayes_bound(q, risks, m, prior=prior, **options), rtol=1e-6
        )
        slow = [
            ref.bound(a, b, m, 0.05, "chi2", distance, prior=prior)
            for a, b in zip(q, risks, strict=True)
        ]
        assert_allclose(found, slow, rtol=1e-6)


@pytest.mark.slow
@given(
    st.sampled_from(DISTANCES), st.floats(1.1, 12.0), st.floats(0.001, 0.5),
    st.integers(0, 10**6),
)  # fmt: skip
def test_bound_is_that_of_the_theorem(distance, order, delta, seed):
    """Spread times moment, inverted; grows as delta falls and as risks grow."""
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.ones(4), size=2)
    risks = rng.uniform(0, 0.5, size=4)
    m = 50
    conjugate = order / (order - 1)
    spread = sum(b * (a / b) ** order for a, b in zip(q, p, strict=True))
    radius = spread ** (1 / order) * (
        renyi_constant(m, distance, order) / delta
    ) ** (1 / conjugate)  # fmt: skip
    mean = q @ risks
    expected = {
        "linear": mean + radius,
        "squared": mean + np.sqrt(radius),
        "kl": ref.kl_inverse(mean, radius),
    }[distance]
    options = {"order": order, "distance": distance, "prior": p}
    found = renyi_bound(q, risks, m, delta=delta, **options)
    assert_allclose(found, expected, rtol=1e-8)
    assert renyi_bound(q, risks, m, delta=delta / 2, **options) >= found
    assert renyi_bound(q, risks * 0.9, m, delta=delta, **options) <= found
    point = renyi_bound([0, 1, 0, 0], risks, m, delta=delta, **options)
    assert point >= renyi_bound(p, np.full(4, risks[1]), m, delta=delta, **options)


@distances
@pytest.mark.parametrize("order", [1.1, 1.5, 3.0, 10.0])
def test_bounds_hold(order, distance):
    """Posteriors that look for the least risks: at most delta failures."""
    rng = np.random.default_rng(0)
    risks = np.linspace(0.05, 0.4, 10)
    counts = rng.binomial(100, risks, size=(2000, 10)) / 100
    for sharpness in (0.0, 20.0, 1000.0):
        q = np.exp(-sharpness * (counts - counts.min(axis=1, keepdims=True)))
        q /= q.sum(axis=1, keepdims=True)
        bound = renyi_bound(q, counts, 100, order=order, delta=0.1, distance=distance)
        failures = np.sum(q @ risks > bound)
        assert failures <= binom.ppf(1 - 1e-4, 2000, 0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 1.0}, r"order must be above 1 and finite; got 1\.0"),
        ({"order": np.inf}, r"order must be above 1 and finite"),
        ({"order": "two"}, r"order must be above 1 and finite"),
        ({"distance": "lambda"}, r"distance must be one of"),
        ({"delta": 0.0}, r"delta must lie in \(0, 1\)"),
        ({"prior": [0.5, 0.5]}, r"prior must have one entry per member, 3"),
        ({"posterior": [0.5, 0.6, 0.0]}, r"posterior must sum to 1"),
        ({"n_samples": 0}, r"n_samples"),
    ],
)
def test_bad_arguments(options, message):
    """Each error names what is wrong."""
    arguments = {
        "posterior": Q, "risks": L, "n_samples": 50, "order": 2.0, "delta": 0.05,
        "distance": "kl",
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        renyi_bound(**{**arguments, **options})


def test_no_prior_mass_no_bound():
    """Weight where the prior has none proves nothing."""
    for distance, worst in (("linear", np.inf), ("squared", np.inf), ("kl", 1.0)):
        value = renyi_bound(
            Q, L, 50, order=1.5, delta=0.05, distance=distance, prior=[0.5, 0.5, 0.0]
        )
        assert value == worst


# ------------------------------------------------------------------- concentration


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any),
    st.sampled_from([0.1, 0.5, 0.8, 0.95, 1.0]),
)
def test_concentration_is_that_of_the_definition(whole, mass):
    """The least number of members, among all subsets, in whole numbers."""
    weights = np.array(whole) / sum(whole)
    least = next(
        size
        for size in range(1, len(whole) + 1)
        if any(
            sum(part) * 100 >= round(mass * 100) * sum(whole)
            for part in combinations(whole, size)
        )
    )
    found = posterior_concentration(weights, mass)
    assert found["n_members"] == least
    norm = np.sqrt(sum(w * w for w in weights))
    assert_allclose(found["l2_norm"], norm)
    assert_allclose(found["effective_size"], 1 / norm**2)


def test_concentration_of_equal_and_single_weights():
    """One member; all members, the share of them that is asked for."""
    assert posterior_concentration([1.0])["effective_size"] == 1.0
    many = posterior_concentration(np.full(1000, 1e-3))
    assert many["n_members"] == 800
    assert_allclose(many["effective_size"], 1000)
    for mass in (0.0, 1.1):
        with pytest.raises(ValueError, match=r"mass must lie in \(0, 1\]"):
            posterior_concentration([1.0], mass)
    with pytest.raises(ValueError, match=r"posterior must be of shape \(n_members,\)"):
        posterior_concentration([[1.0]])
    with pytest.raises(ValueError, match=r"posterior must sum to 1"):
        posterior_concentration([0.5, 0.4])
