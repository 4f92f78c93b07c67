"""Structures of the user's own: oracles, laws, learning and guarantees."""

import pickle
from itertools import combinations, pairwise, product
from math import log, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference.fenchel_young import _project, logistic_curvature, logistic_ratio
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skbounds import FenchelYoungOnlineStructured
from skbounds.fenchel_young._sparsemap import project
from skbounds.fenchel_young.structures import (
    ChainCRF,
    KSubsets,
    SpanningTrees,
    Structure,
)

COMPLETE = [(i, j) for j in range(4) for i in range(j)]


class Matchings(Structure):
    """One-to-one assignments of rows to columns: an oracle from scipy."""

    def __init__(self, n):
        self.n, self.n_outputs, self.size = n, n * n, n

    def maximise(self, scores):
        vertex = np.zeros((self.n, self.n))
        vertex[linear_sum_assignment(np.reshape(scores, (self.n, self.n)), True)] = 1.0
        return vertex.ravel()


class Corners(Structure):
    """All vectors of zeros and ones."""

    n_outputs = 4

    def maximise(self, scores):
        return (np.asarray(scores) > 0.0).astype(float)


STRUCTURES = {
    "subsets": KSubsets(5, 2),
    "trees": SpanningTrees(COMPLETE),
    "matchings": Matchings(3),
    "corners": Corners(),
}


def all_vertices(structure):
    """Return all vertices, from what they are."""
    D = structure.n_outputs
    everything = np.array(list(product([0.0, 1.0], repeat=D)))
    if isinstance(structure, Corners):
        return everything
    some = everything[everything.sum(axis=1) == structure.size]
    if isinstance(structure, KSubsets):
        return some
    if isinstance(structure, Matchings):
        squares = some.reshape(-1, structure.n, structure.n)
        good = (squares.sum(axis=1) == 1).all(axis=1) & (squares.sum(axis=2) == 1).all(
            axis=1
        )
        return some[good]

    def connects(vertex):
        groups = {k: {k} for k in range(4)}
        for (i, j), chosen in zip(COMPLETE, vertex, strict=True):
            if chosen and groups[i] is not groups[j]:
                groups[i] |= groups[j]
                for k in groups[j]:
                    groups[k] = groups[i]
        return len(groups[0]) == 4

    return some[[connects(vertex) for vertex in some]]


by_structure = pytest.mark.parametrize("name", STRUCTURES)


def test_numbers_of_vertices():
    counts = {name: len(all_vertices(s)) for name, s in STRUCTURES.items()}
    # Cayley: 4^2 trees on four nodes.
    assert counts == {"subsets": 10, "trees": 16, "matchings": 6, "corners": 16}


@by_structure
def test_oracles_find_the_best_vertex(name):
    structure, V = STRUCTURES[name], all_vertices(STRUCTURES[name])
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.normal(size=structure.n_outputs) * 10.0 ** rng.uniform(-3, 3)
        vertex = structure.maximise(scores)
        assert (V == vertex).all(axis=1).any()
        assert_allclose(scores @ vertex, (V @ scores).max(), rtol=1e-12)


@by_structure
def test_constants(name):
    """nu, gamma, the most that can be wrong: against all vertices, and the hull."""
    structure, V = STRUCTURES[name], all_vertices(STRUCTURES[name])
    distances = np.linalg.norm(V[:, None] - V, axis=2)
    assert structure.separation <= distances[distances > 0].min() + 1e-12
    assert structure.most_wrong >= np.abs(V[:, None] - V).sum(axis=2).max()
    rng = np.random.default_rng(0)
    for y in V:
        v, c = structure.loss_coefficients(y)
        wrong = np.abs(V - y).sum(axis=1) / structure.most_wrong
        assert_allclose(V @ v + c, wrong, atol=1e-12)
        points = rng.dirichlet(np.full(len(V), 0.3), size=300) @ V
        far = np.linalg.norm(points - y, axis=1)
        assert (points @ v + c <= structure.lipschitz * far + 1e-12).all()


@by_structure
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
def test_projections_and_their_decompositions(name, scale):
    structure, V = STRUCTURES[name], all_vertices(STRUCTURES[name])
    rng = np.random.default_rng(1)
    for _ in range(25):
        theta = scale * rng.normal(size=structure.n_outputs)
        point, active, chances = project(structure.maximise, theta)
        tolerance = 1e-9 * (1.0 + scale)
        assert_allclose(point, _project(V, theta), atol=tolerance)
        assert (chances > 0.0).all() and abs(chances.sum() - 1.0) < 1e-12
        assert len(active) <= structure.n_outputs + 1
        assert all((V == vertex).all(axis=1).any() for vertex in active)
        assert_allclose(chances @ active, point, atol=1e-12)
        edges = active[1:] - active[0]
        assert np.linalg.matrix_rank(edges) == len(edges)
        # Optimality: no vertex is further ahead.
        assert ((V - point) @ (theta - point)).max() <= 1e-9 * (1.0 + scale**2)


