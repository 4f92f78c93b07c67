"""Slow reference for adaptive sequential testing with online FDR control.

F. Yang's thesis, chapter 4, and the project's corrections of it, written from the
definitions: bisection for every inverse, sums over the whole past for every level, one
loop per arm and per pull; nothing is imported from the package.

Conventions:

* arm 0 is the control; K = n_arms - 1 alternatives;
* probabilities that may be tiny are passed as x = log(1 / probability) where the name
  ends in `_log`;
* tests count from 1; `rejected` is the list of decisions R_1, R_2, ...; `gamma` is a
  list with gamma_1 first and is 0 past its end;
* a tape is a function (arm, k) -> reward of the pull number k = 0, 1, ... of that arm;
* p-values are looked at once per round, and the running minimum is reported; logged
  data are looked at after each row.
"""

from functools import cache
from math import e, exp, fsum, inf, log, pi, sqrt

import numpy as np

# ------------------------------------------------------------------------------- radius


def beta_log(n, x):
    """beta(n, exp(-x)) of (4.4): x + 3 log x + 3/2 log log(e n), x at least log 10."""
    x = max(x, log(10.0))
    return x + 3.0 * log(x) + 1.5 * log(1.0 + log(n))


def beta(n, delta):
    """beta(n, delta), by the formula as printed."""
    d = min(delta, 0.1)
    return log(1.0 / d) + 3.0 * log(log(1.0 / d)) + 1.5 * log(log(e * n))


def radius_log(n, x, sigma):
    """Valid radius at confidence exp(-x); infinite without data."""
    if n == 0:
        return inf
    return sqrt(2.0 * sigma**2 * beta_log(n, x) / n)


def radius(n, delta, sigma):
    """phi_n(delta) = sqrt(2 sigma^2 beta(n, delta) / n)."""
    return sqrt(2.0 * sigma**2 * beta(n, delta) / n)


def printed_radius(n, delta):
    """Equation (4.3) as printed: no variance and no factor 2."""
    return sqrt(beta(n, delta) / n)


def first_above(function, target, low):
    """Smallest x >= low with function(x) >= target, for non-decreasing functions."""
    if function(low) >= target:
        return low
    width = 1.0
    while function(low + width) < target:
        width *= 2.0
    high = low + width
    for _ in range(200):
        middle = 0.5 * (low + high)
        if function(middle) >= target:
            high = middle
        else:
            low = middle
    return high


def inverse_radius_log(n, r, sigma):
    """x = log(1 / delta) with delta = sup{delta in (0, 1] : phi_n(delta) >= r}."""
    if radius_log(n, 0.0, sigma) >= r:
        return 0.0
    return first_above(lambda x: radius_log(n, x, sigma), r, log(10.0))


def inverse_radius(n, r, sigma):
    """The confidence delta whose radius is r; 1 up to the radius at 0.1."""
    return exp(-inverse_radius_log(n, r, sigma))


# ----------------------------------------------------------------------------- p-values


def margin_log(x, n_i, n_0, K, sigma):
    """G(gamma) = phi_{n_i}(gamma / 2K) + phi_{n_0}(gamma / 2) at gamma = exp(-x)."""
    treated = radius_log(n_i, x + log(2.0 * K), sigma)
    return treated + radius_log(n_0, x + log(2.0), sigma)


def arm_log_pvalue(gap, n_i, n_0, K, sigma):
    """log P_i of (4.5); gap = mean_i - mean_0 - epsilon."""
    if n_i == 0 or n_0 == 0:
        return 0.0
    return -first_above(lambda x: margin_log(x, n_i, n_0, K, sigma), gap, 0.0)


def log_pvalue(means, counts, sigma, epsilon=0.0):
    """Log of the smallest P_i over the alternatives, at one time."""
    K = len(means) - 1
    best = 0.0
    for i in range(1, K + 1):
        gap = means[i] - means[0] - epsilon if min(counts[0], counts[i]) > 0 else 0.0
        best = min(best, arm_log_pvalue(gap, counts[i], counts[0], K, sigma))
    return best


def pvalue(means, counts, sigma, epsilon=0.0):
    """Smallest P_i over the alternatives, at one time."""
    return exp(log_pvalue(means, counts, sigma, epsilon))


def log_pvalue_path(arms, rewards, n_arms, sigma, epsilon=0.0):
    """Running minimum (4.6) after each row of a log."""
    sums, counts, best, path = [0.0] * n_arms, [0] * n_arms, 0.0, []
    for arm, reward in zip(arms, rewards, strict=True):
        sums[arm] += reward
        counts[arm] += 1
        means = [s / max(n, 1) for s, n in zip(sums, counts, strict=True)]
        best = min(best, log_pvalue(means, counts, sigma, epsilon))
        path.append(best)
    return path


