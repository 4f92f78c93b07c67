"""Weights of votes, and what ranks rows without contradicting the vote."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import votes as ref
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from pac_bayes.toy import Echo, blobs, noisy_rings, twonorm
from skbounds.pac_bayes import PACBayesEnsembleClassifier, PACBayesSVMEnsemble
from skbounds.pac_bayes._calibration import (
    fit_calibration,
    fit_platt,
    fit_temperature,
    ranked_shares,
    side_decision,
    side_probability,
    smoothed_shares,
)
from skbounds.pac_bayes._layout import assign_folds
from skbounds.pac_bayes._stacking import STACKING_ETAS, stacked_prior
from skbounds.pac_bayes._svm_path import cross_validate_path
from skbounds.pac_bayes._svm_schemes import make_trainer

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*certification rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*vacuous:UserWarning"),
    pytest.mark.filterwarnings("ignore:No training row has:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*max_iter_per_C:UserWarning"),
]

# ------------------------------------------------------------------- stacked weights


def check_stacked(votes, truth, failed):
    """The weights, the rate and the errors of all rates are the reference's."""
    prior, eta, errors = stacked_prior(votes, truth, 4, ~failed)
    expected = ref.stacked_weights(votes, truth, failed=failed)
    assert eta == expected[0]
    assert_allclose(prior, expected[1], rtol=1e-12)
    assert_array_equal(errors, expected[2])


@given(
    st.integers(1, 6), st.integers(1, 40), st.integers(2, 4), st.integers(0, 10**6),
    st.sampled_from([0.2, 0.6, 1.0]),
)  # fmt: skip
def test_stacked_weights_are_those_of_the_definition(H, n, K, seed, noise):
    """Random votes with ties, copies, failures in a fold and altogether."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    votes = np.where(
        rng.uniform(size=(n, H)) < noise, rng.integers(K, size=(n, H)), truth[:, None]
    )
    votes[:, rng.integers(H)] = votes[:, 0]
    votes[rng.uniform(size=(n, H)) < rng.choice([0.0, 0.3])] = -1
    failed = rng.uniform(size=H) < 0.25
    failed[rng.integers(H)] = False
    check_stacked(votes, truth, failed)


def test_rates_are_those_of_the_definition():
    """Ten of them, increasing."""
    assert STACKING_ETAS == ref.ETAS


def test_ties_between_rates_go_to_the_smallest():
    """Copies of one member err alike at every rate."""
    truth = np.arange(30) % 2
    votes = np.column_stack([truth ^ (np.arange(30) < 5)] * 3)
    prior, eta, errors = stacked_prior(votes, truth, 2, np.ones(3, dtype=bool))
    assert eta == 0.0 and (errors == 5).all()
    assert_allclose(prior, 1 / 3)


def test_stacked_weights_of_an_ensemble():
    """The votes held out again, with members fitted on the same folds by hand."""
    X, y = blobs(np.random.default_rng(0), 260, n_classes=3, spread=0.7)
    learners = (
        GaussianNB(),
        DecisionTreeClassifier(max_depth=2),
        KNeighborsClassifier(1),
    )
    members = [FrozenEstimator(m.fit(X[:80], y[:80])) for m in learners]
    X, y, X_cert, y_cert = X[80:200], y[80:200], X[200:], y[200:]
    clf = PACBayesEnsembleClassifier(members, random_state=0)
    clf.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    votes = np.column_stack([m.predict(X) for m in members])
    eta, weights, errors = ref.stacked_weights(votes, y)
    assert clf.eta_ == eta
    assert_array_equal(clf.eta_errors_, errors)
    assert clf.eta_errors_.shape == (10,)
    assert_array_equal(clf.member_indices_, np.flatnonzero(weights))
    assert_allclose(clf.prior_, weights[weights > 0])
    wrong = int(np.sum(clf.predict(X_cert) != y_cert))
    assert_allclose(clf.vote_bound_, ref.exact_tail(wrong, 60, 0.05), rtol=1e-9)
    # The same prior by a fixed rate, if that is the rate.
    fixed = PACBayesEnsembleClassifier(members, prior="cv", prior_eta=eta)
    fixed.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    assert fixed.eta_ == eta and np.isnan(fixed.eta_errors_).all()
    assert_allclose(fixed.prior_, clf.prior_)
    plain = PACBayesEnsembleClassifier(members, prior="uniform").fit(X, y)
    assert np.isnan(plain.eta_) and np.isnan(plain.eta_errors_).all()


# ------------------------------------------------------------------- paths of C


class Told:
    """A machine for one fold that makes the errors it is told, C after C."""

    problems = ()

    def __init__(self, errors, n):
        self.errors, self.n = iter(errors), n

    def advance(self, C, tol, max_iter):
        self.wrong = next(self.errors)
        return 1, False

    def decide(self):
        return np.where(np.arange(self.n) < self.wrong, 1.0, -1.0)[:, None]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=15), st.booleans())
def test_path_ends_where_the_definition_says(errors, early_end):
    """After three C in a row with seven errors too many, not at the first minimum."""
    halves = [e // 2 for e in errors], [e - e // 2 for e in errors]
    folds = [Told(half, 20) for half in halves]
    found, scores = cross_validate_path(
        folds, [np.zeros(20, dtype=int)] * 2, np.arange(1.0, len(errors) + 1),
        np.array([0, 1]), tol=1.0, max_iter=1.0, early_end=early_end, n_jobs=None,
        verbose=0,
    )  # fmt: skip
    last = ref.path_end(errors) if early_end else len(errors) - 1
    assert_array_equal(found[: last + 1], errors[: last + 1])
    assert np.isposinf(found[last + 1 :]).all()
    assert len(scores) == last + 1


@pytest.mark.parametrize("eta", [0.0, 0.05, 0.2, 0.8])
@pytest.mark.parametrize("make", [twonorm, noisy_rings, blobs])
def test_support_of_a_path_is_that_of_the_definition(make, eta):
    """All errors from a uniform prior on the same folds; cut by errors, not weight."""
    X, y = make(np.random.default_rng(1), 240)
    options = {"Cs": 12, "random_state": 3, "gamma": 0.3}
    whole = PACBayesSVMEnsemble(prior="uniform", **options).fit(X, y)
    clf = PACBayesSVMEnsemble(prior_eta=eta, **options).fit(X, y)
    errors = whole.cv_errors_.copy()
    errors[ref.path_end(errors) + 1 :] = np.nan
    expected = ref.path_support(errors, eta)
    kept = np.flatnonzero(expected)
    assert_array_equal(clf.Cs_, whole.Cs_[kept])
    assert_allclose(clf.prior_, expected[kept])
    assert_array_equal(clf.cv_errors_, errors[kept])
    # More than seven errors above the least never vote, seven do.
    assert np.ptp(clf.cv_errors_) <= 7.0
    assert np.nanmax(whole.cv_errors_) > np.nanmin(errors) + 7.0
    late = PACBayesSVMEnsemble(prior_eta=eta, early_end=False, **options).fit(X, y)
    assert_array_equal(late.Cs_, whole.Cs_[ref.path_support(whole.cv_errors_, eta) > 0])


def test_steep_rates_drop_members_of_negligible_weight():
    """At rate 2 four errors are 1 part in 3000."""
    X, y = noisy_rings(np.random.default_rng(2), 240)
    clf = PACBayesSVMEnsemble(prior_eta=2.0, random_state=0).fit(X, y)
    assert np.ptp(clf.cv_errors_) <= np.log(1e3) / 2.0


# ------------------------------------------------------------------- on the vote's side


@given(st.lists(st.tuples(st.floats(-1e4, 1e4), st.booleans()), min_size=1))
def test_decisions_on_the_side_of_the_vote(rows):
    """Positive exactly where the vote says 1; kept where they were right."""
    f, one = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = side_decision(f, one)
    assert_array_equal(found > 0.0, one)
    assert_allclose(found, ref.constrained_decision(f, one, 0.0), atol=1e-6)
    right = np.abs(f) > 1e-5
    right &= one == (f > 0.0)
    assert_array_equal(found[right], f[right])
    # The order on either side is never reversed.
    for side in (one, ~one):
        order = np.argsort(f[side], kind="stable")
        assert (np.diff(found[side][order]) >= 0.0).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_probabilities_on_the_side_of_the_vote(rows):
    """Above one half exactly where the vote says 1; kept where they were right."""
    p, one = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = side_probability(p, one)
    assert_array_equal(found > 0.5, one)
    assert_array_equal(np.column_stack([1 - found, found]).argmax(axis=1), one)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert_allclose(found, ref.constrained_proba(p, one)[:, 1], atol=2e-6)
    for side in (one, ~one):
        order = np.argsort(p[side], kind="stable")
        assert (np.diff(found[side][order]) >= 0.0).all()


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_scores_of_several_classes_follow_the_vote(K, seed):
    """Shares first; decisions where they are equal; the voted class on top."""
    rng = np.random.default_rng(seed)
    shares = np.round(rng.dirichlet(np.ones(K), size=20) * 4) / 4
    decision = rng.normal(size=(20, K)) * rng.choice([1.0, 100.0])
    voted = shares.argmax(axis=1)
    scores = ranked_shares(shares, decision, voted)
    assert_array_equal(scores.argmax(axis=1), voted)
    rows = np.arange(20)
    expected = shares + 1e-3 * np.exp(
        decision - np.logaddexp.reduce(decision, axis=1, keepdims=True)
    )
    own = scores[rows, voted].copy()
    assert (own >= expected[rows, voted] - 1e-12).all()
    scores[rows, voted] = expected[rows, voted]
    assert_allclose(scores, expected, atol=1e-12)


@given(st.integers(0, 100), st.integers(2, 5), st.integers(0, 10**6))
def test_smoothed_shares_are_those_of_the_definition(m, K, seed):
    """One more row for each class, of at most 20."""
    shares = np.random.default_rng(seed).dirichlet(np.ones(K), size=5)
    expected = ref.smoothed_shares(shares, min(m, 20), K)
    assert_allclose(smoothed_shares(shares, m), expected)
    assert_allclose(expected.sum(axis=1), 1.0)


# ------------------------------------------------------------------- agreement


def check_agreement(clf, X):
    """All outputs name the same class, on every row."""
    voted, proba, decision = clf.predict(X), clf.predict_proba(X), None
    assert np.isfinite(proba).all() and (proba >= 0.0).all()
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)
    assert proba.shape == (len(X), len(clf.classes_))
    assert_array_equal(clf.classes_[proba.argmax(axis=1)], voted)
    decision = clf.decision_function(X)
    assert np.isfinite(decision).all()
    if len(clf.classes_) == 2:
        assert_array_equal(clf.classes_[(decision > 0.0).astype(int)], voted)
    else:
        assert decision.shape == proba.shape
        assert_array_equal(clf.classes_[decision.argmax(axis=1)], voted)
        rows, codes = np.arange(len(X)), np.searchsorted(clf.classes_, voted)
        others = decision.copy()
        others[rows, codes] = -np.inf
        assert (decision[rows, codes] > others.max(axis=1)).all()
    shares = clf.vote_shares(X)
    assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
    assert_array_equal(clf.classes_[shares.argmax(axis=1)], voted)


def rare(rng, n):
    """Three classes, of one of which there are three rows."""
    X, y = twonorm(rng, n)
    y[:3] = 2
    X[:3] += 3.0
    return X, y


def noise(rng, n):
    """Labels that have nothing to do with the rows."""
    return rng.normal(size=(n, 3)), rng.integers(2, size=n)


def texts(rng, n):
    """Names for labels, in no order."""
    X, y = blobs(rng, n, n_classes=3, spread=0.8)
    return X, np.array(["pear", "apple", "fig"])[y]


def ten(rng, n):
    """Ten classes of handwritten digits."""
    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(y))[:n]
    return X[rows] / 16.0, y[rows]


DATA = [twonorm, noisy_rings, noise, texts, rare, ten]
SVMS = [
    {},
    {"kernel": "linear", "standardize": True},
    {"prior": "uniform"},
    {"posterior": "bound"},
    {"posterior": "tandem"},
    {"scheme": "progressive"},
    {"scheme": "per_member", "prior": "uniform", "distance": "kl"},
    {"refit": True},
]


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("params", SVMS, ids=str)
@pytest.mark.filterwarnings("ignore:refit=True:UserWarning")
@pytest.mark.filterwarnings("ignore:The prior is uniform:UserWarning")
def test_all_outputs_of_svms_agree(make, params):
    """On rows seen, fresh, and far away."""
    X, y = make(np.random.default_rng(3), 160)
    clf = PACBayesSVMEnsemble(Cs=6, random_state=0, **params).fit(X, y)
    fresh, _ = make(np.random.default_rng(4), 100)
    for rows in (X, fresh, 30.0 * fresh, 0.0 * fresh):
        check_agreement(clf, rows)


LISTS = {
    "trees": [DecisionTreeClassifier(max_depth=3, splitter="random")] * 7,
    "decisions": [LinearSVC(), RidgeClassifier(), SVC()],
    "mixed": [GaussianNB(), SVC(kernel="linear"), KNeighborsClassifier(3)],
    "one": [LinearDiscriminantAnalysis()],
}


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("members", LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize("posterior", ["prior", "tandem"])
@pytest.mark.filterwarnings("ignore:.*failed on an inner fold:UserWarning")
@pytest.mark.filterwarnings("ignore:A member could not be:UserWarning")
@pytest.mark.filterwarnings("ignore:.*least populated class:UserWarning")
def test_all_outputs_of_lists_agree(make, members, posterior):
    """On rows seen, fresh, and far away."""
    X, y = make(np.random.default_rng(5), 160)
    clf = PACBayesEnsembleClassifier(
        members, inner_cv=3, posterior=posterior, random_state=0
    ).fit(X, y)
    fresh, _ = make(np.random.default_rng(6), 100)
    for rows in (X, fresh, 30.0 * fresh, 0.0 * fresh):
        check_agreement(clf, rows)


@pytest.mark.parametrize("scale", [1e1, 1e2, 1e3, 1e5])
def test_outputs_of_two_classes_agree_very_far_away(scale):
    """However far the average decision is on the wrong side of the vote."""
    X, y = blobs(np.random.default_rng(7), 300, n_classes=2, spread=0.7)
    clf = PACBayesSVMEnsemble(kernel="poly", Cs=8, random_state=0).fit(X, y)
    check_agreement(clf, scale * np.random.default_rng(9).normal(size=(2000, 3)))


@pytest.mark.parametrize("scale", [1e1, 1e2, 1e3, 1e5])
def test_outputs_of_several_classes_agree_very_far_away(scale):
    """Where the decisions of all classes are very negative, as log likelihoods are."""
    members = [QuadraticDiscriminantAnalysis(), LinearSVC()]
    X, y = blobs(np.random.default_rng(8), 300, n_classes=3, spread=0.7)
    clf = PACBayesEnsembleClassifier(members, prior="cv", random_state=0).fit(X, y)
    check_agreement(clf, scale * np.random.default_rng(9).normal(size=(2000, 3)))


# ------------------------------------------------------------------- Platt


@given(
    st.integers(4, 120), st.floats(0.1, 3.0), st.floats(-2, 2), st.integers(0, 10**6)
)
def test_platt_is_that_of_the_definition(n, slope, offset, seed):
    """Slope and offset of the convex problem, in any scale."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    y = rng.uniform(size=n) < expit(slope * f + offset)
    scale, centre = 10.0 ** rng.integers(-6, 7), rng.normal() * 3.0
    a, b = ref.platt_fit(f, y)
    found = fit_platt(scale * (f + centre), y)
    if a <= 1e-9:
        # A ranking the wrong way round is not used.
        share = np.mean(ref.platt_targets(y))
        assert found[0] == pytest.approx(0.0, abs=1e-9 / scale)
        if a < -1e-9:
            assert_allclose(found[1], logit(share))
        return
    assert_allclose(found[0] * scale, a, rtol=1e-6, atol=1e-8)
    assert_allclose(found[1] + found[0] * scale * centre, b, rtol=1e-6, atol=1e-7)


