"""Tests at any time, and procedures for streams of tests."""

from functools import partial

import numpy as np
from scipy.special import ndtr

from guarantees.table import Guarantee, repeat
from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    LORD,
    MABFDR,
    SAFFRON,
    AlphaInvesting,
    AlphaSpending,
    BatchBH,
    BestArmTest,
    LORDPlusPlus,
    LORDPrime,
    lift_interval,
    simulate_best_arm_tests,
)

LEVEL = 0.1

# --------------------------------------------------------------------- rewards and arms

# Rewards of arms whose expectations are what `lifts` says beside the control's.
REWARDS = {
    "normal": ({"sigma": 1.0}, lambda r, lift: r.normal(lift)),
    "signs": ({"sigma": 1.0}, lambda r, lift: (r.random(len(lift)) < 0.5 + lift / 2)
              * 2.0 - 1.0),
    "each sigma": ({"sigma": [1.0, 2.0, 0.5]}, None),
    "half": ({"rewards": "binary"},
             lambda r, lift: (r.random(len(lift)) < 0.5 + lift).astype(float)),
    "two percent": ({"rewards": "binary"},
                    lambda r, lift: (r.random(len(lift)) < 0.02 + lift).astype(float)),
    "beta": ({"rewards": "bounded"},
             lambda r, lift: r.beta(20 * (0.2 + lift), 20 * (0.8 - lift))),
    "bounded, rarely 1": ({"rewards": "bounded"},
                          lambda r, lift: (r.random(len(lift)) < 0.05 + lift) * 1.0),
    "lil": ({"evidence": "lil", "sigma": 1.0, "max_pulls": 10**5},
            lambda r, lift: r.normal(lift)),
}  # fmt: skip


def draw(rng, kind, lift, arms):
    if kind == "each sigma":
        return lift + rng.normal(size=len(arms)) * np.array([1.0, 2.0, 0.5])[arms]
    return REWARDS[kind][1](rng, lift)


def in_turn(rng, n, n_arms):
    return np.arange(n) % n_arms


def at_random(rng, n, n_arms):
    return rng.integers(n_arms, size=n)


def rare_control(rng, n, n_arms):
    arms = 1 + rng.integers(n_arms - 1, size=n)
    arms[::11] = 0
    return arms


def error_law(
    kind, lifts=(0.0, 0.0, 0.0), shares=at_random, n=1000, drift=None, **more
):
    """Is an arm that is not better ever adopted, looked at after each reward?"""
    lifts = np.asarray(lifts)
    null = np.flatnonzero(lifts[1:] <= lifts[0] + more.get("epsilon", 0.0)) + 1

    def once(rng):
        test = BestArmTest(len(lifts), **REWARDS[kind][0], **more)
        arms = shares(rng, n, len(lifts))
        lift = lifts[arms] + (0.0 if drift is None else drift(rng, n))
        test.observe(arms, draw(rng, kind, lift, arms))
        return bool((test.p_values_[null] <= LEVEL).any())

    return repeat(once)


