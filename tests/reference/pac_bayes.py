"""Slow reference for PAC-Bayes bounds, optimal posteriors and hold-out certificates.

Sahu and Hemachandra, "Optimal posteriors for chi-squared divergence based PAC-Bayesian
bounds and comparison with KL-divergence based optimal posteriors and cross-validation
procedure". Constants are suprema of full binomial sums, inverses are bisections in
50-digit decimals, optimal posteriors come from a general solver started many times.
Nothing is imported from the package under test.

Notation: members i with empirical risks l_i on m held-out rows, prior p, posterior q,
L = sum_i q_i l_i, S = sum_i q_i^2 / p_i, D = sum_i q_i ln(q_i / p_i). For a convex
distance phi(L, risk) and with probability 1 - delta, for all q at once,

* chi2: phi <= sqrt(S I / delta), I = sup_l E|phi(k/m, l)|^2, k ~ Bin(m, l);
* kl: phi <= (D + ln(J / delta)) / m, J = sup_l E exp(m phi(k/m, l)).

`constants`: "exact"; "classical" (kl divergence: 2 sqrt(m) in place of Maurer's sum, no
effect on chi2); "paper" (chi2: as printed, no effect on the kl divergence). Bounds are
not clipped at 1. A prior given as None is uniform.
"""

from decimal import Decimal, localcontext
from functools import cache
from math import comb, exp, inf, isnan, log, sqrt

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import rel_entr
from scipy.stats import binom

DIGITS = 50

# ---------------------------------------------------------------- binary kl


def _decimal_kl(a, b):
    """Binary kl of two decimals; the caller sets the precision."""
    total = Decimal(0)
    for x, y in ((a, b), (1 - a, 1 - b)):
        if x > 0:
            if y <= 0:
                return Decimal("Infinity")
            total += x * (x / y).ln()
    return total


def binary_kl(a, b):
    """kl(a || b) = a ln(a/b) + (1-a) ln((1-a)/(1-b)) with 0 ln 0 = 0."""
    with localcontext() as context:
        context.prec = DIGITS
        return float(_decimal_kl(Decimal(float(a)), Decimal(float(b))))


def kl_inverse(q, c, lower=False):
    """Largest (smallest if `lower`) r with kl(q || r) <= c, by bisection."""
    q, c = float(q), float(c)
    if c == inf:
        return 0.0 if lower else 1.0
    if c <= 0:
        return q
    with localcontext() as context:
        context.prec = DIGITS
        a, level = Decimal(q), Decimal(c)
        inside, outside = a, Decimal(0 if lower else 1)
        if _decimal_kl(a, outside) <= level:
            return float(outside)
        while abs(outside - inside) > max(inside, outside) * Decimal("1e-25"):
            middle = (inside + outside) / 2
            if _decimal_kl(a, middle) <= level:
                inside = middle
            else:
                outside = middle
            if max(inside, outside) < Decimal("1e-330"):
                return 0.0
        return float(inside)


def _kl_upper(q, c):
    """Upper inverse in floats, for the inner loop of the solver only."""
    if q >= 1.0 or c == inf:
        return 1.0

    def excess(r):
        return (q * log(q / r) if q > 0 else 0.0) + (1 - q) * log((1 - q) / (1 - r)) - c

    end = 1.0 - 1e-16
    if c <= 0 or excess(end) <= 0:
        return q if c <= 0 else 1.0
    return brentq(excess, q, end, xtol=1e-16, rtol=1e-15) if q > 0 else 1 - exp(-c)


# ---------------------------------------------------------------- constants


def _phi_squared(m, distance):
    """Function of l: the values of |phi(k/m, l)|^2 for k = 0..m."""
    x = np.arange(m + 1) / m
    if distance == "linear":
        return lambda l: (x - l) ** 2
    if distance == "squared":
        return lambda l: (x - l) ** 4
    if distance == "kl":
        return lambda l: (rel_entr(x, l) + rel_entr(1 - x, 1 - l)) ** 2
    raise ValueError(distance)


