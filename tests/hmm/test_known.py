"""What is known beforehand: states, parameters that stay, priors and zeros."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as plain
from reference import hmm_more as ref
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from hmm.laws import (
    EMISSIONS,
    KINDS,
    NAMES,
    assert_law,
    either,
    every_emission,
    every_kind,
    fit_law,
    fitted,
    general,
    model_of,
    rows_for,
    together,
)
from hmm.toy import COVARIANCES, separated, symmetric_data, unfinished
from skbounds.hmm import BaumWelchHMM

LENGTHS = [5, 1, 4, 3]
every_covariance = pytest.mark.parametrize("covariance_type", COVARIANCES)


def some_known(seed, lengths, s, share=0.4):
    """States of a share of the rows, -1 for the others."""
    rng = np.random.default_rng(seed)
    return [
        np.where(rng.random(n) < share, rng.integers(s, size=n), -1) for n in lengths
    ]


# ---------------------------------------------------------------------- states that are


@either
@pytest.mark.parametrize("s", [2, 3])
@every_kind
def test_one_step_with_known_states(emission, covariance_type, s, missing):
    """One update and both log-likelihoods, by sums over the paths that are possible."""
    theta = model_of(emission, covariance_type, s, s)
    sequences = rows_for(emission, 2, LENGTHS, missing)
    known = some_known(1, LENGTHS, s)
    new = ref.em_step(
        sequences, theta, emission, covariance_type, known, expanded="exact"
    )
    model = fit_law(sequences, theta, emission, covariance_type, known=known)
    assert_law(fitted(model, emission), new)
    expected = [ref.loglik(sequences, t, emission, known) for t in (theta, new)]
    assert_allclose(model.history_, expected, rtol=1e-10)
    assert abs(expected[0] - ref.loglik(sequences, theta, emission)) > 0.5


@every_emission
def test_many_steps_with_known_states(emission):
    """The likelihood of rows and known states never falls, and is that of the fit."""
    for seed in range(5):
        theta = model_of(emission, "full", seed, 3)
        lengths = [60, 40]
        sequences = rows_for(emission, seed, lengths, missing=True)
        known = some_known(seed, lengths, 3)
        model = fit_law(sequences, theta, emission, n_iter=30, known=known)
        assert np.diff(model.history_).min() > -1e-10 * abs(model.history_[0])
        law = fitted(model, emission)
        value = ref.loglik(sequences, law, emission, known, method="forward")
        assert_allclose(model.history_[-1], value, rtol=1e-10)


@every_emission
def test_nothing_known(emission):
    """-1 everywhere is no information, and has the same bits."""
    theta = model_of(emission)
    sequences = rows_for(emission, 2, LENGTHS)
    model = fit_law(sequences, theta, emission, n_iter=3)
    other = fit_law(
        sequences, theta, emission, n_iter=3, known=[np.full(n, -1) for n in LENGTHS]
    )
    assert_law(fitted(other, emission), fitted(model, emission), rtol=0, atol=0)
    assert_array_equal(other.history_, model.history_)


def test_everything_known():
    """Relative frequencies, and means and covariances of the classes, in one step."""
    rng = np.random.default_rng(0)
    lengths, s = [30, 12, 1, 20], 3
    known = [rng.integers(s, size=n) for n in lengths]
    sequences = rows_for("gaussian", 0, lengths)
    x, states = np.vstack(sequences), np.concatenate(known)
    theta = model_of("gaussian", "full", 0, s)
    model = fit_law(sequences, theta, "gaussian", known=known)
    counts, first = np.zeros((s, s)), np.zeros(s)
    for z in known:
        first[z[0]] += 1
        for a, b in pairwise(z):
            counts[a, b] += 1
    assert counts.min() > 0
    frequencies = counts / counts.sum(axis=1, keepdims=True)
    assert_allclose(model.transmat_, frequencies, rtol=1e-12)
    assert_allclose(model.startprob_, first / 4, rtol=1e-12, atol=1e-15)
    for j in range(s):
        own = x[states == j]
        assert_allclose(model.means_[j], own.mean(axis=0), rtol=1e-11)
        assert_allclose(model.covariances_[j], np.cov(own.T, bias=True), rtol=1e-10)
    # Another step changes nothing.
    again = fit_law(sequences, theta, "gaussian", n_iter=2, known=known)
    assert_allclose(again.history_[2], again.history_[1], rtol=1e-12)
    assert_law(fitted(again, "gaussian"), fitted(model, "gaussian"), rtol=1e-10)


def test_everything_known_of_counts_and_categories():
    """Class means of counts, relative frequencies of categories."""
    rng = np.random.default_rng(1)
    known = [rng.integers(2, size=50)]
    x = rows_for("poisson", 1, [50])
    model = fit_law(x, model_of("poisson"), "poisson", known=known)
    for j in range(2):
        own = x[0][known[0] == j]
        assert_allclose(model.means_[j], own.mean(axis=0), rtol=1e-12)
    x = rows_for("categorical", 1, [50])
    model = fit_law(x, model_of("categorical"), "categorical", known=known)
    for j in range(2):
        own = x[0][known[0] == j].astype(int)
        for k, size in enumerate((3, 2)):
            shares = np.bincount(own[:, k], minlength=size) / len(own)
            assert_allclose(model.emission_proba_[k][j], shares, rtol=1e-12)


@every_emission
def test_numbers_of_known_states(emission):
    """States have the user's numbers, even where their means are in another order."""
    rng = np.random.default_rng(3)
    z = np.repeat([2, 0, 1, 2, 1, 0], 30)
    if emission == "categorical":
        x = np.where(rng.random((180, 4)) < 0.85, (2 - z)[:, None], 1.0)
    else:
        x = 4.0 * (2 - z)[:, None] + np.abs(rng.normal(size=(180, 2)))
    if emission == "poisson":
        x = np.round(x)
    known = np.full(180, -1)
    known[[10, 40, 70]] = z[[10, 40, 70]]
    for seed in range(3):
        for n_init in (1, 4):
            model = BaumWelchHMM(
                3, emission=emission, n_init=n_init, random_state=seed, tol=1e-6
            )
            with unfinished():
                model.fit(x, states=known)
            assert np.mean(model.predict(x) == z) > 0.97, (seed, n_init)
    # Without them the order is that of the means.
    model = BaumWelchHMM(3, emission=emission, n_init=4, random_state=0, tol=1e-6)
    with unfinished():
        assert np.mean(model.fit(x).predict(x) == 2 - z) > 0.97


