"""Slow reference for bolstered (generalised resubstitution) error estimates.

Marcondes and Braga-Neto, "Generalized resubstitution for regression error estimation";
Braga-Neto and Dougherty, "Bolstered error estimation" (2004) for classification.
Everything is a loop over rows written from the definitions. Nothing is imported from
the package under test.

Notation: rows X_i in R^d with target Y_i, fitted predictor psi, kernel covariances S_i.
The estimate is the mean over i of E loss(Y_i, psi(X_i + u)), u ~ N(0, S_i), or, with
joint kernels on (X, Y), of E loss(y', psi(x')), (x', y') ~ N((X_i, Y_i), S_i).

Conventions:

* a scale sigma is a standard deviation, the covariance is sigma^2 times the shape;
* `predict` maps an array (N, d) to (N,) or (N, m); a loss maps (y, prediction) to (N,)
  and averages over the m outputs; y is one row's target or an array with N of them;
* `kernels` has shape (n, d, d), or (n, d + m, d + m) for the joint version;
* functions named `*_error` return the mean over the rows, weighted if asked to;
* a column is standardised with the standard deviation that divides by n.
"""

from itertools import combinations_with_replacement, pairwise, product
from math import atan2, cos, exp, inf, lgamma, log, pi, sin, sqrt

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, norm
from sklearn.base import clone

# ---------------------------------------------------------------- distances, scales


def chi_mean(d):
    """Mean length of a standard normal vector in d dimensions."""
    return sqrt(2.0) * exp(lgamma((d + 1) / 2) - lgamma(d / 2))


def chi_median(d):
    """Median length of a standard normal vector in d dimensions."""
    return sqrt(chi2.ppf(0.5, d))


def _columns(X):
    """Float array with two axes."""
    X = np.asarray(X, dtype=float)
    return X[:, None] if X.ndim == 1 else X


def _key(label):
    """Label as a plain Python object."""
    return label.item() if isinstance(label, np.generic) else label


def distance(a, b):
    """Euclidean distance of two rows."""
    total = 0.0
    for p, q in zip(a, b, strict=True):
        total += (float(p) - float(q)) ** 2
    return sqrt(total)


def nearest_distances(X, distinct=False):
    """Distance of each row to the nearest other one; inf where there is none.

    With `distinct`, rows equal to the row itself do not count as other ones.
    """
    X = _columns(X)
    n = len(X)
    result = []
    for i in range(n):
        best = inf
        for j in range(n):
            if j == i or (distinct and np.array_equal(X[i], X[j])):
                continue
            best = min(best, distance(X[i], X[j]))
        result.append(best)
    return np.array(result)


def mean_nearest_distance(X, distinct=False, weights=None):
    """Mean (weighted mean) nearest-neighbour distance; 0 if there is no neighbour."""
    near = nearest_distances(X, distinct)
    if np.isinf(near).any():
        return 0.0
    w = np.ones(len(near)) if weights is None else np.asarray(weights, dtype=float)
    total = 0.0
    for i in range(len(near)):
        total += w[i] * near[i]
    return float(total / w.sum())


def standardize(X):
    """Drop constant columns, centre and scale the others; also mask and scales."""
    X = _columns(X)
    kept = np.array([len(set(X[:, k].tolist())) > 1 for k in range(X.shape[1])])
    X = X[:, kept]
    scale = np.array([sqrt(np.mean((c - c.mean()) ** 2)) for c in X.T])
    return (X - X.mean(axis=0)) / scale, kept, scale


