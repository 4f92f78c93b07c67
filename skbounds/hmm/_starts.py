"""Where EM starts: what is given, checked, or clusters, and other guesses."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from skbounds.hmm import _columns, _em, _transitions
from skbounds.hmm._emissions import compress
from skbounds.hmm._mixing import stationary_law

# Of a column's variance that is added to the variances of the states.
_SHARE = 1e-6
# A millionth of smaller ones is not computed with.
_LEAST_VARIANCE = 1e-280
# Degrees of freedom at the start.
_DF = 10.0
# States whose numberings are all looked at, and rows that these are looked at for.
_MOST_STATES, _ROWS_TO_NUMBER = 4, 2000
# Rows on either side over which outputs are smoothed, to find regimes that last.
_REACHES = (2, 7)
# Quartile distances from the median within which starts look at heavy tails.
_BULK = 2.5
# Of a row's membership in its cluster, at the start.
_SURE = 0.9


def law(name, given, shape):
    """Return probabilities that were given, or all the same."""
    if given is None:
        return np.full(shape, 1.0 / shape[-1])
    found = np.array(given, dtype=np.float64, order="C")
    good = found.shape == shape and np.isfinite(found).all() and (found >= 0.0).all()
    if not good or (np.abs(found.sum(axis=-1) - 1.0) > 1e-6).any():
        raise ValueError(
            f"{name} must be probabilities of shape {shape}, each row of sum 1; "
            f"got {given!r}."
        )
    return found / found.sum(axis=-1, keepdims=True)


def column_variances(X):
    """Return the variances of the columns' observed entries; 0 where there are none."""
    variances = _columns.variances(X)
    if not np.isnan(variances).any():
        return variances
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nan_to_num(np.nanvar(X, axis=0))


def variance_floor(reg_covar, X, variances):
    """Return what is added to the variances of the columns."""
    if not isinstance(reg_covar, str):
        return np.full(X.shape[1], float(reg_covar))
    return auto_floor(X, variances)


def auto_floor(X, variances):
    """Return a millionth of the variances, or of the squares of constants."""
    if (variances >= _LEAST_VARIANCE).all() and not _may_be_constant(X, variances):
        return _SHARE * variances
    some = np.where(np.isnan(X).all(axis=0), 0.0, 1.0)
    first = np.nanmax(np.where(np.isnan(X), -np.inf, X), axis=0)
    first = np.where(some == 1.0, first, 0.0)
    low = np.nanmin(np.where(np.isnan(X), np.inf, X), axis=0)
    constant = (some == 0.0) | (first == low)
    vanishing = ~constant & (variances < _LEAST_VARIANCE)
    if vanishing.any():
        raise ValueError(
            "X has columns whose squares vanish, "
            f"{np.flatnonzero(vanishing).tolist()}: multiply them by a number, or give "
            "reg_covar."
        )
    # A constant has no scale but its own size.
    size = np.where(first**2 < _LEAST_VARIANCE, 1.0, first**2)
    return _SHARE * np.where(constant, size, variances)


def _may_be_constant(X, variances):
    """Return whether variances may be nothing but rounding errors."""
    top = _columns.reduce_columns(np.maximum, X)
    largest = np.maximum(top**2, _columns.reduce_columns(np.minimum, X) ** 2)
    if np.isnan(largest).any():
        largest = np.square(np.nan_to_num(X)).max(axis=0)
    return bool((variances <= 1e-20 * largest).any())


def tamed(X):
    """Return rows whose entries are not far from the bulk of their columns."""
    low, middle, high = np.nanquantile(X, [0.25, 0.5, 0.75], axis=0)
    reach = _BULK * (high - low)
    # Where most entries are the same there is no scale to tell.
    reach = np.where(reach > 0.0, reach, np.inf)
    return np.clip(X, middle - reach, middle + reach)


