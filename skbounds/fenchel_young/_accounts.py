"""A stream's accounts, and what they prove about regret."""

from __future__ import annotations

from math import inf, isnan, log, nan, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbounds._base import KnowsItsError
from skbounds._core import fenchel_young as _core
from skbounds._typing import MatrixLike
from skbounds.fenchel_young import _bounds
from skbounds.fenchel_young._arrays import check_row_weights
from skbounds.fenchel_young._offline import comparator_losses


def _account(name, index, doc):
    """Return a read-only attribute that is one number of the stream's accounts."""

    def read(self) -> float:
        return float(self._scalar(index))

    read.__name__ = name
    read.__doc__ = doc
    return property(read)


class RegretAccounts(KnowsItsError):
    """Mixin: losses so far, bounds and certificates."""

    if TYPE_CHECKING:
        # Of the classes that it is mixed into.
        def __getattr__(self, name: str) -> Any: ...

    def _knowledge(self):
        total = self._scalar("EXPECTED")
        mean = total / max(self.sum_of_weights_, 1e-300)
        n = self.n_samples_seen_
        return f"mean expected loss of the plays of {n} rows: {mean:.3g}"

    def _scalar(self, name):
        self._require_state()
        # After further passes the account is closed, and bounds are about the first.
        closed = vars(self).get("_closed_", {})
        if name in closed:
            return closed[name]
        return self._state_["scalars"][getattr(_core, name)]

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
    def n_samples_seen_(self) -> int:
        """Rows that the accounts cover."""
        return int(self._scalar("ROUNDS"))

    @property
    def sum_of_weights_(self) -> float:
        """Sum of the weights of the rows that the accounts cover."""
        return float(self._scalar("WEIGHT_SUM"))

    @property
    def loss_scale_(self) -> float:
        """Factor of the surrogate loss in accounts and bounds."""
        self._require_state()
        return self._scale_

    @property
    def feature_norm_(self) -> float:
        """Row norm that bounds are stated for, times the root of the row's weight."""
        self._require_state()
        if self._learner_ in ("mixture", "dual"):
            return sqrt(self._scalar("NORM_MAX"))
        return self._norm_limit_

    @property
    def bound_valid_(self) -> bool:
        """Whether the conditions of the regret bound hold for the rows so far."""
        self._require_state()
        if self._scalar("BEYOND") > 0:
            return False
        if self._learner_ in ("adaptive", "parameter_free"):
            return bool(self._constants(self._make_loss()).ratio < self._scale_)
        return bool(self._bound(0.0) >= 0.0)

    def _constants(self, loss):
        """Return the constants of steps and bounds; a mixture has only sharp ones."""
        params = self._params_
        kind = params.get("constants", "sharp")
        if self._learner_ == "mixture":
            kind = "sharp"
        return loss.constants(params["decoding"], kind)

    def _natural_step(self, loss):
        """Return the step of the learner that carries the theorem.

        For dual averaging, alone or as expert 0, in units of 1 / C_t^2.
        """
        params = self._params_
        if params["learning_rate"] != "auto":
            return float(params["learning_rate"])
        constants = self._constants(loss)
        if self._learner_ == "mixture":
            ratio = _bounds.mixture_ratio(constants.ratio, params["share"])
            if not 0.0 < ratio < 1.0:
                # No gap pays for a step; take that of the decoding that has one.
                best = "coordinatewise" if loss.loss == "sigmoid" else "randomized"
                ratio = loss.constants(best, "sharp").ratio
                ratio = _bounds.mixture_ratio(ratio, params["share"])
            if not 0.0 < ratio < 1.0:
                ratio = 0.5
            return _bounds.mixture_step(ratio, constants.curvature)
        gap = _bounds.surrogate_gap(constants.ratio, self._scale_)
        length = 1.0 if self._learner_ == "dual" else self._norm_limit_
        return _bounds.natural_step(gap, constants.curvature, length)

    def _mixing_cost(self):
        """Return what Bayes weights cost in nats: ln M for each mixed prediction.

        Times the largest weight of a row.
        """
        cost = len(self._state_["weights"]) * log(len(self._state_["rates"]))
        # Before the first row there is none.
        return cost * (self._scalar("WEIGHT_MAX") or 1.0)

    def _bound(self, norm):
        """Return the bound in expectation; nan where its conditions fail.

        A row that brings a class cannot be played right, and costs its weight more.
        """
        late = vars(self).get("_closed_", {}).get("late", self._late_weight_)
        return self._bound_of_known_classes(norm) + late

    def _bound_of_known_classes(self, norm):
        params = self._params_
        length = self.feature_norm_
        constants = self._constants(self._make_loss())
        if self._learner_ == "mixture":
            return _bounds.mixture_bound(
                _bounds.mixture_ratio(constants.ratio, params["share"]),
                constants.curvature,
                length,
                self._step_,
                norm,
                self._mixing_cost(),
            )
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

    def surrogate_regret_bound(self, norm: float, delta: float | None = None) -> float:
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
            explicit constant. With `delta`: for ``learner='ogd'`` with the step of
            Theorem 4.3 its number, known beforehand; otherwise the bound in expectation
            and `draw_margin`, which the stream so far tells.
        """
        check_is_fitted(self)
        norm = _check_norm(norm)
        if self._scalar("BEYOND") > 0:
            return nan
        if delta is None:
            return self._bound(norm)
        beforehand = self._high_probability_bound(norm, _check_delta(delta))
        if not isnan(beforehand) and not self._delay():
            return beforehand
        return self._bound(norm) + self._delay() + self.draw_margin(delta)

    def _delay(self):
        """Return what plays cost more than predictions when their rows were learnt.

        Bounds of regret are about the latter; 0 where labels come at once.
        """
        return self._scalar("EXPECTED") - self._scalar("AT_LEARNING")

    def _high_probability_bound(self, norm, delta):
        """Return the bound of Theorem 4.3, known beforehand; nan for other steps."""
        if self._learner_ != "ogd":
            return nan
        constants = self._constants(self._make_loss())
        return self._late_weight_ + _bounds.constant_step_high_probability_bound(
            _bounds.surrogate_gap(constants.ratio, self._scale_),
            self._scale_,
            constants.curvature,
            self.feature_norm_,
            self._step_,
            norm,
            constants.gamma * constants.diameter * self._scalar("WEIGHT_MAX"),
            delta,
        )

    def draw_margin(self, delta: float) -> float:
        """Return what realised losses may exceed their expectations by, and rarely do.

        Parameters
        ----------
        delta : float
            Probability, in (0, 1), that it fails.

        Returns
        -------
        margin : float
            With probability at least ``1 - delta``, `cumulative_loss_` has exceeded
            `expected_cumulative_loss_` by at most this *at all times*, for every
            learner and any stream, also one that reacts to the plays (Bennett's
            inequality for the martingale of the draws, mixed over 60 rates, and
            Ville's). With weights for one time only, unless their maximum is known.
        """
        check_is_fitted(self)
        largest = self._scalar("WEIGHT_MAX") or 1.0
        expected = self._scalar("EXPECTED") / largest
        variance = expected - self._scalar("EXPECTED_SQUARED") / largest**2
        return largest * _bounds.draw_margin(max(variance, 0.0), _check_delta(delta))

    def surrogate_regret_certificate(
        self,
        norm: float | None = None,
        *,
        coef: ArrayLike | None = None,
        delta: float | None = None,
    ) -> float:
        """Bound the surrogate regret by what the accounts say about this stream.

        Parameters
        ----------
        norm : float, default=None
            Frobenius norm of the comparator, on features as the learner sees them,
            intercept included.
        coef : array-like of shape (n_outputs, n_columns), default=None
            The comparator itself, instead of its norm; the intercept's column is the
            last. A closer statement.
        delta : float, default=None
            None bounds the expected loss of the plays; a number in (0, 1) the realised
            loss, with probability at least ``1 - delta``, at all times
            (`draw_margin`).

        Returns
        -------
        certificate : float
            Holds for every comparator of that norm (or this one), every learner and
            step; the smallest of the linear certificates of all experts that have
            accounts (`certificate`), and `surrogate_regret_bound`. May be negative.
            Where labels come late it is about the predictions at the time of learning;
            with `delta` about the plays.
        """
        check_is_fitted(self)
        if (norm is None) == (coef is None):
            raise ValueError(
                f"give norm or coef, one of them; got norm={norm!r} and "
                f"coef={'None' if coef is None else 'an array'}."
            )
        if coef is not None:
            coef = self._check_comparator(coef)
            norm = float(np.linalg.norm(coef))
        norm = _check_norm(norm)
        margin = 0.0
        if delta is not None:
            margin = self.draw_margin(_check_delta(delta)) + self._delay()
        found = [
            _bounds.linear_certificate(
                self._scalar("AT_LEARNING"), loss, inner,
                norm * float(np.linalg.norm(gradient))
                if coef is None
                else -float(np.sum(coef.T * gradient)),
            )
            for loss, inner, gradient in self._linear_accounts()
        ]  # fmt: skip
        bound = nan
        if self._scalar("BEYOND") == 0:
            bound = self._bound(norm)
        if not isnan(bound):
            found.append(bound)
        return float(min(found) + margin)

    def _linear_accounts(self):
        """Yield losses, <gradient, weights> and the sum of gradients of each learner.

        Of each expert that has accounts; of the first, or only, learner always. Sums
        of gradients have shape (n_columns, n_outputs).
        """
        gradient = self._sum_of_gradients()
        closed = vars(self).get("_closed_", {}).get("gradient")
        if closed is not None:
            # What came later has none.
            gradient = np.zeros_like(gradient)
            intercept = bool(self._params_["fit_intercept"])
            n_rows, n_outputs = len(closed) - intercept, closed.shape[1]
            gradient[:n_rows, :n_outputs] = closed[:n_rows]
            if intercept:
                gradient[-1, :n_outputs] = closed[-1]
        yield self._scalar("SURROGATE_BASE"), self._scalar("INNER"), gradient
        accounts, gradients = self._state_["accounts"], self._state_["gradients"]
        if len(gradients):
            gradients = gradients[self._table_rows(np.arange(self.n_features_in_))]
        n_outputs = self._make_loss().n_outputs
        for m in range(1, accounts.shape[1] if len(accounts) else 0):
            columns = slice((m - 1) * n_outputs, m * n_outputs)
            yield accounts[0, m], accounts[1, m], gradients[:, columns]

    def _sum_of_gradients(self):
        """Return the sum of all gradients of the scaled loss, (n_columns, n_outputs).

        Dual averaging has it in its weights.
        """
        gradient = self._state_["gradient"]
        rows = self._table_rows(np.arange(self.n_features_in_))
        if len(gradient) > 0:
            return gradient[rows]
        table = self._state_["table"][rows, : self._make_loss().n_outputs]
        return -self._scale_ * table.astype(np.float64)

    def _check_comparator(self, coef):
        coef = np.asarray(coef, dtype=np.float64)
        intercept = bool(self._params_["fit_intercept"])
        shape = (self._make_loss().n_outputs, self.n_features_in_ + intercept)
        if coef.shape != shape or not np.isfinite(coef).all():
            raise ValueError(
                f"coef must be finite and have shape {shape}: a line per output, a "
                f"column per feature and one for the intercept; got {coef.shape}."
            )
        return coef

    def comparator_loss(
        self,
        coef: ArrayLike,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the loss of a fixed linear predictor on the stream.

        `expected_cumulative_loss_` less this is the surrogate regret.

        Parameters
        ----------
        coef : array-like of shape (n_outputs, n_columns)
            The predictor, on features as the learner saw them: their scaling is
            replayed from the stream's first row. The intercept's column is the last.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            All rows of the stream so far, in their order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; rows of weight 0 were no part of the stream.

        Returns
        -------
        loss : float
            Its surrogate loss, summed, times `loss_scale_`.
        """
        X = self._check_rows(X)
        check_consistent_length(X, y)
        coef = self._check_comparator(coef)
        targets = self._encode(y, None, False, True)
        weight = check_row_weights(sample_weight, X.shape[0])
        if weight is None:
            weight = np.ones(X.shape[0])
        kept = np.flatnonzero(weight)
        X = X[kept].astype(self._state_["table"].dtype)
        if sp.issparse(X) != self._sparse_:
            X = sp.csr_array(X) if self._sparse_ else X.toarray()
        features = self._seen_features(X)
        losses = comparator_losses(self._make_loss(), features, targets[kept], coef)
        return float(self._scale_ * (weight[kept] @ losses))

    @property
    def n_feature_resets_(self) -> np.ndarray:
        """How often the scaling of each feature began anew."""
        self._require_state()
        robust = self._state_["robust"]
        if not len(robust):
            return np.zeros(self.n_features_in_, dtype=np.int64)
        return robust[_core.RESETS].astype(np.int64)

    @property
    def progressive_errors_(self) -> float:
        """Target loss of `predict` on each row before it was learnt, summed."""
        self._require_state()
        if self._make_loss().structure == "birkhoff":
            raise AttributeError(
                "progressive_errors_ is not kept for matchings: a nearest one for each "
                "row takes longer than everything else."
            )
        return float(self._scalar("PROGRESSIVE"))

    def error_interval(
        self, confidence: float = 0.95, kind: Literal["predict", "play"] = "predict"
    ) -> tuple[float, float]:
        """Return limits for the mean error of the predictions on the stream so far.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, in (0, 1), that the limits hold at all times at once.
        kind : {'predict', 'play'}, default='predict'
            Whether the error is that of `predict`, on each row before it was learnt, or
            that of the plays.

        Returns
        -------
        low, high : float
            With that probability, the mean over the rows so far of the error that was
            to be expected of each, given all before, is between them: for any stream,
            drifting or adversarial, and at any time. About the average over the
            stream, not about the predictor of today: after a change they differ. Plays
            without a label (`play_one`) count as right for the low limit and as wrong
            for the high one; labels that come late count as fixed when their rows were
            played.
        """
        check_is_fitted(self)
        if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie in (0, 1); got {confidence!r}.")
        if kind not in ("predict", "play"):
            raise ValueError(f"kind must be 'predict' or 'play'; got {kind!r}.")
        total = self._scalar("EXPECTED") if kind == "play" else self.progressive_errors_
        # Accounts of a first pass are closed to the plays that came later.
        waiting = list(self._tickets_.values()) if self._log_ else []
        n = self.n_samples_seen_ + len(waiting)
        if n == 0:
            return 0.0, 1.0
        largest = max([self._scalar("WEIGHT_MAX"), *waiting])
        alpha, most = 1.0 - confidence, total + sum(waiting)
        low = _bounds.anytime_interval(total / largest, n, alpha)[0]
        high = _bounds.anytime_interval(most / largest, n, alpha)[1]
        # Of weighted losses, in units of the largest weight.
        unit = n * largest / (self._scalar("WEIGHT_SUM") + sum(waiting))
        return low * unit, min(high * unit, 1.0)


def _check_norm(norm):
    if not isinstance(norm, Real) or not 0.0 <= norm < inf:
        raise ValueError(f"norm must be a finite number >= 0; got {norm!r}.")
    return float(norm)


def _check_delta(delta):
    if not isinstance(delta, Real) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
    return float(delta)
