"""What a fitted model says about the rows to come."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from skbounds._typing import MatrixLike
from skbounds.hmm import _em, _fit


class HMMForecast:
    """Law of the next rows of a sequence, which can be brought up to date row by row.

    `BaumWelchHMM.forecast` makes one. With several sequences every array has a first
    axis for them, in the order of their first rows.

    Read more in the :ref:`User Guide <hmm_forecast>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    outputs : object
        The kind of outputs.
    law : dict
        Parameters of the outputs.
    transition : ndarray of shape (n_components, n_components)
        Transition matrix.
    filtered : ndarray of shape (n_components,) or (n_sequences, n_components)
        Law of the state at the last row, given all rows so far.
    steps : int
        Number of rows ahead.
    log_density : float or ndarray of shape (n_sequences,), default=nan
        Logarithm of the density of the row that `update` took in, given the past.

    Attributes
    ----------
    state_proba : ndarray of shape (steps, n_components)
        Laws of the states at the next rows.
    mean : ndarray of shape (steps, n_features)
        Expectations of the next rows. Not of categories.
    covariance : ndarray of shape (steps, n_features, n_features)
        Their covariance matrices, of each row by itself; inf where the law has none.
        Not of categories.
    category_proba : list of ndarray of shape (steps, n_categories)
        Laws of the next rows' columns, of categories only.

    See Also
    --------
    BaumWelchHMM : The model.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.hmm import BaumWelchHMM
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat([0, 1, 0, 1], 50)
    >>> X = 3.0 * states[:, None] + rng.normal(size=(200, 1))
    >>> model = BaumWelchHMM(random_state=0).fit(X)
    >>> ahead = model.forecast(X, steps=2)
    >>> ahead.mean.ravel().round(1)
    array([2.9, 2.9])
    >>> ahead = ahead.update([0.1])
    >>> ahead.state_proba.shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        outputs: Any,
        law: dict,
        transition: np.ndarray,
        filtered: np.ndarray,
        steps: int,
        log_density: float | np.ndarray = np.nan,
    ) -> None:
        self.outputs, self.law, self.transition = outputs, law, transition
        self.filtered, self.steps = filtered, steps
        self.log_density = log_density

    def update(self, X: MatrixLike) -> HMMForecast:
        """Take in the next row of each sequence, at the price of one row.

        Parameters
        ----------
        X : array-like of shape (n_features,) or (n_sequences, n_features)
            The row, or one for each sequence; nan for missing entries.

        Returns
        -------
        forecast : HMMForecast
            Forecast from there.
        """
        X = np.asarray(X, dtype=np.float64)
        shape = self.filtered.shape[:-1] + (self._n_features,)
        if X.shape != shape or np.isinf(X).any():
            raise ValueError(
                f"X must be the next row, finite or nan, of shape {shape}; got shape "
                f"{X.shape}."
            )
        rows = _fit.check_size(np.atleast_2d(X))
        self.outputs.check_rows(rows)
        law = np.atleast_2d(self.filtered) @ self.transition
        private = self.outputs.private(self.law)
        with np.errstate(divide="ignore"):
            joint = np.log(law) + self.outputs.log_densities(
                self.outputs.prepare(rows), private
            )
        total = logsumexp(joint, axis=1, keepdims=True)
        if not np.isfinite(total).all():
            raise ValueError("the row is impossible under the model.")
        filtered, density = np.exp(joint - total), total[:, 0]
        if self.filtered.ndim == 1:
            filtered, density = filtered[0], float(density[0])
        return HMMForecast(
            outputs=self.outputs, law=self.law, transition=self.transition,
            filtered=filtered, steps=self.steps, log_density=density,
        )  # fmt: skip

    @property
    def _n_features(self):
        if "means" in self.law:
            return self.law["means"].shape[1]
        return len(self.law["emission_proba"])

    @property
    def state_proba(self) -> np.ndarray:
        """Laws of the states at the next rows."""
        laws, law = [], self.filtered
        for _ in range(self.steps):
            law = law @ self.transition
            laws.append(law)
        return np.stack(laws, axis=-2)

    def _moments(self):
        if "means" not in self.law:
            raise AttributeError(
                "categories have no moments; their law is `category_proba`."
            )
        return self.outputs.moments(self.law)

    @property
    def mean(self) -> np.ndarray:
        """Expectations of the next rows."""
        return _mixed(self.state_proba, self._moments()[0])

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrices of the next rows."""
        means, covariances = self._moments()
        law = self.state_proba
        mean = _mixed(law, means)
        found = np.zeros((*mean.shape, mean.shape[-1]))
        for weight, own, within in zip(
            np.moveaxis(law, -1, 0), means, covariances, strict=True
        ):
            gaps = own - mean
            with np.errstate(invalid="ignore"):
                part = within + gaps[..., :, None] * gaps[..., None, :]
                part = weight[..., None, None] * part
            # What a state has no moments of does not matter if it cannot come.
            found += np.where(weight[..., None, None] > 0.0, part, 0.0)
        return found

    @property
    def category_proba(self) -> list[np.ndarray]:
        """Laws of the columns of the next rows."""
        if "emission_proba" not in self.law:
            raise AttributeError("category_proba is for emission='categorical'.")
        law = self.state_proba
        return [law @ table for table in self.law["emission_proba"]]

    def quantile(self, q: float | ArrayLike) -> np.ndarray:
        """Return quantiles of the columns of the next rows.

        Parameters
        ----------
        q : float or array-like of float
            Probabilities, in (0, 1).

        Returns
        -------
        quantiles : ndarray of shape (steps, n_features), or (..., len(q))
            The least values that a column does not exceed with at least this
            probability.
        """
        if "means" not in self.law:
            raise AttributeError(
                "categories have no quantiles; their law is `category_proba`."
            )
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(f"q must be in (0, 1); got {q!r}.")
        law = self.state_proba[..., None, :]
        flat = np.atleast_1d(levels)
        columns = []
        for k in range(self._n_features):
            own = self.outputs.ppf(self.law, k, flat)
            shape = np.broadcast_shapes(law.shape[:-1], flat.shape)
            low = np.broadcast_to(own.min(axis=1), shape).copy()
            high = np.broadcast_to(own.max(axis=1), shape).copy()
            columns.append(self._bisect(law, k, flat, low, high))
        found = np.stack(columns, axis=-2)
        return found[..., 0] if levels.ndim == 0 else found

    def _bisect(self, law, column, levels, low, high):
        whole = self.outputs.is_discrete
        if whole:
            low = low - 1.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            if whole:
                middle = np.floor(middle)
            found = (law * self.outputs.cdf(self.law, column, middle)).sum(axis=-1)
            enough = found >= levels
            # Each goes on until it is found, whatever the others need.
            wide = high - low > (1.0 if whole else 4e-16 * np.abs(high))
            if not wide.any():
                break
            high = np.where(enough & wide, middle, high)
            low = np.where(enough | ~wide, low, middle)
        return high

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Return central intervals of the columns of the next rows.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval, under the model.

        Returns
        -------
        intervals : ndarray of shape (steps, n_features, 2)
            Lower and upper ends.
        """
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be in (0, 1); got {level!r}.")
        return self.quantile([0.5 * (1.0 - level), 0.5 * (1.0 + level)])


def _mixed(law, values):
    """Return mixtures of rows of values, where nothing times infinity is 0."""
    found = np.zeros((*law.shape[:-1], values.shape[1]))
    for weight, row in zip(np.moveaxis(law, -1, 0), values, strict=True):
        with np.errstate(invalid="ignore"):
            part = weight[..., None] * row
        found += np.where(weight[..., None] > 0.0, part, 0.0)
    return found


def check_steps(steps):
    """Refuse what is no number of rows ahead."""
    if not isinstance(steps, Integral) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps must be a positive integer; got {steps!r}.")
    return int(steps)


def last_laws(log_density, starts, start, transition):
    """Return the filtered laws at the ends of the sequences."""
    filtered = _em.filtering(log_density, starts, start, transition)
    return filtered[starts[1:] - 1]
