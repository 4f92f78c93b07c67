"""How losses other than the squared one grow the factor and walk along the path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbounds._callbacks import as_task
from skbounds.kernel_boost import _solvers, _stopping
from skbounds.kernel_boost._boost import FEW_ROWS, LONGEST_PLAIN, improvement
from skbounds.kernel_boost._flow_path import (
    NEGLIGIBLE,
    Coordinates,
    PathOptions,
    Walked,
    plain_steps,
    walk,
)
from skbounds.kernel_boost._fold_walk import LONGEST_FOLDED, JointPaths, walk_folds
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._stopping import SpectralPath, Spectrum

# How many times longer than the pilot's the path may get before it is looked at again.
_LONG_AFTER = 30.0


def pilot_path(basis, response, n_samples):
    """Return what the squared loss tells of the rank and of where about to stop."""
    largest = basis.eigenvalues[0] if len(basis.eigenvalues) else 1.0
    spectrum = Spectrum(basis, response, n_samples)
    path = SpectralPath(spectrum, 1.0 / largest)
    judge = lambda found: _stopping.gcv(found, path.n_samples, 1, 1.0)
    found = path.explore(judge, _stopping.LONGEST, None)
    best = _stopping.first_minimum(found.criterion).max()
    reach = path.step_size * found.times[best]
    least = found.criterion.min(axis=0).mean()
    return (spectrum, reach), reach, found.df[best], least


class FlowSolver:
    """Mixin: the paths of several losses in the coordinates of a growing factor."""

    @as_task("path")
    def _solve_flow(
        self, problem, kernel, rng, *, held_out=None, fixed=None, rank=None, grown=None,
        keep=False, rule=None,
    ):  # fmt: skip
        """Return what is fitted.

        Parameters
        ----------
        problem : ClassProblem or LossProblem
        kernel : Kernel
        rng : Generator
        held_out : tuple or None
            Validation rows, targets and weights.
        fixed : float or None
            Learning time to stop at instead.
        rank : int or None
            Rank of the factor that is wanted.
        grown : Basis or None
            What is known of the kernel matrix.
        keep : bool
            Whether the functions without folds are wanted.
        rule : str or None
            Stopping rule in place of that of the parameters.

        Returns
        -------
        found : Walked
        """
        rows, n = Rows(kernel, problem.X), problem.X.shape[0]
        options = self._options(rule or self._rule())
        solver = self.solver
        if solver == "auto":
            solver = "eigh" if n <= FEW_ROWS else "lowrank"
        # The squared loss tells the rank, and where about to stop.
        response = problem.response()

        pilot = lambda basis: pilot_path(basis, response, problem.n_samples)

        def follow(basis, spectrum, reach):
            state = self._state(problem, basis, spectrum, held_out, rows, reach)
            return self._walk(state, options, fixed, keep)

        if solver != "lowrank":
            basis = grown
            if basis is None:
                basis = _solvers.full_basis(rows.gram(), problem.weight)
                self._warn_of_width(basis, n)
            return follow(basis, pilot(basis)[0][0], None)
        judge = pilot
        if rank is not None:
            judge = lambda basis: (pilot(basis)[0], 0.0, 1.0, np.nan)
        columns = None if grown is None else grown.columns
        # The paths need the factor at every step; one that was streamed is not kept.
        if columns is None or columns.is_streamed:
            columns = self._columns(rows, problem.weight, response, rng)
        # All coordinates are used where no time is known to be enough.
        timed = fixed is not None or options.stopping in (None, "theory", "cv")
        found, basis = self._grow_along(
            columns, judge, follow, timed=timed, least=rank or 0
        )
        self._warn_of_width(basis, n)
        return found

    def _grow_along(self, columns, judge, follow, *, timed, least=0):
        """Return what is fitted in the coordinates of a factor that grows, and these.

        Parameters
        ----------
        columns : Columns or SummedColumns
        judge : callable
            See `_grow`; finds the spectrum and the reach of the pilot.
        follow : callable
            ``follow(basis, spectrum, reach)`` walks along the path.
        timed : bool
            Whether all coordinates are used.
        least : int
            Rank that is wanted, and no more; 0 for as large as it takes.
        """
        wanted = least
        least, before = wanted or columns.rank, np.inf
        while True:
            basis, (spectrum, reach), is_enough = self._grow(
                columns, judge, least=least
            )
            found = follow(basis, spectrum, None if timed else reach * _LONG_AFTER)
            if found.neglects():
                # It went on for longer than the pilot said.
                found = follow(basis, spectrum, None)
            # The pilot's certificate may not hold where the path is stopped.
            tolerated = self._tolerated(columns.rank)
            covered = found.missing_df <= tolerated * found.path[found.chosen, 2]
            now = found.path[found.chosen, 1]
            small = improvement(before, now) < self.rank_gain_tol
            if columns.complete or covered or small or not is_enough or wanted:
                return found, basis
            least, before = 2 * columns.rank, now

    def _walk(self, state, options, fixed, keep):
        problem = state.problem
        if fixed is not None or options.stopping != "cv":
            return walk(state, options, fixed)
        joint = self._joint_paths(state, grows=not options.plain)
        found = walk_folds(joint, state.basis, state.step, options, keep=keep)
        m, noise, _, norm = problem.constants(state, options)
        return Walked(
            state, found.path, found.chosen, found.stages, m, noise, norm,
            has_criterion=True, is_unfinished=found.is_unfinished, fits=found.fits,
        )  # fmt: skip

    def _joint_paths(self, state, *, grows):
        problem = state.problem
        return JointPaths(problem, state.basis, problem.folds, grows=grows)

    def _state(self, problem, basis, spectrum, held_out, rows, reach):
        """Return the problem in coordinates, as many as are of any use."""
        mu = basis.eigenvalues
        step = self._step_of(problem, basis, rows)
        used = len(mu)
        if reach is not None and not self._is_plain():
            used = max(int((mu * reach > NEGLIGIBLE).sum()), 1)
        return Coordinates(problem, basis, mu[:used], step, spectrum, held_out, rows)

    def _step_of(self, problem, basis, rows):
        loss, mu = problem.loss, basis.eigenvalues
        largest = mu[0] if len(mu) else 0.0
        if loss.smoothness is None:
            if self.step_size is not None:
                return float(self.step_size)
            largest = loss.unit_curvature(
                mu, rows.diagonal, problem.targets, problem.share_of_rows
            )
            return self.learning_rate / (largest if largest > 0.0 else 1.0)
        self._check_step(loss.smoothness, largest)
        if self.step_size is not None:
            return float(self.step_size)
        if largest == 0.0:
            return float(self.learning_rate)
        return self.learning_rate / (loss.smoothness * largest)

    def _options(self, rule):
        return PathOptions(
            loss=self.loss,
            stopping=rule,
            df_margin=self.df_margin,
            noise=self.noise,
            norm=self.norm,
            limit=self._limit(rule),
            patience=self.n_iter_no_change,
            plain=self._is_plain(),
            average=self.average,
        )

    def _limit(self, rule=None):
        """Return the largest time."""
        if self.max_iter is not None:
            return self.max_iter
        if self._is_plain():
            return LONGEST_PLAIN
        return LONGEST_FOLDED if (rule or self._rule()) == "cv" else _stopping.LONGEST

    def _is_plain(self):
        return self.solver == "gd" or self.step_size is not None or self.average

    def _solve_flow_again(self, problem, kernel, rng, before, scale):
        """Fit all rows for the learning time that was chosen on a part of them."""
        eta = before.state.step * before.path[before.chosen, 0] * scale
        found = self._solve_flow(
            problem, kernel, rng, fixed=eta, rank=len(before.state.basis.landmarks)
        )
        ratio = before.state.step / found.state.step * scale
        path = before.path.copy()
        path[:, 0] = np.maximum(1.0, np.round(path[:, 0] * ratio))
        return replace(found, shown=path, has_criterion=True)

    def _store_path(self, found, kernel, X, kept):
        """Set the attributes that all losses have but the squared one."""
        state, basis, problem = found.state, found.state.basis, found.state.problem
        modes = basis.modes[:, : len(state.mu)]
        theta = found.stage.theta
        self.dual_coef_ = modes @ theta
        self.n_iter_ = int(found.path[found.chosen, 0])
        self._store_factor(basis, state.step, kernel, X, kept)
        self._path_ = {
            "modes": modes,
            "thetas": np.array([stage.theta for stage in found.stages]),
            "times": found.path[:, 0],
            # Steps on the log-risk are divided by what their curvature is at first.
            "curvature": found.curvature if problem.loss.stretch(1.0) == 1.0 else 1.0,
        }
        if self._is_plain():
            # Steps between those that were kept are taken anew.
            self._path_["problem"] = {
                "loss": problem.loss,
                "psi": state.psi,
                "y": problem.targets,
                "share": problem.share_of_rows,
                "offset": problem.offset,
                "step_size": state.step,
                "average": self.average,
            }
        self.df_ = float(found.path[found.chosen, 2])
        self.missing_df_ = found.missing_df
        self.filter_error_ = 0.0
        norm = np.sqrt((theta**2).sum()) if self.norm is None else self.norm
        self.norm_ = float(norm)
        shown = found.path if found.shown is None else found.shown
        self.stopping_path_ = {
            "t": shown[:, 0],
            "criterion": shown[:, 1] if found.has_criterion else None,
            "df": shown[:, 2],
            "train_loss": shown[:, 3],
        }
        if shown.shape[1] > 4 and hasattr(self, "classes_"):
            self.stopping_path_["penalty"] = shown[:, 4]

    def _staged_values(self, X, times):
        """Yield the function's values at some times."""
        features = self._at_landmarks(X, self._path_["modes"])
        for theta in self._thetas(np.minimum(times, self._path_["times"][-1])):
            yield features @ theta + self.intercept_

    def _thetas(self, times):
        """Yield the coordinates at some times."""
        known, thetas = self._path_["times"], self._path_["thetas"]
        known = np.r_[0.0, known]
        thetas = np.concatenate([np.zeros_like(thetas[:1]), thetas])
        if "problem" in self._path_ and not np.isin(times, known).all():
            later = times[times > 0.0]
            if len(later) < len(times):
                yield thetas[0]
            steps = plain_steps(times=later, **self._path_["problem"])
            yield from (theta for theta, _ in steps)
            return
        for T in times:
            k = min(np.searchsorted(known, T), len(known) - 1)
            if known[k] == T:
                yield thetas[k]
            else:
                share = (T - known[k - 1]) / (known[k] - known[k - 1])
                yield (1.0 - share) * thetas[k - 1] + share * thetas[k]
