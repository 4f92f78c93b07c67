"""Targets, bad input and behaviour of the online estimators as scikit-learn's."""

import os
import pickle
import re
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skbounds import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
    SurrogateRegretDisplay,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
SCORES = X @ RNG.normal(size=(4, 3)) + 0.5 * RNG.normal(size=(120, 3))
LABELS = np.array(["ant", "bee", "cat"])[SCORES.argmax(axis=1)]
INDICATOR = (SCORES > 0).astype(int)
LEVELS = np.digitize(SCORES[:, 0], [-1.0, 0.0, 1.0])
RANKS = SCORES.argsort(axis=1).argsort(axis=1) + 1

CASES = {
    "classifier": (FenchelYoungOnlineClassifier(random_state=0), LABELS),
    "raw": (FenchelYoungOnlineClassifier(learner="ogd", random_state=0), LABELS),
    "multilabel": (
        FenchelYoungOnlineMultilabelClassifier("sparsemap", random_state=0),
        INDICATOR,
    ),
    "sigmoid": (
        FenchelYoungOnlineMultilabelClassifier("sigmoid", random_state=0),
        INDICATOR,
    ),
    "ordinal": (FenchelYoungOnlineOrdinalClassifier(random_state=0), LEVELS),
    "ranker": (FenchelYoungOnlineRanker(random_state=0), RANKS),
    "matcher": (FenchelYoungOnlineRanker("birkhoff", random_state=0), RANKS - 1),
}
every = pytest.mark.parametrize(("estimator", "y"), CASES.values(), ids=CASES)


def state_of(estimator):
    """Return a comparable snapshot of everything an estimator knows."""
    return pickle.dumps(estimator)


@every
def test_refused_calls_change_nothing(estimator, y):
    """NaN, other widths, wrong targets: an error, and the state as it was."""
    fitted = clone(estimator).fit(X[:60], y[:60])
    before = state_of(fitted)
    nan = X[60:].copy()
    nan[-1, 0] = np.nan
    for rows, targets, message in [
        (nan, y[60:], "NaN"),
        (X[60:, :3], y[60:], "features"),
        (X[60:], y[61:], "inconsistent"),
        (X[60:], None, "requires y"),
        (sp.csr_array(X[60:]), y[60:], "dense or sparse throughout"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(rows, targets)
        assert state_of(fitted) == before
    fitted.partial_fit(X[60:], y[60:])
    assert fitted.n_samples_seen_ == 120


@every
def test_refused_first_call_leaves_nothing(estimator, y):
    """An error in the first call leaves an unfitted estimator."""
    fresh = clone(estimator)
    with pytest.raises(ValueError):
        fresh.partial_fit(np.full_like(X, np.inf), y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert vars(fresh) == vars(clone(estimator))


WRONG_TARGETS = [
    ("classifier", np.array(["dog"] * 5), r"labels that are not in classes_.*'dog'"),
    ("ordinal", np.full(5, 9), r"labels that are not in classes_.*9"),
    ("multilabel", np.full((5, 3), 2), r"indicator matrix of zeros and ones.*\[2\]"),
    ("multilabel", np.zeros((5, 2), int), "2 labels, but the stream began with 3"),
    ("multilabel", np.zeros(5, int), "1 dimension"),
    ("ranker", np.ones((5, 3), int), "permutation of 1..3"),
    ("ranker", np.tile([0, 1, 2], (5, 1)), "permutation of 1..3"),
    ("ranker", np.tile([1, 2], (5, 1)), "2 items, but the stream began with 3"),
    ("ranker", np.tile([1.5, 2.5, 3.5], (5, 1)), "permutation of 1..3"),
    ("matcher", np.array([[0, 1, 2]] * 4 + [[1, 2, 3]]), "permutation of 0..2"),
    ("matcher", np.tile([0, 0, 1], (5, 1)), "permutation of 0..2"),
]


@pytest.mark.parametrize(("case", "wrong", "message"), WRONG_TARGETS)
def test_targets_of_the_wrong_structure(case, wrong, message):
    """The message says what is allowed and what was given."""
    estimator, y = CASES[case]
    fitted = clone(estimator).fit(X, y)
    before = state_of(fitted)
    with pytest.raises(ValueError, match=message):
        fitted.partial_fit(X[:5], wrong)
    if message != "permutation of 0..2" or wrong[-1].min() == 0:
        # A single row may count from 1.
        with pytest.raises(ValueError):
            fitted.learn_one(X[0], wrong[-1])
    assert state_of(fitted) == before


@pytest.mark.parametrize("method", ["partial_fit", "play"])
def test_first_call_needs_classes_or_all_labels(method):
    """One label tells no classes; `classes` do; unseen labels need them."""
    clf = FenchelYoungOnlineClassifier()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        getattr(clf, method)(X[:3], ["ant"] * 3)
    getattr(clf, method)(X[:3], ["ant"] * 3, classes=["ant", "bee"])
    assert clf.classes_.tolist() == ["ant", "bee"]
    with pytest.raises(ValueError, match="began with"):
        getattr(clf, method)(X[:3], ["ant"] * 3, classes=["ant", "cat"])
    with pytest.raises(ValueError, match="not repeat"):
        FenchelYoungOnlineClassifier().partial_fit(X[:3], LABELS[:3], classes=[1, 1])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"experts": (1.0, -1.0)}, "experts"),
        ({"experts": (np.inf,)}, "experts"),
        ({"learner": "adaptive"}, "diameter"),
        ({"loss": "sparsemax"}, "learner='mixture' needs a log-loss"),
    ],
)
def test_parameters_that_do_not_fit_together(params, message):
    """Errors name the parameter and say what is allowed."""
    with pytest.raises(ValueError, match=re.escape(message)):
        FenchelYoungOnlineClassifier(**params).fit(X, LABELS)
    with pytest.raises(ValueError, match="Use learner='auto'"):
        FenchelYoungOnlineOrdinalClassifier(learner="mixture").fit(X, LEVELS)


