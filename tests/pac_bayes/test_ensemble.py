"""Certificates for any list of classifiers, and the picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import pac_bayes as ref
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from pac_bayes.toy import blobs, noisy_rings, twonorm
from skbounds.pac_bayes import (
    CertificateDisplay,
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
)
from skbounds.pac_bayes._certify import CATONI_GRID

MEMBERS = [
    LogisticRegression(),
    KNeighborsClassifier(),
    DecisionTreeClassifier(max_depth=3),
    GaussianNB(),
]


def fitted(X, y, members=None, **params):
    members = MEMBERS if members is None else members
    return PACBayesEnsembleClassifier(members, **{"random_state": 0, **params}).fit(
        X, y
    )


class Refusing(ClassifierMixin, BaseEstimator):
    """Fails with few rows, or always."""

    def __init__(self, at_least=10**9):
        self.at_least = at_least

    def fit(self, X, y):
        if len(y) < self.at_least:
            raise RuntimeError(f"refuses {len(y)} rows")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_certificates_are_those_of_the_definition():
    """Counts of errors, prior, posterior and bounds, from members trained by hand."""
    X, y = noisy_rings(np.random.default_rng(0), 320)
    y = np.array(["no", "yes"])[y]
    clf = fitted(X, y, prior="cv", prior_eta=0.2)
    train, cert = clf.train_indices_, clf.certification_indices_
    assert (len(train), len(cert)) == (240, 80)
    wrong = [np.sum(m.predict(X[cert]) != y[cert]) for m in clf.estimators_]
    expected = ref.holdout_certificate(
        clf.cv_errors_,
        240,
        np.array(wrong),
        int(np.sum(clf.predict(X[cert]) != y[cert])),
        80,
        eta=0.2,
    )
    assert_allclose(clf.prior_, expected["prior"], atol=1e-9)
    assert_allclose(clf.posterior_, expected["posterior"], atol=1e-7)
    assert_allclose(clf.risk_bound_, expected["gibbs_bound"], rtol=1e-7)
    assert_allclose(clf.vote_bound_, expected["vote_bound"], rtol=1e-7)
    assert_allclose(clf.occam_bound_, expected["occam_bound"], rtol=1e-7)
    for index, member in zip(clf.member_indices_, clf.estimators_, strict=True):
        by_hand = clone(MEMBERS[index])
        if "random_state" in by_hand.get_params():
            by_hand.set_params(random_state=member.get_params()["random_state"])
        by_hand.fit(X[train], y[train])
        assert np.mean(by_hand.predict(X) == member.predict(X)) > 0.99
    shares = sum(
        weight * (member.predict(X)[:, None] == clf.classes_)
        for weight, member in zip(clf.vote_weights_, clf.estimators_, strict=True)
    )
    assert_allclose(clf.vote_shares(X), shares, atol=1e-9)
    assert clf.eta_ == 0.2 and np.isnan(clf.eta_errors_).all()


def test_inner_errors_are_those_of_cross_validation():
    """A member that predicts the majority errs on exactly the minority."""
    X, y = twonorm(np.random.default_rng(1), 200)
    y[:40] = 0
    members = [DummyClassifier(), LogisticRegression()]
    clf = fitted(X, y, members, prior="cv", prior_eta=1e-3)
    assert clf.cv_errors_[0] == y[clf.train_indices_].sum()
    assert 0 < clf.cv_errors_[1] < clf.cv_errors_[0]


@pytest.mark.parametrize("prior", ["cv", "stacked"])
def test_member_order_changes_nothing(prior):
    """Neither weights nor bounds depend on the order of the list."""
    X, y = noisy_rings(np.random.default_rng(2), 300)
    forest = RandomForestClassifier(n_estimators=5)
    first = fitted(X, y, [*MEMBERS, forest], prior=prior)
    second = fitted(X, y, [forest, *MEMBERS[::-1]], prior=prior)
    match = [list(4 - first.member_indices_).index(i) for i in second.member_indices_]
    assert len(match) > 2 or prior == "stacked"
    assert_array_equal(first.eta_errors_, second.eta_errors_)
    assert_array_equal(first.cv_errors_[match], second.cv_errors_)
    assert_allclose(second.posterior_, first.posterior_[match])
    assert_allclose(second.risk_bound_, first.risk_bound_)
    assert second.vote_bound_ == first.vote_bound_
    assert_array_equal(first.predict(X), second.predict(X))


def test_row_order_changes_nothing_given_the_certification_rows():
    """Members see the rows in an order of their own, also those that draw."""
    X, y = noisy_rings(np.random.default_rng(3), 200)
    X_cert, y_cert = noisy_rings(np.random.default_rng(4), 100)
    members = [*MEMBERS, RandomForestClassifier(n_estimators=5)]
    order = np.random.default_rng(5).permutation(200)
    fits = [
        PACBayesEnsembleClassifier(members, prior_eta=0.2, random_state=0).fit(
            X[rows], y[rows], X_cert=X_cert, y_cert=y_cert
        )
        for rows in (np.arange(200), order)
    ]
    assert_array_equal(fits[0].cv_errors_, fits[1].cv_errors_)
    assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert fits[0].vote_bound_ == fits[1].vote_bound_


def test_number_of_jobs_changes_nothing():
    """The same bits in two processes."""
    X, y = noisy_rings(np.random.default_rng(6), 200)
    members = [*MEMBERS, RandomForestClassifier(n_estimators=5)]
    one, two = (fitted(X, y, members, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert_array_equal(one.posterior_, two.posterior_)
    assert one.vote_bound_ == two.vote_bound_


def test_frozen_members_let_all_rows_certify():
    """No inner folds: uniform prior, and Catoni's constant from a grid at its price."""
    X, y = noisy_rings(np.random.default_rng(7), 150)
    X_cert, y_cert = noisy_rings(np.random.default_rng(8), 400)
    frozen = [FrozenEstimator(clone(member).fit(X, y)) for member in MEMBERS]
    clf = fitted(X_cert, y_cert, frozen)
    assert clf.n_certification_ == 400 and len(clf.train_indices_) == 0
    assert_array_equal(clf.certification_indices_, np.arange(400))
    assert_allclose(clf.prior_, 0.25)
    assert np.isnan(clf.cv_errors_).all()
    risks = [np.mean(m.predict(X_cert) != y_cert) for m in frozen]
    assert_allclose(clf.empirical_risks_, risks)
    values = [
        ref.best_posterior(
            np.array(risks), 400, 0.05 / 20, "kl", "catoni", catoni_c=c, n_starts=1
        )[1]
        for c in CATONI_GRID[8:]
    ]
    assert_allclose(clf.risk_bound_, min(values), rtol=1e-6)
    assert clf.catoni_c_ in CATONI_GRID
    errors = int(np.sum(clf.predict(X_cert) != y_cert))
    assert_allclose(
        clf.vote_bound_, ref.binomial_tail_bound(errors, 400, 0.05), rtol=1e-8
    )
    assert all(a is b.estimator for a, b in zip(
        [m.estimator for m in frozen], clf.estimators_, strict=True))  # fmt: skip


