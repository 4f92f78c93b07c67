"""The practical default: a leave-one-out pool over penalties and virtual weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from skbounds._base import fit_from_scratch, warn_user
from skbounds._chunked_labels import codes_of
from skbounds._collections import Chunks, draw_rows, is_collection, set_names
from skbounds._labels import check_several
from skbounds._sklearn_compat import (
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
)
from skbounds._typing import MatrixLike
from skbounds.smp._base_classifier import BaseSMPClassifier
from skbounds.smp._base_fit import BaseFit, contrasts, fit_base, raw_to_proba
from skbounds.smp._calibration import (
    NULL_WEIGHTS,
    WORST,
    intercept_shift,
    null_losses,
    null_proba,
    shifted_losses,
)
from skbounds.smp._design import Design
from skbounds.smp._folds import (
    fit_quickly,
    held_out_log_proba,
    is_wide,
    spectral_scale,
)
from skbounds.smp._grid import check_grid, feature_scale
from skbounds.smp._laws import ExpectsItsLogLoss
from skbounds.smp._logistic_chunks import (
    Candidates,
    fit_chunks,
    judge_chunks,
    read_chunks,
)
from skbounds.smp._one_step import (
    one_step_fits,
    one_step_leave_one_out_log_proba,
)
from skbounds.smp._pool import pool_leave_one_out_loss, pool_weights
from skbounds.smp._tilts import label_scores, log_normalize, virtual_tilts
from skbounds.smp._virtual import exact_leave_one_out

# Up to this many rows exact and one-step predictions differ noticeably (.01 in
# probability on average at a few hundred rows, 5e-5 at a thousand).
_MAX_EXACT_SAMPLES = 500

# Rows that the unit of the features is found from, where not all are at hand.
_UNIT_ROWS = 20_000
# With more classes virtual observations are left out by default. On letter (26 classes,
# 4 and 12 rows of each) they had no weight, and took two thirds of the time; on vowel
# (11) they lowered the log loss by .04.
_MANY_CLASSES = 20


def default_virtual_weights(n_classes):
    """Return the weights of the virtual observation for a number of classes."""
    weights = np.array([0.0, 0.25, 0.5, 1.0])
    if n_classes > _MANY_CLASSES:
        return weights[:1]
    return weights if n_classes == 2 else weights[[0, 1, 3]]


class SMPLogisticRegressionCV(ExpectsItsLogLoss, BaseSMPClassifier):
    r"""Logistic regression with probabilities pooled by leave-one-out.

    Nothing to tune: the predictor is a linear pool of sample minmax predictors over
    penalties C and weights w of the virtual observation,

    .. math::

        P(y \mid x) = \sum_{C, w} q_{C, w} P_{C, w}(y \mid x), \qquad
        q_{C, w} \propto \exp\Big(\sum_{i=1}^n \log P_{C, w}^{-i}(y_i \mid x_i)\Big),

    where :math:`P_{C, w}(y \mid x) \propto \sigma(y \langle \theta^{(x, y)}_{C, w},
    x\rangle)` and :math:`\theta^{(x, y)}_{C, w}` is the penalised fit to the training
    rows plus the row ``(x, y)`` with weight w. Weight 0 is ordinary logistic
    regression, 1 the sample minmax predictor of :class:`SMPLogisticRegression`, 1/2
    shrinks the log-odds like a Bayesian predictive distribution. Small w is right where
    classes separate well, large w where labels are noisy; the leave-one-out losses,
    which cost no refits, decide, and pooling protects from the noise of that decision.

    Use it in place of :class:`~sklearn.linear_model.LogisticRegressionCV` when
    probabilities matter and data are scarce.

    Read more in the :ref:`User Guide <smp_pool>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    Cs : 'auto', int or array-like of shape (n_cs,), default='auto'
        Inverse penalties, as in :class:`~sklearn.linear_model.LogisticRegression`. An
        integer means that many values of ``logspace(-2, 1)``, or ``logspace(-2, 2)``
        for more than two classes, divided by the mean variance of the features that
        vary: the unit of all features together does not matter, that of each does.
        ``'auto'`` is 7, or 9 for more than two classes. An array is taken as it is.

        .. versionchanged:: 0.2
           Integers used to mean the same grid whatever the unit of the features.

    virtual_weights : 'auto' or array-like of shape (n_weights,), default='auto'
        Weights of the virtual observation, in [0, 1]. ``'auto'`` is (0, .25, .5, 1),
        without .5 for more than two classes, and only 0 for more than 20: a virtual
        fit per label costs the fourth power of their number, and had no weight in the
        pool there.

    calibrate : {'pool', 'intercept', 'none'}, default='pool'
        What is done about the rate of the classes, which virtual observations pull
        towards even. ``'pool'``: two classes have further candidates with their
        log-odds shifted so that leave-one-out probabilities sum to the number of ones,
        and all problems two that do not look at the features; ``'intercept'``: all
        candidates are shifted (two classes), so that the mean probability is that of
        the training rows, at some price in log loss; ``'none'``: the plain candidates.
        Models without an intercept have only these.

        .. versionadded:: 0.2

    aggregation : {'pool', 'best'}, default='pool'
        Whether to average all candidates or to use the best one alone. Candidates below
        a thousandth of the largest weight are left out of the pool.

    learning_rate : float, default=1.0
        Factor of the leave-one-out losses in the weights. 1 is the natural value for
        the log loss; smaller values pool more evenly.

    loo : {'auto', 'one-step', 'exact', 'folds'}, default='auto'
        How the leave-one-out losses are computed: from one Newton step per row out of
        the fit to all rows, or by solving the left-out problems. The former is faster
        and, with small penalties on nearly separable data, the safer choice.
        ``'folds'``: held-out losses of five folds instead, without virtual
        observations, and penalties in the unit of the features' main directions.
        ``'auto'`` is that for more than 500 rows and more features than rows and than
        2000, else ``'one-step'``.

    method : {'auto', 'exact', 'one-step'}, default='auto'
        How virtual fits of predicted rows are computed, as in
        :class:`SMPLogisticRegression`. 'auto' is 'exact' for two classes and at most
        500 training rows, where it matters, and otherwise 'one-step'.

    fit_intercept : bool, default=True
        Whether to add an intercept.

    penalize_intercept : bool, default=False
        Whether the penalty includes the intercept.

    intercept_scaling : float, default=1.0
        Value of the constant feature when ``penalize_intercept=True``.

    class_weight : dict or 'balanced', default=None
        Factors of the rows' weights per class, rescaled so that the weights keep their
        sum. 'balanced': in inverse proportion to the weights of the classes. Predicted
        are then the probabilities of a population with classes in these proportions.

    tol : float, default=1e-10
        Accuracy of the log-odds of exact virtual fits.

    max_iter : int, default=100
        Largest number of Newton steps of a fit, and a tenth of that of the steps of
        L-BFGS with ``loo='folds'``.

    n_jobs : int, default=None
        Threads over blocks of predicted (or left-out) rows of exact virtual fits. None
        means 1.

    verbose : int, default=0
        Positive: print a line per value of C.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    Cs_ : ndarray of shape (n_cs,)
        Inverse penalties.

    virtual_weights_ : ndarray of shape (n_weights,)
        Weights of the virtual observation.

    weights_ : ndarray of shape (n_cs, n_weights)
        Weights of the candidates in the pool; with `null_weights_` they sum to one.

    shifted_weights_ : ndarray of shape (n_cs, n_weights)
        The part of `weights_` that is on candidates with shifted log-odds.

    null_weights_ : ndarray of shape (2,)
        Weights of the candidates that do not look at the features; 0 without them.

    loo_log_loss_path_ : ndarray of shape (n_cs, n_weights)
        Leave-one-out log loss (in nats) of each candidate, log-odds not shifted.

    loo_log_loss_ : float
        Leave-one-out log loss of the pool, each row scored by pool weights computed
        without it.

    C_ : float
        Inverse penalty of the best candidate that looks at the features.

    virtual_weight_ : float
        Virtual weight of the best candidate.

    virtual_weight_mean_ : float
        Mean virtual weight under the pool's weights: near 0 where the plug-in
        probabilities can be trusted.

    method_ : str
        'exact' or 'one-step'.

    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the ordinary fit with ``C_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Its intercept.

    n_iter_ : int
        Largest number of Newton steps over the values of C.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    SMPLogisticRegression : One penalty and virtual weight, with a risk certificate.
    sklearn.linear_model.LogisticRegressionCV : Selects C by cross-validation.

    Notes
    -----
    On the leave-one-out sample the pool is never worse than the best candidate by more
    than the logarithm of their number by n (51 candidates by default, for two classes):
    this is a deterministic inequality, not a bound on the loss of new data.

    Fitting costs one warm-started Newton fit per C. The leave-one-out losses take the
    leverages, O(n d^2) per C, and scalar equations for two classes, or systems of size
    ``K - 1`` for K > 2, one for every row, label, C and positive weight.

    ``sample_weight`` are repetition counts: integer weights equal repeated rows (with
    ``loo='folds'`` up to where the repeated rows' folds are). Computation and results
    are in float64.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbounds import SMPLogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(
    ...     X, y, train_size=100, random_state=0, stratify=y)
    >>> model = make_pipeline(StandardScaler(), SMPLogisticRegressionCV())
    >>> print(model.fit(X_train, y_train).predict_proba(X_test[:2]).round(2))
    [[0. 1.]
     [1. 0.]]
    >>> print(round(model.score(X_test, y_test), 3))
    0.97
    """

    _takes_collections = True
    _parameter_constraints: dict = {
        "Cs": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            "array-like",
        ],
        "virtual_weights": [StrOptions({"auto"}), "array-like"],
        "calibrate": [StrOptions({"pool", "intercept", "none"})],
        "aggregation": [StrOptions({"pool", "best"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "loo": [StrOptions({"auto", "one-step", "exact", "folds"})],
        "method": [StrOptions({"auto", "exact", "one-step"})],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        Cs: Literal["auto"] | int | ArrayLike = "auto",
        *,
        virtual_weights: Literal["auto"] | ArrayLike = "auto",
        calibrate: Literal["pool", "intercept", "none"] = "pool",
        aggregation: Literal["pool", "best"] = "pool",
        learning_rate: float = 1.0,
        loo: Literal["auto", "one-step", "exact", "folds"] = "auto",
        method: Literal["auto", "exact", "one-step"] = "auto",
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        class_weight: Literal["balanced"] | dict | None = None,
        tol: float = 1e-10,
        max_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.virtual_weights = virtual_weights
        self.calibrate = calibrate
        self.aggregation = aggregation
        self.learning_rate = learning_rate
        self.loo = loo
        self.method = method
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array or dataframe} of shape \
                (n_samples, n_features)
            Training rows. Of a collection of dask sums over its chunks are taken, in 40
            to 60 passes, and the result is that of rows in memory with
            ``method="one-step"``. Beyond 20 000 rows the unit of ``Cs="auto"`` is that
            of some of them.

            .. versionchanged:: 0.2
               Collections of dask are not made into arrays.

        y : array-like or dask collection of shape (n_samples,)
            Class labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows, not necessarily integers.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        virtual_weights = self._check_virtual_weights()
        if is_collection(X):
            return self._fit_chunks(X, y, sample_weight, virtual_weights)
        X, codes, weight, classes = self._validate_training(X, y, sample_weight)
        folds = self._uses_folds(X)
        if folds:
            virtual_weights = np.zeros(1)
        elif virtual_weights is None:
            virtual_weights = default_virtual_weights(len(classes))
        Cs, scale = self._grid(X, weight, len(classes), folds)
        scaled = X / scale if scale != 1.0 else X
        if folds and sparse.issparse(X):
            # As they are: their span would be dense.
            intercept = 1.0 if self.fit_intercept else 0.0
            if self.penalize_intercept:
                intercept *= self.intercept_scaling
            design = Design(X.shape[1], intercept=intercept)
            design.intercept_penalized = self.penalize_intercept
        else:
            design = self._make_design(scaled, weight)
        if self.penalize_intercept:
            # Its penalty is that of the features in their own unit.
            design.intercept /= scale
        design.scale = scale
        Z, penalized = design.transform(X), design.penalized()

        judge = self._judge_by_folds if folds else self._judge_by_leave_one_out
        losses, shifted, shifts, fits = judge(
            Z, codes, weight, penalized, len(classes), Cs, virtual_weights
        )

        self._pool(
            losses, shifted, shifts, codes, weight, len(classes), virtual_weights
        )
        shape = losses.shape[:2]
        self.loo_log_loss_path_ = losses @ weight / weight.sum()
        best = np.argmin(self.loo_log_loss_path_)
        if self.aggregation == "best" and self.weights_.any():
            best = np.argmax(self.weights_)
        best, best_weight = np.unravel_index(best, shape)
        if folds:
            fits = self._refit(
                Z, codes, weight, penalized, len(classes), Cs, self.weights_
            )
        self.method_ = self.method
        if folds:
            self.method_ = "one-step"
        elif self.method == "auto":
            exact = len(classes) == 2 and len(codes) <= _MAX_EXACT_SAMPLES
            self.method_ = "exact" if exact else "one-step"

        self._training_ = {"Z": Z, "weight": weight} if self.method_ == "exact" else {}
        return self._set_fits(
            fits, design, classes, Cs, scale, virtual_weights, best, best_weight
        )

    def _fit_chunks(self, X, y, sample_weight, virtual_weights):
        """Fit a collection of dask, by sums over chunks."""
        if self.method == "exact" or self.loo in ("exact", "folds"):
            raise ValueError(
                "X is a collection of dask, of which sums over rows are taken: method "
                "must be 'auto' or 'one-step', and loo too; got method="
                f"{self.method!r} and loo={self.loo!r}."
            )
        chunks = Chunks(X, y, sample_weight, target="labels")
        set_names(self, chunks)
        plain = self.fit_intercept and not self.penalize_intercept
        grid = []

        def make(mean, classes, factors):
            Cs, scale = self._grid_of_chunks(chunks, classes, factors)
            grid[:] = Cs, scale
            center = mean / scale if plain and mean is not None else None
            design = Design(chunks.n_features, center=center, scale=scale)
            if self.fit_intercept:
                # Its penalty is that of the features in their own unit.
                own = 1.0 if plain else float(self.intercept_scaling)
                design.intercept = own / (scale if self.penalize_intercept else 1.0)
                design.intercept_penalized = not plain
            return design

        data = read_chunks(chunks, make, self.class_weight)
        Cs, scale = grid
        classes, design = data.rows.classes, data.rows.design
        check_several(classes, type(self).__name__)
        if virtual_weights is None:
            virtual_weights = default_virtual_weights(len(classes))
        penalized, fits, theta = design.penalized(), [None] * len(Cs), None
        for index in np.argsort(Cs, kind="stable"):
            base, _ = fit_chunks(
                data, penalized / Cs[index], theta, max_iter=self.max_iter
            )
            theta, fits[index] = base.theta, base
        shape = (len(Cs), len(virtual_weights))
        plain_ones, movable, nulls = self._masks(virtual_weights, shape, len(classes))
        candidates = Candidates(
            fits, virtual_weights, plain_ones, movable, nulls, np.zeros(shape),
            np.zeros(shape), data.counts,
        )  # fmt: skip
        extra = 8 * len(classes) * shape[0] * shape[1]
        data.rows = replace(data.rows, extra=extra)
        candidates, path, pooled, self.loo_log_loss_ = judge_chunks(
            data, candidates, learning_rate=self.learning_rate,
            aggregation=self.aggregation,
        )  # fmt: skip
        self._set_pool(
            pooled, plain_ones, movable, nulls, candidates.shifts, data.counts
        )
        self.loo_log_loss_path_ = path
        best = np.argmin(path)
        if self.aggregation == "best" and self.weights_.any():
            best = np.argmax(self.weights_)
        best, best_weight = np.unravel_index(best, shape)
        self._extent_ = data.extent
        self.method_, self._training_ = "one-step", {}
        return self._set_fits(
            fits, design, classes, Cs, scale, virtual_weights, best, best_weight
        )

    def _grid_of_chunks(self, chunks, classes, factors):
        """Return the penalties and the unit, by some of the rows if there are many."""
        numbers = draw_rows(chunks, 0, _UNIT_ROWS + 1)
        X, y, weight = chunks.take(numbers)
        if weight is None or len(numbers) > _UNIT_ROWS:
            # Drawn in proportion to the weights.
            weight = np.ones(len(numbers))
        weight = weight * factors[codes_of(y, classes)]
        return self._grid(X, weight, len(classes), False)

    def _set_fits(
        self, fits, design, classes, Cs, scale, virtual_weights, best, best_weight
    ):
        self._design_ = vars(design)
        kept = ("n_classes", "penalty", "theta", "inv_factor")
        self._fits_ = [
            {name: getattr(fit, name) for name in kept}
            if fit is not None and self.weights_[index].any()
            else None
            for index, fit in enumerate(fits)
        ]
        self.classes_ = classes
        with np.errstate(over="ignore", divide="ignore"):
            Cs = Cs / scale / scale
        limits = np.finfo(float)
        self.Cs_ = Cs = np.clip(Cs, limits.tiny, limits.max)
        self.virtual_weights_ = virtual_weights
        self.C_ = float(Cs[best])
        self.virtual_weight_ = float(virtual_weights[best_weight])
        self.virtual_weight_mean_ = float(np.sum(self.weights_ @ virtual_weights))
        self.coef_, self.intercept_ = design.to_features(fits[best].class_theta())
        self.n_iter_ = max(fit.n_iter for fit in fits if fit is not None)
        self._warn_of_an_end()
        return self

    def _masks(self, virtual_weights, shape, n_classes):
        """Return which candidates there are: plain, shifted, and null ones."""
        movable = np.broadcast_to(virtual_weights > 0, shape)
        movable = movable & self._shifts(n_classes)
        plain = np.ones(shape, bool)
        if self.calibrate == "intercept":
            plain = ~movable
        return plain, movable, NULL_WEIGHTS if self._has_nulls() else ()

    def _pool(self, losses, shifted, shifts, codes, weight, n_classes, virtual_weights):
        """Weigh candidates as they are, with shifted log-odds, and without features."""
        plain, movable, nulls = self._masks(
            virtual_weights, losses.shape[:2], n_classes
        )
        flat = [losses[plain], shifted[movable]]
        flat += [null_losses(codes, weight, n_classes, added)[None] for added in nulls]
        # What could not be computed is no candidate.
        flat = np.nan_to_num(np.concatenate(flat), nan=WORST, posinf=WORST)
        options = (weight, self.learning_rate, self.aggregation)
        counts = np.bincount(codes, weights=weight, minlength=n_classes)
        pooled = pool_weights(flat, *options)
        self._set_pool(pooled, plain, movable, nulls, shifts, counts)
        self.loo_log_loss_ = pool_leave_one_out_loss(flat, *options)

    def _set_pool(self, pooled, plain, movable, nulls, shifts, counts):
        """Set the weights of all candidates."""
        shape = plain.shape
        self._plain_weights_, self.shifted_weights_ = np.zeros(shape), np.zeros(shape)
        self.null_weights_ = np.zeros(len(NULL_WEIGHTS))
        ends = np.cumsum([plain.sum(), movable.sum()])
        parts = np.split(pooled, ends)
        self._plain_weights_[plain], self.shifted_weights_[movable] = parts[:2]
        self.null_weights_[: len(nulls)] = parts[2]
        self.weights_ = self._plain_weights_ + self.shifted_weights_
        self._shifts_ = shifts
        self._nulls_ = np.array([null_proba(counts, added) for added in NULL_WEIGHTS])

    def _judge_by_leave_one_out(
        self, Z, codes, weight, penalized, n_classes, Cs, virtual_weights
    ):
        """Return losses, those with shifted log-odds, the shifts, and a fit per C."""
        losses = np.empty((len(Cs), len(virtual_weights), len(codes)))
        shifted, shifts = np.empty_like(losses), np.zeros(losses.shape[:2])
        fits = [None] * len(Cs)
        base = None
        for index in np.argsort(Cs, kind="stable"):
            base = fit_base(
                Z,
                codes,
                weight,
                penalized / Cs[index],
                n_classes,
                near=base,
                max_iter=self.max_iter,
            )
            log_proba = self._leave_one_out(base, codes, virtual_weights)
            losses[index] = -log_proba[np.arange(len(codes)), :, codes].T
            if self._shifts(n_classes):
                for m in np.flatnonzero(virtual_weights > 0):
                    log_odds = log_proba[:, m, 1] - log_proba[:, m, 0]
                    shift = intercept_shift(log_odds, codes, weight)
                    shifts[index, m] = shift
                    shifted[index, m] = shifted_losses(log_odds, codes, weight, shift)
            fits[index] = base
            self._tell(Cs[index], base.n_iter, losses[index] @ weight / weight.sum())
        return losses, shifted, shifts, fits

    def _judge_by_folds(
        self, Z, codes, weight, penalized, n_classes, Cs, virtual_weights
    ):
        """Return the same from held-out folds, without fits."""
        log_proba = held_out_log_proba(Z, codes, weight, penalized, n_classes, Cs)
        losses = -log_proba[:, np.arange(len(codes)), codes][:, None, :]
        return (
            losses,
            np.empty_like(losses),
            np.zeros(losses.shape[:2]),
            [None] * len(Cs),
        )

    def _refit(self, Z, codes, weight, penalized, n_classes, Cs, weights):
        """Return fits to all rows of the penalties that count, and of the best."""
        fits = [None] * len(Cs)
        kept = weights.any(axis=1)
        kept[np.argmin(self.loo_log_loss_path_[:, 0])] = True
        theta = np.zeros((contrasts(n_classes).shape[1], Z.shape[1]))
        for index in np.argsort(Cs, kind="stable"):
            if not kept[index]:
                continue
            penalty = penalized / Cs[index]
            theta, steps, done = fit_quickly(
                Z, codes, weight, penalty, n_classes, theta, max_iter=10 * self.max_iter
            )
            if not done:
                warn_user(
                    f"L-BFGS did not converge in {steps} steps for C={Cs[index]:.3g} "
                    "(in the features' unit); increase max_iter or scale the features.",
                    ConvergenceWarning,
                )
            fits[index] = BaseFit(n_classes, penalty, theta, np.zeros((0, 0)), steps)
            self._tell(Cs[index], steps, self.loo_log_loss_path_[index])
        return fits

    def _tell(self, C, n_iter, path):
        if self.verbose:
            print(
                f"[SMPLogisticRegressionCV] C={C:.3g}: {n_iter} steps, held-out log "
                f"loss {path.round(4)}"
            )

    def _uses_folds(self, X):
        """Whether penalties are judged by folds instead of leave-one-out."""
        if self.loo == "folds":
            if not isinstance(self.virtual_weights, str) and np.any(
                np.asarray(self.virtual_weights, dtype=float) > 0
            ):
                raise ValueError(
                    "loo='folds' is for virtual_weights=[0] (or 'auto'); got "
                    f"{self.virtual_weights!r}."
                )
            return True
        wide = self.loo == "auto" and isinstance(self.virtual_weights, str)
        return wide and is_wide(X)

    def _check_virtual_weights(self):
        """Return the weights of the virtual observation, None for the default ones."""
        if isinstance(self.virtual_weights, str):
            return None
        try:
            virtual_weights = np.asarray(self.virtual_weights, dtype=float)
        except ValueError:
            virtual_weights = np.empty(0)
        if virtual_weights.ndim != 1 or len(virtual_weights) == 0:
            raise ValueError(
                "virtual_weights must be a non-empty 1-d array of numbers; "
                f"got {self.virtual_weights!r}."
            )
        if not ((virtual_weights >= 0) & (virtual_weights <= 1)).all():
            raise ValueError(
                f"virtual_weights must lie in [0, 1]; got {self.virtual_weights!r}."
            )
        return virtual_weights

    def _grid(self, X, weight, n_classes, folds):
        """Return the inverse penalties, and the unit of the features that they are for.

        The unit is 1 where the penalties were given.
        """
        Cs = self.Cs
        if isinstance(Cs, str):
            Cs = 7 if n_classes == 2 else 9
        grid = check_grid(Cs, "Cs", decades=(-2, 1 if n_classes == 2 else 2))
        if not isinstance(Cs, Integral):
            return grid, 1.0
        scale = spectral_scale if folds else feature_scale
        return grid, scale(X, weight, centred=self.fit_intercept)

    def _shifts(self, n_classes):
        """Whether there are candidates with shifted log-odds."""
        return self.calibrate != "none" and self.fit_intercept and n_classes == 2

    def _has_nulls(self):
        """Whether there are candidates that do not look at the features."""
        return self.calibrate == "pool" and self.fit_intercept

    def _warn_of_an_end(self):
        """Tell that a grid of the user's is too short."""
        if isinstance(self.Cs, str | Integral) or len(self.Cs_) < 2:
            return
        for end, name in [
            (self.Cs_.argmin(), "smaller"),
            (self.Cs_.argmax(), "larger"),
        ]:
            if self.weights_[end].sum() > 0.5:
                warn_user(
                    f"More than half of the pool's weight is on C={self.Cs_[end]:.3g}, "
                    f"an end of Cs: include {name} values.",
                )

    def _doubles_per_row(self):
        return 8 * len(self.classes_) ** 2 * len(self.virtual_weights_)

    def _leave_one_out(self, base, codes, virtual_weights):
        """Return leave-one-out log probabilities, (n_samples, n_weights, K)."""
        n_samples = len(codes)
        removed = np.minimum(base.weight, 1.0)
        if self.loo != "exact":
            return one_step_leave_one_out_log_proba(
                base, codes, removed, virtual_weights
            )
        raw = []
        for virtual_weight in virtual_weights:
            fits = exact_leave_one_out(
                base,
                codes,
                removed,
                np.full(n_samples, virtual_weight),
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
            )
            self._warn_unconverged(fits.n_failed, fits.squared_norm.size)
            raw.append(fits.raw)
        return log_normalize(label_scores(np.stack(raw, axis=1)))[0]

    def _candidates(self, features):
        """Yield what the pool needs of each C: weights, shifts and raw predictions.

        Weights of plain and of shifted candidates, and the shifts, (n_weights,); raw
        predictions of the virtual fits, (n_rows, n_weights, L, 1 or K).
        """
        n_rows = features.shape[0]
        for index, state in enumerate(self._fits_):
            if state is None:
                continue
            base = BaseFit(**state)
            used = self.weights_[index] > 0
            added = self.virtual_weights_[used]
            positive = added > 0
            slope, target = virtual_tilts(n_rows, added[positive], base.n_classes)
            if not positive.any():
                raw = np.empty(target.shape)
            elif self.method_ == "one-step":
                raw, _ = one_step_fits(base, features, slope, target, need_norm=False)
            else:
                base.Z, base.weight = self._training_["Z"], self._training_["weight"]
                base.proba = raw_to_proba(base.raw(base.Z))
                raw, _ = self._virtual_fits(base, features, slope, target)
            n_raw = target.shape[2]
            plug_in = base.raw(features).T[:, None, None, :]
            every = np.empty((n_rows, len(added), base.n_classes, n_raw))
            every[:, ~positive] = plug_in
            every[:, positive] = raw.reshape(n_rows, -1, base.n_classes, n_raw)
            yield (
                self._plain_weights_[index][used],
                self.shifted_weights_[index][used],
                self._shifts_[index][used],
                every,
            )

    def _log_proba(self, features):
        pooled = np.full((features.shape[0], len(self.classes_)), -np.inf)
        with np.errstate(divide="ignore"):
            logarithms = np.log(self.null_weights_)
        for weight, proba in zip(logarithms, self._nulls_, strict=True):
            pooled = np.logaddexp(pooled, weight + np.log(proba))
        for plain, shifted, shifts, raw in self._candidates(features):
            log_proba, _ = log_normalize(label_scores(raw))
            parts = [(plain, log_proba)]
            if shifted.any():
                log_odds = log_proba[..., 1] - log_proba[..., 0] + shifts
                moved = np.stack([log_expit(-log_odds), log_expit(log_odds)], axis=-1)
                parts.append((shifted, moved))
            for weights, logs in parts:
                kept = weights > 0
                logs = logs[:, kept] + np.log(weights[kept])[:, None]
                pooled = np.logaddexp(pooled, np.logaddexp.reduce(logs, axis=1))
        return log_normalize(pooled)[0]

    def _interval(self, features):
        interval = np.zeros((features.shape[0], 2))
        interval += self.null_weights_ @ self._nulls_[:, 1]
        for plain, shifted, shifts, raw in self._candidates(features):
            raw = raw[:, :, :, 0]
            interval += np.einsum("w,mwl->ml", plain, expit(raw))
            moved = expit(raw + shifts[:, None])
            interval += np.einsum("w,mwl->ml", shifted, moved)
        return interval
