"""Sample minmax prediction for logistic and softmax regression, one penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from skbounds._base import fit_from_scratch, warn_user
from skbounds._collections import Chunks, is_collection, set_names
from skbounds._labels import check_several
from skbounds._sklearn_compat import Integral, Interval, Real, StrOptions, _fit_context
from skbounds._typing import MatrixLike
from skbounds.smp._base_classifier import BaseSMPClassifier
from skbounds.smp._base_fit import BaseFit, fit_base
from skbounds.smp._bounds import effective_dof, logistic_bound, second_moment_spectrum
from skbounds.smp._design import Design
from skbounds.smp._excess import (
    Excess,
    ExcessStatements,
    logistic_excess,
    maximum_likelihood,
)
from skbounds.smp._grid import check_grid
from skbounds.smp._logistic_chunks import (
    fit_chunks,
    leave_one_out_chunks,
    read_chunks,
)
from skbounds.smp._one_step import one_step_fits, one_step_leave_one_out
from skbounds.smp._tilts import label_scores, log_normalize, virtual_tilts
from skbounds.smp._virtual import exact_leave_one_out

# Relative size of an eigenvalue of the columns' correlations that is taken for zero.
_DEPENDENT = 1e-13


def _spectrum(Z, weight, unpenalized):
    """Return the second moments' eigenvalues, without an unpenalised intercept."""
    return second_moment_spectrum(Z[:, :-1] if unpenalized else Z, weight)


@dataclass
class LeaveOneOut:
    """Leave-one-out figures of one penalty.

    Attributes
    ----------
    loss, log_normalizer : float
        Weighted means; the latter nan where the predictor is not sample minmax.
    rows : tuple of ndarray
        The same row by row.
    base : BaseFit
        The fit to all rows with the same penalty per observation.
    """

    loss: float
    log_normalizer: float
    rows: tuple
    base: BaseFit


def float_of(C):
    """Return C as a number, 1 where it is to be found."""
    return 1.0 if isinstance(C, str) else float(C)


