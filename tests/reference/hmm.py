"""Slow reference for hidden Markov models trained by Baum-Welch.

F. Yang's thesis, chapter 2, and the project's own additions, written from the
definitions: sums over all state paths, loops over rows and states; nothing is imported
from the package.

Notation: s states, d features; a sequence x_1..x_n; start law p, transition matrix A
(rows sum to one), stationary law pi; B_ij = log p(x_i | Z_i = j).

Conventions:

* `theta` is a dict with "startprob" (s,), "transmat" (s, s), "means" (s, d) and
  "covariances" (s, d, d);
* data with several sequences is a list of arrays (n_k, d);
* the symmetric model has the states -1 and +1 in this order: `means` is (-mu, mu), A is
  [[zeta, 1 - zeta], [1 - zeta, zeta]], the start law is (1/2, 1/2);
* a window k around row i is the rows i-k..i+k, cut at the ends; it starts from the
  stationary law, or from the start law of the model if it was cut on the left;
* the pair (i-1, i) has the window of its second row.
"""

import itertools
from math import atanh, cosh, exp, inf, log, pi, sqrt, tanh

import numpy as np

# ---------------------------------------------------------------------------- densities


def log_gaussian(x, mean, covariance):
    """Log-density of one row, from the inverse and the determinant."""
    x, mean = np.asarray(x, dtype=float), np.asarray(mean, dtype=float)
    C = np.asarray(covariance, dtype=float)
    r = x - mean
    sign, logdet = np.linalg.slogdet(C)
    if sign <= 0:
        raise ValueError("the covariance is not positive definite")
    return -0.5 * (len(x) * log(2 * pi) + logdet + r @ np.linalg.solve(C, r))


def emissions(x, theta):
    """Matrix of log p(x_i | Z_i = j)."""
    B = np.empty((len(x), len(theta["means"])))
    for i in range(len(x)):
        for j in range(B.shape[1]):
            B[i, j] = log_gaussian(x[i], theta["means"][j], theta["covariances"][j])
    return B


def log_or_minus_inf(p):
    """Logarithm that allows zero."""
    return log(p) if p > 0 else -inf


def log_sum(values):
    """Log of the sum of exponentials, -inf for none."""
    top = max(values)
    if top == -inf:
        return -inf
    return top + log(sum(exp(v - top) for v in values))


# -------------------------------------------------------------------------- enumeration


def joint(path, B, startprob, A):
    """Log of p(z, x) for one path (2.1)."""
    value = log_or_minus_inf(startprob[path[0]]) + B[0, path[0]]
    for i in range(1, len(path)):
        value += log_or_minus_inf(A[path[i - 1]][path[i]]) + B[i, path[i]]
    return value


def enumerate_paths(B, startprob, A):
    """Everything about one sequence from the list of all s^n paths.

    `loglik`, `gamma` (n, s), `xi` (n-1, s, s), the best path `viterbi` (smallest one
    among equals) and its joint log-probability `viterbi_log_prob`.
    """
    n, s = B.shape
    paths = list(itertools.product(range(s), repeat=n))
    logs = [joint(path, B, startprob, A) for path in paths]
    loglik = log_sum(logs)
    gamma, xi = np.zeros((n, s)), np.zeros((max(n - 1, 0), s, s))
    for path, value in zip(paths, logs, strict=True):
        weight = exp(value - loglik)
        for i in range(n):
            gamma[i, path[i]] += weight
        for i in range(n - 1):
            xi[i, path[i], path[i + 1]] += weight
    best = int(np.argmax(logs))
    return {
        "loglik": loglik,
        "gamma": gamma,
        "xi": xi,
        "viterbi": np.array(paths[best]),
        "viterbi_log_prob": logs[best],
    }


def enumerate_filter(B, startprob, A):
    """Filtered posteriors p(z_i | x_1..x_i), each from the paths of its own rows."""
    rows = []
    for i in range(len(B)):
        rows.append(enumerate_paths(B[: i + 1], startprob, A)["gamma"][i])
    return np.array(rows)


