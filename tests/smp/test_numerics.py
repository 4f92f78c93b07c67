"""The numerical pieces of the logistic predictors on their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, log_expit, softmax
from skbounds._core.smp import (
    MAX_CHANGE,
    binary_increments,
    one_step_roots,
    softmax_increments,
)

from skbounds.smp._base_fit import (
    factorize,
    fit_base,
    log_loss_per_sample,
    reduced_hessian,
    step_length,
)
from skbounds.smp._design import make_design
from skbounds.smp._one_step import one_step_multiplier
from skbounds.smp._virtual import solve_virtual


def test_binary_increments_have_full_relative_accuracy():
    """Also for changes far below rounding of the probabilities themselves."""
    rng = np.random.default_rng(0)
    eta = rng.normal(size=500) * 10
    change = np.vstack(
        [rng.uniform(-4, 4, size=500), 1e-12 * rng.normal(size=500), np.zeros(500)]
    )
    proba, weight = expit(eta), rng.uniform(0.5, 2, size=500)
    # Mean value form with expm1, which has no cancellation.
    e = np.expm1(change)
    expected = weight * proba * expit(-eta) * e / (1 + proba * e)
    largest = np.empty(3)
    actual = change.copy()
    binary_increments(actual, proba, weight * proba * expit(-eta), largest)
    assert_allclose(largest, np.abs(change).max(axis=1), rtol=0)
    # The denominator can be as small as exp(-4), which amplifies rounding 55 times.
    assert_allclose(actual, expected, rtol=100 * np.finfo(float).eps)
    direct = weight * (expit(eta + change[0]) - proba)
    assert_allclose(actual[0], direct, atol=1e-15)


@pytest.mark.parametrize("bad", [MAX_CHANGE * 1.01, -np.inf, np.nan])
def test_increments_refuse_what_they_cannot_do(bad):
    """Rows beyond the bound are flagged and zeroed; others are not affected."""
    proba = np.array([0.2, 0.7])
    change = np.array([[0.1, bad], [0.1, 0.2]])
    largest = np.empty(2)
    binary_increments(change, proba, proba * (1 - proba), largest)
    assert largest.tolist() == [np.inf, 0.2]
    assert_allclose(change[0], 0)
    change = np.zeros((1, 3, 2))
    change[0, 1, 1] = bad
    largest = np.empty(1)
    softmax_increments(change, np.full((3, 2), 1 / 3), np.ones(2), largest)
    assert largest[0] == np.inf and not change.any()


def test_softmax_increments():
    """Differences of softmax, weighted, without cancellation."""
    rng = np.random.default_rng(1)
    raw, change = rng.normal(size=(4, 50)), rng.uniform(-2, 2, size=(6, 4, 50))
    change[3] *= 1e-10
    weight = rng.uniform(0.5, 2, size=50)
    expected = weight * (softmax(raw + change, axis=1) - softmax(raw, axis=0))
    largest = np.empty(6)
    actual = change.copy()
    softmax_increments(actual, softmax(raw, axis=0), weight, largest)
    assert_allclose(largest, np.abs(change).max(axis=(1, 2)), rtol=0)
    assert_allclose(actual, expected, atol=1e-15)
    assert np.abs(actual[3]).max() > 0
    assert_allclose(actual.sum(axis=1), 0, atol=1e-15)


@given(
    eta=st.floats(-50, 50),
    log_h=st.floats(-8, 8),
    slope=st.floats(0.01, 1),
    label=st.sampled_from([0.0, 1.0]),
)
def test_one_step_roots(eta, log_h, slope, label):
    """Roots of the scalar equation, also for leverages that defeat plain brackets."""
    h = 10.0**log_h
    root = np.empty((1, 1))
    one_step_roots(
        np.array([eta]),
        np.array([h]),
        np.array([[slope]]),
        np.array([[slope * label]]),
        root,
    )

    def equation(x):
        residual = expit(-x) if label else -expit(x)
        return x - eta - h * slope * residual

    low, high = sorted([eta, eta + h * slope * (2 * label - 1)])
    expected = brentq(equation, low - 1e-9, high + 1e-9, xtol=1e-13, rtol=1e-14)
    assert root[0, 0] == pytest.approx(expected, abs=1e-10, rel=1e-10)


def test_one_step_multiplier_solves_its_equation():
    """Stationarity for K classes, small and huge leverages, mixed slopes."""
    rng = np.random.default_rng(2)
    from skbounds.smp._base_fit import contrasts

    Q = contrasts(4)
    A = rng.normal(size=(30, 3, 3))
    leverage = A @ A.transpose(0, 2, 1) * 10.0 ** rng.uniform(-4, 3, size=(30, 1, 1))
    raw = rng.normal(size=(30, 4)) * 3
    slope = np.tile([0.0, 0.3, 1.0], (30, 1))
    target = slope[:, :, None] * np.eye(4)[rng.integers(4, size=(30, 3))]
    u = one_step_multiplier(raw, leverage, slope, target)
    own = raw[:, None, :] + u @ leverage @ Q.T
    expected = (target - slope[:, :, None] * softmax(own, axis=2)) @ Q
    assert_allclose(u, expected, atol=1e-9)


def test_loss_derivatives_at_awkward_points():
    """Values at huge scores; Hessian against differences of the gradient."""
    raw = np.array([[800.0, -800.0, 0.0]])
    onehot = np.array([[1.0, 1.0, 0.0]])
    expected = [0.0, 800.0, np.log(2)]
    assert_allclose(log_loss_per_sample(raw, onehot), expected, atol=1e-12)
    raw3 = np.array([[800.0], [-800.0], [0.0]])
    assert_allclose(log_loss_per_sample(raw3, np.eye(3)[:, [1]]), [1600.0])
    rng = np.random.default_rng(3)
    Z, weight = rng.normal(size=(12, 2)), rng.uniform(0.5, 2, size=12)
    from skbounds.smp._base_fit import contrasts, raw_predictions

    Q = contrasts(3)

    def gradient(theta):
        raw = raw_predictions(theta.reshape(2, 2), Z, 3)
        return ((Q.T @ (softmax(raw, axis=0) * weight)) @ Z).ravel()

    theta = rng.normal(size=4)
    steps = 1e-6 * np.eye(4)
    numeric = [(gradient(theta + e) - gradient(theta - e)) / 2e-6 for e in steps]
    raw = raw_predictions(theta.reshape(2, 2), Z, 3)
    hessian = reduced_hessian(Z, softmax(raw, axis=0), weight)
    assert_allclose(hessian, numeric, atol=1e-7)
    as_sparse = reduced_hessian(sparse.csr_array(Z), softmax(raw, axis=0), weight)
    assert_allclose(as_sparse, hessian, atol=1e-12)


def test_safe_step_decreases_the_objective():
    """log(1 + r) / r is a descent step wherever the full Newton step overshoots."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        x, y = rng.normal(size=20) * 10, rng.integers(2, size=20)
        theta = rng.normal() * 3
        sign = 2 * y - 1

        def loss(t, x=x, sign=sign):
            return -log_expit(sign * x * t).sum() + 0.01 * t**2

        gradient = -(sign * x * expit(-sign * x * theta)).sum() + 0.02 * theta
        hessian = (x**2 * expit(x * theta) * expit(-x * theta)).sum() + 0.02
        direction = -gradient / hessian
        step = step_length((x * direction)[None, :], axis=None)
        assert loss(theta + step * direction) <= loss(theta) + 1e-12


