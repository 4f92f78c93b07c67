"""What users should not pass, and what they may."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.utils import get_tags

from kernel_boost.toy import (
    KERNELS,
    at_the_last_step,
    caught,
    classification,
    gram,
    line,
    make,
    numbers_in,
    problem,
    raw,
    regression,
)

LOSSES = ["squared", "logistic", "exponential", "softmax"]

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_solver = pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd"])


def state(model):
    """What a model holds, with arrays as bytes."""
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(model).items()
        if name in model.get_params() or not callable(value)
    }


def refused(model, *data, match, error=ValueError, **more):
    """The fit fails with a message, and leaves the model as it was."""
    before = state(model)
    with pytest.raises(error, match=match) as raised:
        model.fit(*data, **more)
    assert state(model) == before
    return str(raised.value)


# ---------------------------------------------------------------------- kernel matrices


@every_loss
@every_solver
def test_kernel_matrix_that_is_not_symmetric(loss, solver):
    """An entry that differs from its mirror image."""
    X, y = problem(loss, 0)
    G = gram(X, **KERNELS["laplacian"])
    G[2, 5] += 0.1
    refused(make(loss, "precomputed", solver=solver), G, y, match="symmetric")


@every_loss
@every_solver
def test_kernel_matrix_that_is_not_square(loss, solver):
    """A row too few."""
    X, y = problem(loss, 0)
    G = gram(X, **KERNELS["laplacian"])
    refused(make(loss, "precomputed", solver=solver), G[:-1], y[:-1], match="square")


@every_loss
@every_solver
@pytest.mark.parametrize("kind", ["one negative eigenvalue", "minus", "distance"])
def test_indefinite_kernel_matrix(loss, solver, kind):
    """A matrix with eigenvalues that are clearly negative."""
    X, y = problem(loss, 1)
    G = gram(X, **KERNELS["laplacian"])
    if kind == "minus":
        G = -G
    elif kind == "distance":
        G = np.abs(X[:, None] - X[None]).sum(axis=2)
    else:
        v = np.random.default_rng(0).normal(size=len(y))
        G = G - 3.0 * np.outer(v, v) / (v @ v)
    model = make(loss, "precomputed", solver=solver, max_iter=50)
    refused(model, G, y, match="positive semidefinite")


@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_indefinite_function(solver):
    """Callables and the sigmoid kernel may be indefinite too."""
    X, y = regression(2)
    distance = lambda x, z: float(np.abs(x - z).sum())
    refused(make("squared", distance, solver=solver), X, y, match="semidefinite")
    model = make("squared", "sigmoid", gamma=2.0, coef0=-1.0, solver=solver)
    refused(model, X, y, match="semidefinite")


@every_loss
@every_solver
def test_rounding_is_not_indefinite(loss, solver):
    """Eigenvalues and differences of mirror images that are rounding."""
    X, y = problem(loss, 3)
    X = np.concatenate([X, X])
    y = np.concatenate([y, y])
    G = gram(X, **KERNELS["rbf"])
    noise = 1e-13 * np.random.default_rng(0).normal(size=G.shape)
    options = {"solver": solver, "max_iter": 40, "random_state": 0}
    with at_the_last_step():
        plain = make(loss, "precomputed", **options).fit(G, y)
        model = make(loss, "precomputed", **options).fit(G + noise, y)
    assert_allclose(raw(model, G), raw(plain, G), rtol=1e-4, atol=1e-6)


@every_solver
def test_zero_kernel(solver):
    """A kernel that sees nothing leaves the offset."""
    _, y = regression(4, 12)
    model = make("squared", "precomputed", solver=solver, max_iter=20)
    with at_the_last_step():
        model.fit(np.zeros((12, 12)), y)
    assert_allclose(model.predict(np.zeros((3, 12))), y.mean())
    assert model.n_iter_ >= 1
    assert model.df_ == 0.0


def test_kernel_matrix_of_new_rows():
    """Predictions need the kernel with every training row."""
    X, y = regression(5, 20)
    G = gram(X, **KERNELS["rbf"])
    model = make("squared", "precomputed", solver="lowrank", max_rank=5).fit(G, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(G[:, :19])


# ----------------------------------------------------------------------------- features


@every_loss
def test_negative_features(loss):
    """The spline kernel is defined for features that are not negative."""
    X, y = problem(loss, 6)
    model = make(loss, "sobolev", max_iter=20)
    with at_the_last_step():
        model.fit(X, y)
    X[3, 0] = -1e-9
    refused(model, X, y, match="Negative")
    with pytest.raises(ValueError, match="Negative"):
        model.predict(X)
    for kernel in ("chi2", "additive_chi2"):
        refused(make(loss, kernel), X, y, match="[Nn]egative")


def test_negative_feature_on_the_line():
    """Also where the chain is used."""
    X, y = line(7, 20)
    refused(make("squared", "sobolev"), X - 1.0, y, match="Negative")
    model = make("squared", "sobolev").fit(X, y)
    with pytest.raises(ValueError, match="Negative"):
        model.predict([[-0.5]])
    with pytest.raises(ValueError, match="Negative"):
        list(model.staged_predict([[-0.5]]))


@every_loss
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
@pytest.mark.parametrize(
    "kernel, scale, said",
    [
        ("rbf", 1e4, "unrelated|identity|diagonal"),
        ("laplacian", 1e4, "unrelated|identity|diagonal"),
        ("rbf", 1e-7, "same|constant|rank"),
        ("laplacian", 1e-14, "same|constant|rank"),
    ],
)
def test_unscaled_features(loss, kernel, solver, scale, said):
    """A kernel that sees all rows as unrelated, or all as the same, says so."""
    X, y = problem(loss, 8, n=40)
    options = {"gamma": None, "solver": solver, "random_state": 0, "max_iter": 50}
    found = caught(make(loss, kernel, **options).fit, scale * X, y)
    texts = [str(item.message) for item in found]
    assert any(
        "scale the features" in text and np.any([w in text for w in said.split("|")])
        for text in texts
    )
    found = caught(make(loss, kernel, **options).fit, X, y)
    assert not any("scale the features" in str(item.message) for item in found)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_kernels_of_low_rank_do_not_warn(kernel):
    """Rank one is no accident with one feature and a linear kernel."""
    X, y = regression(9, 30, 1)
    assert not caught(make("squared", kernel, coef0=0.0).fit, X, y)


@every_loss
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_features(loss, bad):
    """At fit and at prediction."""
    X, y = problem(loss, 10)
    with at_the_last_step():
        model = make(loss, "rbf", max_iter=20).fit(X, y)
    X[1, 1] = bad
    refused(model, X, y, match=r"NaN|infinity")
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_targets(bad):
    """One target that is no number."""
    X, y = regression(11)
    y[0] = bad
    refused(make("squared", "rbf"), X, y, match=r"NaN|infinity")


@every_loss
def test_number_of_features(loss):
    """That of the fit."""
    X, y = problem(loss, 12)
    with at_the_last_step():
        model = make(loss, "rbf", max_iter=20).fit(X, y)
    for wrong in (X[:, :1], np.column_stack([X, X])):
        with pytest.raises(ValueError, match="features"):
            model.predict(wrong)


@every_loss
def test_flat_features(loss):
    """Rows have two axes."""
    X, y = problem(loss, 13)
    refused(make(loss, "rbf"), X[:, 0], y, match="2D array")
    with at_the_last_step():
        model = make(loss, "rbf", max_iter=20).fit(X, y)
    with pytest.raises(ValueError, match="2D array"):
        model.predict(X[0])


@every_loss
def test_unequal_lengths(loss):
    """A target per row."""
    X, y = problem(loss, 14)
    refused(make(loss, "rbf"), X, y[:-1], match="inconsistent")


@pytest.mark.parametrize("kernel", ["sobolev", "precomputed"])
def test_sparse_where_it_has_no_meaning(kernel):
    """Kernels of dense rows refuse sparse ones, and the tag says so."""
    X, y = regression(15, 12)
    model = make("squared", kernel)
    data = gram(X, **KERNELS["rbf"]) if kernel == "precomputed" else X
    refused(model, sparse.csr_array(data), y, match="[Ss]parse", error=TypeError)
    assert not get_tags(model).input_tags.sparse
    assert get_tags(make("squared", "rbf")).input_tags.sparse


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_tags(loss):
    """Pairwise for kernel matrices, positive for kernels that need it."""
    assert get_tags(make(loss, "precomputed")).input_tags.pairwise
    assert not get_tags(make(loss, "rbf")).input_tags.pairwise
    for kernel in ("sobolev", "chi2", "additive_chi2"):
        assert get_tags(make(loss, kernel)).input_tags.positive_only
    assert not get_tags(make(loss, "rbf")).input_tags.positive_only


def test_input_is_left_alone():
    """Rows, targets and weights are not written to."""
    X, y = regression(16, 30)
    w = np.random.default_rng(0).integers(0, 3, size=30).astype(float)
    copies = X.copy(), y.copy(), w.copy()
    G = gram(X, **KERNELS["rbf"])
    copy = G.copy()
    for solver in ("eigh", "lowrank", "gd"):
        model = make("squared", "rbf", solver=solver).fit(X, y, w)
        model.predict(X)
        make("squared", "precomputed", solver=solver).fit(G, y, w).predict(G)
    for array, expected in zip((X, y, w, G), (*copies, copy), strict=True):
        assert_array_equal(array, expected)


# --------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@every_solver
def test_step_size_beyond_stability(loss, solver):
    """An error that names the limit 2 / (M mu_1); just below it there is none."""
    X, y = problem(loss, 17)
    mu = np.linalg.eigvalsh(gram(X, **KERNELS["rbf"]) / len(y))[-1]
    limit = 2.0 / ({"squared": 1.0, "logistic": 0.25, "softmax": 0.5}[loss] * mu)
    options = {"solver": solver, "stopping": None, "max_iter": 15, "max_rank": 200}
    options |= {"rank_tol": 0.0, "rank_gain_tol": 0.0}
    model = make(loss, "rbf", step_size=1.02 * limit, **options)
    text = refused(model, X, y, match="step_size")
    assert np.any(np.abs(numbers_in(text) / limit - 1.0) < 1e-3)
    model.set_params(step_size=0.98 * limit).fit(X, y)
    assert np.all(np.isfinite(raw(model, X)))


@every_solver
def test_step_size_at_which_the_exponential_loss_explodes(solver):
    """There is no limit known beforehand: an error when the risk grows, no overflow."""
    X, y = classification(17)
    options = {"solver": solver, "stopping": None, "max_iter": 40}
    for step in (60.0, 1e6):
        model = make("exponential", "rbf", step_size=step, **options)
        refused(model, X, y, match="step_size")
    model.set_params(step_size=1.0).fit(X, y)
    assert np.all(np.isfinite(raw(model, X)))


def test_step_size_beyond_stability_of_the_chain():
    """Also for the spline kernel of one feature."""
    X, y = line(18, 30)
    mu = np.linalg.eigvalsh(gram(X, kernel="sobolev") / 30)[-1]
    for solver in ("auto", "banded"):
        model = make("squared", "sobolev", step_size=2.1 / mu, solver=solver)
        refused(model, X, y, match="step_size")


@every_loss
def test_number_of_steps_is_needed(loss):
    """stopping=None without max_iter says nothing."""
    X, y = problem(loss, 19)
    refused(make(loss, "rbf", stopping=None), X, y, match="max_iter")


@pytest.mark.parametrize(
    "name, value",
    [
        ("kernel", "nothing"),
        ("gamma", -1.0),
        ("learning_rate", 0.0),
        ("learning_rate", 2.0),
        ("step_size", 0.0),
        ("stopping", "never"),
        ("df_margin", -1.0),
        ("noise", -0.1),
        ("norm", 0.0),
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("average", "yes"),
        ("solver", "nothing"),
        ("max_rank", 0),
        ("rank_tol", -1.0),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_parameters_out_of_range(loss, name, value):
    """The message names the parameter."""
    X, y = problem(loss, 20)
    model = make(loss, "rbf").set_params(**{name: value})
    refused(model, X, y, match=name)


def test_rules_of_the_other_task():
    """Each class has its own rules."""
    X, y = regression(21)
    refused(make("squared", "rbf", stopping="aic"), X, y, match="stopping")
    X, y = classification(21)
    refused(make("logistic", "rbf", stopping="gcv"), X, y, match="stopping")


def test_leave_one_out_without_all_eigenvectors():
    """The exact rule says which solvers it is for."""
    X, y = regression(22, 20)
    refused(make("squared", "rbf", stopping="loo", solver="lowrank"), X, y, match="loo")


def test_leave_one_out_with_weights():
    """A row is left out, not a unit of weight; equal weights are fine."""
    X, y = regression(22, 20)
    w = np.ones(20)
    with at_the_last_step():
        plain = make("squared", "rbf", stopping="loo", max_iter=50).fit(X, y)
        equal = make("squared", "rbf", stopping="loo", max_iter=50).fit(X, y, w)
    assert plain.n_iter_ == equal.n_iter_
    w[3] = 2.0
    model = make("squared", "rbf", stopping="loo", max_iter=50)
    refused(model, X, y, w, match="loo")


@every_loss
def test_half_of_the_validation_data(loss):
    """Rows without targets, targets without rows, weights without both."""
    X, y = problem(loss, 23, n=30)
    model = make(loss, "rbf", stopping="validation", max_iter=20)
    refused(model, X, y, match="y_val", X_val=X)
    refused(model, X, y, match="X_val", y_val=y)
    refused(model, X, y, match="sample_weight_val", sample_weight_val=np.ones(30))
    refused(model, X, y, match="features", X_val=X[:, :1], y_val=y)
    refused(model, X, y, match="inconsistent", X_val=X, y_val=y[:-1])
    bad = X.copy()
    bad[0, 0] = np.nan
    refused(model, X, y, match="NaN", X_val=bad, y_val=y)


def test_validation_labels_that_are_new():
    """A label that was not there in the training rows."""
    X, y = classification(24, 30)
    model = make("logistic", "rbf", stopping="validation", max_iter=20)
    refused(model, X, y, match="label|class", X_val=X, y_val=y + 1)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_validation_of_too_few_rows(loss):
    """A split needs rows on both sides."""
    X, y = problem(loss, 25, n=2)
    model = make(loss, "rbf", stopping="validation", max_iter=20)
    try:
        with at_the_last_step():
            model.fit(X, y)
    except ValueError as error:
        assert "validation" in str(error)
    else:
        assert np.all(np.isfinite(raw(model, X)))


def test_names_of_validation_columns():
    """No warning about feature names from the estimator's own validation."""
    pandas = pytest.importorskip("pandas")
    X, y = regression(26, 40)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = make("squared", "rbf", stopping="validation", random_state=0)
    assert not [w for w in caught(model.fit, frame, y) if "feature names" in str(w)]
    found = caught(model.fit, frame, y, X_val=frame, y_val=y)
    assert not [w for w in found if "feature names" in str(w)]


