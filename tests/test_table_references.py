"""Random small tables: the numbers of the slow references, to the stated accuracy."""

import warnings

import numpy as np
from fuzz import fuzz
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import fenchel_young, hmm, kernel_boost, smp
from tables import Table

from skbounds import (
    BaumWelchHMM,
    EarlyStoppedKernelBoost,
    FenchelYoungOnlineClassifier,
    GaussianSMP,
    MultinomialSMP,
    PoissonSMP,
    RidgeSMP,
    SMPLogisticRegression,
)

penalties = st.sampled_from([0.01, 0.5, 1.0, 30.0])
intercepts = st.sampled_from(
    [
        {"fit_intercept": False},
        {"fit_intercept": True},
        {"fit_intercept": True, "penalize_intercept": True},
    ]
)
INTERCEPT = {"fit_intercept": False, "penalize_intercept": False}


@st.composite
def small_tables(draw, base=None, d=None, classes=2):
    """Draw rows, targets, weights and a new row: numbers of a size, some repeated."""
    steps = st.sampled_from(
        [(), (("copy column", 0, 1),), (("repeat rows", 4),), (("column", 0, 1.0),)]
    )
    bases = ["normal", "integers", "binary", "mostly zero"]
    return Table(
        n=draw(st.integers(4, 9)),
        d=d or draw(st.integers(1, 3)),
        base=base or draw(st.sampled_from(bases)),
        steps=draw(steps),
        target="signal",
        weighted=draw(st.sampled_from(["", "uniform", "twos"])),
        classes=classes,
        seed=draw(st.integers(0, 999)),
    )


def codes_of(table):
    """Return labels of the signal, all classes among them."""
    places = table.targets().argsort(kind="stable").argsort(kind="stable")
    return places * table.classes // table.n


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*data, **options)


@fuzz(12)
@given(small_tables(), penalties, intercepts)
def test_logistic_regression_is_two_refits(table, C, intercept):
    X, codes, weight = table.values(), codes_of(table), table.weight()
    x = X[0] + 0.5
    model = quiet(SMPLogisticRegression(C, **intercept), X, codes, sample_weight=weight)
    expected = smp.logistic_smp(
        X, codes, x, C, sample_weight=weight, **INTERCEPT | intercept
    )
    assert_allclose(model.predict_proba([x])[0, 1], expected["p"], atol=1e-9)
    assert_allclose(model.log_normalizer([x])[0], expected["log_normalizer"], atol=1e-8)


@fuzz(6)
@given(small_tables(classes=3), st.sampled_from([0.1, 1.0]), intercepts)
def test_three_classes_are_three_refits(table, C, intercept):
    X, codes = table.values(), codes_of(table)
    x = X[0] + 0.5
    model = quiet(SMPLogisticRegression(C, **intercept), X, codes)
    expected = smp.softmax_smp(X, codes, x, C, 3, **INTERCEPT | intercept)
    assert_allclose(model.predict_proba([x])[0], expected["p"], atol=1e-9)


@fuzz(12)
@given(small_tables(), penalties, intercepts)
def test_ridge_is_an_integral_over_refits(table, alpha, intercept):
    X, y, weight = table.values(), table.targets(), table.weight()
    x = X[0] + 0.5
    model = quiet(RidgeSMP(alpha, sigma=0.8, **intercept), X, y, sample_weight=weight)
    options = {"sample_weight": weight, "sigma": 0.8, **intercept}
    expected = smp.ridge_smp(X, y, x, alpha, **options)
    mean, std = model.predict([x], return_std=True)
    found = mean[0], std[0] ** 2, model.log_normalizer([x])[0]
    names = ("mean", "var", "log_normalizer")
    assert_allclose(found, [expected[k] for k in names], rtol=1e-8, atol=1e-9)


@fuzz(15)
@given(small_tables("counts", d=1))
def test_densities_are_refits(table):
    X, weight = table.values(), table.weight()
    n = table.n if weight is None else weight.sum()
    total = X.sum() if weight is None else weight @ X[:, 0]
    model = PoissonSMP().fit(X, sample_weight=weight)
    expected = [smp.poisson_smp(total, n, k)["p"] for k in range(4)]
    found = np.exp(model.score_samples(np.arange(4.0)[:, None]))
    assert_allclose(found, expected, rtol=1e-9)
    model = MultinomialSMP().fit(X, sample_weight=weight)
    values, places = np.unique(X, return_inverse=True)
    counts = np.bincount(places.ravel(), weight)
    assert_allclose(model.proba_, smp.multinomial_smp(counts)["p"], rtol=1e-12)
    assert_allclose(
        np.exp(model.score_samples(values[:, None])), model.proba_, rtol=1e-12
    )


@fuzz(8)
@given(small_tables(d=2))
def test_normal_density_is_a_grid_of_refits(table):
    X, x = table.values(), np.array([[0.3, -1.0]])
    covariance = np.array([[1.0, 0.3], [0.3, 0.5]])
    model = GaussianSMP(covariance=covariance).fit(X)
    expected = smp.gaussian_smp(X, x, covariance)
    assert_allclose(model.score_samples(x)[0], expected["log_density"], rtol=1e-9)


@fuzz(10)
@given(small_tables(classes=3), st.sampled_from([0.01, 0.3]), st.booleans())
def test_online_passes_are_gradient_steps(table, step, intercept):
    X, codes = table.values(), codes_of(table)
    model = FenchelYoungOnlineClassifier(
        learner="ogd",
        feature_scaling="none",
        learning_rate=step,
        fit_intercept=intercept,
        random_state=0,
    )
    quiet(model, X, codes)
    F = np.column_stack([X, np.ones(table.n)]) if intercept else X
    out = fenchel_young.ogd(
        F, np.eye(3)[codes], "simplex", "logistic", "randomized", step
    )
    W = np.column_stack([model.coef_, model.intercept_]) if intercept else model.coef_
    assert_allclose(W, out["W"][-1], rtol=1e-9, atol=1e-12)


@fuzz(10)
@given(small_tables(), st.sampled_from(["rbf", "laplacian"]), st.integers(1, 12))
def test_boosting_is_gradient_descent(table, kernel, n_steps):
    X, y, weight = table.values(), table.targets(), table.weight()
    model = EarlyStoppedKernelBoost(
        kernel, gamma=0.4, stopping=None, max_iter=n_steps, relevance=None, clip=False
    )
    quiet(model, X, y, sample_weight=weight)
    G = kernel_boost.gram(X, kernel=kernel, gamma=0.4)
    offset = np.average(y, weights=weight)
    path, _ = kernel_boost.boost(
        G, y, "squared", model.step_size_, n_steps, offset, weights=weight
    )
    assert_allclose(model.predict(X), offset + G @ path[-1], rtol=1e-8, atol=1e-9)


@fuzz(10)
@given(small_tables(), st.sampled_from(["diag", "full", "spherical", "tied"]))
def test_likelihoods_are_sums_over_paths(table, covariance_type):
    X = table.values()
    model = BaumWelchHMM(
        covariance_type=covariance_type, max_iter=3, reg_covar=0.1, random_state=0
    )
    quiet(model, X)
    theta = {
        "means": model.means_,
        "covariances": model.covariances_,
        "startprob": model.startprob_,
        "transmat": model.transmat_,
    }
    assert_allclose(
        model.score_samples(X).sum(), hmm.loglik([X], theta), rtol=1e-10, atol=1e-10
    )
