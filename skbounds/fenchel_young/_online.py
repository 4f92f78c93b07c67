"""What the online estimators share: the stream, its accounts, and its guarantees."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from itertools import pairwise
from numbers import Integral, Real
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    check_consistent_length,
)

from skbounds._base import (
    SkboundsEstimator,
    fit_from_scratch,
    unchanged_on_error,
    warn_user,
)
from skbounds._blocks import row_blocks
from skbounds._callbacks import current_task, fitted_by_now
from skbounds._core import fenchel_young as _core
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds._typing import MatrixLike
from skbounds._validation import validate_data
from skbounds.fenchel_young._accounts import RegretAccounts
from skbounds.fenchel_young._arrays import (
    canonical_rows,
    check_magnitude,
    check_row_weights,
    csr_arrays,
)
from skbounds.fenchel_young._batches import PlaysBatches
from skbounds.fenchel_young._growth import (
    are_dicts,
    code_dict,
    code_dicts,
    with_columns,
    with_more_rows,
)
from skbounds.fenchel_young._losses import FenchelYoungLoss
from skbounds.fenchel_young._predictions import OnlinePredictions
from skbounds.fenchel_young._row_by_row import RowByRow
from skbounds.fenchel_young._state import StreamState

Learner: TypeAlias = Literal["auto", "mixture", "adaptive", "parameter_free", "ogd"]
# Uniform numbers drawn at a time; bounds the memory of long calls.
_UNIFORMS = 2**20


class FenchelYoungOnline(
    PlaysBatches,
    StreamState,
    RowByRow,
    RegretAccounts,
    OnlinePredictions,
    SkboundsEstimator,
    metaclass=ABCMeta,
):
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
        "feature_scaling": [StrOptions({"auto", "standard", "none"})],
        "certificate": [StrOptions({"auto", "safe", "all"})],
        "clip": [Interval(Real, 0, None, closed="neither")],
        # Limits keep squares and products of parameters finite.
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, 1e30, closed="right"),
        ],
        "feature_norm": [
            StrOptions({"auto"}),
            Interval(Real, 1e-100, 1e100, closed="both"),
        ],
        "diameter": [Interval(Real, 0, None, closed="neither"), None],
        "initial_wealth": [Interval(Real, 0, None, closed="neither")],
        "constants": [StrOptions({"sharp", "paper"})],
        "fit_intercept": ["boolean"],
        "average": ["boolean"],
        "new_features": [StrOptions({"raise", "grow"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # ------------------------------------------------------------ to be defined

    @abstractmethod
    def _make_loss(self) -> FenchelYoungLoss:
        """Return the loss, from parameters and the targets' description."""

    @abstractmethod
    def _encode(self, y, classes, first, complete) -> np.ndarray:
        """Return int64 targets; on the first call store what describes them.

        ``complete`` tells that all labels of the stream are in y.
        """

    @abstractmethod
    def _encode_one(self, y, target) -> None:
        """Write the target of one row."""

    @abstractmethod
    def _decode_plays(self, plays):
        """Return plays in the user's form."""

    # ------------------------------------------------------------ learning

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Learn from the rows as one stream, in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The stream.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._params_ = self.get_params(deep=False)
        X, targets, _ = self._validate(X, y, None, complete=True)
        passes = current_task().begin("passes", self.max_iter)
        for iteration in range(self.max_iter):
            task = passes.begin("pass")
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
            self.n_iter_ = iteration + 1
            if task.end(fitted_by_now(self)):
                break
        passes.end(fitted_by_now(self))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | Literal["grow"] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with the stream: play each row, then learn it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows; for a stream of named features also a list of dicts from
            names to values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        classes : array-like or 'grow', default=None
            All classes that the stream may have; in the first call it defaults to the
            labels in `y`, later calls may only repeat it. With 'grow', for the
            classifier with the logistic loss, the stream begins with the first label
            and the others join where they come; each adds the weight of the row that
            brings it to the bounds.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows: a row of weight 2 has a gradient, and losses in all
            accounts, of twice the size. Rows of weight 0 are left out.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._go_on(X, y, classes, sample_weight, keep=False)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def play(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: Literal["grow"] | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> np.ndarray:
        """Go on with the stream and return what was played on it.

        Each row is played before its target is looked at: a progressive validation of
        the whole stream in one call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        classes : array-like or 'grow', default=None
            As in `partial_fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows: a row of weight 2 has a gradient, and losses in all
            accounts, of twice the size. Rows of weight 0 are left out: they are
            played, but not learnt.

        Returns
        -------
        plays : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The plays, in the form of the targets.
        """
        plays = self._go_on(X, y, classes, sample_weight, keep=True)
        return self._decode_plays(plays)

    def _go_on(self, X, y, classes, sample_weight, keep):
        if "_state_" not in vars(self):
            self._params_ = self.get_params(deep=False)
            self.n_iter_ = 1
        X, targets, weight = self._validate(
            X, y, classes, complete=False, sample_weight=sample_weight
        )
        late = self._rows_of_new_classes(targets)
        plays = []
        begin = 0
        for i in [*late, len(targets)]:
            part = slice(begin, i)
            if begin < i:
                plays.append(
                    self._run(
                        X[part],
                        targets[part],
                        log=self._log_,
                        keep=keep,
                        weight=None if weight is None else weight[part],
                    )
                )
            if i < len(targets):
                w = 1.0 if weight is None else weight[i]
                plays.append(self._bring_class(X[i : i + 1], targets[i, 0], w))
            begin = i + 1
        return np.concatenate(plays) if keep else None

    def _check_that_classes_may_grow(self):
        raise ValueError(
            "classes='grow' is for FenchelYoungOnlineClassifier: new labels or levels "
            f"would change what all targets of {type(self).__name__} mean."
        )

    def _rows_of_new_classes(self, targets):
        """Return the rows whose class was not there before them."""
        return []

    def _validate(self, X, y, classes, complete, sample_weight=None):
        """Return checked rows, targets and weights; on the first call set up the state.

        Weights are None where all are 1.
        """
        first = "_state_" not in vars(self)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        dtype = [np.float64, np.float32] if first else self._state_["table"].dtype
        vocabulary, fresh = {} if first else self._vocabulary, {}
        X = self._as_matrix(X, vocabulary, fresh)
        # What overflows in the stream's precision is refused as infinite.
        with np.errstate(over="ignore"):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=dtype, order="C", reset=first
            )
        check_consistent_length(X, y)
        if first and self._params_["new_features"] == "grow" and not sp.issparse(X):
            raise ValueError(
                "new_features='grow' needs sparse rows or dicts: of dense rows nothing "
                "tells that a feature was absent before."
            )
        if not first and sp.issparse(X) != self._sparse_:
            raise ValueError(
                "A stream is either dense or sparse throughout; it began "
                f"{'sparse' if self._sparse_ else 'dense'} and goes on "
                f"{'sparse' if sp.issparse(X) else 'dense'}. Convert the rows."
            )
        X = canonical_rows(X)
        targets = self._encode(y, classes, first, complete)
        weight = check_row_weights(sample_weight, X.shape[0], X.dtype)
        if first:
            self._start(X, weight)
            if fresh:
                self.vocabulary_ = fresh
        values = X.data if sp.issparse(X) else X
        check_magnitude(values, "X", raw=self._scaling_ == "none")
        if not first:
            self._reach(X.shape[1])
            if fresh:
                vocabulary.update(fresh)
        return X, targets, weight

    # ------------------------------------------------------------ new features

    @property
    def _vocabulary(self):
        """Columns by name where the stream's rows are dicts, else None."""
        return vars(self).get("vocabulary_")

    @property
    def _grows_(self):
        """Whether rows may have features that were not there before."""
        return self._params_["new_features"] == "grow" or self._vocabulary is not None

    def _as_matrix(self, X, vocabulary, fresh=None):
        """Return rows that are dicts, or longer or shorter than before, as a matrix.

        `fresh` gets the names of new features; without it they are dropped.
        """
        first = "_state_" not in vars(self)
        if are_dicts(X):
            if vocabulary is None:
                raise ValueError(
                    "X holds dicts, but the stream began with a matrix; it must go on "
                    "so."
                )
            X = code_dicts(X, vocabulary, fresh)
        elif not first and vocabulary is not None:
            raise ValueError(
                "The stream's rows are dicts: X must be a list of dicts; got "
                f"{type(X).__name__}."
            )
        if first or not self._grows_ or not sp.issparse(X):
            return X
        X = X.tocsr()
        if fresh is not None and X.shape[1] > self.n_features_in_:
            self.n_features_in_ = X.shape[1]
        return with_columns(X, self.n_features_in_)

    def _code_row(self, x, fresh):
        """Return columns and values of a row that is a dict; fill in its new names."""
        if self._vocabulary is None:
            raise ValueError(
                "x is a dict, but the stream began with a matrix; it must go on so."
            )
        return code_dict(x, self.vocabulary_, fresh)

    def _reach(self, n_features):
        """Make room for so many features."""
        intercept = bool(self._params_["fit_intercept"])
        if n_features + intercept > len(self._state_["table"]):
            self._check_n_rows(n_features)
            self._state_ = with_more_rows(self._state_, n_features, intercept)
        self.n_features_in_ = n_features

    def _begin(self, X, y):
        """Begin a stream without learning; return checked rows and targets."""
        self._validate_params()
        self._params_ = self.get_params(deep=False)
        self.n_iter_ = 1
        return self._validate(X, y, None, complete=True)[:2]

    def _run(self, X, targets, log, keep=False, weight=None):
        """Play and learn checked rows; return the plays if asked."""
        if weight is not None and not weight.all():
            return self._run_without_some(X, targets, log, keep, weight)
        loss = self._make_loss()
        stream = self._stream(loss)
        n = len(targets)
        plays = np.zeros((n if keep else 0, targets.shape[1]), np.int64)
        if self._sparse_:
            data, indices, indptr = csr_arrays(X)
        else:
            X = np.require(X, requirements=["C", "A"])
        draws = loss.n_uniforms(self._params_["decoding"])
        scalars = self._state_["scalars"]
        before = scalars[_core.BEYOND]
        for block in row_blocks(n, max(256, _UNIFORMS // max(1, draws))):
            uniforms = self._uniforms(block.stop - block.start, draws)
            rest = targets[block], uniforms, plays[block] if keep else plays, log
            if weight is not None:
                rest += (weight[block],)
            if self._sparse_:
                part = indptr[block.start : block.stop + 1]
                stream.sparse(data, indices, part, *rest)
            else:
                stream.dense(X[block], *rest)
        if scalars[_core.BEYOND] > before == 0:
            self._warn_of_long_row()
        return plays

    def _run_without_some(self, X, targets, log, keep, weight):
        """Do the same where some rows have weight 0, and are played only."""
        if not keep:
            kept = np.flatnonzero(weight)
            self._n_idle_ += len(weight) - len(kept)
            if len(kept):
                self._run(X[kept], targets[kept], log, False, weight[kept])
            return np.zeros((0, targets.shape[1]), np.int64)
        plays = np.empty_like(targets)
        bounds = np.flatnonzero(np.diff(weight > 0.0)) + 1
        for begin, end in pairwise([0, *bounds.tolist(), len(weight)]):
            part = slice(begin, end)
            if weight[begin]:
                plays[part] = self._run(X[part], targets[part], log, True, weight[part])
            else:
                plays[part] = self._play_only(X[part])
        return plays

    def _play_only(self, X):
        """Return plays of rows that leave no trace; such plays are counted."""
        loss, decoding = self._make_loss(), self._params_["decoding"]
        u = np.empty((X.shape[0], loss.n_outputs))
        for block, scores in self._scores(X):
            u[block] = self._points_of(scores, loss)
        uniforms = self._uniforms(
            len(u), loss.n_uniforms(decoding), self._n_idle_, idle=True
        )
        self._n_idle_ += len(u)
        return loss.decode(u, decoding, uniforms)[0]

    def _uniforms(self, n, draws, at=None, idle=False):
        """Return the uniform numbers of n plays from play `at`, or the next one, on.

        Play t always gets the same numbers, however the stream is cut; `idle` plays, of
        rows of weight 0, are counted by themselves.
        """
        if draws == 0:
            return np.zeros((n, 0))
        at = self._n_plays() if at is None else at
        bits = np.random.PCG64(self._seed_)
        bits = bits.jumped() if idle else bits
        return np.random.Generator(bits.advance(at * draws)).random((n, draws))

    def _warn_of_long_row(self):
        warn_user(
            f"A row is longer than feature_norm = {self._norm_limit_:.6g}: the regret "
            "bound does not hold from here on (bound_valid_ is False); the "
            "certificate does. Give feature_norm, or scale the rows."
        )

    def _close_account(self):
        """End the account: regret is defined on the first pass only."""
        self._closed_ = {
            "gradient": self._sum_of_gradients(),
            "NORM_MAX": float(self._scalar("NORM_MAX")),
            "BEYOND": float(self._scalar("BEYOND")),
            "WEIGHT_SUM": float(self._scalar("WEIGHT_SUM")),
            "WEIGHT_MAX": float(self._scalar("WEIGHT_MAX")),
            "late": self._late_weight_,
        }
        self._log_ = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
