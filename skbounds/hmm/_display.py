"""Pictures of a hidden Markov model: its states along the rows, and its convergence."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import skbounds
from skbounds._typing import Axes, MatrixLike, RandomState
from skbounds._validation import check_array
from skbounds.hmm._sequences import find_sequences

# Iterations after which EM has ended, if they are more than ten times those shown.
_LATER = 500


class HMMDisplay:
    """The probabilities of the states along sequences.

    Use `from_estimator` to make one.

    Read more in the :ref:`User Guide <hmm>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_components)
        Probabilities of the states.
    starts : ndarray of int of shape (n_sequences + 1,)
        First rows of the sequences, and the number of rows.
    states : ndarray of shape (n_samples,), default=None
        States that are known, drawn as a strip.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    BaumWelchHMM : What the picture is about.
    EMConvergenceDisplay : How EM gets there.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.hmm import BaumWelchHMM, HMMDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([0.0, 3.0, 0.0], 30)[:, None] + rng.normal(size=(90, 1))
    >>> model = BaumWelchHMM(random_state=0).fit(X)
    >>> HMMDisplay.from_estimator(model, X, plot=False).probabilities.shape
    (90, 2)
    """

    def __init__(
        self,
        *,
        probabilities: np.ndarray,
        starts: np.ndarray,
        states: np.ndarray | None = None,
    ) -> None:
        self.probabilities = probabilities
        self.starts = starts
        self.states = states

    @classmethod
    def from_estimator(
        cls,
        estimator: skbounds.BaumWelchHMM,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        states: ArrayLike | None = None,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Show the posteriors of a fitted model.

        Parameters
        ----------
        estimator : BaumWelchHMM
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.
        states : array-like of shape (n_samples,), default=None
            States that are known.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : HMMDisplay
            The display.
        """
        check_is_fitted(estimator)
        p = estimator.predict_proba(X, sequence_id=sequence_id, lengths=lengths)
        if states is not None:
            states = np.asarray(states)
            if states.shape != (len(p),):
                raise ValueError(
                    f"states must be of shape ({len(p)},); got {states.shape}."
                )
        found = find_sequences(len(p), sequence_id, lengths)
        states = None if states is None else found.arrange(states)
        display = cls(
            probabilities=found.arrange(p), starts=found.starts, states=states
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the probabilities.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : HMMDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        n, s = self.probabilities.shape
        colors = [f"C{k % 10}" for k in range(s)]
        ax.stackplot(
            np.arange(n), self.probabilities.T, colors=colors, alpha=0.7,
            labels=[f"state {k}" for k in range(s)],
        )  # fmt: skip
        for start in self.starts[1:-1]:
            ax.axvline(start - 0.5, color="k", linewidth=0.8)
        ax.set_ylim(0.0, 1.0)
        if self.states is not None:
            # Above the probabilities.
            names, codes = np.unique(self.states, return_inverse=True)
            known = np.issubdtype(names.dtype, np.integer) and names.min() >= 0
            for code, name in enumerate(names):
                own = np.flatnonzero(codes == code)
                # Of numbers of states in the colours of these.
                color = colors[name % s] if known and names.max() < s else f"C{code}"
                ax.plot(own, np.full(len(own), 1.04), "|", color=color)
            ax.set_ylim(0.0, 1.08)
        ax.set_xlim(0, max(n - 1, 1))
        ax.set_xlabel("row")
        ax.set_ylabel("probability")
        ax.legend(
            fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


class EMConvergenceDisplay:
    """Optimisation error and statistical error along EM, from several starts.

    The former shrinks by a factor per iteration, the latter only to a floor that the
    number of rows sets: iterations beyond it are in vain.

    Use `from_estimator` to make one.

    Read more in the :ref:`User Guide <hmm>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    optimisation : list of ndarray
        Distances of the means from where EM ended, one array per start.
    statistical : list of ndarray or None
        Distances of the means from the true ones.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    BaumWelchHMM : What the picture is about.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.hmm import BaumWelchHMM, EMConvergenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([-1.5, 1.5, -1.5], 30)[:, None] + rng.normal(size=(90, 1))
    >>> model = BaumWelchHMM(structure="symmetric", sigma=1.0)
    >>> display = EMConvergenceDisplay.from_estimator(
    ...     model, X, true_means=[[-1.5], [1.5]], plot=False, random_state=0
    ... )
    >>> len(display.optimisation)
    5
    """

    def __init__(
        self,
        *,
        optimisation: list[np.ndarray],
        statistical: list[np.ndarray] | None = None,
    ) -> None:
        self.optimisation = optimisation
        self.statistical = statistical

    @classmethod
    def from_estimator(
        cls,
        estimator: skbounds.BaumWelchHMM,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        true_means: ArrayLike | None = None,
        n_starts: int = 5,
        spread: float = 0.25,
        n_iter: int = 50,
        random_state: RandomState = None,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Run EM from several starts.

        Parameters
        ----------
        estimator : BaumWelchHMM
            Need not be fitted; clones are.
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.
        true_means : array-like of shape (n_components, n_features), default=None
            Means to which the statistical error is measured, and around which EM is
            started. None: only the optimisation error, started around a first fit.
        n_starts : int, default=5
            Number of starts.
        spread : float, default=0.25
            Starts are uniform in balls around the means, of a radius of this share of
            half of their extent: of abs(mu) for the symmetric model.
        n_iter : int, default=50
            Number of iterations.
        random_state : int, RandomState instance or None, default=None
            Seed of the starts.
        plot : bool, default=True
            Whether to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : EMConvergenceDisplay
            The display.
        """
        estimator._validate_params()
        if estimator.emission == "categorical":
            raise ValueError(
                "the picture is of means, which emission='categorical' has not."
            )
        if estimator.structure == "symmetric" and estimator.sigma is None:
            raise ValueError("structure='symmetric' needs sigma; got sigma=None.")
        rng = check_random_state(random_state)
        told = {"sequence_id": sequence_id, "lengths": lengths}
        middle = true_means
        if middle is None:
            middle = clone(estimator).fit(X, **told).means_
        middle = check_array(middle, dtype=np.float64, input_name="true_means")
        shape = (estimator.n_components, np.shape(X)[1])
        if middle.shape != shape:
            raise ValueError(
                f"true_means must be of shape {shape}; got {middle.shape}."
            )
        is_symmetric = estimator.structure == "symmetric"
        if is_symmetric and np.abs(middle.sum(axis=0)).max() > 1e-8 * np.ptp(middle):
            raise ValueError(
                f"true_means of the symmetric model are -mu and mu; got "
                f"{middle.tolist()}."
            )
        radius = spread * 0.5 * np.linalg.norm(np.ptp(middle, axis=0))
        optimisation, statistical = [], []
        for _ in range(n_starts):
            shift = _in_ball(rng, middle.shape[1]) * radius
            if is_symmetric:
                start = np.array([-(middle[1] + shift), middle[1] + shift])
            else:
                shifts = [_in_ball(rng, middle.shape[1]) for _ in middle]
                start = middle + radius * np.array(shifts)
            # The end is where EM is much later.
            path = estimator._path(X, start, max(10 * n_iter, _LATER), **told)
            end, path = path[-1], path[: n_iter + 1]
            optimisation.append(np.linalg.norm(path - end, axis=(1, 2)))
            if true_means is not None:
                statistical.append(np.linalg.norm(path - middle, axis=(1, 2)))
        display = cls(
            optimisation=optimisation,
            statistical=statistical if true_means is not None else None,
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : EMConvergenceDisplay
            The display.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        for k, errors in enumerate(self.optimisation):
            positive = errors > 0.0
            ax.plot(
                np.flatnonzero(positive), errors[positive], color="C0", linewidth=1.0,
                label="to where EM ends" if k == 0 else None,
            )  # fmt: skip
        for k, errors in enumerate(self.statistical or []):
            ax.plot(
                errors, color="C3", linewidth=1.0, linestyle="--",
                label="to the true means" if k == 0 else None,
            )  # fmt: skip
        ax.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel("distance of the means")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _in_ball(rng, d):
    """Return a point of the unit ball, uniformly."""
    direction = rng.standard_normal(d)
    return direction / np.linalg.norm(direction) * rng.uniform() ** (1.0 / d)
