"""Standard errors, and how far EM has converged."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref
from reference import hmm_more as more
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hmm.toy import COVARIANCES, caught, parameters, symmetric_data, unfinished
from skbounds.hmm import BaumWelchHMM


def draw(seed, lengths, spread=2.0):
    """Two states that overlap a little, in the plane."""
    theta = {
        "startprob": np.array([0.6, 0.4]),
        "transmat": np.array([[0.85, 0.15], [0.25, 0.75]]),
        "means": np.array([[0.0, 0.0], [spread, 0.5 * spread]]),
        "covariances": np.array([[[1.0, 0.3], [0.3, 1.0]], [[0.7, 0.0], [0.0, 1.2]]]),
    }
    rng = np.random.default_rng(seed)
    return [ref.sample(n, theta, rng)[0] for n in lengths]


def fit(sequences, **options):
    """Fit to the limit of rounding."""
    X = np.vstack(sequences)
    lengths = [len(x) for x in sequences]
    options = {
        "reg_covar": 0.0, "tol": 1e-14, "max_iter": 5000, "random_state": 0, **options,
    }  # fmt: skip
    return BaumWelchHMM(**options).fit(X, lengths=lengths)


FIXED_START = {"fixed": ("startprob",), "startprob_init": [0.6, 0.4]}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", COVARIANCES)
def test_observed_information(kind, missing):
    """By differences of the log-likelihood of another program."""
    sequences = draw(0, [60, 50, 40])
    if missing and kind != "tied":
        rng = np.random.default_rng(1)
        for x in sequences:
            x[rng.random(x.shape) < 0.15] = np.nan
    model = fit(sequences, covariance_type=kind, **FIXED_START)
    expected = more.standard_errors(sequences, parameters(model), "gaussian", kind)
    for name in ("means", "covariances", "transmat"):
        found = model.standard_errors_[name]
        assert_allclose(found, expected[name], rtol=2e-6, err_msg=name)
    assert np.isnan(model.standard_errors_["startprob"]).all()


def test_counts():
    """Poisson outputs."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(300) < 0.15) % 2
    X = rng.poisson(np.where(z, 6.0, 2.0)).astype(float)[:, None]
    model = fit([X], emission="poisson", **FIXED_START)
    theta = {
        "startprob": model.startprob_, "transmat": model.transmat_,
        "means": model.means_,
    }  # fmt: skip
    expected = more.standard_errors([X], theta, "poisson")
    for name in ("means", "transmat"):
        assert_allclose(model.standard_errors_[name], expected[name], rtol=2e-6)


def test_closed_forms():
    """One state: what every textbook has."""
    X = np.random.default_rng(0).normal(size=(400, 2)) * [1.0, 5.0]
    errors = fit([X], n_components=1).standard_errors_
    deviation = X.std(axis=0)
    assert_allclose(errors["means"][0], deviation / 20.0, rtol=1e-6)
    variances = np.diagonal(errors["covariances"][0])
    assert_allclose(variances, deviation**2 * np.sqrt(2.0 / 400), rtol=1e-6)
    assert np.isnan(errors["transmat"]).all()
    assert np.isnan(errors["covariances"][0, 0, 1])


