"""SMPLogisticRegression against refits, published numbers and identities."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import smp as reference
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from skbounds import SMPLogisticRegression
from skbounds.smp._base_fit import BaseFit

from .toy import CODES, ROWS, SIGNS, WEIGHTS, C_of
from .toy import X as TOY

INTERCEPTS = {
    "none": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 1.5},
    "unpenalised": {},
}
intercepts = pytest.mark.parametrize("intercept", INTERCEPTS.values(), ids=INTERCEPTS)


def make_problem(n, d, *, n_classes=2, scale=1.0, separable=False, seed=0):
    """Return training rows, codes, weights and awkward rows to predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale
    noise = 0.0 if separable else 1.0
    scores = X @ rng.normal(size=(d, n_classes)) / scale
    codes = np.argmax(scores + noise * rng.gumbel(size=(n, n_classes)), axis=1)
    codes[:n_classes] = np.arange(n_classes)
    weight = rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
    rows = np.vstack(
        [
            rng.normal(size=(3, d)) * scale,
            100 * scale * rng.normal(size=(1, d)),  # far away
            np.zeros((1, d)),
            X[:1],  # a training row
            3 * scale * np.eye(1, d),
        ]
    )
    return X, codes, weight, rows


# Numbers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lambda_", "intercept", "proba", "log_normalizer"),
    [
        (
            0.5,
            {"fit_intercept": False},
            [0.510494307808, 0.462140270841, 0.546722035216, 0.5],
            [0.018861286648, 0.168129105545, 0.343854948469, -0.006412166514],
        ),
        (
            0.05,
            {"fit_intercept": False},
            [0.522893234479, 0.448365259143, 0.553182660944, 0.5],
            [0.082747179885, 0.347257745834, 0.488745155186, -0.003449874980],
        ),
        (
            0.05,
            {"penalize_intercept": True},
            [0.509867569945, 0.446745577264, 0.545785944563, 0.484163695930],
            [0.133571698351, 0.356376742364, 0.501484727801, 0.126605005046],
        ),
        (
            0.05,
            {},
            [0.505923154169, 0.445957328858, 0.543193489171, 0.479844075101],
            [0.148683651350, 0.359752115285, 0.506034507245, 0.159553053358],
        ),
    ],
)
def test_toy_numbers(lambda_, intercept, proba, log_normalizer):
    """Reference numbers of the toy sample."""
    model = SMPLogisticRegression(C_of(lambda_), **intercept).fit(TOY, SIGNS)
    assert model.lambda_ == pytest.approx(lambda_)
    assert_allclose(model.predict_proba(ROWS)[:, 1], proba, atol=1e-11)
    assert_allclose(model.log_normalizer(ROWS), log_normalizer, atol=1e-11)


def test_toy_interval_is_the_two_virtual_fits():
    """The published log-odds of both virtual fits."""
    model = SMPLogisticRegression(C_of(0.05), fit_intercept=False).fit(TOY, SIGNS)
    lower = [-0.082070360767, -1.311916897210, -1.004736475831, 0]
    upper = [0.288022623089, 0.569945791642, 2.297354489596, 0]
    interval = model.predict_interval(ROWS)
    assert_allclose(interval, expit(np.column_stack([lower, upper])), atol=1e-10)


def test_toy_weights_and_leave_one_out():
    """Weighted predictions, leave-one-out loss and the one-step approximation."""
    weighted = SMPLogisticRegression(C_of(0.05, 8), fit_intercept=False)
    weighted.fit(TOY, SIGNS, sample_weight=WEIGHTS)
    expected = [0.612679212304, 0.492842470232, 0.544941053998, 0.5]
    assert_allclose(weighted.predict_proba(ROWS)[:, 1], expected, atol=1e-11)
    model = SMPLogisticRegression(C_of(0.05), fit_intercept=False).fit(TOY, SIGNS)
    assert model.loo_log_loss_ == pytest.approx(0.8624788048233, abs=1e-11)
    one_step = SMPLogisticRegression(
        C_of(0.05), fit_intercept=False, method="one-step"
    ).fit(TOY, SIGNS)
    expected = [0.522695157062, 0.449553118144, 0.551288777109, 0.5]
    assert_allclose(one_step.predict_proba(ROWS)[:, 1], expected, atol=1e-11)


def test_toy_softmax():
    """Three classes, with and without intercept."""
    model = SMPLogisticRegression(C_of(0.05), fit_intercept=False).fit(TOY, CODES)
    expected = [
        [0.483260676185, 0.248849334219, 0.267889989596],
        [0.385244151706, 0.497442281427, 0.117313566866],
        [0.286458730154, 0.235174839206, 0.478366430639],
        [1 / 3, 1 / 3, 1 / 3],
    ]
    assert_allclose(model.predict_proba(ROWS), expected, atol=2e-11)
    expected = [0.091655394185, 0.441588756155, 0.609100112535, -0.127089685104]
    assert_allclose(model.log_normalizer(ROWS), expected, atol=2e-11)
    model = SMPLogisticRegression(C_of(0.05)).fit(TOY, CODES)
    expected = [0.292929244475, 0.469642252796, 0.630049923559, 0.425818011965]
    assert_allclose(model.log_normalizer(ROWS), expected, atol=2e-11)


