"""A test of many arms against a control that stops by itself."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from skbounds._base import SkboundsEstimator
from skbounds._core import sequential as _core
from skbounds.sequential._functions import _check_epsilon, check_sigma, is_number
from skbounds.sequential._radius import beta

_SAMPLERS = ("lucb", "uniform")
# Sums of larger ones may overflow.
_LARGEST_REWARD = 1e150


def _is_count(value):
    return isinstance(value, Integral) and not isinstance(value, bool)


def excess(log_delta):
    """Return beta(1, delta), the part of beta that does not depend on n."""
    return float(beta(1.0, log_delta))


class BestArmTest(SkboundsEstimator):
    """Find the best of many arms, and test whether it is better than the control.

    Arm 0 is the control. Each round `ask` names the arms to be tried next and `tell`
    takes their rewards, until `done_` says that an arm is certified or that the rewards
    are used up. The p-value may be looked at after every round, and the experiment may
    be ended whenever one likes.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_arms : int
        Number of arms, with the control.
    delta : float, default=0.05
        Probability of certifying a wrong arm.
    epsilon : float, default=0.0
        Improvement over the control that is asked for, and slack among the best arms.
        With 0 and ties the test need not end before `max_pulls`.
    sigma : float
        Sub-Gaussian scale of the rewards: 1 for unit variance, 1/2 for rewards in
        [0, 1], (b - a)/2 for [a, b]. If it is too small nothing is guaranteed.
    max_pulls : int
        Largest number of rewards; at least `n_arms`.
    sampler : {"lucb", "uniform"}, default="lucb"
        "lucb": pulls the arms that matter (Algorithm 1). "uniform": all arms in each
        round, with the same rules to stop.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator that `run` hands to the draws.

    Attributes
    ----------
    done_ : bool
        Whether the test has ended.
    is_certified_ : bool
        Whether it has ended with an arm that is the best with probability 1 - delta.
    recommendation_ : int
        That arm, otherwise the one with the largest mean.
    p_value_ : float
        Always-valid p-value of "no arm is more than epsilon better than the control":
        the minimum over the time so far.
    log_p_value_ : float
        Its logarithm, which does not underflow.
    counts_ : ndarray of shape (n_arms,)
        Numbers of rewards.
    means_ : ndarray of shape (n_arms,)
        Mean rewards; nan without any.

    See Also
    --------
    MABFDR : Many such tests, one after the other.
    always_valid_pvalue : The p-value as of one time.

    Notes
    -----
    Under the null the p-value is ever at most a with probability a at most, whatever
    decides on arms and time (Proposition 1 of [1]_, with the radius that has its
    sigma). The mean of an arm that was chosen for its mean is biased.

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017. Numbers
       are those of chapter 4 of F. Yang's thesis.

    Examples
    --------
    >>> from skbounds.sequential import BestArmTest
    >>> test = BestArmTest(3, sigma=1.0, max_pulls=2000, random_state=0)
    >>> means = [0.0, 1.0, 2.0]
    >>> test = test.run(lambda arm, size, rng: means[arm] + rng.normal(size=size))
    >>> test.recommendation_, test.is_certified_, test.rejected(0.05)
    (2, True, True)
    """

    def __init__(
        self, n_arms, *, delta=0.05, epsilon=0.0, sigma, max_pulls, sampler="lucb",
        random_state=None,
    ):  # fmt: skip
        self.n_arms = n_arms
        self.delta = delta
        self.epsilon = epsilon
        self.sigma = sigma
        self.max_pulls = max_pulls
        self.sampler = sampler
        self.random_state = random_state

    def _start(self):
        """Begin, unless that was done."""
        if hasattr(self, "_counts_"):
            return
        if not _is_count(self.n_arms) or self.n_arms < 2:
            raise ValueError(
                "n_arms must be an integer, at least 2 (the control and another); got "
                f"{self.n_arms!r}."
            )
        if not is_number(self.delta) or not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must be in (0, 1); got {self.delta!r}.")
        sigma, epsilon = check_sigma(self.sigma), _check_epsilon(self.epsilon)
        if not _is_count(self.max_pulls) or self.max_pulls < self.n_arms:
            raise ValueError(
                f"max_pulls must be an integer, at least n_arms={self.n_arms}; got "
                f"{self.max_pulls!r}."
            )
        if self.sampler not in _SAMPLERS:
            raise ValueError(
                f"sampler must be one of {_SAMPLERS}; got {self.sampler!r}."
            )
        K = self.n_arms - 1
        self._x_lower_ = excess(np.log(self.delta) - np.log(2.0 * K))
        self._x_upper_ = excess(np.log(self.delta) - np.log(2.0))
        self._sigma_, self._epsilon_ = sigma, epsilon
        # What is set later has no effect on a test under way.
        self._given_ = self.get_params(deep=False)
        self._n_arms_, self._most_ = int(self.n_arms), int(self.max_pulls)
        self._is_uniform_ = self.sampler == "uniform"
        self._counts_ = np.zeros(self._n_arms_)
        self._sums_ = np.zeros(self._n_arms_)
        self._log_p_, self._certified_, self._done_ = 0.0, None, False
        self._asked_ = None
        self._rng_ = None

    @property
    def done_(self):
        """Whether the test has ended."""
        self._start()
        return self._done_

    @property
    def is_certified_(self):
        """Whether the recommendation is certified."""
        self._start()
        return self._certified_ is not None

    @property
    def recommendation_(self):
        """The certified arm, otherwise the one with the largest mean."""
        self._start()
        if self._certified_ is not None:
            return self._certified_
        means = self.means_
        return int(np.argmax(np.where(np.isnan(means), -np.inf, means)))

    @property
    def log_p_value_(self):
        """Logarithm of the always-valid p-value."""
        self._start()
        return self._log_p_

    @property
    def p_value_(self):
        """The always-valid p-value."""
        return float(np.exp(self.log_p_value_))

    @property
    def counts_(self):
        """Numbers of rewards."""
        self._start()
        return self._counts_.astype(np.int64)

    @property
    def means_(self):
        """Mean rewards."""
        self._start()
        with np.errstate(invalid="ignore"):
            return self._sums_ / np.where(self._counts_ > 0.0, self._counts_, np.nan)

    @property
    def n_pulls_(self):
        """Number of rewards so far."""
        return int(self.counts_.sum())

    def rejected(self, level):
        """Tell whether the null is rejected at a level.

        Parameters
        ----------
        level : float
            Decided upon before the test began.

        Returns
        -------
        rejected : bool
            Whether the p-value is at most the level, and the best arm is not the
            control.
        """
        if not is_number(level) or not 0.0 <= level <= 1.0:
            raise ValueError(f"level must be in [0, 1]; got {level!r}.")
        if level == 0.0 or self.recommendation_ == 0:
            return False
        return bool(self.log_p_value_ <= np.log(level))

    def confidence_bounds(self):
        """Return bounds of the arms' expectations, as the test uses them.

        Returns
        -------
        lower, upper : ndarray of shape (n_arms,)
            At all times, the alternatives' lower bounds hold together with probability
            1 - delta / 2, the control's with 1 - delta / 2K, and each upper bound with
            1 - delta / 2. Infinite without rewards.
        """
        self._start()
        tried = self._counts_ > 0.0
        low, high = np.full(self._n_arms_, np.inf), np.full(self._n_arms_, np.inf)
        if tried.any():
            below, above = np.empty(tried.sum()), np.empty(tried.sum())
            _core.radii(
                self._counts_[tried], self._x_lower_, self._x_upper_, self._sigma_,
                below, above,
            )  # fmt: skip
            low[tried], high[tried] = below, above
        means = np.where(tried, self.means_, 0.0)
        return means - low, means + high

    def ask(self):
        """Return the arms to be tried in this round.

        Returns
        -------
        arms : ndarray of int
            Their numbers; the same until `tell` has taken their rewards.
        """
        self._start()
        if self._done_:
            raise ValueError("the test has ended; there is nothing to be tried.")
        if self._asked_ is None:
            self._asked_ = self._next_round()[1]
        return self._asked_.copy()

    def _next_round(self):
        """Return a certified arm or None, and the arms of the next round."""
        everything = np.arange(self._n_arms_)
        if (self._counts_ == 0.0).any():
            # Each arm once before anything is decided.
            return None, everything[self._counts_ == 0.0]
        lower, upper = np.empty(self._n_arms_), np.empty(self._n_arms_)
        _core.radii(
            self._counts_, self._x_lower_, self._x_upper_, self._sigma_, lower, upper
        )
        arms = np.empty(4, dtype=np.int64)
        certified, count = _core.decide(self.means_, lower, upper, self._epsilon_, arms)
        if certified >= 0:
            return int(certified), arms[:0]
        return None, everything if self._is_uniform_ else arms[:count].copy()

    def tell(self, arms, rewards):
        """Take the rewards of the arms that were asked for.

        Parameters
        ----------
        arms : array-like of int
            Exactly the arms of `ask`, in any order.
        rewards : array-like
            Their rewards.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        arms, rewards = self._check_rewards(arms, rewards)
        if self._asked_ is None or sorted(arms) != sorted(self._asked_.tolist()):
            asked = None if self._asked_ is None else self._asked_.tolist()
            raise ValueError(
                f"tell takes the arms that were asked for, {asked}; got "
                f"{arms.tolist()}. observe takes rewards of other arms."
            )
        np.add.at(self._counts_, arms, 1.0)
        np.add.at(self._sums_, arms, rewards)
        changed = np.zeros(self._n_arms_, dtype=bool)
        changed[arms] = True
        self._log_p_ = _core.watch(
            np.nan_to_num(self.means_), self._counts_, changed, self._sigma_,
            self._epsilon_, self._log_p_,
        )  # fmt: skip
        self._asked_ = None
        self._look()
        return self

    def observe(self, arms, rewards):
        """Take rewards that were logged, of whatever arms.

        The p-value and the bounds stay valid if arms were chosen without knowledge of
        their future rewards. They are looked at after each reward, so that the p-value
        may be smaller than after the rounds of `tell`. Logs are not limited by
        `max_pulls`.

        Parameters
        ----------
        arms : array-like of int of shape (n,)
            Arms in the order of time.
        rewards : array-like of shape (n,)
            Their rewards.

        Returns
        -------
        self : object
            The test.
        """
        self._start()
        arms, rewards = self._check_rewards(arms, rewards)
        if self._asked_ is not None:
            raise ValueError(
                f"the arms {self._asked_.tolist()} were asked for; tell their rewards "
                "first."
            )
        counts, sums = self._counts_.copy(), self._sums_.copy()
        certified, self._log_p_ = _core.replay(
            arms, rewards, counts, sums, self._x_lower_, self._x_upper_, self._sigma_,
            self._epsilon_, self._log_p_,
        )  # fmt: skip
        self._counts_, self._sums_ = counts, sums
        if certified >= 0 and self._certified_ is None:
            self._certified_ = int(certified)
        self._look()
        return self

    def _look(self):
        """See whether the test has ended."""
        certified, arms = self._next_round()
        if certified is not None and self._certified_ is None:
            self._certified_ = certified
        over = self._counts_.sum() + len(arms) > self._most_
        self._done_ = bool(self._certified_ is not None or over)

    def _check_rewards(self, arms, rewards):
        arms, rewards = np.asarray(arms), np.ascontiguousarray(rewards, np.float64)
        if arms.ndim != 1 or not len(arms) or rewards.shape != arms.shape:
            raise ValueError(
                "arms and rewards must be of the same length, at least 1; got shapes "
                f"{arms.shape} and {rewards.shape}."
            )
        if (
            arms.dtype.kind not in "iu"
            or (arms < 0).any()
            or (arms >= self._n_arms_).any()
        ):
            raise ValueError(
                f"arms must be integers in [0, {self._n_arms_}); got "
                f"{arms.tolist()}. An arm cannot be added to a test under way."
            )
        if not (np.abs(rewards) <= _LARGEST_REWARD).all():
            raise ValueError(
                f"rewards must be finite numbers, of at most {_LARGEST_REWARD:g}."
            )
        if self._sigma_ == 0.5 and ((rewards < 0.0) | (rewards > 1.0)).any():
            raise ValueError(
                "sigma=0.5 is for rewards in [0, 1]; got rewards from "
                f"{rewards.min():g} to {rewards.max():g}."
            )
        return arms.astype(np.int64), rewards

    def run(self, draw):
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
        rng = self._generator()
        while not self._done_:
            arms = self.ask()
            drawn = [np.ravel(draw(int(arm), 1, rng)) for arm in arms]
            if any(len(rewards) != 1 for rewards in drawn):
                raise ValueError("draw must return as many rewards as `size` asks for.")
            rewards = np.array(drawn, dtype=np.float64)[:, 0]
            self.tell(arms, rewards)
        return self

    def _generator(self):
        self._start()
        if self._rng_ is None:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            self._rng_ = np.random.default_rng(seed)
        return self._rng_

    def to_dict(self):
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = dict(self._given_)
        if params["random_state"] is not None and not isinstance(
            params["random_state"], Integral
        ):
            # Its draws so far are in the generator.
            self._generator()
            params["random_state"] = None
        params = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in params.items()
        }
        return {
            "params": params,
            "counts": self._counts_.tolist(),
            "sums": self._sums_.tolist(),
            "log_p": self._log_p_,
            "certified": self._certified_,
            "done": self._done_,
            "asked": None if self._asked_ is None else self._asked_.tolist(),
            "rng": None if self._rng_ is None else self._rng_.bit_generator.state,
        }

    @classmethod
    def from_dict(cls, state):
        """Return the test that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`.

        Returns
        -------
        test : BestArmTest
            Goes on where the other was.
        """
        found = cls(**state["params"])
        found._start()
        counts = np.array(state["counts"], dtype=np.float64)
        sums = np.array(state["sums"], dtype=np.float64)
        if counts.shape != found._counts_.shape or sums.shape != counts.shape:
            raise ValueError("the state has another number of arms than n_arms.")
        found._counts_, found._sums_ = counts, sums
        found._log_p_, found._done_ = float(state["log_p"]), bool(state["done"])
        found._certified_ = state["certified"]
        if state["asked"] is not None:
            found._asked_ = np.array(state["asked"], dtype=np.int64)
        if state["rng"] is not None:
            found._rng_ = np.random.default_rng()
            found._rng_.bit_generator.state = state["rng"]
        return found


