"""PAC-Bayes bounds, their constants and inverses against slow references."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr
from scipy.stats import poisson

from pac_bayes.test_reference import AT_PRIOR, CONSTANTS, INSTANCES
from skbounds.pac_bayes import (
    binomial_tail_bound,
    c_bound,
    chi2_constant,
    kl_inverse,
    occam_bound,
    optimal_posterior,
    pac_bayes_bound,
    tandem_bound,
)
from skbounds.pac_bayes._certify import MixtureEvidence, catoni_constant, mixture_bound
from skbounds.pac_bayes._constants import LINEAR_KL_RATE, log_maurer_sum

PAIRS = [("chi2", distance) for distance in ("linear", "squared", "kl")]
PAIRS += [("kl", d) for d in ("linear", "squared", "kl", "lambda", "catoni")]
CASES = [(*pair, c) for pair in PAIRS for c in ("exact", "classical", "paper")]
SIZES = [1, 2, 5, 37, 300, 1000]
# The printed constant of the squared distance does not exist for one row.
SIZED_CASES = [
    (*case, m)
    for case in CASES
    for m in SIZES
    if (case, m) != (("chi2", "squared", "paper"), 1)
]
CATONI_C = 0.8

pair = pytest.mark.parametrize("divergence, distance", PAIRS)
case = pytest.mark.parametrize("divergence, distance, constants", CASES)


def options_of(divergence, distance, constants="exact"):
    """Keywords of a bound; Catoni's constant where it is needed."""
    options = {
        "divergence": divergence,
        "distance": distance,
        "constants": constants,
    }
    return {**options, "catoni_c": CATONI_C} if distance == "catoni" else options


def instances(rng, n, H):
    """Random posteriors, priors and risks, all with zeros; risks also ones and ties."""
    prior = rng.dirichlet(np.ones(H), size=n)
    prior *= rng.random((n, H)) < 0.7
    prior[:, 0] += 0.1
    prior /= prior.sum(axis=1, keepdims=True)
    posterior = rng.dirichlet(np.ones(H), size=n) * (prior > 0)
    posterior *= rng.random((n, H)) < 0.7
    posterior[:, 0] += 0.1
    posterior /= posterior.sum(axis=1, keepdims=True)
    risks = rng.integers(0, 7, size=(n, H)) / 12 + 0.03
    risks[rng.random((n, H)) < 0.15] = 0.0
    risks[rng.random((n, H)) < 0.15] = 1.0
    risks[0], risks[1], risks[2] = 0.0, 1.0, 0.25
    return posterior, prior, risks


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize("divergence, distance, constants, m", SIZED_CASES)
def test_bounds_agree_with_the_reference(divergence, distance, constants, m):
    """Every bound at random posteriors, priors and risks, one vectorised call."""
    rng = np.random.default_rng(m)
    posterior, prior, risks = instances(rng, 8, 5)
    assert (prior == 0).any() and (posterior == 0).any()
    delta = 0.07
    options = options_of(divergence, distance, constants)
    actual = pac_bayes_bound(posterior, risks, m, delta=delta, prior=prior, **options)
    expected = [
        ref.bound(q, l, m, delta, prior=p, **options)
        for q, p, l in zip(posterior, prior, risks, strict=True)
    ]
    assert_allclose(actual, expected, rtol=1e-9)
    if (divergence, distance) == ("chi2", "kl"):
        # The constant is rounded upwards, by one part in 1e9.
        assert (actual >= np.multiply(expected, 1 - 1e-13)).all()
    else:
        assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("divergence, distance", AT_PRIOR)
@pytest.mark.parametrize("name", "ABE")
def test_bounds_at_the_prior(divergence, distance, name):
    """Numbers known to ten digits."""
    risks, prior, m, delta = INSTANCES[name]
    q = np.full(len(risks), 1 / len(risks)) if prior is None else prior
    expected = AT_PRIOR[divergence, distance]["ABE".index(name)]
    options = options_of(divergence, distance, "classical")
    actual = pac_bayes_bound(q, risks, m, delta=delta, prior=prior, **options)
    assert isinstance(actual, float)
    # Half a digit, and the upwards rounding of one part in 1e9.
    assert_allclose(actual, expected, rtol=0, atol=1.5e-10)


def test_catoni_by_its_formula():
    """A posterior with mean risk 0.1 and divergence 0.5 exactly."""
    prior = [math.exp(-0.5), -math.expm1(-0.5)]
    actual = pac_bayes_bound(
        [1.0, 0.0], [0.1, 0.7], 200, delta=0.05, divergence="kl", distance="catoni",
        prior=prior, catoni_c=1.0,
    )  # fmt: skip
    assert_allclose(actual, 0.1753471129, rtol=0, atol=6e-11)


