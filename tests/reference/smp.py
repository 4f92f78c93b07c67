"""Slow reference for the sample minmax predictor (SMP), from its definitions.

Mourtada and Gaiffas, "An improper estimator with optimal excess risk in misspecified
density estimation and logistic regression" (2020); equation numbers are the paper's.
Every virtual problem is an augmented data set fitted from scratch, every leave-one-out
figure a refit, every normaliser a sum or a numerical integral. Nothing is imported from
the package under test.

``C = 1 / ((W + 1) lambda)`` with ``W`` the total weight, so the total ridge strength is
``1 / C``; weights count repetitions; ``x`` is one test row; ``**intercept`` stands for
``fit_intercept=True, penalize_intercept=False, intercept_scaling=1.0``.
"""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, gammaln, logsumexp, softmax, xlogy

# ---------------------------------------------------------------- common tools


def _design(X, fit_intercept=True, penalize_intercept=False, intercept_scaling=1.0):
    """Features with the constant column (if any), and 1 where a column is penalised."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    mask = np.ones(X.shape[1])
    if fit_intercept:
        constant = float(intercept_scaling) if penalize_intercept else 1.0
        X = np.column_stack([X, np.full(len(X), constant)])
        mask = np.append(mask, 1.0 if penalize_intercept else 0.0)
    return X, mask


def _weights(sample_weight, X):
    """Weights as a float array; ones by default."""
    if sample_weight is None:
        return np.ones(len(X))
    return np.array(sample_weight, dtype=float)


def _without_unit(weight, i):
    """Weights after removal of one unit of row i, and u_i = min(1, v_i)."""
    unit = min(1.0, weight[i])
    remaining = weight.copy()
    remaining[i] -= unit
    return remaining, unit


def _minimise(value, derivatives, scores, z):
    """Damped Newton; full steps once no score moves by 1e-3, until steps stall."""
    last = np.inf
    for _ in range(1000):
        gradient, hessian = derivatives(z)
        step = -np.linalg.solve(hessian, gradient)
        move = np.max(np.abs(scores(step)), initial=0.0)
        if move <= 1e-3:
            z = z + step
            if move > last / 2 or move < 1e-16:
                if move > 1e-8:
                    raise RuntimeError("Newton stalled before it converged")
                return z
            last = move
            continue
        here, slope, size = value(z), gradient @ step, 1.0
        while value(z + size * step) > here + 1e-4 * size * slope + 1e-14 * abs(here):
            size /= 2
            if size < 1e-12:
                raise RuntimeError("line search failed")
        z, last = z + size * step, np.inf
    raise RuntimeError("Newton did not converge")


def _log_sigmoid(t):
    """Logarithm of sigma(t), equation (38)."""
    return -np.logaddexp(0.0, -t)


def _log_prob(eta, k):
    """Logarithm of softmax(eta)_k, accurate when the probability is close to one."""
    if np.isneginf(eta[k]):
        return -np.inf
    return -np.logaddexp(0.0, logsumexp(np.delete(eta, k) - eta[k]))


# ---------------------------------------------------------------- cold fits


def _logistic_hessian(X, z, weight, total, mask):
    """Hessian of the weighted log-loss plus (total / 2) ||.||^2."""
    curvature = weight * expit(X @ z) * expit(-(X @ z))
    return X.T @ (curvature[:, None] * X) + total * np.diag(mask)


def _logistic_newton(X, y01, weight, total, mask):
    """Minimise sum_i w_i log(1 + exp(-s_i <z, x_i>)) + (total / 2) ||z||^2."""
    sign = 2.0 * np.asarray(y01) - 1.0

    def value(z):
        losses = np.logaddexp(0.0, -sign * (X @ z))
        return weight @ losses + 0.5 * total * mask @ z**2

    def derivatives(z):
        slope = -sign * expit(-sign * (X @ z))
        gradient = X.T @ (weight * slope) + total * mask * z
        return gradient, _logistic_hessian(X, z, weight, total, mask)

    return _minimise(value, derivatives, lambda z: X @ z, np.zeros(X.shape[1]))


def _softmax_hessian(X, W, weight, total, mask):
    """Hessian in vec(W); a free intercept gets the gauge term (sum_k b_k)^2 / 2."""
    n_classes, P = len(W), softmax(X @ W.T, axis=1)
    hessian = total * np.kron(np.eye(n_classes), np.diag(mask))
    hessian += np.kron(np.ones((n_classes, n_classes)), np.diag(1.0 - mask))
    blocks = hessian.reshape(W.shape + W.shape)
    for k in range(n_classes):
        for m in range(n_classes):
            curvature = weight * P[:, k] * ((k == m) - P[:, m])
            blocks[k, :, m] += X.T @ (curvature[:, None] * X)
    return hessian


def _softmax_newton(X, codes, weight, total, mask, n_classes):
    """Minimise sum_i w_i (-log softmax(W x_i)_{y_i}) + (total / 2) ||W||_F^2."""
    rows = np.arange(len(X))

    def value(z):
        W = z.reshape(n_classes, -1)
        margin = X @ W.T
        margin = margin - margin[rows, codes][:, None]
        margin[rows, codes] = -np.inf
        losses = np.logaddexp(0.0, logsumexp(margin, axis=1))
        gauge = (1.0 - mask) @ W.sum(axis=0) ** 2
        return weight @ losses + 0.5 * total * np.sum(mask * W**2) + 0.5 * gauge

    def derivatives(z):
        W = z.reshape(n_classes, -1)
        residual = softmax(X @ W.T, axis=1)
        residual[rows, codes] = 0.0
        residual[rows, codes] = -residual.sum(axis=1)
        gradient = (weight[:, None] * residual).T @ X + total * mask * W
        gradient = gradient + (1.0 - mask) * W.sum(axis=0)
        return gradient.ravel(), _softmax_hessian(X, W, weight, total, mask)

    def scores(z):
        W = z.reshape(n_classes, -1)
        return X @ (W - W.mean(axis=0)).T

    start = np.zeros(n_classes * X.shape[1])
    return _minimise(value, derivatives, scores, start).reshape(n_classes, -1)


def _free(mask):
    """Whether there is an unpenalised intercept."""
    return bool(np.any(mask == 0))


def fit_logistic(X, y01, weight, C, **intercept):
    """Cold fit of (46): (theta, intercept, penalised squared norm).

    With an unpenalised intercept and one class the fit is at infinity: its limit
    theta = 0, intercept = +-inf is returned.
    """
    y01, weight = np.asarray(y01), np.asarray(weight, dtype=float)
    design, mask = _design(X, **intercept)
    labels, d = np.unique(y01[weight > 0]), np.shape(X)[1]
    if _free(mask) and len(labels) == 1:
        return np.zeros(d), np.inf * (2.0 * labels[0] - 1.0), 0.0
    z = _logistic_newton(design, y01, weight, 1.0 / C, mask)
    return z[:d], float(z[d:] @ design[0, d:]), float(mask @ z**2)


def fit_softmax(X, codes, weight, C, n_classes, **intercept):
    """Cold symmetric softmax fit: (W, b, penalised squared norm).

    A class without observations has b_k = -inf, W_k = 0 if the intercept is free.
    """
    codes, weight = np.asarray(codes), np.asarray(weight, dtype=float)
    design, mask = _design(X, **intercept)
    d, classes = np.shape(X)[1], np.arange(n_classes)
    if _free(mask):
        classes = np.unique(codes[weight > 0])
    W, kept = np.zeros((n_classes, design.shape[1])), np.isin(codes, classes)
    if len(classes) > 1:
        renumbered = np.searchsorted(classes, codes[kept])
        W[classes] = _softmax_newton(
            design[kept], renumbered, weight[kept], 1.0 / C, mask, len(classes)
        )
    b = np.full(n_classes, -np.inf)
    b[classes] = W[classes, d:] @ design[0, d:]
    return W[:, :d], b, float(np.sum(mask * W**2))


# ---------------------------------------------------------------- logistic, softmax


def _virtual_fits(
    X, codes, weight, x, virtual, total, lam, n_classes=None, **intercept
):
    """Scores s_k = log f^(x,k)(k|x) - (lam / 2) ||theta^(x,k)||^2 by refits, and etas.

    ``n_classes=None`` is the binary objective (47); a number is the softmax one.
    """
    scores, etas = [], []
    for k in range(n_classes or 2):
        rows, labels = np.vstack([X, x]), np.append(codes, k)
        weights = np.append(weight, virtual)
        if n_classes is None:
            fit = fit_logistic(rows, labels, weights, 1.0 / total, **intercept)
            etas.append(x @ fit[0] + fit[1])
            log_p = _log_sigmoid((2 * k - 1) * etas[k])
        else:
            fit = fit_softmax(
                rows, labels, weights, 1.0 / total, n_classes, **intercept
            )
            etas.append(fit[0] @ x + fit[1])
            log_p = _log_prob(etas[k], k)
        scores.append(log_p - 0.5 * lam * fit[2])
    return np.array(scores), etas


def logistic_smp(X, y01, x, C, *, sample_weight=None, virtual_weight=1.0, **intercept):
    """Logistic SMP at one row, equation (47), by two cold fits of (46).

    Returns ``p`` = P(y=1|x), ``log_normalizer`` = log Z(x), ``eta`` = (eta_0, eta_1).
    """
    X, x, weight = (
        np.asarray(X, float),
        np.asarray(x, float),
        _weights(sample_weight, X),
    )
    lam = 1.0 / ((weight.sum() + 1.0) * C)
    scores, etas = _virtual_fits(
        X, y01, weight, x, virtual_weight, 1.0 / C, lam, **intercept
    )
    log_normalizer = logsumexp(scores)
    p = np.exp(scores[1] - log_normalizer)
    return {"p": p, "log_normalizer": log_normalizer, "eta": tuple(etas)}


def softmax_smp(
    X, codes, x, C, n_classes, *, sample_weight=None, virtual_weight=1.0, **intercept
):
    """Softmax SMP at one row (14) by K cold fits: ``p`` (K,), ``log_normalizer``."""
    X, x, weight = (
        np.asarray(X, float),
        np.asarray(x, float),
        _weights(sample_weight, X),
    )
    lam = 1.0 / ((weight.sum() + 1.0) * C)
    scores, _ = _virtual_fits(
        X, codes, weight, x, virtual_weight, 1.0 / C, lam, n_classes, **intercept
    )
    return {"p": softmax(scores), "log_normalizer": logsumexp(scores)}


def softmax_loo(
    X, codes, C, n_classes, *, sample_weight=None, virtual_weight=1.0, **intercept
):
    """Leave-one-unit-out ``loss`` (n,) and ``log_normalizer`` (n,).

    The candidate fixes lambda = 1 / ((W + 1) C); the problems without one unit have
    the total W lambda, and a virtual observation of weight u_i.
    """
    X, weight = np.asarray(X, dtype=float), _weights(sample_weight, X)
    lam = 1.0 / ((weight.sum() + 1.0) * C)
    total = weight.sum() * lam
    loss, log_normalizer = np.empty(len(X)), np.empty(len(X))
    for i in range(len(X)):
        remaining, unit = _without_unit(weight, i)
        virtual = unit * virtual_weight
        scores, _ = _virtual_fits(
            X, codes, remaining, X[i], virtual, total, lam, n_classes, **intercept
        )
        log_normalizer[i] = logsumexp(scores)
        loss[i] = log_normalizer[i] - scores[codes[i]]
    return {"loss": loss, "log_normalizer": log_normalizer}


def logistic_loo(X, y01, C, *, sample_weight=None, virtual_weight=1.0, **intercept):
    """Leave-one-unit-out figures of the binary objective (see `softmax_loo`)."""
    return softmax_loo(
        X,
        y01,
        C,
        None,
        sample_weight=sample_weight,
        virtual_weight=virtual_weight,
        **intercept,
    )


# ---------------------------------------------------------------- one-step and pool


def _tilt_binary(eta, g, label):
    """Root of t = eta + g (label - sigma(t)), bracketed."""
    if g == 0:
        return eta
    if label == 0:
        return -_tilt_binary(-eta, g, 1)

    def equation(t):
        return t - eta - g * expit(-t)

    return brentq(equation, eta, eta + g, xtol=1e-16, rtol=1e-15, maxiter=1000)


def _tilt_softmax(eta, B, w, k):
    """Solve t = eta + w B (e_k - softmax(t)) as min_z |z|^2 / 2 + w loss(eta + A z)."""
    eigenvalues, Q = np.linalg.eigh((B + B.T) / 2)
    A = Q * np.sqrt(np.maximum(eigenvalues, 0.0))

    def value(z):
        return 0.5 * z @ z - w * _log_prob(eta + A @ z, k)

    def derivatives(z):
        p = softmax(eta + A @ z)
        residual = p.copy()
        residual[k] = -np.delete(p, k).sum()
        curvature = A.T @ (np.diag(p) - np.outer(p, p)) @ A
        return z + w * A.T @ residual, np.eye(len(eta)) + w * curvature

    return eta + A @ _minimise(value, derivatives, lambda z: A @ z, 0.0 * eta)


def _base_fit(design, codes, weight, total, mask, n_classes):
    """The fit without virtual observation, penalty total / 2."""
    if n_classes is None:
        return _logistic_newton(design, codes, weight, total, mask)
    return _softmax_newton(design, codes, weight, total, mask, n_classes)


def _one_step(design, codes, weight, row, total, mask, base, w, removed=None):
    """Log-probabilities log p_k(x) of the one-step virtual fits, and these fits.

     ``base`` is the fit with weights ``weight``. If ``removed`` is a row number, one
     unit of it is first taken out by one Newton step with the Hessian of what remains
    .
    """
    remaining, unit = weight, 0.0
    if removed is not None:
        remaining, unit = _without_unit(weight, removed)
    if base.ndim == 1:
        hessian = _logistic_hessian(design, base, remaining, total, mask)
        direction = np.linalg.solve(hessian, row)
        eta, h = row @ base, row @ direction
        if removed is not None:
            eta = eta + unit * h * (expit(eta) - codes[removed])
        t = [_tilt_binary(eta, w * h, label) for label in (0, 1)]
        scores = np.array([_log_sigmoid(-t[0]), _log_sigmoid(t[1])])
        return scores, [base + w * (k - expit(t[k])) * direction for k in (0, 1)]
    hessian = _softmax_hessian(design, base, remaining, total, mask)
    unit_vectors = np.eye(len(base))
    lift = np.kron(unit_vectors, row[:, None])
    directions = np.linalg.solve(hessian, lift)
    B, eta = lift.T @ directions, base @ row
    if removed is not None:
        eta = eta + unit * B @ (softmax(eta) - unit_vectors[codes[removed]])
    scores, fits = np.empty(len(base)), []
    for k in range(len(base)):
        t = _tilt_softmax(eta, B, w, k)
        change = w * directions @ (unit_vectors[k] - softmax(t))
        scores[k] = _log_prob(t, k)
        fits.append(base + change.reshape(base.shape))
    return scores, fits


def one_step_softmax(
    X,
    codes,
    x,
    C,
    n_classes,
    *,
    sample_weight=None,
    virtual_weight=1.0,
    penalty_factor=True,
    **intercept,
):
    """One-step SMP: ``p`` (K,) and ``log_normalizer``.

    The penalty factor takes theta^(x,y) = theta_0 + c H^-1 x (binary: n_classes=None).
    """
    (design, mask), (row, _) = _design(X, **intercept), _design(x, **intercept)
    weight, total = _weights(sample_weight, design), 1.0 / C
    base = _base_fit(design, codes, weight, total, mask, n_classes)
    scores, fits = _one_step(
        design, codes, weight, row[0], total, mask, base, virtual_weight
    )
    if penalty_factor:
        lam = total / (weight.sum() + 1.0)
        scores = scores - [0.5 * lam * np.sum(mask * fit**2) for fit in fits]
    return {"p": softmax(scores), "log_normalizer": logsumexp(scores)}


def one_step_logistic(X, y01, x, C, **options):
    """One-step P(y=1|x): eta = eta_0 + w h (y - sigma(eta))."""
    return one_step_softmax(X, y01, x, C, None, **options)["p"][1]


def _log_pool(fitted, x, C, w, method, removed=None):
    """Logarithm of P_w(.|x) of one candidate: total 1 / C, no e^-phi."""
    X, y, weight, K, intercept = fitted
    if method == "one-step":
        (design, mask), (row, _) = _design(X, **intercept), _design(x, **intercept)
        base = _base_fit(design, y, weight, 1 / C, mask, K)
        scores, _ = _one_step(design, y, weight, row[0], 1 / C, mask, base, w, removed)
    elif method == "exact":
        if removed is not None:
            weight, _ = _without_unit(weight, removed)
        scores, _ = _virtual_fits(X, y, weight, x, w, 1 / C, 0.0, K, **intercept)
    else:
        raise ValueError(method)
    return scores - logsumexp(scores)


def _exponential_weights(losses, weight, learning_rate):
    """q_j proportional to exp(-eta sum_i v_i l_ji) over the candidates."""
    total = losses[..., weight > 0] @ weight[weight > 0]
    q = np.exp(learning_rate * (total.min() - total))
    return q / q.sum()


def pool(
    X,
    y,
    Cs,
    virtual_weights,
    *,
    n_classes,
    loo="one-step",
    learning_rate=1.0,
    sample_weight=None,
    **intercept,
):
    """Leave-one-out pool over C and the virtual weight.

    ``losses`` (nC, nw, n), ``path`` (nC, nw), ``weights`` (nC, nw, all candidates),
    ``kept_weights`` (small ones set to zero, renormalised) and ``loo_log_loss``, with
    q^(-i) from the sum without the unit of row i. `pool_predict` takes the result.
    """
    X, y, weight = np.asarray(X, float), np.asarray(y), _weights(sample_weight, X)
    data = (X, y, weight, None if n_classes == 2 else n_classes, intercept)
    losses = np.empty((len(Cs), len(virtual_weights), len(X)))
    for j, m, i in np.ndindex(*losses.shape):
        log_p = _log_pool(data, X[i], Cs[j], virtual_weights[m], loo, removed=i)
        losses[j, m, i] = -log_p[y[i]]
    mixture = np.empty(len(X))
    for i in range(len(X)):
        q = _exponential_weights(losses, _without_unit(weight, i)[0], learning_rate)
        mixture[i] = -np.log(np.sum(q * np.exp(-losses[..., i])))
    weights, used = _exponential_weights(losses, weight, learning_rate), weight > 0
    kept = np.where(weights < 1e-3 * weights.max(), 0.0, weights)
    return {
        "losses": losses,
        "path": losses[..., used] @ weight[used] / weight.sum(),
        "weights": weights,
        "kept_weights": kept / kept.sum(),
        "loo_log_loss": mixture[used] @ weight[used] / weight.sum(),
        "Cs": Cs,
        "virtual_weights": virtual_weights,
        "data": data,
    }


def pool_predict(fitted, x, *, method="exact"):
    """Linear pool at one row of the surviving candidates: ``p`` (K,)."""
    p, x = 0.0, np.asarray(x, dtype=float)
    for (j, m), q in np.ndenumerate(fitted["kept_weights"]):
        if q > 0:
            C, w = fitted["Cs"][j], fitted["virtual_weights"][m]
            p = p + q * np.exp(_log_pool(fitted["data"], x, C, w, method))
    return p


# ---------------------------------------------------------------- Gaussian models


def _least_squares(X, y, weight, total, mask):
    """Minimise sum_i w_i (y_i - <theta, x_i>)^2 + total ||theta||^2 (stacked rows)."""
    root = np.sqrt(weight)
    rows = np.vstack([root[:, None] * X, np.sqrt(total) * np.diag(mask)])
    target = np.concatenate([root * y, np.zeros(len(mask))])
    return np.linalg.lstsq(rows, target, rcond=None)[0]


def _log_numerator(X, y, weight, x, virtual, total, lam, sigma, mask):
    """The map y' -> log f^(x,y')(y'|x) - phi(f^(x,y')) of the Gaussian model (14)."""
    rows, weights = np.vstack([X, x]), np.append(weight, virtual)

    def log_numerator(label):
        theta = _least_squares(rows, np.append(y, label), weights, total, mask)
        residual = (label - x @ theta) / sigma
        log_f = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        return log_f - 0.5 * lam * (mask @ theta**2) / sigma**2

    return log_numerator


def _peak(log_g, guess, scale):
    """Where log_g is largest, and how far from there it has dropped by one half."""
    found = minimize_scalar(lambda t: -log_g(t), bracket=(guess - scale, guess + scale))
    top, width = log_g(found.x), scale
    while top - log_g(found.x + width) < 0.5:
        width *= 2
    width = brentq(lambda t: top - log_g(found.x + t) - 0.5, 0.0, width, rtol=1e-6)
    return found.x, width


def _quad(function, points):
    """Sum of scipy.integrate.quad over consecutive intervals; its error is checked."""
    options = {"epsabs": 1e-14, "epsrel": 1e-13, "limit": 200, "full_output": 1}
    pieces = [quad(function, a, b, **options)[:2] for a, b in pairwise(points)]
    value, error = np.sum(pieces, axis=0)
    if error > 1e-8 * max(1.0, abs(value)):
        raise RuntimeError("quadrature did not converge")
    return float(value)


def _integrate(log_g, guess, scale):
    """Mean, variance and log of the integral of exp(log_g), by quadrature."""
    centre, width = _peak(log_g, guess, scale)
    top = log_g(centre)
    points = np.array([-15.0, -7.0, -3.0, 0.0, 3.0, 7.0, 15.0])

    def moment(power):
        return _quad(
            lambda t: t**power * np.exp(log_g(centre + t * width) - top), points
        )

    mass = moment(0)
    mean = moment(1) / mass
    variance = moment(2) / mass - mean**2
    return {
        "mean": centre + width * mean,
        "var": width**2 * variance,
        "log_normalizer": top + np.log(width * mass),
    }


def ridge_smp(
    X,
    y,
    x,
    alpha,
    *,
    sample_weight=None,
    sigma=1.0,
    fit_intercept=False,
    penalize_intercept=False,
):
    """Ridge SMP: ``mean``, ``var``, ``log_normalizer`` by integrating (14) numerically.

    lambda = alpha / (W + 1), phi = lambda ||theta||^2 / (2 sigma^2).
    """
    X, mask = _design(X, fit_intercept, penalize_intercept)
    x = _design(x, fit_intercept, penalize_intercept)[0][0]
    weight, y = _weights(sample_weight, X), np.asarray(y, dtype=float)
    lam = alpha / (weight.sum() + 1.0)
    log_g = _log_numerator(X, y, weight, x, 1.0, alpha, lam, sigma, mask)
    return _integrate(log_g, x @ _least_squares(X, y, weight, alpha, mask), sigma)


def ridge_smp_formula(X, y, x, alpha, *, sample_weight=None, sigma=1.0):
    """``mean`` and ``var`` by equations (31)-(32), literally; no intercept."""
    X, y, x = (np.asarray(a, dtype=float) for a in (X, y, x))
    weight = _weights(sample_weight, X)
    lam = alpha / (weight.sum() + 1.0)
    A = X.T @ (weight[:, None] * X) + alpha * np.eye(len(x))
    K = np.linalg.inv(A + np.outer(x, x))
    theta = np.linalg.solve(A, X.T @ (weight * y / sigma))
    var = 1.0 / ((1.0 - x @ K @ x) ** 2 + lam * x @ K @ K @ x)
    mean = theta @ x - lam * var * x @ K @ theta
    return {"mean": sigma * mean, "var": sigma**2 * var}


def ridge_loo(
    X,
    y,
    alpha,
    *,
    sample_weight=None,
    sigma=1.0,
    fit_intercept=False,
    penalize_intercept=False,
):
    """Leave-one-unit-out ``mean``, ``var``, ``log_normalizer``, arrays (n,).

    What remains has the total W alpha / (W + 1). The log numerator is quadratic in the
    label, so three refits give its moments; one row is checked by quadrature.
    """
    X, mask = _design(X, fit_intercept, penalize_intercept)
    weight, y = _weights(sample_weight, X), np.asarray(y, dtype=float)
    lam = alpha / (weight.sum() + 1.0)
    out = np.empty((3, len(X)))
    for i in range(len(X)):
        remaining, unit = _without_unit(weight, i)
        log_g = _log_numerator(
            X, y, remaining, X[i], unit, weight.sum() * lam, lam, sigma, mask
        )
        centre, width = _peak(log_g, y[i], sigma)
        low, mid, high = (log_g(centre + t * width) for t in (-1, 0, 1))
        slope, var = (high - low) / 2, 1.0 / (2 * mid - high - low)
        out[0, i] = centre + width * slope * var
        out[1, i] = width**2 * var
        area = np.log(width * np.sqrt(2 * np.pi * var))
        out[2, i] = mid + 0.5 * slope**2 * var + area
        if i == 0:
            check = _integrate(log_g, y[i], sigma)
            np.testing.assert_allclose(out[:, 0], list(check.values()), 1e-7, 1e-7)
    return dict(zip(("mean", "var", "log_normalizer"), out, strict=True))


def features_from_gram(G):
    """Rows Phi with Phi Phi^T = G, from the eigenvectors of a Gram matrix."""
    eigenvalues, Q = np.linalg.eigh(np.asarray(G, dtype=float))
    return Q * np.sqrt(np.maximum(eigenvalues, 0.0))


def kernel_ridge_smp(K, y, k, kxx, alpha, *, sample_weight=None, sigma=1.0):
    """Kernel ridge SMP: ``ridge_smp`` on features of the (n+1)^2 Gram."""
    k = np.asarray(k, dtype=float)
    features = features_from_gram(np.block([[K, k[:, None]], [k[None, :], kxx]]))
    return ridge_smp(
        features[:-1], y, features[-1], alpha, sample_weight=sample_weight, sigma=sigma
    )


def joint_density(X, y, x, y_new, kappa, *, fit_intercept=False):
    """Scale-free SMP, phi = kappa log sigma: (log Z, density at y_new).

    Each label: OLS on n + 1 rows, and the sigma with sum_i [(1 + kappa) / sigma
    - r_i^2 / sigma^3] = 0. The power tails are integrated in log |y' - centre|.
    """
    X, mask = _design(X, fit_intercept, False)
    x = _design(x, fit_intercept, False)[0][0]
    y, rows = np.asarray(y, dtype=float), np.vstack([X, x])
    ones = np.ones(len(rows))

    def log_g(label):
        labels = np.append(y, label)
        residual = labels - rows @ _least_squares(rows, labels, ones, 0.0, mask)
        sigma2 = residual @ residual / (len(rows) * (1.0 + kappa))
        log_f = -0.5 * residual[-1] ** 2 / sigma2 - 0.5 * np.log(2 * np.pi * sigma2)
        return log_f - 0.5 * kappa * np.log(sigma2)

    theta = _least_squares(X, y, ones[:-1], 0.0, mask)
    residual = y - X @ theta
    centre, width = _peak(log_g, x @ theta, np.sqrt(residual @ residual / len(y)))
    top, edge, far = log_g(centre), np.log(20.0), 300.0
    inner = np.array([-20.0, -8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 20.0])
    outer = [edge, edge + 1, edge + 3, edge + 10, edge + 30, edge + 100, far]
    mass = _quad(lambda t: np.exp(log_g(centre + width * t) - top), inner)
    for side in (-1.0, 1.0):

        def tail(t, side=side):
            return np.exp(log_g(centre + side * width * np.exp(t)) - top + t)

        mass += _quad(tail, outer) + tail(far) / kappa
    log_normalizer = top + np.log(width * mass)
    return log_normalizer, np.exp(log_g(y_new) - log_normalizer)


# ---------------------------------------------------------------- densities


def multinomial_smp(counts):
    """Multinomial SMP (16) by refits: ``p`` (d,) and ``log_normalizer`` (59)."""
    counts = np.asarray(counts, dtype=float)
    scores = np.empty(len(counts))
    for k in range(len(counts)):
        augmented = counts + np.eye(len(counts))[k]
        scores[k] = augmented[k] / augmented.sum()
    return {"p": scores / scores.sum(), "log_normalizer": np.log(scores.sum())}


def gaussian_smp(Y, x, Sigma):
    """Location SMP (Prop 2) from (14): ``log_density`` at x and ``log_normalizer``.

    The mean is refitted for every label of a grid (d <= 3) in whitened coordinates;
    the trapezoidal rule is exact to rounding for such an integrand.
    """
    Y = np.atleast_2d(np.asarray(Y, dtype=float))
    (n, d), L = Y.shape, np.linalg.cholesky(np.atleast_2d(Sigma))
    log_det = np.sum(np.log(np.diag(L)))

    def log_numerator(labels):
        means = (Y.sum(axis=0) + labels) / (n + 1)
        white = np.linalg.solve(L, (labels - means).T)
        return -0.5 * np.sum(white**2, axis=0) - 0.5 * d * np.log(2 * np.pi) - log_det

    step = 0.5
    axis = np.arange(-30.0, 30.0 + step, step)
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    cell = d * np.log(step) + log_det
    log_normalizer = logsumexp(log_numerator(Y.mean(axis=0) + grid @ L.T)) + cell
    at_x = log_numerator(np.asarray(x, dtype=float).reshape(1, d))[0]
    return {"log_density": at_x - log_normalizer, "log_normalizer": log_normalizer}


def poisson_smp(S, n, k):
    """Poisson SMP at k by summation: ``p``, ``log_normalizer``, ``mean``."""

    def term(label):
        mean = (S + label) / (n + 1)
        return np.exp(xlogy(label, mean) - mean - gammaln(label + 1.0))

    total, first, label = 0.0, 0.0, 0
    while True:
        value = term(label)
        total, first = total + value, first + label * value
        if label > S / n + 1 and label * value < 1e-19 * total:
            break
        label += 1
    p, mean = term(k) / total, first / total
    return {"p": p, "log_normalizer": np.log(total), "mean": mean}
