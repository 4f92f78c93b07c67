"""Classes and features that appear later."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.fenchel_young import decode_mean
from sklearn.feature_extraction import DictVectorizer

from skbounds import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
)

from .test_delayed import assert_same_state
from .test_weights import reference

LEARNERS = {
    "mixture": {"learner": "mixture", "experts": (1.0, 4.0), "share": 0.0},
    "ogd": {"learner": "ogd", "feature_norm": 10.0},
    "adaptive": {"learner": "adaptive", "diameter": 3.0, "feature_norm": 10.0},
}


def make_stream(n=120, seed=0):
    """Rows of classes 0, 3, 1, 2 that appear one after the other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X @ rng.normal(size=(4, 4)) + rng.gumbel(size=(n, 4))).argmax(axis=1)
    kept = np.ones(n, bool)
    for code, begin in [(3, 5), (1, 20), (2, 60)]:
        kept[:begin] &= y[:begin] != code
    X, y = X[kept], y[kept]
    X[0], y[0] = X[y == 0][0], 0
    return X, y


# ------------------------------------------------------------ new classes


@pytest.mark.parametrize("learner", LEARNERS)
def test_late_classes_equal_a_slow_reference(learner):
    """Scores of classes to come are -inf, and their rows cost all."""
    X, y = make_stream()
    params = LEARNERS[learner]
    clf = FenchelYoungOnlineClassifier(
        feature_scaling="none", fit_intercept=False, random_state=0, **params
    )
    plays = clf.play(X, y, classes="grow")
    order = list(dict.fromkeys(y.tolist()))
    assert clf.classes_.tolist() == order
    codes = np.array([order.index(label) for label in y])
    late = [codes.tolist().index(code) for code in range(1, len(order))]
    experts = params.get("experts", ())
    played, losses, W, Z = reference(
        X, np.eye(4)[codes], np.ones(len(X)), learner, clf._step_,
        experts=experts, diameter=3.0, known=np.maximum.accumulate(codes),
    )  # fmt: skip
    means = [decode_mean("simplex", u, "randomized", "logistic") for u in played]
    errors = 1.0 - np.array(means)[np.arange(len(X)), codes]
    at_learning = errors.copy()
    at_learning[late] = errors[late] = 1.0
    assert_allclose(clf.expected_cumulative_loss_, errors.sum(), rtol=1e-10)
    assert_allclose(clf.cumulative_surrogate_loss_, clf.loss_scale_ * losses.sum())
    assert_allclose(clf._sum_of_gradients(), clf.loss_scale_ * Z.T, rtol=1e-8)
    assert (plays[late] != y[late]).all()
    assert clf.cumulative_loss_ == (plays != y).sum()
    assert not np.isin(plays[: late[0]], order[1:]).any()
    if learner != "mixture":
        assert_allclose(clf.coef_, W[0], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match=r"is 'grow', but|not in classes_"):
        FenchelYoungOnlineClassifier().partial_fit(X[:9], y[:9], classes=range(4)) \
            .partial_fit(X, y, classes="grow")  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("learner", ["auto", "ogd", "adaptive", "parameter_free"])
def test_a_growing_stream_may_be_cut_anywhere(learner, sparse):
    X, y = make_stream()
    X[np.abs(X) < 0.3] = 0.0
    names = np.array(["a", "long name", "c", "dd"])[y]
    rows = sp.csr_matrix(X) if sparse else X

    def make():
        return FenchelYoungOnlineClassifier(
            learner=learner, diameter=20.0, feature_norm=10.0, average=True,
            random_state=0,
        )  # fmt: skip

    whole, parts, single = make(), make(), make()
    plays = whole.play(rows, names, classes="grow")
    cut = [parts.play(rows[:1], names[:1], classes="grow")]
    for begin in range(1, len(y), 7):
        part = slice(begin, begin + 7)
        cut.append(parts.play(rows[part], names[part], classes="grow"))
    assert_array_equal(np.concatenate(cut), plays)
    assert_same_state(whole, parts)
    single.partial_fit(rows[:1], names[:1], classes="grow")
    tickets = FenchelYoungOnlineClassifier(**single.get_params())
    tickets.partial_fit(rows[:1], names[:1], classes="grow")
    for i in range(1, len(y)):
        x = (rows[i].indices, rows[i].data) if sparse else rows[i]
        assert single.learn_one(x, names[i]) == plays[i]
        tickets.learn_one(tickets.play_one(x), names[i])
    for other in (single, tickets):
        assert_same_state(whole, other)
        assert other._late_weight_ == 3.0
        assert_array_equal(other.classes_, whole.classes_)
    assert_array_equal(whole.predict_proba(rows), single.predict_proba(rows))


