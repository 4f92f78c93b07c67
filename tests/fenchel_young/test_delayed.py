"""Labels that come later than the plays."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.fenchel_young import decode_mean, nearest, target_loss
from sklearn.exceptions import NotFittedError

from skbounds import FenchelYoungOnlineClassifier, FenchelYoungOnlineRanker
from skbounds.fenchel_young._bounds import anytime_interval

from .test_guarantees import LEARNERS, STRUCTURES, targets_from

ACCOUNTS = [
    "cumulative_loss_",
    "expected_cumulative_loss_",
    "cumulative_surrogate_loss_",
    "n_samples_seen_",
    "sum_of_weights_",
]


def make_stream(kind="classes", n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ rng.normal(size=(4, 4)) + 0.5 * rng.normal(size=(n, 4))
    return X, targets_from(scores, kind)


def begin(cls, params, X, y, **learner):
    return cls(random_state=3, **params, **learner).partial_fit(X, y)


def rows_of(X, sparse):
    """Return single rows as `learn_one` takes them."""
    if not sparse:
        return list(X)
    matrix = sp.csr_matrix(X)
    return [(row.indices, row.data) for row in (matrix[i] for i in range(len(X)))]


def assert_same_state(one, other):
    for name, array in one._state_.items():
        assert_array_equal(array, other._state_[name], err_msg=name)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_ticket_learnt_at_once_is_learn_one(structure, learner, sparse):
    """Plays, accounts and all state, to the bit."""
    cls, params, kind = STRUCTURES[structure]
    X, y = make_stream(kind)
    X[np.abs(X) < 0.3] = 0.0
    first = sp.csr_matrix(X[:30]) if sparse else X[:30]
    one = begin(cls, params, first, y[:30], **LEARNERS[learner])
    two = begin(cls, params, first, y[:30], **LEARNERS[learner])
    rng = np.random.default_rng(1)
    for x, target in zip(rows_of(X[30:], sparse), y[30:], strict=True):
        weight = float(rng.choice([1.0, 0.5, 3.0]))
        played = one.learn_one(x, target, sample_weight=weight)
        ticket = two.play_one(x, sample_weight=weight)
        assert_array_equal(ticket.play, played)
        assert_array_equal(two.learn_one(ticket, target), played)
    assert_same_state(one, two)
    assert two.n_open_tickets_ == 0


@pytest.mark.parametrize("structure", STRUCTURES)
def test_play_one_leaves_no_trace(structure):
    cls, params, kind = STRUCTURES[structure]
    X, y = make_stream(kind)
    one = begin(cls, params, X[:40], y[:40], learner="auto")
    two = begin(cls, params, X[:40], y[:40], learner="auto")
    for x in 1e3 * X[40:]:
        two.play_one(x)
    assert_same_state(one, two)
    assert two.n_open_tickets_ == 50


def test_accounts_of_plays_and_of_regret_are_kept_apart():
    """Plays by what was played; regret by predictions when rows were learnt.

    The learner on raw features with a constant step, recomputed row by row.
    """
    X, y = make_stream(n=60)
    clf = FenchelYoungOnlineClassifier(
        learner="ogd", feature_norm=10.0, fit_intercept=False, random_state=0
    ).partial_fit(X[:1], y[:1], classes=range(4))
    tickets = [clf.play_one(x) for x in X[1:]]
    order = np.random.default_rng(0).permutation(59)
    for i in order:
        clf.learn_one(tickets[i], y[1 + i])
    W, step = np.zeros((4, 4)), clf._step_
    losses, regret_losses, wrong, drawn = 0.0, 0.0, 0, 0

    def law_of(x):
        scores = W @ x
        p = np.exp(scores - scores.max())
        return p / p.sum()

    def learn(x, target):
        nonlocal W, regret_losses
        p = law_of(x)
        mean = decode_mean("simplex", p, "randomized", "logistic")
        regret_losses += 1.0 - mean[target]
        W = W - step * np.outer(p - np.eye(4)[target], x)

    learn(X[0], y[0])
    losses, wrong = regret_losses, int(y[0] != 0)
    played = [law_of(x) for x in X[1:]]
    for p, target, ticket in zip(played, y[1:], tickets, strict=True):
        u = decode_mean("simplex", p, "randomized", "logistic")
        losses += target_loss("simplex", u, np.eye(4)[target])
        wrong += np.argmax(nearest("simplex", p)) != target
        drawn += ticket.play != target
    for i in order:
        learn(X[1 + i], y[1 + i])
    assert_allclose(clf.coef_, W, rtol=1e-10, atol=1e-12)
    assert_allclose(clf.expected_cumulative_loss_, losses, rtol=1e-12)
    assert clf.progressive_errors_ == wrong
    assert clf.cumulative_loss_ - drawn in (0.0, 1.0)
    # All rows were played with nearly untrained weights: later predictions are better.
    assert regret_losses < losses - 1.0
    U = np.random.default_rng(1).normal(size=(4, 4))
    features, targets = X[np.r_[0, 1 + order]], y[np.r_[0, 1 + order]]
    regret = regret_losses - clf.comparator_loss(U, features, targets)
    certified = clf.surrogate_regret_certificate(coef=U)
    assert certified >= regret - 1e-9
    assert clf.surrogate_regret_bound(np.linalg.norm(U)) >= regret
    # The statement about the plays adds what they cost more.
    assert_allclose(
        clf.surrogate_regret_certificate(coef=U, delta=0.05),
        certified + losses - regret_losses + clf.draw_margin(0.05),
        rtol=1e-12,
    )


def test_the_error_interval_covers_plays_without_a_label():
    X, y = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X[:50], y[:50])
    tickets = [clf.play_one(x) for x in X[50:80]]
    for ticket, target in zip(tickets[20:], y[70:80], strict=True):
        clf.learn_one(ticket, target)
    for kind, total in [
        ("predict", clf.progressive_errors_),
        ("play", clf.expected_cumulative_loss_),
    ]:
        low, high = clf.error_interval(0.9, kind)
        assert_allclose(low, anytime_interval(total, 80, 0.1)[0], rtol=1e-12)
        assert_allclose(high, anytime_interval(total + 20, 80, 0.1)[1], rtol=1e-12)


def test_the_error_interval_with_weights():
    X, y = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(X[:50], y[:50], sample_weight=np.full(50, 2.0))
    for x in X[50:60]:
        clf.play_one(x, sample_weight=3.0)
    low, high = clf.error_interval(0.9)
    total = clf.progressive_errors_
    unit = 60 * 3.0 / 130.0
    assert_allclose(low, unit * anytime_interval(total / 3, 60, 0.1)[0], rtol=1e-12)
    assert_allclose(
        high, unit * anytime_interval((total + 30.0) / 3, 60, 0.1)[1], rtol=1e-12
    )


@pytest.mark.slow
def test_the_error_interval_holds_with_late_and_lost_labels():
    """Noise and a drifting rate; labels of half of the plays come late, some never."""
    failures, repetitions = 0, 300
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(250, 3))
        clf = FenchelYoungOnlineClassifier(
            random_state=seed, learner="ogd", feature_norm=10.0
        )
        clf.partial_fit(X[:1], [0], classes=[0, 1])
        waiting, error = [], []
        missed = False
        for t, x in enumerate(X[1:]):
            chance = 0.5 + 0.3 * np.sin(t / 30.0)
            ticket = clf.play_one(x)
            # The label is a coin: of predict the error to be expected is known.
            guess = int(ticket.nearest[0, 0])
            error.append(chance if guess == 0 else 1.0 - chance)
            label = int(rng.random() < chance)
            waiting.append((ticket, label))
            if rng.random() < 0.5 and len(waiting) > 3:
                clf.learn_one(*waiting.pop(rng.integers(len(waiting))))
            if t % 40 == 39:
                low, high = clf.error_interval(0.9)
                # The first row's label was fixed, and its error is known to be 0.
                missed |= not low <= np.sum(error) / (t + 2) <= high
        failures += missed
    assert failures <= 0.1 * repetitions


def test_draws_of_open_tickets_are_independent():
    """Each play has its own uniform number, whatever is learnt between them."""
    clf = FenchelYoungOnlineClassifier(random_state=0, decoding="sample")
    clf.partial_fit(np.zeros((2, 1)), [0, 1])
    x = np.zeros(1)
    plays, tickets = [], []
    for k in range(4000):
        ticket = clf.play_one(x)
        plays.append(int(ticket.play))
        tickets.append(ticket)
        if k % 3 == 2:
            ticket = tickets.pop(0)
            clf.learn_one(ticket, k // 3 % 2)
    plays = np.array(plays)
    share = plays.mean()
    assert abs(share - 0.5) < 0.05
    pairs = np.corrcoef(plays[:-1], plays[1:])[0, 1]
    assert abs(pairs) < 4 / np.sqrt(len(plays))


def test_tickets_and_estimators_can_be_pickled():
    X, y = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X[:50], y[:50])
    tickets = [clf.play_one(x) for x in X[50:55]]
    copy, copies = pickle.loads(pickle.dumps((clf, tickets)))
    for target, ours, theirs in zip(y[50:55], tickets[::-1], copies[::-1], strict=True):
        clf.learn_one(ours, target)
        copy.learn_one(theirs, target)
    assert_same_state(clf, copy)


def test_a_ticket_does_not_change_with_the_row():
    X, y = make_stream()
    one = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X[:50], y[:50])
    two = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X[:50], y[:50])
    x = X[50].copy()
    ticket = one.play_one(x)
    x[:] = 7.0
    one.learn_one(ticket, y[50])
    two.learn_one(X[50], y[50])
    assert_same_state(one, two)


def test_tickets_that_are_refused():
    X, y = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0)
    with pytest.raises(NotFittedError, match="partial_fit"):
        clf.play_one(X[0])
    clf.partial_fit(X[:50], y[:50])
    other = FenchelYoungOnlineClassifier(random_state=1).partial_fit(X[:50], y[:50])
    ticket = clf.play_one(X[50])
    assert repr(ticket).startswith(f"Ticket(number=50, play={ticket.play!r}")
    other.play_one(X[50])
    with pytest.raises(ValueError, match="of another stream"):
        other.learn_one(ticket, y[50])
    with pytest.raises(ValueError, match="given to play_one"):
        clf.learn_one(ticket, y[50], sample_weight=2.0)
    before = {name: array.copy() for name, array in clf._state_.items()}
    with pytest.raises(ValueError, match="not in classes_"):
        clf.learn_one(ticket, 17)
    for name, array in clf._state_.items():
        assert_array_equal(array, before[name])
    clf.learn_one(ticket, y[50])
    with pytest.raises(ValueError, match="ticket 50 was learnt before"):
        clf.learn_one(ticket, y[50])
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        clf.play_one(X[51], sample_weight=0.0)
    with pytest.raises(ValueError, match="x must have shape"):
        clf.play_one(X[51, :2])
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clf.play_one([np.nan, 0, 0, 0])
    assert clf.n_open_tickets_ == 0


def test_matchings_keep_no_progressive_errors_of_tickets():
    X, y = make_stream("ranks")
    ranker = FenchelYoungOnlineRanker("birkhoff", random_state=0)
    ranker.partial_fit(X[:50], y[:50])
    ranker.learn_one(ranker.play_one(X[50]), y[50])
    with pytest.raises(AttributeError, match="matchings"):
        _ = ranker.progressive_errors_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_single_rows_are_predicted_as_many_are(structure, learner, sparse):
    """The fast way for one row, against the matrix products."""
    cls, params, kind = STRUCTURES[structure]
    X, y = make_stream(kind)
    X[np.abs(X) < 0.3] = 0.0
    X = sp.csr_matrix(X) if sparse else X
    fitted = begin(cls, params, X[:60], y[:60], **LEARNERS[learner])
    together = fitted._predict_points(X[60:])
    single = [fitted._predict_points(X[i : i + 1])[0] for i in range(60, X.shape[0])]
    assert_allclose(single, together, rtol=1e-9, atol=1e-12)
    assert_array_equal(
        np.concatenate([fitted.predict(X[i : i + 1]) for i in range(60, 90)]),
        fitted.predict(X[60:]),
    )


def test_tickets_of_a_fit_before_are_refused():
    X, y = make_stream()
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(X, y)
    old = clf.play_one(X[0])
    clf.fit(X[::-1].copy(), y)
    new = clf.play_one(X[1])
    with pytest.raises(ValueError, match="of another stream"):
        clf.learn_one(old, y[0])
    clf.learn_one(new, y[1])
    twin = FenchelYoungOnlineClassifier(random_state=0).fit(X, y)
    twin.play_one(X[0])
    with pytest.raises(ValueError, match="of another stream"):
        twin.learn_one(clf.play_one(X[2]), y[2])


def test_rows_of_more_digits_than_the_stream_are_not_rounded():
    """Seconds since 1970 on a stream in single precision."""
    rng = np.random.default_rng(0)
    X = (1.7e9 + 1000.0 * rng.normal(size=(300, 2))).astype(np.float32)
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(X, X[:, 0] > 1.7e9)
    rows = 1.7e9 + 1000.0 * rng.normal(size=(5, 2))
    single = [clf.predict_proba(rows[i : i + 1])[0] for i in range(5)]
    assert_allclose(single, clf.predict_proba(rows), rtol=1e-9)
