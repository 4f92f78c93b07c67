"""SAFFRON, ADDIS, LOND, ELOND and relatives; overlap, lag, memory, weights."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import eprocess as ref

from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    LORD,
    SAFFRON,
    AlphaInvesting,
    AlphaSpending,
    BatchBH,
    LORDPlusPlus,
    LORDPrime,
    RunningTest,
    Uncorrected,
    online_ebh,
)

STREAM = (1e-4, 0.3, 1e-3, 0.02, 0.9, 1e-6, 0.004, 0.5, 2e-4, 0.05, 1e-5, 0.8)
# With 1 / 2.285765637669 for the sum of j^-1.6, which is 1.2e-8 too large.
PRINTED = {
    "saffron": [
        1.0937254278e-02, 2.1874508557e-02, 2.1874508557e-02, 4.3749017114e-02,
        6.5623525670e-02, 2.1647690314e-02, 4.3522198870e-02, 6.5396707427e-02,
        6.5396707427e-02, 8.7271215984e-02, 1.0914572454e-01, 1.3102023310e-01,
    ],
    "addis": [
        5.4686271392e-03, 1.0937254278e-02, 3.6079483856e-03, 1.4545202664e-02,
        1.4545202664e-02, 1.4545202664e-02, 2.5482456942e-02, 3.6419711221e-02,
        1.2709726228e-02, 2.3646980507e-02, 2.3646980507e-02, 3.4584234785e-02,
    ],
    "lond": [
        5.4815442267e-03, 2.3841251492e-03, 2.0306083350e-03, 2.5330951641e-03,
        2.1475397947e-03, 1.8577841795e-03, 2.1794116684e-03, 1.9441504129e-03,
        1.7539331137e-03, 1.9964246591e-03, 1.8322045352e-03, 2.0312046079e-03,
    ],
}  # fmt: skip
DISCOVERIES = {
    "saffron": [1, 3, 4, 6, 7, 9, 10, 11],
    "addis": [1, 3, 6, 7, 9, 11],
    "lond": [1, 3, 6, 9, 11],
}
RULES = {"saffron": SAFFRON, "addis": ADDIS, "lond": LOND, "lordpp": LORDPlusPlus}
each_rule = pytest.mark.parametrize("rule", RULES)
ALL = [
    LORD(0.1), LORDPrime(0.1), LORDPlusPlus(0.1), AlphaSpending(0.1), SAFFRON(0.1),
    ADDIS(0.1), AlphaInvesting(0.1), LOND(0.1), LOND(0.1, dependent=True),
    ADDIS(0.1, gamma="log", horizon=400), SAFFRON(0.1, gamma=[0.5, 0.3, 0.1]),
    LORDPlusPlus(0.1, gamma="power"), LORDPlusPlus(0.1, memory=0.9),
    ADDIS(0.1, lag=3), LORD(0.1, lag=2), LORDPlusPlus(0.1, lag=1), ELOND(0.1),
]  # fmt: skip
each = pytest.mark.parametrize("item", ALL, ids=repr)


def values_of(item, n=300, seed=0):
    """P-values, or e-values for ELOND."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.uniform(size=n) < 0.2, 1e-8, rng.uniform(size=n))
    return 1.0 / p if isinstance(item, ELOND) else p


def argument(item):
    return "e_value" if isinstance(item, ELOND) else "p_value"


@pytest.mark.parametrize("rule", PRINTED)
def test_printed_levels(rule):
    found = RULES[rule](0.1).fit(STREAM)
    assert_array_equal(np.flatnonzero(found.rejected_) + 1, DISCOVERIES[rule])
    assert_allclose(found.levels_, PRINTED[rule], rtol=2e-8)


def test_the_normaliser():
    """The sum of j^-1.6 is zeta(1.6), 2.28576565680...; the printed one is off."""
    level = SAFFRON(0.1, w0=0.05).next_level_
    j = np.arange(1, 10**6, dtype=float)
    total = (j**-1.6).sum() + (1e6 - 0.5) ** -0.6 / 0.6
    assert_allclose(0.025 / level, total, rtol=1e-9)
    assert abs(total / 2.285765637669 - 1.0) > 1e-8