@pytest.mark.parametrize(
    ("lambda_", "expected"),
    [
        (1e-2, [0.5, 0.795102633460, 0.500459794135, 0.779349113671]),
        (1e-6, [0.5, 0.814832886347, 0.500000326618, 0.787154344338]),
        # The third value is .5 + 9.3e-11 to 50 digits, not .5.
        (1e-10, [0.5, 0.814845142526, 0.500000000093169, 0.787163789740]),
    ],
)
def test_separable_toy(lambda_, expected):
    """Separable data up to the limit of no penalty."""
    X = [[1, 0], [2, 1], [-1, 0], [-2, 1]]
    rows = [[0, 1], [1, 0], [0.1, 5], [3, 0.1]]
    model = SMPLogisticRegression(C_of(lambda_, 4), fit_intercept=False)
    model.fit(X, [1, 1, -1, -1])
    assert_allclose(model.predict_proba(rows)[:, 1], expected, atol=1e-11)


# Refits ---------------------------------------------------------------------------


@intercepts
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("n", "d", "separable"),
    [(4, 2, False), (30, 3, False), (30, 3, True), (12, 30, False), (60, 15, False)],
)
def test_equals_refits(n, d, separable, C, intercept):
    """Exact predictions are those of cold refits, dense and sparse, weighted."""
    X, codes, weight, rows = make_problem(n, d, separable=separable)
    for sample_weight in (None, weight):
        model = SMPLogisticRegression(C, **intercept)
        model.fit(X, codes, sample_weight=sample_weight)
        options = {"sample_weight": sample_weight, **intercept}
        expected = [reference.logistic_smp(X, codes, row, C, **options) for row in rows]
        proba = model.predict_proba(rows)[:, 1]
        assert_allclose(proba, [item["p"] for item in expected], atol=1e-9)
        assert_allclose(
            model.log_normalizer(rows),
            [item["log_normalizer"] for item in expected],
            atol=1e-8 if C == 1e-3 else 1e-9,
        )
        sparse_model = SMPLogisticRegression(C, **intercept)
        sparse_model.fit(sparse.csr_array(X), codes, sample_weight=sample_weight)
        sparse_proba = sparse_model.predict_proba(sparse.csr_matrix(rows))[:, 1]
        assert_allclose(sparse_proba, [item["p"] for item in expected], atol=1e-9)
        assert_allclose(sparse_model.coef_, model.coef_, atol=1e-7 * max(1, C))


@pytest.mark.slow
@intercepts
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize(("n", "d"), [(5, 2), (30, 3), (10, 20)])
def test_softmax_equals_refits(n, d, C, intercept):
    """Three classes: the same, with K refits per row."""
    X, codes, weight, rows = make_problem(n, d, n_classes=3)
    for sample_weight in (None, weight):
        model = SMPLogisticRegression(C, **intercept)
        model.fit(X, codes, sample_weight=sample_weight)
        for row, proba, log_normalizer in zip(
            rows, model.predict_proba(rows), model.log_normalizer(rows), strict=True
        ):
            expected = reference.softmax_smp(
                X, codes, row, C, 3, sample_weight=sample_weight, **intercept
            )
            assert_allclose(proba, expected["p"], atol=1e-9)
            assert_allclose(log_normalizer, expected["log_normalizer"], atol=1e-8)


