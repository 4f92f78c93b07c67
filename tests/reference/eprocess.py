"""Slow reference for e-processes of pairs of arms and the online procedures.

Written from the definitions: the mixture is summed over all pairs of bets, the minimum
over m is a golden-section search, closed testing goes through all subsets, levels are
sums over the whole past, expectations enumerate all outcomes; nothing is imported from
the package.

Conventions:

* natural logarithms; e-values are kept as log e unless the name says otherwise;
* a state of an arm is (n, S) or (n, S, V); V is needed by "bounded", optional for
  "normal" (default n sigma^2), ignored by "binary";
* rewards of "binary" and "bounded" lie in [0, 1];
* sigma is one number, or the pair (arm, control), or one number per arm where all arms
  are given;
* arm 0 is the control, K = n_arms - 1 alternatives;
* tests count from 1; a procedure is one of "lordpp", "saffron", "addis", "lond",
  "elond", and "elond" reads e-values where the others read p-values.
"""

from functools import cache
from itertools import combinations, product
from math import ceil, comb, exp, expm1, fsum, inf, log, log1p, log2, sqrt

import numpy as np

# --------------------------------------------------------------------- bets and mixture


def default_bets(rewards, sigma=1.0, max_pulls=None):
    """Default grid of bets; sigma is the larger one of the two arms."""
    first, last, unit = {
        "normal": (-11, 3, 1.0 / sigma),
        "binary": (-9, 2, 1.0),
        "bounded": (-10, 0, 0.75),
    }[rewards]
    if max_pulls is not None:
        first = -ceil(log2(max_pulls) / 2.0) - 1
    return [unit * 2.0**k for k in range(first, last + 1)]


def weights(n_bets):
    """W_kl proportional to 1 / (1 + (k - l)^2), sum 1."""
    w = np.empty((n_bets, n_bets))
    for k in range(n_bets):
        for j in range(n_bets):
            w[k, j] = 1.0 / (1.0 + (k - j) ** 2)
    return w / w.sum()


def psi(b):
    """psi(b) = -log(1 - b) - b."""
    return -log1p(-b) - b


def variance_process(state, rewards, sigma):
    """V of a state."""
    if rewards == "normal":
        return state[2] if len(state) > 2 else state[0] * sigma**2
    if rewards == "bounded":
        return state[2]
    return None


def log_up(b, m, state, rewards, sigma):
    """u_b(m): evidence against mu <= m."""
    n, s = state[0], state[1]
    if rewards == "binary":
        return b * s - n * log1p(m * expm1(b))
    v = variance_process(state, rewards, sigma)
    cost = 0.5 * b * b if rewards == "normal" else psi(b)
    return b * (s - n * m) - cost * v


def log_down(b, m, state, rewards, sigma):
    """d_b(m): evidence against mu >= m."""
    n, s = state[0], state[1]
    if rewards == "binary":
        return -b * s - n * log1p(m * expm1(-b))
    v = variance_process(state, rewards, sigma)
    cost = 0.5 * b * b if rewards == "normal" else psi(b)
    return -b * (s - n * m) - cost * v


def log_sum_exp(x):
    """log of the sum of exp(x)."""
    x = np.asarray(x, dtype=float)
    top = float(x.max())
    if top == -inf or top == inf:
        return top
    return top + log(float(np.exp(x - top).sum()))


def log_mixture(m, arm, control, rewards, sigma_arm, sigma_control, epsilon, bets):
    """log M(m), the mixture over all pairs of bets."""
    up = [log_up(b, m + epsilon, arm, rewards, sigma_arm) for b in bets]
    down = [log_down(b, m, control, rewards, sigma_control) for b in bets]
    log_w = np.log(weights(len(bets)))
    return log_sum_exp(log_w + np.add.outer(up, down))


# ----------------------------------------------------------------------------- e-values


def pair(sigma):
    """Sigma as the pair (arm, control)."""
    if isinstance(sigma, tuple | list):
        return float(sigma[0]), float(sigma[1])
    return float(sigma), float(sigma)


