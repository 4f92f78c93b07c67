"""M-steps of the transition matrix against numerical maximisers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref
from reference import hmm_more as more
from skbounds._core import hmm as _core

from hmm.toy import random_sequences, random_theta, rows, stochastic, unfinished
from skbounds.hmm import BaumWelchHMM
from skbounds.hmm._transitions import (
    objective,
    reversible_step,
    stationary_step,
    symmetrised,
)


def counts(seed, s, size=20.0):
    """Expected pairs and first states, and a transition matrix before."""
    rng = np.random.default_rng(seed)
    pairs = rng.gamma(1.0, size, size=(s, s))
    return (
        pairs,
        rng.gamma(1.0, [1.0, 20.0, 60.0][seed % 3], size=s),
        stochastic(rng, s),
    )


@pytest.mark.parametrize("seed", range(9))
def test_stationary_step(seed):
    """Few starts and many, beside the pairs."""
    pairs, first, before = counts(seed, 2 + seed % 3)
    found = stationary_step(pairs, first, before)
    _, best = more.stationary_m_step(pairs, first, before)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert abs(more.transition_objective(pairs, first, found) - best) < 1e-8


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("seed", range(9))
def test_reversible_step(seed, stationary):
    """Detailed balance, and no reversible matrix is likelier."""
    pairs, first, before = counts(seed, 2 + seed % 3)
    found = reversible_step(pairs, first if stationary else None, symmetrised(before))
    assert ref.reversible_gap(found) < 1e-12
    _, best = more.reversible_m_step(pairs, first, stationary)
    value = more.transition_objective(pairs, first if stationary else 0 * first, found)
    assert abs(value - best) < 1e-8


def test_reversible_fixed_point():
    """The known equations of the maximum without a start law."""
    pairs, _, before = counts(4, 4)
    found = reversible_step(pairs, None, symmetrised(before))
    flows = ref.stationary(found)[:, None] * found
    row = pairs.sum(axis=1) / flows.sum(axis=1)
    expected = (pairs + pairs.T) / (row[:, None] + row[None, :])
    assert_allclose(flows / flows.sum(), expected / expected.sum(), rtol=1e-7)


@pytest.mark.parametrize("step", [stationary_step, reversible_step])
def test_zeros_stay(step):
    """Impossible transitions are not found possible."""
    rng = np.random.default_rng(0)
    before = symmetrised(np.array([[0.5, 0.5, 0.0], [0.3, 0.4, 0.3], [0.0, 0.6, 0.4]]))
    pairs = rng.gamma(1.0, 10.0, size=(3, 3)) * (before > 0.0)
    found = step(pairs, np.array([3.0, 2.0, 1.0]), before)
    assert_array_equal(found == 0.0, before == 0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_never_worse(seed, s, sparse):
    """Neither step loses anything of its objective."""
    rng = np.random.default_rng(seed)
    pairs = rng.gamma(0.3, 10.0, size=(s, s))
    first = rng.gamma(0.3, 5.0, size=s)
    before = stochastic(rng, s)
    if sparse:
        pairs[rng.random((s, s)) < 0.3] = 0.0
    found = stationary_step(pairs, first, before)
    assert objective(found, pairs, first) >= objective(before, pairs, first) - 1e-9
    before = symmetrised(before)
    found = reversible_step(pairs, first, before)
    assert np.isfinite(found).all()
    assert objective(found, pairs, first) >= objective(before, pairs, first) - 1e-6


OPTIONS = [
    {"startprob": "stationary"},
    {"structure": "reversible"},
    {"structure": "reversible", "startprob": "stationary"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["stationary", "free", "both"])
@pytest.mark.parametrize("seed", range(4))
def test_fits_never_fall(seed, options):
    """Many short sequences, where starts say much."""
    sequences = random_sequences(seed, [3] * 40, 2)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(3, reg_covar=0.0, tol=0.0, max_iter=60, random_state=seed)
    model.set_params(**options)
    with unfinished():
        model.fit(X, lengths=lengths)
    assert np.diff(model.history_).min() > -1e-9 * abs(model.history_[-1])
    assert_allclose(
        model.history_[-1],
        ref.loglik(
            sequences,
            {
                "startprob": model.startprob_,
                "transmat": model.transmat_,
                "means": model.means_,
                "covariances": model.covariances_,
            },
        ),
        rtol=1e-10,
    )
    if options.get("startprob") == "stationary":
        law = model.startprob_
        assert_allclose(law @ model.transmat_, law, atol=1e-12)
    if "structure" in options:
        assert model.reversible_gap_ < 1e-12


def test_exact_step_beats_the_generalised_one():
    """150 sequences of 3 rows: replacing the law afterwards ends lower."""
    rng = np.random.default_rng(5)
    theta = random_theta(3, 2, 1, "diag", spread=2.0)
    theta["startprob"] = ref.stationary(theta["transmat"])
    sequences = [ref.sample(3, theta, rng)[0] for _ in range(150)]
    X, lengths = rows(sequences)
    start = {
        "means_init": theta["means"],
        "covariances_init": theta["covariances"],
        "transmat_init": theta["transmat"],
    }
    model = BaumWelchHMM(
        2, startprob="stationary", tol=1e-10, max_iter=3000, reg_covar=0.0, **start
    ).fit(X, lengths=lengths)
    old = dict(theta)
    for _ in range(300):
        old = ref.em_update(sequences, old, "diag")
        old["startprob"] = ref.stationary(old["transmat"])
    assert model.history_[-1] > ref.loglik(sequences, old) + 1e-4
    assert np.diff(model.history_).min() > -1e-8


def test_reversible_structure_of_two_states():
    """Every chain of two states is reversible."""
    X, lengths = rows(random_sequences(7, [60, 50], 2))
    options = {"tol": 1e-9, "max_iter": 500, "random_state": 0}
    free = BaumWelchHMM(**options).fit(X, lengths=lengths)
    bound = BaumWelchHMM(structure="reversible", **options).fit(X, lengths=lengths)
    assert_allclose(bound.transmat_, free.transmat_, atol=1e-5)
    assert bound.bic(X) == pytest.approx(free.bic(X), rel=1e-6)


def test_start_that_is_not_reversible():
    """It is refused, and not changed without a word."""
    A = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    X = np.vstack(random_sequences(0, [30], 1))
    with pytest.raises(ValueError, match="reversible"):
        BaumWelchHMM(3, structure="reversible", transmat_init=A).fit(X)


@pytest.mark.parametrize("s", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 3, 9, 17, 40])
def test_long_windows(s, k):
    """Products of matrices give what each window by itself gives."""
    theta = random_theta(s + k, s, 1)
    sequences = random_sequences(k, [55, 3, 31], 1)
    X, lengths = rows(sequences)
    model = BaumWelchHMM(s, window=k, max_iter=1).set_params(
        means_init=theta["means"],
        covariances_init=theta["covariances"],
        transmat_init=theta["transmat"],
        startprob_init=theta["startprob"],
        fixed=("means", "covariances", "transmat", "startprob"),
    )
    with unfinished():
        model.fit(X, lengths=lengths)
    expected = [
        ref.window_posteriors(
            ref.emissions(x, theta),
            theta["startprob"],
            theta["transmat"],
            k,
            step=ref.smooth,
        )[0]
        for x in sequences
    ]
    found = model.predict_proba(X, lengths=lengths)
    assert_allclose(found, np.vstack(expected), atol=1e-12)


@pytest.mark.parametrize("s", [1, 2, 4, 8])
@pytest.mark.parametrize("more", [1, 6])
def test_pairs_of_long_windows(s, more):
    """Their sums over the rows, with one sequence and with several."""
    rng = np.random.default_rng(s)
    B, A, start = rng.random((90, s)) + 0.05, stochastic(rng, s), stochastic(rng, s)[0]
    k, law = 2 * s + more, ref.stationary(A)
    for starts in ([0, 90], [0, 50, 53, 90]):
        posterior, pairs = np.zeros((90, s)), np.zeros((s, s))
        failed = np.zeros(90, bool)
        _core.windows(
            B, np.array(starts), start, law, A, True, k, posterior, pairs, failed
        )
        cuts = pairwise(starts)
        parts = [
            ref.window_posteriors(np.log(B[a:b]), start, A, k, step=ref.smooth)
            for a, b in cuts
        ]
        assert not failed.any()
        assert_allclose(posterior, np.vstack([gamma for gamma, _ in parts]), atol=1e-12)
        assert_allclose(pairs, sum(xi.sum(axis=0) for _, xi in parts), atol=1e-10)


@pytest.mark.parametrize("k", [5, 12])
def test_long_windows_of_a_chain_with_zeros(k):
    """Far rows, so that one state's products vanish beside another's."""
    theta = random_theta(3, 2, 1)
    theta["transmat"] = np.array([[0.9, 0.1], [0.3, 0.7]])
    other = np.array([[1.0, 0.0], [0.2, 0.8]])
    rng = np.random.default_rng(0)
    X = np.r_[np.full(20, 9.0), np.full(20, -9.0), rng.normal(size=20)][:, None]
    theta["means"], theta["covariances"] = np.array([[-9.0], [9.0]]), np.ones((2, 1, 1))
    for transmat in (theta["transmat"], other):
        model = BaumWelchHMM(2, window=k, max_iter=1).set_params(
            means_init=theta["means"],
            covariances_init=theta["covariances"],
            transmat_init=transmat,
            startprob_init=[0.5, 0.5],
            fixed=("means", "covariances", "transmat", "startprob"),
        )
        with unfinished():
            model.fit(X)
        expected = ref.window_posteriors(
            ref.emissions(X, theta), [0.5, 0.5], transmat, k, step=ref.smooth
        )[0]
        assert_allclose(model.predict_proba(X), expected, atol=1e-12)
