"""Fitted SVMs that share their kernel rows, and one of them seen as a classifier."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator
from skbounds._blocks import memory_limit, row_blocks
from skbounds._validation import check_array
from skbounds.pac_bayes._svm_path import class_scores, vote


class SVMPath:
    """SVMs for several C on the same rows.

    Parameters
    ----------
    kernel : Kernel
        Its fixed rows are those that support some member, by class.
    class_order : ndarray of int of shape (n_classes,)
        Codes of the classes (in the order of the labels) in the order used inside.
    class_starts : ndarray of int of shape (n_classes + 1,)
        Where the rows of each class begin.
    dual : ndarray of shape (n_members, n_classes - 1, n_rows)
        Dual coefficients, positive on the later class of a pair.
    intercepts : ndarray of shape (n_members, n_pairs)
    row_indices : ndarray of int of shape (n_rows,)
        Numbers of the rows in the data given to ``fit``.
    n_features : int
    """

    def __init__(
        self, kernel, class_order, class_starts, dual, intercepts, row_indices,
        n_features,
    ):  # fmt: skip
        self.kernel = kernel
        self.class_order, self.class_starts = class_order, class_starts
        self.dual, self.intercepts = dual, intercepts
        self.row_indices, self.n_features = row_indices, n_features
        self.pairs = np.array(list(combinations(range(len(class_order)), 2)))

    def decisions(self, X, members=slice(None)):
        """Yield blocks of rows and their decisions (n_rows, n_members, n_pairs).

        A decision is positive for the later class of its pair.
        """
        dual, intercepts = self.dual[members], self.intercepts[members]
        n_members, n_lines, n_rows = dual.shape
        per_row = 2 * n_rows + 4 * n_members * len(self.pairs)
        for block in row_blocks(X.shape[0], memory_limit() // max(per_row, 1)):
            K = self.kernel.matrix(X[block])
            K = K.toarray() if hasattr(K, "toarray") else K
            part = np.zeros((len(self.class_order), len(K), n_members, n_lines))
            for k, (start, stop) in enumerate(
                zip(self.class_starts[:-1], self.class_starts[1:], strict=True)
            ):
                columns = dual[:, :, start:stop].reshape(
                    n_members * n_lines, stop - start
                )
                part[k] = (K[:, start:stop] @ columns.T).reshape(part[k].shape)
            out = np.empty((len(K), n_members, len(self.pairs)))
            for p, (a, b) in enumerate(self.pairs):
                out[:, :, p] = part[a, :, :, b - 1] + part[b, :, :, a]
            yield block, out + intercepts

    def codes(self, X, members=slice(None)):
        """Return predicted class codes, shape (n_rows, n_members)."""
        return self.codes_and_average(X, members)[0]

    def codes_and_average(self, X, members=slice(None), weights=None):
        """Return predicted codes, and the weighted sum of the members' scores.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        members : sequence of int
        weights : ndarray of shape (n_members,) or None
            None: no sum is wanted.

        Returns
        -------
        codes : ndarray of int of shape (n_rows, n_members)
        average : ndarray of shape (n_rows, n_classes or 1) or None
        """
        n_classes = len(self.class_order)
        codes = np.empty((X.shape[0], len(self.dual[members])), dtype=np.intp)
        average = None
        if weights is not None:
            average = np.empty((X.shape[0], 1 if n_classes == 2 else n_classes))
        for block, decisions in self.decisions(X, members):
            found = vote(decisions, n_classes, self.class_order)
            codes[block] = self.class_order[found]
            if weights is not None:
                scores = class_scores(decisions, self.class_order)
                average[block] = np.einsum("nhk,h->nk", scores, weights)
        return codes, average

    def class_scores(self, X, members=slice(None)):
        """Return scores (n_rows, n_members, n_classes), or (…, 1) for two classes."""
        parts = [
            class_scores(decisions, self.class_order)
            for _, decisions in self.decisions(X, members)
        ]
        return np.concatenate(parts)


class ConstantPath:
    """Members that know one class only: the training rows had no other.

    Parameters
    ----------
    n_members : int
    n_features : int
    """

    pairs = np.empty((0, 2), dtype=np.intp)

    def __init__(self, n_members, n_features):
        self.n_features = n_features
        self.kernel = None
        self.class_order, self.class_starts = (
            np.zeros(1, dtype=np.intp),
            np.zeros(2, int),
        )
        self.dual = np.zeros((n_members, 0, 0))
        self.intercepts = np.zeros((n_members, 0))
        self.row_indices = np.arange(0)

    def codes(self, X, members=slice(None)):
        """Return code 0 everywhere."""
        return self.codes_and_average(X, members)[0]

    def codes_and_average(self, X, members=slice(None), weights=None):
        """Return code 0 everywhere, and the weights' sum."""
        codes = np.zeros((X.shape[0], len(self.dual[members])), dtype=np.intp)
        if weights is None:
            return codes, None
        return codes, np.full((X.shape[0], 1), np.sum(weights))

    def class_scores(self, X, members=slice(None)):
        """Return score 1 everywhere."""
        return np.ones((X.shape[0], len(self.dual[members]), 1))


