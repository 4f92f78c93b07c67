"""Slow reference for online structured prediction with Fenchel-Young losses.

Sakaue, Bao, Tsuchiya and Oki, "Online structured prediction with Fenchel-Young losses
and improved surrogate regret for online multiclass classification with logistic loss"
(COLT 2024); theorem and section numbers are the paper's. Output sets are enumerated,
projections are solved over convex combinations of vertices, laws of randomized outputs
are summed outcome by outcome. Nothing is imported from the package under test.

Output sets Y, given by their vertices in R^D, with the loss L(.; y), affine in the
prediction and zero at y:

=============  ================================  ==============================
structure      vertices                          L
=============  ================================  ==============================
simplex        unit vectors of n classes, D = n  1 - <y', y>
cube           {0, 1}^n, D = n                   Hamming distance / n
chain          first k entries 1, k = 0..D       |k' - k| / D
permutahedron  permutations of 1..n, D = n       <y, y - y'> / (n (n^2 - 1) / 6)
birkhoff       permutation matrices, D = n * n   misplaced items / n
=============  ================================  ==============================

The norm of Assumption 2.1 is l1 for the simplex and the Birkhoff polytope, l2 for the
others; the sparsemax loss on the simplex uses l2 (argument ``loss`` of the decoding
functions: it changes the mixing probability of Algorithm 1, not the nearest vertex).
Scores are in natural units: a loss scale c multiplies S and its gradient only.
"""

from functools import cache
from itertools import permutations, product
from math import isqrt, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax, xlogy

# ---------------------------------------------------------------- output sets


@cache
def _vertices(structure, n):
    if structure == "simplex":
        V = np.eye(n)
    elif structure == "cube":
        V = np.array(list(product([0.0, 1.0], repeat=n)))
    elif structure == "chain":
        V = np.array([[float(i < k) for i in range(n)] for k in range(n + 1)])
    elif structure == "permutahedron":
        V = np.array(list(permutations(np.arange(1.0, n + 1))))
    elif structure == "birkhoff":
        V = np.array([np.eye(n)[list(p)].ravel() for p in permutations(range(n))])
    else:
        raise ValueError(structure)
    V.setflags(write=False)
    return V


def vertices(structure, n):
    """All vertices as rows; cube and permutahedron in lexicographic order."""
    return _vertices(structure, int(n))


def _size(structure, dimension):
    """The argument n of `vertices` for vectors of this length."""
    return isqrt(dimension) if structure == "birkhoff" else dimension


def _order(structure, loss=None):
    """Exponent of the norm of Assumption 2.1."""
    if structure == "birkhoff" or (structure == "simplex" and loss != "sparsemax"):
        return 1
    return 2


def _separation(structure, loss=None):
    """Smallest distance nu between two vertices."""
    if structure == "simplex":
        return 2.0 if _order(structure, loss) == 1 else sqrt(2.0)
    return {"cube": 1.0, "chain": 1.0, "permutahedron": sqrt(2.0), "birkhoff": 4.0}[
        structure
    ]


def target_loss(structure, y_hat, y):
    """L(y_hat; y); y_hat may be any point of the convex hull."""
    y_hat, y = np.asarray(y_hat, dtype=float), np.asarray(y, dtype=float)
    n = _size(structure, len(y))
    if structure == "simplex":
        return float(y_hat @ (1.0 - y))
    if structure in ("cube", "chain"):
        return float(y_hat.sum() + y.sum() - 2.0 * y_hat @ y) / n
    if structure == "permutahedron":
        return float(y @ (y - y_hat)) / (n * (n**2 - 1) / 6)
    return float(y_hat @ (1.0 - y)) / n


# ---------------------------------------------------------------- Fenchel-Young losses


