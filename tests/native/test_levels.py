"""All instruction levels give the same bits; threads do not disturb each other."""

import copy
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from common import instances, make_data
from numpy.testing import assert_array_equal
from sklearn.base import clone

from native.calls import all_calls, call, stream_arguments, trial_arguments
from skbounds import _core

PREDICTORS = [each for each in instances() if hasattr(each, "predict")]


@pytest.fixture
def at_level():
    """Run a function at another level, and go back."""
    before = _core.level()

    def run(level, function):
        _core.set_level(level)
        try:
            return function()
        finally:
            _core.set_level(before)

    return run


def assert_same(a, b):
    """Results and arrays are equal to the last bit."""
    assert_array_equal(np.array(a[0], dtype=float), np.array(b[0], dtype=float))
    for one, other in zip(a[1], b[1], strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("name", all_calls())
@pytest.mark.parametrize("seed", range(3))
def test_functions_at_every_level(name, seed, at_level):
    """Bit for bit."""
    results = [
        at_level(level, lambda: call(name, all_calls(seed)[name]))
        for level in _core.levels()
    ]
    for result in results[1:]:
        assert_same(results[0], result)


@pytest.mark.parametrize("rewards", ["NORMAL", "BINARY", "BOUNDED"])
def test_trials_at_every_level(rewards, at_level):
    """Bit for bit: looks, arms that are chosen, e-values, intervals."""

    def play():
        arguments = trial_arguments(rewards)
        rng = np.random.default_rng(0)
        trial = _core.sequential.Trial(**arguments)
        chosen, adjusted = np.zeros(5, int), np.zeros(3)
        lower, upper = np.zeros(3), np.zeros(3)
        for _ in range(40):
            trial.choose(0, np.zeros(4), chosen)
            draws = (rng.random(5) < 0.2 + 0.2 * chosen).astype(float)
            trial.replay(chosen, draws, False, 3.0, -1)
        trial.settle(adjusted)
        trial.lifts(3.0, lower, upper)
        arrays = [arguments[name] for name in ("counts", "sums", "spread", "peak")]
        return 0.0, [*arrays, adjusted, lower, upper]

    results = [at_level(level, play) for level in _core.levels()]
    assert results[0][1][3].max() > 0.0
    for result in results[1:]:
        assert_same(results[0], result)


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 9])
def test_recursions_at_every_level(n_states, at_level):
    """For numbers of states with code of their own, and without."""
    rng = np.random.default_rng(n_states)
    n, s = 200, n_states
    density = rng.random((n, s))
    A = rng.dirichlet(np.ones(s), size=s)
    starts, pi = np.array([0, 60, 61, n]), np.full(s, 1.0 / s)

    def run():
        filtered, scale = np.zeros((n, s)), np.zeros(n)
        posterior, pairs = np.zeros((n, s)), np.zeros((s, s))
        failed = _core.hmm.forward(density, starts, pi, A, True, filtered, scale)
        _core.hmm.backward(density, starts, A, filtered, scale, posterior, pairs)
        return failed, [filtered, scale, posterior, pairs]

    results = [at_level(level, run) for level in _core.levels()]
    for result in results[1:]:
        assert_same(results[0], result)


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("reach", [3, 25])
def test_windows_at_every_level(n_states, reach, at_level):
    """One after the other, and by products of matrices."""
    rng = np.random.default_rng(n_states)
    n, s = 200, n_states
    density = rng.random((n, s))
    A = rng.dirichlet(np.ones(s), size=s)
    starts, pi = np.array([0, 60, 61, n]), np.full(s, 1.0 / s)

    def run():
        posterior, pairs, bad = np.zeros((n, s)), np.zeros((s, s)), np.zeros(n, bool)
        _core.hmm.windows(
            density, starts, pi, pi, A, True, reach, posterior, pairs, bad
        )
        return 0.0, [posterior, pairs, bad]

    results = [at_level(level, run) for level in _core.levels()]
    for result in results[1:]:
        assert_same(results[0], result)


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("n", [7, 1500])
def test_whole_steps_at_every_level(n_states, n, at_level):
    """Also where rows are more than a chunk."""
    rng = np.random.default_rng(n_states)
    s, m = n_states, 6
    columns, weights = rng.normal(size=(n, m)), rng.normal(size=(m, s))
    A = rng.dirichlet(np.ones(s), size=s)
    starts, pi, constant = np.array([0, 3, n]), np.full(s, 1.0 / s), rng.normal(size=s)

    def run():
        first, size, pairs = np.zeros(s), np.zeros(s), np.zeros((s, s))
        sums = np.zeros((s, m))
        value = _core.hmm.linear_step(
            columns, starts, pi, A, weights, constant, first, size, pairs, sums
        )
        return value, [first, size, pairs, sums]

    results = [at_level(level, run) for level in _core.levels()]
    for result in results[1:]:
        assert_same(results[0], result)


