"""Outputs of every law, with entries missing or not: steps, scores and samples."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as plain
from reference import hmm_more as ref
from scipy.special import polygamma

from hmm.laws import (
    CATEGORIES,
    EMISSIONS,
    NAMES,
    assert_law,
    drawn,
    either,
    every_emission,
    every_kind,
    fit_law,
    fitted,
    general,
    law_at,
    model_of,
    rows_for,
    steps_of,
    together,
    told,
    width,
)
from hmm.toy import fit_symmetric, symmetric_at, symmetric_data, unfinished
from skbounds.hmm import BaumWelchHMM

LENGTHS = [5, 1, 4, 3]


def location_scale(emission):
    """Whether a law has covariances."""
    return emission in ("gaussian", "student")


# ----------------------------------------------------------------------------- one step


@either
@pytest.mark.parametrize("s", [1, 2, 3])
@every_kind
def test_one_step(emission, covariance_type, s, missing):
    """One update and both log-likelihoods, by sums over all paths."""
    theta = model_of(emission, covariance_type, 10 * s, s)
    sequences = rows_for(emission, s, LENGTHS, missing)
    new = ref.em_step(sequences, theta, emission, covariance_type, expanded="exact")
    model = fit_law(sequences, theta, emission, covariance_type)
    assert_law(fitted(model, emission), new)
    expected = [ref.loglik(sequences, t, emission) for t in (theta, new)]
    assert_allclose(model.history_, expected, rtol=1e-10)
    # The step is no small one.
    name = NAMES[emission][0]
    assert np.abs(np.array(new[name][0]) - theta[name][0]).max() > 0.05


@either
@every_emission
def test_several_steps(emission, missing):
    """Ten updates of longer sequences, by recursions in logarithms."""
    theta = model_of(emission, "full", 3, 3)
    sequences = rows_for(emission, 3, [25, 14], missing)
    model = fit_law(sequences, theta, emission, n_iter=10)
    history = [ref.loglik(sequences, theta, emission, method="forward")]
    for _ in range(10):
        theta = ref.em_step(
            sequences, theta, emission, expanded="exact", method="recursion"
        )
        history.append(ref.loglik(sequences, theta, emission, method="forward"))
    assert_allclose(model.history_, history, rtol=1e-9)
    assert_law(fitted(model, emission), theta, rtol=1e-6, atol=1e-8)


@every_kind
def test_zeros_of_the_transition_matrix(emission, covariance_type):
    """Impossible transitions with missing entries: the careful passes."""
    theta = model_of(emission, covariance_type, 5, 3, zeros=2)
    assert np.sum(theta["transmat"] == 0.0) == 2
    sequences = rows_for(emission, 5, LENGTHS, missing=True)
    new = ref.em_step(sequences, theta, emission, covariance_type, expanded="exact")
    model = fit_law(sequences, theta, emission, covariance_type)
    assert_law(fitted(model, emission), new)
    assert_array_equal(model.transmat_[theta["transmat"] == 0.0], 0.0)


def test_category_that_never_comes():
    """Categories that are given but not in the data get probability 0, not an error."""
    theta = model_of("categorical", seed=2)
    sequences = rows_for("categorical", 2, LENGTHS)
    for x in sequences:
        x[:, 0] = np.where(x[:, 0] == 1.0, 2.0, x[:, 0])
    model = fit_law(sequences, theta, "categorical")
    new = ref.em_step(sequences, theta, "categorical")
    assert_law(fitted(model, "categorical"), new)
    assert_array_equal(model.emission_proba_[0][:, 1], 0.0)
    assert_array_equal(model.categories_[0], CATEGORIES[0])


def test_probabilities_of_zero():
    """A category that one state never shows rules the state out, for sure."""
    theta = model_of("categorical", seed=4, s=3)
    theta["emission_proba"][0] = np.array(
        [[0.0, 0.5, 0.5], [0.4, 0.0, 0.6], [0.2, 0.3, 0.5]]
    )
    sequences = rows_for("categorical", 4, LENGTHS)
    model = fit_law(sequences, theta, "categorical")
    new = ref.em_step(sequences, theta, "categorical")
    assert_law(fitted(model, "categorical"), new)
    at = law_at(theta, "categorical")
    X, lengths = together(sequences, "categorical")
    P = at.predict_proba(X, lengths=lengths)
    assert_array_equal(P[X[:, 0] == CATEGORIES[0][0], 0], 0.0)
    assert_array_equal(P[X[:, 0] == CATEGORIES[0][1], 1], 0.0)


def test_rates_of_zero():
    """A state without counts is ruled out by any count."""
    theta = model_of("poisson", seed=4)
    theta["means"][0, 1] = 0.0
    x = np.array([[2.0, 0.0, 1.0], [1.0, 3.0, 0.0], [0.0, 0.0, np.nan]])
    at = law_at(theta, "poisson")
    expected = ref.posteriors([x], theta, "poisson")[0]
    assert_allclose(at.predict_proba(x), expected["gamma"], rtol=1e-10, atol=1e-200)
    assert_allclose(at.score(x) * 3, expected["loglik"], rtol=1e-12)
    new = fit_law([x], theta, "poisson")
    assert_law(fitted(new, "poisson"), ref.em_step([x], theta, "poisson"))


def test_row_that_no_state_explains():
    """A category of probability 0 in all states."""
    theta = model_of("categorical", seed=4)
    theta["emission_proba"][0][:] = [[0.0, 0.5, 0.5], [0.0, 0.2, 0.8]]
    model = law_at(theta, "categorical")
    with pytest.raises(ValueError, match="density of a row is 0"):
        model.score_samples(told(np.zeros((2, 2)), "categorical"))


def test_count_that_no_state_explains():
    """A count where all rates are 0 has density 0 as well."""
    theta = model_of("poisson", seed=4)
    theta["means"][:, 1] = 0.0
    model = law_at(theta, "poisson")
    x = np.array([[2.0, 0.0, 1.0]])
    expected = ref.loglik([x], theta, "poisson")
    assert_allclose(model.score(x), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="density of a row is 0"):
        model.score_samples([[1.0, 1.0, 1.0]])


def test_transition_that_is_hardly_possible():
    """Probabilities whose inverse overflows are no reason for warnings."""
    theta = model_of("gaussian", seed=4, s=3)
    theta["transmat"][1] = [0.3, 0.7, 1e-315]
    model = fit_law(rows_for("gaussian", 4, LENGTHS), theta, "gaussian", "diag")
    assert 0.0 < model.transmat_[1, 2] < 1e-309
    assert 0.0 <= model.eps_mix_ < 1e-308


@pytest.mark.parametrize("missing", [0, 40], ids=["complete", "missing"])
@pytest.mark.parametrize("zeta", [0.7, 0.35])
def test_symmetric_model_with_missing_entries(zeta, missing):
    """The closed forms against the sum over all paths, some steps on."""
    mu = np.array([0.9, -0.4])
    rng = np.random.default_rng(missing)
    X, _ = symmetric_data(2, 10, mu, zeta)
    X[rng.random(X.shape) < missing / 100] = np.nan
    if missing:
        X[[0, 6]] = np.nan
        assert np.isnan(X).sum() > 6
    theta = plain.symmetric_theta(mu, zeta, 1.0)
    history, at = [], (mu, zeta)
    for n_iter in range(4):
        theta = plain.symmetric_theta(*at, 1.0)
        history.append(ref.loglik([X], theta, "gaussian"))
        at = ref.symmetric_em_with_missing(X, *at, 1.0)
        model = fit_symmetric([X], mu, zeta, 1.0, n_iter + 1)
        assert_allclose(model.means_[1], at[0], rtol=1e-9, atol=1e-12)
        assert_allclose(model.transmat_[0, 0], at[1], rtol=1e-9)
    assert_allclose(model.history_[:4], history, rtol=1e-10)


# ---------------------------------------------------------------------------- questions


@either
@pytest.mark.parametrize("s", [2, 3])
@every_kind
def test_all_answers(emission, covariance_type, s, missing):
    """Scores, smoothed and filtered laws and best paths, by enumeration."""
    theta = model_of(emission, covariance_type, s, s)
    sequences = rows_for(emission, 7, LENGTHS, missing)
    X, lengths = together(sequences, emission)
    model = law_at(theta, emission, covariance_type)
    found = ref.posteriors(sequences, theta, emission)
    gamma = np.vstack([part["gamma"] for part in found])
    P = model.predict_proba(X, lengths=lengths)
    assert_allclose(P, gamma, rtol=1e-9, atol=1e-13)
    assert_array_equal(model.predict(X, lengths=lengths), gamma.argmax(axis=1))
    each = model.score_samples(X, lengths=lengths)
    expected = steps_of(sequences, theta, emission)
    assert_allclose(each, expected, rtol=1e-9, atol=1e-11)
    total = sum(part["loglik"] for part in found)
    assert_allclose(model.score(X, lengths=lengths), total / len(X), rtol=1e-11)
    value, path = model.decode(X, lengths=lengths)
    best = sum(part["viterbi_log_prob"] for part in found)
    assert_allclose(value, best, rtol=1e-11)
    # Rows without entries have paths of the same value; this one has it.
    at = np.cumsum([0, *lengths])
    joint = 0.0
    for k, x in enumerate(sequences):
        B = ref.log_outputs(x, theta, emission)
        own = path[at[k] : at[k + 1]]
        joint += plain.joint(own, B, theta["startprob"], theta["transmat"])
    assert_allclose(joint, best, rtol=1e-11)
    laws = []
    for x in sequences:
        B = ref.log_outputs(x, theta, emission)
        laws.append(plain.enumerate_filter(B, theta["startprob"], theta["transmat"]))
    F = model.filter_proba(X, lengths=lengths)
    assert_allclose(F, np.vstack(laws), rtol=1e-9, atol=1e-13)
    assert_allclose(F[at[1:] - 1], P[at[1:] - 1], rtol=1e-10)


def test_all_answers_of_the_symmetric_model():
    """The closed forms with missing entries, by enumeration."""
    mu, zeta, sigma = np.array([0.8, -0.5]), 0.3, 1.3
    theta = plain.symmetric_theta(mu, zeta, sigma)
    sequences = [x[:, :2] for x in rows_for("gaussian", 3, [7, 1, 4], missing=True)]
    X, lengths = together(sequences, "gaussian")
    assert np.isnan(X).all(axis=1).sum() >= 3
    model = symmetric_at(mu, zeta, sigma)
    found = ref.posteriors(sequences, theta, "gaussian")
    gamma = np.vstack([part["gamma"] for part in found])
    P = model.predict_proba(X, lengths=lengths)
    assert_allclose(P, gamma, rtol=1e-9)
    each = model.score_samples(X, lengths=lengths)
    expected = steps_of(sequences, theta, "gaussian")
    assert_allclose(each, expected, rtol=1e-9, atol=1e-11)
    F = model.filter_proba(X, lengths=lengths)
    laws = [ref.filtered(x, theta, "gaussian") for x in sequences]
    assert_allclose(F, np.vstack(laws), rtol=1e-9)
    value, _ = model.decode(X, lengths=lengths)
    best = sum(part["viterbi_log_prob"] for part in found)
    assert_allclose(value, best, rtol=1e-11)


@every_kind
def test_rows_without_entries(emission, covariance_type):
    """They have density 1 and change nothing at the end; between, time goes by."""
    theta = model_of(emission, covariance_type, 3)
    x = rows_for(emission, 1, [6])[0]
    gap = np.full((2, width(emission)), np.nan)
    model = law_at(theta, emission, covariance_type)
    X = told(x, emission)
    longer = np.vstack([X, gap])
    each = model.score_samples(longer)
    assert_allclose(each[:6], model.score_samples(X), rtol=1e-12)
    assert_allclose(each[6:], 0.0, atol=1e-13)
    P = model.predict_proba(longer)
    assert_allclose(P[:6], model.predict_proba(X), rtol=1e-12)
    assert_allclose(P[6], P[5] @ theta["transmat"], rtol=1e-12)
    assert_allclose(P[7], P[6] @ theta["transmat"], rtol=1e-12)
    # In the middle they are powers of the transition matrix.
    thrice = law_at(
        {**theta, "transmat": np.linalg.matrix_power(theta["transmat"], 3)},
        emission,
        covariance_type,
    )
    middle = np.vstack([X[:1], gap, X[1:2]])
    expected = thrice.score_samples(X[:2])
    assert_allclose(model.score_samples(middle)[[0, 3]], expected, rtol=1e-12)
    # The first rows are unknown.
    late = np.vstack([gap, X[:1]])
    moved = theta["startprob"] @ np.linalg.matrix_power(theta["transmat"], 2)
    other = law_at({**theta, "startprob": moved}, emission, covariance_type)
    assert_allclose(
        model.score_samples(late)[2], other.score_samples(X[:1])[0], rtol=1e-12
    )


@every_kind
def test_fit_with_rows_without_entries_at_the_end(emission, covariance_type):
    """The outputs' steps do not see them."""
    theta = model_of(emission, covariance_type, 3)
    x = rows_for(emission, 1, [8])
    gap = np.full((3, width(emission)), np.nan)
    short = fit_law(x, theta, emission, covariance_type)
    long = fit_law([np.vstack([x[0], gap])], theta, emission, covariance_type)
    assert_allclose(long.history_[0], short.history_[0], rtol=1e-11)
    names = NAMES[emission]
    assert_law(
        {name: getattr(long, f"{name}_") for name in names},
        {name: getattr(short, f"{name}_") for name in names},
    )
    assert_allclose(long.startprob_, short.startprob_, rtol=1e-11)
    # Transitions are counted.
    assert np.abs(long.transmat_ - short.transmat_).max() > 1e-3