LEFT_RIGHT = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])


@either
@every_kind
def test_known_states_of_a_chain_that_only_moves_on(emission, covariance_type, missing):
    """Zeros of the transition matrix and known states together."""
    theta = model_of(emission, covariance_type, 4, 3)
    theta["transmat"] = LEFT_RIGHT
    theta["startprob"] = np.array([1.0, 0.0, 0.0])
    lengths = [14, 12, 10]
    sequences = rows_for(emission, 4, lengths, missing)
    known = [np.full(n, -1) for n in lengths]
    known[0][[2, 6, 9]] = [0, 1, 2]
    known[1][[0, 5]] = [0, 1]
    known[2][1] = 1
    new = ref.em_step(
        sequences,
        theta,
        emission,
        covariance_type,
        known,
        expanded="exact",
        method="recursion",
    )
    model = fit_law(sequences, theta, emission, covariance_type, known=known)
    assert_law(fitted(model, emission), new)
    assert_array_equal(model.transmat_[LEFT_RIGHT == 0.0], 0.0)
    assert_array_equal(model.startprob_, [1.0, 0.0, 0.0])
    expected = [
        ref.loglik(sequences, t, emission, known, method="forward")
        for t in (theta, new)
    ]
    assert_allclose(model.history_, expected, rtol=1e-10)


@pytest.mark.parametrize("zero", [False, True])
def test_known_states_against_all_densities(zero):
    """A state that the rows are far from is believed."""
    theta = model_of("gaussian", "diag", 4, 2)
    theta["means"] = np.array([[0.0, 0, 0], [300.0, 0, 0]])
    x = rows_for("gaussian", 4, [8])
    known = [np.array([0, -1, 1, 1, 0, -1, 1, 0])]
    if zero:
        theta["transmat"] = np.array([[0.5, 0.5], [1.0, 0.0]])
        known[0][3] = -1
    model = fit_law(x, theta, "gaussian", "diag", known=known)
    expected = ref.loglik(x, theta, "gaussian", known)
    assert expected < -1e4
    assert_allclose(model.history_[0], expected, rtol=1e-12)
    new = ref.em_step(x, theta, "gaussian", "diag", known=known)
    assert_law(fitted(model, "gaussian"), new)


