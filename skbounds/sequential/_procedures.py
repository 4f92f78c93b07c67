"""Online procedures: the level of each test is known before its p-value."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from skbounds._states import agree, at_least, at_most
from skbounds.sequential._functions import is_number
from skbounds.sequential._history import ExactHistory, RejectionHistory, read_history
from skbounds.sequential._online_procedure import OnlineProcedure
from skbounds.sequential._sequences import Gamma

# Levels that are a smaller share than that, or of older rejections, are taken to be 0.
_FORGOTTEN, _LONGEST = 1e-18, 2**20
# Error of levels that are summed by groups.
GROUPED = 1e-5


class LORDFamily(OnlineProcedure):
    """Procedures with a sequence gamma."""

    # Whether gamma must not increase.
    _decreasing = False

    def _gamma(self):
        return Gamma(self.gamma, self.horizon, decreasing=self._decreasing)

    def _read_tau(self, state):
        """Return the number of tests at the last rejection, 0 before the first."""
        least = self._n_rejections_
        return state.count("tau", least, self._n_tests_ if least else 0)

    def _starting_wealth(self, warn=False):
        w0 = self.w0
        if w0 is None:
            return 0.5 * float(self.alpha)
        if not is_number(w0) or not 0.0 < w0 < self.alpha:
            raise ValueError(
                f"w0 must be in (0, alpha) = (0, {self.alpha}); got {w0!r}."
            )
        if warn and not 1e-3 <= w0 / self.alpha <= 1.0 - 1e-3:
            limit, when = (
                ("0", "before") if w0 < 0.5 * self.alpha else ("alpha", "after")
            )
            warnings.warn(
                f"w0={w0!r} is close to {limit}: hardly anything is left for tests "
                f"{when} the first rejection.",
                UserWarning,
                stacklevel=3,
            )
        return float(w0)


class LORD(LORDFamily):
    """Levels based on recent discovery: online control of the mFDR.

    Wealth that is spent on tests and earned by rejections: the level of test j is
    gamma_{j - tau} W(tau), with the last rejection tau before j and the wealth W(tau)
    after it; each test costs its level, each rejection earns alpha - w0 (Procedure 2 of
    [1]_).

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    w0 : float, default=None
        Wealth at the start, in (0, alpha). None is alpha / 2. Within a thousandth of
        alpha of either end there is a warning.
    gamma : {"log", "power"} or array-like, default="log"
        How wealth is spread over tests: a sequence of sum 1 that is proportional to
        log(max(j, 2)) / (j exp(sqrt(log(j)))) or to j^-1.6, or numbers of sum at most 1
        (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only: more powerful until then; levels are 0
        afterwards.
    lag : int, default=0
        Levels do not depend on the last so many decisions: for p-values that may depend
        on those of so many tests before.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        W, what is left to spend.
    n_tests_ : int
        Number of tests so far.
    rejected_ : ndarray of shape (n_tests,)
        After `fit`: the decisions.
    levels_ : ndarray of shape (n_tests,)
        After `fit`: the levels.
    wealth_path_ : ndarray of shape (n_tests,)
        After `fit`: the wealth after each test.
    fdp_estimate_ : float
        Estimate of the share of false discoveries: the sum of levels over the number of
        rejections.
    n_running_ : int
        Number of tests that have begun and not ended.

    See Also
    --------
    LORDPrime : Controls the FDR as well.
    LORDPlusPlus : Rewards of all rejections, not only of the last.

    Notes
    -----
    If p-values are valid given the past decisions, E V <= w0 + (alpha - w0) E R, V
    being the number of false rejections among R: the mFDR, E V / (E R + 1), is at most
    alpha after each number of tests (Theorem 4). The wealth may exceed alpha after many
    discoveries.

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017.
    .. [2] A. Javanmard and A. Montanari, "Online rules for control of false discovery
       rate and false discovery exceedance", Annals of Statistics 46, 2018.

    Examples
    --------
    >>> from skbounds.sequential import LORD
    >>> procedure = LORD(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, False]
    >>> print(f"{procedure.next_level_:.6f}")
    0.001678
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        w0: float | None = None,
        gamma: Literal["log", "power"] | ArrayLike = "log",
        horizon: int | None = None,
        lag: int = 0,
    ) -> None:
        self.alpha = alpha
        self.w0 = w0
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag

    def _check(self):
        super()._check()
        self._starting_wealth()
        self._gamma()

    def _begin(self):
        self._gamma_, self._w0_ = self._gamma(), self._starting_wealth(warn=True)
        self._tau_, self._wealth_at_tau_ = 0, self._w0_

    def _level(self):
        return self._gamma_[self._n_tests_ + 1 - self._tau_] * self._wealth_at_tau_

    def _wealth(self):
        earned = (self._alpha_ - self._w0_) * self._n_rejections_
        return self._w0_ + earned - self._spent_

    def _most(self):
        return self._wealth()

    def _record(self, rejected, level, number, p_value):
        if rejected:
            self._tau_, self._wealth_at_tau_ = self._n_tests_, self._wealth()

    def _state(self):
        return {"tau": self._tau_, "wealth_at_tau": self._wealth_at_tau_}

    def _restore(self, state):
        self._tau_ = self._read_tau(state)
        self._wealth_at_tau_ = state.number("wealth_at_tau", 0.0)

    def _check_spent(self):
        tau, at_tau = self._tau_, self._wealth_at_tau_
        earned = (self._alpha_ - self._w0_) * self._n_rejections_
        at_most("'wealth_at_tau'", at_tau, self._w0_ + earned)
        # What was spent since.
        since, n = at_tau - self._wealth(), max(self._n_spending() - tau, 0)
        if not tau:
            agree("'wealth_at_tau'", at_tau, self._w0_)
        if self._weighted_:
            at_least("'wealth_at_tau'", at_tau, self._wealth(), scale=earned)
            return
        # A difference of sums.
        scale = self._spent_ + at_tau
        most = at_tau * float(self._gamma_.sum(n))
        at_most("'spent' since 'tau'", since, most, scale=scale)
        # Levels are cut off at 1.
        least = at_tau * self._gamma_.capped_sum(n, 1.0 / max(at_tau, 1e-300))
        at_least("'spent' since 'tau'", since, least, scale=scale)