def _project(V, theta):
    """Nearest point of conv(V) to theta: Wolfe's active set over convex weights."""
    scale = (1.0 + np.max(np.abs(V))) * (1.0 + np.max(np.abs(V - theta)))
    support = [int(np.argmin(np.sum((V - theta) ** 2, axis=1)))]
    weight, tried = np.array([1.0]), set()
    while True:
        u = weight @ V[support]
        slack = (V - u) @ (u - theta)  # all >= 0 at the projection
        new = int(np.argmin(slack))
        done = slack[new] >= -1e-14 * scale
        if done or new in support or frozenset(support) in tried:
            if slack[new] < -1e-11 * scale:
                raise RuntimeError("projection stalled before it converged")
            return u
        tried.add(frozenset(support))
        support, weight = [*support, new], np.append(weight, 0.0)
        while True:
            # Nearest point of the affine hull of the support.
            edges = V[support[1:]] - V[support[0]]
            rest = np.linalg.lstsq(edges.T, theta - V[support[0]], rcond=None)[0]
            affine = np.append(1.0 - rest.sum(), rest)
            if np.all(affine > 1e-14):
                weight = affine
                break
            # Walk towards it until weights vanish; drop them and try again.
            falling = affine <= 1e-14
            room = weight[falling] / np.maximum((weight - affine)[falling], 1e-300)
            weight = weight + min(1.0, room.min()) * (affine - weight)
            keep = weight > 1e-14
            support = [v for v, kept in zip(support, keep, strict=True) if kept]
            weight = weight[keep] / weight[keep].sum()


def _sinkhorn(theta, mu):
    """Matrix exp(mu theta_ij + f_i + g_j) with unit row and column sums.

    Sinkhorn sweeps in the log domain; after each, a Newton step on the dual potentials
    is kept if it helps (it does near the solution, where sweeps can be slow).
    """
    n = isqrt(len(theta))
    K = mu * np.reshape(theta, (n, n))
    f, g = np.zeros(n), np.zeros(n)

    def plan(f, g):
        return np.exp(K + f[:, None] + g)

    def errors(P):
        return np.concatenate([P.sum(axis=1) - 1.0, P.sum(axis=0) - 1.0])

    best, stalled = np.inf, 0
    for _ in range(10000):
        f = -logsumexp(K + g, axis=1)
        g = -logsumexp(K + f[:, None], axis=0)
        P = plan(f, g)
        rows, columns = np.diag(P.sum(axis=1)), np.diag(P.sum(axis=0))
        hessian = np.block([[rows, P], [P.T, columns]])
        step = np.linalg.lstsq(hessian, -errors(P), rcond=None)[0]
        if np.max(np.abs(step)) < 1.0:
            newton = plan(f + step[:n], g + step[n:])
            if np.max(np.abs(errors(newton))) < np.max(np.abs(errors(P))):
                f, g, P = f + step[:n], g + step[n:], newton
        error = np.max(np.abs(errors(P)))
        stalled = 0 if error < best else stalled + 1
        best = min(best, error)
        if error <= 1e-15 * n or (error <= 1e-14 * n and stalled >= 3):
            return P.ravel()
    raise RuntimeError("Sinkhorn did not converge")


def prediction(structure, loss, theta, mu=1.0):
    """Regularised prediction, the maximiser of <theta, u> - Omega(u) over conv(Y)."""
    theta = np.asarray(theta, dtype=float)
    if loss == "logistic":
        return np.exp(theta - logsumexp(theta))
    if loss == "sigmoid":
        return expit(theta)
    if loss == "entropic":
        return _sinkhorn(theta, mu)
    if structure == "cube":  # separates: the nearest point of [0, 1], per entry
        return np.array([min(max(value, 0.0), 1.0) for value in theta])
    return _project(vertices(structure, len(theta)), theta)


def regulariser(loss, u, mu=1.0):
    """Omega(u) for u in conv(Y)."""
    u = np.asarray(u, dtype=float)
    if loss == "logistic":
        return float(np.sum(xlogy(u, u)))
    if loss == "sigmoid":
        return float(np.sum(xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)))
    if loss == "entropic":
        return float(np.sum(xlogy(u, u))) / mu
    return 0.5 * float(u @ u)


def conjugate(structure, loss, theta, mu=1.0):
    """Omega*(theta): the maximum that `prediction` attains."""
    theta = np.asarray(theta, dtype=float)
    if loss == "logistic":
        return float(logsumexp(theta))
    if loss == "sigmoid":
        return float(np.sum(np.logaddexp(0.0, theta)))
    u = prediction(structure, loss, theta, mu)
    return float(theta @ u) - regulariser(loss, u, mu)


