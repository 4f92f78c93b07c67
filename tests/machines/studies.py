"""Machines of studies of many experiments, of batches of tests, and of monitors."""

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
from pac_bayes.test_monitor import exact_log_evalue
from reference.procedures import Ledger, gamma_term
from sklearn.base import clone

from machines.procedures import ROUNDING
from skbounds.pac_bayes import VoteMonitor
from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    LORD,
    MABFDR,
    SAFFRON,
    AlphaSpending,
    BatchBH,
    BestArmTest,
    LORDPlusPlus,
)

PROCEDURES = [
    None, ADDIS(0.5), ELOND(0.2), ELOND(0.9), LOND(0.3), LORDPlusPlus(0.1),
    SAFFRON(0.5, lam=0.3), LORD(0.1), AlphaSpending(0.2), ADDIS(0.5, lag=2),
    LORDPlusPlus(0.1, horizon=3),
]  # fmt: skip


def written(item):
    """The state as JSON, which knows neither nan nor inf."""
    return json.dumps(item.to_dict(), allow_nan=False)


class Refusing(RuleBasedStateMachine):
    """What is refused changes nothing."""

    def refuse(self, item, call, message=None, error=ValueError):
        before = written(item)
        with pytest.raises(error, match=message):
            call()
        assert written(item) == before


class StudyMachine(Refusing):
    """A study, its experiments in any order, and the ledger of its procedure."""

    @initialize(
        procedure=st.sampled_from(PROCEDURES),
        overlap=st.booleans(),
        evidence=st.sampled_from(["eprocess", "eprocess", "lil"]),
        kind=st.sampled_from(["normal", "binary"]),
    )
    def begin_study(self, procedure, overlap, evidence, kind):
        options = {"evidence": evidence, "overlap": overlap, "max_pulls": 60}
        lil = evidence == "lil"
        if lil and isinstance(procedure, ELOND):
            procedure = None
        if lil or kind == "normal":
            options["sigma"] = 1.0
        else:
            options["rewards"] = "binary"
        if procedure is None:
            options["alpha"] = 0.4
        else:
            options["procedure"] = procedure
        self.study = MABFDR(random_state=0, **options)
        self.lil, self.overlap, self.binary = lil, overlap, "rewards" in options
        if procedure is None:
            procedure = (LORD if lil else ADDIS)(0.4)
        self.by_evalue = isinstance(procedure, ELOND)
        name = type(procedure).__name__
        self.ledger = Ledger(name, **procedure.get_params())
        # Rewards and numbers of the experiments that are open.
        self.open, self.n_finished = {}, 0

    def tests(self):
        return self.study.open_experiments_

    @precondition(lambda self: self.overlap or not self.open)
    @rule(n_arms=st.integers(2, 3), named=st.booleans(), own=st.booleans())
    def begin(self, n_arms, named, own):
        level = self.study.next_level_
        given = {"max_pulls": 30, "epsilon": 0.1} if own else {}
        names = ["control", "a", "b"][:n_arms] if named else n_arms
        test = self.study.begin(names, **given)
        assert isinstance(test, BestArmTest)
        number = self.ledger.begin(level)
        assert self.tests()[number] is test is self.study.open_
        self.open[number] = named

    @precondition(lambda self: self.open)
    @rule(
        data=st.data(),
        seed=st.integers(0, 2**16),
        n=st.sampled_from([1, 5, 10, 20, 40, 150]),
        lift=st.sampled_from([0.0, 1.0, 3.0]),
    )
    def feed(self, data, seed, n, lift):
        number = data.draw(st.sampled_from(sorted(self.open)))
        test = self.tests()[number]
        rng = np.random.default_rng(seed)
        n_arms = len(test.counts_)
        arms = rng.integers(n_arms, size=n)
        rewards = rng.normal(size=n) + lift * arms
        if self.binary:
            rewards = (rng.random(n) < (0.2 + 0.7 * (arms > 0) * (lift > 0))) * 1.0
        labels = np.array(["control", "a", "b"])[arms] if self.open[number] else arms
        test.observe(labels, rewards)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def finish(self, data):
        number = data.draw(st.sampled_from(sorted(self.open)))
        test = self.tests()[number]
        level = self.ledger.levels[number - 1]
        found = self.study.finish(test)
        if self.by_evalue:
            value = float(np.nanmax(test.evalues_))
            expected = value >= 1.0 / level if level > 0.0 else False
        else:
            value = test.p_value_
            expected = 0.0 < level and value <= level
            if self.lil:
                expected = expected and test.recommendation_ not in (0, "control")
        assert found == expected
        self.ledger.end(number, bool(found), value)
        del self.open[number]
        self.n_finished += 1
        entry = self.study.history_[-1]
        assert entry["number"] == number and entry["level"] == level
        assert entry["rejected"] == found and entry["p_value"] == test.p_value_
        assert entry["n_pulls"] == test.counts_.sum()
        self.refuse(self.study, lambda: self.study.finish(test), "has opened")

    @rule(way=st.sampled_from(["json", "pickle", "deepcopy", "clone"]))
    def replace(self, way):
        if way == "json":
            text = written(self.study)
            self.study = MABFDR.from_dict(json.loads(text))
            assert written(self.study) == text
        elif way == "pickle":
            self.study = pickle.loads(pickle.dumps(self.study))
        elif way == "deepcopy":
            self.study = copy.deepcopy(self.study)
        else:
            assert not clone(self.study).history_

    @rule()
    def look(self):
        before = written(self.study)
        self.study.report()
        repr(self.study)
        assert written(self.study) == before

    @rule(bad=st.sampled_from([None, 3, "test"]))
    def refuse_tests(self, bad):
        other = BestArmTest(2, sigma=1.0)
        for wrong in (bad, other):
            call = lambda wrong=wrong: self.study.finish(wrong)
            self.refuse(self.study, call, "has opened")

    @rule(
        bad=st.sampled_from(
            [
                {"n_arms": 1},
                {"n_arms": 2, "delta": 0.1},
                {"n_arms": 2, "max_pulls": None},
                {"n_arms": 2, "epsilon": "x"},
                {"n_arms": 3, "max_pulls": 2},
            ]
        )
    )
    def refuse_experiments(self, bad):
        self.refuse(self.study, lambda: self.study.begin(**bad))

    @precondition(lambda self: self.open and not self.overlap)
    @rule()
    def refuse_overlap(self):
        self.refuse(self.study, lambda: self.study.begin(2), "experiment is open")

    @invariant()
    def levels(self):
        ledger, size = self.ledger, max(self.ledger.earned(), self.ledger.alpha)
        exact = ledger.level()
        assert_allclose(self.study.next_level_, exact, rtol=1e-10, atol=ROUNDING * size)
        assert_allclose(
            self.study.wealth_, ledger.wealth(), rtol=1e-9, atol=ROUNDING * size
        )
        assert self.study.wealth_ >= -ROUNDING * size
        assert len(self.study.history_) == self.n_finished
        assert sorted(self.tests()) == sorted(self.open)