@case
def test_vectorisation_equals_a_loop(divergence, distance, constants):
    """Leading axes of posterior, risks and prior broadcast."""
    rng = np.random.default_rng(1)
    posterior = rng.dirichlet(np.ones(4), size=(3, 1, 1))
    risks = rng.integers(0, 9, size=(2, 1, 4)) / 10
    prior = rng.dirichlet(np.ones(4), size=5)
    options = {"delta": 0.1, **options_of(divergence, distance, constants)}
    batch = pac_bayes_bound(posterior, risks, 60, prior=prior, **options)
    assert batch.shape == (3, 2, 5)
    single = [
        pac_bayes_bound(posterior[i, 0, 0], risks[j, 0], 60, prior=prior[k], **options)
        for i, j, k in np.ndindex(3, 2, 5)
    ]
    assert_allclose(batch.ravel(), single, rtol=1e-14)
    no_batch = pac_bayes_bound(np.empty((0, 4)), np.empty((0, 4)), 60, **options)
    assert no_batch.shape == (0,)


@pair
def test_no_prior_is_the_uniform_one(divergence, distance):
    """None and equal weights are the same."""
    options = {"delta": 0.1, **options_of(divergence, distance)}
    arguments = [0.2, 0.3, 0.5], [0.1, 0.4, 0.0], 50
    assert_allclose(
        pac_bayes_bound(*arguments, **options),
        pac_bayes_bound(*arguments, prior=[1 / 3] * 3, **options),
        rtol=1e-14,
    )


@case
def test_more_rows_never_hurt(divergence, distance, constants):
    """Finite and non-increasing up to 1e9 rows, also where formulas switch."""
    sizes = {int(m) for m in np.geomspace(2, 1e9, 40).round()}
    sizes |= {*range(2, 9), *range(98, 103), *range(399, 403), *range(1027, 1030)}
    sizes |= {10**9 - 1}
    options = {"delta": 0.05, **options_of(divergence, distance, constants)}
    arguments = [0.6, 0.3, 0.1], [0.1, 0.2, 0.0]
    values = np.array(
        [pac_bayes_bound(*arguments, m, **options) for m in sorted(sizes)]
    )
    assert np.isfinite(values).all()
    # Two units of rounding.
    assert (np.diff(values) <= 2**-51).all()
    assert values[0] > values[-1] >= 0.12


@given(
    weights=st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    counts=st.lists(st.integers(0, 50), min_size=3, max_size=3),
    deltas=st.tuples(st.floats(1e-9, 0.999), st.floats(1e-9, 0.999)),
    chosen=st.sampled_from(CASES),
)
def test_monotone_in_delta_and_risks(weights, counts, deltas, chosen):
    """Less certainty and fewer mistakes never give a larger bound."""
    q = np.divide(weights, sum(weights))
    risks = np.divide(counts, 50)
    options = options_of(*chosen)
    strict, loose = sorted(deltas)
    value = pac_bayes_bound(q, risks, 50, delta=strict, **options)
    assert pac_bayes_bound(q, risks, 50, delta=loose, **options) <= value + 1e-14
    worse = np.minimum(risks + [0.0, 0.1, 0.02], 1.0)
    assert pac_bayes_bound(q, worse, 50, delta=strict, **options) >= value - 1e-14


@given(
    weights=st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any),
    counts=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    delta=st.floats(1e-9, 0.999),
    m=st.integers(1, 10**6),
    constants=st.sampled_from(["exact", "classical"]),
)
def test_the_kl_distance_is_the_tightest(weights, counts, delta, m, constants):
    """Its bound is below those that relax it; Maurer's sum below the usual one."""
    q, risks = np.divide(weights, sum(weights)), np.divide(counts, 40)

    def value(distance, constants):
        return pac_bayes_bound(
            q, risks, m, delta=delta, divergence="kl", distance=distance,
            constants=constants,
        )  # fmt: skip

    least = value("kl", constants)
    assert least <= value("squared", constants) + 1e-14
    assert least <= value("lambda", constants) + 1e-14
    assert q @ risks <= least <= 1.0
    assert least >= value("kl", "exact") - 1e-14
    best = minimize_scalar(
        lambda log_c: pac_bayes_bound(
            q, risks, m, delta=delta, divergence="kl", distance="catoni",
            catoni_c=math.exp(log_c),
        ),
        bounds=(-12, 8), method="bounded",
    )  # fmt: skip
    # Catoni's at its best constant is the same without Maurer's term.
    assert best.fun <= least + 1e-9


@pytest.mark.parametrize(
    "divergence, distance, expected",
    [
        ("chi2", "linear", np.inf),
        ("chi2", "squared", np.inf),
        ("chi2", "kl", 1.0),
        ("kl", "linear", np.inf),
        ("kl", "squared", np.inf),
        ("kl", "kl", 1.0),
        ("kl", "lambda", np.inf),
        ("kl", "catoni", 1 / -math.expm1(-CATONI_C)),
    ],
)
def test_mass_where_the_prior_has_none(divergence, distance, expected):
    """Nothing is claimed: the bound is the supremum of its range."""
    options = options_of(divergence, distance)
    actual = pac_bayes_bound(
        [0.5, 0.5], [0.1, 0.2], 100, delta=0.05, prior=[0.0, 1.0], **options
    )
    assert_allclose(actual, expected, rtol=1e-15)