def surrogate(structure, loss, theta, y, mu=1.0):
    """Fenchel-Young loss Omega*(theta) + Omega(y) - <theta, y> (Definition 2.2)."""
    inner = float(np.dot(theta, y))
    return conjugate(structure, loss, theta, mu) + regulariser(loss, y, mu) - inner


# ---------------------------------------------------------------- decoding


def _distances(structure, V, u, loss=None):
    """Distances ||y - u|| of all vertices."""
    return np.linalg.norm(V - u, ord=_order(structure, loss), axis=1)


def _nearest_index(structure, u, loss=None):
    u = np.asarray(u, dtype=float)
    order = _order(structure, loss)
    V = vertices(structure, _size(structure, len(u)))
    powers = np.sum(np.abs(V - u) ** order, axis=1)
    # Vertices are listed so that the first of several nearest ones is the lowest class,
    # the vector with zeros at 1/2, or the ascending ranks with ties in index order.
    return int(np.flatnonzero(powers <= powers.min() + 1e-12)[0])


def nearest(structure, u):
    """Vertex nearest to u (Algorithm 1, line 2)."""
    return vertices(structure, _size(structure, len(u)))[_nearest_index(structure, u)]


def mixing_probability(structure, u, loss=None):
    """p = min(1, 2 ||y* - u|| / nu) of Algorithm 1."""
    V = vertices(structure, _size(structure, len(u)))
    distance = np.min(_distances(structure, V, np.asarray(u, dtype=float), loss))
    return min(1.0, 2.0 * float(distance) / _separation(structure, loss))


def coordinate_law(u):
    """Algorithm 1 on {0, 1}, entry by entry: probability of the output 1.

    For one bit y* = 1[u > 1/2] and p = min(1, 2 |y* - u|) = 2 min(u, 1 - u).
    """
    out = []
    for s in np.asarray(u, dtype=float):
        best = float(s > 0.5)
        p = 2.0 * abs(best - s)
        out.append((1.0 - p) * best + p * s)
    return np.array(out)


def decode_mean(structure, u, decoding, loss=None):
    """Mean of the output that is played when the regularised prediction is u."""
    u = np.asarray(u, dtype=float)
    if decoding == "argmax":
        return np.array(nearest(structure, u))
    if decoding == "sample":
        return u
    if decoding == "coordinatewise" and structure in ("cube", "chain"):
        return coordinate_law(u)
    if decoding != "randomized":
        raise ValueError(decoding)
    p = mixing_probability(structure, u, loss)
    return (1.0 - p) * nearest(structure, u) + p * u


def _transfers(u):
    """Transfers (j, k, probability) that turn (n, ..., 1) into u, sorted decreasing."""
    n = len(u)
    w = np.arange(n, 0.0, -1.0)
    records = []
    while True:
        below = [j for j in range(n) if u[j] < w[j] - 1e-12]
        if not below:
            return records
        j = below[-1]
        above = [k for k in range(j + 1, n) if u[k] > w[k] + 1e-12]
        if not above:
            return records
        k = above[0]
        amount = min(w[j] - u[j], u[k] - w[k])
        records.append((j, k, amount / (w[j] - w[k])))
        w[j] -= amount
        w[k] += amount


def _mean_law(structure, u):
    """Probabilities of the vertices for a random vertex with mean u."""
    V = vertices(structure, len(u))
    if structure == "simplex":
        return np.array(u)
    if structure == "cube":
        return np.prod(np.where(V == 1.0, u, 1.0 - u), axis=1)
    if structure == "chain":
        edges = np.concatenate([[1.0], u, [0.0]])
        return np.maximum(edges[:-1] - edges[1:], 0.0)
    # Permutahedron: independent swaps of positions (Hardy, Littlewood, Polya).
    order = np.argsort(-u, kind="stable")
    law = {tuple(range(len(u), 0, -1)): 1.0}
    for j, k, probability in _transfers(u[order]):
        after = {}
        for values, mass in law.items():
            swapped = list(values)
            swapped[j], swapped[k] = swapped[k], swapped[j]
            for outcome, chance in [
                (values, 1.0 - probability),
                (tuple(swapped), probability),
            ]:
                after[outcome] = after.get(outcome, 0.0) + mass * chance
        law = after
    out = np.zeros(len(V))
    for values, mass in law.items():
        y = np.empty(len(u))
        y[order] = values
        out[np.flatnonzero(np.all(V == y, axis=1))[0]] += mass
    return out


