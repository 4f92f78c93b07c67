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
    dof: float, lambda_: float, n: float, radius2: float, norm_bound: float
) -> float:
    """Return the bound of Theorem 6, ``e df / (n + 1) + lambda B^2 / 2``.

    (48) prints 1/n where its proof, (95), gives 1/(n + 1). The constant ``e`` belongs
    to ``lambda >= 2 R^2 / (n + 1)``; smaller penalties take the constant that the same
    proof gives with ``v = R^2 / (lambda (n + 1))`` kept: ``e^v (e^v - 1) / v``.

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
    """
    v = radius2 / (lambda_ * (n + 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        general = np.exp(v) * np.expm1(v) / v if v > 0.5 else 0.0
    constant = max(np.e, general)
    return float(constant * dof / (n + 1.0) + 0.5 * lambda_ * norm_bound**2)


def ridge_bound(
    dof: float, lambda_: float, n: float, radius2: float, norm_bound: float
) -> float:
    """Return the bound of Theorem 5, ``g df / (n + 1) + lambda B^2 / 2``.

    (33) has ``g = 1.25`` for ``lambda >= 2 R^2 / (n + 1)``; (77) in its proof has
    ``g = (1 + v) log(1 + v) / v``, ``v = R^2 / (lambda (n + 1))``, for any penalty.
    """
    v = radius2 / (lambda_ * (n + 1.0))
    general = (1.0 + v) * np.log1p(v) / v if v > 0.5 else 0.0
    constant = max(1.25, general)
    return float(constant * dof / (n + 1.0) + 0.5 * lambda_ * norm_bound**2)
