"""The fit of the general model: data, starts, and which of them goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState
from sklearn.base import clone

from skbounds._callbacks import unheard
from skbounds.hmm import _columns, _em, _starts
from skbounds.hmm._emissions import Categorical, Gaussian, Poisson, Student

# Iterations of each of several starts; how many of them go on, and to which iteration;
# how many of these go on to the end.
_SHORT, _KEPT, _LONGER, _ENDS = 10, 4, 30, 2
# Squares of larger values, summed, overflow.
_LARGEST = 1e140
PARAMETERS = ("startprob", "transmat", "means", "covariances", "df", "emission_proba")
_INITIAL = {name: f"{name}_init" for name in PARAMETERS}


def make_family(hmm, X, bulk, variances):
    """Return the kind of outputs that an estimator's parameters say, for rows X.

    `bulk` are the rows without what heavy tails have far away, and `variances` those of
    its columns.
    """
    if hmm.emission == "poisson":
        return Poisson()
    if hmm.emission == "categorical":
        return Categorical(find_categories(hmm.categories, X))
    kind = Gaussian if hmm.emission == "gaussian" else Student
    unit = _starts.column_variances(X) if hmm.variance_prior else None
    return kind(
        hmm.covariance_type,
        _columns.means(_columns.filled(bulk)),
        _starts.variance_floor(hmm.reg_covar, bulk, variances),
        hmm.variance_prior,
        unit,
    )


def find_categories(given, X):
    """Return the categories of the columns, in ascending order."""
    if isinstance(given, str):
        return [np.unique(column[~np.isnan(column)]) for column in X.T]
    d = X.shape[1]
    if len(given) != d:
        raise ValueError(
            f"categories must have one list for each of the {d} columns; got "
            f"{len(given)}."
        )
    found = []
    for k, names in enumerate(given):
        names = np.asarray(names, dtype=np.float64)
        if names.ndim != 1 or not len(names) or len(np.unique(names)) < len(names):
            raise ValueError(
                f"categories of column {k} must be different numbers; got "
                f"{names.tolist()}."
            )
        found.append(np.sort(names))
    return found


def check_size(X):
    """Refuse values whose squares overflow."""
    largest = max(X.max(initial=0.0), -X.min(initial=0.0))
    if np.isnan(largest):
        largest = np.abs(X[~np.isnan(X)]).max(initial=0.0)
    if largest > _LARGEST:
        raise ValueError(
            f"X has a value of {largest:.3g}, too far from any model: values "
            f"beyond {_LARGEST:g} are not computed with."
        )
    return X


def check_fixed(hmm, family):
    """Return the names of the parameters that stay, all of which must be given."""
    fixed = hmm.fixed
    if isinstance(fixed, str):
        fixed = (fixed,)
    allowed = ("startprob", "transmat", *family.names)
    for name in fixed:
        if name not in allowed:
            raise ValueError(
                f"fixed has {name!r}, which is not among the parameters {allowed} of "
                f"emission={hmm.emission!r}."
            )
        if getattr(hmm, _INITIAL[name]) is None:
            raise ValueError(f"fixed={name!r} needs {_INITIAL[name]}; got None.")
    if "startprob" in fixed and hmm.startprob == "stationary":
        raise ValueError(
            "fixed='startprob' and startprob='stationary' contradict each other."
        )
    return frozenset(fixed)


def check_prior(prior):
    """Refuse what is no shape and scale of an inverse-gamma law."""
    if prior is None:
        return
    good = np.shape(prior) == (2,)
    good = good and np.isfinite(prior).all() and prior[0] >= 0.0 and prior[1] >= 0.0
    if not good:
        raise ValueError(
            f"variance_prior must be (shape, scale), both 0 or more; got {prior!r}."
        )


def pseudo_counts(hmm, transition):
    """Return pairs that the prior of the transitions has seen, or None."""
    s = hmm.n_components
    given = np.asarray(hmm.transmat_prior, dtype=np.float64)
    if given.shape not in ((), (s, s)) or not (
        np.isfinite(given).all() and (given >= 0.0).all()
    ):
        raise ValueError(
            "transmat_prior must be numbers of pairs, 0 or more, one or of shape "
            f"{(s, s)}; got {hmm.transmat_prior!r}."
        )
    if not (np.isfinite(hmm.sticky) and hmm.sticky >= 0.0):
        raise ValueError(f"sticky must be 0 or more; got {hmm.sticky!r}.")
    pseudo = np.broadcast_to(given, (s, s)) + hmm.sticky * np.eye(s)
    # What is impossible stays so.
    pseudo = np.where(transition > 0.0, pseudo, 0.0)
    return pseudo if pseudo.any() else None


@dataclass
class Fitted:
    """The end of the best start.

    Attributes
    ----------
    climb : Climb
    problem : GeneralModel
    degenerate : ndarray of int
        States whose variances are those that are added.
    keeps_numbers : bool
        Whether states have numbers of the user's.
    """

    climb: _em.Climb
    problem: _em.GeneralModel
    degenerate: np.ndarray
    keeps_numbers: bool


def fit_general(hmm, X, starts, states, rng, pool, n_workers, *, report=None):
    """Fit the general model.

    Parameters
    ----------
    hmm : BaumWelchHMM
        Its parameters are read.
    X : ndarray of shape (n, d)
        Sequence after sequence.
    starts : ndarray of int
    states : ndarray of int of shape (n,) or None
    rng : RandomState
    pool, n_workers
        See `Distributor`.
    report : callable or None
        Called with the number of each start and its log-likelihood.
    """
    problem, guesses = general_problem(hmm, X, starts, states, rng, pool, n_workers)
    family = problem.family
    least = _least_variances(hmm, family, X)
    n_init = 1 if guesses.complete else hmm.n_init
    climbs, failure = [], None

    def run(climb, n_iter, tol):
        nonlocal failure
        try:
            return climb.run(n_iter, tol)
        except np.linalg.LinAlgError as error:
            failure = error
            return None

    def broken(climb):
        return family.degenerate(climb.model.law, least)

    def rank(climb):
        return len(broken(climb)) > 0, -climb.history[-1]

    def publish(chain):
        return hmm._attributes_of(chain, family, np.arange(len(chain.start)))

    several = n_init > 1
    for k in range(n_init):
        climb = run(
            _em.Climb(problem, _em.Chain(*guesses(k)), publish=publish),
            min(_SHORT, hmm.max_iter) if several else hmm.max_iter,
            hmm.tol,
        )
        if climb is not None:
            climbs.append(climb)
            if report is not None:
                report(k, climb.history[-1])
    if several and climbs:
        climbs = _race(climbs, run, rank, hmm.max_iter, hmm.tol)
    if not climbs:
        raise ValueError(
            "a covariance matrix is not positive definite: a state has too few rows, "
            f"or columns depend on others; increase reg_covar={hmm.reg_covar}, or "
            "choose another covariance_type."
        ) from failure
    # Where states are known none can take the place of all.
    one_state = lambda: -np.inf
    if states is None:
        one_state = lambda: one_state_likelihood(hmm, X, starts)
    best = _best(climbs, broken, one_state)
    degenerate = broken(best)
    # States that have lost their rows are another matter.
    degenerate = degenerate[best.sums[0].weight[degenerate] > 1e-6]
    return Fitted(best, problem, degenerate, guesses.keeps_numbers)


def _best(climbs, broken, one_state):
    """Return the climb that ended best: one without degenerate states, if it is a fit.

    Starts may come to rest where all states are one. `one_state` returns the
    log-likelihood of a single state, which others must be above by a nat for each more;
    those that are not win only if no other is left.
    """
    whole = [climb for climb in climbs if not len(broken(climb))]
    if 0 < len(whole) < len(climbs):
        least = one_state() + len(climbs[0].model.start) - 1.0
        whole = [c for c in whole if c.sums[0].log_likelihood > least]
    return max(whole or climbs, key=lambda climb: climb.history[-1])


def one_state_likelihood(hmm, X, starts):
    """Return the log-likelihood of a single state, with outputs of the same kind."""
    nothing = dict.fromkeys(_INITIAL.values())
    single = clone(hmm).set_params(
        n_components=1, fixed=(), transmat_prior=0.0, **nothing
    )
    problem, guesses = general_problem(single, X, starts, None, RandomState(0))
    with unheard():
        climb = _em.Climb(problem, _em.Chain(*guesses(0))).run(_LONGER, "auto")
    return climb.sums[0].log_likelihood


def _race(climbs, run, rank, max_iter, tol):
    """Return the climbs that end best, of several that have begun.

    The first one goes on to the end in any case: more starts are never worse than one.
    """
    first = climbs[0]
    better = sorted(climbs, key=rank)
    kept = [run(climb, min(_LONGER, max_iter), tol) for climb in better[:_KEPT]]
    kept = [climb for climb in kept if climb is not None]
    rest = sorted(kept, key=rank) + better[_KEPT:]
    ends = []
    for climb in rest:
        # Others take the places of those that break down on the way.
        if len([c for c in ends if not rank(c)[0]]) == _ENDS:
            break
        done = run(climb, max_iter, tol)
        if done is not None:
            ends.append(done)
    if not any(climb is first for climb in ends):
        done = run(first, max_iter, tol)
        if done is not None:
            ends.append(done)
    return ends


def _least_variances(hmm, family, X):
    if not hasattr(family, "floor"):
        return None
    if (family.floor > 0.0).all():
        return family.floor
    # With a floor of 0 by hand: rounding errors, or nearly so.
    bulk = _starts.tamed(X) if "df" in family.names else X
    least = 1e-6 * _starts.auto_floor(bulk, _starts.column_variances(bulk))
    return np.where(family.floor > 0.0, family.floor, least)


def general_problem(hmm, X, starts, states, rng, pool=None, n_workers=1):
    """Return the model with its data, and its starting chains."""
    # Variances of heavy tails are those of the outliers.
    bulk = _starts.tamed(X) if hmm.emission == "student" else X
    variances = _starts.column_variances(bulk)
    family = make_family(hmm, X, bulk, variances)
    family.check_rows(X)
    check_prior(hmm.variance_prior)
    deviation = np.sqrt(variances)
    options = _em.Options(
        structure=hmm.structure,
        startprob=hmm.startprob,
        window=hmm.window,
        fixed=check_fixed(hmm, family),
        unit=np.where(deviation > 0.0, deviation, 1.0),
    )
    guesses = _starts.Guesses(
        hmm, family, bulk, variances, starts, states, options, rng
    )
    options = _em.Options(
        **{**vars(options), "pseudo": pseudo_counts(hmm, guesses.transition)}
    )
    problem = _em.GeneralModel(
        family,
        _em.make_groups(X, starts, family, states, pool),
        options,
        _em.Distributor(pool, n_workers),
    )
    return problem, guesses
