"""What an estimate says, and a comparison of two of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skbounds.bolstering._parts import _uncertainty as uncertainty


@dataclass(frozen=True)
class BolsteredEstimate:
    """An error estimate and what it is made of.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    error : float
        The estimate, in units of the loss; of a score, minus its mean over the parts.
    resubstitution : float
        Mean loss at the rows that the estimator was fitted on; nan where no fit on all
        rows was needed.
    increment : float
        ``error - resubstitution``.
    standard_error : float
        For ``method="auto"`` that of the error on held-out rows, nan for scores and
        with groups; otherwise the integration error (no sampling variance is known
        then).
    integration_error : float
        Standard error of the numerical integration; 0 for closed forms.
    components : dict
        Every term that went into the estimate, by name.
    method : str
        The method that was used.
    kernel : str
        The kernel that was used.
    loss : str
        Name of the loss.
    n_fits : int
        Number of times that a clone of the estimator was fitted.
    n_evaluations : int
        Number of rows predicted.
    losses : ndarray of shape (n_samples,), default=None
        For ``method="auto"`` the mean loss of each row over the fits without it (rows
        of weight 0 left out); None for scores and the other methods.
    weight : ndarray of shape (n_samples,), default=None
        The rows' weights.
    plan : str, default=None
        For ``method="auto"`` a text that is the same for estimates from the same parts.
    is_proportion : bool, default=False
        Whether the loss is the 0-1 loss.
    predictions : list of tuple, default=None
        On request, for each fit the numbers of the rows it was without, and a dict of
        what it predicts for them by name of the method.

    Attributes
    ----------
    hold_out : float
        Mean loss on held-out rows, before the correction for the smaller fits; nan for
        the methods of one fit. What `BolsteredSearchCV` ranks by.
    no_information : float
        For 0-1 loss the error of predictions of these frequencies that have nothing to
        do with the labels; nan for other losses.
    relative_error : float
        ``hold_out / no_information``: 1 if nothing was learnt.

    See Also
    --------
    BolsteredScorer : Makes it.
    compare_bolstered : Compares two estimators on the same parts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbounds.bolstering import BolsteredScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> found = BolsteredScorer().estimate(model, X, y)
    >>> found.resubstitution < found.error <= found.hold_out
    True
    >>> low, high = found.interval(0.9)
    >>> low < found.error < high
    True
    """

    error: float
    resubstitution: float
    increment: float
    standard_error: float
    integration_error: float
    components: dict = field(repr=False)
    method: str
    kernel: str
    loss: str
    n_fits: int
    n_evaluations: int
    losses: np.ndarray | None = field(default=None, repr=False, compare=False)
    weight: np.ndarray | None = field(default=None, repr=False, compare=False)
    plan: str | None = field(default=None, repr=False)
    is_proportion: bool = field(default=False, repr=False)
    predictions: list | None = field(default=None, repr=False, compare=False)

    @property
    def hold_out(self) -> float:
        """Mean loss on held-out rows, before the correction."""
        return self.components.get("hold_out", np.nan)

    @property
    def no_information(self) -> float:
        """Error of predictions that have nothing to do with the labels."""
        return self.components.get("no_information", np.nan)

    @property
    def relative_error(self) -> float:
        """Share of the error that is there without any information."""
        return self.components.get("relative_error", np.nan)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return limits for the error of the estimator fitted on all rows.

        For 0-1 loss Wilson's interval around the estimate, as if of n / 1.6 rows, which
        covered the true error in 86 to 97 of 100 samples at the nominal 90 % where it
        was tried. For other losses a normal interval, which is not calibrated.

        Parameters
        ----------
        level : float, default=0.9
            Confidence, in (0, 1).

        Returns
        -------
        low, high : float
            The limits.
        """
        self._check_variance()
        if self.is_proportion:
            n = uncertainty.effective_size(self.weight)
            return uncertainty.wilson_interval(self.error, n, level)
        return uncertainty.normal_interval(self.error, self.standard_error, level)

    def _check_variance(self):
        if self.losses is None:
            what = "a score" if self.loss_is_score else f"method={self.method!r}"
            raise ValueError(
                f"There is no interval for {what}: its variance is not known. Losses "
                "with method='auto' have intervals."
            )
        if np.isnan(self.standard_error):
            raise ValueError(
                "There is no interval where rows come in groups: rows of a group are "
                "not independent, and the variance of a few groups is not known."
            )

    @property
    def loss_is_score(self) -> bool:
        """Whether what is estimated is no mean of losses."""
        return self.plan is not None and self.losses is None


@dataclass(frozen=True)
class BolsteredComparison:
    """The difference of two estimators' errors.

    Made by `compare_bolstered`.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    difference : float
        Error of the first less that of the second: negative if the first is better.
    standard_error : float
        Of the difference, from the rows' differences.
    dof : float
        Degrees of freedom of Student's law for it.
    p_value : float
        Two-sided, of the hypothesis that the errors are equal.
    estimate_a, estimate_b : BolsteredEstimate
        The estimates of both.

    See Also
    --------
    compare_bolstered : Makes it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skbounds.bolstering import compare_bolstered
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare_bolstered(GaussianNB(), DummyClassifier(), X[::2], y[::2])
    >>> found.difference < 0.0 and found.p_value < 0.05
    True
    """

    difference: float
    standard_error: float
    dof: float
    p_value: float
    estimate_a: BolsteredEstimate = field(repr=False)
    estimate_b: BolsteredEstimate = field(repr=False)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return limits for the difference of the errors.

        Parameters
        ----------
        level : float, default=0.9
            Confidence, in (0, 1).

        Returns
        -------
        low, high : float
            The limits: Student's, with a variance enlarged by 2.5 for the overlap of
            the parts.
        """
        return uncertainty.student_interval(
            self.difference, self.standard_error, self.dof, level
        )


def compare_estimates(a, b) -> BolsteredComparison:
    """Compare two estimates from the same parts of the same rows."""
    for found in (a, b):
        found._check_variance()
    same = a.plan == b.plan and a.loss == b.loss and len(a.losses) == len(b.losses)
    same &= a.is_proportion == b.is_proportion
    if not same:
        raise ValueError(
            "Estimates can be compared if they are of the same loss and from fits on "
            f"the same parts of the same rows; got {a.loss!r} by {a.method!r} and "
            f"{b.loss!r} by {b.method!r}."
        )
    difference = a.error - b.error
    gaps = a.losses - b.losses
    # Keeps the variance of counts from vanishing; other losses have units.
    least = 1.0 if a.is_proportion else 0.0
    error, dof, p_value = uncertainty.paired(difference, gaps, a.weight, least)
    return BolsteredComparison(difference, error, dof, p_value, a, b)
