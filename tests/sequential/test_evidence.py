"""E-processes of pairs: printed numbers, a slow reference, exact expectations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import eprocess as ref
from skbounds._core import sequential as core

from skbounds.sequential import lift_interval, log_evalue, planned_pulls
from skbounds.sequential._evidence import bet_weights, make_bets

# Kind, arm, control, options, log e.
PRINTED = [
    ("normal", (100, 50), (100, 0), {"sigma": 1.0}, 3.274543281),
    ("normal", (100, 50), (100, 0), {"sigma": 1.0, "epsilon": 0.2}, 0.433002205),
    ("normal", (400, 120), (40, 0), {"sigma": 1.0}, -0.652361454),
    ("normal", (10, -3), (10, 3), {"sigma": 1.0}, -0.702957583),
    ("normal", (1, 9), (1, 0), {"sigma": 1.0}, 16.363870861),
    ("normal", (100, 100), (100, 0), {"sigma": 2.0}, 3.274543281),
    ("binary", (1000, 70), (1000, 40), {}, 1.968787781),
    ("binary", (1000, 70), (1000, 40), {"epsilon": 0.01}, 0.430514847),
    ("binary", (50000, 160), (50000, 90), {}, 6.663306747),
    ("binary", (3000, 300), (500, 30), {}, 0.948925238),
    ("binary", (20, 20), (20, 0), {}, 23.684429303),
    ("binary", (50, 10), (50, 20), {}, -0.909969898),
    ("bounded", (1000, 240, 8), (1000, 200, 7), {}, 17.153835479),
    ("bounded", (1000, 240, 8), (250, 50, 2), {"epsilon": 0.01}, 1.266887635),
]
KINDS = ("normal", "binary", "bounded")
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("case", PRINTED)
def test_printed_evidence(case):
    kind, arm, control, options, expected = case
    found = log_evalue(arm, control, rewards=kind, **options)
    assert_allclose(found, expected, rtol=1e-9, atol=5e-10)


def test_printed_evidence_with_fewer_bets():
    bets, _ = make_bets("binary", None, 2000)
    found = log_evalue((1000, 70), (1000, 40), rewards="binary", bets=bets)
    assert_allclose(found, 2.142157538, atol=5e-10)


def states(kind, rng, n_most=3000):
    n = rng.integers(1, n_most, size=2)
    if kind == "normal":
        return [
            (int(a), float(a * x)) for a, x in zip(n, rng.normal(size=2), strict=True)
        ]
    p = rng.uniform(size=2) ** rng.choice([1, 4])
    sums = rng.binomial(n, p)
    if kind == "binary":
        return [(int(a), float(s)) for a, s in zip(n, sums, strict=True)]
    V = n * rng.uniform(0.0, 0.3, size=2)
    return [(int(a), float(s), float(v)) for a, s, v in zip(n, sums, V, strict=True)]


@each_kind
@pytest.mark.parametrize("seed", range(100))
def test_evidence_by_slow_minimisation(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    arm, control = states(kind, rng)
    epsilon = float(rng.uniform(-0.6, 0.6)) if seed % 2 else 0.0
    options = {}
    if kind == "normal":
        sigma = tuple(rng.uniform(0.5, 2.0, size=2)) if seed % 3 else 1.0
        options["sigma"] = sigma
    found = log_evalue(arm, control, rewards=kind, epsilon=epsilon, **options)
    expected = ref.log_evalue(arm, control, kind, epsilon=epsilon, **options)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@each_kind
def test_it_is_the_least_mixture(kind):
    """No m has less, and some has hardly more."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        arm, control = states(kind, rng, 300)
        found = log_evalue(
            arm, control, rewards=kind, sigma=1.0 if kind == "normal" else None
        )
        bets = ref.default_bets(kind)
        grid = np.linspace(-3, 3, 2001) if kind == "normal" else np.linspace(0, 1, 2001)
        values = [
            ref.log_mixture(m, arm, control, kind, 1.0, 1.0, 0.0, bets) for m in grid
        ]
        assert found <= min(values) + 1e-9
        assert found >= min(values) - 0.1