@pair
def test_subnormal_prior_weights(divergence, distance):
    """Vacuous without a warning from the division by them."""
    options = options_of(divergence, distance)
    actual = pac_bayes_bound(
        [0.5, 0.5], [0.1, 0.2], 100, delta=0.05, prior=[1e-310, 1.0], **options
    )
    assert actual > 0.98


# ---------------------------------------------------------------- constants


@pytest.mark.parametrize("constants", ["exact", "classical", "paper"])
@pytest.mark.parametrize("distance", ["linear", "squared", "kl"])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7, 8, 12, 20, 50, 300, 500, 1000])
def test_chi2_constant_is_the_supremum(m, distance, constants):
    """Full sums over all k, maximised over all l; never below, at most 1e-9 above."""
    expected = ref.chi2_constant(m, distance, constants)
    actual = chi2_constant(m, distance, constants)
    assert_allclose(actual, expected, rtol=1.1e-9)
    assert actual >= expected * (1 - 1e-13)


@pytest.mark.parametrize("m", CONSTANTS)
def test_chi2_constant_in_the_table(m):
    """Numbers known to ten digits."""
    kl, unsquared, squared, _ = CONSTANTS[m]
    assert_allclose(chi2_constant(m, "kl"), kl, rtol=2e-9)
    assert_allclose(chi2_constant(m, "kl", "paper"), unsquared, rtol=2e-5)
    assert_allclose(chi2_constant(m, "squared"), squared, rtol=1e-12)
    assert_allclose(chi2_constant(m, "linear"), 1 / (4 * m), rtol=1e-15)


@pytest.mark.parametrize(
    "m, expected",
    [(1028, 8.562945299e-7), (10**4, 9.047383225e-9), (10**6, 9.047179691e-13)],
)
def test_chi2_constant_for_many_rows(m, expected):
    """Beyond full sums."""
    assert_allclose(chi2_constant(m, "kl"), expected, rtol=1.2e-9)


@pytest.mark.parametrize("m", [10**8, 10**9])
def test_chi2_constant_reaches_its_poisson_limit(m):
    """The limit of m^2 I(m) is a maximum over Poisson laws."""
    k = np.arange(200)

    def moment(a):
        return poisson.pmf(k, a) @ (rel_entr(k, a) - k + a) ** 2

    best = minimize_scalar(
        lambda a: -moment(a), bounds=(1, 6), method="bounded", options={"xatol": 1e-9}
    )
    assert_allclose(-best.fun, 0.9047177636, rtol=1e-10)
    assert_allclose(best.x, 2.648465, rtol=1e-6)
    assert_allclose(m * (m * chi2_constant(m, "kl")), -best.fun, rtol=2e-8)


def test_range_of_the_chi2_constant():
    """I(m) decreases, m^2 I(m) as well from three rows on."""
    sizes = [*range(2, 60), *range(398, 404), *range(1000, 10**6, 99_999), 10**9]
    scaled = np.array([m * (m * chi2_constant(m, "kl")) for m in sizes])
    assert_allclose(scaled, np.clip(scaled, 0.90471, 1.1027), rtol=0)
    assert (np.diff(scaled[1:]) < 0).all()
    assert chi2_constant(1, "kl") > chi2_constant(2, "kl") > chi2_constant(3, "kl")


def test_printed_constants():
    """Table 5 and Lemma 3 of Sahu and Hemachandra, used beyond 1028 rows as printed."""
    printed = [chi2_constant(m, "kl", "paper") for m in (50, 500, 1028)]
    # Their grid of l is coarse, which can only lower a supremum.
    assert_allclose(printed, [0.0074799, 0.0007369, 0.0003580], rtol=5e-4)
    assert chi2_constant(5000, "kl", "paper") == printed[-1]
    assert chi2_constant(10, "squared", "paper") == 109 / 16_000
    terms = [chi2_constant(227, d, "paper") / 0.01 for d in ("linear", "squared", "kl")]
    actual = terms[0] ** 0.5, terms[1] ** 0.25, terms[2] ** 0.5
    assert_allclose(actual, [0.33186, 0.19513, 0.40330], rtol=0, atol=6e-6)


def test_maurer_sum_is_exact_for_few_rows():
    """Integer sums for 1 to 200 rows, on both sides of a change of formula."""
    actual = [log_maurer_sum(m) for m in range(1, 201)]
    # The terms that cancel below 100 rows are of the order of 360.
    assert_allclose(actual, [ref.log_xi(m) for m in range(1, 201)], rtol=0, atol=2e-13)
    slopes = np.diff(actual)
    assert (np.diff(slopes) < 0).all()


@pytest.mark.parametrize("m", [201, 1000, 10**4, 10**6, 123_456_789, 10**9])
def test_maurer_sum_is_exact_for_many_rows(m):
    """One plus Ramanujan's sum of m! / ((m-j)! m^j), in integers of 40 digits."""
    one = 10**40
    total, term, j = one, one, 1
    while term:
        total += term
        term = term * (m - j) // m
        j += 1
    assert_allclose(log_maurer_sum(m), math.log(total / one), rtol=1e-14)