@given(st.lists(st.floats(-50, 50), min_size=5, max_size=5), st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_projection_on_the_subsets(scores, k):
    """The closed form, and the random sets of that mean."""
    scores, structure = np.array(scores), KSubsets(5, k)
    point = structure.project(scores)
    assert_allclose(point, project(structure.maximise, scores)[0], atol=1e-6)
    assert abs(point.sum() - k) < 1e-9

    class Grid:
        def __init__(self, value):
            self.value = value

        def random(self):
            return self.value

    n = 400
    sets = np.array([structure.draw(point, Grid((i + 0.5) / n)) for i in range(n)])
    assert np.isin(sets, (0.0, 1.0)).all() and (sets.sum(axis=1) == k).all()
    assert_allclose(sets.mean(axis=0), point, atol=2.0 / n)


# ------------------------------------------------------------ chains


def chain_vertices(n, K):
    """Return all sequences, and their indicators and counts."""
    sequences = np.array(list(product(range(K), repeat=n)))
    vertices = []
    for states in sequences:
        counts = np.zeros((K, K))
        for a, b in pairwise(states):
            counts[a, b] += 1.0
        vertices.append(np.concatenate([np.eye(K)[states].ravel(), counts.ravel()]))
    return sequences, np.array(vertices)


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0, 800.0])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_chains_against_enumeration(n, scale):
    K = 3
    chain, rng = ChainCRF(K), np.random.default_rng(n)
    sequences, V = chain_vertices(n, K)
    theta = scale * rng.normal(size=(4, n * K + K * K))
    totals, points = chain.log_partition(theta)
    assert_allclose(totals, logsumexp(theta @ V.T, axis=1), rtol=1e-12, atol=1e-12)
    assert_allclose(points, softmax(theta @ V.T, axis=1) @ V, rtol=1e-9, atol=1e-12)
    for scores, point in zip(theta, points, strict=True):
        best = chain.maximise(scores)
        assert_array_equal(best, V[np.argmax(V @ scores)])
        assert_array_equal(chain.encode(chain.decode(best)), best)
        states = chain.decode(chain.nearest(point))
        law = softmax(V @ scores)
        marginals = [
            [law[sequences[:, i] == k].sum() for k in range(K)] for i in range(n)
        ]
        assert_array_equal(states, np.argmax(marginals, axis=1))
    for y, vertex in zip(sequences, V, strict=True):
        v, c = chain.loss_coefficients(vertex)
        assert_allclose(V @ v + c, (sequences != y).mean(axis=1), atol=1e-12)


def test_sequences_are_drawn_by_their_law():
    chain, rng = ChainCRF(2), np.random.default_rng(0)
    sequences, V = chain_vertices(3, 2)
    theta = rng.normal(size=3 * 2 + 4)
    law = softmax(V @ theta)
    n = 20_000
    drawn = np.array([chain.decode(chain.sample(theta, rng)) for _ in range(n)])
    codes = drawn @ [4, 2, 1]
    counts = np.bincount(codes, minlength=8)
    assert_array_equal(sequences @ [4, 2, 1], np.arange(8))
    # chi-square with 7 degrees of freedom: above 24.3 once in a thousand.
    assert ((counts - n * law) ** 2 / (n * law)).sum() < 24.3


