"""Slow reference for the extensions of the hidden Markov models.

Other output laws, missing entries, known states, forecasts, M-steps of restricted
transition matrices, observed information. Written from the definitions: sums over all
state paths, loops, numerical optimisation; nothing is imported from the package.

Notation as in `reference.hmm`: s states, d columns, B_ij = log p(x_i | Z_i = j).

Conventions:

* `theta` is a dict with "startprob", "transmat" and the parameters of the outputs:
  "means" (s, d) and "covariances" (s, d, d) for "gaussian"; these and "df" (s,) for
  "student", where they are location and scale matrix; "means" (s, d), the rates, for
  "poisson"; "emission_proba", a list over columns of (s, n_categories), for
  "categorical", whose data are indices 0, 1, ...;
* columns are independent given the state for "poisson" and "categorical";
* NaN is a missing entry and is integrated out; a row without any entry is a step in
  time with density 1 for every state;
* `known` is a list of arrays of states, one per sequence, -1 where unknown;
* a state (or a column of it) without weight keeps its parameters.
"""

from math import inf, log, nan, pi, sqrt

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import digamma, gammaln, softmax, xlogy
from scipy.stats import norm, poisson
from scipy.stats import t as student_t

from reference.hmm import (
    enumerate_paths,
    log_or_minus_inf,
    smooth,
    stationary,
    symmetric_theta,
    symmetric_transmat,
)

# --------------------------------------------------------------------- output densities


def log_student(x, location, scale, df):
    """Log-density of one row under the multivariate t law."""
    r, d = np.asarray(x, dtype=float) - location, len(x)
    sign, logdet = np.linalg.slogdet(scale)
    if sign <= 0:
        raise ValueError("the scale matrix is not positive definite")
    delta = r @ np.linalg.solve(scale, r)
    value = gammaln((df + d) / 2) - gammaln(df / 2) - d / 2 * log(df * pi)
    return value - logdet / 2 - (df + d) / 2 * np.log1p(delta / df)


def _log_gaussian(r, covariance):
    """Log-density of centred rows."""
    sign, logdet = np.linalg.slogdet(covariance)
    if sign <= 0:
        raise ValueError("the covariance is not positive definite")
    delta = np.sum(r.T * np.linalg.solve(covariance, r.T), axis=0)
    return -0.5 * (r.shape[1] * log(2 * pi) + logdet + delta)


def _log_outputs_of_pattern(x, o, theta, emission):
    """B of rows whose observed columns are `o`."""
    n, s = len(x), len(theta["transmat"])
    B = np.zeros((n, s))
    for j in range(s):
        if emission == "categorical":
            for k in o:
                for i in range(n):
                    p = theta["emission_proba"][k][j][int(x[i, k])]
                    B[i, j] += log_or_minus_inf(p)
        elif emission == "poisson":
            for k in o:
                rate = theta["means"][j][k]
                B[:, j] += xlogy(x[:, k], rate) - rate - gammaln(x[:, k] + 1)
        elif emission == "gaussian":
            C = np.asarray(theta["covariances"][j])[np.ix_(o, o)]
            B[:, j] = _log_gaussian(x[:, o] - np.asarray(theta["means"][j])[o], C)
        elif emission == "student":
            S = np.asarray(theta["covariances"][j])[np.ix_(o, o)]
            m, df = np.asarray(theta["means"][j])[o], theta["df"][j]
            B[:, j] = [log_student(row[o], m, S, df) for row in x]
        else:
            raise ValueError(emission)
    return B


def log_outputs(x, theta, emission, states=None):
    """B (n, s); for rows of known state, -inf at all the others."""
    x = np.asarray(x, dtype=float)
    B = np.zeros((len(x), len(theta["transmat"])))
    patterns = ~np.isnan(x)
    for pattern in np.unique(patterns, axis=0):
        rows, o = np.all(patterns == pattern, axis=1), np.flatnonzero(pattern)
        if len(o):
            B[rows] = _log_outputs_of_pattern(x[rows], o, theta, emission)
    if states is not None:
        for i, state in enumerate(states):
            if state >= 0:
                B[i, np.arange(B.shape[1]) != state] = -inf
    return B


# --------------------------------------------------------------------------- likelihood


