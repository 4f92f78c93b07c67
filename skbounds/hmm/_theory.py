"""The objects of the theory, as functions: to look at, not to certify anything."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

import skbounds
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import check_array
from skbounds.hmm import _symmetric

_BATCHES = 50


def _check(mean, stay, sigma, d=None):
    mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise ValueError(f"mean must be a finite vector; got {mean.tolist()}.")
    if d is not None and len(mean) != d:
        raise ValueError(f"mean must have {d} entries, as rows do; got {len(mean)}.")
    _positive("stay", stay, below=1.0)
    _positive("sigma", sigma)
    return mean


def _positive(name, value, below=np.inf):
    if not (isinstance(value, Real) and 0.0 < value < below):
        limit = "positive" if np.isinf(below) else f"between 0 and {below:g}"
        raise ValueError(f"{name} must be {limit}; got {value!r}.")


def _pairs(mean, stay, X, sigma, window):
    """Return E[Z_i | x] and the mean agreement of the n pairs (Z_{i-1}, Z_i)."""
    starts = np.array([0, len(X)])
    rows = _symmetric.Observed(X, sigma)
    found = _symmetric.expectation(
        _symmetric.Symmetric(mean, float(stay)), rows, starts, window=window
    )
    return found.means, (stay + found.agreement) / len(X)


def symmetric_surrogate(
    mean: ArrayLike,
    stay: float,
    X: MatrixLike,
    *,
    at: tuple[ArrayLike, float],
    sigma: float,
) -> tuple[float, np.ndarray, float]:
    """Return EM's surrogate Q_n of the symmetric model, and its gradient.

    The mean over the rows of one sequence of E[log p(Z_0, Z, X; mean, stay) | X], with
    the expectation at other parameters, (2.10) and (2.11).

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    mean : array-like of shape (n_features,)
        mu.
    stay : float
        zeta, the probability to stay.
    X : array-like of shape (n_samples, n_features)
        Rows of one sequence.
    at : tuple of (array-like of shape (n_features,), float)
        The parameters that the E-step has, mu and zeta.
    sigma : float
        Standard deviation of the outputs.

    Returns
    -------
    value : float
        Q_n, with all constants.
    by_mean : ndarray of shape (n_features,)
        Derivative by mu.
    by_beta : float
        Derivative by beta = log(zeta / (1 - zeta)) / 2.

    Examples
    --------
    >>> from skbounds.hmm import symmetric_surrogate
    >>> X = [[0.5], [-1.2], [0.3], [2.0]]
    >>> value, by_mean, _ = symmetric_surrogate([0.8], 0.7, X, at=([0.8], 0.7), sigma=1)
    >>> f"{value:.4f} {by_mean[0]:.4f}"
    '-2.2825 -0.1399'
    """
    X = check_array(X, dtype=np.float64)
    n, d = X.shape
    mean = _check(mean, stay, sigma, d)
    other = _check(*at, sigma, d)
    spins, agreement = _pairs(other, at[1], X, sigma, None)
    update = spins @ X / n
    squares = np.einsum("ij,ij->", X, X) / n
    value = (
        -np.log(2.0) / n
        + agreement * np.log(stay)
        + (1.0 - agreement) * np.log1p(-stay)
        - 0.5 * d * np.log(2.0 * np.pi * sigma**2)
        - 0.5 * (squares + mean @ mean - 2.0 * update @ mean) / sigma**2
    )
    by_beta = 2.0 * agreement - 1.0 - (2.0 * stay - 1.0)
    return float(value), (update - mean) / sigma**2, float(by_beta)


def symmetric_em_operator(
    mean: ArrayLike,
    stay: float,
    X: MatrixLike,
    *,
    sigma: float,
    mixing_bound: float = 0.9,
    window: int | None = None,
) -> tuple[np.ndarray, float]:
    """Return one EM step M_n of the symmetric model, or the truncated M_n^k.

    (2.30a) to (2.30c) on one sequence, as `BaumWelchHMM` iterates them.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    mean : array-like of shape (n_features,)
        mu.
    stay : float
        zeta, the probability to stay.
    X : array-like of shape (n_samples, n_features)
        Rows of one sequence.
    sigma : float
        Standard deviation of the outputs.
    mixing_bound : float, default=0.9
        Largest ``abs(2 zeta - 1)``.
    window : int, default=None
        k; None: all rows.

    Returns
    -------
    mean : ndarray of shape (n_features,)
        The next mu.
    stay : float
        The next zeta.

    Examples
    --------
    >>> from skbounds.hmm import symmetric_em_operator
    >>> X = [[0.5], [-1.2], [0.3], [2.0]]
    >>> mean, stay = symmetric_em_operator([0.8], 0.7, X, sigma=1.0)
    >>> f"{mean[0]:.4f} {stay:.4f}"
    '0.6601 0.6233'
    """
    X = check_array(X, dtype=np.float64)
    mean = _check(mean, stay, sigma, X.shape[1])
    _positive("mixing_bound", mixing_bound, below=1.0)
    spins, agreement = _pairs(mean, stay, X, sigma, window)
    return spins @ X / len(X), _symmetric.project(agreement, mixing_bound)


@dataclass(frozen=True)
class PopulationStep:
    """An EM step with the law in place of rows.

    Use `symmetric_population_operator` to make one.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        The next mu.
    stay : float
        The next zeta.
    mean_error : float
        Standard error of `mean`: root of the expected squared distance.
    stay_error : float
        Standard error of `stay`.

    See Also
    --------
    symmetric_population_operator : Makes it.

    Examples
    --------
    >>> from skbounds.hmm import symmetric_population_operator
    >>> step = symmetric_population_operator(
    ...     [0.5], 0.5, true_mean=[1.0], true_stay=0.2, sigma=1.0, random_state=0
    ... )
    >>> print(f"{step.mean[0]:.2f} +- {step.mean_error:.2f}")
    0.75 +- 0.00
    """

    mean: np.ndarray
    stay: float
    mean_error: float
    stay_error: float


def symmetric_population_operator(
    mean: ArrayLike,
    stay: float,
    *,
    true_mean: ArrayLike,
    true_stay: float,
    sigma: float,
    mixing_bound: float = 0.9,
    window: int | None = None,
    n_samples: int = 200_000,
    random_state: RandomState = None,
) -> PopulationStep:
    """Return one EM step M of the symmetric model with infinitely many rows, (2.12).

    By simulation of one long sequence, with the error stated. Only the plane of the two
    means matters: everything across it has expectation 0.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    mean : array-like of shape (n_features,)
        mu at which the step starts.
    stay : float
        zeta at which the step starts.
    true_mean : array-like of shape (n_features,)
        mu of the law of the rows.
    true_stay : float
        zeta of the law of the rows.
    sigma : float
        Standard deviation of the outputs.
    mixing_bound : float, default=0.9
        Largest ``abs(2 zeta - 1)``.
    window : int, default=None
        k of the truncated M^k, (2.14); None: all rows.
    n_samples : int, default=200000
        Length of the sequence.
    random_state : int, RandomState instance or None, default=None
        Seed of the simulation.

    Returns
    -------
    step : PopulationStep
        The next parameters and their standard errors.

    Examples
    --------
    >>> from skbounds.hmm import symmetric_population_operator
    >>> step = symmetric_population_operator(
    ...     [1.0, 0.0], 0.2, true_mean=[1.0, 0.0], true_stay=0.2, sigma=1.0,
    ...     random_state=0,
    ... )
    >>> bool(abs(step.mean[0] - 1.0) < 4 * step.mean_error)
    True
    """
    true = _check(true_mean, true_stay, sigma)
    mean = _check(mean, stay, sigma, len(true))
    _positive("mixing_bound", mixing_bound, below=1.0)
    if not isinstance(n_samples, Integral) or n_samples < 10 * _BATCHES:
        raise ValueError(
            f"n_samples must be an integer from {10 * _BATCHES} on; got {n_samples!r}."
        )
    rng = check_random_state(random_state)
    # An orthonormal basis of the plane of both means.
    basis, triangle = np.linalg.qr(np.column_stack([true, mean]))
    seen = np.abs(np.diagonal(triangle)) > 1e-12 * np.abs(triangle).max()
    basis = basis[:, seen[: basis.shape[1]]]
    turns = rng.uniform(size=n_samples) >= true_stay
    turns[0] = rng.uniform() < 0.5
    signs = 1.0 - 2.0 * (np.cumsum(turns) % 2)
    X = signs[:, None] * (true @ basis)
    X += sigma * rng.standard_normal(X.shape)
    rows = _symmetric.Observed(X, sigma)
    model = _symmetric.Symmetric(mean @ basis, float(stay))
    found = _symmetric.expectation(model, rows, np.array([0, n_samples]), window=window)
    products = found.means[:, None] * X
    parts = np.array([p.mean(axis=0) for p in np.array_split(products, _BATCHES)])
    spread = parts.var(axis=0, ddof=1).sum() / _BATCHES
    agreement = (stay + found.agreement) / n_samples
    # The spread of parts of the sequence by themselves.
    own = [
        _symmetric.expectation(
            model, _symmetric.Observed(part, sigma), np.array([0, len(part)]),
            window=window,
        ).agreement / (len(part) - 1)
        for part in np.array_split(X, _BATCHES)
    ]  # fmt: skip
    error = np.sqrt(np.var(own, ddof=1) / _BATCHES)
    return PopulationStep(
        basis @ products.mean(axis=0),
        _symmetric.project(agreement, mixing_bound),
        float(np.sqrt(spread)),
        float(error),
    )


def contraction_factor(
    snr: float, mixing_bound: float, *, C1: float = 1.0, c2: float = 1.0 / 32.0
) -> float:
    """Return kappa of (2.31), up to constants that the theory does not give.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    snr : float
        eta = abs(mu) / sigma.
    mixing_bound : float
        b, the largest ``abs(2 zeta - 1)``.
    C1 : float, default=1.0
        Not given by the theory.
    c2 : float, default=1/32
        The only explicit constant, of Lemma 5.

    Returns
    -------
    kappa : float
        C1 eta^2 (eta^2 + 1) exp(-c2 eta^2) / (1 - b^2); EM contracts by it if it is
        below 1.

    Examples
    --------
    >>> from skbounds.hmm import contraction_factor
    >>> print(f"{contraction_factor(1.0, 0.9):.1f}")
    10.2
    """
    for name, value in (("snr", snr), ("C1", C1), ("c2", c2)):
        _positive(name, value)
    _positive("mixing_bound", mixing_bound, below=1.0)
    square = snr**2
    return float(C1 * square * (square + 1.0) * np.exp(-c2 * square)) / (
        1.0 - mixing_bound**2
    )


def truncation_error(
    k: int,
    *,
    n_components: int,
    eps_mix: float,
    pi_min: float,
    strong_concavity: float,
    C: float = 1.0,
) -> float:
    """Return phi(k) of Theorem 1: how far M^k is from M, up to a constant.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    k : int
        Reach of the windows.
    n_components : int
        s, the number of states.
    eps_mix : float
        Mixing constant (2.3).
    pi_min : float
        Smallest stationary probability.
    strong_concavity : float
        lambda of (2.20); of the symmetric model ``1 - mixing_bound**2``.
    C : float, default=1.0
        Not given by the theory.

    Returns
    -------
    phi : float
        Root of C s^4 / (lambda eps^9 pi_min^2) (1 - eps pi_min)^k, (2.24).

    Examples
    --------
    >>> from skbounds.hmm import truncation_error
    >>> phi = truncation_error(
    ...     100, n_components=2, eps_mix=0.4, pi_min=0.5, strong_concavity=0.19
    ... )
    >>> print(f"{phi:.1e}")
    1.6e-02
    """
    _positive("eps_mix", eps_mix, below=1.0 + 1e-12)
    _positive("pi_min", pi_min, below=1.0 + 1e-12)
    for name, value in (("strong_concavity", strong_concavity), ("C", C)):
        _positive(name, value)
    rate = 1.0 - eps_mix * pi_min
    square = C * n_components**4 / (strong_concavity * eps_mix**9 * pi_min**2)
    return float(np.sqrt(square * rate**k))


def n_em_steps(radius: float, error: float, rate: float) -> int:
    """Return the number of EM steps T after which the optimisation error is small.

    log(2 r / e) / log(1 / kappa), rounded up: after Theorem 2, with the sign that is
    misprinted there.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    radius : float
        r, the distance from which EM starts.
    error : float
        e, the optimisation error that is wanted.
    rate : float
        kappa, or ``contraction_rate_`` of a fit.

    Returns
    -------
    T : int
        Number of steps.

    Examples
    --------
    >>> from skbounds.hmm import n_em_steps
    >>> n_em_steps(0.25, 1e-3, 0.6)
    13
    """
    _positive("radius", radius)
    _positive("error", error)
    _positive("rate", rate, below=1.0)
    return max(0, int(np.ceil(np.log(2.0 * radius / error) / -np.log(rate))))


def statistical_radius(model: skbounds.BaumWelchHMM) -> float:
    """Return how far estimated means are from the true ones, typically.

    The floor of Figure 2.3, which iterations do not go below: the root of the expected
    squared distance of the means, from the observed information.

    Read more in the :ref:`User Guide <hmm_theory>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    model : BaumWelchHMM
        Fitted; of the symmetric model the distance is that of mu. With known states it
        would be ``sigma * sqrt(n_features / n_samples)``.

    Returns
    -------
    radius : float
        Root of the sum of the squared standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.hmm import BaumWelchHMM, statistical_radius
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([-1.5, 1.5, -1.5], 30)[:, None] + rng.normal(size=(90, 1))
    >>> model = BaumWelchHMM(structure="symmetric", sigma=1.0, mixing_bound=0.99)
    >>> print(f"{statistical_radius(model.fit(X)):.2f}")
    0.11
    """
    errors = model.standard_errors_["means"]
    if model._params_["structure"] == "symmetric":
        errors = errors[1]
    return float(np.sqrt((errors**2).sum()))
