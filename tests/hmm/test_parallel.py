"""Groups of sequences: the same bits for any number of workers, here or elsewhere."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal

from hmm.toy import unfinished
from skbounds.hmm import BaumWelchHMM
from skbounds.hmm._em import Chain, Group, expectation, linear_sums, make_groups
from skbounds.hmm._emissions import Categorical, Gaussian, Poisson


def many_sequences(emission, n_sequences=200, length=500):
    """Enough rows for several groups, with sequences of unequal lengths."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(length // 2, length, size=n_sequences)
    z = np.cumsum(rng.random(lengths.sum()) < 0.1) % 2
    if emission == "poisson":
        X = rng.poisson(np.where(z, 5.0, 1.0))[:, None].astype(float)
    elif emission == "categorical":
        X = (rng.random(len(z)) < np.where(z, 0.8, 0.3))[:, None].astype(float)
    else:
        X = np.where(z, 2.0, 0.0)[:, None] + rng.normal(size=(len(z), 2))
    return X, lengths


def assert_same_model(model, other):
    """Bit for bit."""
    assert_array_equal(model.history_, other.history_)
    assert_array_equal(model.transmat_, other.transmat_)
    for name in ("means_", "covariances_", "df_", "emission_proba_"):
        if hasattr(model, name):
            assert_array_equal(getattr(model, name), getattr(other, name))


def fitted(X, lengths, **options):
    """A fit of a few iterations."""
    model = BaumWelchHMM(random_state=0, max_iter=8, **options)
    with unfinished():
        return model.fit(X, lengths=lengths)


@pytest.mark.parametrize("emission", ["gaussian", "student", "poisson", "categorical"])
def test_threads(emission):
    """Any number of threads."""
    X, lengths = many_sequences(emission)
    alone = fitted(X, lengths, emission=emission)
    for n_jobs in (2, 3, -1):
        assert_same_model(fitted(X, lengths, emission=emission, n_jobs=n_jobs), alone)


def test_threads_with_missing_entries_and_windows():
    """Paths that are not the fast one."""
    X, lengths = many_sequences("gaussian", 150, 500)
    X[::7, 0] = np.nan
    for options in ({}, {"covariance_type": "full"}, {"window": 9}):
        alone = fitted(X, lengths, **options)
        assert_same_model(fitted(X, lengths, n_jobs=2, **options), alone)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_backends(backend):
    """What joblib is told to use, also processes."""
    X, lengths = many_sequences("gaussian")
    alone = fitted(X, lengths, n_init=2)
    with parallel_config(backend=backend, n_jobs=2):
        assert_same_model(fitted(X, lengths, n_init=2), alone)


@pytest.mark.parametrize(
    "sizes", [[3], [50_000], [30_000, 2768, 1, 40_000, 5], [1] * 40_000]
)
def test_groups(sizes):
    """Whole sequences in their order, and none is lost."""
    starts = np.r_[0, np.cumsum(sizes)]
    X = np.arange(float(starts[-1]))[:, None]
    family = Gaussian("diag", np.zeros(1))
    groups = make_groups(X, starts, family)
    assert_array_equal(np.concatenate([g.rows.values for g in groups]), X)
    found = []
    for group in groups:
        assert group.starts[0] == 0 and group.starts[-1] == len(group.rows)
        found.extend(np.diff(group.starts))
    assert_array_equal(found, sizes)
    assert all(len(g.rows) >= 32_768 for g in groups[:-1])


@pytest.mark.parametrize("emission", ["gaussian", "poisson", "categorical"])
@pytest.mark.parametrize("lengths", [[5000], [700] * 9, [3000, 1, 2047, 2, 40, 2100]])
def test_native_step_in_blocks(emission, lengths):
    """Nothing but sums leaves it: those of densities, sweeps and products in turn."""
    rng = np.random.default_rng(0)
    n, starts = sum(lengths), np.r_[0, np.cumsum(lengths)]
    if emission == "gaussian":
        X, family = rng.normal(size=(n, 3)), Gaussian("diag", np.full(3, 0.1))
        law = {
            "means": rng.normal(size=(2, 3)),
            "covariances": rng.gamma(2.0, size=(2, 3)),
        }
    elif emission == "poisson":
        X, family = rng.poisson(3.0, size=(n, 3)).astype(float), Poisson()
        law = {"means": rng.gamma(4.0, size=(2, 3))}
    else:
        family = Categorical([np.arange(4.0), np.arange(2.0)])
        X = np.c_[rng.integers(4, size=n), rng.integers(2, size=n)].astype(float)
        X[rng.random(X.shape) < 0.1] = np.nan
        law = {"emission_proba": [rng.dirichlet(np.ones(k), size=2) for k in (4, 2)]}
    chain = Chain(np.array([0.3, 0.7]), np.array([[0.8, 0.2], [0.1, 0.9]]), law)
    group = Group(family.prepare(X), starts, None)
    found = linear_sums(chain, family, group, None)
    log_density = family.log_densities(group.rows, law)
    whole = expectation(log_density, starts, chain.start, chain.transition)
    assert_allclose(found.log_likelihood, whole.rows.sum(), rtol=1e-12)
    assert_allclose(found.first, whole.posterior[starts[:-1]].sum(axis=0), rtol=1e-11)
    assert_allclose(found.weight, whole.posterior.sum(axis=0), rtol=1e-11)
    assert_allclose(found.pairs, whole.pairs, rtol=1e-11)
    expected = family.collect(group.rows, whole.posterior, law, None)
    for mine, theirs in zip(found.outputs, expected, strict=True):
        assert_allclose(mine, theirs, rtol=1e-10, atol=1e-9)


def test_groups_change_nothing_but_rounding():
    """One sequence after the other, or all in a group."""
    X, lengths = many_sequences("gaussian")
    model = fitted(X, lengths, means_init=[[0, 0], [2, 2]])
    order = np.arange(len(lengths))[::-1]
    parts = np.split(X, np.cumsum(lengths)[:-1])
    other = fitted(
        np.vstack([parts[k] for k in order]), lengths[order],
        means_init=[[0, 0], [2, 2]],
    )  # fmt: skip
    assert_allclose(other.history_, model.history_, rtol=1e-12)
    assert_allclose(other.means_, model.means_, rtol=1e-9)


def test_samples_of_many_sequences():
    """Starts are drawn for each, and all sequences are the model's."""
    X, lengths = many_sequences("gaussian", 10, 300)
    model = fitted(X, lengths)
    drawn, states = model.sample(40, random_state=0, n_sequences=2000)
    assert drawn.shape == (80_000, 2) and states.shape == (80_000,)
    table = states.reshape(2000, 40)
    share = np.mean(table[:, 0] == 1)
    p = model.startprob_[1]
    assert abs(share - p) < 5 * np.sqrt(max(p * (1 - p), 1e-4) / 2000)
    for j in range(2):
        before = table[:, :-1] == j
        rate = np.mean(table[:, 1:][before] == 1)
        q = model.transmat_[j, 1]
        assert abs(rate - q) < 5 * np.sqrt(q * (1 - q) / before.sum())
    again = model.sample(40, random_state=0, n_sequences=2000)
    assert_array_equal(again[0], drawn)
    with pytest.raises(ValueError, match="n_sequences"):
        model.sample(3, n_sequences=0)
