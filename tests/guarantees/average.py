"""Excess risks: below their bounds in the mean over samples."""

from functools import cache

import numpy as np
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, xlogy

from guarantees.table import Guarantee, repeat
from skbounds import (
    GaussianSMP,
    MultinomialSMP,
    PoissonSMP,
    RidgeSMP,
    SMPLogisticRegression,
)

# ------------------------------------------------------ laws on finitely many places


class Places:
    """A law of rows on finitely many places.

    Parameters
    ----------
    X : ndarray of shape (n_places, n_features)
    p : ndarray of shape (n_places, n_classes)
        Probabilities of the classes.
    weight : ndarray of shape (n_places,) or None
        Probabilities of the places. None: equal ones.
    """

    def __init__(self, X, p, weight=None):
        self.X = np.asarray(X, dtype=float)
        self.p = np.asarray(p, dtype=float)
        if self.p.ndim == 1:
            self.p = np.column_stack([1.0 - self.p, self.p])
        self.weight = np.full(len(X), 1.0 / len(X)) if weight is None else weight
        self.edges = np.cumsum(self.p, axis=1)

    def draw(self, rng, n):
        at = rng.choice(len(self.X), size=n, p=self.weight)
        u = rng.random(n)[:, None]
        y = np.minimum((u >= self.edges[at]).sum(axis=1), self.p.shape[1] - 1)
        return self.X[at], y

    def risk(self, log_proba):
        return -float(self.weight @ (self.p * np.maximum(log_proba, -700.0)).sum(1))

    @cache  # noqa: B019
    def best(self, penalty):
        """Return norm and risk of the linear model of the least penalised risk."""
        n_out = self.p.shape[1] - (self.p.shape[1] == 2)

        def log_proba(theta):
            eta = self.X @ theta.reshape(n_out, -1).T
            if n_out == 1:
                eta = np.hstack([np.zeros_like(eta), eta])
            return eta - logsumexp(eta, axis=1, keepdims=True)

        def value(theta):
            return self.risk(log_proba(theta)) + 0.5 * penalty * theta @ theta

        start = np.zeros(n_out * self.X.shape[1])
        theta = minimize(value, start, options={"gtol": 1e-7}).x
        return float(np.linalg.norm(theta)), self.risk(log_proba(theta))


_RNG = np.random.default_rng(0)
_ROWS = _RNG.normal(size=(60, 3))
_ROUND = np.column_stack([np.cos(2 * np.pi * np.arange(16) / 16),
                          np.sin(2 * np.pi * np.arange(16) / 16)])  # fmt: skip
_ETA = _ROWS @ [1.5, -1.0, 0.5]
_TAIL = _ROWS * np.where(np.arange(60) % 20 == 0, 15.0, 1.0)[:, None]


def softmax(scores):
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


LOGISTIC = {
    "the model is right": Places(_ROWS, expit(_ETA)),
    "noise": Places(_ROWS, np.full(60, 0.5)),
    "separable": Places(_ROWS, (_ETA > 0).astype(float)),
    "the far rows are flipped": Places(
        _ROWS, np.where(np.abs(_ETA) > 1.5, 1.0 - expit(_ETA), expit(_ETA))
    ),
    "rare long rows of the other label": Places(
        [[0.1], [-0.1], [1.0], [-1.0]], [1.0, 0.0, 0.0, 1.0],
        np.array([0.495, 0.495, 0.005, 0.005]),
    ),
    "three rows of 60 are long": Places(_TAIL, expit(_ETA)),
    "three classes": Places(_ROWS, softmax(_ROWS @ _RNG.normal(size=(3, 3)))),
}  # fmt: skip
SPHERE = {
    "the model is right": Places(_ROUND, expit(_ROUND @ [2.0, -1.0])),
    "noise": Places(_ROUND, np.full(16, 0.5)),
    "separable": Places(_ROUND, (_ROUND[:, 0] > 0.1).astype(float)),
    "one place is flipped": Places(_ROUND, (_ROUND[:, 0] > 0.1) ^ (np.arange(16) == 0)),
}


