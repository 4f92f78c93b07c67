"""What e-processes promise, by simulation: errors at any time, coverage, rewards."""

import numpy as np
import pytest

from skbounds.sequential import (
    ADDIS,
    MABFDR,
    BestArmTest,
    best_arm_discovery_rate,
    false_discovery_rate,
    marginal_false_discovery_rate,
    simulate_best_arm_tests,
)

pytestmark = pytest.mark.slow

ALPHA = 0.05


def allocations(rule, n_arms, n, rng):
    """Arms that do not depend on rewards: in turn, at random, few of the control."""
    if rule == "in turn":
        return np.arange(n) % n_arms
    if rule == "at random":
        return rng.integers(n_arms, size=n)
    arms = 1 + rng.integers(n_arms - 1, size=n)
    arms[::11] = 0
    return arms


def share_of_errors(draw, n_arms, n, n_runs, rule, **params):
    """Return the share of runs in which any arm may ever be adopted."""
    errors = 0
    for run in range(n_runs):
        rng = np.random.default_rng([run, n])
        arms = allocations(rule, n_arms, n, rng)
        extra, rewards = {}, draw(rng, arms)
        if isinstance(rewards, tuple):
            name = "denominators" if params.get("ratio") else "covariates"
            rewards, extra[name] = rewards
        test = BestArmTest(n_arms, **params).observe(arms, rewards, **extra)
        errors += test.p_value_ <= ALPHA
    return errors / n_runs


LAWS = {
    "normal": ({"sigma": 1.0}, lambda r, a: r.normal(size=len(a))),
    "normal, epsilon": (
        {"sigma": 1.0, "epsilon": 0.3},
        lambda r, a: r.normal(size=len(a)) + 0.3 * (a == 1),
    ),
    "each sigma": (
        {"sigma": [1.0, 2.0, 0.5]},
        lambda r, a: r.normal(size=len(a)) * np.array([1.0, 2.0, 0.5])[a],
    ),
    "half": (
        {"rewards": "binary"},
        lambda r, a: (r.random(len(a)) < 0.5).astype(float),
    ),
    "two percent": (
        {"rewards": "binary"},
        lambda r, a: (r.random(len(a)) < 0.02).astype(float),
    ),
    "beta": ({"rewards": "bounded"}, lambda r, a: r.beta(5, 20, size=len(a))),
    "exponential": ({}, lambda r, a: r.exponential(size=len(a))),
    "t3": ({}, lambda r, a: r.standard_t(3, size=len(a))),
}


@pytest.mark.parametrize("rule", ["in turn", "at random", "one in eleven"])
@pytest.mark.parametrize("law", LAWS)
def test_errors_at_any_time(law, rule):
    """Ties, looked at after each reward: far below the level."""
    params, draw = LAWS[law]
    assert share_of_errors(draw, 3, 3000, 200, rule, **params) <= 0.035


def with_covariate(rng, arms):
    z = rng.normal(size=len(arms))
    return z + 0.5 * rng.normal(size=len(arms)), z


def clicks_of_views(rng, arms):
    views = 1.0 + rng.geometric(0.2, size=len(arms))
    rate = rng.beta(2, 8, size=len(arms))
    return rng.binomial(views.astype(int), rate).astype(float), views


@pytest.mark.parametrize("rule", ["in turn", "at random", "one in eleven"])
@pytest.mark.parametrize(
    ("params", "draw"),
    [
        ({"covariate_coef": 0.9}, with_covariate),
        ({"covariate_mean": 0.0}, with_covariate),
        ({"ratio": True}, clicks_of_views),
    ],
)
def test_errors_of_adjusted_rewards(params, draw, rule):
    assert share_of_errors(draw, 2, 1500, 150, rule, **params) <= 0.045


@pytest.mark.parametrize("sampler", ["toptwo", "lift", "lucb"])
@pytest.mark.parametrize("rewards", ["normal", "bernoulli"])
def test_errors_of_samplers(sampler, rewards):
    """Arms that are chosen for what they have brought so far."""
    found = simulate_best_arm_tests(
        np.full((1000, 4), 0.3), max_pulls=3000, delta=ALPHA, sampler=sampler,
        until="rejected", rewards=rewards, random_state=0,
    )  # fmt: skip
    assert np.mean(found["log_p_value"] <= np.log(ALPHA)) <= 0.035
    # E-values at the end have means of at most 1.
    e = np.exp(found["log_evalue"])
    assert e.mean() <= 1.0 + 3.0 * e.std() / np.sqrt(len(e))


