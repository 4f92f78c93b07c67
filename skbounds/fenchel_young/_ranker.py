"""Online ranking and matching with finite surrogate regret."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbounds._base import unchanged_on_error
from skbounds._labels import refuse_missing
from skbounds._sklearn_compat import Interval, StrOptions, _fit_context
from skbounds._typing import MatrixLike, RandomState
from skbounds._validation import check_array
from skbounds.fenchel_young._losses import FenchelYoungLoss
from skbounds.fenchel_young._online import FenchelYoungOnline, Learner


class FenchelYoungOnlineRanker(FenchelYoungOnline):
    """Online ranker, or matcher, whose loss is bounded for any stream.

    Each row is one ranking problem over the same items. It is played before it is
    learnt; the expected loss of the plays exceeds the surrogate loss of the best
    linear predictor in hindsight by at most a constant, however long the stream.

    Read more in the :ref:`User Guide <fenchel_young>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    structure : {'permutahedron', 'birkhoff'}, default='permutahedron'
        - ``'permutahedron'``: one score per item; the loss is Spearman's squared rank
          distance, scaled to [0, 1]. For rankings;
        - ``'birkhoff'``: one score per item and position; the loss is the share of
          items in a wrong position. For matchings of items to positions.
    mu : float, default=1.0
        Inverse strength of the entropic regularisation of ``structure='birkhoff'``.
        Smaller values leave a larger surrogate gap; from 2 on the loss is rescaled.
    learner : str, default='auto'
        - ``'auto'``: dual-averaged gradient descent on features that are scaled on the
          fly; needs no norm in advance;
        - ``'ogd'``: gradient descent with the constant step of the paper (Theorem
          4.2), on raw features;
        - ``'adaptive'``: AdaGrad-norm in a ball (Appendix E.1), on raw features;
        - ``'parameter_free'``: coin betting (Appendix E.2), on raw features.
    feature_scaling : {'auto', 'standard', 'none'}, default='auto'
        For ``learner='auto'``. ``'auto'``: dense features are standardised by running
        moments that outliers do not enter, and that begin anew when a feature has
        changed its offset or unit; sparse ones are divided by a magnitude that follows
        changes. ``'standard'``: as in version 0.1, by the running mean and standard
        deviation, or the magnitude of the first non-zero entry. ``'none'``: features as
        they are.
    clip : float, default=3.0
        Scaled features are clipped to [-clip, clip].
    learning_rate : 'auto' or float, default='auto'
        Step on the unscaled loss; for ``learner='auto'`` in units of 1 / C_t², C_t the
        largest row norm so far. ``'auto'`` is the theorem's.
    feature_norm : 'auto' or float, default='auto'
        Largest row norm, intercept included, for the learners on raw features.
        ``'auto'``: that of the first call's rows.
    diameter : float, default=None
        Diameter of the ball of weights for ``learner='adaptive'``.
    initial_wealth : float, default=1.0
        Stake of ``learner='parameter_free'``.
    constants : {'sharp', 'paper'}, default='sharp'
        Constants of steps and bounds: the sharpest proved ones, or the paper's.
    decoding : {'randomized', 'argmax', 'sample'}, default='randomized'
        How rows are played. ``'randomized'``: Algorithm 1; ``'argmax'``: the nearest
        ranking (no bound); ``'sample'``: a random ranking whose mean is the regularised
        prediction (bounded for ``structure='birkhoff'`` only).
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    average : bool, default=False
        Whether predictions use the mean of all weights (Theorem 4.6, for a single
        learner) instead of the last ones.
    new_features : {'raise', 'grow'}, default='raise'
        What happens to sparse rows with more columns than all before: an error, or new
        features, whose weights begin at zero. Rows that are dicts may always have new
        features.
    max_iter : int, default=1
        Passes of `fit` over the rows. Accounts and bounds cover the first.
    random_state : int, RandomState instance or None, default=None
        Source of the plays. Learning never depends on it.
    verbose : int, default=0
        Whether `fit` prints a line per pass.

    Attributes
    ----------
    n_items_ : int
        Number of items.
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights on raw features (ignoring the clipping): one row per item, or per item
        and position (items first).
    intercept_ : ndarray of shape (n_outputs,)
        Their intercepts.
    n_samples_seen_ : int
        Rows that the accounts cover.
    sum_of_weights_ : float
        Sum of the weights of all rows that were learnt.
    cumulative_loss_ : float
        Losses of the plays, summed.
    expected_cumulative_loss_ : float
        Their conditional expectation given all rows before: exact, without sampling.
    cumulative_surrogate_loss_ : float
        Surrogate loss of the predictions that were played, times `loss_scale_`.
    loss_scale_ : float
        1, or what makes a positive surrogate gap (fewer than 4 items, mu of 2 or more).
    feature_norm_ : float
        Row norm, times the root of the row's weight, that bounds are stated for.
    bound_valid_ : bool
        Whether the conditions of the regret bound hold for the rows so far: no row
        longer than `feature_norm`, a step that the gap pays for, a decoding with a gap.
    progressive_errors_ : float
        Target loss of `predict` on each row before it was learnt, summed.
    n_feature_resets_ : ndarray of int of shape (n_features,)
        How often the scaling of a feature began anew (dense rows,
        ``feature_scaling='auto'``).
    n_open_tickets_ : int
        Plays of `play_one` that were not learnt yet.
    vocabulary_ : dict
        Columns of features by name; only where rows are dicts.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where all of them are strings.

    See Also
    --------
    FenchelYoungOnlineClassifier : One class per row.

    Notes
    -----
    Predictions have the form of the targets. For the permutahedron each target row is
    a permutation of 1, ..., d, where d is on top. For birkhoff it is the position of
    each item, counted from 0 or from 1; predictions count as the first call did.

    Decoding a row takes O(d log d) time plus O(d²) for a draw (permutahedron), or
    O(d²) per scaling iteration plus O(d³) (birkhoff).

    References
    ----------
    .. [1] S. Sakaue, H. Bao, T. Tsuchiya, T. Oki (2024). "Online Structured
       Prediction with Fenchel-Young Losses and Improved Surrogate Regret for Online
       Multiclass Classification with Logistic Loss". COLT 2024, PMLR 247. Section 2.3
       and Appendix C.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.fenchel_young import FenchelYoungOnlineRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> scores = X @ rng.normal(size=(4, 5))
    >>> Y = scores.argsort(axis=1).argsort(axis=1) + 1
    >>> ranker = FenchelYoungOnlineRanker(random_state=0).fit(X, Y)
    >>> round(ranker.score(X, Y), 1)
    1.0
    """

    _has_classes = False
    _parameter_constraints: ClassVar[dict] = {
        "structure": [StrOptions({"permutahedron", "birkhoff"})],
        "mu": [Interval(Real, 0, None, closed="neither")],
        **{
            name: constraint
            for name, constraint in FenchelYoungOnline._parameter_constraints.items()
            if name not in ("experts", "share", "certificate")
        },
        "decoding": [StrOptions({"randomized", "argmax", "sample"})],
    }

    def __init__(
        self,
        structure: Literal["permutahedron", "birkhoff"] = "permutahedron",
        *,
        mu: float = 1.0,
        learner: Learner = "auto",
        feature_scaling: Literal["auto", "standard", "none"] = "auto",
        clip: float = 3.0,
        learning_rate: Literal["auto"] | float = "auto",
        feature_norm: Literal["auto"] | float = "auto",
        diameter: float | None = None,
        initial_wealth: float = 1.0,
        constants: Literal["sharp", "paper"] = "sharp",
        decoding: Literal["randomized", "argmax", "sample"] = "randomized",
        fit_intercept: bool = True,
        average: bool = False,
        new_features: Literal["raise", "grow"] = "raise",
        max_iter: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.mu = mu
        self.learner = learner
        self.feature_scaling = feature_scaling
        self.clip = clip
        self.learning_rate = learning_rate
        self.feature_norm = feature_norm
        self.diameter = diameter
        self.initial_wealth = initial_wealth
        self.constants = constants
        self.decoding = decoding
        self.fit_intercept = fit_intercept
        self.average = average
        self.new_features = new_features
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def partial_fit(  # type: ignore[override]  # no classes
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on with the stream: play each row, then learn it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples, n_items)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows: a row of weight 2 has a gradient, and losses in all
            accounts, of twice the size. Rows of weight 0 are left out.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._go_on(X, y, None, sample_weight, keep=False)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_error
    def play(  # type: ignore[override]  # no classes
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Go on with the stream and return what was played on it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples, n_items)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of the rows: a row of weight 2 has a gradient, and losses in all
            accounts, of twice the size. Rows of weight 0 are left out: they are
            played, but not learnt.

        Returns
        -------
        plays : ndarray of shape (n_samples, n_items)
            The plays, in the form of the targets.
        """
        plays = self._go_on(X, y, None, sample_weight, keep=True)
        return self._decode_plays(plays)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the regularised prediction: the mean of a random ranking.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        means : ndarray of shape (n_samples, n_items) or (n_samples, n_items, n_items)
            Expected values of the items (permutahedron), or doubly stochastic
            matrices, probabilities of item (row) and position (column) (birkhoff).
        """
        return self._shape_of(self._predict_points(X))

    def decode_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the exact mean of the randomised decoding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        means : ndarray of shape (n_samples, n_items) or (n_samples, n_items, n_items)
            Mean of what `predict_randomized` draws, as in `predict_proba`.
        """
        return self._shape_of(self._decoded_means(X))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the linear scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_items) or (n_samples, n_items, n_items)
            Scores of the items, or of items (rows) and positions (columns).
        """
        X = self._check_rows(X)
        scores = np.empty((X.shape[0], self._make_loss().n_outputs))
        for block, part in self._scores(X):
            scores[block] = part
        return self._shape_of(scores)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return one minus the mean target loss of `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples, n_items)
            True rankings.
        sample_weight : array-like of shape (n_samples,), default=None
            Relative importance of the rows.

        Returns
        -------
        score : float
            In [0, 1]. For the permutahedron, (1 + mean Spearman correlation) / 2.
        """
        check_is_fitted(self)
        check_consistent_length(X, y, sample_weight)
        truth = self._encode(y, None, False, False)
        predicted = self._make_loss().nearest(self._predict_points(X))
        if self._params_["structure"] == "birkhoff":
            losses = np.mean(truth != predicted, axis=1)
        else:
            d = truth.shape[1]
            losses = 3.0 * np.sum((truth - predicted) ** 2, axis=1) / (d * (d * d - 1))
        return float(np.average(1.0 - losses, weights=sample_weight))  # type: ignore[arg-type]

    def _shape_of(self, points):
        if self._params_["structure"] == "permutahedron":
            return points
        return points.reshape(len(points), self.n_items_, self.n_items_)

    def _loss_name(self):
        permutahedron = self._params_["structure"] == "permutahedron"
        return "sparsemap" if permutahedron else "entropic"

    def _make_loss(self):
        return FenchelYoungLoss(
            self._params_["structure"],
            self._loss_name(),
            self.n_items_,
            float(self._params_["mu"]),
        )

    def _encode(self, y, classes, first, complete):
        Y = check_array(y, dtype=None, input_name="y", estimator=self)
        refuse_missing(Y)
        if Y.shape[1] < 2:
            raise ValueError(f"y must rank at least 2 items; got {Y.shape[1]}.")
        if not first and Y.shape[1] != self.n_items_:
            raise ValueError(
                f"y ranks {Y.shape[1]} items, but the stream began with "
                f"{self.n_items_}."
            )
        smallest = 1
        if self._params_["structure"] == "birkhoff":
            # All rows must begin to count at the same number.
            smallest = int(Y.min() == 1) if Y.dtype.kind in "iuf" else 0
        expected = np.arange(smallest, smallest + Y.shape[1])
        if Y.dtype.kind not in "iuf" or not np.all(np.sort(Y, axis=1) == expected):
            raise ValueError(
                f"Each row of y must be a permutation of {smallest}..{expected[-1]}"
                + (" or of 1..d" if smallest == 0 else "")
                + ", without ties or gaps."
            )
        if first:
            self.n_items_ = Y.shape[1]
            self._smallest_ = smallest
        shift = smallest if self._params_["structure"] == "birkhoff" else 0
        return np.ascontiguousarray(Y, dtype=np.int64) - shift

    def _encode_one(self, y, target):
        if np.ndim(y) != 1:
            raise ValueError(f"y must be a vector of {len(target)} ranks; got {y!r}.")
        target[:] = self._encode([y], None, False, False)[0]

    def _decode_plays(self, plays):
        if self._params_["structure"] == "birkhoff":
            return plays + self._smallest_
        return plays

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags
