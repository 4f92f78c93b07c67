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

from skbounds._blocks import row_blocks

# Logarithm of the density, relative to the largest, below which a law ends.
_END = 45.0
# Rows whose laws are tabulated at a time.
_BLOCK = 256
# Edges around a mode, and counts that are taken one by one in any case.
_NODES, _SINGLE = 1001, 65
# Largest logarithm of a mean, either way.
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
        mu = np.exp(np.clip(self.Z @ self.theta, -_LARGEST, _LARGEST))
        if self.family == "poisson":
            return mu - self.y, mu
        return 1.0 - self.y / mu, self.y / mu

    def _inverse(self, total):
        """Return the inverse Hessian with this total weight of the penalty."""
        curvature = self.weight * self._derivatives()[1]
        hessian = self.Z.T @ (self.Z * curvature[:, None])
        hessian.flat[:: len(hessian) + 1] += total * self.alpha * self.penalized
        try:
            factor = linalg.cho_factor(hessian)
        except linalg.LinAlgError:
            raise ValueError(
                "The log likelihood has no curvature: all targets are zero, or columns "
                f"depend on one another and alpha={self.alpha!r} is too small."
            ) from None
        return linalg.cho_solve(factor, np.eye(len(hessian)))

    def check_curvature(self) -> None:
        """Raise an error where one more row has no law."""
        self._inverse(self.weight.sum() + 1.0)

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
        if self.family == "gamma":
            return self.log_density(steps, np.log(y), nu)
        mu = np.exp(np.clip(steps.eta, -_LARGEST, _LARGEST))[:, None]
        h, unit = steps.h[:, None], steps.unit[:, None]
        with np.errstate(over="ignore"):
            change = np.minimum(h * mu, 1e300)
        c = unit * (y - mu) / (1.0 + unit * change)
        moved = mu + change * c
        value = xlogy(y, moved) - moved - gammaln(y + 1.0)
        return value - 0.5 * self.alpha * _squared_norm(steps, c)

    def log_density(self, steps: Steps, log_y, nu):
        """Return the same of positive targets, by their logarithms."""
        start = np.clip(steps.eta, -_LARGEST, _LARGEST)[:, None]
        h, unit = steps.h[:, None], steps.unit[:, None]
        t = log_y - start
        # Forms that do not overflow on either side.
        small = np.exp(np.minimum(t, 0.0))
        large = np.exp(-np.maximum(t, 0.0))
        c = np.where(
            t < 0.0,
            unit * (small - 1.0) / (1.0 + unit * h * small),
            unit * (1.0 - large) / (large + unit * h),
        )
        eta = start + h * c
        t = log_y - eta
        with np.errstate(over="ignore"):
            value = nu * (t - np.exp(np.minimum(t, 700.0))) - log_y
        value = value + nu * np.log(nu) - gammaln(nu)
        return value - 0.5 * nu * self.alpha * _squared_norm(steps, c)


def _squared_norm(steps, c):
    one, linear, square = steps.norm[:, :, None]
    return one + c * (linear + c * square)


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
        # Beyond the range of doubles: infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (self.nodes - mean[:, None]) ** 2
            spread = np.sum(np.where(self.mass > 0.0, self.mass * squares, 0.0), axis=1)
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


def blocks(steps: Steps):
    """Yield slices of rows whose laws fit the cache, and their steps."""
    for rows in row_blocks(len(steps.eta), _BLOCK):
        yield rows, steps.rows(rows)


def table(glm: GLM, steps: Steps, nu=1.0, n_nodes=_NODES) -> Table:
    """Return the laws of rows, each on a grid of its own."""
    if glm.family == "gamma":
        return _positive_table(glm, steps, nu, n_nodes)
    return _count_table(glm, steps)


def log_normalizers(glm: GLM, steps: Steps, nu=1.0, n_nodes=_NODES):
    """Return those of the laws of any number of rows."""
    parts = [table(glm, part, nu, n_nodes).log_normalizer for _, part in blocks(steps)]
    return np.concatenate(parts)


def _simpson(values, at, log_width):
    """Return logarithms of integrals over intervals, and the means of ``at`` in them.

    Values are logarithms, at the ends and in the middle, as is ``at``: (3, ...).
    """
    weights = values + np.log([1.0, 4.0, 1.0]).reshape(3, *[1] * (values.ndim - 1))
    total = logsumexp(weights, axis=0)
    shares = np.exp(weights - np.where(np.isfinite(total), total, 0.0))
    return total + log_width - np.log(6.0), np.sum(shares * at, axis=0)


