"""The default: errors on held-out rows, corrected for the rows the fits are without.

A few fits on parts of the rows, each row held out two or three times, give an error H
that is steady, and too high where much is still to be learnt from the rows left out.
The correction is one factor that vanishes where nothing has been learnt at all.
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from pickle import PicklingError

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from skbounds._base import warn_user
from skbounds.bolstering._estimators import check_refittable
from skbounds.bolstering._losses import Score
from skbounds.bolstering._parts import _uncertainty as uncertainty
from skbounds.bolstering._parts._deals import SCHEMES, make_plan
from skbounds.bolstering._parts._fits import fit_parts
from skbounds.bolstering._parts._leave_one_out import (
    has_formula,
    leave_one_out,
    leave_one_out_unfitted,
)
from skbounds.bolstering._question import Question
from skbounds.bolstering._record import BolsteredEstimate

# From so many rows on, two thirds of them are fitted instead of halves.
_TWO_THIRDS = 60
# Fewer rows are no basis for an estimate.
_LEAST_ROWS = 8
# Above this number of rows nothing was measured that speaks for the default.
_LARGEST_STUDIED = 500
# Share of copies beyond which held-out rows are known to the fits.
_MANY_COPIES = 0.1


@dataclass(frozen=True)
class PartOptions:
    """The parameters of `BolsteredScorer` that the default reads.

    Attributes
    ----------
    n_folds : {'auto', 4, 6}
    n_repeats : int
    learning_ratio : float or 'auto'
    standardize : bool
    random_state : int
    keep_predictions : bool
    n_jobs : int or None
        Fits at a time.
    """

    n_folds: object = "auto"
    n_repeats: int = 1
    learning_ratio: object = "auto"
    standardize: bool = True
    random_state: int = 0
    keep_predictions: bool = False
    n_jobs: int | None = None


def corrected(hold_out, no_information, learning_ratio):
    """Return the error of a fit on all rows, from that of fits on parts.

    ``H r / (1 - (1 - r) H / G)`` with the learning ratio r: r H where H is small, and H
    where it is at the no-information error G.
    """
    if hold_out >= no_information:
        return hold_out
    share = hold_out / no_information
    return hold_out * learning_ratio / (1.0 - (1.0 - learning_ratio) * share)


def no_information_error(codes, weight, frequencies):
    """Return the error of predictions that have nothing to do with the labels."""
    shares = np.bincount(codes, weight, minlength=len(frequencies)) / weight.sum()
    return float(shares @ (1.0 - frequencies))


def choose_schemes(kind, n_rows, n_folds, *, classification, grouped):
    """Return the schemes for a kind of loss, in the order in which they are tried.

    The later ones are for estimators that cannot be fitted on so few rows.
    """
    if grouped:
        if kind == "zero_one":
            return ("groups, two-thirds", "groups")
        return ("groups",)
    if kind == "zero_one":
        few = n_rows < _TWO_THIRDS if n_folds == "auto" else n_folds == 4
        return ("halves", "two-thirds", "stratified")[0 if few else 1 :]
    if kind == "squared":
        return ("matched", "random")
    return ("stratified",) if classification else ("random",)


def check_rows(rows):
    """Refuse rows that no parts can be made of."""
    n = rows.table.n_rows
    if n < _LEAST_ROWS:
        raise ValueError(
            f"n_samples={n} is too small for method='auto', which needs at least "
            f"{_LEAST_ROWS} rows: use cross-validation (cross_val_score with "
            "LeaveOneOut), or method='x', which needs one fit."
        )
    if rows.codes is not None and len(rows.classes) < 2:
        raise ValueError(
            f"y has only one class, {rows.classes.tolist()!r}: nothing can be learnt "
            "from it, and no error estimated."
        )


def warn_of_rows(rows):
    """Warn of rows that parts say little about."""
    n = rows.table.n_rows
    if n > _LARGEST_STUDIED:
        warn_user(
            f"There are {n} rows: above {_LARGEST_STUDIED} rows nothing was measured "
            "that speaks for method='auto', which was studied with at most 100; K-fold "
            "cross-validation (cross_val_score) is about as fast."
        )
    dominated = rows.prepare("outliers", rows.table.dominated_columns)
    if dominated:
        warn_user(
            f"One row holds nearly all of the variance of the columns {dominated}: an "
            "outlier, or a number that stands for a missing one? Fits on parts without "
            "it differ from the fit on all rows, and so does their error."
        )
    if rows.groups is None:
        share = rows.prepare("copies", lambda: rows.table.share_of_copies(rows.targets))
        if share > _MANY_COPIES:
            warn_user(
                f"{share:.0%} of the rows repeat another row, target included: fits "
                "know what they are tested on, and the estimate is too low if these "
                "are copies of one observation. Give groups= that keep copies "
                "together, or remove them."
            )


def estimate_by_parts(
    estimator, rows, losses, options, fit_params, *, fitted=None, in_search=False
):
    """Return estimates by the default, by name of the loss.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted.
    rows : Rows
    losses : list of Loss and Score
    options : PartOptions
    fit_params : dict or None
        What all fits get besides.
    fitted : estimator or None
        Fitted on all rows, where that has been done.
    in_search : bool
        Whether it is one of many candidates, and the rows have been warned of.
    """
    found = _by_leave_one_out(estimator, rows, losses, fit_params, fitted)
    rest = [loss for loss in losses if loss.name not in found]
    if rest:
        _check_estimator(estimator)
        check_rows(rows)
        if not in_search:
            warn_of_rows(rows)
        for schemes, part in _by_scheme(rest, rows, options).items():
            found |= _first_that_fits(
                estimator, rows, part, options, fit_params, schemes
            )
    return {loss.name: found[loss.name] for loss in losses}


def estimate_pair(estimators, rows, loss, options, fit_params):
    """Return the estimates of two estimators from the same parts."""
    each = [_by_leave_one_out(e, rows, [loss], fit_params, None) for e in estimators]
    if all(each):
        return [found[loss.name] for found in each]
    for estimator in estimators:
        _check_estimator(estimator)
    check_rows(rows)
    warn_of_rows(rows)
    [(schemes, _)] = _by_scheme([loss], rows, options).items()
    return _try_in_turn(
        rows,
        options,
        schemes,
        lambda plan, wanted: [
            _by_plan(e, rows, [loss], options, fit_params, plan, wanted)[loss.name]
            for e in estimators
        ],
    )


def _check_estimator(estimator):
    check_refittable(estimator)
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"{estimator!r} takes a kernel matrix (precomputed, pairwise), and parts "
            "of such a matrix are not offered; give it the features and the kernel."
        )


def _by_scheme(losses, rows, options):
    """Return the losses by the schemes they go with."""
    result = {}
    for loss in losses:
        schemes = choose_schemes(
            loss.kind,
            rows.table.n_rows,
            options.n_folds,
            classification=rows.codes is not None,
            grouped=rows.groups is not None,
        )
        result.setdefault(schemes, []).append(loss)
    return result


def _first_that_fits(estimator, rows, losses, options, fit_params, schemes):
    return _try_in_turn(
        rows,
        options,
        schemes,
        lambda plan, wanted: _by_plan(
            estimator, rows, losses, options, fit_params, plan, wanted
        ),
    )


def _try_in_turn(rows, options, schemes, attempt):
    """Return what the first scheme gives whose fits do not fail.

    Halves may be too few rows for an estimator: for its neighbours, or its own folds.
    """
    wanted = SCHEMES[schemes[0]]
    plan, first = _plan(rows, options, schemes[0]), None
    for scheme in schemes:
        if first is not None:
            try:
                plan = _plan(rows, options, scheme)
            except ValueError:
                break
        try:
            return attempt(plan, wanted)
        except (BrokenExecutor, PicklingError):
            # Of the workers, and not of the estimator on few rows.
            raise
        except Exception as error:
            # Of dask, which need not be installed.
            if type(error).__name__ == "KilledWorker":
                raise
            first = first or error
    smallest = int((~plan.out).sum(axis=1).min())
    first.add_note(
        f"With method='auto' the estimator is fitted on parts of the "
        f"{rows.table.n_rows} rows, the last time on {smallest}: fewer than all may be "
        "too few for its parameters (n_neighbors, or folds of its own)."
    )
    raise first


def _plan(rows, options, scheme):
    key = (scheme, options.n_repeats, options.standardize, options.random_state)
    return rows.prepare(
        ("plan", *key),
        lambda: make_plan(
            scheme,
            rows,
            n_repeats=options.n_repeats,
            standardize=options.standardize,
            seed=options.random_state,
        ),
    )


def _by_plan(estimator, rows, losses, options, fit_params, plan, wanted):
    """Return estimates from the fits of a plan, where one of a scheme was wanted."""
    held_out = fit_parts(
        estimator, rows, plan, losses, rows.fit_params(fit_params),
        keep=options.keep_predictions, n_jobs=options.n_jobs,
    )  # fmt: skip
    method = plan.scheme.name
    if options.n_repeats > 1:
        method = f"{options.n_repeats} x {method}"
    if plan.scheme is not wanted:
        method += f"; not fitted on parts of {wanted.name}"
    base = BolsteredEstimate(
        error=np.nan, resubstitution=np.nan, increment=np.nan, standard_error=np.nan,
        integration_error=0.0, components={}, method=f"auto ({method})", kernel="none",
        loss="", n_fits=plan.n_fits, n_evaluations=held_out.n_evaluations,
        weight=rows.weight, plan=plan.key,
        predictions=held_out.predictions if options.keep_predictions else None,
    )  # fmt: skip
    found = {}
    for loss in losses:
        if isinstance(loss, Score):
            found[loss.name] = _of_score(loss, held_out.scores[loss.name], base)
            continue
        found[loss.name] = _of_losses(
            loss, held_out.losses[loss.name], rows, base,
            frequencies=held_out.frequencies, ratio=_ratio(options, plan.scheme),
        )  # fmt: skip
    return found


def _ratio(options, scheme):
    if options.learning_ratio == "auto" or scheme.learning_ratio == 1.0:
        return scheme.learning_ratio
    return options.learning_ratio


def _of_score(loss, values, base):
    values = np.array(values)
    defined = values[~np.isnan(values)]
    error = -float(defined.mean()) if len(defined) else np.nan
    return replace(base, error=error, components={"hold_out": error}, loss=loss.name)


def _of_losses(loss, losses, rows, base, *, frequencies=None, ratio=1.0):
    """Return the estimate from the rows' mean losses."""
    weight = rows.weight
    hold_out = float(losses @ weight / weight.sum())
    components, error = {"hold_out": hold_out}, hold_out
    n = uncertainty.effective_size(weight)
    if loss.kind == "zero_one":
        least = no_information_error(rows.codes, weight, frequencies)
        components["no_information"] = least
        components["relative_error"] = hold_out / least if least > 0.0 else np.nan
        error = corrected(hold_out, least, ratio)
        spread = uncertainty.zero_one_error(error, n)
    else:
        spread = uncertainty.mean_error(losses, weight)
    if rows.groups is not None:
        # Rows of a group are not independent.
        spread = np.nan
    return replace(
        base, error=error, standard_error=spread, components=components,
        loss=loss.name, losses=losses, is_proportion=loss.kind == "zero_one",
    )  # fmt: skip


