"""Exact leave-one-out figures of ridge-type sample minmax predictors.

Everything is expressed in eigencoordinates of the weighted (and centred) second
moments: row i is ``z_i`` with ``sum_i v_i z_i z_i' = diag(e)``, and the targets enter
as ``g = sum_i v_i z_i (y_i - mean)``. Linear and kernel models differ only in how they
come by ``z``; one factorisation serves a whole grid of penalties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbounds._blocks import memory_limit, row_blocks
from skbounds._collections import add_tuples
from skbounds.smp._gaussian import (
    LOG_2PI,
    joint_log_density,
    joint_log_normalizer,
    leave_one_out_law,
)

# Relative size of differences that are taken for zero without a penalty.
_ROUNDING = 1e-11


@dataclass(frozen=True)
class SpectralLaw:
    """What all rows of a training sample have in common, in eigencoordinates.

    Attributes
    ----------
    e : ndarray of shape (r,)
    g : ndarray of shape (r, n_outputs)
    mean : ndarray of shape (n_outputs,)
        Weighted mean of the targets, 0 without an unpenalised intercept.
    total : float
        Sum of the weights.
    has_mean : bool
        Whether there is an unpenalised intercept.
    tolerance : float
        Relative size of an entry of e that is taken for zero.
    bayes : bool
        Whether laws have the width of Bayes' predictive law instead of the minmax one.
    """

    e: np.ndarray
    g: np.ndarray
    mean: np.ndarray
    total: float
    has_mean: bool
    tolerance: float = _ROUNDING
    bayes: bool = False

    @property
    def rounding(self):
        """Relative size of an entry of e that is rounding, whoever computed it."""
        return (np.finfo(float).eps * len(self.e)) ** 2

    def leave_one_out(self, alpha: float, z, y, weight):
        """Return the terms of ``leave_one_out_law`` for one block of rows.

        The penalty per observation is that of ``alpha`` at n rows, so the total in the
        leave-one-out problems is ``alpha n / (n + 1)``.

        Parameters
        ----------
        alpha : float
        z : ndarray of shape (b, r)
            Coordinates of the rows.
        y : ndarray of shape (b, n_outputs)
        weight : ndarray of shape (b,)

        Returns
        -------
        scores, log_std, residual, leverage : ndarray
        """
        total = self.total
        lambda_ = alpha / (total + 1.0)
        inverse = 1.0 / (self.e + total * lambda_)
        theta = self.g * inverse[:, None]
        # Along these only rounding keeps the rows from having no part, which may be
        # large where a row is.
        null = self.e <= self.rounding * self.e.max(initial=0.0)
        if null.any():
            z = np.where(null, 0.0, z)
        leverage = z**2 @ inverse
        if self.has_mean:
            leverage += 1.0 / total
        unit = np.minimum(weight, 1.0)
        if alpha == 0.0:
            # A row that alone determines a coefficient: nothing remains without it.
            alone = 1.0 - unit * leverage <= _ROUNDING
            leverage[alone] = 1.0 / unit[alone]
        fitted = self.mean + z @ theta
        residual = y - fitted
        if self.bayes:
            rest = 1.0 - unit * leverage
            with np.errstate(divide="ignore", invalid="ignore"):
                width = np.sqrt((rest + leverage) / rest)
                scores = np.where(
                    rest[:, None] > 0.0, residual / (rest * width)[:, None], 0.0
                )
                return scores, np.log(width), residual, leverage
        # What the penalty multiplies; without one it may be beyond what doubles hold.
        k, b = np.zeros(len(z)), np.zeros(fitted.shape)
        if lambda_ > 0.0:
            u = z * inverse
            k, b = (u**2).sum(axis=1), u @ theta
        scores, log_std = leave_one_out_law(fitted, leverage, k, b, y, unit, lambda_)
        return scores, log_std, residual, leverage


@dataclass
class Spectral:
    """A training sample in eigencoordinates.

    Attributes
    ----------
    law : SpectralLaw
    rows : callable
        ``rows(slice)`` returns the coordinates ``z`` of training rows, (b, r).
    y : ndarray of shape (n, n_outputs)
    weight : ndarray of shape (n,)
    """

    law: SpectralLaw
    rows: Callable
    y: np.ndarray
    weight: np.ndarray

    @property
    def least_weight(self):
        return self.weight.min()

    @property
    def floor(self):
        """The smallest noise scales that are ever estimated."""
        return sigma_floor(self.y, self.law.mean)

    def sums(self, function, *arguments):
        """Return the sums of what a function makes of blocks of rows.

        Parameters
        ----------
        function : callable
            ``function(law, z, y, weight, *arguments)`` returns a tuple of arrays.
        """
        total, width = None, 4 * (len(self.law.e) + 1)
        for rows in row_blocks(len(self.y), memory_limit() // width):
            part = function(
                self.law, self.rows(rows), self.y[rows], self.weight[rows], *arguments
            )
            total = part if total is None else add_tuples(total, part)
        return total


@dataclass
class LeaveOneOutFigures:
    """Leave-one-out figures of one penalty; losses are sums over the outputs.

    Attributes
    ----------
    sigma : ndarray of shape (n_outputs,)
    log_loss, log_normalizer_mean, leverage_bound, effective_dof : float
    """

    sigma: np.ndarray
    log_loss: float
    log_normalizer_mean: float
    leverage_bound: float
    effective_dof: float


def sigma_floor(y: np.ndarray, mean=0.0) -> np.ndarray:
    """Return the smallest noise scale that is ever estimated, per output.

    Relative to distances from the mean, where an intercept takes that up; and not below
    the rounding of the targets themselves.
    """
    return floor_of(np.abs(y - mean).max(axis=0), np.abs(y).max(axis=0))


def floor_of(largest, size):
    """Return the same from the largest distances from the mean, and from 0."""
    floor = np.maximum(1e-8 * largest, 4.0 * np.finfo(float).eps * size)
    return np.where(floor > 0.0, floor, 1e-8)


def _figure_sums(law, z, y, weight, alphas):
    """Return, for each penalty, sums of what `leave_one_out_figures` is made of."""
    shapes = [(len(alphas), y.shape[1])] * 2 + [(len(alphas), 1)] * 3
    sums = tuple(np.zeros(shape) for shape in shapes)
    unit = np.minimum(weight, 1.0)
    for index, alpha in enumerate(alphas):
        scores, log_std, residual, leverage = law.leave_one_out(alpha, z, y, weight)
        with np.errstate(divide="ignore"):
            rest = np.log1p(-np.minimum(unit * leverage, 1.0))
        # What is beyond the range of doubles is looked at in the figures.
        with np.errstate(over="ignore", invalid="ignore"):
            terms = (scores**2, residual**2, log_std, rest, leverage)
            for total, values in zip(sums, terms, strict=True):
                total[index] = weight @ values
    return sums


def leave_one_out_figures(
    sample: Spectral, alphas: np.ndarray, sigma: np.ndarray | None
) -> list[LeaveOneOutFigures]:
    """Return the figures of each penalty.

    Parameters
    ----------
    sample : Spectral
    alphas : ndarray of shape (n_alphas,)
    sigma : ndarray of shape (n_outputs,) or None
        Noise scales; None takes those with the smallest leave-one-out log loss.
    """
    law = sample.law
    total = law.total
    names = ("scores", "residual", "log_std", "log_rest", "dof")
    sums = dict(zip(names, sample.sums(_figure_sums, alphas), strict=True))
    figures = []
    for index, alpha in enumerate(alphas):
        lambda_ = alpha / (total + 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            theta = np.nan_to_num(law.g / (law.e + total * lambda_)[:, None])
        # The penalty is finite where the squared norm is not.
        with np.errstate(over="ignore"):
            penalty = np.sum((np.sqrt(lambda_) * theta) ** 2, axis=0)
        mean = {name: values[index] / total for name, values in sums.items()}
        if sigma is None:
            scale = np.maximum(np.sqrt(mean["scores"]), sample.floor)
        else:
            scale = sigma
        constant = np.log(scale) + 0.5 * LOG_2PI
        loss = 0.5 * mean["scores"] / scale**2 + mean["log_std"] + constant
        # Lemma 1 for the row's own label: log Z is the loss minus the penalised loss
        # of the fit to the full sample.
        own = 0.5 * (mean["residual"] + penalty) / scale**2 + constant
        log_normalizer_mean = np.nan if law.bayes else float((loss - own).sum())
        figures.append(
            LeaveOneOutFigures(
                sigma=scale,
                log_loss=float(loss.sum()),
                log_normalizer_mean=log_normalizer_mean,
                leverage_bound=float(-mean["log_rest"][0]),
                effective_dof=float(sums["dof"][index, 0]),
            )
        )
    return figures


def residual_sums(law, z, y, weight):
    """Return the sums of the squared residuals without a penalty, of each output."""
    residual = law.leave_one_out(0.0, z, y, weight)[2]
    return (weight @ residual**2,)


def _joint_sums(law, z, y, weight, rss, kappa):
    """Return sums of log densities and log normalisers without the rows."""
    unit = np.minimum(weight, 1.0)[:, None]
    _, _, residual, leverage = law.leave_one_out(0.0, z, y, weight)
    rest = 1.0 - unit * leverage[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rss_less = rss - unit * residual**2 / rest
    # Without the row a coefficient or the noise scale is not determined: the law does
    # not exist.
    exists = (rest > _ROUNDING) & (rss_less > _ROUNDING * rss)
    if not exists.all():
        return np.full(len(rss), -np.inf), np.full(len(rss), np.inf)
    laws = (leverage[:, None] / rest, rss_less, law.total - 1.0, kappa)
    return (
        weight @ joint_log_density(residual / rest, *laws),
        weight @ joint_log_normalizer(*laws),
    )


def joint_leave_one_out(sample: Spectral, rss: np.ndarray, kappa: float):
    """Return log loss and log normaliser of the scale-free law by leave-one-out.

    The bound includes the price ``kappa log sigma`` of the competitor's noise scale, at
    the residual scale of the full sample.
    """
    total = sample.law.total
    density, bound = sample.sums(_joint_sums, rss, kappa)
    bound = bound / total + 0.5 * kappa * np.log(rss / total)
    return float(np.sum(-density / total)), float(np.sum(bound))
