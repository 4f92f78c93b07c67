"""Wide data: penalties judged by folds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skbounds import SMPLogisticRegressionCV
from skbounds.smp import _folds

from .test_logistic import make_problem


def make_documents(n=600, d=2500, K=2, seed=0):
    rng = np.random.default_rng(seed)
    words = (d ** rng.random((n, 20))).astype(int) - 1
    rows = np.repeat(np.arange(n), 20)
    X = sparse.csr_array((np.ones(n * 20), (rows, words.ravel())), shape=(n, d))
    X.sum_duplicates()
    scores = X @ (rng.normal(size=(d, K)) * (rng.random((d, 1)) < 0.1))
    return X, (2.0 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_quick_fits_are_the_fits(container, n_classes):
    """Against scikit-learn, with weights."""
    X, codes, weight, _ = make_problem(80, 4, n_classes=n_classes)
    Z = container(np.column_stack([X, np.ones(80)]))
    k = 1 if n_classes == 2 else 2
    penalty = np.array([1.0, 1.0, 1.0, 1.0, 0.0]) / 0.7
    theta, steps, done = _folds.fit_quickly(
        Z, codes, weight, penalty, n_classes, np.zeros((k, 5)), tol=1e-8
    )
    plain = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000)
    plain.fit(X, codes, sample_weight=weight)
    assert done and 0 < steps < 100
    coef = _folds.contrasts(n_classes) @ theta
    assert_allclose(coef[:, :-1], plain.coef_, atol=1e-4)


def test_the_spectral_scale_is_its_definition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 70)) * rng.exponential(size=70) + 1.0
    weight = rng.choice([1.0, 2.0], size=40)
    mean = np.average(X, axis=0, weights=weight)
    S = ((X - mean).T * weight) @ (X - mean) / weight.sum()
    expected = np.sqrt(np.trace(S @ S) / np.trace(S))
    for rows in (X, sparse.csr_array(X)):
        found = _folds.spectral_scale(rows, weight, centred=True)
        assert found == pytest.approx(expected, rel=1e-10)
        for unit in (1e-150, 1e150):
            found = _folds.spectral_scale(rows * unit, weight, centred=True)
            assert found == pytest.approx(expected * unit, rel=1e-10)
    S = (X.T * weight) @ X / weight.sum()
    expected = np.sqrt(np.trace(S @ S) / np.trace(S))
    found = _folds.spectral_scale(X, weight, centred=False)
    assert found == pytest.approx(expected, rel=1e-10)
    constant = rng.normal(size=30)
    for rows in (np.zeros((5, 3)), np.ones((5, 3)), np.tile(constant, (7, 1))):
        for form in (rows, sparse.csr_array(rows)):
            weight = np.arange(1.0, len(rows) + 1.0)
            assert _folds.spectral_scale(form, weight, centred=True) == 1.0
            far = _folds.spectral_scale(form * 1e9, weight, centred=True)
            assert far == 1.0
    # A small deviation far from the origin is one.
    rows = 1e6 + rng.normal(size=(9, 2))
    found = _folds.spectral_scale(rows, np.ones(9), centred=True)
    S = np.cov(rows.T, bias=True)
    assert found == pytest.approx(np.sqrt(np.trace(S @ S) / np.trace(S)), rel=1e-6)


def test_folds_hold_as_many_of_each_class():
    codes = np.repeat([0, 1, 2], [53, 7, 1])
    fold = _folds.assign_folds(codes)
    for code in range(3):
        counts = np.bincount(fold[codes == code], minlength=5)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(fold)) <= 3


@pytest.mark.parametrize("K", [2, 3])
def test_the_pool_of_folds_equals_a_slow_one(K):
    """Held-out losses by scikit-learn's fits, weights, refits, and the mixture."""
    X, y = make_documents(120, 300, K=K)
    names = np.array(["a", "b", "c"])[y]
    Cs = [0.03, 0.3, 3.0]
    model = SMPLogisticRegressionCV(Cs, loo="folds").fit(X, names)
    fold = _folds.assign_folds(y)
    losses = np.empty((3, 120))
    for held in range(5):
        out = np.flatnonzero(fold == held)
        rest = np.flatnonzero(fold != held)
        for j, C in enumerate(Cs):
            plain = LogisticRegression(C=C, tol=1e-8, max_iter=5000)
            proba = plain.fit(X[rest], y[rest]).predict_proba(X[out])
            losses[j, out] = -np.log(proba[np.arange(len(out)), y[out]])
    counts = np.bincount(y)
    nulls = [-np.log((counts[y] - 1 + w) / (120 - 1 + K * w)) for w in (0.5, 1.0)]
    q = softmax(-np.vstack([losses, nulls]).sum(axis=1))
    q[q < 1e-3 * q.max()] = 0.0
    q /= q.sum()
    path = losses.mean(axis=1)
    # With little penalty fits that judge end early, where they are bad anyway.
    assert_allclose(model.loo_log_loss_path_[:, 0], path, atol=0.02)
    assert_allclose(model.loo_log_loss_path_[:, 0].min(), path.min(), atol=2e-3)
    assert_allclose(model.weights_[:, 0], q[:3], atol=0.05)
    assert_allclose(model.null_weights_, q[3:], atol=0.05)
    assert_array_equal(model.virtual_weights_, [0.0])
    rows = X[:10]
    mixture = sum(
        w * (counts + a) / (120 + K * a)
        for w, a in zip(model.null_weights_, (0.5, 1.0), strict=True)
    )
    for j, C in enumerate(Cs):
        if model.weights_[j, 0] > 0:
            plain = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(X, y)
            mixture = mixture + model.weights_[j, 0] * plain.predict_proba(rows)
    assert_allclose(model.predict_proba(rows), mixture, atol=2e-3)


