"""Kernel boosting of numbers that knows when to stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, d2_tweedie_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skbounds._base import fit_from_scratch
from skbounds._collections import is_collection, lazy_on_collections
from skbounds._magnitude import check_magnitude, check_spread_of_targets
from skbounds._sklearn_compat import (
    Interval,
    Real,
    StrOptions,
    _fit_context,
    available_if,
    check_sample_weight,
)
from skbounds._typing import MatrixLike, RandomState, Splitter
from skbounds._validation import as_numbers, check_array, validate_data
from skbounds.kernel_boost import _chain
from skbounds.kernel_boost._boost import LONGEST_PLAIN, BaseKernelBoost
from skbounds.kernel_boost._chunked import ChunkedRegression
from skbounds.kernel_boost._counts import split_counts
from skbounds.kernel_boost._intervals import cv_plus
from skbounds.kernel_boost._kernels import KernelLike
from skbounds.kernel_boost._loss_solver import LossSolver
from skbounds.kernel_boost._selection import StoppingOptions
from skbounds.kernel_boost._solutions import (
    ChainSolution,
    chain_stages,
    spectral_stages,
)
from skbounds.kernel_boost._squared_solver import SYMMETRIC, SquaredSolver
from skbounds.kernel_boost._stopping import LONGEST

# Squares of targets, summed over the rows, are doubles.
_LARGEST_TARGET, _SMALLEST_SPREAD = 1e151, 1e-153


def _has_intervals(model):
    """Tell whether there are, or may be, intervals."""
    known = not hasattr(model, "dual_coef_") or hasattr(model, "_folds_")
    return model.intervals and known and model.loss in SYMMETRIC


class EarlyStoppedKernelBoost(
    RegressorMixin, ChunkedRegression, SquaredSolver, LossSolver, BaseKernelBoost
):
    """Kernel boosting of numbers that knows when to stop.

    Functional gradient descent in the reproducing kernel Hilbert space,
    f <- f - alpha K (f - y), is followed in closed form along the eigenvectors of the
    kernel matrix, and stopped where more steps would fit noise: by generalised
    cross-validation in no more time than the path itself takes, by the error without
    folds of rows, or by the critical radius of the kernel. It replaces a grid search
    over the penalty of kernel ridge regression; each feature may have a scale of its
    own, losses other than the squared one stand outliers, and intervals are to be had.

    Read more in the :ref:`User Guide <kernel_boost>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "linear", "poly", "polynomial", "sigmoid", \
            "chi2", "additive_chi2", "cosine", "sobolev", "anova", "precomputed"} or \
            callable, default="rbf"
        Scikit-learn's kernels (the sigmoid is positive semidefinite for some data
        only, "additive_chi2" for none, and refused then), ``"precomputed"`` for kernel
        matrices, a callable of two rows, or one of two more. ``"sobolev"``:
        1 + min(x, x'), the product over the features, which must not be negative; with
        one feature its fits are splines, linear between the rows. ``"anova"``: a sum of
        Gaussian kernels of single features and of a Gaussian kernel of all, weighted by
        evidence, for up to 50 features.

        .. versionchanged:: 0.2
           "anova".
    loss : {"squared", "huber", "absolute_error", "quantile", "poisson"}, \
            default="squared"
        What is boosted. "huber": squared up to `delta`, linear beyond, for targets with
        outliers or heavy tails. "absolute_error": the same with a tenth of the scale of
        y. "quantile": the pinball loss of `quantile`, its slope rounded off within a
        tenth of the scale of y. "poisson": counts, whose means are exp(f). Other losses
        than the squared one are for one output.

        .. versionadded:: 0.2
    delta : float or "auto", default="auto"
        Where Huber's loss becomes linear. "auto" is 1.345 times the scale (1.4826 times
        the median absolute deviation) of the residuals of "absolute_error".

        .. versionadded:: 0.2
    quantile : float, default=0.5
        Quantile for ``loss="quantile"``.

        .. versionadded:: 0.2
    gamma : {"auto", "scale"}, float or None, default="auto"
        Width of the kernel. "auto" chooses it by the evidence of low-rank fits on a
        grid around one over the median (squared) distance of rows, for the kernels
        "rbf" and "laplacian", and takes one over the number of features for others;
        it is not what ``SVC`` calls "auto". "scale" is one over the number of features
        times the variance of X, as in ``SVC``; None is one over the number of features.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Parameters of a callable kernel; not read for others.
    relevance : {"auto", "ard"}, array-like of shape (n_features,) or None, \
            default="auto"
        Scales of the features: the kernel is
        exp(-sum_j a_j (x_j - x'_j)^2) on standardised features. "ard": those of
        greatest evidence on up to 500 rows. "auto": the same, kept if without folds of
        rows the least mean squared error is below .95 of that with one width for all;
        for ``kernel="rbf"`` with ``gamma="auto"``, several dense features, and the
        losses "squared", "huber" and "absolute_error", otherwise None. An array has
        the numbers a, which gamma multiplies. None: one width.

        .. versionadded:: 0.2
    clip : bool, default=True
        Where features have scales of their own, new rows are clipped to the range of
        the training rows in each feature: what the function does beyond it was not
        learnt. Where ``relevance="auto"`` kept one width, to a tenth of it more.

        .. versionadded:: 0.2
    learning_rate : float, default=1.0
        Step size in units of the largest one at which no component of the targets
        overshoots, one over the
        largest eigenvalue of the normalised kernel matrix. The stopped fit
        hardly depends on it.
    step_size : float, default=None
        The constant step size alpha of (3.9) instead.
    stopping : {"auto", "gcv", "cv", "cp", "loo", "aicc", "discrepancy", "theory", \
            "validation"} or None, default="auto"
        When to stop. "auto": "cv" for losses that are not squared, else "gcv", but
        earlier where the folds that judged `relevance` err much more there. "gcv":
        least generalised cross-validation, with the degrees of freedom and `df_margin`
        times their root. "cv": least mean loss on rows that were left out, fold by
        fold, on paths in the coordinates of all rows. "cp": Mallows' Cp. "loo": the
        exact leave-one-out error (of all eigenvectors; an approximation beyond 1000
        steps). "aicc": the corrected information criterion. "discrepancy": once the
        residual is as small as the noise. "theory": floor(1 / (alpha delta_n^2)) with
        the critical radius delta_n. "validation": least loss on held-out rows. None:
        after exactly `max_iter` steps. Losses that are not squared have "cv",
        "validation" and None.

        .. versionchanged:: 0.2
           "auto", which for the squared loss is what the default was, and "cv".
    cv : int, cross-validation generator or iterable, default=5
        Folds for ``stopping="cv"`` and `intervals`. A number: rows are dealt out by a
        hash of their values, so that neither their order counts nor whether they are
        repeated or have a weight; copies of rows with a feature of more than ten values
        stay together, unless most have several targets, and from 4000 rows on not all
        folds are left out. Otherwise pairs
        of training and test rows, of which the latter must be disjoint; rows in no test
        set are always learnt from.

        .. versionadded:: 0.2
    intervals : bool, default=False
        Keep what `predict_interval` needs, for one output and the losses "squared",
        "huber" and "absolute_error". There are 10 folds then, whatever the number `cv`
        is; a splitter's test sets must cover all rows.

        .. versionadded:: 0.2
    df_margin : float, default=1.0
        Standard deviations of the degrees of freedom by which "gcv" raises them.
    noise : float, default=None
        Standard deviation of the noise. None estimates it.
    norm : float, default=None
        Hilbert norm of the true function. None estimates it.
    max_iter : int, default=None
        Largest stopping time; the stopping time itself for ``stopping=None``. None is
        no limit, or 10 000 for the plain iteration.
    average : bool, default=False
        Take the average of the iterates, which the theorem is about, instead of the
        last one, which is no worse in practice.
    fit_intercept : bool, default=True
        Start from the best constant instead of 0.
    solver : {"auto", "lowrank", "banded", "eigh", "gd"}, default="auto"
        "eigh" computes all eigenvectors, "lowrank" those of a partial Cholesky factor
        with random pivots, as large as it takes, "banded" is exact for one feature and
        ``kernel="sobolev"`` in O(n log n), "gd" takes the steps one by one. "auto" is
        "banded" where it can be, "eigh" up to 500 rows and for "loo", else
        "lowrank".
    max_rank : int or "auto", default=512
        Largest number of landmarks of "lowrank". Beyond scikit-learn's
        ``working_memory`` the factor is computed again, block by block, instead of
        kept. "auto" goes on from 512 to up to 2048 while `missing_df_` is more than
        half of `df_` and the criterion gains. A ``ConvergenceWarning`` says where it
        still is at the last one.

        .. versionchanged:: 0.2
           "auto", and the warning.
    rank_tol : float, default=0.1
        The rank is large enough once the degrees of freedom that may be missing are at
        most this share of those that were found.
    rank_gain_tol : float, default=0.005
        From rank 128 on, it is also large enough once doubling it improved the
        criterion by less than this share. 0 relies on `rank_tol` alone.
    validation_fraction : float, default=0.1
        Share of the rows that ``stopping="validation"`` holds out.
    n_iter_no_change : int, default=10
        Times of the path without improvement after which ``stopping="validation"`` is
        content.
    random_state : int, RandomState instance or None, default=None
        Seed for the landmarks, those of the search for gamma as well, the validation
        rows, the folds, and the rows that gamma and relevance are found on. With None
        folds and the rows for relevance are the same in every fit, and with up to 500
        rows and a given gamma, or one feature and ``kernel="sobolev"``, all is.
    verbose : int, default=0
        Print the ranks that are tried, and where the path was stopped.

    Attributes
    ----------
    n_iter_ : int or ndarray of shape (n_outputs,)
        The stopping time T; as large as 1e9 for smooth kernels.
    stopping_ : str or None
        The rule that it was stopped by.
    relevance_ : ndarray of shape (n_features,) or None
        a: scales of the standardised features; None for one width.
    anova_weights_ : ndarray of shape (n_features + 1,) or None
        Weights of the parts of ``kernel="anova"``, that of the product last; None for
        other kernels, and where it was not kept.
    delta_ : float or None
        Where Huber's loss becomes linear, for "huber" and "absolute_error".
    step_size_ : float
        The step size alpha.
    gamma_ : float or None
        The kernel's gamma; None for kernel matrices and callables.
    gamma_path_ : dict or None
        ``"gamma"`` and ``"score"``, minus twice the log evidence up to a constant, of
        the search for gamma.
    noise_ : float or ndarray of shape (n_outputs,)
        Standard deviation of the noise: given, or by the residuals and what a fit
        like this takes of pure noise (what it misses of the function counts as noise).
        With "cp", "theory" and "discrepancy", which use it, that of greatest marginal
        likelihood.
    norm_ : float or ndarray of shape (n_outputs,)
        Hilbert norm of the function, given or that of the fit.
    critical_radius_ : float or ndarray of shape (n_outputs,)
        delta_n, at which the localised complexity of the kernel equals the noise: the
        root of (noise / norm) R(delta) = delta^2, on ``eigenvalues_``.
    eigenvalues_ : ndarray of shape (rank,)
        Of the normalised kernel matrix, decreasing, as far as the solver computes them.
    df_ : float or ndarray of shape (n_outputs,)
        Degrees of freedom of the fit, without the intercept.
    rank_ : int
        Number of eigenvalues.
    landmark_indices_ : ndarray of shape (n_landmarks,)
        Rows that the fit is made of.
    residual_trace_ : float
        What the landmarks miss of the trace of the normalised kernel matrix.
    missing_df_ : float
        Upper bound of the degrees of freedom that are missing therefore.
    filter_error_ : float
        Largest error of the rational filter of "banded".
    dual_coef_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_outputs)
        Coefficients of the landmarks.
    intercept_ : float or ndarray of shape (n_outputs,)
        The constant that boosting starts from.
    X_fit_ : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks; the kernel matrix of the rows of positive weight for
        ``kernel="precomputed"``.
    stopping_path_ : dict
        ``"t"``: times; ``"criterion"``: what the rule minimises, or None; ``"df"``;
        ``"train_loss"``: half of the mean squared residual, or the mean of the loss.
        Where a share of the rows was held out, of the others, at times as they are for
        all rows.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    EarlyStoppedKernelBoostClassifier : The same for classes.
    sklearn.kernel_ridge.KernelRidge : Has a penalty instead of a stopping time.

    Notes
    -----
    Several outputs share the eigenvectors; each has a stopping time of its own.

    Theorem 3 of [1]_ bounds the error of the averaged iterate by a multiple of the
    squared critical radius for a function of norm at most one, known noise and a step
    size that is small enough. "theory" uses its rate without its constants.

    References
    ----------
    .. [1] F. Yang, Y. Wei and M. Wainwright, "Early stopping for kernel boosting
       algorithms: a general analysis with localized complexities", IEEE Transactions
       on Information Theory 65, 2019. Numbers of equations and theorems are those of
       chapter 3 of F. Yang's thesis.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from skbounds.kernel_boost import EarlyStoppedKernelBoost
    >>> X, y = make_friedman1(300, noise=1.0, random_state=0)
    >>> model = EarlyStoppedKernelBoost(random_state=0).fit(X[:200], y[:200])
    >>> print(f"{model.score(X[200:], y[200:]):.2f}")
    0.95
    """

    _parameter_constraints: dict = {
        **BaseKernelBoost._parameter_constraints,
        "loss": [
            StrOptions({"squared", "huber", "absolute_error", "quantile", "poisson"})
        ],
        "delta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "intervals": ["boolean"],
        "stopping": [
            StrOptions(
                {
                    "auto",
                    "gcv",
                    "cp",
                    "loo",
                    "aicc",
                    "discrepancy",
                    "theory",
                    "validation",
                    "cv",
                }
            ),
            None,
        ],
    }

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        loss: Literal[
            "squared", "huber", "absolute_error", "quantile", "poisson"
        ] = "squared",
        delta: Literal["auto"] | float = "auto",
        quantile: float = 0.5,
        gamma: Literal["auto", "scale"] | float | None = "auto",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict | None = None,
        relevance: Literal["auto", "ard"] | ArrayLike | None = "auto",
        clip: bool = True,
        learning_rate: float = 1.0,
        step_size: float | None = None,
        stopping: Literal[
            "auto",
            "gcv",
            "cv",
            "cp",
            "loo",
            "aicc",
            "discrepancy",
            "theory",
            "validation",
        ]
        | None = "auto",
        cv: int | Iterable | Splitter = 5,
        intervals: bool = False,
        df_margin: float = 1.0,
        noise: float | None = None,
        norm: float | None = None,
        max_iter: int | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        solver: Literal["auto", "lowrank", "banded", "eigh", "gd"] = "auto",
        max_rank: Literal["auto"] | int = 512,
        rank_tol: float = 0.1,
        rank_gain_tol: float = 0.005,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.relevance = relevance
        self.clip = clip
        self.learning_rate = learning_rate
        self.step_size = step_size
        self.stopping = stopping
        self.cv = cv
        self.intervals = intervals
        self.df_margin = df_margin
        self.noise = noise
        self.norm = norm
        self.max_iter = max_iter
        self.average = average
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_rank = max_rank
        self.rank_tol = rank_tol
        self.rank_gain_tol = rank_gain_tol
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: MatrixLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the path and stop it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array or dataframe} of shape \
                (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix. Of a collection of
            dask sums over its chunks are taken, and the rows never are in one place:
            for the squared loss, without intervals, and stopping rules other than
            "loo". The kernel and the landmarks are chosen on some thousands of rows;
            folds are dealt out by the rows' values or numbers, whatever the chunks.
            As few rows as that are fitted in memory.

            .. versionchanged:: 0.2
               Collections of dask are not made into arrays.
        y : array-like or dask collection of shape (n_samples,) or \
                (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers of times that rows count: whole weights equal repetition.
        X_val, y_val : array-like, default=None
            Validation rows for ``stopping="validation"``. Without them a share of the
            training rows is held out, and all are fitted in the end, for the learning
            time that was found.
        sample_weight_val : array-like of shape (n_val_samples,), default=None
            Weights of the validation rows.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are left out together, for ``stopping="cv"`` and
            ``intervals=True``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._check_stopping(X_val, y_val, sample_weight_val, groups)
        if is_collection(X):
            return self._fit_chunks(
                X, y, sample_weight, X_val, y_val, sample_weight_val, groups
            )
        X, y = validate_data(
            self, X, as_numbers(y), multi_output=True,
            y_numeric=True,
            **self._accepts(),
        )  # fmt: skip
        X = self._check_training(X)
        y = self._check_targets(y)
        self._check_relevance(X)
        self._check_loss(y)
        numbers, groups = self._check_folds(X, y, groups)
        X, y, weight, kept = self._keep(X, y, sample_weight)
        rule = self._rule()
        if rule == "loo":
            if (weight != 1.0).any():
                raise ValueError(
                    "stopping='loo' leaves single rows out; sample_weight, numbers of "
                    "rows, is for the other rules."
                )
            if len(y) < 2:
                raise ValueError(
                    f"stopping='loo' needs at least 2 rows; got n_samples={len(y)}."
                )
        one_output = y.ndim == 1
        targets = y.reshape(len(y), -1).astype(np.float64)
        self._warn_of_copies(X, targets, weight)
        rng = self._rng()
        options = self._stopping_options()
        folds = None
        if self._needs_folds():
            folds = self._make_folds(X, targets, weight, kept, rng, numbers, groups)
        held_out = None
        if X_val is not None:
            held_out = self._check_validation(X_val, y_val, sample_weight_val, y, kept)
        train = np.arange(len(y))
        train_weight = weight
        if rule == "validation" and held_out is None:
            train_weight, rest = split_counts(weight, self.validation_fraction, rng)
            train, others = np.flatnonzero(train_weight), np.flatnonzero(rest)
            if not len(train) or not len(others):
                raise ValueError(
                    "stopping='validation' needs a training and a validation row; got "
                    f"n_samples={len(y)} and validation_fraction="
                    f"{self.validation_fraction}."
                )
            part = (
                X[np.ix_(others, train)] if self.kernel == "precomputed" else X[others]
            )
            held_out = part, targets[others], rest[others]
        refits = held_out is not None and X_val is None
        problem = self._problem(
            self._rows_of(X, train), targets[train], train_weight[train], options,
            None if refits else folds,
        )  # fmt: skip
        everything = problem
        if refits:
            everything = self._problem(X, targets, weight, options, folds)
        if self.loss == "squared":
            kernel, gamma_path = self._fit_squared(
                problem, everything, rng, held_out, X, kept, one_output
            )
        else:
            kernel, gamma_path = self._fit_loss(
                problem, everything, rng, held_out, X, kept
            )
        if self.intervals:
            widening = self._widening(kernel, everything.weight.sum())
            self._folds_ = replace(self._folds_, widening=widening)
        self.stopping_ = rule
        self._store_kernel(kernel, gamma_path)
        self._warn_of_limit(self.n_iter_, self._limit_of_times(options))
        streams = self.loss == "squared"
        self._warn_of_rank(len(everything.targets), streams=streams)
        return self

    def _stopping_options(self):
        plain = self.solver == "gd" and self.max_iter is None
        return StoppingOptions(
            stopping=self._rule(),
            df_margin=self.df_margin,
            noise=self.noise,
            norm=self.norm,
            max_iter=LONGEST_PLAIN if plain else self.max_iter,
            patience=self.n_iter_no_change,
            n_offset=int(self.fit_intercept),
        )

    def _widening(self, kernel, n):
        """Return 1 + p / n for p scales of features that were chosen on all n rows.

        Each makes the rows that are left out look better by a share of 1 / n; p is how
        many features as relevant as the most relevant ones have the same relevance.
        """
        if kernel.scale is None or kernel.scale.relevance is None:
            return 1.0
        if not isinstance(self.relevance, str) and kernel.anova is None:
            return 1.0
        chosen = [np.sqrt(kernel.scale.relevance)]
        if kernel.anova is not None:
            chosen.append(kernel.anova.weights)
        return 1.0 + sum(one.sum() ** 2 / (one**2).sum() for one in chosen) / n

    def _limit_of_times(self, options):
        if self.loss != "squared":
            return self._limit()
        return options.max_iter or LONGEST

    def _rule(self):
        """Return the stopping rule: by default one that the loss has."""
        if self.stopping != "auto":
            return self.stopping
        return "gcv" if self.loss == "squared" else "cv"

    def _needs_folds(self):
        # The scale of the residuals is that of a pilot that is stopped so.
        pilot = self.loss == "huber" and self.delta == "auto"
        return self._rule() == "cv" or self.intervals or pilot

    def _wants_intervals(self):
        return self.intervals

    def _check_targets(self, y):
        """Return targets of numbers whose squares are doubles."""
        y = np.asarray(y)
        check_magnitude(y, "y", limit=_LARGEST_TARGET)
        check_spread_of_targets(y, _SMALLEST_SPREAD)
        one_output = self.loss != "squared" or self.intervals
        if one_output and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        return y

    def _fit_squared(self, problem, everything, rng, held_out, X, kept, one_output):
        """Fit the squared loss; return the kernel and the search for gamma."""
        self.delta_ = None
        kernel, gamma_path, found = self._choose_scales(problem, rng, held_out)
        if found is None:
            found = self._solve(problem, kernel, rng, held_out=held_out)
        solution, choice = found
        if everything is not problem:
            solution, choice = self._solve_again(
                everything, kernel, rng, solution, choice, problem.weight.sum()
            )
        self._store(solution, choice, kernel, everything, X, kept, one_output)
        if self.intervals:
            paths = self._fold_paths(solution, everything)
            self._folds_ = paths.at(choice.times[0], 0, everything.offset[0])
        return kernel, gamma_path

    @available_if(_has_intervals)
    @lazy_on_collections
    def predict_interval(self, X: MatrixLike, level: float = 0.9) -> np.ndarray:
        """Return intervals for new targets, by CV+.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.
        level : float, default=0.9
            Share of the targets that the intervals are to cover.

        Returns
        -------
        bounds : ndarray of shape (n_samples, 2)
            Lower and upper bounds; infinite, with a warning, where there are too few
            rows for the level.
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        fits = self._folds_
        if fits.values is None:
            return cv_plus(fits, self._at_landmarks(X, fits.dual) + fits.offset, level)
        x = self._check_rows(X)[:, 0]
        columns = [_chain.evaluate_chain(*one, x)[:, 0] for one in fits.values]
        return cv_plus(fits, np.stack(columns, axis=1) + fits.offset, level)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R^2, or D^2 of the loss for ``"quantile"`` and ``"poisson"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        score : float
            At most 1; 0 for the best constant.
        """
        loss = self._params_["loss"] if hasattr(self, "_params_") else "squared"
        if loss == "quantile":
            return d2_pinball_score(
                y, self.predict(X), sample_weight=sample_weight,
                alpha=self._params_["quantile"],
            )  # fmt: skip
        if loss == "poisson":
            return d2_tweedie_score(
                y, self.predict(X), sample_weight=sample_weight, power=1
            )
        return super().score(X, y, sample_weight)

    @lazy_on_collections
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the targets of rows.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        if "knots" not in self._path_:
            values = self._at_landmarks(X, self.dual_coef_) + self.intercept_
            return self._link(values)
        values = _chain.evaluate_chain(
            self._path_["knots"], self._path_["values"], self._check_rows(X)[:, 0]
        )
        return self._shaped(values) + self.intercept_

    def staged_predict(
        self, X: MatrixLike, t: ArrayLike | None = None
    ) -> Iterator[np.ndarray]:
        """Predict at several stopping times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.
        t : array-like of shape (n_times,), default=None
            Increasing whole numbers of steps. None: the times of ``stopping_path_`` up
            to the stopping time (the longest one with several outputs), and this.

        Yields
        ------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, all outputs at the same time.
        """
        times = self._check_times(t)
        state = self._path_
        if "thetas" in state:
            for values in self._staged_values(X, times):
                yield self._link(values)
            return
        n_outputs = state["means" if "knots" in state else "slopes"].shape[1]
        times = np.repeat(times[:, None], n_outputs, axis=1)
        if "knots" in state:
            x = self._check_rows(X)[:, 0]
            stages = chain_stages(state, x, times)
        else:
            features = self._at_landmarks(X, state["modes"])
            stages = spectral_stages(state, features, times)
        for values in stages:
            yield self._shaped(values) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.loss == "squared" and not self.intervals
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _shaped(self, values):
        """Return one column as a vector where y was one."""
        return values[:, 0] if np.ndim(self.intercept_) == 0 else values

    def _link(self, values):
        """Return predictions: of counts the exponentials of the function's values."""
        return np.exp(values) if self._params_["loss"] == "poisson" else values

    def _check_validation(self, X_val, y_val, sample_weight_val, y, kept):
        X_val = self._check_rows(X_val)
        if self.kernel == "precomputed":
            X_val = X_val[:, kept]
        y_val = check_array(
            as_numbers(y_val, "y_val"), ensure_2d=False, input_name="y_val"
        )
        check_consistent_length(X_val, y_val)
        if y.ndim == 1 and y_val.ndim == 2 and y_val.shape[1] == 1:
            y_val = y_val[:, 0]
        if y_val.shape[1:] != y.shape[1:]:
            raise ValueError(
                f"y_val must have the outputs of y, of shape {y.shape[1:]} a row; got "
                f"{y_val.shape[1:]}."
            )
        if self.loss == "poisson":
            self._check_counts(y_val, "y_val")
        weight = check_sample_weight(sample_weight_val, X_val)
        return X_val, y_val.reshape(len(y_val), -1), weight

    def _store(self, solution, choice, kernel, problem, X, kept, one_output):
        pick = (lambda values: values[0]) if one_output else (lambda values: values)
        times, path = choice.times, choice.path
        dual, df = solution.dual(times), solution.df(times)
        self.dual_coef_ = dual[:, 0] if one_output else dual
        self.intercept_ = float(problem.offset[0]) if one_output else problem.offset
        self._store_factor(solution, solution.path.step_size, kernel, X, kept)
        self._path_ = solution.state()
        if isinstance(solution, ChainSolution):
            self._path_["values"] = solution.values(times)
        whole = times.astype(np.int64)
        self.n_iter_ = int(whole[0]) if one_output else whole
        self.noise_, self.norm_ = pick(choice.noise), pick(choice.norm)
        self.critical_radius_ = pick(choice.radius)
        self.df_ = pick(df)
        self.missing_df_ = float(self.step_size_ * times.max() * self.residual_trace_)
        self.filter_error_ = float(solution.filter_error)
        column = (
            (lambda values: values[:, 0]) if one_output else (lambda values: values)
        )
        self.stopping_path_ = {
            "t": path.times,
            "criterion": None if path.criterion is None else column(path.criterion),
            "df": path.df,
            "train_loss": column(0.5 * path.rss),
        }
