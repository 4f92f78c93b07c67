"""Kernels of other shapes and families, and the theory's numbers."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import bolstering as ref
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from bolstering.toy import B_X, B_Y, classification, covariances, regression
from skbounds.bolstering import (
    BolsteredScorer,
    MomentKernel,
    SampledKernel,
    increment_bound,
    log_pseudo_likelihood,
    vc_bound,
)
from skbounds.bolstering._smoothed._families import ball_draws
from skbounds.bolstering._smoothed._mpe import mpe_kernels


def kernels_of(kernel, X, y, *, loss="squared", standardize=False):
    scorer = BolsteredScorer(
        method="x", kernel=kernel, loss=loss, standardize=standardize,
        categorical_features=[],
    )  # fmt: skip
    return scorer.fit(X, y).kernel_


@pytest.mark.parametrize("standardize", [False, True])
def test_the_default_is_the_named_kernel(standardize):
    """Normal, spherical, matched in the mean: kernel "mm" of regression."""
    X, y = regression(0, n=20)
    expected = kernels_of("mm", X, y, standardize=standardize)
    assert_allclose(
        kernels_of(MomentKernel(), X, y, standardize=standardize), expected, rtol=1e-12
    )


def test_classes_and_centers():
    """By class with the median it is "mm" of classification; mean and pool differ."""
    X, y = classification(1, n=30)
    named = kernels_of("mm", X, y, loss="zero_one")
    median = kernels_of(MomentKernel(center="median"), X, y, loss="zero_one")
    assert_allclose(median, named, rtol=1e-12)
    mean = kernels_of(MomentKernel(), X, y, loss="zero_one")
    for label in (0, 1):
        sigma = ref.mm_approx(X, "mean", y)[label]
        assert_allclose(mean[y == label], np.tile(sigma**2 * np.eye(2), (15, 1, 1)))
    pooled = kernels_of(MomentKernel(pooled=True), X, y, loss="zero_one")
    assert_allclose(pooled, ref.mm_approx(X) ** 2 * np.eye(2), rtol=1e-12)


def test_mahalanobis_distances_are_plain_ones_of_whitened_rows():
    """A given covariance: the width is that in its metric, the shape its own."""
    X, y = regression(2, n=25, d=3)
    for shape, matrix in (
        ("covariance", np.cov(X.T, bias=True)),
        (S := covariances(np.random.default_rng(0), 1, 3)[0], S),
    ):
        root = np.linalg.cholesky(matrix)
        sigma = ref.mm_approx(np.linalg.solve(root, X.T).T)
        found = kernels_of(MomentKernel(shape=shape), X, y)
        assert_allclose(found, sigma**2 * matrix, rtol=1e-8)
        # The units of the columns play no part for a covariance of the rows.
        if isinstance(shape, str):
            scaled = kernels_of(MomentKernel(shape=shape), X * [1.0, 100.0, 1e-3], y)
            factor = np.outer([1.0, 100.0, 1e-3], [1.0, 100.0, 1e-3])
            assert_allclose(scaled, found * factor, rtol=1e-7)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_ball_draws_are_uniform_on_the_ball(q):
    """The radius to the q-th power is uniform, the direction is kept."""
    nodes = np.random.default_rng(q).normal(size=(20_000, q))
    draws = ball_draws(nodes)
    radius = np.sqrt((draws**2).sum(axis=1))
    assert radius.max() <= 1.0
    quantiles = np.quantile(radius**q, [0.1, 0.5, 0.9])
    # Five standard errors of a quantile of uniform draws.
    assert_allclose(quantiles, [0.1, 0.5, 0.9], atol=5 * 0.5 / math.sqrt(20_000))
    assert_allclose(
        draws / radius[:, None], nodes / np.sqrt((nodes**2).sum(axis=1))[:, None]
    )


@pytest.mark.parametrize("center", ["mean", "median"])
def test_a_family_of_the_user_is_the_one_it_imitates(center):
    """The ball as a function of normal draws, and the normal law as itself."""
    X, y = regression(3, n=20)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    for family, function in (("ball", ball_draws), ("normal", lambda nodes: nodes)):
        scores = [
            BolsteredScorer(
                method="x", kernel=MomentKernel(f, center=center), n_nodes=64,
                integration="qmc",
            )(model, X, y)
            for f in (family, function)
        ]  # fmt: skip
        # The radius of a function is taken from draws.
        assert scores[0] == pytest.approx(scores[1], rel=2e-3)


def test_a_ball_on_a_line_is_an_interval():
    """P(error) of a threshold under a uniform move, by hand."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 1))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    threshold = -model.intercept_[0] / model.coef_[0, 0]
    width = ref.mm_approx(X) * math.sqrt(2 / math.pi) / 0.5
    margin = np.where(y == 1, X[:, 0] - threshold, threshold - X[:, 0])
    expected = np.clip((width - margin) / (2 * width), 0.0, 1.0).mean()
    found = BolsteredScorer(
        method="x", kernel=MomentKernel("ball", pooled=True), standardize=False,
        n_nodes=512,
    ).estimate(model, X, y)  # fmt: skip
    assert found.error == pytest.approx(expected, abs=2e-3)
    assert found.integration_error > 0.0
    assert "MomentKernel" in found.kernel