def test_wide_data_are_judged_by_folds_and_few_rows_are_not():
    X, y = make_documents()
    model = SMPLogisticRegressionCV().fit(X, y)
    assert_array_equal(model.virtual_weights_, [0.0])
    assert len(model.Cs_) == 7 and model.n_iter_ > 0
    assert model.coef_.shape == (1, 2500)
    few = SMPLogisticRegressionCV().fit(X[:300], y[:300])
    assert len(few.virtual_weights_) == 4
    own = SMPLogisticRegressionCV(virtual_weights=[0, 1]).fit(X[:510], y[:510])
    assert len(own.virtual_weights_) == 2
    # Dense rows go through their span; the predictor is the same.
    dense = SMPLogisticRegressionCV().fit(X.toarray(), y)
    assert_allclose(dense.Cs_, model.Cs_, rtol=1e-8)
    assert_allclose(dense.loo_log_loss_, model.loo_log_loss_, atol=2e-3)
    assert_allclose(
        dense.predict_proba(X.toarray()[:20]), model.predict_proba(X[:20]), atol=0.01
    )
    scaled = SMPLogisticRegressionCV().fit(X * 1e-6, y)
    assert_allclose(
        scaled.predict_proba(X[:20] * 1e-6), model.predict_proba(X[:20]), atol=1e-7
    )
    interval = model.predict_interval(X[:20])
    assert (interval[:, 0] <= model.predict_proba(X[:20])[:, 1] + 1e-12).all()


def test_virtual_weights_and_folds_exclude_each_other():
    X, y = make_documents(60, 100)
    with pytest.raises(ValueError, match="loo='folds' is for virtual_weights"):
        SMPLogisticRegressionCV(virtual_weights=[0, 1], loo="folds").fit(X, y)
    model = SMPLogisticRegressionCV(virtual_weights=[0], loo="folds").fit(X, y)
    assert model.weights_.shape == (7, 1)


@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False},
                                       {"penalize_intercept": True}])  # fmt: skip
def test_intercepts(intercept):
    X, y = make_documents(100, 150)
    model = SMPLogisticRegressionCV([1.0], loo="folds", calibrate="none", **intercept)
    model.fit(X, y)
    scores = (X @ model.coef_.T).ravel() + model.intercept_
    expected = 1 / (1 + np.exp(-scores))
    assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-10)
    if intercept.get("fit_intercept", True):
        assert model.intercept_[0] != 0.0
    else:
        assert model.intercept_[0] == 0.0


def test_a_class_with_one_row():
    X, y = make_documents(80, 120, K=2)
    y[:] = y > 1
    y[0] = 1
    model = SMPLogisticRegressionCV(loo="folds").fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.predict_proba(X)[1:, 1].mean() < 0.2


def test_sparse_columns_far_from_zero_are_centred():
    """A column around 100: as for dense rows; and a fit that does not end is told."""
    rng = np.random.default_rng(1)
    X = sparse.random(600, 2500, 0.02, random_state=rng, format="lil")
    X[:, 0] = (100 + 3 * rng.normal(size=600))[:, None]
    X = sparse.csr_array(X)
    y = (X[:, [0]].toarray().ravel() - 100 + rng.normal(size=600) > 0).astype(int)
    found = SMPLogisticRegressionCV([1.0], calibrate="none", loo="folds").fit(X, y)
    dense = SMPLogisticRegressionCV([1.0], calibrate="none", loo="folds")
    dense.fit(X.toarray(), y)
    assert_allclose(found.loo_log_loss_, dense.loo_log_loss_, atol=5e-3)
    assert_allclose(found.predict_proba(X), dense.predict_proba(X.toarray()), atol=0.02)
    with pytest.warns(ConvergenceWarning, match="did not converge in 10 steps"):
        SMPLogisticRegressionCV([1.0], loo="folds", max_iter=1).fit(X, y)