def domain(epsilon):
    """Values of m for rewards in [0, 1]."""
    if not -1.0 < epsilon < 1.0:
        raise ValueError("epsilon must lie in (-1, 1)")
    return max(0.0, -epsilon), min(1.0, 1.0 - epsilon)


def convex_minimum(f, low, high, n_steps=200):
    """Smallest value of a convex function on [low, high] by golden sections."""
    ratio = 0.5 * (sqrt(5.0) - 1.0)
    best = min(f(low), f(high))
    a, b = low, high
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = f(x), f(y)
    for _ in range(n_steps):
        best = min(best, fx, fy)
        if not a < x < y < b:
            break
        if fx <= fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = f(x)
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = f(y)
    return best


def convex_bracket(f, low, high, step):
    """Interval around [low, high] that contains the minimum of a convex function."""
    width = step
    while f(low - width) < f(low):
        low, width = low - width, 2.0 * width
    left = low - width
    width = step
    while f(high + width) < f(high):
        high, width = high + width, 2.0 * width
    return left, high + width


def log_evalue(
    arm, control, rewards, sigma=1.0, epsilon=0.0, bets=None, max_pulls=None
):
    """log E = min_m log M(m), the evidence against mu_arm <= mu_control + epsilon."""
    sigma_arm, sigma_control = pair(sigma)
    if rewards != "normal":
        low, high = domain(epsilon)
    if arm[0] == 0 or control[0] == 0:
        return 0.0
    scale = max(sigma_arm, sigma_control)
    if bets is None:
        bets = default_bets(rewards, scale, max_pulls)

    def f(m):
        return log_mixture(
            m, arm, control, rewards, sigma_arm, sigma_control, epsilon, bets
        )

    if rewards == "normal":
        ends = arm[1] / arm[0] - epsilon, control[1] / control[0]
        low, high = convex_bracket(f, min(ends), max(ends), scale)
    return convex_minimum(f, low, high)


def bounded_state(rewards):
    """(n, S, V) with V = sum of (x_t - c_t)^2, c_t = (S_{t-1} + 1/2) / (t - 1 + 1)."""
    v = 0.0
    for t in range(len(rewards)):
        c = (fsum(rewards[:t]) + 0.5) / (t + 1.0)
        v += (rewards[t] - c) ** 2
    return len(rewards), fsum(rewards), v


def asymptotic_log_evalue(
    arm, control, epsilon=0.0, min_count=100, bets=None, max_pulls=None
):
    """log E with variances estimated from the two lists of rewards."""
    if min(len(arm), len(control)) < max(min_count, 2):
        return 0.0
    s2 = [float(np.var(x, ddof=1)) for x in (arm, control)]
    if min(s2) <= 0.0:
        return 0.0
    scale = sqrt(0.5 * (s2[0] + s2[1]))
    if bets is None:
        bets = default_bets("normal", scale, max_pulls)
    states = [
        (len(x), fsum(x), len(x) * v) for x, v in zip((arm, control), s2, strict=True)
    ]
    return log_evalue(states[0], states[1], "normal", scale, epsilon, bets)


def kl(p, q):
    """Divergence of the Bernoulli laws p and q."""
    total = 0.0
    for a, b in ((p, q), (1.0 - p, 1.0 - q)):
        if a > 0.0:
            total += a * log(a / b) if b > 0.0 else inf
    return total


def glr(arm, control, rewards, sigma=1.0, epsilon=0.0):
    """The screen, as printed."""
    if arm[0] == 0 or control[0] == 0:
        return 0.0
    n1, n0 = arm[0], control[0]
    mean1, mean0 = arm[1] / n1, control[1] / n0
    if mean1 - epsilon <= mean0:
        return 0.0
    if rewards == "binary":
        low, high = domain(epsilon)
        m = (arm[1] + control[1] - n1 * epsilon) / (n1 + n0)
        m = min(max(m, low), high)
        return n1 * kl(mean1, min(max(m + epsilon, 0.0), 1.0)) + n0 * kl(mean0, m)
    sigma_arm, sigma_control = pair(sigma)
    v1 = variance_process(arm, rewards, sigma_arm)
    v0 = variance_process(control, rewards, sigma_control)
    variance = v1 / n1**2 + v0 / n0**2
    if variance == 0.0:
        return inf
    return (mean1 - mean0 - epsilon) ** 2 / (2.0 * variance)