def watcher_law(kind, n=600):
    """Whoever sees the rewards: control while it looks bad, else whatever looks good.

    Stops pulling the control as soon as its mean is below the others'.
    """

    def once(rng):
        test = BestArmTest(3, **REWARDS[kind][0])
        test.observe([0, 1, 2] * 5, draw(rng, kind, np.zeros(15), np.arange(15) % 3))
        for _ in range(n // 15):
            means = test.means_
            lucky = 1 + int(np.argmax(means[1:]))
            arm = lucky if means[0] < means[lucky] else 0
            arms = np.full(15, arm)
            test.observe(arms, draw(rng, kind, np.zeros(15), arms))
        return bool((test.p_values_[1:] <= LEVEL).any())

    return repeat(once)


def sampler_law(sampler, rewards="normal", means=(0.3, 0.3, 0.3, 0.3)):
    """The package's own samplers, which end at a rejection."""

    def law(rng, n):
        found = simulate_best_arm_tests(
            np.tile(means, (n, 1)), max_pulls=1000, delta=LEVEL, sampler=sampler,
            until="rejected", rewards=rewards, random_state=rng,
        )  # fmt: skip
        return found["log_p_value"] <= np.log(LEVEL)

    return law


def opposite_law(n=1000):
    """With "lil", rewards of a round that add up to nothing."""

    def once(rng):
        test = BestArmTest(2, **REWARDS["lil"][0])
        x = rng.normal(size=n // 2)
        test.observe(np.arange(n) % 2, np.column_stack([x, -x]).ravel())
        return bool(test.p_values_[1] <= LEVEL)

    return repeat(once)


P_VALUES = {
    **{
        f"ties, {kind}": error_law(kind)
        for kind in ("normal", "signs", "each sigma", "half", "two percent", "beta",
                     "bounded, rarely 1", "lil")
    },
    "ties, two percent, rare control": error_law("two percent", shares=rare_control),
    "epsilon at its edge": error_law("normal", (0.0, 0.3, 0.3), epsilon=0.3),
    "null arms beside a good one": error_law("normal", (0.0, 0.4, 0.0, 0.0)),
    "drift of all arms": error_law(
        "normal", shares=in_turn, drift=lambda r, n: r.normal(size=n).cumsum() / 10.0
    ),
    "whoever sees the rewards, normal": watcher_law("normal"),
    "whoever sees the rewards, binary": watcher_law("half"),
    "toptwo": sampler_law("toptwo"),
    "lift": sampler_law("lift"),
    "lucb, binary": sampler_law("lucb", "bernoulli"),
    "lil, opposite rewards": opposite_law(),
}  # fmt: skip


def lift_law(kind, lifts, shares=at_random, n=600, looks=6):
    """Is any lift outside of its interval at any of the looks?"""
    lifts = np.asarray(lifts)

    def once(rng):
        test, size = BestArmTest(len(lifts), **REWARDS[kind][0]), n // looks
        for _ in range(looks):
            arms = shares(rng, size, len(lifts))
            test.observe(arms, draw(rng, kind, lifts[arms], arms))
            low, high = test.lift_intervals(LEVEL)
            if (low[1:] > lifts[1:]).any() or (high[1:] < lifts[1:]).any():
                return True
        return False

    return repeat(once)


def single_lift_law(rate, other, n=400):
    """`lift_interval` of two arms, looked at ever more rarely."""
    looks = np.unique(np.geomspace(5, n, 6).astype(int))

    def once(rng):
        x = np.cumsum(rng.random(n) < rate)
        y = np.cumsum(rng.random(n) < other)
        for k in looks:
            low, high = lift_interval((k, x[k - 1]), (k, y[k - 1]), rewards="binary",
                                      level=LEVEL)  # fmt: skip
            if not low <= rate - other <= high:
                return True
        return False

    return repeat(once)


def stopped_evalue_law(kind, until, lifts=(0.0, 0.0, 0.0), n=400, size=10):
    """The largest e-value at the first look where it is `until`, or at the end."""
    lifts = np.asarray(lifts)

    def once(rng):
        test = BestArmTest(len(lifts), **REWARDS[kind][0])
        for _ in range(n // size):
            arms = at_random(rng, size, len(lifts))
            test.observe(arms, draw(rng, kind, lifts[arms], arms))
            e = np.nanmax(test.evalues_)
            if e >= until:
                break
        return e, 1.0

    return repeat(once)


def certified_law(means, epsilon=0.0, rewards="normal", delta=LEVEL, max_pulls=5000):
    means = np.asarray(means, dtype=float)
    value = np.r_[means[0] + epsilon, means[1:]]
    good = value >= value.max() - epsilon
    if epsilon == 0.0 and (means[1:] == means[0]).all():
        # Of ties the control is the one that may be kept.
        good[1:] = False

    def law(rng, n):
        found = simulate_best_arm_tests(
            np.tile(means, (n, 1)), max_pulls=max_pulls, epsilon=epsilon, delta=delta,
            rewards=rewards, random_state=rng,
        )["certified"]  # fmt: skip
        return (found >= 0) & ~good[np.maximum(found, 0)]

    return law


LIMITS = [
    Guarantee(
        "p_value_, adopted() of BestArmTest",
        "an arm that is not better is ever adopted with at most this probability",
        "limits", "frequency", LEVEL, P_VALUES,
    ),
    Guarantee(
        "lift_intervals(), lift_interval", "all lifts are inside at all times",
        "limits", "frequency", LEVEL,
        {
            "normal": lift_law("normal", (0.0, 0.5, 0.0)),
            "binary": lift_law("half", (0.0, 0.2, -0.2)),
            "rare conversions": lift_law("two percent", (0.0, 0.03, 0.0)),
            "beta": lift_law("beta", (0.0, 0.1, -0.1)),
            "lil": lift_law("lil", (0.0, 0.5, 0.0)),
            "rare control": lift_law("half", (0.0, 0.2, 0.0), rare_control),
            "lift_interval, .1 and .1": single_lift_law(0.1, 0.1),
            "lift_interval, .5 and .7": single_lift_law(0.5, 0.7),
        },
    ),
    Guarantee(
        "evalues_", "the mean under the null is at most 1 whenever one stops",
        "limits", "mean", 1.0,
        {
            "normal, stopped at 2": stopped_evalue_law("normal", 2.0),
            "normal, stopped at 10": stopped_evalue_law("normal", 10.0),
            "binary, stopped at 3": stopped_evalue_law("half", 3.0),
            "two percent, stopped at 3": stopped_evalue_law("two percent", 3.0),
            "bounded, stopped at 2": stopped_evalue_law("beta", 2.0),
            "not stopped": stopped_evalue_law("normal", np.inf),
        },
    ),
    Guarantee(
        "certified arm", "is not the best one with at most this probability",
        "limits", "frequency", LEVEL,
        {
            "small gaps": certified_law((0, 0.2, 0.3)),
            "ties": certified_law((0, 0.0, 0.0)),
            "at the edge of epsilon": certified_law((0, 0.31, 0.1), 0.3),
            "many arms": certified_law((0, *[0.4] * 8, 0.5)),
            "binary": certified_law((0.3, 0.4, 0.5), rewards="bernoulli"),
        },
    ),
]  # fmt: skip

# --------------------------------------------------------------------- streams of tests

ALPHA, N_TESTS = 0.2, 100


def uniform(rng, null):
    return rng.random(len(null))


def conservative(rng, null):
    return ndtr(-rng.normal(-1.0, size=len(null)))


def two_values(rng, null):
    """P-values with atoms: 1/100 and 1 only."""
    return np.where(rng.random(len(null)) < 0.01, 0.01, 1.0)


def alternatives(rng, n):
    return ndtr(-rng.normal(3.0, size=n))


def stream(truth, nulls):
    """Return a law of p-values and of which are nulls."""

    def law(rng):
        null = truth(rng)
        return np.where(null, nulls(rng, null), alternatives(rng, len(null))), null

    return law


ALL_NULL = lambda rng: np.ones(N_TESTS, bool)
MIXED = lambda rng: rng.random(N_TESTS) >= 0.3
# Discoveries first, which pay for errors later.
GOOD_START = lambda rng: np.arange(N_TESTS) >= 10
IN_TURN = lambda rng: np.arange(N_TESTS) % 5 > 0
STREAMS = {
    "nulls only": stream(ALL_NULL, uniform),
    "three in ten are true": stream(MIXED, uniform),
    "a good start": stream(GOOD_START, uniform),
    "every fifth": stream(IN_TURN, uniform),
    "conservative nulls": stream(MIXED, conservative),
}
ATOMS = {"p-values of two values": stream(MIXED, two_values)}


def counts(rejected, null):
    return float((rejected & null).sum()), float(rejected.sum())


def fdr_law(make, law):
    def once(rng):
        p, null = law(rng)
        V, R = counts(make().fit(p).rejected_, null)
        return V / max(R, 1.0), ALPHA

    return repeat(once)


def mfdr_law(make, law):
    """E V is at most alpha (E R + 1)."""

    def once(rng):
        p, null = law(rng)
        V, R = counts(make().fit(p).rejected_, null)
        return V, ALPHA * (R + 1.0)

    return repeat(once)


def mfdr_adversary(make, patience=8):
    """Whoever sees the decisions: nulls after discoveries, help after a drought."""

    def once(rng):
        procedure, drought, V, R = make(), 0, 0.0, 0.0
        for _ in range(N_TESTS):
            is_null = drought < patience
            p = rng.random() if is_null else 1e-12
            rejected = procedure.test(p)
            V, R = V + (rejected and is_null), R + rejected
            drought = 0 if rejected else drought + 1
        return V, ALPHA * (R + 1.0)

    return repeat(once)


def overlap_law(make, most=6, share=0.3):
    """Tests that overlap: each ends at a random time, before six others begin."""

    def once(rng):
        procedure, running, V, R = make(), {}, 0.0, 0.0
        null = rng.random(60) >= share
        p = np.where(null, rng.random(60), alternatives(rng, 60))
        for k in range(60 + most):
            if k < 60:
                running[k] = procedure.begin()
            while len(running) > (most - 1 if k < 60 else 0):
                one = list(running)[rng.integers(len(running))]
                rejected = procedure.finish(running.pop(one), p[one])
                V, R = V + (rejected and null[one]), R + rejected
        return V, ALPHA * (R + 1.0)

    return repeat(once)


def batch_law(share, nulls):
    def once(rng):
        procedure, V, R = BatchBH(ALPHA), 0.0, 0.0
        for _ in range(8):
            null = rng.random(15) >= share
            p = np.where(null, nulls(rng, null), alternatives(rng, 15))
            v, r = counts(procedure.test(p), null)
            V, R = V + v, R + r
        return V / max(R, 1.0), ALPHA

    return repeat(once)


def same_p(rng):
    """One uniform p-value, many times over."""
    return np.full(N_TESTS, rng.random()), np.ones(N_TESTS, bool)


def disjoint_p(levels):
    """Nulls of which one at most is rejected, each as often as it may be."""
    ends = np.cumsum(levels)

    def law(rng):
        u = rng.random()
        k = int(np.searchsorted(ends, u))
        p = np.ones(len(levels))
        # Uniform on what the others leave: each p-value is valid by itself.
        p[:] = levels + (1.0 - levels) * rng.random(len(levels))
        if k < len(levels):
            p[k] = u - (ends[k] - levels[k])
        return p, np.ones(len(levels), bool)

    return law


def levels_of(make):
    """The levels of a procedure that has not rejected anything."""
    return make().fit(np.ones(N_TESTS)).levels_


def correlated(rho, share):
    def law(rng):
        null = rng.random(N_TESTS) >= share
        z = np.sqrt(rho) * rng.normal() + np.sqrt(1.0 - rho) * rng.normal(size=N_TESTS)
        return ndtr(-(z + np.where(null, 0.0, 3.0))), null

    return law


def any_error(make, law):
    def once(rng):
        p, null = law(rng)
        return bool((make().fit(p).rejected_ & null).any())

    return repeat(once)


def e_stream(share):
    def law(rng):
        null = rng.random(N_TESTS) >= share
        e = np.where(null, rng.exponential(size=N_TESTS),
                     np.exp(rng.normal(6.0, 2.0, size=N_TESTS)))  # fmt: skip
        return e, null

    return law


def disjoint_e(levels):
    """E-values of which one at most is not 0, and that just large enough."""
    ends = np.cumsum(levels)

    def law(rng):
        e, k = np.zeros(len(levels)), int(np.searchsorted(ends, rng.random()))
        if k < len(levels):
            e[k] = 1.0 / levels[k]
        return e, np.ones(len(levels), bool)

    return law


def same_e(rng):
    """The same e-value many times over, as large as it may be at level alpha / 100."""
    e = 100.0 / ALPHA if rng.random() < ALPHA / 100.0 else 0.0
    return np.full(N_TESTS, e), np.ones(N_TESTS, bool)


FDR = {LORDPrime: {}, LORDPlusPlus: {}, SAFFRON: {}, ADDIS: {}, AlphaInvesting: {},
       LOND: {}}  # fmt: skip
for _rule in FDR:
    _laws = STREAMS if _rule is ADDIS else STREAMS | ATOMS
    FDR[_rule] = {
        name: fdr_law(partial(_rule, ALPHA), law) for name, law in _laws.items()
    }
for _rho in (0.3, 0.9):
    FDR[LOND][f"correlated {_rho:g}, nulls only"] = fdr_law(
        partial(LOND, ALPHA), correlated(_rho, 0.0)
    )
_DEPENDENT = partial(LOND, ALPHA, dependent=True)
_SPEND = partial(AlphaSpending, ALPHA)
_ELOND = partial(ELOND, ALPHA, gamma=np.full(N_TESTS, 1.0 / N_TESTS))


def study_law(make, means, share, n_experiments=6, max_pulls=60, rewards="normal"):
    """Experiments of a control and two arms; a discovery is false if none is better."""

    def once(rng):
        study = make(max_pulls=max_pulls, random_state=int(rng.integers(2**31)))
        better = rng.random(n_experiments) < share
        tasks = []
        for good in better:
            m = np.array([means[0], means[1] if good else means[0], means[2]])
            if rewards == "normal":
                tasks.append((3, lambda a, size, g, m=m: g.normal(m[a], 1.0, size)))
            else:
                tasks.append((3, lambda a, size, g, m=m: (g.random(size) < m[a]) * 1.0))
        study.run(tasks)
        V, R = counts(np.array([e["rejected"] for e in study.history_]), ~better)
        return V / max(R, 1.0), ALPHA

    return repeat(once)


def study(rule, **options):
    return partial(MABFDR, rule(ALPHA), **options)


STUDIES = {
    "ADDIS, ties": study_law(study(ADDIS, sigma=1.0), (0.0, 1.0, 0.0), 0.0),
    "ADDIS, four in ten": study_law(study(ADDIS, sigma=1.0), (0.0, 1.0, 0.0), 0.4),
    "ADDIS, binary ties": study_law(
        study(ADDIS, rewards="binary"), (0.5, 0.9, 0.5), 0.0, rewards="binary"
    ),
    "LORDPlusPlus, four in ten": study_law(
        study(LORDPlusPlus, sigma=1.0), (0.0, 1.0, 0.0), 0.4
    ),
}

AVERAGE = [
    *[
        Guarantee(
            f"{rule.__name__}, FDR", "the mean share of false discoveries is at most",
            "average", "mean", ALPHA, laws, 2.0,
        )
        for rule, laws in FDR.items()
    ],
    *[
        Guarantee(
            f"{rule.__name__}, mFDR", "E V is at most alpha (E R + 1)",
            "average", "mean", ALPHA,
            {
                "nulls only": mfdr_law(partial(rule, ALPHA), STREAMS["nulls only"]),
                "three in ten are true": mfdr_law(
                    partial(rule, ALPHA), STREAMS["three in ten are true"]
                ),
                "a good start": mfdr_law(partial(rule, ALPHA), STREAMS["a good start"]),
                "whoever sees the decisions": mfdr_adversary(partial(rule, ALPHA)),
                "tests that overlap": overlap_law(partial(rule, ALPHA)),
            },
            2.0,
        )
        for rule in (LORD, LORDPrime, LORDPlusPlus, SAFFRON, ADDIS)
    ],
    Guarantee(
        "LOND(dependent=True), FDR", "the same under any dependence",
        "average", "mean", ALPHA,
        {
            "the same p-value": fdr_law(_DEPENDENT, same_p),
            "one error at most": fdr_law(_DEPENDENT, disjoint_p(levels_of(_DEPENDENT))),
            "correlated .5": fdr_law(_DEPENDENT, correlated(0.5, 0.3)),
        },
        2.0,
    ),
    Guarantee(
        "AlphaSpending", "any error, with probability at most alpha",
        "average", "frequency", ALPHA,
        {
            "the same p-value": any_error(_SPEND, same_p),
            "one error at most": any_error(_SPEND, disjoint_p(levels_of(_SPEND))),
            "nulls only": any_error(_SPEND, STREAMS["nulls only"]),
            "every fifth is true": any_error(_SPEND, STREAMS["every fifth"]),
        },
        2.0,
    ),
    Guarantee(
        "ELOND, FDR", "the same of e-values under any dependence",
        "average", "mean", ALPHA,
        {
            "the same e-value": fdr_law(_ELOND, same_e),
            "one error at most": fdr_law(_ELOND, disjoint_e(levels_of(_ELOND))),
            "nulls only": fdr_law(_ELOND, e_stream(0.0)),
            "three in ten are true": fdr_law(partial(ELOND, ALPHA), e_stream(0.3)),
        },
        2.0,
    ),
    Guarantee(
        "BatchBH, FDR", "the mean share of false discoveries is at most",
        "average", "mean", ALPHA,
        {
            "nulls only": batch_law(0.0, uniform),
            "three in ten are true": batch_law(0.3, uniform),
            "conservative nulls": batch_law(0.3, conservative),
        },
        2.0,
    ),
    Guarantee(
        "MABFDR, FDR", "the mean share of false discoveries is at most",
        "average", "mean", ALPHA, STUDIES,
    ),
]  # fmt: skip
