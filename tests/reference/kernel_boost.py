"""Slow reference for early-stopped kernel boosting.

F. Yang's thesis, chapter 3 ("Early stopping of kernel boosting algorithms"), and the
project's own additions, written from the definitions: loops over rows, iterations,
classes and left-out points; dense matrices; nothing is imported from the package.

Notation: rows x_1..x_n, kernel k, Gram matrix G_ij = k(x_i, x_j), K = G / n with
eigenvalues mu_1 >= ... >= mu_n. A fitted function is f(x) = offset + sum_j c_j
k(x, x_j); one boosting step is c <- c - (alpha / n) phi'(y, f) with f = offset + G c,
c = 0 at the start. The risk is the mean of phi(y_i, f_i).

Conventions:

* `loss` is "squared", "logistic" or "exponential"; y is real, or -1 / +1 for the last
  two; the binomial form has a share in [0, 1] instead; softmax has labels 0..K-1 and
  the scores, offsets and coefficients have K columns;
* a path is an array whose entry t is the state after t steps, t = 0..T; the averaged
  iterate at T is the mean of the entries 1..T, entry 0 does not count;
* learning time `eta` is the sum of the steps taken, alpha * t for a constant step;
* weights are frequencies: `repeat_rows` repeats the rows literally; functions with an
  argument `weights` have n = W = sum of the weights and take any positive weights;
* `mu` is sorted in descending order; n is passed along where len(mu) may differ
  from it;
* critical radii are returned squared, delta^2;
* the offset is not part of the Hilbert norm and not counted in df;
* criteria have to be minimised; selection returns a position in the list of times.
"""

from math import e as euler
from math import exp, floor, inf, isnan, log, nan, sqrt

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

# ----------------------------------------------------------------------------- kernels


def _columns(X):
    """Float array with two axes."""
    X = np.asarray(X, dtype=float)
    return X[:, None] if X.ndim == 1 else X


def rbf(x, z, gamma=1.0):
    """Gaussian kernel, the product over features of exp(-gamma (x_d - z_d)^2)."""
    value = 1.0
    for a, b in zip(x, z, strict=True):
        value *= exp(-gamma * (float(a) - float(b)) ** 2)
    return value


def laplacian(x, z, gamma=1.0):
    """Laplacian kernel, the product over features of exp(-gamma |x_d - z_d|)."""
    value = 1.0
    for a, b in zip(x, z, strict=True):
        value *= exp(-gamma * abs(float(a) - float(b)))
    return value


def sobolev(x, z, gamma=None):
    """First-order Sobolev kernel, the product over features of 1 + min(x_d, z_d)."""
    value = 1.0
    for a, b in zip(x, z, strict=True):
        value *= 1.0 + min(float(a), float(b))
    return value


def linear(x, z, gamma=None):
    """Inner product."""
    value = 0.0
    for a, b in zip(x, z, strict=True):
        value += float(a) * float(b)
    return value


KERNELS = {"rbf": rbf, "laplacian": laplacian, "sobolev": sobolev, "linear": linear}


def gram(X, Z=None, kernel="rbf", gamma=1.0):
    """Matrix of k(x, z), rows x of X and z of Z (X itself if omitted)."""
    X = _columns(X)
    Z = X if Z is None else _columns(Z)
    k = KERNELS[kernel] if isinstance(kernel, str) else kernel
    G = np.empty((len(X), len(Z)))
    for i in range(len(X)):
        for j in range(len(Z)):
            G[i, j] = k(X[i], Z[j], gamma)
    return G


def repeat_rows(X, y, weights):
    """Rows repeated as often as their integer weight says; also the source of each."""
    source = []
    for i, w in enumerate(weights):
        if w != int(w) or w < 0:
            raise ValueError("weights must be non-negative integers")
        source.extend([i] * int(w))
    source = np.array(source, dtype=int)
    return np.asarray(X)[source], np.asarray(y)[source], source


# ------------------------------------------------------------------------------ losses


def phi(loss, y, f):
    """Loss of one score f for one response y."""
    if loss == "squared":
        return 0.5 * (y - f) ** 2
    if loss == "logistic":
        a = -y * f
        return max(a, 0.0) + np.log1p(exp(-abs(a)))
    return exp(-y * f)


def dphi(loss, y, f):
    """First derivative of the loss in f."""
    if loss == "squared":
        return f - y
    if loss == "logistic":
        return -y * sigmoid(-y * f)
    return -y * exp(-y * f)


def d2phi(loss, y, f):
    """Second derivative of the loss in f."""
    if loss == "squared":
        return 1.0
    if loss == "logistic":
        return sigmoid(f) * sigmoid(-f)
    return exp(-y * f)


def sigmoid(f):
    """Logistic function without overflow."""
    if f >= 0:
        return 1.0 / (1.0 + exp(-f))
    return exp(f) / (1.0 + exp(f))


def binomial_phi(loss, share, f):
    """Loss averaged over trials of which the given share succeeded."""
    return share * phi(loss, 1.0, f) + (1.0 - share) * phi(loss, -1.0, f)


def binomial_dphi(loss, share, f):
    """First derivative of the averaged loss in f."""
    return share * dphi(loss, 1.0, f) + (1.0 - share) * dphi(loss, -1.0, f)


