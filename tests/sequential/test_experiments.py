"""Tests of many arms by e-processes: rules, states, decisions."""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import eprocess as ref

from skbounds.sequential import (
    ADDIS,
    ELOND,
    LORD,
    MABFDR,
    BestArmTest,
    LORDPlusPlus,
    log_evalue,
    simulate_best_arm_tests,
)

NORMAL = {"sigma": 1.0}
BINARY = {"rewards": "binary"}
BOUNDED = {"rewards": "bounded"}
KINDS = {"normal": NORMAL, "binary": BINARY, "bounded": BOUNDED}
each_kind = pytest.mark.parametrize("kind", KINDS)


def draws_of(kind, means, n, rng):
    """Rewards of all arms, one row per arm."""
    means = np.asarray(means)[:, None]
    if kind == "normal":
        return rng.normal(means, size=(len(means), n))
    if kind == "binary":
        return (rng.random((len(means), n)) < means).astype(float)
    return np.clip(rng.beta(8 * means, 8 * (1 - means), size=(len(means), n)), 0, 1)


def log_of(kind, means, n, seed=0):
    """Arms at random, and their rewards."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(len(means), size=n)
    rewards = draws_of(kind, means, n, rng)
    return arms, rewards[arms, np.arange(n)]


def state_of(kind, rewards):
    rewards = list(map(float, rewards))
    if kind == "bounded":
        return ref.bounded_state(rewards)
    return len(rewards), sum(rewards)


def states_of(kind, arms, rewards, n_arms):
    return [state_of(kind, rewards[arms == i]) for i in range(n_arms)]


# Evidence


@each_kind
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
@pytest.mark.parametrize("weights", [None, (0.5, 0.3, 0.2)])
def test_evidence_of_all_arms(kind, epsilon, weights):
    """Sums of the log, adjusted by closed testing over all subsets."""
    arms, rewards = log_of(kind, [0.2, 0.3, 0.5, 0.35], 240)
    test = BestArmTest(4, epsilon=epsilon, weights=weights, **KINDS[kind])
    test.observe(arms, rewards)
    states = states_of(kind, arms, rewards, 4)
    own = [ref.log_evalue(s, states[0], kind, epsilon=epsilon) for s in states[1:]]
    expected = ref.adjusted(np.exp(own), weights)
    assert np.isnan(test.evalues_[0])
    assert_allclose(test.evalues_[1:], expected, rtol=1e-8)
    assert_allclose(
        test.global_evalue_, np.average(np.exp(own), weights=weights), rtol=1e-8
    )
    if kind == "bounded":
        assert_allclose(
            log_evalue(states[2], states[0], rewards=kind, epsilon=epsilon), own[1]
        )


@given(
    st.lists(st.floats(-20.0, 800.0), min_size=1, max_size=7), st.booleans(),
    st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_adjusted_by_all_subsets(log_e, weighted, seed):
    """Also where e-values are beyond numbers."""
    K = len(log_e)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(K)) if weighted else np.full(K, 1.0 / K)
    test = BestArmTest(K + 1, weights=weights / weights.sum(), sigma=1.0)
    test._start()
    engine = test._engine_
    engine.log_e[:], engine.exact[:] = log_e, True
    expected = ref.adjusted_log(log_e, weights.tolist())
    assert_allclose(engine.log_evalues()[0], expected, rtol=1e-10, atol=1e-9)


def test_printed_adjusted_evidence():
    for e, expected in (
        ((31, 30, 0.01), (15.505, 15.005, 0.01)),
        ((200, 40, 1, 0.2), (60.3, 13.733333333, 0.6, 0.2)),
    ):
        test = BestArmTest(len(e) + 1, sigma=1.0)
        test._start()
        test._engine_.log_e[:], test._engine_.exact[:] = np.log(e), True
        assert_allclose(test.evalues_[1:], expected, rtol=1e-9)
        assert_allclose(test.global_evalue_, np.mean(e), rtol=1e-12)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_running_p_values(kind, seed):
    """The largest adjusted evidence so far, of each arm, after each reward."""
    arms, rewards = log_of(kind, [0.3, 0.3, 0.7, 0.6], 150, seed)
    test, path = BestArmTest(4, **KINDS[kind]), []
    for t in range(150):
        test.observe(arms[t : t + 1], rewards[t : t + 1])
        states = states_of(kind, arms[: t + 1], rewards[: t + 1], 4)
        path.append(
            [
                ref.log_evalue(s, states[0], kind) if s[0] and states[0][0] else 0.0
                for s in states[1:]
            ]
        )
        if t % 30 == 29:
            expected = ref.log_p_values(path)
            assert_allclose(np.log(test.p_values_[1:]), expected, rtol=1e-8, atol=1e-9)
            assert_allclose(test.log_p_value_, min(expected), rtol=1e-8, atol=1e-9)
    whole = BestArmTest(4, **KINDS[kind]).observe(arms, rewards)
    assert_array_equal(whole.p_values_, test.p_values_)
    assert_array_equal(whole.evalues_, test.evalues_)


@pytest.mark.parametrize("unit", [2.0**-12, 2.0**12])
@pytest.mark.parametrize("epsilon", [0.0, 0.25])
def test_units_of_running_p_values(unit, epsilon):
    """What is skipped as too little to matter does not depend on the unit."""
    arms, rewards = log_of("normal", [0.0, 0.3, 0.7, 0.6], 300)
    plain = BestArmTest(4, sigma=1.0, epsilon=epsilon)
    other = BestArmTest(4, sigma=unit, epsilon=unit * epsilon)
    plain.observe(arms, rewards)
    other.observe(arms, unit * rewards)
    assert_allclose(other.p_values_, plain.p_values_, rtol=1e-9)
    assert plain.log_p_value_ < -1.0


@each_kind
def test_order_and_batches(kind):
    """Of all rewards (but bounded ones of one arm) the order does not matter."""
    arms, rewards = log_of(kind, [0.3, 0.4, 0.7], 200)
    order = np.random.default_rng(0).permutation(200)
    if kind == "bounded":
        order = np.argsort(arms, kind="stable")
    a = BestArmTest(3, **KINDS[kind]).observe(arms, rewards)
    b = BestArmTest(3, **KINDS[kind]).observe(arms[order], rewards[order])
    assert_allclose(a.evalues_, b.evalues_, rtol=1e-11)
    c = BestArmTest(3, **KINDS[kind])
    while c.n_outstanding_ < 900:
        c.ask(100)
    c.tell(arms, rewards)
    assert_allclose(c.evalues_, a.evalues_, rtol=1e-11)


@each_kind
def test_names_of_arms_do_not_matter(kind):
    """Relabelled alternatives: the same, relabelled."""
    arms, rewards = log_of(kind, [0.3, 0.4, 0.7, 0.5], 300)
    labels = np.array([0, 3, 1, 2])
    a = BestArmTest(4, **KINDS[kind]).observe(arms, rewards)
    b = BestArmTest(4, **KINDS[kind]).observe(labels[arms], rewards)
    assert_allclose(b.evalues_[labels], a.evalues_, rtol=1e-12)
    assert_allclose(b.p_values_[labels], a.p_values_, rtol=1e-12)
    for x, y in zip(a.lift_intervals(), b.lift_intervals(), strict=True):
        assert_allclose(y[labels], x, rtol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "bounded"])
def test_other_bounds(kind):
    """Rewards in [lo, hi] are those in [0, 1] in other units."""
    arms, rewards = log_of(kind, [0.3, 0.4, 0.7], 300)
    low, high = -3.0, 7.0
    plain = BestArmTest(3, rewards=kind, epsilon=0.05).observe(arms, rewards)
    other = BestArmTest(3, rewards=kind, bounds=(low, high), epsilon=0.5)
    other.observe(arms, low + (high - low) * rewards)
    assert_allclose(other.evalues_, plain.evalues_, rtol=1e-9)
    assert_allclose(other.means_, low + 10.0 * plain.means_, rtol=1e-12)
    for x, y in zip(plain.lift_intervals(), other.lift_intervals(), strict=True):
        assert_allclose(y, 10.0 * x, rtol=1e-7)


def test_sigma_of_each_arm():
    arms, rewards = log_of("normal", [0.0, 0.4, 0.2], 300)
    sigma = np.array([1.0, 2.0, 0.5])
    test = BestArmTest(3, sigma=sigma).observe(arms, sigma[arms] * rewards)
    sums = [np.sum((sigma[arms] * rewards)[arms == i]) for i in range(3)]
    counts = np.bincount(arms)
    own = [
        log_evalue(
            (counts[i], sums[i]), (counts[0], sums[0]), rewards="normal",
            sigma=(sigma[i], sigma[0]),
        )
        for i in (1, 2)
    ]  # fmt: skip
    assert_allclose(test.evalues_[1:], ref.adjusted(np.exp(own)), rtol=1e-9)


def test_estimated_variances():
    """From 100 rewards of both arms on."""
    rng = np.random.default_rng(0)
    arms = np.tile([0, 1], 150)
    rewards = rng.exponential(size=300) + 0.4 * arms
    test = BestArmTest(2)
    test.observe(arms[:198], rewards[:198])
    assert test.is_asymptotic_
    assert test.evalues_[1] == 1.0
    assert test.lift_intervals()[0][1] == -np.inf
    test.observe(arms[198:], rewards[198:])
    expected = ref.asymptotic_log_evalue(
        rewards[arms == 1].tolist(), rewards[arms == 0].tolist()
    )
    assert_allclose(np.log(test.evalues_[1]), expected, rtol=1e-8)
    constant = BestArmTest(2).observe(arms, np.where(arms == 1, 3.0, rewards))
    assert constant.evalues_[1] == 1.0


# Samplers


@pytest.mark.parametrize("kind", ["normal", "binary"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_top_two_step_by_step(kind, epsilon, seed):
    """Each arm asked for, and the end, are those of the definition."""
    rng = np.random.default_rng(seed)
    n_arms = 4
    means = np.array([0.3, 0.2, 0.9, 0.4])
    rewards = draws_of(kind, means, 1500, rng)
    test = BestArmTest(n_arms, delta=0.1, epsilon=epsilon, **KINDS[kind])
    seen = [[] for _ in range(n_arms)]
    for _ in range(1500):
        states = [state_of(kind, s) for s in seen]
        arm = int(test.ask()[0])
        assert arm == ref.toptwo_next(states, kind, epsilon=epsilon)
        seen[arm].append(rewards[arm, len(seen[arm])])
        test.tell([arm], [seen[arm][-1]])
        if min(map(len, seen)) and (test.done_ or test.n_pulls_ % 20 == 0):
            states = [state_of(kind, s) for s in seen]
            found = ref.certified(states, 0.1, kind, epsilon=epsilon)
            assert (found is not None) == test.is_certified_
        if test.done_:
            break
    assert test.is_certified_
    assert test.recommendation_ == found


@pytest.mark.parametrize("kind", ["normal", "binary"])
def test_top_two_in_batches(kind):
    """The rule repeated with counts that go on and statistics that stay."""
    arms, rewards = log_of(kind, [0.3, 0.5, 0.8], 60)
    test = BestArmTest(3, **KINDS[kind]).observe(arms, rewards)
    states = states_of(kind, arms, rewards, 3)
    expected = ref.toptwo_batch(states, 20, kind)
    found = test.ask(20)
    assert_array_equal(found, expected)
    # Outstanding ones count for the next that are asked for.
    counts = test.counts_ + np.bincount(found, minlength=3)
    assert test.ask()[0] == ref.toptwo_next(states, kind, counts=counts.tolist())
    assert test.n_outstanding_ == 21


def test_first_rewards():
    """Each arm once, in turn; then by what has arrived."""
    test = BestArmTest(4, sigma=1.0)
    assert_array_equal(test.ask(6), [0, 1, 2, 3, 0, 1])
    assert_array_equal(BestArmTest(4, sigma=1.0, sampler="uniform").ask(), range(4))
    assert_array_equal(BestArmTest(4, sigma=1.0, sampler="lucb").ask(), range(4))
    asymptotic = BestArmTest(3)
    assert_array_equal(np.bincount(asymptotic.ask(300)), [100, 100, 100])


def test_an_unlucky_first_reward_is_no_trap():
    """The rival's index grows with its count."""
    test = BestArmTest(3, sigma=1.0)
    test.observe([0, 1, 2], [0.0, 0.3, -3.0])
    pulled = [int(test.ask()[0]) for _ in range(400)]
    assert 2 in pulled


