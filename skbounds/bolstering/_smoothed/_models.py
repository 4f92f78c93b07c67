"""What a fitted estimator computes, where that is simple enough for exact integrals.

Estimators are recognised by their attributes, also behind steps that map the features
affinely, and then compared with their own predictions, at the rows and at moved rows:
what does not agree is not recognised.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectorMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Product,
    Sum,
    WhiteKernel,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR, NuSVR
from sklearn.tree import BaseDecisionTree

from skbounds._frames import to_array
from skbounds.bolstering._estimators import final_step

_AFFINE = (StandardScaler, MaxAbsScaler, RobustScaler, PCA, SelectorMixin)
# Agreement with the estimator's own predictions, relative to their size.
_AGREEMENT = 1e-7


@dataclass(frozen=True)
class Affine:
    """The map x -> x M' + o from columns of X to what the model sees.

    Attributes
    ----------
    matrix : ndarray of shape (k, d)
    offset : ndarray of shape (k,)
    """

    matrix: np.ndarray
    offset: np.ndarray

    def __call__(self, X):
        return X @ self.matrix.T + self.offset


@dataclass(frozen=True)
class Linear:
    """x -> coef x + intercept, one line of coef per output (or decision).

    Attributes
    ----------
    coef : ndarray of shape (m, d)
    intercept : ndarray of shape (m,)
    """

    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, X):
        return X @ self.coef.T + self.intercept


@dataclass(frozen=True)
class Polynomial:
    """A polynomial of an affine map of x.

    Attributes
    ----------
    affine : Affine
    powers : ndarray of int of shape (n_terms, k)
    coef : ndarray of shape (m, n_terms)
    intercept : ndarray of shape (m,)
    """

    affine: Affine
    powers: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    @property
    def degree(self):
        return int(self.powers.sum(axis=1).max(initial=0))

    def __call__(self, X):
        inner = self.affine(X)
        terms = [np.prod(inner**power, axis=1) for power in self.powers]
        return np.column_stack(terms) @ self.coef.T + self.intercept

    def quadratic(self):
        """Return gradients at 0, shape (m, k), and matrices, shape (m, k, k)."""
        m, k = len(self.coef), self.powers.shape[1]
        slopes, matrices = np.zeros((m, k)), np.zeros((m, k, k))
        for power, coef in zip(self.powers, self.coef.T, strict=True):
            factors = np.repeat(np.arange(k), power)
            if len(factors) == 1:
                slopes[:, factors[0]] += coef
            elif len(factors) == 2:
                a, b = factors
                matrices[:, a, b] += 0.5 * coef
                matrices[:, b, a] += 0.5 * coef
        return slopes, matrices


@dataclass(frozen=True)
class Radial:
    """b + sum_k a_k exp(-gamma |x' - c_k|^2) of an affine map x' of x.

    Attributes
    ----------
    affine : Affine
    centers : ndarray of shape (K, k)
    weights : ndarray of shape (K, m)
    intercept : ndarray of shape (m,)
    gamma : float
    """

    affine: Affine
    centers: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    gamma: float

    def __call__(self, X):
        inner = self.affine(X)
        gaps = euclidean_distances(inner, self.centers, squared=True)
        return np.exp(-self.gamma * gaps) @ self.weights + self.intercept


@dataclass(frozen=True)
class Tree:
    """A constant in each of some boxes of an affine map of x, axis by axis.

    Attributes
    ----------
    affine : Affine
        With a diagonal matrix, up to selection of columns.
    columns : ndarray of int of shape (k,)
        The column of X that each coordinate comes from.
    lows, highs : ndarray of shape (n_leaves, k)
        A leaf holds what is above low and at most high.
    leaves : ndarray of int of shape (n_leaves,)
        Node numbers.
    """

    affine: Affine
    columns: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    leaves: np.ndarray


def recognise(estimator, table):
    """Return the model of a fitted estimator, or None.

    Parameters
    ----------
    estimator : estimator
    table : Table
        The rows it was fitted on.

    Returns
    -------
    model : Linear, Polynomial, Radial, Tree or None
    """
    steps, last = final_step(estimator)
    if not table.is_numeric:
        return None
    if table.is_sparse:
        if steps or not _is_linear(last):
            return None
        return _linear(last, None)
    affine, powers, after = _walk(steps, table)
    if affine is None:
        return None
    if powers is not None:
        if not _is_linear(last) or is_classifier(last):
            return None
        linear = _linear(last, after)
        return Polynomial(affine, powers, linear.coef, linear.intercept)
    if isinstance(last, BaseDecisionTree):
        return _tree(last, affine)
    if _is_linear(last):
        return _linear(last, affine)
    return _radial(last, affine)


def agrees(model, question, moved):
    """Tell whether a model gives what the estimator predicts, here and nearby.

    Parameters
    ----------
    model : Linear, Polynomial or Radial
    question : Question
    moved : array-like
        Moved rows, as the estimator takes them.
    """
    at_rows = question.at_rows["predict"]
    at_moved = question.ask(moved, moved=True)
    for rows, theirs in ((question.table.X, at_rows), (moved, at_moved)):
        X = to_array(rows)
        ours = model(X if issparse(X) else np.asarray(X, dtype=np.float64))
        size = np.abs(ours).max()
        if question.classes is not None:
            clear = np.abs(ours[:, 0]) > _AGREEMENT * size
            different = (ours[:, 0] > 0.0) != (theirs == question.classes[1])
            if different[clear].any():
                return False
        else:
            given = np.asarray(theirs, dtype=np.float64).reshape(len(theirs), -1)
            if ours.shape != given.shape:
                return False
            if np.abs(ours - given).max() > _AGREEMENT * size:
                return False
    return True


def _walk(steps, table):
    """Compose the steps: an affine map, powers of it, and an affine map of those."""
    n_columns = table.n_columns
    affine = Affine(np.eye(n_columns), np.zeros(n_columns))
    powers, after = None, None
    X = to_array(table.X)
    rows = np.asarray(X, dtype=np.float64)
    if not np.isfinite(rows).all():
        return None, None, None
    center = rows.mean(axis=0)
    spread = rows.std(axis=0)
    # Points apart enough that differences between them are exact to rounding.
    spread = np.where(spread > 0.0, spread, 1.0)
    for step in steps:
        if isinstance(step, PolynomialFeatures) and powers is None:
            powers = step.powers_
            center = np.zeros(len(powers))
            spread = np.ones(len(powers))
            after = Affine(np.eye(len(powers)), np.zeros(len(powers)))
        elif isinstance(step, _AFFINE) or (
            isinstance(step, MinMaxScaler) and not step.clip
        ):
            found = _probe(step, center, spread)
            if found is None:
                return None, None, None
            base = affine if powers is None else after
            combined = Affine(
                found.matrix @ base.matrix, found.matrix @ base.offset + found.offset
            )
            if powers is None:
                affine = combined
            else:
                after = combined
            spread = np.abs(found.matrix) @ spread
            center = found(center)
        else:
            return None, None, None
    return affine, powers, after


def _probe(step, center, spread):
    """Return the affine map that a transformer is, from its values at a few points."""
    points = np.vstack([center, center + np.diag(spread)])
    with warnings.catch_warnings():
        # Its columns are in order, and need no names here.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        values = step.transform(points)
    values = to_array(values)
    if issparse(values):
        values = values.toarray()
    matrix = ((values[1:] - values[0]) / spread[:, None]).T
    return Affine(matrix, values[0] - matrix @ center)


def _is_linear(estimator):
    return hasattr(estimator, "coef_") and hasattr(estimator, "intercept_")


def _linear(estimator, affine):
    coef = estimator.coef_
    coef = np.atleast_2d(coef.toarray() if issparse(coef) else np.asarray(coef))
    if coef.dtype.kind != "f":
        return None
    intercept = np.broadcast_to(np.ravel(estimator.intercept_), len(coef))
    if is_classifier(estimator) and len(coef) != 1:
        return None
    if affine is None:
        return Linear(coef, intercept)
    if coef.shape[1] != len(affine.matrix):
        return None
    return Linear(coef @ affine.matrix, coef @ affine.offset + intercept)


def _radial(estimator, affine):
    if isinstance(estimator, (SVR, NuSVR)) and estimator.kernel == "rbf":
        weights = estimator.dual_coef_.T
        if issparse(weights):
            return None
        return Radial(
            affine,
            np.asarray(estimator.support_vectors_),
            weights,
            np.asarray(estimator.intercept_),
            float(estimator._gamma),
        )
    if isinstance(estimator, KernelRidge) and estimator.kernel == "rbf":
        centers = estimator.X_fit_
        gamma = estimator.gamma
        if issparse(centers):
            return None
        weights = estimator.dual_coef_.reshape(len(centers), -1)
        gamma = 1.0 / centers.shape[1] if gamma is None else float(gamma)
        return Radial(affine, centers, weights, np.zeros(weights.shape[1]), gamma)
    if isinstance(estimator, GaussianProcessRegressor):
        found = _rbf_part(estimator.kernel_)
        if found is None:
            return None
        height, length = found
        scale = np.atleast_1d(estimator._y_train_std)
        weights = estimator.alpha_.reshape(len(estimator.X_train_), -1)
        return Radial(
            affine,
            np.asarray(estimator.X_train_),
            height * weights * scale,
            np.atleast_1d(estimator._y_train_mean).astype(float),
            0.5 / length**2,
        )
    return None


def _rbf_part(kernel):
    """Return height and length of a kernel that is a multiple of one RBF, or None."""
    # Not `isinstance`: scikit-learn's Matern is a subclass.
    if type(kernel) is RBF:
        return None if kernel.anisotropic else (1.0, float(kernel.length_scale))
    if isinstance(kernel, Product):
        for one, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(one, ConstantKernel):
                found = _rbf_part(other)
                return found and (found[0] * one.constant_value, found[1])
    if isinstance(kernel, Sum):
        # Noise does not enter predictions.
        for one, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(one, WhiteKernel):
                return _rbf_part(other)
    return None


def _tree(estimator, affine):
    used = affine.matrix != 0.0
    if (used.sum(axis=1) != 1).any():
        return None
    columns = used.argmax(axis=1)
    tree = estimator.tree_
    k = len(columns)
    lows, highs, leaves = [], [], []
    stack = [(0, np.full(k, -np.inf), np.full(k, np.inf))]
    while stack:
        node, low, high = stack.pop()
        if tree.children_left[node] < 0:
            lows.append(low)
            highs.append(high)
            leaves.append(node)
            continue
        feature, threshold = tree.feature[node], tree.threshold[node]
        left, right = high.copy(), low.copy()
        left[feature] = min(left[feature], threshold)
        right[feature] = max(right[feature], threshold)
        stack.append((tree.children_left[node], low, left))
        stack.append((tree.children_right[node], right, high))
    return Tree(affine, columns, np.array(lows), np.array(highs), np.array(leaves))
