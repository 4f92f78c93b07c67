"""Stopping by folds of rows, against refits of the models without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernel_boost as ref
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
)

from kernel_boost import slow_references as slow
from kernel_boost.toy import (
    KERNELS,
    at_the_last_step,
    caught,
    classification,
    codes,
    gram,
    line,
    make,
    problem,
    raw,
    regression,
    signs,
)
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
)
from skbounds.kernel_boost._folds import hash_folds
from skbounds.kernel_boost._hashes import row_hashes


def held_by(cv, n, weights=None):
    """The weights that a splitter's test sets hold."""
    weights = np.ones(n) if weights is None else weights
    table = np.zeros((n, cv.get_n_splits()))
    for k, (_, test) in enumerate(cv.split(np.zeros((n, 1)))):
        table[test, k] = weights[test]
    return table


def deal(X, weight=None, n_folds=5, seed=7, **options):
    """Folds by hashes, as a table."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    how = {
        "targets": None,
        "codes": None,
        "groups": None,
        "kernel_matrix": False,
        "all_folds": True,
        **options,
    }
    targets = how.pop("targets")
    folds = hash_folds(X, targets, weight, n_folds, seed, **how)
    return folds.dense(X.shape[0])


# ------------------------------------------------------------------------ the folds


def test_hashes_do_not_know_order_units_or_storage():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 5)), 1) * (rng.random((60, 5)) < 0.6)
    h = row_hashes(X, 3)
    order = rng.permutation(60)
    assert_array_equal(row_hashes(X[order], 3), h[order])
    assert_array_equal(row_hashes(X * 1e7 - 3.0, 3), h)
    assert_array_equal(row_hashes(csr_matrix(X), 3), h)
    assert_array_equal(row_hashes(np.repeat(X, 3, axis=0), 3), np.repeat(h, 3))
    assert len(np.unique(h)) == len(np.unique(X, axis=0))
    assert (row_hashes(X, 4) != h).all()


def test_hashes_of_sparse_rows_with_stored_zeros():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [3.0, 0.0, 2.0]])
    sparse = csr_matrix(X)
    padded = sparse.copy()
    padded.data = padded.data.copy()
    padded[1, 0] = 5.0
    padded.data[padded.data == 5.0] = 0.0
    assert padded.nnz == sparse.nnz + 1
    assert_array_equal(row_hashes(padded, 1), row_hashes(X, 1))


def test_hashes_of_kernel_matrices():
    """Neither order, nor repetition, nor scale, nor rounding."""
    X = np.random.default_rng(1).normal(size=(30, 3))
    h = row_hashes(gram(X, **KERNELS["rbf"]), 5, kernel_matrix=True)
    assert len(np.unique(h)) == 30
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(30), 2))
    G = 7.0 * gram(X[order], **KERNELS["rbf"])
    G = G + 1e-13 * np.random.default_rng(3).normal(size=G.shape)
    assert_array_equal(row_hashes(G, 5, kernel_matrix=True), h[order])


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(12, 60),
    n_folds=st.integers(2, 12),
    n_classes=st.integers(1, 4),
)
@settings(max_examples=60)
def test_folds_are_even(seed, n, n_folds, n_classes):
    """Each row is left out once; sizes differ by one at most, in each class by two."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(n_classes, size=n)
    _, y = np.unique(y, return_inverse=True)
    table = deal(X, n_folds=n_folds, codes=y)
    assert_array_equal(table.sum(axis=1), np.ones(n))
    sizes = table.sum(axis=0)
    assert np.ptp(sizes) <= 1.0
    assert len(sizes) == min(n, n_folds)
    for c in np.unique(y):
        assert np.ptp(table[y == c].sum(axis=0)) <= 1.0


