"""Other losses for numbers than the squared one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbounds.kernel_boost._flow_path import LossProblem
from skbounds.kernel_boost._flow_solver import FlowSolver
from skbounds.kernel_boost._losses import Huber, Pinball, Poisson, weighted_quantile
from skbounds.kernel_boost._radius import critical_radius
from skbounds.kernel_boost._squared_solver import SYMMETRIC

# Largest counts, whose logarithms are well within those that are computed with.
_LARGEST_COUNT = 1e15
# In deviations: the bend of Huber's loss, where targets are cut off for the pilot, and
# the width of a loss that is to be nearly absolute.
_BEND, _WINSOR, _NARROW = 1.345, 3.0, 0.1
# The deviation is at least this share of that of a normal law with the same middle
# half, which two clusters of targets have, and a quarter of outliers does not move.
_CLUSTERED, _MIDDLE_HALF = 0.3, 1.349
# Constants have no scale; a loss needs one.
_NO_SCALE = 1e-9


def scale_of(values, weight):
    """Return 1.4826 times the median absolute deviation; 0 for constants.

    Where most values are nearly the same and others are not, more than that: a share of
    the range of the middle half, or the mean absolute deviation.
    """
    middle = weighted_quantile(values, weight, 0.5)
    gaps = np.abs(values - middle)
    ends = [weighted_quantile(values, weight, q) for q in (0.25, 0.75)]
    scale = max(
        1.4826 * weighted_quantile(gaps, weight, 0.5),
        _CLUSTERED * (ends[1] - ends[0]) / _MIDDLE_HALF,
    )
    return scale if scale > 0.0 else float(np.average(gaps, weights=weight))


class LossSolver(FlowSolver):
    """Mixin: the path of losses for numbers other than the squared one."""

    def _check_loss(self, y):
        """Refuse what a loss has not, and targets that it is not for."""
        if self.intervals and (self.loss not in SYMMETRIC or y.ndim > 1):
            raise ValueError(
                "intervals=True is for one output and loss='squared', 'huber' or "
                f"'absolute_error'; got loss={self.loss!r} and y of shape {y.shape}."
            )
        if self.loss == "squared":
            return
        if y.ndim > 1:
            raise ValueError(
                f"loss={self.loss!r} is for one output; got y of shape {y.shape}. "
                "MultiOutputRegressor fits one estimator for each."
            )
        allowed = ("cv",) if self.intervals else ("cv", "validation", None)
        if self._rule() not in allowed:
            raise ValueError(
                f"stopping={self.stopping!r} is for the squared loss"
                f"{', or without intervals' if self.intervals else ''}; with "
                f"loss={self.loss!r} choose one of {allowed}."
            )
        if self.solver == "banded":
            raise ValueError(
                "solver='banded' is for the squared loss; choose 'auto', 'lowrank', "
                "'eigh' or 'gd'."
            )
        if self.loss == "poisson":
            self._check_counts(y, "y")

    def _check_counts(self, y, name):
        if y.min() < 0.0 or y.max() > _LARGEST_COUNT or (name == "y" and not y.any()):
            raise ValueError(
                f"loss='poisson' needs {name} that is not negative, nor 0 everywhere, "
                f"nor above {_LARGEST_COUNT:g}; its least value is {y.min():g}, its "
                f"largest {y.max():g}."
            )

    def _fit_loss(self, problem, everything, rng, held_out, X, kept):
        """Fit another loss; return the kernel and the search for gamma."""
        pilot = self._pilot(everything)
        surrogate = pilot
        if everything is not problem:
            surrogate = self._pilot(problem)
        kernel, gamma_path, found = self._choose_scales(surrogate, rng, None)
        # The factor of the pilot is not made again, whatever it was stopped by.
        grown = None if found is None else found[0].basis
        held = None
        if held_out is not None:
            held = held_out[0], held_out[1][:, 0], held_out[2]

        def solve(problem, centred, loss, **how):
            one = LossProblem(
                problem.X, problem.targets[:, 0], problem.weight, loss,
                self.fit_intercept, centred, problem.folds,
            )  # fmt: skip
            return self._solve_flow(one, kernel, rng, **how)

        y = everything.targets[:, 0]
        scale = scale_of(y, everything.weight)
        # Without an offset a constant is what is to be learnt.
        scale = scale or (np.abs(y).max() or 1.0) * (
            _NO_SCALE if self.fit_intercept else 1.0
        )
        loss = self._loss(scale)
        if loss is None:
            # Huber's bend is at a multiple of the residuals' scale.
            first = solve(
                everything, pilot.centred, Huber(_NARROW * scale),
                grown=grown if everything is problem else None,
                rule="cv",
            )  # fmt: skip
            if everything is problem:
                grown = first.state.basis
            residuals = first.state.problem.targets - first.values()
            # Not less than what is nearly the absolute error: where there is no noise
            # the pilot leaves none.
            bend = _BEND * scale_of(residuals, everything.weight)
            loss = Huber(max(bend, _NARROW * scale))
        found = solve(
            problem, surrogate.centred, loss, grown=grown, held_out=held,
            keep=self.intervals,
        )  # fmt: skip
        if everything is not problem:
            ratio = everything.weight.sum() / problem.weight.sum()
            whole = LossProblem(
                X, everything.targets[:, 0], everything.weight, loss,
                self.fit_intercept, pilot.centred,
            )  # fmt: skip
            found = self._solve_flow_again(whole, kernel, rng, found, ratio)
        self.delta_ = loss.delta if isinstance(loss, Huber) else None
        self._store_flow(found, kernel, X, kept)
        if self.intervals:
            self._folds_ = found.fits
        self._warn_of_loss(found.is_unfinished)
        return kernel, gamma_path

    def _loss(self, scale):
        """Return the loss for a scale of y; None where it waits for a pilot."""
        if self.loss == "poisson":
            return Poisson()
        if self.loss == "quantile":
            return Pinball(self.quantile, _NARROW * scale)
        if self.loss == "absolute_error":
            return Huber(_NARROW * scale)
        return None if self.delta == "auto" else Huber(float(self.delta))

    def _pilot(self, problem):
        """Return the problem with targets for the squared loss.

        Without outliers; for counts their roots, whose variance hardly depends on the
        mean.
        """
        y = problem.targets[:, 0]
        if self.loss == "poisson":
            y = np.sqrt(y + 0.375)
        else:
            middle = weighted_quantile(y, problem.weight, 0.5)
            reach = _WINSOR * scale_of(y, problem.weight)
            y = np.clip(y, middle - reach, middle + reach)
        options = replace(problem.options, stopping="gcv")
        return self._problem(problem.X, y[:, None], problem.weight, options, None)

    def _store_flow(self, found, kernel, X, kept):
        state, problem = found.state, found.state.problem
        self._store_path(found, kernel, X, kept)
        self.intercept_ = float(problem.offset)
        left = max(problem.weight.sum() - self.df_ - self.fit_intercept, 1.0)
        if self.noise is not None:
            self.noise_ = float(self.noise)
        elif self.loss == "poisson":
            # Of the working response, at the mean count.
            self.noise_ = float(1.0 / np.sqrt(problem.share_of_rows @ problem.targets))
        else:
            residuals = problem.targets - found.values()
            grown = np.sqrt(problem.weight.sum() / left)
            self.noise_ = float(scale_of(residuals, problem.weight) * grown)
        self.critical_radius_ = critical_radius(
            state.basis.eigenvalues, self.noise_, self.norm_, problem.weight.sum()
        )