def test_any_smoothing_of_the_user():
    """Definition 1 with a normal move of given width is a given kernel."""
    X, y = classification(5, n=50)
    model = LogisticRegression().fit(X, y)
    kernel = SampledKernel(lambda rows, y, nodes: rows[:, None] + 0.4 * nodes)
    found = BolsteredScorer(method="x", kernel=kernel, n_nodes=512).estimate(
        model, X, y
    )
    w, b = model.coef_[0], model.intercept_[0]
    margins = np.where(y == 1, 1, -1) * (X @ w + b)
    expected = ndtr(-margins / (0.4 * np.linalg.norm(w))).mean()
    assert found.error == pytest.approx(expected, abs=3e-3)
    # Targets are handed over, rows in any order of blocks.
    seen = []

    def move(rows, targets, nodes):
        seen.append((rows, targets))
        return rows[:, None] + 0.0 * nodes

    score = BolsteredScorer(method="x", kernel=SampledKernel(move))(model, X, y)
    assert score == pytest.approx(model.score(X, y) - 1.0)
    rows, targets = (np.concatenate(part) for part in zip(*seen, strict=True))
    assert {tuple(r) for r in rows} == {tuple(r) for r in X}
    assert set(np.unique(targets)) == {0, 1}
    drawn, labels = BolsteredScorer(method="x", kernel=kernel).fit(X, y).sample(7, 0)
    assert drawn.shape == (7, 2) and labels.shape == (7,)


def test_wrong_families_and_shapes():
    """The message names what was given."""
    X, y = regression(6, n=20)
    model = LinearRegression().fit(X, y)
    wrong = {
        "family": MomentKernel("gauss"),
        "shape": MomentKernel(shape="round"),
        "center": MomentKernel(center="mode"),
        "positive": MomentKernel(shape=np.diag([1.0, 0.0])),
        "must return finite draws": MomentKernel(lambda nodes: nodes[:1]),
        "SampledKernel": SampledKernel(lambda rows, y, nodes: rows),
        "move must be callable": SampledKernel(3),
    }
    for match, kernel in wrong.items():
        with pytest.raises(ValueError, match=match):
            BolsteredScorer(method="x", kernel=kernel)(model, X, y)
    for options in ({"method": "xy"}, {"method": "auto"}):
        with pytest.raises(ValueError, match="kernel"):
            BolsteredScorer(kernel=MomentKernel(), **options)(model, X, y)


def test_scorers_with_kernels_are_cloned_and_printed():
    """A kernel is a parameter like others."""
    scorer = BolsteredScorer(method="x", kernel=MomentKernel("ball", pooled=True))
    assert "pooled=True" in repr(clone(scorer))
    X, y = classification(7, n=40)
    model = GaussianNB().fit(X, y)
    assert clone(scorer)(model, X, y) == scorer(model, X, y)


# ------------------------------------------------------------------- theory


def test_log_pseudo_likelihood():
    """The definition, and the published numbers of data set B."""
    kernels = BolsteredScorer(method="x", kernel="mpe", standardize=False)
    kernels = kernels.fit(B_X, B_Y).kernel_
    found = log_pseudo_likelihood(B_X, kernels)
    assert found == pytest.approx(ref.log_pseudo_likelihood(B_X, kernels), rel=1e-12)
    assert log_pseudo_likelihood(B_X, np.eye(2)) == pytest.approx(
        -13.0920111645, rel=1e-10
    )
    printed = [-15.0654595180, -14.8659639663, -14.8168475491, -14.8069573453]
    printed += [-14.8049473869, -14.8045368201]
    for n_iter, expected in enumerate(printed, start=1):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The kernels of kernel='mpe'")
            kernels, _ = mpe_kernels(B_X, np.ones(6), lam=1.0, max_iter=n_iter)
        assert log_pseudo_likelihood(B_X, kernels) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(ValueError, match="shape"):
        log_pseudo_likelihood(B_X, np.eye(3))


def test_increments_of_smooth_losses_are_within_their_bound():
    """A quadratic loss attains it; losses of less curvature stay below."""
    X, y = regression(8, n=30)
    model = LinearRegression().fit(X, y)
    scorer = BolsteredScorer(method="x", kernel="mm", standardize=False)
    found = scorer.estimate(model, X, y)
    kernels = scorer.fit(X, y).kernel_
    # The loss (y - a - b'x)^2 has second derivatives 2 b b'.
    curvature = 2.0 * float(model.coef_ @ model.coef_)
    bound = increment_bound(kernels, curvature)
    assert 0.0 < found.increment <= bound
    line = LinearRegression().fit(X[:, :1], y)
    found = scorer.estimate(line, X[:, :1], y)
    bound = increment_bound(
        scorer.fit(X[:, :1], y).kernel_, 2.0 * float(line.coef_ @ line.coef_)
    )
    assert found.increment == pytest.approx(bound, rel=1e-9)
    with pytest.raises(ValueError, match="curvature"):
        increment_bound(np.eye(2), -1.0)


def test_vc_bound_holds_and_says_little():
    """Thresholds on a line have dimension 1: the largest deviation is below it."""
    rng = np.random.default_rng(9)
    worst = 0.0
    for _ in range(200):
        x = np.sort(rng.random(400))
        # Label 0 everywhere: 1{x > t} errs on 1 - t, and on so many rows.
        empirical = 1.0 - np.arange(401) / 400
        edges = np.r_[0.0, x, 1.0]
        gaps = [np.abs(empirical - (1.0 - edges[i : i + 401])).max() for i in (0, 1)]
        worst = max(worst, *gaps)
    assert worst < vc_bound(400, 1, delta=0.05) < 1.0
    assert vc_bound(100, 3) > 1.0
    assert vc_bound(400, 3) > vc_bound(4000, 3) > vc_bound(4000, 3, delta=0.5)
    with pytest.raises(ValueError, match="delta"):
        vc_bound(10, 1, delta=0.0)