def _supremum(f, m):
    """Supremum of f over (0, 1): fine grid, then refinement of every local maximum."""
    fine = np.concatenate(
        [np.geomspace(1e-3 / m, 0.5, 400), np.linspace(1e-3, 0.5, 400)]
    )
    grid = np.unique(np.concatenate([fine, 1 - fine]))
    values = np.array([f(l) for l in grid])
    best = values.max()
    for j in range(1, len(grid) - 1):
        if values[j] >= max(values[j - 1], values[j + 1], 0.5 * best):
            result = minimize_scalar(
                lambda l: -f(l),
                bounds=(grid[j - 1], grid[j + 1]),
                method="bounded",
                options={"xatol": 1e-9 / m},
            )
            best = max(best, -result.fun)
    return float(best)


@cache
def chi2_constant(m, distance, constants="exact"):
    """I(m) = sup_l E|phi(k/m, l)|^2 by full sums; "paper": the printed values."""
    if constants == "paper" and distance == "squared":
        if m == 1:
            raise ValueError("the printed constant is not valid for m=1")
        return (12 * m - 11) / (16 * m**3)
    if constants == "paper" and distance == "kl":
        return _printed_kl_constant(min(m, 1028))
    square, k = _phi_squared(m, distance), np.arange(m + 1)
    return _supremum(lambda l: float(binom.pmf(k, m, l) @ square(l)), m)


def _printed_kl_constant(m):
    """The printed constant: terms k = 0 and k = m are kl, not its square."""
    square, k = _phi_squared(m, "kl"), np.arange(m + 1)

    def total(l):
        terms = square(l)
        terms[[0, m]] = np.sqrt(terms[[0, m]])
        return float(binom.pmf(k, m, l) @ terms)

    return _supremum(total, m)


@cache
def log_xi(m):
    """ln of sum_k binom(m, k) (k/m)^k (1 - k/m)^(m-k), summed in integers."""
    total = sum(comb(m, k) * k**k * (m - k) ** (m - k) for k in range(m + 1))
    return log(total / m**m)


