"""Intervals without a theorem: how often they cover, beside what is documented."""

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from guarantees.average import LOGISTIC
from guarantees.limits import sample
from guarantees.populations import POPULATIONS, Centres
from guarantees.sequential import at_random, rare_control
from guarantees.table import Guarantee, repeat
from skbounds import (
    BaumWelchHMM,
    EarlyStoppedKernelBoost,
    RidgeSMP,
    RidgeSMPCV,
    SMPLogisticRegression,
)
from skbounds.bolstering import BolsteredScorer, compare_bolstered
from skbounds.sequential import BestArmTest

SCORER = BolsteredScorer(random_state=0)


def error_law(population, model, n=60):
    """The error of the fit at hand, on the population."""

    def once(rng):
        X, y = sample(population, rng, n)
        fitted = model.fit(X, y)
        low, high = SCORER.estimate(fitted, X, y).interval(0.9)
        return bool(low <= population.risk(fitted.predict) <= high)

    return repeat(once)


def difference_law(population, a, b, n=60):
    def once(rng):
        X, y = sample(population, rng, n)
        low, high = compare_bolstered(a, b, X, y, random_state=0).interval(0.9)
        truth = population.risk(a.fit(X, y).predict)
        truth -= population.risk(b.fit(X, y).predict)
        return bool(low <= truth <= high)

    return repeat(once)


def excess_law(law, n):
    """The expected excess over the best model, from the samples themselves."""

    def run(rng, size):
        limits, found = [], []
        least = law.best(1e-9)[1]
        for _ in range(size):
            X, y = law.draw(rng, n)
            model = SMPLogisticRegression(fit_intercept=False).fit(X, y)
            found.append(law.risk(model.predict_log_proba(law.X)) - least)
            limits.append(model.excess_risk_interval(0.9))
        low, high = np.array(limits).T
        truth = np.mean(found)
        return (low <= truth) & (truth <= high)

    return run


def target_law(make, draw, n=50):
    """One new target for each fit."""

    def once(rng):
        X, y = draw(rng, n + 1)
        low, high = make().fit(X[:n], y[:n]).predict_interval(X[n:], 0.9)[0]
        return bool(low <= y[n] <= high)

    return repeat(once)


def line(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -0.5, 0.0] + rng.normal(size=n)


def wave(rng, n):
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def heavy(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.standard_t(3, size=n)


def uneven(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + (0.2 + np.abs(X[:, 1])) * rng.normal(size=n)


def state_law(parameter, gap, n=300):
    """A mean, or a transition, of two states at -gap and gap."""

    def once(rng):
        change = rng.random(n) < 0.2
        states = change.cumsum() % 2
        X = (np.array([-gap, gap])[states] + rng.normal(size=n))[:, None]
        model = BaumWelchHMM(
            covariance_type="spherical", means_init=[[-gap], [gap]], random_state=0
        ).fit(X)
        order = model.means_[:, 0].argsort()
        found = (
            model.means_[order[1], 0]
            if parameter == "means"
            else (model.transmat_[order[1], order[1]])
        )
        errors = model.standard_errors_[parameter]
        error = errors[order[1], 0 if parameter == "means" else order[1]]
        truth = gap if parameter == "means" else 0.8
        return bool(abs(found - truth) < 1.96 * np.ravel(error)[0])

    return repeat(once)


def asymptotic_law(draw, shares=at_random, n=1000):
    """Adoptions at level .05 of arms that are not better, variances estimated."""

    def once(rng):
        test = BestArmTest(3, sigma=None)
        arms = shares(rng, n, 3)
        test.observe(arms, draw(rng, n))
        return bool(test.p_value_ <= 0.05)

    return repeat(once)


def revenue(rng, n):
    return np.where(rng.random(n) < 0.02, rng.lognormal(3.0, 1.0, size=n), 0.0)


KERNEL = lambda: EarlyStoppedKernelBoost(
    gamma=0.5, relevance=None, intervals=True, random_state=0
)
NB, TREE = GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)

TABLE = [
    Guarantee(
        "interval of BolsteredScorer", "nominal 90 %, documented 86 to 97 %",
        "estimates", "coverage", 0.86,
        {
            "a line, naive Bayes": error_law(POPULATIONS["a line, labels flipped"], NB),
            "noise, tree": error_law(POPULATIONS["noise"], TREE),
            "heavy tails, tree": error_law(POPULATIONS["heavy tails"], TREE),
            "noise, centres": error_law(POPULATIONS["noise"], Centres(0)),
        },
    ),
    Guarantee(
        "interval of compare_bolstered", "nominal 90 %, documented 90 to 97 %",
        "estimates", "coverage", 0.9,
        {
            "a line": difference_law(POPULATIONS["a line, labels flipped"], NB, TREE),
            "noise": difference_law(POPULATIONS["noise"], NB, TREE),
            "heavy tails": difference_law(POPULATIONS["heavy tails"], NB, TREE),
        },
    ),
    Guarantee(
        "excess_risk_interval", "nominal 90 %, documented 82 to 100 %",
        "estimates", "coverage", 0.82,
        {
            name: excess_law(LOGISTIC[name], 60)
            for name in ("the model is right", "noise", "the far rows are flipped")
        },
    ),
    Guarantee(
        "predict_interval of RidgeSMP, RidgeSMPCV", "nominal 90 %, nothing promised",
        "estimates", "coverage", np.nan,
        {
            "RidgeSMP, a line": target_law(lambda: RidgeSMP(1.0), line),
            "RidgeSMP, heavy tails": target_law(lambda: RidgeSMP(1.0), heavy),
            "RidgeSMPCV, a line": target_law(RidgeSMPCV, line),
            "RidgeSMPCV, uneven noise": target_law(RidgeSMPCV, uneven),
        },
    ),
    Guarantee(
        "predict_interval of EarlyStoppedKernelBoost",
        "nominal 90 %, documented 86 to 92 %", "estimates", "coverage", 0.86,
        {
            "a wave": target_law(KERNEL, wave),
            "heavy tails": target_law(KERNEL, heavy),
            "uneven noise": target_law(KERNEL, uneven),
        },
        0.2,
    ),
    Guarantee(
        "standard_errors_ of BaumWelchHMM", "nominal 95 %, documented 92 to 95 %",
        "estimates", "coverage", 0.92,
        {
            "a mean": state_law("means", 1.5),
            "a transition": state_law("transmat", 1.5),
            "a mean, nearer states": state_law("means", 1.2),
        },
    ),
    Guarantee(
        "p_value_ with sigma=None", "asymptotic level .05",
        "estimates", "frequency", 0.05,
        {
            "normal": asymptotic_law(lambda r, n: r.normal(size=n)),
            "exponential": asymptotic_law(lambda r, n: r.exponential(size=n)),
            "t, 3 degrees": asymptotic_law(lambda r, n: r.standard_t(3, size=n)),
            "exponential, rare control": asymptotic_law(
                lambda r, n: r.exponential(size=n), rare_control
            ),
        },
    ),
    Guarantee(
        "p_value_ with sigma=None, revenue", "level .05, documented .12",
        "estimates", "frequency", 0.12,
        {
            "98 % are 0": asymptotic_law(revenue),
            "98 % are 0, 4000 rewards": asymptotic_law(revenue, n=4000),
            "98 % are 0, rare control": asymptotic_law(revenue, rare_control, 3000),
        },
    ),
]  # fmt: skip