def covariances(hmm, d, variances, floor):
    """Return covariances at the start."""
    s = hmm.n_components
    if hmm.covariances_init is None:
        matrix = np.diag(variances + floor)
        matrices = np.repeat(matrix[None], s, axis=0)
    else:
        matrices = np.array(hmm.covariances_init, dtype=np.float64)
        if matrices.shape != (s, d, d) or not np.isfinite(matrices).all():
            raise ValueError(
                f"covariances_init must be of shape {(s, d, d)}; got shape "
                f"{matrices.shape}."
            )
        asymmetry = np.abs(matrices - matrices.transpose(0, 2, 1)).max()
        least = np.linalg.eigvalsh(matrices).min()
        if asymmetry > 1e-8 * np.abs(matrices).max() or least <= 0.0:
            raise ValueError(
                "covariances_init must be symmetric and positive definite; the "
                f"least eigenvalue is {least:.3g}."
            )
    variances = np.diagonal(matrices, axis1=1, axis2=2)
    if (variances <= 0.0).any():
        raise ValueError(
            "a column of X is constant, which has no density; increase reg_covar="
            f"{hmm.reg_covar}."
        )
    return compress(matrices, hmm.covariance_type)


def given_means(hmm, d):
    """Return the means that are given, checked."""
    s = hmm.n_components
    found = np.array(hmm.means_init, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"means_init must be finite; got {found.tolist()}.")
    if found.shape != (s, d):
        raise ValueError(f"means_init must be of shape {(s, d)}; got {found.shape}.")
    if hmm.emission == "poisson" and (found < 0.0).any():
        raise ValueError(
            f"means_init are rates, which are not negative; got {found.tolist()}."
        )
    if not _all_differ(found) and hmm.covariances_init is None:
        raise ValueError(
            "means_init has states with the same mean, which EM cannot tell "
            f"apart: {found.tolist()}."
        )
    return found


def _all_differ(rows):
    """Return whether no two rows are the same; there are few."""
    return len({tuple(row) for row in rows.tolist()}) == len(rows)


def given_df(hmm):
    """Return the degrees of freedom at the start."""
    s = hmm.n_components
    if hmm.df_init is None:
        return np.full(s, _DF)
    found = np.array(hmm.df_init, dtype=np.float64)
    good = found.shape in ((), (s,)) and np.isfinite(found).all()
    if not good or (found <= 0.0).any():
        raise ValueError(
            f"df_init must be positive, one number or {s}; got {hmm.df_init!r}."
        )
    return np.broadcast_to(found, (s,)).copy()


def given_tables(hmm, categories):
    """Return the probabilities of categories that are given."""
    s, given = hmm.n_components, hmm.emission_proba_init
    if len(categories) == 1 and not isinstance(given[0], np.ndarray):
        # The table itself.
        given = [given] if np.ndim(given) == 2 else given
    elif isinstance(given, np.ndarray) and given.ndim == 2:
        given = [given]
    if len(given) != len(categories):
        raise ValueError(
            "emission_proba_init must have one table for each of the "
            f"{len(categories)} columns; got {len(given)}."
        )
    tables = [
        law("emission_proba_init", table, (s, len(names)))
        for table, names in zip(given, categories, strict=True)
    ]
    if not _all_differ(np.concatenate(tables, axis=1)):
        raise ValueError(
            "emission_proba_init has states with the same law, which EM cannot tell "
            "apart."
        )
    return tables


def clusters(X, s, rng):
    """Return the centres of k-means, in lexicographic order."""
    search = KMeans(s, n_init=1, random_state=rng.randint(2**31 - 1))
    with warnings.catch_warnings():
        # Of fewer distinct rows than clusters: their means are moved apart.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centers = search.fit(X).cluster_centers_
    return centers[np.lexsort(centers.T[::-1])]


def starting_points(init, X, s, rng):
    """Return means at the start: clusters, or rows."""
    if init == "random":
        return apart(X[rng.permutation(len(X))[:s]].copy(), X, rng)
    # In units of the columns.
    scale = _columns.deviations(X)
    return apart(clusters(X / scale, s, rng) * scale, X, rng)