def mm_approx(
    X,
    center="mean",
    labels=None,
    distinct=False,
    dim=None,
    single="pooled",
    weights=None,
):
    """Approximate moment scale dbar / E[chi_d] (or the median of chi_d).

    d is the rank of the centred rows unless `dim` is given. With `labels`, a dict
    label -> scale with the distances taken inside the class. A class without
    neighbours takes the pooled dbar, or with `single="nearest"` the mean distance of
    its rows to the nearest row of any class.
    """
    X = _columns(X)
    if dim is None:
        dim = int(np.linalg.matrix_rank(X - X.mean(axis=0)))
    c = chi_mean(dim) if center == "mean" else chi_median(dim)
    if labels is None:
        return mean_nearest_distance(X, distinct, weights) / c
    labels = np.asarray(labels)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    scales = {}
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        inside = nearest_distances(X[rows], distinct)
        if np.isfinite(inside).all():
            dbar = mean_nearest_distance(X[rows], distinct, w[rows])
        elif single == "pooled":
            dbar = mean_nearest_distance(X, distinct, w)
        else:
            anywhere = nearest_distances(X, distinct)[rows]
            dbar = float(np.sum(w[rows] * anywhere) / w[rows].sum())
        scales[_key(label)] = dbar / c
    return scales


def mm_diag(X, distinct=False):
    """One scale per column: its own mean nearest distance / E[chi_1]."""
    X = _columns(X)
    return np.array(
        [mean_nearest_distance(column, distinct) / chi_mean(1) for column in X.T]
    )


def _expected_1d(x, s):
    """E min_j |Xhat - X_j|, Xhat ~ mean of N(X_i, s^2), by adaptive quadrature."""
    points = sorted(set(x.tolist()))
    cuts = points + [(a + b) / 2 for a, b in pairwise(points)]
    total = 0.0
    for mu in x:

        def integrand(t, mu=mu):
            near = min(abs(t - c) for c in points)
            return near * exp(-0.5 * ((t - mu) / s) ** 2) / (s * sqrt(2 * pi))

        low, high = mu - 12 * s, mu + 12 * s
        inner = [c for c in cuts if low < c < high]
        inner += [mu + k * s for k in range(-12, 13)]
        inner = sorted(set(inner))
        for a, b in pairwise(inner):
            total += quad(integrand, a, b, epsabs=1e-14, epsrel=1e-12)[0]
    return total / len(x)


def _expected_2d(X, s):
    """Return that mean in the plane, each cell of nearest points in polar form.

    Around a point c the cell reaches up to radius R(angle), the nearest bisector; the
    integrand is radius * density(c + radius * direction) * radius. R has kinks only
    in the directions of the circumcentres, where the angle is cut.
    """
    points = np.unique(X, axis=0)
    spread = max(distance(a, b) for a in points for b in points)
    nodes, node_weights = np.polynomial.legendre.leggauss(20)

    def density(z):
        values = np.zeros(len(z))
        for mu in X:
            values += np.exp(-((z - mu) ** 2).sum(axis=1) / (2 * s * s))
        return values / (len(X) * 2 * pi * s * s)

    total = 0.0
    for c in points:
        others = [p - c for p in points if not np.array_equal(p, c)]

        def along(angle, c=c, others=others):
            e = np.array([cos(angle), sin(angle)])
            reach = spread + 12 * s
            for v in others:
                if v @ e > 0:
                    reach = min(reach, (v @ v) / (2 * (v @ e)))
            pieces = int(reach / (2 * s)) + 2
            value = 0.0
            for k in range(pieces):
                a, b = reach * k / pieces, reach * (k + 1) / pieces
                r = (a + b) / 2 + (b - a) / 2 * nodes
                f = r**2 * density(c + r[:, None] * e)
                value += (b - a) / 2 * float(node_weights @ f)
            return value

        cuts = [2 * pi * k / 12 for k in range(13)]
        for v in others:
            for w in others:
                det = v[0] * w[1] - v[1] * w[0]
                if abs(det) > 1e-14:
                    p = ((v @ v) * w[1] - (w @ w) * v[1]) / (2 * det)
                    q = ((w @ w) * v[0] - (v @ v) * w[0]) / (2 * det)
                    cuts.append(atan2(q, p) % (2 * pi))
        cuts = sorted(set(cuts))
        for a, b in pairwise(cuts):
            if b - a > 1e-12:
                total += quad(along, a, b, epsabs=1e-11, epsrel=1e-10)[0]
    return total