def test_range_of_maurer_sum():
    """Between sqrt(m) and 2 sqrt(m), and increasing, up to 1e9 rows."""
    m = np.unique(np.geomspace(1, 1e9, 200).round())
    actual = np.array([log_maurer_sum(int(size)) for size in m])
    assert (actual >= 0.5 * np.log(m)).all()
    assert (actual <= np.log(2 * np.sqrt(m)) + 1e-15).all()
    assert (np.diff(actual) > 0).all()


@pytest.mark.parametrize("m", [1, 2, 5, 37, 300])
def test_rate_of_the_linear_distance(m):
    """The supremum over l of full sums."""
    assert_allclose(LINEAR_KL_RATE, ref.log_j_linear(m) / m, rtol=1e-12)
    assert_allclose(LINEAR_KL_RATE, 0.123301561482, rtol=0, atol=5e-13)


# ---------------------------------------------------------------- binary kl


@pytest.mark.parametrize("c", [0, 1e-12, 1e-8, 1e-4, 0.05, 0.7, 3, 20, 50, 1e3, np.inf])
@pytest.mark.parametrize("q", [0, 1e-300, 1e-12, 0.1, 0.5, 0.999999, 1 - 2e-16, 1])
def test_kl_inverse_agrees_with_bisection(q, c):
    """Upper inverse to full relative precision, lower one to absolute precision."""
    assert_allclose(kl_inverse(q, c), ref.kl_inverse(q, c), rtol=1e-12)
    lower = kl_inverse(q, c, lower=True)
    assert_allclose(lower, ref.kl_inverse(q, c, lower=True), rtol=0, atol=3e-16)


def test_kl_inverse_of_numbers_known_to_ten_digits():
    """Both directions; a float for floats."""
    assert_allclose(kl_inverse(0.1, 0.05), 0.2200786011, rtol=0, atol=6e-11)
    assert_allclose(kl_inverse(0.5, 0.02), 0.5990082836, rtol=0, atol=6e-11)
    lower = kl_inverse(0.1, 0.05, lower=True)
    assert_allclose(lower, 0.0312783963, rtol=0, atol=6e-11)
    assert_allclose(kl_inverse(0, 1e-9), -math.expm1(-1e-9), rtol=1e-15)
    assert isinstance(kl_inverse(0.1, 0.05), float)


@pytest.mark.parametrize("lower", [False, True])
def test_kl_inverse_broadcasts(lower):
    """An outer product equals single calls."""
    q, c = np.linspace(0, 1, 11), np.array([0, 1e-6, 0.3, 4.0, np.inf])
    outer = kl_inverse(q[:, None], c, lower=lower)
    single = [kl_inverse(a, b, lower=lower) for a in q for b in c]
    assert_array_equal(outer.ravel(), single)
    assert kl_inverse(np.empty(0), 0.1).shape == (0,)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("q", [0.0, 0.1, 0.3, 1 / 3, 1.0])
def test_kl_inverse_without_budget(q, lower):
    """No budget, no move."""
    assert kl_inverse(q, 0.0, lower=lower) == q


@pytest.mark.parametrize("c", [1e-12, 0.05, 50.0])
def test_kl_inverse_of_subnormal_probabilities(c):
    """The limit of q = 0, without a warning."""
    assert_allclose(kl_inverse(5e-324, c), -math.expm1(-c), rtol=1e-9)


@given(q=st.floats(1e-9, 1 - 1e-9), c=st.floats(1e-10, 60.0))
def test_kl_inverse_solves_its_equation(q, c):
    """kl(q || r) = c, bracketed by the neighbourhood of r that rounding allows."""
    r = kl_inverse(q, c)
    assert q <= r <= 1.0
    assert ref.binary_kl(q, r * (1 - 1e-13)) <= c or r * (1 - 1e-13) < q
    assert ref.binary_kl(q, min(r * (1 + 1e-13), 1.0)) >= c
    assert r <= q + math.sqrt(0.5 * c) + 1e-15
    r = kl_inverse(q, c, lower=True)
    assert 0.0 <= r <= q + 2e-16
    assert ref.binary_kl(q, min(r + 1e-15, q)) <= c
    assert ref.binary_kl(q, max(r - 1e-15, 0.0)) >= c


# ---------------------------------------------------------------- tails and votes


@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.05, 0.5, 0.999])
@pytest.mark.parametrize(
    "k, m", [(0, 1), (1, 1), (0, 100), (3, 100), (50, 100), (99, 100), (7, 1000)]
)
def test_binomial_tail_bound_inverts_the_tail(k, m, delta):
    """Against bisection in decimals."""
    expected = ref.binomial_tail_bound(k, m, delta)
    assert_allclose(binomial_tail_bound(k, m, delta=delta), expected, rtol=1e-12)


