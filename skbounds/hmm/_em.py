"""Expectation maximisation of hidden Markov models."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from joblib.parallel import ThreadingBackend, get_active_backend
from scipy.special import logsumexp
from sklearn.utils.parallel import Parallel, delayed

from skbounds._callbacks import current_task
from skbounds._core import hmm as _core
from skbounds.hmm import _transitions
from skbounds.hmm._mixing import remaining_gain, stationary_law

# Probabilities below may be the only way to a state, and vanish on it.
_IMPOSSIBLE = 1e-100
# A density that is not 0, but may be missed.
_LEAST_DENSITY = 1e-305
# Sums of probabilities that are further than this from 1 say nothing.
_LOST = 1e-3
# Rows of a group of sequences, at least: the unit of parallel work, and of sums.
_GROUP_ROWS = 32768
# Gain of log-likelihood that may be left, in nats: a tenth of a standard error.
ENOUGH = 0.005
# Gains that are looked at for that: larger ones may slow down for a while only.
_SMALL_GAIN = 1e-4


@dataclass(frozen=True)
class Chain:
    """Parameters of the general model.

    Attributes
    ----------
    start : ndarray of shape (s,)
    transition : ndarray of shape (s, s)
    law : dict
        Of the outputs, see `skbounds.hmm._emissions`.
    """

    start: np.ndarray
    transition: np.ndarray
    law: dict


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
        # Of the start law nothing is missed that the next transitions do not make up.
        self.careful = bool(self.transition.min() < _IMPOSSIBLE)
        self.density, self.top = np.empty(log_density.shape), np.empty(len(log_density))
        _core.subtract_largest(log_density, self.density, self.top)
        # Of a sum, which is not finite if one is not.
        if not np.isfinite(self.top.sum()):
            raise ValueError(
                "the density of a row is 0 or infinite for all states: the data are "
                "too far from the model (means and covariances) for double precision."
            )
        np.exp(self.density, out=self.density)
        if self.careful:
            # Zeros are what cannot be; what has underflowed can.
            np.maximum(self.density, _LEAST_DENSITY, out=self.density)
            self.density[np.isneginf(log_density)] = 0.0
        self.filtered, self.scale = np.empty_like(self.density), np.ones(len(self.top))
        any_failed = _core.forward(
            self.density, starts, self.start, self.transition, self.careful,
            self.filtered, self.scale,
        )  # fmt: skip
        self.failed = np.arange(0)
        if any_failed:
            self.failed = np.flatnonzero(self.scale[starts[:-1]] == 0.0)

    def logarithms(self):
        """Return log p(x_t | x_<t), but for the sequences that have failed."""
        if not len(self.failed):
            rows = np.log(self.scale)
        else:
            with np.errstate(divide="ignore"):
                rows = np.log(self.scale)
        rows += self.top
        return rows


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
    whole = window is None or window >= np.diff(starts).max() - 1
    if not rows_only and whole:
        _core.backward(
            density, starts, transition, ahead.filtered, ahead.scale, posterior, pairs
        )
        pairs *= transition
    if len(ahead.failed) or not whole:
        with np.errstate(divide="ignore"):
            log_start, log_transition = np.log(start), np.log(transition)
    rows = ahead.logarithms()
    for q in ahead.failed:
        first, stop = starts[q], starts[q + 1]
        _core.log_pass(
            log_density, first, stop, log_start, log_transition, posterior, pairs,
            rows[first:stop],
        )  # fmt: skip
        if not rows_only:
            _normalise(posterior[first:stop])
    if len(ahead.failed) and not np.isfinite(rows).all():
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


def _normalise(posterior):
    """Divide probabilities of differences of large logarithms by their sums."""
    sums = posterior.sum(axis=1, keepdims=True)
    # Where the data are impossible they are nan, which others tell.
    if (np.abs(sums - 1.0) >= _LOST).any():
        raise ValueError(
            "the data are too far from the model (means and covariances) for double "
            "precision: differences of log densities are rounding."
        )
    posterior /= sums


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
            total = logsumexp(law)
            if total == -np.inf:
                raise ValueError(
                    "the data are impossible under the model's transitions."
                )
            law = law - total
            filtered[i] = np.exp(law)
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


class Group(NamedTuple):
    """Whole sequences, to be done in one piece."""

    rows: object
    starts: np.ndarray
    states: np.ndarray | None


class Sums(NamedTuple):
    """What the E-step of groups leaves for the M-step.

    Attributes
    ----------
    log_likelihood : float
    first : ndarray of shape (s,)
        Expected numbers of sequences that start in a state.
    weight : ndarray of shape (s,)
        Expected numbers of rows.
    pairs : ndarray of shape (s, s)
        Expected numbers of transitions.
    outputs : tuple of ndarray
        See ``collect`` of the outputs.
    """

    log_likelihood: float
    first: np.ndarray
    weight: np.ndarray
    pairs: np.ndarray
    outputs: tuple

    def plus(self, other):
        """Return the sums of both."""
        outputs = tuple(a + b for a, b in zip(self.outputs, other.outputs, strict=True))
        return Sums(*(a + b for a, b in zip(self[:4], other[:4], strict=True)), outputs)


def make_groups(X, starts, family, states=None, pool=None):
    """Return sequences in groups, which depend on nothing but their lengths."""
    cuts, n_sequences = [0], len(starts) - 1
    while cuts[-1] < n_sequences:
        first = cuts[-1]
        stop = int(np.searchsorted(starts, starts[first] + _GROUP_ROWS))
        cuts.append(min(max(stop, first + 1), n_sequences))
    parts = [X[starts[first] : starts[stop]] for first, stop in pairwise(cuts)]
    prepare = pool.map if isinstance(pool, ThreadPoolExecutor) else map
    groups = []
    for (first, stop), rows in zip(
        pairwise(cuts), prepare(family.prepare, parts), strict=True
    ):
        low, high = starts[first], starts[stop]
        own = None if states is None else states[low:high]
        if own is not None and (own < 0).all():
            own = None
        groups.append(Group(rows, starts[first : stop + 1] - low, own))
    return groups


def know(log_density, states):
    """Make the other states of rows whose state is known impossible, in place."""
    known = np.flatnonzero(states >= 0)
    own = log_density[known, states[known]]
    log_density[known] = -np.inf
    log_density[known, states[known]] = own
    return log_density


def group_log_densities(chain, family, group):
    """Return log p(x_i | state j) of a group, -inf where states are known others."""
    log_density = family.log_densities(group.rows, chain.law)
    return log_density if group.states is None else know(log_density, group.states)


def group_sums(chain, family, group, reference, window):
    """Run the E-step for a group of sequences."""
    if window is None and group.states is None:
        fast = linear_sums(chain, family, group, reference)
        if fast is not None:
            return fast
    found = expectation(
        group_log_densities(chain, family, group),
        group.starts,
        chain.start,
        chain.transition,
        window=window,
    )
    return Sums(
        float(found.rows.sum()),
        found.posterior[group.starts[:-1]].sum(axis=0),
        found.posterior.sum(axis=0),
        found.pairs,
        family.collect(group.rows, found.posterior, chain.law, reference),
    )


def linear_sums(chain, family, group, reference):
    """Run the E-step in one native call, or return None where that is not for it."""
    linear = family.linear(group.rows, chain.law, reference)
    if linear is None or chain.transition.min() < _IMPOSSIBLE:
        return None
    columns, weights, constant, base = linear
    s = len(constant)
    first, size = np.zeros(s), np.zeros(s)
    pairs, sums = np.zeros((s, s)), np.zeros((s, columns.shape[1]))
    value = _core.linear_step(
        columns, group.starts, chain.start, chain.transition, weights, constant, first,
        size, pairs, sums,
    )  # fmt: skip
    if not value > -np.inf:
        return None
    return Sums(value + base, first, size, pairs, family.from_columns(size, sums))


def _several(chain, family, groups, reference, window):
    return [group_sums(chain, family, group, reference, window) for group in groups]


class Distributor:
    """Runs the E-step over groups: here, in threads, or where joblib's backend is.

    Sums are added in the order of the groups, so that results do not depend on how
    many workers there are.

    Parameters
    ----------
    pool : ThreadPoolExecutor, Parallel or None
    n_workers : int
    """

    def __init__(self, pool=None, n_workers=1):
        self.pool, self.n_workers = pool, n_workers

    def sums(self, chain, family, groups, reference, window):
        """Return the sums over all groups."""
        if self.n_workers == 1 or len(groups) == 1:
            parts = _several(chain, family, groups, reference, window)
        else:
            cuts = np.linspace(0, len(groups), 4 * self.n_workers + 1).astype(int)
            chunks = [groups[a:b] for a, b in pairwise(cuts) if a < b]
            tasks = [(chain, family, chunk, reference, window) for chunk in chunks]
            if isinstance(self.pool, Parallel):
                found = self.pool(delayed(_several)(*task) for task in tasks)
            else:
                found = self.pool.map(lambda task: _several(*task), tasks)
            parts = [part for chunk in found for part in chunk]
        total = parts[0]
        for part in parts[1:]:
            total = total.plus(part)
        return total


def open_pool(n_jobs, n_workers):
    """Return a pool of threads, or joblib's if the user's backend is another one.

    joblib looks for results of threads every 10 ms, which is long for an E-step.
    """
    backend, _ = get_active_backend(prefer="threads")
    if isinstance(backend, ThreadingBackend):
        return ThreadPoolExecutor(n_workers)
    return Parallel(n_jobs=n_jobs)


@dataclass(frozen=True)
class Options:
    """What the steps of EM depend on.

    Attributes
    ----------
    structure : {"free", "reversible"}
    startprob : {"free", "stationary"}
    window : int or None
    pseudo : ndarray of shape (s, s) or None
        Pairs that the prior has seen.
    fixed : frozenset of str
        Parameters that stay as they are.
    unit : ndarray of shape (d,)
        Standard deviations of the columns.
    """

    structure: str = "free"
    startprob: str = "free"
    window: int | None = None
    pseudo: np.ndarray | None = None
    fixed: frozenset = frozenset()
    unit: np.ndarray | None = None


class GeneralModel:
    """The general model with its data, as `Climb` takes it."""

    def __init__(self, family, groups, options, distributor):
        self.family, self.groups, self.options = family, groups, options
        self.distributor = distributor
        self.n_rows = sum(len(group.rows) for group in groups)
        self.n_sequences = sum(len(group.starts) - 1 for group in groups)

    def expect(self, chain, reference=None):
        """Return the sums of the E-step, and what EM raises."""
        if reference is None:
            reference = self.family.reference(chain.law)
        sums = self.distributor.sums(
            chain, self.family, self.groups, reference, self.options.window
        )
        return (sums, reference), sums.log_likelihood + self.log_prior(chain)

    def log_prior(self, chain):
        """Return the logarithm of the priors, up to constants."""
        value = self.family.log_prior(chain.law)
        pseudo = self.options.pseudo
        if pseudo is not None:
            some = pseudo > 0.0
            value += float(
                pseudo[some] @ np.log(np.maximum(chain.transition[some], 1e-300))
            )
        return value

    def update(self, chain, found):
        """Run the M-step."""
        sums, reference = found
        family, fixed = self.family, self.options.fixed
        law = family.maximise(sums.outputs, chain.law, reference, fixed)
        clearer = family.blurred(sums.outputs, law)
        if clearer is not None and reference is not clearer:
            (again, _), _ = self.expect(chain, clearer)
            law = family.maximise(again.outputs, chain.law, clearer, fixed)
        family.check(law)
        for name in fixed.intersection(law):
            law[name] = chain.law[name]
        transition, start = self.chain_step(chain, sums)
        return Chain(start, transition, law)

    def chain_step(self, chain, sums):
        """Return the transition matrix and start law of greatest likelihood."""
        options = self.options
        transition, pairs = chain.transition, sums.pairs
        if options.pseudo is not None:
            pairs = pairs + options.pseudo
        tied = options.startprob == "stationary"
        if "transmat" not in options.fixed and len(transition) > 1:
            if options.structure == "reversible":
                transition = _transitions.reversible_step(
                    pairs, sums.first if tied else None, transition
                )
            elif tied:
                transition = _transitions.stationary_step(pairs, sums.first, transition)
            else:
                transition = _transitions.free_step(pairs, transition)
        if tied:
            return transition, stationary_law(transition)
        if "startprob" in options.fixed:
            return transition, chain.start
        return transition, sums.first / sums.first.sum()

    def distance(self, new, old):
        """Return how far transitions and outputs are from others."""
        gaps = self.family.distance(new.law, old.law, self.options.unit)
        turns = (new.transition - old.transition).ravel()
        return math.sqrt(gaps.dot(gaps) + turns.dot(turns))

    def lost(self, found):
        """Return whether a state has no rows left."""
        return bool(found[0].weight.min() <= 1e-290)


@dataclass
class Climb:
    """One run of EM, that can be taken up again.

    Attributes
    ----------
    problem : GeneralModel or SymmetricModel
    model : Chain or Symmetric
    visit : callable or None
        Called with each iterate.
    publish : callable or None
        Returns what an estimator would be at an iterate, for callbacks.
    history : list of float
        Log-likelihoods (plus log-priors) of the iterates.
    changes : list of float
        Distances between iterates.
    converged : bool
    was_empty : bool
        Whether a state lost all its rows on the way.
    stopped : bool
        Whether a callback wanted it to stop.
    """

    problem: object
    model: object
    visit: object = None
    publish: object = None
    history: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    converged: bool = False
    was_empty: bool = False
    stopped: bool = False
    _found: object = None

    def run(self, max_iter, tol):
        """Alternate E- and M-steps, `max_iter` in all, until little is to be gained.

        `tol` is the gain of a row at which EM ends, or "auto": EM ends once no more
        than `ENOUGH` nats are left to gain.
        """
        problem = self.problem
        climb = current_task().begin("EM", None)
        if not self.history:
            self._found, value = problem.expect(self.model)
            self.history.append(value)
            if self.visit is not None:
                self.visit(self.model)
        while not (self.converged or self.stopped) and len(self.changes) < max_iter:
            task = climb.begin("iteration")
            self.was_empty |= problem.lost(self._found)
            new = problem.update(self.model, self._found)
            self.changes.append(problem.distance(new, self.model))
            self.model = new
            if self.visit is not None:
                self.visit(new)
            self._found, value = problem.expect(new)
            self.history.append(value)
            gain = abs(self.history[-1] - self.history[-2])
            if tol == "auto":
                self.converged = (
                    gain <= _SMALL_GAIN and remaining_gain(self.history) <= ENOUGH
                )
            else:
                self.converged = gain < tol * problem.n_rows
            self.stopped = task.end(self._attributes)
        climb.end(self._attributes)
        return self

    def _attributes(self):
        return None if self.publish is None else self.publish(self.model)

    @property
    def sums(self):
        """What the E-step found at the model."""
        return self._found
