"""Classes that the training part may lack, and schemes that split more than once."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from reference import votes
from scipy.spatial.distance import pdist
from scipy.stats import binom
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from pac_bayes.test_votes import check_agreement
from pac_bayes.toy import blobs, noisy_rings, twonorm
from skbounds.pac_bayes import PACBayesEnsembleClassifier, PACBayesSVMEnsemble

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*certification rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*vacuous:UserWarning"),
    pytest.mark.filterwarnings("ignore:No training row has:UserWarning"),
    pytest.mark.filterwarnings("ignore:The prior is uniform:UserWarning"),
    pytest.mark.filterwarnings("ignore:A member failed on an inner fold:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*max_iter_per_C ended:UserWarning"),
]

PER_MEMBER = {"scheme": "per_member", "prior": "uniform", "distance": "kl"}
SCHEMES = {
    "holdout": {},
    "linear": {"kernel": "linear", "class_weight": "balanced", "standardize": True},
    "tandem": {"posterior": "tandem"},
    "bound": {"posterior": "bound", "prior": "uniform"},
    "randomized": {"tail": "randomized"},
    "progressive": {"scheme": "progressive", "n_blocks": 3},
    "one order": {"scheme": "progressive", "n_orders": 1, "prior": "uniform"},
    "per member": PER_MEMBER,
    "refit": {"refit": True},
}


def make_clf(kind, seed):
    """Return an SVM ensemble by scheme, or an ensemble of a list."""
    if kind in SCHEMES:
        return PACBayesSVMEnsemble(Cs=4, random_state=seed, **SCHEMES[kind])
    members = [GaussianNB(), DecisionTreeClassifier(max_depth=3)]
    if kind == "logistic":
        members.append(LogisticRegression())
    return PACBayesEnsembleClassifier(members, inner_cv=3, random_state=seed)


def with_rare_class(seed, n=40, n_rare=2):
    """Two classes, and a few rows of a third."""
    X, y = twonorm(np.random.default_rng(seed), n)
    y[:n_rare] = 2
    X[:n_rare] += 3.0
    order = np.random.default_rng(seed).permutation(n)
    return X[order], y[order]


# ------------------------------------------------------------------- never an error


def split_often(kind, seeds):
    """Fit to 40 rows, one or two of a third class, by many splits; all outputs."""
    lacking = 0
    for seed in seeds:
        X, y = with_rare_class(seed, n_rare=1 + seed % 2)
        y = np.array(["a", "b", "c"])[y]
        clf = make_clf(kind, seed).fit(X, y)
        assert_array_equal(clf.classes_, ["a", "b", "c"])
        lacking += len(clf.trained_classes_) < 3
        if seed % 10 == 0:
            check_agreement(clf, X)
            assert np.isfinite(log_loss(y, clf.predict_proba(X)))
        if kind != "refit":
            assert set(clf.predict(X)) <= set(clf.trained_classes_)
            assert 0.0 < clf.unseen_class_bound_ <= 1.0
            # A randomised limit may be 0 where there are no errors.
            assert clf.vote_bound_ > 0.0 or kind == "randomized"
    if kind not in ("per member", "refit", "progressive"):
        assert lacking > 0 or len(seeds) < 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SCHEMES, "list", "logistic"])
@pytest.mark.filterwarnings("ignore:refit=True:UserWarning")
def test_rare_classes_never_raise(kind):
    """200 splits of the defaults, some of every other scheme."""
    split_often(kind, range(200 if kind in ("holdout", "list") else 20))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SCHEMES, "logistic"])
@pytest.mark.filterwarnings("ignore:refit=True:UserWarning")
def test_rare_classes_never_raise_in_many_splits(kind):
    """200 more of every scheme."""
    split_often(kind, range(1000, 1200))


@pytest.mark.parametrize("make", ["svm", "list"])
def test_one_class_in_the_training_part(make):
    """A constant member: all other labels are errors."""
    X, _ = twonorm(np.random.default_rng(0), 50)
    order = np.random.RandomState(0).permutation(50)
    n_cert = 15 if make == "svm" else 12
    for name, other in ((0, 1), (1, 0)):
        labels = np.full(50, name)
        labels[order[:4]] = other
        if make == "svm":
            clf = PACBayesSVMEnsemble(random_state=0)
        else:
            clf = PACBayesEnsembleClassifier([GaussianNB(), SVC()], random_state=0)
        with pytest.warns(UserWarning, match=rf"class\(es\) \[{other}\]"):
            clf.fit(X, labels)
        assert_array_equal(clf.classes_, [0, 1])
        assert_array_equal(clf.trained_classes_, [name])
        assert (clf.predict(X) == name).all() and len(clf.estimators_) == 1
        expected = votes.exact_tail(4, n_cert, 0.05)
        assert_allclose([clf.vote_bound_, clf.unseen_class_bound_], expected)
        check_agreement(clf, X)
        n_train = 50 - n_cert
        share = 1.0 / (n_train + 2)
        proba = clf.predict_proba(X)
        assert_allclose(proba[:, other], share / 2)
        assert_allclose(clf.prior_, [1.0])
        found = clf.class_bounds()
        assert found["recall_error"][other] == 1.0
        assert_allclose(found["precision_error"][name], expected)


@pytest.mark.parametrize("scheme", ["progressive", "per_member"])
def test_one_class_in_every_training_part(scheme):
    """Other schemes know no more than they saw."""
    X, y = twonorm(np.random.default_rng(1), 40)
    y[:] = 0
    y[np.random.RandomState(0).permutation(40)[-1]] = 1
    params = {"scheme": "progressive", "n_orders": 1}
    if scheme == "per_member":
        params = {**PER_MEMBER, "cert_size": 0.9}
        y[:] = 0
        y[7] = 1
    clf = PACBayesSVMEnsemble(Cs=3, random_state=0, **params).fit(X, y)
    check_agreement(clf, X)
    assert 0.0 < clf.risk_bound_ < 1.0
    if scheme == "progressive":
        assert (clf.predict(X) == 0).all()
        assert_allclose(clf.empirical_risks_, [0, 0, 0, 0.2])


# ------------------------------------------------------------------- what is said


@pytest.mark.parametrize("kind", ["holdout", "list"])
def test_missing_classes_are_named_once(kind):
    """One warning; the bounds count the rows, the probabilities leave a little."""
    X, y = with_rare_class(2, n=80, n_rare=3)
    cert_X, cert_y = X[50:], y[50:].copy()
    X, y = X[:50], y[:50].copy()
    cert_y[:4] = 9
    order = np.random.RandomState(5).permutation(50)
    y[y == 2] = 0
    clf = make_clf(kind, 5)
    n_cert = round(clf.cert_size * 50)
    y[order[:2]] = 7
    y[order[2]] = 5
    with pytest.warns(UserWarning) as record:
        clf.fit(X, y)
    messages = [str(w.message) for w in record if "class(es)" in str(w.message)]
    assert len(messages) == 1 and "[5, 7]" in messages[0]
    assert_array_equal(clf.classes_, [0, 1, 5, 7])
    assert_array_equal(clf.trained_classes_, [0, 1])
    expected = votes.exact_tail(3, n_cert, 0.05)
    assert_allclose(clf.unseen_class_bound_, expected)
    cert = clf.certification_indices_
    errors = int(np.sum(clf.predict(X[cert]) != y[cert]))
    assert errors >= 3
    assert_allclose(clf.vote_bound_, votes.exact_tail(errors, n_cert, 0.05))
    # Every row is mixed with a little of the uniform law.
    share = 1.0 / (50 - n_cert + 4)
    proba = clf.predict_proba(cert_X)
    assert_allclose(proba[:, 2:], share / 4)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert (clf.vote_shares(X)[:, 2:] == 0.0).all()


def clone_fit(clf, X, y, X_cert, y_cert):
    """Return the same estimator on given parts."""
    return type(clf)(**clf.get_params(deep=False)).fit(
        X, y, X_cert=X_cert, y_cert=y_cert
    )


@pytest.mark.parametrize("kind", ["holdout", "list"])
def test_nothing_is_said_where_nothing_lacks(kind):
    """All classes in the training part: no warning, and the limit of no rows."""
    X, y = blobs(np.random.default_rng(3), 150, n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = make_clf(kind, 0).fit(X, y)
    assert_array_equal(clf.trained_classes_, clf.classes_)
    m = clf.n_certification_
    assert_allclose(clf.unseen_class_bound_, votes.exact_tail(0, m, 0.05))
    both = type(clf)(**{**clf.get_params(deep=False), "simultaneous": True}).fit(X, y)
    assert_allclose(both.unseen_class_bound_, votes.exact_tail(0, m, 0.025))


@pytest.mark.parametrize("kind", ["holdout", "list"])
@pytest.mark.parametrize("names", [None, np.array(["u", "v", "w"])])
def test_labels_of_certification_rows_that_are_no_class_are_errors(kind, names):
    """Of the vote, of each member, and against the limit of unseen classes."""
    X, y = blobs(np.random.default_rng(4), 160, n_classes=3)
    if names is not None:
        y = names[y]
    known, unknown = (y[:100], "xx") if names is not None else (y[:100], 11)
    y_cert = y[100:].astype(object if names is not None else int)
    y_cert[:13] = unknown
    y_cert = np.array(y_cert.tolist())
    clf = make_clf(kind, 0).fit(X[:100], known, X_cert=X[100:], y_cert=y_cert)
    assert_array_equal(clf.classes_, np.unique(known))
    errors = int(np.sum(clf.predict(X[100:]) != y_cert))
    assert errors >= 13
    assert_allclose(clf.vote_bound_, votes.exact_tail(errors, 60, 0.05))
    assert_allclose(clf.unseen_class_bound_, votes.exact_tail(13, 60, 0.05))
    risks = [np.mean(m.predict(X[100:]) != y_cert) for m in clf.estimators_]
    assert_allclose(clf.empirical_risks_, risks)
    expected = votes.class_bounds(clf.predict(X[100:]), y_cert, clf.classes_, 0.05)
    found = clf.class_bounds()
    for name, limits in expected.items():
        assert_allclose(found[name], limits)
    with pytest.raises(ValueError, match=r"y_cert has none of the labels of y"):
        clone_fit(clf, X[:100], known, X[100:], np.full(60, unknown))
    with pytest.raises(ValueError, match=r"y_cert has none of the labels of y"):
        clone_fit(clf, X[:100], known, X[100:], np.full(60, 3.5))


@pytest.mark.filterwarnings("ignore:refit=True:UserWarning")
def test_refit_learns_the_classes_that_were_missing():
    """Trained on all rows, all classes are there; nothing is certified."""
    X, y = with_rare_class(0, n=60, n_rare=1)
    lacking = 0
    for seed in range(20):
        plain = PACBayesSVMEnsemble(Cs=4, random_state=seed).fit(X, y)
        lacking += len(plain.trained_classes_) == 2
        clf = PACBayesSVMEnsemble(Cs=4, random_state=seed, refit=True).fit(X, y)
        assert_array_equal(clf.trained_classes_, [0, 1, 2])
        check_agreement(clf, X)
        assert np.isnan(clf.vote_bound_)
    assert lacking > 0


def test_inner_folds_do_not_need_rows_of_every_class():
    """Fewer rows of a class than folds: its rows held out are errors, no more."""
    X, y = with_rare_class(6, n=60, n_rare=2)
    X_cert, y_cert = with_rare_class(7, n=40, n_rare=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = PACBayesSVMEnsemble(random_state=0, Cs=6)
        clf.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    assert np.isfinite(clf.cv_errors_).all() and clf.cv_errors_.min() > 0
    listed = PACBayesEnsembleClassifier([GaussianNB(), SVC()], random_state=0)
    listed.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    assert np.isfinite(listed.cv_errors_).all()
    # One row of a class: without its fold, nobody knows it.
    single = y.copy()
    single[np.flatnonzero(y == 2)[1]] = 0
    clf.set_params(prior_eta=1e-3).fit(X, single, X_cert=X_cert, y_cert=y_cert)
    assert clf.cv_errors_.min() >= 1


@pytest.mark.parametrize("kind", ["svm", "list"])
def test_folds_that_leave_one_class_make_the_prior_uniform(kind):
    """One row of the smaller of two classes: some fold takes it away."""
    X = np.random.default_rng(8).normal(size=(31, 2))
    y = np.array([0] * 30 + [1])
    clf = PACBayesSVMEnsemble(Cs=4, random_state=0)
    if kind == "list":
        members = [GaussianNB(), KNeighborsClassifier(3)]
        clf = PACBayesEnsembleClassifier(members, random_state=0)
    with pytest.warns(UserWarning, match=r"The prior is uniform"):
        clf.fit(X, y, X_cert=X, y_cert=y)
    assert_allclose(clf.prior_, 1 / len(clf.prior_))
    assert np.isnan(clf.cv_errors_).all()
    shares = votes.smoothed_shares(clf.vote_shares(X), 20)
    assert_allclose(clf.predict_proba(X), shares, atol=1e-9)


# ------------------------------------------------------------------- progressive


def svm_errors(C, seen, rows, X, y, gamma):
    """Return which rows an SVC trained on others gets wrong."""
    svc = SVC(C=C, gamma=gamma, tol=1e-6).fit(X[seen], y[seen])
    return svc.predict(X[rows]) != y[rows]


def test_progressive_scheme_with_classes_that_come_later():
    """By hand: rows of classes that the first part lacks train nobody, and err."""
    X, y = with_rare_class(9, n=120, n_rare=0)
    order = np.random.RandomState(4).permutation(120)
    late, names = order[[65, 80, 81, 100, 119]], np.array(["a", "b", "c"])
    y = y.copy()
    y[late] = 2
    y = names[y]
    Cs = [0.5, 5.0]
    clf = PACBayesSVMEnsemble(
        Cs, scheme="progressive", n_orders=1, prior="uniform", gamma=0.2, tol=1e-6,
        max_iter_per_C=None, random_state=4,
    ).fit(X, y)  # fmt: skip
    assert_array_equal(clf.classes_, ["a", "b", "c"])
    assert_array_equal(clf.trained_classes_, ["a", "b"])
    assert_allclose(clf.unseen_class_bound_, votes.exact_tail(5, 60, 0.05))
    risks = []
    for b in range(4):
        before, block = order[: 60 + 15 * b], order[60 + 15 * b : 75 + 15 * b]
        before = before[y[before] != "c"]
        risks += [svm_errors(C, before, block, X, y, 0.2).mean() for C in Cs]
    assert_allclose(clf.empirical_risks_, risks, atol=1e-9)
    assert_allclose(clf.prior_, 1 / 8)
    losses, kls = [], []
    for b in range(4):
        block = slice(2 * b, 2 * b + 2)
        p, q = clf.prior_[block] * 4, clf.posterior_[block] * 4
        tilted = p * np.exp(-clf.catoni_c_[b] * 15 * np.array(risks[block]))
        assert_allclose(q, tilted / tilted.sum(), atol=1e-9)
        losses.append(q @ risks[block])
        kls.append(ref.kl_term(q, p))
    expected = ref.progressive_bound(np.full(4, 0.25), clf.catoni_c_, losses, kls,
                                     0.05, 60)  # fmt: skip
    assert_allclose(clf.risk_bound_, expected, rtol=1e-6)
    check_agreement(clf, X)


def test_progressive_orders_may_know_different_classes():
    """Each order has the classes of its own first part; the vote has all."""
    X, y = with_rare_class(10, n=100, n_rare=0)
    order = np.random.RandomState(1).permutation(100)
    y[order[[2, 5, 11, 60]]] = 2
    y[order[[70, 90, 95]]] = 3
    X[y > 1] *= 3.0
    clf = PACBayesSVMEnsemble(
        3, scheme="progressive", prior="uniform", random_state=1
    ).fit(X, y)
    assert_array_equal(clf.classes_, [0, 1, 2, 3])
    assert_array_equal(clf.trained_classes_, [0, 1, 2, 3])
    assert_array_equal(clf.estimators_[0].classes_, [0, 1, 2])
    assert_array_equal(clf.estimators_[-1].classes_, [0, 1, 2, 3])
    known = [set(member.predict(X)) for member in clf.estimators_]
    assert all(3 not in names for names in known[:12])
    # The first order knows neither label of the second part alone.
    assert_allclose(clf.unseen_class_bound_, votes.exact_tail(3, 50, 0.05))
    shares = np.zeros((100, 4))
    for weight, member in zip(clf.vote_weights_, clf.estimators_, strict=True):
        shares += weight * (member.predict(X)[:, None] == clf.classes_)
    assert_allclose(clf.vote_shares(X), shares, atol=1e-9)
    check_agreement(clf, X)
    # Each block's risks are those of its members on its rows.
    blocks = np.split(np.arange(24), 8)
    for j, direction in enumerate((order, order[::-1])):
        for b in range(4):
            rows = direction[50:][np.flatnonzero(
                np.repeat(np.arange(4), [13, 13, 12, 12]) == b)]  # fmt: skip
            for i in blocks[4 * j + b]:
                wrong = clf.estimators_[i].predict(X[rows]) != y[rows]
                assert_allclose(clf.empirical_risks_[i], wrong.mean())


# ------------------------------------------------------------------- per member


@pytest.mark.parametrize("make", [noisy_rings, blobs])
@pytest.mark.parametrize("posterior", ["bound", "prior"])
@pytest.mark.parametrize(
    ("divergence", "distance"), [("chi2", "kl"), ("chi2", "linear"), ("kl", "squared")]
)
def test_per_member_scheme_is_the_procedure_of_the_paper(
    make, posterior, divergence, distance
):
    """Each value of C with a random half of its own, SVC, risks, weights, bound."""
    X, y = make(np.random.default_rng(11), 130)
    Cs = np.array([0.1, 1.0, 10.0])
    clf = PACBayesSVMEnsemble(
        Cs, scheme="per_member", prior="uniform", posterior=posterior, cert_size=0.5,
        divergence=divergence, distance=distance, gamma=0.15, tol=1e-7,
        max_iter_per_C=None, random_state=2,
    ).fit(X, y)  # fmt: skip
    rng = np.random.RandomState(2)
    fresh, _ = make(np.random.default_rng(12), 80)
    risks, predicted, certify = [], [], set()
    for C in Cs:
        order = rng.permutation(130)
        cert, train = order[:65], order[65:]
        svc = SVC(C=C, gamma=0.15, tol=1e-7).fit(X[train], y[train])
        risks.append(np.mean(svc.predict(X[cert]) != y[cert]))
        predicted.append(svc.predict(fresh))
        certify |= set(cert.tolist())
    assert_allclose(clf.empirical_risks_, risks, atol=1e-9)
    assert clf.n_certification_ == 65
    assert_array_equal(clf.certification_indices_, sorted(certify))
    for member, labels in zip(clf.estimators_, predicted, strict=True):
        assert np.mean(member.predict(fresh) == labels) > 0.98
    arguments = (np.array(risks), 65, 0.05, divergence, distance)
    q, value = ref.best_posterior(*arguments, n_starts=2)
    assert_allclose(clf.risk_bound_, min(value, 1.0), atol=2e-6)
    assert_allclose(clf.posterior_, q, atol=2e-3)
    assert_allclose(clf.prior_, 1 / 3)
    weights = clf.posterior_ if posterior == "bound" else clf.prior_
    assert_array_equal(clf.vote_weights_, weights)
    twice = 2.0 * ref.bound(weights, *arguments)
    assert_allclose(clf.vote_bound_, min(twice, 1.0), rtol=1e-6)
    counts = np.round(np.array(risks) * 65).astype(int)
    assert_allclose(clf.occam_bound_, ref.occam_bound(counts, 65, 0.05), rtol=1e-7)
    assert_allclose(clf.bound_terms_["occam"], clf.occam_bound_, rtol=1e-12)
    assert clf.certified_object_ == "gibbs" and clf.certified_
    assert "vote_tandem" not in clf.bound_terms_
    for call in (clf.class_bounds, lambda: clf.cost_bound(1 - np.eye(2))):
        with pytest.raises(ValueError, match=r"needs a vote whose weights did not"):
            call()
    half = clf.risk_bound(0.025)
    assert half >= clf.risk_bound_


def test_per_member_takes_other_priors():
    """An array with a zero: no weight, no share of delta."""
    X, y = noisy_rings(np.random.default_rng(13), 160)
    prior = np.array([0.5, 0.0, 0.5])
    options = {"scheme": "per_member", "distance": "kl", "random_state": 0}
    clf = PACBayesSVMEnsemble([0.1, 1.0, 10.0], prior=prior, posterior="bound",
                              **options).fit(X, y)  # fmt: skip
    assert_array_equal(clf.prior_, prior)
    assert clf.posterior_[1] == 0.0 and len(clf.estimators_) == 3
    value = ref.bound(clf.posterior_, clf.empirical_risks_, 48, 0.05, "kl", "kl",
                      prior=prior)  # fmt: skip
    assert_allclose(clf.risk_bound_, value, rtol=1e-7)
    with pytest.raises(ValueError, match=r"no kernel matrix"):
        PACBayesSVMEnsemble(kernel="precomputed", prior="uniform", **options).fit(
            X @ X.T, y
        )
    with pytest.raises(ValueError, match=r"X_cert goes with scheme='holdout'"):
        PACBayesSVMEnsemble(prior="uniform", **options).fit(X, y, X_cert=X, y_cert=y)


# ------------------------------------------------------------------- sigest


@pytest.mark.parametrize("standardize", [False, True])
def test_sigest_is_that_of_the_paper(standardize):
    """The mean of the reciprocals of two quantiles, of the training part's rows."""
    X, y = noisy_rings(np.random.default_rng(14), 150)
    X = X * np.array([1.0, 5.0, 0.2, 1.0, 1.0])
    options = {"Cs": 4, "standardize": standardize, "random_state": 0}
    clf = PACBayesSVMEnsemble(gamma="sigest", **options).fit(X, y)
    rows = X[clf.train_indices_]
    if standardize:
        rows = StandardScaler().fit_transform(rows)
    gamma = np.mean(1.0 / np.quantile(pdist(rows) ** 2, [0.1, 0.9]))
    by_hand = PACBayesSVMEnsemble(gamma=gamma, **options).fit(X, y)
    assert_allclose(clf.average_decision(X), by_hand.average_decision(X), atol=1e-6)
    assert clf.vote_bound_ == by_hand.vote_bound_
    other = PACBayesSVMEnsemble(gamma=2.0 * gamma, **options).fit(X, y)
    assert not np.allclose(clf.average_decision(X), other.average_decision(X))


