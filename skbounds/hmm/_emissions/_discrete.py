"""Counts and categories; columns are independent given the state."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
from scipy.special import gammaln, pdtr
from scipy.stats import poisson

from skbounds.hmm._columns import filled, standard
from skbounds.hmm._emissions._scatter import LEAST_WEIGHT

# Rates and probabilities whose logarithms are finite.
_LEAST = 1e-300
# States times columns beyond which products of matrices are faster.
_MOST_PRODUCTS = 256


class Counts:
    """Rows of counts; missing entries are 0.

    Attributes
    ----------
    values : ndarray of shape (n, d)
    observed : ndarray of shape (n, d) or None
    constant : ndarray of shape (n,)
        Logarithms of the factorials.
    """

    def __init__(self, X):
        self.values, self.observed = np.ascontiguousarray(X), None
        missing = np.isnan(X)
        if missing.any():
            self.values = np.where(missing, 0.0, X)
            self.observed = 1.0 - missing
        self.constant = gammaln(self.values + 1.0).sum(axis=1)

    def __len__(self):
        return len(self.values)


class Discrete:
    """What counts and categories share."""

    is_discrete = True

    def reference(self, law):
        """Return None: sums are exact about 0."""

    def blurred(self, sums, law):
        """Return None."""

    def linear(self, rows, law, reference):
        """Return None: see `Gaussian.linear`."""

    def check(self, law):
        """Accept every law."""

    def degenerate(self, law, least):
        """Return no states: probabilities are bounded."""
        return np.arange(0)

    def log_prior(self, law):
        """Return 0."""
        return 0.0

    def public(self, law):
        """Return the law."""
        return law

    private = public


class Poisson(Discrete):
    """Counts with rates m_j."""

    names = ("means",)

    def check_rows(self, X):
        """Refuse what is no count."""
        there = X[~np.isnan(X)]
        bad = there[(there < 0.0) | (there != np.round(there))]
        if len(bad):
            raise ValueError(
                "emission='poisson' is for counts, integers from 0 on; X has "
                f"{bad[0]:g}."
            )

    def features(self, X):
        """Return columns to look for clusters in, see `Gaussian.features`."""
        return standard(np.sqrt(filled(X)))

    def prepare(self, X):
        """Return counts."""
        return Counts(X)

    def log_densities(self, rows, law):
        """Return log p(x_i | state j), an array (n, s)."""
        rates = law["means"]
        result = rows.values @ np.log(np.maximum(rates, _LEAST)).T
        if rows.observed is None:
            result -= rates.sum(axis=1)
        else:
            result -= rows.observed @ rates.T
        result -= rows.constant[:, None]
        for j in np.flatnonzero((rates == 0.0).any(axis=1)):
            result[(rows.values[:, rates[j] == 0.0] > 0.0).any(axis=1), j] = -np.inf
        return result

    def linear(self, rows, law, reference):
        """Return columns and weights, see `Gaussian.linear`."""
        rates = law["means"]
        if (
            rows.observed is not None
            or rates.size > _MOST_PRODUCTS
            or not (rates > 0.0).all()
        ):
            return None
        weights = np.ascontiguousarray(np.log(rates).T)
        return rows.values, weights, -rates.sum(axis=1), -rows.constant.sum()

    def from_columns(self, size, sums):
        """Return what `collect` returns, from sums of the columns of `linear`."""
        return np.repeat(size[:, None], sums.shape[1], axis=1), sums

    def collect(self, rows, posterior, law, reference):
        """Return the sums that the M-step needs."""
        if rows.observed is None:
            size = posterior.sum(axis=0)[:, None]
            total = np.repeat(size, rows.values.shape[1], axis=1)
        else:
            total = posterior.T @ rows.observed
        return total, posterior.T @ rows.values

    def maximise(self, sums, law, reference, fixed=()):
        """Return the law of greatest likelihood; states without rows keep theirs."""
        total, counts = sums
        seen = total > LEAST_WEIGHT
        rates = counts / np.where(seen, total, 1.0)
        return {"means": np.where(seen, rates, law["means"])}

    def distance(self, law, other, unit):
        """Return differences of the rates, in standard deviations of the columns."""
        return ((law["means"] - other["means"]) / unit).ravel()

    def order(self, law):
        """Return states in lexicographic order of their rates."""
        return np.lexsort(law["means"].T[::-1])

    def n_parameters_of(self, name, law):
        """Return the number of free parameters of a part of the law."""
        return law["means"].size

    def draw(self, law, states, rng):
        """Draw a row for each state."""
        return rng.poisson(law["means"][states]).astype(np.float64)

    def moments(self, law):
        """Return means and covariances of the states' rows."""
        rates = law["means"]
        return rates, rates[:, :, None] * np.eye(rates.shape[1])

    def cdf(self, law, column, values):
        """Return P(X_column <= value | state), an array (..., s)."""
        floor = np.floor(values)[..., None]
        found = pdtr(np.maximum(floor, 0.0), law["means"][:, column])
        return np.where(floor < 0.0, 0.0, found)

    def ppf(self, law, column, levels):
        """Return the states' quantiles of a column, an array (n_levels, s)."""
        rates = law["means"][:, column]
        return np.ceil(poisson.ppf(levels[:, None], rates))

    def score(self, rows, posterior, law):
        """Return the derivatives of the expected log-density by all entries."""
        total, counts = self.collect(rows, posterior, law, None)
        return {"means": counts / np.maximum(law["means"], _LEAST) - total}


