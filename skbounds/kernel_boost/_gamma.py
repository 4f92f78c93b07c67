"""The width of a kernel, by the evidence of low-rank fits on some of the rows."""

from __future__ import annotations

import numpy as np

from skbounds._callbacks import as_task
from skbounds.kernel_boost._counts import draw_counts
from skbounds.kernel_boost._factor import KernelFactor
from skbounds.kernel_boost._hashes import count_originals
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._solvers import Columns, factor_basis
from skbounds.kernel_boost._stopping import Spectrum

_ROWS, _RANK = 1500, 96
_GRID = 4.0 ** np.arange(-3, 4)
# A second look at so many times the rank, where the first saw too little.
_SECOND_LOOK = 4
_SMALL_GAIN = 0.1
# Up to so many rows all distances are looked at, beyond only some.
_FEW_ROWS, _PAIRS = 500, 1000


@as_task("gamma")
def choose_gamma(make_kernel, X, targets, weight, rng, start):
    """Return gamma and the scores of all that were tried.

    Parameters
    ----------
    make_kernel : callable
        ``make_kernel(gamma)`` is a `Kernel`.
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n, m)
        Centred.
    weight : ndarray of shape (n,)
    rng : Generator
    start : float
        Middle of the grid: one over the median squared distance (or distance).

    Returns
    -------
    gamma : float
    path : dict
        ``gamma`` and ``score``, in the order of gamma.
    """
    if len(weight) > _ROWS:
        if (weight == np.round(weight)).all():
            counts = draw_counts(weight, _ROWS, rng)
        else:
            counts = np.zeros(len(weight))
            share = weight / weight.sum()
            counts[rng.choice(len(weight), _ROWS, replace=False, p=share)] = 1.0
        kept = np.flatnonzero(counts)
        X, targets, weight = X[kept], targets[kept], counts[kept]
    originals = count_originals(X, targets, weight)
    if originals is not None:
        # Copies are no evidence that a function can be told from noise.
        weight = weight * (originals / weight.sum())
    rows = {gamma: Rows(make_kernel(gamma), X) for gamma in start * _GRID}
    scores = {}

    def look(gammas, rank):
        for gamma in gammas:
            own = rows.get(gamma) or Rows(make_kernel(gamma), X)
            scores[gamma] = _evidence(own, targets, weight, rank, rng)
        return min(scores, key=scores.get)

    best = look(rows, _RANK)
    flat = weight.sum() * np.log(np.maximum(weight @ targets**2 / weight.sum(), 1e-300))
    gain = (flat.sum() - scores[best]) / (weight.sum() * targets.shape[1])
    rank = _RANK
    if best in (min(scores), max(scores)) or gain < _SMALL_GAIN:
        rank *= _SECOND_LOOK
        best = look(rows, rank)
    best = look((0.5 * best, 2.0 * best), rank)
    ordered = sorted(scores)
    path = {"gamma": np.array(ordered), "score": np.array([scores[g] for g in ordered])}
    return best, path


def _evidence(rows, targets, weight, rank, rng):
    """Return minus twice the log marginal likelihood, up to a constant."""
    factor = KernelFactor(rows.block, rows.diagonal(), weight, rank, rng)
    columns = Columns(factor, weight)
    columns.grow(rank)
    spectrum = Spectrum(factor_basis(columns), targets, weight.sum())
    return float(spectrum.noise()[1].sum())


def typical_distance(X, weight, rng, *, squared):
    """Return the median (squared) distance of pairs of rows that differ; 1 for none."""
    n = X.shape[0]
    if n <= _FEW_ROWS:
        first, second = np.triu_indices(n, 1)
        pairs = weight[first] * weight[second]
    else:
        first, second = rng.choice(n, (2, _PAIRS), p=weight / weight.sum())
        pairs = np.ones(_PAIRS)
    sizes = _distances(X, first, second, squared=squared)
    apart = sizes > 0.0
    if not apart.any():
        return 1.0
    sizes, pairs = sizes[apart], pairs[apart]
    order = np.argsort(sizes, kind="stable")
    total = np.cumsum(pairs[order])
    middle = np.searchsorted(total, 0.5 * total[-1])
    return float(sizes[order[middle]])


def _distances(X, first, second, *, squared):
    if hasattr(X, "multiply"):
        gaps = X[first] - X[second]
        sizes = (gaps.multiply(gaps) if squared else abs(gaps)).sum(axis=1)
        return np.ravel(np.asarray(sizes))
    sizes = np.zeros(len(first))
    # Column by column: all pairs of rows together would be a large table.
    for column in X.T:
        gaps = column[first] - column[second]
        sizes += gaps**2 if squared else np.abs(gaps)
    return sizes