# ------------------------------------------------------------------------ likelihood up


@either
@every_kind
def test_likelihood_never_falls(emission, covariance_type, missing):
    """Thirty iterations from ten starts."""
    for seed in range(10):
        theta = model_of(emission, covariance_type, seed)
        sequences = rows_for(emission, seed, [50, 20], missing)
        model = fit_law(sequences, theta, emission, covariance_type, 30)
        assert len(model.history_) == 31
        assert np.diff(model.history_).min() > -1e-10 * abs(model.history_[0]), seed
        assert model.history_[-1] > model.history_[0] + 1.0
        # And it is the likelihood of what is fitted.
        law = fitted(model, emission)
        value = ref.loglik(sequences, law, emission, method="forward")
        assert_allclose(model.history_[-1], value, rtol=1e-10)


@pytest.mark.parametrize("df", [0.3, 100.0])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical", "tied"])
def test_likelihood_of_student_far_from_the_start(covariance_type, df):
    """Scales and degrees of freedom that have a long way to go."""
    for seed, size in enumerate([0.5, 1.0, 100.0]):
        theta = model_of("student", covariance_type, seed)
        theta["df"] = np.array([df, 5.0])
        theta["covariances"] = size * theta["covariances"]
        sequences = rows_for("student", seed, [60, 30])
        model = fit_law(sequences, theta, "student", covariance_type, 30)
        assert np.diff(model.history_).min() > -1e-10 * abs(model.history_[0])


