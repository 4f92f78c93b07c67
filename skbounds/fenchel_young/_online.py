"""What the online estimators share: the stream, its accounts, and its guarantees."""

from __future__ import annotations

from math import inf, log, nan, sqrt
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from skbounds._base import (
    SkboundsEstimator,
    fit_from_scratch,
    unchanged_on_error,
    warn_user,
)
from skbounds._blocks import memory_limit, row_blocks
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds.fenchel_young import _bounds
from skbounds.fenchel_young._losses import DECODINGS, FenchelYoungLoss

# Uniform numbers drawn at a time; bounds the memory of long calls.
_UNIFORMS = 2**20
# Squares of entries must not overflow.
_LARGEST = 1e150
# Rows whose uniform numbers the one-row path draws ahead.
_AHEAD = 256


def _account(name, index, doc):
    """Return a read-only attribute that is one number of the stream's accounts."""

    def read(self):
        return float(self._scalar(index))

    read.__name__ = name
    read.__doc__ = doc
    return property(read)


class FenchelYoungOnline(SkboundsEstimator):
    """Base of the estimators that learn from a stream, one row after the other.

    A subclass says what its loss is, and how targets and plays look.
    """

    _lazy_attributes = (
        "coef_",
        "intercept_",
        "expert_coefs_",
        "expert_intercepts_",
    )
    _mixable: ClassVar[tuple[str, ...]] = ("logistic", "sigmoid")

    _parameter_constraints: ClassVar[dict] = {
        "learner": [
            StrOptions({"auto", "mixture", "ogd", "adaptive", "parameter_free"})
        ],
        "experts": ["array-like"],
        "share": [Interval(Real, 0, 1, closed="left")],
        "feature_scaling": [StrOptions({"auto", "none"})],
        "clip": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "feature_norm": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "diameter": [Interval(Real, 0, None, closed="neither"), None],
        "initial_wealth": [Interval(Real, 0, None, closed="neither")],
        "constants": [StrOptions({"sharp", "paper"})],
        "fit_intercept": ["boolean"],
        "average": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # ------------------------------------------------------------ to be defined

    def _make_loss(self) -> FenchelYoungLoss:
        """Return the loss, from parameters and the targets' description."""
        raise NotImplementedError

    def _encode(self, y, classes, first, complete) -> np.ndarray:
        """Return int64 targets; on the first call store what describes them.

        ``complete`` tells that all labels of the stream are in y.
        """
        raise NotImplementedError

    def _encode_one(self, y, target) -> None:
        """Write the target of one row."""
        raise NotImplementedError

    def _decode_plays(self, plays):
        """Return plays in the user's form."""
        raise NotImplementedError

    # ------------------------------------------------------------ learning

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(self, X, y):
        """Learn from the rows as one stream, in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The stream.
        y : array-like
            Targets.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._params_ = self.get_params(deep=False)
        X, targets = self._validate(X, y, None, complete=True)
        for iteration in range(self.max_iter):
            self._run(X, targets, log=iteration == 0)
            if iteration == 0 and self.max_iter > 1:
                self._close_account()
            if self.verbose:
                print(
                    f"[{type(self).__name__}] pass {iteration + 1}/{self.max_iter}: "
                    f"{len(targets)} rows; first pass: mean surrogate loss "
                    f"{self.cumulative_surrogate_loss_ / len(targets):.4g}, mean "
                    f"expected loss {self.expected_cumulative_loss_ / len(targets):.4g}"
                )
        self.n_iter_ = self.max_iter
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def partial_fit(self, X, y, classes=None):
        """Go on with the stream: play each row, then learn it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows.
        y : array-like
            Their targets.
        classes : array-like, default=None
            All classes that the stream may have; counts in the first call only, where
            it defaults to the labels in `y`.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._go_on(X, y, classes, keep=False)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def play(self, X, y, classes=None):
        """Go on with the stream and return what was played on it.

        Each row is played before its target is looked at: a progressive validation of
        the whole stream in one call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows.
        y : array-like
            Their targets.
        classes : array-like, default=None
            As in `partial_fit`.

        Returns
        -------
        plays : ndarray
            The plays, in the form of the targets.
        """
        return self._decode_plays(self._go_on(X, y, classes, keep=True))

    @unchanged_on_error
    def learn_one(self, x, y):
        """Play one row, then learn it: the light path, for streams row by row.

        Parameters
        ----------
        x : array-like of shape (n_features,) or tuple of (indices, values)
            The row; the second form where the stream is sparse.
        y : object
            Its target.

        Returns
        -------
        play : object
            What was played.

        Raises
        ------
        NotFittedError
            Before the first `fit`, `partial_fit` or `play`, which tell the classes and
            the number of features.
        """
        if "_state_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} instance does not know its classes and "
                "features yet. Call 'partial_fit' (with 'classes') first."
            )
        light = self._light_path()
        light.fill(x)
        self._encode_one(y, light.targets[0])
        before = light.state.scalars[light.beyond]
        light.run(self._log_)
        if light.state.scalars[light.beyond] > before == 0:
            self._warn_of_long_row()
        return self._decode_plays(light.plays.copy())[0]

    def _go_on(self, X, y, classes, keep):
        if "_state_" not in vars(self):
            self._params_ = self.get_params(deep=False)
            self.n_iter_ = 1
        X, targets = self._validate(X, y, classes, complete=False)
        return self._run(X, targets, log=self._log_, keep=keep)

    def _validate(self, X, y, classes, complete):
        """Return checked rows and targets; on the first call set up the state."""
        first = "_state_" not in vars(self)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        dtype = [np.float64, np.float32] if first else self._state_["table"].dtype
        # What overflows in the stream's precision is refused as infinite.
        with np.errstate(over="ignore"):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=dtype, order="C", reset=first
            )
        check_consistent_length(X, y)
        if not first and sp.issparse(X) != self._sparse_:
            raise ValueError(
                "A stream is either dense or sparse throughout; it began "
                f"{'sparse' if self._sparse_ else 'dense'} and goes on "
                f"{'sparse' if sp.issparse(X) else 'dense'}. Convert the rows."
            )
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if X.dtype == np.float64:
            _check_magnitude(X.data if sp.issparse(X) else X, "X")
        targets = self._encode(y, classes, first, complete)
        if first:
            self._start(X)
        return X, targets

    def _begin(self, X, y):
        """Begin a stream without learning; return checked rows and targets."""
        self._validate_params()
        self._params_ = self.get_params(deep=False)
        self.n_iter_ = 1
        return self._validate(X, y, None, complete=True)

    def _seen_features(self, X):
        """Return the rows of a whole stream as the learner sees them, from scratch."""
        from skbounds.fenchel_young import _streams

        n, n_features = X.shape
        intercept = bool(self._params_["fit_intercept"])
        scaled = self._scaling_ == "auto"
        if self._sparse_:
            X = X.astype(np.float64)
            X.eliminate_zeros()
            if scaled:
                columns, first = np.unique(X.indices, return_index=True)
                magnitude = np.ones(n_features)
                magnitude[columns] = np.abs(X.data[first])
                X.data = np.clip(
                    X.data / magnitude[X.indices],
                    -self._params_["clip"],
                    self._params_["clip"],
                )
            return sp.hstack([X, np.ones((n, 1))], format="csr") if intercept else X
        features = np.zeros((n, n_features + intercept))
        _streams.features_dense(
            _streams.STANDARDIZE if scaled else _streams.RAW,
            intercept,
            float(self._params_["clip"]),
            _read_only(X),
            np.zeros(n_features),
            np.zeros(n_features),
            0.0,
            features,
        )
        return features

    def _start(self, X):
        """Set up the state from the first rows and the parameters."""
        from skbounds.fenchel_young import _streams

        params = self._params_
        learner = self._learner()
        loss = self._make_loss()
        decoding = params["decoding"]
        if learner == "mixture":
            experts = np.asarray(params["experts"], dtype=np.float64)
            if experts.ndim != 1 or not np.all(np.isfinite(experts) & (experts > 0)):
                raise ValueError(
                    "experts must be a sequence of positive finite step multipliers; "
                    f"got {params['experts']!r}."
                )
            rates = np.concatenate([[0.0], experts])
            groups = 1 if loss.structure == "simplex" else loss.size
        else:
            rates, groups = np.zeros(0), 0
        if learner == "adaptive" and params["diameter"] is None:
            raise ValueError(
                "learner='adaptive' needs diameter, that of the ball of weights which "
                "comparators are taken from; got None."
            )
        intercept = params["fit_intercept"]
        n_rows = X.shape[1] + intercept
        width = loss.n_outputs * max(1, len(rates))
        # Weights, accumulator and scale of a feature share a row; whole cache lines.
        padded = width + 1
        if learner == "mixture":
            padded = -(-(width + 2) // 16) * 16
        self._sparse_ = sp.issparse(X)
        scaled = learner in ("mixture", "dual") and params["feature_scaling"] == "auto"
        dense_map = scaled and not self._sparse_
        by_gradient = learner in ("adaptive", "parameter_free")
        self._state_ = {
            "table": _streams.aligned_zeros(n_rows, padded, X.dtype),
            "average": np.zeros((n_rows if params["average"] else 0, width)),
            "gradient": np.zeros((n_rows if by_gradient else 0, loss.n_outputs)),
            "mean": np.zeros(X.shape[1] if dense_map else 0),
            "square": np.zeros(X.shape[1] if dense_map else 0),
            "weights": np.full((groups, len(rates)), 1.0 / max(1, len(rates))),
            "rates": rates,
            "scalars": self._first_scalars(),
        }
        self._learner_ = learner
        self._scaling_ = "none" if not scaled else "auto"
        self._log_ = True
        self._seed_ = int(
            check_random_state(params["random_state"]).randint(np.iinfo(np.int32).max)
        )
        constants = loss.constants(decoding, params["constants"])
        length = params["feature_norm"]
        if learner in ("mixture", "dual"):
            self._norm_limit_ = inf
        else:
            if length == "auto":
                length = sqrt(row_norms(X, squared=True).max() + intercept)
            self._norm_limit_ = float(length)
        self._scale_ = 1.0
        if learner != "mixture":
            self._scale_ = loss.scale(decoding, params["constants"])
        self._step_ = self._natural_step(loss, constants)

    def _natural_step(self, loss, constants):
        """Return the step of the learner that carries the theorem.

        For dual averaging, alone or as expert 0, in units of 1 / C_t^2.
        """
        params = self._params_
        if params["learning_rate"] != "auto":
            return float(params["learning_rate"])
        if self._learner_ == "mixture":
            constants = loss.constants(params["decoding"], "sharp")
            ratio = _bounds.mixture_ratio(constants.ratio, params["share"])
            if not 0.0 < ratio < 1.0:
                # No gap pays for a step; take that of the decoding that has one.
                best = "randomized" if loss.loss == "logistic" else "coordinatewise"
                ratio = loss.constants(best, "sharp").ratio
                ratio = _bounds.mixture_ratio(ratio, params["share"])
            if not 0.0 < ratio < 1.0:
                ratio = 0.5
            return _bounds.mixture_step(ratio, constants.curvature)
        gap = _bounds.surrogate_gap(constants.ratio, self._scale_)
        length = 1.0 if self._learner_ == "dual" else self._norm_limit_
        return _bounds.natural_step(gap, constants.curvature, length)

    def _learner(self):
        """Return the learner's name; "dual" is expert 0 of the mixture alone."""
        learner, loss = self._params_["learner"], self._loss_name()
        if learner == "auto":
            return "mixture" if loss in self._mixable else "dual"
        if learner == "mixture" and loss not in self._mixable:
            raise ValueError(
                f"learner='mixture' needs a log-loss (loss in {self._mixable}); got "
                f"loss={loss!r}. Use learner='auto'."
            )
        return learner

    def _loss_name(self):
        return self._params_["loss"]

    def _first_scalars(self):
        from skbounds.fenchel_young import _streams

        scalars = np.zeros(_streams.N_SCALARS)
        scalars[_streams.FACTOR] = 1.0
        scalars[_streams.WEALTH] = self._params_["initial_wealth"]
        scalars[_streams.BET_SUM] = 1.0
        return scalars

    def _settings(self, loss):
        """Return what the compiled loops need to know."""
        from skbounds.fenchel_young import _streams

        params = self._params_
        scaling = _streams.RAW
        if self._scaling_ == "auto":
            scaling = (
                _streams.FIRST_MAGNITUDE if self._sparse_ else _streams.STANDARDIZE
            )
        return _streams.Settings(
            learner=getattr(_streams, self._learner_.upper()),
            loss=loss.loss_code,
            structure=loss.structure_code,
            decoding=DECODINGS.index(params["decoding"]),
            scaling=scaling,
            intercept=bool(params["fit_intercept"]),
            mu=float(loss.mu),
            step=float(self._step_),
            scale=float(self._scale_),
            norm_limit=float(self._norm_limit_),
            diameter=float(params["diameter"] or 0.0),
            gradient_limit=float(self._gradient_limit(loss)),
            share=float(params.get("share", 0.0)),
            clip=float(params["clip"]),
        )

    def _gradient_limit(self, loss):
        """Return the largest gradient norm of the scaled loss, for coin betting."""
        if self._learner_ != "parameter_free":
            return 1.0
        widest = {
            "simplex": sqrt(2.0),
            "cube": sqrt(loss.size),
            "chain": sqrt(loss.size),
            "permutahedron": sqrt(loss.size * (loss.size**2 - 1.0) / 3.0),
            "birkhoff": sqrt(2.0 * loss.size),
        }[loss.structure]
        return self._scale_ * self._norm_limit_ * widest or 1.0

    def _run(self, X, targets, log, keep=False):
        """Play and learn checked rows; return the plays if asked."""
        from skbounds.fenchel_young import _streams

        loss = self._make_loss()
        settings = self._settings(loss)
        state = self._writeable_state()
        kernel = _kernel(self._learner_, self._sparse_)
        n = len(targets)
        plays = np.zeros((n if keep else 0, targets.shape[1]), np.int64)
        longest = X.shape[1]
        if self._sparse_:
            longest = int(np.diff(X.indptr).max(initial=0))
            arrays = _csr_arrays(X)
        else:
            X = _read_only(np.require(X, requirements=["C", "A"]))
        scratch = _streams.make_scratch(
            state, loss.n_outputs, longest, targets.shape[1]
        )
        draws = loss.n_uniforms(self._params_["decoding"])
        before = state.scalars[_streams.BEYOND]
        for block in row_blocks(n, max(256, _UNIFORMS // max(1, draws))):
            uniforms = self._uniforms(block.stop - block.start, draws)
            rows = (
                (arrays[0], arrays[1], arrays[2][block.start : block.stop + 1])
                if self._sparse_
                else (X[block],)
            )
            kernel(
                settings,
                state,
                scratch,
                *rows,
                targets[block],
                uniforms,
                plays[block] if keep else plays,
                log,
            )
        if state.scalars[_streams.BEYOND] > before == 0:
            self._warn_of_long_row()
        return plays

    def _writeable_state(self):
        """Return the state as the compiled loops take it."""
        from skbounds.fenchel_young import _streams

        if not self._state_["table"].flags.writeable:
            # Loaded as a read-only memory map.
            self._state_ = {k: v.copy() for k, v in self._state_.items()}
        return _streams.State(**self._state_)

    def _uniforms(self, n, draws):
        """Return the uniform numbers of the next n rows.

        Row t always gets the same numbers, however the stream is cut.
        """
        if draws == 0:
            return np.zeros((n, 0))
        generator = np.random.Generator(
            np.random.PCG64(self._seed_).advance(self._rows_learnt() * draws)
        )
        return generator.random((n, draws))

    def _rows_learnt(self):
        from skbounds.fenchel_young import _streams

        return int(self._state_["scalars"][_streams.ROWS])

    def _warn_of_long_row(self):
        warn_user(
            f"A row is longer than feature_norm = {self._norm_limit_:.6g}: the regret "
            "bound does not hold from here on (bound_valid_ is False); the "
            "certificate does. Give feature_norm, or scale the rows."
        )

    def _close_account(self):
        """End the account: regret is defined on the first pass only."""
        self._gradient_norm_ = self._sum_of_gradients_norm()
        self._log_ = False

    def _light_path(self):
        light = vars(self).get("_light")
        if light is None or light.table is not self._state_["table"]:
            light = _LightPath(self)
            self._light = light
        return light

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_light", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------ prediction

    def _check_rows(self, X):
        check_is_fitted(self)
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            reset=False,
        )

    def _weights_of(self, rows):
        """Return the current or averaged weights of some rows of the table.

        They include the experts' factors, and act on features as the learner sees
        them; float64, shape (n_rows, n_experts * n_outputs).
        """
        from skbounds.fenchel_young import _streams

        scalars, table = self._state_["scalars"], self._state_["table"]
        n_outputs = self._make_loss().n_outputs
        width = n_outputs * max(1, len(self._state_["rates"]))
        weights = np.asarray(table[rows, :width], dtype=np.float64)
        factor = np.full(width, scalars[_streams.FACTOR])
        cumulated = np.full(width, scalars[_streams.CUMULATED])
        if self._learner_ in ("mixture", "dual"):
            longest = scalars[_streams.NORM_MAX]
            base = self._step_ / longest if longest > 0.0 else 0.0
            factor[:n_outputs] = base
        if self._learner_ == "mixture":
            total = scalars[_streams.NORM_SUM]
            mean = scalars[_streams.ROWS] / total if total > 0.0 else 0.0
            factor[n_outputs:] = sqrt(mean)
            cumulated[:n_outputs] = scalars[_streams.CUMULATED_BASE]
        elif self._learner_ == "parameter_free":
            factor *= scalars[_streams.BET] * scalars[_streams.WEALTH]
        if self._params_["average"]:
            total = weights * cumulated + self._state_["average"][rows]
            return total / max(1.0, scalars[_streams.ROWS])
        return weights * factor

    def _scale_of(self, columns):
        """Return centres and multipliers of some features."""
        from skbounds.fenchel_young import _streams

        if self._scaling_ == "none":
            return 0.0, np.ones(len(columns))
        if self._sparse_:
            width = self._make_loss().n_outputs * max(1, len(self._state_["rates"]))
            column = width + (self._learner_ == "mixture")
            spread = np.asarray(self._state_["table"][columns, column], np.float64)
            centre = 0.0
        else:
            count = self._state_["scalars"][_streams.ROWS]
            spread = np.sqrt(self._state_["square"][columns] / count)
            centre = self._state_["mean"][columns]
        multiplier = np.divide(
            1.0, spread, out=np.zeros_like(spread), where=spread > 0.0
        )
        return centre, multiplier

    def _scores(self, X):
        """Yield blocks of rows with their scores, (n_rows, n_experts * n_outputs)."""
        n_features = X.shape[1]
        intercept = self._params_["fit_intercept"]
        if sp.issparse(X):
            columns = np.unique(X.indices)
            X = X[:, columns]
        else:
            columns = np.arange(n_features)
        rows = np.append(columns, n_features) if intercept else columns
        weights = self._weights_of(rows)
        centre, multiplier = self._scale_of(columns)
        clip = self._params_["clip"] if self._scaling_ == "auto" else inf
        size = memory_limit() // (2 * (len(columns) + weights.shape[1]) + 1)
        for block in row_blocks(X.shape[0], size):
            part = X[block]
            if sp.issparse(part) and (self._sparse_ or self._scaling_ == "none"):
                part = part.astype(np.float64)
                part.data *= multiplier[part.indices]
                np.clip(part.data, -clip, clip, out=part.data)
            else:
                if sp.issparse(part):
                    # Centring does not keep zeros.
                    part = X[block].toarray()
                part = (part.astype(np.float64) - centre) * multiplier
                np.clip(part, -clip, clip, out=part)
            scores = np.asarray(part @ weights[: len(columns)])
            if intercept:
                scores += weights[-1]
            yield block, scores

    def _predict_points(self, X):
        """Return the (mixed) regularised predictions u, shape (n_samples, D)."""
        X = self._check_rows(X)
        loss = self._make_loss()
        u = np.empty((X.shape[0], loss.n_outputs))
        for block, scores in self._scores(X):
            u[block] = self._points_of(scores, loss)
        return u

    def _points_of(self, scores, loss):
        if self._learner_ != "mixture":
            return loss.predict(scores)
        scores = scores.reshape(len(scores), -1, loss.n_outputs)
        if loss.loss == "logistic":
            experts = softmax(scores, axis=2)
        else:
            experts = expit(scores)
        return np.einsum("imk,km->ik", experts, self._weights_by_output(loss))

    def _log_mixture(self, scores, loss):
        """Return the logarithms of a softmax mixture's probabilities."""
        scores = scores.reshape(len(scores), -1, loss.n_outputs)
        return logsumexp(
            log_softmax(scores, axis=2),
            axis=1,
            b=self._state_["weights"].reshape(1, -1, 1),
        )

    def _weights_by_output(self, loss):
        """Return the experts' weights, shape (n_outputs, n_experts)."""
        weights = self._state_["weights"]
        return np.broadcast_to(weights, (loss.n_outputs, weights.shape[1]))

    def predict(self, X):
        """Predict the vertex nearest to the regularised prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y_pred : ndarray
            Predictions, in the form of the targets.
        """
        u = self._predict_points(X)
        return self._decode_plays(self._make_loss().nearest(u))

    def predict_randomized(self, X, random_state=None):
        """Draw predictions from the law of the randomised decoding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        y_drawn : ndarray
            Draws, in the form of the targets: by `decoding`, or by Algorithm 1 where
            that is ``"argmax"``.
        """
        u = self._predict_points(X)
        loss, decoding = self._make_loss(), self._random_decoding()
        rng = check_random_state(random_state)
        uniforms = rng.random_sample((len(u), loss.n_uniforms(decoding)))
        return self._decode_plays(loss.decode(u, decoding, uniforms)[0])

    def _random_decoding(self):
        decoding = self._params_["decoding"]
        return "randomized" if decoding == "argmax" else decoding

    def _decoded_means(self, X):
        """Return E[vertex] of the randomised decoding, shape (n_samples, D)."""
        u = self._predict_points(X)
        return self._make_loss().decode(u, self._random_decoding())[1]

    # ------------------------------------------------------------ coefficients

    def _raw_coefficients(self):
        """Return weights and intercepts on raw features, one set per expert."""
        self._require_state()
        loss = self._make_loss()
        n_features = self.n_features_in_
        weights = self._weights_of(slice(None))
        centre, multiplier = self._scale_of(np.arange(n_features))
        coef = weights[:n_features] * multiplier[:, None]
        intercept = np.zeros(weights.shape[1])
        if self._params_["fit_intercept"]:
            intercept = weights[n_features] - np.sum(
                coef * np.reshape(centre, (-1, 1)), axis=0
            )
        shape = (-1, loss.n_outputs)
        return (
            np.moveaxis(coef.reshape(n_features, *shape), 0, 2),
            intercept.reshape(shape),
            loss,
        )

    def _require_state(self):
        if "_state_" not in vars(self):
            raise AttributeError("Not fitted yet.")

    def _require_mixture(self):
        self._require_state()
        if self._learner_ != "mixture":
            raise AttributeError("Only learner='mixture' has experts.")

    @property
    def coef_(self):
        """Weights on raw features; for a mixture, the experts' weighted mean."""
        coef, _, loss = self._raw_coefficients()
        if self._learner_ != "mixture":
            return coef[0]
        return np.einsum("mkj,km->kj", coef, self._weights_by_output(loss))

    @property
    def intercept_(self):
        """Intercepts; for a mixture, the experts' weighted mean."""
        _, intercept, loss = self._raw_coefficients()
        if self._learner_ != "mixture":
            return intercept[0]
        return np.einsum("mk,km->k", intercept, self._weights_by_output(loss))

    @property
    def expert_coefs_(self):
        """Weights of the experts on raw features."""
        self._require_mixture()
        return self._raw_coefficients()[0]

    @property
    def expert_intercepts_(self):
        """Intercepts of the experts."""
        self._require_mixture()
        return self._raw_coefficients()[1]

    @property
    def expert_weights_(self):
        """Bayes weights of the experts."""
        self._require_mixture()
        weights = self._state_["weights"]
        return (weights[0] if self._loss_name() == "logistic" else weights).copy()

    # ------------------------------------------------------------ accounts

    def _scalar(self, name):
        from skbounds.fenchel_young import _streams

        self._require_state()
        return self._state_["scalars"][getattr(_streams, name)]

    cumulative_loss_ = _account(
        "cumulative_loss_", "REALISED", "Target loss of the plays, summed."
    )
    expected_cumulative_loss_ = _account(
        "expected_cumulative_loss_",
        "EXPECTED",
        "Expected target loss of the plays given the rows before, summed; exact.",
    )
    cumulative_surrogate_loss_ = _account(
        "cumulative_surrogate_loss_",
        "SURROGATE",
        "Surrogate loss of the predictions that were played, summed.",
    )

    @property
    def n_samples_seen_(self):
        """Rows that the accounts cover."""
        return int(self._scalar("ROUNDS"))

    @property
    def loss_scale_(self):
        """Factor of the surrogate loss in accounts and bounds."""
        self._require_state()
        return self._scale_

    @property
    def feature_norm_(self):
        """Row norm that bounds are stated for."""
        self._require_state()
        if self._learner_ in ("mixture", "dual"):
            return sqrt(self._scalar("NORM_MAX"))
        return self._norm_limit_

    @property
    def bound_valid_(self):
        """Whether the conditions of the regret bound hold for the rows so far."""
        self._require_state()
        if self._scalar("BEYOND") > 0:
            return False
        if self._learner_ in ("adaptive", "parameter_free"):
            loss = self._make_loss()
            params = self._params_
            constants = loss.constants(params["decoding"], params["constants"])
            return bool(constants.ratio < self._scale_)
        return bool(self._bound(0.0) >= 0.0)

    def _bound(self, norm):
        """Return the bound in expectation; nan where its conditions fail."""
        params, loss = self._params_, self._make_loss()
        length = self.feature_norm_
        if self._learner_ == "mixture":
            constants = loss.constants(params["decoding"], "sharp")
            n_experts = len(self._state_["rates"])
            return _bounds.mixture_bound(
                _bounds.mixture_ratio(constants.ratio, params["share"]),
                constants.curvature,
                length,
                self._step_,
                norm,
                len(self._state_["weights"]) * log(n_experts),
            )
        constants = loss.constants(params["decoding"], params["constants"])
        gap = _bounds.surrogate_gap(constants.ratio, self._scale_)
        if self._learner_ == "adaptive":
            if norm > 0.5 * params["diameter"]:
                return nan
            return _bounds.adaptive_bound(
                gap, self._scale_, constants.curvature, length, params["diameter"]
            )
        if self._learner_ == "parameter_free":
            return nan
        # Dual averaging's step is in units of 1 / C_t^2.
        step = self._step_
        if self._learner_ == "dual":
            step = step / length**2 if length > 0.0 else 0.0
        return _bounds.constant_step_bound(
            gap, self._scale_, constants.curvature, length, step, norm
        )

    def surrogate_regret_bound(self, norm, delta=None):
        """Bound the surrogate regret against linear predictors of a norm.

        Parameters
        ----------
        norm : float
            Frobenius norm of the comparator, on features as the learner sees them,
            intercept included.
        delta : float, default=None
            None bounds the expected loss of the plays; a number in (0, 1) the realised
            loss, with probability at least ``1 - delta``.

        Returns
        -------
        bound : float
            What the target loss of the plays may exceed the comparator's surrogate
            loss by, both summed over the stream, however long it is. nan where the
            conditions of the theorem fail, and for coin betting, whose theorem has no
            explicit constant.
        """
        check_is_fitted(self)
        norm = _check_norm(norm)
        if delta is None:
            return self._bound(norm) if self._scalar("BEYOND") == 0 else nan
        if not isinstance(delta, Real) or not 0.0 < delta < 1.0:
            raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
        if self._scalar("BEYOND") > 0 or self._learner_ in (
            "adaptive",
            "parameter_free",
        ):
            return nan
        params, loss = self._params_, self._make_loss()
        length = self.feature_norm_
        if self._learner_ == "ogd":
            constants = loss.constants(params["decoding"], params["constants"])
            return _bounds.constant_step_high_probability_bound(
                _bounds.surrogate_gap(constants.ratio, self._scale_),
                self._scale_,
                constants.curvature,
                length,
                self._step_,
                norm,
                constants.gamma * constants.diameter,
                delta,
            )
        extra = 0.0
        if self._learner_ == "mixture":
            constants = loss.constants(params["decoding"], "sharp")
            ratio = _bounds.mixture_ratio(constants.ratio, params["share"])
            n_experts = len(self._state_["rates"])
            extra = len(self._state_["weights"]) * log(n_experts)
        else:
            constants = loss.constants(params["decoding"], params["constants"])
            ratio = constants.ratio
        return _bounds.averaged_step_high_probability_bound(
            ratio,
            self._scale_,
            constants.curvature,
            length,
            self._step_,
            norm,
            extra,
            delta,
        )

    def surrogate_regret_certificate(self, norm):
        """Bound the surrogate regret by what the accounts say about this stream.

        Parameters
        ----------
        norm : float
            Frobenius norm of the comparator, on features as the learner sees them,
            intercept included.

        Returns
        -------
        certificate : float
            Holds for every comparator of that norm, every learner and step; the
            smaller of the linear certificate and `surrogate_regret_bound`. May be
            negative.
        """
        check_is_fitted(self)
        norm = _check_norm(norm)
        gradient_norm = vars(self).get("_gradient_norm_")
        if gradient_norm is None:
            gradient_norm = self._sum_of_gradients_norm()
        certificate = _bounds.linear_certificate(
            self._scalar("EXPECTED"),
            self._scalar("SURROGATE_BASE"),
            self._scalar("INNER"),
            gradient_norm,
            norm,
        )
        bound = self.surrogate_regret_bound(norm)
        return float(certificate if np.isnan(bound) else min(certificate, bound))

    def _sum_of_gradients_norm(self):
        """Return the Frobenius norm of the sum of all gradients of the scaled loss.

        Gradient descent and dual averaging have the sum in their weights.
        """
        gradient = self._state_["gradient"]
        if len(gradient) > 0:
            return float(np.linalg.norm(gradient))
        n_outputs = self._make_loss().n_outputs
        total = self._state_["table"][:, :n_outputs]
        squares = sum(
            float(np.sum(np.square(total[block], dtype=np.float64)))
            for block in row_blocks(len(total), 2**16)
        )
        norm = self._scale_ * sqrt(squares)
        if self._learner_ == "ogd":
            return norm / self._step_ if self._step_ > 0.0 else 0.0
        return norm


def _kernel(learner, sparse):
    """Return the compiled loop."""
    from skbounds.fenchel_young import _streams

    kind = "mixture" if learner == "mixture" else "single"
    return getattr(_streams, f"{kind}_{'sparse' if sparse else 'dense'}")


def _csr_arrays(X):
    """Return data, int32 indices and int64 index pointers."""
    return (
        _read_only(X.data),
        _read_only(np.asarray(X.indices, dtype=np.int32)),
        _read_only(np.asarray(X.indptr, dtype=np.int64)),
    )


def _read_only(array):
    """Return a read-only view: one compiled specialisation serves all inputs."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _check_magnitude(values, name):
    """Refuse what is not finite or has no finite square."""
    largest = np.abs(values).max(initial=0.0)
    if not largest < _LARGEST:
        what = "NaN or infinity" if not np.isfinite(largest) else f"{largest:.3g}"
        raise ValueError(f"{name} contains {what}; entries must be below {_LARGEST:g}.")


def _check_norm(norm):
    if not isinstance(norm, Real) or not 0.0 <= norm < inf:
        raise ValueError(f"norm must be a finite number >= 0; got {norm!r}.")
    return float(norm)


class _LightPath:
    """Buffers and settings for streams that come row by row."""

    def __init__(self, estimator):
        from skbounds.fenchel_young import _streams

        loss = estimator._make_loss()
        self.state = estimator._writeable_state()
        self.table = self.state.table
        self.settings = estimator._settings(loss)
        self.kernel = _kernel(estimator._learner_, estimator._sparse_)
        self.sparse = estimator._sparse_
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

    def fill(self, x):
        """Check a row and take it over."""
        if not self.sparse:
            with np.errstate(over="ignore"):
                x = np.asarray(x, dtype=self.dtype)
            if x.shape != (self.n_features,):
                raise ValueError(
                    f"x must have shape ({self.n_features},); got {x.shape}."
                )
            _check_magnitude(x, "x")
            self.row[0] = x
            self.arrays = (_read_only(self.row),)
            return
        if not isinstance(x, tuple) or len(x) != 2:
            raise ValueError(
                "The stream is sparse: x must be a pair (indices, values); got "
                f"{type(x).__name__}."
            )
        indices = np.asarray(x[0])
        with np.errstate(over="ignore"):
            values = np.asarray(x[1], dtype=self.dtype)
        if indices.ndim != 1 or indices.shape != values.shape:
            raise ValueError(
                "indices and values must be 1-d and equally long; got shapes "
                f"{indices.shape} and {values.shape}."
            )
        if len(indices) and indices.dtype.kind not in "iu":
            raise ValueError(f"indices must be integers; got {indices.dtype}.")
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
        _check_magnitude(values, "values")
        if len(indices) > self.longest:
            self._make_scratch(2 * len(indices))
        self.arrays = (
            _read_only(values),
            _read_only(np.asarray(indices, dtype=np.int32)),
            _read_only(np.array([0, len(indices)], dtype=np.int64)),
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
