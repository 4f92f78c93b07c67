"""How far from the best model: bounds and estimates of the excess risk."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import smp as reference
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import expit

from skbounds import KernelRidgeSMP, RidgeSMP, SMPLogisticRegression


def make_rows(n=25, d=3, seed=0, size=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    theta = size * np.ones(d) / np.sqrt(d)
    y = (rng.random(n) < expit(X @ theta)).astype(int)
    y[:2] = 0, 1
    return X, y


def maximum_likelihood(X, y, weight):
    def loss(theta):
        eta = X @ theta
        return weight @ (np.logaddexp(0.0, eta) - y * eta)

    return minimize(loss, np.zeros(X.shape[1]), method="BFGS", tol=1e-13).x


def slow_excess(X, y, C, weight, *, free):
    """Return both estimates, their errors and the ratio, from the definitions.

    Leave-one-out by refits; rows of `X` include the constant if `free`, whose
    coefficient has no penalty.
    """
    n = weight.sum()
    lambda_ = 1.0 / ((n + 1.0) * C)
    rows = X[:, :-1] if free else X
    found = reference.logistic_loo(rows, y, C, sample_weight=weight, fit_intercept=free)
    loss, log_normalizer = found["loss"], found["log_normalizer"]
    P = np.eye(X.shape[1])
    if free:
        P[-1, -1] = 0.0
    coef, intercept, _ = reference.fit_logistic(
        rows, y, weight, 1.0 / (n * lambda_), fit_intercept=free
    )
    theta = np.append(coef, intercept) if free else coef
    terms = {"penalized": [], "risk": []}
    ratio = 0.0
    for kind in terms:
        at = theta if kind == "penalized" else maximum_likelihood(X, y, weight)
        p = expit(X @ at)
        s = p * (1.0 - p)
        H = (X.T * (weight * s)) @ X
        if kind == "penalized":
            H = H + n * lambda_ * P
        inverse = np.linalg.inv(H)
        for i, x in enumerate(X):
            h = x @ inverse @ x
            g = (p[i] - y[i]) * x
            if kind == "penalized":
                g = g + lambda_ * P @ at
            unit = min(weight[i], 1.0)
            rest = max(1.0 - unit * s[i] * h, 0.05)
            # A row of weight below 1 is one row, of which that part is known.
            squared = unit * (g @ inverse @ g)
            if kind == "penalized":
                terms[kind].append(log_normalizer[i] - 0.5 * squared / rest)
            else:
                own = np.logaddexp(0.0, x @ at) - y[i] * (x @ at)
                terms[kind].append(loss[i] - own - 0.5 * squared / rest)
                ratio += weight[i] * squared
    result = {"ratio": ratio / X.shape[1]}
    for kind, values in terms.items():
        values = np.array(values)
        mean = weight @ values / n
        error = np.sqrt(weight @ (values - mean) ** 2 / n / n)
        result[kind] = mean, error
    return result


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 5.0])
def test_logistic_estimates_equal_a_slow_reference(C, free, weighted):
    X, y = make_rows()
    weight = np.ones(len(X))
    if weighted:
        weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=len(X))
    rows = np.column_stack([X, np.ones(len(X))]) if free else X
    expected = slow_excess(rows, y, C, weight, free=free)
    model = SMPLogisticRegression(C, fit_intercept=free)
    model.fit(X, y, sample_weight=weight)
    assert_allclose(model.excess_risk_penalized_, expected["penalized"][0], atol=1e-7)
    assert_allclose(model.excess_risk_, expected["risk"][0], atol=1e-6)
    assert_allclose(model.effective_dimension_ratio_, expected["ratio"], rtol=1e-4)
    for penalized, kind in [(False, "risk"), (True, "penalized")]:
        mean, error = expected[kind]
        low, high = model.excess_risk_interval(0.9, penalized=penalized)
        assert_allclose([low, high], mean + np.array([-1, 1]) * 1.644853627 * error,
                        atol=1e-6)  # fmt: skip
    container = sparse.csr_array(X)
    again = SMPLogisticRegression(C, fit_intercept=free)
    again.fit(container, y, sample_weight=weight)
    assert_allclose(again.excess_risk_, model.excess_risk_, atol=1e-9)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.excess_risk_interval() == model.excess_risk_interval()


def test_integer_weights_are_repetitions():
    X, y = make_rows()
    count = np.random.default_rng(0).integers(1, 4, size=len(X))
    repeated = SMPLogisticRegression().fit(np.repeat(X, count, axis=0),
                                           np.repeat(y, count))  # fmt: skip
    weighted = SMPLogisticRegression().fit(X, y, sample_weight=count)
    for name in (
        "log_normalizer_mean_",
        "excess_risk_",
        "excess_risk_penalized_",
        "effective_dimension_ratio_",
    ):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-8)


def test_one_step_and_the_search_over_C_have_them_too():
    X, y = make_rows(120, 4)
    exact = SMPLogisticRegression(1.0).fit(X, y)
    one = SMPLogisticRegression(1.0, method="one-step").fit(X, y)
    assert_allclose(one.excess_risk_, exact.excess_risk_, atol=2e-3)
    assert_allclose(one.excess_risk_penalized_, exact.excess_risk_penalized_, atol=2e-3)
    for method in ("exact", "one-step"):
        found = SMPLogisticRegression("loo", Cs=[0.1, 1.0, 10.0], method=method)
        found.fit(X, y)
        plain = SMPLogisticRegression(found.C_).fit(X, y)
        assert_allclose(found.excess_risk_, plain.excess_risk_, atol=1e-8)
        assert_allclose(found.log_normalizer_mean_, plain.log_normalizer_mean_)


def test_where_there_is_no_estimate():
    X, y = make_rows(20, 3)
    y = (X[:, 0] > 0).astype(int)
    separated = SMPLogisticRegression().fit(X, y)
    assert np.isnan(separated.excess_risk_)
    assert np.isnan(separated.effective_dimension_ratio_)
    assert np.isnan(separated.excess_risk_interval()).all()
    assert np.isfinite(separated.excess_risk_interval(penalized=True)).all()
    wide = SMPLogisticRegression().fit(np.random.default_rng(0).normal(size=(10, 30)),
                                       np.arange(10) % 2)  # fmt: skip
    assert np.isnan(wide.excess_risk_) and np.isfinite(wide.excess_risk_penalized_)
    three = SMPLogisticRegression().fit(X, np.arange(20) % 3)
    assert np.isnan([three.excess_risk_, three.excess_risk_penalized_]).all()
    assert np.isfinite(three.excess_risk_bound(1.0))
    half = SMPLogisticRegression(virtual_weight=0.5).fit(*make_rows(60, 2))
    assert np.isnan(half.excess_risk_penalized_) and np.isfinite(half.excess_risk_)
    assert np.isnan(half.excess_risk_bound(1.0))
    kernel = KernelRidgeSMP(kernel="rbf", sigma=1.0).fit(X, y)
    assert np.isnan(kernel.excess_risk_) and np.isfinite(kernel.excess_risk_penalized_)
    joint = RidgeSMP(0, sigma="joint").fit(X, X[:, 0] + np.arange(20) % 3)
    assert np.isnan(joint.excess_risk_)
    for level in (0.0, 1.0, "x"):
        with pytest.raises(ValueError, match="level must lie"):
            half.excess_risk_interval(level)
    for norm in (-1.0, np.inf, "x"):
        with pytest.raises(ValueError, match="norm must be"):
            half.excess_risk_bound(norm)


@pytest.mark.parametrize(
    "model", [SMPLogisticRegression(), RidgeSMP(), KernelRidgeSMP(kernel="rbf")]
)
def test_the_old_name_warns_and_is_no_bound(model):
    X, y = make_rows()
    model.fit(X, y)
    with pytest.warns(FutureWarning, match="is not a bound of the excess risk"):
        assert model.excess_risk_bound_ == model.log_normalizer_mean_
    penalty = 0.5 * model.lambda_ * 4.0
    if hasattr(model, "sigma_"):
        penalty /= model.sigma_[0] ** 2
    assert_allclose(
        model.excess_risk_bound(2.0), model.log_normalizer_mean_ + penalty, rtol=1e-12
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dir(model)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 20.0])
def test_ridge_estimates_equal_a_slow_reference(alpha, intercept):
    rng = np.random.default_rng(0)
    n, sigma = 30, 1.5
    X = rng.normal(size=(n, 3))
    Y = X @ rng.normal(size=(3, 2)) + sigma * rng.standard_t(5, size=(n, 2)) + 1.0
    model = RidgeSMP(alpha, sigma=sigma, fit_intercept=intercept).fit(X, Y)
    lambda_ = alpha / (n + 1.0)
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    P = np.eye(A.shape[1])
    if intercept:
        P[-1, -1] = 0.0
    losses = []
    for i in range(n):
        rest = np.arange(n) != i
        # The penalty per observation is that of n + 1 rows.
        part = RidgeSMP(lambda_ * n, sigma=sigma, fit_intercept=intercept)
        part.fit(X[rest], Y[rest])
        mean, std = part.predict(X[[i]], return_std=True)
        losses.append(-stats.norm.logpdf(Y[i], mean[0], std[0]).sum())
    constant = 2 * (np.log(sigma) + 0.5 * np.log(2 * np.pi))
    H = A.T @ A
    theta = np.linalg.solve(H, A.T @ Y)
    inverse = np.linalg.inv(H)
    terms, ratio = [], 0.0
    for i in range(n):
        e, h = Y[i] - A[i] @ theta, A[i] @ inverse @ A[i]
        own = 0.5 * e @ e / sigma**2 + constant
        terms.append(losses[i] - own - 0.5 * h * (e @ e) / (1 - h) / sigma**2)
        ratio += h * (e @ e) / sigma**2
    assert_allclose(model.excess_risk_, np.mean(terms), rtol=1e-8)
    assert_allclose(model.effective_dimension_ratio_, ratio / (2 * A.shape[1]))
    H = H + n * lambda_ * P
    inverse, theta = np.linalg.inv(H), np.linalg.solve(H, A.T @ Y)
    terms = []
    for i in range(n):
        e, h = Y[i] - A[i] @ theta, A[i] @ inverse @ A[i]
        own = 0.5 * (e @ e + lambda_ * np.sum(theta * (P @ theta))) / sigma**2
        value = losses[i] - own - constant
        for j in range(2):
            g = -e[j] * A[i] + lambda_ * P @ theta[:, j]
            value -= 0.5 * (g @ inverse @ g) / (1 - h) / sigma**2
        terms.append(value)
    assert_allclose(model.excess_risk_penalized_, np.mean(terms), rtol=1e-7)
    low, high = model.excess_risk_interval(0.8, penalized=True)
    error = np.std(terms) / np.sqrt(n)
    assert_allclose(high - low, 2 * stats.norm.ppf(0.9) * error, rtol=1e-6)


# ------------------------------------------------------------ what is true


def true_excess(model, X, p, best, lambda_):
    """Return expected excesses over the best model and the best penalised loss."""
    proba = model.predict_proba(X)
    risk = -np.mean(p * np.log(proba[:, 1]) + (1 - p) * np.log(proba[:, 0]))

    def loss(theta):
        eta = X @ theta
        value = np.mean(np.logaddexp(0.0, eta) - p * eta)
        gradient = X.T @ (expit(eta) - p) / len(X)
        return value, gradient

    def penalized(theta):
        value, gradient = loss(theta)
        return value + 0.5 * lambda_ * theta @ theta, gradient + lambda_ * theta

    start = np.zeros(X.shape[1])
    least = minimize(loss, best, jac=True).fun
    least_penalized = minimize(penalized, start, jac=True).fun
    return risk - least, risk - least_penalized


DESIGNS = {
    "n=50 d=5 C=1": (50, 5, 1.0, False),
    "n=200 d=5 C=1": (200, 5, 1.0, False),
    "n=200 d=5 theory": (200, 5, "theory", False),
    "n=50 d=5 theory": (50, 5, "theory", False),
    "n=100 d=20 C=1": (100, 20, 1.0, False),
    "flipped link": (100, 5, 1.0, True),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_statements_at_six_designs(design):
    """Bounds are above the truth, and estimates near it, in the mean of 40 samples.

    A link that is flipped for a third of the rows' directions is a wrong model.
    """
    n, d, C, flipped = DESIGNS[design]
    theta = np.full(d, 2.0 / np.sqrt(d))
    rng = np.random.default_rng(7)

    def draw(size):
        X = rng.normal(size=(size, d))
        p = expit(X @ theta)
        if flipped:
            p = np.where(np.abs(X @ theta) > 3.0, 1.0 - p, p)
        return X, p, (rng.random(size) < p).astype(int)

    X_test, p_test, _ = draw(4000)
    rows = []
    for _ in range(40):
        X, _, y = draw(n)
        model = SMPLogisticRegression(C, fit_intercept=False).fit(X, y)
        truth, penalized = true_excess(model, X_test, p_test, theta, model.lambda_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theory = model.theory_bound(2.0)
        low, high = model.excess_risk_interval(0.9)
        rows.append(
            [
                truth,
                penalized,
                model.excess_risk_bound(2.0),
                theory,
                model.excess_risk_,
                model.excess_risk_penalized_,
                low,
                high,
            ]
        )
    rows = np.array(rows)
    truth, penalized, bound, theory = rows[:, :4].mean(axis=0)
    error = rows[:, :2].std(axis=0) / np.sqrt(len(rows))
    assert bound >= truth - 2 * error[0]
    assert theory >= truth - 2 * error[0]
    assert abs(rows[:, 5].mean() - penalized) <= 0.012 + 2 * error[1]
    if n >= 10 * d:
        assert abs(np.nanmean(rows[:, 4]) - truth) <= 0.008 + 2 * error[0]
        covered = (rows[:, 6] <= truth) & (truth <= rows[:, 7])
        assert covered.mean() >= 0.75


def test_the_dimension_ratio_tells_a_wrong_model():
    """Near 1 for a logistic law, and far above for rows whose labels were flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    eta = X @ [1.0, -0.5, 0.5]
    right = (rng.random(3000) < expit(eta)).astype(int)
    model = SMPLogisticRegression(method="one-step").fit(X, right)
    assert 0.9 < model.effective_dimension_ratio_ < 1.1
    wrong = np.where(np.linalg.norm(X, axis=1) > 2.5, eta < 0.0, eta > 0.0).astype(int)
    model = SMPLogisticRegression(method="one-step").fit(X, wrong)
    assert model.effective_dimension_ratio_ > 1.3
    y = eta + rng.normal(size=3000) * (1.0 + 2.0 * (np.abs(X[:, 0]) > 1.5))
    ridge = RidgeSMP(1.0, sigma=1.0).fit(X, y)
    assert ridge.effective_dimension_ratio_ > 2.0