@pytest.mark.parametrize("b", [0.02, 0.3, 1.7])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_one_bet_and_equal_counts(b, epsilon):
    """The mixture does not depend on m: b (S - S_0 - n eps) - b^2 n, of mean 1."""
    rng = np.random.default_rng(0)
    for n in (1, 7, 300):
        sums = rng.normal(size=2) * np.sqrt(n)
        found = log_evalue(
            (n, sums[0]), (n, sums[1]), rewards="normal", sigma=1.0, epsilon=epsilon,
            bets=[b],
        )  # fmt: skip
        expected = b * (sums[0] - sums[1] - n * epsilon) - b**2 * n
        assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    # By quadrature over S - S_0, which is N(0, 2 n).
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    mean = sum(
        w * np.exp(log_evalue((4, 2.0 + np.sqrt(8.0) * z), (4, 2.0), rewards="normal",
                              sigma=1.0, bets=[b]))
        for z, w in zip(nodes, weights, strict=True)
    )  # fmt: skip
    assert_allclose(mean / np.sqrt(2.0 * np.pi), 1.0, rtol=1e-9)


@pytest.mark.parametrize("counts", [(4, 9), (9, 4), (5, 5)])
def test_expectation_of_normal_evidence(counts):
    """At most 1 under the null, by quadrature over both sums."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    total = 0.0
    for x, u in zip(nodes, weights, strict=True):
        for y, v in zip(nodes, weights, strict=True):
            arm = counts[0], np.sqrt(counts[0]) * x
            control = counts[1], np.sqrt(counts[1]) * y
            found = log_evalue(
                arm, control, rewards="normal", sigma=1.0, bets=[0.1, 0.2, 0.4, 0.8]
            )
            total += u * v / (2.0 * np.pi) * np.exp(found)
    assert 0.2 < total < 1.0


def test_the_reference_by_exact_expectations():
    """What all is compared with: 1 at the true m, less for bounded rewards."""
    for p in (0.1, 0.5):
        assert_allclose(ref.expected_mixture(10, 6, p, p, p, "binary"), 1.0, rtol=1e-12)
    bets = [b for b in ref.default_bets("normal") if b <= 1.0]
    found = ref.expected_mixture_normal(4, 9, 0.3, 0.3, 0.3, bets=bets)
    assert_allclose(found, 1.0, rtol=1e-9)
    found = ref.expected_mixture(5, 3, 0.3, 0.3, 0.3, "bounded")
    assert_allclose(found, 0.950255533069, rtol=1e-11)


def test_counts_beyond_the_bets():
    """No bets balance them, and the least mixture is 0: no evidence, no interval."""
    for arm, control in (((10, 30.0), (10**6, 0.0)), ((10**6, 3e6), (10, 0.0))):
        found = log_evalue(arm, control, rewards="normal", sigma=1.0)
        assert found == -np.inf
        found = lift_interval(arm, control, rewards="normal", sigma=1.0)
        assert found == (-np.inf, np.inf)
    # Smaller bets do; conversions have no such limit.
    bets = 2.0 ** np.arange(-20, 4)
    found = log_evalue(
        (10, 30.0), (10**6, 0.0), rewards="normal", sigma=1.0, bets=bets
    )  # fmt: skip
    assert 30.0 < found < 45.0
    assert log_evalue((10, 8), (10**6, 1000), rewards="binary") > 20.0


@pytest.mark.parametrize(
    ("rates", "expected"),
    [((0.1, 0.1), 0.758046828), ((0.5, 0.5), 0.883157889), ((0.3, 0.5), 0.631808245)],
)
def test_exact_expectations_of_the_evidence(rates, expected):
    """All outcomes of 10 and 6 rewards: below 1 under the null."""
    from math import comb

    total = 0.0
    for a in range(11):
        for b in range(7):
            p = comb(10, a) * rates[0] ** a * (1 - rates[0]) ** (10 - a)
            p *= comb(6, b) * rates[1] ** b * (1 - rates[1]) ** (6 - b)
            total += p * np.exp(log_evalue((10, a), (6, b), rewards="binary"))
    assert_allclose(total, expected, rtol=1e-8)


@each_kind
@given(st.integers(0, 2**31), st.floats(-0.9, 0.9), st.floats(0.0, 0.5))
@settings(max_examples=60, deadline=None)
def test_less_evidence_for_more(kind, seed, epsilon, more):
    """log e does not increase in epsilon."""
    arm, control = states(kind, np.random.default_rng(seed))
    options = {"rewards": kind, "sigma": 1.0 if kind == "normal" else None}
    larger = min(epsilon + more, 0.99)
    a = log_evalue(arm, control, epsilon=epsilon, **options)
    b = log_evalue(arm, control, epsilon=larger, **options)
    assert b <= a + 1e-9 * max(1.0, abs(a))


@given(
    st.integers(0, 2**31), st.floats(-1e3, 1e3), st.floats(1e-6, 1e6),
    st.floats(-0.5, 0.5),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_units_of_normal_rewards(seed, shift, scale, epsilon):
    """Adding a constant, and other units with sigma, change nothing."""
    (n, s), (n0, s0) = states("normal", np.random.default_rng(seed))
    plain = log_evalue((n, s), (n0, s0), rewards="normal", sigma=1.0, epsilon=epsilon)
    other = log_evalue(
        (n, scale * (s + n * shift)), (n0, scale * (s0 + n0 * shift)),
        rewards="normal", sigma=scale, epsilon=scale * epsilon,
    )  # fmt: skip
    assert_allclose(other, plain, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["binary", "bounded"])
@given(st.integers(0, 2**31), st.floats(-0.5, 0.5))
@settings(max_examples=60, deadline=None)
def test_failures_for_successes(kind, seed, epsilon):
    """1 - x with arm and control exchanged."""
    arm, control = states(kind, np.random.default_rng(seed))
    turn = lambda state: (state[0], state[0] - state[1], *state[2:])
    a = log_evalue(arm, control, rewards=kind, epsilon=epsilon)
    b = log_evalue(turn(control), turn(arm), rewards=kind, epsilon=epsilon)
    assert_allclose(b, a, rtol=1e-9, atol=1e-9)


def test_large_and_degenerate_numbers():
    """Finite, whatever the size."""
    found = log_evalue((1e9, 6e8), (1e9, 5e8), rewards="binary")
    # Twice the pooled divergence, less the price of bets that are on a grid.
    assert 0.9 * 1.005e7 * 1.0 < found < 1.1e7
    assert log_evalue((5, 0), (5, 0), rewards="binary") < 0.0
    assert np.isfinite(log_evalue((1, 1), (1, 0), rewards="binary"))
    assert np.isfinite(log_evalue((3, 3, 0.0), (3, 0, 0.0), rewards="bounded"))
    assert log_evalue((0, 0), (5, 5), rewards="binary") == 0.0
    for size in (1e-140, 1e140):
        found = log_evalue(
            (100, 50 * size), (100, 0), rewards="normal", sigma=size
        )  # fmt: skip
        assert_allclose(found, 3.274543281, rtol=1e-8)


def test_the_screen_is_an_upper_bound():
    """It is what may be skipped: with it and without it the same is found."""
    rng = np.random.default_rng(0)
    for kind in KINDS:
        bets, _ = make_bets(kind, None)
        weights = bet_weights(len(bets))
        for _ in range(100):
            arm, control = (np.array([*s, s[0] * 1.0][:3]) for s in states(kind, rng))
            shift = float(rng.uniform(-0.7, 0.7))
            found = core.log_evalue(
                core.NORMAL + KINDS.index(kind), bets, weights, 1.0, arm, control, shift
            )
            if kind == "bounded":
                bound = ref.bounded_screen(tuple(arm), tuple(control), shift)
            else:
                bound = ref.glr(tuple(arm[:2]), tuple(control[:2]), kind, 1.0, shift)
            assert found <= bound + 1e-9


# Intervals and planning


def test_printed_intervals():
    found = lift_interval((1000, 70), (1000, 40), rewards="binary")
    assert_allclose(found, (-0.006966, 0.068208), atol=5e-7)
    found = lift_interval((100, 50), (100, 0), rewards="normal", sigma=1.0)
    assert_allclose(found, (-0.020101, 1.020101), atol=5e-7)


@each_kind
@pytest.mark.parametrize("seed", range(15))
def test_ends_of_intervals(kind, seed):
    """There is just enough evidence against them."""
    rng = np.random.default_rng(seed)
    arm, control = states(kind, rng)
    sigma = 1.0 if kind == "normal" else None
    low, high = lift_interval(
        arm, control, rewards=kind, sigma=sigma, level=0.1, n_alternatives=3
    )
    threshold = np.log(2 * 3 / 0.1)
    assert low <= arm[1] / arm[0] - control[1] / control[0] <= high
    limit = np.inf if kind == "normal" else 1.0
    if low > -limit:
        found = log_evalue(arm, control, rewards=kind, sigma=sigma, epsilon=low)
        assert_allclose(found, threshold, rtol=1e-5)
        assert found >= threshold - 1e-9
    if high < limit:
        found = log_evalue(control, arm, rewards=kind, sigma=sigma, epsilon=-high)
        assert_allclose(found, threshold, rtol=1e-5)
        assert found >= threshold - 1e-9


def test_intervals_without_rewards():
    assert lift_interval((0, 0), (5, 3), rewards="binary") == (-1.0, 1.0)
    found = lift_interval((5, 3), (0, 0), rewards="normal", sigma=1.0)
    assert found == (-np.inf, np.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "lift", "options"),
    [
        ("normal", 0.5, {"sigma": 1.0}),
        ("normal", 0.2, {"sigma": 1.0}),
        ("binary", 0.05, {"base_rate": 0.1}),
        ("binary", 0.02, {"base_rate": 0.02}),
    ],
)
def test_plans_come_true(kind, lift, options):
    """Within 10 %, on average over tests that look after each pair."""
    rng = np.random.default_rng(0)
    plan = planned_pulls(lift, rewards=kind, **options)
    needed = []
    for _ in range(300):
        n = 5 * plan
        if kind == "normal":
            x, y = rng.normal(lift, size=n).cumsum(), rng.normal(size=n).cumsum()
        else:
            p = options["base_rate"]
            x = (rng.random(n) < p + lift).cumsum()
            y = (rng.random(n) < p).cumsum()
        at = np.unique(np.round(plan / 20 * 1.02 ** np.arange(232)).astype(int))
        sigma = options.get("sigma")
        for k in at[at > 0]:
            found = log_evalue(
                (k, x[k - 1]), (k, y[k - 1]), rewards=kind, sigma=sigma
            )  # fmt: skip
            if found >= np.log(20.0):
                break
        needed.append(k)
    assert abs(np.mean(needed) / plan - 1.0) < 0.1 + 3.0 * np.std(needed) / (
        np.sqrt(300) * plan
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_evalue((1, 1), (1, 0), rewards="poisson"), "rewards must be"),
        (lambda: log_evalue((1, 1), (1, 0), rewards="normal"), "sigma must be given"),
        (lambda: log_evalue((1, 1), (1, 0), rewards="normal", sigma=0.0), "sigma"),
        (lambda: log_evalue((1, 1), (1, 0), rewards="binary", sigma=1.0), "sigma"),
        (
            lambda: log_evalue((1, 1), (1, 0), rewards="normal", sigma=(1, 1, 1)),
            "sigma",
        ),
        (lambda: log_evalue((1, 1), (1, 0), rewards="bounded"), r"\(n, S, V\)"),
        (lambda: log_evalue((1, 1, 1), (1, 0), rewards="binary"), r"\(n, S\)"),
        (lambda: log_evalue((1, 2), (1, 0), rewards="binary"), r"0 <= S <= n"),
        (lambda: log_evalue((1, -1), (1, 0), rewards="binary"), r"0 <= S <= n"),
        (lambda: log_evalue((0.5, 0), (1, 0), rewards="binary"), "n, a number"),
        (lambda: log_evalue((1, np.nan), (1, 0), rewards="binary"), "finite"),
        (lambda: log_evalue((1, 1, -1), (1, 0, 0), rewards="bounded"), "V not neg"),
        (lambda: log_evalue((1, 1), (1, 0), rewards="binary", epsilon=1.0), "epsilon"),
        (
            lambda: log_evalue((0, 0), (1, 0), rewards="binary", epsilon=-1.0),
            "epsilon",
        ),
        (
            lambda: log_evalue((1, 1), (1, 0), rewards="binary", bets=[0.5, 0.5]),
            "increasing",
        ),
        (lambda: log_evalue((1, 1), (1, 0), rewards="binary", bets=[0.0]), "positive"),
        (lambda: log_evalue((1, 1), (1, 0), rewards="binary", bets=[]), "bets"),
        (
            lambda: log_evalue((1, 1, 0), (1, 0, 0), rewards="bounded", bets=[1.0]),
            r"in \(0, 1\)",
        ),
        (
            lambda: lift_interval((1, 1), (1, 0), rewards="binary", level=0.95),
            "level, the probability of an error",
        ),
        (lambda: lift_interval((1, 1), (1, 0), rewards="binary", level=0), "level"),
        (
            lambda: lift_interval((1, 1), (1, 0), rewards="binary", n_alternatives=0),
            "n_alternatives",
        ),
        (lambda: planned_pulls(0.0, rewards="normal", sigma=1.0), "lift"),
        (lambda: planned_pulls(0.1, rewards="normal"), "sigma"),
        (lambda: planned_pulls(0.1, rewards="binary"), "base_rate"),
        (lambda: planned_pulls(0.1, rewards="binary", base_rate=0.95), "base_rate"),
        (
            lambda: planned_pulls(0.1, rewards="binary", base_rate=0.1, sigma=1.0),
            "sigma",
        ),
        (
            lambda: planned_pulls(0.1, rewards="normal", base_rate=0.1, sigma=1.0),
            "base_rate",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