def test_the_reach_of_chains():
    """Half the largest squared gradient difference, by all pairs of sequences."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 4):
        chain = ChainCRF(2)
        _, V = chain_vertices(n, 2)
        X = rng.normal(size=(n, 3))
        gradients = [
            np.concatenate([(X.T @ v[: 2 * n].reshape(n, 2)).ravel(), v[2 * n :]])
            for v in V
        ]
        gradients = np.array(gradients)
        largest = (np.linalg.norm(gradients[:, None] - gradients, axis=2) ** 2).max()
        reach = chain.squared_reach(np.linalg.norm(X, axis=1))
        assert 0.5 * largest <= reach + 1e-12
    # One position is the classifier's: half the squared distance of two unit vectors.
    assert ChainCRF(2).squared_reach(np.array([1.7])) == pytest.approx(1.7**2)


# ------------------------------------------------------------ learning


def make_sequences(n=60, seed=0, K=3):
    rng = np.random.default_rng(seed)
    W, A = 1.5 * rng.normal(size=(4, K)), 1.5 * rng.normal(size=(K, K))
    chain, X, y = ChainCRF(K), [], []
    for _ in range(n):
        x = rng.normal(size=(rng.integers(1, 6), 4))
        X.append(x)
        scores = np.concatenate([(x @ W).ravel(), A.ravel()])
        y.append(chain.decode(chain.sample(scores, rng)))
    return X, y


def make_rows(name, n=120, seed=0, noise=0.5):
    structure, rng = STRUCTURES[name], np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = X @ rng.normal(size=(3, structure.n_outputs))
    scores += noise * rng.gumbel(size=scores.shape)
    return X, np.array([structure.decode(structure.maximise(s)) for s in scores])


def chain_reference(X, y, step, experts, share, weight):
    """Learn a mixture over enumerated sequences, from the definitions.

    Weights are vectors over joint features (states and positions' features, then
    transitions); features are as given, with an intercept.
    """
    K, M = 3, 1 + len(experts)
    p = X[0].shape[1] + 1
    size = p * K + K * K
    Z, W = np.zeros(size), np.zeros((M, size))
    G, GB, q = np.zeros((M, p)), np.zeros(M), np.ones(M) / M
    norms, longest, largest = [], 0.0, 0.0
    totals = {"expected": 0.0, "surrogate": 0.0}
    S, inner, sums = np.zeros(M), np.zeros(M), np.zeros((M, size))
    for x, states, w in zip(X, y, weight, strict=True):
        n = len(x)
        x1 = np.hstack([x, np.ones((n, 1))])
        sequences, V = chain_vertices(n, K)
        joint = []
        for v in V:
            one_hot = v[: n * K].reshape(n, K)
            joint.append(np.concatenate([(x1.T @ one_hot).ravel(), v[n * K :]]))
        joint = np.array(joint)
        norms.extend(np.linalg.norm(x1, axis=1) ** 2)
        reach = np.linalg.norm(x1, axis=1).sum() ** 2 + (n - 1) ** 2
        longest = max(longest, w * reach)
        before, largest = largest, max(largest, w)
        if 0.0 < before < largest:
            q = q ** (before / largest)
            q /= q.sum()
        f = 1.0 / sqrt(np.mean(norms))
        factor = np.concatenate([np.full(p * K, f), np.ones(K * K)])
        W[0] = -step / longest * Z
        theta = np.array([joint @ W[0]] + [joint @ (factor * V_m) for V_m in W[1:]])
        P = softmax(theta, axis=1)
        own = int(np.flatnonzero((sequences == states).all(axis=1))[0])
        mixed = q @ P
        top = int(np.argmax(mixed))
        rate = min(1.0, 2.0 * (1.0 - mixed[top]))
        losses = (sequences != states).mean(axis=1)
        totals["expected"] += w * ((1 - rate) * losses[top] + rate * (mixed @ losses))
        totals["surrogate"] -= w * log(mixed[own])
        gradient = P @ joint - joint[own]
        S -= w * np.log(P[:, own])
        sums += w * gradient
        weights = np.vstack([W[:1], factor * W[1:]])
        inner += w * np.sum(weights * gradient, axis=1)
        power = w / largest
        alpha = share * power * (1.0 - mixed[own])
        posterior = q * P[:, own] ** power
        q = (1.0 - alpha) * posterior / posterior.sum() + alpha / M
        Z += w * gradient[0]
        for m, rate in enumerate(experts, start=1):
            g = w * gradient[m]
            part = f * g[: p * K].reshape(p, K)
            G[m] += (part**2).sum(axis=1)
            sizes = rate / np.sqrt(G[m] + 2.0 * (f * largest) ** 2)
            W[m, : p * K] -= (sizes[:, None] * part).ravel()
            GB[m] += (g[p * K :] ** 2).sum()
            W[m, p * K :] -= rate / sqrt(GB[m] + 2.0 * largest**2) * g[p * K :]
    return totals, q, S, inner, sums


@pytest.mark.parametrize("weighted", [False, True])
def test_chains_are_learnt_as_by_a_slow_reference(weighted):
    X, y = make_sequences()
    weight = np.ones(len(X))
    if weighted:
        weight = np.exp(np.random.default_rng(3).normal(size=len(X)))
    clf = FenchelYoungOnlineStructured(
        ChainCRF(3), experts=(1.0, 4.0), share=0.01, feature_scaling="none",
        random_state=0,
    ).partial_fit(X, y, sample_weight=weight)  # fmt: skip
    ratio = logistic_ratio() / (1.0 + log(1.0 - 0.01))
    assert clf._step_ == int(100 * 2 * (1 - ratio) / logistic_curvature()) / 100
    totals, q, S, inner, sums = chain_reference(
        X, y, clf._step_, (1.0, 4.0), 0.01, weight
    )
    assert_allclose(clf.expected_cumulative_loss_, totals["expected"], rtol=1e-9)
    assert_allclose(clf.cumulative_surrogate_loss_, totals["surrogate"], rtol=1e-9)
    assert_allclose(clf.expert_weights_, q, rtol=1e-7)
    for m, (losses, products, gradient) in enumerate(clf._linear_accounts()):
        assert_allclose(losses, S[m], rtol=1e-9)
        assert_allclose(products, inner[m], rtol=1e-8, atol=1e-9)
        assert_allclose(gradient, sums[m], rtol=1e-8, atol=1e-9)


@by_structure
def test_sparsemap_is_learnt_as_by_a_slow_reference(name):
    """Dual averaging on projections over all vertices, and Algorithm 1's law."""
    X, y = make_rows(name, n=50)
    structure = STRUCTURES[name]
    V = all_vertices(structure)
    clf = FenchelYoungOnlineStructured(
        structure, feature_scaling="none", random_state=0
    ).fit(X, y)
    ratio = 4.0 * structure.lipschitz / structure.separation
    scale = 2.0 * ratio if ratio >= 1.0 else 1.0
    assert clf.loss_scale_ == pytest.approx(scale)
    gap = 1.0 - ratio / scale
    assert_allclose(clf._step_, min(0.5, gap))
    Z, longest, expected, surrogate = np.zeros((V.shape[1], 4)), 0.0, 0.0, 0.0
    for x, vertex in zip(np.hstack([X, np.ones((50, 1))]), y, strict=True):
        longest = max(longest, x @ x)
        theta = -clf._step_ / longest * Z @ x
        u = _project(V, theta)
        distances = np.linalg.norm(V - u, axis=1)
        near = V[np.flatnonzero(distances <= distances.min() + 1e-12)]
        rate = min(1.0, 2.0 * distances.min() / structure.separation)
        wrong = np.abs(near - vertex).sum(axis=1) / structure.most_wrong
        average = (np.abs(V - vertex).sum(axis=1) / structure.most_wrong).astype(float)
        v, c = structure.loss_coefficients(vertex)
        if len(near) > 1 and rate < 1.0 and np.ptp(wrong) > 0:
            # Which of equally near outputs is played is the oracle's choice.
            wrong = np.array([v @ structure.nearest(u) + c])
        assert average.min() == 0.0
        expected += (1 - rate) * wrong[0] + rate * (v @ u + c)
        surrogate += (
            scale * 0.5 * (np.sum((vertex - theta) ** 2) - np.sum((u - theta) ** 2))
        )
        Z += np.outer(u - vertex, x)
    assert_allclose(clf.expected_cumulative_loss_, expected, rtol=1e-7)
    assert_allclose(clf.cumulative_surrogate_loss_, surrogate, rtol=1e-7)
    assert_allclose(clf.coef_[0], -clf._step_ / longest * Z, rtol=1e-6, atol=1e-8)


