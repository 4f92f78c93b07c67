"""Streams in batches: the bits of one call, from any source, and after a crash."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skbounds.fenchel_young import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
    FenchelYoungOnlineStructured,
)
from skbounds.fenchel_young.structures import KSubsets

N, D = 300, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * [1.0, 10.0, 1e-3, 1.0]
LABELS = np.array(["a", "b", "c"])[(X[:, 0] + 0.5 * RNG.normal(size=N) > 0) + 0]
LABELS[::17] = "c"
NAMES = ["one", "two", "three", "four"]


def cut(n, ends):
    """Return slices of n rows that end at some numbers."""
    bounds = [0, *sorted({e for e in ends if 0 < e < n}), n]
    return [slice(a, b) for a, b in pairwise(bounds)]


def state_of(model):
    """Return all that a model knows, as bytes."""
    state = model.__getstate__()
    # A name of the stream, which is drawn anew for each.
    return {k: pickle.dumps(v) for k, v in state.items() if k not in ("_stream_",)}


def targets(kind):
    if kind == "labels":
        return LABELS
    if kind == "one":
        return np.eye(3)[np.searchsorted(["a", "b", "c"], LABELS)]
    if kind == "levels":
        return np.searchsorted(["a", "b", "c"], LABELS)
    if kind == "sets":
        return (X[:, :3] > 0).astype(int)
    return np.argsort(np.argsort(X[:, :3], axis=1), axis=1) + 1


MODELS = {
    "classes": (FenchelYoungOnlineClassifier(random_state=0), "labels"),
    "sparsemax": (
        FenchelYoungOnlineClassifier("sparsemax", learner="ogd", feature_norm=30.0,
                                     random_state=0),
        "labels",
    ),
    "average": (FenchelYoungOnlineClassifier(average=True, random_state=1), "labels"),
    "levels": (FenchelYoungOnlineOrdinalClassifier(random_state=0), "levels"),
    "sets": (FenchelYoungOnlineMultilabelClassifier(random_state=0), "sets"),
    "ranks": (FenchelYoungOnlineRanker(random_state=0), "ranks"),
    "structure": (FenchelYoungOnlineStructured(KSubsets(3, 1), random_state=0), "one"),
}  # fmt: skip


def options(name):
    classes = {"labels": ["a", "b", "c"], "levels": [0, 1, 2]}
    return {"classes": classes[kind]} if (kind := MODELS[name][1]) in classes else {}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None)
@given(ends=st.lists(st.integers(1, N - 1), max_size=6))
def test_batches_are_one_call(name, ends):
    model, kind = MODELS[name]
    y = targets(kind)
    whole = clone(model).partial_fit(X, y, **options(name))
    found = clone(model).play_batches(
        ((X[part], y[part]) for part in cut(N, [60, *ends])), **options(name)
    )
    assert state_of(found) == state_of(whole)


def test_weights_and_classes_that_come_later():
    weight = RNG.integers(0, 3, N).astype(float)
    weight[0] = 1.0
    model = FenchelYoungOnlineClassifier(random_state=0)
    whole = clone(model).partial_fit(X, LABELS, "grow", weight)
    found = clone(model).play_batches(
        [(X[p], LABELS[p], weight[p]) for p in cut(N, [5, 100])], classes="grow"
    )
    assert state_of(found) == state_of(whole)
    assert found.n_samples_seen_ == (weight > 0).sum()


def test_sparse_batches():
    rows = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = FenchelYoungOnlineClassifier(random_state=0)
    whole = clone(model).partial_fit(rows, LABELS)
    found = clone(model).play_batches((rows[p], LABELS[p]) for p in cut(N, [90, 200]))
    assert state_of(found) == state_of(whole)


# ------------------------------------------------------------------------- sources


def frame():
    pd = pytest.importorskip("pandas")
    data = {name: X[:, k] for k, name in enumerate(NAMES[:2])}
    data["kind"] = LABELS
    data |= {name: X[:, k + 2] for k, name in enumerate(NAMES[2:])}
    data["importance"] = np.arange(N) % 3 + 1.0
    return pd.DataFrame(data)


def arrow():
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame())


def parquet(folder):
    pq = pytest.importorskip("pyarrow.parquet")
    path = folder / "table.parquet"
    pq.write_table(arrow(), path, row_group_size=70)
    return path


def _dataset(folder):
    return pytest.importorskip("pyarrow.dataset").dataset(parquet(folder))


def _file(folder):
    return pytest.importorskip("pyarrow.parquet").ParquetFile(parquet(folder))


def _csv(folder):
    frame().to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def _dictionary(folder):
    table = arrow()
    kind = table.column("kind").dictionary_encode()
    return table.set_column(table.schema.get_field_index("kind"), "kind", kind)


SOURCES = {
    "frame": lambda folder: frame(),
    "frames": lambda folder: (frame()[p] for p in cut(N, [100, 250])),
    "polars": lambda folder: pytest.importorskip("polars").from_pandas(frame()),
    "table": lambda folder: arrow(),
    "batches": lambda folder: iter(arrow().to_batches(max_chunksize=64)),
    "reader": lambda folder: arrow().to_reader(max_chunksize=64),
    "dataset": _dataset,
    "file": _file,
    "path": parquet,
    "text of a path": lambda folder: str(parquet(folder)),
    "csv": _csv,
    "dictionary": _dictionary,
    "other order": lambda folder: [frame()[:70], frame()[70:].iloc[:, ::-1]],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("source", SOURCES)
def test_tables_are_arrays(source, tmp_path):
    model = FenchelYoungOnlineClassifier(random_state=0)
    weight = frame()["importance"].to_numpy()
    whole = clone(model).partial_fit(X, LABELS, ["a", "b", "c"], weight)
    found = model.play_batches(
        SOURCES[source](tmp_path), target="kind", sample_weight="importance",
        classes=["a", "b", "c"], batch_size=50,
    )  # fmt: skip
    assert found.feature_names_in_.tolist() == NAMES
    del found.feature_names_in_
    assert state_of(found) == state_of(whole)


def test_predictions_know_the_names():
    model = FenchelYoungOnlineClassifier().play_batches(
        frame().drop(columns="importance"), target="kind"
    )
    model.predict(frame()[NAMES])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame()[NAMES[::-1]])


def test_several_targets_and_other_kinds_of_columns():
    pa = pytest.importorskip("pyarrow")
    y = targets("sets")
    money = pa.array(np.round(X[:, 1], 2)).cast(pa.decimal128(12, 2), safe=False)
    table = pa.table(
        {
            "whole": pa.array(np.arange(N), pa.int32()),
            "yes": pa.array(X[:, 0] > 0),
            "money": money,
            "level": pa.array((np.arange(N) % 3).tolist()).dictionary_encode(),
            **{f"y{k}": y[:, k] for k in range(3)},
        }
    )  # fmt: skip
    amounts = [float(amount) for amount in money.to_pylist()]
    rows = np.column_stack([np.arange(N), X[:, 0] > 0, amounts, np.arange(N) % 3])
    model = FenchelYoungOnlineMultilabelClassifier(random_state=0)
    whole = clone(model).partial_fit(rows, y)
    found = clone(model).play_batches(table, target=["y0", "y1", "y2"])
    del found.feature_names_in_
    assert state_of(found) == state_of(whole)


def test_single_precision_stays():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {"a": X[:, 0].astype("f4"), "b": X[:, 3].astype("f4"), "y": LABELS}
    )
    model = FenchelYoungOnlineClassifier(random_state=0).play_batches(table, target="y")
    assert model._state_["table"].dtype == np.float32


def twice():
    data = frame()[["one", "two", "kind"]]
    data.columns = ["one", "one", "kind"]
    return data


BAD = [
    (twice, {"target": "kind"}, "several columns of the same name"),
    (lambda: [(X, None)], {}, "y must have an entry"),
    (lambda: [(X, np.array(3))], {}, "y must have an entry"),
    (lambda: [(X, LABELS), (X, [])], {}, "inconsistent numbers"),
    (lambda: frame().assign(one="1"), {"target": "kind"}, "'one' holds no numbers"),
    (lambda: frame(), {"target": []}, "at least one column"),
    (lambda: frame(), {"target": "kind", "sample_weight": X[:, 0]}, "name a column"),
    (lambda: b"path", {}, "iterable of batches"),
    (lambda: [(X, LABELS)], {"checkpoint": "nowhere/x"}, "folder that is there"),
    (lambda: [(X, LABELS)], {"checkpoint": "/"}, "folder that is there"),
    (lambda: 3, {}, "iterable of batches"),
    (lambda: [3], {}, "batch 0 is a int"),
    (lambda: [(X,)], {}, "batch 0 has 1 items"),
    (lambda: [(X, LABELS)], {"target": "y"}, "name columns of tables"),
    (lambda: frame(), {}, "target must name"),
    (lambda: frame(), {"target": "none"}, "no column 'none'"),
    (lambda: frame()[["kind"]], {"target": "kind"}, "no column beside"),
    (lambda: [frame(), frame()[NAMES]], {"target": "kind"}, "batch 1 has the columns"),
    (lambda: frame().assign(one="x"), {"target": "kind"}, "'one' holds no numbers"),
    (lambda: frame().assign(two=np.nan), {"target": "kind"}, "'two' has missing"),
    (lambda: [], {}, "at least one row"),
    (lambda: [(X[:0], LABELS[:0])], {}, "at least one row"),
    (lambda: [(X, LABELS)], {"batch_size": 0}, "batch_size must be"),
    (lambda: [(X, LABELS)], {"checkpoint_every": 1.5}, "checkpoint_every must be"),
]


@pytest.mark.parametrize(("make", "given", "words"), BAD)
def test_bad_batches(make, given, words):
    with pytest.raises(ValueError, match=words):
        FenchelYoungOnlineClassifier().play_batches(make(), **given)


def test_errors_say_where_and_keep_what_was_learnt():
    bad = X.copy()
    bad[250, 0] = np.inf
    model = FenchelYoungOnlineClassifier(random_state=0)
    with pytest.raises(ValueError, match="infinity") as caught:
        model.play_batches((bad[p], LABELS[p]) for p in cut(N, [100, 200]))
    assert caught.value.__notes__ == ["In the batch that begins with row 200."]
    known = FenchelYoungOnlineClassifier(random_state=0).partial_fit(
        X[:200], LABELS[:200]
    )
    assert state_of(model) == state_of(known)


# --------------------------------------------------------------------- checkpoints


class StopHereError(Exception):
    pass


def stream(size, stop=None):
    for begin in range(0, N, size):
        if stop is not None and begin >= stop:
            raise StopHereError
        yield X[begin : begin + size], LABELS[begin : begin + size]


@pytest.mark.parametrize("stop", [50, 100, 290])
@pytest.mark.parametrize("size", [7, 64, 300])
def test_a_stream_that_stopped_goes_on(stop, size, tmp_path):
    model = FenchelYoungOnlineClassifier(average=True, random_state=0)
    given = {"classes": ["a", "b", "c"], "checkpoint_every": 40}
    whole = clone(model).play_batches(stream(10), **given)
    path = tmp_path / "state"
    with pytest.raises(StopHereError):
        clone(model).play_batches(stream(10, stop), checkpoint=path, **given)
    assert os.listdir(tmp_path) == (["state"] if stop > 40 else [])
    rows = []
    found = clone(model).play_batches(
        stream(size), checkpoint=path, progress=lambda m, n: rows.append(n), **given
    )
    assert state_of(found) == state_of(whole)
    assert rows[-1] == N
    assert min(rows) > stop - 40 - 10


def test_an_ended_stream_takes_new_rows_only(tmp_path):
    path = tmp_path / "state"
    model = FenchelYoungOnlineClassifier(random_state=0)
    first = [(X[:200], LABELS[:200])]
    clone(model).play_batches(first, checkpoint=path)
    again = clone(model).play_batches(first, checkpoint=path)
    assert again.n_samples_seen_ == 200
    more = clone(model).play_batches([*first, (X[200:], LABELS[200:])], checkpoint=path)
    assert state_of(more) == state_of(clone(model).partial_fit(X, LABELS))


def test_checkpoints_of_others_are_refused(tmp_path):
    path = tmp_path / "state"
    FenchelYoungOnlineClassifier(clip=2.0).play_batches(stream(50), checkpoint=path)
    untouched = FenchelYoungOnlineClassifier()
    for model, words in [
        (untouched, "written with clip 2.0; got 3.0"),
        (FenchelYoungOnlineOrdinalClassifier(clip=2.0), "written with estimator"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.play_batches(stream(50), checkpoint=path)
    with pytest.raises(ValueError, match="another stream"):
        FenchelYoungOnlineClassifier(clip=2.0).play_batches(
            [(X[:50], LABELS[:50])], checkpoint=path
        )
    whole = path.read_bytes()
    for damaged in (b"", whole[:-7], b"not a pickle", pickle.dumps({"format": "x"})):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="no checkpoint"):
            untouched.play_batches(stream(50), checkpoint=path)
        assert path.read_bytes() == damaged
    assert not hasattr(untouched, "_state_")


def test_a_generator_as_random_state(tmp_path):
    path = tmp_path / "state"
    for _ in range(2):
        model = FenchelYoungOnlineClassifier(random_state=np.random.RandomState(3))
        model.play_batches(stream(50), checkpoint=path)
    assert model.n_samples_seen_ == N


KILLED = """
import os, sys
import numpy as np
from skbounds.fenchel_young import FenchelYoungOnlineClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 3))
y = (X[:, 0] > rng.normal(size=len(X))).astype(int)
def batches():
    for begin in range(0, len(X), 500):
        yield X[begin : begin + 500], y[begin : begin + 500]