# ----------------------------------------------------------------------------- recovery


def agreement(found, states, s):
    """Largest share of equal states over all numberings."""
    return max(
        np.mean(np.array(order)[found] == states)
        for order in itertools.permutations(range(s))
    )


def last_long(s, stay=0.95):
    """Transition matrix of states that last."""
    return np.where(np.eye(s) > 0, stay, (1.0 - stay) / (s - 1))


def test_heavy_tails():
    """Noise with two degrees of freedom: Student finds the states, Gauss does not."""
    theta = {
        "startprob": np.full(2, 0.5),
        "transmat": last_long(2, 0.98),
        "means": np.array([[-1.5], [1.5]]),
        "covariances": np.ones((2, 1, 1)),
        "df": np.full(2, 2.0),
    }
    x, states = drawn(theta, "student", 3000, np.random.default_rng(0))
    found = {}
    for emission in ("gaussian", "student"):
        model = BaumWelchHMM(emission=emission, n_init=5, random_state=0).fit(x[0])
        found[emission] = agreement(model.predict(x[0]), states[0], 2)
    assert found["gaussian"] < 0.7
    assert found["student"] > 0.97
    # Standard error of the degrees of freedom of 1500 rows, by the information about
    # them and the scale (Lange, Little and Taylor 1989).
    df, n = 2.0, 1500
    about_df = (polygamma(1, df / 2) - polygamma(1, (df + 1) / 2)) / 4
    about_df -= (df + 5) / (2 * df * (df + 1) * (df + 3))
    about_both, about_scale = -2 / ((df + 1) * (df + 3)), 2 * df / (df + 3)
    error = 1.0 / np.sqrt(n * (about_df - about_both**2 / about_scale))
    assert error < 0.15
    assert_allclose(model.df_, df, atol=5 * error)
    # The variance of the location's estimate is (df + 3) / (df + 1) / n.
    assert_allclose(model.means_, theta["means"], atol=5 * np.sqrt(5 / 3 / n))


