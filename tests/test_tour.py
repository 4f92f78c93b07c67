"""``python -m skbounds``."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from schemas import check_schema

from skbounds import _tour
from skbounds.__main__ import main


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with numbers, categories and missing values, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for i in range(80):
        x = rng.normal()
        colour = rng.choice(["red", "green", "blue"])
        label = "yes" if x + (colour == "red") + 0.5 * rng.normal() > 0 else "no"
        cells = [f"{x:.4f}", colour, f"{x + rng.normal():.4f}", label]
        if i % 9 == 0:
            cells[i % 3] = "" if i % 2 else "?"
        rows.append(cells)
    return write_csv(tmp_path / "t.csv", ["x", "colour", "value", "label"], rows)


def test_shipped_data(tmp_path, monkeypatch, capsys):
    """Every entry has a paragraph, an alternative beside it and a picture."""
    pytest.importorskip("matplotlib", reason="plot extra not installed")
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    out = capsys.readouterr().out
    for entry in _tour.entries():
        assert entry.title in out
        picture = tmp_path / "skbounds-tour" / f"{entry.picture}.png"
        assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "Guarantee:" in out and "LogisticRegressionCV" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "task"),
    [
        ("label", "classification"),
        ("value", "regression"),
        ("colour", "classification"),
    ],
)
def test_own_table(table, capsys, target, task):
    """The task is found out; numbers come as JSON and nothing else."""
    assert main(["--data", table, "--target", target, "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    check_schema("tour", numbers)
    assert {entry["task"] for entry in numbers["entries"]} == {"t.csv"}
    keys = {
        "classification": ("log loss", "test error", "estimated error"),
        "regression": ("density", "RMSE"),
    }
    for entry in numbers["entries"]:
        assert len(entry["methods"]) >= 2
        for row in entry["methods"]:
            scores = [
                value
                for name, value in row.items()
                if any(key in name for key in keys[task])
            ]
            assert len(scores) == 1
            assert np.isfinite(scores[0])
        assert entry["n_train"] == 56
    assert main(["--data", table, "--target", target, "--task", task]) == 0


def test_without_matplotlib(table, monkeypatch, capsys):
    """A plain message instead of pictures."""
    monkeypatch.setattr(_tour, "_pyplot", lambda: None)
    assert main(["--data", table, "--target", "label"]) == 0
    assert "matplotlib is not installed" in capsys.readouterr().out


def test_bad_input_is_one_line_and_status_2(table, tmp_path, capsys):
    """No traceback, whatever is wrong with arguments or file."""
    many = [[str(i), "a"] for i in range(30)]
    infinite = [[str(i), "inf" if i == 3 else "1"] for i in range(30)]
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 10)
    (tmp_path / "empty.csv").write_text("")
    cases = {
        "cannot read": ["--data", "missing.csv", "--target", "x"],
        "is empty": ["--data", str(tmp_path / "empty.csv"), "--target", "x"],
        "not a readable CSV": ["--data", str(binary), "--target", "x"],
        "no column 'z'": ["--data", table, "--target", "z"],
        "go together": ["--data", table],
        "--task needs": ["--task", "regression"],
        "is not numeric": [
            "--data",
            table,
            "--target",
            "label",
            "--task",
            "regression",
        ],
        "only one value": [
            *("--data", write_csv(tmp_path / "one.csv", ["x", "y"], many)),
            *("--target", "y"),
        ],
        "at least 20": [
            *("--data", write_csv(tmp_path / "few.csv", ["x", "y"], many[:5])),
            *("--target", "y"),
        ],
        "two classes of at least 5 rows": [
            *("--data", write_csv(tmp_path / "rare.csv", ["x", "y"], [*many, "zb"])),
            *("--target", "y"),
        ],
        "has infinite values": [
            *("--data", write_csv(tmp_path / "inf.csv", ["y", "x"], infinite)),
            *("--target", "y"),
        ],
        "fields instead of": [
            *("--data", write_csv(tmp_path / "ragged.csv", ["x", "y"], [*many, "abc"])),
            *("--target", "y"),
        ],
        "occur twice": [
            *("--data", write_csv(tmp_path / "twice.csv", ["x", "x"], many)),
            *("--target", "x"),
        ],
        "no feature beside": [
            *("--data", write_csv(tmp_path / "alone.csv", ["x"], [["1"]] * 30)),
            *("--target", "x"),
        ],
    }
    for message, arguments in cases.items():
        assert main(arguments) == 2, arguments
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.count("\n") == 1


def test_separators_and_rare_classes(tmp_path, monkeypatch, capsys):
    """Semicolons are understood; rows of rare classes are left out with a note."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["a;b;kind"]
    lines += [f"{rng.normal():.3f};{i % 7};{'uv'[i % 2]}" for i in range(60)]
    path = tmp_path / "semicolon.csv"
    path.write_text("\n".join([*lines, "1;2;w"]))
    assert main(["--data", str(path), "--target", "kind", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    check_schema("tour", numbers)
    assert numbers["notes"] == [
        "Read semicolon.csv with separator semicolon, decimal point, encoding utf-8.",
        "Left out 1 rows of 1 classes with fewer than 5 rows.",
    ]
    constant = write_csv(tmp_path / "c.csv", ["x", "y"], [[i, 3] for i in range(30)])
    assert main(["--data", constant, "--target", "y", "--task", "regression"]) == 2
    assert "only one value" in capsys.readouterr().err


def test_bad_arguments_in_a_real_process(tmp_path):
    """Unknown options end with status 2 and no traceback."""
    for arguments in (["--nonsense"], ["--data", "missing.csv", "--target", "y"]):
        run = subprocess.run(
            [sys.executable, "-m", "skbounds", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 2
        assert "Traceback" not in run.stderr and run.stderr