def test_factorize_survives_semidefinite_matrices():
    """A matrix that is singular to rounding is raised by the least that helps."""
    L = np.array([[1.0, 0.0], [1.0, 0.0]])
    inverse = factorize(L @ L.T)
    assert np.isfinite(inverse).all()
    with pytest.raises(np.linalg.LinAlgError):
        factorize(np.full((2, 2), np.nan))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("shape", [(20, 4), (6, 30), (6, 6)])
def test_design_is_an_isometry(shape, as_sparse):
    """Coordinates keep all inner products with training rows, and all norms."""
    rng = np.random.default_rng(5)
    X, rows = rng.normal(size=shape), rng.normal(size=(5, shape[1]))
    X[1] = X[0]  # rank deficient
    options = {"fit_intercept": True, "penalize_intercept": True}
    container = sparse.csr_array if as_sparse else np.asarray
    design = make_design(container(X), np.ones(len(X)), **options)
    Z, T = design.transform(container(X)), design.transform(container(rows))
    if sparse.issparse(Z):
        Z, T = Z.toarray(), T.toarray()
    assert_allclose(T @ Z.T, rows @ X.T + 1, atol=1e-10)
    assert_allclose(np.sum(T**2, axis=1), np.sum(rows**2, axis=1) + 1, atol=1e-10)
    assert Z.shape[1] <= min(shape) + 2
    theta = rng.normal(size=(2, Z.shape[1]))
    if design.is_reduced:
        theta[:, -2] = 0.0
    coef, intercept = design.to_features(theta)
    assert_allclose(rows @ coef.T + intercept, T @ theta.T, atol=1e-10)


def test_slow_problems_reach_newton_and_agree_with_it():
    """High leverage is finished by Newton; the result is the same optimum."""
    rng = np.random.default_rng(6)
    Z = rng.normal(size=(15, 6))
    codes = (Z[:, 0] > 0).astype(int)
    base = fit_base(Z, codes, np.ones(15), np.full(6, 1e-3), 2)
    rows = 5 * rng.normal(size=(20, 6))
    slope, target = np.ones((20, 2)), np.tile([[0.0], [1.0]], (20, 1, 1))
    fits = solve_virtual(base, rows, slope, target, tol=1e-10, max_iter=100)
    assert fits.n_newton > 0 and fits.n_failed == 0
    for i in range(20):
        for label in (0, 1):
            augmented = fit_base(
                np.vstack([Z, rows[i]]),
                np.append(codes, label),
                np.ones(16),
                np.full(6, 1e-3),
                2,
            )
            expected = augmented.raw(rows[[i]])[0, 0]
            assert fits.raw[i, label, 0] == pytest.approx(expected, abs=1e-7)