def bounded_screen(arm, control, epsilon=0.0):
    """Upper bound of log E for "bounded": the best m is clipped to the domain."""
    if arm[0] == 0 or control[0] == 0:
        return 0.0
    (n1, s1, v1), (n0, s0, v0) = arm, control
    x1, x0 = s1 / n1 - epsilon, s0 / n0
    if x1 <= x0:
        return 0.0
    low, high = domain(epsilon)
    if v1 + v0 == 0.0:
        return inf
    a1, a0 = v1 / n1**2, v0 / n0**2
    m = min(max((x1 * a0 + x0 * a1) / (a1 + a0), low), high)
    total = 0.0
    for excess, a in ((x1 - m, a1), (m - x0, a0)):
        if excess > 0.0:
            total += excess**2 / (2.0 * a) if a > 0.0 else inf
    return total


# -------------------------------------------------------------------- several arms


def subsets_with(i, n):
    """All subsets of range(n) that contain i."""
    others = [j for j in range(n) if j != i]
    for size in range(n):
        for rest in combinations(others, size):
            yield (i, *rest)


def adjusted(e, weights=None):
    """e*_i: smallest weighted average over all the sets that contain i."""
    w = [1.0] * len(e) if weights is None else list(weights)
    return [
        min(
            fsum(w[j] * e[j] for j in s) / fsum(w[j] for j in s)
            for s in subsets_with(i, len(e))
        )
        for i in range(len(e))
    ]


def adjusted_by_formula(e, weights=None):
    """e*_i with the others added in increasing order of e."""
    w = [1.0] * len(e) if weights is None else list(weights)
    result = []
    for i in range(len(e)):
        others = sorted((j for j in range(len(e)) if j != i), key=lambda j: e[j])
        best = inf
        for s in range(1, len(e) + 1):
            chosen = [i, *others[: s - 1]]
            total = fsum(w[j] * e[j] for j in chosen)
            best = min(best, total / fsum(w[j] for j in chosen))
        result.append(best)
    return result


def adjusted_log(log_e, weights=None):
    """log e*_i from log e_i, over all the sets that contain i."""
    w = [1.0] * len(log_e) if weights is None else list(weights)
    return [
        min(
            log_sum_exp([log(w[j]) + log_e[j] for j in s]) - log(fsum(w[j] for j in s))
            for s in subsets_with(i, len(log_e))
        )
        for i in range(len(log_e))
    ]


def average(e, weights=None):
    """Evidence against the global null."""
    w = [1.0] * len(e) if weights is None else list(weights)
    return fsum(a * b for a, b in zip(w, e, strict=True)) / fsum(w)


def log_p_values(path, weights=None):
    """log P_i after a path of vectors of log e_i: the largest e* so far, p <= 1."""
    top = [0.0] * len(path[0])
    for log_e in path:
        top = [
            max(a, b) for a, b in zip(top, adjusted_log(log_e, weights), strict=True)
        ]
    return [-x for x in top]


def last_true(condition, low, high, n_steps=200):
    """Largest d of [low, high] with a true condition, true for small d."""
    for _ in range(n_steps):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if condition(middle):
            low = middle
        else:
            high = middle
    return low


def lift_bound(arm, control, rewards, threshold, sigma=1.0, bets=None, max_pulls=None):
    """sup{d: log E of "mu_arm <= mu_control + d" >= threshold}."""

    def condition(d):
        value = log_evalue(arm, control, rewards, sigma, d, bets, max_pulls)
        return value >= threshold

    if rewards != "normal":
        return last_true(condition, -1.0, 1.0)
    if arm[0] == 0 or control[0] == 0:
        return -inf
    center = arm[1] / arm[0] - control[1] / control[0]
    width = max(pair(sigma))
    while not condition(center - width):
        width *= 2.0
    return last_true(condition, center - width, center)