def enumerate_conditionals(B, startprob, A):
    """Values log p(x_i | x_1..x_{i-1}), differences of enumerated log-likelihoods."""
    values = [0.0]
    for i in range(len(B)):
        values.append(enumerate_paths(B[: i + 1], startprob, A)["loglik"])
    return np.diff(values)


def enumerate_first_pair(B, zeta):
    """Probability given x that Z_0 and Z_1 agree in the symmetric model."""
    A = symmetric_transmat(zeta)
    extended = np.vstack([np.zeros(2), B])
    xi = enumerate_paths(extended, [0.5, 0.5], A)["xi"][0]
    return float(xi[0, 0] + xi[1, 1])


# --------------------------------------------------------------------- longer sequences


def forward(B, startprob, A):
    """Log alpha_i(j) = log p(x_1..x_i, Z_i = j)."""
    n, s = B.shape
    L = np.empty((n, s))
    for j in range(s):
        L[0, j] = log_or_minus_inf(startprob[j]) + B[0, j]
    for i in range(1, n):
        for k in range(s):
            terms = [L[i - 1, j] + log_or_minus_inf(A[j][k]) for j in range(s)]
            L[i, k] = log_sum(terms) + B[i, k]
    return L


def backward(B, A):
    """Log beta_i(j) = log p(x_{i+1}..x_n | Z_i = j)."""
    n, s = B.shape
    R = np.zeros((n, s))
    for i in range(n - 2, -1, -1):
        for j in range(s):
            terms = [
                log_or_minus_inf(A[j][k]) + B[i + 1, k] + R[i + 1, k] for k in range(s)
            ]
            R[i, j] = log_sum(terms)
    return R


def viterbi(B, startprob, A):
    """Best path and its joint log-probability by dynamic programming."""
    n, s = B.shape
    V, back = np.empty((n, s)), np.zeros((n, s), dtype=int)
    for j in range(s):
        V[0, j] = log_or_minus_inf(startprob[j]) + B[0, j]
    for i in range(1, n):
        for k in range(s):
            terms = [V[i - 1, j] + log_or_minus_inf(A[j][k]) for j in range(s)]
            back[i, k] = int(np.argmax(terms))
            V[i, k] = terms[back[i, k]] + B[i, k]
    path = [int(np.argmax(V[-1]))]
    for i in range(n - 1, 0, -1):
        path.append(int(back[i, path[-1]]))
    return np.array(path[::-1]), float(V[-1].max())


def smooth(B, startprob, A):
    """As `enumerate_paths`, by log-space recursions; also `filtered`, `conditional`."""
    n, s = B.shape
    L, R = forward(B, startprob, A), backward(B, A)
    loglik = log_sum(L[-1])
    gamma, xi = np.zeros((n, s)), np.zeros((max(n - 1, 0), s, s))
    for i in range(n):
        for j in range(s):
            gamma[i, j] = exp(L[i, j] + R[i, j] - loglik)
    for i in range(n - 1):
        for j in range(s):
            for k in range(s):
                step = log_or_minus_inf(A[j][k]) + B[i + 1, k] + R[i + 1, k]
                xi[i, j, k] = exp(L[i, j] + step - loglik)
    totals = [0.0] + [log_sum(row) for row in L]
    filtered = np.array([[exp(v - log_sum(row)) for v in row] for row in L])
    path, best = viterbi(B, startprob, A)
    return {
        "loglik": loglik,
        "gamma": gamma,
        "xi": xi,
        "viterbi": path,
        "viterbi_log_prob": best,
        "filtered": filtered,
        "conditional": np.diff(totals),
    }


def evaluate(x, theta, window=None, method="auto"):
    """`enumerate_paths` or `smooth` of one sequence; `window` replaces gamma and xi."""
    B = emissions(x, theta)
    n, s = B.shape
    if method == "auto":
        method = "paths" if s**n <= 300 else "recursion"
    step = enumerate_paths if method == "paths" else smooth
    result = step(B, theta["startprob"], theta["transmat"])
    if window is not None:
        result["gamma"], result["xi"] = window_posteriors(
            B, theta["startprob"], theta["transmat"], window, step
        )
    return result


