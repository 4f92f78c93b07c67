"""Error rates of simulations, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.sequential import (
    acceptable_arms,
    best_arm_discovery_rate,
    false_discovery_rate,
    marginal_false_discovery_rate,
)


def test_rates_by_hand():
    rejected = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=bool)
    is_null = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)
    assert_allclose(false_discovery_rate(rejected, is_null), (1 / 3 + 0 + 1) / 3)
    assert_allclose(
        marginal_false_discovery_rate(rejected, is_null), (2 / 3) / (4 / 3 + 1)
    )
    assert false_discovery_rate([True, True], [True, False]) == 0.5


def test_acceptable_arms():
    """(4.7): near the best alternative and better than the control by more."""
    means = [[0.0, 0.5, 0.8, 1.0], [1.0, 0.5, 0.9, 1.0], [0.0, 0.1, 0.2, 0.3]]
    assert_array_equal(
        acceptable_arms(means, epsilon=0.3),
        [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
    )
    assert_array_equal(acceptable_arms(means[2]), [0, 0, 0, 1])


def test_discovery_rates():
    means = [[0.0, 1.0, 1.2], [0.0, 1.0, 1.2], [1.0, 0.0, 0.0]]
    rejected, arms = [True, True, True], [1, 2, 1]
    assert best_arm_discovery_rate(rejected, arms, means) == 0.5
    assert best_arm_discovery_rate(rejected, arms, means, epsilon=0.3) == 1.0
    assert np.isnan(best_arm_discovery_rate([True], [0], [[1.0, 0.0]]))
    both = best_arm_discovery_rate([rejected, [False] * 3], [arms, arms], [means] * 2)
    assert both == 0.25


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: false_discovery_rate([1, 0], [True, False]), "rejected must be bool"),
        (lambda: false_discovery_rate([True], [True, False]), "same tests"),
        (lambda: false_discovery_rate([[[True]]], [[[True]]]), "rejected must be"),
        (lambda: acceptable_arms([1.0]), "two arms"),
        (lambda: acceptable_arms([1.0, np.nan]), "finite"),
        (lambda: acceptable_arms([1.0, 2.0], epsilon=-1.0), "epsilon"),
        (lambda: best_arm_discovery_rate([True], [1], [0.0, 1.0]), "means must be"),
        (
            lambda: best_arm_discovery_rate([True], [1.0], [[0.0, 1.0]]),
            "arms must be integers",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
