"""Kernel boosting of rows in chunks: facts, a sample, and sums, a pass for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from scipy.sparse import issparse

from skbounds._collections import Chunks, draw_rows, rows_that_count, set_names
from skbounds._hashes import number_hashes
from skbounds._magnitude import check_magnitude
from skbounds.kernel_boost import _solvers
from skbounds.kernel_boost._boost import COUNTS_ROWS, OFTEN
from skbounds.kernel_boost._fold_paths import SummedFoldPaths
from skbounds.kernel_boost._folds import n_folds_used
from skbounds.kernel_boost._hashes import (
    are_copies,
    row_hashes,
    sort_rows,
    value_hashes,
)
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._relevance import inverse_of, widened
from skbounds.kernel_boost._selection import choose_times
from skbounds.kernel_boost._stopping import LONGEST
from skbounds.kernel_boost._summed import FactorSums, SummedColumns, sum_rows


@dataclass(frozen=True)
class Facts:
    """What one pass tells of all rows of positive weight.

    Attributes
    ----------
    n : int
        Their number.
    total : float
        Sum of their weights.
    low, high : ndarray of shape (d,)
    deviation : ndarray of shape (d,)
        Weighted standard deviations of the features.
    """

    n: int
    total: float
    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray


def _facts_of(X, y, weight, summarise):
    """Return numbers, extremes and moments of a chunk, and what its targets are."""
    X, y, w, _ = rows_that_count(X, y, weight)
    if not len(y):
        return None
    check_magnitude(X, "X")
    total = w.sum()
    if issparse(X):
        mean = np.asarray(X.T @ w).ravel() / total
        square = np.asarray(X.multiply(X).T @ w).ravel() - total * mean**2
        low, high = (np.asarray(e(axis=0).todense()).ravel() for e in (X.min, X.max))
    else:
        mean = w @ X / total
        square = w @ (X - mean) ** 2
        low, high = X.min(axis=0), X.max(axis=0)
    return (len(y), total, mean, square, low, high), summarise(y, w)


def as_columns(y):
    """Return targets as doubles, (n, m)."""
    y = np.asarray(y, dtype=np.float64)
    return y[:, None] if y.ndim == 1 else y


def find_facts(chunks, summarise):
    """Run the first pass.

    Parameters
    ----------
    chunks : Chunks
    summarise : callable
        ``summarise(y, weight)`` is what is to be known of a chunk's targets.

    Returns
    -------
    facts : Facts
    summaries : list
    """
    found = [part for part in chunks.map(_facts_of, summarise) if part is not None]
    if not found:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    sizes, totals, means, squares, low, high = (
        np.array(column) for column in zip(*(part[0] for part in found), strict=True)
    )
    centre = totals @ means / totals.sum()
    # Of the chunks' means as well.
    variance = (squares.sum(axis=0) + totals @ (means - centre) ** 2) / totals.sum()
    facts = Facts(
        int(sizes.sum()), float(totals.sum()), low.min(axis=0), high.max(axis=0),
        np.sqrt(np.maximum(variance, 0.0)),
    )  # fmt: skip
    return facts, [part[1] for part in found]


def _of_numbers(y, weight):
    """Return the weight, mean and extremes of targets."""
    targets = as_columns(y)
    total = weight.sum()
    ends = targets.min(axis=0), targets.max(axis=0)
    return total, weight @ targets / total, *ends


@dataclass(frozen=True)
class Numbers:
    """Makes targets of numbers.

    Attributes
    ----------
    offset : ndarray of shape (m,)
        What is subtracted.
    """

    offset: np.ndarray

    def __call__(self, y, weight):
        """Return the numbers, and what the rows count."""
        return y, weight

    def targets(self, y):
        """Return targets (n, m)."""
        return as_columns(y) - self.offset


def fold_numbers(X, start, seed, n_folds, *, by_value):
    """Return the fold of each row: of its values, or of its number.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    start : int
        Number of the first row.
    seed : int
    n_folds : int
    by_value : bool
        Whether rows that are the same stay together.
    """
    if by_value:
        hashes = value_hashes(X, seed)
    else:
        hashes = number_hashes(start + np.arange(X.shape[0]), seed)
    return (hashes % np.uint64(n_folds)).astype(np.intp)


@dataclass(frozen=True)
class Plan:
    """What a chunk has to know for its sums.

    Attributes
    ----------
    kernel : Kernel
    landmarks : {ndarray, sparse matrix} of shape (r, d)
    triangle : ndarray of shape (r, r)
    coder : callable
        ``coder(y, weight)`` returns numbers or codes of classes, and what rows count;
        ``coder.targets`` makes targets (n, m) of the former.
    total : float
        Sum of that over all rows.
    n_folds, n_used : int
        Folds that rows are dealt into, and of these those that are left out.
    seed : int
    by_value : bool
        See `fold_numbers`.
    """

    kernel: object
    landmarks: object
    triangle: np.ndarray
    coder: object
    total: float
    n_folds: int
    n_used: int
    seed: int
    by_value: bool

    def of_chunk(self, X, y, weight, start):
        """Return the rows that count, what `coder` makes of them, and their folds."""
        fold = None
        if self.n_used:
            fold = fold_numbers(
                X, start, self.seed, self.n_folds, by_value=self.by_value
            )
        X, y, weight, kept = rows_that_count(X, y, weight)
        coded, weight = self.coder(y, weight)
        return X, coded, weight / self.total, None if fold is None else fold[kept]


def _sums_of(X, y, weight, place, plan):
    """Return the sums of a chunk, see `FactorSums`."""
    X, coded, share, fold = plan.of_chunk(X, y, weight, place[1])
    return sum_rows(
        lambda rows: plan.kernel(X[rows], plan.landmarks), plan.triangle,
        plan.kernel.diagonal(X), share, plan.coder.targets(coded), fold, plan.n_used,
    ).arrays()  # fmt: skip


def _are_copies(X, targets):
    """Tell whether rows that are the same stay together, as `hash_folds` does."""
    hashes = row_hashes(X, 0)
    order, begins = sort_rows(hashes, targets)
    return bool(are_copies(X, hashes, order, begins, np.ones(len(hashes))))


class ChunkedFit:
    """Mixin: fits of collections of dask, by sums over chunks."""

    _takes_collections = True

    def _check_chunks(self, groups, X_val):
        """Refuse what needs all rows at once."""
        splits = not isinstance(self.cv, (Integral, type(None)))
        refused = [
            *self._beyond_sums(),
            ("kernel", self.kernel == "precomputed", "is a function of rows then"),
            ("solver", self.solver not in ("auto", "lowrank"), "is 'lowrank' then"),
            ("cv", self._rule() == "cv" and splits, "is a number of folds then"),
        ]
        for name, bad, why in refused:
            if bad:
                raise ValueError(
                    f"X is a collection of dask, of which sums over rows are taken: "
                    f"{name} {why}; got {getattr(self, name)!r}."
                )
        if groups is not None:
            raise ValueError(
                "groups are for rows in memory; X is a collection of dask."
            )
        if self._rule() == "validation" and X_val is None:
            raise ValueError(
                "X is a collection of dask, of which no rows are held out: give X_val "
                "and y_val for stopping='validation'."
            )

    def _sample(self, chunks, facts, rng):
        """Return some rows, their targets and numbers; None where all are as few."""
        limit = min(self._rank_limit(facts.n), facts.n)
        size = _solvers.sample_size(facts.n, limit)
        if size >= facts.n:
            return None
        numbers = draw_rows(chunks, int(rng.integers(2**63)), size)
        X, y, _ = chunks.take(numbers)
        self._check_training(X)
        self._check_relevance(X)
        return X, y, numbers

    def _fit_gathered(self, chunks, X_val, y_val, sample_weight_val, weighted):
        """Fit rows that fit into memory as such: more is known of them."""
        X, y, weight = chunks.take(np.arange(chunks.sizes.sum()))
        if chunks.names is not None:
            import pandas

            X = pandas.DataFrame(X, columns=chunks.names)
        return self.fit(
            X, y, weight if weighted else None, X_val=X_val, y_val=y_val,
            sample_weight_val=sample_weight_val,
        )  # fmt: skip

    def _spread_over_all(self, kernel, facts):
        """Return a kernel whose features are clipped to the range of all rows."""
        scale = kernel.scale
        if scale is None:
            return kernel
        if self.relevance is not None and not isinstance(self.relevance, str):
            factor = np.sqrt(scale.relevance) * inverse_of(facts.deviation)
            scale = replace(scale, factor=factor)
        if scale.low is not None:
            ends = facts.low, facts.high
            if scale.relevance is None:
                ends = widened(*ends)
            scale = replace(scale, low=ends[0], high=ends[1])
        return replace(kernel, scale=scale)

    def _warn_of_weights(self, facts):
        """Tell where weights are hardly numbers of rows, or are many."""
        self._warn_of_small_weights(facts.total, facts.n)
        if self._rule() in COUNTS_ROWS and facts.total >= OFTEN * facts.n:
            self._warn_of_repetition(facts.total / facts.n)

    def _summed_columns(self, chunks, rows, targets, facts, total, coder, rng):
        """Run the pass of the sums; return the factor's columns, and its plan.

        Parameters
        ----------
        chunks : Chunks
        rows : Rows
            The sample.
        targets : ndarray of shape (n_few, m)
            Its targets, or codes of classes.
        facts : Facts
        total : float
            Sum of what rows count.
        coder : callable
            See `Plan`.
        rng : Generator
        """
        self._check_diagonal(rows)
        limit = min(self._rank_limit(facts.n), facts.n)
        factor = _solvers.grown_factor(rows, limit, rng)
        n_folds, n_used = self.cv or 5, 0
        if self._rule() == "cv":
            n_used = n_folds_used(n_folds, facts.n, False)
        plan = Plan(
            rows.kernel, rows.X[factor.pivots], factor.triangle(), coder, total,
            n_folds, n_used, self._hash_seed(rng, 0), _are_copies(rows.X, targets),
        )  # fmt: skip
        sums = FactorSums(*chunks.sums(_sums_of, plan, numbered=True))
        return SummedColumns(factor, factor.pivots, sums, targets=sums), plan


class ChunkedRegression(ChunkedFit):
    """Mixin: the squared loss of numbers in chunks."""

    def _beyond_sums(self):
        return [
            ("loss", self.loss != "squared", "is made of sums for 'squared' only"),
            ("intervals", self.intervals, "keep a number for each row"),
            ("stopping", self._rule() == "loo", "'loo' needs all eigenvectors"),
        ]

    def _fit_chunks(self, X, y, sample_weight, X_val, y_val, sample_weight_val, groups):
        self._check_chunks(groups, X_val)
        chunks = Chunks(X, y, sample_weight, target="numbers")
        facts, summaries = find_facts(chunks, _of_numbers)
        totals, means, low, high = (
            np.array(column) for column in zip(*summaries, strict=True)
        )
        self._check_targets(np.stack([low.min(axis=0), high.max(axis=0)]))
        self._warn_of_weights(facts)
        offset = totals @ means / totals.sum() * self.fit_intercept
        set_names(self, chunks)
        rng = self._rng()
        found = self._sample(chunks, facts, rng)
        if found is None:
            return self._fit_gathered(
                chunks, X_val, y_val, sample_weight_val, sample_weight is not None
            )
        X_few, y_few, numbers = found
        options = self._stopping_options()
        held_out = None
        if X_val is not None:
            like = y_few if chunks.y_ndim == 1 else as_columns(y_few)
            held_out = self._check_validation(
                X_val, y_val, sample_weight_val, like, numbers
            )
        # The guard of scales judges by "gcv" where there are many rows.
        sample = self._problem(
            X_few, as_columns(y_few), np.ones(len(numbers)),
            replace(options, stopping="gcv"), None,
        )  # fmt: skip
        kernel, gamma_path, _ = self._choose_scales(sample, rng, None)
        rows = Rows(self._spread_over_all(kernel, facts), X_few)
        columns, _ = self._summed_columns(
            chunks, rows, sample.targets, facts, facts.total, Numbers(offset), rng
        )
        problem = replace(sample, offset=offset)
        solution, choice = self._solve_sums(
            problem, columns, rows, facts, options, held_out
        )
        self._store(
            solution, choice, rows.kernel, problem, X_few, numbers, chunks.y_ndim == 1
        )
        self.stopping_ = options.stopping
        self._store_kernel(rows.kernel, gamma_path)
        self._warn_of_limit(self.n_iter_, options.max_iter or LONGEST)
        self._warn_of_rank(facts.n)
        return self

    def _solve_sums(self, problem, columns, rows, facts, options, held_out):
        """Return the solution, and where the path is stopped."""

        def stop(solution):
            loss = None
            if held_out is not None:
                loss = solution.held_out_loss(*held_out, problem.offset)
            elif options.stopping == "cv":
                loss = SummedFoldPaths(
                    columns, solution.path.step_size, average=self.average,
                    with_offset=self.fit_intercept,
                ).loss  # fmt: skip
            return choose_times(solution.path, options, held_out=loss)

        def judge(basis):
            solution = self._spectral(basis, rows, columns.targets, facts.total)
            choice = stop(solution)
            reach = solution.path.step_size * choice.times.max()
            return (solution, choice), reach, choice.df, choice.criterion

        basis, found, _ = self._grow(columns, judge)
        self._warn_of_width(basis, facts.n)
        return found
