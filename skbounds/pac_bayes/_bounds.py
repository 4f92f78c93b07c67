"""Bounds on the risk of a Gibbs classifier, of a vote and of single members."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from skbounds.pac_bayes._constants import (
    LINEAR_KL_RATE,
    chi2_moment,
    invert_lower,
    invert_upper,
    kl_complexity,
)

DISTANCES = {
    "chi2": ("linear", "squared", "kl"),
    "kl": ("linear", "squared", "kl", "lambda", "catoni"),
}
CONSTANTS = ("exact", "classical", "paper")


def check_delta(delta: float) -> float:
    """Return delta as a float; it must lie in (0, 1)."""
    if not isinstance(delta, Real) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
    return float(delta)


def check_n_samples(n_samples: int) -> int:
    """Return the number of rows as an int; it must be a positive whole number."""
    whole = isinstance(n_samples, Integral) or (
        isinstance(n_samples, Real) and float(n_samples).is_integer()
    )
    if not whole or n_samples < 1:
        raise ValueError(
            f"n_samples must be a positive whole number; got {n_samples!r}."
        )
    return int(n_samples)


def check_pair(divergence: str, distance: str) -> None:
    """Refuse a divergence and a distance that make no bound together."""
    if divergence not in DISTANCES:
        raise ValueError(
            f"divergence must be one of {sorted(DISTANCES)}; got {divergence!r}."
        )
    if distance not in DISTANCES[divergence]:
        raise ValueError(
            f"with divergence={divergence!r}, distance must be one of "
            f"{list(DISTANCES[divergence])}; got {distance!r}."
        )


def check_probabilities(name: str, value, n_members: int) -> np.ndarray:
    """Return an array of laws over members (last axis), exactly normalised."""
    value = np.asarray(value, dtype=np.float64)
    if value.ndim == 0 or value.shape[-1] != n_members:
        raise ValueError(
            f"{name} must have one entry per member, {n_members}; got shape "
            f"{value.shape}."
        )
    if not np.isfinite(value).all() or (value < 0.0).any():
        raise ValueError(f"{name} must be finite and non-negative; got {value!r}.")
    total = value.sum(axis=-1, keepdims=True)
    if (np.abs(total - 1.0) > 1e-6).any():
        worst = float(total.flat[np.argmax(np.abs(total - 1.0))])
        raise ValueError(f"{name} must sum to 1; got a sum of {worst!r}.")
    return value / total


def check_risks(risks) -> np.ndarray:
    """Return risks as an array with at least one axis, all in [0, 1]."""
    risks = np.asarray(risks, dtype=np.float64)
    if risks.ndim == 0 or risks.shape[-1] == 0:
        raise ValueError(
            f"risks must have one entry per member; got shape {risks.shape}."
        )
    if not ((risks >= 0.0) & (risks <= 1.0)).all():
        raise ValueError("risks must be finite and lie in [0, 1].")
    return risks


def check_prior(prior, n_members: int) -> np.ndarray:
    """Return the prior over members; None is uniform."""
    if prior is None:
        return np.full(n_members, 1.0 / n_members)
    return check_probabilities("prior", prior, n_members)


def make_rule(
    divergence: str,
    distance: str,
    n_samples: int,
    delta: float,
    constants: str,
    catoni_c: float | None,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the bound as a function of mean risk and complexity.

    The complexity is sum q^2 / p for chi2 and KL(q || p) for kl; the function is
    vectorised and increasing in both arguments.
    """
    check_pair(divergence, distance)
    if constants not in CONSTANTS:
        raise ValueError(
            f"constants must be one of {list(CONSTANTS)}; got {constants!r}."
        )
    m, log_level = float(n_samples), -np.log(delta)
    if divergence == "chi2":
        moment = chi2_moment(n_samples, distance, constants) / delta
        if distance == "linear":
            return lambda risk, spread: risk + np.sqrt(spread * moment)
        if distance == "squared":
            return lambda risk, spread: risk + np.sqrt(np.sqrt(spread * moment))
        return lambda risk, spread: invert_upper(risk, np.sqrt(spread * moment))
    if distance == "linear":
        return lambda risk, kl: risk + (kl + log_level) / m + LINEAR_KL_RATE
    if distance == "catoni":
        c = check_catoni(catoni_c)
        return lambda risk, kl: (
            np.expm1(-c * risk - (kl + log_level) / m) / np.expm1(-c)
        )
    level = kl_complexity(n_samples, constants) + log_level
    if distance == "squared":
        return lambda risk, kl: risk + np.sqrt((kl + level) / (2.0 * m))
    if distance == "kl":
        return lambda risk, kl: invert_upper(risk, (kl + level) / m)
    return lambda risk, kl: _thiemann(risk, (kl + level) / m)