def test_contradiction():
    """Known states that transitions or the start law forbid are an error."""
    theta = model_of("gaussian", "full", 4, 3)
    theta["transmat"] = LEFT_RIGHT
    x = rows_for("gaussian", 4, [6])
    for known in (
        [1, 0, -1, -1, -1, -1],
        [-1, 2, -1, -1, 1, -1],
        [0, 2, -1, -1, -1, -1],
    ):
        with pytest.raises(ValueError, match="impossible"):
            fit_law(x, theta, "gaussian", known=[np.array(known)])
    theta["startprob"] = np.array([0.0, 0.5, 0.5])
    with pytest.raises(ValueError, match="impossible"):
        fit_law(x, theta, "gaussian", known=[np.array([-1, 0, -1, -1, -1, -1])])


def test_known_states_of_scattered_sequences():
    """States go with their rows."""
    theta = model_of("gaussian", s=3)
    sequences = rows_for("gaussian", 3, [6, 8])
    known = some_known(3, [6, 8], 3)
    model = fit_law(sequences, theta, "gaussian", n_iter=3, known=known)
    ids = np.array([0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1])
    X, states = np.empty((14, 3)), np.empty(14, dtype=int)
    for k in range(2):
        X[ids == k], states[ids == k] = sequences[k], known[k]
    other = general(theta, "gaussian", max_iter=3)
    with unfinished():
        other.fit(X, states=states, sequence_id=ids)
    assert_array_equal(other.history_, model.history_)
    assert_law(fitted(other, "gaussian"), fitted(model, "gaussian"), rtol=0, atol=0)


def test_known_states_in_a_pipeline():
    """They travel by metadata routing."""
    sequences, states, _ = separated(2, n=120)
    X = 5.0 + 3.0 * np.vstack(sequences)
    known = np.where(np.arange(120) % 7 == 0, np.concatenate(states), -1)
    options = {"n_components": 3, "n_init": 2, "random_state": 0}
    scaled = StandardScaler().fit_transform(X)
    direct = BaumWelchHMM(**options).fit(scaled, states=known)
    without = BaumWelchHMM(**options).fit(scaled)
    with sklearn.config_context(enable_metadata_routing=True):
        model = BaumWelchHMM(**options).set_fit_request(states=True)
        pipe = Pipeline([("scale", StandardScaler()), ("hmm", model)])
        pipe.fit(X, states=known)
        assert_array_equal(pipe.predict(X), direct.predict(scaled))
    assert_array_equal(pipe["hmm"].history_, direct.history_)
    assert_array_equal(pipe["hmm"].means_, direct.means_)
    assert abs(without.history_[-1] - direct.history_[-1]) > 1.0


@pytest.mark.parametrize(
    "states",
    [
        np.zeros(29, dtype=int),
        np.zeros((30, 1), dtype=int),
        np.full(30, 2),
        np.full(30, -2),
        np.full(30, 0.5),
        np.full(30, np.nan),
        np.full(30, "a"),
        [None] * 30,
        0,
    ],
    ids=["short", "column", "large", "small", "half", "nan", "word", "none", "number"],
)
def test_wrong_states(states):
    """One for each row: -1, or the number of a state."""
    x = rows_for("gaussian", 0, [30])[0]
    with pytest.raises(ValueError, match="states must"):
        BaumWelchHMM(random_state=0).fit(x, states=states)


def test_whole_numbers_are_states():
    """As floats, too."""
    theta = model_of("gaussian")
    x = rows_for("gaussian", 0, [30])[0]
    known = some_known(0, [30], 2)[0]
    found = []
    for given in (known, known.astype(float), known.tolist(), known.astype(np.int8)):
        model = general(theta, "gaussian", max_iter=2)
        with unfinished():
            found.append(model.fit(x, states=given).history_)
    for other in found[1:]:
        assert_array_equal(other, found[0])


def test_symmetric_model_refuses_known_states():
    """Its states are mirror images; fixed parameters and priors it refuses as well."""
    X = symmetric_data(0, 30, [1.0, 0.5], 0.6)[0]
    model = BaumWelchHMM(structure="symmetric", sigma=1.0)
    with pytest.raises(ValueError, match="states is not for structure='symmetric'"):
        model.fit(X, states=np.zeros(30, dtype=int))
    for name, value in (
        ("fixed", ("transmat",)),
        ("sticky", 1.0),
        ("transmat_prior", 1.0),
        ("transmat_prior", np.ones((2, 2))),
        ("variance_prior", (1.0, 1.0)),
        ("emission", "student"),
    ):
        other = BaumWelchHMM(structure="symmetric", sigma=1.0, **{name: value})
        with pytest.raises(ValueError, match=f"{name} is"):
            other.fit(X)