def expected_nearest_distance(X, s):
    """E min_j |Xhat - X_j| with Xhat from the mixture of N(X_i, s^2 I), d = 1 or 2."""
    X = _columns(X)
    if X.shape[1] == 1:
        return _expected_1d(X[:, 0], float(s))
    if X.shape[1] == 2:
        return _expected_2d(X, float(s))
    raise ValueError("one or two columns only")


def expected_nearest_distance_nodes(X, s, nodes):
    """Return that mean with the normal law replaced by standard nodes (M, d)."""
    X = _columns(X)
    total = 0.0
    for mu in X:
        z = mu + s * nodes
        best = np.full(len(z), inf)
        for c in X:
            best = np.minimum(best, np.sqrt(((z - c) ** 2).sum(axis=1)))
        total += best.mean()
    return total / len(X)


def mm_exact(X, nodes=None, distinct=False, xtol=1e-12):
    """First scale s with E min_j |Xhat - X_j| = dbar.

    Quadrature (d = 1, 2), or the given nodes in any dimension. Steps of factor 1.25
    up from half the approximate scale, then a bracketing solver.
    """
    X = _columns(X)
    dbar = mean_nearest_distance(X, distinct)
    if dbar == 0:
        return 0.0

    def gap(s):
        if nodes is None:
            return expected_nearest_distance(X, s) - dbar
        return expected_nearest_distance_nodes(X, s, nodes) - dbar

    low = 0.5 * dbar / chi_mean(X.shape[1])
    high = low
    while gap(high) < 0:
        low, high = high, 1.25 * high
    return high if low == high else brentq(gap, low, high, xtol=xtol, rtol=1e-13)


def mm_exact_1d(X, distinct=False):
    """`mm_exact` of one column."""
    return mm_exact(np.asarray(X, dtype=float).reshape(-1, 1), distinct=distinct)


# ---------------------------------------------------------------- Algorithm 1


def _log_normal(v, S):
    """Log density of N(0, S) at v."""
    sign, logdet = np.linalg.slogdet(S)
    if sign <= 0:
        raise ValueError("singular kernel")
    return -0.5 * (len(v) * log(2 * pi) + logdet + float(v @ np.linalg.solve(S, v)))


def log_pseudo_likelihood(Z, kernels):
    """Log-likelihood sum_j log (1/n) sum_{i != j} N(Z_j; Z_i, S_i)."""
    Z = _columns(Z)
    n = len(Z)
    total = 0.0
    for j in range(n):
        mixture = 0.0
        for i in range(n):
            if i != j:
                mixture += exp(_log_normal(Z[j] - Z[i], kernels[i]))
        total += log(mixture / n) if mixture > 0 else -inf
    return total


def responsibilities(Z, kernels, lam=1.0):
    """E-step: w[i, j], zero on the diagonal, every column sums to one."""
    Z = _columns(Z)
    n = len(Z)
    raw = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                raw[i, j] = lam + exp(_log_normal(Z[j] - Z[i], kernels[i]))
    w = np.zeros((n, n))
    for j in range(n):
        column = sum(raw[i, j] for i in range(n))
        for i in range(n):
            w[i, j] = raw[i, j] / column
    return w


def _span(Z):
    """Orthonormal rows that span the centred data (identity if they have full rank)."""
    centred = Z - Z.mean(axis=0)
    rank = int(np.linalg.matrix_rank(centred))
    if rank == Z.shape[1]:
        return np.eye(rank)
    return np.linalg.svd(centred)[2][:rank]


