"""A test of many arms against a control that stops by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

import skbounds
from skbounds._base import unchanged_on_error, warn_user
from skbounds._states import State, reads_state, refuse, shown
from skbounds._typing import RandomState
from skbounds.sequential._adjustments import Covariate, Ratio
from skbounds.sequential._engines import ENGINES
from skbounds.sequential._evidence import LARGEST_REWARD, check_level
from skbounds.sequential._functions import as_floats, draw_seeds, is_number
from skbounds.sequential._online_procedure import Started, differ, given_params, plain
from skbounds.sequential._settings import ONE_BY_ONE, check_settings, is_count

# Rewards of which none is 0 or 1 are not what "binary" is for.
_FIRST_REWARDS = 100
# So many rewards of two values only are no normal ones.
_ONLY_TWO = 20
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class BestArmTest(Started):
    """Find the best of many arms, and test whether it is better than the control.

    Arm 0 is the control. `ask` names the arms to be tried next and `tell` takes their
    rewards, until `done_` says that an arm is certified or that the rewards are used
    up. The p-value may be looked at after every reward, and the experiment may be ended
    whenever one likes.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    .. versionchanged:: 0.2
       E-processes are the default; ``evidence="lil"`` is version 0.1.

    Parameters
    ----------
    n_arms : int or list of str
        Number of arms, with the control, or their names, the control's first. With
        names arms are named in what is asked, told and found.
    delta : float, default=0.05
        Probability of certifying a wrong arm.
    epsilon : float, default=0.0
        Improvement over the control that is asked for, and slack among the best arms.
        With 0 and ties the test need not end before `max_pulls`.
    evidence : {"eprocess", "lil"}, default="eprocess"
        "eprocess": e-processes, which need a fourth of the rewards, and far less than
        that of rare conversions. "lil": the radius of the thesis, by the law of the
        iterated logarithm.
    rewards : {"normal", "binary", "bounded"}, default="normal"
        Kind of rewards, with "eprocess". "normal": sub-Gaussian of scale `sigma`, or
        asymptotically normal where that is None. "binary": within `bounds`, best for
        rewards that are at their ends, as conversions. "bounded": within `bounds`, for
        rewards that vary little.
    bounds : pair of float, default=(0, 1)
        Least and largest reward, of "binary" and "bounded" ones.
    sigma : float or array-like of shape (n_arms,), default=None
        Sub-Gaussian scale of "normal" rewards: 1 for unit variance, (b - a)/2 for
        [a, b]. If it is too small nothing is guaranteed. None: variances are estimated,
        evidence begins at 100 rewards of both arms, and guarantees are *asymptotic*.
        With "lil" it is mandatory, and a number (1/2 for rewards in [0, 1]).
    bets : array-like, default=None
        Bets of the e-process, positive and increasing; below 1 for "bounded". None is a
        grid of powers of two for any effect size. Of "normal" rewards there is no
        evidence between arms whose numbers of rewards differ by more than the bets do,
        16384 times by default.
    weights : array-like of shape (n_arms - 1,), default=None
        How the alternatives share in the evidence: positive, of sum 1. None is equally.
    max_pulls : int, default=None
        Largest number of rewards; at least `n_arms`. With "lil", and for `run`, it is
        mandatory.
    sampler : {"toptwo", "lift", "lucb", "uniform"}, default=None
        "toptwo": of the leader and its closest rival the one with fewer rewards.
        "lift": control and the most promising alternative in turn; the test ends once
        any arm is adopted at level `delta`. "lucb": the arms that matter by bounds
        (Algorithm 1). "uniform": all arms in each round. None is "toptwo" for
        e-processes and "lucb" for "lil".
    covariate_coef : float, default=None
        With asymptotic rewards: each comes with a covariate z, and x - covariate_coef z
        is taken instead of x. To be fixed before the first reward, and arms must be
        given out without a look at z.
    covariate_mean : float, default=None
        The same with a coefficient that is estimated from earlier rewards, where the
        expectation of z is known.
    ratio : bool, default=False
        With asymptotic rewards: each is a numerator that comes with a denominator, as
        clicks and page views of a user, and an arm's mean is the ratio of their sums.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the generator that `run` hands to the draws, or that generator.

    Attributes
    ----------
    done_ : bool
        Whether the test has ended.
    is_certified_ : bool
        Whether it has ended with an arm that is the best with probability 1 - delta.
    recommendation_ : int or str
        That arm. Otherwise, with e-processes, of the arms that may be adopted at level
        `delta` the one with most evidence; the one with the largest mean if there are
        none.
    p_value_ : float
        Always-valid p-value of "no arm is more than epsilon better than the control":
        the minimum over the time so far.
    log_p_value_ : float
        Its logarithm, which does not underflow.
    p_values_ : ndarray of shape (n_arms,)
        Of each alternative by itself, adjusted for their number: arms with p-values of
        at most a level may be adopted. nan for the control.
    evalues_ : ndarray of shape (n_arms,)
        E-values of each alternative as of now, adjusted for their number; nan for the
        control. Only with "eprocess".
    global_evalue_ : float
        E-value of "no arm is better" as of now, the mean of the arms' own: it may be
        large where no single arm can be adopted. Only with "eprocess".
    counts_ : ndarray of shape (n_arms,)
        Numbers of rewards.
    means_ : ndarray of shape (n_arms,)
        Mean rewards; nan without any.
    n_pulls_ : int
        Number of rewards so far.
    n_outstanding_ : int
        Number of rewards that were asked for and have not been told.
    is_asymptotic_ : bool
        Whether guarantees are asymptotic only.

    See Also
    --------
    MABFDR : Many such tests, one after the other.
    log_evalue : Evidence from the sums of two arms.
    always_valid_pvalue : The p-value of "lil" as of one time.

    Notes
    -----
    Under the null the p-value is ever at most a with probability a at most, whatever
    decides on arms and time. An arm that is not better than control + epsilon ever has
    a p-value of its own of at most a with probability a at most, of all such arms
    together, whatever the other arms are. Rewards of different arms must come from
    different users: where rewards of one round depend on each other negatively, the
    e-process is not valid. The mean of an arm that was chosen for its mean is biased.
    `epsilon`, `bets`, `weights` and all else are fixed when the first reward is asked
    for or told.

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017. Numbers
       are those of chapter 4 of F. Yang's thesis.
    .. [2] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-theoretic statistics and
       safe anytime-valid inference", Statistical Science 38, 2023.

    Examples
    --------
    >>> from skbounds.sequential import BestArmTest
    >>> test = BestArmTest(3, sigma=1.0, max_pulls=2000, random_state=0)
    >>> means = [0.0, 1.0, 2.0]
    >>> test = test.run(lambda arm, size, rng: means[arm] + rng.normal(size=size))
    >>> test.recommendation_, test.is_certified_, test.rejected(0.05)
    (2, True, True)

    Conversions, by name:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> test = BestArmTest(["control", "green"], rewards="binary")
    >>> sold = rng.random(1000) < np.tile([0.04, 0.12], 500)
    >>> test = test.observe(["control", "green"] * 500, sold)
    >>> test.adopted(0.05).tolist()
    ['green']
    """

    _lazy_attributes = ("evalues_", "global_evalue_", "recommendation_")

    def __init__(
        self,
        n_arms: int | Sequence[str],
        *,
        delta: float = 0.05,
        epsilon: float = 0.0,
        evidence: Literal["eprocess", "lil"] = "eprocess",
        rewards: Literal["normal", "binary", "bounded"] = "normal",
        bounds: tuple[float, float] = (0, 1),
        sigma: float | ArrayLike | None = None,
        bets: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        max_pulls: int | None = None,
        sampler: Literal["toptwo", "lift", "lucb", "uniform"] | None = None,
        covariate_coef: float | None = None,
        covariate_mean: float | None = None,
        ratio: bool = False,
        random_state: RandomState | np.random.Generator = None,
    ) -> None:
        self.n_arms = n_arms
        self.delta = delta
        self.epsilon = epsilon
        self.evidence = evidence
        self.rewards = rewards
        self.bounds = bounds
        self.sigma = sigma
        self.bets = bets
        self.weights = weights
        self.max_pulls = max_pulls
        self.sampler = sampler
        self.covariate_coef = covariate_coef
        self.covariate_mean = covariate_mean
        self.ratio = ratio
        self.random_state = random_state

    def _start(self, until=None):
        """Begin, unless that was done."""
        if hasattr(self, "_engine_"):
            changed = differ(self, self._given_)
            if changed is None:
                return
            if self._engine_.counts.any() or self._n_waiting():
                if self._settings_.evidence == "eprocess":
                    raise ValueError(
                        f"{changed} cannot be changed once a test is under way; it was "
                        f"{self._given_[changed]!r}, got {getattr(self, changed)!r}. "
                        "Start another test."
                    )
                return
            until = self._until_
        self._set_up(until)

    @unchanged_on_error
    def _set_up(self, until):
        settings = check_settings(self.get_params(deep=False), until)
        extra = self._check_adjustment(settings)
        self._given_, self._until_ = given_params(self), until
        self._settings_ = settings
        self._adjustment_ = extra
        self._certified_, self._done_ = -1, False
        self._asked_ = None
        self._outstanding_ = np.zeros(settings.n_arms)
        # Number of rewards that were looked at, and what they were: of "binary" ones
        # how many at an end, of those of unknown variance up to three values.
        self._seen_ = [0, 0]
        self._rng_ = None
        self._numbers_ = {name: i for i, name in enumerate(settings.names or ())}
        self._engine_ = ENGINES[settings.evidence](settings)

    def _check_adjustment(self, settings):
        """Return what is done to asymptotic rewards, or None."""
        coef, mean = self.covariate_coef, self.covariate_mean
        for name in ("covariate_coef", "covariate_mean"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and np.isfinite(value)):
                raise ValueError(f"{name} must be a finite number; got {value!r}.")
        if not isinstance(self.ratio, (bool, np.bool_)):
            raise ValueError(f"ratio must be True or False; got {self.ratio!r}.")
        n_given = (coef is not None) + (mean is not None) + bool(self.ratio)
        if n_given > 1:
            raise ValueError(
                "only one of covariate_coef, covariate_mean and ratio can be given."
            )
        if n_given and not settings.is_asymptotic:
            raise ValueError(
                "covariate_coef, covariate_mean and ratio are for "
                "evidence='eprocess' with rewards='normal' and sigma=None."
            )
        if self.ratio:
            return Ratio(settings.n_arms)
        return Covariate(coef, mean, settings.n_arms) if n_given else None

    @property
    def done_(self) -> bool:
        """Whether the test has ended."""
        self._start()
        return self._done_

    @property
    def is_certified_(self) -> bool:
        """Whether the recommendation is certified."""
        self._start()
        return self._certified_ >= 0

    @property
    def is_asymptotic_(self) -> bool:
        """Whether guarantees are asymptotic only."""
        self._start()
        return self._settings_.is_asymptotic

    @property
    def recommendation_(self) -> int | str:
        """The arm that is certified, that may be adopted, or that looks best."""
        self._start()
        return self._label(self._recommend())

    def _recommend(self):
        if self._certified_ >= 0:
            return self._certified_
        engine = self._engine_
        if self._settings_.evidence == "eprocess":
            adopted = np.flatnonzero(engine.log_p <= np.log(self._settings_.delta))
            if len(adopted):
                return int(adopted[np.argmax(engine.log_evalues()[0][adopted])]) + 1
        return engine.leader()

    def _label(self, arm):
        names = self._settings_.names
        return int(arm) if names is None else names[arm]

    def _labels(self, arms):
        names = self._settings_.names
        return arms if names is None else np.array(names, dtype=object)[arms]

    @property
    def log_p_value_(self) -> float:
        """Logarithm of the always-valid p-value."""
        self._start()
        return self._engine_.least_log_p

    @property
    def p_value_(self) -> float:
        """The always-valid p-value."""
        return float(np.exp(self.log_p_value_))

    @property
    def p_values_(self) -> np.ndarray:
        """Always-valid p-values of the alternatives, adjusted for their number."""
        self._start()
        return np.r_[np.nan, np.exp(self._engine_.log_p)]

    @property
    def evalues_(self) -> np.ndarray:
        """E-values of the alternatives as of now, adjusted for their number."""
        return np.r_[np.nan, _exp(self._log_evalues()[0])]

    @property
    def global_evalue_(self) -> float:
        """E-value of the null that no arm is better, as of now."""
        own = self._log_evalues()[1]
        weights = self._settings_.weights
        return float(np.average(_exp(own), weights=weights))

    def _log_evalues(self):
        self._start()
        if self._settings_.evidence != "eprocess":
            raise AttributeError("there are e-values with evidence='eprocess' only.")
        return self._engine_.log_evalues()

    @property
    def counts_(self) -> np.ndarray:
        """Numbers of rewards."""
        self._start()
        return self._engine_.counts.astype(np.int64)

    @property
    def means_(self) -> np.ndarray:
        """Mean rewards."""
        self._start()
        settings = self._settings_
        means = self._engine_.means()
        if settings.width == 1.0 and settings.low == 0.0:
            return means
        return settings.low + settings.width * means

    @property
    def n_pulls_(self) -> int:
        """Number of rewards so far."""
        return int(self.counts_.sum())

    @property
    def n_outstanding_(self) -> int:
        """Number of rewards that were asked for and have not been told."""
        self._start()
        return self._n_waiting()

    def _n_waiting(self):
        waiting = 0 if self._asked_ is None else len(self._asked_)
        return int(self._outstanding_.sum()) + waiting

    def rejected(self, level: float) -> bool:
        """Tell whether the null that no arm is better is rejected at a level.

        Parameters
        ----------
        level : float
            Decided upon before the test began.

        Returns
        -------
        rejected : bool
            Whether the p-value is at most the level; with "lil" also whether the best
            arm is not the control.
        """
        if not is_number(level) or not 0.0 <= level <= 1.0:
            raise ValueError(f"level must be in [0, 1]; got {level!r}.")
        if level == 0.0:
            return False
        self._start()
        lil = self._settings_.evidence == "lil"
        if lil and self._recommend() == 0:
            return False
        return bool(self.log_p_value_ <= np.log(level))

    def adopted(self, level: float) -> np.ndarray:
        """Return the arms that may be adopted at a level, on their own evidence.

        Parameters
        ----------
        level : float
            Probability that any arm is among them, at any time, that is not better than
            the control by more than epsilon. Decided upon before the test began.

        Returns
        -------
        arms : ndarray
            Their numbers or names, those with the smallest p-values first.
        """
        level = check_level(level)
        self._start()
        log_p = self._engine_.log_p
        order = np.argsort(log_p, kind="stable")
        return self._labels(order[log_p[order] <= np.log(level)] + 1)

    def lift_intervals(self, level: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals of the arms' improvements over the control.

        Parameters
        ----------
        level : float, default=0.05
            Probability that any of them fails at any time; at most 1/2.

        Returns
        -------
        lower, upper : ndarray of shape (n_arms,)
            Bounds of expectation minus the control's; nan for the control.
        """
        level = check_level(level, 0.5)
        self._start()
        width = self._settings_.width
        lower, upper = self._engine_.lifts(level)
        return np.r_[np.nan, width * lower], np.r_[np.nan, width * upper]

    def confidence_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the arms' expectations, as "lil" uses them.

        Returns
        -------
        lower, upper : ndarray of shape (n_arms,)
            At all times, the alternatives' lower bounds hold together with probability
            1 - delta / 2, the control's with 1 - delta / 2K, and each upper bound with
            1 - delta / 2. Infinite without rewards.
        """
        self._start()
        if self._settings_.evidence != "lil":
            raise ValueError(
                "confidence_bounds is of evidence='lil'; lift_intervals has bounds of "
                "improvements over the control."
            )
        return self._engine_.bounds()

    def ask(self, size: int | None = None) -> np.ndarray:
        """Return the arms to be tried next.

        With e-processes each call asks for further rewards, which may be told in any
        order; those that will never come are for `withdraw`. With "lil" it is the same
        until `tell` has taken them.

        Parameters
        ----------
        size : int, default=None
            With e-processes: how many arms, as for users that come at once; fewer where
            `max_pulls` leaves fewer. Of samplers with rounds, those arms of the round
            that were tried least. None is one arm for the samplers "toptwo" and "lift",
            and a round for "lucb" and "uniform".

        Returns
        -------
        arms : ndarray
            Their numbers or names.
        """
        self._start()
        if size is not None and (not is_count(size) or size < 1):
            raise ValueError(f"size must be a positive integer or None; got {size!r}.")
        if self._done_:
            raise ValueError("the test has ended; there is nothing to be tried.")
        if self._settings_.evidence == "lil":
            if size is not None:
                raise ValueError("size is for evidence='eprocess'.")
            if self._asked_ is None:
                self._asked_ = self._next(None)
            return self._labels(self._asked_.copy())
        left = self._left()
        if left is not None and left < 1:
            raise ValueError(
                f"all max_pulls={self._settings_.max_pulls} rewards are asked for; "
                "tell those that are outstanding."
            )
        if left is not None and size is not None:
            size = int(min(size, left))
        arms = self._next(size)
        if left is not None:
            arms = arms[: int(left)]
        np.add.at(self._outstanding_, arms, 1.0)
        return self._labels(arms)

    def withdraw(self, arms: ArrayLike) -> Self:
        """Give up rewards that were asked for and will not come.

        .. versionadded:: 0.2

        Parameters
        ----------
        arms : array-like
            Numbers or names of arms that are outstanding. It must not depend on what
            the rewards would have been.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        arms = self._check_arms(arms)
        if self._settings_.evidence == "lil":
            raise ValueError("withdraw is for evidence='eprocess'.")
        self._outstanding_ -= self._check_outstanding(arms, "withdraw")
        return self

    def _check_outstanding(self, arms, what):
        told = np.bincount(arms, minlength=self._settings_.n_arms)
        wrong = np.flatnonzero(told > self._outstanding_)
        if len(wrong):
            raise ValueError(
                f"{what} takes arms that were asked for and are outstanding; of "
                f"{self._labels(wrong).tolist()} there are fewer. observe takes "
                "rewards of other arms."
            )
        return told

    def _left(self):
        """Return how many rewards may still be asked for, or None."""
        most = self._settings_.max_pulls
        if most is None:
            return None
        return most - self._engine_.counts.sum() - self._outstanding_.sum()

    def _next(self, size):
        """Return numbers of the arms that are next."""
        engine, outstanding = self._engine_, self._outstanding_
        if self._settings_.sampler in ONE_BY_ONE:
            return engine.choose(1 if size is None else int(size), outstanding)
        arms = engine.round(outstanding)
        if size is None:
            return arms
        chosen, taken = np.empty(int(size), dtype=np.int64), engine.counts + outstanding
        for k in range(len(chosen)):
            chosen[k] = arms[np.argmin(taken[arms])]
            taken[chosen[k]] += 1.0
        return chosen

    def tell(
        self,
        arms: ArrayLike,
        rewards: ArrayLike,
        *,
        covariates: ArrayLike | None = None,
        denominators: ArrayLike | None = None,
    ) -> Self:
        """Take rewards of arms that were asked for.

        Parameters
        ----------
        arms : array-like
            Numbers or names of arms: with "eprocess" any that are outstanding, in any
            order, with "lil" exactly those of `ask`.
        rewards : array-like
            Their rewards.
        covariates : array-like, default=None
            Of each reward, with `covariate_coef` or `covariate_mean`.
        denominators : array-like, default=None
            Of each reward, with `ratio`.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        arms, rewards, others = self._check_rewards(
            arms, rewards, covariates, denominators
        )
        if self._settings_.evidence == "lil":
            if self._asked_ is None or sorted(arms) != sorted(self._asked_.tolist()):
                asked = None if self._asked_ is None else self._asked_.tolist()
                raise ValueError(
                    f"tell takes the arms that were asked for, {asked}; got "
                    f"{arms.tolist()}. observe takes rewards of other arms."
                )
            self._take(arms, rewards, others, whole=True)
            self._asked_ = None
            return self
        told = self._check_outstanding(arms, "tell")
        self._take(arms, rewards, others, whole=True)
        self._outstanding_ -= told
        return self

    def observe(
        self,
        arms: ArrayLike,
        rewards: ArrayLike,
        *,
        covariates: ArrayLike | None = None,
        denominators: ArrayLike | None = None,
    ) -> Self:
        """Take rewards that were logged, of whatever arms.

        The p-value and the bounds stay valid if arms were chosen without knowledge of
        their future rewards. They are looked at after each reward, so that the p-value
        may be smaller than after the rounds of `tell`. Logs are not limited by
        `max_pulls`.

        Parameters
        ----------
        arms : array-like of shape (n,)
            Numbers or names of arms in the order of time.
        rewards : array-like of shape (n,)
            Their rewards.
        covariates : array-like of shape (n,), default=None
            Of each reward, with `covariate_coef` or `covariate_mean`.
        denominators : array-like of shape (n,), default=None
            Of each reward, with `ratio`.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        arms, rewards, others = self._check_rewards(
            arms, rewards, covariates, denominators
        )
        if self._asked_ is not None:
            raise ValueError(
                f"the arms {self._labels(self._asked_).tolist()} were asked for; tell "
                "their rewards first."
            )
        self._take(arms, rewards, others, whole=False)
        return self

    def _take(self, arms, rewards, others, *, whole):
        """Take rewards, with one look or with a look after each; all or none."""
        seen = self._look_at_values(rewards)
        before = self._engine_.snapshot()
        kept = copy.deepcopy(self._adjustment_)
        try:
            self._add(arms, rewards, others, whole=whole)
        except BaseException:
            self._engine_.go_back(before)
            self._adjustment_ = kept
            raise
        self._seen_ = seen
        self._note_end()

    def _add(self, arms, rewards, others, *, whole):
        engine, first = self._engine_, self._certified_
        if isinstance(self._adjustment_, Ratio):
            for arm, y, z in zip(
                arms.tolist(), rewards.tolist(), others.tolist(), strict=True
            ):
                engine.replace(arm, *self._adjustment_.add(arm, y, z))
                if not whole:
                    first = engine.look_at(arm, first)
            if whole:
                first = engine.look_at(arms, first)
        else:
            if self._adjustment_ is not None:
                rewards = self._adjustment_.adjust(arms, rewards, others)
                if not (np.abs(rewards) <= LARGEST_REWARD).all():
                    raise ValueError(
                        f"rewards without what covariates foretell must be of at most "
                        f"{LARGEST_REWARD:g}."
                    )
            if whole:
                found = engine.tell(arms, rewards)
                first = found if first < 0 else first
            else:
                first = engine.replay(arms, rewards, first)
        self._certified_ = int(first)

    def _note_end(self):
        """See whether the test has ended."""
        engine, settings = self._engine_, self._settings_
        if settings.evidence == "lil" and self._certified_ < 0:
            self._certified_ = engine.look()
        if settings.until == "rejected":
            over = self.log_p_value_ <= np.log(settings.delta)
        else:
            over = self._certified_ >= 0
        if not over and settings.max_pulls is not None:
            size = 1
            if settings.sampler not in ONE_BY_ONE:
                size = len(engine.round(np.zeros(settings.n_arms)))
            over = engine.counts.sum() + size > settings.max_pulls
        self._done_ = bool(over)

    def _check_rewards(self, arms, rewards, covariates, denominators):
        """Return arms as numbers, rewards in our units, and what comes with them."""
        settings = self._settings_
        arms = self._check_arms(arms)
        rewards = as_floats(rewards, "rewards", ndim=None)
        if arms.ndim != 1 or not len(arms) or rewards.shape != arms.shape:
            raise ValueError(
                "arms and rewards must be of the same length, at least 1; got shapes "
                f"{arms.shape} and {rewards.shape}."
            )
        if not (np.abs(rewards) <= LARGEST_REWARD).all():
            raise ValueError(
                f"rewards must be finite numbers, of at most {LARGEST_REWARD:g}."
            )
        others = self._check_others(len(arms), covariates, denominators)
        if settings.evidence == "lil":
            if settings.sigma == 0.5 and ((rewards < 0.0) | (rewards > 1.0)).any():
                raise ValueError(
                    "sigma=0.5 is for rewards in [0, 1]; got rewards from "
                    f"{rewards.min():g} to {rewards.max():g}."
                )
        elif settings.rewards != "normal":
            low, width = settings.low, settings.width
            if rewards.min() < low or rewards.max() > settings.high:
                raise ValueError(
                    f"rewards must be within bounds={self._given_['bounds']}; got "
                    f"rewards from {rewards.min():g} to {rewards.max():g}."
                )
            if low != 0.0 or width != 1.0:
                rewards = np.clip((rewards - low) / width, 0.0, 1.0)
        return arms, rewards, others

    def _check_arms(self, arms):
        n_arms = self._settings_.n_arms
        arms = np.asarray(arms)
        if arms.dtype.kind == "O" and all(is_count(a) for a in arms.ravel()):
            # Larger ones than there are stay objects, which is an error below.
            with suppress(OverflowError):
                arms = arms.astype(np.int64)
        if self._numbers_ and arms.dtype.kind in "UOT":
            unknown = [a for a in arms.ravel().tolist() if a not in self._numbers_]
            if unknown:
                raise ValueError(
                    f"arms must be among {list(self._numbers_)}; got {unknown}. An arm "
                    "cannot be added to a test under way."
                )
            numbers = [self._numbers_[a] for a in arms.ravel().tolist()]
            return np.array(numbers, dtype=np.int64).reshape(arms.shape)
        good = arms.dtype.kind in "iu"
        if arms.size and (not good or arms.min() < 0 or arms.max() >= n_arms):
            names = "" if not self._numbers_ else f", or names {list(self._numbers_)}"
            raise ValueError(
                f"arms must be integers in [0, {n_arms}){names}; got {arms.tolist()}. "
                "An arm cannot be added to a test under way."
            )
        return arms.astype(np.int64)

    def _check_others(self, n, covariates, denominators):
        """Return covariates or denominators, where the test takes them."""
        wanted = {
            "covariates": isinstance(self._adjustment_, Covariate),
            "denominators": isinstance(self._adjustment_, Ratio),
        }
        given = {"covariates": covariates, "denominators": denominators}
        found = None
        for name, value in given.items():
            if (value is not None) != wanted[name]:
                needs = (
                    "covariate_coef or covariate_mean"
                    if name == "covariates"
                    else "ratio=True"
                )
                raise ValueError(
                    f"{name} must be given with each reward, as the test has {needs}."
                    if wanted[name]
                    else f"{name} are for tests with {needs}."
                )
            if wanted[name]:
                found = as_floats(value, name, ndim=None)
                least = 0.0 if name == "denominators" else -LARGEST_REWARD
                good = found.shape == (n,) and (np.abs(found) <= LARGEST_REWARD).all()
                if not good or (found < least).any():
                    raise ValueError(
                        f"{name} must be finite numbers"
                        + (", not negative" if least == 0.0 else "")
                        + f", one for each of the {n} rewards; got {value!r}."
                    )
        return found

    def _look_at_values(self, rewards):
        """Return `_seen_` after rewards; warn or raise where they are unfit."""
        settings, seen = self._settings_, self._seen_
        if settings.evidence == "eprocess" and settings.rewards == "binary":
            return self._look_for_ends(rewards)
        if settings.is_asymptotic and not self.ratio:
            return self._look_for_two_values(rewards)
        return seen

    def _look_for_ends(self, rewards):
        """Warn once where "binary" rewards are never at an end."""
        n, n_ends = self._seen_
        if n >= _FIRST_REWARDS:
            return self._seen_
        first = rewards[: _FIRST_REWARDS - n]
        n += len(first)
        n_ends += int(((first == 0.0) | (first == 1.0)).sum())
        if n >= _FIRST_REWARDS and not n_ends:
            warn_user(
                f"none of the first {_FIRST_REWARDS} rewards is at an end of bounds: "
                "rewards='binary' is valid, and wasteful if they vary little; "
                "'bounded' is for those.",
                UserWarning,
            )
        return [n, n_ends]

    def _look_for_two_values(self, rewards):
        """Raise where rewards of unknown variance have two values only."""
        n, *values = self._seen_
        values = values[0] if values and isinstance(values[0], list) else []
        if len(values) > 2:
            return self._seen_
        values = sorted({*values, *np.unique(rewards).tolist()})[:3]
        n += len(rewards)
        if n >= _ONLY_TWO and len(values) == 2:
            low, high = values
            raise ValueError(
                f"rewards are {low:g} or {high:g} only, for which estimated variances "
                "fail (of rare conversions one test in three would be wrong): give "
                f"rewards='binary' with bounds=({low:g}, {high:g}), or sigma."
            )
        return [n, values]

    def run(self, draw: Callable[[Any, int, np.random.Generator], ArrayLike]) -> Self:
        """Ask and tell until the test has ended.

        Parameters
        ----------
        draw : callable
            ``draw(arm, size, rng)`` returns `size` rewards of an arm; `rng` is a
            ``numpy.random.Generator``.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        if self._settings_.max_pulls is None:
            raise ValueError("run needs max_pulls, as a test need not end by itself.")
        if self._adjustment_ is not None:
            raise ValueError(
                "run has no covariates and no denominators; use ask and tell."
            )
        rng = self._generator()
        while not self._done_:
            outstanding = self._outstanding_.copy()
            arms = self.ask()
            try:
                drawn = [np.ravel(draw(self._plain(arm), 1, rng)) for arm in arms]
                if any(len(rewards) != 1 for rewards in drawn):
                    raise ValueError(
                        "draw must return as many rewards as `size` asks for."
                    )
                rewards = np.array(drawn, dtype=np.float64)[:, 0]
                self.tell(arms, rewards)
            except BaseException:
                # What was asked for is asked for again by the next run.
                self._outstanding_ = outstanding
                raise
        return self

    def _plain(self, arm):
        return int(arm) if self._settings_.names is None else str(arm)

    def report(self, level: float | None = None) -> skbounds.ExperimentReport:
        """Return what is known by now, as a table.

        Parameters
        ----------
        level : float, default=None
            Level of decisions and intervals, at most 1/2. None is `delta`, or 1/2 where
            that is larger.

        Returns
        -------
        report : ExperimentReport
            Shown as text, or as HTML in a notebook.
        """
        from skbounds.sequential._report import ExperimentReport

        return ExperimentReport.from_test(self, level)

    def _generator(self):
        self._start()
        if self._rng_ is None:
            if isinstance(self.random_state, np.random.Generator):
                self._rng_ = self.random_state
            else:
                self._rng_ = np.random.default_rng(int(draw_seeds(self.random_state)))
        return self._rng_

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = dict(self._given_)
        if params["random_state"] is not None and not is_count(params["random_state"]):
            # Its draws so far are in the generator.
            self._generator()
            params["random_state"] = None
        asked, certified = self._asked_, self._certified_
        return {
            "params": {name: plain(value) for name, value in params.items()},
            "until": self._settings_.until,
            "certified": None if certified < 0 else certified,
            "done": self._done_,
            "asked": None if asked is None else asked.tolist(),
            "outstanding": self._outstanding_.astype(int).tolist(),
            "seen": list(self._seen_),
            "adjustment": None
            if self._adjustment_ is None
            else self._adjustment_.state(),
            "rng": None
            if self._rng_ is None
            else _plain_state(self._rng_.bit_generator.state),
            **self._engine_.state(),
        }

    @classmethod
    @reads_state
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the test that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`; those of version 0.1 go on with ``evidence="lil"``.

        Returns
        -------
        test : BestArmTest
            Goes on where the other was.

        Raises
        ------
        ValueError
            For what is no state, or cannot be one: its values must go together.
        """
        given = State(state)
        params = given.params(cls)
        params.setdefault("evidence", "lil")
        n_arms = params.get("n_arms")
        n = len(n_arms) if isinstance(n_arms, (list, tuple)) else n_arms
        # Before there is room for them.
        if n != len(given.items("counts")):
            raise ValueError("the state has another number of arms than n_arms.")
        until = given.values.get("until")
        if until not in (None, "certified", "rejected"):
            refuse("'until'", until, "'certified', 'rejected' or None")
        seed = params.get("random_state")
        if seed is not None and (not is_count(seed) or not 0 <= seed < 2**32):
            refuse("'random_state'", seed, "an integer below 2**32, or None")
        if "bounds" in params:
            # Checked by the test for rewards that have any.
            given.part("params").pair("bounds")
        found = cls(**params)
        found._start(until)
        found._engine_.restore(given)
        found._done_ = given.flag("done")
        if given["certified"] is not None:
            found._certified_ = given.count("certified", 0, n - 1)
        if given["asked"] is not None:
            found._asked_ = given.counts("asked", None, 0, n - 1)
            if found._settings_.evidence != "lil" or not len(found._asked_):
                refuse("'asked'", given["asked"], "None, or arms with evidence='lil'")
        if "outstanding" in given:
            outstanding = given.counts("outstanding", n).astype(np.float64)
            if found._settings_.evidence == "lil" and outstanding.any():
                refuse("'outstanding'", outstanding.tolist(), "0 with evidence='lil'")
            found._outstanding_ = outstanding
        if "seen" in given:
            found._restore_seen(given)
        if found._adjustment_ is not None:
            found._adjustment_.restore(given.part("adjustment"))
            found._adjustment_.check_counts(found._engine_)
        if given["rng"] is not None:
            found._rng_ = _generator_of(given.part("rng"))
        return found

    def _restore_seen(self, state):
        """Take the number of rewards that were looked at, and what they were."""
        seen = state.items("seen")
        lists = len(seen) == 2 and isinstance(seen[1], (list, tuple))
        found = State(dict(zip(("n", "values"), seen, strict=False)), "'seen'")
        n = found.count("n")
        if lists:
            values = found.numbers("values").tolist()
            good = self._settings_.is_asymptotic and len(values) <= min(n, 3)
            self._seen_ = [n, values]
        else:
            self._seen_ = [n, found.count("values", 0, n)]
            good = True
        if not good:
            refuse("'seen'", seen, "a number of rewards, and up to 3 of them")


def _exp(values):
    """Return exponentials, without a word where they are beyond numbers."""
    with np.errstate(over="ignore"):
        return np.exp(values)


def _plain_state(state):
    """Return the state of a generator in types that JSON knows."""
    if isinstance(state, dict):
        return {name: _plain_state(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, (np.ndarray, np.generic)) else state


def _like(state, model):
    """Return a state with arrays where the model has them."""
    if isinstance(model, dict):
        return {name: _like(state[name], value) for name, value in model.items()}
    if isinstance(model, np.ndarray):
        return np.array(state, dtype=model.dtype)
    return state


def _generator_of(state):
    """Return a generator that goes on from a state."""
    name = state["bit_generator"]
    if name not in _GENERATORS:
        raise ValueError(
            f"the generator must be one of {_GENERATORS}; got {shown(name)}."
        )
    bits = getattr(np.random, name)()
    try:
        found = _like(state.values, bits.state)
        bits.state = found
        good = _plain_state(bits.state) == _plain_state(found)
    except (LookupError, TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise ValueError(f"the state of the generator {name} is none.")
    return np.random.Generator(bits)
