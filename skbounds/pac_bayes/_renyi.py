"""The paper's Theorem 1 for any order: bounds by Renyi divergences."""

from __future__ import annotations

from functools import lru_cache
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, xlogy

from skbounds.pac_bayes._bounds import (
    as_scalar,
    check_delta,
    check_n_samples,
    check_prior,
    check_probabilities,
    check_risks,
)
from skbounds.pac_bayes._constants import invert_upper

_DISTANCES = ("linear", "squared", "kl")
# Values of the risk between which the largest moment is looked for.
_GRID = 257


def renyi_constant(
    n_samples: int, distance: Literal["linear", "squared", "kl"], order: float
) -> float:
    r"""Return the largest moment of the distance of empirical and true risk.

    :math:`I(m) = \sup_l E |\phi(k / m, l)|^{\alpha'}` with k binomial, for
    :math:`\alpha' = \alpha / (\alpha - 1)`.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_samples : int
        Number m of rows.
    distance : {'linear', 'squared', 'kl'}
        The distance :math:`\phi`: difference, its square, or relative entropy.
    order : float
        Order :math:`\alpha` of the divergence, above 1.

    Returns
    -------
    constant : float
        I(m). For order 2 that of `chi2_constant`, up to the search for the supremum.
        Very near order 1 it may be less than the smallest float, and is then 0;
        `renyi_bound` uses its logarithm.

    See Also
    --------
    renyi_bound : Where it enters.

    Examples
    --------
    >>> from skbounds.pac_bayes import chi2_constant, renyi_constant
    >>> bool(abs(renyi_constant(200, "kl", 2.0) / chi2_constant(200, "kl") - 1) < 1e-6)
    True
    """
    return float(np.exp(_log_constant(n_samples, distance, order)))


def _log_constant(n_samples, distance, order):
    if distance not in _DISTANCES:
        raise ValueError(f"distance must be one of {_DISTANCES}; got {distance!r}.")
    m, order = check_n_samples(n_samples), _check_order(order)
    return _log_largest_moment(m, distance, order)


def _check_order(order):
    if not isinstance(order, Real) or not 1.0 < order < np.inf:
        raise ValueError(f"order must be above 1 and finite; got {order!r}.")
    return float(order)


@lru_cache(maxsize=256)
def _log_largest_moment(m, distance, order):
    """Return log I(m): of orders near 1 the moments are below the smallest float."""
    power = order / (order - 1.0)
    k = np.arange(m + 1.0)
    q = k / m
    log_choose = gammaln(m + 1.0) - gammaln(k + 1.0) - gammaln(m - k + 1.0)
    neg_entropy = xlogy(q, q) + xlogy(1.0 - q, 1.0 - q)

    def log_moment(log_risk):
        risk, log_rest = np.exp(log_risk), np.log1p(-np.exp(log_risk))
        if distance == "kl":
            gap = neg_entropy - q * log_risk - (1.0 - q) * log_rest
        else:
            gap = np.abs(q - risk) ** (1.0 if distance == "linear" else 2.0)
        with np.errstate(divide="ignore"):
            terms = power * np.log(np.maximum(gap, 0.0))
        return logsumexp(log_choose + k * log_risk + (m - k) * log_rest + terms)

    # Symmetric in risk and 1 - risk. A count of one at the risk r contributes about
    # m r log(1 / (m r))^power / m^power, which is largest at log(1 / (m r)) = power.
    lowest = -2.0 * power - 10.0 - np.log(m)
    grid = np.unique(
        np.r_[
            np.linspace(lowest, np.log(0.5), _GRID),
            np.log(np.geomspace(1e-3 / m, 0.5, _GRID)),
            np.log(np.linspace(0.01, 0.5, 65)),
        ]
    )
    values = np.array([log_moment(log_risk) for log_risk in grid])
    best = values.argmax()
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda t: -log_moment(t), bounds=bracket, method="bounded",
                            options={"xatol": 1e-9})  # fmt: skip
    # Against what the search may have missed.
    return float(max(-found.fun, values[best]) + 1e-9)


