"""Sample minmax prediction with regressors of scikit-learn."""

from __future__ import annotations

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri
from sklearn.base import MetaEstimatorMixin, RegressorMixin
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skbounds._base import SkboundsEstimator, fit_from_scratch, warn_user
from skbounds._frames import is_frame, only_column
from skbounds._magnitude import check_spread_of_targets
from skbounds._seeds import seeded
from skbounds._sklearn_compat import (
    HasMethods,
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
    num_samples,
    safe_indexing,
)
from skbounds._typing import MatrixLike
from skbounds._validation import as_numbers, check_array, validate_data
from skbounds.smp._gaussian import normal_crps, normal_log_density
from skbounds.smp._glm import GLM, blocks, log_normalizers, table
from skbounds.smp._laws import PredictiveLaws
from skbounds.smp._refits import (
    TrainingRows,
    as_features,
    last_step,
    penalty_root,
    require_targets,
    weighted_rows,
)
from skbounds.smp._regression import check_reach

# Relative to the scale of y: what a prediction may differ from an affine function of y.
_AFFINE_TOL = 1e-6
# What a prediction must lack of following a target: at a training row, and at any row.
_FOLLOWS, _ROUNDING = 1e-9, 1e-13
# How far targets are moved to see whether predictions are affine in them.
_FAR_MOVE = 30.0
# Edges of laws while their scale is searched for.
_FEW_NODES = 151
# Factor by which the shape of a gamma law may differ from that of the residuals.
_SHAPES = 20.0


