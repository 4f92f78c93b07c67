"""The bolstered empirical measure: rows, weights, and a kernel around each row."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from skbounds._base import warn_user
from skbounds.bolstering._smoothed._bandwidths import (
    approximate_width,
    diagonal_widths,
    exact_width,
    widths_by_class,
)
from skbounds.bolstering._smoothed._families import (
    ColumnCoordinates,
    MomentKernel,
    SampledKernel,
    SampledKernels,
    moment_kernels,
    shape_root,
)
from skbounds.bolstering._smoothed._kernels import Kernels, triangular_roots
from skbounds.bolstering._smoothed._mpe import limit_kernels, mpe_kernels
from skbounds.bolstering._table import Coordinates, Table, principal_axes

# The kernels of Algorithm 1 take memory for n x n numbers.
LARGEST_MPE = 3000
# Spherical kernels get about as wide as the data in more dimensions than this.
_SPHERICAL_DIMENSIONS = 5


@dataclass(frozen=True)
class Measure:
    """A kernel around each row.

    Attributes
    ----------
    table : Table
    weight : ndarray of shape (n,)
        Importances of sum n.
    coordinates : Coordinates
    kernels : Kernels
        Of the coordinates, for joint kernels followed by the scaled targets.
    target_scale : ndarray of shape (m,) or None
        Of joint kernels: what one unit of the kernels' last coordinates is.
    """

    table: Table
    weight: np.ndarray
    coordinates: Coordinates
    kernels: Kernels
    target_scale: np.ndarray | None = None

    @property
    def n_dimensions(self):
        """Number of coordinates of X."""
        return self.coordinates.n_dimensions

    def moved(self, rows, moves):
        """Return rows as the estimator takes them, moved in the coordinates of X.

        Parameters
        ----------
        rows : ndarray of int of shape (n,)
        moves : ndarray of shape (n, r)
        """
        kept = self.coordinates.kept
        return self.table.moved(rows, kept, self.coordinates.displace(moves))

    def covariances(self):
        """Return the kernels' covariances in units of the columns.

        Returns
        -------
        covariances : ndarray of shape (n or 1, d, d), or (n or 1, d + m, d + m)
        """
        axes = self.coordinates.axes
        columns = self.table.movable[self.coordinates.kept]
        n_columns, m = self.table.n_columns, 0
        if self.target_scale is not None:
            m = len(self.target_scale)
            full = np.zeros((len(axes) + m, len(columns) + m))
            full[: len(axes), : len(columns)] = axes
            full[len(axes) :, len(columns) :] = np.diag(self.target_scale)
            axes = full
            columns = np.concatenate([columns, n_columns + np.arange(m)])
        roots = axes.T @ self.kernels.matrices()
        inner = roots @ roots.transpose(0, 2, 1)
        result = np.zeros((len(inner), n_columns + m, n_columns + m))
        result[:, columns[:, None], columns] = inner
        return result


def make_measure(
    table, targets, codes, weight, *, kernel, lam, standardize, random_state, joint
):
    """Choose the kernels.

    Parameters
    ----------
    table : Table
    targets : ndarray of shape (n, m) or None
        Of regression.
    codes : ndarray of int of shape (n,) or None
        Classes: kernels are chosen within them.
    weight : ndarray of shape (n,)
        Positive.
    kernel : str, float, ndarray or callable
        As in `BolsteredScorer`; not 'auto'.
    lam : float
    standardize : bool
    random_state : int
        For the draws of 'mm_exact'.
    joint : bool
        Whether kernels are on X and y together.
    """
    weight = weight * (len(weight) / weight.sum())
    if isinstance(kernel, (MomentKernel, SampledKernel)):
        if joint or table.is_sparse:
            raise ValueError(
                f"kernel={kernel!r} moves features that are dense, by method='x' or "
                "'x+posterior'; method='xy' and sparse X need one of the named kernels."
            )
        return _measure_of_family(
            kernel, table, targets, codes, weight, standardize=standardize
        )
    coordinates = Coordinates(table.values, weight, standardize=standardize)
    named = isinstance(kernel, str)
    explicit = not named and not isinstance(kernel, Real)
    by_column = explicit or (named and kernel == "mm_diag")
    if table.is_sparse and by_column:
        raise ValueError(
            "kernel='mm_diag', an array or a callable needs a dense X; got sparse X."
        )
    if by_column:
        coordinates.forget_rotation(table.values)
    points, target_scale = coordinates.points, None
    n_dimensions = coordinates.n_dimensions
    if joint:
        target_scale = np.ones(targets.shape[1])
        if standardize:
            center = np.average(targets, axis=0, weights=weight)
            spread = np.average((targets - center) ** 2, axis=0, weights=weight)
            target_scale = np.where(spread > 0.0, np.sqrt(spread), 1.0)
        elif kernel in ("mm", "mm_exact"):
            raise ValueError(
                f"method='xy' with kernel={kernel!r} needs standardize=True: the "
                "distances would mix the units of X and y."
            )
        n_dimensions += targets.shape[1]
        points = np.hstack([points, targets / target_scale])
    if n_dimensions == 0:
        warn_user(
            "No feature can be moved (all are constant or categorical): the estimate "
            "is the resubstitution error."
        )
        kernels = Kernels(np.zeros(1), 0)
    elif explicit:
        kernels = _given_kernels(kernel, table, targets, coordinates, target_scale)
    else:
        kernels = _chosen_kernels(kernel, points, codes, weight, lam, random_state)
        if codes is None and kernel in ("mm", "mm_exact"):
            _warn_of_dimensions(kernel, n_dimensions)
        if named and not kernels.roots.any():
            warn_user(
                "All rows are the same: the estimate is the resubstitution error."
            )
    return Measure(table, weight, coordinates, kernels, target_scale)


def _measure_of_family(kernel, table, targets, codes, weight, *, standardize):
    """Return the kernels of a `MomentKernel` or a `SampledKernel`."""
    if isinstance(kernel, SampledKernel):
        if not callable(kernel.move):
            raise ValueError(f"move must be callable; got {kernel.move!r}.")
        targets = codes if targets is None else targets
        coordinates = ColumnCoordinates(np.arange(len(table.movable)))
        kernels = SampledKernels(kernel.move, table.values, targets)
        return Measure(table, weight, coordinates, kernels)
    kernel._check()
    coordinates = Coordinates(table.values, weight, standardize=standardize)
    if not isinstance(kernel.shape, str):
        coordinates.forget_rotation(table.values)
    if coordinates.n_dimensions == 0:
        warn_user(
            "No feature can be moved (all are constant or categorical): the estimate "
            "is the resubstitution error."
        )
        return Measure(table, weight, coordinates, Kernels(np.zeros(1), 0))
    root = shape_root(kernel, coordinates, table, weight)
    kernels = moment_kernels(kernel, coordinates.points, root, codes, weight)
    return Measure(table, weight, coordinates, kernels)


def _warn_of_dimensions(kernel, n_dimensions):
    if n_dimensions > _SPHERICAL_DIMENSIONS:
        warn_user(
            f"kernel={kernel!r} in {n_dimensions} dimensions moves rows about as far "
            "as they are apart, and the estimate will be far too high; kernel='mpe' "
            "does not have this problem."
        )


def _chosen_kernels(kernel, points, codes, weight, lam, random_state):
    """Return kernels of a named kind, or of a given width."""
    n, q = points.shape
    groups = [np.arange(n)]
    if codes is not None:
        groups = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
    if not isinstance(kernel, str):
        return Kernels(np.array([float(kernel)]), q)
    if kernel == "mm" and codes is not None:
        return Kernels(widths_by_class(points, codes, weight)[codes], q)
    if kernel == "mm":
        return Kernels(np.array([approximate_width(points, weight)]), q)
    if kernel == "mm_exact":
        width = lambda rows: exact_width(
            points[rows], weight[rows], random_state=random_state
        )
        return Kernels(_by_group(groups, n, width), q)
    if kernel == "mm_diag":
        width = lambda rows: diagonal_widths(points[rows], weight[rows])
        return Kernels(_by_group(groups, n, width), q)
    limit = limit_kernels(points, weight)
    covariances = np.empty_like(limit)
    for rows in groups:
        if len(rows) < 3:
            covariances[rows] = limit[rows]
        elif kernel == "mpe_limit":
            covariances[rows] = limit_kernels(points[rows], weight[rows])
        else:
            covariances[rows] = _mpe_in_span(points[rows], weight[rows], lam)
    return Kernels(triangular_roots(covariances), q)


def _by_group(groups, n, width):
    """Return widths for the rows of each group, or one for all.

    A group whose rows are all the same has no width of its own: it gets that of all.
    """
    found = [np.atleast_1d(width(rows)) for rows in groups]
    if len(groups) == 1:
        return found[0] if len(found[0]) == 1 else found[0][None]
    pooled = None
    result = np.empty((n, len(found[0])))
    for rows, value in zip(groups, found, strict=True):
        if not value.any():
            pooled = width(np.arange(n)) if pooled is None else pooled
            value = pooled
        result[rows] = value
    return result[:, 0] if result.shape[1] == 1 else result


def _mpe_in_span(points, weight, lam):
    """Return Algorithm 1's kernels, within the directions in which the rows vary."""
    axes = principal_axes(points - points.mean(axis=0))
    if axes is None:
        return mpe_kernels(points, weight, lam=lam)[0]
    if not len(axes):
        return np.zeros((len(points), *[points.shape[1]] * 2))
    inner, _ = mpe_kernels(points @ axes.T, weight, lam=lam)
    return axes.T @ inner @ axes


