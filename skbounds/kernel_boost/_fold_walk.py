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
_LEARNT, _NOTHING = 30.0, 1e-8
# Up to so many rows the folds have so many coordinates, the leading ones of all rows:
# products with their own eigenvectors are what takes most of the time.
_FEW_ROWS, _FEW_COORDINATES = 500, 256
# Products with features of so many numbers are in single precision.
_MANY = 5e6


@dataclass(frozen=True)
class FoldedPath:
    """What was found on the way.

    Attributes
    ----------
    stages : list of Stage
        Of all rows, without values.
    path : ndarray of shape (n_times, 4)
        Times, losses on rows that were left out, degrees of freedom, training losses.
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


def make_flows(problem, basis, folds, *, plain):
    """Return the flows of all rows and of those without each fold.

    One flow where they share their features; two where the folds' are fewer.

    Parameters
    ----------
    problem : ClassProblem or LossProblem
    basis : Basis
    folds : Folds
    plain : bool
        Whether the steps are taken one by one, in whatever coordinates.
    """
    share, total = problem.share_of_rows, problem.weight.sum()
    n, mu, raw = len(share), basis.eigenvalues, basis.raw
    few = not plain and n <= _FEW_ROWS and len(mu) > _FEW_COORDINATES
    part = basis.leading(_FEW_COORDINATES) if few else raw
    features, vectors = raw.rows(slice(None)), raw.vectors
    own = part.rows(slice(None)) if few else features
    weight = np.repeat(share[:, None], len(folds), axis=1)
    offsets, parts = [], []
    for k, (rows, held) in enumerate(zip(folds.rows, folds.held, strict=True)):
        weight[rows, k] -= held / total
        # Differences of shares that are the same but for rounding.
        weight[weight[:, k] < 1e-15 * share, k] = 0.0
        offsets.append(problem.start(weight[:, k] * total))
        F = own[rows]
        parts.append(eigenvectors(part.gram - F.T @ (F * (held / total)[:, None])))
    if features.size >= _MANY:
        features = own = features.astype(np.float32)
    loss, y, whole = problem.loss, problem.targets, [problem.offset]
    mus, turns = [mu for mu, _ in parts], [V for _, V in parts]
    if few:
        return [
            Flow(loss, features, [vectors], [mu], y, share[:, None], whole),
            Flow(loss, own, turns, mus, y, weight, offsets),
        ]
    weight = np.column_stack([share, weight])
    return [
        Flow(loss, features, [vectors, *turns], [mu, *mus], y, weight, whole + offsets)
    ]


def walk_folds(problem, basis, folds, step_size, options, *, keep=False):
    """Follow all paths until the loss on the rows left out has passed its minimum.

    Parameters
    ----------
    problem : ClassProblem or LossProblem
    basis : Basis
    folds : Folds
    step_size : float
    options : PathOptions
    keep : bool
        Whether the functions without the folds are wanted.

    Returns
    -------
    found : FoldedPath
    """
    loss, y, share = problem.loss, problem.targets, problem.share_of_rows
    flows = make_flows(problem, basis, folds, plain=options.plain)
    out = np.concatenate(folds.rows)
    # Which path of the last flow is without a row.
    first = flows[-1].n_paths - len(folds)
    number = np.repeat(np.arange(len(folds)), [len(r) for r in folds.rows])
    path_of = first + number
    held = np.concatenate(folds.held)
    held = held / held.sum()
    floor = loss.floor(y[out], held)
    judge = lambda values: float(loss.deviance(y[out], values[out, path_of], held))
    r = len(basis.eigenvalues)
    least = basis.eigenvalues[-1] if r else np.inf
    walk = _plain_walk if options.plain else _flow_walk
    start = judge(flows[-1].start().values) - floor
    rows, stages, kept = [], [], []
    best, best_at = np.inf, 0
    for time, joint in walk(flows, step_size, options):
        score, stage = judge(joint[-1].values), joint[0].path(0)
        df = _class_stopping.running_df(
            basis.eigenvalues, stage.exposure, problem.n_free
        )
        rows.append((time, score, df, float(loss.mean(y, stage.values, share))))
        stages.append(replace(stage, theta=stage.theta[:r], values=None))
        if keep:
            kept.append(joint[-1].theta)
        if score < best:
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
        gain = path[-2, 1] - path[-1, 1]
        unfinished = gain > (_MARGIN - 1.0) * (best - floor)
    fits = None
    if keep:
        flow, theta = flows[-1], kept[best_at]
        theta_raw = flow.coefficients(theta)[:, first:, 0]
        few = len(flows) > 1
        part = basis.leading(len(theta_raw)) if few else basis.raw
        dual = part.to_dual(theta_raw)
        values = flow.values(theta)
        residuals = [
            y[own] - values[own, first + k] for k, own in enumerate(folds.rows)
        ]
        fits = FoldFits(dual, flow.offset[first:], *entries(folds, residuals))
    return FoldedPath(stages, path, best_at, bool(unfinished), fits)


def _flow_walk(flows, step_size, options):
    """Yield times and stages, the times closer where the curvature changes."""
    stages, time, before = [flow.start() for flow in flows], 0.0, 0.0
    factor = 1.0
    while time < options.limit:
        before, time = time, min(max(time + 1.0, round(time * factor)), options.limit)
        bend, step = _bend(flows[0], stages[0]), step_size * (time - before)
        stages = [
            flow.advance(stage, step) for flow, stage in zip(flows, stages, strict=True)
        ]
        yield time, stages
        rate = 1.0
        if before > 0.0:
            now = _bend(flows[0], stages[0])
            rate = abs(np.log(now / bend)) / np.log2(time / before)
        factor = next(factor for limit, factor in _FACTORS if rate < limit)


def _bend(flow, stage):
    """Return the curvature of the risk itself on the path of all rows."""
    bend = float((stage.curvature / flow.loss.stretch(stage.risk))[0])
    return max(bend, 1e-300)


def _plain_walk(flows, step_size, options):
    """Yield times and stages of the plain iteration."""
    (flow,) = flows
    loss, y, w = flow.loss, flow.y, flow.weight
    times = options.plain_times()
    start = loss.risk(y, flow.start().values, w)[0]
    steps = iterate(
        lambda values: step_size * flow.gradient(values),
        flow.values,
        lambda slopes: slopes,
        flow.start().theta.shape,
        times,
        average=options.average,
    )
    exposure = plain = np.zeros(flow.n_paths)
    before = 0.0
    for time, (theta, values) in zip(times, steps, strict=True):
        risk = loss.risk(y, values, w)
        check_growth(risk[0], start, step_size, flow.mu[0, 0, 0])
        m = loss.curvature(y, values, w)
        eta = step_size * (time - before)
        before = time
        exposure = exposure + eta * m
        plain = plain + eta * loss.stretch(risk)
        yield time, [Stage(theta, values, risk, exposure, plain, m)]
