"""Fits on parts of the rows, and what they make of the rows they are without."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skbounds._base import warn_user
from skbounds._labels import code_labels
from skbounds.bolstering._losses import Score, respond


@dataclass
class HeldOut:
    """What the fits of a plan make of the rows they are without.

    Attributes
    ----------
    losses : dict of ndarray of shape (n,)
        By the losses' names, a row's mean over the fits without it.
    scores : dict of list of float
        By the scores' names, one for each fit.
    frequencies : ndarray of shape (n_classes,) or None
        How often each class is predicted, mean over fits.
    predictions : list of (rows, responses)
        Where they are kept.
    n_evaluations : int
        Number of rows predicted.
    """

    losses: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)
    frequencies: np.ndarray | None = None
    predictions: list = field(default_factory=list)
    n_evaluations: int = 0


def fit_parts(
    estimator, rows, plan, losses, fit_params, *, keep=False, n_jobs=None
) -> HeldOut:
    """Fit clones on the parts of a plan and predict the other rows.

    Parameters
    ----------
    estimator : estimator
    rows : Rows
    plan : Plan
    losses : list of Loss and Score
    fit_params : callable
        ``fit_params(rows)`` are what the fits on some rows get besides.
    keep : bool
        Whether to keep the predictions.
    n_jobs : int or None
        Fits at a time, of joblib.
    """
    targets, weight = rows.targets, rows.weight
    plain = [loss for loss in losses if not isinstance(loss, Score)]
    scores = [loss for loss in losses if isinstance(loss, Score)]
    names = dict.fromkeys(loss.response for loss in plain)
    counts_classes = any(loss.kind == "zero_one" for loss in plain)
    found = HeldOut()
    totals = {loss.name: np.zeros(len(targets)) for loss in plain}
    times = np.zeros(len(targets))
    frequencies = []
    found.scores = {score.name: [] for score in scores}
    failures = []
    serial = effective_n_jobs(n_jobs) == 1
    parts = []
    for j, out in enumerate(plan.out):
        train, test = np.flatnonzero(~out), np.flatnonzero(out)
        # The parameters are the same in all fits: one after the other, they are
        # checked in the first.
        parts.append((train, test, fit_params(train), serial and j > 0))
    make = lambda part: (estimator, rows, scores, names, *part)
    if serial:
        results = (_fit_part(*make(part)) for part in parts)
    else:
        results = Parallel(n_jobs=n_jobs)(
            delayed(_fit_part)(*make(part)) for part in parts
        )
    for (_, test, _, _), (responses, classes, values) in zip(
        parts, results, strict=True
    ):
        found.n_evaluations += len(test) * max(len(names), len(scores) > 0)
        for score, value in zip(scores, values, strict=True):
            if isinstance(value, ValueError):
                failures.append(value)
                value = np.nan
            found.scores[score.name].append(value)
        times[test] += 1.0
        for loss in plain:
            totals[loss.name][test] += loss(
                targets[test], responses[loss.response], classes
            )
        if counts_classes:
            codes = code_labels(responses["predict"], rows.classes)
            known = codes >= 0
            shares = np.bincount(
                codes[known], weight[test][known], minlength=len(rows.classes)
            )
            frequencies.append(shares / weight[test].sum())
        if keep:
            found.predictions.append((rows.kept[test], responses))
    # Every row is held out, but by empty folds of groups.
    found.losses = {name: total / times for name, total in totals.items()}
    if frequencies:
        found.frequencies = np.mean(frequencies, axis=0)
    _warn_of_undefined(found.scores, failures)
    return found


def _fit_part(estimator, rows, scores, names, train, test, params, is_checked):
    """Fit a clone on some rows; return what it makes of others, and its classes."""
    table = rows.table
    with config_context(skip_parameter_validation=is_checked):
        fitted = clone(estimator).fit(
            table.take(train), rows.targets_to_fit(train), **params
        )
        X = table.take(test)
        responses = {name: respond(fitted, X, name) for name in names}
        values = [_score(score, fitted, X, rows.targets[test]) for score in scores]
    return responses, getattr(fitted, "classes_", None), values


def _score(score, fitted, X, targets):
    """Return a score, or the error where it is not defined on these rows."""
    try:
        return float(score.scorer(fitted, X, targets))
    except ValueError as error:
        return error


def _warn_of_undefined(scores, failures):
    for name, values in scores.items():
        n_undefined = int(np.isnan(values).sum())
        if n_undefined == len(values) and failures:
            raise failures[0]
        if n_undefined:
            warn_user(
                f"The score {name!r} is not defined on the rows held out of "
                f"{n_undefined} of {len(values)} fits; these fits are left out."
            )
