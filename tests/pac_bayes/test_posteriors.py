"""Posteriors that minimise PAC-Bayes bounds, and weights from a certification part."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from scipy.special import softmax

from pac_bayes.test_reference import INSTANCES, OPTIMA, POSTERIORS
from skbounds.pac_bayes import _posteriors, optimal_posterior, pac_bayes_bound
from skbounds.pac_bayes._certify import CATONI_GRID, catoni_constant, weigh_members
from skbounds.pac_bayes._constants import LINEAR_KL_RATE
from skbounds.pac_bayes._stacking import informed_prior

CLOSED = [("chi2", "linear"), ("chi2", "squared"), ("kl", "linear"), ("kl", "catoni")]
SEARCHED = [("chi2", "kl"), ("kl", "squared"), ("kl", "kl"), ("kl", "lambda")]
PAIRS = CLOSED + SEARCHED
# A shift of all risks shifts these bounds.
SHIFTED = [("chi2", "linear"), ("chi2", "squared"), ("kl", "linear"), ("kl", "squared")]
CONSTANTS = ["exact", "classical", "paper"]
CATONI_C = 0.8

pair = pytest.mark.parametrize("divergence, distance", PAIRS)


def options_of(divergence, distance, constants="exact"):
    """Keywords of a bound; Catoni's constant where it is needed."""
    options = {
        "divergence": divergence,
        "distance": distance,
        "constants": constants,
    }
    return {**options, "catoni_c": CATONI_C} if distance == "catoni" else options


def solve(risks, m, **options):
    """Posterior, bound and proved gap; the gap keeps what is promised."""
    q, value, gap = optimal_posterior(risks, m, return_gap=True, **options)
    if (options["divergence"], options["distance"]) in CLOSED:
        assert_array_equal(gap, 0.0)
    assert np.all(gap >= 0.0) and np.all(gap <= 1e-6)
    assert_allclose(q.sum(axis=-1), 1.0, rtol=1e-12)
    assert (q >= 0.0).all()
    return q, value, gap


def complexities(q, p, divergence):
    """Sum of q^2 / p or the KL divergence, along the last axis; p is positive."""
    if divergence == "chi2":
        return (q**2 / p).sum(axis=-1)
    return (q * np.log(np.where(q > 0, q / p, 1.0))).sum(axis=-1)


# ---------------------------------------------------------------- known optima


@pytest.mark.parametrize("divergence, distance, constants", OPTIMA)
@pytest.mark.parametrize("name", INSTANCES)
def test_least_bounds_known_to_ten_digits(name, divergence, distance, constants):
    """The global optimum, and the bound of the posterior that is returned."""
    risks, prior, m, delta = INSTANCES[name]
    expected = OPTIMA[divergence, distance, constants][list(INSTANCES).index(name)]
    options = {"delta": delta, "prior": prior}
    options |= options_of(divergence, distance, constants)
    q, value, _ = solve(risks, m, **options)
    assert_allclose(value, expected, rtol=0, atol=1e-9)
    assert_allclose(value, pac_bayes_bound(q, risks, m, **options), rtol=1e-14)
    assert isinstance(value, float)


@pytest.mark.parametrize("name, divergence, distance, constants, expected", POSTERIORS)
def test_known_posteriors(name, divergence, distance, constants, expected):
    """To six digits: bounds are flat at their minimum."""
    risks, prior, m, delta = INSTANCES[name]
    options = options_of(divergence, distance, constants)
    q, _, _ = solve(risks, m, delta=delta, prior=prior, **options)
    assert_allclose(q, expected, rtol=0, atol=1e-6)
    if divergence == "chi2" and (divergence, distance) in CLOSED:
        # These are known to ten digits.
        assert_allclose(q, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "distance, rate", [("linear", 1.0), ("catoni", CATONI_C)], ids=["linear", "catoni"]
)
def test_exponential_weights(distance, rate):
    """Equation 16 of Sahu and Hemachandra, and the same with Catoni's constant."""
    risks, prior = np.array([0.1, 0.12, 0.2, 0.35]), np.array([0.1, 0.2, 0.3, 0.4])
    q, _, _ = solve(risks, 200, delta=0.05, prior=prior, **options_of("kl", distance))
    expected = softmax(np.log(prior) - 200 * rate * risks)
    assert_allclose(q, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "m, distance, others, inside, at_point",
    [
        (100, "squared", 0.15, 0.2630033, 0.2670481),
        (100, "squared", 0.16, 0.2691851, 0.2670481),
        (80, "kl", 0.12, 0.225141, 0.213665),
        (100, "kl", 0.08, 0.168283, 0.183617),
    ],
)
def test_the_global_one_of_two_minima(m, distance, others, inside, at_point):
    """Remark 2 of Sahu and Hemachandra has one only; here are two, in either order."""
    risks, options = [0.02] + [others] * 9, options_of("chi2", distance)
    t = np.linspace(0.1, 1.0, 20_001)
    line = np.column_stack([t, *[(1 - t) / 9] * 9])
    values = pac_bayes_bound(line, risks, m, delta=0.05, **options)
    lowest = np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]))
    assert len(lowest) == 1 and values[-1] < values[-2]
    assert_allclose(values[1 + lowest[0]], inside, rtol=0, atol=1e-6)
    assert_allclose(values[-1], at_point, rtol=0, atol=1e-6)
    q, value, _ = solve(risks, m, delta=0.05, **options)
    assert_allclose(value, min(inside, at_point), rtol=0, atol=1e-6)
    assert (q[0] == 1.0) == (at_point < inside)