@pytest.mark.parametrize("learner", ["mixture", "ogd"])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_with_late_classes(learner, seed):
    """One more for each late class, for comparators with all classes in the end."""
    rng = np.random.default_rng(seed)
    n, K = 400, 6
    X = rng.normal(size=(n, 5))
    y = (3.0 * X @ rng.normal(size=(5, K))).argmax(axis=1)
    # Each class appears for the first time after the one before has been learnt well.
    y = np.minimum(y, np.arange(n) // 60)
    clf = FenchelYoungOnlineClassifier(
        learner=learner, feature_norm=10.0, random_state=0
    )
    clf.play(X, y, classes="grow")
    codes = {label: code for code, label in enumerate(clf.classes_.tolist())}
    late = len(codes) - 1
    assert late == K - 1
    for size in (0.3, 2.0):
        U = size * rng.normal(size=(K, 6))
        U = U if rng.random() < 0.5 else U * 0.0
        regret = clf.expected_cumulative_loss_ - clf.comparator_loss(U, X, y)
        norm = np.linalg.norm(U)
        assert regret <= clf.surrogate_regret_bound(norm)
        assert regret <= clf.surrogate_regret_certificate(coef=U) + 1e-9
        assert regret <= clf.surrogate_regret_certificate(norm) + 1e-9
    plain = FenchelYoungOnlineClassifier(
        learner=learner, feature_norm=10.0, random_state=0
    ).fit(X, y)  # fmt: skip
    assert_allclose(
        clf.surrogate_regret_bound(1.0), plain.surrogate_regret_bound(1.0) + late
    )


def test_without_the_extra_term_the_bound_would_fail():
    """Nothing but new classes: all rows are wrong, and zero weights cost little."""
    X = np.eye(30)
    clf = FenchelYoungOnlineClassifier("logistic", random_state=0, fit_intercept=False)
    clf.play(X, np.arange(30), classes="grow")
    assert clf.expected_cumulative_loss_ == 29.0
    # The known classes' losses: ln 1 + ln 2 + ... with zero weights.
    regret_within = 29.0 - np.log(np.arange(1, 31)).sum()
    assert regret_within <= clf.surrogate_regret_bound(0.0)
    assert clf.surrogate_regret_bound(0.0) >= 29.0


def test_rows_of_weight_zero_bring_classes_without_an_account():
    X, y = make_stream()
    weight = np.ones(len(y))
    first = int(np.flatnonzero(y == 3)[0])
    weight[first] = 0.0
    clf = FenchelYoungOnlineClassifier(random_state=0)
    plays = clf.play(X, y, classes="grow", sample_weight=weight)
    assert clf._late_weight_ == 2.0
    assert clf.n_samples_seen_ == len(y) - 1
    assert clf.cumulative_loss_ == (plays != y)[weight > 0].sum()


def test_new_classes_that_are_refused():
    X, y = make_stream()
    fixed = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="began with a fixed set"):
        fixed.partial_fit(X, y, classes="grow")
    growing = FenchelYoungOnlineClassifier(random_state=0)
    growing.partial_fit(X[:5], y[:5], classes="grow")
    for labels in (["a"] * 5, [None] * 5):
        with pytest.raises(ValueError, match=r"another kind|missing"):
            growing.partial_fit(X[:5], labels)
        with pytest.raises(ValueError, match=r"another kind|missing"):
            growing.learn_one(X[0], labels[0])
    with pytest.raises(ValueError, match="loss='logistic'"):
        FenchelYoungOnlineClassifier("sparsemax", learner="auto").partial_fit(
            X, y, classes="grow"
        )
    with pytest.raises(ValueError, match="is for FenchelYoungOnlineClassifier"):
        FenchelYoungOnlineOrdinalClassifier().partial_fit(X, y, classes="grow")
    labels = np.eye(4, dtype=int)[y]
    with pytest.raises(ValueError, match="is for FenchelYoungOnlineClassifier"):
        FenchelYoungOnlineMultilabelClassifier().partial_fit(X, labels, classes="grow")
    with pytest.raises(ValueError, match="began with"):
        growing.partial_fit(X, y, classes=[0, 9])


# ------------------------------------------------------------ new features


