"""Criteria along the path of the squared loss.

A path knows its degrees of freedom and residuals at any time, in closed form.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from skbounds.kernel_boost._filters import boosting_filter

# Fits closer to interpolation than this cannot be judged.
_LARGEST_DF, _LARGEST_PENALTY = 0.9, 0.95
# Learning times of a path, and the longest one.
N_TIMES = 120
LONGEST = 1e9
# Components of the path with less than this left to learn are not waited for.
_LEARNT = 30.0
_TINY, _ROUNDING = 1e-300, 1e-12


@dataclass(frozen=True)
class Statistics:
    """What is known of the path at some times.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
    df : ndarray of shape (n_times,)
        Trace of the filter, without the offset.
    rss : ndarray of shape (n_times, m)
        Mean squared residual.
    criterion : ndarray of shape (n_times, m) or None
    """

    times: np.ndarray
    df: np.ndarray
    rss: np.ndarray
    criterion: np.ndarray | None = None


class Spectrum:
    """The targets in the eigenvectors of the normalised kernel matrix.

    Parameters
    ----------
    basis : Basis
    targets : ndarray of shape (n, m)
        Without the offset; or what stands for them, where the basis knows their sums.
    n_samples : float
        W, the sum of the weights.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
    coefficients : ndarray of shape (r, m)
        b = U' s with s = sqrt(w / W) targets.
    residual : ndarray of shape (m,)
        What of |s|^2 lies outside of the eigenvectors.
    """

    def __init__(self, basis, targets, n_samples):
        self.eigenvalues, self.n_samples = basis.eigenvalues, n_samples
        self.coefficients = basis.coefficients(targets)
        total = basis.squares(targets)
        inside = (self.coefficients**2).sum(axis=0)
        self.residual = np.maximum(total - inside, 0.0)

    def scaled(self, k, factor):
        """Return the spectrum of one of the targets times a factor."""
        found = copy(self)
        found.coefficients = factor * self.coefficients[:, [k]]
        found.residual = factor**2 * self.residual[[k]]
        return found

    def noise(self):
        """Return the noise variances of greatest marginal likelihood, and the scores.

        The coefficients are taken for draws of N(0, s2 (1 + q W mu_j)) and what lies
        outside of the eigenvectors for noise.

        Returns
        -------
        variance : ndarray of shape (m,)
        score : ndarray of shape (m,)
            W log s2 + sum_j log(1 + q W mu_j), at its least.
        """
        n, mu = self.n_samples, self.eigenvalues
        if not len(mu):
            return self.residual, n * np.log(self.residual + _TINY)
        log_q = np.log(np.geomspace(1e-6, 1e6, 49) / max(mu.sum(), _TINY))
        squares = self.coefficients**2

        def profile(log_q, k):
            grown = 1.0 + np.multiply.outer(np.exp(log_q), n * mu)
            variance = (squares[:, k] / grown).sum(axis=-1) + self.residual[k]
            return n * np.log(variance + _TINY) + np.log(grown).sum(axis=-1), variance

        variances, scores = [], []
        for k in range(squares.shape[1]):
            best = int(np.argmin(profile(log_q, k)[0]))
            around = log_q[[max(best - 1, 0), min(best + 1, len(log_q) - 1)]]
            found = minimize_scalar(
                lambda q, k=k: profile(q, k)[0],
                bounds=around,
                method="bounded",
                options={"xatol": 1e-2},
            )
            score, variance = profile(found.x, k)
            variances.append(variance)
            scores.append(score)
        return np.array(variances), np.array(scores)


class SpectralPath:
    """The path in the eigenvectors of the kernel matrix.

    Parameters
    ----------
    spectrum : Spectrum
    step_size : float
    average : bool
        Whether the path is that of the averaged iterates.
    """

    def __init__(self, spectrum, step_size, *, average=False):
        self.spectrum, self.step_size, self.average = spectrum, step_size, average
        self.eigenvalues, self.n_samples = spectrum.eigenvalues, spectrum.n_samples

    @property
    def n_outputs(self):
        return self.spectrum.coefficients.shape[1]

    def filters(self, times, *, average=None):
        """Return the filter at some times, (n_times, r)."""
        average = self.average if average is None else average
        return boosting_filter(self.eigenvalues, self.step_size, times, average=average)

    def noise(self):
        """Return the noise variances of greatest marginal likelihood."""
        return self.spectrum.noise()[0]

    def at(self, times):
        """Return the statistics at some times."""
        filters = self.filters(times)
        left = (1.0 - filters) ** 2 @ self.spectrum.coefficients**2
        return Statistics(times, filters.sum(axis=1), self.spectrum.residual + left)

    def residual_df(self, times):
        """Return the trace of (I - S)'(I - S) at some times, without the offset."""
        filters = self.filters(times)
        return self.n_samples - (filters * (2.0 - filters)).sum(axis=1)

    def explore(self, judge, longest, aim):
        """Return the statistics of the whole path, judged.

        Parameters
        ----------
        judge : callable
            ``judge(statistics)`` returns the criterion or None.
        longest : float
        aim : callable or None
            What is small where the path is stopped, for paths that are not free.
        """
        times = time_grid(self.eigenvalues, self.step_size, longest)
        found = self.at(times)
        return replace(found, criterion=judge(found))

    def norms(self, times, *, average=None):
        """Return the Hilbert norms of the outputs at a time each.

        |f|_H^2 = sum_j h_j^2 b_j^2 / mu_j.
        """
        filters = self.filters(times, average=average)
        b = self.spectrum.coefficients.T
        return np.sqrt((filters**2 * b**2 / self.eigenvalues).sum(axis=1))


