"""Kernel matrices of rows, by scikit-learn's names and one more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.extmath import row_norms

from skbounds._distances import CentredRows, rbf
from skbounds._magnitude import SMALLEST

NAMES = tuple(sorted({*PAIRWISE_KERNEL_FUNCTIONS, "sobolev", "anova", "precomputed"}))
KernelLike: TypeAlias = (
    Literal[
        "rbf",
        "laplacian",
        "linear",
        "poly",
        "polynomial",
        "sigmoid",
        "chi2",
        "additive_chi2",
        "cosine",
        "sobolev",
        "anova",
        "precomputed",
    ]
    | Callable
)
# Kernels whose gamma is worth a search.
WITH_WIDTH = ("rbf", "laplacian")
# Kernels whose features may have scales of their own.
WITH_SCALES = ("rbf", "anova")
# Kernels of dense rows only.
DENSE = ("precomputed", "sobolev", "anova")
# Kernels that need features that are not negative.
POSITIVE = ("chi2", "additive_chi2", "sobolev")


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Attributes
    ----------
    kernel : str or callable
    gamma, degree, coef0 : float or None
    kernel_params : dict or None
        Of a callable.
    scale : FeatureScale or None
        What features are clipped to and multiplied by; rbf and anova only.
    anova : Anova or None
        The parts of "anova".
    """

    kernel: object
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict | None = None
    scale: object = None
    anova: object = None

    def prepare(self, X):
        """Return rows with their features scaled."""
        return X if self.scale is None else self.scale(X)

    def __call__(self, X, Y):
        """Return the kernel matrix of two sets of rows."""
        if callable(self.kernel):
            return pairwise_kernels(
                X, Y, metric=self.kernel, n_jobs=1, **(self.kernel_params or {})
            )
        if self.kernel == "rbf":
            fixed = CentredRows(self.prepare(Y))
            return rbf(fixed.with_others(self.prepare(X)), fixed, self.gamma)
        if self.kernel == "anova":
            X, Y = self.scale.clipped(X), self.scale.clipped(Y)
            result = self.anova.sum_of_features(X, Y)
            if self.anova.weights[-1] > 0.0:
                fixed = CentredRows(Y * self.scale.factor)
                others = fixed.with_others(X * self.scale.factor)
                result += self.anova.weights[-1] * rbf(others, fixed, 1.0)
            return result
        if self.kernel == "sobolev":
            result = np.ones((X.shape[0], Y.shape[0]))
            for x, y in zip(X.T, Y.T, strict=True):
                result *= 1.0 + np.minimum.outer(x, y)
            return result
        return pairwise_kernels(
            X, Y, metric=self.kernel, filter_params=True,
            gamma=self.gamma, degree=self.degree, coef0=self.coef0, n_jobs=1,
        )  # fmt: skip

    def diagonal(self, X):
        """Return k(x, x) of rows."""
        if self.kernel in ("rbf", "laplacian", "chi2", "anova"):
            return np.ones(X.shape[0])
        if self.kernel == "sobolev":
            return np.prod(1.0 + X, axis=1)
        if self.kernel == "cosine":
            return (row_norms(X, squared=True) > 0.0).astype(np.float64)
        if self.kernel in ("linear", "poly", "polynomial", "sigmoid"):
            products = row_norms(X, squared=True)
            if self.kernel == "linear":
                return products
            gamma = 1.0 / X.shape[1] if self.gamma is None else self.gamma
            shifted = gamma * products + self.coef0
            if self.kernel == "sigmoid":
                return np.tanh(shifted)
            return shifted**self.degree
        rows = range(X.shape[0])
        return np.array([self(X[[i]], X[[i]])[0, 0] for i in rows])


class Rows:
    """Training rows, and the kernel matrices of any of them.

    Parameters
    ----------
    kernel : Kernel
    X : {ndarray, sparse matrix} of shape (n, d)
        The kernel matrix for ``kernel="precomputed"``.
    """

    def __init__(self, kernel, X):
        self.kernel, self.X = kernel, X
        self.precomputed = kernel.kernel == "precomputed"
        # Thousands of small blocks: the checks of pairwise_kernels would take longer
        # than the kernel itself.
        self.points = None
        if kernel.kernel == "rbf":
            self.points = CentredRows(kernel.prepare(X))

    def __len__(self):
        return self.X.shape[0]

    def block(self, rows, others):
        """Return the kernel matrix of two sets of row numbers."""
        if self.precomputed:
            return self.X[rows][:, others]
        if self.points is None:
            return self.kernel(self.X[rows], self.X[others])
        return rbf(self.points.take(rows), self.points.take(others), self.kernel.gamma)

    def gram(self):
        """Return the whole kernel matrix."""
        if self.precomputed:
            return self.X
        if self.points is None:
            gram = self.kernel(self.X, self.X)
        else:
            gram = rbf(self.points, self.points, self.kernel.gamma)
            np.fill_diagonal(gram, 1.0)
        return 0.5 * (gram + gram.T)

    def diagonal(self):
        """Return k(x_i, x_i)."""
        if self.precomputed:
            return self.X.diagonal().copy()
        return self.kernel.diagonal(self.X)

    def take(self, rows):
        """Return some rows; of a kernel matrix, the rows and columns."""
        X = self.X[np.ix_(rows, rows)] if self.precomputed else self.X[rows]
        return Rows(self.kernel, X)

    def to_others(self, X, rows):
        """Return the kernel matrix of new rows and some of these."""
        if self.precomputed:
            return X[:, rows]
        if self.points is None:
            return self.kernel(X, self.X[rows])
        others = self.points.take(rows)
        X = self.kernel.prepare(X)
        return rbf(self.points.with_others(X), others, self.kernel.gamma)


def scale_gamma(X, weight):
    """Return 1 / (d Var X), with the weighted variance of all entries; 1 for none."""
    share = weight / weight.sum()
    if issparse(X):
        mean = (share @ X).mean()
        variance = (share @ X.multiply(X)).mean() - mean**2
    else:
        mean = (share @ X).mean()
        variance = (share @ (X - mean) ** 2).mean()
    # The inverse of less is beyond the range of doubles.
    return 1.0 / (X.shape[1] * variance) if variance > SMALLEST**2 else 1.0
