"""Rows with missing entries, and their quadratic forms and scatter about means."""

from __future__ import annotations

import numpy as np

from skbounds.hmm._columns import reduce_columns

# Squares of centred rows in units of the variances, up to which products of matrices
# lose no more than a few digits.
LARGE = 1e7
# Expected number of rows below which a state has seen none.
LEAST_WEIGHT = 1e-290
DIAGONAL = ("diag", "spherical")


class Rows:
    """Rows and their squares, centred; missing entries are 0.

    Attributes
    ----------
    center : ndarray of shape (d,)
    values : ndarray of shape (n, d)
    observed : ndarray of shape (n, d) or None
        1 where an entry is there, 0 where it is not; None if all are.
    n_observed : ndarray of shape (n, 1) or float
        Numbers of observed entries.
    squares : ndarray of shape (n, d)
    both : ndarray of shape (n, 2 d)
        Values and squares side by side.
    """

    def __init__(self, X, center):
        self.center = center
        d = X.shape[1]
        self.both = np.empty((len(X), 2 * d))
        self.values, self.squares = self.both[:, :d], self.both[:, d:]
        np.subtract(X, center, out=self.values)
        self.observed = None
        missing = np.isnan(self.values)
        if missing.any():
            self.values[missing] = 0.0
            self.observed = 1.0 - missing
        self.n_observed = float(X.shape[1])
        if self.observed is not None:
            self.n_observed = self.observed.sum(axis=1, keepdims=True)
        np.multiply(self.values, self.values, out=self.squares)
        self.largest = reduce_columns(np.maximum, self.both)[d:]
        self._patterns = None

    def __len__(self):
        return len(self.values)

    @property
    def patterns(self):
        """Rows with the same entries observed: pairs of row and column numbers."""
        if self._patterns is None:
            kinds, label = np.unique(self.observed, axis=0, return_inverse=True)
            label = label.ravel()
            order = np.argsort(label, kind="stable")
            ends = np.cumsum(np.bincount(label))[:-1]
            self._patterns = [
                (own, np.flatnonzero(kind))
                for own, kind in zip(np.split(order, ends), kinds, strict=True)
            ]
        return self._patterns


def spread(covariances, covariance_type, shape):
    """Return variances of shape (s, d) of diagonal or spherical matrices."""
    if covariance_type == "spherical":
        return np.repeat(covariances[:, None], shape[1], axis=1)
    return covariances


def quadratic_forms(rows, means, covariances, covariance_type):
    """Return (x - m)' S^-1 (x - m) and log det S, of the observed entries.

    Parameters
    ----------
    rows : Rows
    means : ndarray of shape (s, d)
    covariances : ndarray
        Of shape (s, d, d) for "full", (s, d) for "diag", (s,) for "spherical" and
        (d, d) for "tied".
    covariance_type : str

    Returns
    -------
    forms : ndarray of shape (n, s)
    log_determinants : ndarray of shape (s,) or (n, s)
    """
    means = means - rows.center
    s, d = means.shape
    if covariance_type in DIAGONAL:
        variances = spread(covariances, covariance_type, (s, d))
        precision = 1.0 / variances
        logs = np.log(variances)
        if rows.observed is None:
            log_determinants = logs.sum(axis=1)
        else:
            log_determinants = rows.observed @ logs.T
        with np.errstate(over="ignore"):
            far = (rows.largest * precision).max() > LARGE
        if far:
            return _one_by_one(rows, means, precision), log_determinants
        scaled = means * precision
        forms = rows.both @ np.concatenate([-2.0 * scaled, precision], axis=1).T
        scaled *= means
        if rows.observed is None:
            forms += scaled.sum(axis=1)
        else:
            forms += rows.observed @ scaled.T
        return forms, log_determinants
    if covariance_type == "tied":
        covariances = np.broadcast_to(covariances, (s, d, d))
    if rows.observed is None:
        roots = _roots(covariances)
        forms = _forms(rows.values, means, roots)
        return forms, 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    forms, log_determinants = np.zeros((len(rows), s)), np.zeros((len(rows), s))
    for own, there in rows.patterns:
        if not len(there):
            continue
        roots = _roots(covariances[:, there[:, None], there])
        forms[own] = _forms(rows.values[np.ix_(own, there)], means[:, there], roots)
        logs = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        log_determinants[own] = 2.0 * logs
    return forms, log_determinants


def _forms(values, means, roots):
    inverses = np.linalg.inv(roots)
    forms = np.empty((len(values), len(means)))
    for j, (mean, inverse) in enumerate(zip(means, inverses, strict=True)):
        gaps = (values - mean) @ inverse.T
        np.einsum("ij,ij->i", gaps, gaps, out=forms[:, j])
    return forms


