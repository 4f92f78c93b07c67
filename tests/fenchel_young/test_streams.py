"""Learning from streams: weights, accounts, certificates, and cuts of the stream."""

import pickle
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import inf, isnan, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import fenchel_young as reference
from scipy import sparse

from skbounds.fenchel_young import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
)
from skbounds.fenchel_young._offline import comparator_losses, fit_comparator

BITS = 1 / log(2)


@dataclass(frozen=True)
class Problem:
    """An estimator with its loss, as the reference calls them."""

    make: type
    params: tuple
    structure: str
    loss: str
    size: int
    decodings: tuple
    mu: float = 1.0

    def estimator(self, **params):
        return self.make(**dict(self.params), **params)

    @property
    def learners(self):
        mixture = ("mixture",) if self.loss in ("logistic", "sigmoid") else ()
        return ("ogd", "adaptive", "parameter_free", "auto", *mixture)

    def mixes(self, learner):
        """Tell whether the learner is a mixture."""
        log_loss = self.loss in ("logistic", "sigmoid")
        return learner == "mixture" or (learner == "auto" and log_loss)

    def constants(self, decoding, kind):
        return reference.constants(
            self.structure, self.loss, self.size, decoding, kind, self.mu
        )

    def scale(self, decoding, kind):
        """Bits; or 1 where that leaves a gap; or twice the ratio."""
        if self.loss == "logistic":
            return BITS
        ratio = self.constants(decoding, kind)["ratio"]
        return 2 * ratio if 1 <= ratio < inf else 1.0

    def step(self, decoding, kind, length):
        """The theorem's step on the unscaled loss; without a gap, that of a = 1/2."""
        constants = self.constants(decoding, kind)
        a = 1 - constants["ratio"] / self.scale(decoding, kind)
        m = min(0.5, a) if a > 0 else 0.5
        return 2 * m / (constants["curvature"] * length**2)

    def mixture_step(self, decoding, share=1e-3):
        """The largest step of expert 0 that the gap pays for, to two digits."""
        constants = self.constants(decoding, "sharp")
        ratio = constants["ratio"] / (1 + log(1 - share))
        if not ratio < 1:
            best = "randomized" if self.loss == "logistic" else "coordinatewise"
            ratio = self.constants(best, "sharp")["ratio"] / (1 + log(1 - share))
        return np.floor(200 * (1 - ratio) / constants["curvature"]) / 100

    def gradient_limit(self, scale, length):
        widest = {
            "simplex": sqrt(2),
            "cube": sqrt(self.size),
            "chain": sqrt(self.size),
            "permutahedron": sqrt(self.size * (self.size**2 - 1) / 3),
            "birkhoff": sqrt(2 * self.size),
        }
        return scale * length * widest[self.structure]

    def targets(self, rng, X):
        """Targets that depend on X, with noise, in the user's form."""
        d = self.size + (self.structure == "chain")
        scores = X @ rng.normal(size=(X.shape[1], d)) + rng.normal(size=(len(X), d))
        if self.structure == "cube":
            return (scores > 0).astype(int)
        if self.structure in ("simplex", "chain"):
            y = scores.argmax(axis=1)
            y[:d] = np.arange(d)
            return y
        ranks = scores.argsort(axis=1).argsort(axis=1)
        return ranks + (self.structure == "permutahedron")

    def vertices(self, y):
        """Targets as rows of the polytope."""
        if self.structure == "simplex":
            return np.eye(self.size)[y]
        if self.structure == "chain":
            return (np.arange(self.size) < y[:, None]).astype(float)
        if self.structure == "birkhoff":
            return np.eye(self.size)[y].reshape(len(y), -1)
        return y.astype(float)


FOUR = ("coordinatewise", "randomized", "argmax", "sample")
THREE = ("randomized", "argmax", "sample")
PROBLEMS = {
    "logistic": Problem(
        FenchelYoungOnlineClassifier, (), "simplex", "logistic", 3, THREE
    ),
    "sparsemax": Problem(
        FenchelYoungOnlineClassifier,
        (("loss", "sparsemax"),),
        "simplex",
        "sparsemax",
        3,
        THREE,
    ),
    "multilabel": Problem(
        FenchelYoungOnlineMultilabelClassifier,
        (("loss", "sparsemap"),),
        "cube",
        "sparsemap",
        3,
        FOUR,
    ),
    "sigmoid": Problem(
        FenchelYoungOnlineMultilabelClassifier,
        (),
        "cube",
        "sigmoid",
        3,
        FOUR,
    ),
    "ordinal": Problem(
        FenchelYoungOnlineOrdinalClassifier, (), "chain", "sparsemap", 4, FOUR
    ),
    "ranking": Problem(
        FenchelYoungOnlineRanker, (), "permutahedron", "sparsemap", 4, THREE
    ),
    "matching": Problem(
        FenchelYoungOnlineRanker,
        (("structure", "birkhoff"), ("mu", 0.8)),
        "birkhoff",
        "entropic",
        3,
        THREE,
        0.8,
    ),
}
EVERY_PROBLEM = pytest.mark.parametrize("name", list(PROBLEMS))
LEARNERS = [
    (name, learner)
    for name, problem in PROBLEMS.items()
    for learner in problem.learners
]
EVERY_LEARNER = pytest.mark.parametrize(("name", "learner"), LEARNERS)
DECODED = [
    (name, learner, decoding)
    for name, learner in LEARNERS
    for decoding in PROBLEMS[name].decodings
]
DIAMETER = 3.0


def make_stream(name, n=60, seed=0, zeros=False):
    """Rows with columns of very different units, and targets."""
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[name]
    X = rng.normal(size=(n, 4)) * [1.0, 0.3, 1.5, 0.7] + [0.0, 0.2, -0.5, 0.0]
    if zeros:
        X[rng.random(X.shape) < 0.4] = 0.0
        X[:, 3] *= rng.random(n) < 0.2
    y = problem.targets(rng, X)
    return problem, X, y


def with_intercept(X):
    return np.column_stack([X, np.ones(len(X))])