@pytest.mark.parametrize("kind", ["normal", "binary", "bounded"])
def test_lift_sampler(kind):
    """The control at every other turn, and the alternative with the largest bound."""
    arms, rewards = log_of(kind, [0.3, 0.5, 0.4], 60, 1)
    test = BestArmTest(3, sampler="lift", **KINDS[kind]).observe(arms, rewards)
    states = states_of(kind, arms, rewards, 3)
    n, S = [s[0] for s in states], [s[1] for s in states]
    t, expected = 60, []
    for _ in range(12):
        if (t - 3) % 2 == 0:
            arm = 0
        else:
            size = []
            for i in (1, 2):
                q = (S[i] + 1) / (states[i][0] + 2)
                v = {"normal": 1.0, "binary": q * (1 - q)}.get(kind)
                if v is None:
                    v = (states[i][2] + 0.25) / (states[i][0] + 1)
                mean = S[i] / states[i][0]
                size.append(mean + np.sqrt(2 * v * np.log1p(t) / n[i]))
            arm = 1 + int(np.argmax(size))
        expected.append(arm)
        n[arm] += 1
        t += 1
    assert_array_equal(test.ask(12), expected)


def test_lift_ends_when_an_arm_may_be_adopted():
    test = BestArmTest(3, rewards="binary", sampler="lift", max_pulls=10**5,
                       random_state=0)  # fmt: skip
    test.run(lambda arm, size, rng: rng.random(size) < [0.1, 0.1, 0.3][arm])
    assert test.done_ and not test.is_certified_
    assert test.rejected(0.05)
    assert test.adopted(0.05).tolist() == [2] == [test.recommendation_]


