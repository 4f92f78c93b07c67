"""Gaussian outputs."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from skbounds.hmm._columns import filled, standard
from skbounds.hmm._emissions._scatter import (
    DIAGONAL,
    LARGE,
    LEAST_WEIGHT,
    Rows,
    about_means,
    collect,
    quadratic_forms,
    spread,
)

_LOG_2PI = np.log(2.0 * np.pi)
# Squares of sums about a point in units of the variances, from which on sums are
# collected about another one.
_BLURRED = 1e4
# States times columns beyond which products of matrices are faster.
_MOST_PRODUCTS = 256


class Gaussian:
    """Outputs N(m_j, S_j); missing entries are integrated out.

    Parameters
    ----------
    covariance_type : {"full", "diag", "spherical", "tied"}
    center : ndarray of shape (d,)
        Subtracted from rows, for precision.
    floor : ndarray of shape (d,) or None
        Added to the variances.
    prior : tuple of float or None
        Shape and scale of an inverse-gamma law of the variances; the scale is in units
        of `unit`.
    unit : ndarray of shape (d,) or None
        Variances of the columns.
    """

    names: tuple[str, ...] = ("means", "covariances")
    is_discrete = False

    def __init__(self, covariance_type, center, floor=None, prior=None, unit=None):
        self.covariance_type, self.center = covariance_type, center
        self.floor, self.prior, self.unit = floor, prior, unit

    def check_rows(self, X):
        """Accept all rows."""

    def features(self, X):
        """Return columns to look for clusters in: of like scales, nothing missing."""
        return standard(filled(X))

    def prepare(self, X):
        """Return rows, centred."""
        return Rows(X, self.center)

    def log_densities(self, rows, law):
        """Return log p(x_i | state j), an array (n, s)."""
        result, logs = self._forms(rows, law)
        result += logs
        result += rows.n_observed * _LOG_2PI
        result *= -0.5
        return result

    def _forms(self, rows, law):
        return quadratic_forms(
            rows, law["means"], law["covariances"], self.covariance_type
        )

    def linear(self, rows, law, reference):
        """Return columns, and weights of these that log-densities are linear in.

        None where they are not, or where that would lose digits. The last item is what
        log-densities have in common.
        """
        if (
            reference is not None
            or rows.observed is not None
            or self.covariance_type not in DIAGONAL
            or law["means"].size > _MOST_PRODUCTS
        ):
            return None
        means = law["means"] - self.center
        variances = spread(law["covariances"], self.covariance_type, means.shape)
        precision = 1.0 / variances
        if (rows.largest * precision).max() > LARGE:
            return None
        scaled = means * precision
        weights = np.concatenate([scaled, -0.5 * precision], axis=1).T
        constant = -0.5 * (np.log(variances) + scaled * means).sum(axis=1)
        base = -0.5 * len(rows) * means.shape[1] * _LOG_2PI
        return rows.both, np.ascontiguousarray(weights), constant, base

    def from_columns(self, size, sums):
        """Return what `collect` returns, from sums of the columns of `linear`."""
        d = sums.shape[1] // 2
        return np.repeat(size[:, None], d, axis=1), sums[:, :d], sums[:, d:]

    def weights(self, rows, posterior, law):
        """Return posteriors times the weights of rows, and what else is summed."""
        return posterior, ()

    def reference(self, law):
        """Return the points about which sums are collected."""
        shift = law["means"] - self.center
        if self.covariance_type in DIAGONAL:
            variances = spread(law["covariances"], self.covariance_type, shift.shape)
            if not (shift**2 > _BLURRED * variances).any():
                return None
        return law["means"]

    def collect(self, rows, posterior, law, reference):
        """Return the sums that the M-step needs."""
        weight, extra = self.weights(rows, posterior, law)
        sums = collect(
            rows, weight, posterior, law, self.covariance_type, reference
        )  # fmt: skip
        return (*sums, *extra)

    def maximise(self, sums, law, reference, fixed=()):
        """Return the law of greatest likelihood; states without rows keep theirs."""
        total = sums[0]
        means, products, seen = self._moments_of(sums[:3], law, reference, fixed)
        covariances = self._covariances(
            total, total, seen, products, law["covariances"]
        )
        return {"means": means, "covariances": covariances}

    def _moments_of(self, sums, law, reference, fixed):
        """Return means, mean products about them, and what has been seen."""
        total, first, second = sums
        base = self.center if reference is None else reference
        shift, products = about_means(total, first, second)
        seen = total > LEAST_WEIGHT
        if "means" not in fixed:
            return np.where(seen, base + shift, law["means"]), products, seen
        # About the means that stay.
        gaps = np.where(seen, base + shift - law["means"], 0.0)
        if products.ndim == 2:
            return law["means"], products + gaps**2, seen
        return law["means"], products + gaps[:, :, None] * gaps[:, None, :], seen

    def _covariances(self, total, size, seen, products, before):
        """Return covariances; `size` are the numbers of rows that sums are of."""
        kind, d = self.covariance_type, total.shape[1]
        extra, weight = np.zeros(d), 0.0
        if self.prior is not None:
            shape, scale = self.prior
            extra, weight = 2.0 * scale * self.unit, 2.0 * (shape + 1.0)
        if kind == "diag":
            sums = total * products + extra
            found = sums / np.where(seen, size + weight, 1.0) + self.floor
            found = np.where(seen, found, before)
        elif kind == "spherical":
            sums = (total * products).sum(axis=1) + extra.sum()
            some = total.sum(axis=1) > LEAST_WEIGHT
            size = np.where(some, size.sum(axis=1) + d * weight, 1.0)
            found = np.where(some, sums / size + self.floor.mean(), before)
        else:
            matrices = total[:, 0, None, None] * products
            ridge = np.diag(self.floor)
            some = total[:, 0] > LEAST_WEIGHT
            if kind == "tied":
                sums = matrices[some].sum(axis=0) + np.diag(extra)
                return sums / (size[some, 0].sum() + weight) + ridge
            sums = matrices + np.diag(extra)
            safe = np.where(some, size[:, 0] + weight, 1.0)[:, None, None]
            return np.where(some[:, None, None], sums / safe + ridge, before)
        return found

    def log_prior(self, law):
        """Return the logarithm of the prior, up to constants."""
        if self.prior is None:
            return 0.0
        shape, scale = self.prior
        matrices = law["covariances"]
        d = len(self.unit)
        if self.covariance_type == "tied":
            matrices = matrices[None]
        if self.covariance_type in DIAGONAL:
            s = len(law["means"])
            variances = spread(matrices, self.covariance_type, (s, d))
            logs, ratios = np.log(variances).sum(), (self.unit / variances).sum()
        else:
            logs = np.linalg.slogdet(matrices)[1].sum()
            inverses = np.linalg.inv(matrices)
            ratios = (np.diagonal(inverses, axis1=1, axis2=2) * self.unit).sum()
        return float(-(shape + 1.0) * logs - scale * ratios)

    def blurred(self, sums, law):
        """Return means about which sums must be collected again, or None."""
        total, _, second = sums[:3]
        variances, squares = law["covariances"], second
        if second.ndim == 3:
            variances = np.diagonal(variances, axis1=-2, axis2=-1)
            squares = np.diagonal(second, axis1=1, axis2=2)
        elif self.covariance_type == "spherical":
            variances = variances[:, None]
        seen = total > LEAST_WEIGHT
        far = squares > _BLURRED * variances * np.where(seen, total, np.inf)
        return law["means"] if far.any() else None

    def check(self, law):
        """Refuse variances of 0; matrices are refused by their factors."""
        if self.covariance_type in DIAGONAL and not (law["covariances"] > 0.0).all():
            raise np.linalg.LinAlgError("a variance is 0")

    def degenerate(self, law, least):
        """Return the states with a direction whose variance is below `least`."""
        covariances = law["covariances"]
        if self.covariance_type in DIAGONAL:
            shape = law["means"].shape
            ratio = spread(covariances, self.covariance_type, shape) / least
            return np.flatnonzero(ratio.min(axis=1) < 2.0)
        if self.covariance_type == "tied":
            covariances = covariances[None]
        root = np.sqrt(least)
        eigenvalues = np.linalg.eigvalsh(covariances / (root[:, None] * root))
        few = np.flatnonzero(eigenvalues[:, 0] < 2.0)
        if self.covariance_type == "tied" and len(few):
            return np.arange(len(law["means"]))
        return few

    def distance(self, law, other, unit):
        """Return differences of the means, in standard deviations of the columns."""
        return ((law["means"] - other["means"]) / unit).ravel()

    def order(self, law):
        """Return states in lexicographic order of their means."""
        return np.lexsort(law["means"].T[::-1])

    def n_parameters_of(self, name, law):
        """Return the number of free parameters of a part of the law."""
        s, d = law["means"].shape
        if name == "means":
            return s * d
        matrix = d * (d + 1) // 2
        sizes = {"full": s * matrix, "tied": matrix, "diag": s * d, "spherical": s}
        return sizes[self.covariance_type]

    # ---------------------------------------------------------------- the fitted law

    def public(self, law):
        """Return the law as attributes show it: covariances of shape (s, d, d)."""
        s, d = law["means"].shape
        return {**law, "covariances": expand(law["covariances"], *self._shape(s, d))}

    def private(self, law):
        """Return the law as EM has it."""
        return {
            **law,
            "covariances": compress(law["covariances"], self.covariance_type),
        }

    def _shape(self, s, d):
        return self.covariance_type, s, d

    def draw(self, law, states, rng):
        """Draw a row for each state; the law has full matrices."""
        noise = rng.standard_normal((len(states), law["means"].shape[1]))
        X = law["means"][states]
        for j, root in enumerate(np.linalg.cholesky(law["covariances"])):
            own = states == j
            X[own] += noise[own] @ root.T
        return X

    def moments(self, law):
        """Return means and covariances of the states' rows."""
        return law["means"], law["covariances"]

    def cdf(self, law, column, values):
        """Return P(X_column <= value | state), an array (..., s)."""
        deviation = np.sqrt(law["covariances"][:, column, column])
        return ndtr((values[..., None] - law["means"][:, column]) / deviation)

    def ppf(self, law, column, levels):
        """Return the states' quantiles of a column, an array (n_levels, s)."""
        deviation = np.sqrt(law["covariances"][:, column, column])
        return law["means"][:, column] + ndtri(levels)[:, None] * deviation

    def score(self, rows, posterior, law):
        """Return the derivatives of the expected log-density by all entries."""
        weight, count, total = self._score_weights(rows, posterior, law)
        means = law["means"]
        kind = self.covariance_type
        _, first, second = collect(rows, weight, count, law, kind, means)
        if kind in DIAGONAL:
            variances = spread(law["covariances"], kind, means.shape)
            by_mean = first / variances
            by_variance = 0.5 * (second / variances**2 - total / variances)
            if kind == "spherical":
                by_variance = by_variance.sum(axis=1)
            return {"means": by_mean, "covariances": by_variance}
        matrices = law["covariances"]
        if kind == "tied":
            matrices = np.broadcast_to(matrices, second.shape)
        inverse = np.linalg.inv(matrices)
        by_mean = np.einsum("jkl,jl->jk", inverse, first)
        by_matrix = 0.5 * (inverse @ second @ inverse - total[:, :1, None] * inverse)
        if kind == "tied":
            by_matrix = by_matrix.sum(axis=0)
        return {"means": by_mean, "covariances": by_matrix}

    def _score_weights(self, rows, posterior, law):
        """Return weights of rows and of what is missing, and `_score_total`."""
        return posterior, posterior, self._score_total(rows, posterior)

    def _score_total(self, rows, posterior):
        """Return expected numbers of rows that say something about a column."""
        if rows.observed is None:
            size = posterior.sum(axis=0)[:, None]
            return np.repeat(size, rows.values.shape[1], axis=1)
        if self.covariance_type in DIAGONAL:
            return posterior.T @ rows.observed
        some = (rows.n_observed > 0.0)[:, 0]
        size = posterior[some].sum(axis=0)[:, None]
        return np.repeat(size, rows.values.shape[1], axis=1)


def expand(covariances, covariance_type, s, d):
    """Return covariance matrices of shape (s, d, d)."""
    if covariance_type == "full":
        return covariances.copy()
    if covariance_type == "tied":
        return np.repeat(covariances[None], s, axis=0)
    if covariance_type == "spherical":
        return covariances[:, None, None] * np.eye(d)
    return covariances[:, :, None] * np.eye(d)


def compress(covariances, covariance_type):
    """Return what a type of covariance keeps of matrices of shape (s, d, d)."""
    if covariance_type == "full":
        return covariances.copy()
    if covariance_type == "tied":
        return _common(covariances)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if covariance_type == "spherical":
        return _common(variances.T)
    return variances.copy()


def _common(values):
    """Return the mean over the first axis: to the last bit where all are the same."""
    return np.where((values == values[0]).all(axis=0), values[0], values.mean(axis=0))