def test_rates():
    """Counts of three states, within standard errors of what known states give."""
    means = np.array([[1.0, 12.0], [6.0, 5.0], [15.0, 1.0]])
    theta = {"startprob": np.full(3, 1 / 3), "transmat": last_long(3), "means": means}
    x, states = drawn(theta, "poisson", 3000, np.random.default_rng(1))
    model = BaumWelchHMM(3, emission="poisson", n_init=5, random_state=0).fit(x[0])
    n = np.bincount(states[0])[:, None]
    assert (np.abs(model.means_ - means) < 5 * np.sqrt(means / n)).all()
    assert agreement(model.predict(x[0]), states[0], 3) > 0.99


def test_tables_of_categories():
    """Categories of two states, within standard errors of what known states give."""
    rng = np.random.default_rng(2)
    tables = [
        np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]),
        np.array([[0.85, 0.15], [0.2, 0.8]]),
    ]
    theta = {"startprob": np.full(2, 0.5), "transmat": last_long(2, 0.97)}
    theta["emission_proba"] = tables
    x, states = drawn(theta, "categorical", 3000, rng)
    X = told(x[0], "categorical")
    model = BaumWelchHMM(emission="categorical", n_init=5, random_state=0).fit(X)
    for names, expected in zip(model.categories_, CATEGORIES, strict=True):
        assert_array_equal(names, expected)
    n = np.bincount(states[0])[:, None]
    for found, p in zip(model.emission_proba_, tables, strict=True):
        assert (np.abs(found - p) < 5 * np.sqrt(p * (1 - p) / n)).all()
    assert agreement(model.predict(X), states[0], 2) > 0.97


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied"])
def test_means_despite_missing_entries(covariance_type):
    """A third of the entries, completely at random: means are as good as the rest."""
    theta = {
        "startprob": np.full(2, 0.5),
        "transmat": last_long(2),
        "means": np.array([[-2.0, 0.0, 3.0], [2.0, 1.0, 0.0]]),
        "covariances": np.array([[[1, 0.6, 0], [0.6, 1, 0.3], [0, 0.3, 1]]] * 2),
    }
    rng = np.random.default_rng(3)
    x, states = drawn(theta, "gaussian", 3000, rng)
    X = x[0]
    X[rng.random(X.shape) < 0.3] = np.nan
    assert np.isnan(X).all(axis=1).sum() > 20
    model = BaumWelchHMM(covariance_type=covariance_type, n_init=5, random_state=0).fit(
        X
    )
    n = 0.7 * np.bincount(states[0])[:, None]
    assert (np.abs(model.means_ - theta["means"]) < 5 / np.sqrt(n)).all()


