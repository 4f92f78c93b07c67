"""Distances between rows that survive offsets and outliers.

A squared distance is |x|^2 + |y|^2 - 2 x'y: fast, and off by the rounding of |x|^2.
Rows are moved to their median first, so that neither an offset that all share nor a few
outliers count; pairs of rows that are both far away all the same are taken apart
coordinate by coordinate.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from skbounds._magnitude import SMALLEST, check_magnitude

# Rounding allowed in the exponent of a kernel.
_ROUNDING = 1e-11
# Coordinates of new rows that are told apart.
_FARTHEST = 1e150
# Rows that a median is taken of; more tell nothing new of where most of them are.
_MEDIAN_ROWS = 10_000


class CentredRows:
    """Rows moved to a common centre, with their squared lengths.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
        Sparse rows stay where they are.
    center : ndarray of shape (d,) or None
        None: the columns' medians.
    """

    def __init__(self, X, center=None):
        self.center = None
        if not issparse(X):
            if center is None:
                center = np.median(X[:: 1 + len(X) // _MEDIAN_ROWS], axis=0)
            self.center = center
            X = X - center
        self.X = X
        self.squares = row_norms(X, squared=True)

    def take(self, rows):
        """Return some of the rows."""
        part = object.__new__(CentredRows)
        part.center = self.center
        part.X, part.squares = self.X[rows], self.squares[rows]
        return part

    def with_others(self, X):
        """Return other rows, moved to the same centre."""
        if self.center is None:
            return CentredRows(X if issparse(X) else csr_matrix(X))
        X = X.toarray() if issparse(X) else X
        # Further away the kernel vanishes all the same, and squares are finite.
        return CentredRows(np.clip(X, -_FARTHEST, _FARTHEST), self.center)


def rbf(one, other, gamma):
    """Return exp(-gamma |x - y|^2) of two sets of rows with the same centre.

    Parameters
    ----------
    one, other : CentredRows
    gamma : float
    """
    gaps = one.X @ (-2.0 * other.X.T)
    gaps = gaps.toarray() if issparse(gaps) else gaps
    gaps += one.squares[:, None]
    gaps += other.squares
    # Beyond this length rounding counts. A pair of which only one is longer is so far
    # apart that the kernel vanishes, or not much longer.
    length = _ROUNDING / (np.finfo(np.float64).eps * max(gamma, 1e-300))
    far = [np.flatnonzero(part.squares > length) for part in (one, other)]
    if len(far[0]) and len(far[1]):
        gaps[np.ix_(*far)] = _exact(one.X[far[0]], other.X[far[1]])
    np.maximum(gaps, 0.0, out=gaps)
    gaps *= -gamma
    return np.exp(gaps, out=gaps)


def _exact(X, Y):
    """Return squared distances from differences of coordinates."""
    if issparse(X) or issparse(Y):
        used = np.unique(np.concatenate([X.tocsr().indices, Y.tocsr().indices]))
        X, Y = (part.tocsc()[:, used].toarray() for part in (X, Y))
    return cdist(X, Y, "sqeuclidean")


def check_spread(X):
    """Refuse rows whose squared distances are beyond the range of doubles.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    """
    check_magnitude(X, "X")
    if not X.shape[0]:
        return
    if issparse(X):
        spread = float(np.abs(X.data).max(initial=0.0))
    else:
        spread = float(np.ptp(X, axis=0).max(initial=0.0))
    if 0.0 < spread < SMALLEST:
        raise ValueError(
            f"X varies by {spread:.3g} only; squared distances between rows vanish "
            f"where columns vary by less than {SMALLEST:g}. Multiply by a constant."
        )
