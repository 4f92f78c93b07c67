"""One fit instead of cross-validation: a splitter, a function and a search."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from skbounds._base import fit_from_scratch
from skbounds._sklearn_compat import (
    StrOptions,
    _fit_context,
    check_method_params,
    num_samples,
    routing_enabled,
)
from skbounds.bolstering._blend import warn_of_size
from skbounds.bolstering._leave_one_out import has_formula, leave_one_out_unfitted
from skbounds.bolstering._losses import resolve_losses
from skbounds.bolstering._scorer import BolsteredScorer


def _own_score(error, estimator, y):
    convert = _accuracy if is_classifier(estimator) else _r2
    return convert(error, estimator, y)


def _negative(error, estimator, y):
    return -error


def _accuracy(error, estimator, y):
    return 1.0 - error


def _r2(error, estimator, y):
    variance = np.var(np.asarray(y, dtype=np.float64), axis=0).mean()
    return 1.0 - error / variance if variance > 0.0 else np.nan


# Scikit-learn's names and the loss each is the mean of, with its sign.
_SCORINGS = {
    "accuracy": ("zero_one", _accuracy),
    "neg_mean_squared_error": ("squared", _negative),
    "neg_mean_absolute_error": ("absolute", _negative),
    "neg_log_loss": ("log", _negative),
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
    >>> scorer = BolsteredScorer(categorical_features=[1])
    >>> scores = cross_val_score(
    ...     Ridge(), X[:100], y[:100], scoring=scorer, cv=FullSampleSplit()
    ... )
    >>> scores.shape
    (1,)
    """

    def split(self, X, y=None, groups=None):
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

    def get_n_splits(self, X=None, y=None, groups=None):
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