def longest_row(X):
    return sqrt(np.max(np.sum(X**2, axis=1)))


def run_reference(problem, learner, decoding, kind, F, Y, unit_rows=False):
    """Run the reference on the features F as the learner sees them.

    Returns weights (one row per output, one block per expert), the history and the
    quantities that certificates are made of.
    """
    if problem.mixes(learner):
        step = problem.mixture_step(decoding)
        out = reference.mixture(
            F, Y, problem.loss, decoding, step=step, unit_rows=unit_rows
        )
        f = 1.0 if unit_rows else 1 / sqrt(out["N"])
        weights = np.vstack(
            [step / out["C2"] * out["Z"].T] + [f * W.T for W in out["W"]]
        )
        return {
            "weights": weights,
            "surrogate": out["surrogate"],
            "base": out["surrogate0"],
            "expected": out["expected"],
            "inner": np.sum(out["inner"]),
            "gradient": out["Z"].T,
            "history": None,
            "bayes": out["weights"][-1],
            "scale": 1.0,
            "accounts": out["accounts"],
        }
    scale = problem.scale(decoding, kind)
    arguments = (F, Y, problem.structure, problem.loss, decoding)
    options = {"scale": scale, "mu": problem.mu}
    length = longest_row(F)
    if learner == "ogd":
        step = problem.step(decoding, kind, length)
        out = reference.ogd(*arguments, step, **options)
    elif learner == "adaptive":
        out = reference.adaptive(*arguments, DIAMETER, **options)
    elif learner == "parameter_free":
        limit = problem.gradient_limit(scale, length)
        out = reference.parameter_free(*arguments, limit, **options)
    else:
        step = problem.step(decoding, kind, 1.0)
        out = reference.dual_averaging(*arguments, step, **options)
    residual = out["u"] - Y
    spread = 0.0
    if problem.structure == "birkhoff" and decoding == "argmax":
        # Between assignments that are equally good, any may be played.
        V = reference.vertices("birkhoff", problem.size)
        for t, (u, truth) in enumerate(zip(out["u"], Y, strict=True)):
            best = V[V @ u >= np.max(V @ u) - 1e-9]
            losses = [reference.target_loss("birkhoff", v, truth) for v in best]
            out["expected"][t] = min(losses)
            spread += max(losses) - min(losses)
    return out | {
        "spread": spread,
        "weights": out["W"][-1],
        "base": out["surrogate"],
        "inner": scale * np.sum(out["theta"] * residual),
        "gradient": scale * residual.T @ F,
        "history": out["W"],
        "scale": scale,
    }


def seen_features(problem, learner, X, scaling="auto"):
    """The rows as the learner sees them, from the reference."""
    dense = X.toarray() if sparse.issparse(X) else X
    if learner in ("ogd", "adaptive", "parameter_free") or scaling == "none":
        return with_intercept(dense)
    if sparse.issparse(X) and scaling == "standard":
        return reference.first_magnitude_stream(dense)
    if sparse.issparse(X):
        return reference.adapted_magnitude_stream(dense)
    if scaling == "auto":
        return reference.robust_stream(dense)[0]
    return reference.standardized_stream(dense)


def weights_of(estimator):
    """Weights on features as the learner sees them, one row per output."""
    return estimator._weights_of(slice(None)).T


def assert_equals_reference(estimator, expected, tol=1e-9):
    """Weights and accounts."""
    assert_allclose(weights_of(estimator), expected["weights"], rtol=tol, atol=tol)
    assert_allclose(
        estimator.cumulative_surrogate_loss_, np.sum(expected["surrogate"]), rtol=tol
    )
    lowest = np.sum(expected["expected"])
    if expected.get("spread", 0.0) > 0.0:
        excess = estimator.expected_cumulative_loss_ - lowest
        assert -tol <= excess <= expected["spread"] + tol
        assert expected["spread"] < 0.2 * lowest
    else:
        assert_allclose(estimator.expected_cumulative_loss_, lowest, rtol=tol)
    assert_allclose(estimator.loss_scale_, expected["scale"], rtol=tol)
    if "bayes" in expected:
        assert_allclose(estimator.expert_weights_, expected["bayes"], atol=tol)


# ---------------------------------------------------------------- reference


@pytest.mark.parametrize(("name", "learner", "decoding"), DECODED)
def test_learners_equal_the_reference(name, learner, decoding):
    """Accounts and weights of every learner and decoding on a dense stream."""
    # The first stream of matchings has a tie of assignments, which may fall anyhow.
    problem, X, y = make_stream(name, seed=2 if name == "matching" else 0)
    F = seen_features(problem, learner, X)
    expected = run_reference(
        problem, learner, decoding, "sharp", F, problem.vertices(y)
    )
    estimator = problem.estimator(
        learner=learner, decoding=decoding, diameter=DIAMETER, random_state=0
    ).fit(X, y)
    assert_equals_reference(estimator, expected)
    assert estimator.n_samples_seen_ == len(X)
    assert_allclose(estimator.feature_norm_, longest_row(F), rtol=1e-12)
    # Expected losses are of the right order: the plays are a fair sample.
    difference = estimator.cumulative_loss_ - estimator.expected_cumulative_loss_
    assert abs(difference) <= 5 * sqrt(len(X)) / 2


PAPER = [
    (name, learner, decoding)
    for name, learner, decoding in DECODED
    if PROBLEMS[name].constants(decoding, "paper")
    != PROBLEMS[name].constants(decoding, "sharp")
]


@pytest.mark.parametrize(("name", "learner", "decoding"), PAPER)
def test_learners_with_the_constants_of_the_paper(name, learner, decoding):
    """Other steps and scales; the mixture always takes the sharp constants."""
    problem, X, y = make_stream(name, seed=1)
    F = seen_features(problem, learner, X)
    expected = run_reference(
        problem, learner, decoding, "paper", F, problem.vertices(y)
    )
    estimator = problem.estimator(
        learner=learner, decoding=decoding, diameter=DIAMETER, constants="paper"
    ).fit(X, y)
    assert_equals_reference(estimator, expected)


