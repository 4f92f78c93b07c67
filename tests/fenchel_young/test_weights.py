"""Importance weights of a stream's rows."""

from math import log, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.fenchel_young import decode_mean
from scipy.special import logsumexp, softmax

from skbounds import FenchelYoungOnlineClassifier
from skbounds.fenchel_young._offline import comparator_losses, fit_comparator

from .test_guarantees import LEARNERS, STRUCTURES, targets_from


def make_stream(kind="classes", n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    scores = X @ rng.normal(size=(5, 4)) + rng.normal(size=(n, 4))
    weight = np.exp(rng.normal(size=n))
    return X, targets_from(scores, kind), weight


def by_structure_and_learner(test):
    test = pytest.mark.parametrize("learner", LEARNERS)(test)
    return pytest.mark.parametrize("structure", STRUCTURES)(test)


# ------------------------------------------------ a slow reference, from the definition


def reference(
    X, Y, weight, learner, step, *, share=0.0, experts=(), diameter=None, known=None
):
    """Return class probabilities played and final (mixed) scores' weights.

    In row t only the classes up to ``known[t]`` are there.

    Y is one-hot; the loss is the logistic one, features are as they are. The mixture's
    Bayes weights without sharing are those of all losses so far, each divided by the
    largest weight so far.
    """
    d = X.shape[1]
    K, M = Y.shape[1], 1 + len(experts)
    W = np.zeros((M, K, d))
    Z, G, S, past, lengths = np.zeros((K, d)), np.zeros(d), 0.0, [], []
    totals, q, largest, played, mixed_losses = np.zeros(M), np.ones(M) / M, 0.0, [], []
    known = np.full(len(X), K) if known is None else known
    for x, y, w, last in zip(X, Y, weight, known, strict=True):
        before, largest = largest, max(largest, w)
        past.append(sqrt(w) * np.linalg.norm(x))
        lengths.append(np.linalg.norm(x))
        C = max(past)
        if learner in ("dual", "mixture"):
            W[0] = -step / C**2 * Z
        f = 1.0 / sqrt(np.mean(np.square(lengths)))
        scores = np.array([W[0] @ x] + [f * V @ x for V in W[1:]])
        scores[:, last + 1 :] = -np.inf
        P = softmax(scores, axis=1)
        own = np.log(P @ y)
        if share == 0.0:
            q = softmax(-totals / largest)
        elif 0.0 < before < largest:
            q = q ** (before / largest)
            q = q / q.sum()
        played.append(q @ P)
        mixed = logsumexp(np.log(q) + own)
        mixed_losses.append(-mixed)
        if share > 0.0:
            alpha = share * (1.0 - np.exp(mixed)) * w / largest
            posterior = softmax(np.log(q) + own * w / largest)
            q = (1.0 - alpha) * posterior + alpha / M
        totals -= w * own
        gradient = w * (P - y)[:, :, None] * x
        if learner == "ogd":
            W[0] -= step * gradient[0]
        elif learner == "adaptive":
            S += (gradient[0] ** 2).sum()
            W[0] -= diameter / sqrt(2.0 * max(S, 1e-300)) * gradient[0]
            W[0] *= min(1.0, 0.5 * diameter / max(np.linalg.norm(W[0]), 1e-300))
        Z += gradient[0]
        if learner in ("dual", "mixture"):
            energy = (w * (P[1:] - y)) ** 2
            G += (f * x) ** 2 * energy.sum() / max(len(experts), 1)
            for m, rate in enumerate(experts, start=1):
                size = rate * f * x / np.sqrt(G + 2.0 * (f * largest) ** 2)
                W[m] -= w * (P[m] - y)[:, None] * size
    return np.array(played), np.array(mixed_losses), W, Z


@pytest.mark.parametrize("learner", ["ogd", "adaptive", "mixture", "shared mixture"])
def test_weighted_learners_equal_a_slow_reference(learner):
    """Predictions row by row, accounts, and the gradients that certificates have."""
    X, y, weight = make_stream()
    Y = np.eye(4)[y]
    experts = (1.0, 4.0) if "mixture" in learner else ()
    share = 0.02 if learner == "shared mixture" else 0.0
    params = {"learner": learner.split()[-1], "feature_scaling": "none"}
    if experts:
        params |= {"experts": experts, "share": share}
    clf = FenchelYoungOnlineClassifier(
        fit_intercept=False, diameter=3.0, random_state=0, **params
    )
    seen = []
    for i in range(len(X)):
        if i:
            seen.append(clf.predict_proba(X[i : i + 1])[0])
        clf.partial_fit(
            X[i : i + 1], y[i : i + 1], classes=range(4),
            sample_weight=weight[i : i + 1],
        )  # fmt: skip
    played, losses, _, Z = reference(
        X, Y, weight, params["learner"], clf._step_, share=share, experts=experts,
        diameter=3.0,
    )  # fmt: skip
    if not experts:
        # Mixtures are tempered when a row of a new largest weight comes, before it is
        # played: predictions of other rows are without.
        assert_allclose(seen, played[1:], rtol=1e-9)
    scale = clf.loss_scale_
    assert_allclose(clf.cumulative_surrogate_loss_, scale * weight @ losses, rtol=1e-10)
    means = [decode_mean("simplex", u, "randomized", "logistic") for u in played]
    errors = 1.0 - np.sum(means * Y, axis=1)
    assert_allclose(clf.expected_cumulative_loss_, weight @ errors, rtol=1e-9)
    assert_allclose(clf.sum_of_weights_, weight.sum())
    lengths = np.sqrt(weight) * np.linalg.norm(X, axis=1)
    if experts:
        assert_allclose(clf.feature_norm_, lengths.max(), rtol=1e-12)
        assert_allclose(clf._sum_of_gradients(), Z.T, rtol=1e-9, atol=1e-9)


# ------------------------------------------------ limits


@by_structure_and_learner
def test_equal_weights_change_the_accounts_alone(structure, learner):
    """c times the loss is the same problem: the steps are the theorems' for it."""
    cls, params, kind = STRUCTURES[structure]
    X, y, _ = make_stream(kind)
    rows = np.random.default_rng(1).normal(size=(20, 5))
    fitted = []
    for c in (1.0, 8.0):
        est = cls(random_state=0, **params, **LEARNERS[learner])
        est.partial_fit(X, y, sample_weight=np.full(len(y), c))
        fitted.append(est)
    plain, weighted = fitted
    assert_allclose(
        weighted.predict_proba(rows), plain.predict_proba(rows), rtol=1e-9, atol=1e-12
    )
    for name in ("cumulative_loss_", "expected_cumulative_loss_", "sum_of_weights_"):
        assert_allclose(getattr(weighted, name), 8.0 * getattr(plain, name))
    assert_allclose(
        weighted.surrogate_regret_certificate(2.0),
        8.0 * plain.surrogate_regret_certificate(2.0),
        rtol=1e-9,
    )
    assert_allclose(
        weighted.surrogate_regret_bound(2.0), 8.0 * plain.surrogate_regret_bound(2.0)
    )


@by_structure_and_learner
def test_rows_of_weight_zero_leave_no_trace(structure, learner):
    """As without them; `play` returns what is played on them all the same."""
    cls, params, kind = STRUCTURES[structure]
    X, y, weight = make_stream(kind)
    weight[:9] = 1.0
    weight[[12, 13, 50, len(y) - 1]] = 0.0
    kept = weight > 0.0
    est = cls(random_state=0, average=True, **params, **LEARNERS[learner])
    other = cls(random_state=0, average=True, **params, **LEARNERS[learner])
    plays = est.play(X, y, sample_weight=weight)
    expected = other.play(X[kept], y[kept], sample_weight=weight[kept])
    assert_array_equal(plays[kept], expected)
    assert plays.shape == np.shape(y)
    third = cls(random_state=0, average=True, **params, **LEARNERS[learner])
    third.partial_fit(X, y, sample_weight=weight)
    for name, array in est._state_.items():
        assert_array_equal(array, other._state_[name])
        assert_array_equal(array, third._state_[name])
    before = {name: array.copy() for name, array in est._state_.items()}
    est.learn_one(X[0], y[0], sample_weight=0.0)
    for name, array in est._state_.items():
        assert_array_equal(array, before[name])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
def test_weighted_streams_may_be_cut(learner, sparse):
    """Row by row, in pieces, or at once: the same bits."""
    X, y, weight = make_stream(n=60)
    weight[7] = 0.0
    rows = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)) if sparse else X
    norm = 5.0 * float(np.sqrt(weight.max()))
    make = lambda: FenchelYoungOnlineClassifier(
        random_state=0, feature_norm=norm, average=True, **LEARNERS[learner]
    )
    whole, parts, single = make(), make(), make()
    start = {"classes": range(4), "sample_weight": weight[:5]}
    first = [est.play(rows[:5], y[:5], **start) for est in (whole, parts, single)]
    plays = np.append(first[0], whole.play(rows[5:], y[5:], sample_weight=weight[5:]))
    pieces = [
        parts.play(rows[i : i + 11], y[i : i + 11], sample_weight=weight[i : i + 11])
        for i in range(5, 60, 11)
    ]
    one_by_one = []
    for i in range(5, 60):
        row = rows[[i]]
        x = (row.indices, row.data) if sparse else X[i]
        one_by_one.append(single.learn_one(x, y[i], sample_weight=weight[i]))
    assert_array_equal(np.concatenate(pieces), plays[5:])
    assert_array_equal(one_by_one, plays[5:])
    for name, array in whole._state_.items():
        assert_array_equal(array, parts._state_[name])
        assert_array_equal(array, single._state_[name])


