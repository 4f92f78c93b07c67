"""The path of the first-order Sobolev kernel 1 + min(x, x') of one feature.

The inverse of the kernel matrix of sorted distinct points is tridiagonal, so that a
rational filter of it takes O(n) (see ``native/kernel_boost/kernel_boost.h``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbounds._core import kernel_boost as _core
from skbounds.kernel_boost._rational import FEWEST_STEPS, fractions, prepared_times
from skbounds.kernel_boost._solvers import full_basis
from skbounds.kernel_boost._stopping import Spectrum, Statistics

# Rank cells that the time is chosen on, and that stand for the spectrum.
CELLS, _SPECTRUM_CELLS = 20_000, 500
_POWER_STEPS = 12
_SAFETY = 1.02
# Prepared times between two that are looked at first.
_STRIDE = 4
# A path whose criterion is so far above the least one does not come back.
_HOPELESS = 1.2


@dataclass(frozen=True)
class Chain:
    """Distinct points in increasing order, with the rows merged that share one.

    Attributes
    ----------
    knots : ndarray of shape (N,)
    weight : ndarray of shape (N,)
    means : ndarray of shape (N, m)
        Of the centred targets.
    within : ndarray of shape (m,)
        Weighted sum of squares around the means.
    """

    knots: np.ndarray
    weight: np.ndarray
    means: np.ndarray
    within: np.ndarray | float


def make_chain(x, targets, weight) -> Chain:
    """Sort and merge rows."""
    order = np.argsort(x, kind="stable")
    x = x[order]
    first = np.flatnonzero(np.r_[True, np.diff(x) > 0.0])
    return _merge(Chain(x, weight[order], targets[order], 0.0), first)


def merge_cells(chain, n_cells) -> Chain:
    """Return a chain of at most so many cells of consecutive points."""
    n = len(chain.knots)
    if n <= n_cells:
        return chain
    return _merge(chain, np.linspace(0, n, n_cells, endpoint=False).astype(np.intp))


def _merge(chain, first):
    """Merge the points from each first one to before the next."""
    weight = chain.weight
    if len(first) == len(weight):
        return replace(chain, within=np.zeros(chain.means.shape[1]) + chain.within)
    total = np.add.reduceat(weight, first)
    sums = np.add.reduceat(weight[:, None] * chain.means, first)
    means = sums / total[:, None]
    cell = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(weight)]))
    # Clipped, as rounding must not bring the means of neighbouring points together.
    knots = np.add.reduceat(weight * chain.knots, first) / total
    last = np.r_[first[1:], len(weight)] - 1
    knots = np.clip(knots, chain.knots[first], chain.knots[last])
    within = weight @ (chain.means - means[cell]) ** 2
    return Chain(knots, total, means, chain.within + within)


def multiply(chain, values):
    """Return G W values / sum W in O(N)."""
    x, total = chain.knots[:, None], chain.weight.sum()
    weighted = chain.weight[:, None] * values / total
    before = np.cumsum(weighted, axis=0)
    lower = np.cumsum(x * weighted, axis=0)
    return before[-1] + lower + x * (before[-1] - before)


def largest_eigenvalue(chain):
    """Return mu_1: exact for few knots, else by power steps with a margin."""
    if len(chain.knots) <= _SPECTRUM_CELLS:
        return full_basis(_gram(chain), chain.weight).eigenvalues[0]
    v = np.ones((len(chain.knots), 1))
    size = 1.0
    for _ in range(_POWER_STEPS):
        v = multiply(chain, v)
        size = np.sqrt(np.average(v[:, 0] ** 2, weights=chain.weight))
        v /= size
    return _SAFETY * size


def _gram(chain):
    return 1.0 + np.minimum.outer(chain.knots, chain.knots)


def fit_chain(chain, step_size, T):
    """Return fitted values at the knots, their leverages and the filter's error.

    Parameters
    ----------
    chain : Chain
    step_size : float
        At most 1 / mu_1.
    T : float
        Whole number of at least 8; `iterate_chain` is for fewer steps.
    """
    found = fractions(float(T))
    values, leverage = np.zeros(chain.means.shape), np.zeros(len(chain.knots))
    _core.filtered(
        np.diff(chain.knots), 1.0 + chain.knots[0], chain.weight,
        chain.weight[:, None] * chain.means, T * step_size / chain.weight.sum(),
        found.poles, found.factors, values, leverage,
    )  # fmt: skip
    return values, leverage, found.error


def fit_at(chain, step_size, T):
    """Return fitted values at the knots and, from 8 steps on, what `fit_chain` does."""
    if T < FEWEST_STEPS:
        return iterate_chain(chain, step_size, T), None, 0.0
    return fit_chain(chain, step_size, T)


def iterate_chain(chain, step_size, T):
    """Return fitted values after a few steps, taken one by one."""
    values = np.zeros_like(chain.means)
    for _ in range(int(T)):
        values += step_size * multiply(chain, chain.means - values)
    return values


class ChainPath:
    """The path of a chain; its statistics are those of at most 20 000 cells.

    Parameters
    ----------
    chain : Chain
    step_size : float

    Attributes
    ----------
    eigenvalues : ndarray
        Of at most 500 cells.
    """

    average = False

    def __init__(self, chain, step_size):
        self.chain, self.step_size = chain, step_size
        self.n_samples = chain.weight.sum()
        few = merge_cells(chain, _SPECTRUM_CELLS)
        self.spectrum = Spectrum(
            full_basis(_gram(few), few.weight), few.means, self.n_samples
        )
        self.spectrum.residual += few.within / self.n_samples
        self.eigenvalues = self.spectrum.eigenvalues
        # What the cells miss of the trace: many small eigenvalues.
        share = chain.weight / self.n_samples
        trace = share @ (1.0 + chain.knots)
        self._missing = max(trace - self.eigenvalues.sum(), 0.0)
        self._cells = merge_cells(chain, CELLS)
        self._fits = {}

    @property
    def n_outputs(self):
        return self.chain.means.shape[1]

    def noise(self):
        """Return the noise variances of greatest marginal likelihood."""
        return self.spectrum.noise()[0]

    def fit(self, T):
        """Return fitted values at the knots, df and the filter's error."""
        return self._fit(self.chain, T)

    def _fit(self, chain, T):
        values, leverage, error = fit_at(chain, self.step_size, T)
        if leverage is not None:
            return values, float(leverage.sum()), error
        share = np.minimum(self.step_size * self.eigenvalues, 1.0)
        df = np.sum(1.0 - (1.0 - share) ** T) + T * self.step_size * self._missing
        return values, float(df), error

    def _statistics(self, T):
        """Return df and rss."""
        if T not in self._fits:
            cells = self._cells
            values, df, _ = self._fit(cells, T)
            rss = cells.within + cells.weight @ (cells.means - values) ** 2
            self._fits[T] = df, rss / self.n_samples
        return self._fits[T]

    def at(self, times):
        """Return the statistics at some times."""
        found = [self._statistics(float(T)) for T in times]
        return Statistics(
            np.asarray(times),
            np.array([df for df, _ in found]),
            np.array([rss for _, rss in found]),
        )

    def residual_df(self, times):
        """Return the trace of (I - S)'(I - S) at some times, without the offset.

        With ``S = I - A^T`` that is the trace of ``A^(2 T)``: the df of twice the time.
        """
        return self.n_samples - self.at(2.0 * np.asarray(times)).df

    def explore(self, judge, longest, aim):
        """Return the statistics where the aim is smallest, and on the way there.

        Times are looked at in large strides until the aim is hopeless, then between
        those around the least one.
        """
        times = np.unique(np.r_[np.arange(1.0, 8.0), prepared_times(), longest])
        times = times[times <= longest]
        first = np.unique(np.r_[np.arange(0, len(times), _STRIDE), len(times) - 1])
        if aim is None:
            found = self.at(times[first])
            return replace(found, criterion=judge(found))
        looked, best = [], np.inf
        for k in first:
            looked.append(k)
            value = aim(self.at(times[[k]]))
            best = np.minimum(best, value)
            # Also where the criterion is not defined any more.
            if (np.isfinite(best) & (value > _HOPELESS * best) & (best > 0.0)).all():
                break
        values = aim(self.at(times[looked]))
        for k in np.argmin(values, axis=0):
            low, high = looked[max(k - 1, 0)], looked[min(k + 1, len(looked) - 1)]
            looked = [*looked, *range(low, high + 1)]
        found = self.at(times[np.unique(looked)])
        return replace(found, criterion=judge(found))

    def norms(self, times, *, average=False):
        """Return the Hilbert norms of the outputs at a time each.

        |f|_H^2 = f(x_1)^2 / (1 + x_1) + sum of (change)^2 / spacing.
        """
        norms = []
        for k, T in enumerate(times):
            f = self.fit(T)[0][:, k]
            x = self.chain.knots
            squared = f[0] ** 2 / (1.0 + x[0]) + (np.diff(f) ** 2 / np.diff(x)).sum()
            norms.append(np.sqrt(squared))
        return np.array(norms)


def chain_coefficients(chain, values):
    """Return the dual coefficients of knots' values: Q f with Q = G^-1."""
    x = chain.knots
    slopes = np.diff(values, axis=0) / np.diff(x)[:, None]
    start = values[:1] / (1.0 + x[0])
    return np.concatenate([start, slopes]) - np.concatenate(
        [slopes, np.zeros_like(start)]
    )


def evaluate_chain(knots, values, x):
    """Return the functions at some points, from their values at the knots.

    Linear between knots, constant beyond the last, and in proportion to 1 + x before
    the first.
    """
    inside = np.stack([np.interp(x, knots, column) for column in values.T], axis=1)
    factor = np.where(x < knots[0], (1.0 + x) / (1.0 + knots[0]), 1.0)
    return inside * factor[:, None]