# ------------------------------------------------------------------------------ weights


@every_loss
@pytest.mark.parametrize(
    "weights, said",
    [(0.0, "weight|zero"), (-1.0, "[Nn]egative"), (np.nan, "NaN")],
    ids=["zero", "negative", "missing"],
)
def test_weights_that_are_none(loss, weights, said):
    """All zero, negative or missing."""
    X, y = problem(loss, 27)
    w = np.full(len(y), weights)
    if weights != 0.0:
        w[1:] = 1.0
    refused(make(loss, "rbf"), X, y, w, match=said)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_class_without_weight(loss):
    """A class whose rows all have weight zero is not there."""
    X, y = classification(28)
    refused(make(loss, "rbf"), X, y, (y == 1).astype(float), match="class")
    X, y = classification(28, 27, n_classes=3)
    with at_the_last_step():
        model = make("logistic", "rbf", max_iter=20).fit(X, y, (y != 1).astype(float))
    assert model.predict_proba(X).shape == (27, len(model.classes_))
    assert 1 not in model.predict(X)


# ------------------------------------------------------------------- degenerate targets


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_one_class(loss):
    """There is nothing to tell apart."""
    X, y = classification(29)
    refused(make(loss, "rbf"), X, np.zeros_like(y), match="class")


def test_continuous_labels():
    """Numbers are no labels."""
    X, y = regression(30)
    refused(make("logistic", "rbf"), X, y, match="continuous|label")


