"""From feature rows to the coordinates in which the linear models are solved.

Three things happen here, once for all SMP estimators: centring (unpenalised
intercept), the intercept column, and for more features than rows an exact reduction to
the row space of the training data. A row ``x`` outside that space keeps the *length* of
what sticks out as one more coordinate, on which the training rows are zero and the
penalty acts as on any other: by rotational symmetry of the ridge penalty nothing else
about the outside part can matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from skbounds._base import warn_user
from skbounds._blocks import memory_limit

# Relative size below which a pivot of the sparse Gram matrix, or a squared distance
# from the training rows' span, is taken for zero: the balance between dropping a
# direction of the data and dividing by rounding noise.
_PIVOT_TOL = 1e-12


@dataclass
class Design:
    """Map from features to model coordinates; all fields are plain arrays.

    Attributes
    ----------
    n_features : int
        Number of features of a row.
    center : ndarray of shape (n_features,) or None
        Subtracted from each row.
    basis : ndarray of shape (n_features, n_reduced) or None
        Orthonormal basis of (a superset of) the training rows' span.
    sparse_rows, sparse_mix : sparse array of shape (n_pivots, n_features) and \
ndarray of shape (n_pivots, n_pivots), or None
        The same basis as ``sparse_rows.T @ sparse_mix``, never formed.
    intercept : float
        Value of the last, constant column; 0.0 where there is none.
    intercept_penalized : bool
        Whether the ridge penalty includes that column.
    scale : float
        What features are divided by before everything else.
    """

    n_features: int
    center: np.ndarray | None = None
    basis: np.ndarray | None = None
    sparse_rows: sparse.csr_array | None = None
    sparse_mix: np.ndarray | None = None
    intercept: float = 0.0
    intercept_penalized: bool = False
    scale: float = 1.0

    @property
    def is_reduced(self) -> bool:
        return self.basis is not None or self.sparse_rows is not None

    @property
    def n_coordinates(self) -> int:
        if self.basis is not None:
            n_linear = self.basis.shape[1] + 1
        elif self.sparse_mix is not None:
            n_linear = self.sparse_mix.shape[1] + 1
        else:
            n_linear = self.n_features
        return n_linear + (self.intercept != 0.0)

    def penalized(self) -> np.ndarray:
        """Return 1.0 for each coordinate under the ridge penalty, else 0.0."""
        mask = np.ones(self.n_coordinates)
        if self.intercept and not self.intercept_penalized:
            mask[-1] = 0.0
        return mask

    def transform(self, X):
        """Return the coordinates of rows, sparse only if X is and is not reduced."""
        if self.scale != 1.0:
            X = X / self.scale
        if sparse.issparse(X) and (self.center is not None or self.basis is not None):
            X = X.toarray()
        if self.center is not None:
            X = X - self.center
        if self.basis is not None:
            inside = X @ self.basis
            outside = X - inside @ self.basis.T
            columns = [inside, np.sqrt(row_norms(outside, squared=True))[:, None]]
        elif self.sparse_rows is not None:
            inside = safe_sparse_dot(X, self.sparse_rows.T, dense_output=True)
            inside = inside @ self.sparse_mix
            length = row_norms(X, squared=True)
            outside = length - row_norms(inside, squared=True)
            # A difference of this size is rounding: a row inside the span must not
            # get a coordinate outside it.
            outside[outside <= _PIVOT_TOL * length] = 0.0
            columns = [inside, np.sqrt(outside)[:, None]]
        else:
            columns = [X]
        if self.intercept:
            columns.append(np.full((X.shape[0], 1), self.intercept))
        if len(columns) == 1:
            return X
        if sparse.issparse(columns[0]):
            columns[1:] = [sparse.csr_array(column) for column in columns[1:]]
            return sparse.csr_array(sparse.hstack(columns, format="csr"))
        return np.hstack(columns)

    def to_features(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts for rows ``theta`` of coordinates.

        Only meaningful for fits to the training data, whose outside coordinate is 0.
        """
        linear = theta[:, :-1] if self.intercept else theta
        if self.basis is not None:
            coef = linear[:, :-1] @ self.basis.T
        elif self.sparse_rows is not None:
            coef = (self.sparse_rows.T @ (self.sparse_mix @ linear[:, :-1].T)).T
        else:
            coef = linear.copy()
        if self.intercept:
            intercept = theta[:, -1] * self.intercept
        else:
            intercept = np.zeros(theta.shape[0])
        if self.center is not None:
            intercept = intercept - coef @ self.center
        return coef / self.scale, intercept


def make_design(
    X,
    weight: np.ndarray,
    *,
    fit_intercept: bool,
    penalize_intercept: bool = False,
    intercept_scaling: float = 1.0,
) -> Design:
    """Choose the coordinates for training rows ``X`` with positive weights.

    With an unpenalised intercept the fit does not depend on where the origin of the
    features lies, so dense rows are centred, which keeps large offsets from eating up
    the precision. Sparse rows are left as they are, unless there are more features than
    rows: those are reduced densely where ``working_memory`` holds them, otherwise
    through their Gram matrix, which wants columns of comparable scale.
    """
    n_samples, n_features = X.shape
    design = Design(n_features)
    if fit_intercept:
        design.intercept_penalized = penalize_intercept
        design.intercept = float(intercept_scaling) if penalize_intercept else 1.0
    if sparse.issparse(X) and n_features > n_samples:
        # The basis has the size of the dense rows anyway: as long as that fits, dense
        # rows are also the exact way, whatever the scales and offsets of the columns.
        if n_samples * n_features <= memory_limit():
            X = X.toarray()
    if sparse.issparse(X):
        if n_features > n_samples:
            gram = (X @ X.T).toarray()
            factor, pivots, rank, _ = linalg.lapack.dpstrf(
                gram,
                tol=_PIVOT_TOL * max(gram.diagonal().max(), np.finfo(float).tiny),
                lower=1,
            )
            rank = max(rank if gram.diagonal().max() > 0 else 1, 1)
            lower = np.tril(factor[:rank, :rank])
            if gram.diagonal().max() == 0:
                lower[:] = 1.0
            design.sparse_rows = sparse.csr_array(X[pivots[:rank] - 1])
            design.sparse_mix = linalg.solve_triangular(
                lower, np.eye(rank), lower=True
            ).T
        elif fit_intercept and not penalize_intercept:
            _warn_offsets(X, weight)
        return design
    if fit_intercept and not penalize_intercept:
        design.center = np.average(X, axis=0, weights=weight)
        X = X - design.center
    if n_features > n_samples:
        design.basis = linalg.qr(X.T, mode="economic", check_finite=False)[0]
    return design


def _warn_offsets(X, weight):
    """Warn of sparse columns whose mean dwarfs their spread: they are not centred."""
    total = weight.sum()
    mean = X.T @ weight / total
    square = X.multiply(X).T @ weight / total
    variance = square - mean**2
    # Constant columns, whose variance is rounding, do no harm.
    if np.any((variance < 1e-8 * mean**2) & (variance > 1e-13 * mean**2)):
        warn_user(
            "Some column of the sparse X has a mean of more than 1e4 times its "
            "standard deviation. Sparse rows are not centred, which costs precision: "
            "centre the column, or pass a dense X."
        )
