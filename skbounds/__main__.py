"""``python -m skbounds``: the tour, on data shipped with scikit-learn or on a CSV.

``python -m skbounds stream`` learns a file row by row, see `skbounds._stream_command`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from skbounds._read_table import InputError, check_core, read_table


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m skbounds",
        description=(
            "Run each estimator beside the standard alternative, with its guarantee; "
            "pictures go to ./skbounds-tour/. The command 'stream' (--help after it) "
            "learns a file of any size row by row."
        ),
    )
    parser.add_argument("--data", metavar="FILE.csv", help="your own table")
    parser.add_argument("--target", metavar="COLUMN", help="column to predict")
    parser.add_argument(
        "--task",
        choices=["classification", "regression"],
        help="default: regression for a numeric target with more than 20 values",
    )
    parser.add_argument("--sep", help="between columns; default: the header's")
    parser.add_argument(
        "--decimal", choices=[".", ","], help="decimal mark; default: the numbers'"
    )
    parser.add_argument("--encoding", help="default: utf-8, or cp1252 where it is none")
    parser.add_argument(
        "--missing",
        nargs="+",
        default=[],
        metavar="WORD",
        help="more words for what is missing, beside pandas' and - . ? missing",
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return parser


def shipped_tasks() -> list:
    """Return the tasks on real data that needs no download."""
    from sklearn.datasets import load_breast_cancer, load_diabetes
    from sklearn.preprocessing import StandardScaler

    tasks = []
    for kind, name, load in (
        ("classification", "breast cancer", load_breast_cancer),
        ("regression", "diabetes", load_diabetes),
    ):
        X, y = load(return_X_y=True)
        # Few training rows: that is where guarantees matter.
        tasks.append(_split(kind, name, X, y, StandardScaler(), train_size=100))
    return tasks


def _split(kind, name, X, y, preprocess, train_size):
    from sklearn.model_selection import train_test_split

    from skbounds._tour import Task

    stratify = None
    if kind == "classification":
        counts = np.unique(y, return_counts=True)[1]
        stratify = y if counts.min() >= 2 and len(counts) < len(y) / 10 else None
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=train_size, random_state=0, stratify=stratify
    )
    return Task(kind, name, X_train, X_test, y_train, y_test, preprocess)


def own_task(path: str, target: str, kind: str | None, **options):
    """Return the task on the user's table, and notes on how it was read."""
    found = read_table(path, **options)
    frame, notes = found.frame, found.notes
    if target not in frame:
        raise InputError(f"no column {target!r} in {path!r}; it has {', '.join(frame)}")
    if frame.shape[1] < 2:
        raise InputError(f"{path!r} has no feature beside the target {target!r}")
    frame = frame[frame[target].notna()]
    if len(frame) < 20:
        raise InputError(
            f"{path!r} has {len(frame)} rows with a target; at least 20 are needed"
        )
    y = frame.pop(target).to_numpy()
    if y.dtype.kind == "f" and (y == np.round(y)).all() and np.abs(y).max() < 2**53:
        # A missing value makes floats of whole numbers.
        y = y.astype(np.int64)
    numeric = y.dtype.kind in "if"
    if kind is None:
        many = numeric and len(np.unique(y)) > 20
        kind = "regression" if many else "classification"
    if len(np.unique(y)) < 2:
        raise InputError(f"column {target!r} has only one value: {str(y[0])!r}")
    if kind == "regression":
        if not numeric:
            raise InputError(f"column {target!r} is not numeric: no regression on it")
        y = y.astype(np.float64)
    else:
        # Labels are read by people.
        y = y.astype(str)
        values, counts = np.unique(y, return_counts=True)
        frequent = values[counts >= 5]
        if len(frequent) < 2:
            raise InputError(
                f"column {target!r} needs two classes of at least 5 rows; it has "
                f"{len(frequent)}"
            )
        if len(frequent) > 50:
            raise InputError(
                f"column {target!r} has {len(frequent)} classes; at most 50 are run"
            )
        if len(frequent) < len(values):
            notes.append(
                f"Left out {int(counts[counts < 5].sum())} rows of "
                f"{len(values) - len(frequent)} classes with fewer than 5 rows."
            )
        used = np.isin(y, frequent)
        y, frame = y[used], frame[used]
    frame = frame.dropna(axis=1, how="all")
    if not frame.shape[1]:
        raise InputError(f"{path!r} has no feature with a value")
    numbers = frame.select_dtypes("number").columns.tolist()
    categories = [name for name in frame if name not in numbers]
    if categories:
        notes.append("Categorical columns: " + ", ".join(categories) + ".")
    frame = frame.astype(dict.fromkeys(numbers, np.float64))
    notes += [f"Warning: {text}" for text in found.warnings]
    preprocess = _preprocessing(numbers, categories)
    train_size = min(int(0.7 * len(y)), 2000)
    name = Path(path).name
    return _split(kind, name, frame, y, preprocess, train_size), notes


def _preprocessing(numbers: list, categories: list):
    """Return the standard preparation of numeric and categorical columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categorical = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing", missing_values=np.nan),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=20),
    )
    return ColumnTransformer(
        [("numeric", numeric, numbers), ("categorical", categorical, categories)]
    )


def _plain(value):
    """Return a copy of what JSON can hold; numbers that it cannot become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def main(arguments: list[str] | None = None) -> int:
    """Run the tour, or the command that comes first; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        # Names of columns that the terminal's encoding does not have.
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments[:1] == ["stream"]:
        from skbounds import _stream_command

        return _stream_command.main(arguments[1:])
    options = build_parser().parse_args(arguments)
    try:
        check_core()
        if (options.data is None) != (options.target is None):
            raise InputError("--data and --target go together")
        if options.data is None:
            for name in ("task", "sep", "decimal", "encoding", "missing"):
                if getattr(options, name):
                    raise InputError(f"--{name} needs --data and --target")
        notes = []
        if options.data is None:
            tasks = shipped_tasks()
        else:
            task, notes = own_task(
                options.data,
                options.target,
                options.task,
                sep=options.sep,
                decimal=options.decimal,
                encoding=options.encoding,
                missing=options.missing,
            )
            tasks = [task]
        folder = Path("skbounds-tour")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{str(folder)!r} is in the way: it is not a folder")
    except InputError as error:
        print(f"skbounds: {error}", file=sys.stderr)
        return 2

    from skbounds._tour import run_tour

    report = (lambda text: None) if options.json else print
    for note in notes:
        report(note)
    try:
        numbers = run_tour(tasks, folder, report=report)
    except OSError as error:
        # A disk that is full, a folder that may not be written.
        print(f"skbounds: {error}", file=sys.stderr)
        return 1
    if options.json:
        numbers["notes"] = notes
        print(json.dumps(_plain(numbers), indent=2, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
