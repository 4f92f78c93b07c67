"""The SVM ensemble: what it fits, what it certifies, what it refuses."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from reference import votes
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pac_bayes.toy import blobs, noisy_rings, twonorm
from skbounds.pac_bayes import PACBayesSVMEnsemble
from skbounds.pac_bayes._layout import assign_folds
from skbounds.pac_bayes._svm_schemes import make_trainer

PAPER = {"prior": "uniform", "posterior": "bound", "cert_size": 0.5}


def fitted(X, y, **params):
    return PACBayesSVMEnsemble(**{"random_state": 0, **params}).fit(X, y)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def member_votes(clf, X):
    """Return the weighted vote from the members' own predictions."""
    shares = np.zeros((len(X), len(clf.classes_)))
    for weight, member in zip(clf.vote_weights_, clf.estimators_, strict=True):
        shares += weight * (member.predict(X)[:, None] == clf.classes_)
    return shares


# ------------------------------------------------------------------- the members


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_members_are_fitted_svcs(kernel, n_classes, class_weight):
    """Each member has the attributes and outputs of SVC on the training part."""
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 240, n_classes=n_classes)
    y = np.array(["b", "c", "a"])[y] if n_classes == 3 else np.array(["z", "k"])[y]
    # Unequal classes, so that the order inside is not that of the labels.
    keep = (y != y[0]) | (rng.uniform(size=len(y)) < 0.5)
    X, y = X[keep], y[keep]
    options = {"kernel": kernel, "gamma": 0.2, "coef0": 0.5, "degree": 2}
    clf = fitted(
        X, y, Cs=[0.1, 1.0], prior="uniform", tol=1e-6, max_iter_per_C=None,
        class_weight=class_weight, **options,
    )  # fmt: skip
    train = clf.train_indices_
    fresh = rng.normal(size=(50, 3)) * 2.0
    for C, member in zip(clf.Cs_, clf.estimators_, strict=True):
        svc = SVC(C=C, tol=1e-6, class_weight=class_weight, **options)
        svc.fit(X[train], y[train])
        assert member.C == C
        assert_array_equal(member.classes_, svc.classes_)
        if kernel == "sigmoid":
            # Indefinite: several stationary points, none of them the solution.
            agreement = np.mean(member.predict(fresh) == svc.predict(fresh))
            assert agreement > 0.7
            continue
        assert_allclose(
            member.decision_function(fresh), svc.decision_function(fresh), atol=2e-4
        )
        assert_array_equal(member.predict(fresh), svc.predict(fresh))
        assert_allclose(member.intercept_, svc.intercept_, atol=2e-4)
        dense = np.zeros((2, n_classes - 1, len(X)))
        dense[0][:, member.support_] = member.dual_coef_
        dense[1][:, train[svc.support_]] = svc.dual_coef_
        assert_allclose(dense[0], dense[1], atol=5e-3 * C)
        assert_array_equal(member.n_support_.sum(), len(member.support_))
        assert_array_equal(X[member.support_], member.support_vectors_)
        assert (np.diff(np.searchsorted(clf.classes_, y[member.support_])) >= 0).all()


def test_members_check_their_input(cancer):
    """Wrong numbers of features are refused; members are not fitted by hand."""
    X, y = cancer
    member = fitted(X, y, Cs=3).estimators_[0]
    with pytest.raises(ValueError, match=r"X has 3 features, but"):
        member.predict(X[:, :3])
    with pytest.raises(NotImplementedError, match=r"fitted by its ensemble"):
        member.fit(X, y)
    assert 0.5 < member.score(X, y) <= 1.0


def test_inner_cross_validation_counts_errors_of_svc():
    """cv_errors_ are those of SVC on the very same folds."""
    X, y = noisy_rings(np.random.default_rng(1), 160)
    clf = fitted(X, y, Cs=[0.1, 1.0, 10.0], tol=1e-7, max_iter_per_C=None,
                 prior="uniform", gamma=0.1)  # fmt: skip
    train = clf.train_indices_
    # The folds again: the same draws from the same seed.
    rng = np.random.RandomState(0)
    rng.permutation(len(y))
    trainer = make_trainer(clf, X, y, train, np.array([0, 1]))
    folds = assign_folds(y[train], trainer.keys, trainer.class_order, 5, rng)
    assert sorted(np.bincount(folds)) == [22, 22, 22, 23, 23]
    for C, count in zip(clf.Cs_, clf.cv_errors_, strict=True):
        errors = 0
        for fold in range(5):
            seen, held = train[folds != fold], train[folds == fold]
            svc = SVC(C=C, gamma=0.1, tol=1e-7).fit(X[seen], y[seen])
            errors += np.sum(svc.predict(X[held]) != y[held])
        assert abs(errors - count) <= 1
    assert len(clf.Cs_) == 3


def test_early_end_only_drops_members_without_weight():
    """The path that ends early gives the same prior as the whole path."""
    X, y = noisy_rings(np.random.default_rng(2), 300)
    short, whole = (fitted(X, y, early_end=value) for value in (True, False))
    assert_array_equal(short.Cs_, whole.Cs_)
    assert_allclose(short.prior_, whole.prior_)
    assert len(short.Cs_) < 20


@pytest.mark.slow
def test_shared_matrix_and_rows_on_demand_agree():
    """The ensemble without room for the matrix predicts alike."""
    X, y = noisy_rings(np.random.default_rng(3), 500)
    small, large = (
        fitted(X, y, cache_size=size, tol=1e-6, max_iter_per_C=None, Cs=5)
        for size in (0.2, 200)
    )
    assert_array_equal(small.Cs_, large.Cs_)
    fresh, _ = noisy_rings(np.random.default_rng(4), 300)
    assert_allclose(
        small.average_decision(fresh), large.average_decision(fresh), atol=1e-4
    )