def test_platt_of_decisions_that_say_nothing():
    """Constant decisions, one class only: the base rate."""
    y = np.arange(30) < 9
    slope, offset = fit_platt(np.full(30, 3.0), y)
    assert slope == 0.0
    assert_allclose(offset, ref.platt_fit(np.full(30, 3.0), y)[1])
    for labels in (np.zeros(30, dtype=bool), np.ones(30, dtype=bool)):
        f = np.random.default_rng(0).normal(size=30)
        slope, offset = fit_platt(f, labels)
        share = np.mean(ref.platt_targets(labels))
        assert_allclose(expit(slope * f + offset), share, atol=1e-6)
    assert fit_calibration(np.zeros((9, 1)), np.arange(9) % 2) is None
    assert fit_calibration(np.zeros((10, 1)), np.arange(10) % 2) is not None


def test_platt_is_scikit_learns():
    """The sigmoid of CalibratedClassifierCV, on the same rows."""
    rng = np.random.default_rng(10)
    f = rng.normal(size=400)
    y = (rng.uniform(size=400) < expit(1.7 * f - 0.4)).astype(int)
    X = np.column_stack([(f > 0.0).astype(float), f])
    member = FrozenEstimator(Echo((0, 1), 0, 1).fit())
    theirs = CalibratedClassifierCV(member, method="sigmoid", ensemble=False, cv=2)
    theirs.fit(X, y)
    a, b = fit_platt(f, y == 1)
    assert_allclose(theirs.predict_proba(X)[:, 1], expit(a * f + b), atol=1e-4)
    # And as the probabilities of an ensemble of this one member.
    clf = PACBayesEnsembleClassifier([member], random_state=0)
    clf.fit(X, y, X_cert=X, y_cert=y)
    expected = ref.constrained_proba(theirs.predict_proba(X)[:, 1], f > 0.0)
    assert_allclose(clf.predict_proba(X), expected, atol=1e-4)


