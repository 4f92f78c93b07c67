"""The path of a loss that is not squared, and where it is stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbounds.kernel_boost import _class_stopping
from skbounds.kernel_boost._descent import iterate
from skbounds.kernel_boost._flow import Flow, Stage
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._stopping import Spectrum

# Times of the path: all up to here, then by a factor.
_EVERY, _FACTOR = 4, 2.0**0.25
# Of the plain iteration, whose steps are taken anyway.
_EVERY_PLAIN = 64
# Components that learn less than this share long after the pilot's stop are left out.
NEGLIGIBLE = 3e-3
# A path is given up after so many times above its least criterion by so much of it.
_PATIENCE, _MARGIN = 6, 0.01
# Components with less than exp(-30) left to learn are not waited for.
_LEARNT = 30.0
# Rows with a label drawn by chance that are added to those left out: of 0, .1, .25, .5
# and 1 the best over 25 sets; for 6 to 20 rows more are better.
_DOUBT, _DOUBT_OF_FEW = 0.25, 10.0
# Times around the least criterion at which leave-one-out is tried.
_AROUND = 3


@dataclass(frozen=True)
class PathOptions:
    """The parameters of the estimators that decide how to walk and when to stop.

    Attributes
    ----------
    loss : str
    stopping : str or None
    df_margin : float
    noise, norm : float or None
    limit : int
        Largest time.
    patience : int
    plain : bool
        Take the steps one by one.
    average : bool
        Of plain steps.
    """

    loss: str
    stopping: str | None
    df_margin: float
    noise: float | None
    norm: float | None
    limit: float
    patience: int
    plain: bool
    average: bool

    def plain_times(self):
        """Return the times at which the plain iteration is looked at."""
        return path_times(self.limit, _EVERY_PLAIN)


class ClassLaw:
    """Mixin: what depends on the classes and their shares only."""

    def constants(self, state, options):
        """Return the curvature, noise, exposure to stop at and norm of the theory."""
        return theory(state, options)

    def penalty(self, doubt):
        """Return what is added to the mean loss on rows left out.

        A share of a row with a label drawn by chance: however many rows without an
        error were left out, the next may be one. Where classes are clean the loss falls
        for ever, and the path follows single rows. Over 25 sets the loss on other rows
        was 1.09 times the best with it and 1.14 times without, for six rows of two
        classes 1.1 times and 1.44.

        Parameters
        ----------
        doubt : callable
            Returns the mean loss on them for labels drawn by chance.
        """
        n = self.n_units
        share = (_DOUBT + _DOUBT_OF_FEW / n) / n
        return share * float(doubt())

    def constant_of(self, shares, total):
        """Return the best constant for the classes' shares, not too small ones."""
        least = 1.0 / (total + 2.0)
        clipped = np.clip(shares, least, 1.0 - least)
        return self.loss.start(clipped) * float(self.with_offset)

    def working_scale(self, share, curvature):
        """Return what the response is to be multiplied by: -phi'(y, offset) / m.

        phi' at the offset is (p - [y = 1]) for log losses, and that divided by
        sqrt(p (1 - p)) for the exponential one.
        """
        scale = 1.0
        if self.loss.link == 2.0:
            scale = 1.0 / np.sqrt(share * (1.0 - share))
        return scale / curvature


class RowsInMemory:
    """Mixin: what a loss says of rows with targets and weights."""

    @property
    def share_of_rows(self):
        return self.weight / self.weight.sum()

    @cached_property
    def offset(self):
        return self.start(self.weight)

    @property
    def n_samples(self):
        return self.weight.sum()

    def mean(self, values):
        """Return the mean loss at function values."""
        return self.loss.mean(self.targets, values, self.share_of_rows)

    def deviance(self, values):
        """Return the mean of what predictions are judged by."""
        return self.loss.deviance(self.targets, values, self.share_of_rows)


