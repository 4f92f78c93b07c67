"""Excess-risk bounds of the sample minmax predictor in closed form.

All are bounds in expectation over the sample, in nats, relative to the best model with
coefficients of norm at most B. ``n`` is the number of observations (total weight).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from skbounds._sklearn_compat import Integral, Interval, Real, validate_params


def second_moment_spectrum(Z, weight: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of ``sum_i w_i z_i z_i' / sum_i w_i``, at least 0."""
    if sparse.issparse(Z):
        moments = (Z.T @ Z.multiply(weight[:, None])).toarray()
    else:
        moments = Z.T @ (Z * weight[:, None])
    return np.maximum(np.linalg.eigvalsh(moments / weight.sum()), 0.0)


def effective_dof(spectrum: np.ndarray, lambda_: float) -> float:
    """Return ``df_lambda = tr[(Sigma + lambda I)^{-1} Sigma]`` (eq. 29).

    For ``lambda = 0`` this is the rank.
    """
    positive = spectrum[spectrum > 0]
    return float(np.sum(positive / (positive + lambda_)))


def logistic_bound(
    dof: float,
    lambda_: float,
    n: float,
    radius2: float,
    norm_bound: float,
    *,
    n_classes: int = 2,
    mean_square: float | None = None,
) -> float:
    """Return the bound of Theorem 6, with the smallest of three bounds of ``E log Z``.

    - ``log K``: the refits give each label at most probability 1;
    - ``log(1 + mean |x|^2 C / 4)``, two classes: the refits' log-odds differ by at most
      ``|x|^2 C``, and the sigmoid has slope at most 1/4;
    - ``c(v) df / (n + 1)``, ``c(v) = e^v (e^v - 1) / v`` with ``v = R^2 C``: the
      proof's (95) for any penalty. (48) prints 1/n, and e for all v of at most 1/2,
      where c(v) is 2.14 at most.

    Parameters
    ----------
    dof : float
        ``df_{4 lambda}`` of the second moments of the features.
    lambda_ : float
        Penalty per observation.
    n : float
        Number of observations.
    radius2 : float
        Largest squared norm of a row.
    norm_bound : float
        Norm B of the competitor.
    n_classes : int
    mean_square : float or None
        Mean squared norm of the rows; None where an intercept is not penalised.
    """
    found = [np.log(n_classes)]
    if lambda_ == 0.0:
        return float(found[0])
    C = 1.0 / (lambda_ * (n + 1.0))
    if n_classes == 2 and mean_square is not None:
        found.append(np.log1p(0.25 * mean_square * C))
    v = radius2 * C
    constant = 1.0
    if v > 0.0:
        # log(e^v - 1) without overflow.
        logarithm = 2.0 * v + np.log(-np.expm1(-v)) - np.log(v)
        constant = np.exp(logarithm) if logarithm < 700.0 else np.inf
    if np.isfinite(constant):
        found.append(constant * dof / (n + 1.0))
    return float(min(found) + 0.5 * lambda_ * norm_bound * norm_bound)


