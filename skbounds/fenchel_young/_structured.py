"""Online learning of outputs whose structure the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbounds._base import SkboundsEstimator, fit_from_scratch, unchanged_on_error
from skbounds._callbacks import current_task, fitted_by_now
from skbounds._core import fenchel_young as _core
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import validate_data
from skbounds.fenchel_young._accounts import RegretAccounts
from skbounds.fenchel_young._arrays import (
    adapted_magnitudes,
    canonical_rows,
    check_experts,
    check_magnitude,
    check_row_weights,
)
from skbounds.fenchel_young._batches import PlaysBatches
from skbounds.fenchel_young._losses import (
    LOGISTIC_CURVATURE,
    LOGISTIC_RATIO,
    Constants,
)
from skbounds.fenchel_young._row_by_row import Ticket
from skbounds.fenchel_young._sparsemap import project
from skbounds.fenchel_young._state import first_moments
from skbounds.fenchel_young.structures import Structure, best_vertex, check_structure

# Uniform numbers set aside for each play.
_APART = 2**24
_DAMPING, _DAMPING_OF_UNIT_ROWS = 2.0, 0.03


@dataclass(frozen=True)
class StructuredLoss:
    """What bounds need to know of a loss on a user's structure."""

    shape: Any
    loss: str
    structure: str = "user"

    def constants(self, decoding, kind):
        """Return the constants of a decoding; there is one kind."""
        if self.loss == "crf":
            # Algorithm 1 on the simplex of all outputs: no loss is above that of any
            # wrong output, and a gradient is a mean of differences of vertices.
            ratio = {"randomized": LOGISTIC_RATIO, "sample": 1.0}.get(decoding, inf)
            return Constants(2.0, 0.5, 1.0, 1.0, 2.0, ratio, LOGISTIC_CURVATURE)
        shape = self.shape
        ratio = 4.0 * shape.lipschitz / shape.separation
        if decoding != "randomized":
            ratio = inf
        return Constants(
            shape.separation, shape.lipschitz, 1.0, 1.0, sqrt(shape.most_wrong), ratio,
            2.0,
        )  # fmt: skip

    def scale(self, decoding, kind):
        """Return the factor of the surrogate loss that leaves a surrogate gap."""
        if self.loss == "crf":
            return 1.0 / log(2.0)
        ratio = self.constants(decoding, kind).ratio
        return 2.0 * ratio if 1.0 - 1e-9 <= ratio < inf else 1.0


