"""Slow reference for certified votes: weights, exact tails, ranking, probabilities.

Follows the project's own description (part B of the specification of the next version
of the PAC-Bayes ensembles): weights chosen by the error of the out-of-fold vote, the
support and the early end of a path of C, exact binomial limits and what follows from
them, the vote's side for decisions and probabilities. Tails are sums of whole numbers,
votes are counted in whole numbers, the rest is loops written from the definitions.
Nothing is imported from the package under test.

Conventions:

* `votes[i, h]` is the class code 0, 1, ... that member h gives to row i, or -1 where
  it has none (its fit failed in that fold): an error of the member, and no vote;
* `errors` are whole numbers, nan for a member that was never reached (weight 0);
* ties between classes go to the smaller code;
* every limit is an upper confidence limit at level 1 - delta, never above 1, and is 1
  when there are no rows.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import ceil, comb, e, exp, fsum, inf, isnan, log

import numpy as np
from scipy.optimize import minimize, root

ETAS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
DIGITS = 50
BITS = 64

# ---------------------------------------------------------------- weights of a vote


def _whole_weights(excess, eta, smallest=None):
    """exp(-eta x) for x in `excess` in units of 10^-50, 0 below `smallest`.

    None in `excess` is a weight of 0. Exponentials of different rational numbers are
    linearly independent over the rationals, so sums of these weights are equal only if
    the same numbers of errors occur equally often, and whole numbers keep that exact.
    """
    result = []
    with localcontext() as context:
        context.prec = DIGITS + 10
        unit = Decimal(10) ** DIGITS
        for x in excess:
            weight = Decimal(0)
            if x is not None:
                weight = (-Decimal(repr(float(eta))) * int(x)).exp()
            if smallest is not None and weight < Decimal(repr(smallest)):
                weight = Decimal(0)
            result.append(int((weight * unit).to_integral_value()))
    return result


def _normalised(whole):
    total = sum(whole)
    return np.array([w / total for w in whole])


def _plurality(row, weights):
    """Class with the largest weight of votes, the smallest such; None without votes."""
    score = {}
    for code, weight in zip(row, weights, strict=True):
        if code >= 0 and weight > 0:
            score[int(code)] = score.get(int(code), 0) + weight
    if not score:
        return None
    most = max(score.values())
    return min(code for code, value in score.items() if value == most)


def stacked_weights(votes, targets, etas=ETAS, failed=None):
    """Weights of the members at an eta chosen by errors of the out-of-fold vote.

    Weights are exp(-eta (e_h - min e)), those below 1e-3 of the largest are 0. The
    smallest eta wins of those whose errors exceed the fewest, at the largest eta that
    has them, by at most half the square root of the number of rows on which one of the
    two votes errs and the other does not. A row on which no member with weight votes is
    an error. Members in the mask `failed` have weight 0 for every eta
    and do not count in min e. Returns eta, the weights and the errors of every eta.
    """
    votes = np.asarray(votes)
    n, H = votes.shape
    failed = [False] * H if failed is None else [bool(x) for x in failed]
    if len(targets) != n or len(failed) != H or all(failed):
        raise ValueError("one target for every row and a member that did not fail")
    counts = [sum(votes[i, h] != targets[i] for i in range(n)) for h in range(H)]
    least = min(counts[h] for h in range(H) if not failed[h])
    excess = [None if failed[h] else counts[h] - least for h in range(H)]

    weights, mistakes = [], []
    for eta in etas:
        whole = _whole_weights(excess, eta, 1e-3)
        wrong = set()
        for i in range(n):
            vote = _plurality(votes[i], whole)
            if vote is None or vote != targets[i]:
                wrong.add(i)
        weights.append(whole)
        mistakes.append(wrong)
    errors = [len(wrong) for wrong in mistakes]
    fewest = min(errors)
    least = max(
        (j for j in range(len(etas)) if errors[j] == fewest), key=lambda j: etas[j]
    )
    # 4 (more errors)^2 <= rows that one of both gets wrong, in integers.
    near = [
        j
        for j in range(len(etas))
        if 4 * (errors[j] - fewest) ** 2 <= len(mistakes[j] ^ mistakes[least])
    ]
    best = min(near, key=lambda j: etas[j])
    return etas[best], _normalised(weights[best]), errors


def path_support(errors, eta, margin=7):
    """Weights exp(-eta (e - min e)), 0 with more than `margin` errors above min (B.1).

    The cut is by errors alone, there is none by weight.
    """
    least = min(x for x in errors if not isnan(x))
    excess = []
    for x in errors:
        keep = not isnan(x) and x - least <= margin
        excess.append(x - least if keep else None)
    return _normalised(_whole_weights(excess, eta))


def path_end(errors_in_order, patience=3, margin=7, from_start=False):
    """Index of the last C of the path, the C in increasing order (B.1).

    The path ends after `patience` consecutive C with at least `margin` errors more than
    the minimum so far, but not while that minimum is still at the smallest C, that is,
    before some C has been strictly better than the first. With `from_start` the
    minimum may be there.
    """
    least, run = inf, 0
    for j, x in enumerate(errors_in_order):
        run = run + 1 if x >= least + margin else 0
        least = min(least, x)
        improved = from_start or least < errors_in_order[0]
        if run >= patience and improved:
            return j
    return len(errors_in_order) - 1


# ---------------------------------------------------------------- binomial limits


def _whole_lower_tail(k, m, a, d):
    """d^m P(Bin(m, a/d) <= k), a whole number."""
    if k < 0:
        return 0
    if k >= m:
        return d**m
    if 2 * k > m:  # the fewer terms: the others are P(Bin(m, 1 - a/d) <= m - k - 1)
        return d**m - _whole_lower_tail(m - k - 1, m, d - a, d)
    b, total, power = d - a, 0, 1
    for i in range(k + 1):
        total = total * b + comb(m, i) * power
        power *= a
    return total * b ** (m - k)


def lower_tail(k, m, p):
    """P(Bin(m, p) <= k), correctly rounded for the float or fraction p."""
    a, d = Fraction(p).as_integer_ratio()
    return _whole_lower_tail(k, m, a, d) / d**m


def _check(k, m, delta):
    if not 0 <= k <= m:
        raise ValueError("errors must be between 0 and the number of rows")
    if not 0 < delta < 1:
        raise ValueError("delta must be in (0, 1)")


@cache
def _smallest(k, m, level, u):
    """Smallest p with (1 - u) P(X < k) + u P(X <= k) <= level, 1 if there is none.

    Both tails fall as p grows, hence bisection over the multiples of 2^-64.
    """
    d = 2**BITS
    below, top = Fraction(u).as_integer_ratio()

    def small(a):
        tails = (top - below) * _whole_lower_tail(k - 1, m, a, d)
        tails += below * _whole_lower_tail(k, m, a, d)
        return tails * level.denominator <= level.numerator * top * d**m

    if small(0):
        return 0.0
    if not small(d):
        return 1.0
    low, high = 0, d
    while high - low > 1:
        middle = (low + high) // 2
        if small(middle):
            high = middle
        else:
            low = middle
    return high / d


def exact_tail(k, m, delta):
    """Smallest p with P(Bin(m, p) <= k) <= delta (Clopper-Pearson); 1 if k = m."""
    k, m = int(k), int(m)
    _check(k, m, delta)
    return _smallest(k, m, Fraction(delta), Fraction(1))


def randomized_tail(k, m, delta, u):
    """Smallest p with P(X < k) + u P(X = k) <= delta, X ~ Bin(m, p).

    The left side never grows with p. It equals delta at one p, but for

    * k = m and u > delta: above delta for every p, the limit is 1;
    * k = 0 and u <= delta: not above delta for any p, the limit is 0. That is right (a
      limit that fails with probability delta exactly has to be 0 now and then);
    * m = 0: no rows, the limit is 1 whatever u is.

    u = 1 is the exact tail, and no u gives a larger limit. For 0 < p < 1 and U uniform,
    P(p > limit) = delta.
    """
    k, m = int(k), int(m)
    _check(k, m, delta)
    if not 0 <= u <= 1:
        raise ValueError("u must be in [0, 1]")
    return 1.0 if m == 0 else _smallest(k, m, Fraction(delta), Fraction(u))


def violation_probability(m, p, delta, tail=exact_tail):
    """P(p > tail(X, m, delta)) for X ~ Bin(m, p), by enumeration of X."""
    p = Fraction(p)
    total = Fraction(0)
    for k in range(m + 1):
        if p > Fraction(tail(k, m, delta)):
            total += comb(m, k) * p**k * (1 - p) ** (m - k)
    return float(total)


def class_bounds(predicted, true, classes, delta, simultaneous=False):
    """Limits of P(predict != c | Y = c) and of P(Y != c | predict = c) (B.5).

    Arrays in the order of `classes`. With `simultaneous` each of the 2 K limits has
    level delta / (2 K), K the number of `classes`, so that all hold together. Rows with
    a label outside `classes` are errors of what was predicted for them.
    """
    level = Fraction(delta) / (2 * len(classes)) if simultaneous else delta
    recall, precision = [], []
    for c in classes:
        members = wrong = 0
        named = false = 0
        for guess, label in zip(predicted, true, strict=True):
            if label == c:
                members += 1
                wrong += bool(guess != c)
            if guess == c:
                named += 1
                false += bool(label != c)
        recall.append(exact_tail(wrong, members, level))
        precision.append(exact_tail(false, named, level))
    return {
        "recall_error": np.array(recall),
        "precision_error": np.array(precision),
    }


def _binary_kl(a, b):
    total = 0.0
    for x, y in ((a, b), (1 - a, 1 - b)):
        if x > 0:
            total += x * log(x / y) if y > 0 else inf
    return total


def hoeffding_bentkus(mean, m, delta):
    """Limit for the mean of losses in [0, 1] from the average of m of them.

    Largest R whose p-value min(exp(-m kl(min(mean, R), R)), e P(Bin(m, R) <= ceil(m
    mean))) is above delta, by bisection. A product m mean within 1e-9 of a whole number
    is that number: 100 * 0.07 is above 7 in floats.
    """
    m = int(m)
    _check(0, m, delta)
    if not 0 <= mean <= 1:
        raise ValueError("the mean of losses in [0, 1] is in [0, 1]")
    if m == 0:
        return 1.0
    k = ceil(m * Fraction(mean) - Fraction(1, 10**9))
    mean = float(mean)

    def p_value(R):
        hoeffding = exp(-m * _binary_kl(min(mean, R), R))
        return min(hoeffding, e * lower_tail(k, m, R))

    if p_value(1.0) > delta:
        return 1.0
    low, high = mean, 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        if p_value(middle) > delta:
            low = middle
        else:
            high = middle


# ---------------------------------------------------------------- ranking, probability


def platt_targets(y01):
    """Platt's targets: (n1 + 1)/(n1 + 2) for rows of class 1, 1/(n0 + 2) for others."""
    y = [int(v) for v in y01]
    ones = sum(y)
    zeros = len(y) - ones
    return np.array([(ones + 1) / (ones + 2) if v else 1 / (zeros + 2) for v in y])