def lift_interval(
    arm,
    control,
    rewards,
    level=0.05,
    n_alternatives=1,
    sigma=1.0,
    bets=None,
    max_pulls=None,
):
    """Interval of mu_arm - mu_control with error probability `level`."""
    threshold = log(2.0 * n_alternatives / level)
    swapped = pair(sigma)[::-1]
    lower = lift_bound(arm, control, rewards, threshold, sigma, bets, max_pulls)
    upper = -lift_bound(control, arm, rewards, threshold, swapped, bets, max_pulls)
    return lower, upper


# ----------------------------------------------------------------------- sampler


def arm_sigmas(sigma, n_arms):
    """One sigma per arm."""
    if isinstance(sigma, tuple | list | np.ndarray):
        return [float(x) for x in sigma]
    return [float(sigma)] * n_arms


def leader(states, epsilon=0.0):
    """argmax of (mean_0 + epsilon, mean_1, .., mean_K), arms without rewards last."""
    best, best_value = 0, -inf
    for i, state in enumerate(states):
        if state[0] == 0:
            continue
        value = state[1] / state[0] + (epsilon if i == 0 else 0.0)
        if value > best_value:
            best, best_value = i, value
    return best


def shift(h, j, epsilon):
    """s_hj: +epsilon if an alternative is compared with the control."""
    return epsilon if h != 0 and j == 0 else -epsilon


def toptwo_next(states, rewards, sigma=1.0, epsilon=0.0, counts=None):
    """Next arm of the sampler "toptwo"; `counts` includes the outstanding pulls."""
    if counts is None:
        counts = [state[0] for state in states]
    for i, count in enumerate(counts):
        if count == 0:
            return i
    sigmas = arm_sigmas(sigma, len(states))
    h = leader(states, epsilon)
    challenger, best = None, inf
    for j in range(len(states)):
        if j == h:
            continue
        value = log(counts[j]) + glr(
            states[h], states[j], rewards, (sigmas[h], sigmas[j]), shift(h, j, epsilon)
        )
        if challenger is None or value < best:
            challenger, best = j, value
    return challenger if counts[challenger] < counts[h] else h


def toptwo_batch(states, size, rewards, sigma=1.0, epsilon=0.0, counts=None):
    """`size` arms: the rule repeated with frozen statistics and advancing counts."""
    counts = [state[0] for state in states] if counts is None else list(counts)
    arms = []
    for _ in range(size):
        arms.append(toptwo_next(states, rewards, sigma, epsilon, counts))
        counts[arms[-1]] += 1
    return arms


def certified(
    states, delta, rewards, sigma=1.0, epsilon=0.0, bets=None, max_pulls=None
):
    """The certified arm, or None."""
    sigmas = arm_sigmas(sigma, len(states))
    h = leader(states, epsilon)
    threshold = log((len(states) - 1) / delta)
    for j in range(len(states)):
        if j == h:
            continue
        value = log_evalue(
            states[h],
            states[j],
            rewards,
            (sigmas[h], sigmas[j]),
            shift(h, j, epsilon),
            bets,
            max_pulls,
        )
        if value < threshold:
            return None
    return h


# ---------------------------------------------------------------- online procedures


@cache
def power_constant():
    """1 / sum of j^-1.6 (Euler-Maclaurin from the last term on)."""
    n = 10_000
    head = fsum(j**-1.6 for j in range(1, n))
    tail = n**-0.6 / 0.6 + 0.5 * n**-1.6 + 1.6 * n**-2.6 / 12.0
    return 1.0 / (head + tail)


def power_gamma(j):
    """gamma_j proportional to j^-1.6."""
    return power_constant() * j**-1.6