def _log_forward(B, startprob, A):
    """Log p(x_1..x_i, Z_i = j), a loop over rows."""
    with np.errstate(divide="ignore"):
        start, logA = np.log(startprob), np.log(A)
    L = np.empty(B.shape)
    L[0] = start + B[0]
    for i in range(1, len(B)):
        L[i] = np.logaddexp.reduce(L[i - 1][:, None] + logA, axis=0) + B[i]
    return L


def posteriors(sequences, theta, emission, known=None, method="paths"):
    """`enumerate_paths` (or `smooth`, for method "recursion") of every sequence."""
    step = enumerate_paths if method == "paths" else smooth
    known = [None] * len(sequences) if known is None else known
    parts = []
    for x, states in zip(sequences, known, strict=True):
        B = log_outputs(x, theta, emission, states)
        parts.append(step(B, theta["startprob"], theta["transmat"]))
    return parts


def loglik(sequences, theta, emission, known=None, method="paths"):
    """Total log-likelihood by enumeration, or by method "forward"."""
    if method == "paths":
        parts = posteriors(sequences, theta, emission, known)
        return float(sum(part["loglik"] for part in parts))
    known = [None] * len(sequences) if known is None else known
    total = 0.0
    for x, states in zip(sequences, known, strict=True):
        B = log_outputs(x, theta, emission, states)
        L = _log_forward(B, theta["startprob"], theta["transmat"])
        total += np.logaddexp.reduce(L[-1])
    return float(total)


def filtered(x, theta, emission, states=None):
    """p(z_i | x_1..x_i), (n, s)."""
    B = log_outputs(x, theta, emission, states)
    L = _log_forward(B, theta["startprob"], theta["transmat"])
    return np.exp(L - np.logaddexp.reduce(L, axis=1)[:, None])


# ------------------------------------------------------------------------------- M-step


def expected_counts(parts, s):
    """Expected transitions C (s, s) and first states f (s,), sums over sequences."""
    C, f = np.zeros((s, s)), np.zeros(s)
    for part in parts:
        f += part["gamma"][0]
        for pair in part["xi"]:
            C += pair
    return C, f


def complete(x, mean, S):
    """Expected row, conditional covariance (d, d) and squared distance of one row.

    The law is Gaussian, with the observed entries given; no observed entry: the mean
    and S.
    """
    o, m = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
    row, C, delta = np.array(x, dtype=float), np.zeros(S.shape), 0.0
    if len(o):
        r = x[o] - mean[o]
        delta = float(r @ np.linalg.solve(S[np.ix_(o, o)], r))
    if len(m) and len(o):
        K = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, m)]).T
        row[m] = mean[m] + K @ r
        C[np.ix_(m, m)] = S[np.ix_(m, m)] - K @ S[np.ix_(o, m)]
    elif len(m):
        row, C = np.array(mean, dtype=float), np.array(S, dtype=float)
    return row, C, delta


def df_step(g, u, observed, old):
    """Next degrees of freedom of one state: weights g, scales u, entries observed."""
    keep = (observed > 0) & (g > 0)
    if not keep.any():
        return float(old)
    g, u, d = g[keep], u[keep], observed[keep]
    a = (old + d) / 2
    constant = np.sum(g * (np.log(u) - u + digamma(a) - np.log(a))) / g.sum()

    def slope(nu):
        return -digamma(nu / 2) + log(nu / 2) + 1 + constant

    if slope(0.1) <= 0:
        return 0.1
    if slope(1000.0) >= 0:
        return 1000.0
    return float(brentq(slope, 0.1, 1000.0, xtol=1e-13, rtol=1e-14))


def _moments_full(rows, g, w, mean, S):
    """New mean and scatter of one state, missing entries by their expectations."""
    done = [complete(x, mean, S) for x in rows]
    if w.sum() > 0:
        new = sum(wi * row for wi, (row, _, _) in zip(w, done, strict=True)) / w.sum()
    else:
        new = np.array(mean, dtype=float)
    scatter = np.zeros(S.shape)
    for gi, wi, (row, C, _) in zip(g, w, done, strict=True):
        scatter += wi * np.outer(row - new, row - new) + gi * C
    return new, scatter