@pytest.mark.parametrize("continuous", [True, False])
def test_weights_are_repetition(continuous):
    """Rows of a weight have the folds of their copies, together or dealt out."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2)) if continuous else rng.integers(3, size=(40, 2)) * 1.0
    y, w = rng.integers(2, size=40), rng.integers(1, 5, size=40)
    copies = rng.permutation(np.repeat(np.arange(40), w))
    table = deal(X, w * 1.0, codes=y)
    repeated = deal(X[copies], codes=y[copies])
    _, merged = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    merged = merged.ravel()
    sums = np.zeros((merged.max() + 1, 5))
    np.add.at(sums, merged, table)
    again = np.zeros_like(sums)
    np.add.at(again, merged[copies], repeated)
    assert_array_equal(sums, again)
    assert_array_equal(table.sum(axis=1), w)
    if continuous:
        assert ((table > 0).sum(axis=1) == 1).all()
    else:
        for c in range(2):
            assert np.ptp(table[y == c].sum(axis=0)) <= 1.0


def test_fractional_weights_go_to_one_fold():
    rng = np.random.default_rng(5)
    X = rng.integers(3, size=(60, 2)) * 1.0
    w = rng.uniform(0.01, 0.1, size=60)
    table = deal(X, w)
    assert ((table > 0).sum(axis=1) == 1).all()
    assert_allclose(table.sum(axis=1), w)
    sizes = table.sum(axis=0) / w.sum()
    assert sizes.min() > 0.1
    assert sizes.max() < 0.35


def test_names_of_classes_do_not_count():
    X, y = classification(3, 40, n_classes=3)
    assert_array_equal(deal(X, codes=y), deal(X, codes=2 - y))


def trials(seed, n=50, n_trials=9):
    """Rows of both classes at each of some points, and how many there are."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    successes = rng.binomial(n_trials, 0.5, size=n)
    w = np.r_[n_trials - successes, successes] + 1.0
    return np.vstack([x, x]), np.repeat([0, 1], n), w


@pytest.mark.parametrize("most_units", [2**22, 10])
def test_trials_are_dealt_out_at_random(most_units, monkeypatch):
    """How many of a row are left out varies as in a draw without replacement."""
    monkeypatch.setattr("skbounds.kernel_boost._folds._MOST_UNITS", most_units)
    X, y, w = trials(0)
    total = np.array([w[y == c].sum() for c in (0, 1)])[y]
    drawn = (total - w) / (total - 1.0) if most_units > total[0] else 1.0
    ratios = []
    for seed in range(200):
        table = deal(X, w, codes=y, seed=seed)
        assert_array_equal(table.sum(axis=1), w)
        gaps = (table - w[:, None] / 5) ** 2
        ratios.append(np.mean(gaps / (0.16 * w * drawn)[:, None]))
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1.0) < 4.0 * error < 0.05


def test_classes_at_a_point_are_dealt_out_independently():
    """Else what is left out at a point has the mean of what is learnt from."""
    x = np.random.default_rng(0).normal(size=(50, 1))
    X, y = np.vstack([x, x]), np.repeat([0, 1], 50)
    products = []
    for seed in range(200):
        table = deal(X, np.full(100, 10.0), codes=y, seed=seed) - 2.0
        products.append(np.mean(table[:50] * table[50:]))
    error = np.std(products) / np.sqrt(len(products))
    # The first of each class and point is in the order of the points in both.
    assert abs(np.mean(products)) < 4.0 * error + 0.1 * 1.6


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_trials_are_stopped_well(loss):
    """In the setting of the paper, with 20 trials at each point."""
    x = np.arange(1, 101) / 100
    truth = 8.0 * (np.abs(x - 0.5) - 0.25)
    X, y = np.r_[x, x][:, None], np.repeat([0, 1], 100)
    options = {"kernel": "sobolev", "loss": loss, "random_state": 0}
    times = np.unique(np.round(np.geomspace(1, 3000, 30)))

    def error(p):
        return np.mean((np.log(p[:, 1] / p[:, 0]) - truth) ** 2)

    reached, paths = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        successes = rng.binomial(20, 1.0 / (1.0 + np.exp(-truth)))
        w = np.r_[20 - successes, successes]
        model = EarlyStoppedKernelBoostClassifier(**options).fit(X, y, w)
        reached.append(error(model.predict_proba(x[:, None])))
        path = EarlyStoppedKernelBoostClassifier(
            **options, stopping=None, max_iter=3000
        ).fit(X, y, w)
        stages = path.staged_predict_proba(x[:, None], times)
        paths.append([error(p) for p in stages])
    assert np.mean(reached) < 1.3 * np.mean(paths, axis=0).min()