# ----------------------------------------------------------------- parameters that stay


def exact(emission, covariance_type="full", s=2):
    """A model whose rows of probabilities have sum 1 to the last bit."""
    theta = model_of(emission, covariance_type, 6, s)
    if s == 2:
        theta["startprob"] = np.array([0.375, 0.625])
        theta["transmat"] = np.array([[0.75, 0.25], [0.375, 0.625]])
    else:
        theta["startprob"] = np.array([0.25, 0.25, 0.5])
        theta["transmat"] = np.array([[3, 4, 1], [4, 2, 2], [1, 2, 5]]) / 8
    if emission == "categorical":
        theta["emission_proba"] = [
            np.array([[2, 5, 1], [1, 1, 6], [3, 3, 2]][:s]) / 8,
            np.array([[3, 5], [6, 2], [1, 7]][:s]) / 8,
        ]
    return theta


FIXED = [
    (*kind, name)
    for kind in KINDS
    for name in ("startprob", "transmat", *NAMES[kind[0]])
]


@pytest.mark.parametrize("s", [2, 3])
@pytest.mark.parametrize(("emission", "covariance_type", "name"), FIXED)
def test_what_is_fixed_stays(emission, covariance_type, name, s):
    """Bit for bit, while all the others move."""
    theta = exact(emission, covariance_type, s)
    sequences = rows_for(emission, 6, [40, 30], missing=True)
    model = fit_law(
        sequences, theta, emission, covariance_type, n_iter=4, fixed=(name,)
    )
    for other, value in fitted(model, emission).items():
        if other == name:
            for got, want in zip(value, theta[name], strict=True):
                assert_array_equal(got, want)
        else:
            gap = max(
                np.abs(got - want).max()
                for got, want in zip(value, theta[other], strict=True)
            )
            assert gap > 1e-3, other


def test_large_models_stay():
    """Covariances of many states or columns, which have one value only, as well."""
    rng = np.random.default_rng(0)
    for kind, s, d in (("tied", 7, 2), ("spherical", 2, 7)):
        C = np.array([0.7 / 3 * np.eye(d)] * s)
        model = BaumWelchHMM(
            s,
            covariance_type=kind,
            means_init=rng.normal(size=(s, d)),
            covariances_init=C,
            fixed="covariances",
            max_iter=2,
        )
        with unfinished():
            model.fit(rng.normal(size=(60, d)))
        assert_array_equal(model.covariances_, C, err_msg=kind)


def test_rounded_probabilities_stay():
    """Rows whose sum is 1 but for rounding stay but for rounding."""
    theta = model_of("gaussian", s=3)
    theta["transmat"] = np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1], [1 / 3] * 3])
    sequences = rows_for("gaussian", 6, [40])
    model = fit_law(sequences, theta, "gaussian", n_iter=5, fixed="transmat")
    assert_allclose(model.transmat_, theta["transmat"], rtol=3e-16)


TOGETHER = [
    *FIXED,
    *[
        (*kind, names)
        for kind in KINDS[:8]
        for names in (("means", "transmat"), ("means", "df"), ("covariances", "df"))
        if "df" not in names or kind[0] == "student"
    ],
]


@either
@pytest.mark.parametrize(("emission", "covariance_type", "fixed"), TOGETHER)
def test_likelihood_with_fixed_parameters(emission, covariance_type, fixed, missing):
    """It never falls, whatever stays: steps are the best ones for the rest."""
    for seed in range(4):
        theta = model_of(emission, covariance_type, seed)
        sequences = rows_for(emission, seed, [40, 20], missing)
        with warnings.catch_warnings():
            # Far from means that stay, a state may lose its rows.
            warnings.simplefilter("ignore", UserWarning)
            model = fit_law(
                sequences, theta, emission, covariance_type, 20, fixed=fixed
            )
        least = -1e-10 * abs(model.history_[0])
        assert np.diff(model.history_).min() > least, seed


