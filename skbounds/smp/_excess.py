"""How far a predictor is from the best model of its class, from the training sample.

The log loss of the best model is not seen; what is seen is how well models fit the rows
that they were fitted to. Expanding both to first order around the maximum, with the
leverage of each row kept, gives one contribution per row whose mean estimates the
excess and whose spread its error (a jackknife). "h" is the leverage ``x' H^-1 x``, "s"
a row's curvature: the inverse weight ``1 / (1 - s h)`` makes up for a residual of a row
that the fit has seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from skbounds._base import warn_user
from skbounds._magnitude import SMALLEST
from skbounds._sklearn_compat import Real
from skbounds.smp._base_fit import (
    BaseFit,
    contrasts,
    fit_base,
    log_loss_per_sample,
)
from skbounds.smp._one_step import gram, whitened_rows
from skbounds.smp._tilts import label_targets

# Of s h: beyond, the expansion around the maximum likelihood fit means nothing.
LARGEST_LEVERAGE = 0.8
# Of 1 - s h.
_FLOOR = 0.05
# A log-odds that no maximum likelihood fit of separated classes stays below.
SEPARATED = 30.0


@dataclass
class Excess:
    """Estimates and their standard errors; nan where there is none.

    Attributes
    ----------
    risk, risk_error : float
        Over the best model without a penalty.
    penalized, penalized_error : float
        Over the best penalised loss.
    dimension_ratio : float
        tr(H^-1 G) by the number of coefficients, at the maximum likelihood fit.
    """

    risk: float = np.nan
    risk_error: float = np.nan
    penalized: float = np.nan
    penalized_error: float = np.nan
    dimension_ratio: float = np.nan


def mean_and_error(contributions, weight):
    """Return the weighted mean of contributions of rows, and its standard error."""
    total = weight.sum()
    mean = float(weight @ contributions / total)
    if not np.isfinite(mean):
        return mean, np.nan
    spread = weight @ (contributions - mean) ** 2 / total
    return mean, float(np.sqrt(spread / total))


def leverages(base: BaseFit):
    """Return ``z' H^-1 z`` of the rows of a two-class fit."""
    return gram(whitened_rows(base, base.Z))[:, 0, 0]


def _products(base: BaseFit, vector):
    """Return ``z' H^-1 v`` of the rows, and ``v' H^-1 v``."""
    half = base.inv_factor @ vector
    return base.Z @ (base.inv_factor.T @ half), float(half @ half)


def maximum_likelihood(data, theta=None):
    """Return the unpenalised fit, None where it does not exist."""
    Z, weight = data["Z"], data["weight"]
    k = contrasts(data["n_classes"]).shape[1]
    if Z.shape[1] >= Z.shape[0]:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            base = fit_base(**data, penalty=np.zeros(Z.shape[1]), theta=theta)
        except np.linalg.LinAlgError:
            return None
    raw = base.raw(Z)
    spread = np.abs(raw).max() if k == 1 else np.ptp(raw, axis=0).max()
    onehot = label_targets(data["n_classes"])[data["codes"]].T
    residual = contrasts(data["n_classes"]).T @ ((base.proba - onehot) * weight)
    half = base.inv_factor @ (Z.T @ residual.T).T.ravel()
    if not (spread < SEPARATED and half @ half < 1e-8):
        return None
    return base


def logistic_excess(data, base: BaseFit, loss, log_normalizer) -> Excess:
    """Return the estimates for two classes; nan for more.

    Parameters
    ----------
    data : dict
        Z, codes, weight, n_classes, as for ``fit_base``.
    base : BaseFit
        The fit to all rows with total penalty ``n lambda``.
    loss : ndarray of shape (n,)
        Leave-one-out losses of the predictor.
    log_normalizer : ndarray of shape (n,) or None
        Those of ``log Z``; None where the predictor is not sample minmax.
    """
    result = Excess()
    if data["n_classes"] != 2:
        return result
    codes, weight = data["codes"], data["weight"]
    total, unit = weight.sum(), np.minimum(weight, 1.0)
    if log_normalizer is not None:
        pull = base.penalty * base.theta[0] / total
        terms = penalized_terms(base, codes, unit, log_normalizer, pull)
        result.penalized, result.penalized_error = mean_and_error(terms, weight)
    best = maximum_likelihood(data, base.theta)
    if best is None or not total > len(best.penalty):
        return result
    terms, squared, curved, largest = plain_terms(best, codes, unit, loss)
    if not largest <= LARGEST_LEVERAGE:
        return result
    result.risk, result.risk_error = mean_and_error(terms, weight)
    # The trace of H^-1 H is the number of coefficients that the rows determine.
    result.dimension_ratio = float(weight @ (unit * squared)) / float(weight @ curved)
    return result


