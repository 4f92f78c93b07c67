"""Kernels between rows, and the pool of kernel rows that the solver reads."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse import issparse
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    euclidean_distances,
    pairwise_kernels,
)

from skbounds._blocks import row_blocks
from skbounds._magnitude import LARGEST, check_magnitude

KERNELS = ("precomputed", *sorted(PAIRWISE_KERNEL_FUNCTIONS))
# Rows computed at a time when the matrix does not fit: enough for matrix products.
_BATCH = 32
# Rows between which all distances are looked at.
_SIGEST_ROWS = 1500


class Kernel:
    """A kernel with its parameters, between any rows and a fixed set of rows.

    Parameters
    ----------
    name : str or callable
        Name known to ``pairwise_kernels``, "precomputed", or a function of two sets of
        rows that returns their kernel matrix.
    params : dict
        gamma, degree and coef0.
    scaler : transformer or None
        Applied to rows before the kernel.

    Attributes
    ----------
    rows : {ndarray, sparse matrix} or None
        The fixed rows, scaled; of a precomputed kernel, their numbers.
    """

    def __init__(self, name, params, scaler=None):
        self.name = name
        self.params = params
        self.scaler = scaler
        self.rows = None

    def scale(self, X):
        """Return X as the kernel takes it."""
        if self.scaler is None:
            return X
        with np.errstate(over="ignore"):
            X = self.scaler.transform(X)
        if not issparse(X):
            return np.clip(X, -LARGEST, LARGEST, out=X)
        np.clip(X.data, -LARGEST, LARGEST, out=X.data)
        return X

    def matrix(self, X):
        """Return the kernel matrix between rows and the fixed rows."""
        if self.name == "precomputed":
            check_magnitude(X, "X")
            return X[:, self.rows]
        return self.between(self.scale(X), self.rows)

    def between(self, A, B):
        """Return the kernel matrix of two sets of rows, already scaled."""
        # Training checks that the values are finite.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._between(A, B)

    def _between(self, A, B):
        if callable(self.name):
            K = self.name(A, B)
            K = np.asarray(K.toarray() if issparse(K) else K, dtype=np.float64)
            if K.shape != (A.shape[0], B.shape[0]):
                raise ValueError(
                    "kernel must return a matrix of shape "
                    f"{(A.shape[0], B.shape[0])} for these rows; got {K.shape}."
                )
            return K
        # Blocks of several threads would have other last digits.
        return pairwise_kernels(
            A, B, metric=self.name, filter_params=True, n_jobs=1, **self.params
        )


def scale_gamma(gamma, X) -> float:
    """Return gamma as a number: 'scale' and 'auto' are SVC's, 'sigest' kernlab's."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "sigest":
        return _typical_gamma(X)
    if gamma != "scale":
        return float(gamma)
    if issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = X.var()
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _typical_gamma(X) -> float:
    """Return the mean of the reciprocals of two quantiles of squared distances."""
    n = X.shape[0]
    if n > _SIGEST_ROWS:
        X = X[np.random.RandomState(0).permutation(n)[:_SIGEST_ROWS]]
    gaps = euclidean_distances(X, squared=True)
    gaps = gaps[np.triu_indices(len(gaps), 1)]
    gaps = gaps[gaps > 0.0]
    if not len(gaps):
        return 1.0
    return float(np.mean(1.0 / np.quantile(gaps, [0.1, 0.9])))


def check_kernel_matrix(K) -> None:
    """Refuse a training kernel matrix that is not symmetric positive semi-definite."""
    check_magnitude(K, "X")
    scale = max(float(np.abs(K).max()), np.finfo(np.float64).tiny)
    if np.abs(K - K.T).max() > 1e-6 * scale:
        raise ValueError("With kernel='precomputed', X must be symmetric.")
    # Rounding of the entries to single precision must not make the matrix indefinite.
    shifted = K + np.diag(np.full(len(K), 1e-6 * scale * max(1.0, np.sqrt(len(K)))))
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError(
            "With kernel='precomputed', X must be positive semi-definite; got a matrix "
            "with a negative eigenvalue."
        ) from None


def _check_finite(K):
    """Return kernel values if none is NaN or infinite: the solver assumes it."""
    # A finite sum has finite terms; an infinite one may come of large ones.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(K.sum())
    if suspicious and not np.isfinite(K).all():
        raise ValueError(
            "The kernel gives NaN or infinite values on these rows. Scale the features "
            "(standardize=True) or choose a smaller degree, coef0 or gamma."
        )
    return K


class KernelRows:
    """Rows of a kernel matrix: all of them if they fit, else the recently used ones.

    Parameters
    ----------
    kernel : Kernel
    X : {ndarray, sparse matrix} of shape (n, n_features)
        Rows, scaled; for a precomputed kernel its matrix.
    cache_size : float
        Memory for rows, in MB.
    order : ndarray of int of shape (n,) or None
        Order in which the pool has the rows of X; None: as they are.
    """

    def __init__(self, kernel, X, cache_size, order=None):
        n = X.shape[0]
        self.clock = np.zeros(1, dtype=np.int64)
        fitting = int(min(cache_size * 2**20 / (8 * n), n))
        self.complete = fitting == n
        if self.complete:
            matrix = X if kernel.name == "precomputed" else kernel.between(X, X)
            matrix = _check_finite(matrix)
            if order is not None:
                matrix = matrix[np.ix_(order, order)]
            self.pool = np.ascontiguousarray(matrix, dtype=np.float64)
            self.slot_of = np.arange(n, dtype=np.int64)
            self.diagonal = self.pool.diagonal().copy()
            self.stamp = np.zeros(n, dtype=np.int64)
            return
        self.kernel, self.X = kernel, X if order is None else X[order]
        n_slots = max(4 * _BATCH, fitting)
        self.pool = np.zeros((n_slots, n))
        self.slot_of = np.full(n, -1, dtype=np.int64)
        self.row_of = np.full(n_slots, -1)
        self.stamp = np.zeros(n_slots, dtype=np.int64)
        diagonals = [
            kernel.between(self.X[b], self.X[b]).diagonal()
            for b in row_blocks(n, _BATCH)
        ]
        self.diagonal = _check_finite(np.concatenate(diagonals))

    def load(self, row, wanted=()):
        """Bring a row into the pool, and others if they are not there yet.

        Parameters
        ----------
        row : int
            The row that must be there.
        wanted : sequence of int
            Rows that will probably be asked for next.
        """
        others = [i for i in dict.fromkeys(wanted) if self.slot_of[i] < 0 and i != row]
        rows = np.array([row, *others[: _BATCH - 1]])
        # Rows used last are stamped with the clock: a working pair stays together.
        slots = np.argpartition(self.stamp, len(rows))[: len(rows)]
        evicted = self.row_of[slots]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.pool[slots] = _check_finite(self.kernel.between(self.X[rows], self.X))
        self.row_of[slots], self.slot_of[rows] = rows, slots
        self.clock[0] += 1
        self.stamp[slots] = self.clock[0]