@either
@every_covariance
def test_one_step_with_fixed_means(covariance_type, missing):
    """Covariances are about the means that stay."""
    theta = model_of("gaussian", covariance_type, 5)
    sequences = rows_for("gaussian", 5, LENGTHS, missing)
    parts = ref.posteriors(sequences, theta, "gaussian")
    gamma = np.vstack([part["gamma"] for part in parts])
    x = np.vstack(sequences)
    seen = ~np.isnan(x)
    scatter, weight = np.zeros((2, 3, 3)), np.zeros((2, 3))
    for j in range(2):
        m, S = theta["means"][j], theta["covariances"][j]
        for row, there, g in zip(x, seen, gamma[:, j], strict=True):
            if covariance_type in ("full", "tied"):
                if there.any():
                    done, C, _ = ref.complete(row, m, S)
                    scatter[j] += g * (np.outer(done - m, done - m) + C)
                    weight[j] += g
            else:
                gap = np.where(there, row - m, 0.0)
                scatter[j] += g * np.diag(gap**2)
                weight[j] += g * there
    if covariance_type == "tied":
        expected = np.array([scatter.sum(axis=0) / weight[:, 0].sum()] * 2)
    elif covariance_type == "spherical":
        values = np.trace(scatter, axis1=1, axis2=2) / weight.sum(axis=1)
        expected = values[:, None, None] * np.eye(3)
    else:
        expected = scatter / weight[:, :, None]
    model = fit_law(sequences, theta, "gaussian", covariance_type, fixed=("means",))
    assert_array_equal(model.means_, theta["means"])
    assert_allclose(model.covariances_, expected, rtol=1e-9, atol=1e-12)


@either
@every_covariance
def test_one_step_with_fixed_degrees_of_freedom(covariance_type, missing):
    """The other parameters' steps are those of a law with these degrees."""
    theta = model_of("student", covariance_type, 5)
    sequences = rows_for("student", 5, LENGTHS, missing)
    new = ref.em_step(
        sequences,
        theta,
        "student",
        covariance_type,
        expanded="exact",
        update_df=False,
    )
    model = fit_law(sequences, theta, "student", covariance_type, fixed="df")
    assert_array_equal(model.df_, theta["df"])
    assert_law(fitted(model, "student"), new)


@every_kind
def test_everything_fixed(emission, covariance_type):
    """Nothing happens, and the score is that of the model."""
    theta = exact(emission, covariance_type)
    sequences = rows_for(emission, 6, [40])
    names = ("startprob", "transmat", *NAMES[emission])
    model = fit_law(sequences, theta, emission, covariance_type, 3, fixed=names)
    assert_law(fitted(model, emission), theta, rtol=0, atol=0)
    value = ref.loglik(sequences, theta, emission, method="forward")
    assert_allclose(model.history_, value, rtol=1e-11)


@pytest.mark.parametrize("startprob", ["free", "stationary"])
@pytest.mark.parametrize("structure", ["free", "reversible"])
def test_fixed_transitions_of_every_structure(structure, startprob):
    """They stay; a start law that is tied to them is their stationary one."""
    theta = exact("gaussian")
    sequences = rows_for("gaussian", 6, [40])
    model = fit_law(
        sequences,
        theta,
        "gaussian",
        n_iter=3,
        fixed=("transmat",),
        structure=structure,
        startprob=startprob,
    )
    assert_array_equal(model.transmat_, theta["transmat"])
    assert np.abs(model.means_ - theta["means"]).max() > 0.1
    if startprob == "stationary":
        law = plain.stationary(theta["transmat"])
        assert_allclose(model.startprob_, law, rtol=1e-12)
    else:
        assert np.abs(model.startprob_ - theta["startprob"]).max() > 0.01


@every_emission
def test_fixed_transitions_and_several_starts(emission):
    """Other starts do not change what is fixed."""
    theta = exact(emission, s=3)
    X, lengths = together(rows_for(emission, 6, [60, 40]), emission)
    model = BaumWelchHMM(
        3,
        emission=emission,
        transmat_init=theta["transmat"],
        startprob_init=theta["startprob"],
        fixed=["transmat", "startprob"],
        n_init=5,
        random_state=0,
        max_iter=40,
    )
    with unfinished():
        model.fit(X, lengths=lengths)
    assert_array_equal(model.transmat_, theta["transmat"])
    assert_array_equal(model.startprob_, theta["startprob"])