def streams():
    yield "chain", ChainCRF(3), *make_sequences()
    for name, structure in STRUCTURES.items():
        yield name, structure, *make_rows(name)


by_stream = pytest.mark.parametrize(
    ("structure", "X", "y"), [s[1:] for s in streams()], ids=[s[0] for s in streams()]
)


@by_stream
@pytest.mark.parametrize("decoding", ["randomized", "sample", "argmax"])
def test_plays_have_the_law_that_accounts_say(structure, X, y, decoding):
    clf = FenchelYoungOnlineStructured(structure, decoding=decoding, random_state=0)
    clf.fit(X, y)
    row = clf._check_rows(X[:1])[0]
    look = clf._look(row, None)
    rng = np.random.default_rng(0)
    n = 3000
    drawn, means = [], None
    for _ in range(n):
        vertex, means = clf._decode(look, rng)
        drawn.append(vertex)
    drawn = np.array(drawn)
    assert_allclose(
        drawn.mean(axis=0), means, atol=5 * drawn.std(axis=0).max() / sqrt(n)
    )
    if decoding == "sample":
        assert_allclose(means, look["point"])
    if decoding == "argmax":
        assert_array_equal(means, structure.nearest(look["point"]))


def best_comparator(clf, X, y, alpha):
    """Return a comparator that is good in hindsight (by its derivative-free loss)."""
    rng = np.random.default_rng(0)
    n_columns, n_scores = clf._state_["coef"].shape[1:]
    n_shared = clf._state_["shared"].shape[1]
    start = np.zeros(n_columns * n_scores + n_shared)

    def objective(flat):
        coef = flat[: n_columns * n_scores].reshape(n_scores, n_columns)
        shared = flat[n_columns * n_scores :] if n_shared else None
        return clf.comparator_loss(coef, X, y, shared=shared) + alpha * flat @ flat

    best = minimize(objective, start, method="L-BFGS-B", options={"maxiter": 3}).x
    best = best * rng.uniform(0.5, 1.5)
    coef = best[: n_columns * n_scores].reshape(n_scores, n_columns)
    return coef, best[n_columns * n_scores :] if n_shared else None


@by_stream
def test_bounds_and_certificates_hold(structure, X, y):
    """Regret against comparators fitted in hindsight, and against random ones."""
    X, y = X[:40], y[:40]
    clf = FenchelYoungOnlineStructured(structure, random_state=0).fit(X, y)
    assert clf.bound_valid_
    rng = np.random.default_rng(1)
    n_columns, n_scores = clf._state_["coef"].shape[1:]
    n_shared = clf._state_["shared"].shape[1]
    comparators = [best_comparator(clf, X, y, 1e-3)]
    for size in (0.0, 0.3, 2.0):
        shared = size * rng.normal(size=n_shared) if n_shared else None
        comparators.append((size * rng.normal(size=(n_scores, n_columns)), shared))
    for coef, shared in comparators:
        loss = clf.comparator_loss(coef, X, y, shared=shared)
        regret = clf.expected_cumulative_loss_ - loss
        norm = np.linalg.norm(coef)
        if shared is not None:
            norm = np.hypot(norm, np.linalg.norm(shared))
        certified = clf.surrogate_regret_certificate(coef=coef, shared=shared)
        assert regret <= certified + 1e-7
        assert certified <= clf.surrogate_regret_certificate(norm) + 1e-7
        assert regret <= clf.surrogate_regret_bound(norm) + 1e-9
        late = clf.surrogate_regret_certificate(coef=coef, shared=shared, delta=0.05)
        assert_allclose(late, certified + clf.draw_margin(0.05))
    ours = clf.coef_[-1], clf.shared_coef_[-1] if n_shared else None
    assert clf.comparator_loss(ours[0], X, y, shared=ours[1]) > 0.0


