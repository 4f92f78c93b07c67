"""Labels as people have them: columns of any library, coded by their classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import column_or_1d

from skbounds._frames import is_frame, only_column
from skbounds._validation import (
    assert_all_finite,
    check_classification_targets,
    validate_data,
)


def is_missing(label) -> bool:
    """Tell whether a label is None, NaN, NaT or pandas.NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        # pandas.NA is neither equal nor unequal; arrays are for others to refuse.
        return np.ndim(label) == 0


def refuse_missing(labels, name="y") -> None:
    """Raise an error if some label of an array is missing."""
    kind = labels.dtype.kind
    if kind == "O":
        missing = any(map(is_missing, labels.ravel().tolist()))
    elif kind in "mM":
        missing = bool(np.isnat(labels).any())
    else:
        if kind == "f":
            assert_all_finite(labels, input_name=name)
        return
    if missing:
        raise ValueError(
            f"Input {name} contains NaN, None or another missing value: a label is "
            "missing. Leave such rows out, or make 'missing' a class of its own."
        )


def check_labels(y, name="y", *, warn=False, known=False) -> np.ndarray:
    """Return labels as an array of shape (n,), none of them missing.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, 1)
        Of numbers, texts, categories or dates, in an array or a dataframe's column.
    name : str, default='y'
        For messages.
    warn : bool, default=False
        Whether to warn if y is one column of a matrix, as scikit-learn does.
    known : bool, default=False
        Whether the classes are known: anything else is a label that is none of them.
    """
    if is_frame(y):
        # A dataframe's only column is no accident.
        y, warn = only_column(y), False
    if isinstance(y, (list, tuple)) and any(map(is_missing, y)):
        # NumPy would make a text of a NaN among texts.
        y = np.array(y, dtype=object)
    # NumPy keeps the numbers of nullable columns whole; scikit-learn does not.
    try:
        labels = y if hasattr(y, "tocsr") else np.asarray(y)
    except ValueError:
        raise ValueError(
            f"{name} must hold one label for each row; got rows of several lengths."
        ) from None
    labels = column_or_1d(labels, warn=warn)
    refuse_missing(labels, name)
    if not known and labels.dtype.kind not in "iubU":
        # Whole numbers and text are labels for sure.
        check_classification_targets(labels)
    return labels


def validate_labelled(estimator, X, y, **accepts):
    """Return rows and labels as ``validate_data`` does, and labels as they are.

    scikit-learn makes floats of nullable integers, and has no word for a missing label.
    """
    if y is not None:
        y = check_labels(y, warn=True)
    return validate_data(estimator, X, y, **accepts)


def declared_order(y):
    """Return the categories that y declares, in their order, and whether it counts.

    Returns
    -------
    categories : ndarray or None
        None if y has no declared categories.
    ordered : bool
        Whether the order means something: ordered pandas categories, polars' Enum.
    """
    y = only_column(y)
    dtype = getattr(y, "dtype", None)
    kind = type(dtype).__name__
    if kind == "Enum":
        # Of polars; it has no unordered one.
        return np.asarray(dtype.categories), True
    if kind == "CategoricalDtype":
        return np.asarray(dtype.categories), bool(dtype.ordered)
    return None, False


def labels_to_fit(y, labels):
    """Return labels as classifiers are to see them: with categories that y declares.

    Parameters
    ----------
    y : array-like
        As given.
    labels : ndarray of shape (n,)
        What `check_labels` makes of it.
    """
    return labels if declared_order(y)[0] is None else only_column(y)


def code_groups(groups) -> np.ndarray:
    """Return the number of each row's group, from 0 in the order of their names.

    Parameters
    ----------
    groups : array-like of shape (n,)
    """
    groups = np.asarray(only_column(groups))
    if groups.ndim != 1:
        raise ValueError(f"groups must have shape (n_samples,); got {groups.shape}.")
    try:
        refuse_missing(groups, "groups")
        return np.unique(groups, return_inverse=True)[1].ravel()
    except (TypeError, ValueError):
        raise ValueError(
            "groups must be values of one kind, none of them missing; got "
            f"{list(dict.fromkeys(groups.tolist()))[:5]!r}."
        ) from None


def check_several(classes, who) -> None:
    """Refuse a single class."""
    if len(classes) < 2:
        if len(classes) == 0:
            raise ValueError(f"{who} needs samples of at least 2 classes; got none.")
        raise ValueError(
            f"{who} needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes.tolist()[0]!r}."
        )


def code_labels(labels, classes) -> np.ndarray:
    """Return the position of each label among classes, -1 for others.

    Parameters
    ----------
    labels : array-like of shape (n,)
    classes : ndarray of shape (n_classes,)
        In any order.
    """
    labels, classes = np.asarray(labels), np.asarray(classes)
    try:
        order = np.argsort(classes, kind="stable")
        places = np.searchsorted(classes, labels, sorter=order)
        codes = order[np.minimum(places, len(classes) - 1)]
    except TypeError:
        # Texts and numbers in one array have no order.
        places = {label: code for code, label in enumerate(classes.tolist())}
        return np.array([places.get(v, -1) for v in labels.tolist()], dtype=np.intp)
    return np.where(classes[codes] == labels, codes, -1)