def test_rounds_of_the_bandit():
    """ "lucb" asks for the arms of Algorithm 1, in units of sigma."""
    arms, rewards = log_of("normal", [0.0, 0.5, 0.8, 0.4], 80)
    lil = BestArmTest(4, evidence="lil", sigma=1.0, max_pulls=10**4, epsilon=0.1)
    ours = BestArmTest(4, sampler="lucb", sigma=1.0, epsilon=0.1)
    asked = [t.observe(arms, rewards).ask() for t in (lil, ours)]
    assert_array_equal(*asked)
    binary = BestArmTest(4, sampler="lucb", rewards="binary").observe(
        arms, (rewards > 0.5).astype(float)
    )
    half = BestArmTest(4, evidence="lil", sigma=0.5, max_pulls=10**4).observe(
        arms, (rewards > 0.5).astype(float)
    )
    assert_array_equal(binary.ask(), half.ask())


# Decisions


def test_two_rewards_adopt_no_arm():
    """Another arm's rejection is not this one's, however large its mean."""
    test = BestArmTest(3, sigma=1.0, max_pulls=10**6)
    test.observe(np.tile([0, 1], 300), np.tile([0.0, 1.0], 300))
    assert test.rejected(0.05)
    test.observe([2, 2], [2.0, 2.0])
    assert test.means_.argmax() == 2
    assert test.recommendation_ == 1
    assert test.adopted(0.05).tolist() == [1]
    assert test.p_values_[2] > 0.5


def test_global_evidence_without_an_arm():
    test = BestArmTest(4, sigma=1.0)
    test._start()
    test._engine_.log_e[:], test._engine_.exact[:] = np.log([31, 30, 0.01]), True
    assert test.global_evalue_ > 20.0
    assert test.evalues_[1:].max() < 20.0


def test_certified_arms_may_be_adopted():
    for seed in range(20):
        test = BestArmTest(4, sigma=1.0, max_pulls=10**5, random_state=seed)
        test.run(lambda arm, size, rng: rng.normal([0.0, 0.5, 1.0, 0.7][arm], 1, size))
        assert test.is_certified_
        if test.recommendation_:
            assert test.recommendation_ in test.adopted(0.05)


def test_control_certified():
    test = BestArmTest(3, sigma=1.0, max_pulls=10**5, random_state=0)
    test.run(lambda arm, size, rng: rng.normal([1.0, 0.0, 0.0][arm], 1, size))
    assert test.recommendation_ == 0 and test.is_certified_
    assert not len(test.adopted(0.05)) and not test.rejected(0.05)
    # Slack in favour of the control: it is the leader at equal means.
    slack = BestArmTest(2, sigma=1.0, epsilon=0.5).observe([0, 1], [0.0, 0.3])
    assert slack.recommendation_ == 0


def test_end_by_max_pulls():
    """Outstanding rewards count; nothing is certified."""
    test = BestArmTest(2, sigma=1.0, max_pulls=10)
    assert len(test.ask(20)) == 10
    with pytest.raises(ValueError, match="all max_pulls=10 rewards are asked for"):
        test.ask()
    test.tell([0, 1, 0], [0.0, 0.0, 0.0])
    assert not test.done_ and test.n_outstanding_ == 7
    test.tell([1, 0, 1, 0, 1, 0, 1], np.zeros(7))
    assert test.done_ and not test.is_certified_
    with pytest.raises(ValueError, match="has ended"):
        test.ask()
    endless = BestArmTest(2, sigma=1.0)
    with pytest.raises(ValueError, match="run needs max_pulls"):
        endless.run(lambda arm, size, rng: np.zeros(size))


def test_late_rewards_after_the_end():
    """Count like others."""
    test = BestArmTest(2, sigma=1.0)
    test.ask(400)
    test.tell(np.tile([0, 1], 150), np.tile([0.0, 1.0], 150))
    assert test.done_
    before = test.counts_.sum()
    test.tell([0, 1], [0.0, 1.0])
    assert test.counts_.sum() == before + 2


def test_partial_and_delayed_rewards():
    """Any subset of what is outstanding, in any order."""
    test = BestArmTest(3, sigma=1.0)
    asked = test.ask(30).tolist()
    rng = np.random.default_rng(0)
    rng.shuffle(asked)
    for k in range(0, 30, 7):
        part = asked[k : k + 7]
        test.tell(part, rng.normal(size=len(part)))
    assert test.n_outstanding_ == 0
    before = json.dumps(test.to_dict())
    with pytest.raises(ValueError, match="asked for and are outstanding"):
        test.tell([0], [1.0])
    assert json.dumps(test.to_dict()) == before
    test.ask()
    # Logs of others may come in between.
    test.observe([0, 0], [1.0, 2.0])
    assert test.n_outstanding_ == 1


# Names, generators, states


def test_arms_by_name():
    names = ["control", "blue", "green"]
    test = BestArmTest(names, rewards="binary")
    asked = test.ask(3)
    assert asked.tolist() == names
    test.tell(["green", "control"], [1, 0])
    test.tell([1], [0])
    assert test.counts_.tolist() == [1, 1, 1]
    test.observe(np.repeat(names, 200), np.repeat([0.0, 0.0, 1.0], 200))
    assert test.recommendation_ == "green"
    assert test.adopted(0.01).tolist() == ["green"]
    for wrong, words in ((["red"], r"among .*\['red'\]"), ([3], "integers in")):
        with pytest.raises(ValueError, match=words):
            test.observe(wrong, [0.0])
    for bad in (["a"], ["a", "a"], ["a", 3], []):
        with pytest.raises(ValueError, match="n_arms must be"):
            BestArmTest(bad, rewards="binary").ask()


def test_generators():
    """`default_rng` is taken as it is."""
    draw = lambda arm, size, rng: rng.normal(arm, 1, size)
    options = {"sigma": 1.0, "max_pulls": 1000}
    a, b = (
        BestArmTest(3, random_state=np.random.default_rng(5), **options).run(draw)
        for _ in range(2)
    )
    assert_array_equal(a.counts_, b.counts_)
    again = BestArmTest.from_dict(json.loads(json.dumps(a.to_dict())))
    assert again._generator().random() == a._generator().random()
    other = BestArmTest(
        3, random_state=np.random.Generator(np.random.Philox(1)), **options
    )
    other.ask()
    state = other.to_dict()
    # Philox keeps its state in arrays.
    assert state["rng"]["bit_generator"] == "Philox"
    assert BestArmTest.from_dict(state)._generator().random() >= 0.0


CASES = {
    "normal": NORMAL,
    "each sigma": {"sigma": [1.0, 2.0, 0.5]},
    "binary": BINARY,
    "bounded": {**BOUNDED, "bounds": (-1.0, 2.0), "epsilon": 0.1},
    "asymptotic": {},
    "weights, bets": {"sigma": 1.0, "weights": [0.7, 0.3], "bets": [0.1, 0.5]},
    "lift": {**BINARY, "sampler": "lift"},
    "uniform": {**NORMAL, "sampler": "uniform", "max_pulls": 5000},
    "names": {**BINARY, "n_arms": ["a", "b", "c"]},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["pickle", "json"])
