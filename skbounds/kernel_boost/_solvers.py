"""Coordinates in which boosting acts on each component of the targets by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from skbounds._base import warn_user
from skbounds._blocks import row_blocks
from skbounds.kernel_boost._factor import INDEFINITE, KernelFactor
from skbounds.kernel_boost._summed import BLOCK, SummedColumns, factor_rows, sum_rows

# Eigenvalues below this share of the largest, times their number, are rounding.
_ROUNDING = 1e-15
# Rows per column of the factor that the pivots of a streamed one are chosen from.
_ROWS_PER_PIVOT, _FEWEST_ROWS = 10, 4000


@dataclass(frozen=True)
class RawFeatures:
    """Features F of the rows with F F' ~ G, of which Psi = F V.

    Attributes
    ----------
    rows : callable
        ``rows(numbers)`` returns F of some rows.
    gram : ndarray of shape (R, R)
        F' diag(w / W) F.
    means : ndarray of shape (R,)
        F' (w / W).
    project : callable
        ``project(targets)`` is F' diag(w / W) targets.
    vectors : ndarray of shape (R, r) or None
        V; None where F is Psi.
    to_dual : callable
        ``to_dual(theta)`` returns the dual coefficients of F theta.
    """

    rows: object
    gram: np.ndarray
    means: np.ndarray
    project: object
    vectors: np.ndarray | None
    to_dual: object


@dataclass
class Basis:
    """Coordinates Psi of the rows with Psi' diag(w / W) Psi = diag(mu).

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
        mu, of D^(1/2) G D^(1/2) / W, decreasing.
    modes : ndarray of shape (n_landmarks, r)
        f = Psi theta has the dual coefficients modes @ theta.
    landmarks : ndarray of int of shape (n_landmarks,)
    residual_trace : float
        tr(K - K_hat).
    share : ndarray of shape (n,) or None
        w / W; None where the rows are elsewhere.
    coordinates : callable
        ``coordinates(used)`` returns the first columns of Psi, all by default.
    project : callable
        ``project(targets)`` is Psi' diag(w / W) targets.
    squares : callable
        ``squares(targets)`` is targets' diag(w / W) targets of each column.
    raw : RawFeatures
        Coordinates F = Psi V' that need no eigenvectors, for parts of the rows.
    columns : Columns, StreamedColumns or None
        What the basis was made of.
    """

    eigenvalues: np.ndarray
    modes: np.ndarray
    landmarks: np.ndarray
    residual_trace: float
    share: np.ndarray
    coordinates: object
    project: object
    squares: object
    raw: RawFeatures
    columns: object = None

    def leading(self, size):
        """Return the first columns of Psi as features."""
        mu, modes = self.eigenvalues[:size], self.modes[:, :size]
        V, raw = self.raw.vectors, self.raw
        turn = (lambda F: F[:, :size]) if V is None else (lambda F: F @ V[:, :size])
        return RawFeatures(
            rows=lambda numbers: turn(raw.rows(numbers)),
            gram=np.diag(mu),
            means=turn(raw.means[None])[0],
            project=lambda targets: self.project(targets)[:size],
            vectors=None,
            to_dual=lambda theta: modes @ theta,
        )

    def coefficients(self, targets):
        """Return b = U' s with s = sqrt(w / W) targets: (r, m)."""
        return self.project(targets) / np.sqrt(self.eigenvalues)[:, None]


def full_basis(gram, weight) -> Basis:
    """Return the basis of all eigenvectors of the kernel matrix.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    weight : ndarray of shape (n,)
    """
    share = weight / weight.sum()
    root = np.sqrt(share)
    mu, U = np.linalg.eigh(root[:, None] * gram * root)
    mu, U = mu[::-1], U[:, ::-1]
    check_definite(mu)
    kept = mu > len(mu) * _ROUNDING * max(mu[0], 0.0)
    mu, U = mu[kept], U[:, kept]
    scaled = U * np.sqrt(mu)
    modes = root[:, None] * U / np.sqrt(mu)
    project = lambda targets: scaled.T @ (root[:, None] * targets)
    raw = RawFeatures(
        rows=lambda numbers: scaled[numbers] / root[numbers, None],
        gram=np.diag(mu),
        means=scaled.T @ root,
        project=project,
        vectors=None,
        to_dual=lambda theta: modes @ theta,
    )
    return Basis(
        mu,
        modes,
        np.arange(len(weight)),
        0.0,
        share,
        lambda used=None: scaled[:, :used] / root[:, None],
        project,
        lambda targets: share @ targets**2,
        raw,
    )


def check_definite(eigenvalues):
    """Refuse kernels that are not positive semidefinite."""
    largest, least = eigenvalues[0], eigenvalues[-1]
    if least < -INDEFINITE * max(largest, 0.0) and least < -1e-300:
        raise ValueError(
            "the kernel matrix is not positive semidefinite: its eigenvalues go from "
            f"{least:.3g} to {largest:.3g}."
        )