@pytest.mark.parametrize("kind", ["chain", "subsets"])
def test_an_adversary_beats_argmax_only(kind):
    """Fresh directions, and always a target that the deterministic rule avoids."""
    n = 250
    structure = ChainCRF(2) if kind == "chain" else KSubsets(2, 1)
    losses = {}
    for decoding in ("randomized", "argmax"):
        clf = FenchelYoungOnlineStructured(
            structure, decoding=decoding, feature_scaling="none", fit_intercept=False,
            random_state=0,
        )  # fmt: skip
        answers = []
        for t in range(n):
            x = np.zeros((1, n))
            x[0, t] = 1.0
            if t == 0:
                guess = np.zeros(1, int) if kind == "chain" else np.array([1, 0])
            else:
                guess = np.asarray(clf.predict([x] if kind == "chain" else x)[0])
            answer = 1 - guess
            answers.append(int(answer[0]))
            clf.partial_fit([x] if kind == "chain" else x, [answer])
        losses[decoding] = clf.expected_cumulative_loss_
        size = 5.0 / sqrt(2 * n)
        signs = 2.0 * np.array(answers) - 1.0
        coef = size * np.vstack([-signs, signs])
        if kind == "subsets":
            coef = -coef
        X = [np.eye(n)[t : t + 1] for t in range(n)] if kind == "chain" else np.eye(n)
        y = np.array(answers)[:, None]
        if kind == "subsets":
            y = np.hstack([y, 1 - y])
        regret = losses[decoding] - clf.comparator_loss(coef, X, y)
        if decoding == "randomized":
            assert regret <= clf.surrogate_regret_bound(np.linalg.norm(coef))
        else:
            assert losses[decoding] == n
            assert not clf.bound_valid_
    assert losses["randomized"] <= 0.55 * losses["argmax"]


@by_stream
def test_streams_may_be_cut_and_labels_may_be_late(structure, X, y):
    X, y = X[:30], y[:30]
    one = FenchelYoungOnlineStructured(structure, random_state=0)
    plays = one.play(X, y)
    two = FenchelYoungOnlineStructured(structure, random_state=0)
    three = FenchelYoungOnlineStructured(structure, random_state=0)
    two.partial_fit(X[:1], y[:1])
    three.partial_fit(X[:1], y[:1])
    for i in range(1, 30):
        assert_array_equal(two.learn_one(X[i], y[i]), plays[i])
        ticket = pickle.loads(pickle.dumps(three.play_one(X[i])))
        assert_array_equal(ticket.play, plays[i])
        assert three.n_open_tickets_ == 1
        three.learn_one(ticket, y[i])
    for other in (two, three):
        for key, array in one._state_.items():
            assert_array_equal(array, other._state_[key], err_msg=key)
    with pytest.raises(ValueError, match="was learnt before"):
        three.learn_one(ticket, y[-1])
    four = FenchelYoungOnlineStructured(structure, random_state=0)
    weight = np.tile([0.0, 1.0], 15)
    played = four.play(X, y, sample_weight=weight)
    assert len(played) == 30 and four.n_samples_seen_ == 15
    five = FenchelYoungOnlineStructured(structure, random_state=0)
    five.partial_fit(X[1::2], y[1::2])
    for key, array in four._state_.items():
        assert_allclose(array, five._state_[key], rtol=1e-12, err_msg=key)
    passes = clone(one).set_params(max_iter=2, verbose=0).fit(X, y)
    assert passes.n_samples_seen_ == 30 and passes.n_iter_ == 2
    assert_allclose(
        passes.expected_cumulative_loss_, one.expected_cumulative_loss_, rtol=1e-12
    )


@by_stream
def test_sparse_rows(structure, X, y):
    """As dense ones where features are as they are; and scaled, in any units."""
    X, y = X[:30], y[:30]
    rng = np.random.default_rng(0)
    if isinstance(X, list):
        X = [np.where(rng.random(x.shape) < 0.5, x, 0.0) for x in X]
        rows = [sp.csr_matrix(x) for x in X]
        scaled = [sp.csr_matrix(x * [1e-3, 1.0, 1e5, 7.0]) for x in X]
    else:
        X = np.where(rng.random(X.shape) < 0.5, X, 0.0)
        rows, scaled = sp.csr_matrix(X), sp.csr_matrix(X * [1e-3, 1.0, 1e5])
    raw = {"learner": "dual", "feature_scaling": "none", "random_state": 0}
    dense = FenchelYoungOnlineStructured(structure, **raw).fit(X, y)
    sparse = FenchelYoungOnlineStructured(structure, **raw).fit(rows, y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(sparse.score(rows, y), dense.score(X, y))
    one = FenchelYoungOnlineStructured(structure, random_state=0).fit(rows, y)
    two = FenchelYoungOnlineStructured(structure, random_state=0).fit(scaled, y)
    assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)
    for a, b in zip(
        one.predict_marginals(rows), two.predict_marginals(scaled), strict=True
    ):
        assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    coef = rng.normal(size=one._state_["coef"].shape[1:]).T
    loss = one.comparator_loss(coef, rows, y)
    assert one.expected_cumulative_loss_ - loss <= one.surrogate_regret_certificate(
        coef=coef
    )