@pytest.mark.parametrize(
    ("emission", "name"),
    [
        (emission, name)
        for emission in EMISSIONS
        for name in ("startprob", "transmat", *NAMES[emission])
    ],
)
def test_fixed_needs_a_value(emission, name):
    """Something has to be there to stay."""
    X, _ = together(rows_for(emission, 6, [30]), emission)
    model = BaumWelchHMM(emission=emission, fixed=(name,))
    with pytest.raises(ValueError, match=f"fixed='{name}' needs {name}_init"):
        model.fit(X)


@pytest.mark.parametrize(
    ("emission", "name"),
    [
        ("gaussian", "sigma"),
        ("gaussian", "means_init"),
        ("gaussian", "df"),
        ("poisson", "covariances"),
        ("categorical", "means"),
        ("student", "emission_proba"),
    ],
)
def test_fixed_of_other_names(emission, name):
    """Names that the law does not have are refused."""
    X, _ = together(rows_for(emission, 6, [30]), emission)
    for fixed in ((name,), name, [name], {name}):
        with pytest.raises(ValueError, match=f"fixed has '{name}'"):
            BaumWelchHMM(emission=emission, fixed=fixed).fit(X)


def test_fixed_and_tied_start_law():
    """A start law cannot both stay and follow the transitions."""
    x = rows_for("gaussian", 6, [30])[0]
    model = BaumWelchHMM(
        fixed="startprob", startprob_init=[0.5, 0.5], startprob="stationary"
    )
    with pytest.raises(ValueError, match="startprob"):
        model.fit(x)


# ------------------------------------------------------------------------------- priors

PSEUDO = np.array([[5.0, 0.0, 2.0], [1.0, 0.5, 0.0], [0.0, 3.0, 4.0]])


@pytest.mark.parametrize(
    ("options", "pseudo"),
    [
        ({"transmat_prior": 1.5}, np.full((3, 3), 1.5)),
        ({"transmat_prior": PSEUDO}, PSEUDO),
        ({"sticky": 4.0}, 4.0 * np.eye(3)),
        ({"transmat_prior": 0.5, "sticky": 4.0}, 0.5 + 4.0 * np.eye(3)),
        ({"transmat_prior": PSEUDO.tolist(), "sticky": 1.0}, PSEUDO + np.eye(3)),
    ],
    ids=["number", "matrix", "sticky", "both", "list"],
)
@every_emission
def test_one_step_with_counted_transitions(emission, options, pseudo):
    """Pairs and prior pairs are added; `history_` has the logarithm of the prior."""
    theta = model_of(emission, "full", 3, 3)
    sequences = rows_for(emission, 3, LENGTHS)
    model = fit_law(sequences, theta, emission, **options)
    new = ref.em_step(sequences, theta, emission, expanded="exact")
    parts = ref.posteriors(sequences, theta, emission)
    counts, _ = ref.expected_counts(parts, 3)
    new["transmat"] = ref.map_transition(counts, pseudo)
    assert_law(fitted(model, emission), new)
    # A Dirichlet law with parameters pseudo + 1: density proportional to A^pseudo.
    values = [
        ref.loglik(sequences, t, emission) + np.sum(pseudo * np.log(t["transmat"]))
        for t in (theta, new)
    ]
    assert_allclose(np.diff(model.history_), np.diff(values), rtol=1e-8)


@pytest.mark.parametrize("startprob", ["free", "stationary"])
@pytest.mark.parametrize("structure", ["free", "reversible"])
@pytest.mark.parametrize("options", [{"transmat_prior": 2.0}, {"sticky": 10.0}])
def test_history_with_counted_transitions(options, structure, startprob):
    """It never falls, and the prior pulls."""
    for seed in range(5):
        theta = model_of("gaussian", "diag", seed)
        theta["transmat"] = np.array([[0.6, 0.4], [0.4, 0.6]])
        sequences = rows_for("gaussian", seed, [40, 20])
        more = {"structure": structure, "startprob": startprob}
        model = fit_law(sequences, theta, "gaussian", "diag", 30, **options, **more)
        assert np.diff(model.history_).min() > -1e-10 * abs(model.history_[0])
        free = fit_law(sequences, theta, "gaussian", "diag", 1, **more)
        pulled = fit_law(sequences, theta, "gaussian", "diag", 1, **options, **more)
        if "sticky" in options:
            gain = np.diag(pulled.transmat_) - np.diag(free.transmat_)
        else:
            gain = np.abs(free.transmat_ - 0.5) - np.abs(pulled.transmat_ - 0.5)
        assert gain.min() > 0.0


