"""Sample minmax density estimators in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import gammaln, xlog1py, xlogy
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, fit_from_scratch
from skbounds._chunked_labels import join_values
from skbounds._collections import (
    Chunks,
    as_table,
    is_collection,
    lazy_on_collections,
    set_names,
)
from skbounds._labels import declared_order
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import (
    Integral,
    StrOptions,
    _fit_context,
    check_sample_weight,
)
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import check_array, validate_data

_NO_WEIGHT = "Sample weights must contain at least one non-zero number."
_UNSORTED = (
    "X must hold values of one kind that can be sorted, without missing ones; give "
    "categories explicitly otherwise."
)
# Counts from which the next term of Stirling's series is below rounding.
_STIRLING = 64.0


class BaseSMPDensity(DensityMixin, SkboundsEstimator):
    """``score`` and checks shared by the density estimators."""

    _takes_collections = True

    def score(self, X: MatrixLike, y: None = None) -> float:
        """Compute the total log likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Observations.

        y : None
            Ignored.

        Returns
        -------
        score : float
            Sum of the log densities in nats.
        """
        return float(np.sum(self.score_samples(X)))

    def _check_n_samples(self, n_samples):
        check_is_fitted(self)
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(
                f"n_samples must be a positive integer; got {n_samples!r}."
            )


class _ColumnDensity(BaseSMPDensity):
    """A density estimator of single observations: X is a column."""

    def _column_chunks(self, X, sample_weight, dtype=np.float64):
        """Return a collection of dask in chunks of one column."""
        chunks = Chunks(
            as_table(X), weight=sample_weight, dtype=dtype, accept_sparse=False
        )
        self._check_width(chunks.n_features)
        set_names(self, chunks)
        return chunks

    def _check_width(self, n_columns):
        if n_columns != 1:
            raise ValueError(
                f"{type(self).__name__} estimates the law of one variable: X must have "
                f"shape (n_samples, 1) or (n_samples,); got {n_columns} columns."
            )

    def _validate_column(self, X, *, reset, dtype):
        try:
            single = np.ndim(X) == 1
        except ValueError:
            raise ValueError(
                "X must hold one value in each row; got rows of several lengths."
            ) from None
        if single:
            X = np.asarray(X).reshape(-1, 1)
        X = validate_data(self, X, dtype=dtype, reset=reset)
        self._check_width(X.shape[1])
        return X[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class MultinomialSMP(_ColumnDensity):
    r"""Sample minmax predictor for a categorical variable.

    Laplace's rule of succession, :math:`\tilde f(y) = (N(y) + 1) / (n + d)` with counts
    N and d categories (Proposition 1 of [1]_). Its expected log loss exceeds that of
    the true law by at most ``log((n + d) / (n + 1))``, where the relative frequencies
    have infinite expected loss.

    .. versionadded:: 0.1

    Parameters
    ----------
    categories : 'auto' or list of one array-like, default='auto'
        Allowed values. 'auto' takes the categories that X declares (a categorical
        column of pandas, an Enum of polars), and otherwise the observed ones; then
        their number depends on the sample and the bound is not a theorem.

    Attributes
    ----------
    categories_ : list of one ndarray of shape (n_categories,)
        Categories, sorted.

    counts_ : ndarray of shape (n_categories,)
        Observed (weighted) counts.

    proba_ : ndarray of shape (n_categories,)
        Predictive probabilities.

    excess_risk_bound_ : float
        ``log((n + d) / (n + 1))``, in nats.

    bound_valid_ : bool
        Whether the categories were fixed beforehand: given, or declared by X and not
        all of them observed.

    n_features_in_ : int
        Number of features seen during fit: 1.

    feature_names_in_ : ndarray of shape (1,)
        Name of the feature, if X is a dataframe.

    See Also
    --------
    PoissonSMP : For counts.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> from skbounds import MultinomialSMP
    >>> X = [["a"], ["a"], ["c"], ["d"], ["a"], ["d"]]
    >>> density = MultinomialSMP(categories=[["a", "b", "c", "d"]]).fit(X)
    >>> print(density.proba_)
    [0.4 0.1 0.2 0.3]
    >>> print(round(density.excess_risk_bound_, 3))
    0.357
    """

    _parameter_constraints: dict = {"categories": [StrOptions({"auto"}), list, tuple]}

    def __init__(
        self, categories: Literal["auto"] | Sequence[ArrayLike] = "auto"
    ) -> None:
        self.categories = categories

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Count the categories.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, 1) or (n_samples,)
            Observations: numbers or strings. Collections of dask are counted chunk by
            chunk.

        y : None
            Ignored.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if is_collection(X):
            return self._fit_chunks(X, sample_weight)
        declared, _ = declared_order(X)
        X = self._validate_column(X, reset=True, dtype=None)
        weight = check_sample_weight(sample_weight, X)
        if isinstance(self.categories, str) and declared is not None:
            categories = np.unique(declared)
        elif isinstance(self.categories, str):
            try:
                categories = np.unique(X[weight > 0])
            except TypeError:
                raise ValueError(_UNSORTED) from None
        else:
            categories = self._given_categories()
        used = weight > 0
        counts = np.bincount(
            _encode(X[used], categories),
            weights=weight[used],
            minlength=len(categories),
        )
        # Categories that no row has were not taken from the rows.
        fixed = not isinstance(self.categories, str) or bool(
            declared is not None and (counts == 0.0).any()
        )
        return self._set_counts(categories, counts, fixed)

    def _given_categories(self):
        if len(self.categories) != 1:
            raise ValueError(
                "categories must be a list with one array of allowed values; got "
                f"{len(self.categories)} arrays."
            )
        categories = np.unique(np.asarray(self.categories[0]))
        if len(categories) == 0:
            raise ValueError("categories must hold at least one value; got none.")
        return categories

    def _fit_chunks(self, X, sample_weight):
        """Count the categories of a collection of dask."""
        chunks = self._column_chunks(X, sample_weight, dtype=None)
        found = chunks.map(_counts_of)
        values = join_values([values for values, _ in found])
        counts = np.concatenate([counts for _, counts in found])
        known = values[counts > 0.0]
        if isinstance(self.categories, str):
            categories = np.unique(known)
        else:
            categories = self._given_categories()
        codes = _encode(known, categories)
        counts = np.bincount(codes, counts[counts > 0.0], minlength=len(categories))
        if not counts.any():
            raise ValueError(_NO_WEIGHT)
        return self._set_counts(
            categories, counts, not isinstance(self.categories, str)
        )

    def _set_counts(self, categories, counts, fixed):
        total = counts.sum()
        self.categories_ = [categories]
        self.counts_ = counts
        self.proba_ = (counts + 1.0) / (total + len(categories))
        self.excess_risk_bound_ = float(np.log((total + len(categories)) / (total + 1)))
        self.bound_valid_ = fixed
        return self

    @lazy_on_collections
    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute the log probability of each observation.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, 1) or (n_samples,)
            Observations; values outside ``categories_`` raise a ``ValueError``.

        Returns
        -------
        log_proba : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        X = self._validate_column(X, reset=False, dtype=None)
        return np.log(self.proba_)[_encode(X, self.categories_[0])]

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> np.ndarray:
        """Draw from the predictive law.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, 1)
            Categories.
        """
        self._check_n_samples(n_samples)
        rng = check_random_state(random_state)
        return rng.choice(self.categories_[0], size=(n_samples, 1), p=self.proba_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _counts_of(X, y, weight):
    """Return the values of a chunk and their weights."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    try:
        values, codes = np.unique(X[:, 0], return_inverse=True)
    except TypeError:
        raise ValueError(_UNSORTED) from None
    return values, np.bincount(codes, weight, minlength=len(values))