@pytest.mark.parametrize("virtual_weight", [0, 0.3, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_virtual_weight_equals_refits(virtual_weight, n_classes):
    """A virtual observation of any weight; weight 0 is plain logistic regression."""
    X, codes, weight, rows = make_problem(20, 3, n_classes=n_classes)
    model = SMPLogisticRegression(2.0, virtual_weight=virtual_weight)
    model.fit(X, codes, sample_weight=weight)
    options = {"sample_weight": weight, "virtual_weight": virtual_weight}
    proba = model.predict_proba(rows)
    for row, p in zip(rows, proba, strict=True):
        if n_classes == 2:
            expected = reference.logistic_smp(X, codes, row, 2.0, **options)["p"]
            assert_allclose(p[1], expected, atol=1e-9)
        else:
            expected = reference.softmax_smp(X, codes, row, 2.0, 3, **options)["p"]
            assert_allclose(p, expected, atol=1e-9)
    if virtual_weight == 0:
        plain = LogisticRegression(C=2.0, tol=1e-12, solver="newton-cholesky")
        plain.fit(X, codes, sample_weight=weight)
        assert_allclose(proba, plain.predict_proba(rows), atol=1e-7)
        assert_allclose(model.coef_, plain.coef_, atol=1e-6)


@pytest.mark.parametrize("virtual_weight", [0.5, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
@intercepts
def test_leave_one_out_equals_refits(n_classes, virtual_weight, intercept):
    """Leave-one-out by label flips is leave-one-out by refits."""
    X, codes, weight, _ = make_problem(25, 3, n_classes=n_classes, seed=3)
    for sample_weight in (None, weight):
        options = {
            "sample_weight": sample_weight,
            "virtual_weight": virtual_weight,
            **intercept,
        }
        if n_classes == 2:
            expected = reference.logistic_loo(X, codes, 0.7, **options)
        else:
            expected = reference.softmax_loo(X, codes, 0.7, 3, **options)
        model = SMPLogisticRegression(0.7, virtual_weight=virtual_weight, **intercept)
        model.fit(X, codes, sample_weight=sample_weight)
        counts = np.ones(len(codes)) if sample_weight is None else weight
        loss = np.average(expected["loss"], weights=counts)
        assert model.loo_log_loss_ == pytest.approx(loss, abs=1e-9)
        if virtual_weight == 1:
            bound = np.average(expected["log_normalizer"], weights=counts)
            assert model.log_normalizer_mean_ == pytest.approx(bound, abs=1e-9)
        else:
            assert np.isnan(model.log_normalizer_mean_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("virtual_weight", [0.4, 1])
def test_one_step_equals_its_definition(n_classes, virtual_weight):
    """The one-step approximation, written with an explicit inverse Hessian."""
    X, codes, weight, rows = make_problem(25, 3, n_classes=n_classes, seed=5)
    options = {"sample_weight": weight, "virtual_weight": virtual_weight}
    model = SMPLogisticRegression(
        1.5, virtual_weight=virtual_weight, method="one-step"
    ).fit(X, codes, sample_weight=weight)
    for row, p in zip(rows, model.predict_proba(rows), strict=True):
        if n_classes == 2:
            expected = reference.one_step_logistic(X, codes, row, 1.5, **options)
            assert_allclose(p[1], expected, atol=1e-9)
        else:
            expected = reference.one_step_softmax(X, codes, row, 1.5, 3, **options)
            assert_allclose(p, expected["p"], atol=1e-9)


def test_one_step_approaches_exact():
    """The error of one step vanishes with the leverage, and keeps no training rows."""
    errors = []
    for n in (50, 200, 800):
        X, codes, _, _ = make_problem(n, 3, seed=1)
        rows = np.random.default_rng(0).normal(size=(50, 3))
        exact = SMPLogisticRegression().fit(X, codes)
        one_step = SMPLogisticRegression(method="one-step").fit(X, codes)
        assert one_step._base_["Z"] is None
        difference = exact.predict_proba(rows) - one_step.predict_proba(rows)
        errors.append(np.abs(difference).max())
        assert one_step.loo_log_loss_ == pytest.approx(exact.loo_log_loss_, abs=2 / n)
    assert errors[2] < errors[1] / 4 < errors[0] / 16


def test_leave_one_out_of_a_single_minority_row():
    """The flipped fit has one class only: its limit at infinite intercept is taken."""
    X, _, _, _ = make_problem(10, 2)
    codes = np.zeros(10, dtype=int)
    codes[4] = 1
    expected = reference.logistic_loo(X, codes, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SMPLogisticRegression().fit(X, codes)
        assert model.loo_log_loss_ == pytest.approx(expected["loss"].mean(), abs=1e-9)


# Identities -----------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_identity(n_classes):
    """Loss = penalised training risk of the full fit + mean log Z (Lemma 2)."""
    X, codes, weight, _ = make_problem(30, 3, n_classes=n_classes)
    C, total = 0.8, weight.sum()
    model = SMPLogisticRegression(C).fit(X, codes, sample_weight=weight)
    full = SMPLogisticRegression(C * (total + 1) / total, virtual_weight=0)
    full.fit(X, codes, sample_weight=weight)
    own = full.predict_log_proba(X)[np.arange(30), codes]
    risk = -np.average(own, weights=weight)
    base = BaseFit(**full._base_)
    risk += 0.5 * model.lambda_ * np.sum(base.theta**2 @ (base.penalty > 0))
    assert model.loo_log_loss_ == pytest.approx(
        risk + model.log_normalizer_mean_, abs=1e-10
    )


def test_equaliser():
    """-log P(y|x) exceeds the virtual fit's penalised loss by log Z, for every y."""
    X, codes, _, rows = make_problem(20, 3)
    model = SMPLogisticRegression(fit_intercept=False).fit(X, codes)
    log_proba, log_normalizer = (
        model.predict_log_proba(rows),
        model.log_normalizer(rows),
    )
    for row, log_p, log_z in zip(rows, log_proba, log_normalizer, strict=True):
        for label in (0, 1):
            theta, _, norm = reference.fit_logistic(
                np.vstack([X, row]),
                np.append(codes, label),
                np.ones(21),
                1.0,
                fit_intercept=False,
            )
            own = -np.logaddexp(0, -(2 * label - 1) * (theta @ row))
            own -= 0.5 * model.lambda_ * norm
            assert own - log_p[label] == pytest.approx(log_z, abs=1e-10)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 25),
    d=st.integers(1, 6),
    log_C=st.floats(-2, 3),
)
def test_order_and_bounds_of_the_virtual_fits(seed, n, d, log_C):
    """eta_- <= eta_+ within |x|^2 C, and log Z <= log(1 + p_+ - p_-) <= log 2."""
    X, codes, _, rows = make_problem(n, d, seed=seed)
    C = 10.0**log_C
    model = SMPLogisticRegression(C, fit_intercept=False).fit(X, codes)
    lower, upper = model.predict_interval(rows).T
    # A fit is not below the plug-in when its label is added, and not above otherwise.
    plug_in = expit(rows @ model.coef_[0])
    assert np.all(lower <= plug_in + 1e-9) and np.all(plug_in <= upper + 1e-9)
    norms = np.sum(rows**2, axis=1)
    inside = (lower > 1e-6) & (upper < 1 - 1e-6)
    gap = logit(upper[inside]) - logit(lower[inside])
    assert np.all(gap <= norms[inside] * C * (1 + 1e-6) + 1e-6)
    log_z = model.log_normalizer(rows)
    assert np.all(log_z <= np.log1p(upper - lower) + 1e-9)
    assert np.all(log_z <= np.log(2) + 1e-9)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]))
def test_row_order_labels_and_repetition(seed, n_classes):
    """Rows may be permuted, labels renamed, weights written as repetitions."""
    X, codes, _, rows = make_problem(12, 2, n_classes=n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    proba = SMPLogisticRegression(3.0).fit(X, codes).predict_proba(rows)
    order = rng.permutation(len(X))
    permuted = SMPLogisticRegression(3.0).fit(X[order], codes[order])
    assert_allclose(permuted.predict_proba(rows), proba, atol=1e-9)
    names = np.array(["c", "a", "b"])[:n_classes]
    renamed = SMPLogisticRegression(3.0).fit(X, names[codes])
    by_name = renamed.predict_proba(rows)[:, np.argsort(np.argsort(names))]
    assert_allclose(by_name, proba, atol=1e-9)
    counts = rng.integers(0, 3, size=len(X))
    counts[:n_classes] = 1
    weighted = SMPLogisticRegression(3.0).fit(X, codes, sample_weight=counts)
    repeated = SMPLogisticRegression(3.0).fit(
        np.repeat(X, counts, axis=0), np.repeat(codes, counts)
    )
    assert_allclose(
        weighted.predict_proba(rows), repeated.predict_proba(rows), atol=1e-9
    )
    assert weighted.loo_log_loss_ == pytest.approx(repeated.loo_log_loss_, abs=1e-9)
    assert weighted.lambda_ == pytest.approx(repeated.lambda_)


@given(seed=st.integers(0, 10**6), shift=st.floats(-1e3, 1e3))
def test_symmetries(seed, shift):
    """Translation (free intercept), rotation, sign, scaling, a zero feature."""
    X, codes, _, rows = make_problem(15, 3, seed=seed)
    proba = SMPLogisticRegression(2.0).fit(X, codes).predict_proba(rows)
    moved = SMPLogisticRegression(2.0).fit(X + shift, codes)
    assert_allclose(moved.predict_proba(rows + shift), proba, atol=1e-9)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    rotated = SMPLogisticRegression(2.0).fit(X @ rotation, codes)
    assert_allclose(rotated.predict_proba(rows @ rotation), proba, atol=1e-9)
    padded = SMPLogisticRegression(2.0).fit(np.pad(X, ((0, 0), (0, 1))), codes)
    padded_proba = padded.predict_proba(np.pad(rows, ((0, 0), (0, 1))))
    assert_allclose(padded_proba, proba, atol=1e-9)
    flipped = SMPLogisticRegression(2.0).fit(X, 1 - codes)
    assert_allclose(flipped.predict_proba(rows)[:, ::-1], proba, atol=1e-9)
    scaled = SMPLogisticRegression(2.0 / 9.0, fit_intercept=False).fit(3 * X, codes)
    plain = SMPLogisticRegression(2.0, fit_intercept=False).fit(X, codes)
    plain_proba = plain.predict_proba(rows)
    assert_allclose(scaled.predict_proba(3 * rows), plain_proba, atol=1e-9)
    assert_allclose(plain.predict_proba(-rows)[:, ::-1], plain_proba, atol=1e-9)


def test_closed_forms():
    """Laplace's rule on a constant feature, and one half at the origin."""
    laplace = SMPLogisticRegression(1e8).fit(np.zeros((5, 1)), [1, 1, 1, 0, 0])
    assert_allclose(laplace.predict_proba([[0.0]])[0, 1], 4 / 7, atol=1e-9)
    weighted = SMPLogisticRegression().fit([[0], [0]], ["a", "b"], sample_weight=[5, 2])
    assert_allclose(weighted.predict_proba([[0.0]])[0], [6 / 9, 3 / 9], atol=1e-9)
    softmax = SMPLogisticRegression().fit(np.zeros((6, 2)), [0, 0, 0, 1, 1, 2])
    expected = [4 / 9, 3 / 9, 2 / 9]
    assert_allclose(softmax.predict_proba(np.zeros((1, 2)))[0], expected, atol=1e-9)
    X, codes, _, _ = make_problem(20, 3)
    model = SMPLogisticRegression(fit_intercept=False).fit(X, codes)
    origin = np.zeros((1, 3))
    assert_allclose(model.predict_proba(origin), [[0.5, 0.5]], atol=1e-12)
    norm = np.sum(model.coef_**2)
    expected = -0.5 * model.lambda_ * norm
    assert_allclose(model.log_normalizer(origin), expected, atol=1e-12)


def test_softmax_of_two_classes_is_the_binary_model():
    """The symmetric softmax with twice the penalty is the binary objective."""
    from skbounds.smp._base_fit import contrasts

    Q = contrasts(3)
    assert_allclose(Q.T @ Q, np.eye(2), atol=1e-15)
    assert_allclose(Q.sum(axis=0), 0, atol=1e-15)
    X, codes, _, rows = make_problem(20, 3)
    binary = reference.logistic_smp(X, codes, rows[0], 1.0)
    softmax = reference.softmax_smp(X, codes, rows[0], 0.5, 2)
    assert softmax["p"][1] == pytest.approx(binary["p"], abs=1e-12)
    model = SMPLogisticRegression(1.0).fit(X, codes)
    assert model.predict_proba(rows[:1])[0, 1] == pytest.approx(binary["p"], abs=1e-9)


def test_far_away_limit():
    """Far away either label can be fitted; the limit has a closed form.

    Along a direction d the fit with the favoured label tends to the base fit, the other
    one to the base fit restricted to vectors orthogonal to d.
    """
    X, codes, _, _ = make_problem(60, 2, seed=4)
    model = SMPLogisticRegression(fit_intercept=False, tol=1e-12).fit(X, codes)
    direction = np.array([0.6, 0.8])
    favoured = int(model.coef_[0] @ direction > 0)
    orthogonal = np.array([-0.8, 0.6])
    theta, _, _ = reference.fit_logistic(
        (X @ orthogonal)[:, None], codes, np.ones(60), 1.0, fit_intercept=False
    )
    gap = 0.5 * model.lambda_ * (np.sum(model.coef_**2) - np.sum(theta**2))
    proba = model.predict_proba(1e7 * direction[None])[0, favoured]
    assert proba == pytest.approx(expit(-gap), abs=1e-5)


# Behaviour ------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["exact", "one-step"])
def test_rows_do_not_depend_on_the_batch(n_classes, method):
    """One row at a time, in one call, and under a tiny memory limit: the same."""
    X, codes, _, _ = make_problem(80, 4, n_classes=n_classes)
    rows = np.random.default_rng(0).normal(size=(150, 4)) * 2
    model = SMPLogisticRegression(20.0, method=method).fit(X, codes)
    proba = model.predict_proba(rows)
    single = np.vstack([model.predict_proba(rows[[i]]) for i in range(len(rows))])
    assert_allclose(single, proba, atol=1e-12)
    with config_context(working_memory=0.01):
        assert_allclose(model.predict_proba(rows), proba, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_prediction_methods_agree(n_classes):
    """All prediction methods are consistent."""
    X, codes, _, rows = make_problem(40, 3, n_classes=n_classes)
    names = np.array(["x", "y", "z"])[codes]
    model = SMPLogisticRegression().fit(X, names)
    proba = model.predict_proba(rows)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-14)
    assert np.all((proba > 0) & (proba < 1))
    assert_allclose(np.log(proba), model.predict_log_proba(rows), atol=1e-12)
    assert_array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
    scores = model.decision_function(rows)
    if n_classes == 2:
        assert scores.shape == (len(rows),)
        assert_allclose(expit(scores), proba[:, 1], atol=1e-12)
        assert hasattr(model, "predict_interval")
    else:
        assert_allclose(logsumexp(scores, axis=1), 0, atol=1e-12)
        assert not hasattr(model, "predict_interval")


def test_float32_gives_float64_results_close_to_float64_input():
    """float32 rows are computed in float64."""
    X, codes, _, rows = make_problem(30, 3)
    double = SMPLogisticRegression().fit(X, codes).predict_proba(rows)
    single = SMPLogisticRegression().fit(X.astype(np.float32), codes)
    proba = single.predict_proba(rows.astype(np.float32))
    assert proba.dtype == np.float64
    assert_allclose(proba, double, atol=1e-4)


def test_duplicated_rows_and_constant_features():
    """Duplicates, zero and constant columns change nothing that they should not."""
    X, codes, _, rows = make_problem(15, 2)
    twice = SMPLogisticRegression(1.0).fit(np.vstack([X, X]), np.tile(codes, 2))
    weighted = SMPLogisticRegression(1.0).fit(X, codes, sample_weight=np.full(15, 2.0))
    assert_allclose(twice.predict_proba(rows), weighted.predict_proba(rows), atol=1e-9)
    constant = np.hstack([X, np.full((15, 1), 7.0)])
    padded = SMPLogisticRegression(1.0).fit(constant, codes)
    plain = SMPLogisticRegression(1.0).fit(X, codes)
    rows_constant = np.hstack([rows, np.full((len(rows), 1), 7.0)])
    expected = plain.predict_proba(rows)
    assert_allclose(padded.predict_proba(rows_constant), expected, atol=1e-9)


def test_theory_penalty_and_bound():
    """C='theory' meets the condition of Theorem 6; the bound is the smallest of three.

    The toy's theorem is .7223, and log(1 + m C / 4) with the penalty is smaller.
    """
    model = SMPLogisticRegression("theory", fit_intercept=False).fit(TOY, SIGNS)
    R2 = np.max(np.sum(TOY**2, axis=1))
    assert model.C_ == pytest.approx(1 / (2 * R2))
    assert model.bound_valid_
    m = np.mean(np.sum(TOY**2, axis=1))
    smallest = np.log1p(m / (8 * R2)) + 0.5 * model.lambda_
    assert smallest < 0.722303716449
    assert model.theory_bound(1.0) == pytest.approx(smallest, rel=1e-12)
    with pytest.warns(UserWarning, match="vacuous"):
        assert model.theory_bound(3.0) == pytest.approx(
            smallest + 4.0 * model.lambda_, rel=1e-12
        )
    penalised = SMPLogisticRegression(
        "theory", penalize_intercept=True, intercept_scaling=2.0
    ).fit(TOY, SIGNS)
    assert penalised.C_ == pytest.approx(1 / (2 * (R2 + 4)))
    assert penalised.bound_valid_
    assert not SMPLogisticRegression("theory").fit(TOY, SIGNS).bound_valid_
    loose = SMPLogisticRegression(10.0, fit_intercept=False).fit(TOY, SIGNS)
    assert loose.bound_valid_
    assert loose.theory_bound(0.0) <= np.log(2.0)
    X, codes, _, _ = make_problem(2000, 2)
    bounds = [
        SMPLogisticRegression("theory", fit_intercept=False, method=method)
        .fit(X, codes)
        .theory_bound(0.5)
        for method in ("exact", "one-step")
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)
    sigma = np.linalg.eigvalsh(X.T @ X / 2000)
    lambda_ = 2 * np.max(np.sum(X**2, axis=1)) / 2001
    c = 2.0 * np.exp(0.5) * np.expm1(0.5)
    expected = c * np.sum(sigma / (sigma + 4 * lambda_)) / 2001 + lambda_ / 8
    assert 2.139 < c < 2.14
    assert bounds[0] == pytest.approx(expected, rel=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for C in np.geomspace(1e-6, 1e6, 13):
            fitted = SMPLogisticRegression(C, fit_intercept=False, method="one-step")
            fitted.fit(X[:100], codes[:100])
            penalty = 0.5 * fitted.lambda_ * 4.0
            assert fitted.theory_bound(2.0) <= np.log(2.0) + penalty + 1e-12
    with pytest.raises(ValueError, match="norm_bound"):
        loose.theory_bound(-1.0)


def test_loo_choice_of_C():
    """C='loo' takes the candidate with the smallest loss, computed as for that C."""
    X, codes, _, _ = make_problem(40, 3)
    Cs = [10.0, 0.1, 1.0]
    model = SMPLogisticRegression("loo", Cs=Cs).fit(X, codes)
    losses = [SMPLogisticRegression(C).fit(X, codes).loo_log_loss_ for C in Cs]
    assert_allclose(model.loo_log_loss_path_, losses, atol=1e-9)
    assert model.C_ == Cs[int(np.argmin(losses))]
    assert model.loo_log_loss_ == pytest.approx(min(losses), abs=1e-9)
    default = SMPLogisticRegression("loo").fit(X, codes)
    assert_allclose(default.Cs_, np.logspace(-3, 2, 20))
    # Without signal at all every C gives the same loss: the smaller one is taken.
    tied = SMPLogisticRegression("loo", Cs=[1.0, 0.1, 1.0])
    tied.fit(np.zeros((6, 1)), [0, 1, 0, 1, 0, 1])
    assert tied.C_ == 0.1


def test_iris_in_one_line():
    """Real multiclass data, string labels."""
    X, y = load_iris(return_X_y=True)
    model = SMPLogisticRegression().fit(X, np.array(["s", "v", "w"])[y])
    assert model.score(X, np.array(["s", "v", "w"])[y]) > 0.95


def test_unconverged_fits_are_reported():
    """max_iter reached in the base fit or in virtual fits is never silent."""
    X, codes, _, _ = make_problem(30, 3, separable=True)
    with pytest.warns(ConvergenceWarning, match="Newton's method did not converge"):
        SMPLogisticRegression(1e6, max_iter=2).fit(X, codes)
    model = SMPLogisticRegression(1e6).fit(X, codes).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="virtual fits did not converge"):
        model.predict_proba(100 * X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"C": np.nan}, "'C' parameter"),
        ({"C": "best"}, "'C' parameter"),
        ({"method": "fast"}, "'method' parameter"),
        ({"virtual_weight": 1.5}, "'virtual_weight' parameter"),
        ({"C": "loo", "Cs": [1.0, -1.0]}, "Cs must hold positive finite numbers"),
        ({"C": "loo", "Cs": [[1.0]]}, "Cs must be a positive integer or a non-empty"),
        ({"intercept_scaling": 0}, "'intercept_scaling' parameter"),
        ({"tol": 0}, "'tol' parameter"),
    ],
)
def test_bad_parameters(params, message):
    """Messages name the parameter."""
    with pytest.raises(ValueError, match=message):
        SMPLogisticRegression(**params).fit(TOY, SIGNS)