def test_a_heavy_row_moves_more_than_a_light_one():
    """And less than infinitely: the mixture is normalised by the largest weight."""
    X, y, _ = make_stream()
    moves = []
    for w in (0.01, 1.0, 100.0):
        clf = FenchelYoungOnlineClassifier(random_state=0).fit(X, y)
        before = clf.predict_proba(X[:1])[0]
        clf.partial_fit(X[:1], y[:1], sample_weight=[w])
        moves.append(clf.predict_proba(X[:1])[0][y[0]] - before[y[0]])
    assert 0.0 < moves[0] < moves[1] < moves[2]


# ------------------------------------------------ guarantees


@by_structure_and_learner
@pytest.mark.parametrize("order", ["any", "growing"])
def test_weighted_regret_stays_below_bound_and_certificate(structure, learner, order):
    """Rows weighed as they were learnt, against comparators of several norms."""
    cls, params, kind = STRUCTURES[structure]
    X, y, weight = make_stream(kind, n=400, seed=3)
    weight = np.clip(weight**2, 0.02, 20.0)
    if order == "growing":
        # Whenever the largest weight grows, the mixture is tempered.
        weight = np.sort(weight)
    est = cls(random_state=0, **params, **LEARNERS[learner])
    # A call for the whole stream: its longest row is known.
    est.partial_fit(X, y, sample_weight=weight)
    features = est._seen_features(X)
    codes = est._encode(y, None, False, False)
    loss = est._make_loss()
    assert est.bound_valid_
    checked = 0
    for alpha in (1e-1, 1.0, 10.0, 1e3):
        coef = fit_comparator(loss, features, codes, alpha)
        norm = float(np.linalg.norm(coef))
        losses = weight @ comparator_losses(loss, features, codes, coef)
        regret = est.expected_cumulative_loss_ - est.loss_scale_ * losses
        bound = est.surrogate_regret_bound(norm)
        assert regret <= est.surrogate_regret_certificate(norm) + 1e-8
        if not np.isnan(bound):
            assert regret <= bound
            checked += 1
    assert checked == 0 if learner == "parameter_free" else checked >= 1


