"""Collections of dask: rows in chunks that are computed when they are needed.

A fit that is made of sums over the rows takes a pass per sum: a function of a chunk is
run for each, where dask's scheduler says, and only what it returns moves. Results are
added in a fixed tree, so that neither the number of workers nor the order in which they
end changes a bit.
"""

from __future__ import annotations

from copy import copy
from functools import partial, wraps
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from skbounds._base import is_collection, warn_user
from skbounds._hashes import number_hashes
from skbounds._labels import check_labels
from skbounds._typing import Function
from skbounds._validation import check_array

# Sums that are added in one task.
_FAN_IN = 8
_UNIT = 2.0**-64

__all__ = [
    "Chunks",
    "add_tuples",
    "as_table",
    "draw_rows",
    "is_collection",
    "join",
    "lazy_on_collections",
    "rows_that_count",
    "set_names",
]


def _dask():
    import dask

    return dask


class Kind(NamedTuple):
    """What chunks are to be.

    Attributes
    ----------
    dtype : dtype or None
    accept_sparse : {"csr", False}
    target : {"numbers", "labels"} or None
    """

    dtype: object
    accept_sparse: object
    target: str | None


class Chunks:
    """Rows, targets and weights in chunks.

    Parameters
    ----------
    X : dask array or dataframe of shape (n, d)
    y : dask array, series or dataframe, or ndarray, or None
        With as many rows in each chunk as X; of another division where X is an array.
    weight : the same or None
    dtype : dtype or None
        Of X as functions get it; None leaves it as it is.
    accept_sparse : bool
        Whether chunks of X may be sparse.
    target : {"numbers", "labels"} or None
        What y holds.

    Attributes
    ----------
    n_features : int
    names : list or None
        Names of the columns, of a dataframe.
    y_ndim : int or None
    """

    def __init__(
        self, X, y=None, weight=None, *, dtype=np.float64, accept_sparse=True,
        target=None,
    ):  # fmt: skip
        self.kind = Kind(dtype, "csr" if accept_sparse else False, target)
        if target is not None and y is None:
            raise ValueError("y must be passed; the target y is None.")
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D collection instead: X must have "
                "rows and columns."
            )
        self.names = _names_of(X) if _is_frame(X) else None
        self.n_features = int(X.shape[1])
        if not _is_frame(X):
            X = X.rechunk({1: -1})
        self._sizes = None
        if not _is_frame(X) and not np.isnan(X.chunks[0]).any():
            self._sizes = np.array(X.chunks[0])
        parts = [_parts(X)]
        for name, values in (("y", y), ("sample_weight", weight)):
            if values is None:
                parts.append([None] * len(parts[0]))
                continue
            if not is_collection(values):
                values = self._like(values, name)
            elif not _is_frame(values):
                if values.ndim == 2:
                    values = values.rechunk({1: -1})
                if self._sizes is not None:
                    values = self._divided(values, name)
            own = _parts(values)
            if len(own) != len(parts[0]):
                raise ValueError(
                    f"{name} has {len(own)} chunks and X has {len(parts[0])}: divide "
                    "both the same way."
                )
            parts.append(own)
        self.y_ndim = None if y is None else getattr(y, "ndim", None) or np.ndim(y)
        if target == "labels" and self.y_ndim == 2 and not _is_frame(y):
            warn_user(
                "A column-vector y was passed when a 1d array was expected. Please "
                "change the shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
            )
        self.parts = list(zip(*parts, strict=True))

    def _like(self, values, name):
        """Return an array as a collection with the chunks of X."""
        import dask.array

        known = np.asarray(values)
        if known.ndim == 0:
            raise ValueError(
                f"{name} must have an entry for each row, as an array or a collection "
                f"of dask; got {values!r}."
            )
        if known.dtype.kind in "US" and not isinstance(values, np.ndarray):
            # NumPy would make a text of a missing one among texts.
            known = np.asarray(values, dtype=object)
        values = known
        if self._sizes is None:
            raise ValueError(
                f"{name} is an array, and how long the chunks of X are is not known: "
                f"give {name} as a collection of dask too."
            )
        self._check_length(len(values), name)
        return dask.array.from_array(values, chunks=(tuple(self._sizes.tolist()), -1)[
            : values.ndim
        ])  # fmt: skip

    def _divided(self, values, name):
        if np.isnan(values.chunks[0]).any():
            return values
        self._check_length(int(values.shape[0]), name)
        return values.rechunk({0: tuple(self._sizes.tolist())})

    def _check_length(self, n, name):
        if n != self._sizes.sum():
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{self._sizes.sum()}, {name} has {n}."
            )

    def map(self, function, *shared, numbered=False):
        """Return ``function(X, y, weight, *shared)`` of all chunks, in their order.

        Parameters
        ----------
        function : callable
            Its first arguments are arrays, checked; y or weight may be None.
        shared : objects
            What all calls get as well.
        numbered : bool
            Give the number of the chunk's first row before them.
        """
        return list(_dask().compute(*self._tasks(function, shared, numbered)))

    def sums(self, function, *shared, numbered=False, combine=None):
        """Return the sums of the tuples of arrays that a function makes of chunks.

        Parameters
        ----------
        function : callable
            See `map`.
        shared : objects
        numbered : bool
        combine : callable or None
            ``combine(*tuples)`` in place of the sum.
        """
        dask = _dask()
        level = self._tasks(function, shared, numbered)
        while len(level) > 1:
            add = dask.delayed(combine or add_tuples, pure=False)
            level = [
                add(*level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)
            ]
        return dask.compute(level[0])[0]

    def _tasks(self, function, shared, numbered):
        dask = _dask()
        # Once in the graph, however many chunks there are.
        shared = [dask.delayed(one, pure=False, traverse=False) for one in shared]
        run = dask.delayed(_run, pure=False, traverse=False)
        starts = [None] * len(self.parts)
        if numbered:
            starts = [0, *np.cumsum(self.sizes)[:-1].tolist()]
        return [
            run(function, (number, start, self.n_features, self.kind), *part, *shared)
            for number, (start, part) in enumerate(zip(starts, self.parts, strict=True))
        ]

    @property
    def sizes(self):
        """Numbers of rows of the chunks; a pass where they are not known."""
        if self._sizes is None:
            self._sizes = np.array(self.map(_size))
        return self._sizes

    def take(self, numbers):
        """Return rows, targets and weights by their sorted numbers, as arrays."""
        ends = np.r_[0, np.cumsum(self.sizes)]
        cuts = np.searchsorted(numbers, ends)
        own = [numbers[a:b] - ends[k] for k, (a, b) in enumerate(pairwise(cuts))]
        return join(self.map(_take, own, numbered=True))