def test_printed_elond_and_ebh():
    e = 1.0 / np.array(STREAM)
    found = ELOND(0.1).fit(e)
    assert_array_equal(found.rejected_, LOND(0.1).fit(STREAM).rejected_)
    assert_array_equal(found.levels_, LOND(0.1).fit(STREAM).levels_)
    at = online_ebh(np.log(e), 0.1)
    assert_array_equal(np.flatnonzero(at) + 1, [1, 3, 6, 9, 11])


@each_rule
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_levels_by_their_sums(rule, p_values, easy):
    p_values = [p**5 if easy else p for p in p_values]
    rejected, levels = ref.play(rule, p_values, 0.2)
    found = RULES[rule](0.2).fit(p_values)
    assert_allclose(found.levels_, levels, rtol=1e-9)
    assert_array_equal(found.rejected_, rejected)


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("saffron", {"lam": 0.3, "w0": 0.02}),
        ("addis", {"lam": 0.1, "tau": 0.7}),
        ("addis", {"lam": 0.45, "w0": 0.15}),
    ],
)
def test_options(rule, options):
    rng = np.random.default_rng(0)
    p = np.where(rng.uniform(size=400) < 0.3, 1e-6, rng.uniform(size=400))
    rejected, levels = ref.play(rule, p.tolist(), 0.2, **options)
    found = RULES[rule](0.2, **options).fit(p)
    assert_allclose(found.levels_, levels, rtol=1e-9)
    assert_array_equal(found.rejected_, rejected)


