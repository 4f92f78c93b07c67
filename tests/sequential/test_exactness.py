"""Functions, procedures and experiments against definitions and printed numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import sequential as ref
from skbounds._core.sequential import log_p_value

from skbounds.sequential import (
    LORD,
    MABFDR,
    AlphaSpending,
    BestArmTest,
    LORDPlusPlus,
    LORDPrime,
    always_valid_pvalue,
    lil_delta,
    lil_radius,
    sample_complexity_bound,
    simulate_best_arm_tests,
)
from skbounds.sequential._sequences import Gamma

RADII = [
    (1, 0.1, 3.099897555965),
    (1, 0.05, 3.546067786901),
    (10, 0.05, 1.271169277447),
    (100, 0.01, 0.485226610820),
    (1000, 1e-6, 0.222686561066),
    (5, 0.5, 1.580301830299),
]
# Mean of the arm and of the control, counts, K, epsilon, sigma, p-value.
P_VALUES = [
    (1.0, 0.0, 100, 80, 1, 0.0, 1.0, 2.850315959320e-02),
    (1.0, 0.0, 100, 80, 5, 0.0, 1.0, 5.760755841403e-02),
    (1.0, 0.0, 100, 80, 5, 0.1, 1.0, 1.786150203717e-01),
    (0.7, 0.4, 400, 350, 9, 0.0, 0.5, 2.337800855004e-03),
    (0.3, 0.0, 50, 50, 3, 0.0, 1.0, 1.0),
    (5.0, 0.0, 40, 40, 10, 0.0, 1.0, 4.239187257176e-47),
    (3.0, 0.0, 400, 400, 10, 0.0, 1.0, 3.404902534119e-186),
]
GAMMA = {
    1: 0.054815442267,
    2: 0.011920625746,
    3: 0.010153041675,
    10: 0.003992849318,
    100: 0.000425933640,
}
STREAM = (1e-4, 0.3, 1e-3, 0.02, 0.9, 1e-6, 0.004, 0.5, 2e-4, 0.05, 1e-5, 0.8)
LORD_LEVELS = [
    2.7407721133e-03, 5.3313075911e-03, 1.1593908560e-03, 7.7162891984e-03,
    1.6780489563e-03, 1.4292287459e-03, 9.8637627052e-03, 1.2063848303e-02,
    2.6235056169e-03, 1.3999526616e-02, 3.0444544550e-03, 1.5806025369e-02,
]  # fmt: skip
PLUS_LEVELS = [
    2.7407721133e-03, 3.3368034006e-03, 1.1036833710e-03, 6.4113788378e-03,
    1.9721684011e-03, 1.6828581632e-03, 6.9079664365e-03, 7.9048986597e-03,
    3.2888885761e-03, 8.3049504711e-03, 3.6211747502e-03, 8.6229271681e-03,
]  # fmt: skip
RULES = {
    "LORD": LORD,
    "LORDPrime": LORDPrime,
    "LORDPlusPlus": LORDPlusPlus,
    "AlphaSpending": AlphaSpending,
}
each_rule = pytest.mark.parametrize("rule", RULES)


# Radius


@pytest.mark.parametrize(("n", "delta", "expected"), RADII)
@pytest.mark.parametrize("sigma", [1.0, 0.5])
def test_radius(n, delta, expected, sigma):
    assert_allclose(lil_radius(n, delta, sigma=sigma), sigma * expected, rtol=1e-11)


@given(st.integers(1, 10**9), st.floats(1e-300, 0.0999), st.floats(1e-3, 1e3))
@settings(max_examples=200, deadline=None)
def test_inverse_of_the_radius(n, delta, sigma):
    radius = lil_radius(n, delta, sigma=sigma)
    assert_allclose(
        np.log(lil_delta(n, radius, sigma=sigma)), np.log(delta), rtol=1e-10
    )
    assert lil_delta(n, 0.999 * lil_radius(n, 1.0, sigma=sigma), sigma=sigma) == 1.0


@pytest.mark.slow
def test_means_stay_within_the_radius():
    """Crossings at rates below delta; the printed radius is crossed too often.

    4000 paths to 3000 rewards, then every 2 % to 1e7.
    """
    rng = np.random.default_rng(0)
    n_paths, delta = 4000, 0.1
    dense = np.arange(1, 3001)
    sparse = np.unique(np.round(3000 * 1.02 ** np.arange(1, 411)).astype(int))
    crossed = np.zeros((2, n_paths), dtype=bool)
    for k in range(0, n_paths, 500):
        sums = np.cumsum(rng.normal(size=(500, 3000)), axis=1)
        steps = np.diff(np.r_[3000, sparse])
        later = sums[:, [-1]] + np.cumsum(
            rng.normal(size=(500, len(steps))) * np.sqrt(steps), axis=1
        )
        for times, values in ((dense, sums), (sparse, later)):
            radius = lil_radius(times, delta, sigma=1.0)
            for row, bound in enumerate((radius, radius / np.sqrt(2.0))):
                crossed[row, k : k + 500] |= (values / times > bound).any(axis=1)
    rates = crossed.mean(axis=1)
    error = np.sqrt(delta * (1 - delta) / n_paths)
    assert rates[0] <= delta
    # What is printed fails, beyond what chance allows.
    assert rates[1] > delta + 3.0 * error


# P-values


@pytest.mark.parametrize("case", P_VALUES)
def test_p_values(case):
    mean, control, n, n0, K, epsilon, sigma, expected = case
    found = log_p_value(mean - control - epsilon, n, n0, K, sigma, 0.0)
    assert_allclose(np.exp(found), expected, rtol=1e-11)
    means = np.r_[control, mean, np.full(K - 1, -1e6)]
    counts = np.r_[n0, n, np.full(K - 1, 10)]
    found = always_valid_pvalue(means, counts, sigma=sigma, epsilon=epsilon)
    assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(("K", "jump"), [(1, 0.2), (2, 0.4), (4, 0.8), (5, 1), (9, 1)])
def test_jump(K, jump):
    """Where less than five alternatives leave a gap below 1."""
    gap = 2.0 * lil_radius(50, 0.1, sigma=1.0) + 1e-9
    assert_allclose(np.exp(log_p_value(gap, 50.0, 50.0, K, 1.0, 0.0)), jump, rtol=1e-6)


@given(
    st.integers(1, 40), st.integers(1, 10**6), st.integers(1, 10**6),
    st.floats(-1.0, 20.0), st.floats(0.1, 10.0),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_p_values_by_bisection(K, n, n0, gap, sigma):
    found = log_p_value(gap, float(n), float(n0), K, sigma, 0.0)
    expected = ref.arm_log_pvalue(gap, n, n0, K, sigma)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_invariances_of_the_p_value():
    means, counts = np.array([0.1, 0.9, 1.4]), np.array([130, 140, 150])
    p = always_valid_pvalue(means, counts, sigma=1.0, epsilon=0.1)
    assert 0.0 < p < 0.5
    same = [
        always_valid_pvalue(means + 5.0, counts, sigma=1.0, epsilon=0.1),
        always_valid_pvalue(3.0 * means, counts, sigma=3.0, epsilon=0.3),
        always_valid_pvalue(
            means[[0, 2, 1]], counts[[0, 2, 1]], sigma=1.0, epsilon=0.1
        ),
    ]
    assert_allclose(same, p, rtol=1e-9)
    assert always_valid_pvalue(means, [0, 140, 150], sigma=1.0) == 1.0


# The sequence and the procedures


def test_gamma():
    gamma = Gamma("log", None)
    for j, expected in GAMMA.items():
        assert_allclose(gamma[j], expected, atol=1e-12)
    few = Gamma("log", 50)
    assert_allclose(sum(few[j] for j in range(1, 51)), 1.0, rtol=1e-12)
    assert few[51] == 0.0
    # Beyond the table.
    assert_allclose(
        gamma[2**23] / gamma[2**22], ref.weight(2**23) / ref.weight(2**22), rtol=1e-10
    )


@each_rule
def test_printed_levels(rule):
    found = RULES[rule](0.1).fit(STREAM)
    numbers = [1, 3, 6, 9, 11] if rule == "AlphaSpending" else [1, 3, 6, 7, 9, 11]
    assert_array_equal(np.flatnonzero(found.rejected_) + 1, numbers)
    if rule == "LORD":
        assert_allclose(found.levels_, LORD_LEVELS, rtol=1e-9)
        assert_allclose(found.wealth_, 0.2725438395, rtol=1e-9)
    if rule == "LORDPlusPlus":
        assert_allclose(found.levels_, PLUS_LEVELS, rtol=1e-9)
    if rule == "LORDPrime":
        expected = [5.4815442267e-03, 1.1920625746e-03, 1.0153041675e-03]
        assert_allclose(found.levels_[[0, 4, 5]], np.r_[expected], rtol=1e-9)


@each_rule
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_procedures_by_their_sums(rule, p_values, easy):
    """Levels, decisions and wealth are those of the definitions."""
    p_values = [p**4 if easy else p for p in p_values]
    rejected, levels, wealth = ref.play(rule, p_values, 0.2)
    found = RULES[rule](0.2).fit(p_values)
    assert_allclose(found.levels_, levels, rtol=1e-9)
    assert_array_equal(found.rejected_, rejected)
    assert_allclose(found.wealth_path_, wealth[1:], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"w0": 0.03}, {"horizon": 60}])
@pytest.mark.parametrize("rule", ["LORD", "LORDPlusPlus"])
def test_options_of_procedures(rule, options):
    p = np.random.default_rng(0).uniform(size=50) ** 5
    gamma = ref.log_gamma(51, options.get("horizon"))
    _, levels, _ = ref.play(rule, p.tolist(), 0.1, options.get("w0"), gamma)
    assert_allclose(RULES[rule](0.1, **options).fit(p).levels_, levels, rtol=1e-9)
    given = RULES[rule](0.1, w0=options.get("w0"), gamma=gamma).fit(p)
    assert_allclose(given.levels_, levels, rtol=1e-9)


@pytest.mark.parametrize("rule", ["LORD", "LORDPlusPlus"])
def test_wealth_identity(rule):
    """What was spent is what was there and earned, minus what is left."""
    rng = np.random.default_rng(0)
    p = np.where(rng.uniform(size=20_000) < 0.02, 0.0, rng.uniform(size=20_000))
    found = RULES[rule](0.1).fit(p)
    R = found.rejected_.sum()
    earned = 0.05 * R if rule == "LORD" else 0.1 * R - 0.05
    assert_allclose(
        sum(sorted(found.levels_.tolist())), 0.05 + earned - found.wealth_, rtol=1e-13
    )
    assert (found.wealth_path_ > 0.0).all()


@pytest.mark.parametrize("share", [0.01, 0.2, "droughts"])
def test_grouped_sums(share):
    """LORD++: never above the exact level, and within 1e-6 of it."""
    rng = np.random.default_rng(0)
    n = 30_000
    p = rng.uniform(size=n)
    if share == "droughts":
        p[rng.uniform(size=n) < 0.3 * (np.arange(n) // 3000 % 3 == 0)] = 0.0
    else:
        p[rng.uniform(size=n) < share] = 0.0
    found = LORDPlusPlus(0.1).fit(p)
    gamma = Gamma("log", None).table(n + 1)
    taus = np.flatnonzero(found.rejected_) + 1
    for j in [*range(2, 400, 7), *range(400, n, 487)]:
        past = taus[taus < j]
        exact = 0.05 * gamma[j - 1] + 0.05 * gamma[j - past[:1] - 1].sum()
        exact += 0.1 * gamma[j - past[1:] - 1].sum()
        ratio = found.levels_[j - 1] / exact
        assert ratio <= 1.0
        assert ratio >= 1.0 - 1e-6
    assert len(found._later_.groups) < 60


@each_rule
def test_replay_equals_steps(rule):
    """Bit for bit, also by update instead of test."""
    rng = np.random.default_rng(1)
    p = np.where(rng.uniform(size=3000) < 0.1, 1e-9, rng.uniform(size=3000))
    whole, steps, told = (RULES[rule](0.1) for _ in range(3))
    whole.fit(p)
    for j, value in enumerate(p.tolist()):
        assert steps.next_level_ == told.next_level_ == whole.levels_[j]
        assert steps.test(value) == whole.rejected_[j]
        told.update(bool(whole.rejected_[j]))
        assert steps.wealth_ == whole.wealth_path_[j]
    assert steps.n_tests_ == 3000


@pytest.mark.parametrize(
    ("rule", "null", "fdr", "mfdr"),
    [
        ("LORD", [1] * 10, 0.096625752007, 0.099771976597),
        ("LORDPrime", [1] * 10, 0.186883770924, 0.186360966236),
        ("LORD", [0] + [1] * 9, 0.074832969104, None),
        ("LORDPrime", [0] + [1] * 9, 0.099657743816, None),
        ("LORD", [1, 1, 0] * 3, 0.060642400715, None),
        ("LORDPrime", [1, 1, 0] * 3, 0.106665347917, None),
        ("LORD", [0, 1] * 5, 0.056181738527, None),
        ("LORDPrime", [0, 1] * 5, 0.078746071429, None),
    ],
)
def test_exact_error_rates(rule, null, fdr, mfdr):
    """All patterns of decisions, with gamma_j = 2^-j; alternatives have p = 0."""
    gamma = 0.5 ** np.arange(1, 41)
    options = {"gamma": gamma, **({"w0": 0.1} if rule == "LORD" else {})}
    start = RULES[rule](0.2, **options)
    total = [0.0, 0.0, 0.0]

    def walk(procedure, j, weight, V, R):
        if j == len(null):
            total[0] += weight * V / max(R, 1)
            total[1] += weight * V
            total[2] += weight * R
            return
        level = procedure.next_level_
        state = procedure.to_dict()
        for rejected in (True, False):
            share = level if rejected else 1.0 - level
            if not null[j]:
                share = float(rejected)
            if share > 0.0:
                other = RULES[rule].from_dict(state).update(rejected)
                walk(other, j + 1, weight * share, V + rejected * null[j], R + rejected)

    walk(start, 0, 1.0, 0, 0)
    assert_allclose(total[0], fdr, rtol=1e-9)
    if mfdr is not None:
        assert_allclose(total[1] / (total[2] + 1.0), mfdr, rtol=1e-9)


# Experiments


def tape(means, exchanged=False):
    counts = [0] * len(means)
    order = [2, 1, 0] if exchanged else [0, 1, 2]

    def draw(arm, size, rng):
        i = order[arm]
        counts[arm] += 1
        return means[i] + 0.5 * np.sin(1.3 * (counts[arm] - 1) + 2.1 * i)

    return draw


@pytest.mark.parametrize(
    ("options", "exchanged", "arm", "counts", "p"),
    [
        ({}, False, 2, (7, 36, 42), 3.7677082300e-02),
        ({"sampler": "uniform"}, False, 2, (38, 38, 38), 2.7544748638e-08),
        ({"epsilon": 0.25}, False, 2, (28, 28, 28), 4.7157956695e-04),
        (
            {"epsilon": 0.25, "sampler": "uniform"},
            False, 2, (28, 28, 28), 4.7157956695e-04,
        ),
        ({}, True, 0, (42, 36, 7), 1.0),
        ({"epsilon": 0.25}, True, 0, (32, 27, 6), 1.0),
    ],
)  # fmt: skip
def test_printed_experiments(options, exchanged, arm, counts, p):
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=1000, **options)
    test.run(tape([0.0, 1.0, 2.5], exchanged))
    assert (test.recommendation_, test.is_certified_) == (arm, True)
    assert_array_equal(test.counts_, counts)
    assert_allclose(test.p_value_, p, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("sampler", ["lucb", "uniform"])
@pytest.mark.parametrize("n_arms", [2, 3, 7])
@pytest.mark.parametrize("max_pulls", [20, 400])
def test_experiments_step_by_step(n_arms, sampler, epsilon, max_pulls):
    """Rounds, bounds, p-value and end are those of Algorithm 1."""
    rng = np.random.default_rng(n_arms)
    rewards = rng.normal(size=(n_arms, 400)) + rng.uniform(0, 2, size=(n_arms, 1))
    options = {"epsilon": epsilon, "sampler": sampler, "max_pulls": max_pulls}
    expected = ref.best_arm(lambda i, k: rewards[i, k], n_arms, 0.1, 1.0, **options)
    test = BestArmTest(n_arms, delta=0.1, evidence="lil", sigma=1.0, **options)
    seen, path = np.zeros(n_arms, dtype=int), []
    for arms in expected["rounds"]:
        asked = test.ask()
        assert sorted(asked) == sorted(arms)
        test.tell(asked, [rewards[i, seen[i]] for i in asked])
        seen[asked] += 1
        path.append(test.log_p_value_)
    assert test.done_
    assert_array_equal(test.counts_, expected["counts"])
    assert_allclose(test.means_, expected["means"], rtol=1e-12)
    assert_allclose(path, expected["log_p_path"], rtol=1e-8, atol=1e-9)
    assert test.recommendation_ == expected["arm"]
    assert test.is_certified_ == expected["certified"]
    lower, upper = test.confidence_bounds()
    low, high = ref.bounds(expected["means"], expected["counts"], 0.1, 1.0)
    assert_allclose(lower, low, rtol=1e-10)
    assert_allclose(upper, high, rtol=1e-10)
    assert test.n_pulls_ <= max_pulls


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_logged_rewards(epsilon):
    """The running minimum, after any chunk of the log."""
    rng = np.random.default_rng(0)
    arms = rng.integers(4, size=300)
    rewards = 0.7 * arms + rng.normal(size=300)
    path = ref.log_pvalue_path(arms.tolist(), rewards.tolist(), 4, 1.0, epsilon)
    test = BestArmTest(4, evidence="lil", sigma=1.0, max_pulls=1000, epsilon=epsilon)
    at = 0
    for size in (1, 1, 5, 40, 3, 100, 150):
        test.observe(arms[at : at + size], rewards[at : at + size])
        at += size
        assert_allclose(test.log_p_value_, path[at - 1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("means", "epsilon", "expected"),
    [
        ((0.0, 1.0, 2.5), 0.0, 1129),
        ((0.0, 1.0, 2.5), 0.25, 1143),
        ((2.5, 1.0, 0.0), 0.0, 357),
        ((2.5, 1.0, 0.0), 0.25, 265),
    ],
)
def test_planning(means, epsilon, expected):
    found = sample_complexity_bound(means, 0.05, sigma=1.0, epsilon=epsilon)
    assert found == expected
    boundary = sample_complexity_bound([0.0, 1.0, 1.0], 0.05, sigma=1.0)
    assert boundary == np.inf


def test_simulations_are_experiments():
    """Of the same law as BestArmTest."""
    means = [0.0, 0.5, 1.5]
    found = simulate_best_arm_tests(
        np.tile(means, (400, 1)),
        evidence="lil",
        max_pulls=3000,
        delta=0.1,
        random_state=0,
    )
    rng = np.random.default_rng(1)
    pulls = []
    for _ in range(150):
        test = BestArmTest(
            3,
            evidence="lil",
            sigma=1.0,
            max_pulls=3000,
            delta=0.1,
            random_state=int(rng.integers(1e6)),
        )
        test.run(lambda arm, size, g: means[arm] + g.normal(size=size))
        pulls.append(test.n_pulls_)
    gap = np.mean(pulls) - found["n_pulls"].mean()
    error = np.sqrt(np.var(pulls) / 150 + np.var(found["n_pulls"]) / 400)
    assert abs(gap) < 4.0 * error
    assert (found["certified"] == 2).mean() > 0.9


# Validity


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["lucb", "uniform"])
def test_optional_stopping(sampler):
    """Under the null the p-value is ever at most a with probability a at most."""
    found = simulate_best_arm_tests(
        np.zeros((2000, 4)),
        evidence="lil",
        max_pulls=2000,
        sampler=sampler,
        random_state=0,
    )
    p = np.exp(found["log_p_value"])
    for a in (0.05, 0.1, 0.2):
        assert (p <= a).mean() <= a
    # Certified arms are rare where there is none.
    assert (found["certified"] > 0).mean() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["LORD", "LORDPrime", "LORDPlusPlus"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_false_discoveries(rule, share):
    """mFDR (and of two rules the FDR) at most alpha, for uniform nulls."""
    alpha, n_runs, n_tests = 0.2, 300, 200
    rng = np.random.default_rng(0)
    V, R = np.empty(n_runs), np.empty(n_runs)
    for run in range(n_runs):
        null = rng.uniform(size=n_tests) >= share
        p = np.where(null, rng.uniform(size=n_tests), rng.uniform(size=n_tests) ** 8)
        rejected = RULES[rule](alpha).fit(p).rejected_
        V[run], R[run] = (rejected & null).sum(), rejected.sum()
    fdp = V / np.maximum(R, 1.0)
    # V - alpha (R + 1) has a mean of at most 0, if the mFDR is at most alpha.
    excess = V - alpha * (R + 1.0)
    assert excess.mean() <= 3.0 * excess.std() / np.sqrt(n_runs)
    assert fdp.mean() <= alpha + 3.0 * fdp.std() / np.sqrt(n_runs)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["LORD", "LORDPrime"])
def test_false_discoveries_of_bandits(rule):
    """FDR and mFDR of p-values that experiments with equal arms end with, and others.

    Null experiments are the hardest ones, all arms equal; the truncated ones keep what
    was certified by then.
    """
    alpha, n_runs, n_tests = 0.2, 100, 100
    rng = np.random.default_rng(0)
    null = rng.uniform(size=(n_runs, n_tests)) < 0.7
    means = np.zeros((n_runs * n_tests, 4))
    means[~null.ravel(), 2] = 3.0
    found = simulate_best_arm_tests(
        means, evidence="lil", sigma=1.0, delta=1e-3, max_pulls=300, random_state=0
    )
    p = np.exp(found["log_p_value"]).reshape(n_runs, n_tests)
    V, R = np.empty(n_runs), np.empty(n_runs)
    for run in range(n_runs):
        rejected = RULES[rule](alpha).fit(p[run]).rejected_
        V[run], R[run] = (rejected & null[run]).sum(), rejected.sum()
    fdp = V / np.maximum(R, 1.0)
    excess = V - alpha * (R + 1.0)
    assert excess.mean() <= 3.0 * excess.std() / np.sqrt(n_runs)
    assert fdp.mean() <= alpha + 3.0 * fdp.std() / np.sqrt(n_runs)
    # The experiments are no empty ones.
    assert R.mean() > 5.0


@pytest.mark.slow
def test_best_arms_are_discovered():
    """In a study with clear winners: most are found, and hardly a null is rejected."""
    rng = np.random.default_rng(0)
    study = MABFDR(alpha=0.1, evidence="lil", sigma=1.0, max_pulls=4000, random_state=0)
    truth = []
    for _ in range(60):
        means = rng.uniform(0.0, 1.0, size=8)
        best = int(rng.integers(8))
        means[best] = 3.0
        truth.append(best)
        test = study.begin(8)
        study.finish(test.run(lambda a, size, g, m=means: m[a] + g.normal(size=size)))
    history = study.history_
    alternatives = [entry for entry, best in zip(history, truth, strict=True) if best]
    found = [
        entry["rejected"] and entry["recommendation"] == best
        for entry, best in zip(history, truth, strict=True)
        if best
    ]
    assert len(alternatives) > 40
    assert np.mean(found) >= 0.9
    false = [e["rejected"] for e, best in zip(history, truth, strict=True) if not best]
    assert not any(false)