def bolstered_val_score(estimator, X, y, *, scoring=None, params=None, **options):
    """Estimate an estimator's score on new rows; replaces ``cross_val_score``.

    Fits a clone on all rows and estimates its error with a `BolsteredScorer`.

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
    scoring : {"accuracy", "neg_mean_squared_error", "neg_mean_absolute_error", \
            "neg_log_loss", "r2"}, default=None
        None: the estimator's own score (accuracy or R squared), or minus the loss where
        the option ``loss`` is given. R squared is one minus the mean squared error over
        the variance of y (of all outputs together).
    params : dict, default=None
        Parameters for the estimator's ``fit``; those with an entry per row are cut to
        the rows of a fit.
    **options
        Parameters of `BolsteredScorer`.

    Returns
    -------
    scores : ndarray of shape (1,)
        Greater is better, as from ``cross_val_score``.

    See Also
    --------
    BolsteredScorer : Gives the parts of the estimate, too.

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
    if isinstance(options.get("loss"), (list, tuple)):
        raise ValueError(
            "bolstered_val_score has one score: loss must not be a list; use "
            "BolsteredScorer(loss=...).estimate for several."
        )
    for name in ("sample_weight", "fit_params"):
        if name in options:
            raise TypeError(f"bolstered_val_score takes no {name}; give it in params.")
    if "groups" in options:
        raise ValueError(
            "bolstered_val_score takes no groups: rows are matched across them. Use "
            "cross_val_score with GroupKFold."
        )
    if "cv" in options:
        raise ValueError(
            "bolstered_val_score takes no cv: it estimates from one fit on all rows. "
            "For K-fold cross-validation use cross_val_score with a plain scorer."
        )
    scorer, convert = resolve_scoring(scoring, options)
    X, y = indexable(X, y)
    fit_params = {} if params is None else params
    if routing_enabled():
        router = MetadataRouter(owner="bolstered_val_score").add(
            estimator=estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        fit_params = process_routing(router, "fit", **fit_params).estimator.fit
    if options:
        scorer._validate_params()
    estimator, exact = clone(estimator), None
    if not fit_params and scorer.method == "auto" and scorer.shrink in ("auto", 0):
        exact = leave_one_out_unfitted(estimator, X, y)
    if exact is None:
        estimator.fit(X, y, **check_method_params(X, fit_params))
    [found] = scorer._estimates(
        estimator, X, y, None, fit_params, once=True, validate=False, exact=exact
    ).values()
    return np.array([convert(found.error, estimator, y)])


def resolve_scoring(scoring, options):
    """Return the scorer, and a function from its error to a score.

    Parameters
    ----------
    scoring : str or None
    options : dict
        Parameters of `BolsteredScorer`.

    Returns
    -------
    scorer : BolsteredScorer
    convert : callable
        ``convert(error, estimator, y)``.
    """
    loss = options.get("loss", "auto")
    chosen = not (isinstance(loss, str) and loss == "auto")
    if scoring is None:
        if chosen:
            return BolsteredScorer(**options), _negative
        return BolsteredScorer(**options), _own_score
    if chosen:
        raise ValueError(
            f"scoring and loss cannot both be given; got scoring={scoring!r} and "
            f"loss={loss!r}."
        )
    if scoring == "r2":
        return BolsteredScorer(**{**options, "loss": "squared"}), _r2
    if not isinstance(scoring, str) or scoring not in _SCORINGS:
        raise ValueError(
            f"scoring must be one of {sorted([*_SCORINGS, 'r2'])} or None; got "
            f"{scoring!r}. Only means of a loss per row can be estimated; a loss of "
            "your own can be given as loss=."
        )
    loss, convert = _SCORINGS[scoring]
    return BolsteredScorer(**{**options, "loss": loss}), convert


class _SearchScorer:
    """A scorer that knows what the fits of a search were given."""

    def __init__(self, scorer, convert, fit_params):
        self.scorer, self.convert, self.fit_params = scorer, convert, fit_params

    def __call__(self, estimator, X, y, sample_weight=None):
        """Return the score, or a dict of scores."""
        # Weights are those of the fits, which are passed on without being asked for.
        found = self.scorer._estimates(
            estimator, X, y, None, self.fit_params, in_search=True
        )
        if isinstance(self.scorer.loss, (list, tuple)):
            return {f"neg_{name}": -item.error for name, item in found.items()}
        [item] = found.values()
        return self.convert(item.error, estimator, y)


class BolsteredSearchCV(GridSearchCV):
    """Search a grid of parameters with one fit and a bolstered score per candidate.

    Replaces ``GridSearchCV``. Candidates are compared on the same matched folds and the
    same moved rows, except nearest neighbours: with uniform weights these have exact
    leave-one-out, and with more neighbours than half of the rows four folds, not two.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor.
    param_grid : dict or list of dict
        As in ``GridSearchCV``.
    scoring : {"accuracy", "neg_mean_squared_error", "neg_mean_absolute_error", \
            "neg_log_loss", "r2"}, default=None
        As in `bolstered_val_score`.
    n_jobs : int, default=None
        Number of candidates at a time.
    refit : bool, str or callable, default=True
        As in ``GridSearchCV``; for several losses the name of one, such as
        ``"neg_squared"``.
    verbose : int, default=0
        As in ``GridSearchCV``.
    error_score : 'raise' or numeric, default=np.nan
        Score of a candidate whose fit fails.
    return_train_score : bool, default=False
        There is only one split, with the same rows in both parts: the train scores are
        the test scores again.
    method : {"auto", "x", "y", "xy", "x+posterior", "resub"}, default="auto"
        What is averaged over; "resub" is the resubstitution error.
    kernel : {"auto", "mpe", "mpe_limit", "mm", "mm_exact", "mm_diag"}, float, \
            array-like or callable, default="auto"
        The kernels of "x", "xy" and "x+posterior". "mm": multiples of the identity,
        as wide as makes moved rows as far from their nearest row as rows are from each
        other (approximately; "mm_exact": exactly; "mm_diag": feature by feature).
        "mpe": Algorithm 1 of the paper, a covariance matrix per row; "mpe_limit": its
        limit for large `lam`, in closed form. In classification kernels are chosen
        within classes. A float is a standard deviation (in units of the features' if
        `standardize`). An array, of shape (d, d) or (n_samples, d, d), has covariances
        in units of the columns (of X followed by y for "xy"); a callable returns one,
        given X and y. "auto": "mm" with the median of the chi law in classification;
        "mpe" in regression ("mpe_limit" above 3000 rows).
    loss : {"auto", "squared", "absolute", "zero_one", "log"}, callable or list, \
            default="auto"
        "auto": "zero_one" for classifiers, "squared" for regressors. A callable gets
        ``(y_true, y_pred)`` and returns a number per row. With a list there are
        several results from the same predictions.
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
        Moved rows per row: 4 for ``method="auto"`` (fewer above 100 rows), else 32.
    n_folds : {"auto", 2, 4}, default="auto"
        Matched folds of ``method="auto"``. "auto": 2 below 60 rows and where a class
        has fewer than 8 rows, else 4; 4 in regression.
    n_repeats : int, default=1
        Times that the folds are dealt.
    holdout_scale : float, default=0.7
        Factor of the kernels' widths for rows that are held out.
    n_neighbors : int, default=3
        Nearest other rows whose labels are compared with a row's prediction.
    shrink : float, default="auto"
        Share of the way from the held-out to the bolstered error, in [0, 1]. "auto":
        0.5 for "zero_one", otherwise 0. Other losses than "zero_one" and "squared" are
        not blended.
    clip : float, default=2.0
        The difference of the two counts for at most so many standard errors.
    categorical_features : array-like, default=None
        Mask, numbers or names of columns that are never moved and do not count for
        distances: categories, flags, and numbers with missing values or that must not
        leave their range. Columns that are no numbers are taken as such anyway. None
        warns of columns with few values.
    random_state : int, RandomState instance or None, default=0
        A number makes different estimators comparable: they are moved alike.

    Attributes
    ----------
    cv_results_ : dict
        As in ``GridSearchCV``, with one split.
    best_estimator_ : estimator
        The best candidate, fitted on all rows.
    best_score_ : float
        Its bolstered score.
    best_params_ : dict
    best_index_ : int
    scorer_ : callable
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
    `score` is the plain score on the rows that it is given. A ``GridSearchCV`` with a
    `BolsteredScorer` is different: its ``score`` on other rows takes them for those of
    the fit. With ``method="auto"`` clones are fitted on them; the other methods give
    their smoothed test error.

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
        "scoring": [StrOptions({*_SCORINGS, "r2"}), None],
        **BolsteredScorer._parameter_constraints,
    }

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        verbose=0,
        error_score=np.nan,
        return_train_score=False,
        method="auto",
        kernel="auto",
        loss="auto",
        standardize=True,
        semi=False,
        lam=1.0,
        posterior=None,
        integration="auto",
        n_nodes="auto",
        n_folds="auto",
        n_repeats=1,
        holdout_scale=0.7,
        n_neighbors=3,
        shrink="auto",
        clip=2.0,
        categorical_features=None,
        random_state=0,
    ):
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
        self.holdout_scale = holdout_scale
        self.n_neighbors = n_neighbors
        self.shrink = shrink
        self.clip = clip
        self.categorical_features = categorical_features
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @fit_from_scratch
    def fit(self, X, y=None, **params):
        """Score all candidates and fit the best one.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
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
        search = self._make_search(fit_params)
        if is_classifier(self.estimator) or is_regressor(self.estimator):
            # What is wrong for all candidates is not for error_score to hide.
            search.scoring.scorer._prepare(self.estimator, X, y, None, 0)
        if self.method == "auto" and not has_formula(self.estimator):
            warn_of_size(num_samples(X))
        search.fit(X, y, **params)
        for name, value in vars(search).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        return self

    def score(self, X, y=None, **params):
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
        if scoring is None:
            loss = self._refit_loss()
            if callable(loss):
                weight = params.pop("sample_weight", None)
                if params:
                    raise TypeError(f"a loss of your own takes no {sorted(params)!r}.")
                losses = loss(np.asarray(y), self.best_estimator_.predict(X))
                return -float(np.average(losses, weights=weight))
            scoring = {loss: name for name, (loss, _) in _SCORINGS.items()}.get(loss)
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
        raise ValueError(
            "score needs refit to be the name of one of the losses; got "
            f"refit={self.refit!r}."
        )

    def get_metadata_routing(self):
        """Return how metadata is routed: as by ``GridSearchCV``.

        Returns
        -------
        routing : MetadataRouter
            Requests of the estimator and the scorer.
        """
        return self._make_search({}).get_metadata_routing()

    def _make_search(self, fit_params):
        names = BolsteredScorer._get_param_names()
        options = {name: getattr(self, name) for name in names}
        # All candidates are to be moved alike.
        if not isinstance(self.random_state, Integral):
            rng = check_random_state(self.random_state)
            options["random_state"] = int(rng.randint(2**31 - 1))
        scorer, convert = resolve_scoring(self.scoring, options)
        return GridSearchCV(
            self.estimator,
            self.param_grid,
            scoring=_SearchScorer(scorer, convert, fit_params),
            n_jobs=self.n_jobs,
            refit=self.refit,
            cv=FullSampleSplit(),
            verbose=self.verbose,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Rows are moved with NumPy.
        tags.array_api_support = False
        known = get_tags(self.estimator)
        is_regression = known.estimator_type == "regressor"
        tags.target_tags.multi_output = known.target_tags.multi_output and is_regression
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        named = isinstance(self.kernel, str) and self.kernel != "mm"
        tags.input_tags.sparse &= self.method in ("x", "xy") and not named
        return tags
