"""``python -m skbounds``: the tour, on data shipped with scikit-learn or on a CSV."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np

MISSING = {"", "?", "NA", "N/A", "NaN", "nan", "null", "None", "<null>"}


class InputError(Exception):
    """Something about the user's arguments or file; its text is shown as it is."""


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m skbounds",
        description=(
            "Run each estimator beside the standard alternative, with its guarantee; "
            "pictures go to ./skbounds-tour/."
        ),
    )
    parser.add_argument("--data", metavar="FILE.csv", help="your own table")
    parser.add_argument("--target", metavar="COLUMN", help="column to predict")
    parser.add_argument(
        "--task",
        choices=["classification", "regression"],
        help="default: regression for a numeric target with more than 20 values",
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


def read_table(path: str, target: str):
    """Return header names, columns (lists of strings) and the target's values."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            stream.seek(0)
            # The separator that the header has most of; a comma if it has none.
            separator = max(",;\t|", key=first.count)
            reader = csv.reader(stream, delimiter=separator)
            rows = [row for row in reader if any(map(str.strip, row))]
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path!r} is not a readable CSV file: {error}") from None
    if not rows:
        raise InputError(f"{path!r} is empty")
    header, body = [name.strip() for name in rows[0]], rows[1:]
    if len(set(header)) < len(header):
        raise InputError(f"{path!r} has column names that occur twice: {header}")
    if target not in header:
        raise InputError(
            f"no column {target!r} in {path!r}; it has {', '.join(header)}"
        )
    if len(header) < 2:
        raise InputError(f"{path!r} has no feature beside the target {target!r}")
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise InputError(
                f"{path!r}, row {number}: {len(row)} fields instead of {len(header)}"
            )
    columns = {name: [row[j].strip() for row in body] for j, name in enumerate(header)}
    return columns


def own_task(path: str, target: str, kind: str | None):
    """Return the task on the user's table, and notes on how it was read."""
    columns = read_table(path, target)
    labels = columns.pop(target)
    keep = np.array([value not in MISSING for value in labels], dtype=bool)
    if keep.sum() < 20:
        raise InputError(
            f"{path!r} has {int(keep.sum())} rows with a target; at least 20 are needed"
        )
    y = np.array(labels)[keep]
    numeric = _as_numbers(y, target)
    notes = []
    if kind is None:
        many = numeric is not None and len(np.unique(numeric)) > 20
        kind = "regression" if many else "classification"
    if len(np.unique(y)) < 2:
        raise InputError(f"column {target!r} has only one value: {str(y[0])!r}")
    if kind == "regression":
        if numeric is None:
            raise InputError(f"column {target!r} is not numeric: no regression on it")
        y = numeric
    else:
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
        y = y[used]
        keep[keep] = used

    numbers, categories, categorical_names = [], [], []
    for name, values in columns.items():
        kept = [value for value, used in zip(values, keep, strict=True) if used]
        column = _as_numbers(np.array(kept), name)
        if column is None:
            present = [None if value in MISSING else value for value in kept]
            categories.append(np.array(present, dtype=object))
            categorical_names.append(name)
        elif not np.all(np.isnan(column)):
            numbers.append(column)
    if not numbers and not categories:
        raise InputError(f"{path!r} has no feature with a value")
    X = np.empty((len(y), len(numbers) + len(categories)), dtype=object)
    for j, column in enumerate([*numbers, *categories]):
        X[:, j] = column
    if categorical_names:
        notes.append("Categorical columns: " + ", ".join(categorical_names) + ".")
    preprocess = _preprocessing(len(numbers), len(categories))
    train_size = min(int(0.7 * len(y)), 2000)
    return _split(kind, Path(path).name, X, y, preprocess, train_size), notes


def _as_numbers(values, name):
    """Return floats with nan for missing values, or None if some value is no number."""
    try:
        numbers = np.array(
            [np.nan if value in MISSING else float(value) for value in values]
        )
    except ValueError:
        return None
    if np.any(np.abs(numbers) > 1e50):
        raise InputError(f"column {name!r} has infinite values, or beyond 1e50")
    return numbers


def _preprocessing(n_numbers: int, n_categories: int):
    """Return the standard preparation of numeric and categorical columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categorical = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing", missing_values=None),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=20),
    )
    return ColumnTransformer(
        [
            ("numeric", numeric, list(range(n_numbers))),
            (
                "categorical",
                categorical,
                list(range(n_numbers, n_numbers + n_categories)),
            ),
        ]
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
    """Run the tour; return the exit status."""
    options = build_parser().parse_args(arguments)
    try:
        if (options.data is None) != (options.target is None):
            raise InputError("--data and --target go together")
        if options.task is not None and options.data is None:
            raise InputError("--task needs --data and --target")
        notes = []
        if options.data is None:
            tasks = shipped_tasks()
        else:
            task, notes = own_task(options.data, options.target, options.task)
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
    numbers = run_tour(tasks, folder, report=report)
    if options.json:
        numbers["notes"] = notes
        print(json.dumps(_plain(numbers), indent=2, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
