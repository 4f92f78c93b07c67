"""What all certified ensembles do once their members are fitted."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from skbounds._base import SkboundsEstimator, warn_user
from skbounds.pac_bayes._bounds import check_delta, tail_limit
from skbounds.pac_bayes._certify import plurality, vote_shares

# Below this the bounds say little; the user should know why.
_FEW_ROWS = 30


def encode(labels, classes) -> np.ndarray:
    """Return class codes, -1 for unknown labels."""
    labels = np.asarray(labels)
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[codes] == labels, codes, -1)


def check_together(X_cert, y_cert) -> None:
    """Refuse one of the two without the other."""
    if (X_cert is None) != (y_cert is None):
        raise ValueError("X_cert and y_cert go together; got only one of them.")


class CertifiedVote(ClassifierMixin, SkboundsEstimator):
    """Predictions and bounds of a weighted vote.

    A subclass sets ``classes_, vote_weights_, posterior_`` and calls `_set_bounds`.
    """

    @abstractmethod
    def _member_codes(self, X, members):
        """Return class codes predicted by the given members (n_rows, n_chosen)."""

    # A certified ensemble may take rows that the members check on their own.
    def _check_rows(self, X):
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False
        )

    def _shares(self, X):
        X = self._check_rows(X)
        voters = np.flatnonzero(self.vote_weights_)
        codes = self._member_codes(X, voters)
        return vote_shares(codes, self.vote_weights_[voters], len(self.classes_))

    def predict(self, X):
        """Predict classes by the weighted vote, ties to the smaller label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels. `vote_bound_` is about them.
        """
        shares = self._shares(X)
        return self.classes_[plurality(shares)]

    def predict_proba(self, X):
        """Return each class's share of the vote; not a calibrated probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            Weight of the members that predict the class, in the order of `classes_`.
        """
        shares = self._shares(X)
        return shares / shares.sum(axis=1, keepdims=True)

    def decision_function(self, X):
        """Return the shares of the vote as confidence scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The shares; with two classes, the share of ``classes_[1]`` less that of
            ``classes_[0]``.
        """
        shares = self._shares(X)
        return shares[:, 1] - shares[:, 0] if shares.shape[1] == 2 else shares

    def predict_randomized(self, X, random_state=None):
        """Predict with the Gibbs classifier: a member drawn for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels. `risk_bound_` is about them.
        """
        X = self._check_rows(X)
        rng = check_random_state(random_state)
        voters = np.flatnonzero(self.posterior_)
        weights = self.posterior_[voters]
        drawn = rng.choice(len(voters), size=X.shape[0], p=weights / weights.sum())
        codes = self._member_codes(X, voters)
        return self.classes_[codes[np.arange(len(codes)), drawn]]

    def risk_bound(self, delta):
        """Bound the risk of the Gibbs classifier at another level.

        Parameters
        ----------
        delta : float
            Probability, in (0, 1), that the bound may fail.

        Returns
        -------
        bound : float
            As `risk_bound_`, for the same weights; nan after ``refit=True``.
        """
        return self._bound_at("risk_bound", delta)

    def vote_bound(self, delta):
        """Bound the risk of the vote at another level.

        Parameters
        ----------
        delta : float
            Probability, in (0, 1), that the bound may fail.

        Returns
        -------
        bound : float
            As `vote_bound_`, for the same weights; nan after ``refit=True``.
        """
        return self._bound_at("vote_bound", delta)

    def _bound_at(self, name, delta):
        check_is_fitted(self)
        bound = getattr(self._evidence_, name)(check_delta(delta))
        return min(1.0, bound) if self.certified_ else float("nan")

    def certificate(self, X_cal, y_cal, *, delta=None):
        """Certify the vote on fresh rows by the exact binomial tail.

        Valid for any fitted vote, also after ``refit=True``, if the rows were used for
        nothing before.

        Parameters
        ----------
        X_cal : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that no part of the fit has seen.
        y_cal : array-like of shape (n_samples,)
            Their labels. A label not in `classes_` counts as a mistake.
        delta : float, default=None
            Probability, in (0, 1), that the bound may fail. None: the parameter
            `delta`.

        Returns
        -------
        certificate : dict
            ``"bound"``: the risk of `predict` is at most this; ``"lower"``: a lower
            limit, at the same level on its own; ``"estimate"``: the error rate;
            ``"n"``, ``"delta"``, ``"method"``.
        """
        delta = check_delta(self.delta if delta is None else delta)
        y_cal = column_or_1d(y_cal)
        predicted = self.predict(X_cal)
        if not np.isin(y_cal, self.classes_).any():
            raise ValueError(
                f"y_cal has none of the labels {self.classes_.tolist()!r}; got labels "
                f"like {y_cal[:1].tolist()!r}."
            )
        if y_cal.shape != predicted.shape:
            raise ValueError(
                f"y_cal must have shape {predicted.shape}; got {y_cal.shape}."
            )
        n, errors = len(y_cal), int(np.sum(predicted != y_cal))
        return {
            "bound": float(tail_limit(errors, n, delta)),
            "lower": 1.0 - float(tail_limit(n - errors, n, delta)),
            "estimate": errors / n,
            "n": n,
            "delta": delta,
            "method": "Clopper-Pearson",
        }

    def _set_classes(self, classes):
        """Set `classes_`; one class is nothing to vote about."""
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; got only one class,"
                f" {classes.tolist()[0]!r}."
            )
        self.classes_ = classes

    def _certification_codes(self, y_cert):
        """Return the classes of certification rows, all of which must be known."""
        y_cert = column_or_1d(y_cert)
        codes = encode(y_cert, self.classes_)
        if (codes < 0).any():
            unknown = np.unique(y_cert[codes < 0]).tolist()
            raise ValueError(f"y_cert has labels that y has not: {unknown!r}.")
        return codes

    def _set_bounds(self, evidence, *, level, certified=True):
        """Set the fitted attributes that say what is known about the risk."""
        self._evidence_ = evidence
        self.prior_, self.posterior_ = evidence.prior, evidence.posterior
        self.empirical_risks_ = evidence.risks
        self.gibbs_risk_ = evidence.gibbs_risk
        self.n_certification_ = evidence.n_rows
        terms = evidence.terms(level, len(self.classes_))
        self.bound_terms_ = {"delta": level, **terms}
        risk, vote = evidence.risk_bound(level), evidence.vote_bound(level)
        members = evidence.member_bounds(level)
        self.best_index_ = int(np.argmin(members))
        fixed = evidence.vote_errors is not None
        by_itself = fixed and vote <= evidence.vote_bound_by_gibbs(level)
        self.certified_object_ = "vote" if by_itself else "gibbs"
        self.certified_ = certified
        bounds = (risk, vote, float(np.min(members)))
        self.risk_bound_, self.vote_bound_, self.occam_bound_ = (
            min(1.0, bound) if certified else float("nan") for bound in bounds
        )
        self._warn_of_weak_bounds()

    def _warn_of_weak_bounds(self):
        m = self.n_certification_
        if not self.certified_:
            warn_user(
                "refit=True trains on the certification rows, which voids the bounds; "
                "they are nan (bound_terms_ keeps those of the members before). "
                "certificate(X_cal, y_cal) certifies on fresh rows."
            )
        elif self.risk_bound_ >= 1.0 or self.vote_bound_ >= 1.0:
            vacuous = "risk_bound_" if self.risk_bound_ >= 1.0 else "vote_bound_"
            warn_user(
                f"{vacuous} is vacuous (1): {m} certification rows with a Gibbs risk "
                f"of {self.gibbs_risk_:.2g} prove nothing at the level "
                f"{self.bound_terms_['delta']:.3g}. More certification rows, a larger "
                "delta, or a vote with the prior's weights help."
            )
        elif m < _FEW_ROWS:
            warn_user(
                f"Only {m} certification rows: the bounds are far above the risk. A "
                "larger cert_size or more data help."
            )