def penalized_terms(base, codes, unit, log_normalizer, pull):
    """Return what rows contribute to the excess over the best penalised loss.

    Parameters
    ----------
    base : BaseFit
        To all rows, with some of them.
    codes, unit, log_normalizer : ndarray of shape (n,)
        Of these rows; what is left out of them, at most 1.
    pull : ndarray of shape (p,)
        The penalty's gradient by the number of rows.
    """
    residual = base.proba[0] - codes
    curvature = base.proba[0] * (1.0 - base.proba[0])
    h = leverages(base)
    cross, pulled = _products(base, pull)
    squared = residual**2 * h + 2.0 * residual * cross + pulled
    rest = np.maximum(1.0 - unit * curvature * h, _FLOOR)
    return log_normalizer - 0.5 * unit * squared / rest


def plain_terms(best, codes, unit, loss):
    """Return what rows contribute to the excess over the best model.

    Returns
    -------
    terms, squared, curved : ndarray of shape (n,)
        The latter are r^2 h and s h.
    largest : float
        Leverage; the terms mean nothing where it is too large.
    """
    residual = best.proba[0] - codes
    curvature = best.proba[0] * (1.0 - best.proba[0])
    h = leverages(best)
    own = log_loss_per_sample(best.raw(best.Z), codes[None])
    curved, squared = curvature * h, residual**2 * h
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = loss - own - 0.5 * unit * squared / (1.0 - unit * curved)
    return terms, squared, curved, float((curved * unit).max())


def moments(contributions, weight):
    """Return the sums of weighted contributions of rows and of their squares."""
    # Squares of losses may be beyond what doubles hold; then there is no error.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([weight @ contributions, weight @ contributions**2])


def from_moments(sums, total):
    """Return the weighted mean, and its standard error, from `moments`."""
    mean = float(sums[0] / total)
    if not np.isfinite(sums).all():
        return mean, np.nan
    spread = max(sums[1] / total - mean**2, 0.0)
    return mean, float(np.sqrt(spread / total))


def ridge_excess(sample, alpha: float, sigma: np.ndarray) -> Excess:
    """Return the estimates for Gaussian models with a fixed noise scale.

    Parameters
    ----------
    sample : Spectral
    alpha : float
    sigma : ndarray of shape (n_outputs,)
    """
    law = sample.law
    # Least squares, in the directions that the rows have.
    seen = law.e > max(law.tolerance * law.e.max(initial=0.0), SMALLEST**2)
    n_coefficients = np.count_nonzero(seen) + law.has_mean
    determined = bool(law.total > n_coefficients > 0)
    # Sums that are beyond the range of doubles are no estimates.
    with np.errstate(over="ignore", invalid="ignore"):
        penalized, plain, ratio = sample.sums(
            _excess_sums, alpha, sigma, seen if determined else None
        )
    result = Excess()
    result.penalized, result.penalized_error = from_moments(penalized, law.total)
    if determined and np.isfinite(plain).all():
        result.risk, result.risk_error = from_moments(plain, law.total)
        result.dimension_ratio = float(ratio) / (n_coefficients * len(sigma))
    return result


