"""The SVM ensemble with a certificate."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from skbounds._base import fit_from_scratch, warn_user
from skbounds._sklearn_compat import Integral, Interval, Real, StrOptions, _fit_context
from skbounds.pac_bayes._bounds import CONSTANTS, check_pair, check_probabilities
from skbounds.pac_bayes._certify import (
    MixtureEvidence,
    catoni_constant,
    informed_prior,
    weigh_members,
)
from skbounds.pac_bayes._kernels import KERNELS
from skbounds.pac_bayes._layout import assign_folds, check_classes, split_rows
from skbounds.pac_bayes._members import SVMMember
from skbounds.pac_bayes._posteriors import optimal_posterior
from skbounds.pac_bayes._svm_training import SVMOptions, SVMTrainer
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
    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernels that have one; as in ``SVC``, from the training part.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Independent term of the polynomial and sigmoid kernels.
    standardize : bool, default=False
        Whether to standardise features with the means and deviations of the training
        part. A scaler in front of the ensemble sees the certification rows as well.
    scheme : {'holdout', 'progressive'}, default='holdout'
        ``'holdout'``: one part trains, the other certifies. ``'progressive'``: along
        random orders of the rows, each block certifies the members trained on all rows
        before it, and then trains; what is certified is a mixture over blocks.
    cert_size : float, default=0.25
        Share of the rows, in (0, 1), that certify in the hold-out scheme. Never
        stratified and never redrawn.
    prior : {'cv', 'uniform'} or array-like of shape (n_Cs,), default='cv'
        Weights fixed before the certification rows are looked at. ``'cv'``:
        proportional to exp(-`prior_eta` times the errors in inner cross-validation);
        values of C without weight are dropped. An array sums to 1 and may have zeros.
    prior_eta : float, default=1.0
        How sharply weights fall with errors.
    inner_cv : int, default=5
        Number of inner folds, at most the size of the smallest class; 3 is enough for
        some thousands of rows.
    posterior : {'prior', 'bound'}, default='prior'
        Weights of the vote: the prior's, which gives the exact tail bound, or those
        that minimise the bound of the Gibbs classifier on the certification rows, as in
        the paper; then only twice that bound covers the vote.
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
    cache_size : float, default=200
        Memory for kernel rows, in MB. If the matrix of the training rows does not fit,
        rows are computed when they are needed.
    n_jobs : int, default=None
        Number of threads over inner folds.
    random_state : int, RandomState instance or None, default=None
        Source of the split, the folds and the orders.
    verbose : int, default=0
        Whether to print a line per value of C.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
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
        Number of certification rows.
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
    Rows must be independent draws from one distribution: no groups, no time series.
    Each bound holds on its own; fitting many times and keeping the best certificate
    voids it. The bounds are about the fitted members and weights, not about a model
    trained again. Weights, a kernel parameter or a grid chosen by looking at the
    certification rows void them too.

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
    142
    >>> bool(clf.vote_bound_ < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="neither"),
        ],
        "degree": [Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "standardize": ["boolean"],
        "scheme": [StrOptions({"holdout", "progressive"})],
        "cert_size": [Interval(Real, 0.0, 1.0, closed="neither")],
        "prior": [StrOptions({"cv", "uniform"}), "array-like"],
        "prior_eta": [Interval(Real, 0.0, None, closed="left")],
        "inner_cv": [Interval(Integral, 2, None, closed="left")],
        "posterior": [StrOptions({"prior", "bound"})],
        "divergence": [StrOptions({"chi2", "kl"})],
        "distance": [StrOptions({"linear", "squared", "kl", "lambda", "catoni"})],
        "delta": [Interval(Real, 0.0, 1.0, closed="neither")],
        "simultaneous": ["boolean"],
        "constants": [StrOptions(set(CONSTANTS))],
        "n_start": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_blocks": [Interval(Integral, 1, None, closed="left")],
        "n_orders": [Interval(Integral, 1, None, closed="left")],
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
        Cs=20,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        standardize=False,
        scheme="holdout",
        cert_size=0.25,
        prior="cv",
        prior_eta=1.0,
        inner_cv=5,
        posterior="prior",
        divergence="kl",
        distance="catoni",
        delta=0.05,
        simultaneous=False,
        constants="exact",
        n_start=0.5,
        n_blocks=4,
        n_orders=2,
        refit=False,
        class_weight=None,
        tol=1e-2,
        max_iter_per_C=10,
        early_end=True,
        cache_size=200,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
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
    def fit(self, X, y, *, X_cert=None, y_cert=None):
        """Fit the members, weigh them, and certify the vote.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Labels.
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
        # One memory layout, so that rounding does not depend on where X came from.
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_min_samples=2,
        )
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        self._set_classes(classes)
        X_cert, cert_codes = self._check_certification(X_cert, y_cert)
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
            evidence = self._fit_progressive(X, codes, Cs, level, rng)
        else:
            evidence = self._fit_holdout(
                X, codes, X_cert, cert_codes, Cs, prior, level, rng
            )
        self._set_bounds(evidence, level=level, certified=not self.refit)
        weighted = self.posterior == "bound"
        self.vote_weights_ = self.posterior_ if weighted else self.prior_
        if self.refit:
            self._fit_again(X, codes, X_cert, cert_codes)
        self.estimators_ = [
            SVMMember._from_path(path, i, C, self.classes_)
            for (path, i), C in zip(self._places(), self.Cs_.tolist(), strict=True)
        ]
        return self

    def average_decision(self, X):
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
        X = self._check_rows(X)
        total = 0.0
        for path, inside, outside in self._split_members(np.arange(len(self.Cs_))):
            scores = path.class_scores(X, inside)
            total = total + np.einsum("nhk,h->nk", scores, self.vote_weights_[outside])
        return total[:, 0] if len(self.classes_) == 2 else total

    def _member_codes(self, X, members):
        codes = np.empty((X.shape[0], len(members)), dtype=np.intp)
        for path, inside, outside in self._split_members(members):
            codes[:, np.searchsorted(members, outside)] = path.codes(X, inside)
        return codes

    def _places(self):
        """Yield the path of each member and its position in it."""
        for path in self._paths_:
            yield from ((path, i) for i in range(len(path.dual)))

    def _split_members(self, members):
        """Yield paths, the positions in them of some members, and the members."""
        begin = 0
        for path in self._paths_:
            chosen = members[(members >= begin) & (members < begin + len(path.dual))]
            if len(chosen):
                yield path, chosen - begin, chosen
            begin += len(path.dual)

    # ---------------------------------------------------------------- validation

    def _check_certification(self, X_cert, y_cert):
        check_together(X_cert, y_cert)
        if X_cert is None:
            return None, None
        if self.scheme == "progressive":
            raise ValueError(
                "scheme='progressive' certifies on rows of X itself; X_cert goes with "
                "scheme='holdout'."
            )
        X_cert, y_cert = validate_data(
            self,
            X_cert,
            y_cert,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            reset=False,
        )
        if self.refit and self.kernel == "precomputed":
            raise ValueError(
                "refit=True needs the kernel matrix of all rows; with "
                "kernel='precomputed' it cannot be had from X and X_cert."
            )
        return X_cert, self._certification_codes(y_cert)

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

    def _trainer(self, X, codes, rows, n_first=None):
        """Return the trainer on some rows of X."""
        limit = np.inf if self.max_iter_per_C is None else float(self.max_iter_per_C)
        options = SVMOptions(
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            standardize=self.standardize,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=limit,
            cache_size=self.cache_size,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        part = X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]
        return SVMTrainer(
            part, codes[rows], rows, self.classes_, options, X.shape[1], n_first
        )

    def _n_folds(self, codes, warn=True):
        """Return the number of inner folds; 0 where a class has only one row."""
        smallest = int(np.bincount(codes, minlength=len(self.classes_)).min())
        n_folds = min(self.inner_cv, smallest)
        if n_folds >= 2:
            return n_folds
        if warn and isinstance(self.prior, str) and self.prior == "cv":
            warn_user(
                "The prior is uniform: a class has only one row in the training part, "
                "too few for inner folds."
            )
        return 0

    def _fit_holdout(self, X, codes, X_cert, cert_codes, Cs, prior, level, rng):
        """Train on one part, certify on the other."""
        if X_cert is None:
            train, cert = split_rows(X.shape[0], self.cert_size, rng)
            check_classes(codes[train], self.classes_, "The training part of the split")
            X_cert, cert_codes = X[cert], codes[cert]
        else:
            train, cert = np.arange(X.shape[0]), np.arange(0)
        self.train_indices_, self.certification_indices_ = train, cert
        trainer = self._trainer(X, codes, train)
        learned = prior is None and self.prior == "cv"
        # The constant of Catoni's bound is fixed by the inner folds as well.
        wanted = learned or self.distance == "catoni"
        n_folds = self._n_folds(trainer.codes) if wanted else 0
        errors = np.full(len(Cs), np.nan)
        if n_folds:
            folds = assign_folds(
                trainer.codes, trainer.keys, trainer.class_order, n_folds, rng
            )
            trainer.arrange(folds, n_folds)
            # A given prior may have its mass where the path would not come.
            early_end = self.early_end and learned
            errors = trainer.cross_validate(Cs, self.prior_eta, early_end)
        else:
            trainer.arrange(np.zeros(len(train), dtype=np.intp), 1)
        if learned and n_folds:
            prior = informed_prior(errors, self.prior_eta)
            kept = prior > 0.0
        else:
            prior = np.full(len(Cs), 1.0 / len(Cs)) if prior is None else prior
            kept = np.ones(len(Cs), dtype=bool)
        self.Cs_, self.cv_errors_, prior = Cs[kept], errors[kept], prior[kept]
        members = trainer.fit_members(self.Cs_, range(max(n_folds, 1)))
        path = trainer.make_path(members["dual"], members["intercepts"])
        self.n_iter_, self.capped_ = members["n_iter"], members["capped"]
        self._paths_ = [path]

        m = len(cert_codes)
        catoni_c = None
        if self.distance == "catoni" and n_folds:
            guess = (prior @ self.cv_errors_ + 0.5) / (len(train) + 1.0)
            catoni_c = catoni_constant(guess, m, m, level)
        cert_votes = path.codes(X_cert)
        evidence = weigh_members(
            cert_votes != cert_codes[:, None],
            cert_votes,
            cert_codes,
            prior,
            fixed_vote=self.posterior == "prior",
            level=level,
            divergence=self.divergence,
            distance=self.distance,
            constants=self.constants,
            catoni_c=catoni_c,
            simultaneous=self.simultaneous,
            n_classes=len(self.classes_),
        )
        self.catoni_c_ = evidence.rule_options["catoni_c"]
        return evidence

    def _fit_progressive(self, X, codes, Cs, level, rng):
        """Train on growing parts of random orders; the next block certifies each."""
        n = X.shape[0]
        n_start = round(self.n_start * n)
        m = n - n_start
        if n_start < 2 or m < self.n_blocks:
            raise ValueError(
                f"n_samples={n} is too small for n_start={self.n_start!r} and "
                f"n_blocks={self.n_blocks!r}: {n_start} rows to start with and {m} to "
                "certify."
            )
        sizes = np.full(self.n_blocks, m // self.n_blocks)
        sizes[: m % self.n_blocks] += 1
        order, blocks, paths = None, [], []
        trains, certifies = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for j in range(self.n_orders):
            # Every other order is the one before reversed: with n_start = 1/2, each row
            # then certifies in one of the two.
            order = rng.permutation(n) if j % 2 == 0 else order[::-1]
            check_classes(
                codes[order[:n_start]],
                self.classes_,
                f"The first part (n_start={self.n_start!r}) of a random order",
            )
            found, path = self._fit_order(
                X, codes, order, sizes, Cs, level, rng, is_first=j == 0
            )
            blocks += found
            paths.append(path)
            trains[order[: n - sizes[-1]]] = True
            certifies[order[n_start:]] = True
        evidence = MixtureEvidence(blocks, self.n_orders, self.posterior == "bound")
        for name in ("Cs", "cv_errors", "n_iter", "capped"):
            values = np.concatenate([block[name] for block in blocks])
            setattr(self, f"{name}_", values)
        self.catoni_c_ = evidence.catoni_c
        self._paths_ = paths
        self.train_indices_ = np.flatnonzero(trains)
        self.certification_indices_ = np.flatnonzero(certifies)
        return evidence

    def _fit_order(self, X, codes, order, sizes, Cs, level, rng, is_first):
        """Run through one order; return what its blocks say, and all its members."""
        m = int(sizes.sum())
        n_start = len(order) - m
        trainer = self._trainer(X, codes, order, n_start)
        n_folds = self._n_folds(trainer.codes[:n_start], warn=is_first)
        n_known = max(n_folds, 1)
        parts = np.zeros(len(order), dtype=np.intp)
        if n_folds:
            parts[:n_start] = assign_folds(
                trainer.codes[:n_start],
                trainer.keys[:n_start],
                trainer.class_order,
                n_folds,
                rng,
            )
        parts[n_start:] = n_known + np.repeat(np.arange(len(sizes)), sizes)
        trainer.arrange(parts, n_known)
        errors = np.zeros(len(Cs))
        learned = self.prior == "cv" and n_folds > 0
        if n_folds:
            early_end = self.early_end and learned
            errors = trainer.cross_validate(Cs, self.prior_eta, early_end)
        kept, counted = np.arange(len(Cs)), n_start if n_folds else 0
        inner_errors, blocks, duals, intercepts = errors, [], [], []
        for b, size in enumerate(sizes.tolist()):
            prior = informed_prior(errors, self.prior_eta if learned else 0.0)
            # What a member did not reach in the inner folds it never gets mass for.
            kept, errors, prior = (
                kept[prior > 0.0],
                errors[prior > 0.0],
                prior[prior > 0.0],
            )
            guess = (prior @ errors + 0.5) / (counted + 1.0)
            catoni_c = catoni_constant(guess, size, m, level)
            members = trainer.fit_members(
                Cs[kept], range(n_known + b), target=n_known + b
            )
            risks = members["wrong"].mean(axis=0)
            posterior, _ = optimal_posterior(
                risks,
                size,
                delta=level,
                divergence="kl",
                distance="catoni",
                prior=prior,
                catoni_c=catoni_c,
            )
            blocks.append(
                {
                    "risks": risks,
                    "prior": prior,
                    "posterior": posterior,
                    "n_rows": size,
                    "catoni_c": catoni_c,
                    "Cs": Cs[kept],
                    "cv_errors": inner_errors[kept],
                    "n_iter": members["n_iter"],
                    "capped": members["capped"],
                }
            )
            duals.append(members["dual"])
            intercepts.append(members["intercepts"])
            errors = errors + members["wrong"].sum(axis=0)
            counted += size
        path = trainer.make_path(np.concatenate(duals), np.concatenate(intercepts))
        return blocks, path

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
        trainer = self._trainer(X, codes, np.arange(X.shape[0]))
        trainer.arrange(np.zeros(X.shape[0], dtype=np.intp), 1)
        members = trainer.fit_members(self.Cs_, [0])
        self.n_iter_, self.capped_ = members["n_iter"], members["capped"]
        self._paths_ = [trainer.make_path(members["dual"], members["intercepts"])]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "additive_chi2")
        return tags
