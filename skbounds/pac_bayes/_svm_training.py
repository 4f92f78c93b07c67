"""Training of all SVMs that share one set of rows: inner folds, members, blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_class_weight

from skbounds._callbacks import current_task
from skbounds.pac_bayes._kernels import (
    Kernel,
    KernelRows,
    check_kernel_matrix,
    scale_gamma,
)
from skbounds.pac_bayes._layout import Layout, content_keys, order_classes
from skbounds.pac_bayes._members import SVMPath
from skbounds.pac_bayes._svm_path import OneVsOne, cross_validate_path, vote


@dataclass(frozen=True)
class SVMOptions:
    """How SVMs are trained: the estimator's parameters of the same names."""

    kernel: object
    gamma: object
    degree: float
    coef0: float
    standardize: bool
    class_weight: object
    tol: float
    max_iter: float
    cache_size: float
    n_jobs: int | None
    verbose: int


class SVMTrainer:
    """SVMs on parts of one set of rows, all on one kernel matrix.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_rows, n_features)
        Rows, or the square kernel matrix of them.
    codes : ndarray of int of shape (n_rows,)
        Classes, every one of which occurs in the first parts.
    row_indices : ndarray of int of shape (n_rows,)
        Numbers of the rows in the data given to ``fit``.
    classes : ndarray
        Labels of the codes.
    options : SVMOptions
    n_features : int
        Number of columns that predictions are given.
    n_first : int or None
        Number of rows, from the first, that may have a say in the order of classes and
        rows and so in how members are trained; None: all of them.
    """

    def __init__(
        self, X, codes, row_indices, classes, options, n_features, n_first=None
    ):
        self.X, self.codes, self.row_indices = X, codes, row_indices
        self.classes, self.options = classes, options
        self.n_features = n_features
        self.precomputed = options.kernel == "precomputed"
        if self.precomputed:
            check_kernel_matrix(X)
        columns = X[:, :n_first] if self.precomputed else X
        self.keys = content_keys(columns, self.precomputed)
        self.class_order = order_classes(
            codes[:n_first], self.keys[:n_first], len(classes)
        )

    def arrange(self, parts, n_known):
        """Sort the rows by class and part, and make the kernel matrix.

        Parameters
        ----------
        parts : ndarray of int of shape (n_rows,)
            Part of each row: inner folds first, blocks after them.
        n_known : int
            Scales and kernel parameters are taken from the parts before this one.
        """
        options = self.options
        self.n_known = n_known
        self.layout = Layout(self.codes, parts, self.class_order, self.keys)
        order = self.layout.order
        known = np.flatnonzero(parts[order] < n_known)
        if self.precomputed:
            self.kernel = Kernel("precomputed", {})
            self.sorted_rows = self.X[np.ix_(order, order)]
            self.kernel_rows = KernelRows(self.kernel, self.sorted_rows, np.inf)
            return self
        # Sums over rows as sorted: their rounding must not depend on the order in
        # which the rows came.
        rows, scaler = self.X[order], None
        reference = rows if len(known) == len(order) else rows[known]
        if options.standardize:
            scaler = StandardScaler(with_mean=not issparse(reference))
            reference = scaler.fit_transform(reference)
        params = {
            "gamma": scale_gamma(options.gamma, reference),
            "degree": options.degree,
            "coef0": options.coef0,
        }
        self.kernel = Kernel(options.kernel, params, scaler)
        self.sorted_rows = self.kernel.scale(rows)
        if len(known) == len(order):
            self.kernel_rows = KernelRows(
                self.kernel, self.sorted_rows, options.cache_size
            )
        else:
            # The rounding of an entry depends on its place in the matrix, and the
            # sorted places depend on labels that are not to be known yet: sort after.
            self.kernel_rows = KernelRows(
                self.kernel, self.kernel.scale(self.X), options.cache_size, order
            )
        return self

    def _class_factors(self, parts):
        """Return the factors of C of the classes, in the order used inside."""
        sorted_codes = self.codes[self.layout.order]
        ranges = self.layout.ranges(parts)
        seen = [sorted_codes[a:b] for of_class in ranges for a, b in of_class]
        present, local = np.unique(np.concatenate(seen), return_inverse=True)
        # Classes without rows have no machine that a factor would matter to.
        factors = np.ones(len(self.classes))
        absent = set(np.delete(self.classes, present).tolist())
        weight = self.options.class_weight
        if isinstance(weight, dict):
            weight = {c: w for c, w in weight.items() if c not in absent}
        factors[present] = compute_class_weight(
            weight,
            classes=self.classes[present],
            y=self.classes[present][local],
        )
        if not ((factors > 0.0) & np.isfinite(factors)).all():
            raise ValueError(
                "class_weight must give every class a positive finite factor; got "
                f"{self.options.class_weight!r}."
            )
        return factors[self.class_order]

    def _machine(self, parts, target=None):
        ranges = self.layout.ranges(parts)
        targets = [] if target is None else self.layout.ranges([target])
        return OneVsOne(
            self.kernel_rows,
            ranges,
            [piece for of_class in targets for piece in of_class],
            self._class_factors(parts),
        )

    def cross_validate(self, Cs, early_end):
        """Hold out each of the first parts in turn.

        Returns
        -------
        errors : ndarray of shape (n_Cs,)
            Errors per C; infinite where the path ended before.
        scores : dict of ndarray of shape (n_rows, n_columns)
            Scores of the held-out rows, by position of C.
        truth : ndarray of int of shape (n_rows,)
            Codes of these rows.
        """
        order = np.argsort(Cs, kind="stable")
        folds = range(self.n_known)
        machines = [
            self._machine([g for g in folds if g != fold], fold) for fold in folds
        ]
        truths = [self.layout.classes_in(fold) for fold in folds]
        errors = np.empty(len(Cs))
        errors[order], found = cross_validate_path(
            machines, truths, Cs[order], self.class_order, tol=self.options.tol,
            max_iter=self.options.max_iter, early_end=early_end,
            n_jobs=self.options.n_jobs, verbose=self.options.verbose,
        )  # fmt: skip
        scores = dict(zip(order.tolist(), found, strict=False))
        return errors, scores, self.class_order[np.concatenate(truths)]

    def fit_members(self, Cs, parts, target=None):
        """Train one SVM per C on some parts.

        Parameters
        ----------
        Cs : ndarray of shape (n_members,)
        parts : iterable of int
        target : int or None
            Part whose rows are to be predicted.

        Returns
        -------
        members : dict
            ``dual, intercepts, n_iter, capped`` with one entry per C, and with a target
            the mistakes ``wrong`` of shape (n_targets, n_members).
        """
        order = np.argsort(Cs, kind="stable")
        options, machine = self.options, self._machine(parts, target)
        found, votes = [], []
        path = current_task().begin("members", len(Cs))
        for C in Cs[order]:
            task = path.begin(f"C={C:.4g}")
            n_iter, capped = machine.advance(C, options.tol, options.max_iter)
            found.append((*machine.coefficients(len(self.codes)), n_iter, capped))
            if target is not None:
                decisions = machine.decide()
                votes.append(vote(decisions, len(self.classes), self.class_order))
            if options.verbose:
                print(f"[member] C={C:.4g}: {n_iter} iterations")
            task.end()
        path.end()
        inverse = np.argsort(order)
        columns = [np.array(part)[inverse] for part in zip(*found, strict=True)]
        names = ("dual", "intercepts", "n_iter", "capped")
        members = dict(zip(names, columns, strict=True))
        if target is not None:
            voted = np.column_stack(votes)[:, inverse]
            truth = self.layout.classes_in(target)
            members["wrong"] = voted != truth[:, None]
        return members

    def make_path(self, dual, intercepts) -> SVMPath:
        """Return trained members, with the rows that support at least one of them."""
        used = np.any(dual != 0.0, axis=(0, 1))
        # A tolerance so wide that nothing was trained leaves a constant decision.
        used[0] |= not used.any()
        used = np.flatnonzero(used)
        used = used[np.argsort(self.layout.places[used], kind="stable")]
        sizes = np.bincount(self.layout.places[used], minlength=len(self.class_order))
        indices = self.row_indices[self.layout.order][used]
        if self.precomputed:
            self.kernel.rows = indices
        else:
            self.kernel.rows = self.sorted_rows[used]
        return SVMPath(
            self.kernel,
            self.class_order,
            np.concatenate([[0], np.cumsum(sizes)]),
            np.ascontiguousarray(dual[:, :, used]),
            intercepts,
            indices,
            self.n_features,
        )