def test_frozen_members_beside_others():
    """Frozen members are weighed by their errors on the training part."""
    X, y = noisy_rings(np.random.default_rng(9), 150)
    X_new, y_new = noisy_rings(np.random.default_rng(10), 300)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    members = [frozen, LogisticRegression()]
    clf = fitted(X_new, y_new, members, prior="cv", prior_eta=1e-3)
    train = clf.train_indices_
    assert clf.cv_errors_[0] == np.sum(frozen.predict(X_new[train]) != y_new[train])
    alone = fitted(X_new, y_new, [frozen, frozen])
    with_cert = PACBayesEnsembleClassifier([frozen, frozen], random_state=0)
    with_cert.fit(X_new[:100], y_new[:100], X_cert=X_new[100:], y_cert=y_new[100:])
    assert with_cert.n_certification_ == 200 and alone.n_certification_ == 300
    errors = np.sum(frozen.predict(X_new[:100]) != y_new[:100])
    assert_array_equal(with_cert.cv_errors_, [errors] * 2)


def test_frozen_members_know_classes_that_are_not_there():
    """Labels that only a frozen member knows are classes, too."""
    X, y = blobs(np.random.default_rng(11), 200, n_classes=3)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    rows = y < 2
    clf = fitted(X[rows], y[rows], [frozen])
    assert_array_equal(clf.classes_, [0, 1, 2])
    assert_array_equal(clf.predict(X), frozen.predict(X))
    members = [frozen, GaussianNB()]
    mixed = fitted(X[rows], y[rows], members, prior="cv", prior_eta=1e-3)
    assert_array_equal(mixed.classes_, [0, 1, 2])
    assert len(mixed.estimators_) == 2


