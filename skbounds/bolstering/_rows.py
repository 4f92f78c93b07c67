"""What is scored: checked rows, targets and weights."""

from __future__ import annotations

import hashlib

import numpy as np
from sklearn.utils import check_consistent_length

from skbounds._labels import check_labels, code_groups, labels_to_fit
from skbounds._magnitude import check_magnitude
from skbounds._sklearn_compat import (
    check_method_params,
    check_sample_weight,
    num_samples,
    safe_indexing,
)
from skbounds._validation import as_numbers, check_array
from skbounds.bolstering._table import Table, is_plain

# Larger tables take longer to copy and compare than to prepare anew.
_LARGEST_KEPT = 100_000
# Preparations kept for the same rows.
_MOST_KEPT = 4


def digest(X, y, sample_weight, *others):
    """Return a key of arrays' contents, or None where that is not simple."""
    if y is None:
        return None
    parts = [part for part in (X, y, sample_weight) if part is not None]
    for part in parts:
        if not isinstance(part, np.ndarray) or part.dtype.kind not in "biuf":
            return None
        if part.size > _LARGEST_KEPT:
            return None
    code = hashlib.blake2b(digest_size=16)
    for part in parts:
        code.update(repr((part.shape, part.dtype.str)).encode())
        code.update(np.ascontiguousarray(part).data)
    code.update(repr(others).encode())
    return code.digest()


class Rows:
    """Checked rows, targets and weights, without rows of weight 0.

    Attributes
    ----------
    table : Table
    targets : ndarray of shape (n,) or (n, m)
        Labels or floats.
    matrix : ndarray of shape (n, m)
        Targets of regression.
    codes : ndarray of int or None
    classes : ndarray or None
    weight : ndarray of shape (n,)
    groups : ndarray of int of shape (n,) or None
        Rows that must stay together.
    prepared : dict
        What was prepared for these rows, by what it depends on.
    """

    def __init__(
        self, X, y, sample_weight, *, classification, categorical_features,
        groups=None, moved=True,
    ):  # fmt: skip
        if y is None:
            raise ValueError(
                "BolsteredScorer requires y to be passed, but the target y is None."
            )
        check_consistent_length(X, y, groups)
        n = self.n_given = num_samples(y)
        self.kept = np.arange(n)
        if sample_weight is None:
            self.weight = np.ones(n)
        else:
            self.weight = check_sample_weight(sample_weight, np.empty((n, 1)))
            kept = np.flatnonzero(self.weight)
            if len(kept) < n:
                self.kept = kept
                self.weight = self.weight[kept]
                X, y = safe_indexing(X, kept), safe_indexing(y, kept)
        self.groups = None
        if groups is not None:
            self.groups = code_groups(groups)[self.kept]
        self.table = Table(X, categorical_features, moved=moved)
        self.codes = self.classes = self.matrix = None
        if classification:
            shape = np.asarray(y).shape
            if len(shape) == 2 and shape[1] > 1:
                raise ValueError(
                    "y of a classifier must be of shape (n_samples,); got shape "
                    f"{shape}: multi-output is for regression."
                )
            self.targets = check_labels(y)
            self._to_fit = labels_to_fit(y, self.targets)
            self.classes, self.codes = np.unique(self.targets, return_inverse=True)
        else:
            if not is_plain(y, 1):
                y = check_array(as_numbers(y), ensure_2d=False, input_name="y")
            if y.ndim == 2 and y.shape[1] == 1:
                y = y[:, 0]
            self.targets = self._to_fit = y
            self.matrix = y.reshape(len(y), -1)
            check_magnitude(self.matrix, "y")
        if self.table.n_rows < 2:
            raise ValueError(
                "BolsteredScorer needs at least 2 rows of positive weight; got "
                f"n_samples={self.table.n_rows}."
            )
        self.prepared = {}

    def targets_to_fit(self, rows=None):
        """Return the targets of all or some rows, labels with what orders them."""
        if rows is None:
            return self._to_fit
        return safe_indexing(self._to_fit, rows)

    def prepare(self, key, make):
        """Return what `make` makes, or has made for the same key."""
        if key not in self.prepared:
            while len(self.prepared) >= _MOST_KEPT:
                self.prepared.pop(next(iter(self.prepared)))
            self.prepared[key] = make()
        return self.prepared[key]

    def check_classes(self, estimator):
        """Refuse labels that the estimator was not fitted on."""
        if self.codes is None:
            return
        known = getattr(estimator, "classes_", None)
        if known is not None and not set(self.classes.tolist()) <= set(known.tolist()):
            raise ValueError(
                "y has labels that the estimator was not fitted on: "
                f"{[v for v in self.classes.tolist() if v not in known.tolist()]!r}. "
                "Pass the rows that it was fitted on."
            )

    def fit_params(self, given):
        """Return a function from row numbers to parameters of ``fit``."""
        if not given:
            return lambda rows: {}
        return lambda rows: check_method_params(
            np.empty((self.n_given, 1)), given, indices=self.kept[rows]
        )