# ------------------------------------------------------------------------------ samples


def check_moments(rows, mean, covariance, fourth):
    """Sample means and products agree within five of their standard errors."""
    n = len(rows)
    gap = rows.mean(axis=0) - mean
    assert (np.abs(gap) < 5 * np.sqrt(np.diag(covariance) / n)).all()
    found = (rows - mean).T @ (rows - mean) / n
    assert (
        np.abs(found - covariance) < 5 * np.sqrt((fourth - covariance**2) / n)
    ).all()


@pytest.mark.parametrize("emission", ["gaussian", "student", "poisson"])
def test_moments_of_samples(emission):
    """Many sequences of one row: moments of every state, and the start law."""
    theta = model_of(emission, "full", 8)
    if emission == "student":
        theta["df"] = np.array([12.0, 30.0])
    model = law_at(theta, emission)
    n = 100_000
    X, states = model.sample(1, random_state=0, n_sequences=n)
    assert X.shape == (n, 3)
    assert states.shape == (n,)
    p = theta["startprob"]
    gap = np.bincount(states) / n - p
    assert (np.abs(gap) < 5 * np.sqrt(p * (1 - p) / n)).all()
    means, covariances = ref.output_moments(theta, emission)
    for j in range(2):
        C = covariances[j]
        v = np.diag(C)
        # E[(x_a - m_a)^2 (x_b - m_b)^2].
        fourth = np.outer(v, v) + 2 * C**2
        if emission == "student":
            fourth *= (theta["df"][j] - 2) / (theta["df"][j] - 4)
        if emission == "poisson":
            fourth += np.diag(v)
            assert_array_equal(X, np.round(X))
            assert X.min() == 0.0
        check_moments(X[states == j], means[j], C, fourth)


def test_categories_of_samples():
    """Frequencies of every state, and the categories' own numbers."""
    theta = model_of("categorical", seed=8)
    model = law_at(theta, "categorical")
    X, states = model.sample(1, random_state=0, n_sequences=100_000)
    for j in range(2):
        own = X[states == j]
        n = len(own)
        for k, names in enumerate(CATEGORIES):
            p = theta["emission_proba"][k][j]
            shares = np.array([np.mean(own[:, k] == name) for name in names])
            assert_allclose(shares.sum(), 1.0)
            assert (np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / n)).all()
        # Columns are independent given the state.
        p = theta["emission_proba"][0][j][0] * theta["emission_proba"][1][j][0]
        both = np.mean(
            (own[:, 0] == CATEGORIES[0][0]) & (own[:, 1] == CATEGORIES[1][0])
        )
        assert abs(both - p) < 5 * np.sqrt(p * (1 - p) / n)


