"""Losses, predictions and decodings of all structures on their own."""

from math import exp, inf, isnan, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from reference import fenchel_young as reference
from scipy.optimize import minimize
from scipy.stats import chi2

from skbounds.fenchel_young import _bounds
from skbounds.fenchel_young._losses import DECODINGS, FenchelYoungLoss

# Structure and loss with the decodings that they have.
LOSSES = {
    ("simplex", "logistic"): ("randomized", "argmax", "sample"),
    ("simplex", "sparsemax"): ("randomized", "argmax", "sample"),
    ("cube", "sparsemap"): DECODINGS,
    ("cube", "sigmoid"): DECODINGS,
    ("chain", "sparsemap"): DECODINGS,
    ("permutahedron", "sparsemap"): ("randomized", "argmax", "sample"),
    ("birkhoff", "entropic"): ("randomized", "argmax", "sample"),
}
ALL = [(*problem, d) for problem, decodings in LOSSES.items() for d in decodings]
EVERY_LOSS = pytest.mark.parametrize(("structure", "name"), list(LOSSES))
EVERY_DECODING = pytest.mark.parametrize(("structure", "name", "decoding"), ALL)
SIZES = {
    "simplex": (2, 3, 6),
    "cube": (1, 3, 6),
    "chain": (1, 3, 6),
    "permutahedron": (2, 3, 5),
    "birkhoff": (2, 3, 4),
}
SIZED = [
    (*problem, size)
    for problem in LOSSES
    for size in SIZES[problem[0]]
    if problem != ("cube", "sparsemap") or size < 6
]
EVERY_SIZE = pytest.mark.parametrize(("structure", "name", "size"), SIZED)


def as_vertices(loss, targets):
    """Targets in the user's form as rows of the polytope."""
    targets = np.asarray(targets).reshape(len(targets), -1)
    if loss.structure == "simplex":
        return np.eye(loss.size)[targets[:, 0]]
    if loss.structure == "chain":
        return (np.arange(loss.size) < targets).astype(float)
    if loss.structure == "birkhoff":
        return np.eye(loss.size)[targets].reshape(len(targets), -1)
    return targets.astype(float)


def random_targets(rng, loss, n):
    """Random targets in the user's form."""
    if loss.structure == "simplex":
        return rng.integers(loss.size, size=(n, 1))
    if loss.structure == "chain":
        return rng.integers(loss.size + 1, size=(n, 1))
    if loss.structure == "cube":
        return rng.integers(2, size=(n, loss.size))
    first = 1 if loss.structure == "permutahedron" else 0
    return np.array([rng.permutation(loss.size) + first for _ in range(n)])


def expected_losses(loss, means, targets):
    """E[L]: the affine target loss at the mean of the play."""
    vertices = as_vertices(loss, targets)
    return np.array(
        [
            reference.target_loss(loss.structure, mean, y)
            for mean, y in zip(means, vertices, strict=True)
        ]
    )


def decoded_mean(loss, u, decoding):
    """Mean of the play on one point."""
    return loss.decode(np.array([u], dtype=float), decoding)[1][0]


def assert_in_polytope(loss, points, atol=1e-12):
    """All rows lie in conv(Y), up to rounding."""
    n = loss.size
    assert np.all(np.isfinite(points))
    if loss.structure == "permutahedron":
        assert_allclose(points.sum(axis=1), n * (n + 1) / 2, atol=atol * n)
        heads = np.cumsum(-np.sort(-points, axis=1), axis=1)
        assert np.all(heads <= np.cumsum(np.arange(n, 0, -1)) + n * atol)
        return
    assert np.all((points >= -atol) & (points <= 1 + atol))
    if loss.structure == "simplex":
        assert_allclose(points.sum(axis=1), 1, atol=atol)
    if loss.structure == "chain":
        assert np.all(np.diff(points, axis=1) <= atol)
    if loss.structure == "birkhoff":
        matrices = points.reshape(-1, n, n)
        assert_allclose(matrices.sum(axis=1), 1, atol=atol)
        assert_allclose(matrices.sum(axis=2), 1, atol=atol)


# ---------------------------------------------------------------- worked numbers