def test_binomial_tail_bound_of_known_numbers():
    """Clopper-Pearson limits to ten digits, and vectorised."""
    actual = binomial_tail_bound([3, 0, 100], 100, delta=0.05)
    assert_allclose(actual, [0.0757107937, 0.0295130496, 1], rtol=0, atol=6e-11)
    assert isinstance(binomial_tail_bound(3, 100, delta=0.05), float)
    outer = binomial_tail_bound(np.arange(9)[:, None], 8, delta=[0.01, 0.1, 0.4])
    assert outer.shape == (9, 3)
    assert (np.diff(outer[:-1], axis=0) > 0).all()
    assert (np.diff(outer[:-1], axis=1) < 0).all()
    assert_array_equal(outer[-1], 1.0)
    large = binomial_tail_bound(0, 10**9, delta=0.05)
    assert_allclose(large, -math.expm1(math.log(0.05) / 1e9), rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_occam_bound_agrees_with_the_reference(seed):
    """Random counts and priors, zero weights among them, in one call."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(5, 200))
    counts = rng.integers(0, m + 1, size=(4, 6))
    prior = rng.dirichlet(np.ones(6), size=4)
    prior[:, :2] = 0.0
    prior /= prior.sum(axis=1, keepdims=True)
    actual = occam_bound(counts / m, m, delta=0.1, prior=prior)
    expected = [ref.occam_bound(*pair) for pair in zip(
        counts, [m] * 4, [0.1] * 4, prior, strict=True)]  # fmt: skip
    assert_allclose(actual, expected, rtol=1e-11)
    uniform = occam_bound(counts[0] / m, m, delta=0.1)
    assert_allclose(uniform, ref.occam_bound(counts[0], m, 0.1), rtol=1e-11)


def test_occam_bound_of_known_numbers():
    """Ten digits; all members wrong everywhere."""
    actual = occam_bound([0.03, 0.05, 0.09], 100, delta=0.05)
    assert_allclose(actual, 0.0904824054, rtol=0, atol=6e-11)
    assert occam_bound([1.0, 1.0], 20, delta=0.05) == 1.0


@pytest.mark.parametrize("m", [1, 3, 7, 49, 100, 997])
def test_occam_bound_recovers_counts(m):
    """Shares k/m are the counts k; a fraction of a mistake counts as one."""
    k = np.arange(m + 1)
    expected = binomial_tail_bound(k, m, delta=0.05)
    assert_array_equal(occam_bound(k[:, None] / m, m, delta=0.05), expected)
    between = (k[:-1, None] + 0.01) / m
    assert_array_equal(occam_bound(between, m, delta=0.05), expected[1:])


@pytest.mark.parametrize("constants", ["exact", "classical", "paper"])
def test_tandem_bound_agrees_with_the_reference(constants):
    """Random weights and joint mistakes, batched over both."""
    rng = np.random.default_rng(3)
    wrong = rng.random((5, 80, 4)) < 0.3
    joint = np.einsum("bni,bnj->bij", wrong, wrong) / 80
    prior = rng.dirichlet(np.ones(4))
    q = rng.dirichlet(np.ones(4), size=(3, 1))
    options = {"delta": 0.05, "prior": prior, "constants": constants}
    actual = tandem_bound(q, joint, 80, **options)
    expected = [
        ref.tandem_bound(q[i, 0], joint[j], 80, **options) for i, j in np.ndindex(3, 5)
    ]
    assert_allclose(actual.ravel(), expected, rtol=1e-12)


def test_tandem_bound_of_a_known_number():
    """Ten digits."""
    joint = [[0.1, 0.04, 0.03], [0.04, 0.12, 0.05], [0.03, 0.05, 0.2]]
    actual = tandem_bound(
        [0.5, 0.3, 0.2], joint, 400, delta=0.05, constants="classical"
    )
    assert_allclose(actual, 0.4961785306, rtol=0, atol=6e-11)


def test_c_bound():
    """Formula, edges, and limits that contradict one another."""
    assert_allclose(c_bound(0.12, 0.09), 0.2956097561, rtol=0, atol=6e-11)
    R, d = np.linspace(0, 0.49, 8)[:, None], np.linspace(0, 0.49, 7)
    expected = [max(ref.c_bound(a, b), 0.0) for a in R[:, 0] for b in d]
    assert_allclose(c_bound(R, d).ravel(), expected, rtol=0, atol=1e-14)
    assert_array_equal(c_bound([0.5, 0.5, 0.7, 1.0], [0.1, 0.5, 0.5, 0.0]), 1.0)
    assert_array_equal(c_bound([0.1, 0.4], 0.5), 0.0)
    assert isinstance(c_bound(0.1, 0.1), float)


# ---------------------------------------------------------------- mixtures


@pytest.mark.parametrize("n_orders", [1, 2])
@pytest.mark.parametrize("n_blocks", [1, 2, 5])
def test_mixture_bound_is_the_constrained_maximum(n_blocks, n_orders):
    """Against a solver, for one and several orders of the rows."""
    rng = np.random.default_rng(n_blocks)
    n = n_blocks * n_orders
    weights, c = rng.dirichlet(np.ones(n)), rng.uniform(0.1, 3.0, n)
    losses, kls = rng.uniform(0, 0.5, n), rng.uniform(0, 2, n)
    actual = mixture_bound(weights, c, losses, kls, n_orders, 150, 0.05)
    expected = ref.progressive_bound(weights, c, losses, kls / n_orders, 0.05, 150)
    assert_allclose(actual, expected, rtol=1e-9)


def test_mixture_of_one_block_is_catonis_bound():
    """The same number from the formula for all rows at once."""
    prior, risks, c = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.15, 0.3]), 0.7
    options = {"divergence": "kl", "distance": "catoni", "catoni_c": c, "prior": prior}
    q, value = optimal_posterior(risks, 120, delta=0.05, **options)
    one = np.ones(1)
    kl = rel_entr(q, prior).sum()
    actual = mixture_bound(one, c * one, (q @ risks) * one, kl * one, 1, 120, 0.05)
    assert_allclose(actual, value, rtol=1e-12)


def test_evidence_of_blocks():
    """Weights by rows, divergences averaged over orders, levels shared by blocks."""
    rng = np.random.default_rng(5)
    n_rows, delta = [30, 50, 50, 30], 0.1
    blocks = []
    for rows in n_rows:
        prior = rng.dirichlet(np.ones(3))
        counts = rng.integers(0, rows // 2, size=3)
        c = float(rng.uniform(0.3, 2.0))
        q, _ = ref.best_posterior(
            counts / rows, rows, delta, "kl", "catoni", prior, catoni_c=c, n_starts=1
        )
        blocks.append(
            {"risks": counts / rows, "prior": prior, "posterior": q, "n_rows": rows,
             "catoni_c": c, "counts": counts}
        )  # fmt: skip
    evidence = MixtureEvidence(blocks, 2, vote_is_posterior=True)
    assert evidence.n_units == 80
    losses = [b["posterior"] @ b["risks"] for b in blocks]
    kls = [ref.kl_term(b["posterior"], b["prior"]) / 2 for b in blocks]
    weights, c = np.divide(n_rows, 160), [b["catoni_c"] for b in blocks]
    expected = ref.progressive_bound(weights, c, losses, kls, delta, 80)
    assert_allclose(evidence.risk_bound(delta), expected, rtol=1e-9)
    assert_allclose(evidence.vote_bound(delta), 2 * expected, rtol=1e-9)
    assert_allclose(evidence.gibbs_risk, weights @ losses, rtol=1e-14)
    expected = min(
        ref.occam_bound(b["counts"], b["n_rows"], delta / 4, b["prior"]) for b in blocks
    )
    assert_allclose(np.min(evidence.member_bounds(delta)), expected, rtol=1e-11)
    # A vote with the priors' weights has the bound of drawing from the priors.
    losses = [b["prior"] @ b["risks"] for b in blocks]
    expected = ref.progressive_bound(weights, c, losses, np.zeros(4), delta, 80)
    evidence = MixtureEvidence(blocks, 2, vote_is_posterior=False)
    assert_allclose(evidence.vote_bound(delta), 2 * expected, rtol=1e-9)
    assert_allclose([evidence.prior.sum(), evidence.posterior.sum()], 1, rtol=1e-12)


@pytest.mark.parametrize("risk", [0.001, 0.05, 0.2, 0.45])
@pytest.mark.parametrize("m", [50, 400])
def test_catoni_constant_is_the_best_for_its_risk(risk, m):
    """No other constant gives less where posterior and prior agree."""
    c = catoni_constant(risk, m, m, 0.05)
    clipped = max(risk, 0.5 / m)
    values = pac_bayes_bounds_of_catoni(clipped, m, c * np.linspace(0.5, 2.0, 31))
    least = pac_bayes_bounds_of_catoni(clipped, m, [c])
    assert (values >= least - 1e-15).all()
    # It is then the Chernoff bound.
    assert_allclose(least, ref.kl_inverse(clipped, math.log(20) / m), rtol=1e-10)


def pac_bayes_bounds_of_catoni(risk, m, constants):
    """Catoni's bound of one classifier for several constants."""
    return np.array(
        [
            pac_bayes_bound(
                [1.0], [risk], m, delta=0.05, divergence="kl", distance="catoni",
                catoni_c=float(c),
            )
            for c in constants
        ]
    )  # fmt: skip


@pytest.mark.parametrize("risk", [0.0, 0.49, 0.6, 1.0])
def test_catoni_constant_clips_its_risk(risk):
    """Positive and finite whatever the risk; other rows enter the level only."""
    c = catoni_constant(risk, 40, 40, 0.05)
    assert 0.0 < c < np.inf
    r = min(max(risk, 0.5 / 40), 0.49)
    u = ref.kl_inverse(r, math.log(20) / 100)
    expected = math.log(u * (1 - r) / (r * (1 - u)))
    assert_allclose(catoni_constant(risk, 40, 100, 0.05), expected, rtol=1e-11)


# ---------------------------------------------------------------- bad input


GOOD = {"delta": 0.05, "divergence": "kl", "distance": "kl"}
Q, L = [0.5, 0.3, 0.2], [0.1, 0.2, 0.3]
JOINT = np.full((3, 3), 0.1)


def the_bound(posterior=Q, risks=L, n_samples=50, **options):
    return pac_bayes_bound(posterior, risks, n_samples, **{**GOOD, **options})


def the_posterior(risks=L, n_samples=50, **options):
    return optimal_posterior(risks, n_samples, **{**GOOD, **options})


def the_occam(risks=L, n_samples=50, delta=0.05, **options):
    return occam_bound(risks, n_samples, delta=delta, **options)


def the_tandem(posterior=Q, joint=JOINT, n_samples=50, delta=0.05, **options):
    return tandem_bound(posterior, joint, n_samples, delta=delta, **options)


def the_tail(n_errors=3, n_samples=50, delta=0.05):
    return binomial_tail_bound(n_errors, n_samples, delta=delta)


FUNCTIONS = [the_bound, the_posterior, the_occam, the_tandem, the_tail]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, np.nan, np.inf])
def test_bad_delta(function, delta):
    """A level outside (0, 1) is refused, with its value."""
    with pytest.raises(ValueError, match=rf"delta must lie in \(0, 1\); got {delta}"):
        function(delta=delta)


