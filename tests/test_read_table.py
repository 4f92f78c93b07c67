"""Tables as people have them: ``python -m skbounds --data``."""

import json

import numpy as np
import pytest

from skbounds.__main__ import main, own_task

pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")

# Words that mean a missing value, somewhere.
WORDS = ["", "-", "--", "NULL", "null", "n/a", "N/A", "NA", "#N/A", ".", "?", "missing"]


def write(path, rows, sep=",", encoding="utf-8"):
    path.write_text("\n".join(sep.join(row) for row in rows), encoding=encoding)
    return str(path)


def numbers(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(n, 2)) * 1000.0, 2)
    return x, np.where(x[:, 0] > 0, "yes", "no")


@pytest.mark.parametrize("word", WORDS)
def test_words_for_missing_values(tmp_path, word):
    """One of them leaves a column of numbers one, and a target without a label."""
    x, y = numbers()
    rows = [[f"{a}", f"{b}", label] for (a, b), label in zip(x, y, strict=True)]
    rows[5][0] = word
    rows[9][2] = word
    task, notes = own_task(
        write(tmp_path / "t.csv", [["a", "b", "y"], *rows]), "y", None
    )
    frame = pd.concat([task.X_train, task.X_test]).sort_index()
    assert frame.dtypes.tolist() == [np.float64, np.float64]
    assert np.isnan(frame.loc[5, "a"])
    assert len(frame) == 39 and 9 not in frame.index
    assert set(task.y_train) == {"no", "yes"}
    assert not any("Categorical" in note or "Warning" in note for note in notes)


@pytest.mark.parametrize(
    ("style", "sep", "write_number", "said"),
    [
        ("plain", ",", "{:.2f}".format, "decimal point, encoding"),
        (
            "decimal commas",
            ";",
            lambda v: f"{v:.2f}".replace(".", ","),
            "decimal comma",
        ),
        (
            "German",
            ";",
            lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")),
            "decimal comma, thousands point",
        ),
        ("English", ";", "{:,.2f}".format, "decimal point, thousands comma"),
        ("quoted", ",", lambda v: f'"{v:,.2f}"', "decimal point, thousands comma"),
        (
            "quoted comma",
            ",",
            lambda v: f'"{v:.2f}"'.replace(".", ","),
            "decimal comma",
        ),
        (
            "Swiss",
            ";",
            lambda v: f"{v:,.2f}".replace(",", "'"),
            'decimal point, thousands "\'"',
        ),
        (
            "French",
            "\t",
            lambda v: f"{v:,.2f}".replace(",", " ").replace(".", ","),
            "decimal comma, thousands ' '",
        ),
        ("percent", ",", lambda v: f"{v:.2f} %", "decimal point"),
        ("bars", "|", "{:.2f}".format, "separator bar"),
        ("spaces", ",", "  {:.2f} ".format, "decimal point"),
        ("scientific", ",", "{:.6e}".format, "decimal point"),
    ],
)
def test_numbers_in_any_style(tmp_path, style, sep, write_number, said):
    x, y = numbers()
    rows = [[*map(write_number, row), label] for row, label in zip(x, y, strict=True)]
    path = write(tmp_path / "t.csv", [["a", "b", "y"], *rows], sep)
    task, notes = own_task(path, "y", None)
    frame = pd.concat([task.X_train, task.X_test]).sort_index()
    np.testing.assert_allclose(frame.to_numpy(), x, rtol=1e-6)
    assert said in notes[0]
    assert ("Column 'a' is in percent." in notes) == (style == "percent")


def test_what_is_given_is_not_guessed(tmp_path):
    """Ambiguous numbers, an unusual separator, an old encoding, a word of one's own."""
    y = numbers()[1]
    rows = [[f"1,{i:03d}", "gone" if i == 3 else f"{i}", y[i]] for i in range(40)]
    path = write(tmp_path / "t.csv", [["é", "b", "y"], *rows], "~", "cp1252")
    options = {"sep": "~", "missing": ["gone"]}
    for decimal, first in ((",", 1.0), (".", 1000.0)):
        task, notes = own_task(path, "y", None, decimal=decimal, **options)
        frame = pd.concat([task.X_train, task.X_test]).sort_index()
        assert frame.loc[0, "é"] == first
        assert np.isnan(frame.loc[3, "b"])
        assert "encoding cp1252" in notes[0]
    task, notes = own_task(path, "y", None, encoding="latin-1", **options)
    assert "é" in task.X_train and "encoding latin-1" in notes[0]
    wide = tmp_path / "wide.csv"
    wide.write_bytes(
        "\n".join(["a,y", *[f"{i},{y[i]}" for i in range(40)]]).encode("utf-16")
    )
    assert "encoding utf-16" in own_task(str(wide), "y", None)[1][0]


