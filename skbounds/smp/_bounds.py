"""Excess-risk bounds of the sample minmax predictor in closed form.

All are bounds in expectation over the sample, in nats, relative to the best model with
coefficients of norm at most B. ``n`` is the number of observations (total weight).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


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
