"""Online ordinal regression with finite surrogate regret."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbounds._base import warn_user
from skbounds._labels import declared_order
from skbounds._sklearn_compat import StrOptions
from skbounds._typing import MatrixLike, RandomState
from skbounds.fenchel_young._losses import FenchelYoungLoss
from skbounds.fenchel_young._online import FenchelYoungOnline, Learner
from skbounds.fenchel_young._targets import ClassTargets


class FenchelYoungOnlineOrdinalClassifier(
    ClassTargets, ClassifierMixin, FenchelYoungOnline
):
    """Online classifier for ordered classes with bounded absolute error.

    The class number k of K is coded by K - 1 answers to "is it above level i?", the
    first k of them yes. Scores are made monotone by isotonic regression. Each row is
    played before it is learnt; the expected absolute error of the plays, in units of
    K - 1 levels, exceeds the surrogate loss of the best linear predictor by at most a
    constant, however long the stream.

    Read more in the :ref:`User Guide <fenchel_young>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    loss : {'sparsemap'}, default='sparsemap'
        The surrogate loss: Euclidean projection on the polytope of ordered answers.
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
        Constants of steps and bounds; the same for this loss.
    decoding : str, default='coordinatewise'
        How rows are played. ``'coordinatewise'``: Algorithm 1 for each answer, with one
        random number for all of them; ``'randomized'``: Algorithm 1; ``'argmax'``: the
        median level (no bound); ``'sample'``: a draw from the level probabilities (no
        bound).
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    average : bool, default=False
        Whether predictions use the mean of all weights (Theorem 4.6) instead of the
        last ones.
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
    classes_ : ndarray of shape (n_classes,)
        The classes in ascending order: as given by `classes`, by y if it is an ordered
        categorical of pandas or an Enum of polars, or sorted; texts that are sorted,
        which is by the alphabet, are warned of.
    coef_ : ndarray of shape (n_classes - 1, n_features)
        Weights of the answers on raw features (ignoring the clipping).
    intercept_ : ndarray of shape (n_classes - 1,)
        Their intercepts.
    n_samples_seen_ : int
        Rows that the accounts cover.
    sum_of_weights_ : float
        Sum of the weights of all rows that were learnt.
    cumulative_loss_ : float
        Absolute errors of the plays, in units of n_classes - 1 levels, summed.
    expected_cumulative_loss_ : float
        Their conditional expectation given all rows before: exact, without sampling.
    cumulative_surrogate_loss_ : float
        Surrogate loss of the predictions that were played, times `loss_scale_`.
    loss_scale_ : float
        1, or what makes a positive surrogate gap where there are few classes.
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
    FenchelYoungOnlineClassifier : Classes without order.

    Notes
    -----
    `predict` is the median of the level probabilities, not their mode: the best
    decision for the absolute error. `score` is the negative mean absolute error in
    levels.

    References
    ----------
    .. [1] S. Sakaue, H. Bao, T. Tsuchiya, T. Oki (2024). "Online Structured
       Prediction with Fenchel-Young Losses and Improved Surrogate Regret for Online
       Multiclass Classification with Logistic Loss". COLT 2024, PMLR 247. Appendix C.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from skbounds.fenchel_young import FenchelYoungOnlineOrdinalClassifier
    >>> X, target = load_diabetes(return_X_y=True)
    >>> y = np.digitize(target, np.quantile(target, [0.2, 0.4, 0.6, 0.8]))
    >>> clf = FenchelYoungOnlineOrdinalClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[:5]).tolist()
    [3, 0, 3, 2, 1]
    >>> bool(clf.bound_valid_)
    True
    """

    _sort_classes = False

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions({"sparsemap"})],
        **{
            name: constraint
            for name, constraint in FenchelYoungOnline._parameter_constraints.items()
            if name not in ("experts", "share", "certificate")
        },
        "decoding": [StrOptions({"coordinatewise", "randomized", "argmax", "sample"})],
    }

    def __init__(
        self,
        loss: Literal["sparsemap"] = "sparsemap",
        *,
        learner: Learner = "auto",
        feature_scaling: Literal["auto", "standard", "none"] = "auto",
        clip: float = 3.0,
        learning_rate: Literal["auto"] | float = "auto",
        feature_norm: Literal["auto"] | float = "auto",
        diameter: float | None = None,
        initial_wealth: float = 1.0,
        constants: Literal["sharp", "paper"] = "sharp",
        decoding: Literal[
            "coordinatewise", "randomized", "argmax", "sample"
        ] = "coordinatewise",
        fit_intercept: bool = True,
        average: bool = False,
        new_features: Literal["raise", "grow"] = "raise",
        max_iter: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
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

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict level probabilities (the regularised prediction).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._levels(self._predict_points(X))

    def decode_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the exact law of the randomised decoding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        law : ndarray of shape (n_samples, n_classes)
            What `predict_randomized` draws from.
        """
        return self._levels(self._decoded_means(X))

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the negative mean absolute error of `predict`, in levels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Relative importance of the rows.

        Returns
        -------
        score : float
            At most 0; greater is better.
        """
        check_is_fitted(self)
        check_consistent_length(X, y, sample_weight)
        truth = self._encode(y, None, False, False)[:, 0]
        predicted = self._encode(self.predict(X), None, False, False)[:, 0]
        errors = np.abs(truth - predicted)
        return -float(np.average(errors, weights=sample_weight))  # type: ignore[arg-type]

    def _encode(self, y, classes, first, complete):
        if first and classes is None:
            categories, ordered = declared_order(y)
            if ordered:
                classes = categories
        codes = super()._encode(y, classes, first, complete)
        if first and classes is None:
            self._warn_of_alphabet()
        return codes

    def _warn_of_alphabet(self):
        """Tell in which order texts were taken, which nobody has declared."""
        levels = self.classes_.tolist()
        if len(levels) > 2 and all(isinstance(level, str) for level in levels):
            warn_user(
                f"The levels of y are texts without a declared order and were taken in "
                f"alphabetical order: {' < '.join(levels)}. If that is not what they "
                "mean, pass y as an ordered categorical (pandas) or Enum (polars), or "
                "classes= in their order to partial_fit or play."
            )

    def _make_loss(self):
        size = max(1, len(self.classes_) - 1)
        return FenchelYoungLoss("chain", self._params_["loss"], size)

    def _levels(self, u):
        """Return level probabilities from P(level > i), i = 0, ..., D - 1."""
        edges = np.ones((len(u), u.shape[1] + 2))
        edges[:, 1:-1] = u
        edges[:, -1] = 0.0
        levels = np.maximum(edges[:, :-1] - edges[:, 1:], 0.0)
        return levels[:, : len(self.classes_)]