def mpe(Z, lam=1.0, eps=1e-8, max_iter=500, weights=None, scale=False):
    """Algorithm 1 from identity kernels: kernels (n, q, q) and the trace.

    The trace holds the log pseudo-likelihood at the start and after each update. It
    stops after the update that moves no entry by eps or more. With weights, column j
    counts w_j times in the M-step and n - 1 becomes sum(w) - w_i there. `scale`: run
    on standardised columns and transform back (constant columns get zeros). Rows of
    lower rank are handled in the coordinates of their span.
    """
    Z = _columns(Z)
    if scale:
        scaled, kept, sd = standardize(Z)
        inner, trace = mpe(scaled, lam, eps, max_iter, weights)
        kernels = np.zeros((len(Z), Z.shape[1], Z.shape[1]))
        for i in range(len(Z)):
            kernels[i][np.ix_(kept, kept)] = np.outer(sd, sd) * inner[i]
        return kernels, trace
    n, q = Z.shape
    axes = _span(Z)
    if len(axes) == 0:
        return np.zeros((n, q, q)), []
    if len(axes) < q:
        inner, trace = mpe(Z @ axes.T, lam, eps, max_iter, weights)
        return np.array([axes.T @ S @ axes for S in inner]), trace
    count = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    S = np.array([np.eye(q) for _ in range(n)])
    trace = [log_pseudo_likelihood(Z, S)]
    for _ in range(max_iter):
        w = responsibilities(Z, S, lam)
        new = np.zeros((n, q, q))
        for i in range(n):
            for j in range(n):
                step = Z[j] - Z[i]
                new[i] += count[j] * w[i, j] * np.outer(step, step)
            new[i] /= count.sum() - count[i]
        change = np.abs(new - S).max()
        S = new
        trace.append(log_pseudo_likelihood(Z, S))
        if change < eps:
            break
    return S, trace


def mpe_limit(Z, weights=None):
    """Kernels of Algorithm 1 for lam -> inf, where w[i, j] = 1 / (n - 1)."""
    Z = _columns(Z)
    n, q = Z.shape
    count = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    S = np.zeros((n, q, q))
    for i in range(n):
        for j in range(n):
            step = Z[j] - Z[i]
            S[i] += count[j] * np.outer(step, step)
        S[i] /= (n - 1) * (count.sum() - count[i])
    return S


# ---------------------------------------------------------------- smoothed losses


def squared(y, prediction):
    """Squared loss, mean over outputs."""
    error = (np.asarray(y, dtype=float) - np.asarray(prediction, dtype=float)) ** 2
    return error if error.ndim < 2 else error.mean(axis=1)


def absolute(y, prediction):
    """Absolute loss, mean over outputs."""
    error = np.abs(np.asarray(y, dtype=float) - np.asarray(prediction, dtype=float))
    return error if error.ndim < 2 else error.mean(axis=1)


def zero_one(y, prediction):
    """Zero-one loss of labels."""
    return (np.asarray(prediction) != y).astype(float)


def root(S):
    """Symmetric root of S without its null directions: S = R R'."""
    S = np.atleast_2d(np.asarray(S, dtype=float))
    values, vectors = np.linalg.eigh(S)
    top = max(values.max(), 0.0)
    positive = values > 1e-14 * top
    return vectors[:, positive] * np.sqrt(values[positive])


def hermite(dim, order):
    """Tensor Gauss-Hermite nodes (order^dim, dim) and weights for N(0, I)."""
    t, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    nodes, weights = [], []
    for index in product(range(order), repeat=dim):
        nodes.append([t[k] for k in index])
        weights.append(np.prod([w[k] for k in index]))
    return np.array(nodes).reshape(order**dim, dim), np.array(weights)


def grid(dim, points, reach=8.5):
    """Equidistant mid-points in [-reach, reach]^dim with normal weights."""
    width = 2 * reach / points
    t = -reach + width * (np.arange(points) + 0.5)
    w = norm.pdf(t)
    w = w / w.sum()
    if dim == 0:
        return np.zeros((1, 0)), np.ones(1)
    if dim == 1:
        return t[:, None], w
    if dim == 2:
        a, b = np.meshgrid(t, t, indexing="ij")
        return np.column_stack([a.ravel(), b.ravel()]), np.outer(w, w).ravel()
    raise ValueError("at most two directions")