def decode_law(structure, u, decoding, loss=None):
    """Probabilities of all vertices for the output that is played."""
    u = np.asarray(u, dtype=float)
    point = np.zeros(len(vertices(structure, _size(structure, len(u)))))
    point[_nearest_index(structure, u)] = 1.0
    if decoding == "argmax":
        return point
    if structure == "birkhoff":
        raise NotImplementedError("only the mean of a random matching is determined")
    if decoding == "sample":
        return _mean_law(structure, u)
    if decoding == "coordinatewise" and structure in ("cube", "chain"):
        return _mean_law(structure, coordinate_law(u))
    if decoding != "randomized":
        raise ValueError(decoding)
    p = mixing_probability(structure, u, loss)
    return (1.0 - p) * point + p * _mean_law(structure, u)


def expected_loss(structure, u, y, decoding, loss=None):
    """E[L] of the played output; L is affine, so the mean is all that matters."""
    return target_loss(structure, decode_mean(structure, u, decoding, loss), y)


# ---------------------------------------------------------------- constants and bounds


@cache
def logistic_ratio():
    """r, the largest E[L] / (-ln sigma_y) of Algorithm 1 with the logistic loss.

    Attained with two classes at sigma_y = s < 1/2, where E[L] = 1 - 2 s^2.
    """
    s = brentq(lambda s: 4 * s**2 * log(s) + 1 - 2 * s**2, 0.3, 0.5, xtol=1e-15)
    return (1 - 2 * s**2) / -log(s)


@cache
def logistic_curvature():
    """beta, the largest ||sigma - e_y||_2^2 / (-ln sigma_y): 2 (1 - s)^2 / (-ln s)."""
    s = brentq(lambda s: 2 * s * log(s) + 1 - s, 0.1, 0.5, xtol=1e-15)
    return 2 * (1 - s) ** 2 / -log(s)


def constants(structure, loss, n, decoding, kind, mu=1.0):
    """Constants of Assumption 2.1 and the two ratios that make up every bound.

    ``ratio`` bounds E[L] / S for the decoding (infinite where no bound is known),
    ``curvature`` bounds ||u - y||_2^2 / S; both for the loss without scale.
    """
    nu, lam, kappa = _separation(structure, loss), 1.0, 1.0
    if structure == "simplex":
        gamma, diameter = 0.5, 2.0
        if loss == "sparsemax":
            gamma, diameter = sqrt((n - 1) / n), sqrt(2.0)
        elif kind == "sharp":
            kappa = sqrt(0.5)
    elif structure in ("cube", "chain"):
        gamma, diameter = 1 / sqrt(n), sqrt(n)
        lam = 4.0 if loss == "sigmoid" else 1.0
    elif structure == "permutahedron":
        gamma, diameter = sqrt(3 / (n * (n**2 - 1))), sqrt(n * (n**2 - 1) / 3)
    else:
        gamma, diameter, lam = 1 / (2 * n), 2.0 * n, 1 / (n * mu)
        kappa = 0.5 if kind == "sharp" else 1.0

    ratio, curvature = np.inf, 2 * kappa**2 / lam
    if decoding == "randomized":
        ratio = 4 * gamma / (lam * nu)  # Lemma 3.1
    elif decoding == "coordinatewise":
        ratio = 4 / (n * lam)  # Lemma 3.1 for each entry, averaged
    elif decoding == "sample" and loss == "logistic":
        ratio = 1.0  # 1 - s <= -ln s
    elif decoding == "sample" and loss == "sigmoid":
        ratio = 1.0 / n
    elif decoding == "sample" and loss == "entropic":
        ratio = mu / n  # mu S is the sum over rows of -ln u at the target
    if kind == "sharp" and loss == "logistic":
        curvature = logistic_curvature()
        if decoding == "randomized":
            ratio = logistic_ratio()
    if kind == "sharp" and loss == "sigmoid":
        curvature = logistic_curvature() / 2
        if decoding == "coordinatewise":
            ratio = logistic_ratio() / n
    if kind == "sharp" and loss == "entropic":
        curvature = min(curvature, mu * logistic_curvature())  # row by row
    return {
        "nu": nu,
        "gamma": gamma,
        "lam": lam,
        "kappa": kappa,
        "diameter": diameter,
        "ratio": ratio,
        "curvature": curvature,
    }


