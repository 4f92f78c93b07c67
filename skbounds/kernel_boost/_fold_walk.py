"""The path of a loss and those without folds of rows, followed together.

The path is stopped where the loss on the rows that were left out is least. That of all
rows is then there as well: nothing is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbounds.kernel_boost import _class_stopping
from skbounds.kernel_boost._descent import iterate
from skbounds.kernel_boost._flow import Flow, Stage
from skbounds.kernel_boost._flow_path import check_growth
from skbounds.kernel_boost._fold_paths import (
    NEGLIGIBLE_EIGENVALUE,
    FoldFits,
    eigenvectors,
    entries,
)

# The longest time of a path.
LONGEST_FOLDED = 1e10
# Steps grow by a factor that depends on how fast the curvature changes with the
# logarithm of time to base 2.
_FACTORS = ((0.2, 2.0), (0.7, 2.0**0.5), (np.inf, 2.0**0.25))
# The path is followed to so many times the best time, and while the loss is at most so
# many times the least one.
_BEYOND, _MARGIN = 16.0, 1.01
# Components with less than exp(-30) left to learn are not waited for, nor losses below
# this share of that at the start.
_LEARNT, _NOTHING = 30.0, 1e-7
# Up to so many rows the folds have half of the coordinates, the leading ones of all
# rows, but not fewer nor more than these: products with their own eigenvectors are what
# takes most of the time. On nine sets of 1500 to 4000 rows the loss is the same as with
# 512, in 70 % of the time, on ten of 160 to 460 rows as with 256, in 85 %.
_FEW_ROWS, _FEWEST, _MOST = 4000, 128, 256
# So many coordinates are there at first, and more once some may have learnt this share.
_FIRST, _UNLEARNT = 64, 1e-3
# Differences of losses that are rounding, as shares of them.
_ROUNDING = 1e-13
# Products with features of so many numbers are in single precision.
_MANY = 5e6


@dataclass(frozen=True)
class FoldedPath:
    """What was found on the way.

    Attributes
    ----------
    stages : list of Stage
        Of all rows, without values.
    path : ndarray of shape (n_times, 5)
        Times, losses on rows that were left out, degrees of freedom, training losses,
        and what is added to the losses on rows left out.
    chosen : int
    is_unfinished : bool
        Whether the loss was still falling at the longest time.
    fits : FoldFits or None
        At the chosen time, where they were asked for.
    """

    stages: list
    path: np.ndarray
    chosen: int
    is_unfinished: bool
    fits: FoldFits | None


class JointPaths:
    """The flows of all rows and of those without each fold, in growing coordinates.

    Coordinates of which nothing has been learnt yet are left out: early steps take a
    few of them, and paths that are stopped early never see the others. Paths of many
    rows are followed in features of the factor instead, which are known.

    Parameters
    ----------
    problem : ClassProblem or LossProblem
    basis : Basis
    folds : Folds
    grows : bool
        Whether coordinates may be left out; plain steps take all.

    Attributes
    ----------
    flows : list of Flow
        One where all paths share their features; two where the folds have fewer. The
        last one has the folds' paths at its end.
    stages : list of Stage
    """

    def __init__(self, problem, basis, folds, *, grows):
        self.problem, self.basis, self.folds = problem, basis, folds
        share, total = problem.share_of_rows, problem.weight.sum()
        self.weight = np.repeat(share[:, None], len(folds), axis=1)
        self.held = [held / total for held in folds.held]
        self.offsets = []
        for k, (rows, held) in enumerate(zip(folds.rows, self.held, strict=True)):
            column = self.weight[:, k]
            column[rows] -= held
            # Differences of shares that are the same but for rounding.
            column[column < 1e-15 * share] = 0.0
            self.offsets.append(problem.start(column * total))
        n = len(share)
        mu = basis.eigenvalues
        self.most = int((mu > NEGLIGIBLE_EIGENVALUE * mu.max(initial=0.0)).sum())
        self.grows = grows and n <= _FEW_ROWS
        self.fewest = self.size = self.most
        if self.grows:
            half = int(np.clip(self.most // 2, _FEWEST, _MOST))
            self.fewest = min(self.most, half)
            self._psi = basis.coordinates(self.most)
            self.size = min(_FIRST, self.most)
        self._known = {}
        self.flows = self._make()
        self.stages = [flow.start() for flow in self.flows]

        self._out = np.concatenate(folds.rows)
        sizes = [len(rows) for rows in folds.rows]
        self._number = np.repeat(np.arange(len(folds)), sizes)
        held = np.concatenate(folds.held)
        self._held = held / held.sum()
        self.floor = problem.loss.floor(problem.targets[self._out], self._held)

    def judge(self):
        """Return the mean loss on the rows left out, and what is added to it."""
        loss, y = self.problem.loss, self.problem.targets[self._out]
        first = self.flows[-1].n_paths - len(self.folds)
        left_out = self.stages[-1].values[self._out, first + self._number]
        score = float(loss.deviance(y, left_out, self._held))
        return score, self.problem.penalty(lambda: loss.doubt(left_out, self._held))

    def _make(self):
        problem, raw = self.problem, self.basis.raw
        mu = self.basis.eigenvalues[: self.size]
        if self.grows:
            features, vectors = self._psi[:, : self.size], None
            own = features[:, : self.fewest]
            gram = np.diag(mu[: self.fewest])
        else:
            features = own = raw.rows(slice(None))
            vectors, gram = raw.vectors, raw.gram
            mu = self.basis.eigenvalues
        if len(gram) not in self._known:
            self._known = {len(gram): self._eigenvectors(own, gram)}
        parts = self._known[len(gram)]
        if features.size >= _MANY:
            features = own = features.astype(np.float32)
        loss, y, whole = problem.loss, problem.targets, [problem.offset]
        share = problem.share_of_rows[:, None]
        mus, turns = [mu for mu, _ in parts], [V for _, V in parts]
        if own.shape[1] < features.shape[1]:
            return [
                Flow(loss, features, [vectors], [mu], y, share, whole),
                Flow(loss, own, turns, mus, y, self.weight, self.offsets),
            ]
        weight = np.column_stack([share, self.weight])
        offsets = whole + self.offsets
        return [Flow(loss, features, [vectors, *turns], [mu, *mus], y, weight, offsets)]

    def _eigenvectors(self, features, gram):
        """Return those of the folds' paths."""
        found = []
        for rows, held in zip(self.folds.rows, self.held, strict=True):
            F = features[rows]
            found.append(eigenvectors(gram - F.T @ (F * held[:, None])))
        return found

    def advance(self, step):
        """Take a step on all paths."""
        first = self.stages[0]
        if self.grows and self.size < self.most:
            reach = first.exposure[0] + step * first.curvature[0]
            needed = int((self.basis.eigenvalues * reach > _UNLEARNT).sum())
            if needed > self.size:
                self._extend(min(max(2 * self.size, needed + needed // 2), self.most))
        self.stages = [
            flow.advance(stage, step)
            for flow, stage in zip(self.flows, self.stages, strict=True)
        ]

    def _extend(self, size):
        """Take more coordinates, in which the functions are what they were."""
        before = [
            flow.coefficients(stage.theta)
            for flow, stage in zip(self.flows, self.stages, strict=True)
        ]
        old, self.size = self.stages, size
        self.flows = self._make()
        if len(self.flows) > len(before):
            # The folds get a flow of their own.
            before = [before[0][:, :1], before[0][:, 1:]]
            old = [old[0].some(slice(0, 1)), old[0].some(slice(1, None))]
        self.stages = [
            replace(stage, theta=flow.turned(coefficients))
            for flow, stage, coefficients in zip(self.flows, old, before, strict=True)
        ]

    def fold_fits(self, flow, theta):
        """Return the functions without the folds at coordinates of a flow."""
        y, first = self.problem.targets, flow.n_paths - len(self.folds)
        coefficients = flow.coefficients(theta)[:, first:, 0]
        raw = self.basis.raw
        if self.grows:
            raw = self.basis.leading(len(coefficients))
        values = flow.values(theta)
        residuals = [
            y[own] - values[own, first + k] for k, own in enumerate(self.folds.rows)
        ]
        return FoldFits(
            raw.to_dual(coefficients),
            flow.offset[first:],
            *entries(self.folds, residuals),
        )


def walk_folds(joint, basis, step_size, options, *, keep=False):
    """Follow all paths until the loss on the rows left out has passed its minimum.

    Parameters
    ----------
    joint : JointPaths or ChunkedPaths
    basis : Basis
    step_size : float
    options : PathOptions
    keep : bool
        Whether the functions without the folds are wanted.

    Returns
    -------
    found : FoldedPath
    """
    problem, floor = joint.problem, joint.floor
    r = len(basis.eigenvalues)
    least = basis.eigenvalues[-1] if r else np.inf
    walk = _plain_walk if options.plain else _flow_walk
    start = sum(joint.judge()) - floor
    rows, stages, kept = [], [], []
    best, best_at = np.inf, 0
    for time in walk(joint, step_size, options):
        (score, penalty), stage = joint.judge(), joint.stages[0].path(0)
        df = _class_stopping.running_df(
            basis.eigenvalues, stage.exposure, problem.n_free
        )
        inside = float(problem.mean(stage.values))
        rows.append((time, score, df, inside, penalty))
        score += penalty
        theta = np.zeros((r, *stage.theta.shape[1:]))
        theta[: min(r, len(stage.theta))] = stage.theta[:r]
        stages.append(replace(stage, theta=theta, values=None))
        if keep:
            kept.append((joint.flows[-1], joint.stages[-1].theta))
        # Not by rounding: a plateau has a first time.
        if not np.isfinite(best) or score < best - _ROUNDING * abs(best):
            best, best_at = score, len(rows) - 1
        worse = score - floor > _MARGIN * (best - floor)
        if worse and time >= _BEYOND * rows[best_at][0]:
            break
        if least * stage.exposure > _LEARNT or best - floor <= _NOTHING * start:
            break
    path = np.array(rows)
    last = len(rows) - 1
    unfinished = best_at == last > 0 and path[-1, 0] >= options.limit
    if unfinished:
        gain = path[-2, [1, 4]].sum() - path[-1, [1, 4]].sum()
        unfinished = gain > (_MARGIN - 1.0) * (best - floor)
    fits = joint.fold_fits(*kept[best_at]) if keep else None
    return FoldedPath(stages, path, best_at, bool(unfinished), fits)


def _flow_walk(joint, step_size, options):
    """Yield times, the closer where the curvature changes."""
    time = before = 0.0
    factor = 1.0
    while time < options.limit:
        before, time = time, min(max(time + 1.0, round(time * factor)), options.limit)
        bend = _bend(joint)
        joint.advance(step_size * (time - before))
        yield time
        rate = 1.0
        if before > 0.0:
            rate = abs(np.log(_bend(joint) / bend)) / np.log2(time / before)
        factor = next(factor for limit, factor in _FACTORS if rate < limit)


def _bend(joint):
    """Return the curvature of the risk itself on the path of all rows."""
    stage = joint.stages[0]
    bend = float(stage.curvature[0] / joint.problem.loss.stretch(stage.risk)[0])
    return max(bend, 1e-300)


def _plain_walk(joint, step_size, options):
    """Yield times of the plain iteration."""
    (flow,), (stage,) = joint.flows, joint.stages
    loss, y, w = flow.loss, flow.y, flow.weight
    times = options.plain_times()
    start = stage.risk[0]
    steps = iterate(
        lambda values: step_size * flow.gradient(values),
        flow.values,
        lambda slopes: slopes,
        stage.theta.shape,
        times,
        average=options.average,
    )
    exposure, plain, before = stage.exposure, stage.plain, 0.0
    for time, (theta, values) in zip(times, steps, strict=True):
        risk = loss.risk(y, values, w)
        check_growth(risk[0], start, step_size, flow.mu[0, 0, 0], stage.curvature[0])
        m = loss.curvature(y, values, w)
        eta = step_size * (time - before)
        before = time
        exposure = exposure + eta * m
        plain = plain + eta * loss.stretch(risk)
        joint.stages = [Stage(theta, values, risk, exposure, plain, m)]
        yield time
