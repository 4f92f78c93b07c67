"""Details that no other test saw: found by small changes of the code."""

import warnings

import pytest
from numpy.testing import assert_allclose

from fenchel_young.test_growing import make_stream
from skbounds.fenchel_young import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    _bounds,
)


def test_margin_of_few_draws():
    """With a variance below one, which is not rounded up."""
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.play([[1.0, 2.0]], [1], classes=[0, 1])
    loss = clf.expected_cumulative_loss_
    assert 0.0 < loss < 1.0
    expected = _bounds.draw_margin(loss * (1.0 - loss), 0.1)
    assert_allclose(clf.draw_margin(0.1), expected, rtol=1e-12)
    assert expected < 0.9 * _bounds.draw_margin(1.0, 0.1)
    # Losses that count four times are in units of four.
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.play([[1.0, 2.0]], [1], classes=[0, 1], sample_weight=[4.0])
    assert_allclose(clf.expected_cumulative_loss_, 4.0 * loss)
    assert_allclose(clf.draw_margin(0.1), 4.0 * expected, rtol=1e-12)


@pytest.mark.parametrize("learner", ["mixture", "ogd", "adaptive"])
def test_certificates_of_classes_that_come_late(learner):
    """The same whether rows are learnt at once, one by one, or with tickets."""
    X, y = make_stream()
    learners = [
        FenchelYoungOnlineClassifier(
            learner=learner, diameter=20.0, feature_norm=10.0, random_state=0
        ).partial_fit(X[:1], y[:1], classes="grow")
        for _ in range(3)
    ]
    whole, single, tickets = learners
    weight = 1.0 + y % 2
    whole.partial_fit(X[1:], y[1:], sample_weight=weight[1:])
    for x, label, w in zip(X[1:], y[1:], weight[1:], strict=True):
        single.learn_one(x, label, sample_weight=w)
        tickets.learn_one(tickets.play_one(x, sample_weight=w), label)
    expected = whole.surrogate_regret_certificate(1.0)
    for other in (single, tickets):
        assert_allclose(other.surrogate_regret_certificate(1.0), expected, rtol=1e-10)
        # Nothing was learnt later than it was played.
        assert_allclose(other._delay(), 0.0, atol=1e-10)


def test_two_levels_have_one_order_only():
    """Of three that are texts the order is told."""
    X = [[0.0], [1.0], [2.0], [3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FenchelYoungOnlineOrdinalClassifier().fit(X, ["a", "b", "b", "a"])
    with pytest.warns(UserWarning, match="a < b < c"):
        FenchelYoungOnlineOrdinalClassifier().fit(X, ["a", "b", "c", "a"])
