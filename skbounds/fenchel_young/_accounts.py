"""A stream's accounts, and what they prove about regret."""

from __future__ import annotations

from math import inf, log, nan, sqrt
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbounds._blocks import row_blocks
from skbounds._core import fenchel_young as _core
from skbounds.fenchel_young import _bounds


def _account(name, index, doc):
    """Return a read-only attribute that is one number of the stream's accounts."""

    def read(self):
        return float(self._scalar(index))

    read.__name__ = name
    read.__doc__ = doc
    return property(read)


class RegretAccounts:
    """Mixin: losses so far, bounds and certificates."""

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
    def n_samples_seen_(self):
        """Rows that the accounts cover."""
        return int(self._scalar("ROUNDS"))

    @property
    def sum_of_weights_(self):
        """Sum of the weights of the rows that were learnt, in all passes."""
        return float(self._scalar("WEIGHT_SUM"))

    @property
    def loss_scale_(self):
        """Factor of the surrogate loss in accounts and bounds."""
        self._require_state()
        return self._scale_

    @property
    def feature_norm_(self):
        """Row norm that bounds are stated for, times the root of the row's weight."""
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
            return bool(self._constants(self._make_loss()).ratio < self._scale_)
        return bool(self._bound(0.0) >= 0.0)

    def _constants(self, loss):
        """Return the constants of steps and bounds; a mixture has only sharp ones."""
        params = self._params_
        kind = "sharp" if self._learner_ == "mixture" else params["constants"]
        return loss.constants(params["decoding"], kind)

    def _mixing_cost(self):
        """Return what Bayes weights cost in nats: ln M for each mixed prediction.

        Times the largest weight of a row.
        """
        cost = len(self._state_["weights"]) * log(len(self._state_["rates"]))
        # Before the first row there is none.
        return cost * (self._scalar("WEIGHT_MAX") or 1.0)

    def _bound(self, norm):
        """Return the bound in expectation; nan where its conditions fail."""
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
            explicit constant. With `delta` the step must leave a part of the gap: the
            default steps leave nothing, or so little that the bound is of no use; half
            the step (`learning_rate`) gives a useful one.
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
        length = self.feature_norm_
        constants = self._constants(self._make_loss())
        if self._learner_ == "ogd":
            return _bounds.constant_step_high_probability_bound(
                _bounds.surrogate_gap(constants.ratio, self._scale_),
                self._scale_,
                constants.curvature,
                length,
                self._step_,
                norm,
                constants.gamma * constants.diameter * self._scalar("WEIGHT_MAX"),
                delta,
            )
        ratio, extra = constants.ratio, 0.0
        if self._learner_ == "mixture":
            ratio = _bounds.mixture_ratio(ratio, self._params_["share"])
            extra = self._mixing_cost()
        return _bounds.averaged_step_high_probability_bound(
            ratio,
            self._scale_,
            constants.curvature,
            length,
            self._step_,
            norm,
            extra,
            self._scalar("WEIGHT_MAX"),
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
        gradient_norm = vars(self).get("_closed_", {}).get("gradient")
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

        Dual averaging has the sum in its weights.
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
        return self._scale_ * sqrt(squares)


def _check_norm(norm):
    if not isinstance(norm, Real) or not 0.0 <= norm < inf:
        raise ValueError(f"norm must be a finite number >= 0; got {norm!r}.")
    return float(norm)
