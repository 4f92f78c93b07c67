"""The slow reference reproduces numbers known to ten digits."""

from math import exp, log, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import pac_bayes as ref

# m: I_kl, the same with unsquared end terms, I_squared, ln xi.
CONSTANTS = {
    1: (0.5628799121, 0.693147, 1 / 12, 0.6931471806),
    2: (0.2402265070, 0.346574, 0.03125, 0.9162907319),
    3: (0.1225187270, 0.175692, 7 / 432, 1.060871961),
    5: (0.0418912569, 0.0880512, 0.0065, 1.255729991),
    10: (0.009352996682, 0.0400677, 0.00175, 1.539061730),
    20: (0.002292622409, 0.0191789, 4.53125e-4, 1.839530795),
    50: (3.636513861e-4, 0.0074802, 7.4e-5, 2.255821214),
    100: (9.068460084e-5, 0.0037092, 1.8625e-5, 2.580971138),
    200: (2.264408449e-5, 0.0018470, 4.671875e-6, 2.912266088),
    500: (3.620526642e-6, 0.00073697, 7.49e-7, 3.356765920),
    1000: (9.049239947e-7, 0.00036818, 1.87375e-7, 3.696431191),
}

# Risks, prior, m, delta.
INSTANCES = {
    "A": ([0.10, 0.12, 0.20, 0.35], None, 200, 0.05),
    "B": ([0.0, 0.0, 0.05, 0.30, 0.50], [0.1, 0.2, 0.3, 0.2, 0.2], 100, 0.01),
    "C": ([0.2, 0.2, 0.2], None, 50, 0.1),
    "D": ([0.05], None, 300, 0.05),
    "E": ([0.02] + [0.42] * 9, None, 1000, 0.05),
}

# Divergence, distance, constants: least bound on A..E.
OPTIMA = {
    ("chi2", "linear", "exact"): (
        [0.3173884626, 0.6352988160, 0.4236067977, 0.1790994449, 0.2436067977]
    ),
    ("chi2", "squared", "exact"): (
        [0.2260547955, 0.2583460040, 0.3649331411, 0.1302981697, 0.0982411834]
    ),
    ("chi2", "squared", "paper"): (
        [0.2746892620, 0.3567116284, 0.4329546183, 0.1635350425, 0.1306428218]
    ),
    ("chi2", "kl", "exact"): (
        [0.2001872008, 0.1595876294, 0.3590560055, 0.0953366584, 0.0520449386]
    ),
    ("kl", "linear", "classical"): (
        [0.2451209450, 0.1813258379, 0.3693532633, 0.1832873357, 0.1485998788]
    ),
    ("kl", "squared", "classical"): (
        [0.2380074613, 0.2096398323, 0.4225251396, 0.1544092165, 0.0887216930]
    ),
    ("kl", "kl", "classical"): (
        [0.2027760145, 0.0842837679, 0.4088587047, 0.1087645829, 0.0455805214]
    ),
    ("kl", "lambda", "classical"): (
        [0.2334187498, 0.1759625558, 0.5213451469, 0.1233351694, 0.0510561769]
    ),
}

# Divergence, distance: bound of the prior on A, B, E.
AT_PRIOR = {
    ("chi2", "linear"): [0.3506138830, 0.6750000000, 0.4507106781],
    ("chi2", "squared"): [0.2908173813, 0.3827418861, 0.4239982507],
    ("chi2", "kl"): [0.2818183664, 0.3744800805, 0.4253591298],
    ("kl", "linear"): [0.3307802229, 0.3443532633, 0.5062972938],
    ("kl", "squared"): [0.3183773027, 0.3699474604, 0.4397610119],
    ("kl", "kl"): [0.3033539846, 0.3508054673, 0.4389513219],
    ("kl", "lambda"): [0.3391031647, 0.4309549343, 0.4611664990],
}

# Instance, divergence, distance, constants: optimal posterior.
POSTERIORS = [
    ("A", "chi2", "linear", "exact", [0.4084979361, 0.3709156347, 0.2205864291, 0]),
    ("A", "chi2", "squared", "exact", [0.5874851663, 0.4125148337, 0, 0]),
    ("A", "chi2", "squared", "paper", [0.5611748891, 0.4388251109, 0, 0]),
    ("A", "chi2", "kl", "exact", [0.62527960, 0.37472040, 0, 0]),
    ("A", "kl", "kl", "classical", [0.96375907, 0.03624086, 7.2e-8, 0]),
    ("A", "kl", "linear", "exact", [0.98201380, 0.01798620, 2.0e-9, 0]),
    (
        "B",
        "chi2",
        "linear",
        "exact",
        [0.1380187813, 0.2760375626, 0.3814688170, 0.1456874553, 0.0587873839],
    ),
    ("B", "chi2", "squared", "exact", [0.2032388014, 0.4064776027, 0.3902835959, 0, 0]),
    ("B", "chi2", "kl", "exact", [1 / 3, 2 / 3, 0, 0, 0]),
    ("B", "kl", "kl", "classical", [1 / 3, 2 / 3, 0, 0, 0]),
    ("C", "chi2", "kl", "exact", [1 / 3, 1 / 3, 1 / 3]),
    ("E", "chi2", "squared", "exact", [1] + [0] * 9),
    ("E", "kl", "kl", "classical", [1] + [0] * 9),
]


