"""States of streams whose classes or features become more."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np
import scipy.sparse as sp

from skbounds.fenchel_young._arrays import aligned_zeros


def padded_width(n_outputs, n_experts, n_sums):
    """Return the columns of a table: weights, sums of squares, and a magnitude.

    A mixture's are rounded up to whole vectors; other learners have no experts.
    """
    if not n_experts:
        return n_outputs + 1
    return -(-(n_outputs * n_experts + n_sums + 1) // 16) * 16


def with_more_outputs(state, n_before, n_outputs, n_sums):
    """Return the state with zero weights for outputs that were not there before.

    Of one prediction's outputs, such as the classes of a softmax; arrays are new.
    """
    n_experts = len(state["rates"])
    table = state["table"]
    width = n_before * max(1, n_experts)
    tail = n_sums + 1 if n_experts else 1
    wider = aligned_zeros(
        len(table), padded_width(n_outputs, n_experts, n_sums), table.dtype
    )
    # Most rows of a sparse stream's table were never written, and take no memory.
    used = np.flatnonzero(table.any(axis=1))
    new_width = n_outputs * max(1, n_experts)
    wider[used, :new_width] = _spread(table[used, :width], n_before, n_outputs)
    wider[used, new_width : new_width + tail] = table[used, width : width + tail]
    return {
        **state,
        "table": wider,
        **{
            name: _spread(state[name], n_before, n_outputs)
            for name in ("average", "gradient", "gradients")
        },
    }


def _spread(array, n_before, n_outputs):
    """Return the array with zero columns added to each block of outputs."""
    blocks = array.shape[1] // n_before
    result = np.zeros((len(array), blocks, n_outputs), array.dtype)
    result[:, :, :n_before] = array.reshape(len(array), blocks, n_before)
    return result.reshape(len(array), blocks * n_outputs)


def with_more_rows(state, n_features, intercept):
    """Return the state with room for features that were not there before.

    At least half as many rows again: one feature after the other costs little. The
    intercept stays in the last row.
    """
    before = len(state["table"]) - intercept
    n_rows = max(n_features, before + before // 2 + 16) + intercept
    result = dict(state)
    for name in ("table", "average", "gradient", "gradients"):
        array = state[name]
        if not len(array):
            continue
        longer = aligned_zeros(n_rows, array.shape[1], array.dtype)
        longer[:before] = array[:before]
        if intercept:
            longer[-1] = array[-1]
        result[name] = longer
    return result


def with_columns(X, n_features):
    """Return CSR rows with so many columns: what is beyond is dropped."""
    if X.shape[1] == n_features:
        return X
    if X.shape[1] > n_features:
        return X[:, :n_features]
    return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


# ------------------------------------------------------------ rows that are dicts


def are_dicts(X):
    """Tell whether X is a sequence of mappings."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def code_dict(row, vocabulary, fresh=None):
    """Return ascending columns and values of a row that is a mapping.

    Parameters
    ----------
    row : Mapping
        Numbers by name; a text is a category, and its name that of the feature, "="
        and the text, with the value 1 (as in scikit-learn's ``DictVectorizer``).
    vocabulary : dict
        Columns by name.
    fresh : dict, default=None
        Gets the columns of names that the vocabulary lacks; without it they are left
        out.
    """
    if not isinstance(row, Mapping):
        raise ValueError(
            "The stream's rows are dicts: each row must be one, of numbers by name; "
            f"got {type(row).__name__}."
        )
    found = {}
    for name, value in row.items():
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        elif not isinstance(value, Real | np.bool_):
            raise ValueError(
                f"Values of a row must be numbers or texts; got {value!r} for {name!r}."
            )
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(
                f"Values of a row must be finite; got a number of "
                f"{len(str(value))} digits for {name!r}."
            ) from None
        column = vocabulary.get(name)
        if column is None and fresh is not None:
            column = fresh.setdefault(name, len(vocabulary) + len(fresh))
        if column is not None:
            # A number "a=b" and the text "b" of "a" are one feature.
            found[column] = found.get(column, 0.0) + value
    columns = sorted(found)
    return (
        np.array(columns, dtype=np.int64),
        np.array([found[column] for column in columns], dtype=np.float64),
    )


def code_dicts(rows, vocabulary, fresh=None):
    """Return a CSR matrix of rows that are mappings; see `code_dict`."""
    coded = [code_dict(row, vocabulary, fresh) for row in rows]
    lengths = [len(columns) for columns, _ in coded]
    return sp.csr_matrix(
        (
            np.concatenate([values for _, values in coded]),
            np.concatenate([columns for columns, _ in coded]),
            np.concatenate([[0], np.cumsum(lengths)]),
        ),
        shape=(len(rows), len(vocabulary) + len(fresh or ())),
    )