@pytest.mark.parametrize("means", [(0, 0.15, 0, 0, 0), (0, 0.3, 0.3, 0, 0)])
def test_null_arms_beside_good_ones(means):
    """Are not adopted with them."""
    wrong = 0
    for run in range(300):
        rng = np.random.default_rng(run)
        arms = np.arange(4000) % 5
        test = BestArmTest(5, sigma=1.0).observe(
            arms, rng.normal(np.asarray(means, dtype=float)[arms])
        )
        wrong += any(means[i] == 0 for i in test.adopted(ALPHA))
    assert wrong / 300 <= 0.03


@pytest.mark.parametrize("kind", ["normal", "binary", "bounded", "lil"])
def test_intervals_hold_at_all_times(kind):
    """Of both alternatives together, whenever they are looked at."""
    lifts, n_runs, level, failures = np.array([0.0, 0.2, -0.1]), 200, 0.2, 0
    for run in range(n_runs):
        rng = np.random.default_rng(run)
        arms = rng.integers(3, size=2000)
        means = 0.3 + lifts[arms]
        if kind in ("normal", "lil"):
            rewards = rng.normal(means)
        elif kind == "binary":
            rewards = (rng.random(2000) < means).astype(float)
        else:
            rewards = rng.beta(10 * means, 10 * (1 - means))
        params = {"rewards": kind}
        if kind == "normal":
            params = {"sigma": 1.0}
        if kind == "lil":
            params = {"evidence": "lil", "sigma": 1.0, "max_pulls": 10**4}
        test, failed = BestArmTest(3, **params), False
        for k in range(0, 2000, 80):
            test.observe(arms[k : k + 80], rewards[k : k + 80])
            low, high = test.lift_intervals(level)
            failed |= (low[1:] > lifts[1:]).any() or (high[1:] < lifts[1:]).any()
        failures += failed
    assert failures / n_runs <= level


@pytest.mark.parametrize(
    ("means", "most"),
    [
        ((0, 0.5, 1), 270),
        ((0, 0.2, 0.4, 0.6, 1), 560),
        ((0, *[0.3] * 8, 1), 720),
        ((1, 0.5, 0, 0), 300),
    ],
)
def test_rewards_until_the_best_arm_is_certified(means, most):
    found = simulate_best_arm_tests(
        [means] * 200, max_pulls=10**6, delta=ALPHA, random_state=0
    )
    assert found["n_pulls"].mean() <= most
    assert found["n_pulls"].max() < 10**6
    assert np.mean(found["certified"] != np.argmax(means)) <= 0.03


@pytest.mark.parametrize(
    ("means", "epsilon", "delta"),
    [((0, 0.2, 0.3), 0.0, 0.3), ((0, 0.0, 0.0), 0.0, 0.3), ((0, 0.2, 0.1), 0.3, 0.1)],
)
def test_wrong_arms_are_rarely_certified(means, epsilon, delta):
    found = simulate_best_arm_tests(
        [means] * 400, max_pulls=20_000, epsilon=epsilon, delta=delta, random_state=0
    )
    certified = found["certified"]
    value = np.array([epsilon, *[0.0] * (len(means) - 1)]) + means
    good = value >= value.max() - epsilon
    if epsilon == 0.0 and len(set(means)) == 1:
        good[1:] = False
    wrong = (certified >= 0) & ~good[np.maximum(certified, 0)]
    assert wrong.mean() <= delta / 3.0


def test_false_discoveries_of_studies():
    """FDR of adoptions by ADDIS over e-processes; many alternatives are found."""
    alpha, n_runs, n_tests = 0.2, 12, 40
    rejected = np.zeros((n_runs, n_tests), dtype=bool)
    arms = np.zeros((n_runs, n_tests), dtype=int)
    means = np.zeros((n_runs, n_tests, 3))
    for run in range(n_runs):
        rng = np.random.default_rng(run)
        better = rng.uniform(size=n_tests) < 0.4
        means[run, :, 1] = np.where(better, 0.5, 0.0)
        means[run, :, 2] = -0.3
        study = MABFDR(ADDIS(alpha), sigma=1.0, max_pulls=500, random_state=run)
        study.run(
            (3, lambda a, size, g, m=m: g.normal(m[a], 1.0, size)) for m in means[run]
        )
        rejected[run] = [e["rejected"] for e in study.history_]
        arms[run] = [e["recommendation"] for e in study.history_]
    is_null = means.max(axis=2) <= 0.0
    assert false_discovery_rate(rejected, is_null) <= alpha
    assert marginal_false_discovery_rate(rejected, is_null) <= alpha
    assert best_arm_discovery_rate(rejected, arms, means) >= 0.7