def test_positions_that_share_their_weights():
    """Edges with features of their own: one weight vector for all of them."""
    rng = np.random.default_rng(0)
    trees = SpanningTrees(COMPLETE)
    w = np.array([1.0, -2.0, 0.5])
    X = [rng.normal(size=(6, 3)) for _ in range(200)]
    y = [trees.maximise(x @ w) for x in X]
    learner = FenchelYoungOnlineStructured(trees, random_state=0).fit(X, y)
    assert learner.coef_.shape == (1, 1, 4)
    direction = learner.coef_[0, 0, :3]
    assert direction @ w > 0.95 * np.linalg.norm(direction) * np.linalg.norm(w)
    assert learner.score(X, y) > 0.9


def test_chains_come_near_the_law_that_made_them():
    """Half a thousand short sequences: within .03 of the right answers' share."""
    rng = np.random.default_rng(0)
    W, A = 1.5 * rng.normal(size=(4, 3)), 1.5 * rng.normal(size=(3, 3))
    X, y = make_sequences(1000)
    crf = ChainCRF(3)
    right = []
    for x, states in zip(X[500:], y[500:], strict=True):
        scores = np.concatenate([(x @ W).ravel(), A.ravel()])[None]
        best = crf.decode(crf.nearest(crf.log_partition(scores)[1][0]))
        right.append(np.mean(best == states))
    clf = FenchelYoungOnlineStructured(crf, random_state=0).fit(X[:500], y[:500])
    assert clf.score(X[500:], y[500:]) > np.mean(right) - 0.03


# ------------------------------------------------------------ what is refused


class Broken(Corners):
    def __init__(self, **changes):
        self.changes = changes

    def __getattribute__(self, name):
        changes = object.__getattribute__(self, "__dict__").get("changes", {})
        if name in changes:
            return changes[name]
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"maximise": lambda s: np.zeros(3)}, r"shape \(4,\)"),
        ({"maximise": lambda s: np.full(4, 0.5)}, "zeros and ones"),
        ({"maximise": lambda s: (s < 0.0) * 1.0}, "not return the best vertex"),
        ({"separation": 2.0}, "separation is 2"),
        ({"lipschitz": 0.01}, "lipschitz is 0.01"),
        ({"loss_coefficients": lambda y: (np.ones(4), 0.0)}, r"losses in \[0, 1\]"),
        ({"loss_coefficients": lambda y: (np.zeros(4), 0.5)}, "loss 0 to the target"),
    ],
)
def test_structures_that_are_wrong_are_refused(changes, message):
    X, y = make_rows("corners")
    clf = FenchelYoungOnlineStructured(Broken(**changes), random_state=0)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y)
    assert not hasattr(clf, "_state_")


