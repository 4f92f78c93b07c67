"""Which rows train and which certify, and the order in which the solver sees them."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GroupKFold


def split_rows(n_rows: int, cert_size: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return training and certification rows, a random split blind to the labels."""
    n_cert = max(1, round(cert_size * n_rows))
    n_train = n_rows - n_cert
    if n_train < 2:
        raise ValueError(
            f"n_samples={n_rows} is too small: cert_size={cert_size!r} leaves "
            f"{n_train} rows to train on, and at least 2 are needed."
        )
    order = rng.permutation(n_rows)
    return np.sort(order[n_cert:]), np.sort(order[:n_cert])


def split_groups(groups, cert_size: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return training and certification rows: whole groups, blind to the labels.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
        Numbers of the groups, from 0.
    cert_size : float
        Share of the groups that certify.
    """
    n_groups = int(groups.max()) + 1
    n_cert = max(1, round(cert_size * n_groups))
    certifies = np.zeros(n_groups, dtype=bool)
    certifies[rng.permutation(n_groups)[:n_cert]] = True
    cert = certifies[groups]
    if np.sum(~cert) < 2:
        raise ValueError(
            f"groups has {n_groups} groups, which is too few: cert_size={cert_size!r} "
            f"leaves {np.sum(~cert)} rows to train on, and at least 2 are needed."
        )
    return np.flatnonzero(~cert), np.flatnonzero(cert)


def content_keys(X, is_kernel_matrix: bool) -> np.ndarray:
    """Return a number per row that does not depend on the order of the rows.

    Sorting by it makes a fit independent of that order. Rows with equal numbers are,
    up to rounding, equal rows.
    """
    # Beyond the range of doubles rows have the largest or least number.
    with np.errstate(over="ignore", invalid="ignore"):
        if is_kernel_matrix:
            # Not the sums themselves: those of a centred matrix vanish.
            return np.nan_to_num(np.einsum("ij,ij->i", X, X))
        direction = np.random.RandomState(0).standard_normal(X.shape[1])
        return np.nan_to_num(np.asarray(X @ direction).ravel())


class Layout:
    """Rows sorted so that the rows of a part and a class are consecutive.

    A part is a fold or a block. With two classes parts come first, so that all parts
    but one are two pieces; with more, classes come first, so that two of them are few.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Classes.
    parts : ndarray of int of shape (n_rows,)
        Part of each row, from 0.
    class_order : ndarray of int of shape (n_classes,)
        Order of the classes.
    ties : ndarray of shape (n_rows,)
        Order of the rows of a part and a class.

    Attributes
    ----------
    order : ndarray of int of shape (n_rows,)
        The rows as sorted.
    places : ndarray of int of shape (n_rows,)
        For each row as sorted, where its class is in `class_order`.
    begins, ends : ndarrays of int of shape (n_classes, n_parts)
        Where the rows of each class and part are in the sorted order.
    """

    def __init__(self, codes, parts, class_order, ties):
        n_classes, n_parts = len(class_order), int(parts.max()) + 1
        place = np.argsort(class_order)[codes]
        sizes = np.bincount(place * n_parts + parts, minlength=n_classes * n_parts)
        sizes = sizes.reshape(n_classes, n_parts)
        if n_classes == 2:
            self.order = np.lexsort((ties, place, parts))
            self.ends = np.cumsum(sizes.T).reshape(n_parts, n_classes).T
        else:
            self.order = np.lexsort((ties, parts, place))
            self.ends = np.cumsum(sizes).reshape(n_classes, n_parts)
        self.begins = self.ends - sizes
        self.places = place[self.order]

    def ranges(self, parts) -> list[list[tuple[int, int]]]:
        """Return, for each class, where its rows of some parts are."""
        # Parts after the last that has rows are not in the table.
        known = [part for part in sorted(parts) if part < self.ends.shape[1]]
        return [
            [(int(begin[p]), int(end[p])) for p in known if begin[p] < end[p]]
            for begin, end in zip(self.begins, self.ends, strict=True)
        ]

    def classes_in(self, part: int) -> np.ndarray:
        """Return the places of the classes of a part's rows, class by class."""
        if part >= self.ends.shape[1]:
            return np.arange(0)
        sizes = self.ends[:, part] - self.begins[:, part]
        return np.repeat(np.arange(len(sizes)), sizes)


def order_classes(codes, keys, n_classes) -> np.ndarray:
    """Return the classes by size, then by their rows: whatever their names are."""
    counts = np.bincount(codes, minlength=n_classes)
    means = np.bincount(codes, weights=keys, minlength=n_classes) / counts
    return np.lexsort((means, counts))


def assign_folds(codes, keys, class_order, n_folds, rng) -> np.ndarray:
    """Return stratified random folds that depend on the rows, not on their order."""
    folds = np.empty(len(codes), dtype=np.intp)
    dealt = 0
    for code in class_order:
        rows = np.flatnonzero(codes == code)
        rows = rows[np.argsort(keys[rows], kind="stable")]
        folds[rng.permutation(rows)] = (np.arange(len(rows)) + dealt) % n_folds
        dealt += len(rows)
    return folds


def assign_group_folds(groups, n_folds, rng) -> np.ndarray:
    """Return random folds of whole groups, of sizes that differ little.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
    """
    # The splitter takes groups of one size in the order of their numbers.
    groups = rng.permutation(int(groups.max()) + 1)[groups]
    folds = np.empty(len(groups), dtype=np.intp)
    splits = GroupKFold(n_folds).split(groups, groups=groups)
    for fold, (_, held) in enumerate(splits):
        folds[held] = fold
    return folds
