"""Exact limits for the risk of classifiers that were fixed before the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import beta, binom

from skbounds.pac_bayes._bounds import (
    as_scalar,
    check_delta,
    check_n_samples,
    check_prior,
    check_risks,
)
from skbounds.pac_bayes._constants import invert_upper


def binomial_tail_bound(
    n_errors: ArrayLike, n_samples: int, *, delta: float | ArrayLike
) -> float | np.ndarray:
    r"""Bound the risk of one classifier by the exact binomial tail.

    The upper Clopper-Pearson limit: with probability at least ``1 - delta`` the risk of
    a classifier that was fixed before the rows were looked at is at most the returned
    value. No smaller limit holds for all risks (up to randomisation).

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_errors : array-like of int
        Mistakes on rows not used for training.
    n_samples : int
        Number of those rows.
    delta : float or array-like
        Probability, in (0, 1), that the bound may fail.

    Returns
    -------
    bound : float or ndarray
        Upper limit of the risk.

    See Also
    --------
    occam_bound : The best of several classifiers.

    References
    ----------
    .. [1] J. Langford (2005). "Tutorial on practical prediction theory for
       classification". JMLR 6, Theorem 3.3.

    Examples
    --------
    >>> from skbounds.pac_bayes import binomial_tail_bound
    >>> print(f"{binomial_tail_bound(3, 100, delta=0.05):.4f}")
    0.0757
    """
    n_samples = check_n_samples(n_samples)
    errors = np.asarray(n_errors, dtype=np.float64)
    if not ((errors >= 0.0) & (errors <= n_samples) & (errors % 1.0 == 0.0)).all():
        raise ValueError(
            f"n_errors must be whole numbers from 0 to n_samples={n_samples}; got "
            f"{n_errors!r}."
        )
    level = np.asarray(delta, dtype=np.float64)
    if not ((level > 0.0) & (level < 1.0)).all():
        raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
    return as_scalar(tail_limit(errors, n_samples, level))


def tail_limit(errors: ArrayLike, n_samples: int, level: ArrayLike) -> np.ndarray:
    """Return the upper Clopper-Pearson limits; level 0 gives 1."""
    errors, level = np.broadcast_arrays(np.asarray(errors, float), level)
    inside = (errors < n_samples) & (level > 0.0)
    limit = np.ones(errors.shape)
    k = errors[inside]
    limit[inside] = beta.isf(np.asarray(level)[inside], k + 1.0, n_samples - k)
    return limit


def occam_bound(
    risks: ArrayLike, n_samples: int, *, delta: float, prior: ArrayLike | None = None
) -> float | np.ndarray:
    r"""Bound the risk of the best member, chosen after looking.

    Exact binomial tails at the levels ``delta * prior`` hold for all members at once;
    the least of them certifies the member that attains it.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    risks : array-like of shape (..., n_members)
        Error rates of the members on rows not used to train them.
    n_samples : int
        Number of those rows. Risks times rows are counts of mistakes; they are rounded
        up to whole numbers.
    delta : float
        Probability, in (0, 1), that the bound may fail.
    prior : array-like of shape (..., n_members), default=None
        Prior weights, fixed before the risks were known. None: uniform.

    Returns
    -------
    bound : float or ndarray of shape (...,)
        Upper limit of the risk of the member with the least limit.

    See Also
    --------
    binomial_tail_bound : The limit of one classifier.
    pac_bayes_bound : The bound of a Gibbs classifier.

    References
    ----------
    .. [1] J. Langford (2005). "Tutorial on practical prediction theory for
       classification". JMLR 6, Theorem 4.6.

    Examples
    --------
    >>> from skbounds.pac_bayes import occam_bound
    >>> print(f"{occam_bound([0.03, 0.05, 0.09], 100, delta=0.05):.4f}")
    0.0905
    """
    risks, n_samples = check_risks(risks), check_n_samples(n_samples)
    prior = check_prior(prior, risks.shape[-1])
    return as_scalar(
        occam_limits(risks, n_samples, check_delta(delta) * prior).min(axis=-1)
    )


def occam_limits(risks: np.ndarray, n_samples: int, levels: np.ndarray) -> np.ndarray:
    """Return the members' exact tail limits at their own levels."""
    counts = np.minimum(np.ceil(risks * n_samples - 1e-9 * n_samples**0.5), n_samples)
    return tail_limit(np.maximum(counts, 0.0), n_samples, levels)


def randomized_tail_limit(errors: int, n_samples: int, delta: float, u: float) -> float:
    """Return the limit p that solves P(X < k) + u P(X = k) = delta.

    With u uniform on (0, 1), drawn without a look at the rows, it is exceeded by the
    true risk with probability exactly delta, where the exact tail has less.

    Parameters
    ----------
    errors : int
        Number k.
    n_samples : int
    delta : float
    u : float
    """
    excess = lambda p: (
        (binom.cdf(errors - 1, n_samples, p) if errors else 0.0)
        + u * binom.pmf(errors, n_samples, p)
        - delta
    )
    if excess(0.0) <= 0.0:
        return 0.0
    high = float(tail_limit(errors, n_samples, delta))
    if excess(high) >= 0.0:
        return high
    return float(brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14))


def hoeffding_bentkus_limit(mean: float, n_samples: int, delta: float) -> float:
    """Bound the mean of independent variables in [0, 1] from the mean of n of them.

    The largest R whose p-value min(exp(-n kl(mean, R)), e P(Bin(n, R) <= ceil(n mean)))
    exceeds delta.
    """
    by_entropy = invert_upper(np.array(mean), np.array(-np.log(delta) / n_samples))
    errors = np.minimum(np.ceil(n_samples * mean - 1e-9), n_samples)
    return float(min(by_entropy, tail_limit(errors, n_samples, delta / np.e)))