@every_emission
def test_transitions_of_samples(emission):
    """Of one long sequence and of many short ones; sequences start anew."""
    theta = model_of(emission, "full", 9, 3)
    theta["startprob"] = np.array([0.7, 0.25, 0.05])
    model = law_at(theta, emission)
    for n, n_sequences in ((100_000, 1), (5, 20_000)):
        X, states = model.sample(n, random_state=1, n_sequences=n_sequences)
        assert X.shape == (n * n_sequences, width(emission))
        table = states.reshape(n_sequences, n)
        counts = np.zeros((3, 3))
        np.add.at(counts, (table[:, :-1].ravel(), table[:, 1:].ravel()), 1)
        total = counts.sum(axis=1, keepdims=True)
        p = theta["transmat"]
        assert (np.abs(counts / total - p) < 5 * np.sqrt(p * (1 - p) / total)).all()
    p = theta["startprob"]
    gap = np.bincount(table[:, 0]) / n_sequences - p
    assert (np.abs(gap) < 5 * np.sqrt(p * (1 - p) / n_sequences)).all()


# ----------------------------------------------------------- criteria, names, numbering

# Three states, three columns (two of categories, with three and two of them).
OUTPUTS = {
    ("gaussian", "full"): 9 + 18,
    ("gaussian", "diag"): 9 + 9,
    ("gaussian", "spherical"): 9 + 3,
    ("gaussian", "tied"): 9 + 6,
    ("student", "full"): 9 + 18 + 3,
    ("student", "diag"): 9 + 9 + 3,
    ("student", "spherical"): 9 + 3 + 3,
    ("student", "tied"): 9 + 6 + 3,
    ("poisson", "diag"): 9,
    ("categorical", "diag"): 3 * (2 + 1),
}


@every_kind
def test_number_of_parameters(emission, covariance_type):
    """The price that criteria put on a model."""
    theta = model_of(emission, covariance_type, 2, 3)
    outputs = OUTPUTS[emission, covariance_type]
    sequences = rows_for(emission, 4, [30, 20])
    X, lengths = together(sequences, emission)
    reversible = {**theta, "transmat": last_long(3, 0.6)}
    for start, size, options in (
        (theta, 2 + 6 + outputs, {}),
        (theta, 6 + outputs, {"startprob": "stationary"}),
        (reversible, 2 + 5 + outputs, {"structure": "reversible"}),
        (theta, 2 + outputs, {"fixed": ("transmat",)}),
        (theta, 6 + outputs, {"fixed": "startprob"}),
        (theta, 8, {"fixed": NAMES[emission]}),
    ):
        model = fit_law(sequences, start, emission, covariance_type, **options)
        value = ref.loglik(
            sequences, fitted(model, emission), emission, method="forward"
        )
        aic, bic = model.aic(X, lengths=lengths), model.bic(X, lengths=lengths)
        assert_allclose(aic, 2 * size - 2 * value, rtol=1e-10)
        assert_allclose(bic, size * np.log(50) - 2 * value, rtol=1e-10)


@every_emission
def test_attributes(emission):
    """Of each law its own parameters, and no others."""
    sequences = rows_for(emission, 4, [30])
    theta = model_of(emission)
    model = fit_law(sequences, theta, emission)
    everything = {"means", "covariances", "df", "emission_proba", "categories"}
    own = set(NAMES[emission])
    if emission == "categorical":
        own.add("categories")
    assert {name for name in everything if hasattr(model, f"{name}_")} == own
    # Nor after another fit of another law.
    other = "poisson" if emission != "poisson" else "student"
    with unfinished():
        options = general(model_of(other), other, max_iter=2).get_params()
        model.set_params(**options)
        model.fit(rows_for(other, 4, [30])[0])
    own = set(NAMES[other])
    assert {name for name in everything if hasattr(model, f"{name}_")} == own


