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

from skbounds._callbacks import current_task
from skbounds._core import pac_bayes as _core
from skbounds.pac_bayes._kernels import KernelRows
from skbounds.pac_bayes._stacking import MOST_EXCESS_ERRORS

# Iterations of the solver between two chances to interrupt it.
_UNINTERRUPTED = 1_000_000
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
        self.row_numbers = np.concatenate(
            [np.arange(*piece, dtype=np.int64) for piece in pieces]
        )
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
        settings = np.array([C, tol, *np.zeros(6)])
        while True:
            # Now and then back to Python, where the user can interrupt.
            settings[2] = limit = min(most, settings[4] + _UNINTERRUPTED)
            missing = _core.solve(
                rows.pool, rows.slot_of, rows.stamp, rows.clock, rows.diagonal,
                self.segments, self.weight, self.beta, self.v, self.beta_seen,
                self.outputs, self.work, settings,
            )  # fmt: skip
            if missing != _core.DONE:
                rows.load(missing, self._promising())
            elif settings[4] < limit or limit == most:
                break
        self.bias = settings[5]
        return int(settings[4]), settings[4] >= most

    def decide(self) -> np.ndarray:
        """Return the decision values of the targets, up to date."""
        rows = self.rows
        while True:
            missing = _core.update_outputs(
                rows.pool, rows.slot_of, rows.stamp, rows.clock, self.row_numbers,
                self.beta, self.beta_seen, self.targets, self.outputs,
            )  # fmt: skip
            if missing == _core.DONE:
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
    joined: list[tuple[int, int]] = []
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


class ConstantPair:
    """Two classes of which the rows have at most one: it is always decided for.

    Parameters
    ----------
    first, second : list of (start, stop)
        Rows of the two classes.
    targets : list of (start, stop)
        Rows whose decision values are wanted.
    """

    def __init__(self, first, second, targets):
        self.bias = 1.0 if second and not first else -1.0
        self.n_targets = sum(stop - start for start, stop in targets)

    def advance(self, C, tol, max_iter):
        """Return that nothing was to be done."""
        return 0, False

    def decide(self):
        """Return the decision values of the targets."""
        return np.full(self.n_targets, self.bias)

    def coefficients(self):
        """Return that no row supports it."""
        return np.arange(0), np.zeros(0)


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
            if ranges[a] and ranges[b]
            else ConstantPair(ranges[a], ranges[b], targets)
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


def class_scores(decisions: np.ndarray, class_order: np.ndarray) -> np.ndarray:
    """Return scores per class from the decisions of pairs.

    As `sklearn.svm.SVC` with ``decision_function_shape="ovr"``.

    Parameters
    ----------
    decisions : ndarray of shape (..., n_pairs)
        Positive for the later class of a pair.
    class_order : ndarray of shape (n_classes,)
        Codes of the classes in the order used inside.

    Returns
    -------
    scores : ndarray of shape (..., n_classes), or (..., 1) for two classes
    """
    n_classes = len(class_order)
    if n_classes == 2:
        return decisions if class_order[1] == 1 else -decisions
    votes = np.zeros((*decisions.shape[:-1], n_classes))
    total = np.zeros(votes.shape)
    for p, (a, b) in enumerate(combinations(class_order.tolist(), 2)):
        later = decisions[..., p] > 0.0
        votes[..., b] += later
        votes[..., a] += ~later
        total[..., b] += decisions[..., p]
        total[..., a] -= decisions[..., p]
    # Confidences break ties between votes but outweigh none.
    return votes + total / (3.0 * (np.abs(total) + 1.0))


def cross_validate_path(
    folds, truths, Cs, class_order, *, tol, max_iter, early_end, n_jobs, verbose
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
    class_order : ndarray of shape (n_classes,)
    tol, max_iter : float
    early_end : bool
    n_jobs : int or None
    verbose : int

    Returns
    -------
    errors : ndarray of shape (n_Cs,)
        Infinite where the path ended before.
    scores : list of ndarray of shape (n_held_out, n_columns)
        For each C that was reached the scores of all rows, fold after fold.
    """
    errors, scores = np.full(len(Cs), np.inf), []
    # Loading missing rows changes the pool under the feet of other threads. Folds keep
    # their solutions from one C to the next, and share the pool: in one process.
    serial = effective_n_jobs(n_jobs) == 1 or not _pool_is_complete(folds[0])
    parallel = None if serial else Parallel(n_jobs=n_jobs, require="sharedmem")
    task = current_task().begin("inner folds", len(Cs))
    for i, C in enumerate(Cs):
        step = task.begin(f"C={C:.4g}")
        jobs = [(fold, truth, C) for fold, truth in zip(folds, truths, strict=True)]
        if parallel is None:
            found = [_count(*job, class_order, tol, max_iter) for job in jobs]
        else:
            found = parallel(
                delayed(_count)(*job, class_order, tol, max_iter) for job in jobs
            )
        errors[i] = sum(count for count, _ in found)
        scores.append(np.concatenate([part for _, part in found]))
        if verbose:
            print(f"[inner folds] C={C:.4g}: {errors[i]:.0f} errors")
        step.end()
        best = int(np.argmin(errors))
        late = errors[max(i - _PATIENCE + 1, best + 1) : i + 1]
        hopeless = late >= errors[best] + MOST_EXCESS_ERRORS
        if early_end and best > 0 and len(late) == _PATIENCE and hopeless.all():
            break
    task.end()
    return errors, scores


def _pool_is_complete(machine):
    problems = [p for p in machine.problems if isinstance(p, PairProblem)]
    return all(problem.rows.complete for problem in problems)


def _count(fold, truth, C, class_order, tol, max_iter):
    fold.advance(C, tol, max_iter)
    decisions = fold.decide()
    voted = vote(decisions, len(class_order), class_order)
    scores = class_scores(decisions, class_order)
    return int(np.sum(voted != truth)), scores