def test_probabilities_of_a_list_are_those_of_the_definition():
    """Decisions over their mean size, logits of probabilities, Platt, vote's side."""
    X, y = noisy_rings(np.random.default_rng(11), 400)
    old, held, cert, fresh = (slice(i, i + 100) for i in (0, 100, 200, 300))
    members = [
        SVC(C=0.5).fit(X[old], y[old]),
        GaussianNB().fit(X[old], y[old]),
        KNeighborsClassifier(3).fit(X[old], y[old]),
    ]
    prior = np.array([0.3, 0.5, 0.2])
    frozen = [FrozenEstimator(m) for m in members]
    errors = [np.sum(m.predict(X[held]) != y[held]) for m in members]
    clf = PACBayesEnsembleClassifier(frozen, prior="cv", prior_eta=0.01)
    clf.fit(X[held], y[held], X_cert=X[cert], y_cert=y[cert])
    prior = np.exp(-0.01 * np.array(errors))
    prior /= prior.sum()
    assert_allclose(clf.prior_, prior)

    def decisions(rows):
        columns = [members[0].decision_function(X[rows])]
        for member in members[1:]:
            p = member.predict_proba(X[rows])[:, 1]
            columns.append(logit(np.clip(p, 1e-3, 1 - 1e-3)))
        return np.column_stack(columns)

    scale = np.abs(decisions(held)).mean(axis=0)
    average = decisions(held) @ (prior / scale)
    a, b = ref.platt_fit(average, y[held])
    f = decisions(fresh) @ (prior / scale)
    shares = np.column_stack([m.predict(X[fresh]) == 1 for m in members]) @ prior
    one = shares > 0.5
    expected = ref.constrained_proba(expit(a * f + b), one)
    assert_allclose(clf.predict_proba(X[fresh]), expected, atol=3e-6)
    assert np.any(one != (f > 0.0))
    expected = ref.constrained_decision(f, one, 0.0)
    assert_allclose(clf.decision_function(X[fresh]), expected, atol=2e-6)