@pytest.mark.parametrize(
    "m, risks, sizes",
    [
        (100, [0.0, 0.01, 0.289, 0.302], [1, 1, 28, 184]),
        (100, [0.0, 0.001, 0.048, 0.286], [1, 1, 12, 1835]),
        (100, [0.0, 0.001, 0.136, 0.319], [1, 1, 3, 159]),
        (1000, [0.0, 0.01, 0.1, 0.203], [1, 1, 4, 1250]),
    ],
)
@pytest.mark.parametrize("distance", ["squared", "kl"])
def test_the_global_one_of_several_stationary_points(distance, m, risks, sizes):
    """Groups of members, the better the smaller: minima on several supports."""
    prior = np.divide(sizes, sum(sizes))
    options = {"delta": 0.05, "prior": prior, **options_of("chi2", distance)}
    levels = np.geomspace(1e-4, 100.0, 20_001)[:, None]
    laws = prior * np.maximum(levels - risks, 0.0)
    laws /= laws.sum(axis=1, keepdims=True)
    values = pac_bayes_bound(laws, risks, m, **options)
    inner = values[1:-1]
    assert np.sum((inner < values[:-2] - 1e-12) & (inner <= values[2:])) >= 1
    _, value, gap = solve(risks, m, **options)
    assert value <= values.min() + max(gap, 1e-12)
    assert value >= values.min() - 1e-5


# ---------------------------------------------------------------- optimality