def loglik(sequences, theta):
    """Sum of the log-likelihoods of several sequences."""
    return sum(evaluate(x, theta)["loglik"] for x in sequences)


# ------------------------------------------------------------------------------ windows


def window_posteriors(B, startprob, A, k, step=enumerate_paths):
    """p(z_i | x_{i-k}^{i+k}) and p(z_{i-1}, z_i | x_{i-k}^{i+k}) (2.13)."""
    n, s = B.shape
    gamma, xi = np.zeros((n, s)), np.zeros((max(n - 1, 0), s, s))
    law = stationary(A)
    for i in range(n):
        first, last = max(0, i - k), min(n - 1, i + k)
        start = startprob if first == 0 else law
        part = step(B[first : last + 1], start, A)
        gamma[i] = part["gamma"][i - first]
        if i > 0:
            xi[i - 1] = part["xi"][i - 1 - first]
    return gamma, xi


# -------------------------------------------------------------------------- EM, general


def em_update(sequences, theta, covariance_type="full", reg=0.0, window=None):
    """Update every parameter once (2.9)-(2.11); sums run over all sequences.

    States without responsibility keep their parameters, rows of A without visits too.
    The start law is the free one; use `stationary` of the result for the tied one.
    """
    s, d = np.shape(theta["means"])
    parts = [evaluate(x, theta, window) for x in sequences]
    rows = np.vstack(sequences)
    gamma = np.vstack([part["gamma"] for part in parts])
    startprob = np.zeros(s)
    counts = np.zeros((s, s))
    for part in parts:
        startprob += part["gamma"][0] / len(sequences)
        for pair in part["xi"]:
            counts += pair
    transmat = np.array(theta["transmat"], dtype=float)
    for j in range(s):
        if counts[j].sum() > 0:
            transmat[j] = counts[j] / counts[j].sum()
    means = np.array(theta["means"], dtype=float)
    scatter = np.zeros((s, d, d))
    weight = gamma.sum(axis=0)
    for j in range(s):
        if weight[j] <= 0:
            continue
        means[j] = sum(g * x for g, x in zip(gamma[:, j], rows, strict=True))
        means[j] /= weight[j]
        for g, x in zip(gamma[:, j], rows, strict=True):
            scatter[j] += g * np.outer(x - means[j], x - means[j])
    covariances = covariance_update(
        scatter, weight, covariance_type, np.array(theta["covariances"]), reg
    )
    return {
        "startprob": startprob,
        "transmat": transmat,
        "means": means,
        "covariances": covariances,
    }


def covariance_update(scatter, weight, covariance_type, old, reg=0.0):
    """Covariances of the four kinds, always as full matrices."""
    s, d = scatter.shape[:2]
    result = np.array(old, dtype=float)
    if covariance_type == "tied":
        pooled = scatter.sum(axis=0) / weight.sum() + reg * np.eye(d)
        return np.array([pooled] * s)
    for j in range(s):
        if weight[j] <= 0:
            continue
        C = scatter[j] / weight[j]
        if covariance_type == "diag":
            C = np.diag(np.diag(C))
        elif covariance_type == "spherical":
            C = np.trace(C) / d * np.eye(d)
        result[j] = C + reg * np.eye(d)
    return result


def em(sequences, theta, n_iter, **options):
    """Iterates 0..n_iter and their total log-likelihoods."""
    path = [theta]
    for _ in range(n_iter):
        path.append(em_update(sequences, path[-1], **options))
    return path, np.array([loglik(sequences, t) for t in path])


# ------------------------------------------------------------------------ EM, symmetric


def symmetric_transmat(zeta):
    """A of the symmetric model (2.7)."""
    return np.array([[zeta, 1.0 - zeta], [1.0 - zeta, zeta]])


