"""Slow reference of the online procedures: a ledger of all tests.

Nothing is kept but what happened: levels, decisions and p-values of all tests, and when
decisions became known. Levels, wealth and the largest level that the wealth allows are
sums over the whole past, written from the definitions of `sequential.py` and
`eprocess.py` and from what the guide says of overlap, lag, weights and memory.

* A test is known once it has ended and is not among the last `lag`; others count as if
  they were to find nothing.
* kappa_q is the number of tests that had begun when the q-th rejection became known.
* With any weight other than 1 no level is above what is left.
"""

from fractions import Fraction
from functools import cache
from math import fsum

from reference import eprocess, sequential


@cache
def _horizon_total(kind, horizon):
    terms = {"log": eprocess.log_gamma_term, "power": lambda j: j**-1.6}
    return fsum(terms[kind](j) for j in range(1, horizon + 1))


@cache
def gamma_term(kind, horizon, j):
    """gamma_j of "log", "power" or a tuple; 0 beyond the horizon."""
    if horizon is not None and j > horizon:
        return 0.0
    if isinstance(kind, tuple):
        return kind[j - 1] if j <= len(kind) else 0.0
    if horizon is None:
        return {"log": eprocess.log_gamma, "power": eprocess.power_gamma}[kind](j)
    term = eprocess.log_gamma_term(j) if kind == "log" else j**-1.6
    return term / _horizon_total(kind, horizon)