def test_structures_that_cannot_be():
    for call, message in [
        (lambda: KSubsets(4, 4), "k must be a whole number"),
        (lambda: ChainCRF(1), "n_states must be a whole"),
        (lambda: SpanningTrees([(0, 1), (0, 1)]), "nor repeat"),
        (lambda: SpanningTrees([(0, 1), (2, 3), (2, 4)]), "connect all"),
        (lambda: SpanningTrees([(0, 1), (1, 2)]), "is a tree"),
        (lambda: SpanningTrees([0, 1]), "pairs of node numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert repr(KSubsets(5, 2)) == "KSubsets(n_items=5, k=2)"
    assert repr(ChainCRF(3)) == "ChainCRF(n_states=3)"
    assert repr(SpanningTrees(COMPLETE)) == "SpanningTrees(6 edges, 4 nodes)"


def test_input_that_is_refused():
    X, y = make_rows("subsets")
    sequences, states = make_sequences()
    pairs, chain = KSubsets(5, 2), ChainCRF(3)

    def make(structure, **params):
        return FenchelYoungOnlineStructured(structure, random_state=0, **params)

    fitted = make(pairs).fit(X, y)
    for call, message in [
        (lambda: make(pairs).fit(X, y[:-1]), "inconsistent numbers"),
        (lambda: make(pairs).fit(X, None), "requires y"),
        (lambda: make(pairs).fit(X, np.ones_like(y)), "must have 2 ones"),
        (lambda: make(pairs).fit(X, y[:, :4]), "5 zeros and ones"),
        (lambda: make(pairs, loss="crf").fit(X, y), "log_partition"),
        (lambda: make(pairs, learner="mixture").fit(X, y), "needs loss='crf'"),
        (lambda: make(chain).fit(X, y), "list of matrices"),
        (lambda: make(chain, loss="sparsemap").fit(sequences, states), "one length"),
        (lambda: make(chain, experts=[-1]).fit(sequences, states), "experts must be"),
        (lambda: make(chain).fit(sequences, [s[:-1] for s in states]), "scores|seq"),
        (lambda: make(chain).fit(sequences, [s + 1 for s in states]), r"lie in \[0, 3"),
        (lambda: make(chain).fit([np.zeros((0, 4))], [[]]), "one position"),
        (lambda: make(chain).fit([x[:, : 1 + (len(x) > 2)] for x in sequences], states),
         "as many features"),
        (lambda: fitted.predict(sequences), "several positions"),
        (lambda: fitted.predict(sp.csr_matrix(X)), "dense or sparse"),
        (lambda: fitted.predict(X[:, :2]), "features"),
        (lambda: fitted.partial_fit(X * np.nan, y), "NaN"),
        (lambda: fitted.play_one(X[0], sample_weight=-1.0), "sample_weight"),
        (lambda: fitted.surrogate_regret_certificate(), "give norm or coef"),
        (lambda: fitted.surrogate_regret_certificate(coef=np.ones((2, 2))), "shape"),
        (lambda: fitted.error_interval(2.0), "confidence"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotFittedError):
        make(pairs).predict(X)
    with pytest.raises(TypeError, match="structure"):
        FenchelYoungOnlineStructured()
    with pytest.raises(ValueError, match="'structure' parameter"):
        make("pairs").fit(X, y)
    before = {key: array.copy() for key, array in fitted._state_.items()}
    with pytest.raises(ValueError, match="must have 2 ones"):
        fitted.partial_fit(X, 1 - y)
    for key, array in before.items():
        assert_array_equal(array, fitted._state_[key])


def test_all_pairs_of_items_can_be_learnt():
    """A stream without noise is learnt, and mistakes are bounded (App. G.2)."""
    X, y = make_rows("subsets", n=1500, noise=0.0)
    learner = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0)
    plays = learner.play(X[:750], y[:750])
    first = learner.expected_cumulative_loss_
    learner.partial_fit(X[750:], y[750:])
    assert learner.expected_cumulative_loss_ - first < 0.75 * first
    assert plays.shape == (750, 5) and (plays.sum(axis=1) == 2).all()
    drawn = learner.predict_randomized(X[:200], random_state=0)
    assert_array_equal(drawn, learner.predict_randomized(X[:200], random_state=0))
    assert all(
        set(np.flatnonzero(p)) in map(set, combinations(range(5), 2)) for p in drawn
    )
    low, high = learner.error_interval()
    assert low <= learner.progressive_errors_ / 1500 <= high


# ------------------------------------------------------------ what others do


class Rude(KSubsets):
    """Changes what it is given, and gives out what it changes later."""

    project = draw = None

    def __init__(self):
        super().__init__(5, 2)
        self.buffer = np.zeros(5)

    def maximise(self, scores):
        self.buffer[:] = super().maximise(scores)
        scores *= -3.0
        return self.buffer

    def __getattribute__(self, name):
        if name in ("project", "draw"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_an_oracle_may_do_what_it_likes_with_its_arrays():
    X, y = make_rows("subsets")
    plain = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0).fit(X, y)
    rude = FenchelYoungOnlineStructured(Rude(), random_state=0).fit(X, y)
    assert_allclose(rude.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(
        rude.expected_cumulative_loss_, plain.expected_cumulative_loss_, rtol=1e-7
    )


@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
def test_large_scores_and_common_shifts(size):
    rng = np.random.default_rng(0)
    sets = KSubsets(20, 5)
    for _ in range(20):
        scores = rng.normal(size=20) * size
        point = sets.project(scores)
        assert_array_equal(point, sets.maximise(scores))
        found = project(sets.maximise, scores - scores.mean())[0]
        assert_allclose(found, point, atol=1e-6)
        near = rng.normal(size=20)
        exact = _project_on_sets(near, 5)
        assert_allclose(sets.project(near + size), exact, atol=1e-15 * size + 1e-12)


def _project_on_sets(scores, k):
    from scipy.optimize import brentq

    shift = brentq(
        lambda s: np.clip(scores - s, 0, 1).sum() - k,
        scores.min() - 2.0,
        scores.max() + 1.0,
        xtol=1e-15,
    )
    return np.clip(scores - shift, 0, 1)


class Failing(KSubsets):
    calls = 0

    def maximise(self, scores):
        type(self).calls += 1
        if type(self).calls == self.limit:
            raise RuntimeError("the oracle is out")
        return super().maximise(scores)

    def __getattribute__(self, name):
        if name in ("project", "draw"):
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_oracle_that_fails_changes_nothing(sparse):
    X, y = make_rows("subsets")
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    rows = sp.csr_matrix(X) if sparse else X
    Failing.limit, Failing.calls = -1, 0
    clf = FenchelYoungOnlineStructured(Failing(5, 2), random_state=0)
    clf.partial_fit(rows[:20], y[:20])
    before = {name: array.copy() for name, array in clf._state_.items()}
    calls = Failing.calls
    for later in (1, 2, 40):
        for call in (
            lambda: clf.partial_fit(rows[20:60], y[20:60]),
            lambda: clf.learn_one(rows[20], y[20]),
            lambda: clf.play_one(rows[20]),
        ):
            Failing.calls, Failing.limit = calls, calls + later
            try:
                call()
            except RuntimeError:
                for name, array in before.items():
                    assert_array_equal(clf._state_[name], array, err_msg=name)
                assert clf.n_open_tickets_ == 0
            else:
                assert later == 40
                clf._state_ = {name: array.copy() for name, array in before.items()}
                clf._tickets_.clear()


def test_a_ticket_keeps_its_row():
    X, y = make_rows("subsets")
    one = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0).fit(X, y)
    two = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0).fit(X, y)
    x = X[0].copy()
    ticket = one.play_one(x)
    x[:] = 100.0
    one.learn_one(ticket, y[0])
    two.learn_one(X[0], y[0])
    assert_array_equal(one.coef_, two.coef_)
    again = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="of another stream"):
        again.learn_one(two.play_one(X[1]), y[1])


