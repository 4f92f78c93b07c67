"""What reaches compiled code is what it can take; anything else is an error."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from common import instances, make_data
from numpy.testing import assert_array_equal
from sklearn.base import clone

from native.calls import (
    all_calls,
    call,
    is_written,
    stream_arguments,
    trial_arguments,
)
from skbounds import (
    BaumWelchHMM,
    BestArmTest,
    FenchelYoungOnlineClassifier,
    _core,
    simulate_best_arm_tests,
)

PREDICTORS = [each for each in instances() if hasattr(each, "predict")]
CALLS = all_calls()
ARRAYS = [
    (name, key)
    for name, arguments in CALLS.items()
    for key, value in arguments.items()
    if isinstance(value, np.ndarray)
]
by_array = pytest.mark.parametrize(
    ("name", "key"), ARRAYS, ids=[f"{name}-{key}" for name, key in ARRAYS]
)


def unaligned(array):
    """Return a copy that starts one byte after where its type should."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    result = memory[1:].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def every_second(array):
    """Return equal numbers, every second of a longer array."""
    longer = np.repeat(array, 2, axis=-1)
    return longer[..., ::2]


OTHER_TYPE = {"f": np.float32, "i": np.int32, "b": np.int8, "c": np.complex64}
SPOILT = {
    "another type": lambda a: a.astype(OTHER_TYPE[a.dtype.kind]),
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "steps": every_second,
    "backwards": lambda a: a[..., ::-1],
    "another dimension": lambda a: a[None],
    "a list": lambda a: a.tolist(),
    "nothing": lambda a: None,
    "no rows": lambda a: a[:0],
    "one more": lambda a: np.concatenate([a, a[-1:]]),
    "unaligned": unaligned,
    "read-only": lambda a: a,
}


@by_array
@pytest.mark.parametrize("kind", SPOILT)
def test_spoilt_arrays_are_refused(name, key, kind):
    """Before anything is read or written: TypeError or ValueError."""
    arguments = {**all_calls()[name]}
    good = arguments[key]
    if kind in ("swapped bytes", "unaligned") and good.dtype == bool:
        kind = "another type"
    if kind == "read-only" and not is_written(name, key):
        kind = "nothing"
    spoilt = SPOILT[kind](good)
    if (name, key, kind) == ("fenchel_young.features_dense", "X", "another type"):
        # It takes both precisions.
        spoilt = good.astype(np.float16)
    if kind in ("steps", "backwards") and spoilt.flags.c_contiguous:
        # A last axis of length one has no steps.
        spoilt = None
    if kind == "read-only":
        spoilt.flags.writeable = False
    arguments[key] = spoilt
    # Longer or empty lists of what stands by itself are nothing wrong.
    harmless = {
        ("hmm.viterbi", "starts"), ("hmm.forward", "starts"),
        ("hmm.backward", "starts"), ("hmm.windows", "starts"),
        ("hmm.fields", "starts"),
        ("pac_bayes.solve", "outputs"), ("pac_bayes.update_outputs", "targets"),
        ("pac_bayes.update_outputs", "outputs"), ("sequential.sum_of_gamma", "recent"),
        ("sequential.sum_of_gamma", "table"),
    }  # fmt: skip
    before = {k: np.copy(v) for k, v in arguments.items() if k != key}
    if (name, key) in harmless and kind in ("no rows", "one more"):
        try:
            call(name, arguments)
        except (TypeError, ValueError):
            pass
        return
    # A bool array in a place of numbers, or numbers of another size.
    with pytest.raises((TypeError, ValueError)):
        call(name, arguments)
    for k, value in before.items():
        assert_array_equal(arguments[k], value)