@pytest.mark.parametrize("function", FUNCTIONS[:4])
@pytest.mark.parametrize("delta", [None, "0.05", [0.05, 0.1]])
def test_delta_is_one_number(function, delta):
    """Anything else is refused."""
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\); got "):
        function(delta=delta)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n_samples", [0, -1, 2.5, np.nan, np.inf, "50", None])
def test_bad_n_samples(function, n_samples):
    """Not a positive whole number."""
    with pytest.raises(
        ValueError, match=r"n_samples must be a positive whole number; got "
    ):
        function(n_samples=n_samples)


@pytest.mark.parametrize("n_samples", [50.0, np.int32(50), np.float64(50)])
def test_whole_numbers_of_any_type(n_samples):
    """A float or NumPy number of rows is accepted if it is whole."""
    assert the_bound(n_samples=n_samples) == the_bound(n_samples=50)
    assert chi2_constant(n_samples, "kl") == chi2_constant(50, "kl")


@pytest.mark.parametrize("function", FUNCTIONS[:4])
@pytest.mark.parametrize(
    "weights, message",
    [
        ([0.5, 0.5], r"prior must have one entry per member, 3; got shape \(2,\)"),
        (1.0, r"prior must have one entry per member, 3; got shape \(\)"),
        ([0.6, 0.6, -0.2], r"prior must be finite and non-negative"),
        ([0.5, 0.5, np.nan], r"prior must be finite and non-negative"),
        ([0.5, 0.5, np.inf], r"prior must be finite and non-negative"),
        ([0.0, 0.0, 0.0], r"prior must sum to 1; got a sum of 0\.0"),
        ([0.3, 0.3, 0.3], r"prior must sum to 1; got a sum of 0\.8999"),
        ([[0.5, 0.3, 0.2], [1.0, 0.5, 0.5]], r"prior must sum to 1; got a sum of 2\.0"),
    ],
)
def test_bad_prior(function, weights, message):
    """Wrong length, negative, not finite, zero mass, or another sum."""
    with pytest.raises(ValueError, match=message):
        function(prior=weights)