def test_labels_that_frozen_members_do_not_know_are_mistakes():
    """Rows that only certify do not say what the vote may answer."""
    X, y = blobs(np.random.default_rng(21), 300, n_classes=3)
    frozen = FrozenEstimator(GaussianNB().fit(X[y < 2], y[y < 2]))
    clf = fitted(X, y, [frozen, frozen])
    assert_array_equal(clf.classes_, [0, 1])
    wrong = np.mean(frozen.predict(X) != y)
    assert wrong > 1.0 / 3.0
    assert_allclose(clf.empirical_risks_, wrong)
    errors = round(300 * wrong)
    expected = ref.binomial_tail_bound(errors, 300, 0.05)
    assert_allclose(clf.vote_bound_, expected, rtol=1e-8)


def test_members_with_folds_of_their_own_see_rows_in_no_order():
    """A grid search inside chooses as it does outside."""
    rng = np.random.default_rng(22)
    X = rng.uniform(-3.0, 3.0, size=(400, 1))
    y = (np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=400) > 0.0).astype(int)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 7, 101]}, cv=5)
    clf = fitted(X, y, [search])
    outside = clone(search).fit(X[clf.train_indices_], y[clf.train_indices_])
    inside = clf.estimators_[0]
    assert abs(inside.best_score_ - outside.best_score_) < 0.05
    assert inside.best_score_ > 0.8


def test_copies_of_a_member_differ():
    """Members that draw get draws of their own."""
    X, y = noisy_rings(np.random.default_rng(23), 200)
    tree = DecisionTreeClassifier(splitter="random", max_features=1)
    clf = fitted(X, y, [tree] * 5, prior="uniform")
    assert len({member.predict(X).tobytes() for member in clf.estimators_}) == 5


def test_names_must_be_usable():
    """No clash with parameters, no copies, no double underscores."""
    X, y = twonorm(np.random.default_rng(24), 60)
    for names in (("delta", "a"), ("a", "a"), ("a__b", "c")):
        members = [(name, GaussianNB()) for name in names]
        with pytest.raises(ValueError, match=r"Names of members must differ"):
            fitted(X, y, members)
    with pytest.raises(ValueError, match=r"must be fitted and have classes_"):
        fitted(X, y, [FrozenEstimator(GaussianNB())])
    with pytest.raises(ValueError, match=r"requires y to be passed"):
        PACBayesEnsembleClassifier(MEMBERS).fit(X, None)


def test_failing_members_are_left_out_with_a_warning():
    """Failing on the folds or on the training part costs a member its weight."""
    X, y = noisy_rings(np.random.default_rng(12), 200)
    for broken, message in (
        (Refusing(), r"failed on an inner fold"),
        (Refusing(at_least=140), r"failed on an inner fold"),
    ):
        with pytest.warns(FitFailedWarning, match=message):
            clf = fitted(X, y, [broken, GaussianNB()])
        assert_array_equal(clf.member_indices_, [1])
        assert_allclose(clf.prior_, 1.0)
    with pytest.warns(FitFailedWarning, match=r"could not be trained"):
        clf = fitted(X, y, [GaussianNB(), Refusing()], prior="uniform")
    assert_array_equal(clf.member_indices_, [0])
    with pytest.raises(RuntimeError, match=r"refuses"):
        fitted(X, y, [Refusing(), Refusing()])