@pytest.mark.parametrize("rule", [SAFFRON, ADDIS, AlphaInvesting])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0, "droughts"])
def test_grouped_sums(rule, share):
    """Never above the exact level, and within 1e-6 of it; many at one position."""
    rng = np.random.default_rng(0)
    n = 6000
    p = rng.uniform(size=n)
    if share == "droughts":
        p[rng.uniform(size=n) < 0.3 * (np.arange(n) // 1000 % 3 == 0)] = 0.0
    else:
        p[rng.uniform(size=n) < share] = 0.0
    found = rule(0.1).fit(p)
    gamma = np.array([ref.power_gamma(j) for j in range(1, n + 2)])
    exact = rule(0.1, gamma=gamma).fit(p)
    assert_array_equal(found.rejected_, exact.rejected_)
    ratio = found.levels_ / exact.levels_
    assert ratio.max() <= 1.0 + 1e-12
    assert ratio.min() >= 1.0 - 1e-6
    assert len(found._later_.recent) <= 129


@pytest.mark.parametrize("rule", [SAFFRON, ADDIS, AlphaInvesting])
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=80), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_estimated_share_of_false_discoveries(rule, p_values, easy):
    """At most alpha after each test: the wealth is never negative."""
    p_values = [p**5 if easy else p for p in p_values]
    procedure = rule(0.2)
    for p in p_values:
        procedure.test(p)
        assert procedure.wealth_ >= -1e-12
        assert procedure.fdp_estimate_ <= 0.2 + 1e-12


# Overlapping tests, lag


def events(rng, n, most):
    """Tests that begin in order and end in any."""
    running, found, started = [], [], 0
    while started < n or running:
        if started < n and (not running or len(running) < rng.integers(1, most + 1)):
            found.append(("start", started))
            running.append(started)
            started += 1
        else:
            k = running.pop(rng.integers(len(running)))
            found.append(("end", k))
    return found


@each_rule
@pytest.mark.parametrize("seed", range(12))
def test_overlapping_tests_by_their_sums(rule, seed):
    rng = np.random.default_rng(seed)
    p = np.where(rng.uniform(size=60) < 0.4, 1e-5, rng.uniform(size=60))
    plan = events(rng, 60, 7)
    script = [(kind, k, *([p[k]] if kind == "end" else [])) for kind, k in plan]
    rejected, levels = ref.play_async(rule, script, 0.2)
    procedure, running = RULES[rule](0.2), {}
    for kind, k in plan:
        if kind == "start":
            running[k] = procedure.begin()
            assert running[k].number == k + 1
            assert_allclose(running[k].level, levels[k], rtol=1e-9)
        else:
            assert procedure.finish(running[k], p[k]) == rejected[k]
    assert procedure.n_running_ == 0


@each_rule
@pytest.mark.parametrize("lag", [0, 1, 4])
def test_lag_by_its_sums(rule, lag):
    rng = np.random.default_rng(lag)
    p = np.where(rng.uniform(size=80) < 0.4, 1e-5, rng.uniform(size=80))
    rejected, levels = ref.play_lag(rule, p.tolist(), 0.2, lag)
    found = RULES[rule](0.2, lag=lag).fit(p)
    assert_allclose(found.levels_, levels, rtol=1e-9)
    assert_array_equal(found.rejected_, rejected)


@each
def test_begun_and_ended_at_once(item):
    """Is the same as one after the other, bit for bit."""
    values = values_of(item)
    whole, steps = type(item)(**item.get_params()), type(item)(**item.get_params())
    whole.fit(values)
    for value, level, rejected in zip(
        values.tolist(), whole.levels_, whole.rejected_, strict=True
    ):
        running = steps.begin()
        assert running.level == level
        assert steps.finish(running, value) == rejected
    assert steps.next_level_ == whole.next_level_


@pytest.mark.parametrize("item", [i for i in ALL if getattr(i, "memory", 1) == 1])
@pytest.mark.parametrize("seed", range(4))
def test_budget_of_overlapping_tests(item, seed):
    """However tests overlap, they never cost more than there is."""
    rng = np.random.default_rng(seed)
    procedure = type(item)(**item.get_params())
    values, running = values_of(item, 200, seed), {}
    for kind, k in events(rng, 200, 20):
        if kind == "start":
            running[k] = procedure.begin()
        else:
            procedure.finish(running.pop(k), values[k])
        assert procedure.wealth_ >= -1e-12
        # Rejections among tests within the lag are not known to levels.
        assert procedure.fdp_estimate_ <= 0.1 + 1e-12 or isinstance(item, ELOND | LOND)


@each
@pytest.mark.parametrize("way", ["test", "overlap"])
def test_state_survives(item, way):
    """Through JSON between any two steps; levels are the same bits."""
    values = values_of(item, 120)
    if way == "overlap" and getattr(item, "memory", 1.0) < 1.0:
        with pytest.raises(ValueError, match="do not overlap"):
            other = type(item)(**item.get_params())
            other.begin()
            other.begin()
        return
    plain, other = type(item)(**item.get_params()), type(item)(**item.get_params())
    again = lambda x: type(item).from_dict(json.loads(json.dumps(x.to_dict())))
    if way == "test":
        for k, value in enumerate(values.tolist()):
            other = again(other) if k % 7 == 0 else other
            assert other.next_level_ == plain.next_level_
            assert other.test(value) == plain.test(value)
            assert other.wealth_ == plain.wealth_
        return
    running = {}
    for step, (kind, k) in enumerate(events(np.random.default_rng(0), 120, 9)):
        other = again(other) if step % 5 == 0 else other
        if kind == "start":
            running[k] = plain.begin()
            assert other.begin() == running[k]
        else:
            value = float(values[k])
            assert other.finish(k + 1, value) == plain.finish(running[k], value)
        assert other.wealth_ == plain.wealth_


def test_tests_that_are_not_running():
    procedure = ADDIS(0.1)
    running = procedure.begin()
    before = json.dumps(procedure.to_dict())
    for wrong in (2, 0, None, RunningTest(5, 0.1), True):
        with pytest.raises(ValueError, match="has not begun, or has ended"):
            procedure.finish(wrong, 0.1)
    with pytest.raises(ValueError, match="needs p_value, or rejected"):
        procedure.finish(running)
    with pytest.raises(ValueError, match="needs p_value as well"):
        procedure.finish(running, rejected=True)
    with pytest.raises(ValueError, match="p_value must be in"):
        procedure.finish(running, np.nan)
    assert json.dumps(procedure.to_dict()) == before
    procedure.finish(running, 0.1)
    with pytest.raises(ValueError, match="has ended"):
        procedure.finish(running, 0.1)


# Weights, memory


@pytest.mark.parametrize("item", [i for i in ALL if not i.get_params().get("lag")])
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    st.lists(st.floats(0.0, 50.0), min_size=40, max_size=40),
)
@settings(max_examples=15, deadline=None)
def test_weights_keep_the_budget(item, p_values, weights):
    """Any weights: what is spent is there, and a weight of 1 changes nothing."""
    values = np.array(p_values) ** 4
    if isinstance(item, ELOND):
        values = 1.0 / np.maximum(values, 1e-300)
    weights = np.array(weights[: len(values)])
    procedure = type(item)(**item.get_params())
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        plain = procedure.next_level_
        running = procedure.begin(weight)
        assert 0.0 <= running.level <= weight * plain * (1.0 + 1e-12)
        procedure.finish(running, value)
        assert procedure.wealth_ >= -1e-9
    same = type(item)(**item.get_params()).fit(values, weights=np.ones(len(values)))
    assert_array_equal(
        same.levels_, type(item)(**item.get_params()).fit(values).levels_
    )


