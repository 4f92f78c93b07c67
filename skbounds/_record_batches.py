"""Tables in batches of rows: pairs of arrays, dataframes, and what pyarrow reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skbounds._frames import column, column_names, is_frame
from skbounds._labels import is_missing

# What the names of packed files end with.
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
# Kinds of tables, by suffixes.
_TABLES = dict.fromkeys((".csv", ".tsv", ".txt"), "csv")
_TABLES |= dict.fromkeys((".feather", ".arrow", ".ipc"), "feather")
_TABLES |= dict.fromkeys((".parquet", ".parq", ".pq"), "parquet")
# Bytes that separators and decimal marks are guessed from.
_HEAD = 2**18


class Batch(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    X : array-like of shape (n, d)
    y : array-like
    weight : array-like of shape (n,) or None
    names : list of str or None
        Of the features, where X was a table that had them.
    """

    X: object
    y: object
    weight: object = None
    names: list | None = None


def read_batches(
    batches, target=None, weight=None, batch_size=2**16, *, has_labels=True
):
    """Yield the batches of a stream.

    Parameters
    ----------
    batches : iterable, path, or table, dataset, file or reader of pyarrow
        Of tuples (X, y) or (X, y, weight), or of tables with a column for the target.
    target : str, list of str or None
        Name of the target's column, or columns; for tables.
    weight : str or None
        Name of the weights' column; for tables.
    batch_size : int
        Largest number of rows of a batch that pyarrow makes.
    has_labels : bool
        Whether whole numbers of a CSV file's target are labels, to be kept as they are.

    Yields
    ------
    batch : Batch

    Raises
    ------
    ValueError
        Also for files that are damaged.
    """
    wholes = () if not has_labels else target
    wholes = wholes if isinstance(wholes, (list, tuple)) else (wholes,)
    try:
        yield from _take_batches(_items(batches, batch_size, wholes), target, weight)
    except Exception as error:
        if not is_of_reading(error):
            raise
        raise ValueError(one_line(error)) from error


def is_of_reading(error) -> bool:
    """Tell whether an error is pyarrow's, of data that are damaged."""
    if isinstance(error, OSError):
        # Those of the system have a number.
        return type(error) is OSError and error.errno is None
    own = type(error).__module__.partition(".")[0] == "pyarrow"
    return own or type(error) is UnicodeDecodeError


def one_line(error, names=()) -> str:
    """Return the text of an error of pyarrow in a line, with the columns' names."""
    text = " ".join(str(error).split())
    for number in re.findall(r"column #(\d+)", text):
        if int(number) < len(names):
            text = text.replace(f"column #{number}", f"column {names[int(number)]!r}")
    return text


def _take_batches(items, target, weight):
    plan = None
    for number, item in enumerate(items):
        if isinstance(item, tuple):
            if target is not None or weight is not None:
                raise ValueError(
                    "target and sample_weight name columns of tables; batches are "
                    f"tuples, of which batch {number} has {len(item)} items."
                )
            if len(item) not in (2, 3):
                raise ValueError(
                    "batches must be tuples (X, y) or (X, y, sample_weight), or tables "
                    f"with a target column; batch {number} has {len(item)} items."
                )
            yield Batch(*item)
            continue
        if not (_is_arrow(item) or is_frame(item)):
            raise ValueError(
                "batches must be tuples (X, y) or (X, y, sample_weight), or tables "
                f"with a target column; batch {number} is a {type(item).__name__}."
            )
        if plan is None:
            plan = _Plan(item, target, weight)
        yield plan.take(item, number)


def n_rows_of(batch) -> int:
    """Return the number of rows of a batch, of which X and y must have as many."""
    sizes = []
    for name, values in (("X", batch.X), ("y", batch.y)):
        shape = getattr(values, "shape", None)
        if (shape is not None and not shape) or not (
            shape or hasattr(values, "__len__")
        ):
            raise ValueError(f"{name} must have an entry for each row; got {values!r}.")
        sizes.append(shape[0] if shape else len(values))
    if sizes[0] != sizes[1]:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{sizes[0]}, y has {sizes[1]}."
        )
    return int(sizes[0])


def _is_arrow(item):
    """Tell whether something is a table or a record batch of pyarrow."""
    return hasattr(item, "schema") and hasattr(item, "num_rows")