def smoothed_loss(predict, x, y, S, loss=squared, order=20, rule="hermite"):
    """E loss(y, predict(x + u)), u ~ N(0, S).

    `rule="grid"`: a dense grid with `order` points per direction (at most two), for
    predictors with jumps.
    """
    x = np.atleast_1d(np.asarray(x, dtype=float))
    R = root(S)
    build = hermite if rule == "hermite" else grid
    nodes, weights = build(R.shape[1], order)
    return float(weights @ loss(y, predict(x + nodes @ R.T)))


def smoothed_loss_xy(predict, x, y, S, loss=squared, order=20):
    """E loss(y', predict(x')), (x', y') ~ N((x, y), S), over all d + m directions."""
    x = np.atleast_1d(np.asarray(x, dtype=float))
    scalar = np.ndim(y) == 0
    z = np.concatenate([x, np.atleast_1d(np.asarray(y, dtype=float))])
    R = root(S)
    nodes, weights = hermite(R.shape[1], order)
    moved = z + nodes @ R.T
    target = moved[:, len(x) :]
    if scalar:
        target = target[:, 0]
    return float(weights @ loss(target, predict(moved[:, : len(x)])))


def _mean(values, weights):
    """Mean, weighted if weights are given."""
    if weights is None:
        return float(np.sum(values) / len(values))
    return float(np.sum(np.asarray(weights) * values) / np.sum(weights))


def resub_error(predict, X, y, loss=squared, weights=None):
    """Mean loss on the rows themselves."""
    X, y = _columns(X), np.asarray(y)
    values = [loss(y[i], predict(X[i : i + 1]))[0] for i in range(len(X))]
    return _mean(np.array(values), weights)


def bolstered_error(
    predict,
    X,
    y,
    kernels,
    loss=squared,
    order=20,
    rule="hermite",
    semi=False,
    weights=None,
):
    """X-bolstered error; `semi`: rows with a positive plain 0-1 loss count as 1."""
    X, y = _columns(X), np.asarray(y)
    values = []
    for i in range(len(X)):
        if semi and loss(y[i], predict(X[i : i + 1]))[0] > 0:
            values.append(1.0)
        else:
            values.append(
                smoothed_loss(predict, X[i], y[i], kernels[i], loss, order, rule)
            )
    return _mean(np.array(values), weights)


def bolstered_xy_error(predict, X, y, kernels, loss=squared, order=20, weights=None):
    """XY-bolstered error with joint kernels."""
    X, y = _columns(X), np.asarray(y)
    values = [
        smoothed_loss_xy(predict, X[i], y[i], kernels[i], loss, order)
        for i in range(len(X))
    ]
    return _mean(np.array(values), weights)


# ---------------------------------------------------------------- trees, linear rules


def leaf_boxes(estimator):
    """Leaves of a fitted scikit-learn tree as (low, high, output).

    A point is in the box if low < x <= high in every coordinate. The output is a
    label, a number, or an array of m numbers.
    """
    tree = estimator.tree_
    boxes = []

    def visit(node, low, high):
        if tree.children_left[node] == -1:
            value = tree.value[node]
            if hasattr(estimator, "classes_"):
                output = estimator.classes_[int(np.argmax(value[0]))]
            else:
                output = value[0, 0] if len(value) == 1 else value[:, 0].copy()
            boxes.append((low, high, output))
            return
        k, cut = tree.feature[node], tree.threshold[node]
        left, right = high.copy(), low.copy()
        left[k], right[k] = min(high[k], cut), max(low[k], cut)
        visit(tree.children_left[node], low, left)
        visit(tree.children_right[node], right, high)

    d = estimator.n_features_in_
    visit(0, np.full(d, -inf), np.full(d, inf))
    return boxes


