"""``python -m skbounds stream``: numbers of the library, errors of one line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from schemas import check_schema

from skbounds import _stream_command
from skbounds.__main__ import main
from skbounds.fenchel_young import FenchelYoungOnlineClassifier

pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")
pa = pytest.importorskip("pyarrow", reason="test extra not installed (oldest versions)")
pq = pytest.importorskip("pyarrow.parquet")

N = 3000


def frame(n=N):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 5, n)})
    data["y"] = np.where(data.a + rng.normal(size=n) > 0, "yes", "no")
    data["c"] = rng.normal(size=n) + (data.y == "yes")
    return data


def coded(data, columns=("a", "b", "c")):
    return np.column_stack([data[name].to_numpy(float) for name in columns])


def expected(X, y):
    model = FenchelYoungOnlineClassifier(random_state=0)
    model.partial_fit(X, y, classes="grow")
    low, high = model.error_interval(0.95)
    return {
        "rows": len(y),
        "error": model.progressive_errors_ / len(y),
        "low": low,
        "high": high,
        "error_of_plays": model.expected_cumulative_loss_ / len(y),
        "certificate": model.surrogate_regret_certificate(10.0),
    }


def run(capsys, *arguments):
    status = main(["stream", *map(str, arguments), "--target", "y", "--json"])
    found = capsys.readouterr()
    assert status == 0, found.err
    assert found.err == ""
    account = json.loads(found.out)
    check_schema("stream", account)
    return account


def same(found, known):
    assert {name: found[name] for name in known} == known


def test_parquet(tmp_path, capsys):
    data = frame()
    data.to_parquet(tmp_path / "t.parquet", index=False)
    found = run(capsys, tmp_path / "t.parquet", "--every", 1000)
    same(found, expected(coded(data), data.y.to_numpy(str)))
    assert found["classes"] == [str(v) for v in pd.unique(data.y)]
    assert found["lines"][-1]["error"] == found["error"]


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_csv(sep, tmp_path, capsys):
    data = frame().round(6)
    data.to_csv(tmp_path / "t.csv", index=False, sep=sep)
    found = run(capsys, tmp_path / "t.csv")
    same(found, expected(coded(data), data.y.to_numpy(str)))


def test_decimal_commas_and_encoding(tmp_path, capsys):
    data = frame().round(6).rename(columns={"a": "größe"})
    data.to_csv(
        tmp_path / "t.csv", index=False, sep=";", decimal=",", encoding="cp1252"
    )
    found = run(capsys, tmp_path / "t.csv", "--decimal", ",", "--encoding", "cp1252")
    X = coded(data, ("größe", "b", "c"))
    same(found, expected(X, data.y.to_numpy(str)))


def test_a_folder_is_one_stream(tmp_path, capsys):
    data = frame()
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(3):
        part = data[1000 * k : 1000 * (k + 1)]
        part.to_parquet(folder / f"{k}.parquet", index=False)
    found = run(capsys, folder)
    same(found, expected(coded(data), data.y.to_numpy(str)))


def test_gaps_and_texts(tmp_path, capsys):
    data = frame()
    data["kind"] = np.array(["red", "blue", None], dtype=object)[np.arange(N) % 3]
    data["name"] = [f"n{i}" for i in range(N)]
    data["day"] = pd.Timestamp("2020-01-01")
    data.loc[5, "a"] = np.nan
    data.loc[7, "y"] = None
    pq.write_table(pa.Table.from_pandas(data), tmp_path / "t.parquet")
    found = run(capsys, tmp_path / "t.parquet")
    X = [data.a.fillna(data.a.drop(7).mean()), data.a.isna(), data.b, data.c]
    X += [data.kind == "blue", data.kind == "red"]
    X = np.column_stack([np.asarray(column, dtype=float) for column in X])
    kept = data.y.notna()
    known = expected(X[kept], data.y[kept].to_numpy(str))
    for name, value in known.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    text = " ".join(found["notes"])
    for words in (
        f"name ({N - 1} texts)", "day (timestamp", "4 columns are 6 features",
        "1 missing numbers", "1 rows without a label",
    ):  # fmt: skip
        assert words in text


def test_whole_numbers_that_become_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skbounds._stream_command._BYTES", 4096)
    data = frame().round(6)
    data["b"] = data["b"].astype(float)
    text = data.to_csv(index=False).replace(".0,", ",")
    # Whole numbers, nothing, and at the end something else.
    (tmp_path / "t.csv").write_text(text.rsplit("\n", 3)[0] + "\n1.5,2.5,yes,3\n")
    found = run(capsys, tmp_path / "t.csv")
    assert found["rows"] == N - 1


def test_weights_drop_and_rows(tmp_path, capsys):
    data = frame()
    data["w"] = np.arange(N) % 2 + 1.0
    data.to_parquet(tmp_path / "t.parquet", index=False)
    found = run(capsys, tmp_path / "t.parquet", "--weight", "w", "--drop", "b",
                "--rows", 500)  # fmt: skip
    model = FenchelYoungOnlineClassifier(random_state=0)
    model.partial_fit(
        coded(data, "ac")[:500], data.y[:500].to_numpy(str), "grow", data.w[:500]
    )
    assert found["rows"] == 500
    assert found["error"] == model.progressive_errors_ / model.sum_of_weights_


def test_checkpoint(tmp_path, capsys):
    data = frame()
    data.to_parquet(tmp_path / "t.parquet", index=False)
    whole = run(capsys, tmp_path / "t.parquet")
    given = (tmp_path / "t.parquet", "--checkpoint", tmp_path / "state")
    run(capsys, *given, "--rows", 1200)
    found = run(capsys, *given)
    same(found, {name: whole[name] for name in ("rows", "error", "certificate")})
    again = run(capsys, *given)
    same(again, {name: whole[name] for name in ("rows", "error", "certificate")})


def test_what_people_read(tmp_path, capsys):
    frame().to_parquet(tmp_path / "t.parquet", index=False)
    path = str(tmp_path / "t.parquet")
    assert main(["stream", path, "--target", "y", "--confidence", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "90 % limits" in out
    assert out.splitlines()[1].split()[0] == str(N)
    assert "than the log-loss of any linear predictor of norm 10" in out


def write_text(text):
    return lambda path: path.write_text(text)


BAD = {
    "no file": (None, [], "No such file"),
    "no column": (write_text("a,b\n1,2\n"), [], "no column 'y'"),
    "no feature": (write_text("y\n1\n2\n"), [], "no feature beside"),
    "no rows": (write_text("a,y\n"), [], "no row with a label"),
    "empty": (write_text(""), [], "not readable"),
    "one class too many": (
        lambda path: frame().assign(y=np.arange(N)).to_csv(path),
        [],
        "at most 100 classes",
    ),
    "ragged": (write_text("a,y\n1,2\n1,2,3\n"), [], "not readable"),
    "encoding": (
        lambda path: path.write_bytes(b"a,y\n\xff,\xfe\n"),
        [],
        "not readable",
    ),
    "unknown encoding": (write_text("a,y\n1,2\n"), ["--encoding", "none"], "none"),
    "separator": (write_text("a,y\n1,2\n"), ["--sep", "::"], "--sep"),
    "infinite": (write_text("a,y\n1,a\ninf,b\n"), [], "infinity"),
    "weights": (write_text("a,w,y\n1,x,a\n2,y,b\n"), ["--weight", "w"], "'w' holds no"),
    "confidence": (write_text("a,y\n1,2\n"), ["--confidence", "1"], "--confidence"),
    "norm": (write_text("a,y\n1,2\n"), ["--norm", "-1"], "--norm"),
    "rows": (write_text("a,y\n1,2\n"), ["--rows", "0"], "--rows"),
    "every": (write_text("a,y\n1,2\n"), ["--every", "0"], "--every"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name, tmp_path, capsys):
    write, more, words = BAD[name]
    path = tmp_path / "t.csv"
    if write is not None:
        write(path)
    assert main(["stream", str(path), "--target", "y", *more]) == 2
    found = capsys.readouterr()
    assert found.err.startswith("skbounds: ")
    assert found.err.count("\n") == 1
    assert words in found.err
    assert os.listdir(tmp_path) in ([], ["t.csv"])


def test_a_file_that_is_no_parquet(tmp_path, capsys):
    (tmp_path / "t.parquet").write_text("a,y\n1,2\n")
    assert main(["stream", str(tmp_path / "t.parquet"), "--target", "y"]) == 2
    assert "not readable" in capsys.readouterr().err


def test_a_checkpoint_of_another_file(tmp_path, capsys):
    frame().to_parquet(tmp_path / "t.parquet", index=False)
    frame()[:50].to_parquet(tmp_path / "s.parquet", index=False)
    state = tmp_path / "state"
    run(capsys, tmp_path / "t.parquet", "--checkpoint", state)
    before = state.read_bytes()
    status = main(
        ["stream", str(tmp_path / "s.parquet"), "--target", "y"]
        + ["--checkpoint", str(state)]
    )
    assert status == 2
    assert "another stream" in capsys.readouterr().err
    assert state.read_bytes() == before


def test_interrupted(tmp_path, capsys, monkeypatch):
    frame().to_parquet(tmp_path / "t.parquet", index=False)
    plain = _stream_command._read

    def stopped(options, report):
        for batch in plain(options, report):
            yield batch.slice(0, 1000)
            yield batch.slice(1000, 1000)
            raise KeyboardInterrupt

    monkeypatch.setattr(_stream_command, "_read", stopped)
    given = ["stream", str(tmp_path / "t.parquet"), "--target", "y", "--every", "500"]
    assert main(given) == 130
    assert capsys.readouterr().err == "skbounds: interrupted\n"
    state = str(tmp_path / "state")
    assert main([*given, "--checkpoint", state]) == 130
    assert "has the last checkpoint" in capsys.readouterr().err
    monkeypatch.undo()
    found = run(capsys, tmp_path / "t.parquet", "--every", "500", "--checkpoint", state)
    data = frame()
    known = expected(coded(data), data.y.to_numpy(str))
    same(found, {name: known[name] for name in ("rows", "error", "certificate")})


# ------------------------------------------------------------ files as people have them


def labelled(rows, header="a,b,y"):
    return header + "\n" + "".join(f"{row}\n" for row in rows)


def test_line_breaks_between_quotes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skbounds._stream_command._BYTES", 4096)
    text = 'a,yes,"Good, not great,\nwell, so, so"'
    other = 'b,no,"bad"'
    rows = [text if k % 2 else other for k in range(300)]
    for pad in range(0, 60, 7):
        header = f"{'w' * pad}ho,y,note"
        (tmp_path / "t.csv").write_text(labelled(rows, header))
        found = run(capsys, tmp_path / "t.csv")
        assert (found["rows"], found["classes"]) == (300, ["no", "yes"])


def test_headers_as_people_have_them(tmp_path, capsys):
    rows = [f"{k};{k % 3};{'yes' if k % 2 else 'no'}" for k in range(60)]
    for header in ("\na;b;y", '"a, in m, s";b;y', "a ; b ; y"):
        (tmp_path / "t.csv").write_text(labelled(rows, header))
        assert run(capsys, tmp_path / "t.csv")["classes"] == ["no", "yes"]
    (tmp_path / "t.csv").write_text(labelled(rows, "a;a;y"))
    assert main(["stream", str(tmp_path / "t.csv"), "--target", "y"]) == 2
    assert "same name: ['a']" in capsys.readouterr().err


def test_decimal_marks_are_guessed(tmp_path, capsys):
    data = frame().round(3)
    data.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    found = run(capsys, tmp_path / "t.csv")
    assert "Decimal mark: ," in found["notes"]
    same(found, expected(coded(data), data.y.to_numpy(str)))


def test_columns_that_change_their_kind(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skbounds._stream_command._BYTES", 2048)
    rows = [f"{k % 7},{k},{k % 2},,true" for k in range(400)]
    rows += [f"{k % 7},A{k},{k % 2}.0,late,maybe" for k in range(10)]
    (tmp_path / "t.csv").write_text(labelled(rows, "a,id,y,empty,flag"))
    found = run(capsys, tmp_path / "t.csv", "--drop", "id")
    assert found["rows"] == 410
    assert "empty (nothing at first)" in " ".join(found["notes"])
    assert main(["stream", str(tmp_path / "t.csv"), "--target", "y"]) == 2
    errors = capsys.readouterr().err
    assert "column 'id'" in errors and "--drop" in errors


def test_rows_without_labels_come_first(tmp_path, capsys):
    folder = tmp_path / "parts"
    folder.mkdir()
    data = frame()[:600]
    data["k"] = np.where(np.arange(600) % 2, "u", "v")
    data[:200].assign(y=pd.Series([None] * 200, dtype=object)).astype(
        {"y": "string"}
    ).to_parquet(folder / "0.parquet", index=False)
    data[200:].astype({"y": "string"}).to_parquet(folder / "1.parquet", index=False)
    found = run(capsys, folder)
    assert found["rows"] == 400
    assert found["n_features"] == 5
    assert "200 rows without a label were left out." in found["notes"]


def test_labels_that_are_no_numbers(tmp_path, capsys):
    labels = np.where(np.arange(300) % 3 == 0, np.nan, np.arange(300) % 2)
    table = pa.table(
        {"a": np.arange(300.0) % 5, "y": pa.array(labels, from_pandas=False)}
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    found = run(capsys, tmp_path / "t.parquet")
    assert (found["rows"], found["classes"]) == (200, ["1", "0"])


def test_weights_of_zero(tmp_path, capsys):
    data = frame().assign(w=0.0)
    data.to_parquet(tmp_path / "t.parquet", index=False)
    found = run(capsys, tmp_path / "t.parquet", "--weight", "w")
    assert found["rows"] == N and found["error"] == 0.0
    data["w"] = np.arange(N) % 2
    data.to_parquet(tmp_path / "t.parquet", index=False)
    assert run(capsys, tmp_path / "t.parquet", "--weight", "w")["rows"] == N


def test_views_of_texts(tmp_path, capsys):
    data = frame()[:300]
    table = pa.table({"a": data.a, "k": pa.array(["u", None, "v"] * 100),
                      "y": pa.array([*data.y[:-1], None])})  # fmt: skip
    schema = pa.schema(
        [("a", pa.float64()), ("k", pa.string_view()), ("y", pa.string_view())]
    )
    pq.write_table(table.cast(schema), tmp_path / "t.parquet")
    assert run(capsys, tmp_path / "t.parquet")["rows"] == 299


def test_folders_of_csv_and_compressed_files(tmp_path, capsys):
    data = frame().round(6)
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(3):
        data[1000 * k : 1000 * (k + 1)].to_csv(folder / f"{k}.csv", index=False)
    (folder / "_SUCCESS").write_text("a;b;c")
    (folder / ".hidden.parquet").write_text("no table")
    known = expected(coded(data), data.y.to_numpy(str))
    same(run(capsys, folder), known)
    for name in ("t.csv.gz", "t.csv.bz2", "t.txt"):
        data.to_csv(tmp_path / name, index=False)
        same(run(capsys, tmp_path / name), known)
    data.to_csv(tmp_path / "t.tsv.gz", index=False, sep="\t", decimal=",")
    same(run(capsys, tmp_path / "t.tsv.gz"), known)


def test_the_last_suffix_counts(tmp_path):
    from skbounds._record_batches import kind_of_file

    for name, kind in {
        "a.csv.parquet": "parquet", "a.parquet": "parquet", "a": "parquet",
        "a.2024.csv": "csv", "A.CSV.GZ": "csv", "a.tsv.zst": "csv", "a.gz": "parquet",
        "a.csv.feather": "feather", "a.arrow": "feather",
    }.items():  # fmt: skip
        assert kind_of_file(tmp_path / name) == kind


def test_a_grown_file_goes_on_as_it_began(tmp_path, capsys):
    data = frame()
    data["k"] = np.where(np.arange(N) < 900, "u", "v")
    data.loc[1500, "a"] = np.nan
    path, state = tmp_path / "t.csv", tmp_path / "state"
    data[:900].to_csv(path, index=False)
    run(capsys, path, "--checkpoint", state)
    data.to_csv(path, index=False)
    found = run(capsys, path, "--checkpoint", state)
    # Coded as the first rows say, as if the file had always been there.
    plain = data.a.fillna(data.a[:900].mean())
    X = np.column_stack([plain, data.b, data.c, data.k == "u"]).astype(float)
    known = expected(X, data.y.to_numpy(str))
    for name in ("rows", "error", "certificate"):
        assert found[name] == pytest.approx(known[name], rel=1e-9)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "y", "--drop", "b"], "written with --drop"),
        (["--target", "z"], "written with --target"),
        (["--target", "y", "--weight", "w"], "written with --weight"),
        (["--target", "y", "--missing", "x"], "written with --missing"),
    ],
)
def test_checkpoints_know_what_was_asked(more, words, tmp_path, capsys):
    data = frame().assign(z="p", w=1.0)
    data.to_parquet(tmp_path / "t.parquet", index=False)
    state = tmp_path / "state"
    run(capsys, tmp_path / "t.parquet", "--rows", 500, "--checkpoint", state)
    status = main(
        ["stream", str(tmp_path / "t.parquet"), *more, "--checkpoint", str(state)]
    )
    assert status == 2
    assert words in capsys.readouterr().err
    data.rename(columns={"a": "q"}).to_parquet(tmp_path / "t.parquet", index=False)
    given = ["stream", str(tmp_path / "t.parquet"), "--target", "y"]
    assert main([*given, "--checkpoint", str(state)]) == 2
    assert "they were a, b, y" in capsys.readouterr().err


def test_classes_that_never_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skbounds._stream_command._BYTES", 2048)
    rows = [f"{k},{k % 3}" for k in range(1000)] + [f"{k},l{k}" for k in range(3000)]
    (tmp_path / "t.csv").write_text(labelled(rows, "a,y"))
    assert main(["stream", str(tmp_path / "t.csv"), "--target", "y"]) == 2
    assert "more than 100 labels" in capsys.readouterr().err


def test_texts_in_another_encoding(tmp_path, capsys):
    rows = [f"{k},ü,{'ja' if k % 2 else 'nö'}" for k in range(50)]
    (tmp_path / "t.csv").write_bytes(labelled(rows).encode("cp1252"))
    assert main(["stream", str(tmp_path / "t.csv"), "--target", "y"]) == 2
    assert "--encoding" in capsys.readouterr().err
    found = run(capsys, tmp_path / "t.csv", "--encoding", "cp1252")
    assert found["classes"] == ["nö", "ja"]


@pytest.mark.parametrize("more", [["--weight", "y"], ["--drop", "y"]])
def test_one_column_is_one_thing(more, tmp_path, capsys):
    frame().to_parquet(tmp_path / "t.parquet", index=False)
    assert main(["stream", str(tmp_path / "t.parquet"), "--target", "y", *more]) == 2
    assert "different columns" in capsys.readouterr().err


def test_nobody_reads_the_output(tmp_path):
    frame().to_parquet(tmp_path / "t.parquet", index=False)
    command = f"{sys.executable} -m skbounds stream t.parquet --target y | true"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
