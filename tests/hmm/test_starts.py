"""Starts: several, numbered ones, and those that break down."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from hmm.toy import unfinished
from skbounds.hmm import BaumWelchHMM, _fit


def regimes(seed, n=400, d=1, s=4, stay=0.9, spread=1.5):
    """States that overlap, with unequal variances."""
    rng = np.random.default_rng(seed)
    z = np.zeros(n, int)
    for i in range(1, n):
        z[i] = z[i - 1] if rng.random() < stay else rng.integers(s)
    means, scale = (
        spread * rng.normal(size=(s, d)),
        np.exp(0.5 * rng.normal(size=(s, d))),
    )
    return means[z] + scale[z] * rng.normal(size=(n, d)), z


def left_right(s, stay=0.9):
    """Transitions to the next state only."""
    A = stay * np.eye(s) + (1.0 - stay) * np.eye(s, k=1)
    A[-1, -1] = 1.0
    return A


def test_more_starts_find_more():
    """Ten starts end more than a nat below the best known far less often than one."""
    missed = {1: 0, 10: 0}
    for seed in range(12):
        X, _ = regimes(seed, d=1 + seed % 2)
        best = max(
            BaumWelchHMM(4, init=init, random_state=k, max_iter=500).fit(X).history_[-1]
            for init in ("random", "kmeans")
            for k in range(8)
        )
        for n_init in missed:
            model = BaumWelchHMM(4, n_init=n_init, random_state=99, max_iter=500).fit(X)
            missed[n_init] += model.history_[-1] < best - 1.0
    assert missed[1] >= 5
    assert missed[10] <= 3


@pytest.mark.parametrize("seed", range(6))
def test_never_worse_than_the_first(seed):
    """The first start is run to its end in any case."""
    X, _ = regimes(seed)
    with unfinished():
        one = BaumWelchHMM(3, random_state=seed, max_iter=60).fit(X)
        many = BaumWelchHMM(3, n_init=5, random_state=seed, max_iter=60).fit(X)
    assert many.history_[-1] >= one.history_[-1] - 1e-9


@pytest.mark.parametrize("n_init", [1, 6])
def test_left_right_keeps_its_numbers(n_init):
    """Stages are found in the order of time, not of their means."""
    means = np.array([3.0, -2.0, 6.0, 0.0])
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2, 3], 40)
    X = np.concatenate([means[z] + 0.5 * rng.normal(size=160) for _ in range(5)])
    A = left_right(4)
    model = BaumWelchHMM(
        4, transmat_init=A, startprob_init=[1, 0, 0, 0], n_init=n_init, random_state=0
    ).fit(X[:, None], lengths=[160] * 5)
    assert_allclose(model.means_[:, 0], means, atol=0.2)
    assert_array_equal(model.transmat_ == 0.0, A == 0.0)
    assert_array_equal(model.startprob_, [1, 0, 0, 0])
    assert np.mean(model.predict(X[:, None], lengths=[160] * 5) == np.tile(z, 5)) > 0.97


def test_start_law_keeps_its_numbers():
    """It is not permuted to the order of the means."""
    rng = np.random.default_rng(1)
    z = np.tile(np.repeat([1, 0, 2], 20), 6)
    X = np.array([0.0, 5.0, -5.0])[z] + rng.normal(size=len(z))
    model = BaumWelchHMM(3, startprob_init=[0, 1, 0], random_state=0)
    model.fit(X[:, None], lengths=[60] * 6)
    assert_array_equal(model.startprob_, [0, 1, 0])
    assert abs(model.means_[1, 0] - 5.0) < 0.5


def test_many_states_in_a_given_order():
    """More than can all be tried."""
    s = 8
    means = np.random.default_rng(2).permutation(s) * 4.0
    rng = np.random.default_rng(3)
    z = np.repeat(np.arange(s), 25)
    X = np.concatenate([means[z] + rng.normal(size=len(z)) for _ in range(4)])[:, None]
    start = np.eye(s)[0]
    model = BaumWelchHMM(
        s, transmat_init=left_right(s), startprob_init=start, n_init=5, random_state=0
    ).fit(X, lengths=[len(z)] * 4)
    assert_allclose(model.means_[:, 0], means, atol=0.6)


def test_variances_alone():
    """States of one mean are found by how rows vary near by."""
    rng = np.random.default_rng(4)
    z = (np.arange(3000) // 100) % 2
    X = np.where(z, 2e-3, 5e-4)[:, None] * rng.normal(size=(3000, 1))
    model = BaumWelchHMM(n_init=4, random_state=0).fit(X)
    found = model.predict(X)
    assert max(np.mean(found == z), np.mean(found != z)) > 0.95
    assert_allclose(
        np.sort(np.sqrt(model.covariances_[:, 0, 0])), [5e-4, 2e-3], rtol=0.05
    )


# --------------------------------------------------------------------------- breakdowns


def test_outlier_takes_a_state():
    """A warning names the state; other starts do without it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    X[50] = 1000.0
    with pytest.warns(UserWarning, match=r"States \[1\] are degenerate"):
        BaumWelchHMM(2, random_state=0).fit(X)


