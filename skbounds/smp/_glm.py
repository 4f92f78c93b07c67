"""Laws of Poisson and gamma regression by one Newton step per virtual target.

With a log link, ``mu = exp(eta)`` and ``eta = <theta, z>``, the losses of a row are

    Poisson:  mu - y eta + log y!
    gamma:    nu (eta + y / mu) - (nu - 1) log y - nu log nu + log Gamma(nu)

and scikit-learn's penalty is ``alpha |theta|^2 / 2`` per observation (times ``nu``). A
Newton step from the fit to the training rows adds a row ``(z, y)``: with
``t = H^{-1} z`` and ``h = z't`` the fit moves to ``theta + c t``,

    Poisson:  c = (y - mu) / (1 + h mu) ,   gamma:  c = (y / mu - 1) / (1 + h y / mu) .

The law of y is proportional to the likelihood that each such fit gives to its own y,
times ``exp(-alpha |theta|^2 / 2)``. Of counts the step is taken on the scale of the
mean, ``mu + b (y - mu)`` with ``b = h mu / (1 + h mu)``: without a penalty ``Z`` is
then ``1 / (1 - b)`` (Abel's identity), as for a normal law, and with an intercept alone
this is the exact predictor. Full refits would follow any count, however large: the
normaliser of their law is of the order of the square root of the largest count that
the penalty allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.special import gammaln, logsumexp, xlogy

# Logarithm of the density, relative to the largest, below which a law ends.
_END = 45.0
# Counts up to this are enumerated; laws that reach further are taken for continuous.
_ENUMERATED = 3000
_NODES = 1601
# Largest logarithm of a mean.
_LARGEST = 600.0


@dataclass
class Steps:
    """Virtual fits of some rows, as functions of their targets.

    Attributes
    ----------
    eta : ndarray of shape (m,)
        Raw predictions that the step starts from.
    h, unit : ndarray of shape (m,)
        Leverages, and the amount of the observation that comes in.
    norm : ndarray of shape (3, m)
        Squared norm of the penalised coefficients, coefficients of 1, c, c^2.
    """

    eta: np.ndarray
    h: np.ndarray
    unit: np.ndarray
    norm: np.ndarray

    def rows(self, rows):
        """Return those of some rows."""
        return Steps(self.eta[rows], self.h[rows], self.unit[rows], self.norm[:, rows])


@dataclass
class GLM:
    """A fitted generalised linear model with a log link.

    Attributes
    ----------
    family : {'poisson', 'gamma'}
    alpha : float
        Penalty per observation.
    Z : ndarray of shape (n, p)
        Rows, with a constant column last where there is an intercept.
    y, weight : ndarray of shape (n,)
    theta : ndarray of shape (p,)
    penalized : ndarray of shape (p,)
        1.0 where the penalty acts.
    """

    family: str
    alpha: float
    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    theta: np.ndarray
    penalized: np.ndarray

    def _derivatives(self):
        """Return first and second derivatives of the rows' losses in eta."""
        mu = np.exp(np.minimum(self.Z @ self.theta, _LARGEST))
        if self.family == "poisson":
            return mu - self.y, mu
        return 1.0 - self.y / mu, self.y / mu

    def _inverse(self, total):
        """Return the inverse Hessian with this total weight of the penalty."""
        curvature = self.weight * self._derivatives()[1]
        hessian = self.Z.T @ (self.Z * curvature[:, None])
        hessian.flat[:: len(hessian) + 1] += total * self.alpha * self.penalized
        return linalg.cho_solve(linalg.cho_factor(hessian), np.eye(len(hessian)))

    def added(self, Z) -> Steps:
        """Return the fits with one more row."""
        inverse = self._inverse(self.weight.sum() + 1.0)
        # One more observation brings one more penalty.
        theta = self.theta - self.alpha * inverse @ (self.penalized * self.theta)
        t = Z @ inverse
        h = np.einsum("mp,mp->m", Z, t)
        return Steps(Z @ theta, h, np.ones(len(Z)), self._norm(theta, t))

    def replaced(self) -> Steps:
        """Return the fits in which a training row has another target."""
        t = self.Z @ self._inverse(self.weight.sum())
        h = np.einsum("np,np->n", self.Z, t)
        first, second = self._derivatives()
        unit = np.minimum(self.weight, 1.0)
        # A step out, with the Hessian that is left.
        rest = np.maximum(1.0 - unit * second * h, 1e-9)
        t, h = t / rest[:, None], h / rest
        out = unit * first
        one, linear, square = self._norm(self.theta, t)
        norm = [
            one + out * (linear + out * square),
            linear + 2.0 * out * square,
            square,
        ]
        return Steps(self.Z @ self.theta + out * h, h, unit, np.stack(norm))

    def _norm(self, theta, t):
        return np.stack(
            [
                np.full(len(t), theta**2 @ self.penalized),
                2.0 * t @ (self.penalized * theta),
                t**2 @ self.penalized,
            ]
        )

    def log_likelihood(self, steps: Steps, y, nu=1.0):
        """Return what virtual fits give to their own targets, with the penalty.

        ``y`` has shape (m, J), in the support.
        """
        start = np.minimum(steps.eta, _LARGEST)[:, None]
        h, unit = steps.h[:, None], steps.unit[:, None]
        mu = np.exp(start)
        if self.family == "poisson":
            c = unit * (y - mu) / (1.0 + unit * h * mu)
            moved = mu + h * mu * c
            value = xlogy(y, moved) - moved - gammaln(y + 1.0)
        else:
            c = unit * (y / mu - 1.0) / (1.0 + unit * h * y / mu)
            eta = start + h * c
            log_y = np.log(y)
            value = nu * (log_y - eta - np.exp(np.minimum(log_y - eta, 700.0))) - log_y
            value = value + nu * np.log(nu) - gammaln(nu)
        one, linear, square = steps.norm[:, :, None]
        return value - 0.5 * nu * self.alpha * (one + c * (linear + c * square))


