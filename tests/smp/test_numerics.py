"""The numerical pieces of the logistic predictors on their own."""

from decimal import Decimal, localcontext

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
    softmax_downdates,
    softmax_increments,
)

from skbounds.smp import _base_fit, _one_step
from skbounds.smp._base_fit import (
    contrasts,
    factorize,
    fit_base,
    log_loss_per_sample,
    raw_predictions,
    reduced_hessian,
    step_length,
)
from skbounds.smp._design import make_design
from skbounds.smp._one_step import (
    gram,
    leverages,
    one_step_multiplier,
    one_step_raw,
    whitened_rows,
)
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


@pytest.mark.parametrize("seed", range(4))
def test_one_step_roots_to_the_last_digits(seed):
    """Against the equation in 50 digits: nothing is left but rounding of its terms."""
    rng = np.random.default_rng(seed)
    eta, h = rng.normal(size=30) * 4.0, 10.0 ** rng.uniform(-3, 3, size=30)
    slope = np.tile([0.3, 0.3, 1.0, 1.0], (30, 1))
    root = np.empty((30, 4))
    one_step_roots(eta, h, slope, slope * [0.0, 1.0, 0.0, 1.0], root)
    with localcontext(prec=50):
        for i in range(30):
            for j, (a, label) in enumerate(zip(slope[0], [0, 1, 0, 1], strict=True)):
                gain = Decimal(h[i]) * Decimal(a)
                x = Decimal(root[i, j])
                for _ in range(5):
                    p = 1 / (1 + (-x).exp())
                    value = x - Decimal(eta[i]) - gain * (label - p)
                    x -= value / (1 + gain * p * (1 - p))
                scale = abs(eta[i]) + abs(float(x)) + float(gain * abs(label - p))
                assert abs(float(x - Decimal(root[i, j]))) <= 1e-15 * scale


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.integers(3, 9),
    log_h=st.floats(-8, 5),
    spread=st.floats(0, 60),
    rank=st.integers(0, 9),
)
def test_one_step_equations_of_several_classes(seed, n_classes, log_h, spread, rank):
    """Stationarity, for leverages of any size and rank, and weights 0, .3 and 1."""
    rng = np.random.default_rng(seed)
    Q = contrasts(n_classes)
    A = rng.normal(size=(4, n_classes - 1, min(rank, n_classes - 1)))
    leverage = A @ A.transpose(0, 2, 1) * 10.0**log_h
    raw = rng.normal(size=(4, n_classes)) * spread
    slope = np.tile(np.repeat([0.0, 0.3, 1.0], n_classes), (4, 1))
    target = slope[:, :, None] * np.tile(np.eye(n_classes), (3, 1))
    own = one_step_raw(raw, leverage, slope, target)
    u = one_step_multiplier(own, slope, target)
    expected = raw[:, None] + u @ leverage @ Q.T
    scale = 1.0 + np.abs(raw).max() + np.abs(leverage).max()
    assert_allclose(own, expected, atol=1e-10 * scale)
    # A tilt at a time: no start from another's solution, no neighbours.
    for tilt in range(3 * n_classes):
        one = slice(tilt, tilt + 1)
        alone = one_step_raw(raw, leverage, slope[:, one], target[:, one])
        assert_allclose(own[:, one], alone, atol=1e-10 * scale)


def test_one_step_of_several_classes_takes_rows_out():
    """A negative slope is one Newton step; taking out and putting back is no step."""
    rng = np.random.default_rng(2)
    n, K = 20, 4
    Q = contrasts(K)
    A = rng.normal(size=(n, K - 1, K - 1))
    leverage = A @ A.transpose(0, 2, 1)
    raw, codes = 3.0 * rng.normal(size=(n, K)), rng.integers(K, size=n)
    proba = softmax(raw, axis=1)
    S = np.stack([Q.T @ (np.diag(p) - np.outer(p, p)) @ Q for p in proba])
    # So that no row carries more curvature than the fit has.
    leverage /= 1.1 * np.abs(np.linalg.eigvals(leverage @ S)).max(axis=1)[:, None, None]
    removed = rng.uniform(0.2, 1.0, size=n)
    residual = (removed[:, None] * (proba - np.eye(K)[codes])) @ Q
    less = np.linalg.inv(np.eye(K - 1) - removed[:, None, None] * (leverage @ S))
    less = less @ leverage
    moved = raw + (less @ residual[:, :, None])[:, :, 0] @ Q.T
    slope = -removed[:, None]
    target = -removed[:, None, None] * np.eye(K)[codes][:, None]
    tilted = one_step_raw(raw, leverage, slope, target)[:, 0]
    assert_allclose(tilted, moved, atol=1e-9)
    found, found_raw = leverage.copy(), raw.copy()
    softmax_downdates(found_raw, found, removed, codes, Q)
    assert_allclose(found, less, atol=1e-9)
    assert_allclose(found_raw, moved, atol=1e-9)


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