def symmetric_theta(mu, zeta, sigma):
    """The symmetric model as a general one; state 0 is -mu."""
    mu = np.asarray(mu, dtype=float)
    return {
        "startprob": np.array([0.5, 0.5]),
        "transmat": symmetric_transmat(zeta),
        "means": np.array([-mu, mu]),
        "covariances": np.array([sigma**2 * np.eye(len(mu))] * 2),
    }


def beta_of(zeta):
    """Transition parameter beta = log(zeta / (1 - zeta)) / 2."""
    return 0.5 * log(zeta / (1.0 - zeta))


def symmetric_update(
    sequences, mu, zeta, sigma, bound=0.9, classical=False, window=None
):
    """Next (mu, zeta): the printed form (2.30a-c), or the classical pair count."""
    theta = symmetric_theta(mu, zeta, sigma)
    total, q, n, pairs = np.zeros(len(theta["means"][0])), 0.0, 0, 0
    for x in sequences:
        part = evaluate(x, theta, window)
        for i in range(len(x)):
            total = total + (part["gamma"][i, 1] - part["gamma"][i, 0]) * x[i]
        for pair in part["xi"]:
            q += pair[0, 0] + pair[1, 1]
        n, pairs = n + len(x), pairs + len(x) - 1
    if classical:
        new = q / pairs if pairs else zeta
    else:
        new = (len(sequences) * zeta + q) / n
    return total / n, min(max(new, (1.0 - bound) / 2.0), (1.0 + bound) / 2.0)


def symmetric_em(sequences, mu, zeta, sigma, n_iter, **options):
    """Iterates 0..n_iter as a list of (mu, zeta)."""
    path = [(np.asarray(mu, dtype=float), float(zeta))]
    for _ in range(n_iter):
        path.append(symmetric_update(sequences, *path[-1], sigma, **options))
    return path


def fields(x, mu, zeta, sigma):
    """Closed forms of the symmetric model: the forward and backward fields (spec 2.2).

    Dict with `mean` E[Z_i|x], `agreement` p(Z_i = Z_{i+1} | x) and `loglik`.
    """
    x, mu = np.asarray(x, dtype=float), np.asarray(mu, dtype=float)
    n, d = x.shape
    tb = 2.0 * zeta - 1.0
    g = [float(row @ mu) / sigma**2 for row in x]
    a, c = [0.0] * n, [0.0] * n
    for i in range(1, n):
        a[i] = atanh(tb * tanh(g[i - 1] + a[i - 1]))
    for i in range(n - 2, -1, -1):
        c[i] = atanh(tb * tanh(g[i + 1] + c[i + 1]))
    mean = np.array([tanh(g[i] + a[i] + c[i]) for i in range(n)])
    agreement = np.empty(max(n - 1, 0))
    for i in range(n - 1):
        h, k = tanh(g[i] + a[i]), tanh(g[i + 1] + c[i + 1])
        agreement[i] = 0.5 * (1.0 + (tb + h * k) / (1.0 + tb * h * k))
    value = 0.0
    for i in range(n):
        value -= 0.5 * d * log(2 * pi * sigma**2)
        value -= float(x[i] @ x[i] + mu @ mu) / (2 * sigma**2)
        value += log(cosh(g[i] + a[i])) - log(cosh(a[i]))
    return {"mean": mean, "agreement": agreement, "loglik": value}


def fields_update(sequences, mu, zeta, sigma, bound=0.9):
    """`symmetric_update` (printed form) through the closed forms."""
    total, q, n = np.zeros(len(mu)), 0.0, 0
    for x in sequences:
        part = fields(x, mu, zeta, sigma)
        total = total + part["mean"] @ np.asarray(x)
        q += part["agreement"].sum()
        n += len(x)
    new = (len(sequences) * zeta + q) / n
    return total / n, min(max(new, (1.0 - bound) / 2.0), (1.0 + bound) / 2.0)


# --------------------------------------------------------------------------- guarantees


