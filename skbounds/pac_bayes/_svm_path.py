"""Paths of SVM solutions along C, many problems on one kernel matrix.

Rows are sorted so that those of a class and a fold or block are consecutive: any fold
of any pair of classes is then a few segments of the same matrix, and nothing is copied.
Classes are numbered as in that order; a pair's decision is positive for the later one.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skbounds.pac_bayes import _smo
from skbounds.pac_bayes._kernels import KernelRows

# Iterations of the solver between two chances to interrupt it.
_UNINTERRUPTED = 1_000_000
# A value of C this many errors (over eta) worse than the best has no prior mass left.
_HOPELESS = 7.0
# The path ends after so many hopeless values in a row.
_PATIENCE = 3


class PairProblem:
    """A two-class SVM whose solution follows C upwards.

    Parameters
    ----------
    rows : KernelRows
    first, second : list of (start, stop)
        Rows of the two classes.
    targets : list of (start, stop)
        Rows whose decision values are wanted.
    weights : (float, float)
        Factors of C for the two classes.

    Attributes
    ----------
    beta : ndarray of shape (n_rows,)
        The solution.
    row_numbers : ndarray of int of shape (n_rows,)
        The row of the kernel matrix that belongs to each entry.
    """

    def __init__(self, rows: KernelRows, first, second, targets, weights):
        self.rows = rows
        signed = [(*piece, -1.0) for piece in first] + [
            (*piece, 1.0) for piece in second
        ]
        signed.sort()
        sizes = [stop - start for start, stop, _ in signed]
        pieces = _join(signed)
        self.row_numbers = np.concatenate([np.arange(*piece) for piece in pieces])
        self.beta = np.zeros(len(self.row_numbers))
        self.v = np.repeat([sign for _, _, sign in signed], sizes)
        # The signed factor of C: one of the two bounds, the other being 0.
        self.weight = self.v * np.where(self.v > 0.0, weights[1], weights[0])
        self.work = np.zeros((4, len(self.beta)))
        self.segments = _number(pieces)
        self.targets = _number(targets)
        self.beta_seen = np.zeros(len(self.beta))
        self.outputs = np.zeros(self.targets[:, 2].sum())

    def advance(self, C: float, tol: float, max_iter: float) -> tuple[int, bool]:
        """Solve for a larger C; return the number of iterations, and if capped."""
        most, rows = max_iter * len(self.beta), self.rows
        settings = np.array([C, tol, *np.zeros(12)])
        while True:
            # Now and then back to Python, where the user can interrupt.
            settings[2] = limit = min(most, settings[4] + _UNINTERRUPTED)
            missing = _smo.solve(
                rows.pool, rows.slot_of, rows.stamp, rows.clock, rows.diagonal,
                self.segments, self.weight, self.beta, self.v, self.beta_seen,
                self.outputs, self.work, settings,
            )  # fmt: skip
            if missing != _smo.DONE:
                rows.load(missing, self._promising())
            elif settings[4] < limit or limit == most:
                break
        self.bias = settings[5]
        return int(settings[4]), settings[4] >= most

    def decide(self) -> np.ndarray:
        """Return the decision values of the targets, up to date."""
        rows = self.rows
        while True:
            missing = _smo.update_outputs(
                rows.pool, rows.slot_of, rows.stamp, rows.clock, self.row_numbers,
                self.beta, self.beta_seen, self.targets, self.outputs,
            )  # fmt: skip
            if missing == _smo.DONE:
                return self.outputs + self.bias
            rows.load(missing, self.row_numbers[self.beta != self.beta_seen])

    def coefficients(self):
        """Return the numbers of the supporting rows and their coefficients."""
        used = np.flatnonzero(self.beta)
        return self.row_numbers[used], self.beta[used]

    def _promising(self):
        """Return rows that will probably be in a working pair soon."""
        low, high = self.work[:2]
        up = np.where(self.beta < high, self.v, -np.inf)
        down = np.where(self.beta > low, self.v, np.inf)
        best = np.concatenate([np.argsort(-up)[:32], np.argsort(down)[:32]])
        return self.row_numbers[best]


def _join(signed) -> list[tuple[int, int]]:
    """Return the ranges, neighbours joined."""
    joined = []
    for start, stop, _ in signed:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


def _number(ranges) -> np.ndarray:
    """Return segments: first row, first entry of the problem's arrays, length."""
    segments = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    lengths = segments[:, 1] - segments[:, 0]
    begins = np.cumsum(lengths) - lengths
    return np.column_stack([segments[:, 0], begins, lengths])