def test_columns_that_are_nearly_numbers_are_named(tmp_path):
    y = numbers()[1]
    rows = [
        ["1_200" if i % 2 else "low", f"{i % 9 or 'many'}", y[i]] for i in range(40)
    ]
    path = write(tmp_path / "t.csv", [["a", "b", "y"], *rows])
    task, notes = own_task(path, "y", None)
    [warning] = [note for note in notes if note.startswith("Warning")]
    assert "'b'" in warning and "many" in warning and "--missing" in warning
    # Underscores are for programs: 1_200 is a text.
    assert set(task.X_train["a"]) == {"1_200", "low"}
    task, notes = own_task(path, "y", None, missing=["many"])
    assert task.X_train["b"].dtype == np.float64
    assert not any(note.startswith("Warning") for note in notes)


@pytest.mark.parametrize("first", [0, 1])
def test_a_column_without_name_that_counts_rows(tmp_path, first):
    """As pandas writes it; one with other numbers stays."""
    x, y = numbers()
    rows = [[f"{first + i}", f"{x[i, 0]}", y[i]] for i in range(40)]
    path = write(tmp_path / "t.csv", [["", "a", "y"], *rows])
    task, notes = own_task(path, "y", None)
    assert task.X_train.columns.tolist() == ["a"]
    assert any("counts the rows" in note for note in notes)
    rows = [[f"{3 * i}", *row[1:]] for i, row in enumerate(rows)]
    path = write(tmp_path / "t.csv", [["", "a", "y"], *rows])
    assert own_task(path, "y", None)[0].X_train.columns.tolist() == ["unnamed 1", "a"]


def test_targets_of_several_kinds(tmp_path):
    """Whole numbers with a gap stay whole; truth values are two classes."""
    x, _ = numbers()
    rows = [[f"{x[i, 0]}", f"{i % 3}" if i else "", f"{i % 2 == 0}"] for i in range(40)]
    path = write(tmp_path / "t.csv", [["a", "y", "z"], *rows])
    assert set(own_task(path, "y", None)[0].y_train) == {"0", "1", "2"}
    task, _ = own_task(path, "z", None)
    assert set(task.y_train) == {"True", "False"}
    task, _ = own_task(path, "a", None)
    assert task.kind == "regression"
    assert set(task.X_train["z"]) == {"True", "False"}


def test_bad_options(tmp_path, capsys):
    path = write(tmp_path / "t.csv", [["a", "y"], *[[f"{i}", "u"] for i in range(30)]])
    cases = {
        "--sep must be one character": ["--sep", ";;"],
        "'nonsense' is not known": ["--encoding", "nonsense"],
        "no text in utf-16": ["--encoding", "utf-16"],
    }
    for message, options in cases.items():
        assert main(["--data", path, "--target", "y", *options]) == 2
        assert message in capsys.readouterr().err
    for name, value in (("sep", ";"), ("decimal", ","), ("encoding", "utf-8")):
        assert main([f"--{name}", value]) == 2
        assert f"--{name} needs --data" in capsys.readouterr().err


def test_without_pandas(tmp_path, monkeypatch, capsys):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda n, *a: None if n == "pandas" else found(n, *a),
    )
    path = write(tmp_path / "t.csv", [["a", "y"], ["1", "u"]])
    assert main(["--data", path, "--target", "y"]) == 2
    assert "pip install 'skbounds[plot]'" in capsys.readouterr().err


@pytest.mark.slow
def test_many_classes_end_within_the_tour(tmp_path, monkeypatch, capsys):
    """Twenty classes on 600 rows: every number is there, and accuracies are ones."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(600, 6)), rng.normal(size=(6, 20))
    y = (2.0 * X @ W + rng.gumbel(size=(600, 20))).argmax(axis=1)
    rows = [[*map("{:.4f}".format, x), f"k{k}"] for x, k in zip(X, y, strict=True)]
    path = write(tmp_path / "many.csv", [[*"abcdef", "y"], *rows])
    assert main(["--data", path, "--target", "y", "--json"]) == 0
    for entry in json.loads(capsys.readouterr().out)["entries"]:
        for row in entry["methods"]:
            for name, value in row.items():
                if "accuracy" in name or "error" in name:
                    assert 0.0 <= value <= 1.0, (entry["title"], row)