def apart(means, X, rng):
    """Move means that coincide: EM cannot tell such states apart."""
    for _ in range(10):
        if _all_differ(means):
            return means
        scale = np.maximum(X.std(axis=0), 1e-8 * np.maximum(np.abs(means).max(), 1.0))
        means = means + 1e-3 * scale * rng.standard_normal(means.shape)
    return means


def symmetric_mean(hmm, X, rng, k):
    """Return mu at the k-th start."""
    d = X.shape[1]
    if hmm.means_init is None:
        init = "random" if k % 2 else hmm.init
        first, second = starting_points(init, _columns.filled(X), 2, rng)
        return 0.5 * (second - first)
    found = np.array(hmm.means_init, dtype=np.float64)
    if found.shape == (2, d):
        if np.abs(found[0] + found[1]).max() > 1e-8 * np.abs(found).max():
            raise ValueError(
                "means_init of structure='symmetric' must be -mu and mu; got "
                f"{found.tolist()}."
            )
        found = found[1]
    if found.shape != (d,) or not np.isfinite(found).all():
        raise ValueError(
            f"means_init must be of shape {(2, d)} or {(d,)}; got {found.shape}."
        )
    if not found.any():
        raise ValueError("means_init is 0, where EM stays: the states coincide.")
    return found


# ------------------------------------------------------------------- guesses of regimes


def smoothed(values, starts, reach):
    """Return means and mean squares of the rows at most `reach` away."""
    both = np.column_stack([values, np.minimum(values**2, 9.0)])
    sums = np.vstack([np.zeros(both.shape[1]), np.cumsum(both, axis=0)])
    index = np.arange(len(values))
    sequence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    low = np.maximum(index - reach, starts[sequence])
    high = np.minimum(index + reach + 1, starts[sequence + 1])
    return (sums[high] - sums[low]) / (high - low)[:, None]


