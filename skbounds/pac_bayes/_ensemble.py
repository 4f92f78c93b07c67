"""The same certificate for any list of classifiers."""

from __future__ import annotations

import itertools
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
)

from skbounds._base import fit_from_scratch, warn_user
from skbounds._callbacks import run_tasks
from skbounds._frames import is_frame, is_table, is_vector
from skbounds._labels import check_labels, code_labels, labels_to_fit
from skbounds._sklearn_compat import (
    Integral,
    Interval,
    Real,
    StrOptions,
    _fit_context,
    safe_indexing,
)
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import check_array, validate_data
from skbounds.pac_bayes._bounds import check_pair, check_probabilities
from skbounds.pac_bayes._calibration import fit_calibration
from skbounds.pac_bayes._certify import catoni_constant, weigh_members
from skbounds.pac_bayes._decisions import member_codes, member_decisions
from skbounds.pac_bayes._given_members import (
    NamedMembers,
    fit_and_hold_out,
    fit_one,
    is_frozen,
    row_keys,
    with_seeds,
)
from skbounds.pac_bayes._layout import (
    assign_folds,
    assign_group_folds,
    order_classes,
    split_groups,
    split_rows,
)
from skbounds.pac_bayes._sample import make_sample
from skbounds.pac_bayes._stacking import STACKING_ETAS, informed_prior, stacked_prior
from skbounds.pac_bayes._votes import CertifiedVote, check_together