def _moments_of(X, y, weight, center):
    """Return the sum of the weights and of rows about a point."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    check_magnitude(X, "X")
    return np.array(weight.sum()), weight @ (X - center)


def _trace_of(X, y, weight, mean, factor):
    """Return the weighted sum of squares of whitened rows."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    whitened = linalg.solve_triangular(factor, (X - mean).T, lower=True)
    return (np.array(np.sum(whitened**2 @ weight)),)


def _mean_of(chunks):
    """Return the weighted mean of the rows, and the sum of the weights."""
    center = np.zeros(chunks.n_features)
    # About the first mean, for the digits that an offset takes.
    for _ in range(2):
        total, sums = chunks.sums(_moments_of, center)
        if not total > 0.0:
            raise ValueError(_NO_WEIGHT)
        center = center + sums / total
    return center, float(total)


def _encode(X, categories):
    """Return positions of values in sorted categories."""
    try:
        codes = np.searchsorted(categories, X)
        known = categories[np.minimum(codes, len(categories) - 1)] == X
    except TypeError:
        known = np.zeros(len(X), dtype=bool)
    if not np.all(known):
        unknown = np.unique(np.asarray(X)[~known].astype(str))[:5].tolist()
        raise ValueError(f"Found unknown categories in X: {unknown}.")
    return codes