BITS = 1 / log(2)
MATRIX = [1, 0.2, -0.5, 0, 0.7, 0.3, -0.2, 0.1, 0.9]
SOFTMAX_2 = [0.8437947345, 0.1141951994, 0.0420100661]
EXAMPLES = {
    "softmax, near centre": {
        "problem": ("simplex", "logistic", 3),
        "theta": [0.5, -0.2, 0.1],
        "u": [0.4614876234, 0.2291679717, 0.3093444050],
        "nearest": [0],
        "p": 1.0,
        "mean": [0.4614876234, 0.2291679717, 0.3093444050],
        "losses": [([0], 1.1156361381 / BITS, 0.5385123766)],
    },
    "softmax, far out": {
        "problem": ("simplex", "logistic", 3),
        "theta": [2, 0, -1],
        "u": SOFTMAX_2,
        "nearest": [0],
        "p": 0.3124105310,
        "mean": [0.9511998300, 0.0356757829, 0.0131243871],
        "losses": [
            ([0], 0.2450360101 / BITS, 0.0488001700),
            ([1], 3.1304260919 / BITS, 0.9643242171),
        ],
    },
    "sparsemax, near centre": {
        "problem": ("simplex", "sparsemax", 3),
        "theta": [0.5, -0.2, 0.1],
        "u": [0.7, 0, 0.3],
        "nearest": [0],
        "p": 0.6,
        "mean": [0.82, 0, 0.18],
        "losses": [([0], 0.09, 0.18), ([1], 0.79, 1.0)],
    },
    "sparsemax, at a vertex": {
        "problem": ("simplex", "sparsemax", 3),
        "theta": [2, 0, -1],
        "u": [1, 0, 0],
        "nearest": [0],
        "p": 0.0,
        "mean": [1, 0, 0],
        "losses": [([0], 0.0, 0.0)],
    },
    "cube, projection": {
        "problem": ("cube", "sparsemap", 3),
        "theta": [0.3, 0.9, -0.4],
        "u": [0.3, 0.9, 0],
        "nearest": [0, 1, 0],
        "p": 0.6324555320,
        "mean": [0.1897366596, 0.9367544468, 0],
        "losses": [([0, 1, 0], 0.05, 0.0843274043), ([1, 1, 0], 0.25, 0.2911696312)],
    },
    "cube, sigmoid": {
        "problem": ("cube", "sigmoid", 3),
        "theta": [0.3, 2, -1.5],
        "u": [0.5744425168, 0.8807970780, 0.1824255238],
        "nearest": [1, 1, 0],
        "p": 0.9562166697,
        "mean": None,
        "losses": [
            ([0, 1, 0], 1.1826965335, 0.2938323295),
            ([1, 1, 0], 0.8826965335, 0.2317824358),
        ],
    },
    "birkhoff": {
        "problem": ("birkhoff", "entropic", 3),
        "theta": MATRIX,
        "u": [
            *(0.5914207719, 0.2749693463, 0.1336098818),
            *(0.2247004772, 0.4682021731, 0.3070973497),
            *(0.1838787509, 0.2568284806, 0.5592927685),
        ],
        "nearest": [0, 1, 2],
        "p": 1.0,
        "mean": None,
        "losses": [
            ([0, 1, 2], 1.8651648383, 0.4603614288),
            ([1, 0, 2], 3.3651648383, 0.6470124693),
        ],
    },
    "permutahedron": {
        "problem": ("permutahedron", "sparsemap", 4),
        "theta": [0.3, 2.5, -1, 1.9],
        "u": [2, 3.8, 1, 3.2],
        "nearest": [2, 4, 1, 3],
        "p": 0.4,
        "mean": [2, 3.92, 1, 3.08],
        "losses": [([2, 4, 1, 3], 0.04, 0.008), ([1, 3, 2, 4], 1.94, 0.192)],
    },
    "chain": {
        "problem": ("chain", "sparsemap", 4),
        "theta": [0.9, 0.2, 0.6, -0.3],
        "u": [0.9, 0.4, 0.4, 0],
        "nearest": [1],
        "p": 1.0,
        "mean": [0.9, 0.4, 0.4, 0],
        "losses": [([2], 0.465, 0.275), ([1], 0.165, 0.225)],
    },
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_worked_examples(example):
    """Predictions, nearest vertices, losses and expected losses, to all digits."""
    loss = FenchelYoungLoss(*example["problem"])
    theta = np.array([example["theta"]], dtype=float)
    u = loss.predict(theta)
    assert_allclose(u[0], example["u"], atol=1e-9)
    assert loss.nearest(u)[0].tolist() == example["nearest"]
    vertex = as_vertices(loss, [example["nearest"]])[0]
    means = loss.decode(u, "randomized")[1]
    p = example["p"]
    assert_allclose(means[0], (1 - p) * vertex + p * u[0], atol=1e-9)
    if example["mean"] is not None:
        assert_allclose(means[0], example["mean"], atol=1e-9)
    for target, value, expected in example["losses"]:
        values, residual = loss.respond(theta, [target])
        assert_allclose(values, [value], atol=1e-9)
        assert_allclose(residual, u - as_vertices(loss, [target]), atol=1e-12)
        assert_allclose(expected_losses(loss, means, [target]), [expected], atol=1e-9)


@pytest.mark.parametrize(
    ("problem", "theta", "value"),
    [
        (("simplex", "logistic", 3), [0.5, -0.2, 0.1], 1.2733000436 - 0.5),
        (("simplex", "logistic", 3), [2, 0, -1], 2.1698460196 - 2),
        (("birkhoff", "entropic", 3), MATRIX, 4.4651648383 - 2.6),
    ],
)
def test_conjugates(problem, theta, value):
    """Omega at a vertex is zero, so S is the conjugate less the score."""
    loss = FenchelYoungLoss(*problem)
    target = [[0, 1, 2]] if loss.structure == "birkhoff" else [[0]]
    assert_allclose(loss.respond([theta], target)[0], [value], atol=1e-9)


def test_law_of_the_permutahedron_example():
    """One uniform number decides between the two rankings of the decomposition."""
    loss = FenchelYoungLoss("permutahedron", "sparsemap", 4)
    u = loss.predict(np.array([[0.3, 2.5, -1, 1.9]]))
    n = 1000
    uniforms = np.full((n, 3), 0.5)
    # Which of the numbers counts depends on the first transfer that is recorded.
    uniforms[:, 0] = (np.arange(n) + 0.5) / n
    plays, _ = loss.decode(np.repeat(u, n, axis=0), "sample", uniforms)
    found, counts = np.unique(plays, axis=0, return_counts=True)
    assert found.tolist() == [[2, 3, 1, 4], [2, 4, 1, 3]]
    assert counts.tolist() == [200, 800]


@pytest.mark.parametrize(
    ("epsilon", "expected", "value"),
    [(0.5, 0.75, 1.0397207708), (0.1, 0.5647247184, 0.7624618986)],
)
def test_lower_bound_example(epsilon, expected, value):
    """The two-class example that the ratio of Lemma 3.1 is measured on."""
    loss = FenchelYoungLoss("simplex", "logistic", 2)
    theta = np.array([[1, 1 + log(2 ** (1 + epsilon) - 1)]])
    u = loss.predict(theta)
    assert_allclose(u[0, 0], 2 ** -(1 + epsilon), atol=1e-12)
    assert_allclose(loss.respond(theta, [[0]])[0], [value], atol=1e-9)
    assert_allclose(value, (1 + epsilon) * log(2), atol=1e-9)
    mean = decoded_mean(loss, u[0], "randomized")
    assert_allclose(1 - mean[0], expected, atol=1e-9)
    assert_allclose(expected, 1 - 2 ** (-1 - 2 * epsilon), atol=1e-9)
    # p = 2^-epsilon shows in the mean, (1 - p) e_2 + p u.
    assert_allclose(mean[0], 2**-epsilon * u[0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "scale", "gap", "regularity", "step", "bound"),
    [
        ("paper", BITS, 0.3068528194, 2.8853900818, 0.2126941666, 2.3507931971),
        ("sharp", BITS, 0.4824067358, 1.1751165958, 0.8210363764, 0.6089864156),
        ("sharp", 1.0, 0.2532707646, 0.8145287552, 0.6218829304, 0.8040098474),
    ],
)
@pytest.mark.parametrize(("length", "norm"), [(1.0, 1.0), (2.5, 0.3)])
def test_multiclass_table(kind, scale, gap, regularity, step, bound, length, norm):
    """Gap, regularity, step and bound of the logistic loss, both constants."""
    loss = FenchelYoungLoss("simplex", "logistic", 7)
    constants = loss.constants("randomized", kind)
    a = _bounds.surrogate_gap(constants.ratio, scale)
    assert_allclose(a, gap, atol=1e-9)
    assert_allclose(scale * constants.curvature, regularity, atol=1e-9)
    natural = _bounds.natural_step(a, constants.curvature, length)
    assert_allclose(natural * length**2, scale * step, atol=1e-9)
    value = _bounds.constant_step_bound(
        a, scale, constants.curvature, length, natural, norm
    )
    assert_allclose(value, bound * (length * norm) ** 2, rtol=1e-9)


@pytest.mark.parametrize(
    ("problem", "gap", "bound"),
    [
        (("cube", "sparsemap", 20), 0.1055728090, 4.7360679775),
        (("cube", "sigmoid", 2), 0.2928932188, 0.4267766953),
        (("birkhoff", "entropic", 5), 0.5, 5.0),
        (("permutahedron", "sparsemap", 5), 0.5527864045, 0.8944271910),
    ],
)
def test_structured_bounds(problem, gap, bound):
    """Bounds of Theorem 4.2 per squared norm, on unscaled losses."""
    loss = FenchelYoungLoss(*problem)
    assert loss.scale("randomized", "paper") == 1.0
    constants = loss.constants("randomized", "paper")
    a = _bounds.surrogate_gap(constants.ratio, 1.0)
    assert_allclose(a, gap, atol=1e-9)
    step = _bounds.natural_step(a, constants.curvature, 1.0)
    value = _bounds.constant_step_bound(a, 1.0, constants.curvature, 1.0, step, 1.0)
    assert_allclose(value, bound, atol=1e-9)


def test_bounds_of_other_theorems():
    """High probability with the step a / b; the ball of diameter 4."""
    loss = FenchelYoungLoss("simplex", "logistic", 3)
    constants = loss.constants("randomized", "paper")
    a = _bounds.surrogate_gap(constants.ratio, BITS)
    b = BITS * constants.curvature
    arguments = a, BITS, constants.curvature, 1.0
    loss_range = constants.gamma * constants.diameter
    value = _bounds.constant_step_high_probability_bound(
        *arguments, BITS * a / b, 1.0, loss_range, 0.05
    )
    assert_allclose(value, 17.4617809278, atol=1e-9)
    expected = reference.high_probability_bound(a, b, 1.0, loss_range, 0.05)
    assert_allclose(value, expected, rtol=1e-12)
    # The step of the other theorem is another one.
    step = _bounds.natural_step(a, constants.curvature, 1.0)
    assert isnan(
        _bounds.constant_step_high_probability_bound(
            *arguments, step, 1.0, loss_range, 0.05
        )
    )
    assert_allclose(_bounds.adaptive_bound(*arguments, 4.0), 208.5690466093, atol=1e-9)


@pytest.mark.parametrize("gap", [0.05, 0.3, 0.5, 0.8])
def test_constant_step_bound_is_the_theorem(gap):
    """Also for gaps above one half; nan for steps that the gap does not pay for."""
    scale, curvature, length = 1.7, 0.9, 1.3
    step = _bounds.natural_step(gap, curvature, length)
    b = scale * curvature * length**2
    value = _bounds.constant_step_bound(gap, scale, curvature, length, step, 2.0)
    assert_allclose(value, reference.theorem_bound(gap, b, 2.0), rtol=1e-12)
    too_long = 2.02 * gap / (curvature * length**2)
    assert isnan(
        _bounds.constant_step_bound(gap, scale, curvature, length, too_long, 2.0)
    )
    shorter = _bounds.constant_step_bound(
        gap, scale, curvature, length, 0.5 * step, 2.0
    )
    assert shorter > value


def test_mixture_numbers():
    """Ratio, step and bound of the mixture with the default sharing."""
    constants = FenchelYoungLoss("simplex", "logistic", 3).constants(
        "randomized", "sharp"
    )
    ratio = _bounds.mixture_ratio(constants.ratio, 1e-3)
    assert_allclose(ratio, 0.74748, atol=1e-5)
    step = _bounds.mixture_step(ratio, constants.curvature)
    assert step == 0.62
    bound = _bounds.mixture_bound(ratio, constants.curvature, 2.0, step, 3.0, log(4))
    assert_allclose(bound, 36 / 1.24 + 0.7474768 * log(4), rtol=1e-6)
    too_long = _bounds.mixture_bound(ratio, constants.curvature, 2, 0.63, 3, log(4))
    assert isnan(too_long)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.95])
