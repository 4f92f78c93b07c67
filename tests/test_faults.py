"""Interrupts, memory that runs out, workers that die, disks that are full, threads."""

import contextlib
import copy
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from common import instances, make_data, prediction_methods
from sklearn.base import clone
from sklearn.datasets import make_classification

from skbounds import FenchelYoungOnlineClassifier
from skbounds.__main__ import main
from skbounds.fenchel_young import _batches

# The first configuration of each estimator. Its 40 rows are few for a certificate or a
# bound, of which it warns; that is not what these tests are about.
FIRST = {}
for _instance in instances():
    FIRST.setdefault(type(_instance).__name__, _instance)

needs_signals = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="no timers on this platform"
)


def data_for(estimator, **options):
    X, y = make_data(estimator, **options)
    return (X,) if y is None else (X, y)


def contents(estimator):
    """Return what an estimator holds, deeply, but for the names of streams."""
    found = vars(estimator).items()
    return pickle.dumps({k: v for k, v in found if k not in ("_problem_", "_stream_")})


@contextlib.contextmanager
def interrupt_after(seconds):
    """Raise KeyboardInterrupt in the block, as Ctrl-C does, if it takes longer."""

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------------- interrupts


@contextlib.contextmanager
def interrupt_at(call):
    """Raise KeyboardInterrupt at the call of a Python function of a number."""
    counted = [0]

    def watch(frame, event, _):
        if event == "call":
            counted[0] += 1
            if counted[0] == call:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield counted
    finally:
        sys.setprofile(before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FIRST)
def test_an_interrupted_fit_leaves_the_estimator(name):
    """At twenty moments of it."""
    estimator = clone(FIRST[name])
    if "random_state" in estimator.get_params():
        # Where the interrupt is lost, as in generators that are closed, the same fit.
        estimator.set_params(random_state=0)
    data, raised = data_for(estimator), 0
    estimator.fit(*data)
    with interrupt_at(-1) as counted:
        estimator.fit(*data)
    before = contents(estimator)
    # The last calls come after the fit.
    moments = np.unique(np.linspace(1, 0.9 * counted[0], 20).astype(int))
    for call in moments:
        try:
            with interrupt_at(call):
                estimator.fit(*data)
            before = contents(estimator)
        except KeyboardInterrupt:
            raised += 1
        assert contents(estimator) == before
    assert raised > 0.6 * len(moments)
    estimator.fit(*data)


@needs_signals
@pytest.mark.parametrize("method", ["partial_fit", "play"])
def test_an_interrupted_stream_stops_at_a_row(method):
    """What is counted is what is learnt; the stream goes on from there."""
    X, y = make_classification(
        120_000, 40, n_informative=10, n_classes=4, random_state=0
    )
    model = FenchelYoungOnlineClassifier(random_state=0)
    model.partial_fit(X[:100], y[:100], classes=range(4))
    straight = copy.deepcopy(model)
    stopped = 0
    for seconds in (0.002, 0.01, 0.03):
        begin = model.n_samples_seen_ - 100
        try:
            with interrupt_after(seconds):
                getattr(model, method)(X[100 + begin :], y[100 + begin :])
        except KeyboardInterrupt:
            stopped += 1
    assert stopped
    seen = model.n_samples_seen_
    if seen > 100:
        getattr(straight, method)(X[100:seen], y[100:seen])
    np.testing.assert_array_equal(model.coef_, straight.coef_)
    assert model.expected_cumulative_loss_ == straight.expected_cumulative_loss_
    assert model.progressive_errors_ == straight.progressive_errors_


# ----------------------------------------------------------------------------- memory


@contextlib.contextmanager
def no_memory_at(call):
    """Let the allocation of that number fail; count them."""
    counted = [0]

    def failing(function):
        def wrapper(*args, **kwargs):
            counted[0] += 1
            if counted[0] == call:
                raise MemoryError("no memory, by the test")
            return function(*args, **kwargs)

        return wrapper

    names = ("empty", "zeros", "ones", "full", "concatenate", "column_stack", "outer")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(np, name, failing(getattr(np, name)))
        yield counted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FIRST)
def test_memory_that_runs_out_leaves_the_estimator(name):
    """An allocation that fails is a MemoryError, wherever it is."""
    estimator = clone(FIRST[name])
    data = data_for(estimator)
    estimator.fit(*data)
    with no_memory_at(-1) as counted:
        clone(estimator).fit(*data)
    before = contents(estimator)
    for call in np.unique(np.linspace(1, counted[0], 12).astype(int)):
        try:
            with no_memory_at(call):
                estimator.fit(*data)
        except MemoryError:
            assert contents(estimator) == before
        else:
            # What only makes a guess better may do without.
            before = contents(estimator)


