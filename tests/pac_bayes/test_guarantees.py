"""The certificates are true: they fail at most as often as they may."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
    make_moons,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from pac_bayes.toy import noisy_rings, twonorm
from skbounds.pac_bayes import (
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    binomial_tail_bound,
    optimal_posterior,
)

REPEATS = 500
# No more failures than a true rate of delta shows with probability 1 - 1e-4.
ALLOWED = int(binom.ppf(1.0 - 1e-4, REPEATS, 0.05))

pytestmark = [
    pytest.mark.slow,
    # Small certification parts are the point here.
    pytest.mark.filterwarnings("ignore:.*certification rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*vacuous:UserWarning"),
]


def member_risks(clf, X, y):
    """Return the risks of the members, all from one kernel matrix."""
    codes = clf._member_codes(X, np.arange(len(clf.estimators_)))
    return np.mean(clf.classes_[codes] != y[:, None], axis=0)


def true_risks(clf, X, y):
    """Return the risks of vote, Gibbs classifier and best-looking member."""
    risks = member_risks(clf, X, y)
    limits = [
        binomial_tail_bound(round(r * clf.n_certification_), clf.n_certification_,
                            delta=clf.delta * p) if p > 0.0 else 1.0
        for r, p in zip(clf.empirical_risks_, clf.prior_, strict=True)
    ]  # fmt: skip
    vote = np.mean(clf.predict(X) != y)
    return vote, float(clf.posterior_ @ risks), risks[int(np.argmin(limits))]


def count_failures(make, make_clf, n=120):
    """Return failures of the vote's, the Gibbs and the best member's bound."""
    rng = np.random.default_rng(0)
    X_test, y_test = make(rng, 2000)
    failures, means = np.zeros(4, dtype=int), []
    for repeat in range(REPEATS):
        X, y = make(rng, n)
        clf = make_clf(repeat).fit(X, y)
        risks = true_risks(clf, X_test, y_test)
        bounds = (clf.vote_bound_, clf.risk_bound_, clf.occam_bound_)
        failed = np.array(risks) > bounds
        failures[:3] += failed
        failures[3] += failed.any()
        means.append((*risks, *bounds))
    assert np.mean(means, axis=0)[3:].max() < 1.0
    return failures


@pytest.mark.parametrize("make", [twonorm, noisy_rings])
@pytest.mark.parametrize(
    "params",
    [
        {"cert_size": 0.5},
        {"prior": "uniform", "posterior": "bound", "cert_size": 0.5,
         "divergence": "chi2", "distance": "kl"},
        {"prior": "uniform", "posterior": "bound", "cert_size": 0.5,
         "divergence": "chi2", "distance": "squared"},
        {"prior": "uniform", "posterior": "bound", "cert_size": 0.5, "distance": "kl"},
    ],
)  # fmt: skip
def test_holdout_certificates_hold(make, params):
    """Each of the three bounds fails in at most delta of the resamples."""
    failures = count_failures(
        make, lambda i: PACBayesSVMEnsemble(Cs=8, random_state=i, **params)
    )
    assert (failures[:3] <= ALLOWED).all(), failures
    if params == {"cert_size": 0.5} and make is noisy_rings:
        # The exact tail is not just valid: with noise it uses what it may.
        assert failures[0] > 0


@pytest.mark.parametrize("make", [twonorm, noisy_rings])
def test_simultaneous_certificates_hold_together(make):
    """All three at once fail in at most delta of the resamples."""
    failures = count_failures(
        make,
        lambda i: PACBayesSVMEnsemble(
            Cs=8, cert_size=0.5, simultaneous=True, random_state=i
        ),
    )
    assert failures[3] <= ALLOWED, failures


@pytest.mark.parametrize("make", [twonorm, noisy_rings])
@pytest.mark.parametrize("n_orders", [1, 2])
def test_progressive_certificates_hold(make, n_orders):
    """The mixture's bound and twice it on the vote over all members."""
    rng = np.random.default_rng(1)
    X_test, y_test = make(rng, 2000)
    failures = np.zeros(2, dtype=int)
    for repeat in range(REPEATS):
        X, y = make(rng, 120)
        clf = PACBayesSVMEnsemble(
            Cs=6, scheme="progressive", n_orders=n_orders, random_state=repeat
        ).fit(X, y)
        gibbs = clf.posterior_ @ member_risks(clf, X_test, y_test)
        vote = np.mean(clf.predict(X_test) != y_test)
        failures += (gibbs > clf.risk_bound_, vote > clf.vote_bound_)
    assert (failures <= ALLOWED).all(), failures


@pytest.mark.parametrize("frozen", [False, True])
def test_certificates_of_other_classifiers_hold(frozen):
    """Members trained inside, and members trained before."""
    X_old, y_old = noisy_rings(np.random.default_rng(2), 100)
    members = [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=4)]
    if frozen:
        members = [FrozenEstimator(member.fit(X_old, y_old)) for member in members]
    failures = count_failures(
        noisy_rings,
        lambda i: PACBayesEnsembleClassifier(members, inner_cv=3, random_state=i),
        n=100,
    )
    assert (failures[:3] <= ALLOWED).all(), failures