@every_kind
def test_numbering(emission, covariance_type):
    """States in the order of the first column, all parameters with them."""
    theta = model_of(emission, covariance_type, 2, 3)
    rng = np.random.default_rng(5)
    sequences = list(drawn(theta, emission, 40, rng, 4)[0])
    X, lengths = together(sequences, emission)
    options = {"categories": CATEGORIES} if emission == "categorical" else {}
    for seed in range(4):
        model = BaumWelchHMM(
            3,
            emission=emission,
            covariance_type=covariance_type,
            random_state=seed,
            init="random",
            max_iter=15,
            **options,
        )
        with warnings.catch_warnings():
            # Few iterations; see also `test_transition_that_is_hardly_possible`.
            warnings.simplefilter("ignore")
            model.fit(X, lengths=lengths)
        law = fitted(model, emission)
        if emission == "categorical":
            first = law["emission_proba"][0] @ np.arange(3)
        else:
            first = law["means"][:, 0]
        assert (np.diff(first) > 0.0).all()
        value = ref.loglik(sequences, law, emission, method="forward")
        assert_allclose(model.history_[-1], value, rtol=1e-9)


@every_emission
def test_given_numbering(emission):
    """States keep the order of the start, whatever their means are."""
    theta = model_of(emission, "full", 2, 3)
    sequences = list(drawn(theta, emission, 100, np.random.default_rng(6), 3)[0])
    base = fitted(fit_law(sequences, theta, emission, n_iter=3), emission)
    for order in itertools.permutations(range(3)):
        model = fit_law(sequences, turned(theta, order), emission, n_iter=3)
        assert_law(fitted(model, emission), turned(base, order), rtol=1e-8)


def turned(theta, order):
    """The model with its states in another order."""
    order, new = np.array(order), {}
    for name, value in theta.items():
        if name == "transmat":
            new[name] = value[np.ix_(order, order)]
        elif name == "emission_proba":
            new[name] = [table[order] for table in value]
        else:
            new[name] = value[order]
    return new


# ------------------------------------------------------------------------------- inputs


def refused(match, X, **options):
    """The call fails with a message that names what is wrong."""
    model = BaumWelchHMM(random_state=0, **options)
    with pytest.raises(ValueError, match=match):
        model.fit(X)


def some(emission, n=30):
    """Rows as the estimator is given them."""
    return told(rows_for(emission, 0, [n])[0], emission)


@pytest.mark.parametrize("bad", [-1.0, 1.5, 1e-3])
def test_no_counts(bad):
    """Negative numbers and fractions are refused, at fit and later."""
    X = some("poisson")
    model = BaumWelchHMM(emission="poisson", random_state=0, max_iter=1)
    with unfinished():
        model.fit(X)
    X[7, 1] = bad
    refused(f"counts.*{bad:g}", X, emission="poisson")
    for name in ("predict", "score", "filter_proba", "decode", "forecast"):
        with pytest.raises(ValueError, match=f"counts.*{bad:g}"):
            getattr(model, name)(X)


def test_unknown_category():
    """At prediction always; at fit, if the categories are given."""
    X = some("categorical")
    model = BaumWelchHMM(emission="categorical", random_state=0, max_iter=1)
    with unfinished():
        model.fit(X)
    X[7, 1] = 3.0
    for name in ("predict", "score", "filter_proba", "decode", "forecast"):
        with pytest.raises(ValueError, match=r"column 1 .*categories.*3\.0"):
            getattr(model, name)(X)
    refused(
        r"column 1 .*categories.*3\.0", X, emission="categorical", categories=CATEGORIES
    )


@pytest.mark.parametrize(
    ("categories", "match"),
    [
        (CATEGORIES[:1], "categories must have one list for each of the 2"),
        ([*CATEGORIES, [1.0]], "categories must have one list for each of the 2"),
        ([[1.0, 4.0, 7.0, 4.0], [-2.0, 0.5]], "categories of column 0"),
        ([[1.0, 4.0, 7.0], []], "categories of column 1"),
        ([[1.0, 4.0, 7.0], [[-2.0, 0.5]]], "categories of column 1"),
    ],
    ids=["few", "many", "twice", "none", "nested"],
)
def test_wrong_categories(categories, match):
    """One list for each column, of different numbers."""
    X = some("categorical")
    refused(match, X, emission="categorical", categories=categories)


@every_emission
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity(emission, bad):
    """Missing entries are nan; infinity is an error."""
    X = some(emission)
    X[3, 1] = bad
    refused("infinity", X, emission=emission)


@every_emission
def test_column_without_entries(emission):
    """Nothing can be said about it."""
    X = some(emission)
    X[:, 1] = np.nan
    refused(r"without any value: \[1\]", X, emission=emission)


