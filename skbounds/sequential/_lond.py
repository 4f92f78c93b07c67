"""Procedures whose levels are shares of alpha times the number of discoveries."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from skbounds._states import agree, at_least, at_most
from skbounds.sequential._functions import as_floats, is_number
from skbounds.sequential._procedures import LORDFamily


class LOND(LORDFamily):
    """Levels by the number of discoveries: FDR also for dependent p-values.

    The level of test t is alpha gamma_t (R + 1) with the number R of rejections before
    [1]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    gamma : {"log", "power"} or array-like, default="log"
        How it is spread over tests, as in `LORD`; numbers must not increase.
    horizon : int, default=None
        Spread it over so many tests only; levels are 0 after as many tests.
    lag : int, default=0
        Levels do not depend on the last so many decisions.
    dependent : bool, default=False
        Whether p-values may depend on each other in any way: levels are divided by
        1 + 1/2 + ... + 1/t.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its p-value.
    wealth_ : float
        Share of alpha that is left for later tests.
    fdp_estimate_ : float
        Estimate of the share of false discoveries.
    n_tests_ : int
        Number of tests so far.
    n_running_ : int
        Number of tests that have begun and not ended.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    ELOND : The same of e-values, for any dependence.

    Notes
    -----
    FDR at most alpha for p-values that are independent or positively dependent (PRDS),
    and for any with `dependent`.

    References
    ----------
    .. [1] A. Javanmard and A. Montanari, "Online rules for control of false discovery
       rate and false discovery exceedance", Annals of Statistics 46, 2018.
    .. [2] T. Zrnic, A. Ramdas and M. Jordan, "Asynchronous online testing of multiple
       hypotheses", Journal of Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from skbounds.sequential import LOND
    >>> procedure = LOND(0.1)
    >>> [procedure.test(p) for p in (1e-4, 0.3, 1e-3, 0.02)]
    [True, False, True, False]
    """

    _decreasing = True

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        gamma: Literal["log", "power"] | ArrayLike = "log",
        horizon: int | None = None,
        lag: int = 0,
        dependent: bool = False,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.horizon = horizon
        self.lag = lag
        self.dependent = dependent

    def _check(self):
        super()._check()
        self._gamma()
        dependent = getattr(self, "dependent", False)
        if not isinstance(dependent, (bool, np.bool_)):
            raise ValueError(f"dependent must be True or False; got {dependent!r}.")

    def _begin(self):
        self._gamma_ = self._gamma()
        self._dependent_ = bool(getattr(self, "dependent", False))
        # Shares of alpha that tests have had, and 1 + 1/2 + ...
        self._shares_, self._harmonic_ = 0.0, 0.0

    def _size(self):
        """Return what a share of 1 is worth as a level now."""
        size = self._alpha_ * (self._n_rejections_ + 1)
        if self._dependent_:
            size /= self._harmonic_ + 1.0 / (self._n_tests_ + 1)
        return size

    def _level(self):
        return self._gamma_[self._n_tests_ + 1] * self._size()

    def _most(self):
        return (1.0 - self._shares_) * self._size()

    def _wealth(self):
        return self._alpha_ * (1.0 - self._shares_)

    def _charge(self, level):
        self._shares_ += level / self._size()
        super()._charge(level)
        self._harmonic_ += 1.0 / self._n_tests_

    def _record(self, rejected, level, number, p_value):
        return None

    def _state(self):
        return {"shares": self._shares_, "harmonic": self._harmonic_}

    def _restore(self, state):
        self._shares_ = state.number("shares", 0.0)
        self._harmonic_ = state.number("harmonic", 0.0)

    def _check_spent(self):
        n, size = self._n_tests_, self._alpha_ * (self._n_rejections_ + 1)
        harmonic = float(digamma(n + 1.0)) + np.euler_gamma if n else 0.0
        agree("'harmonic'", self._harmonic_, harmonic)
        # Levels are shares of a size that grows with the rejections.
        at_most("'spent'", self._spent_, size * self._shares_)
        least = self._alpha_ * self._shares_
        if self._dependent_:
            least /= max(harmonic, 1.0)
        at_least("'spent'", self._spent_, least)
        if not self._weighted_:
            n = self._n_spending()
            at_most("'shares'", self._shares_, float(self._gamma_.sum(n)))
            at_least("'shares'", self._shares_, self._gamma_.capped_sum(n, 1.0 / size))
            for number, (level, _, _) in self._pending_.items():
                most = size * self._gamma_[number]
                at_most(f"the level of test {number}", level, most)


class ELOND(LOND):
    """LOND of e-values: FDR whatever the dependence between tests.

    Rejects if e >= 1 / level, the level being that of `LOND`: alpha gamma_t (R + 1).
    Experiments may share a control, users, anything, and may overlap [1]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    gamma : {"log", "power"} or array-like, default="log"
        How it is spread over tests, as in `LORD`; numbers must not increase.
    horizon : int, default=None
        Spread it over so many tests only; levels are 0 after as many tests.
    lag : int, default=0
        Levels do not depend on the last so many decisions.

    Attributes
    ----------
    next_level_ : float
        Level of the next test, known before its e-value.
    wealth_ : float
        Share of alpha that is left for later tests.
    fdp_estimate_ : float
        Estimate of the share of false discoveries.
    n_tests_ : int
        Number of tests so far.
    n_running_ : int
        Number of tests that have begun and not ended.
    rejected_, levels_, wealth_path_ : ndarray of shape (n_tests,)
        After `fit`.

    See Also
    --------
    LOND : Of p-values.
    online_ebh : Decisions that may be made later.

    Notes
    -----
    FDR at most alpha for e-values with E[e] <= 1 under the null given what its level
    depends on: each false rejection has 1 / (R v 1) <= e alpha gamma_t, so that nothing
    but expectations is needed. The e-value of a `BestArmTest` is the one at the time it
    is stopped, not the largest before.

    References
    ----------
    .. [1] Z. Xu and A. Ramdas, "Online multiple testing with e-values", AISTATS 2024.

    Examples
    --------
    >>> from skbounds.sequential import ELOND
    >>> procedure = ELOND(0.1)
    >>> [procedure.test(e) for e in (1e4, 3.0, 1e3, 50.0)]
    [True, False, True, False]
    """

    _argument = "e_value"

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

    def _check_value(self, value):
        if not is_number(value) or not value >= 0.0:
            raise ValueError(f"e_value must be a number, 0 or more; got {value!r}.")
        return float(value)

    def _check_values(self, values):
        values = as_floats(values, "e_values", ndim=None)
        if values.ndim != 1:
            raise ValueError(
                f"e_values must be one-dimensional; got shape {values.shape}."
            )
        if not (values >= 0.0).all():
            raise ValueError("e_values must be 0 or more, without NaN.")
        return values

    def _decide(self, value, level):
        return bool(0.0 < level and value >= 1.0 / level)

    def test(self, e_value: float, weight: float = 1.0) -> bool:
        """Test the next hypothesis.

        Parameters
        ----------
        e_value : float
            Its e-value, 0 or more, maybe infinite.
        weight : float, default=1.0
            How much more than usual this test may spend, decided upon beforehand.

        Returns
        -------
        rejected : bool
            Whether the e-value is at least 1 / level (and the level is not 0).
        """
        return super().test(e_value, weight)

    def fit(
        self, e_values: ArrayLike, y: None = None, *, weights: ArrayLike | None = None
    ) -> Self:
        """Start afresh, and test many hypotheses in their order.

        Parameters
        ----------
        e_values : array-like of shape (n_tests,)
            Their e-values.
        y : None
            Ignored.
        weights : array-like of shape (n_tests,), default=None
            As of `test`.

        Returns
        -------
        self : object
            The procedure, with ``rejected_``, ``levels_`` and ``wealth_path_``.
        """
        return super().fit(e_values, y, weights=weights)