def test_categories_with_known_states():
    """Multinomial errors, of the largest probability as well."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(900) < 0.2) % 2
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    X = np.array([rng.choice(3, p=p[k]) for k in z])[:, None]
    model = BaumWelchHMM(emission="categorical", tol=1e-12).fit(X, states=z)
    found = model.emission_proba_[0]
    n = np.bincount(z)[:, None]
    expected = np.sqrt(found * (1.0 - found) / n)
    assert_allclose(model.standard_errors_["emission_proba"][0], expected, rtol=1e-6)
    A = model.transmat_
    n = np.bincount(z[:-1])[:, None]
    expected = np.sqrt(A * (1.0 - A) / n)
    assert_allclose(model.standard_errors_["transmat"], expected, rtol=1e-6)


def test_degrees_of_freedom():
    """Curvature of a Student fit with one state, by differences of the likelihood."""
    X = np.random.default_rng(3).standard_t(4.0, size=(2000, 1))
    model = fit([X], n_components=1, emission="student")
    errors = model.standard_errors_

    def value(m, v, df):
        other = pickle.loads(pickle.dumps(model))
        other.means_ = np.array([[m]])
        other.covariances_ = np.array([[[v]]])
        other.df_ = np.array([df])
        return other.score_samples(X).sum()

    point = np.array([model.means_[0, 0], model.covariances_[0, 0, 0], model.df_[0]])
    information = -more.hessian(lambda p: value(*p), point, 0.01)
    expected = np.sqrt(np.diagonal(np.linalg.inv(information)))
    found = [errors["means"][0, 0], errors["covariances"][0, 0, 0], errors["df"][0]]
    assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"startprob": "stationary"},
        {"structure": "reversible"},
        {"structure": "reversible", "startprob": "stationary"},
    ],
)
def test_other_chains(options):
    """Of two states all these have the same matrices; with a long sequence the start
    says little."""
    sequences = draw(4, [400])
    free = fit(sequences).standard_errors_
    other = fit(sequences, **options).standard_errors_
    for name in ("means", "transmat"):
        assert_allclose(other[name], free[name], rtol=0.05)


def test_symmetric_model():
    """By differences of the enumerated likelihood's gradient."""
    mu = np.array([1.0, 0.5])
    X, _ = symmetric_data(0, 300, mu, 0.3)
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, tol=1e-13, max_iter=5000)
    model.fit(X)

    def value(p):
        other = pickle.loads(pickle.dumps(model))
        other.means_ = np.array([-p[:2], p[:2]])
        other.transmat_ = np.array([[p[2], 1 - p[2]], [1 - p[2], p[2]]])
        return other.score_samples(X).sum()

    point = np.r_[model.means_[1], model.transmat_[0, 0]]
    expected = np.sqrt(np.diagonal(np.linalg.inv(-more.hessian(value, point, 0.01))))
    errors = model.standard_errors_
    assert_allclose(errors["means"][1], expected[:2], rtol=2e-3)
    assert_allclose(errors["transmat"][0, 0], expected[2], rtol=2e-3)


def test_boundary():
    """Impossible transitions, and one sequence's start."""
    A = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
    rng = np.random.default_rng(0)
    z = [0]
    for _ in range(599):
        z.append(rng.choice(3, p=A[z[-1]]))
    X = np.array([0.0, 4.0, 8.0])[z][:, None] + rng.normal(size=(600, 1))
    model = BaumWelchHMM(3, transmat_init=A, random_state=0).fit(X)
    errors = model.standard_errors_
    assert_array_equal(np.isnan(errors["transmat"]), A == 0.0)
    assert np.isnan(errors["startprob"]).all()
    assert np.isfinite(errors["means"]).all()


def test_sandwich_where_the_model_is_wrong():
    """Heavy tails: Gaussian variances are farther off than the curvature says."""
    wrong, robust, found = [], [], []
    for seed in range(60):
        X = np.random.default_rng(seed).standard_t(6.0, size=(300, 1))
        model = BaumWelchHMM(1).fit(X)
        wrong.append(model.standard_errors_["covariances"][0, 0, 0])
        robust.append(model.standard_errors("sandwich")["covariances"][0, 0, 0])
        found.append(model.covariances_[0, 0, 0])
    spread = np.std(found)
    assert np.mean(wrong) < 0.85 * spread
    assert_allclose(np.mean(robust), spread, rtol=0.25)


def test_sandwich_of_sequences():
    """Rows of a sequence that have something in common count once."""
    rng = np.random.default_rng(0)
    level = rng.normal(size=(100, 1))
    X = (level + 0.1 * rng.normal(size=(100, 20))).reshape(-1, 1)
    model = BaumWelchHMM(1).fit(X, lengths=[20] * 100)
    naive = model.standard_errors_["means"][0, 0]
    robust = model.standard_errors("sandwich")["means"][0, 0]
    assert_allclose(naive, X.std() / np.sqrt(2000), rtol=1e-4)
    assert_allclose(robust, level.std() / 10.0, rtol=0.05)