@pytest.mark.parametrize(
    "params",
    [
        {"learner": "ogd"},
        {"learner": "adaptive", "diameter": 10.0},
        {"learner": "parameter_free"},
    ],
)
def test_rows_longer_than_the_norm_warn_once(params):
    """Learning goes on, the bound is withdrawn, the certificate stays."""
    clf = FenchelYoungOnlineClassifier(feature_norm=5.0, **params).partial_fit(
        X[:50], LABELS[:50]
    )
    assert clf.bound_valid_
    assert clf.feature_norm_ == 5.0
    with pytest.warns(UserWarning, match="longer than feature_norm = 5") as caught:
        clf.learn_one(10.0 * X[50], LABELS[50])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not clf.bound_valid_
    assert np.isnan(clf.surrogate_regret_bound(1.0))
    assert np.isfinite(clf.surrogate_regret_certificate(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.partial_fit(100.0 * X[51:], LABELS[51:])


def test_norms_that_are_learnt_need_no_warning():
    """The mixture's bound speaks of the longest row so far."""
    clf = FenchelYoungOnlineClassifier(feature_scaling="none").fit(X, LABELS)
    assert_allclose(clf.feature_norm_**2, (X**2).sum(axis=1).max() + 1.0)
    before = clf.surrogate_regret_bound(1.0)
    clf.partial_fit(10.0 * X[:5], LABELS[:5])
    assert clf.bound_valid_
    assert clf.surrogate_regret_bound(1.0) > before


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan, "1", None])
def test_norm_must_be_a_number(bad):
    """Bounds refuse norms that are none."""
    clf = FenchelYoungOnlineClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="norm must be"):
        clf.surrogate_regret_bound(bad)
    with pytest.raises(ValueError, match=r"norm must be|give norm or coef"):
        clf.surrogate_regret_certificate(bad)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, "a"])
def test_delta_must_be_a_probability(bad):
    """Confidence levels outside (0, 1) are refused."""
    clf = FenchelYoungOnlineClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="delta"):
        clf.surrogate_regret_bound(1.0, delta=bad)


@every
@pytest.mark.parametrize(
    "bad",
    [np.zeros(3), np.zeros((1, 4)), [np.nan, 0, 0, 0], [np.inf, 0, 0, 0]],
    ids=["short", "matrix", "nan", "inf"],
)
def test_learn_one_refuses_bad_dense_rows(estimator, y, bad):
    """The light path checks as much as the others."""
    fitted = clone(estimator).fit(X, y)
    before = state_of(fitted)
    with pytest.raises(ValueError):
        fitted.learn_one(bad, y[0])
    assert state_of(fitted) == before


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (np.zeros(4), "pair"),
        (([0, 1], [1.0]), "equally long"),
        (([0, 4], [1.0, 1.0]), r"\[0, 4\)"),
        (([-1], [1.0]), r"\[0, 4\)"),
        (([1, 1], [1.0, 1.0]), "repeat"),
        (([0.5], [1.0]), "integers"),
        (([0], [np.nan]), "NaN"),
    ],
)
def test_learn_one_refuses_bad_sparse_rows(row, message):
    """Index errors would write outside the state."""
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(sp.csr_array(X), LABELS)
    before = state_of(clf)
    with pytest.raises(ValueError, match=message):
        clf.learn_one(row, "ant")
    assert state_of(clf) == before
    clf.learn_one(([3, 1], [1.0, 2.0]), "ant")
    clf.learn_one(([], []), "ant")
    assert clf.n_samples_seen_ == len(X) + 2