@pytest.mark.parametrize("function", [the_bound, the_tandem])
@pytest.mark.parametrize(
    "weights, message",
    [
        ([0.5, 0.5], r"posterior must have one entry per member, 3; got shape \(2,\)"),
        ([0.6, 0.6, -0.2], r"posterior must be finite and non-negative"),
        ([0.5, 0.5, np.nan], r"posterior must be finite and non-negative"),
        ([0.0, 0.0, 0.0], r"posterior must sum to 1; got a sum of 0\.0"),
        ([1.0, 1.0, 1.0], r"posterior must sum to 1; got a sum of 3\.0"),
    ],
)
def test_bad_posterior(function, weights, message):
    """The same for the posterior."""
    with pytest.raises(ValueError, match=message):
        function(posterior=weights)


@pytest.mark.parametrize("function", [the_bound, the_posterior])
def test_sums_off_by_rounding_are_forgiven(function):
    """Within 1e-6 weights are normalised."""
    prior = np.array([0.2, 0.3, 0.5])
    off, exact = function(prior=prior * (1 + 9e-7)), function(prior=prior)
    if function is the_posterior:
        off, exact = off[1], exact[1]
    assert_allclose(off, exact, rtol=1e-12)
    with pytest.raises(ValueError, match=r"prior must sum to 1; got a sum of 1\.0000"):
        function(prior=prior * (1 + 2e-6))