@pytest.mark.parametrize("cls_params", [{}, {"method": "one-step"}])
def test_bad_data(cls_params):
    """Messages say what is wrong with the data, and nothing is half-fitted."""
    model = SMPLogisticRegression(**cls_params)
    cases = [
        ((TOY, np.ones(6)), {}, "only one class"),
        ((TOY, np.linspace(0, 1, 6)), {}, "Unknown label type: continuous"),
        ((np.where(TOY > 1.9, np.nan, TOY), SIGNS), {}, "NaN"),
        ((np.where(TOY > 1.9, np.inf, TOY), SIGNS), {}, "infinity"),
        ((TOY, SIGNS), {"sample_weight": -np.ones(6)}, "[Nn]egative"),
        ((TOY, SIGNS), {"sample_weight": np.zeros(6)}, "non-zero"),
        ((TOY, SIGNS), {"sample_weight": (SIGNS > 0).astype(float)}, "only one class"),
        ((TOY[:, :0], SIGNS), {}, "0 feature"),
        ((TOY[:1], SIGNS[:1]), {}, "only one class"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(ValueError, match=message):
            model.fit(*arguments, **options)
        with pytest.raises(NotFittedError):
            model.predict(TOY)
    model.fit(TOY, SIGNS)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 1.0]])


def test_sparse_wide_rows_with_offsets():
    """Scales and offsets of sparse columns cost no precision when d > n."""
    X, codes, _, rows = make_problem(20, 40)
    for scale, offset in ((1e7, 0.0), (500.0, 1.7e9)):
        shifted, shifted_rows = X.copy(), rows.copy()
        shifted[:, 0] = offset + scale * X[:, 0]
        shifted_rows[:, 0] = offset + scale * rows[:, 0]
        dense = SMPLogisticRegression().fit(shifted, codes)
        other = SMPLogisticRegression().fit(sparse.csr_array(shifted), codes)
        assert_allclose(
            other.predict_proba(sparse.csr_array(shifted_rows[:3])),
            dense.predict_proba(shifted_rows[:3]),
            atol=1e-9,
        )


