"""Procedures that do not pay for p-values that are no candidates for a rejection."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skbounds._states import State, at_least, at_most, refuse
from skbounds.sequential._functions import is_number
from skbounds.sequential._history import ExactHistory, RejectionHistory, read_history
from skbounds.sequential._procedures import GROUPED, LORDFamily


class _Adaptive(LORDFamily):
    """Levels by the number of tests that count.

    With N(k) tests that count after test k, the payments alpha - w0 for the first
    rejection and alpha for each later one, and a share f,

        level = min(cap, f [w0 gamma(N(0) + 1) + sum_q pay_q gamma(N(kappa_q) + 1)]).

    Tests whose decision is not known count. kappa_q is the number of tests that had
    begun when the q-th rejection became known.

    Subclasses have ``_counts(level, rejected, p_value)`` and ``_scaled(level)``.
    """

    _needs_p_value = True
    _decreasing = True

    def _check(self):
        super()._check()
        self._starting_wealth()
        self._gamma()

    def _begin(self):
        self._gamma_, self._w0_ = self._gamma(), self._starting_wealth(warn=True)
        kind = ExactHistory if self._gamma_.scale is None else RejectionHistory
        # Tests that count, and how many of them there were at rejections. The first one
        # is by itself, -1 before.
        self._used_, self._first_, self._later_ = 0, -1, kind()
        # Of rejections while tests before them are pending: kappa, and the position,
        # which moves once it is known that those do not count.
        self._kappas_, self._open_ = array("q"), array("q")

    def _level(self):
        now = self._used_ + 1
        level = self._w0_ * self._gamma_[now]
        pay = [self._alpha_ - self._w0_, self._alpha_]
        n_open, start = len(self._open_), 0
        if self._first_ >= 0:
            level += pay[0] * self._gamma_[now - self._first_]
            if self._n_rejections_ > n_open + 1:
                level += pay[1] * self._later_.sum(now, self._gamma_)
        elif n_open:
            level += pay[0] * self._gamma_[now - self._open_[0]]
            start = 1
        if n_open > start:
            ages = now - np.frombuffer(self._open_, dtype=np.int64)[start:]
            table = self._gamma_.table(int(ages.max()))
            level += pay[1] * float(table[ages - 1].sum())
        return self._scaled(level)

    def _charge(self, level):
        self._n_tests_ += 1
        self._used_ += 1

    def _record(self, rejected, level, number, p_value):
        if self._counts(level, rejected, p_value):
            self._spend(self._cost(level))
        else:
            self._used_ -= 1
            if self._open_:
                after = bisect_left(self._kappas_, number)
                np.frombuffer(self._open_, dtype=np.int64)[after:] -= 1
        if rejected:
            self._kappas_.append(self._n_tests_)
            self._open_.append(self._used_)
        if self._open_:
            oldest = next(iter(self._pending_), np.inf)
            n_known = bisect_left(self._kappas_, oldest)
            for position in self._open_[:n_known]:
                if self._first_ < 0:
                    self._first_ = position
                else:
                    self._later_.add(position)
            del self._kappas_[:n_known], self._open_[:n_known]

    def _cost(self, level):
        """Return what a test that counts takes of the wealth."""
        return level / self._share_

    def _cost_of(self, level, rejected, p_value):
        counts = self._counts(level, rejected, p_value)
        return self._cost(level) if counts else 0.0

    def _spent_on_pending(self):
        # They are charged when it is known whether they count.
        return 0.0

    def _charged(self):
        running = (self._cost(level) for level, _, _ in self._pending_.values())
        return self._spent_ + sum(running)

    def _wealth(self):
        return self._alpha_ * max(self._n_rejections_, 1) - self._charged()

    def _earned(self):
        if self._n_rejections_:
            return self._alpha_ * self._n_rejections_
        return self._w0_

    def _most(self):
        return self._scaled(self._earned() - self._charged())

    def _share_of(self, level):
        """Return what a sum is worth as a level, if that is not cut off."""
        return self._share_ * level

    def _state(self):
        return {
            "used": self._used_,
            "first": self._first_,
            "open": [
                list(pair) for pair in zip(self._kappas_, self._open_, strict=True)
            ],
            **self._later_.state(),
        }

    def _restore(self, state):
        R, n = self._n_rejections_, self._n_tests_
        used = self._used_ = state.count("used", len(self._pending_), n)
        pairs = state.rows("open", 2)
        kappas, positions = (
            State({name: [pair[k] for pair in pairs]}, "'open'").counts(
                name, None, 0, m
            )
            for k, (name, m) in enumerate((("kappas", n), ("positions", used)))
        )
        if (np.diff(kappas) < 0).any() or (np.diff(positions) < 0).any():
            refuse("'open'", pairs, "rejections in their order")
        if len(pairs) > (R if self._pending_ else 0):
            refuse("'open'", pairs, "rejections while tests before them go on")
        self._kappas_, self._open_ = array("q", kappas), array("q", positions)
        settled = R - len(pairs)
        self._first_ = state.count("first", -1 if not settled else 0, used)
        if not settled and self._first_ >= 0:
            refuse("'first'", self._first_, "-1 without a rejection")
        # Several rejections come while the same tests count.
        self._later_ = read_history(
            state, type(self._later_), max(self._first_, 0), used, max(settled - 1, 0),
            forgotten=used >= len(self._gamma_.table(1)), several=True,
        )  # fmt: skip

    def _check_spent(self):
        at_most("'spent'", self._charged(), self._earned())
        if self._weighted_:
            return
        # Tests that count cost what their numbers say; where tests overlap their levels
        # are less than that, as more of them seem to count.
        used, gamma = self._used_, self._gamma_
        age = lambda position: used - np.asarray(position, dtype=np.float64)
        expected = self._w0_ * float(gamma.sum(used))
        settled = self._n_rejections_ - len(self._open_)
        positions = list(self._open_)
        total = 0.0
        if settled:
            positions.insert(0, self._first_)
            total = self._later_.total(age, gamma)
            total += (settled - 1 - self._later_.size()) * float(gamma.sum(used))
        if positions:
            sums = gamma.sum(age(positions))
            expected += (self._alpha_ - self._w0_) * float(sums[0])
            total += float(sums[1:].sum())
        expected += self._alpha_ * total
        at_most("'spent'", self._charged(), expected)
        # Of gamma at different ages no more than 1 comes together.
        most = max(self._later_.largest(), 1.0) + 1.0
        largest = self._w0_ + self._alpha_ * most
        cut = self._scaled(largest) < self._share_of(largest)
        if not (self._overlapped_ or cut or self._n_tests_ > self._last_):
            at_least("'spent'", self._charged(), expected, GROUPED)


def _check_share(name, value):
    if not is_number(value) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be in (0, 1); got {value!r}.")
    return float(value)


class SAFFRON(_Adaptive):
    """Levels that only large p-values are charged for: online control of the FDR.

    P-values of at most `lam` are candidates and cost nothing: where many hypotheses are
    false, or p-values of true ones are small by chance no more often than uniform ones,
    it is more powerful than `LORDPlusPlus` [1]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    lam : float, default=0.5
        Largest p-value of a candidate, in (0, 1).
    w0 : float, default=None
        Wealth at the start, in (0, alpha). None is alpha / 2.
    gamma : {"power", "log"} or array-like, default="power"
        How wealth is spread over tests that count: as j^-1.6 or as in `LORD`, or
        numbers that do not increase, of sum at most 1 (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only; levels are 0 after as many tests.
    lag : int, default=0
        Levels do not depend on the last so many decisions: for p-values that may depend
        on those of so many tests before.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value; at most `lam`.
    wealth_ : float
        alpha max(R, 1) minus what tests have cost, level / (1 - lam) of each p-value
        above `lam`.
    fdp_estimate_ : float
        Estimate of the share of false discoveries: these costs over max(R, 1), never
        above alpha.
    n_tests_ : int
        Number of tests so far.
    n_running_ : int
        Number of tests that have begun and not ended.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    ADDIS : Also ignores p-values near 1.
    LORDPlusPlus : Needs decisions only.

    Notes
    -----
    FDR at most alpha for independent p-values; mFDR for p-values that are valid given
    the past, also where tests overlap.

    References
    ----------
    .. [1] A. Ramdas, T. Zrnic, M. Wainwright and M. Jordan, "SAFFRON: an adaptive
       algorithm for online control of the false discovery rate", ICML 2018.
    .. [2] T. Zrnic, A. Ramdas and M. Jordan, "Asynchronous online testing of multiple
       hypotheses", Journal of Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from skbounds.sequential import SAFFRON
    >>> procedure = SAFFRON(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, True]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        lam: float = 0.5,
        w0: float | None = None,
        gamma: Literal["power", "log"] | ArrayLike = "power",
        horizon: int | None = None,
        lag: int = 0,
    ) -> None:
        self.alpha = alpha
        self.lam = lam
        self.w0 = w0
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag

    def _check(self):
        super()._check()
        _check_share("lam", self.lam)

    def _begin(self):
        super()._begin()
        self._lam_ = float(self.lam)
        self._share_ = 1.0 - self._lam_

    def _scaled(self, level):
        return min(self._share_ * level, self._lam_)

    def _counts(self, level, rejected, p_value):
        return p_value > self._lam_