def test_entries_without_a_square_are_refused():
    """Overflow would poison the state for good."""
    clf = FenchelYoungOnlineClassifier(feature_scaling="none").fit(X, LABELS)
    single = clone(clf).fit(X.astype(np.float32), LABELS)
    before = state_of(clf), state_of(single)
    for fitted, size in [(clf, 1e200), (single, 1e200), (single, 1e39)]:
        row = np.full(4, size)
        with pytest.raises(ValueError, match=r"below 1e\+150|too large|infinity"):
            fitted.learn_one(row, "ant")
        with pytest.raises(ValueError, match=r"below 1e\+150|too large|infinity"):
            fitted.partial_fit(row[None], ["ant"])
    assert (state_of(clf), state_of(single)) == before
    clf.learn_one(np.full(4, 1e100), "ant")
    assert np.all(np.isfinite(clf.predict_proba(X)))


def test_memory_mapped_streams_go_on(tmp_path):
    """A model loaded read-only learns on, by blocks and by rows."""
    import joblib

    clf = FenchelYoungOnlineClassifier(random_state=0).fit(X[:60], LABELS[:60])
    joblib.dump(clf, tmp_path / "model.joblib")
    expected = clf.partial_fit(X[60:], LABELS[60:]).predict_proba(X)
    by_block = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    by_block.partial_fit(X[60:], LABELS[60:])
    by_row = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    for row, label in zip(X[60:], LABELS[60:], strict=True):
        by_row.learn_one(row, label)
    for copy in (by_block, by_row):
        assert_array_equal(copy.predict_proba(X), expected)


def test_broken_sparse_matrices_are_refused():
    """Indices outside the matrix would write outside the state."""
    clf = FenchelYoungOnlineClassifier().fit(sp.csr_array(X), LABELS)
    broken = sp.csr_array(X[:5])
    broken.indices[3] = 1000
    with pytest.raises(ValueError, match=r"indices|index values"):
        clf.partial_fit(broken, LABELS[:5])
    assert clf.n_samples_seen_ == len(X)


def test_sparse_formats_are_one_stream():
    """Order of indices, duplicates and stored zeros do not matter."""
    dense = np.where(np.abs(X) < 0.5, 0.0, X)
    plain = sp.csr_array(dense)
    messy = sp.csr_array(
        (
            np.concatenate([[r[3], 0.5 * r[0], r[1], 0.5 * r[0], r[2]] for r in dense]),
            np.tile([3, 0, 1, 0, 2], len(dense)),
            5 * np.arange(len(dense) + 1),
        ),
        shape=dense.shape,
    )
    assert not messy.has_canonical_format
    results = []
    for rows in (plain, messy, sp.csr_matrix(plain), sp.csc_array(plain)):
        clf = FenchelYoungOnlineClassifier(random_state=0).fit(rows, LABELS)
        results.append(clf.predict_proba(plain))
    for other in results[1:]:
        assert_array_equal(other, results[0])
    assert messy.nnz == 5 * len(dense)


@every
def test_learn_one_needs_a_beginning(estimator, y):
    """Before classes and features are known there is nothing to learn with."""
    with pytest.raises(NotFittedError, match="partial_fit"):
        clone(estimator).learn_one(X[0], y[0])


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_state_has_the_dtype_of_the_rows(estimator, y, dtype):
    """float32 streams keep float32 weights; results are float64."""
    fitted = clone(estimator).fit(X.astype(dtype), y)
    assert fitted._state_["table"].dtype == dtype
    assert fitted.predict_proba(X).dtype == np.float64
    assert fitted.coef_.dtype == np.float64


@every
def test_coefficients_give_the_scores(estimator, y):
    """coef_ and intercept_ act on raw features, as far as nothing is clipped."""
    fitted = clone(estimator).set_params(clip=1e6).fit(X, y)
    if fitted._learner_ == "mixture":
        scores = np.einsum("mkj,ij->imk", fitted.expert_coefs_, X)
        scores += fitted.expert_intercepts_
        if isinstance(fitted, FenchelYoungOnlineClassifier):
            parts = np.exp(scores - scores.max(axis=2, keepdims=True))
            parts /= parts.sum(axis=2, keepdims=True)
            weights = fitted.expert_weights_[:, None]
        else:
            parts = 1.0 / (1.0 + np.exp(-scores))
            weights = fitted.expert_weights_.T
        mixed = (parts * weights).sum(axis=1)
        assert_allclose(fitted.predict_proba(X), mixed, rtol=1e-9)
        mean = np.einsum(
            "mkj,mk->kj", fitted.expert_coefs_, np.broadcast_to(weights, (4, 3))
        )
        assert_allclose(fitted.coef_, mean, rtol=1e-9)
    else:
        scores = X @ fitted.coef_.T + fitted.intercept_
        u = fitted._make_loss().predict(scores)
        assert_allclose(fitted._predict_points(X), u, atol=1e-9)
        assert not hasattr(fitted, "expert_coefs_")


