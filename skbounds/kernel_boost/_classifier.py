"""Kernel boosting of classifiers that know when to stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skbounds._base import fit_from_scratch, warn_user
from skbounds._collections import is_collection, lazy_on_collections
from skbounds._labels import check_labels, check_several, code_labels, validate_labelled
from skbounds._sklearn_compat import StrOptions, _fit_context, check_sample_weight
from skbounds._typing import MatrixLike, RandomState, Splitter
from skbounds._weights import class_factors
from skbounds.kernel_boost._boost import BaseKernelBoost
from skbounds.kernel_boost._chunked_classes import ChunkedClassification
from skbounds.kernel_boost._counts import split_counts
from skbounds.kernel_boost._flow_path import ClassProblem
from skbounds.kernel_boost._flow_solver import FlowSolver
from skbounds.kernel_boost._kernels import KernelLike
from skbounds.kernel_boost._losses import loss_of
from skbounds.kernel_boost._radius import critical_radius


class EarlyStoppedKernelBoostClassifier(
    ClassifierMixin, ChunkedClassification, FlowSolver, BaseKernelBoost
):
    """Kernel boosting of classifiers that knows when to stop.

    Functional gradient descent of the logistic loss (LogitBoost), the softmax loss for
    more than two classes, or the exponential loss (AdaBoost) in a reproducing kernel
    Hilbert space. The path of small steps is followed as a flow with geometric time
    steps, together with those without each of five folds of rows, and stopped where
    the log loss on the rows that were left out is least: cross-validation without
    fitting anything twice.

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
    loss : {"log_loss", "exponential"}, default="log_loss"
        The logistic or softmax loss, or the exponential loss, one class against the
        rest where there are more than two.
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
    class_weight : dict or 'balanced', default=None
        Factors of the rows' weights per class, rescaled so that the weights keep their
        sum. 'balanced': in inverse proportion to the weights of the classes. Predicted
        are then the probabilities of a population with classes in these proportions.
    learning_rate : float, default=1.0
        Step size in units of the largest one at which no component of the targets
        overshoots, one over the
        largest eigenvalue of the normalised kernel matrix and the curvature of the loss
        (1/4, or 1/2 for softmax); for the exponential loss steps are those of the
        logarithm of the risk, in units of one over the largest k(x, x). The stopped fit
        hardly depends on it.
    step_size : float, default=None
        The constant step size alpha of (3.9) instead.
        The steps are taken one by one then, also those of the exponential loss.
    stopping : {"cv", "auto", "alo", "aic", "theory", "validation"} or None, \
            default="cv"
        When to stop. "cv": least log loss on rows that were left out, fold by fold, on
        paths in the coordinates of all rows, and on a quarter of a row more whose label
        is drawn by chance. "aic": least log loss plus (degrees of
        freedom + `df_margin` times their root) / n, where the degrees of freedom are
        those of the curvature along the path. "auto": the same, then the least
        approximate leave-one-out loss among the times around it. "alo": the least
        approximate leave-one-out loss of the whole path (slower). "theory": once m eta
        reaches 1 / delta_n^2, with the curvature m at the class frequencies, the
        learning time eta and the critical radius delta_n. "validation": least log loss
        on held-out rows. None: after exactly `max_iter` steps.

        .. versionchanged:: 0.2
           "cv", the default in place of "auto", which stopped far too early where
           classes are clean.
    cv : int, cross-validation generator or iterable, default=5
        Folds for ``stopping="cv"``. A number: the rows of each class are dealt out by a
        hash of their values, so that neither their order counts nor whether they are
        repeated or have a weight; copies of rows with a feature of more than ten values
        stay together, unless most have several targets, and from 4000 rows on not all
        folds are left out. Otherwise pairs
        of training and test rows, of which the latter must be disjoint; rows in no test
        set are always learnt from.

        .. versionadded:: 0.2
    relevance : {"auto", "ard"}, array-like of shape (n_features,) or None, default=None
        Scales of the features: the kernel is
        exp(-sum_j a_j (x_j - x'_j)^2) on standardised features. "ard": those of
        greatest evidence, for the squared loss on the classes, on up to 500 rows; it
        helps where few features matter and hurts about as often. An array has the
        numbers a, which gamma multiplies. None and "auto": one width for all features.

        .. versionadded:: 0.2
    clip : bool, default=True
        Where features have scales of their own, new rows are clipped to the range of
        the training rows in each feature.

        .. versionadded:: 0.2
    df_margin : float, default=1.0
        Standard deviations of the degrees of freedom by which they are raised.
    noise : float, default=None
        Standard deviation of the working response. None takes that at the class
        frequencies.
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
    solver : {"auto", "lowrank", "eigh", "gd"}, default="auto"
        "eigh" computes all eigenvectors, "lowrank" those of a partial Cholesky factor
        with random pivots, as large as it takes; "gd" is "eigh" with the steps taken
        one by one. "auto" is "eigh" up to 500 rows, else "lowrank". With "gd", a
        `step_size` or ``average=True`` the steps are those of (3.9), otherwise the
        flow, which is within about a percent of them after the first ten or so.
    max_rank : int or "auto", default=512
        Largest number of landmarks of "lowrank". There are fewer, down to 128, where
        a matrix of n rows and so many columns would exceed scikit-learn's
        ``working_memory``; collections of dask have no such limit.
        "auto" goes on from 512 to up to 2048 while `missing_df_` is more than half of
        `df_` and the criterion gains. A ``ConvergenceWarning`` says where it still is
        at the last one.

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
        rows and a given gamma all is.
    verbose : int, default=0
        Print the ranks that are tried, and where the path was stopped.

    Attributes
    ----------
    n_iter_ : int
        The stopping time T; as large as 1e10 for smooth kernels.
    stopping_ : str or None
        The rule that it was stopped by.
    relevance_ : ndarray of shape (n_features,) or None
        a: scales of the standardised features; None for one width.
    anova_weights_ : ndarray of shape (n_features + 1,) or None
        Weights of the parts of ``kernel="anova"``, that of the product last; None for
        other kernels.
    step_size_ : float
        The step size alpha.
    gamma_ : float or None
        The kernel's gamma; None for kernel matrices and callables.
    gamma_path_ : dict or None
        ``"gamma"`` and ``"score"``, minus twice the log evidence up to a constant, of
        the search for gamma.
    noise_ : float
        Standard deviation of the noise, given or estimated.
    norm_ : float
        Hilbert norm of the function, given or that of the fit.
    critical_radius_ : float
        delta_n, at which the localised complexity of the kernel equals the noise: the
        root of (noise / norm) R(delta) = delta^2, on ``eigenvalues_``.
    eigenvalues_ : ndarray of shape (rank,)
        Of the normalised kernel matrix, decreasing, as far as the solver computes them.
    df_ : float
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
        0; as for regression.
    dual_coef_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_classes)
        Coefficients of the landmarks.
    intercept_ : float or ndarray of shape (n_classes,)
        The constant that boosting starts from.
    X_fit_ : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks; the kernel matrix of the rows of positive weight for
        ``kernel="precomputed"``.
    stopping_path_ : dict
        ``"t"``: times; ``"criterion"``: what the rule minimises, or None; ``"df"``;
        ``"train_loss"``: the mean loss. With "cv" also ``"penalty"``, what the row with
        a label drawn by chance adds to the criterion for the choice.
        Where a share of the rows was held out, of the others, at times as they are for
        all rows.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    EarlyStoppedKernelBoost : The same for numbers.

    Notes
    -----
    Probabilities are those of the loss: expit(f) for the logistic, softmax(f) for the
    softmax and expit(2 f) for the exponential loss, divided by their sum for more than
    two classes.

    References
    ----------
    .. [1] F. Yang, Y. Wei and M. Wainwright, "Early stopping for kernel boosting
       algorithms: a general analysis with localized complexities", IEEE Transactions
       on Information Theory 65, 2019. Numbers of equations and theorems are those of
       chapter 3 of F. Yang's thesis.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from skbounds.kernel_boost import EarlyStoppedKernelBoostClassifier
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = EarlyStoppedKernelBoostClassifier(random_state=0)
    >>> print(f"{model.fit(X[:200], y[:200]).score(X[200:], y[200:]):.2f}")
    0.91
    """

    _parameter_constraints: dict = {
        **BaseKernelBoost._parameter_constraints,
        "loss": [StrOptions({"log_loss", "exponential"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "stopping": [
            StrOptions({"cv", "auto", "alo", "aic", "theory", "validation"}),
            None,
        ],
    }

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        loss: Literal["log_loss", "exponential"] = "log_loss",
        gamma: Literal["auto", "scale"] | float | None = "auto",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict | None = None,
        class_weight: Literal["balanced"] | dict | None = None,
        learning_rate: float = 1.0,
        step_size: float | None = None,
        stopping: Literal["cv", "auto", "alo", "aic", "theory", "validation"]
        | None = "cv",
        cv: int | Iterable | Splitter = 5,
        relevance: Literal["auto", "ard"] | ArrayLike | None = None,
        clip: bool = True,
        df_margin: float = 1.0,
        noise: float | None = None,
        norm: float | None = None,
        max_iter: int | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        solver: Literal["auto", "lowrank", "eigh", "gd"] = "auto",
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
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.learning_rate = learning_rate
        self.step_size = step_size
        self.stopping = stopping
        self.cv = cv
        self.relevance = relevance
        self.clip = clip
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
            dask sums over its chunks are taken, a pass for each evaluation of the
            gradient: without plain steps, and for stopping rules other than "auto" and
            "alo". The kernel and the landmarks are chosen on some
            thousands of rows; folds are dealt out by the rows' values or numbers,
            whatever the chunks. As few rows as that are fitted in memory.

            .. versionchanged:: 0.2
               Collections of dask are not made into arrays.
        y : array-like or dask collection of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers of times that rows count: whole weights equal repetition.
        X_val, y_val : array-like, default=None
            Validation rows for ``stopping="validation"``. Without them a share of the
            training rows is held out, and all are fitted in the end, for the learning
            time that was found.
        sample_weight_val : array-like of shape (n_val_samples,), default=None
            Weights of the validation rows.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are left out together, for ``stopping="cv"``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._check_stopping(X_val, y_val, sample_weight_val, groups)
        if self.solver == "banded":
            raise ValueError(
                "solver='banded' is for the squared loss; choose 'auto', 'lowrank', "
                "'eigh' or 'gd'."
            )
        if is_collection(X):
            return self._fit_chunks(
                X, y, sample_weight, X_val, y_val, sample_weight_val, groups
            )
        X, y = validate_labelled(self, X, y, **self._accepts())
        X = self._check_training(X)
        self._check_relevance(X)
        numbers, groups = self._check_folds(X, y, groups)
        X, y, weight, kept = self._keep(X, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        check_several(self.classes_, "This solver")
        self._factors_ = class_factors(self.class_weight, self.classes_, codes, weight)
        loss = loss_of(self.loss, n_classes, plain=self.step_size is not None)
        self._warn_of_copies(X, codes[:, None], weight)
        rng = self._rng()
        folds = None
        if self.stopping == "cv":
            self._warn_of_rare(np.bincount(codes, weights=weight))
            folds = self._make_folds(
                X, None, weight, kept, rng, numbers, groups, codes=codes
            ).scaled(self._factors_[codes])
        held_out = None
        if X_val is not None:
            held_out = self._check_validation(
                X_val, y_val, sample_weight_val, loss, kept
            )
        train, train_weight = np.arange(len(y)), weight
        if self.stopping == "validation" and held_out is None:
            train_weight, rest = split_counts(
                weight, self.validation_fraction, rng, codes
            )
            train, others = np.flatnonzero(train_weight), np.flatnonzero(rest)
            if len(np.unique(codes[train])) < n_classes:
                least = int(np.bincount(codes, weights=weight).min())
                raise ValueError(
                    "stopping='validation' needs rows of each class to learn from and "
                    f"to validate with; validation_fraction={self.validation_fraction} "
                    f"leaves none of a class, of {least} rows."
                )
            precomputed = self.kernel == "precomputed"
            part = X[np.ix_(others, train)] if precomputed else X[others]
            rest = rest[others] * self._factors_[codes[others]]
            held_out = part, loss.encode(codes[others], n_classes), rest
        problem = self._problem(
            self._rows_of(X, train), codes[train], train_weight[train], loss, folds
        )
        kernel, gamma_path = self._choose_scales(problem, rng)
        found = self._solve_flow(problem, kernel, rng, held_out=held_out)
        if held_out is not None and X_val is None:
            everything = self._problem(X, codes, weight, loss)
            ratio = everything.weight.sum() / problem.weight.sum()
            found = self._solve_flow_again(everything, kernel, rng, found, ratio)
            problem = everything
        self._store(found, kernel, problem, X, kept)
        self.stopping_ = self.stopping
        self._store_kernel(kernel, gamma_path)
        self._warn_of_limit(self.n_iter_, self._limit())
        self._warn_of_loss(found.is_unfinished)
        self._warn_of_rank(len(problem.weight), streams=False)
        return self

    def _warn_of_rare(self, totals):
        rare = totals < 2.0
        if rare.any():
            warn_user(
                "stopping='cv' leaves rows out, and some classes have fewer than "
                f"two: {self.classes_[rare].tolist()!r}."
            )

    def _choose_scales(self, problem, rng):
        """Return the kernel, and the search for gamma or None."""
        X, y, weight = problem.X, problem.response(), problem.weight
        given, additive = self.relevance, self.kernel == "anova"
        scale = None
        if given is not None and not isinstance(given, str) and not additive:
            scale = self._scale_of(given, X, weight)
        elif additive or given == "ard":
            own = self._scaled_kernel(X, y, weight, rng)
            if own is not None:
                return own, None
        return self._choose_kernel(X, y, weight, rng, scale)

    def _problem(self, X, codes, weight, loss, folds=None):
        targets = loss.encode(codes, len(self.classes_))
        weight = weight * self._factors_[codes]
        return ClassProblem(X, targets, weight, loss, self.fit_intercept, folds)

    def _check_validation(self, X_val, y_val, sample_weight_val, loss, kept):
        X_val = self._check_rows(X_val)
        if self.kernel == "precomputed":
            X_val = X_val[:, kept]
        y_val = check_labels(y_val, "y_val")
        check_consistent_length(X_val, y_val)
        codes = code_labels(y_val, self.classes_)
        if (codes < 0).any():
            others = list(dict.fromkeys(y_val[codes < 0].tolist()))
            raise ValueError(f"y_val has labels that y has not: {others!r}.")
        weight = check_sample_weight(sample_weight_val, X_val)
        weight = weight * self._factors_[codes]
        return X_val, loss.encode(codes, len(self.classes_)), weight

    def _store(self, found, kernel, problem, X, kept):
        self._store_path(found, kernel, X, kept)
        offset = problem.offset
        self.intercept_ = float(offset) if np.ndim(offset) == 0 else offset
        self.noise_ = float(found.noise)
        if found.norm is not None:
            self.norm_ = float(found.norm)
        self.critical_radius_ = critical_radius(
            found.state.basis.eigenvalues, self.noise_, self.norm_,
            problem.n_samples,
        )  # fmt: skip

    @lazy_on_collections
    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the boosted functions.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.

        Returns
        -------
        f : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second class for two.
        """
        check_is_fitted(self)
        return self._at_landmarks(X, self.dual_coef_) + self.intercept_

    @lazy_on_collections
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the probabilities of the classes.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        f = self.decision_function(X)
        return self._link().probabilities(f)

    @lazy_on_collections
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the most probable classes.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Class labels.
        """
        f = self.decision_function(X)
        codes = (f > 0.0).astype(int) if f.ndim == 1 else f.argmax(axis=1)
        return self.classes_[codes]

    def staged_predict_proba(
        self, X: MatrixLike, t: ArrayLike | None = None
    ) -> Iterator[np.ndarray]:
        """Return the probabilities of the classes at several stopping times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.
        t : array-like of shape (n_times,), default=None
            Increasing whole numbers of steps. None: the times of ``stopping_path_`` up
            to the stopping time, and this. Between times that the path was followed at
            the function is interpolated; beyond its end it is that of the end.

        Yields
        ------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        for f in self._staged_values(X, self._check_times(t)):
            yield self._link().probabilities(f)

    def staged_predict(
        self, X: MatrixLike, t: ArrayLike | None = None
    ) -> Iterator[np.ndarray]:
        """Return the most probable classes at several stopping times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` their kernel matrix with the training
            rows.
        t : array-like of shape (n_times,), default=None
            Increasing whole numbers of steps. None: the times of ``stopping_path_`` up
            to the stopping time, and this. Between times that the path was followed at
            the function is interpolated; beyond its end it is that of the end.

        Yields
        ------
        y : ndarray of shape (n_samples,)
            Class labels.
        """
        for f in self._staged_values(X, self._check_times(t)):
            codes = (f > 0.0).astype(int) if f.ndim == 1 else f.argmax(axis=1)
            yield self.classes_[codes]

    def _link(self):
        return loss_of(self._params_["loss"], len(self.classes_), plain=False)