class ADDIS(_Adaptive):
    """SAFFRON that discards large p-values: the default of `MABFDR`.

    P-values above `tau` neither cost nor count. Under true hypotheses that are not at
    the border of the null, p-values are near 1 more often than uniform ones, as those
    of bandits are; others pay for them, this does not [1]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    tau : float, default=0.5
        Larger p-values are discarded; in (0, 1).
    lam : float, default=0.25
        Largest p-value of a candidate, in (0, tau).
    w0 : float, default=None
        Wealth at the start, in (0, alpha). None is alpha / 2.
    gamma : {"power", "log"} or array-like, default="power"
        How wealth is spread over tests that count: as j^-1.6 or as in `LORD`, or
        numbers that do not increase, of sum at most 1 (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only; levels are 0 after as many tests.
    lag : int, default=0
        Levels do not depend on the last so many decisions: for p-values that may depend
        on those of so many tests before.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value; at most `lam`.
    wealth_ : float
        alpha max(R, 1) minus what tests have cost, level / (tau - lam) of each p-value
        in (lam, tau].
    fdp_estimate_ : float
        Estimate of the share of false discoveries: these costs over max(R, 1), never
        above alpha.
    n_tests_ : int
        Number of tests so far.
    n_running_ : int
        Number of tests that have begun and not ended.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    SAFFRON : Without discarding.

    Notes
    -----
    FDR at most alpha for independent p-values that are uniformly conservative under the
    null, P(p <= x) / x not decreasing in x: of one-sided tests of normal means and
    other exponential families, and of uniform p-values. mFDR where this holds given the
    past, also where tests overlap. In the notation of R's onlineFDR, which has
    lam / tau and w0 (tau - lam), the defaults are the same.

    References
    ----------
    .. [1] J. Tian and A. Ramdas, "ADDIS: an adaptive discarding algorithm for online
       FDR control with conservative nulls", NeurIPS 2019.

    Examples
    --------
    >>> from skbounds.sequential import ADDIS
    >>> procedure = ADDIS(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, False]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        tau: float = 0.5,
        lam: float = 0.25,
        w0: float | None = None,
        gamma: Literal["power", "log"] | ArrayLike = "power",
        horizon: int | None = None,
        lag: int = 0,
    ) -> None:
        self.alpha = alpha
        self.tau = tau
        self.lam = lam
        self.w0 = w0
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag

    def _check(self):
        super()._check()
        tau, lam = _check_share("tau", self.tau), _check_share("lam", self.lam)
        if lam >= tau:
            raise ValueError(
                f"lam must be less than tau; got lam={self.lam!r}, tau={self.tau!r}."
            )

    def _begin(self):
        super()._begin()
        self._tau_, self._lam_ = float(self.tau), float(self.lam)
        self._share_ = self._tau_ - self._lam_

    def _scaled(self, level):
        return min(self._share_ * level, self._lam_)

    def _counts(self, level, rejected, p_value):
        return self._lam_ < p_value <= self._tau_


class AlphaInvesting(_Adaptive):
    """Alpha-investing whose levels grow with each discovery.

    The level is x / (1 + x) with x the sum of `SAFFRON` over tests that found nothing;
    those cost x, discoveries cost nothing: SAFFRON with each level as its own `lam`
    [1]_, [2]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    w0 : float, default=None
        Wealth at the start, in (0, alpha). None is alpha / 2.
    gamma : {"power", "log"} or array-like, default="power"
        How wealth is spread over tests that find nothing: as j^-1.6 or as in `LORD`, or
        numbers that do not increase, of sum at most 1 (with zeros beyond).
    horizon : int, default=None
        Spread it over so many tests only; levels are 0 after as many tests.
    lag : int, default=0
        Levels do not depend on the last so many decisions.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        alpha max(R, 1) minus what tests have cost.
    fdp_estimate_ : float
        Estimate of the share of false discoveries, never above alpha.
    n_tests_ : int
        Number of tests so far.
    n_running_ : int
        Number of tests that have begun and not ended.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    SAFFRON : More powerful as a rule.

    Notes
    -----
    FDR at most alpha for independent p-values, mFDR for p-values that are valid given
    the past decisions.

    References
    ----------
    .. [1] D. Foster and R. Stine, "Alpha-investing: a procedure for sequential control
       of expected false discoveries", JRSS B 70, 2008.
    .. [2] A. Ramdas, T. Zrnic, M. Wainwright and M. Jordan, "SAFFRON: an adaptive
       algorithm for online control of the false discovery rate", ICML 2018.

    Examples
    --------
    >>> from skbounds.sequential import AlphaInvesting
    >>> procedure = AlphaInvesting(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, True]
    """

    # That a test found nothing is all that matters of its p-value.
    _needs_p_value = False

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        w0: float | None = None,
        gamma: Literal["power", "log"] | ArrayLike = "power",
        horizon: int | None = None,
        lag: int = 0,
    ) -> None:
        self.alpha = alpha
        self.w0 = w0
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag

    def _scaled(self, level):
        return level / (1.0 + level)

    def _share_of(self, level):
        return self._scaled(level)

    def _cost(self, level):
        return level / (1.0 - level)

    def _counts(self, level, rejected, p_value):
        return not rejected