SCALINGS = pytest.mark.parametrize("scaling", ["auto", "standard"])


@SCALINGS
@EVERY_LEARNER
def test_sparse_streams_equal_the_reference(name, learner, scaling):
    """CSR rows: raw, or divided by a magnitude of their column."""
    problem, X, y = make_stream(name, seed=2, zeros=True)
    X[::7] *= 30.0
    X = sparse.csr_array(X)
    F = seen_features(problem, learner, X, scaling)
    decoding = problem.decodings[0]
    expected = run_reference(
        problem, learner, decoding, "sharp", F, problem.vertices(y),
        unit_rows=scaling == "auto",
    )  # fmt: skip
    estimator = problem.estimator(
        learner=learner, diameter=DIAMETER, feature_scaling=scaling
    ).fit(X, y)
    assert_equals_reference(estimator, expected)


@EVERY_LEARNER
def test_plain_moments_equal_the_reference(name, learner):
    """The scaling of version 0.1, on dense rows with an outlier."""
    problem, X, y = make_stream(name, seed=2)
    X[40] *= 1e3
    F = seen_features(problem, learner, X, "standard")
    decoding = problem.decodings[0]
    expected = run_reference(
        problem, learner, decoding, "sharp", F, problem.vertices(y)
    )
    estimator = problem.estimator(
        learner=learner, diameter=DIAMETER, feature_scaling="standard"
    ).fit(X, y)
    assert_equals_reference(estimator, expected, tol=1e-8)


