"""Error rates and power of decisions on many tests, for simulations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skbounds.sequential._functions import check_epsilon


def _check_decisions(rejected, is_null):
    """Return decisions and truth of shape (n_runs, n_tests)."""
    found = []
    for name, value in (("rejected", rejected), ("is_null", is_null)):
        value = np.asarray(value)
        if value.dtype != bool or value.ndim not in (1, 2) or not len(value):
            raise ValueError(
                f"{name} must be bool, of shape (n_tests,) or (n_runs, n_tests); got "
                f"{value.dtype} of shape {value.shape}."
            )
        found.append(np.atleast_2d(value))
    rejected, is_null = found
    if rejected.shape[1] != is_null.shape[1] or len(is_null) not in (1, len(rejected)):
        raise ValueError(
            f"rejected and is_null must be of the same tests; got shapes "
            f"{rejected.shape} and {is_null.shape}."
        )
    return rejected, np.broadcast_to(is_null, rejected.shape)


def false_discovery_rate(rejected: ArrayLike, is_null: ArrayLike) -> float:
    """Return the mean over runs of the share of false discoveries.

    .. versionadded:: 0.2

    Parameters
    ----------
    rejected : array-like of bool of shape (n_runs, n_tests) or (n_tests,)
        Decisions.
    is_null : array-like of bool of shape (n_runs, n_tests) or (n_tests,)
        Which hypotheses are true.

    Returns
    -------
    rate : float
        Mean of V / max(R, 1), with V false ones among R rejections; of one run its
        false discovery proportion.

    See Also
    --------
    marginal_false_discovery_rate : Ratio of means.

    Examples
    --------
    >>> from skbounds.sequential import false_discovery_rate
    >>> false_discovery_rate([[True, True], [False, False]], [True, False])
    0.25
    """
    rejected, is_null = _check_decisions(rejected, is_null)
    false = (rejected & is_null).sum(axis=1)
    return float(np.mean(false / np.maximum(rejected.sum(axis=1), 1)))


def marginal_false_discovery_rate(rejected: ArrayLike, is_null: ArrayLike) -> float:
    """Return the ratio of mean false discoveries to mean discoveries and one.

    .. versionadded:: 0.2

    Parameters
    ----------
    rejected : array-like of bool of shape (n_runs, n_tests) or (n_tests,)
        Decisions.
    is_null : array-like of bool of shape (n_runs, n_tests) or (n_tests,)
        Which hypotheses are true.

    Returns
    -------
    rate : float
        E V / (E R + 1), (4.8), with means over runs.

    See Also
    --------
    false_discovery_rate : Mean of ratios.

    Examples
    --------
    >>> from skbounds.sequential import marginal_false_discovery_rate
    >>> marginal_false_discovery_rate([[True, True], [False, False]], [True, False])
    0.25
    """
    rejected, is_null = _check_decisions(rejected, is_null)
    false, total = (rejected & is_null).sum(axis=1).mean(), rejected.sum(axis=1).mean()
    return float(false / (total + 1.0))


def acceptable_arms(means: ArrayLike, *, epsilon: float = 0.0) -> np.ndarray:
    """Return which arms are as good as the best one and better than the control.

    .. versionadded:: 0.2

    Parameters
    ----------
    means : array-like of shape (..., n_arms)
        Expectations, the control's first.
    epsilon : float, default=0.0
        Slack among the best, and improvement over the control that is asked for.

    Returns
    -------
    acceptable : ndarray of bool of shape (..., n_arms)
        The set S* of (4.7): within epsilon of the best alternative, and better than the
        control by more than epsilon. All False under the null.

    Examples
    --------
    >>> from skbounds.sequential import acceptable_arms
    >>> acceptable_arms([0.0, 0.1, 0.8, 1.0], epsilon=0.3).tolist()
    [False, False, True, True]
    """
    epsilon = check_epsilon(epsilon)
    means = np.asarray(means, dtype=np.float64)
    if means.ndim < 1 or means.shape[-1] < 2 or not np.isfinite(means).all():
        raise ValueError(
            "means must be finite, of at least two arms of which the first is the "
            f"control; got shape {means.shape}."
        )
    best = means[..., 1:].max(axis=-1, keepdims=True)
    good = (means >= best - epsilon) & (means > means[..., :1] + epsilon)
    good[..., 0] = False
    return good


def best_arm_discovery_rate(
    rejected: ArrayLike, arms: ArrayLike, means: ArrayLike, *, epsilon: float = 0.0
) -> float:
    """Return the share of alternatives that are found with a right arm.

    .. versionadded:: 0.2

    Parameters
    ----------
    rejected : array-like of bool of shape (n_runs, n_tests) or (n_tests,)
        Decisions.
    arms : array-like of int of the same shape
        The arms that were recommended.
    means : array-like of shape (n_runs, n_tests, n_arms) or (n_tests, n_arms)
        Expectations of all arms, the control's first.
    epsilon : float, default=0.0
        With 0 the arm must be the best one (BDR); otherwise within epsilon of it, and
        better than the control by epsilon or more (4.9).

    Returns
    -------
    rate : float
        Mean over runs of the share, among tests of which some arm is better than the
        control by more than epsilon. nan without any.

    See Also
    --------
    false_discovery_rate : The other side.

    Examples
    --------
    >>> from skbounds.sequential import best_arm_discovery_rate
    >>> best_arm_discovery_rate([True, True], [2, 1], [[0, 1, 2], [0, 1, 2]])
    0.5
    """
    epsilon = check_epsilon(epsilon)
    means = np.asarray(means, dtype=np.float64)
    if means.ndim not in (2, 3):
        raise ValueError(
            "means must be of shape (n_tests, n_arms) or (n_runs, n_tests, n_arms); "
            f"got {means.shape}."
        )
    is_null = ~acceptable_arms(means, epsilon=epsilon).any(axis=-1)
    rejected, is_null = _check_decisions(rejected, is_null)
    means = np.broadcast_to(means, (*rejected.shape, means.shape[-1]))
    arms = np.asarray(arms)
    if arms.dtype.kind not in "iu":
        raise ValueError(f"arms must be integers; got {arms.dtype}.")
    if arms.size and (arms.min() < 0 or arms.max() >= means.shape[-1]):
        raise ValueError(
            f"arms must be integers in [0, {means.shape[-1]}); got {arms}."
        )
    arms = np.broadcast_to(arms, rejected.shape)
    chosen = np.take_along_axis(means, arms[..., None], axis=-1)[..., 0]
    right = chosen >= means.max(axis=-1) - epsilon
    right &= (chosen >= means[..., 0] + epsilon) & (arms > 0)
    hits, total = (rejected & right & ~is_null).sum(axis=1), (~is_null).sum(axis=1)
    some = total > 0
    if not some.any():
        return float("nan")
    return float(np.mean(hits[some] / total[some]))
