"""Kernels of other shapes and families than spherical normal ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtr

from skbounds.bolstering._smoothed._bandwidths import (
    chi_mean,
    chi_median,
    mean_nearest_distance,
    widths_by_class,
)
from skbounds.bolstering._smoothed._kernels import Kernels, triangular_roots
from skbounds.bolstering._smoothed._nodes import normal_points, sobol

# Draws from which the radius and covariance of a family of the user's are taken.
_DRAWS = 2**15


def ball_draws(nodes):
    """Return points uniform on the unit ball, from standard normal ones (..., q).

    The direction stays; the radius becomes that with the same probability.
    """
    q = nodes.shape[-1]
    length = np.sqrt((nodes**2).sum(axis=-1, keepdims=True))
    radius = chdtr(q, length**2) ** (1.0 / q)
    return nodes * np.where(length > 0.0, radius / np.where(length > 0, length, 1.0), 0)


@dataclass(frozen=True, eq=False)
class MomentKernel:
    """Kernels of one family, as wide as the method of moments makes them.

    The standard member of the family, an arbitrary law around 0, is stretched by a
    width and shaped by a matrix. The width makes the mean distance of a draw from its
    centre equal to the mean distance of a row to its nearest row, both in the metric of
    the shape (Mahalanobis distances).

    To be given as `kernel` to `BolsteredScorer` with one of the methods "x" and
    "x+posterior".

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    family : {"normal", "ball"} or callable, default="normal"
        "ball" is uniform on a ball. A callable gets standard normal draws of shape
        (n, d) and returns draws of the standard member, of the same shape.
    shape : {"identity", "covariance"} or array-like of shape (d, d), \
            default="identity"
        The shape of the kernels: multiples of the identity (in units of the features'
        deviations if the scorer standardises), of the rows' covariance, or of a given
        positive definite matrix in units of the columns.
    center : {"mean", "median"}, default="mean"
        What of the distance of a draw from its centre is matched; the median is the
        choice of the classification literature.
    pooled : bool, default=False
        Whether all classes share one width.

    See Also
    --------
    BolsteredScorer : Takes it as `kernel`.
    SampledKernel : Moves rows by a function of the user's.

    Notes
    -----
    Means over kernels that are not normal have no closed form: they are integrated
    numerically.

    References
    ----------
    .. [1] D. Marcondes and U. Braga-Neto, "Generalized resubstitution for regression
       error estimation", section 5.1, Remarks 16 to 18.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skbounds.bolstering import BolsteredScorer, MomentKernel
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X[::3], y[::3])
    >>> kernel = MomentKernel("ball", shape="covariance")
    >>> score = BolsteredScorer(method="x", kernel=kernel)(model, X[::3], y[::3])
    >>> bool(-0.2 < score < 0.0)
    True
    """

    family: Literal["normal", "ball"] | Callable[[np.ndarray], np.ndarray] = "normal"
    shape: Literal["identity", "covariance"] | ArrayLike = field(
        default="identity", kw_only=True
    )
    center: Literal["mean", "median"] = field(default="mean", kw_only=True)
    pooled: bool = field(default=False, kw_only=True)

    def _check(self):
        if self.family not in ("normal", "ball") and not callable(self.family):
            raise ValueError(
                f"family must be 'normal', 'ball' or a callable; got {self.family!r}."
            )
        if isinstance(self.shape, str) and self.shape not in ("identity", "covariance"):
            raise ValueError(
                "shape must be 'identity', 'covariance' or a matrix; got "
                f"{self.shape!r}."
            )
        if self.center not in ("mean", "median"):
            raise ValueError(f"center must be 'mean' or 'median'; got {self.center!r}.")

    def _draws_of(self):
        """Return the function from normal draws to draws of the family, or None."""
        if self.family == "normal":
            return None
        return ball_draws if self.family == "ball" else _Checked(self.family)

    def _radius(self, q):
        """Return mean or median distance of the standard member's draws from 0."""
        if self.family == "normal":
            return chi_mean(q) if self.center == "mean" else chi_median(q)
        if self.family == "ball":
            return q / (q + 1.0) if self.center == "mean" else 0.5 ** (1.0 / q)
        lengths = np.sqrt((_draw(self._draws_of(), q) ** 2).sum(axis=1))
        radius = {"mean": np.mean, "median": np.median}[self.center](lengths)
        if not radius > 0.0:
            raise ValueError("family as a callable must not return 0 for all draws.")
        return float(radius)


@dataclass(frozen=True)
class _Checked:
    """A family of the user's, whose draws are checked."""

    function: object

    def __call__(self, nodes):
        flat = nodes.reshape(-1, nodes.shape[-1])
        draws = np.asarray(self.function(flat), dtype=np.float64)
        if draws.shape != flat.shape or not np.isfinite(draws).all():
            raise ValueError(
                f"family as a callable must return finite draws of shape {flat.shape} "
                f"for such normal draws; got shape {draws.shape}."
            )
        return draws.reshape(nodes.shape)


def _draw(draws_of, q):
    return draws_of(normal_points(sobol(q, 0), _DRAWS))