def platt_fit(f, y01):
    """The a, b that minimise the cross-entropy of sigmoid(a f + b) to Platt's targets.

    The sum over rows of ln(1 + exp(z)) - t z with z = a f + b is strictly convex and
    has a minimum, as every target is inside (0, 1), unless f is constant: then a = 0.
    Solved in standardised f. A negative a is possible.
    """
    f, t = np.asarray(f, dtype=float), platt_targets(y01)
    share = fsum(t) / len(t)
    if len(set(f.tolist())) == 1:
        return 0.0, log(share / (1 - share))
    centre, scale = f.mean(), f.std()
    x = np.column_stack([(f - centre) / scale, np.ones(len(f))])

    def sigmoid(v):
        return np.exp(-np.logaddexp(0.0, -(x @ v)))

    def loss(v):
        z = x @ v
        return fsum(np.logaddexp(0.0, z) - t * z)

    def gradient(v):
        slopes = (sigmoid(v) - t)[:, None] * x
        return np.array([fsum(slopes[:, 0]), fsum(slopes[:, 1])])

    def hessian(v):
        s = sigmoid(v)
        return x.T @ ((s * (1 - s))[:, None] * x)

    start = np.array([0.0, log(share / (1 - share))])
    first = minimize(
        loss,
        start,
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-8, "maxiter": 10000},
    ).x
    second = root(gradient, first, jac=hessian, tol=1e-15).x
    slope, level = min(first, second, key=lambda v: np.abs(gradient(v)).max())
    return float(slope / scale), float(level - slope * centre / scale)


