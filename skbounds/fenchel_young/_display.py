"""The picture of a stream: regret of the plays against its bound."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from skbounds._blocks import row_blocks
from skbounds._typing import Axes, MatrixLike
from skbounds.fenchel_young._offline import comparator_losses, fit_comparator
from skbounds.fenchel_young._online import FenchelYoungOnline


class SurrogateRegretDisplay:
    """Regret of the plays against its bound, along the stream.

    Use `from_estimator` to make one.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_samples : ndarray of shape (n_points,)
        Numbers of rows.
    expected_loss : ndarray of shape (n_points,)
        Expected target loss of the plays up to there.
    comparator_loss : ndarray of shape (n_points,)
        Surrogate loss of the linear predictor that the plays are compared with.
    bound : ndarray of shape (n_points,)
        Regret bound for its norm after that many rows.
    certificate : ndarray of shape (n_points,)
        Certificate for its norm after that many rows.
    name : str, default=None
        Label of the curve.

    Attributes
    ----------
    regret : ndarray of shape (n_points,)
        Surrogate regret: expected target loss of the plays less the surrogate loss of
        the comparator.
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Its figure.

    See Also
    --------
    FenchelYoungOnlineClassifier : What the picture is about.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbounds.fenchel_young import (
    ...     FenchelYoungOnlineClassifier,
    ...     SurrogateRegretDisplay,
    ... )
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FenchelYoungOnlineClassifier(random_state=0)
    >>> display = SurrogateRegretDisplay.from_estimator(clf, X, y, plot=False)
    >>> bool((display.regret <= display.certificate).all())
    True
    """

    def __init__(
        self,
        *,
        n_samples: np.ndarray,
        expected_loss: np.ndarray,
        comparator_loss: np.ndarray,
        bound: np.ndarray,
        certificate: np.ndarray,
        name: str | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.expected_loss = expected_loss
        self.comparator_loss = comparator_loss
        self.bound = bound
        self.certificate = certificate
        self.name = name
        self.regret = expected_loss - comparator_loss

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: Any,
        *,
        comparator: ArrayLike | None = None,
        alpha: float = 1.0,
        n_points: int = 100,
        plot: bool = True,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Play a stream with a clone of the estimator, and compare.

        Parameters
        ----------
        estimator : estimator
            An online estimator of this package; need not be fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The stream.
        y : array-like
            Its targets.
        comparator : array-like of shape (n_outputs, n_columns), default=None
            Weights of the linear predictor to compare with, on features as the learner
            sees them, the intercept's last. None: the best ones in hindsight, with a
            penalty.
        alpha : float, default=1.0
            The penalty is ``alpha / 2`` times their squared norm.
        n_points : int, default=100
            Points of the curves.
        plot : bool, default=True
            Whether to plot.
        ax : matplotlib Axes, default=None
            Axes to plot on.
        name : str, default=None
            Label of the curve; default is the class's name.
        **kwargs : dict
            Passed on to matplotlib for the regret's curve.

        Returns
        -------
        display : SurrogateRegretDisplay
            The numbers, plotted.
        """
        if not isinstance(estimator, FenchelYoungOnline):
            raise TypeError(
                "estimator must be an online estimator of skbounds.fenchel_young; got "
                f"{type(estimator).__name__}."
            )
        if n_points < 1:
            raise ValueError(f"n_points must be at least 1; got {n_points!r}.")
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0; got {alpha!r}.")
        estimator = clone(estimator)
        X, targets = estimator._begin(X, y)
        n = len(targets)
        loss, scale = estimator._make_loss(), estimator._scale_
        features = estimator._seen_features(X)
        if comparator is None:
            comparator = fit_comparator(loss, features, targets, alpha)
        comparator = np.asarray(comparator, dtype=np.float64)
        if comparator.shape != (loss.n_outputs, features.shape[1]):
            raise ValueError(
                f"comparator must have shape {(loss.n_outputs, features.shape[1])}; "
                f"got {comparator.shape}."
            )
        norm = float(np.linalg.norm(comparator))
        losses = scale * np.cumsum(
            comparator_losses(loss, features, targets, comparator)
        )
        points = []
        for block in row_blocks(n, -(-n // n_points)):
            estimator._run(X[block], targets[block], log=True)
            points.append(
                (
                    block.stop,
                    estimator.expected_cumulative_loss_,
                    losses[block.stop - 1],
                    estimator.surrogate_regret_bound(norm),
                    estimator.surrogate_regret_certificate(norm),
                )
            )
        rows, expected, compared, bound, certificate = np.array(points).T
        display = cls(
            n_samples=rows.astype(np.int64),
            expected_loss=expected,
            comparator_loss=compared,
            bound=bound,
            certificate=certificate,
            name=name or type(estimator).__name__,
        )
        return display.plot(ax=ax, **kwargs) if plot else display

    def plot(
        self, ax: Axes | None = None, *, show_bound: bool = True, **kwargs: Any
    ) -> Self:
        """Draw regret, bound and certificate against the number of rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.
        show_bound : bool, default=True
            Whether to draw the bound, which may dwarf the rest.
        **kwargs : dict
            Passed on to matplotlib for the regret's curve.

        Returns
        -------
        display : SurrogateRegretDisplay
            Itself.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "Plots need matplotlib: install the extra 'plot'."
            ) from error
        if ax is None:
            _, ax = plt.subplots()
        ax.plot(self.n_samples, self.regret, **{"label": self.name, **kwargs})
        ax.plot(
            self.n_samples,
            self.certificate,
            "--",
            color="tab:green",
            label="certificate",
        )
        if show_bound and np.isfinite(self.bound).any():
            ax.plot(self.n_samples, self.bound, ":", color="tab:red", label="bound")
        ax.axhline(0.0, color="black", lw=0.5)
        ax.set_xlabel("rows")
        ax.set_ylabel("surrogate regret of the plays")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
