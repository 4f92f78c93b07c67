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
            rows = [row for row in csv.reader(stream) if any(map(str.strip, row))]
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
    """Return the task on the user's table."""
    columns = read_table(path, target)
    labels = columns.pop(target)
    keep = np.array([value not in MISSING for value in labels], dtype=bool)
    if keep.sum() < 20:
        raise InputError(
            f"{path!r} has {int(keep.sum())} rows with a target; at least 20 are needed"
        )
    y = np.array(labels)[keep]
    numeric = _as_numbers(y)
    if kind is None:
        many = numeric is not None and len(np.unique(numeric)) > 20
        kind = "regression" if many else "classification"
    if kind == "regression":
        if numeric is None:
            raise InputError(f"column {target!r} is not numeric: no regression on it")
        y = numeric
    else:
        values, counts = np.unique(y, return_counts=True)
        if len(values) < 2:
            raise InputError(f"column {target!r} has only one value: {values[0]!r}")
        if len(values) > 50:
            raise InputError(
                f"column {target!r} has {len(values)} classes; at most 50 are run"
            )
        if counts.min() < 5:
            rare = ", ".join(values[counts < 5][:5])
            raise InputError(f"classes with fewer than 5 rows in {target!r}: {rare}")

    numbers, categories = [], []
    for values in columns.values():
        kept = [value for value, used in zip(values, keep, strict=True) if used]
        column = _as_numbers(np.array(kept))
        if column is None:
            present = [None if value in MISSING else value for value in kept]
            categories.append(np.array(present, dtype=object))
        elif not np.all(np.isnan(column)):
            numbers.append(column)
    if not numbers and not categories:
        raise InputError(f"{path!r} has no feature with a value")
    X = np.empty((len(y), len(numbers) + len(categories)), dtype=object)
    for j, column in enumerate([*numbers, *categories]):
        X[:, j] = column
    preprocess = _preprocessing(len(numbers), len(categories))
    train_size = min(int(0.7 * len(y)), 2000)
    return _split(kind, Path(path).name, X, y, preprocess, train_size)


def _as_numbers(values):
    """Return floats with nan for missing values, or None if some value is no number."""
    try:
        return np.array(
            [np.nan if value in MISSING else float(value) for value in values]
        )
    except ValueError:
        return None


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


def main(arguments: list[str] | None = None) -> int:
    """Run the tour; return the exit status."""
    options = build_parser().parse_args(arguments)
    try:
        if (options.data is None) != (options.target is None):
            raise InputError("--data and --target go together")
        if options.task is not None and options.data is None:
            raise InputError("--task needs --data and --target")
        if options.data is None:
            tasks = shipped_tasks()
        else:
            tasks = [own_task(options.data, options.target, options.task)]
        folder = Path("skbounds-tour")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{str(folder)!r} is in the way: it is not a folder")
    except InputError as error:
        print(f"skbounds: {error}", file=sys.stderr)
        return 2

    from skbounds._tour import run_tour

    report = (lambda text: None) if options.json else print
    numbers = run_tour(tasks, folder, report=report)
    if options.json:
        print(json.dumps(numbers, indent=2, default=float))
    return 0


if __name__ == "__main__":
    sys.exit(main())
