"""Rows whose numeric features can be moved, and the coordinates they are moved in."""

from __future__ import annotations

from functools import cached_property
from numbers import Real

import numpy as np
from scipy.sparse import diags, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from skbounds._base import warn_user
from skbounds._copies import copy_ids, count_values
from skbounds._frames import (
    column,
    column_names,
    is_frame,
    is_number,
    is_table,
    with_columns,
)
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import num_samples, safe_indexing
from skbounds._validation import check_array

# Values a numeric feature needs to look continuous.
_FEW_VALUES = 10
_GLANCE = 50
# Share of a column's variance beyond which a row is all there is to it.
_DOMINANT = 0.99
# A direction this much shorter than the longest (squared) is rounding.
_RANK_TOLERANCE = 1e-12


class Table:
    """The rows given by the user, and which of their columns are numbers to be moved.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
    categorical_features : array-like or None
        Mask, column numbers or names of columns that stay as they are.
    moved : bool
        Whether rows are to be moved, for which numbers must be there and should look
        like numbers. Otherwise X may be anything that rows can be taken of.

    Attributes
    ----------
    X : ndarray, dataframe, sparse matrix or list
    movable : ndarray of int of shape (n_movable,)
        Columns that are numbers.
    values : ndarray of shape (n_samples, n_movable), or sparse matrix
    is_numeric : bool
        Whether all of X can be computed with.
    """

    def __init__(self, X, categorical_features, *, moved=True):
        self.is_frame = is_frame(X)
        self.is_sparse = issparse(X)
        if categorical_features is None and is_plain(X, 2):
            self.X = X
            self.n_rows, self.n_columns = X.shape
            self.is_numeric = True
            self.movable = np.arange(self.n_columns)
            if moved:
                # A copy: the user's array may change while this is kept.
                check_magnitude(X, "X")
                self.values = X.copy()
                self._warn_of_few_values()
            return
        if not (self.is_frame or self.is_sparse or moved or is_table(X)):
            # Texts, images: nothing is known of them but their number.
            self.X, self.n_rows, self.n_columns = X, num_samples(X), 0
            self.is_numeric, self.movable = False, np.arange(0)
            return
        if not self.is_frame:
            X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
        self.X = X
        self.n_rows, self.n_columns = X.shape
        fixed = self._mask(categorical_features)
        if self.is_frame:
            texts = [not _holds_numbers(column(X, k)) for k in range(self.n_columns)]
            fixed |= np.array(texts, dtype=bool)
        elif X.dtype.kind in "OUS":
            texts = [any(isinstance(v, (str, bytes)) for v in column) for column in X.T]
            if any(texts):
                fixed |= texts
            else:
                self.X = check_array(X, dtype=np.float64, ensure_all_finite=False)
        if self.is_frame:
            self.is_numeric = not any(texts)
        else:
            self.is_numeric = self.X.dtype.kind in "biuf"
        self.movable = np.flatnonzero(~fixed)
        if not moved:
            return
        if not self.is_sparse:
            self._check_missing(self._numbers())
        self.values = self._numbers(ensure_all_finite=True)
        check_magnitude(self.values, "X")
        if categorical_features is None and not self.is_sparse:
            self._warn_of_few_values()

    @cached_property
    def values(self):
        """The columns that are numbers, where no row is moved: maybe with NaN."""
        return self._numbers(ensure_all_finite=False)

    def _numbers(self, **checks):
        """Return the columns that are numbers, as doubles if they are checked."""
        if self.is_sparse:
            part = self.X[:, self.movable]
            return check_array(part, accept_sparse="csr", dtype=np.float64, **checks)
        if not len(self.movable):
            return np.empty((self.n_rows, 0))
        if self.is_frame:
            columns = [np.asarray(column(self.X, k)) for k in self.movable]
            part = np.column_stack(columns)
        else:
            part = self.X[:, self.movable]
        if not checks:
            return part
        return check_array(part, dtype=np.float64, input_name="X", **checks)

    def points(self, weight, *, standardize):
        """Return coordinates in which close rows are alike, without a look at y.

        Parameters
        ----------
        weight : ndarray of shape (n,)
        standardize : bool

        Returns
        -------
        points : ndarray of shape (n, r)
            Standardised columns that vary; what is missing is at the column's mean.
        """
        values = self.values
        if self.is_sparse:
            return Coordinates(values, weight, standardize=standardize).points
        known = np.isfinite(values)
        check_magnitude(values[known], "X")
        if not known.all():
            total = (weight[:, None] * known).sum(axis=0)
            sums = weight @ np.where(known, values, 0.0)
            center = sums / np.where(total > 0.0, total, 1.0)
            values = np.where(known, values, center)
        share = weight / weight.sum()
        centred = values - share @ values
        deviation = np.sqrt(share @ centred**2)
        kept = deviation > 1e-13 * np.abs(values).max(axis=0, initial=0.0)
        centred = centred[:, kept]
        return centred / deviation[kept] if standardize else centred

    def dominated_columns(self):
        """Return names of columns whose variance is nearly all one row's."""
        if self.is_sparse or not len(self.movable):
            return []
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = self.values - np.nanmedian(self.values, axis=0)
            gaps /= np.maximum(np.nanmax(np.abs(gaps), axis=0), np.finfo(float).tiny)
            total = np.nansum(gaps**2, axis=0)
        # The largest has square 1. A few rows with another value than all do not count.
        dominated = (total < 1.0 / _DOMINANT) & ((gaps != 0.0).sum(axis=0) > 3)
        return self._names(self.movable[dominated])

    def share_of_copies(self, targets):
        """Return the share of rows that repeat another, target included.

        0 where no column looks continuous: few values repeat by chance.
        """
        if not len(self.movable) or len(self.movable) < self.n_columns:
            return 0.0
        ids = copy_ids(self.values, targets)
        return 0.0 if ids is None else 1.0 - len(np.unique(ids)) / self.n_rows

    def _names(self, numbers):
        if self.is_frame:
            names = column_names(self.X)
            return [names[k] for k in numbers]
        return np.asarray(numbers).tolist()

    def _check_missing(self, part):
        missing = np.array([any(v != v for v in column) for column in part.T])
        if missing.any():
            names = self._names(self.movable[missing])
            raise ValueError(
                f"Input X contains NaN in the columns {names}: missing values cannot "
                "be moved, also where a pipeline imputes them. "
                "Name these columns in categorical_features, and they stay as they are."
            )

    def _mask(self, chosen):
        mask = np.zeros(self.n_columns, dtype=bool)
        if chosen is None:
            return mask
        chosen = np.asarray(chosen)
        if chosen.ndim != 1:
            raise ValueError(
                f"categorical_features must be 1-dimensional; got {chosen.tolist()!r}."
            )
        if chosen.dtype == bool:
            if chosen.shape != mask.shape:
                raise ValueError(
                    "categorical_features as a mask must have one entry for each of "
                    f"the {self.n_columns} features; got shape {chosen.shape}."
                )
            return chosen.copy()
        if chosen.size and chosen.dtype.kind not in "iu":
            if not self.is_frame:
                raise ValueError(
                    "categorical_features has names, but X has no column names; got "
                    f"{list(chosen)!r}."
                )
            names = column_names(self.X)
            unknown = [name for name in chosen if name not in names]
            if unknown:
                raise ValueError(
                    f"categorical_features names columns that X does not have: "
                    f"{unknown!r}."
                )
            chosen = np.array([names.index(name) for name in chosen], dtype=int)
        if (
            chosen.size
            and not ((chosen >= -self.n_columns) & (chosen < self.n_columns)).all()
        ):
            raise ValueError(
                f"categorical_features must be in [0, {self.n_columns}); got "
                f"{chosen.tolist()!r}."
            )
        mask[chosen.astype(int)] = True
        return mask

    def _warn_of_few_values(self):
        if self.n_rows <= 2 * _FEW_VALUES:
            return
        # Most columns show more values in a few rows.
        n_values = count_values(self.values[:_GLANCE])
        unclear = np.flatnonzero(n_values <= _FEW_VALUES)
        if not len(unclear):
            return
        n_values = count_values(self.values[:, unclear])
        few = self.movable[unclear[(n_values > 1) & (n_values <= _FEW_VALUES)]]
        if len(few):
            warn_user(
                f"The columns {self._names(few)} have at most {_FEW_VALUES} distinct "
                "values; moving categories or flags a little means nothing. Name such "
                "columns in categorical_features; categorical_features=[] says that "
                "there are none."
            )

    def take(self, rows):
        """Return some rows, as they were given."""
        if isinstance(self.X, np.ndarray):
            return self.X[rows]
        return safe_indexing(self.X, rows)

    def moved(self, rows, columns, shifts):
        """Return rows with shifts added to some of their columns.

        Parameters
        ----------
        rows : ndarray of int of shape (n,)
            May repeat.
        columns : ndarray of int of shape (k,)
            Positions among the movable columns.
        shifts : ndarray of shape (n, k)
        """
        values = self.values[rows][:, columns] + shifts
        numbers = self.movable[columns]
        if not self.is_frame:
            if self.X.dtype.kind == "O":
                result = self.X[rows].copy()
            else:
                result = self.X[rows].astype(np.float64)
            result[:, numbers] = values
            return result
        return with_columns(safe_indexing(self.X, rows), numbers, values)