def simulate_best_arm_tests(
    means, *, delta=0.05, epsilon=0.0, sigma=1.0, max_pulls, sampler="lucb",
    rewards="normal", random_state=None,
):  # fmt: skip
    """Run many tests on simulated rewards.

    .. versionadded:: 0.1

    Parameters
    ----------
    means : array-like of shape (n_runs, n_arms)
        Expectations of the arms in each run; the first is the control's.
    delta : float or array-like of shape (n_runs,), default=0.05
        Probability of certifying a wrong arm.
    epsilon : float, default=0.0
        Improvement that is asked for.
    sigma : float, default=1.0
        Sub-Gaussian scale, and the standard deviation of normal rewards.
    max_pulls : int
        Largest number of rewards of a test.
    sampler : {"lucb", "uniform"}, default="lucb"
        As of `BestArmTest`.
    rewards : {"normal", "bernoulli"}, default="normal"
        Law of the rewards.
    random_state : int, RandomState instance or None, default=None
        Seed of the rewards.

    Returns
    -------
    results : dict of ndarray of shape (n_runs,)
        ``"certified"``: the certified arm or -1; ``"best"``: the arm of largest mean;
        ``"n_pulls"``; ``"log_p_value"``.

    See Also
    --------
    BestArmTest : One test, on real rewards.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.sequential import simulate_best_arm_tests
    >>> found = simulate_best_arm_tests(
    ...     np.tile([0.0, 1.0, 2.0], (100, 1)), max_pulls=5000, random_state=0
    ... )
    >>> print(np.mean(found["certified"] == 2))
    1.0
    """
    means = np.atleast_2d(np.ascontiguousarray(means, dtype=np.float64))
    n_runs, n_arms = means.shape
    # For its checks.
    BestArmTest(
        n_arms, epsilon=epsilon, sigma=sigma, max_pulls=max_pulls, sampler=sampler
    )._start()
    if rewards not in ("normal", "bernoulli"):
        raise ValueError(f"rewards must be 'normal' or 'bernoulli'; got {rewards!r}.")
    if not np.isfinite(means).all():
        raise ValueError("means must be finite.")
    if rewards == "bernoulli" and ((means < 0.0) | (means > 1.0)).any():
        raise ValueError("means of Bernoulli rewards must be in [0, 1].")
    delta = np.broadcast_to(np.asarray(delta, dtype=np.float64), n_runs)
    if not ((delta > 0.0) & (delta < 1.0)).all():
        raise ValueError("delta must be in (0, 1).")
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_runs)
    results = {
        "certified": np.empty(n_runs, dtype=np.int64),
        "best": np.empty(n_runs, dtype=np.int64),
        "n_pulls": np.empty(n_runs, dtype=np.int64),
        "log_p_value": np.empty(n_runs),
    }
    for k in range(n_runs):
        found = _core.simulate(
            means[k], float(sigma), float(epsilon),
            excess(np.log(delta[k]) - np.log(2.0 * (n_arms - 1))),
            excess(np.log(delta[k]) - np.log(2.0)), min(int(max_pulls), 2**62),
            sampler == "uniform", rewards == "bernoulli", int(seeds[k]),
            np.zeros(n_arms), np.zeros(n_arms),
        )  # fmt: skip
        for values, value in zip(results.values(), found, strict=True):
            values[k] = value
    return results
