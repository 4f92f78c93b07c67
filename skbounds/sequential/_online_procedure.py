"""What the online procedures share: tests one after the other, wealth, JSON."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skbounds._base import PlainEstimator, unchanged_on_error
from skbounds._states import (
    LARGEST_COUNT,
    ROUNDING,
    State,
    at_least,
    at_most,
    is_probability,
    reads_state,
    refuse,
    shown,
)
from skbounds.sequential._functions import as_floats, is_number


def check_procedure(state, kind):
    """Refuse the state of another procedure."""
    name = state.values.get("procedure")
    if name != kind.__name__:
        raise ValueError(
            f"this is the state of {shown(name)}, not of {kind.__name__!r}."
        )


class RunningTest(NamedTuple):
    """A test that has begun, at a level that is fixed.

    .. versionadded:: 0.2

    Parameters
    ----------
    number : int
        Its number, 1 for the first.
    level : float
        It is rejected if its p-value is at most that.

    See Also
    --------
    ADDIS : Whose ``begin`` returns it, and whose ``finish`` takes it.

    Examples
    --------
    Two tests at once:

    >>> from skbounds.sequential import ADDIS
    >>> procedure = ADDIS(0.1)
    >>> first, second = procedure.begin(), procedure.begin()
    >>> procedure.finish(second, 1e-4), procedure.finish(first, 0.3)
    (True, False)
    """

    number: int
    level: float


def plain(value):
    """Return a parameter in types that JSON knows."""
    if value is None or isinstance(value, str):
        return value
    return np.asarray(value).tolist()


# The usual weight, by identity.
_ONE, _LARGEST_WEIGHT = 1.0, 1e100
# What rounding may have taken from a sum, as a share of it.
_LARGEST_LOSS = 2.0**-50


def given_params(estimator):
    """Return parameters, of which arrays and lists are copies."""
    return {
        name: value.copy() if isinstance(value, (np.ndarray, list)) else value
        for name, value in estimator.get_params(deep=False).items()
    }


def differ(estimator, given):
    """Return the name of a parameter that is not what was given, or None."""
    for name, value in given.items():
        now = getattr(estimator, name)
        if now is value:
            continue
        same_type = isinstance(now, np.ndarray) == isinstance(value, np.ndarray)
        if not same_type or not _same(now, value):
            return name
    return None


def _same(now, before):
    """Tell whether parameters are equal, whatever they are."""
    try:
        now, before = np.asarray(now), np.asarray(before)
    except ValueError:
        # Lists of no shape.
        return repr(now) == repr(before)
    numbers = now.dtype.kind == before.dtype.kind == "f"
    return np.array_equal(now, before, equal_nan=numbers)


class Started(PlainEstimator):
    """Experiments and procedures, whose properties begin what they tell of."""

    def __dir__(self):
        # Looking at what is there must not begin anything.
        begun = "_given_" in vars(self)
        return [
            name
            for name in object.__dir__(self)
            if begun or name.startswith("_") or not name.endswith("_")
        ]


class OnlineProcedure(Started):
    """What the procedures share.

    Subclasses have ``_begin()``, ``_level()``, ``_most()``, ``_check_spent()`` of what
    was restored, and ``_record(rejected, level, number, p_value)``, which is called
    once a decision is known; tests that go on, or are within the lag, are in
    ``_pending_``.
    """

    # Whether p-values are needed, not decisions alone.
    _needs_p_value = False
    # What is tested.
    _argument = "p_value"

    def _check(self):
        """Return the parameters, checked."""
        alpha = self.alpha
        if not is_number(alpha) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must be in (0, 1); got {alpha!r}.")
        horizon = getattr(self, "horizon", None)
        if horizon is not None and (
            not _is_count(horizon, 1) or horizon > LARGEST_COUNT
        ):
            raise ValueError(
                "horizon must be a positive integer, at most 2**53, or None; got "
                f"{shown(horizon)}."
            )
        lag = getattr(self, "lag", 0)
        if not _is_count(lag, 0) or lag > LARGEST_COUNT:
            raise ValueError(
                f"lag must be an integer from 0 to 2**53; got {shown(lag)}."
            )

    def _start(self):
        """Begin, unless that was done."""
        if hasattr(self, "_n_tests_"):
            # Before the first test parameters may still be set.
            if self._n_tests_ or not differ(self, self._given_):
                return
            OnlineProcedure.reset(self)
        self._set_up()

    @unchanged_on_error
    def _set_up(self):
        self._check()
        self._n_tests_, self._n_rejections_ = 0, 0
        # Sum of the levels, and what rounding has taken from it.
        self._spent_, self._lost_ = 0.0, 0.0
        # What is set later has no effect on tests under way.
        self._given_ = given_params(self)
        self._alpha_ = float(self.alpha)
        horizon = getattr(self, "horizon", None)
        self._last_ = np.inf if horizon is None else horizon
        self._lag_ = int(getattr(self, "lag", 0))
        # {number: [level, decision or None, p-value]} of tests whose decision is
        # not known yet, to the levels of others.
        self._pending_ = {}
        # Whether any test had another weight than 1.
        self._weighted_ = False
        # Whether any began while another's decision was not known.
        self._overlapped_ = False
        self._begin()
        self._next_ = None

    @property
    def n_tests_(self) -> int:
        """Number of tests that have begun."""
        self._start()
        return self._n_tests_

    @property
    def n_rejections_(self) -> int:
        """Number of rejections that levels know of."""
        self._start()
        return self._n_rejections_

    @property
    def n_running_(self) -> int:
        """Number of tests that have begun and not ended."""
        self._start()
        return sum(decision is None for _, decision, _ in self._pending_.values())

    @property
    def next_level_(self) -> float:
        """Level of the next test."""
        self._start()
        return self._known_level()

    def _known_level(self):
        if self._next_ is None:
            over = self._n_tests_ >= self._last_
            level = 0.0 if over else min(self._level(), 1.0)
            if self._weighted_:
                # Others may have had what was meant for this test.
                level = max(min(level, self._most()), 0.0)
            self._next_ = level
        return self._next_

    def _weighted_level(self, weight):
        try:
            found = float(weight) if is_number(weight) else np.nan
        except OverflowError:
            found = np.inf
        if not 0.0 <= found <= _LARGEST_WEIGHT:
            raise ValueError(
                f"weight must be a number from 0 to {_LARGEST_WEIGHT:g}; got "
                f"{weight!r}."
            )
        level, weight = self._known_level(), found
        if weight == 1.0:
            return level
        self._weighted_ = True
        return max(min(weight * level, self._most(), 1.0), 0.0)

    @property
    def wealth_(self) -> float:
        """What is left to spend."""
        self._start()
        return self._wealth()

    @property
    def fdp_estimate_(self) -> float:
        """Estimate of the share of false discoveries among all so far."""
        self._start()
        return self._charged() / max(self._n_rejections_, 1)

    def _charged(self):
        """Return what all tests so far have cost."""
        return self._spent_

    def _check_value(self, value):
        """Return what is tested, checked."""
        if not is_number(value) or not 0.0 <= value <= 1.0:
            raise ValueError(f"p_value must be in [0, 1]; got {value!r}.")
        return float(value)

    def _decide(self, value, level):
        return bool(0.0 < level and value <= level)

    def test(self, p_value: float, weight: float = _ONE) -> bool:
        """Test the next hypothesis.

        Parameters
        ----------
        p_value : float
            Its p-value.
        weight : float, default=1.0
            How much more than usual this test may spend, decided upon without a look at
            its p-value: its level is so many times as large, as far as the wealth goes,
            and so is what it costs. With other weights than 1 the mFDR is controlled
            where the FDR would be.

        Returns
        -------
        rejected : bool
            Whether the p-value is at most the level (and the level is not 0).
        """
        p_value = self._check_value(p_value)
        self._start()
        level = self._known_level() if weight is _ONE else self._weighted_level(weight)
        rejected = self._decide(p_value, level)
        self._update(rejected, level, p_value)
        return rejected

    def update(self, rejected: bool, p_value: float | None = None) -> Self:
        """Say how the next test was decided, at ``next_level_`` by other means.

        Parameters
        ----------
        rejected : bool
            Whether its hypothesis was rejected.
        p_value : float, default=None
            Its p-value, which SAFFRON and ADDIS need.

        Returns
        -------
        self : object
            The procedure.
        """
        rejected, p_value = self._check_decision(rejected, p_value)
        self._start()
        self._update(rejected, self._known_level(), p_value)
        return self

    def _check_decision(self, rejected, p_value):
        if not isinstance(rejected, (bool, np.bool_)):
            raise ValueError(f"rejected must be True or False; got {rejected!r}.")
        if p_value is None and self._needs_p_value:
            raise ValueError(
                f"{type(self).__name__} needs p_value as well as rejected: its levels "
                "depend on which p-values are large."
            )
        if p_value is not None:
            p_value = self._check_value(p_value)
        return bool(rejected), p_value

    def begin(self, weight: float = 1.0) -> RunningTest:
        """Begin a test, whose p-value may come after others have begun.

        Its level is fixed now, from what is known now: tests that go on count as if
        they were to find nothing. The false discovery rate that is controlled is then
        the mFDR (of LOND and ELOND still the FDR).

        Parameters
        ----------
        weight : float, default=1.0
            As of `test`.

        Returns
        -------
        running : RunningTest
            Its number and level, for `finish`.
        """
        self._start()
        level = self._weighted_level(weight)
        self._check_overlap()
        self._overlapped_ |= bool(self._pending_ or self._lag_)
        self._charge(level)
        self._pending_[self._n_tests_] = [level, None, None]
        self._next_ = None
        self._release()
        return RunningTest(self._n_tests_, level)

    def finish(
        self,
        running: RunningTest | int,
        p_value: float | None = None,
        *,
        rejected: bool | None = None,
    ) -> bool:
        """End a test that has begun.

        Parameters
        ----------
        running : RunningTest or int
            What `begin` returned, or its number.
        p_value : float, default=None
            The p-value (of ELOND the e-value).
        rejected : bool, default=None
            The decision, if it was made by other means; otherwise it is whether the
            p-value is at most the level.

        Returns
        -------
        rejected : bool
            Whether its hypothesis is rejected.
        """
        self._start()
        number = running.number if isinstance(running, RunningTest) else running
        entry = self._pending_.get(number) if _is_count(number, 1) else None
        if entry is None or entry[1] is not None:
            raise ValueError(f"test {number!r} has not begun, or has ended.")
        if isinstance(running, RunningTest) and running.level != entry[0]:
            raise ValueError(
                f"test {number} has level {entry[0]}, not {running.level}: it is of "
                "another procedure."
            )
        if rejected is None:
            if p_value is None:
                raise ValueError(
                    f"finish needs p_value, or rejected; got neither of test {number}."
                )
            p_value = self._check_value(p_value)
            rejected = self._decide(p_value, entry[0])
        else:
            rejected, p_value = self._check_decision(rejected, p_value)
        entry[1:] = rejected, self._kept(p_value)
        self._next_ = None
        self._release(number)
        return rejected

    def _check_overlap(self):
        return None

    def _kept(self, value):
        """Return what is to be kept of a value until the decision is known.

        E-values may be infinite, which JSON does not know.
        """
        return value if self._needs_p_value else None

    def _release(self, number=None):
        """Let levels know of decisions, but not of the last `lag` tests.

        Without a lag that of test `number`; None is of none.
        """
        latest, ready = self._n_tests_ - self._lag_, []
        if not self._lag_:
            ready = [] if number is None else [number]
        else:
            for other, entry in self._pending_.items():
                if other > latest:
                    break
                if entry[1] is not None:
                    ready.append(other)
        for other in ready:
            level, rejected, p_value = self._pending_.pop(other)
            self._n_rejections_ += rejected
            self._record(rejected, level, other, p_value)

    def _update(self, rejected, level, p_value):
        if self._pending_ or self._lag_:
            self._check_overlap()
            self._overlapped_ = True
            self._charge(level)
            self._pending_[self._n_tests_] = [level, rejected, self._kept(p_value)]
            self._release(self._n_tests_)
        else:
            self._charge(level)
            if rejected:
                self._n_rejections_ += 1
            self._record(rejected, level, self._n_tests_, p_value)
        self._next_ = None

    def _charge(self, level):
        self._n_tests_ += 1
        self._spend(level)

    def _spend(self, cost):
        # Compensated: the wealth is a difference of long sums.
        term = cost - self._lost_
        total = self._spent_ + term
        self._lost_ = (total - self._spent_) - term
        self._spent_ = total

    @unchanged_on_error
    def fit(
        self, p_values: ArrayLike, y: None = None, *, weights: ArrayLike | None = None
    ) -> Self:
        """Start afresh, and test many hypotheses in their order.

        Parameters
        ----------
        p_values : array-like of shape (n_tests,)
            Their p-values.
        y : None
            Ignored.
        weights : array-like of shape (n_tests,), default=None
            As of `test`.

        Returns
        -------
        self : object
            The procedure, with ``rejected_``, ``levels_`` and ``wealth_path_``.
        """
        values = self._check_values(p_values)
        if weights is None:
            weights = [_ONE] * len(values)
        else:
            weights = as_floats(weights, "weights")
            if (
                weights.shape != values.shape
                or not ((weights >= 0.0) & (weights <= _LARGEST_WEIGHT)).all()
            ):
                raise ValueError(
                    "weights must be numbers, 0 or more, one for each test; got "
                    f"{weights!r}."
                )
            weights = weights.tolist()
        self._check()
        self.reset()
        self._start()
        levels, rejected, wealth = [], [], []
        for value, weight in zip(values.tolist(), weights, strict=True):
            level = (
                self._known_level() if weight is _ONE else self._weighted_level(weight)
            )
            decision = self._decide(value, level)
            self._update(decision, level, value)
            levels.append(level)
            rejected.append(decision)
            wealth.append(self._wealth())
        self.rejected_ = np.array(rejected, dtype=bool)
        self.levels_ = np.array(levels, dtype=np.float64)
        self.wealth_path_ = np.array(wealth, dtype=np.float64)
        return self

    def _check_values(self, values):
        values = as_floats(values, f"{self._argument}s", ndim=None)
        if values.ndim != 1:
            raise ValueError(
                f"{self._argument}s must be one-dimensional; got shape {values.shape}."
            )
        if not ((values >= 0.0) & (values <= 1.0)).all():
            raise ValueError("p_values must be in [0, 1], without NaN.")
        return values

    def reset(self) -> Self:
        """Forget all tests.

        Returns
        -------
        self : object
            The procedure.
        """
        for name in list(vars(self)):
            if name.endswith("_") and not name.startswith("__"):
                delattr(self, name)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = {name: plain(value) for name, value in self._given_.items()}
        return {
            "procedure": type(self).__name__,
            "params": params,
            "n_tests": self._n_tests_,
            "n_rejections": self._n_rejections_,
            "spent": self._spent_,
            "lost": self._lost_,
            "weighted": self._weighted_,
            "overlapped": self._overlapped_,
            "pending": [[n, *entry] for n, entry in self._pending_.items()],
            "state": self._state(),
        }

    @classmethod
    @reads_state
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the procedure that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`.

        Returns
        -------
        procedure : object
            Goes on where the other was.

        Raises
        ------
        ValueError
            For what is no state, or cannot be one: its values must go together.
        """
        given = State(state)
        check_procedure(given, cls)
        found = cls(**given.params(cls))
        found._start()
        n = found._n_tests_ = given.count("n_tests")
        found._spent_ = given.number("spent", 0.0)
        most = _LARGEST_LOSS * found._spent_
        found._lost_ = given.number("lost", -most, most)
        # The first version knew neither weights nor tests that go on.
        found._weighted_ = "weighted" in given and given.flag("weighted")
        found._overlapped_ = "overlapped" not in given or given.flag("overlapped")
        if "pending" in given:
            found._restore_pending(given.rows("pending", 4))
        found._n_rejections_ = given.count("n_rejections", 0, n - len(found._pending_))
        found._restore(given.part("state"))
        found._check_restored()
        return found

    def _restore_pending(self, rows):
        """Take the tests whose decision is not known."""
        last, unknown = 0, self._n_tests_ - self._lag_
        for number, level, rejected, p_value in rows:
            if not _is_count(number, last + 1) or number > self._n_tests_:
                refuse(
                    "the number of a test that is pending", number,
                    f"an integer from {last + 1} to {self._n_tests_}",
                )  # fmt: skip
            what = f"of test {number}, which is pending,"
            if not is_probability(level):
                refuse(f"the level {what}", level, "in [0, 1]")
            if rejected is not None and not isinstance(rejected, (bool, np.bool_)):
                refuse(f"the decision {what}", rejected, "True, False or None")
            if rejected is None and p_value is not None:
                refuse(f"the value {what}", p_value, "None without a decision")
            if rejected is not None:
                # What is known is kept for the lag only.
                if number <= unknown:
                    refuse(f"the decision {what}", rejected, "None")
                rejected, p_value = self._check_decision(rejected, p_value)
            self._pending_[int(number)] = [float(level), rejected, p_value]
            last = int(number)

    def _check_restored(self):
        """Refuse numbers that no tests lead to: they could spend what is not there.

        Levels may be as large as the wealth that is left, whatever the state is.
        """
        pending = self._spent_on_pending()
        at_most("the sum of levels that are pending", pending, self._spent_)
        self._check_spent()
        at_least("the wealth", self._wealth(), -ROUNDING * self._charged())

    def _cost_of(self, level, rejected, p_value):
        """Return what a test whose decision is known has taken of the wealth."""
        return level

    def _spent_on_pending(self):
        """Return what of the sum that was spent is of tests that are pending."""
        return sum(level for level, _, _ in self._pending_.values())

    def _n_spending(self):
        """Return the number of tests whose level need not be 0."""
        return int(min(self._n_tests_, self._last_))

    def _state(self):
        return {}

    def _restore(self, state):
        return None


def _is_count(value, least):
    is_int = isinstance(value, Integral) and not isinstance(value, bool)
    return is_int and value >= least
