"""Estimates in place of cross-validation: a function, a comparison and a splitter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from skbounds._sklearn_compat import Integral, num_samples, routing_enabled
from skbounds._typing import MatrixLike
from skbounds.bolstering._losses import Loss, Score, score_name
from skbounds.bolstering._parts._estimate import estimate_pair
from skbounds.bolstering._record import BolsteredComparison, compare_estimates
from skbounds.bolstering._scorer import BolsteredScorer, score_key

ScoringLike: TypeAlias = str | Callable | list | tuple | dict | None


def _own_score(error, estimator, y):
    convert = _accuracy if is_classifier(estimator) else _r2
    return convert(error, estimator, y)


def _negative(error, estimator, y):
    return -error


def _accuracy(error, estimator, y):
    return 1.0 - error


def _r2(error, estimator, y):
    variance = np.var(np.asarray(y, dtype=np.float64), axis=0).mean()
    if variance > 0.0:
        return 1.0 - error / variance
    # A constant y, as scikit-learn has it: predicted exactly or not.
    return 1.0 if error == 0.0 else 0.0


# Scikit-learn's names and the loss each is the mean of, with its sign.
MEAN_SCORINGS = {
    "accuracy": ("zero_one", _accuracy),
    "r2": ("squared", _r2),
    "neg_mean_squared_error": ("squared", _negative),
    "neg_mean_absolute_error": ("absolute", _negative),
    "neg_log_loss": ("log", _negative),
    "neg_brier_score": ("brier", _negative),
}


class FullSampleSplit:
    """A splitter with one split: all rows to fit, and the same rows to score.

    For scorers that estimate the error on new rows from the rows that were fitted, such
    as `BolsteredScorer`. With any other scorer this is the error on the training rows.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    See Also
    --------
    BolsteredSearchCV : A search that needs no splitter.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from skbounds.bolstering import BolsteredScorer, FullSampleSplit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = cross_val_score(
    ...     Ridge(), X[:100], y[:100], scoring=BolsteredScorer(), cv=FullSampleSplit()
    ... )
    >>> scores.shape
    (1,)
    """

    def split(
        self, X: MatrixLike, y: Any = None, groups: None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all rows twice.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, for their number.
        y : object, default=None
            Not used.
        groups : None
            Groups cannot be kept apart by one fit on everything.

        Yields
        ------
        train, test : ndarray of int of shape (n_samples,)
            All row numbers.
        """
        if groups is not None:
            raise ValueError(
                "groups cannot be kept apart by FullSampleSplit, whose only split has "
                "all rows in both parts; use GroupKFold with a plain scorer."
            )
        rows = np.arange(num_samples(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1.

        Parameters
        ----------
        X, y, groups : object, default=None
            Not used.

        Returns
        -------
        n_splits : int
            Always 1.
        """
        return 1

    def __repr__(self):
        return "FullSampleSplit()"


class Scoring:
    """What is asked for, as losses and functions from errors to scores.

    Parameters
    ----------
    scoring : str, callable, list, tuple, dict or None
    options : dict
        Parameters of `BolsteredScorer`.

    Attributes
    ----------
    scorer : BolsteredScorer
    several : bool
        Whether there are several scores, by name.
    """

    def __init__(self, scoring, options):
        loss = options.get("loss", "auto")
        chosen = not (isinstance(loss, str) and loss == "auto")
        if scoring is not None and chosen:
            raise ValueError(
                f"scoring and loss cannot both be given; got scoring={scoring!r} and "
                f"loss={loss!r}."
            )
        self.several = isinstance(scoring if not chosen else loss, (list, tuple, dict))
        if scoring is None:
            self.scorer = BolsteredScorer(**options)
            self._convert = _negative if chosen else _own_score
            self._names = None
            return
        named = scoring
        if not self.several:
            named = {"score": scoring}
        elif not isinstance(scoring, dict):
            named = {_name(item): item for item in scoring}
            if len(named) < len(scoring) or not named:
                raise ValueError(
                    f"scoring must name at least one score, and none twice; got "
                    f"{scoring!r}."
                )
        found = {name: _resolve(item) for name, item in named.items()}
        self._names = {name: loss.name for name, (loss, _) in found.items()}
        self._convert = {name: convert for name, (_, convert) in found.items()}
        # Two scores may be of one loss.
        losses = {loss.name: loss for loss, _ in found.values()}
        chosen = list(losses.values())
        self.scorer = BolsteredScorer(**{**options, "loss": chosen})

    def scores(self, found, estimator, y, term="error"):
        """Return scores by name, from estimates by the losses' names.

        Parameters
        ----------
        found : dict of BolsteredEstimate
        estimator : estimator
        y : array-like
        term : {'error', 'hold_out'}
            What of the estimates is a score made of.
        """
        if self._names is None:
            return {
                score_key(item): self._convert(getattr(item, term), estimator, y)
                for item in found.values()
            }
        return {
            name: self._convert[name](getattr(found[loss], term), estimator, y)
            for name, loss in self._names.items()
        }


def _name(item):
    return item if isinstance(item, str) else score_name(item)


def _resolve(item):
    """Return the loss or score that a scoring is of, and the function back to it."""
    if isinstance(item, str) and item in MEAN_SCORINGS:
        loss, convert = MEAN_SCORINGS[item]
        return Loss(loss), convert
    if isinstance(item, str) and item in get_scorer_names():
        return Score(item, get_scorer(item)), _negative
    if callable(item) and not isinstance(item, type):
        # A metric is told apart from a scorer as scikit-learn does.
        check_scoring(_AnyEstimator(), scoring=item)
        return Score(_name(item), item), _negative
    raise ValueError(
        "scoring must be the name of one of scikit-learn's scorers "
        "(sklearn.metrics.get_scorer_names), a scorer, or a list or dict of these; got "
        f"{item!r}. A loss of your own, with a number per row, can be given as loss=."
    )


class _AnyEstimator:
    """Something with the methods that scorers ask for."""

    def fit(self, X, y):
        """Do nothing."""


def bolstered_val_score(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    params: dict | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> np.ndarray | Any:
    """Estimate an estimator's score on new rows; replaces ``cross_val_score``.

    By a `BolsteredScorer`: with the default method, clones are fitted on a few parts of
    the rows only.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor.
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    groups : array-like of shape (n_samples,), default=None
        Rows that are held out together, see `BolsteredScorer.estimate`.
    scoring : str, callable, list, tuple or dict, default=None
        A scorer's name, a scorer ``scorer(estimator, X, y)``, or several, by name.
        "accuracy", "neg_mean_squared_error", "neg_mean_absolute_error",
        "neg_log_loss", "neg_brier_score" and "r2" are means of losses (R squared is one
        minus the mean squared error over the variance of y, of all outputs together).
        Any other score, such as "roc_auc", is computed per fit on the rows that it was
        without, and averaged; fits on whose rows it is not defined are left out, with a
        warning. None: the estimator's own score (accuracy or R squared), or minus the
        loss where the option ``loss`` is given.
    params : dict, default=None
        Parameters for the estimator's ``fit``; those with an entry per row are cut to
        the rows of a fit.
    n_jobs : int, default=None
        Fits at a time, by joblib: processes of this machine, or what
        ``joblib.parallel_config`` names. The result does not depend on it, as long as
        estimators have a ``random_state``.

        .. versionadded:: 0.2
    **options
        Parameters of `BolsteredScorer`.

    Returns
    -------
    scores : ndarray of shape (1,) or dict of these
        Greater is better, as from ``cross_val_score``; a dict by name where several
        were asked for.

    See Also
    --------
    BolsteredScorer : Gives the parts of the estimate, and an interval, too.
    compare_bolstered : Compares two estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbounds.bolstering import bolstered_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0)
    >>> scores = bolstered_val_score(model, X[::3], y[::3])
    >>> bool(0.8 < scores[0] < 1.0)
    True
    """
    plan = Scoring(scoring, _check_options("bolstered_val_score", options, n_jobs))
    estimator, rows, losses, fit_params = _prepare(
        "bolstered_val_score", plan.scorer, estimator, X, y, groups, params
    )
    found = plan.scorer._estimates_unfitted(
        estimator, rows, losses, fit_params, in_search=False, n_jobs=n_jobs
    )
    scores = plan.scores(found, estimator, rows.targets)
    if plan.several:
        return {name: np.array([score]) for name, score in scores.items()}
    [score] = scores.values()
    return np.array([score])


def compare_bolstered(
    estimator_a: Any,
    estimator_b: Any,
    X: MatrixLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    scoring: str | None = None,
    params: dict | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> BolsteredComparison:
    """Compare the errors of two estimators on new rows.

    Both are fitted on the same parts of the rows, and what counts are the differences
    of their losses, row by row.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    estimator_a, estimator_b : estimator
        Two classifiers or two regressors.
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    groups : array-like of shape (n_samples,), default=None
        Not allowed: the variance of a few groups is not known.
    scoring : str, default=None
        One of those that are means of losses, see `bolstered_val_score`.
    params : dict, default=None
        Parameters for the ``fit`` of both.
    n_jobs : int, default=None
        Fits at a time, by joblib: processes of this machine, or what
        ``joblib.parallel_config`` names. The result does not depend on it, as long as
        estimators have a ``random_state``.

        .. versionadded:: 0.2
    **options
        Parameters of `BolsteredScorer`; ``method`` must be "auto".

    Returns
    -------
    comparison : BolsteredComparison
        With ``difference`` (error of the first less that of the second, in units of
        the loss), ``interval(level)`` and ``p_value``.

    See Also
    --------
    bolstered_val_score : The score of one estimator.

    Notes
    -----
    For 0-1 loss the nominal 90 % interval covered the true difference in 90 to 97 of
    100 samples where it was tried, and a significant difference had the wrong sign in
    about one of 100. For other losses it is approximate. The difference may be one of
    the fits on these rows: it says which of two fitted models errs less on new rows,
    not which method is better on other data sets.

    Examples
    --------
    Is a support vector machine better than a tree?

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbounds.bolstering import compare_bolstered
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = make_pipeline(StandardScaler(), SVC())
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> found = compare_bolstered(svc, tree, X[:100], y[:100])
    >>> low, high = found.interval(0.9)
    >>> low < found.difference < high
    True
    """
    if groups is not None:
        raise ValueError(
            "compare_bolstered takes no groups: the variance of a few groups is not "
            "known. Compare the scores of bolstered_val_score(groups=...)."
        )
    plan = Scoring(scoring, _check_options("compare_bolstered", options, n_jobs))
    if plan.several or plan.scorer.method != "auto":
        raise ValueError(
            "compare_bolstered compares one loss with method='auto'; got scoring="
            f"{scoring!r} and method={plan.scorer.method!r}."
        )
    if is_classifier(estimator_a) != is_classifier(estimator_b):
        raise ValueError(
            "compare_bolstered needs two classifiers or two regressors; got "
            f"{estimator_a!r} and {estimator_b!r}."
        )
    plan.scorer._check_question(estimator_b, warn=False)
    _, rows, losses, fit_params = _prepare(
        "compare_bolstered", plan.scorer, estimator_a, X, y, None, params
    )
    [loss] = losses
    if isinstance(loss, Score):
        raise ValueError(
            f"compare_bolstered compares means of losses, which {loss.name!r} is not."
        )
    both = estimate_pair(
        (estimator_a, estimator_b), rows, loss,
        plan.scorer._part_options(n_jobs=n_jobs), fit_params,
    )  # fmt: skip
    return compare_estimates(*both)


def _check_options(name, options, n_jobs):
    if n_jobs is not None and not (isinstance(n_jobs, Integral) and n_jobs):
        raise ValueError(
            f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}."
        )
    for key in ("sample_weight", "fit_params"):
        if key in options:
            raise TypeError(f"{name} takes no {key}; give it in params.")
    if "cv" in options:
        raise ValueError(
            f"{name} takes no cv: the parts that are fitted are part of the method. "
            "For K-fold cross-validation use cross_val_score with a plain scorer."
        )
    return options


def _prepare(name, scorer, estimator, X, y, groups, params):
    """Return the estimator, its checked rows, the losses and what fits get besides."""
    scorer._validate_params()
    losses = scorer._check_question(estimator)
    X, y = indexable(X, y)
    fit_params = {} if params is None else params
    if routing_enabled():
        router = MetadataRouter(owner=name).add(
            estimator=estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        fit_params = process_routing(router, "fit", **fit_params).estimator.fit
    rows = scorer._read(X, y, None, is_classifier(estimator), groups)
    return estimator, rows, losses, fit_params