def check_catoni(catoni_c) -> float:
    """Return Catoni's constant as a float; it must be given and positive."""
    if catoni_c is None:
        raise ValueError(
            "distance='catoni' needs catoni_c, a positive constant that was fixed "
            "before the risks were looked at."
        )
    if not isinstance(catoni_c, Real) or not 0.0 < catoni_c < np.inf:  # type: ignore[operator]
        raise ValueError(f"catoni_c must be positive and finite; got {catoni_c!r}.")
    return float(catoni_c)


def _thiemann(risk, cost):
    """Minimise risk / (1 - lam/2) + cost / (lam (1 - lam/2)) over lam in (0, 2)."""
    lam = 2.0 / (1.0 + np.sqrt(1.0 + 2.0 * risk / cost))
    return (risk + cost / lam) / (1.0 - 0.5 * lam)


def complexity(posterior, prior, divergence: str) -> np.ndarray:
    """Return sum q^2 / p (chi2) or KL(q || p) along the last axis."""
    if divergence == "kl":
        return np.maximum(rel_entr(posterior, prior).sum(axis=-1), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(posterior > 0.0, posterior**2 / prior, 0.0)
    return terms.sum(axis=-1)


def as_scalar(value):
    """Return a Python float for an array without axes."""
    value = np.asarray(value)
    return float(value) if value.ndim == 0 else value


def pac_bayes_bound(
    posterior: ArrayLike,
    risks: ArrayLike,
    n_samples: int,
    *,
    delta: float,
    divergence: Literal["chi2", "kl"],
    distance: Literal["linear", "squared", "kl", "lambda", "catoni"],
    prior: ArrayLike | None = None,
    constants: Literal["exact", "classical", "paper"] = "exact",
    catoni_c: float | None = None,
) -> float | np.ndarray:
    r"""Bound the risk of a Gibbs classifier.

    With probability at least ``1 - delta`` over the rows on which the risks were
    measured, for all posteriors at once, the risk of the classifier that draws a member
    from the posterior for each row is at most the returned value. The members and the
    prior must not depend on those rows.

    With L the posterior's mean risk, S = sum q²/p, D = KL(q, p) and m rows:

    ============== ===========================================================
    chi2, linear   L + sqrt(S / (4 m delta))
    chi2, squared  L + (S I(m) / delta)^(1/4)
    chi2, kl       kl⁺(L, sqrt(S I(m) / delta))
    kl, linear     L + (D + ln(1/delta)) / m + 0.1233
    kl, squared    L + sqrt((D + c(m) + ln(1/delta)) / (2 m))
    kl, kl         kl⁺(L, (D + c(m) + ln(1/delta)) / m)
    kl, lambda     min over lam of L / (1 - lam/2) + (D + c(m) + ln(1/delta)) /
                   (m lam (1 - lam/2))
    kl, catoni     (1 - exp(-c L - (D + ln(1/delta)) / m)) / (1 - exp(-c))
    ============== ===========================================================

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    posterior : array-like of shape (..., n_members)
        Weights of the members, summing to 1.
    risks : array-like of shape (..., n_members)
        Their empirical risks, in [0, 1], on rows not used to train them.
    n_samples : int
        Number of those rows.
    delta : float
        Probability, in (0, 1), that the bound may fail.
    divergence : {'chi2', 'kl'}
        How the distance of posterior and prior is measured.
    distance : {'linear', 'squared', 'kl', 'lambda', 'catoni'}
        How that of empirical and true risk is measured. The last two go with
        ``divergence='kl'`` only.
    prior : array-like of shape (..., n_members), default=None
        Prior weights. None: uniform.
    constants : {'exact', 'classical', 'paper'}, default='exact'
        ``'exact'``: the sharp constants, with c(m) Maurer's sum; ``'classical'``: the
        usual c(m) = ln(2 sqrt(m)); ``'paper'``: the chi-square constants as printed,
        which are too large, to reproduce tables.
    catoni_c : float, default=None
        Catoni's constant c, for ``distance='catoni'``; to be fixed beforehand.

    Returns
    -------
    bound : float or ndarray of shape (...,)
        The bound, which may exceed 1. Where the posterior has mass that the prior has
        not, it is the bound's limit: 1 for the distance 'kl', and 1 / (1 - exp(-c)) for
        'catoni', otherwise infinite.

    See Also
    --------
    optimal_posterior : The posterior with the least bound.
    binomial_tail_bound : The bound for one classifier fixed beforehand.

    References
    ----------
    .. [1] P. Sahu, N. Hemachandra. "Optimal posteriors for chi-squared divergence based
       PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors
       and cross-validation procedure". Equations 3-5, 8, 11, 13, 16.
    .. [2] A. Maurer (2004). "A note on the PAC Bayesian theorem".
    .. [3] N. Thiemann, C. Igel, O. Wintenberger, Y. Seldin (2017). "A strongly
       quasiconvex PAC-Bayesian bound". ALT 2017.
    .. [4] O. Catoni (2007). "PAC-Bayesian supervised classification". IMS.

    Examples
    --------
    >>> from skbounds.pac_bayes import pac_bayes_bound
    >>> risks = [0.10, 0.12, 0.20, 0.35]
    >>> bound = pac_bayes_bound([0.6, 0.4, 0, 0], risks, 200, delta=0.05,
    ...                         divergence="chi2", distance="kl")
    >>> round(bound, 3)
    0.2
    """
    risks = check_risks(risks)
    n_members = risks.shape[-1]
    posterior = check_probabilities("posterior", posterior, n_members)
    prior = check_prior(prior, n_members)
    rule = make_rule(
        divergence,
        distance,
        check_n_samples(n_samples),
        check_delta(delta),
        constants,
        catoni_c,
    )
    mean_risk = np.sum(posterior * risks, axis=-1)
    mean_risk, cost = np.broadcast_arrays(
        np.clip(mean_risk, 0.0, 1.0), complexity(posterior, prior, divergence)
    )
    return as_scalar(rule(mean_risk, cost))


def chi2_constant(
    n_samples: int,
    distance: Literal["linear", "squared", "kl"],
    constants: Literal["exact", "classical", "paper"] = "exact",
) -> float:
    r"""Return the constant of a chi-square bound.

    It is :math:`I(m) = \sup_l E\,\phi(k/m, l)^2` for k binomial with m trials and
    probability l, where phi is the distance of empirical and true risk.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_samples : int
        Number of rows m.
    distance : {'linear', 'squared', 'kl'}
        The distance.
    constants : {'exact', 'classical', 'paper'}, default='exact'
        ``'paper'``: as printed (Lemma 3, Table 5), four times too large for
        ``'squared'`` and of the order 1/m instead of 1/m² for ``'kl'``. The other two
        are the same.

    Returns
    -------
    constant : float
        I(m).

    See Also
    --------
    pac_bayes_bound : Where it enters.

    Examples
    --------
    >>> from skbounds.pac_bayes import chi2_constant
    >>> print(f"{chi2_constant(200, 'kl'):.4g}")
    2.264e-05
    >>> print(f"{chi2_constant(200, 'kl', constants='paper'):.4g}")
    0.001847
    """
    check_pair("chi2", distance)
    if constants not in CONSTANTS:
        raise ValueError(
            f"constants must be one of {list(CONSTANTS)}; got {constants!r}."
        )
    return float(chi2_moment(check_n_samples(n_samples), distance, constants))


def kl_inverse(q: ArrayLike, c: ArrayLike, lower: bool = False) -> float | np.ndarray:
    r"""Invert the binary relative entropy.

    Returns the largest r >= q (or the smallest r <= q) with
    :math:`q \ln(q/r) + (1-q) \ln((1-q)/(1-r)) \le c`.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    q : array-like
        Probabilities.
    c : array-like
        Non-negative budgets.
    lower : bool, default=False
        Whether to return the smallest r instead of the largest.

    Returns
    -------
    r : float or ndarray
        Solutions, of the broadcast shape of `q` and `c`.

    See Also
    --------
    pac_bayes_bound : Bounds that use it.

    Examples
    --------
    >>> from skbounds.pac_bayes import kl_inverse
    >>> print(f"{kl_inverse(0.1, 0.05):.4f} {kl_inverse(0.1, 0.05, lower=True):.4f}")
    0.2201 0.0313
    """
    q, c = np.broadcast_arrays(
        np.asarray(q, dtype=np.float64), np.asarray(c, dtype=np.float64)
    )
    if not ((q >= 0.0) & (q <= 1.0)).all():
        raise ValueError("q must lie in [0, 1].")
    if not (c >= 0.0).all():
        raise ValueError("c must be non-negative.")
    return as_scalar(invert_lower(q, c) if lower else invert_upper(q, c))


def tandem_bound(
    posterior: ArrayLike,
    tandem_risks: ArrayLike,
    n_samples: int,
    *,
    delta: float,
    prior: ArrayLike | None = None,
    constants: Literal["exact", "classical", "paper"] = "exact",
) -> float | np.ndarray:
    r"""Bound the risk of a weighted vote by the members' joint mistakes.

    The vote errs where members of total weight one half err, so that by the
    second-order Markov inequality its risk is at most four times the risk that two
    members drawn independently both err.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    posterior : array-like of shape (..., n_members)
        Weights of the vote; they may depend on the rows.
    tandem_risks : array-like of shape (..., n_members, n_members)
        Share of rows, not used to train the members, on which both err.
    n_samples : int
        Number of those rows.
    delta : float
        Probability, in (0, 1), that the bound may fail.
    prior : array-like of shape (..., n_members), default=None
        Prior weights. None: uniform.
    constants : {'exact', 'classical', 'paper'}, default='exact'
        As for `pac_bayes_bound`; ``'paper'`` is the same as ``'exact'`` here.

    Returns
    -------
    bound : float or ndarray of shape (...,)
        Upper limit of the vote's risk, which may exceed 1.

    See Also
    --------
    c_bound : For two classes.
    binomial_tail_bound : Much tighter when the weights are fixed beforehand.

    References
    ----------
    .. [1] A. Masegosa, S. Lorenzen, C. Igel, Y. Seldin (2020). "Second order
       PAC-Bayesian bounds for the weighted majority vote". NeurIPS 2020, Theorem 9 in
       its kl form.

    Examples
    --------
    >>> from skbounds.pac_bayes import tandem_bound
    >>> joint = [[0.10, 0.04, 0.03], [0.04, 0.12, 0.05], [0.03, 0.05, 0.20]]
    >>> bound = tandem_bound([0.5, 0.3, 0.2], joint, 400, delta=0.05,
    ...                      constants="classical")
    >>> round(bound, 4)
    0.4962
    """
    joint = check_risks(tandem_risks)
    if joint.ndim < 2 or joint.shape[-1] != joint.shape[-2]:
        raise ValueError(
            f"tandem_risks must be square in its last axes; got shape {joint.shape}."
        )
    posterior = check_probabilities("posterior", posterior, joint.shape[-1])
    prior = check_prior(prior, joint.shape[-1])
    rule = make_rule(
        "kl", "kl", check_n_samples(n_samples), check_delta(delta), constants, None
    )
    both = np.einsum("...i,...ij,...j->...", posterior, joint, posterior)
    both, cost = np.broadcast_arrays(
        np.clip(both, 0.0, 1.0), 2.0 * complexity(posterior, prior, "kl")
    )
    return as_scalar(4.0 * rule(both, cost))


def c_bound(gibbs_risk: ArrayLike, disagreement: ArrayLike) -> float | np.ndarray:
    r"""Bound the risk of a binary vote from Gibbs risk and disagreement.

    :math:`1 - (1 - 2R)^2 / (1 - 2d)`, by the Chebyshev-Cantelli inequality. It holds
    for true values; it increases in R and decreases in d, so that an upper limit of
    the risk and a lower limit of the disagreement, each at half the level, give a
    certificate.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    gibbs_risk : array-like
        Risk R of the Gibbs classifier.
    disagreement : array-like
        Probability d, at most one half, that two members drawn independently disagree.

    Returns
    -------
    bound : float or ndarray
        Upper limit of the vote's risk; 1 where R is one half or more.

    See Also
    --------
    tandem_bound : For any number of classes.

    References
    ----------
    .. [1] P. Germain, A. Lacasse, F. Laviolette, M. Marchand, J.-F. Roy (2015). "Risk
       bounds for the majority vote". JMLR 16, Theorem 11.

    Examples
    --------
    >>> from skbounds.pac_bayes import c_bound
    >>> print(f"{c_bound(0.12, 0.09):.4f}")
    0.2956
    """
    risk, apart = np.broadcast_arrays(
        np.asarray(gibbs_risk, dtype=np.float64),
        np.asarray(disagreement, dtype=np.float64),
    )
    if not ((risk >= 0.0) & (risk <= 1.0)).all():
        raise ValueError("gibbs_risk must lie in [0, 1].")
    if not ((apart >= 0.0) & (apart <= 0.5)).all():
        raise ValueError("disagreement must lie in [0, 0.5].")
    with np.errstate(divide="ignore", invalid="ignore"):
        value = 1.0 - (1.0 - 2.0 * risk) ** 2 / (1.0 - 2.0 * apart)
    # An upper and a lower limit may contradict one another; the bound is then 0.
    return as_scalar(np.where(risk < 0.5, np.clip(value, 0.0, 1.0), 1.0))
