"""``python -m skbounds stream``: a classifier learns a file row by row."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from skbounds._read_table import MISSING, InputError

# Rows that are read at once, and bytes of a CSV file.
_ROWS, _BYTES = 2**16, 2**24
# Texts of a column that have a feature of their own, and classes of a target.
_MOST_TEXTS, _MOST_CLASSES = 50, 100
# Share of different texts from which on a column is taken for names of the rows.
_NAMES = 0.5


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m skbounds stream",
        description=(
            "Learn to classify the rows of a file of any size, one after the other, in "
            "constant memory: each is predicted before its label is looked at. Prints "
            "the error so far, limits for it that hold at all times, and the regret "
            "certificate."
        ),
    )
    parser.add_argument("file", metavar="FILE.parquet|csv", help="or a folder of them")
    parser.add_argument("--target", metavar="COLUMN", required=True, help="the label")
    parser.add_argument("--weight", metavar="COLUMN", help="importance of the rows")
    parser.add_argument(
        "--drop", nargs="+", default=[], metavar="COLUMN", help="no features"
    )
    parser.add_argument("--rows", type=int, help="stop after so many rows")
    parser.add_argument(
        "--every", type=int, default=1_000_000, help="rows between two lines of output"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="keep the state here, and go on from it if it is there",
    )
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument(
        "--norm",
        type=float,
        default=10.0,
        help="of the linear predictors that the certificate is about",
    )
    parser.add_argument("--sep", help="between columns of a CSV; default: the header's")
    parser.add_argument("--decimal", choices=[".", ","], default=".")
    parser.add_argument("--encoding", default="utf8")
    parser.add_argument("--missing", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--json", action="store_true", help="print a line of JSON")
    return parser


def main(arguments: list[str]) -> int:
    """Run the command; return the exit status."""
    options = build_parser().parse_args(arguments)
    try:
        found = run(options, report=(lambda text: None) if options.json else print)
    except InputError as error:
        print(f"skbounds: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = ""
        if options.checkpoint and Path(options.checkpoint).exists():
            kept = f"; {options.checkpoint} has the last checkpoint"
        print(f"skbounds: interrupted{kept}", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(found, allow_nan=False))
    return 0


def run(options, *, report=print) -> dict:
    """Learn the file; return what is known at its end.

    Parameters
    ----------
    options : Namespace
        Of the parser.
    report : callable
        Gets the lines of output.
    """
    from skbounds.fenchel_young import FenchelYoungOnlineClassifier

    _check(options)
    coder = Coder(options.target, options.weight, options.drop, report)
    model = FenchelYoungOnlineClassifier(random_state=0)
    lines, first = [], []
    limits = f"{100 * options.confidence:g} % limits"
    heading = f"{'rows':>12}  {'error':>6}  {limits:^16}  {'plays':>6}  rows a second"

    def tell(n_rows):
        if not lines:
            report(heading)
        rate = None
        if n_rows > first[0]:
            rate = (n_rows - first[0]) / (time.perf_counter() - first[1])
        lines.append(_line(model, n_rows, options, rate))
        report(_format(lines[-1]))

    def progress(model, n_rows):
        if not first:
            first.extend([n_rows, time.perf_counter()])
        told = lines[-1]["rows"] if lines else 0
        if n_rows // options.every > told // options.every:
            tell(n_rows)

    def batches():
        n = 0
        for batch in _read(options):
            X, y, weight = coder.take(batch)
            if options.rows is not None:
                left = max(options.rows - n, 0)
                X, y, weight = X[:left], y[:left], weight[:left]
            n += len(y)
            if len(y):
                yield X, y, weight
            if options.rows is not None and n >= options.rows:
                return
        if not n:
            raise InputError(f"{options.file!r} has no row with a label")

    try:
        model.play_batches(
            batches(), classes="grow", checkpoint=options.checkpoint,
            checkpoint_every=options.every, progress=progress,
        )  # fmt: skip
    except (ValueError, OSError) as error:
        notes = " ".join(getattr(error, "__notes__", []))
        raise InputError(" ".join(f"{error} {notes}".split())) from error
    seen = model.n_samples_seen_
    if not lines or lines[-1]["rows"] != seen:
        # Without a progress there was nothing new.
        first = first or [seen, 0.0]
        tell(seen)
    certificate = float(model.surrogate_regret_certificate(options.norm))
    weight = model.sum_of_weights_
    size = abs(certificate)
    relation = "at most {} more" if certificate >= 0.0 else "at least {} less"
    relation = relation.format(f"{size:.1f} ({size / weight:.2g} a row)")
    report(
        f"Whatever the rows are: the errors to be expected of the plays, summed, are "
        f"{relation} than the log-loss of any linear predictor of norm "
        f"{options.norm:g} on the scaled features."
    )
    for count, what in (
        (coder.n_filled, "missing numbers were filled in"),
        (coder.n_unlabelled, "rows without a label were left out"),
    ):
        if count:
            coder.note(f"{count} {what}.")
    return {
        **lines[-1],
        "confidence": options.confidence,
        "classes": [str(label) for label in model.classes_.tolist()],
        "n_features": model.n_features_in_,
        "norm": options.norm,
        "certificate": certificate,
        "notes": coder.notes,
        "lines": lines,
    }


def _check(options):
    if not 0.0 < options.confidence < 1.0:
        raise InputError(f"--confidence must be in (0, 1); got {options.confidence}")
    if not 0.0 <= options.norm < np.inf:
        raise InputError(f"--norm must be 0 or more; got {options.norm}")
    for name in ("rows", "every"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} must be positive; got {value}")
    if not Path(options.file).exists():
        raise InputError(f"cannot read {options.file!r}: No such file or directory")


def _line(model, n_rows, options, rate):
    weight = model.sum_of_weights_
    low, high = model.error_interval(options.confidence)
    return {
        "rows": n_rows,
        "error": model.progressive_errors_ / weight,
        "low": low,
        "high": high,
        "error_of_plays": model.expected_cumulative_loss_ / weight,
        "rows_per_second": rate,
    }


def _format(line):
    rate = line["rows_per_second"]
    rate = "-" if rate is None else f"{rate:.0f}"
    return (
        f"{line['rows']:>12}  {line['error']:.4f}  [{line['low']:.4f}, "
        f"{line['high']:.4f}]  {line['error_of_plays']:.4f}  {rate}"
    )


def _read(options):
    """Yield record batches of the file."""
    from skbounds._record_batches import import_pyarrow

    try:
        pyarrow = import_pyarrow("reading a file as a stream")
    except ImportError as error:
        raise InputError(str(error)) from None
    path = Path(options.file)
    try:
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            yield from _read_csv(pyarrow, path, options)
        else:
            dataset = pyarrow.dataset.dataset(str(path), format="parquet")
            yield from dataset.to_batches(
                batch_size=_ROWS, batch_readahead=2, fragment_readahead=1
            )
    except (pyarrow.ArrowException, UnicodeError, LookupError) as error:
        raise InputError(
            f"{options.file!r} is not readable: {' '.join(str(error).split())}"
        ) from None


def _read_csv(pyarrow, path, options):
    from pyarrow import csv

    from skbounds._read_table import _guess_separator

    sep = options.sep
    if sep is None:
        with open(path, encoding=options.encoding, errors="replace") as file:
            sep = _guess_separator(file.readline())
    sep = sep.replace("\\t", "\t").replace("tab", "\t")
    if len(sep) != 1:
        raise InputError(f"--sep must be one character, or 'tab'; got {sep!r}")
    words = csv.ConvertOptions().null_values
    given = {
        "null_values": [*words, *MISSING, *options.missing],
        "strings_can_be_null": True,
        "decimal_point": options.decimal,
    }
    reading = csv.ReadOptions(block_size=_BYTES, encoding=options.encoding)
    parsing = csv.ParseOptions(delimiter=sep)

    def open_with(**types):
        return csv.open_csv(
            path, reading, parsing, csv.ConvertOptions(**given, column_types=types)
        )

    # Whole numbers at the beginning may become others later on.
    types = {}
    with open_with() as reader:
        for field in reader.schema:
            if pyarrow.types.is_integer(field.type) and field.name != options.target:
                types[field.name] = pyarrow.float64()
            elif pyarrow.types.is_null(field.type):
                types[field.name] = pyarrow.float64()
    with open_with(**types) as reader:
        yield from reader


class Coder:
    """Makes numbers of record batches, as the first one says.

    Missing numbers take the mean of the first batch, and where it has such, a feature
    says so. Texts have a feature for each of those in the first batch.

    Parameters
    ----------
    target : str
    weight : str or None
    drop : list of str
    report : callable

    Attributes
    ----------
    notes : list of str
    n_filled : int
        Missing numbers so far.
    n_unlabelled : int
        Rows without a label so far.
    """

    def __init__(self, target, weight, drop, report):
        self.target, self.weight, self.drop = target, weight, drop
        self.report, self.notes = report, []
        self.n_filled = self.n_unlabelled = 0
        self.plan, self.names = None, None

    def note(self, text):
        self.notes.append(text)
        self.report(text)

    def take(self, batch):
        """Return features, labels and weights of the rows that have a label."""
        names = batch.schema.names
        for name in [self.target, *([self.weight] if self.weight else []), *self.drop]:
            if name not in names:
                raise InputError(f"no column {name!r}; there are {', '.join(names)}")
        labels = batch.column(names.index(self.target))
        if labels.null_count:
            self.n_unlabelled += labels.null_count
            batch = batch.filter(labels.is_valid())
            labels = batch.column(names.index(self.target))
        if str(labels.type) in ("binary", "large_binary", "binary_view"):
            raise InputError(
                f"column {self.target!r} is not readable as text; give its --encoding"
            )
        y = _plain_labels(labels)
        n = len(y)
        weight = np.ones(n)
        if self.weight is not None:
            weight = _as_floats(batch.column(names.index(self.weight)))
            if weight is None:
                raise InputError(f"column {self.weight!r} holds no numbers")
        if self.plan is None:
            self._make_plan(batch, y)
        X = np.empty((n, sum(part.width for part in self.plan)))
        begin = 0
        for part in self.plan:
            column = batch.column(names.index(part.name))
            self.n_filled += part.fill(column, X[:, begin : begin + part.width])
            begin += part.width
        return X, y, weight

    def _make_plan(self, batch, y):
        if len(np.unique(y)) > _MOST_CLASSES:
            raise InputError(
                f"column {self.target!r} has {len(np.unique(y))} values in the first "
                f"{len(y)} rows; at most {_MOST_CLASSES} classes are learnt"
            )
        used = {self.target, self.weight, *self.drop}
        self.plan, left = [], []
        for name in batch.schema.names:
            if name in used:
                continue
            column = batch.column(batch.schema.names.index(name))
            values = _as_floats(column)
            if values is not None:
                self.plan.append(_Numbers(name, values))
                continue
            texts = _as_texts(column)
            if texts is None or not len(texts):
                left.append(f"{name} ({column.type})")
                continue
            known, counts = np.unique(texts[texts != ""], return_counts=True)
            if len(known) > max(_MOST_TEXTS, _NAMES * len(texts)):
                left.append(f"{name} ({len(known)} texts)")
                continue
            order = np.argsort(-counts, kind="stable")[:_MOST_TEXTS]
            self.plan.append(_Texts(name, np.sort(known[order])))
        if left:
            self.note("Left out: " + ", ".join(left) + ".")
        if not self.plan:
            raise InputError(f"there is no feature beside the target {self.target!r}")
        width = sum(part.width for part in self.plan)
        if width > len(self.plan):
            self.note(f"{len(self.plan)} columns are {width} features.")


class _Numbers:
    """A column of numbers, and whether they are missing."""

    def __init__(self, name, first):
        self.name, missing = name, np.isnan(first)
        self.mean = float(first[~missing].mean()) if not missing.all() else 0.0
        self.width = 1 + bool(missing.any())

    def fill(self, column, X):
        values = _as_floats(column)
        if values is None:
            raise InputError(
                f"column {self.name!r} began with numbers, and goes on with "
                f"{column.type}"
            )
        missing = np.isnan(values)
        X[:, 0] = np.where(missing, self.mean, values)
        if self.width == 2:
            X[:, 1] = missing
        return int(missing.sum())


class _Texts:
    """A column of texts, with a feature for each that is known."""

    def __init__(self, name, known):
        self.name, self.known, self.width = name, known, len(known)

    def fill(self, column, X):
        texts = _as_texts(column)
        if texts is None:
            raise InputError(
                f"column {self.name!r} began with texts, and goes on with {column.type}"
            )
        X[:] = texts[:, None] == self.known
        return 0


def _as_floats(column):
    """Return numbers of an arrow column as doubles, nan where missing, or None."""
    kind = str(column.type)
    if kind.startswith("dictionary"):
        column = column.dictionary_decode()
        kind = str(column.type)
    if kind == "null":
        return np.full(len(column), np.nan)
    if kind.startswith("decimal"):
        column = column.cast("double")
    elif not kind.startswith(("int", "uint", "float", "halffloat", "double", "bool")):
        return None
    return column.to_numpy(zero_copy_only=False).astype(np.float64)


def _as_texts(column):
    """Return texts of an arrow column, empty where missing, or None."""
    if str(column.type).startswith("dictionary"):
        column = column.dictionary_decode()
    if str(column.type) not in ("string", "large_string", "string_view"):
        return None
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(str)


def _plain_labels(column):
    """Return labels; whole numbers where floats are."""
    from skbounds._record_batches import _labels

    y = _labels(column)
    if y.dtype.kind == "f" and (y == np.round(y)).all() and np.abs(y).max() < 2**53:
        return y.astype(np.int64)
    return y.astype(str) if y.dtype.kind == "O" else y
