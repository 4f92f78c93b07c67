"""Output structures, and what one of your own needs.

After sections 3.1, 4 and appendix B of Sakaue, Bao, Tsuchiya and Oki (2024).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, sqrt
from numbers import Integral
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.special import logsumexp

__all__ = ["ChainCRF", "KSubsets", "SpanningTrees", "Structure"]


class Structure(ABC):
    """A finite set of outputs, given by a linear maximisation oracle.

    Outputs are vertices: arrays of zeros and ones of length D, which scores of the same
    length rank by their inner product. A structure of one's own derives from this class
    and defines `n_outputs` and `maximise`; the rest has defaults.

    Attributes
    ----------
    n_outputs : int or None
        D; None where it depends on the number of positions of a row.
    n_scores : int
        Scores per position where rows have several positions that share their weights.
    n_shared : int
        Scores that no feature enters, behind all others.
    size : int or None
        Number of ones, where all vertices have the same.
    most_wrong : int
        Largest number of entries in which two vertices differ.
    separation : float
        nu, at most the l2 distance of any two vertices.
    lipschitz : float
        gamma: the loss is at most gamma times the l2 distance to the target.

    Notes
    -----
    The default loss is the number of wrong entries by `most_wrong`. Another one
    overrides `loss_coefficients` and `lipschitz`; it must be affine in the play, 0 at
    the target, and between 0 and 1.

    A structure may also have ``project(scores)``, the Euclidean projection on the hull,
    and ``draw(point, rng)``, a random vertex with that mean; without them Wolfe's
    algorithm finds both through the oracle. With ``log_partition(scores)``, which
    returns the logarithms of the partition functions and the marginals of several
    scores, ``sample(scores, rng)`` and `squared_reach`, it has the CRF loss; `ChainCRF`
    shows how.
    """

    n_outputs: int | None = None
    n_scores: int = 1
    n_shared: int = 0
    size: int | None = None

    @property
    def most_wrong(self) -> int:
        """Largest number of entries in which two vertices differ."""
        n_outputs = cast(int, self.n_outputs)
        if self.size is None:
            return n_outputs
        return 2 * min(self.size, n_outputs - self.size)

    @property
    def separation(self) -> float:
        """Nu: 1 for zeros and ones, the root of 2 where their sizes agree."""
        return 1.0 if self.size is None else sqrt(2.0)

    @property
    def lipschitz(self) -> float:
        """Gamma of the share of wrong entries (by Cauchy's inequality)."""
        n_outputs = cast(int, self.n_outputs)
        if self.size is None:
            return sqrt(n_outputs) / self.most_wrong
        # Where sizes agree, as much is missing in the target as is wrong outside.
        rest = n_outputs - self.size
        return 2.0 / (self.most_wrong * sqrt(1.0 / self.size + 1.0 / rest))

    @abstractmethod
    def maximise(self, scores: np.ndarray) -> ArrayLike:
        """Return the vertex with the largest inner product with the scores.

        Parameters
        ----------
        scores : ndarray of shape (D,)
            Finite.

        Returns
        -------
        vertex : array-like of shape (D,)
            Of zeros and ones.
        """

    def encode(self, y: Any) -> np.ndarray:
        """Return the vertex that a target means; the default is the target itself."""
        vertex = np.asarray(y)
        if vertex.shape != (self.n_outputs,) or not np.isin(vertex, (0, 1)).all():
            raise ValueError(
                f"each row of y must be a vector of {self.n_outputs} zeros and ones; "
                f"got {y!r}."
            )
        if self.size is not None and vertex.sum() != self.size:
            raise ValueError(
                f"each row of y must have {self.size} ones; got {int(vertex.sum())}."
            )
        return vertex.astype(np.float64)

    def decode(self, vertex: np.ndarray) -> Any:
        """Return a vertex in the form of the targets."""
        return np.asarray(vertex).astype(np.int64)

    def nearest(self, point: np.ndarray) -> ArrayLike:
        """Return the vertex nearest to a point of the hull (Proposition 3.2)."""
        return self.maximise(2.0 * point - 1.0)

    def squared_reach(self, norms: np.ndarray) -> float:
        """Return half the largest squared gradient of a row with positions so long.

        Of <scores, y' - y> in the weights, over vertices y' and y; only for structures
        with `log_partition`.
        """
        length = float(np.sum(np.square(norms)))
        if self.n_shared:
            length = max(length, 1.0)
        return 0.5 * self.most_wrong * length

    def loss_coefficients(self, vertex: np.ndarray) -> tuple[np.ndarray, float]:
        """Return v and c of the target's loss, ``<v, play> + c``."""
        most = self.most_wrong
        return (1.0 - 2.0 * vertex) / most, float(vertex.sum()) / most


class KSubsets(Structure):
    """Which k of n items: sets of a fixed size.

    Parameters
    ----------
    n_items : int
        Number of items.
    k : int
        Size of the sets.

    Examples
    --------
    >>> from skbounds.fenchel_young.structures import KSubsets
    >>> KSubsets(4, 2).maximise([0.3, -1.0, 2.0, 0.1]).astype(int).tolist()
    [1, 0, 1, 0]
    """

    n_outputs: int
    size: int

    def __init__(self, n_items: int, k: int) -> None:
        if not isinstance(n_items, Integral) or n_items < 2:
            raise ValueError(f"n_items must be a whole number above 1; got {n_items}.")
        if not isinstance(k, Integral) or not 0 < k < n_items:
            raise ValueError(
                f"k must be a whole number from 1 to {n_items - 1}; got {k}."
            )
        self.n_items, self.k = n_items, k
        self.n_outputs, self.size = int(n_items), int(k)

    def __repr__(self):
        return f"KSubsets(n_items={self.n_items}, k={self.k})"

    def maximise(self, scores: ArrayLike) -> np.ndarray:
        """Return the indicator of the k largest scores; of equal ones the earlier."""
        vertex = np.zeros(self.n_outputs)
        vertex[np.argsort(-np.asarray(scores), kind="stable")[: self.size]] = 1.0
        return vertex

    def project(self, scores: ArrayLike) -> np.ndarray:
        """Return the nearest point of the hull: clipped scores that sum to k."""
        scores = np.asarray(scores, dtype=np.float64)
        # A common shift changes nothing, but would cost digits.
        scores = scores - scores.max()
        knots = np.sort(np.concatenate([scores, scores - 1.0]))

        def total(shift):
            return np.clip(scores - shift, 0.0, 1.0).sum()

        # The sum falls with the shift, linearly between the knots: bisection over them.
        low, high = 0, len(knots) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if total(knots[middle]) > self.size:
                low = middle
            else:
                high = middle
        above, below = total(knots[low]), total(knots[high])
        shift = knots[low]
        if above > below:
            share = (above - self.size) / (above - below)
            shift = shift + (knots[high] - knots[low]) * min(max(share, 0.0), 1.0)
        return np.clip(scores - shift, 0.0, 1.0)

    def draw(self, point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random set of the point's mean: systematic sampling."""
        ends = np.cumsum(point)
        ends *= self.size / ends[-1]
        # One uniform number; an interval of length at most 1 holds at most one tick.
        ticks = np.ceil(ends - rng.random())
        ticks[-1] = self.size
        return np.diff(np.maximum(ticks, 0.0), prepend=0.0).clip(0.0, 1.0)


class SpanningTrees(Structure):
    """Spanning trees of a connected graph, by scipy's minimum spanning tree.

    Parameters
    ----------
    edges : array-like of int of shape (n_edges, 2)
        Pairs of nodes, numbered from 0, without loops or repetitions.

    Examples
    --------
    >>> from skbounds.fenchel_young.structures import SpanningTrees
    >>> triangle = SpanningTrees([(0, 1), (1, 2), (0, 2)])
    >>> triangle.maximise([1.0, 2.0, 3.0]).astype(int).tolist()
    [0, 1, 1]
    """

    def __init__(self, edges: ArrayLike) -> None:
        self.edges = edges
        pairs = np.asarray(edges)
        if (
            pairs.dtype.kind not in "iu"
            or pairs.ndim != 2
            or pairs.shape[1] != 2
            or pairs.min(initial=0) < 0
        ):
            raise ValueError(f"edges must be pairs of node numbers; got {edges!r}.")
        pairs = np.sort(pairs, axis=1)
        if (pairs[:, 0] == pairs[:, 1]).any() or len(np.unique(pairs, axis=0)) < len(
            pairs
        ):
            raise ValueError("edges must not be loops, nor repeat.")
        self.n_nodes = int(pairs.max(initial=0)) + 1
        shape = (self.n_nodes, self.n_nodes)
        graph = sp.csr_matrix((np.ones(len(pairs)), pairs.T), shape=shape)
        if connected_components(graph, directed=False)[0] > 1:
            raise ValueError("edges must connect all nodes.")
        if len(pairs) < self.n_nodes:
            raise ValueError("edges must leave a choice; the graph is a tree.")
        self._pairs = pairs
        self.n_outputs, self.size = len(pairs), self.n_nodes - 1

    def __repr__(self):
        return f"SpanningTrees({self.n_outputs} edges, {self.n_nodes} nodes)"

    def maximise(self, scores: ArrayLike) -> np.ndarray:
        """Return the indicator of a tree with the largest sum of scores."""
        scores = np.asarray(scores, dtype=np.float64)
        # Ranks instead of scores: exact, and none is 0, which scipy takes for no edge.
        ranks = np.empty(len(scores))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1.0, len(scores) + 1.0)
        shape = (self.n_nodes, self.n_nodes)
        tree = minimum_spanning_tree(sp.csr_matrix((ranks, self._pairs.T), shape=shape))
        vertex = np.zeros(len(scores))
        chosen = np.isin(ranks, tree.data)
        vertex[chosen] = 1.0
        return vertex


class ChainCRF(Structure):
    """Sequences of states: a conditional random field on a chain (appendix B).

    A row of X is a matrix with a line of features per position; each state has a score
    at each position, by weights that all positions share, and each pair of states that
    follow each other has one, the same everywhere. Targets are sequences of state
    numbers. The loss is the share of wrong positions.

    Parameters
    ----------
    n_states : int
        Number of states.

    Notes
    -----
    A vertex has the indicators of the states at all positions, and then the counts of
    all transitions. The regularised prediction has their probabilities and expected
    counts under the law that is proportional to the exponential of the scores.
    """

    def __init__(self, n_states: int) -> None:
        if not isinstance(n_states, Integral) or n_states < 2:
            raise ValueError(
                f"n_states must be a whole number above 1; got {n_states}."
            )
        self.n_states = n_states
        self.n_scores, self.n_shared = int(n_states), int(n_states) ** 2

    def __repr__(self):
        return f"ChainCRF(n_states={self.n_states})"

    def encode(self, y: Any) -> np.ndarray:
        """Return the vertex of a sequence of states."""
        states = np.asarray(y)
        K = self.n_scores
        if states.ndim != 1 or len(states) == 0 or states.dtype.kind not in "iub":
            raise ValueError(f"each target must be a sequence of states; got {y!r}.")
        if states.min() < 0 or states.max() >= K:
            raise ValueError(
                f"states must lie in [0, {K}); got {states.min()} to {states.max()}."
            )
        return self._vertex(states.astype(np.int64))

    def decode(self, vertex: np.ndarray) -> Any:
        """Return the sequence of states of a vertex."""
        return self._states(vertex).argmax(axis=1)

    def maximise(self, scores: ArrayLike) -> np.ndarray:
        """Return the best sequence (Viterbi); of equal ones the earlier states."""
        unary, pairs = self._split(np.asarray(scores, dtype=np.float64))
        return self._vertex(_viterbi(unary, pairs))

    def nearest(self, point: np.ndarray) -> np.ndarray:
        """Return the sequence of the most probable state at each position."""
        return self._vertex(self._states(point).argmax(axis=1))

    def loss_coefficients(self, vertex: np.ndarray) -> tuple[np.ndarray, float]:
        """Return v and c of the share of wrong positions."""
        v = np.zeros(len(vertex))
        n = len(vertex) - self.n_shared
        v[:n] = -vertex[:n] * self.n_scores / n
        return v, 1.0

    def log_partition(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of the partition functions, and the marginals.

        Parameters
        ----------
        scores : ndarray of shape (n_laws, D)
            Several laws on sequences of one length.
        """
        unary, pairs = self._split(scores)
        forward = _messages(unary, pairs)
        backward = _messages(unary[:, ::-1], pairs.transpose(0, 2, 1))[:, ::-1]
        total = logsumexp(forward[:, -1], axis=1)
        states = np.exp(forward + backward - unary - total[:, None, None])
        steps = np.zeros_like(pairs)
        if unary.shape[1] > 1:
            logarithms = (
                forward[:, :-1, :, None] + backward[:, 1:, None, :] + pairs[:, None]
            )
            steps = np.exp(logarithms - total[:, None, None, None]).sum(axis=1)
        flat = len(scores), -1
        return total, np.concatenate(
            [states.reshape(flat), steps.reshape(flat)], axis=1
        )

    def sample(self, scores: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Return a sequence drawn from the law of the scores, exactly."""
        unary, pairs = self._split(np.asarray(scores, dtype=np.float64)[None])
        forward = _messages(unary, pairs)[0]
        uniforms = rng.random(len(forward))
        states = np.empty(len(forward), dtype=np.int64)
        for i in range(len(forward) - 1, -1, -1):
            logarithms = forward[i]
            if i + 1 < len(forward):
                logarithms = logarithms + pairs[0][:, states[i + 1]]
            chances = np.cumsum(np.exp(logarithms - logarithms.max()))
            place = np.searchsorted(chances, uniforms[i] * chances[-1], side="right")
            states[i] = min(int(place), len(chances) - 1)
        return self._vertex(states)

    def squared_reach(self, norms: np.ndarray) -> float:
        """Return half the largest squared gradient of a row with positions so long."""
        return float(np.sum(norms)) ** 2 + (len(norms) - 1.0) ** 2

    def _split(self, scores):
        K = self.n_scores
        lead = scores.shape[:-1]
        n = scores.shape[-1] - self.n_shared
        return scores[..., :n].reshape(*lead, -1, K), scores[..., n:].reshape(
            *lead, K, K
        )

    def _states(self, vertex):
        return np.asarray(vertex)[: -self.n_shared].reshape(-1, self.n_scores)

    def _vertex(self, states):
        K, n = self.n_scores, len(states)
        vertex = np.zeros(n * K + K * K)
        vertex[np.arange(n) * K + states] = 1.0
        np.add.at(vertex, n * K + states[:-1] * K + states[1:], 1.0)
        return vertex


def _messages(unary, pairs):
    """Return logarithms of the sums over all beginnings, (n_laws, n, K)."""
    result = np.empty_like(unary)
    result[:, 0] = unary[:, 0]
    # Exponentials, each shifted by its maximum, are multiplied as matrices.
    top = pairs.max(axis=(1, 2))
    steps = np.exp(pairs - top[:, None, None])
    for i in range(1, unary.shape[1]):
        before = result[:, i - 1]
        shift = before.max(axis=1)
        sums = np.matmul(np.exp(before - shift[:, None])[:, None], steps)[:, 0]
        with np.errstate(divide="ignore"):
            logarithms = np.log(sums)
        if sums.min() < 1e-250:
            # Scores so far apart that products underflow.
            logarithms = logsumexp(before[:, :, None] + pairs, axis=1)
            shift, top_here = np.zeros(len(before)), 0.0
        else:
            top_here = top
        result[:, i] = logarithms + (shift + top_here)[:, None] + unary[:, i]
    return result


def _viterbi(unary, pairs):
    """Return the states of the best path."""
    n = len(unary)
    score, back = unary[0], np.empty((n, unary.shape[1]), dtype=np.int64)
    for i in range(1, n):
        sums = score[:, None] + pairs
        back[i] = sums.argmax(axis=0)
        score = sums.max(axis=0) + unary[i]
    states = np.empty(n, dtype=np.int64)
    states[-1] = int(score.argmax())
    for i in range(n - 1, 0, -1):
        states[i - 1] = back[i, states[i]]
    return states


def best_vertex(structure, scores):
    """Return what an oracle says, whatever it does to its input and to its output."""
    return np.array(structure.maximise(np.array(scores)), dtype=np.float64)


def check_structure(structure, rng, n_positions=3):
    """Refuse structures whose oracle or constants are seen to be wrong.

    A sample of vertices is compared in pairs: what it shows to be wrong is.
    """
    name = type(structure).__name__
    dimension = structure.n_outputs
    if dimension is None:
        dimension = n_positions * structure.n_scores + structure.n_shared
    scores = rng.normal(size=(12, dimension))
    found = []
    for theta in scores:
        vertex = best_vertex(structure, theta)
        if vertex.shape != (dimension,):
            raise ValueError(
                f"{name}.maximise must return a vertex of shape ({dimension},); got "
                f"{vertex.shape}."
            )
        if structure.n_outputs is not None and not np.isin(vertex, (0.0, 1.0)).all():
            raise ValueError(
                f"{name}.maximise must return zeros and ones; got {vertex!r}."
            )
        if structure.size is not None and vertex.sum() != structure.size:
            raise ValueError(
                f"{name}.size is {structure.size}, but maximise returned a vertex with "
                f"{int(vertex.sum())} ones."
            )
        found.append(vertex)
    vertices = np.unique(found, axis=0)
    reached = np.einsum("ij,ij->i", scores, found)
    best = (scores @ vertices.T).max(axis=1)
    if (reached < best - 1e-9 * (1.0 + np.abs(best))).any():
        raise ValueError(
            f"{name}.maximise does not return the best vertex: another one that it "
            "returned for other scores has a larger inner product."
        )
    crf = hasattr(structure, "log_partition")
    for y in vertices:
        v, c = structure.loss_coefficients(y)
        losses = vertices @ v + c
        if not (losses.min() >= -1e-9 and losses.max() <= 1.0 + 1e-9):
            raise ValueError(
                f"{name}.loss_coefficients must give losses in [0, 1]; got "
                f"{losses.min():g} to {losses.max():g}."
            )
        if abs(y @ v + c) > 1e-9:
            raise ValueError(
                f"{name}.loss_coefficients must give the loss 0 to the target; got "
                f"{y @ v + c:g}."
            )
        if crf:
            continue
        distances = np.linalg.norm(vertices - y, axis=1)
        others = distances[distances > 0.0]
        if others.min(initial=inf) < structure.separation * (1.0 - 1e-9):
            raise ValueError(
                f"{name}.separation is {structure.separation:g}, but two vertices are "
                f"only {others.min():g} apart."
            )
        if (losses > structure.lipschitz * distances + 1e-9).any():
            raise ValueError(
                f"{name}.lipschitz is {structure.lipschitz:g}, but a loss is larger "
                "than this times the distance to the target."
            )