def test_bad_weights():
    with pytest.raises(ValueError, match="weight must be"):
        LORD(0.1).test(0.5, weight=-1.0)
    with pytest.raises(ValueError, match="weights must be"):
        LORD(0.1).fit([0.5, 0.1], weights=[1.0])


def memory_levels(p_values, alpha, w0, d):
    """LORD++ with decaying memory, from its definition."""
    taus, levels = [], []
    for t in range(1, len(p_values) + 1):
        level = w0 * ref.log_gamma(t)
        if taus:
            level *= d ** (t - taus[0])
        for q, tau in enumerate(taus):
            pay = alpha - w0 if q == 0 else alpha
            level += pay * d ** (t - tau) * ref.log_gamma(t - tau)
        levels.append(level)
        if p_values[t - 1] <= level:
            taus.append(t)
    return levels


@pytest.mark.parametrize("d", [0.5, 0.9, 0.99])
def test_decaying_memory(d):
    """Levels of the definition; decayed costs never exceed alpha times max(R, 1)."""
    p = values_of(LORD())[:200]
    found = LORDPlusPlus(0.1, memory=d).fit(p)
    expected = memory_levels(p, 0.1, 0.05, d)
    assert_allclose(found.levels_, expected, rtol=1e-9, atol=1e-17)
    cost = found_r = 0.0
    for level, rejected, wealth in zip(
        found.levels_, found.rejected_, found.wealth_path_, strict=True
    ):
        cost, found_r = d * cost + level, d * found_r + rejected
        assert cost <= 0.1 * max(found_r, 1.0) + 1e-12
        assert wealth >= -1e-12
    assert_allclose(LORDPlusPlus(0.1, memory=1.0).fit(p).levels_[:50],
                    LORDPlusPlus(0.1).fit(p).levels_[:50], rtol=0)  # fmt: skip


def test_a_good_start_is_forgotten():
    """It does not pay for false discoveries long after (piggybacking)."""
    rng = np.random.default_rng(0)
    recent = {}
    for memory in (1.0, 0.98):
        false = 0
        for _ in range(40):
            p = np.r_[np.zeros(300), rng.uniform(size=300)]
            rejected = LORDPlusPlus(0.2, memory=memory).fit(p).rejected_
            false += rejected[400:].sum()
        recent[memory] = false / 40
    assert recent[1.0] > 1.0
    assert recent[0.98] < 0.2 * recent[1.0]


def test_exact_error_of_decaying_memory():
    """All decisions on ten nulls: E V <= alpha E max(R, 1), each with its weight."""
    d, alpha, n = 0.7, 0.3, 10
    gamma = 0.5 ** np.arange(1, 41)
    total = [0.0, 0.0]

    def walk(procedure, j, weight, V):
        if j == n:
            total[0] += weight * V
            total[1] += weight * max(V, 1.0)
            return
        level, state = procedure.next_level_, procedure.to_dict()
        for rejected, share in ((True, level), (False, 1.0 - level)):
            other = LORDPlusPlus.from_dict(state).update(rejected)
            walk(other, j + 1, weight * share, d * V + rejected)

    walk(LORDPlusPlus(alpha, memory=d, gamma=gamma), 0, 1.0, 0.0)
    assert 0.0 < total[0] <= alpha * total[1]


# Others


def test_alpha_investing_is_saffron_with_its_own_levels():
    p = values_of(LORD())
    found = AlphaInvesting(0.2).fit(p)
    for t in range(0, 300, 29):
        past = [(j, found.rejected_[j]) for j in range(t)]
        n_used = sum(not r for _, r in past)
        x, R = 0.1 * ref.power_gamma(n_used + 1), 0
        for k, r in past:
            if r:
                after = sum(not s for j, s in past if j > k)
                x += (0.1 if R == 0 else 0.2) * ref.power_gamma(after + 1)
                R += 1
        assert_allclose(found.levels_[t], x / (1.0 + x), rtol=1e-9)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30), st.floats(0.01, 0.5))