def make_rows(n=80, seed=0):
    """Return dicts with more and more names, numbers and texts, and their labels."""
    rng = np.random.default_rng(seed)
    rows, y = [], []
    for t in range(n):
        row = {f"f{j}": float(rng.normal()) for j in rng.choice(3 + t // 4, 3)}
        row["kind"] = str(rng.choice(["red", "green", "blue"]))
        row["flag"] = bool(rng.random() < 0.5)
        rows.append(row)
        y.append(int(row["flag"]) if rng.random() < 0.8 else 2)
    return rows, np.array(y)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("learner", ["auto", "ogd", "adaptive", "parameter_free"])
def test_growing_rows_equal_a_stream_that_knew_all_columns(learner, average):
    rows, y = make_rows()
    vectorizer = DictVectorizer(sort=False)
    X = vectorizer.fit_transform(rows)
    params = {
        "learner": learner,
        "diameter": 20.0,
        "feature_norm": 30.0,
        "average": average,
        "certificate": "all",
        "random_state": 0,
    }
    known = FenchelYoungOnlineClassifier(**params)
    plays = known.play(X, y, classes=range(3))
    dicts = FenchelYoungOnlineClassifier(**params)
    dicts.partial_fit(rows[:1], y[:1], classes=range(3))
    matrices = FenchelYoungOnlineClassifier(**params, new_features="grow")
    matrices.partial_fit(X[:1, : len(rows[0])], y[:1], classes=range(3))
    single = FenchelYoungOnlineClassifier(**params, new_features="grow")
    single.partial_fit(X[:1, : len(rows[0])], y[:1], classes=range(3))
    delayed = FenchelYoungOnlineClassifier(**params)
    delayed.partial_fit(rows[:1], y[:1], classes=range(3))
    for i in range(1, len(y)):
        width = max(1, X[: i + 1].indices.max() + 1)
        assert dicts.learn_one(rows[i], y[i]) == plays[i]
        assert matrices.play(X[i : i + 1, :width], y[i : i + 1])[0] == plays[i]
        x = X[i]
        assert single.learn_one((x.indices, x.data), y[i]) == plays[i]
        assert delayed.learn_one(delayed.play_one(rows[i]), y[i]) == plays[i]
    assert dicts.vocabulary_ == vectorizer.vocabulary_
    for other in (dicts, matrices, single, delayed):
        assert other.n_features_in_ == X.shape[1]
        assert_array_equal(other.coef_, known.coef_)
        assert_array_equal(other.intercept_, known.intercept_)
        assert_array_equal(other._state_["scalars"], known._state_["scalars"])
        U = np.random.default_rng(0).normal(size=(3, X.shape[1] + 1))
        assert_array_equal(
            other.surrogate_regret_certificate(coef=U),
            known.surrogate_regret_certificate(coef=U),
        )
        data = rows if other in (dicts, delayed) else X
        assert_allclose(other.predict_proba(data), known.predict_proba(X), rtol=1e-12)
        assert_allclose(
            other.comparator_loss(U, data, y), known.comparator_loss(U, X, y)
        )


def test_dicts_in_blocks_equal_dicts_one_by_one():
    rows, y = make_rows()
    one = FenchelYoungOnlineClassifier(random_state=0)
    one.partial_fit(rows[:20], y[:20], classes="grow")
    two = FenchelYoungOnlineClassifier(random_state=0)
    two.partial_fit(rows[:1], y[:1], classes="grow")
    one.partial_fit(rows[20:], y[20:])
    for row, label in zip(rows[1:], y[1:], strict=True):
        two.learn_one(row, label)
    assert one.vocabulary_ == two.vocabulary_
    assert_array_equal(one.coef_, two.coef_)
    copy = pickle.loads(pickle.dumps(two))
    assert copy.learn_one({"quite": 1.0, "new": "x"}, 1) in (0, 1, 2)
    fitted = FenchelYoungOnlineClassifier(random_state=0).fit(rows, y)
    assert fitted.predict(rows).shape == y.shape
    assert list(fitted.vocabulary_)[: len(rows[0])] == [
        *(name for name in rows[0] if name not in ("kind", "flag")),
        f"kind={rows[0]['kind']}",
        "flag",
    ]


def test_what_was_never_seen_changes_no_prediction():
    rows, y = make_rows()
    clf = FenchelYoungOnlineClassifier(random_state=0).fit(rows, y)
    before = clf.n_features_in_
    for row in rows[:5]:
        more = {**row, "unheard": 5.0, "of": "this"}
        assert_array_equal(clf.predict_proba([more]), clf.predict_proba([row]))
        assert_allclose(clf.predict_proba([more, more]), clf.predict_proba([row, row]))
    assert clf.n_features_in_ == before
    X = DictVectorizer().fit_transform(rows)
    clf = FenchelYoungOnlineClassifier(random_state=0, new_features="grow").fit(X, y)
    wide = sp.hstack([X, sp.csr_matrix(np.ones((len(y), 2)))], format="csr")
    assert_allclose(clf.predict_proba(wide), clf.predict_proba(X))
    assert_allclose(clf.predict_proba(X[:, :-3]).sum(axis=1), 1.0)


def test_rows_that_are_refused():
    rows, y = make_rows()
    X = np.random.default_rng(0).normal(size=(80, 3))
    dense = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X, y)
    for call in (
        lambda: dense.learn_one({"a": 1.0}, 0),
        lambda: dense.play_one({"a": 1.0}),
        lambda: dense.partial_fit(rows, y),
        lambda: dense.predict(rows),
    ):
        with pytest.raises(ValueError, match="began with a matrix"):
            call()
    clf = FenchelYoungOnlineClassifier(random_state=0).partial_fit(rows, y)
    known = dict(clf.vocabulary_)
    for call in (
        lambda: clf.learn_one(X[0], 0),
        lambda: clf.partial_fit(X, y),
        lambda: clf.partial_fit(sp.csr_matrix(X), y),
        lambda: clf.predict(X),
        lambda: clf.partial_fit([{"a": 1.0}, [2.0]], [0, 1]),
    ):
        with pytest.raises(ValueError, match="rows are dicts"):
            call()
    for value in (None, [1.0], 1j, np.nan, np.inf, 1e200):
        for call in (
            lambda value=value: clf.learn_one({"new": value}, 0),
            lambda value=value: clf.play_one({"new": value}),
            lambda value=value: clf.partial_fit([{"new": value}], [0]),
        ):
            with pytest.raises(ValueError, match=r"NaN|infinity|numbers|large|1e\+"):
                call()
    with pytest.raises(ValueError, match="not in classes_"):
        clf.learn_one({"other": 1.0}, 17)
    assert clf.vocabulary_.keys() - known.keys() <= {"other"}
    with pytest.raises(ValueError, match="needs sparse rows"):
        FenchelYoungOnlineClassifier(new_features="grow").partial_fit(X, y)
    sparse = FenchelYoungOnlineClassifier(random_state=0)
    sparse.partial_fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="features"):
        sparse.partial_fit(sp.csr_matrix(np.ones((80, 5))), y)
    with pytest.raises(ValueError, match="must lie in"):
        sparse.learn_one(([7], [1.0]), 0)
    growing = FenchelYoungOnlineClassifier(random_state=0, new_features="grow")
    growing.partial_fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match=r"must lie in|at most"):
        growing.learn_one(([2**31], [1.0]), 0)
    with pytest.raises(ValueError, match="must lie in"):
        growing.learn_one(([-1], [1.0]), 0)


