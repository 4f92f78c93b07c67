"""An alarm that a certificate has ceased to hold, at any time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln
from scipy.stats import beta

from skbounds._labels import check_labels
from skbounds._states import State, reads_state, refuse
from skbounds._typing import MatrixLike

# Below this the tail of a beta law is not computed to many digits any more.
_LEAST_TAIL = 1e-250


def log_mixture_evalue(n_errors, n_seen, bound):
    r"""Return the log of the evidence that errors are more frequent than a bound.

    The likelihood ratio of Bernoulli errors with probability p against `bound`,
    averaged over p uniform on (bound, 1):

    .. math:: \frac{\int_b^1 p^s (1-p)^{t-s} dp}{(1-b) b^s (1-b)^{t-s}}.

    Each ratio is the wealth of bets 1 + lambda (x - b) with lambda >= 0, so that the
    mixture is a supermartingale whenever the conditional probability of each error is
    at most `bound`.

    Parameters
    ----------
    n_errors, n_seen : ndarray of int
        Numbers s and t.
    bound : float
        In (0, 1).
    """
    s, t = np.broadcast_arrays(
        np.asarray(n_errors, dtype=float), np.asarray(n_seen, dtype=float)
    )
    rest = t - s
    above = beta.sf(bound, s + 1.0, rest + 1.0)
    null = s * np.log(bound) + rest * np.log1p(-bound)
    with np.errstate(divide="ignore"):
        log_integral = betaln(s + 1.0, rest + 1.0) + np.log(above) - null
    far = np.asarray(above < _LEAST_TAIL)
    if far.any():
        log_integral = np.where(
            far, _log_integral_far_above(s, rest, bound), log_integral
        )
    return log_integral - np.log1p(-bound)


def _log_integral_far_above(s, rest, bound):
    """Return the log of the integral where few errors make it fall off from the bound.

    By Gauss-Laguerre quadrature in units of the slope at the bound.
    """
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    slope = np.maximum(rest / (1.0 - bound) - s / bound, 1e-300)[..., None]
    p = bound + nodes / slope
    inside = p < 1.0
    p = np.where(inside, p, bound)
    log_ratio = s[..., None] * np.log(p / bound) + rest[..., None] * np.log(
        (1.0 - p) / (1.0 - bound)
    )
    terms = np.where(inside, np.exp(np.minimum(log_ratio + nodes, 0.0)), 0.0)
    with np.errstate(divide="ignore"):
        return np.log(terms @ weights) - np.log(slope[..., 0])


class VoteMonitor:
    """Watch a certified vote in use, and say when its certificate has ceased to hold.

    Labels that become known after the fit are compared with the predictions, row by
    row; the evidence that errors are more frequent than the certified bound may be
    looked at after every row. If the conditional probability of an error is at most the
    bound at every row, whatever has happened before, an alarm is raised with
    probability at most `alpha`, ever.

    Made by the `monitor` method of a certified ensemble.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    ensemble : estimator
        Fitted classifier.
    bound : float
        Bound, in (0, 1), on the probability of an error.
    alpha : float, default=0.05
        Probability of a false alarm, in (0, 1).

    Attributes
    ----------
    alarm_ : bool
        Whether the evidence has reached ``1 / alpha`` at some row.
    log_evalue_ : float
        Log of the evidence now; above ``log(1 / alpha)`` there is an alarm.
    n_seen_ : int
        Number of rows.
    n_errors_ : int
        Errors among them.

    See Also
    --------
    PACBayesSVMEnsemble : Has a certificate to be watched.

    Notes
    -----
    The bound itself fails with probability `delta` over the certification rows, so
    that over fit and use together false alarms have probability at most
    ``alpha + delta``. After a change the number of rows to an alarm is about
    ``log(1 / alpha)`` over the divergence of the new error from the bound.

    References
    ----------
    .. [1] I. Waudby-Smith, A. Ramdas (2024). "Estimating means of bounded random
       variables by betting". JRSS B 86.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbounds.pac_bayes import PACBayesSVMEnsemble
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PACBayesSVMEnsemble(standardize=True, random_state=0)
    >>> watch = clf.fit(X[:400], y[:400]).monitor(alpha=0.05)
    >>> watch.update(X[400:], y[400:]).alarm_
    False
    >>> watch.update(X[400:], 1 - y[400:]).alarm_
    True
    """

    def __init__(self, ensemble: Any, bound: float, alpha: float = 0.05) -> None:
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie in (0, 1); got {alpha!r}.")
        if not 0.0 < bound < 1.0:
            raise ValueError(
                "There is nothing to watch without a bound in (0, 1) on the error; got "
                f"{bound!r}."
            )
        self.ensemble = ensemble
        self.bound = float(bound)
        self.alpha = float(alpha)
        self.n_seen_ = self.n_errors_ = 0
        self.log_evalue_ = 0.0
        self.alarm_ = False

    def update(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Compare predictions with labels, one row after the other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, not used for the fit, in the order in which they came.
        y : array-like of shape (n_samples,)
            Their labels; unknown ones count as errors.

        Returns
        -------
        self : object
            The monitor.
        """
        y = check_labels(y, known=True)
        predicted = self.ensemble.predict(X)
        if y.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}; got {y.shape}.")
        wrong = np.asarray(predicted != y)
        errors = self.n_errors_ + np.cumsum(wrong)
        seen = self.n_seen_ + np.arange(1, len(wrong) + 1)
        evidence = log_mixture_evalue(errors, seen, self.bound)
        self.n_errors_, self.n_seen_ = int(errors[-1]), int(seen[-1])
        self.log_evalue_ = float(evidence[-1])
        self.alarm_ = self.alarm_ or bool(evidence.max() >= -np.log(self.alpha))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the state as a dict of plain numbers.

        Returns
        -------
        state : dict
            To be written as JSON, for example.
        """
        return {
            "bound": self.bound,
            "alpha": self.alpha,
            "n_seen": self.n_seen_,
            "n_errors": self.n_errors_,
            "alarm": self.alarm_,
        }

    @classmethod
    @reads_state
    def from_dict(cls, state: dict[str, Any], ensemble: Any) -> Self:
        """Return a monitor that goes on where another stopped.

        Parameters
        ----------
        state : dict
            From `to_dict`.
        ensemble : estimator
            The fitted classifier that was watched.

        Returns
        -------
        monitor : VoteMonitor
            The monitor.

        Raises
        ------
        ValueError
            For what is no state, or cannot be one: its values must go together.
        """
        given = State(state)
        monitor = cls(ensemble, given.number("bound"), given.number("alpha"))
        seen = given.count("n_seen")
        errors = given.count("n_errors", most=seen)
        monitor.n_seen_, monitor.n_errors_ = seen, errors
        monitor.log_evalue_ = float(log_mixture_evalue(errors, seen, monitor.bound))
        # There is none without errors, and none is taken back.
        alarm, now = given.flag("alarm"), monitor.log_evalue_ >= -np.log(monitor.alpha)
        if (alarm and not errors) or (now and not alarm):
            refuse(
                "'alarm'", alarm,
                f"{now} after {errors} errors of {seen}, at a log of the evidence of "
                f"{monitor.log_evalue_:.3g}",
            )  # fmt: skip
        monitor.alarm_ = alarm
        return monitor

    def __repr__(self):
        return (
            f"VoteMonitor(bound={self.bound:.4g}, alpha={self.alpha:g}, "
            f"n_seen_={self.n_seen_}, n_errors_={self.n_errors_}, "
            f"alarm_={self.alarm_})"
        )
