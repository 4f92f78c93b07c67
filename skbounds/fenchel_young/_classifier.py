"""Online multiclass classification with finite surrogate regret."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from skbounds._sklearn_compat import StrOptions
from skbounds._typing import MatrixLike, RandomState
from skbounds.fenchel_young._losses import FenchelYoungLoss
from skbounds.fenchel_young._online import FenchelYoungOnline, Learner
from skbounds.fenchel_young._targets import ClassTargets


class FenchelYoungOnlineClassifier(ClassTargets, ClassifierMixin, FenchelYoungOnline):
    r"""Online multiclass classifier whose mistakes are bounded for any stream.

    Rows are one stream, in the given order. Each row is played at random by a
    decoding of the predicted probabilities and only then learnt. Whatever the stream
    does, the expected number of mistakes exceeds the log-loss of the best linear
    predictor in hindsight by at most a constant that does not grow with the length of
    the stream (a *finite surrogate regret*).

    The default learner needs no learning rate: four softmax experts on features that
    are scaled on the fly, mixed by Bayes weights. Expert 0, gradient descent with the
    theorem's step, carries the guarantee; the others carry the performance.

    Read more in the :ref:`User Guide <fenchel_young>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    loss : {'logistic', 'sparsemax'}, default='logistic'
        The surrogate loss: softmax with log-loss, or the Euclidean projection on the
        simplex with its Fenchel-Young loss.
    learner : str, default='mixture'
        - ``'mixture'``: the practical default, for the logistic loss only;
        - ``'auto'``: the mixture for the logistic loss, its expert 0 alone for
          sparsemax;
        - ``'ogd'``: gradient descent with the constant step of the paper (Theorems 4.2
          and 5.1), on raw features;
        - ``'adaptive'``: AdaGrad-norm in a ball (Appendix E.1), on raw features;
        - ``'parameter_free'``: coin betting (Appendix E.2), on raw features.
    experts : array-like of float, default=(1.0, 4.0, 16.0)
        Step multipliers of the mixture's AdaGrad experts. Neighbours should be within
        a factor of 4.
    share : float, default=1e-3
        Rate, in [0, 1), at which the mixture's weights are shared after a loss. Lets
        it follow a stream that changes.
    feature_scaling : {'auto', 'standard', 'none'}, default='auto'
        For the mixture, expert 0 alone and ``learner='auto'``. ``'auto'``: dense
        features are standardised by running moments that outliers do not enter, and
        that begin anew when a feature has changed its offset or unit; sparse ones are
        divided by a magnitude that follows changes, and the AdaGrad experts see rows of
        unit length. ``'standard'``: as in version 0.1, by the running mean and standard
        deviation, or the magnitude of the first non-zero entry. ``'none'``: features as
        they are.
    clip : float, default=3.0
        Scaled features are clipped to [-clip, clip].
    learning_rate : 'auto' or float, default='auto'
        Step on the unscaled loss, of gradient descent or expert 0 (there in units of
        1 / C_t², C_t the largest row norm so far). ``'auto'`` is the theorem's.
    feature_norm : 'auto' or float, default='auto'
        Largest row norm, intercept included, for the learners on raw features.
        ``'auto'``: that of the first call's rows. The mixture learns it as it goes and
        ignores this.
    diameter : float, default=None
        Diameter of the ball of weights for ``learner='adaptive'``.
    initial_wealth : float, default=1.0
        Stake of ``learner='parameter_free'``.
    constants : {'sharp', 'paper'}, default='sharp'
        Constants of steps and bounds: the sharpest proved ones, or the paper's. The
        mixture always uses the sharp ones.
    decoding : {'randomized', 'argmax', 'sample'}, default='randomized'
        How rows are played. ``'randomized'``: Algorithm 1; ``'argmax'``: the most
        probable class (no bound); ``'sample'``: a draw from the predicted probabilities
        (bounded for base-2 losses, that is for the learners on raw features).
    certificate : {'auto', 'safe', 'all'}, default='auto'
        Which experts have accounts of their own for `surrogate_regret_certificate`:
        expert 0 only, or all, whose certificates are several times closer and take a
        second matrix of weights and some time. ``'auto'``: all for dense rows, expert 0
        for sparse ones.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    average : bool, default=False
        Whether predictions use the mean of all weights (Theorem 4.6, for a single
        learner and the randomised decoding) instead of the last ones.
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
        The classes.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights on raw features (ignoring the clipping); for the mixture, the experts'
        weighted mean, which is not itself the predictor. Computed on access.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts that go with `coef_`.
    expert_coefs_ : ndarray of shape (n_experts, n_classes, n_features)
        Weights of the mixture's experts; only for the mixture.
    expert_intercepts_ : ndarray of shape (n_experts, n_classes)
        Their intercepts; only for the mixture.
    expert_weights_ : ndarray of shape (n_experts,)
        Bayes weights of the experts; only for the mixture.
    n_samples_seen_ : int
        Rows that the accounts cover.
    sum_of_weights_ : float
        Sum of the weights of all rows that were learnt.
    cumulative_loss_ : float
        Mistakes of the plays.
    expected_cumulative_loss_ : float
        Their conditional expectation given all rows before: exact, without sampling.
    cumulative_surrogate_loss_ : float
        Surrogate loss of the probabilities that were played, times `loss_scale_`.
    loss_scale_ : float
        Unit of the surrogate loss: 1 (nats) for the mixture, 1 / ln 2 (bits) for the
        other learners with the logistic loss; for sparsemax what makes a positive
        surrogate gap.
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
    FenchelYoungOnlineMultilabelClassifier : Several labels per row.
    FenchelYoungOnlineOrdinalClassifier : Ordered classes.
    FenchelYoungOnlineRanker : Rankings and matchings.
    sklearn.linear_model.SGDClassifier : Online learning with a tuned learning rate.

    Notes
    -----
    With U any linear predictor on the features that the learner sees, S its log-loss,
    and the default settings,

    .. math:: \sum_t E_t[1\{\hat y_t \ne y_t\}]
        \le \sum_t S_t(U) + 0.81\, C_T^2 \|U\|_F^2 + 0.75 \ln 4 .

    The comparator acts on features whose scaling changes (ever less) along the stream.
    `predict` is deterministic and more accurate on benign data than the plays, but not
    what the bound is about. Each row costs O(n_experts n_features n_classes) time; the
    state has that size, and no row is kept.

    References
    ----------
    .. [1] S. Sakaue, H. Bao, T. Tsuchiya, T. Oki (2024). "Online Structured
       Prediction with Fenchel-Young Losses and Improved Surrogate Regret for Online
       Multiclass Classification with Logistic Loss". COLT 2024, PMLR 247.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbounds.fenchel_young import FenchelYoungOnlineClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FenchelYoungOnlineClassifier(random_state=0)
    >>> plays = clf.play(X, y, classes=range(10))
    >>> round(float((plays == y).mean()), 2)
    0.91
    >>> round(clf.expected_cumulative_loss_ / clf.n_samples_seen_, 2)
    0.08
    """

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions({"logistic", "sparsemax"})],
        **FenchelYoungOnline._parameter_constraints,
        "decoding": [StrOptions({"randomized", "argmax", "sample"})],
    }

    def __init__(
        self,
        loss: Literal["logistic", "sparsemax"] = "logistic",
        *,
        learner: Learner = "mixture",
        experts: ArrayLike = (1.0, 4.0, 16.0),
        share: float = 1e-3,
        feature_scaling: Literal["auto", "standard", "none"] = "auto",
        clip: float = 3.0,
        learning_rate: Literal["auto"] | float = "auto",
        feature_norm: Literal["auto"] | float = "auto",
        diameter: float | None = None,
        initial_wealth: float = 1.0,
        constants: Literal["sharp", "paper"] = "sharp",
        decoding: Literal["randomized", "argmax", "sample"] = "randomized",
        certificate: Literal["auto", "safe", "all"] = "auto",
        fit_intercept: bool = True,
        average: bool = False,
        new_features: Literal["raise", "grow"] = "raise",
        max_iter: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.learner = learner
        self.experts = experts
        self.share = share
        self.feature_scaling = feature_scaling
        self.clip = clip
        self.learning_rate = learning_rate
        self.feature_norm = feature_norm
        self.diameter = diameter
        self.initial_wealth = initial_wealth
        self.constants = constants
        self.decoding = decoding
        self.certificate = certificate
        self.fit_intercept = fit_intercept
        self.average = average
        self.new_features = new_features
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Predict class probabilities (the regularised prediction).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._predict_points(X)

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
        return self._decoded_means(X)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return confidence scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-probabilities for the mixture, linear scores otherwise; with two
            classes, the difference in favour of ``classes_[1]``.
        """
        X = self._check_rows(X)
        loss = self._make_loss()
        scores = np.empty((X.shape[0], loss.n_outputs))
        for block, part in self._scores(X):
            if self._learner_ == "mixture":
                part = self._log_mixture(part, loss)
            scores[block] = part
        if loss.n_outputs == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _check_that_classes_may_grow(self):
        if self._params_["loss"] != "logistic":
            raise ValueError(
                "classes='grow' needs loss='logistic', whose constants do not depend "
                f"on the number of classes; got loss={self._params_['loss']!r}."
            )

    def _make_loss(self):
        return FenchelYoungLoss("simplex", self._params_["loss"], len(self.classes_))
