"""Linear predictors in hindsight: what regret compares the plays with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def comparator_losses(loss, features, targets, coef):
    """Return the unscaled surrogate losses of a linear predictor, row by row.

    Parameters
    ----------
    loss : FenchelYoungLoss
    features : {ndarray, sparse array} of shape (n_samples, n_columns)
        Rows as the learner saw them, intercept column included.
    targets : ndarray of shape (n_samples, n_targets)
    coef : ndarray of shape (n_outputs, n_columns)
    """
    return loss.respond(np.asarray(features @ coef.T), targets)[0]


def fit_comparator(loss, features, targets, alpha=1.0):
    """Return the weights that minimise the summed loss plus ``alpha |U|^2 / 2``."""
    shape = (loss.n_outputs, features.shape[1])

    def objective(flat):
        coef = flat.reshape(shape)
        values, residual = loss.respond(np.asarray(features @ coef.T), targets)
        gradient = np.asarray(features.T @ residual).T + alpha * coef
        return values.sum() + 0.5 * alpha * flat @ flat, gradient.ravel()

    result = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B")
    return result.x.reshape(shape)
