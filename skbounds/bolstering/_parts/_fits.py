"""Fits on parts of the rows, and what they make of the rows they are without."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn import config_context
from sklearn.base import clone

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


def fit_parts(estimator, rows, plan, losses, fit_params, *, keep=False) -> HeldOut:
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
    """
    table, targets, weight = rows.table, rows.targets, rows.weight
    plain = [loss for loss in losses if not isinstance(loss, Score)]
    scores = [loss for loss in losses if isinstance(loss, Score)]
    names = dict.fromkeys(loss.response for loss in plain)
    counts_classes = any(loss.kind == "zero_one" for loss in plain)
    found = HeldOut()
    totals = {loss.name: np.zeros(table.n_rows) for loss in plain}
    times = np.zeros(table.n_rows)
    frequencies = []
    found.scores = {score.name: [] for score in scores}
    failures = []
    for j, out in enumerate(plan.out):
        train, test = np.flatnonzero(~out), np.flatnonzero(out)
        # The parameters are the same in all fits: they are checked in the first.
        with config_context(skip_parameter_validation=j > 0):
            fitted = clone(estimator).fit(
                table.take(train), rows.targets_to_fit(train), **fit_params(train)
            )
            X = table.take(test)
            responses = {name: respond(fitted, X, name) for name in names}
            found.n_evaluations += len(test) * max(len(names), len(scores) > 0)
            for score in scores:
                value = _score(score, fitted, X, targets[test], failures)
                found.scores[score.name].append(value)
        classes = getattr(fitted, "classes_", None)
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


def _score(score, fitted, X, targets, failures):
    """Return a score, nan where it is not defined on these rows."""
    try:
        return float(score.scorer(fitted, X, targets))
    except ValueError as error:
        failures.append(error)
        return np.nan


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
