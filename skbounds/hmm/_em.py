"""Expectation maximisation of hidden Markov models with Gaussian outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from skbounds._core import hmm as _core
from skbounds.hmm import _emissions
from skbounds.hmm._mixing import stationary_law

# Probabilities below may be the only way to a state, and vanish on it.
_IMPOSSIBLE = 1e-100


@dataclass(frozen=True)
class Chain:
    """Parameters of the general model.

    Attributes
    ----------
    start : ndarray of shape (s,)
    transition : ndarray of shape (s, s)
    means : ndarray of shape (s, d)
    covariances : ndarray
        As `covariance_type` keeps them.
    """

    start: np.ndarray
    transition: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def distance(self, other, unit):
        """Return how far transitions and means are from others, in units of columns."""
        gaps = ((self.means - other.means) / unit).ravel()
        turns = (self.transition - other.transition).ravel()
        return float(np.linalg.norm(np.r_[gaps, turns]))


@dataclass(frozen=True)
class Expected:
    """What the E-step finds.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        log p(x_t | x_<t) within the sequence.
    posterior : ndarray of shape (n, s)
    pairs : ndarray of shape (s, s)
        Expected numbers of transitions.
    """

    rows: np.ndarray
    posterior: np.ndarray
    pairs: np.ndarray


class Forward:
    """The forward pass over rows.

    Attributes
    ----------
    start, transition : ndarray
        The laws, in one type and memory order.
    density : ndarray of shape (n, s)
        Relative to each row's largest.
    top : ndarray of shape (n,)
        Logarithms of the largest.
    filtered : ndarray of shape (n, s)
        Laws of the states given the rows of their sequence so far.
    scale : ndarray of shape (n,)
    careful : bool
        Whether a transition is (nearly) impossible, so that a state that has vanished
        may be missed.
    failed : ndarray of int
        Sequences in which all states have vanished; they are for logarithms.
    """

    def __init__(self, log_density, starts, start, transition):
        self.start = np.ascontiguousarray(start, dtype=np.float64)
        self.transition = np.ascontiguousarray(transition, dtype=np.float64)
        least = min(self.transition.min(), self.start.min())
        self.careful = bool(least < _IMPOSSIBLE)
        self.density, self.top = np.empty(log_density.shape), np.empty(len(log_density))
        _core.subtract_largest(log_density, self.density, self.top)
        if not np.isfinite(self.top).all():
            raise ValueError(
                "the density of a row is 0 or infinite for all states: the data are "
                "too far from the model (means and covariances) for double precision."
            )
        np.exp(self.density, out=self.density)
        self.filtered, self.scale = np.empty_like(self.density), np.ones(len(self.top))
        any_failed = _core.forward(
            self.density, starts, self.start, self.transition, self.careful,
            self.filtered, self.scale,
        )  # fmt: skip
        self.failed = np.arange(0)
        if any_failed:
            self.failed = np.flatnonzero(self.scale[starts[:-1]] == 0.0)


def expectation(
    log_density, starts, start, transition, *, window=None, rows_only=False
) -> Expected:
    """Run the E-step.

    Parameters
    ----------
    log_density : ndarray of shape (n, s)
    starts : ndarray of int of shape (n_sequences + 1,)
    start : ndarray of shape (s,)
    transition : ndarray of shape (s, s)
    window : int or None
        Posteriors given the rows at most so far away.
    rows_only : bool
        Only the log-likelihoods of the rows are wanted.
    """
    n, s = log_density.shape
    ahead = Forward(log_density, starts, start, transition)
    start, transition, density = ahead.start, ahead.transition, ahead.density
    posterior, pairs = np.empty((n, s)), np.zeros((s, s))
    longest = np.diff(starts).max()
    whole = window is None or window >= longest - 1
    if not rows_only and whole:
        _core.backward(
            density, starts, transition, ahead.filtered, ahead.scale, posterior, pairs
        )
        pairs *= transition
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
        rows = np.log(ahead.scale) + ahead.top
    for q in ahead.failed:
        first, stop = starts[q], starts[q + 1]
        _core.log_pass(
            log_density, first, stop, log_start, log_transition, posterior, pairs,
            rows[first:stop],
        )  # fmt: skip
    if not np.isfinite(rows).all():
        raise ValueError("the data are impossible under the model's transitions.")
    if rows_only or whole:
        return Expected(rows, posterior, pairs)
    pairs = np.zeros((s, s))
    law, missed = stationary_law(transition), np.zeros(n, dtype=bool)
    careful = ahead.careful or bool(law.min() < _IMPOSSIBLE)
    _core.windows(
        density, starts, start, law, transition, careful, window, posterior, pairs,
        missed,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        log_law = np.log(law)
    for i in np.flatnonzero(missed):
        q = np.searchsorted(starts, i, side="right") - 1
        first, stop = starts[q], starts[q + 1]
        low, high = max(first, i - window), min(stop, i + window + 1)
        found, pair = _one_window(
            log_density[low:high], i - low, log_start if low == first else log_law,
            log_transition,
        )  # fmt: skip
        posterior[i] = found
        if i > first:
            pairs += pair
    return Expected(rows, posterior, pairs)


def filtering(log_density, starts, start, transition):
    """Return the states' probabilities given the rows of their sequence so far.

    Parameters
    ----------
    log_density : ndarray of shape (n, s)
    starts : ndarray of int of shape (n_sequences + 1,)
    start : ndarray of shape (s,)
    transition : ndarray of shape (s, s)
    """
    ahead = Forward(log_density, starts, start, transition)
    filtered = ahead.filtered
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(ahead.start), np.log(ahead.transition)
    for q in ahead.failed:
        law = log_start
        for i in range(starts[q], starts[q + 1]):
            if i > starts[q]:
                law = logsumexp(law[:, None] + log_transition, axis=0)
            law = law + log_density[i]
            law = law - logsumexp(law)
            filtered[i] = np.exp(law)
    if not np.isfinite(filtered).all():
        raise ValueError("the data are impossible under the model's transitions.")
    return filtered


def _one_window(log_density, at, log_start, log_transition):
    """Return posteriors of a row of a window, and of the row before and this one."""
    ahead, before = log_start + log_density[0], None
    for row in log_density[1 : at + 1]:
        before = ahead
        ahead = logsumexp(ahead[:, None] + log_transition, axis=0) + row
    after = np.zeros_like(ahead)
    for row in log_density[:at:-1]:
        after = logsumexp(log_transition + row + after, axis=1)
    total = logsumexp(ahead + after)
    if not np.isfinite(total):
        raise ValueError(
            "the rows of a window are impossible for a window that starts from the "
            "stationary law; use window=None."
        )
    pair = 0.0
    if before is not None:
        pair = np.exp(
            before[:, None] + log_transition + log_density[at] + after - total
        )
    return np.exp(ahead + after - total), pair


def maximise(chain, rows, starts, found, options):
    """Run the M-step.

    Parameters
    ----------
    chain : Chain
        The parameters before.
    rows : Rows
    starts : ndarray of int
    found : Expected
    options : Options

    Returns
    -------
    chain : Chain
    """
    total = found.pairs.sum(axis=1, keepdims=True)
    visited = total > 1e-300
    transition = np.where(
        visited, found.pairs / np.where(visited, total, 1.0), chain.transition
    )
    means, covariances = _emissions.fit_gaussians(
        rows, found.posterior, (chain.means, chain.covariances),
        options.covariance_type, options.reg_covar,
    )  # fmt: skip
    if options.startprob == "stationary":
        start = stationary_law(transition)
    else:
        start = found.posterior[starts[:-1]].mean(axis=0)
        start = start / start.sum()
    return Chain(start, transition, means, covariances)


@dataclass(frozen=True)
class Options:
    """The estimator's parameters that EM reads."""

    covariance_type: str
    startprob: str
    window: int | None
    reg_covar: np.ndarray
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Run:
    """One run of EM.

    Attributes
    ----------
    model : Chain or Symmetric
    history : list of float
        Log-likelihoods of the iterates.
    changes : list of float
        Distances between iterates.
    converged : bool
    was_empty : bool
        Whether a state lost all its rows on the way.
    """

    model: object
    history: list
    changes: list
    converged: bool
    was_empty: bool = False