def brute_constants(structure, n, loss=None):
    """The constants nu, gamma, kappa and diameter from the vertices alone.

    gamma and kappa are suprema over differences v = y' - y with y' in conv(Y), and both
    ratios depend on the direction of v only, so the cone spanned by the vertices seen
    from y can replace conv(Y) - y. On a 0/1 polytope the signs of v are fixed by y, the
    l1 norm is linear on the cone, and the suprema are attained at its generators. For
    l2, scale every generator to L = 1: gamma is one over the length of the shortest
    vector in their convex hull.
    """
    V = vertices(structure, n)
    order = _order(structure, loss)
    nu, diameter, gamma, kappa = np.inf, 0.0, 0.0, 0.0
    for y in V:
        loss_at_zero = target_loss(structure, np.zeros(len(y)), y)
        c = np.array(
            [target_loss(structure, e, y) - loss_at_zero for e in np.eye(len(y))]
        )
        differences = [v - y for v in V if np.any(v != y)]
        lengths = [np.linalg.norm(v, ord=order) for v in differences]
        nu, diameter = min([nu, *lengths]), max([diameter, *lengths])
        for v, length in zip(differences, lengths, strict=True):
            gamma = max(gamma, c @ v / length)
            kappa = max(kappa, np.linalg.norm(v) / length)
        if order == 2:
            unit_loss = np.array([v / (c @ v) for v in differences])
            shortest = _project(unit_loss, np.zeros(len(y)))
            gamma = max(gamma, 1 / np.linalg.norm(shortest))
    return {"nu": nu, "gamma": gamma, "kappa": kappa, "diameter": diameter}


def gap_and_regularity(constant, scale, norm):
    """a and b of Assumption 4.1 for the loss c S, with ||x_t|| <= norm."""
    return 1 - constant["ratio"] / scale, scale * constant["curvature"] * norm**2


def theorem_bound(a, b, norm):
    """Theorem 4.2: surrogate regret in expectation against ||U||_F = norm."""
    if not a > 0:
        return np.inf
    m = min(0.5, a)
    return (1 - a) * b * norm**2 / (4 * (1 - m) * m)


def high_probability_bound(a, b, norm, gamma_d, delta, corrected=True):
    """Theorem 4.3: surrogate regret with probability 1 - delta; gamma_d is gamma D.

    The last display of Appendix F drops a factor 1 / (1 - a / 2) in front of ||U||^2;
    it is put back unless ``corrected=False``.
    """
    if not a > 0:
        return np.inf
    comparator = (1 - a) * b * norm**2
    if corrected:
        comparator /= 1 - a / 2
    return (comparator + gamma_d * log(1 / delta)) / a


# ---------------------------------------------------------------- learners


class _Log(dict):
    """What a learner did, round by round."""

    def __init__(self, structure, loss, decoding, scale, mu):
        super().__init__()
        self.problem = structure, loss, decoding, scale, mu
        for name in ("W", "theta", "u", "surrogate", "expected", "grad_sq"):
            self[name] = []

    def play(self, W, x, y):
        """Predict with W, note the losses, return the gradient of S without scale."""
        structure, loss, decoding, scale, mu = self.problem
        theta = W @ x
        u = prediction(structure, loss, theta, mu)
        gradient = np.outer(u - y, x)
        self["W"].append(W.copy())
        self["theta"].append(theta)
        self["u"].append(u)
        self["surrogate"].append(scale * surrogate(structure, loss, theta, y, mu))
        self["expected"].append(expected_loss(structure, u, y, decoding, loss))
        self["grad_sq"].append(scale**2 * np.sum(gradient**2))
        return gradient

    def finish(self, W, **state):
        """Append the last weights and the final state; lists become arrays."""
        self["W"].append(W.copy())
        return {name: np.array(values) for name, values in self.items()} | state