def box_probability(low, high, x, s):
    """P(low < x + s * u <= high), u ~ N(0, I), s one standard deviation per column."""
    p = 1.0
    for k in range(len(x)):
        if s[k] == 0:
            p *= float(low[k] < np.float32(x[k]) <= high[k])
        else:
            p *= norm.cdf((high[k] - x[k]) / s[k]) - norm.cdf((low[k] - x[k]) / s[k])
    return p


def piecewise_loss(boxes, x, y, s, loss=squared):
    """Exact E loss(y, output) of a piecewise constant predictor, diagonal kernel."""
    x = np.atleast_1d(np.asarray(x, dtype=float))
    s = np.broadcast_to(np.asarray(s, dtype=float), x.shape)
    total = 0.0
    for low, high, output in boxes:
        value = loss(y, np.array([output]))[0]
        total += box_probability(np.atleast_1d(low), np.atleast_1d(high), x, s) * value
    return total


def piecewise_error(boxes, X, y, scales, loss=squared, weights=None):
    """Mean of `piecewise_loss`; scales: one number, one per row, or (n, d)."""
    X, y = _columns(X), np.asarray(y)
    scales = np.asarray(scales, dtype=float)
    if scales.ndim == 1:
        scales = scales[:, None]
    scales = np.broadcast_to(scales, X.shape)
    values = [piecewise_loss(boxes, X[i], y[i], scales[i], loss) for i in range(len(X))]
    return _mean(np.array(values), weights)


def linear_classifier_loss(w, b, x, sign, S):
    """P(sign(w'(x + u) + b) != sign), u ~ N(0, S), sign = -1 or 1.

    Without variance along w: the plain error, where 0 is predicted as -1.
    """
    w, x = np.atleast_1d(w), np.atleast_1d(x)
    g = float(w @ x + b)
    variance = float(w @ np.atleast_2d(S) @ w)
    if variance <= 0:
        return float((1 if g > 0 else -1) != sign)
    return float(norm.cdf(-sign * g / sqrt(variance)))


def linear_classifier_error(w, b, X, signs, kernels, semi=False, weights=None):
    """Bolstered (semi-bolstered) error of a binary linear classifier."""
    X = _columns(X)
    values = []
    for i in range(len(X)):
        plain = linear_classifier_loss(w, b, X[i], signs[i], np.zeros_like(kernels[i]))
        if semi and plain > 0:
            values.append(1.0)
        else:
            values.append(linear_classifier_loss(w, b, X[i], signs[i], kernels[i]))
    return _mean(np.array(values), weights)


def multiclass_linear_loss_2d(W, b, x, label, S, points=20001):
    """P(argmax_c W_c'(x + u) + b_c != label) for two columns and regular S.

    In whitened coordinates (t, v), for every t of a dense grid the v that keep the
    label form an interval, whose probability is exact.
    """
    W, b = np.asarray(W, dtype=float), np.asarray(b, dtype=float)
    x, R = np.asarray(x, dtype=float), np.linalg.cholesky(np.asarray(S, dtype=float))
    t, weights = grid(1, points)
    t = t[:, 0]
    low, high = np.full(len(t), -inf), np.full(len(t), inf)
    for c in range(len(W)):
        if c == label:
            continue
        slope = (W[label] - W[c]) @ R
        rest = (W[label] - W[c]) @ x + b[label] - b[c] + slope[0] * t
        if slope[1] > 0:
            low = np.maximum(low, -rest / slope[1])
        elif slope[1] < 0:
            high = np.minimum(high, -rest / slope[1])
        else:
            high = np.where(rest > 0, high, -inf)
    keep = np.where(high > low, norm.cdf(high) - norm.cdf(low), 0.0)
    return float(1.0 - weights @ keep)


# ---------------------------------------------------------------- the Y direction


