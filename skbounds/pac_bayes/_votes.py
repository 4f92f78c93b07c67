"""What all certified ensembles do once their members are fitted."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
)

from skbounds._base import KnowsItsError, SkboundsEstimator, warn_user
from skbounds._labels import check_labels, code_groups, code_labels
from skbounds._sklearn_compat import num_samples
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import validate_data
from skbounds.pac_bayes._bounds import check_delta
from skbounds.pac_bayes._calibration import (
    lead,
    ranked_shares,
    side_decision,
    side_probability,
    smoothed_shares,
)
from skbounds.pac_bayes._monitor import VoteMonitor
from skbounds.pac_bayes._sample import make_sample
from skbounds.pac_bayes._stacking import plurality, vote_shares
from skbounds.pac_bayes._tails import hoeffding_bentkus_limit, tail_limit

# Below this the bounds say little; the user should know why.
_FEW_ROWS = 30


def check_together(X_cert, y_cert) -> None:
    """Refuse one of the two without the other."""
    if (X_cert is None) != (y_cert is None):
        raise ValueError("X_cert and y_cert go together; got only one of them.")


class CertifiedVote(KnowsItsError, ClassifierMixin, SkboundsEstimator):
    """Predictions and bounds of a weighted vote.

    A subclass calls `_set_classes`, `_set_bounds`, `_set_trained` and `_set_voters`.
    """

    @abstractmethod
    def _member_codes(self, X, members):
        """Return class codes predicted by the given members (n_rows, n_chosen)."""

    @abstractmethod
    def _codes_and_average(self, X, members, weights):
        """Return `_member_codes`, and the members' weighted mean decisions.

        The latter with a column per trained class, or one column for two of them; None
        where members' decisions cannot be compared.
        """

    def _knowledge(self):
        if not self.certified_:
            return "not certified: refitted on the certification rows"
        if self.vote_bound_ >= 1.0:
            return "certifies nothing: too few rows, or too many errors"
        what = "of new rows are wrong"
        if self._evidence_.is_grouped:
            what = "is the mean error rate of new groups"
        return (
            f"with probability {1.0 - self._params_['delta']:g} at most "
            f"{self.vote_bound_:.3g} {what}"
        )

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

    def _shares_and_average(self, X):
        X = self._check_rows(X)
        voters = np.flatnonzero(self.vote_weights_)
        weights = self.vote_weights_[voters]
        codes, average = self._codes_and_average(X, voters, weights)
        return vote_shares(codes, weights, len(self.classes_)), average

    @property
    def _trained_codes(self):
        return code_labels(self.trained_classes_, self.classes_)

    def predict(self, X: MatrixLike) -> np.ndarray:
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

    def vote_shares(self, X: MatrixLike) -> np.ndarray:
        """Return each class's share of the vote.

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

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return probabilities of the classes.

        The members' mean decision values, calibrated on rows held out in the inner
        folds (by Platt's method, for several classes by one temperature), and moved to
        the side of the vote where they contradict it, so that `predict` has the largest
        probability. Where there is nothing to calibrate on, the shares of the vote, as
        if seen on at most 20 rows. They are not certified; with ``posterior="prior"``
        no certification row entered them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. A class that no training row had
            gets a little of every row.
        """
        check_is_fitted(self)
        if self._calibration_ is None:
            shares, average = self._shares(X), None
        else:
            shares, average = self._shares_and_average(X)
        trained = self._trained_codes
        part, voted = shares[:, trained], plurality(shares)
        if average is None or len(trained) == 1:
            proba = smoothed_shares(part / part.sum(axis=1, keepdims=True),
                                    self._n_voting_rows_)  # fmt: skip
        elif len(trained) == 2:
            one = self._calibration_(average)[:, 1]
            one = side_probability(one, voted == trained[1])
            proba = np.column_stack([1.0 - one, one])
        else:
            proba = self._calibration_(average)
            proba = lead(proba, code_labels(voted, trained))
            proba /= proba.sum(axis=1, keepdims=True)
        if len(trained) == len(self.classes_):
            return proba
        n_classes = len(self.classes_)
        result = np.zeros((len(proba), n_classes))
        result[:, trained] = proba
        share = 1.0 / (self._n_voting_rows_ + n_classes)
        return (1.0 - share) * result + share / n_classes

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return confidence scores that agree with the vote.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes the members' mean decision value, positive exactly where
            ``classes_[1]`` is predicted: what is on the wrong side of 0 is moved next
            to it. With more, the shares of the vote, refined by mean decisions where
            they are equal. The shares alone where members have no decisions.
        """
        shares, average = self._shares_and_average(X)
        voted = plurality(shares)
        if shares.shape[1] == 2:
            if average is None:
                return shares[:, 1] - shares[:, 0]
            if len(self.trained_classes_) == 1:
                sign = 1.0 if self._trained_codes[0] == 1 else -1.0
                return sign * average[:, 0]
            return side_decision(average[:, 0], voted == 1)
        if average is None:
            return shares
        return ranked_shares(shares, self._spread(average), voted)

    def _spread(self, average):
        """Return scores with a column for each class, the least for unknown ones."""
        trained = self._trained_codes
        if average.shape[1] == 1:
            columns = [-average, average] if len(trained) == 2 else [average]
            average = np.hstack(columns)
        result = np.empty((len(average), len(self.classes_)))
        result[:] = average.min(axis=1, keepdims=True) - 1.0
        result[:, trained] = average
        return result

    def predict_randomized(
        self, X: MatrixLike, random_state: RandomState = None
    ) -> np.ndarray:
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
        drawn = rng.choice(len(voters), size=num_samples(X), p=weights / weights.sum())
        codes = self._member_codes(X, voters)
        return self.classes_[codes[np.arange(len(codes)), drawn]]

    def gibbs_error(self, X: MatrixLike, y: ArrayLike) -> float:
        """Return the expected error of `predict_randomized` on given rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels; unknown ones count as errors.

        Returns
        -------
        error : float
            Mean over rows and over draws of a member: no draws are made.
        """
        X = self._check_rows(X)
        voters = np.flatnonzero(self.posterior_)
        weights = self.posterior_[voters]
        y = check_labels(y, known=True)
        check_consistent_length(X, y)
        truth = code_labels(y, self.classes_)
        wrong = self._member_codes(X, voters) != truth[:, None]
        return float(np.mean(wrong @ (weights / weights.sum())))

    def risk_bound(self, delta: float) -> float:
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

    def vote_bound(self, delta: float) -> float:
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

    def class_bounds(
        self, delta: float | None = None, simultaneous: bool = False
    ) -> dict[str, Any]:
        """Bound the vote's errors class by class.

        Exact binomial tails: given how many certification rows belong to a class, or
        are predicted to, the number of errors among them is binomial.

        Parameters
        ----------
        delta : float, default=None
            Probability, in (0, 1), that a bound may fail. None: the parameter `delta`.
        simultaneous : bool, default=False
            Whether all bounds are to hold together with probability ``1 - delta``.

        Returns
        -------
        bounds : dict
            ``"recall_error"``: with probability ``1 - delta`` a new row of the class is
            predicted to be of another with at most this probability;
            ``"precision_error"``: a new row predicted to be of the class is of another.
            Arrays of shape (n_classes,), 1 for classes without rows. ``"n_true"``,
            ``"n_predicted"``: numbers of certification rows. ``"delta"``: the level of
            each.
        """
        evidence, delta = self._fixed_evidence("class_bounds", delta)
        if evidence.is_grouped:
            raise ValueError(
                "class_bounds needs independent rows: how many of a class's rows a "
                "group has is not independent of how many are mistaken. cost_bound "
                "holds with groups, too."
            )
        codes = np.arange(len(self.classes_))
        level = delta / (2.0 * len(codes)) if simultaneous else delta
        is_true = evidence.truth[:, None] == codes
        is_voted = evidence.voted[:, None] == codes
        n_true, n_voted = is_true.sum(axis=0), is_voted.sum(axis=0)
        right = (is_true & is_voted).sum(axis=0)
        limit = lambda n: np.array(
            [float(tail_limit(m - k, m, level)) for k, m in zip(right, n, strict=True)]
        )
        return {
            "recall_error": limit(n_true),
            "precision_error": limit(n_voted),
            "n_true": n_true,
            "n_predicted": n_voted,
            "delta": level,
        }

    def cost_bound(self, costs: ArrayLike, delta: float | None = None) -> float:
        """Bound the vote's expected cost on new rows.

        The exact binomial tail where there is one positive cost only, and otherwise the
        Hoeffding-Bentkus limit for a mean of bounded variables.

        Parameters
        ----------
        costs : array-like of shape (n_classes, n_classes)
            ``costs[i, j]``, non-negative, is what it costs to predict ``classes_[j]``
            where ``classes_[i]`` is true. Rows with other labels cost the maximum.
        delta : float, default=None
            Probability, in (0, 1), that the bound may fail. None: the parameter
            `delta`.

        Returns
        -------
        bound : float
            With probability ``1 - delta`` the expected cost is at most this.
        """
        evidence, delta = self._fixed_evidence("cost_bound", delta)
        costs, k = np.asarray(costs, dtype=np.float64), len(self.classes_)
        if costs.shape != (k, k) or not (np.isfinite(costs) & (costs >= 0.0)).all():
            raise ValueError(
                f"costs must be finite and non-negative, of shape {(k, k)}; got "
                f"{costs.tolist()!r}."
            )
        largest = costs.max()
        if largest == 0.0:
            return 0.0
        paid = np.where(
            evidence.truth < 0, largest, costs[evidence.truth, evidence.voted]
        )
        sample = evidence.sample
        if np.isin(costs, (0.0, largest)).all() and not sample.grouped:
            return float(largest * sample.limit(paid > 0.0, delta))
        mean = float(sample.mean(paid / largest))
        return float(largest * hoeffding_bentkus_limit(mean, sample.size, delta))

    def _fixed_evidence(self, name, delta):
        """Return the evidence of a vote that was fixed before it, and the level."""
        check_is_fitted(self)
        delta = check_delta(self.delta if delta is None else delta)
        if not self._evidence_.is_fixed:
            raise ValueError(
                f"{name} needs a vote whose weights did not see the certification "
                "rows: scheme='holdout' and posterior='prior'. "
                "certificate(X_cal, y_cal) takes fresh rows."
            )
        if not self.certified_:
            raise ValueError(
                f"{name} is about the members that were certified; refit=True has "
                "replaced them."
            )
        return self._evidence_, delta

    def monitor(self, alpha: float = 0.05) -> VoteMonitor:
        """Return a monitor that raises an alarm when the certificate fails in use.

        Parameters
        ----------
        alpha : float, default=0.05
            Probability of a false alarm, in (0, 1), given that the bound holds.

        Returns
        -------
        monitor : VoteMonitor
            To be updated with rows whose labels become known.
        """
        check_is_fitted(self)
        if self._evidence_.is_grouped:
            raise ValueError(
                "monitor counts independent rows, and the ensemble was fitted with "
                "groups: certificate(X_cal, y_cal, groups=...) certifies fresh ones."
            )
        return VoteMonitor(self, self.vote_bound_, alpha)

    def certificate(
        self,
        X_cal: MatrixLike,
        y_cal: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Certify the vote on fresh rows by the exact binomial tail.

        Valid for any fitted vote, also after ``refit=True``, if the rows were used for
        nothing before.

        Parameters
        ----------
        X_cal : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that no part of the fit has seen.
        y_cal : array-like of shape (n_samples,)
            Their labels. A label not in `classes_` counts as a mistake.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are not independent of each other. Bounded is then the
            mean over groups of a group's error rate, as in `fit`.
        delta : float, default=None
            Probability, in (0, 1), that the bound may fail. None: the parameter
            `delta`.

        Returns
        -------
        certificate : dict
            ``"bound"``: the risk of `predict` is at most this; ``"lower"``: a lower
            limit, at the same level on its own; ``"estimate"``: the error rate;
            ``"n"``: number of rows, or of groups; ``"delta"``, ``"method"``.
        """
        delta = check_delta(self.delta if delta is None else delta)
        y_cal = check_labels(y_cal, "y_cal", known=True)
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
        if groups is not None:
            check_consistent_length(X_cal, groups)
            groups = code_groups(groups)
        sample, wrong = make_sample(len(y_cal), groups), predicted != y_cal
        return {
            "bound": sample.limit(wrong, delta),
            "lower": 1.0 - sample.limit(~wrong, delta),
            "estimate": float(sample.mean(wrong)),
            "n": sample.size,
            "delta": delta,
            "method": "Chernoff, by groups" if sample.grouped else "Clopper-Pearson",
        }

    def _set_classes(self, classes):
        """Set `classes_`; one class is nothing to vote about."""
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; got only one class,"
                f" {classes.tolist()[0]!r}."
            )
        self.classes_ = classes

    def _check_groups(self, groups, X, X_cert):
        """Return the rows' numbers of groups, or None where there are none."""
        if groups is None:
            return None
        check_consistent_length(X, groups)
        scheme = getattr(self, "scheme", "holdout")
        if X_cert is not None or self.tail == "randomized" or scheme != "holdout":
            raise ValueError(
                "groups go with scheme='holdout', tail='exact' and no X_cert, of whose "
                f"rows nothing says which belong together; got scheme={scheme!r}, "
                f"tail={self.tail!r} and X_cert "
                f"{'not given' if X_cert is None else 'given'}. "
                "certificate(X_cal, y_cal, groups=...) certifies on fresh rows."
            )
        return code_groups(groups)

    def _certification_codes(self, y_cert):
        """Return the classes of certification rows, -1 for labels that are none."""
        y_cert = check_labels(y_cert, "y_cert", known=True)
        codes = code_labels(y_cert, self.classes_)
        if len(codes) and (codes < 0).all():
            raise ValueError(
                f"y_cert has none of the labels of y, {self.classes_.tolist()!r}; got "
                f"labels like {y_cert[:1].tolist()!r}."
            )
        return codes

    def _set_bounds(self, evidence, *, level, certified=True):
        """Set the fitted attributes that say what is known about the risk."""
        self._evidence_ = evidence
        self.prior_, self.posterior_ = evidence.prior, evidence.posterior
        self.empirical_risks_ = evidence.risks
        self.gibbs_risk_ = evidence.gibbs_risk
        self.n_certification_ = evidence.n_units
        terms = evidence.terms(level)
        self.bound_terms_ = {"delta": level, **terms}
        risk, vote = evidence.risk_bound(level), evidence.vote_bound(level)
        members = evidence.member_bounds(level)
        self.best_index_ = int(np.argmin(members))
        own = evidence.kind in ("prior", "tandem")
        by_itself = own and vote <= evidence.vote_bound_by_gibbs(level)
        self.certified_object_ = "vote" if by_itself else "gibbs"
        self.certified_ = certified
        bounds = (risk, vote, float(np.min(members)))
        self.risk_bound_, self.vote_bound_, self.occam_bound_ = (
            min(1.0, bound) if certified else float("nan") for bound in bounds
        )
        self._warn_of_weak_bounds()

    def _set_trained(self, present, unseen_limit, n_rows):
        """Say which classes were there to be learnt, and how rare others are.

        Parameters
        ----------
        present : ndarray of int
            Codes of the classes that the training rows have.
        unseen_limit : float
            How often, at most, a row has another class than those of the rows that
            train.
        n_rows : int
            Number of rows behind a share of the vote.
        """
        self.trained_classes_ = self.classes_[present]
        self._n_voting_rows_ = int(n_rows)
        self.unseen_class_bound_ = float(unseen_limit)
        if len(present) < len(self.classes_):
            unseen = np.delete(self.classes_, present).tolist()
            warn_user(
                f"No training row has the class(es) {unseen!r}: they are never "
                "predicted, and count as errors in the bounds. The split must not "
                "depend on the labels, so it is not redrawn."
            )

    def _set_voters(self, calibration):
        """Set the weights that vote, and what was calibrated for the prior's."""
        by_prior = self.posterior == "prior"
        self.vote_weights_ = self.prior_ if by_prior else self.posterior_
        self._calibration_ = calibration if by_prior else None

    def _warn_of_weak_bounds(self):
        m = self.n_certification_
        units = "groups" if self._evidence_.is_grouped else "rows"
        if not self.certified_:
            warn_user(
                "refit=True trains on the certification rows, which voids the bounds; "
                "they are nan (bound_terms_ keeps those of the members before). "
                "certificate(X_cal, y_cal) certifies on fresh rows."
            )
        elif self.risk_bound_ >= 1.0 or self.vote_bound_ >= 1.0:
            vacuous = "risk_bound_" if self.risk_bound_ >= 1.0 else "vote_bound_"
            warn_user(
                f"{vacuous} is vacuous (1): {m} certification {units} with a Gibbs "
                f"risk of {self.gibbs_risk_:.2g} prove nothing at the level "
                f"{self.bound_terms_['delta']:.3g}. More certification rows, a larger "
                "delta, or a vote with the prior's weights help."
            )
        elif m < _FEW_ROWS:
            warn_user(
                f"Only {m} certification {units}: the bounds are far above the risk. A "
                "larger cert_size or more data help."
            )
