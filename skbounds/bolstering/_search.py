"""A search over parameters with an error estimate per candidate."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from skbounds._base import Versioned, fit_from_scratch
from skbounds._callbacks import CallbackSupportMixin, current_task, hand_on
from skbounds._sklearn_compat import _fit_context, is_scorer, routing_enabled
from skbounds._typing import MatrixLike, RandomState
from skbounds.bolstering._losses import Score, resolve_losses
from skbounds.bolstering._parts._estimate import warn_of_rows
from skbounds.bolstering._parts._leave_one_out import has_formula
from skbounds.bolstering._scorer import BolsteredScorer, KernelLike, LossLike, Method
from skbounds.bolstering._val_score import (
    MEAN_SCORINGS,
    FullSampleSplit,
    Scoring,
    ScoringLike,
)

# What candidates are ranked by, beside each of their scores.
_RANKED = "ranked_"


class _Candidate(CallbackSupportMixin, BaseEstimator):
    """A candidate of a search, whose fit is the fits of its estimate.

    Parameters
    ----------
    estimator : estimator
    question : _Question
        What is asked of all candidates.
    """

    def __init__(self, estimator, question):
        self.estimator = estimator
        self.question = question

    def set_params(self, **params):
        """Set parameters of the estimator itself."""
        self.estimator.set_params(**params)
        return self

    def __sklearn_clone__(self):
        return _Candidate(clone(self.estimator), self.question)

    def fit(self, X, y=None):
        """Fit what the estimate needs."""
        self.scores_ = self.question.scores(self.estimator)
        return self


class _Question:
    """What is asked of all candidates: scores on the same parts of the same rows."""

    def __init__(self, plan, rows, losses, fit_params):
        self.plan, self.rows, self.losses = plan, rows, losses
        self.fit_params = fit_params

    def scores(self, estimator):
        """Return the scores of a candidate, and what it is ranked by."""
        plan = self.plan
        found = plan.scorer._estimates_unfitted(
            estimator, self.rows, self.losses, self.fit_params, in_search=True
        )
        y = self.rows.targets
        scores = plan.scores(found, estimator, y)
        by = "hold_out" if plan.scorer.method == "auto" else "error"
        ranked = plan.scores(found, estimator, y, by)
        return scores | {_RANKED + name: value for name, value in ranked.items()}


def _read_scores(candidate, X, y):
    return candidate.scores_


class BolsteredSearchCV(Versioned, GridSearchCV):
    """Search a grid of parameters with a few fits on balanced parts per candidate.

    Replaces ``GridSearchCV``. All candidates are fitted on the same parts of the rows
    (except those that cannot be fitted on so few, see `BolsteredScorer`). They are
    ranked by their errors on held-out rows; the scores are the estimates of the error
    of a fit on all rows.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor.
    param_grid : dict or list of dict
        As in ``GridSearchCV``.
    scoring : str, callable, list, tuple or dict, default=None
        As in `bolstered_val_score`.
    n_jobs : int, default=None
        Number of candidates at a time.
    refit : bool, str or callable, default=True
        As in ``GridSearchCV``; for several scores the name of one, for several losses
        a name such as ``"neg_squared"``.
    verbose : int, default=0
        As in ``GridSearchCV``.
    error_score : 'raise' or numeric, default=np.nan
        Score of a candidate whose fits fail.
    return_train_score : bool, default=False
        There is only one split, of which these are the test scores again.
    method : {"auto", "x", "y", "xy", "x+posterior", "resub"}, default="auto"
        What is averaged over; "resub" is the resubstitution error.
    kernel : {"auto", "mpe", "mpe_limit", "mm", "mm_exact", "mm_diag"}, float, \
            array-like, callable, MomentKernel or SampledKernel, default="auto"
        The kernels of "x", "xy" and "x+posterior". "mm": multiples of the identity,
        as wide as makes moved rows as far from their nearest row as rows are from each
        other (approximately; "mm_exact": exactly; "mm_diag": feature by feature).
        "mpe": Algorithm 1 of the paper, a covariance matrix per row; "mpe_limit": its
        limit for large `lam`, in closed form. In classification kernels are chosen
        within classes. A float is a standard deviation (in units of the features' if
        `standardize`). An array, of shape (d, d) or (n_samples, d, d), has covariances
        in units of the columns (of X followed by y for "xy"); a callable returns one,
        given X and y. Other shapes and families are in `MomentKernel`, any
        other smoothing in `SampledKernel`. "auto": "mm" with the median of the chi law
        in classification; "mpe" in regression ("mpe_limit" above 3000 rows).
    loss : {"auto", "squared", "absolute", "zero_one", "log", "brier"}, callable or \
            list, default="auto"
        "auto": "zero_one" for classifiers, "squared" for regressors. A callable gets
        ``(y_true, y_pred)`` and returns a number per row; a scorer made by
        :func:`~sklearn.metrics.make_scorer` is computed per fit of ``method="auto"`` on
        the rows held out, and averaged. With a list there are several results from
        the same fits, where their rules ask for the same parts.
    standardize : bool, default=True
        Whether distances and kernels are in units of the features' standard deviations.
    semi : bool, default=False
        Count rows that are already misclassified as errors, without moving them
        (semi-bolstered; ``loss="zero_one"``, ``method="x"``).
    lam : float, default=1.0
        Smoothing of "mpe", in units of a density; not read by ``method="auto"``.
    posterior : estimator, default=None
        For "y" and "x+posterior": an estimator with ``predict(X, return_std=True)``,
        or with `predict_proba` in classification, fitted or to be fitted. None: the
        estimator's own, or the flat posterior of a linear model.
    integration : {"auto", "closed", "qmc", "mc"}, default="auto"
        How means over kernels are computed: in closed form, with scrambled Sobol
        sequences (random numbers beyond 50 dimensions), or with random numbers.
        "auto": in closed form where there is one that is faster. Not read by
        ``method="auto"``.
    n_nodes : int, default="auto"
        Moved rows per row; "auto" is 32. Not read by ``method="auto"``.
    n_folds : {"auto", 4, 6}, default="auto"
        Folds of ``method="auto"`` for 0-1 loss: 4 for halves, 6 for two-thirds. "auto":
        4 below 60 rows.
    n_repeats : int, default=1
        Times that the rows are dealt to the folds.
    learning_ratio : float, default="auto"
        Error of a fit on all rows over that of a fit on a part, in (0, 1], where much
        has been learnt. "auto": 0.9 for halves, 0.95 for two-thirds. 0-1 loss only.
    holdout_scale : float, default="deprecated"
        Without effect.

        .. deprecated:: 0.2
    n_neighbors : int, default="deprecated"
        Without effect.

        .. deprecated:: 0.2
    shrink : float, default="deprecated"
        Without effect.

        .. deprecated:: 0.2
    clip : float, default="deprecated"
        Without effect.

        .. deprecated:: 0.2
    categorical_features : array-like, default=None
        Mask, numbers or names of columns that are never moved and do not count for
        distances: categories, flags, and numbers with missing values or that must not
        leave their range. Columns that are no numbers are taken as such anyway. None
        warns of columns with few values where rows are moved.
    random_state : int, RandomState instance or None, default=0
        A number makes different estimators comparable: they get the same parts.

    Attributes
    ----------
    cv_results_ : dict
        As in ``GridSearchCV``, with one split. With ``method="auto"``
        ``rank_test_score`` is by the error on held-out rows, of which
        ``mean_test_score`` is the corrected one.
    best_estimator_ : estimator
        The best candidate, fitted on all rows.
    best_score_ : float
        Its estimated score.
    best_params_ : dict
    best_index_ : int
    scorer_ : BolsteredScorer
    n_splits_ : int
        1.
    refit_time_ : float
        Seconds of the last fit.
    multimetric_ : bool
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BolsteredScorer : What scores the candidates.

    Notes
    -----
    `score` is the plain score on the rows that it is given.

    Choosing the candidate of the best estimate makes its estimate too low, as with
    cross-validation: for the error of what was chosen estimate that of the search, as
    in ``bolstered_val_score(search, X, y)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbounds.bolstering import BolsteredSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = BolsteredSearchCV(
    ...     DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]}
    ... ).fit(X[::3], y[::3])
    >>> search.best_params_["max_depth"] > 1
    True
    """

    _parameter_constraints: dict = {
        **{
            name: GridSearchCV._parameter_constraints[name]
            for name in (
                "estimator",
                "param_grid",
                "n_jobs",
                "refit",
                "verbose",
                "error_score",
                "return_train_score",
            )
        },
        "scoring": [str, callable, list, tuple, dict, None],
        **BolsteredScorer._parameter_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: dict | list[dict],
        *,
        scoring: ScoringLike = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable = True,
        verbose: int = 0,
        error_score: Literal["raise"] | float = np.nan,
        return_train_score: bool = False,
        method: Method = "auto",
        kernel: KernelLike = "auto",
        loss: LossLike = "auto",
        standardize: bool = True,
        semi: bool = False,
        lam: float = 1.0,
        posterior: Any = None,
        integration: Literal["auto", "closed", "qmc", "mc"] = "auto",
        n_nodes: int | Literal["auto"] = "auto",
        n_folds: Literal["auto", 4, 6] = "auto",
        n_repeats: int = 1,
        learning_ratio: float | Literal["auto"] = "auto",
        holdout_scale: float | Literal["deprecated"] = "deprecated",
        n_neighbors: int | Literal["deprecated"] = "deprecated",
        shrink: float | Literal["deprecated"] = "deprecated",
        clip: float | Literal["deprecated"] = "deprecated",
        categorical_features: ArrayLike | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.method = method
        self.kernel = kernel
        self.loss = loss
        self.standardize = standardize
        self.semi = semi
        self.lam = lam
        self.posterior = posterior
        self.integration = integration
        self.n_nodes = n_nodes
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.learning_ratio = learning_ratio
        self.holdout_scale = holdout_scale
        self.n_neighbors = n_neighbors
        self.shrink = shrink
        self.clip = clip
        self.categorical_features = categorical_features
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @fit_from_scratch
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Score all candidates and fit the best one.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        groups : array-like of shape (n_samples,), default=None
            Rows that are held out together, see `BolsteredScorer.estimate`.
        **params : dict
            Parameters for the estimator's ``fit``; those with an entry per row, such as
            weights, are cut to the rows of a fit. Scores are not weighted.

        Returns
        -------
        self : object
            Fitted search.
        """
        fit_params = params
        if routing_enabled():
            fit_params = process_routing(self, "fit", **params).estimator.fit
        plan = Scoring(self.scoring, self._options())
        self._check_refit(plan.several)
        X, y = indexable(X, y)
        classification = is_classifier(self.estimator)
        if not (classification or is_regressor(self.estimator)):
            # The last step may be in the grid, for what it is.
            classification = None
        # What is wrong for all candidates is not for error_score to hide.
        rows = losses = None
        if classification is not None:
            losses = plan.scorer._check_question(self.estimator)
            rows = plan.scorer._read(X, y, None, classification, groups)
        if rows is None:
            question: Any = _LateQuestion(plan, (X, y, groups), fit_params)
        else:
            question = _Question(plan, rows, losses, fit_params)
            if self.method == "auto" and not has_formula(self.estimator):
                warn_of_rows(rows)
        search = GridSearchCV(
            _Candidate(self.estimator, question),
            self.param_grid,
            scoring=_read_scores,
            n_jobs=self.n_jobs,
            refit=False,
            cv=FullSampleSplit(),
            verbose=self.verbose,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
        )
        with hand_on(self, search):
            search.fit(X, y)
        self.n_splits_, self.multimetric_ = 1, plan.several
        self.scorer_ = plan.scorer
        self.cv_results_ = _arrange(search.cv_results_, plan.several)
        self._choose(X, y, fit_params)
        return self

    def _check_refit(self, several):
        """Ask for the score that decides, where there are several."""
        if several and self.refit is not False and not isinstance(self.refit, str):
            if not callable(self.refit):
                raise ValueError(
                    "For several scores, refit must be the name of the one that "
                    f"decides, a callable, or False; got refit={self.refit!r}."
                )

    def _choose(self, X, y, fit_params):
        """Set what is known of the best candidate, and fit it."""
        results = self.cv_results_
        name = self.refit if isinstance(self.refit, str) else "score"
        if callable(self.refit):
            index = self.refit(results)
            if not isinstance(index, Integral):
                raise TypeError("best_index_ returned is not an integer")
            if not 0 <= index < len(results["params"]):
                raise IndexError("best_index_ index out of range")
            self.best_index_ = index
        elif self.multimetric_ and self.refit is False:
            return
        else:
            if f"rank_test_{name}" not in results:
                known = [
                    key.removeprefix("rank_test_")
                    for key in results
                    if key.startswith("rank_test_")
                ]
                raise ValueError(f"refit must be one of {known!r}; got {self.refit!r}.")
            self.best_index_ = int(np.argmin(results[f"rank_test_{name}"]))
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{name}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]
        if self.refit is False:
            return
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        start = time.time()
        task = current_task().begin("refit")
        self.best_estimator_ = best.fit(X, y, **fit_params)
        task.end()
        self.refit_time_ = time.time() - start
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_

    def score(self, X: MatrixLike, y: ArrayLike | None = None, **params: Any) -> float:
        """Return the plain score of the best estimator on some rows.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Rows, usually new ones.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Their targets.
        **params : dict
            Passed on to the scoring.

        Returns
        -------
        score : float
            By `scoring`, by minus the loss (the one named by `refit` if there are
            several), or the estimator's own; never bolstered.
        """
        check_is_fitted(self, "best_estimator_")
        scoring = self.scoring
        if isinstance(scoring, dict):
            scoring = scoring[self._deciding_score()]
        elif isinstance(scoring, (list, tuple)):
            scoring = self._deciding_score()
        elif scoring is None:
            loss = self._refit_loss()
            if isinstance(loss, Score) or is_scorer(loss):
                scorer = getattr(loss, "scorer", loss)
                return scorer(self.best_estimator_, X, y, **params)
            if callable(loss):
                weight = params.pop("sample_weight", None)
                if params:
                    raise TypeError(f"a loss of your own takes no {sorted(params)!r}.")
                losses = loss(np.asarray(y), self.best_estimator_.predict(X))
                return -float(np.average(losses, weights=weight))
            names = {loss: name for name, (loss, _) in MEAN_SCORINGS.items()}
            names["squared"] = "neg_mean_squared_error"
            scoring = names.get(loss)
            if loss == "zero_one":
                return (
                    check_scoring(self.best_estimator_, "accuracy")(
                        self.best_estimator_, X, y, **params
                    )
                    - 1.0
                )
        return check_scoring(self.best_estimator_, scoring)(
            self.best_estimator_, X, y, **params
        )

    def _refit_loss(self):
        """Return the loss that decided."""
        if not isinstance(self.loss, (list, tuple)):
            return self.loss
        for item in resolve_losses(self.loss, is_classifier(self.estimator)):
            if f"neg_{item.name}" == self.refit:
                return item.function or item.name
            if isinstance(item, Score) and item.name == self.refit:
                return item
        raise ValueError(
            "score needs refit to be the name of one of the losses; got "
            f"refit={self.refit!r}."
        )

    def _deciding_score(self):
        """Return the name of the score that decided."""
        if not isinstance(self.refit, str):
            raise ValueError(
                "score needs refit to be the name of one of the scores; got "
                f"refit={self.refit!r}."
            )
        return self.refit

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata is routed: to the fits of the estimator.

        Returns
        -------
        routing : MetadataRouter
            Requests of the estimator.
        """
        return MetadataRouter(owner=self).add(
            estimator=self.estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )

    def _options(self):
        names = BolsteredScorer._get_param_names()
        options = {name: getattr(self, name) for name in names}
        # All candidates are to get the same parts.
        if not isinstance(self.random_state, Integral):
            rng = check_random_state(self.random_state)
            options["random_state"] = int(rng.randint(2**31 - 1))
        return options

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Losses are computed with NumPy.
        tags.array_api_support = False
        known = get_tags(self.estimator)
        is_regression = known.estimator_type == "regressor"
        tags.target_tags.multi_output = known.target_tags.multi_output and is_regression
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        named = isinstance(self.kernel, str) and self.kernel != "mm"
        moved = self.method in ("x", "xy") and not named
        tags.input_tags.sparse &= self.method == "auto" or moved
        return tags


class _LateQuestion(_Question):
    """The question to candidates of which each says itself what kind it is of."""

    def __init__(self, plan, data, fit_params):
        super().__init__(plan, None, None, fit_params)
        self.data = data

    def scores(self, estimator):
        """Return the scores of a candidate, and what it is ranked by."""
        scorer, (X, y, groups) = self.plan.scorer, self.data
        self.losses = scorer._check_question(estimator)
        self.rows = scorer._read(X, y, None, is_classifier(estimator), groups)
        return super().scores(estimator)


def _arrange(results, several):
    """Return a search's results with ranks by what candidates are ranked by."""
    names = [
        key.removeprefix("mean_test_")
        for key in results
        if key.startswith("mean_test_") and not key.startswith(f"mean_test_{_RANKED}")
    ]
    found = {
        key: value
        for key, value in results.items()
        if _RANKED not in key
        and not any(key.endswith((f"_test_{n}", f"_train_{n}")) for n in names)
    }
    for name in names:
        new = name if several else "score"
        for kind in ("test", "train"):
            for key in ("split0", "mean", "std"):
                if f"{key}_{kind}_{name}" in results:
                    found[f"{key}_{kind}_{new}"] = results[f"{key}_{kind}_{name}"]
        ranked = -results[f"mean_test_{_RANKED}{name}"]
        # Candidates that failed come last.
        worst = np.nanmax(ranked, initial=-np.inf) + 1.0
        ranked = np.where(np.isnan(ranked), worst, ranked)
        # Equal errors may differ by the rounding of their sums.
        scale = np.abs(ranked).max()
        ranked = np.round(ranked / (scale if scale > 0.0 else 1.0), 12)
        ranks = rankdata(ranked, method="min").astype(np.int32)
        found[f"rank_test_{new}"] = ranks
    return found