def ogd(X, Y, structure, loss, decoding, step, scale=1.0, mu=1.0):
    """Algorithm 2 with online gradient descent: W <- W - step (u - y) x^T."""
    log_ = _Log(structure, loss, decoding, scale, mu)
    W = np.zeros((Y.shape[1], X.shape[1]))
    for x, y in zip(X, Y, strict=True):
        W = W - step * log_.play(W, x, y)
    return log_.finish(W)


def _into_ball(W, radius):
    size = np.linalg.norm(W)
    return W if size <= radius else W * (radius / size)


def adaptive(X, Y, structure, loss, decoding, diameter, scale=1.0, mu=1.0):
    """Appendix E.1: steps B / sqrt(2 G_t) in the Frobenius ball of diameter B."""
    log_ = _Log(structure, loss, decoding, scale, mu)
    W, G = np.zeros((Y.shape[1], X.shape[1])), 0.0
    for x, y in zip(X, Y, strict=True):
        gradient = scale * log_.play(W, x, y)
        G += np.sum(gradient**2)
        if G > 0:
            W = _into_ball(W - diameter / sqrt(2 * G) * gradient, diameter / 2)
    return log_.finish(W, G=G)


def parameter_free(
    X, Y, structure, loss, decoding, g_max, wealth=1.0, scale=1.0, mu=1.0
):
    """Appendix E.2, after Cutkosky and Orabona (2018): W = v * wealth * V.

    The betting fraction v comes from online Newton steps, the direction V from AdaGrad
    in the unit ball; ``wealth_path`` has the wealth before each round and at the end.
    """
    log_ = _Log(structure, loss, decoding, scale, mu)
    V = np.zeros((Y.shape[1], X.shape[1]))
    v, A, Q = 0.0, 1.0, 0.0
    path = [wealth]
    for x, y in zip(X, Y, strict=True):
        z = v * wealth
        g = scale * log_.play(z * V, x, y) / g_max
        s = np.sum(g * V)
        zeta = s / (1 - s * v)
        wealth = wealth - s * z
        A += zeta**2
        v = min(max(v - 2 / (2 - log(3)) * zeta / A, -0.5), 0.5)
        Q += np.sum(g**2)
        if Q > 0:
            V = _into_ball(V - sqrt(2 / Q) * g, 1.0)
        path.append(wealth)
    state = {"wealth": wealth, "wealth_path": np.array(path), "v": v, "A": A, "Q": Q}
    return log_.finish(v * wealth * V, V=V, **state)


def dual_averaging(X, Y, structure, loss, decoding, step, scale=1.0, mu=1.0):
    """W_t = step / C_t^2 Z_t, Z_t minus the sum of past gradients (without scale).

    C_t is the largest row norm so far, row t included; the last entry of W has C_T.
    """
    log_ = _Log(structure, loss, decoding, scale, mu)
    Z, C2 = np.zeros((Y.shape[1], X.shape[1])), 0.0
    for x, y in zip(X, Y, strict=True):
        C2 = max(C2, x @ x)
        Z = Z - log_.play(step / C2 * Z if C2 > 0 else 0.0 * Z, x, y)
    return log_.finish(step / C2 * Z if C2 > 0 else 0.0 * Z, Z=Z, C2=C2)


# ---------------------------------------------------------------- feature streams


def standardized_stream(X, clip=3.0, intercept=True):
    """Each entry minus mean over standard deviation of its column so far, clipped.

    Row t counts among the rows so far; a column that has not varied yet gives 0.
    """
    X = np.asarray(X, dtype=float)
    out = np.zeros(X.shape)
    for t in range(len(X)):
        for i in range(X.shape[1]):
            seen = X[: t + 1, i]
            if np.any(seen != seen[0]):
                deviation = np.sqrt(np.mean((seen - np.mean(seen)) ** 2))
                value = (X[t, i] - np.mean(seen)) / deviation
                out[t, i] = min(max(value, -clip), clip)
    return np.column_stack([out, np.ones(len(X))]) if intercept else out