def is_plain(array, n_dimensions):
    """Tell whether this is a float64 array that scikit-learn would take as it is.

    Its own checks take as long as a small fit.
    """
    return (
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.ndim == n_dimensions
        and array.size > 0
        and bool(np.isfinite(array).all())
    )


class Coordinates:
    """Standardised coordinates that span the rows, and nothing else.

    Columns that do not vary are left out, as a predictor was never tried anywhere else;
    so are directions in which the rows do not vary.

    Parameters
    ----------
    values : {ndarray, sparse matrix} of shape (n, k)
    weight : ndarray of shape (n,)
    standardize : bool

    Attributes
    ----------
    kept : ndarray of int of shape (p,)
        Columns that vary.
    scale : ndarray of shape (p,)
    rotation : ndarray of shape (r, p) or None
        Principal axes of the scaled columns, if they span less than p dimensions.
    points : ndarray of shape (n, r)
    """

    def __init__(self, values, weight, *, standardize):
        is_sparse = issparse(values)
        if is_sparse and values.shape[1] < values.shape[0]:
            # The coordinates are as large, and dense.
            values, is_sparse = values.toarray(), False
        if is_sparse:
            self.center, variance = mean_variance_axis(values, axis=0, weights=weight)
            largest = np.abs(values).max(axis=0).toarray().ravel()
        else:
            self.center = np.average(values, axis=0, weights=weight)
            variance = np.average((values - self.center) ** 2, axis=0, weights=weight)
            largest = np.abs(values).max(axis=0, initial=0.0)
        deviation = np.sqrt(variance)
        self.kept = np.flatnonzero(deviation > 1e-13 * largest)
        self.scale = deviation[self.kept] if standardize else np.ones(len(self.kept))
        self.center = self.center[self.kept]
        self.rotation = self._whiten = None
        if is_sparse:
            self._use_products(values[:, self.kept])
            return
        self.points = (values[:, self.kept] - self.center) / self.scale
        axes = principal_axes(self.points)
        if axes is not None:
            self.rotation = axes
            self.points = self.points @ axes.T

    def _use_products(self, values):
        """Find coordinates of sparse rows, fewer than columns, without their axes."""
        scaled = values @ diags(1.0 / self.scale)
        center = self.center / self.scale
        products = (scaled @ scaled.T).toarray()
        shift = scaled @ center
        products += center @ center - shift[:, None] - shift
        sizes, vectors = np.linalg.eigh(products)
        tolerance = max(scaled.shape) * _RANK_TOLERANCE * sizes[-1]
        sizes, vectors = sizes[sizes > tolerance], vectors[:, sizes > tolerance]
        self.points = vectors * np.sqrt(sizes)
        self._whiten = (vectors / np.sqrt(sizes), scaled, center)

    @property
    def n_dimensions(self):
        return self.points.shape[1]

    def forget_rotation(self, values):
        """Use the scaled columns themselves."""
        if self.rotation is not None:
            self.rotation = None
            self.points = (values[:, self.kept] - self.center) / self.scale

    def displace(self, moves):
        """Return what moves in these coordinates are in the kept columns."""
        if self.rotation is not None:
            moves = moves @ self.rotation
        return moves * self.scale

    def slopes(self, coef):
        """Return slopes along the coordinates, from slopes along the kept columns."""
        slopes = coef * self.scale
        if self._whiten is not None:
            # Through the rows: the axes themselves would be a large dense matrix.
            vectors, scaled, center = self._whiten
            return ((scaled @ slopes.T).T - (slopes @ center)[..., None]) @ vectors
        return slopes if self.rotation is None else slopes @ self.rotation.T

    @property
    def axes(self):
        """What one step along each coordinate does to the kept columns: (r, p)."""
        return self.displace(np.eye(self.n_dimensions))


def _holds_numbers(values):
    """Tell whether a dataframe's column holds numbers, of its type or one by one."""
    if getattr(getattr(values, "dtype", None), "kind", "") != "O":
        return is_number(values)
    return all(
        isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in values
    )


def principal_axes(points):
    """Return the principal axes along which centred rows vary, one per line.

    None if they vary in all directions.
    """
    n, p = points.shape
    lengths = np.sqrt((points**2).sum(axis=0))
    if p == 0 or not lengths.any():
        return np.empty((0, p))
    # Whether columns depend on each other is not a matter of their units.
    scaled = points / np.where(lengths > 1e-13 * lengths.max(), lengths, np.inf)
    if p < n:
        spectrum = np.linalg.eigvalsh(scaled.T @ scaled)
    else:
        spectrum = np.linalg.eigvalsh(scaled @ scaled.T)
    rank = int((spectrum > max(n, p) * _RANK_TOLERANCE * spectrum[-1]).sum())
    if rank == p:
        return None
    return np.linalg.svd(points, full_matrices=False)[2][:rank]
