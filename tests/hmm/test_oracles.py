"""The worked examples of the specification, for the estimator and for the reference."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import hmm as ref

from hmm.toy import (
    COVARIANCES,
    A,
    B,
    G,
    assert_parameters,
    at,
    fit_from,
    fit_symmetric,
    rows,
    symmetric_at,
    unfinished,
)
from skbounds.hmm import BaumWelchHMM

symmetric_case = pytest.mark.parametrize("case", [A, B], ids=["A", "B"])
CLOSE = {"rtol": 2e-11, "atol": 2e-12}


def split(case):
    """The two sequences of the split."""
    return np.split(case["X"], [case["lengths"][0]])


# ---------------------------------------------------------------------------- reference


@symmetric_case
def test_reference_symmetric(case):
    """Enumeration gives the printed numbers."""
    theta = ref.symmetric_theta(case["mu"], case["zeta"], case["sigma"])
    found = ref.evaluate(case["X"], theta, method="paths")
    assert_allclose(found["loglik"], case["loglik"], **CLOSE)
    assert_allclose(found["gamma"][:, 1], case["posterior"], **CLOSE)
    pairs = found["xi"][:, 0, 0] + found["xi"][:, 1, 1]
    assert_allclose(pairs, case["pairs"], **CLOSE)
    assert_array_equal(found["viterbi"], case["viterbi"])
    assert_allclose(found["viterbi_log_prob"], case["viterbi_log_prob"], **CLOSE)
    args = (case["mu"], case["zeta"], case["sigma"])
    mu, zeta = ref.symmetric_update([case["X"]], *args)
    assert_allclose(mu, case["new_mu"], **CLOSE)
    assert_allclose(zeta, case["new_zeta"], **CLOSE)
    zeta = ref.symmetric_update([case["X"]], *args, classical=True)[1]
    assert_allclose(zeta, case["new_zeta_classical"], **CLOSE)
    mu, zeta = ref.symmetric_em([case["X"]], *args, n_iter=5)[-1]
    assert_allclose(mu, case["five_mu"], **CLOSE)
    assert_allclose(zeta, case["five_zeta"], **CLOSE)
    assert_allclose(ref.loglik(split(case), theta), case["split_loglik"], **CLOSE)


def test_reference_filter_and_windows():
    """Filtered posteriors and windows of case A."""
    theta = ref.symmetric_theta(A["mu"], A["zeta"], A["sigma"])
    emitted = ref.emissions(A["X"], theta)
    law = theta["startprob"], theta["transmat"]
    filtered = ref.enumerate_filter(emitted, *law)[:, 1]
    assert_allclose(filtered, A["filtered"], **CLOSE)
    assert_allclose(ref.smooth(emitted, *law)["filtered"][:, 1], filtered, **CLOSE)
    for k, expected in A["windows"].items():
        gamma, _ = ref.window_posteriors(emitted, *law, k)
        assert_allclose(gamma[:, 1], expected, **CLOSE)


def test_reference_general():
    """The update of case G."""
    new = ref.em_update(G["sequences"], G["theta"])
    assert_allclose(ref.loglik(G["sequences"], G["theta"]), G["loglik"], **CLOSE)
    for name in ("startprob", "transmat", "means", "covariances"):
        assert_allclose(new[name], G[f"new_{name}"], **CLOSE, err_msg=name)
    assert_allclose(ref.eps_mix(G["theta"]["transmat"]), G["eps_mix"], atol=1e-10)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_reference_recursion(s):
    """The log-space recursions agree with the paths, zeros included."""
    rng = np.random.default_rng(s)
    emitted = rng.normal(size=(5, s)) * 3.0
    p = rng.dirichlet(np.ones(s))
    P = rng.dirichlet(np.ones(s), size=s)
    if s == 3:
        P[0] = [0.0, 1.0, 0.0]
        p = np.array([1.0, 0.0, 0.0])
    one, two = ref.enumerate_paths(emitted, p, P), ref.smooth(emitted, p, P)
    for name in one:
        assert_allclose(one[name], two[name], rtol=1e-11, atol=1e-13, err_msg=name)
    steps = ref.enumerate_conditionals(emitted, p, P)
    assert_allclose(two["conditional"], steps, rtol=1e-10, atol=1e-12)
    assert_allclose(one["gamma"].sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(one["xi"].sum(axis=2), one["gamma"][:-1], atol=1e-14)
    assert_allclose(one["xi"].sum(axis=1), one["gamma"][1:], atol=1e-14)


@symmetric_case
def test_reference_closed_forms(case):
    """The fields agree with the paths, and Z_0 agrees with Z_1 with chance zeta."""
    args = (case["mu"], case["zeta"], case["sigma"])
    found = ref.fields(case["X"], *args)
    assert_allclose(found["loglik"], case["loglik"], **CLOSE)
    assert_allclose(0.5 * (1.0 + found["mean"]), case["posterior"], **CLOSE)
    assert_allclose(found["agreement"], case["pairs"], **CLOSE)
    emitted = ref.emissions(case["X"], ref.symmetric_theta(*args))
    agreement = ref.enumerate_first_pair(emitted, case["zeta"])
    assert_allclose(agreement, case["zeta"], rtol=1e-13)


# ---------------------------------------------------------------------------- symmetric


@symmetric_case
def test_symmetric_step(case):
    """Log-likelihood of the start, and one update."""
    model = fit_symmetric([case["X"]], case["mu"], case["zeta"], case["sigma"])
    assert_allclose(model.history_[0], case["loglik"], **CLOSE)
    assert_allclose(model.means_[1], case["new_mu"], **CLOSE)
    assert_allclose(model.means_[0], -np.array(case["new_mu"]), **CLOSE)
    expected = ref.symmetric_transmat(case["new_zeta"])
    assert_allclose(model.transmat_, expected, **CLOSE)
    assert_allclose(model.startprob_, [0.5, 0.5])
    d = len(case["mu"])
    assert_allclose(model.covariances_, [case["sigma"] ** 2 * np.eye(d)] * 2)


@symmetric_case
def test_symmetric_five_steps(case):
    """Five updates."""
    model = fit_symmetric([case["X"]], case["mu"], case["zeta"], case["sigma"], 5)
    assert model.n_iter_ == 5
    assert len(model.history_) == 6
    assert_allclose(model.means_[1], case["five_mu"], **CLOSE)
    assert_allclose(model.transmat_[0, 0], case["five_zeta"], **CLOSE)
    if "five_logliks" in case:
        assert_allclose(model.history_[:5], case["five_logliks"], **CLOSE)


@symmetric_case
@pytest.mark.parametrize("how", ["lengths", "sequence_id"])
def test_symmetric_split(case, how):
    """The same rows as two sequences."""
    n = case["lengths"]
    model = BaumWelchHMM(
        structure="symmetric",
        sigma=case["sigma"],
        means_init=case["mu"],
        transmat_init=ref.symmetric_transmat(case["zeta"]),
        max_iter=1,
    )
    given = {"lengths": n, "sequence_id": np.repeat(["late", "early"], n)}
    with unfinished():
        model.fit(case["X"], **{how: given[how]})
    assert_allclose(model.history_[0], case["split_loglik"], **CLOSE)
    assert_allclose(model.means_[1], case["split_mu"], **CLOSE)
    assert_allclose(model.transmat_[0, 0], case["split_zeta"], **CLOSE)


@symmetric_case
def test_symmetric_outputs(case):
    """Posteriors, decoding and scores at the given parameters."""
    model = symmetric_at(case["mu"], case["zeta"], case["sigma"])
    X = case["X"]
    assert_allclose(model.predict_proba(X)[:, 1], case["posterior"], **CLOSE)
    expected = np.array(case["posterior"]) > 0.5
    assert_array_equal(model.predict(X), expected.astype(int))
    assert_allclose(model.score(X), case["loglik"] / len(X), **CLOSE)
    assert_allclose(model.score_samples(X).sum(), case["loglik"], **CLOSE)
    split_score = model.score(X, lengths=case["lengths"]) * len(X)
    assert_allclose(split_score, case["split_loglik"], **CLOSE)
    options = {"decoder": "viterbi"}
    model = symmetric_at(case["mu"], case["zeta"], case["sigma"], **options)
    assert_array_equal(model.predict(X), case["viterbi"])
    value, path = model.decode(X)
    assert_allclose(value, case["viterbi_log_prob"], **CLOSE)
    assert_array_equal(path, case["viterbi"])


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_symmetric_window(k):
    """Posteriors that see k rows to each side; k >= 3 is everything."""
    model = symmetric_at(A["mu"], A["zeta"], A["sigma"], window=k)
    expected = A["windows"].get(k, A["posterior"])
    assert_allclose(model.predict_proba(A["X"])[:, 1], expected, **CLOSE)
    assert_allclose(model.score(A["X"]), A["loglik"] / 4, **CLOSE)


def test_symmetric_last_filtered():
    """The filtered posterior is the smoothed one of the rows so far."""
    model = symmetric_at(A["mu"], A["zeta"], A["sigma"])
    for i, expected in enumerate(A["filtered"]):
        found = model.predict_proba(A["X"][: i + 1])[-1, 1]
        assert_allclose(found, expected, **CLOSE)


# ------------------------------------------------------------------------------ general


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_general_step(covariance_type):
    """Case G: one update with each kind of covariance."""
    theta = dict(G["theta"])
    model = fit_from(G["sequences"], theta, covariance_type="full")
    assert_allclose(model.history_[0], G["loglik"], **CLOSE)
    new = {k[4:]: np.array(v) for k, v in G.items() if k.startswith("new_")}
    if covariance_type == "full":
        assert_parameters(model, new, rtol=2e-11, atol=2e-12)
        return
    # The E-step of the other kinds starts from covariances of their kind.
    eye = np.array([c * np.eye(2) for c in (0.5, 0.7, 0.6)])
    if covariance_type == "tied":
        eye = np.array([np.diag([0.5, 0.7])] * 3)
    theta["covariances"] = eye
    model = fit_from(G["sequences"], theta, covariance_type=covariance_type)
    new = ref.em_update(G["sequences"], theta, covariance_type)
    assert_parameters(model, new, rtol=1e-10)
    full = ref.em_update(G["sequences"], theta, "full")["covariances"]
    weight = np.vstack([ref.evaluate(x, theta)["gamma"] for x in G["sequences"]])
    share = weight.mean(axis=0)
    expected = {
        "diag": full * np.eye(2),
        "spherical": np.trace(full, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(2),
        "tied": np.array([np.einsum("j,jab->ab", share, full)] * 3),
    }[covariance_type]
    assert_allclose(model.covariances_, expected, rtol=1e-10, atol=1e-13)


def test_general_outputs():
    """Case G: scores of one and of both sequences, and the mixing constant."""
    model = at(G["theta"])
    X, lengths = rows(G["sequences"])
    assert_allclose(model.score(X[:5]), G["loglik_first"] / 5, **CLOSE)
    assert_allclose(model.score(X, lengths=lengths), G["loglik"] / 8, **CLOSE)
    assert_allclose(model.score_samples(X, lengths=lengths).sum(), G["loglik"], **CLOSE)


def test_general_mixing():
    """Case G: the mixing constant of an estimator that keeps the transition matrix."""
    # Sequences of one row leave A as it was.
    X, _ = rows(G["sequences"])
    model = fit_from([row[None] for row in X], G["theta"])
    assert_allclose(model.transmat_, G["theta"]["transmat"], rtol=1e-14)
    assert_allclose(model.eps_mix_, G["eps_mix"], atol=1e-10)
    assert_allclose(model.rho_mix_, 1.0 - G["eps_mix"], atol=1e-10)
    gap = ref.reversible_gap(G["theta"]["transmat"])
    assert gap > 1e-3
    assert_allclose(model.reversible_gap_, gap, rtol=1e-9)
