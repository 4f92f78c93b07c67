"""Sums of gamma over past rejections, in little time and never too large.

LORD++ needs S(j) = sum_q gamma_{j - tau_q} over all rejections tau_q. Those of the last
64 tests are summed one by one. Older ones are replaced by groups, each a Gauss
quadrature: 4 points t_k and weights w_k with the same moments up to order 7 as the
rejections that they stand for. For the sequence gamma of this package

    sum_q f(tau_q) - sum_k w_k f(t_k) = f^(8)(s) / 8! * sum_q prod_k (tau_q - t_k)^2

with f(tau) = gamma(j - tau), and f^(8) is positive: gamma(x) is proportional to
(log x / x) exp(-sqrt(log x)); the second factor is completely monotone for x > 1 (the
root of a Bernstein function is one, and the exponential of minus one is completely
monotone), the derivatives of the first alternate in sign up to order 8 where
log x > 1 + 1/2 + ... + 1/8, that is for x >= 16, and so do those of the product; and
powers x^-1.6 are completely monotone. The sum of the groups is therefore never above
the exact one.

A group's width is at most a quarter of its least age. The product is then at most
(age / 8)^8 / 64 on average, which makes the error at most some 1e-8 of the group's part
each time that groups are merged; and they are merged about log2(j) times.
"""

from __future__ import annotations

import numpy as np

from skbounds._core import sequential as _core
from skbounds._states import State, refuse

# Least age of what is grouped; where the derivatives alternate, with room.
_LEAST_AGE = 64
# Positions that are kept one by one at most.
_MOST_RECENT = 128
# Points of a group, and its largest width in units of its least age.
N_POINTS, _LARGEST_WIDTH = 4, 0.25
# Rounding of the sums, by which they are made smaller.
_ROUNDING = 1e-11