def tell(model, n):
    print(n, flush=True)
model = FenchelYoungOnlineClassifier(random_state=0)
model.play_batches(batches(), classes=[0, 1], checkpoint=sys.argv[1],
                   checkpoint_every=1500, progress=tell)
print(model.expected_cumulative_loss_.hex(), model.coef_.tobytes().hex())
"""


def test_killed_in_the_middle(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(KILLED))

    def start(name):
        return subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / name)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    with start("whole") as process:
        expected = process.stdout.read().splitlines()[-1]
    with start("killed") as process:
        for line in process.stdout:
            if int(line) >= 7000:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode != 0
    with start("killed") as process:
        lines = process.stdout.read().splitlines()
    assert int(lines[0]) > 5000
    assert lines[-1] == expected


# -------------------------------------------------------------------------- the rest


def test_memory_is_that_of_a_batch():
    rng = np.random.default_rng(0)

    def batches(n):
        for _ in range(n):
            rows = rng.normal(size=(4096, 20))
            yield rows, (rows[:, 0] > 0).astype(int)

    model = FenchelYoungOnlineClassifier(random_state=0)
    model.play_batches(batches(1), classes=[0, 1])
    peaks = []
    for n in (3, 60):
        tracemalloc.start()
        model.play_batches(batches(n))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("nap", [0.0, 0.002])
def test_memory_of_a_file_is_that_of_some_batches(kind, nap, tmp_path):
    """Whether a learner takes the batches faster or slower than they are read."""
    pa = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    pq = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    from skbounds._record_batches import read_batches

    n = 60 * 20_000
    path = tmp_path / f"table.{kind}"
    table = pa.table({f"x{j}": np.arange(n) / 7.0 + j for j in range(10)})
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=20_000)
    elif kind == "feather":
        feather.write_feather(table, path, chunksize=20_000)
    else:
        csv.write_csv(table, path)
    whole = table.nbytes
    del table
    before, peak = pa.total_allocated_bytes(), 0
    for number, _ in enumerate(read_batches(path, "x0", None, 5000)):
        if number < 100:
            time.sleep(nap)
        peak = max(peak, pa.total_allocated_bytes() - before)
    # What is read ahead and never let go would be the whole table.
    assert peak < 0.5 * whole


def test_whole_numbers_that_become_others(tmp_path):
    """Behind the first block that pyarrow reads; labels stay what they are."""
    pytest.importorskip("pyarrow")
    from skbounds._record_batches import read_batches

    n = 200_000
    rows = [f"{k % 7},{k % 3},{k % 2}" for k in range(n)] + ["1.5,0.25,1"] * 10
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(rows))
    found = list(read_batches(tmp_path / "t.csv", "y"))
    X = np.concatenate([batch.X for batch in found])
    assert X.shape == (n + 10, 2) and X.dtype == np.float64
    assert X[n - 1].tolist() == [(n - 1) % 7, (n - 1) % 3]
    assert X[-1].tolist() == [1.5, 0.25]
    assert {batch.y.dtype.kind for batch in found} == {"i"}
    rates = read_batches(tmp_path / "t.csv", "y", has_labels=False)
    assert {batch.y.dtype.kind for batch in rates} == {"f"}
    # Texts are texts.
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join([*rows, "x,1,1"]))
    with pytest.raises(
        ValueError, match=r"t\.csv': In CSV column 'a': .*CSV conversion"
    ):
        list(read_batches(tmp_path / "t.csv", "y"))


def test_verbose(capsys):
    FenchelYoungOnlineClassifier(verbose=1).play_batches(stream(50))
    assert "300 rows" in capsys.readouterr().out


def test_gaps_of_nullable_columns():
    pd = pytest.importorskip("pandas")
    flags = pd.array([True, None] * (N // 2), dtype="boolean")
    with pytest.raises(ValueError, match="'one' has missing values"):
        FenchelYoungOnlineClassifier().play_batches(
            frame().assign(one=flags), target="kind"
        )


def test_precision_is_that_of_the_widest_column():
    pa = pytest.importorskip("pyarrow")
    single = X[:, 0].astype("f4")
    for other, wanted in ((X[:, 0] > 0, "f4"), (single, "f4"), (X[:, 1], "f8")):
        table = pa.table({"a": single, "b": other, "y": LABELS})
        model = FenchelYoungOnlineClassifier().play_batches(table, target="y")
        assert model._state_["table"].dtype == wanted


def test_columns_without_names():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(X).assign(**{"last": 0}).rename(columns={"last": 4})
    data[4] = LABELS == "a"
    model = FenchelYoungOnlineClassifier(random_state=0).play_batches(data, target=4)
    assert not hasattr(model, "feature_names_in_")
    known = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X, LABELS == "a")
    np.testing.assert_array_equal(model.coef_, known.coef_)


def test_errors_of_reading_say_where():
    def batches():
        yield X[:200], LABELS[:200]
        raise StopHereError

    model = FenchelYoungOnlineClassifier()
    with pytest.raises(StopHereError) as caught:
        model.play_batches(batches())
    assert caught.value.__notes__ == ["In the batch that begins with row 200."]
    assert model.n_samples_seen_ == 200


def test_checkpoints_replace_all_that_was_known(tmp_path):
    path = tmp_path / "state"
    model = FenchelYoungOnlineClassifier(random_state=0)
    clone(model).play_batches(stream(50), checkpoint=path)
    model.play_batches(frame().drop(columns="importance"), target="kind")
    model.play_batches(stream(50), checkpoint=path)
    assert not hasattr(model, "feature_names_in_")
    before = state_of(model)
    with pytest.raises(ValueError, match="another stream"):
        model.play_batches([(X[:50], LABELS[:50])], checkpoint=path)
    assert state_of(model) == before


def test_checkpoints_of_tables_know_their_columns(tmp_path):
    path = tmp_path / "state"
    given = {"classes": ["a", "b", "c"], "checkpoint": path}
    FenchelYoungOnlineClassifier().play_batches(frame()[:100], target="kind", **given)
    for other in ({"target": "one"}, {"target": "kind", "sample_weight": "one"}):
        with pytest.raises(ValueError, match="was written with"):
            FenchelYoungOnlineClassifier().play_batches(frame(), **other, **given)


class Own(KSubsets):
    def __repr__(self):
        return object.__repr__(self)


def test_checkpoints_of_structures_of_one_s_own(tmp_path):
    path, y = tmp_path / "state", targets("one")
    whole = FenchelYoungOnlineStructured(Own(3, 1), random_state=0).partial_fit(X, y)
    for n in (100, N):
        model = FenchelYoungOnlineStructured(Own(3, 1), random_state=0)
        model.play_batches([(X[:100], y[:100]), (X[100:n], y[100:n])], checkpoint=path)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    with pytest.raises(ValueError, match="classes is for classifiers"):
        FenchelYoungOnlineStructured(Own(3, 1)).play_batches([(X, y)], classes=[0])


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "state")
    FenchelYoungOnlineClassifier().play_batches(stream(50), checkpoint=link)
    assert link.is_symlink() and (tmp_path / "there" / "state").exists()


def test_folders_without_what_is_hidden(tmp_path):
    """Copies that tools keep are not learnt a second time, nor other files read."""
    pytest.importorskip("pyarrow")
    from skbounds._record_batches import read_batches

    for name, n in (
        ("a.csv", 4), ("sub/b.csv", 3), (".ipynb_checkpoints/a-checkpoint.csv", 4),
        ("_tmp/c.csv", 5),
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x,y\n" + "1.5,no\n" * n)
    (tmp_path / "README.md").write_text("# About\n")
    batches = list(read_batches(tmp_path, "y"))
    assert sum(len(batch.y) for batch in batches) == 7