def _moments_diag(rows, w, mean):
    """New mean and sums of squares (d,) of one state, observed entries only."""
    new, squares = np.array(mean, dtype=float), np.zeros(len(mean))
    for k in range(len(mean)):
        o = ~np.isnan(rows[:, k])
        if w[o].sum() > 0:
            new[k] = (w[o] @ rows[o, k]) / w[o].sum()
            squares[k] = w[o] @ (rows[o, k] - new[k]) ** 2
    return new, squares


def _denominators(rows, g, w, kind):
    """Sums of g and of g * u that go with the scatter of one state, (d,) each."""
    if kind in ("full", "tied"):
        return np.full(rows.shape[1], g.sum()), np.full(rows.shape[1], w.sum())
    observed = ~np.isnan(rows)
    return g @ observed, w @ observed


def location_scale_step(
    rows, gamma, theta, kind, reg=0.0, expanded=None, update_df=True, drop_empty=True
):
    """Means, covariances (and df) of one update; Gaussian if `expanded` is None.

    The scatter of a state is divided by: `expanded` False, its sum of gamma; True, its
    sum of gamma * u; "exact", its sum of gamma times alpha, where alpha is
    sum(gamma u) / sum(gamma) over the rows with an entry (for "tied" one alpha for all
    states, where state j counts new df_j times). "full" does not tell the last two
    apart; all three agree for the Gaussian, where u = 1. Rows without any entry are
    left out; drop_empty=False keeps them in the Gaussian "full" and "tied".
    """
    observed = np.sum(~np.isnan(rows), axis=1)
    student = expanded is not None
    if student or drop_empty or kind not in ("full", "tied"):
        rows, gamma = rows[observed > 0], gamma[observed > 0]
        observed = observed[observed > 0]
    s, d = np.shape(theta["means"])
    means, covariances = np.array(theta["means"]), np.array(theta["covariances"])
    df = np.array(theta["df"], dtype=float) if student else None
    u = np.ones(gamma.shape)
    if student:
        for i, x in enumerate(rows):
            for j in range(s):
                delta = complete(x, means[j], covariances[j])[2]
                u[i, j] = (df[j] + observed[i]) / (df[j] + delta)
        if update_df:
            df = np.array(
                [df_step(gamma[:, j], u[:, j], observed, df[j]) for j in range(s)]
            )
    w = gamma * u
    new_means, scatter = np.empty((s, d)), np.zeros((s, d, d))
    plain, weighted = np.empty((s, d)), np.empty((s, d))
    for j in range(s):
        if kind in ("full", "tied"):
            new_means[j], scatter[j] = _moments_full(
                rows, gamma[:, j], w[:, j], means[j], covariances[j]
            )
        else:
            new_means[j], squares = _moments_diag(rows, w[:, j], means[j])
            scatter[j] = np.diag(squares)
        plain[j], weighted[j] = _denominators(rows, gamma[:, j], w[:, j], kind)
    if expanded is True:
        divisor = weighted
    elif expanded == "exact":
        G, U = gamma.sum(axis=0), w.sum(axis=0)
        if kind == "tied":
            alpha = np.full(s, (df @ U) / (df @ G))
        else:
            alpha = np.divide(U, G, out=np.ones(s), where=G > 0)
        divisor = plain * alpha[:, None]
    else:
        divisor = plain
    covariances = _divide(scatter, divisor, kind, covariances, reg)
    return new_means, covariances, df


def _divide(scatter, divisor, kind, old, reg):
    """Covariances (s, d, d) from the scatter and its divisors (s, d)."""
    s, d = divisor.shape
    ridge = np.diag(np.broadcast_to(np.asarray(reg, dtype=float), d))
    result = np.array(old, dtype=float)
    if kind == "tied":
        total = divisor[:, 0].sum()
        pooled = scatter.sum(axis=0) / total + ridge if total > 0 else result[0]
        return np.array([pooled] * s)
    for j in range(s):
        squares, b = np.diag(scatter[j]), divisor[j]
        if kind == "full" and b[0] > 0:
            result[j] = scatter[j] / b[0] + ridge
        elif kind == "spherical" and b.sum() > 0:
            result[j] = squares.sum() / b.sum() * np.eye(d) + ridge
        elif kind == "diag":
            for k in range(d):
                if b[k] > 0:
                    result[j, k, k] = squares[k] / b[k] + ridge[k, k]
    return result