class PACBayesEnsembleClassifier(NamedMembers, CertifiedVote):
    r"""Vote over any classifiers, with a certificate of its test error.

    A random part of the rows is set aside. On the others the members are trained and
    weighed by inner cross-validation; then the vote, a fixed classifier by now, is
    certified on the part set aside by the exact binomial tail, and the Gibbs classifier
    that draws a member for each row by a PAC-Bayes bound.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    estimators : list of classifiers or of (name, classifier)
        The members. Members in a :class:`~sklearn.frozen.FrozenEstimator` are taken as
        they are; they must not have seen the rows given to `fit`.
    cert_size : float, default=0.25
        Share of the rows (or of the groups), in (0, 1), that certify. If all members
        are frozen, all rows do.
    prior : {'stacked', 'cv', 'uniform'} or array-like, default='stacked'
        Weights fixed before the certification rows are looked at. ``'cv'``:
        proportional to exp(-`prior_eta` times the errors in inner cross-validation; of
        frozen members, on the training part). ``'stacked'``: the same with the rate,
        the smallest of ten from 0 (equal weights) to 5 whose vote errs on the rows
        held out at most half a standard error more than the best. An array, one
        weight for each member, sums to 1 and may have zeros.
    prior_eta : float, default=0.2
        How sharply weights fall with errors, with ``prior='cv'``.
    inner_cv : int, default=5
        Number of inner folds.
    posterior : {'prior', 'bound', 'tandem'}, default='prior'
        Weights of the vote: the prior's, which gives the exact tail bound; those that
        minimise the bound of the Gibbs classifier on the certification rows; or those
        that minimise the bounds from joint mistakes (tandem, and for two classes
        C-bound), of which and twice the Gibbs bound the smallest is reported, each at
        its share of `delta`.
    divergence : {'kl', 'chi2'}, default='kl'
        Divergence in the bound of the Gibbs classifier, see `pac_bayes_bound`.
    distance : {'catoni', 'linear', 'squared', 'kl', 'lambda'}, default='catoni'
        Distance in it.
    delta : float, default=0.05
        Probability, in (0, 1), that a bound may fail.
    simultaneous : bool, default=False
        Whether all bounds are to hold together with probability ``1 - delta``.
    tail : {'exact', 'randomized'}, default='exact'
        The limit of the vote with ``posterior="prior"``, see `PACBayesSVMEnsemble`.
    n_jobs : int, default=None
        Number of jobs over members and folds, by joblib: processes of this machine, or
        what ``joblib.parallel_config`` names.
    random_state : int, RandomState instance or None, default=None
        Source of the split and the folds. Members without a random state of their own
        get one drawn from it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes: all labels of y, and those that frozen members know.
    trained_classes_ : ndarray of shape (n_trained,)
        The classes that some member may predict.
    unseen_class_bound_ : float
        With probability ``1 - delta``, a new row has a class that is not among
        `trained_classes_` with at most this probability.
    eta_ : float
        The rate at which weights fall with errors; nan where they do not.
    eta_errors_ : ndarray of shape (10,)
        With ``prior="stacked"``, errors of the vote on rows held out for each rate
        tried; nan otherwise.
    estimators_ : list of classifiers
        The fitted members with prior weight. The arrays below have one entry for each.
    member_indices_ : ndarray of int of shape (n_members,)
        Their positions in `estimators`.
    vote_weights_ : ndarray of shape (n_members,)
        Weights of the vote of `predict`.
    posterior_ : ndarray of shape (n_members,)
        What `predict_randomized` draws from.
    prior_ : ndarray of shape (n_members,)
        The prior.
    cv_errors_ : ndarray of shape (n_members,)
        Errors in inner cross-validation; nan where there was none.
    empirical_risks_ : ndarray of shape (n_members,)
        Error rates on the certification rows.
    gibbs_risk_ : float
        Their mean under `posterior_`.
    risk_bound_ : float
        With probability ``1 - delta``, the risk of `predict_randomized` is at most
        this.
    vote_bound_ : float
        With probability ``1 - delta``, the risk of `predict` is at most this.
    occam_bound_ : float
        With probability ``1 - delta``, the risk of ``estimators_[best_index_]`` is at
        most this.
    best_index_ : int
        The member with the least limit of its own.
    bound_terms_ : dict
        Every bound that was computed, by name, and the level ``"delta"`` of each. Those
        called "vote" are about `predict`, those called "gibbs" about
        `predict_randomized`.
    catoni_c_ : float or None
        The constant in Catoni's bound.
    certified_object_ : {'vote', 'gibbs'}
        Which bound makes the tighter claim on what `predict` returns: the vote's own,
        or twice the bound of drawing one of its voters. The smaller of two bounds is
        valid at ``2 * delta`` unless `simultaneous`.
    certified_ : bool
        Whether the bounds hold for the fitted members.
    n_certification_ : int
        Number of certification rows, or of groups of them.
    train_indices_ : ndarray of int of shape (n_train,)
        The rows given to `fit` that train.
    certification_indices_ : ndarray of int of shape (n_certifying,)
        Those that certify; none if `X_cert` was given.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where all of them are strings.

    See Also
    --------
    PACBayesSVMEnsemble : SVMs along a path of C, much faster than as a list.
    sklearn.ensemble.VotingClassifier : The vote without a certificate.

    Notes
    -----
    Rows must be independent draws from one distribution, or `groups` of them given to
    `fit`: no time series. The split is blind to the labels and never redrawn: a class
    that it leaves without training rows is never predicted, and its rows count as
    mistakes. A member that fails to train is left out with a
    :class:`~sklearn.exceptions.FitFailedWarning`, which is harmless: the prior may
    depend on the training part. If all members are frozen, there are no inner folds:
    the prior is uniform, and Catoni's bound is the best of 20 constants, at a twentieth
    of the level each.

    References
    ----------
    .. [1] P. Sahu, N. Hemachandra. "Optimal posteriors for chi-squared divergence based
       PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors
       and cross-validation procedure".
    .. [2] J. Langford (2005). "Tutorial on practical prediction theory for
       classification". JMLR 6.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbounds.pac_bayes import PACBayesEnsembleClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PACBayesEnsembleClassifier(
    ...     [
    ...         make_pipeline(StandardScaler(), LogisticRegression()),
    ...         RandomForestClassifier(n_estimators=20),
    ...     ],
    ...     random_state=0,
    ... ).fit(X, y)
    >>> bool(clf.vote_bound_ < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimators": [list, tuple],
        "cert_size": [Interval(Real, 0.0, 1.0, closed="neither")],
        "prior": [StrOptions({"stacked", "cv", "uniform"}), "array-like"],
        "prior_eta": [Interval(Real, 0.0, None, closed="left")],
        "inner_cv": [Interval(Integral, 2, None, closed="left")],
        "posterior": [StrOptions({"prior", "bound", "tandem"})],
        "divergence": [StrOptions({"chi2", "kl"})],
        "distance": [StrOptions({"linear", "squared", "kl", "lambda", "catoni"})],
        "delta": [Interval(Real, 0.0, 1.0, closed="neither")],
        "simultaneous": ["boolean"],
        "tail": [StrOptions({"exact", "randomized"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimators: list | tuple,
        *,
        cert_size: float = 0.25,
        prior: Literal["stacked", "cv", "uniform"] | ArrayLike = "stacked",
        prior_eta: float = 0.2,
        inner_cv: int = 5,
        posterior: Literal["prior", "bound", "tandem"] = "prior",
        divergence: Literal["kl", "chi2"] = "kl",
        distance: Literal["catoni", "linear", "squared", "kl", "lambda"] = "catoni",
        delta: float = 0.05,
        simultaneous: bool = False,
        tail: Literal["exact", "randomized"] = "exact",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimators = estimators
        self.cert_size = cert_size
        self.prior = prior
        self.prior_eta = prior_eta
        self.inner_cv = inner_cv
        self.posterior = posterior
        self.divergence = divergence
        self.distance = distance
        self.delta = delta
        self.simultaneous = simultaneous
        self.tail = tail
        self.n_jobs = n_jobs
        self.random_state = random_state

    # The members are other estimators and validate what they are given.
    @_fit_context(prefer_skip_nested_validation=False)
    @fit_from_scratch
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        X_cert: MatrixLike | None = None,
        y_cert: ArrayLike | None = None,
    ) -> Self:
        """Fit the members, weigh them, and certify the vote.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, in any form that the members take.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are not independent of each other: of one person,
            batch, or day. Whole groups certify, a share `cert_size` of them, and inner
            folds keep groups together. What is certified is then the mean over groups
            of a group's error rate: of the risk on a new group, not of the share of
            mistakes among all rows.
        X_cert : {array-like, sparse matrix, dataframe}, default=None
            Rows to certify with; all of X then trains.
        y_cert : array-like of shape (n_rows,), default=None
            Their labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        check_pair(self.divergence, self.distance)
        members = self._check_members()
        X, y, given = self._check_data(X, y)
        groups = self._check_groups(groups, X, X_cert)
        frozen = np.array([isinstance(member, FrozenEstimator) for member in members])
        known = [m.classes_ for m in itertools.compress(members, frozen)]
        if X_cert is not None or not frozen.all():
            # Rows that only certify must not decide what the vote may say.
            known.append(np.unique(y))
        self._set_classes(np.unique(np.concatenate(known)))
        given_prior = None
        if not isinstance(self.prior, str):
            given_prior = check_probabilities("prior", self.prior, len(members))
        rng = check_random_state(self.random_state)
        codes = code_labels(y, self.classes_)
        train, cert, X_cert, cert_codes = self._split(
            X, codes, groups, X_cert, y_cert, frozen.all(), rng
        )
        keys = row_keys(X, codes, train, cert if groups is None else cert[:0])[train]
        # Whatever the order in which the rows came, and yet in no order: members may
        # have folds of their own.
        train = rng.permutation(train[np.lexsort((codes[train], keys))])
        trained = [
            code_labels(m.classes_, self.classes_) for m in members if is_frozen(m)
        ]
        learnt = np.unique(codes[train])
        if not frozen.all():
            trained.append(learnt)
        present = np.unique(np.concatenate(trained))
        members = with_seeds(members, rng.randint(np.iinfo(np.int32).max))
        if len(learnt) == 1 and not frozen.any():
            # Whatever learns from one class knows no other.
            members, frozen = [DummyClassifier()], np.zeros(1, dtype=bool)
            given_prior = np.ones(1)
        held_out = None
        if len(train) and given_prior is None and self.prior in ("stacked", "cv"):
            held_out = self._hold_out(
                X, codes, given, groups, train, members, frozen, present, rng
            )
        prior, errors = self._weigh(held_out, codes[train], len(members), given_prior)
        fitted = self._fit_members(X, given, train, members, prior > 0.0)
        kept = np.array([member is not None for member in fitted])
        prior = np.where(kept, prior, 0.0)
        prior = prior[kept] / prior.sum()
        self.estimators_ = [member for member in fitted if member is not None]
        self.member_indices_ = np.flatnonzero(kept)
        self.cv_errors_ = errors[kept]
        self.train_indices_ = np.sort(train)
        self.certification_indices_ = cert
        self._present_ = present
        calibration = self._calibrate(held_out, codes[train], prior, kept)

        level = self.delta / 2.0 if self.simultaneous else self.delta
        sample = make_sample(len(cert_codes), None if groups is None else groups[cert])
        catoni_c, m = None, sample.size
        if self.distance == "catoni" and not np.isnan(self.cv_errors_).any():
            guess = (prior @ self.cv_errors_ + 0.5) / (len(train) + 1.0)
            catoni_c = catoni_constant(guess, m, m, level)
        votes = self._member_codes(X_cert, np.arange(len(self.estimators_)))
        evidence = weigh_members(
            votes,
            cert_codes,
            prior,
            kind=self.posterior,
            level=level,
            divergence=self.divergence,
            distance=self.distance,
            constants="exact",
            catoni_c=catoni_c,
            simultaneous=self.simultaneous,
            n_classes=len(self.classes_),
            tail_u=float(rng.uniform()) if self.tail == "randomized" else None,
            sample=sample,
        )
        self.catoni_c_ = evidence.rule_options["catoni_c"]
        self._set_bounds(evidence, level=level)
        unseen_limit = sample.limit(~np.isin(cert_codes, present), level)
        self._set_trained(present, unseen_limit, len(train) or m)
        self._set_voters(calibration)
        return self

    def _check_rows(self, X):
        check_is_fitted(self)
        return self._check_table(X, reset=False)

    def _member_codes(self, X, members):
        chosen = [self.estimators_[i] for i in members]
        codes = np.column_stack(
            Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(member_codes)(member, X, self.classes_) for member in chosen
            )
        )
        if (codes < 0).any():
            bad = chosen[int(np.argmax((codes < 0).any(axis=0)))]
            raise ValueError(f"A member predicts labels that are not classes: {bad!r}.")
        return codes

    def _codes_and_average(self, X, members, weights):
        codes = self._member_codes(X, members)
        if self._scales_ is None:
            return codes, None
        trained = self.classes_[self._present_]
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(member_decisions)(self.estimators_[i], X, trained) for i in members
        )
        scaled = [
            weight / self._scales_[i] * decision
            for i, weight, decision in zip(members, weights, found, strict=True)
        ]
        return codes, np.sum(scaled, axis=0)

    # ---------------------------------------------------------------- steps of fit

    def _check_members(self):
        members = [m[1] if isinstance(m, tuple) else m for m in self.estimators]
        if not members:
            raise ValueError("estimators must not be empty.")
        for member in members:
            if not (hasattr(member, "fit") and hasattr(member, "predict")):
                raise TypeError(
                    "estimators must be classifiers with fit and predict; got "
                    f"{member!r}."
                )
            if not is_classifier(member):
                raise ValueError(f"estimators must be classifiers; got {member!r}.")
            if isinstance(member, FrozenEstimator) and not hasattr(member, "classes_"):
                raise ValueError(
                    f"A frozen member must be fitted and have classes_; got {member!r}."
                )
        names = [name for name, _ in self._named_members()]
        taken = set(super().get_params(deep=False))
        if len(set(names)) < len(names) or any(
            "__" in name or name in taken for name in names
        ):
            raise ValueError(
                "Names of members must differ from one another and from the "
                f"parameters, and have no '__'; got {names!r}."
            )
        return members

    def _check_data(self, X, y):
        X = self._check_table(X, reset=True)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None"
            )
        given, y = y, check_labels(y, warn=True)
        check_consistent_length(X, y)
        if len(y) < 2:
            raise ValueError(f"At least 2 rows are needed; got n_samples={len(y)}.")
        return X, y, labels_to_fit(given, y)

    def _check_table(self, X, *, reset):
        """Return rows as the members take them; their columns are as before."""
        # Dataframes, whose columns may be of any kind, texts and images are for the
        # members to check; numbers in one row are nobody's.
        if (is_table(X) and not is_frame(X)) or is_vector(X):
            inputs = get_tags(self).input_tags
            X = check_array(
                X,
                accept_sparse="csr" if inputs.sparse else False,
                dtype=None,
                ensure_all_finite=not inputs.allow_nan,
                estimator=self,
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _split(self, X, codes, groups, X_cert, y_cert, all_frozen, rng):
        """Return training rows, certification rows, and the latter's X and codes."""
        check_together(X_cert, y_cert)
        n, nothing = len(codes), np.arange(0)
        if X_cert is not None:
            X_cert = self._check_table(X_cert, reset=False)
            check_consistent_length(X_cert, y_cert)
            cert_codes = self._certification_codes(y_cert)
            train, cert = np.arange(n), nothing
        elif all_frozen:
            return nothing, np.arange(n), X, codes
        else:
            if groups is None:
                train, cert = split_rows(n, self.cert_size, rng)
            else:
                train, cert = split_groups(groups, self.cert_size, rng)
            X_cert, cert_codes = safe_indexing(X, cert), codes[cert]
        return train, cert, X_cert, cert_codes

    def _hold_out(self, X, codes, given, groups, train, members, frozen, present, rng):
        """Return what members predict for rows they were not fitted on.

        Returns
        -------
        held_out : tuple or None
            Codes (n_train, n_members), -1 where a member failed; decisions (n_train,
            n_members, n_columns); whether each member never failed. None where a fold
            leaves one class only.
        """
        X_train, truth = safe_indexing(X, train), codes[train]
        trained = self.classes_[present]
        n_columns = 1 if len(trained) == 2 else len(trained)
        votes = np.full((len(truth), len(members)), -1)
        decisions = np.zeros((len(truth), len(members), n_columns))
        usable = np.ones(len(members), dtype=bool)
        for i in np.flatnonzero(frozen):
            votes[:, i] = member_codes(members[i], X_train, self.classes_)
            decisions[:, i] = member_decisions(members[i], X_train, trained)
        if frozen.all():
            return votes, decisions, usable
        _, local, counts = np.unique(truth, return_inverse=True, return_counts=True)
        if groups is not None:
            groups = groups[train]
        n_units = len(truth) if groups is None else len(np.unique(groups))
        n_folds = min(self.inner_cv, n_units)
        # The training rows are in an order of their own: it serves as the key.
        keys = np.arange(len(truth), dtype=np.float64)
        class_order = order_classes(local, keys, len(counts))
        folds = np.zeros(len(truth), dtype=np.intp)
        if n_folds >= 2:
            if groups is None:
                folds = assign_folds(local, keys, class_order, n_folds, rng)
            else:
                folds = assign_group_folds(groups, n_folds, rng)
        if any(len(np.unique(truth[folds != k])) < 2 for k in range(n_folds)):
            warn_user(
                "The prior is uniform: without some inner fold, only one class is left "
                "to train on."
            )
            return None
        jobs = [
            (i, np.flatnonzero(folds != k), np.flatnonzero(folds == k))
            for i in np.flatnonzero(~frozen)
            for k in range(n_folds)
        ]
        labels = safe_indexing(given, train)
        found = run_tasks(
            (
                delayed(fit_and_hold_out)(
                    members[i], X_train, labels, seen, held, self.classes_, trained
                )
                for i, seen, held in jobs
            ),
            "inner fold",
            n_jobs=self.n_jobs,
        )
        for (i, _, held), part in zip(jobs, found, strict=True):
            if part is None:
                usable[i] = False
            else:
                votes[held, i], decisions[held, i] = part
        for i in np.flatnonzero(~usable):
            if usable.any():
                warn_user(
                    "A member failed on an inner fold and gets no weight: "
                    f"{members[i]!r}",
                    FitFailedWarning,
                )
        return votes, decisions, usable

    def _weigh(self, held_out, truth, n_members, given_prior):
        """Return the prior, and the members' errors on rows held out."""
        errors = np.full(n_members, np.nan)
        self.eta_, self.eta_errors_ = np.nan, np.full(len(STACKING_ETAS), np.nan)
        if given_prior is not None:
            return given_prior, errors
        uniform = np.full(n_members, 1.0 / n_members)
        if held_out is None:
            return uniform, errors
        votes, _, usable = held_out
        errors = np.sum(votes != truth[:, None], axis=0).astype(np.float64)
        errors[~usable] = np.inf
        if not usable.any():
            # All failed; fitting them again shows why.
            return uniform, errors
        if self.prior == "cv":
            self.eta_ = float(self.prior_eta)
            return informed_prior(errors, self.prior_eta), errors
        prior, self.eta_, vote_errors = stacked_prior(
            votes, truth, len(self.classes_), usable
        )
        self.eta_errors_ = vote_errors.astype(np.float64)
        return prior, errors

    def _calibrate(self, held_out, truth, prior, kept):
        """Set the members' scales of decisions; return the mean's calibration."""
        self._scales_ = None
        if held_out is None or not held_out[2][kept].all():
            return None
        decisions = held_out[1][:, kept]
        scales = np.abs(decisions).mean(axis=(0, 2))
        self._scales_ = np.where(scales > 0.0, scales, 1.0)
        average = np.einsum("nhk,h->nk", decisions, prior / self._scales_)
        # Labels that only the rows have cannot be predicted.
        local = code_labels(truth, self._present_)
        return fit_calibration(average[local >= 0], local[local >= 0])

    def _fit_members(self, X, given, train, members, wanted):
        """Return the fitted members, None where not wanted or failed."""
        if len(train):
            X_train, labels = safe_indexing(X, train), safe_indexing(given, train)
        else:
            X_train = labels = None
        found = run_tasks(
            (
                delayed(fit_one)(member, X_train, labels)
                for member, is_wanted in zip(members, wanted, strict=True)
                if is_wanted
            ),
            "member",
            n_jobs=self.n_jobs,
        )
        fitted = [None] * len(members)
        failures = []
        for i, (member, error) in zip(np.flatnonzero(wanted), found, strict=True):
            fitted[i] = member
            if error is not None:
                failures.append((members[i], error))
        if len(failures) == len(found):
            raise failures[0][1]
        for member, error in failures:
            warn_user(
                f"A member could not be trained and is left out: {member!r}\n{error!r}",
                FitFailedWarning,
            )
        return fitted

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            members = [m[1] if isinstance(m, tuple) else m for m in self.estimators]
            inputs = [get_tags(member).input_tags for member in members]
        except Exception:
            # Bad members are reported by fit; tags must not raise.
            return tags
        if inputs:
            tags.input_tags.sparse = all(tag.sparse for tag in inputs)
            tags.input_tags.allow_nan = any(tag.allow_nan for tag in inputs)
        return tags
