"""Points at which integrals over normal laws are evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from skbounds._blocks import memory_limit, row_blocks

# Beyond this the coordinates of a Sobol sequence are no better than random ones.
_QMC_DIMENSIONS = 50
# Scramblings whose spread tells the error.
_STREAMS = 4
# Rows to be predicted at a time.
ROWS = 100_000


def sobol(n_dimensions, seed):
    """Return a scrambled Sobol sequence."""
    return qmc.Sobol(n_dimensions, seed=seed)


def normal_points(engine, n_points):
    """Return the engine's next points as draws of independent standard normals."""
    with warnings.catch_warnings():
        # Sums over a number of points that is no power of two are balanced enough.
        warnings.filterwarnings("ignore", message="The balance properties of Sobol")
        uniform = engine.random(n_points)
    return ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))


def stream_sizes(n_nodes):
    """Return how many of a row's nodes each stream has."""
    n_streams = min(_STREAMS, n_nodes)
    return np.arange(n_nodes, n_nodes + n_streams)[::-1] // n_streams


def integration_nodes(
    n_rows, n_nodes, n_dimensions, *, kind, seed
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield nodes for blocks of rows, each row with nodes of its own.

    One low-discrepancy stream runs through all rows, so that their errors cancel. There
    are four such streams (or fewer, with few nodes): the spread between them tells the
    error. The nodes do not depend on how rows fall into blocks.

    Parameters
    ----------
    n_rows, n_nodes, n_dimensions : int
    kind : {'qmc', 'mc'}
        Random numbers replace a Sobol sequence of more than 50 dimensions.
    seed : int

    Yields
    ------
    rows : slice
    nodes : ndarray of shape (n_block, n_nodes, n_dimensions)
        Those of the first stream first; see `stream_sizes`.
    """
    sizes = stream_sizes(n_nodes)
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    generators = [np.random.default_rng(child) for child in seeds]
    quasi = kind == "qmc" and n_dimensions <= _QMC_DIMENSIONS
    if quasi:
        generators = [sobol(n_dimensions, generator) for generator in generators]
    size = min(ROWS, memory_limit() // (8 * max(n_dimensions, 1))) // n_nodes
    for rows in row_blocks(n_rows, size):
        n_block, parts = rows.stop - rows.start, []
        for generator, per_row in zip(generators, sizes, strict=True):
            if quasi:
                part = normal_points(generator, n_block * per_row)
            else:
                part = generator.standard_normal((n_block * per_row, n_dimensions))
            parts.append(part.reshape(n_block, per_row, n_dimensions))
        yield rows, np.concatenate(parts, axis=1)


def antithetic_nodes(n_rows, n_nodes, n_dimensions, rng):
    """Return random nodes, each with its opposite: (n_rows, n_nodes, n_dimensions).

    Of an odd number the last has none.
    """
    half = rng.standard_normal((n_rows, (n_nodes + 1) // 2, n_dimensions))
    return np.concatenate([half, -half], axis=1)[:, :n_nodes]


def hermite_nodes(n_points, n_dimensions):
    """Return nodes and weights exact for polynomials of degree 2 n_points - 1.

    Per coordinate, with respect to the standard normal law.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_points)
    weights = weights / weights.sum()
    grid = np.meshgrid(*[nodes] * n_dimensions, indexing="ij")
    mass = np.meshgrid(*[weights] * n_dimensions, indexing="ij")
    return (
        np.stack([axis.ravel() for axis in grid], axis=1),
        np.prod([axis.ravel() for axis in mass], axis=0),
    )