@pytest.mark.parametrize("function", FUNCTIONS[:3])
@pytest.mark.parametrize(
    "risks, message",
    [
        ([0.1, 0.2, 1.01], r"risks must be finite and lie in \[0, 1\]"),
        ([0.1, -0.2, 0.3], r"risks must be finite and lie in \[0, 1\]"),
        ([0.1, 0.2, np.nan], r"risks must be finite and lie in \[0, 1\]"),
        ([0.1, 0.2, np.inf], r"risks must be finite and lie in \[0, 1\]"),
        ([], r"risks must have one entry per member; got shape \(0,\)"),
        (0.1, r"risks must have one entry per member; got shape \(\)"),
        (np.empty((2, 0)), r"risks must have one entry per member; got shape \(2, 0\)"),
    ],
)
def test_bad_risks(function, risks, message):
    """Outside [0, 1], not finite, or empty."""
    with pytest.raises(ValueError, match=message):
        function(risks=risks)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3)])
def test_tandem_risks_are_square(shape):
    """One joint risk per pair of members."""
    message = r"tandem_risks must be square in its last axes; got shape "
    with pytest.raises(ValueError, match=message):
        the_tandem(joint=np.full(shape, 0.1))


@pytest.mark.parametrize("function", [the_bound, the_posterior])
@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"divergence": "tv"},
            r"divergence must be one of \['chi2', 'kl'\]; got 'tv'",
        ),
        (
            {"divergence": "chi2", "distance": "lambda"},
            r"with divergence='chi2', distance must be one of "
            r"\['linear', 'squared', 'kl'\]; got 'lambda'",
        ),
        (
            {"divergence": "chi2", "distance": "catoni", "catoni_c": 1.0},
            r"with divergence='chi2', distance must be one of .*; got 'catoni'",
        ),
        (
            {"distance": "hinge"},
            r"with divergence='kl', distance must be one of \['linear', 'squared', "
            r"'kl', 'lambda', 'catoni'\]; got 'hinge'",
        ),
        (
            {"distance": "catoni"},
            r"distance='catoni' needs catoni_c, a positive constant",
        ),
        (
            {"distance": "catoni", "catoni_c": 0},
            r"catoni_c must be positive and finite; got 0",
        ),
        (
            {"distance": "catoni", "catoni_c": -1.0},
            r"catoni_c must be positive and finite; got -1\.0",
        ),
        (
            {"distance": "catoni", "catoni_c": np.nan},
            r"catoni_c must be positive and finite; got nan",
        ),
        (
            {"distance": "catoni", "catoni_c": np.inf},
            r"catoni_c must be positive and finite; got inf",
        ),
        (
            {"constants": "sharp"},
            r"constants must be one of \['exact', 'classical', 'paper'\]; got 'sharp'",
        ),
        (
            {
                "divergence": "chi2",
                "distance": "squared",
                "constants": "paper",
                "n_samples": 1,
            },
            r"constants='paper' has no valid constant for one row and "
            r"distance='squared'; use constants='exact'",
        ),
    ],
)
def test_bad_options(function, options, message):
    """Names that are unknown, pairs that make no bound, constants that do not exist."""
    with pytest.raises(ValueError, match=message):
        function(**options)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((10, "lambda"), r"with divergence='chi2', distance must be one of"),
        ((10, "kl", "sharp"), r"constants must be one of"),
        ((0, "kl"), r"n_samples must be a positive whole number; got 0"),
        ((1, "squared", "paper"), r"no valid constant for one row"),
    ],
)
def test_bad_arguments_of_chi2_constant(arguments, message):
    """The same checks."""
    with pytest.raises(ValueError, match=message):
        chi2_constant(*arguments)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_kl_inverse_refuses_what_is_no_probability(q):
    """Outside [0, 1]."""
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        kl_inverse(q, 0.1)


@pytest.mark.parametrize("c", [-1e-9, np.nan, -np.inf])
def test_kl_inverse_refuses_negative_budgets(c):
    """No r satisfies the inequality."""
    with pytest.raises(ValueError, match=r"c must be non-negative"):
        kl_inverse(0.1, c)


@pytest.mark.parametrize("n_errors", [-1, 51, 2.5, np.nan])
def test_binomial_tail_bound_refuses_impossible_counts(n_errors):
    """Not a whole number from 0 to the number of rows."""
    message = r"n_errors must be whole numbers from 0 to n_samples=50; got "
    with pytest.raises(ValueError, match=message):
        the_tail(n_errors=n_errors)


@pytest.mark.parametrize(
    "risk, apart, message",
    [
        (-0.1, 0.1, r"gibbs_risk must lie in \[0, 1\]"),
        (np.nan, 0.1, r"gibbs_risk must lie in \[0, 1\]"),
        (0.1, 0.6, r"disagreement must lie in \[0, 0\.5\]"),
        (0.1, np.nan, r"disagreement must lie in \[0, 0\.5\]"),
    ],
)
def test_c_bound_refuses_impossible_values(risk, apart, message):
    """Outside their ranges."""
    with pytest.raises(ValueError, match=message):
        c_bound(risk, apart)