def poisson_step(rows, gamma, old):
    """New rates, weighted means of the observed entries."""
    rates = np.array(old, dtype=float)
    for j in range(rates.shape[0]):
        for k in range(rates.shape[1]):
            o = ~np.isnan(rows[:, k])
            if gamma[o, j].sum() > 0:
                rates[j, k] = gamma[o, j] @ rows[o, k] / gamma[o, j].sum()
    return rates


def categorical_step(rows, gamma, old):
    """New probabilities, weighted relative frequencies of the observed entries."""
    result = [np.array(table, dtype=float) for table in old]
    for k, table in enumerate(result):
        o = ~np.isnan(rows[:, k])
        for j in range(len(table)):
            total = gamma[o, j].sum()
            if total > 0:
                for c in range(table.shape[1]):
                    table[j, c] = gamma[o, j][rows[o, k] == c].sum() / total
    return result


def em_step(
    sequences,
    theta,
    emission,
    covariance_type="full",
    known=None,
    reg=0.0,
    expanded=True,
    update_df=True,
    drop_empty=True,
    method="paths",
):
    """One EM update (one ECM cycle for "student"); see `location_scale_step`."""
    sequences = [np.asarray(x, dtype=float) for x in sequences]
    parts = posteriors(sequences, theta, emission, known, method)
    rows = np.vstack(sequences)
    gamma = np.vstack([part["gamma"] for part in parts])
    s = gamma.shape[1]
    C, f = expected_counts(parts, s)
    new = dict(theta)
    new["startprob"] = f / len(sequences)
    new["transmat"] = np.array(theta["transmat"], dtype=float)
    for j in range(s):
        if C[j].sum() > 0:
            new["transmat"][j] = C[j] / C[j].sum()
    if emission == "poisson":
        new["means"] = poisson_step(rows, gamma, theta["means"])
    elif emission == "categorical":
        new["emission_proba"] = categorical_step(rows, gamma, theta["emission_proba"])
    else:
        expanded = expanded if emission == "student" else None
        new["means"], new["covariances"], df = location_scale_step(
            rows, gamma, theta, covariance_type, reg, expanded, update_df, drop_empty
        )
        if emission == "student":
            new["df"] = df
    return new


# ----------------------------------------------------------------------------- forecast


def output_moments(theta, emission):
    """Means (s, d) and covariances (s, d, d) of the outputs, by state.

    Student: a mean is NaN for df <= 1; for df <= 2 the variances are inf and the other
    entries NaN.
    """
    means = np.array(theta["means"], dtype=float)
    s, d = means.shape
    if emission == "poisson":
        return means, np.array([np.diag(row) for row in means])
    covariances = np.array(theta["covariances"], dtype=float)
    if emission == "student":
        for j in range(s):
            df = theta["df"][j]
            if df <= 1:
                means[j] = nan
            if df <= 2:
                covariances[j] = np.where(np.eye(d) > 0, inf, nan)
            else:
                covariances[j] *= df / (df - 2)
    return means, covariances


def state_laws(x, theta, emission, steps):
    """Laws of Z_{n+1}..Z_{n+steps} given x, (steps, s)."""
    law, laws = filtered(x, theta, emission)[-1], []
    for _ in range(steps):
        law = law @ np.asarray(theta["transmat"])
        laws.append(law)
    return np.array(laws)


def forecast(x, theta, emission, steps):
    """Laws of the states (steps, s), means (steps, d) and covariances (steps, d, d).

    "categorical": laws of the states and a list over columns of (steps, n_categories).
    """
    laws = state_laws(x, theta, emission, steps)
    if emission == "categorical":
        return laws, [laws @ np.asarray(table) for table in theta["emission_proba"]]
    means, covariances = output_moments(theta, emission)
    mixed_means, mixed_covariances = [], []
    for law in laws:
        mean = sum(p * m for p, m in zip(law, means, strict=True))
        second = sum(
            p * (C + np.outer(m - mean, m - mean))
            for p, m, C in zip(law, means, covariances, strict=True)
        )
        mixed_means.append(mean)
        mixed_covariances.append(second)
    return laws, np.array(mixed_means), np.array(mixed_covariances)


