"""What people do to certificates, and how often these are false then.

The lines say what certificates would promise if they were not misused. `fails` are
those that are documented to break it; the others were found to be harmless.
"""

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.preprocessing import StandardScaler

from guarantees.limits import DELTA, watch
from guarantees.populations import Centres, Memory
from guarantees.table import Guarantee, repeat
from skbounds.pac_bayes import PACBayesEnsembleClassifier, binomial_tail_bound
from skbounds.sequential import BestArmTest

# Labels are noise throughout: whatever is certified, its error is one half.
HALF = 0.5


def seed_of(rng):
    return int(rng.integers(2**31))


def votes(seed, *members, **options):
    options = {"prior": "uniform", "cert_size": 0.5, "delta": DELTA} | options
    return PACBayesEnsembleClassifier(list(members), random_state=seed, **options)


def copies(rng, times=2, n=60):
    """Each row so many times, before the split."""
    X, y = np.repeat(rng.normal(size=(n, 5)), times, axis=0), rng.integers(2, size=n)
    return votes(seed_of(rng), Memory()).fit(X, np.repeat(y, times)).vote_bound_ < HALF


def copies_in_groups(rng, n=60):
    X, y = np.repeat(rng.normal(size=(n, 5)), 2, axis=0), rng.integers(2, size=n)
    clf = votes(seed_of(rng), Memory())
    clf.fit(X, np.repeat(y, 2), groups=np.repeat(np.arange(n), 2))
    return clf.vote_bound_ < HALF


def selected(rng, n=100, n_noise=500):
    """Features chosen by their correlation with the labels, of all rows."""
    X, y = rng.normal(size=(n, n_noise)), rng.integers(2, size=n)
    X = SelectKBest(f_classif, k=10).fit_transform(X, y)
    members = [Centres(column) for column in range(10)]
    return votes(seed_of(rng), *members).fit(X, y).vote_bound_ < HALF


def encoded(rng, n=120, n_levels=60):
    """A category of many levels in numbers: the mean label of each, of all rows."""
    level, y = rng.integers(n_levels, size=n), rng.integers(2, size=n)
    means = np.bincount(level, y, n_levels) / np.maximum(np.bincount(
        level, minlength=n_levels), 1)  # fmt: skip
    clf = votes(seed_of(rng), Centres(0)).fit(means[level][:, None], y)
    return clf.vote_bound_ < HALF


def scaled(rng, n=80):
    """A scaler, fitted on all rows: it has not seen the labels."""
    X, y = rng.normal(size=(n, 3)) * [1.0, 10.0, 100.0], rng.integers(2, size=n)
    X = StandardScaler().fit_transform(X)
    return votes(seed_of(rng), Centres(0), Centres(1), Memory()).fit(
        X, y
    ).vote_bound_ < (HALF)


def best_of(n_seeds):
    """The least bound of several seeds."""

    def once(rng, n=80):
        X, y = rng.normal(size=(n, 3)), rng.integers(2, size=n)
        members = (Centres(0),)
        bounds = [
            votes(seed_of(rng), *members).fit(X, y).vote_bound_ for _ in range(n_seeds)
        ]
        return min(bounds) < HALF

    return repeat(once)


def best_setting(delta):
    """The least certificate of 20 settings, all on the same rows held out."""

    def once(rng, m=40):
        X, y = rng.normal(size=(2 * m, 20)), rng.integers(2, size=2 * m)
        if len(np.unique(y[:m])) < 2:
            return False
        errors = [
            np.sum(Centres(k).fit(X[:m], y[:m]).predict(X[m:]) != y[m:])
            for k in range(20)
        ]
        return binomial_tail_bound(min(errors), m, delta=delta) < HALF

    return repeat(once)


def patients(rng, n_patients=15, visits=6, grouped=False):
    """A patient's rows are alike, and have one label; new patients have theirs."""
    y = np.repeat(rng.integers(2, size=n_patients), visits)
    X = np.repeat(rng.normal(size=(n_patients, 5)), visits, axis=0)
    X += 0.05 * rng.normal(size=X.shape)
    if len(np.unique(y)) < 2:
        return False
    groups = np.repeat(np.arange(n_patients), visits) if grouped else None
    return votes(seed_of(rng), Memory()).fit(X, y, groups=groups).vote_bound_ < HALF


