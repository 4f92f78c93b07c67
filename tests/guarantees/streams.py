"""What holds for every stream: online learning, windows of chains, low rank."""

import numpy as np
from scipy.optimize import minimize

from guarantees.table import Guarantee, Together, lines, repeat
from skbounds import (
    BaumWelchHMM,
    EarlyStoppedKernelBoost,
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
)
from skbounds.fenchel_young import _bounds

DELTA = 0.1
N, D, K = 40, 3, 4

# ------------------------------------------------------------------------------- regret

PROBLEMS = {
    "classes": (FenchelYoungOnlineClassifier, lambda s: s.argmax(axis=1)),
    "labels": (FenchelYoungOnlineMultilabelClassifier, lambda s: (s > 0).astype(int)),
    "levels": (
        FenchelYoungOnlineOrdinalClassifier,
        lambda s: np.digitize(s[:, 0], [-1.0, 0.0, 1.0]),
    ),
    "ranks": (
        FenchelYoungOnlineRanker,
        lambda s: s.argsort(axis=1).argsort(axis=1) + 1,
    ),
}


def scores_of(stream, rng, X):
    scores = X @ rng.normal(size=(D, K))
    if stream == "noise":
        return rng.normal(size=scores.shape)
    if stream == "drift":
        return np.where(np.arange(len(X))[:, None] < len(X) / 2, scores, -scores)
    return scores


def comparators(estimator, X, y):
    """Return predictors that are about the best in hindsight, and regrets.

    Few steps of a quasi-Newton method, and other norms: statements are about any.
    """
    loss, features = estimator._make_loss(), estimator._seen_features(X)
    codes = estimator._encode(y, None, False, False)
    shape = loss.n_outputs, features.shape[1]

    def objective(flat):
        U = flat.reshape(shape)
        values, residual = loss.respond(np.asarray(features @ U.T), codes)
        gradient = np.asarray(features.T @ residual).T + 0.3 * U
        return values.sum() + 0.15 * flat @ flat, gradient.ravel()

    best = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
                    options={"maxiter": 6}).x.reshape(shape)  # fmt: skip
    expected, scale = estimator.expected_cumulative_loss_, estimator.loss_scale_
    found = []
    for U in (best, 0.2 * best):
        values = loss.respond(np.asarray(features @ U.T), codes)[0]
        found.append((U, expected - scale * values.sum()))
    return found


def nearest(estimator, X, y):
    """Return a regret and its bound, those that are nearest, for both kinds."""
    pairs = {"bound": [], "certificate": []}
    for U, regret in comparators(estimator, X, y):
        norm = float(np.linalg.norm(U))
        bound = estimator.surrogate_regret_bound(norm)
        if not np.isnan(bound):
            pairs["bound"].append((regret, bound))
        limits = (estimator.surrogate_regret_certificate(norm),
                  estimator.surrogate_regret_certificate(coef=U))  # fmt: skip
        pairs["certificate"].append((regret, min(limits)))
    return {
        # Where the conditions of a bound fail it says nothing.
        kind: max(found, key=lambda pair: pair[0] - pair[1], default=(-1.0, 0.0))
        for kind, found in pairs.items()
    }


def regret_of(stream, problem="classes", **options):
    cls, targets = PROBLEMS[problem]

    def once(rng):
        X = rng.normal(size=(N, D))
        if stream == "heavy tails":
            X = np.clip(rng.standard_cauchy(size=(N, D)), -1e4, 1e4)
        elif stream == "sorted":
            X = X[X[:, 0].argsort()]
        y = targets(scores_of(stream, rng, X))
        estimator = cls(random_state=int(rng.integers(2**31)), **options)
        if problem in ("classes", "levels"):
            estimator.partial_fit(X, y, classes=np.arange(K))
        else:
            estimator.fit(X, y)
        return nearest(estimator, X, y)

    return once


def spiteful(**options):
    """Each row has the label that the learner thinks least of."""

    def once(rng):
        X = rng.normal(size=(20, D))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        estimator = FenchelYoungOnlineClassifier(
            random_state=0, feature_norm=2.0, feature_scaling="none", **options
        )
        y = np.zeros(20, int)
        estimator.partial_fit(X[:1], y[:1], classes=np.arange(3))
        for i in range(1, 20):
            y[i] = estimator.predict_proba(X[i : i + 1])[0].argmin()
            estimator.partial_fit(X[i : i + 1], y[i : i + 1])
        return nearest(estimator, X, y)

    return once