def _vector(function, loss, y, f):
    """One value per row."""
    return np.array(
        [function(loss, float(a), float(b)) for a, b in zip(y, f, strict=True)]
    )


def risk(loss, y, f, weights=None, binomial=False):
    """Mean (weighted mean) loss over the rows."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    values = _vector(binomial_phi if binomial else phi, loss, y, f)
    total = 0.0
    for i in range(len(y)):
        total += w[i] * values[i]
    return float(total / w.sum())


def probability(loss, f):
    """Probability of y = +1: sigma(f) for logistic, sigma(2 f) for exponential."""
    s = 2.0 if loss == "exponential" else 1.0
    return np.array([sigmoid(s * float(a)) for a in f])


def deviance(loss, y, f, weights=None):
    """Mean log-loss -log P(y_i) of the linked probability (half the deviance)."""
    s = 2.0 if loss == "exponential" else 1.0
    return risk("logistic", y, s * np.asarray(f, dtype=float), weights)


def start_offset(loss, y, weights=None):
    """Constant offset: mean, log-odds, or half the log-odds.

    The share p of +1 is clipped to [1/(W+2), 1-1/(W+2)], W the sum of the weights.
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum())
    if loss == "squared":
        return float(np.sum(w * np.asarray(y, dtype=float)) / W)
    p = float(sum(w[i] for i in range(len(y)) if y[i] > 0) / W)
    p = min(max(p, 1.0 / (W + 2.0)), 1.0 - 1.0 / (W + 2.0))
    odds = log(p / (1.0 - p))
    return odds if loss == "logistic" else 0.5 * odds


def softmax(F):
    """Row-wise softmax."""
    F = np.asarray(F, dtype=float)
    P = np.empty_like(F)
    for i in range(len(F)):
        z = np.exp(F[i] - F[i].max())
        P[i] = z / z.sum()
    return P


def softmax_risk(labels, F, weights=None):
    """Mean of -log P_{i, y_i}."""
    w = np.ones(len(F)) if weights is None else np.asarray(weights, dtype=float)
    total = 0.0
    for i in range(len(F)):
        top = F[i].max()
        total += w[i] * (top + log(np.exp(F[i] - top).sum()) - F[i][labels[i]])
    return float(total / w.sum())


def softmax_offset(labels, n_classes, weights=None):
    """Centred log shares log p_k - mean_l log p_l; for K=2 half the log-odds each."""
    w = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum())
    p = np.zeros(n_classes)
    for i, k in enumerate(labels):
        p[k] += w[i] / W
    logs = np.log(np.clip(p, 1.0 / (W + 2.0), 1.0 - 1.0 / (W + 2.0)))
    return logs - logs.mean()


# --------------------------------------------------------------------------- iteration


def default_step(loss, G, learning_rate=1.0, weights=None):
    """Default step: 1, 4 or (softmax) 2 over mu_1, or 1 / max k(x,x) (exponential).

    The exponential value is meant for log-risk steps.
    """
    if loss == "exponential":
        return learning_rate / float(np.max(np.diag(G)))
    factor = {"squared": 1.0, "logistic": 4.0, "softmax": 2.0}[loss]
    return learning_rate * factor / float(eigenvalues(G, weights)[0])


def boost(
    G,
    y,
    loss,
    alpha,
    n_steps,
    offset=0.0,
    log_risk=False,
    weights=None,
    binomial=False,
    divisor=None,
):
    """Functional gradient descent; coefficients (T+1, n) and learning times (T+1,).

    With `log_risk` the step is alpha / L_n(f^t). The gradient is divided by the
    sum of the weights, or by `divisor` (leave-one-out keeps the full n).
    """
    n = len(y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum()) if divisor is None else float(divisor)
    slope = binomial_dphi if binomial else dphi
    c = np.zeros(n)
    path, eta = [c.copy()], [0.0]
    for _ in range(n_steps):
        f = offset + G @ c
        step = alpha
        if log_risk:
            step = alpha / risk(loss, y, f, w, binomial)
        new = c.copy()
        for i in range(n):
            p = slope(loss, float(y[i]), float(f[i]))
            new[i] = c[i] - step / W * w[i] * p
        c = new
        path.append(c.copy())
        eta.append(eta[-1] + step)
    return np.array(path), np.array(eta)


def boost_softmax(G, labels, n_classes, alpha, n_steps, offset=0.0, weights=None):
    """Softmax descent with gradient P - Y; coefficients (T+1, n, K)."""
    n = len(labels)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum())
    C = np.zeros((n, n_classes))
    path = [C.copy()]
    for _ in range(n_steps):
        P = softmax(offset + G @ C)
        new = C.copy()
        for i in range(n):
            for k in range(n_classes):
                target = 1.0 if labels[i] == k else 0.0
                new[i, k] = C[i, k] - alpha / W * w[i] * (P[i, k] - target)
        C = new
        path.append(C.copy())
    return np.array(path)


def boost_one_vs_rest(G, labels, n_classes, alpha, n_steps, offsets=None, weights=None):
    """Exponential loss, one class against the others; coefficients (T+1, n, K)."""
    columns = []
    for k in range(n_classes):
        y = np.array([1.0 if label == k else -1.0 for label in labels])
        b = 0.0 if offsets is None else offsets[k]
        path, _ = boost(G, y, "exponential", alpha, n_steps, b, True, weights)
        columns.append(path)
    return np.stack(columns, axis=-1)