def forecast_cdf(x, theta, emission, h, column, value):
    """p(X_{n+h, column} <= value | x), h = 1, 2, ..."""
    law, total = state_laws(x, theta, emission, h)[-1], 0.0
    for j, p in enumerate(law):
        if emission == "categorical":
            table = np.asarray(theta["emission_proba"][column])[j]
            part = sum(q for c, q in enumerate(table) if c <= value)
        elif emission == "poisson":
            part = poisson.cdf(value, theta["means"][j][column])
        else:
            scale = sqrt(theta["covariances"][j][column][column])
            z = (value - theta["means"][j][column]) / scale
            gaussian = emission == "gaussian"
            part = norm.cdf(z) if gaussian else student_t.cdf(z, theta["df"][j])
        total += p * part
    return float(total)


# ------------------------------------------------------------------ transition matrices


def map_transition(C, pseudo):
    """Rows proportional to C + pseudo."""
    counts = np.asarray(C, dtype=float) + pseudo
    return counts / counts.sum(axis=1, keepdims=True)


def transition_objective(C, f, A, law=None):
    """Value sum_jk C_jk log A_jk + sum_j f_j log pi_j; pi is the stationary law."""
    law = stationary(A) if law is None else law
    return float(np.sum(xlogy(C, A)) + np.sum(xlogy(f, law)))


def _maximise(function, starts):
    """Best point over starts; `function` gives value and gradient.

    BFGS, then Newton's method on the gradient, whose Jacobian is numerical.
    """

    def negative(v):
        value, gradient = function(v)
        return -value, -gradient

    best = None
    for start in starts:
        found = minimize(
            negative, start, jac=True, method="BFGS", options={"gtol": 1e-9}
        )
        if best is None or found.fun < best.fun:
            best = found
    v = best.x
    for _ in range(5):
        gradient, J = function(v)[1], np.empty((len(v), len(v)))
        for i in range(len(v)):
            e = np.zeros(len(v))
            e[i] = 1e-5
            J[:, i] = (function(v + e)[1] - function(v - e)[1]) / 2e-5
        new = v - np.linalg.lstsq(J, gradient, rcond=1e-8)[0]
        if not np.abs(function(new)[1]).max() < np.abs(gradient).max():
            break
        v = new
    return v


def stationary_m_step(C, f, A0, n_starts=8, seed=0):
    """Maximiser A of `transition_objective` and its value.

    A_jk = 0 where C_jk = 0; a row without counts stays as in A0. Softmax of free
    logits, from A0 and from random starts.
    """
    C, f, A0 = (np.asarray(a, dtype=float) for a in (C, f, A0))
    s = len(C)
    allowed = C > 0
    fixed = ~allowed.any(axis=1)

    def matrix(v):
        logits = np.full((s, s), -inf)
        logits[allowed] = v
        A = np.array(A0)
        for j in np.flatnonzero(~fixed):
            A[j] = softmax(logits[j])
        return A

    def function(v):
        A = matrix(v)
        law = stationary(A)
        # A change dA of A changes the law by law @ dA @ Z.
        Z = np.linalg.inv(np.eye(s) - A + np.outer(np.ones(s), law))
        slope = np.outer(law, Z @ np.divide(f, law, out=np.zeros(s), where=f > 0))
        slope += np.divide(C, A, out=np.zeros((s, s)), where=allowed)
        inner = np.sum(A * slope, axis=1, keepdims=True)
        return transition_objective(C, f, A, law), (A * (slope - inner))[allowed]

    rng = np.random.default_rng(seed)
    first = np.where(allowed & (A0 > 0), A0, np.where(allowed, 1e-3, 1.0))
    starts = [np.log(first)[allowed], np.log(np.where(allowed, C, 1.0))[allowed]]
    starts += [rng.normal(size=allowed.sum()) for _ in range(n_starts)]
    A = matrix(_maximise(function, starts))
    return A, transition_objective(C, f, A)