class GaussianSMP(BaseSMPDensity):
    r"""Sample minmax predictor for a Gaussian mean with known covariance.

    The predictive law is normal around the sample mean, wider than the model. Its
    excess risk needs no assumption on the true law beyond a finite mean (second moment
    for 'minimax'), see Proposition 2 and Theorem 3 of [1]_.

    .. versionadded:: 0.1

    Parameters
    ----------
    covariance : array-like of shape (n_features, n_features), default=None
        Covariance :math:`\Sigma` of the model; None is the identity.

    variant : {'smp', 'minimax', 'mle'}, default='smp'
        Predictive covariance: :math:`(1 + 1/n)^2 \Sigma` (sample minmax predictor),
        :math:`(1 + 1/n) \Sigma` (Bayes under a flat prior, which is minimax), or
        :math:`\Sigma` (plug-in).

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Sample mean.

    covariance_ : ndarray of shape (n_features, n_features)
        Predictive covariance.

    excess_risk_bound_ : float
        In nats. 'smp': ``d log(1 + 1/n)``, an upper bound; 'minimax': half of that, the
        exact excess risk for every law; 'mle': the exact excess risk
        ``tr(inv(covariance) @ S) / (2 n)`` with the sample covariance S in place of the
        unknown true one (nan for one observation).

    bound_valid_ : bool
        Whether ``excess_risk_bound_`` is a theorem rather than a plug-in estimate.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if X has string column names.

    See Also
    --------
    RidgeSMP : The mean depends on features; also with unknown noise scale.

    Notes
    -----
    With *unknown* variance the sample minmax predictor without penalty does not exist:
    its normaliser diverges. ``RidgeSMP(alpha=0, sigma="joint")`` on a constant feature
    is the penalised version.

    References
    ----------
    .. [1] J. Mourtada and S. Gaïffas (2022). "An improper estimator with optimal excess
       risk in misspecified density estimation and logistic regression". Journal of
       Machine Learning Research 23(31), 1-49.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds import GaussianSMP
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> density = GaussianSMP().fit(X)
    >>> print(round(density.excess_risk_bound_, 3))
    0.286
    """

    _parameter_constraints: dict = {
        "covariance": ["array-like", None],
        "variant": [StrOptions({"smp", "minimax", "mle"})],
    }

    def __init__(
        self,
        *,
        covariance: ArrayLike | None = None,
        variant: Literal["smp", "minimax", "mle"] = "smp",
    ) -> None:
        self.covariance = covariance
        self.variant = variant

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Compute the mean.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, n_features)
            Observations. Collections of dask are summed chunk by chunk.

        y : None
            Ignored.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        chunks = None
        if is_collection(X):
            chunks = Chunks(X, weight=sample_weight, accept_sparse=False)
            set_names(self, chunks)
        else:
            X = validate_data(self, X, dtype=np.float64)
            check_magnitude(X, "X")
            weight = check_sample_weight(sample_weight, X)
        n_features = self.n_features_in_
        model = np.eye(n_features)
        if self.covariance is not None:
            model = check_array(self.covariance, dtype=np.float64)
            if model.shape != (n_features, n_features):
                raise ValueError(
                    f"covariance must have shape ({n_features}, {n_features}) to match "
                    f"X; got {model.shape}."
                )
        try:
            if not np.allclose(model, model.T, rtol=1e-10, atol=0.0):
                raise linalg.LinAlgError
            factor = linalg.cholesky(model, lower=True)
        except linalg.LinAlgError:
            raise ValueError(
                "covariance must be symmetric and positive definite."
            ) from None
        if chunks is None:
            n, mean = weight.sum(), np.average(X, axis=0, weights=weight)
        else:
            mean, n = _mean_of(chunks)
        widening = {"smp": (1 + 1 / n) ** 2, "minimax": 1 + 1 / n, "mle": 1.0}
        scale2 = widening[self.variant]
        if self.variant == "mle":
            bound = np.nan
            if n > 1:
                if chunks is None:
                    (squares,) = _trace_of(X, None, weight, mean, factor)
                else:
                    (squares,) = chunks.sums(_trace_of, mean, factor)
                bound = squares / (n - 1) / (2 * n)
        else:
            bound = 0.5 * n_features * np.log(scale2)
        self.mean_ = mean
        self.covariance_ = scale2 * model
        self.excess_risk_bound_ = float(bound)
        self.bound_valid_ = self.variant != "mle"
        self._factor_ = np.sqrt(scale2) * factor
        return self

    @lazy_on_collections
    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute the log density of each observation.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Observations.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_magnitude(X, "X")
        z = linalg.solve_triangular(self._factor_, (X - self.mean_).T, lower=True)
        log_det = np.sum(np.log(self._factor_.diagonal()))
        constant = 0.5 * X.shape[1] * np.log(2 * np.pi) + log_det
        return -0.5 * np.sum(z**2, axis=0) - constant

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> np.ndarray:
        """Draw from the predictive law.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Draws.
        """
        self._check_n_samples(n_samples)
        rng = check_random_state(random_state)
        noise = rng.standard_normal((n_samples, len(self.mean_)))
        return self.mean_ + noise @ self._factor_.T