@cache
def log_j_linear(m):
    """ln of sup_l E exp(m (l - k/m)) by full sums."""
    k = np.arange(m + 1)

    def log_mean(l):
        exponents = binom.logpmf(k, m, l) + m * l - k
        top = exponents.max()
        return top + log(np.exp(exponents - top).sum())

    result = minimize_scalar(
        lambda l: -log_mean(l),
        bounds=(1e-6, 1 - 1e-6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(-result.fun)


def _log_constant(m, constants):
    """The term ln J of the squared, kl and lambda distances."""
    return log(2.0 * sqrt(m)) if constants == "classical" else log_xi(m)


# ---------------------------------------------------------------- bounds


def _as_prior(prior, H):
    """The prior as an array that sums to 1; None is uniform."""
    if prior is None:
        return np.full(H, 1.0 / H)
    prior = np.asarray(prior, dtype=float)
    return prior / prior.sum()


def chi2_term(q, prior):
    """S = sum_i q_i^2 / p_i = chi2(q || p) + 1."""
    total = 0.0
    for a, p in zip(q, prior, strict=True):
        if a > 0:
            total += a * a / p if p > 0 else inf
    return total


def kl_term(q, prior):
    """D = sum_i q_i ln(q_i / p_i)."""
    total = 0.0
    for a, p in zip(q, prior, strict=True):
        if a > 0:
            total += a * log(a / p) if p > 0 else inf
    return total


def _lambda_minimum(L, C, m):
    """Minimum over 0 < lam < 2 of the bound of Thiemann et al."""
    result = minimize_scalar(
        lambda lam: (L + C / (m * lam)) / (1 - lam / 2),
        bounds=(1e-9, 2 - 1e-9),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(result.fun)


def _value(
    q, risks, m, delta, divergence, distance, prior, constants, catoni_c, inverse
):
    """The bound at q, with the given upper inverse of kl."""
    L = min(max(float(np.dot(q, risks)), 0.0), 1.0)
    if divergence == "chi2":
        radius = sqrt(
            chi2_term(q, prior) * chi2_constant(m, distance, constants) / delta
        )
        if distance == "linear":
            return L + radius
        return L + sqrt(radius) if distance == "squared" else inverse(L, radius)
    if divergence != "kl":
        raise ValueError(divergence)
    D = kl_term(q, prior)
    if distance == "catoni":
        exponent = -catoni_c * L - (D + log(1 / delta)) / m
        return (1 - exp(exponent)) / (1 - exp(-catoni_c))
    if distance == "linear":
        return L + (D + log_j_linear(m) + log(1 / delta)) / m
    C = D + _log_constant(m, constants) + log(1 / delta)
    if distance == "squared":
        return L + sqrt(C / (2 * m))
    if distance == "kl":
        return inverse(L, C / m)
    if distance == "lambda":
        return _lambda_minimum(L, C, m)
    raise ValueError(distance)


def bound(
    q,
    risks,
    m,
    delta,
    divergence,
    distance,
    prior=None,
    constants="exact",
    catoni_c=None,
):
    """Upper bound on the risk of the Gibbs classifier drawn from q."""
    q = np.asarray(q, dtype=float)
    prior = _as_prior(prior, len(q))
    return _value(
        q,
        np.asarray(risks, dtype=float),
        m,
        delta,
        divergence,
        distance,
        prior,
        constants,
        catoni_c,
        kl_inverse,
    )


def _moved(q, i, top, log_odds):
    """The mass of members i and top, split by the log-odds of i."""
    new = q.copy()
    new[i] = (q[i] + q[top]) / (1 + exp(-log_odds))
    new[top] = q[i] + q[top] - new[i]
    return new


def _exchange(f, q, sweeps=40):
    """Move mass between the heaviest and each other member while f decreases."""
    value = f(q)
    for _ in range(sweeps):
        before, top = value, int(np.argmax(q))
        for i in range(len(q)):
            if i == top:
                continue
            now = log(max(q[i], 1e-30) / max(q[top], 1e-30))
            for span in (40.0, 1.0, 0.01):
                result = minimize_scalar(
                    lambda t, *a: f(_moved(*a, t)),
                    args=(q, i, top),
                    bounds=(now - span, now + span),
                    method="bounded",
                    options={"xatol": 1e-9},
                )
                if result.fun < value:
                    q, value = _moved(q, i, top, result.x), result.fun
                    break
        if before - value < 1e-15:
            break
    return q


def best_posterior(
    risks,
    m,
    delta,
    divergence,
    distance,
    prior=None,
    constants="exact",
    catoni_c=None,
    n_starts=8,
    rng=None,
):
    """Minimise the bound over the simplex from many starts; returns (q, value)."""
    risks = np.asarray(risks, dtype=float)
    prior = _as_prior(prior, len(risks))
    rng = np.random.default_rng(0 if rng is None else rng)
    keep = np.flatnonzero(prior > 0)
    l, p = risks[keep], prior[keep]
    H = len(keep)
    arguments = (l, m, delta, divergence, distance, p, constants, catoni_c)

    def full(q):
        result = np.zeros(len(risks))
        result[keep] = q
        return result

    def on_simplex(q):
        q = np.clip(q, 0.0, 1.0)
        return _value(q, *arguments, _kl_upper)

    def of_scores(scores):
        q = np.exp(scores - scores.max())
        return _value(q / q.sum(), *arguments, _kl_upper)

    candidates = [p, *np.eye(H)]
    starts = [*candidates, *rng.dirichlet(np.ones(H), size=n_starts)]
    for start in starts if H > 1 else []:
        result = minimize(
            on_simplex,
            start,
            method="SLSQP",
            jac="3-point",
            bounds=[(0.0, 1.0)] * H,
            constraints={
                "type": "eq",
                "fun": lambda q: q.sum() - 1.0,
                "jac": lambda q: np.ones((1, H)),
            },
            options={"ftol": 1e-15, "maxiter": 300},
        )
        q = np.clip(result.x, 0.0, None)
        candidates.append(q / q.sum())
    best = min(candidates, key=on_simplex)
    # The simplex in scores: no boundary, hence no trouble with q ln q near zero.
    candidates = [best]
    for floor in (1e-3, 1e-9):
        scores = np.log(np.maximum(best, floor))
        result = minimize(of_scores, scores, method="BFGS", options={"gtol": 1e-11})
        q = np.exp(result.x - result.x.max())
        candidates.append(q / q.sum())
    best = min(candidates, key=on_simplex)
    if divergence == "kl":
        best = _exchange(on_simplex, best)
    best = full(best)
    return best, bound(
        best, risks, m, delta, divergence, distance, prior, constants, catoni_c
    )


# ---------------------------------------------------------------- other certificates


def binomial_tail_bound(k, m, delta):
    """Largest p with P(Bin(m, p) <= k) >= delta, by bisection (Clopper-Pearson)."""
    k, m = int(k), int(m)
    if k >= m:
        return 1.0
    with localcontext() as context:
        context.prec = DIGITS
        level = Decimal(float(delta))

        def lower_tail(p):
            term = (1 - p) ** m
            total = term
            for i in range(k):
                term *= Decimal(m - i) / Decimal(i + 1) * p / (1 - p)
                total += term
            return total

        low, high = Decimal(0), Decimal(1)
        while high - low > high * Decimal("1e-22"):
            middle = (low + high) / 2
            if lower_tail(middle) >= level:
                low = middle
            else:
                high = middle
        return float(low)


def occam_bound(counts, m, delta, prior=None):
    """Least binomial tail bound of one member, member i at level delta p_i."""
    prior = _as_prior(prior, len(counts))
    return min(
        binomial_tail_bound(k, m, delta * p)
        for k, p in zip(counts, prior, strict=True)
        if p > 0
    )


def tandem_bound(q, T, n, delta, prior=None, constants="exact"):
    """Bound on the weighted vote by joint errors T_ij (Masegosa et al. 2020)."""
    q, T = np.asarray(q, dtype=float), np.asarray(T, dtype=float)
    loss = sum(q[i] * q[j] * T[i, j] for i in range(len(q)) for j in range(len(q)))
    complexity = 2 * kl_term(q, _as_prior(prior, len(q)))
    complexity += _log_constant(n, constants) + log(1 / delta)
    return 4 * kl_inverse(loss, complexity / n)


def c_bound(R, d):
    """C-bound on the binary vote: Gibbs risk R < 1/2, disagreement d < 1/2."""
    return 1 - (1 - 2 * R) ** 2 / (1 - 2 * d)


def holdout_certificate(
    cv_errors, n_train, cert_errors, vote_errors, m, eta=1.0, delta=0.05
):
    """Certificates with a prior from inner cross-validation on the training part.

    `cv_errors`: error counts of the members on the `n_train` training rows (nan: never
    reached); `cert_errors`: error counts on the m certification rows; `vote_errors`:
    those of the vote weighted by the prior.
    """
    H = len(cv_errors)
    reached = [i for i in range(H) if not isnan(cv_errors[i])]
    least = min(cv_errors[i] for i in reached)
    prior = np.zeros(H)
    for i in reached:
        prior[i] = exp(-eta * (cv_errors[i] - least))
    prior[prior < 1e-3 * prior.max()] = 0.0
    prior /= prior.sum()
    support = np.flatnonzero(prior)

    r = (sum(prior[i] * cv_errors[i] for i in support) + 0.5) / (n_train + 1)
    r = min(max(r, 0.5 / m), 0.49)
    u = kl_inverse(r, log(1 / delta) / m)
    c = log(u * (1 - r) / (r * (1 - u)))

    # Shifted by the least count, which keeps the sum away from zero.
    least = min(cert_errors[i] for i in support)
    posterior = np.zeros(H)
    for i in support:
        posterior[i] = prior[i] * exp(-c * (cert_errors[i] - least))
    z = log(posterior.sum()) - c * least
    posterior /= posterior.sum()
    return {
        "prior": prior,
        "c": c,
        "posterior": posterior,
        "gibbs_bound": (1 - exp((z + log(delta)) / m)) / (1 - exp(-c)),
        "vote_bound": binomial_tail_bound(vote_errors, m, delta),
        "occam_bound": occam_bound(cert_errors, m, delta, prior),
    }


def progressive_bound(weights, c, losses, kls, delta, m):
    """Bound on sum_b w_b R_b from several blocks, by constrained maximisation.

    With a_b = 1 / (1 - exp(-c_b)), maximises sum_b w_b R_b subject to
    sum_b w_b [ln a_b - ln(a_b - R_b)] <= sum_b w_b c_b L_b + (sum KL + ln(1/delta))/m.
    Written in s_b = ln a_b - ln(a_b - R_b). For several orders, pass the divergences
    divided by their number.
    """
    w, c = np.asarray(weights, dtype=float), np.asarray(c, dtype=float)
    a = 1 / (1 - np.exp(-c))
    budget = float(np.dot(w * c, losses)) + (float(np.sum(kls)) + log(1 / delta)) / m
    result = minimize(
        lambda s: -np.dot(w, a * (1 - np.exp(-s))),
        np.full(len(w), budget / w.sum()),
        jac=lambda s: -w * a * np.exp(-s),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda s: budget - np.dot(w, s),
            "jac": lambda s: -w[None, :],
        },
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return float(-result.fun)