def flat_posterior(design, y):
    """Predictive mean and variance at the rows of a linear model, flat prior.

    `design` includes the column of ones. The predictive law is Student with n - p
    degrees of freedom and squared scale s^2 (1 + h_ii).
    """
    A, y = np.asarray(design, dtype=float), np.asarray(y, dtype=float)
    n, p = A.shape
    gram = np.linalg.inv(A.T @ A)
    beta = gram @ A.T @ y
    mean = A @ beta
    s2 = sum((y[i] - mean[i]) ** 2 for i in range(n)) / (n - p)
    df = n - p
    variance = np.array(
        [s2 * (1 + A[i] @ gram @ A[i]) * df / (df - 2) for i in range(n)]
    )
    return mean, variance


def flat_posterior_error(design, y):
    """Return RSS (n + p) / (n (n - p - 2)) of the posterior estimate for OLS."""
    A, y = np.asarray(design, dtype=float), np.asarray(y, dtype=float)
    n, p = A.shape
    residual = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return float(residual @ residual) * (n + p) / (n * (n - p - 2))


def posterior_error(predict, X, mean, variance, weights=None):
    """Y-direction estimate for squared loss: v_i + (m_i - psi(X_i))^2."""
    X = _columns(X)
    values = [
        variance[i] + squared(mean[i], predict(X[i : i + 1]))[0] for i in range(len(X))
    ]
    return _mean(np.array(values), weights)


def x_posterior_error(predict, X, mean, variance, kernels, order=20, weights=None):
    """X-bolstering with the predictive law at X_i: v_i + E (m_i - psi(X_i + u))^2."""
    X = _columns(X)
    values = [
        variance[i] + smoothed_loss(predict, X[i], mean[i], kernels[i], squared, order)
        for i in range(len(X))
    ]
    return _mean(np.array(values), weights)


def posterior_probability_error(probabilities, predicted, weights=None):
    """Mean of 1 - P(Y = predicted class | X_i); `predicted` holds column numbers."""
    values = [1.0 - row[k] for row, k in zip(probabilities, predicted, strict=True)]
    return _mean(np.array(values), weights)


# ---------------------------------------------------------------- leave-one-out


def leave_one_out_error(estimator, X, y, loss):
    """Mean loss of n refits, each without the row it predicts."""
    X, y = np.asarray(X), np.asarray(y)
    total = 0.0
    for i in range(len(X)):
        rest = [j for j in range(len(X)) if j != i]
        model = clone(estimator).fit(X[rest], y[rest])
        total += loss(y[i], model.predict(X[i : i + 1]))[0]
    return total / len(X)


# ---------------------------------------------------------------- the experiments


def monomials(X, degree):
    """Design matrix of all monomials of total degree <= degree, ones first."""
    X = _columns(X)
    columns = [np.ones(len(X))]
    for k in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(X.shape[1]), k):
            column = np.ones(len(X))
            for c in chosen:
                column = column * X[:, c]
            columns.append(column)
    return np.column_stack(columns)


def polynomial_ols(X, y, degree):
    """Least squares in the monomials: a predict function and the coefficients."""
    coef = np.linalg.lstsq(monomials(X, degree), np.asarray(y), rcond=None)[0]

    def predict(points):
        return monomials(points, degree) @ coef

    return predict, coef


def scenario(d, sd, n, degree, rng):
    """Paper's sample: X uniform on [0, 1]^d, Y = (1 + sum X)^degree + N(0, sd^2)."""
    X = rng.uniform(size=(n, d))
    return X, (1 + X.sum(axis=1)) ** degree + sd * rng.standard_normal(n)


def scenario_error(predict, d, sd, degree, order=8):
    """Squared error of a predictor in that design, by tensor Gauss-Legendre."""
    t, w = np.polynomial.legendre.leggauss(order)
    t, w = (t + 1) / 2, w / 2
    total = 0.0
    for index in product(range(order), repeat=d):
        x = np.array([[t[k] for k in index]])
        weight = np.prod([w[k] for k in index])
        total += weight * ((1 + x.sum()) ** degree - predict(x)[0]) ** 2
    return float(total + sd**2)
