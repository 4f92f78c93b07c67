"""Machines of the online procedures, beside a ledger of all tests."""

import copy
import json
import pickle

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
from reference.procedures import Ledger
from sklearn.base import clone

from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    LORD,
    SAFFRON,
    AlphaInvesting,
    AlphaSpending,
    LORDPlusPlus,
    LORDPrime,
    RunningTest,
    Uncorrected,
)

KINDS = {
    kind.__name__: kind
    for kind in (
        ADDIS, ELOND, LOND, LORD, SAFFRON, AlphaInvesting, AlphaSpending, LORDPlusPlus,
        LORDPrime, Uncorrected,
    )
}  # fmt: skip
ADAPTIVE = ("SAFFRON", "ADDIS", "AlphaInvesting")
# What the levels of grouped sums may be below the exact ones.
GROUPED = 1e-6
# Rounding of sums of costs.
ROUNDING = 1e-13
GAMMAS = ["log", "power", [0.5, 0.25, 0.125, 0.0625], [0.9, 0.1], [0.2] * 5]


@st.composite
def procedures(draw):
    """A procedure with parameters of its own."""
    name = draw(st.sampled_from(sorted(KINDS)))
    alpha = draw(st.sampled_from([0.05, 0.1, 0.5, 0.9, 1e-6]))
    if name in ("AlphaSpending", "Uncorrected"):
        return KINDS[name](alpha)
    options = {}
    if draw(st.booleans()):
        options["gamma"] = draw(st.sampled_from(GAMMAS))
    if draw(st.integers(0, 3)) == 0:
        options["horizon"] = draw(st.sampled_from([1, 3, 10, 50]))
    if draw(st.integers(0, 2)) == 0:
        options["lag"] = draw(st.integers(1, 4))
    takes = KINDS[name]._get_param_names()
    if "w0" in takes and draw(st.booleans()):
        options["w0"] = alpha * draw(st.sampled_from([0.1, 0.5, 0.99]))
    if name == "SAFFRON" and draw(st.booleans()):
        options["lam"] = draw(st.sampled_from([0.01, 0.25, 0.9]))
    if name == "ADDIS" and draw(st.booleans()):
        options["tau"] = draw(st.sampled_from([0.3, 0.5, 0.99]))
        options["lam"] = options["tau"] * draw(st.sampled_from([0.01, 0.5, 0.99]))
    if name == "LORDPlusPlus" and "lag" not in options and draw(st.booleans()):
        options["memory"] = draw(st.sampled_from([0.5, 0.9, 0.999]))
    if name == "LOND" and draw(st.booleans()):
        options["dependent"] = True
    return KINDS[name](alpha, **options)


# "level", "above" and "below" are relative to the next level.
P_VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 0, 1, 1e-300, 5e-324, "level", "above", "below"]),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e-3),
    st.floats(0.0, 1.0, width=32).map(np.float32),
)
WEIGHTS = st.one_of(
    st.just(1.0),
    st.just(1.0),
    st.sampled_from([0.0, 0, 1, 2, 0.5, 1e100, 1e-300, np.float32(3.0), np.int64(2)]),
    st.floats(0.0, 10.0),
)
BAD_VALUES = (
    np.nan, -1e-9, -1, 1.0 + 1e-9, np.inf, -np.inf, "0.1", None, True, 1j, [0.1],
    np.array([0.1]),
)  # fmt: skip
BAD_WEIGHTS = (-1.0, np.nan, np.inf, 1e101, "1", None, True, [1.0], 10**400)


def written(procedure):
    """The state as JSON, which knows neither nan nor inf."""
    return json.dumps(procedure.to_dict(), allow_nan=False)


def state_of(procedure):
    """All that a procedure knows, for comparisons bit by bit."""
    return written(procedure), sorted(vars(procedure))


