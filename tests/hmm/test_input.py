"""What users should not pass, and what they may."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hmm.toy import (
    COVARIANCES,
    caught,
    fit_from,
    fit_symmetric,
    random_sequences,
    random_theta,
    rows,
    separated,
    symmetric_data,
    unfinished,
)
from skbounds.hmm import BaumWelchHMM

structures = pytest.mark.parametrize("structure", ["free", "symmetric"])
every_covariance = pytest.mark.parametrize("covariance_type", COVARIANCES)


def make(structure="free", **options):
    """An estimator of a structure."""
    if structure == "symmetric":
        options = {"sigma": 1.0, **options}
    return BaumWelchHMM(structure=structure, **{"random_state": 0, **options})


def data(n=30, d=2):
    """Rows whose mean is about zero."""
    return symmetric_data(0, n, np.linspace(1.5, 0.5, d), 0.3)[0]


def state(model):
    """What a model holds, with arrays as bytes."""
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(model).items()
    }


def refused(model, X, match, error=ValueError, **more):
    """The fit fails with a message and leaves the model as it was, fitted or not."""
    for fitted in (False, True):
        model = clone(model)
        if fitted:
            params = model.get_params()
            model.set_params(**make().get_params())
            with unfinished():
                model.fit(data())
            model.set_params(**params)
        before = state(model)
        with pytest.raises(error, match=match):
            model.fit(X, **more)
        assert state(model) == before


# ---------------------------------------------------------------------------- sequences


@structures
@pytest.mark.parametrize(
    "lengths",
    [[10, 10], [10, 25], [30, 0], [40, -10], [15.5, 14.5], [], [[15], [15]], 30],
    ids=["short", "long", "zero", "negative", "half", "none", "column", "number"],
)
def test_wrong_lengths(structure, lengths):
    """Positive integers that add up to the number of rows, or an error."""
    X = data()
    refused(make(structure), X, "lengths", lengths=lengths)
    model = make(structure)
    with unfinished():
        model.fit(X)
    for name in ("predict", "predict_proba", "score", "score_samples", "decode", "bic"):
        with pytest.raises(ValueError, match="lengths"):
            getattr(model, name)(X, lengths=lengths)


@structures
def test_lengths_and_labels(structure):
    """Never both."""
    X, ids = data(), np.repeat([0, 1], 15)
    both = {"sequence_id": ids, "lengths": [15, 15]}
    refused(make(structure), X, "sequence_id|lengths", **both)
    with unfinished():
        model = make(structure).fit(X)
    for name in ("predict", "predict_proba", "score", "score_samples", "decode", "aic"):
        with pytest.raises(ValueError, match=r"sequence_id|lengths"):
            getattr(model, name)(X, **both)


@structures
@pytest.mark.parametrize(
    "ids",
    [np.tile([0, 1], 15), np.repeat([0, 1, 0], 10), np.repeat(["b", "a", "b"], 10)],
    ids=["alternating", "returning", "strings"],
)
def test_interleaved_labels(structure, ids):
    """Rows of equal labels are one sequence; results are in the order of the rows."""
    X = data()
    order = np.argsort(
        [list(dict.fromkeys(ids.tolist())).index(i) for i in ids.tolist()],
        kind="stable",
    )
    with unfinished():
        model = make(structure).fit(X, sequence_id=ids)
        sorted_ = make(structure).fit(X[order], sequence_id=ids[order])
    assert_array_equal(model.history_, sorted_.history_)
    for name in ("predict", "predict_proba", "filter_proba", "score_samples"):
        found = getattr(model, name)(X, sequence_id=ids)
        expected = getattr(sorted_, name)(X[order], sequence_id=ids[order])
        assert_array_equal(found[order], expected)
    log_prob, states = model.decode(X, sequence_id=ids)
    expected = sorted_.decode(X[order], sequence_id=ids[order])
    assert log_prob == expected[0]
    assert_array_equal(states[order], expected[1])


def test_wrong_number_of_labels():
    """One per row."""
    X = data()
    for ids in (np.zeros(29), np.zeros(31), np.zeros((30, 2)), 3):
        refused(make(), X, ".", sequence_id=ids)


@pytest.mark.parametrize("label", [None, float("nan"), np.datetime64("NaT")])
def test_missing_labels(label):
    """One error for all that is missing; a row belongs to some sequence."""
    ids = np.array([label if i == 12 else "a" for i in range(30)], dtype=object)
    with pytest.raises(ValueError, match="sequence_id contains NaN, None or"):
        make("free").fit(data(), sequence_id=ids)


@pytest.mark.parametrize(
    "labels",
    [
        [3, -1, 2],
        ["z", "a", "m"],
        [0.5, -2.5, 1e9],
        np.array([1, "a", 2.5], dtype=object),
        np.array(["2020-01-03", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        [True, False],
    ],
    ids=["integers", "strings", "floats", "mixed", "dates", "booleans"],
)
@structures
def test_any_labels(structure, labels):
    """Labels only have to differ; their order does not matter."""
    X = data()
    sizes = [12, 10, 8]
    if len(labels) == 2:
        sizes = [12, 18]
    ids = np.repeat(np.asarray(labels), sizes)
    with unfinished():
        one = make(structure, max_iter=5).fit(X, sequence_id=ids)
        two = make(structure, max_iter=5).fit(X, lengths=sizes)
        three = make(structure, max_iter=5).fit(X, sequence_id=ids.tolist())
    assert_array_equal(one.history_, two.history_)
    assert_array_equal(one.history_, three.history_)
    P = one.predict_proba(X, sequence_id=ids)
    assert_array_equal(P, two.predict_proba(X, lengths=sizes))


def test_labels_of_pandas():
    """Series, with any index, and categories."""
    pd = pytest.importorskip("pandas")
    X = data()
    ids = pd.Series(np.repeat(["b", "a"], 15), index=np.arange(30)[::-1])
    with unfinished():
        one = make(max_iter=5).fit(X, sequence_id=ids)
        two = make(max_iter=5).fit(X, sequence_id=ids.astype("category"))
        three = make(max_iter=5).fit(X, lengths=pd.Series([15, 15]))
    assert_array_equal(one.history_, two.history_)
    assert_array_equal(one.history_, three.history_)


def test_lengths_of_other_types():
    """Tuples, arrays of small integers, whole floats."""
    X = data()
    fits = []
    for lengths in ([10, 20], (10, 20), np.array([10, 20], np.uint8), [10.0, 20.0]):
        with unfinished():
            fits.append(make(max_iter=5).fit(X, lengths=lengths).history_)
    for history in fits[1:]:
        assert_array_equal(history, fits[0])
    many = np.full(300, 1, dtype=np.uint8)
    with unfinished():
        make(max_iter=2).fit(data(300), lengths=many)


# ------------------------------------------------------------------------------- starts


def test_means_that_coincide():
    """EM cannot part states that start alike."""
    X = data()
    refused(make(means_init=np.ones((2, 2))), X, "means_init|mean")
    means = [[0.0, 1.0], [2.0, 2.0], [0.0, 1.0]]
    refused(make(n_components=3, means_init=means), X, "means_init|mean")
    refused(make("symmetric", means_init=[0.0, 0.0]), X, "means_init|mean")
    refused(make("symmetric", means_init=np.zeros((2, 2))), X, "means_init|mean")


WRONG_STARTS = {
    "means shape": {"means_init": np.ones((3, 2))},
    "means features": {"means_init": np.eye(3)[:2]},
    "means nan": {"means_init": [[0.0, np.nan], [1.0, 1.0]]},
    "transmat shape": {"transmat_init": np.full((3, 3), 1 / 3)},
    "transmat sum": {"transmat_init": [[0.5, 0.6], [0.5, 0.5]]},
    "transmat sign": {"transmat_init": [[1.5, -0.5], [0.5, 0.5]]},
    "transmat nan": {"transmat_init": [[np.nan, 0.5], [0.5, 0.5]]},
    "startprob sum": {"startprob_init": [0.5, 0.6]},
    "startprob sign": {"startprob_init": [1.5, -0.5]},
    "startprob shape": {"startprob_init": [0.2, 0.3, 0.5]},
    "covariances shape": {"covariances_init": np.eye(2)},
    "covariances sign": {"covariances_init": np.array([np.eye(2), -np.eye(2)])},
    "covariances rank": {"covariances_init": np.array([np.eye(2), np.ones((2, 2))])},
    "covariances asymmetric": {
        "covariances_init": np.array([np.eye(2), [[1.0, 0.5], [0.0, 1.0]]])
    },
    "covariances nan": {"covariances_init": np.full((2, 2, 2), np.nan)},
}


@pytest.mark.parametrize("kind", WRONG_STARTS)
def test_wrong_start(kind):
    """Shapes, signs, sums and missing values; the message names the parameter."""
    options = WRONG_STARTS[kind]
    refused(make(covariance_type="full", **options), data(), next(iter(options)))


WRONG_SYMMETRIC = {
    "no sigma": {"sigma": None},
    "zero sigma": {"sigma": 0.0},
    "negative sigma": {"sigma": -1.0},
    "three states": {"n_components": 3},
    "one state": {"n_components": 1},
    "bound of one": {"mixing_bound": 1.0},
    "bound of zero": {"mixing_bound": 0.0},
    "means not opposite": {"means_init": [[1.0, 0.0], [1.0, 1.0]]},
    "means of one feature": {"means_init": [1.0]},
    "means of three": {"means_init": np.ones((3, 2))},
    "transmat": {"transmat_init": [[0.7, 0.3], [0.4, 0.6]]},
}


@pytest.mark.parametrize("kind", WRONG_SYMMETRIC)
def test_wrong_symmetric(kind):
    """The symmetric model has two states, a known sigma and a symmetric chain."""
    options = WRONG_SYMMETRIC[kind]
    named = {"transmat": "transmat_init"}.get(kind, next(iter(options)))
    refused(make("symmetric", **options), data(), named)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0},
        {"covariance_type": "round"},
        {"structure": "none"},
        {"startprob": "uniform"},
        {"window": 0},
        {"window": 1.5},
        {"decoder": "sum"},
        {"n_init": 0},
        {"init": "zeros"},
        {"max_iter": 0},
        {"tol": -1.0},
        {"reg_covar": -1e-9},
        {"random_state": "x"},
    ],
    ids=lambda options: "-".join(map(str, *options.items())),
)
def test_wrong_parameter(options):
    """Parameters are checked when the model is fitted."""
    refused(make(**options), data(), next(iter(options)))


# ----------------------------------------------------------------------------- features


@structures
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite(structure, bad):
    """At fit and afterwards; missing entries are integrated out."""
    X = data()
    with unfinished():
        model = make(structure).fit(X)
    X = X.copy()
    X[3, 1] = bad
    refused(make(structure), X, "NaN|infinity")
    for name in ("predict", "predict_proba", "score", "score_samples", "decode"):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            getattr(model, name)(X)


@structures
def test_other_shapes(structure):
    """One-dimensional, empty, complex and sparse input."""
    X = data()
    refused(make(structure), X[:, 0], "2D")
    refused(make(structure), X[:0], "0 sample")
    refused(make(structure), X[:, :0], "0 feature")
    refused(make(structure), X + 1j, "[Cc]omplex")
    refused(make(structure), sparse.csr_array(X), "[Ss]parse", TypeError)
    with unfinished():
        model = make(structure).fit(X)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])


def test_one_row():
    """One state describes one row; two states need two."""
    model = make(n_components=1).fit([[1.0, 2.0]])
    assert_allclose(model.means_, [[1.0, 2.0]])
    assert_allclose(model.predict_proba([[0.0, 0.0]]), 1.0)
    refused(make(n_components=2), [[1.0, 2.0]], "n_samples ?= ?1|1 sample")
    model = make("symmetric", means_init=[1.0, 0.5])
    caught(model.fit, [[1.0, 2.0]])
    for value in (model.means_, model.transmat_, model.history_):
        assert np.isfinite(value).all()
    assert_allclose(model.transmat_, 0.5)


@pytest.mark.parametrize("d", [6, 40])
def test_more_features_than_rows(d):
    """Full covariances are singular then; a little variance helps."""
    X = np.random.default_rng(0).normal(size=(6, d))
    for kind in ("full", "tied"):
        model = make(n_components=1, covariance_type=kind, reg_covar=0.0)
        refused(model, X, "reg_covar")
    with unfinished():
        model = make(covariance_type="full", reg_covar=0.1).fit(X)
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.score_samples(X)).all()


@every_covariance
def test_constant_column(covariance_type):
    """A column without variance needs `reg_covar`, and says so."""
    X = data(40, 2)
    X[:, 1] = 3.0
    options = {"covariance_type": covariance_type}
    if covariance_type != "spherical":
        refused(make(reg_covar=0.0, **options), X, "reg_covar")
    with unfinished():
        model = make(**options).fit(X)
    assert_allclose(model.means_[:, 1], 3.0, rtol=1e-12)
    assert np.isfinite(model.history_).all()
    if covariance_type in ("full", "diag"):
        assert_allclose(model.covariances_[:, 1, 1], 9e-6, rtol=1e-6)
        with unfinished():
            model = make(reg_covar=1e-6, **options).fit(X)
        assert_allclose(model.covariances_[:, 1, 1], 1e-6, rtol=1e-6)


@every_covariance
@pytest.mark.parametrize("n", [5, 50])
@pytest.mark.parametrize("s", [1, 2, 3])
def test_constant_rows(covariance_type, n, s):
    """All rows alike: a fit without nan, or a clear refusal."""
    X = np.full((n, 2), 7.0)
    model = make(n_components=s, covariance_type=covariance_type)
    caught(model.fit, X)
    for name in ("means_", "covariances_", "transmat_", "startprob_", "history_"):
        assert np.isfinite(getattr(model, name)).all()
    assert_allclose(model.means_, 7.0, atol=1e-3)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    refused(clone(model).set_params(reg_covar=0.0), X, "reg_covar")


@every_covariance
def test_collapse(covariance_type):
    """A state that takes a single row, nothing added: refused, with a way out."""
    X = np.vstack([data(), [[1e3, 1e3]]])
    options = {"covariance_type": covariance_type, "means_init": [[0, 0], [1e3, 1e3]]}
    if covariance_type != "tied":
        refused(make(reg_covar=0.0, **options), X, "reg_covar")
    with unfinished():
        model = make(**options).fit(X)
    assert np.isfinite(model.history_).all()
    assert_allclose(model.means_[1], [1e3, 1e3])


@structures
def test_float32(structure):
    """Single precision in, the same model out."""
    X = data(80).astype(np.float32)
    with unfinished():
        one = make(structure).fit(X)
        two = make(structure).fit(X.astype(np.float64))
    assert_allclose(one.means_, two.means_, rtol=1e-5)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-4, atol=1e-5)
    assert_allclose(one.score(X), two.score(X), rtol=1e-5)


@structures
def test_integers_lists_and_order_in_memory(structure):
    """Anything that is a table of numbers."""
    X = np.round(3.0 * data(40)).astype(int)
    options = {"sigma": 3.0} if structure == "symmetric" else {}
    with unfinished():
        base = make(structure, **options).fit(X.astype(float))
        for other in (X, X.tolist(), np.asfortranarray(X.astype(float))):
            model = make(structure, **options).fit(other)
            assert_allclose(model.means_, base.means_, rtol=1e-9)
            assert_allclose(model.predict_proba(other), base.predict_proba(X))
        wide = np.repeat(X.astype(float), 2, axis=0)[::2]
        assert_allclose(make(structure, **options).fit(wide).means_, base.means_)


@structures
def test_input_is_not_changed(structure):
    """Neither rows nor starts, also where they are read-only."""
    X = data(40)
    X.setflags(write=False)
    ids = np.repeat([1, 0], 20)
    ids.setflags(write=False)
    with unfinished():
        model = make(structure).fit(X, sequence_id=ids)
    model.predict_proba(X, sequence_id=ids)
    model.decode(X, sequence_id=ids)
    assert_array_equal(X, data(40))


def test_data_frames():
    """Names are kept, and asked for again."""
    pd = pytest.importorskip("pandas")
    X = data()
    frame = pd.DataFrame(X, columns=["height", "weight"])
    with unfinished():
        model = make().fit(frame)
        plain = make().fit(X)
    assert_array_equal(model.feature_names_in_, ["height", "weight"])
    assert not hasattr(plain, "feature_names_in_")
    assert_array_equal(model.means_, plain.means_)
    assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["weight", "height"]])


# --------------------------------------------------------------------------- odd models


@every_covariance
def test_empty_state(covariance_type):
    """A state without rows keeps its parameters; one warning, never nan."""
    X = data(50)
    far = np.array([[0.0, 0.0], [1e6, 1e6], [-0.5, 0.5]])
    C = np.array([np.eye(2)] * 3)
    A = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4]])
    model = make(
        n_components=3,
        covariance_type=covariance_type,
        means_init=far,
        covariances_init=C,
        transmat_init=A,
        max_iter=20,
    )
    found = caught(model.fit, X)
    assert [w.category for w in found] == [UserWarning]
    assert_array_equal(model.means_[1], far[1])
    if covariance_type != "tied":
        assert_array_equal(model.covariances_[1], C[1])
    assert_allclose(model.transmat_[1], A[1], rtol=1e-12)
    assert_allclose(model.transmat_[[0, 2], 1], 0.0, atol=1e-12)
    assert_allclose(model.startprob_[1], 0.0, atol=1e-12)
    for name in ("means_", "covariances_", "transmat_", "startprob_", "history_"):
        assert np.isfinite(getattr(model, name)).all()
    assert_allclose(model.transmat_.sum(axis=1), 1.0)
    two = make(
        covariance_type=covariance_type,
        means_init=far[[0, 2]],
        covariances_init=C[:2],
        transmat_init=A[np.ix_([0, 2], [0, 2])] / 0.7,
        max_iter=20,
    )
    with unfinished():
        two.fit(X)
    assert_allclose(model.means_[[0, 2]], two.means_, rtol=1e-6, atol=1e-9)


def test_no_warning_without_need():
    """An ordinary fit is silent."""
    sequences, _, _ = separated(1)
    X, lengths = rows(sequences)
    assert not caught(make(n_components=3).fit, X, lengths=lengths)
    assert not caught(make("symmetric").fit, data(200))


@pytest.mark.parametrize("shift", [3.0, 100.0])
def test_data_off_centre(shift):
    """The symmetric model says when the rows are not around zero."""
    X = data(200) + shift
    found = caught(make("symmetric").fit, X)
    assert any("mean" in str(w.message) for w in found)
    assert all(w.category is UserWarning for w in found)
    assert not caught(make("symmetric").fit, data(200))


def test_edge_of_the_feasible_set():
    """A warning says that zeta stopped at its limit."""
    X, _ = symmetric_data(2, 300, [3.0], 0.99)
    model = make("symmetric", mixing_bound=0.5)
    found = caught(model.fit, X)
    assert any("mixing_bound" in str(w.message) for w in found)
    assert_allclose(model.transmat_[0, 0], 0.75)
    assert_allclose(model.rho_mix_, 0.5)


def test_as_many_states_as_rows():
    """Each row its state."""
    X = np.arange(5.0)[:, None]
    with unfinished():
        model = make(n_components=5, reg_covar=1e-3).fit(X)
    assert np.isfinite(model.history_).all()
    refused(make(n_components=6), X, "n_components|n_samples")


def test_all_rows_their_own_sequence():
    """A mixture: nothing is known of the transitions, nothing is nan."""
    X = data(60)
    with unfinished():
        model = make().fit(X, lengths=[1] * 60)
    assert_allclose(model.transmat_, 0.5)
    P = model.predict_proba(X, lengths=[1] * 60)
    shuffled = np.random.default_rng(0).permutation(60)
    Q = model.predict_proba(X[shuffled], lengths=[1] * 60)
    assert_allclose(P[shuffled], Q, rtol=1e-12)


def test_starts_that_are_lists():
    """Lists and integers are fine as starts."""
    X = data(40)
    options = {
        "means_init": [[-1, 0], [1, 0]],
        "covariances_init": [[[1, 0], [0, 1]]] * 2,
        "transmat_init": [[0.5, 0.5], [0.5, 0.5]],
        "startprob_init": [1, 0],
    }
    with unfinished():
        one = make(max_iter=3, **options).fit(X)
        two = make(max_iter=3, **{k: np.array(v) for k, v in options.items()}).fit(X)
    assert_array_equal(one.history_, two.history_)


# ------------------------------------------------------------- the rest of scikit-learn


@structures
def test_clone_and_pickle(structure):
    """Copies are the same, fitted or not."""
    X = data()
    model = make(structure, means_init=[[-1.0, -0.5], [1.0, 0.5]], max_iter=7)
    copy = clone(model)
    with unfinished():
        model.fit(X)
        assert_array_equal(copy.fit(X).history_, model.history_)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.score(X) == model.score(X)
    assert again.truncation_bound(3) == model.truncation_bound(3)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert not hasattr(clone(model), "means_")


def test_parameters_after_the_fit():
    """A change of parameters has no effect before the next fit."""
    X = data()
    with unfinished():
        model = make().fit(X)
    P = model.predict_proba(X)
    model.set_params(structure="symmetric", covariance_type="full", window=1)
    assert_array_equal(model.predict_proba(X), P)


def test_refit():
    """A second fit knows nothing of the first."""
    X = data(60)
    with unfinished():
        model = make().fit(X)
        one = make().fit(X[:40])
        two = model.fit(X[:40])
    assert_array_equal(one.history_, two.history_)


@pytest.fixture
def routing():
    """Metadata routing for one test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_grid_search_over_sequences(routing):
    """Folds of whole sequences, with their labels sliced alongside."""
    sequences, _, _ = separated(3, n=480, n_sequences=8)
    X, lengths = rows(sequences)
    ids = np.repeat(["s" + str(k) for k in (5, 3, 7, 1, 0, 2, 6, 4)], lengths)
    model = make(n_init=2).set_fit_request(sequence_id=True)
    model.set_score_request(sequence_id=True)
    grid, cv = {"n_components": [1, 2, 3]}, GroupKFold(4)
    search = GridSearchCV(model, grid, cv=cv)
    with unfinished():
        search.fit(X, sequence_id=ids, groups=ids)
    assert search.best_params_ == {"n_components": 3}
    for k, (train, test) in enumerate(cv.split(X, groups=ids)):
        for s in (1, 2, 3):
            with unfinished():
                own = make(n_components=s, n_init=2).fit(
                    X[train], sequence_id=ids[train]
                )
            expected = own.score(X[test], sequence_id=ids[test])
            found = search.cv_results_[f"split{k}_test_score"][s - 1]
            assert_allclose(found, expected, rtol=1e-12)
            joined = own.score(X[test])
            assert s == 1 or abs(joined - expected) > 1e-6


