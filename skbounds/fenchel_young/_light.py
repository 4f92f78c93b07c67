"""The light path: one row at a time, with everything prepared beforehand."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from skbounds._validation import validate_data
from skbounds.fenchel_young._arrays import check_magnitude

# Rows whose uniform numbers are drawn ahead.
_AHEAD = 256


class LightPath:
    """Buffers and settings for streams that come row by row."""

    def __init__(self, estimator):
        loss = estimator._make_loss()
        self.estimator, self.index = estimator, self
        self.stream = estimator._stream(loss)
        self.table = estimator._state_["table"]
        self.scalars = estimator._state_["scalars"]
        self.sparse = estimator._sparse_
        self.raw = estimator._scaling_ == "none"
        self.dtype = self.table.dtype
        self.n_features = estimator.n_features_in_
        self.targets = np.zeros((1, loss.n_targets), np.int64)
        self.plays = np.zeros((1, loss.n_targets), np.int64)
        self.draws = loss.n_uniforms(estimator._params_["decoding"])
        self.draw = estimator._uniforms
        self.ahead, self.first = None, 0
        self.n_outputs, self.n_targets = loss.n_outputs, loss.n_targets
        self.n_needed, self.grows = self.n_features, estimator._grows_
        self.row = np.zeros((1, self.n_features), self.dtype)
        self.weight = np.ones(1)
        self.run_row = self.stream.sparse if self.sparse else self.stream.dense

    def _to_numbers(self, values, name):
        """Return an array of the stream's precision."""
        values = np.asarray(values)
        if values.dtype.kind == "c":
            raise ValueError(f"{name} must be real; got complex numbers.")
        # What overflows in the stream's precision is refused as infinite.
        with np.errstate(over="ignore"):
            return values.astype(self.dtype, copy=False)

    def _check_names(self, x):
        """Compare the names of a row, if it has some, as `predict` does.

        What differs only in having names or not is warned of once.
        """
        index = getattr(x, "index", None)
        index = None if callable(index) else index
        # Rows taken from one dataframe share their names.
        if index is self.index:
            return
        table = np.atleast_2d(x) if index is None else x.to_frame().T
        validate_data(self.estimator, table, reset=False, skip_check_array=True)
        self.index = index

    def fill(self, x):
        """Check a row and take it over; `n_needed` tells the features it needs."""
        if not self.sparse:
            given, x = x, self._to_numbers(x, "x")
            if x.shape != (self.n_features,):
                raise ValueError(
                    f"x must have shape ({self.n_features},); got {x.shape}."
                )
            self._check_names(given)
            check_magnitude(x, "x", raw=self.raw)
            self.row[0] = x
            self.arrays = (self.row,)
            return
        if not isinstance(x, tuple) or len(x) != 2:
            raise ValueError(
                "The stream is sparse: x must be a pair (indices, values); got "
                f"{type(x).__name__}."
            )
        indices = np.asarray(x[0])
        values = self._to_numbers(x[1], "values")
        if indices.ndim != 1 or indices.shape != values.shape:
            raise ValueError(
                "indices and values must be 1-d and equally long; got shapes "
                f"{indices.shape} and {values.shape}."
            )
        if len(indices) and indices.dtype.kind not in "iu":
            raise ValueError(f"indices must be integers; got {indices.dtype}.")
        # Differences of unsigned numbers would wrap around.
        indices = indices.astype(np.int64)
        if len(indices) > 1 and not (np.diff(indices) > 0).all():
            order = np.argsort(indices, kind="stable")
            indices, values = indices[order], values[order]
            if (np.diff(indices) == 0).any():
                raise ValueError("indices must not repeat.")
        n_features = self.estimator.n_features_in_
        self.n_needed = n_features
        if self.grows and len(indices) and indices[0] >= 0:
            self.n_needed = max(n_features, int(indices[-1]) + 1)
        if len(indices) and not (indices[0] >= 0 and indices[-1] < self.n_needed):
            raise ValueError(
                f"indices must lie in [0, {n_features}); got "
                f"{int(indices[0])} to {int(indices[-1])}."
            )
        check_magnitude(values, "values", raw=self.raw)
        self.arrays = (
            np.ascontiguousarray(values),
            np.ascontiguousarray(indices, dtype=np.int32),
            np.array([0, len(indices)], dtype=np.int64),
        )

    def as_rows(self):
        """Return the row that was taken over as a matrix."""
        if not self.sparse:
            return self.row
        values, indices, ends = self.arrays
        shape = (1, self.estimator.n_features_in_)
        return csr_matrix((values, indices, ends), shape)

    def copied_arrays(self):
        """Return the row that was taken over, to be kept."""
        return tuple(array.copy() for array in self.arrays)

    def uniforms(self, at):
        """Return the uniform numbers of play `at`, shape (1, n)."""
        if self.ahead is None or not 0 <= at - self.first < len(self.ahead):
            self.ahead, self.first = self.draw(_AHEAD, self.draws, at), at
        offset = at - self.first
        return self.ahead[offset : offset + 1]

    def run(self, log, at):
        """Play and learn the row that was taken over, as play `at`."""
        uniforms = self.uniforms(at)
        self.run_row(*self.arrays, self.targets, uniforms, self.plays, log, self.weight)

    def try_row(self, arrays, weight, at):
        """Play a row as `run` would; return play, nearest vertex and law, (1, n)."""
        drawn = np.zeros((1, self.n_targets), np.int64)
        nearest, means = np.zeros_like(drawn), np.zeros((1, self.n_outputs))
        try_row = self.stream.try_sparse if self.sparse else self.stream.try_dense
        try_row(*arrays, weight, self.uniforms(at)[0], drawn[0], nearest[0], means[0])
        return drawn, nearest, means

    def learn(self, log, arrays, drawn, nearest, means):
        """Learn a row that was played before."""
        self.run_row(
            *arrays,
            self.targets,
            np.zeros((1, self.draws)),
            np.zeros((0, self.n_targets), np.int64),
            log,
            self.weight,
            means,
            drawn,
            nearest,
        )