def test_certificates_from_training_rows_would_be_false():
    """The same bound computed on the rows that trained fails nearly always."""
    rng = np.random.default_rng(3)
    X_test, y_test = noisy_rings(rng, 2000)
    failures = 0
    for repeat in range(100):
        X, y = noisy_rings(rng, 120)
        clf = PACBayesSVMEnsemble(
            Cs=[10.0, 100.0], prior="uniform", random_state=repeat
        )
        clf.fit(X, y)
        train = clf.train_indices_
        errors = int(np.sum(clf.predict(X[train]) != y[train]))
        false = binomial_tail_bound(errors, len(train), delta=0.05)
        failures += np.mean(clf.predict(X_test) != y_test) > false
    assert failures > 80


def test_bounds_of_independent_counts_hold():
    """Optimal posteriors on binomial risks: the bound covers the posterior's risk."""
    rng = np.random.default_rng(4)
    risks = np.linspace(0.05, 0.4, 10)
    counts = rng.binomial(100, risks, size=(2000, 10)) / 100
    allowed = binom.ppf(1.0 - 1e-4, 2000, 0.05)
    for divergence, distance in (
        ("chi2", "linear"), ("chi2", "squared"), ("chi2", "kl"), ("kl", "linear"),
        ("kl", "squared"), ("kl", "kl"), ("kl", "lambda"),
    ):  # fmt: skip
        posterior, bound = optimal_posterior(
            counts, 100, delta=0.05, divergence=divergence, distance=distance
        )
        assert np.sum(posterior @ risks > bound) <= allowed
        assert np.mean(bound) < 1.0


@pytest.mark.parametrize("make", [twonorm, noisy_rings])
@pytest.mark.parametrize(("divergence", "distance"), [("chi2", "kl"), ("kl", "kl")])
def test_per_member_certificates_hold(make, divergence, distance):
    """Gibbs, vote and the best member, where every member has a split of its own."""
    failures = count_failures(
        make,
        lambda i: PACBayesSVMEnsemble(
            Cs=6, scheme="per_member", prior="uniform", posterior="bound",
            cert_size=0.5, divergence=divergence, distance=distance, random_state=i,
        ),
    )  # fmt: skip
    assert (failures[:3] <= ALLOWED).all(), failures


# ------------------------------------------------------------------- accuracy


def sets(seed):
    """Yield problems: some hundred rows to learn from, others to measure."""
    rng = np.random.default_rng(seed)
    yield noisy_rings(rng, 4500)
    yield noisy_rings(rng, 4500, d=8, noise=0.1)
    yield twonorm(rng, 4500, d=10)
    yield make_moons(4500, noise=0.4, random_state=seed)
    for n_classes, n_informative in ((2, 8), (3, 6)):
        yield make_classification(
            4500, 12, n_informative=n_informative, n_redundant=2, flip_y=0.1,
            n_classes=n_classes, n_clusters_per_class=2, random_state=seed,
        )  # fmt: skip
    X, y = load_breast_cancer(return_X_y=True)
    order = rng.permutation(len(y))
    yield X[order], y[order]
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    yield X[order], y[order] % 2


def mean_errors(members, seeds, kinds):
    """Return the mean error of votes with several priors, and their mean bound."""
    errors, bounds = [], []
    for seed in seeds:
        for X, y in sets(seed):
            n = 500 if len(y) > 1000 else 400
            fits = [
                PACBayesEnsembleClassifier(members, random_state=seed, **kind).fit(
                    X[:n], y[:n]
                )
                for kind in kinds
            ]
            errors.append([np.mean(clf.predict(X[n:]) != y[n:]) for clf in fits])
            bounds.append([clf.vote_bound_ for clf in fits])
    return np.mean(errors, axis=0), np.mean(bounds, axis=0)


KINDS = [{}, {"prior": "uniform"}, {"prior": "cv", "prior_eta": 1.0}]


@pytest.mark.parametrize(
    "tree",
    [
        DecisionTreeClassifier(max_features="sqrt"),
        DecisionTreeClassifier(max_features=0.5, splitter="random"),
    ],
    ids=str,
)
def test_stacked_weights_keep_trees(tree):
    """30 trees are best with equal weights: stacked ones are about as good."""
    errors, bounds = mean_errors([tree] * 30, range(6), KINDS)
    assert abs(errors[0] - errors[1]) <= 0.008
    assert errors[0] <= errors[2] - 0.03
    assert bounds[0] <= bounds[2] - 0.03


def test_stacked_weights_drop_bad_learners():
    """Twelve learners that differ: not worse than steep weights."""
    members = [
        LogisticRegression(C=0.01), LogisticRegression(), GaussianNB(),
        LinearDiscriminantAnalysis(), SVC(), SVC(C=0.1), SVC(kernel="linear"),
        KNeighborsClassifier(1), KNeighborsClassifier(15), DecisionTreeClassifier(),
        DecisionTreeClassifier(max_depth=3), DummyClassifier(),
    ]  # fmt: skip
    errors, bounds = mean_errors(members, range(2), KINDS)
    assert errors[0] <= errors[2] + 0.003
    assert errors[0] <= errors[1] - 0.003
    assert bounds[0] <= bounds[1]