def test_too_few_rows_for_full_matrices():
    """Ten states of 20 columns on 100 rows."""
    X = np.random.default_rng(1).normal(size=(100, 20))
    model = BaumWelchHMM(10, covariance_type="full", random_state=0)
    with pytest.warns(UserWarning, match="degenerate"), unfinished():
        model.fit(X)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_the_likelihood_of_one_state(covariance_type):
    """That of a normal law, but for what is added to the variances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    hmm = BaumWelchHMM(
        3, covariance_type=covariance_type, sticky=2.0, means_init=np.eye(3, 2)
    )
    S = np.cov(X.T, bias=True)
    S = S if covariance_type == "full" else np.diag(np.diag(S))
    expected = stats.multivariate_normal(X.mean(axis=0), S).logpdf(X).sum()
    found = _fit.one_state_likelihood(hmm, X, np.array([0, 30, 80]))
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_collapsed_start_does_not_win():
    """Where states sit on values that come again and again, and all others are one.

    The only fit without degenerate states is that of a single state.
    """
    rng = np.random.default_rng(38)
    z = np.cumsum(rng.uniform(size=200) < 0.4) % 2
    x = np.where(z, 4.3, 2.0) + 0.35 * rng.normal(size=200)
    coded = rng.uniform(size=200) < 0.4
    x[coded] = np.where(z[coded], 4.0, 2.0)
    one, two = (BaumWelchHMM(k, random_state=0).fit(x[:, None]) for k in (1, 2))
    with pytest.warns(UserWarning, match="degenerate"):
        model = BaumWelchHMM(5, n_init=8, random_state=0).fit(x[:, None])
    assert model.history_[-1] > two.history_[-1] > one.history_[-1] + 100.0


@pytest.mark.parametrize("n_init", [1, 5])
def test_a_known_state_without_variance(n_init):
    """A machine that is off says the same all the time."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 25)
    x = np.where(states == 1, 5.0, rng.normal(size=100))[:, None]
    for known in (states, np.where(rng.uniform(size=100) < 0.5, states, -1)):
        with pytest.warns(UserWarning, match="degenerate"):
            model = BaumWelchHMM(2, n_init=n_init, random_state=0).fit(x, states=known)
        assert (model.predict(x) == states).all()


def test_degenerate_starts_lose(recwarn):
    """Although their likelihood is larger."""
    rng = np.random.default_rng(2)
    X = np.r_[rng.normal(size=150), 8.0 + rng.normal(size=150)][:, None]
    # Three equal rows: a state on them has a likelihood without bound.
    X[[10, 11, 12]] = 1.234567
    model = BaumWelchHMM(3, n_init=10, random_state=0, max_iter=1000).fit(X)
    said = [str(w.message) for w in recwarn.list]
    assert not any("degenerate" in text for text in said)
    trap = BaumWelchHMM(
        3, means_init=[[1.234567], [0.0], [8.0]], max_iter=1000,
        covariances_init=[[[1e-4]], [[1.0]], [[1.0]]],
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"States \[0\] are degenerate"):
        trap.fit(X)
    assert trap.history_[-1] > model.history_[-1]


def test_no_warning_for_good_fits(recwarn):
    """Default fits of ordinary data say nothing."""
    for seed in range(4):
        X, _ = regimes(seed, n=1000, s=2)
        BaumWelchHMM(2, random_state=0, max_iter=2000).fit(X)
    assert not recwarn.list