def test_directions_by_conjugate_gradients_give_the_same_fits(monkeypatch):
    """Also from another penalty's Hessian, with weights, and for two classes."""
    rng = np.random.default_rng(4)
    for n_classes, as_sparse in [(2, False), (2, True), (5, False), (5, True)]:
        Z, codes = rng.normal(size=(60, 7)), rng.integers(n_classes, size=60)
        Z = sparse.csr_array(Z) if as_sparse else Z
        data = Z, codes, rng.uniform(0.2, 3.0, size=60)
        penalty = np.append(np.full(6, 0.3), 0.0)
        monkeypatch.setattr(_base_fit, "_DEAR", np.inf)
        expected = fit_base(*data, penalty, n_classes)
        monkeypatch.setattr(_base_fit, "_DEAR", 0.0)
        near = fit_base(*data, 30.0 * penalty, n_classes)
        for start in (None, near):
            found = fit_base(*data, penalty, n_classes, near=start)
            assert_allclose(found.theta, expected.theta, atol=1e-10)
            assert_allclose(found.inv_factor, expected.inv_factor, atol=1e-9)


def test_old_hessians_that_do_not_help_are_replaced(monkeypatch):
    """Directions that take too many steps are given up, and the fit is found."""
    rng = np.random.default_rng(5)
    Z, codes = rng.normal(size=(80, 40)), rng.integers(3, size=80)
    data = Z * 10.0 ** rng.uniform(-3, 3, size=40), codes, np.ones(80)
    monkeypatch.setattr(_base_fit, "_DEAR", 0.0)
    near = fit_base(*data, np.full(40, 1e6), 3)
    found = fit_base(*data, np.full(40, 1e-2), 3, near=near)
    monkeypatch.setattr(_base_fit, "_DEAR", np.inf)
    expected = fit_base(*data, np.full(40, 1e-2), 3)
    assert_allclose(found.raw(Z), expected.raw(Z), rtol=1e-6, atol=1e-8)


def test_leverages_are_grams_of_whitened_rows(monkeypatch):
    """By blocks, through the inverse, and where that would lose too much."""
    rng = np.random.default_rng(6)
    for penalty in (1.0, 1e-11):
        Z, codes = rng.normal(size=(30, 4)), np.arange(30) % 6
        Z[:, 0] *= 1e-3
        base = fit_base(Z, codes, np.ones(30), np.full(4, penalty), 6)
        expected = gram(whitened_rows(base, Z))
        for many in (1, 100):
            monkeypatch.setattr(_one_step, "_MANY", many)
            for rows in (Z, sparse.csr_array(Z)):
                found = leverages(base, rows)
                assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_penalties_of_separated_rows_count_as_the_least_that_can_be_told():
    """Each in its column's unit; what nothing has seen takes the others'."""
    Z = np.array([[1.0, 1e-8, 0.0], [-3.0, 2e-8, 0.0]])
    weight = np.array([2.0, 1.0])
    for rows in (Z, sparse.csr_array(Z)):
        floor = _base_fit._floor(rows, weight)
        assert_allclose(floor, [1e-14 * 11 / 3, 1e-14 * 2e-16, 1e-14 * 11 / 9])
        penalty = np.array([1e-30, 1e-3, 1e-30])
        sure = np.full((1, 2), 1e-12)
        found = _base_fit._resolved(rows, weight, penalty, sure)
        assert_allclose(found, [floor[0], 1e-3, floor[2]])
        unsure = np.array([[1e-12, 0.5]])
        found = _base_fit._resolved(rows, weight, penalty, unsure)
        assert_allclose(found, [1e-30, 1e-3, floor[2]])


def test_small_penalties_of_rows_far_from_the_origin_are_taken_as_they_are():
    """Beside their squares nothing could be told; beside their curvature it can."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    codes = (Z[:, 0] - Z[:, 1] + rng.logistic(size=200) > 0).astype(int)
    moved = Z + 1e6
    for penalty in (1e-2, 1e-4):
        # Nearly only the difference of the two is free: one coordinate, and its norm.
        turned = np.column_stack([Z[:, 0] - Z[:, 1], np.ones(200)]) / np.sqrt(2)
        expected = fit_base(turned, codes, np.ones(200), np.array([penalty, 0.0]), 2)
        found = fit_base(moved, codes, np.ones(200), np.full(2, penalty), 2)
        difference = (found.theta[0, 0] - found.theta[0, 1]) / np.sqrt(2)
        assert difference == pytest.approx(expected.theta[0, 0], rel=1e-4)


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