@dataclass(frozen=True)
class ClassProblem(RowsInMemory, ClassLaw):
    """Rows and classes to fit.

    Attributes
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n,) or (n, K)
        -1 and 1, or indicators.
    weight : ndarray of shape (n,)
    loss : class of `_losses`
    with_offset : bool
        Whether to start from the best constant.
    folds : Folds or None
    """

    X: object
    targets: np.ndarray
    weight: np.ndarray
    loss: type
    with_offset: bool
    folds: object = None

    @property
    def n_units(self):
        return self.folds.n_units

    @property
    def n_free(self):
        """The number of functions, of which several have sum zero."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1] - 1

    @cached_property
    def share(self):
        """The shares of the classes."""
        return self._shares(self.weight)

    def _shares(self, weight):
        share = weight @ (self.targets > 0.0) / weight.sum()
        return share if self.targets.ndim == 2 else np.array([1.0 - share, share])

    def start(self, weight):
        """Return the best constant for weights, of shares that are not too small."""
        return self.constant_of(self._shares(weight), weight.sum())

    def response(self):
        """Return indicators of the classes minus their shares, (n, 1) or (n, K)."""
        if self.targets.ndim == 2:
            return (self.targets > 0.0) - self.share
        return (0.5 * (self.targets + 1.0) - self.share[1])[:, None]


@dataclass(frozen=True)
class LossProblem(RowsInMemory):
    """Rows and numbers to fit, with a loss that is not squared.

    Attributes
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    loss : of `_losses`
    with_offset : bool
        Whether to start from the best constant.
    pilot : ndarray of shape (n, 1)
        Centred targets for the squared loss, which tell the rank.
    folds : Folds or None
    """

    X: object
    targets: np.ndarray
    weight: np.ndarray
    loss: object
    with_offset: bool
    pilot: np.ndarray
    folds: object = None

    n_free = 1

    def start(self, weight):
        """Return the best constant for weights."""
        if not self.with_offset:
            return 0.0
        kept = weight > 0.0
        return self.loss.start(self.targets[kept], weight[kept])

    def penalty(self, doubt):
        """Return that nothing is added to the mean loss on rows left out."""
        return 0.0

    def response(self):
        return self.pilot

    def constants(self, state, options):
        """Return a curvature of 1, and that no noise is known nor a time to stop."""
        return 1.0, np.nan, np.inf, None


@dataclass
class Coordinates:
    """A problem in coordinates."""

    problem: object
    basis: object
    mu: np.ndarray
    step: float
    spectrum: Spectrum
    held_out: tuple | None
    rows: Rows

    @cached_property
    def psi(self):
        return self.basis.coordinates(len(self.mu))

    def flow(self):
        """Return the flow of the one path."""
        problem, offset = self.problem, np.array([self.problem.offset])
        share = problem.share_of_rows[:, None]
        return Flow(
            problem.loss, self.psi, [None], [self.mu], problem.targets, share, offset
        )

    @cached_property
    def features(self):
        """Coordinates of the validation rows."""
        K = self.rows.to_others(self.held_out[0], self.basis.landmarks)
        return K @ self.basis.modes[:, : len(self.mu)]

    def leave_one_out(self, stage, *, mean_curvature):
        """Return the approximate leave-one-out loss at a stage."""
        problem, f = self.problem, stage.values
        if f is None:
            f = problem.offset + self.psi @ stage.theta
        return _class_stopping.leave_one_out(
            problem.loss, self.psi, self.mu, problem.targets, f, stage,
            problem.share_of_rows, problem.weight.sum(),
            mean_curvature=mean_curvature,
        )  # fmt: skip


@dataclass(frozen=True)
class Walked:
    """A path that was walked, and where it is stopped."""

    state: Coordinates
    path: np.ndarray
    chosen: int
    stages: list
    curvature: float
    noise: float
    norm: float | None
    has_criterion: bool
    shown: np.ndarray | None = None
    is_unfinished: bool = False
    fits: object = None

    @property
    def stage(self):
        return self.stages[self.chosen]

    def values(self):
        """Return the function's values at the rows."""
        return self.state.problem.offset + self.state.psi @ self.stage.theta

    def neglects(self):
        """Tell whether coordinates were left out that have learnt something by now."""
        beyond = self.state.basis.eigenvalues[len(self.state.mu) :]
        return bool((beyond * self.stage.exposure > NEGLIGIBLE).any())

    @property
    def missing_df(self):
        """Upper bound of the degrees of freedom that are not in the coordinates."""
        basis = self.state.basis
        beyond = basis.eigenvalues[len(self.state.mu) :].sum() + basis.residual_trace
        return float(self.state.problem.n_free * self.stage.exposure * beyond)


def walk(state, options, fixed=None) -> Walked:
    """Walk along the path, and stop it.

    Parameters
    ----------
    state : Coordinates
    options : PathOptions
    fixed : float or None
        Learning time to stop at, instead of by the rule.
    """
    problem = state.problem
    loss, n = problem.loss, problem.n_samples
    plain = options.plain
    longest = options.limit
    rule = None if fixed is not None else options.stopping
    if fixed is not None:
        longest = min(max(1, round(fixed / state.step)), longest)
    m, noise, target, norm = problem.constants(state, options)
    if rule == "theory" and loss.stretch(1.0) == 1.0:
        # The length of the steps is known beforehand.
        rule = None
        longest = min(longest, max(1.0, np.floor(target / (m * state.step))))
    times = path_times(longest, _EVERY_PLAIN if plain else _EVERY)
    rows, passed = [], []
    best, best_at = np.inf, 0
    for k, stage in enumerate(stages(state, times, options)):
        df = _class_stopping.running_df(state.mu, stage.exposure, problem.n_free)
        if rule == "validation":
            _, y_val, weight = state.held_out
            values = problem.offset + state.features @ stage.theta
            criterion = loss.deviance(y_val, values, weight / weight.sum())
        elif rule == "alo":
            criterion = state.leave_one_out(stage, mean_curvature=False)
        else:
            criterion = _class_stopping.aic(
                problem.deviance(stage.values), df, n, options.df_margin
            )
        # Values are long, and easily found again.
        passed.append(replace(stage, values=None))
        rows.append((times[k], criterion, df, problem.mean(stage.values)))
        if criterion < best:
            best, best_at = criterion, k
        if rule is None:
            continue
        if rule == "theory":
            if m * stage.plain >= target:
                first = times[k - 1] if k else 0.0
                early = passed[k - 1].plain if k else 0.0
                share = (target / m - early) / (stage.plain - early)
                time = max(1.0, np.floor(first + share * (times[k] - first)))
                return walk(state, options, time * state.step)
            continue
        patience = _PATIENCE
        if rule == "validation":
            patience = options.patience
        late = k - best_at >= patience
        if late and (rule == "validation" or criterion > best * (1.0 + _MARGIN)):
            break
        # All is learnt.
        if state.mu.min(initial=np.inf) * stage.exposure > _LEARNT:
            break
    last = len(rows) - 1
    chosen = last if rule in (None, "theory") else best_at
    path = np.array(rows)
    if rule == "auto":
        around = range(max(chosen - _AROUND, 0), min(chosen + _AROUND, last) + 1)
        scores = {
            k: state.leave_one_out(passed[k], mean_curvature=True) for k in around
        }
        chosen = min(scores, key=scores.__getitem__)
    return Walked(
        state,
        path,
        chosen,
        passed,
        m,
        noise,
        norm,
        has_criterion=options.stopping not in (None, "theory"),
    )