def test_zeros_with_counted_transitions():
    """What is impossible stays so, whatever the prior has counted."""
    theta = model_of("gaussian", "full", 3, 3)
    theta["transmat"] = np.array([[0.0, 0.4, 0.6], [0.0, 0.7, 0.3], [0.5, 0.5, 0.0]])
    sequences = rows_for("gaussian", 3, LENGTHS)
    parts = ref.posteriors(sequences, theta, "gaussian")
    counts, _ = ref.expected_counts(parts, 3)
    pseudo = np.where(theta["transmat"] > 0, 1.5 + 4.0 * np.eye(3), 0.0)
    model = fit_law(sequences, theta, "gaussian", transmat_prior=1.5, sticky=4.0)
    expected = ref.map_transition(counts, pseudo)
    assert_allclose(model.transmat_, expected, rtol=1e-10)
    assert_array_equal(model.transmat_[theta["transmat"] == 0.0], 0.0)
    values = []
    new = fitted(model, "gaussian")
    for t in (theta, new):
        some = pseudo > 0
        prior = np.sum(pseudo[some] * np.log(t["transmat"][some]))
        values.append(ref.loglik(sequences, t, "gaussian") + prior)
    assert_allclose(np.diff(model.history_), np.diff(values), rtol=1e-8)


def test_transitions_are_fixed_against_the_prior():
    """What is fixed does not feel it."""
    theta = exact("gaussian")
    sequences = rows_for("gaussian", 6, [40])
    model = fit_law(
        sequences, theta, "gaussian", n_iter=3, fixed="transmat", sticky=50.0
    )
    assert_array_equal(model.transmat_, theta["transmat"])


def column_variances(x):
    """Variances of the entries of the columns that are there."""
    return np.array([np.var(column[~np.isnan(column)]) for column in x.T])


def log_prior(theta, covariance_type, prior, unit):
    """Logarithm of inverse-gamma laws of the variances, up to constants.

    Of matrices S the inverse-Wishart law |S|^-(shape + 1) exp(-scale tr(U S^-1)), U
    diagonal; of one matrix for all states it counts once.
    """
    shape, scale = prior
    matrices = theta["covariances"]
    if covariance_type == "tied":
        matrices = matrices[:1]
    value = 0.0
    for S in matrices:
        value -= (shape + 1) * np.linalg.slogdet(S)[1]
        value -= scale * np.trace(np.diag(unit) @ np.linalg.inv(S))
    return value


@either
@pytest.mark.parametrize("prior", [(2.0, 0.5), (0.0, 3.0), (10.0, 0.0)])
@every_covariance
def test_one_step_with_variance_prior(covariance_type, prior, missing):
    """Sums of squares and numbers of rows, each with what the prior adds."""
    theta = model_of("gaussian", covariance_type, 5)
    sequences = rows_for("gaussian", 5, LENGTHS, missing)
    x = np.vstack(sequences)
    unit = column_variances(x)
    gamma = np.vstack(
        [part["gamma"] for part in ref.posteriors(sequences, theta, "gaussian")]
    )
    own = {"tied": "full", "spherical": "diag"}.get(covariance_type, covariance_type)
    means, found, _ = ref.location_scale_step(x, gamma, theta, own)
    seen = ~np.isnan(x)
    if own == "full":
        weight = np.repeat((gamma.T @ seen.any(axis=1))[:, None], 3, axis=1)
    else:
        weight = gamma.T @ seen
    shape, scale = prior
    sums = found * weight[:, :, None]
    extra, more = 2 * scale * np.diag(unit), 2 * (shape + 1)
    if covariance_type == "tied":
        expected = (sums.sum(axis=0) + extra) / (weight[:, 0].sum() + more)
        expected = np.array([expected] * 2)
    elif covariance_type == "spherical":
        values = np.trace(sums + extra, axis1=1, axis2=2)
        values = values / (weight + more).sum(axis=1)
        expected = values[:, None, None] * np.eye(3)
    else:
        expected = (sums + extra) / (weight + more)[:, :, None]
    model = fit_law(sequences, theta, "gaussian", covariance_type, variance_prior=prior)
    assert_allclose(model.means_, means, rtol=1e-9, atol=1e-12)
    assert_allclose(model.covariances_, expected, rtol=1e-9, atol=1e-12)
    new = fitted(model, "gaussian")
    values = [
        ref.loglik(sequences, t, "gaussian")
        + log_prior(t, covariance_type, prior, unit)
        for t in (theta, new)
    ]
    assert_allclose(np.diff(model.history_), np.diff(values), rtol=1e-8)