@pytest.mark.parametrize("name", CALLS)
def test_good_calls_go_through(name):
    """Otherwise the test above would say nothing."""
    call(name, all_calls()[name])


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("hmm.forward", {"starts": np.array([0, 13])}, "starts: beyond"),
        ("hmm.forward", {"starts": np.array([-1, 12])}, "starts: beyond"),
        ("hmm.forward", {"starts": np.array([0, 5, 5, 12])}, "empty sequence"),
        ("hmm.log_pass", {"first": 9}, "first, stop"),
        ("hmm.windows", {"reach": -1}, "reach"),
        ("hmm.fields_in_blocks", {"n_lanes": 0}, "n_lanes"),
        ("hmm.fields_in_blocks", {"n_lanes": 13}, "n_lanes"),
        ("fenchel_young.predict_rows", {"loss": 7}, "loss: unknown"),
        ("fenchel_young.predict_rows", {"loss": -1}, "loss: unknown"),
        ("fenchel_young.respond_rows", {"targets": np.full((7, 1), 4)}, "out of range"),
        ("fenchel_young.respond_rows", {"targets": np.full((7, 1), -1)}, "of range"),
        ("fenchel_young.respond_rows", {"targets": np.zeros((7, 2), int)}, "columns"),
        ("fenchel_young.nearest_rows", {"structure": 6}, "structure: unknown"),
        ("fenchel_young.decode_rows", {"decoding": 4}, "decoding: unknown"),
        ("fenchel_young.decode_rows", {"decoding": 3}, "not for this structure"),
        ("fenchel_young.decode_rows", {"uniforms": np.zeros((7, 1))}, "too few"),
        ("fenchel_young.features_dense", {"scaling": 2}, "scaling"),
        ("pac_bayes.solve", {"slot_of": np.full(20, 20)}, "beyond the pool"),
        ("pac_bayes.solve", {"segments": np.array([[1, 0, 20]])}, "out of range"),
        ("pac_bayes.solve", {"segments": np.array([[0, 0, -1]])}, "out of range"),
        ("pac_bayes.solve", {"segments": np.array([[0, 2**62, 20]])}, "out of range"),
        ("pac_bayes.solve", {"segments": np.array([[0, 0, 20]] * 4)}, "one after"),
        ("pac_bayes.solve", {"segments": np.array([[0, 0, 19]])}, "not all"),
        ("pac_bayes.solve", {"settings": np.full(8, np.nan)}, "not finite"),
        ("pac_bayes.update_outputs", {"row_numbers": np.full(20, 20)}, "of range"),
        ("sequential.replay", {"arms": np.full(30, 4)}, "arms: out of range"),
        ("sequential.sum_of_gamma", {"recent": np.array([50])}, "not in the table"),
        ("sequential.sum_of_gamma", {"recent": np.array([-20])}, "not in the table"),
    ],
)
def test_numbers_out_of_range(name, changes, message):
    """Positions that lead out of an array are found."""
    with pytest.raises(ValueError, match=message):
        call(name, {**all_calls()[name], **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": np.zeros((4, 15))}, "table"),
        ({"table": np.zeros((0, 16))}, "table"),
        ({"weights": np.ones((2, 3))}, "weights"),
        ({"scalars": np.zeros(18)}, "scalars"),
        ({"average": np.zeros((4, 11))}, "average"),
        ({"learner": 9}, "learner"),
        ({"scaling": 9}, "scaling"),
        ({"decoding": 3}, "decoding"),
        ({"loss": 2}, "log-loss"),
        ({"n_outputs": 0}, "outputs"),
    ],
)
def test_streams_check_their_state(changes, message):
    """A state that does not fit together is refused."""
    with pytest.raises(ValueError, match=message):
        _core.fenchel_young.StreamDouble(**{**stream_arguments(), **changes})


def test_streams_take_their_own_precision():
    """A table of the other precision is refused, not copied."""
    with pytest.raises(TypeError):
        _core.fenchel_young.StreamFloat(**stream_arguments())


ROWS = {
    "data": np.array([1.0, 2.0, 3.0]),
    "indices": np.array([0, 2, 1], np.int32),
    "indptr": np.array([0, 2, 3]),
    "targets": np.array([[0], [3]]),
    "uniforms": np.full((2, 1), 0.5),
    "plays": np.zeros((2, 1), np.int64),
    "log": True,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([0, 3, 1], np.int32)}, "indices: out of range"),
        ({"indices": np.array([0, -1, 1], np.int32)}, "indices: out of range"),
        ({"indptr": np.array([0, 2, 4])}, "beyond the data"),
        ({"indptr": np.array([-1, 2, 3])}, "beyond the data"),
        ({"indptr": np.array([0, 3, 2])}, "decreases"),
        ({"indptr": np.zeros(0, np.int64)}, "empty"),
        ({"indices": np.array([0, 2], np.int32)}, "lengths differ"),
        ({"targets": np.array([[0], [4]])}, "targets: out of range"),
        ({"targets": np.array([[0]])}, "rows"),
        ({"uniforms": np.zeros((2, 0))}, "uniforms"),
        ({"plays": np.zeros((1, 1), np.int64)}, "plays"),
    ],
)
def test_streams_check_sparse_rows(changes, message):
    """Hand-made CSR arrays that lead out of the table are refused before learning."""
    arguments = stream_arguments()
    stream = _core.fenchel_young.StreamDouble(**arguments)
    with pytest.raises(ValueError, match=message):
        stream.sparse(**{**ROWS, **changes})
    assert not arguments["table"].any()
    stream.sparse(**ROWS)
    assert arguments["table"].any()