@pytest.mark.parametrize("prior", ["uniform", [0.7, 0.1, 0.2, 0.0]])
def test_given_priors(prior):
    """A prior that is given needs no inner folds; zero weight drops a member."""
    X, y = noisy_rings(np.random.default_rng(13), 300)
    clf = fitted(X, y, prior=prior, divergence="chi2", distance="kl", posterior="bound")
    weights = np.full(4, 0.25) if prior == "uniform" else np.array(prior)
    assert_allclose(clf.prior_, weights[weights > 0.0])
    assert_array_equal(clf.member_indices_, np.flatnonzero(weights))
    value = ref.bound(clf.posterior_, clf.empirical_risks_, 75, 0.05, "chi2", "kl",
                      prior=clf.prior_)  # fmt: skip
    assert_allclose(clf.risk_bound_, value, rtol=1e-7)
    assert_allclose(clf.vote_bound_, min(1.0, 2.0 * value))


def test_tables_of_any_kind():
    """Dataframes with categories, missing values, sparse rows: if members take them."""
    pandas = pytest.importorskip("pandas", reason="test extra not installed")
    rng = np.random.default_rng(14)
    y = rng.integers(2, size=200)
    frame = pandas.DataFrame(
        {"colour": np.array(["red", "blue"])[y], "size": rng.normal(size=200)}
    )
    frame.loc[rng.uniform(size=200) < 0.3, "colour"] = "green"
    encode = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"])
    )
    members = [make_pipeline(encode, LogisticRegression(C=C)) for C in (0.01, 1.0)]
    clf = fitted(frame, y, members)
    assert_array_equal(clf.feature_names_in_, ["colour", "size"])
    assert clf.score(frame, y) > 0.75 and clf.vote_bound_ < 0.4
    with pytest.raises(ValueError, match=r"feature names should match"):
        clf.predict(frame.rename(columns={"size": "weight"}))
    X, y = noisy_rings(rng, 200)
    missing = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
    trees = [HistGradientBoostingClassifier(max_iter=5, max_depth=d) for d in (1, 3)]
    assert 0.0 < fitted(missing, y, trees).vote_bound_ < 1.0
    members = [LogisticRegression(), KNeighborsClassifier()]
    if not all(get_tags(member).input_tags.sparse for member in members):
        pytest.skip("tags of the oldest version do not say who takes sparse rows")
    dense, other = fitted(X, y, members), fitted(sparse.csc_array(X), y, members)
    assert_allclose(other.vote_bound_, dense.vote_bound_)


