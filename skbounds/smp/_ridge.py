"""Sample minmax prediction for Gaussian linear models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from sklearn.utils.extmath import row_norms

from skbounds._base import fit_from_scratch
from skbounds._blocks import memory_limit, row_blocks
from skbounds._collections import Chunks, is_collection, set_names
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import (
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
)
from skbounds._typing import MatrixLike
from skbounds._validation import validate_data
from skbounds.smp._design import Design, make_design
from skbounds.smp._regression import BaseSMPRegressor
from skbounds.smp._ridge_chunks import chunked_sample
from skbounds.smp._ridge_loo import (
    Spectral,
    SpectralLaw,
    joint_leave_one_out,
    residual_sums,
)


@dataclass
class RidgeSample(Spectral):
    """Rows in memory in eigencoordinates, and how they came by these.

    Attributes
    ----------
    vectors : ndarray of shape (p, p)
        V, of z = (Z - z_mean) V.
    z_mean : ndarray of shape (p,)
    design : Design
    center : ndarray of shape (n_features,) or None
        What is subtracted from rows before.
    radius2 : float
        Largest squared norm of a row.
    """

    vectors: Any = None
    z_mean: Any = None
    design: Any = None
    center: np.ndarray | None = None
    radius2: float = np.nan

    @property
    def n_rows(self):
        return len(self.weight)


class RidgeSMP(BaseSMPRegressor):
    r"""Sample minmax predictor for Gaussian linear regression.

    The ridge counterpart of :class:`~sklearn.linear_model.BayesianRidge`: a predictive
    *distribution* with a guarantee that does not need the model to be true. For a new
    row x, each possible target y is fitted by the penalised model with ``(x, y)``
    added; the density of y is proportional to what its own fit gives it. The result is
    normal, with closed-form mean and variance: with :math:`A = X^\top X + \alpha I`,
    :math:`h = x^\top A^{-1} x`, :math:`q = \|A^{-1} x\|^2`,
    :math:`\lambda = \alpha / (n + 1)` and the ridge coefficients
    :math:`\hat\theta`,

    .. math::

        \mathrm{var}(x) = \sigma^2 \frac{(1 + h)^2}{1 + \lambda q}, \qquad
        \mathrm{mean}(x) = \langle \hat\theta, x \rangle
        - \lambda \frac{(1 + h) \langle \hat\theta, A^{-1} x \rangle}
        {1 + \lambda q}.

    Its expected log loss exceeds that of the best linear model with noise scale
    :math:`\sigma` by at most ``1.25 d / n`` plus a penalty term, for any distribution
    of the targets.

    Read more in the :ref:`User Guide <smp_ridge>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    alpha : float, 'theory' or 'loo', default=1.0
        Ridge penalty, as in :class:`~sklearn.linear_model.Ridge`, on the training rows
        plus the virtual one. 0 is the unpenalised predictor of Theorem 4 (X must have
        full column rank); 'theory' is ``2 * R**2`` with R the largest row norm, for
        which Theorem 5 of [1]_ holds; 'loo' takes the value in ``alphas`` with the
        smallest leave-one-out log loss, the larger one in case of ties.

    fit_intercept : bool, default=True
        Whether to add an intercept.

    penalize_intercept : bool, default=False
        Whether the penalty includes the intercept. Without (the default) predictions do
        not depend on the origin of the features.

    sigma : float, 'loo' or 'joint', default='loo'
        Noise scale of the model, in units of y. 'loo' minimises the leave-one-out log
        loss, in closed form. 'joint' is the predictor for the model with *unknown*
        noise scale, whose guarantee is free of sigma; it needs ``alpha=0`` and has
        power tails without variance.

    width : {'smp', 'bayes'}, default='smp'
        ``'bayes'``: the predictive law of the flat prior, normal around the ridge
        prediction with variance ``sigma**2 (1 + h)`` instead of about
        ``sigma**2 (1 + h)**2``. If the model holds, its excess risk is half of what the
        minmax law is bounded by (and least possible); it has no bound if the noise is
        larger than sigma, and no ``log_normalizer_mean_`` (nan);
        ``log_normalizer`` stays that of the minmax law.

        .. versionadded:: 0.2

    alphas : int or array-like of shape (n_alphas,), default=None
        Candidates for ``alpha='loo'``; an integer means that many values of
        ``logspace(-4, 4)``, None means 25.

    copy_X : bool, default=True
        Whether to copy X. If False, X may be overwritten (centred).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Ridge coefficients. ``predict`` is *not* the linear function they define.

    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the ridge fit.

    alpha_ : float
        The penalty that was used.

    lambda_ : float
        Penalty per observation, ``alpha_ / (n + 1)``; n is the total weight.

    sigma_ : ndarray of shape (n_outputs,)
        Noise scale. With ``sigma='joint'`` the residual scale, for information.

    bound_valid_ : bool
        Whether the conditions of :meth:`theory_bound` hold: sigma and penalty fixed
        beforehand, ``alpha_ = 0`` or no unpenalised intercept, no weights below 1.

    log_normalizer_mean_ : float
        Leave-one-out estimate (in nats, summed over outputs) of ``E log Z``: the
        expected log loss at ``n - 1`` rows is at most the *penalised* loss of any fixed
        model with noise scale ``sigma_`` plus the expectation of this number; see
        :meth:`excess_risk_bound`. With ``sigma='joint'`` it
        includes the price of the noise scale.

    excess_risk_ : float
        Estimate (in nats, summed over outputs) of what the expected log loss exceeds
        that of the best model with noise scale ``sigma_`` by; may be negative. nan with
        ``sigma='joint'`` and
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
    KernelRidgeSMP : The same predictor in a kernel's feature space.
    sklearn.linear_model.BayesianRidge : Bayesian predictive distributions.

    Notes
    -----
    One factorisation, O(n d min(n, d)), serves the fit, all penalties and all
    leave-one-out figures; predicting costs O(min(n, d)^2) per row. ``sample_weight``
    are repetition counts. Computation and results are in float64.

    The guarantee is relative to the models with noise scale sigma. 'loo' chooses sigma
    with the same data, which the theorems do not cover.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbounds import RidgeSMP
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeSMP(alpha="loo").fit(X[:100], y[:100])
    >>> mean, std = model.predict(X[100:102], return_std=True)
    >>> print(mean.round(0), std.round(0))
    [168.  84.] [53. 54.]
    >>> print(round(model.log_normalizer_mean_, 3))
    0.056
    """

    _takes_collections = True
    _parameter_constraints: dict = {
        "alpha": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"theory", "loo"}),
        ],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "sigma": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"loo", "joint"}),
        ],
        "width": [StrOptions({"smp", "bayes"})],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "copy_X": ["boolean"],
    }

    def __init__(
        self,
        alpha: Literal["theory", "loo"] | float = 1.0,
        *,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        sigma: Literal["loo", "joint"] | float = "loo",
        width: Literal["smp", "bayes"] = "smp",
        alphas: int | ArrayLike | None = None,
        copy_X: bool = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.sigma = sigma
        self.width = width
        self.alphas = alphas
        self.copy_X = copy_X

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
            Training rows. Of a collection of dask sums over its chunks are taken, in
            four passes, and the result is that of rows in memory.

            .. versionchanged:: 0.2
               Collections of dask are not made into arrays.

        y : array-like or dask collection of shape (n_samples,) or \
                (n_samples, n_outputs)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows, not necessarily integers.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if self.sigma == "joint" and self.alpha != 0:
            raise ValueError(
                "sigma='joint' is defined for the unpenalised model only: set alpha=0; "
                f"got alpha={self.alpha!r}."
            )
        if self.sigma == "joint" and self.width == "bayes":
            raise ValueError(
                "width='bayes' is for a noise scale that is given or estimated; got "
                "sigma='joint'."
            )
        if is_collection(X):
            sample = self._sample_of_chunks(X, y, sample_weight)
        else:
            sample = self._sample_of_rows(X, y, sample_weight)
        law, design = sample.law, sample.design
        n_coefficients = self.n_features_in_ + (design.intercept != 0)
        rank = int(np.sum(law.e > law.e.max(initial=0.0) * law.tolerance))
        if self.alpha == 0 and rank < n_coefficients:
            raise ValueError(
                "alpha=0 needs X of full column rank (after centring, with an "
                f"intercept); got rank {rank} with {self.n_features_in_} features and "
                f"{sample.n_rows} samples. Use alpha > 0."
            )
        scale = None
        if self.sigma != "joint":
            scale = self._noise_scale(sample)
        elif law.total <= rank + law.has_mean:
            raise ValueError(
                "sigma='joint' needs more samples than coefficients; got "
                f"n_samples={sample.n_rows} for {rank + law.has_mean} coefficients."
            )
        self._set_law(sample, sample.radius2, scale)

        V, z_mean = sample.vectors, sample.z_mean
        theta = (V @ (law.g / (law.e + self.alpha_)[:, None])).T
        design.center = sample.center
        coef, intercept = design.to_features(theta)
        intercept = intercept + law.mean - theta @ z_mean
        self._law_.update(
            e=law.e, V=V, g=law.g, z_mean=z_mean, mean=law.mean, design=vars(design)
        )
        if self.sigma == "joint":
            self._set_joint(sample)
        else:
            self._warn_floor(sample)
        self.coef_ = coef[0] if self._single_output_ else coef
        self.intercept_ = float(intercept[0]) if self._single_output_ else intercept
        return self

    def _sample_of_rows(self, X, y, sample_weight):
        """Return rows in memory in eigencoordinates."""
        X, y, weight = self._validate_training(X, y, sample_weight, copy=self.copy_X)
        keep = weight > 0
        if not keep.all():
            X, y, weight = X[keep], y[keep], weight[keep]
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        radius2 = row_norms(X, squared=True).max()
        if self.fit_intercept and self.penalize_intercept:
            radius2 += 1.0
        has_mean = self.fit_intercept and not self.penalize_intercept
        center = None
        if has_mean and not sparse.issparse(X):
            center = np.average(X, axis=0, weights=weight)
            if not X.flags.writeable:
                X = X.copy(order="K")
            X -= center
        design = make_design(
            X,
            weight,
            fit_intercept=self.fit_intercept and self.penalize_intercept,
            penalize_intercept=True,
        )
        Z = design.transform(X)
        z_mean = np.zeros(Z.shape[1])
        if has_mean and center is None:
            z_mean = Z.T @ weight / weight.sum()
        e, V = _eigencoordinates(Z, weight, z_mean)

        y_mean = np.average(y, axis=0, weights=weight) if has_mean else np.zeros(1)
        y_mean = np.broadcast_to(y_mean, y.shape[1:]).copy()
        centered = weight[:, None] * (y - y_mean)
        moments = Z.T @ centered
        moments -= np.outer(z_mean, centered.sum(axis=0))
        law = SpectralLaw(
            e=e,
            g=V.T @ moments,
            mean=y_mean,
            total=weight.sum(),
            has_mean=has_mean,
            tolerance=_rank_tolerance(Z),
            bayes=self.width == "bayes",
        )
        return RidgeSample(
            law, lambda rows: _centered(Z[rows], z_mean) @ V, y, weight,
            vectors=V, z_mean=z_mean, design=design, center=center, radius2=radius2,
        )  # fmt: skip

    def _sample_of_chunks(self, X, y, sample_weight):
        """Return rows in chunks in eigencoordinates."""
        chunks = Chunks(X, y, sample_weight, target="numbers")
        set_names(self, chunks)
        self._single_output_ = chunks.y_ndim == 1
        has_mean = self.fit_intercept and not self.penalize_intercept
        intercept = float(self.fit_intercept and self.penalize_intercept)
        return chunked_sample(
            chunks, has_mean=has_mean, intercept=intercept, bayes=self.width == "bayes"
        )

    def _set_joint(self, sample):
        total = sample.law.total
        (rss,) = sample.sums(residual_sums)
        if np.any(rss <= total * sample.floor**2):
            raise ValueError(
                "sigma='joint' needs residuals: y is constant or fitted exactly."
            )
        self.loo_log_loss_, self.log_normalizer_mean_ = joint_leave_one_out(
            sample, rss, 1.0 / (total + 1.0)
        )
        self.sigma_ = np.sqrt(rss / total)
        self._law_["rss"] = rss

    def _terms(self, X):
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_magnitude(X, "X")
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        law = self._law_
        design = Design(**law["design"])
        inverse = 1.0 / (law["e"] + self.alpha_)
        theta = law["g"] * inverse[:, None]
        parts = []
        for block in self._blocks(X, 3 * (X.shape[1] + len(inverse))):
            z = _centered(design.transform(block), law["z_mean"]) @ law["V"]
            # Squares of the inverse alone may be beyond what doubles hold.
            u = z * inverse
            parts.append(
                (
                    law["mean"] + z @ theta,
                    z**2 @ inverse + (1.0 / law["n"] if law["has_mean"] else 0.0),
                    (u**2).sum(axis=1),
                    u @ theta,
                )
            )
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _centered(Z, mean):
    """Return dense rows minus the mean."""
    return (Z.toarray() if sparse.issparse(Z) else Z) - mean


def _rank_tolerance(Z):
    """Return the relative size of an eigenvalue of the moments taken for zero."""
    eps = np.finfo(float).eps * max(Z.shape)
    # Dense rows are factorised themselves, sparse ones through their moments.
    return eps if sparse.issparse(Z) else eps**2


def _eigencoordinates(Z, weight, mean):
    """Return eigenvalues and all eigenvectors of the weighted, centred moments."""
    if sparse.issparse(Z):
        moments = (Z.T @ Z.multiply(weight[:, None])).toarray()
        uncentered = moments.diagonal().copy()
        moments -= weight.sum() * np.outer(mean, mean)
        if np.any(moments.diagonal() < 1e-4 * uncentered):
            # Offsets that dwarf the spread cancel too many digits.
            moments[:] = 0.0
            for rows in row_blocks(Z.shape[0], memory_limit() // (4 * Z.shape[1])):
                block = Z[rows].toarray() - mean
                moments += block.T @ (block * weight[rows, None])
        e, V = linalg.eigh(moments)
        return np.maximum(e, 0.0), V
    scaled = (Z - mean) * np.sqrt(weight)[:, None]
    if Z.shape[0] > Z.shape[1]:
        scaled = linalg.qr(scaled, mode="r", overwrite_a=True)[0][: Z.shape[1]]
    _, singular, Vt = linalg.svd(scaled, full_matrices=True)
    e = np.zeros(Z.shape[1])
    e[: len(singular)] = singular**2
    return e, Vt.T
