"""States as JSON has them, read with care: whatever is in them, errors are of one line.

A state may come from a stranger, or be damaged on its way. Values are checked one by
one when they are read, and whoever reads them checks that they go together.
"""

from __future__ import annotations

from functools import wraps
from numbers import Integral
from typing import cast

import numpy as np

from skbounds._typing import Function
from skbounds._validation import is_number

# Counts beyond are no whole numbers as doubles.
LARGEST_COUNT = 2**53
# Of sums that are computed in two ways.
ROUNDING = 1e-9
# Characters of values and of errors that are shown.
_LONGEST, _LONGEST_ERROR = 60, 600


def shown(value) -> str:
    """Return a short text of a value, in one line."""
    try:
        return _short(repr(value), _LONGEST)
    except (RecursionError, ValueError):
        # Lists too deep, numbers with too many digits.
        return f"a {type(value).__name__}"


def _short(text, longest):
    text = " ".join(text.split())
    return text if len(text) <= longest else text[:longest] + "..."


def reads_state(read: Function) -> Function:
    """Make a ``from_dict`` raise ValueError for whatever is no state."""

    @wraps(read)
    def wrapper(cls, state, *others, **named):
        try:
            with np.errstate(all="ignore"):
                return read(cls, state, *others, **named)
        except (
            LookupError, AttributeError, TypeError, ArithmeticError, RecursionError,
        ) as error:  # fmt: skip
            raise ValueError(
                f"this is no state of {cls.__name__}: {shown(error)}"
            ) from error
        except ValueError as error:
            text = str(error)
            if len(text) <= _LONGEST_ERROR and text.isprintable():
                raise
            # Of a parameter that is anything.
            raise ValueError(_short(text, _LONGEST_ERROR)) from error

    return cast(Function, wrapper)


def refuse(what, value, allowed):
    """Raise the error of a state that cannot be."""
    raise ValueError(
        f"the state cannot be: {what} is {shown(value)}, and must be {allowed}."
    )


def agree(what, value, expected, rounding=ROUNDING, scale=0.0):
    """Refuse a number that is not what other numbers of the state make of it.

    Parameters
    ----------
    what : str
    value, expected : float
    rounding : float
        Relative to the numbers, and to `scale`, where they are differences of such.
    scale : float
    """
    at_most(what, value, expected, rounding, scale)
    at_least(what, value, expected, rounding, scale)


def at_most(what, value, limit, rounding=ROUNDING, scale=0.0):
    """Refuse a number that is larger than the other numbers of the state allow."""
    if not value <= limit + rounding * max(abs(limit), scale):
        refuse(what, value, f"at most {limit:.17g} by the other numbers")


def at_least(what, value, limit, rounding=ROUNDING, scale=0.0):
    """Refuse a number that is smaller than the other numbers of the state allow."""
    if not value >= limit - rounding * max(abs(limit), scale):
        refuse(what, value, f"at least {limit:.17g} by the other numbers")


class State:
    """A dict of a state, whose values are checked when they are read.

    Parameters
    ----------
    values : dict
    name : str
        For messages.
    """

    def __init__(self, values, name="the state"):
        if not isinstance(values, dict):
            raise ValueError(f"{name} must be a dict; got {shown(values)}.")
        self.values, self.name = values, name

    def __contains__(self, name):
        return name in self.values

    def __getitem__(self, name):
        if name not in self.values:
            raise ValueError(f"{self.name} lacks {name!r}.")
        return self.values[name]

    def _say(self, name, allowed):
        raise ValueError(
            f"{self.name} must have {allowed} as {name!r}; got "
            f"{shown(self.values[name])}."
        )

    def part(self, name):
        """Return a dict in it."""
        return State(self[name], f"{self.name}'s {name!r}")

    def params(self, kind):
        """Return the parameters of a class."""
        params = dict(self.part("params").values)
        known = kind._get_param_names()
        unknown = [name for name in params if name not in known]
        if unknown:
            raise ValueError(
                f"{self.name} has parameters that {kind.__name__} does not know: "
                f"{shown(unknown)}."
            )
        return params

    def count(self, name, least=0, most=LARGEST_COUNT):
        """Return an integer."""
        value = self[name]
        if not _is_integer(value) or not least <= value <= most:
            self._say(name, f"an integer from {least} to {most}")
        return int(value)

    def number(self, name, least=-np.inf, most=np.inf):
        """Return a finite number."""
        value = self[name]
        if not _is_finite(value) or not least <= value <= most:
            limits = ""
            if (least, most) != (-np.inf, np.inf):
                limits = f" from {least:g} to {most:g}"
            self._say(name, f"a finite number{limits}")
        return float(value)

    def flag(self, name):
        """Return a truth value."""
        value = self[name]
        if not isinstance(value, (bool, np.bool_)):
            self._say(name, "True or False")
        return bool(value)

    def items(self, name):
        """Return a list."""
        value = self[name]
        if not isinstance(value, (list, tuple)):
            self._say(name, "a list")
        return list(value)

    def pair(self, name):
        """Return two numbers, which may be infinite."""
        found = self.items(name)
        if len(found) != 2 or not all(is_float(value) for value in found):
            self._say(name, "two numbers")
        return found

    def rows(self, name, width):
        """Return a list of lists of a length."""
        found = self.items(name)
        for row in found:
            if not isinstance(row, (list, tuple)) or len(row) != width:
                self._say(name, f"lists of {width}")
        return found

    def numbers(self, name, size=None, least=-np.inf, most=np.inf):
        """Return an array of finite numbers; None is any number of them."""
        found = self.items(name)
        good = all(_is_finite(value) and least <= value <= most for value in found)
        if not good or (size is not None and len(found) != size):
            many = "" if size is None else f"{size} "
            limits = ""
            if (least, most) != (-np.inf, np.inf):
                limits = f" from {least:g} to {most:g}"
            self._say(name, f"{many}finite numbers{limits}")
        return np.array(found, dtype=np.float64)

    def counts(self, name, size=None, least=0, most=LARGEST_COUNT):
        """Return an array of integers, which may be written as floats."""
        found = self.items(name)
        good = all(
            _is_finite(value) and value == int(value) and least <= value <= most
            for value in found
        )
        if not good or (size is not None and len(found) != size):
            many = "" if size is None else f"{size} "
            self._say(name, f"{many}integers from {least} to {most}")
        return np.array(found, dtype=np.float64).astype(np.int64)

    def table(self, name, shape):
        """Return a two-dimensional array of finite numbers."""
        rows = self.rows(name, shape[1])
        if len(rows) != shape[0] or not all(_is_finite(v) for row in rows for v in row):
            self._say(name, f"finite numbers in {shape[0]} lists of {shape[1]}")
        return np.array(rows, dtype=np.float64)


def _is_integer(value):
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _is_finite(value):
    # Integers may be beyond doubles.
    return is_number(value) and abs(value) < 1e308


def is_float(value):
    """Tell whether this is a number that is a double, maybe infinite."""
    # Integers may be beyond doubles.
    return is_number(value) and (isinstance(value, float) or _is_finite(value))


def is_probability(value):
    """Tell whether this is a number from 0 to 1."""
    return is_number(value) and 0.0 <= value <= 1.0