def log_gamma_term(j):
    """log(max(j, 2)) / (j exp(sqrt(log j)))."""
    return log(max(j, 2)) / (j * exp(sqrt(log(j))))


@cache
def log_constant():
    """1 / sum of the terms; the integral beyond n is a Gamma integral in sqrt(log)."""
    n = 100_000
    head = fsum(log_gamma_term(j) for j in range(1, n))
    s = sqrt(log(n))
    integral = 2.0 * exp(-s) * (s**3 + 3.0 * s**2 + 6.0 * s + 6.0)
    slope = exp(-s) * (1.0 - 0.5 * s - s**2) / n**2
    return 1.0 / (head + integral + 0.5 * log_gamma_term(n) - slope / 12.0)


def log_gamma(j):
    """gamma_j proportional to log(max(j, 2)) / (j exp(sqrt(log j)))."""
    return log_constant() * log_gamma_term(j)


def settings(name, alpha, w0=None, lam=None, tau=None, gamma=None):
    """(used, f, cap, w0, gamma) of a procedure."""
    if w0 is None:
        w0 = 0.5 * alpha
    if name == "saffron":
        lam = 0.5 if lam is None else lam
        return lambda p: p > lam, 1.0 - lam, lam, w0, gamma or power_gamma
    if name == "addis":
        lam = 0.25 if lam is None else lam
        tau = 0.5 if tau is None else tau
        return lambda p: lam < p <= tau, tau - lam, lam, w0, gamma or power_gamma
    if name in ("lordpp", "lond", "elond"):
        return lambda p: True, 1.0, 1.0, w0, gamma or log_gamma
    raise ValueError(f"unknown procedure: {name}")


def level(name, t, used, kappas, alpha, **params):
    """alpha_t from used(j) of the tests j = 1..t-1 and the known rejections."""
    _, f, cap, w0, gamma = settings(name, alpha, **params)
    if name in ("lond", "elond"):
        return alpha * gamma(t) * (len(kappas) + 1)

    def term(kappa):
        return gamma(sum(used[j - 1] for j in range(kappa + 1, t)) + 1)

    total = w0 * term(0)
    for q, kappa in enumerate(kappas, start=1):
        total += (alpha - w0 if q == 1 else alpha) * term(kappa)
    return min(cap, f * total)


def decide(name, value, alpha_t):
    """Whether the p-value (e-value for "elond") is rejected."""
    return value >= 1.0 / alpha_t if name == "elond" else value <= alpha_t


def play(name, p_values, alpha, **params):
    """(rejected, levels) of tests that come one after the other."""
    is_used = settings(name, alpha, **params)[0]
    rejected, levels = [], []
    for t in range(1, len(p_values) + 1):
        used = [is_used(p) for p in p_values[: t - 1]]
        kappas = [j for j in range(1, t) if rejected[j - 1]]
        levels.append(level(name, t, used, kappas, alpha, **params))
        rejected.append(decide(name, p_values[t - 1], levels[-1]))
    return rejected, levels


def play_async(name, events, alpha, **params):
    """Overlapping tests: events ("start", id) and ("end", id, value) in time order.

    A running test counts as used; a known rejection has kappa = the number of tests
    started when it finished. Returns ({id: rejected} of the finished tests,
    {id: level}).
    """
    is_used = settings(name, alpha, **params)[0]
    order, values, rejected, levels, kappas = [], {}, {}, {}, []
    for event in events:
        label = event[1]
        if event[0] == "start":
            used = [is_used(values[j]) if j in values else True for j in order]
            order.append(label)
            levels[label] = level(name, len(order), used, kappas, alpha, **params)
        else:
            values[label] = event[2]
            rejected[label] = decide(name, event[2], levels[label])
            if rejected[label]:
                kappas.append(len(order))
    return rejected, levels