class Columns:
    """Products of a factor F with weights and targets, for F of each rank.

    Leading columns of F are the factor of smaller rank, so that a product for the
    largest rank serves all.

    Parameters
    ----------
    factor : KernelFactor
        Of all rows.
    weight : ndarray of shape (n,)
    """

    is_streamed = False

    def __init__(self, factor, weight):
        self.factor = factor
        self.share = weight / weight.sum()
        self.equal = bool((weight == weight[0]).all())
        self.gram = np.empty((0, 0))

    @property
    def rank(self):
        return self.factor.rank

    @property
    def pivots(self):
        return self.factor.pivots

    @property
    def residual_trace(self):
        return float(self.share @ self.factor.residual)

    @property
    def complete(self):
        return self.factor.exhausted or self.factor.rank >= self.factor.max_rank

    def grow(self, rank):
        """Add columns to the factor, and what they add to F'F."""
        done = self.factor.rank
        self.factor.grow(rank)
        F = self.factor.factor
        gram = np.zeros((F.shape[1], F.shape[1]))
        gram[:done, :done] = self.gram
        for rows in row_blocks(len(F), BLOCK):
            part = F[rows]
            if self.equal:
                scaled = part[:, done:]
            else:
                scaled = part[:, done:] * self.share[rows, None]
            gram[:, done:] += part.T @ scaled
        if self.equal:
            gram[:, done:] *= self.share[0]
        gram[done:, :done] = gram[:done, done:].T
        self.gram = gram

    def check_definite(self):
        self.factor.check_definite()

    def triangle(self):
        return self.factor.factor[self.factor.pivots]

    def project(self, targets):
        return self.factor.factor.T @ (self.share[:, None] * targets)

    def means(self):
        return self.factor.factor.T @ self.share

    def squares(self, targets):
        return self.share @ targets**2

    def rows(self, numbers):
        return self.factor.factor[numbers]

    def times(self, matrix):
        return self.factor.factor[:, : len(matrix)] @ matrix


class StreamedColumns(SummedColumns):
    """As `Columns`, for factors that do not fit into memory.

    The pivots are those of a factor of some of the rows. One pass over all rows, block
    by block, finds the products for the largest rank.

    Parameters
    ----------
    rows : Rows
    weight : ndarray of shape (n,)
    targets : ndarray of shape (n, m)
    max_rank : int
    rng : Generator
    """

    def __init__(self, rows, weight, targets, max_rank, rng):
        n = len(weight)
        share = weight / weight.sum()
        size = sample_size(n, max_rank)
        some = np.sort(rng.choice(n, size, replace=False, p=share))
        factor = grown_factor(rows.take(some), max_rank, rng)
        pivots, triangle = some[factor.pivots], factor.triangle()

        def factor_of(numbers, rank):
            kernel = rows.block(numbers, pivots[:rank])
            return factor_rows(kernel, triangle[:rank, :rank])

        sums = sum_rows(
            lambda block: rows.block(block, pivots), triangle, rows.diagonal(), share,
            targets, None, 0,
        )  # fmt: skip
        super().__init__(
            factor, pivots, sums, share=share, rows=factor_of, targets=targets
        )


def sample_size(n, max_rank):
    """Return how many rows the pivots of a streamed factor are chosen from."""
    return min(n, max(_FEWEST_ROWS, _ROWS_PER_PIVOT * max_rank))


def grown_factor(rows, max_rank, rng):
    """Return the factor of some rows, of the largest rank."""
    factor = KernelFactor(
        rows.block, rows.diagonal(), np.ones(len(rows)), max_rank, rng
    )
    factor.grow(max_rank)
    return factor


def factor_basis(columns) -> Basis:
    """Return the basis of F F' for a partial factor F.

    Parameters
    ----------
    columns : Columns or StreamedColumns
    """
    mu, V = np.linalg.eigh(columns.gram)
    mu, V = mu[::-1], V[:, ::-1]
    kept = mu > len(mu) * _ROUNDING * mu.max(initial=0.0)
    mu, V = mu[kept], V[:, kept]
    triangle, rank = columns.triangle(), columns.rank

    def to_dual(theta):
        if not rank:
            return theta
        return linalg.solve_triangular(triangle, theta, lower=True, trans="T")

    modes = to_dual(V)
    raw = RawFeatures(
        rows=lambda numbers: columns.rows(numbers)[:, :rank],
        gram=columns.gram,
        means=columns.means(),
        project=lambda targets: columns.project(targets)[:rank],
        vectors=V,
        to_dual=to_dual,
    )
    return Basis(
        mu,
        modes,
        columns.pivots.copy(),
        columns.residual_trace,
        columns.share,
        lambda used=None: columns.times(V[:, :used]),
        lambda targets: V.T @ columns.project(targets)[:rank],
        columns.squares,
        raw,
        columns,
    )


def warn_of_width(eigenvalues, trace, n_samples, *, rank_one):
    """Say where a kernel sees all rows as the same, or all as unrelated.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
    trace : float
        Of the whole kernel matrix, normalised.
    n_samples : int
        Number of rows.
    rank_one : bool
        Whether a kernel matrix of rank one is suspicious.
    """
    if n_samples < 4 or not len(eigenvalues) or trace <= 0.0:
        return
    # A few eigenvalues cannot tell.
    if len(eigenvalues) >= 10 and eigenvalues[0] < 2.0 * trace / n_samples:
        warn_user(
            "The kernel sees the rows as unrelated (its matrix is nearly diagonal): "
            "scale the features, or choose a smaller gamma."
        )
    elif rank_one and trace - eigenvalues[0] < 1e-12 * trace:
        warn_user(
            "The kernel sees the rows as the same (its matrix is nearly of rank one): "
            "scale the features, or choose a larger gamma."
        )