def moment_kernels(kernel, points, shape_root, codes, weight):
    """Return the kernels that a `MomentKernel` means.

    Parameters
    ----------
    kernel : MomentKernel
    points : ndarray of shape (n, q)
        Coordinates of the rows.
    shape_root : ndarray of shape (q, q) or None
        Lower triangular root of the shape in these coordinates; None: the identity.
    codes : ndarray of int of shape (n,) or None
        Classes.
    weight : ndarray of shape (n,)
    """
    q = points.shape[1]
    metric = points
    if shape_root is not None:
        metric = np.linalg.solve(shape_root, points.T).T
    if codes is None or kernel.pooled:
        distances = np.array([mean_nearest_distance(metric, weight)])
    else:
        distances = widths_by_class(metric, codes, weight, center="mean")[codes]
        distances = distances * chi_mean(q)
    widths = distances / kernel._radius(q)
    draws_of = kernel._draws_of()
    if shape_root is None:
        return Kernels(widths, q, draws_of)
    return Kernels(widths[:, None, None] * shape_root, q, draws_of)


def shape_root(kernel, coordinates, table, weight):
    """Return the root of the shape in the coordinates; None for the identity."""
    shape, q = kernel.shape, coordinates.n_dimensions
    if isinstance(shape, str):
        if shape == "identity":
            return None
        share = weight / weight.sum()
        centred = coordinates.points - share @ coordinates.points
        matrix = centred.T @ (share[:, None] * centred)
        # Relative to each column: the units play no part.
        matrix.flat[:: q + 1] *= 1.0 + 1e-10
        return np.linalg.cholesky(matrix)
    d = table.n_columns
    given = np.asarray(shape, dtype=np.float64)
    if given.shape != (d, d) or not np.isfinite(given).all():
        raise ValueError(
            f"shape must be a finite matrix of shape ({d}, {d}); got {given.shape}."
        )
    columns = table.movable[coordinates.kept]
    scale = coordinates.scale
    inner = given[np.ix_(columns, columns)] / (scale[:, None] * scale)
    if not np.allclose(inner, inner.T, rtol=1e-8):
        raise ValueError("shape as a matrix must be symmetric.")
    root = triangular_roots(inner[None])[0]
    if not (np.diagonal(root) ** 2 > 1e-14 * np.diagonal(inner)).all():
        raise ValueError("shape as a matrix must be positive definite.")
    return root


@dataclass(frozen=True, eq=False)
class SampledKernel:
    """Moves rows by a function of the user's: any smoothing there is (Definition 1).

    To be given as `kernel` to `BolsteredScorer` with one of the methods "x" and
    "x+posterior".

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    move : callable
        ``move(rows, targets, nodes)`` gets the columns that are numbers, shape (n, d),
        the targets of these rows, and independent standard normal draws of shape (n, m,
        d), and returns m moved versions of each row, of shape (n, m, d). It must depend
        on nothing else, so that estimates can be repeated.

    See Also
    --------
    MomentKernel : Families with one width.

    Examples
    --------
    Counts that stay counts:

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skbounds.bolstering import BolsteredScorer, SampledKernel
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.poisson(5.0 + 5.0 * y[:, None], size=(40, 2))
    >>> kernel = SampledKernel(
    ...     lambda rows, y, nodes: np.maximum(np.rint(rows[:, None] + 1.5 * nodes), 0)
    ... )
    >>> model = GaussianNB().fit(X, y)
    >>> scorer = BolsteredScorer(method="x", kernel=kernel, categorical_features=[])
    >>> bool(0.0 < -scorer(model, X, y) < 0.5)
    True
    """

    move: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SampledKernels:
    """Moves of rows by a function, in place of `Kernels`.

    Attributes
    ----------
    function : callable
    values : ndarray of shape (n, d)
    targets : ndarray of shape (n,) or (n, m)
    """

    function: object
    values: np.ndarray
    targets: np.ndarray

    is_diagonal = False
    is_normal = False

    @property
    def n_dimensions(self):
        return self.values.shape[1]

    def part(self, rows):
        """Return the kernels of some rows."""
        return SampledKernels(self.function, self.values[rows], self.targets[rows])

    def move(self, nodes):
        """Return moves for nodes of shape (n, ..., d)."""
        n, d = self.values.shape
        flat = nodes.reshape(n, -1, d)
        moved = np.asarray(
            self.function(self.values, self.targets, flat), dtype=np.float64
        )
        if moved.shape != flat.shape or not np.isfinite(moved).all():
            raise ValueError(
                "the function of a SampledKernel must return finite rows of shape "
                f"{flat.shape}; got shape {moved.shape}."
            )
        return (moved - self.values[:, None]).reshape(nodes.shape)


@dataclass(frozen=True)
class ColumnCoordinates:
    """The columns that are numbers themselves, in place of `Coordinates`."""

    kept: np.ndarray

    rotation = None

    @property
    def n_dimensions(self):
        return len(self.kept)

    def displace(self, moves):
        """Return moves of the columns."""
        return moves