def _by_leave_one_out(estimator, rows, losses, fit_params, fitted):
    """Return the estimates for which there is an exact formula."""
    wanted = [
        loss for loss in losses if loss.response == "predict" and rows.codes is None
    ]
    if (
        not wanted
        or fit_params
        or rows.groups is not None
        or not has_formula(estimator)
    ):
        return {}
    exact, n_fits = None, 0
    if fitted is None:
        exact = leave_one_out_unfitted(estimator, rows.table.X, rows.targets)
    if exact is None:
        if fitted is None:
            fitted, n_fits = (
                clone(estimator).fit(rows.table.X, rows.targets_to_fit()),
                1,
            )
        question = Question(fitted, rows.table, rows.targets, rows.weight, wanted)
        exact = leave_one_out(question)
    if exact is None:
        return {}
    base = BolsteredEstimate(
        error=np.nan, resubstitution=np.nan, increment=np.nan, standard_error=np.nan,
        integration_error=0.0, components={}, method="auto (exact leave-one-out)",
        kernel="none", loss="", n_fits=n_fits, n_evaluations=len(rows.targets),
        weight=rows.weight, plan="leave-one-out",
    )  # fmt: skip
    found = {}
    for loss in wanted:
        record = _of_losses(loss, loss(rows.targets, exact.left_out), rows, base)
        own = loss(rows.targets, exact.at_rows)
        found[loss.name] = with_resubstitution(record, own, rows.weight)
    return found


def with_resubstitution(record, own, weight):
    """Add the mean loss at the rows themselves to an estimate."""
    own = float(np.average(own, weights=weight))
    components = {"resubstitution": own, **record.components}
    return replace(
        record, resubstitution=own, increment=record.error - own, components=components
    )