# ------------------------------------------------------------------- predictions


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"prior": "uniform", "Cs": 6},
        {**PAPER, "divergence": "chi2", "distance": "kl", "Cs": 6},
        {"scheme": "progressive", "Cs": 6},
        {"kernel": "precomputed"},
    ],
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_outputs_agree(params, n_classes):
    """predict, shares and scores are one weighted vote of the members."""
    X, y = blobs(np.random.default_rng(5), 320, n_classes=n_classes, spread=0.8)
    if "kernel" in params:
        X = rbf_kernel(X)
    clf = fitted(X, y, **params)
    shares, proba = clf.vote_shares(X), clf.predict_proba(X)
    assert_allclose(shares, member_votes(clf, X), atol=1e-9)
    for rows in (shares, proba):
        assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        assert_array_equal(clf.predict(X), clf.classes_[rows.argmax(axis=1)])
    mean = sum(
        weight * member.decision_function(X)
        for weight, member in zip(clf.vote_weights_, clf.estimators_, strict=True)
    )
    assert_allclose(clf.average_decision(X), mean, atol=1e-9)
    scores = clf.decision_function(X)
    if n_classes == 2:
        assert_array_equal(clf.predict(X), clf.classes_[(scores > 0.0).astype(int)])
        own = votes.constrained_decision(mean, clf.predict(X) == 1, 0.0)
        assert_allclose(scores, own, atol=2e-6)
    else:
        assert_array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])
        fine = shares + 1e-3 * softmax(mean, axis=1)
        moved = fine.argmax(axis=1) != clf.predict(X)
        ranked = np.sort(shares[moved], axis=1)
        assert (ranked[:, -1] - ranked[:, -2] <= 1e-3).all()
        assert_allclose(scores[~moved], fine[~moved], atol=1e-9)
    for weights in (clf.vote_weights_, clf.posterior_, clf.prior_):
        assert_allclose(weights.sum(), 1.0, atol=1e-9)
    assert len(np.unique(shares)) > 2


def test_vote_ties_go_to_the_smaller_label():
    """Two members of equal weight that disagree."""
    X, y = twonorm(np.random.default_rng(6), 200, d=2)
    y = np.array(["x", "a"])[y]
    clf = fitted(X, y, Cs=[1e-2, 1e3], prior="uniform")
    shares = clf.vote_shares(X)
    tied = shares[:, 0] == shares[:, 1]
    assert tied.any()
    assert (clf.predict(X[tied]) == "a").all()
    assert (clf.decision_function(X[tied]) <= 0.0).all()
    assert (clf.predict_proba(X[tied])[:, 0] >= 0.5).all()


def test_randomized_predictions_follow_the_posterior():
    """Frequencies over many draws are the Gibbs classifier's probabilities."""
    X, y = noisy_rings(np.random.default_rng(7), 300)
    clf = fitted(X, y, **PAPER, divergence="chi2", distance="linear")
    ones = sum(
        weight * (member.predict(X[:40]) == 1)
        for weight, member in zip(clf.posterior_, clf.estimators_, strict=True)
    )
    assert ((ones > 0.05) & (ones < 0.95)).any()
    draws = clf.predict_randomized(np.tile(X[:40], (2000, 1)), random_state=0)
    frequency = (draws.reshape(2000, 40) == 1).mean(axis=0)
    # Five standard errors: a false alarm in a million.
    assert (np.abs(frequency - ones) <= 5.0 * np.sqrt(0.25 / 2000)).all()
    assert_array_equal(
        clf.predict_randomized(X, random_state=3),
        clf.predict_randomized(X, random_state=3),
    )


# ------------------------------------------------------------------- certificates


@pytest.mark.parametrize("eta", [1.0, 0.3])
@pytest.mark.parametrize("make", [twonorm, noisy_rings, blobs])
def test_certificates_are_those_of_the_definition(make, eta):
    """Prior, Catoni's constant, posterior and all bounds, from counts of errors."""
    X, y = make(np.random.default_rng(8), 300)
    clf = fitted(X, y, prior_eta=eta, delta=0.1)
    cert = clf.certification_indices_
    wrong = [np.sum(m.predict(X[cert]) != y[cert]) for m in clf.estimators_]
    expected = ref.holdout_certificate(
        clf.cv_errors_,
        len(clf.train_indices_),
        np.array(wrong),
        int(np.sum(clf.predict(X[cert]) != y[cert])),
        len(cert),
        eta=eta,
        delta=0.1,
    )
    assert len(cert) == 90 and clf.n_certification_ == 90
    assert_allclose(clf.empirical_risks_, np.array(wrong) / 90)
    assert_allclose(clf.prior_, expected["prior"], atol=1e-9)
    assert_allclose(clf.catoni_c_, expected["c"], rtol=1e-6)
    assert_allclose(clf.posterior_, expected["posterior"], atol=1e-7)
    assert_allclose(clf.risk_bound_, expected["gibbs_bound"], rtol=1e-7)
    assert_allclose(clf.vote_bound_, expected["vote_bound"], rtol=1e-7)
    assert_allclose(clf.occam_bound_, expected["occam_bound"], rtol=1e-7)
    assert_allclose(clf.gibbs_risk_, clf.posterior_ @ clf.empirical_risks_)
    assert_array_equal(clf.vote_weights_, clf.prior_)
    assert clf.certified_object_ == "vote" and clf.certified_
    assert clf.vote_bound(0.1) == clf.vote_bound_
    assert clf.risk_bound(0.1) == clf.risk_bound_
    together = np.sort(np.concatenate([clf.train_indices_, cert]))
    assert_array_equal(together, np.arange(300))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("divergence", "distance"),
    [("chi2", "linear"), ("chi2", "squared"), ("chi2", "kl"), ("kl", "linear"),
     ("kl", "squared"), ("kl", "kl"), ("kl", "lambda")],
)  # fmt: skip
@pytest.mark.parametrize("constants", ["exact", "classical", "paper"])
def test_ensemble_of_the_paper(divergence, distance, constants):
    """The posterior minimises the bound chosen; the vote has twice the bound."""
    X, y = noisy_rings(np.random.default_rng(9), 200)
    clf = fitted(
        X, y, **PAPER, Cs=4, divergence=divergence, distance=distance, delta=0.01,
        constants=constants,
    )  # fmt: skip
    risks = clf.empirical_risks_
    arguments = (risks, 100, 0.01, divergence, distance)
    value = ref.bound(clf.posterior_, *arguments, constants=constants)
    assert_allclose(clf.risk_bound_, min(1.0, value), rtol=1e-7)
    _, best = ref.best_posterior(*arguments, constants=constants, n_starts=2)
    assert value <= best + 1e-6
    assert_allclose(clf.vote_bound_, min(1.0, 2.0 * value))
    assert_array_equal(clf.vote_weights_, clf.posterior_)
    assert clf.certified_object_ == "gibbs"
    assert "vote_binomial_tail" not in clf.bound_terms_
    wrong = np.array(
        [
            m.predict(X[clf.certification_indices_]) != y[clf.certification_indices_]
            for m in clf.estimators_
        ]
    ).astype(float)
    joint = wrong @ wrong.T / 100
    tandem = ref.tandem_bound(clf.posterior_, joint, 100, 0.01)
    assert_allclose(clf.bound_terms_["vote_tandem"], tandem, rtol=1e-7)