def patients_in_groups(rng):
    return patients(rng, n_patients=40, visits=2, grouped=True)


def series(rng, n=120):
    """Rows that walk, labels that stay: later rows are far from those at hand."""
    X = rng.normal(size=(n, 2)).cumsum(axis=0)
    y = (rng.integers(2) + (rng.random(n) < 0.05).cumsum()) % 2
    if len(np.unique(y)) < 2:
        return False
    return votes(seed_of(rng), Memory()).fit(X, y).vote_bound_ < HALF


def many_looks(rng, n=200, first=20):
    """Certificates of a fixed classifier after every fifth row, until one suits."""
    errors = (rng.random(n) < HALF).cumsum()
    looks = range(first, n + 1, 5)
    bounds = [binomial_tail_bound(errors[m - 1], m, delta=DELTA) for m in looks]
    return min(bounds) < HALF


def only_mistakes_known(rng, rate=0.1, bound=0.2, n=300):
    """Labels become known of wrong predictions, and of one right one in five."""
    errors = rng.random(n) < rate
    known = errors | (rng.random(n) < 1 / 5)
    return watch(errors[known], bound, DELTA)


def largest_evalue(rng):
    test, top = BestArmTest(2, sigma=1.0), 1.0
    for _ in range(150):
        test.observe([0, 1] * 10, rng.normal(size=20))
        top = max(top, test.evalues_[1])
    return top, 1.0


def tails_too_heavy(rng, n=600):
    test = BestArmTest(2, sigma=1.0).observe(np.arange(n) % 2, 3.0 * rng.normal(size=n))
    return bool(test.p_value_ <= DELTA)


def drift_with_shares(rng, n=600):
    """Rewards rise for all arms while the share of the control falls."""
    t = np.arange(n) / n
    arms = (rng.random(n) < 0.1 + 0.8 * t).astype(int)
    test = BestArmTest(2, sigma=1.0).observe(arms, rng.normal(2.0 * t))
    return bool(test.p_value_ <= DELTA)


def peeked_z_test(rng, n=1000):
    """A z-test of fixed size, looked at after every ten rewards."""
    x = (rng.normal(size=n) - rng.normal(size=n)).cumsum()[9::10]
    z = x / np.sqrt(2.0 * np.arange(10, n + 1, 10))
    return bool((z > 1.2816).any())


CERTIFICATES = [
    ("rows copied", {"each row twice": repeat(copies)}, True),
    (
        "supervised steps before the split",
        {
            "ten of 500 noise features selected": repeat(selected),
            "a category in mean labels": repeat(encoded),
        },
        True,
    ),
    (
        "the best kept",
        {
            "of 20 seeds": best_of(20),
            "of 20 settings": best_setting(DELTA),
            "of all times to stop": repeat(many_looks),
        },
        True,
    ),
    (
        "rows that are not independent",
        {"patients split as rows": repeat(patients), "a time series": repeat(series)},
        True,
    ),
    (
        "harmless, or done right",
        {
            "StandardScaler before the split": repeat(scaled),
            "copies, with groups=": repeat(copies_in_groups),
            "patients, with groups=": repeat(patients_in_groups),
            "the best of 20 settings, at delta / 20 each": best_setting(DELTA / 20),
        },
        False,
    ),
]

TABLE = [
    *[
        Guarantee(name, "certified below the truth", "misuse", "frequency", DELTA, laws,
                  fails=fails)
        for name, laws, fails in CERTIFICATES
    ],
    Guarantee(
        "monitor(), misused", "an alarm while errors are half of the bound",
        "misuse", "frequency", DELTA,
        {"labels known of mistakes first": repeat(only_mistakes_known)}, fails=True,
    ),
    Guarantee(
        "p_value_, misused", "an arm that is not better is adopted",
        "misuse", "frequency", DELTA,
        {
            "deviations three times sigma": repeat(tails_too_heavy),
            "drift with changing shares": repeat(drift_with_shares),
            "a z-test of fixed size, looked at 100 times": repeat(peeked_z_test),
        },
        fails=True,
    ),
    Guarantee(
        "evalues_, misused", "the mean of the largest over time is at most 1",
        "misuse", "mean", 1.0, {"the largest over time": repeat(largest_evalue)},
        times=4.0,
        fails=True,
    ),
]  # fmt: skip
