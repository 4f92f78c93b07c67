"""The SVM ensemble with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state

from skbounds._base import fit_from_scratch, warn_user
from skbounds._distances import check_spread
from skbounds._labels import validate_labelled
from skbounds._sklearn_compat import Integral, Interval, Real, StrOptions, _fit_context
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import validate_data
from skbounds.pac_bayes._bounds import CONSTANTS, check_pair, check_probabilities
from skbounds.pac_bayes._kernels import KERNELS
from skbounds.pac_bayes._members import SVMMember
from skbounds.pac_bayes._svm_schemes import (
    fit_holdout,
    fit_per_member,
    fit_progressive,
    make_trainer,
)
from skbounds.pac_bayes._votes import CertifiedVote, check_together


class PACBayesSVMEnsemble(CertifiedVote):
    r"""SVMs along a path of C that vote, with a certificate of the vote's test error.

    A random part of the rows is set aside. On the others SVMs are trained for all
    values of C and weighed by inner cross-validation, all on one kernel matrix and each
    started from the one before. The weighted vote, a fixed classifier by now, is then
    certified on the part set aside: with probability ``1 - delta`` its risk is at most
    `vote_bound_`, the exact binomial tail. Replaces ``GridSearchCV(SVC(), {"C": ...})``
    at a fraction of its time.

    Read more in the :ref:`User Guide <pac_bayes>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    Cs : int or array-like of float, default=20
        Number of values of C, evenly spaced on a logarithmic scale from 1e-2 to 1e3, or
        the values.
    kernel : str or callable, default='rbf'
        ``'rbf'``, ``'linear'``, ``'poly'``, ``'sigmoid'``, ``'precomputed'``, any other
        name known to :func:`~sklearn.metrics.pairwise.pairwise_kernels`, or, as in
        :class:`~sklearn.svm.SVC`, a function of two sets of rows that returns their
        kernel matrix.
    gamma : {'scale', 'auto', 'sigest'} or float, default='scale'
        Coefficient of the kernels that have one; as in ``SVC``, from the training part.
        ``'sigest'``: the mean of the reciprocals of the 0.1 and 0.9 quantiles of the
        squared distances between rows, as in the paper.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Independent term of the polynomial and sigmoid kernels.
    standardize : bool, default=False
        Whether to standardise features with the means and deviations of the training
        part. A scaler in front of the ensemble sees the certification rows as well.
    scheme : {'holdout', 'progressive', 'per_member'}, default='holdout'
        ``'holdout'``: one part trains, the other certifies. ``'progressive'``: along
        random orders of the rows, each block certifies the members trained on all rows
        before it, and then trains; what is certified is a mixture over blocks.
        ``'per_member'``: each member has a random split of its own, as in the paper;
        the prior must be given or uniform.
    cert_size : float, default=0.3
        Share of the rows (or of the groups), in (0, 1), that certify in the hold-out
        scheme. Never stratified and never redrawn.
    prior : {'cv', 'uniform'} or array-like of shape (n_Cs,), default='cv'
        Weights fixed before the certification rows are looked at. ``'cv'``:
        proportional to exp(-`prior_eta` times the errors in inner cross-validation);
        values of C with more than 7 errors above the least are dropped. An array sums
        to 1 and may have zeros.
    prior_eta : float, default=0.2
        How sharply weights fall with errors.
    inner_cv : int, default=5
        Number of inner folds; 3 is enough for some thousands of rows.
    posterior : {'prior', 'bound', 'tandem'}, default='prior'
        Weights of the vote: the prior's, which gives the exact tail bound; those that
        minimise the bound of the Gibbs classifier on the certification rows, as in the
        paper, when only twice that bound covers the vote; or those that minimise the
        bounds from joint mistakes (tandem, and for two classes C-bound), of which and
        twice the Gibbs bound the smallest is reported, each at its share of `delta`.
        Along a path of C the last two are far above the first.
    divergence : {'kl', 'chi2'}, default='kl'
        Divergence in the bound of the Gibbs classifier, see `pac_bayes_bound`. The
        progressive scheme has Catoni's only.
    distance : {'catoni', 'linear', 'squared', 'kl', 'lambda'}, default='catoni'
        Distance in it. The constant of ``'catoni'`` is fixed by the inner folds.
    delta : float, default=0.05
        Probability, in (0, 1), that a bound may fail.
    simultaneous : bool, default=False
        Whether all bounds are to hold together with probability ``1 - delta``: Gibbs
        classifier and vote then get half of it each.
    constants : {'exact', 'classical', 'paper'}, default='exact'
        Constants of the bound, see `pac_bayes_bound`; Catoni's has none.
    n_start : float, default=0.5
        Progressive scheme: share of the rows, in (0, 1), before the first block.
    n_blocks : int, default=4
        Progressive scheme: number of blocks of an order.
    n_orders : int, default=2
        Progressive scheme: number of orders. Every other one is the reverse of the one
        before.
    tail : {'exact', 'randomized'}, default='exact'
        The limit of the vote with ``posterior="prior"``: the exact binomial tail, or
        one randomised by a number drawn from `random_state`, which fails with
        probability exactly `delta` and is a little lower. Drawing again until it suits
        voids it.
    refit : bool, default=False
        Whether to train the members on all rows in the end. More accurate, and no
        longer certified: the bounds are nan, with a warning.
    class_weight : dict or 'balanced', default=None
        Factors of C per class, as in ``SVC``. The certificate counts mistakes of all
        classes alike.
    tol : float, default=1e-2
        Tolerance of the solver, as in ``SVC``. A member short of the optimum is just
        another classifier: certificates hold all the same.
    max_iter_per_C : int or None, default=10
        Most iterations of the solver for one value of C, as a multiple of the number of
        rows. None: no limit, which on features of large scale may take for ever.
    early_end : bool, default=True
        Whether inner cross-validation ends when larger values of C cannot get weight.
    cache_size : float, default=1000
        Memory for kernel rows, in MB. If the matrix of the training rows does not fit,
        rows are computed when they are needed.
    n_jobs : int, default=None
        Number of threads over inner folds, which share the kernel matrix: always on
        this machine. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the split, the folds and the orders.
    verbose : int, default=0
        Whether to print a line per value of C.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes: all labels of y.
    trained_classes_ : ndarray of shape (n_trained,)
        The classes that the training part has. The others are never predicted.
    unseen_class_bound_ : float
        With probability ``1 - delta``, a new row has a class that is not among
        `trained_classes_` with at most this probability. Where there are several parts
        that train, among the classes of the first: with ``scheme="progressive"`` before
        the first block of the first order, with ``"per_member"`` the first member's.
    estimators_ : list of classifiers
        The fitted members, each with the attributes of a fitted ``SVC``: one for each
        value of C, with ``prior="cv"`` only for those with weight; in the progressive
        scheme such members of each block of each order. The arrays below have one entry
        for each.
    Cs_ : ndarray of shape (n_members,)
        Their values of C.
    vote_weights_ : ndarray of shape (n_members,)
        Weights of the vote of `predict`.
    posterior_ : ndarray of shape (n_members,)
        What `predict_randomized` draws from.
    prior_ : ndarray of shape (n_members,)
        The prior.
    cv_errors_ : ndarray of shape (n_members,)
        Errors in inner cross-validation; nan where there was none.
    empirical_risks_ : ndarray of shape (n_members,)
        Error rates on the certification rows (progressive: on the member's block).
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
    catoni_c_ : float, ndarray or None
        The constant in Catoni's bound (progressive: one per block).
    certified_object_ : {'vote', 'gibbs'}
        Which bound makes the tighter claim on what `predict` returns: the vote's own,
        or twice the bound of drawing one of its voters. The smaller of two bounds is
        valid at ``2 * delta`` unless `simultaneous`.
    certified_ : bool
        Whether the bounds hold for the fitted members: not after ``refit=True``.
    n_certification_ : int
        Number of certification rows, or of groups of them.
    train_indices_ : ndarray of int of shape (n_train,)
        The rows given to `fit` that train some member; all with ``refit=True``, and
        `X_cert` as well, whose rows `support_` numbers after those of X.
    certification_indices_ : ndarray of int of shape (n_certifying,)
        Those that certify; none if `X_cert` was given. The two overlap in the
        progressive scheme.
    n_iter_ : ndarray of int of shape (n_members,)
        Iterations of the solver.
    capped_ : ndarray of bool of shape (n_members,)
        Whether `max_iter_per_C` ended them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where all of them are strings.

    See Also
    --------
    PACBayesEnsembleClassifier : The same certificate for any classifiers.
    CertificateDisplay : Weights, risks and bounds over C.
    optimal_posterior : The weights of the paper.
    sklearn.svm.SVC : One support vector machine.

    Notes
    -----
    Rows must be independent draws from one distribution, or `groups` of them given to
    `fit`: no time series.
    Each bound holds on its own; fitting many times and keeping the best certificate
    voids it. The bounds are about the fitted members and weights, not about a model
    trained again. Weights, a kernel parameter or a grid chosen by looking at the
    certification rows void them too.

    A class that the random split leaves without training rows is no error: members are
    trained on the classes there are, rows of others count as mistakes, and the bounds
    hold. With ``standardize=False`` and features of large scale the solver may reach
    `max_iter_per_C` for all members, which warns.

    On a grid of C the members are much alike: their vote is about as good as the single
    best one, and what it saves is the choice, which needs no rows of its own and no
    union bound. The paper's ensemble is ``prior="uniform", posterior="bound",
    cert_size=0.5, divergence="chi2"``.

    Training costs O(n_train²) memory up to `cache_size`, and predictions a kernel
    matrix with the rows that support some member. Several classes are handled one
    against one inside each member, as in ``SVC``.

    References
    ----------
    .. [1] P. Sahu, N. Hemachandra. "Optimal posteriors for chi-squared divergence based
       PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors
       and cross-validation procedure".
    .. [2] J. Langford (2005). "Tutorial on practical prediction theory for
       classification". JMLR 6.
    .. [3] O. Catoni (2007). "PAC-Bayesian supervised classification". IMS.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbounds.pac_bayes import PACBayesSVMEnsemble
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PACBayesSVMEnsemble(standardize=True, random_state=0).fit(X, y)
    >>> clf.n_certification_
    171
    >>> bool(clf.vote_bound_ < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [
            StrOptions({"scale", "auto", "sigest"}),
            Interval(Real, 0.0, None, closed="neither"),
        ],
        "degree": [Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "standardize": ["boolean"],
        "scheme": [StrOptions({"holdout", "progressive", "per_member"})],
        "cert_size": [Interval(Real, 0.0, 1.0, closed="neither")],
        "prior": [StrOptions({"cv", "uniform"}), "array-like"],
        "prior_eta": [Interval(Real, 0.0, None, closed="left")],
        "inner_cv": [Interval(Integral, 2, None, closed="left")],
        "posterior": [StrOptions({"prior", "bound", "tandem"})],
        "divergence": [StrOptions({"chi2", "kl"})],
        "distance": [StrOptions({"linear", "squared", "kl", "lambda", "catoni"})],
        "delta": [Interval(Real, 0.0, 1.0, closed="neither")],
        "simultaneous": ["boolean"],
        "constants": [StrOptions(set(CONSTANTS))],
        "n_start": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_blocks": [Interval(Integral, 1, None, closed="left")],
        "n_orders": [Interval(Integral, 1, None, closed="left")],
        "tail": [StrOptions({"exact", "randomized"})],
        "refit": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter_per_C": [Interval(Integral, 1, None, closed="left"), None],
        "early_end": ["boolean"],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 20,
        *,
        kernel: str | Callable = "rbf",
        gamma: Literal["scale", "auto", "sigest"] | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        standardize: bool = False,
        scheme: Literal["holdout", "progressive", "per_member"] = "holdout",
        cert_size: float = 0.3,
        prior: Literal["cv", "uniform"] | ArrayLike = "cv",
        prior_eta: float = 0.2,
        inner_cv: int = 5,
        posterior: Literal["prior", "bound", "tandem"] = "prior",
        divergence: Literal["kl", "chi2"] = "kl",
        distance: Literal["catoni", "linear", "squared", "kl", "lambda"] = "catoni",
        delta: float = 0.05,
        simultaneous: bool = False,
        constants: Literal["exact", "classical", "paper"] = "exact",
        n_start: float = 0.5,
        n_blocks: int = 4,
        n_orders: int = 2,
        tail: Literal["exact", "randomized"] = "exact",
        refit: bool = False,
        class_weight: Literal["balanced"] | dict | None = None,
        tol: float = 1e-2,
        max_iter_per_C: int | None = 10,
        early_end: bool = True,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.scheme = scheme
        self.cert_size = cert_size
        self.prior = prior
        self.prior_eta = prior_eta
        self.inner_cv = inner_cv
        self.posterior = posterior
        self.divergence = divergence
        self.distance = distance
        self.delta = delta
        self.simultaneous = simultaneous
        self.constants = constants
        self.n_start = n_start
        self.n_blocks = n_blocks
        self.n_orders = n_orders
        self.tail = tail
        self.refit = refit
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter_per_C = max_iter_per_C
        self.early_end = early_end
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
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
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that are not independent of each other: of one person,
            batch, or day. Whole groups certify, a share `cert_size` of them, and inner
            folds keep groups together. What is certified is then the mean over groups
            of a group's error rate: of the risk on a new group, not of the share of
            mistakes among all rows.
        X_cert : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
            Rows to certify with; all of X then trains. With ``kernel="precomputed"``,
            the kernel between them and the rows of X.
        y_cert : array-like of shape (n_rows,), default=None
            Their labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        check_pair(self.divergence, self.distance)
        pair = (self.divergence, self.distance)
        if self.scheme == "progressive" and pair != ("kl", "catoni"):
            raise ValueError(
                "scheme='progressive' has one bound: divergence must be 'kl' and "
                f"distance 'catoni'; got {pair!r}."
            )
        self._check_scheme()
        # One memory layout, so that rounding does not depend on where X came from.
        X, y = validate_labelled(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_min_samples=2,
        )
        classes, codes = np.unique(y, return_inverse=True)
        self._set_classes(classes)
        if self.kernel != "precomputed":
            check_spread(X)
        X_cert, cert_codes = self._check_certification(X_cert, y_cert)
        groups = self._check_groups(groups, X, X_cert)
        if self.kernel == "precomputed":
            X = X.toarray() if issparse(X) else X
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    "With kernel='precomputed', X must be a square matrix; got shape "
                    f"{X.shape}."
                )
            if self.standardize:
                raise ValueError("standardize=True needs rows, not a kernel matrix.")
        Cs, prior = self._check_grid()
        rng = check_random_state(self.random_state)
        level = self.delta / 2.0 if self.simultaneous else self.delta
        if self.scheme == "progressive":
            found = fit_progressive(self, X, codes, Cs, level, rng)
        elif self.scheme == "per_member":
            found = fit_per_member(self, X, codes, Cs, prior, level, rng)
        else:
            found = fit_holdout(
                self, X, codes, groups, X_cert, cert_codes, Cs, prior, level, rng
            )
        self.train_indices_, self.certification_indices_ = found.train, found.cert
        self.Cs_, self.cv_errors_ = found.Cs, found.cv_errors
        self.n_iter_, self.capped_ = found.n_iter, found.capped
        self.catoni_c_ = found.catoni_c
        self._paths_, self._present_ = found.paths, found.present
        self._set_bounds(found.evidence, level=level, certified=not self.refit)
        present = np.unique(np.concatenate(found.present))
        self._set_trained(present, found.unseen_limit, found.n_voting)
        self._set_voters(found.calibration)
        if self.capped_.all():
            warn_user(
                "max_iter_per_C ended the solver for every member. The certificate "
                "holds all the same, but scaled features (standardize=True) or a "
                "larger max_iter_per_C may give better members.",
                ConvergenceWarning,
            )
        if self.refit:
            self._fit_again(X, codes, X_cert, cert_codes)
        self.estimators_ = [
            SVMMember._from_path(path, i, C, self.classes_[present])
            for (path, present, i), C in zip(
                self._places(), self.Cs_.tolist(), strict=True
            )
        ]
        return self

    def average_decision(self, X: MatrixLike) -> np.ndarray:
        """Return the members' weighted mean decision values, to rank rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Finer than the shares of the vote, and not certified.
        """
        _, average = self._shares_and_average(X)
        if len(self.classes_) > 2:
            return self._spread(average)
        if len(self.trained_classes_) == 1:
            return average[:, 0] * (1.0 if self._trained_codes[0] == 1 else -1.0)
        return average[:, 0]

    def _member_codes(self, X, members):
        return self._codes_and_average(X, members, None)[0]

    def _codes_and_average(self, X, members, weights):
        trained = self._trained_codes
        codes = np.empty((X.shape[0], len(members)), dtype=np.intp)
        average = None
        if weights is not None:
            average = np.zeros((X.shape[0], 1 if len(trained) == 2 else len(trained)))
        for path, present, inside, outside in self._split_members(members):
            places = np.searchsorted(members, outside)
            own = None if weights is None else weights[places]
            found, part = path.codes_and_average(X, inside, own)
            codes[:, places] = present[found]
            if part is not None:
                average += _among(part, np.searchsorted(trained, present), len(trained))
        return codes, average

    def _places(self):
        """Yield the path of each member, its classes and its position in it."""
        for path, present in zip(self._paths_, self._present_, strict=True):
            yield from ((path, present, i) for i in range(len(path.dual)))

    def _split_members(self, members):
        """Yield paths, their classes, positions of some members, and the members."""
        begin = 0
        for path, present in zip(self._paths_, self._present_, strict=True):
            chosen = members[(members >= begin) & (members < begin + len(path.dual))]
            if len(chosen):
                yield path, present, chosen - begin, chosen
            begin += len(path.dual)

    # ---------------------------------------------------------------- validation

    def _check_certification(self, X_cert, y_cert):
        check_together(X_cert, y_cert)
        if X_cert is None:
            return None, None
        if self.scheme != "holdout":
            raise ValueError(
                f"scheme={self.scheme!r} certifies on rows of X itself; X_cert goes "
                "with scheme='holdout'."
            )
        codes = self._certification_codes(y_cert)
        X_cert = validate_data(
            self,
            X_cert,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            reset=False,
        )
        check_consistent_length(X_cert, codes)
        if self.refit and self.kernel == "precomputed":
            raise ValueError(
                "refit=True needs the kernel matrix of all rows; with "
                "kernel='precomputed' it cannot be had from X and X_cert."
            )
        return X_cert, codes

    def _check_scheme(self):
        """Refuse parameters that a scheme does not go with."""
        if self.scheme == "holdout":
            return
        if self.posterior == "tandem" or self.tail == "randomized":
            raise ValueError(
                f"posterior={self.posterior!r} and tail={self.tail!r} need "
                f"scheme='holdout'; got scheme={self.scheme!r}."
            )
        if self.scheme == "per_member":
            if isinstance(self.prior, str) and self.prior == "cv":
                raise ValueError(
                    "With scheme='per_member' no rows are left to decide on the prior: "
                    "it must be 'uniform' or an array; got 'cv'."
                )
            if self.distance == "catoni":
                raise ValueError(
                    "With scheme='per_member' no rows are left to fix Catoni's "
                    "constant: distance must be another; got 'catoni'."
                )
            if self.kernel == "precomputed":
                raise ValueError("scheme='per_member' needs rows, no kernel matrix.")

    def _check_grid(self):
        """Return the values of C and the prior that was given for them, or None."""
        if isinstance(self.Cs, Integral):
            Cs = np.logspace(-2.0, 3.0, int(self.Cs))
        else:
            Cs = np.asarray(self.Cs, dtype=np.float64)
            if Cs.ndim != 1 or not len(Cs):
                raise ValueError(
                    f"Cs must be a number or a non-empty list; got {self.Cs!r}."
                )
            if not ((Cs > 0.0) & np.isfinite(Cs)).all():
                raise ValueError(f"Cs must be positive and finite; got {self.Cs!r}.")
        if isinstance(self.prior, str):
            return Cs, None
        if self.scheme == "progressive":
            raise ValueError(
                "With scheme='progressive', prior must be 'cv' or 'uniform'; got an "
                "array."
            )
        return Cs, check_probabilities("prior", self.prior, len(Cs))

    # ---------------------------------------------------------------- schemes

    def _fit_again(self, X, codes, X_cert, cert_codes):
        """Train the members on all rows; their weights stay."""
        n_given = X.shape[0]
        if X_cert is not None:
            if issparse(X) or issparse(X_cert):
                X = sparse_vstack([csr_matrix(X), csr_matrix(X_cert)]).tocsr()
            else:
                X = np.vstack([X, X_cert])
            codes = np.concatenate([codes, cert_codes])
        if self.scheme == "progressive":
            # The members of all blocks with the same C become one.
            self.Cs_, member = np.unique(self.Cs_, return_inverse=True)
            for name in ("vote_weights_", "posterior_", "prior_"):
                setattr(self, name, np.bincount(member, weights=getattr(self, name)))
            for name in ("empirical_risks_", "cv_errors_"):
                sums = np.bincount(member, weights=getattr(self, name))
                setattr(self, name, sums / np.bincount(member))
            self.best_index_ = int(member[self.best_index_])
        self.train_indices_ = np.arange(n_given)
        # Rows to certify with may have labels that are no class.
        rows = np.flatnonzero(codes >= 0)
        present = np.arange(len(self.classes_))
        trainer = make_trainer(self, X, codes, rows, present)
        trainer.arrange(np.zeros(len(rows), dtype=np.intp), 1)
        members = trainer.fit_members(self.Cs_, [0])
        self.n_iter_, self.capped_ = members["n_iter"], members["capped"]
        self._paths_ = [trainer.make_path(members["dual"], members["intercepts"])]
        self._present_ = [present]
        if len(self.trained_classes_) < len(present):
            # What was calibrated had other columns.
            self._calibration_ = None
        self.trained_classes_ = self.classes_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "additive_chi2")
        return tags


def _among(scores, places, n_trained):
    """Return scores of some classes among those of all trained ones.

    Parameters
    ----------
    scores : ndarray of shape (n, n_present), or (n, 1) for one or two classes
    places : ndarray of int
        Where the classes are among the trained ones.
    n_trained : int
    """
    if n_trained == 2:
        # One class of two says so; two classes have one column already.
        sign = -1.0 if len(places) == 1 and places[0] == 0 else 1.0
        return sign * scores
    if len(places) == n_trained:
        return scores
    if scores.shape[1] == 1 and len(places) == 2:
        scores = np.hstack([-scores, scores])
    result = np.empty((len(scores), n_trained))
    result[:] = scores.min(axis=1, keepdims=True) - 1.0
    result[:, places] = scores
    return result