class SVMMember(ClassifierMixin, SkboundsEstimator):
    """One fitted member of an SVM ensemble, with the attributes of a fitted ``SVC``.

    Made by `PACBayesSVMEnsemble`; shares the ensemble's memory.

    Parameters
    ----------
    C : float
        Penalty that it was fitted with.

    Attributes
    ----------
    classes_, dual_coef_, intercept_, support_, support_vectors_, n_support_
        As in `sklearn.svm.SVC`; `support_` are row numbers of the data given to the
        ensemble's ``fit``.
    n_features_in_ : int
        Number of features.
    """

    def __init__(self, C=1.0):
        self.C = C

    @classmethod
    def _from_path(cls, path: SVMPath, index: int, C: float, classes):
        member = cls(C=C)
        member._path, member._index = path, index
        member.classes_, member.n_features_in_ = classes, path.n_features
        return member

    def fit(self, X=None, y=None):
        """Refuse: members are fitted by their ensemble.

        Parameters
        ----------
        X : ignored
            Not used.
        y : ignored
            Not used.
        """
        raise NotImplementedError("A member is fitted by its ensemble; fit that.")

    def _layout(self):
        """Return positions of the support vectors by label, and their class codes."""
        path = self._path
        used = np.any(path.dual[self._index] != 0.0, axis=0)
        owner = np.repeat(path.class_order, np.diff(path.class_starts))
        positions = np.flatnonzero(used)
        positions = positions[np.argsort(owner[positions], kind="stable")]
        return positions, owner[positions]

    @property
    def support_(self):
        """Numbers of the support vectors among the rows given to the ensemble."""
        return self._path.row_indices[self._layout()[0]]

    @property
    def support_vectors_(self):
        """The support vectors, as the kernel takes them (scaled, if it scales)."""
        positions, _ = self._layout()
        if self._path.kernel is None or self._path.kernel.name == "precomputed":
            return np.empty((0, 0))
        return self._path.kernel.rows[positions]

    @property
    def n_support_(self):
        """Number of support vectors of each class."""
        return np.bincount(self._layout()[1], minlength=len(self.classes_))

    @property
    def dual_coef_(self):
        """Dual coefficients, with the layout and signs of ``SVC``."""
        positions, owner = self._layout()
        place = np.argsort(self._path.class_order)
        magnitude = np.abs(self._path.dual[self._index][:, positions])
        n_classes = len(self.classes_)
        out = np.zeros((n_classes - 1, len(positions)))
        for t, label in enumerate(owner):
            for other in range(n_classes):
                if other == label:
                    continue
                inside = place[other] - (place[other] > place[label])
                first = label < other
                sign = 1.0 if (first != (n_classes == 2)) else -1.0
                out[other - (other > label), t] = sign * magnitude[inside, t]
        return out

    @property
    def intercept_(self):
        """Intercepts of the pairs of classes, with the signs of ``SVC``."""
        place = np.argsort(self._path.class_order)
        values = {
            tuple(pair): value
            for pair, value in zip(
                self._path.pairs.tolist(),
                self._path.intercepts[self._index],
                strict=True,
            )
        }
        out = []
        for i, j in combinations(range(len(self.classes_)), 2):
            a, b = place[i], place[j]
            # Inside, positive means the later class; in SVC with several, the first.
            toward_j = values[a, b] if a < b else -values[b, a]
            out.append(toward_j if len(self.classes_) == 2 else -toward_j)
        return np.array(out)

    def decision_function(self, X):
        """Return decision values, shape (n_samples,) or (n_samples, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray
            As ``SVC`` with ``decision_function_shape="ovr"``.
        """
        X = self._check(X)
        scores = self._path.class_scores(X, [self._index])[:, 0]
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Predict classes by one-against-one voting.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.
        """
        X = self._check(X)
        return self.classes_[self._path.codes(X, [self._index])[:, 0]]

    def _check(self, X):
        check_is_fitted(self, "classes_")
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but the member expects "
                f"{self.n_features_in_} features as input."
            )
        return X
