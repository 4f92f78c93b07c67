"""The practical default: errors on matched folds, moved towards a steadier centre.

The error H on matched folds has little bias and much variance; bolstered errors have
little variance and a bias that depends on the learner. H is moved half of the way to
their centre, but by no more than its own standard error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import product
from numbers import Integral

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator

from skbounds._base import warn_user
from skbounds.bolstering._bandwidths import widths_by_class
from skbounds.bolstering._kernels import Kernels
from skbounds.bolstering._leave_one_out import leave_one_out
from skbounds.bolstering._losses import Loss
from skbounds.bolstering._matching import assign_folds, matched_groups
from skbounds.bolstering._measure import Measure, make_measure
from skbounds.bolstering._models import final_step
from skbounds.bolstering._neighbors import nearest_rows
from skbounds.bolstering._nodes import antithetic_nodes
from skbounds.bolstering._smoothing import (
    feature_motion,
    joint_motion,
    smooth,
)
from skbounds.bolstering._table import Coordinates

# Moved rows per term, about: the share of their error in the estimate's is small.
_MOVED_ROWS = 400
# From so many rows on there are four folds instead of two.
_FOUR_FOLDS = 60
# Beyond this many rows nothing speaks for the default any more.
LARGEST_STUDIED = 500
_QMC_NODES = 32


@dataclass(frozen=True)
class BlendOptions:
    """The parameters of `BolsteredScorer` that the default reads."""

    n_folds: object
    n_repeats: int
    n_nodes: object
    holdout_scale: float
    n_neighbors: int
    shrink: object
    clip: float
    standardize: bool
    random_state: int


@dataclass(frozen=True)
class Plan:
    """All that does not depend on the estimator: folds, nodes, neighbours.

    Attributes
    ----------
    folds : ndarray of int of shape (n_repeats, n)
    measure : Measure or None
        Spherical kernels, in classification.
    moving : ndarray of int
        Rows that are moved.
    moves : ndarray of shape (n_moving, n_nodes, r)
        By how much, in the coordinates.
    neighbors : ndarray of int of shape (n_moving, n_neighbors)
        Nearest other rows of those that are moved.
    """

    folds: np.ndarray
    measure: Measure | None = None
    moving: np.ndarray | None = None
    moves: np.ndarray | None = None
    neighbors: np.ndarray | None = None


def check_refittable(estimator):
    """Refuse estimators that fits on folds would not change."""
    parts = [final_step(estimator)[1], *estimator.get_params(deep=True).values()]
    if any(
        isinstance(part, FrozenEstimator)
        and (is_classifier(part) or is_regressor(part))
        for part in parts
    ):
        raise ValueError(
            "method='auto' refits the estimator on parts of the data, which a "
            "FrozenEstimator does not do; choose method='x', 'y' or 'xy'."
        )


def exact_leave_one_out(question):
    """Return exact leave-one-out predictions, or None."""
    if any(loss.response != "predict" for loss in question.losses):
        return None
    return leave_one_out(question)


def choose_n_folds(n_folds, n_rows, codes, estimator):
    """Return the number of folds; 0 if there are too few rows for any.

    Half of the rows must be enough for nearest neighbours, too.

    Raises
    ------
    ValueError
        If a number was asked for that the rows do not allow.
    """
    smallest = n_rows if codes is None else np.bincount(codes).min()
    rows = "rows" if codes is None else "rows of each class"
    if n_folds != "auto":
        if smallest < 4:
            raise ValueError(
                f"n_folds={n_folds} needs at least 4 {rows}, and there are {smallest}; "
                "use plain cross-validation, or method='x'."
            )
        return n_folds
    if codes is None:
        # Two halves are never good enough in regression.
        return 4 if smallest >= 8 else 0
    n_neighbors = getattr(final_step(estimator)[1], "n_neighbors", None)
    many = isinstance(n_neighbors, Integral) and n_neighbors > n_rows // 2 - 1
    if (n_rows >= _FOUR_FOLDS or many) and smallest >= 8:
        return 4
    return 2 if smallest >= 4 else 0


def make_plan(table, targets, codes, weight, options) -> Plan:
    """Prepare folds and, for classification, nodes.

    Parameters
    ----------
    table : Table
    targets : ndarray of shape (n, m) or None
        Of regression.
    codes : ndarray of int or None
        Classes.
    weight : ndarray of shape (n,)
    options : BlendOptions
        With the number of folds.
    """
    rng = np.random.default_rng(options.random_state)
    weight = weight * (len(weight) / weight.sum())
    coordinates = Coordinates(table.values, weight, standardize=options.standardize)
    points = coordinates.points
    matched = points
    if targets is not None:
        center = np.average(targets, axis=0, weights=weight)
        spread = np.sqrt(np.average((targets - center) ** 2, axis=0, weights=weight))
        matched = np.hstack([points, targets / np.where(spread > 0.0, spread, 1.0)])
    groups, leftover = matched_groups(matched, codes, options.n_folds)
    folds = np.stack(
        [
            assign_folds(groups, leftover, table.n_rows, rng)
            for _ in range(options.n_repeats)
        ]
    )
    if codes is None or not points.shape[1]:
        if not points.shape[1]:
            warn_user(
                "No feature can be moved (all are constant or categorical): the folds "
                "are any folds, and nothing is blended."
            )
        return Plan(folds)
    widths = widths_by_class(points, codes, weight)[codes]
    measure = Measure(table, weight, coordinates, Kernels(widths, points.shape[1]))
    moving, nodes = _choose_nodes(table.n_rows, points.shape[1], options.n_nodes, rng)
    moves = widths[moving, None, None] * nodes
    n_neighbors = min(options.n_neighbors, table.n_rows - 1)
    neighbors = nearest_rows(points, n_neighbors, moving)[1]
    return Plan(folds, measure, moving, moves, neighbors)


def _choose_nodes(n_rows, n_dimensions, n_nodes, rng):
    """Return the rows that are moved, and their nodes: not too many by default."""
    moving = np.arange(n_rows)
    if n_nodes == "auto":
        n_nodes = 4 if 4 * n_rows <= _MOVED_ROWS else 2
        if n_nodes * n_rows > _MOVED_ROWS:
            chosen = rng.choice(n_rows, _MOVED_ROWS // n_nodes, replace=False)
            moving = np.sort(chosen)
    return moving, antithetic_nodes(len(moving), n_nodes, n_dimensions, rng)


@dataclass(frozen=True)
class Blend:
    """An estimate for one loss, with everything that went in.

    Attributes
    ----------
    error, standard_error, integration_error : float
    components : dict of float
    """

    error: float
    standard_error: float
    integration_error: float
    components: dict


def blend(question, exact, make_plan, options, fit_params):
    """Estimate errors by the practical default.

    Parameters
    ----------
    question : Question
    exact : LeftOut or None
        Exact leave-one-out predictions.
    make_plan : callable or None
        Returns the Plan; not called where leave-one-out needs none. None: there are too
        few rows for folds.
    options : BlendOptions
    fit_params : callable
        ``fit_params(rows)`` are what the fits on some rows get besides.

    Returns
    -------
    blends : dict of Blend
        By the losses' names.
    method : str
        What was done.
    n_fits : int
    """
    table, targets = question.table, question.targets
    at_rows = question.at_rows if exact is None else {"predict": exact.at_rows}
    own = question.evaluate(targets, at_rows)
    n_fits = 0
    kinds = [loss.kind for loss in question.losses]
    shrinks = {kind: _shrink(options.shrink, kind) for kind in kinds}
    with_moves = shrinks.get("zero_one", 0.0) > 0.0 and make_plan is not None
    plan = make_plan() if exact is None or with_moves else None
    with_moves = with_moves and plan.moves is not None
    held_out, moved = {}, None
    if exact is None or with_moves:
        held_out, moved = _fit_folds(
            question, plan, options, fit_params,
            with_rows=exact is None, with_moves=with_moves,
        )  # fmt: skip
        n_fits = options.n_folds * options.n_repeats
    if exact is not None:
        held_out = question.evaluate(targets, {"predict": exact.left_out})

    def mean(values, rows=slice(None)):
        weight = question.weight[rows]
        return float(values @ weight / weight.sum())

    size = question.weight.sum() ** 2 / (question.weight**2).sum()
    blends, moves_more = {}, False
    for loss in question.losses:
        name, kind, shrink = loss.name, loss.kind, shrinks[loss.kind]
        H = mean(held_out[name])
        components = {"resubstitution": mean(own[name]), "hold_out": H}
        # Of a proportion (never 0), of a mean of squared normal residuals, of a mean.
        if kind == "zero_one":
            se = np.sqrt((H * (1.0 - H) + 1.0 / size) / size)
        elif kind == "squared":
            se = H * np.sqrt(2.0 / size)
        else:
            se = np.sqrt(mean((held_out[name] - H) ** 2) / size)
        center, uncertainty = None, 0.0
        if kind == "zero_one" and with_moves:
            predicted = at_rows.get("predict")
            if predicted is None:
                predicted = question.ask(table.X)
            parts, uncertainty = _zero_one_parts(
                question,
                plan,
                moved,
                predicted,
                mean,
                votes_for_itself=exact is not None,
            )
            center = np.mean(list(parts.values()))
        elif kind == "squared" and shrink > 0.0:
            parts, uncertainty = _squared_parts(question, options)
            center = np.mean(list(parts.values()))
        error = H
        if center is not None:
            moves_more = True
            components |= {**parts, "center": float(center)}
            limit = options.clip * se
            error = H + shrink * np.clip(center - H, -limit, limit)
        blends[name] = Blend(
            float(error), float(se), shrink * float(uncertainty), components
        )
    method = "exact leave-one-out"
    if exact is None:
        method = f"{options.n_folds} matched folds"
    method += ", blended" if moves_more else ""
    return blends, f"auto ({method})", n_fits


def kernel_of(blend):
    """Return the names of the kernels that an estimate is blended with."""
    if "x" in blend.components:
        return "mm and mpe_limit"
    return "mm" if "center" in blend.components else "none"


def _shrink(shrink, kind):
    """Return the share of the way to the centre, for losses that have one."""
    if kind not in ("zero_one", "squared"):
        return 0.0
    if shrink == "auto":
        return 0.5 if kind == "zero_one" else 0.0
    return float(shrink)


def _fit_folds(question, plan, options, fit_params, *, with_rows, with_moves):
    """Return losses at held-out rows, and errors at held-out rows that are moved.

    Returns
    -------
    held_out : dict of ndarray of shape (n,)
        Empty without `with_rows`.
    moved : ndarray of shape (n_moving, n_nodes) or None
        Zero-one losses.
    """
    table, targets = question.table, question.targets
    held_out = {}
    if with_rows:
        held_out = {loss.name: np.zeros(table.n_rows) for loss in question.losses}
    moved = np.zeros(plan.moves.shape[:2]) if with_moves else None
    only_predict = all(loss.response == "predict" for loss in question.losses)
    # The parameters were checked in the first fit.
    with config_context(skip_parameter_validation=True):
        for folds, fold in product(plan.folds, range(options.n_folds)):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            fitted = clone(question.estimator).fit(
                table.take(train), targets[train], **fit_params(train)
            )
            part = replace(question, estimator=fitted)
            responses, ahead = {}, None
            if with_moves:
                places = np.flatnonzero(folds[plan.moving] == fold)
                shifted = _moved(plan, places, options.holdout_scale)
            if with_rows:
                X = table.take(test)
                if with_moves and only_predict:
                    # One call costs less than two.
                    together = part.ask(_stack(X, shifted), moved=True)
                    responses = {"predict": together[: len(test)]}
                    ahead = together[len(test) :]
                else:
                    responses = part.responses(X)
                for name, loss in part.evaluate(targets[test], responses).items():
                    held_out[name][test] += loss / len(plan.folds)
            if with_moves:
                if ahead is None:
                    ahead = part.ask(shifted, moved=True)
                wrong = targets[plan.moving[places], None] != ahead.reshape(
                    len(places), -1
                )
                moved[places] += wrong / len(plan.folds)
    return held_out, moved


def _moved(plan, places, scale):
    moves = plan.moves[places]
    rows = np.repeat(plan.moving[places], moves.shape[1])
    return plan.measure.moved(rows, scale * moves.reshape(len(rows), -1))


def _stack(first, second):
    """Return two tables on top of each other."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if hasattr(first, "vstack"):
        return first.cast(dict(second.schema)).vstack(second)
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)


