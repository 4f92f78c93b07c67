"""What a stream has learnt, as arrays, and what the compiled loops are told."""

from __future__ import annotations

from math import inf, sqrt
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from skbounds._core import fenchel_young as _core
from skbounds._magnitude import SMALLEST
from skbounds.fenchel_young._arrays import (
    adapted_magnitudes,
    aligned_zeros,
    check_experts,
    largest_norm,
)
from skbounds.fenchel_young._growth import padded_width
from skbounds.fenchel_young._losses import DECODINGS

# Scalings of dense and of sparse rows, by the parameter's value.
_SCALINGS = {
    "auto": (_core.ROBUST, _core.MAGNITUDE),
    "standard": (_core.STANDARDIZE, _core.FIRST_MAGNITUDE),
    "none": (_core.RAW, _core.RAW),
}


class StreamState:
    """Mixin: the state of a stream, and its settings."""

    def _seen_features(self, X):
        """Return the rows of a whole stream as the learner sees them, from scratch."""
        n, n_features = X.shape
        intercept = bool(self._params_["fit_intercept"])
        if self._sparse_:
            X = X.astype(np.float64)
            X.eliminate_zeros()
            if self._scaling_ != "none":
                adapts = self._scaling_ == "auto"
                sizes = adapted_magnitudes(X.indices, X.data, n_features, adapts)
                clip = self._params_["clip"]
                X.data = np.clip(X.data / sizes, -clip, clip)
            return sp.hstack([X, np.ones((n, 1))], format="csr") if intercept else X
        features = np.zeros((n, n_features + intercept))
        _core.features_dense(
            _SCALINGS[self._scaling_][0],
            intercept,
            float(self._params_["clip"]),
            np.require(X, requirements=["C", "A"]),
            np.zeros(n_features),
            np.zeros(n_features),
            first_moments(n_features),
            0.0,
            features,
        )
        return features

    def _start(self, X, weight):
        """Set up the state from the first rows and the parameters."""
        params = self._params_
        learner = self._learner()
        loss = self._make_loss()
        if learner == "mixture":
            rates = np.concatenate([[0.0], check_experts(params["experts"])])
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
        self._check_n_rows(X.shape[1])
        width = loss.n_outputs * max(1, len(rates))
        self._learner_ = learner
        self._sparse_ = sp.issparse(X)
        scaled = learner in ("mixture", "dual")
        self._scaling_ = params["feature_scaling"] if scaled else "none"
        # Weights, sums of squares and scale of a feature share a row: cache lines.
        padded = padded_width(loss.n_outputs, len(rates), self._n_sums(rates))
        values = X.data if sp.issparse(X) else X
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if 0.0 < largest < SMALLEST:
            raise ValueError(
                f"X has no entry above {largest:.3g}, and squares vanish below "
                f"{SMALLEST:g}. Multiply by a constant."
            )
        n_moved = 0 if self._sparse_ or self._scaling_ == "none" else X.shape[1]
        robust = first_moments(n_moved if self._scaling_ == "auto" else 0)
        wanted = params.get("certificate", "safe")
        every = wanted == "all" or (wanted == "auto" and not self._sparse_)
        every = every and learner == "mixture" and len(rates) > 1
        others = loss.n_outputs * max(0, len(rates) - 1)
        # Dual averaging has the sum of gradients in its weights.
        by_gradient = learner in ("ogd", "adaptive", "parameter_free")
        self._state_ = {
            "table": aligned_zeros(n_rows, padded, X.dtype),
            "average": np.zeros((n_rows if params["average"] else 0, width)),
            "gradient": np.zeros((n_rows if by_gradient else 0, loss.n_outputs)),
            "mean": np.zeros(n_moved),
            "square": np.zeros(n_moved),
            "robust": robust,
            "weights": np.full((groups, len(rates)), 1.0 / max(1, len(rates))),
            "gradients": np.zeros((n_rows if every else 0, others)),
            "accounts": np.zeros((2 if every else 0, len(rates))),
            "rates": rates,
            "scalars": self._first_scalars(),
        }
        self._log_ = True
        # Whose tickets are whose: seeds may agree.
        self._stream_ = uuid4().hex
        self._tickets_ = {}
        self._late_weight_ = 0.0
        # Plays of rows of weight 0, which leave no other trace.
        self._n_idle_ = 0
        self._seed_ = int(
            check_random_state(params["random_state"]).randint(np.iinfo(np.int32).max)
        )
        length = params["feature_norm"]
        if learner in ("mixture", "dual"):
            self._norm_limit_ = inf
        else:
            if length == "auto":
                length = sqrt(largest_norm(X, weight, intercept))
            self._norm_limit_ = float(length)
        # Of a single row, which coin betting has to know beforehand.
        self._weight_limit_ = 1.0 if weight is None else max(weight.max(), 1e-300)
        self._scale_ = 1.0
        if learner != "mixture":
            self._scale_ = loss.scale(params["decoding"], params["constants"])
        self._step_ = self._natural_step(loss)

    def _check_n_rows(self, n_features):
        most = np.iinfo(np.int32).max - 1
        if n_features > most:
            raise ValueError(
                f"X has {n_features} features; at most {most} are supported."
            )

    @property
    def _has_own_sums(self):
        """Whether each AdaGrad expert has its own sums, and rows have unit length."""
        scaled = self._sparse_ and self._scaling_ == "auto"
        return scaled and self._learner_ == "mixture"

    def _n_sums(self, rates):
        """Return the number of sums of squares in a row of the mixture's table."""
        return len(rates) - 1 if self._has_own_sums else 1

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
        scalars = np.zeros(_core.N_SCALARS)
        scalars[_core.FACTOR] = 1.0
        scalars[_core.WEALTH] = self._params_["initial_wealth"]
        scalars[_core.BET_SUM] = 1.0
        return scalars

    def _settings(self, loss):
        """Return what the compiled loops need to know."""
        params = self._params_
        scaling = _SCALINGS[self._scaling_][int(self._sparse_)]
        return {
            "learner": getattr(_core, self._learner_.upper()),
            "loss": loss.loss_code,
            "decoding": DECODINGS.index(params["decoding"]),
            "scaling": scaling,
            "intercept": bool(params["fit_intercept"]),
            "mu": float(loss.mu),
            "step": float(self._step_),
            "scale": float(self._scale_),
            "norm_limit": float(self._norm_limit_),
            "diameter": float(params["diameter"] or 0.0),
            "gradient_limit": float(self._gradient_limit(loss)),
            "share": float(params.get("share", 0.0)),
            "clip": float(params["clip"]),
            "n_outputs": loss.n_outputs,
        }

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
        limit = self._norm_limit_ * sqrt(self._weight_limit_)
        return self._scale_ * limit * widest or 1.0

    def _stream(self, loss):
        """Return the compiled loops over rows, looking into the arrays of the state."""
        # Arrays loaded as memory maps may be read-only, or not aligned.
        self._state_ = {
            name: np.require(array, requirements=["C", "A", "W"])
            for name, array in self._state_.items()
        }
        single = self._state_["table"].dtype == np.float32
        kind = _core.StreamFloat if single else _core.StreamDouble
        return kind(**self._settings(loss), **self._state_)


def first_moments(n_features):
    """Return what the robust scaling knows of features before the first row."""
    robust = np.zeros((_core.N_ROBUST if n_features else 0, n_features))
    if n_features:
        robust[_core.LAST] = np.nan
    return robust
