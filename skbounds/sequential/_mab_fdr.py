"""Many best-arm tests one after the other, with few false discoveries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

import skbounds
from skbounds._base import unchanged_on_error
from skbounds._states import (
    ROUNDING,
    State,
    agree,
    is_float,
    reads_state,
    refuse,
    shown,
)
from skbounds._typing import RandomState
from skbounds.sequential._adaptive import ADDIS, SAFFRON, AlphaInvesting
from skbounds.sequential._best_arm import BestArmTest
from skbounds.sequential._functions import draw_seeds, is_number
from skbounds.sequential._lond import ELOND, LOND
from skbounds.sequential._online_procedure import (
    OnlineProcedure,
    RunningTest,
    Started,
    differ,
    given_params,
    plain,
)
from skbounds.sequential._procedures import (
    LORD,
    AlphaSpending,
    LORDPlusPlus,
    LORDPrime,
    Uncorrected,
)
from skbounds.sequential._settings import is_count

PROCEDURES = {
    kind.__name__: kind
    for kind in (
        LORD, LORDPrime, LORDPlusPlus, AlphaSpending, SAFFRON, ADDIS, AlphaInvesting,
        LOND, ELOND, Uncorrected,
    )
}  # fmt: skip
# The level of a test that cannot be rejected.
_NO_LEVEL = 1e-300
# The level of a test that is nearly always rejected.
_ALL = 1.0 - 1e-12
_DEFAULT = 0.05
# What each experiment may have of its own.
_OWN = ("epsilon", "rewards", "bounds", "sigma", "max_pulls", "weights")
_SHARED = ("epsilon", "evidence", "rewards", "bounds", "sigma", "bets", "max_pulls",
           "sampler")  # fmt: skip


class MABFDR(Started):
    """Bandit experiments in a row, each at a level that an online procedure gives.

    `begin` opens an experiment at the level that the earlier decisions allow; the
    experiment stops by itself or is stopped; `finish` decides, and tells the procedure
    (Procedures 1 and 2 of [1]_).

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    .. versionchanged:: 0.2
       E-processes and `ADDIS` are the default; ``evidence="lil"``, whose default is
       `LORD`, is version 0.1.

    Parameters
    ----------
    procedure : online procedure, default=None
        `ADDIS`, `LORD`, `ELOND` or another one, of which a fresh clone is used. None is
        ``ADDIS(alpha)`` with e-processes and ``LORD(alpha)`` with "lil".
    alpha : float, default=None
        The false discovery rate that is allowed. None is that of the procedure, or 0.05
        where none is given. With a procedure of another alpha it is an error.
    epsilon : float, default=0.0
        Improvement over the control that is asked for.
    evidence : {"eprocess", "lil"}, default="eprocess"
        As of `BestArmTest`.
    rewards : {"normal", "binary", "bounded"}, default="normal"
        As of `BestArmTest`.
    bounds : pair of float, default=(0, 1)
        As of `BestArmTest`.
    sigma : float, default=None
        As of `BestArmTest`; mandatory with "lil".
    bets : array-like, default=None
        As of `BestArmTest`.
    max_pulls : int
        Largest number of rewards of an experiment.
    sampler : {"toptwo", "lift", "lucb", "uniform"}, default=None
        As of `BestArmTest`; but None is "lift" with e-processes, as a discovery is what
        an experiment is for.
    overlap : bool, default=False
        Whether several experiments may be open. Levels then are those of tests that go
        on at the same time, and the mFDR is controlled.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the experiments' generators.

    Attributes
    ----------
    history_ : list of dict
        For each experiment that was finished ``"n_arms"``, ``"level"``, ``"p_value"``,
        ``"log_p_value"``, ``"recommendation"``, ``"n_pulls"``, ``"is_certified"``,
        ``"rejected"``, ``"number"`` in the order of beginnings, and
        ``"fdp_estimate"``, what the procedure estimates the share of false discoveries
        at by then, and ``"wealth"``, what it has left. With e-processes also
        ``"evalue"``, the largest adjusted one at the end, and ``"lift_interval"``, the
        recommended arm's at level alpha (of this experiment by itself).
    next_level_ : float
        Level of the next experiment.
    wealth_ : float
        Wealth of the procedure.
    fdp_estimate_ : float
        Estimate of the share of false discoveries so far.

    See Also
    --------
    BestArmTest : One experiment.
    ADDIS, LORD, ELOND : The levels.

    Notes
    -----
    "False discovery" may be read as "the adopted arm is not better than control +
    epsilon". The FDR is that of the procedure if experiments are independent and do not
    overlap, and what is started, stopped or skipped depends on earlier experiments
    through what the procedure is told only. Experiments by e-processes end at a
    rejection or at `max_pulls`, never because an arm is certified: then ADDIS and
    SAFFRON see p-values that do not depend on their own levels, but for rejections.
    `ADDIS` asks for p-values that are uniformly conservative, which those of
    e-processes were found to be at ties, without a proof; who wants theorems only takes
    `LORDPlusPlus`. For experiments that overlap in users or share a control: `ELOND`.
    The sampler "toptwo" looks for the best arm and starves a control that is out of
    question: where two arms are good it may find nothing, however large the lift.
    With LORD the mFDR is at most alpha after each experiment (Theorem 4), with
    LORDPrime the FDR as well (Theorem 5).

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017. Numbers
       are those of chapter 4 of F. Yang's thesis.

    Examples
    --------
    >>> from skbounds.sequential import MABFDR
    >>> study = MABFDR(alpha=0.1, sigma=1.0, max_pulls=2000, random_state=0)
    >>> means = [[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    >>> draws = [
    ...     lambda arm, size, rng, m=m: m[arm] + rng.normal(size=size) for m in means
    ... ]
    >>> study = study.run((3, draw) for draw in draws)
    >>> [(entry["rejected"], entry["recommendation"]) for entry in study.history_]
    [(True, 2), (False, 0), (True, 1)]
    """

    def __init__(
        self,
        procedure: OnlineProcedure | None = None,
        *,
        alpha: float | None = None,
        epsilon: float = 0.0,
        evidence: Literal["eprocess", "lil"] = "eprocess",
        rewards: Literal["normal", "binary", "bounded"] = "normal",
        bounds: tuple[float, float] = (0, 1),
        sigma: float | None = None,
        bets: ArrayLike | None = None,
        max_pulls: int,
        sampler: Literal["toptwo", "lift", "lucb", "uniform"] | None = None,
        overlap: bool = False,
        random_state: RandomState | np.random.Generator = None,
    ) -> None:
        self.procedure = procedure
        self.alpha = alpha
        self.epsilon = epsilon
        self.evidence = evidence
        self.rewards = rewards
        self.bounds = bounds
        self.sigma = sigma
        self.bets = bets
        self.max_pulls = max_pulls
        self.sampler = sampler
        self.overlap = overlap
        self.random_state = random_state

    def _start(self):
        """Begin, unless that was done."""
        if hasattr(self, "_procedure_"):
            fresh = not self._history_ and not self._open_
            if not fresh or not differ(self, self._given_):
                return
        self._set_up()

    @unchanged_on_error
    def _set_up(self):
        if self.procedure is None:
            kind = LORD if self.evidence == "lil" else ADDIS
            procedure = kind(_DEFAULT if self.alpha is None else self.alpha)
        elif type(self.procedure).__name__ not in PROCEDURES or not isinstance(
            self.procedure, OnlineProcedure
        ):
            raise ValueError(
                f"procedure must be one of {sorted(PROCEDURES)}; got "
                f"{self.procedure!r}."
            )
        else:
            if self.alpha not in (None, self.procedure.alpha):
                raise ValueError(
                    f"procedure has alpha={self.procedure.alpha}, and alpha="
                    f"{self.alpha} is given as well; give the procedure's only."
                )
            procedure = clone(self.procedure)
        if isinstance(procedure, ELOND) and self.evidence == "lil":
            raise ValueError("procedure ELOND needs e-values: evidence='eprocess'.")
        procedure._start()
        if not is_count(self.max_pulls) or self.max_pulls < 2:
            raise ValueError(
                f"max_pulls must be an integer, at least 2; got {self.max_pulls!r}."
            )
        if not isinstance(self.overlap, (bool, np.bool_)):
            raise ValueError(f"overlap must be True or False; got {self.overlap!r}.")
        if self.overlap and getattr(procedure, "memory", 1.0) < 1.0:
            raise ValueError(
                "overlap=True does not go together with a procedure of memory < 1."
            )
        self._given_ = given_params(self)
        # For its checks.
        n_sigmas = np.size(self.sigma) if np.ndim(self.sigma) == 1 else 2
        self._make(max(n_sigmas, 2), 0.05, 0, {})
        self._seed_ = int(draw_seeds(self.random_state))
        # {number: (experiment, level)} of those that are open.
        self._open_, self._history_ = {}, []
        self._procedure_ = procedure

    def _make(self, n_arms, level, seed, own):
        given = {name: self._given_[name] for name in _SHARED}
        lil = given["evidence"] == "lil"
        if given["sampler"] is None and not lil:
            # An experiment is to find an arm that is better than the control.
            given["sampler"] = "lift"
        test = BestArmTest(
            n_arms, delta=min(max(level, _NO_LEVEL), _ALL), random_state=seed,
            **{**given, **own},
        )  # fmt: skip
        test._start(None if lil else "rejected")
        return test

    @property
    def history_(self) -> list[dict[str, Any]]:
        """What the experiments so far have found."""
        self._start()
        return [dict(entry) for entry in self._history_]

    @property
    def next_level_(self) -> float:
        """Level of the next experiment."""
        self._start()
        return self._procedure_.next_level_

    @property
    def wealth_(self) -> float:
        """Wealth of the procedure."""
        self._start()
        return self._procedure_.wealth_

    @property
    def fdp_estimate_(self) -> float:
        """Estimate of the share of false discoveries so far."""
        self._start()
        return self._procedure_.fdp_estimate_

    def begin(self, n_arms: int | Sequence[str], **own: Any) -> BestArmTest:
        """Open the next experiment.

        Parameters
        ----------
        n_arms : int or list of str
            Number of its arms, with the control, or their names.
        **own : dict
            `epsilon`, `rewards`, `bounds`, `sigma`, `max_pulls` or `weights` of this
            experiment in place of the study's.

        Returns
        -------
        test : BestArmTest
            At the level that the procedure gives.
        """
        self._start()
        unknown = sorted(set(own) - set(_OWN))
        if unknown:
            raise ValueError(f"an experiment may have its own {_OWN}; got {unknown}.")
        if "max_pulls" in own and own["max_pulls"] is None:
            raise ValueError("max_pulls must be an integer, at least 2; got None.")
        if self._open_ and not self._given_["overlap"]:
            raise ValueError(
                "an experiment is open; finish it first. With overlap=True experiments "
                "may overlap, and levels are those of tests that do."
            )
        number = self._procedure_.n_tests_ + 1
        seed = np.random.SeedSequence([self._seed_, number - 1])
        seed = int(seed.generate_state(1)[0] % (2**31 - 1))
        test = self._make(n_arms, self._procedure_.next_level_, seed, own)
        running = self._procedure_.begin()
        self._open_[running.number] = test, running.level
        return test

    def finish(self, test: BestArmTest) -> bool:
        """Decide on an experiment that is open.

        Parameters
        ----------
        test : BestArmTest
            What `begin` returned, ended or not.

        Returns
        -------
        rejected : bool
            Whether its p-value is at most its level (of `ELOND`: its e-value now at
            least the inverse); with "lil" also whether its best arm is not the control.
        """
        self._start()
        numbers = [n for n, (other, _) in self._open_.items() if other is test]
        if not numbers:
            raise ValueError("finish takes the experiment that begin has opened.")
        number = numbers[0]
        level = self._open_[number][1]
        lil = self._given_["evidence"] == "lil"
        entry: dict[str, Any] = {
            "n_arms": len(test.counts_),
            "level": float(level),
            "p_value": test.p_value_,
            "log_p_value": float(test.log_p_value_),
        }
        if lil:
            evalue = None
            rejected = test.rejected(level)
        else:
            evalue = float(np.nanmax(test.evalues_))
            rejected = test.rejected(level)
            if isinstance(self._procedure_, ELOND):
                rejected = bool(level > 0.0 and evalue >= 1.0 / level)
        recommendation = test.recommendation_
        entry.update(
            recommendation=recommendation,
            n_pulls=test.n_pulls_,
            is_certified=test.is_certified_,
            rejected=rejected,
            number=number,
        )
        if not lil:
            entry["evalue"] = evalue
            entry["lift_interval"] = self._lift(test)
        value = evalue if isinstance(self._procedure_, ELOND) else test.p_value_
        self._procedure_.finish(
            RunningTest(number, level), value, rejected=bool(rejected)
        )
        entry["fdp_estimate"] = float(self._procedure_.fdp_estimate_)
        entry["wealth"] = float(self._procedure_.wealth_)
        del self._open_[number]
        self._history_.append(entry)
        return rejected

    def _lift(self, test):
        """Return the interval of the recommended arm's lift, or None."""
        arm = test._recommend()
        if arm == 0:
            return None
        alpha = min(self._procedure_.alpha, 0.5)
        return [float(bound[arm]) for bound in test.lift_intervals(alpha)]

    def run(self, experiments: Iterable[tuple]) -> Self:
        """Run experiments to their ends.

        Parameters
        ----------
        experiments : iterable of (n_arms, draw) or (n_arms, draw, own)
            Numbers of arms, functions ``draw(arm, size, rng)`` that return rewards, and
            maybe a dict of what `begin` takes.

        Returns
        -------
        self : object
            With its history.
        """
        for n_arms, draw, *own in experiments:
            test = self.begin(n_arms, **(own[0] if own else {}))
            self.finish(test.run(draw))
        return self

    def report(self) -> skbounds.StudyReport:
        """Return what is known by now, as a table.

        Returns
        -------
        report : StudyReport
            Shown as text, or as HTML in a notebook.
        """
        from skbounds.sequential._report import StudyReport

        return StudyReport.from_study(self)

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = dict(self._given_)
        params.pop("procedure")
        if not isinstance(params["random_state"], Integral):
            params["random_state"] = None
        return {
            "params": {name: plain(value) for name, value in params.items()},
            "given": self._given_["procedure"] is not None,
            "procedure": self._procedure_.to_dict(),
            "seed": self._seed_,
            "open": [
                [number, level, test.to_dict()]
                for number, (test, level) in self._open_.items()
            ],
            "history": self.history_,
        }

    @classmethod
    @reads_state
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the study that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`; those of version 0.1 go on with ``evidence="lil"``.

        Returns
        -------
        study : MABFDR
            Goes on where the other was. Experiments that were open are in ``open_`` or
            ``open_experiments_``.

        Raises
        ------
        ValueError
            For what is no state, or cannot be one: its history must lead to its
            procedure, as far as overlap lets that be known.
        """
        given = State(state)
        name = given.part("procedure")["procedure"]
        if not isinstance(name, str) or name not in PROCEDURES:
            raise ValueError(
                f"procedure must be one of {sorted(PROCEDURES)}; got {shown(name)}."
            )
        procedure = PROCEDURES[name].from_dict(given["procedure"])
        own = clone(procedure) if given.flag("given") else None
        params = given.params(cls)
        params.setdefault("evidence", "lil")
        if "bounds" in params:
            given.part("params").pair("bounds")
        found = cls(own, **params)
        found._start()
        kind = type(found._procedure_)
        if own is None and (kind.__name__, found._procedure_.alpha) != (
            name, procedure.alpha
        ):  # fmt: skip
            raise ValueError(
                f"the state has {kind.__name__}({found._procedure_.alpha}) by its "
                f"parameters; got {name}({shown(procedure.alpha)})."
            )
        found._procedure_ = procedure
        found._seed_ = given.count("seed", 0, 2**31 - 1)
        found._restore_open(given)
        found._restore_history(given)
        return found

    def _restore_open(self, state):
        """Take the experiments that are open, of which the procedure knows."""
        procedure, known = self._procedure_, state["open"]
        if known is None:
            known = []
        elif isinstance(known, dict):
            # Of version 0.1, where the procedure learnt of an experiment at its end.
            running = procedure.begin()
            self._open_[running.number] = BestArmTest.from_dict(known), running.level
            return
        for number, level, test in State({"open": known}).rows("open", 3):
            entry = procedure._pending_.get(number) if is_count(number) else None
            twice = entry is not None and number in self._open_
            if twice or entry is None or entry[1] is not None or level != entry[0]:
                refuse("an experiment in 'open'", [number, level], "one of 'pending'")
            test = BestArmTest.from_dict(test)
            delta = min(max(level, _NO_LEVEL), _ALL)
            if test.evidence != self._given_["evidence"] or test.delta != delta:
                refuse(
                    "an experiment in 'open'", [test.evidence, test.delta],
                    f"of evidence {self._given_['evidence']!r} at level {delta}",
                )  # fmt: skip
            self._open_[int(number)] = test, float(level)
        if len(self._open_) != procedure.n_running_:
            refuse("'open'", sorted(self._open_), "all tests that go on")
        if len(self._open_) > 1 and not self._given_["overlap"]:
            refuse("'open'", sorted(self._open_), "one, without overlap")

    def _restore_history(self, state):
        """Take what experiments have found, if that leads to the procedure's state."""
        procedure, entries = self._procedure_, state.items("history")
        n = procedure.n_tests_ - len(self._open_)
        if len(entries) != n:
            refuse("the number of entries in 'history'", len(entries), n)
        # Decisions in the order in which they became known.
        found = []
        for k, entry in enumerate(entries, start=1):
            values = State(entry, f"entry {k} of the history")
            # The first version had no others than one after the other.
            number = k
            if "number" in values:
                number = values.count("number", 1, n + len(self._open_))
            found.append((number, *self._read_entry(values)))
        if len({number for number, *_ in found} | set(self._open_)) != (
            n + len(self._open_)
        ):
            refuse("the numbers in 'history'", [number for number, *_ in found],
                   "different, and not those of 'open'")  # fmt: skip
        self._history_ = [dict(entry) for entry in entries]
        if procedure._weighted_:
            refuse("'weighted'", True, "False in a study")
        if self._given_["overlap"]:
            self._check_sums(found)
        else:
            self._check_replay(found)

    def _read_entry(self, entry):
        """Return level, decision and value of an experiment that was finished."""
        level, rejected = entry.number("level", 0.0, 1.0), entry.flag("rejected")
        p_value = entry.number("p_value", 0.0, 1.0)
        log_p = entry.number("log_p_value", most=0.0)
        if abs(np.exp(log_p) - p_value) > ROUNDING * p_value:
            refuse("'p_value' in 'history'", p_value, f"exp({log_p})")
        n_arms = entry.count("n_arms", 2)
        entry.count("n_pulls")
        entry.flag("is_certified")
        if not isinstance(entry["recommendation"], str):
            entry.count("recommendation", 0, n_arms - 1)
        # The first version had no more than these. Infinite ones are numbers as well.
        for name in ("fdp_estimate", "wealth", "evalue"):
            value = entry.values.get(name, 0.0)
            if not is_float(value) or not value >= -ROUNDING:
                refuse(f"{name!r} in 'history'", value, "a number, 0 or more")
        lift = entry.values.get("lift_interval")
        if lift is not None:
            low, high = entry.pair("lift_interval")
            if not low <= high:
                refuse("'lift_interval' in 'history'", lift, "the lower one first")
        lil = self._given_["evidence"] == "lil"
        if isinstance(self._procedure_, ELOND):
            # As large as it may be.
            value = entry["evalue"]
            if not is_number(value) or not value >= 0.0:
                refuse("'evalue' in 'history'", value, "a number, 0 or more")
            expected = bool(level > 0.0 and value >= 1.0 / level)
        else:
            value, expected = p_value, bool(level > 0.0 and log_p <= np.log(level))
        # With "lil" the control may be the best arm.
        if (rejected and not expected) or (expected and not rejected and not lil):
            refuse("'rejected' in 'history'", rejected, f"{expected} at level {level}")
        return level, rejected, value

    def _check_replay(self, found):
        """Refuse a procedure that is not where the history leads to."""
        again = clone(self._procedure_)
        known = ("fdp_estimate", "wealth")
        for entry, (number, level, rejected, value) in zip(
            self._history_, found, strict=True
        ):
            agree(f"the level of experiment {number}", level, again.next_level_)
            running = again.begin()
            again.finish(running, value, rejected=rejected)
            for name in known:
                if name in entry and np.isfinite(entry[name]):
                    agree(f"{name!r} after experiment {number}", entry[name],
                          getattr(again, f"{name}_"), scale=again.alpha)  # fmt: skip
        for number in self._open_:
            agree(f"the level of experiment {number}", self._open_[number][1],
                  again.next_level_)  # fmt: skip
            again.begin()
        for what in ("next_level_", "wealth_", "fdp_estimate_", "n_rejections_"):
            agree(f"the procedure's {what}", float(getattr(self._procedure_, what)),
                  float(getattr(again, what)), scale=again.alpha)  # fmt: skip

    def _check_sums(self, found):
        """Refuse sums that are not those of the history; what overlaps is not known."""
        procedure = self._procedure_
        known = [one for one in found if one[0] not in procedure._pending_]
        n_rejected = sum(rejected for _, _, rejected, _ in known)
        if n_rejected != procedure._n_rejections_:
            refuse("'n_rejections'", procedure._n_rejections_, n_rejected)
        for number, level, rejected, _ in found:
            entry = procedure._pending_.get(number, [level, rejected])
            if entry[:2] != [level, rejected]:
                refuse(f"the level of experiment {number}", level, entry[0])
        costs = [
            procedure._cost_of(level, rejected, value)
            for _, level, rejected, value in known
        ]
        agree("'spent'", procedure._spent_, sum(costs) + procedure._spent_on_pending())

    @property
    def open_(self) -> BestArmTest | None:
        """The experiment that is open, or None; of several the one begun last."""
        self._start()
        if not self._open_:
            return None
        return self._open_[max(self._open_)][0]

    @property
    def open_experiments_(self) -> dict[int, BestArmTest]:
        """All experiments that are open, by number."""
        self._start()
        return {number: test for number, (test, _) in self._open_.items()}