def play_lag(name, p_values, alpha, lag, **params):
    """(rejected, levels) when the last `lag` tests are treated as running."""
    events = []
    n = len(p_values)
    for t in range(1, n + lag + 1):
        if t <= n:
            events.append(("start", t))
        if t > lag:
            events.append(("end", t - lag, p_values[t - lag - 1]))
    rejected, levels = play_async(name, events, alpha, **params)
    return [rejected[t] for t in range(1, n + 1)], [levels[t] for t in range(1, n + 1)]


def wealth(name, p_values, alpha, **params):
    """alpha (R v 1) - sum of alpha_j / f over the used tests, after each test."""
    is_used, f = settings(name, alpha, **params)[:2]
    rejected, levels = play(name, p_values, alpha, **params)
    result = []
    for t in range(1, len(p_values) + 1):
        spent = fsum(levels[j] / f for j in range(t) if is_used(p_values[j]))
        result.append(alpha * max(sum(rejected[:t]), 1) - spent)
    return result


def online_ebh(log_e, alpha, gamma=log_gamma):
    """Rejected tests (numbers from 1) after each test, largest k by trying all."""
    history = []
    for t in range(1, len(log_e) + 1):
        chosen = []
        for k in range(1, t + 1):
            above = [
                j for j in range(1, t + 1) if log_e[j - 1] >= -log(k * alpha * gamma(j))
            ]
            if len(above) >= k:
                chosen = above
        history.append(chosen)
    return history


# ---------------------------------------------------------------- exact expectations


def binomial(n, p, s):
    """Probability of s successes."""
    return comb(n, s) * p**s * (1.0 - p) ** (n - s)


def outcomes(n, p, rewards):
    """Pairs (probability, state) of n Bernoulli(p) rewards."""
    if rewards == "binary":
        return [(binomial(n, p, s), (n, float(s))) for s in range(n + 1)]
    result = []
    for x in product((0.0, 1.0), repeat=n):
        s = int(sum(x))
        result.append((p**s * (1.0 - p) ** (n - s), bounded_state(x)))
    return result


def expectation(f, first, second):
    """Expectation of f(state, state) over two lists of outcomes."""
    return fsum(p * q * f(a, c) for p, a in first for q, c in second)


def expected_mixture(
    n_arm, n_control, p_arm, p_control, m, rewards, epsilon=0.0, bets=None
):
    """E M(m) for Bernoulli rewards ("binary" or "bounded")."""
    bets = default_bets(rewards) if bets is None else bets

    def f(arm, control):
        return exp(log_mixture(m, arm, control, rewards, 1.0, 1.0, epsilon, bets))

    first = outcomes(n_arm, p_arm, rewards)
    return expectation(f, first, outcomes(n_control, p_control, rewards))


def expected_mixture_normal(
    n_arm,
    n_control,
    mu_arm,
    mu_control,
    m,
    sigma=1.0,
    epsilon=0.0,
    bets=None,
    n_nodes=100,
):
    """E M(m) for normal rewards by Gauss-Hermite quadrature of the two sums."""
    sigmas = pair(sigma)
    bets = default_bets("normal", max(sigmas)) if bets is None else bets
    nodes, mass = np.polynomial.hermite_e.hermegauss(n_nodes)
    mass = mass / mass.sum()

    def sums(n, mu, s):
        return [
            (float(w), (n, n * mu + sqrt(n) * s * float(z)))
            for z, w in zip(nodes, mass, strict=True)
        ]

    def f(arm, control):
        return exp(log_mixture(m, arm, control, "normal", *sigmas, epsilon, bets))

    first = sums(n_arm, mu_arm, sigmas[0])
    return expectation(f, first, sums(n_control, mu_control, sigmas[1]))


def expected_evalue(n_arm, n_control, p, rewards, epsilon=0.0, bets=None):
    """E of the e-value for Bernoulli rewards; p is one number or (arm, control)."""
    p_arm, p_control = pair(p)

    def f(arm, control):
        return exp(log_evalue(arm, control, rewards, 1.0, epsilon, bets))

    first = outcomes(n_arm, p_arm, rewards)
    return expectation(f, first, outcomes(n_control, p_control, rewards))
