"""Tables as people have them: separators, decimal commas, words for what is missing.

pandas reads the file; what it has to be told is guessed from the first rows, and said.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# Beside those that pandas knows.
MISSING = ("-", "--", ".", "?", "missing", "Missing", "MISSING", "<null>", "N.A.")
_SEPARATORS = ",;\t|"
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", ".": "point"}
# Rows that guesses are made from.
_GLANCE = 1000
_LARGEST = 1e50
# Characters of an error.
_LONGEST = 600
# Share of numbers from which on a column of texts is worth a warning.
_MOSTLY = 0.5
_GROUPED = {
    mark: re.compile(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+(?:{rest}\d*)?")
    for mark, rest in ((",", r"\."), (".", ","), ("'", r"[.,]"), (" ", r"[.,]"))
}
_POINT, _COMMA = (
    re.compile(rf"[+-]?\d*{mark}\d+(?:[eE][+-]?\d+)?") for mark in (r"\.", ",")
)


class InputError(Exception):
    """Something about the user's arguments or file; its text is shown, in a line."""

    def __str__(self):
        # Names of columns that are none may be anything, of any length.
        text = "".join(c if c.isprintable() else " " for c in super().__str__())
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


def check_core():
    """Refuse to go on without the compiled part, as with an unknown CPU level."""
    try:
        importlib.import_module("skbounds._core")
    except ImportError as error:
        raise InputError(str(error)) from None


@dataclass
class TableFile:
    """A table that was read.

    Attributes
    ----------
    frame : DataFrame
    notes : list of str
        How it was read, and what of it was left out.
    warnings : list of str
        What the user should look at.
    """

    frame: Any
    notes: list = field(default_factory=list)
    warnings: list = field(default_factory=list)


def read_table(path, *, sep=None, decimal=None, encoding=None, missing=()) -> TableFile:
    """Read a CSV file; what is None is guessed.

    Parameters
    ----------
    path : str
    sep, decimal, encoding : str or None
    missing : sequence of str
        More words for what is missing.
    """
    if importlib.util.find_spec("pandas") is None:
        raise InputError(
            'reading a table needs pandas, which the extra "plot" installs: '
            "pip install 'skbounds[plot]'"
        )
    import pandas as pd

    if sep is not None:
        sep = sep.replace("\\t", "\t").replace("tab", "\t")
        if len(sep) != 1:
            raise InputError(f"--sep must be one character, or 'tab'; got {sep!r}")
    text, encoding = _decode(path, encoding)
    sep = _guess_separator(text) if sep is None else sep
    rows = _split(path, text, sep)
    header = _check_header(path, [name.strip() for name in rows[0]])
    sample = [value.strip() for row in rows[1 : 1 + _GLANCE] for value in row]
    decimal, thousands = guess_marks(sample, sep, decimal)
    clean = io.StringIO()
    csv.writer(clean, delimiter=sep).writerows(map(str.strip, row) for row in rows)
    clean.seek(0)
    # Not the mark between thousands: pandas would make 15 of 1.5.
    frame = pd.read_csv(
        clean, sep=sep, decimal=decimal, header=0, names=header, index_col=False,
        na_values=[*MISSING, *missing], low_memory=False,
    )  # fmt: skip
    found = TableFile(frame)
    said = f"separator {_name(sep)}, decimal {_name(decimal)}"
    if thousands is not None:
        said += f", thousands {_name(thousands)}"
    found.notes.append(f"Read {Path(path).name} with {said}, encoding {encoding}.")
    _tidy(found, decimal, thousands)
    _drop_index(found)
    return found


def _name(mark):
    return _NAMES.get(mark, repr(mark))


def _decode(path, encoding):
    """Return the file's text and the encoding that it has."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror}") from None
    guesses = [encoding]
    if encoding is None:
        wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        guesses = ["utf-16"] if wide else ["utf-8-sig", "cp1252"]
    for guess in guesses:
        try:
            text = raw.decode(guess)
        except UnicodeDecodeError:
            continue
        except LookupError:
            raise InputError(f"--encoding {guess!r} is not known") from None
        if "\0" not in text:
            return text, "utf-8" if guess == "utf-8-sig" else guess
    raise InputError(
        f"{path!r} is not a readable CSV file: it is no text in "
        f"{' or '.join(guesses)}; give its --encoding"
    )


def _guess_separator(text):
    """Return the separator that the header has most of; a comma if it has none."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    return max(_SEPARATORS, key=first.count)


