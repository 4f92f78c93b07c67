"""Fenchel-Young losses on their polytopes: one interface over all structures.

Scores and predictions have one row per sample and D columns; targets and plays are
int64 in the user's form (see ``native/fenchel_young/rows.h``).

Numbers of definitions, theorems and sections: Sakaue, Bao, Tsuchiya and Oki (2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from skbounds._core import fenchel_young as _core

# sup E[L] / (-ln p_y) of Algorithm 1 over all probability vectors: the maximum of
# (1 - 2 s^2) / (-ln s) over 0 < s < 1/2.
LOGISTIC_RATIO = 0.7467292354033482
# sup |p - e_y|^2 / (-ln p_y): the maximum of 2 (1 - s)^2 / (-ln s).
LOGISTIC_CURVATURE = 0.8145287551781475

DECODINGS = ("randomized", "argmax", "sample", "coordinatewise")


@dataclass(frozen=True)
class Constants:
    """The constants of Assumption 2.1 and what follows from them.

    Attributes
    ----------
    nu : float
        Smallest distance of two vertices.
    gamma : float
        The target loss is at most gamma times the distance to the target.
    strong_convexity : float
        lambda of the regulariser, in the same norm.
    kappa : float
        The l2 norm is at most kappa times that norm, on differences to a vertex.
    diameter : float
        Of the polytope, in that norm.
    ratio : float
        Largest expected target loss per unit of (unscaled) surrogate loss; inf where
        none is proved.
    curvature : float
        Largest squared l2 residual per unit of (unscaled) surrogate loss.
    """

    nu: float
    gamma: float
    strong_convexity: float
    kappa: float
    diameter: float
    ratio: float
    curvature: float


@dataclass(frozen=True)
class FenchelYoungLoss:
    """A loss on a structure.

    Parameters
    ----------
    structure : {'simplex', 'cube', 'chain', 'permutahedron', 'birkhoff'}
    loss : {'logistic', 'sparsemax', 'sparsemap', 'sigmoid', 'entropic'}
    size : int
        Number of classes, labels, thresholds between levels, or items.
    mu : float
        Inverse regularisation strength of the entropic loss.
    """

    structure: str
    loss: str
    size: int
    mu: float = 1.0

    @property
    def n_outputs(self) -> int:
        """Return D, the number of scores."""
        return self.size**2 if self.structure == "birkhoff" else self.size

    @property
    def n_targets(self) -> int:
        """Return the number of entries of a target."""
        return 1 if self.structure in ("simplex", "chain") else self.size

    @property
    def structure_code(self) -> int:
        """Return the structure's number in the compiled code."""
        if self.loss == "sparsemax":
            return _core.EUCLIDEAN_SIMPLEX
        return getattr(_core, self.structure.upper())

    @property
    def loss_code(self) -> int:
        """Return the loss's number in the compiled code."""
        if self.structure == "simplex":
            return getattr(_core, self.loss.upper())
        return getattr(_core, f"{self.structure}_{self.loss}".upper())

    def n_uniforms(self, decoding: str) -> int:
        """Return how many uniform numbers the play of one row takes."""
        if decoding == "argmax":
            return 0
        draws = {
            "simplex": 1,
            "cube": self.size,
            "chain": 1,
            "permutahedron": self.size - 1,
            "birkhoff": self.size**2,
        }[self.structure]
        return draws + (decoding == "randomized")

    def constants(self, decoding: str, kind: str) -> Constants:
        """Return the constants of a decoding.

        Parameters
        ----------
        decoding : {'randomized', 'argmax', 'sample', 'coordinatewise'}
        kind : {'sharp', 'paper'}
            The paper's norm inequality (kappa = 1) and its generic ratio and
            curvature, or the sharpest proved values. The permutahedron's gamma is
            the corrected one in both: the printed one violates Assumption 2.1.
        """
        n, sharp = self.size, kind == "sharp"
        if self.structure == "simplex" and self.loss == "logistic":
            nu, gamma, strong, diameter = 2.0, 0.5, 1.0, 2.0
            kappa = sqrt(0.5) if sharp else 1.0
        elif self.structure == "simplex":
            nu, gamma, strong, diameter = sqrt(2.0), sqrt((n - 1) / n), 1.0, sqrt(2.0)
            kappa = 1.0
        elif self.structure in ("cube", "chain"):
            nu, gamma, kappa, diameter = 1.0, 1.0 / sqrt(n), 1.0, sqrt(n)
            strong = 4.0 if self.loss == "sigmoid" else 1.0
        elif self.structure == "permutahedron":
            spread = n * (n * n - 1.0) / 3.0
            nu, gamma, strong, kappa = sqrt(2.0), 1.0 / sqrt(spread), 1.0, 1.0
            diameter = sqrt(spread)
        else:
            nu, gamma, strong, diameter = 4.0, 0.5 / n, 1.0 / (n * self.mu), 2.0 * n
            kappa = 0.5 if sharp else 1.0
        ratio = inf
        if decoding == "randomized":
            ratio = 4.0 * gamma / (strong * nu)
        elif decoding == "coordinatewise":
            ratio = 4.0 / (n * strong)
        elif decoding == "sample":
            # The share of wrong entries is at most the mean of their log-losses.
            if self.loss == "logistic":
                ratio = 1.0
            elif self.loss == "sigmoid":
                ratio = 1.0 / n
            elif self.loss == "entropic":
                ratio = self.mu / n
        curvature = 2.0 * kappa * kappa / strong
        if sharp and self.loss == "logistic":
            curvature = LOGISTIC_CURVATURE
            ratio = LOGISTIC_RATIO if decoding == "randomized" else ratio
        elif sharp and self.loss == "sigmoid":
            # A label is a softmax of two scores.
            curvature = 0.5 * LOGISTIC_CURVATURE
            ratio = LOGISTIC_RATIO / n if decoding == "coordinatewise" else ratio
        elif sharp and self.loss == "entropic":
            # mu S is the sum over rows of -ln u at the target.
            curvature = min(curvature, self.mu * LOGISTIC_CURVATURE)
        return Constants(nu, gamma, strong, kappa, diameter, ratio, curvature)

    def scale(self, decoding: str, kind: str) -> float:
        """Return the factor of the surrogate loss that leaves a surrogate gap."""
        if self.loss == "logistic":
            return 1.0 / log(2.0)
        ratio = self.constants(decoding, kind).ratio
        # A ratio of 1 may come out a rounding error below.
        return 2.0 * ratio if 1.0 - 1e-9 <= ratio < inf else 1.0

    def predict(self, theta: np.ndarray) -> np.ndarray:
        """Return the regularised predictions (Definition 2.2)."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        u = np.empty_like(theta)
        _core.predict_rows(self.loss_code, float(self.mu), theta, u)
        return u

    def respond(self, theta, targets) -> tuple[np.ndarray, np.ndarray]:
        """Return the unscaled losses and the residuals, their gradients in theta."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        values, residual = np.empty(len(theta)), np.empty_like(theta)
        _core.respond_rows(
            self.loss_code,
            float(self.mu),
            theta,
            np.ascontiguousarray(targets, dtype=np.int64),
            values,
            residual,
        )
        return values, residual

    def nearest(self, u: np.ndarray) -> np.ndarray:
        """Return the vertices nearest to the rows of u."""
        vertices = np.empty((len(u), self.n_targets), np.int64)
        _core.nearest_rows(self.structure_code, np.ascontiguousarray(u), vertices)
        return vertices

    def decode(self, u, decoding: str, uniforms=None) -> tuple[np.ndarray, np.ndarray]:
        """Return random plays on the rows of u and their exact means.

        Without uniforms the plays mean nothing.
        """
        if uniforms is None:
            uniforms = np.zeros((len(u), max(1, self.n_uniforms(decoding))))
        plays = np.empty((len(u), self.n_targets), np.int64)
        means = np.empty(u.shape)
        _core.decode_rows(
            self.structure_code,
            DECODINGS.index(decoding),
            np.ascontiguousarray(u),
            uniforms,
            plays,
            means,
        )
        return plays, means