def test_sparse_wide_rows_beyond_the_working_memory():
    """Without room for dense rows the Gram matrix gives the same coordinates."""
    X, codes, _, rows = make_problem(20, 40)
    expected = SMPLogisticRegression().fit(X, codes).predict_proba(rows)
    with config_context(working_memory=0.001):
        model = SMPLogisticRegression().fit(sparse.csr_array(X), codes)
        assert model._design_["sparse_mix"] is not None
        proba = model.predict_proba(sparse.csr_array(rows))
    assert_allclose(proba, expected, atol=1e-9)


def test_sparse_offsets_that_cost_precision_are_reported():
    """Sparse rows with d <= n are not centred; large offsets warn."""
    X, codes, _, _ = make_problem(20, 3)
    X[:, 0] += 1e6
    with pytest.warns(UserWarning, match="not centred"):
        SMPLogisticRegression().fit(sparse.csr_array(X), codes)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"method": "exact"}, {"method": "one-step"}),
        ({"method": "one-step"}, {"method": "exact"}),
        ({}, {"virtual_weight": 0.0, "penalize_intercept": True}),
    ],
)
def test_parameters_changed_after_fit_have_no_effect(before, after):
    """Predictions and bounds belong to what was fitted."""
    X, codes, _, rows = make_problem(200, 3)
    model = SMPLogisticRegression("theory", **before).fit(X, codes)
    expected = model.predict_proba(rows), model.theory_bound(0.1)
    model.set_params(**after)
    assert_array_equal(model.predict_proba(rows), expected[0])
    assert model.theory_bound(0.1) == expected[1]
    assert np.isfinite(model.log_normalizer_mean_)


