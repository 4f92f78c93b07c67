"""The solver: the optimum, its path along C, and the pool of kernel rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from pac_bayes.toy import blobs, noisy_rings, twonorm
from skbounds.pac_bayes._kernels import Kernel, KernelRows
from skbounds.pac_bayes._svm_path import OneVsOne, PairProblem, vote


def make_problem(X, y, *, kernel="rbf", cache_size=200, weights=(1.0, 1.0), targets=()):
    """Return the problem on rows sorted by class, the matrix and the sorted labels."""
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    params = {"gamma": 0.3, "degree": 2, "coef0": 1.0}
    rows = KernelRows(Kernel(kernel, params), X, cache_size)
    K = pairwise_kernels(X, metric=kernel, filter_params=True, **params)
    cut, n = int(np.sum(y == 0)), len(y)
    problem = PairProblem(rows, [(0, cut)], [(cut, n)], list(targets), weights)
    return problem, K, y


def dual_objective(beta, K, y):
    sign = 2.0 * y - 1.0
    return sign @ beta - 0.5 * beta @ K @ beta


def violation(beta, K, y, C):
    """Return the largest violation of optimality, from the definition."""
    sign = 2.0 * y - 1.0
    gradient = sign - K @ beta
    low, high = np.minimum(C * sign, 0.0), np.maximum(C * sign, 0.0)
    return gradient[beta < high].max() - gradient[beta > low].min()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("make", [twonorm, noisy_rings])
@pytest.mark.parametrize("n", [30, 97, 600])
def test_optimum_is_that_of_libsvm(kernel, make, n):
    """Along a path: feasible, optimal by definition, and no worse than libsvm."""
    X, y = make(np.random.default_rng(n), n)
    problem, K, y = make_problem(X, y, kernel=kernel)
    for C in (0.01, 0.3, 5.0):
        problem.advance(C, 1e-5, np.inf)
        beta = problem.beta
        assert abs(beta.sum()) < 1e-9 * C * n
        sign = 2.0 * y - 1.0
        assert (beta * sign >= 0.0).all() and (np.abs(beta) <= C).all()
        assert violation(beta, K, y, C) <= 1e-5 + 1e-9 * C * n
        svc = SVC(C=C, kernel="precomputed", tol=1e-5).fit(K, y)
        theirs = np.zeros(n)
        theirs[svc.support_] = svc.dual_coef_[0]
        ours_value = dual_objective(beta, K, y)
        assert ours_value >= dual_objective(theirs, K, y) * (1.0 - 1e-7)
        assert ours_value > 0.0
        assert_allclose(problem.bias, svc.intercept_[0], atol=1e-4 * max(1.0, C))


def test_weighted_optimum_is_that_of_libsvm():
    """Classes have their own bounds."""
    X, y = noisy_rings(np.random.default_rng(0), 150)
    problem, K, y = make_problem(X, y, weights=(0.2, 3.0))
    problem.advance(2.0, 1e-6, np.inf)
    svc = SVC(C=2.0, kernel="precomputed", tol=1e-6, class_weight={0: 0.2, 1: 3.0})
    svc.fit(K, y)
    decision = K @ problem.beta + problem.bias
    assert_allclose(decision, svc.decision_function(K), atol=1e-4)
    assert np.abs(problem.beta[y == 0]).max() == 0.4
    assert problem.beta[y == 1].max() > 0.4


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(6, 60),
    log_c=st.floats(-3.0, 3.0),
    factor=st.floats(1.0, 100.0),
)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_gradient_stays_true_along_the_path(seed, n, log_c, factor):
    """After warm starts v is still y - K beta, and bounds hold to the last bit."""
    rng = np.random.default_rng(seed)
    X, y = noisy_rings(rng, n, d=2)
    y[:2] = 0, 1
    problem, K, y = make_problem(X, y)
    for C in (10.0**log_c, 10.0**log_c * factor):
        problem.advance(C, 1e-3, 1000.0)
        gradient = 2.0 * y - 1.0 - K @ problem.beta
        assert_allclose(problem.v, gradient, atol=1e-9 * max(1.0, C) * n)
        assert np.abs(problem.beta).max() <= C


@pytest.mark.parametrize("d", [2, 4])
def test_rows_on_demand_give_the_same_optimum(d):
    """A pool too small for the matrix, or for all free rows, changes the work only."""
    X, y = noisy_rings(np.random.default_rng(1), 700, d=d)
    targets = [(100, 200), (500, 600)]
    scarce, _, _ = make_problem(X, y, targets=targets, cache_size=1.0)
    whole, K, y = make_problem(X, y, targets=targets)
    assert whole.rows.complete and not scarce.rows.complete
    assert len(scarce.rows.pool) < 200
    for C in (0.1, 10.0):
        for problem in (whole, scarce):
            problem.advance(C, 1e-5, np.inf)
        assert_allclose(
            dual_objective(scarce.beta, K, y),
            dual_objective(whole.beta, K, y),
            rtol=1e-7,
        )
        chosen = np.r_[100:200, 500:600]
        for problem in (whole, scarce):
            expected = K[chosen] @ problem.beta + problem.bias
            assert_allclose(problem.decide(), expected, atol=1e-9)
            gradient = 2.0 * y - 1.0 - K @ problem.beta
            assert_allclose(problem.v, gradient, atol=1e-9)


@pytest.mark.parametrize("C, per_row", [(1000.0, 0.5), (1.0, 1.5)])
def test_a_cap_ends_the_work_and_is_reported(C, per_row):
    """After the iterations it is given, of all entries or of few; a feasible point."""
    X, y = noisy_rings(np.random.default_rng(2), 200)
    problem, _, _ = make_problem(X, y)
    n_iter, capped = problem.advance(C, 1e-8, per_row)
    assert (n_iter, capped) == (200 * per_row, True)
    assert np.abs(problem.beta).max() <= C
    assert abs(problem.beta.sum()) < 1e-6


def test_warm_starts_are_exact_while_all_entries_are_at_their_bounds():
    """There the solution is a ray, and a larger C needs no iterations."""
    X, y = noisy_rings(np.random.default_rng(6), 100)
    y = np.arange(100) % 2
    problem, K, y = make_problem(X, y)
    assert problem.advance(1e-5, 1e-3, np.inf)[0] > 0
    assert (np.abs(problem.beta) == 1e-5).all()
    n_iter, _ = problem.advance(1e-3, 1e-3, np.inf)
    assert n_iter == 0
    assert violation(problem.beta, K, y, 1e-3) <= 1e-3 + 1e-9


def test_no_larger_c_matters_once_nothing_is_at_the_bound():
    """Beyond the largest useful C the solution stays, without iterations."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(40, 2)) - 4.0, rng.normal(size=(40, 2)) + 4.0])
    y = np.repeat([0, 1], 40)
    problem, _, _ = make_problem(X, y)
    problem.advance(1e3, 1e-6, np.inf)
    before = problem.beta.copy()
    assert 0.0 < np.abs(before).max() < 1e3
    n_iter, capped = problem.advance(1e6, 1e-6, np.inf)
    assert n_iter <= 2 and not capped
    assert_allclose(problem.beta, before, rtol=1e-5, atol=1e-8)