@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_levels_are_stopped_well(noise):
    """Rows of equal features with several targets are other observations."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        levels = rng.integers(40, size=1000)
        truth = rng.normal(size=40)
        y = truth[levels] + noise * rng.normal(size=1000)
        both = []
        for stopping in ("gcv", "cv"):
            model = EarlyStoppedKernelBoost(stopping=stopping, random_state=0)
            model.fit(levels[:, None] * 1.0, y)
            predicted = model.predict(np.arange(40.0)[:, None])
            both.append(np.mean((predicted - truth) ** 2))
        errors.append(both)
    assert np.mean(errors, axis=0)[1] < 1.2 * np.mean(errors, axis=0)[0]


def test_copies_stay_together_where_one_point_contradicts():
    X, y = classification(5, 40)
    X, y = np.repeat(X, 3, axis=0), np.repeat(codes(y), 3)
    y[0] = 1 - y[0]
    table = deal(X, codes=y)
    for point in range(40):
        assert (table[3 * point : 3 * point + 3].sum(axis=0) > 0).sum() == 1


def test_groups_stay_together():
    X, _ = classification(4, 60)
    groups = np.arange(60) // 5
    table = deal(X, n_folds=4, groups=groups)
    for g in range(12):
        assert (table[groups == g].sum(axis=0) > 0).sum() == 1
    assert (table.sum(axis=0) == 15).all()


def test_not_all_folds_of_many_rows():
    X = np.random.default_rng(0).normal(size=(10_000, 1))
    assert deal(X, all_folds=False).shape[1] == 2
    assert deal(X[:4000], all_folds=False).shape[1] == 5
    assert deal(np.r_[X, X[::-1]], all_folds=False).shape[1] == 2


# ---------------------------------------------------------------------- squared loss


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank", "gd"])
def test_regression(kernel, intercept, average, solver):
    """The criterion is the mean loss of refits by plain steps, at every time."""
    X, y = regression(2, n=40)
    w = np.random.default_rng(0).integers(1, 4, size=40).astype(float)
    cv = KFold(4)
    with at_the_last_step():
        model = make(
            "squared", kernel, stopping="cv", cv=cv, fit_intercept=intercept,
            average=average, solver=solver, max_iter=200, rank_tol=0.0,
            rank_gain_tol=0.0, random_state=0,
        ).fit(X, y, w)  # fmt: skip
    path = model.stopping_path_
    held = held_by(cv, 40, w)
    G = gram(X, **KERNELS[kernel])
    for k in range(0, len(path["t"]), 9):
        expected = slow.kfold_squared_score(
            G, y, w, held, model.step_size_, int(path["t"][k]), intercept, average
        )
        assert_allclose(path["criterion"][k], expected, rtol=1e-8)
    assert model.n_iter_ == path["t"][np.argmin(path["criterion"])]


def test_leaving_single_rows_out_is_leave_one_out():
    X, y = regression(3, n=25)
    with at_the_last_step():
        one = make("squared", "rbf", stopping="loo", max_iter=100).fit(X, y)
        other = make("squared", "rbf", stopping="cv", cv=KFold(25), max_iter=100)
        other.fit(X, y)
    assert_allclose(
        2.0 * other.stopping_path_["criterion"],
        one.stopping_path_["criterion"],
        rtol=1e-8,
    )


def test_several_outputs_have_times_of_their_own():
    X, y = regression(4, n=40, m=3)
    with at_the_last_step():
        model = make("squared", "rbf", stopping="cv", max_iter=5000).fit(X, y)
        for k in range(3):
            one = make("squared", "rbf", stopping="cv", max_iter=5000, cv=None)
            # The folds of all outputs: rows are hashed with their targets.
            table = deal(X, targets=y, seed=0)
            one.set_params(cv=PredefinedSplit(table.argmax(axis=1))).fit(X, y[:, k])
            assert one.n_iter_ == model.n_iter_[k]


@pytest.mark.parametrize("weighted", [False, True])
def test_on_the_line(weighted):
    """The rational filter of the banded solver, fold by fold."""
    X, y = line(3, n=60, ties=10)
    w = np.ones(60)
    if weighted:
        w = np.random.default_rng(1).integers(1, 4, size=60).astype(float)
    cv = KFold(3, shuffle=True, random_state=0)
    banded = make("squared", "sobolev", stopping="cv", cv=cv).fit(X, y, w)
    assert "knots" in banded._path_
    path = banded.stopping_path_
    G = ref.gram(X, None, "sobolev")
    held = held_by(cv, 60, w)
    for k in range(0, len(path["t"]), 3):
        if path["t"][k] <= 300:
            expected = slow.kfold_squared_score(
                G, y, w, held, banded.step_size_, int(path["t"][k])
            )
            assert_allclose(path["criterion"][k], expected, rtol=1e-5)


def test_streamed_factor():
    """The factor computed block by block has the criterion of the one that is kept."""
    from sklearn import config_context

    rng = np.random.default_rng(5)
    X = rng.uniform(size=(3000, 2))
    y = np.sin(5 * X[:, 0]) + 0.3 * rng.normal(size=3000)
    options = {
        "gamma": 3.0, "kernel": "laplacian", "stopping": "cv", "max_rank": 130,
        "rank_gain_tol": 0.0, "rank_tol": 0.0, "random_state": 0,
        "solver": "lowrank", "relevance": None,
    }  # fmt: skip
    with at_the_last_step():
        kept = EarlyStoppedKernelBoost(**options).fit(X, y)
        with config_context(working_memory=1):
            streamed = EarlyStoppedKernelBoost(**options).fit(X, y)
    assert streamed._path_["modes"].shape[0] == 130
    a, b = kept.stopping_path_["criterion"], streamed.stopping_path_["criterion"]
    # Other landmarks.
    assert_allclose(b.min(), a.min(), rtol=0.01)


# --------------------------------------------------------------------------- classes


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("solver", ["eigh", "lowrank"])
def test_classes(loss, intercept, solver):
    """The criterion is that of small plain steps without each fold, to a percent."""
    X, y = problem(loss, 8, n=45)
    w = np.random.default_rng(3).integers(1, 3, size=45).astype(float)
    cv = KFold(3)
    model = make(
        loss, "rbf", cv=cv, solver=solver, fit_intercept=intercept, random_state=0
    ).fit(X, y, w)
    path = model.stopping_path_
    targets = np.eye(3)[codes(y)] if loss == "softmax" else signs(y)
    G, held = gram(X, **KERNELS["rbf"]), held_by(cv, 45, w)
    for k, t in enumerate(path["t"]):
        if t <= 64 or (t == model.n_iter_ and t <= 500):
            expected, values = slow.kfold_flow_score(
                G, targets, w, held, model.step_size_, t, loss, 16, intercept
            )
            assert_allclose(path["criterion"][k], expected, rtol=0.01)
            losses = slow.scoring_loss(targets, values, loss)
            assert_allclose(path["train_loss"][k], w @ losses / w.sum(), rtol=0.02)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "exponential"])
@pytest.mark.parametrize("plain", [{"solver": "gd"}, {"average": True}])
def test_plain_steps_of_classes(loss, plain):
    """With plain steps the models without folds are those of refits with their rows."""
    X, y = problem(loss, 9, n=36)
    cv = KFold(3)
    with at_the_last_step():
        model = make(loss, "laplacian", cv=cv, max_iter=40, **plain).fit(X, y)
    path = model.stopping_path_
    k = len(path["t"]) // 2
    total = 0.0
    for train, test in cv.split(X):
        share = len(train) / 36
        with at_the_last_step():
            one = make(
                loss, "laplacian", stopping=None, max_iter=int(path["t"][k]),
                # Steps of the log-risk have no number of rows in them.
                step_size=None if loss == "exponential" else model.step_size_ * share,
                **plain,
            ).fit(X[train], y[train])  # fmt: skip
        p = one.predict_proba(X[test])
        total -= np.log(p[np.arange(len(test)), codes(y)[test]]).sum()
    assert_allclose(path["criterion"][k], total / 36, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax", "exponential"])
@pytest.mark.parametrize("solver", ["eigh", "gd"])
def test_repetition_and_order(loss, solver):
    """Whole weights are repetition, and the order of rows is none."""
    X, y = problem(loss, 10, n=30)
    w = np.random.default_rng(5).integers(1, 4, size=30)
    options = {"stopping": "cv", "solver": solver, "max_iter": 300}
    copies = np.random.default_rng(6).permutation(np.repeat(np.arange(30), w))
    with at_the_last_step():
        one = make(loss, "laplacian", **options).fit(X, y, w)
        other = make(loss, "laplacian", **options).fit(X[copies], y[copies])
    assert one.n_iter_ == other.n_iter_
    assert_allclose(
        other.stopping_path_["criterion"], one.stopping_path_["criterion"], rtol=1e-8
    )
    assert_allclose(raw(other, X), raw(one, X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_defaults_do_not_know_the_order(loss):
    X, y = problem(loss, 11, n=80)
    order = np.random.default_rng(0).permutation(80)
    one = make(loss, "rbf", gamma="auto", stopping="cv", random_state=0).fit(X, y)
    other = make(loss, "rbf", gamma="auto", stopping="cv", random_state=0)
    other.fit(X[order], y[order])
    assert one.n_iter_ == other.n_iter_
    assert_allclose(raw(other, X), raw(one, X), rtol=1e-6, atol=1e-8)


def test_sparse_rows_are_dense_rows():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.5)
    y = (X.sum(axis=1) + 0.5 * rng.normal(size=60) > 0).astype(int)
    one = make("logistic", "rbf").fit(X, y)
    other = make("logistic", "rbf").fit(csr_matrix(X), y)
    assert one.n_iter_ == other.n_iter_
    assert_allclose(other.decision_function(X), one.decision_function(X), rtol=1e-8)


def test_class_weight_is_a_weight():
    """Held-out rows count by the weights of their classes, their folds do not."""
    X, y = classification(12, 40)
    factors = {0: 1.0, 1: 3.0}
    w = np.where(y == 1, 3.0, 1.0)
    w *= 40.0 / w.sum()
    one = make("logistic", "rbf", class_weight=factors).fit(X, y)
    table = deal(X, codes=y, seed=0)
    other = make("logistic", "rbf", cv=PredefinedSplit(table.argmax(axis=1)))
    other.fit(X, y, w)
    assert one.n_iter_ == other.n_iter_
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-8)


def test_coordinates_that_are_cut_off(monkeypatch):
    """Folds in half of the coordinates stop at about the same time."""
    from skbounds.kernel_boost import _fold_walk

    X, y = classification(13, 330, d=6)
    model = make("logistic", "laplacian").fit(X, y)
    assert len(model.eigenvalues_) > 300
    monkeypatch.setattr(_fold_walk, "_FEWEST", 1000)
    monkeypatch.setattr(_fold_walk, "_MOST", 1000)
    whole = make("logistic", "laplacian").fit(X, y)
    a, b = (one.stopping_path_["criterion"].min() for one in (model, whole))
    assert a != b
    assert_allclose(a, b, rtol=0.02)


def test_many_rows_in_single_precision():
    """Products in single precision change the stopped loss in the fourth digit."""
    from skbounds.kernel_boost import _fold_walk

    X, y = classification(14, 900, d=3)
    model = make("logistic", "rbf", random_state=0).fit(X, y)
    many = _fold_walk._MANY
    _fold_walk._MANY = 0.0
    try:
        single = make("logistic", "rbf", random_state=0).fit(X, y)
    finally:
        _fold_walk._MANY = many
    a, b = (one.stopping_path_["criterion"] for one in (model, single))
    shared = min(len(a), len(b))
    assert_allclose(a[:shared], b[:shared], rtol=1e-3)


# ------------------------------------------------------------------------- splitters


def test_rows_in_no_test_set_are_learnt_from():
    X, y = regression(5, n=30)
    numbers = np.r_[np.full(10, -1), np.arange(20) % 2]
    held = np.zeros((30, 2))
    held[np.arange(30) >= 10, numbers[10:]] = 1.0
    with at_the_last_step():
        model = make(
            "squared", "rbf", stopping="cv", cv=PredefinedSplit(numbers), max_iter=50
        ).fit(X, y)
    G = gram(X, **KERNELS["rbf"])
    expected = slow.kfold_squared_score(G, y, np.ones(30), held, model.step_size_, 50)
    assert_allclose(model.stopping_path_["criterion"][-1], expected, rtol=1e-9)


def test_splitters_and_groups():
    X, y = classification(15, 60)
    groups = np.arange(60) // 6
    given_groups = make("logistic", "rbf", cv=GroupKFold(5)).fit(X, y, groups=groups)
    masks = []
    for _, test in GroupKFold(5).split(X, y, groups):
        mask = np.zeros(60, dtype=bool)
        mask[test] = True
        masks.append((~mask, mask))
    same = make("logistic", "rbf", cv=masks).fit(X, y)
    assert same.n_iter_ == given_groups.n_iter_
    make("logistic", "rbf", cv=3).fit(X, y, groups=groups)
    make("logistic", "rbf", cv=TimeSeriesSplit(3)).fit(X, y)


def test_rows_of_weight_zero_keep_their_test_sets():
    X, y = classification(16, 40)
    w = np.r_[np.zeros(5), np.ones(35)]
    cv = PredefinedSplit(np.arange(40) % 3)
    one = make("logistic", "rbf", cv=cv).fit(X, y, w)
    other = make("logistic", "rbf", cv=PredefinedSplit(np.arange(5, 40) % 3))
    other.fit(X[5:], y[5:])
    assert one.n_iter_ == other.n_iter_


def test_what_is_refused():
    X, y = classification(17, 20)
    for bad in ([np.arange(10), np.arange(10, 20)], [[0, 1], [2, 3]], [[1, 2, 3]]):
        with pytest.raises(ValueError, match=r"test rows|pairs of training"):
            make("logistic", cv=bad).fit(X, y)
    for bad in ([25], [-1], [0.5]):
        with pytest.raises(ValueError, match="test rows of cv"):
            make("logistic", cv=[([0], bad)]).fit(X, y)
    with pytest.raises(ValueError, match="groups contains NaN"):
        make("logistic").fit(X, y, groups=[np.nan, *range(19)])
    with pytest.raises(ValueError, match="must be disjoint"):
        make("logistic", cv=ShuffleSplit(4, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="groups are for stopping='cv'"):
        make("logistic", stopping="aic").fit(X, y, groups=np.arange(20))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make("logistic").fit(X, y, groups=np.arange(19))
    with pytest.raises(ValueError, match="no row to learn from"):
        make("logistic", cv=[(np.arange(0), np.arange(20))]).fit(X, y)
    with pytest.raises(ValueError, match="are for stopping='validation'"):
        make("logistic").fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="at least 2"):
        make("squared", stopping="cv").fit(X[:1], [1.0])
    with pytest.raises(ValueError, match="at least 2 groups"):
        make("logistic").fit(X, y, groups=np.zeros(20))


def test_a_class_with_one_row_is_told():
    X, y = classification(18, 30)
    y[0] = 7
    found = caught(make("logistic", "rbf").fit, X, y)
    assert any("[7]" in str(warning.message) for warning in found)


def test_classes_without_noise():
    """Two clouds far apart: a row with a label by chance ends what would go on."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 20.0 * (y[:, None] - 0.5)
    model = make("logistic", "linear", gamma=None)
    assert not caught(model.fit, X, y)
    path = model.stopping_path_
    assert (np.diff(path["criterion"]) < 0.0).all()
    own = model.predict_proba(X)[np.arange(60), y]
    assert 0.95 < own.min()
    assert own.max() < 1.0 - 1e-5