def _split(path, text, sep):
    """Return the cells of all rows, of which each must have as many as the header."""
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(text), delimiter=sep)
            if any(map(str.strip, row))
        ]
    except csv.Error as error:
        raise InputError(f"{path!r} is not a readable CSV file: {error}") from None
    if not rows:
        raise InputError(f"{path!r} is empty")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise InputError(
                f"{path!r}, row {number}: {len(row)} fields instead of {len(rows[0])}"
            )
    return rows


def _check_header(path, header):
    given = [name for name in header if name]
    if len(set(given)) < len(given):
        raise InputError(f"{path!r} has column names that occur twice: {header}")
    return [name or f"unnamed {j}" for j, name in enumerate(header, start=1)]


def guess_marks(sample, sep, decimal):
    """Return the decimal mark and the mark between thousands, or None for that."""
    full = lambda pattern: [v for v in sample if pattern.fullmatch(v.rstrip("% "))]
    if decimal is None:
        # 1,234.5 and 1,234,567 have commas between thousands, 1,5 has a decimal one;
        # 1,234 alone may be either, and is what the other numbers say.
        commas = full(_COMMA)
        plain = [v for v in commas if not _GROUPED[","].fullmatch(v.rstrip("% "))]
        points = full(_POINT)
        plain_points = [
            v for v in points if not _GROUPED["."].fullmatch(v.rstrip("% "))
        ]
        several = [v for v in full(_GROUPED[","]) if v.count(",") > 1 or "." in v]
        if plain and len(plain) >= len(plain_points):
            decimal = ","
        elif commas and sep != "," and not (plain_points or several):
            decimal = ","
        else:
            decimal = "."
    for mark in (".", ",", "'", " "):
        if mark != decimal and full(_GROUPED[mark]):
            grouped = full(_GROUPED[mark])
            others = full(_POINT if mark == "." else _COMMA) if mark in ".," else []
            # A mark that also stands before other than three digits is none.
            if len(grouped) >= len(others):
                return decimal, mark
    return decimal, None


def _tidy(found, decimal, thousands):
    """Make numbers of percentages; warn of columns that are nearly numbers."""
    import pandas as pd

    frame = found.frame
    for name in list(frame.columns):
        column = frame[name]
        if column.isna().all():
            continue
        if pd.api.types.is_bool_dtype(column):
            frame[name] = column.astype(object).map({True: "True", False: "False"})
            continue
        if pd.api.types.is_numeric_dtype(column):
            if np.any(np.abs(column.to_numpy(dtype=float)) > _LARGEST):
                raise InputError(
                    f"column {name!r} has infinite values, or beyond {_LARGEST:g}"
                )
            continue
        texts = column.dropna().astype(str).str.strip()
        numbers = _to_numbers(texts.str.rstrip("% "), decimal, thousands)
        share = float(numbers.notna().mean())
        if share == 1.0:
            frame[name] = numbers.reindex(column.index)
            if texts.str.endswith("%").any():
                found.notes.append(f"Column {name!r} is in percent.")
        elif share > _MOSTLY:
            others = texts[numbers.isna()].unique()[:3].tolist()
            found.warnings.append(
                f"Column {name!r} is taken as categories, but {share:.0%} of its "
                f"values are numbers; the others are such as {', '.join(others)}. If "
                "these mean that a value is missing, name them with --missing."
            )
            frame[name] = texts.reindex(column.index)
        else:
            frame[name] = texts.reindex(column.index)


def _to_numbers(texts, decimal, thousands):
    import pandas as pd

    if thousands is not None:
        grouped = texts.map(lambda v: bool(_GROUPED[thousands].fullmatch(v)))
        texts = texts.where(~grouped, texts.str.replace(thousands, "", regex=False))
    if decimal != ".":
        texts = texts.str.replace(decimal, ".", regex=False)
    # Underscores are for programs.
    return pd.to_numeric(texts.where(~texts.str.contains("_")), errors="coerce")


def _drop_index(found):
    """Leave out columns without a name that only count the rows, or are empty."""
    for name in [name for name in found.frame.columns if name.startswith("unnamed ")]:
        column = found.frame[name]
        if column.isna().all():
            del found.frame[name]
            continue
        values = column.to_numpy()
        counts = values.dtype.kind in "iu" and (np.diff(values) == 1).all()
        if counts and values[0] in (0, 1):
            del found.frame[name]
            found.notes.append(f"Left out column {name}, which counts the rows.")
