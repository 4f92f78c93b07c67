"""SparseMAP: Euclidean projection on the hull of vertices that an oracle finds."""

from __future__ import annotations

import numpy as np

# Of the gap, in units of the rounding of its terms.
_TOLERANCE = 4.0 * np.finfo(float).eps
_MOST_STEPS = 10_000


def project(maximise, theta):
    """Return the nearest point of the hull, and the vertices that it is a mixture of.

    Wolfe's algorithm for the nearest point of a polytope: the active vertices are
    affinely independent, so that there are at most D + 1 (Caratheodory), and their
    weights are a law with the point as its mean.

    Parameters
    ----------
    maximise : callable
        Returns the vertex with the largest inner product.
    theta : ndarray of shape (D,)

    Returns
    -------
    point : ndarray of shape (D,)
    vertices : ndarray of shape (n_active, D)
    weights : ndarray of shape (n_active,)
        Positive, of sum 1.
    """
    vertices = np.asarray(maximise(theta), dtype=np.float64)[None]
    weights = np.ones(1)
    point = vertices[0]
    for _ in range(_MOST_STEPS):
        ahead = theta - point
        vertex = np.asarray(maximise(ahead), dtype=np.float64)
        gap = ahead @ (vertex - point)
        rounding = (np.abs(ahead) + 1.0) @ np.abs(vertex - point)
        if gap <= _TOLERANCE * rounding or (vertices == vertex).all(axis=1).any():
            break
        before = point
        vertices = np.vstack([vertices, vertex])
        weights = np.append(weights, 0.0)
        vertices, weights = _shrink(vertices, weights, theta)
        point = weights @ vertices
        if np.abs(point - before).max() <= 1e-15:
            # A vertex as good as the best ones, that only rounding told apart.
            break
    return point, vertices, weights


def _shrink(vertices, weights, theta):
    """Return the vertices around the nearest point of their hull, and its weights."""
    while True:
        target = _nearest_affine(vertices, theta)
        if (target > 0.0).all():
            return vertices, target
        # Walk towards it as far as the hull goes; what has no weight left is dropped.
        falling = target <= 0.0
        room = weights[falling] / (weights[falling] - target[falling])
        weights = weights + min(1.0, room.min()) * (target - weights)
        kept = weights > 1e-14
        kept[np.flatnonzero(falling)[room.argmin()]] = False
        vertices, weights = vertices[kept], weights[kept]
        weights /= weights.sum()


def _nearest_affine(vertices, theta):
    """Return the weights, of sum 1, of the nearest point of the affine hull."""
    edges = vertices[1:] - vertices[0]
    if not len(edges):
        return np.ones(1)
    rest = np.linalg.lstsq(edges.T, theta - vertices[0], rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)
