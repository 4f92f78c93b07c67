"""Details that no other test saw: found by small changes of the code."""

import numpy as np
from numpy.testing import assert_allclose
from reference import pac_bayes as ref

from skbounds.pac_bayes._certify import RowSample, weigh_members
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


def test_a_tandem_bound_of_three_classes_has_half_of_the_level():
    """Where it is below the other one, of twice the mean risk."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=3000)
    wrong = rng.random((3000, 5)) < 0.2
    codes = np.where(wrong, (truth[:, None] + 1) % 3, truth[:, None])
    prior, delta = np.full(5, 0.2), 0.05
    evidence = weigh_members(
        codes, truth, prior, kind="tandem", level=delta, divergence="kl",
        distance="kl", constants="exact", catoni_c=None, simultaneous=False,
        n_classes=3,
    )  # fmt: skip
    q, joint = evidence.posterior, wrong.T.astype(float) @ wrong / 3000
    tandem = ref.tandem_bound(q, joint, 3000, delta / 2, prior)
    gibbs = 2.0 * ref.bound(q, wrong.mean(axis=0), 3000, delta / 2, "kl", "kl", prior)
    assert tandem < 0.9 * gibbs
    assert_allclose(evidence.vote_bound(delta), tandem, rtol=1e-9)