def _excess_sums(law, z, y, weight, alpha, sigma, seen):
    """Return the moments of the rows' contributions, and of the dimension ratio."""
    lambda_ = alpha / (law.total + 1.0)
    whole = law.e + law.total * lambda_
    inverse = 1.0 / np.where(whole > 0.0, whole, np.inf)
    theta = law.g * inverse[:, None]
    squared_norm = np.sum(theta**2, axis=0)
    pulled = np.sum((lambda_ * theta) ** 2 * inverse[:, None], axis=0)
    unit = np.minimum(weight, 1.0)[:, None]
    scores, log_std, residual, h = law.leave_one_out(alpha, z, y, weight)
    loss = 0.5 * (scores / sigma) ** 2 + log_std[:, None]
    # log Z is the loss less the penalised loss of the fit to all rows.
    own = 0.5 * (residual**2 + lambda_ * squared_norm) / sigma**2
    cross = z @ (theta * inverse[:, None])
    squared = residual**2 * h[:, None] - 2.0 * residual * lambda_ * cross + pulled
    rest = np.maximum(1.0 - unit * h[:, None], _FLOOR)
    terms = loss - own - 0.5 * unit * squared / rest / sigma**2
    penalized = moments(terms.sum(axis=1), weight)
    if seen is None:
        return penalized, np.full(2, np.nan), np.array(np.nan)
    plain = replace(law, e=law.e[seen], g=law.g[seen])
    _, _, residual, h = plain.leave_one_out(0.0, z[:, seen], y, weight)
    rest = np.maximum(1.0 - unit * h[:, None], _FLOOR)
    squared = unit * residual**2 * h[:, None] / sigma**2
    terms = loss - 0.5 * (residual / sigma) ** 2 - 0.5 * squared / rest
    ratio = np.array(weight @ squared.sum(axis=1))
    return penalized, moments(terms.sum(axis=1), weight), ratio


class ExcessStatements:
    """Mixin: what predictors with an excess-risk bound say about their own excess.

    The deprecated name is kept out of ``dir``: looking at it warns. Subclasses
    implement ``_excess()`` and ``_penalty_of(norm)``, and have
    ``log_normalizer_mean_``.
    """

    if TYPE_CHECKING:
        # Of the classes that it is mixed into.
        def __getattr__(self, name: str) -> Any: ...

    _lazy_attributes: tuple[str, ...] = ("excess_risk_bound_",)

    @property
    def excess_risk_bound_(self) -> float:
        """Deprecated name of ``log_normalizer_mean_``."""
        warn_user(
            "excess_risk_bound_ is not a bound of the excess risk: it lacks the "
            "penalty of the model compared with. It is called log_normalizer_mean_ "
            "now, and the bound is excess_risk_bound(norm); the old name goes in 0.4.",
            FutureWarning,
        )
        return self.log_normalizer_mean_

    def excess_risk_bound(self, norm: float) -> float:
        """Compute the data-driven bound of the excess risk.

        Parameters
        ----------
        norm : float
            Norm of the coefficients of the models compared with, without an intercept
            that is not penalised; for several outputs of all coefficients together.

        Returns
        -------
        bound : float
            ``log_normalizer_mean_`` plus the penalty of such a model (in nats): a
            leave-one-out estimate of what the expected log loss of the predictor
            exceeds that of any of these models by at most, for any law of the data
            (Theorem 2), with a penalty that was fixed beforehand and weights of at
            least 1. An expectation over training sets, not a quantile.
        """
        check_is_fitted(self)
        if not (isinstance(norm, Real) and 0.0 <= norm < np.inf):
            raise ValueError(f"norm must be a finite number >= 0; got {norm!r}.")
        with np.errstate(over="ignore"):
            penalty = self._penalty_of(np.float64(norm))
        return float(self.log_normalizer_mean_ + penalty)

    @property
    def excess_risk_(self) -> float:
        """Estimate of the excess over the best model of the class."""
        return self._excess().risk

    @property
    def excess_risk_penalized_(self) -> float:
        """Estimate of the excess over the best penalised loss of the class."""
        return self._excess().penalized

    @property
    def effective_dimension_ratio_(self) -> float:
        """Estimate of the effective dimension by the number of coefficients."""
        return self._excess().dimension_ratio

    def excess_risk_interval(
        self, level: float = 0.9, *, penalized: bool = False
    ) -> tuple[float, float]:
        """Return limits for the excess risk.

        Parameters
        ----------
        level : float, default=0.9
            Nominal coverage, in (0, 1).
        penalized : bool, default=False
            Whether for `excess_risk_penalized_` instead of `excess_risk_`.

        Returns
        -------
        low, high : float
            The estimate and a normal quantile of its standard error (the jackknife of
            a mean) on both sides. It covers the noise of the estimate, not the error of
            the expansion, which is felt with fewer than about five rows per feature:
            in simulations it covered the expected excess in .82 to 1.00 of the samples
            at a nominal .90. nan where there is no estimate.
        """
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must lie in (0, 1); got {level!r}.")
        found = self._excess()
        mean, error = found.risk, found.risk_error
        if penalized:
            mean, error = found.penalized, found.penalized_error
        reach = float(ndtri(0.5 + 0.5 * level)) * error
        return mean - reach, mean + reach