def test_probabilities_of_svms_are_those_of_the_definition():
    """Decisions of SVC on the same folds, Platt, the vote's side."""
    X, y = noisy_rings(np.random.default_rng(12), 220)
    options = {"gamma": 0.1, "tol": 1e-7, "max_iter_per_C": None}
    clf = PACBayesSVMEnsemble(Cs=[0.5, 2.0, 8.0], random_state=0, **options).fit(X, y)
    assert len(clf.Cs_) > 1
    train = clf.train_indices_
    rng = np.random.RandomState(0)
    rng.permutation(len(y))
    trainer = make_trainer(clf, X, y, train, np.array([0, 1]))
    folds = assign_folds(y[train], trainer.keys, trainer.class_order, 5, rng)
    average = np.zeros(len(train))
    for C, weight in zip(clf.Cs_, clf.prior_, strict=True):
        for k in range(5):
            seen, held = train[folds != k], train[folds == k]
            svc = SVC(C=C, gamma=0.1, tol=1e-7).fit(X[seen], y[seen])
            average[folds == k] += weight * svc.decision_function(X[held])
    a, b = ref.platt_fit(average, y[train])
    fresh, _ = noisy_rings(np.random.default_rng(13), 100)
    f = np.zeros(100)
    for C, weight in zip(clf.Cs_, clf.prior_, strict=True):
        svc = SVC(C=C, gamma=0.1, tol=1e-7).fit(X[train], y[train])
        f += weight * svc.decision_function(fresh)
    expected = ref.constrained_proba(expit(a * f + b), clf.predict(fresh) == 1)
    assert_allclose(clf.predict_proba(fresh), expected, atol=1e-3)


