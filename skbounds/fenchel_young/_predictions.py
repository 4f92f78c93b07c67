"""Predictions and coefficients from a stream's state."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from skbounds._blocks import memory_limit, row_blocks
from skbounds._core import fenchel_young as _core
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import validate_data
from skbounds.fenchel_young._arrays import canonical_rows
from skbounds.fenchel_young._growth import are_dicts, code_dict


class OnlinePredictions:
    """Mixin: what the learnt weights say about rows, without learning from them."""

    if TYPE_CHECKING:
        # Of the classes that it is mixed into.
        def __getattr__(self, name: str) -> Any: ...

    def _check_rows(self, X):
        check_is_fitted(self)
        X = self._as_matrix(X, self._vocabulary)
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            reset=False,
        )
        return canonical_rows(X)

    def _weights_of(self, rows):
        """Return the current or averaged weights of some rows of the table.

        They include the experts' factors, and act on features as the learner sees
        them; float64, shape (n_rows, n_experts * n_outputs).
        """
        scalars, table = self._state_["scalars"], self._state_["table"]
        n_outputs = self._make_loss().n_outputs
        width = n_outputs * max(1, len(self._state_["rates"]))
        weights = np.asarray(table[rows, :width], dtype=np.float64)
        factor = np.full(width, scalars[_core.FACTOR])
        cumulated = np.full(width, scalars[_core.CUMULATED])
        if self._learner_ in ("mixture", "dual"):
            longest = scalars[_core.NORM_MAX]
            base = self._step_ / longest if longest > 0.0 else 0.0
            factor[:n_outputs] = base
        if self._learner_ == "mixture":
            total = scalars[_core.NORM_SUM]
            mean = scalars[_core.ROWS] / total if total > 0.0 else 0.0
            # Rows of unit length have factors of their own.
            factor[n_outputs:] = 1.0 if self._has_own_sums else sqrt(mean)
            cumulated[:n_outputs] = scalars[_core.CUMULATED_BASE]
        elif self._learner_ == "parameter_free":
            factor *= scalars[_core.BET] * scalars[_core.WEALTH]
        if self._params_["average"]:
            total = weights * cumulated + self._state_["average"][rows]
            weight = scalars[_core.WEIGHT_SUM]
            return total / (weight if weight > 0.0 else 1.0)
        return weights * factor

    def _table_rows(self, columns):
        """Return the table's rows of some features, and the intercept's, the last."""
        if self._params_["fit_intercept"]:
            return np.append(columns, len(self._state_["table"]) - 1)
        return columns

    def _scale_of(self, columns):
        """Return centres and multipliers of some features."""
        if self._scaling_ == "none":
            return 0.0, np.ones(len(columns))
        if self._sparse_:
            width = self._make_loss().n_outputs * max(1, len(self._state_["rates"]))
            column = width
            if self._learner_ == "mixture":
                column += self._n_sums(self._state_["rates"])
            spread = np.asarray(self._state_["table"][columns, column], np.float64)
            centre = 0.0
        else:
            # Before the first row that is learnt there is none.
            count = max(self._state_["scalars"][_core.ROWS], 1.0)
            if self._scaling_ == "auto":
                count = np.maximum(self._state_["robust"][_core.COUNT, columns], 1.0)
            square = self._state_["square"][columns]
            tiny = np.finfo(np.float64).tiny
            spread = np.sqrt(np.where(square >= tiny, square, 0.0) / count)
            centre = self._state_["mean"][columns]
        multiplier = np.divide(
            1.0, spread, out=np.zeros_like(spread), where=spread > 0.0
        )
        return centre, multiplier

    def _scores(self, X):
        """Yield blocks of rows with their scores, (n_rows, n_experts * n_outputs)."""
        intercept = self._params_["fit_intercept"]
        # Standardised features are off their centre where they are zero.
        zeros_vanish = sp.issparse(X) and (self._sparse_ or self._scaling_ == "none")
        if zeros_vanish:
            columns = np.unique(X.indices)
            X = X[:, columns]
        else:
            columns = np.arange(X.shape[1])
        rows = self._table_rows(columns)
        weights = self._weights_of(rows)
        centre, multiplier = self._scale_of(columns)
        clip = inf if self._scaling_ == "none" else self._params_["clip"]
        size = memory_limit() // (2 * (len(columns) + weights.shape[1]) + 1)
        for block in row_blocks(X.shape[0], size):
            part = X[block]
            if zeros_vanish:
                part = part.astype(np.float64)
                part.data *= multiplier[part.indices]
                np.clip(part.data, -clip, clip, out=part.data)
            else:
                if sp.issparse(part):
                    part = part.toarray()
                with np.errstate(over="ignore"):
                    # What is beyond the range of doubles is clipped.
                    part = (part.astype(np.float64) - centre) * multiplier
                np.clip(part, -clip, clip, out=part)
            scores = np.asarray(part @ weights[: len(columns)])
            if intercept:
                scores += weights[-1]
            if self._has_own_sums:
                norm = row_norms(part, squared=True) + intercept
                length = np.sqrt(norm)
                unit = np.divide(1.0, length, out=np.zeros_like(norm), where=norm > 0.0)
                n_outputs = self._make_loss().n_outputs
                scores[:, n_outputs:] *= unit[:, None]
            yield block, scores

    def _predict_points(self, X):
        """Return the (mixed) regularised predictions u, shape (n_samples, D)."""
        u = self._point_of_one(X)
        if u is not None:
            return u
        X = self._check_rows(X)
        loss = self._make_loss()
        u = np.empty((X.shape[0], loss.n_outputs))
        for block, scores in self._scores(X):
            u[block] = self._points_of(scores, loss)
        return u

    def _point_of_one(self, X):
        """Return the same for a single plain row, fast; None for everything else."""
        if "_state_" not in vars(self) or self._params_["average"]:
            return None
        state = self._state_
        if not state["table"].flags.writeable:
            return None
        if self._vocabulary is not None:
            if not are_dicts(X) or len(X) != 1:
                return None
            indices, values = code_dict(X[0], self._vocabulary)
        elif self._sparse_:
            if not (
                sp.issparse(X)
                and X.format == "csr"
                and X.shape == (1, self.n_features_in_)
                and X.dtype.kind == "f"
                and X.has_canonical_format
            ):
                return None
            X.check_format(full_check=True)
            indices, values = X.indices, X.data
        else:
            if (
                type(X) is not np.ndarray
                or X.shape != (1, self.n_features_in_)
                or X.dtype.kind != "f"
                or "feature_names_in_" in vars(self)
            ):
                return None
            values = X
        dtype = state["table"].dtype
        # Others are told what is wrong; rounding would move large offsets.
        if not (np.can_cast(values.dtype, dtype) and np.isfinite(values).all()):
            return None
        values = np.ascontiguousarray(values, dtype)
        light = self._light_path()
        u = np.empty((1, light.n_outputs))
        if self._sparse_:
            light.stream.points_sparse(
                values,
                np.ascontiguousarray(indices, np.int32),
                np.array([0, len(indices)], np.int64),
                u,
            )
        else:
            light.stream.points_dense(values, u)
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

    def predict(self, X: MatrixLike) -> np.ndarray:
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

    def predict_randomized(
        self, X: MatrixLike, random_state: RandomState = None
    ) -> np.ndarray:
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
        weights = self._weights_of(self._table_rows(np.arange(n_features)))
        if self._has_own_sums:
            # As for a row of mean length.
            scalars = self._state_["scalars"]
            total = scalars[_core.NORM_SUM]
            mean = scalars[_core.ROWS] / total if total > 0.0 else 0.0
            weights[:, loss.n_outputs :] *= sqrt(mean)
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
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")

    def _require_mixture(self):
        self._require_state()
        if self._learner_ != "mixture":
            raise AttributeError("Only learner='mixture' has experts.")

    @property
    def coef_(self) -> np.ndarray:
        """Weights on raw features; for a mixture, the experts' weighted mean."""
        coef, _, loss = self._raw_coefficients()
        if self._learner_ != "mixture":
            return coef[0]
        return np.einsum("mkj,km->kj", coef, self._weights_by_output(loss))

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts; for a mixture, the experts' weighted mean."""
        _, intercept, loss = self._raw_coefficients()
        if self._learner_ != "mixture":
            return intercept[0]
        return np.einsum("mk,km->k", intercept, self._weights_by_output(loss))

    @property
    def expert_coefs_(self) -> np.ndarray:
        """Weights of the experts on raw features."""
        self._require_mixture()
        return self._raw_coefficients()[0]

    @property
    def expert_intercepts_(self) -> np.ndarray:
        """Intercepts of the experts."""
        self._require_mixture()
        return self._raw_coefficients()[1]

    @property
    def expert_weights_(self) -> np.ndarray:
        """Bayes weights of the experts."""
        self._require_mixture()
        weights = self._state_["weights"]
        return (weights[0] if self._loss_name() == "logistic" else weights).copy()