def _items(batches, batch_size, wholes) -> Iterator:
    """Yield tuples or tables."""
    if isinstance(batches, (str, PathLike)):
        yield from _read_path(batches, batch_size, wholes)
    elif hasattr(batches, "iter_batches"):
        yield from batches.iter_batches(batch_size=batch_size)
    elif _is_arrow(batches) and hasattr(batches, "to_batches"):
        yield from batches.to_batches(max_chunksize=batch_size)
    elif hasattr(batches, "dataset_schema"):
        # Scanners know their size already.
        yield from batches.to_batches()
    elif hasattr(batches, "to_batches"):
        yield from scan(batches, batch_size)
    elif _is_arrow(batches) or is_frame(batches):
        yield batches
    elif isinstance(batches, Iterable) and not isinstance(batches, (bytes, bytearray)):
        yield from batches
    else:
        raise ValueError(
            "batches must be an iterable of batches, a path, or what pyarrow reads "
            f"tables from; got {type(batches).__name__}."
        )


def kind_of_file(path) -> str:
    """Return "csv", "feather" or "parquet", by the names of a file or in a folder."""
    for first in files_of(path)[:1]:
        return _TABLES.get(_suffix(first), "parquet")
    return "parquet"


def files_of(path) -> list[Path]:
    """Return a file, or the tables in a folder, in the order of their names.

    Without what is hidden, and without other files beside tables.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    found = []
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        parts = file.relative_to(path).parts
        if not any(part.startswith((".", "_")) for part in parts):
            found.append(file)
    return [file for file in found if _suffix(file) in _TABLES] or found


def _suffix(file):
    """Return the suffix of a name, before that of the packing."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def guess_separator(path, encoding="utf8") -> str:
    """Return the separator that a file's header has most of."""
    for line in head_of(path, encoding).splitlines():
        if line.strip():
            # Not what stands between quotes.
            line = re.sub(r'"[^"]*"', "", line)
            return max(",;\t|", key=line.count)
    return ","


def head_of(path, encoding="utf8") -> str:
    """Return the first text of a file, packed or not."""
    pyarrow = import_pyarrow("reading a table")
    with pyarrow.input_stream(str(path)) as file:
        return file.read(_HEAD).decode(encoding, errors="replace")


def _read_path(path, batch_size, wholes):
    """Yield the record batches of a file, or of the files of a folder."""
    pyarrow = import_pyarrow("a path to a table")
    if not Path(path).exists():
        raise FileNotFoundError(f"No such file or directory: {str(path)!r}")
    kind = kind_of_file(path)
    if kind == "parquet":
        yield from scan(pyarrow.dataset.dataset(str(path), format=kind), batch_size)
        return
    if kind == "feather":
        yield from read_feather(path, batch_size)
        return
    types, separator = None, guess_separator(files_of(path)[0])
    parsing = pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    for file in files_of(path):
        if types is None:
            # All files hold what the first rows of the first one do.
            with pyarrow.csv.open_csv(file, parse_options=parsing) as reader:
                types = _types_of_csv(pyarrow, reader.schema, wholes)
        convert = pyarrow.csv.ConvertOptions(column_types=types)
        options = {"parse_options": parsing, "convert_options": convert}
        names = ()
        try:
            with pyarrow.csv.open_csv(file, **options) as reader:
                names = reader.schema.names
                for batch in reader:
                    yield from _cut(batch, batch_size)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"{str(file)!r}: {one_line(error, names)}") from error


def _types_of_csv(pyarrow, schema, wholes):
    """Return types of columns: whole numbers may become others, but for labels."""
    types = {field.name: field.type for field in schema}
    for name, kind in types.items():
        if pyarrow.types.is_integer(kind) and name not in wholes:
            types[name] = pyarrow.float64()
    return types


def read_feather(path, batch_size) -> Iterator:
    """Yield the record batches of Feather files, one of which is in memory at a time.

    Offsets in a file that is damaged may point anywhere: each batch is looked through.
    """
    pyarrow = import_pyarrow("a path to a table")
    for file in files_of(path):
        with pyarrow.OSFile(str(file)) as source:
            reader = pyarrow.ipc.open_file(source)
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                batch.validate(full=True)
                yield from _cut(batch, batch_size)


def _cut(batch, size):
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def scan(dataset, batch_size) -> Iterator:
    """Yield the record batches of a dataset of pyarrow, in the memory of a few."""
    options = {"batch_size": batch_size}
    if hasattr(dataset, "get_fragments"):
        from pyarrow.dataset import (
            CsvFileFormat,
            ParquetFileFormat,
            ParquetFragmentScanOptions,
        )

        options |= {"batch_readahead": 1, "fragment_readahead": 1}
        kind = getattr(dataset, "format", None)
        # Threads of a reader go on while the batches wait to be taken, whatever is said
        # of reading ahead; of CSV files the reader does so without them.
        options["use_threads"] = isinstance(kind, CsvFileFormat)
        if isinstance(kind, ParquetFileFormat):
            # Buffers that are read ahead stay until the file ends.
            parquet = ParquetFragmentScanOptions(pre_buffer=False)
            options["fragment_scan_options"] = parquet
    yield from dataset.to_batches(**options)