@pytest.mark.parametrize("share", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_mixture_is_as_good_as_its_best_expert(seed, share):
    """The weighted log-loss exceeds an expert's by at most ln M per largest weight."""
    rng = np.random.default_rng(seed)
    X, y, weight = make_stream(n=300, seed=seed)
    weight = weight ** rng.uniform(0.5, 4.0)
    clf = FenchelYoungOnlineClassifier(
        experts=(1.0, 16.0), share=share, feature_scaling="none", fit_intercept=False
    )
    clf.partial_fit(X, y, sample_weight=weight)
    # Expert 0's own loss is in the accounts.
    regret = clf.cumulative_surrogate_loss_ - clf._scalar("SURROGATE_BASE")
    allowed = -log(1.0 - share) * clf.cumulative_surrogate_loss_
    assert regret <= weight.max() * log(3.0) + allowed + 1e-9


# ------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0], "shape"),
        (-1.0, "must be 0, or from"),
        (np.nan, "must be 0, or from"),
        (np.inf, "must be 0, or from"),
        (1e200, "must be 0, or from"),
    ],
)
def test_bad_weights_are_refused_and_change_nothing(weight, message):
    X, y, _ = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(X, y)
    before = clf.predict_proba(X)
    wrong = weight if isinstance(weight, list) else np.full(len(y), weight)
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(X, y, sample_weight=wrong)
    if not isinstance(weight, list):
        with pytest.raises(ValueError, match=message):
            clf.learn_one(X[0], y[0], sample_weight=weight)
    assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("scaling", ["auto", "standard", "none"])