@either
@pytest.mark.parametrize("prior", [(2.0, 0.5), (0.0, 5.0), (50.0, 0.1)])
@pytest.mark.parametrize("emission", ["gaussian", "student"])
@every_covariance
def test_history_with_variance_prior(emission, covariance_type, prior, missing):
    """The posterior density never falls, and is that of what is fitted."""
    for seed in range(5):
        theta = model_of(emission, covariance_type, seed)
        sequences = rows_for(emission, seed, [40, 20], missing)
        unit = column_variances(np.vstack(sequences))
        model = fit_law(
            sequences, theta, emission, covariance_type, 30, variance_prior=prior
        )
        values = [
            ref.loglik(sequences, t, emission, method="forward")
            + log_prior(t, covariance_type, prior, unit)
            for t in (theta, fitted(model, emission))
        ]
        gain = model.history_[-1] - model.history_[0]
        assert_allclose(gain, values[1] - values[0], rtol=1e-8)
        least = -1e-10 * abs(model.history_[0])
        assert np.diff(model.history_).min() > least, seed


def test_variance_prior_against_collapse():
    """A state of a single row keeps a variance."""
    x = np.vstack([rows_for("gaussian", 1, [60])[0], [[30.0, 30.0, 30.0]]])
    prior = (1.0, 0.1)
    unit = column_variances(x)
    start = {"means_init": [[0, 0, 0], [30.0, 30, 30]], "reg_covar": 0.0}
    model = BaumWelchHMM(**start, variance_prior=prior, tol=1e-12, max_iter=500).fit(x)
    # One row, no squares: 2 * scale * unit / (1 + 2 * (shape + 1)).
    expected = 2 * 0.1 * unit / (1 + 2 * 2)
    assert_allclose(np.diag(model.covariances_[1]), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "prior",
    [(-1.0, 1.0), (1.0, -1.0), (1.0,), (1.0, 1.0, 1.0), (np.nan, 1.0), (1, np.inf)],
)
def test_wrong_variance_prior(prior):
    """A shape and a scale, 0 or more."""
    x = rows_for("gaussian", 1, [30])[0]
    with pytest.raises(ValueError, match="variance_prior must be"):
        BaumWelchHMM(variance_prior=prior).fit(x)


@pytest.mark.parametrize(
    "prior",
    [
        -1.0,
        np.full((3, 3), 1.0),
        [1.0, 1.0],
        [[1.0, -1.0], [1.0, 1.0]],
        np.full((2, 2), np.nan),
    ],
    ids=["negative", "shape", "row", "one", "nan"],
)
def test_wrong_transition_prior(prior):
    """A number or a matrix, 0 or more."""
    x = rows_for("gaussian", 1, [30])[0]
    with pytest.raises(ValueError, match="transmat_prior"):
        BaumWelchHMM(transmat_prior=prior).fit(x)


@pytest.mark.parametrize("sticky", [-0.5, np.inf, np.nan])
def test_wrong_stickiness(sticky):
    """A finite number, 0 or more."""
    x = rows_for("gaussian", 1, [30])[0]
    with pytest.raises(ValueError, match="sticky"):
        BaumWelchHMM(sticky=sticky).fit(x)


# -------------------------------------------------------------------------------- zeros


@pytest.mark.parametrize("options", [{}, {"sticky": 2.0, "transmat_prior": 0.5}])
@every_emission
def test_zeros_stay(emission, options):
    """Of transitions and of the start law, from several starts."""
    transmat = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.3, 0.0, 0.7]])
    startprob = np.array([0.5, 0.0, 0.5])
    X, lengths = together(rows_for(emission, 3, [50, 40, 30], missing=True), emission)
    for seed in range(4):
        model = BaumWelchHMM(
            3,
            emission=emission,
            transmat_init=transmat,
            startprob_init=startprob,
            n_init=5,
            random_state=seed,
            max_iter=40,
            **options,
        )
        with unfinished():
            model.fit(X, lengths=lengths)
        assert_array_equal(model.transmat_[transmat == 0.0], 0.0)
        assert_array_equal(model.startprob_[startprob == 0.0], 0.0)
        assert_allclose(model.transmat_.sum(axis=1), 1.0, rtol=1e-12)
        assert np.abs(model.transmat_ - transmat).max() > 0.01