@settings(max_examples=100, deadline=None)
def test_online_ebh_by_its_definition(e_values, alpha):
    with np.errstate(divide="ignore"):
        log_e = np.log(e_values)
    found = online_ebh(log_e, alpha)
    for t, numbers in enumerate(ref.online_ebh(log_e.tolist(), alpha), start=1):
        assert_array_equal(
            np.flatnonzero((found > 0) & (found <= t)) + 1, sorted(numbers)
        )


def batches(rng, n_batches, share):
    sizes = rng.integers(1, 30, size=n_batches)
    return [
        np.where(rng.uniform(size=n) < share, 1e-4 * rng.uniform(size=n),
                 rng.uniform(size=n))
        for n in sizes
    ]  # fmt: skip


def test_batches():
    """One batch of all is Benjamini and Hochberg's rule at gamma_1 alpha."""
    p = batches(np.random.default_rng(0), 1, 0.5)[0]
    found = BatchBH(0.1, gamma=[1.0]).test(p)
    order, n = np.sort(p), len(p)
    k = max((i for i in range(1, n + 1) if order[i - 1] <= 0.1 * i / n), default=0)
    assert found.sum() == k > 0
    with pytest.raises(ValueError, match="at least one"):
        BatchBH(0.1).test([])
    with pytest.raises(ValueError, match="without NaN"):
        BatchBH(0.1).test([np.nan])
    with pytest.raises(ValueError, match="alpha"):
        BatchBH(1.0).test([0.5])


def test_state_of_batches():
    plain, other = BatchBH(0.1), BatchBH(0.1)
    for p in batches(np.random.default_rng(1), 10, 0.3):
        other = BatchBH.from_dict(json.loads(json.dumps(other.to_dict())))
        assert_array_equal(plain.test(p), other.test(p))
        assert plain.level_ == other.level_
    assert plain.n_batches_ == 10
    assert plain.reset().n_rejections_ == 0


def test_uncorrected():
    found = Uncorrected(0.1).fit([0.05, 0.2, 0.1])
    assert_array_equal(found.rejected_, [True, False, True])
    assert_array_equal(found.levels_, [0.1] * 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SAFFRON(0.1, lam=0.0), "lam must be in"),
        (lambda: SAFFRON(0.1, lam=1.0), "lam must be in"),
        (lambda: ADDIS(0.1, lam=0.5), "lam must be less than tau"),
        (lambda: ADDIS(0.1, tau=1.0), "tau must be in"),
        (lambda: ADDIS(0.1, w0=0.1), "w0 must be in"),
        (lambda: SAFFRON(0.1, gamma=[0.1, 0.5]), "gamma must not increase"),
        (lambda: LOND(0.1, gamma=[0.1, 0.5]), "gamma must not increase"),
        (lambda: LOND(0.1, dependent=1), "dependent"),
        (lambda: LORDPlusPlus(0.1, memory=0.0), "memory must be in"),
        (lambda: LORDPlusPlus(0.1, memory=0.9, lag=1), "without lag"),
        (lambda: ADDIS(0.1, lag=-1), "lag must be"),
        (lambda: ADDIS(0.1, lag=1.5), "lag must be"),
        (lambda: AlphaInvesting(0.0), "alpha must be"),
        (lambda: ELOND(0.1, horizon=0), "horizon"),
        (lambda: online_ebh([np.nan], 0.1), None),
    ],
)
def test_bad_parameters(make, message):
    if message is None:
        with pytest.raises(ValueError, match="log_e"):
            make()
        return
    with pytest.raises(ValueError, match=message):
        _ = make().next_level_


@pytest.mark.parametrize("e", [-1.0, np.nan, None, "3"])
def test_e_values_that_are_none(e):
    procedure = ELOND(0.1)
    with pytest.raises(ValueError, match="e_value must be"):
        procedure.test(e)
    assert procedure.n_tests_ == 0
    assert ELOND(0.1).test(np.inf)


@pytest.mark.parametrize("e", [-1.0, np.nan, "3"])
def test_e_values_beside_decisions_of_others(e):
    """They are checked although the decision is all that counts."""
    procedure = ELOND(0.1, lag=1)
    running = procedure.begin()
    before = json.dumps(procedure.to_dict())
    with pytest.raises(ValueError, match="e_value must be"):
        procedure.update(True, e)
    with pytest.raises(ValueError, match="e_value must be"):
        procedure.finish(running, e, rejected=True)
    assert json.dumps(procedure.to_dict()) == before