def test_claims_on_the_vote_are_about_its_own_weights():
    """A good member that the prior does not favour says nothing about the vote."""
    X, y = twonorm(np.random.default_rng(32), 400, d=2)
    X += 2.0 * y[:, None]
    prior = [0.1, 0.9]
    clf = fitted(X, y, Cs=[1.0, 1e-8], prior=prior, distance="kl", cert_size=0.5)
    y_cert = y[clf.certification_indices_]
    errors = np.sum(clf.predict(X[clf.certification_indices_]) != y_cert)
    assert clf.risk_bound_ < 0.5 * errors / 200
    assert clf.certified_object_ == "vote"
    assert_allclose(
        clf.bound_terms_["vote_twice_gibbs"],
        2.0 * ref.bound(np.array(prior), clf.empirical_risks_, 200, 0.05, "kl", "kl",
                        prior=np.array(prior)),
        rtol=1e-7,
    )  # fmt: skip
    assert clf.best_index_ == 0


def test_simultaneous_bounds_share_the_level():
    """Gibbs and vote get half of delta each; the best member comes for free."""
    X, y = twonorm(np.random.default_rng(10), 300)
    single, joint = (fitted(X, y, simultaneous=value) for value in (False, True))
    assert joint.vote_bound_ == single.vote_bound(0.025) > single.vote_bound_
    assert joint.bound_terms_["delta"] == 0.025
    risk = (joint.prior_ @ joint.cv_errors_ + 0.5) / 211.0
    upper = ref.kl_inverse(risk, np.log(1.0 / 0.025) / 90)
    c = np.log(upper * (1.0 - risk) / (risk * (1.0 - upper)))
    assert_allclose(joint.catoni_c_, c, rtol=1e-6)
    limits = [
        ref.bound(point, joint.empirical_risks_, 90, 0.025, "kl", "catoni",
                  prior=joint.prior_, catoni_c=joint.catoni_c_)
        for point in np.eye(len(joint.prior_))
    ]  # fmt: skip
    assert_allclose(joint.occam_bound_, min(limits), rtol=1e-7)
    assert joint.occam_bound_ >= joint.risk_bound_


def test_bounds_fall_with_delta():
    """The more may fail, the less is claimed."""
    X, y = noisy_rings(np.random.default_rng(11), 200)
    for params in ({}, {"scheme": "progressive"}, {**PAPER, "distance": "kl"}):
        clf = fitted(X, y, Cs=5, **params)
        for bound in (clf.risk_bound, clf.vote_bound):
            values = [bound(delta) for delta in (1e-6, 0.001, 0.05, 0.3, 0.9)]
            assert all(a >= b for a, b in pairwise(values))
            assert values[0] > values[-1] > 0.0
            with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\)"):
                bound(0.0)


def split_by_block(clf, n_blocks):
    """Return slices of the members of blocks of equal size: each has mass 1/n."""
    mass = np.cumsum(clf.prior_)
    edges = [int(np.argmin(np.abs(mass - b / n_blocks))) for b in range(1, n_blocks)]
    assert_allclose(mass[edges], np.arange(1, n_blocks) / n_blocks, atol=1e-12)
    edges = [0, *(edge + 1 for edge in edges), len(clf.prior_)]
    return [slice(a, b) for a, b in pairwise(edges)]


@pytest.mark.parametrize("n_orders", [1, 2, 3])
def test_progressive_certificate_is_that_of_the_definition(n_orders):
    """Blocks, their posteriors and the mixture's bound, from the fitted attributes."""
    X, y = noisy_rings(np.random.default_rng(12), 320)
    clf = fitted(X, y, scheme="progressive", n_orders=n_orders, Cs=8)
    assert clf.n_certification_ == 160
    n_blocks = 4 * n_orders
    blocks = split_by_block(clf, n_blocks)
    losses, kls, prior_losses = [], [], []
    for block, c in zip(blocks, clf.catoni_c_, strict=True):
        p, q = clf.prior_[block] * n_blocks, clf.posterior_[block] * n_blocks
        assert_allclose([p.sum(), q.sum()], 1.0)
        tilted = p * np.exp(-c * 40 * clf.empirical_risks_[block])
        assert_allclose(q, tilted / tilted.sum(), atol=1e-9)
        losses.append(q @ clf.empirical_risks_[block])
        kls.append(ref.kl_term(q, p) / n_orders)
        prior_losses.append(p @ clf.empirical_risks_[block])
    weights = np.full(n_blocks, 1.0 / n_blocks)
    expected = ref.progressive_bound(
        weights, clf.catoni_c_, np.array(losses), np.array(kls), 0.05, 160
    )
    assert_allclose(clf.risk_bound_, expected, rtol=1e-6)
    # The vote has the priors' weights, and twice the bound of drawing by them.
    by_prior = ref.progressive_bound(
        weights, clf.catoni_c_, np.array(prior_losses), 0.0 * weights, 0.05, 160
    )
    assert_array_equal(clf.vote_weights_, clf.prior_)
    assert_allclose(clf.vote_bound_, min(1.0, 2.0 * by_prior), rtol=1e-6)
    assert_allclose(clf.gibbs_risk_, np.mean(losses))
    limits = [
        ref.binomial_tail_bound(round(risk * 40), 40, 0.05 * p)
        for risk, p in zip(clf.empirical_risks_, clf.prior_, strict=True)
    ]
    assert_allclose(clf.occam_bound_, min(limits), rtol=1e-7)
    certifying = 160 if n_orders == 1 else 320
    assert len(clf.certification_indices_) == certifying