def one_vs_rest_probability(F):
    """Rows of sigma(2 f_k), divided by their sum."""
    P = np.array([[sigmoid(2.0 * float(f)) for f in row] for row in F])
    return P / P.sum(axis=1, keepdims=True)


def averaged_path(path):
    """Mean of the entries 1..T for every T; entry 0 (no step yet) is kept as it is."""
    path = np.asarray(path)
    result = [path[0].copy()]
    total = np.zeros_like(path[0])
    for t in range(1, len(path)):
        total = total + path[t]
        result.append(total / t)
    return np.array(result)


def values(path, G, offset=0.0):
    """Scores of every entry of a coefficient path; rows of G are points."""
    return np.array([offset + G @ c for c in path])


def hilbert_norm(c, G):
    """Norm sqrt(c' G c) of sum_j c_j k(., x_j)."""
    return sqrt(max(float(c @ G @ c), 0.0))


def empirical_norm(f):
    """Root mean square of the values."""
    return sqrt(float(np.mean(np.asarray(f, dtype=float) ** 2)))


# ------------------------------------------------------------------------ spectral form


def decompose(G, weights=None):
    """Eigenvalues (descending, clipped at 0) and eigenvectors of D^.5 G D^.5 / W."""
    n = len(G)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    root = np.sqrt(w)
    mu, U = np.linalg.eigh(root[:, None] * G * root[None, :] / w.sum())
    order = np.argsort(mu)[::-1]
    return np.clip(mu[order], 0.0, None), U[:, order]


def eigenvalues(G, weights=None):
    """Eigenvalues of the normalised kernel matrix, descending."""
    return decompose(G, weights)[0]


def filter_last(mu, alpha, t):
    """h_t = 1 - (1 - alpha mu)^t of one eigenvalue; t real if alpha mu <= 1."""
    a = 1.0 - alpha * mu
    if abs(a) < 1e-15:
        a = 0.0  # alpha = 1 / mu_1 up to rounding
    if a < 0 and t != int(t):
        raise ValueError("real t needs alpha mu <= 1")
    if a > 0:
        return -float(np.expm1(t * np.log1p(-alpha * mu)))
    return 1.0 - (float(a) ** int(t) if t == int(t) else 0.0)


def filter_average(mu, alpha, T):
    """Mean of h_1..h_T, T an integer (literal mean); h_0 = 0 for T = 0."""
    if T == 0:
        return 0.0
    total = 0.0
    for t in range(1, int(T) + 1):
        total += filter_last(mu, alpha, t)
    return total / T


def filter_average_closed(mu, alpha, T):
    """Averaged filter in closed form, any real T > 0.

    For small T alpha mu the binomial series sum_k (-1)^(k+1) s^k C(T+1, k+1) / T.
    """
    s = alpha * mu
    if s * max(T, 1.0) < 0.1:
        total, term = 0.0, s * (T + 1.0) / 2.0
        for k in range(1, 30):
            total += term
            term *= -s * (T - k) / (k + 2.0)
        return total
    return 1.0 - (1.0 - s) * filter_last(mu, alpha, T) / (T * s)


def filter_flow(mu, eta):
    """1 - exp(-eta mu), the filter of the gradient flow."""
    return -float(np.expm1(-eta * mu))


def filters(mu, alpha, t, average=False):
    """Filter values of all eigenvalues."""
    one = filter_average if average else filter_last
    return np.array([one(float(m), alpha, t) for m in mu])


def smoother(G, alpha, t, average=False):
    """Dense matrix U diag(h) U' that maps y - offset to f - offset."""
    mu, U = decompose(G)
    return U @ np.diag(filters(mu, alpha, t, average)) @ U.T


def spectral_coefficients(G, y, alpha, t, offset=0.0, average=False, weights=None):
    """Coefficients c = (1/W) D^.5 U (h/mu) b; h/mu from the sum of the powers.

    h_t(mu)/mu = alpha sum_{s<t} (1 - alpha mu)^s needs no division; t an integer.
    """
    mu, U = decompose(G, weights)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    b = U.T @ (np.sqrt(w) * (np.asarray(y, dtype=float) - offset))
    ratio = np.zeros(len(mu))
    for j in range(len(mu)):
        power, partial, mean = 1.0, 0.0, 0.0
        for _ in range(int(t)):
            partial += alpha * power
            power *= 1.0 - alpha * mu[j]
            mean += partial
        ratio[j] = (mean / t if t else 0.0) if average else partial
    return np.sqrt(w) * (U @ (ratio * b)) / w.sum()


def degrees_of_freedom(mu, alpha, t, average=False):
    """Sum of the filter values."""
    total = 0.0
    for m in mu:
        h = filter_average if average else filter_last
        total += h(float(m), alpha, t)
    return total


def residual_mean_square(y, f, weights=None):
    """rss, the (weighted) mean of (y_i - f_i)^2."""
    return 2.0 * risk("squared", y, f, weights)


