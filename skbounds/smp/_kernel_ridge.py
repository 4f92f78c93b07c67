"""Sample minmax prediction in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms

from skbounds._base import fit_from_scratch, warn_user
from skbounds._distances import CentredRows, check_spread, rbf
from skbounds._magnitude import LARGEST, check_magnitude
from skbounds._sklearn_compat import (
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
)
from skbounds._typing import MatrixLike
from skbounds._validation import validate_data
from skbounds.smp._regression import BaseSMPRegressor
from skbounds.smp._ridge_loo import Spectral, SpectralLaw

_KERNELS = {
    "additive_chi2",
    "chi2",
    "cosine",
    "laplacian",
    "linear",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
}


def _kernel_matrix(X, Y, params):
    """Return the kernel matrix of rows for the estimator's parameters."""
    kernel = params["kernel"]
    if callable(kernel):
        options = params["kernel_params"] or {}
        return pairwise_kernels(X, Y, metric=kernel, n_jobs=1, **options)
    if kernel == "rbf":
        gamma = 1.0 / X.shape[1] if params["gamma"] is None else params["gamma"]
        fixed = CentredRows(Y)
        return rbf(fixed.with_others(X), fixed, gamma)
    options = {name: params[name] for name in ("gamma", "degree", "coef0")}
    return pairwise_kernels(
        X, Y, metric=kernel, filter_params=True, n_jobs=1, **options
    )


def _kernel_diagonal(X, params):
    """Return k(x, x) of rows, without forming their kernel matrix."""
    if params["kernel"] in ("rbf", "laplacian", "chi2"):
        return np.ones(X.shape[0])
    if params["kernel"] == "linear":
        return row_norms(X, squared=True)
    return np.array(
        [_kernel_matrix(X[[i]], X[[i]], params)[0, 0] for i in range(X.shape[0])]
    )