@pytest.mark.parametrize("loss", ["logistic", "softmax", "exponential", "each"])
def test_penalty(loss):
    """A quarter of a row whose label is drawn by chance, for weights as well."""
    X, y = problem("softmax" if loss == "each" else loss, 19, n=60)
    w = np.random.default_rng(0).integers(1, 4, size=60).astype(float)
    cv = KFold(3)
    options = {"cv": cv, "solver": "gd", "max_iter": 100}
    name = "exponential" if loss == "each" else loss
    with at_the_last_step():
        model = make(name, "rbf", **options).fit(X, y, w)
    path = model.stopping_path_
    k = int(np.argmin(path["criterion"] + path["penalty"]))
    assert model.n_iter_ == path["t"][k]
    total = 0.0
    for train, test in cv.split(X):
        with at_the_last_step():
            one = make(
                name, "rbf", solver="gd", stopping=None, max_iter=int(path["t"][k]),
                step_size=None if name == "exponential" else (
                    model.step_size_ * w[train].sum() / w.sum()
                ),
            ).fit(X[train], y[train], w[train])  # fmt: skip
        total -= w[test] @ np.log(one.predict_proba(X[test])).mean(axis=1)
    n = w.sum()
    expected = (0.25 + 10.0 / n) / n * total / n
    assert_allclose(path["penalty"][k], expected, rtol=1e-5)


def test_targets_without_noise_are_told():
    """A limit that the loss still falls at."""
    X, _ = regression(20, n=60)
    model = EarlyStoppedKernelBoost(
        "laplacian", gamma=1.0, loss="huber", delta=1.0, max_iter=100
    )
    found = caught(model.fit, X, np.sin(3.0 * X[:, 0]))
    assert any(issubclass(w.category, ConvergenceWarning) for w in found)
