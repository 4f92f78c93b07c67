"""The objects of the theory of early stopping, each with its conditions.

Numbers of equations and theorems are those of chapter 3 of F. Yang's thesis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils import check_random_state

from skbounds._sklearn_compat import Interval, StrOptions, validate_params
from skbounds._typing import RandomState
from skbounds.kernel_boost import _radius

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
# Squares of these are doubles.
_LARGEST = 1e100
_SCALE = Interval(Real, 1e-100, _LARGEST, closed="both")
_NOISE = Interval(Real, 0, _LARGEST, closed="both")
# Halvings of an interval of multipliers or radii.
_HALVINGS = 60
# C_H^2 = 2 max(|f*|^2, 32, sigma^2).
_LEAST_SQUARED_NORM = 32.0
# Largest exponents whose exponential is a double.
_LARGEST_EXPONENT = 700.0


def _checked_spectrum(eigenvalues):
    mu = np.asarray(eigenvalues, dtype=np.float64)
    if mu.ndim != 1 or not len(mu) or not ((mu >= 0.0) & (mu <= _LARGEST)).all():
        raise ValueError(
            "eigenvalues must be a one-dimensional array of numbers from 0 to "
            f"{_LARGEST:g}; got an array of shape {mu.shape}."
        )
    return mu


@validate_params(
    {
        "eigenvalues": ["array-like"],
        "radius": ["array-like", _NOISE],
        "n_samples": [_POSITIVE],
        "kind": [StrOptions({"capped", "gaussian"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def localised_complexity(
    eigenvalues: ArrayLike,
    radius: float | ArrayLike,
    n_samples: float,
    *,
    kind: Literal["capped", "gaussian"] = "capped",
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> float | np.ndarray:
    """Return how far functions of norm one and of a size can follow noise.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_eigenvalues,)
        Of the normalised kernel matrix, ``eigenvalues_`` of a fitted estimator.
    radius : float or array-like
        delta: sizes, in root mean square over the rows.
    n_samples : float
        Number of rows.
    kind : {"capped", "gaussian"}, default="capped"
        "capped": R(delta) = sqrt(sum_j min(delta^2, mu_j) / n), (3.20). "gaussian":
        the Gaussian complexity G_n(delta) = E sup (1/n) sum_i w_i g(x_i) of (3.13)
        itself, over functions g with norm at most 1 and size at most delta, by
        `n_draws` draws of the noise w. R is within constants of it, from below for
        delta at least 1 / sqrt(n).
    n_draws : int, default=1000
        Draws for "gaussian".
    random_state : int, RandomState instance or None, default=None
        Seed for them.

    Returns
    -------
    complexity : float or ndarray
        Of the shape of `radius`.

    Examples
    --------
    >>> from skbounds.kernel_boost import localised_complexity
    >>> print(f"{localised_complexity([0.9, 0.1], 0.5, 2):.3f}")
    0.418
    """
    mu = _checked_spectrum(eigenvalues)
    delta = np.asarray(radius, dtype=np.float64)
    if not ((delta >= 0.0) & (delta <= _LARGEST)).all():
        raise ValueError(f"radius must be in [0, {_LARGEST:g}]; got {radius!r}.")
    if kind == "capped":
        found = _radius.localised_complexity(mu, delta, n_samples)
    else:
        z = _squared_noise(mu, n_draws, random_state)
        found = [_mean_supremum(mu, one, n_samples, z) for one in delta.ravel()]
        found = np.reshape(found, delta.shape)
    return float(found) if delta.ndim == 0 else found


def _squared_noise(mu, n_draws, random_state):
    rng = check_random_state(random_state)
    return rng.normal(size=(n_draws, len(mu))) ** 2


def _mean_supremum(mu, delta, n_samples, squares):
    """Return the mean over draws of sup z'theta / sqrt(n).

    Over theta with sum theta_j^2 / mu_j <= 1 and sum theta_j^2 <= delta^2 that is, by
    duality, the least sqrt(sum_j z_j^2 / (s / mu_j + (1 - s) / delta^2)) over s in
    [0, 1], whose square is convex in s.
    """
    kept = mu > 0.0
    if delta == 0.0 or not kept.any():
        return 0.0
    # In units of the largest eigenvalue, whose square may not be a double.
    unit = np.sqrt(mu.max())
    mu, delta = mu / mu.max(), max(delta / unit, 1e-150)
    kept = mu > 1e-150
    norm, size = 1.0 / mu[kept], 1.0 / delta**2
    squares = squares[:, kept]
    low, high = np.zeros(len(squares)), np.ones(len(squares))
    for _ in range(_HALVINGS):
        s = 0.5 * (low + high)
        mixed = s[:, None] * norm + (1.0 - s[:, None]) * size
        falls = (squares * (norm - size) / mixed**2).sum(axis=1) > 0.0
        low, high = np.where(falls, s, low), np.where(falls, high, s)
    mixed = high[:, None] * norm + (1.0 - high[:, None]) * size
    supremum = np.sqrt((squares / mixed).sum(axis=1)).mean()
    return float(unit * supremum / np.sqrt(n_samples))


@validate_params(
    {
        "eigenvalues": ["array-like"],
        "noise": [_NOISE],
        "n_samples": [_POSITIVE],
        "norm": [_SCALE],
        "kind": [StrOptions({"capped", "gaussian"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def critical_radius(
    eigenvalues: ArrayLike,
    noise: float,
    n_samples: float,
    *,
    norm: float = 1.0,
    kind: Literal["capped", "gaussian"] = "capped",
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> float:
    """Return the critical radius delta_n, (3.15).

    The least delta at which the localised complexity is at most
    ``norm / noise * delta ** 2``.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_eigenvalues,)
        Of the normalised kernel matrix.
    noise : float
        sigma: standard deviation of the noise.
    n_samples : float
        Number of rows.
    norm : float, default=1.0
        Hilbert norm of the function.
    kind : {"capped", "gaussian"}, default="capped"
        The complexity, see `localised_complexity`.
    n_draws : int, default=1000
        Draws for "gaussian".
    random_state : int, RandomState instance or None, default=None
        Seed for them.

    Returns
    -------
    radius : float
        delta_n.

    Examples
    --------
    >>> from skbounds.kernel_boost import critical_radius
    >>> print(f"{critical_radius([1.0], 0.5, 4):.3f}")
    0.250
    """
    mu = _checked_spectrum(eigenvalues)
    if kind == "capped":
        return _radius.critical_radius(mu, noise, norm, n_samples)
    if noise / norm < 1e-100 or not mu.any():
        return 0.0
    squares = _squared_noise(mu, n_draws, random_state)
    scale = noise / norm

    def gap(log_delta):
        delta = np.exp(log_delta)
        return np.log(scale * _mean_supremum(mu, delta, n_samples, squares)) - (
            2.0 * log_delta
        )

    # Within constants of that of R.
    start = np.log(_radius.critical_radius(mu, noise, norm, n_samples))
    return float(np.exp(brentq(gap, start - 4.0, start + 4.0, xtol=1e-12)))


@validate_params(
    {"n_eigenvalues": [Interval(Integral, 1, None, closed="left")]},
    prefer_skip_nested_validation=True,
)
def sobolev_eigenvalues(n_eigenvalues: int) -> np.ndarray:
    """Return the eigenvalues of the kernel 1 + min(x, x') for uniform x in [0, 1].

    Eigenfunctions are cos(w (1 - x)) with cot(w) = w, which makes f(0) = f'(0) and
    f'(1) = 0; eigenvalues are 1 / w^2.

    Parameters
    ----------
    n_eigenvalues : int
        How many, from the largest on.

    Returns
    -------
    eigenvalues : ndarray of shape (n_eigenvalues,)
        Decreasing. All together they have the sum 3/2.

    Examples
    --------
    >>> from skbounds.kernel_boost import sobolev_eigenvalues
    >>> print(sobolev_eigenvalues(3).round(4))
    [1.351  0.0852 0.0241]
    """
    k = np.pi * np.arange(n_eigenvalues)
    # Of cos(w) = w sin(w), one root in each (k pi, k pi + pi / 2).
    w = k + np.where(k > 0.0, 1.0 / np.maximum(k, 1.0), 0.86)
    for _ in range(50):
        value = np.cos(w) - w * np.sin(w)
        slope = -2.0 * np.sin(w) - w * np.cos(w)
        w = np.clip(w - value / slope, k, k + 0.5 * np.pi)
    return 1.0 / w**2


@validate_params(
    {
        "eigenvalue": [StrOptions({"sobolev"}), callable],
        "noise": [_SCALE],
        "n_samples": [_POSITIVE],
        "norm": [_SCALE],
        "n_terms": [Interval(Integral, 10, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def population_critical_radius(
    eigenvalue: Literal["sobolev"] | Callable[[np.ndarray], ArrayLike],
    noise: float,
    n_samples: float,
    *,
    norm: float = 1.0,
    n_terms: int = 20_000,
) -> float:
    """Return the critical radius of the population, (3.18) and (3.19).

    That of the kernel's spectrum for the law of x, where it is known, in place of the
    eigenvalues of a kernel matrix; Corollary 3 on random designs is about it.

    Parameters
    ----------
    eigenvalue : "sobolev" or callable
        Decreasing eigenvalues: ``eigenvalue(j)`` of arrays j = 1, 2, ...; "sobolev" are
        those of 1 + min(x, x') for uniform x.
    noise : float
        sigma.
    n_samples : float
        Number of rows.
    norm : float, default=1.0
        Hilbert norm of the function.
    n_terms : int, default=20000
        Eigenvalues that are used one by one; the sum of the others is an integral.

    Returns
    -------
    radius : float
        The root of noise / norm * R(delta) = delta^2.

    Examples
    --------
    >>> from skbounds.kernel_boost import population_critical_radius
    >>> print(f"{population_critical_radius('sobolev', 0.5, 100):.3f}")
    0.120
    """
    if eigenvalue == "sobolev":
        mu = sobolev_eigenvalues(n_terms)
        rest = 1.5 - mu.sum()
    else:
        mu = _checked_spectrum(eigenvalue(np.arange(1.0, n_terms + 1.0)))
        if (np.diff(mu) > 0.0).any():
            raise ValueError("eigenvalue must be a decreasing function.")
        rest = quad(eigenvalue, n_terms + 0.5, np.inf)[0]
    last = mu[-1]
    if rest > 0.0 and last > 0.0:
        # As many terms as small as the last ones make the same sum below any delta
        # that is not smaller still.
        count = int(min(np.ceil(rest / last), 10 * n_terms))
        mu = np.append(mu, np.full(count, rest / count))
    return _radius.critical_radius(mu, noise, norm, n_samples)


@dataclass(frozen=True)
class BoostingConstants:
    """Constants of a loss on the ball that the theorem is about.

    Attributes
    ----------
    strong_convexity : float
        m.
    smoothness : float
        M.
    slope_bound : float
        B, which |phi'| does not exceed; inf for the squared loss, which needs none.
    radius : float
        C_H, of the ball around the target.
    largest_step : float
        min(1 / M, M), for a kernel with k(x, x) at most 1.
    """

    strong_convexity: float
    smoothness: float
    slope_bound: float
    radius: float
    largest_step: float


@validate_params(
    {
        "loss": [StrOptions({"squared", "log_loss", "exponential"})],
        "norm": [_NOISE],
        "noise": [_NOISE, None],
    },
    prefer_skip_nested_validation=True,
)
def boosting_constants(
    loss: Literal["squared", "log_loss", "exponential"],
    norm: float,
    *,
    noise: float | None = None,
) -> BoostingConstants:
    """Return m, M and B of Lemma 17, and C_H.

    C_H^2 = 2 max(norm^2, 32, noise^2), the noise for the squared loss only; the others
    are those on functions with values up to D = C_H + norm.

    Parameters
    ----------
    loss : {"squared", "log_loss", "exponential"}
        The loss; "log_loss" for two classes.
    norm : float
        Hilbert norm of f*.
    noise : float, default=None
        sigma, for ``loss="squared"``.

    Returns
    -------
    constants : BoostingConstants
        The constants.

    Examples
    --------
    >>> from skbounds.kernel_boost import boosting_constants
    >>> boosting_constants("log_loss", 1.0).smoothness
    0.25
    """
    if (noise is not None) != (loss == "squared"):
        raise ValueError(
            f"noise is for loss='squared', and needed there; got loss={loss!r} and "
            f"noise={noise!r}."
        )
    radius = np.sqrt(2.0 * max(norm**2, _LEAST_SQUARED_NORM, (noise or 0.0) ** 2))
    D = min(radius + norm, _LARGEST_EXPONENT)
    if loss == "squared":
        m, M, B = 1.0, 1.0, np.inf
    elif loss == "log_loss":
        m, M, B = 1.0 / (np.exp(-D) + np.exp(D) + 2.0), 0.25, 1.0
    else:
        m, M, B = np.exp(-D), np.exp(D), np.exp(D)
    return BoostingConstants(
        float(m), float(M), float(B), float(radius), float(min(1.0 / M, M))
    )


@dataclass(frozen=True)
class TheoryResult:
    """A number of the theory, and whether what it is proved under holds.

    Attributes
    ----------
    value : float
        The number.
    conditions : dict
        Whether each condition holds, by its formula.
    """

    value: float
    conditions: dict = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return all(self.conditions.values())


@validate_params(
    {
        "radius": [_SCALE],
        "strong_convexity": [_POSITIVE],
        "smoothness": [_POSITIVE],
        "rule": [StrOptions({"theorem", "corollary"})],
    },
    prefer_skip_nested_validation=True,
)
def literal_stopping_time(
    radius: float,
    *,
    strong_convexity: float = 1.0,
    smoothness: float = 1.0,
    rule: Literal["theorem", "corollary"] = "theorem",
) -> TheoryResult:
    """Return the stopping time with the constants of the proof.

    Parameters
    ----------
    radius : float
        delta_n of the unit ball.
    strong_convexity, smoothness : float, default=1.0
        m and M.
    rule : {"theorem", "corollary"}, default="theorem"
        "theorem": the last time that Theorem 3 allows, floor(m / (8 M delta_n^2)).
        "corollary": floor(1 / (delta_n^2 max(8, M))) of (3.17) and Corollary 3, for
        steps m / M. ``stopping="theory"`` of the estimators has neither constant.

    Returns
    -------
    time : TheoryResult
        The time, 0 where not even one step is allowed.

    Examples
    --------
    >>> from skbounds.kernel_boost import literal_stopping_time
    >>> literal_stopping_time(0.05).value
    50.0
    """
    m, M = strong_convexity, smoothness
    if rule == "theorem":
        time = m / (8.0 * M * radius**2)
    else:
        time = 1.0 / (radius**2 * max(8.0, M))
    # Whole numbers that rounding made a little less.
    time = np.floor(time * (1.0 + 1e-12))
    return TheoryResult(float(time), {"delta_n <= M / m": radius <= M / m})


@validate_params(
    {
        "radius": [_SCALE],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "step_size": [_POSITIVE],
        "strong_convexity": [_POSITIVE],
        "smoothness": [_POSITIVE],
        "of": [StrOptions({"function", "risk"})],
    },
    prefer_skip_nested_validation=True,
)
def stopped_error_bound(
    radius: float,
    n_iter: int,
    step_size: float,
    *,
    strong_convexity: float = 1.0,
    smoothness: float = 1.0,
    of: Literal["function", "risk"] = "function",
) -> TheoryResult:
    """Return the bound (3.16) on the averaged iterate, without its constant C.

    1 / (alpha m T) + delta_n^2 / m^2 for the squared error, and M times that for the
    excess risk. C is proportional to C_H^2 and not given: this is a rate, no
    certificate.

    Parameters
    ----------
    radius : float
        delta_n of the unit ball.
    n_iter : int
        T.
    step_size : float
        alpha, for a kernel with k(x, x) at most 1.
    strong_convexity, smoothness : float, default=1.0
        m and M.
    of : {"function", "risk"}, default="function"
        The squared error (3.16b) or the excess risk (3.16a).

    Returns
    -------
    bound : TheoryResult
        The bound divided by C.

    Examples
    --------
    >>> from skbounds.kernel_boost import stopped_error_bound
    >>> print(f"{stopped_error_bound(0.1, 12, 1.0).value:.4f}")
    0.0933
    """
    m, M = strong_convexity, smoothness
    value = 1.0 / (step_size * m * n_iter) + radius**2 / m**2
    last = literal_stopping_time(radius, strong_convexity=m, smoothness=M).value
    return TheoryResult(
        float(value * (M if of == "risk" else 1.0)),
        {
            "delta_n <= M / m": radius <= M / m,
            "alpha <= min(1 / M, M)": step_size <= min(1.0 / M, M),
            "T <= m / (8 M delta_n^2)": n_iter <= last,
        },
    )


@dataclass(frozen=True)
class KernelRegularity:
    """Whether a kernel is regular at a radius.

    Attributes
    ----------
    dimension : int
        d_n, the first number of an eigenvalue of at most delta^2.
    tail : float
        The sum of the eigenvalues after it.
    ratio : float
        tail / (d_n delta^2), which is to be at most a constant.
    is_regular : bool
        Whether it is.
    """

    dimension: int
    tail: float
    ratio: float
    is_regular: bool


@validate_params(
    {
        "eigenvalues": ["array-like"],
        "radius": [_SCALE],
        "constant": [_POSITIVE],
    },
    prefer_skip_nested_validation=True,
)
def kernel_regularity(
    eigenvalues: ArrayLike, radius: float, *, constant: float = 1.0
) -> KernelRegularity:
    """Tell whether a kernel is regular, which the lower bound (3.21) is for.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_eigenvalues,)
        Of the normalised kernel matrix.
    radius : float
        delta_n.
    constant : float, default=1.0
        c in tail <= c d_n delta_n^2. For eigenvalues like j^(-2 b) the ratio tends to
        1 / (2 b - 1).

    Returns
    -------
    regularity : KernelRegularity
        The dimension d_n, the tail and the ratio.

    Examples
    --------
    >>> from skbounds.kernel_boost import kernel_regularity
    >>> kernel_regularity([1.0, 0.25, 0.01], 0.5).dimension
    2
    """
    mu = np.sort(_checked_spectrum(eigenvalues))[::-1]
    below = mu <= radius**2
    dimension = int(below.argmax()) + 1 if below.any() else len(mu)
    tail = float(mu[dimension:].sum())
    ratio = tail / (dimension * radius**2)
    return KernelRegularity(dimension, tail, ratio, bool(ratio <= constant))


@dataclass(frozen=True)
class ExponentialFamily:
    """Responses with density h(y) exp((y f - Phi(f)) / s) at f = f*(x), (3.22).

    Attributes
    ----------
    name : str
        Of the family.
    cumulant, mean, variance : callable
        Phi, Phi' and Phi''.
    curvature_bound : float
        L, the supremum of Phi''; inf where there is none.
    loss : str or None
        The estimators' loss that is the negative log likelihood.
    """

    name: str
    cumulant: Callable[[ArrayLike], np.ndarray]
    mean: Callable[[ArrayLike], np.ndarray]
    variance: Callable[[ArrayLike], np.ndarray]
    curvature_bound: float
    loss: str | None

    @property
    def is_minimax(self) -> bool:
        """Whether Corollary 4 applies: Phi'' is bounded.

        Then boosting stopped in time has the least error that any method can have over
        the unit ball of a regular kernel, up to constants.
        """
        return bool(np.isfinite(self.curvature_bound))


def _log_1_plus_exp(f):
    return np.logaddexp(0.0, f)


def _logistic_variance(f):
    return expit(f) * expit(-f)


_FAMILIES = {
    "gaussian": ExponentialFamily(
        "gaussian", lambda f: 0.5 * np.square(f), lambda f: np.asarray(f) * 1.0,
        lambda f: np.ones_like(np.asarray(f, dtype=float)), 1.0, "squared",
    ),
    "bernoulli": ExponentialFamily(
        "bernoulli", _log_1_plus_exp, expit, _logistic_variance, 0.25, "log_loss",
    ),
    "poisson": ExponentialFamily(
        "poisson", np.exp, np.exp, np.exp, np.inf, "poisson",
    ),
}  # fmt: skip


@validate_params(
    {"name": [StrOptions(set(_FAMILIES))]}, prefer_skip_nested_validation=True
)
def exponential_family(
    name: Literal["gaussian", "bernoulli", "poisson"],
) -> ExponentialFamily:
    """Return a generalised linear model of (3.22).

    Parameters
    ----------
    name : {"gaussian", "bernoulli", "poisson"}
        The family. Binomial proportions of r trials are the Bernoulli family with r
        rows, or a weight of r; for "poisson" Phi'' is not bounded, and the corollary
        says nothing.

    Returns
    -------
    family : ExponentialFamily
        Its functions and its curvature.

    Examples
    --------
    >>> from skbounds.kernel_boost import exponential_family
    >>> exponential_family("bernoulli").curvature_bound
    0.25
    >>> exponential_family("poisson").is_minimax
    False
    """
    return _FAMILIES[name]