class ProcedureMachine(RuleBasedStateMachine):
    """One procedure, a twin that is never written down, and the ledger."""

    @initialize(procedure=procedures())
    def begin_procedure(self, procedure):
        self.procedure, self.twin = procedure, clone(procedure)
        self.name = type(procedure).__name__
        self.new_ledger()

    def new_ledger(self):
        self.ledger = Ledger(self.name, **self.procedure.get_params())
        # What fit is to find: values and weights of tests that came one by one.
        self.simple, self.values, self.weights = True, [], []
        self.running = {}

    # What is tested

    def value_of(self, p, level):
        """A p-value, or an e-value; words are relative to the level."""
        if isinstance(p, str):
            level = float(level)
            step = {"level": None, "above": np.inf, "below": -np.inf}[p]
            near = level if self.name != "ELOND" else 1.0 / level if level else np.inf
            p = near if step is None else np.nextafter(near, step)
            return max(float(p), 0.0) if self.name == "ELOND" else min(max(p, 0.0), 1.0)
        if self.name != "ELOND":
            return p
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.float64(1.0) / p)

    def decision(self, value, level):
        if self.name == "ELOND":
            return level > 0.0 and value >= 1.0 / float(level)
        return level > 0.0 and value <= level

    def overlaps_with_memory(self):
        return self.ledger.memory < 1.0 and bool(self.running)

    def check_level(self, level, weight=1.0):
        """A level that was handed out is that of the ledger."""
        exact = self.ledger.level(float(weight))
        size = max(self.ledger.earned(), self.ledger.alpha)
        few = len(self.ledger.kappas) <= 128
        slack = 1e-10 if few else GROUPED
        assert level <= exact * (1.0 + 1e-11) + ROUNDING * size
        assert level >= exact * (1.0 - slack) - ROUNDING * size

    # Tests one after the other

    @precondition(lambda self: not self.overlaps_with_memory())
    @rule(p=P_VALUES, weight=WEIGHTS)
    def test(self, p, weight):
        self.ledger.weighted |= weight != 1.0
        level = self.next_level(weight)
        value = self.value_of(p, level)
        found = [one.test(value, weight) for one in (self.procedure, self.twin)]
        assert found[0] is found[1] is bool(self.decision(float(value), level))
        number = self.ledger.begin(level)
        self.ledger.end(number, found[0], float(value))
        self.values.append(float(value))
        self.weights.append(float(weight))

    def next_level(self, weight):
        """The level of the next test, of a copy; checked."""
        level = copy.deepcopy(self.procedure).begin(weight).level
        self.check_level(level, weight)
        return level

    @precondition(lambda self: not self.overlaps_with_memory())
    @rule(n=st.sampled_from([5, 40, 150]), every=st.integers(1, 3))
    def test_many(self, n, every):
        if len(self.ledger.levels) > 300:
            return
        values = np.where(np.arange(n) % every == 0, 0.0, 0.4)
        if self.name == "ELOND":
            values = np.where(values == 0.0, np.inf, 1.0)
        for value in values.tolist():
            level = self.procedure.next_level_
            found = [one.test(value) for one in (self.procedure, self.twin)]
            assert found[0] == found[1] == self.decision(value, level)
            self.ledger.end(self.ledger.begin(level), found[0], value)
            self.values.append(value)
            self.weights.append(1.0)

    @precondition(lambda self: not self.overlaps_with_memory())
    @rule(rejected=st.booleans(), p=st.floats(0.0, 1.0), numpy=st.booleans())
    def update(self, rejected, p, numpy):
        level = self.procedure.next_level_
        for one in (self.procedure, self.twin):
            one.update(np.bool_(rejected) if numpy else rejected, p)
        self.ledger.end(self.ledger.begin(level), rejected, p)
        self.simple = False

    # Tests that overlap

    @precondition(lambda self: not self.overlaps_with_memory())
    @rule(weight=WEIGHTS)
    def begin(self, weight):
        self.ledger.weighted |= weight != 1.0
        exact = copy.deepcopy(self.ledger)
        running, other = (one.begin(weight) for one in (self.procedure, self.twin))
        assert running == other
        self.ledger, kept = exact, self.ledger
        self.check_level(running.level, weight)
        self.ledger = kept
        assert running.number == self.ledger.begin(running.level)
        self.running[running.number] = running
        self.simple = False

    @precondition(lambda self: self.running)
    @rule(
        data=st.data(), p=P_VALUES, by_number=st.booleans(), told=st.sampled_from("pdb")
    )
    def finish(self, data, p, by_number, told):
        number = data.draw(st.sampled_from(sorted(self.running)))
        running = self.running.pop(number)
        value = float(self.value_of(p, running.level))
        decided = {} if told == "p" else {"rejected": data.draw(st.booleans())}
        if told == "d" and self.name not in ("SAFFRON", "ADDIS"):
            given = []
        else:
            given = [value]
        found = [
            one.finish(number if by_number else running, *given, **decided)
            for one in (self.procedure, self.twin)
        ]
        expected = self.decision(value, running.level)
        assert found[0] == found[1] == decided.get("rejected", expected)
        self.ledger.end(number, found[0], value)

    # Many at once, afresh

    @precondition(lambda self: len(self.ledger.levels) < 100)
    @rule(ps=st.lists(P_VALUES, max_size=8), weighted=st.booleans(), data=st.data())
    def fit(self, ps, weighted, data):
        values = [float(self.value_of(p, 0.01)) for p in ps]
        weights = [float(data.draw(WEIGHTS)) for _ in ps] if weighted else None
        found = self.procedure.fit(values, weights=weights)
        self.twin.fit(values, weights=weights)
        self.new_ledger()
        for k, value in enumerate(values):
            weight = 1.0 if weights is None else weights[k]
            self.ledger.weighted |= weight != 1.0
            self.check_level(found.levels_[k], weight)
            number = self.ledger.begin(float(found.levels_[k]))
            self.ledger.end(number, bool(found.rejected_[k]), value)
            assert found.rejected_[k] == self.decision(value, found.levels_[k])
            assert_allclose(
                found.wealth_path_[k],
                self.ledger.wealth(),
                rtol=1e-9,
                atol=ROUNDING * self.ledger.earned(),
            )
            self.values.append(value)
            self.weights.append(weight)

    # Copies and parameters

    @rule(way=st.sampled_from(["json", "pickle", "copy", "deepcopy"]))
    def replace(self, way):
        if way == "json":
            text = written(self.procedure)
            params = self.procedure.get_params()
            self.procedure = type(self.procedure).from_dict(json.loads(text))
            assert written(self.procedure) == text
            self.procedure.set_params(**params)
        elif way == "pickle":
            self.procedure = pickle.loads(pickle.dumps(self.procedure))
        elif way == "deepcopy":
            self.procedure = copy.deepcopy(self.procedure)
        else:
            fresh = clone(self.procedure)
            assert fresh.n_tests_ == 0
            assert fresh.get_params() == self.procedure.get_params()

    @rule(alpha=st.sampled_from([0.06, 0.2, 0.95]))
    def set_alpha(self, alpha):
        if (self.procedure.get_params().get("w0") or 0.0) >= alpha:
            return
        for one in (self.procedure, self.twin):
            one.set_params(alpha=alpha)
        if not self.ledger.levels:
            self.new_ledger()

    @rule()
    def reset(self):
        self.procedure.reset()
        self.twin.reset()
        self.new_ledger()

    # What is refused

    def refuse(self, call, message):
        before = state_of(self.procedure)
        with pytest.raises(ValueError, match=message):
            call()
        assert state_of(self.procedure) == before

    @rule(value=st.sampled_from(BAD_VALUES), way=st.sampled_from(["test", "update"]))
    def refuse_value(self, value, way):
        if self.name == "ELOND" and (value is np.inf or repr(value)[:2] == "1."):
            return
        word = "e_value" if self.name == "ELOND" else "p_value"
        if way == "test":
            self.refuse(lambda: self.procedure.test(value), word)
        elif value is not None:
            self.refuse(lambda: self.procedure.update(True, value), word)
        if self.running:
            number = min(self.running)
            self.refuse(
                lambda: self.procedure.finish(number, value),
                "finish needs p_value" if value is None else word,
            )
            if value is not None:
                call = lambda: self.procedure.finish(number, value, rejected=True)
                self.refuse(call, word)

    @rule(weight=st.sampled_from(BAD_WEIGHTS))
    def refuse_weight(self, weight):
        self.refuse(lambda: self.procedure.test(0.5, weight), "weight")
        self.refuse(lambda: self.procedure.begin(weight), "weight")

    @rule(
        number=st.sampled_from(
            [0, -1, 10**6, None, "1", True, 1.0, RunningTest(1, 7.0)]
        )
    )
    def refuse_number(self, number):
        message = "has not begun, or has ended|it is of another procedure"
        self.refuse(lambda: self.procedure.finish(number, 0.5), message)

    @rule(decision=st.sampled_from([None, 1, 0.0, "yes", np.nan]))
    def refuse_decision(self, decision):
        self.refuse(lambda: self.procedure.update(decision, 0.5), "rejected must be")

    @rule(values=st.sampled_from([[0.1, np.nan], [[0.1]], 0.1, [-0.1], ["a"]]))
    def refuse_values(self, values):
        self.refuse(lambda: self.procedure.fit(values), "_values")

    @rule(weights=st.sampled_from([[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, 1e101]]))
    def refuse_weights(self, weights):
        call = lambda: self.procedure.fit([0.1, 0.2], weights=weights)
        self.refuse(call, "weights must be")

    @precondition(lambda self: self.overlaps_with_memory())
    @rule()
    def refuse_overlap(self):
        self.refuse(self.procedure.begin, "do not overlap")
        self.refuse(lambda: self.procedure.test(0.5), "do not overlap")

    # What holds at all times

    @invariant()
    def same_bits(self):
        one, other = self.procedure, self.twin
        assert one.next_level_ == other.next_level_
        assert one.wealth_ == other.wealth_
        assert one.fdp_estimate_ == other.fdp_estimate_

    @invariant()
    def counts(self):
        assert self.procedure.n_tests_ == len(self.ledger.levels)
        assert self.procedure.n_running_ == len(self.running)
        assert self.procedure.n_rejections_ == len(self.ledger.kappas)

    @invariant()
    def level(self):
        self.check_level(self.procedure.next_level_)

    @invariant()
    def wealth(self):
        found, ledger = self.procedure.wealth_, self.ledger
        size = max(ledger.earned(), ledger.alpha)
        assert_allclose(found, ledger.wealth(), rtol=1e-9, atol=ROUNDING * size)
        assert found >= -ROUNDING * size

    @invariant()
    def estimate(self):
        found, exact = self.procedure.fdp_estimate_, self.ledger.fdp_estimate()
        assert_allclose(found, exact, rtol=1e-9, atol=ROUNDING * self.ledger.alpha)
        bounded = (*ADAPTIVE, "LORDPlusPlus", "AlphaSpending")
        if self.name in bounded:
            assert found <= self.ledger.alpha * (1.0 + 1e-12)

    def teardown(self):
        """Tests one by one are those of fit, bit by bit."""
        if not hasattr(self, "ledger") or not self.simple:
            return
        if not self.ledger.levels:
            return
        params = json.loads(written(self.procedure))["params"]
        fresh = type(self.procedure)(**params)
        fresh.fit(self.values, weights=self.weights)
        assert_array_equal(fresh.levels_, self.ledger.levels)
        assert_array_equal(fresh.rejected_, self.ledger.rejected)
        assert fresh.next_level_ == self.procedure.next_level_