def _roots(covariances):
    """Return Cholesky factors; an error also where only rounding makes them one."""
    roots = np.linalg.cholesky(covariances)
    pivots = np.diagonal(roots, axis1=1, axis2=2) ** 2
    rounding = 10.0 * roots.shape[1] * np.finfo(np.float64).eps
    if (pivots <= rounding * np.diagonal(covariances, axis1=1, axis2=2)).any():
        raise np.linalg.LinAlgError("a covariance matrix is singular")
    return roots


def _one_by_one(rows, means, precision):
    """Return quadratic forms of diagonal matrices from differences to each mean."""
    forms = np.empty((len(rows), len(means)))
    for j, (mean, own) in enumerate(zip(means, precision, strict=True)):
        gaps = (rows.values - mean) ** 2
        if rows.observed is not None:
            gaps *= rows.observed
        # Beyond the range of doubles the density is 0.
        with np.errstate(over="ignore"):
            forms[:, j] = gaps @ own
    return forms


def collect(rows, weight, count, law, covariance_type, reference):
    """Return weighted sums over rows of the entries about `reference`, and of products.

    Parameters
    ----------
    rows : Rows
    weight : ndarray of shape (n, s)
        Posteriors, times the weights of the rows for heavy tails.
    count : ndarray of shape (n, s)
        Posteriors; what missing entries vary by is weighted with them.
    law : dict
        From which missing entries are told, for "full" and "tied".
    covariance_type : str
    reference : ndarray of shape (s, d) or None
        None: the rows' center.

    Returns
    -------
    total : ndarray of shape (s, d)
        Sums of the weights, for each column.
    first, second : ndarray
        Of shape (s, d); the second one (s, d, d) for "full" and "tied".
    reference : ndarray of shape (s, d)
    """
    s, d = weight.shape[1], rows.values.shape[1]
    if rows.observed is None:
        total = np.repeat(weight.sum(axis=0)[:, None], d, axis=1)
    else:
        total = weight.T @ rows.observed
    if covariance_type in DIAGONAL:
        if reference is None:
            sums = weight.T @ rows.both
            return total, sums[:, :d], sums[:, d:]
        first, second = np.empty((s, d)), np.empty((s, d))
        for j in range(s):
            gaps = rows.values - (reference[j] - rows.center)
            if rows.observed is not None:
                gaps *= rows.observed
            first[j], second[j] = weight[:, j] @ gaps, weight[:, j] @ gaps**2
        return total, first, second
    base = np.zeros((s, d)) if reference is None else reference - rows.center
    first, second = np.empty((s, d)), np.empty((s, d, d))
    if rows.observed is None:
        for j in range(s):
            gaps = rows.values - base[j]
            weighted = weight[:, [j]] * gaps
            first[j], second[j] = weighted.sum(axis=0), weighted.T @ gaps
        return total, first, second
    first[:], second[:], total[:] = 0.0, 0.0, 0.0
    covariances = law["covariances"]
    if covariance_type == "tied":
        covariances = np.broadcast_to(covariances, (s, d, d))
    means = law["means"] - rows.center
    for own, there in rows.patterns:
        # Rows without any entry say nothing about outputs.
        if not len(there):
            continue
        gone = np.setdiff1d(np.arange(d), there)
        values = rows.values[own]
        for j in range(s):
            filled = values
            if len(gone):
                filled = values.copy()
                within = covariances[j][np.ix_(there, there)]
                across = covariances[j][np.ix_(there, gone)]
                slope = np.linalg.solve(within, across)
                filled[:, gone] = (
                    means[j, gone] + (values[:, there] - means[j, there]) @ slope
                )
                left = covariances[j][np.ix_(gone, gone)] - across.T @ slope
                second[j][np.ix_(gone, gone)] += count[own, j].sum() * left
            gaps = filled - base[j]
            weighted = weight[own, j][:, None] * gaps
            first[j] += weighted.sum(axis=0)
            second[j] += weighted.T @ gaps
            total[j] += weight[own, j].sum()
    return total, first, second


def about_means(total, first, second):
    """Return means less the reference, and mean products about the means."""
    seen = total > LEAST_WEIGHT
    safe = np.where(seen, total, 1.0)
    shift = np.where(seen, first / safe, 0.0)
    if second.ndim == 2:
        return shift, np.maximum(second / safe - shift**2, 0.0)
    products = second / safe[:, :1, None]
    return shift, products - shift[:, :, None] * shift[:, None, :]