STREAMS = [
    ("MIXTURE", "LOGISTIC", np.float32),
    ("MIXTURE", "LOGISTIC", np.float64),
    ("MIXTURE", "CUBE_SIGMOID", np.float32),
    ("DUAL", "SPARSEMAX", np.float64),
    ("OGD", "LOGISTIC", np.float64),
    ("ADAPTIVE", "PERMUTAHEDRON_SPARSEMAP", np.float32),
    ("PARAMETER_FREE", "CHAIN_SPARSEMAP", np.float64),
    ("DUAL", "BIRKHOFF_ENTROPIC", np.float64),
    ("DUAL", "CUBE_SPARSEMAP", np.float32),
]


@pytest.mark.parametrize(("learner", "loss", "dtype"), STREAMS)
def test_streams_at_every_level(learner, loss, dtype, at_level):
    """State and plays after 100 rows, dense and sparse, are equal bit for bit."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    n = 100
    X = (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)).astype(dtype)
    targets = {
        "LOGISTIC": rng.integers(4, size=(n, 1)),
        "SPARSEMAX": rng.integers(4, size=(n, 1)),
        "CUBE_SIGMOID": rng.integers(2, size=(n, 4)),
        "CUBE_SPARSEMAP": rng.integers(2, size=(n, 4)),
        "CHAIN_SPARSEMAP": rng.integers(5, size=(n, 1)),
        "PERMUTAHEDRON_SPARSEMAP": rng.random((n, 4)).argsort(axis=1) + 1,
        "BIRKHOFF_ENTROPIC": rng.random((n, 2)).argsort(axis=1),
    }[loss].astype(np.int64)
    uniforms = rng.random((n, 5))
    core = _core.fenchel_young
    kind = core.StreamFloat if dtype == np.float32 else core.StreamDouble
    Z = sp.csr_array(X)

    def run():
        found = []
        for scaling in ("STANDARDIZE", "ROBUST", "FIRST_MAGNITUDE", "MAGNITUDE"):
            arguments = stream_arguments(
                learner, loss, dtype, scaling=getattr(core, scaling), decoding=0
            )
            stream, plays = kind(**arguments), np.zeros_like(targets)
            rest = targets, uniforms, plays, True
            if scaling in ("STANDARDIZE", "ROBUST"):
                stream.dense(X, *rest)
            else:
                indptr = Z.indptr.astype(np.int64)
                stream.sparse(Z.data, Z.indices.astype(np.int32), indptr, *rest)
            found += [plays, arguments["table"], arguments["scalars"]]
            found += [arguments["average"], arguments["weights"], arguments["robust"]]
            found += [arguments["gradients"], arguments["accounts"]]
        return 0, copy.deepcopy(found)

    results = [at_level(level, run) for level in _core.levels()]
    for result in results[1:]:
        assert_same(results[0], result)


@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_estimators_at_every_level(estimator, at_level):
    """A fit and its predictions."""
    X, y = make_data(estimator)
    results = [
        at_level(level, lambda: clone(estimator).fit(X, y).predict(X))
        for level in _core.levels()
    ]
    for result in results[1:]:
        assert_array_equal(results[0], result)


@pytest.mark.skipif(_core.sanitized, reason="one level, not optimised")
@pytest.mark.skipif(not shutil.which("nm"), reason="nm lists the symbols of objects")
def test_no_weak_symbols_in_kernels():
    """The linker would keep one copy, perhaps of another instruction set, for all."""
    objects = sorted(Path("build").glob("cp*/CMakeFiles/kernels_*.dir/**/*.o"))
    if not objects:
        pytest.skip("built elsewhere: objects are looked at where the package is built")
    listed = subprocess.run(
        ["nm", "-C", *map(str, objects)], capture_output=True, text=True, check=True
    )
    found = re.findall(r"^[0-9a-f ]{16} ([A-Za-z]) (.*)$", listed.stdout, re.MULTILINE)
    assert [name for kind, name in found if kind in "RD"]
    assert not [name for kind, name in found if kind in "WVu"]


@pytest.mark.parametrize("estimator", PREDICTORS, ids=repr)
def test_different_instances_in_threads(estimator):
    """Instances of their own may be fitted by several threads at once."""
    X, y = make_data(estimator)
    alone = clone(estimator).fit(X, y).predict(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda _: clone(estimator).fit(X, y).predict(X), range(8))
        )
    for result in found:
        assert_array_equal(result, alone)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_a_long_loop_is_interrupted():
    """Ctrl-C ends a stream that would take minutes, and leaves its state whole."""
    code = (
        "import signal\n"
        "import numpy as np\n"
        "from skbounds import FenchelYoungOnlineClassifier\n"
        # Processes in the background may have been started to ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "X = np.random.default_rng(0).normal(size=(2000, 2000)).astype('float32')\n"
        "y = np.arange(2000) % 40\n"
        "clf = FenchelYoungOnlineClassifier(max_iter=10**6, random_state=0)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    clf.fit(X, y)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == "interrupted\n"