def test_infinite_e_values_are_written_down():
    """JSON has no infinity; what is pending knows its decision."""
    procedure = ELOND(0.1, lag=2)
    assert procedure.test(np.inf)
    text = json.dumps(procedure.to_dict(), allow_nan=False)
    again = ELOND.from_dict(json.loads(text))
    for each in (procedure, again):
        each.test(1.0)
        each.test(1.0)
        assert each.n_rejections_ == 1
    assert again.next_level_ == procedure.next_level_


def test_decisions_need_their_p_values():
    for rule in (SAFFRON, ADDIS):
        with pytest.raises(ValueError, match="needs p_value as well"):
            rule(0.1).update(True)
        told, tested = rule(0.1), rule(0.1)
        for p in (1e-4, 0.3, 0.9, 1e-3):
            told.update(tested.test(p), p)
            assert told.next_level_ == tested.next_level_


# False discoveries


def conservative(rng, shape, share):
    """P-values of normal tests; nulls at N(-1, 1)."""
    from scipy.special import ndtr

    null = rng.uniform(size=shape) >= share
    z = rng.normal(np.where(null, -1.0, 3.0))
    return ndtr(-z), null


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("kind", ["uniform", "conservative"])
@pytest.mark.parametrize("rule", [SAFFRON, ADDIS, AlphaInvesting, LOND, ELOND])
def test_false_discoveries(rule, kind, share):
    """FDR at most alpha."""
    alpha, n_runs, n_tests = 0.2, 300, 200
    rng = np.random.default_rng(0)
    fdp = np.empty(n_runs)
    for run in range(n_runs):
        p, null = conservative(rng, n_tests, share)
        if kind == "uniform":
            p = np.where(null, rng.uniform(size=n_tests), p)
        values = p
        if rule is ELOND:
            # Exponentials of means 1 under the null.
            values = np.where(null, rng.exponential(size=n_tests), 1.0 / p)
        rejected = rule(alpha).fit(values).rejected_
        fdp[run] = (rejected & null).sum() / max(rejected.sum(), 1)
    assert fdp.mean() <= alpha + 3.0 * fdp.std() / np.sqrt(n_runs)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [SAFFRON, ADDIS, LORDPlusPlus, LORD, LORDPrime])
def test_false_discoveries_of_overlapping_tests(rule):
    """mFDR at most alpha, up to nine tests at once."""
    alpha, n_runs, n_tests = 0.2, 200, 150
    rng = np.random.default_rng(0)
    V, R = np.empty(n_runs), np.empty(n_runs)
    for run in range(n_runs):
        p, null = conservative(rng, n_tests, 0.3)
        p = np.where(null, rng.uniform(size=n_tests), p)
        procedure, running = rule(alpha), {}
        rejected = np.zeros(n_tests, dtype=bool)
        for kind, k in events(rng, n_tests, 9):
            if kind == "start":
                running[k] = procedure.begin()
            else:
                rejected[k] = procedure.finish(running[k], p[k])
        V[run], R[run] = (rejected & null).sum(), rejected.sum()
    excess = V - alpha * (R + 1.0)
    assert excess.mean() <= 3.0 * excess.std() / np.sqrt(n_runs)
    assert R.mean() > 10.0


@pytest.mark.slow
def test_any_dependence():
    """The same e-value many times over: ELOND holds where LOND of p-values does not."""
    alpha, n_runs = 0.2, 3000
    rng = np.random.default_rng(0)
    any_rejected = 0
    for _ in range(n_runs):
        u = rng.uniform()
        # E e = 1, and as large as an e-value can be at one point.
        e = np.full(50, 5.0 / alpha if u < alpha / 5.0 else 0.0)
        any_rejected += ELOND(alpha, gamma=np.full(50, 0.02)).fit(e).rejected_.any()
    assert any_rejected / n_runs <= alpha + 3 * np.sqrt(alpha / n_runs)


