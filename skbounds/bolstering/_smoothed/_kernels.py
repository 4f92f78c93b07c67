"""Normal kernels around the rows, in the coordinates of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbounds.bolstering._smoothed._nodes import normal_points, sobol

# Draws from which the covariance of another family is taken.
_DRAWS = 2**15


@dataclass(frozen=True)
class Kernels:
    """Covariances S_i = L_i L_i' of n kernels in q dimensions, by their roots L_i.

    Parameters
    ----------
    roots : ndarray
        Of shape (n,) for multiples of the identity, (n, q) for diagonal and (n, q, q)
        for lower triangular matrices; n may be 1 if all rows share one.
    n_dimensions : int
    family : callable or None
        From standard normal draws to draws of another law, of which L_i times a draw is
        one of the kernel; None: the normal law.
    """

    roots: np.ndarray
    n_dimensions: int
    family: object = None

    @property
    def is_normal(self):
        return self.family is None

    @property
    def is_diagonal(self):
        return self.roots.ndim < 3

    @property
    def deviations(self):
        """Standard deviations along the axes, of diagonal kernels: (n or 1, q)."""
        if self.roots.ndim == 1:
            return np.repeat(self.roots[:, None], self.n_dimensions, axis=1)
        return self.roots

    def part(self, rows):
        """Return the kernels of some rows."""
        if len(self.roots) == 1:
            return self
        return Kernels(self.roots[rows], self.n_dimensions, self.family)

    def move(self, nodes):
        """Return L_i g for nodes of shape (n, ..., q), normal or what comes of them."""
        if self.family is not None:
            nodes = self.family(nodes)
        middle = (1,) * (nodes.ndim - 2)
        if self.roots.ndim == 3:
            n = len(nodes)
            flat = nodes.reshape(n, -1, nodes.shape[-1])
            moved = flat @ self.roots.transpose(0, 2, 1)
            return moved.reshape(nodes.shape)
        if self.roots.ndim == 2:
            return nodes * self.roots.reshape(len(self.roots), *middle, -1)
        return nodes * self.roots.reshape(-1, *middle, 1)

    def quadratic(self, slopes):
        """Return a_i' S_i a_i for a shared or own a: (q,) or (n, q)."""
        if self.roots.ndim == 3:
            turned = (slopes[..., None, :] @ self.roots)[..., 0, :]
        elif self.roots.ndim == 2:
            turned = self.roots * slopes
        else:
            turned = self.roots[:, None] * slopes
        return (turned**2).sum(axis=1)

    def covariances(self):
        """Return S_i, shape (n or 1, q, q)."""
        if self.family is not None:
            draws = self.family(normal_points(sobol(self.n_dimensions, 0), _DRAWS))
            roots = self.matrices()
            inner = draws.T @ draws / len(draws)
            return roots @ inner @ roots.transpose(0, 2, 1)
        if self.roots.ndim == 3:
            return self.roots @ self.roots.transpose(0, 2, 1)
        return self.deviations[:, :, None] ** 2 * np.eye(self.n_dimensions)

    def matrices(self):
        """Return L_i, shape (n or 1, q, q)."""
        if self.roots.ndim == 3:
            return self.roots
        return self.deviations[:, :, None] * np.eye(self.n_dimensions)


def triangular_roots(covariances):
    """Return lower triangular L_i with L_i L_i' = S_i, for S_i of any rank.

    Parameters
    ----------
    covariances : ndarray of shape (n, q, q)

    Raises
    ------
    ValueError
        If a matrix is not positive semidefinite, beyond rounding.
    """
    try:
        return np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        sizes, axes = np.linalg.eigh(covariances)
        largest = np.abs(sizes).max(axis=1, keepdims=True)
        if (sizes < -1e-8 * largest).any():
            raise ValueError(
                "a kernel's covariance matrix is not positive semidefinite; its "
                f"smallest eigenvalue is {sizes.min():.3g}."
            ) from None
        roots = axes * np.sqrt(np.maximum(sizes, 0.0))[:, None, :]
        upper = np.linalg.qr(roots.transpose(0, 2, 1), mode="r")
        return upper.transpose(0, 2, 1)
