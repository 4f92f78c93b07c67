"""Tables in batches of rows: pairs of arrays, dataframes, and what pyarrow reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skbounds._frames import column, column_names, is_frame

# Of files, by what their names end with; others are Parquet.
_FORMATS = {
    ".csv": "csv",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
}


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


def read_batches(batches, target=None, weight=None, batch_size=2**16):
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

    Yields
    ------
    batch : Batch
    """
    plan = None
    for number, item in enumerate(_items(batches, batch_size)):
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
    """Return the number of rows of a batch."""
    y = batch.y
    return y.shape[0] if hasattr(y, "shape") else len(y)


def _is_arrow(item):
    """Tell whether something is a table or a record batch of pyarrow."""
    return hasattr(item, "schema") and hasattr(item, "num_rows")


def _items(batches, batch_size) -> Iterator:
    """Yield tuples or tables."""
    if isinstance(batches, (str, Path)):
        batches = open_dataset(batches)
    if hasattr(batches, "iter_batches"):
        yield from batches.iter_batches(batch_size=batch_size)
    elif _is_arrow(batches) and hasattr(batches, "to_batches"):
        yield from batches.to_batches(max_chunksize=batch_size)
    elif hasattr(batches, "to_batches"):
        yield from batches.to_batches(batch_size=batch_size)
    elif _is_arrow(batches) or is_frame(batches):
        yield batches
    elif isinstance(batches, Iterable):
        yield from batches
    else:
        raise ValueError(
            "batches must be an iterable of batches, a path, or what pyarrow reads "
            f"tables from; got {type(batches).__name__}."
        )


def open_dataset(path):
    """Return the dataset of pyarrow behind a path: a file, or a folder of files."""
    pyarrow = import_pyarrow("a path to a table")
    suffix = Path(path).suffix.lower()
    return pyarrow.dataset.dataset(str(path), format=_FORMATS.get(suffix, "parquet"))


def import_pyarrow(what):
    """Return pyarrow with its readers; an error names what needs it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
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
        self.names = [str(name) for name in _names_of(table)]
        self.targets = [target] if isinstance(target, str) else list(target)
        self.one_target = isinstance(target, str)
        self.weight = weight
        used = [*self.targets] + ([] if weight is None else [weight])
        for name in used:
            if name not in self.names:
                raise ValueError(
                    f"the table has no column {name!r}; it has {self.names}."
                )
        self.features = [name for name in self.names if name not in used]
        if not self.features:
            raise ValueError(f"the table has no column beside {used}.")

    def take(self, table, number):
        names = [str(name) for name in _names_of(table)]
        if sorted(names) != sorted(self.names):
            raise ValueError(
                f"batch {number} has the columns {names}; the first one has "
                f"{self.names}."
            )
        place = {name: k for k, name in enumerate(names)}
        columns = [_column_of(table, place[name]) for name in self.features]
        X = _matrix(self.features, columns)
        ys = [_labels(_column_of(table, place[name])) for name in self.targets]
        y = ys[0] if self.one_target else np.column_stack(ys)
        weight = None
        if self.weight is not None:
            column = _column_of(table, place[self.weight])
            weight = _numbers(self.weight, column)
        return Batch(X, y, weight, self.features)


def _names_of(table):
    return table.schema.names if _is_arrow(table) else column_names(table)


def _column_of(table, k):
    return table.column(k) if _is_arrow(table) else column(table, k)


def _matrix(names, columns):
    """Return columns side by side; in single precision if all of them are."""
    arrays = [
        _numbers(name, column) for name, column in zip(names, columns, strict=True)
    ]
    single = all(array.dtype in (np.float32, np.float16) for array in arrays)
    X = np.empty((len(arrays[0]), len(arrays)), np.float32 if single else np.float64)
    for j, array in enumerate(arrays):
        X[:, j] = array
    return X


def _numbers(name, column):
    """Return a column of numbers as an array; refuse texts and gaps."""
    array = _to_numpy(column)
    if array.dtype.kind == "O":
        # Nullable types of pandas, and decimal numbers.
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    if array.dtype.kind not in "fiub":
        kind = getattr(column, "type", array.dtype)
        raise ValueError(
            f"column {name!r} holds no numbers but {kind}: features and weights must "
            "be numbers; code it before, or leave it out."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        first = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(
            f"column {name!r} has missing values, the first of this batch in row "
            f"{first}: fill them in, or leave the rows out."
        )
    return array


def _labels(column):
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
