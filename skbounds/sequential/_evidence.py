"""Evidence that one arm is better than another, at any time: e-processes of pairs."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skbounds._core import sequential as _core
from skbounds.sequential._functions import (
    LARGEST_REWARD,
    as_floats,
    check_sigma,
    is_number,
)

REWARDS = {
    "normal": _core.NORMAL,
    "binary": _core.BINARY,
    "bounded": _core.BOUNDED,
}
# Exponents of two of the default bets, first and last, and the unit.
_EXPONENTS = {"normal": (-11, 3), "binary": (-9, 2), "bounded": (-10, 0)}
_UNITS = {"normal": 1.0, "binary": 1.0, "bounded": 0.75}
# Of the planned number of rewards: log(K / level) and this, at equal counts.
_OVERSHOOT = 2.6
_LARGEST_BET = 1e100


def check_rewards_kind(rewards):
    """Return the kind of rewards."""
    if not isinstance(rewards, str) or rewards not in REWARDS:
        raise ValueError(f"rewards must be one of {tuple(REWARDS)}; got {rewards!r}.")
    return rewards


def check_level(level, most=1.0):
    """Return a level in (0, most]."""
    if not is_number(level) or not 0.0 < level <= most:
        raise ValueError(
            f"level, the probability of an error, must be in (0, {most:g}]; got "
            f"{level!r}."
        )
    return float(level)


def make_bets(rewards, bets, max_pulls=None):
    """Return bets, and whether they are in units of 1 / sigma.

    Parameters
    ----------
    rewards : {"normal", "binary", "bounded"}
    bets : array-like or None
        None is the default grid, of powers of two.
    max_pulls : int or None
        Of that few rewards smaller bets than these could hardly matter.
    """
    if bets is None:
        first, last = _EXPONENTS[rewards]
        if max_pulls is not None:
            first = min(-int(np.ceil(0.5 * np.log2(max_pulls))) - 1, last - 1)
        return _UNITS[rewards] * 2.0 ** np.arange(first, last + 1), True
    bets = as_floats(bets, "bets", ndim=None).copy()
    most = 1.0 if rewards == "bounded" else _LARGEST_BET
    good = bets.ndim == 1 and len(bets) and np.isfinite(bets).all()
    if not good or (bets <= 0.0).any() or (bets >= most).any():
        limit = "in (0, 1)" if rewards == "bounded" else "positive"
        raise ValueError(
            f"bets must be {limit} for rewards={rewards!r}, one or more of them; got "
            f"{bets!r}."
        )
    if (np.diff(bets) <= 0.0).any():
        raise ValueError(f"bets must be increasing; got {bets!r}.")
    return bets, False


def bet_weights(n_bets):
    """Return the weights of pairs of bets, most of them near the diagonal.

    The worst expectation m of a pair has b n equal for both arms, so that with similar
    counts bets are alike; the others keep what is lost with other counts small.
    """
    k = np.arange(n_bets)
    weights = 1.0 / (1.0 + (k[:, None] - k) ** 2.0)
    return weights / weights.sum()


def _check_state(state, rewards, name):
    """Return (n, S, V), checked; V is 0 where it is not given."""
    state = as_floats(state, name, ndim=None)
    size = 3 if rewards == "bounded" else 2
    if state.shape != (size,):
        parts = "(n, S, V)" if size == 3 else "(n, S)"
        raise ValueError(
            f"{name} must be {parts} for rewards={rewards!r}: number and sum of "
            + ("rewards, and V" if size == 3 else "rewards")
            + f"; got {state!r}."
        )
    n, total, spread = (*state, 0.0)[:3]
    if not (np.isfinite(n) and n >= 0.0 and (n == 0.0 or n >= 1.0)):
        raise ValueError(f"{name} must have n, a number of rewards; got {n!r}.")
    if not max(abs(total), n) <= LARGEST_REWARD or not 0.0 <= spread < np.inf:
        raise ValueError(
            f"{name} must be finite, of sums up to {LARGEST_REWARD:g}, with V not "
            f"negative; got {state!r}."
        )
    if rewards != "normal" and not -1e-9 <= total <= n * (1.0 + 1e-12) + 1e-9:
        raise ValueError(
            f"{name} must be of rewards in [0, 1], with 0 <= S <= n; got {state!r}."
        )
    if rewards != "normal":
        total = min(max(total, 0.0), n)
    return np.array([n, total, spread])


def _check_pair(arm, control, rewards, sigma, bets):
    """Return what the core takes: kind, bets, weights, scale, arm and control."""
    check_rewards_kind(rewards)
    arm = _check_state(arm, rewards, "arm")
    control = _check_state(control, rewards, "control")
    bets, relative = make_bets(rewards, bets)
    scale = 1.0
    if rewards == "normal":
        if sigma is None:
            raise ValueError(
                "sigma must be given for rewards='normal': the standard deviation, or "
                "one for the arm and one for the control (BestArmTest can estimate it)."
            )
        sigma = np.atleast_1d(np.asarray(sigma, dtype=object))
        if sigma.shape not in ((1,), (2,)):
            raise ValueError(
                f"sigma must be a number or a pair of them; got {sigma!r}."
            )
        sigmas = [check_sigma(value) for value in sigma]
        arm[2], control[2] = arm[0] * sigmas[0] ** 2, control[0] * sigmas[-1] ** 2
        scale = max(sigmas) if relative else 1.0
    elif sigma is not None:
        raise ValueError(f"sigma is for rewards='normal' only; got {sigma!r}.")
    return REWARDS[rewards], bets, bet_weights(len(bets)), scale, arm, control


def log_evalue(
    arm: tuple,
    control: tuple,
    *,
    rewards: Literal["normal", "binary", "bounded"],
    sigma: float | tuple[float, float] | None = None,
    epsilon: float = 0.0,
    bets: ArrayLike | None = None,
) -> float:
    """Return log E of "the arm is at most epsilon better than the control".

    E is evidence against this null: its expectation is at most 1 if the null is true,
    at any time that is chosen while the rewards come in, whatever decides which arm is
    tried next. E is ever at least 1 / a with probability a at most.

    Read more in the :ref:`User Guide <sequential_evidence>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm, control : tuple
        ``(n, S)``, number and sum of rewards; of "bounded" rewards ``(n, S, V)``, where
        V is the sum of (x_t - c_t)^2 and c_t = (1/2 + sum of x before t) / t.
    rewards : {"normal", "binary", "bounded"}
        "normal": sub-Gaussian of scale `sigma`. "binary": in [0, 1], best for rewards
        that are 0 or 1. "bounded": in [0, 1], for rewards of small variance.
    sigma : float or pair of float, default=None
        Scale of "normal" rewards, of both or of the arm and of the control.
    epsilon : float, default=0.0
        Improvement that the null allows; below 0 it is a margin of non-inferiority.
        Of "binary" and "bounded" rewards in (-1, 1).
    bets : array-like, default=None
        Bets b of the mixture, positive and increasing; below 1 for "bounded". None is
        powers of two, of "normal" rewards over sigma.

    Returns
    -------
    log_e : float
        Natural logarithm, 0 where one of the two has no rewards. Of "normal" rewards
        whose numbers differ by more than the factor from the least to the largest bet,
        16384 by default, it is -inf: give smaller bets for those.

    See Also
    --------
    BestArmTest : Keeps the states, and many arms.
    lift_interval : All improvements against which there is not enough evidence.

    Examples
    --------
    Conversions of 7 % instead of 4 % in 1000 users each:

    >>> from skbounds.sequential import log_evalue
    >>> print(f"{log_evalue((1000, 70), (1000, 40), rewards='binary'):.4f}")
    1.9688
    """
    kind, bets, weights, scale, arm, control = _check_pair(
        arm, control, rewards, sigma, bets
    )
    epsilon = check_shift(epsilon, rewards)
    if arm[0] == 0.0 or control[0] == 0.0:
        return 0.0
    return _core.log_evalue(kind, bets, weights, scale, arm, control, epsilon)


def check_shift(epsilon, rewards, width=1.0):
    """Return epsilon, which may be negative, and for rewards in [0, 1] is within 1."""
    if not is_number(epsilon) or not abs(epsilon) <= LARGEST_REWARD:
        raise ValueError(
            f"epsilon must be a number of at most {LARGEST_REWARD:g} in size; got "
            f"{epsilon!r}."
        )
    if rewards != "normal" and abs(epsilon) >= width:
        raise ValueError(
            f"epsilon must be less than {width:g}, the range of the rewards, in size; "
            f"got {epsilon!r}."
        )
    return float(epsilon)


def _check_alternatives(n_alternatives):
    if (
        not isinstance(n_alternatives, Integral)
        or isinstance(n_alternatives, bool)
        or n_alternatives < 1
    ):
        raise ValueError(
            f"n_alternatives must be a positive integer; got {n_alternatives!r}."
        )
    return int(n_alternatives)


def lift_interval(
    arm: tuple,
    control: tuple,
    *,
    rewards: Literal["normal", "binary", "bounded"],
    sigma: float | tuple[float, float] | None = None,
    level: float = 0.05,
    n_alternatives: int = 1,
) -> tuple[float, float]:
    """Return an interval of how much better an arm is than the control.

    It holds at all times at once, whatever decides when to look and which arm is tried
    next, with probability 1 - `level`; of `n_alternatives` arms all together.

    Read more in the :ref:`User Guide <sequential_evidence>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm, control : tuple
        As of `log_evalue`.
    rewards : {"normal", "binary", "bounded"}
        As of `log_evalue`.
    sigma : float or pair of float, default=None
        As of `log_evalue`.
    level : float, default=0.05
        Probability that the interval ever fails; at most 1/2.
    n_alternatives : int, default=1
        Number of arms that are compared with the control.

    Returns
    -------
    lower, upper : float
        Differences of expectations; of rewards in [0, 1] within -1 and 1.

    See Also
    --------
    BestArmTest.lift_intervals : Of all arms of a test.

    Examples
    --------
    >>> from skbounds.sequential import lift_interval
    >>> low, high = lift_interval((1000, 70), (1000, 40), rewards="binary")
    >>> print(f"{low:.4f} {high:.4f}")
    -0.0070 0.0682
    """
    kind, bets, weights, scale, arm, control = _check_pair(
        arm, control, rewards, sigma, None
    )
    level = check_level(level, 0.5)
    threshold = np.log(2.0 * _check_alternatives(n_alternatives) / level)
    if arm[0] == 0.0 or control[0] == 0.0:
        limit = np.inf if rewards == "normal" else 1.0
        return -limit, limit
    given = kind, bets, weights, scale
    lower = _core.lift_bound(*given, arm, control, threshold)
    return lower, -_core.lift_bound(*given, control, arm, threshold)


def planned_pulls(
    lift: float,
    *,
    rewards: Literal["normal", "binary", "bounded"],
    sigma: float | None = None,
    base_rate: float | None = None,
    level: float = 0.05,
    n_alternatives: int = 1,
) -> int:
    """Return how many rewards of each arm a test by e-processes takes, about.

    For arms that are tried equally often, of which one is better by `lift`; on average.
    About six in ten tests take less, one in ten 1.6 to 1.8 times as many.

    .. versionadded:: 0.2

    Parameters
    ----------
    lift : float
        Improvement over the control (beyond epsilon) that is to be found.
    rewards : {"normal", "binary", "bounded"}
        Kind of the rewards.
    sigma : float, default=None
        Standard deviation of "normal" and "bounded" rewards.
    base_rate : float, default=None
        Success rate of the control, for "binary" rewards.
    level : float, default=0.05
        Level at which the arm is to be adopted.
    n_alternatives : int, default=1
        Number of arms beside the control.

    Returns
    -------
    n_pulls : int
        Rewards of each arm.

    Notes
    -----
    The test stops where lift^2 n / (2 (v_1 + v_0)) is log(K / level) + 2.6, with
    variances v of the two arms. With other counts than equal ones 2.6 is 3.0 (2:1), 3.9
    (4:1), 4.8 (10:1) and 5.7 (100:1).

    Examples
    --------
    >>> from skbounds.sequential import planned_pulls
    >>> planned_pulls(0.02, rewards="binary", base_rate=0.1)
    5473
    """
    check_rewards_kind(rewards)
    level, K = check_level(level), _check_alternatives(n_alternatives)
    if not is_number(lift) or not 0.0 < lift < np.inf:
        raise ValueError(f"lift must be a positive number; got {lift!r}.")
    if rewards == "binary":
        if sigma is not None:
            raise ValueError(f"sigma is not for rewards='binary'; got {sigma!r}.")
        if not is_number(base_rate) or not 0.0 <= base_rate <= 1.0 - lift:
            raise ValueError(
                "base_rate, the control's success rate, must be in [0, 1 - lift]; got "
                f"{base_rate!r}."
            )
        better = base_rate + lift
        variances = base_rate * (1.0 - base_rate) + better * (1.0 - better)
    else:
        if base_rate is not None:
            raise ValueError(
                f"base_rate is for rewards='binary' only; got {base_rate!r}."
            )
        variances = 2.0 * check_sigma(sigma) ** 2
    with np.errstate(over="ignore"):
        total = 2.0 * (variances / lift) * expected_total(K, level) / lift
    if not total < LARGEST_REWARD:
        raise ValueError(f"lift must not be that small; got {lift!r}.")
    return max(int(np.ceil(total)), 1)


def expected_total(n_alternatives, level):
    """Return what lift^2 / (2 variance of the difference) is where a test stops."""
    return np.log(n_alternatives / level) + _OVERSHOOT
