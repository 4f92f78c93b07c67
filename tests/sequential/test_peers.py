"""Levels and decisions of online-fdr, where it does what the papers say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    SAFFRON,
    AlphaInvesting,
    BatchBH,
    LORDPlusPlus,
)

pytest.importorskip("online_fdr")

from online_fdr.p_values.batching.bh import BatchBH as TheirBatchBH
from online_fdr.p_values.investing.addis.addis import Addis
from online_fdr.p_values.investing.alpha.alpha import Gai
from online_fdr.p_values.investing.lond.lond import Lond
from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus
from online_fdr.p_values.investing.saffron.saffron import Saffron

ALPHA, W0 = 0.1, 0.05
# Their gamma, ours is scaled to a sum of 1.
POWER = 0.4374901658 * np.arange(1.0, 400.0) ** -1.6
J = np.arange(1.0, 400.0)
LOG = 0.07720838 * np.log(np.maximum(J, 2.0)) / (J * np.exp(np.sqrt(np.log(J))))
PAIRS = {
    "SAFFRON": (
        lambda: SAFFRON(ALPHA, w0=W0, gamma=POWER),
        lambda: Saffron(ALPHA, W0, 0.5),
    ),
    "ADDIS": (
        lambda: ADDIS(ALPHA, w0=W0, gamma=POWER),
        lambda: Addis(ALPHA, W0, 0.25, 0.5),
    ),
    "LOND": (lambda: LOND(ALPHA, gamma=LOG), lambda: Lond(ALPHA)),
    "LOND, dependent": (
        lambda: LOND(ALPHA, gamma=LOG, dependent=True),
        lambda: Lond(ALPHA, dependent=True),
    ),
    "alpha-investing": (
        lambda: AlphaInvesting(ALPHA, w0=W0, gamma=POWER),
        lambda: Gai(ALPHA, W0),
    ),
    "LORD++": (
        lambda: LORDPlusPlus(ALPHA, w0=W0, gamma=LOG),
        lambda: LordPlusPlus(ALPHA, W0),
    ),
}


def stream(seed, n=300, share=0.3):
    rng = np.random.default_rng(seed)
    p = np.where(rng.uniform(size=n) < share, 1e-5 * rng.uniform(size=n), 1.0)
    return np.where(p == 1.0, rng.uniform(size=n), p)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_levels(name, seed):
    ours, theirs = (make() for make in PAIRS[name])
    p = stream(seed)
    ours.fit(p)
    levels, rejected = [], []
    for value in p.tolist():
        found = theirs.test_one_detail(value)
        levels.append(found.test_level)
        rejected.append(found.rejected)
    assert_array_equal(ours.rejected_, rejected)
    assert_allclose(ours.levels_, levels, rtol=1e-12)


def test_batches():
    ours, theirs = BatchBH(ALPHA, gamma=POWER), TheirBatchBH(ALPHA)
    rng = np.random.default_rng(0)
    for k in range(20):
        p = stream(k, int(rng.integers(1, 40)))
        assert_array_equal(ours.test(p), theirs.test_batch(p.tolist()))
        assert_allclose(ours.level_, theirs.alpha_s[-1], rtol=1e-12)


def test_e_values():
    """ELOND is LOND of 1 / e."""
    p = stream(0)
    ours = ELOND(ALPHA, gamma=LOG).fit(1.0 / p)
    assert_array_equal(ours.rejected_, LOND(ALPHA, gamma=LOG).fit(p).rejected_)


def test_levels_of_e_values():
    from online_fdr.e_values.sequential import ELond

    theirs, e = ELond(ALPHA), 1.0 / stream(1)
    ours = ELOND(ALPHA, gamma=LOG).fit(e)
    assert_array_equal(ours.rejected_, [theirs.test_one(x) for x in e.tolist()])


def test_overlapping_tests():
    """SAFFRON* of the asynchronous paper."""
    from online_fdr.p_values.async_methods.saffron_async import SaffronAsync

    theirs = SaffronAsync(ALPHA, W0, 0.5)
    ours = SAFFRON(ALPHA, w0=W0, gamma=POWER)
    rng, p = np.random.default_rng(0), stream(2)
    running, n_started = [], 0
    while n_started < 300 or running:
        if n_started < 300 and (not running or rng.random() < 0.5):
            mine, other = ours.begin(), theirs.start_test()
            assert_allclose(mine.level, other.test_level, rtol=1e-12)
            running.append((mine, other.test_id, float(p[n_started])))
            n_started += 1
        else:
            mine, name, value = running.pop(int(rng.integers(len(running))))
            assert ours.finish(mine, value) == theirs.finish_test(name, value)