# ---------------------------------------------------------------- scalars


def test_kl_and_its_inverses():
    assert_allclose(ref.kl_inverse(0.1, 0.05), 0.2200786011, atol=6e-11)
    assert_allclose(ref.kl_inverse(0.0, 0.05), 1 - exp(-0.05), rtol=1e-14)
    assert_allclose(ref.kl_inverse(0.5, 0.02), 0.5990082836, atol=6e-11)
    assert_allclose(ref.kl_inverse(0.1, 0.05, lower=True), 0.0312783963, atol=6e-11)
    assert_allclose(ref.kl_inverse(1.0, 0.05, lower=True), exp(-0.05), rtol=1e-14)
    for q in (0.0, 0.3, 1.0):
        assert ref.kl_inverse(q, 0.0) == ref.kl_inverse(q, 0.0, lower=True) == q
        assert ref.kl_inverse(q, 1e9) == 1.0
        assert ref.kl_inverse(q, 1e9, lower=True) == 0.0
    assert ref.binary_kl(0.3, 0.3) == ref.binary_kl(0, 0) == ref.binary_kl(1, 1) == 0
    assert ref.binary_kl(0.2, 0.0) == ref.binary_kl(0.2, 1.0) == np.inf
    assert_allclose(ref.binary_kl(0.5, 0.25), log(4 / 3) / 2, rtol=1e-15)