OGD = {"learner": "ogd", "feature_norm": 12.0, "feature_scaling": "none"}
ADAPTIVE = {"learner": "adaptive", "diameter": 40.0, "feature_norm": 12.0,
            "feature_scaling": "none"}  # fmt: skip
REGRET = {
    "a line": ("iid", {}),
    "noise": ("noise", {}),
    "drift": ("drift", {}),
    "sorted rows": ("sorted", {}),
    "heavy tails": ("heavy tails", {}),
    "drift, gradient descent": ("drift", OGD),
    "noise, gradient descent": ("noise", OGD),
    "drift, adaptive steps": ("drift", ADAPTIVE),
    "labels, noise": ("noise", {"problem": "labels"}),
    "levels, drift": ("drift", {"problem": "levels"}),
    "ranks, noise": ("noise", {"problem": "ranks"}),
}


REGRETS = {
    name: regret_of(stream, **options) for name, (stream, options) in REGRET.items()
} | {
    "the least probable label": spiteful(),
    "the same, gradient descent": spiteful(learner="ogd"),
}
REGRETS = {name: Together(f"regret, {name}", once) for name, once in REGRETS.items()}


# -------------------------------------------------------------------------------- draws


def drawn_learner_law(stream):
    """A learner's own draws, looked at six times."""

    def once(rng):
        X = rng.normal(size=(90, D))
        y = scores_of(stream, rng, X).argmax(axis=1)
        clf = FenchelYoungOnlineClassifier(random_state=int(rng.integers(2**31)))
        for i in range(0, 90, 15):
            clf.partial_fit(X[i : i + 15], y[i : i + 15], classes=np.arange(K))
            excess = clf.cumulative_loss_ - clf.expected_cumulative_loss_
            if excess > clf.draw_margin(DELTA):
                return True
        return False

    return repeat(once)


# What a play is expected to lose, given the sum of what was lost too much so far.
CHOICES = {
    "one half": lambda excess, t, rng: np.full(len(excess), 0.5),
    "rare losses": lambda excess, t, rng: np.full(len(excess), 0.02),
    "one half until ahead, then none": lambda excess, t, rng: np.where(
        excess < 6.0, 0.5, 0.0
    ),
    "doubles what was lost": lambda excess, t, rng: np.clip(
        0.05 + 0.05 * np.abs(excess), 0.0, 0.6
    ),
}
LOOKS = np.unique(np.geomspace(4, 400, 14).astype(int))


def played(choose, rng, n):
    """Return expected and realised losses, (n, 400), of whoever sees the losses."""
    e, lost = np.empty((n, 400)), np.empty((n, 400))
    excess = np.zeros(n)
    for t in range(400):
        e[:, t] = choose(excess, t, rng)
        lost[:, t] = rng.random(n) < e[:, t]
        excess += lost[:, t] - e[:, t]
    return e, lost


def margin_law(choose):
    def law(rng, n):
        e, lost = played(choose, rng, n)
        excess, variance = (lost - e).cumsum(1), (e * (1.0 - e)).cumsum(1)
        found = np.zeros(n, bool)
        for t in LOOKS:
            for i in np.flatnonzero(~found & (excess[:, t - 1] > 1.0)):
                margin = _bounds.draw_margin(variance[i, t - 1], DELTA)
                found[i] = excess[i, t - 1] > margin
        return found

    return law


def realised_law(stream, **options):
    """Realised losses above what the bound says of a comparator of this norm."""

    def once(rng):
        X = rng.choice([-1.0, 1.0], size=(N, D))
        y = (X[:, 0] > 0) ^ (rng.random(N) < (0.1 if stream == "a line" else 0.5))
        clf = FenchelYoungOnlineClassifier(
            random_state=int(rng.integers(2**31)), **options
        ).fit(X, y)
        U, regret = comparators(clf, X, y)[0]
        regret += clf.cumulative_loss_ - clf.expected_cumulative_loss_
        norm = float(np.linalg.norm(U))
        limits = (
            clf.surrogate_regret_certificate(norm, delta=DELTA),
            (clf.surrogate_regret_bound(norm, delta=DELTA)),
        )
        return bool(regret > min(limits))

    return repeat(once)