def iterate(
    model, expect, update, distance, n_rows, max_iter, tol, *, visit=None
) -> Run:
    """Alternate E- and M-steps until a row gains less than `tol`.

    Parameters
    ----------
    model : Chain or Symmetric
    expect : callable
        ``expect(model)`` returns what was found and the total log-likelihood.
    update : callable
        ``update(model, found)`` returns the next model.
    distance : callable
        ``distance(model, other)`` of two models.
    n_rows, max_iter : int
    tol : float
    visit : callable or None
        Called with every model.
    """
    found, value = expect(model)
    history, changes, converged = [value], [], False
    if visit is not None:
        visit(model)
    for _ in range(max_iter):
        new = update(model, found)
        changes.append(distance(new, model))
        model = new
        if visit is not None:
            visit(model)
        found, value = expect(model)
        history.append(value)
        if abs(history[-1] - history[-2]) < tol * n_rows:
            converged = True
            break
    return Run(model, history, changes, converged)


def fit_chain(chain, rows, starts, options, *, visit=None) -> Run:
    """Run EM of the general model."""
    empty = []

    def expect(chain):
        log_density = _emissions.log_densities(
            rows, chain.means, chain.covariances, options.covariance_type
        )
        found = expectation(
            log_density, starts, chain.start, chain.transition, window=options.window
        )
        return found, float(found.rows.sum())

    def update(chain, found):
        empty.append(len(_emissions.empty_states(found.posterior)) > 0)
        return maximise(chain, rows, starts, found, options)

    deviation = rows.values.std(axis=0)
    unit = np.where(deviation > 0.0, deviation, 1.0)
    run = iterate(
        chain, expect, update, lambda new, old: new.distance(old, unit), len(rows),
        options.max_iter, options.tol, visit=visit,
    )  # fmt: skip
    return replace(run, was_empty=any(empty))
