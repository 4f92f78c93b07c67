"""How a classifier grows its factor and walks along its path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbounds.kernel_boost import _solvers, _stopping
from skbounds.kernel_boost._boost import FEW_ROWS, improvement
from skbounds.kernel_boost._class_path import NEGLIGIBLE, Coordinates, walk
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._stopping import SpectralPath, Spectrum

# How many times longer than the pilot's the path may get before it is looked at again.
_LONG_AFTER = 30.0


class ClassSolver:
    """Mixin: the path of several losses in the coordinates of a growing factor."""

    def _solve(self, problem, kernel, rng, held_out=None, fixed=None, rank=None):
        """Return what is fitted.

        Parameters
        ----------
        problem : ClassProblem
        kernel : Kernel
        rng : Generator
        held_out : tuple or None
            Validation rows, targets and weights.
        fixed : float or None
            Learning time to stop at instead.
        rank : int or None
            Rank of the factor that is wanted.

        Returns
        -------
        found : Walked
        """
        rows, n = Rows(kernel, problem.X), problem.X.shape[0]
        solver = self.solver
        if solver == "auto":
            solver = "eigh" if n <= FEW_ROWS else "lowrank"
        # Squared loss on the classes: it tells the rank, and where about to stop.
        response = problem.response()

        def pilot(basis):
            largest = basis.eigenvalues[0] if len(basis.eigenvalues) else 1.0
            spectrum = Spectrum(basis, response, problem.weight.sum())
            path = SpectralPath(spectrum, 1.0 / largest)
            judge = lambda found: _stopping.gcv(found, path.n_samples, 1, 1.0)
            found = path.explore(judge, _stopping.LONGEST, None)
            best = _stopping.first_minimum(found.criterion).max()
            reach = path.step_size * found.times[best]
            least = found.criterion.min(axis=0).mean()
            return (spectrum, reach), reach, found.df[best], least

        if solver != "lowrank":
            basis = _solvers.full_basis(rows.gram(), problem.weight)
            self._warn_of_width(basis, n)
            spectrum, _ = pilot(basis)[0]
            state = self._state(problem, basis, spectrum, held_out, rows, None)
            return walk(state, self._options(), fixed)
        judge = pilot
        if rank is not None:
            judge = lambda basis: (pilot(basis)[0], 0.0, 1.0, np.nan)
        columns = self._columns(rows, problem.weight, response, rng)
        least, before = rank or 0, np.inf
        while True:
            basis, (spectrum, reach), is_enough = self._grow(
                columns, judge, least=least
            )
            timed = fixed is not None or self.stopping in (None, "theory")
            reach = None if timed else reach * _LONG_AFTER
            state = self._state(problem, basis, spectrum, held_out, rows, reach)
            found = walk(state, self._options(), fixed)
            if found.neglects():
                # It went on for longer than the pilot said.
                state = self._state(problem, basis, spectrum, held_out, rows, None)
                found = walk(state, self._options(), fixed)
            # The pilot's certificate may not hold where the path is stopped.
            tolerated = self._tolerated(columns.rank)
            covered = found.missing_df <= tolerated * found.path[found.chosen, 2]
            now = found.path[found.chosen, 1]
            small = improvement(before, now) < self.rank_gain_tol
            if columns.complete or covered or small or not is_enough or rank:
                self._warn_of_width(basis, n)
                return found
            least, before = 2 * columns.rank, now

    def _state(self, problem, basis, spectrum, held_out, rows, reach):
        """Return the problem in coordinates, as many as are of any use."""
        mu = basis.eigenvalues
        step = self._step(basis, rows, problem.loss)
        used = len(mu)
        if reach is not None and not self._is_plain():
            used = max(int((mu * reach > NEGLIGIBLE).sum()), 1)
        psi = basis.coordinates(used)
        return Coordinates(
            problem, basis, psi, mu[:used], step, spectrum, held_out, rows
        )

    def _step(self, basis, rows, loss):
        mu = basis.eigenvalues
        largest = mu[0] if len(mu) else 0.0
        if loss.smoothness is None:
            if self.step_size is not None:
                return float(self.step_size)
            largest = float(rows.diagonal().max())
            return self.learning_rate / (largest if largest > 0.0 else 1.0)
        self._check_step(loss.smoothness, largest)
        if self.step_size is not None:
            return float(self.step_size)
        if largest == 0.0:
            return float(self.learning_rate)
        return self.learning_rate / (loss.smoothness * largest)

    def _solve_again(self, problem, kernel, rng, before, scale):
        """Fit all rows for the learning time that was chosen on a part of them."""
        eta = before.state.step * before.path[before.chosen, 0] * scale
        found = self._solve(
            problem, kernel, rng, fixed=eta, rank=len(before.state.basis.landmarks)
        )
        ratio = before.state.step / found.state.step * scale
        path = before.path.copy()
        path[:, 0] = np.maximum(1.0, np.round(path[:, 0] * ratio))
        return replace(found, shown=path, has_criterion=True)