def _count_table(glm, steps):
    mu = np.exp(np.clip(steps.eta, -_LARGEST, _LARGEST))[:, None]
    with np.errstate(over="ignore"):
        own = np.minimum((steps.unit * steps.h)[:, None] * mu, 1e300)
    linear, square = steps.norm[1][:, None], steps.norm[2][:, None]
    # Where the penalty is least, and how fast it grows from there.
    with np.errstate(divide="ignore", invalid="ignore"):
        calm = mu - 0.5 * linear / square * (1.0 + own) / steps.unit[:, None]
        spread = (1.0 + own) / np.sqrt(glm.alpha * square)
    calm = np.where(np.isfinite(calm) & (calm > 0.0), np.minimum(calm, 1e17), mu)
    # The end of the law.
    powers = np.broadcast_to(2.0 ** np.arange(-1, 59), (len(mu), 60))
    coarse = np.floor(np.sort(np.hstack([powers, np.minimum(mu, 1e17), calm]), axis=1))
    values = glm.log_likelihood(steps, coarse) + np.log(coarse + 1.0)
    inside = values > values.max(axis=1, keepdims=True) - _END
    last = coarse[
        np.arange(len(mu)), coarse.shape[1] - 1 - np.argmax(inside[:, ::-1], 1)
    ]
    end = 4.0 * (last[:, None] + 10.0)
    # The first counts one by one; where they end the law is smooth on their scale.
    edges = [np.broadcast_to(np.arange(_SINGLE), (len(mu), _SINGLE)), end]
    for center, width in ((mu, np.sqrt(mu)), (calm, np.fmin(np.sqrt(calm), spread))):
        center = np.minimum(center, end)
        width = 0.3 * np.maximum(width, 0.1)
        edges.append(_around(center, width, center, end - center))
    edges = np.floor(np.sort(np.maximum(np.hstack(edges), 0.0), axis=1))
    low, high = edges[:, :-1], edges[:, 1:]
    width = high - low
    values, nodes = np.full(low.shape, -np.inf), low.copy()
    # One count; and many, by the integral between the halves.
    row, cell = np.nonzero(width == 1.0)
    at = low[row, cell][:, None]
    values[row, cell] = glm.log_likelihood(steps.rows(row), at)[:, 0]
    row, cell = np.nonzero(width > 1.0)
    first = np.maximum(low[row, cell] - 0.5, 0.0)
    last = high[row, cell] - 0.5
    three = np.stack([first, 0.5 * (first + last), last])
    found = glm.log_likelihood(steps.rows(row), three.T).T
    log_width = np.log(width[row, cell])
    values[row, cell], nodes[row, cell] = _simpson(found, three, log_width)
    return _normalised(values, nodes, low, high, True)


def _positive_table(glm, steps, nu, n_nodes):
    # In log y the law has its mode near eta, or near where small targets pull it; it
    # falls by nu to the left, and faster than any power to the right.
    eta = np.clip(steps.eta, -_LARGEST, _LARGEST)[:, None]
    pulled = (steps.unit * steps.h)[:, None]
    width = 0.2 * np.minimum(1.0, (1.0 + pulled) / np.sqrt(nu))
    left = pulled + (_END + 5.0) / nu + 8.0
    right = 3.0 + np.log1p(_END * (1.0 + 1.0 / nu)) + 0.0 * pulled
    edges = [_around(eta, width, left, right, n_nodes)]
    left, right = left - pulled, right + pulled
    edges.append(_around(eta - pulled, width, left, right, n_nodes))
    edges = np.sort(np.hstack(edges), axis=1)
    low, high = edges[:, :-1], edges[:, 1:]
    middle = 0.5 * (low + high)
    with np.errstate(over="ignore", divide="ignore"):
        at_edges = glm.log_density(steps, edges, nu) + edges
        at_middle = glm.log_density(steps, middle, nu) + middle
        log_width = np.log(high - low)
        ends = np.exp(edges)
        three = np.stack([ends[:, :-1], np.exp(middle), ends[:, 1:]])
    found = np.stack([at_edges[:, :-1], at_middle, at_edges[:, 1:]])
    values, nodes = _simpson(found, three, log_width)
    return _normalised(values, nodes, three[0], three[2], False)


def _around(center, width, left, right, n_nodes=_NODES):
    """Return edges from ``center - left`` to ``center + right``, dense around it."""
    start, stop = -np.arcsinh(left / width), np.arcsinh(right / width)
    u = start + np.linspace(0.0, 1.0, n_nodes) * (stop - start)
    return center + width * np.sinh(u)


def _normalised(values, nodes, low, high, counts):
    log_normalizer = logsumexp(values, axis=1)
    mass = np.exp(values - log_normalizer[:, None])
    return Table(nodes, mass, low, high, log_normalizer, counts)
