"""How online procedures spread their wealth over tests: the sequence gamma."""

from __future__ import annotations

from array import array
from functools import cache

import numpy as np
from scipy.special import zeta

from skbounds.sequential._functions import as_floats

# Sum over j of log(max(j, 2)) / (j exp(sqrt(log(j)))), by Euler-Maclaurin.
_TOTAL = 12.645107872872
# Entries kept in a table; later ones are computed one by one.
_FIRST_SIZE, _LARGEST_TABLE = 1024, 2**22
# Of the sequence "power", j^-1.6.
_POWER = 1.6
_BLOCK = 2**20
# Terms that sums without a table add one by one.
_SUMMED = 4096


def log_gamma(j):
    """Return log(max(j, 2)) / (j exp(sqrt(log(j)))), not normalised."""
    j = np.asarray(j, dtype=np.float64)
    return np.log(np.maximum(j, 2.0)) / (j * np.exp(np.sqrt(np.log(j))))


def _integral(j):
    """Return an integral of log(j) / (j exp(sqrt(log(j)))), by u = sqrt(log(j))."""
    u = np.sqrt(np.log(float(j)))
    return -2.0 * np.exp(-u) * (u**3 + 3.0 * u**2 + 6.0 * u + 6.0)


def _slope(j):
    """Return the derivative of `log_gamma`."""
    root = np.sqrt(np.log(j))
    return log_gamma(j) / j * (1.0 / root**2 - 1.0 - 0.5 / root)


@cache
def _first_sums():
    """Return the sums of the first terms of `log_gamma`, from that of none on."""
    return np.r_[0.0, np.cumsum(log_gamma(np.arange(1.0, _SUMMED + 1.0)))]


class Gamma:
    """A sequence gamma_1, gamma_2, ... of sum at most one.

    Parameters
    ----------
    kind : {"log", "power"} or array-like
        "log": the sequence of the thesis; "power": j^-1.6; each with its exact
        normaliser. An array is taken as it is, with zeros beyond.
    horizon : int or None
        Normalise over so many terms only; later ones are 0.
    decreasing : bool
        Whether an array that increases somewhere is an error.

    Attributes
    ----------
    scale : float or None
        Factor of the formula; None for arrays.
    power : float
        The exponent of "power", otherwise 0.
    """

    def __init__(self, kind, horizon, *, decreasing=False):
        self.horizon, self.scale, self.power = horizon, None, 0.0
        if isinstance(kind, str):
            if kind not in ("log", "power"):
                raise ValueError(
                    "gamma must be 'log', 'power' or an array of numbers; got "
                    f"{kind!r}."
                )
            self.power = _POWER if kind == "power" else 0.0
            self.scale = float(1.0 / self._total(horizon))
            self._keep(np.empty(0))
            return
        table = as_floats(kind, "gamma", ndim=None).copy()
        good = table.ndim == 1 and len(table) and np.isfinite(table).all()
        if not good or (table < 0.0).any():
            raise ValueError(
                "gamma must be numbers, finite and not negative, in one dimension; got "
                f"{kind!r}."
            )
        if table.sum() > 1.0 + 1e-12:
            raise ValueError(f"gamma must have a sum of at most 1; got {table.sum()}.")
        if decreasing and (np.diff(table) > 0.0).any():
            raise ValueError(f"gamma must not increase; got {kind!r}.")
        self._keep(table if horizon is None else table[:horizon])

    def _total(self, horizon):
        """Return the sum of the formula up to the horizon."""
        if self.power:
            rest = 0.0 if horizon is None else zeta(self.power, horizon + 1.0)
            return zeta(self.power) - rest
        if horizon is None:
            return _TOTAL
        last = min(horizon, _BLOCK)
        total = log_gamma(np.arange(1, last + 1)).sum()
        if horizon > last:
            # By Euler and Maclaurin; what is left out is far below rounding.
            total += _integral(horizon) - _integral(last)
            total += 0.5 * (log_gamma(horizon) - log_gamma(last))
        return total

    def sum(self, x):
        """Return gamma_1 + ... + gamma_x, also between integers, without a table.

        Parameters
        ----------
        x : array-like
            Not negative; of arrays integers.
        """
        x = np.asarray(x, dtype=np.float64)
        if self.horizon is not None:
            x = np.minimum(x, self.horizon)
        if self.scale is None:
            sums = np.r_[0.0, np.cumsum(self._table)]
            return sums[np.minimum(x, len(self._table)).astype(np.int64)]
        if self.power:
            return self.scale * (zeta(self.power, 1.0) - zeta(self.power, x + 1.0))
        last = np.minimum(np.floor(x), _SUMMED)
        found = _first_sums()[last.astype(np.int64)]
        # By Euler and Maclaurin; at ages below 64 integers only.
        later = x > last
        if later.any():
            a, b = last[later], x[later]
            rest = np.array([_integral(v) for v in b.ravel()]).reshape(b.shape)
            rest -= np.array([_integral(v) for v in a.ravel()]).reshape(a.shape)
            rest += 0.5 * (log_gamma(b) - log_gamma(a)) + (_slope(b) - _slope(a)) / 12.0
            found = np.array(found)
            found[later] += rest
        return self.scale * found

    def capped_sum(self, n, most):
        """Return at most the sum of min(gamma_j, most) for j up to n.

        It is that sum where no more than some thousand terms are capped.
        """
        first = int(min(n, _SUMMED))
        table = self.table(first)[:first]
        found = float(np.minimum(table, most).sum())
        if first == n or (first and self[first] > most):
            return found
        rest = float(self.sum(n) - self.sum(first))
        if self.scale is None:
            rest = float(np.minimum(self._table[first : int(n)], most).sum())
        return found + rest

    def _plain(self, j):
        """Return the formula without its factor."""
        if self.power:
            return np.asarray(j, dtype=np.float64) ** -self.power
        return log_gamma(j)

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
            return float(self.scale * self._plain(j))
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
            table = self.scale * self._plain(np.arange(1, longer + 1))
            if self.horizon is not None:
                table[self.horizon :] = 0.0
            self._keep(table)
        return self._table