@pytest.mark.slow
def test_intervals_cover():
    """Nominal 95 % intervals of interior parameters: between 90 and 98 %."""
    mu, n = np.array([1.2, 0.0]), 500
    inside = []
    for seed in range(400):
        X, _ = symmetric_data(seed, n, mu, 0.2)
        model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0).fit(X)
        e = model.standard_errors_
        gaps = np.r_[model.means_[1] - mu, model.transmat_[0, 0] - 0.2]
        own = np.r_[e["means"][1], e["transmat"][0, 0]]
        free = BaumWelchHMM(covariance_type="spherical", random_state=0).fit(X)
        e = free.standard_errors_
        gaps = np.r_[
            gaps, (free.means_ - [-mu, mu]).ravel(), free.covariances_[:, 0, 0] - 1.0,
            np.diagonal(free.transmat_) - 0.2,
        ]  # fmt: skip
        own = np.r_[
            own, e["means"].ravel(), e["covariances"][:, 0, 0],
            np.diagonal(e["transmat"]),
        ]  # fmt: skip
        inside.append(np.abs(gaps) < 1.96 * own)
    cover = np.mean(inside, axis=0)
    assert cover.min() > 0.90
    assert cover.max() < 0.98


def test_lazy_and_light():
    """Computed once; not for the diagram; pickles have no rows."""
    sequences = draw(5, [200])
    model = fit(sequences)
    assert "standard_errors_" not in dir(model)
    size = len(pickle.dumps(model))
    assert size < 5000
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(AttributeError, match="pickles"):
        _ = again.standard_errors_
    errors = model.standard_errors_
    assert model.standard_errors_ is errors
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.standard_errors_["means"], errors["means"])
    assert not hasattr(clone(model), "_standard_errors_")
    model.fit(np.vstack(draw(6, [100])))
    assert model.standard_errors_["means"][0, 0] != errors["means"][0, 0]
    with pytest.raises(ValueError, match="kind"):
        model.standard_errors("robust")


# ---------------------------------------------------------------------- convergence


@pytest.mark.parametrize("structure", ["free", "symmetric"])
def test_remaining_gain(structure):
    """What is left, where gains shrink steadily; and the distance to the end."""
    mu = np.array([0.9, 0.3])
    X, _ = symmetric_data(1, 500, mu, 0.25)
    options = {"structure": structure, "random_state": 0, "max_iter": 5000}
    if structure == "symmetric":
        options["sigma"] = 1.0
    end = BaumWelchHMM(tol=1e-15, **options).fit(X)
    for tol in (1e-8, 1e-10):
        with unfinished():
            model = BaumWelchHMM(tol=tol, **options).fit(X)
        left = end.history_[-1] - model.history_[-1]
        assert_allclose(model.remaining_gain_, left, rtol=0.5)
        if structure == "symmetric":
            betas = [ref.beta_of(m.transmat_[0, 0]) for m in (end, model)]
            gap = np.linalg.norm(end.means_[1] - model.means_[1])
            gap += abs(betas[0] - betas[1])
        else:
            gaps = [((end.means_ - model.means_) / X.std(axis=0)).ravel()]
            gaps.append((end.transmat_ - model.transmat_).ravel())
            gap = np.linalg.norm(np.concatenate(gaps))
        assert_allclose(model.optimization_error_, gap, rtol=0.5)


def test_converged_to_a_tenth_of_a_standard_error():
    """By default, where EM does not linger."""
    for seed in range(10):
        sequences = draw(seed, [300], spread=1.5)
        X = sequences[0]
        model = BaumWelchHMM(random_state=0, max_iter=2000).fit(X)
        end = fit(sequences, reg_covar="auto", tol=1e-13)
        assert model.converged_
        assert end.history_[-1] - model.history_[-1] < 0.01
        errors = model.standard_errors_
        gaps = np.abs(model.means_ - end.means_) / errors["means"]
        assert gaps.max() < 0.15


def test_warning_of_what_is_left():
    """A large `tol` ends EM too early, and a warning says so."""
    X = draw(0, [300], spread=1.0)[0]
    with pytest.warns(ConvergenceWarning, match="standard errors") as said:
        model = BaumWelchHMM(tol=1e-3, random_state=0, max_iter=1000).fit(X)
    assert len(said) == 1
    assert model.converged_
    assert model.remaining_gain_ > 0.005
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = BaumWelchHMM(random_state=0, max_iter=3).fit(X)
    assert not model.converged_
    model = BaumWelchHMM(random_state=0, max_iter=2000)
    assert not caught(model.fit, X)
    assert model.remaining_gain_ <= 0.005