def first_magnitude_stream(X, clip=3.0, intercept=True):
    """Each entry over the magnitude of the first non-zero of its column, clipped."""
    X = np.asarray(X, dtype=float)
    out = np.zeros(X.shape)
    for t in range(len(X)):
        for i in range(X.shape[1]):
            seen = X[: t + 1, i]
            if np.any(seen != 0):
                value = X[t, i] / abs(seen[seen != 0][0])
                out[t, i] = min(max(value, -clip), clip)
    return np.column_stack([out, np.ones(len(X))]) if intercept else out


def robust_stream(X, clip=3.0, intercept=True):
    """Each entry by moments that outliers do not enter and that begin anew; and resets.

    Feature by feature, from the rules: moments of values clipped at ten deviations; 16
    values further away than five deviations, or 32 (looked at in every eighth row)
    within a quarter of one from their own mean, where each miss takes three hits back,
    put the moments of these values in place of the old ones. A value that repeats the
    one before is neither.
    """
    X = np.asarray(X, dtype=float)
    out, resets = np.zeros(X.shape), np.zeros(X.shape[1], dtype=int)
    for i, column in enumerate(X.T):
        N, mu, q, last = 0.0, 0.0, 0.0, np.nan
        counters = {"down": [0, []], "up": [0, []]}
        for t, x in enumerate(column):
            for name, needed in (("down", 32), ("up", 16)):
                sd = np.sqrt(q / N) if N else 0.0
                if N < 20 or sd == 0.0 or (name == "down" and i % 8 != t % 8):
                    continue
                if x == last:
                    continue
                count, values = counters[name]
                if name == "down":
                    hit = not values or abs(x - np.mean(values)) < sd / 4
                else:
                    hit = abs(x - mu) > 5 * sd
                if hit and count + 1 >= needed and np.ptp(values) > 0:
                    N, mu = float(len(values)), float(np.mean(values))
                    q = float(np.sum((np.array(values) - mu) ** 2))
                    counters = {"down": [0, []], "up": [0, []]}
                    resets[i] += 1
                elif hit:
                    counters[name] = [count + 1, [*values, x]]
                else:
                    count = max(count - 3, 0)
                    counters[name] = [count, values if count else []]
            sd = np.sqrt(q / N) if N else 0.0
            v = x
            if N >= 20 and sd > 0.0:
                v = min(max(x, mu - 10 * sd), mu + 10 * sd)
            N += 1.0
            change = v - mu
            mu += change / N
            q += change * (v - mu)
            if q > 0.0:
                out[t, i] = min(max((x - mu) / np.sqrt(q / N), -clip), clip)
            last = x
    return (np.column_stack([out, np.ones(len(X))]) if intercept else out), resets


def adapted_magnitude_stream(X, clip=3.0, intercept=True):
    """Each entry over a magnitude: the first one's, or half way to one unlike it."""
    X = np.asarray(X, dtype=float)
    out = np.zeros(X.shape)
    for i, column in enumerate(X.T):
        m = 0.0
        for t, x in enumerate(column):
            if x == 0.0:
                continue
            if m == 0.0:
                m = abs(x)
            elif abs(x) > 8 * m or 8 * abs(x) < m:
                m = np.exp(0.5 * (np.log(m) + np.log(abs(x))))
            out[t, i] = min(max(x / m, -clip), clip)
    return np.column_stack([out, np.ones(len(X))]) if intercept else out


# ---------------------------------------------------------------- mixture of experts