def spectral_path(G, y, alpha, times, offset=0.0, average=False, weights=None):
    """Fit, df, rss, norm and leverages of the squared-loss path at the given times.

    Dense linear algebra per time: S = D^-.5 U diag(h) U' D^.5, f = offset + S (y -
    offset), df = trace S, rss a weighted mean, norm from (1/W) sum h^2 b^2 / mu.
    Real times are allowed for the last iterate if alpha mu_1 <= 1 and for the average
    through its closed form; integer times of the average use the literal mean. The
    norm leaves out eigenvalues below n eps mu_1.
    """
    n = len(y)
    y = np.asarray(y, dtype=float)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W, root = float(w.sum()), np.sqrt(w)
    mu, U = decompose(G, weights)
    b = U.T @ (root * (y - offset))
    out = {"fit": [], "df": [], "rss": [], "norm": [], "leverage": []}
    for t in times:
        if average and t != int(t):
            h = np.array([filter_average_closed(float(m), alpha, t) for m in mu])
        else:
            h = filters(mu, alpha, t, average)
        S = (U * h) @ U.T * root[None, :] / root[:, None]
        f = offset + S @ (y - offset)
        norm = 0.0
        for j in range(n):
            if mu[j] > n * np.finfo(float).eps * mu[0]:
                norm += h[j] ** 2 * b[j] ** 2 / mu[j] / W
        out["fit"].append(f)
        out["df"].append(float(np.trace(S)))
        out["rss"].append(residual_mean_square(y, f, w))
        out["norm"].append(sqrt(norm))
        out["leverage"].append(np.diag(S).copy())
    result = {key: np.array(value) for key, value in out.items()}
    result.update(mu=mu, times=np.asarray(times, dtype=float), n=W, alpha=alpha)
    return result


# ----------------------------------------------------------------------------- criteria


def gcv(rss, df, n, margin=0.0, extra=0.0):
    """Generalised cross-validation rss / (1 - (df + margin sqrt(df) + extra)/n)^2.

    The plain criterion has margin = extra = 0, the project's default margin = 1 and
    extra = 1 for the offset.
    """
    return rss / (1.0 - (df + margin * sqrt(max(df, 0.0)) + extra) / n) ** 2


def aicc(rss, df, n):
    """Corrected AIC; nan where n - df - 2 <= 0."""
    if n - df - 2.0 <= 0.0:
        return nan
    return log(rss) + (1.0 + df / n) / (1.0 - (df + 2.0) / n)


def mallows_cp(rss, df, n, sigma):
    """Mallows criterion rss + 2 sigma^2 df / n."""
    return rss + 2.0 * sigma**2 * df / n


def pilot_sigma(rss, df, n):
    """Noise standard deviation from the residuals, sqrt(n rss / (n - df))."""
    return sqrt(n * rss / (n - df))


def allowed(df, n, margin=0.0, extra=0.0):
    """Guards df <= 0.9 n and df + margin sqrt(df) + extra <= 0.95 n.

    The second one belongs to the margin and applies only if it is positive.
    """
    if df > 0.9 * n:
        return False
    return margin <= 0 or df + margin * sqrt(max(df, 0.0)) + extra <= 0.95 * n


def select(criterion, df, n, margin=0.0, extra=0.0):
    """Position of the smallest criterion among the allowed times; 0 if none is."""
    best, where = inf, 0
    for i in range(len(criterion)):
        value = float(criterion[i])
        if isnan(value) or not allowed(float(df[i]), n, margin, extra):
            continue
        if value < best:
            best, where = value, i
    return where


def select_discrepancy(rss, sigma, tau=1.0):
    """Position of the first time with rss <= tau sigma^2; the last one if none."""
    for i in range(len(rss)):
        if rss[i] <= tau * sigma**2:
            return i
    return len(rss) - 1


def learning_times(mu, count=120):
    """Geometric grid from 1 to 30 mu_1 / mu_r, mu_r the last eigenvalue given."""
    top = 30.0 * mu[0] / mu[-1]
    return np.array([top ** (i / (count - 1)) for i in range(count)])


# ---------------------------------------------------------- complexity, critical radius


def complexity(mu, delta, n):
    """R(delta) = sqrt((1/n) sum_j min(delta^2, mu_j))."""
    total = 0.0
    for m in mu:
        total += min(delta**2, float(m))
    return sqrt(total / n)


def critical_radius_bisection(mu, sigma, n):
    """delta^2 with sigma R(delta) = delta^2, by root finding in log delta."""
    if sigma <= 0 or np.max(mu) <= 0:
        return 0.0

    def gap(z):
        d = exp(z)
        return log(sigma * complexity(mu, d, n)) - 2.0 * log(d)

    low, high = 0.0, 0.0
    while gap(high) > 0:
        high += 1.0
    while gap(low) < 0:
        low -= 1.0
    if low == high:
        return 1.0
    return exp(2.0 * brentq(gap, low, high, xtol=1e-15, rtol=1e-15))


def critical_radius_formula(mu, sigma, n):
    """delta^2 from the closed form, k = number of eigenvalues above delta^2."""
    mu = np.asarray(mu, dtype=float)
    s = sigma**2 / n
    best, result = inf, nan
    for k in range(len(mu) + 1):
        tail = 0.0
        for m in mu[k:]:
            tail += float(m)
        d2 = 0.5 * (s * k + sqrt((s * k) ** 2 + 4.0 * s * tail))
        upper = inf if k == 0 else mu[k - 1]
        lower = 0.0 if k == len(mu) else mu[k]
        miss = max(lower - d2, d2 - upper, 0.0)
        if miss < best:
            best, result = miss, d2
    return float(result)