def reversible_m_step(C, f, stationary, n_starts=8, seed=0):
    """The same over reversible A, the f-term only if `stationary`.

    A_jk = F_jk / sum_k F_jk with F symmetric, F_jk = 0 where C_jk + C_kj = 0. The law
    is proportional to the row sums of F. Every state needs a count. If C_jk = 0 < C_kj
    the best A_jk may be zero, a limit that the search only comes near to.
    """
    C, f = np.asarray(C, dtype=float), np.asarray(f, dtype=float)
    s = len(C)
    allowed = [(j, k) for j in range(s) for k in range(j, s) if C[j, k] + C[k, j] > 0]
    f = f if stationary else np.zeros(s)
    if not np.all((C + C.T).sum(axis=1) > 0):
        raise ValueError("a state has no counts")

    def flows(v):
        F = np.zeros((s, s))
        for (j, k), value in zip(allowed, v - v.max(), strict=True):
            F[j, k] = F[k, j] = np.exp(value)
        return F

    def value_of(F):
        sums = F.sum(axis=1)
        return transition_objective(C, f, F / sums[:, None], sums / sums.sum())

    def function(v):
        F, gradient = flows(v), np.empty(len(v))
        sums = F.sum(axis=1)
        row = (f - C.sum(axis=1)) / sums - f.sum() / sums.sum()
        for i, (j, k) in enumerate(allowed):
            if j == k:
                gradient[i] = C[j, j] + F[j, j] * row[j]
            else:
                gradient[i] = C[j, k] + C[k, j] + F[j, k] * (row[j] + row[k])
        return value_of(F), gradient

    rng = np.random.default_rng(seed)
    starts = [np.log([C[j, k] + C[k, j] for j, k in allowed])]
    starts += [rng.normal(size=len(allowed)) for _ in range(n_starts)]
    F = flows(_maximise(function, starts))
    return F / F.sum(axis=1, keepdims=True), value_of(F)


# -------------------------------------------------------------------------- information


def _second_differences(function, point, steps):
    """Matrix of central second differences."""
    p, centre = len(point), function(point)
    H = np.empty((p, p))
    E = np.diag(steps)
    for a in range(p):
        twice = function(point + E[a]) + function(point - E[a]) - 2 * centre
        H[a, a] = twice / steps[a] ** 2
        for b in range(a):
            same = function(point + E[a] + E[b]) + function(point - E[a] - E[b])
            other = function(point + E[a] - E[b]) + function(point - E[a] + E[b])
            H[a, b] = H[b, a] = (same - other) / (4 * steps[a] * steps[b])
    return H


def hessian(function, point, fraction=0.05):
    """Hessian by central differences with two steps and Richardson's extrapolation.

    The larger step is `fraction` of 1 / sqrt(second derivative), found by a first
    difference, and at most 5% of the larger of the coordinate and this length.
    """
    point = np.asarray(point, dtype=float)
    steps = np.empty(len(point))
    for a in range(len(point)):
        e = np.zeros(len(point))
        e[a] = 1e-4 * max(abs(point[a]), 0.1)
        twice = function(point + e) + function(point - e) - 2 * function(point)
        curvature = abs(twice) / e[a] ** 2
        length = 1 / sqrt(max(curvature, 1e-6))
        steps[a] = min(fraction * length, 0.05 * max(abs(point[a]), 1.0))
    coarse = _second_differences(function, point, steps)
    fine = _second_differences(function, point, steps / 2)
    return (4 * fine - coarse) / 3


def information(sequences, theta, emission, free, known=None):
    """Observed information, the Hessian of -loglik in the caller's free parameters.

    `free` is a pair of functions: theta -> vector and vector -> theta.
    """
    pack, unpack = free

    def negative(v):
        return -loglik(sequences, unpack(v), emission, known, method="forward")

    return hessian(negative, pack(theta))


def covariance_slots(s, d, kind):
    """Free entries of the covariances: lists of (state, row, column) that are equal."""
    if kind == "full":
        pairs = [(a, b) for a in range(d) for b in range(a + 1)]
        return [[(j, *p) for p in {(a, b), (b, a)}] for j in range(s) for a, b in pairs]
    if kind == "tied":
        pairs = [(a, b) for a in range(d) for b in range(a + 1)]
        return [[(j, *p) for j in range(s) for p in {(a, b), (b, a)}] for a, b in pairs]
    if kind == "diag":
        return [[(j, a, a)] for j in range(s) for a in range(d)]
    return [[(j, a, a) for a in range(d)] for j in range(s)]