class SMPLogisticRegression(ExcessStatements, BaseSMPClassifier):
    r"""Sample minmax predictor for logistic regression.

    Predicts the label of a row by asking how well the model would fit the row under
    *each* label: the penalised logistic regression is refitted with the row added once
    per label, and the probability of a label is proportional to the probability that
    its own refit gives it. With :math:`\theta^{(x, y)}` the minimiser of

    .. math::

        \sum_{i=1}^n \log(1 + e^{-y_i \langle \theta, x_i\rangle})
        + \log(1 + e^{-y \langle \theta, x\rangle}) + \frac{1}{2C} \|\theta\|^2,

    .. math::

        \tilde P(y \mid x) \propto \sigma(y \langle \theta^{(x, y)}, x\rangle)
        \, e^{-\lambda \|\theta^{(x, y)}\|^2 / 2}, \qquad \lambda = \frac{1}{(n + 1) C}.

    The expected log loss of this predictor exceeds that of the best logistic model by
    at most the order ``d / n`` **whatever the distribution of the labels**, where
    the maximum likelihood estimator can be arbitrarily bad under a wrong model. The
    refits are not run one by one: all rows share the factorised Hessian of the fit to
    the training data, and the result equals the refits to within ``tol``.

    Read more in the :ref:`User Guide <smp>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    C : float, 'theory' or 'loo', default=1.0
        Inverse strength of the ridge penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`, on the training rows plus the
        added one. 'theory' is ``1 / (2 R**2)`` with R the largest row norm, for which
        Theorem 6 of [1]_ holds; 'loo' takes the value in ``Cs`` with the smallest
        leave-one-out log loss, the smaller one in case of ties. ``np.inf`` is the
        predictor without a penalty (Proposition 4), where the maximum likelihood fit
        exists.

    fit_intercept : bool, default=True
        Whether to add an intercept.

    penalize_intercept : bool, default=False
        Whether the penalty includes the intercept. Without (the default) predictions
        do not depend on the origin of the features, but the closed-form bound of
        :meth:`theory_bound` is not proved.

    intercept_scaling : float, default=1.0
        Value of the constant feature when ``penalize_intercept=True``; otherwise not
        used.

    virtual_weight : float, default=1.0
        Weight of the added row, in [0, 1]. 1 is the sample minmax predictor, 0 the
        ordinary logistic regression.

    Cs : int or array-like of shape (n_cs,), default=None
        Candidates for ``C='loo'``; an integer means that many values of
        ``logspace(-3, 2)``, None means 20.

    method : {'exact', 'one-step'}, default='exact'
        'exact' solves the refits and keeps the training rows; 'one-step' replaces the
        training objective by its second-order expansion, keeps only the d x d factor
        and costs O(d^2) per predicted row.

    class_weight : dict or 'balanced', default=None
        Factors of the rows' weights per class, rescaled so that the weights keep their
        sum. 'balanced': in inverse proportion to the weights of the classes. Predicted
        are then the probabilities of a population with classes in these proportions.

    tol : float, default=1e-10
        Accuracy of the log-odds of the refits. Not used by 'one-step'.

    max_iter : int, default=100
        Largest number of Newton steps of a fit.

    n_jobs : int, default=None
        Threads over blocks of predicted rows (and of left-out rows). None means 1.

    verbose : int, default=0
        Positive: print a line per fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the ordinary fit to the training rows with the same ``C_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Its intercept.

    C_ : float
        The value of C that was used.

    lambda_ : float
        Penalty per observation, ``1 / ((n + 1) C_)``; n is the total weight.

    n_iter_ : int
        Newton steps of the fit to the training rows.

    bound_valid_ : bool
        Whether the conditions of :meth:`theory_bound` hold: two classes, C fixed
        beforehand, no unpenalised intercept, ``virtual_weight=1``, no `class_weight`,
        no weights below 1.

    log_normalizer_mean_ : float
        Leave-one-out estimate of ``E log Z`` (in nats): the expected log loss at
        ``n - 1`` rows is at most the *penalised* loss of any fixed linear model plus
        the expectation of this number, for any distribution; see
        :meth:`excess_risk_bound`. Computed on first access when ``method='exact'``;
        'one-step' approximates it (unless ``C='loo'``, whose search is always exact).
        nan unless ``virtual_weight=1``.

    excess_risk_ : float
        Estimate of what the expected log loss exceeds that of the best linear model by,
        whatever the law of the labels; may be negative, as the predictor is no linear
        model. nan for more than two classes, where the maximum likelihood fit does not
        exist, and where a row decides it (leverage above .8). Its noise:
        :meth:`excess_risk_interval`.

    excess_risk_penalized_ : float
        The same over the best *penalised* loss, which always exists; nan for more than
        two classes and unless ``virtual_weight=1``.

    effective_dimension_ratio_ : float
        Estimate of ``tr(H^-1 G)`` by the number of coefficients, at the maximum
        likelihood fit: near 1 where the logistic model is right, large where
        maximum likelihood pays for its being wrong. nan where `excess_risk_` is.

    excess_risk_bound_ : float
        Deprecated name of `log_normalizer_mean_`.

    loo_log_loss_ : float
        Leave-one-out log loss (in nats) with the same ``lambda_``; exact or approximate
        as ``log_normalizer_mean_`` is.

    loo_log_loss_path_ : ndarray of shape (n_cs,)
        Leave-one-out log loss of each candidate. Only for ``C='loo'``.

    Cs_ : ndarray of shape (n_cs,)
        Candidates. Only for ``C='loo'``.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    SMPLogisticRegressionCV : Pools over C and virtual weights; the practical default.
    sklearn.linear_model.LogisticRegression : The plug-in predictor.

    Notes
    -----
    With n rows, d features and K classes, ``fit`` costs O(n d^2) per Newton step
    (K (K - 1) / 2 times that for K > 2), and 'exact' prediction a few passes of O(n d)
    per row and label. For d > n everything happens in the n-dimensional row space.
    Memory is O(min(n, d)^2 (K - 1)^2) for the factor; 'exact' also keeps the rows.

    K > 2 classes use the symmetric softmax model; two classes always use the binary
    one, whose penalty is twice as strong at the same C. All computation is done, and
    results are returned, in float64. ``sample_weight`` are repetition counts: integer
    weights equal repeated rows, and the scale matters. Weights that sum to one say that
    there was one observation, and the penalty is accordingly overwhelming.

    Large C on nearly separable or wide data (d > n) is the expensive case of 'exact':
    many refits then differ too much from the training fit for the shared Hessian and
    take Newton steps of their own. 'one-step' does not depend on that.

    Sparse rows are used as they are when d <= n, without centring; with d > n their
    dense representation in the row space takes O(n d) memory.

    The fixed scale of C assumes features of about unit scale, as for
    :class:`~sklearn.linear_model.LogisticRegression`.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbounds import SMPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SMPLogisticRegression()).fit(X, y)
    >>> print(model.predict_proba(X[:2]).round(3))
    [[1.    0.   ]
     [0.999 0.001]]
    >>> print(round(model[-1].loo_log_loss_, 3))
    0.089
    """

    _takes_collections = True
    _parameter_constraints: dict = {
        "C": [Interval(Real, 0, None, closed="right"), StrOptions({"theory", "loo"})],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "virtual_weight": [Interval(Real, 0, 1, closed="both")],
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "method": [StrOptions({"exact", "one-step"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _lazy_attributes = (
        "effective_dimension_ratio_",
        "excess_risk_",
        "excess_risk_bound_",
        "excess_risk_penalized_",
        "log_normalizer_mean_",
        "loo_log_loss_",
    )

    def __init__(
        self,
        C: Literal["theory", "loo"] | float = 1.0,
        *,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        virtual_weight: float = 1.0,
        Cs: int | ArrayLike | None = None,
        method: Literal["exact", "one-step"] = "exact",
        class_weight: Literal["balanced"] | dict | None = None,
        tol: float = 1e-10,
        max_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.virtual_weight = virtual_weight
        self.Cs = Cs
        self.method = method
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
            Training rows. Of a collection of dask sums over its chunks are taken, a
            pass for each Newton step, and the result is that of rows in memory: for
            ``method="one-step"``, and C a number or "theory".

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
        if is_collection(X):
            return self._fit_chunks(X, y, sample_weight)
        X, codes, weight, classes = self._validate_training(X, y, sample_weight)
        design = self._make_design(X, weight)
        data = {
            "Z": design.transform(X),
            "codes": codes,
            "weight": weight,
            "n_classes": len(classes),
        }
        penalized = design.penalized()
        radius2 = row_norms(X, squared=True).max()
        if self.fit_intercept and self.penalize_intercept:
            radius2 += self.intercept_scaling**2

        if self.C == "loo":
            Cs = check_grid(20 if self.Cs is None else self.Cs, "Cs", decades=(-3, 2))
            path, loo, theta = self._leave_one_out_path(data, penalized, Cs)
            # Sorted by C, the first minimum is the one with the smallest C.
            order = np.argsort(Cs, kind="stable")
            C = Cs[order[np.argmin(path[order])]]
            self._loo_ = loo.loss, loo.log_normalizer
            self.Cs_, self.loo_log_loss_path_ = Cs, path
        else:
            theta = None
            C = self.C
            if C == "theory":
                C = 1.0 / (2.0 * radius2) if radius2 > 0 else 1.0
        if np.isinf(C):
            self._check_overlap(data)
        base = fit_base(
            **data, penalty=penalized / C, theta=theta, max_iter=self.max_iter
        )
        if self.verbose:
            print(f"[SMPLogisticRegression] C={C:.3g}: {base.n_iter} Newton steps")

        self._training_ = {
            "radius2": float(radius2),
            "n": float(weight.sum()),
            "mean_square": self._mean_square(X, weight),
        }
        if self.method == "exact":
            self._training_["codes"] = codes
        else:
            if self.C != "loo":
                loo = self._leave_one_out(
                    data, penalized, C, base.theta, method="one-step"
                )
                self._loo_ = loo.loss, loo.log_normalizer
            self._excess_ = vars(self._excess_of(data, loo))
            unpenalized = self.fit_intercept and not self.penalize_intercept
            self._training_["spectrum"] = _spectrum(base.Z, weight, unpenalized)
            base = replace(base, Z=None, weight=None, proba=None)
        return self._set_fit(base, design, classes, C, weight.min())

    def _fit_chunks(self, X, y, sample_weight):
        """Fit a collection of dask, by sums over chunks."""
        if self.method != "one-step" or self.C == "loo" or np.isinf(float_of(self.C)):
            raise ValueError(
                "X is a collection of dask, of which sums over rows are taken: "
                "method must be 'one-step', and C a finite number or 'theory'; got "
                f"method={self.method!r} and C={self.C!r}."
            )
        chunks = Chunks(X, y, sample_weight, target="labels")
        set_names(self, chunks)
        plain = self.fit_intercept and not self.penalize_intercept

        def make(mean, classes, factors):
            design = Design(chunks.n_features, center=mean if plain else None)
            if self.fit_intercept:
                design.intercept = 1.0 if plain else float(self.intercept_scaling)
                design.intercept_penalized = not plain
            return design

        data = read_chunks(chunks, make, self.class_weight)
        classes, design = data.rows.classes, data.rows.design
        check_several(classes, type(self).__name__)
        penalized, radius2 = design.penalized(), data.radius2
        if self.fit_intercept and self.penalize_intercept:
            radius2 += self.intercept_scaling**2
        C = self.C
        if C == "theory":
            C = 1.0 / (2.0 * radius2) if radius2 > 0 else 1.0
        base, _ = fit_chunks(data, penalized / C, max_iter=self.max_iter)
        if self.verbose:
            print(f"[SMPLogisticRegression] C={C:.3g}: {base.n_iter} Newton steps")
        *self._loo_, excess = leave_one_out_chunks(
            data, penalized, C, base.theta, virtual_weight=self.virtual_weight,
            max_iter=self.max_iter,
        )  # fmt: skip
        self._excess_ = vars(excess)
        second = data.second[:-1, :-1] if plain else data.second
        spectrum = np.maximum(np.linalg.eigvalsh(second / data.total), 0.0)
        self._training_ = {
            "radius2": float(radius2),
            "n": data.total,
            "mean_square": None if plain else data.mean_square,
            "spectrum": spectrum,
        }
        self._extent_ = data.extent
        return self._set_fit(base, design, classes, C, data.least_weight)

    def _set_fit(self, base, design, classes, C, least_weight):
        self._design_ = vars(design)
        self._base_ = vars(base)
        self.classes_ = classes
        self.coef_, self.intercept_ = design.to_features(base.class_theta())
        self.C_ = float(C)
        self.lambda_ = 1.0 / ((self._training_["n"] + 1.0) * self.C_)
        self.n_iter_ = base.n_iter
        self.bound_valid_ = bool(
            len(classes) == 2
            and (self.penalize_intercept or not self.fit_intercept or np.isinf(C))
            and self.virtual_weight == 1
            and self.class_weight is None
            and self.C != "loo"
            and least_weight >= 1.0
        )
        return self

    @property
    def loo_log_loss_(self) -> float:
        """Leave-one-out log loss."""
        return float(self._loo()[0])

    @property
    def log_normalizer_mean_(self) -> float:
        """Leave-one-out estimate of the expected log normaliser."""
        return float(self._loo()[1])

    def _penalty_of(self, norm):
        return 0.5 * self.lambda_ * norm**2

    def _check_overlap(self, data):
        """Raise an error where there is no unpenalised fit."""
        Z = data["Z"].toarray() if sparse.issparse(data["Z"]) else data["Z"]
        sizes = np.sqrt(row_norms(Z.T, squared=True))
        # In the columns' own units.
        scaled = Z / np.where(sizes > 0.0, sizes, 1.0)
        spectrum = np.linalg.eigvalsh(scaled.T @ scaled)
        independent = spectrum[0] > _DEPENDENT * spectrum[-1]
        if not independent or maximum_likelihood(data) is None:
            raise ValueError(
                "C=np.inf needs a maximum likelihood fit: linearly independent columns "
                "(fewer than rows, none constant beside an intercept) and classes that "
                "no hyperplane separates. Give a finite C."
            )

    def _mean_square(self, X, weight):
        """Return the mean squared norm of rows; None with an unpenalised intercept."""
        if self.fit_intercept and not self.penalize_intercept:
            return None
        squares = row_norms(X, squared=True)
        if self.fit_intercept:
            squares = squares + self.intercept_scaling**2
        return float(weight @ squares / weight.sum())

    def log_normalizer(self, X: MatrixLike) -> np.ndarray:
        """Compute ``log Z``, how much more than one distribution the refits cover.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, labelled or not.

        Returns
        -------
        log_normalizer : ndarray of shape (n_samples,)
            Logarithm (in nats) of the sum over the labels of the probabilities that the
            refits give to their own label, times the penalty factor. Large where the
            training data leave the label open; its mean over fresh rows is an unbiased
            estimate of what :attr:`log_normalizer_mean_` estimates by leave-one-out.
            Near zero or slightly negative where the training data
            determine the prediction.
        """
        return self._map_rows(lambda rows: log_normalize(self._scores(rows))[1], X)

    def theory_bound(self, norm_bound: float) -> float:
        """Compute the closed-form excess-risk bound, that of Theorem 6 or better.

        Parameters
        ----------
        norm_bound : float
            Norm B of the coefficients of the competing linear models.

        Returns
        -------
        bound : float
            ``lambda_ * B**2 / 2`` (in nats) and the smallest of three bounds of
            ``E log Z``: ``log K``; for two classes ``log(1 + m C / 4)``, m the mean
            squared norm of the rows; and ``c * df / (n + 1)`` with the effective
            degrees of freedom ``df`` at ``4 * lambda_`` of the features' empirical
            second moments, times ``K - 1``, and ``c = e**v (e**v - 1) / v``,
            ``v = R**2 C`` (at most 2.14 for ``C='theory'``). An expectation over
            training sets and one new row; it is a theorem only if ``bound_valid_``,
            and for more than two classes only where it is ``log K``.

        Warns
        -----
        UserWarning
            If the bound is vacuous: predicting equal probabilities has it too.
        """
        check_is_fitted(self)
        if not (isinstance(norm_bound, Real) and norm_bound >= 0):
            raise ValueError(
                f"norm_bound must be a non-negative number; got {norm_bound!r}."
            )
        training = self._training_
        params = self._params_
        unpenalized = params["fit_intercept"] and not params["penalize_intercept"]
        if params["method"] == "exact":
            base = BaseFit(**self._base_)
            spectrum = _spectrum(base.Z, base.weight, unpenalized)
        else:
            spectrum = training["spectrum"]
        dof = effective_dof(spectrum, 4.0 * self.lambda_) + unpenalized
        dof *= len(self.classes_) - 1
        bound = logistic_bound(
            dof,
            self.lambda_,
            training["n"],
            training["radius2"],
            norm_bound,
            n_classes=len(self.classes_),
            mean_square=training["mean_square"],
        )
        trivial = np.log(len(self.classes_))
        if bound >= trivial:
            warn_user(
                f"The bound {bound:.3g} is vacuous: equal probabilities are within "
                f"log({len(self.classes_)}) = {trivial:.3g} of any model.",
                UserWarning,
            )
        return bound

    def _scores(self, features):
        """Return ``log sigma(...) - lambda |theta|^2 / 2`` per row and label."""
        base = BaseFit(**self._base_)
        if self._params_["virtual_weight"] == 0:
            raw = base.raw(features).T
            n_labels = base.n_classes
            scores = label_scores(np.repeat(raw[:, None, :], n_labels, axis=1))
            return scores - 0.5 * self.lambda_ * np.sum(
                base.theta**2 @ (base.penalty > 0)
            )
        raw, squared_norm = self._refit(base, features)
        return label_scores(raw) - 0.5 * self.lambda_ * squared_norm

    def _refit(self, base, features):
        slope, target = virtual_tilts(
            features.shape[0], [self._params_["virtual_weight"]], base.n_classes
        )
        if self._params_["method"] == "one-step":
            return one_step_fits(base, features, slope, target)
        return self._virtual_fits(base, features, slope, target)

    def _log_proba(self, features):
        return log_normalize(self._scores(features))[0]

    def _interval(self, features):
        return expit(self._refit(BaseFit(**self._base_), features)[0][:, :, 0])

    def _loo(self):
        """Return the leave-one-out log loss and log normaliser, computed once."""
        check_is_fitted(self)
        if not hasattr(self, "_loo_"):
            loo = self._leave_one_out_of_fit()[1]
            self._loo_ = loo.loss, loo.log_normalizer
        return self._loo_

    def _leave_one_out_of_fit(self):
        """Return the training data and their leave-one-out figures."""
        base = BaseFit(**self._base_)
        data = {
            "Z": base.Z,
            "codes": self._training_["codes"],
            "weight": base.weight,
            "n_classes": base.n_classes,
        }
        loo = self._leave_one_out(
            data,
            (base.penalty > 0).astype(float),
            self.C_,
            base.theta,
            virtual_weight=self._params_["virtual_weight"],
        )
        return data, loo

    def _excess(self):
        """Return the estimates of the excess risk, computed once."""
        check_is_fitted(self)
        if not hasattr(self, "_excess_"):
            excess = Excess()
            if len(self.classes_) == 2:
                data, loo = self._leave_one_out_of_fit()
                self._loo_ = loo.loss, loo.log_normalizer
                excess = self._excess_of(data, loo)
            self._excess_ = vars(excess)
        return Excess(**self._excess_)

    @staticmethod
    def _excess_of(data, loo):
        loss, log_normalizer = loo.rows
        minmax = not np.isnan(loo.log_normalizer)
        return logistic_excess(data, loo.base, loss, log_normalizer if minmax else None)

    def _leave_one_out_path(self, data, penalized, Cs):
        """Return losses, the figures of the best, and a start for the final fit."""
        path = np.empty(len(Cs))
        theta = best = None
        for index in np.argsort(Cs, kind="stable"):
            loo = self._leave_one_out(data, penalized, Cs[index], theta)
            path[index], theta = loo.loss, loo.base.theta
            if best is None or loo.loss < best.loss:
                best = loo
            if self.verbose:
                print(
                    f"[SMPLogisticRegression] C={Cs[index]:.3g}: leave-one-out log "
                    f"loss {path[index]:.4f}"
                )
        return path, best, theta

    def _leave_one_out(
        self, data, penalized, C, theta, *, method="exact", virtual_weight=None
    ):
        """Return the leave-one-out figures of a candidate.

        The penalty per observation of the candidate stays what it is at n rows, so the
        problems with one row less plus a virtual one have total penalty ``n lambda``.
        A row of weight v loses (and gains as a virtual row) one unit of it: integer
        weights then equal repetition.
        """
        weight, codes = data["weight"], data["codes"]
        total = weight.sum()
        lambda_ = 1.0 / ((total + 1.0) * C)
        base = fit_base(
            **data,
            penalty=penalized * (total * lambda_),
            theta=theta,
            max_iter=self.max_iter,
        )
        removed = np.minimum(weight, 1.0)
        if virtual_weight is None:
            virtual_weight = self.virtual_weight
        added = virtual_weight * removed
        if method == "exact":
            fits = exact_leave_one_out(
                base,
                codes,
                removed,
                added,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
            )
            self._warn_unconverged(fits.n_failed, fits.squared_norm.size)
            raw, squared_norm = fits.raw, fits.squared_norm
        else:
            raw, squared_norm = one_step_leave_one_out(base, codes, removed, added)
        scores = label_scores(raw) - 0.5 * lambda_ * squared_norm
        log_proba, log_normalizer = log_normalize(scores)
        loss = -log_proba[np.arange(len(codes)), codes]
        bound = weight @ log_normalizer / total if virtual_weight == 1 else np.nan
        return LeaveOneOut(
            float(weight @ loss / total), float(bound), (loss, log_normalizer), base
        )
