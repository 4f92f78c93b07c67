"""How online procedures spread their wealth over tests: the sequence gamma."""

from __future__ import annotations

from array import array

import numpy as np

# Sum over j of log(max(j, 2)) / (j exp(sqrt(log(j)))), by Euler-Maclaurin.
_TOTAL = 12.645107872872
# Entries kept in a table; later ones are computed one by one.
_FIRST_SIZE, _LARGEST_TABLE = 1024, 2**22
_BLOCK = 2**20


def log_gamma(j):
    """Return log(max(j, 2)) / (j exp(sqrt(log(j)))), not normalised."""
    j = np.asarray(j, dtype=np.float64)
    return np.log(np.maximum(j, 2.0)) / (j * np.exp(np.sqrt(np.log(j))))


class Gamma:
    """A sequence gamma_1, gamma_2, ... of sum at most one.

    Parameters
    ----------
    kind : "log", array-like
        "log": the sequence of the thesis with its exact normaliser; an array is taken
        as it is, with zeros beyond.
    horizon : int or None
        Normalise "log" over so many terms only; later ones are 0.

    Attributes
    ----------
    scale : float or None
        Factor of `log_gamma`; None for arrays.
    """

    def __init__(self, kind, horizon):
        self.horizon, self.scale = horizon, None
        if isinstance(kind, str):
            if kind != "log":
                raise ValueError(
                    f"gamma must be 'log' or an array of numbers; got {kind!r}."
                )
            total = _TOTAL
            if horizon is not None:
                total = sum(
                    log_gamma(np.arange(first, min(first + _BLOCK, horizon + 1))).sum()
                    for first in range(1, horizon + 1, _BLOCK)
                )
            self.scale = 1.0 / total
            self._keep(np.empty(0))
            return
        table = np.array(kind, dtype=np.float64)
        good = table.ndim == 1 and len(table) and np.isfinite(table).all()
        if not good or (table < 0.0).any():
            raise ValueError(
                "gamma must be numbers, finite and not negative, in one dimension; got "
                f"{kind!r}."
            )
        if table.sum() > 1.0 + 1e-12:
            raise ValueError(f"gamma must have a sum of at most 1; got {table.sum()}.")
        self._keep(table if horizon is None else table[:horizon])

    def _keep(self, table):
        self._table = table
        # Of which single entries are read faster.
        self._quick = array("d", table.tobytes())

    def __getitem__(self, j):
        """Return gamma_j for j = 1, 2, ..."""
        try:
            return self._quick[j - 1]
        except IndexError:
            return self._later(j)

    def _later(self, j):
        if self.scale is None or (self.horizon is not None and j > self.horizon):
            return 0.0
        if j > _LARGEST_TABLE:
            return float(self.scale * log_gamma(j))
        self.table(j)
        return self._quick[j - 1]

    def table(self, size):
        """Return gamma_1, ..., gamma_size and perhaps more, in an array."""
        if self.scale is None:
            if len(self._table) < size:
                return np.concatenate([self._table, np.zeros(size - len(self._table))])
            return self._table
        if len(self._table) < size:
            longer = max(2 * len(self._table), _FIRST_SIZE, size)
            table = self.scale * log_gamma(np.arange(1, longer + 1))
            if self.horizon is not None:
                table[self.horizon :] = 0.0
            self._keep(table)
        return self._table
