"""What once went wrong, or silently said something else."""

import warnings

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


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("options", [{}, {"window": 5}, {"startprob": "stationary"}])
def test_regimes_that_never_return(options):
    """Transitions back of 1e-200 do not make the stationary law overflow."""
    rng = np.random.default_rng(20)
    X = np.concatenate([k * 20 + rng.normal(size=40) for k in range(5)])[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = BaumWelchHMM(5, random_state=0, **options).fit(X)
    assert np.isfinite([model.reversible_gap_, model.eps_mix_]).all()
    e = 1e-200
    law = stationary_law(np.array([[0.5, 0.5, 0.0], [e, 0.5, 0.5], [0.0, e, 1.0 - e]]))
    assert_allclose(law, [e * e * 4, e * 2, 1.0], rtol=1e-12)


def test_all_of_several_starts_break_down():
    """The error is that of one start."""
    x = np.random.default_rng(0).normal(size=(50, 1))
    model = BaumWelchHMM(covariance_type="full", reg_covar=0.0, n_init=3)
    with pytest.raises(ValueError, match="reg_covar"):
        model.fit(np.c_[x, x])


@pytest.mark.parametrize("noise", [0.3, 0.03, 0.003])
def test_standard_errors_of_columns_that_depend_on_each_other(noise):
    """Those of means and variances of turned columns are the turned ones."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(600) > 0.95) % 2
    X = np.c_[np.where(z, 3.0, -3.0), np.zeros(600)] + rng.normal(size=(600, 2))
    options = {"covariance_type": "full", "reg_covar": 0.0, "tol": 1e-12}
    clear = BaumWelchHMM(random_state=0, **options).fit(X)
    turn = np.array([[1.0, 1.0], [0.0, noise]])
    mixed = BaumWelchHMM(
        means_init=clear.means_ @ turn,
        covariances_init=turn.T @ clear.covariances_ @ turn,
        transmat_init=clear.transmat_,
        startprob_init=clear.startprob_,
        **options,
    ).fit(X @ turn)
    for name in ("means", "covariances"):
        found, expected = mixed.standard_errors_[name], clear.standard_errors_[name]
        index = (slice(None),) + (0,) * (found.ndim - 1)
        assert_allclose(found[index], expected[index], rtol=1e-4)
    assert_allclose(
        mixed.standard_errors_["transmat"],
        clear.standard_errors_["transmat"],
        rtol=1e-4,
    )


@pytest.mark.parametrize("size", [1e4, 1e6])
def test_outlier_beside_heavy_tails(size):
    """The variance that is added is not that of the outlier."""
    rng = np.random.default_rng(1)
    z = np.cumsum(rng.random(400) < 0.1) % 2
    X = np.where(z, 2.0, -2.0)[:, None] + 0.7 * rng.normal(size=(400, 1))
    X[123] = size
    model = BaumWelchHMM(emission="student", random_state=0, max_iter=1000).fit(X)
    assert_allclose(model.means_[:, 0], [-2.0, 2.0], atol=0.2)
    assert np.mean(model.predict(X) == z) > 0.97


def test_standard_errors_of_a_rate_that_is_zero():
    """It is on the boundary, and the others are not."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(400) > 0.95) % 2
    X = np.where(z, rng.poisson(5, 400), 0.0)[:, None]
    model = BaumWelchHMM(emission="poisson", random_state=0).fit(X)
    errors = model.standard_errors_
    assert np.isnan(errors["means"][0, 0])
    assert_allclose(errors["means"][1, 0], np.sqrt(5 / np.sum(z)), rtol=0.1)
    assert np.isfinite(errors["transmat"]).all()
    none = BaumWelchHMM(emission="poisson", random_state=0).fit(np.zeros((30, 1)))
    assert np.isnan(none.standard_errors_["means"]).all()


def test_standard_errors_of_an_empty_state():
    """Of a reversible chain; the others are those of two states."""
    rng = np.random.default_rng(0)
    X = np.repeat([-3.0, 3.0, -3.0, 3.0], 50)[:, None] + rng.normal(size=(200, 1))
    with pytest.warns(UserWarning):
        model = BaumWelchHMM(
            3, structure="reversible", means_init=[[-3], [3], [1e6]], tol=1e-10
        ).fit(X)
    two = BaumWelchHMM(means_init=[[-3], [3]], tol=1e-10).fit(X)
    found = model.standard_errors_["means"][:2]
    assert_allclose(found, two.standard_errors_["means"], rtol=1e-3)


def test_parameters_of_left_right_models():
    """Zeros stay, and are no parameters."""
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 4.0, 8.0], 40)[:, None] + rng.normal(size=(120, 1))
    A = [[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]
    model = BaumWelchHMM(3, transmat_init=A, startprob_init=[1, 0, 0]).fit(X)
    rows = model.score_samples(X).sum()
    assert_allclose(model.bic(X), 8 * np.log(120) - 2.0 * rows)


def test_constant_column_that_begins_with_a_gap():
    """Its variance is a millionth of its square all the same."""
    rng = np.random.default_rng(0)
    X = np.c_[np.repeat([-2.0, 2.0], 100) + rng.normal(size=200), np.full(200, 0.1)]
    X[0, 1] = np.nan
    with pytest.warns(UserWarning, match="degenerate"):
        model = BaumWelchHMM(random_state=0).fit(X)
    assert_allclose(model.covariances_[:, 1, 1], 1e-8, rtol=1e-6)


def test_units_of_the_columns():
    """One by one: k-means looks at columns in units of their own."""
    rng = np.random.default_rng(3)
    z = np.cumsum(rng.random(500) < 0.05) % 2
    X = np.c_[np.where(z, 1.0, -1.0), 3.0 * rng.choice([-1.0, 1.0], 500)]
    X += rng.normal(size=X.shape)
    fits = [
        BaumWelchHMM(random_state=0, max_iter=1000).fit(X * [1.0, unit])
        for unit in (1e-3, 1.0, 1e3)
    ]
    for model in fits:
        assert_allclose(model.means_[:, 0], fits[1].means_[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emission": "categorical", "means_init": [[0], [1]]}, "means_init"),
        ({"emission": "poisson", "variance_prior": (1, 1)}, "variance_prior"),
        ({"structure": "symmetric", "sigma": 1.0, "df_init": 3.0}, "df_init"),
        (
            {"emission": "categorical", "emission_proba_init": [[0.5, 0.5]] * 2},
            "same law",
        ),
        (
            {"structure": "reversible", "transmat_init": [[1, 0], [0.5, 0.5]]},
            "reversible",
        ),
    ],
)
def test_parameters_of_other_models(options, message):
    """They are refused, not ignored."""
    X = np.random.default_rng(0).integers(2, size=(30, 1)).astype(float)
    with pytest.raises(ValueError, match=message):
        BaumWelchHMM(**options).fit(X)


def test_table_as_a_list():
    """Of a single column the table alone will do."""
    X = np.random.default_rng(0).integers(2, size=(30, 1))
    table = [[0.9, 0.1], [0.2, 0.8]]
    options = {"emission": "categorical", "max_iter": 3, "tol": 1.0}
    fits = [
        BaumWelchHMM(emission_proba_init=given, **options)
        for given in (table, [table], np.array(table))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [model.fit(X).history_ for model in fits]
    assert_allclose(found[1], found[0])
    assert_allclose(found[2], found[0])