def test_cross_validation(routing):
    """Scores of folds of whole sequences."""
    sequences, _, _ = separated(4, n=240, n_sequences=6)
    X, lengths = rows(sequences)
    ids = np.repeat(np.arange(6), lengths)
    model = make(n_components=2).set_fit_request(sequence_id=True)
    model.set_score_request(sequence_id=True)
    cv, params = GroupKFold(3), {"sequence_id": ids, "groups": ids}
    with unfinished():
        found = cross_val_score(model, X, cv=cv, params=params)
    for value, (train, test) in zip(found, cv.split(X, groups=ids), strict=True):
        with unfinished():
            own = make(n_components=2).fit(X[train], sequence_id=ids[train])
        expected = own.score(X[test], sequence_id=ids[test])
        assert_allclose(value, expected, rtol=1e-12)


def test_pipeline(routing):
    """The labels travel through a pipeline."""
    sequences, _, _ = separated(4, n=240, n_sequences=6)
    X, lengths = rows(sequences)
    ids = np.repeat(np.arange(6), lengths)
    model = make(n_components=3).set_fit_request(sequence_id=True)
    model.set_predict_request(sequence_id=True)
    pipe = make_pipeline(StandardScaler(), model).fit(X, sequence_id=ids)
    scaled = StandardScaler().fit_transform(X)
    own = make(n_components=3).fit(scaled, lengths=lengths)
    assert_array_equal(pipe[-1].history_, own.history_)
    found = pipe.predict(X, sequence_id=ids)
    assert_array_equal(found, own.predict(scaled, lengths=lengths))


