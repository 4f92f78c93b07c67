"""The boosting flow of a loss, integrated with geometric steps, on several paths.

With functions f = offset + F theta of features F and weights w of the rows, boosting
with small steps follows

    d theta / d eta = -g(theta),    g = F' (w phi'(y, f))

in learning time eta, the sum of the steps. In the eigenvectors V of F' diag(w) F, with
eigenvalues mu, and for curvature m, coordinates relax at rates m mu_j; a two-stage
exponential step is exact where the curvature is constant and of second order otherwise.

Paths that differ in their weights only, as where folds of rows are left out, share the
products with F, one column for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Tries of a shorter step where a loss has no largest curvature.
_MOST_TRIES = 30
# Shares of the curvature that are tried where slopes are bounded, while they lower the
# risk by so much: by less where the slopes of nearly all rows are at their bounds.
_LESS, _FEW_BENDS, _GAINS = 0.125, 0.1, (1e-3, 0.1)


@dataclass
class Stage:
    """Where a flow is at a learning time: one path, or several in a leading axis.

    Attributes
    ----------
    theta : ndarray of shape (r,) or (r, K); of several paths (n_paths, r, K)
    values : ndarray of shape (n,) or (n, K); (n, n_paths) or (n, n_paths, K)
        Or what stands for those of rows that are elsewhere.
    risk : float or ndarray of shape (n_paths,)
    exposure : float or ndarray
        The integral of the curvature over learning time.
    plain : float or ndarray
        Learning time in steps of the risk itself; of another length only where the
        flow is that of its logarithm.
    curvature : float or ndarray
        The mean curvature there.
    """

    theta: np.ndarray
    values: np.ndarray
    risk: object
    exposure: object
    plain: object
    curvature: object = np.nan

    def path(self, k):
        """Return one of several paths."""
        theta = self.theta[k]
        return Stage(
            theta if self.values.ndim == 3 else theta[:, 0],
            self.values[:, k],
            float(self.risk[k]),
            float(self.exposure[k]),
            float(self.plain[k]),
            float(self.curvature[k]),
        )

    def some(self, which):
        """Return some of several paths."""
        return Stage(
            self.theta[which],
            self.values[:, which],
            self.risk[which],
            self.exposure[which],
            self.plain[which],
            self.curvature[which],
        )


def phi_1(z):
    """Return (1 - exp(-z)) / z, 1 at 0."""
    safe = np.where(z > 1e-8, z, 1.0)
    return np.where(z > 1e-8, -np.expm1(-safe) / safe, 1.0 - 0.5 * z)


def phi_2(z):
    """Return (exp(-z) - 1 + z) / z^2, 1/2 at 0."""
    safe = np.where(z > 1e-3, z, 1.0)
    series = 0.5 - z / 6.0 + z * z / 24.0
    return np.where(z > 1e-3, (np.expm1(-safe) + safe) / safe**2, series)


class BaseFlow:
    """The flow from theta = 0 on; subclasses know the rows.

    They have ``values(theta, which)``, the function values of all or some of the paths,
    and of such ``risk_of``, ``curvature_of`` and ``gradient``; ``put(values, which,
    others, own)`` replaces those of some paths.

    Parameters
    ----------
    loss : of `_losses`
    vectors : list of (ndarray of shape (R, r_k) or None)
        Eigenvectors V of each path's F' diag(w) F; None for those of the axes.
    eigenvalues : list of ndarray of shape (r_k,)
    size : int
        R.
    offset : ndarray of shape (n_paths,) or (n_paths, K)
    n_columns : int
        K, or 1.
    """

    def __init__(self, loss, vectors, eigenvalues, size, offset, n_columns):
        self.loss, self.vectors, self.size = loss, vectors, size
        self.offset = np.asarray(offset, dtype=np.float64)
        self.n_columns, self.n_paths = n_columns, len(vectors)
        self.ranks = [len(mu) for mu in eigenvalues]
        # Filled up with zeros, whose coordinates stay zero.
        self.mu = np.zeros((self.n_paths, max(self.ranks), 1))
        for k, mu in enumerate(eigenvalues):
            self.mu[k, : len(mu), 0] = mu

    def start(self):
        """Return the stage at learning time 0."""
        q, r = self.mu.shape[:2]
        theta = np.zeros((q, r, self.n_columns))
        values, none = self.values_at_start(theta), np.zeros(q)
        risk, m = self.risk_of(values), self.curvature_of(values)
        return Stage(theta, values, risk, none, none, m)

    def run(self, times):
        """Yield the stages at increasing learning times."""
        stage, before = self.start(), 0.0
        for eta in times:
            stage = self.advance(stage, eta - before)
            before = eta
            yield stage

    def coefficients(self, theta, which=None):
        """Return the coefficients of F of some of the paths, (R, n_paths, K)."""
        which = range(self.n_paths) if which is None else which
        found = np.empty((self.size, len(which), theta.shape[2]))
        for j, k in enumerate(which):
            own, V = theta[j, : self.ranks[k]], self.vectors[k]
            found[:, j] = own if V is None else V @ own
        return found

    def turned(self, coefficients):
        """Return coordinates of coefficients of the first features."""
        size, q, c = coefficients.shape
        theta = np.zeros((q, self.mu.shape[1], c))
        for k, V in enumerate(self.vectors):
            own = coefficients[:, k]
            if V is None:
                theta[k, :size] = own
            else:
                theta[k, : self.ranks[k]] = V[:size].T @ own
        return theta

    def in_eigenvectors(self, found):
        """Return gradients by the features, (R, n_paths, K), as those by theta."""
        q, c = self.n_paths, self.n_columns
        g = np.zeros((q, self.mu.shape[1], c))
        for k, V in enumerate(self.vectors):
            own = np.ascontiguousarray(found[:, k])
            g[k, : self.ranks[k]] = own if V is None else V.T @ own
        return g

    def advance(self, stage, step):
        """Return the stage a step later."""
        loss, mu = self.loss, self.mu
        theta, g = stage.theta, self.gradient(stage.values)
        m = stage.curvature
        rates = m[:, None, None] * mu
        z = step * rates
        predicted = theta - step * phi_1(z) * g
        f = self.values(predicted)
        # N(theta) = g - m mu theta: what the linear part leaves.
        change = self.gradient(f) - g - rates * (predicted - theta)
        theta_new = predicted - step * phi_2(z) * change
        f_new = self.values(theta_new)
        risk = self.risk_of(f_new)
        failed = np.flatnonzero(~(risk <= stage.risk))
        if len(failed):
            theta_new[failed] = predicted[failed]
            self.put(f_new, failed, f, failed)
            risk[failed] = self.risk_of(f_new, failed)
            failed = failed[~(risk[failed] <= stage.risk[failed])]
        for tries in range(1, _MOST_TRIES + 1):
            if not len(failed):
                break
            steep = loss.smoothness or m[failed, None, None] * 4.0**tries
            shorter = step * phi_1(step * steep * mu[failed]) * g[failed]
            theta_new[failed] = theta[failed] - shorter
            self.put(f_new, failed, self.values(theta_new[failed], failed))
            risk[failed] = self.risk_of(f_new, failed)
            if loss.smoothness is not None:
                break
            failed = failed[~(risk[failed] <= stage.risk[failed])]
        if loss.saturates:
            self._reach_out(stage, step, g, theta_new, f_new, risk)
        later = self.curvature_of(f_new)
        exposure = stage.exposure + 0.5 * step * (m + later)
        plain = stage.plain + step * loss.stretch(0.5 * (risk + stage.risk))
        return Stage(theta_new, f_new, risk, exposure, plain, later)

    def _reach_out(self, stage, step, g, theta_new, f_new, risk):
        """Go on with less curvature where that is better; in place.

        Where the slopes of most rows are bounded the mean curvature says too much: a
        step as for a square ends near the next bend, the flow goes straight on.
        """
        loss = self.loss
        m, which = stage.curvature.copy(), np.arange(self.n_paths)
        few = stage.curvature < _FEW_BENDS * loss.smoothness
        least = 1.0 - np.where(few, *_GAINS)
        for _ in range(_MOST_TRIES):
            m = m * _LESS
            rates = step * m[which, None, None] * self.mu[which]
            theta = stage.theta[which] - step * phi_1(rates) * g[which]
            f = self.values(theta, which)
            tried = self.risk_of(f, which, f_of=range(len(which)))
            better = tried < risk[which] * least[which]
            kept = which[better]
            theta_new[kept] = theta[better]
            self.put(f_new, kept, f, np.flatnonzero(better))
            risk[kept], which = tried[better], kept
            if not len(which):
                return

    def between(self, first, second, share):
        """Return what lies a share of the way between two stages."""
        mix = lambda a, b: (1.0 - share) * a + share * b
        theta = mix(first.theta, second.theta)
        values = self.values(theta)
        return Stage(
            theta,
            values,
            self.risk_of(values),
            mix(first.exposure, second.exposure),
            mix(first.plain, second.plain),
            self.curvature_of(values),
        )


class Flow(BaseFlow):
    """The flow of rows in memory.

    Parameters
    ----------
    loss : of `_losses`
    features : ndarray of shape (n, R)
        F; in single precision the products with it are.
    vectors, eigenvalues
        See `BaseFlow`.
    y : ndarray of shape (n,) or (n, K)
    weight : ndarray of shape (n, n_paths)
    offset : ndarray of shape (n_paths,) or (n_paths, K)
    """

    def __init__(self, loss, features, vectors, eigenvalues, y, weight, offset):
        n_columns = 1 if y.ndim == 1 else y.shape[1]
        super().__init__(
            loss, vectors, eigenvalues, features.shape[1], offset, n_columns
        )
        self.features, self.y, self.weight = features, y[:, None], weight

    def values_at_start(self, theta):
        """Return the offsets, for all rows."""
        return np.broadcast_to(self.offset, (len(self.y), *self.offset.shape))

    def values(self, theta, which=None):
        """Return the function values of some of the paths."""
        F, columns = self.features, self.coefficients(theta, which)
        r, q, c = columns.shape
        found = F @ columns.reshape(r, q * c).astype(F.dtype, copy=False)
        offset = self.offset if which is None else self.offset[which]
        return found.reshape(len(F), *offset.shape) + offset

    def gradient(self, f):
        """Return g of each path, in its eigenvectors."""
        F, q, c = self.features, self.n_paths, self.n_columns
        slopes = self.loss.pull(self.y, f, self.weight).reshape(len(F), q * c)
        found = F.T @ slopes.astype(F.dtype, copy=False)
        found = found.reshape(-1, q, c).astype(np.float64, copy=False)
        return self.in_eigenvectors(found)

    def risk_of(self, f, which=None, f_of=None):
        """Return the risks of some of the paths, which are where `f_of` says in f."""
        if which is None:
            return self.loss.risk(self.y, f, self.weight)
        if f_of is None:
            f = f[:, which]
        return self.loss.risk(self.y, f, self.weight[:, which])

    def curvature_of(self, f):
        """Return the mean curvature of each path."""
        return self.loss.curvature(self.y, f, self.weight)

    def put(self, f, which, others, own=None):
        """Replace the values of some of the paths by others, in place."""
        f[:, which] = others if own is None else others[:, own]