def test_indefinite_kernels_end():
    """Where curvature is not positive the end is still a stationary point."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 3)), np.arange(80) % 2
    problem, K, y = make_problem(X, y, kernel="sigmoid")
    assert np.linalg.eigvalsh(K)[0] < -0.1
    _, capped = problem.advance(10.0, 1e-3, 5000.0)
    assert not capped
    assert np.abs(problem.beta).max() <= 10.0
    assert violation(problem.beta, K, y, 10.0) <= 1e-3 + 1e-6


def test_several_classes_agree_with_libsvm():
    """Coefficients, intercepts and votes of all pairs, in libsvm's layout."""
    X, y = blobs(np.random.default_rng(5), 160)
    X = X[np.argsort(y, kind="stable")]
    y = np.sort(y)
    rows = KernelRows(Kernel("rbf", {"gamma": 0.3}), X, 200)
    ranges = [[(40 * k, 40 * k + 40)] for k in range(4)]
    machine = OneVsOne(rows, ranges, [(0, 160)], np.ones(4))
    machine.advance(2.0, 1e-6, np.inf)
    svc = SVC(C=2.0, gamma=0.3, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    decisions = machine.decide()
    # In libsvm a pair's decision is positive for its first class.
    assert_allclose(-decisions, svc.decision_function(X), atol=1e-4)
    assert_array_equal(vote(decisions, 4, np.arange(4)), svc.predict(X))
    dual, intercepts = machine.coefficients(160)
    theirs = np.zeros((3, 160))
    theirs[:, svc.support_] = -svc.dual_coef_
    assert_allclose(dual, theirs, atol=1e-3)
    assert_allclose(-intercepts, svc.intercept_, atol=1e-4)


def test_votes_break_ties_by_rank():
    """A circle of three classes is won by the class of least rank."""
    # 1 beats 0, 0 beats 2, 2 beats 1.
    decisions = np.array([[1.0, -1.0, 1.0]])
    for first in range(3):
        rank = np.array([1, 1, 1])
        rank[first] = 0
        assert vote(decisions, 3, rank)[0] == first