def _keys_of(X, y, weight, place, seed, size):
    """Return the numbers and keys of a chunk's candidates for the sample."""
    numbers = place[1] + np.arange(X.shape[0])
    u = (number_hashes(numbers, seed) + 0.5) * _UNIT
    keys = -np.log(u)
    if weight is not None:
        with np.errstate(divide="ignore"):
            keys = keys / weight
    kept = np.flatnonzero(np.isfinite(keys))
    return _least(size, (numbers[kept], keys[kept]))


def _least(size, *parts):
    """Return the numbers and keys of so many rows of least keys."""
    numbers, keys = (np.concatenate(column) for column in zip(*parts, strict=True))
    first = np.argsort(keys, kind="stable")[:size]
    return numbers[first], keys[first]


def draw_rows(chunks, seed, size):
    """Return the sorted numbers of rows, drawn in proportion to their weights.

    Without replacement (Efraimidis and Spirakis 2006): those of least -log(u) / w, with
    u from the row's number, however rows are divided into chunks.
    """
    numbers, _ = chunks.sums(
        _keys_of, seed, size, numbered=True, combine=partial(_least, size)
    )
    return np.sort(numbers)


def rows_that_count(X, y, weight):
    """Return rows of positive weight, their targets and weights, and which they are.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
    y : ndarray
    weight : ndarray of shape (n,) or None
        None is 1 for all rows, none of which is copied then.

    Returns
    -------
    X, y, weight : arrays
    kept : ndarray of int or slice
    """
    if weight is None:
        return X, y, np.ones(X.shape[0]), slice(None)
    kept = np.flatnonzero(weight)
    return X[kept], y[kept], weight[kept], kept


def as_table(X):
    """Return a collection of one dimension as one column."""
    if X.ndim != 1:
        return X
    return X.to_frame() if _is_frame(X) else X[:, None]


def set_names(estimator, chunks) -> None:
    """Set what a fit tells of the features."""
    estimator.n_features_in_ = chunks.n_features
    if chunks.names is not None:
        estimator.feature_names_in_ = np.asarray(chunks.names, dtype=object)


def join(parts):
    """Return tuples of arrays, one for each chunk, one after the other."""
    columns = []
    for values in zip(*parts, strict=True):
        values = [value for value in values if value is not None]
        if not values:
            columns.append(None)
        elif issparse(values[0]):
            from scipy.sparse import vstack

            columns.append(vstack(values, format="csr"))
        else:
            columns.append(np.concatenate(values))
    return tuple(columns)