def time_grid(eigenvalues, step_size, longest, n_times=N_TIMES):
    """Return whole times from 1 to where the least component is learnt."""
    least = step_size * eigenvalues[-1] if len(eigenvalues) else 1.0
    end = min(longest, max(1.0, _LEARNT / least))
    return np.unique(np.round(np.geomspace(1.0, end, n_times)))


def gcv(path, n_samples, n_offset, margin):
    """Return generalised cross-validation with df + margin sqrt(df) + the offset.

    Infinite where the fit is too close to interpolation.
    """
    used = path.df + margin * np.sqrt(path.df) + n_offset
    allowed = (path.df <= _LARGEST_DF * n_samples) & (
        used <= _LARGEST_PENALTY * n_samples
    )
    return _where(allowed, lambda: path.rss / (1.0 - used / n_samples)[:, None] ** 2)


def cp(path, n_samples, variance):
    """Return Mallows' Cp."""
    allowed = path.df <= _LARGEST_DF * n_samples
    penalty = 2.0 * np.outer(path.df / n_samples, variance)
    return _where(allowed, lambda: path.rss + penalty)


def aicc(path, n_samples):
    """Return the corrected information criterion of smoothers."""
    free = 1.0 - (path.df + 2.0) / n_samples
    allowed = (path.df <= _LARGEST_DF * n_samples) & (free > 0.0)
    used = (1.0 + path.df / n_samples) / np.where(free > 0.0, free, 1.0)
    return _where(allowed, lambda: np.log(path.rss + _TINY) + used[:, None])


def _where(allowed, criterion):
    # Where it is not allowed it may be anything.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = criterion()
    return np.where(allowed[:, None], values, np.inf)


def first_minimum(criterion):
    """Return the first position of the least value of each column; 0 if none is finite.

    Values that differ by rounding are the same: once all is learnt nothing changes.
    """
    values = np.where(np.isnan(criterion), np.inf, criterion)
    least = values.min(axis=0)
    rounding = _ROUNDING * np.abs(np.where(np.isfinite(least), least, 0.0))
    return np.argmax(values <= least + rounding, axis=0)


def patient_minimum(criterion, patience):
    """Return the position of the least value before `patience` others are no less."""
    chosen = []
    for values in np.asarray(criterion).T:
        best = 0
        for k in range(1, len(values)):
            if values[k] < values[best]:
                best = k
            elif k - best >= patience:
                break
        chosen.append(best)
    return np.array(chosen)


def discrepancy(path, variance):
    """Return the first position whose residual is as small as the noise."""
    below = path.rss <= variance
    return np.where(below.any(axis=0), below.argmax(axis=0), len(path.times) - 1)
