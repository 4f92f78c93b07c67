"""Hidden Markov models with Gaussian outputs, by Baum-Welch."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbounds._base import SkboundsEstimator, fit_from_scratch, warn_user
from skbounds._core import hmm as _core
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds.hmm import _em, _emissions, _mixing, _starts, _symmetric
from skbounds.hmm._criteria import InformationCriteria
from skbounds.hmm._sequences import find_sequences

# Squares of larger values, summed, overflow.
_LARGEST = 1e140
# A mean so many times its standard error, and this share of |mu|, is no mean of 0.
_STANDARD_ERRORS, _LARGE_MEAN = 4.0, 0.5


def _is_symmetric(self):
    return getattr(self, "_params_", self.get_params(deep=False))["structure"] == (
        "symmetric"
    )


class BaumWelchHMM(InformationCriteria, DensityMixin, SkboundsEstimator):
    """Hidden Markov model with Gaussian outputs that says how far it has converged.

    Expectation maximisation (Baum-Welch), for any number of states or for the
    symmetric two-state model of the theory, whose E-step has a closed form. Rows are in
    the order of time; several sequences stand one after the other.

    Read more in the :ref:`User Guide <hmm>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_components : int, default=2
        Number of states.
    structure : {"free", "symmetric"}, default="free"
        "symmetric": two states with outputs N(-mu, sigma^2 I) and N(mu, sigma^2 I) and
        the same probability zeta to stay, started from the law (1/2, 1/2).
    covariance_type : {"full", "diag", "spherical", "tied"}, default="diag"
        What covariance matrices are: any, diagonal, multiples of the identity, or one
        for all states. Not read by the symmetric model.
    sigma : float, default=None
        The known standard deviation of the symmetric model's outputs; not read by the
        other.
    mixing_bound : float, default=0.9
        Largest ``abs(2 zeta - 1)`` of the symmetric model; zeta is projected, (2.30b).
    startprob : {"free", "stationary"}, default="free"
        Law of a sequence's first state: free, or the stationary law of the transition
        matrix after each M-step. The latter is not the exact maximiser: the likelihood
        may fall. Not read by the symmetric model.
    window : int, default=None
        Posteriors are given the rows at most so far away, (2.13), which costs more than
        all rows: O(n window). Scores and Viterbi are of all rows. None: all rows.
    decoder : {"map", "viterbi"}, default="map"
        States that `predict` returns: of largest posterior probability each, or the
        most probable sequence of states.
    n_init : int, default=1
        Number of starts, of which the one with the largest likelihood is kept; one if
        `means_init` is given.
    init : {"kmeans", "random"}, default="kmeans"
        Means at the start: centres of k-means, in lexicographic order, or rows drawn
        at random.
    means_init : array-like of shape (n_components, n_features), default=None
        Means at the start; of the symmetric model also mu alone, of shape
        (n_features,). States keep this order.
    covariances_init : array-like of shape (n_components, n_features, n_features), \
            default=None
        Covariance matrices at the start, of which `covariance_type` keeps what it has.
        None: the variances of the data's columns.
    transmat_init : array-like of shape (n_components, n_components), default=None
        Transition matrix at the start. None: all entries equal.
    startprob_init : array-like of shape (n_components,), default=None
        Law of the first state at the start. None: all entries equal.
    max_iter : int, default=200
        Largest number of M-steps.
    tol : float, default=1e-6
        EM has converged once the log-likelihood per row changes by less.
    reg_covar : "auto" or float, default="auto"
        Added to the variances; not read by the symmetric model. "auto": a millionth of
        each column's variance, so that units do not matter (of a constant column a
        millionth of its square, or of 1).
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    verbose : int, default=0
        Print the log-likelihood of every start.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Means of the outputs. States are in lexicographic order of their means, unless
        `means_init` is given. Of the symmetric model the second is mu, whose first
        coordinate that is not 0 is positive, unless `means_init` is given.
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        Covariance matrices of the outputs.
    transmat_ : ndarray of shape (n_components, n_components)
        Transition probabilities, from row to column.
    startprob_ : ndarray of shape (n_components,)
        Law of a sequence's first state.
    n_iter_ : int
        Number of M-steps of the best start.
    converged_ : bool
        Whether it converged.
    history_ : ndarray of shape (n_iter + 1,)
        Log-likelihood of all rows, at the start and after each M-step.
    contraction_rate_ : float
        Factor by which the parameters' changes have shrunk per iteration in the end:
        the spectral radius of EM's Jacobian, where EM has run for long enough. nan
        after fewer than three changes that are no rounding errors.
    eps_mix_ : float
        Mixing constant (2.3): the largest eps with eps <= A(j, k) / pi(k) <= 1 / eps;
        of the symmetric model 1 - abs(2 zeta - 1).
    rho_mix_ : float
        ``1 - eps_mix_``.
    reversible_gap_ : float
        Largest violation of pi_j A(j, k) = pi_k A(k, j), which the theory assumes.
    snr_ : float
        abs(mu) / sigma, of the symmetric model only.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    HMMDisplay : Draws the posteriors along a sequence.
    sklearn.mixture.GaussianMixture : The same without an order of the rows.

    Notes
    -----
    Sequences are told apart by ``sequence_id``, which is aligned with the rows, is
    sliced by cross-validation and travels by metadata routing, or by ``lengths``, which
    is neither. Without routing, searches score each fold as one sequence.

    The theory of [1]_ is about the symmetric model, started near the truth. Its
    constants are not explicit; nothing here is a certificate.

    References
    ----------
    .. [1] F. Yang, S. Balakrishnan and M. Wainwright, "Statistical and computational
       guarantees for the Baum-Welch algorithm", Journal of Machine Learning Research
       18, 2017. Numbers of equations are those of chapter 2 of F. Yang's thesis.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.hmm import BaumWelchHMM
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat([0, 1, 0, 1], 50)
    >>> X = 3.0 * states[:, None] + rng.normal(size=(200, 1))
    >>> model = BaumWelchHMM(random_state=0).fit(X)
    >>> print(f"{np.mean(model.predict(X) == states):.2f}")
    0.98
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "structure": [StrOptions({"free", "symmetric"})],
        "covariance_type": [StrOptions({"full", "diag", "spherical", "tied"})],
        "sigma": [Interval(Real, 0, None, closed="neither"), None],
        "mixing_bound": [Interval(Real, 0, 1, closed="neither")],
        "startprob": [StrOptions({"free", "stationary"})],
        "window": [Interval(Integral, 1, None, closed="left"), None],
        "decoder": [StrOptions({"map", "viterbi"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"kmeans", "random"})],
        "means_init": ["array-like", None],
        "covariances_init": ["array-like", None],
        "transmat_init": ["array-like", None],
        "startprob_init": ["array-like", None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components=2,
        *,
        structure="free",
        covariance_type="diag",
        sigma=None,
        mixing_bound=0.9,
        startprob="free",
        window=None,
        decoder="map",
        n_init=1,
        init="kmeans",
        means_init=None,
        covariances_init=None,
        transmat_init=None,
        startprob_init=None,
        max_iter=200,
        tol=1e-6,
        reg_covar="auto",
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.structure = structure
        self.covariance_type = covariance_type
        self.sigma = sigma
        self.mixing_bound = mixing_bound
        self.startprob = startprob
        self.window = window
        self.decoder = decoder
        self.n_init = n_init
        self.init = init
        self.means_init = means_init
        self.covariances_init = covariances_init
        self.transmat_init = transmat_init
        self.startprob_init = startprob_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(self, X, y=None, *, sequence_id=None, lengths=None):
        """Estimate the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        y : None
            Ignored.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences. Rows of equal labels are one sequence in
            their order, adjacent or not.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X = _check_size(validate_data(self, X, dtype=np.float64))
        found = find_sequences(len(X), sequence_id, lengths)
        # In one memory order, for the same bits.
        X, starts = np.ascontiguousarray(found.arrange(X)), found.starts
        if len(X) < self.n_components and (
            self.structure == "free" or self.means_init is None
        ):
            raise ValueError(
                f"n_components={self.n_components} states need as many rows; got "
                f"n_samples={len(X)}."
            )
        if self.structure == "symmetric":
            return self._fit_symmetric(X, starts)
        s, d = self.n_components, X.shape[1]
        rng = check_random_state(self.random_state)
        center = X.mean(axis=0)
        rows = _emissions.Rows(X, center)
        start = _starts.law("startprob_init", self.startprob_init, (s,))
        transition = _starts.law("transmat_init", self.transmat_init, (s, s))
        if self.startprob == "stationary" and self.startprob_init is None:
            start = _mixing.stationary_law(transition)
        floor = _starts.variance_floor(self.reg_covar, X)
        covariances = _starts.covariances(self, X, floor)
        options = _em.Options(
            self.covariance_type, self.startprob, self.window, floor, self.max_iter,
            self.tol,
        )  # fmt: skip
        runs, failure = [], None
        for k in range(self.n_init if self.means_init is None else 1):
            chain = _em.Chain(
                start, transition, _starts.means(self, X, rng), covariances
            )
            try:
                runs.append(_em.fit_chain(chain, rows, starts, options))
            except np.linalg.LinAlgError as error:
                failure = error
                continue
            if self.verbose:
                print(f"[BaumWelchHMM] start {k}: {runs[-1].history[-1]:.6f}")
        if not runs:
            raise ValueError(
                "a covariance matrix is not positive definite: a state has too few "
                "rows, or columns depend on others; increase reg_covar="
                f"{self.reg_covar}, or choose another covariance_type."
            ) from failure
        run = max(runs, key=lambda run: run.history[-1])
        chain = run.model
        if run.was_empty:
            warn_user(
                "A state lost all its rows on the way and kept its parameters; fewer "
                f"than n_components={s} states may be enough."
            )
        order = np.arange(s)
        if self.means_init is None:
            order = np.lexsort(chain.means.T[::-1])
        expanded = _emissions.expand(chain.covariances, self.covariance_type, s, d)
        self.means_ = chain.means[order]
        self.covariances_ = expanded[order]
        self.transmat_ = chain.transition[np.ix_(order, order)]
        self.startprob_ = chain.start[order]
        law = _mixing.stationary_law(self.transmat_)
        self.eps_mix_ = _mixing.mixing_constant(self.transmat_, law)
        if self.window is not None and law.min() < 1e-10:
            warn_user(
                "The stationary law, which windows start from, gives the states "
                f"{np.flatnonzero(law < 1e-10).tolist()} no probability: windows "
                "beyond the first rows leave them out."
            )
        self._store_run(run)
        return self

    def _fit_symmetric(self, X, starts):
        if self.n_components != 2:
            raise ValueError(
                "structure='symmetric' has two states; got n_components="
                f"{self.n_components} (and n_samples={X.shape[0]}, n_features="
                f"{X.shape[1]})."
            )
        if self.sigma is None:
            raise ValueError(
                "structure='symmetric' needs sigma, the known standard deviation of "
                "the outputs; got sigma=None. structure='free' estimates it."
            )
        for name in ("covariances_init", "startprob_init"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is for structure='free': the symmetric model knows it."
                )
        rng = check_random_state(self.random_state)
        stay = 0.5
        if self.transmat_init is not None:
            A = _starts.law("transmat_init", self.transmat_init, (2, 2))
            if abs(A[0, 0] - A[1, 1]) > 1e-8:
                raise ValueError(
                    "transmat_init of structure='symmetric' must have equal diagonal "
                    f"entries; got {A.tolist()}."
                )
            stay = _symmetric.project(A[0, 0], self.mixing_bound)
        runs = []
        for k in range(self.n_init if self.means_init is None else 1):
            model = _symmetric.Symmetric(_starts.symmetric_mean(self, X, rng), stay)
            runs.append(
                _symmetric.fit_symmetric(
                    model, X, starts, self.sigma, self.mixing_bound, self.max_iter,
                    self.tol, window=self.window,
                )
            )  # fmt: skip
            if self.verbose:
                print(f"[BaumWelchHMM] start {k}: {runs[-1].history[-1]:.6f}")
        run = max(runs, key=lambda run: run.history[-1])
        mean, stay = run.model.mean, run.model.stay
        large = np.flatnonzero(mean)
        if self.means_init is None and len(large) and mean[large[0]] < 0.0:
            mean = -mean
        self.means_ = np.array([-mean, mean])
        d = X.shape[1]
        self.covariances_ = np.repeat(self.sigma**2 * np.eye(d)[None], 2, axis=0)
        self.transmat_ = _symmetric.transition_matrix(stay)
        self.startprob_ = np.full(2, 0.5)
        self.eps_mix_ = float(1.0 - abs(2.0 * stay - 1.0))
        self.snr_ = float(np.linalg.norm(mean) / self.sigma)
        self._store_run(run)
        self._warn_of_mean(X, mean)
        if 1.0 - abs(2.0 * stay - 1.0) <= 1.0 - self.mixing_bound + 1e-12:
            warn_user(
                f"The probability to stay, {stay:.3g}, is at the limit that "
                f"mixing_bound={self.mixing_bound} sets; theory is about the inside."
            )
        return self

    def _path(self, X, means, n_iter, *, sequence_id=None, lengths=None):
        """Return the means along EM from given ones, (n_iter + 1, s, d)."""
        X = check_array(X, dtype=np.float64)
        found = find_sequences(len(X), sequence_id, lengths)
        X, starts = found.arrange(X), found.starts
        path = []
        if self.structure == "symmetric":
            stay = 0.5
            if self.transmat_init is not None:
                A = _starts.law("transmat_init", self.transmat_init, (2, 2))
                stay = _symmetric.project(A[0, 0], self.mixing_bound)
            _symmetric.fit_symmetric(
                _symmetric.Symmetric(means[1], stay), X, starts, self.sigma,
                self.mixing_bound, n_iter, 0.0, window=self.window,
                visit=lambda model: path.append(np.array([-model.mean, model.mean])),
            )  # fmt: skip
        else:
            s = self.n_components
            floor = _starts.variance_floor(self.reg_covar, X)
            options = _em.Options(
                self.covariance_type, self.startprob, self.window, floor, n_iter, 0.0
            )
            chain = _em.Chain(
                _starts.law("startprob_init", self.startprob_init, (s,)),
                _starts.law("transmat_init", self.transmat_init, (s, s)),
                means,
                _starts.covariances(self, X, floor),
            )
            _em.fit_chain(
                chain, _emissions.Rows(X, X.mean(axis=0)), starts, options,
                visit=lambda chain: path.append(chain.means),
            )  # fmt: skip
        return np.array(path)

    def _store_run(self, run):
        self.rho_mix_ = 1.0 - self.eps_mix_
        law = _mixing.stationary_law(self.transmat_)
        self.reversible_gap_ = _mixing.reversible_gap(self.transmat_, law)
        self.n_iter_ = len(run.changes)
        self.converged_ = run.converged
        self.history_ = np.array(run.history)
        self.contraction_rate_ = _mixing.contraction_rate(run.changes)
        if not run.converged:
            warn_user(
                f"EM did not converge in max_iter={self.max_iter} iterations; increase "
                "it, or tol.",
                ConvergenceWarning,
            )

    def _warn_of_mean(self, X, mean):
        size = np.linalg.norm(X.mean(axis=0))
        deviation = np.sqrt((mean @ mean + X.shape[1] * self.sigma**2) / len(X))
        limit = _LARGE_MEAN * np.linalg.norm(mean) + _STANDARD_ERRORS * deviation
        if size > limit:
            warn_user(
                f"The mean of X is {size:.3g} away from 0, where structure='symmetric' "
                "says it is. Subtract what is known to be the middle of the two "
                "states, or take structure='free'."
            )

    def _arrange(self, X, sequence_id, lengths):
        """Return rows, checked and sequence after sequence, and their `Sequences`."""
        check_is_fitted(self)
        X = _check_size(validate_data(self, X, dtype=np.float64, reset=False))
        found = find_sequences(len(X), sequence_id, lengths)
        return found.arrange(X), found

    def _expect(self, X, starts, *, window=None, rows_only=False):
        """Return what the E-step finds."""
        if _is_symmetric(self):
            model = _symmetric.Symmetric(self.means_[1], self.transmat_[0, 0])
            sigma = self._params_["sigma"]
            return _symmetric.expectation(model, X, starts, sigma, window=window)
        return _em.expectation(
            self._log_densities(X), starts, self.startprob_, self.transmat_,
            window=window, rows_only=rows_only,
        )  # fmt: skip

    def _log_densities(self, X):
        kind = self._params_["covariance_type"]
        if _is_symmetric(self):
            kind = "spherical"
        covariances = _emissions.compress(self.covariances_, kind)
        rows = _emissions.Rows(X, self.means_.mean(axis=0))
        return _emissions.log_densities(rows, self.means_, covariances, kind)

    def score_samples(self, X, *, sequence_id=None, lengths=None):
        """Return log p(x_t | x_<t) of each row, within its sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Their sum is the log-likelihood.
        """
        X, sequences = self._arrange(X, sequence_id, lengths)
        found = self._expect(X, sequences.starts, rows_only=True)
        return sequences.restore(found.rows)

    def score(self, X, y=None, *, sequence_id=None, lengths=None):
        """Return the log-likelihood per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        y : None
            Ignored.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        score : float
            Mean of `score_samples`; `window` does not matter here.
        """
        rows = self.score_samples(X, sequence_id=sequence_id, lengths=lengths)
        return float(rows.mean())

    def predict_proba(self, X, *, sequence_id=None, lengths=None):
        """Return the states' probabilities given the sequence (or the window).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        p : ndarray of shape (n_samples, n_components)
            Smoothed probabilities.
        """
        X, sequences = self._arrange(X, sequence_id, lengths)
        found = self._expect(X, sequences.starts, window=self._params_["window"])
        if _is_symmetric(self):
            return sequences.restore(_symmetric.probabilities(found))
        return sequences.restore(found.posterior)

    def filter_proba(self, X, *, sequence_id=None, lengths=None):
        """Return the states' probabilities given the rows of their sequence so far.

        .. versionadded:: 0.2

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        p : ndarray of shape (n_samples, n_components)
            Filtered probabilities: those of a row do not depend on later rows; of the
            last row of a sequence they are those of `predict_proba`.
        """
        X, sequences = self._arrange(X, sequence_id, lengths)
        p = _em.filtering(
            self._log_densities(X), sequences.starts, self.startprob_, self.transmat_
        )
        return sequences.restore(p)

    def predict(self, X, *, sequence_id=None, lengths=None):
        """Return the states: of largest probability each, or the likeliest sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        states : ndarray of shape (n_samples,)
            Numbers of states.
        """
        check_is_fitted(self)
        if self._params_["decoder"] == "viterbi":
            return self.decode(X, sequence_id=sequence_id, lengths=lengths)[1]
        p = self.predict_proba(X, sequence_id=sequence_id, lengths=lengths)
        return p.argmax(axis=1)

    def decode(self, X, *, sequence_id=None, lengths=None):
        """Return the most probable states (Viterbi).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        log_prob : float
            Joint log-density of rows and states.
        states : ndarray of shape (n_samples,)
            Numbers of states.
        """
        X, sequences = self._arrange(X, sequence_id, lengths)
        states = np.empty(len(X), dtype=np.int64)
        with np.errstate(divide="ignore"):
            log_prob = _core.viterbi(
                self._log_densities(X), sequences.starts,
                np.log(np.ascontiguousarray(self.startprob_, dtype=np.float64)),
                np.log(np.ascontiguousarray(self.transmat_, dtype=np.float64)), states,
            )  # fmt: skip
        if not np.isfinite(log_prob):
            raise ValueError(
                "no sequence of states has a positive density: the data are too far "
                "from the model, or impossible under its transitions."
            )
        return float(log_prob), sequences.restore(states)

    def sample(self, n_samples=1, random_state=None):
        """Draw a sequence from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Its length.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        states : ndarray of shape (n_samples,)
            Their states.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer; got {n_samples}.")
        rng = check_random_state(random_state)
        states = _mixing.draw_states(self.startprob_, self.transmat_, n_samples, rng)
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        X = self.means_[states]
        for j, root in enumerate(np.linalg.cholesky(self.covariances_)):
            own = states == j
            X[own] += noise[own] @ root.T
        return X, states

    def truncation_bound(self, k):
        """Return by how much windows change the posterior of a state at most.

        The sum over states z of abs(p(z_i = z | x) - p(z_i = z | x_{i-k}, ...,
        x_{i+k})) for the fitted model, whatever the rows and whatever law the window
        starts from: deterministic, and without unknown constants.

        .. versionchanged:: 0.2
           For every chain, not for the symmetric one only.

        Parameters
        ----------
        k : int
            Reach of the window.

        Returns
        -------
        bound : float
            At most 2, which says nothing; so it is where a transition is impossible.
            A single probability changes by half of it at most.

        Notes
        -----
        Rows multiply the forward and backward vectors by diagonal matrices, which does
        not change Hilbert's distance, and steps of the chain multiply them by A, which
        shrinks it by Birkhoff's coefficient tau = tanh(Delta / 4); Delta is the
        diameter of A, the largest logarithm of A(i, j) A(k, l) / (A(i, l) A(k, j)). The
        window's vectors are at most D = Delta (tau^(k-1) + tau^k) away, and laws at
        distance D differ by at most 2 tanh(D / 4). Of the symmetric model it is
        2 abs(beta) rho^k, which is sharper.
        """
        check_is_fitted(self)
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 0:
            raise ValueError(f"k must be an integer, 0 or more; got {k!r}.")
        if not _is_symmetric(self):
            return _mixing.truncation_bound(self.transmat_, int(k))
        model = _symmetric.Symmetric(self.means_[1], self.transmat_[0, 0])
        return _symmetric.truncation_bound(model, int(k))


def _check_size(X):
    """Refuse values whose squares overflow."""
    if X.size and np.abs(X).max() > _LARGEST:
        raise ValueError(
            f"X has a value of {np.abs(X).max():.3g}, too far from any model: values "
            f"beyond {_LARGEST:g} are not computed with."
        )
    return X