@every_solver
@pytest.mark.parametrize("stopping", ["gcv", "cp", "aicc", "discrepancy", "theory"])
@pytest.mark.parametrize("value", [0.0, 2.5, -1e6])
@pytest.mark.parametrize("intercept", [True, False])
def test_constant_targets(solver, stopping, value, intercept):
    """The constant is predicted, and nothing is divided by zero."""
    X, _ = regression(31, 25)
    model = make(
        "squared", "laplacian", solver=solver, stopping=stopping, random_state=0,
        fit_intercept=intercept, max_iter=500,
    )  # fmt: skip
    with at_the_last_step():
        model.fit(X, np.full(25, value))
    assert model.n_iter_ >= 1
    if intercept:
        assert_allclose(model.predict(X + 0.1), value, rtol=1e-9)
        assert_allclose(model.norm_, 0.0, atol=1e-9 * max(1.0, abs(value)))
    else:
        assert np.all(np.isfinite(model.predict(X)))
    assert not np.isnan(model.critical_radius_)


def test_constant_targets_on_the_line():
    """Also on the chain, and with one knot."""
    X, _ = line(32, 25)
    for x in (X, np.full((25, 1), 0.3)):
        model = make("squared", "sobolev")
        model.fit(x, np.full(25, 4.0))
        assert_allclose(model.predict(x), 4.0)
        assert not np.isnan(model.critical_radius_)


@pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd", "auto"])
def test_one_row(solver):
    """n = 1: its target, or an error that says so."""
    model = make("squared", "rbf", solver=solver, max_iter=10)
    try:
        with at_the_last_step():
            model.fit([[1.0, 2.0]], [3.0])
    except ValueError as error:
        assert "1 sample" in str(error) or "n_samples=1" in str(error)
    else:
        assert_allclose(model.predict([[0.0, 0.0]]), 3.0)
        assert model.n_iter_ >= 1
    model = make("logistic", "rbf", solver=solver)
    refused(model, [[1.0, 2.0]], [1], match="class|sample")


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize(
    "stopping, solver",
    [
        (stopping, solver)
        for stopping in ("gcv", "cp", "aicc", "loo", "discrepancy", "theory")
        for solver in ("eigh", "lowrank", "gd")
        # Exact leave-one-out needs all eigenvectors.
        if (stopping, solver) != ("loo", "lowrank")
    ],
)
def test_few_rows(n, solver, stopping):
    """Two to four rows: finite numbers and no warnings of arithmetic."""
    X, y = regression(33, n)
    model = make("squared", "laplacian", solver=solver, stopping=stopping, max_iter=200)
    with at_the_last_step():
        model.fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    assert 1 <= model.n_iter_ <= 200


@pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd"])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("stopping", ["auto", "alo", "aic", "theory"])
def test_two_rows(solver, loss, stopping):
    """One row of each class."""
    model = make(loss, "laplacian", solver=solver, stopping=stopping, max_iter=200)
    with at_the_last_step():
        model.fit([[0.0], [1.0]], ["a", "b"])
    assert_array_equal(model.predict([[0.0], [1.0]]), ["a", "b"])


@every_solver
def test_contradicting_duplicates(solver):
    """Equal rows with different targets count as their mean with their number."""
    X, y = regression(34, 12)
    X2 = np.concatenate([X, X, X])
    y2 = np.concatenate([y - 2.0, y, y + 2.0])
    options = {"solver": solver, "stopping": None, "max_iter": 40, "max_rank": 36}
    options |= {"rank_tol": 0.0, "rank_gain_tol": 0.0, "random_state": 0}
    single = make("squared", "laplacian", **options).fit(X, y)
    triple = make("squared", "laplacian", **options).fit(X2, y2)
    assert_allclose(triple.predict(X), single.predict(X), rtol=1e-8)
    assert triple.rank_ == 12
    rule = make("squared", "laplacian", solver=solver, random_state=0).fit(X2, y2)
    assert np.all(np.isfinite(rule.predict(X)))
    assert rule.noise_ > 1.0