def test_named_members_are_parameters():
    """Members with names can be set and searched over."""
    X, y = twonorm(np.random.default_rng(15), 200)
    clf = PACBayesEnsembleClassifier(
        [("lr", LogisticRegression()), ("nb", GaussianNB())], random_state=0
    )
    assert clf.get_params()["lr__C"] == 1.0
    copy = clone(clf).set_params(lr__C=0.5, nb=KNeighborsClassifier())
    assert copy.estimators[0][1].C == 0.5
    assert isinstance(copy.estimators[1][1], KNeighborsClassifier)
    assert isinstance(clf.estimators[1][1], GaussianNB)
    search = GridSearchCV(clf, {"lr__C": [0.1, 1.0], "prior_eta": [0.1, 1.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.8
    unnamed = PACBayesEnsembleClassifier([GaussianNB()])
    assert "estimators" in unnamed.get_params(deep=True)


@pytest.mark.parametrize(
    ("members", "params", "message"),
    [
        ([], {}, r"estimators must not be empty"),
        ([LinearRegression()], {}, r"estimators must be classifiers"),
        (None, {"prior": [0.5, 0.5]}, r"prior must have one entry per member, 4"),
        (None, {"prior": [2.0, -1.0, 0, 0]}, r"prior must be finite and non-negative"),
        (None, {"delta": 1.5}, r"'delta' parameter"),
        (None, {"divergence": "chi2"}, r"with divergence='chi2', distance"),
        (None, {"cert_size": 0.999}, r"n_samples=60 is too small"),
    ],
)  # fmt: skip
def test_bad_parameters(members, params, message):
    """Each error names what is wrong."""
    X, y = twonorm(np.random.default_rng(16), 60)
    with pytest.raises(ValueError, match=message):
        fitted(X, y, members, **params)


def test_bad_data():
    """Things that are no classifiers, one class, unknown labels, half a pair."""
    X, y = twonorm(np.random.default_rng(17), 60)
    with pytest.raises(TypeError, match=r"classifiers with fit and predict"):
        fitted(X, y, [StandardScaler()])
    with pytest.raises(ValueError, match=r"only one class, 0"):
        fitted(X, np.zeros(60, dtype=int))
    clf = PACBayesEnsembleClassifier(MEMBERS)
    with pytest.raises(ValueError, match=r"go together"):
        clf.fit(X, y, y_cert=y)
    with pytest.raises(
        ValueError, match=r"y_cert has none of the labels of y, \[0, 1\]"
    ):
        clf.fit(X, y, X_cert=X, y_cert=np.full(60, 9))
    for params in ({"prior": "best"}, {"posterior": "best"}, {"tail": "best"}):
        with pytest.raises(ValueError, match=rf"'{next(iter(params))}' parameter"):
            fitted(X, y, **params)


# ------------------------------------------------------------------- the picture


def test_display_has_the_numbers_of_the_ensemble():
    """Positions, weights, risks and bounds; test errors when rows are given."""
    matplotlib = pytest.importorskip("matplotlib", reason="plot extra not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = noisy_rings(np.random.default_rng(18), 300)
    X_test, y_test = noisy_rings(np.random.default_rng(19), 100)
    svm = PACBayesSVMEnsemble(random_state=0).fit(X, y)
    display = CertificateDisplay.from_estimator(svm, X_test, y_test)
    assert_array_equal(display.positions, svm.Cs_)
    assert_array_equal(display.weights, svm.vote_weights_)
    assert_array_equal(display.risks, svm.empirical_risks_)
    assert display.vote_bound == svm.vote_bound_
    expected = [np.mean(m.predict(X_test) != y_test) for m in svm.estimators_]
    assert_allclose(display.test_risks, expected)
    assert display.test_vote_risk == pytest.approx(1.0 - svm.score(X_test, y_test))
    assert display.ax_.get_xscale() == "log"
    levels = {line.get_ydata()[0] for line in display.ax_.get_lines()}
    assert {svm.vote_bound_, svm.risk_bound_} <= levels
    others = CertificateDisplay.from_estimator(fitted(X, y, prior_eta=0.1))
    assert others.ax_.get_xlabel() == "member"
    assert others.test_risks is None
    axes = plt.figure().subplots()
    assert others.plot(ax=axes).ax_ is axes
    plt.close("all")


def test_display_refuses_other_things():
    """Other estimators, unfitted ones, half a test set."""
    X, y = twonorm(np.random.default_rng(20), 150)
    with pytest.raises(TypeError, match=r"certified ensemble"):
        CertificateDisplay.from_estimator(GaussianNB(), plot=False)
    with pytest.raises(ValueError, match=r"not fitted"):
        CertificateDisplay.from_estimator(PACBayesSVMEnsemble(), plot=False)
    clf = PACBayesSVMEnsemble(Cs=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"X and y go together"):
        CertificateDisplay.from_estimator(clf, X, plot=False)