def test_rows_that_are_known_in_part():
    """Weights below 1: the estimate is that of the rows; no bound is claimed."""
    X, y = make_rows(400, 5)
    whole = SMPLogisticRegression(10.0, fit_intercept=False).fit(X, y)
    assert whole.bound_valid_
    for c in (0.5, 0.1):
        part = SMPLogisticRegression(10.0 / c, fit_intercept=False)
        part.fit(X, y, sample_weight=np.full(400, c))
        assert part.excess_risk_ == pytest.approx(whole.excess_risk_, abs=3e-3)
        assert not part.bound_valid_
    ridge = RidgeSMP(1.0, sigma=1.0, fit_intercept=False)
    assert ridge.fit(X, y).bound_valid_
    assert not ridge.fit(X, y, sample_weight=np.full(400, 0.9)).bound_valid_
    few = SMPLogisticRegression().fit(X, y, sample_weight=np.full(400, 1 / 400))
    assert np.isnan(few.excess_risk_)


def test_a_penalty_that_the_labels_chose_is_not_valid():
    X, y = make_rows(60, 2)
    for model in (
        SMPLogisticRegression("loo", fit_intercept=False),
        RidgeSMP("loo", sigma=1.0, fit_intercept=False),
    ):
        assert not model.fit(X, y).bound_valid_


