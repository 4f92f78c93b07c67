"""What once went wrong, or silently said something else."""


import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbounds.hmm import BaumWelchHMM, EMConvergenceDisplay, HMMDisplay
from skbounds.hmm._em import expectation
from skbounds.hmm._mixing import contraction_rate, mixing_constant, stationary_law


@pytest.mark.parametrize("gap", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("kind", ["diag", "spherical", "tied", "full"])
def test_states_far_apart(gap, kind):
    """Variances and densities lose no digits to the distance of the states."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 2))
    X = noise + np.repeat([0.0, gap], 200)[:, None]
    model = BaumWelchHMM(covariance_type=kind, reg_covar=0.0, random_state=0).fit(X)
    parts = np.array([noise[:200].var(axis=0), noise[200:].var(axis=0)])
    expected = {
        "tied": np.repeat(parts.mean(axis=0)[None], 2, axis=0),
        "spherical": np.repeat(parts.mean(axis=1)[:, None], 2, axis=1),
    }.get(kind, parts)
    found = np.diagonal(model.covariances_, axis1=1, axis2=2)
    assert_allclose(found, expected, rtol=1e-6)
    assert_allclose(model.score(X) * 400, model.history_[-1], rtol=1e-7)


@pytest.mark.parametrize(
    ("A", "expected"),
    [
        ([[0.95, 0.05], [0.0, 1.0]], [0.0, 1.0]),
        ([[1.0, 1e-20], [0.0, 1.0]], [0.0, 1.0]),
        ([[1.0 - 1e-15, 1e-15], [3e-15, 1.0 - 3e-15]], [0.75, 0.25]),
        ([[1.0, 1e-17], [1.0, 1e-17]], [1.0, 1e-17]),
        (np.eye(3), [1 / 3] * 3),
        ([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5]),
    ],
)
def test_stationary_law(A, expected):
    """Accurate in every entry, also of absorbing and slow chains."""
    A = np.array(A)
    assert_allclose(stationary_law(A), expected, rtol=1e-6, atol=1e-300)


def test_mixing_constant_of_independent_rows():
    A = np.repeat([[0.2, 0.3, 0.5]], 3, axis=0)
    assert_allclose(mixing_constant(A, stationary_law(A)), 1.0, rtol=1e-14)


def test_random_zeros_in_the_transitions():
    """Underflow is noticed wherever it may matter."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        s = int(rng.integers(2, 5))
        A = rng.dirichlet(np.ones(s), size=s) * (rng.uniform(size=(s, s)) < 0.6)
        A += np.diag(A.sum(axis=1) == 0.0) * 1.0
        A /= A.sum(axis=1, keepdims=True)
        start = rng.dirichlet(np.ones(s))
        log_density = -(rng.uniform(0.0, 40.0, size=(8, s)) ** 2)
        paths = np.stack(np.meshgrid(*[range(s)] * 8, indexing="ij"), -1).reshape(-1, 8)
        with np.errstate(divide="ignore"):
            value = np.log(start[paths[:, 0]]) + log_density[0, paths[:, 0]]
            for i in range(1, 8):
                value = value + np.log(A[paths[:, i - 1], paths[:, i]])
                value = value + log_density[i, paths[:, i]]
        top = value.max()
        share = np.exp(value - top)
        found = expectation(log_density, np.array([0, 8]), start, A)
        assert_allclose(found.rows.sum(), top + np.log(share.sum()), rtol=1e-10)
        for i in (0, 4, 7):
            expected = np.bincount(paths[:, i], share, minlength=s) / share.sum()
            assert_allclose(found.posterior[i], expected, atol=1e-10)


def test_failed_starts_do_not_count():
    """One good start among several is enough."""
    rng = np.random.default_rng(0)
    X = np.r_[np.zeros((30, 1)), rng.normal(size=(30, 1))]
    model = BaumWelchHMM(
        init="random", n_init=20, reg_covar=0.0, random_state=0, max_iter=3, tol=1e9
    ).fit(X)
    assert np.isfinite(model.history_).all()
    with pytest.raises(ValueError, match="reg_covar"):
        BaumWelchHMM(reg_covar=0.0, random_state=0).fit(np.zeros((30, 1)))


def test_rounding_is_no_rate():
    changes = [0.5**k for k in range(30)] + [3e-16, 2e-16, 4e-16, 1e-16]
    assert_allclose(contraction_rate(changes), 0.5, rtol=1e-6)
    assert np.isnan(contraction_rate([1.0, 0.5]))


def test_stationary_start_from_the_start():
    """The first likelihood is that of the stationary model."""
    X = np.random.default_rng(0).normal(size=(20, 1))
    options = {
        "means_init": [[-1.0], [1.0]], "transmat_init": [[0.9, 0.1], [0.9, 0.1]],
        "max_iter": 1, "tol": 1e9,
    }  # fmt: skip
    model = BaumWelchHMM(startprob="stationary", **options).fit(X)
    given = BaumWelchHMM(startprob_init=[0.9, 0.1], **options).fit(X)
    assert_allclose(model.history_[0], given.history_[0], rtol=1e-12)


def test_windows_of_transient_states():
    """The stationary law that they start from leaves such states out."""
    rng = np.random.default_rng(0)
    X = np.r_[np.zeros(30), np.full(30, 5.0)][:, None] + rng.normal(size=(60, 1))
    model = BaumWelchHMM(
        window=5, transmat_init=[[0.9, 0.1], [0.0, 1.0]], startprob_init=[1.0, 0.0],
        means_init=[[0.0], [5.0]],
    )  # fmt: skip
    with pytest.warns(UserWarning, match="windows"):
        model.fit(X)


def test_wide_windows_are_all_rows():
    X = np.random.default_rng(0).normal(size=(50, 2))
    fits = [
        BaumWelchHMM(window=w, random_state=0).fit(X).predict_proba(X)
        for w in (None, 49, 10**30)
    ]
    assert_allclose(fits[1], fits[0], rtol=1e-12)
    assert_allclose(fits[2], fits[0], rtol=1e-12)


def test_few_distinct_rows():
    """One warning, of the states without variance, and none of k-means."""
    X = np.random.default_rng(0).integers(0, 2, size=(60, 1))
    with pytest.warns(UserWarning) as caught:
        model = BaumWelchHMM(3, random_state=0, max_iter=2000).fit(X)
    assert len(caught) == 1
    assert "degenerate" in str(caught[0].message)
    assert np.isfinite(model.means_).all()


def test_values_that_overflow():
    X = np.random.default_rng(0).normal(size=(40, 2))
    huge = X.copy()
    huge[3] = 1e160
    model = BaumWelchHMM(random_state=0).fit(X)
    for method in (model.predict, model.decode, model.score, BaumWelchHMM().fit):
        with pytest.raises(ValueError, match="1e\\+160"):
            method(huge)


def test_starting_values_meet_states_in_order():
    """Without means_init: in the order of the means."""
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 3.0, 6.0], 40)[:, None] + 0.3 * rng.normal(size=(120, 1))
    model = BaumWelchHMM(
        3, transmat_init=[[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]],
        startprob_init=[1.0, 0.0, 0.0], random_state=0,
    ).fit(X)  # fmt: skip
    assert_allclose(model.means_.ravel(), [0.0, 3.0, 6.0], atol=0.2)
    assert model.score(X) > -1.0


def test_input_of_the_convergence_picture():
    X = np.random.default_rng(0).normal(size=(30, 2))
    symmetric = BaumWelchHMM(structure="symmetric", sigma=1.0)
    cases = [
        (BaumWelchHMM(structure="symmetric"), [[-1, -1], [1, 1]], "needs sigma"),
        (symmetric, [[0, 0], [4, 4]], "-mu and mu"),
        (BaumWelchHMM(), [[0, 0, 0], [4, 4, 4]], "of shape"),
        (BaumWelchHMM(covariance_type="none"), [[0, 0], [4, 4]], "covariance_type"),
    ]
    for model, means, message in cases:
        with pytest.raises(ValueError, match=message):
            EMConvergenceDisplay.from_estimator(model, X, true_means=means, plot=False)


def test_colours_of_known_states():
    """State 1 has the colour of state 1, also where there is no other."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = BaumWelchHMM(random_state=0).fit(X)
    display = HMMDisplay.from_estimator(model, X, states=np.ones(30, dtype=int))
    assert display.ax_.lines[-1].get_color() == "C1"
    pyplot.close(display.figure_)