@pytest.mark.slow
def test_false_discoveries_of_batches():
    alpha, n_runs = 0.2, 400
    rng = np.random.default_rng(0)
    fdp = np.empty(n_runs)
    for run in range(n_runs):
        procedure, V, R = BatchBH(alpha), 0, 0
        for _ in range(8):
            p, null = conservative(rng, 15, 0.3)
            p = np.where(null, rng.uniform(size=15), p)
            rejected = procedure.test(p)
            V, R = V + (rejected & null).sum(), R + rejected.sum()
        fdp[run] = V / max(R, 1)
    assert fdp.mean() <= alpha + 3.0 * fdp.std() / np.sqrt(n_runs)


# What a hostile reader found


def test_levels_do_not_depend_on_looks():
    """Also where it turns out later that tests do not count."""
    levels = []
    for look in (False, True):
        procedure = SAFFRON(0.1, gamma=[0.4, 0.2, 0.1, 0.1])
        procedure.test(1e-9)
        procedure.test(1e-9)
        running = [procedure.begin() for _ in range(6)]
        if look:
            _ = procedure.next_level_
        for test in running:
            procedure.finish(test, 0.3)
        levels.append(procedure.next_level_)
    assert levels[0] == levels[1]
    # f (w0 gamma_1 + (alpha - w0) gamma_1 + alpha gamma_1): nothing counts.
    assert_allclose(levels[0], 0.5 * (0.05 * 0.4 + 0.05 * 0.4 + 0.1 * 0.4))


@pytest.mark.parametrize("rule", [SAFFRON, ADDIS])
def test_a_test_that_never_ends(rule):
    """Others go on, by the sums of the definition."""
    p = values_of(LORD(), 120)
    script = [("start", -1)]
    for k, value in enumerate(p.tolist()):
        script += [("start", k), ("end", k, value)]
    name = {SAFFRON: "saffron", ADDIS: "addis"}[rule]
    _, levels = ref.play_async(name, script, 0.2)
    procedure = rule(0.2)
    procedure.begin()
    for k, value in enumerate(p.tolist()):
        running = procedure.begin()
        assert_allclose(running.level, levels[k], rtol=1e-9)
        procedure.finish(running, value)


def test_failures_leave_nothing():
    """A warning that is an error, weights that cannot be."""
    import warnings

    procedure = LORD(0.1, w0=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="w0"):
                procedure.test(0.5)
    procedure = ADDIS(0.1)
    procedure.test(1e-5)
    before = json.dumps(procedure.to_dict())
    with pytest.raises(ValueError, match="weights must be numbers"):
        procedure.fit([0.1, 0.2], weights=[1.0, np.inf])
    assert json.dumps(procedure.to_dict()) == before
    assert LORDPlusPlus(0.1, memory=1.0 - 1e-12).next_level_ > 0.0


def test_numbers_of_other_types():
    """Are doubles from then on."""
    p = np.float32(0.05)
    assert Uncorrected(0.05).test(p) == Uncorrected(0.05).fit([p]).rejected_[0]
    procedure = LORD(0.1, lag=2)
    procedure.test(np.float32(0.3))
    procedure.begin(weight=np.float32(0.5))
    json.dumps(procedure.to_dict())
    for weight in (True, "1", None, 10**400, np.inf):
        with pytest.raises(ValueError, match="weight must be"):
            procedure.begin(weight=weight)
    for use in (
        lambda: ADDIS(0.1).fit(["a"]), lambda: ADDIS(0.1, gamma=["a"]).next_level_,
        lambda: BatchBH(0.1).test(["a"]), lambda: online_ebh(["a"], 0.1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must be real numbers"):
            use()
    other = ADDIS(0.1).begin()
    mine = ADDIS(0.2)
    mine.begin()
    with pytest.raises(ValueError, match="of another procedure"):
        mine.finish(other, 0.1)
    assert_array_equal(online_ebh([np.inf, np.inf], 0.1, gamma=[1.0]), [1, 0])


@pytest.mark.parametrize("gamma", ["log", "power"])
@pytest.mark.parametrize("horizon", [1, 7, 2**20, 3 * 2**20])
def test_sums_up_to_a_horizon(gamma, horizon):
    from skbounds.sequential._sequences import Gamma

    found = Gamma(gamma, horizon)
    total = found._plain(np.arange(1, horizon + 1)).sum() * found.scale
    assert_allclose(total, 1.0, rtol=1e-12)
    assert Gamma(gamma, 10**15)[1] > Gamma(gamma, None)[1]