def localised_complexity(G, delta, n_draws, rng):
    """Monte Carlo mean and standard error of sup (1/n) w'g over the localised ball.

    g runs over |g|_H <= 1, |g|_n <= delta. With g = sqrt(n) U a the supremum is
    the minimum over l in [0, 1] of sqrt((1/n) sum v_j^2 / ((1-l)/mu_j + l/delta^2)),
    v = U'w (Lagrange dual of a linear function on two ellipsoids).
    """
    n = len(G)
    mu, U = decompose(G)
    sups = []
    for _ in range(n_draws):
        v = U.T @ rng.standard_normal(n)

        def bound(lam, v=v):
            total = 0.0
            for j in range(n):
                if mu[j] > 0:
                    total += v[j] ** 2 / ((1.0 - lam) / mu[j] + lam / delta**2)
            return total / n

        found = minimize_scalar(
            bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}
        )
        sups.append(sqrt(min(found.fun, bound(0.0), bound(1.0))))
    sups = np.array(sups)
    return float(sups.mean()), float(sups.std(ddof=1) / sqrt(n_draws))


def curvature_and_noise(loss, p=0.5, sigma=None, trials=1):
    """Curvature m and effective noise sigma_f of the theory rule.

    p is a probability or an array of pilot probabilities; v = mean p (1 - p).
    """
    if loss == "squared":
        return 1.0, float(sigma)
    p = np.atleast_1d(np.asarray(p, dtype=float))
    v = float(np.mean(p * (1.0 - p)))
    if loss == "logistic":
        m, noise = v, 1.0 / sqrt(v)
    else:
        m, noise = 2.0 * sqrt(v), 1.0 / (2.0 * sqrt(v))
    return m, noise / sqrt(trials)


def theory_iterations(mu, n, alpha, noise, radius=1.0, m=1.0, scale=1.0):
    """T = floor(scale / (alpha m delta^2)), at least 1; delta^2 from noise/radius."""
    d2 = critical_radius_bisection(mu, noise / radius, n)
    if d2 <= 0:
        return inf
    return max(1, floor(scale / (alpha * m * d2)))


def theory_first_time(eta, mu, n, noise, radius=1.0, m=1.0, scale=1.0):
    """First t with m eta_t >= scale / delta^2 (log-risk steps); None if never."""
    d2 = critical_radius_bisection(mu, noise / radius, n)
    for t in range(len(eta)):
        if m * eta[t] * d2 >= scale:
            return t
    return None


def rwy_iterations(mu, n, alpha, sigma, limit=10**6):
    """Last t with R(1/sqrt(eta)) <= 1/(2 e sigma eta), eta = alpha t; may be 0."""
    t = 0
    while t < limit:
        eta = alpha * (t + 1)
        if complexity(mu, 1.0 / sqrt(eta), n) > 1.0 / (2.0 * euler * sigma * eta):
            break
        t += 1
    return t


# ----------------------------------------------------------- marginal likelihood, gamma


def marginal_likelihood(G, r, q, s2=None):
    """Score of r ~ N(0, s2 (I + q G)) and s2 (profiled if not given), dense.

    n log s2 + log det(I + q G), plus r'(I + q G)^{-1} r / s2 if s2 is given.
    """
    n = len(r)
    L = np.linalg.cholesky(np.eye(n) + q * G)
    z = np.linalg.solve(L, r)
    quad = float(z @ z)
    logdet = 0.0
    for i in range(n):
        logdet += 2.0 * log(L[i, i])
    if s2 is None:
        s2 = quad / n
        return n * log(s2) + logdet, s2
    return n * log(s2) + logdet + quad / s2, s2