def test_state_survives(case, way):
    """Between any two steps, with rewards outstanding; the same bits."""
    rng = np.random.default_rng(0)
    make = lambda: BestArmTest(**{"n_arms": 3, "random_state": 1, **CASES[case]})
    plain, other = make(), make()

    def again(test):
        if way == "pickle":
            return pickle.loads(pickle.dumps(test))
        return BestArmTest.from_dict(json.loads(json.dumps(test.to_dict())))

    waiting = []
    for step in range(150):
        other = again(other)
        if plain.done_:
            break
        asked = plain.ask(4 if step % 3 else None)
        assert_array_equal(other.ask(4 if step % 3 else None), asked)
        waiting += asked.tolist()
        rng.shuffle(waiting)
        part, waiting = waiting[:3], waiting[3:]
        names = CASES[case].get("n_arms", [0, 1, 2])
        shares = np.array([0.2, 0.35, 0.8])[[names.index(arm) for arm in part]]
        rewards = rng.beta(2 * shares, 2 * (1 - shares))
        if "binary" in CASES[case].values():
            rewards = (rng.random(len(part)) < shares).astype(float)
        for test in (plain, other):
            test.tell(part, rewards)
        assert_array_equal(other.p_values_, plain.p_values_)
        assert_array_equal(other.evalues_, plain.evalues_)
        assert other.n_outstanding_ == plain.n_outstanding_
    assert plain.n_pulls_ > 20
    assert plain.p_value_ < 1.0 or plain.is_asymptotic_
    assert_array_equal(np.array(other.lift_intervals()), plain.lift_intervals())


@pytest.mark.parametrize("kind", KINDS)
def test_state_written_down_after_each_reward(kind):
    """As a web service does: running p-values go on, and arms are adopted."""
    arms, rewards = log_of(kind, [0.2, 0.5, 0.7], 300)
    whole = BestArmTest(3, **KINDS[kind]).observe(arms, rewards)
    text = json.dumps(BestArmTest(3, **KINDS[kind]).to_dict())
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        test = BestArmTest.from_dict(json.loads(text)).observe([arm], [reward])
        text = json.dumps(test.to_dict())
    assert_array_equal(test.p_values_, whole.p_values_)
    if kind == "normal":
        # Of lifts of half of sigma.
        assert whole.p_values_[2] < 0.1
    else:
        assert whole.p_values_[2] < 1e-6


STATE_0_1 = {
    "params": {
        "delta": 0.05, "epsilon": 0.0, "max_pulls": 300, "n_arms": 3,
        "random_state": 0, "sampler": "lucb", "sigma": 1.0,
    },
    "counts": [10.0, 12.0, 15.0], "sums": [0.5, 9.0, 40.0],
    "log_p": -2.5, "certified": None, "done": False, "asked": [2, 1], "rng": None,
}  # fmt: skip


def test_states_of_the_first_version():
    """Go on as "lil", with p-values of each arm from then on."""
    test = BestArmTest.from_dict(json.loads(json.dumps(STATE_0_1)))
    assert test.evidence == "lil" and test.sampler == "lucb"
    assert test.log_p_value_ == -2.5
    assert test.ask().tolist() == [2, 1]
    before = test.p_values_[2]
    assert 0.0 < before < 1.0
    test.tell([2, 1], [3.0, 0.5])
    assert test.p_values_[2] <= before
    procedure = LORD(0.1).fit([1e-5, 0.9])
    history = [
        {
            "n_arms": 3, "level": level, "p_value": p, "log_p_value": np.log(p),
            "recommendation": 2, "n_pulls": 300, "is_certified": False,
            "rejected": rejected,
        }
        for p, level, rejected in zip(
            [1e-5, 0.9], procedure.levels_.tolist(), [True, False], strict=True
        )
    ]  # fmt: skip
    state = procedure.to_dict()
    for name in ("weighted", "overlapped", "pending"):
        del state[name]
    study = MABFDR.from_dict(
        {
            "params": {
                "alpha": 0.1, "epsilon": 0.0, "sigma": 1.0, "max_pulls": 300,
                "sampler": "lucb", "random_state": 0,
            },
            "given": False, "procedure": state, "seed": 5, "open": STATE_0_1,
            "history": history,
        }
    )  # fmt: skip
    assert study.evidence == "lil"
    assert study.open_.ask().tolist() == [2, 1]
    level = procedure.next_level_
    study.finish(study.open_)
    assert study.history_[2]["level"] == level


# The thesis' evidence


def test_adoption_with_the_radius():
    """P-values of each arm as (4.5), their running minima."""
    from reference import sequential as slow

    rng = np.random.default_rng(0)
    arms = rng.integers(3, size=200)
    rewards = np.array([0.0, 1.0, 2.0])[arms] + rng.normal(size=200)
    test = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=10**4)
    least = np.zeros(2)
    for t in range(200):
        test.observe(arms[t : t + 1], rewards[t : t + 1])
        past, x = arms[: t + 1], rewards[: t + 1]
        for i in (1, 2):
            n, n0 = (past == i).sum(), (past == 0).sum()
            if n and n0:
                gap = x[past == i].mean() - x[past == 0].mean()
                found = slow.arm_log_pvalue(gap, int(n), int(n0), 2, 1.0)
                least[i - 1] = min(least[i - 1], found)
    assert_allclose(np.log(test.p_values_[1:]), least, rtol=1e-8, atol=1e-9)
    assert_allclose(test.log_p_value_, least.min(), rtol=1e-12)
    assert test.adopted(0.05).tolist() == [2, 1][: (least <= np.log(0.05)).sum()]
    low, high = test.lift_intervals(0.1)
    assert (low[1:] < [1.0, 2.0]).all() and (high[1:] > [1.0, 2.0]).all()
    with pytest.raises(AttributeError, match="e-values"):
        _ = test.evalues_
    with pytest.raises(ValueError, match="size is for"):
        test.ask(3)


def test_top_two_with_the_radius():
    """The sampler is one thing and the evidence another."""
    test = BestArmTest(
        3, evidence="lil", sampler="toptwo", sigma=1.0, max_pulls=5000, random_state=0
    )
    test.run(lambda arm, size, rng: rng.normal([0, 1, 2][arm], 1, size))
    assert test.is_certified_ and test.recommendation_ == 2


# Covariates and ratios


def test_fixed_coefficient():
    """x - coef z; a constant does not matter."""
    rng = np.random.default_rng(0)
    arms = np.tile([0, 1], 200)
    z = rng.normal(5.0, 1.0, size=400)
    x = 2.0 * z + 0.1 * arms + rng.normal(0, 0.3, size=400)
    test = BestArmTest(2, covariate_coef=2.0).observe(arms, x, covariates=z)
    plain = BestArmTest(2).observe(arms, x - 2.0 * z)
    assert_array_equal(test.evalues_, plain.evalues_)
    assert test.evalues_[1] > 20.0 > BestArmTest(2).observe(arms, x).evalues_[1]