def stages(state, times, options):
    """Yield the stages at some times, by the flow or by plain steps."""
    if not options.plain:
        flow = state.flow()
        # Whatever the last time is, the flow is followed at the same ones.
        beyond = path_times(np.inf, _EVERY, after=times[-1])
        before, reached = flow.start(), 0.0
        for time, stage in zip(beyond, flow.run(state.step * beyond), strict=True):
            if time > times[-1]:
                share = (times[-1] - reached) / (time - reached)
                yield flow.between(before, stage, share).path(0)
            else:
                yield stage.path(0)
            before, reached = stage, time
        return
    problem, psi = state.problem, state.psi
    loss, y, p = problem.loss, problem.targets, problem.share_of_rows
    exposure = plain = 0.0
    before = 0.0
    constant = np.broadcast_to(problem.offset, y.shape)
    start, curvature = loss.risk(y, constant, p), loss.curvature(y, constant, p)
    steps = plain_steps(
        loss, psi, y, p, problem.offset, state.step, times, average=options.average
    )
    for time, (theta, values) in zip(times, steps, strict=False):
        risk = loss.risk(y, values, p)
        check_growth(risk, start, state.step, state.mu[0], curvature)
        eta = state.step * (time - before)
        before = time
        exposure += eta * loss.curvature(y, values, p)
        plain += eta * loss.stretch(risk)
        yield Stage(theta, values, risk, exposure, plain)


def check_growth(risk, start, step_size, largest, curvature):
    """Refuse steps at which the risk grows without limit."""
    if not np.isfinite(risk) or risk - start > 1e3 * max(abs(start), 1.0):
        raise ValueError(
            f"steps of {step_size:g} are too large for a loss without a largest "
            f"curvature: the risk grew beyond its start {start:.3g}. Steps below "
            f"{2.0 / (largest * curvature):.6g} are stable at the start; give a "
            "smaller step_size or learning_rate, or neither of step_size, solver='gd' "
            "and average=True: the flow takes no steps."
        )


def theory(state, options):
    """Return the curvature, the noise, the exposure at which to stop and the norm.

    The last two are for ``stopping="theory"``.
    """
    problem = state.problem
    found = []
    shares = problem.share if len(problem.share) > 2 else problem.share[1:]
    for k, share in enumerate(shares):
        m, noise = _class_stopping.class_constants(options.loss, share)
        noise = noise if options.noise is None else float(options.noise)
        if options.stopping != "theory":
            found.append((m, noise, np.inf, None))
            continue
        norm = options.norm
        if norm is None:
            norm = _class_stopping.working_norm(
                state.spectrum.scaled(k, problem.working_scale(share, m)), noise
            )
        target = _class_stopping.theory_exposure(
            state.basis.eigenvalues, noise, norm, problem.n_samples
        )
        found.append((m, noise, target, norm))
    # The class that takes longest decides.
    return max(found, key=lambda item: item[2] / item[0])


def plain_steps(loss, psi, y, share, offset, step_size, times, *, average):
    """Return the coordinates and values after some numbers of plain steps."""
    return iterate(
        lambda values: step_size * loss.pull(y, values, share),
        lambda theta: offset + psi @ theta,
        lambda slopes: psi.T @ slopes,
        (psi.shape[1], *y.shape[1:]),
        times,
        average=average,
    )


def path_times(longest, every, after=None):
    """Return the times of a path; those up to a time do not depend on the longest.

    Parameters
    ----------
    longest : float
        The last time; inf for the first of the path that is not before `after`.
    every : int
        All times up to here are among them.
    after : float or None
    """
    end = max(after if after is not None else longest, every)
    n_steps = int(np.ceil(np.log(end / every) / np.log(_FACTOR))) + 1
    later = np.round(every * _FACTOR ** np.arange(n_steps + 1))
    times = np.unique(np.r_[np.arange(1.0, every + 1.0), later])
    if after is not None:
        return times[: np.searchsorted(times, after) + 1]
    return np.append(times[times < longest], float(longest))
