"""A machine of the best-arm test, beside its e-processes by their definition."""

import copy
import json
import pickle
from math import fsum, log
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from numpy.testing import assert_allclose, assert_array_equal
from reference import eprocess as ref
from reference import sequential as thesis
from sklearn.base import clone

from skbounds.sequential import BestArmTest
from skbounds.sequential._engines import EvidenceEngine, LILEngine

# Looks of which p-values are computed again from the definition.
MOST_LOOKS = 16
NAMES = ["control", "a", "b", "c"]
SHARED_OUT = {2: [[1.0]], 3: [[0.5, 0.5], [0.9, 0.1]], 4: [[0.2, 0.3, 0.5]]}
BAD_REWARDS = [np.nan, np.inf, 1e151, "x", None, 1j]


@st.composite
def tests(draw):
    """Parameters of a test, and what rewards are multiplied by."""
    n_arms = draw(st.integers(2, 4))
    evidence = draw(st.sampled_from(["eprocess"] * 4 + ["lil"]))
    given = {"delta": draw(st.sampled_from([0.05, 0.5, 1e-9, 0.999]))}
    given["epsilon"] = draw(st.sampled_from([0.0, 0.0, 0.1]))
    if draw(st.integers(0, 2)) == 0:
        given["max_pulls"] = draw(st.sampled_from([n_arms, 20, 10**6]))
    unit = draw(st.sampled_from([1.0, 1.0, 1.0, 1e-100, 1e100]))
    if evidence == "lil":
        given |= {"evidence": "lil", "sigma": unit}
        given.setdefault("max_pulls", 10**6)
        samplers = [None, "lucb", "uniform", "toptwo"]
    else:
        samplers = [None, "toptwo", "lift", "lucb", "uniform"]
        kind = draw(st.sampled_from(["normal", "binary", "bounded"]))
        given["rewards"] = kind
        if kind == "normal":
            sigma = draw(st.sampled_from(["one", "each", None]))
            if sigma == "one":
                given["sigma"] = unit
            elif sigma == "each":
                given["sigma"] = [unit * (1.0 + 0.5 * i) for i in range(n_arms)]
            else:
                samplers.remove("lucb")
                unit = 1.0
                given |= draw(
                    st.sampled_from(
                        [
                            {},
                            {"ratio": True},
                            {"covariate_coef": 0.5},
                            {"covariate_mean": 0.0},
                        ]
                    )
                )
        else:
            unit = draw(st.sampled_from([1.0, 1.0, 10.0]))
            if unit == 10.0:
                given["bounds"] = (-3.0, 7.0)
        if draw(st.integers(0, 3)) == 0:
            bets = [0.1, 0.2, 0.4, 0.8]
            scaled = kind == "normal" and given.get("sigma") is not None
            given["bets"] = [bet / unit for bet in bets] if scaled else bets
        if draw(st.integers(0, 3)) == 0:
            given["weights"] = draw(st.sampled_from(SHARED_OUT[n_arms]))
    given["epsilon"] *= unit
    given["sampler"] = draw(st.sampled_from(samplers))
    named = draw(st.booleans())
    return BestArmTest(NAMES[:n_arms] if named else n_arms, **given), unit


def written(test):
    """The state as JSON, which knows neither nan nor inf."""
    return json.dumps(test.to_dict(), allow_nan=False)