def test_mixture_has_no_bound_with_much_sharing(share):
    """Sharing costs -ln(1 - share) per unit of loss, more than the gap can pay."""
    constants = FenchelYoungLoss("simplex", "logistic", 3).constants(
        "randomized", "sharp"
    )
    ratio = _bounds.mixture_ratio(constants.ratio, share)
    bound = _bounds.mixture_bound(ratio, constants.curvature, 1.0, 0.5, 1.0, log(4))
    assert isnan(bound)


@pytest.mark.parametrize("chance", [0.02, 0.3, 0.9])
def test_margin_of_the_draws_at_one_time(chance):
    """Exact tail of independent coin losses against the margin, for several delta."""
    from scipy.stats import binom

    n = 400
    for delta in (0.3, 0.05, 1e-3):
        t = _bounds.draw_margin(n * chance * (1.0 - chance), delta)
        assert binom.sf(np.floor(n * chance + t), n, chance) <= delta


# ---------------------------------------------------------------- reference


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, "integers"])
@EVERY_SIZE
def test_predictions_and_losses_equal_the_reference(structure, name, size, spread):
    """Small, moderate, large and tied scores."""
    mu = 0.7 if structure == "birkhoff" else 1.0
    loss = FenchelYoungLoss(structure, name, size, mu)
    rng = np.random.default_rng(0)
    shape = (12, loss.n_outputs)
    theta = (
        rng.integers(-2, 3, size=shape).astype(float)
        if spread == "integers"
        else spread * rng.normal(size=shape)
    )
    targets = random_targets(rng, loss, len(theta))
    u, (values, residual) = loss.predict(theta), loss.respond(theta, targets)
    for i, y in enumerate(as_vertices(loss, targets)):
        expected = reference.prediction(structure, name, theta[i], mu)
        assert_allclose(u[i], expected, atol=1e-9)
        assert_allclose(residual[i], expected - y, atol=1e-9)
        value = reference.surrogate(structure, name, theta[i], y, mu)
        assert_allclose(values[i], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, "integers"])