def test_redundant_columns_and_units_change_nothing():
    X, y = make_rows(300, 3)
    t = X @ [1.0, 2.0, 3.0] + np.random.default_rng(0).normal(size=300)
    plain = SMPLogisticRegression().fit(X, y).effective_dimension_ratio_
    for more in (np.hstack([X, X]), np.hstack([X, np.ones((300, 1))])):
        found = SMPLogisticRegression().fit(more, y).effective_dimension_ratio_
        assert found == pytest.approx(plain, rel=1e-4)
    ridge = RidgeSMP(1e-6, sigma=1.0).fit(X, t)
    units = RidgeSMP(1e-6, sigma=1.0).fit(X * [1.0, 1e6, 1.0], t)
    assert units.excess_risk_ == pytest.approx(ridge.excess_risk_, abs=1e-4)
    doubled = RidgeSMP(1e-6, sigma=1.0).fit(np.hstack([X, X]), t)
    assert doubled.effective_dimension_ratio_ == pytest.approx(
        ridge.effective_dimension_ratio_, rel=1e-4
    )
    linear = KernelRidgeSMP(1.0, sigma=1.0).fit(X, t)
    primal = RidgeSMP(1.0, sigma=1.0, fit_intercept=False).fit(X, t)
    assert linear.excess_risk_ == pytest.approx(primal.excess_risk_, abs=1e-8)


def test_norms_without_end():
    X, y = make_rows()
    model = SMPLogisticRegression(fit_intercept=False).fit(X, y)
    assert model.excess_risk_bound(1e200) == np.inf
    with pytest.warns(UserWarning, match="vacuous"):
        assert model.theory_bound(1e200) == np.inf