class BestArmMachine(RuleBasedStateMachine):
    """A test, a twin that is told one by one and never written down, and its log."""

    @initialize(given=tests(), checked=st.integers(0, 2))
    def begin_test(self, given, checked):
        self.test, self.unit = given
        self.twin = clone(self.test)
        self.checked = checked == 0
        params = self.test.get_params()
        n_arms = params["n_arms"]
        self.n_arms = n_arms if isinstance(n_arms, int) else len(n_arms)
        self.params, self.lil = params, params["evidence"] == "lil"
        self.kind = params["rewards"]
        self.estimated = not self.lil and self.kind == "normal"
        self.estimated &= params["sigma"] is None
        self.alike = params["covariate_coef"] is not None
        self.extra = None
        if params["ratio"]:
            self.extra = "denominators"
        elif self.alike or params["covariate_mean"] is not None:
            self.extra = "covariates"
        # Arms and rewards as they were told, what came with them, and the numbers of
        # rewards at each look.
        self.arms, self.rewards, self.others, self.looks = [], [], [], []
        self.outstanding = np.zeros(self.n_arms, dtype=int)
        self.asked = None
        self.p_values = np.ones(self.n_arms - 1)
        self.adopted = set()
        self.ended = False

    # Arms and rewards

    def label(self, arms):
        names = self.params["n_arms"]
        return arms if isinstance(names, int) else [names[i] for i in arms]

    def numbers(self, labels):
        names = self.params["n_arms"]
        if isinstance(names, int):
            return [int(i) for i in labels]
        return [names.index(label) for label in labels]

    def draw_rewards(self, data, n):
        """Rewards of the test's kind, often the same ones."""
        if self.estimated:
            # Two values only are refused.
            seed = data.draw(st.integers(0, 2**16))
            return np.random.default_rng(seed).normal(size=n).tolist()
        if self.lil or self.kind == "normal":
            value = st.sampled_from([0.0, 1.0, -1.0, 2.0]) | st.floats(-4.0, 4.0)
            return [self.unit * x for x in data.draw(lists(value, n))]
        value = st.sampled_from([0.0, 1.0, 0.0, 1.0, 0.5]) | st.floats(0.0, 1.0)
        low, high = self.params["bounds"]
        x = data.draw(lists(value, n))
        return [min(max(low + (high - low) * y, low), high) for y in x]

    def draw_others(self, data, n):
        if self.extra is None:
            return [None] * n
        seed = data.draw(st.integers(0, 2**16))
        found = np.random.default_rng(seed).exponential(size=n) + 0.1
        return found.tolist()

    def given(self, others):
        return {} if self.extra is None else {self.extra: others}

    def log(self, arms, rewards, others, each):
        """Keep what was told."""
        for arm, reward, other in zip(arms, rewards, others, strict=True):
            self.arms.append(arm)
            self.rewards.append(reward)
            self.others.append(other)
            if each:
                self.looks.append(len(self.arms))
        if not each:
            self.looks.append(len(self.arms))

    # What is told

    @precondition(lambda self: self.asked is None)
    @rule(data=st.data(), n=st.integers(1, 6), array=st.booleans())
    def observe(self, data, n, array):
        arms = data.draw(lists(st.integers(0, self.n_arms - 1), n))
        self.take_log(
            arms, self.draw_rewards(data, n), self.draw_others(data, n), array
        )

    @precondition(lambda self: self.asked is None and len(self.arms) < 900)
    @rule(seed=st.integers(0, 2**16), lift=st.sampled_from([0.0, 1.0]))
    def observe_many(self, seed, lift):
        rng = np.random.default_rng(seed)
        n = 80 * self.n_arms
        arms = rng.integers(self.n_arms, size=n)
        if self.estimated or self.lil or self.kind == "normal":
            rewards = self.unit * (rng.normal(size=n) + lift * arms)
        else:
            low, high = self.params["bounds"]
            share = (0.2 + 0.2 * lift * arms) > rng.random(n)
            rewards = np.where(share, high, low)
        others = (rng.exponential(size=n) + 0.1).tolist()
        if self.extra is None:
            others = [None] * n
        self.take_log(arms.tolist(), rewards.tolist(), others, True)

    def take_log(self, arms, rewards, others, array):
        labels = self.label(arms)
        if array:
            labels = np.array(labels)
        self.test.observe(labels, rewards, **self.given(others))
        for k in range(len(arms)):
            one = self.label(arms[k : k + 1])
            other = self.given(others[k : k + 1])
            self.twin.observe(one, rewards[k : k + 1], **other)
        self.log(arms, rewards, others, each=True)

    @rule(size=st.none() | st.integers(1, 7))
    def ask(self, size):
        if self.lil:
            size = None
        if self.test.done_:
            self.refuse(lambda: self.test.ask(size), "has ended")
            return
        most = self.params["max_pulls"]
        left = np.inf if most is None else most
        left -= len(self.arms) + self.outstanding.sum()
        if not self.lil and left < 1:
            self.refuse(lambda: self.test.ask(size), "are asked for")
            return
        labels = self.test.ask(size)
        assert_array_equal(self.twin.ask(size), labels)
        arms = self.numbers(labels)
        assert len(arms) >= 1
        if self.lil:
            assert self.asked is None or self.asked == arms
            self.asked = arms
            return
        assert len(arms) <= (size or self.n_arms) and len(arms) <= left
        if self.params["sampler"] in (None, "toptwo", "lift"):
            assert len(arms) == min(size or 1, left)
        if self.params["sampler"] in (None, "toptwo") and not self.estimated:
            self.check_top_two(arms)
        np.add.at(self.outstanding, arms, 1)

    def check_top_two(self, arms):
        """Each arm is the definition's, or as good."""
        states, counts = self.states(), self.counts() + self.outstanding
        for arm in arms:
            assert arm in self.top_two(states, counts)
            counts[arm] += 1

    def top_two(self, states, counts):
        if not self.counts().all():
            # Nothing is known yet of some arms.
            return {int(np.argmin(counts))}
        epsilon = self.epsilon()
        values = [
            s[1] / s[0] + (epsilon if i == 0 else 0.0) for i, s in enumerate(states)
        ]
        near = lambda x, y: x == y or abs(x - y) <= 1e-9 * max(abs(x), abs(y))
        size = max(map(abs, values))
        found = set()
        for h in range(self.n_arms):
            if max(values) - values[h] > 1e-12 * size:
                continue
            scores = {}
            for j in range(self.n_arms):
                if j != h:
                    scores[j] = log(counts[j]) + self.screen(states, h, j)
            least = min(scores.values())
            for j, score in scores.items():
                if near(score, least) or score - least < 1e-9:
                    found.add(j if counts[j] < counts[h] else h)
        return found

    def screen(self, states, h, j):
        """The most that any bets could make of two arms."""
        sigmas, shift = self.sigmas(), ref.shift(h, j, self.epsilon())
        if self.kind == "bounded":
            return ref.bounded_screen(states[h], states[j], shift)
        pair = (sigmas[h], sigmas[j])
        return ref.glr(states[h], states[j], self.kind, pair, shift)

    @precondition(lambda self: self.asked is not None or self.outstanding.any())
    @rule(data=st.data(), shuffled=st.booleans())
    def tell(self, data, shuffled):
        if self.lil:
            arms = list(self.asked)
        else:
            waiting = np.repeat(np.arange(self.n_arms), self.outstanding).tolist()
            n = data.draw(st.integers(1, len(waiting)))
            arms = data.draw(st.permutations(waiting))[:n]
        if shuffled:
            arms = arms[::-1]
        rewards = self.draw_rewards(data, len(arms))
        others = self.draw_others(data, len(arms))
        for one in (self.test, self.twin):
            one.tell(self.label(arms), rewards, **self.given(others))
        self.log(arms, rewards, others, each=False)
        if self.lil:
            self.asked = None
        else:
            np.subtract.at(self.outstanding, arms, 1)

    @precondition(lambda self: self.outstanding.any())
    @rule(data=st.data())
    def withdraw(self, data):
        waiting = np.repeat(np.arange(self.n_arms), self.outstanding).tolist()
        n = data.draw(st.integers(0, len(waiting)))
        arms = waiting[:n]
        for one in (self.test, self.twin):
            one.withdraw(np.array(self.label(arms), dtype=None if n else int))
        np.subtract.at(self.outstanding, arms, 1)

    @precondition(
        lambda self: (
            self.params["max_pulls"] is not None
            and self.params["sampler"] in ("toptwo", "lift")
            and self.extra is None
            and self.asked is None
            and not self.lil
            and not self.outstanding.any()
        )
    )
    @rule(seed=st.integers(0, 2**16), most=st.integers(1, 15))
    def run(self, seed, most):
        """Draws that are interrupted after a while."""
        rng, drawn = np.random.default_rng(seed), []

        def draw(label, size, _):
            if len(drawn) == most:
                raise KeyboardInterrupt
            arm = self.numbers([label])[0]
            value = rng.random() + (0.5 * arm if self.kind == "normal" else 0.0)
            low, high = self.params["bounds"]
            reward = self.unit * value
            if self.kind != "normal":
                reward = min(low + (high - low) * value, high)
            drawn.append((arm, reward))
            return [reward]

        try:
            self.test.run(draw)
        except KeyboardInterrupt:
            assert len(drawn) == most
        for arm, reward in drawn:
            assert self.twin.ask().tolist() == self.label([arm])
            self.twin.tell(self.label([arm]), [reward])
            self.log([arm], [reward], [None], each=True)

    # Copies, and looks

    @rule(way=st.sampled_from(["json", "pickle", "deepcopy", "clone"]))
    def replace(self, way):
        if way == "json":
            text = written(self.test)
            self.test = BestArmTest.from_dict(json.loads(text))
            assert written(self.test) == text
        elif way == "pickle":
            self.test = pickle.loads(pickle.dumps(self.test))
        elif way == "deepcopy":
            self.test = copy.deepcopy(self.test)
        else:
            fresh = clone(self.test)
            assert fresh.n_pulls_ == 0 and not fresh.done_

    @rule(level=st.sampled_from([0.05, 0.5, 1e-12]))
    def look(self, level):
        """Whatever is read, nothing changes."""
        before = written(self.test)
        self.test.report(level)
        self.test.lift_intervals(level)
        self.test.rejected(level)
        self.test.recommendation_  # noqa: B018
        if self.lil:
            self.test.confidence_bounds()
        else:
            self.test.evalues_  # noqa: B018
            self.test.global_evalue_  # noqa: B018
        repr(self.test)
        assert written(self.test) == before

    # What is refused

    def refuse(self, call, message, error=ValueError):
        before = written(self.test)
        with pytest.raises(error, match=message):
            call()
        assert written(self.test) == before

    @precondition(lambda self: self.asked is None)
    @rule(data=st.data(), bad=st.sampled_from(BAD_REWARDS), n=st.integers(1, 4))
    def refuse_rewards(self, data, bad, n):
        rewards = self.draw_rewards(data, n)
        rewards[data.draw(st.integers(0, n - 1))] = bad
        given = self.given([1.0] * n)
        arms = self.label([i % self.n_arms for i in range(n)])
        self.refuse(lambda: self.test.observe(arms, rewards, **given), "rewards must")
        if self.kind != "normal":
            bad = [np.nextafter(self.params["bounds"][1], np.inf)] * n
            self.refuse(lambda: self.test.observe(arms, bad), "within bounds")

    @rule(bad=st.sampled_from([-1, 4, 1.0, "nobody", None, True, [0, 1], 2**70]))
    def refuse_arms(self, bad):
        given = self.given([1.0])
        call = lambda: self.test.observe([bad], [0.5], **given)
        self.refuse(call, "arms must be|arms and rewards must be|were asked for")
        self.refuse(lambda: self.test.observe([], [], **self.given([])), "same length")

    @precondition(lambda self: not self.lil)
    @rule(data=st.data())
    def refuse_what_was_not_asked(self, data):
        arm = data.draw(st.integers(0, self.n_arms - 1))
        arms = self.label([arm] * (self.outstanding[arm] + 1))
        rewards = self.draw_rewards(data, len(arms))
        given = self.given([1.0] * len(arms))
        message = "are outstanding"
        self.refuse(lambda: self.test.tell(arms, rewards, **given), message)
        self.refuse(lambda: self.test.withdraw(arms), message)

    @precondition(lambda self: self.lil)
    @rule()
    def refuse_other_rounds(self):
        arms = self.label([0, 1, 0])
        self.refuse(lambda: self.test.tell(arms, [0.5] * 3), "tell takes the arms")
        if self.asked is not None:
            self.refuse(lambda: self.test.observe(arms, [0.5] * 3), "were asked for")

    @precondition(lambda self: self.extra is not None)
    @rule(bad=st.sampled_from([[np.nan], [1.0, 2.0], ["x"], None, [1e151], [[1.0]]]))
    def refuse_others(self, bad):
        arm = self.label([0])
        call = lambda: self.test.observe(arm, [0.5], **self.given(bad))
        self.refuse(call, f"{self.extra} must be")

    @precondition(lambda self: not self.lil and self.arms)
    @rule(
        change=st.sampled_from(
            [("delta", 0.3), ("epsilon", 7.0), ("n_arms", 9), ("bets", [0.3])]
        )
    )
    def refuse_changes(self, change):
        name, value = change
        before, kept = written(self.test), self.test.get_params()[name]
        self.test.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name} cannot be changed"):
            self.test.p_value_  # noqa: B018
        with pytest.raises(ValueError, match=f"{name} cannot be changed"):
            self.test.observe(self.label([0]), [0.5], **self.given([1.0]))
        self.test.set_params(**{name: kept})
        assert written(self.test) == before

    @precondition(lambda self: self.asked is None)
    @rule(data=st.data(), before=st.booleans(), n=st.integers(1, 5))
    def interrupt(self, data, before, n):
        """Whenever the core is interrupted, all rewards are as if they never came."""
        arms = data.draw(lists(st.integers(0, self.n_arms - 1), n))
        rewards, others = self.draw_rewards(data, n), self.draw_others(data, n)
        kind = LILEngine if self.lil else EvidenceEngine
        name = "look_at" if self.extra == "denominators" else "replay"
        plain = getattr(kind, name)

        def interrupted(*args):
            if not before:
                plain(*args)
            raise KeyboardInterrupt

        with patch.object(kind, name, interrupted):
            call = lambda: self.test.observe(
                self.label(arms), rewards, **self.given(others)
            )
            self.refuse(call, None, KeyboardInterrupt)

    # The definition

    def counts(self):
        return np.bincount(np.array(self.arms, dtype=int), minlength=self.n_arms)

    def width(self):
        if self.lil or self.kind == "normal":
            return 1.0
        low, high = self.params["bounds"]
        return high - low

    def epsilon(self):
        return self.params["epsilon"] / self.width()

    def sigmas(self):
        sigma = self.params["sigma"]
        return (
            [1.0] * self.n_arms if sigma is None else ref.arm_sigmas(sigma, self.n_arms)
        )

    def rewards_of(self, arm, n=None):
        """Rewards in the units of the definition, as far as the first n were told."""
        n = len(self.arms) if n is None else n
        found = [
            self.rewards[k] - (self.params["covariate_coef"] or 0.0)
            * (self.others[k] if self.alike else 0.0)
            for k in range(n) if self.arms[k] == arm
        ]  # fmt: skip
        if self.lil or self.kind == "normal":
            return found
        low, high = self.params["bounds"]
        return [min(max((x - low) / (high - low), 0.0), 1.0) for x in found]

    def states(self, n=None):
        found = [self.rewards_of(i, n) for i in range(self.n_arms)]
        if self.kind == "bounded":
            return [ref.bounded_state(x) for x in found]
        return [(len(x), fsum(x)) for x in found]

    def parts_of_ratio(self, arm):
        """Rewards with the mean and the variance of the delta method."""
        own = np.array(self.arms, dtype=int) == arm
        if not own.any():
            return []
        y, z = np.array(self.rewards)[own], np.array(self.others)[own]
        r = y.sum() / z.sum()
        return (r + (y - r * z) / z.mean()).tolist()

    def log_evalues(self, n=None, epsilon=None):
        """Logarithms of the arms' own e-values after n rewards."""
        epsilon = self.epsilon() if epsilon is None else epsilon
        bets, most = self.params["bets"], self.params["max_pulls"]
        if self.estimated:
            parts = self.parts_of_ratio if self.params["ratio"] else self.rewards_of
            rewards = [parts(i) for i in range(self.n_arms)]
            return [
                ref.asymptotic_log_evalue(x, rewards[0], epsilon, 100, bets, most)
                for x in rewards[1:]
            ]
        states, sigmas = self.states(n), self.sigmas()
        return [
            ref.log_evalue(
                states[i], states[0], self.kind, (sigmas[i], sigmas[0]), epsilon, bets,
                most,
            )
            for i in range(1, self.n_arms)
        ]  # fmt: skip

    @precondition(lambda self: self.checked and not self.lil)
    @rule()
    def evidence(self):
        """E-values as of now, by their definition."""
        if self.params["covariate_mean"] is not None:
            return
        own = self.log_evalues()
        expected = np.array(ref.adjusted_log(own, self.params["weights"]))
        with np.errstate(divide="ignore"):
            found = np.log(self.test.evalues_[1:])
        few = expected < 600.0
        assert_allclose(found[few], expected[few], rtol=1e-7, atol=1e-8)
        # The largest so far.
        assert (np.log(self.test.p_values_[1:])[few] <= -expected[few] + 1e-7).all()

    @precondition(lambda self: self.checked and not self.lil and self.arms)
    @rule(level=st.sampled_from([0.05, 0.5]))
    def intervals(self, level):
        """At their ends the evidence is what the level asks for."""
        if self.estimated:
            return
        states, sigmas = self.states(), self.sigmas()
        threshold = log(2.0 * (self.n_arms - 1) / level)
        lower, upper = self.test.lift_intervals(level)
        unit = self.width()
        for i in range(1, self.n_arms):
            for end, one, other, sign in (
                (lower[i], i, 0, 1.0),
                (upper[i], 0, i, -1.0),
            ):
                d = sign * end / unit
                if not np.isfinite(d):
                    assert states[i][0] == 0 or states[0][0] == 0
                    continue
                step = 1e-6 * (max(sigmas) if self.kind == "normal" else 1.0)
                step = max(step, 1e-6 * abs(d))
                pair = (sigmas[one], sigmas[other])
                more = (self.params["bets"], self.params["max_pulls"])
                value = lambda d, one=one, other=other, pair=pair, more=more: (
                    ref.log_evalue(
                        states[one], states[other], self.kind, pair, d, *more
                    )
                )
                inside = self.kind == "normal" or abs(d) < 1.0 - 2.0 * step
                if inside:
                    assert value(d - step) >= threshold - 1e-6
                    assert value(d + step) <= threshold + 1e-6

    def check_path(self):
        """P-values and certified arms after each look, by their definition."""
        path, certified = [], None
        until_certified = self.params["sampler"] != "lift"
        unweighted = self.params["weights"] is None
        for n in self.looks:
            path.append(self.log_evalues(n))
            if until_certified and unweighted and certified is None:
                certified = ref.certified(
                    self.states(n), self.params["delta"], self.kind, self.sigmas(),
                    self.epsilon(), self.params["bets"], self.params["max_pulls"],
                )  # fmt: skip
        expected = ref.log_p_values(path, self.params["weights"])
        with np.errstate(divide="ignore"):
            found = np.log(self.test.p_values_[1:])
        few = np.array(expected) > -600.0
        assert_allclose(found[few], np.array(expected)[few], rtol=1e-7, atol=1e-8)
        if unweighted:
            assert self.test.is_certified_ == (certified is not None)
        if certified is not None:
            assert self.numbers([self.test.recommendation_]) == [certified]

    def check_thesis(self):
        """The same with the radius."""
        sigma, K = self.params["sigma"], self.n_arms - 1
        best, own = 0.0, [0.0] * K
        for n in self.looks:
            states = self.states(n)
            counts = [s[0] for s in states]
            means = [s[1] / max(s[0], 1) for s in states]
            epsilon = self.params["epsilon"]
            best = min(best, thesis.log_pvalue(means, counts, sigma, epsilon))
            for i in range(1, K + 1):
                gap = means[i] - means[0] - epsilon
                value = thesis.arm_log_pvalue(gap, counts[i], counts[0], K, sigma)
                own[i - 1] = min(own[i - 1], value)
        assert_allclose(self.test.log_p_value_, best, rtol=1e-8, atol=1e-8)
        with np.errstate(divide="ignore"):
            found = np.log(self.test.p_values_[1:])
        few = np.array(own) > -600.0
        assert_allclose(found[few], np.array(own)[few], rtol=1e-8, atol=1e-8)

    # What holds at all times

    @invariant()
    def same_bits(self):
        one, other = self.test, self.twin
        assert one.log_p_value_ == other.log_p_value_
        assert_array_equal(one.p_values_, other.p_values_)
        assert_array_equal(one.means_, other.means_)
        assert one.done_ == other.done_
        assert one.is_certified_ == other.is_certified_
        if not self.lil:
            assert_array_equal(one.evalues_, other.evalues_)

    @invariant()
    def sums(self):
        counts = self.counts()
        assert_array_equal(self.test.counts_, counts)
        assert self.test.n_pulls_ == len(self.arms)
        waiting = self.outstanding.sum() if self.asked is None else len(self.asked)
        assert self.test.n_outstanding_ == waiting
        if self.extra is None:
            for i in range(self.n_arms):
                own = np.array(self.arms, dtype=int) == i
                told = np.array(self.rewards)[own].tolist()
                if not told:
                    assert np.isnan(self.test.means_[i])
                    continue
                size = max(map(abs, told))
                mean = fsum(told) / len(told)
                size = max(size, self.width() if self.width() > 1.0 else 0.0)
                assert_allclose(self.test.means_[i], mean, atol=1e-12 * size, rtol=0)

    @invariant()
    def p_values_never_rise(self):
        now = self.test.p_values_[1:]
        assert (now <= self.p_values).all() and (now >= 0.0).all()
        self.p_values = now
        adopted = set(self.test.adopted(0.05).tolist())
        assert adopted >= self.adopted
        self.adopted = adopted
        assert self.test.p_value_ <= now.min()
        assert bool(adopted) == bool(now.min() <= 0.05)

    @invariant()
    def what_has_ended_stays_so(self):
        assert self.test.done_ or not self.ended
        self.ended = self.test.done_

    @invariant()
    def lifts_contain_the_estimate(self):
        lower, upper = self.test.lift_intervals(0.5)
        assert (lower[1:] <= upper[1:]).all()
        gap = (self.test.means_ - self.test.means_[0])[1:]
        tried = np.isfinite(gap)
        slack = 1e-9 * np.abs(gap[tried]) + 1e-9 * self.unit
        assert (lower[1:][tried] <= gap[tried] + slack).all()
        assert (gap[tried] - slack <= upper[1:][tried]).all()

    def teardown(self):
        if not hasattr(self, "test") or not self.arms or not self.checked:
            return
        if len(self.looks) <= MOST_LOOKS and not self.estimated:
            (self.check_thesis if self.lil else self.check_path)()
        if self.kind == "bounded" or self.params["covariate_mean"] is not None:
            return
        # The order of rewards does not matter, but to the p-values.
        fresh = clone(self.test)
        fresh.observe(
            self.label(self.arms[::-1]), self.rewards[::-1],
            **self.given(self.others[::-1]),
        )  # fmt: skip
        assert_array_equal(fresh.counts_, self.test.counts_)
        if not self.lil:
            with np.errstate(divide="ignore"):
                found, expected = np.log(fresh.evalues_), np.log(self.test.evalues_)
            few = expected < 600.0
            assert_allclose(found[few], expected[few], rtol=1e-7, atol=1e-8)


def lists(values, n):
    """Lists of a given length."""
    return st.lists(values, min_size=n, max_size=n)