class LORDPrime(LORDFamily):
    """Levels that start again at each discovery: online control of the FDR.

    The level of test j is alpha gamma_{j - tau} with the last rejection tau before j:
    wealth is alpha again after each rejection (section 4.4 of [1]_, "LORD '15").

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    gamma : {"log", "power"} or array-like, default="log"
        How wealth is spread over tests: a sequence of sum 1 that is proportional to
        log(max(j, 2)) / (j exp(sqrt(log(j)))) or to j^-1.6, or numbers of sum at most 1
        (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only: more powerful until then; levels are 0
        afterwards.
    lag : int, default=0
        Levels do not depend on the last so many decisions: for p-values that may depend
        on those of so many tests before.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        What is left to spend before the next rejection.
    n_tests_ : int
        Number of tests so far.
    rejected_ : ndarray of shape (n_tests,)
        After `fit`: the decisions.
    levels_ : ndarray of shape (n_tests,)
        After `fit`: the levels.
    wealth_path_ : ndarray of shape (n_tests,)
        After `fit`: the wealth after each test.
    fdp_estimate_ : float
        Estimate of the share of false discoveries: the sum of levels over the number of
        rejections.
    n_running_ : int
        Number of tests that have begun and not ended.

    See Also
    --------
    LORD : More powerful, controls the mFDR.

    Notes
    -----
    If p-values are valid given the last rejection, FDR and mFDR are at most alpha after
    each number of tests (Theorem 5).

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017.

    Examples
    --------
    >>> from skbounds.sequential import LORDPrime
    >>> procedure = LORDPrime(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, False]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        gamma: Literal["log", "power"] | ArrayLike = "log",
        horizon: int | None = None,
        lag: int = 0,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag

    def _check(self):
        super()._check()
        self._gamma()

    def _begin(self):
        self._gamma_ = self._gamma()
        self._tau_, self._spent_at_tau_ = 0, 0.0

    def _level(self):
        return self._alpha_ * self._gamma_[self._n_tests_ + 1 - self._tau_]

    def _wealth(self):
        return self._alpha_ - (self._spent_ - self._spent_at_tau_)

    def _most(self):
        return self._wealth()

    def _record(self, rejected, level, number, p_value):
        if rejected:
            self._tau_, self._spent_at_tau_ = self._n_tests_, self._spent_

    def _state(self):
        return {"tau": self._tau_, "spent_at_tau": self._spent_at_tau_}

    def _restore(self, state):
        self._tau_ = self._read_tau(state)
        self._spent_at_tau_ = state.number("spent_at_tau", 0.0)

    def _check_spent(self):
        tau, before = self._tau_, self._spent_at_tau_
        at_most("'spent_at_tau'", before, min(self._spent_, self._alpha_ * tau))
        at_most("'spent_at_tau'", before, self._alpha_ * self._n_rejections_)
        if not self._weighted_:
            n = max(self._n_spending() - tau, 0)
            expected = before + self._alpha_ * float(self._gamma_.sum(n))
            agree("'spent'", self._spent_, expected)


class LORDPlusPlus(LORDFamily):
    """Levels that all discoveries add to: online control of the FDR.

    The level of test j is
    gamma_j w0 + (alpha - w0) gamma_{j - tau_1} + alpha sum_{q >= 2} gamma_{j - tau_q}
    over the rejections tau_1 < tau_2 < ... before j [1]_. Of the default sequence gamma
    old rejections are summed by groups: levels are never above the exact ones, and
    within 1e-6 of them.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    w0 : float, default=None
        Wealth at the start, in (0, alpha). None is alpha / 2. Within a thousandth of
        alpha of either end there is a warning.
    gamma : {"log", "power"} or array-like, default="log"
        How wealth is spread over tests: a sequence of sum 1 that is proportional to
        log(max(j, 2)) / (j exp(sqrt(log(j)))) or to j^-1.6, or numbers of sum at most 1
        (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only: more powerful until then; levels are 0
        afterwards.
    lag : int, default=0
        Levels do not depend on the last so many decisions: for p-values that may depend
        on those of so many tests before.

    memory : float, default=1.0
        Below 1 rejections are forgotten by and by, at a rate of `memory` per test, so
        that a good start cannot pay for false discoveries long after: what is
        controlled is the mFDR with weights memory^(t - j) of the decisions j up to any
        test t. Levels rest on recent discoveries only, and sink faster without any.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        What is left to spend.
    n_tests_ : int
        Number of tests so far.
    rejected_ : ndarray of shape (n_tests,)
        After `fit`: the decisions.
    levels_ : ndarray of shape (n_tests,)
        After `fit`: the levels.
    wealth_path_ : ndarray of shape (n_tests,)
        After `fit`: the wealth after each test.
    fdp_estimate_ : float
        Estimate of the share of false discoveries: the sum of levels over the number of
        rejections.
    n_running_ : int
        Number of tests that have begun and not ended.

    See Also
    --------
    LORD : Rewards of the last rejection only, earlier ones through the wealth.

    References
    ----------
    .. [1] A. Ramdas, F. Yang, M. Wainwright and M. Jordan, "Online control of the false
       discovery rate with decaying memory", NeurIPS 2017.

    Examples
    --------
    >>> from skbounds.sequential import LORDPlusPlus
    >>> procedure = LORDPlusPlus(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, False]
    >>> print(f"{procedure.next_level_:.6f}")
    0.001972
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        w0: float | None = None,
        gamma: Literal["log", "power"] | ArrayLike = "log",
        horizon: int | None = None,
        lag: int = 0,
        memory: float = 1.0,
    ) -> None:
        self.alpha = alpha
        self.w0 = w0
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag
        self.memory = memory

    def _check(self):
        super()._check()
        self._starting_wealth()
        self._gamma()
        if not is_number(self.memory) or not 0.0 < self.memory <= 1.0:
            raise ValueError(f"memory must be in (0, 1]; got {self.memory!r}.")
        if self.memory < 1.0 and self.lag:
            raise ValueError(
                f"memory={self.memory} is for tests without lag; got lag={self.lag}."
            )

    def _begin(self):
        self._gamma_, self._w0_ = self._gamma(), self._starting_wealth(warn=True)
        self._memory_ = float(self.memory)
        # Of the first rejections, and of those a share that is remembered.
        self._remembered_ = 0.0
        # What a rejection adds to the levels after it.
        self._decaying_ = self._gamma_
        if self._memory_ < 1.0:
            n = np.ceil(np.log(_FORGOTTEN) / np.log(self._memory_))
            most = _LONGEST if self.horizon is None else min(self.horizon, _LONGEST)
            n = int(min(n, most))
            table = self._gamma_.table(n)[:n] * self._memory_ ** np.arange(1, n + 1)
            self._decaying_ = Gamma(table, None)
        # Of an array no derivatives are known.
        kind = ExactHistory if self._decaying_.scale is None else RejectionHistory
        self._first_, self._later_ = 0, kind()

    def _level(self):
        j = self._n_tests_ + 1
        level = self._gamma_[j] * self._w0_
        if self._first_:
            if self._memory_ < 1.0:
                level *= self._memory_ ** (j - self._first_)
            level += (self._alpha_ - self._w0_) * self._decaying_[j - self._first_]
            if self._n_rejections_ > 1:
                level += self._alpha_ * self._later_.sum(j, self._decaying_)
        return level

    def _wealth(self):
        if self._memory_ < 1.0:
            earned = self._alpha_ * self._remembered_ if self._first_ else self._w0_
            return earned - self._spent_
        earned = self._w0_
        if self._n_rejections_:
            earned += self._alpha_ - self._w0_
            earned += self._alpha_ * (self._n_rejections_ - 1)
        return earned - self._spent_

    def _most(self):
        if self._memory_ < 1.0:
            earned = self._alpha_ * self._remembered_ if self._first_ else self._w0_
            # What was spent is worth less by then, and so is what was earned.
            decay = self._memory_ if self._first_ else 1.0
            return decay * earned - self._memory_ * self._spent_
        return self._wealth()

    @property
    def fdp_estimate_(self) -> float:
        """Estimate of the share of false discoveries among all so far."""
        if getattr(self, "_memory_", 1.0) < 1.0:
            return self._spent_ / max(self._remembered_, 1.0)
        return super().fdp_estimate_

    def _check_overlap(self):
        if self._memory_ < 1.0 and self._pending_:
            raise ValueError(
                f"memory={self._memory_} is for tests that do not overlap; finish the "
                "one that is running first."
            )

    def _charge(self, level):
        if self._memory_ < 1.0:
            self._spent_ *= self._memory_
            self._lost_ *= self._memory_
            self._remembered_ *= self._memory_
        super()._charge(level)

    def _record(self, rejected, level, number, p_value):
        if not rejected:
            return
        self._remembered_ += 1.0
        if not self._first_:
            self._first_ = self._n_tests_
        else:
            self._later_.add(self._n_tests_)

    def _state(self):
        return {
            "first": self._first_,
            "remembered": self._remembered_,
            **self._later_.state(),
        }

    def _restore(self, state):
        R, n = self._n_rejections_, self._n_tests_
        self._first_ = state.count("first", min(R, 1), n if R else 0)
        self._remembered_ = 0.0
        if "remembered" in state:
            self._remembered_ = state.number("remembered", 0.0, float(R))
        self._later_ = read_history(
            state, type(self._later_), self._first_, n, max(R - 1, 0),
            forgotten=n >= len(self._decaying_.table(1)), several=self._overlapped_,
        )  # fmt: skip

    def _check_spent(self):
        if self._memory_ < 1.0:
            self._check_decayed()
            return
        if self._weighted_:
            return
        n = self._n_spending()
        age = lambda tau: np.maximum(n - np.asarray(tau, dtype=np.float64), 0.0)
        expected = self._w0_ * float(self._gamma_.sum(n))
        if self._n_rejections_:
            pay, total = self._alpha_ - self._w0_, self._later_.total(age, self._gamma_)
            expected += pay * float(self._gamma_.sum(age(self._first_)))
            total += self._n_forgotten() * float(self._gamma_.sum(n))
            expected += self._alpha_ * total
        at_most("'spent'", self._spent_, expected)
        if not self._overlapped_:
            # Otherwise levels may have been cut off at 1; groups are within 1e-6.
            at_least("'spent'", self._spent_, expected, GROUPED)

    def _n_forgotten(self):
        return max(self._n_rejections_ - 1, 0) - self._later_.size()

    def _check_decayed(self):
        """Do the same with memory < 1, where all sums decay."""
        d, n, first = self._memory_, self._n_tests_, self._first_
        times = np.r_[float(first), self._later_.recent] if first else np.empty(0)
        remembered = float(np.sum(d ** (n - times)))
        # What is forgotten is below rounding, but for horizons.
        slack = GROUPED + self._n_forgotten() * _FORGOTTEN / max(remembered, 1e-300)
        table = len(self._decaying_.table(1))
        whole = n <= self._last_ and d ** min(table, n) <= _FORGOTTEN**0.99
        if n <= table or whole:
            agree("'remembered'", self._remembered_, remembered, slack)
        if self._weighted_ or n > min(self._last_, _LONGEST):
            return
        spent = np.maximum(n - times, 0.0)
        sums = d**spent * self._gamma_.sum(spent)
        levels = self._gamma_.table(max(n, 1))
        begin = first or n
        decayed = levels[:begin] * d ** np.arange(n - 1.0, n - 1.0 - begin, -1.0)
        expected = float(decayed.sum())
        if first:
            expected += float(d ** (n - first) * levels[first:n].sum())
        expected *= self._w0_
        if first:
            expected += (self._alpha_ - self._w0_) * float(sums[0])
            expected += self._alpha_ * float(sums[1:].sum())
        agree("'spent'", self._spent_, expected, GROUPED)


