"""The boosting flow of a classification loss, integrated with geometric steps.

In coordinates Psi with Psi' diag(w) Psi = diag(mu), weights w of sum one and
f = offset + Psi theta, boosting with small steps follows

    d theta / d eta = -g(theta),    g = Psi' (w phi'(y, f))

in learning time eta, the sum of the steps. With curvature m coordinates relax at rates
m mu_j; a two-stage exponential step is exact where the curvature is constant and of
second order otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Stage:
    """Where the flow is at a learning time.

    Attributes
    ----------
    theta : ndarray of shape (r,) or (r, K)
    values : ndarray of shape (n,) or (n, K)
    risk : float
    exposure : float
        The integral of the curvature over learning time.
    plain : float
        Learning time in steps of the risk itself; of another length only where the
        flow is that of its logarithm.
    """

    theta: np.ndarray
    values: np.ndarray
    risk: float
    exposure: float
    plain: float


def phi_1(z):
    """Return (1 - exp(-z)) / z, 1 at 0."""
    safe = np.where(z > 1e-8, z, 1.0)
    return np.where(z > 1e-8, -np.expm1(-safe) / safe, 1.0 - 0.5 * z)


def phi_2(z):
    """Return (exp(-z) - 1 + z) / z^2, 1/2 at 0."""
    safe = np.where(z > 1e-3, z, 1.0)
    series = 0.5 - z / 6.0 + z * z / 24.0
    return np.where(z > 1e-3, (np.expm1(-safe) + safe) / safe**2, series)


class Flow:
    """The flow from theta = 0 on.

    Parameters
    ----------
    loss : class of `_losses`
    psi : ndarray of shape (n, r)
    eigenvalues : ndarray of shape (r,)
    y : ndarray of shape (n,) or (n, K)
    weight : ndarray of shape (n,)
        Of sum one.
    offset : float or ndarray of shape (K,)
    """

    def __init__(self, loss, psi, eigenvalues, y, weight, offset):
        self.loss, self.psi, self.y, self.weight = loss, psi, y, weight
        self.offset = offset
        self.mu = eigenvalues if y.ndim == 1 else eigenvalues[:, None]

    def start(self):
        """Return the stage at learning time 0."""
        theta = np.zeros((len(self.mu), *self.y.shape[1:]))
        values = np.broadcast_to(self.offset, self.y.shape).astype(np.float64)
        risk = self.loss.risk(self.y, values, self.weight)
        return Stage(theta, values, risk, 0.0, 0.0)

    def run(self, times):
        """Yield the stages at increasing learning times."""
        stage, before = self.start(), 0.0
        for eta in times:
            stage = self.advance(stage, eta - before)
            before = eta
            yield stage

    def advance(self, stage, step):
        """Return the stage a step later."""
        loss, y, w, mu = self.loss, self.y, self.weight, self.mu
        gradient = lambda f: self.psi.T @ loss.pull(y, f, w)
        values = lambda theta: self.offset + self.psi @ theta
        theta, g = stage.theta, gradient(stage.values)
        m = loss.curvature(y, stage.values, w)
        z = step * m * mu
        predicted = theta - step * phi_1(z) * g
        f = values(predicted)
        # N(theta) = g - m mu theta: what the linear part leaves.
        change = gradient(f) - g - m * mu * (predicted - theta)
        corrected = predicted - step * phi_2(z) * change
        theta_new, f_new = corrected, values(corrected)
        risk = loss.risk(y, f_new, w)
        if not risk <= stage.risk:
            theta_new, f_new, risk = predicted, f, loss.risk(y, f, w)
        if not risk <= stage.risk:
            steep = loss.smoothness or 4.0 * m
            theta_new = theta - step * phi_1(step * steep * mu) * g
            f_new = values(theta_new)
            risk = loss.risk(y, f_new, w)
        later = loss.curvature(y, f_new, w)
        exposure = stage.exposure + 0.5 * step * (m + later)
        plain = stage.plain + step * loss.stretch(0.5 * (risk + stage.risk))
        return Stage(theta_new, f_new, risk, exposure, plain)

    def between(self, first, second, share):
        """Return what lies a share of the way between two stages."""
        mix = lambda a, b: (1.0 - share) * a + share * b
        theta = mix(first.theta, second.theta)
        values = self.offset + self.psi @ theta
        return Stage(
            theta,
            values,
            self.loss.risk(self.y, values, self.weight),
            mix(first.exposure, second.exposure),
            mix(first.plain, second.plain),
        )