# ------------------------------------------------------------ labels of all kinds


@pytest.mark.parametrize("kind", ["object", "str", "days", "nanoseconds", "pandas"])
def test_labels_of_every_kind_can_grow(kind):
    """Batches, single rows and tickets; the classes keep their kind."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    labels = np.array(list("aabbccab"))
    if kind == "object":
        labels = labels.astype(object)
    elif kind in ("days", "nanoseconds", "pandas"):
        days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "datetime64[D]")
        labels = days[np.array([0, 0, 1, 1, 2, 2, 0, 1])]
        if kind != "days":
            labels = labels.astype("datetime64[ns]")
    if kind == "pandas":
        pd = pytest.importorskip("pandas")
        labels = pd.Series(labels)
    values = list(labels)
    whole = FenchelYoungOnlineClassifier(random_state=0)
    whole.partial_fit(X, labels, classes="grow")
    parts = FenchelYoungOnlineClassifier(random_state=0)
    parts.partial_fit(X[:1], labels[:1], classes="grow")
    for i in range(1, 5):
        parts.learn_one(X[i], values[i])
    for i in range(5, 8):
        parts.learn_one(parts.play_one(X[i]), values[i])
    assert_array_equal(parts.classes_, whole.classes_)
    assert parts.classes_.dtype.kind == np.asarray(labels).dtype.kind
    assert len(whole.classes_) == 3
    assert_same_state(whole, parts)
    whole.partial_fit(X, labels, classes=whole.classes_[::-1])


def test_lists_and_columns_of_text_may_take_turns():
    X = np.ones((2, 2))
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(X, ["a", "b"], classes="grow")
    clf.partial_fit(X, np.array(["b", "longer"], dtype=object))
    assert clf.classes_.tolist() == ["a", "b", "longer"]


def snapshot(clf):
    def copy(value):
        if isinstance(value, dict):
            return {key: copy(item) for key, item in value.items()}
        return value.copy() if isinstance(value, np.ndarray) else value

    return {k: copy(v) for k, v in vars(clf).items() if k != "_light"}


def assert_unchanged(clf, before):
    now = snapshot(clf)
    assert now.keys() == before.keys()
    for key, value in before.items():
        np.testing.assert_equal(now[key], value, err_msg=key)


@pytest.mark.parametrize("growing", [False, True])
def test_what_is_refused_changes_nothing(growing):
    rows, y = make_rows(20)
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(rows, y, classes="grow" if growing else None)
    before = snapshot(clf)
    new = {"quite new": 1.0}
    for call in (
        lambda: clf.learn_one(new, "BAD"),
        lambda: clf.learn_one(new, None),
        lambda: clf.learn_one(new, np.nan),
        lambda: clf.learn_one(new, 0, sample_weight=-1.0),
        lambda: clf.learn_one({**new, "f1": None}, 0),
        lambda: clf.learn_one({**new, "f1": 10**400}, 0),
        lambda: clf.learn_one({**new, "f1": np.inf}, 0),
        lambda: clf.play_one({**new, "f1": np.nan}),
        lambda: clf.play_one(new, sample_weight=-1.0),
        lambda: clf.partial_fit([new, new], [0, "BAD"]),
        lambda: clf.partial_fit([new, {"f1": []}], [0, 1]),
        lambda: clf.comparator_loss(np.zeros((3, len(clf.vocabulary_) + 1)), rows,
                                    [77] * 20),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            call()
        assert_unchanged(clf, before)
    assert clf.predict([new]).shape == (1,)


def test_one_feature_by_two_names():
    """The number "a=b" and the category "b" of "a", as in DictVectorizer."""
    row = {"a=b": 2.0, "a": "b"}
    for order in (row, dict(reversed(row.items()))):
        clf = FenchelYoungOnlineClassifier(random_state=0, feature_scaling="none")
        clf.partial_fit([order, {}], [0, 1])
        assert clf.vocabulary_ == {"a=b": 0}
        assert clf._state_["scalars"][8] == 3.0**2 + 2.0
    assert DictVectorizer().fit_transform([row]).toarray().tolist() == [[3.0]]


def test_weight_zero_brings_a_class_row_by_row_too():
    X = np.random.default_rng(0).normal(size=(4, 2))
    one = FenchelYoungOnlineClassifier(random_state=0)
    one.partial_fit(X, [0, 1, 0, 1], classes="grow", sample_weight=[1, 0, 1, 1])
    two = FenchelYoungOnlineClassifier(random_state=0)
    two.partial_fit(X[:1], [0], classes="grow")
    for x, label, weight in zip(X[1:], [1, 0, 1], [0.0, 1.0, 1.0], strict=True):
        two.learn_one(x, label, sample_weight=weight)
    assert_same_state(one, two)
    assert_array_equal(one.classes_, two.classes_)


def test_closed_accounts_stay_closed():
    """After further passes: weights, features and classes that come later."""
    rows, y = make_rows(30)
    clf = FenchelYoungOnlineClassifier(random_state=0, max_iter=2).fit(rows, y)
    U = np.random.default_rng(0).normal(size=(3, clf.n_features_in_ + 1))
    before = (
        clf.surrogate_regret_bound(1.0),
        clf.draw_margin(0.05),
        clf.error_interval(),
        clf.surrogate_regret_certificate(coef=U),
    )
    clf.partial_fit([{"later": 1.0}] * 2, [0, 1], sample_weight=[1000.0, 1000.0])
    wider = np.hstack([U[:, :-1], np.ones((3, 1)), U[:, -1:]])
    after = (
        clf.surrogate_regret_bound(1.0),
        clf.draw_margin(0.05),
        clf.error_interval(),
        clf.surrogate_regret_certificate(coef=wider),
    )
    np.testing.assert_equal(after[:3], before[:3])
    assert_allclose(after[3], before[3], rtol=1e-12)