@every_solver
def test_contradicting_labels(solver):
    """Equal rows of both classes have probability one half."""
    X, _ = classification(35, 15)
    X2, y2 = np.concatenate([X, X]), np.repeat([0, 1], 15)
    with at_the_last_step():
        model = make(
            "logistic", "laplacian", solver=solver, max_iter=100, random_state=0
        ).fit(X2, y2)  # fmt: skip
    assert_allclose(model.predict_proba(X), 0.5, atol=1e-9)


@every_solver
def test_equal_rows(solver):
    """All rows the same: the mean is all there is."""
    X = np.full((20, 2), 1.5)
    y = np.arange(20.0)
    model = make("squared", "rbf", solver=solver)
    with pytest.warns(UserWarning, match="same"):
        model.fit(X, y)
    assert_allclose(model.predict(X), 9.5, rtol=1e-9)


@every_solver
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_search_of_gamma_on_equal_rows(solver, kernel):
    """No distance to scale gamma by: still a finite one."""
    X, y = np.full((20, 2), 1.5), np.arange(20.0)
    model = make("squared", kernel, solver=solver, gamma="auto", random_state=0)
    caught(model.fit, X, y)
    assert np.isfinite(model.gamma_) and model.gamma_ > 0.0
    assert_allclose(model.predict(X), 9.5, rtol=1e-9)
    caught(model.set_params(gamma="scale").fit, X, y)
    assert model.gamma_ == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@every_solver
def test_targets_of_any_size(scale, solver):
    """Huge and tiny targets scale the function and do not overflow."""
    X, y = regression(36, 25)
    options = {"solver": solver, "random_state": 0}
    first = make("squared", "laplacian", **options).fit(X, y)
    second = make("squared", "laplacian", **options).fit(X, scale * y)
    assert_allclose(second.predict(X) / scale, first.predict(X), rtol=1e-6)


# ----------------------------------------------------------------------- failing fits


@every_loss
def test_failing_fit_leaves_the_model(loss):
    """A fitted model that fails to fit again predicts as before."""
    X, y = problem(loss, 37, n=30)
    with at_the_last_step():
        model = make(loss, "laplacian", max_iter=30).fit(X, y)
    expected = raw(model, X)
    model.set_params(step_size=1e6)
    # A tiny class of fits of the exponential loss has no limit of its steps.
    if loss == "exponential":
        model.set_params(step_size=None, stopping=None, max_iter=None)
    refused(model, X[:20, :1], y[:20], match="step_size|max_iter")
    assert_array_equal(raw(model, X), expected)
    assert model.n_features_in_ == 2


def test_late_failure():
    """An error of the kernel itself, in the middle of a fit."""
    X, y = regression(38, 20)
    calls = []

    def kernel(x, z):
        calls.append(1)
        if len(calls) > 100:
            raise RuntimeError("no more")
        return float(np.exp(-np.abs(x - z).sum()))

    for solver in ("eigh", "lowrank"):
        calls.clear()
        refused(
            make("squared", kernel, solver=solver), X, y, match="no more",
            error=RuntimeError,
        )  # fmt: skip
