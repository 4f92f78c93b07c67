"""A random-pivoted partial Cholesky factor of a kernel matrix, grown in blocks."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm

from skbounds._core import kernel_boost as _core

# Rows of a chunk: its part of the factor stays in the second-level cache.
_CHUNK = 1024
# The factor is complete once so much of the trace is left.
_EXHAUSTED = 1e-11
_SMALLEST_BLOCK, _LARGEST_BLOCK = 32, 128
# More negative than this share of the largest is more than the rounding of a matrix in
# single precision: the kernel is not positive semidefinite.
INDEFINITE = 1e-6
# Blocks in a row that may be rejected entirely.
_MOST_REJECTED = 5


def accept_pivots(matrix, uniforms):
    """Return the numbers of the proposals that are accepted as pivots.

    A proposal is accepted with probability (residual now) / (residual when proposed),
    which reproduces the law of sequential random pivoting.

    Parameters
    ----------
    matrix : ndarray of shape (b, b)
        Residual kernel matrix of the proposals; overwritten.
    uniforms : ndarray of shape (b,)

    Returns
    -------
    accepted : ndarray of int
    """
    accepted = np.empty(len(matrix), dtype=np.int64)
    return accepted[: _core.accept_pivots(matrix, uniforms, accepted)]


class KernelFactor:
    """F with G ~ F F', grown column by column from random pivots.

    Parameters
    ----------
    kernel : callable
        ``kernel(rows, others)`` is the kernel matrix of two sets of row numbers.
    diagonal : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        Pivots are drawn in proportion to weight times residual.
    max_rank : int
    rng : Generator

    Attributes
    ----------
    factor : ndarray of shape (n, rank)
    pivots : ndarray of int of shape (rank,)
    residual : ndarray of shape (n,)
        Diagonal of G - F F'.
    most_negative : float
        The least entry that it ever had before it was clipped at zero.
    """

    def __init__(self, kernel, diagonal, weight, max_rank, rng):
        self.kernel, self.weight, self.rng = kernel, weight, rng
        self.residual = np.array(diagonal, dtype=np.float64)
        self.trace = weight @ self.residual
        self.largest = np.abs(self.residual).max()
        self.max_rank = min(max_rank, len(diagonal))
        self._columns = np.empty((len(diagonal), self.max_rank))
        self._pivots = np.empty(self.max_rank, dtype=np.intp)
        self.rank, self.most_negative = 0, min(0.0, self.residual.min())
        self.exhausted = self.trace <= 0.0

    @property
    def factor(self):
        return self._columns[:, : self.rank]

    @property
    def pivots(self):
        return self._pivots[: self.rank]

    def triangle(self):
        """Return the rows of the pivots, a lower triangle."""
        return self.factor[self.pivots]

    def check_definite(self):
        """Refuse kernels whose elimination leaves less than nothing."""
        if self.most_negative < -INDEFINITE * self.largest:
            raise ValueError(
                "the kernel is not positive semidefinite: eliminating rows left "
                f"{self.most_negative:.3g} on its diagonal."
            )

    def grow(self, rank):
        """Add columns until there are `rank`, or nothing is left."""
        rank, rejected = min(rank, self.max_rank), 0
        while self.rank < rank and not self.exhausted:
            size = int(np.clip(rank // 4, _SMALLEST_BLOCK, _LARGEST_BLOCK))
            law = self.weight * self.residual
            total = law.sum()
            if total <= _EXHAUSTED * self.trace:
                self.exhausted = True
                break
            # A row may be proposed again after it was rejected: only so the law is that
            # of pivots drawn one by one.
            proposals = self.rng.choice(len(law), size=size, p=law / total)
            done = self.factor[proposals]
            inner = self.kernel(proposals, proposals) - done @ done.T
            kept = accept_pivots(inner.copy(), self.rng.random(len(proposals)))
            kept = kept[: rank - self.rank]
            rejected = 0 if len(kept) else rejected + 1
            if rejected == _MOST_REJECTED:
                self.exhausted = True
            if len(kept):
                self._eliminate(proposals[kept], inner[np.ix_(kept, kept)])

    def _eliminate(self, accepted, inner):
        start, stop = self.rank, self.rank + len(accepted)
        root = np.linalg.cholesky(inner)
        done = self.factor[accepted].copy()
        n = len(self.residual)
        for begin in range(0, n, _CHUNK):
            rows = slice(begin, min(begin + _CHUNK, n))
            part = self.kernel(rows, accepted)
            if start:
                part -= self._columns[rows, :start] @ done.T
            columns = dtrsm(1.0, root, part, side=1, lower=1, trans_a=1)
            self._columns[rows, start:stop] = columns
            self.residual[rows] -= np.einsum("ij,ij->i", columns, columns)
        self.most_negative = min(self.most_negative, self.residual.min())
        np.maximum(self.residual, 0.0, out=self.residual)
        self.residual[accepted] = 0.0
        self._pivots[start:stop] = accepted
        self.rank = stop
