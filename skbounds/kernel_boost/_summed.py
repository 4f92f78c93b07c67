"""Factors of kernel matrices of which only sums over the rows are kept.

With F = K L^-T for rows of the kernel matrix K with the landmarks and their triangle L,
the squared loss needs F' D F, F' D y, F' D 1, y' D y and what is left of the trace, and
those sums of the rows of each fold: any number of rows, in any number of places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dsyrk

from skbounds._blocks import row_blocks

# Rows of a block of the factor, or of the kernel matrix.
BLOCK = 4096


@dataclass(frozen=True)
class FactorSums:
    """Sums over the rows, with shares w / W of their weights.

    Attributes
    ----------
    gram : ndarray of shape (r, r)
        F' D F.
    sides : ndarray of shape (r, m + 1)
        F' D y, and F' D 1 in the last column.
    left : ndarray of shape (r + 1,)
        The trace, and what each column takes of it.
    squares : ndarray of shape (m,)
        y' D y.
    fold_grams, fold_sides : ndarray of shape (n_folds, r, r), (n_folds, r, m + 1)
        Of the rows of each fold.
    fold_totals : ndarray of shape (n_folds, 1 + 2 m)
        Their sums of D, D y and D y^2.
    """

    gram: np.ndarray
    sides: np.ndarray
    left: np.ndarray
    squares: np.ndarray
    fold_grams: np.ndarray
    fold_sides: np.ndarray
    fold_totals: np.ndarray

    def arrays(self):
        """Return all of them, to be added to those of other rows."""
        return tuple(vars(self).values())


def sum_rows(kernel_rows, triangle, diagonal, share, targets, fold, n_folds):
    """Return the sums over some rows.

    Parameters
    ----------
    kernel_rows : callable
        ``kernel_rows(slice)`` is the kernel matrix of rows and landmarks.
    triangle : ndarray of shape (r, r)
        L.
    diagonal : ndarray of shape (n,)
        k(x, x).
    share : ndarray of shape (n,)
    targets : ndarray of shape (n, m)
    fold : ndarray of int of shape (n,) or None
        Numbers of the folds; those from `n_folds` on are not left out.
    n_folds : int
    """
    r, m = len(triangle), targets.shape[1]
    gram, sides = np.zeros((r, r), order="F"), np.zeros((r, m + 1))
    left = np.zeros(r + 1)
    left[0] = share @ diagonal
    fold_grams = np.zeros((n_folds, r, r))
    fold_sides = np.zeros((n_folds, r, m + 1))
    fold_totals = np.zeros((n_folds, 1 + 2 * m))
    for rows in row_blocks(len(share), BLOCK):
        F = factor_rows(kernel_rows(rows), triangle)
        root = np.sqrt(share[rows])[:, None]
        scaled = F * root
        gram = dsyrk(1.0, scaled.T, beta=1.0, c=gram, overwrite_c=1)
        y = np.column_stack([targets[rows], np.ones(len(F))])
        sides += scaled.T @ (y * root)
        left[1:] += np.einsum("ij,ij->j", scaled, scaled)
        for k in range(n_folds):
            own = np.flatnonzero(fold[rows] == k)
            part, z = scaled[own], y[own] * root[own]
            fold_grams[k] += part.T @ part
            fold_sides[k] += part.T @ z
            squares = (z[:, :m] ** 2).sum(axis=0)
            w = (root[own] ** 2).ravel()
            fold_totals[k] += np.r_[w.sum(), w @ targets[rows][own], squares]
    gram = np.triu(gram) + np.triu(gram, 1).T
    return FactorSums(
        gram, sides, left, share @ targets**2, fold_grams, fold_sides, fold_totals
    )


def factor_rows(kernel, triangle):
    """Return F of rows of the kernel matrix."""
    return linalg.solve_triangular(triangle, kernel.T, lower=True).T


class SummedColumns:
    """As `Columns`, for factors of which the sums are known, for the largest rank.

    Parameters
    ----------
    factor : KernelFactor
        Of the rows that the landmarks are among.
    pivots : ndarray of int of shape (r,)
        Numbers of the landmarks.
    sums : FactorSums
    share : ndarray of shape (n,) or None
        Where the rows are here.
    rows : callable or None
        ``rows(numbers, rank)`` returns the factor of some rows, where they are here.
    targets : object
        Whatever stands for the targets that were summed.
    """

    is_streamed = True

    def __init__(self, factor, pivots, sums, *, share=None, rows=None, targets=None):
        self.factor, self._pivots, self.sums = factor, pivots, sums
        self.share, self._rows, self.targets = share, rows, targets
        self._triangle = factor.triangle()
        left = np.r_[sums.left[0], sums.left[0] - np.cumsum(sums.left[1:])]
        self._left = np.maximum(left, 0.0)
        self.max_rank, self.rank = factor.rank, 0

    @property
    def gram(self):
        return self.sums.gram[: self.rank, : self.rank]

    @property
    def pivots(self):
        return self._pivots[: self.rank]

    @property
    def residual_trace(self):
        return float(self._left[self.rank])

    @property
    def complete(self):
        return self.rank >= self.max_rank

    def grow(self, rank):
        self.rank = min(rank, self.max_rank)

    def check_definite(self):
        self.factor.check_definite()

    def triangle(self):
        return self._triangle[: self.rank, : self.rank]

    def _check(self, targets):
        if targets is not self.targets:
            raise RuntimeError("only the targets that were summed are known")

    def project(self, targets):
        self._check(targets)
        return self.sums.sides[: self.rank, :-1]

    def squares(self, targets):
        self._check(targets)
        return self.sums.squares

    def means(self):
        return self.sums.sides[: self.rank, -1]

    def rows(self, numbers):
        return self._rows(numbers, self.rank)