def free_parameters(theta, emission, covariance_type):
    """Pair of functions for `information`, and the covariance slots.

    Means, covariance entries, then all but the last entry of every row of A.
    """
    s, d = np.shape(theta["means"])
    gaussian = emission == "gaussian"
    slots = covariance_slots(s, d, covariance_type) if gaussian else []

    def pack(theta):
        v = list(np.ravel(theta["means"]))
        v += [
            theta["covariances"][slot[0][0]][slot[0][1]][slot[0][2]] for slot in slots
        ]
        return np.array(v + list(np.ravel(np.asarray(theta["transmat"])[:, :-1])))

    def unpack(v):
        new = dict(theta)
        new["means"] = v[: s * d].reshape(s, d)
        if slots:
            new["covariances"] = np.zeros((s, d, d))
            for value, slot in zip(v[s * d :], slots, strict=False):
                for entry in slot:
                    new["covariances"][entry] = value
        first = v[s * d + len(slots) :].reshape(s, s - 1)
        new["transmat"] = np.hstack([first, 1 - first.sum(axis=1, keepdims=True)])
        return new

    return (pack, unpack), slots


def standard_errors(sequences, theta, emission, covariance_type="full", known=None):
    """Standard errors from the inverse observed information, start law fixed.

    Dict with "means" (s, d), "covariances" (s, d, d), NaN at entries that are not
    free, and "transmat" (s, s), its last column by the delta method. The matrix must
    have no zeros.
    """
    s, d = np.shape(theta["means"])
    free, slots = free_parameters(theta, emission, covariance_type)
    V = np.linalg.inv(information(sequences, theta, emission, free, known))
    errors = np.sqrt(np.diag(V))
    covariances = np.full((s, d, d), nan)
    for value, slot in zip(errors[s * d :], slots, strict=False):
        for entry in slot:
            covariances[entry] = value
    transmat, first = np.zeros((s, s)), s * d + len(slots)
    for j in range(s):
        rows = slice(first + j * (s - 1), first + (j + 1) * (s - 1))
        transmat[j, :-1] = errors[rows]
        transmat[j, -1] = sqrt(V[rows, rows].sum()) if s > 1 else 0.0
    return {
        "means": errors[: s * d].reshape(s, d),
        "covariances": covariances,
        "transmat": transmat,
    }


# ---------------------------------------------------------------------- symmetric model


def symmetric_em_with_missing(x, mu, zeta, sigma):
    """Next (mu, zeta) of one sequence; the printed form (2.30b), without projection.

    A column without entries keeps its mu.
    """
    x = np.asarray(x, dtype=float)
    theta = symmetric_theta(mu, zeta, sigma)
    part = posteriors([x], theta, "gaussian")[0]
    w = part["gamma"][:, 1] - part["gamma"][:, 0]
    new = np.array(mu, dtype=float)
    for k in range(x.shape[1]):
        o = ~np.isnan(x[:, k])
        if o.any():
            new[k] = w[o] @ x[o, k] / o.sum()
    q = sum(pair[0, 0] + pair[1, 1] for pair in part["xi"])
    return new, (zeta + q) / len(x)


def q_n(mu, zeta, X, mu0, zeta0, sigma):
    """Surrogate (1/n) E[log p(Z_0, Z, X; mu, zeta) | X; mu0, zeta0] of (2.10).

    A sum over all paths of Z_0..Z_n. Every constant is included: log(1/2) of Z_0 and
    -log(2 pi sigma^2) / 2 of every observed entry.
    """
    n = len(X)
    A, A0 = symmetric_transmat(zeta), symmetric_transmat(zeta0)
    start = np.array([0.5, 0.5])
    B = log_outputs(X, symmetric_theta(mu, zeta, sigma), "gaussian")
    B0 = log_outputs(X, symmetric_theta(mu0, zeta0, sigma), "gaussian")
    part = enumerate_paths(np.vstack([np.zeros(2), B0]), start, A0)
    total = log(0.5) + np.sum(part["gamma"][1:] * B)
    for pair in part["xi"]:
        total += np.sum(xlogy(pair, A))
    return float(total / n)
