"""Certificates of groups of rows, and copies of training rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skbounds import PACBayesEnsembleClassifier, PACBayesSVMEnsemble
from skbounds.pac_bayes._layout import assign_group_folds

KINDS = ["svm", "list"]
pytestmark = pytest.mark.filterwarnings("ignore:Only .* certification:UserWarning")


def make(kind, **params):
    if kind == "svm":
        return PACBayesSVMEnsemble(random_state=0, Cs=6, **params)
    members = [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=2)]
    return PACBayesEnsembleClassifier(members, random_state=0, **params)


def clusters(n_groups=40, size=6, seed=0, spread=1.0):
    """Rows whose groups share an offset and have sizes of their own."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 2 * size, size=n_groups)
    groups = np.repeat(rng.permutation(n_groups) * 7, sizes)
    offset = spread * rng.normal(size=(n_groups, 3))
    X = np.repeat(offset, sizes, axis=0) + rng.normal(size=(len(groups), 3))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    return X, y, groups


@pytest.mark.parametrize("posterior", ["prior", "bound", "tandem"])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_groups_from_their_definitions(kind, posterior):
    """Groups' error rates are the sample; kl inverses of their means are the limits."""
    X, y, groups = clusters()
    clf = make(kind, posterior=posterior).fit(X, y, groups=groups)
    cert = clf.certification_indices_
    assert not set(groups[cert]) & set(groups[clf.train_indices_])
    names = np.unique(groups[cert])
    assert clf.n_certification_ == len(names)
    assert len(names) == round(clf.cert_size * len(np.unique(groups)))

    def mean_of_groups(flags):
        return np.mean([flags[groups[cert] == g].mean(axis=0) for g in names], axis=0)

    wrong = np.column_stack([m.predict(X[cert]) != y[cert] for m in clf.estimators_])
    risks = mean_of_groups(wrong)
    assert_allclose(clf.empirical_risks_, risks, rtol=1e-12)
    assert_allclose(clf.gibbs_risk_, clf.posterior_ @ risks, rtol=1e-12)
    m, delta = len(names), 0.05
    rate = float(mean_of_groups(clf.predict(X[cert]) != y[cert]))
    limit = ref.kl_inverse(rate, np.log(1.0 / delta) / m)
    if posterior == "prior":
        assert_allclose(clf.vote_bound_, limit, rtol=1e-9)
        assert_allclose(clf.bound_terms_["vote_groups_kl"], limit, rtol=1e-9)
    own = [
        ref.kl_inverse(r, np.log(1.0 / (delta * p)) / m)
        for r, p in zip(risks, clf.prior_, strict=True)
        if p > 0
    ]
    assert_allclose(clf.occam_bound_, min(own), rtol=1e-9)
    gibbs = ref.bound(
        clf.posterior_, risks, m, delta, "kl", "catoni", prior=clf.prior_,
        catoni_c=clf.catoni_c_,
    )  # fmt: skip
    assert_allclose(clf.risk_bound_, gibbs, rtol=1e-9)
    w = clf.vote_weights_
    joint = np.einsum("ih,ik->ihk", wrong.astype(float), wrong.astype(float))
    tandem = ref.tandem_bound(w, mean_of_groups(joint), m, delta, clf.prior_)
    assert_allclose(clf.bound_terms_["vote_tandem"], tandem, rtol=1e-9)
    if posterior == "tandem":
        assert clf.vote_bound_ <= 1.0
    # Nothing is unseen: the limit of no row in any group.
    assert_allclose(clf.unseen_class_bound_, 1.0 - delta ** (1.0 / m), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_order_of_groups_play_no_part(kind):
    X, y, groups = clusters()
    clf = make(kind).fit(X, y, groups=groups)
    order = np.random.default_rng(1).permutation(len(y))
    other = make(kind).fit(X[order], y[order], groups=np.char.add("g", np.array(
        [f"{g:04d}" for g in groups[order]])))  # fmt: skip
    assert clf.vote_bound_ == pytest.approx(other.vote_bound_, rel=1e-12)
    assert_array_equal(clf.predict(X), other.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_inner_folds_keep_groups_together(kind):
    """Copies in one group: an inner fold does not know the rows it is tested on."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    X, y = np.repeat(rows, 8, axis=0), np.repeat(labels, 8)
    groups = np.repeat(np.arange(60), 8)
    clf = make(kind).fit(X, y, groups=groups)
    rates = clf.cv_errors_ / len(clf.train_indices_)
    assert rates.min() > 0.25
    with pytest.warns(UserWarning, match="copies of training rows"):
        without = make(kind).fit(X, y)
    assert (without.cv_errors_ / len(without.train_indices_)).min() < rates.min()


@pytest.mark.parametrize("kind", KINDS)
def test_noise_that_is_copied_ten_times(kind):
    """Certified .006 without groups, where every second row is wrong."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(200, 4)), 10, axis=0)
    y = np.repeat(rng.integers(2, size=200), 10)
    make_one = (
        (lambda: PACBayesSVMEnsemble(random_state=0))
        if kind == "svm"
        else lambda: PACBayesEnsembleClassifier(
            [DecisionTreeClassifier(random_state=0)], random_state=0
        )
    )
    with pytest.warns(UserWarning, match="100% of the certification rows are copies"):
        wrong = make_one().fit(X, y)
    assert wrong.vote_bound_ < 0.05
    right = make_one().fit(X, y, groups=np.repeat(np.arange(200), 10))
    assert right.vote_bound_ > 0.45


@pytest.mark.parametrize("kind", KINDS)
def test_no_warning_without_copies(kind):
    """Nor where few values repeat by chance, or labels differ."""
    rng = np.random.default_rng(0)
    tables = {
        "none": rng.normal(size=(150, 3)),
        "few values": rng.integers(3, size=(150, 2)).astype(float),
    }
    for X in tables.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(kind).fit(X, rng.integers(2, size=150))


@pytest.mark.parametrize("kind", KINDS)
def test_what_groups_do_not_go_with(kind):
    X, y, groups = clusters()
    clf = make(kind)
    for params, data in (
        ({"tail": "randomized"}, {}),
        ({}, {"X_cert": X[:20], "y_cert": y[:20]}),
    ):
        with pytest.raises(ValueError, match="groups go with scheme='holdout'"):
            make(kind, **params).fit(X, y, groups=groups, **data)
    if kind == "svm":
        with pytest.raises(ValueError, match="groups go with scheme='holdout'"):
            make(kind, scheme="progressive").fit(X, y, groups=groups)
    bad = groups.astype(object)
    bad[3] = None
    for wrong, message in (
        (groups[:-1], "inconsistent numbers"),
        (bad, "groups must be values of one kind"),
        (np.zeros(len(y)), "too few"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.fit(X, y, groups=wrong)
    clf.fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="needs independent rows"):
        clf.class_bounds()
    with pytest.raises(ValueError, match="counts independent rows"):
        clf.monitor()


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_groups_and_costs(kind):
    """`certificate` with groups; costs are bounded by Hoeffding and Bentkus."""
    X, y, groups = clusters()
    clf = make(kind).fit(X, y, groups=groups)
    X_new, y_new, g = clusters(seed=5)
    found = clf.certificate(X_new, y_new, groups=g)
    wrong = clf.predict(X_new) != y_new
    rate = np.mean([wrong[g == name].mean() for name in np.unique(g)])
    m = len(np.unique(g))
    assert found["n"] == m
    assert_allclose(found["estimate"], rate)
    assert_allclose(found["bound"], ref.kl_inverse(rate, np.log(20.0) / m), rtol=1e-9)
    lower = 1.0 - ref.kl_inverse(1.0 - rate, np.log(20.0) / m)
    assert_allclose(found["lower"], lower, rtol=1e-9)
    # A cost of 1 for every mistake is the risk; twice the costs are twice the bound.
    once = clf.cost_bound([[0.0, 1.0], [1.0, 0.0]])
    assert once <= clf.vote_bound_ * (1.0 + 1e-9)
    assert_allclose(clf.cost_bound([[0.0, 2.0], [2.0, 0.0]]), 2.0 * once)


def test_frozen_members_are_certified_by_all_groups():
    X, y, groups = clusters()
    member = FrozenEstimator(LogisticRegression().fit(*clusters(seed=9)[:2]))
    clf = PACBayesEnsembleClassifier([member]).fit(X, y, groups=groups)
    wrong = member.predict(X) != y
    names = np.unique(groups)
    rate = np.mean([wrong[groups == g].mean() for g in names])
    expected = ref.kl_inverse(rate, np.log(20.0) / len(names))
    assert_allclose(clf.vote_bound_, expected, rtol=1e-9)


def test_coverage_over_groups():
    """The mean over groups of a group's error rate is below the bound, at the rate.

    Groups of one to thirty rows that are right or wrong together: rows by themselves
    would be certified far too low. 2000 certificates of a fixed vote, delta = .2.
    """
    rng = np.random.default_rng(0)
    member = DummyClassifier(strategy="constant", constant=0).fit([[0.0]] * 2, [0, 1])
    member = FrozenEstimator(member)
    true, failures, plain_failures = 0.3, 0, 0
    n_runs, delta = 2000, 0.2
    for _ in range(n_runs):
        sizes = rng.integers(1, 31, size=30)
        # A group's rate is Beta(.3, .7): mean .3, mostly 0 or 1.
        rates = rng.beta(0.3, 0.7, size=30)
        groups = np.repeat(np.arange(30), sizes)
        y = (rng.random(len(groups)) < rates[groups]).astype(int)
        X = np.zeros((len(y), 1))
        clf = PACBayesEnsembleClassifier([member], delta=delta)
        failures += clf.fit(X, y, groups=groups).vote_bound_ < true
        plain_failures += clf.fit(X, y).vote_bound_ < true
    error = np.sqrt(delta * (1 - delta) / n_runs)
    assert failures / n_runs <= delta + 3 * error
    assert plain_failures / n_runs > delta + 3 * error


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_group_folds_are_whole_and_even(n_folds):
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(12), rng.randint(1, 9, 12))
    rng.shuffle(groups)
    # Training rows leave numbers of groups out.
    groups = 2 * groups + 1
    folds = assign_group_folds(groups, n_folds, np.random.RandomState(1))
    for group in np.unique(groups):
        assert len(np.unique(folds[groups == group])) == 1
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.min() > 0
    # No group is put where there are more rows than elsewhere.
    assert np.ptp(sizes) <= np.bincount(groups).max()
    others = assign_group_folds(groups, n_folds, np.random.RandomState(2))
    assert (folds[:, None] == folds).tolist() != (others[:, None] == others).tolist()
