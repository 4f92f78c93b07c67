"""Rows in chunks in the eigencoordinates of ridge regression: sums of a pass each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.extmath import row_norms

from skbounds._blocks import memory_limit, row_blocks
from skbounds._collections import Chunks, add_tuples, rows_that_count
from skbounds._magnitude import check_magnitude
from skbounds.smp._design import Design
from skbounds.smp._ridge_loo import SpectralLaw, floor_of


@dataclass(frozen=True)
class Coordinates:
    """How rows become model coordinates, and these eigencoordinates.

    Attributes
    ----------
    design : Design
    mean : ndarray of shape (p,)
    vectors : ndarray of shape (p, p) or None
    """

    design: Design
    mean: np.ndarray
    vectors: np.ndarray | None = None

    def __call__(self, X):
        """Return coordinates of rows."""
        Z = self.design.transform(X)
        Z = (Z.toarray() if sparse.issparse(Z) else Z) - self.mean
        return Z if self.vectors is None else Z @ self.vectors


@dataclass
class ChunkedSample:
    """As `RidgeSample`, of rows in chunks.

    Attributes
    ----------
    law : SpectralLaw
    chunks : Chunks
    coordinates : Coordinates
    n_rows : int
        Of positive weight.
    least_weight : float
    floor : ndarray of shape (n_outputs,)
    radius2 : float
    """

    law: SpectralLaw
    chunks: Chunks
    coordinates: Coordinates
    n_rows: int
    least_weight: float
    floor: np.ndarray
    radius2: float

    center = None

    @property
    def vectors(self):
        return self.coordinates.vectors

    @property
    def z_mean(self):
        return self.coordinates.mean

    @property
    def design(self):
        return self.coordinates.design

    def sums(self, function, *arguments):
        """Return the sums of what a function makes of blocks of rows; a pass."""
        return self.chunks.sums(_block_sums, self.coordinates, function, self.law,
                                arguments)  # fmt: skip


def _kept(X, y, weight):
    """Return rows of positive weight, targets (n, m) and weights."""
    X, y, weight, _ = rows_that_count(X, y, weight)
    return X, y[:, None] if y.ndim == 1 else y, weight


def _block_sums(X, y, weight, coordinates, function, law, arguments):
    X, y, weight = _kept(X, y, weight)
    total, width = None, 4 * (len(law.e) + X.shape[1] + 1)
    # A chunk may be empty, and has sums of the same shapes all the same.
    blocks = list(row_blocks(len(y), memory_limit() // width)) or [slice(0, 0)]
    for rows in blocks:
        part = function(law, coordinates(X[rows]), y[rows], weight[rows], *arguments)
        total = part if total is None else add_tuples(total, part)
    return total


def _facts_of(X, y, weight):
    """Return numbers, moments and extremes of a chunk."""
    X, y, weight = _kept(X, y, weight)
    check_magnitude(X, "X")
    check_magnitude(y, "y")
    total = weight.sum()
    sums = (len(y), total, np.asarray(X.T @ weight).ravel(), weight @ y)
    if not len(y):
        return None
    radius2 = row_norms(X, squared=True).max()
    return sums, (weight.min(), -radius2, y.min(axis=0), -y.max(axis=0))


def _factor_of(X, y, weight, coordinates, y_mean):
    """Return R with R'R the second moments of coordinates, and their products with y.

    The factor has twice the digits of the moments themselves.
    """
    X, y, weight = _kept(X, y, weight)
    p, m = len(coordinates.mean), y.shape[1]
    factor, cross = np.zeros((0, p)), np.zeros((p, m))
    for rows in row_blocks(len(y), memory_limit() // (4 * (p + X.shape[1]))):
        root = np.sqrt(weight[rows])[:, None]
        Z = coordinates(X[rows]) * root
        factor = _triangle(np.vstack([factor, Z]))
        cross += Z.T @ ((y[rows] - y_mean) * root)
    return factor, cross


def _triangle(rows):
    """Return R of rows, as they are where there are few."""
    return linalg.qr(rows, mode="r")[0][: rows.shape[1]] if len(rows) else rows


def _join_factors(*parts):
    """Return R of the rows of several, and the sum of the products."""
    factor = _triangle(np.vstack([factor for factor, _ in parts]))
    return factor, sum(cross for _, cross in parts)


def chunked_sample(chunks, *, has_mean, intercept, bayes) -> ChunkedSample:
    """Run the passes of the facts and of the moments.

    Parameters
    ----------
    chunks : Chunks
    has_mean : bool
        Whether there is an unpenalised intercept.
    intercept : float
        Value of a constant column that is penalised; 0 for none.
    bayes : bool
        See `SpectralLaw`.
    """
    found = [part for part in chunks.map(_facts_of) if part is not None]
    if not found:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    n, total, x_sum, y_sum = (
        sum(column) for column in zip(*(sums for sums, _ in found), strict=True)
    )
    least, radius2, low, high = (
        np.min(column, axis=0)
        for column in zip(*(ends for _, ends in found), strict=True)
    )
    design = Design(chunks.n_features, intercept=intercept, intercept_penalized=True)
    mean = np.zeros(design.n_coordinates)
    y_mean = np.zeros(len(y_sum))
    if has_mean:
        mean[: chunks.n_features] = x_sum / total
        y_mean = y_sum / total
    coordinates = Coordinates(design, mean)
    factor, cross = chunks.sums(_factor_of, coordinates, y_mean, combine=_join_factors)
    _, singular, Vt = linalg.svd(factor, full_matrices=True)
    V, e = Vt.T, np.zeros(len(mean))
    e[: len(singular)] = singular**2
    law = SpectralLaw(
        e=e,
        g=V.T @ cross,
        mean=y_mean,
        total=float(total),
        has_mean=has_mean,
        tolerance=(np.finfo(float).eps * max(n, len(e))) ** 2,
        bayes=bayes,
    )
    ends = np.stack([low, -high])
    floor = floor_of(np.abs(ends - y_mean).max(axis=0), np.abs(ends).max(axis=0))
    return ChunkedSample(
        law, chunks, Coordinates(design, mean, V), int(n), float(least), floor,
        float(-radius2) + intercept,
    )  # fmt: skip