class AlphaSpending(OnlineProcedure):
    """Levels 6 alpha / (pi^2 j^2): control of any false rejection at all.

    The sum of all levels is alpha (Bonferroni), so that the probability of one or more
    false rejections is at most alpha, whatever the dependence of the p-values.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, default=0.05
        The family-wise error rate that is allowed.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        What is left of alpha.
    n_tests_ : int
        Number of tests so far.
    rejected_ : ndarray of shape (n_tests,)
        After `fit`: the decisions.
    levels_ : ndarray of shape (n_tests,)
        After `fit`: the levels.
    wealth_path_ : ndarray of shape (n_tests,)
        After `fit`: the wealth after each test.
    fdp_estimate_ : float
        Estimate of the share of false discoveries: the sum of levels over the number of
        rejections.
    n_running_ : int
        Number of tests that have begun and not ended.

    See Also
    --------
    LORD : Allows for a share of false rejections.

    Examples
    --------
    >>> from skbounds.sequential import AlphaSpending
    >>> print(f"{AlphaSpending(0.1).next_level_:.4f}")
    0.0608
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def _begin(self):
        return None

    def _level(self):
        return 6.0 * self._alpha_ / (np.pi * (self._n_tests_ + 1)) ** 2

    def _wealth(self):
        return self._alpha_ - self._spent_

    def _most(self):
        return self._wealth()

    def _record(self, rejected, level, number, p_value):
        return None

    def _check_spent(self):
        if not self._weighted_:
            left = float(zeta(2.0, self._n_tests_ + 1.0)) / float(zeta(2.0, 1.0))
            agree("'spent'", self._spent_, self._alpha_ * (1.0 - left))
            for number, (level, _, _) in self._pending_.items():
                known = 6.0 * self._alpha_ / (np.pi * number) ** 2
                agree(f"the level of test {number}", level, known)


class Uncorrected(OnlineProcedure):
    """Every test at level alpha: what is done without a correction.

    To compare with (MAB-IND of the thesis). Of true hypotheses a share alpha is
    rejected, of which discoveries may be mostly made up.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The level.

    Attributes
    ----------
    next_level_ : float
        alpha.
    wealth_ : float
        Always infinite.
    n_tests_ : int
        Number of tests so far.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    ADDIS : Controls the false discovery rate.

    Examples
    --------
    >>> from skbounds.sequential import Uncorrected
    >>> Uncorrected(0.1).next_level_
    0.1
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def _begin(self):
        return None

    def _level(self):
        return self._alpha_

    def _wealth(self):
        return np.inf

    def _most(self):
        return 1.0

    def _record(self, rejected, level, number, p_value):
        return None

    def _check_spent(self):
        at_most("'spent'", self._spent_, float(self._n_tests_))
        if not self._weighted_:
            agree("'spent'", self._spent_, self._alpha_ * self._n_tests_)
            for number, (level, _, _) in self._pending_.items():
                agree(f"the level of test {number}", level, self._alpha_)
