"""Estimates from one fit, by the paper's methods.

The functions read the parameters of `BolsteredScorer`, under their own names.
"""

from __future__ import annotations

import numpy as np

from skbounds._base import warn_user
from skbounds.bolstering._record import BolsteredEstimate
from skbounds.bolstering._smoothed._families import MomentKernel, SampledKernel
from skbounds.bolstering._smoothed._measure import LARGEST_MPE, make_measure
from skbounds.bolstering._smoothed._posterior import (
    predictive_law,
    predictive_probabilities,
)
from skbounds.bolstering._smoothed._smoothing import (
    Motion,
    feature_motion,
    joint_motion,
    resubstitute,
    smooth,
)

# An increment beyond this share of the targets' variance is the kernel's own making.
_LARGE_INCREMENT = 0.5


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


def estimate_by_one_fit(scorer, question, rows, seed):
    """Return estimates from the one fit that is given."""
    method = scorer.method
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
    if isinstance(kernel, (MomentKernel, SampledKernel)):
        return repr(kernel)
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