def renyi_bound(
    posterior: ArrayLike,
    risks: ArrayLike,
    n_samples: int,
    *,
    order: float,
    delta: float,
    distance: Literal["linear", "squared", "kl"],
    prior: ArrayLike | None = None,
) -> float | np.ndarray:
    r"""Bound the risk of a Gibbs classifier by a Renyi divergence of any order.

    With probability at least ``1 - delta``, for all posteriors at once,

    .. math:: \phi(L, R) \le \Bigl(\sum_i p_i (q_i / p_i)^\alpha\Bigr)^{1/\alpha}
        (I(m) / \delta)^{1/\alpha'}.

    Order 2 is the chi-square bound of `pac_bayes_bound`. Orders nearer to 1 depend less
    on `delta` and more on how far the posterior is from the prior.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    posterior : array-like of shape (..., n_members)
        Weights of the members.
    risks : array-like of shape (..., n_members)
        Empirical risks of the members on rows not used to train them.
    n_samples : int
        Number of those rows.
    order : float
        Order of the divergence, above 1.
    delta : float
        Probability, in (0, 1), that the bound may fail.
    distance : {'linear', 'squared', 'kl'}
        How the distance of empirical and true risk is measured.
    prior : array-like of shape (..., n_members), default=None
        Prior weights. None: uniform.

    Returns
    -------
    bound : float or ndarray of shape (...,)
        Upper limit of the risk, which may exceed 1.

    See Also
    --------
    pac_bayes_bound : Orders 2 (chi-square) and, in the limit, 1 (KL).

    References
    ----------
    .. [1] P. Sahu, N. Hemachandra. "Optimal posteriors for chi-squared divergence based
       PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors
       and cross-validation procedure". Theorem 1.
    .. [2] L. Begin, P. Germain, F. Laviolette, J.-F. Roy (2016). "PAC-Bayesian bounds
       based on the Renyi divergence". AISTATS.

    Examples
    --------
    >>> from skbounds.pac_bayes import renyi_bound
    >>> risks, q = [0.10, 0.12, 0.20], [0.5, 0.4, 0.1]
    >>> for order in (1.2, 2.0, 4.0):
    ...     bound = renyi_bound(q, risks, 200, order=order, delta=0.01, distance="kl")
    ...     print(f"{order}: {bound:.3f}")
    1.2: 0.206
    2.0: 0.249
    4.0: 0.347
    """
    risks, order = check_risks(risks), _check_order(order)
    n_members = risks.shape[-1]
    posterior = check_probabilities("posterior", posterior, n_members)
    prior = check_prior(prior, n_members)
    log_moment = _log_constant(n_samples, distance, order) - np.log(check_delta(delta))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = order * np.log(posterior) - (order - 1.0) * np.log(prior)
    # A member without posterior weight adds nothing, whatever its prior.
    log_spread = logsumexp(np.where(posterior > 0.0, ratios, -np.inf), axis=-1) / order
    mean = np.minimum((posterior * risks).sum(axis=-1), 1.0)
    log_budget = log_spread + (order - 1.0) / order * log_moment
    with np.errstate(over="ignore"):
        mean, budget = np.broadcast_arrays(mean, np.exp(log_budget))
    if distance == "linear":
        return as_scalar(mean + budget)
    if distance == "squared":
        return as_scalar(mean + np.sqrt(budget))
    return as_scalar(invert_upper(mean, budget))


def posterior_concentration(posterior: ArrayLike, mass: float = 0.8) -> dict[str, Any]:
    """Return how concentrated weights are on few members (the paper's Table 9).

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    posterior : array-like of shape (n_members,)
        Weights of the members.
    mass : float, default=0.8
        Share of the weight, in (0, 1].

    Returns
    -------
    concentration : dict
        ``"n_members"``: the least number of members with that share of the weight;
        ``"l2_norm"``: the Euclidean norm of the weights; ``"effective_size"``: the
        reciprocal of its square, the number of equal weights with that norm.

    See Also
    --------
    optimal_posterior : Weights that minimise a bound.

    Examples
    --------
    >>> from skbounds.pac_bayes import posterior_concentration
    >>> posterior_concentration([0.5, 0.3, 0.2])["n_members"]
    2
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    if posterior.ndim != 1:
        raise ValueError(
            f"posterior must be of shape (n_members,); got {posterior.shape}."
        )
    posterior = check_probabilities("posterior", posterior, len(posterior))
    if not 0.0 < mass <= 1.0:
        raise ValueError(f"mass must lie in (0, 1]; got {mass!r}.")
    reached = np.cumsum(np.sort(posterior)[::-1])
    norm = float(np.sqrt(np.sum(posterior**2)))
    return {
        "n_members": int(np.searchsorted(reached, mass * (1.0 - 1e-12)) + 1),
        "l2_norm": norm,
        "effective_size": 1.0 / norm**2,
    }