class KernelRidgeSMP(BaseSMPRegressor):
    r"""Sample minmax predictor in the feature space of a kernel.

    :class:`RidgeSMP` without intercept, with the features of a kernel: predictive
    normal laws like those of
    :class:`~sklearn.gaussian_process.GaussianProcessRegressor`, with a guarantee that
    does not need a Gaussian process to have generated the data, and a leave-one-out
    choice of the penalty that costs no more than the fit.

    Read more in the :ref:`User Guide <smp_ridge>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, 'theory' or 'loo', default=1.0
        Ridge penalty (> 0), as in :class:`~sklearn.kernel_ridge.KernelRidge`. 'theory'
        is twice the largest ``k(x, x)`` of the training rows; 'loo' takes the value in
        ``alphas`` with the smallest leave-one-out log loss.

    kernel : str or callable, default='linear'
        Positive semi-definite kernel: a name known to
        :func:`~sklearn.metrics.pairwise.pairwise_kernels`, 'precomputed', or a function
        of two rows.

    gamma : float, default=None
        Parameter of the 'rbf', 'laplacian', 'poly', 'chi2' and 'sigmoid' kernels. None
        means the kernel's own default.

    degree : float, default=3
        Degree of the 'poly' kernel.

    coef0 : float, default=1
        Constant of the 'poly' and 'sigmoid' kernels.

    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.

    sigma : float or 'loo', default='loo'
        Noise scale of the model, in units of y; 'loo' minimises the leave-one-out log
        loss, in closed form.

    alphas : int or array-like of shape (n_alphas,), default=None
        Candidates for ``alpha='loo'``; an integer means that many values of
        ``logspace(-4, 4)``, None means 25.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Coefficients of the kernel ridge fit.

    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Training rows; for ``kernel='precomputed'`` the kernel matrix.

    alpha_ : float
        The penalty that was used.

    lambda_ : float
        Penalty per observation, ``alpha_ / (n + 1)``; n is the total weight.

    sigma_ : ndarray of shape (n_outputs,)
        Noise scale.

    bound_valid_ : bool
        Whether the conditions of :meth:`theory_bound` hold: sigma and penalty fixed
        beforehand, no weights below 1.

    log_normalizer_mean_ : float
        Leave-one-out estimate (in nats, summed over outputs) of ``E log Z``: the
        expected log loss at ``n - 1`` rows is at most the *penalised* loss of any fixed
        model with noise scale ``sigma_`` plus the expectation of this number; see
        :meth:`excess_risk_bound`.

    excess_risk_ : float
        Estimate (in nats, summed over outputs) of what the expected log loss exceeds
        that of the best model with noise scale ``sigma_`` by; may be negative. nan
        where least squares do not determine the model. Its noise:
        :meth:`excess_risk_interval`.

    excess_risk_penalized_ : float
        The same over the best *penalised* loss.

    effective_dimension_ratio_ : float
        Estimate of ``tr(H^-1 G)`` by the number of coefficients, at the least squares
        fit: near 1 where the model with this noise scale is right. nan where
        `excess_risk_` is.

    excess_risk_bound_ : float
        Deprecated name of `log_normalizer_mean_`.

    leverage_bound_ : float
        Mean of ``-log(1 - leverage)``: the bound (72), per output.

    effective_dof_ : float
        Sum of the leverages.

    loo_log_loss_ : float
        Exact leave-one-out log loss (in nats, summed over outputs).

    alphas_ : ndarray of shape (n_alphas,)
        Candidates. Only for ``alpha='loo'``.

    loo_log_loss_path_ : ndarray of shape (n_alphas,)
        Leave-one-out log loss of each candidate. Only for ``alpha='loo'``.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    RidgeSMP : The linear predictor with intercept.
    sklearn.gaussian_process.GaussianProcessRegressor : Bayesian counterpart.

    Notes
    -----
    One eigendecomposition, O(n^3), serves all penalties and leave-one-out figures;
    predicting costs O(n^2) per row. Memory is O(n^2). There is no intercept: centre y
    where its mean is far from zero. ``sample_weight`` are repetition counts.

    For ``kernel='precomputed'`` the variance of a new row needs ``k(x, x)``, which the
    rows of the kernel matrix do not contain. Where all training rows share one value
    (as for 'rbf'), that is used; otherwise a row is replaced by its projection onto the
    span of the training rows, with a warning: what lies outside the span is not seen,
    and the standard deviation is usually too small.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds import KernelRidgeSMP
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = KernelRidgeSMP("loo", kernel="rbf", gamma=10.0, sigma=0.1).fit(X, y)
    >>> mean, std = model.predict([[0.5], [2.0]], return_std=True)
    >>> print(mean.round(2), std.round(2))
    [0.14 0.  ] [0.12 1.73]
    """

    _parameter_constraints: dict = {
        "alpha": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"theory", "loo"}),
        ],
        "kernel": [StrOptions(_KERNELS), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "sigma": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    }

    def __init__(
        self,
        alpha: Literal["theory", "loo"] | float = 1.0,
        *,
        kernel: str | Callable = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict | None = None,
        sigma: Literal["loo"] | float = "loo",
        alphas: int | ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.sigma = sigma
        self.alphas = alphas

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; for ``kernel='precomputed'`` the kernel matrix of shape
            (n_samples, n_samples).

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows, not necessarily integers.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X, y, weight = self._validate_training(X, y, sample_weight)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "kernel='precomputed' needs a square kernel matrix in fit; got shape "
                f"{X.shape}."
            )
        used = np.flatnonzero(weight > 0)
        root = np.sqrt(weight[used])
        if self.kernel == "precomputed":
            K = X[used][:, used]
            K = K.toarray() if sparse.issparse(K) else K
        else:
            check_spread(X)
            K = _kernel_matrix(X[used], X[used], self.get_params(deep=False))
            if not np.abs(K).max(initial=0.0) < LARGEST:
                raise ValueError(
                    "The kernel gives NaN, or values too large to compute with, on "
                    "these rows: scale the features, or choose a smaller degree, coef0 "
                    "or gamma."
                )
        diagonal = K.diagonal().copy()
        e, Q = linalg.eigh(root[:, None] * K * root)
        # Rounding of a kernel computed in float32 is far below this.
        if e[0] < -1e-5 * max(e[-1], np.finfo(float).tiny):
            raise ValueError(
                "The kernel matrix is not positive semi-definite: smallest and largest "
                f"eigenvalue are {e[0]:.3g} and {e[-1]:.3g}."
            )
        targets, counts = y[used], weight[used]
        projected = Q.T @ (root[:, None] * targets)
        # Directions that only rounding keeps from being null predict nothing.
        null = e <= len(e) * np.finfo(float).eps * e[-1]
        e[null] = 0.0
        seen = np.where(null[:, None], 0.0, projected)
        common = SpectralLaw(
            e=e,
            g=np.sqrt(e)[:, None] * seen,
            mean=np.zeros(y.shape[1]),
            total=counts.sum(),
            has_mean=False,
        )
        sample = Spectral(
            common,
            lambda rows: Q[rows] * np.sqrt(e) / root[rows, None],
            targets,
            counts,
        )
        self._set_law(sample, diagonal.max(), self._noise_scale(sample))
        self._warn_floor(sample)
        dual_coef = np.zeros(y.shape)
        dual_coef[used] = root[:, None] * (Q @ (projected / (e + self.alpha_)[:, None]))
        self.dual_coef_ = dual_coef[:, 0] if self._single_output_ else dual_coef
        self.X_fit_ = X
        constant = np.ptp(diagonal) <= 1e-12 * np.abs(diagonal).max()
        self._law_.update(
            e=e,
            Q=Q * root[:, None],
            projected=seen,
            used=used,
            diagonal=float(diagonal[0]) if constant else None,
        )
        return self

    def _terms(self, X):
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if self._params_["kernel"] != "rbf":
            check_magnitude(X, "X")
        law, alpha, params = self._law_, self.alpha_, self._params_
        e, used = law["e"], law["used"]
        inverse = 1.0 / (e + alpha)
        parts = []
        for block in self._blocks(X, 3 * len(e) + X.shape[1]):
            if params["kernel"] == "precomputed":
                K = block[:, used]
                K = K.toarray() if sparse.issparse(K) else K
            else:
                K = _kernel_matrix(block, self.X_fit_[used], params)
            t = K @ law["Q"]
            t2 = t**2
            if params["kernel"] != "precomputed":
                diagonal = _kernel_diagonal(block, params)
            elif law["diagonal"] is not None:
                diagonal = law["diagonal"]
            else:
                positive = e > 1e-12 * e[-1]
                diagonal = t2[:, positive] @ (1.0 / e[positive])
            h = np.maximum(diagonal - t2 @ inverse, 0.0) / alpha
            q = (diagonal - t2 @ ((e + 2.0 * alpha) * inverse**2)) / alpha**2
            parts.append(
                (
                    t @ (law["projected"] * inverse[:, None]),
                    h,
                    np.maximum(q, 0.0),
                    t @ (law["projected"] * (inverse**2)[:, None]),
                )
            )
        if params["kernel"] == "precomputed" and law["diagonal"] is None:
            warn_user(
                "kernel='precomputed' does not tell k(x, x) of new rows: predictive "
                "laws are those of their projections onto the span of the training "
                "rows, usually too narrow.",
                UserWarning,
            )
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