def best_temperature(decision, truth):
    """Return the slope of softmax(slope f) that is likeliest on smoothed targets.

    Platt's (n + 1)/(n + 2) for the own class, of n rows; the others share the rest.
    """
    n_classes = decision.shape[1]
    target = np.empty(decision.shape)
    for row, label in zip(target, truth, strict=True):
        own = np.sum(truth == label)
        row[:] = 1 / (own + 2) / (n_classes - 1)
        row[label] = (own + 1) / (own + 2)

    def loss(slope):
        return -np.sum(target * log_softmax(slope * decision, axis=1))

    return minimize_scalar(loss, bounds=(0.0, 50.0), method="bounded",
                           options={"xatol": 1e-10}).x  # fmt: skip


@given(st.integers(3, 6), st.integers(10, 80), st.integers(0, 10**6))
def test_temperature_is_that_of_the_definition(K, n, seed):
    """One number for all classes, in any scale; no ranking turned round."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    decision = rng.normal(size=(n, K)) + 1.5 * np.eye(K)[truth]
    scale = 10.0 ** rng.integers(-6, 7)
    slope = best_temperature(decision, truth)
    if slope > 0.05:
        assert_allclose(fit_temperature(scale * decision, truth) * scale, slope,
                        rtol=1e-4)  # fmt: skip
    reverse = fit_temperature(-scale * decision, truth)
    assert 0.0 <= reverse * scale < 0.05 or slope < 0.3
    assert fit_temperature(np.ones((n, K)), truth) == 0.0


def test_probabilities_of_several_classes_have_one_temperature():
    """Decisions over their mean size, the temperature of the rows held out."""
    X, y = blobs(np.random.default_rng(14), 400, n_classes=3, spread=0.8)
    member = LogisticRegression().fit(X[:100], y[:100])
    clf = PACBayesEnsembleClassifier([FrozenEstimator(member)], random_state=0)
    clf.fit(X[100:250], y[100:250], X_cert=X[250:320], y_cert=y[250:320])
    held, fresh = member.decision_function(X[100:250]), X[320:]
    slope = best_temperature(held, y[100:250])
    expected = softmax(slope * member.decision_function(fresh), axis=1)
    assert_array_equal(expected.argmax(axis=1), member.predict(fresh))
    assert_allclose(clf.predict_proba(fresh), expected, atol=1e-4)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decisions_of_pairs_are_not_taken_for_those_of_classes(shape):
    """With three classes there are three of either kind."""
    X, y = blobs(np.random.default_rng(15), 400, n_classes=3)
    clf = PACBayesEnsembleClassifier(
        [SVC(decision_function_shape=shape)], random_state=0
    ).fit(X[:300], y[:300])
    plain = PACBayesEnsembleClassifier([SVC()], random_state=0).fit(X[:300], y[:300])
    ours = log_loss(y[300:], clf.predict_proba(X[300:]))
    assert ours < log_loss(y[300:], plain.predict_proba(X[300:])) + 0.1


@pytest.mark.parametrize(
    "params",
    [
        {"prior": "uniform", "distance": "kl"},
        {"posterior": "bound"},
        {"posterior": "tandem"},
        {"scheme": "progressive"},
        {"scheme": "progressive", "n_start": 0.1},
        {"scheme": "per_member", "prior": "uniform", "distance": "kl"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:The prior is uniform:UserWarning")
def test_shares_are_smoothed_where_nothing_calibrates(params, n_classes):
    """As if seen on the training rows, 20 at most."""
    X, y = blobs(np.random.default_rng(16), 120, n_classes=n_classes, spread=0.8)
    clf = PACBayesSVMEnsemble(Cs=5, random_state=0, **params).fit(X, y)
    m = 12 if "n_start" in params else 20
    expected = ref.smoothed_shares(clf.vote_shares(X), m, n_classes)
    assert_allclose(clf.predict_proba(X), expected, atol=1e-9)


@pytest.mark.parametrize("n_train", [8, 9, 10, 30])
def test_few_rows_calibrate_nothing(n_train):
    """Below ten rows out of fold the shares of the vote are smoothed."""
    X, y = twonorm(np.random.default_rng(17), 200, d=2)
    X += 1.0 * y[:, None]
    first = np.r_[np.flatnonzero(y == 0)[: n_train // 2], np.flatnonzero(y == 1)]
    first = first[:n_train]
    options = {"X_cert": X[100:], "y_cert": y[100:]}
    svm = PACBayesSVMEnsemble(Cs=5, random_state=0).fit(X[first], y[first], **options)
    other = PACBayesEnsembleClassifier(
        [GaussianNB(), LogisticRegression()], random_state=0
    ).fit(X[first], y[first], **options)
    for clf in (svm, other):
        shares = ref.smoothed_shares(clf.vote_shares(X), min(n_train, 20))
        same = np.allclose(clf.predict_proba(X), shares, atol=1e-9)
        assert same == (n_train < 10)
        check_agreement(clf, X)


def test_given_priors_calibrate_if_there_are_folds():
    """Catoni's constant needs inner folds, which calibrate as well."""
    X, y = noisy_rings(np.random.default_rng(18), 200)
    prior = [0.2, 0.8, 0.0]
    clf = PACBayesSVMEnsemble(Cs=[0.1, 1, 10], prior=prior, random_state=0).fit(X, y)
    assert len(np.unique(clf.predict_proba(X)[:, 1])) > 100
    listed = PACBayesEnsembleClassifier([GaussianNB(), SVC()], prior="uniform")
    listed.set_params(random_state=0).fit(X, y)
    assert len(np.unique(listed.predict_proba(X)[:, 1])) <= 4