class PoissonSMP(_ColumnDensity):
    r"""Sample minmax predictor for a Poisson variable.

    With S the sum of n observations and :math:`m_k = (S + k) / (n + 1)`,

    .. math::

        \tilde f(k) = \frac{n}{n + 1} \frac{m_k^k e^{-m_k}}{k!}, \qquad
        Z = 1 + \frac{1}{n} ,

    whatever the data, so that the expected log loss exceeds that of the best Poisson
    law by at most ``log(1 + 1/n)`` for any law of the counts. The mean is
    :math:`S/n + (n + 1)/n^2`.

    .. versionadded:: 0.1

    Attributes
    ----------
    rate_ : float
        Sample mean.

    mean_ : float
        Mean of the predictive law.

    excess_risk_bound_ : float
        ``log(1 + 1/n)``, in nats; a theorem for any law with a finite mean.

    n_features_in_ : int
        Number of features seen during fit: 1.

    feature_names_in_ : ndarray of shape (1,)
        Name of the feature, if X is a dataframe.

    See Also
    --------
    MultinomialSMP : For a fixed, finite set of values.

    Notes
    -----
    The law exists for every sample of at least one observation. Without penalty it does
    *not* exist for Poisson regression at rows outside the span of the training rows,
    nor for the exponential law, which is why there is no such estimator here.

    Examples
    --------
    >>> from skbounds import PoissonSMP
    >>> density = PoissonSMP().fit([[3], [0], [2], [2]])
    >>> print(density.mean_, round(density.excess_risk_bound_, 3))
    2.0625 0.223
    """

    _parameter_constraints: dict = {}

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Sum the counts.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, 1) or (n_samples,)
            Non-negative integers. Collections of dask are summed chunk by chunk.

        y : None
            Ignored.

        sample_weight : array-like of shape (n_samples,), default=None
            Repetition counts.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if is_collection(X):
            chunks = self._column_chunks(X, sample_weight)
            chunks.map(_check_counts)
            (rate,), n = _mean_of(chunks)
            self.rate_ = float(rate)
        else:
            X = self._validate_counts(X, reset=True)
            weight = check_sample_weight(sample_weight, X)
            n = weight.sum()
            self.rate_ = float(np.average(X, weights=weight))
        self.mean_ = float(self.rate_ + (n + 1) / n**2)
        self.excess_risk_bound_ = float(np.log1p(1 / n))
        self._n_ = float(n)
        return self

    @lazy_on_collections
    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute the log probability of each count.

        For a collection of dask the result is one too, computed when it is needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, 1) or (n_samples,)
            Non-negative integers.

        Returns
        -------
        log_proba : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        return self._log_proba(self._validate_counts(X, reset=False))

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> np.ndarray:
        """Draw from the predictive law.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, 1), dtype int64
            Counts.
        """
        self._check_n_samples(n_samples)
        rng = check_random_state(random_state)
        spread = np.sqrt(self.mean_ * (1 + 1 / self._n_) ** 3) + 1.0
        width = 16.0
        while True:
            first = max(0.0, np.floor(self.mean_ - width * spread))
            counts = np.arange(first, self.mean_ + width * spread + 64.0)
            cumulative = np.cumsum(np.exp(self._log_proba(counts)))
            # Both tails fall at least geometrically beyond the spread.
            if cumulative[-1] > 1 - 1e-10 or width > 1e4:
                break
            width *= 2
        uniform = rng.uniform(size=(n_samples, 1)) * cumulative[-1]
        return np.searchsorted(cumulative, uniform) + int(first)

    def _validate_counts(self, X, *, reset):
        X = self._validate_column(X, reset=reset, dtype=np.float64)
        _check_counts(X)
        return X

    def _log_proba(self, k):
        n = self._n_
        m = (n * self.rate_ + k) / (n + 1)
        return np.log(n / (n + 1)) + _log_poisson(k, m, n * (k - self.rate_) / (n + 1))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _check_counts(X, y=None, weight=None):
    """Refuse what is no count, or too large for a sum of them."""
    check_magnitude(X, "X")
    if np.any(X < 0) or np.any(X != np.floor(X)):
        raise ValueError(
            "PoissonSMP needs non-negative integers in X; got values like "
            f"{float(X[(X < 0) | (X != np.floor(X))][0])!r}."
        )


def _log_poisson(k, m, gap):
    """Return the logarithm of m^k e^-m / k!, also where it is a difference of 1e15s.

    Parameters
    ----------
    k, m : ndarray
    gap : ndarray
        k - m.
    """
    # ln k! = k ln k - k + ln(2 pi k) / 2 + 1 / (12 k) - ...
    large = np.maximum(k, _STIRLING)
    rest = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / large**2) / large**2) / large
    with np.errstate(invalid="ignore", divide="ignore"):
        u = gap / m
        deviance = m * (xlog1py(1.0 + u, u) - u)
        plain = xlogy(k, m) - m - gammaln(k + 1)
    expansion = -0.5 * np.log(2.0 * np.pi * large) - rest - deviance
    return np.where(k < _STIRLING, plain, expansion)