def test_the_scaling_is_replayed_as_it_was():
    """Of a stream that changes its unit: the features that were learnt."""
    rng = np.random.default_rng(0)
    structure = KSubsets(5, 2)
    X = rng.normal(size=(1200, 4))
    X[300:] *= 1e-3
    y = [structure.maximise(s) for s in rng.normal(size=(1200, 5))]
    clf = FenchelYoungOnlineStructured(structure, random_state=0)
    seen, look = [], clf._look

    def record(row, weight, **options):
        result = look(row, weight, **options)
        seen.append(result["features"])
        return result

    clf._look = record
    clf.fit(X, y)
    del clf._look
    assert (clf.n_feature_resets_ > 0).all()
    U = 0.3 * rng.normal(size=(5, 5))
    total = sum(
        clf._respond((f @ U.T).ravel()[None], vertex)[0][0]
        for f, vertex in zip(seen, y, strict=True)
    )
    assert_allclose(clf.comparator_loss(U, X, y), clf._scale_ * total, rtol=1e-10)


def test_memory_maps_dataframes_and_odd_positions(tmp_path):
    import joblib

    pd = pytest.importorskip("pandas")
    X, y = make_rows("subsets")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0)
    clf.fit(frame, pd.DataFrame(y))
    plain = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0).fit(X, y)
    assert_array_equal(clf.coef_, plain.coef_)
    clf.learn_one(frame.iloc[0], y[0])
    with pytest.raises(ValueError, match="feature names"):
        clf.learn_one(frame.iloc[0][["b", "a", "c"]], y[0])
    path = tmp_path / "model.joblib"
    joblib.dump(plain, path)
    mapped = joblib.load(path, mmap_mode="r")
    mapped.learn_one(X[0], y[0])
    plain.learn_one(X[0], y[0])
    assert_array_equal(mapped.coef_, plain.coef_)
    X = [np.ones((5, 3))] * 4
    many = FenchelYoungOnlineStructured(KSubsets(5, 2), random_state=0)
    many.fit(X, y[:4])
    for call in (
        lambda: many.predict([np.ones((4, 3))]),
        lambda: many.play_one(np.ones((4, 3))),
        lambda: FenchelYoungOnlineStructured(KSubsets(5, 2)).fit(
            [np.ones((7, 3))], y[:1]
        ),
    ):
        with pytest.raises(ValueError, match="positions has"):
            call()


def test_a_wrong_size_is_refused():
    class Wrong(KSubsets):
        size = 3

        def __init__(self):
            self.n_outputs, self.k = 6, 2

        def maximise(self, scores):
            vertex = np.zeros(6)
            vertex[np.argsort(-scores)[:2]] = 1.0
            return vertex

    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="size is 3, but maximise returned"):
        FenchelYoungOnlineStructured(Wrong()).fit(X, [[1, 1, 1, 0, 0, 0]] * 4)


def test_the_step_does_not_depend_on_the_decoding():
    X, y = make_sequences(5)
    steps = {
        FenchelYoungOnlineStructured(ChainCRF(3), decoding=decoding).fit(X, y)._step_
        for decoding in ("randomized", "argmax", "sample")
    }
    assert steps == {0.62}


@pytest.mark.parametrize("decoding", ["randomized", "sample"])
def test_plays_of_weight_zero_do_not_depend_on_cuts(decoding):
    X, y = make_rows("subsets", 40)
    one, two = (
        FenchelYoungOnlineStructured(
            STRUCTURES["subsets"], decoding=decoding, random_state=0
        ).partial_fit(X[:2], y[:2])
        for _ in range(2)
    )
    plays = one.play(X, y, sample_weight=np.zeros(40))
    for i in range(40):
        assert_array_equal(two.learn_one(X[i], y[i], sample_weight=0.0), plays[i])
    # The same row is not always played the same way.
    same = one.play(np.repeat(X[:1], 40, axis=0), np.repeat(y[:1], 40, axis=0),
                    sample_weight=np.zeros(40))  # fmt: skip
    assert len({tuple(play) for play in same}) > 1
