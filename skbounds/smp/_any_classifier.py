"""Sample minmax prediction with any classifier."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, fit_from_scratch
from skbounds._labels import check_labels, check_several
from skbounds._seeds import seeded
from skbounds._sklearn_compat import (
    HasMethods,
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
)
from skbounds._typing import MatrixLike
from skbounds._validation import validate_data
from skbounds.smp._base_fit import (
    BaseFit,
    contrasts,
    factorize,
    raw_to_proba,
    reduced_hessian,
)
from skbounds.smp._one_step import one_step_fits, one_step_leave_one_out
from skbounds.smp._refits import (
    TrainingRows,
    as_features,
    last_step,
    logistic_strength,
    penalty_root,
    require_targets,
    weighted_rows,
)
from skbounds.smp._tilts import label_scores, log_normalize, virtual_tilts


class SMPClassifier(MetaEstimatorMixin, ClassifierMixin, SkboundsEstimator):
    r"""Sample minmax predictor of any classifier.

    The probability of a label is what the classifier gives it after it has seen the row
    with this label, normalised over the labels:

    .. math::

        \tilde f(y \mid x) \propto f^{(x, y)}(y \mid x) \, e^{-\phi(f^{(x, y)})},

    with :math:`f^{(x, y)}` the fit to the training rows and ``(x, y)``, and
    :math:`\phi` the penalty per observation. Where ``f`` minimises the (penalised) log
    loss of a class of models this is the sample minmax predictor of the class [1]_,
    whose excess risk is at most the mean of ``log Z``, the logarithm of the sum, for
    any law of the data. For other classifiers it is a way to take back what they are
    too sure of: where the label of the row itself decides, all labels come out even.

    Read more in the :ref:`User Guide <smp_any>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    estimator : estimator or None, default=None
        Classifier with ``predict_proba``, or a pipeline that ends in one. None means
        :class:`~sklearn.linear_model.LogisticRegression`.

    method : {'refit', 'influence'}, default='refit'
        ``'refit'``: the definition, one fit per row and label, of any classifier.
        ``'influence'``: one step with the Hessian of the fit to the training rows, for
        :class:`~sklearn.linear_model.LogisticRegression` (also the CV) on given
        features: alone, or last in a pipeline whose other steps stay as they are. After
        :class:`~sklearn.kernel_approximation.Nystroem` that is kernel logistic
        regression, after any network its last layer.

    virtual_weight : float, default=1.0
        Weight of the row that is added, in (0, 1]; below 1 the classifier must take
        sample weights, and there is no bound.

    n_jobs : int, default=None
        Jobs over rows that are predicted (or left out). None means 1.

    random_state : int, default=0
        Seed of the refits, which all get the same: of every random state of the
        classifier that is None.

    Attributes
    ----------
    estimator_ : estimator
        The classifier fitted to the training rows.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    log_normalizer_mean_ : float
        Leave-one-out estimate of the expected ``log Z``, with one row less. Computed on
        first access, by as many refits as there are rows and labels.

    loo_log_loss_ : float
        Leave-one-out log loss, from the same refits.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    SMPLogisticRegression : The same for logistic regression, 75 times as fast.
    SMPRegressor : For numbers instead of classes.

    Notes
    -----
    The penalty is known for :class:`~sklearn.linear_model.LogisticRegression` with a
    squared norm, also last in a pipeline: ``|coef|^2 / (2 C (n + 1))``. Of anything
    else it is taken for zero: the predictor is then that of the class of models without
    a penalty, and ``log Z`` bounds its excess only if the classifier minimises the log
    loss alone.

    A pipeline is refitted as a whole, so that scaling and selection of features have
    seen the virtual row, too.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49. Theorem 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from skbounds import SMPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SMPClassifier(LinearDiscriminantAnalysis()).fit(X[::10], y[::10])
    >>> print(model.predict_proba(X[[25, 75, 106]]).round(2))
    [[0.98 0.01 0.01]
     [0.02 0.83 0.15]
     [0.02 0.51 0.48]]
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "method": [StrOptions({"refit", "influence"})],
        "virtual_weight": [Interval(Real, 0, 1, closed="right")],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, 2**31 - 1, closed="left")],
    }
    _lazy_attributes = ("log_normalizer_mean_", "loo_log_loss_")

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["refit", "influence"] = "refit",
        virtual_weight: float = 1.0,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.virtual_weight = virtual_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the classifier and keep the training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Training rows, of any kind that the classifier takes.

        y : array-like of shape (n_samples,)
            Class labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows; the classifier must take them.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        require_targets(self, y)
        X, y, weight = weighted_rows(self, X, check_labels(y, warn=True), sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_several(self.classes_, type(self).__name__)
        rows = TrainingRows(
            seeded(self._estimator(), int(self.random_state)),
            X,
            y,
            weight,
            float(self.virtual_weight),
        )
        rows.check_weights()
        self.estimator_ = rows.fit()
        self._codes_ = codes
        self._rows_ = vars(rows)
        if self.method == "influence":
            self._base_ = vars(self._last_layer(X, codes, rows.counts))
        return self

    def _estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def _training_rows(self):
        return TrainingRows(**{**self._rows_, "n_jobs": self.n_jobs})

    def _last_layer(self, X, codes, weight):
        """Return the fit of the logistic regression that comes last."""
        model = last_step(self.estimator_)
        known = isinstance(model, (LogisticRegression, LogisticRegressionCV))
        C = logistic_strength(model) if known else None
        if C is None:
            raise ValueError(
                "method='influence' needs a LogisticRegression with a squared norm as "
                f"penalty, alone or last in a pipeline; got {model!r}. Any other "
                "classifier takes method='refit'."
            )
        if model.class_weight is not None:
            raise ValueError(
                "method='influence' does not know class_weight; give sample_weight, or "
                "use method='refit'."
            )
        Z = self._features(X)
        n_classes = len(self.classes_)
        theta = model.coef_
        penalty = np.full(theta.shape[1], 1.0 / C)
        if model.fit_intercept:
            constant = self._constant()
            theta = np.column_stack([theta, model.intercept_ / constant])
            scaled = model.solver == "liblinear"
            penalty = np.append(penalty, 1.0 / C if scaled else 0.0)
        Q = contrasts(n_classes)
        theta = Q.T @ theta
        proba = raw_to_proba(Q @ (Z @ theta.T).T)
        hessian = reduced_hessian(Z, proba, weight)
        hessian.flat[:: len(hessian) + 1] += np.tile(penalty, len(theta))
        return BaseFit(
            n_classes, penalty, theta, factorize(hessian), 0, Z, weight, proba
        )

    def _features(self, X):
        """Return what the last step sees, with a constant where it has an intercept."""
        model = last_step(self.estimator_)
        Z = as_features(self.estimator_, X)
        if not model.fit_intercept:
            return Z
        return np.column_stack([Z, np.full(len(Z), self._constant())])

    def _constant(self):
        """Return the value of the column that stands for the intercept."""
        model = last_step(self.estimator_)
        return float(model.intercept_scaling) if model.solver == "liblinear" else 1.0

    def _total(self):
        return float(self._training_rows().counts.sum())

    def _score_of(self, total):
        """Return what is computed of a fit with one more row: its label's score."""

        def score(fit, _, row, label):
            with np.errstate(divide="ignore"):
                proba = np.log(fit.predict_proba(row)[0])
            penalty = 0.5 * np.sum(penalty_root(fit, total) ** 2)
            # A label that the fit has dropped has probability zero.
            seen = np.flatnonzero(fit.classes_ == label)
            return float(proba[seen[0]] - penalty) if len(seen) else -np.inf

        return score

    def _scores(self, X):
        """Return log probabilities of virtual labels, less penalties, (m, K)."""
        check_is_fitted(self)
        # Refuses what the classifier refuses, in its words.
        self.estimator_.predict_proba(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        params = self._params_
        total = self._total() + 1.0
        if params["method"] == "influence":
            base = BaseFit(**self._base_)
            Z = self._features(X)
            slope, target = virtual_tilts(
                len(Z), [params["virtual_weight"]], base.n_classes
            )
            raw, squared_norm = one_step_fits(base, Z, slope, target)
            return label_scores(raw) - squared_norm * (0.5 * base.penalty.max() / total)
        (X,) = indexable(X)
        scores = self._training_rows().map_added(
            X, lambda _: self.classes_, self._score_of(total)
        )
        return np.array(scores, dtype=float).reshape(-1, len(self.classes_))

    def _loo(self):
        """Return leave-one-out losses and log normalisers of the rows, once."""
        check_is_fitted(self)
        if not hasattr(self, "_loo_"):
            rows, params = self._training_rows(), self._params_
            if params["method"] == "influence":
                base = BaseFit(**self._base_)
                removed = np.minimum(base.weight, 1.0)
                raw, squared_norm = one_step_leave_one_out(
                    base, self._codes_, removed, params["virtual_weight"] * removed
                )
                penalty = 0.5 * base.penalty.max() / self._total()
                scores = label_scores(raw) - penalty * squared_norm
            else:
                # With the penalty per observation of as many rows as there are.
                scores = rows.map_replaced(
                    lambda _: self.classes_, self._score_of(self._total())
                )
            log_proba, log_normalizer = log_normalize(np.array(scores, dtype=float))
            losses = -log_proba[np.arange(len(self._codes_)), self._codes_]
            share = rows.counts / self._total()
            self._loo_ = float(share @ losses), float(share @ log_normalizer)
        return self._loo_

    @property
    def log_normalizer_mean_(self) -> float:
        """Leave-one-out estimate of the expected log normaliser."""
        return self._loo()[1]

    @property
    def loo_log_loss_(self) -> float:
        """Leave-one-out log loss."""
        return self._loo()[0]

    def log_normalizer(self, X: MatrixLike) -> np.ndarray:
        """Compute ``log Z``, how much more than one distribution the refits cover.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, labelled or not.

        Returns
        -------
        log_normalizer : ndarray of shape (n_samples,)
            In nats. Its mean over fresh rows bounds the excess risk over the penalised
            class in expectation, where the classifier minimises the log loss.
        """
        return log_normalize(self._scores(X))[1]

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return log_normalize(self._scores(X))[0]

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels.
        """
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        known = get_tags(self._estimator()).input_tags
        tags.input_tags.sparse = known.sparse and self.method == "refit"
        tags.input_tags.allow_nan = known.allow_nan
        return tags