def test_binary_decision_function_is_one_dimensional():
    """Positive means the second class, for the mixture and a single learner."""
    y = LABELS == "ant"
    for learner in ("mixture", "ogd"):
        clf = FenchelYoungOnlineClassifier(learner=learner).fit(X, y)
        scores = clf.decision_function(X)
        assert scores.shape == (len(X),)
        assert_array_equal(clf.predict(X), scores > 0)
        assert clf.coef_.shape == (2, 4)
        proba = clf.predict_proba(X)
        assert_allclose(scores, np.log(proba[:, 1] / proba[:, 0]), rtol=1e-9)


def test_predict_is_the_argmax():
    """Probabilities, law and predictions order the classes alike."""
    clf = FenchelYoungOnlineClassifier().fit(X, LABELS)
    best = clf.predict(X)
    for values in (clf.predict_proba(X), clf.decode_proba(X), clf.decision_function(X)):
        assert_array_equal(clf.classes_[values.argmax(axis=1)], best)


@every
def test_draws_follow_the_law(estimator, y):
    """Means of 4000 draws lie within five standard errors of decode_proba."""
    fitted = clone(estimator).fit(X, y)
    rows = np.repeat(X[:3], 4000, axis=0)
    draws = fitted.predict_randomized(rows, random_state=1).reshape(3, 4000, -1)
    law = fitted.decode_proba(X[:3])
    if isinstance(fitted, FenchelYoungOnlineClassifier):
        means = (draws == fitted.classes_).mean(axis=1)
    elif isinstance(fitted, FenchelYoungOnlineOrdinalClassifier):
        means = (draws == fitted.classes_).mean(axis=1)
    elif law.ndim == 3:
        means = (draws[..., None] == np.arange(3)).mean(axis=1)
    else:
        means = draws.mean(axis=1)
    assert_allclose(means, law, atol=5.0 * 1.0 / np.sqrt(4000))
    again = fitted.predict_randomized(rows, random_state=1).reshape(3, 4000, -1)
    assert_array_equal(draws, again)


@every
def test_argmax_play_is_the_prediction(estimator, y):
    """With decoding="argmax" each row is played as predict would."""
    fitted = clone(estimator).set_params(decoding="argmax").fit(X[:60], y[:60])
    expected = fitted.predict(X[60:61])
    assert_array_equal(fitted.play(X[60:61], y[60:61]), expected)
    assert fitted.expected_cumulative_loss_ == pytest.approx(
        fitted.cumulative_loss_, abs=1e-12
    )
    if fitted._learner_ != "mixture" or isinstance(
        fitted, FenchelYoungOnlineClassifier
    ):
        assert not fitted.bound_valid_


@every
def test_parameters_changed_after_the_first_call_wait(estimator, y):
    """A stream is learnt with the parameters that it began with."""
    one = clone(estimator).fit(X[:60], y[:60])
    two = clone(estimator).fit(X[:60], y[:60])
    two.set_params(decoding="argmax", learning_rate=7.0, clip=0.1)
    for fitted in (one, two):
        fitted.partial_fit(X[60:], y[60:])
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.cumulative_loss_ == two.cumulative_loss_


# ---------------------------------------------------------------- multilabel


def test_multilabel_on_array_likes():
    """Indicator lists, booleans, floats, sparse and frames: the same predictions."""
    pandas = pytest.importorskip("pandas", reason="test extra not installed")
    base = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(X, INDICATOR)
    for y in (
        INDICATOR.tolist(),
        INDICATOR.astype(bool),
        INDICATOR.astype(float),
        sp.csr_array(INDICATOR),
        sp.csr_matrix(INDICATOR),
        pandas.DataFrame(INDICATOR, columns=list("abc")),
    ):
        other = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(X, y)
        assert_array_equal(other.predict_proba(X), base.predict_proba(X))
        assert other.score(X, y) == base.score(X, INDICATOR)
    for dtype in (np.float32, np.int32, object):
        rows = (10.0 * X).astype(dtype)
        other = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(rows, INDICATOR)
        plain = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(
            rows.astype(np.float64), INDICATOR
        )
        assert_allclose(other.predict_proba(rows), plain.predict_proba(rows), atol=1e-4)
    for rows in (sp.csr_array(X), sp.csc_matrix(X), sp.coo_array(X)):
        sparse = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(rows, INDICATOR)
        assert_array_equal(sparse.predict(rows), sparse.predict(rows.tocsr()))


