"""Paths without folds of rows, in the coordinates of all rows, for the squared loss.

Without fold k boosting takes the steps of all rows, alpha / W a row, on the others
only: in features F of the kernel its matrix is M_k = F' diag(w - w_k) F / W, with
eigenvectors V and eigenvalues mu, and after t steps

    f = offset_k + F V (h_t(mu) / mu * V' F' diag(w - w_k) (y - offset_k) / W),

h_t(mu) = 1 - (1 - alpha mu)^t with the alpha of all rows, which is small enough for
fewer. Leaving out each row by itself, this is the leave-one-out path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbounds._blocks import row_blocks
from skbounds.kernel_boost import _chain
from skbounds.kernel_boost._filters import boosting_filter

# Eigenvalues below this share of the largest are rounding.
NEGLIGIBLE_EIGENVALUE = 1e-13
_CHUNK = 4096


@dataclass(frozen=True)
class FoldFits:
    """The functions without the folds at their stopping time, for one output.

    Attributes
    ----------
    dual : ndarray of shape (n_landmarks, n_folds)
    offset : ndarray of shape (n_folds,)
    fold, residual, weight : ndarray of shape (n_entries,)
        What each row that was left out misses of its target.
    values : list of (knots, values) or None
        Instead of `dual` for the functions of a chain.
    widening : float
        What sizes of residuals are multiplied by for intervals.
    """

    dual: np.ndarray | None
    offset: np.ndarray
    fold: np.ndarray
    residual: np.ndarray
    weight: np.ndarray
    values: list | None = None
    widening: float = 1.0


def eigenvectors(gram):
    """Return the eigenvalues that are not rounding, decreasing, and vectors.

    Returns
    -------
    mu : ndarray of shape (r,)
    V : ndarray of shape (R, r)
    """
    mu, V = np.linalg.eigh(gram)
    mu, V = mu[::-1], V[:, ::-1]
    kept = mu > NEGLIGIBLE_EIGENVALUE * max(mu.max(initial=0.0), 0.0)
    return mu[kept], np.ascontiguousarray(V[:, kept])


class FoldPaths:
    """The paths without each of the folds.

    Parameters
    ----------
    basis : Basis
    folds : Folds
    targets : ndarray of shape (n, m)
        Centred by the offset of all rows, the same array as the basis projects.
    n_samples : float
        W.
    step_size : float
    average : bool
    with_offset : bool
        Whether the offset is the mean, of the rows that are not left out.
    size : int or None
        Take only so many leading coordinates.
    """

    def __init__(
        self, basis, folds, targets, n_samples, step_size, *, average, with_offset,
        size=None,
    ):  # fmt: skip
        self.raw = basis.raw
        if size is not None and size < len(basis.eigenvalues):
            self.raw = basis.leading(size)
        self.targets, self.folds = targets, folds
        self.step_size, self.average = step_size, average
        sums, share = self.raw.project(targets), basis.share
        total = share @ targets
        self.parts = []
        for rows, held in zip(folds.rows, folds.held, strict=True):
            held = held / n_samples
            gram, own = self.raw.gram.copy(), sums.copy()
            means, y = self.raw.means.copy(), targets[rows]
            for block in row_blocks(len(rows), _CHUNK):
                F = self.raw.rows(rows[block])
                scaled = F * held[block, None]
                gram -= F.T @ scaled
                own -= scaled.T @ y[block]
                means -= scaled.sum(axis=0)
            offset = np.zeros(targets.shape[1])
            if with_offset:
                offset = (total - held @ y) / (share.sum() - held.sum())
            mu, V = eigenvectors(gram)
            slopes = V.T @ (own - np.outer(means, offset)) / mu[:, None]
            self.parts.append((rows, held, offset, mu, V, slopes))

    def _filters(self, mu, times):
        return boosting_filter(mu, self.step_size, times, average=self.average)

    def loss(self, times):
        """Return the mean loss on the rows that are left out, (n_times, m)."""
        found = np.zeros((len(times), self.targets.shape[1]))
        total = 0.0
        for rows, held, offset, mu, V, slopes in self.parts:
            filters = self._filters(mu, times)
            total += held.sum()
            for block in row_blocks(len(rows), _CHUNK):
                features = self.raw.rows(rows[block]) @ V
                for k in range(found.shape[1]):
                    gaps = features @ (filters * slopes[:, k]).T
                    gaps += (offset[k] - self.targets[rows[block], k])[:, None]
                    found[:, k] += 0.5 * held[block] @ gaps**2
        return found / total

    def at(self, time, output, offset):
        """Return the functions at a time.

        Parameters
        ----------
        time : float
        output : int
        offset : float
            That of all rows.

        Returns
        -------
        fits : FoldFits
        """
        dual, residuals = [], []
        for rows, _, shift, mu, V, slopes in self.parts:
            theta = V @ (self._filters(mu, [time])[0] * slopes[:, output])
            dual.append(self.raw.to_dual(theta))
            fitted = [
                self.raw.rows(rows[block]) @ theta
                for block in row_blocks(len(rows), _CHUNK)
            ]
            y = self.targets[rows, output] - shift[output]
            residuals.append(y - np.concatenate(fitted))
        shifts = np.array([part[2][output] for part in self.parts])
        return FoldFits(
            np.stack(dual, axis=1), offset + shifts, *entries(self.folds, residuals)
        )


class SummedFoldPaths:
    """As `FoldPaths`, from sums over the rows of the folds.

    The squared error on rows that were left out is a quadratic form of the function's
    coefficients, with the same sums.

    Parameters
    ----------
    columns : SummedColumns
    step_size : float
    average : bool
    with_offset : bool
    """

    def __init__(self, columns, step_size, *, average, with_offset):
        self.step_size, self.average = step_size, average
        sums, r = columns.sums, columns.rank
        m = len(sums.squares)
        self.parts = []
        for gram, sides, totals in zip(
            sums.fold_grams[:, :r, :r], sums.fold_sides[:, :r], sums.fold_totals,
            strict=True,
        ):  # fmt: skip
            w, y, squares = totals[0], totals[1 : 1 + m], totals[1 + m :]
            offset = np.zeros(m)
            if with_offset:
                # The targets of all rows have mean zero.
                offset = -y / (1.0 - w)
            means = columns.means() - sides[:, -1]
            own = columns.project(columns.targets) - sides[:, :-1]
            mu, V = eigenvectors(columns.gram - gram)
            slopes = V.T @ (own - np.outer(means, offset)) / mu[:, None]
            inner = V.T @ gram @ V
            # Of y - offset.
            y_gap = V.T @ (sides[:, :-1] - np.outer(sides[:, -1], offset))
            rest = squares - 2.0 * offset * y + w * offset**2
            self.parts.append((w, mu, slopes, inner, y_gap, rest))

    def loss(self, times):
        """Return the mean loss on the rows that are left out, (n_times, m)."""
        found = np.zeros((len(times), len(self.parts[0][5])))
        total = 0.0
        for w, mu, slopes, inner, y_gap, rest in self.parts:
            filters = boosting_filter(mu, self.step_size, times, average=self.average)
            total += w
            for k in range(found.shape[1]):
                theta = filters * slopes[:, k]
                square = np.einsum("tr,tr->t", theta @ inner, theta)
                found[:, k] += square - 2.0 * theta @ y_gap[:, k] + rest[k]
        # Less than nothing is rounding.
        return 0.5 * np.maximum(found, 0.0) / total


def entries(folds, residuals):
    """Return the fold, residual and weight of all rows that are left out."""
    sizes = [len(rows) for rows in folds.rows]
    return (
        np.repeat(np.arange(len(folds)), sizes),
        np.concatenate(residuals),
        np.concatenate(folds.held),
    )


class FoldChains:
    """As `FoldPaths`, for the Sobolev kernel of one feature.

    Parameters
    ----------
    x : ndarray of shape (n,)
    folds : Folds
    targets : ndarray of shape (n, m)
        Centred by the offset of all rows.
    weight : ndarray of shape (n,)
    step_size : float
    with_offset : bool
    """

    def __init__(self, x, folds, targets, weight, step_size, *, with_offset):
        self.x, self.folds, self.targets = x, folds, targets
        self.parts, self._known = [], {}
        for rows, held in zip(folds.rows, folds.held, strict=True):
            left = weight.copy()
            left[rows] -= held
            kept = np.flatnonzero(left > 0.0)
            left, y = left[kept], targets[kept]
            offset = np.zeros(y.shape[1])
            if with_offset:
                offset = np.average(y, axis=0, weights=left)
            chain = _chain.make_chain(x[kept], y - offset, left)
            # Steps are alpha / W a row.
            step = step_size * left.sum() / weight.sum()
            self.parts.append((rows, held, offset, _chain.ChainPath(chain, step)))

    def loss(self, times):
        """Return the mean loss on the rows that are left out, (n_times, m)."""
        for time in times:
            if time not in self._known:
                self._known[time] = self._loss_at(time)
        return np.array([self._known[time] for time in times])

    def _loss_at(self, time):
        total = 0.0
        for rows, held, offset, path in self.parts:
            values = _chain.evaluate_chain(
                path.chain.knots, path.fit(time)[0], self.x[rows]
            )
            total += 0.5 * held @ (values + offset - self.targets[rows]) ** 2
        return total / self.folds.total

    def at(self, time, output, offset):
        """Return the functions at a time; see `FoldPaths`."""
        functions, residuals = [], []
        for rows, _, shift, path in self.parts:
            values = path.fit(time)[0][:, [output]]
            functions.append((path.chain.knots, values))
            fitted = _chain.evaluate_chain(*functions[-1], self.x[rows])[:, 0]
            residuals.append(self.targets[rows, output] - shift[output] - fitted)
        shifts = np.array([part[2][output] for part in self.parts])
        return FoldFits(
            None, offset + shifts, *entries(self.folds, residuals), functions
        )