def excess_law(law, n, bound, **options):
    """Pairs of an excess log loss and what the fit says, of a fixed comparator."""

    def once(rng):
        X, y = law.draw(rng, n)
        if len(np.unique(y)) < law.p.shape[1]:
            # One such sample in thousands, and no fit.
            return 0.0, 0.0
        model = SMPLogisticRegression(fit_intercept=False, **options).fit(X, y)
        norm, least = law.best(float(model.lambda_))
        risk = law.risk(model.predict_log_proba(law.X))
        return risk - least, getattr(model, bound)(norm)

    return repeat(once)


# ------------------------------------------------------------------ numbers as targets

_MEAN = _ROWS @ [1.0, -0.5, 0.0]
# Means at the places, the variances there, and draws of unit variance.
NORMAL = lambda rng, n: rng.normal(size=n)
HEAVY = lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3.0)
SKEW = lambda rng, n: np.where(rng.random(n) < 0.02, 7.0, -1.0 / 7.0)
NUMBERS = {
    "the model is right": (_ROWS, _MEAN, np.ones(60), NORMAL),
    "noise three times as wide": (_ROWS, _MEAN, np.full(60, 9.0), NORMAL),
    "a curve, heavy tails": (_ROWS, _MEAN + _ROWS[:, 0] ** 2, np.ones(60), HEAVY),
    "noise grows, rare jumps": (_ROWS, _MEAN, (_ROWS**2).sum(1), SKEW),
    "three rows of 60 are long": (_TAIL, _MEAN, np.ones(60), NORMAL),
    "no noise": (_ROWS, _MEAN, np.zeros(60), NORMAL),
}
CIRCLE = {
    "the model is right": (_ROUND, _ROUND @ [1.0, 2.0], np.ones(16), NORMAL),
    "a curve, heavy tails": (_ROUND, 3 * _ROUND[:, 0] ** 2, np.ones(16), HEAVY),
    "noise three times as wide": (_ROUND, _ROUND[:, 0], np.full(16, 9.0), SKEW),
}


def ridge_law(law, n, bound, alpha=5.0):
    X, mean, variance, noise = law

    def once(rng):
        at = rng.integers(len(X), size=n)
        y = mean[at] + np.sqrt(variance[at]) * noise(rng, n)
        model = RidgeSMP(alpha, sigma=1.0, fit_intercept=False).fit(X[at], y)
        lambda_ = model.lambda_
        gram = X.T @ X / len(X) + lambda_ * np.eye(X.shape[1])
        theta = np.linalg.solve(gram, X.T @ mean / len(X))
        least = 0.5 * np.mean((X @ theta - mean) ** 2 + variance)
        found, s = model.predict(X, return_std=True)
        risk = np.mean(np.log(s) + ((found - mean) ** 2 + variance) / (2.0 * s**2))
        norm = float(np.linalg.norm(theta))
        return risk - least, getattr(model, bound)(norm)

    return repeat(once)


# --------------------------------------------------------------------------- densities


def gaussian_law(variant, draw, trace, n=8):
    """Excess of the log loss over the best mean; `trace` is of the true covariance."""

    def once(rng):
        X = draw(rng, n)
        model = GaussianSMP(variant=variant).fit(X)
        s2 = model.covariance_[0, 0]
        risk = np.log(s2) + (trace + model.mean_ @ model.mean_) / (2.0 * s2)
        return risk - trace / 2.0, model.excess_risk_bound_

    return repeat(once)


VECTORS = {
    "normal": (lambda r, n: r.normal(size=(n, 2)), 2.0),
    "another covariance": (lambda r, n: r.normal(size=(n, 2)) * [3.0, 0.5], 9.25),
    "heavy tails": (lambda r, n: r.standard_t(3, size=(n, 2)), 6.0),
    "rare jumps": (lambda r, n: 5.0 * SKEW(r, (2 * n)).reshape(n, 2), 50.0),
    "constant": (lambda r, n: np.zeros((n, 2)), 0.0),
}


