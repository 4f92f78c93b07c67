"""Hidden Markov models, by Baum-Welch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbounds._base import (
    KnowsItsError,
    SkboundsEstimator,
    fit_from_scratch,
    validate_floats,
    warn_user,
)
from skbounds._core import hmm as _core
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import check_array
from skbounds.hmm import _em, _errors, _fit, _forecast, _mixing, _starts, _symmetric
from skbounds.hmm._criteria import InformationCriteria
from skbounds.hmm._emissions import Categorical, Gaussian, Poisson, Student, reorder
from skbounds.hmm._forecast import HMMForecast
from skbounds.hmm._sequences import find_sequences

# A mean so many times its standard error, and this share of |mu|, is no mean of 0.
_STANDARD_ERRORS, _LARGE_MEAN = 4.0, 0.5


def _is_symmetric(self):
    found = self._params_ if hasattr(self, "_params_") else vars(self)
    return found["structure"] == "symmetric"


class BaumWelchHMM(KnowsItsError, InformationCriteria, DensityMixin, SkboundsEstimator):
    """Hidden Markov model that says how far it has converged.

    Expectation maximisation (Baum-Welch), for any number of states or for the
    symmetric two-state model of the theory, whose E-step has a closed form. Outputs
    are Gaussian, Student's t, counts or categories, with entries missing or not. Rows
    are in the order of time; several sequences stand one after the other.

    Read more in the :ref:`User Guide <hmm>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_components : int, default=2
        Number of states.
    emission : {"gaussian", "student", "poisson", "categorical"}, default="gaussian"
        Law of a row given its state: N(m, S); Student's t with location m, scale
        matrix S and degrees of freedom that are estimated, for heavy tails; counts with
        rates m; categories (numbers). Columns of the last two are independent given
        the state.

        .. versionadded:: 0.2
    structure : {"free", "reversible", "symmetric"}, default="free"
        "reversible": transition matrices with pi_j A(j, k) = pi_k A(k, j), (2.2).
        "symmetric": two states with outputs N(-mu, sigma^2 I) and N(mu, sigma^2 I) and
        the same probability zeta to stay, started from the law (1/2, 1/2).
    covariance_type : {"full", "diag", "spherical", "tied"}, default="diag"
        What covariance (or scale) matrices are: any, diagonal, multiples of the
        identity, or one for all states. Not read by the symmetric model, nor for counts
        and categories.
    sigma : float, default=None
        The known standard deviation of the symmetric model's outputs; not read by the
        other.
    mixing_bound : float, default=0.9
        Largest ``abs(2 zeta - 1)`` of the symmetric model; zeta is projected, (2.30b).
    startprob : {"free", "stationary"}, default="free"
        Law of a sequence's first state: free, or the stationary law of the transition
        matrix, which is then estimated from the starts as well (rows of states that no
        sequence leaves stay as they are). Not read by the symmetric model.
    window : int, default=None
        Posteriors are given the rows at most so far away, (2.13). Scores and Viterbi
        are of all rows. None: all rows.
    decoder : {"map", "viterbi"}, default="map"
        States that `predict` returns: of largest posterior probability each, or the
        most probable sequence of states.
    n_init : int, default=1
        Number of starts, which differ in their outputs and transitions. Each runs for a
        few iterations, the best ones for some more, and the best of these to the end;
        those with degenerate states come last, but for those whose states are all the
        same. One if `means_init` or `emission_proba_init` is given.
    init : {"kmeans", "random"}, default="kmeans"
        Means at the first start: centres of k-means, in lexicographic order, or rows
        drawn at random.
    means_init : array-like of shape (n_components, n_features), default=None
        Means (locations, rates) at the start; of the symmetric model also mu alone, of
        shape (n_features,). States keep this order.
    covariances_init : array-like of shape (n_components, n_features, n_features), \
            default=None
        Covariance (scale) matrices at the start, of which `covariance_type` keeps what
        it has. None: the variances of the data's columns.
    df_init : float or array-like of shape (n_components,), default=None
        Degrees of freedom at the start. None: 10.
    emission_proba_init : list of array-like of shape (n_components, n_categories), \
            default=None
        Probabilities of the categories of each column at the start; the array itself
        for a single column. States keep this order.
    transmat_init : array-like of shape (n_components, n_components), default=None
        Transition matrix at the start; zeros stay. States keep this order, and clusters
        are numbered to suit it. None: all entries equal.
    startprob_init : array-like of shape (n_components,), default=None
        Law of the first state at the start; zeros stay, unless it is to be the
        stationary law. States keep this order. None: all entries equal.
    fixed : tuple of str, default=()
        Parameters that stay as they are given at the start: "means", "covariances",
        "df", "emission_proba", "transmat", "startprob".
    categories : "auto" or list of array-like, default="auto"
        Categories of each column. "auto": those in the data.
    transmat_prior : float or array-like of shape (n_components, n_components), \
            default=0.0
        Transitions that are counted in addition to those in the data: a Dirichlet prior
        of the rows, whose parameters are these plus one.
    sticky : float, default=0.0
        Added to the diagonal of `transmat_prior`: states that last.
    variance_prior : tuple of float, default=None
        Shape and scale of an inverse-gamma prior of the variances; the scale in units
        of the columns' variances. None: no prior.
    max_iter : int, default=200
        Largest number of M-steps.
    tol : "auto" or float, default="auto"
        "auto": EM has converged once no more than 0.005 of log-likelihood is left to
        gain, as the last gains tell: the estimates are then about a tenth of a
        standard error from where EM ends. A number: once the log-likelihood per row
        changes by less.

        .. versionchanged:: 0.2
           "auto" was 1e-6.
    reg_covar : "auto" or float, default="auto"
        Added to the variances; not read by the symmetric model. "auto": a millionth of
        each column's variance, so that units do not matter (of a constant column a
        millionth of its square, or of 1); for Student's t of the variance of the
        column's bulk.
    n_jobs : int, default=None
        Number of workers over groups of sequences: threads, or what the backend of
        ``joblib.parallel_config`` has. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    verbose : int, default=0
        Print the log-likelihood of every start.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Means of the outputs; locations of Student's t, rates of counts; not of
        categories. States are in lexicographic order of their means, unless
        `means_init`, `transmat_init`, `startprob_init` or `states` give them an order.
        Of the symmetric model the second is mu, whose first coordinate that is not 0
        is positive, unless `means_init` is given.
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        Covariance matrices of the outputs, or scale matrices of Student's t.
    df_ : ndarray of shape (n_components,)
        Degrees of freedom of Student's t.
    emission_proba_ : list of ndarray of shape (n_components, n_categories)
        Probabilities of the categories of each column.
    categories_ : list of ndarray
        The categories of each column.
    transmat_ : ndarray of shape (n_components, n_components)
        Transition probabilities, from row to column.
    startprob_ : ndarray of shape (n_components,)
        Law of a sequence's first state.
    n_iter_ : int
        Number of M-steps of the best start.
    converged_ : bool
        Whether it converged, by `tol`.
    history_ : ndarray of shape (n_iter + 1,)
        Log-likelihood of all rows, at the start and after each M-step; with the
        logarithms of the priors, up to constants, if there are any.
    remaining_gain_ : float
        Estimate of what `history_` would still gain. Estimates are about
        ``sqrt(2 * remaining_gain_)`` standard errors from where EM ends.
    optimization_error_ : float
        Estimate of the distance to where EM ends: rate / (1 - rate) times the last
        change of the means (in standard deviations of the columns) and transition
        probabilities. nan where there is no rate.
    standard_errors_ : dict
        Standard errors of "means", "covariances", "df", "emission_proba", "transmat"
        and "startprob", each in the shape of the attribute, from the observed
        information of the likelihood (priors left out); nan for what is fixed or on the
        boundary. Computed at the first access, from the rows of `fit`, which are kept
        by reference: do not change them before.
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
    HMMForecast : What `forecast` returns.
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
        "emission": [StrOptions({"gaussian", "student", "poisson", "categorical"})],
        "structure": [StrOptions({"free", "reversible", "symmetric"})],
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
        "df_init": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "emission_proba_init": ["array-like", list, None],
        "transmat_init": ["array-like", None],
        "startprob_init": ["array-like", None],
        "fixed": [tuple, list, set, frozenset, str],
        "categories": [StrOptions({"auto"}), list, tuple, np.ndarray],
        "transmat_prior": [Interval(Real, 0, None, closed="left"), "array-like"],
        "sticky": [Interval(Real, 0, None, closed="left")],
        "variance_prior": [tuple, list, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "reg_covar": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _lazy_attributes = ("standard_errors_",)

    def __init__(
        self,
        n_components: int = 2,
        *,
        emission: Literal["gaussian", "student", "poisson", "categorical"] = "gaussian",
        structure: Literal["free", "reversible", "symmetric"] = "free",
        covariance_type: Literal["full", "diag", "spherical", "tied"] = "diag",
        sigma: float | None = None,
        mixing_bound: float = 0.9,
        startprob: Literal["free", "stationary"] = "free",
        window: int | None = None,
        decoder: Literal["map", "viterbi"] = "map",
        n_init: int = 1,
        init: Literal["kmeans", "random"] = "kmeans",
        means_init: ArrayLike | None = None,
        covariances_init: ArrayLike | None = None,
        df_init: float | ArrayLike | None = None,
        emission_proba_init: Sequence[ArrayLike] | np.ndarray | None = None,
        transmat_init: ArrayLike | None = None,
        startprob_init: ArrayLike | None = None,
        fixed: Collection[str] = (),
        categories: Literal["auto"] | Sequence[ArrayLike] | np.ndarray = "auto",
        transmat_prior: float | ArrayLike = 0.0,
        sticky: float = 0.0,
        variance_prior: Sequence[float] | None = None,
        max_iter: int = 200,
        tol: Literal["auto"] | float = "auto",
        reg_covar: Literal["auto"] | float = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.emission = emission
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
        self.df_init = df_init
        self.emission_proba_init = emission_proba_init
        self.transmat_init = transmat_init
        self.startprob_init = startprob_init
        self.fixed = fixed
        self.categories = categories
        self.transmat_prior = transmat_prior
        self.sticky = sticky
        self.variance_prior = variance_prior
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _knowledge(self):
        if not np.isfinite(self.remaining_gain_):
            return "how much log-likelihood is left to gain is not known"
        return f"about {self.remaining_gain_:.2g} of log-likelihood left to gain"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self):
        # Rows of the fit stay where they are.
        return {k: v for k, v in super().__getstate__().items() if k != "_problem_"}

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        states: ArrayLike | None = None,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Estimate the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the order of time, sequence after sequence; nan for missing entries,
            which are integrated out. Rows without any entry are steps in time.
        y : None
            Ignored.
        states : array-like of int of shape (n_samples,), default=None
            States that are known, -1 where they are not. `history_` is then the
            log-likelihood of rows and known states.
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
        X = _fit.check_size(validate_floats(self, X, reset=True))
        nothing = []
        if np.isnan(X.sum()):
            nothing = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
        if nothing:
            raise ValueError(f"X has columns without any value: {nothing}.")
        found = find_sequences(len(X), sequence_id, lengths)
        # In one memory order, for the same bits.
        X, starts = np.ascontiguousarray(found.arrange(X)), found.starts
        if len(X) < self.n_components and (
            self.structure != "symmetric" or self.means_init is None
        ):
            raise ValueError(
                f"n_components={self.n_components} states need as many rows; got "
                f"n_samples={len(X)}."
            )
        states = check_states(states, len(X), self.n_components)
        if states is not None:
            states = found.arrange(states)
        if self.structure == "symmetric":
            return self._fit_symmetric(X, starts, states)
        s = self.n_components
        rng = check_random_state(self.random_state)

        def report(k, value):
            if self.verbose:
                print(f"[BaumWelchHMM] start {k}: {value:.6f}")

        arguments = (self, X, starts, states, rng)
        n_workers = effective_n_jobs(self.n_jobs)
        if n_workers == 1 or len(starts) == 2:
            end = _fit.fit_general(*arguments, None, 1, report=report)
        else:
            with _em.open_pool(self.n_jobs, n_workers) as pool:
                end = _fit.fit_general(*arguments, pool, n_workers, report=report)
        chain, family = end.climb.model, end.problem.family
        order = np.arange(s)
        if not end.keeps_numbers:
            order = family.order(chain.law)
        if end.climb.was_empty:
            warn_user(
                "A state lost all its rows on the way and kept its parameters; fewer "
                f"than n_components={s} states may be enough."
            )
        if len(end.degenerate):
            named = np.flatnonzero(np.isin(order, end.degenerate)).tolist()
            weight = end.climb.sums[0].weight[order][named]
            warn_user(
                f"States {named} are degenerate: in some direction their rows (about "
                f"{np.round(weight, 1).tolist()} in number) have hardly any variance "
                f"but what reg_covar={self.reg_covar!r} adds. The likelihood says "
                "little then; try fewer states, another covariance_type, or "
                "variance_prior."
            )
        for name, value in self._attributes_of(chain, family, order).items():
            setattr(self, name, value)
        law = _mixing.stationary_law(self.transmat_)
        self.eps_mix_ = _mixing.mixing_constant(self.transmat_, law)
        if self.window is not None and law.min() < 1e-10:
            warn_user(
                "The stationary law, which windows start from, gives the states "
                f"{np.flatnonzero(law < 1e-10).tolist()} no probability: windows "
                "beyond the first rows leave them out."
            )
        # Rows by reference; what was made of them is made again when it is needed.
        data = (X, starts, states)
        self._problem_ = (*data, family, end.problem.options, chain, order)
        self._store_run(end.climb, law)
        return self

    def _attributes_of(self, chain, family, order):
        """Return what predictions need, in an order of the states."""
        found = {
            "transmat_": chain.transition[np.ix_(order, order)],
            "startprob_": chain.start[order],
            "_params_": self.get_params(deep=False),
        }
        for name, value in reorder(family.public(chain.law), order).items():
            found[f"{name}_"] = value
        if isinstance(family, Categorical):
            found["categories_"] = family.categories
        return found

    def _symmetric_attributes(self, model):
        """Return what predictions need of the symmetric model."""
        d = len(model.mean)
        return {
            "means_": np.array([-model.mean, model.mean]),
            "covariances_": np.repeat(self.sigma**2 * np.eye(d)[None], 2, axis=0),
            "transmat_": _symmetric.transition_matrix(model.stay),
            "startprob_": np.full(2, 0.5),
            "_params_": self.get_params(deep=False),
        }

    def _fit_symmetric(self, X, starts, states):
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
        for name in (
            "covariances_init",
            "df_init",
            "emission_proba_init",
            "startprob_init",
            "variance_prior",
        ):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is for structure='free': the symmetric model knows it."
                )
        others = {
            "emission": self.emission != "gaussian",
            "states": states is not None,
            "fixed": len(self.fixed) > 0,
            "sticky": self.sticky != 0.0,
            "transmat_prior": np.any(np.asarray(self.transmat_prior) != 0.0),
        }
        for name, is_given in others.items():
            if is_given:
                raise ValueError(f"{name} is not for structure='symmetric'.")
        rng = check_random_state(self.random_state)
        stay = self._first_stay()
        problem = _symmetric.SymmetricModel(
            X, starts, self.sigma, self.mixing_bound, self.window
        )
        runs = []
        for k in range(self.n_init if self.means_init is None else 1):
            mean = _starts.symmetric_mean(self, X, rng, k)
            climb = _em.Climb(
                problem,
                _symmetric.Symmetric(mean, stay),
                publish=self._symmetric_attributes,
            )
            runs.append(climb.run(self.max_iter, self.tol))
            if self.verbose:
                print(f"[BaumWelchHMM] start {k}: {runs[-1].history[-1]:.6f}")
        run = max(runs, key=lambda run: run.history[-1])
        mean, stay = run.model.mean, run.model.stay
        large = np.flatnonzero(mean)
        if self.means_init is None and len(large) and mean[large[0]] < 0.0:
            mean = -mean
        found = self._symmetric_attributes(_symmetric.Symmetric(mean, stay))
        for name, value in found.items():
            setattr(self, name, value)
        self.eps_mix_ = float(1.0 - abs(2.0 * stay - 1.0))
        self.snr_ = float(np.linalg.norm(mean) / self.sigma)
        self._problem_ = (X, starts, _symmetric.Symmetric(mean, stay))
        self._store_run(run, self.startprob_)
        self._warn_of_mean(X, mean)
        if 1.0 - abs(2.0 * stay - 1.0) <= 1.0 - self.mixing_bound + 1e-12:
            warn_user(
                f"The probability to stay, {stay:.3g}, is at the limit that "
                f"mixing_bound={self.mixing_bound} sets; theory is about the inside."
            )
        return self

    def _first_stay(self):
        """Return zeta at the start of the symmetric model."""
        if self.transmat_init is None:
            return 0.5
        A = _starts.law("transmat_init", self.transmat_init, (2, 2))
        if abs(A[0, 0] - A[1, 1]) > 1e-8:
            raise ValueError(
                "transmat_init of structure='symmetric' must have equal diagonal "
                f"entries; got {A.tolist()}."
            )
        return _symmetric.project(A[0, 0], self.mixing_bound)

    def _path(self, X, means, n_iter, *, sequence_id=None, lengths=None):
        """Return the means along EM from given ones, (n_iter + 1, s, d)."""
        X = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        found = find_sequences(len(X), sequence_id, lengths)
        X, starts = np.ascontiguousarray(found.arrange(X)), found.starts
        path = []
        if self.structure == "symmetric":
            _em.Climb(
                _symmetric.SymmetricModel(
                    X, starts, self.sigma, self.mixing_bound, self.window
                ),
                _symmetric.Symmetric(means[1], self._first_stay()),
                visit=lambda model: path.append(np.array([-model.mean, model.mean])),
            ).run(n_iter, 0.0)
        else:
            hmm = clone(self).set_params(means_init=means)
            problem, guesses = _fit.general_problem(
                hmm, X, starts, None, check_random_state(0)
            )
            _em.Climb(
                problem, _em.Chain(*guesses(0)),
                visit=lambda chain: path.append(chain.law["means"]),
            ).run(n_iter, 0.0)  # fmt: skip
        return np.array(path)

    def _store_run(self, run, law):
        self.rho_mix_ = 1.0 - self.eps_mix_
        self.reversible_gap_ = _mixing.reversible_gap(self.transmat_, law)
        self.n_iter_ = len(run.changes)
        self.converged_ = run.converged
        self.history_ = np.array(run.history)
        self.contraction_rate_ = _mixing.contraction_rate(run.changes)
        self.optimization_error_ = _mixing.optimization_error(
            run.changes, self.contraction_rate_
        )
        self.remaining_gain_ = _mixing.remaining_gain(run.history)
        if not (run.converged or run.stopped):
            warn_user(
                f"EM did not converge in max_iter={self.max_iter} iterations: about "
                f"{self.remaining_gain_:.2g} of log-likelihood may be left to gain. "
                "Increase max_iter, or tol.",
                ConvergenceWarning,
            )
        elif run.converged and self.remaining_gain_ > _em.ENOUGH:
            warn_user(
                f"tol={self.tol} ended EM where about {self.remaining_gain_:.2g} of "
                "log-likelihood is left to gain, "
                f"{np.sqrt(2.0 * self.remaining_gain_):.2g} standard errors; decrease "
                "it, or take tol='auto'.",
                ConvergenceWarning,
            )

    @property
    def standard_errors_(self) -> dict[str, Any]:
        """Standard errors of the estimates, from the observed information."""
        return self.standard_errors()

    def standard_errors(
        self, kind: Literal["observed", "sandwich"] = "observed"
    ) -> dict[str, Any]:
        """Return standard errors of the estimates.

        They are about the model that is fitted, at the maximum where EM has ended, and
        come from the rows of `fit`, which are not pickled.

        .. versionadded:: 0.2

        Parameters
        ----------
        kind : {"observed", "sandwich"}, default="observed"
            From the observed information; or from the sandwich of its inverse and the
            scores of the rows (of the sequences, if there are 20 or more), which holds
            where the outputs' law is wrong, as long as rows' scores are not correlated.

        Returns
        -------
        errors : dict
            See `standard_errors_`.
        """
        check_is_fitted(self)
        if kind not in ("observed", "sandwich"):
            raise ValueError(f"kind must be 'observed' or 'sandwich'; got {kind!r}.")
        cache = self.__dict__.setdefault("_standard_errors_", {})
        if kind not in cache:
            if "_problem_" not in vars(self):
                raise AttributeError(
                    "standard errors are computed from the rows of fit, which pickles "
                    "do not have; read standard_errors_ before."
                )
            cache[kind] = self._find_errors(kind)
        return cache[kind]

    def _find_errors(self, kind):
        if _is_symmetric(self):
            if kind != "observed":
                raise ValueError("structure='symmetric' has kind='observed' only.")
            X, starts, model = self._problem_
            problem = _symmetric.SymmetricModel(
                X, starts, self._params_["sigma"], self._params_["mixing_bound"]
            )
            errors = _errors.symmetric_errors(problem, model)
            d = self.means_.shape[1]
            return {
                "means": np.array([errors[:d], errors[:d]]),
                "covariances": np.full((2, d, d), np.nan),
                "transmat": np.full((2, 2), errors[d]),
                "startprob": np.full(2, np.nan),
            }
        X, starts, states, family, options, model, order = self._problem_
        groups = _em.make_groups(X, starts, family, states)
        problem = _em.GeneralModel(family, groups, options, _em.Distributor())
        found = _errors.standard_errors(problem, model, kind)
        chain = {
            "transmat": found.pop("transition")[np.ix_(order, order)],
            "startprob": found.pop("start")[order],
        }
        outputs = reorder(problem.family.public(found), order)
        if "covariances" in outputs:
            # What a type of covariance does not estimate.
            kinds = self._params_["covariance_type"]
            if kinds in ("diag", "spherical"):
                off = ~np.eye(self.n_features_in_, dtype=bool)
                outputs["covariances"][:, off] = np.nan
        return {**outputs, **chain}

    def _warn_of_mean(self, X, mean):
        size = np.linalg.norm(np.nanmean(X, axis=0))
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
        X = _fit.check_size(validate_floats(self, X, reset=False))
        self._family().check_rows(X)
        found = find_sequences(len(X), sequence_id, lengths)
        return found.arrange(X), found

    def _family(self):
        """Return the kind of the outputs, and the law as attributes have it."""
        emission = self._params_["emission"]
        if emission == "poisson":
            return Poisson()
        if emission == "categorical":
            return Categorical(self.categories_)
        kind = self._params_["covariance_type"]
        if _is_symmetric(self):
            kind = "spherical"
        family = Gaussian if emission == "gaussian" else Student
        return family(kind, self.means_.mean(axis=0))

    def _law(self, family=None):
        names = (family or self._family()).names
        return {name: getattr(self, f"{name}_") for name in names}

    def _expect(self, X, starts, *, window=None, rows_only=False):
        """Return what the E-step finds."""
        if _is_symmetric(self):
            model = _symmetric.Symmetric(self.means_[1], self.transmat_[0, 0])
            rows = _symmetric.Observed(X, self._params_["sigma"])
            return _symmetric.expectation(model, rows, starts, window=window)
        return _em.expectation(
            self._log_densities(X), starts, self.startprob_, self.transmat_,
            window=window, rows_only=rows_only,
        )  # fmt: skip

    def _log_densities(self, X):
        family = self._family()
        law = family.private(self._law(family))
        return family.log_densities(family.prepare(X), law)

    def score_samples(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> np.ndarray:
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

    def score(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> float:
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

    def predict_proba(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> np.ndarray:
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
        # Sums of products may be above 1 by a rounding.
        return sequences.restore(np.minimum(found.posterior, 1.0))

    def filter_proba(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> np.ndarray:
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
        return sequences.restore(np.minimum(p, 1.0))

    def predict(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> np.ndarray:
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

    def decode(
        self,
        X: MatrixLike,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> tuple[float, np.ndarray]:
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

    def forecast(
        self,
        X: MatrixLike,
        steps: int = 1,
        *,
        sequence_id: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> HMMForecast:
        """Return the law of the rows that follow.

        .. versionadded:: 0.2

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows so far, in the order of time, sequence after sequence.
        steps : int, default=1
            Number of rows ahead.
        sequence_id : array-like of shape (n_samples,), default=None
            Labels of the rows' sequences.
        lengths : array-like of shape (n_sequences,), default=None
            Numbers of rows of the sequences, instead.

        Returns
        -------
        forecast : HMMForecast
            Laws of the states, means, covariances and quantiles of the next rows, one
            forecast for each sequence if `sequence_id` or `lengths` is given. Its
            `update` takes in new rows.
        """
        X, sequences = self._arrange(X, sequence_id, lengths)
        steps = _forecast.check_steps(steps)
        laws = _forecast.last_laws(
            self._log_densities(X), sequences.starts, self.startprob_, self.transmat_
        )
        if sequence_id is None and lengths is None:
            laws = laws[0]
        return HMMForecast(
            outputs=self._family(), law=self._law(), transition=self.transmat_,
            filtered=laws, steps=steps,
        )  # fmt: skip

    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        n_sequences: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw sequences from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Length of each.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.
        n_sequences : int, default=1
            Their number. They stand one after the other;
            ``np.repeat(np.arange(n_sequences), n_samples)`` is their ``sequence_id``.

            .. versionadded:: 0.2

        Returns
        -------
        X : ndarray of shape (n_sequences * n_samples, n_features)
            Rows.
        states : ndarray of shape (n_sequences * n_samples,)
            Their states.
        """
        check_is_fitted(self)
        for name, value in (("n_samples", n_samples), ("n_sequences", n_sequences)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a positive integer; got {value}.")
        rng = check_random_state(random_state)
        states = _mixing.draw_states(
            self.startprob_, self.transmat_, n_samples, n_sequences, rng
        )
        return self._family().draw(self._law(), states, rng), states

    def truncation_bound(self, k: int) -> float:
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


def check_states(states, n_samples, n_components):
    """Return states that are known, or None."""
    if states is None:
        return None
    found = np.asarray(states)
    if found.shape != (n_samples,):
        raise ValueError(
            f"states must have one entry for each of the {n_samples} rows; got shape "
            f"{found.shape}."
        )
    good = found.dtype.kind in "iuf" and np.isfinite(found).all()
    if not good or (found != np.round(found)).any():
        raise ValueError("states must be integers, -1 where they are not known.")
    if (found < -1).any() or (found >= n_components).any():
        bad = found[(found < -1) | (found >= n_components)][0]
        raise ValueError(
            f"states must be -1 (not known) or numbers of the n_components="
            f"{n_components} states; got {bad}."
        )
    return found.astype(np.intp)
