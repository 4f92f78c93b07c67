"""The light path: one row at a time, with everything prepared beforehand."""

from __future__ import annotations

import numpy as np

from skbounds.fenchel_young._arrays import check_magnitude, get_kernel, read_only

# Rows whose uniform numbers are drawn ahead.
_AHEAD = 256


class LightPath:
    """Buffers and settings for streams that come row by row."""

    def __init__(self, estimator):
        from skbounds.fenchel_young import _streams

        loss = estimator._make_loss()
        self.state = estimator._writeable_state()
        self.table = self.state.table
        self.settings = estimator._settings(loss)
        self.kernel = get_kernel(estimator._learner_, estimator._sparse_)
        self.sparse = estimator._sparse_
        self.raw = estimator._scaling_ == "none"
        self.beyond = _streams.BEYOND
        self.rows = _streams.ROWS
        self.dtype = self.table.dtype
        self.n_features = estimator.n_features_in_
        self.targets = np.zeros((1, loss.n_targets), np.int64)
        self.plays = np.zeros((1, loss.n_targets), np.int64)
        self.draws = loss.n_uniforms(estimator._params_["decoding"])
        self.draw = estimator._uniforms
        self.ahead, self.first = None, 0
        self.row = np.zeros((1, self.n_features), self.dtype)
        self.n_outputs = loss.n_outputs
        self._make_scratch(0 if self.sparse else self.n_features)

    def _make_scratch(self, longest):
        from skbounds.fenchel_young import _streams

        self.longest = longest
        self.scratch = _streams.make_scratch(
            self.state, self.n_outputs, longest, self.targets.shape[1]
        )

    def _to_numbers(self, values, name):
        """Return an array of the stream's precision."""
        values = np.asarray(values)
        if values.dtype.kind == "c":
            raise ValueError(f"{name} must be real; got complex numbers.")
        # What overflows in the stream's precision is refused as infinite.
        with np.errstate(over="ignore"):
            return values.astype(self.dtype, copy=False)

    def fill(self, x):
        """Check a row and take it over."""
        if not self.sparse:
            x = self._to_numbers(x, "x")
            if x.shape != (self.n_features,):
                raise ValueError(
                    f"x must have shape ({self.n_features},); got {x.shape}."
                )
            check_magnitude(x, "x", raw=self.raw)
            self.row[0] = x
            self.arrays = (read_only(self.row),)
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
        if len(indices) and not (indices[0] >= 0 and indices[-1] < self.n_features):
            raise ValueError(
                f"indices must lie in [0, {self.n_features}); got "
                f"{int(indices[0])} to {int(indices[-1])}."
            )
        check_magnitude(values, "values", raw=self.raw)
        if len(indices) > self.longest:
            self._make_scratch(2 * len(indices))
        self.arrays = (
            read_only(values),
            read_only(np.asarray(indices, dtype=np.int32)),
            read_only(np.array([0, len(indices)], dtype=np.int64)),
        )

    def run(self, log):
        """Play and learn the row that was taken over."""
        at = int(self.state.scalars[self.rows])
        if self.ahead is None or not 0 <= at - self.first < len(self.ahead):
            self.ahead, self.first = self.draw(_AHEAD, self.draws), at
        offset = at - self.first
        self.kernel(
            self.settings,
            self.state,
            self.scratch,
            *self.arrays,
            self.targets,
            self.ahead[offset : offset + 1],
            self.plays,
            log,
        )