@pytest.mark.parametrize("weight", [1e16, 1e25, 1e100, 1e-16, 1e-100])
def test_single_precision_takes_no_extreme_weights(scaling, weight):
    """Sums of their squares, or steps over them, would be infinite: no coefficients."""
    X, y, _ = make_stream()
    clf = FenchelYoungOnlineClassifier(feature_scaling=scaling, random_state=0)
    clf.partial_fit(X.astype(np.float32), y)
    before = clf.predict_proba(X)
    for call in (
        lambda: clf.partial_fit(X, y, sample_weight=np.full(len(y), weight)),
        lambda: clf.learn_one(X[0], y[0], sample_weight=weight),
        lambda: clf.play_one(X[0], sample_weight=weight),
    ):
        with pytest.raises(ValueError, match=r"to 1e\+15 in single precision"):
            call()
    assert_array_equal(clf.predict_proba(X), before)
    for first in (1e-15, 1e15):
        single = FenchelYoungOnlineClassifier(feature_scaling=scaling, random_state=0)
        given = np.where(np.arange(len(y)) % 3, 1.0, first)
        single.partial_fit(X.astype(np.float32), y, sample_weight=given)
        assert np.isfinite(single.coef_).all()
        assert np.isfinite(single.cumulative_surrogate_loss_)


# ------------------------------------------------ rows of weight 0 are played


@pytest.mark.parametrize("scaling", ["auto", "standard", "none"])
def test_first_rows_of_weight_zero_are_played(scaling):
    """Before anything is learnt: by the uniform law, without a word."""
    X, y, _ = make_stream()
    clf = FenchelYoungOnlineClassifier(feature_scaling=scaling, random_state=0)
    plays = clf.play(X[:5], y[:5], classes=range(4), sample_weight=np.zeros(5))
    assert set(plays) <= set(range(4))
    assert clf.n_samples_seen_ == 0
    assert_allclose(clf.predict_proba(X[:3]), 0.25)
    other = FenchelYoungOnlineClassifier(feature_scaling=scaling, random_state=0)
    other.partial_fit(X, y, classes=range(4))
    clf.partial_fit(X, y)
    assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


def test_plays_of_weight_zero_do_not_depend_on_cuts():
    """At once, in pieces, row by row, or with rows that are learnt in between."""
    X, y, _ = make_stream()
    learnt = np.arange(len(y)) % 4 == 0
    for weight in (np.zeros(len(y)), np.where(learnt, 1.0, 0.0)):
        found = []
        for size in (len(y), 7, 1):
            clf = FenchelYoungOnlineClassifier(decoding="sample", random_state=0)
            clf.partial_fit(X[:4], y[:4], classes=range(4))
            plays = []
            for i in range(0, len(y), size):
                part = slice(i, i + size)
                if size == 1:
                    play = clf.learn_one(X[i], y[i], sample_weight=float(weight[i]))
                    plays.append([play])
                    continue
                given = {"sample_weight": weight[part]}
                plays.append(clf.play(X[part], y[part], **given))
            found.append(np.concatenate(plays))
        assert_array_equal(found[1], found[0])
        assert_array_equal(found[2], found[0])
    # Each has draws of its own.
    assert len(set(found[0][weight == 0.0])) > 1