class BatchMachine(Refusing):
    """Benjamini and Hochberg's procedure batch after batch, by its definition."""

    @initialize(
        alpha=st.sampled_from([0.05, 0.5]),
        gamma=st.sampled_from(["power", "log", [0.5, 0.3, 0.2]]),
    )
    def begin_batches(self, alpha, gamma):
        self.procedure, self.alpha = BatchBH(alpha, gamma=gamma), alpha
        self.kind = gamma if isinstance(gamma, str) else tuple(gamma)
        self.batches, self.found, self.levels = [], [], []

    @staticmethod
    def rejected(values, level):
        """The p-values up to the largest p_(k) that is at most level k / n."""
        n = len(values)
        fits = [
            p
            for p in values
            if level > 0.0 and p <= level * sum(q <= p for q in values) / n
        ]
        return [p <= max(fits) for p in values] if fits else [False] * n

    def next_level(self, n):
        """What batches before have left, times (n + R) / n."""
        R, spent = sum(map(sum, self.found)), 0.0
        for values, found, level in zip(
            self.batches, self.found, self.levels, strict=True
        ):
            most = max(
                sum(self.rejected([*values[:i], 0.0, *values[i + 1 :]], level))
                for i in range(len(values))
            )
            if most:
                spent += level * most / (most + R - sum(found))
        share = sum(
            gamma_term(self.kind, None, s) for s in range(1, len(self.batches) + 2)
        )
        return max(self.alpha * share - spent, 0.0) * (n + R) / n

    @rule(
        values=st.lists(
            st.sampled_from([0.0, 1.0, 1e-6, 0.01]) | st.floats(0.0, 1.0),
            min_size=1,
            max_size=6,
        )
    )
    def test(self, values):
        level = self.next_level(len(values))
        found = self.procedure.test(values)
        assert_allclose(self.procedure.level_, level, rtol=1e-9, atol=1e-14)
        # Decisions by the procedure's own level, which may differ by rounding.
        expected = self.rejected(values, self.procedure.level_)
        near = [
            abs(p - level * k / len(values)) < 1e-12
            for p in values
            for k in range(1, len(values) + 1)
        ]
        if not any(near):
            assert found.tolist() == expected
        self.batches.append(values)
        self.found.append(found.tolist())
        self.levels.append(self.procedure.level_)

    @rule(way=st.sampled_from(["json", "pickle", "deepcopy"]))
    def replace(self, way):
        if way == "json":
            text = written(self.procedure)
            self.procedure = BatchBH.from_dict(json.loads(text))
            assert written(self.procedure) == text
        elif way == "pickle":
            self.procedure = pickle.loads(pickle.dumps(self.procedure))
        else:
            self.procedure = copy.deepcopy(self.procedure)

    @rule(bad=st.sampled_from([[], [0.1, np.nan], [-0.1], [1.1], [[0.1]], 0.1, ["a"]]))
    def refuse_values(self, bad):
        call = lambda: self.procedure.test(bad)
        self.refuse(self.procedure, call, "p_values must be")

    @rule()
    def reset(self):
        self.procedure.reset()
        self.batches, self.found, self.levels = [], [], []

    @invariant()
    def counts(self):
        assert self.procedure.n_batches_ == len(self.batches)
        assert self.procedure.n_rejections_ == sum(map(sum, self.found))