class FenchelYoungOnlineStructured(PlaysBatches, RegretAccounts, SkboundsEstimator):
    r"""Online learning of structured outputs, given by a linear maximisation oracle.

    Rows are one stream. Each is played at random by a decoding of the regularised
    prediction, and then learnt; the expected loss of the plays exceeds the surrogate
    loss of the best linear predictor in hindsight by at most a constant, however long
    the stream and whatever it does (a *finite surrogate regret*).

    Read more in the :ref:`User Guide <fenchel_young_structured>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    structure : Structure
        The outputs: one of `skbounds.fenchel_young.structures`, or an object of your
        own that finds the best output for given scores. Its constants are checked on a
        sample of outputs.
    loss : {'auto', 'crf', 'sparsemap'}, default='auto'
        The surrogate loss. ``'crf'``: minus the logarithm of the probability of the
        target, for structures with a partition function (`ChainCRF`); ``'sparsemap'``:
        the Euclidean projection of the scores, for all. ``'auto'`` is the first where
        the structure has it.
    learner : {'auto', 'mixture', 'dual'}, default='auto'
        - ``'mixture'``: several experts, mixed by Bayes weights, for the CRF loss only;
        - ``'dual'``: the expert with the guarantee alone, dual-averaged gradient
          descent;
        - ``'auto'``: the mixture where it is possible.
    experts : array-like of float, default=(1.0, 4.0, 16.0)
        Step multipliers of the mixture's AdaGrad experts.
    share : float, default=1e-3
        Rate, in [0, 1), at which the mixture's weights are shared after a loss.
    feature_scaling : {'auto', 'none'}, default='auto'
        ``'auto'``: features are scaled on the fly as in
        `FenchelYoungOnlineClassifier`, position by position; ``'none'``: as they are.
    clip : float, default=3.0
        Scaled features are clipped to [-clip, clip].
    learning_rate : 'auto' or float, default='auto'
        Step on the unscaled loss of the expert with the guarantee, in units of
        1 / C_t². ``'auto'`` is the theorem's.
    decoding : {'randomized', 'argmax', 'sample'}, default='randomized'
        How rows are played. ``'randomized'``: Algorithm 1; ``'argmax'``: as `predict`
        (no bound); ``'sample'``: a draw with the regularised prediction as its mean
        (bounded for ``loss='crf'`` and ``learner='dual'`` only).
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    max_iter : int, default=1
        Passes of `fit` over the rows. Accounts and bounds cover the first.
    random_state : int, RandomState instance or None, default=None
        Source of the plays. Learning never depends on it.
    verbose : int, default=0
        Whether `fit` prints a line per pass.

    Attributes
    ----------
    coef_ : ndarray of shape (n_experts, n_scores, n_columns)
        Weights of the experts on features as the learner sees them, the intercept's
        column last.
    shared_coef_ : ndarray of shape (n_experts, n_shared)
        Scores that no feature enters; for `ChainCRF` those of the transitions.
    expert_weights_ : ndarray of shape (n_experts,)
        Bayes weights of the experts.
    n_samples_seen_ : int
        Rows that the accounts cover.
    sum_of_weights_ : float
        Sum of the weights of these rows.
    cumulative_loss_ : float
        Loss of the plays, summed.
    expected_cumulative_loss_ : float
        Its conditional expectation given all rows before: exact, without sampling.
    cumulative_surrogate_loss_ : float
        Surrogate loss of the predictions that were played, times `loss_scale_`.
    loss_scale_ : float
        Unit of the surrogate loss: 1 (nats) for the mixture, 1 / ln 2 (bits) for
        ``'dual'`` with the CRF loss; for SparseMAP what makes a positive surrogate gap.
    feature_norm_ : float
        C_T: what gradients were bounded by, relative to the root of the loss.
    bound_valid_ : bool
        Whether the conditions of the regret bound hold.
    progressive_errors_ : float
        Loss of `predict` on each row before it was learnt, summed.
    n_feature_resets_ : ndarray of int of shape (n_features,)
        How often the scaling of a feature began anew (dense rows).
    n_open_tickets_ : int
        Plays of `play_one` that were not learnt yet.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where all of them are strings.

    See Also
    --------
    FenchelYoungOnlineClassifier : One class per row, compiled.
    FenchelYoungOnlineMultilabelClassifier : Any subset of labels, compiled.
    FenchelYoungOnlineRanker : Permutations, compiled.

    Notes
    -----
    SparseMAP finds the projection by Wolfe's algorithm, as a mixture of at most D + 1
    outputs from which Algorithm 1 draws. The CRF loss is the log-loss of a softmax over
    *all* outputs, and Algorithm 1 is that of this softmax: the most probable output
    with probability 1 - p, p = min(1, 2 (1 - its probability)), else an exact draw. As
    no loss exceeds that of being wrong at all, the classifier's constants hold; and an
    output with more than half of the mixture's probability is the best one of some
    expert, so that the mixture keeps them too.

    Rows are learnt by interpreted code, some hundreds to some thousands per second.

    References
    ----------
    .. [1] S. Sakaue, H. Bao, T. Tsuchiya, T. Oki (2024). "Online Structured
       Prediction with Fenchel-Young Losses and Improved Surrogate Regret for Online
       Multiclass Classification with Logistic Loss". COLT 2024, PMLR 247.

    Examples
    --------
    Which two of five items, by the features of a row:

    >>> import numpy as np
    >>> from skbounds.fenchel_young import FenchelYoungOnlineStructured
    >>> from skbounds.fenchel_young.structures import KSubsets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> pairs = KSubsets(5, 2)
    >>> y = [pairs.maximise(scores) for scores in X @ rng.normal(size=(3, 5))]
    >>> learner = FenchelYoungOnlineStructured(pairs, random_state=0).fit(X, y)
    >>> learner.predict(X[:2])
    array([[1, 0, 0, 1, 0],
           [1, 0, 0, 1, 0]])
    >>> bool(learner.bound_valid_)
    True
    """

    _has_classes = False
    _parameter_constraints: ClassVar[dict] = {
        "structure": [Structure],
        "loss": [StrOptions({"auto", "crf", "sparsemap"})],
        "learner": [StrOptions({"auto", "mixture", "dual"})],
        "experts": ["array-like"],
        "share": [Interval(Real, 0, 1, closed="left")],
        "feature_scaling": [StrOptions({"auto", "none"})],
        "clip": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [
            StrOptions({"auto"}),
            Interval(Real, 0, 1e30, closed="right"),
        ],
        "decoding": [StrOptions({"randomized", "argmax", "sample"})],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        structure: Structure,
        *,
        loss: Literal["auto", "crf", "sparsemap"] = "auto",
        learner: Literal["auto", "mixture", "dual"] = "auto",
        experts: ArrayLike = (1.0, 4.0, 16.0),
        share: float = 1e-3,
        feature_scaling: Literal["auto", "none"] = "auto",
        clip: float = 3.0,
        learning_rate: Literal["auto"] | float = "auto",
        decoding: Literal["randomized", "argmax", "sample"] = "randomized",
        fit_intercept: bool = True,
        max_iter: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.loss = loss
        self.learner = learner
        self.experts = experts
        self.share = share
        self.feature_scaling = feature_scaling
        self.clip = clip
        self.learning_rate = learning_rate
        self.decoding = decoding
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------ learning

    @_fit_context(prefer_skip_nested_validation=True)
    @fit_from_scratch
    def fit(self, X: MatrixLike, y: Sequence[Any] | np.ndarray) -> Self:
        """Learn from the rows as one stream, in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            The stream. A list holds a matrix per row, with a line of features per
            position (for `ChainCRF` always).
        y : sequence of n_samples targets
            Each as the structure wants it: vectors of zeros and ones, or sequences of
            state numbers.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._params_ = self.get_params(deep=False)
        rows, vertices, _ = self._validate(X, y, None)
        passes = current_task().begin("passes", self.max_iter)
        for iteration in range(self.max_iter):
            task = passes.begin("pass")
            self._run(rows, vertices, None)
            if iteration == 0 and self.max_iter > 1:
                self._close_account()
            if self.verbose:
                n = len(rows)
                print(
                    f"[{type(self).__name__}] pass {iteration + 1}/{self.max_iter}: "
                    f"{n} rows; first pass: mean surrogate loss "
                    f"{self.cumulative_surrogate_loss_ / n:.4g}, mean expected loss "
                    f"{self.expected_cumulative_loss_ / n:.4g}"
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
        y: Sequence[Any] | np.ndarray,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with the stream: play each row, then learn it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            The next rows, as in `fit`.
        y : sequence of n_samples targets
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows. Rows of weight 0 are left out.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self.play(X, y, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def play(
        self,
        X: MatrixLike,
        y: Sequence[Any] | np.ndarray,
        sample_weight: ArrayLike | None = None,
    ) -> np.ndarray | list:
        """Go on with the stream and return what was played on it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            The next rows, as in `fit`.
        y : sequence of n_samples targets
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows. Rows of weight 0 are played, but not learnt.

        Returns
        -------
        plays : ndarray or list of n_samples plays
            In the form of the targets; a list where rows have several positions.
        """
        if "_state_" not in vars(self):
            self._params_ = self.get_params(deep=False)
            self.n_iter_ = 1
        rows, vertices, weight = self._validate(X, y, sample_weight)
        saved = self._saved(rows)
        try:
            return self._decoded(self._run(rows, vertices, weight))
        except BaseException:
            # The structure's code is the user's.
            self._restore(*saved)
            raise

    def play_one(self, x: ArrayLike, sample_weight: float = 1.0) -> Ticket:
        """Play one row whose target is not known yet.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n_positions, n_features)
            The row; sparse streams take matrices.
        sample_weight : float, default=1.0
            Its importance, positive.

        Returns
        -------
        ticket : Ticket
            ``ticket.play`` is the play; ``learn_one(ticket, y)`` learns the row later.
            Accounts are as in `FenchelYoungOnlineClassifier.play_one`.
        """
        check_is_fitted(self)
        check_row_weights([sample_weight], 1)
        if not sample_weight > 0.0:
            raise ValueError(f"sample_weight must be positive; got {sample_weight!r}.")
        row = self._check_rows(self._as_rows(x))[0].copy()
        number, weight = self._n_plays(), float(sample_weight)
        look = self._look(row, weight, keep=False)
        drawn, means = self._decode(look, self._generator(number))
        nearest = self._nearest(look["point"])
        play = self._structure.decode(drawn.copy())
        self._tickets_[number] = weight
        return Ticket(
            number, play, weight, self._stream_, (row,), drawn, nearest, means
        )  # fmt: skip

    @unchanged_on_error
    def learn_one(
        self, x: ArrayLike | Ticket, y: Any, sample_weight: float = 1.0
    ) -> Any:
        """Play one row, then learn it.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n_positions, n_features), or Ticket
            The row, or the ticket that `play_one` gave for it.
        y : object
            Its target.
        sample_weight : float, default=1.0
            Its importance; that of a ticket was given to `play_one`.

        Returns
        -------
        play : object
            What was played.
        """
        check_is_fitted(self)
        if not isinstance(x, Ticket):
            return self.play(self._as_rows(x), [y], [sample_weight])[0]
        if sample_weight != 1.0:
            raise ValueError("sample_weight of a ticket was given to play_one.")
        if x.number not in self._tickets_ or x.stream != self._stream_:
            raise ValueError(
                f"ticket {x.number} was learnt before, or is of another stream."
            )
        row = x.arrays[0]
        vertex = self._encode([row], [y])[0]
        saved = self._saved([row])
        try:
            self._round(row, vertex, x.sample_weight, earlier=x)
        except BaseException:
            self._restore(*saved)
            raise
        del self._tickets_[x.number]
        return x.play

    # ------------------------------------------------------------ predictions

    def predict(self, X: MatrixLike) -> np.ndarray | list:
        """Predict the output nearest to the regularised prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Rows.

        Returns
        -------
        y_pred : ndarray or list
            Predictions, in the form of the targets.
        """
        looks = self._looks(X)
        return self._decoded([self._nearest(look["point"]) for look in looks])

    def predict_marginals(self, X: MatrixLike) -> np.ndarray | list[np.ndarray]:
        """Predict the regularised prediction itself, a mean of outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Rows.

        Returns
        -------
        points : ndarray of shape (n_samples, D), or list of ndarray of shape (D,)
            For 0/1 outputs the probability of each entry.
        """
        points = [look["point"] for look in self._looks(X)]
        return points if self._many_ else np.array(points)

    def predict_randomized(
        self, X: MatrixLike, random_state: RandomState = None
    ) -> np.ndarray | list:
        """Draw predictions from the law of the randomised decoding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Rows.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        y_drawn : ndarray or list
            Draws, by `decoding`, or by Algorithm 1 where that is ``"argmax"``.
        """
        looks = self._looks(X)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        decoding = self._params_["decoding"]
        decoding = "randomized" if decoding == "argmax" else decoding
        return self._decoded([self._decode(look, rng, decoding)[0] for look in looks])

    def score(
        self,
        X: MatrixLike,
        y: Sequence[Any] | np.ndarray,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return one minus the mean loss of `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Rows.
        y : sequence of n_samples targets
            True targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Relative importance of the rows.

        Returns
        -------
        score : float
            In [0, 1].
        """
        check_is_fitted(self)
        rows = self._check_rows(X)
        losses = []
        for row, vertex in zip(rows, self._encode(rows, y), strict=True):
            v, c = self._structure.loss_coefficients(vertex)
            point = self._look(row, None)["point"]
            losses.append(v @ self._nearest(point) + c)
        return 1.0 - float(np.average(losses, weights=sample_weight))  # type: ignore[arg-type]

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the experts on features as the learner sees them."""
        self._require_state()
        factors = self._factors()
        return factors[:, None, None] * np.moveaxis(self._state_["coef"], 1, 2)

    @property
    def shared_coef_(self) -> np.ndarray:
        """Scores that no feature enters."""
        self._require_state()
        factors = np.ones(len(self._state_["shared"]))
        factors[0] = self._factors()[0]
        return factors[:, None] * self._state_["shared"]

    @property
    def expert_weights_(self) -> np.ndarray:
        """Bayes weights of the experts."""
        self._require_state()
        return self._state_["weights"][0].copy()

    @property
    def n_open_tickets_(self) -> int:
        """Plays of `play_one` that were not learnt yet."""
        self._require_state()
        return len(self._tickets_)

    def comparator_loss(  # type: ignore[override]
        self,
        coef: ArrayLike,
        X: MatrixLike,
        y: Sequence[Any] | np.ndarray,
        sample_weight: ArrayLike | None = None,
        *,
        shared: ArrayLike | None = None,
    ) -> float:
        """Return the loss of a fixed linear predictor on the stream.

        Parameters
        ----------
        coef : array-like of shape (n_scores, n_columns)
            The predictor, on features as the learner saw them: their scaling is
            replayed from the stream's first row. The intercept's column is the last.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            All rows of the stream so far, in their order.
        y : sequence of n_samples targets
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        shared : array-like of shape (n_shared,), default=None
            The predictor's scores that no feature enters; None: zeros.

        Returns
        -------
        loss : float
            Its surrogate loss, summed, times `loss_scale_`.
        """
        check_is_fitted(self)
        rows = self._check_rows(X)
        vertices = self._encode(rows, y)
        flat = self._check_comparator(coef, shared)
        n_shared = len(self._state_["shared"][0])
        shape = self._state_["coef"].shape[1:]
        weights, constants = (
            flat[: len(flat) - n_shared].reshape(shape),
            flat[len(flat) - n_shared :],
        )
        weight = check_row_weights(sample_weight, len(rows))
        weight = np.ones(len(rows)) if weight is None else weight
        state = self._first_scaling(self.n_features_in_)
        total = 0.0
        for row, vertex, w in zip(rows, vertices, weight, strict=True):
            if not w:
                continue
            features, columns = self._features(row, state)
            state["positions"][0] += len(features)
            scores = (features @ weights[columns]).ravel()
            if n_shared:
                scores = np.concatenate([scores, constants])
            total += w * self._respond(scores[None], vertex)[0][0]
        return float(self._scale_ * total)

    def surrogate_regret_certificate(
        self,
        norm: float | None = None,
        *,
        coef: ArrayLike | None = None,
        shared: ArrayLike | None = None,
        delta: float | None = None,
    ) -> float:
        """Bound the surrogate regret by what the accounts say about this stream.

        Parameters
        ----------
        norm : float, default=None
            Norm of the comparator, on features as the learner sees them, with intercept
            and shared scores.
        coef : array-like of shape (n_scores, n_columns), default=None
            The comparator itself, instead of its norm.
        shared : array-like of shape (n_shared,), default=None
            Its scores that no feature enters, with `coef`; None: zeros.
        delta : float, default=None
            None bounds the expected loss of the plays; a number in (0, 1) the realised
            loss, with probability at least ``1 - delta``, at all times.

        Returns
        -------
        certificate : float
            Holds for every comparator of that norm (or this one); the smallest of the
            linear certificates of all experts, and `surrogate_regret_bound`.
        """
        check_is_fitted(self)
        if coef is not None:
            coef = self._check_comparator(coef, shared)
        return super().surrogate_regret_certificate(norm, coef=coef, delta=delta)

    # ------------------------------------------------------------ rows and targets

    def _as_rows(self, x):
        """Return one row as `play` takes several."""
        if self._many_:
            return [x]
        if hasattr(x, "to_frame"):
            return x.to_frame().T
        return x if sp.issparse(x) else np.asarray(x)[None]

    def _validate(self, X, y, sample_weight):
        first = "_state_" not in vars(self)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        rows = self._check_rows(X, first)
        if first:
            check_structure(self._structure, np.random.default_rng(0))
            self._check_positions(rows)
        vertices = self._encode(rows, y)
        weight = check_row_weights(sample_weight, len(rows))
        if first:
            self._start(rows)
        return rows, vertices, weight

    def _check_rows(self, X, first=False):
        """Return a matrix per row, with a line per position."""
        if not first:
            check_is_fitted(self)
        many = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2
        many = many or (isinstance(X, list | tuple) and len(X) and sp.issparse(X[0]))
        many = bool(many or (isinstance(X, np.ndarray) and X.ndim == 3))
        if first:
            self._many_ = many
        elif many != self._many_:
            raise ValueError(
                "Rows have several positions throughout the stream (a list of "
                "matrices) or never; it began the other way."
            )
        if many:
            lengths = [np.shape(x)[0] for x in X]
            if min(lengths) == 0:
                raise ValueError("each row must have at least one position; got none.")
            widths = {np.shape(x)[1] for x in X}
            if len(widths) > 1:
                raise ValueError(
                    f"all rows must have as many features; got {sorted(widths)}."
                )
            X = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.vstack(X)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=first
        )
        X = canonical_rows(X)
        check_magnitude(X.data if sp.issparse(X) else X, "X", raw=False)
        if first:
            self._sparse_ = sp.issparse(X)
        elif sp.issparse(X) != self._sparse_:
            raise ValueError(
                "A stream is either dense or sparse throughout; convert the rows."
            )
        if not many:
            return [X[i : i + 1] for i in range(X.shape[0])]
        ends = np.cumsum(lengths)
        rows = [X[end - n : end] for n, end in zip(lengths, ends, strict=True)]
        if not first:
            self._check_lengths(rows)
        return rows

    def _check_lengths(self, rows):
        """Refuse rows with more or fewer positions than the structure has scores."""
        shape = self._structure
        if shape.n_outputs is None:
            return
        for row in rows:
            n_scores = row.shape[0] * shape.n_scores + shape.n_shared
            if n_scores != shape.n_outputs:
                raise ValueError(
                    f"a row of {row.shape[0]} positions has {n_scores} scores, but "
                    f"{shape!r} has outputs of length {shape.n_outputs}."
                )

    def _check_positions(self, rows):
        """Refuse rows that do not fit the structure."""
        shape = self._structure
        if not self._many_:
            if shape.n_outputs is None:
                raise ValueError(
                    f"rows of {shape!r} have several positions: X must be a list of "
                    "matrices of shape (n_positions, n_features)."
                )
            self._n_scores_ = shape.n_outputs - shape.n_shared
            return
        self._n_scores_ = shape.n_scores
        self._check_lengths(rows)

    def _encode(self, rows, y):
        """Return the vertices of the targets."""
        if not np.ndim(getattr(y, "shape", [1])) or not hasattr(y, "__iter__"):
            raise ValueError(f"y must hold one target for each row; got {y!r}.")
        y = list(y.to_numpy() if hasattr(y, "to_numpy") else y)
        if len(y) != len(rows):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[len(rows), len(y)]}"
            )
        vertices = []
        for row, target in zip(rows, y, strict=True):
            vertex = self._structure.encode(target)
            wanted = row.shape[0] * self._n_scores_ + self._structure.n_shared
            if len(vertex) != wanted:
                raise ValueError(
                    f"a row of {row.shape[0]} positions has {wanted} scores, but its "
                    f"target {target!r} means an output of length {len(vertex)}."
                )
            vertices.append(vertex)
        return vertices

    def _decoded(self, vertices):
        decoded = [self._structure.decode(vertex) for vertex in vertices]
        return decoded if self._many_ else np.array(decoded)

    # ------------------------------------------------------------ state

    def _start(self, rows):
        params, structure = self._params_, self._structure
        has_law = hasattr(structure, "log_partition")
        loss = params["loss"]
        if loss == "auto":
            loss = "crf" if has_law else "sparsemap"
        if loss == "crf" and not has_law:
            raise ValueError(
                f"loss='crf' needs a structure with log_partition; got {structure!r}."
            )
        if loss == "sparsemap" and structure.n_outputs is None:
            raise ValueError(
                f"loss='sparsemap' needs 0/1 outputs of one length; got {structure!r}."
            )
        learner = params["learner"]
        if learner == "auto":
            learner = "mixture" if loss == "crf" else "dual"
        if learner == "mixture" and loss != "crf":
            raise ValueError("learner='mixture' needs loss='crf'; got 'sparsemap'.")
        rates = np.zeros(1)
        if learner == "mixture":
            rates = np.concatenate([rates, check_experts(params["experts"])])
        self._loss_ = StructuredLoss(structure, loss)
        self._learner_ = learner
        self._scaling_ = params["feature_scaling"]
        self._scale_ = 1.0
        if learner == "dual":
            self._scale_ = self._loss_.scale(params["decoding"], "sharp")
        M, n_columns = len(rates), self.n_features_in_ + params["fit_intercept"]
        shape = M, n_columns, self._n_scores_
        scalars = np.zeros(_core.N_SCALARS)
        self._state_ = {
            # Of expert 0, and of sparse experts' rows of unit length, before factors.
            "coef": np.zeros(shape),
            "shared": np.zeros((M, structure.n_shared)),
            "squares": np.zeros(shape[:2]),
            "shared_squares": np.zeros(M),
            "gradients": np.zeros(shape),
            "shared_gradients": np.zeros((M, structure.n_shared)),
            "accounts": np.zeros((2, M)),
            "weights": np.full((1, M), 1.0 / M),
            "rates": rates,
            "scalars": scalars,
            **self._first_scaling(self.n_features_in_),
        }
        self._log_, self._tickets_, self._late_weight_ = True, {}, 0.0
        self._n_idle_ = 0
        self._stream_ = uuid4().hex
        self._seed_ = int(
            check_random_state(params["random_state"]).randint(np.iinfo(np.int32).max)
        )
        self._step_ = self._natural_step(self._loss_)

    def _saved(self, rows):
        """Return what learning these rows may change, to be put back."""
        state = self._state_
        if not all(array.flags.writeable for array in state.values()):
            # As loaded by memory maps.
            state = {name: array.copy() for name, array in state.items()}
            self._state_ = state
        columns = slice(None)
        if self._sparse_:
            columns = np.unique(np.concatenate([row.indices for row in rows]))
            if self._params_["fit_intercept"]:
                columns = np.append(columns, state["coef"].shape[1] - 1)
        by_column = ("coef", "squares", "gradients")
        saved = {name: state[name][:, columns].copy() for name in by_column}
        others = {name: a.copy() for name, a in state.items() if name not in by_column}
        return columns, saved, others

    def _restore(self, columns, saved, others):
        for name, array in saved.items():
            self._state_[name][:, columns] = array
        for name, array in others.items():
            self._state_[name][...] = array

    def _first_scaling(self, n_features):
        """Return what the scaling knows before the first row."""
        dense = 0 if self._sparse_ or self._scaling_ == "none" else n_features
        return {
            "mean": np.zeros(dense),
            "square": np.zeros(dense),
            "robust": first_moments(dense),
            "magnitude": np.zeros(n_features if self._sparse_ else 0),
            # Positions, and the sum of their squared lengths.
            "positions": np.zeros(2),
        }

    @property
    def _structure(self):
        return self._params_["structure"]

    def _make_loss(self):
        return self._loss_

    def _require_state(self):
        if "_state_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")

    def _n_plays(self):
        return int(self._state_["scalars"][_core.ROWS]) + len(self._tickets_)

    def _generator(self, play, idle=False):
        """Return the source of play t: always the same, however the stream is cut.

        `idle` plays, of rows of weight 0, are counted by themselves.
        """
        bits = np.random.PCG64(self._seed_)
        bits = bits.jumped() if idle else bits
        return np.random.Generator(bits.advance(play * _APART))

    def _factors(self):
        """Return what the weights of the experts are multiplied by."""
        state = self._state_
        longest = state["scalars"][_core.NORM_MAX]
        n, total = state["positions"]
        factors = np.full(len(state["rates"]), sqrt(n / total) if total > 0.0 else 0.0)
        if self._sparse_:
            factors[:] = 1.0
        factors[0] = self._step_ / longest if longest > 0.0 else 0.0
        return factors

    # ------------------------------------------------------------ one row

    def _features(self, row, state, *, still=False):
        """Return a row as the learner sees it, and its columns; dense.

        Moments follow the row in place, unless they are to stand still.
        """
        intercept = bool(self._params_["fit_intercept"])
        clip, scaled = float(self._params_["clip"]), self._scaling_ != "none"
        n, n_features = row.shape
        if not self._sparse_:
            features = np.ones((n, n_features + intercept))
            if not scaled:
                features[:, :n_features] = row
            elif still:
                count = np.maximum(state["robust"][_core.COUNT], 1.0)
                spread = np.sqrt(state["square"] / count)
                part = np.divide(
                    row - state["mean"], spread, out=np.zeros(row.shape),
                    where=spread > 0.0,
                )  # fmt: skip
                features[:, :n_features] = np.clip(part, -clip, clip)
            else:
                _core.features_dense(
                    _core.ROBUST, intercept, clip,
                    np.require(row, requirements=["C", "A"]), state["mean"],
                    state["square"], state["robust"], float(state["positions"][0]),
                    features,
                )  # fmt: skip
            return features, slice(None)
        row = sp.csr_matrix(row)
        row.eliminate_zeros()
        columns = np.unique(row.indices)
        if scaled and len(columns):
            places = np.searchsorted(columns, row.indices)
            sizes, known = self._magnitudes(
                places, row.data, state["magnitude"][columns]
            )
            if still:
                known = state["magnitude"][columns]
                sizes = known[places]
            else:
                state["magnitude"][columns] = known
            data = np.divide(row.data, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
            row = sp.csr_matrix(
                (np.clip(data, -clip, clip), row.indices, row.indptr), row.shape
            )
        features = row[:, columns].toarray()
        if intercept:
            features = np.hstack([features, np.ones((n, 1))])
            columns = np.append(columns, n_features)
        return features, columns

    @staticmethod
    def _magnitudes(places, values, known):
        """Return the magnitudes of entries, and those that they leave behind."""
        seen = np.flatnonzero(known > 0.0)
        # Known magnitudes as entries before the row's own.
        sizes = adapted_magnitudes(
            np.concatenate([seen, places]), np.concatenate([known[seen], values]),
            len(known), True,
        )[len(seen) :]  # fmt: skip
        after = known.copy()
        after[places] = sizes
        return sizes, after

    def _look(self, row, weight, *, keep=True):
        """Return scores, points and whatever playing a row takes.

        As if it were learnt next with this weight (which, with `keep`, changes the
        moments and accounts of its length); without weight by moments as they are.
        """
        state, structure = self._state_, self._structure
        scalars = state["scalars"]
        if weight is None:
            features, columns = self._features(row, state, still=True)
        else:
            if not keep:
                scalars = scalars.copy()
                names = ("mean", "square", "robust", "magnitude", "positions")
                state = {**state, **{name: state[name].copy() for name in names}}
                state["weights"] = state["weights"].copy()
            features, columns = self._features(row, state)
        norms = np.sqrt(np.einsum("ij,ij->i", features, features))
        if weight is not None:
            self._count(state, scalars, norms, weight)
        longest = scalars[_core.NORM_MAX]
        base = self._step_ / longest if longest > 0.0 else 0.0
        n, total = state["positions"]
        if self._sparse_:
            fast = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        else:
            fast = np.full(len(norms), sqrt(n / total) if total > 0.0 else 0.0)
        coef = state["coef"][:, columns]
        scores = np.einsum("ij,mjk->mik", features, coef)
        scores[0] *= base
        scores[1:] *= fast[:, None]
        theta = scores.reshape(len(scores), -1)
        if structure.n_shared:
            shared = state["shared"].copy()
            shared[0] *= base
            theta = np.concatenate([theta, shared], axis=1)
        weights = state["weights"][0]
        look = {
            "features": features, "columns": columns, "theta": theta, "fast": fast,
            "weights": weights,
        }  # fmt: skip
        if self._loss_.loss == "crf":
            look["total"], points = structure.log_partition(theta)
            look["point"] = weights @ points
        else:
            points = self._project(theta[0], look)[None]
            look["point"] = points[0]
        look["points"] = points
        return look

    def _project(self, theta, look):
        """Return the SparseMAP of scores, and store what it is a mean of."""
        structure = self._structure
        if hasattr(structure, "project"):
            return np.array(structure.project(np.array(theta)), dtype=np.float64)
        if structure.size is not None:
            # A common shift changes nothing, but would cost digits.
            theta = theta - theta.mean()
        point, look["active"], look["chances"] = project(self._best, theta)
        return point

    def _best(self, scores):
        return best_vertex(self._structure, scores)

    def _nearest(self, point):
        return np.array(self._structure.nearest(np.array(point)), dtype=np.float64)

    def _count(self, state, scalars, norms, weight):
        """Take a row's lengths and weight into the state."""
        if self._loss_.loss == "crf":
            reach = self._structure.squared_reach(norms)
        else:
            reach = float(norms @ norms)
            if self._structure.n_shared:
                reach = max(reach, 1.0)
        state["positions"] += len(norms), norms @ norms
        scalars[_core.ROWS] += 1.0
        scalars[_core.NORM_MAX] = max(scalars[_core.NORM_MAX], weight * reach)
        scalars[_core.WEIGHT_SUM] += weight
        largest = scalars[_core.WEIGHT_MAX]
        if weight > largest:
            scalars[_core.WEIGHT_MAX] = weight
            if largest > 0.0:
                # Bayes weights that the same losses would have led to.
                logarithms = np.log(state["weights"][0]) * (largest / weight)
                state["weights"][0] = np.exp(logarithms - logsumexp(logarithms))

    def _decode(self, look, rng, decoding=None):
        """Return a play, and the exact mean of its law."""
        structure, point = self._structure, look["point"]
        decoding = decoding or self._params_["decoding"]
        uniform = rng.random()
        if decoding == "argmax":
            vertex = self._nearest(point)
            return vertex, vertex
        if decoding == "sample":
            return self._draw(look, rng), point
        if self._loss_.loss == "crf":
            vertex, chance = self._most_probable(look)
            rate = min(1.0, 2.0 * (1.0 - chance))
        else:
            vertex = self._nearest(point)
            distance = float(np.linalg.norm(vertex - point))
            rate = min(1.0, 2.0 * distance / structure.separation)
        means = (1.0 - rate) * vertex + rate * point
        if uniform < rate:
            vertex = self._draw(look, rng)
        return vertex, means

    def _most_probable(self, look):
        """Return the most probable of the experts' best outputs, and its probability.

        An output with more than half of the mixture's probability is among them.
        """
        best, chance = None, -inf
        logarithms = np.log(look["weights"]) - look["total"]
        for theta in look["theta"]:
            vertex = self._best(theta)
            value = logsumexp(logarithms + look["theta"] @ vertex)
            if value > chance:
                best, chance = vertex, value
        return best, min(float(np.exp(chance)), 1.0)

    def _draw(self, look, rng):
        """Return a random output whose mean is the point."""
        structure = self._structure
        if self._loss_.loss == "crf":
            ends = np.cumsum(look["weights"])
            m = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
            m = min(m, len(ends) - 1)
            return np.asarray(structure.sample(look["theta"][m], rng), np.float64)
        if hasattr(structure, "draw"):
            return np.array(structure.draw(np.array(look["point"]), rng), np.float64)
        if "active" not in look:
            _, look["active"], look["chances"] = project(self._best, look["point"])
        ends = np.cumsum(look["chances"])
        place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        return look["active"][min(place, len(ends) - 1)]

    def _respond(self, theta, vertex, points=None, total=None):
        """Return the unscaled losses of scores, and their gradients."""
        if self._loss_.loss == "crf":
            if total is None:
                total, points = self._structure.log_partition(theta)
            return np.maximum(total - theta @ vertex, 0.0), points - vertex
        if points is None:
            points = np.array([self._project(row, {}) for row in theta])
        # |y - theta|^2 / 2 - |u - theta|^2 / 2, as a product: no cancellation.
        values = 0.5 * np.sum(
            (vertex - points) * (vertex + points - 2.0 * theta), axis=1
        )
        return np.maximum(values, 0.0), points - vertex

    def _run(self, rows, vertices, weight):
        plays = []
        for i, (row, vertex) in enumerate(zip(rows, vertices, strict=True)):
            w = 1.0 if weight is None else float(weight[i])
            if not w:
                look = self._look(row, None)
                source = self._generator(self._n_idle_, idle=True)
                plays.append(self._decode(look, source)[0])
                self._n_idle_ += 1
                continue
            plays.append(self._round(row, vertex, w))
        return plays

    def _round(self, row, vertex, weight, earlier=None):
        """Play and learn one row; return the play."""
        state, structure = self._state_, self._structure
        scalars, number = state["scalars"], self._n_plays()
        look = self._look(row, weight)
        losses, residuals = self._respond(
            look["theta"], vertex, look["points"], look.get("total")
        )
        if earlier is None:
            play, means = self._decode(look, self._generator(number))
            nearest, at_play = self._nearest(look["point"]), means
        else:
            _, means = self._decode(look, np.random.default_rng(0))
            play, nearest, at_play = earlier.drawn, earlier.nearest, earlier.means
        mixed = self._reweigh(losses, weight)
        inner = np.einsum("ij,ij->i", look["theta"], residuals)
        n = residuals.shape[1] - structure.n_shared
        blocks = residuals[:, :n].reshape(len(residuals), -1, self._n_scores_)
        # Of the loss in the weights: features times residuals.
        gradients = np.einsum("ij,mik->mjk", look["features"], blocks)
        constants = residuals[:, n:]
        if self._log_:
            v, c = structure.loss_coefficients(vertex)
            expected = weight * (v @ at_play + c)
            scalars[_core.ROUNDS] += 1.0
            scalars[_core.AT_LEARNING] += weight * (v @ means + c)
            scalars[_core.EXPECTED] += expected
            scalars[_core.EXPECTED_SQUARED] += expected**2
            scalars[_core.REALISED] += weight * (v @ play + c)
            scalars[_core.PROGRESSIVE] += weight * (v @ nearest + c)
            factor = self._scale_ * weight
            scalars[_core.SURROGATE] += factor * mixed
            state["accounts"][0] += factor * losses
            state["accounts"][1] += factor * inner
            columns = look["columns"]
            state["gradients"][:, columns] += factor * gradients
            state["shared_gradients"] += factor * constants
        self._learn(look, blocks, gradients, constants, weight)
        return play

    def _reweigh(self, losses, weight):
        """Update the Bayes weights; return the mixture's loss."""
        weights = self._state_["weights"]
        if len(losses) == 1:
            return float(losses[0])
        power = weight / self._state_["scalars"][_core.WEIGHT_MAX]
        logarithms = np.log(weights[0])
        mixed = logsumexp(logarithms - losses)
        share = self._params_["share"] * power * (1.0 - min(1.0, np.exp(mixed)))
        posterior = logarithms - power * losses
        posterior = np.exp(posterior - logsumexp(posterior))
        weights[0] = (1.0 - share) * posterior + share / len(losses)
        # Without sharing, underflow would remove an expert for good.
        np.maximum(weights[0], 1e-300, out=weights[0])
        return float(-mixed)

    def _learn(self, look, blocks, gradients, constants, weight):
        """Make the steps of all experts."""
        state, columns = self._state_, look["columns"]
        coef, shared = state["coef"], state["shared"]
        coef[0, columns] -= weight * gradients[0]
        shared[0] -= weight * constants[0]
        rates = state["rates"][1:]
        if not len(rates):
            return
        fast = look["fast"]
        steps = weight * np.einsum(
            "ij,mik->mjk", fast[:, None] * look["features"], blocks[1:]
        )
        largest = state["scalars"][_core.WEIGHT_MAX]
        damping = _DAMPING_OF_UNIT_ROWS if self._sparse_ else _DAMPING
        damping *= float(np.mean(fast**2)) * largest**2
        squares = state["squares"][1:, columns] + np.einsum("mjk,mjk->mj", steps, steps)
        state["squares"][1:, columns] = squares
        sizes = np.zeros_like(squares)
        np.divide(
            rates[:, None], np.sqrt(squares + damping), out=sizes,
            where=squares + damping > 0.0,
        )  # fmt: skip
        coef[1:, columns] -= sizes[:, :, None] * steps
        if shared.shape[1]:
            steps = weight * constants[1:]
            state["shared_squares"][1:] += np.einsum("mk,mk->m", steps, steps)
            sizes = rates / np.sqrt(state["shared_squares"][1:] + _DAMPING * largest**2)
            shared[1:] -= sizes[:, None] * steps

    # ------------------------------------------------------------ accounts

    def _looks(self, X):
        check_is_fitted(self)
        return [self._look(row, None) for row in self._check_rows(X)]

    def _close_account(self):
        """End the account: regret is defined on the first pass only."""
        names = ("NORM_MAX", "WEIGHT_SUM", "WEIGHT_MAX")
        self._closed_ = {name: float(self._scalar(name)) for name in names}
        self._closed_["late"] = 0.0
        self._log_ = False

    def _linear_accounts(self):
        """Yield losses, <gradient, weights> and the sum of gradients of each expert."""
        state = self._state_
        for m in range(len(state["rates"])):
            gradient = np.concatenate(
                [state["gradients"][m].ravel(), state["shared_gradients"][m]]
            )
            yield state["accounts"][0, m], state["accounts"][1, m], gradient

    def _check_comparator(self, coef, shared=None):
        """Return a comparator as one vector, in the order of the gradients."""
        coef = np.asarray(coef, dtype=np.float64)
        n_columns, n_scores = self._state_["coef"].shape[1:]
        n_shared = self._state_["shared"].shape[1]
        size = n_columns * n_scores + n_shared
        if coef.ndim == 1 and coef.shape == (size,) and shared is None:
            return coef
        shared = np.zeros(n_shared) if shared is None else np.asarray(shared, float)
        if coef.shape != (n_scores, n_columns) or shared.shape != (n_shared,):
            raise ValueError(
                f"coef must have shape {(n_scores, n_columns)} and shared "
                f"{(n_shared,)}; got {coef.shape} and {shared.shape}."
            )
        if not (np.isfinite(coef).all() and np.isfinite(shared).all()):
            raise ValueError("coef and shared must be finite.")
        return np.concatenate([coef.T.ravel(), shared])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags
