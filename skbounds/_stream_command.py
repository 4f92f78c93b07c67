"""``python -m skbounds stream``: a classifier learns a file row by row."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from skbounds._read_table import MISSING, InputError, check_core

# Rows that are read at once, and bytes of a CSV file, of which pyarrow reads 32 ahead.
_ROWS, _BYTES = 2**16, 2**22
# Texts of a column that have a feature of their own, and classes of a target.
_MOST_TEXTS, _MOST_CLASSES = 50, 100
# Rows of a CSV file that the decimal mark is guessed from.
_GLANCE = 1000
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
    parser.add_argument(
        "file", metavar="FILE.parquet|csv|feather", help="or a folder of them"
    )
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
    parser.add_argument(
        "--decimal", choices=[".", ","], help="of a CSV; default: the first numbers'"
    )
    parser.add_argument("--encoding", default="utf8", help="of a CSV; default: utf8")
    parser.add_argument("--missing", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--json", action="store_true", help="print a line of JSON")
    return parser


def main(arguments: list[str]) -> int:
    """Run the command; return the exit status."""
    options = build_parser().parse_args(arguments)
    try:
        found = run(options, report=(lambda text: None) if options.json else print)
        if options.json:
            print(json.dumps(found, allow_nan=False))
    except InputError as error:
        print(f"skbounds: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = ""
        if options.checkpoint and Path(options.checkpoint).exists():
            kept = f"; {options.checkpoint} has the last checkpoint"
        print(f"skbounds: interrupted{kept}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Nobody reads on; nor is there anything left to be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
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
    check_core()
    from skbounds.fenchel_young import FenchelYoungOnlineClassifier

    _check(options)
    source = CodedFile(options, report)
    model = FenchelYoungOnlineClassifier(random_state=0)
    lines: list = []
    first: list = []
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
        if len(model.classes_) > _MOST_CLASSES:
            raise InputError(
                f"column {options.target!r} has more than {_MOST_CLASSES} labels"
            )
        if not first:
            first.extend([n_rows, time.perf_counter()])
        told = lines[-1]["rows"] if lines else 0
        if n_rows // options.every > told // options.every:
            tell(n_rows)

    try:
        model.play_batches(
            source, classes="grow", checkpoint=options.checkpoint,
            checkpoint_every=options.every, progress=progress,
        )  # fmt: skip
    except BrokenPipeError:
        raise
    except UnicodeError:
        raise InputError(
            f"{options.file!r} is not readable as text in {options.encoding}; give its "
            "--encoding"
        ) from None
    except (ValueError, OSError) as error:
        notes = " ".join(getattr(error, "__notes__", []))
        raise InputError(" ".join(f"{error} {notes}".split())) from error
    if not lines or lines[-1]["rows"] != source.n_rows:
        # Without a progress there was nothing new.
        first = first or [source.n_rows, 0.0]
        tell(source.n_rows)
    certificate = float(model.surrogate_regret_certificate(options.norm))
    size = abs(certificate)
    relation = "at most {} more" if certificate >= 0.0 else "at least {} less"
    a_row = size / (model.sum_of_weights_ or 1.0)
    relation = relation.format(f"{size:.1f} ({a_row:.2g} a row)")
    report(
        f"Whatever the rows are: the errors to be expected of the plays, summed, are "
        f"{relation} than the log-loss of any linear predictor of norm "
        f"{options.norm:g} on the scaled features."
    )
    source.tell_of_gaps()
    return {
        **lines[-1],
        "confidence": options.confidence,
        "classes": [str(label) for label in model.classes_.tolist()],
        "n_features": model.n_features_in_,
        "norm": options.norm,
        "certificate": certificate,
        "notes": source.notes,
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
    names = [options.target, *options.drop]
    if options.weight is not None:
        names.append(options.weight)
    if len(set(names)) < len(names):
        raise InputError("--target, --weight and --drop must name different columns")


def _line(model, n_rows, options, rate):
    weight = model.sum_of_weights_ or 1.0
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


def _read(options, report):
    """Yield record batches of the file; `report` gets how it is read."""
    from skbounds import _record_batches as tables

    try:
        pyarrow = tables.import_pyarrow("reading a file as a stream")
    except ImportError as error:
        raise InputError(str(error)) from None
    path = Path(options.file)
    names = []
    try:
        kind = tables.kind_of_file(path)
        if kind == "csv":
            for file in tables.files_of(path):
                yield from _read_csv(pyarrow, file, options, report, names)
        elif kind == "feather":
            for batch in tables.read_feather(path, _ROWS):
                names[:] = batch.schema.names
                _check_columns(options, names)
                yield batch
        else:
            dataset = pyarrow.dataset.dataset(str(path), format="parquet")
            names[:] = dataset.schema.names
            _check_columns(options, names)
            yield from tables.scan(dataset, _ROWS)
    except (pyarrow.ArrowException, LookupError) as error:
        # Of the columns that are read.
        text = tables.one_line(error, names)
        hint = ""
        if "UTF8" in text or "utf-8" in text:
            hint = "; give its --encoding"
        elif "conversion error" in text:
            hint = (
                ". Name words for what is missing with --missing, or leave the column "
                "out with --drop"
            )
        raise InputError(f"{options.file!r} is not readable: {text}{hint}") from None


def _check_columns(options, names):
    for name in (options.target, options.weight, *options.drop):
        if name is not None and name not in names:
            raise InputError(f"no column {name!r}; there are {', '.join(names)}")


def _read_csv(pyarrow, path, options, report, names):
    from pyarrow import csv

    from skbounds._record_batches import guess_separator

    sep = options.sep or guess_separator(path, options.encoding)
    sep = sep.replace("\\t", "\t").replace("tab", "\t")
    if len(sep) != 1:
        raise InputError(f"--sep must be one character, or 'tab'; got {sep!r}")
    decimal = options.decimal
    if decimal is None:
        decimal = _guess_decimal(path, sep, options.encoding)
        if decimal != "." and not names:
            report(f"Decimal mark: {decimal}")
    words = csv.ConvertOptions().null_values
    given = {
        "null_values": [*words, *MISSING, *options.missing],
        "strings_can_be_null": True,
        "decimal_point": decimal,
    }
    reading = csv.ReadOptions(block_size=_BYTES, encoding=options.encoding)
    parsing = csv.ParseOptions(delimiter=sep, newlines_in_values=True)

    def open_with(**more):
        convert = csv.ConvertOptions(**given, **more)
        return csv.open_csv(path, reading, parsing, convert)

    kinds = pyarrow.types
    with open_with() as reader:
        schema = reader.schema
    stripped = _different([name.strip() for name in schema.names])
    _check_columns(options, stripped)
    types, used = {}, []
    for field, name in zip(schema, stripped, strict=True):
        if name in options.drop:
            continue
        used.append(field.name)
        number = kinds.is_integer(field.type) or kinds.is_floating(field.type)
        # Whole numbers may become others; what is no number at the beginning, or a
        # label, is a text for good.
        as_number = number and name != options.target
        types[field.name] = pyarrow.float64() if as_number else pyarrow.string()
    names[:] = [name for name in stripped if name not in options.drop]
    with open_with(include_columns=used, column_types=types) as reader:
        for batch in reader:
            yield pyarrow.RecordBatch.from_arrays(batch.columns, names=names)


def _guess_decimal(path, sep, encoding):
    """Return the decimal mark of the first rows' numbers."""
    import csv
    import io
    from itertools import islice

    from skbounds._read_table import guess_marks
    from skbounds._record_batches import head_of

    text = io.StringIO(head_of(path, encoding), newline="")
    try:
        rows = list(islice(csv.reader(text, delimiter=sep), 1, 1 + _GLANCE))
    except csv.Error:
        return "."
    return guess_marks([cell.strip() for row in rows for cell in row], sep, None)[0]


def _different(names):
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"there are several columns of the same name: {twice}")
    return names


def _is_plan(state):
    """Tell whether this is what `CodedFile.get_state` returns."""
    if not isinstance(state, dict) or not isinstance(state.get("asked"), dict):
        return False
    names, plan = state.get("names"), state.get("plan")
    if not isinstance(names, list) or not isinstance(plan, list) or not plan:
        return False
    good = all(isinstance(part, (_Numbers, _Texts)) for part in plan)
    return good and all(isinstance(name, str) for name in names)


class CodedFile:
    """Rows of a file as numbers, as its first rows with a label say.

    Missing numbers take the mean of these, and where there are any among them, a
    feature says so. Texts have a feature for each of the most frequent ones.

    Parameters
    ----------
    options : Namespace
    report : callable
        Gets notes.

    Attributes
    ----------
    notes : list of str
    n_rows : int
        With a label, so far.
    """

    def __init__(self, options, report):
        self.options, self.report, self.notes = options, report, []
        self.n_filled = self.n_unlabelled = self.n_rows = 0
        self.plan = self.names = None

    # What a checkpoint keeps, and must be the same.

    def _asked(self):
        o = self.options
        return {
            "--target": o.target, "--weight": o.weight, "--drop": sorted(o.drop),
            "--sep": o.sep, "--decimal": o.decimal, "--encoding": o.encoding,
            "--missing": sorted(o.missing),
        }  # fmt: skip

    def get_state(self):
        """Return how rows are coded."""
        return {"asked": self._asked(), "names": self.names, "plan": self.plan}

    def set_state(self, state):
        """Code rows as before; refuse other options."""
        if not _is_plan(state):
            raise InputError(f"{self.options.checkpoint!r} was not written by `stream`")
        for name, value in self._asked().items():
            before = state["asked"].get(name)
            if before != value:
                raise InputError(
                    f"{self.options.checkpoint!r} was written with {name} {before!r}; "
                    f"got {value!r}"
                )
        self.names, self.plan = state["names"], state["plan"]

    def note(self, text):
        """Keep a note, and report it."""
        self.notes.append(text)
        self.report(text)

    def tell_of_gaps(self):
        """Note what was missing."""
        for count, what in (
            (self.n_filled, "missing numbers were filled in"),
            (self.n_unlabelled, "rows without a label were left out"),
        ):
            if count:
                self.note(f"{count} {what}.")

    def __iter__(self):
        left = self.options.rows
        for batch in _read(self.options, self.note):
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            found = self.take(batch)
            if found is not None:
                self.n_rows += len(found[1])
                yield found
            if left == 0:
                break
        if not self.n_rows:
            raise InputError(f"{self.options.file!r} has no row with a label")

    def take(self, batch):
        """Return features, labels and weights of the rows that have a label."""
        import pyarrow
        import pyarrow.compute as pc

        o = self.options
        names = _different(list(batch.schema.names))
        if self.names is not None and names != self.names:
            raise InputError(
                f"the columns are {', '.join(names)}; they were {', '.join(self.names)}"
            )
        columns = [
            # The same texts, in a form that functions know.
            column.cast(pyarrow.string()) if "view" in str(column.type) else column
            for column in batch.columns
        ]
        batch = pyarrow.RecordBatch.from_arrays(columns, names=names)
        labels = batch.column(names.index(o.target))
        if "binary" in str(labels.type):
            raise InputError(
                f"column {o.target!r} is not readable as text; give its --encoding"
            )
        missing = pc.is_null(labels, nan_is_null=True)
        n_missing = int(pc.sum(missing).as_py() or 0)
        if n_missing:
            self.n_unlabelled += n_missing
            batch = batch.filter(pc.invert(missing))
        if not batch.num_rows:
            return None
        y = _plain_labels(batch.column(names.index(o.target)))
        weight = np.ones(len(y))
        if o.weight is not None:
            weight = _as_floats(batch.column(names.index(o.weight)))
            if weight is None:
                raise InputError(f"column {o.weight!r} holds no numbers")
        if self.plan is None:
            self._make_plan(batch, y)
            self.names = names
        X = np.empty((len(y), sum(part.width for part in self.plan)))
        begin = 0
        for part in self.plan:
            column = batch.column(names.index(part.name))
            self.n_filled += part.fill(column, X[:, begin : begin + part.width])
            begin += part.width
        return X, y, weight

    def _make_plan(self, batch, y):
        o = self.options
        if len(np.unique(y)) > _MOST_CLASSES:
            raise InputError(
                f"column {o.target!r} has {len(np.unique(y))} values in the first "
                f"{len(y)} rows; at most {_MOST_CLASSES} classes are learnt"
            )
        used = {o.target, o.weight, *o.drop}
        self.plan, left = [], []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in used:
                continue
            values = _as_floats(column)
            if values is not None:
                self.plan.append(_Numbers(name, values))
                continue
            if "binary" in str(column.type):
                raise InputError(
                    f"column {name!r} is not readable as text; give its --encoding, or "
                    "leave it out with --drop"
                )
            texts = _as_texts(column)
            if texts is None:
                left.append(f"{name} ({column.type})")
                continue
            known, counts = np.unique(texts[texts != ""], return_counts=True)
            if not len(known):
                left.append(f"{name} (nothing at first)")
            elif len(known) > max(_MOST_TEXTS, _NAMES * len(texts)):
                left.append(f"{name} ({len(known)} texts)")
            else:
                order = np.argsort(-counts, kind="stable")[:_MOST_TEXTS]
                self.plan.append(_Texts(name, np.sort(known[order])))
        if left:
            self.note("Left out: " + ", ".join(left) + ".")
        if not self.plan:
            raise InputError(f"there is no feature beside the target {o.target!r}")
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
    texts = column.fill_null("").to_numpy(zero_copy_only=False).astype(str)
    return np.char.strip(texts)


def _plain_labels(column):
    """Return labels; whole numbers where floats are."""
    from skbounds._record_batches import labels_of

    y = labels_of(column)
    if y.dtype.kind == "U":
        return np.char.strip(y)
    if y.dtype.kind == "f" and (y == np.round(y)).all() and np.abs(y).max() < 2**53:
        return y.astype(np.int64)
    return y.astype(str) if y.dtype.kind == "O" else y
