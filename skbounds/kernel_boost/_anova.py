"""A sum of one-dimensional kernels and a product, weighted by evidence.

On standardised features

    k(x, x') = sum_j w_j exp(-g (x_j - x'_j)^2) + w_p exp(-sum_j a_j (x_j - x'_j)^2).

The weights are those of greatest evidence with the kernels centred, so that constants,
which the intercept takes, do not count; they have sum one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from skbounds.kernel_boost._relevance import Sample, evidence, gaussian

# Rows of the evidence, and features whose kernels are kept for them.
_ROWS, MOST_FEATURES = 300, 50
# Widths that are tried.
WIDTHS = (0.1, 0.5, 2.0)
_ITERATIONS = 60
# Logarithms of weights over the noise stay within this of 0; smaller shares are 0.
_REACH, _NEGLIGIBLE = 14.0, 1e-4


@dataclass(frozen=True)
class Anova:
    """Weights of the parts of the kernel.

    Attributes
    ----------
    inverse : ndarray of shape (d,)
        One over the features' standard deviations.
    width : float
        g.
    weights : ndarray of shape (d + 1,)
        Those of the features and of the product, of sum one.
    """

    inverse: np.ndarray
    width: float
    weights: np.ndarray

    def sum_of_features(self, X, Y):
        """Return the sum over the features of the kernel matrix of clipped rows."""
        found = np.zeros((len(X), len(Y)))
        for j in np.flatnonzero(self.weights[:-1]):
            one, other = X[:, j] * self.inverse[j], Y[:, j] * self.inverse[j]
            part = np.subtract.outer(one, other)
            part *= part
            part *= -self.width
            np.exp(part, out=part)
            part *= self.weights[j]
            found += part
        return found


def find_weights(sample, relevance, widths):
    """Return the width and the weights of greatest evidence.

    Parameters
    ----------
    sample : Sample
    relevance : ndarray of shape (d,)
        a.
    widths : sequence of float

    Returns
    -------
    width : float
    weights : ndarray of shape (d + 1,)
    """
    X, weight = sample.X[:_ROWS], sample.weight[:_ROWS]
    share = weight / weight.sum()
    y = sample.targets[:_ROWS]
    y = y - share @ y
    part = Sample(X, y, weight, sample.deviation)
    product = _centred(gaussian(X * np.sqrt(relevance)), share)
    used = np.flatnonzero(sample.deviation)
    gaps = [np.subtract.outer(X[:, j], X[:, j]) ** 2 for j in used]
    best = (np.inf, None, None)
    for width in widths:
        kernels = np.stack(
            [*(_centred(np.exp(-width * gap), share) for gap in gaps), product]
        )
        value, logs = _fit(kernels, part)
        if value < best[0]:
            best = (value, width, logs)
    _, width, logs = best
    found = np.exp(logs - logs.max())
    found /= found.sum()
    found[found < _NEGLIGIBLE] = 0.0
    weights = np.zeros(len(sample.deviation) + 1)
    weights[np.append(used, -1)] = found / found.sum()
    return width, weights


def _centred(K, share):
    """Return H K H with H = I - 1 share'."""
    means = K @ share
    return K - means[:, None] - means + share @ means


def _fit(kernels, sample):
    """Return the least value of J and the logarithms of the weights over the noise."""
    size = len(kernels)
    flat = kernels.reshape(size, -1)

    def judge(logs):
        w = np.exp(logs)
        K = (w @ flat).reshape(kernels.shape[1:])
        J, W, *_ = evidence(K, 0.0, sample)
        if W is None:
            return J, np.zeros(size)
        return J, w * (flat @ W.ravel())

    start = np.full(size, np.log(10.0 / size))
    found = minimize(
        judge,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-_REACH, _REACH)] * size,
        options={"maxiter": _ITERATIONS},
    )
    return found.fun, found.x


def with_anova(kernel, sample, scale, inverse, widths):
    """Return a kernel with its weights found."""
    width, weights = find_weights(sample, scale.relevance, widths)
    return replace(kernel, gamma=1.0, scale=scale, anova=Anova(inverse, width, weights))
