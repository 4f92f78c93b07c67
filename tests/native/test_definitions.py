"""What has no other reference: NumPy's random numbers, and its stable sort."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from skbounds._core import fenchel_young, sequential


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("rewards", ["normal", "bernoulli"])
def test_simulated_rewards_are_those_of_numpy(rewards, seed):
    """All arms in turn; more than one state of the generator is used up."""
    expected, sigma, n_rounds = np.array([0.2, 0.5, 0.9]), 1.7, 500
    counts, sums = np.zeros(3), np.zeros(3)
    _, best, n_pulls, _ = sequential.simulate(
        expected, sigma, 0.0, 1e9, 1e9, 3 * n_rounds, True, rewards == "bernoulli",
        seed, counts, sums,
    )  # fmt: skip
    random = np.random.RandomState(seed)
    if rewards == "normal":
        table = expected + sigma * random.standard_normal((n_rounds, 3))
    else:
        table = (random.random_sample((n_rounds, 3)) < expected).astype(float)
    # One after the other, as they come in.
    assert_array_equal(sums, np.cumsum(table, axis=0)[-1])
    assert_array_equal(counts, n_rounds)
    assert n_pulls == 3 * n_rounds
    assert best == sums.argmax()


@pytest.mark.parametrize("n", [*range(1, 40), 63, 64, 65, 128, 129, 1000])
def test_ranks_are_those_of_a_stable_sort(n):
    """Rows of several lengths of merged runs, with and without ties."""
    rng = np.random.default_rng(n)
    u = np.vstack([rng.normal(size=n), rng.integers(4, size=n), np.zeros(n)])
    ranks = np.zeros((3, n), np.int64)
    fenchel_young.nearest_rows(fenchel_young.PERMUTAHEDRON, u, ranks)
    order = np.argsort(u, axis=1, kind="stable")
    expected = np.argsort(order, axis=1) + 1
    assert_array_equal(ranks, expected)
