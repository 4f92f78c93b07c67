"""The picture of an estimate: its parts, beside cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_validate

from skbounds._typing import Axes, MatrixLike, Splitter
from skbounds.bolstering._losses import resolve_losses, respond
from skbounds.bolstering._record import BolsteredEstimate
from skbounds.bolstering._scorer import BolsteredScorer

_NAMES = {
    "hold_out": "held out",
    "no_information": "no information",
    "x": "moved features",
    "xy": "moved features and target",
}
_LEVEL = 0.9


class BolsteredEstimateDisplay:
    """An error estimate with its parts, beside a cross-validation interval.

    Use `from_estimator` to make one.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    estimate : BolsteredEstimate
        What is shown.
    fold_errors : ndarray of shape (n_folds,), default=None
        Errors on the folds of a cross-validation.
    test_error : float, default=None
        Error on test rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    BolsteredScorer : What the picture is about.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbounds.bolstering import BolsteredEstimateDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = BolsteredEstimateDisplay.from_estimator(
    ...     DecisionTreeClassifier(random_state=0), X[::3], y[::3], plot=False
    ... )
    >>> display.fold_errors.shape
    (10,)
    """

    def __init__(
        self,
        *,
        estimate: BolsteredEstimate,
        fold_errors: np.ndarray | None = None,
        test_error: float | None = None,
    ) -> None:
        self.estimate = estimate
        self.fold_errors = fold_errors
        self.test_error = test_error

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        *,
        scorer: BolsteredScorer | None = None,
        cv: int | Splitter | None = 10,
        X_test: MatrixLike | None = None,
        y_test: ArrayLike | None = None,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Estimate the error in both ways, and plot them.

        Parameters
        ----------
        estimator : estimator
            Clones of it are fitted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their targets.
        scorer : BolsteredScorer, default=None
            With one loss. None: the default.
        cv : int, splitter or None, default=10
            None: no cross-validation.
        X_test : array-like of shape (n_test, n_features), default=None
            Test rows, to show the error there as well.
        y_test : array-like of shape (n_test,), default=None
            Their targets.
        plot : bool, default=True
            Whether to plot.
        ax : matplotlib Axes, default=None
            Axes to plot on.

        Returns
        -------
        display : BolsteredEstimateDisplay
            The numbers, plotted.
        """
        scorer = BolsteredScorer() if scorer is None else scorer
        if isinstance(scorer.loss, (list, tuple)):
            raise ValueError(f"scorer must have one loss; got loss={scorer.loss!r}.")
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together; got only one of them.")
        fitted = clone(estimator).fit(X, y)
        estimate = scorer.estimate(fitted, X, y)
        [loss] = resolve_losses(scorer.loss, is_classifier(fitted))
        if loss.kind == "score":
            raise ValueError(
                "The display shows mean losses, not scores such as "
                f"{loss.name!r}; choose another loss of the scorer."
            )
        error = _MeanLoss(loss)
        fold_errors = test_error = None
        if cv is not None:
            fold_errors = cross_validate(estimator, X, y, cv=cv, scoring=error)
            fold_errors = fold_errors["test_score"]
        if X_test is not None:
            test_error = error(fitted, X_test, y_test)
        display = cls(estimate=estimate, fold_errors=fold_errors, test_error=test_error)
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Plot the estimate and its parts.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a figure.

        Returns
        -------
        display : BolsteredEstimateDisplay
            With `ax_` and `figure_` set.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "Plotting needs matplotlib: pip install skbounds[plot]."
            ) from error
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        found = self.estimate
        rows = []
        if np.isfinite(found.resubstitution):
            ax.plot(found.resubstitution, 0, "o", color="tab:gray")
            rows.append("resubstitution")
        parts = {
            _NAMES[name]: value
            for name, value in found.components.items()
            if name in _NAMES and name != found.method
        }
        for name, value in parts.items():
            ax.plot(value, len(rows), "o", color="tab:gray", fillstyle="none")
            rows.append(name)
        at = len(rows)
        if np.isfinite(found.resubstitution):
            # The arrow is the increment.
            ax.annotate(
                "",
                xy=(found.error, at),
                xytext=(found.resubstitution, at),
                arrowprops={"arrowstyle": "->", "color": "tab:blue", "alpha": 0.5},
            )
        label, limits = found.method, None
        if found.losses is not None and np.isfinite(found.standard_error):
            low, high = found.interval(_LEVEL)
            limits = [[found.error - low], [high - found.error]]
            label += f" ({_LEVEL:.0%} interval)"
        ax.errorbar(
            found.error,
            at,
            xerr=limits,
            fmt="o",
            color="tab:blue",
            capsize=4,
            label=label,
        )
        if found.integration_error > 0.0:
            ax.errorbar(
                found.error,
                at,
                xerr=found.integration_error,
                color="tab:red",
                elinewidth=3,
                label="integration error",
            )
        rows.append("estimate")
        if self.fold_errors is not None:
            folds = np.asarray(self.fold_errors)
            at, spread = len(rows), None
            if len(folds) > 1:
                spread = folds.std(ddof=1) / np.sqrt(len(folds))
            ax.plot(folds, np.full(len(folds), at), "|", color="tab:orange")
            ax.errorbar(
                folds.mean(),
                at,
                xerr=spread,
                fmt="s",
                color="tab:orange",
                capsize=4,
                label=f"cross-validation ({len(folds)} folds, one standard error)",
            )
            rows.append("cross-validation")
        if self.test_error is not None:
            ax.axvline(
                self.test_error, color="black", linestyle="--", label="test error"
            )
        ax.set_yticks(np.arange(len(rows)), rows)
        ax.set_ylim(len(rows) + 0.7, -0.7)
        ax.set_xlabel(f"error ({found.loss} loss)")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class _MeanLoss:
    """A scorer whose score is the mean loss itself."""

    def __init__(self, loss):
        self.loss = loss

    def __call__(self, estimator, X, y):
        """Return the mean loss on some rows."""
        predictions = respond(estimator, X, self.loss.response)
        classes = getattr(estimator, "classes_", None)
        return float(np.mean(self.loss(np.asarray(y), predictions, classes)))