class OneVsOne:
    """The SVMs of all pairs of classes on one training set, along C.

    Parameters
    ----------
    rows : KernelRows
    ranges : list of list of (start, stop)
        For each class, its training rows.
    targets : list of (start, stop)
        Rows whose classes are to be predicted.
    weights : ndarray of shape (n_classes,)
        Factors of C.
    """

    def __init__(self, rows, ranges, targets, weights):
        self.pairs = list(combinations(range(len(ranges)), 2))
        self.problems = [
            PairProblem(rows, ranges[a], ranges[b], targets, (weights[a], weights[b]))
            for a, b in self.pairs
        ]

    def advance(self, C, tol, max_iter):
        """Solve all pairs for a larger C; return most iterations, and if capped."""
        done = [problem.advance(C, tol, max_iter) for problem in self.problems]
        return max(1, *(n for n, _ in done)), any(capped for _, capped in done)

    def decide(self):
        """Return the decision values of the targets, shape (n_targets, n_pairs)."""
        return np.column_stack([problem.decide() for problem in self.problems])

    def coefficients(self, n_rows):
        """Return dual coefficients (n_classes - 1, n_rows) and intercepts (n_pairs,).

        As in libsvm, a row of class a has its coefficient against the other class b in
        line b, or b - 1 if b is later.
        """
        n_classes = self.pairs[-1][1] + 1
        dual = np.zeros((n_classes - 1, n_rows))
        for (a, b), problem in zip(self.pairs, self.problems, strict=True):
            numbers, beta = problem.coefficients()
            # The sign tells the class: the line is that of the other one.
            dual[np.where(beta < 0.0, b - 1, a), numbers] = beta
        return dual, np.array([problem.bias for problem in self.problems])


def vote(decisions: np.ndarray, n_classes: int, rank: np.ndarray) -> np.ndarray:
    """Return the class each row's pairs vote for, ties to the class of least rank.

    Parameters
    ----------
    decisions : ndarray of shape (..., n_pairs)
        Positive for the later class of a pair.
    n_classes : int
    rank : ndarray of shape (n_classes,)
        Order in which ties are broken.
    """
    later = decisions > 0.0
    if n_classes == 2:
        return later[..., 0].astype(np.intp)
    # One byte a vote would overflow beyond 256 classes.
    votes = np.zeros((*decisions.shape[:-1], n_classes), dtype=np.int32)
    for p, (a, b) in enumerate(combinations(range(n_classes), 2)):
        votes[..., b] += later[..., p]
        votes[..., a] += ~later[..., p]
    order = np.argsort(rank)
    return order[np.argmax(votes[..., order], axis=-1)]


def cross_validated_errors(
    folds, truths, Cs, rank, *, eta, tol, max_iter, early_end, n_jobs, verbose
):
    """Count errors on held-out folds for each C, all folds in step.

    Parameters
    ----------
    folds : list of OneVsOne
        One per fold; its targets are the rows held out.
    truths : list of ndarray
        Their classes.
    Cs : ndarray of shape (n_Cs,)
        Increasing.
    rank : ndarray of shape (n_classes,)
    eta : float
        Rate of the prior that the counts are for: it says what is hopeless.
    tol, max_iter : float
    early_end : bool
    n_jobs : int or None
    verbose : int

    Returns
    -------
    errors : ndarray of shape (n_Cs,)
        Infinite where the path ended before.
    """
    errors = np.full(len(Cs), np.inf)
    # Loading missing rows changes the pool under the feet of other threads.
    serial = effective_n_jobs(n_jobs) == 1 or not folds[0].problems[0].rows.complete
    parallel = None if serial else Parallel(n_jobs=n_jobs, prefer="threads")
    for i, C in enumerate(Cs):
        jobs = [(fold, truth, C) for fold, truth in zip(folds, truths, strict=True)]
        if parallel is None:
            counts = [_count(*job, rank, tol, max_iter) for job in jobs]
        else:
            counts = parallel(
                delayed(_count)(*job, rank, tol, max_iter) for job in jobs
            )
        errors[i] = sum(counts)
        if verbose:
            print(f"[inner folds] C={C:.4g}: {errors[i]:.0f} errors")
        best = int(np.argmin(errors))
        late = errors[max(i - _PATIENCE + 1, best + 1) : i + 1]
        hopeless = late >= errors[best] + _HOPELESS / max(eta, 1e-300)
        if early_end and best > 0 and len(late) == _PATIENCE and hopeless.all():
            break
    return errors


def _count(fold, truth, C, rank, tol, max_iter):
    fold.advance(C, tol, max_iter)
    return int(np.sum(vote(fold.decide(), len(rank), rank) != truth))