def _names_of(X):
    """Return the names of a dataframe's columns, None where they are no texts."""
    names = list(X.columns)
    texts = sum(isinstance(name, str) for name in names)
    if texts == len(names):
        return names
    if texts:
        raise TypeError(
            "Feature names are only supported if all input features have string "
            f"names, but your input has {names} as feature names."
        )
    return None


def _is_frame(X):
    return hasattr(X, "map_partitions")


def _parts(values):
    """Return the chunks of a collection, to be computed."""
    found = values.to_delayed()
    return list(found) if isinstance(found, list) else np.ravel(found).tolist()


def _run(function, what, X, y, weight, *shared):
    """Check a chunk and apply a function to it."""
    number, start, n_features, kind = what
    place = () if start is None else ((number, start),)
    try:
        X, y, weight = _checked(X, y, weight, n_features, kind)
        return function(X, y, weight, *place, *shared)
    except Exception as error:
        error.add_note(f"In chunk {number} of the collection.")
        raise


def _checked(X, y, weight, n_features, kind):
    # Empty chunks are what filters of dataframes leave.
    X = check_array(
        X, accept_sparse=kind.accept_sparse, dtype=kind.dtype, ensure_min_samples=0,
        input_name="X",
    )  # fmt: skip
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} columns here, and {n_features} as said.")
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{X.shape[0]}, {name} has {len(values)}."
            )
    if kind.target == "numbers":
        y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="y"
        )
    elif kind.target == "labels":
        y = check_labels(y) if len(y) else np.asarray(y).ravel()
    if weight is not None:
        weight = check_array(
            weight, dtype=np.float64, ensure_2d=False, ensure_min_samples=0,
            input_name="sample_weight",
        )  # fmt: skip
        if weight.ndim != 1 or (weight < 0.0).any():
            raise ValueError(
                "sample_weight must be one number for each row, none of them negative."
            )
    return X, y, weight


def _size(X, y, weight):
    return X.shape[0]


def _take(X, y, weight, place, own):
    rows = own[place[0]]
    return (
        X[rows],
        None if y is None else y[rows],
        None if weight is None else weight[rows],
    )


def add_tuples(*parts):
    """Return the sums of tuples of arrays, in their order."""
    total = list(parts[0])
    for part in parts[1:]:
        total = [a + b for a, b in zip(total, part, strict=True)]
    return tuple(total)


# ------------------------------------------------------------------------ predictions


def lazy_on_collections(method: Function) -> Function:
    """Make a method of rows give a collection for a collection, computed when needed.

    For methods ``method(self, X, ...)`` that return an array with a line for each row.
    """

    @wraps(method)
    def wrapper(self, X, *args, **kwargs):
        if not is_collection(X):
            return method(self, X, *args, **kwargs)
        return _lazily(self, method, X, args, kwargs)

    return cast(Function, wrapper)


def _lazily(model, method, X, args, kwargs):
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    # As it is now: a later fit changes nothing of this.
    model = copy(model)
    if X.ndim == 1 and model.n_features_in_ == 1:
        X = as_table(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {X.shape}, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    names = None
    probe = probe_of(model)
    if _is_frame(X):
        names = list(X.columns)
        X = (X if probe.dtype == object else X.astype(np.float64)).to_dask_array()
    X = X.rechunk({1: -1})
    # What the result is like, from one row.
    like = _of_block(probe, model, method, names, None, args, kwargs)
    if not isinstance(like, tuple):
        return _mapped(X, like, model, method, names, None, args, kwargs)
    return tuple(
        _mapped(X, one, model, method, names, k, args, kwargs)
        for k, one in enumerate(like)
    )


def _mapped(X, like, *what):
    shape = {"chunks": (X.chunks[0], *((size,) for size in like.shape[1:]))}
    if like.ndim == 1:
        shape["drop_axis"] = 1
    elif like.ndim > 2:
        shape["new_axis"] = list(range(2, like.ndim))
    return X.map_blocks(_of_block, *what, dtype=like.dtype, meta=like[:0], **shape)


def probe_of(model):
    """Return a row that a fitted model takes."""
    if hasattr(model, "categories_"):
        return np.array([[names[0] for names in model.categories_]], dtype=object)
    return np.ones((1, model.n_features_in_))


def _of_block(block, model, method, names, which, args, kwargs):
    """Return what a method makes of a chunk; one of several results, where asked."""
    empty = not block.shape[0]
    if empty:
        # Methods want a row.
        block = probe_of(model)
    if names is not None:
        import pandas

        block = pandas.DataFrame(block, columns=names)
    found = method(model, block, *args, **kwargs)
    if which is not None:
        found = found[which]
    return found[:0] if empty else found