def test_estimated_coefficient():
    """Of earlier rewards only, within arms; the covariate's mean is known."""
    rng = np.random.default_rng(0)
    arms = rng.integers(2, size=400)
    z = rng.normal(size=400)
    x = 2.0 * z + 0.3 * arms + rng.normal(0, 0.3, size=400)
    adjusted = []
    for t in range(400):
        theta = 0.0
        if t >= 30:
            xz = zz = 0.0
            for i in (0, 1):
                k = arms[:t] == i
                xz += np.sum(
                    (x[:t][k] - x[:t][k].mean()) * (z[:t][k] - z[:t][k].mean())
                )
                zz += np.sum((z[:t][k] - z[:t][k].mean()) ** 2)
            theta = xz / zz
        adjusted.append(x[t] - theta * z[t])
    test = BestArmTest(2, covariate_mean=0.0)
    for k in range(0, 400, 50):
        part = slice(k, k + 50)
        test.observe(arms[part], x[part], covariates=z[part])
    plain = BestArmTest(2).observe(arms, adjusted)
    assert_allclose(test.evalues_, plain.evalues_, rtol=1e-8)
    assert_allclose(theta, 2.0, atol=0.1)


def test_ratio_of_sums():
    """The delta method, by hand."""
    rng = np.random.default_rng(0)
    arms = rng.integers(2, size=500)
    views = rng.poisson(5, size=500).astype(float)
    clicks = rng.binomial(views.astype(int), 0.2 + 0.1 * arms).astype(float)
    test = BestArmTest(2, ratio=True)
    for k in range(0, 500, 100):
        part = slice(k, k + 100)
        test.observe(arms[part], clicks[part], denominators=views[part])
    states = []
    for i in (1, 0):
        y, z = clicks[arms == i], views[arms == i]
        r = y.sum() / z.sum()
        states.append((len(y), len(y) * r, np.var((y - r * z) / z.mean(), ddof=1)))
    (n, s, v), (n0, s0, v0) = states
    assert_allclose(test.means_, [s0 / n0, s / n], rtol=1e-10)
    scale = np.sqrt((v + v0) / 2)
    expected = ref.log_evalue(
        (n, s, n * v), (n0, s0, n0 * v0), "normal",
        bets=[b / scale for b in ref.default_bets("normal")],
    )  # fmt: skip
    assert_allclose(np.log(test.evalues_[1]), expected, rtol=1e-6)
    again = BestArmTest.from_dict(json.loads(json.dumps(test.to_dict())))
    for each in (test, again):
        each.observe([0, 1], [1.0, 2.0], denominators=[3.0, 0.0])
    assert_array_equal(test.evalues_, again.evalues_)


def test_adjusted_rewards_go_together():
    test = BestArmTest(2, covariate_coef=1.0)
    before = json.dumps(test.to_dict())
    with pytest.raises(ValueError, match="covariates must be given"):
        test.observe([0], [1.0])
    with pytest.raises(ValueError, match="covariates must be finite"):
        test.observe([0], [1.0], covariates=[np.nan])
    with pytest.raises(ValueError, match="denominators are for"):
        test.observe([0], [1.0], covariates=[1.0], denominators=[1.0])
    assert json.dumps(test.to_dict()) == before
    with pytest.raises(ValueError, match="not negative"):
        BestArmTest(2, ratio=True).observe([0], [1.0], denominators=[-1.0])
    with pytest.raises(ValueError, match="only one of"):
        BestArmTest(2, ratio=True, covariate_coef=1.0).ask()
    for options in (NORMAL, BINARY, {"evidence": "lil", "sigma": 1.0, "max_pulls": 9}):
        with pytest.raises(ValueError, match="sigma=None"):
            BestArmTest(2, covariate_mean=0.0, **options).ask()
    with pytest.raises(ValueError, match="run has no covariates"):
        BestArmTest(2, covariate_coef=1.0, max_pulls=9).run(None)


# Misuse


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rewards": "clicks"}, "rewards must be one of"),
        ({"evidence": "bayes"}, "evidence must be one of"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": [1.0, 1.0]}, "one for each of the 4 arms"),
        ({"sigma": 1.0, "rewards": "binary"}, "sigma is for"),
        ({"rewards": "binary", "bounds": (1, 0)}, "bounds must be"),
        ({"rewards": "binary", "bounds": 3}, "bounds must be"),
        ({"rewards": "binary", "epsilon": 1.0}, "less than 1, the range"),
        ({"rewards": "bounded", "bounds": (0, 5), "epsilon": 5.0}, "less than 5"),
        ({"rewards": "bounded", "bets": [0.5, 1.0]}, r"in \(0, 1\)"),
        ({"sigma": 1.0, "bets": [-1.0]}, "bets must be positive"),
        ({"sigma": 1.0, "weights": [0.5, 0.5]}, "one for each of the 3"),
        ({"sigma": 1.0, "weights": [0.5, 0.5, 0.5]}, "sum of 1"),
        ({"sigma": 1.0, "weights": [1.0, 0.5, -0.5]}, "positive"),
        ({"sampler": "lucb"}, "needs sigma"),
        ({"sigma": 1.0, "epsilon": -0.1}, "epsilon must be"),
        ({"sigma": 1.0, "max_pulls": 3}, "max_pulls must be"),
        ({"evidence": "lil", "max_pulls": 9}, "sigma"),
        ({"evidence": "lil", "sigma": 1.0}, "max_pulls"),
        (
            {"evidence": "lil", "sigma": 1.0, "max_pulls": 9, "rewards": "binary"},
            "rewards is for evidence='eprocess'",
        ),
        (
            {"evidence": "lil", "sigma": 1.0, "max_pulls": 9, "bets": [1.0]},
            "bets is for",
        ),
    ],
)
def test_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        BestArmTest(4, **options).ask()


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 0.2), ("bets", [0.1]), ("weights", [0.9, 0.1])]
)
def test_parameters_cannot_change_under_way(name, value):
    test = BestArmTest(3, sigma=1.0)
    test.observe([0, 1, 2], [0.0, 1.0, 0.0])
    test.set_params(**{name: value})
    for use in (test.ask, lambda: test.observe([0], [0.0]), lambda: test.p_value_):
        with pytest.raises(ValueError, match=f"{name} cannot be changed"):
            use()


@pytest.mark.parametrize("kind", ["binary", "bounded"])
@pytest.mark.parametrize("value", [-0.01, 1.01, np.nan])
def test_rewards_out_of_bounds(kind, value):
    test = BestArmTest(2, rewards=kind)
    test.ask(2)
    before = json.dumps(test.to_dict())
    for use in (test.tell, test.observe):
        with pytest.raises(ValueError, match="rewards must be"):
            use([0, 1], [0.5, value])
        assert json.dumps(test.to_dict()) == before


def test_variances_of_zeros_and_ones():
    """Raise; other numbers that begin with zeros do not."""
    rng = np.random.default_rng(0)
    clicks = (rng.random(200) < 0.1).astype(float)
    arms = np.tile([0, 1], 100)
    test = BestArmTest(2)
    before = json.dumps(test.to_dict())
    with pytest.raises(ValueError, match="rewards are 0 or 1 only"):
        test.observe(arms, clicks)
    assert json.dumps(test.to_dict()) == before
    with pytest.raises(ValueError, match="rewards are 0 or 1 only"):
        for arm, reward in zip(arms, clicks, strict=True):
            test.observe([arm], [reward])
    price = np.where(clicks == 1.0, 37.5, 0.0)
    with pytest.raises(ValueError, match=r"bounds=\(0, 37.5\)"):
        BestArmTest(2).observe(arms, price)
    revenue = np.where(clicks == 1.0, rng.lognormal(size=200), 0.0)
    assert BestArmTest(2).observe(arms, revenue).n_pulls_ == 200
    assert BestArmTest(2, sigma=0.5).observe(arms, clicks).n_pulls_ == 200


