"""Pictures of an experiment, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

import skbounds
from skbounds._typing import Axes
from skbounds.sequential._best_arm import BestArmTest
from skbounds.sequential._lond import ELOND
from skbounds.sequential._online_procedure import OnlineProcedure


class BestArmDisplay:
    """Lifts over the control, or means, of the arms of an experiment over time.

    Use `from_log` to make one. Of e-processes the intervals of lifts are shown, as they
    were narrowed down so far, and when each arm could be adopted; of "lil" means and
    their bounds.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Numbers of rewards.
    means, lower, upper : ndarray of shape (n_times, n_arms)
        Means and bounds by then; nan without rewards. With `lifts` bounds are those of
        lifts over the control, nan for the control.
    log_p_values : ndarray of shape (n_times,)
        Logarithms of the p-value by then.
    lifts : bool, default=False
        Whether bounds are of lifts.
    adopted_at : ndarray of int of shape (n_arms,), default=None
        With `lifts`: after how many rewards each arm could be adopted; 0 for never.
    level : float, default=0.05
        Of the bounds and the adoption.
    names : sequence of str, default=None
        Of the arms.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    p_ax_ : matplotlib Axes
        Axes of the p-value.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    BestArmTest : What the picture is about.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.sequential import BestArmDisplay
    >>> rng = np.random.default_rng(0)
    >>> arms = np.tile([0, 1], 100)
    >>> display = BestArmDisplay.from_log(
    ...     arms, arms + rng.normal(size=200), n_arms=2, sigma=1.0, plot=False
    ... )
    >>> bool(display.log_p_values[-1] < np.log(0.05))
    True
    """

    def __init__(
        self,
        *,
        times: np.ndarray,
        means: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        log_p_values: np.ndarray,
        lifts: bool = False,
        adopted_at: np.ndarray | None = None,
        level: float = 0.05,
        names: Sequence[str] | None = None,
    ) -> None:
        self.times = times
        self.means = means
        self.lower = lower
        self.upper = upper
        self.log_p_values = log_p_values
        self.lifts = lifts
        self.adopted_at = adopted_at
        self.level = level
        self.names = names

    @classmethod
    def from_log(
        cls,
        arms: ArrayLike,
        rewards: ArrayLike,
        *,
        test: BestArmTest | None = None,
        n_arms: int | Sequence[str] | None = None,
        evidence: Literal["eprocess", "lil"] = "eprocess",
        sigma: float | None = None,
        delta: float = 0.05,
        epsilon: float = 0.0,
        n_times: int = 200,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Show an experiment from its log.

        Parameters
        ----------
        arms : array-like of shape (n,)
            Numbers or names of arms in the order of time; the control is the first one.
        rewards : array-like of shape (n,)
            Their rewards.
        test : BestArmTest, default=None
            Of which a fresh clone takes the log, in place of the next five parameters.
        n_arms : int or list of str, default=None
            Number of arms, or their names; to be given without `test`.
        evidence : {"eprocess", "lil"}, default="eprocess"
            As of `BestArmTest`.
        sigma : float, default=None
            Sub-Gaussian scale of the rewards; None: variances are estimated.
        delta : float, default=0.05
            Probability of failure of the bounds; of e-processes at most 1/2.
        epsilon : float, default=0.0
            Improvement that is asked for.
        n_times : int, default=200
            Number of times that are shown.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BestArmDisplay
            The display.
        """
        arms, rewards = np.asarray(arms), np.asarray(rewards, dtype=np.float64)
        n = len(arms)
        if not n:
            raise ValueError("arms and rewards must be at least one.")
        if test is not None:
            if test.ratio or not (test.covariate_coef is test.covariate_mean is None):
                raise ValueError("test must be without covariates and ratios here.")
            test, delta = clone(test), test.delta
        elif n_arms is None:
            raise ValueError("n_arms must be given, or test.")
        else:
            size = int(n_arms) if isinstance(n_arms, (int, Integral)) else len(n_arms)
            most = max(n, size) + size if evidence == "lil" else None
            test = BestArmTest(
                n_arms, delta=delta, epsilon=epsilon, evidence=evidence, sigma=sigma,
                max_pulls=most,
            )  # fmt: skip
        lifts = test.evidence != "lil"
        times = np.linspace(n if n_times == 1 else 1, n, min(n, n_times))
        times = np.unique(np.round(times).astype(int))
        means, lower, upper, log_p = [], [], [], []
        n_arms = len(test.counts_)
        narrowest = np.full(n_arms, -np.inf), np.full(n_arms, np.inf)
        adopted_at, before = np.zeros(n_arms, dtype=int), 0
        for time in times:
            test.observe(arms[before:time], rewards[before:time])
            before = time
            means.append(test.means_)
            log_p.append(test.log_p_value_)
            if lifts:
                low, high = test.lift_intervals(delta)
                # All intervals hold at once, so that the truth is in each of them.
                narrowest = np.fmax(narrowest[0], low), np.fmin(narrowest[1], high)
                low, high = narrowest
                new = test.p_values_ <= delta
                adopted_at[new & (adopted_at == 0)] = time
            else:
                low, high = test.confidence_bounds()
            tried = np.isfinite(low) & np.isfinite(high)
            lower.append(np.where(tried, low, np.nan))
            upper.append(np.where(tried, high, np.nan))
        display = cls(
            times=times, means=np.array(means), lower=np.array(lower),
            upper=np.array(upper), log_p_values=np.array(log_p), lifts=lifts,
            adopted_at=adopted_at if lifts else None, level=delta,
            names=test._settings_.names,
        )  # fmt: skip
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw lifts or means, bounds, decisions and the p-value.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BestArmDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        n_arms = self.means.shape[1]
        names = self.names or ["control", *(f"arm {i}" for i in range(1, n_arms))]
        shown = self.means - self.means[:, :1] if self.lifts else self.means
        adopted_at = self.adopted_at if self.lifts else None
        for i in range(1 if self.lifts else 0, n_arms):
            color = "k" if i == 0 else f"C{(i - 1) % 10}"
            ax.plot(self.times, shown[:, i], color=color, label=names[i])
            ax.fill_between(
                self.times, self.lower[:, i], self.upper[:, i], color=color, alpha=0.15
            )
            if adopted_at is not None and adopted_at[i]:
                ax.axvline(
                    adopted_at[i], color=color, linestyle="--", linewidth=1,
                    label=f"{names[i]} may be adopted",
                )  # fmt: skip
        last = slice(len(self.times) // 10, None)
        bounds = np.r_[self.lower[last].ravel(), self.upper[last].ravel()]
        if np.isfinite(bounds).any():
            ax.set_ylim(np.nanmin(bounds), np.nanmax(bounds))
        if self.lifts:
            ax.axhline(0.0, color="k", linewidth=0.8)
        ax.set_xlabel("rewards")
        ax.set_ylabel("lift over the control" if self.lifts else "mean reward")
        p_ax = ax.twinx()
        p_ax.plot(
            self.times, self.log_p_values / np.log(10.0), color="0.4", linestyle=":"
        )
        p_ax.set_ylabel("log10 of the p-value (dotted)")
        ax.legend(
            fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4
        )
        self.ax_, self.p_ax_, self.figure_ = ax, p_ax, ax.figure
        return self


class OnlineFDRDisplay:
    """Levels, p-values, decisions and wealth over many tests.

    Use `from_procedure` or `from_study` to make one.

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    levels, p_values : ndarray of shape (n_tests,)
        Levels and p-values.
    rejected : ndarray of bool of shape (n_tests,)
        The decisions.
    wealth : ndarray of shape (n_tests,), default=None
        Wealth after each test.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    wealth_ax_ : matplotlib Axes or None
        Axes of the wealth.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    LORD : What the picture is about.

    Examples
    --------
    >>> from skbounds.sequential import LORD, OnlineFDRDisplay
    >>> display = OnlineFDRDisplay.from_procedure(
    ...     LORD(0.1), [1e-4, 0.3, 1e-3, 0.02], plot=False
    ... )
    >>> display.rejected.tolist()
    [True, False, True, False]
    """

    def __init__(
        self,
        *,
        levels: np.ndarray,
        p_values: np.ndarray,
        rejected: np.ndarray,
        wealth: np.ndarray | None = None,
    ) -> None:
        self.levels = levels
        self.p_values = p_values
        self.rejected = rejected
        self.wealth = wealth

    @classmethod
    def from_procedure(
        cls,
        procedure: OnlineProcedure,
        p_values: ArrayLike,
        *,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Show what a procedure makes of p-values.

        Parameters
        ----------
        procedure : online procedure
            Started afresh, on a clone.
        p_values : array-like of shape (n_tests,)
            P-values in their order, of `ELOND` e-values.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : OnlineFDRDisplay
            The display.
        """
        found = clone(procedure).fit(p_values)
        p_values = np.asarray(p_values, dtype=np.float64)
        if isinstance(found, ELOND):
            # What is compared with the levels.
            p_values = 1.0 / np.maximum(p_values, 1.0)
        display = cls(
            levels=found.levels_, p_values=p_values,
            rejected=found.rejected_, wealth=found.wealth_path_,
        )  # fmt: skip
        return display.plot(ax=ax) if plot else display

    @classmethod
    def from_study(
        cls, study: skbounds.MABFDR, *, plot: bool = True, ax: Axes | None = None
    ) -> Self:
        """Show the experiments of a study.

        Parameters
        ----------
        study : MABFDR
            With its history.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : OnlineFDRDisplay
            The display.
        """
        history = study.history_
        wealth = [entry.get("wealth") for entry in history]
        if None in wealth:
            # Of version 0.1. Decisions are all that wealth depends on.
            procedure = clone(study._procedure_)
            wealth = [procedure.update(entry["rejected"]).wealth_ for entry in history]
        display = cls(
            levels=np.array([entry["level"] for entry in history]),
            p_values=np.array([entry["p_value"] for entry in history]),
            rejected=np.array([entry["rejected"] for entry in history], dtype=bool),
            wealth=np.array(wealth),
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw levels, p-values, decisions and wealth.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : OnlineFDRDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        tests = np.arange(1, len(self.levels) + 1)
        lowest = 1e-3 * max(self.levels[self.levels > 0.0].min(initial=1.0), 1e-300)
        p = np.maximum(self.p_values, lowest)
        lines = ax.plot(tests, self.levels, color="C0", label="level")
        for chosen, color, name in (
            (self.rejected, "C3", "p-value, rejected"),
            (~self.rejected, "0.6", "p-value"),
        ):
            lines += ax.plot(tests[chosen], p[chosen], ".", color=color, label=name)
        ax.set_yscale("log")
        ax.set_xlabel("test")
        ax.set_ylabel("level and p-value")
        wealth_ax = None
        if self.wealth is not None:
            wealth_ax = ax.twinx()
            lines += wealth_ax.plot(
                tests, self.wealth, color="C2", linestyle=":", label="wealth"
            )
            wealth_ax.set_ylabel("wealth")
            wealth_ax.set_ylim(bottom=0.0)
        ax.legend(
            handles=lines, fontsize="small", loc="upper center",
            bbox_to_anchor=(0.5, -0.14), ncols=4,
        )  # fmt: skip
        self.ax_, self.wealth_ax_, self.figure_ = ax, wealth_ax, ax.figure
        return self