@EVERY_SIZE
def test_decodings_equal_the_reference(structure, name, size, spread):
    """Nearest vertices, and means of the play for every decoding."""
    loss = FenchelYoungLoss(structure, name, size)
    rng = np.random.default_rng(1)
    shape = (12, loss.n_outputs)
    theta = (
        rng.integers(-2, 3, size=shape).astype(float)
        if spread == "integers"
        else spread * rng.normal(size=shape)
    )
    u = loss.predict(theta)
    vertices = as_vertices(loss, loss.nearest(u))
    for i in range(len(u)):
        expected = reference.nearest(structure, u[i])
        if structure in ("birkhoff", "chain"):
            # Which of several nearest vertices is taken does not matter.
            order = 1 if structure == "birkhoff" else 2
            distances = [
                np.linalg.norm(v - u[i], order) for v in (vertices[i], expected)
            ]
            assert_allclose(*distances, atol=1e-10)
        else:
            assert_array_equal(vertices[i], expected)
    for decoding in LOSSES[structure, name]:
        if decoding == "argmax":
            plays, means = loss.decode(u, decoding)
            assert_array_equal(means, vertices)
            assert_array_equal(as_vertices(loss, plays), vertices)
            continue
        means = loss.decode(u, decoding)[1]
        for i in range(len(u)):
            expected = reference.decode_mean(structure, u[i], decoding, name)
            assert_allclose(means[i], expected, atol=1e-9)


# ---------------------------------------------------------------- samplers


def law_of(loss, u, decoding):
    """Probabilities of all vertices by enumeration, and the vertices."""
    law = reference.decode_law(loss.structure, u, decoding, loss.loss)
    return law, reference.vertices(loss.structure, loss.size)


@pytest.mark.parametrize("spread", [0.7, 2.5])
@pytest.mark.parametrize(
    ("structure", "name", "decoding"),
    [case for case in ALL if case[0] != "birkhoff" and case[2] != "argmax"],
)
def test_frequencies_follow_the_law(structure, name, decoding, spread):
    """Chi-square test of the draws; each case fails by chance once in 10,000."""
    size = 4 if structure == "permutahedron" else 3
    loss = FenchelYoungLoss(structure, name, size)
    rng = np.random.default_rng(2)
    u = loss.predict(spread * rng.normal(size=(1, size)))
    n = 20_000
    uniforms = rng.random((n, loss.n_uniforms(decoding)))
    plays, means = loss.decode(np.repeat(u, n, axis=0), decoding, uniforms)
    law, vertices = law_of(loss, u[0], decoding)
    assert_allclose(means, np.repeat([law @ vertices], n, axis=0), atol=1e-12)
    drawn = as_vertices(loss, plays)
    counts = np.array([np.sum(np.all(drawn == v, axis=1)) for v in vertices])
    assert counts.sum() == n
    assert np.all(counts[law < 1e-12] == 0)
    # Cells that are expected to have few draws are pooled.
    rare = (law < 5 / n) & (law >= 1e-12)
    cells = law >= 5 / n
    observed, expected = counts[cells], n * law[cells]
    if rare.any():
        observed = np.append(observed, counts[rare].sum())
        expected = np.append(expected, n * law[rare].sum())
    statistic = np.sum((observed - expected) ** 2 / expected)
    if len(expected) > 1:
        assert chi2.sf(statistic, len(expected) - 1) > 1e-4