def test_sigest_of_equal_rows():
    """No distance but 0: some width all the same."""
    X, y = np.zeros((60, 2)), np.arange(60) % 2
    clf = PACBayesSVMEnsemble(gamma="sigest", Cs=2, random_state=0).fit(X, y)
    assert np.isfinite(clf.average_decision(X)).all()
    copies = np.repeat(np.random.default_rng(15).normal(size=(4, 2)), 30, axis=0)
    clf = PACBayesSVMEnsemble(gamma="sigest", Cs=2, random_state=0)
    assert np.isfinite(clf.fit(copies, np.arange(120) % 2).average_decision(X)).all()


# ------------------------------------------------------------------- guarantees


def population(rng, n):
    """Two overlapping classes, and a third of 3 %."""
    X, y = twonorm(rng, n)
    third = rng.uniform(size=n) < 0.03
    X[third] += 2.0
    return X, np.where(third, 2, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["holdout", "list", "randomized", "tandem", "progressive", "per member"]
)
@pytest.mark.filterwarnings("ignore:y has:UserWarning")
def test_certificates_hold_with_a_rare_class(kind):
    """Vote, Gibbs, classes, unseen classes: each fails in delta of the samples."""
    repeats, delta = 500, 0.1
    rng = np.random.default_rng(16)
    X_test, y_test = population(rng, 4000)
    failures = dict.fromkeys(("vote", "gibbs", "unseen", "recall", "cost"), 0)
    costs = np.array([[0, 1, 1], [3, 0, 1], [10, 10, 0]])
    for seed in range(repeats):
        X, y = population(rng, 40)
        clf = make_clf(kind, seed).set_params(delta=delta).fit(X, y)
        voted = clf.predict(X_test)
        failures["vote"] += np.mean(voted != y_test) > clf.vote_bound_
        failures["gibbs"] += clf.gibbs_error(X_test, y_test) > clf.risk_bound_
        strange = ~np.isin(y_test, clf.trained_classes_)
        if kind != "progressive":
            failures["unseen"] += strange.mean() > clf.unseen_class_bound_
        if kind in ("holdout", "list", "randomized"):
            limits = clf.class_bounds()["recall_error"]
            failures["recall"] += np.mean(voted[y_test == 0] != 0) > limits[0]
            k = len(clf.classes_)
            # Rows of a class that is not there cost the maximum.
            paid = np.where(
                np.isin(y_test, clf.classes_),
                costs[np.minimum(y_test, k - 1), voted], costs[:k, :k].max(),
            )  # fmt: skip
            failures["cost"] += paid.mean() > clf.cost_bound(costs[:k, :k])
    allowed = delta * repeats + 2.0 * np.sqrt(repeats * delta * (1 - delta))
    assert max(failures.values()) <= allowed, failures
    if kind == "randomized":
        least = binom.ppf(1e-4, repeats, delta)
        assert failures["vote"] >= least, failures


def test_frozen_members_know_no_missing_classes():
    """All rows certify; classes that no member predicts are errors."""
    X, y = blobs(np.random.default_rng(17), 200, n_classes=3)
    old = GaussianNB().fit(X[:100][y[:100] < 2], y[:100][y[:100] < 2])
    clf = PACBayesEnsembleClassifier([FrozenEstimator(old)], random_state=0)
    clf.fit(X[100:], y[100:])
    assert_array_equal(clf.classes_, [0, 1])
    assert_array_equal(clf.trained_classes_, [0, 1])
    expected = votes.exact_tail(np.sum(y[100:] == 2), 100, 0.05)
    assert_allclose(clf.unseen_class_bound_, expected)