def gauss_quadrature(points, weights):
    """Return at most 4 points and weights with the same moments up to order 7.

    By the Lanczos process with the diagonal matrix of the points, and Golub and
    Welsch's eigenproblem.

    Parameters
    ----------
    points, weights : ndarray of shape (m,)
    """
    if len(points) <= N_POINTS:
        return points, weights
    center, width = points.mean(), np.ptp(points)
    if width == 0.0:
        return points[:1], np.array([weights.sum()])
    x = (points - center) / width
    total = weights.sum()
    v, before = np.sqrt(weights / total), np.zeros(len(x))
    basis, diagonal, off = [v], [], []
    for k in range(N_POINTS):
        w = x * v
        diagonal.append(v @ w)
        w = w - diagonal[-1] * v - (off[-1] if off else 0.0) * before
        # Again, as rounding spoils orthogonality.
        for u in basis:
            w -= (u @ w) * u
        size = np.linalg.norm(w)
        if k == N_POINTS - 1 or size < 1e-12:
            break
        off.append(size)
        before, v = v, w / size
        basis.append(v)
    jacobi = np.diag(diagonal) + np.diag(off[: len(diagonal) - 1], 1)
    jacobi += np.diag(off[: len(diagonal) - 1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return center + width * nodes, total * vectors[0] ** 2


class _Recent:
    """Positions of rejections one by one, and how many there are at each."""

    def __init__(self, recent=(), groups=(), counts=None):
        recent = [int(tau) for tau in recent]
        counts = [1.0] * len(recent) if counts is None else counts
        size = max(2 * len(recent), 16)
        # Room for more, and what is in use of it.
        self._positions = np.zeros(size, dtype=np.int64)
        self._numbers = np.zeros(size)
        self._first, self._last = 0, len(recent)
        self._positions[: len(recent)], self._numbers[: len(recent)] = recent, counts
        self.groups = [dict(group) for group in groups]

    @property
    def recent(self):
        """Positions that are kept one by one."""
        return self._positions[self._first : self._last]

    @property
    def counts(self):
        """How many rejections there are at each."""
        return self._numbers[self._first : self._last]

    def _append(self, tau):
        last = self._last
        if last > self._first and self._positions[last - 1] == tau:
            self._numbers[last - 1] += 1.0
            return
        if last == len(self._positions):
            recent, counts = self.recent, self.counts
            size = max(2 * len(recent), 16)
            self._positions, self._numbers = (
                np.zeros(size, dtype=np.int64),
                np.zeros(size),
            )
            self._positions[: len(recent)] = recent
            self._numbers[: len(recent)] = counts
            self._first, last = 0, len(recent)
        self._positions[last], self._numbers[last] = tau, 1.0
        self._last = last + 1

    def size(self):
        """Return the number of rejections, but for those that are forgotten."""
        weights = [weight for group in self.groups for weight in group["weights"]]
        return round(float(self.counts.sum()) + sum(weights))

    def largest(self):
        """Return at least the number of rejections at one position."""
        groups = [sum(group["weights"]) for group in self.groups]
        return max([*self.counts.tolist(), *groups], default=0.0)

    def total(self, age, gamma):
        """Return the sum of all gamma of their ages; `age` gives that of positions."""
        points = [point for group in self.groups for point in group["points"]]
        weights = [weight for group in self.groups for weight in group["weights"]]
        sums = gamma.sum(age(np.r_[self.recent, points]))
        return float(np.r_[self.counts, weights] @ sums)

    def state(self):
        """Return what is to be written down."""
        return {
            "recent": self.recent.tolist(),
            "counts": self.counts.tolist(),
            "groups": [dict(group) for group in self.groups],
        }


class RejectionHistory(_Recent):
    """Past rejections, grouped.

    Positions are numbers of tests, or of those tests that count; they do not decrease.

    Attributes
    ----------
    recent : ndarray of int
    counts : ndarray of float
    groups : list of dict
        ``"first"`` and ``"last"`` rejection, ``"points"`` and ``"weights"``; the oldest
        first.
    """

    def __init__(self, recent=(), groups=(), counts=None):
        super().__init__(recent, groups, counts)
        self._pack()

    def _pack(self):
        points = [point for group in self.groups for point in group["points"]]
        weights = [weight for group in self.groups for weight in group["weights"]]
        self._points = np.array(points, dtype=np.float64)
        self._weights = np.array(weights, dtype=np.float64)

    def add(self, tau):
        """Add a rejection at position tau."""
        self._append(int(tau))
        if self._last - self._first > _MOST_RECENT:
            self._group(int(tau))
            self._pack()

    def _group(self, now):
        """Make groups of what is old, and merge old groups."""
        n_old = int(np.searchsorted(self.recent, now - _LEAST_AGE, side="right"))
        old = zip(
            self.recent[:n_old].tolist(), self.counts[:n_old].tolist(), strict=True
        )
        for tau, count in old:
            self.groups.append(
                {"first": tau, "last": tau, "points": [float(tau)], "weights": [count]}
            )
        self._first += n_old
        merged = []
        for group in self.groups:
            while merged and _fit_together(merged[-1], group, now):
                group = _merge(merged.pop(), group)
            merged.append(group)
        self.groups = [_compress(group) for group in merged]

    def sum(self, now, gamma):
        """Return the sum of gamma over the ages of all rejections at test `now`."""
        table = gamma.table(now)
        total = _core.sum_of_gamma(
            now, self.recent, self.counts, self._points, self._weights, table,
            gamma.scale, gamma.power,
        )  # fmt: skip
        return float(total * (1.0 - _ROUNDING))


class ExactHistory(_Recent):
    """Past rejections one by one, for sequences of which no formula is known."""

    def add(self, tau):
        """Add a rejection at position tau."""
        self._append(int(tau))

    def sum(self, now, gamma):
        """Return the sum of gamma over the ages of all rejections at test `now`."""
        table = gamma.table(1)
        # Later ones are never before the last position, but may be before this one.
        recent = self.recent
        if len(recent):
            latest = recent[-1] + 1
            self._first += int(np.searchsorted(recent, latest - len(table)))
        recent, counts = self.recent, self.counts
        # Of older ones nothing is left.
        first = int(np.searchsorted(recent, now - len(table)))
        return float(counts[first:] @ table[now - recent[first:] - 1])


def read_history(state, kind, first, last, size, *, forgotten, several):
    """Return the history of a state, checked.

    Parameters
    ----------
    state : State
    kind : {RejectionHistory, ExactHistory}
    first, last : int
        Least and largest position.
    size : int
        Number of rejections in it.
    forgotten : bool
        Whether an `ExactHistory` may lack some.
    several : bool
        Whether there may be several at one position.
    """
    recent = state.counts("recent", None, min(first, last), last)
    n = len(recent)
    counts = np.ones(n)
    if state.values.get("counts") is not None:
        # The first version had no tests that overlap.
        counts = state.counts("counts", n, 1).astype(np.float64)
    if (np.diff(recent) <= 0).any() or (not several and (counts > 1.0).any()):
        refuse("'recent'", recent.tolist(), "rejections in their order, each once")
    groups, end = [], first - 1
    for values in state.items("groups"):
        group = _read_group(State(values, "a group of rejections"), end, last, several)
        groups.append(group)
        end = group["last"]
    if groups and (kind is ExactHistory or (n and recent[0] < end)):
        refuse("'groups'", len(groups), "none, or older than 'recent'")
    found = kind(recent, groups, counts)
    known = found.size()
    if known > size or (known < size and not (forgotten and kind is ExactHistory)):
        refuse("the number of rejections in 'recent' and 'groups'", known, size)
    return found


def _read_group(state, end, last, several):
    begin, end = state.count("first", end, last), state.count("last", 0, last)
    points = state.numbers("points", None, begin * (1 - 1e-9), end * (1 + 1e-9))
    weights = state.numbers("weights", len(points), 0.0)
    size = float(weights.sum())
    whole = abs(size - round(size)) <= 1e-6 * size and size > 0.5
    if (
        not whole
        or len(points) > N_POINTS
        or (size > end - begin + 1.5 and not several)
    ):
        refuse(
            f"a group of rejections from {begin} to {end}", size,
            f"at most {end - begin + 1} of them at up to {N_POINTS} points",
        )  # fmt: skip
    return {
        "first": begin, "last": end, "points": points.tolist(),
        "weights": weights.tolist(),
    }  # fmt: skip


def _fit_together(older, newer, now):
    return newer["last"] - older["first"] <= _LARGEST_WIDTH * (now - newer["last"])


def _merge(older, newer):
    return {
        "first": older["first"],
        "last": newer["last"],
        "points": older["points"] + newer["points"],
        "weights": older["weights"] + newer["weights"],
    }


def _compress(group):
    points, weights = gauss_quadrature(
        np.array(group["points"]), np.array(group["weights"])
    )
    return {**group, "points": points.tolist(), "weights": weights.tolist()}