# ---------------------------------------------------------------------------- workers


DEADLY = """
import os, pickle, signal, sys
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from skbounds import PACBayesEnsembleClassifier

PARENT = os.getpid()

class Deadly(ClassifierMixin, BaseEstimator):
    def __init__(self, parent=None):
        self.parent = parent
    def predict(self, X):
        return X[:, 0]
    def fit(self, X, y):
        if os.getpid() != self.parent:
            os.kill(os.getpid(), signal.SIGKILL)

X, y = make_classification(200, random_state=0)
members = [("bayes", GaussianNB()), ("other", GaussianNB(var_smoothing=0.1))]
model = PACBayesEnsembleClassifier(members, random_state=0, n_jobs=2).fit(X, y)
before = pickle.dumps(vars(model))
model.set_params(estimators=[*members, ("deadly", Deadly(os.getpid()))])
try:
    model.fit(X, y)
except Exception as error:
    print(type(error).__name__)
model.set_params(estimators=members)
print(pickle.dumps(vars(model)) == before, model.fit(X, y).score(X, y) > 0.5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills its process")
def test_a_worker_that_dies(tmp_path):
    """joblib's own error; the estimator is what it was, and fits again."""
    script = tmp_path / "deadly.py"
    script.write_text(DEADLY)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["TerminatedWorkerError", "True", "True"], done.stderr


# ------------------------------------------------------------------------------ disks


def test_a_home_that_is_not_there(tmp_path):
    """Nothing is kept outside the working folder."""
    code = """
    import numpy as np, skbounds
    X = np.random.default_rng(0).normal(size=(60, 3))
    skbounds.SMPLogisticRegressionCV().fit(X, X[:, 0] > 0)
    skbounds.BaumWelchHMM(random_state=0).fit(X)
    skbounds.FenchelYoungOnlineClassifier().fit(X, X[:, 0] > 0)
    """
    env = dict(os.environ, HOME="/nonexistent", XDG_CACHE_HOME="/nonexistent")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_disk_that_is_full(tmp_path, monkeypatch, capsys):
    """The tour says in a line what could not be written, and which picture."""
    figure = pytest.importorskip("matplotlib.figure")
    pytest.importorskip("pandas")

    def full(self, path, **_):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(figure.Figure, "savefig", full)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [
        "a,b,kind",
        *(f"{a:.3f},{b:.3f},{a > 0}" for a, b in rng.normal(size=(90, 2))),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert main(["--data", "t.csv", "--target", "kind"]) == 1
    found = capsys.readouterr()
    assert found.err.startswith("skbounds: ") and found.err.count("\n") == 1
    assert "No space left on device" in found.err and ".png" in found.err


def test_two_processes_with_one_checkpoint(tmp_path):
    """The file is whole at any time: that of one of them."""
    code = """
    import sys
    import numpy as np
    from skbounds.fenchel_young import FenchelYoungOnlineClassifier
    rng = np.random.default_rng(int(sys.argv[1]))
    batches = [(rng.normal(size=(50, 4)), rng.integers(2, size=50)) for _ in range(60)]
    FenchelYoungOnlineClassifier(random_state=0).play_batches(
        batches, classes=[0, 1], checkpoint="state", checkpoint_every=50)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    running = [
        subprocess.Popen([*command, str(seed)], cwd=tmp_path, stderr=subprocess.PIPE)
        for seed in (0, 1)
    ]
    sizes = set()
    while any(process.poll() is None for process in running):
        with contextlib.suppress(FileNotFoundError):
            kept = (tmp_path / "state").read_bytes()
            begin = len(_batches._MAGIC) + 32
            whole = hashlib.sha256(kept[begin:]).digest()
            assert kept[:begin] == _batches._MAGIC + whole
            sizes.add(len(kept))
    errors = [process.communicate()[1].decode() for process in running]
    # One may find the other's state and refuse it, in words.
    assert any(process.returncode == 0 for process in running), errors
    for process, error in zip(running, errors, strict=True):
        if process.returncode:
            assert "checkpoint" in error.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert sizes


# ---------------------------------------------------------------------------- threads


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FIRST)
def test_predictions_of_eight_threads(name):
    """The bits of one after the other."""
    estimator = clone(FIRST[name])
    data = data_for(estimator)
    estimator.fit(*data)
    X = data[0]
    for method in prediction_methods(estimator):
        predict = getattr(estimator, method)
        expected = predict(X)
        barrier = threading.Barrier(8)

        def one(_, predict=predict, barrier=barrier):
            barrier.wait()
            return [predict(X) for _ in range(3)]

        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(one, range(8)):
                for each in found:
                    np.testing.assert_array_equal(each, expected, err_msg=method)