def test_one_by_one():
    """Sequences one by one, or together: the same outputs."""
    theta = random_theta(5, 3, 2)
    sequences = random_sequences(5, [7, 1, 9], 2)
    X, lengths = rows(sequences)
    model = fit_from(sequences, theta, 2, reg_covar=0.1)
    for name in ("predict", "predict_proba", "score_samples"):
        each = [getattr(model, name)(x) for x in sequences]
        together = getattr(model, name)(X, lengths=lengths)
        assert_allclose(np.concatenate(each), together, rtol=1e-11, atol=1e-13)
    assert_allclose(
        sum(model.decode(x)[0] for x in sequences), model.decode(X, lengths=lengths)[0]
    )


def test_start_in_any_unit():
    """Default starts follow the scale and the location of the columns."""
    sequences, _, _ = separated(6)
    X, lengths = rows(sequences)
    base = make(n_components=3, reg_covar=0.0).fit(X, lengths=lengths)
    scale = np.array([1e5, 1e5])
    moved = make(n_components=3, reg_covar=0.0).fit(X * scale + 1e7, lengths=lengths)
    assert_allclose(moved.transmat_, base.transmat_, atol=1e-6)
    assert_allclose((moved.means_ - 1e7) / scale, base.means_, atol=1e-5)
    again = fit_symmetric([data(40) * 1e4], [1e4, 0.0], 0.5, 1e4, 5)
    once = fit_symmetric([data(40)], [1.0, 0.0], 0.5, 1.0, 5)
    assert_allclose(again.means_, 1e4 * once.means_, rtol=1e-9)
