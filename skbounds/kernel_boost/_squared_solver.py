"""How the squared loss is solved for, and with which scales of the features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import issparse

from skbounds._callbacks import as_task
from skbounds.kernel_boost import _chain, _solvers
from skbounds.kernel_boost._boost import FEW_ROWS
from skbounds.kernel_boost._fold_paths import FoldChains, FoldPaths
from skbounds.kernel_boost._folds import hash_folds
from skbounds.kernel_boost._hashes import row_hashes
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._leave_one_out import leave_one_out_criterion
from skbounds.kernel_boost._relevance import clip_only
from skbounds.kernel_boost._selection import StoppingOptions, choose_times, describe
from skbounds.kernel_boost._solutions import ChainSolution, SpectralSolution
from skbounds.kernel_boost._stopping import (
    LONGEST,
    SpectralPath,
    Spectrum,
    first_minimum,
)

# Losses that relevance="auto" acts for, and intervals.
SYMMETRIC = ("squared", "huber", "absolute_error")
# Scales of features are kept where they lower the error on rows left out to this share
# of that with one width: with .95 the error was .76 times as large on average over 64
# splits, at most 1.03 times. The error is that of so many rows, at such a rank.
_GUARD, _GUARD_FOLDS, _GUARD_ROWS, _GUARD_RANK = 0.95, 5, 1000, 256
# What the error on rows left out may be at the stopping time, as a multiple of the
# least: of 1.05 to 1.3 the last hardly ever acts where it should not (80 splits, 20
# sets).
_VETO = 1.3
# Fewer rows say nothing about features.
_FEWEST_ROWS = 10


@dataclass(frozen=True)
class Problem:
    """Rows and targets to fit.

    Attributes
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n, m)
    offset : ndarray of shape (m,)
    weight : ndarray of shape (n,)
    options : StoppingOptions
    folds : Folds or None
    """

    X: object
    targets: np.ndarray
    offset: np.ndarray
    weight: np.ndarray
    options: StoppingOptions
    folds: object

    @cached_property
    def centred(self):
        """The targets without the offset, always the same array."""
        centred = self.targets - self.offset
        # Constant targets, whose mean was rounded, are no signal.
        rounding = 10.0 * np.finfo(np.float64).eps * np.abs(self.targets).max(axis=0)
        return np.where(np.abs(centred).max(axis=0) <= rounding, 0.0, centred)


class SquaredSolver:
    """Mixin: the path of the squared loss, by any solver."""

    def _choose_scales(self, problem, rng, held_out):
        """Return the kernel, the search for gamma, and what is fitted with it already.

        The scales of greatest evidence are kept if without folds of rows the function
        errs clearly less with them than with one width for all features.
        """
        X, y, weight = problem.X, problem.centred, problem.weight
        given, additive = self.relevance, self.kernel == "anova"
        is_array = given is not None and not isinstance(given, str)
        automatic = isinstance(given, str) and given == "auto"
        own = None
        if is_array and not additive:
            scale = self._scale_of(given, X, weight)
            return *self._choose_kernel(X, y, weight, rng, scale), None
        if additive or (
            given is not None and (not automatic or self._may_scale(X, weight))
        ):
            own = self._scaled_kernel(X, y, weight, rng)
        if own is not None and not automatic:
            return own, None, None
        kernel, gamma_path = self._choose_kernel(X, y, weight, rng)
        if automatic and self.clip and self._may_scale(X, weight):
            kernel = replace(kernel, scale=clip_only(X))
        if own is None:
            return kernel, gamma_path, None
        judged, choose, draws = problem, None, rng
        if len(y) > _GUARD_ROWS:
            seed = self._hash_seed(rng, 2)
            order = np.argsort(row_hashes(X, seed), kind="stable")
            judged = self._part(problem, np.sort(order[:_GUARD_ROWS]))
            choose = lambda path: choose_times(
                path, replace(problem.options, stopping="gcv")
            )
            draws = rng.spawn(1)[0]
        folds = hash_folds(
            judged.X, judged.targets, judged.weight, _GUARD_FOLDS,
            self._hash_seed(rng, 3),
            codes=None, groups=None,
            kernel_matrix=False,
            all_folds=True,
        )  # fmt: skip
        fits, curves = [], []
        for one in (kernel, own):
            found = self._solve(
                judged, one, draws, held_out=held_out, choose=choose,
                limit=_GUARD_RANK if judged is not problem else None,
            )  # fmt: skip
            paths = self._fold_paths(found[0], judged, folds, size=_GUARD_RANK)
            curves.append(paths.loss(found[1].path.times))
            fits.append(found)
        before, now = (curve.min(axis=0) for curve in curves)
        # Targets that are constants have no error to compare.
        told = before > 0.0
        accepted = told.any() and (now[told] / before[told]).mean() < _GUARD
        found = None
        if judged is problem:
            found = self._vetoed(*fits[int(accepted)], curves[int(accepted)], problem)
        if accepted:
            return own, None, found
        return kernel, gamma_path, found

    def _vetoed(self, solution, choice, curve, problem):
        """Return the solution, and where it is stopped if folds do not object.

        Where few rows have many features the criterion may take interpolation for a
        fit. The folds that judged the scales see it, at no price.
        """
        times = choice.path.times
        if self.stopping != "auto" or not len(times):
            return solution, choice
        at = np.minimum(np.searchsorted(times, choice.times), len(times) - 1)
        outputs = np.arange(curve.shape[1])
        best = times[first_minimum(curve)]
        # Never later: scales that were chosen on all rows make late times look good.
        worse = (curve[at, outputs] > _VETO * curve.min(axis=0)) & (best < choice.times)
        if not worse.any():
            return solution, choice
        chosen = np.where(worse, best, choice.times)
        return solution, describe(solution.path, chosen, choice.path, problem.options)

    def _may_scale(self, X, weight):
        """Tell whether relevance="auto" looks for scales."""
        return (
            self.kernel == "rbf"
            and isinstance(self.gamma, str)
            and self.gamma == "auto"
            and not issparse(X)
            and X.shape[1] > 1
            and weight.sum() >= _FEWEST_ROWS
            and self.loss in SYMMETRIC
        )

    def _part(self, problem, rows):
        """Return the problem of some of the rows."""
        return self._problem(
            problem.X[rows], problem.targets[rows], problem.weight[rows],
            problem.options, None,
        )  # fmt: skip

    def _fold_paths(self, solution, problem, folds=None, size=None):
        """Return the paths without folds of rows."""
        folds = problem.folds if folds is None else folds
        step = solution.path.step_size
        if isinstance(solution, ChainSolution):
            return FoldChains(
                problem.X[:, 0], folds, problem.centred, problem.weight, step,
                with_offset=self.fit_intercept,
            )  # fmt: skip
        return FoldPaths(
            solution.basis, folds, problem.centred, problem.weight.sum(), step,
            average=self.average,
            with_offset=self.fit_intercept,
            size=size,
        )  # fmt: skip

    def _problem(self, X, targets, weight, options, folds):
        offset = np.zeros(targets.shape[1])
        if self.fit_intercept:
            offset = np.average(targets, axis=0, weights=weight)
        return Problem(X, targets, offset, weight, options, folds)

    def _choose_solver(self, n_rows, n_features):
        line = self.kernel == "sobolev" and n_features == 1
        plain = not self.average and self._rule() != "loo"
        if self.solver == "auto":
            if line and plain and self.learning_rate <= 1.0 and not self.step_size:
                return "banded"
            few = n_rows <= FEW_ROWS or self._rule() == "loo"
            return "eigh" if few else "lowrank"
        if self.solver == "banded" and not (line and plain):
            raise ValueError(
                "solver='banded' is for one feature, kernel='sobolev', the last "
                "iterate (average=False) and other rules than stopping='loo'; got "
                f"n_features={n_features}, kernel={self.kernel!r}, "
                f"average={self.average} and stopping={self.stopping!r}."
            )
        if self.solver == "lowrank" and self.stopping == "loo":
            raise ValueError(
                "stopping='loo' needs all eigenvectors: choose solver='eigh' or 'gd'."
            )
        return self.solver

    @as_task("path")
    def _solve(
        self, problem, kernel, rng, *, held_out=None, choose=None, rank=None, limit=None
    ):
        """Return the solution, and where the path is stopped.

        Parameters
        ----------
        problem : Problem
        kernel : Kernel
        rng : Generator
        held_out : tuple or None
            Validation rows, targets and weights.
        choose : callable or None
            ``choose(path)`` instead of the stopping rule.
        rank : int or None
            Rank of the factor that is wanted.
        limit : int or None
            Largest rank, where it is less than that of the parameters.
        """
        n, n_features = problem.X.shape
        solver = self._choose_solver(n, n_features)

        def stop(solution):
            path = solution.path
            if choose is not None:
                return choose(path)
            loss = None
            if held_out is not None:
                loss = solution.held_out_loss(*held_out, problem.offset)
            elif problem.options.stopping == "cv":
                loss = self._fold_paths(solution, problem).loss
            left_out = None
            if self.stopping == "loo":
                left_out = lambda times: leave_one_out_criterion(
                    solution.basis, problem.targets, path.step_size, times,
                    with_offset=self.fit_intercept,
                    average=self.average,
                )  # fmt: skip
            return choose_times(path, problem.options, left_out=left_out, held_out=loss)

        if solver == "banded":
            solution = self._solve_chain(problem)
            return solution, stop(solution)
        rows, n_samples = Rows(kernel, problem.X), problem.weight.sum()
        if solver != "lowrank":
            basis = _solvers.full_basis(rows.gram(), problem.weight)
            self._warn_of_width(basis, n)
            solution = self._spectral(
                basis, rows, problem.centred, n_samples, plain=solver == "gd"
            )
            return solution, stop(solution)

        def judge(basis):
            solution = self._spectral(basis, rows, problem.centred, n_samples)
            choice = stop(solution)
            reach = solution.path.step_size * choice.times.max()
            if rank is not None:
                # As large as it was before is what is wanted, no more and no less.
                return (solution, choice), 0.0, choice.df, np.nan
            return (solution, choice), reach, choice.df, choice.criterion

        columns = self._columns(
            rows, problem.weight, problem.centred, rng, streams=True, limit=limit
        )
        basis, found, _ = self._grow(columns, judge, least=rank or 0)
        self._warn_of_width(basis, n)
        return found

    def _spectral(self, basis, rows, targets, n_samples, *, plain=False):
        largest = basis.eigenvalues[0] if len(basis.eigenvalues) else 0.0
        step = self._step(largest)
        if self.step_size is None:
            # One step is not to take more than half of the rows' degrees of freedom,
            # as it would where the kernel matrix is nearly diagonal.
            half = 0.5 * n_samples * self.learning_rate
            trace = basis.eigenvalues.sum()
            step = min(step, half / trace) if trace > 0.0 else step
        spectrum = Spectrum(basis, targets, n_samples)
        path = SpectralPath(spectrum, step, average=self.average)
        return SpectralSolution(basis, path, rows, targets, plain=plain)

    def _solve_chain(self, problem):
        x = problem.X[:, 0]
        chain = _chain.make_chain(x, problem.centred, problem.weight)
        largest = _chain.largest_eigenvalue(chain)
        step = self._step(largest)
        if step > 1.0 / largest * (1.0 + 1e-12):
            raise ValueError(
                f"solver='banded' needs steps of at most 1 / mu_1 = {1.0 / largest:.6g}"
                f"; got {step:.6g} by step_size={self.step_size} and learning_rate="
                f"{self.learning_rate}. Choose solver='eigh' or 'lowrank'."
            )
        first = np.unique(x, return_index=True)[1]
        return ChainSolution(_chain.ChainPath(chain, step), first)

    def _step(self, largest):
        self._check_step(1.0, largest)
        if self.step_size is not None:
            return float(self.step_size)
        return self.learning_rate / largest if largest > 0.0 else self.learning_rate

    def _solve_again(self, problem, kernel, rng, before, chosen, n_train):
        """Fit all rows for the learning time that was chosen on a part of them."""
        eta = before.path.step_size * problem.weight.sum() / n_train

        def choose(path):
            steps = lambda times: np.maximum(
                1.0, np.round(times * eta / path.step_size)
            )
            limit = problem.options.max_iter or LONGEST
            times = np.minimum(steps(chosen.times), limit)
            found = replace(chosen.path, times=steps(chosen.path.times))
            return describe(path, times, found, problem.options)

        return self._solve(
            problem, kernel, rng, choose=choose, rank=len(before.landmarks)
        )