def _zero_one_parts(question, plan, moved, predicted, mean, *, votes_for_itself):
    """Return the steadier errors, and the integration error of their mean.

    Parameters
    ----------
    moved : ndarray of shape (n_moving, n_nodes)
        Errors of the folds' fits at held-out rows that are moved.
    predicted : ndarray of shape (n,)
    votes_for_itself : object
        True for nearest neighbours, whose error at rows moved a little is none.
    """
    moving = plan.moving
    around = question.targets[plan.neighbors] != predicted[moving, None]
    parts = {
        "neighbor_labels": mean(around.mean(axis=1), moving),
        "moved_hold_out": mean(moved.mean(axis=1), moving),
    }
    variance = moved.var(axis=1)
    if not votes_for_itself:
        shifted = _moved(plan, np.arange(len(moving)), 1.0)
        ahead = question.ask(shifted, moved=True)
        wrong = question.targets[moving, None] != ahead.reshape(len(moving), -1)
        parts["bolstered"] = mean(wrong.mean(axis=1), moving)
        variance = variance + wrong.var(axis=1)
    share = question.weight[moving] / question.weight[moving].sum()
    error = np.sqrt((share**2 * variance).sum() / moved.shape[1]) / len(parts)
    return parts, error


def _squared_parts(question, options):
    """Return bolstered errors with kernels on X and on (X, y), as `_zero_one_parts`."""
    only = replace(question, losses=[Loss("squared")])
    targets = question.targets.reshape(question.table.n_rows, -1)
    parts, errors = {}, []
    for name, kernel in (("x", "mm"), ("xy", "mpe_limit")):
        with warnings.catch_warnings():
            # Advice for those who chose the kernel.
            warnings.filterwarnings("ignore", message="kernel='mm' in")
            measure = make_measure(
                question.table, targets, None, question.weight, kernel=kernel, lam=1.0,
                standardize=options.standardize, random_state=options.random_state,
                joint=name == "xy",
            )  # fmt: skip
        motion = feature_motion(measure)
        if name == "xy":
            motion = joint_motion(measure, squared_only=True)
        smoothed = smooth(
            only, motion, [(question.targets, 1.0)], integration="auto",
            n_nodes=_QMC_NODES, seed=options.random_state,
        )  # fmt: skip
        parts[name], error = smoothed.mean("squared", question.weight)
        errors.append(error)
    return parts, 0.5 * np.hypot(*errors)


def warn_of_size(n_rows):
    """Say where cross-validation is the better choice."""
    if n_rows > LARGEST_STUDIED:
        warn_user(
            f"There are {n_rows} rows: above {LARGEST_STUDIED} rows K-fold "
            "cross-validation is as accurate as method='auto', which was studied with "
            "at most 200, and about as fast."
        )
