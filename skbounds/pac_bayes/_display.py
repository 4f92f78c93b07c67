"""The picture of a certified ensemble: weights, risks and bounds of its members."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import skbounds
from skbounds._typing import Axes, MatrixLike
from skbounds.pac_bayes._votes import CertifiedVote


class CertificateDisplay:
    """Weights and risks of an ensemble's members, with its bounds.

    Use `from_estimator` to make one.

    .. versionadded:: 0.1

    Parameters
    ----------
    positions : ndarray of shape (n_members,)
        Where the members are drawn: their C, or their number.
    weights : ndarray of shape (n_members,)
        Weights of the vote.
    posterior : ndarray of shape (n_members,)
        Weights of the Gibbs classifier.
    risks : ndarray of shape (n_members,)
        Error rates on the certification rows.
    vote_bound : float
        Bound on the risk of the vote; nan where there is none.
    risk_bound : float
        Bound on the risk of the Gibbs classifier; nan where there is none.
    delta : float
        Level of the bounds.
    test_risks : ndarray of shape (n_members,), default=None
        Error rates on test rows.
    test_vote_risk : float, default=None
        Error rate of the vote on test rows.
    position_name : str, default='C'
        What the positions are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the risks in the last plot.
    weight_ax_ : matplotlib Axes
        Axes of the weights.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    PACBayesSVMEnsemble : What the picture is about.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbounds.pac_bayes import CertificateDisplay, PACBayesSVMEnsemble
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PACBayesSVMEnsemble(standardize=True, random_state=0).fit(X, y)
    >>> display = CertificateDisplay.from_estimator(clf, plot=False)
    >>> bool(display.vote_bound >= display.weights @ display.risks)
    True
    """

    def __init__(
        self,
        *,
        positions: np.ndarray,
        weights: np.ndarray,
        posterior: np.ndarray,
        risks: np.ndarray,
        vote_bound: float,
        risk_bound: float,
        delta: float,
        test_risks: np.ndarray | None = None,
        test_vote_risk: float | None = None,
        position_name: str = "C",
    ) -> None:
        self.positions = positions
        self.weights = weights
        self.posterior = posterior
        self.risks = risks
        self.vote_bound = vote_bound
        self.risk_bound = risk_bound
        self.delta = delta
        self.test_risks = test_risks
        self.test_vote_risk = test_vote_risk
        self.position_name = position_name

    @classmethod
    def from_estimator(
        cls,
        estimator: skbounds.PACBayesSVMEnsemble | skbounds.PACBayesEnsembleClassifier,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        plot: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Collect the numbers of a fitted ensemble, and plot them.

        Parameters
        ----------
        estimator : PACBayesSVMEnsemble or PACBayesEnsembleClassifier
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Test rows, to show test errors as well.
        y : array-like of shape (n_samples,), default=None
            Their labels.
        plot : bool, default=True
            Whether to plot.
        ax : matplotlib Axes, default=None
            Axes to plot on.

        Returns
        -------
        display : CertificateDisplay
            The numbers, plotted.
        """
        if not isinstance(estimator, CertifiedVote):
            raise TypeError(
                "estimator must be a certified ensemble of skbounds.pac_bayes; got "
                f"{type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        if (X is None) != (y is None):
            raise ValueError("X and y go together; got only one of them.")
        has_C = hasattr(estimator, "Cs_")
        test_risks = test_vote_risk = None
        if X is not None:
            y = np.asarray(y)
            members = np.arange(len(estimator.estimators_))
            codes = estimator._member_codes(estimator._check_rows(X), members)
            test_risks = np.mean(estimator.classes_[codes] != y[:, None], axis=0)
            test_vote_risk = float(np.mean(estimator.predict(X) != y))
        display = cls(
            positions=estimator.Cs_ if has_C else estimator.member_indices_,
            weights=estimator.vote_weights_,
            posterior=estimator.posterior_,
            risks=estimator.empirical_risks_,
            vote_bound=estimator.vote_bound_,
            risk_bound=estimator.risk_bound_,
            delta=estimator.bound_terms_["delta"],
            test_risks=test_risks,
            test_vote_risk=test_vote_risk,
            position_name="C" if has_C else "member",
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw risks and bounds on the left axis, weights on the right one.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        display : CertificateDisplay
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
        side = ax.twinx()
        # Weights lie behind the risks.
        ax.set_zorder(side.get_zorder() + 1)
        ax.patch.set_visible(False)
        order = np.argsort(self.positions, kind="stable")
        x = np.asarray(self.positions, dtype=np.float64)[order]
        logarithmic = self.position_name == "C"
        side.vlines(
            x, 0.0, self.weights[order], color="lightgray", lw=7, label="weight (vote)"
        )
        side.plot(
            x, self.posterior[order], "_", color="tab:orange", ms=9, mew=2,
            label="weight (Gibbs)",
        )  # fmt: skip
        ax.plot(x, self.risks[order], "o", ms=5, label="certification error (members)")
        if self.test_risks is not None:
            ax.plot(x, self.test_risks[order], "kx", label="test error (members)")
        lines = (
            (self.vote_bound, "-", "tab:red", "bound (vote)"),
            (self.risk_bound, "--", "tab:orange", "bound (Gibbs)"),
            (self.test_vote_risk, ":", "black", "test error (vote)"),
        )
        for value, style, colour, label in lines:
            if value is not None and np.isfinite(value):
                ax.axhline(value, ls=style, color=colour, label=label)
        if logarithmic:
            ax.set_xscale("log")
        ax.set_xlabel(self.position_name)
        ax.set_ylabel(f"risk (bounds hold with probability {1.0 - self.delta:.3g})")
        side.set_ylabel("weight")
        ax.set_ylim(bottom=0.0)
        side.set_ylim(bottom=0.0, top=2.0 * max(np.max(self.weights), 1e-12))
        handles, labels = ax.get_legend_handles_labels()
        more, more_labels = side.get_legend_handles_labels()
        ax.legend(handles + more, labels + more_labels, fontsize="small")
        self.ax_, self.weight_ax_, self.figure_ = ax, side, ax.figure
        return self