def mixture(
    Xt,
    Y,
    loss="logistic",
    decoding="randomized",
    experts=(1, 4, 16),
    share=1e-3,
    step=0.62,
    unit_rows=False,
):
    """Bayes mixture of dual-averaged gradient descent and AdaGrad experts.

    ``Xt`` is a stream that has been scaled already. Expert 0 is `dual_averaging`;
    expert m has one AdaGrad rate per feature, with multiplier ``experts[m - 1]``. The
    logistic loss mixes distributions over classes, with one weight per expert; the
    sigmoid loss mixes bits, with one weight per label and expert. Weights move towards
    1 / M by a share proportional to the probability of what was not seen.

    Per round: ``u`` (mixed), ``expert_u``, ``weights`` (those before the round and, at
    the end, after the last), ``expected``, ``surrogate``, ``surrogate0``, ``inner``.
    Final state: ``Z``, ``W``, ``G``, ``N``, ``C2``. With ``unit_rows``, for sparse
    streams, the AdaGrad experts see rows of length 1, have sums of their own, and a
    damping of .03. ``accounts``: loss, <gradient, weights> and gradients per expert.
    """
    Xt, Y = np.asarray(Xt, dtype=float), np.asarray(Y, dtype=float)
    structure = {"logistic": "simplex", "sigmoid": "cube"}[loss]
    p, d, M = Xt.shape[1], Y.shape[1], 1 + len(experts)
    Z, W, G = np.zeros((p, d)), [np.zeros((p, d)) for _ in experts], np.zeros(p)
    if unit_rows:
        G = np.zeros((len(experts), p))
    accounts = [[0.0, 0.0, np.zeros((p, d))] for _ in range(M)]
    w = np.full(M if loss == "logistic" else (d, M), 1 / M)
    total, C2, N = 0.0, 0.0, 0.0
    names = ("u", "expert_u", "weights", "expected", "surrogate", "surrogate0", "inner")
    out = {name: [] for name in names}

    for t, (x, y) in enumerate(zip(Xt, Y, strict=True), start=1):
        total += x @ x
        N, C2 = total / t, max(C2, x @ x)
        f = 1 / sqrt(N) if N > 0 else 0.0
        if unit_rows:
            f = 1 / np.linalg.norm(x) if x.any() else 0.0
        scores = [step / C2 * Z.T @ x if C2 > 0 else np.zeros(d)]
        scores += [f * Wm.T @ x for Wm in W]

        # Predictions, and log-probabilities of what is seen: (M,) or (d, M).
        if loss == "logistic":
            sigma = [softmax(theta) for theta in scores]
            u = sum(w[m] * sigma[m] for m in range(M))
            seen = np.array([log_softmax(theta)[np.argmax(y)] for theta in scores])
        else:
            sigma = [expit(theta) for theta in scores]
            u = sum(w[:, m] * sigma[m] for m in range(M))
            seen = np.array([log_expit((2 * y - 1) * theta) for theta in scores]).T
        mixed = logsumexp(seen, b=w, axis=-1)
        delta = [s - y for s in sigma]

        out["u"].append(u)
        out["expert_u"].append(np.array(sigma))
        out["weights"].append(w)
        out["expected"].append(expected_loss(structure, u, y, decoding, loss))
        out["surrogate"].append(-np.sum(mixed))
        out["surrogate0"].append(-np.sum(seen[..., 0]))
        out["inner"].append(delta[0] @ scores[0])
        for m in range(M):
            accounts[m][0] -= np.sum(seen[..., m])
            accounts[m][1] += delta[m] @ scores[m]
            accounts[m][2] += np.outer(x, delta[m])

        if C2 == 0:
            continue
        alpha = -share * np.expm1(mixed)[..., None]
        w = (1 - alpha) * w * np.exp(seen - mixed[..., None]) + alpha / M
        Z = Z - np.outer(x, delta[0])
        if experts and unit_rows:
            for m, rate in enumerate(experts):
                G[m] = G[m] + f**2 * x**2 * (delta[m + 1] @ delta[m + 1])
                coefficient = rate * f * x / np.sqrt(G[m] + 0.03 * f**2)
                W[m] = W[m] - np.outer(coefficient, delta[m + 1])
        elif experts:
            e = np.mean([delta_m @ delta_m for delta_m in delta[1:]])
            G = G + f**2 * x**2 * e
            for m, rate in enumerate(experts):
                coefficient = rate * f * x / np.sqrt(G + 2 * f**2)
                W[m] = W[m] - np.outer(coefficient, delta[m + 1])

    out["weights"].append(w)
    arrays = {name: np.array(values) for name, values in out.items()}
    state = {"Z": Z, "W": W, "G": G, "N": N, "C2": C2}
    return arrays | state | {"accounts": accounts}