def test_progressive_blocks_never_certify_what_they_trained_on():
    """With one order, members of block b are supported by rows before it only."""
    X, y = noisy_rings(np.random.default_rng(13), 160)
    clf = fitted(X, y, scheme="progressive", n_orders=1, Cs=4, prior="uniform")
    order = np.random.RandomState(0).permutation(160)
    position = np.empty(160, dtype=int)
    position[order] = np.arange(160)
    for b, block in enumerate(split_by_block(clf, 4)):
        members = clf.estimators_[block]
        supports = np.concatenate([member.support_ for member in members])
        assert position[supports].max() < 80 + 20 * b
        rows = order[80 + 20 * b : 100 + 20 * b]
        risks = [np.mean(member.predict(X[rows]) != y[rows]) for member in members]
        assert_allclose(clf.empirical_risks_[block], risks)


@pytest.mark.parametrize("changed", ["labels", "features"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {"class_weight": "balanced"},
        {"standardize": True},
        {"gamma": "scale"},
        {"kernel": "precomputed"},
    ],
)
def test_progressive_blocks_know_nothing_of_later_rows(changed, n_classes, params):
    """Other rows from a block on: what was fixed before has the same bits."""
    rng = np.random.default_rng(33)
    X, y = blobs(rng, 200, n_classes=n_classes, spread=0.6)
    order = np.random.RandomState(0).permutation(200)
    options = {"scheme": "progressive", "n_orders": 1, "Cs": 6, "prior_eta": 0.3}
    form = rbf_kernel if "kernel" in params else np.asarray
    plain = fitted(form(X), y, **options, **params)
    for b in range(4):
        late = order[100 + 25 * b :]
        X_other, y_other = X.copy(), y.copy()
        if changed == "labels":
            y_other[late] = (
                y[late] + rng.integers(1, n_classes, len(late))
            ) % n_classes
        else:
            X_other[late] = 3.0 * rng.normal(size=(len(late), 3)) + 1.0
        other = fitted(form(X_other), y_other, **options, **params)
        # Members, prior and constant of this block are fixed by the rows before it.
        blocks, others = split_by_block(plain, 4), split_by_block(other, 4)
        assert_array_equal(plain.catoni_c_[: b + 1], other.catoni_c_[: b + 1])
        for one, two in zip(blocks[: b + 1], others[: b + 1], strict=True):
            assert_array_equal(plain.Cs_[one], other.Cs_[two])
            assert_array_equal(plain.prior_[one], other.prior_[two])
            for first, second in zip(
                plain.estimators_[one], other.estimators_[two], strict=True
            ):
                assert_array_equal(first.dual_coef_, second.dual_coef_)
                assert_array_equal(first.support_, second.support_)
                assert_array_equal(first.intercept_, second.intercept_)
        for one, two in zip(blocks[:b], others[:b], strict=True):
            assert_array_equal(plain.empirical_risks_[one], other.empirical_risks_[two])
    # The last block's rows did change, and its risks with them.
    assert not np.array_equal(
        plain.empirical_risks_[blocks[3]], other.empirical_risks_[others[3]]
    )


@pytest.mark.parametrize("changed", ["labels", "features"])
@pytest.mark.parametrize(
    "params", [{"class_weight": "balanced"}, {"standardize": True}]
)
def test_holdout_members_know_nothing_of_the_certification_rows(changed, params):
    """Whatever they are: the same members, weights, constant and vote, to the bit."""
    rng = np.random.default_rng(34)
    X, y = noisy_rings(rng, 200)
    plain = fitted(X, y, **params)
    cert = plain.certification_indices_
    X_other, y_other = X.copy(), y.copy()
    if changed == "labels":
        y_other[cert] = 0
    else:
        X_other[cert] = 5.0 * rng.normal(size=(len(cert), 5))
    other = fitted(X_other, y_other, **params)
    fresh, _ = noisy_rings(rng, 100)
    assert_array_equal(plain.prior_, other.prior_)
    assert plain.catoni_c_ == other.catoni_c_
    assert_array_equal(plain.predict_proba(fresh), other.predict_proba(fresh))
    assert_array_equal(plain.average_decision(fresh), other.average_decision(fresh))
    assert not np.array_equal(plain.empirical_risks_, other.empirical_risks_)