PAPER_STEP = {"learner": "ogd", "constants": "paper",
              "learning_rate": (1.0 - np.log(2.0)) / 8.0}  # fmt: skip

# ------------------------------------------------------------------------------- errors


def interval_law(choose):
    """Is the mean of the expectations outside at any of the looks?"""

    def law(rng, n):
        e, lost = played(choose, rng, n)
        totals, truths = lost.cumsum(1), e.cumsum(1)
        looks = LOOKS[1::5]
        found = np.zeros(n, bool)
        for i in range(n):
            for t in looks:
                low, high = _bounds.anytime_interval(totals[i, t - 1], t, DELTA)
                if not low <= truths[i, t - 1] / t <= high:
                    found[i] = True
                    break
        return found

    return law


def learner_interval_law(flip):
    """Errors of `predict` on labels that are a line's, flipped with a probability."""

    def once(rng):
        X = rng.normal(size=(30, D))
        clean = (X[:, 0] > 0).astype(int)
        y = clean ^ (rng.random(30) < flip)
        clf = FenchelYoungOnlineClassifier(feature_scaling="none", random_state=0)
        clf.partial_fit(X[:2], y[:2], classes=[0, 1])
        expected = clf.progressive_errors_
        for i in range(2, 30):
            right = clf.predict(X[i : i + 1])[0] == clean[i]
            expected += flip if right else 1.0 - flip
            clf.partial_fit(X[i : i + 1], y[i : i + 1])
            if i in (10, 29):
                low, high = clf.error_interval(1.0 - DELTA)
                if not low <= expected / (i + 1) <= high:
                    return True
        return False

    return repeat(once)


DRIFT = lambda excess, t, rng: np.full(len(excess), 0.5 + 0.45 * np.sin(t / 15.0))

# ------------------------------------------------------------------------------- chains


def posterior(B, law, A, i):
    """Law of state i, by sums and products."""
    ahead = law * B[0]
    for row in B[1 : i + 1]:
        ahead = (ahead @ A) * row
        ahead /= ahead.sum()
    after = np.ones(len(A))
    for row in B[:i:-1]:
        after = A @ (row * after)
        after /= after.sum()
    return ahead * after / (ahead @ after)


def window_law(mixing, spread, n_states=3, reach=(1, 2, 4)):
    """The largest change of a law by a window, and its bound."""
    X = np.random.default_rng(0).normal(size=(40, 1)) + np.arange(40)[:, None] % 3
    model = BaumWelchHMM(n_states, random_state=0).fit(X)

    def once(rng):
        A = rng.dirichlet(np.full(n_states, mixing), size=n_states)
        model.transmat_ = np.maximum(A, 1e-12)
        model.transmat_ /= model.transmat_.sum(axis=1, keepdims=True)
        A, k = model.transmat_, int(rng.choice(reach))
        B = np.exp(spread * rng.normal(size=(16, n_states)))
        start = rng.dirichlet(np.ones(n_states))
        i = int(rng.integers(16))
        low, high = max(i - k, 0), min(i + k + 1, 16)
        law = start if low == 0 else rng.dirichlet(np.full(n_states, 0.2))
        gap = posterior(B, start, A, i) - posterior(B[low:high], law, A, i - low)
        return np.abs(gap).sum(), model.truncation_bound(k) * (1.0 + 1e-9) + 1e-12

    return repeat(once)