def memberships(columns, s, rng, *, lloyd):
    """Return the cluster of each row."""
    distinct = min(s, len(columns))
    if lloyd:
        search = KMeans(
            distinct, n_init=1, max_iter=20, random_state=rng.randint(2**31 - 1)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return search.fit(columns).labels_.astype(np.intp)
    centers, _ = kmeans_plusplus(columns, distinct, random_state=rng.randint(2**31 - 1))
    return nearest(columns, centers)


def nearest(columns, centers):
    """Return the number of the nearest centre of each row."""
    middle = centers.mean(axis=0)
    columns, centers = columns - middle, centers - middle
    squares = (centers**2).sum(axis=1) - 2.0 * columns @ centers.T
    return squares.argmin(axis=1)


def perturbed(transition, rng, *, given):
    """Return another transition matrix with the same zeros."""
    s = len(transition)
    if given:
        noise = rng.gamma(10.0, 0.1, size=(s, s))
    else:
        noise = rng.gamma(2.0, 0.5, size=(s, s))
        # States that last for a few steps, or for many.
        noise += np.eye(s) * s * 10.0 ** rng.uniform(-1.0, 1.5)
    found = transition * noise
    return found / found.sum(axis=1, keepdims=True)


def by_position(labels, starts, start, transition):
    """Return the clusters that states are, by how early in sequences they come."""
    s = len(start)
    laws, law = [], start
    longest = int(min(np.diff(starts).max(), _ROWS_TO_NUMBER))
    for _ in range(longest):
        laws.append(law)
        law = law @ transition
    logs = np.log(np.maximum(laws, 1e-6))
    position = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
    score = np.zeros((s, s))
    np.add.at(score, labels, logs[np.minimum(position, longest - 1)])
    clusters_, states = linear_sum_assignment(-score)
    return clusters_[np.argsort(states)]


def numbering(log_density, starts, start, transition, rng, *, first, shuffle):
    """Return the clusters that states are, under start laws and transitions given.

    That order of the clusters under which the rows are likeliest: by trying all, or by
    exchanging pairs of an order as long as that helps: of `first`, or of any one.

    Parameters
    ----------
    log_density : ndarray of shape (n, s)
        Of the rows in the clusters; the first sequences are enough.
    """
    s = len(start)
    starts = np.unique(np.minimum(starts, _ROWS_TO_NUMBER))
    log_density = log_density[: starts[-1]]

    def value(order):
        try:
            return _em.expectation(
                log_density[:, order].copy(), starts, start, transition, rows_only=True
            ).rows.sum()
        except ValueError:
            # Impossible.
            return -np.inf

    if s <= _MOST_STATES and not shuffle:
        every = [np.array(order) for order in permutations(range(s))]
        return every[int(np.argmax([value(order) for order in every]))]
    order = rng.permutation(s) if shuffle else first
    best, improved = value(order), True
    while improved:
        improved = False
        for i in range(s):
            for j in range(i):
                other = order.copy()
                other[[i, j]] = other[[j, i]]
                found = value(other)
                if found > best:
                    order, best, improved = other, found, True
    return order


class Guesses:
    """Starting chains of the general model, one after the other.

    The first has means at the centres of k-means (or rows, for ``init="random"``);
    others come from clusters of smoothed rows, random rows and other seeds, with other
    transition matrices.
    """

    def __init__(self, hmm, family, X, variances, starts, states, options, rng):
        self.hmm, self.family, self.starts = hmm, family, starts
        # Of heavy tails the bulk: outliers would have clusters of their own.
        self.X = X
        self.states, self.options, self.rng = states, options, rng
        s, d = hmm.n_components, X.shape[1]
        self.transition = law("transmat_init", hmm.transmat_init, (s, s))
        if options.structure == "reversible":
            turned = _transitions.symmetrised(self.transition)
            one_way = (self.transition > 0.0) != (self.transition.T > 0.0)
            if np.abs(turned - self.transition).max() > 1e-8 or one_way.any():
                raise ValueError(
                    "transmat_init of structure='reversible' must be reversible, pi_j "
                    f"A_jk = pi_k A_kj; got {self.transition.tolist()}."
                )
        self.start = law("startprob_init", hmm.startprob_init, (s,))
        self.given = {}
        for name in ("means", "covariances", "df", "emission_proba"):
            if name not in family.names and getattr(hmm, f"{name}_init") is not None:
                raise ValueError(
                    f"{name}_init is not for emission={hmm.emission!r}, which has "
                    f"{family.names}."
                )
        if hmm.variance_prior is not None and "covariances" not in family.names:
            raise ValueError(f"variance_prior is not for emission={hmm.emission!r}.")
        if hmm.means_init is not None:
            self.given["means"] = given_means(hmm, d)
        if "covariances" in family.names:
            self.spread = covariances(hmm, X.shape[1], variances, family.floor)
            if hmm.covariances_init is not None:
                self.given["covariances"] = self.spread
        if "df" in family.names:
            self.df = given_df(hmm)
        if "emission_proba" in family.names and hmm.emission_proba_init is not None:
            tables = given_tables(hmm, family.categories)
            self.given["emission_proba"] = tables
        numbered = hmm.transmat_init is not None or hmm.startprob_init is not None
        self.numbered = numbered and not self.complete
        self.rows = None

    @property
    def complete(self):
        """Whether states are told apart by what is given."""
        return "means" in self.given or "emission_proba" in self.given

    @property
    def keeps_numbers(self):
        """Whether states have the numbers that the user gave them."""
        known = self.states is not None and (self.states >= 0).any()
        return self.complete or self.numbered or known

    def __call__(self, k):
        """Return the k-th starting chain: start law, transitions and outputs."""
        transition = self.transition
        if k > 0 and "transmat" not in self.options.fixed:
            transition = perturbed(
                transition, self.rng, given=self.hmm.transmat_init is not None
            )
            if self.options.structure == "reversible":
                transition = _transitions.symmetrised(transition)
        start = self.start
        if self.options.startprob == "stationary" and (
            self.hmm.startprob_init is None or k > 0
        ):
            start = stationary_law(transition)
        if self.complete:
            return start, transition, self._whole(dict(self.given))
        labels, found = self._labels(k)
        if self.numbered:
            # Wide outputs would leave the rows to the transitions that are given.
            labels, found = self._numbered(labels, start, transition, k % 3 == 2), None
        known = self.states is not None and (self.states >= 0).any()
        if known:
            labels, found = self._with_known(labels), None
        if found is not None:
            return start, transition, self._whole({"means": found, **self.given})
        outputs = self._fit(self._memberships(labels))
        if k == 0 and "covariances" in outputs and not self.numbered:
            outputs["covariances"] = self.spread
        return start, transition, self._whole({**outputs, **self.given})

    def _numbered(self, labels, start, transition, shuffle):
        """Return labels with numbers that suit the transitions."""
        law = self._whole(self._fit(self._memberships(labels)))
        log_density = self.family.log_densities(self.rows, law)
        order = numbering(
            log_density, self.starts, start, transition, self.rng,
            first=by_position(labels, self.starts, start, transition), shuffle=shuffle,
        )  # fmt: skip
        return np.argsort(order)[labels]

    def _memberships(self, labels):
        """Return posteriors that are nearly sure of the labels."""
        s = self.hmm.n_components
        posterior = np.full((len(labels), s), (1.0 - _SURE) / s)
        posterior[np.arange(len(labels)), labels] += _SURE
        return posterior

    def _whole(self, outputs):
        """Return outputs with everything that is not known yet at its default."""
        family, s = self.family, self.hmm.n_components
        if "covariances" in family.names and "covariances" not in outputs:
            outputs["covariances"] = self.spread
        if "df" in family.names:
            outputs["df"] = self.df
        if "emission_proba" in family.names and "emission_proba" not in outputs:
            sizes = [len(names) for names in family.categories]
            outputs["emission_proba"] = [np.full((s, c), 1.0 / c) for c in sizes]
        if "means" in family.names and "means" not in outputs:
            outputs["means"] = np.zeros((s, self.X.shape[1]))
        return outputs

    def _fit(self, posterior):
        """Return the outputs of greatest likelihood for memberships of the rows."""
        if self.rows is None:
            self.rows = self.family.prepare(self.X)
        s = self.hmm.n_components
        before = self._whole({})
        if "means" in before:
            center = _columns.filled(self.X).mean(axis=0)
            before["means"] = np.repeat(center[None], s, axis=0)
        reference = self.family.reference(before)
        sums = self.family.collect(self.rows, posterior, before, reference)
        found = self.family.maximise(sums, before, reference)
        if "means" in found and len(np.unique(found["means"], axis=0)) < s:
            found["means"] = apart(found["means"], _columns.filled(self.X), self.rng)
        return found

    def _labels(self, k):
        """Return clusters of the rows, and their means where EM starts from these."""
        hmm, s = self.hmm, self.hmm.n_components
        if not self.family.is_discrete and (k == 0 or k % 4 == 3):
            X = _columns.filled(self.X)
            init = "random" if k else hmm.init
            means = starting_points(init, X, s, self.rng)
            scale = _columns.deviations(X)
            return nearest(X / scale, means / scale), means
        columns = self.family.features(self.X)
        if k == 0 and hmm.init == "random":
            picks = self.rng.permutation(len(columns))[:s]
            return nearest(columns, columns[picks]), None
        if k % 4 in (1, 2):
            reach = _REACHES[k % 4 - 1]
            columns = smoothed(columns, self.starts, reach)
        return memberships(columns, s, self.rng, lloyd=k < 3), None

    def _with_known(self, labels):
        """Return labels with known states as they are, and clusters matched to them."""
        s = self.hmm.n_components
        known = self.states >= 0
        table = np.zeros((s, s))
        np.add.at(table, (labels[known], self.states[known]), 1.0)
        # Each state takes the cluster that it shares most rows with.
        rows, columns = linear_sum_assignment(-table)
        order = np.empty(s, dtype=np.intp)
        order[rows] = columns
        return np.where(known, self.states, order[labels])