class SMPRegressor(
    PredictiveLaws, MetaEstimatorMixin, RegressorMixin, SkboundsEstimator
):
    r"""Sample minmax predictor of linear smoothers, Poisson and gamma regression.

    The predictive density of y is what the model gives to y after it has seen the row
    with this y, normalised over y (Theorem 1 of [1]_). With ``method="refit"`` the
    model is normal with a fixed noise scale around the prediction of any regressor
    that is affine in the training targets: least squares, ridge and kernel ridge
    regression, Gaussian processes with fixed kernels, nearest neighbours, splines. Two
    refits per row then give the law exactly. With ``method="influence"`` it is Poisson
    or gamma regression, and one step per target replaces the refits.

    Read more in the :ref:`User Guide <smp_any>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    estimator : estimator or None, default=None
        Regressor, or a pipeline that ends in one. None means
        :class:`~sklearn.linear_model.Ridge`.

    method : {'refit', 'influence'}, default='refit'
        ``'refit'``: two fits per row, of a regressor that is affine in y.
        ``'influence'``: one step with the Hessian of the fit to the training rows, for
        :class:`~sklearn.linear_model.PoissonRegressor` and
        :class:`~sklearn.linear_model.GammaRegressor` with a penalty, alone or last in a
        pipeline whose other steps stay as they are.

    sigma : float or 'loo', default='loo'
        Noise scale: the standard deviation of the normal model, or the coefficient of
        variation of the gamma model. ``'loo'`` is the one with the best leave-one-out
        log loss, which takes a refit for every training row. Poisson regression has
        none.

    n_jobs : int, default=None
        Jobs over rows that are predicted (or left out). None means 1.

    random_state : int, default=0
        Seed of the refits, of every random state of the regressor that is None.

    Attributes
    ----------
    estimator_ : estimator
        The regressor fitted to the training rows.

    sigma_ : float
        Noise scale; 1 for Poisson regression.

    log_normalizer_mean_ : float
        Leave-one-out estimate of the expected ``log Z``, with one row less: with the
        penalty of a model, what the predictor exceeds its risk by at most in
        expectation, for any law of the data and a noise scale fixed beforehand.

    loo_log_loss_ : float
        Leave-one-out log loss in nats.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    RidgeSMP : The same for ridge regression, in closed form.
    SMPClassifier : For classes.

    Notes
    -----
    With predictions ``a + b y`` at the row itself, the law of the first kind is normal
    with mean ``a / (1 - b)`` and standard deviation ``sigma / (1 - b)``, and ``Z`` is
    ``1 / (1 - b)``; a penalty that is a squared norm and known (that of
    :class:`~sklearn.linear_model.Ridge` and
    :class:`~sklearn.kernel_ridge.KernelRidge`, also last in a pipeline) is counted.
    Laws of Poisson and gamma regression are tabulated on a fine grid; their tails are
    summable because of the penalty only.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from skbounds import SMPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> curve = make_pipeline(SplineTransformer(), Ridge())
    >>> model = SMPRegressor(curve).fit(X[:60, [2]], y[:60])
    >>> print(model.predict_interval(X[60:62, [2]]).round(0))
    [[ 39. 248.]
     [ 46. 257.]]
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "method": [StrOptions({"refit", "influence"})],
        "sigma": [StrOptions({"loo"}), Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, 2**31 - 1, closed="left")],
    }
    _lazy_attributes = ("log_normalizer_mean_", "loo_log_loss_")

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["refit", "influence"] = "refit",
        sigma: Literal["loo"] | float = "loo",
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.sigma = sigma
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the regressor and keep the training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Training rows, of any kind that the regressor takes.

        y : array-like of shape (n_samples,)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts of the rows; the regressor must take them.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        require_targets(self, y)
        y = check_array(
            column_or_1d(as_numbers(only_column(y)), warn=not is_frame(y)),
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
            ensure_min_samples=0,
        )
        X, y, weight = weighted_rows(self, X, y, sample_weight)
        model = Ridge() if self.estimator is None else self.estimator
        rows = TrainingRows(seeded(model, int(self.random_state)), X, y, weight)
        rows.check_weights()
        self.estimator_ = rows.fit()
        self._single_output_, self._n_outputs = True, 1
        self._rows_ = vars(rows)
        if self.method == "influence":
            self._fit_glm(rows)
        else:
            self._fit_normal(rows)
        return self

    # ------------------------------------------------------------ normal models

    def _training_rows(self):
        return TrainingRows(**{**self._rows_, "n_jobs": self.n_jobs})

    def _fit_normal(self, rows):
        n = len(rows.y)
        if n < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 samples; got n_samples={n}."
            )
        # What the targets are moved by to see how predictions follow.
        check_spread_of_targets(rows.y)
        spread = float(np.ptp(rows.y))
        self._move_ = spread if spread > 0.0 else max(1.0, float(np.abs(rows.y).max()))
        self._check_affine(rows)
        if self.sigma != "loo":
            self.sigma_ = float(self.sigma)
            return
        start, square, linear, _ = self._left_out()
        z = (rows.y - start + linear / square) * np.sqrt(square)
        share = rows.counts / rows.counts.sum()
        floor = 1e-10 * (self._move_ if spread > 0.0 else 1.0)
        self.sigma_ = float(max(np.sqrt(share @ z**2), floor))

    def _check_affine(self, rows):
        """Raise an error if predictions at rows are not affine in their targets."""
        few = TrainingRows(**{**vars(rows), "n_jobs": None})
        follows = []
        for i in sorted({0, len(rows.y) // 2, len(rows.y) - 1}):
            row, predictions = safe_indexing(rows.X, [i]), []
            # Choices that the regressor makes by itself show at targets far away.
            for move in (0.0, 1.0, -_FAR_MOVE):
                few.y = rows.y.copy()
                few.y[i] += move * self._move_
                predictions.append(float(np.ravel(few.fit().predict(row))[0]))
            middle, above, below = predictions
            slope = above - middle
            bend = below - middle + _FAR_MOVE * slope
            if not abs(bend) <= _AFFINE_TOL * _FAR_MOVE * self._move_:
                raise ValueError(
                    "method='refit' needs a regressor whose prediction is an affine "
                    f"function of the training targets; {rows.estimator!r} is not. "
                    "Ridge, KernelRidge, nearest neighbours and Gaussian processes "
                    "with optimizer=None are."
                )
            follows.append(not slope < self._move_ * (1.0 - _FOLLOWS))
        if all(follows):
            raise ValueError(
                f"{rows.estimator!r} follows the target of a row all the way (a "
                "neighbour alone, a full tree, interpolation): no law of the target "
                "comes out."
            )

    def _terms(self, fits):
        """Return y_0, A, B and C of ``A u^2 + 2 B u + C`` with ``y = y_0 + u``, (m,).

        That is twice the loss of a virtual fit at its own target with noise scale 1.
        ``fits`` has per row the answers of two fits: target, prediction and penalty.
        """
        result = np.empty((4, len(fits)))
        for r, ((y0, f0, v0), (y1, f1, v1)) in enumerate(fits):
            slope, pull = (f1 - f0) / (y1 - y0), (v1 - v0) / (y1 - y0)
            # As little as can be told from nothing.
            rest = max(1.0 - slope, _ROUNDING)
            square, linear = rest**2 + pull @ pull, rest * (y0 - f0) + pull @ v0
            # What is left at the best target: nothing without a penalty.
            least = (y0 - f0) ** 2 + v0 @ v0 - linear**2 / square if pull.size else 0.0
            result[:, r] = y0, square, linear, max(least, 0.0)
        return result

    def _answer(self, total):
        def answer(fit, _, row, label):
            return label, float(np.ravel(fit.predict(row))[0]), penalty_root(fit, total)

        return answer

    def _left_out(self):
        """Return the terms of the training rows, each left out; computed once."""
        if not hasattr(self, "_left_out_"):
            rows = self._training_rows()
            total = float(rows.counts.sum())
            fits = rows.map_replaced(
                lambda i: (rows.y[i], rows.y[i] + self._move_), self._answer(total)
            )
            self._left_out_ = self._terms(fits)
        return self._left_out_

    def _normal(self, X):
        """Return mean, standard deviation and log normaliser, (m,) each."""
        check_is_fitted(self)
        # Refuses what the regressor refuses; where the targets begin.
        fitted = np.ravel(self.estimator_.predict(X))
        validate_data(self, X, reset=False, skip_check_array=True)
        (X,) = indexable(X)
        rows = self._training_rows()
        total = float(rows.counts.sum()) + 1.0
        move = np.maximum(self._move_, np.abs(fitted))
        fits = rows.map_added(
            X, lambda r: (fitted[r], fitted[r] + move[r]), self._answer(total)
        )
        terms = self._terms(fits)
        flat = np.count_nonzero(terms[1] <= 4.0 * _ROUNDING**2)
        if flat:
            warn_user(
                f"At {flat} of {len(fitted)} rows the regressor follows a target all "
                "the way: their laws are flat."
            )
        return self._law_of(terms)

    def _law_of(self, terms):
        start, square, linear, least = terms
        # The square of the noise scale may not be a double.
        with np.errstate(over="ignore", invalid="ignore"):
            penalty = 0.5 * (least / self.sigma_) / self.sigma_
            log_normalizer = -0.5 * np.log(square) - penalty
            mean, std = start - linear / square, self.sigma_ / np.sqrt(square)
        check_reach(mean, std, log_normalizer)
        return mean, std, log_normalizer

    # ---------------------------------------------------------------- other models

    def _fit_glm(self, rows):
        model = last_step(self.estimator_)
        if (
            not isinstance(model, (PoissonRegressor, GammaRegressor))
            or model.alpha <= 0
        ):
            raise ValueError(
                "method='influence' needs a PoissonRegressor or GammaRegressor with "
                "alpha > 0 (without a penalty there is no such law), alone or last in "
                f"a pipeline; got {model!r}. Regressors that are affine in y take "
                "method='refit'."
            )
        family = "poisson" if isinstance(model, PoissonRegressor) else "gamma"
        if family == "poisson" and self.sigma not in ("loo", 1.0):
            raise ValueError(
                f"Poisson regression has no noise scale; got sigma={self.sigma!r}."
            )
        if family == "poisson" and np.any(rows.y != np.floor(rows.y)):
            warn_user(
                "y does not hold whole numbers: the law is one of counts, which these "
                "are not (their log density is -inf, loo_log_loss_ nan)."
            )
        theta, penalized = model.coef_, np.ones(len(model.coef_))
        if model.fit_intercept:
            theta = np.append(theta, model.intercept_)
            penalized = np.append(penalized, 0.0)
        if not np.isfinite(theta).all():
            raise ValueError(
                f"{type(model).__name__} has coefficients that are not finite on these "
                "rows: all targets are zero, or features are too large."
            )
        self._glm_ = {
            "family": family,
            "alpha": float(model.alpha),
            "Z": self._features(rows.X),
            "y": rows.y,
            "weight": rows.counts,
            "theta": theta,
            "penalized": penalized,
        }
        # A fit whose laws cannot be had is no fit.
        GLM(**self._glm_).check_curvature()
        self.sigma_ = 1.0
        if family == "gamma":
            self.sigma_ = self._gamma_scale() if self.sigma == "loo" else self.sigma

    def _features(self, X):
        Z = as_features(self.estimator_, X)
        if not last_step(self.estimator_).fit_intercept:
            return Z
        return np.column_stack([Z, np.ones(len(Z))])

    def _gamma_scale(self):
        """Return the coefficient of variation with the best leave-one-out loss."""
        glm = GLM(**self._glm_)
        # Of targets by fitted means, not beyond what is a scale at all.
        ratio = np.log(glm.y) - glm.Z @ glm.theta
        ratio = np.exp(np.clip(ratio, -50.0, 50.0))
        first = float(glm.weight @ (ratio - 1.0) ** 2 / glm.weight.sum())
        first = np.log(min(max(first, 1e-8), 1e4))
        steps = glm.replaced()

        def loss(log_square):
            nu = np.exp(-log_square)
            own = glm.log_likelihood(steps, glm.y[:, None], nu)[:, 0]
            found = log_normalizers(glm, steps, nu, _FEW_NODES)
            return float(glm.weight @ (found - own))

        reach = np.log(_SHAPES)
        found = minimize_scalar(
            loss,
            bounds=(first - reach, first + reach),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return float(np.exp(0.5 * found.x))

    @property
    def _is_normal(self):
        return self._params_["method"] == "refit"

    def _tables(self, X):
        """Yield the law of blocks of rows: their slice, steps and table."""
        check_is_fitted(self)
        self.estimator_.predict(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        Z, glm = self._features(X), GLM(**self._glm_)
        for rows, part in blocks(glm.added(Z)):
            yield rows, part, table(glm, part, self.sigma_**-2)

    def _by_table(self, X, function, *shape):
        """Return what the tables say, rows first."""
        result = np.empty((num_samples(X), *shape))
        for rows, steps, law in self._tables(X):
            result[rows] = function(rows, steps, law)
        return result

    # ---------------------------------------------------------------- what is asked

    def _loo(self):
        """Return leave-one-out losses and log normalisers of the rows."""
        check_is_fitted(self)
        if self._is_normal:
            y = self._rows_["y"]
            mean, std, log_normalizer = self._law_of(self._left_out())
            return -normal_log_density((y - mean) / std, std), log_normalizer
        glm = GLM(**self._glm_)
        nu = self.sigma_**-2
        steps = glm.replaced()
        own = glm.log_likelihood(steps, glm.y[:, None], nu)[:, 0]
        log_normalizer = log_normalizers(glm, steps, nu)
        if glm.family == "poisson":
            own = np.where(glm.y == np.floor(glm.y), own, np.nan)
        return log_normalizer - own, log_normalizer

    def _weighted(self, values):
        counts = self._training_rows().counts
        return float(counts @ values / counts.sum())

    @property
    def loo_log_loss_(self) -> float:
        """Leave-one-out log loss."""
        return self._weighted(self._loo()[0])

    @property
    def log_normalizer_mean_(self) -> float:
        """Leave-one-out estimate of the expected log normaliser."""
        return self._weighted(self._loo()[1])

    def log_normalizer(self, X: MatrixLike) -> np.ndarray:
        """Compute ``log Z``, the label-free measure of a row's uncertainty.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, labelled or not.

        Returns
        -------
        log_normalizer : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        if self._is_normal:
            return self._normal(X)[2]
        return self._by_table(X, lambda rows, steps, law: law.log_normalizer)

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
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        return_std : bool, default=False
            Whether to return the standard deviation too, which includes the noise.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,)
            Mean of the law.

        y_std : ndarray of shape (n_samples,)
            Standard deviation. Only if ``return_std=True``.
        """
        check_is_fitted(self)
        if self._is_normal:
            mean, std, _ = self._normal(X)
        else:
            mean, std = self._by_table(
                X, lambda rows, steps, law: np.stack(law.moments(), axis=1), 2
            ).T
        return (mean, std) if return_std else mean

    def _quantiles_of(self, X, levels):
        if self._is_normal:
            mean, std, _ = self._normal(X)
            return (mean[:, None] + std[:, None] * ndtri(levels))[:, :, None]
        found = self._by_table(
            X, lambda rows, steps, law: law.quantiles(levels), len(levels)
        )
        return found[:, :, None]

    def _log_density_of(self, X, y):
        if self._is_normal:
            mean, std, _ = self._normal(X)
            return normal_log_density((y[:, 0] - mean) / std, std)[:, None]
        glm = GLM(**self._glm_)
        inside = y >= 0.0 if glm.family == "poisson" else y > 0.0
        if glm.family == "poisson":
            inside &= y == np.floor(y)

        def density(rows, steps, law):
            at = np.where(inside[rows], y[rows], 1.0)
            found = glm.log_likelihood(steps, at, self.sigma_**-2)
            return np.where(inside[rows], found - law.log_normalizer[:, None], -np.inf)

        return self._by_table(X, density, 1)

    def _cdf_of(self, X, y):
        if self._is_normal:
            mean, std, _ = self._normal(X)
            return ndtr((y[:, 0] - mean) / std)[:, None]
        found = self._by_table(X, lambda rows, steps, law: law.cdf(y[rows, 0]))
        return found[:, None]

    def _crps_of(self, X, y):
        if self._is_normal:
            mean, std, _ = self._normal(X)
            return normal_crps(y[:, 0], mean, std)[:, None]
        found = self._by_table(X, lambda rows, steps, law: law.crps(y[rows, 0]))
        return found[:, None]

    def _draws_of(self, X, size, rng):
        if self._is_normal:
            mean, std, _ = self._normal(X)
            z = rng.standard_normal((len(mean), size))
            return (mean[:, None] + std[:, None] * z)[:, :, None]
        uniform = rng.random((num_samples(X), size))
        found = self._by_table(
            X, lambda rows, steps, law: law.quantiles(uniform[rows]), size
        )
        return found[:, :, None]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        model = Ridge() if self.estimator is None else self.estimator
        known = get_tags(model)
        tags.input_tags.sparse = known.input_tags.sparse and self.method == "refit"
        tags.input_tags.allow_nan = known.input_tags.allow_nan
        tags.target_tags.positive_only = known.target_tags.positive_only
        return tags