# -------------------------------------------------------------- best arm with a control


def bounds(means, counts, delta, sigma):
    """Lower bounds at delta / 2K and upper bounds at delta / 2, for every arm."""
    K = len(means) - 1
    lower, upper = [], []
    for m, n in zip(means, counts, strict=True):
        lower.append(m - radius(n, delta / (2 * K), sigma) if n else -inf)
        upper.append(m + radius(n, delta / 2, sigma) if n else inf)
    return lower, upper


def largest(values, indices):
    """Index of the largest value, the lowest one among equals."""
    best = None
    for i in indices:
        if best is None or values[i] > values[best]:
            best = i
    return best


def verdict(means, counts, delta, epsilon, sigma):
    """Steps 2a and 2b of Algorithm 1: the certified arm, or None."""
    lower, upper = bounds(means, counts, delta, sigma)
    arms = range(len(means))
    if all(lower[0] > upper[i] - epsilon for i in arms if i != 0):
        return 0
    h = largest(means, arms)
    l = largest(upper, [i for i in arms if i != h])
    if lower[h] > upper[l] - epsilon and lower[h] > upper[0] + epsilon:
        return h
    return None


def next_round(means, counts, delta, epsilon, sigma, sampler):
    """Step 2c: the distinct arms to pull."""
    arms = range(len(means))
    if sampler == "uniform":
        return list(arms)
    _, upper = bounds(means, counts, delta, sigma)
    h = largest(means, arms)
    l = largest(upper, [i for i in arms if i != h])
    if epsilon == 0:
        return [h, l]
    u = largest(upper, arms[1:])
    result = []
    for i in (0, u, h, l):
        if i not in result:
            result.append(i)
    return result


def best_arm(tape, n_arms, delta, sigma, max_pulls=inf, epsilon=0.0, sampler="lucb"):
    """Algorithm 1, or the uniform sampler with its stopping tests.

    `arm` (the recommendation), `certified`, `rounds` (lists of arms), `pulls` (the same
    in one list), `counts`, `means`, `log_p` and `log_p_path` (after each round).
    """
    sums, counts = [0.0] * n_arms, [0] * n_arms
    rounds, path, best, arm = [], [], 0.0, None
    todo = list(range(n_arms))
    while sum(counts) + len(todo) <= max_pulls:
        rounds.append(todo)
        for i in todo:
            sums[i] += tape(i, counts[i])
            counts[i] += 1
        means = [s / n for s, n in zip(sums, counts, strict=True)]
        best = min(best, log_pvalue(means, counts, sigma, epsilon))
        path.append(best)
        arm = verdict(means, counts, delta, epsilon, sigma)
        if arm is not None:
            break
        todo = next_round(means, counts, delta, epsilon, sigma, sampler)
    return {
        "arm": largest(means, range(n_arms)) if arm is None else arm,
        "certified": arm is not None,
        "rounds": rounds,
        "pulls": [i for todo in rounds for i in todo],
        "counts": counts,
        "means": means,
        "log_p": best,
        "log_p_path": path,
    }


def is_rejected(means, log_p, level):
    """Procedure 1: the control is not empirically best and P <= level."""
    best = largest(means, range(len(means)))
    return best != 0 and level > 0 and log_p <= log(level)


# ---------------------------------------------------------------------- planning bounds


def pulls_needed(gap, delta, K, sigma):
    """tau: smallest n with 2 phi_n(delta / 2K) < gap (4.15); infinite for gap 0."""
    if gap <= 0:
        return inf
    high = 1
    while 2.0 * radius(high, delta / (2 * K), sigma) >= gap:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if 2.0 * radius(middle, delta / (2 * K), sigma) < gap:
            high = middle
        else:
            low = middle
    return high


def complexity_bound(means, delta, sigma, epsilon=0.0):
    """B1 where the control is best, B2 where an alternative is; else infinite."""
    K = len(means) - 1
    control, m = means[0], max(means[1:])

    def tau(i, eta, xi):
        return pulls_needed(max(abs(eta - means[i]), xi), delta, K, sigma)

    if control > m - epsilon:
        total = tau(0, (control + m - epsilon) / 2, 0.0)
        for i in range(1, K + 1):
            total += tau(i, (control + epsilon + m) / 2, 0.0)
        return total
    if not m > control + epsilon:
        return inf
    star = largest(means, range(1, K + 1))
    eta = max((means[star] + means[j]) / 2 for j in range(K + 1) if j != star)
    xi = min(2 * epsilon / 7, (m - control - epsilon) / 5)
    total = tau(0, (m - epsilon + control) / 2, 0.0)
    for i in range(K + 1):
        total += 3 * tau(i, eta, xi)
    return total