def test_multilabel_learns():
    """Beats the constant prediction by far, label by label; one label works."""
    from sklearn.multioutput import MultiOutputClassifier

    wide = np.random.default_rng(1).normal(size=(2000, 4))
    Y = (wide @ np.random.default_rng(2).normal(size=(4, 6)) > 0.5).astype(int)
    for loss in ("sparsemap", "sigmoid"):
        clf = FenchelYoungOnlineMultilabelClassifier(loss).fit(wide, Y)
        assert clf.score(wide, Y) > 0.93
        assert clf.expected_cumulative_loss_ / len(Y) < 0.2
        assert clf.classes_.tolist() == list(range(6))
    one = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(wide, Y[:, :1])
    assert one.score(wide, Y[:, :1]) > 0.93
    narrow = FenchelYoungOnlineMultilabelClassifier("sigmoid").fit(wide[:, :1], Y)
    assert narrow.n_features_in_ == 1
    assert narrow.score(wide[:, :1], Y) > np.mean(np.maximum(Y.mean(0), 1 - Y.mean(0)))
    several = MultiOutputClassifier(FenchelYoungOnlineClassifier()).fit(wide, Y)
    assert abs(np.mean(several.predict(wide) == Y) - clf.score(wide, Y)) < 0.03


def test_multilabel_scores_and_probabilities_agree():
    """Scores and probabilities never contradict each other or predict."""
    for params in (
        {},
        {"loss": "sigmoid"},
        {"loss": "sigmoid", "learner": "ogd"},
        {"learner": "ogd"},
    ):
        clf = FenchelYoungOnlineMultilabelClassifier(**params).fit(X, INDICATOR)
        scores, proba = clf.decision_function(X), clf.predict_proba(X)
        assert_array_equal(scores > 0, clf.predict(X) == 1)
        assert_array_equal(proba > 0.5, clf.predict(X) == 1)
        order = np.argsort(scores, axis=0)
        assert np.all(np.diff(np.take_along_axis(proba, order, axis=0), axis=0) >= 0)
        assert np.all((proba >= 0) & (proba <= 1))


