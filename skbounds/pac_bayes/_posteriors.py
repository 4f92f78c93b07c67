"""Posteriors that minimise a PAC-Bayes bound, exactly or with a proved gap.

Every bound is a function R(L, complexity) that increases in the mean risk L and in the
complexity. A minimiser therefore has the least complexity for its own L, which leaves
one parameter: q_i proportional to p_i (mu - l_i)_+ for the chi-square bounds, to
p_i exp(-beta l_i) for those with KL divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from skbounds._blocks import memory_limit, row_blocks
from skbounds.pac_bayes._bounds import (
    as_scalar,
    check_catoni,
    check_delta,
    check_n_samples,
    check_prior,
    check_risks,
    complexity,
    make_rule,
)
from skbounds.pac_bayes._constants import chi2_moment

Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]

# What is proved of the posteriors found by search: no other is better by more.
SEARCH_TOL = 1e-6
# Evaluations of a search; the gap found until then is reported. Not met in practice.
MAX_EVALUATIONS = 200_000
# Members beyond which sums over them are taken by bins of their risks.
_MANY_MEMBERS = 20_000
_N_BINS = 4096
# Terms of the series in a bin, and the step up to which it is used.
_ORDER, _LARGEST_STEP = 6, 0.05
# Beyond exp(-45) of the largest a weight is rounding.
_REACH = 45.0


@overload
def optimal_posterior(
    risks: ArrayLike,
    n_samples: int,
    *,
    delta: float,
    divergence: Literal["chi2", "kl"],
    distance: Literal["linear", "squared", "kl", "lambda", "catoni"],
    prior: ArrayLike | None = None,
    constants: Literal["exact", "classical", "paper"] = "exact",
    catoni_c: float | None = None,
    return_gap: Literal[False] = False,
) -> tuple[np.ndarray, float | np.ndarray]: ...


@overload
def optimal_posterior(
    risks: ArrayLike,
    n_samples: int,
    *,
    delta: float,
    divergence: Literal["chi2", "kl"],
    distance: Literal["linear", "squared", "kl", "lambda", "catoni"],
    prior: ArrayLike | None = None,
    constants: Literal["exact", "classical", "paper"] = "exact",
    catoni_c: float | None = None,
    return_gap: Literal[True],
) -> tuple[np.ndarray, float | np.ndarray, float | np.ndarray]: ...


def optimal_posterior(
    risks: ArrayLike,
    n_samples: int,
    *,
    delta: float,
    divergence: Literal["chi2", "kl"],
    distance: Literal["linear", "squared", "kl", "lambda", "catoni"],
    prior: ArrayLike | None = None,
    constants: Literal["exact", "classical", "paper"] = "exact",
    catoni_c: float | None = None,
    return_gap: bool = False,
) -> (
    tuple[np.ndarray, float | np.ndarray]
    | tuple[np.ndarray, float | np.ndarray, float | np.ndarray]
):
    r"""Return the posterior that minimises a PAC-Bayes bound.

    The minimum is global. For the distances 'linear' (both divergences), 'squared' with
    chi2, and 'catoni' it has a closed form; for the others it is found by a search that
    proves that no posterior is better by more than 1e-6.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    risks : array-like of shape (..., n_members)
        Empirical risks of the members, in [0, 1], on rows not used to train them.
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
        Prior weights. None: uniform. Members with prior zero get weight zero.
    constants : {'exact', 'classical', 'paper'}, default='exact'
        See `pac_bayes_bound`.
    catoni_c : float, default=None
        Catoni's constant, for ``distance='catoni'``; to be fixed beforehand.
    return_gap : bool, default=False
        Whether to return the proved gap as well.

    Returns
    -------
    posterior : ndarray of shape (..., n_members)
        The weights. Weights over prior decrease with the risk.
    bound : float or ndarray of shape (...,)
        The least bound; may exceed 1.
    gap : float or ndarray of shape (...,)
        No posterior's bound is lower by more than this. Only if `return_gap`.

    See Also
    --------
    pac_bayes_bound : The bound of a given posterior.

    Notes
    -----
    The bound with the squared distance and the chi-square divergence may have several
    local minima, contrary to the paper's Table 1. Closed forms cost O(n_members log
    n_members) and are vectorised over leading axes; a search costs some milliseconds
    per problem.

    References
    ----------
    .. [1] P. Sahu, N. Hemachandra. "Optimal posteriors for chi-squared divergence based
       PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors
       and cross-validation procedure". Theorems 3-5, 8, 9.

    Examples
    --------
    >>> from skbounds.pac_bayes import optimal_posterior
    >>> posterior, bound = optimal_posterior(
    ...     [0.10, 0.12, 0.20, 0.35], 200, delta=0.05, divergence="chi2", distance="kl")
    >>> posterior.round(3)
    array([0.625, 0.375, 0.   , 0.   ])
    >>> round(bound, 4)
    0.2002
    """
    risks = check_risks(risks)
    n_members = risks.shape[-1]
    n_samples, delta = check_n_samples(n_samples), check_delta(delta)
    prior = check_prior(prior, n_members)
    rule = make_rule(divergence, distance, n_samples, delta, constants, catoni_c)
    shape = np.broadcast_shapes(risks.shape, prior.shape)
    l = np.broadcast_to(risks, shape).reshape(-1, n_members)
    # Squares of differences must not underflow.
    l = np.where(l < 1e-100, 0.0, l)
    p = np.broadcast_to(prior, shape).reshape(-1, n_members)

    gap = np.zeros(len(l))
    if divergence == "chi2" and distance != "kl":
        moment = chi2_moment(n_samples, distance, constants) / delta
        solve = _linear_chi2 if distance == "linear" else _squared_chi2
        q = solve(l, p, moment)
    elif divergence == "kl" and distance in ("linear", "catoni"):
        beta = float(n_samples)
        if distance == "catoni":
            beta *= check_catoni(catoni_c)
        q = _tilt(l, p, beta)
    else:
        q = np.empty(l.shape)
        for i in range(len(l)):
            curve_of = _chi2_curve if divergence == "chi2" else _kl_curve
            q[i], gap[i] = _search(l[i], p[i], curve_of, rule, float(n_samples))
    bound = rule(
        np.clip(np.sum(q * l, axis=-1), 0.0, 1.0), complexity(q, p, divergence)
    )
    result = q.reshape(shape), as_scalar(bound.reshape(shape[:-1]))
    return (*result, as_scalar(gap.reshape(shape[:-1]))) if return_gap else result


def _tilt(l, p, beta):
    """Return q proportional to p exp(-beta l); no overflow whatever beta is."""
    least = np.min(np.where(p > 0.0, l, np.inf), axis=-1, keepdims=True)
    q = p * np.exp(-beta * np.maximum(l - least, 0.0))
    return q / q.sum(axis=-1, keepdims=True)


def _truncate(l, p, mu):
    """Return q proportional to p (mu - l)_+."""
    q = p * np.maximum(mu - l, 0.0)
    return q / q.sum(axis=-1, keepdims=True)


def _prefix_moments(l, p):
    """Return risks sorted and shifted to 0, and moments of their prefixes.

    Members without prior mass sit at the largest risk of the others, where they
    change nothing.
    """
    has_mass = p > 0.0
    top = np.max(np.where(has_mass, l, 0.0), axis=-1, keepdims=True)
    l = np.where(has_mass, l, top)
    order = np.argsort(l, axis=-1, kind="stable")
    l = np.take_along_axis(l, order, axis=-1)
    p = np.take_along_axis(p, order, axis=-1)
    least = l[:, :1].copy()
    l = l - least
    mass = np.cumsum(p, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(mass > 0.0, np.cumsum(p * l, axis=-1) / mass, 0.0)
        # Member by member: the difference of second moment and squared mean cancels.
        share = np.where(mass > 0.0, p / mass, 0.0)[:, 1:]
        added = mass[:, :-1] * share * (l[:, 1:] - mean[:, :-1]) ** 2
        var = np.zeros(l.shape)
        var[:, 1:] = np.cumsum(added, axis=-1) / mass[:, 1:]
        var = np.where(mass > 0.0, var, 0.0)
    after = np.concatenate([l[:, 1:], np.full((len(l), 1), np.inf)], axis=1)
    return least, l, after, mass, mean, var


def _linear_chi2(l, p, moment):
    """Solve sum p (mu - l)_+^2 = moment; mu is the bound."""
    least, _, after, mass, mean, var = _prefix_moments(l, p)
    reach = mass * ((after - mean) ** 2 + var)
    k = np.argmax(reach >= moment, axis=-1)[:, None]
    mass, mean, var = (np.take_along_axis(a, k, axis=-1) for a in (mass, mean, var))
    mu = mean + np.sqrt(np.maximum(moment / mass - var, 0.0))
    return _truncate(l - least, p, mu)


def _squared_chi2(l, p, moment):
    """Take the best of the stationary points of all pieces.

    On the k least risks, with y the squared distance of L from their mean over their
    variance, stationarity is (1 + y)^3 = K y^2; the smaller root is the minimum.
    """
    least, sorted_l, after, mass, mean, var = _prefix_moments(l, p)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_k = np.log(moment) - np.log(16.0 * mass) - 2.0 * np.log(var)
        exists = (var > 0.0) & (mass > 0.0) & (log_k >= np.log(6.75))
        log_k = np.where(exists, log_k, 10.0)
        # z = 1 / (1 + y) solves z (1 - z)^2 = 1/K: trigonometric form.
        cosine = -13.5 * (2.0 / 27.0 - np.exp(-log_k))
        angle = (np.arccos(np.clip(cosine, -1.0, 1.0)) - 2.0 * np.pi) / 3.0
        z = 2.0 / 3.0 * (1.0 + np.cos(angle))
        y = np.clip((1.0 - z) / z, np.exp(-0.5 * log_k), 2.0)
        for _ in range(4):
            slope = 3.0 / (1.0 + y) - 2.0 / y
            residual = 3.0 * np.log1p(y) - log_k - 2.0 * np.log(y)
            step = np.where(slope < -1e-8, residual / slope, 0.0)
            y = np.clip(y - step, 0.5 * y, 2.0)
        mu = mean + np.sqrt(var / y)
        value = mean - np.sqrt(var * y) + np.sqrt(np.sqrt(moment * (1.0 + y) / mass))
    # Neighbouring pieces agree to first order where they meet: slack costs nothing.
    slack = 1e-9 * np.maximum(sorted_l[:, -1:], 1e-300)
    exists &= (mu > sorted_l - slack) & (mu <= after + slack)
    value = np.where(exists, value, np.inf)
    best = np.argmin(value, axis=-1)[:, None]
    interior = np.take_along_axis(value, best, axis=-1)
    tied = (l == least) & (p > 0.0)
    point = np.where(tied, p, 0.0)
    at_least = np.sqrt(np.sqrt(moment / point.sum(axis=-1, keepdims=True)))
    inside = interior < at_least
    cut = np.where(inside, np.take_along_axis(mu, best, axis=-1), 1.0)
    return np.where(
        inside, _truncate(l - least, p, cut), point / point.sum(axis=-1, keepdims=True)
    )


def _chi2_curve(l, p, n_samples):
    """Return the least sum q^2 / p for each mean risk, and the q that attains it.

    `l` is increasing. The parameter t in [0, 1] moves the mean risk from the prior's
    (t = 0) to the least (t = 1); the curve is convex and piecewise quadratic.
    """
    _, shifted, after, mass, mean, var = (
        a[0] for a in _prefix_moments(l[None], p[None])
    )
    # The mean risk at mu = after[k], where piece k ends.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = mean - var / (after - mean)
    ends[-1] = mean[-1]

    def position(t):
        risk = (1.0 - t) * mean[-1]
        k = np.minimum(np.searchsorted(ends[:-1], risk, side="left"), len(ends) - 1)
        return risk, k

    def curve(t):
        risk, k = position(t)
        u = np.maximum(mean[k] - risk, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            excess = np.where(u > 0.0, u**2 / var[k], 0.0)
            return risk + l[0], (1.0 + excess) / mass[k]

    def posterior(t):
        if t == 0.0:
            return p
        risk, k = position(np.array(t))
        u = mean[k] - risk
        if u <= 0.0:
            return np.where(np.arange(len(p)) <= k, p, 0.0) / mass[k]
        return _truncate(shifted, p, mean[k] + var[k] / u)

    return curve, posterior


def _kl_curve(l, p, n_samples):
    """Return the least KL(q || p) for each mean risk, and the q that attains it.

    `l` is increasing. The parameter t in [0, 1] gives beta = m t / (1 - t).
    """
    shifted = l - l[0]

    def beta_of(t):
        with np.errstate(divide="ignore"):
            return n_samples * t / (1.0 - t)

    bins = None
    if len(l) > _MANY_MEMBERS and shifted[-1] > 0.0:
        bins = _Bins(shifted, p)

    def curve(t):
        risk, kl = np.empty(t.shape), np.empty(t.shape)
        for block in row_blocks(len(t), memory_limit() // (4 * len(l))):
            beta = beta_of(t[block])
            ends = np.isposinf(beta)
            finite = np.where(ends, 0.0, beta)
            if bins is None:
                weight = p * np.exp(-finite[:, None] * shifted)
                total = weight.sum(axis=1)
                mean = weight @ shifted / total
            else:
                total, mean = bins.moments(finite)
            risk[block] = l[0] + np.where(ends, 0.0, mean)
            cost = -finite * mean - np.log(total)
            kl[block] = np.maximum(np.where(ends, -np.log(p[0]), cost), 0.0)
        return risk, kl

    def posterior(t):
        if t == 1.0:
            return (np.arange(len(p)) == 0).astype(np.float64)
        return _tilt(l, p, beta_of(t))

    return curve, posterior


class _Bins:
    """Sums of p exp(-beta l) and p l exp(-beta l) over very many sorted members.

    For small beta by the moments of the members in narrow bins, for large beta over the
    members that are not negligible: exact to about 1e-13 either way.

    Parameters
    ----------
    l : ndarray of shape (n,)
        Increasing from 0.
    p : ndarray of shape (n,)
    """

    def __init__(self, l, p):
        self.l, self.p = l, p
        self.width = l[-1] / _N_BINS
        place = np.minimum((l / self.width).astype(np.intp), _N_BINS - 1)
        self.centers = (np.arange(_N_BINS) + 0.5) * self.width
        offset = l - self.centers[place]
        powers = [p * offset**k for k in range(_ORDER + 2)]
        self.sums = np.array(
            [np.bincount(place, weights=part, minlength=_N_BINS) for part in powers]
        )

    def moments(self, beta):
        """Return sum p exp(-beta l) and the mean of l under these weights."""
        found = [self._moments(b) for b in beta.tolist()]
        return np.array(found).reshape(-1, 2).T

    def _moments(self, beta):
        if beta * self.width > _LARGEST_STEP:
            stop = np.searchsorted(self.l, _REACH / beta, side="right")
            weight = self.p[:stop] * np.exp(-beta * self.l[:stop])
            total = weight.sum()
            return total, weight @ self.l[:stop] / total
        height = np.exp(-beta * self.centers)
        series = np.cumprod(np.r_[1.0, -beta / np.arange(1.0, _ORDER + 1.0)])
        total = height @ (series @ self.sums[:-1])
        first = height @ (series @ self.sums[1:])
        first += (height * self.centers) @ (series @ self.sums[:-1])
        return total, first / total


def _search(l, p, curve_of, rule: Rule, n_samples: float):
    """Minimise rule along a curve by branch and bound; return q and the proved gap.

    Along the curve the mean risk falls and the complexity rises, so that on [a, b] the
    bound is at least rule(risk(b), complexity(a)).
    """
    has_mass = p > 0.0
    # Tied members share their weight in proportion to the prior: one of them is enough.
    distinct, inverse = np.unique(l[has_mass], return_inverse=True)
    mass = np.bincount(inverse, weights=p[has_mass])
    q = np.zeros(len(l))
    if len(distinct) == 1:
        q[has_mass] = p[has_mass]
        return q / q.sum(), 0.0
    curve, posterior = curve_of(distinct, mass, n_samples)

    t = np.linspace(0.0, 1.0, 129)
    risk, cost = curve(t)
    value = rule(risk, cost)
    best, t_best = _polish(curve, rule, t, value)
    low, high = t[:-1], t[1:]
    ends = (risk[:-1], cost[:-1], risk[1:], cost[1:])
    proved, evaluations = np.inf, len(t)
    while True:
        floor = rule(ends[2], ends[1])
        open_ = floor < best - SEARCH_TOL
        if evaluations > MAX_EVALUATIONS:
            open_[:] = False
        proved = min(proved, floor[~open_].min(initial=np.inf))
        if not open_.any():
            break
        low, high = low[open_], high[open_]
        risk_a, cost_a, risk_b, cost_b = (end[open_] for end in ends)
        middle = 0.5 * (low + high)
        risk, cost = curve(middle)
        value = rule(risk, cost)
        evaluations += len(middle)
        found = int(np.argmin(value))
        if value[found] < best - SEARCH_TOL:
            around = np.array([low[found], middle[found], high[found]])
            best, t_best = _polish(curve, rule, around, rule(*curve(around)))
        ends = (
            np.concatenate([risk_a, risk]),
            np.concatenate([cost_a, cost]),
            np.concatenate([risk, risk_b]),
            np.concatenate([cost, cost_b]),
        )
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    weight = posterior(t_best) / mass
    q[has_mass] = p[has_mass] * weight[inverse]
    return q / q.sum(), float(max(best - proved, 0.0))


def _polish(curve, rule: Rule, t, value):
    """Return the least value near the best of some points, and where it is."""
    i = int(np.argmin(value))

    def objective(s):
        risk, cost = curve(np.array([s]))
        return float(rule(risk, cost)[0])

    bracket = t[max(i - 1, 0)], t[min(i + 1, len(t) - 1)]
    found = minimize_scalar(
        objective,
        bounds=bracket,
        method="bounded",
        options={"xatol": 1e-12, "maxiter": 200},
    )
    if found.fun < value[i]:
        return float(found.fun), float(found.x)
    return float(value[i]), float(t[i])