def acceptable(means, epsilon=0.0):
    """The set S* of (4.7)."""
    m = max(means[1:])
    arms = range(1, len(means))
    return [
        i for i in arms if means[i] >= m - epsilon and means[i] > means[0] + epsilon
    ]


# -------------------------------------------------------------------------------- gamma


def weight(j):
    """log(j v 2) / (j exp(sqrt(log j))), unnormalised."""
    return log(max(j, 2)) / (j * exp(sqrt(log(j))))


@cache
def weight_sum(n_terms=1_000_000):
    """Sum of all weights: the first ones one by one, the rest by its integral.

    The integral from y to infinity is 2 Gamma(4, sqrt(log y)); starting it half a step
    late leaves an error below weight'(n_terms) / 24, 1e-13 for a million terms.
    """
    head = fsum(weight(j) for j in range(1, n_terms + 1))
    v = sqrt(log(n_terms + 0.5))
    return head + 2.0 * exp(-v) * (v**3 + 3 * v**2 + 6 * v + 6)


def log_gamma(length, horizon=None, factor=None):
    """The first terms of gamma; `factor` replaces the normaliser."""
    if factor is None:
        total = weight_sum() if horizon is None else weight_total(horizon)
        factor = 1.0 / total
    stop = length if horizon is None else min(length, horizon)
    return [factor * weight(j) for j in range(1, stop + 1)]


def weight_total(horizon):
    """Sum of the first weights."""
    return fsum(weight(j) for j in range(1, horizon + 1))


def term(gamma, k):
    """gamma_k, 0 past the end."""
    return gamma[k - 1] if k <= len(gamma) else 0.0


# -------------------------------------------------------------------- online procedures


def last_rejection(rejected):
    """Number of the last rejected test, 0 for none."""
    return max((j for j, r in enumerate(rejected, start=1) if r), default=0)


def lord_level(rejected, levels, alpha, w0, gamma):
    """Procedure 2: gamma_{j - tau} W(tau), with the wealth as a sum over the past."""
    tau = last_rejection(rejected)
    rewards = (alpha - w0) * sum(rejected[:tau])
    wealth = fsum([w0, rewards] + [-a for a in levels[:tau]])
    return min(term(gamma, len(rejected) + 1 - tau) * wealth, 1.0)


def lord_prime_level(rejected, levels, alpha, w0, gamma):
    """LORD '15: alpha gamma_{j - tau}."""
    return alpha * term(gamma, len(rejected) + 1 - last_rejection(rejected))


def lord_plus_plus_level(rejected, levels, alpha, w0, gamma):
    """LORD++: gamma_j W0 + (alpha - W0) gamma_{j - tau_1} + alpha sum over the rest."""
    j = len(rejected) + 1
    times = [i for i, r in enumerate(rejected, start=1) if r]
    terms = [w0 * term(gamma, j)]
    for q, tau in enumerate(times):
        terms.append((alpha if q else alpha - w0) * term(gamma, j - tau))
    return fsum(terms)


def spending_level(rejected, levels, alpha, w0, gamma):
    """Bonferroni: 6 alpha / (pi j)^2."""
    return 6.0 * alpha / (pi * (len(rejected) + 1)) ** 2


RULES = {
    "LORD": lord_level,
    "LORDPrime": lord_prime_level,
    "LORDPlusPlus": lord_plus_plus_level,
    "AlphaSpending": spending_level,
}


def levels_of(rule, rejected, alpha, w0=None, gamma=None):
    """Levels of the tests 1..J+1 that follow from the first J decisions."""
    w0 = alpha / 2 if w0 is None else w0
    gamma = log_gamma(len(rejected) + 1) if gamma is None else gamma
    levels = []
    for j in range(len(rejected) + 1):
        levels.append(RULES[rule](rejected[:j], levels, alpha, w0, gamma))
    return levels


def wealth_of(rule, rejected, levels, alpha, w0=None):
    """W(0), ..., W(J) as sums over the past."""
    w0 = alpha / 2 if w0 is None else w0
    path = []
    for j in range(len(rejected) + 1):
        n, spent = sum(rejected[:j]), fsum(levels[:j])
        if rule == "LORD":
            path.append(w0 + (alpha - w0) * n - spent)
        elif rule == "LORDPrime":
            path.append(alpha - fsum(levels[last_rejection(rejected[:j]) : j]))
        elif rule == "LORDPlusPlus":
            path.append((w0 if n == 0 else n * alpha) - spent)
        else:
            path.append(alpha - spent)
    return path


