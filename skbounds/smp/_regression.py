"""What the Gaussian sample minmax predictors share, and the score for them."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, warn_user
from skbounds._blocks import memory_limit, row_blocks
from skbounds._collections import lazy_on_collections
from skbounds._magnitude import SMALLEST, check_magnitude, check_size_of_targets
from skbounds._sklearn_compat import Real, check_sample_weight
from skbounds._typing import MatrixLike
from skbounds._validation import as_numbers, validate_data
from skbounds.smp._bounds import ridge_bound
from skbounds.smp._excess import Excess, ExcessStatements, ridge_excess
from skbounds.smp._gaussian import (
    bayes_law,
    joint_cdf,
    joint_log_density,
    joint_log_normalizer,
    joint_quantiles,
    joint_sample,
    normal_crps,
    normal_log_density,
    ridge_law,
)
from skbounds.smp._grid import check_grid
from skbounds.smp._laws import ExpectsItsLogLoss, PredictiveLaws
from skbounds.smp._ridge_loo import leave_one_out_figures


class BaseSMPRegressor(
    ExpectsItsLogLoss,
    ExcessStatements,
    PredictiveLaws,
    RegressorMixin,
    SkboundsEstimator,
):
    """Choice of penalty and noise scale, and all predictions from the law's terms.

    Subclasses implement ``_terms(X)``: fitted values (m, n_outputs), h, q (m,) and s
    (m, n_outputs) as in ``_gaussian.ridge_law``.
    """

    def _validate_training(self, X, y, sample_weight, **options):
        """Return rows of positive weight, targets (n, n_outputs) and weights."""
        X, y = validate_data(
            self,
            X,
            as_numbers(y),
            accept_sparse="csr",
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            **options,
        )
        y = np.asarray(y, dtype=np.float64)
        check_magnitude(X, "X")
        check_magnitude(y, "y")
        if isinstance(self.sigma, str):
            check_size_of_targets(y)
        weight = check_sample_weight(sample_weight, X)
        self._single_output_ = y.ndim == 1
        return X, y.reshape(len(y), -1), weight

    def _set_law(self, sample, radius2, scale):
        """Set penalty, noise scale and leave-one-out figures from a training sample.

        ``scale`` is the noise scale per output, or None to estimate it.
        """
        if self.alpha == 0.0 and 0.0 < sample.law.e.max(initial=0.0) < SMALLEST**2:
            raise ValueError(
                "alpha=0 inverts squares of the features, which vanish here. Multiply "
                "X by a constant."
            )
        if self.alpha == "loo":
            grid = 25 if self.alphas is None else self.alphas
            alphas = check_grid(grid, "alphas", decades=(-4, 4))
            figures = leave_one_out_figures(sample, alphas, scale)
            path = np.array([item.log_loss for item in figures])
            # Sorted downwards, the first minimum is the one with the largest penalty.
            order = np.argsort(-alphas, kind="stable")
            best = order[np.argmin(path[order])]
            alpha, chosen = alphas[best], figures[best]
            self.alphas_, self.loo_log_loss_path_ = alphas, path
        else:
            alpha = self.alpha
            if alpha == "theory":
                if 0.0 < radius2 < SMALLEST**2:
                    raise ValueError(
                        f"alpha='theory' is twice the largest squared norm of a row, "
                        f"{radius2:.3g} here: squares of such features vanish. "
                        "Multiply X by a constant."
                    )
                alpha = 2.0 * radius2 if radius2 > 0 else 1.0
            chosen = leave_one_out_figures(sample, np.array([float(alpha)]), scale)[0]
        law = sample.law
        total = law.total
        self.alpha_ = float(alpha)
        self.lambda_ = float(alpha / (total + 1.0))
        with np.errstate(over="ignore", invalid="ignore"):
            squared_norm = np.sum((law.g / (law.e + alpha)[:, None]) ** 2, axis=0)
        # Without a penalty it may be unknown, and is not used.
        if not np.isfinite(chosen.sigma).all() or np.isinf(squared_norm).any():
            raise ValueError(
                "The noise scale or a coefficient is beyond the range of doubles: "
                "targets or features are too large to compute with. Divide by a "
                "constant."
            )
        self.sigma_ = chosen.sigma
        self.loo_log_loss_ = chosen.log_loss
        self.log_normalizer_mean_ = chosen.log_normalizer_mean
        excess = Excess()
        if self.sigma != "joint":
            excess = ridge_excess(sample, self.alpha_, self.sigma_)
        self._excess_ = vars(excess)
        self.leverage_bound_ = chosen.leverage_bound
        self.effective_dof_ = chosen.effective_dof
        self.bound_valid_ = bool(
            isinstance(self.sigma, Real)
            and self.alpha != "loo"
            and (alpha == 0 or not law.has_mean)
            and sample.least_weight >= 1.0
            and not law.bayes
        )
        self._law_ = {
            "n": float(total),
            "radius2": float(radius2),
            "squared_norm": squared_norm,
            "has_mean": law.has_mean,
            "bayes": law.bayes,
        }

    def _noise_scale(self, sample):
        """Return the noise scale given by the parameter, None to estimate it."""
        if isinstance(self.sigma, Real):
            return np.full(len(sample.law.mean), float(self.sigma))
        if sample.law.has_mean and sample.law.total <= 1:
            raise ValueError(
                "sigma='loo' with an unpenalised intercept needs at least 2 samples; "
                "got n_samples=1. Give sigma as a float."
            )
        return None

    def _warn_floor(self, sample):
        if self.sigma == "loo" and np.any(self.sigma_ <= sample.floor):
            warn_user(
                "The leave-one-out noise scale is zero to working precision (constant "
                "or exactly fitted y); a small positive floor is used. Give sigma as a "
                "float if the predictive density matters.",
                UserWarning,
            )

    def _blocks(self, X, width):
        """Yield row blocks of X such that ``width`` doubles per row fit in memory."""
        for rows in row_blocks(X.shape[0], memory_limit() // width):
            yield X[rows]

    def _normal_law(self, X):
        """Return mean, standard deviation and log normaliser, (m, n_outputs) each."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            fitted, h, q, s = self._terms(X)
            mean, std, log_normalizer = ridge_law(
                fitted, h, q, s, self._law_["squared_norm"], self.lambda_, self.sigma_
            )
            if self._law_["bayes"]:
                mean, std = bayes_law(fitted, h, self.sigma_)
        check_reach(mean, std, log_normalizer)
        return mean, std, log_normalizer

    def _joint_law(self, X):
        """Return centre (m, n_outputs), h (m,) and parameters of the scale-free law."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            fitted, h, _, _ = self._terms(X)
        check_reach(fitted, h)
        n = self._law_["n"]
        return fitted, h, {"n": n, "kappa": 1.0 / (n + 1.0)}

    def _excess(self):
        check_is_fitted(self)
        return Excess(**self._excess_)

    def _penalty_of(self, norm):
        if self._is_joint:
            return 0.0
        return 0.5 * self.lambda_ * (norm / float(np.min(self.sigma_))) ** 2

    @property
    def _is_joint(self):
        return self._params_["sigma"] == "joint"

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[False] = False
    ) -> np.ndarray: ...

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...

    @lazy_on_collections
    def predict(
        self, X: MatrixLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of the predictive law.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        return_std : bool, default=False
            Whether to return the standard deviation too, which includes the noise.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean of the law. Shrunk more than the ridge prediction where the leverage is
            high.

        y_std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Standard deviation. Only if ``return_std=True``.
        """
        check_is_fitted(self)
        if self._is_joint:
            if return_std:
                raise ValueError(
                    "sigma='joint' has no standard deviation: the variance of the "
                    "scale-free law is infinite. Use predict_quantiles."
                )
            return self._by_output(self._joint_law(X)[0])
        mean, std, _ = self._normal_law(X)
        if return_std:
            return self._by_output(mean), self._by_output(std)
        return self._by_output(mean)

    def _quantiles_of(self, X, levels):
        if not self._is_joint:
            mean, std, _ = self._normal_law(X)
            return mean[:, None, :] + std[:, None, :] * ndtri(levels)[:, None]
        fitted, h, law = self._joint_law(X)
        columns = [
            fitted[:, [j]] + joint_quantiles(levels, h, rss, **law)
            for j, rss in enumerate(self._law_["rss"])
        ]
        return np.stack(columns, axis=2)

    def _cdf_of(self, X, y):
        if self._is_joint:
            fitted, h, law = self._joint_law(X)
            columns = [
                joint_cdf(y[:, j] - fitted[:, j], h, rss, **law)
                for j, rss in enumerate(self._law_["rss"])
            ]
            return np.stack(columns, axis=1)
        mean, std, _ = self._normal_law(X)
        return ndtr((y - mean) / std)

    def _draws_of(self, X, size, rng):
        if self._is_joint:
            fitted, h, law = self._joint_law(X)
            columns = [
                fitted[:, [j]] + joint_sample(h, rss, **law, size=size, rng=rng)
                for j, rss in enumerate(self._law_["rss"])
            ]
            return np.stack(columns, axis=2)
        mean, std, _ = self._normal_law(X)
        z = rng.standard_normal((len(mean), size, mean.shape[1]))
        return mean[:, None] + std[:, None] * z

    def _crps_of(self, X, y):
        if self._is_joint:
            return np.full(y.shape, np.inf)
        mean, std, _ = self._normal_law(X)
        return normal_crps(y, mean, std)

    @property
    def _n_outputs(self):
        return len(self.sigma_)

    def _log_density_of(self, X, y):
        if self._is_joint:
            fitted, h, law = self._joint_law(X)
            terms = h[:, None], self._law_["rss"]
            return joint_log_density(y - fitted, *terms, **law)
        mean, std, _ = self._normal_law(X)
        return normal_log_density((y - mean) / std, std)

    @lazy_on_collections
    def log_normalizer(self, X: MatrixLike) -> np.ndarray:
        """Compute ``log Z``, the label-free measure of a row's uncertainty.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, labelled or not.

        Returns
        -------
        log_normalizer : ndarray of shape (n_samples,)
            In nats, summed over the outputs; its mean over fresh rows is an unbiased
            estimate of what `log_normalizer_mean_` estimates by leave-one-out.
        """
        check_is_fitted(self)
        if self._is_joint:
            _, h, law = self._joint_law(X)
            result = joint_log_normalizer(h[:, None], self._law_["rss"], **law)
        else:
            result = self._normal_law(X)[2]
        return result.sum(axis=1)

    def theory_bound(self, norm_bound: float) -> float:
        """Compute the closed-form excess-risk bound, that of Theorem 5 or better.

        Parameters
        ----------
        norm_bound : float
            Norm B of the coefficients (per output) of the competing models. Not used
            when ``alpha=0``, where the bound is ``leverage_bound_``.

        Returns
        -------
        bound : float
            ``lambda_ * B**2 / (2 * sigma**2)`` in nats and the smaller of two bounds
            of ``E log Z``, summed over the outputs: ``g * df / (n + 1)`` with ``df``
            the effective degrees of freedom and ``g = (1 + v) log(1 + v) / v``,
            ``v = R**2 / alpha_`` (at most 1.22 for ``alpha='theory'``), and
            `leverage_bound_` (Theorem 4 where ``alpha=0``). An expectation over
            training sets and one new row, relative to models with noise scale
            ``sigma_``; a theorem only if ``bound_valid_``.
        """
        check_is_fitted(self)
        if not (isinstance(norm_bound, Real) and norm_bound >= 0):
            raise ValueError(
                f"norm_bound must be a non-negative number; got {norm_bound!r}."
            )
        if self.alpha_ == 0:
            return self.leverage_bound_ * len(self.sigma_)
        n, radius2 = self._law_["n"], self._law_["radius2"]
        return float(
            sum(
                ridge_bound(
                    self.effective_dof_,
                    self.lambda_,
                    n,
                    radius2,
                    norm_bound / sigma,
                    self.leverage_bound_,
                )
                for sigma in self.sigma_
            )
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def log_density_score(estimator: Any, X: MatrixLike, y: ArrayLike) -> float:
    """Score a fitted estimator by its mean log predictive density.

    A scorer: pass it as ``scoring=log_density_score``.

    Parameters
    ----------
    estimator : object
        Fitted estimator with a method ``log_density(X, y)``, a pipeline that ends in
        one, or a search over either.

    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.

    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.

    Returns
    -------
    score : float
        Mean log density in nats; greater is better.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from skbounds import RidgeSMP, log_density_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = cross_val_score(RidgeSMP("loo"), X, y, scoring=log_density_score)
    >>> print(scores.mean().round(2))
    -5.42
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "log_density"):
        return float(np.mean(estimator.log_density(X, y)))
    if hasattr(estimator, "steps") and hasattr(estimator[-1], "log_density"):
        rows = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        return float(np.mean(estimator[-1].log_density(rows, y)))
    raise TypeError(
        "log_density_score needs an estimator with a log_density method; got "
        f"{estimator!r}."
    )


def check_reach(*terms):
    """Refuse rows whose law is beyond what doubles hold."""
    if not all(np.isfinite(term).all() for term in terms):
        raise ValueError(
            "Some row of X is too far from those of the fit: its leverage is beyond "
            "the range of doubles."
        )