def evidence(G, r, s2=None, decades=6.0, count=121):
    """Smallest score over q in 10^(-6..6) / mean diag(G); (score, q, s2).

    A grid in log q and a bounded search between the neighbours of its best point.
    """
    r = np.asarray(r, dtype=float)
    if not np.any(r):
        return -inf, nan, 0.0
    unit = 1.0 / float(np.mean(np.diag(G)))
    grid = np.linspace(-decades, decades, count)
    score = [marginal_likelihood(G, r, unit * 10.0**z, s2)[0] for z in grid]
    k = int(np.argmin(score))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, count - 1)]
    found = minimize_scalar(
        lambda z: marginal_likelihood(G, r, unit * 10.0**z, s2)[0],
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    z = float(found.x) if found.fun <= score[k] else float(grid[k])
    value, variance = marginal_likelihood(G, r, unit * 10.0**z, s2)
    return value, unit * 10.0**z, variance


def marginal_sigma(G, y, offset=None):
    """Noise standard deviation sqrt(s2) at the maximum; offset = mean if omitted."""
    y = np.asarray(y, dtype=float)
    centre = float(y.mean()) if offset is None else offset
    return sqrt(evidence(G, y - centre)[2])


def evidence_path(X, y, gammas, kernel="rbf", pivots=None):
    """Evidence score per gamma of y - mean(y), full Gram matrix or given pivots."""
    y = np.asarray(y, dtype=float)
    scores = []
    for i, gamma in enumerate(gammas):
        G = gram(X, kernel=kernel, gamma=gamma)
        if pivots is not None:
            G = lowrank_gram(G, pivots[i])
        scores.append(evidence(G, y - y.mean())[0])
    return np.array(scores)


def gamma_grid(X, powers=range(-3, 4)):
    """Grid 4^power / median squared distance over the pairs i < j."""
    X = _columns(X)
    squared = []
    for i in range(len(X)):
        for j in range(i + 1, len(X)):
            squared.append(float(np.sum((X[i] - X[j]) ** 2)))
    return np.array([4.0**k / float(np.median(squared)) for k in powers])


def working_response_radius(G, y, loss, offset, m, noise, kind="norm"):
    """Radius from z = -phi'(y, offset)/m with known noise; also q.

    z ~ N(0, noise^2 (I + q G)); `norm` is the Hilbert norm of the posterior mean
    q G (I + q G)^{-1} z, `prior` is sqrt(q df) noise with df the trace of the smoother.
    """
    n = len(y)
    z = -_vector(dphi, loss, y, np.full(n, float(offset))) / m
    _, q, _ = evidence(G, z, s2=noise**2)
    c = q * np.linalg.solve(np.eye(n) + q * G, z)
    if kind == "norm":
        return hilbert_norm(c, G), q
    S = q * G @ np.linalg.inv(np.eye(n) + q * G)
    return noise * sqrt(q * float(np.trace(S))), q


# ----------------------------------------------------------------------- leave-one-out


def loo_residuals(G, y, alpha, n_steps, offset="zero"):
    """Exact leave-one-out residuals (T+1, n) by n refits of the squared-loss path.

    The refit has n - 1 rows and step alpha / n per row. `offset` is "zero" or "mean"
    (mean of the remaining rows).
    """
    n = len(y)
    y = np.asarray(y, dtype=float)
    E = np.empty((n_steps + 1, n))
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        b = float(y[rest].mean()) if offset == "mean" else 0.0
        path, _ = boost(
            G[np.ix_(rest, rest)], y[rest], "squared", alpha, n_steps, b, divisor=n
        )
        for t in range(n_steps + 1):
            E[t, i] = y[i] - b - float(G[i, rest] @ path[t])
    return E


def loo_scores(G, y, loss, alpha, n_steps, offset=0.0, log_risk=False):
    """Left-out score f^{t,(-i)}(x_i) of any loss by n refits, offset kept; (T+1, n)."""
    n = len(y)
    y = np.asarray(y, dtype=float)
    scores = np.empty((n_steps + 1, n))
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        path, _ = boost(
            G[np.ix_(rest, rest)],
            y[rest],
            loss,
            alpha,
            n_steps,
            offset,
            log_risk,
            divisor=n,
        )
        for t in range(n_steps + 1):
            scores[t, i] = offset + float(G[i, rest] @ path[t])
    return scores


def loo_residuals_approximate(G, y, alpha, t, offset="zero"):
    """Approximate leave-one-out residuals (y_i - f_i)/(1 - S_ii) of the last iterate.

    With "mean" the smoother is H + (I - H) 11'/n, the mean being estimated too.
    """
    n = len(y)
    y = np.asarray(y, dtype=float)
    S = smoother(G, alpha, t)
    if offset == "mean":
        S = S + (np.eye(n) - S) @ np.full((n, n), 1.0 / n)
    r = y - S @ y
    return np.array([r[i] / (1.0 - S[i, i]) for i in range(n)])


def alo_scores(G, y, f, loss, eta, weights=None):
    """Approximate left-out scores f_i + g_i phi'_i / (1 - g_i phi''_i).

    g_i = psi_i' S diag((1 - e^{-eta l})/l) S' psi_i / n with Psi Psi' = G and (l, S)
    the eigenpairs of Psi' diag(phi'') Psi / n; weights enter the mean over the rows,
    and one unit of weight is left out.
    """
    n = len(y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum())
    p, h = _vector(dphi, loss, y, f), _vector(d2phi, loss, y, f)
    lam, V = np.linalg.eigh(G)
    Psi = V * np.sqrt(np.clip(lam, 0.0, None))
    level, S = np.linalg.eigh(Psi.T @ np.diag(w * h) @ Psi / W)
    result = np.empty(n)
    for i in range(n):
        a = S.T @ Psi[i]
        g = 0.0
        for j in range(n):
            l = max(float(level[j]), 0.0)
            g += a[j] ** 2 * (eta if eta * l < 1e-12 else filter_flow(l, eta) / l)
        g /= W
        result[i] = f[i] + g * p[i] / (1.0 - g * h[i])
    return result


def alo_softmax_scores(G, labels, F, eta):
    """Approximate left-out scores (n, K) of softmax, the K x K form of `alo_scores`.

    F_i + (I - A_i H_i)^{-1} A_i (P_i - Y_i), H_i = diag(P_i) - P_i P_i', A_i the block
    of Psi_K S diag((1 - e^{-eta l})/l) S' Psi_K' / n, Psi_K = Psi (x) I.
    """
    n, n_classes = F.shape
    P = softmax(F)
    lam, V = np.linalg.eigh(G)
    Psi = V * np.sqrt(np.clip(lam, 0.0, None))
    big = np.kron(Psi, np.eye(n_classes))
    H = np.zeros((n * n_classes, n * n_classes))
    for i in range(n):
        block = slice(i * n_classes, (i + 1) * n_classes)
        H[block, block] = np.diag(P[i]) - np.outer(P[i], P[i])
    level, S = np.linalg.eigh(big.T @ H @ big / n)
    gain = np.empty(len(level))
    for j in range(len(level)):
        l = max(float(level[j]), 0.0)
        gain[j] = eta if eta * l < 1e-12 else filter_flow(l, eta) / l
    A = big @ (S * gain) @ S.T @ big.T / n
    result = np.empty_like(P)
    for i in range(n):
        block = slice(i * n_classes, (i + 1) * n_classes)
        target = np.zeros(n_classes)
        target[labels[i]] = 1.0
        Ai, Hi = A[block, block], H[block, block]
        shift = np.linalg.solve(np.eye(n_classes) - Ai @ Hi, Ai @ (P[i] - target))
        result[i] = F[i] + shift
    return result


def alo_criterion(G, y, f, loss, eta, weights=None):
    """Mean log-loss of the approximate left-out scores."""
    return deviance(loss, y, alo_scores(G, y, f, loss, eta, weights), weights)


# ----------------------------------------------------------------- classification, AIC


def df_classification(mu, eta, m):
    """Sum over j of 1 - exp(-eta m mu_j) (gradient flow)."""
    total = 0.0
    for value in mu:
        total += filter_flow(m * float(value), eta)
    return total


def df_classification_steps(mu, alpha, t, m):
    """Sum over j of 1 - (1 - alpha m mu_j)^t (t steps of size alpha)."""
    return degrees_of_freedom(mu, alpha * m, t)


def running_curvature(loss, y, f, weights=None):
    """Mean phi'' at the current scores; equals the risk for the exponential loss."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    return float(np.sum(w * _vector(d2phi, loss, y, f)) / w.sum())


def frequency_curvature(loss, y, weights=None):
    """Curvature m at the class frequency, v or 2 sqrt(v), v = p (1 - p), clipped p."""
    p = float(probability(loss, [start_offset(loss, y, weights)])[0])
    return curvature_and_noise(loss, p)[0]


def aic(loss, y, f, df, margin=0.0, weights=None):
    """Mean log-loss of the linked probability plus (df + margin sqrt(df)) / n."""
    n = len(y) if weights is None else float(np.sum(weights))
    return deviance(loss, y, f, weights) + (df + margin * sqrt(max(df, 0.0))) / n


def df_softmax(mu, F, eta, weights=None):
    """Sum over j and k of 1 - exp(-eta l_k mu_j), l of mean(diag(P_i) - P_i P_i')."""
    w = np.ones(len(F)) if weights is None else np.asarray(weights, dtype=float)
    P = softmax(F)
    H = np.zeros((P.shape[1], P.shape[1]))
    for i in range(len(P)):
        H += w[i] / w.sum() * (np.diag(P[i]) - np.outer(P[i], P[i]))
    total = 0.0
    for l in np.linalg.eigvalsh(H):
        total += df_classification(mu, eta, max(float(l), 0.0))
    return total


# -------------------------------------------------------------------------------- flow


def flow(
    G,
    y,
    loss,
    etas,
    offset=0.0,
    weights=None,
    divisor=None,
    log_risk=False,
    rtol=1e-11,
    atol=1e-12,
    method="LSODA",
):
    """Coefficients of dc/deta = -w phi'(y, offset + G c)/W at increasing etas.

    W is the sum of the weights or `divisor` (leave-one-out keeps the full n). With
    `log_risk` the velocity is divided by L_n(f), as are the log-risk steps.
    """
    n = len(y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum()) if divisor is None else float(divisor)

    def velocity(_, c):
        f = offset + G @ c
        v = np.empty(n)
        for i in range(n):
            v[i] = -w[i] / W * dphi(loss, float(y[i]), float(f[i]))
        return v / risk(loss, y, f, w) if log_risk else v

    return _integrate(velocity, np.zeros(n), etas, rtol, atol, method)


def flow_softmax(
    G,
    labels,
    n_classes,
    etas,
    offset=0.0,
    weights=None,
    rtol=1e-11,
    atol=1e-12,
    method="LSODA",
):
    """Coefficients (len(etas), n, K) of dC/deta = -w (P - Y)/W."""
    n = len(labels)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    W = float(w.sum())
    Y = np.zeros((n, n_classes))
    for i in range(n):
        Y[i, labels[i]] = 1.0

    def velocity(_, flat):
        P = softmax(offset + G @ flat.reshape(n, n_classes))
        return (-(w[:, None] / W) * (P - Y)).ravel()

    path = _integrate(velocity, np.zeros(n * n_classes), etas, rtol, atol, method)
    return path.reshape(len(etas), n, n_classes)


def _integrate(velocity, start, etas, rtol, atol, method):
    """States at increasing times, each stretch integrated to its end point."""
    state, now, path = start, 0.0, []
    for eta in etas:
        if eta > now:
            solved = solve_ivp(
                velocity, (now, eta), state, method=method, rtol=rtol, atol=atol
            )
            if not solved.success:
                raise RuntimeError(solved.message)
            state, now = solved.y[:, -1], float(eta)
        path.append(state.copy())
    return np.array(path)


def loo_flow_scores(G, y, loss, eta, offset=0.0):
    """Left-out scores of the flow by n refits, offset kept, mean divided by n."""
    n = len(y)
    y = np.asarray(y, dtype=float)
    result = np.empty(n)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        inner = G[np.ix_(rest, rest)]
        c = flow(inner, y[rest], loss, [eta], offset, divisor=n)[0]
        result[i] = offset + float(G[i, rest] @ c)
    return result


# ------------------------------------------------------------------- low-rank factor


def partial_cholesky(G, pivots):
    """F (n, r) with F F' the Nystroem approximation of G on the pivots, by columns."""
    n, r = len(G), len(pivots)
    F = np.zeros((n, r))
    for k in range(r):
        p = pivots[k]
        column = G[:, p].astype(float).copy()
        for l in range(k):
            column -= F[:, l] * F[p, l]
        F[:, k] = column / sqrt(column[p])
        for l in range(k):
            F[pivots[l], k] = 0.0
    return F


def lowrank_gram(G, pivots):
    """F F' of the given pivots."""
    F = partial_cholesky(G, pivots)
    return F @ F.T


def residual_diagonal(G, pivots):
    """Diagonal of G - F F', at least 0 and 0 at the pivots."""
    F = partial_cholesky(G, pivots)
    d = np.diag(G) - np.sum(F**2, axis=1)
    d[list(pivots)] = 0.0
    return np.clip(d, 0.0, None)


def random_pivots(G, r, rng):
    """Sequential random pivots, drawn with probability d_i / sum(d)."""
    pivots = []
    for _ in range(r):
        d = residual_diagonal(G, pivots)
        pivots.append(int(rng.choice(len(d), p=d / d.sum())))
    return pivots


def pivot_probability(G, pivots, weights=None):
    """Probability that sequential random pivoting draws exactly this sequence.

    A row is drawn in proportion to its residual, times its weight if there are weights.
    """
    w = np.ones(len(G)) if weights is None else np.asarray(weights, dtype=float)
    result = 1.0
    for k in range(len(pivots)):
        d = w * residual_diagonal(G, pivots[:k])
        result *= d[pivots[k]] / d.sum()
    return float(result)


def missing_df_bound(G, pivots, alpha, t):
    """Bound alpha t tau on the missing df, tau = trace(G - F F') / n."""
    return alpha * t * float(residual_diagonal(G, pivots).sum()) / len(G)


def lowrank_predict(G_new_pivots, G, pivots, c):
    """Values at new points of the function with coefficients c on all n rows of F F'.

    G_new_pivots is k(x_new, pivots); the function is k(x, Z) k(Z, Z)^{-1} k(Z, X) c.
    """
    cross = G[np.asarray(pivots), :] @ c
    inner = G[np.ix_(pivots, pivots)]
    return G_new_pivots @ np.linalg.solve(inner, cross)


# --------------------------------------------------------- one-dimensional Sobolev path


def sobolev_path(
    x, y, times, weights=None, alpha=None, offset=0.0, average=False, safety=1.0
):
    """Squared-loss path for 1 + min(x, x'), dense, ties and weights allowed.

    `spectral_path` of the rows as they are, alpha = 1/(safety mu_1) if omitted, plus
    the merged knots: `knots`, `knot_weight`, `knot_mean`, `within` (sum of w (y -
    mean)^2 inside the ties), `knot_fit` and `knot_leverage` (sum over the tied rows, so
    that df is their sum) for every time.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    G = gram(x, kernel="sobolev")
    if alpha is None:
        alpha = 1.0 / (safety * eigenvalues(G, w)[0])
    path = spectral_path(G, y, alpha, times, offset, average, w)
    knots = np.array(sorted(set(x.tolist())))
    total, mean, fit, leverage, within = [], [], [], [], 0.0
    for knot in knots:
        rows = np.flatnonzero(x == knot)
        total.append(float(w[rows].sum()))
        mean.append(float(np.sum(w[rows] * y[rows]) / w[rows].sum()))
        within += float(np.sum(w[rows] * (y[rows] - mean[-1]) ** 2))
        fit.append(path["fit"][:, rows[0]])
        leverage.append(path["leverage"][:, rows].sum(axis=1))
    path.update(
        knots=knots,
        knot_weight=np.array(total),
        knot_mean=np.array(mean),
        within=within,
        knot_fit=np.array(fit).T,
        knot_leverage=np.array(leverage).T,
    )
    return path


def sobolev_precision(knots):
    """Inverse of (1 + min(x_i, x_j)) for increasing knots, assembled term by term."""
    n = len(knots)
    Q = np.zeros((n, n))
    Q[0, 0] += 1.0 / (1.0 + knots[0])
    for i in range(n - 1):
        g = 1.0 / (knots[i + 1] - knots[i])
        Q[i, i] += g
        Q[i + 1, i + 1] += g
        Q[i, i + 1] -= g
        Q[i + 1, i] -= g
    return Q


def sobolev_interpolate(knots, fit, x_new, offset=0.0):
    """Value of offset + sum_j c_j (1 + min(x, x_j)) from its values at the knots.

    f - offset is linear between the knots, constant to the right of the last one and
    proportional to 1 + x to the left of the first one.
    """
    result = []
    for x in x_new:
        g = [value - offset for value in fit]
        if x <= knots[0]:
            value = g[0] * (1.0 + x) / (1.0 + knots[0])
        elif x >= knots[-1]:
            value = g[-1]
        else:
            k = 0
            while knots[k + 1] < x:
                k += 1
            share = (x - knots[k]) / (knots[k + 1] - knots[k])
            value = (1.0 - share) * g[k] + share * g[k + 1]
        result.append(offset + value)
    return np.array(result)