@pytest.mark.parametrize("make", [noisy_rings, twonorm])
def test_probabilities_are_better_than_shares(make):
    """Log loss and ranking on rows not seen: the point of it all."""
    X, y = make(np.random.default_rng(19), 900)
    clf = PACBayesSVMEnsemble(random_state=0).fit(X[:400], y[:400])
    X, y = X[400:], y[400:]
    shares, scores = clf.vote_shares(X)[:, 1], clf.decision_function(X)
    proba = clf.predict_proba(X)[:, 1]
    assert log_loss(y, proba) < log_loss(y, shares)
    assert roc_auc_score(y, scores) > roc_auc_score(y, shares)
    assert_allclose(roc_auc_score(y, proba), roc_auc_score(y, scores), atol=1e-9)


# ------------------------------------------------------------------- Gibbs


@pytest.mark.parametrize("params", SVMS[:7], ids=str)
def test_gibbs_error_is_the_mean_over_members(params):
    """No draws: the posterior's mean of the members' error rates."""
    X, y = blobs(np.random.default_rng(21), 150, n_classes=3, spread=0.7)
    names = np.array(["c", "a", "b"])
    clf = PACBayesSVMEnsemble(Cs=5, random_state=0, **params).fit(X, names[y])
    fresh, z = blobs(np.random.default_rng(22), 90, n_classes=3, spread=0.7)
    for labels in (names[z], np.where(np.arange(90) < 20, "new", names[z])):
        errors = [np.mean(m.predict(fresh) != labels) for m in clf.estimators_]
        found = clf.gibbs_error(fresh, labels)
        assert isinstance(found, float)
        assert_allclose(found, clf.posterior_ @ errors)
    cert = clf.certification_indices_
    if params.get("scheme", "holdout") == "holdout":
        found = clf.gibbs_error(X[cert], names[y[cert]])
        assert_allclose(found, clf.gibbs_risk_)
    draws = np.mean([clf.predict_randomized(fresh, i) != names[z] for i in range(100)])
    assert abs(draws - clf.gibbs_error(fresh, names[z])) < 5 * 0.5 / np.sqrt(100 * 90)


def test_gibbs_error_refuses_labels_of_other_rows():
    """One label for each row."""
    X, y = twonorm(np.random.default_rng(23), 60)
    clf = PACBayesSVMEnsemble(Cs=3, random_state=0).fit(X, y)
    for labels in (y[:1], y[:10], np.tile(y, 2)):
        with pytest.raises(ValueError, match=r"y must have shape|inconsistent"):
            clf.gibbs_error(X, labels)


def test_labels_of_another_kind_are_unknown():
    """Texts for numbers are errors, as any label that is no class."""
    X, y = twonorm(np.random.default_rng(24), 60)
    clf = PACBayesSVMEnsemble(Cs=3, random_state=0).fit(X, y)
    assert clf.monitor().update(X, y.astype(str)).n_errors_ == 60
    assert clf.gibbs_error(X, y.astype(str)) == 1.0