def test_progressive_priors_and_constants_follow_all_errors_before():
    """Errors of inner folds and, for the same C, of earlier blocks count alike."""
    X, y = noisy_rings(np.random.default_rng(35), 320)
    eta = 0.2
    clf = fitted(X, y, scheme="progressive", Cs=6, prior_eta=eta, delta=0.1)
    blocks = split_by_block(clf, 8)
    for start in (0, 4):
        errors = dict(zip(
            clf.Cs_[blocks[start]], clf.cv_errors_[blocks[start]], strict=True
        ))  # fmt: skip
        counted = 160
        for b in range(start, start + 4):
            block = blocks[b]
            counts = np.array([errors[C] for C in clf.Cs_[block]])
            weights = np.exp(-eta * (counts - counts.min()))
            prior = weights / weights.sum()
            assert_allclose(clf.prior_[block] * 8, prior, atol=1e-9)
            risk = (prior @ counts + 0.5) / (counted + 1.0)
            upper = ref.kl_inverse(risk, np.log(1.0 / 0.1) / 160)
            c = np.log(upper * (1.0 - risk) / (risk * (1.0 - upper)))
            assert_allclose(clf.catoni_c_[b], c, rtol=1e-6)
            errors = {
                C: errors[C] + round(40 * risk)
                for C, risk in zip(clf.Cs_[block], clf.empirical_risks_[block],
                                   strict=True)
            }  # fmt: skip
            counted += 40
    assert len(set(clf.cv_errors_)) > 3


@pytest.mark.parametrize(("n_start", "n_orders"), [(0.5, 2), (0.8, 2), (0.4, 3)])
def test_progressive_rows_that_train_and_certify(n_start, n_orders):
    """The row numbers are those of the orders: every other one is reversed."""
    X, y = noisy_rings(np.random.default_rng(36), 200)
    clf = fitted(
        X, y, scheme="progressive", Cs=3, n_start=n_start, n_orders=n_orders, n_blocks=2
    )
    first = np.random.RandomState(0).permutation(200)
    begin = round(n_start * 200)
    certifying = np.concatenate([first[begin:], first[::-1][begin:]])
    missing = np.setdiff1d(certifying, clf.certification_indices_)
    assert len(missing) == 0
    if n_orders == 2:
        assert_array_equal(np.unique(certifying), clf.certification_indices_)
    supports = np.concatenate([m.support_ for m in clf.estimators_])
    assert np.isin(supports, clf.train_indices_).all()


def test_certificate_on_fresh_rows():
    """Clopper-Pearson limits of the vote, at any level, also after a refit."""
    X, y = twonorm(np.random.default_rng(14), 300)
    X_new, y_new = twonorm(np.random.default_rng(15), 120)
    with pytest.warns(UserWarning, match=r"refit=True"):
        clf = fitted(X, y, refit=True)
    errors = int(np.sum(clf.predict(X_new) != y_new))
    result = clf.certificate(X_new, y_new, delta=0.02)
    upper = ref.binomial_tail_bound(errors, 120, 0.02)
    lower = 1.0 - ref.binomial_tail_bound(120 - errors, 120, 0.02)
    assert_allclose([result["bound"], result["lower"]], [upper, lower], rtol=1e-8)
    assert result["estimate"] == errors / 120
    assert (result["n"], result["delta"]) == (120, 0.02)
    assert clf.certificate(X_new, y_new)["delta"] == 0.05
    all_wrong = clf.certificate(X_new, 1 - clf.predict(X_new))
    assert all_wrong["bound"] == 1.0
    with pytest.raises(ValueError, match=r"none of the labels \[0, 1\]"):
        clf.certificate(X_new, y_new.astype(str))
    with pytest.raises(ValueError, match=r"y_cal must have shape \(120,\)"):
        clf.certificate(X_new, y_new[:-1])


@pytest.mark.parametrize("scheme", ["holdout", "progressive"])
def test_refit_trains_on_all_rows_and_certifies_nothing(scheme):
    """Weights stay, members change, bounds are nan; the terms keep the numbers."""
    X, y = noisy_rings(np.random.default_rng(16), 200)
    plain = fitted(X, y, scheme=scheme, Cs=5)
    with pytest.warns(UserWarning, match=r"voids the bounds"):
        again = fitted(X, y, scheme=scheme, Cs=5, refit=True)
    for name in ("risk_bound_", "vote_bound_", "occam_bound_"):
        assert np.isnan(getattr(again, name))
    assert np.isnan(again.vote_bound(0.1)) and np.isnan(again.risk_bound(0.1))
    assert not again.certified_ and plain.certified_
    assert again.bound_terms_ == plain.bound_terms_
    assert_array_equal(again.train_indices_, np.arange(200))
    assert_array_equal(again.certification_indices_, plain.certification_indices_)
    assert again.Cs_[again.best_index_] == plain.Cs_[plain.best_index_]
    seen = np.unique(np.concatenate([m.support_ for m in again.estimators_]))
    assert np.isin(seen, plain.certification_indices_).any()
    assert len(again.estimators_) == len(again.Cs_) == len(again.vote_weights_)
    svc = SVC(C=again.Cs_[0], gamma="scale", tol=1e-2).fit(X, y)
    agreement = np.mean(again.estimators_[0].predict(X) == svc.predict(X))
    assert agreement > 0.97
    for C in np.unique(plain.Cs_):
        expected = plain.vote_weights_[plain.Cs_ == C].sum()
        assert_allclose(again.vote_weights_[again.Cs_ == C].sum(), expected)


def test_own_certification_rows():
    """X_cert replaces the split: all of X trains."""
    X, y = twonorm(np.random.default_rng(17), 200)
    X_cert, y_cert = twonorm(np.random.default_rng(18), 90)
    clf = PACBayesSVMEnsemble(random_state=0)
    clf.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    assert clf.n_certification_ == 90
    assert_array_equal(clf.train_indices_, np.arange(200))
    assert len(clf.certification_indices_) == 0
    errors = int(np.sum(clf.predict(X_cert) != y_cert))
    assert_allclose(
        clf.vote_bound_, ref.binomial_tail_bound(errors, 90, 0.05), rtol=1e-8
    )


# ------------------------------------------------------------------- invariances