@SCALINGS
@pytest.mark.parametrize("name", ["logistic", "sigmoid", "ranking"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_awkward_columns(name, kind, scaling):
    """Constant, late, tiny, huge and empty columns, and a first row of zeros."""
    rng = np.random.default_rng(3)
    problem = PROBLEMS[name]
    X = rng.normal(size=(80, 6))
    y = problem.targets(rng, X)
    X[0] = 0.0
    X[:, 1] = 7.0
    X[:50, 2] = 0.0
    X[:, 3] *= 1e-6
    X[:, 4] = 1e6 * (X[:, 4] + 1)
    X[:, 5] = 0.0
    X = sparse.csr_array(X) if kind == "csr" else X
    F = seen_features(problem, "auto", X, scaling)
    decoding = problem.decodings[0]
    expected = run_reference(
        problem, "auto", decoding, "sharp", F, problem.vertices(y),
        unit_rows=kind == "csr" and scaling == "auto",
    )  # fmt: skip
    estimator = problem.estimator(learner="auto", feature_scaling=scaling).fit(X, y)
    # Running moments of columns far from zero lose some digits.
    assert_equals_reference(estimator, expected, tol=1e-7)


@pytest.mark.parametrize("name", ["logistic", "sigmoid", "multilabel"])
def test_no_intercept_and_no_information(name):
    """While all features are zero nothing is learnt and all scores are zero."""
    rng = np.random.default_rng(4)
    problem = PROBLEMS[name]
    X = rng.normal(size=(40, 3))
    y = problem.targets(rng, X)
    X[:5] = X[0]
    estimator = problem.estimator(learner="auto", fit_intercept=False).fit(X, y)
    F = reference.standardized_stream(X, intercept=False)
    assert not F[:5].any()
    decoding = problem.decodings[0]
    expected = run_reference(problem, "auto", decoding, "sharp", F, problem.vertices(y))
    assert_equals_reference(estimator, expected)
    short = problem.estimator(learner="auto", fit_intercept=False)
    short.partial_fit(X[:5], y[:5], **all_classes(problem))
    assert not weights_of(short).any()


@pytest.mark.parametrize("experts", [(), (3.0,), (0.5, 1.5, 6.0, 20.0)])
@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_mixtures_of_other_experts(name, experts, share):
    """Number and steps of the experts, no sharing and much sharing."""
    problem, X, y = make_stream(name, seed=5)
    F = reference.standardized_stream(X, clip=1.5)
    decoding = problem.decodings[0]
    step = problem.mixture_step(decoding, share)
    out = reference.mixture(
        F,
        problem.vertices(y),
        problem.loss,
        decoding,
        experts=experts,
        share=share,
        step=step,
    )
    estimator = problem.estimator(
        learner="mixture", experts=experts, share=share, clip=1.5
    ).fit(X, y)
    f = 1 / sqrt(out["N"])
    weights = np.vstack([step / out["C2"] * out["Z"].T] + [f * W.T for W in out["W"]])
    assert_allclose(weights_of(estimator), weights, atol=1e-9)
    assert_allclose(estimator.expert_weights_, out["weights"][-1], atol=1e-9)
    assert_allclose(
        estimator.cumulative_surrogate_loss_, out["surrogate"].sum(), rtol=1e-9
    )


@pytest.mark.parametrize("share", [1e-3, 0.1])
@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_mixture_survives_a_certain_mistake(name, share):
    """Probabilities of what is seen underflow: the weights stay a distribution."""
    rng = np.random.default_rng(6)
    problem = PROBLEMS[name]
    X = 1.0 + 0.01 * rng.normal(size=(60, 3))
    d = problem.size
    y = np.zeros(60, int) if name == "logistic" else np.zeros((60, d), int)
    y[[-20, -1]] = 1
    params = {"experts": (3e3, 1e4), "share": share}
    estimator = problem.estimator(
        learner="mixture", learning_rate=3e3, feature_scaling="none", **params
    )
    estimator.partial_fit(X, y, **all_classes(problem))
    out = reference.mixture(
        with_intercept(X),
        problem.vertices(y),
        problem.loss,
        problem.decodings[0],
        step=3e3,
        **params,
    )
    assert np.max(out["surrogate"]) > 700
    assert_allclose(
        estimator.cumulative_surrogate_loss_, out["surrogate"].sum(), rtol=1e-9
    )
    assert_allclose(estimator.expert_weights_, out["weights"][-1], atol=1e-9)
    assert_allclose(estimator.expert_weights_.sum(axis=-1), 1, atol=1e-12)


@pytest.mark.parametrize("learner", ["adaptive", "parameter_free"])
@pytest.mark.parametrize("name", ["logistic", "ranking"])
@pytest.mark.parametrize("average", [False, True])
def test_projections_shrink_the_common_factor(name, learner, average):
    """Rows that grow geometrically: old weights fade below any threshold."""
    problem, X, y = make_stream(name, n=80, seed=7)
    X = X * 1.5 ** np.arange(80)[:, None]
    F = with_intercept(X)
    expected = run_reference(
        problem, learner, problem.decodings[0], "sharp", F, problem.vertices(y)
    )
    estimator = problem.estimator(
        learner=learner, diameter=DIAMETER, average=average
    ).fit(X, y)
    if average:
        mean = expected["history"][:-1].mean(axis=0)
        assert_allclose(weights_of(estimator), mean, rtol=1e-7, atol=1e-9)
    else:
        assert_equals_reference(estimator, expected, tol=1e-7)


def test_exponential():
    """Relative accuracy, down to where it underflows.

    Adding and subtracting a huge constant is not the identity there: a compiler that
    may reorder sums would spoil it.
    """
    from skbounds._core.fenchel_young import exponential

    x = np.concatenate([-np.geomspace(1e-12, 699, 500), -np.linspace(0, 30, 100)])
    out = np.empty(len(x))
    exponential(x, out)
    assert_allclose(out, np.exp(x), rtol=1e-14)


# ---------------------------------------------------------------- worked traces

TRACE_X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
TRACE_Y = np.array([0, 1, 2])
TRACES = {
    "ogd": (
        [1.5849625007, 1.6790409290, 1.7061370411],
        [
            [0.1354493982, -0.1847568109],
            [0.0243311467, 0.0486098170],
            [-0.1597805449, 0.1361469940],
        ],
    ),
    "adaptive": (
        [1.5849625007, 2.6662802666, 2.5508656539],
        [
            [0.7014665149, -1.1400314687],
            [0.2050572528, 0.0473327161],
            [-0.9065237677, 1.0926987526],
        ],
    ),
    "parameter_free": (
        [1.5849625007, 1.5849625007, 1.4511210643],
        [
            [-0.2358724526, 0.3160455231],
            [-0.0336960647, -0.1364857110],
            [0.2695685173, -0.1795598120],
        ],
    ),
}


def trace_classifier(learner, **params):
    return FenchelYoungOnlineClassifier(
        learner=learner,
        fit_intercept=False,
        constants="paper",
        feature_norm=1.0,
        diameter=4.0,
        **params,
    )


@pytest.mark.parametrize("learner", list(TRACES))
def test_traces(learner):
    """Three rounds with known losses and weights, ten digits."""
    losses, weights = TRACES[learner]
    clf = trace_classifier(learner)
    total = 0.0
    for x, y, loss in zip(TRACE_X, TRACE_Y, losses, strict=True):
        clf.partial_fit([x], [y], classes=[0, 1, 2])
        assert_allclose(clf.cumulative_surrogate_loss_ - total, loss, atol=1e-9)
        total = clf.cumulative_surrogate_loss_
    assert_allclose(clf.coef_, weights, atol=1e-9)
    assert_array_equal(clf.intercept_, 0)


def test_trace_of_gradient_descent():
    """Expected losses, squared gradients and averaged weights of the same rounds."""
    clf = trace_classifier("ogd")
    expected, squares = [], []
    for x, y in zip(TRACE_X, TRACE_Y, strict=True):
        clf.partial_fit([x], [y], classes=[0, 1, 2])
        expected.append(clf.expected_cumulative_loss_)
        squares.append(clf._scalar("GRADIENT_SQUARED"))
    assert_allclose(
        np.diff(expected, prepend=0),
        [0.6666666667, 0.6877098283, 0.6935203988],
        atol=1e-9,
    )
    assert_allclose(
        np.diff(squares, prepend=0),
        [1.3875793207, 1.4807064526, 1.5100428835],
        atol=1e-9,
    )
    averaged = trace_classifier("ogd", average=True).fit(TRACE_X, TRACE_Y)
    assert_allclose(
        averaged.coef_,
        [
            [0.1133393148, -0.0307196214],
            [-0.0259843755, 0.0562735199],
            [-0.0873549394, -0.0255538986],
        ],
        atol=1e-9,
    )


def test_trace_of_coin_betting():
    """The wealth after three rounds."""
    clf = trace_classifier("parameter_free").fit(TRACE_X, TRACE_Y)
    assert_allclose(clf._scalar("WEALTH"), 1.0586657117, atol=1e-9)


def test_bounds_of_the_traces():
    """High probability with the step a / b, ball of diameter 4, no number for coins."""
    # On the unscaled loss the step a / b is half of that of the other theorem.
    clf = trace_classifier("ogd", learning_rate=0.5 * (1 - log(2)))
    clf.fit(TRACE_X, TRACE_Y)
    assert_allclose(
        clf.surrogate_regret_bound(1.0, delta=0.05), 17.4617809278, atol=1e-9
    )
    clf = trace_classifier("ogd").fit(TRACE_X, TRACE_Y)
    assert_allclose(clf.surrogate_regret_bound(1.0), 2.3507931971, atol=1e-9)
    assert_allclose(clf.surrogate_regret_bound(3.0), 9 * 2.3507931971, atol=1e-8)
    # This step leaves nothing of the gap: what the draws may do is added.
    margin = clf.draw_margin(0.05)
    both = clf.surrogate_regret_bound(1.0, delta=0.05)
    assert_allclose(both, 2.3507931971 + margin, atol=1e-9)
    clf = trace_classifier("adaptive").fit(TRACE_X, TRACE_Y)
    assert_allclose(clf.surrogate_regret_bound(2.0), 208.5690466093, atol=1e-9)
    # Outside the ball nothing is known.
    assert isnan(clf.surrogate_regret_bound(2.01))
    clf = trace_classifier("parameter_free").fit(TRACE_X, TRACE_Y)
    assert isnan(clf.surrogate_regret_bound(1.0))


def test_bound_of_the_default():
    """.81 C^2 |U|^2 + .75 ln 4, with the longest row that was seen."""
    problem, X, y = make_stream("logistic")
    clf = problem.estimator().fit(X, y)
    length = longest_row(reference.standardized_stream(X))
    bound = length**2 * 4 / 1.24 + 0.7474768 * log(4)
    assert_allclose(clf.surrogate_regret_bound(2.0), bound, rtol=1e-6)
    assert clf.surrogate_regret_bound(2.0, delta=0.05) > 0


@pytest.mark.parametrize("share", [0.7, 0.9])
@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_no_bound_where_sharing_costs_more_than_the_gap(name, share):
    """The factor 1 + ln(1 - share) must stay positive, and above the ratio."""
    problem, X, y = make_stream(name)
    clf = problem.estimator(learner="mixture", share=share).fit(X, y)
    assert isnan(clf.surrogate_regret_bound(1.0))
    assert not clf.bound_valid_


# ---------------------------------------------------------------- averages


def histories(problem, learner, X, y, passes):
    """Mean of the weights that each row was predicted with."""
    F = seen_features(problem, learner, np.vstack([X] * passes))
    Y = np.vstack([problem.vertices(y)] * passes)
    decoding = problem.decodings[0]
    if not problem.mixes(learner):
        return run_reference(problem, learner, decoding, "sharp", F, Y)["history"][:-1]
    step, out = problem.mixture_step(decoding), []
    zeros = np.zeros((F.shape[1], Y.shape[1]))
    for t in range(len(F)):
        before = {"Z": zeros, "W": [zeros] * 3}
        if t > 0:
            before = reference.mixture(F[:t], Y[:t], problem.loss, decoding, step=step)
        # The factors know the length of the row, the weights do not.
        squares = np.sum(F[: t + 1] ** 2, axis=1)
        base, f = step / squares.max(), 1 / sqrt(squares.mean())
        out.append(np.vstack([base * before["Z"].T] + [f * W.T for W in before["W"]]))
    return np.array(out)


@EVERY_LEARNER
@pytest.mark.parametrize("passes", [1, 2])
def test_averaged_weights_are_the_mean_of_the_history(name, learner, passes):
    """Those that the rows were played with, over all passes."""
    problem, X, y = make_stream(name, n=25, seed=8)
    if problem.structure == "chain":
        X, y = X[:20], y[:20]
    history = histories(problem, learner, X, y, passes)
    params = {"learner": learner, "diameter": DIAMETER, "max_iter": passes}
    params["random_state"] = 0
    estimator = problem.estimator(average=True, **params).fit(X, y)
    assert_allclose(weights_of(estimator), history.mean(axis=0), atol=1e-9)
    last = problem.estimator(**params).fit(X, y)
    # Averaging changes predictions only.
    for key in ("table", "scalars", "weights"):
        assert_array_equal(estimator._state_[key], last._state_[key])
    assert np.abs(weights_of(last) - weights_of(estimator)).max() > 1e-3


@pytest.mark.parametrize("learner", ["ogd", "mixture"])
def test_averaged_weights_of_sparse_streams(learner):
    """Only the features of a row are touched, yet the mean is exact."""
    problem, X, y = make_stream("logistic", n=30, seed=9, zeros=True)
    csr = sparse.csr_array(X)
    params = {"learner": learner, "average": True, "feature_scaling": "none"}
    dense = problem.estimator(**params).fit(X, y)
    thin = problem.estimator(**params).fit(csr, y)
    assert_allclose(weights_of(thin), weights_of(dense), atol=1e-12)


# ---------------------------------------------------------------- identities


@EVERY_PROBLEM
def test_gradient_descent_identity(name):
    """|W|^2 = eta^2 sum |grad|^2 - 2 eta sum <grad, W>, from the accounts."""
    problem, X, y = make_stream(name, seed=10)
    estimator = problem.estimator(learner="ogd").fit(X, y)
    eta = estimator._step_ / estimator.loss_scale_
    G, inner = estimator._scalar("GRADIENT_SQUARED"), estimator._scalar("INNER")
    norm = np.sum(weights_of(estimator) ** 2)
    assert_allclose(eta**2 * G - 2 * eta * inner, norm, rtol=1e-9)
    assert_allclose(
        np.sum(estimator.coef_**2) + np.sum(estimator.intercept_**2), norm, rtol=1e-12
    )


@EVERY_PROBLEM
@pytest.mark.parametrize("wealth", [1.0, 0.2])
def test_coin_betting_identity(name, wealth):
    """What is won with the bets is the negative sum of <grad, W>."""
    problem, X, y = make_stream(name, seed=11)
    estimator = problem.estimator(learner="parameter_free", initial_wealth=wealth)
    estimator.fit(X, y)
    limit = problem.gradient_limit(
        estimator.loss_scale_, longest_row(with_intercept(X))
    )
    inner = estimator._scalar("INNER")
    assert_allclose(
        inner, limit * (wealth - estimator._scalar("WEALTH")), rtol=1e-9, atol=1e-9
    )
    assert estimator._scalar("WEALTH") > 0


@EVERY_LEARNER
def test_weights_stay_in_the_directions_of_residuals(name, learner):
    """Residuals sum to zero over classes, items, or rows and columns; so do weights."""
    problem, X, y = make_stream(name, seed=12)
    estimator = problem.estimator(learner=learner, diameter=DIAMETER).fit(X, y)
    weights = weights_of(estimator).reshape(-1, *np.shape(problem.vertices(y)[0]), 5)
    assert np.abs(weights).max() > 0.01
    if problem.structure in ("simplex", "permutahedron"):
        assert_allclose(weights.sum(axis=1), 0, atol=1e-10)
    elif problem.structure == "birkhoff":
        matrices = weights.reshape(-1, 3, 3, 5)
        assert_allclose(matrices.sum(axis=1), 0, atol=1e-10)
        assert_allclose(matrices.sum(axis=2), 0, atol=1e-10)
    if learner == "adaptive":
        assert np.linalg.norm(weights) <= DIAMETER / 2 * (1 + 1e-12)


@EVERY_LEARNER
def test_dense_equals_sparse_without_scaling(name, learner):
    """The same stream in either format."""
    problem, X, y = make_stream(name, seed=13, zeros=True)
    params = {"learner": learner, "diameter": DIAMETER, "random_state": 0}
    params["feature_scaling"] = "none"
    dense = problem.estimator(**params)
    thin = problem.estimator(**params)
    plays = dense.play(X, y), thin.play(sparse.csr_array(X), y)
    assert_array_equal(*plays)
    assert_allclose(weights_of(thin), weights_of(dense), atol=1e-11)
    for attribute in ACCOUNTS:
        actual, expected = getattr(thin, attribute), getattr(dense, attribute)
        assert_allclose(actual, expected, rtol=1e-11)
    F = with_intercept(X)
    expected = run_reference(
        problem, learner, problem.decodings[0], "sharp", F, problem.vertices(y)
    )
    assert_equals_reference(dense, expected)


@EVERY_LEARNER
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_is_close_to_float64(name, learner, kind):
    """Weights in single precision, accounts in double."""
    problem, X, y = make_stream(name, seed=14, zeros=kind == "csr")
    X = X.astype(np.float32)
    convert = sparse.csr_array if kind == "csr" else np.asarray
    params = {"learner": learner, "diameter": DIAMETER}
    low = problem.estimator(**params).fit(convert(X), y)
    high = problem.estimator(**params).fit(convert(X.astype(float)), y)
    assert low._state_["table"].dtype == np.float32
    assert_allclose(weights_of(low), weights_of(high), rtol=1e-4, atol=1e-5)
    for attribute in ("cumulative_surrogate_loss_", "expected_cumulative_loss_"):
        assert_allclose(getattr(low, attribute), getattr(high, attribute), rtol=1e-5)
    assert_allclose(
        low.surrogate_regret_certificate(1.0),
        high.surrogate_regret_certificate(1.0),
        rtol=1e-4,
        atol=1e-4,
    )


# ---------------------------------------------------------------- cuts of the stream

ACCOUNTS = (
    "cumulative_loss_",
    "expected_cumulative_loss_",
    "cumulative_surrogate_loss_",
    "n_samples_seen_",
    "feature_norm_",
    "bound_valid_",
    "loss_scale_",
)


def all_classes(problem):
    """The argument of a first call that may not show all classes."""
    if problem.structure == "simplex":
        return {"classes": range(problem.size)}
    if problem.structure == "chain":
        return {"classes": range(problem.size + 1)}
    return {}


def assert_identical(first, second):
    """The same to the last bit: state, accounts, coefficients."""
    for key, value in first._state_.items():
        assert_array_equal(value, second._state_[key], err_msg=key, strict=True)
    for attribute in ACCOUNTS:
        assert getattr(first, attribute) == getattr(second, attribute), attribute
    assert_array_equal(first.coef_, second.coef_, strict=True)
    assert_array_equal(first.intercept_, second.intercept_, strict=True)
    if first._learner_ == "mixture":
        assert_array_equal(first.expert_weights_, second.expert_weights_)
        assert_array_equal(first.expert_coefs_, second.expert_coefs_)
    if not np.isnan(first.surrogate_regret_certificate(2.0)):
        assert first.surrogate_regret_certificate(
            2.0
        ) == second.surrogate_regret_certificate(2.0)


def rows_for_learn_one(X):
    """Rows as `learn_one` takes them."""
    if not sparse.issparse(X):
        return list(X)
    bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [(X.indices[a:b], X.data[a:b]) for a, b in bounds]


CUTS = [
    (name, learner, kind, dtype)
    for name, learner in LEARNERS
    for kind in ("dense", "csr")
    for dtype in (np.float64, np.float32)
]


@pytest.mark.parametrize(("name", "learner", "kind", "dtype"), CUTS)
def test_cuts_do_not_matter(name, learner, kind, dtype):
    """One call, many calls, and row by row agree to the last bit, plays included."""
    problem, X, y = make_stream(name, n=37, seed=15, zeros=kind == "csr")
    X = X.astype(dtype)
    X = sparse.csr_array(X) if kind == "csr" else X
    first = all_classes(problem)
    make = partial(
        problem.estimator,
        learner=learner,
        diameter=DIAMETER,
        feature_norm=8.0,
        average=True,
        random_state=3,
    )
    whole, parts, single, mixed = make(), make(), make(), make()
    plays = whole.play(X, y, **first)
    cut = [
        parts.play(X[a:b], y[a:b], **(first if a == 0 else {}))
        for a, b in ((0, 1), (1, 8), (8, 30), (30, 37))
    ]
    assert_array_equal(np.concatenate(cut), plays)
    assert_identical(parts, whole)

    played = [single.play(X[:1], y[:1], **first)[0]]
    rows = rows_for_learn_one(X)
    played += [np.copy(single.learn_one(rows[t], y[t])) for t in range(1, 37)]
    assert_array_equal(np.array(played), plays)
    assert_identical(single, whole)

    mixed.partial_fit(X[:5], y[:5], **first)
    for t in range(5, 12):
        mixed.learn_one(rows[t], y[t])
    mixed.partial_fit(X[12:20], y[12:20])
    for t in range(20, 37):
        assert_array_equal(mixed.learn_one(rows[t], y[t]), plays[t])
    assert_identical(mixed, whole)
    fitted = make().fit(X, y)
    assert_identical(fitted, whole)


@EVERY_PROBLEM
def test_plays_of_single_calls_are_kept(name):
    """A play that was returned does not change with the next row."""
    problem, X, y = make_stream(name, seed=27)
    estimator = problem.estimator(learner="auto", random_state=0).fit(X, y)
    plays, copies = [], []
    for t in range(20):
        plays.append(estimator.learn_one(X[t], y[t]))
        copies.append(np.copy(plays[-1]))
    assert_array_equal(np.array(plays), np.array(copies))


def test_long_streams_by_row_and_in_blocks():
    """Beyond the uniform numbers that are drawn ahead, in all ways of learning."""
    problem, X, y = make_stream("sigmoid", n=1100, seed=16)
    whole = problem.estimator(random_state=0)
    plays = whole.play(X, y)
    single = problem.estimator(random_state=0)
    played = [single.play(X[:1], y[:1])[0]]
    played += [np.copy(single.learn_one(X[t], y[t])) for t in range(1, len(X))]
    assert_array_equal(np.array(played), plays)
    assert_identical(single, whole)


def test_blocks_of_uniform_numbers_do_not_matter(monkeypatch):
    """A bound on memory cuts long calls, with the same plays."""
    from skbounds.fenchel_young import _online

    problem, X, y = make_stream("ranking", n=600, seed=17)
    plays = problem.estimator(random_state=0).play(X, y)
    monkeypatch.setattr(_online, "_UNIFORMS", 1)
    assert_array_equal(problem.estimator(random_state=0).play(X, y), plays)


@EVERY_LEARNER
def test_learning_does_not_depend_on_the_draws(name, learner):
    """Another seed: other plays, the same weights; the same seed: the same plays."""
    problem, X, y = make_stream(name, seed=18)
    params = {"learner": learner, "diameter": DIAMETER}
    runs = [problem.estimator(random_state=s, **params) for s in (0, 1, 0)]
    plays = [run.play(X, y) for run in runs]
    assert_array_equal(plays[0], plays[2])
    assert not np.array_equal(plays[0], plays[1])
    assert_identical(runs[0], runs[2])
    for key in ("table", "weights", "average"):
        assert_array_equal(runs[0]._state_[key], runs[1]._state_[key])
    assert runs[0].expected_cumulative_loss_ == runs[1].expected_cumulative_loss_
    other = problem.estimator(random_state=0, decoding="argmax", **params)
    assert not np.array_equal(other.play(X, y), plays[0])


@EVERY_LEARNER
def test_plays_and_realised_losses_agree(name, learner):
    """The account of realised losses is that of the plays that are returned."""
    problem, X, y = make_stream(name, seed=19)
    params = {"learner": learner, "diameter": DIAMETER, "random_state": 0}
    estimator = problem.estimator(**params)
    plays = estimator.play(X, y)
    total = sum(
        reference.target_loss(problem.structure, play, truth)
        for play, truth in zip(
            problem.vertices(plays), problem.vertices(y), strict=True
        )
    )
    assert_allclose(estimator.cumulative_loss_, total, rtol=1e-12)


@EVERY_LEARNER
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("copy", [deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_streams_continue_after_pickling(name, learner, kind, copy):
    """A copy in the middle of a stream goes on to the last bit."""
    problem, X, y = make_stream(name, n=40, seed=20, zeros=kind == "csr")
    X = sparse.csr_array(X) if kind == "csr" else X
    estimator = problem.estimator(
        learner=learner, diameter=DIAMETER, feature_norm=8.0, random_state=0
    )
    estimator.partial_fit(X[:15], y[:15], **all_classes(problem))
    rows = rows_for_learn_one(X)
    estimator.learn_one(rows[15], y[15])
    before = weights_of(estimator).copy()
    clone = copy(estimator)
    assert_identical(clone, estimator)
    plays = [e.play(X[16:30], y[16:30]) for e in (estimator, clone)]
    assert_array_equal(*plays)
    for t in range(30, 40):
        ones = [e.learn_one(rows[t], y[t]) for e in (estimator, clone)]
        assert_array_equal(*ones)
    assert_identical(clone, estimator)
    assert np.abs(weights_of(clone) - before).max() > 0
    # The copy shares no memory with the original.
    kept = weights_of(estimator).copy()
    clone.partial_fit(X, y)
    assert_array_equal(weights_of(estimator), kept)


# ---------------------------------------------------------------- certificates


def certificate(expected, norm, every=False, U=None):
    """The linear certificate, from the definition: the least of all with accounts."""
    accounts = [(np.sum(expected["base"]), expected["inner"], expected["gradient"].T)]
    if "accounts" in expected:
        accounts = expected["accounts"][: None if every else 1]
    product = lambda G: norm * np.linalg.norm(G) if U is None else -np.sum(U.T * G)
    return np.sum(expected["expected"]) + min(
        inner + product(gradient) - loss for loss, inner, gradient in accounts
    )


@EVERY_LEARNER
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_certificate_is_its_definition(name, learner, kind):
    """Or the theorem's bound, where that is smaller; by norm, and of one comparator."""
    problem, X, y = make_stream(name, seed=21, zeros=kind == "csr")
    X = sparse.csr_array(X) if kind == "csr" else X
    F = seen_features(problem, learner, X)
    decoding = problem.decodings[0]
    expected = run_reference(
        problem, learner, decoding, "sharp", F, problem.vertices(y),
        unit_rows=kind == "csr",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for wanted in ("safe", "all") if problem.mixes(learner) else ("safe",):
        options = {"certificate": wanted} if problem.mixes(learner) else {}
        estimator = problem.estimator(learner=learner, diameter=DIAMETER, **options)
        estimator.fit(X, y)
        for norm in (0.0, 0.5, 1.5, 20.0):
            bound = estimator.surrogate_regret_bound(norm)
            least = lambda value, bound=bound: (
                value if isnan(bound) else min(value, bound)
            )
            by_norm = estimator.surrogate_regret_certificate(norm)
            value = certificate(expected, norm, wanted == "all")
            assert_allclose(by_norm, least(value), rtol=1e-9, atol=1e-8)
            U = rng.normal(size=(estimator._make_loss().n_outputs, F.shape[1]))
            U *= norm / np.linalg.norm(U)
            own = estimator.surrogate_regret_certificate(coef=U)
            value = certificate(expected, norm, wanted == "all", U)
            assert_allclose(own, least(value), rtol=1e-9, atol=1e-8)
            assert own <= by_norm + 1e-9


@EVERY_LEARNER
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_regret_is_below_the_certificate(name, learner, kind):
    """For random comparators, the worst direction, and the best in hindsight."""
    problem, X, y = make_stream(name, seed=22, zeros=kind == "csr")
    X = sparse.csr_array(X) if kind == "csr" else X
    estimator = problem.estimator(learner=learner, diameter=DIAMETER).fit(X, y)
    F = seen_features(problem, learner, X)
    seen = estimator._seen_features(X)
    assert_allclose(seen.toarray() if sparse.issparse(seen) else seen, F, atol=1e-12)
    loss = estimator._make_loss()
    targets = estimator._encode(y, None, False, False)
    rng = np.random.default_rng(0)
    U0 = weights_of(estimator)[: loss.n_outputs]
    best = fit_comparator(loss, seen, targets, alpha=0.3)
    directions = [rng.normal(size=U0.shape), U0, best]
    regrets = []
    for U in directions:
        for norm in (0.3, 1.0, np.linalg.norm(best), 10.0):
            comparator = U * (norm / np.linalg.norm(U))
            losses = comparator_losses(loss, seen, targets, comparator)
            regret = estimator.expected_cumulative_loss_ - (
                estimator.loss_scale_ * losses.sum()
            )
            regrets.append(regret)
            assert regret <= estimator.surrogate_regret_certificate(norm) + 1e-9
            bound = estimator.surrogate_regret_bound(norm)
            assert isnan(bound) or regret <= bound
    assert len(set(regrets)) == len(regrets)


@EVERY_PROBLEM
def test_comparators_in_hindsight(name):
    """Losses equal the reference's; the fit is stationary and better than zero."""
    problem, X, y = make_stream(name, n=30, seed=23)
    estimator = problem.estimator(learner="ogd").fit(X, y)
    loss, F, Y = estimator._make_loss(), with_intercept(X), problem.vertices(y)
    targets = estimator._encode(y, None, False, False)
    U = 0.5 * np.random.default_rng(1).normal(size=(loss.n_outputs, F.shape[1]))
    expected = [
        reference.surrogate(problem.structure, problem.loss, U @ x, v, problem.mu)
        for x, v in zip(F, Y, strict=True)
    ]
    assert_allclose(comparator_losses(loss, F, targets, U), expected, atol=1e-9)
    best = fit_comparator(loss, F, targets, alpha=0.5)
    residual = loss.respond(F @ best.T, targets)[1]
    assert_allclose(residual.T @ F + 0.5 * best, 0, atol=0.02)
    at_zero = comparator_losses(loss, F, targets, 0 * U).sum()
    assert comparator_losses(loss, F, targets, best).sum() < at_zero


# ---------------------------------------------------------------- passes


@EVERY_LEARNER
def test_second_pass_learns_but_is_not_accounted(name, learner):
    """Weights are those of the doubled stream, accounts those of the first pass."""
    problem, X, y = make_stream(name, n=30, seed=24)
    params = {"learner": learner, "diameter": DIAMETER, "random_state": 0}
    once = problem.estimator(**params).fit(X, y)
    twice = problem.estimator(max_iter=2, **params).fit(X, y)
    F = seen_features(problem, learner, np.vstack([X, X]))
    Y = np.vstack([problem.vertices(y)] * 2)
    decoding = problem.decodings[0]
    expected = run_reference(problem, learner, decoding, "sharp", F, Y)
    assert_allclose(weights_of(twice), expected["weights"], atol=1e-9)
    for attribute in (*ACCOUNTS[:4], "loss_scale_"):
        assert getattr(twice, attribute) == getattr(once, attribute), attribute
    assert twice.n_iter_ == 2 and once.n_iter_ == 1
    for norm in (0.5, 3.0):
        first = once.surrogate_regret_certificate(norm)
        bound = twice.surrogate_regret_bound(norm)
        second = twice.surrogate_regret_certificate(norm)
        # The bound knows the longest row of all passes.
        assert second == first or (not isnan(bound) and second <= bound)
    # Further rows are learnt, outside the account.
    before = weights_of(twice).copy()
    twice.partial_fit(X[:3], y[:3])
    assert twice.n_samples_seen_ == 30
    assert twice.cumulative_loss_ == once.cumulative_loss_
    assert np.abs(weights_of(twice) - before).max() > 0


def test_rows_beyond_the_norm_end_the_bound():
    """One warning; the certificate goes on."""
    problem, X, y = make_stream("logistic", seed=25)
    clf = problem.estimator(learner="ogd")
    clf.partial_fit(X[:20], y[:20], classes=range(3))
    assert clf.bound_valid_
    long = 10 * X[20:22]
    with pytest.warns(UserWarning, match="longer than feature_norm"):
        clf.partial_fit(long, y[20:22])
    clf.partial_fit(long, y[20:22])
    assert not clf.bound_valid_ and isnan(clf.surrogate_regret_bound(1.0))
    assert isnan(clf.surrogate_regret_bound(1.0, delta=0.1))
    F = with_intercept(np.vstack([X[:20], long, long]))
    Y = problem.vertices(np.concatenate([y[:20], y[20:22], y[20:22]]))
    step = problem.step("randomized", "sharp", longest_row(F[:20]))
    out = reference.ogd(F, Y, "simplex", "logistic", "randomized", step, BITS)
    residual = out["u"] - Y
    expected = {
        "inner": BITS * np.sum(out["theta"] * residual),
        "gradient": BITS * residual.T @ F,
        "base": out["surrogate"],
        "expected": out["expected"],
    }
    assert_allclose(
        clf.surrogate_regret_certificate(2.0), certificate(expected, 2.0), rtol=1e-9
    )


def test_long_rows_of_single_calls_warn_too():
    """Also on the light path, once."""
    problem, X, y = make_stream("ordinal", seed=26)
    clf = problem.estimator(learner="ogd").fit(X, y)
    with pytest.warns(UserWarning, match="longer than feature_norm"):
        clf.learn_one(100 * X[0], y[0])
    clf.learn_one(100 * X[0], y[0])
    assert not clf.bound_valid_
