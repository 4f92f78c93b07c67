"""Pictures of a path and of where it was stopped, and of which features matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import skbounds
from skbounds._typing import Axes, MatrixLike
from skbounds.kernel_boost._losses import Huber, Pinball, Poisson
from skbounds.kernel_boost._radius import theory_time


class StoppingPathDisplay:
    """The criterion and the degrees of freedom along a boosting path.

    Use `from_estimator` to make one.

    Read more in the :ref:`User Guide <kernel_boost>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Numbers of steps.
    criterion : ndarray of shape (n_times,) or None
        What the stopping rule minimises.
    train_loss : ndarray of shape (n_times,)
        Mean loss on the training rows.
    df : ndarray of shape (n_times,)
        Degrees of freedom.
    stopping_time : int
        Where the path was stopped.
    theory_time : int, default=None
        Where the critical radius says to stop.
    critical_radius : float, default=None
        The critical radius.
    name : str, default="criterion"
        Name of the criterion.
    held_out : ndarray of shape (n_times,), default=None
        Mean loss on other rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    df_ax_ : matplotlib Axes
        Axes of the degrees of freedom.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    EarlyStoppedKernelBoost : What the picture is about.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbounds.kernel_boost import EarlyStoppedKernelBoost, StoppingPathDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
    >>> display = StoppingPathDisplay.from_estimator(model, plot=False)
    >>> display.stopping_time == model.n_iter_
    True
    """

    def __init__(
        self,
        *,
        times: np.ndarray,
        criterion: np.ndarray | None,
        train_loss: np.ndarray,
        df: np.ndarray,
        stopping_time: int,
        theory_time: int | None = None,
        critical_radius: float | None = None,
        name: str = "criterion",
        held_out: np.ndarray | None = None,
    ) -> None:
        self.times = times
        self.criterion = criterion
        self.train_loss = train_loss
        self.df = df
        self.stopping_time = stopping_time
        self.theory_time = theory_time
        self.critical_radius = critical_radius
        self.name = name
        self.held_out = held_out

    @classmethod
    def from_estimator(
        cls,
        estimator: skbounds.EarlyStoppedKernelBoost
        | skbounds.EarlyStoppedKernelBoostClassifier,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        output: int = 0,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Show the path of a fitted estimator.

        Parameters
        ----------
        estimator : EarlyStoppedKernelBoost or EarlyStoppedKernelBoostClassifier
            Fitted.
        X, y : array-like, default=None
            Other rows, whose mean loss along the path is shown too: that of the
            estimator (half of the squared error), or the log loss of classes.
        output : int, default=0
            Which of several outputs.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : StoppingPathDisplay
            The display.
        """
        check_is_fitted(estimator)
        if (X is None) != (y is None):
            raise ValueError("X and y are given together, or neither of them.")
        if not 0 <= output < np.size(estimator.n_iter_):
            raise ValueError(
                f"output must be in [0, {np.size(estimator.n_iter_)}); got {output}."
            )
        path = estimator.stopping_path_
        pick = lambda values: values if np.ndim(values) < 2 else values[:, output]
        one = lambda value: value if np.ndim(value) == 0 else value[output]
        radius = one(estimator.critical_radius_)
        theory = theory_time(
            radius, estimator.step_size_, estimator._path_["curvature"]
        )
        if estimator.stopping_ == "theory":
            # On the log-risk the length of the steps changes along the way.
            theory = one(estimator.n_iter_)
        held_out = None
        if X is not None:
            held_out = _held_out(estimator, X, y, path["t"], output)
        criterion, rule = path["criterion"], estimator.stopping_
        name = f'criterion "{rule}"'
        if rule in ("gcv", "cp", "loo", "discrepancy"):
            # These are squared errors, the losses half of them.
            criterion, name = 0.5 * criterion, f"{name}, halved"
        display = cls(
            times=path["t"],
            criterion=None if criterion is None else pick(criterion),
            train_loss=pick(path["train_loss"]),
            df=path["df"],
            stopping_time=int(one(estimator.n_iter_)),
            theory_time=int(theory) if np.isfinite(theory) else None,
            critical_radius=float(radius),
            name=name,
            held_out=held_out,
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : StoppingPathDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        lines = ax.plot(self.times, self.train_loss, color="0.6", label="training loss")
        shown = [self.train_loss]
        if self.criterion is not None:
            finite = np.isfinite(self.criterion)
            lines += ax.plot(
                self.times[finite], self.criterion[finite], color="C0", label=self.name
            )
            shown.append(self.criterion[finite])
        if self.held_out is not None:
            lines += ax.plot(
                self.times, self.held_out, color="C2", label="loss on other rows"
            )
            shown.append(self.held_out)
        lines.append(
            ax.axvline(
                self.stopping_time,
                color="C3",
                label=f"T = {self.stopping_time}",
            )
        )
        if self.theory_time is not None:
            text = (
                f"theory: T = {self.theory_time}, "
                f"$\\delta_n$ = {self.critical_radius:.2g}"
            )
            lines.append(
                ax.axvline(self.theory_time, color="C1", linestyle="--", label=text)
            )
        ax.set_xscale("log")
        # Near interpolation the criterion may be huge.
        start = max(values[0] for values in shown if len(values))
        low = min(values.min() for values in shown if len(values))
        ax.set_ylim(low - 0.05 * (start - low), start + 0.25 * (start - low) + 1e-12)
        ax.set_xlabel("number of steps")
        ax.set_ylabel("loss")
        df_ax = ax.twinx()
        lines += df_ax.plot(
            self.times, self.df, color="C4", linestyle=":", label="degrees of freedom"
        )
        df_ax.set_ylabel("degrees of freedom")
        df_ax.set_ylim(bottom=0.0)
        # Below: inside it would cover the curves.
        ax.legend(
            handles=lines, fontsize="small", ncols=2, loc="upper center",
            bbox_to_anchor=(0.5, -0.14),
        )  # fmt: skip
        self.ax_, self.df_ax_, self.figure_ = ax, df_ax, ax.figure
        return self


class RelevanceDisplay:
    """A bar for each feature: how much the function may change along it.

    Use `from_estimator` to make one.

    Read more in the :ref:`User Guide <kernel_boost>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    names : list of str
        Names of the features.
    relevance : ndarray of shape (n_features,)
        The square roots of ``relevance_``: one over the length in standard deviations
        at which a feature makes a difference.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    bars_ : matplotlib BarContainer
        The bars.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    EarlyStoppedKernelBoost : What the picture is about.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from skbounds.kernel_boost import EarlyStoppedKernelBoost, RelevanceDisplay
    >>> X, y = make_friedman1(100, n_features=5, random_state=0)
    >>> model = EarlyStoppedKernelBoost(relevance="ard", random_state=0).fit(X, y)
    >>> RelevanceDisplay.from_estimator(model, plot=False).names
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """

    def __init__(self, *, names: Sequence[str], relevance: np.ndarray) -> None:
        self.names = names
        self.relevance = relevance

    @classmethod
    def from_estimator(
        cls,
        estimator: skbounds.EarlyStoppedKernelBoost
        | skbounds.EarlyStoppedKernelBoostClassifier,
        *,
        max_features: int = 20,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Show the relevance of the features of a fitted estimator.

        Parameters
        ----------
        estimator : EarlyStoppedKernelBoost or EarlyStoppedKernelBoostClassifier
            Fitted, with ``relevance_``.
        max_features : int, default=20
            Show so many of the most relevant ones.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RelevanceDisplay
            The display.
        """
        check_is_fitted(estimator)
        if estimator.relevance_ is None:
            raise ValueError(
                "the estimator has one width for all features (relevance_ is None): "
                "relevance='ard' gives each its own."
            )
        sizes = np.sqrt(estimator.relevance_)
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(len(sizes))]
        shown = np.arange(len(sizes))
        if len(shown) > max_features:
            shown = np.sort(np.argsort(-sizes, kind="stable")[:max_features])
        display = cls(names=[str(names[j]) for j in shown], relevance=sizes[shown])
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RelevanceDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            height = max(2.0, 0.28 * len(self.names) + 0.9)
            _, ax = plt.subplots(figsize=(6.4, height), layout="constrained")
        places = np.arange(len(self.names))
        self.bars_ = ax.barh(places, self.relevance, color="C0", height=0.7)
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel("relevance: 1 / length, in standard deviations of the feature")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _held_out(estimator, X, y, times, output):
    """Return the mean loss of other rows at some times."""
    whole = np.unique(times)
    y = np.asarray(y)
    losses = []
    if hasattr(estimator, "classes_"):
        known = np.isin(y, estimator.classes_)
        if not known.all():
            raise ValueError(
                "y has labels that the estimator was not fitted on: "
                f"{np.unique(y[~known]).tolist()}."
            )
        codes = np.searchsorted(estimator.classes_, y)
        for p in estimator.staged_predict_proba(X, whole):
            own = p[np.arange(len(codes)), codes]
            losses.append(-np.log(np.maximum(own, 1e-300)).mean())
    else:
        y = y.reshape(len(y), -1)[:, output].astype(np.float64)
        share = np.full(len(y), 1.0 / len(y))
        judge = _judge(estimator)
        for values in estimator.staged_predict(X, whole):
            losses.append(judge(y, values.reshape(len(y), -1)[:, output], share))
    return np.array(losses)[np.searchsorted(whole, times)]


def _judge(estimator):
    """Return the mean loss of predictions of numbers."""
    name = estimator._params_["loss"]
    if name == "poisson":
        return lambda y, p, share: Poisson().deviance(y, np.log(p), share)
    if name == "quantile":
        return Pinball(estimator._params_["quantile"], 1.0).deviance
    if name == "squared":
        return lambda y, p, share: 0.5 * share @ (y - p) ** 2
    return Huber(estimator.delta_).deviance