def import_pyarrow(what):
    """Return pyarrow with its readers; an error names what needs it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.ipc
    except ImportError:
        raise ImportError(
            f"{what} needs pyarrow, which the extra 'scale' installs: "
            "pip install 'skbounds[scale]'"
        ) from None
    return pyarrow


class _Plan:
    """Which columns of tables are what; those of the first one, in its order."""

    def __init__(self, table, target, weight):
        if target is None:
            raise ValueError(
                "batches are tables: target must name the target's column; got None."
            )
        if weight is not None and np.ndim(weight):
            raise ValueError(
                "batches are tables: sample_weight must name a column of them; got "
                f"{type(weight).__name__}."
            )
        self.one_target = not isinstance(target, (list, tuple))
        self.targets = [target] if self.one_target else list(target)
        if not self.targets:
            raise ValueError("target must name at least one column; got none.")
        self.weight = weight
        self.names = _names_of(table)
        used = [*self.targets] + ([] if weight is None else [weight])
        for name in used:
            if name not in self.names:
                raise ValueError(
                    f"the table has no column {name!r}; it has {self.names}."
                )
        self.features = [name for name in self.names if name not in used]
        if not self.features:
            raise ValueError(f"the table has no column beside {used}.")
        # As scikit-learn has it, only texts are names.
        named = all(isinstance(name, str) for name in self.features)
        self.known = self.features if named else None

    def take(self, table, number):
        names = _names_of(table)
        if set(names) != set(self.names):
            raise ValueError(
                f"batch {number} has the columns {names}; the first one has "
                f"{self.names}."
            )
        place = {name: k for k, name in enumerate(names)}
        columns = [_column_of(table, place[name]) for name in self.features]
        X = _matrix(self.features, columns)
        ys = [labels_of(_column_of(table, place[name])) for name in self.targets]
        y = ys[0] if self.one_target else np.column_stack(ys)
        weight = None
        if self.weight is not None:
            weight = _numbers(self.weight, _column_of(table, place[self.weight]))
        return Batch(X, y, weight, self.known)


def _names_of(table):
    names = list(table.schema.names if _is_arrow(table) else column_names(table))
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the table has several columns of the same name: {twice}.")
    return names


def _column_of(table, k):
    return table.column(k) if _is_arrow(table) else column(table, k)


def _matrix(names, columns):
    """Return columns side by side; in single precision where they have no more."""
    arrays = [
        _numbers(name, column) for name, column in zip(names, columns, strict=True)
    ]
    common = np.result_type(*arrays)
    dtype = np.float32 if common == np.float32 else np.float64
    X = np.empty((len(arrays[0]), len(arrays)), dtype)
    for j, array in enumerate(arrays):
        X[:, j] = array
    return X


def _numbers(name, column):
    """Return a column of numbers as an array; refuse texts and gaps."""
    array, gaps = _to_numpy(column), None
    if array.dtype.kind == "O":
        values = array.tolist()
        gaps = np.array([is_missing(value) for value in values])
        # Nullable types of pandas, and decimal numbers; texts of digits are texts.
        if not any(isinstance(value, str) for value in values):
            try:
                filled = np.where(gaps, 0, array)
                array = filled.astype(np.float64)
            except (TypeError, ValueError):
                gaps = None
    elif array.dtype.kind == "f":
        gaps = np.isnan(array)
    if array.dtype.kind not in "fiub":
        kind = getattr(column, "type", array.dtype)
        raise ValueError(
            f"column {name!r} holds no numbers but {kind}: features and weights must "
            "be numbers; code it before, or leave it out."
        )
    if gaps is not None and gaps.any():
        first = int(np.flatnonzero(gaps)[0])
        raise ValueError(
            f"column {name!r} has missing values, the first of this batch in row "
            f"{first}: fill them in, or leave the rows out."
        )
    return array


def labels_of(column):
    """Return a column of labels as an array."""
    if hasattr(column, "dictionary_encode") and hasattr(column, "type"):
        # Texts of pyarrow: each of them once.
        chunks = getattr(column, "combine_chunks", lambda: column)()
        text = str(chunks.type) in ("string", "large_string", "string_view")
        if text and not chunks.null_count:
            chunks = chunks.dictionary_encode()
        if hasattr(chunks, "dictionary") and not chunks.null_count:
            names = _as_text(chunks.dictionary.to_numpy(zero_copy_only=False))
            return names[chunks.indices.to_numpy(zero_copy_only=False)]
    return _as_text(_to_numpy(column))


def _as_text(labels):
    """Return labels that are all texts as an array of NumPy's."""
    if labels.dtype == object and all(isinstance(one, str) for one in labels.tolist()):
        return labels.astype(str)
    return labels


def _to_numpy(column):
    """Return a column of pandas, polars or pyarrow as an array."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "null_count") and hasattr(column, "type"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