class Codes:
    """Rows of numbers of categories, -1 where missing."""

    def __init__(self, codes):
        self.codes = codes
        self.known = None
        missing = codes < 0
        if missing.any():
            self.known = ~missing
        self._indicators = None

    def __len__(self):
        return len(self.codes)

    def indicators(self, sizes):
        """Return 1 for the category of each column, else 0: shape (n, sum of sizes)."""
        if self._indicators is None:
            self._indicators = np.zeros((len(self), sum(sizes)))
            first = 0
            for codes, size in zip(self.codes.T, sizes, strict=True):
                rows = np.flatnonzero(codes >= 0)
                self._indicators[rows, first + codes[rows]] = 1.0
                first += size
        return self._indicators


class Categorical(Discrete):
    """Columns with categories of probabilities B_k(j, c).

    Parameters
    ----------
    categories : list of ndarray
        The categories of each column, in ascending order.
    """

    names = ("emission_proba",)

    def __init__(self, categories):
        self.categories = categories

    def check_rows(self, X):
        """Refuse categories that are not known."""
        for k, names in enumerate(self.categories):
            values = X[:, k]
            codes = np.minimum(np.searchsorted(names, values), len(names) - 1)
            unknown = values[(names[codes] != values) & ~np.isnan(values)]
            if len(unknown):
                raise ValueError(
                    f"column {k} of X has categories that are unknown: "
                    f"{np.unique(unknown)[:5].tolist()}; give all of them as "
                    "`categories`."
                )

    def features(self, X):
        """Return columns to look for clusters in, see `Gaussian.features`."""
        return self.prepare(X).indicators(self._sizes())

    def _sizes(self):
        return [len(names) for names in self.categories]

    def prepare(self, X):
        """Return numbers of categories; X has no others, see `check_rows`."""
        codes = np.full(X.shape, -1, dtype=np.intp)
        for k, names in enumerate(self.categories):
            known = ~np.isnan(X[:, k])
            codes[known, k] = np.searchsorted(names, X[known, k])
        return Codes(codes)

    def log_densities(self, rows, law):
        """Return log p(x_i | state j), an array (n, s)."""
        result = 0.0
        for k, table in enumerate(law["emission_proba"]):
            with np.errstate(divide="ignore"):
                logs = np.log(table.T)
            if rows.known is not None:
                logs = np.vstack([logs, np.zeros(len(table))])
            # A missing one is the last row.
            result = result + logs[rows.codes[:, k]]
        return result

    def linear(self, rows, law, reference):
        """Return columns and weights, see `Gaussian.linear`."""
        table = np.concatenate(law["emission_proba"], axis=1)
        # Zeros have no logarithms.
        if table.size > _MOST_PRODUCTS or not (table > 0.0).all():
            return None
        columns = rows.indicators(self._sizes())
        return columns, np.ascontiguousarray(np.log(table).T), np.zeros(len(table)), 0.0

    def from_columns(self, size, sums):
        """Return what `collect` returns, from sums of the columns of `linear`."""
        ends = accumulate(self._sizes(), initial=0)
        return tuple(sums[:, low:high] for low, high in pairwise(ends))

    def collect(self, rows, posterior, law, reference):
        """Return the sums that the M-step needs, one array (s, c) a column."""
        sums = []
        for k, table in enumerate(law["emission_proba"]):
            codes, weight = rows.codes[:, k], posterior
            if rows.known is not None:
                codes, weight = codes[rows.known[:, k]], weight[rows.known[:, k]]
            size = table.shape[1]
            sums.append(np.array([np.bincount(codes, own, size) for own in weight.T]))
        return tuple(sums)

    def maximise(self, sums, law, reference, fixed=()):
        """Return the law of greatest likelihood; states without rows keep theirs."""
        tables = []
        for counts, before in zip(sums, law["emission_proba"], strict=True):
            total = counts.sum(axis=1, keepdims=True)
            seen = total > LEAST_WEIGHT
            tables.append(np.where(seen, counts / np.where(seen, total, 1.0), before))
        return {"emission_proba": tables}

    def distance(self, law, other, unit):
        """Return differences of the probabilities."""
        pairs = zip(law["emission_proba"], other["emission_proba"], strict=True)
        gaps = [(new - old).ravel() for new, old in pairs]
        return gaps[0] if len(gaps) == 1 else np.concatenate(gaps)

    def order(self, law):
        """Return states in lexicographic order of their mean numbers of categories."""
        means = [table @ np.arange(table.shape[1]) for table in law["emission_proba"]]
        return np.lexsort(means[::-1])

    def n_parameters_of(self, name, law):
        """Return the number of free parameters of a part of the law."""
        return sum(t.shape[0] * (t.shape[1] - 1) for t in law["emission_proba"])

    def draw(self, law, states, rng):
        """Draw a row for each state."""
        columns = []
        for names, table in zip(self.categories, law["emission_proba"], strict=True):
            heights = rng.uniform(size=len(states))
            edges = np.cumsum(table, axis=1)[states]
            codes = (heights[:, None] >= edges[:, :-1]).sum(axis=1)
            columns.append(names[codes])
        return np.column_stack(columns).astype(np.float64)

    def score(self, rows, posterior, law):
        """Return the derivatives of the expected log-density by all entries."""
        counts = self.collect(rows, posterior, law, None)
        pairs = zip(counts, law["emission_proba"], strict=True)
        return {"emission_proba": [c / np.maximum(p, _LEAST) for c, p in pairs]}