def test_row_order_changes_nothing_of_centred_kernel_matrices():
    """A kernel matrix whose rows sum to zero has an order of its rows, too."""
    X, y = noisy_rings(np.random.default_rng(39), 190)
    K = linear_kernel(X - X[:130].mean(axis=0))
    order = np.random.default_rng(40).permutation(130)
    cert = K[130:, :130]
    first, second = (
        PACBayesSVMEnsemble(kernel="precomputed", Cs=5, random_state=0).fit(
            K[np.ix_(rows, rows)], y[rows], X_cert=cert[:, rows], y_cert=y[130:]
        )
        for rows in (np.arange(130), order)
    )
    assert_array_equal(first.cv_errors_, second.cv_errors_)
    assert_allclose(
        second.average_decision(cert[:, order]), first.average_decision(cert), atol=1e-9
    )


@pytest.mark.parametrize("params", [{}, {"kernel": "linear", "standardize": True}])
def test_row_order_changes_nothing_given_the_certification_rows(params):
    """The same rows in another order give the same members and bounds."""
    X, y = blobs(np.random.default_rng(19), 150, n_classes=3, spread=0.8)
    X_cert, y_cert = blobs(np.random.default_rng(20), 60, n_classes=3, spread=0.8)
    order = np.random.default_rng(21).permutation(150)
    first = PACBayesSVMEnsemble(random_state=0, **params)
    first.fit(X, y, X_cert=X_cert, y_cert=y_cert)
    second = PACBayesSVMEnsemble(random_state=0, **params)
    second.fit(X[order], y[order], X_cert=X_cert[::-1], y_cert=y_cert[::-1])
    assert_array_equal(first.Cs_, second.Cs_)
    assert_array_equal(first.cv_errors_, second.cv_errors_)
    assert_allclose(second.vote_bound_, first.vote_bound_)
    assert_allclose(second.risk_bound_, first.risk_bound_)
    assert_allclose(second.average_decision(X), first.average_decision(X), atol=1e-9)
    for one, two in zip(first.estimators_, second.estimators_, strict=True):
        assert_array_equal(np.sort(one.support_), np.sort(order[two.support_]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_label_names_change_nothing(n_classes):
    """Strings for numbers, with two classes also in reverse order: the same members.

    With three classes, ties within a member go to the smaller label.
    """
    X, y = blobs(np.random.default_rng(22), 200, n_classes=n_classes, spread=0.8)
    names = np.array(["pear", "fig"] if n_classes == 2 else ["apple", "fig", "pear"])
    plain, named = fitted(X, y), fitted(X, names[y])
    assert_array_equal(plain.cv_errors_, named.cv_errors_)
    assert plain.vote_bound_ == named.vote_bound_
    assert plain.risk_bound_ == named.risk_bound_
    columns = np.searchsorted(named.classes_, names)
    assert_array_equal(named.vote_shares(X)[:, columns], plain.vote_shares(X))
    untied = np.sort(plain.vote_shares(X), axis=1)
    untied = untied[:, -1] > untied[:, -2]
    assert_array_equal(named.predict(X)[untied], names[plain.predict(X)][untied])
    assert_allclose(
        named.predict_proba(X)[untied][:, columns],
        plain.predict_proba(X)[untied],
        atol=3e-6,
    )


def test_order_of_the_grid_changes_nothing():
    """Values of C may come in any order; a prior follows them."""
    X, y = noisy_rings(np.random.default_rng(23), 200)
    Cs = np.array([0.1, 1.0, 10.0, 100.0])
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    order = np.array([2, 0, 3, 1])
    for given in (None, prior):
        options = [{"Cs": Cs}, {"Cs": Cs[order]}]
        if given is not None:
            options[0]["prior"], options[1]["prior"] = given, given[order]
        first, second = (fitted(X, y, **option) for option in options)
        if given is not None:
            assert_array_equal(second.Cs_, Cs[order])
            assert_allclose(second.prior_, prior[order])
        match = [list(first.Cs_).index(C) for C in second.Cs_]
        assert_allclose(second.posterior_, first.posterior_[match], atol=1e-12)
        assert_allclose(second.risk_bound_, first.risk_bound_)
        assert_array_equal(second.vote_shares(X), first.vote_shares(X))
        assert_allclose(second.predict_proba(X), first.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("scheme", ["holdout", "progressive"])
def test_sparse_and_float32_agree_with_dense(scheme):
    """The form of X is not part of the model."""
    X, y = noisy_rings(np.random.default_rng(24), 200)
    X[np.abs(X) < 0.3] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    dense = fitted(X, y, scheme=scheme, gamma=0.1, tol=1e-6, max_iter_per_C=None, Cs=5)
    for form in (sparse.csr_matrix, sparse.csc_array, lambda X: X.astype(np.float32)):
        other = fitted(
            form(X), y, scheme=scheme, gamma=0.1, tol=1e-6, max_iter_per_C=None, Cs=5
        )
        assert_array_equal(other.Cs_, dense.Cs_)
        assert_allclose(
            other.average_decision(form(X)), dense.average_decision(X), atol=1e-4
        )
        assert_allclose(other.vote_bound_, dense.vote_bound_, atol=1e-4)
    scaled = fitted(sparse.csr_array(X), y, scheme=scheme, standardize=True, Cs=3)
    assert sparse.issparse(scaled.estimators_[0].support_vectors_)


def test_integer_weights_do_not_exist():
    """The certificate counts rows: there is no sample_weight."""
    with pytest.raises(TypeError, match=r"sample_weight"):
        PACBayesSVMEnsemble().fit([[0.0]], [0], sample_weight=[1.0])


# ------------------------------------------------------------------- kernels


def test_kernel_matrices(cancer):
    """A precomputed kernel, a callable and the name give the same ensemble."""
    X, y = cancer[0][:300], cancer[1][:300]
    gamma = 1.0 / X.shape[1]
    # The rows' order inside depends on what is known of them, so that folds differ: a
    # uniform prior leaves the members.
    exact = {
        "prior": "uniform",
        "tol": 1e-7,
        "max_iter_per_C": None,
        "Cs": [0.1, 1, 10],
    }
    K = rbf_kernel(X, gamma=gamma)
    named = fitted(X, y, gamma=gamma, **exact)
    matrix = fitted(K, y, kernel="precomputed", **exact)
    called = fitted(X, y, kernel=lambda A, B: rbf_kernel(A, B, gamma=gamma), **exact)
    for other, rows in ((matrix, K), (called, X)):
        assert other.vote_bound_ == named.vote_bound_
        assert_allclose(
            other.average_decision(rows), named.average_decision(X), atol=1e-4
        )
    single = K.astype(np.float32)
    again = fitted(single, y, kernel="precomputed", **exact)
    assert_allclose(
        again.average_decision(single), named.average_decision(X), atol=1e-4
    )
    search = cross_val_score(
        PACBayesSVMEnsemble(kernel="precomputed", Cs=4, random_state=0), K, y, cv=3
    )
    assert search.min() > 0.85
    member = matrix.estimators_[0]
    decision = K[:, member.support_] @ member.dual_coef_[0] + member.intercept_[0]
    assert_allclose(member.decision_function(K), decision, atol=1e-9)
    with_cert = PACBayesSVMEnsemble(kernel="precomputed", Cs=4, random_state=0)
    with_cert.fit(K[:200, :200], y[:200], X_cert=K[200:, :200], y_cert=y[200:])
    assert with_cert.n_certification_ == 100


@pytest.mark.parametrize("kernel", ["laplacian", "chi2", "additive_chi2", "cosine"])
def test_every_kernel_of_scikit_learn(kernel):
    """Kernels that SVC has not by name."""
    X, y = load_iris(return_X_y=True)
    clf = fitted(X, y, kernel=kernel, Cs=5)
    assert clf.score(X, y) > 0.8


def test_standardize_uses_the_training_part_only(cancer):
    """The scaler never sees the certification rows."""
    X, y = load_breast_cancer(return_X_y=True)
    exact = {"tol": 1e-7, "max_iter_per_C": None, "Cs": [0.1, 1.0, 10.0]}
    # The folds that a learned prior comes from depend on the content of the rows.
    exact["prior"] = "uniform"
    clf = fitted(X, y, standardize=True, **exact)
    train = clf.train_indices_
    scaled = StandardScaler().fit(X[train]).transform(X)
    by_hand = PACBayesSVMEnsemble(**exact, random_state=0)
    by_hand.fit(
        scaled[train], y[train], X_cert=scaled[clf.certification_indices_],
        y_cert=y[clf.certification_indices_],
    )  # fmt: skip
    assert_allclose(by_hand.vote_bound_, clf.vote_bound_)
    assert_allclose(
        by_hand.average_decision(scaled), clf.average_decision(X), atol=1e-6
    )


@pytest.mark.slow
def test_replaces_grid_search(cancer):
    """In one line, and about as accurate."""
    X, y = cancer
    ours = cross_val_score(PACBayesSVMEnsemble(random_state=0), X, y, cv=5).mean()
    search = GridSearchCV(SVC(), {"C": np.logspace(-2, 3, 20)}, cv=5)
    theirs = cross_val_score(search, X, y, cv=5).mean()
    assert ours > theirs - 0.02
    tuned = GridSearchCV(
        PACBayesSVMEnsemble(random_state=0, Cs=5), {"gamma": [0.001, 0.03]}, cv=3
    ).fit(X, y)
    assert tuned.best_score_ > 0.95


# ------------------------------------------------------------------- bad input


def toy():
    return twonorm(np.random.default_rng(30), 60)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, r"Cs must be a number or a non-empty list"),
        ({"Cs": [1.0, -1.0]}, r"Cs must be positive and finite"),
        ({"Cs": [1.0, np.inf]}, r"Cs must be positive and finite"),
        ({"prior": [0.5, 0.5]}, r"prior must have one entry per member, 3"),
        ({"prior": [1.5, -0.5, 0.0]}, r"prior must be finite and non-negative"),
        ({"prior": [0.0, 0.0, 0.0]}, r"prior must sum to 1"),
        ({"prior": [0.5, 0.5, 0.1]}, r"prior must sum to 1; got a sum of 1\.1"),
        ({"divergence": "chi2"}, r"with divergence='chi2', distance must be one of"),
        ({"divergence": "chi2", "distance": "lambda"}, r"distance must be one of"),
        ({"delta": 0.0}, r"'delta' parameter"),
        ({"delta": 1.0}, r"'delta' parameter"),
        ({"cert_size": 1.0}, r"'cert_size' parameter"),
        ({"cert_size": 0.99}, r"n_samples=60 is too small"),
        ({"scheme": "progressive", "n_start": 0.01}, r"n_samples=60 is too small"),
        ({"scheme": "progressive", "n_blocks": 50}, r"n_samples=60 is too small"),
        ({"scheme": "progressive", "prior": [1.0, 0.0, 0.0]}, r"prior must be 'cv'"),
        ({"scheme": "progressive", "distance": "kl"}, r"progressive' has one bound"),
        ({"class_weight": {0: -1.0}}, r"class_weight must give every class"),
        ({"class_weight": {0: np.inf}}, r"class_weight must give every class"),
        ({"kernel": lambda A, B: np.nan * (A @ B.T)}, r"kernel gives NaN or inf"),
        ({"kernel": "poly", "degree": 400, "coef0": 1e9}, r"kernel gives NaN or inf"),
        ({"kernel": "nonsense"}, r"'kernel' parameter"),
        ({"gamma": -1.0}, r"'gamma' parameter"),
        ({"kernel": lambda A, B: A}, r"kernel must return a matrix of shape"),
        ({"tol": 0.0}, r"'tol' parameter"),
        ({"tail": "best"}, r"'tail' parameter"),
        ({"gamma": "width"}, r"'gamma' parameter"),
        ({"scheme": "progressive", "tail": "randomized"}, r"need scheme='holdout'"),
        ({"scheme": "progressive", "posterior": "tandem"}, r"need scheme='holdout'"),
        ({"scheme": "per_member"}, r"'per_member' no rows are left to decide on the"),
        ({"scheme": "per_member", "prior": "uniform"}, r"distance must be another"),
        ({"scheme": "per_member", "prior": "uniform", "distance": "kl",
          "posterior": "tandem"}, r"need scheme='holdout'"),
    ],
)  # fmt: skip
def test_bad_parameters(params, message):
    """Each error names the parameter, what was given and what is allowed."""
    X, y = toy()
    with pytest.raises(ValueError, match=message):
        PACBayesSVMEnsemble(**{"Cs": 3, "random_state": 0, **params}).fit(X, y)


