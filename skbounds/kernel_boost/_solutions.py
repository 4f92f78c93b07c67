"""Regression paths that were solved for: fits, predictions and figures at any time."""

from __future__ import annotations

import numpy as np

from skbounds.kernel_boost import _chain
from skbounds.kernel_boost._descent import iterate
from skbounds.kernel_boost._filters import boosting_filter


class SpectralSolution:
    """A path in eigenvectors.

    Parameters
    ----------
    basis : Basis
    path : SpectralPath
    rows : Rows
    centred : ndarray of shape (n, m)
    plain : bool
        Take the steps of (3.9) one by one for the dual coefficients.
    """

    filter_error = 0.0

    def __init__(self, basis, path, rows, centred, *, plain=False):
        self.basis, self.path, self.rows = basis, path, rows
        self.centred, self.plain = centred, plain
        self.eigenvalues = basis.eigenvalues
        self.landmarks, self.residual_trace = basis.landmarks, basis.residual_trace
        b = path.spectrum.coefficients
        self.slopes = b / np.sqrt(self.eigenvalues)[:, None]

    def dual(self, times):
        """Return the dual coefficients, a time per output."""
        if not self.plain:
            return self.basis.modes @ (self.path.filters(times).T * self.slopes)
        gram, share = self.rows.gram(), self.basis.share[:, None]
        step, y = self.path.step_size, self.centred
        dual = np.zeros_like(y)
        for time, (coefficients, _) in zip(
            np.unique(times),
            iterate(
                lambda values: step * share * (values - y),
                lambda coefficients: gram @ coefficients,
                lambda slopes: slopes,
                y.shape,
                np.unique(times),
                average=self.path.average,
            ),
            strict=True,
        ):
            reached = np.asarray(times) == time
            dual[:, reached] = coefficients[:, reached]
        return dual

    def df(self, times):
        """Return the degrees of freedom, a time per output."""
        return self.path.filters(times).sum(axis=1)

    def held_out_loss(self, X, y, weight, offset):
        """Return the validation loss as a function of times, (n_times, m)."""
        features = self.rows.to_others(X, self.landmarks) @ self.basis.modes

        def loss(times):
            filters = self.path.filters(times)
            outputs = []
            for k in range(y.shape[1]):
                values = features @ (filters * self.slopes[:, k]).T + offset[k]
                gaps = (values - y[:, [k]]) ** 2
                outputs.append(0.5 * np.average(gaps, axis=0, weights=weight))
            return np.stack(outputs, axis=1)

        return loss

    def state(self):
        """Return what staged predictions need."""
        return {
            "modes": self.basis.modes,
            "slopes": self.slopes,
            "eigenvalues": self.eigenvalues,
            "step_size": self.path.step_size,
            "average": self.path.average,
            "curvature": 1.0,
        }


def spectral_stages(state, features, times):
    """Yield predictions at some times, without the offset.

    Parameters
    ----------
    state : dict
        Of `SpectralSolution`.
    features : ndarray of shape (n, r)
        k(X, landmarks) @ modes.
    times : ndarray of shape (n_times, m)
    """
    for row in times:
        filters = boosting_filter(
            state["eigenvalues"], state["step_size"], row, average=state["average"]
        )
        yield features @ (filters.T * state["slopes"])


class ChainSolution:
    """A path of the first-order Sobolev kernel of one feature.

    Parameters
    ----------
    path : ChainPath
    first : ndarray of int of shape (N,)
        A row that has each knot.
    """

    residual_trace = 0.0

    def __init__(self, path, first):
        self.path, self.landmarks = path, first
        self.eigenvalues = path.eigenvalues
        self._known = {}

    def _fit(self, times):
        key = tuple(np.asarray(times, dtype=float))
        if key not in self._known:
            fits = {T: self.path.fit(T) for T in set(key)}
            self._known = {
                key: (
                    np.stack([fits[T][0][:, k] for k, T in enumerate(key)], axis=1),
                    np.array([fits[T][1] for T in key]),
                    max(fits[T][2] for T in key),
                )
            }
        return self._known[key]

    def values(self, times):
        """Return the fitted values at the knots, a time per output."""
        return self._fit(times)[0]

    def dual(self, times):
        """Return the dual coefficients, a time per output."""
        return _chain.chain_coefficients(self.path.chain, self.values(times))

    def df(self, times):
        """Return the degrees of freedom, a time per output."""
        return self._fit(times)[1]

    @property
    def filter_error(self):
        """Largest error of the rational filter in the last fit."""
        return max((found[2] for found in self._known.values()), default=0.0)

    def held_out_loss(self, X, y, weight, offset):
        """Return the validation loss as a function of times, (n_times, m)."""
        knots, x = self.path.chain.knots, X[:, 0]

        def loss(times):
            outputs = []
            for T in times:
                values = _chain.evaluate_chain(knots, self.path.fit(T)[0], x)
                gaps = (values + offset - y) ** 2
                outputs.append(0.5 * np.average(gaps, axis=0, weights=weight))
            return np.array(outputs)

        return loss

    def state(self):
        """Return what staged predictions need."""
        chain = self.path.chain
        return {
            "knots": chain.knots,
            "weight": chain.weight,
            "means": chain.means,
            "step_size": self.path.step_size,
            "curvature": 1.0,
        }


def chain_stages(state, x, times):
    """Yield predictions at some times, without the offset.

    Parameters
    ----------
    state : dict
        Of `ChainSolution`.
    x : ndarray of shape (n,)
    times : ndarray of shape (n_times, m)
    """
    chain = _chain.Chain(state["knots"], state["weight"], state["means"], 0.0)
    for row in times:
        columns = {T: _chain.fit_at(chain, state["step_size"], T)[0] for T in set(row)}
        values = np.stack([columns[T][:, k] for k, T in enumerate(row)], axis=1)
        yield _chain.evaluate_chain(state["knots"], values, x)