class Ledger:
    """All tests of one procedure.

    Attributes
    ----------
    levels, ended, rejected, values : list
        Of each test: its level, whether it has ended, its decision and its p-value.
    sizes : list of float
        Of each test: what a share of 1 was worth as a level when it began (LOND).
    known : set of int
        Numbers of the tests whose decision is known to levels.
    kappas : list of int
        Numbers of tests that had begun when each rejection became known.
    weighted : bool
    """

    def __init__(self, rule, alpha, **options):
        self.rule, self.alpha = rule, alpha
        usual = "power" if rule in ("SAFFRON", "ADDIS", "AlphaInvesting") else "log"
        gamma = options.get("gamma", usual)
        self.kind = gamma if isinstance(gamma, str) else tuple(gamma)
        self.horizon, self.lag = options.get("horizon"), options.get("lag", 0)
        self.w0 = options.get("w0") or 0.5 * alpha
        self.lam = options.get("lam", {"SAFFRON": 0.5, "ADDIS": 0.25}.get(rule))
        self.tau = options.get("tau", {"SAFFRON": 1.0, "ADDIS": 0.5}.get(rule))
        self.memory = options.get("memory", 1.0)
        self.dependent = options.get("dependent", False)
        self.levels, self.ended, self.rejected, self.values = [], [], [], []
        self.sizes, self.known, self.kappas, self.weighted = [], set(), [], False

    # What happens

    def begin(self, level):
        """A test begins at this level; returns its number."""
        self.sizes.append(self.size())
        self.levels.append(level)
        self.ended.append(False)
        self.rejected.append(None)
        self.values.append(None)
        self._learn()
        return len(self.levels)

    def end(self, number, rejected, value=None):
        """A test ends."""
        self.ended[number - 1] = True
        self.rejected[number - 1], self.values[number - 1] = rejected, value
        self._learn()

    def _learn(self):
        n = len(self.levels)
        for j in range(1, n - self.lag + 1):
            if self.ended[j - 1] and j not in self.known:
                self.known.add(j)
                if self.rejected[j - 1]:
                    self.kappas.append(n)

    # What follows

    def gamma(self, j):
        return gamma_term(self.kind, self.horizon, j)

    @property
    def n_known_rejections(self):
        return len(self.kappas)

    def used(self, j):
        """Whether test j counts: not known, or neither candidate nor discarded."""
        if j not in self.known:
            return True
        if self.rule == "AlphaInvesting":
            return not self.rejected[j - 1]
        return self.lam < self.values[j - 1] <= self.tau

    def size(self):
        """What a share of 1 is worth as a level of LOND now."""
        size = self.alpha * (len(self.kappas) + 1)
        if self.dependent:
            t = len(self.levels) + 1
            size /= float(sum(Fraction(1, j) for j in range(1, t + 1)))
        return size

    def plain_level(self):
        """Level of the next test as the rule has it, without weights."""
        t, alpha, w0 = len(self.levels) + 1, self.alpha, self.w0
        if self.horizon is not None and t > self.horizon:
            return 0.0
        last = self.kappas[-1] if self.kappas else 0
        pay = [alpha - w0 if q == 0 else alpha for q in range(len(self.kappas))]
        if self.rule == "Uncorrected":
            return alpha
        if self.rule == "AlphaSpending":
            return sequential.spending_level([False] * (t - 1), [], alpha, None, None)
        if self.rule in ("LOND", "ELOND"):
            return min(self.gamma(t) * self.size(), 1.0)
        if self.rule == "LORDPrime":
            return alpha * self.gamma(t - last)
        if self.rule == "LORD":
            earned = (alpha - w0) * self._n_known_by(last)
            wealth = fsum([w0, earned] + [-x for x in self.levels[:last]])
            return min(self.gamma(t - last) * wealth, 1.0)
        if self.rule == "LORDPlusPlus":
            d = self.memory
            first = d ** (t - self.kappas[0]) if self.kappas else 1.0
            terms = [w0 * self.gamma(t) * first]
            for q, kappa in enumerate(self.kappas):
                terms.append(pay[q] * d ** (t - kappa) * self.gamma(t - kappa))
            return min(fsum(terms), 1.0)
        counts = [0]
        for j in range(1, t):
            counts.append(counts[-1] + self.used(j))
        terms = [w0 * self.gamma(counts[-1] + 1)]
        for q, kappa in enumerate(self.kappas):
            terms.append(pay[q] * self.gamma(counts[-1] - counts[kappa] + 1))
        return self._scaled(fsum(terms))

    def _n_known_by(self, n):
        return sum(kappa <= n for kappa in self.kappas)

    def _scaled(self, x):
        if self.rule == "AlphaInvesting":
            return x / (1.0 + x)
        return min((self.tau - self.lam) * x, self.lam)

    def charged(self):
        """What all tests so far have cost."""
        n = len(self.levels)
        if self.rule == "AlphaInvesting":
            cost = lambda x: x / (1.0 - x)
        elif self.rule in ("SAFFRON", "ADDIS"):
            cost = lambda x: x / (self.tau - self.lam)
        else:
            weights = [self.memory ** (n - j) for j in range(1, n + 1)]
            return fsum(w * x for w, x in zip(weights, self.levels, strict=True))
        return fsum(cost(self.levels[j - 1]) for j in range(1, n + 1) if self.used(j))

    def remembered(self):
        """Number of known rejections, of which old ones are forgotten."""
        n = len(self.levels)
        return fsum(self.memory ** (n - kappa) for kappa in self.kappas)

    def earned(self):
        """What there was to spend so far."""
        alpha, R = self.alpha, len(self.kappas)
        if self.rule == "LORD":
            return self.w0 + (alpha - self.w0) * R
        if self.rule == "LORDPlusPlus":
            return alpha * self.remembered() if R else self.w0
        if self.rule in ("SAFFRON", "ADDIS", "AlphaInvesting"):
            return alpha * max(R, 1)
        return alpha

    def wealth(self):
        """What is left."""
        if self.rule in ("LOND", "ELOND"):
            return self.alpha * (1.0 - self._shares())
        if self.rule == "Uncorrected":
            return float("inf")
        if self.rule == "LORDPrime":
            last = self.kappas[-1] if self.kappas else 0
            return self.alpha - fsum(self.levels[last:])
        return self.earned() - self.charged()

    def _shares(self):
        return fsum(x / s for x, s in zip(self.levels, self.sizes, strict=True))

    def most(self):
        """Largest level that what is left allows the next test."""
        if self.rule in ("LOND", "ELOND"):
            return (1.0 - self._shares()) * self.size()
        if self.rule == "Uncorrected":
            return 1.0
        if self.memory < 1.0:
            # What counts is what the sums will be after the next test.
            earned = self.memory * self.earned() if self.kappas else self.w0
            return earned - self.memory * self.charged()
        if self.rule in ("SAFFRON", "ADDIS", "AlphaInvesting"):
            earned = self.earned() if self.kappas else self.w0
            return self._scaled(earned - self.charged())
        return self.wealth()

    def level(self, weight=1.0):
        """Level of the next test."""
        level = self.plain_level()
        if self.weighted:
            level = max(min(level, self.most()), 0.0)
        if weight == 1.0:
            return level
        return max(min(weight * level, self.most(), 1.0), 0.0)

    def fdp_estimate(self):
        """Costs over the number of rejections, at least 1."""
        return self.charged() / max(self.remembered(), 1.0)