def test_binary_rewards_that_are_none():
    """One warning after a hundred; none if any is at an end."""
    rng = np.random.default_rng(0)
    test = BestArmTest(2, rewards="binary")
    with pytest.warns(UserWarning, match="none of the first 100 rewards") as found:
        for k in range(6):
            test.observe(np.tile([0, 1], 20), rng.uniform(0.2, 0.8, size=40))
            assert (len(found) == 1) == (k >= 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BestArmTest(2, rewards="binary").observe(
            np.tile([0, 1], 100), np.r_[1.0, rng.uniform(size=199)]
        )


def test_levels_of_intervals():
    test = BestArmTest(2, sigma=1.0).observe([0, 1], [0.0, 1.0])
    for level in (0.51, 0.95, 0.0, np.nan):
        with pytest.raises(ValueError, match="level, the probability of an error"):
            test.lift_intervals(level)
    with pytest.raises(ValueError, match="confidence_bounds is of evidence='lil'"):
        test.confidence_bounds()


# Reports


def test_report_of_an_experiment():
    test = BestArmTest(["control", "a<b"], rewards="binary")
    assert "not decided" in test.report().title
    test.observe(np.tile([0, 1], 100), np.tile([0.0, 0.0, 0.0, 1.0], 50))
    report = test.report(level=0.001)
    if test.p_value_ > 0.001:
        assert report.summary["expected further rewards"] > 0
    test.observe(np.tile([0, 1], 300), np.tile([0.0, 0.0, 0.0, 1.0], 150))
    report = test.report()
    assert report.title == "a<b may be adopted"
    assert report.rows[1]["e-value"] == test.evalues_[1]
    assert report.rows[1]["lift from"] == test.lift_intervals()[0][1]
    assert "a<b" in str(report) and "a&lt;b" in report._repr_html_()
    assert "may be adopted" in repr(report)
    lil = BestArmTest(3, evidence="lil", sigma=1.0, max_pulls=100)
    lil.observe(np.tile([0, 1, 2], 20), np.tile([0.0, 0.0, 4.0], 20))
    assert lil.report().title == "2 may be adopted"
    assert "asymptotic" in str(BestArmTest(2).report())


def test_expected_further_rewards():
    """About right: those of the same lift, on average."""
    further = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        test = BestArmTest(2, sigma=1.0)
        draw = lambda n, r=rng: (np.tile([0, 1], n), np.tile([0, 0.3], n) +
                                 r.normal(size=2 * n))  # fmt: skip
        test.observe(*draw(60))
        if len(test.adopted(0.05)):
            continue
        told = test.report().summary["expected further rewards"]
        before = test.n_pulls_
        while not len(test.adopted(0.05)):
            test.observe(*draw(5))
        if told is not None:
            further.append((told, test.n_pulls_ - before))
    told, needed = np.median(further, axis=0)
    assert 0.4 < told / needed < 2.5


# Studies


def coin(rate):
    return lambda arm, size, rng: (rng.random(size) < np.asarray(rate)[arm]).astype(
        float
    )


def test_default_study():
    """ADDIS and e-processes; p-values and levels are those of the procedure alone."""
    study = MABFDR(alpha=0.1, rewards="binary", max_pulls=3000, random_state=0)
    rates = [[0.1, 0.3], [0.3, 0.1], [0.1, 0.1, 0.4], [0.2, 0.2]] * 3
    study.run((len(r), coin(r)) for r in rates)
    procedure = ADDIS(0.1)
    for entry, rate in zip(study.history_, rates, strict=True):
        assert entry["level"] == procedure.next_level_
        assert entry["rejected"] == procedure.test(entry["p_value"])
        assert entry["wealth"] == procedure.wealth_
        assert entry["fdp_estimate"] == procedure.fdp_estimate_ <= 0.1
        # It ends at a rejection or at max_pulls only.
        assert entry["rejected"] or entry["n_pulls"] == 3000
        if entry["rejected"]:
            assert entry["recommendation"] == int(np.argmax(rate))
            low, high = entry["lift_interval"]
            assert low < high
    assert sum(e["rejected"] for e in study.history_) >= 5


def test_two_good_arms_do_not_starve_the_control():
    """The default looks for a better arm, not for the best one of two."""
    rates = [0.04, 0.08, 0.082]
    options = {"alpha": 0.1, "rewards": "binary", "max_pulls": 20_000}
    default = MABFDR(random_state=0, **options).run([(3, coin(rates))] * 4)
    lift = MABFDR(sampler="lift", random_state=0, **options)
    assert default.history_ == lift.run([(3, coin(rates))] * 4).history_
    assert sum(entry["rejected"] for entry in default.history_) >= 3
    assert default.begin(2)._settings_.sampler == "lift"
    lil = MABFDR(evidence="lil", sigma=1.0, max_pulls=100)
    assert lil.begin(2)._settings_.sampler == "lucb"


def test_studies_of_e_values():
    study = MABFDR(ELOND(0.1), rewards="binary", max_pulls=3000, random_state=0)
    study.run([(2, coin([0.1, 0.3])), (2, coin([0.3, 0.3])), (2, coin([0.1, 0.3]))])
    procedure = ELOND(0.1)
    for entry in study.history_:
        assert entry["level"] == procedure.next_level_
        assert entry["rejected"] == procedure.test(entry["evalue"])
    assert [e["rejected"] for e in study.history_][::2] == [True, True]
    with pytest.raises(ValueError, match="needs e-values"):
        MABFDR(ELOND(0.1), evidence="lil", sigma=1.0, max_pulls=100).begin(2)


def test_overlapping_experiments():
    """Levels are those of tests that overlap; JSON in between."""
    study = MABFDR(ADDIS(0.1), rewards="binary", max_pulls=500, overlap=True)
    procedure = ADDIS(0.1)
    a, b = study.begin(2), study.begin(3)
    first, second = procedure.begin(), procedure.begin()
    assert [a.delta, b.delta] == [first.level, second.level]
    assert study.open_ is b
    assert list(study.open_experiments_) == [1, 2]
    b.observe(np.tile([0, 1, 2], 100), np.tile([0.0, 0.0, 1.0], 100))
    study = MABFDR.from_dict(json.loads(json.dumps(study.to_dict())))
    b = study.open_experiments_[2]
    assert study.finish(b)
    procedure.finish(second, b.p_value_)
    assert study.next_level_ == procedure.next_level_
    a = study.open_
    study.finish(a)
    procedure.finish(first, a.p_value_)
    assert study.next_level_ == procedure.next_level_
    assert [e["number"] for e in study.history_] == [2, 1]
    with pytest.raises(ValueError, match="memory < 1"):
        MABFDR(
            LORDPlusPlus(0.1, memory=0.9), overlap=True, sigma=1.0, max_pulls=9
        ).begin(2)


def test_experiments_of_their_own():
    study = MABFDR(alpha=0.1, sigma=1.0, max_pulls=100)
    test = study.begin(
        ["a", "b"], rewards="binary", sigma=None, epsilon=0.02, max_pulls=5000
    )
    assert (test.rewards, test.epsilon, test.max_pulls) == ("binary", 0.02, 5000)
    test.observe(["a", "b"] * 200, [0.0, 1.0] * 200)
    assert study.finish(test)
    assert study.history_[0]["recommendation"] == "b"
    json.dumps(study.to_dict())
    with pytest.raises(ValueError, match="may have its own"):
        study.begin(2, delta=0.5)
    with pytest.raises(ValueError, match="max_pulls must be"):
        study.begin(2, max_pulls=None)
    # Nothing has begun.
    assert study.open_ is None
    assert study._procedure_.n_running_ == 0
    study.run([(2, coin([0.1, 0.9]), {"rewards": "binary", "sigma": None})])
    assert len(study.history_) == 2


def test_report_of_a_study():
    study = MABFDR(alpha=0.1, rewards="binary", max_pulls=2000, random_state=0)
    assert study.report().title == "0 discoveries in 0 experiments"
    study.run([(2, coin([0.1, 0.4])), (2, coin([0.4, 0.1]))])
    report = study.report()
    assert report.title == "1 discovery in 2 experiments"
    assert report.summary["procedure"] == "ADDIS"
    assert report.rows[0]["adopted"] == "1" and report.rows[1]["adopted"] == ""
    assert "FDP estimate" in str(report) and "<table>" in report._repr_html_()


# Simulations


@pytest.mark.parametrize("sampler", ["toptwo", "lift", "lucb", "uniform"])
@pytest.mark.parametrize("rewards", ["normal", "bernoulli"])
def test_simulations_are_experiments(sampler, rewards):
    """Of the same law as BestArmTest."""
    means = [0.2, 0.3, 0.8]
    options = {"max_pulls": 3000, "delta": 0.1, "sampler": sampler}
    found = simulate_best_arm_tests(
        [means] * 300, rewards=rewards, random_state=0, **options
    )
    pulls = []
    rng = np.random.default_rng(1)
    for _ in range(60):
        test = BestArmTest(
            3, random_state=int(rng.integers(1e6)), **options,
            **(NORMAL if rewards == "normal" else BINARY),
        )  # fmt: skip
        kind = "normal" if rewards == "normal" else "binary"
        test.run(lambda a, size, g, k=kind: draws_of(k, [means[a]], size, g)[0])
        pulls.append(test.n_pulls_)
    gap = np.mean(pulls) - found["n_pulls"].mean()
    error = np.sqrt(np.var(pulls) / 60 + np.var(found["n_pulls"]) / 300)
    assert abs(gap) < 4.0 * error
    if sampler != "lift":
        assert (found["certified"] == 2).mean() > 0.9


def test_bad_simulations():
    for options, message in (
        ({"until": "bored"}, "until must be"),
        ({"evidence": "lil", "sampler": "toptwo"}, "is for evidence='eprocess'"),
        ({"rewards": "t"}, "rewards must be"),
    ):
        with pytest.raises(ValueError, match=message):
            simulate_best_arm_tests([[0.0, 1.0]], max_pulls=10, **options)


# What a hostile reader found


def test_parts_of_rounds():
    """Asked for one by one, rounds go on where they were."""
    test = BestArmTest(3, sigma=1.0, max_pulls=30, sampler="uniform")
    assert [int(test.ask(1)[0]) for _ in range(9)] == [0, 1, 2] * 3
    assert np.bincount(test.ask(6)).tolist() == [2, 2, 2]
    test = BestArmTest(3, sigma=1.0, sampler="lucb")
    test.observe([0, 1, 2], [0.0, 0.3, 0.5])
    for _ in range(100):
        arm = test.ask(1)
        test.tell(arm, [[0.0, 0.3, 0.5][arm[0]]])
    assert test.counts_.min() >= 20


def test_weights_and_certification():
    """An arm that is certified may be adopted, however little weight it has."""
    for seed in range(20):
        test = BestArmTest(
            3, sigma=1.0, weights=[0.98, 0.02], max_pulls=10**5, random_state=seed
        )
        test.run(lambda arm, size, rng: rng.normal([0, -2, 1][arm], 1, size))
        assert test.is_certified_ and test.recommendation_ == 2
        assert test.adopted(0.05).tolist() == [2]
    report = test.report(level=1e-12)
    assert report.title == "2 is the best arm, and may not be adopted at level 1e-12"


def test_certification_without_weights():
    """The threshold is log(K / delta)."""
    arms, rewards = log_of("normal", [0.0, 0.5, 1.0], 150)
    test = BestArmTest(3, sigma=1.0)
    test.observe(arms, rewards)
    states = states_of("normal", arms, rewards, 3)
    found = [
        ref.log_evalue(states[2], states[0], "normal"),
        ref.log_evalue(states[2], states[1], "normal"),
    ]
    least = min(found)
    for delta, certified in (
        (2.0 * np.exp(-least) * 1.001, True),
        (2.0 * np.exp(-least) * 0.999, False),
    ):
        if 0.0 < delta < 1.0:
            other = BestArmTest(3, sigma=1.0, delta=delta)
            other.ask(300)
            other.tell(arms, rewards)
            assert other.is_certified_ == certified


def test_refused_rewards_leave_nothing():
    """Not even what was seen of them."""
    test = BestArmTest(2)
    test.ask()
    with pytest.raises(ValueError, match="outstanding"):
        test.tell([1], [0.5])
    with pytest.raises(ValueError, match="rewards are 0 or 1 only"):
        test.observe([0, 1] * 50, [0.0, 1.0] * 50)
    test = BestArmTest(2, ratio=True)
    arms = test.ask(4)
    before = json.dumps(test.to_dict())
    with pytest.raises(ValueError, match="rewards over denominators"):
        test.tell(arms, [1, 1e150, 1, 1], denominators=[1, 1e-150, 1, 1])
    assert json.dumps(test.to_dict()) == before
    test = BestArmTest(2, covariate_coef=1e200)
    with pytest.raises(ValueError, match="without what covariates foretell"):
        test.observe([0], [1.0], covariates=[1e150])
    assert test.n_pulls_ == 0


@pytest.mark.parametrize("evidence", ["eprocess", "lil"])
def test_interrupted_rewards(evidence):
    """Counts are those before."""
    import signal

    def interrupt(*args):
        raise KeyboardInterrupt

    test = BestArmTest(50, evidence=evidence, sigma=1.0, max_pulls=10**8).observe(
        np.arange(50), np.zeros(50)
    )
    rng = np.random.default_rng(0)
    arms = rng.integers(50, size=3_000_000)
    rewards = rng.normal(size=len(arms))
    before = json.dumps(test.to_dict())
    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(50):
                test.observe(arms, rewards)
                before = json.dumps(test.to_dict())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    assert json.dumps(test.to_dict()) == before


@pytest.mark.parametrize("seed", range(30))
def test_rewards_at_the_ends_of_bounds(seed):
    low, high = np.round(np.random.default_rng(seed).uniform([-9, 0.1], [0, 9]), 1)
    test = BestArmTest(2, rewards="binary", bounds=(low, high))
    test.observe([0, 1], [low, high])
    assert_allclose(test.means_, [low, high], rtol=1e-12)


def test_draws_that_fail_once():
    """`run` goes on."""
    calls = []

    def draw(arm, size, rng):
        calls.append(arm)
        if len(calls) == 5:
            raise OSError("no connection")
        return rng.normal(size=size)

    test = BestArmTest(2, sigma=1.0, max_pulls=20, random_state=0)
    with pytest.raises(OSError):
        test.run(draw)
    assert test.n_outstanding_ == 0
    assert test.run(draw).n_pulls_ == 20


def test_rewards_that_never_come():
    test = BestArmTest(3, sigma=1.0, max_pulls=6)
    asked = test.ask(6)
    test.withdraw(asked[:4])
    assert test.n_outstanding_ == 2
    with pytest.raises(ValueError, match="withdraw takes arms that were asked for"):
        test.withdraw([asked[0]] * 3)
    assert len(test.ask(10)) == 4


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_states_of_generators(kind):
    rng = np.random.Generator(getattr(np.random, kind)(3))
    test = BestArmTest(2, sigma=1.0, max_pulls=9, random_state=rng)
    again = BestArmTest.from_dict(json.loads(json.dumps(test.to_dict())))
    assert again._generator().random(5).tolist() == rng.random(5).tolist()


def test_parameters_before_the_first_reward():
    """May be set, whatever was looked at."""
    test = BestArmTest(3, sigma=1.0)
    assert not test.done_ and dir(test) and "done_" in dir(test)
    test.set_params(delta=0.1, epsilon=0.5)
    test.observe([0, 1], [0.0, 0.3])
    assert test.recommendation_ == 0
    procedure = LORD(0.05)
    assert procedure.next_level_ < 0.01
    procedure.set_params(alpha=0.5)
    assert procedure.next_level_ > 0.01
    study = MABFDR(sigma=1.0, max_pulls=100)
    assert study.history_ == []
    study.set_params(epsilon=5.0)
    assert study.begin(2).epsilon == 5.0
    # What cannot be is told when it is used.
    assert "ask" in dir(BestArmTest(1)) and "test" in dir(LORD(2.0))


def test_arrays_that_are_changed_in_place():
    sigma = np.array([1.0, 2.0])
    test = BestArmTest(2, sigma=sigma).observe([0, 1], [0.0, 1.0])
    sigma[:] = 5.0
    with pytest.raises(ValueError, match="sigma cannot be changed"):
        test.ask()


def test_other_kinds_of_arms():
    """Objects, pandas' columns, and NumPy's texts."""
    pandas = pytest.importorskip("pandas")
    names = pandas.Index(["a", "b"])
    test = BestArmTest(names, rewards="binary")
    test.observe(pandas.Series(["a", "b", "b"]), pandas.Series([0, 1, 1]))
    test.observe(np.array([0, 1], dtype=object), [0, 1])
    assert test.counts_.tolist() == [2, 3]
    BestArmTest(2, sigma=1.0).observe(np.array([0, 1], dtype=object), [0.0, 1.0])
    for far in (2**70, -(2**70), 2**63):
        with pytest.raises(ValueError, match="arms must be integers in"):
            BestArmTest(2, sigma=1.0).observe([far], [0.0])
    for bad in (["x", "y"], [1j, 2], [None, 1.0], ["1", "2"]):
        with pytest.raises(ValueError, match="rewards must be real numbers"):
            BestArmTest(2, sigma=1.0).observe([0, 1], bad)
    for params, name in (
        ({"bets": "x"}, "bets"), ({"weights": "abc"}, "weights"),
        ({"max_pulls": 10**30}, "max_pulls"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            BestArmTest(3, sigma=1.0, **params).ask()


def test_more_bad_simulations():
    for options, message in (
        ({"sigma": None}, "sigma"), ({"max_pulls": None}, "max_pulls"),
        ({"means": np.zeros((2, 2, 2))}, "means must be of shape"),
        ({"delta": [0.1, 0.1, 0.1]}, "delta must be a number or one for each"),
        ({"delta": "x"}, "delta must be real numbers"),
        ({"evidence": "lil", "until": "rejected"}, "until is for"),
    ):  # fmt: skip
        given = {"means": [[0.0, 1.0]] * 2, "max_pulls": 10, **options}
        with pytest.raises(ValueError, match=message):
            simulate_best_arm_tests(given.pop("means"), **given)
    found = simulate_best_arm_tests(
        [[0.0, 1.0]], max_pulls=10, random_state=np.random.default_rng(0)
    )
    assert found["n_pulls"][0] <= 10
    MABFDR(sigma=[1.0, 1.0, 2.0], max_pulls=50, random_state=np.random.default_rng(0))


@pytest.mark.parametrize("kind", [*KINDS, "asymptotic"])
@given(st.integers(0, 2**31))
@settings(max_examples=12, deadline=None)
def test_p_values_are_running_maxima(kind, seed):
    """Of the e-values after each call, found afresh on a copy; whatever is between."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 8))
    weights = rng.dirichlet(np.ones(n_arms - 1)) + 1e-3
    params = {
        "epsilon": float(rng.choice([0.0, 0.05])),
        "weights": weights / weights.sum() if rng.random() < 0.5 else None,
        **KINDS.get(kind, {}),
    }
    test = BestArmTest(n_arms, **params)
    # The control is poor: evidence grows.
    means = np.r_[0.1, 0.1 + 0.85 * rng.random(n_arms - 1)]
    if kind in ("normal", "asymptotic"):
        means *= 3.0
    shares = rng.dirichlet(np.full(n_arms, 0.7)) + 0.01
    most = np.ones(n_arms)
    for _ in range(25):
        size = int(rng.integers(1, 60 if kind == "asymptotic" else 8))
        arms = rng.choice(n_arms, size=size, p=shares / shares.sum())
        rewards = draws_of("normal" if kind == "asymptotic" else kind, means, size, rng)
        test.observe(arms[:1], rewards[arms[:1], 0])
        if size > 1:
            # All at once, as `tell` does.
            np.add.at(test._outstanding_, arms[1:], 1.0)
            most = np.fmax(most, pickle.loads(pickle.dumps(test)).evalues_)
            test.tell(arms[1:], rewards[arms[1:], np.arange(1, size)])
        most = np.fmax(most, pickle.loads(pickle.dumps(test)).evalues_)
        assert_allclose(test.p_values_[1:], 1.0 / most[1:], rtol=1e-7)
        way = rng.integers(5)
        if way == 0:
            test = BestArmTest.from_dict(json.loads(json.dumps(test.to_dict())))
        elif way == 1:
            _ = test.evalues_
        elif way == 2:
            test = pickle.loads(pickle.dumps(test))
        elif way == 3:
            with pytest.raises(ValueError):
                test.observe([0, n_arms], [0.5, 0.5])