def _given_kernels(kernel, table, targets, coordinates, target_scale):
    """Return kernels from covariances in units of the columns."""
    if callable(kernel):
        kernel = kernel(table.X, targets)
    m = 0 if target_scale is None else len(target_scale)
    size = table.n_columns + m
    try:
        given = np.asarray(kernel, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel is not an array of numbers: {error}") from None
    if given.shape not in ((size, size), (table.n_rows, size, size)):
        raise ValueError(
            f"kernel as an array must be of shape ({size}, {size}) or "
            f"({table.n_rows}, {size}, {size}); got {given.shape}."
        )
    given = given.reshape(-1, size, size)
    if not np.isfinite(given).all() or not np.allclose(
        given, given.transpose(0, 2, 1), rtol=1e-8, atol=1e-12 * np.abs(given).max()
    ):
        raise ValueError("kernel as an array must be finite and symmetric.")
    fixed = np.setdiff1d(np.arange(table.n_columns), table.movable)
    if given[:, fixed].any():
        raise ValueError(
            "kernel as an array must be 0 in the rows and columns of categorical "
            "features."
        )
    columns = table.movable[coordinates.kept]
    scale = coordinates.scale
    if m:
        columns = np.concatenate([columns, table.n_columns + np.arange(m)])
        scale = np.concatenate([scale, target_scale])
    inner = given[:, columns[:, None], columns] / (scale[:, None] * scale)
    squares = np.diagonal(inner, axis1=1, axis2=2)
    if np.count_nonzero(inner) == np.count_nonzero(squares) and (squares >= 0.0).all():
        return Kernels(np.sqrt(squares), len(columns))
    return Kernels(triangular_roots(inner), len(columns))