def random_instance(rng, shape, H):
    """Risks and prior of several kinds."""
    prior = rng.dirichlet(np.full(H, 0.7 if shape == "ties" else 2.0))
    if shape == "ties":
        risks = rng.choice([0.0, 0.05, 0.1, 0.3], size=H)
        prior[rng.random(H) < 0.25] = 0.0
        prior[-1] += 0.05
    elif shape == "few good":
        risks = np.where(np.arange(H) < max(1, H // 10), 0.02, rng.uniform(0.1, 0.2))
        risks = risks + 0.002 * rng.integers(0, 3, size=H)
        prior = np.full(H, 1.0)
    elif shape == "close":
        risks = 0.2 + 1e-3 * rng.random(H)
    else:
        risks = rng.random(H)
    return risks, prior / prior.sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pair
def test_not_above_a_general_solver(divergence, distance, seed):
    """Started many times; its bound of our posterior is what we claim."""
    rng = np.random.default_rng(seed)
    H = 2 + seed % 7
    risks, prior = random_instance(rng, ["ties", "few good", "any"][seed % 3], H)
    m, delta = [20, 60, 300][seed % 3], [0.05, 0.3, 0.01, 0.1][seed % 4]
    options = options_of(divergence, distance, CONSTANTS[(seed // 3) % 3])
    q, value, _ = solve(risks, m, delta=delta, prior=prior, **options)
    assert (q[prior == 0] == 0).all()
    arguments = {"prior": prior, **options}
    assert_allclose(value, ref.bound(q, risks, m, delta, **arguments), rtol=1e-9)
    _, least = ref.best_posterior(risks, m, delta, n_starts=2, rng=seed, **arguments)
    assert value <= least + 1e-9


def candidates(rng, q, risks, prior, m, n=4000):
    """Vertices, random laws, both families of optimal ones, and neighbours of q."""
    H = len(q)
    has_mass = prior > 0
    sparse = rng.dirichlet(np.full(H, 0.1), size=n) + 1e-300
    spread = prior * rng.dirichlet(np.ones(H), size=n)
    levels = rng.uniform(risks.min(), 2 * risks.max() + 1e-3, size=(n, 1))
    cut = prior * np.maximum(levels - risks, 0.0)
    tilt = softmax(-np.geomspace(1e-3, 1e3, n)[:, None] * m * risks, axis=1) * prior
    sets = [np.eye(H)[has_mass], (sparse + 1e-9) * has_mass, spread, cut, tilt]
    # Steps of all sizes from q towards other laws and vertices.
    step = 10.0 ** rng.uniform(-7, 0, size=(n, 1))
    other = np.where(
        rng.random((n, 1)) < 0.5, np.eye(H)[rng.integers(H, size=n)], prior
    )
    sets.append(((1 - step) * q + step * other) * has_mass)
    laws = np.concatenate(sets)
    total = laws.sum(axis=1, keepdims=True)
    return laws[total[:, 0] > 0] / total[total[:, 0] > 0]


@pytest.mark.parametrize("H", [3, 12, 50])
@pytest.mark.parametrize("shape", ["any", "ties", "few good", "close"])
@pytest.mark.parametrize("m", [5, 100, 2000])
@pair
def test_no_other_posterior_is_better(divergence, distance, m, shape, H):
    """A large random search finds nothing below the bound by more than the gap."""
    rng = np.random.default_rng(H + m)
    risks, prior = random_instance(rng, shape, H)
    options = {"delta": 0.05, "prior": prior, **options_of(divergence, distance)}
    q, value, gap = solve(risks, m, **options)
    assert_allclose(value, pac_bayes_bound(q, risks, m, **options), rtol=1e-13)
    laws = candidates(rng, q, risks, prior, m)
    assert len(laws) > 16_000
    values = pac_bayes_bound(laws, risks, m, **options)
    assert values.min() >= value - max(gap, 1e-12)
    # The search is not blind: it comes close.
    assert values.min() <= value + 1e-3


def slopes(q, p, risks, m, delta, divergence, distance):
    """Gradient of the bound, up to a constant that all members share."""
    S = complexities(q, p, divergence)
    if distance == "linear" and divergence == "chi2":
        return risks + 2 * q / p * 0.5 * np.sqrt(1 / (4 * m * delta * S))
    if distance == "squared" and divergence == "chi2":
        constant = (3 * m - 2) / (16 * m**3) / delta
        return risks + 2 * q / p * 0.25 * (constant * S) ** 0.25 / S
    rate = m * CATONI_C if distance == "catoni" else m
    return risks + np.log(np.where(q > 0, q / p, 1.0)) / rate


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("divergence, distance", CLOSED)
def test_first_order_conditions(divergence, distance, seed):
    """Equal slopes on the support, none smaller off it."""
    rng = np.random.default_rng(seed)
    H = int(rng.integers(2, 40))
    risks = rng.integers(0, 60, size=H) / 100
    p = rng.dirichlet(np.ones(H))
    m, delta = int(rng.integers(2, 1000)), float(rng.uniform(0.01, 0.2))
    options = options_of(divergence, distance)
    q, _, _ = solve(risks, m, delta=delta, prior=p, **options)
    d = slopes(q, p, risks, m, delta, divergence, distance)
    # Weights that underflow have no logarithm.
    support = q > 1e-290
    common = d[support].mean()
    assert_allclose(d[support], common, rtol=0, atol=1e-8)
    assert (d[~support] >= common - 1e-8).all()
    assert divergence == "chi2" or support.sum() > 1


@pytest.mark.parametrize("seed", range(20))
def test_linear_chi2_bound_is_its_multiplier(seed):
    """sum p (mu - l)_+^2 = 1 / (4 m delta) at mu, the bound itself; Equation 10."""
    rng = np.random.default_rng(seed)
    H, m, delta = 20, int(rng.integers(10, 500)), 0.05
    risks = np.sort(rng.random(H))
    q, mu, _ = solve(risks, m, delta=delta, **options_of("chi2", "linear"))
    kappa = 1 / (4 * m * delta)
    assert_allclose(np.sum(np.maximum(mu - risks, 0) ** 2) / H, kappa, rtol=1e-10)
    k = int(np.sum(q > 0))
    assert k > 1
    mean, var = risks[:k].mean(), risks[:k].var()
    root = math.sqrt(H * kappa / k - var)
    assert_allclose(mu, mean + root, rtol=1e-12)
    assert_allclose(q[:k], (1 + (mean - risks[:k]) / root) / k, rtol=1e-9, atol=1e-14)


# ---------------------------------------------------------------- shapes and extremes


@pair
def test_batch_equals_loop(divergence, distance):
    """Leading axes of risks and prior broadcast."""
    rng = np.random.default_rng(0)
    risks = rng.integers(0, 20, size=(4, 1, 6)) / 40
    prior = rng.dirichlet(np.ones(6), size=3)
    prior[1, 2:] = 0.0
    prior /= prior.sum(axis=1, keepdims=True)
    options = {"delta": 0.1, **options_of(divergence, distance)}
    q, value, gap = solve(risks, 80, prior=prior, **options)
    assert q.shape == (4, 3, 6) and value.shape == gap.shape == (4, 3)
    single = [
        optimal_posterior(risks[i, 0], 80, prior=prior[j], return_gap=True, **options)
        for i, j in np.ndindex(4, 3)
    ]
    assert_allclose(q.reshape(12, 6), [s[0] for s in single], rtol=1e-13, atol=1e-300)
    assert_allclose(value.ravel(), [s[1] for s in single], rtol=1e-14)
    assert_allclose(gap.ravel(), [s[2] for s in single], rtol=0, atol=1e-15)
    q, value = optimal_posterior(np.empty((0, 3)), 80, **options)
    assert q.shape == (0, 3) and value.shape == (0,)


@pytest.mark.parametrize("risk", [0.0, 0.3, 1.0])
@pair
def test_one_member(divergence, distance, risk):
    """Nothing to choose."""
    options = {"delta": 0.1, **options_of(divergence, distance)}
    q, value, gap = solve([risk], 30, **options)
    assert q.tolist() == [1.0] and gap == 0.0
    assert value == pac_bayes_bound([1.0], [risk], 30, **options)


@pytest.mark.parametrize("risk", [0.0, 0.3, 1.0])
@pair
def test_equal_risks_keep_the_prior(divergence, distance, risk):
    """Lemma 4 of Sahu and Hemachandra, for every bound; also without prior mass."""
    prior = np.array([0.5, 0.0, 0.3, 0.2])
    options = {"delta": 0.1, "prior": prior, **options_of(divergence, distance)}
    q, _, _ = solve([risk, 0.0, risk, risk], 30, **options)
    assert_allclose(q, prior, rtol=1e-14)


@pair
def test_many_members(divergence, distance):
    """100,000 members with different risks, in one call that is not slow."""
    risks = np.random.default_rng(0).random(100_000)
    options = {"delta": 0.05, **options_of(divergence, distance)}
    q, value, _ = solve(risks, 1000, **options)
    assert risks.min() <= value <= 0.5
    order = np.argsort(risks)
    assert (np.diff(q[order]) <= 1e-18).all()
    # No group of members with neighbouring risks does better, nor does a part of q.
    groups = np.repeat(np.eye(20), 5000, axis=1)[:, np.argsort(order)] / 5000
    laws = np.concatenate([groups, 0.9 * q + 0.1 * groups])
    assert pac_bayes_bound(laws, risks, 1000, **options).min() >= value - 1e-6


@pytest.mark.parametrize("least", [0.0, 0.3])
@pytest.mark.parametrize("apart", [1e-3, 1e-8, 1e-12, 1e-16, 1e-170, 5e-324])
@pair
def test_risks_that_hardly_differ(divergence, distance, apart, least):
    """As good as the bound of equal risks, whose optimum is the prior."""
    risks, m = np.array([least, least + apart, least]), 100
    options = {"delta": 0.05, **options_of(divergence, distance)}
    _, value, gap = solve(risks, m, **options)
    at_prior = pac_bayes_bound(np.full(3, 1 / 3), risks, m, **options)
    assert value <= at_prior + max(gap, 1e-14)
    assert value >= pac_bayes_bound(np.full(3, 1 / 3), [least] * 3, m, **options) - 1e-6


@pytest.mark.parametrize("risks", [[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]])
@pytest.mark.parametrize("tiny", [1e-4, 1e-9, 1e-15, 1e-17, 1e-40, 1e-200, 1e-310])
@pair
def test_negligible_prior_of_the_best_member(divergence, distance, tiny, risks):
    """A member of next to no prior weight cannot make the optimum worse."""
    prior = np.array([tiny, 0.5 - tiny / 2, 0.5 - tiny / 2])
    options = {"delta": 0.05, **options_of(divergence, distance)}
    _, value, gap = solve(risks, 100, prior=prior, **options)
    _, without, _ = solve(risks, 100, prior=[0.0, 0.5, 0.5], **options)
    assert value <= without + max(gap, 1e-12)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1 - 1e-16])
@pytest.mark.parametrize("m", [1, 10**9])
@pair
def test_extreme_levels_and_sizes(divergence, distance, m, delta):
    """Finite, and no worse than the prior and the vertices."""
    risks = np.array([0.1, 0.2, 0.0, 1.0])
    options = {"delta": delta, **options_of(divergence, distance)}
    q, value, gap = optimal_posterior(risks, m, return_gap=True, **options)
    assert np.isfinite(q).all() and np.isfinite(value)
    laws = np.concatenate([np.eye(4), np.full((1, 4), 0.25)])
    others = pac_bayes_bound(laws, risks, m, **options)
    assert (value <= others * (1 + 1e-14) + gap).all()


# ---------------------------------------------------------------- properties


@st.composite
def problems(draw, max_members=7):
    """Risks in thousandths with ties, prior weights with zeros, rows, level."""
    H = draw(st.integers(1, max_members))
    thousandths = st.one_of(st.integers(0, 1000), st.sampled_from([0, 20, 100, 120]))
    risks = np.divide(draw(st.lists(thousandths, min_size=H, max_size=H)), 1000)
    weights = draw(st.lists(st.integers(0, 9), min_size=H, max_size=H).filter(any))
    m = draw(st.one_of(st.integers(1, 300), st.integers(1, 10**6)))
    return risks, np.divide(weights, sum(weights)), m, draw(st.floats(1e-6, 0.9))


@given(problem=problems(), chosen=st.sampled_from(SHIFTED), by=st.floats(0, 1))
def test_shift_of_the_risks(problem, chosen, by):
    """Adds to the bound and keeps the posterior."""
    risks, prior, m, delta = problem
    options = {"delta": delta, "prior": prior, **options_of(*chosen)}
    risks = risks / 2
    q, value, gap = solve(risks, m, **options)
    r, shifted, other_gap = solve(risks + by / 2, m, **options)
    assert abs(shifted - value - by / 2) <= max(gap, other_gap, 1e-12)
    # A linear bound has one optimum; a posterior is stable where the bound is strict.
    if chosen == ("kl", "linear"):
        assert_allclose(r, q, rtol=1e-12 * m, atol=1e-15)
    elif chosen == ("chi2", "linear"):
        assert_allclose(r, q, rtol=0, atol=1e-7)


@given(problem=problems(), chosen=st.sampled_from(PAIRS), data=st.data())
def test_permutation_of_the_members(problem, chosen, data):
    """Permutes the posterior."""
    risks, prior, m, delta = problem
    order = np.array(data.draw(st.permutations(range(len(risks)))))
    options = {"delta": delta, **options_of(*chosen)}
    q, value, _ = solve(risks, m, prior=prior, **options)
    r, permuted, _ = solve(risks[order], m, prior=prior[order], **options)
    assert_allclose(permuted, value, rtol=1e-9)
    if chosen in [("chi2", "linear"), ("kl", "linear"), ("kl", "catoni")]:
        assert_allclose(r, q[order], rtol=0, atol=1e-9)


@given(problem=problems(), chosen=st.sampled_from(PAIRS), share=st.floats(0.1, 0.9))
def test_splitting_a_member(problem, chosen, share):
    """Two copies that share its prior get its weight in the same shares."""
    risks, prior, m, delta = problem
    options = {"delta": delta, **options_of(*chosen)}
    q, value, gap = solve(risks, m, prior=prior, **options)
    parts = [share * prior[0], (1 - share) * prior[0]]
    r, split, other_gap = solve(
        [risks[0], *risks], m, prior=[*parts, *prior[1:]], **options
    )
    assert abs(split - value) <= max(gap, other_gap, 1e-12 * value)
    assert_allclose(r[0] * (1 - share), r[1] * share, rtol=1e-9, atol=1e-300)
    if chosen in [("chi2", "linear"), ("kl", "linear"), ("kl", "catoni")]:
        assert_allclose([r[0] + r[1], *r[2:]], q, rtol=0, atol=1e-9)


@given(
    problem=problems(),
    chosen=st.sampled_from(PAIRS),
    constants=st.sampled_from(CONSTANTS),
    delta=st.floats(1e-6, 0.9),
    more=st.integers(1, 1000),
    worse=st.lists(st.integers(0, 200), min_size=7, max_size=7),
)
def test_monotone(problem, chosen, constants, delta, more, worse):
    """Never larger for a larger delta, more rows, or fewer mistakes."""
    risks, prior, m, other_delta = problem
    m += 1
    options = {"prior": prior, **options_of(*chosen, constants)}
    strict, loose = sorted([delta, other_delta])
    _, value, gap = solve(risks, m, delta=strict, **options)
    slack = max(gap, 1e-12 * value)
    _, other, other_gap = solve(risks, m, delta=loose, **options)
    assert other <= value + max(slack, other_gap)
    _, other, other_gap = solve(risks, m + more, delta=strict, **options)
    assert other <= value + max(slack, other_gap)
    raised = np.minimum(risks + np.divide(worse[: len(risks)], 1000), 1.0)
    _, other, _ = solve(raised, m, delta=strict, **options)
    assert other >= value - slack


@given(
    problem=problems(),
    chosen=st.sampled_from(PAIRS),
    constants=st.sampled_from(CONSTANTS),
)
def test_order_of_the_weights(problem, chosen, constants):
    """Weights over prior do not increase with the risk; ties are alike."""
    risks, prior, m, delta = problem
    m += 1
    options = {"prior": prior, "delta": delta, **options_of(*chosen, constants)}
    q, value, gap = solve(risks, m, **options)
    has_mass = prior > 0
    assert (q[~has_mass] == 0).all()
    order = np.argsort(risks[has_mass], kind="stable")
    ratio = (q[has_mass] / prior[has_mass])[order]
    assert (np.diff(ratio) <= 1e-12 * ratio[:-1]).all()
    tied = np.diff(risks[has_mass][order]) == 0
    assert_allclose(ratio[1:][tied], ratio[:-1][tied], rtol=1e-12)
    slack = max(gap, 1e-12 * value)
    vertices = np.eye(len(risks))
    assert value <= pac_bayes_bound(prior, risks, m, **options) + slack
    assert value <= pac_bayes_bound(vertices, risks, m, **options).min() + slack
    assert value >= risks[has_mass].min()


@given(
    counts=st.lists(st.integers(0, 20), min_size=2, max_size=6),
    weights=st.lists(st.integers(1, 9), min_size=6, max_size=6),
    chosen=st.sampled_from(PAIRS),
)
def test_limit_of_many_rows(counts, weights, chosen):
    """The prior on the least risks; all bounds but two tend to the least risk."""
    risks = np.divide(counts, 20)
    prior = np.divide(weights[: len(risks)], sum(weights[: len(risks)]))
    options = {"delta": 0.05, "prior": prior, **options_of(*chosen)}
    q, value, _ = solve(risks, 10**9, **options)
    best = risks == risks.min()
    limit = np.where(best, prior, 0.0)
    assert_allclose(q, limit / limit.sum(), rtol=0, atol=1e-4)
    expected = risks.min()
    if chosen == ("kl", "linear"):
        expected += LINEAR_KL_RATE
    elif chosen == ("kl", "catoni"):
        expected = math.expm1(-CATONI_C * expected) / math.expm1(-CATONI_C)
    assert expected - 1e-12 <= value <= expected + 1e-3


@given(problem=problems(), distance=st.sampled_from(["linear", "squared"]))
def test_limit_of_certainty(problem, distance):
    """As delta tends to zero nothing is learnt and the prior stays."""
    risks, prior, m, _ = problem
    options = {"prior": prior, **options_of("chi2", distance)}
    q, _, _ = solve(risks, m, delta=1e-40, **options)
    assert_allclose(q, prior, rtol=0, atol=1e-5)


# ---------------------------------------------------------------- certification part


def test_informed_prior():
    """exp(-eta errors), without what is negligible or was never measured."""
    errors = np.array([30, 22, 20, 21, 27, np.inf])
    expected = np.array([0, math.exp(-2), 1, math.exp(-1), 0, 0])
    assert_allclose(informed_prior(errors, 1.0), expected / expected.sum(), rtol=1e-14)
    assert_allclose(informed_prior(errors, 0.0), [0.2] * 5 + [0.0], rtol=1e-14)
    slow = informed_prior(errors, 0.1)
    assert (slow > 0).tolist() == [True] * 5 + [False]
    assert_allclose(slow[0] / slow[2], math.exp(-1), rtol=1e-14)
    # Only differences count; one part in a thousand is the limit.
    assert_allclose(informed_prior(errors + 1000, 1.0), expected / expected.sum())
    edge = informed_prior(np.array([0.0, 1.0]), 6.9)
    assert edge[1] > 0 and informed_prior(np.array([0.0, 1.0]), 6.91)[1] == 0


def votes(seed, n_classes, m=60, H=5):
    """Labels, predictions of members that are right more often than not, mistakes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=m)
    noise = rng.integers(n_classes, size=(m, H))
    codes = np.where(rng.random((m, H)) < 0.6, truth[:, None], noise)
    return rng, truth, codes, codes != truth[:, None]


def weighted_vote(codes, weights, n_classes):
    """The class with the most weight, ties to the smaller one, in exact sums."""
    result = []
    for row in codes:
        shares = [math.fsum(weights[row == k]) for k in range(n_classes)]
        level = max(shares) - 1e-9
        result.append(min(k for k in range(n_classes) if shares[k] > level))
    return np.array(result)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("eta", [0.0, 0.1, 1.0])
def test_holdout_certificate(seed, n_classes, eta):
    """Prior, constant, posterior and the three bounds of a fixed vote."""
    rng, truth, codes, wrong = votes(seed, n_classes)
    n_train, m, delta = 150, len(truth), 0.05
    cv_errors = rng.integers(20, 40, size=5).astype(float)
    cv_errors[4] = np.inf
    prior = informed_prior(cv_errors, eta)
    support = prior > 0
    expected = (prior[support] @ cv_errors[support] + 0.5) / (n_train + 1)
    c = catoni_constant(expected, m, m, delta)
    evidence = weigh_members(
        codes, truth, prior, kind="prior", level=delta, divergence="kl",
        distance="catoni", constants="exact", catoni_c=c, simultaneous=False,
        n_classes=n_classes,
    )  # fmt: skip
    vote_errors = int(np.sum(weighted_vote(codes, prior, n_classes) != truth))
    expected = ref.holdout_certificate(
        np.where(np.isinf(cv_errors), np.nan, cv_errors), n_train, wrong.sum(axis=0),
        vote_errors, m, eta, delta,
    )  # fmt: skip
    assert evidence.vote_errors == vote_errors
    assert_allclose(prior, expected["prior"], rtol=1e-13)
    assert_allclose(c, expected["c"], rtol=1e-11)
    assert_allclose(evidence.posterior, expected["posterior"], rtol=1e-9)
    actual = [
        evidence.risk_bound(delta),
        evidence.vote_bound(delta),
        np.min(evidence.member_bounds(delta)),
    ]
    names = "gibbs_bound", "vote_bound", "occam_bound"
    assert_allclose(actual, [expected[name] for name in names], rtol=1e-11)


def test_ties_of_the_vote_go_to_the_smaller_class():
    """Equal weights that sum differently in floating point are ties all the same."""
    prior = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    assert prior[0] + prior[1] > prior[2]
    codes = np.array([[1, 1, 0, 2, 3], [0, 0, 1, 2, 3], [2, 2, 1, 0, 3]])
    truth = np.array([0, 0, 1])
    evidence = weigh_members(
        codes, truth, prior, kind="prior", level=0.05, divergence="kl", distance="kl",
        constants="exact", catoni_c=None, simultaneous=False, n_classes=4,
    )  # fmt: skip
    assert evidence.vote_errors == 0


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("fixed_vote", [False, True])
@pair
def test_every_bound_of_a_certification_part(
    divergence, distance, fixed_vote, simultaneous
):
    """All terms by name, each against the reference."""
    rng, truth, codes, wrong = votes(7, 2)
    m, H, delta = len(truth), codes.shape[1], 0.07
    prior = rng.dirichlet(np.ones(H))
    prior[0] = 0.0
    prior /= prior.sum()
    options = options_of(divergence, distance)
    catoni_c = options.pop("catoni_c", None)
    evidence = weigh_members(
        codes, truth, prior, kind="prior" if fixed_vote else "bound", level=delta,
        catoni_c=catoni_c, simultaneous=simultaneous, n_classes=2, **options,
    )  # fmt: skip
    q, risks = evidence.posterior, wrong.mean(axis=0)
    best, value = optimal_posterior(
        risks, m, delta=delta, prior=prior, catoni_c=catoni_c, **options
    )
    assert_allclose(q, best, rtol=1e-14)
    options |= {"prior": prior, "catoni_c": catoni_c}
    gibbs = ref.bound(q, risks, m, delta, **options)
    assert_allclose(gibbs, value, rtol=1e-9)
    joint = (wrong.T.astype(float) @ wrong) / m
    apart = np.array([[np.mean(a != b) for a in codes.T] for b in codes.T])
    level = ref.log_xi(m) + math.log(2 / delta)
    # Bounds on the vote are about the weights that it has.
    w = prior if fixed_vote else q
    kl = ref.kl_term(w, prior)
    by_gibbs = 2 * ref.bound(w, risks, m, delta, **options)
    points = [ref.bound(e, risks, m, delta, **options) for e in np.eye(H)[prior > 0]]
    counts = wrong.sum(axis=0)
    expected = {
        f"gibbs_{divergence}_{distance}": gibbs,
        "vote_twice_gibbs": by_gibbs,
        "vote_tandem": ref.tandem_bound(w, joint, m, delta, prior),
        # The event of the Gibbs bound covers the members where three share two levels.
        "occam": (
            min(points)
            if simultaneous and fixed_vote
            else ref.occam_bound(counts, m, delta, prior)
        ),
        "vote_c_bound": ref.c_bound(
            ref.kl_inverse(w @ risks, (kl + level) / m),
            ref.kl_inverse(w @ apart @ w, (2 * kl + level) / m, lower=True),
        ),
    }
    assert expected["vote_c_bound"] < 1
    vote = by_gibbs
    if fixed_vote:
        errors = int(np.sum(weighted_vote(codes, prior, 2) != truth))
        vote = ref.binomial_tail_bound(errors, m, delta)
        expected["vote_binomial_tail"] = vote
    actual = evidence.terms(delta)
    assert actual.keys() == expected.keys()
    assert_allclose(
        [float(actual[name]) for name in expected], list(expected.values()), rtol=1e-9
    )
    assert_allclose(evidence.vote_bound(delta), vote, rtol=1e-9)
    assert_allclose(evidence.gibbs_risk, q @ risks, rtol=1e-14)
    more = weigh_members(
        codes, truth, prior, kind="prior", level=delta, catoni_c=catoni_c,
        simultaneous=simultaneous, n_classes=3, divergence=divergence,
        distance=distance, constants="exact",
    )  # fmt: skip
    assert "vote_c_bound" not in more.terms(delta)


def test_a_constant_chosen_on_the_certification_part_is_paid_for():
    """The best of a grid of Catoni's constants, each at its share of the level."""
    _, truth, codes, wrong = votes(3, 2)
    prior = np.full(5, 0.2)
    evidence = weigh_members(
        codes, truth, prior, kind="prior", level=0.05, divergence="kl",
        distance="catoni", constants="exact", catoni_c=None, simultaneous=False,
        n_classes=2,
    )  # fmt: skip
    risks, m = wrong.mean(axis=0), len(truth)
    share = 0.05 / len(CATONI_GRID)
    values = []
    for c in CATONI_GRID:
        q = prior * np.exp(-c * m * risks)
        q /= q.sum()
        values.append(ref.bound(q, risks, m, share, "kl", "catoni", catoni_c=c))
    assert_allclose(evidence.risk_bound(0.05), min(values), rtol=1e-12)
    assert 0 < int(np.argmin(values)) < len(CATONI_GRID) - 1


# ---------------------------------------------------------------- very many members


def spread_risks(kind, n, rng):
    """Sorted risks from 0: spread out, on a lattice, nearly all alike, two heaps."""
    l = {
        "uniform": lambda: rng.uniform(0, 0.7, size=n),
        "lattice": lambda: rng.integers(0, 200, size=n) / 400,
        "alike": lambda: rng.beta(0.05, 3, size=n),
        "heaps": lambda: np.r_[rng.uniform(0, 1e-7, n // 2), 0.5 + rng.uniform(
            0, 1e-7, n - n // 2)],
    }[kind]()  # fmt: skip
    l = np.sort(l) - l.min()
    return l, rng.dirichlet(np.ones(n))


@pytest.mark.parametrize("kind", ["uniform", "lattice", "alike", "heaps"])
def test_sums_by_bins_are_direct_sums(kind):
    """Whatever the rate: moments in narrow bins, or the members that count."""
    l, p = spread_risks(kind, 30_000, np.random.default_rng(0))
    beta = np.r_[0.0, np.geomspace(1e-6, 1e9, 90), 4096 * 0.05 / l[-1] * (1 + 1e-9)]
    total, mean = _posteriors._Bins(l, p).moments(beta)
    exact_l, exact_p = l.astype(np.longdouble), p.astype(np.longdouble)
    for i, b in enumerate(beta):
        weight = exact_p * np.exp(-np.longdouble(b) * exact_l)
        assert_allclose(total[i], float(weight.sum()), rtol=3e-12)
        expected = float((weight * exact_l).sum() / weight.sum())
        assert_allclose(mean[i], expected, rtol=3e-12, atol=1e-15 * l[-1])


@pytest.mark.parametrize("kind", ["uniform", "lattice", "alike", "heaps"])
@pytest.mark.parametrize("distance", ["squared", "kl", "lambda"])
@pytest.mark.parametrize("m", [50, 3000])
def test_search_over_bins_finds_the_same_posterior(monkeypatch, kind, distance, m):
    """As the search over all members."""
    l, p = spread_risks(kind, 3000, np.random.default_rng(1))
    p[::7] = 0.0
    p /= p.sum()
    options = {"delta": 0.05, "divergence": "kl", "distance": distance, "prior": p}
    risks = np.random.default_rng(2).permutation(l + 0.02)
    q, value, gap = solve(risks, m, **options)
    monkeypatch.setattr(_posteriors, "_MANY_MEMBERS", 40)
    other, binned, binned_gap = solve(risks, m, **options)
    assert_allclose(binned, value, rtol=1e-9)
    assert_allclose(other, q, rtol=1e-3, atol=1e-9)
    assert max(gap, binned_gap) <= 1e-6
    # And the value is that of the posterior, as the reference has it.
    assert_allclose(binned, pac_bayes_bound(other, risks, m, **options), rtol=1e-12)


def test_a_hundred_thousand_members():
    """Twice as many copies change nothing; the bound is not above the prior's."""
    rng = np.random.default_rng(3)
    risks = np.sort(rng.uniform(0.1, 0.5, size=50_000))
    options = {"delta": 0.05, "divergence": "kl", "distance": "kl"}
    q, value, _ = solve(risks, 400, **options)
    twice, same, _ = solve(np.repeat(risks, 2), 400, **options)
    assert_allclose(same, value, rtol=1e-10)
    assert_allclose(twice.reshape(-1, 2).sum(axis=1), q, rtol=1e-3)
    flat = np.full(50_000, 1 / 50_000)
    assert value < pac_bayes_bound(flat, risks, 400, **options)
