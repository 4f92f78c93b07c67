"""Slow, plain references for kernel boosting, written without looking at the package.

Only numpy and scipy are used. Conventions: ``G`` is the raw kernel matrix, ``w`` are
the row weights with sum ``W``, ``held[:, k]`` the weights of the rows left out in fold
``k``. Fold model ``k`` is trained with the weights ``w - held[:, k]`` and the step per
row of all rows, ``alpha / W``. A model is ``offset + G @ dual``.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax


def weighted_quantile(values, weights, q):
    """Return the smallest value whose cumulated weight reaches ``q`` times the total.

    For ``q = 0.5`` the mean of lower and upper weighted median is returned where the
    cumulated weight is exactly half. "Reaches" and "exactly" allow a rounding error of
    1e-12 of the total. Rows of weight zero are dropped.
    """
    values = np.asarray(values, dtype=float)
    weights = np.asarray(weights, dtype=float)
    values, weights = values[weights > 0], weights[weights > 0]
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    total = math.fsum(weights)
    slack = 1e-12 * total
    cumulated = 0.0
    for i in range(len(values)):
        cumulated = math.fsum(weights[: i + 1])
        if cumulated >= q * total - slack:
            if (
                q == 0.5
                and abs(cumulated - 0.5 * total) <= slack
                and i + 1 < len(values)
            ):
                return 0.5 * (values[i] + values[i + 1])
            return float(values[i])
    return float(values[-1])


def fold_offset(y, w_train, loss, intercept=True, **params):
    """Return the constant from which a model of training weights ``w_train`` starts."""
    y = np.asarray(y, dtype=float)
    total = np.sum(w_train)
    if loss == "softmax":
        n_classes = y.shape[1]
        if not intercept:
            return np.zeros(n_classes)
        shares = np.array([np.sum(w_train * y[:, c]) / total for c in range(n_classes)])
        logs = np.log(np.clip(shares, 1 / (total + 2), 1 - 1 / (total + 2)))
        return logs - np.mean(logs)
    if not intercept:
        return 0.0
    if loss == "squared":
        return float(np.sum(w_train * y) / total)
    if loss == "logistic":
        share = np.sum(w_train[y > 0]) / total
        share = min(max(share, 1 / (total + 2)), 1 - 1 / (total + 2))
        return math.log(share / (1 - share))
    if loss == "huber":
        return weighted_quantile(y, w_train, 0.5)
    if loss == "quantile":
        return weighted_quantile(y, w_train, params["q"])
    if loss == "poisson":
        return math.log(np.sum(w_train * y) / total)
    raise ValueError(loss)


def loss_slope(y, f, loss, **params):
    """Return the derivative of the loss in ``f``, row by row (quantile: smoothed)."""
    if loss == "squared":
        return f - y
    if loss == "logistic":
        return -y * expit(-y * f)
    if loss == "softmax":
        return softmax(f, axis=1) - y
    if loss == "huber":
        return np.clip(f - y, -params["delta"], params["delta"])
    if loss == "quantile":
        return -params["q"] + np.clip((f - y) / params["h"] + 0.5, 0.0, 1.0)
    if loss == "poisson":
        return np.exp(f) - y
    raise ValueError(loss)


def scoring_loss(y, f, loss, **params):
    """Return the held-out loss, row by row (quantile: the exact pinball loss)."""
    if loss == "squared":
        return (y - f) ** 2 / 2
    if loss == "logistic":
        return np.logaddexp(0.0, -y * f)
    if loss == "softmax":
        return logsumexp(f, axis=1) - np.sum(y * f, axis=1)
    if loss == "huber":
        delta, size = params["delta"], np.abs(y - f)
        return np.where(size <= delta, size**2 / 2, delta * size - delta**2 / 2)
    if loss == "quantile":
        r = y - f
        return np.where(r >= 0, params["q"] * r, (params["q"] - 1) * r)
    if loss == "poisson":
        return np.exp(f) - y * f
    raise ValueError(loss)


def kfold_squared(G, y, w, held, alpha, T, intercept=True, average=False):
    """Return ``(offset, dual, predictions of all rows)`` per fold by ``T`` plain steps.

    With ``average=True`` the dual coefficients are the mean of those of the iterates
    1, ..., T.
    """
    G, y, w, held = (np.asarray(a, dtype=float) for a in (G, y, w, held))
    W = np.sum(w)
    models = []
    for k in range(held.shape[1]):
        w_train = w - held[:, k]
        offset = fold_offset(y, w_train, "squared", intercept)
        c = np.zeros(len(y))
        c_sum = np.zeros(len(y))
        for _ in range(T):
            f = offset + G @ c
            c = c - alpha / W * w_train * (f - y)
            c_sum = c_sum + c
        dual = c_sum / T if average and T > 0 else c
        models.append((offset, dual, offset + G @ dual))
    return models


def kfold_squared_score(G, y, w, held, alpha, T, intercept=True, average=False):
    """Return the pooled held-out mean of half the squared error of the fold models."""
    held = np.asarray(held, dtype=float)
    total = 0.0
    for k, (_, _, f) in enumerate(
        kfold_squared(G, y, w, held, alpha, T, intercept, average)
    ):
        total += np.sum(
            held[:, k] * scoring_loss(np.asarray(y, dtype=float), f, "squared")
        )
    return total / np.sum(held)


def flow_values(G, y, w_train, W, alpha, T, loss, split=16, intercept=True, **params):
    """Return the values after ``T * split`` gradient steps of ``alpha / split``."""
    offset = fold_offset(y, w_train, loss, intercept, **params)
    c = np.zeros(y.shape)
    row_weights = w_train[:, None] if y.ndim == 2 else w_train
    for _ in range(round(T * split)):
        f = offset + G @ c
        c = c - (alpha / split) / W * row_weights * loss_slope(y, f, loss, **params)
    return offset + G @ c


def kfold_flow_score(
    G, y_or_Y, w, held, alpha, T, loss, split=16, intercept=True, **params
):
    """Return the pooled held-out loss at ``T`` and the values of the all-rows model."""
    G, y, w, held = (np.asarray(a, dtype=float) for a in (G, y_or_Y, w, held))
    W = np.sum(w)
    total = 0.0
    for k in range(held.shape[1]):
        f = flow_values(
            G, y, w - held[:, k], W, alpha, T, loss, split, intercept, **params
        )
        total += np.sum(held[:, k] * scoring_loss(y, f, loss, **params))
    return total / np.sum(held), flow_values(
        G, y, w, W, alpha, T, loss, split, intercept, **params
    )


def ard_objective(log_a, log_lam, X, Y, w, centre=None):
    """Return the penalised evidence objective J of the scales, with row weights.

    ``centre`` is the value the log scales are drawn to; None (the definition) is
    their own mean. ``X`` and ``Y`` are used as given, standardise them before. Rows
    of weight zero are dropped.
    """
    log_a, X, Y, w = (np.asarray(a, dtype=float) for a in (log_a, X, Y, w))
    nu = tau = 1.0
    X, Y, w = X[w > 0], Y[w > 0], w[w > 0]
    n, d = X.shape
    Y = Y.reshape(n, -1)
    lam = math.exp(log_lam)
    distance = np.zeros((n, n))
    for j in range(d):
        difference = X[:, j][:, None] - X[:, j][None, :]
        distance += math.exp(log_a[j]) * difference**2
    C = np.exp(-distance) + lam * np.diag(1 / w)
    W = np.sum(w)
    sign, log_det = np.linalg.slogdet(C)
    assert sign > 0
    log_det += (W - n) * log_lam + np.sum(np.log(w))
    J = 0.0
    for c in range(Y.shape[1]):
        q = Y[:, c] @ np.linalg.solve(C, Y[:, c])
        J += W * math.log(q / W) + log_det
    lbar = np.mean(log_a) if centre is None else centre
    for j in range(d):
        J += (nu + 1) * math.log(1 + (log_a[j] - lbar) ** 2 / (nu * tau**2))
    return J


def numerical_gradient(f, x, step=1e-5):
    """Return the gradient of ``f`` at ``x`` by central differences."""
    x = np.asarray(x, dtype=float)
    gradient = np.empty(len(x))
    for j in range(len(x)):
        up, down = x.copy(), x.copy()
        up[j] += step
        down[j] -= step
        gradient[j] = (f(up) - f(down)) / (up[j] - down[j])
    return gradient


def _value_of_rank(values, weights, rank):
    """Return the value of the given rank, each value repeated by its weight."""
    order = np.argsort(values, kind="stable")
    cumulated = 0.0
    for i in order:
        cumulated += weights[i]
        if cumulated >= rank - 1e-9:
            return values[i]
    return np.inf


def cv_plus_interval(predictions, residuals, fold, level, weights=None):
    """Return the lower and upper CV+ bounds, each (m,), by a full sort per point.

    ``predictions[:, k]`` are those of the model without fold ``k``; ``fold[i]`` is the
    fold of the residual ``i``. Entries with ``fold < 0`` (never left out) are ignored.
    A weight counts as that many copies of the residual, and a row spread over several
    folds is given as one entry per fold. Ranks within 1e-9 of an integer are that
    integer.
    """
    predictions = np.asarray(predictions, dtype=float)
    residuals, fold = np.asarray(residuals, dtype=float), np.asarray(fold)
    weights = (
        np.ones(len(residuals)) if weights is None else np.asarray(weights, dtype=float)
    )
    used = (fold >= 0) & (weights > 0)
    residuals, fold, weights = residuals[used], fold[used], weights[used]
    n = np.sum(weights)
    rank_low = math.floor((1 - level) * (n + 1) + 1e-9)
    rank_high = math.ceil(level * (n + 1) - 1e-9)
    lower = np.full(len(predictions), -np.inf)
    upper = np.full(len(predictions), np.inf)
    for p in range(len(predictions)):
        middle = np.array([predictions[p, k] for k in fold])
        if 1 <= rank_low <= n + 1e-9:
            lower[p] = _value_of_rank(middle - np.abs(residuals), weights, rank_low)
        if 1 <= rank_high <= n + 1e-9:
            upper[p] = _value_of_rank(middle + np.abs(residuals), weights, rank_high)
    return lower, upper


def gaussian_complexity_draw(z, mu, delta, n):
    """Return the supremum of ``z'theta / sqrt(n)`` over the localised ellipsoid.

    This is the set with ``sum theta^2 / mu <= 1`` and ``sum theta^2 <= delta^2``. For
    each ``s`` in [0, 1] both together imply ``sum theta^2 (s / mu + (1 - s) / delta^2)
    <= 1``, where the supremum is explicit; by duality the smallest of these bounds
    (convex in ``s``) is the supremum itself.
    """
    z, mu = np.asarray(z, dtype=float), np.asarray(mu, dtype=float)
    z, mu = z[mu > 0], mu[mu > 0]  # theta_j = 0 where mu_j = 0

    def squared_bound(s):
        return np.sum(z**2 / (s / mu + (1 - s) / delta**2))

    inner = minimize_scalar(
        squared_bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12}
    )
    return math.sqrt(min(inner.fun, squared_bound(0.0), squared_bound(1.0)) / n)


def gaussian_complexity(mu, delta, n, n_draws, seed):
    """Return the Gaussian complexity (3.13) by Monte Carlo and its standard error.

    With ``theta = U'g / sqrt(n)`` the squared norms are ``sum theta^2`` (empirical) and
    ``sum theta^2 / mu`` (Hilbert), and ``(1/n) sum w_i g_i = z'theta / sqrt(n)`` with
    ``z = U'w`` standard normal.
    """
    rng = np.random.default_rng(seed)
    draws = np.array(
        [
            gaussian_complexity_draw(rng.standard_normal(len(mu)), mu, delta, n)
            for _ in range(n_draws)
        ]
    )
    return float(np.mean(draws)), float(np.std(draws, ddof=1) / math.sqrt(n_draws))