@dataclass
class Table:
    """Laws of rows as masses of intervals ``[low, high)``.

    Attributes
    ----------
    nodes, mass : ndarray of shape (m, J)
        A point of each interval, ascending; masses sum to one.
    low, high : ndarray of shape (m, J)
    log_normalizer : ndarray of shape (m,)
    counts : bool
        Whether the intervals hold whole numbers only (most of them one).
    """

    nodes: np.ndarray
    mass: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_normalizer: np.ndarray
    counts: bool

    def moments(self):
        """Return means and standard deviations."""
        mean = np.sum(self.mass * self.nodes, axis=1)
        spread = np.sum(self.mass * (self.nodes - mean[:, None]) ** 2, axis=1)
        return mean, np.sqrt(spread)

    def cdf(self, y):
        """Return the distribution functions at ``y`` (m,)."""
        if self.counts:
            y = np.floor(y) + 1.0
        width = np.maximum(self.high - self.low, 1e-300)
        inside = np.clip((y[:, None] - self.low) / width, 0.0, 1.0)
        return np.minimum(np.sum(self.mass * inside, axis=1), 1.0)

    def quantiles(self, levels):
        """Return quantiles at levels (J',) or (m, J'), shape (m, J')."""
        ends = np.cumsum(self.mass, axis=1)
        levels = np.broadcast_to(levels, (len(ends), np.shape(levels)[-1]))
        result = np.empty(levels.shape)
        for i, row in enumerate(ends):
            j = np.minimum(np.searchsorted(row, levels[i]), len(row) - 1)
            mass = np.maximum(self.mass[i, j], 1e-300)
            part = np.clip(1.0 - (row[j] - levels[i]) / mass, 0.0, 1.0)
            result[i] = self.low[i, j] + part * (self.high[i, j] - self.low[i, j])
            if self.counts:
                result[i] = np.minimum(np.floor(result[i]), self.high[i, j] - 1.0)
        return result

    def crps(self, y):
        """Return continuous ranked probability scores at ``y`` (m,)."""
        ends = np.cumsum(self.mass, axis=1)
        width = self.high - self.low
        if self.counts:
            # Constant between whole numbers.
            return np.sum(width * (ends - (self.low >= y[:, None])) ** 2, axis=1)
        starts = ends - self.mass
        inside = np.clip((y[:, None] - self.low) / np.maximum(width, 1e-300), 0.0, 1.0)

        def square(a, b):
            # The mean of the square of what runs evenly from a to b.
            return (a * a + a * b + b * b) / 3.0

        middle = starts + inside * self.mass
        below = inside * width * square(starts, middle)
        above = (1.0 - inside) * width * square(1.0 - middle, 1.0 - ends)
        return np.sum(below + above, axis=1)


def table(glm: GLM, steps: Steps, nu=1.0) -> Table:
    """Return the laws of rows."""
    eta = np.minimum(steps.eta, _LARGEST)
    mu = np.exp(eta)
    if glm.family == "poisson":
        own = steps.unit * steps.h * mu
        share = own / (1.0 + own)
        spread = np.sqrt(mu) * (1.0 + own)
        # The law of counts y falls like (b e^(1 - b))^y in the end.
        fall = np.maximum(share - 1.0 - np.log(np.maximum(share, 1e-20)), 1e-12)
        reach = mu + _END * (1.0 + 0.3 * spread + 1.0 / fall)
        if reach.max(initial=1.0) <= _ENUMERATED:
            nodes = np.arange(np.ceil(reach.max(initial=1.0)))
            values = glm.log_likelihood(
                steps, np.broadcast_to(nodes, (len(mu), len(nodes)))
            )
            return _normalised(values, nodes, nodes, nodes + 1.0, True)
        # Whole numbers, many in an interval or none.
        start = np.maximum(mu - 0.3 * _END * spread, 0.0)[:, None]
        part = np.linspace(0.0, 1.0, _NODES)
        edges = np.floor(start + part * (reach[:, None] - start))
    else:
        # In log y the law falls by nu to the left, and faster than any power to the
        # right.
        left = (_END + 5.0) / nu + 3.0 * steps.h
        right = 3.0 + np.log1p(_END * (1.0 + 1.0 / nu))
        spread = 0.5 * np.minimum(1.0, (1.0 + steps.h) / np.sqrt(nu))
        ends = np.arcsinh(left / spread), np.arcsinh(right / spread)
        u = np.linspace(0.0, 1.0, _NODES)
        u = u * (ends[0] + ends[1])[:, None] - ends[0][:, None]
        edges = np.exp(eta[:, None] + spread[:, None] * np.sinh(u))
    counts = glm.family == "poisson"
    low, high = edges[:, :-1], edges[:, 1:]
    nodes = 0.5 * (low + high - counts) if counts else np.sqrt(low * high)
    with np.errstate(divide="ignore"):
        log_width = np.log(high - low)
    values = glm.log_likelihood(steps, np.maximum(nodes, low), nu) + log_width
    return _normalised(values, nodes, low, high, counts)


def _normalised(values, nodes, low, high, counts):
    log_normalizer = logsumexp(values, axis=1)
    shape = values.shape
    return Table(
        np.broadcast_to(nodes, shape),
        np.exp(values - log_normalizer[:, None]),
        np.broadcast_to(low, shape),
        np.broadcast_to(high, shape),
        log_normalizer,
        counts,
    )