def poisson_law(p, n):
    """Counts 0, 1, ... of these probabilities, beside the best Poisson law."""
    p = np.asarray(p, dtype=float) / np.sum(p)
    k = np.arange(len(p), dtype=float)
    least = -p @ stats.poisson.logpmf(k, p @ k)

    def once(rng):
        model = PoissonSMP().fit(rng.choice(k, size=(n, 1), p=p))
        return -p @ model.score_samples(k[:, None]) - least, model.excess_risk_bound_

    return repeat(once)


def multinomial_law(p, n):
    p = np.asarray(p, dtype=float) / np.sum(p)
    k = np.arange(len(p))
    entropy = -xlogy(p, p).sum()

    def once(rng):
        model = MultinomialSMP(categories=[k]).fit(rng.choice(k, size=(n, 1), p=p))
        return -p @ model.score_samples(k[:, None]) - entropy, model.excess_risk_bound_

    return repeat(once)


def both(values, names):
    """Return laws for two values of an option."""
    return {f"{law}, {name}": one for name, part in zip(names, values, strict=True)
            for law, one in part.items()}  # fmt: skip


TABLE = [
    Guarantee(
        "excess_risk_bound() of SMPLogisticRegression",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        {name: excess_law(law, 40, "excess_risk_bound")
         for name, law in LOGISTIC.items()}
        | {
            "C = 100, the far rows are flipped": excess_law(
                LOGISTIC["the far rows are flipped"], 40, "excess_risk_bound", C=100.0
            ),
            "one step, the model is right": excess_law(
                LOGISTIC["the model is right"], 40, "excess_risk_bound",
                method="one-step",
            ),
        },
    ),
    Guarantee(
        "theory_bound() of SMPLogisticRegression",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        both(
            [{name: excess_law(law, 30, "theory_bound", C=C)
              for name, law in SPHERE.items()} for C in ("theory", 3.0)],
            ["C of theory", "C = 3"],
        ),
    ),
    Guarantee(
        "excess_risk_bound() of RidgeSMP",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        both(
            [{name: ridge_law(law, 25, "excess_risk_bound", alpha)
              for name, law in NUMBERS.items()} for alpha in (0.0, 5.0)],
            ["alpha = 0", "alpha = 5"],
        ),
    ),
    Guarantee(
        "theory_bound() of RidgeSMP",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        {name: ridge_law(law, 25, "theory_bound") for name, law in CIRCLE.items()},
    ),
    Guarantee(
        "excess_risk_bound_ of GaussianSMP",
        "the mean excess of the log loss is at most this; \"minimax\": equal to it",
        "average", "mean", 0.0,
        both(
            [{name: gaussian_law(variant, *law) for name, law in VECTORS.items()}
             for variant in ("smp", "minimax")],
            ["smp", "minimax"],
        ),
        4.0,
    ),
    Guarantee(
        "excess_risk_bound_ of PoissonSMP",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        {
            "Poisson": poisson_law(stats.poisson.pmf(np.arange(30), 3.0), 8),
            "0 or 20": poisson_law(np.eye(21)[0] * 9 + np.eye(21)[20], 8),
            "heavy tails": poisson_law(1.0 / np.arange(1.0, 200.0) ** 2.5, 8),
            "nearly always 0": poisson_law([0.99, 0.01], 3),
        },
    ),
    Guarantee(
        "excess_risk_bound_ of MultinomialSMP",
        "the mean excess of the log loss is at most this",
        "average", "mean", 0.0,
        {
            "equal": multinomial_law(np.ones(4), 10),
            "more categories than rows": multinomial_law(np.ones(30), 10),
            "Zipf's law": multinomial_law(1.0 / np.arange(1, 13), 10),
            "constant": multinomial_law([1.0, 0.0, 0.0], 5),
        },
    ),
]  # fmt: skip