class Echo:
    """A classifier that predicts the first feature."""

    def predict(self, X):
        X = np.asarray(X)
        if not len(X):
            raise ValueError("no rows")
        return X[:, 0].astype(int)


class MonitorMachine(Refusing):
    """Evidence of a monitor by whole numbers, row by row."""

    @initialize(
        bound=st.sampled_from([0.03125, 0.25, 0.75]),
        alpha=st.sampled_from([0.05, 0.9]),
    )
    def begin_watch(self, bound, alpha):
        self.monitor = VoteMonitor(Echo(), bound, alpha)
        self.twin = VoteMonitor(Echo(), bound, alpha)
        self.bound, self.threshold = bound, -np.log(alpha)
        self.errors, self.most = [], -np.inf

    @rule(wrong=st.lists(st.booleans(), min_size=1, max_size=12), unknown=st.booleans())
    def update(self, wrong, unknown):
        X = np.ones((len(wrong), 2))
        # Labels that the ensemble does not know are errors.
        y = np.where(wrong, 7 if unknown else 0, 1)
        self.monitor.update(X, y)
        for i in range(len(wrong)):
            self.twin.update(X[i : i + 1], y[i : i + 1])
            self.errors.append(wrong[i])
            evidence = exact_log_evalue(sum(self.errors), len(self.errors), self.bound)
            self.most = max(self.most, evidence)
        assert_allclose(self.monitor.log_evalue_, evidence, rtol=1e-9, atol=1e-9)

    @rule(way=st.sampled_from(["json", "pickle", "deepcopy"]))
    def replace(self, way):
        if way == "json":
            text = written(self.monitor)
            self.monitor = VoteMonitor.from_dict(json.loads(text), Echo())
            assert written(self.monitor) == text
        elif way == "pickle":
            self.monitor = pickle.loads(pickle.dumps(self.monitor))
        else:
            self.monitor = copy.deepcopy(self.monitor)

    @rule(
        bad=st.sampled_from(
            [
                (np.ones((2, 2)), [1]),
                (np.ones((2, 2)), [[1, 0], [1, 0]]),
                (np.ones((2, 2)), [1.0, np.nan]),
                (np.ones((2, 2)), [None, 1]),
                (np.ones((0, 2)), []),
                (np.ones((2, 2)), 3),
            ]
        )
    )
    def refuse_rows(self, bad):
        self.refuse(self.monitor, lambda: self.monitor.update(*bad))

    @invariant()
    def same_bits(self):
        one, other = self.monitor, self.twin
        assert one.log_evalue_ == other.log_evalue_
        assert one.alarm_ == other.alarm_
        assert one.n_seen_ == other.n_seen_ == len(self.errors)
        assert one.n_errors_ == other.n_errors_ == sum(self.errors)
        if self.errors and abs(self.most - self.threshold) > 1e-9:
            assert one.alarm_ == (self.most >= self.threshold)
        assert_array_equal(repr(one), repr(other))