def test_multilabel_names_of_labels():
    """`classes` names the columns."""
    clf = FenchelYoungOnlineMultilabelClassifier()
    clf.partial_fit(X, INDICATOR, classes=["a", "b", "c"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="names the 3 columns"):
        clone(clf).partial_fit(X, INDICATOR, classes=["a"])


# ---------------------------------------------------------------- ordinal


def test_ordinal_predicts_the_median():
    """predict is the median of predict_proba, and the best for absolute errors."""
    clf = FenchelYoungOnlineOrdinalClassifier().fit(X, LEVELS)
    proba = clf.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    above = 1.0 - np.cumsum(proba, axis=1)[:, :-1]
    assert_array_equal(clf.predict(X), (above > 0.5 + 1e-12).sum(axis=1))
    distance = np.abs(np.arange(4)[:, None] - np.arange(4))
    expected = proba @ distance
    chosen = expected[np.arange(len(X)), clf.predict(X)]
    assert_allclose(chosen, expected.min(axis=1), atol=1e-12)
    assert not hasattr(clf, "decision_function")


def test_ordinal_levels_in_a_given_order():
    """`classes` and ordered categories give the order; else labels are sorted."""
    pandas = pytest.importorskip("pandas", reason="test extra not installed")
    order = ["low", "mid", "high", "top"]
    names = np.array(order)[LEVELS]
    base = FenchelYoungOnlineOrdinalClassifier().fit(X, LEVELS)
    given = FenchelYoungOnlineOrdinalClassifier().partial_fit(X, names, classes=order)
    assert given.classes_.tolist() == order
    assert_array_equal(given.predict_proba(X), base.predict_proba(X))
    assert_array_equal(given.predict(X), np.array(order)[base.predict(X)])
    column = pandas.Series(pandas.Categorical(names, categories=order, ordered=True))
    frame = FenchelYoungOnlineOrdinalClassifier().fit(X, column)
    assert frame.classes_.tolist() == order
    assert_array_equal(frame.predict_proba(X), base.predict_proba(X))
    assert frame.score(X, column) == base.score(X, LEVELS)
    plain = FenchelYoungOnlineOrdinalClassifier().fit(X, names)
    assert plain.classes_.tolist() == sorted(order)


def test_ordinal_score_counts_levels():
    """The score is the negative mean absolute error, weighted on request."""
    clf = FenchelYoungOnlineOrdinalClassifier().fit(X, LEVELS)
    errors = np.abs(clf.predict(X) - LEVELS)
    assert clf.score(X, LEVELS) == pytest.approx(-errors.mean())
    weight = np.arange(len(X))
    assert clf.score(X, LEVELS, sample_weight=weight) == pytest.approx(
        -np.average(errors, weights=weight)
    )
    assert clf.score(X, LEVELS) > -np.abs(LEVELS - np.median(LEVELS)).mean()


# ---------------------------------------------------------------- ranking


def test_ranker_scores_are_correlations():
    """One minus the loss is (1 + Spearman) / 2, or the share of right positions."""
    from scipy.stats import spearmanr

    ranker = FenchelYoungOnlineRanker().fit(X, RANKS)
    predicted = ranker.predict(X)
    rho = [spearmanr(a, b).statistic for a, b in zip(predicted, RANKS, strict=True)]
    assert ranker.score(X, RANKS) == pytest.approx((1.0 + np.mean(rho)) / 2.0)
    assert ranker.score(X, RANKS) > 0.8
    matcher = FenchelYoungOnlineRanker("birkhoff").fit(X, RANKS)
    right = np.mean(matcher.predict(X) == RANKS)
    assert matcher.score(X, RANKS) == pytest.approx(right)


def test_matchings_count_from_zero_or_one():
    """Both forms are one problem; plays come back in the form of the first call."""
    zero = FenchelYoungOnlineRanker("birkhoff", random_state=0)
    one = clone(zero)
    assert_array_equal(zero.play(X, RANKS - 1) + 1, one.play(X, RANKS))
    assert_array_equal(zero.predict_proba(X), one.predict_proba(X))
    assert zero.predict(X).min() == 0
    assert one.predict(X).min() == 1
    zero.partial_fit(X, RANKS)
    one.partial_fit(X, RANKS - 1)
    assert_array_equal(zero.predict_proba(X), one.predict_proba(X))


def test_shapes_of_rankings():
    """Means and scores: one row per item, and one column per position for birkhoff."""
    ranker = FenchelYoungOnlineRanker().fit(X, RANKS)
    matcher = FenchelYoungOnlineRanker("birkhoff", mu=0.5).fit(X, RANKS)
    assert ranker.n_items_ == matcher.n_items_ == 3
    assert ranker.decision_function(X).shape == (120, 3)
    assert ranker.coef_.shape == (3, 4)
    assert matcher.coef_.shape == (9, 4)
    assert matcher.decision_function(X).shape == (120, 3, 3)
    for means in (matcher.predict_proba(X), matcher.decode_proba(X)):
        assert_allclose(means.sum(axis=1), 1.0, rtol=1e-12)
        assert_allclose(means.sum(axis=2), 1.0, rtol=1e-12)
    assert_allclose(ranker.decode_proba(X).sum(axis=1), 6.0, rtol=1e-12)
    with pytest.raises(ValueError, match="at least 2 items"):
        FenchelYoungOnlineRanker().fit(X, np.ones((120, 1), int))


# ---------------------------------------------------------------- size, cache


def test_wide_sparse_streams_stay_small():
    """A million features and twenty classes: memory is the state, touched on demand."""
    rng = np.random.default_rng(0)
    n, n_features = 300, 2**20
    rows = sp.csr_array(
        (
            np.ones(n * 20, np.float32),
            (np.repeat(np.arange(n), 20), rng.integers(0, n_features, n * 20)),
        ),
        shape=(n, n_features),
    )
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(rows, np.arange(n) % 20, classes=np.arange(20))
    assert clf._state_["table"].nbytes == (n_features + 1) * 96 * 4
    assert clf.predict(rows[:10]).shape == (10,)
    assert clf.expected_cumulative_loss_ <= n


def test_first_call_where_nothing_can_be_written(tmp_path):
    """It needs no folder of its own, and says nothing."""
    code = (
        "import numpy as np\n"
        "from skbounds import FenchelYoungOnlineClassifier\n"
        "X = np.arange(12.0).reshape(6, 2) % 5\n"
        "clf = FenchelYoungOnlineClassifier(random_state=0)\n"
        "clf.fit(X, [0, 1, 0, 1, 1, 0])\n"
        "print(clf.predict_proba(X).sum())\n"
    )
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    env = {**os.environ, "PYTHONWARNINGS": "error", "HOME": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) == pytest.approx(6.0)
    assert run.stderr == ""


def test_import_loads_no_plots():
    """matplotlib waits until something is drawn."""
    code = (
        "import sys\n"
        "from skbounds import FenchelYoungOnlineRanker, SurrogateRegretDisplay\n"
        "repr(FenchelYoungOnlineRanker()); FenchelYoungOnlineRanker().get_params()\n"
        "print('matplotlib' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.split() == ["False"]


# ---------------------------------------------------------------- display


@every
def test_display_shows_the_stream(estimator, y):
    """Curves are those of the stream; the certificate is never exceeded."""
    display = SurrogateRegretDisplay.from_estimator(
        estimator, X, y, n_points=7, plot=False
    )
    fitted = clone(estimator).fit(X, y)
    assert display.n_samples[-1] == len(X)
    assert display.expected_loss[-1] == pytest.approx(fitted.expected_cumulative_loss_)
    assert np.all(display.regret <= display.certificate + 1e-9)
    assert np.all(np.diff(display.comparator_loss) >= 0)
    assert not hasattr(estimator, "n_features_in_")


def test_display_features_are_those_of_the_learner():
    """Sparse streams and given comparators work as well."""
    rows = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    clf = FenchelYoungOnlineClassifier(random_state=0)
    display = SurrogateRegretDisplay.from_estimator(
        clf, rows, LABELS, comparator=np.zeros((3, 5)), plot=False
    )
    assert_allclose(display.comparator_loss[-1], len(X) * np.log(3.0))


def test_display_plots():
    """The axes carry regret, certificate and bound."""
    pytest.importorskip("matplotlib", reason="plot extra not installed")
    display = SurrogateRegretDisplay.from_estimator(
        FenchelYoungOnlineClassifier(random_state=0), X, LABELS
    )
    assert len(display.ax_.lines) == 4
    assert display.plot(show_bound=False) is display
    assert len(display.ax_.lines) == 3
    assert display.figure_ is display.ax_.figure


# ---------------------------------------------------------------- found by trying


def test_unsigned_indices_are_sorted_and_checked():
    """Differences of unsigned indices wrap around; nothing may be written outside."""
    rows = sp.random(60, 20, density=0.3, format="csr", random_state=0)
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(rows, np.arange(60) % 3)
    for wrong in ([0, 2**31 - 5, 1], [3, 1, 3]):
        with pytest.raises(ValueError, match="indices must"):
            clf.learn_one((np.array(wrong, dtype=np.uint32), np.ones(3)), 0)
    other = clone(clf).fit(rows, np.arange(60) % 3)
    clf.learn_one((np.array([7, 2, 5], dtype=np.uint8), [1.0, 2.0, 3.0]), 0)
    other.learn_one(([2, 5, 7], [2.0, 3.0, 1.0]), 0)
    assert state_of(clf._state_) == state_of(other._state_)


@every
def test_sparse_rows_of_a_dense_stream(estimator, y):
    """Zeros of standardised features count, whatever else is in the batch."""
    fitted = clone(estimator).fit(X + 2.0, y)
    rows = np.where(RNG.random((6, 4)) < 0.5, 0.0, X[:6] + 2.0)
    rows[:, 0] = 0.0
    expected = fitted.predict_proba(rows)
    assert_allclose(fitted.predict_proba(sp.csr_array(rows)), expected, atol=1e-12)
    single = fitted.predict_proba(sp.csr_array(rows[:1]))
    assert_allclose(single, expected[:1], atol=1e-12)


def test_certificate_of_a_learner_that_never_moves():
    """A step of 0, or one that underflows, is certified as what it is."""
    for params in ({}, {"learning_rate": 1e-300}):
        clf = FenchelYoungOnlineClassifier(learner="ogd", fit_intercept=False, **params)
        clf.partial_fit(np.zeros((2, 1)), [0, 1], classes=[0, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.partial_fit(np.ones((1000, 1)), np.zeros(1000, int))
        losses = 2.0 + 1000 * np.logaddexp(0.0, -10.0) / np.log(2.0)
        regret = clf.expected_cumulative_loss_ - losses
        assert clf.surrogate_regret_certificate(np.sqrt(50.0)) >= regret


@pytest.mark.parametrize("seed", range(10))
def test_single_precision_rows_are_not_longer_than_themselves(seed):
    """The norm of the first call's rows covers them, in any precision."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 20)).astype(np.float32)
    for form in (rows, sp.csr_array(rows)):
        clf = FenchelYoungOnlineClassifier(learner="ogd")
        assert clf.fit(form, rng.integers(0, 3, 200)).bound_valid_


def test_large_single_precision_rows():
    """Scaled they are fine; unscaled they are refused before they overflow."""
    rows = (1e19 * X).astype(np.float32)
    clf = FenchelYoungOnlineClassifier().fit(rows, LABELS)
    assert np.all(np.isfinite(clf.predict_proba(rows)))
    with pytest.raises(ValueError, match=r"below 1e\+15"):
        FenchelYoungOnlineClassifier(feature_scaling="none").fit(rows, LABELS)


def test_no_bound_without_a_gap_whatever_the_rows():
    """Rows of length 0 do not make a decoding safe."""
    clf = FenchelYoungOnlineClassifier(
        "sparsemax", learner="auto", decoding="argmax", fit_intercept=False
    )
    clf.partial_fit(np.zeros((100, 1)), np.ones(100, int), classes=[0, 1])
    assert np.isnan(clf.surrogate_regret_bound(1.0))
    assert not clf.bound_valid_


@every
def test_scores_check_lengths(estimator, y):
    """One row of targets must not be broadcast; unfitted is NotFittedError."""
    with pytest.raises(NotFittedError):
        clone(estimator).score(X, y)
    fitted = clone(estimator).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        fitted.score(X, y[:1])
    with pytest.raises(ValueError):
        fitted.score(X, y, sample_weight=np.ones(3))


def test_multilabel_scores_stay_finite():
    """Log-odds of probabilities that round to 0 or 1."""
    clf = FenchelYoungOnlineMultilabelClassifier("sigmoid", experts=(16.0, 64.0))
    labels = (X[:, :2] > 0).astype(int)
    clf.fit(np.tile(X, (20, 1)), np.tile(labels, (20, 1)))
    assert np.all(np.isfinite(clf.decision_function(100.0 * X)))


def test_closed_accounts_stay_closed():
    """After several passes bounds are about the first, whatever comes later."""
    clf = FenchelYoungOnlineClassifier(max_iter=2, fit_intercept=False).fit(X, LABELS)
    before = clf.surrogate_regret_bound(1.0), clf.surrogate_regret_certificate(1.0)
    clf.partial_fit(100.0 * X, LABELS)
    after = clf.surrogate_regret_bound(1.0), clf.surrogate_regret_certificate(1.0)
    assert after == before


@pytest.mark.parametrize("classes", [[], 3, [[0, 1]], [0.0, np.nan]])
def test_classes_must_be_labels(classes):
    """The error names classes."""
    with pytest.raises(ValueError, match="classes"):
        FenchelYoungOnlineClassifier().partial_fit(X, LABELS, classes=classes)


def test_the_order_of_levels_is_fixed():
    """For levels the order is the meaning."""
    clf = FenchelYoungOnlineOrdinalClassifier()
    clf.partial_fit(X, LEVELS, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="began with"):
        clf.partial_fit(X, LEVELS, classes=[3, 2, 1, 0])


def test_three_items_are_rescaled():
    """A ratio of exactly one leaves no gap; rounding must not hide it."""
    ranker = FenchelYoungOnlineRanker().fit(X, RANKS)
    assert ranker.loss_scale_ == pytest.approx(2.0)
    assert ranker.surrogate_regret_bound(1.0) < 100.0


@pytest.mark.parametrize(
    "params",
    [
        {"feature_norm": 1e-300},
        {"feature_norm": 1e160},
        {"learning_rate": 1e300},
        {"learning_rate": 0.0},
    ],
)
def test_parameters_without_a_finite_square(params):
    """Refused by name, not by a division by zero or NaN."""
    clf = FenchelYoungOnlineClassifier(learner="ogd", **params)
    with pytest.raises(ValueError, match=next(iter(params))):
        clf.fit(X, LABELS)


def test_learn_one_refuses_other_kinds_of_rows_and_targets():
    """Complex rows, and rankings that are not vectors."""
    clf = FenchelYoungOnlineClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="x must be real"):
        clf.learn_one(X[0] + 1j, "ant")
    ranker = FenchelYoungOnlineRanker().fit(X, RANKS)
    for wrong in ([[1], [2], [3]], None):
        with pytest.raises(ValueError, match="vector of 3 ranks"):
            ranker.learn_one(X[0], wrong)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_points": 0}, ValueError, "n_points"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"comparator": np.zeros((3, 4))}, ValueError, r"shape \(3, 5\); got \(3, 4\)"),
    ],
)
def test_display_refuses(params, error, message):
    """Errors name the argument."""
    clf = FenchelYoungOnlineClassifier()
    with pytest.raises(error, match=message):
        SurrogateRegretDisplay.from_estimator(clf, X, LABELS, plot=False, **params)


def test_display_is_for_online_estimators():
    """A pipeline does not learn row by row."""
    from sklearn.pipeline import make_pipeline

    with pytest.raises(TypeError, match="got Pipeline"):
        SurrogateRegretDisplay.from_estimator(
            make_pipeline(FenchelYoungOnlineClassifier()), X, LABELS
        )