def test_bad_data():
    """Data that cannot be split, certified or told apart."""
    X, y = toy()
    with pytest.raises(ValueError, match=r"only one class, 1"):
        fitted(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match=r"n_samples=1|1 sample"):
        fitted(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"X_cert and y_cert go together"):
        PACBayesSVMEnsemble().fit(X, y, X_cert=X)
    with pytest.raises(
        ValueError, match=r"y_cert has none of the labels of y, \[0, 1\]"
    ):
        PACBayesSVMEnsemble().fit(X, y, X_cert=X, y_cert=y + 7)
    with pytest.raises(ValueError, match=r"features"):
        PACBayesSVMEnsemble().fit(X, y, X_cert=X[:, :2], y_cert=y)
    with pytest.raises(ValueError, match=r"X_cert goes with scheme='holdout'"):
        PACBayesSVMEnsemble(scheme="progressive").fit(X, y, X_cert=X, y_cert=y)
    clf = fitted(X, y)
    with pytest.raises(ValueError, match=r"NaN"):
        clf.predict(np.full((2, 5), np.nan))


def test_bad_kernel_matrices():
    """A kernel matrix is square, symmetric and positive semi-definite."""
    X, y = toy()
    for matrix, message in (
        (X, r"must be a square matrix; got shape \(60, 5\)"),
        (np.triu(linear_kernel(X)) + 0.0, r"must be symmetric"),
        (-linear_kernel(X), r"must be positive semi-definite"),
        (linear_kernel(X) - 3.0 * np.eye(60), r"must be positive semi-definite"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(matrix, y, kernel="precomputed")
    with pytest.raises(ValueError, match=r"standardize=True needs rows"):
        fitted(linear_kernel(X), y, kernel="precomputed", standardize=True)


def test_priors_with_mass_at_one_end_only():
    """The inner folds go as far as a given prior has mass."""
    X, y = noisy_rings(np.random.default_rng(37), 200)
    for place in (0, -1):
        prior = np.zeros(20)
        prior[place] = 1.0
        clf = fitted(X, y, prior=prior)
        assert clf.catoni_c_ > 0.0 and np.isfinite(clf.cv_errors_).all()
        assert_array_equal(clf.prior_, prior)


def test_uniform_priors_keep_all_members():
    """In both schemes, on noisy data as well."""
    X, y = noisy_rings(np.random.default_rng(38), 200)
    assert len(fitted(X, y, prior="uniform").Cs_) == 20
    clf = fitted(X, y, prior="uniform", scheme="progressive", n_blocks=2)
    assert_allclose(clf.prior_, 1.0 / 80)


def test_wide_tolerances_leave_constant_decisions():
    """Nothing to train is no error: the certificate tells."""
    X, y = toy()
    clf = fitted(X, y, tol=5.0, Cs=2)
    assert len(np.unique(clf.predict(X))) == 1
    assert clf.vote_bound_ > 0.4


def test_members_are_not_fitted_by_cloning(cancer):
    """A clone of a member is an unfitted thing, and says so."""
    X, y = cancer
    member = clone(fitted(X, y, Cs=2).estimators_[0])
    with pytest.raises(NotFittedError):
        member.predict(X)


def test_split_is_blind_to_the_labels():
    """The same rows certify whatever the labels are."""
    X, y = toy()
    first, second = fitted(X, y), fitted(X, 1 - y)
    assert_array_equal(first.certification_indices_, second.certification_indices_)
    shuffled = np.random.default_rng(0).permutation(y)
    third = fitted(X, shuffled)
    assert_array_equal(first.certification_indices_, third.certification_indices_)


def test_small_data_warns_and_works():
    """Six rows split; what is weak or missing is said."""
    X = np.arange(12.0).reshape(6, 2)
    y = np.array([0, 1, 0, 1, 0, 1])
    with pytest.warns(UserWarning, match=r"vacuous|certification rows"):
        clf = fitted(X, y)
    assert clf.n_certification_ == 2 and len(clf.train_indices_) == 4
    lonely = np.array([0] * 30 + [1])
    X = np.random.default_rng(0).normal(size=(31, 2))
    with pytest.warns(UserWarning) as record:
        clf = PACBayesSVMEnsemble(random_state=0, Cs=4)
        clf.fit(X, lonely, X_cert=X, y_cert=lonely)
    messages = [str(item.message) for item in record]
    assert sum("The prior is uniform" in message for message in messages) == 1
    assert_allclose(clf.prior_, 0.25)
    assert np.isnan(clf.cv_errors_).all()
    assert clf.catoni_c_ > 0.0


def test_capped_members_are_reported_and_certified():
    """If all are: a member short of the optimum is just another classifier."""
    X, y = noisy_rings(np.random.default_rng(31), 200)
    options = {"max_iter_per_C": 1, "tol": 1e-8, "prior": "uniform"}
    with pytest.warns(ConvergenceWarning, match=r"max_iter_per_C ended the solver"):
        clf = fitted(X, y, Cs=[100.0, 1000.0], **options)
    assert clf.capped_.all() and (clf.n_iter_ == 140).all()
    assert clf.certified_ and clf.vote_bound_ < 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        some = fitted(X, y, Cs=[1e-2, 1e3], **{**options, "tol": 1e-2})
    assert some.capped_.any() and not some.capped_.all()