def play(rule, p_values, alpha, w0=None, gamma=None):
    """Decisions, levels and wealth W(0..J) for a list of p-values."""
    w0 = alpha / 2 if w0 is None else w0
    gamma = log_gamma(len(p_values) + 1) if gamma is None else gamma
    rejected, levels = [], []
    for p in p_values:
        levels.append(RULES[rule](rejected, levels, alpha, w0, gamma))
        rejected.append(bool(p <= levels[-1]))
    return rejected, levels, wealth_of(rule, rejected, levels, alpha, w0)


# -------------------------------------------------------------------------- error rates


def fdp(rejected, null):
    """False discovery proportion V / (R v 1)."""
    false = sum(1 for r, h in zip(rejected, null, strict=True) if r and h)
    return false / max(sum(rejected), 1)


def rates(runs, null):
    """FDR, mFDR = E V / (E R + 1) and power over runs of decisions."""
    V = [sum(1 for r, h in zip(run, null, strict=True) if r and h) for run in runs]
    R = [sum(run) for run in runs]
    n = len(runs)
    fdr = sum(v / max(r, 1) for v, r in zip(V, R, strict=True)) / n
    hits = sum(r - v for v, r in zip(V, R, strict=True)) / n
    n_alternatives = sum(1 for h in null if not h)
    power = hits / n_alternatives if n_alternatives else float("nan")
    return {"fdr": fdr, "mfdr": sum(V) / n / (sum(R) / n + 1), "power": power}


def best_discovery_rate(rejected, chosen, means, epsilon=0.0):
    """Share of the alternatives that end with an acceptable arm (4.9), one run."""
    hits, total = 0, 0
    for r, arm, mu in zip(rejected, chosen, means, strict=True):
        m, control = max(mu[1:]), mu[0]
        if control >= m - epsilon:
            continue
        total += 1
        if r and mu[arm] >= m - epsilon and mu[arm] >= control + epsilon:
            hits += 1
    return hits / total if total else float("nan")


def outcomes(rule, null, alpha, w0=None, gamma=None):
    """All (probability, decisions, levels) when nulls have uniform p-values.

    Alternatives are rejected for certain. The number of outcomes is 2 to the number of
    nulls.
    """
    w0 = alpha / 2 if w0 is None else w0
    gamma = log_gamma(len(null)) if gamma is None else gamma
    found = [(1.0, [], [])]
    for h in null:
        longer = []
        for probability, rejected, levels in found:
            a = RULES[rule](rejected, levels, alpha, w0, gamma)
            if not h:
                longer.append((probability, rejected + [True], levels + [a]))
                continue
            longer.append((probability * a, rejected + [True], levels + [a]))
            longer.append((probability * (1 - a), rejected + [False], levels + [a]))
        found = longer
    return found


def exact_rates(rule, null, alpha, w0=None, gamma=None):
    """FDR, mFDR, E V and E R over all outcomes."""
    fdr, V, R = [], [], []
    for probability, rejected, _ in outcomes(rule, null, alpha, w0, gamma):
        false = sum(1 for r, h in zip(rejected, null, strict=True) if r and h)
        fdr.append(probability * false / max(sum(rejected), 1))
        V.append(probability * false)
        R.append(probability * sum(rejected))
    V, R = fsum(V), fsum(R)
    return {"fdr": fsum(fdr), "mfdr": V / (R + 1), "false": V, "rejected": R}


# ------------------------------------------------------------------ Procedures 1 and 2


def mab_fdr(rule, experiments, alpha, sigma, max_pulls, w0=None, gamma=None, **options):
    """Procedure 1 with an online rule: one record per (n_arms, tape).

    A record is the result of `best_arm` with the level and the decision.
    """
    w0 = alpha / 2 if w0 is None else w0
    gamma = log_gamma(len(experiments) + 1) if gamma is None else gamma
    rejected, levels, records = [], [], []
    for n_arms, tape in experiments:
        level = RULES[rule](rejected, levels, alpha, w0, gamma)
        record = best_arm(tape, n_arms, level, sigma, max_pulls, **options)
        decision = is_rejected(record["means"], record["log_p"], level)
        records.append({**record, "level": level, "rejected": decision})
        levels.append(level)
        rejected.append(decision)
    return records


# ------------------------------------------------------------------------------ walks


def crossing_times(boundary, n_paths, horizon, rng, dense=3000, step=1.02):
    """First times n <= horizon with a Gaussian mean above boundary(n); 0 for never.

    Partial sums at every n up to `dense` and at a geometric grid beyond: an exact
    simulation of the walk at these times, so that the share of paths that cross is
    never too large.
    """
    times = list(range(1, dense + 1))
    while times[-1] * step <= horizon:
        times.append(int(times[-1] * step))
    total, before = np.zeros(n_paths), 0
    first = np.zeros(n_paths)
    for n in times:
        total += sqrt(n - before) * rng.standard_normal(n_paths)
        first[(first == 0) & (total > n * boundary(n))] = n
        before = n
    return first