def symmetric_window_law(spread):
    """The sharper bound of the symmetric model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + 1.5 * rng.choice([-1.0, 1.0], size=(60, 1))
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)

    def once(rng):
        stay = rng.uniform(0.02, 0.98)
        A = np.array([[stay, 1.0 - stay], [1.0 - stay, stay]])
        model.transmat_ = A
        k, i = int(rng.choice([1, 2, 4])), int(rng.integers(16))
        x = spread * rng.normal(size=(16, 1))
        B = np.exp(-0.5 * (x - model.means_.ravel()) ** 2)
        start, low, high = np.array([0.5, 0.5]), max(i - k, 0), min(i + k + 1, 16)
        gap = posterior(B, start, A, i) - posterior(B[low:high], start, A, i - low)
        return np.abs(gap).sum(), model.truncation_bound(k) * (1.0 + 1e-9) + 1e-12

    return repeat(once)


# ----------------------------------------------------------------------------- low rank


def rank_law(draw, kernel, n=30):
    """Degrees of freedom that a factor of few columns misses, of all eigenvalues."""

    def once(rng):
        X, T = draw(rng, n), int(10.0 ** rng.uniform(0.0, 4.0))
        y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
        Z = ((X[:, None] - X) ** 2).sum(-1) if kernel == "rbf" else X @ X.T
        G = np.exp(-0.6 * Z) if kernel == "rbf" else Z
        mu = np.maximum(np.linalg.eigvalsh(G / n), 0.0)
        step = 1.0 / mu.max()
        model = EarlyStoppedKernelBoost(
            kernel=kernel, gamma=0.6 if kernel == "rbf" else "scale", relevance=None,
            stopping=None, max_iter=T, solver="lowrank",
            max_rank=int(rng.integers(1, 15)), rank_tol=0.0, step_size=step,
            random_state=int(rng.integers(2**31)),
        ).fit(X, y)  # fmt: skip
        shrunk = np.minimum(step * mu, 1.0 - 1e-15)
        df = -np.expm1(T * np.log1p(-shrunk)).sum()
        return df - model.df_, model.missing_df_ + 1e-11 * T + 1e-9

    return repeat(once)


RANK = {
    "random rows": rank_law(lambda r, n: r.uniform(0.0, 3.0, (n, 2)), "rbf"),
    "rows far apart": rank_law(lambda r, n: 10.0 * r.normal(size=(n, 2)), "rbf"),
    "copies": rank_law(
        lambda r, n: r.normal(size=(4, 2))[r.integers(4, size=n)], "rbf"
    ),
    "heavy tails, linear": rank_law(
        lambda r, n: np.clip(r.standard_cauchy((n, 5)), -1e3, 1e3), "linear"
    ),
}

TABLE = [
    Guarantee(
        "surrogate_regret_bound()", "the regret of the plays is at most this",
        "streams", "never", 0.0, lines(REGRETS, "bound"),
    ),
    Guarantee(
        "surrogate_regret_certificate()", "the same, known afterwards",
        "streams", "never", 0.0, lines(REGRETS, "certificate"),
    ),
    Guarantee(
        "draw_margin()", "losses exceed their expectation by more, ever",
        "streams", "frequency", DELTA,
        {name: margin_law(choose) for name, choose in CHOICES.items()}
        | {
            "a learner's draws, noise": drawn_learner_law("noise"),
            "a learner's draws, drift": drawn_learner_law("drift"),
        },
    ),
    Guarantee(
        "surrogate_regret_bound(norm, delta)", "the same of the losses that were drawn",
        "streams", "frequency", DELTA,
        {
            "a line": realised_law("a line"),
            "noise": realised_law("noise"),
            "noise, the theorem's step": realised_law("noise", **PAPER_STEP),
        },
    ),
    Guarantee(
        "error_interval()", "the mean of the conditional errors is outside, ever",
        "streams", "frequency", DELTA,
        {name: interval_law(choose) for name, choose in CHOICES.items()}
        | {
            "waves": interval_law(DRIFT),
            "predict, noise": learner_interval_law(0.5),
            "predict, labels flipped": learner_interval_law(0.1),
        },
    ),
    Guarantee(
        "truncation_bound()", "windows change the law of a state by at most this",
        "streams", "never", 0.0,
        {
            "chains that mix": window_law(5.0, 1.0),
            "chains that hardly mix": window_law(0.3, 1.0),
            "rows that say all": window_law(2.0, 8.0),
            "five states": window_law(1.0, 2.0, 5),
            "symmetric": symmetric_window_law(1.5),
            "symmetric, rows far out": symmetric_window_law(6.0),
        },
    ),
    Guarantee(
        "missing_df_", "the low-rank path misses at most so many degrees of freedom",
        "streams", "never", 0.0, RANK,
    ),
]  # fmt: skip