def test_the_inner_inverse_agrees_with_the_bisection():
    for q in (0.0, 1e-3, 0.1, 0.5, 0.99, 1.0):
        for c in (0.0, 1e-4, 0.05, 2.0, 100.0):
            assert_allclose(ref._kl_upper(q, c), ref.kl_inverse(q, c), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("m", CONSTANTS)
def test_constants(m):
    kl, unsquared, squared, log_xi = CONSTANTS[m]
    assert_allclose(ref.chi2_constant(m, "kl"), kl, rtol=2e-9)
    assert_allclose(ref.chi2_constant(m, "kl", "paper"), unsquared, rtol=2e-5)
    assert_allclose(ref.chi2_constant(m, "squared"), squared, rtol=1e-12)
    assert_allclose(ref.chi2_constant(m, "linear"), 1 / (4 * m), rtol=1e-12)
    assert_allclose(ref.log_xi(m), log_xi, rtol=1e-9)
    assert_allclose(ref.log_j_linear(m) / m, 0.123301561482, rtol=1e-11)


def test_printed_constants():
    # The linear, squared and kl terms of the prior at v = 227, delta = 0.01.
    v, delta = 227, 0.01
    linear = ref.chi2_constant(v, "linear", "paper") / delta
    squared = ref.chi2_constant(v, "squared", "paper") / delta
    kl = ref.chi2_constant(v, "kl", "paper") / delta
    assert_allclose(sqrt(linear), 0.33187, atol=1e-5)
    assert_allclose(squared**0.25, 0.19513, atol=6e-6)
    assert_allclose(sqrt(kl), 0.40330, atol=6e-6)
    assert_allclose(ref.chi2_constant(1028, "kl", "paper"), 0.00035815, rtol=2e-5)
    assert ref.chi2_constant(5000, "kl", "paper") == ref.chi2_constant(
        1028, "kl", "paper"
    )
    with pytest.raises(ValueError, match="m=1"):
        ref.chi2_constant(1, "squared", "paper")


@pytest.mark.slow
def test_range_of_the_constants():
    scaled = [m**2 * ref.chi2_constant(m, "kl") for m in range(2, 31)]
    assert 0.90471 < min(scaled) and max(scaled) < 1.1027
    assert all(np.diff(scaled[1:]) < 0)
    for m in range(1, 60):
        assert sqrt(m) <= exp(ref.log_xi(m)) <= 2 * sqrt(m) * (1 + 1e-15)
    assert_allclose(exp(ref.log_xi(1000)), sqrt(pi * 500) + 2 / 3, rtol=1e-3)


def test_tails_and_votes():
    # The exact root for 3 errors of 100 is 0.07571079375.
    assert_allclose(ref.binomial_tail_bound(3, 100, 0.05), 0.0757107937, atol=6e-11)
    assert_allclose(ref.binomial_tail_bound(0, 100, 0.05), 1 - 0.05**0.01, rtol=1e-14)
    assert ref.binomial_tail_bound(5, 5, 0.05) == 1.0
    assert_allclose(ref.occam_bound([3, 5, 9], 100, 0.05), 0.0904824054, atol=6e-11)
    joint = [[0.1, 0.04, 0.03], [0.04, 0.12, 0.05], [0.03, 0.05, 0.2]]
    value = ref.tandem_bound([0.5, 0.3, 0.2], joint, 400, 0.05, constants="classical")
    assert_allclose(value, 0.4961785306, atol=6e-11)
    assert_allclose(ref.c_bound(0.12, 0.09), 0.2956097561, atol=6e-11)


def test_catoni():
    # A posterior with L = 0.1 and D = 0.5 exactly.
    prior = np.array([exp(-0.5), 1 - exp(-0.5)])
    value = ref.bound(
        [1.0, 0.0], [0.1, 0.7], 200, 0.05, "kl", "catoni", prior, catoni_c=1.0
    )
    assert_allclose(value, 0.1753471129, atol=6e-11)


# ---------------------------------------------------------------- bounds, posteriors


@pytest.mark.parametrize("divergence, distance", AT_PRIOR)
def test_bounds_at_the_prior(divergence, distance):
    for name, expected in zip("ABE", AT_PRIOR[divergence, distance], strict=True):
        risks, prior, m, delta = INSTANCES[name]
        q = np.full(len(risks), 1 / len(risks)) if prior is None else prior
        value = ref.bound(q, risks, m, delta, divergence, distance, prior, "classical")
        assert_allclose(value, expected, atol=6e-11, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("divergence, distance, constants", OPTIMA)
def test_least_bounds(divergence, distance, constants):
    expected = OPTIMA[divergence, distance, constants]
    for name, optimum in zip(INSTANCES, expected, strict=True):
        risks, prior, m, delta = INSTANCES[name]
        q, value = ref.best_posterior(
            risks, m, delta, divergence, distance, prior, constants, n_starts=4
        )
        assert_allclose(q.sum(), 1.0, rtol=1e-14)
        assert_allclose(value, optimum, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("name, divergence, distance, constants, expected", POSTERIORS)
def test_posteriors(name, divergence, distance, constants, expected):
    risks, prior, m, delta = INSTANCES[name]
    q, _ = ref.best_posterior(
        risks, m, delta, divergence, distance, prior, constants, n_starts=4
    )
    assert_allclose(q, expected, atol=1e-6)


@pytest.mark.parametrize(
    "m, distance, others, optimum, at_point",
    [
        (100, "squared", 0.15, 0.2630033, 0.2670481),
        (100, "squared", 0.16, 0.2670481, 0.2670481),
        (80, "kl", 0.12, 0.213665, 0.213665),
        (100, "kl", 0.08, 0.168283, 0.183617),
    ],
)
def test_two_local_minima(m, distance, others, optimum, at_point):
    risks, point = [0.02] + [others] * 9, np.eye(10)[0]
    _, value = ref.best_posterior(risks, m, 0.05, "chi2", distance, n_starts=4)
    assert_allclose(value, optimum, atol=1e-6)
    value = ref.bound(point, risks, m, 0.05, "chi2", distance)
    assert_allclose(value, at_point, atol=1e-6)


def test_members_without_prior_mass_get_none():
    q, value = ref.best_posterior(
        [0.0, 0.1, 0.2], 100, 0.05, "kl", "kl", [0.0, 0.5, 0.5]
    )
    assert q[0] == 0.0
    _, expected = ref.best_posterior([0.1, 0.2], 100, 0.05, "kl", "kl")
    assert_allclose(value, expected, rtol=1e-10)


# ---------------------------------------------------------------- schemes


def test_holdout_certificate():
    cv_errors, counts = [30, 22, 20, 21, 27, np.nan], [8, 7, 6, 9, 12, 20]
    result = ref.holdout_certificate(cv_errors, 300, counts, 6, 100, 1.0, 0.05)
    prior, q, c = result["prior"], result["posterior"], result["c"]
    weights = np.array([0, exp(-2), 1, exp(-1), 0, 0])  # exp(-7) is dropped
    assert_allclose(prior, weights / weights.sum(), rtol=1e-14)
    assert result["vote_bound"] == ref.binomial_tail_bound(6, 100, 0.05)
    assert result["occam_bound"] == ref.occam_bound(counts, 100, 0.05, prior)
    # The Gibbs bound is Catoni's, at its minimiser.
    arguments = (np.divide(counts, 100), 100, 0.05, "kl", "catoni", prior, "exact", c)
    assert_allclose(ref.bound(q, *arguments), result["gibbs_bound"], rtol=1e-12)
    best, value = ref.best_posterior(*arguments)
    assert_allclose(value, result["gibbs_bound"], rtol=1e-10)
    assert_allclose(best, q, atol=1e-5)


def test_progressive_bound():
    rng = np.random.default_rng(3)
    for blocks in (1, 2, 5):
        w, c = rng.dirichlet(np.ones(blocks)), rng.uniform(0.1, 3.0, blocks)
        losses, kls = rng.uniform(0, 0.5, blocks), rng.uniform(0, 2, blocks)
        a = 1 / (1 - np.exp(-c))
        level = w @ (c * losses) + (kls.sum() + log(20)) / 150
        expected = w @ a - exp(w @ np.log(a) - level)
        value = ref.progressive_bound(w, c, losses, kls, 0.05, 150)
        assert_allclose(value, expected, rtol=1e-10)