def stationary(A):
    """Stationary law: the solution of pi' A = pi', sum(pi) = 1."""
    A = np.asarray(A, dtype=float)
    s = len(A)
    equations = np.vstack([A.T - np.eye(s), np.ones(s)])
    return np.linalg.lstsq(equations, np.append(np.zeros(s), 1.0), rcond=None)[0]


def eps_mix(A):
    """Largest eps with eps <= A_jk / pi_k <= 1 / eps for all j, k (2.3)."""
    law, best = stationary(A), 1.0
    for j in range(len(A)):
        for k in range(len(A)):
            if A[j][k] <= 0:
                return 0.0
            best = min(best, A[j][k] / law[k], law[k] / A[j][k])
    return float(best)


def reversible_gap(A):
    """Largest |pi_j A_jk - pi_k A_kj|."""
    law = stationary(A)
    gap = 0.0
    for j in range(len(A)):
        for k in range(len(A)):
            gap = max(gap, abs(law[j] * A[j][k] - law[k] * A[k][j]))
    return float(gap)


def truncation_bound(zeta, k):
    """Bound 2 |beta| rho^k on |E[Z_i|x] - E[Z_i|window k]| (spec 3.2)."""
    return 2.0 * abs(beta_of(zeta)) * abs(2.0 * zeta - 1.0) ** k


def mean_update_bound(x, zeta, k):
    """Bound on the distance of the two updates of mu."""
    return truncation_bound(zeta, k) * float(np.mean([sqrt(r @ r) for r in x]))


def zeta_update_bound(zeta, k):
    """Bound on the distance of the two updates of zeta."""
    rho = abs(2.0 * zeta - 1.0)
    return abs(beta_of(zeta)) * rho ** (k - 1) * (1.0 + rho) / 2.0


def jacobian(function, point, step=1e-5):
    """Matrix of central differences."""
    point = np.asarray(point, dtype=float)
    columns = []
    for i in range(len(point)):
        e = np.zeros(len(point))
        e[i] = step
        columns.append((function(point + e) - function(point - e)) / (2.0 * step))
    return np.array(columns).T


def spectral_radius(M):
    """Largest modulus of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(M)).max())


def symmetric_rate(sequences, mu, zeta, sigma, n_iter=2000, bound=0.9):
    """Spectral radius of the Jacobian of (mu, zeta) -> update at the fixed point."""
    state = np.append(mu, zeta)

    def update(v):
        new_mu, new_zeta = fields_update(sequences, v[:-1], v[-1], sigma, bound)
        return np.append(new_mu, new_zeta)

    for _ in range(n_iter):
        new = update(state)
        done = np.abs(new - state).max() < 1e-14
        state = new
        if done:
            break
    return spectral_radius(jacobian(update, state)), state


# ----------------------------------------------------------------------------- criteria


def n_parameters(s, d, covariance_type="diag", structure="free", startprob="free"):
    """Free parameters of a model."""
    if structure == "symmetric":
        return d + 1
    covariance = {
        "full": s * d * (d + 1) // 2,
        "diag": s * d,
        "spherical": s,
        "tied": d * (d + 1) // 2,
    }[covariance_type]
    start = s - 1 if startprob == "free" else 0
    return start + s * (s - 1) + s * d + covariance


def bic(value, n, p):
    """Schwarz's criterion of a total log-likelihood."""
    return -2.0 * value + p * log(n)


def aic(value, p):
    """Akaike's criterion of a total log-likelihood."""
    return -2.0 * value + 2.0 * p


# ------------------------------------------------------------------------------ samples


def sample(n, theta, rng):
    """Rows and states of one sequence, drawn step by step."""
    s = len(theta["startprob"])
    states, rows = [], []
    for i in range(n):
        law = theta["startprob"] if i == 0 else theta["transmat"][states[-1]]
        states.append(int(rng.choice(s, p=law)))
        rows.append(
            rng.multivariate_normal(
                theta["means"][states[-1]], theta["covariances"][states[-1]]
            )
        )
    return np.array(rows), np.array(states)