def ridge_bound(
    dof: float,
    lambda_: float,
    n: float,
    radius2: float,
    norm_bound: float,
    leverage_bound: float,
) -> float:
    """Return the bound of Theorem 5, with the smaller of two bounds of ``E log Z``.

    - ``g df / (n + 1)``: (77) in its proof has ``g = (1 + v) log(1 + v) / v``,
      ``v = R^2 / (lambda (n + 1))``, for any penalty; (33) has 1.25 for all v of at
      most 1/2, where g is 1.22 at most;
    - the mean of ``log(1 + h)`` over leave-one-out leverages, (72).
    """
    v = radius2 / (lambda_ * (n + 1.0))
    constant = (1.0 + v) * np.log1p(v) / v if v > 0.0 else 1.0
    bound = min(constant * dof / (n + 1.0), leverage_bound)
    return float(bound + 0.5 * lambda_ * norm_bound * norm_bound)


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "kurtosis": [Interval(Real, 1, None, closed="left")],
        "constant": [Interval(Real, 1, None, closed="left")],
        "exponent": [Interval(Real, 0, 1, closed="right")],
    },
    prefer_skip_nested_validation=True,
)
def small_ball_bound(
    n_samples: int,
    n_features: int,
    *,
    kurtosis: float,
    constant: float = 1.0,
    exponent: float = 1.0,
) -> float:
    r"""Bound of the excess risk of unpenalised linear regression, from moments alone.

    Corollary 1 of [1]_: whatever the law of y given x, the excess risk of
    ``RidgeSMP(alpha=0)`` over the best linear function with the same noise scale is at
    most :math:`(d / n) (1 + C' \kappa d / n)`, :math:`C' = 28 C^4 e^{1 + 9/a}`, if no
    hyperplane has too much mass near it,
    :math:`P(\mathrm{dist}(\Sigma^{-1/2} X, H) \le t) \le (C t)^a` for all of them, and
    :math:`E \|\Sigma^{-1/2} X\|^4 \le \kappa d^2`.

    A statement about rates: ``C'`` is 6e5 at least, and ``leverage_bound_`` of a fitted
    :class:`RidgeSMP` is about ``d / n``.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_samples : int
        Number n of training rows, at least ``6 d / a`` and ``12 log(12 / a) / a`` (the
        paper has the smaller of the two; its proof needs both).

    n_features : int
        Number d of coefficients, with that of an intercept.

    kurtosis : float
        :math:`\kappa`; ``1 + 2 / d`` for normal features.

    constant, exponent : float, default=1.0
        C (at least 1) and a (in (0, 1]); 1 and 1 for normal features.

    Returns
    -------
    bound : float
        In nats, in expectation over the training rows and a new one.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from skbounds.smp import small_ball_bound
    >>> print(f"{small_ball_bound(10**9, 10, kurtosis=1.2):.2e}")
    1.01e-08
    """
    n, d = n_samples, n_features
    least = max(6.0 * d / exponent, 12.0 * np.log(12.0 / exponent) / exponent)
    if n < least:
        raise ValueError(
            f"n_samples must be at least {least:.0f} for n_features={d} and "
            f"exponent={exponent}; got {n}."
        )
    with np.errstate(over="ignore"):
        factor = 28.0 * np.float64(constant) ** 4 * np.exp(1.0 + 9.0 / exponent)
        return float(d / n * (1.0 + factor * kurtosis * d / n))


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "norm": [Interval(Real, 0, None, closed="neither")],
        "radius": [Interval(Real, 0, None, closed="neither")],
        "exponent": [Interval(Real, 1, None, closed="left")],
        "constant": [Interval(Real, 0, None, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def eigendecay_bound(
    n_samples: int,
    norm: float,
    radius: float,
    *,
    exponent: float,
    constant: float = 1.0,
) -> tuple[float, float]:
    r"""Best penalty and bound of ridge regression under decaying eigenvalues.

    If the effective degrees of freedom of the features grow at most like
    :math:`df_\lambda \le c \lambda^{-1/b}`, as they do if their eigenvalues decay like
    :math:`j^{-b}`, the bound of Theorem 5 of [1]_,
    :math:`1.25\, df_\lambda / (n + 1) + \lambda B^2 / 2` for
    :math:`\lambda \ge 2 R^2 / (n + 1)`, is smallest for a penalty in closed form. It
    then falls like :math:`B^{2/(b+1)} n^{-b/(b+1)}`, equation (36), however many
    features there are.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_samples : int
        Number n of training rows.

    norm : float
        Norm B of the coefficients of the models compared with, divided by sigma.

    radius : float
        Largest norm R of a row.

    exponent : float
        b, at least 1.

    constant : float, default=1.0
        c.

    Returns
    -------
    alpha : float
        Penalty ``(n + 1) lambda`` for :class:`RidgeSMP` or :class:`KernelRidgeSMP`,
        without an intercept or with a penalised one.

    bound : float
        Of the expected excess risk over the models of this norm, in nats.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from skbounds.smp import eigendecay_bound
    >>> alpha, bound = eigendecay_bound(1000, norm=2.0, radius=1.0, exponent=2.0)
    >>> print(f"{alpha:.2f} {bound:.4f}")
    4.61 0.0276
    """
    n = n_samples + 1.0
    power = exponent / (exponent + 1.0)
    logarithm = np.log(2.5 * constant / (exponent * n)) - 2.0 * np.log(norm)
    with np.errstate(over="ignore", under="ignore"):
        lambda_ = max(np.exp(power * logarithm), 2.0 * np.float64(radius) ** 2 / n)
        dof = constant * lambda_ ** (-1.0 / exponent)
        bound = 1.25 * dof / n + 0.5 * (np.sqrt(lambda_) * norm) ** 2
    return float(n * lambda_), float(bound)