@pytest.mark.parametrize(
    "df", [0.0, -1.0, [3.0, 0.0], [3.0, -2.0], [3.0, np.nan], [3.0, np.inf], [1, 2, 3]]
)
def test_wrong_degrees_of_freedom(df):
    """Positive, one number or one for each state."""
    refused("df_init", some("student"), emission="student", df_init=df)


@pytest.mark.parametrize(
    "tables",
    [
        [np.full((2, 3), 1 / 3)],
        [np.full((2, 3), 1 / 3), np.full((2, 3), 1 / 3)],
        [np.full((3, 3), 1 / 3), np.full((3, 2), 0.5)],
        [np.full((2, 3), 1 / 3), np.full((2, 2), 0.4)],
        [np.full((2, 3), 1 / 3), np.array([[1.5, -0.5], [0.5, 0.5]])],
        [np.full((2, 3), 1 / 3), np.array([[np.nan, 1.0], [0.5, 0.5]])],
    ],
    ids=["one", "width", "states", "sums", "negative", "nan"],
)
def test_wrong_tables(tables):
    """One table for each column, of rows that are probabilities."""
    X = some("categorical")
    refused(
        "emission_proba_init", X, emission="categorical", emission_proba_init=tables
    )


def test_negative_rates():
    """Rates of the start are 0 or more."""
    rates = [[1.0, 2.0, 3.0], [1.0, -2.0, 3.0]]
    refused("rates", some("poisson"), emission="poisson", means_init=rates)


def test_table_of_a_single_column():
    """The array itself is as good as a list of it."""
    X = some("categorical")[:, :1]
    table = np.array([[0.5, 0.2, 0.3], [0.1, 0.4, 0.5]])
    found = []
    for given in (table, [table], [table.tolist()]):
        model = BaumWelchHMM(
            emission="categorical", emission_proba_init=given, max_iter=3
        )
        with unfinished():
            found.append(model.fit(X).emission_proba_)
    for other in found[1:]:
        assert_array_equal(other[0], found[0][0])
    assert np.abs(found[0][0] - table).max() > 1e-3


def test_order_of_given_categories():
    """Categories come in any order; tables of the start are in ascending order."""
    theta = model_of("categorical", seed=3)
    x = rows_for("categorical", 3, [30])
    model = fit_law(x, theta, "categorical")
    mixed = [[7.0, 1.0, 4.0], [0.5, -2.0]]
    other = fit_law(x, theta, "categorical", categories=mixed)
    assert_law(fitted(other, "categorical"), fitted(model, "categorical"), rtol=0)
    for names, expected in zip(other.categories_, CATEGORIES, strict=True):
        assert_array_equal(names, expected)


def answers(model, X):
    """What a model says about rows."""
    return [
        model.history_,
        model.transmat_,
        model.predict_proba(X),
        model.filter_proba(X),
        model.score_samples(X),
        model.decode(X)[1],
        model.forecast(X, 2).state_proba,
    ]


CASES = [
    *itertools.product(EMISSIONS, ["float32", "frame", "columns"], [False, True]),
    *itertools.product(["poisson", "categorical"], ["nullable"], [False, True]),
    *itertools.product(["poisson", "categorical"], ["int"], [False]),
]


@pytest.mark.parametrize(("emission", "kind", "missing"), CASES)
def test_kinds_of_input(emission, kind, missing):
    """Single precision, tables and integers give what the same doubles give."""
    X = told(rows_for(emission, 2, [40], missing)[0], emission)
    X = X.astype(np.float32).astype(np.float64)
    if emission == "categorical" and kind in ("int", "nullable"):
        X[:, 1] = np.where(X[:, 1] == 0.5, 5.0, X[:, 1])
    columns = [f"c{k}" for k in range(X.shape[1])]
    other = {
        "float32": lambda: X.astype(np.float32),
        "frame": lambda: pd.DataFrame(X, columns=columns),
        "columns": lambda: np.asfortranarray(X),
        "int": lambda: X.astype(np.int64),
        "nullable": lambda: pd.DataFrame(X, columns=columns).astype("Int64"),
    }[kind]()
    found = []
    for rows in (X, other):
        model = BaumWelchHMM(emission=emission, random_state=0, n_init=2, max_iter=12)
        with unfinished():
            model.fit(rows)
        found.append(answers(model, rows))
    for got, expected in zip(found[1], found[0], strict=True):
        assert_array_equal(got, expected)