def test_streams_of_no_rows():
    """Nothing happens, whatever the learner."""
    for learner, loss in [("MIXTURE", "LOGISTIC"), ("DUAL", "SPARSEMAX")]:
        arguments = stream_arguments(learner, loss)
        stream = _core.fenchel_young.StreamDouble(**arguments)
        none = np.zeros((0, 1), np.int64)
        stream.dense(np.zeros((0, 3)), none, np.zeros((0, 1)), none, log=True)
        empty = {"data": np.zeros(0), "indices": np.zeros(0, np.int32)}
        rows = {"targets": none, "uniforms": np.zeros((0, 1)), "plays": none}
        stream.sparse(**empty, indptr=np.zeros(1, np.int64), **rows, log=True)
        assert not arguments["table"].any()


def test_hand_made_csr_reaches_no_memory_of_others():
    """The estimator refuses it with scipy's message."""
    X = sp.csr_matrix(np.eye(4))
    X.indices[1] = 7
    with pytest.raises(ValueError, match="indices must be <"):
        FenchelYoungOnlineClassifier().fit(X, [0, 1, 0, 1])


LAYOUTS = {
    "unaligned": unaligned,
    "memory-mapped": None,
    "backwards twice": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "every second": every_second,
    "read-only": lambda a: np.require(a.copy(), requirements=["C"]),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_rows_in_any_layout(estimator, layout, tmp_path):
    """Arrays as they come are taken over, and give the same model."""
    X, y = make_data(estimator)
    if layout == "memory-mapped":
        np.save(tmp_path / "X.npy", X)
        rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    else:
        rows = LAYOUTS[layout](X)
    if layout == "read-only":
        rows.flags.writeable = False
    with np.errstate(all="ignore"):
        expected = clone(estimator).fit(X, y).predict(X)
        found = clone(estimator).fit(rows, y).predict(rows)
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    else:
        assert_array_equal(found, expected)


@pytest.mark.parametrize("wanted", [*_core.levels(), ""])
def test_level_from_the_environment(wanted, monkeypatch):
    """SKBOUNDS_CPU_LEVEL is read at import; empty means the best one."""
    monkeypatch.setenv("SKBOUNDS_CPU_LEVEL", wanted)
    run = subprocess.run(
        [sys.executable, "-c", "from skbounds import _core; print(_core.level())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == (wanted or _core.levels()[-1])


def test_unknown_level(monkeypatch):
    """The error names the variable, what was given and what there is."""
    monkeypatch.setenv("SKBOUNDS_CPU_LEVEL", "v9")
    run = subprocess.run(
        [sys.executable, "-c", "import skbounds._core"], capture_output=True, text=True
    )
    assert run.returncode != 0
    for part in ("SKBOUNDS_CPU_LEVEL", "'baseline'", "'v9'"):
        assert part in run.stderr


def test_show_versions(capsys):
    """Versions, build and level are printed."""
    import skbounds

    skbounds.show_versions()
    printed = capsys.readouterr().out
    for part in ("skbounds", skbounds.__version__, "scikit-learn", _core.compiler):
        assert part in printed
    assert f"level in use: {_core.level()}" in printed


NAN = np.full((1, 9), np.nan)


def test_scores_that_are_no_numbers_end():
    """In finite time, and with a vertex; exponentials hand them on."""
    core = _core.fenchel_young
    vertices = np.full((1, 3), 7)
    core.nearest_rows(core.BIRKHOFF, NAN, vertices)
    assert sorted(vertices[0]) == [0, 1, 2]
    core.predict_rows(core.BIRKHOFF_ENTROPIC, 1.0, NAN, np.zeros((1, 9)))
    plays, means = np.full((1, 1), 7), np.zeros((1, 4))
    numbers = NAN[:, :4].copy(), np.full((1, 2), 0.5)
    core.decode_rows(core.SIMPLEX, 2, *numbers, plays, means)
    assert plays[0, 0] == 0
    out = np.zeros(9)
    core.exponential(NAN[0], out)
    assert np.isnan(out).all()


def test_rewards_and_means_in_any_order():
    """Columns of a log, and a table turned around."""
    log = np.column_stack([np.arange(30) % 3, np.arange(30.0)])
    tests = [BestArmTest(3, sigma=1.0, max_pulls=100) for _ in range(2)]
    tests[0].observe(log[:, 0].astype(int), log[:, 1])
    tests[1].observe(log[:, 0].astype(int), log[:, 1].copy())
    assert tests[0].log_p_value_ == tests[1].log_p_value_
    means = np.tile([0.0, 1.0, 2.0], (5, 1))
    options = {"max_pulls": 500, "random_state": 0}
    one = simulate_best_arm_tests(means, **options)
    other = simulate_best_arm_tests(np.asfortranarray(means), **options)
    for name, values in one.items():
        assert_array_equal(values, other[name])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_laws_of_the_users_own(dtype):
    """Attributes that are set by hand count as what they are."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    models = [BaumWelchHMM(2, random_state=0).fit(X) for _ in range(2)]
    for model, kind in zip(models, (dtype, np.float64), strict=True):
        model.startprob_ = np.array([1, 0], dtype=kind)
        model.transmat_ = np.asfortranarray([[0, 1], [1, 0]], dtype=kind)
    for method in ("predict", "predict_proba", "score_samples"):
        found, expected = (getattr(model, method)(X) for model in models)
        assert_array_equal(found, expected)
    found, expected = (model.decode(X) for model in models)
    assert found[0] == expected[0]
    assert_array_equal(found[1], expected[1])


def test_one_stream_in_two_threads():
    """Refused, where it would have spoilt memory."""
    X = np.random.default_rng(0).normal(size=(3000, 500))
    y = np.arange(3000) % 20
    stream = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X[:20], y[:20])

    def go_on(rows):
        try:
            for x, label in zip(X[rows], y[rows], strict=True):
                stream.learn_one(x, label)
        except RuntimeError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        said = [*pool.map(go_on, (slice(0, 1500), slice(1500, 3000)))]
    for each in said:
        assert each is None or "two threads" in each
    assert np.isfinite(stream.coef_).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": 3}, "rewards: unknown"),
        ({"bets": np.array([0.5, 0.0, 1.0, 1.0, 1.0])}, "bets: out of range"),
        ({"bets": np.array([0.5])}, "weights: not one"),
        ({"arm_weights": np.ones(4)}, "alternatives: wrong length"),
        ({"sigma": np.ones(3)}, "sigma: wrong length"),
        ({"sigma": np.zeros(4)}, "sigma: not positive"),
        ({"sums": np.zeros(3)}, "sums, spread: wrong length"),
        ({"peak": np.zeros(4)}, "alternatives: wrong length"),
        ({"counts": np.zeros(1)}, "fewer than two arms"),
    ],
)
def test_trials_check_their_state(changes, message):
    """A state that does not fit together is refused."""
    with pytest.raises(ValueError, match=message):
        _core.sequential.Trial(**{**trial_arguments(), **changes})


@pytest.mark.parametrize(
    ("call_it", "message"),
    [
        (lambda t: t.replay(np.array([4]), np.zeros(1), True, 3.0, -1), "of range"),
        (lambda t: t.replay(np.array([-1]), np.zeros(1), True, 3.0, -1), "of range"),
        (lambda t: t.replay(np.array([1]), np.zeros(2), True, 3.0, -1), "rewards"),
        (lambda t: t.look(np.zeros(3, bool), 3.0, -1), "changed"),
        (lambda t: t.choose(2, np.zeros(4), np.zeros(1, int)), "one by one"),
        (lambda t: t.choose(0, np.zeros(3), np.zeros(1, int)), "outstanding"),
        (lambda t: t.bandit_round(8.0, 6.0, np.zeros(3, int)), "chosen"),
        (lambda t: t.bandit_round(8.0, 6.0, np.zeros(4, int)), "without rewards"),
        (lambda t: t.settle(np.zeros(4)), "adjusted"),
        (lambda t: t.lifts(0.0, np.zeros(3), np.zeros(3)), "threshold"),
        (lambda t: t.lifts(3.0, np.zeros(4), np.zeros(3)), "lower"),
    ],
)
def test_calls_of_trials_are_checked(call_it, message):
    """Before anything is read or written."""
    arguments = trial_arguments()
    before = {k: np.copy(v) for k, v in arguments.items()}
    with pytest.raises(ValueError, match=message):
        call_it(_core.sequential.Trial(**arguments))
    for key, value in before.items():
        assert_array_equal(arguments[key], value)
