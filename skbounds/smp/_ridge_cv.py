"""The practical default of regression: a leave-one-out pool of Gaussian models."""

from __future__ import annotations

from itertools import product
from typing import Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, fit_from_scratch, warn_user
from skbounds._blocks import memory_limit, row_blocks
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import (
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
    check_sample_weight,
)
from skbounds._typing import MatrixLike
from skbounds._validation import as_numbers, validate_data
from skbounds.smp import _student
from skbounds.smp._design import Design
from skbounds.smp._grid import check_grid, feature_scale
from skbounds.smp._laws import ExpectsItsLogLoss, PredictiveLaws
from skbounds.smp._pool import pool_leave_one_out_loss, pool_weights
from skbounds.smp._ridge import RidgeSMP
from skbounds.smp._ridge_loo import sigma_floor

# Exponents of the width: of a Bayesian predictive law, and of the sample minmax one.
WIDTHS = (0.5, 1.0)
# Degrees of freedom beside those that residuals have left.
TAILS = (4.0, 8.0)
# Of the squared scale without a row, relative to that with it.
_LEAST = 0.05


class RidgeSMPCV(ExpectsItsLogLoss, PredictiveLaws, RegressorMixin, SkboundsEstimator):
    r"""Linear regression with predictive laws pooled by leave-one-out.

    Nothing to tune: the predictive law of a row is a mixture of Student laws,

    .. math::

        f(y \mid x) = \sum_{\alpha, u, \nu} q_{\alpha, u, \nu} \, t_\nu\bigl(y;
        \langle \hat\theta_\alpha, x\rangle,\; \tau (1 + h_\alpha(x))^u\bigr), \qquad
        q \propto \exp\Bigl(\sum_{i=1}^n \log f^{-i}_{\alpha, u, \nu}(y_i \mid
        x_i)\Bigr),

    over ridge penalties, widths (u = 1/2 of a Bayesian law, u = 1 of the sample minmax
    one, :math:`h_\alpha` the leverage) and tails (as many degrees of freedom as the
    residuals have left, 4, or 8). The leave-one-out densities are closed forms and cost
    no refit; pooling protects from the noise of a choice by them.

    Use it in place of :class:`~sklearn.linear_model.BayesianRidge` or an ordinary least
    squares regression with its intervals, when the law of a new target matters.

    Read more in the :ref:`User Guide <smp_ridge_pool>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=11
        Penalties, as in :class:`~sklearn.linear_model.Ridge`. An integer means that
        many values of ``logspace(-2, 3)`` times the mean variance of the features that
        vary; an array is taken as it is.

    aggregation : {'pool', 'best'}, default='pool'
        Whether to average all candidates or to use the best one alone. Candidates below
        a thousandth of the largest weight are left out of the pool.

    learning_rate : float, default=1.0
        Factor of the leave-one-out losses in the weights.

    fit_intercept : bool, default=True
        Whether to add an intercept, which is not penalised.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        Penalties.

    weights_ : ndarray of shape (n_alphas, 2, 3) or (n_outputs, n_alphas, 2, 3)
        Weights of the candidates: penalties, widths (1/2, 1), tails (residual degrees
        of freedom, 4, 8).

    loo_log_loss_path_ : ndarray of the same shape
        Leave-one-out log loss (in nats) of each candidate.

    loo_log_loss_ : float
        Leave-one-out log loss of the pool, each row scored by weights computed without
        it; summed over outputs.

    alpha_ : float or ndarray of shape (n_outputs,)
        Penalty of the best candidate.

    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of the mean of the predictive law.

    intercept_ : float or ndarray of shape (n_outputs,)
        Its intercept.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    RidgeSMP : One penalty and a normal law, with a bound of its excess risk.
    sklearn.linear_model.BayesianRidge : Normal laws, hyperparameters by evidence.

    Notes
    -----
    On the leave-one-out sample the pool is never worse than its best candidate by more
    than ``log(66) / n``: an inequality about that sample, not a bound. The theorems are
    about :class:`RidgeSMP` with a noise scale that is fixed beforehand.

    The scale :math:`\tau` of a candidate is that of greatest likelihood of its scaled
    leave-one-out residuals; without row i it is taken from one step of its fixed-point
    equation. One factorisation, O(n d min(n, d)), serves all penalties.

    These losses are optimistic below some 20 rows, as the noise scale without a row
    still rests on residuals of the fit with it: by .03 nats at 20 rows and 5 features,
    and by .3 at 8.

    On Gaussian data the pool pays for the heavier tails that it considers: about .008
    nats at 50 rows.

    ``sample_weight`` are repetition counts: integer weights equal repeated rows.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbounds import RidgeSMPCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeSMPCV().fit(X[:100], y[:100])
    >>> print(model.predict_interval(X[100:102], level=0.9).round(0))
    [[ 79. 257.]
     [ -8. 174.]]
    >>> print(round(model.loo_log_loss_, 2))
    5.45
    """

    _parameter_constraints: dict = {
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "aggregation": [StrOptions({"pool", "best"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        alphas: int | ArrayLike = 11,
        *,
        aggregation: Literal["pool", "best"] = "pool",
        learning_rate: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.alphas = alphas
        self.aggregation = aggregation
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows, not necessarily integers.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X, y = validate_data(
            self,
            X,
            as_numbers(y),
            accept_sparse="csr",
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
        )
        y = np.asarray(y, dtype=np.float64)
        check_magnitude(X, "X")
        check_magnitude(y, "y")
        weight = check_sample_weight(sample_weight, X)
        kept = weight > 0.0
        if not kept.all():
            X, y, weight = X[kept], y[kept], weight[kept]
        total = weight.sum()
        if total <= 3.0:
            raise ValueError(
                f"RidgeSMPCV needs more than 3 samples; got n_samples={total:g}: the "
                "noise scale is estimated from them."
            )
        self._single_output_ = y.ndim == 1
        y = y.reshape(len(y), -1)
        # Squares of tiny targets would vanish.
        y_unit = np.abs(y).max(axis=0)
        y_unit[y_unit == 0.0] = 1.0
        y = y / y_unit
        grid = check_grid(self.alphas, "alphas", decades=(-2, 3))
        scale = 1.0
        if isinstance(self.alphas, Integral):
            # In units of the features, whose squares may be out of range.
            scale = feature_scale(X, weight, centred=self.fit_intercept)
        X = X / scale
        # Coordinates in which all penalties are solved.
        frame = RidgeSMP(1.0, sigma=1.0, fit_intercept=self.fit_intercept)
        frame.fit(X, y, sample_weight=weight)
        law = frame._law_
        self._law_ = {
            name: law[name] for name in ("e", "V", "g", "z_mean", "mean", "design")
        }
        self._law_ |= {"n": total, "scale": scale, "unit": y_unit}
        self._grid_ = grid

        shape = len(grid), len(WIDTHS), 1 + len(TAILS)
        n_outputs = y.shape[1]
        losses = np.empty((n_outputs, *shape, len(y)))
        self._scales_ = np.empty((n_outputs, *shape))
        self._freedom_ = np.empty((len(grid), 1 + len(TAILS)))
        z, constant = self._coordinates(X)
        floor = sigma_floor(y, self._law_["mean"]) ** 2
        floored = np.zeros(n_outputs, dtype=bool)
        for a, alpha in enumerate(grid):
            inverse = self._inverse(alpha)
            leverage = z**2 @ inverse + constant
            freedom = max(total - float(weight @ leverage), 1.0)
            self._freedom_[a] = freedom, *TAILS
            fitted = self._law_["mean"] + z @ (self._law_["g"] * inverse[:, None])
            unit = np.minimum(weight, 1.0)
            rest = np.maximum(1.0 - unit * leverage, 1e-10)
            h = leverage / rest
            for j, u, k in np.ndindex(n_outputs, *shape[1:]):
                residual = (y[:, j] - fitted[:, j]) / rest
                width = (1.0 + h) ** WIDTHS[u]
                nu = self._freedom_[a, k]
                tau2 = _student.scale_by_likelihood(residual / width, nu, weight)
                if tau2 <= floor[j]:
                    tau2, floored[j] = floor[j], True
                without = _without_rows(residual / width, nu, tau2, weight, unit)
                std = np.sqrt(np.maximum(without, _LEAST * tau2)) * width
                losses[j, a, u, k] = np.log(std) - _student.log_density(
                    residual / std, nu
                )
                self._scales_[j, a, u, k] = np.sqrt(tau2)
        if floored.any():
            warn_user(
                "The noise scale is zero to working precision (constant or exactly "
                "fitted y); a small positive floor is used."
            )
        options = (weight, self.learning_rate, self.aggregation)
        flat = losses.reshape(n_outputs, -1, len(y))
        weights = np.array([pool_weights(part, *options) for part in flat])
        self._weights_ = weights.reshape(n_outputs, *shape)
        self.weights_ = self._output(self._weights_)
        logarithm = np.log(y_unit)
        self.loo_log_loss_ = float(logarithm.sum()) + sum(
            pool_leave_one_out_loss(part, *options) for part in flat
        )
        path = losses @ weight / total + logarithm[:, None, None, None]
        self.loo_log_loss_path_ = self._output(path)
        with np.errstate(over="ignore", under="ignore"):
            self.alphas_ = grid * scale * scale
        best = path.reshape(n_outputs, -1).argmin(axis=1)
        best = np.unravel_index(best, shape)[0]
        self.alpha_ = self._output(self.alphas_[best])
        self._set_coefficients()
        return self

    def _set_coefficients(self):
        """Set the coefficients of the mean of the law, which is linear."""
        law = self._law_
        by_alpha = self._weights_.sum(axis=(2, 3))
        shrunk = np.stack([self._inverse(alpha) for alpha in self._grid_])
        theta = (law["g"] * (by_alpha @ shrunk).T).T @ law["V"].T
        design = Design(**law["design"])
        coef, intercept = design.to_features(theta)
        intercept = intercept + law["mean"] - theta @ law["z_mean"]
        self.coef_ = self._output(coef / law["scale"] * law["unit"][:, None])
        self.intercept_ = self._output(intercept * law["unit"])
        if self._single_output_:
            self.intercept_ = float(self.intercept_)

    def _output(self, values):
        """Drop the first axis, of outputs, where y was 1-d."""
        return values[0] if self._single_output_ else values

    def _inverse(self, alpha):
        e = self._law_["e"] + alpha
        return 1.0 / np.where(e > 0.0, e, np.inf)

    def _coordinates(self, X):
        """Return eigencoordinates of rows, and the intercept's leverage."""
        law = self._law_
        design = Design(**law["design"])
        Z = design.transform(X)
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        constant = 1.0 / law["n"] if self.fit_intercept else 0.0
        return (Z - law["z_mean"]) @ law["V"], constant

    def _check_rows(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_magnitude(X, "X")
        return X

    def _laws(self, X):
        """Yield row blocks with, per output, the components of their mixtures.

        Locations and scales (m, n_components), degrees of freedom and weights.
        """
        law = self._law_
        n_components = int(np.count_nonzero(self._weights_, axis=(1, 2, 3)).max())
        width = 4 * (X.shape[1] + len(law["e"]) + 4 * n_components)
        for rows in row_blocks(X.shape[0], memory_limit() // width):
            z, constant = self._coordinates(X[rows] / law["scale"])
            parts = []
            for j, weights in enumerate(self._weights_):
                location, scale, freedom, weight = [], [], [], []
                for a, alpha in enumerate(self._grid_):
                    if not weights[a].any():
                        continue
                    inverse = self._inverse(alpha)
                    mean = law["mean"][j] + z @ (law["g"][:, j] * inverse)
                    spread = 1.0 + z**2 @ inverse + constant
                    for u, k in product(range(len(WIDTHS)), range(1 + len(TAILS))):
                        if weights[a, u, k] > 0.0:
                            location.append(mean * law["unit"][j])
                            tau = self._scales_[j, a, u, k] * law["unit"][j]
                            scale.append(tau * spread ** WIDTHS[u])
                            freedom.append(self._freedom_[a, k])
                            weight.append(weights[a, u, k])
                parts.append(
                    (
                        np.stack(location, axis=1),
                        np.stack(scale, axis=1),
                        np.array(freedom),
                        np.array(weight),
                    )
                )
            yield rows, parts

    def _map(self, function, X, y=None):
        """Return a number per row and output, (n_samples, n_outputs, ...)."""
        blocks = []
        for rows, parts in self._laws(X):
            columns = [
                function(*(() if y is None else (y[rows, j],)), *part)
                for j, part in enumerate(parts)
            ]
            blocks.append(np.stack(columns, axis=-1))
        return np.concatenate(blocks)

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[False] = False
    ) -> np.ndarray: ...

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self, X: MatrixLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of the predictive law.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        return_std : bool, default=False
            Whether to return the standard deviation too, which includes the noise.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean of the law.

        y_std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Standard deviation. Only if ``return_std=True``.
        """
        X = self._check_rows(X)
        mean = self._map(lambda location, scale, freedom, w: location @ w, X)
        if not return_std:
            return self._by_output(mean)
        variance = self._map(_student.mixture_variance, X)
        if np.isinf(variance).any():
            raise ValueError(
                "The predictive law has no standard deviation: a component has at most "
                "two degrees of freedom. Use predict_quantiles or predict_interval."
            )
        return self._by_output(mean), self._by_output(np.sqrt(variance))

    def _quantiles_of(self, X, levels):
        X = self._check_rows(X)
        return self._map(lambda *law: _student.mixture_quantiles(levels, *law), X)

    def _log_density_of(self, X, y):
        def density(target, location, scale, freedom, weight):
            laws = (location, scale, freedom, np.log(weight))
            return _student.mixture_log_density(target, *laws)

        return self._map(density, self._check_rows(X), y)

    def _cdf_of(self, X, y):
        return self._map(_student.mixture_cdf, self._check_rows(X), y)

    def _crps_of(self, X, y):
        return self._map(_student.mixture_crps, self._check_rows(X), y)

    def _draws_of(self, X, size, rng):
        X = self._check_rows(X)
        uniforms = rng.random((2, X.shape[0], size, self._n_outputs))
        result = np.empty(uniforms.shape[1:])
        for rows, parts in self._laws(X):
            for j, law in enumerate(parts):
                own = uniforms[:, rows, :, j]
                result[rows, :, j] = _student.mixture_draws(*law, own)
        return result

    @property
    def _n_outputs(self):
        return len(self._weights_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _without_rows(r, nu, tau2, weight, unit):
    """Return the squared scale without each row, by one step of its equation."""
    total = weight.sum()
    square = r**2
    w = (nu + 1.0) / (nu + square / tau2)
    moved = (total * tau2 - unit * w * square) / (total - unit) - tau2
    ratio = square / tau2
    slope = weight @ (w * square * ratio / (nu + ratio)) / total
    return tau2 + moved / max(1.0 - slope / tau2, 0.2)
