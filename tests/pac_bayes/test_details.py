"""Details that no other test saw: found by small changes of the code."""

import numpy as np
from numpy.testing import assert_allclose

from skbounds.pac_bayes._certify import RowSample
from skbounds.pac_bayes._second_order import best_vote, tandem_posterior


def test_votes_of_three_classes_minimise_the_tandem_bound():
    """Of two classes it may be another one, for which three have no theorem."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    codes = (
        np.where(rng.random((200, 4)) < [0.2, 0.3, 0.35, 0.4], 1, 0) ^ truth[:, None]
    )
    wrong, prior = codes != truth[:, None], np.full(4, 0.25)
    sample = RowSample(200)
    joint = wrong.T.astype(float) @ wrong / 200
    expected = tandem_posterior(joint, 200, prior, 0.05 / 2)
    for n_classes in (3, 4):
        found = best_vote(wrong, codes, prior, 0.05, n_classes, sample)
        assert_allclose(found, expected, rtol=1e-9)
    two = best_vote(wrong, codes, prior, 0.05, 2, sample)
    assert np.abs(two - expected).max() > 1e-3
