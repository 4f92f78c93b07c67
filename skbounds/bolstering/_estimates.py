"""Estimates of a fitted estimator's errors, by the methods of `BolsteredScorer`.

The functions read the scorer's parameters, under their own names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.utils import get_tags

from skbounds._base import warn_user
from skbounds.bolstering import _blend
from skbounds.bolstering._measure import LARGEST_MPE, make_measure
from skbounds.bolstering._posterior import predictive_law, predictive_probabilities
from skbounds.bolstering._smoothing import (
    Motion,
    feature_motion,
    joint_motion,
    resubstitute,
    smooth,
)

# An increment beyond this share of the targets' variance is the kernel's own making.
_LARGE_INCREMENT = 0.5


@dataclass(frozen=True)
class BolsteredEstimate:
    """An error estimate and what it is made of.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    error : float
        The estimate, in units of the loss.
    resubstitution : float
        Mean loss at the rows that the estimator was fitted on.
    increment : float
        ``error - resubstitution``.
    standard_error : float
        For ``method="auto"`` the standard error of the error on held-out rows;
        otherwise the integration error (no sampling variance is known then).
    integration_error : float
        Standard error of the numerical integration; 0 for closed forms.
    components : dict
        Every term that went into the estimate, by name.
    method : str
        The method that was used.
    kernel : str
        The kernel that was used.
    loss : str
        Name of the loss.
    n_fits : int
        Number of times that a clone of the estimator was fitted.
    n_evaluations : int
        Number of rows predicted.

    See Also
    --------
    BolsteredScorer : Makes it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from skbounds.bolstering import BolsteredScorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression().fit(X[:100], y[:100])
    >>> found = BolsteredScorer(method="y").estimate(model, X[:100], y[:100])
    >>> found.error > found.resubstitution
    True
    >>> found.n_fits
    0
    """

    error: float
    resubstitution: float
    increment: float
    standard_error: float
    integration_error: float
    components: dict = field(repr=False)
    method: str
    kernel: str
    loss: str
    n_fits: int
    n_evaluations: int


def choose_kernel(scorer, rows):
    """Return the kernel that is meant."""
    kernel = scorer.kernel
    if not isinstance(kernel, str) or kernel != "auto":
        return kernel
    if rows.codes is not None:
        return "mm"
    return "mpe_limit" if rows.table.n_rows > LARGEST_MPE else "mpe"


def find_measure(scorer, rows, method, seed):
    """Return the kernels, prepared once where their parameters can be compared."""
    kernel = choose_kernel(scorer, rows)
    make = lambda: make_measure(
        rows.table,
        None if rows.codes is not None else rows.matrix,
        rows.codes,
        rows.weight,
        kernel=kernel,
        lam=scorer.lam,
        standardize=scorer.standardize,
        random_state=seed,
        joint=method == "xy",
    )
    if not isinstance(kernel, str):
        return make()
    return rows.prepare((method, kernel, scorer.lam, scorer.standardize, seed), make)


def estimate_by_folds(scorer, question, rows, fit_params, seed, *, in_search, exact):
    """Return estimates by the practical default, or None with too few rows."""
    table = rows.table
    if exact is not None:
        question.note(exact.at_rows)
    else:
        exact = _blend.exact_leave_one_out(question)
    if exact is None:
        _blend.check_refittable(question.estimator)
    n_folds = _blend.choose_n_folds(
        scorer.n_folds, table.n_rows, rows.codes, question.estimator
    )
    if exact is None and get_tags(question.estimator).input_tags.pairwise:
        raise ValueError("folds of a kernel matrix (precomputed) are not offered.")
    if not n_folds and exact is None:
        warn_user(
            "There are too few rows for matched folds (8 in regression, 4 of each "
            "class in classification): method='x' is used instead, one fit without "
            "any held-out row. Cross-validation may be the better choice."
        )
        return None
    if exact is None and not in_search:
        _blend.warn_of_size(table.n_rows)
    options = _blend.BlendOptions(
        n_folds=n_folds,
        n_repeats=scorer.n_repeats,
        n_nodes=scorer.n_nodes,
        holdout_scale=scorer.holdout_scale,
        n_neighbors=scorer.n_neighbors,
        shrink=scorer.shrink,
        clip=scorer.clip,
        standardize=scorer.standardize,
        random_state=seed,
    )
    targets = None if rows.codes is not None else rows.matrix

    make_plan = None
    if n_folds:
        make_plan = lambda: rows.prepare(
            ("plan", options),
            lambda: _blend.make_plan(table, targets, rows.codes, rows.weight, options),
        )
    blends, method, n_fits = _blend.blend(
        question, exact, make_plan, options, rows.fit_params(fit_params)
    )
    return {
        name: BolsteredEstimate(
            error=found.error,
            resubstitution=found.components["resubstitution"],
            increment=found.error - found.components["resubstitution"],
            standard_error=found.standard_error,
            integration_error=found.integration_error,
            components=found.components,
            method=method,
            kernel=_blend.kernel_of(found),
            loss=name,
            n_fits=n_fits,
            n_evaluations=sum(question.asked),
        )
        for name, found in blends.items()
    }


def estimate_by_one_fit(scorer, question, rows, seed):
    """Return estimates from the one fit that is given."""
    method = "x" if scorer.method == "auto" else scorer.method
    smoothed = still = resubstitute(question, [(rows.targets, 1.0)])
    if method != "resub":
        smoothed = _smooth(scorer, question, rows, method, seed)
    weight, found = rows.weight, {}
    for loss in question.losses:
        name = loss.name
        values = smoothed.losses[name]
        own = still.losses[name][:, 0]
        if scorer.semi:
            values = np.where(own[:, None] > 0.0, own[:, None], values)
        error, spread = smoothed.mean_of(values, weight)
        resubstitution = float(np.average(own, weights=weight))
        if loss.kind == "squared" and method != "y":
            _warn_of_increment(error - resubstitution, rows)
        found[name] = BolsteredEstimate(
            error=error,
            resubstitution=resubstitution,
            increment=error - resubstitution,
            standard_error=spread,
            integration_error=spread,
            components={
                "resubstitution": resubstitution,
                method: error,
            },
            method="semi-bolstered x" if scorer.semi else method,
            kernel=_kernel_name(scorer, rows, method),
            loss=name,
            n_fits=0,
            n_evaluations=sum(question.asked),
        )
    return found


def _kernel_name(scorer, rows, method):
    if method in ("y", "resub"):
        return "none"
    kernel = choose_kernel(scorer, rows)
    return kernel if isinstance(kernel, str) else "given"


def _warn_of_increment(increment, rows):
    center = np.average(rows.matrix, axis=0, weights=rows.weight)
    variance = np.average(
        (rows.matrix - center) ** 2, axis=0, weights=rows.weight
    ).mean()
    if increment > _LARGE_INCREMENT * variance > 0.0:
        warn_user(
            f"The kernels add {increment:.3g} to the resubstitution error, more "
            f"than {_LARGE_INCREMENT:g} of the variance of y: they are too wide "
            "for this model. method='xy', or method='y', adds less."
        )


def _smooth(scorer, question, rows, method, seed):
    """Return the losses of one fit, averaged over a motion."""
    mixture, law = [(rows.targets, 1.0)], None
    squared_only = [loss.kind for loss in question.losses] == ["squared"]
    noise = None
    if method in ("y", "x+posterior"):
        if rows.codes is not None:
            shares = predictive_probabilities(
                question.estimator, rows, scorer.posterior
            )
            mixture = [
                (np.full(len(shares), label, dtype=rows.classes.dtype), share)
                for label, share in zip(rows.classes, shares.T, strict=True)
            ]
        else:
            law = predictive_law(question.estimator, rows, scorer.posterior)
            mixture = [(law.mean.reshape(rows.targets.shape), 1.0)]
            if squared_only:
                noise, law = law.variance, None
    measure = None
    if method != "y":
        measure = find_measure(scorer, rows, method, seed)
    still = method == "y" or measure.kernels.n_dimensions == 0
    if still and law is None:
        smoothed = resubstitute(question, mixture)
        if noise is not None:
            smoothed.losses["squared"] += noise.mean(axis=1, keepdims=True)
        return smoothed
    if method == "xy":
        motion = joint_motion(measure, squared_only=squared_only)
    elif law is not None:
        motion = Motion(measure, law=law, moves_features=not still)
    else:
        motion = feature_motion(measure, noise=noise)
    return smooth(
        question, motion, mixture, integration=scorer.integration,
        n_nodes=32 if scorer.n_nodes == "auto" else scorer.n_nodes, seed=seed,
    )  # fmt: skip