def test_the_bound_of_more_classes_is_not_called_a_theorem():
    """Theorem 6 is about two classes."""
    X, codes, _, _ = make_problem(300, 2, n_classes=3)
    model = SMPLogisticRegression("theory", fit_intercept=False).fit(X, codes)
    assert not model.bound_valid_ and np.isfinite(model.theory_bound(0.1))


def test_rows_beyond_the_range_of_squares():
    """Huge finite rows give probabilities, not NaN."""
    X, codes, _, _ = make_problem(30, 3)
    for cls in (SMPLogisticRegression(method="one-step"), SMPLogisticRegression()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            proba = cls.fit(X, codes).predict_proba(1e300 * X[:4])
        assert np.all((proba >= 0) & (proba <= 1))


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e8, 1e16, 1e100, 1e140])
@pytest.mark.parametrize("C", [1e10, 1e16, 1e18, 1e30, 1e100])
def test_vanishing_penalties_reach_the_limit(unit, C):
    """Separable rows without intercept: that of (44), the same in all units."""
    X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-2.0, 1.0]])
    T = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 5.0], [3.0, 0.1]])
    with np.errstate(over="ignore"):
        C = np.clip(C / unit / unit, 1e-300, 1e300)
    model = SMPLogisticRegression(C=C, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proba = model.fit(X * unit, [1, 1, 0, 0]).predict_proba(T * unit)[:, 1]
    assert_allclose(proba, [0.5, 0.814845142526, 0.5, 0.787163789740], atol=2e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_a_penalty(n_classes, fit_intercept):
    """Proposition 4: refits without a penalty; the limit of weak ones; units."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(n_classes, size=60)
    rows = np.vstack([2.0 * rng.normal(size=(4, 2)), 50.0 * X[:1]])
    options = {"fit_intercept": fit_intercept}
    model = SMPLogisticRegression(C=np.inf, **options).fit(X, y)
    weak = SMPLogisticRegression(C=1e9, **options).fit(X, y)
    assert_allclose(model.predict_proba(rows), weak.predict_proba(rows), atol=1e-6)
    scores = np.empty((len(rows), n_classes))
    for r, row in enumerate(rows):
        for k in range(n_classes):
            refit = LogisticRegression(
                C=np.inf, tol=1e-10, max_iter=100_000, solver="newton-cg", **options
            ).fit(np.vstack([X, row]), np.append(y, k))
            scores[r, k] = refit.predict_proba(row[None])[0, k]
    found = model.log_normalizer(rows)
    assert_allclose(found, np.log(scores.sum(axis=1)), atol=1e-6)
    expected = scores / scores.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(rows), expected, atol=1e-6)
    other = SMPLogisticRegression(C=np.inf, **options).fit(X * [1e-7, 1e5], y)
    moved = other.predict_proba(rows * [1e-7, 1e5])
    assert_allclose(moved, expected, atol=1e-6)
    assert model.C_ == np.inf and model.lambda_ == 0.0
    assert model.excess_risk_bound(1e6) == model.log_normalizer_mean_
    with pytest.warns(UserWarning, match="vacuous"):
        assert model.theory_bound(3.0) == pytest.approx(np.log(n_classes))
    assert model.bound_valid_ == (n_classes == 2)
    if n_classes == 2:
        # (45).
        low, high = model.predict_interval(rows).T
        assert (found <= np.log1p(high - low) + 1e-12).all()


def test_without_a_penalty_a_constant_gives_laplace():
    X, y = np.ones((7, 1)), [0, 0, 0, 1, 1, 1, 1]
    model = SMPLogisticRegression(C=np.inf, fit_intercept=False).fit(X, y)
    assert_allclose(model.predict_proba(X[:1]), [[4 / 9, 5 / 9]], atol=1e-9)


def test_without_a_penalty_the_fit_must_exist():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    model = SMPLogisticRegression(C=np.inf)
    cases = [
        (X, (X[:, 0] > 0).astype(int)),
        (np.column_stack([X, X[:, 0] + X[:, 1]]), y),
        (np.column_stack([X, np.ones(30)]), y),
        (np.column_stack([X, np.zeros(30)]), y),
        (rng.normal(size=(30, 40)), y),
        (np.column_stack([y, np.arange(30) % 3]), np.arange(30) % 4 // 2),
    ]
    for rows, labels in cases[:5]:
        for container in (np.asarray, sparse.csr_array):
            with pytest.raises(ValueError, match="maximum likelihood"):
                model.fit(container(rows), labels)
    three = np.where(X[:, 0] > 0, 2, y)
    with pytest.raises(ValueError, match="maximum likelihood"):
        model.fit(X, three)
    assert not hasattr(model, "classes_")


@pytest.mark.slow
def test_without_a_penalty_the_excess_is_below_the_mean_of_log_z():
    """Proposition 4 by simulation: the model holds, or its link is flipped far out."""
    for flipped in (False, True):
        rng = np.random.default_rng(1)
        theta = np.array([1.0, -0.5, 0.5])

        def proba(X, flipped=flipped, theta=theta):
            logits = X @ theta
            far = np.sum(X**2, axis=1) > 5.0
            return expit(np.where(flipped & far, -logits, logits))

        fresh = rng.normal(size=(20_000, 3))
        p = proba(fresh)

        def risk_of(t, fresh=fresh, p=p):
            return np.mean(np.logaddexp(0.0, fresh @ t) - p * (fresh @ t))

        best = minimize(risk_of, theta).fun
        excess, bound = [], []
        for _ in range(60):
            X = rng.normal(size=(60, 3))
            y = (rng.random(60) < proba(X)).astype(int)
            model = SMPLogisticRegression(C=np.inf, fit_intercept=False).fit(X, y)
            few = rng.integers(len(fresh), size=500)
            q = model.predict_log_proba(fresh[few])
            risk = -p[few] * q[:, 1] - (1 - p[few]) * q[:, 0]
            excess.append(np.mean(risk) - best)
            bound.append(np.mean(model.log_normalizer(fresh[few])))
        error = np.std(excess) / np.sqrt(60)
        assert np.mean(excess) < np.mean(bound) + 2.0 * error
        assert np.mean(bound) < 0.1