def constrained_decision(average, vote_says_one, tiny):
    """The average decision on the vote's side: above 0 exactly when it says 1 (B.3)."""
    result = [
        max(float(f), tiny) if one else min(float(f), 0.0)
        for f, one in zip(average, vote_says_one, strict=True)
    ]
    return np.array(result)


def constrained_proba(p, vote_says_one):
    """Columns 1 - p, p with p on the vote's side, so that argmax is the vote (B.3).

    argmax of (.5, .5) is class 0. So p = .5 is right when the vote says 0, and when it
    says 1, p is at least the float after .5, not .5 itself; 1 - p is then exact and
    below .5. Nothing is lost on the other side: below .5, 1 - p is never below p.
    """
    above = float(np.nextafter(0.5, 1.0))
    result = []
    for value, one in zip(p, vote_says_one, strict=True):
        value = max(float(value), above) if one else min(float(value), 0.5)
        result.append((1.0 - value, value))
    return np.array(result)


def smoothed_shares(s, m, K=2):
    """(m s + 1)/(m + 2) for two classes; m + K for K, so that the shares sum to 1.

    m is taken as given: the cap of 20 is up to the caller.
    """
    return (m * np.asarray(s, dtype=float) + 1) / (m + K)


# ---------------------------------------------------------------- betting


def betting_log_evalue(errors, bound, bets):
    """Log wealth against "the next error has probability at most `bound`, given all".

    The bet lam in [0, 1/bound] multiplies its wealth by 1 + lam (X - bound) at each X
    in {0, 1}; the e-process is the plain average over `bets` of their wealths. Returns
    the logarithms before any row (0) and after each, one more than there are errors;
    -inf when every bet is lost.
    """
    if not 0 < bound < 1:
        raise ValueError("the bound must be in (0, 1)")
    bets = [float(lam) for lam in bets]
    if not bets or any(lam < 0 or lam * bound > 1 + 1e-12 for lam in bets):
        raise ValueError("bets must be in [0, 1/bound]")
    logs = [0.0] * len(bets)
    result = [0.0]
    for x in errors:
        if x not in (0, 1):
            raise ValueError("errors must be 0 or 1")
        for j, lam in enumerate(bets):
            factor = 1 + lam * (float(x) - bound)
            # At lam = 1/bound, or a rounding above it, no error loses everything.
            logs[j] += log(factor) if factor > 1e-15 else -inf
        top = max(logs)
        if top == -inf:
            result.append(-inf)
        else:
            mean = fsum(exp(value - top) for value in logs) / len(logs)
            result.append(top + log(mean))
    return np.array(result)