@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("decoding", ["randomized", "sample"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_random_assignments(size, decoding, spread):
    """Every draw is a permutation; means within 5 standard errors."""
    loss = FenchelYoungLoss("birkhoff", "entropic", size)
    rng = np.random.default_rng(3)
    u = loss.predict(spread * rng.normal(size=(1, size**2)))
    n = 20_000
    uniforms = rng.random((n, loss.n_uniforms(decoding)))
    plays, means = loss.decode(np.repeat(u, n, axis=0), decoding, uniforms)
    assert_array_equal(np.sort(plays, axis=1), np.tile(np.arange(size), (n, 1)))
    expected = reference.decode_mean("birkhoff", u[0], decoding)
    assert_allclose(means, np.repeat([expected], n, axis=0), atol=1e-9)
    error = as_vertices(loss, plays).mean(axis=0) - expected
    assert np.all(np.abs(error) <= 5 * np.sqrt(expected * (1 - expected) / n) + 1e-9)


@EVERY_DECODING
def test_vertices_are_played_surely(structure, name, decoding):
    """Where the prediction is a vertex, that is the play, whatever the numbers."""
    loss = FenchelYoungLoss(structure, name, 3)
    rng = np.random.default_rng(4)
    targets = random_targets(rng, loss, 50)
    u = as_vertices(loss, targets)
    uniforms = rng.random((50, max(1, loss.n_uniforms(decoding))))
    uniforms[:10], uniforms[10:20] = 0.0, np.nextafter(1, 0)
    plays, means = loss.decode(u, decoding, uniforms)
    assert_array_equal(plays, targets)
    assert_array_equal(means, u)


def test_draws_ignore_rounding_of_the_total():
    """The largest uniform number never draws a class of probability zero."""
    loss = FenchelYoungLoss("simplex", "logistic", 4)
    u = np.array([[0.1, 0.2, 0.7 - 1e-12, 0.0]])
    plays, _ = loss.decode(u, "sample", np.array([[np.nextafter(1, 0)]]))
    assert plays.tolist() == [[2]]


# ---------------------------------------------------------------- constants


@pytest.mark.parametrize("kind", ["sharp", "paper"])
@EVERY_DECODING
def test_constants_equal_the_reference(structure, name, decoding, kind):
    """All constants and both ratios, for several sizes."""
    for size in (2, 3, 5, 20):
        for mu in (0.5, 1.0, 2.5) if structure == "birkhoff" else (1.0,):
            actual = FenchelYoungLoss(structure, name, size, mu).constants(
                decoding, kind
            )
            expected = reference.constants(structure, name, size, decoding, kind, mu)
            actual = vars(actual) | {"lam": actual.strong_convexity}
            actual.pop("strong_convexity")
            assert actual == pytest.approx(expected, rel=1e-12)


@EVERY_LOSS
@pytest.mark.parametrize("size", [2, 3, 4])
def test_constants_from_the_vertices(structure, name, size):
    """Separation, diameter and both suprema, by enumeration."""
    brute = reference.brute_constants(structure, size, name)
    actual = FenchelYoungLoss(structure, name, size).constants("randomized", "sharp")
    for key, value in brute.items():
        assert_allclose(getattr(actual, key), value, rtol=1e-9, err_msg=key)
    paper = FenchelYoungLoss(structure, name, size).constants("randomized", "paper")
    assert paper.kappa == 1.0


def ratios(loss, theta, target, decoding):
    """E[L] / S and |u - y|^2 / S for rows of scores; 0 where S vanishes."""
    targets = np.repeat([target], len(theta), axis=0)
    values, residual = loss.respond(theta, targets)
    means = loss.decode(loss.predict(theta), decoding)[1]
    y = as_vertices(loss, targets[:1])[0]
    # L is affine in the mean: its slope and offset from the vertices of the cube.
    zero = reference.target_loss(loss.structure, np.zeros(len(y)), y)
    slope = [reference.target_loss(loss.structure, e, y) - zero for e in np.eye(len(y))]
    # Matrix scaling stops at errors of 1e-10.
    positive = values > (1e-5 if loss.structure == "birkhoff" else 1e-7)
    safe = np.where(positive, values, 1.0)
    expected = np.where(positive, (means @ slope + zero) / safe, 0.0)
    curvature = np.where(positive, np.sum(residual**2, axis=1) / safe, 0.0)
    return expected, curvature


@pytest.mark.parametrize("size", [2, 3, 4])
@EVERY_DECODING
def test_ratios_withstand_a_search(structure, name, decoding, size):
    """Random scores, then a local search from the worst, for the largest ratios."""
    mu = 1.3 if structure == "birkhoff" else 1.0
    loss = FenchelYoungLoss(structure, name, size, mu)
    rng = np.random.default_rng(5)
    target = random_targets(rng, loss, 1)[0]
    y = as_vertices(loss, [target])[0]
    n = 500 if structure == "birkhoff" else 4000
    theta = rng.choice([0.2, 0.7, 2.0], size=(n, 1)) * rng.normal(
        size=(n, loss.n_outputs)
    )
    theta[::2] += y
    constants = loss.constants(decoding, "sharp")
    for which, bound in enumerate((constants.ratio, constants.curvature)):
        found = ratios(loss, theta, target, decoding)[which]
        worst = theta[np.argmax(found)]

        def objective(x, which=which):
            return -ratios(loss, x[None], target, decoding)[which][0]

        search = minimize(
            objective, worst, method="Nelder-Mead", options={"maxfev": 300}
        )
        assert max(found.max(), -search.fun) <= bound * (1 + 1e-5)
        # The search is not idle: it comes within some factor of the bound.
        assert bound == inf or -search.fun >= 0.1 * bound


def test_logistic_constants_are_attained():
    """Two classes, at the maximisers of the two scalar functions."""
    loss = FenchelYoungLoss("simplex", "logistic", 2)
    constants = loss.constants("randomized", "sharp")
    for which, s in enumerate((0.43206748, 0.28466814)):
        theta = np.array([[log(s / (1 - s)), 0.0]])
        found = ratios(loss, theta, [0], "randomized")[which][0]
        assert_allclose(
            found, (constants.ratio, constants.curvature)[which], rtol=1e-12
        )
    assert_allclose(constants.ratio, 0.746729235403, atol=1e-12)
    assert_allclose(constants.curvature, 0.814528755178, atol=1e-12)
    assert_allclose(constants.ratio / BITS, 0.5175932642, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_sigmoid_constants_are_attained(size):
    """Label by label the loss is the logistic one with two classes."""
    loss = FenchelYoungLoss("cube", "sigmoid", size)
    constants = loss.constants("coordinatewise", "sharp")
    ones = np.ones(size, dtype=int)
    for which, s in enumerate((0.43206748, 0.28466814)):
        theta = np.full((1, size), log(s / (1 - s)))
        found = ratios(loss, theta, ones, "coordinatewise")[which][0]
        assert_allclose(
            found, (constants.ratio, constants.curvature)[which], rtol=1e-12
        )


@pytest.mark.parametrize("score", [0.5, 0.7, 0.99])
@pytest.mark.parametrize("structure", ["cube", "chain"])
@pytest.mark.parametrize("decoding", ["randomized", "coordinatewise"])
def test_lemma_is_tight_on_one_bit(structure, decoding, score):
    """With one bit and the projection the ratio 4 is attained on half the line."""
    loss = FenchelYoungLoss(structure, "sparsemap", 1)
    assert loss.constants(decoding, "paper").ratio == 4.0
    # At exactly 1/2 the play is random either way.
    found = ratios(loss, np.array([[score]]), [1], decoding)[0][0]
    assert_allclose(found, 4.0, rtol=1e-9)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", ["logistic", "sigmoid", "entropic"])
def test_ratios_of_plain_sampling_are_approached(name, size):
    """1 - s over -ln s tends to one at the target."""
    structure = {"logistic": "simplex", "sigmoid": "cube", "entropic": "birkhoff"}[name]
    mu = 1.7 if name == "entropic" else 1.0
    loss = FenchelYoungLoss(structure, name, size, mu)
    target = {
        "simplex": [0],
        "cube": [1] * size,
        "birkhoff": np.arange(size),
    }[structure]
    y = as_vertices(loss, [target])
    found = ratios(loss, 10 / mu * y, target, "sample")[0][0]
    bound = loss.constants("sample", "paper").ratio
    assert 0.99 * bound < found <= bound


# ---------------------------------------------------------------- scales and numbers


@pytest.mark.parametrize("kind", ["sharp", "paper"])
@EVERY_DECODING
def test_scale_leaves_a_gap(structure, name, decoding, kind):
    """Bits for the logistic loss, one where that does, else a gap of one half."""
    for size in (1, 2, 3, 5, 17, 30):
        loss = FenchelYoungLoss(structure, name, size, 3.0)
        if structure != "cube" and structure != "chain" and size == 1:
            continue
        scale = loss.scale(decoding, kind)
        ratio = loss.constants(decoding, kind).ratio
        if name == "logistic":
            assert scale == BITS
        elif ratio == inf:
            assert scale == 1.0
        else:
            assert ratio < scale
            assert scale == 1.0 or _bounds.surrogate_gap(ratio, scale) == 0.5


# ---------------------------------------------------------------- properties


def scores(structure, size, largest):
    """Vectors of scores without subnormals."""
    n = size**2 if structure == "birkhoff" else size
    return arrays(
        float, n, elements=st.floats(-largest, largest, allow_subnormal=False)
    )


@st.composite
def problems(draw, largest=5.0, structures=tuple(SIZES)):
    """A loss, two vectors of scores and a target."""
    structure, name = draw(st.sampled_from([p for p in LOSSES if p[0] in structures]))
    size = draw(st.integers(2, 3 if structure == "birkhoff" else 5))
    loss = FenchelYoungLoss(structure, name, size)
    theta, other = (draw(scores(structure, size, largest)) for _ in range(2))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return loss, theta, other, random_targets(rng, loss, 1)


def value_of(loss, theta, target):
    """S of one vector of scores."""
    return loss.respond(np.atleast_2d(theta), target)[0][0]


@given(problems())
def test_loss_dominates_the_squared_distance(problem):
    """S >= lambda / 2 times the squared distance in the norm of strong convexity."""
    loss, theta, _, target = problem
    value = value_of(loss, theta, target)
    difference = loss.predict(theta[None])[0] - as_vertices(loss, target)[0]
    order = 2
    if loss.loss in ("logistic", "entropic"):
        order = 1
    lam = loss.constants("randomized", "paper").strong_convexity
    distance = np.linalg.norm(difference, order)
    assert value >= 0
    assert value >= 0.5 * lam * distance**2 - 1e-9
    curvature = loss.constants("randomized", "sharp").curvature
    assert difference @ difference <= curvature * value + 1e-9


@given(problems())
def test_gradient_is_the_residual(problem):
    """Central differences of the loss."""
    loss, theta, _, target = problem
    residual = loss.respond(theta[None], target)[1][0]
    h = 1e-4
    steps = h * np.eye(len(theta))
    both = np.vstack([theta + steps, theta - steps])
    values = loss.respond(both, np.repeat(target, len(both), axis=0))[0]
    numeric = (values[: len(theta)] - values[len(theta) :]) / (2 * h)
    # The gradient of a projection has Lipschitz constant one.
    assert_allclose(numeric, residual, atol=2e-4)


@given(problems(), st.floats(0, 1))
def test_loss_is_convex(problem, t):
    """Between any two vectors of scores."""
    loss, theta, other, target = problem
    between = value_of(loss, (1 - t) * theta + t * other, target)
    chord = (1 - t) * value_of(loss, theta, target) + t * value_of(loss, other, target)
    assert between <= chord + 1e-9


@given(problems(structures=("simplex", "permutahedron", "birkhoff")), st.floats(-5, 5))
def test_constants_added_to_scores_do_not_matter(problem, shift):
    """All scores; for matchings, rows and columns of scores."""
    loss, theta, other, target = problem
    moved = theta + shift
    if loss.structure == "birkhoff":
        n = loss.size
        moved = (theta.reshape(n, n) + other[:n, None] + other[-n:]).ravel()
    assert_allclose(loss.predict(moved[None]), loss.predict(theta[None]), atol=1e-8)
    assert_allclose(
        value_of(loss, moved, target), value_of(loss, theta, target), atol=1e-8
    )


@given(problems(structures=("simplex", "cube", "permutahedron", "birkhoff")))
def test_renaming_does_not_matter(problem):
    """Classes, labels and items, or items and positions, in another order."""
    loss, theta, _, target = problem
    n = loss.size
    order, places = np.roll(np.arange(n), 1), np.arange(n)[::-1]
    if loss.structure == "birkhoff":
        moved = theta.reshape(n, n)[order][:, places].ravel()
        new_target = np.argsort(places)[target[:, order]]
        expected = loss.predict(theta[None])[0].reshape(n, n)[order][:, places].ravel()
    else:
        moved = theta[order]
        expected = loss.predict(theta[None])[0][order]
        new_target = target[:, order] if loss.structure != "simplex" else target
        if loss.structure == "simplex":
            new_target = np.argsort(order)[target]
    assert_allclose(loss.predict(moved[None])[0], expected, atol=1e-9)
    assert_allclose(
        value_of(loss, moved, new_target), value_of(loss, theta, target), atol=1e-9
    )
    means = loss.decode(np.array([expected]), "sample")[1]
    assert_array_equal(means[0], expected)


@given(problems(largest=3.0))
def test_means_of_plays_lie_in_the_polytope(problem):
    """And between the nearest vertex and the regularised prediction."""
    loss, theta, _, _ = problem
    u = loss.predict(theta[None])
    assert_in_polytope(loss, u, atol=1e-10)
    for decoding in LOSSES[loss.structure, loss.loss]:
        means = loss.decode(u, decoding)[1]
        assert_in_polytope(loss, means, atol=1e-10)
    p = reference.mixing_probability(loss.structure, u[0], loss.loss)
    mean = decoded_mean(loss, u[0], "randomized")
    nearest = as_vertices(loss, loss.nearest(u))[0]
    assert_allclose(mean, (1 - p) * nearest + p * u[0], atol=1e-9)


@given(problems())
def test_lemma_holds(problem):
    """E[L] <= ratio S for every decoding that has one."""
    loss, theta, _, target = problem
    value = value_of(loss, theta, target)
    u = loss.predict(theta[None])
    for decoding in LOSSES[loss.structure, loss.loss]:
        for kind in ("sharp", "paper"):
            ratio = loss.constants(decoding, kind).ratio
            if ratio < inf:
                means = loss.decode(u, decoding)[1]
                expected = expected_losses(loss, means, target)[0]
                assert expected <= ratio * value + 1e-9


@given(st.floats(-30, 30))
def test_two_classes_are_one_bit(margin):
    """Algorithm 1 on two classes has the law of one coordinate of the cube."""
    two = FenchelYoungLoss("simplex", "logistic", 2)
    bit = FenchelYoungLoss("cube", "sigmoid", 1)
    u = two.predict(np.array([[margin, 0.0]]))
    s = bit.predict(np.array([[margin]]))
    assert_allclose(s[0, 0], u[0, 0], rtol=1e-12)
    mean = decoded_mean(two, u[0], "randomized")[0]
    assert_allclose(decoded_mean(bit, s[0], "coordinatewise"), mean, atol=1e-12)
    assert_allclose(decoded_mean(bit, s[0], "randomized"), mean, atol=1e-12)
    assert_allclose(
        value_of(two, [margin, 0.0], [[0]]), value_of(bit, [margin], [[1]]), atol=1e-13
    )


# ---------------------------------------------------------------- extremes


@pytest.mark.parametrize("spread", [0.0, 1e-300, 1e3, 1e6])
@EVERY_SIZE
def test_extreme_scores(structure, name, size, spread):
    """No overflow, no NaN, predictions in the polytope, valid plays."""
    loss = FenchelYoungLoss(structure, name, size)
    rng = np.random.default_rng(6)
    theta = spread * rng.normal(size=(8, loss.n_outputs))
    targets = random_targets(rng, loss, 8)
    u, (values, residual) = loss.predict(theta), loss.respond(theta, targets)
    # Projections of large scores cancel.
    exact = structure == "birkhoff" or spread < 1
    assert_in_polytope(loss, u, atol=1e-12 if exact else 1e-12 + 1e-15 * spread)
    assert np.all(np.isfinite(values)) and np.all(values >= 0)
    assert np.all(np.isfinite(residual))
    for decoding in LOSSES[structure, name]:
        uniforms = rng.random((8, loss.n_uniforms(decoding)))
        plays, means = loss.decode(u, decoding, uniforms)
        assert_in_polytope(loss, means, atol=1e-12 if exact else 1e-12 + 1e-15 * spread)
        if structure in ("permutahedron", "birkhoff"):
            first = 1 if structure == "permutahedron" else 0
            assert_array_equal(
                np.sort(plays, axis=1), np.tile(np.arange(size) + first, (8, 1))
            )
        else:
            assert plays.min() >= 0 and as_vertices(loss, plays).max() <= 1


@pytest.mark.parametrize("size", [2, 4])
def test_softmax_of_a_sure_class(size):
    """The loss stays exact where the probability of the target underflows."""
    loss = FenchelYoungLoss("simplex", "logistic", size)
    theta = np.zeros((1, size))
    theta[0, 0] = 1000.0
    assert value_of(loss, theta, [[1]]) == 1000.0
    assert value_of(loss, theta, [[0]]) == 0.0
    theta[0, 0] = 30.0
    assert_allclose(value_of(loss, theta, [[0]]), (size - 1) * exp(-30), rtol=0.3)


@pytest.mark.parametrize("score", [-800.0, 800.0])
def test_sigmoid_of_a_sure_label(score):
    """Softplus without overflow, and without underflow of the small tail."""
    loss = FenchelYoungLoss("cube", "sigmoid", 1)
    wrong = int(score < 0)
    assert value_of(loss, [score], [[wrong]]) == 800.0
    assert value_of(loss, [score], [[1 - wrong]]) == 0.0
    assert_allclose(
        value_of(loss, [score / 20], [[1 - wrong]]), np.log1p(exp(-40)), rtol=1e-12
    )


@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("spread", [30.0, 100.0, 1000.0])
def test_doubly_stochastic_at_any_range(size, spread):
    """Rows and columns sum to one; hardly any score is lost to the regularisation."""
    loss = FenchelYoungLoss("birkhoff", "entropic", size)
    theta = np.random.default_rng(7).normal(size=(10, size**2)) * spread
    u = loss.predict(theta)
    assert_in_polytope(loss, u, atol=1e-12)
    best = as_vertices(loss, loss.nearest(theta))
    # The entropy of a doubly stochastic matrix is at most n ln n.
    lost = np.sum(theta * (best - u), axis=1)
    assert np.all(lost <= size * log(size) + 1e-9 * spread)


@pytest.mark.parametrize("gap", [1.0, 5.0, 20.0, 24.0, 29.0, 31.0, 100.0, 700.0])
@pytest.mark.parametrize("size", [2, 3])
def test_matchings_with_a_common_favourite(size, gap):
    """All items want the same position: their other scores decide, at any distance."""
    loss = FenchelYoungLoss("birkhoff", "entropic", size)
    theta = np.full((size, size), -gap)
    theta[:, 0] = 0.0
    theta[-1, 1] += 0.3
    # Constants of columns do not matter.
    centred = theta + np.where(np.arange(size) == 0, 0.0, gap)
    expected = reference.prediction("birkhoff", "entropic", centred.ravel())
    assert_allclose(loss.predict(centred.reshape(1, -1))[0], expected, atol=1e-9)
    assert_allclose(loss.predict(theta.reshape(1, -1))[0], expected, atol=1e-9)


@pytest.mark.parametrize("scale", [1e12, 1e17])
@pytest.mark.parametrize("name", ["logistic", "sparsemax"])
def test_simplex_predictions_at_huge_scores(name, scale):
    """A class far ahead of the others has probability one."""
    loss = FenchelYoungLoss("simplex", name, 3)
    u = loss.predict(np.array([[scale, 0.0, -scale]]))
    assert_allclose(u, [[1.0, 0.0, 0.0]], atol=1e-15)


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e17, 1e300])
def test_rankings_at_huge_scores(scale):
    """Items far apart take their ranks; a close pair shares its places."""
    loss = FenchelYoungLoss("permutahedron", "sparsemap", 3)
    u = loss.predict(np.array([[scale, 0.0, -scale], [-scale, 0.25, 0.0]]))
    assert_allclose(u, [[3.0, 2.0, 1.0], [1.0, 2.625, 2.375]], atol=1e-12)


def test_symmetric_scores_give_the_centre():
    """Equal scores: every vertex counts the same."""
    for (structure, name), centre in {
        ("simplex", "logistic"): 1 / 4,
        ("simplex", "sparsemax"): 1 / 4,
        ("cube", "sigmoid"): 1 / 2,
        ("permutahedron", "sparsemap"): 5 / 2,
        ("birkhoff", "entropic"): 1 / 4,
    }.items():
        loss = FenchelYoungLoss(structure, name, 4)
        u = loss.predict(np.zeros((1, loss.n_outputs)))
        assert_allclose(u, centre, rtol=1e-12)
        # Algorithm 1 always randomises there.
        assert_allclose(loss.decode(u, "randomized")[1], u, atol=1e-12)


def test_sure_directions_end_randomisation():
    """p tends to zero as the scores grow in the direction of a vertex."""
    for structure, name in LOSSES:
        loss = FenchelYoungLoss(structure, name, 3)
        target = random_targets(np.random.default_rng(8), loss, 1)
        y = as_vertices(loss, target)
        centred = y - y.mean() if structure != "chain" else y - 0.5
        u = loss.predict(50 * centred)
        mean = loss.decode(u, "randomized")[1]
        assert_allclose(mean, y, atol=1e-5)
        assert expected_losses(loss, mean, target)[0] <= 1e-5


def test_norm_ratio_of_the_paper():
    """Dividing by sqrt(2) is allowed on differences of points of the simplex."""
    rng = np.random.default_rng(9)
    v = rng.dirichlet(np.ones(4), size=1000) - np.eye(4)[0]
    ratio = np.linalg.norm(v, axis=1) / np.abs(v).sum(axis=1)
    kappa = (
        FenchelYoungLoss("simplex", "logistic", 4).constants("sample", "sharp").kappa
    )
    assert ratio.max() <= kappa == sqrt(0.5)
