"""Functions of always-valid inference."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skbounds._core import sequential as _core
from skbounds._validation import check_array, is_number
from skbounds.sequential import _radius

_LARGEST_COUNT = 1e15
# Squares of rewards, and of their differences, are doubles.
LARGEST_REWARD = 1e150
# Squares of it, and of what it is compared with, are doubles.
_LEAST_SIGMA, _LARGEST_SIGMA = 1e-145, 1e145


def as_floats(values, name, ndim=1):
    """Return real numbers as an array of doubles.

    Parameters
    ----------
    values : array-like
    name : str
        Of the parameter, for the message.
    ndim : int or None
        Number of dimensions; None for any.
    """
    try:
        found = np.asarray(values)
        good = found.dtype.kind in "biuf" or (
            found.dtype.kind == "O" and all(is_number(v) for v in found.ravel())
        )
        found = np.ascontiguousarray(found, np.float64) if good else None
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError(f"{name} must be real numbers; got {values!r}.")
    found = found.reshape(np.shape(values))
    if ndim is not None and found.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension{'' if ndim == 1 else 's'}; got shape "
            f"{found.shape}."
        )
    return found


def draw_seeds(random_state, size=None):
    """Return one seed, or an array of them."""
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(2**31 - 1, size=size)
    return check_random_state(random_state).randint(2**31 - 1, size=size)


def check_sigma(sigma):
    """Return the sub-Gaussian scale."""
    if not is_number(sigma) or not _LEAST_SIGMA <= sigma <= _LARGEST_SIGMA:
        raise ValueError(
            "sigma, the sub-Gaussian scale of the rewards, must be a positive number "
            f"from {_LEAST_SIGMA:g} to {_LARGEST_SIGMA:g} (1 for unit variance, 1/2 "
            "for rewards in [0, 1], (b - a)/2 for [a, b]); "
            f"got {sigma!r}."
        )
    return float(sigma)


def _check_counts(n, name="n"):
    n = np.asarray(n, dtype=np.float64)
    if not np.isfinite(n).all() or (n < 1.0).any():
        raise ValueError(f"{name} must be numbers of rewards, at least 1; got {n!r}.")
    return n


def _check_delta(delta, name="delta"):
    delta = np.asarray(delta, dtype=np.float64)
    if not ((delta > 0.0) & (delta <= 1.0)).all():
        raise ValueError(f"{name} must be in (0, 1]; got {delta!r}.")
    return delta


def lil_radius(n: ArrayLike, delta: ArrayLike, *, sigma: float) -> float | np.ndarray:
    """Return the radius that a mean keeps for all n at once.

    With probability 1 - delta the mean of the first n rewards is less than
    ``lil_radius(n, delta)`` above its expectation, for all n >= 1 (and the same below,
    each with probability delta of its own).

    .. versionadded:: 0.1

    Parameters
    ----------
    n : array-like
        Numbers of rewards.
    delta : array-like
        Probability of failure, in (0, 1]; what is above 1/10 is treated like 1/10.
    sigma : float
        Sub-Gaussian scale of the rewards: 1 for unit variance, 1/2 for rewards in
        [0, 1], (b - a)/2 for [a, b].

    Returns
    -------
    radius : float or ndarray
        sqrt(2 sigma^2 beta(n, delta) / n), (4.3) with the factor 2 sigma^2.

    See Also
    --------
    lil_delta : Its inverse.

    Examples
    --------
    >>> from skbounds.sequential import lil_radius
    >>> print(f"{lil_radius(100, 0.01, sigma=1.0):.6f}")
    0.485227
    """
    sigma, n, delta = check_sigma(sigma), _check_counts(n), _check_delta(delta)
    found = _radius.radius(n, delta, sigma)
    return float(found) if found.ndim == 0 else found


def lil_delta(n: ArrayLike, radius: ArrayLike, *, sigma: float) -> float | np.ndarray:
    """Return the probability of failure that belongs to a radius.

    .. versionadded:: 0.1

    Parameters
    ----------
    n : array-like
        Numbers of rewards.
    radius : array-like
        Radii, not negative.
    sigma : float
        Sub-Gaussian scale of the rewards.

    Returns
    -------
    delta : float or ndarray
        With ``lil_radius(n, delta) == radius``; 1 below the radius at 1/10.

    See Also
    --------
    lil_radius : Its inverse.

    Examples
    --------
    >>> from skbounds.sequential import lil_delta, lil_radius
    >>> print(f"{lil_delta(100, lil_radius(100, 0.01, sigma=1.0), sigma=1.0):.6f}")
    0.010000
    """
    sigma, n = check_sigma(sigma), _check_counts(n)
    radius = np.asarray(radius, dtype=np.float64)
    if not (radius >= 0.0).all():
        raise ValueError(f"radius must not be negative; got {radius!r}.")
    found = np.exp(_radius.log_delta_of(n, radius, sigma))
    return float(found) if found.ndim == 0 else found


def _check_arms(means, counts=None):
    if counts is not None:
        means, counts = np.asarray(means), np.asarray(counts, dtype=np.float64)
        if counts.shape == means.shape:
            # Without rewards there is no mean: NaN, or whatever is given.
            means = np.where(counts == 0.0, 0.0, means)
    means = check_array(means, ensure_2d=False, dtype=np.float64, input_name="means")
    if means.ndim != 1 or len(means) < 2:
        raise ValueError(
            "means must be of at least two arms, of which the first is the control; "
            f"got shape {means.shape}."
        )
    if counts is None:
        return means
    good = counts.shape == means.shape and np.isfinite(counts).all()
    if not good or not ((counts == 0.0) | (counts >= 1.0)).all():
        raise ValueError(
            f"counts must be numbers of rewards, one for each of the {len(means)} arms;"
            f" got {counts!r}."
        )
    return means, counts


def check_epsilon(epsilon):
    if not is_number(epsilon) or not 0.0 <= epsilon <= LARGEST_REWARD:
        raise ValueError(
            f"epsilon must be a number from 0 to {LARGEST_REWARD:g}; got {epsilon!r}."
        )
    return float(epsilon)


def always_valid_pvalue(
    means: ArrayLike, counts: ArrayLike, *, sigma: float, epsilon: float = 0.0
) -> float:
    """Return the p-value of "no arm is better than the control" as of now.

    The null is that no alternative's expectation exceeds the control's by more than
    epsilon. The minimum of these p-values over time is valid whenever it is looked at:
    under the null it is ever at most a with probability a at most.

    .. versionadded:: 0.1

    Parameters
    ----------
    means : array-like of shape (n_arms,)
        Mean rewards; the first is the control's. NaN where there are no rewards.
    counts : array-like of shape (n_arms,)
        Numbers of rewards. Arms without rewards say nothing.
    sigma : float
        Sub-Gaussian scale of the rewards.
    epsilon : float, default=0.0
        Improvement that is asked for.

    Returns
    -------
    p_value : float
        The least of the arms' p-values (4.5), with the radius that has its sigma. For
        fewer than five alternatives there are none between a fifth of their number and
        1.

    See Also
    --------
    BestArmTest : Keeps the running minimum.

    Examples
    --------
    >>> from skbounds.sequential import always_valid_pvalue
    >>> print(f"{always_valid_pvalue([0.0, 1.0], [80, 100], sigma=1.0):.6f}")
    0.028503
    """
    means, counts = _check_arms(means, counts)
    sigma, epsilon = check_sigma(sigma), check_epsilon(epsilon)
    found = 0.0
    if counts[0] < 1.0:
        return 1.0
    for i in range(1, len(means)):
        if counts[i] >= 1.0:
            found = _core.log_p_value(
                means[i] - means[0] - epsilon, counts[i], counts[0], len(means) - 1,
                sigma, found,
            )  # fmt: skip
    return float(np.exp(found))


def sample_complexity_bound(
    means: ArrayLike, delta: float, *, sigma: float, epsilon: float = 0.0
) -> float:
    """Return how many rounds of the bandit are enough, with probability 1 - delta.

    For planning, from guesses of the expectations: the explicit bounds in the proof of
    Proposition 2. They are loose.

    .. versionadded:: 0.1

    Parameters
    ----------
    means : array-like of shape (n_arms,)
        Expectations; the first is the control's.
    delta : float
        Probability of failure.
    sigma : float
        Sub-Gaussian scale of the rewards.
    epsilon : float, default=0.0
        Improvement that is asked for.

    Returns
    -------
    n_rounds : float
        inf on the boundaries, where the bandit need not end: the best alternative
        exactly epsilon above the control, or two best arms and epsilon = 0.

    Examples
    --------
    >>> from skbounds.sequential import sample_complexity_bound
    >>> sample_complexity_bound([0.0, 1.0, 2.5], 0.05, sigma=1.0)
    1129.0
    """
    means = _check_arms(means)
    sigma, epsilon = check_sigma(sigma), check_epsilon(epsilon)
    delta = float(_check_delta(delta))
    K = len(means) - 1

    def tau(size):
        """Return the least n with 2 phi_n(delta / 2K) < size."""
        if not size > 0.0:
            return np.inf
        enough = lambda n: 2.0 * _radius.radius(n, delta / (2 * K), sigma) < size
        high = 1
        while not enough(high):
            high *= 2
            if high > _LARGEST_COUNT:
                return np.inf
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return float(high)

    control, best = means[0], means[1:].max()
    if control > best - epsilon:
        at = 0.5 * (control + best - epsilon)
        total = tau(abs(at - control))
        at = 0.5 * (control + epsilon + best)
        return total + sum(tau(abs(at - mean)) for mean in means[1:])
    slack = min(2.0 * epsilon / 7.0, (best - control - epsilon) / 5.0)
    winner = int(np.argmax(means))
    others = np.delete(means, winner)
    at = 0.5 * (means[winner] + others.max())
    total = tau(abs(0.5 * (best - epsilon + control) - control))
    return total + 3.0 * sum(tau(max(abs(at - mean), slack)) for mean in means)
