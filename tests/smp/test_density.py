"""MultinomialSMP, GaussianSMP and PoissonSMP against refits, numbers and identities."""

from itertools import product
from math import comb, log, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import smp as reference
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln, xlogy
from sklearn.exceptions import NotFittedError

from skbounds import GaussianSMP, MultinomialSMP, PoissonSMP

COVARIANCES = {
    1: [[2.5]],
    2: [[2.0, -0.7], [-0.7, 0.5]],
    3: [[1.0, 0.3, 0.0], [0.3, 2.0, -0.4], [0.0, -0.4, 0.7]],
}
variants = pytest.mark.parametrize(
    ("variant", "widening"),
    [("smp", lambda n: (1 + 1 / n) ** 2), ("minimax", lambda n: 1 + 1 / n)]
    + [("mle", lambda n: 1.0)],
)


def sample_of_counts(counts):
    """Return the column that has these counts of 0, 1, 2, ..."""
    return np.repeat(np.arange(len(counts)), counts)[:, None]


# Multinomial ----------------------------------------------------------------------


def test_multinomial_numbers():
    """Laplace's rule on counts 3, 0, 1, 2."""
    model = MultinomialSMP(categories=[np.arange(4)])
    model.fit(sample_of_counts([3, 0, 1, 2]))
    assert_allclose(model.proba_, [0.4, 0.1, 0.2, 0.3], atol=1e-15)
    assert_array_equal(model.counts_, [3, 0, 1, 2])
    assert_array_equal(model.categories_[0], np.arange(4))
    assert model.excess_risk_bound_ == pytest.approx(0.356674943939, abs=1e-12)
    assert model.bound_valid_
    found = model.score_samples([[0], [1], [3]])
    assert_allclose(found, np.log([0.4, 0.1, 0.3]), atol=1e-15)
    assert model.score([[0], [1], [3]]) == pytest.approx(log(0.4 * 0.1 * 0.3))


@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_multinomial_equals_refits(counts):
    """(16) and (59) from one refit per virtual value; the bound chain (17)."""
    expected = reference.multinomial_smp(counts)
    model = MultinomialSMP(categories=[np.arange(len(counts))])
    model.fit(sample_of_counts(counts))
    assert_allclose(model.proba_, expected["p"], atol=1e-14)
    assert model.proba_.sum() == pytest.approx(1.0, abs=1e-14)
    bound = model.excess_risk_bound_
    assert bound == pytest.approx(expected["log_normalizer"], abs=1e-14)
    n, d = sum(counts), len(counts)
    assert 0 <= bound <= (d - 1) / (n + 1) + 1e-15 <= (d - 1) / n + 2e-15


@given(counts=st.lists(st.integers(0, 4), min_size=2, max_size=5).filter(any))
def test_multinomial_weights_and_names(counts):
    """Weights are repetitions, zero deletes, names and order do not matter."""
    names = np.array(["d", "b", "a", "c", "e"])[: len(counts)]
    weighted = MultinomialSMP(categories=[names])
    weighted.fit(names[:, None], sample_weight=counts)
    repeated = MultinomialSMP(categories=[names[::-1]])
    repeated.fit(np.repeat(names, counts)[::-1, None])
    assert_allclose(weighted.proba_, repeated.proba_, atol=1e-15)
    assert weighted.excess_risk_bound_ == pytest.approx(repeated.excess_risk_bound_)
    by_name = np.exp(weighted.score_samples(names[:, None]))
    expected = (np.array(counts) + 1) / (sum(counts) + len(counts))
    assert_allclose(by_name, expected, atol=1e-15)
    # Values of weight zero are not observed.
    auto = MultinomialSMP().fit(names[:, None], sample_weight=counts)
    assert_array_equal(auto.categories_[0], np.sort(names[np.array(counts) > 0]))


def test_multinomial_categories():
    """Automatic, explicit, unsorted, unobserved, numbers and strings, 1-d input."""
    auto = MultinomialSMP().fit([["b"], ["a"], ["b"]])
    assert_array_equal(auto.categories_[0], ["a", "b"])
    assert_allclose(auto.proba_, [2 / 5, 3 / 5])
    assert not auto.bound_valid_
    explicit = MultinomialSMP(categories=[["c", "b", "a"]]).fit(["b", "a", "b"])
    assert_array_equal(explicit.categories_[0], ["a", "b", "c"])
    assert_allclose(explicit.proba_, [2 / 6, 3 / 6, 1 / 6])
    assert explicit.bound_valid_
    numbers = MultinomialSMP(categories=[[2.5, -1.0]]).fit([2.5, 2.5])
    assert_allclose(np.exp(numbers.score_samples([-1.0, 2.5])), [1 / 4, 3 / 4])
    objects = MultinomialSMP().fit(np.array([["x"], ["yy"]], dtype=object))
    assert_allclose(objects.proba_, [0.5, 0.5])
    single = MultinomialSMP(categories=[["a", "b"]]).fit([["b"]])
    assert_allclose(single.proba_, [1 / 3, 2 / 3])
    assert single.excess_risk_bound_ == pytest.approx(log(3 / 2))
    constant = MultinomialSMP().fit([["b"], ["b"]])
    assert_allclose(constant.proba_, [1.0])
    assert constant.excess_risk_bound_ == 0


def test_multinomial_unknown_categories():
    """Values outside the fixed set are refused, at fit and later, by name."""
    model = MultinomialSMP(categories=[["a", "b"]])
    with pytest.raises(ValueError, match=r"unknown categories in X: \['z'\]"):
        model.fit([["a"], ["z"]])
    with pytest.raises(NotFittedError):
        model.score_samples([["a"]])
    model.fit([["a"], ["z"]], sample_weight=[1, 0])
    for rows in ([["a"], ["zz"]], [[3]], [["0"]], [["c"]]):
        with pytest.raises(ValueError, match="unknown categories"):
            model.score_samples(rows)
    numbers = MultinomialSMP().fit([1, 2])
    for rows in ([3], [0], [1.5], ["b"]):
        with pytest.raises(ValueError, match="unknown categories"):
            numbers.score_samples(rows)
    with pytest.raises(ValueError, match="one array of allowed values"):
        MultinomialSMP(categories=[["a"], ["b"]]).fit([["a"]])
    with pytest.raises(ValueError, match="at least one value"):
        MultinomialSMP(categories=[[]]).fit([["a"]])


def exact_excess(n, probabilities):
    """Return the excess risk over all count vectors, and the average loss."""
    d, excess = len(probabilities), 0.0
    values = np.arange(d)[:, None]
    for counts in product(range(n + 1), repeat=d):
        if sum(counts) != n:
            continue
        left = np.cumsum((0, *counts[:-1]))
        ways = prod(comb(n - a, c) for a, c in zip(left, counts, strict=True))
        chance = ways * np.prod(np.power(probabilities, counts))
        if chance == 0:
            continue
        model = MultinomialSMP(categories=[np.arange(d)]).fit(sample_of_counts(counts))
        loss = -model.score_samples(values)
        excess += chance * np.sum(
            probabilities * loss + xlogy(probabilities, probabilities)
        )
    return excess


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(
    "probabilities", [[0.5, 0.5], [0.9, 0.1], [0.2, 0.3, 0.5], [0.98, 0.01, 0.01]]
)
def test_multinomial_excess_is_below_the_bound(n, probabilities):
    """Exact average over all count vectors: positive, below the bound."""
    d = len(probabilities)
    excess = exact_excess(n, np.array(probabilities))
    assert 0 < excess < log((n + d) / (n + 1))


@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_multinomial_bound_is_attained_by_constants(n, d):
    """Where Y is constant the excess risk is the bound."""
    excess = exact_excess(n, np.eye(d)[0])
    assert excess == pytest.approx(log((n + d) / (n + 1)), abs=1e-14)


# Gaussian -------------------------------------------------------------------------


def test_gaussian_numbers():
    """Published bounds at n=10, d=3."""
    X = np.random.default_rng(0).normal(size=(10, 3))
    smp, minimax = GaussianSMP().fit(X), GaussianSMP(variant="minimax").fit(X)
    assert smp.excess_risk_bound_ == pytest.approx(0.285930539413, abs=1e-12)
    assert minimax.excess_risk_bound_ == pytest.approx(0.142965269706, abs=1e-12)
    assert smp.excess_risk_bound_ <= 3 / 10
    # Well-specified excess of 'smp', from its predictive law by (62).
    s2 = smp.covariance_[0, 0]
    excess = 1.5 * log(s2) + 3 / (20 * s2) + 1.5 * (1 / s2 - 1)
    assert excess == pytest.approx(0.149566903049, abs=1e-12)
    assert minimax.excess_risk_bound_ < excess < 3 / 20 < smp.excess_risk_bound_


@pytest.mark.parametrize("n", [1, 4, 20])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_equals_refits(d, n):
    """(14) with a refitted mean per virtual value, summed on a fine grid."""
    rng = np.random.default_rng(d)
    X, x = rng.normal(size=(n, d)) + 1.0, rng.normal(size=(2, d)) * 3
    covariance = np.array(COVARIANCES[d])
    model = GaussianSMP(covariance=covariance).fit(X)
    for row, found in zip(x, model.score_samples(x), strict=True):
        expected = reference.gaussian_smp(X, row, covariance)
        assert found == pytest.approx(expected["log_density"], abs=1e-10)
        bound = expected["log_normalizer"]
        assert model.excess_risk_bound_ == pytest.approx(bound, abs=1e-10)


@variants
@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_variants(d, variant, widening):
    """A normal law at the sample mean, wider than the model by a known factor."""
    rng = np.random.default_rng(d)
    X, rows = rng.normal(size=(7, d)), rng.normal(size=(5, d))
    model = GaussianSMP(covariance=COVARIANCES[d], variant=variant).fit(X)
    covariance = widening(7) * np.array(COVARIANCES[d])
    assert_allclose(model.mean_, X.mean(axis=0), atol=1e-15)
    assert_allclose(model.covariance_, covariance, rtol=1e-14)
    law = stats.multivariate_normal(X.mean(axis=0), covariance)
    density = law.logpdf(rows)
    assert_allclose(model.score_samples(rows), density, rtol=1e-12)
    assert model.score(rows) == pytest.approx(np.sum(density), rel=1e-12)
    assert model.bound_valid_ == (variant != "mle")
    if variant == "mle":
        trace = np.trace(np.linalg.solve(COVARIANCES[d], np.cov(X.T).reshape(d, d)))
        assert model.excess_risk_bound_ == pytest.approx(trace / 14, rel=1e-12)
    else:
        expected = 0.5 * d * log(widening(7))
        assert model.excess_risk_bound_ == pytest.approx(expected, rel=1e-12)
    if d == 1:
        mass = quad(lambda t: np.exp(model.score_samples([[t]])[0]), -30, 30)[0]
        assert mass == pytest.approx(1.0, abs=1e-8)


@variants
def test_gaussian_single_observation(variant, widening):
    """One observation is enough; only the plug-in estimate of its excess is not."""
    model = GaussianSMP(variant=variant).fit([[1.0, 2.0]])
    assert_allclose(model.mean_, [1.0, 2.0])
    assert_allclose(model.covariance_, widening(1) * np.eye(2))
    assert np.isnan(model.excess_risk_bound_) == (variant == "mle")


@given(
    seed=st.integers(0, 10**6),
    shift=st.floats(-1e4, 1e4),
    variant=st.sampled_from(["smp", "minimax", "mle"]),
)
def test_gaussian_weights_and_equivariance(seed, shift, variant):
    """Weights are repetitions; affine maps of data and model add a log determinant."""
    rng = np.random.default_rng(seed)
    X, rows = rng.normal(size=(6, 2)), rng.normal(size=(3, 2))
    counts = rng.integers(0, 4, size=6)
    counts[:2] = [1, 2]
    covariance = np.array(COVARIANCES[2])
    weighted = GaussianSMP(covariance=covariance, variant=variant)
    weighted.fit(X, sample_weight=counts)
    repeated = GaussianSMP(covariance=covariance, variant=variant)
    repeated.fit(np.repeat(X, counts, axis=0))
    density = weighted.score_samples(rows)
    assert_allclose(repeated.score_samples(rows), density, rtol=1e-11)
    bound = weighted.excess_risk_bound_
    assert repeated.excess_risk_bound_ == pytest.approx(bound, rel=1e-11)
    A = rng.normal(size=(2, 2)) + 3 * np.eye(2)
    moved = GaussianSMP(covariance=A @ covariance @ A.T, variant=variant)
    moved.fit(X @ A.T + shift, sample_weight=counts)
    found = moved.score_samples(rows @ A.T + shift)
    found += np.log(np.abs(np.linalg.det(A)))
    assert_allclose(found, density, rtol=1e-7, atol=1e-7)
    assert moved.excess_risk_bound_ == pytest.approx(bound, rel=1e-7)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric and positive definite"),
        ([[1.0, 2.0], [2.0, 1.0]], "symmetric and positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "symmetric and positive definite"),
        ([[0.0, 0.0], [0.0, 1.0]], "symmetric and positive definite"),
        ([[1.0]], r"shape \(2, 2\) to match X"),
        (np.ones((2, 3)), r"shape \(2, 2\) to match X"),
        ([[np.nan, 0.0], [0.0, 1.0]], "NaN"),
        ([1.0, 1.0], "2D array"),
    ],
)
def test_gaussian_bad_covariance(covariance, message):
    """Messages say what a covariance has to be."""
    model = GaussianSMP(covariance=covariance)
    with pytest.raises(ValueError, match=message):
        model.fit(np.ones((3, 2)))
    with pytest.raises(NotFittedError):
        model.score_samples(np.ones((3, 2)))


def test_gaussian_nearly_symmetric_covariance():
    """Rounding in an estimated covariance is no asymmetry."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    covariance = A @ A.T + 1e-14 * A
    GaussianSMP(covariance=covariance).fit(A)
    with pytest.raises(ValueError, match="'variant' parameter"):
        GaussianSMP(variant="bayes").fit(A)


# Poisson --------------------------------------------------------------------------


def test_poisson_numbers():
    """Published probabilities for a sum of 7 in 4 observations."""
    model = PoissonSMP().fit([[3], [0], [2], [2]])
    expected = [0.197277571153, 0.258427543033, 0.214227359135]
    expected += [0.144357635452, 0.086521015551]
    found = np.exp(model.score_samples(np.arange(5)[:, None]))
    assert_allclose(found, expected, atol=1e-12)
    assert model.excess_risk_bound_ == pytest.approx(log(1.25), abs=1e-15)
    assert model.mean_ == pytest.approx(2.0625, abs=1e-14)
    assert model.rate_ == pytest.approx(1.75)


@given(total=st.integers(0, 60), n=st.integers(1, 12))
def test_poisson_equals_refits(total, n):
    """Probabilities, Z = 1 + 1/n and mean by brute summation over virtual counts."""
    X = np.zeros((n, 1))
    X[0] = total
    model = PoissonSMP().fit(X)
    for k in (0, 1, 7, 40):
        expected = reference.poisson_smp(total, n, k)
        found = model.score_samples([[k]])[0]
        assert found == pytest.approx(np.log(expected["p"]), abs=1e-10)
    bound = model.excess_risk_bound_
    assert bound == pytest.approx(expected["log_normalizer"], abs=1e-12)
    assert model.mean_ == pytest.approx(expected["mean"], rel=1e-9)


@given(total=st.integers(0, 10**4), n=st.integers(1, 200))
def test_poisson_sums_to_one(total, n):
    """All probabilities sum to one and have the stated mean."""
    X = np.zeros((n, 1))
    X[-1] = total
    model = PoissonSMP().fit(X)
    # Tails fall like those of a geometric law of mean about n^-1 times the spread.
    top = int(total / n + 60 * np.sqrt(total / n + 1) * (1 + 1 / n) + 4000)
    k = np.arange(top)
    p = np.exp(model.score_samples(k[:, None]))
    rest = reference_tail(total, n, top)
    assert p.sum() + rest == pytest.approx(1.0, abs=1e-10)
    if rest < 1e-14:
        assert k @ p == pytest.approx(model.mean_, rel=1e-9)


def reference_tail(total, n, top):
    """Return the Poisson SMP's mass from ``top`` on, written independently."""
    k = np.arange(top, 20 * top, dtype=float)
    m = (total + k) / (n + 1)
    terms = np.exp(xlogy(k, m) - m - gammaln(k + 1))
    return n / (n + 1) * terms.sum()


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=8), seed=st.integers(0))
def test_poisson_weights(values, seed):
    """Weights are repetitions, zero deletes; only sum and number matter."""
    X = np.array(values)[:, None]
    counts = np.random.default_rng(seed % 2**32).integers(0, 4, size=len(X))
    counts[0] = 1
    weighted = PoissonSMP().fit(X, sample_weight=counts)
    repeated = PoissonSMP().fit(np.repeat(X, counts, axis=0))
    rows = np.arange(20)[:, None]
    expected = repeated.score_samples(rows)
    assert_allclose(weighted.score_samples(rows), expected, rtol=1e-12)
    for name in ("rate_", "mean_", "excess_risk_bound_"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name))
    assert weighted.score(rows) == pytest.approx(expected.sum())


def test_poisson_excess_is_below_the_bound():
    """Exact average over all sums of n Poisson counts: positive, below the bound."""
    for rate, n in ((0.1, 1), (2.0, 3), (7.0, 5)):
        k = np.arange(stats.poisson.ppf(1 - 1e-15, rate) + 1)
        p = stats.poisson.pmf(k, rate)
        truth, excess = stats.poisson.logpmf(k, rate), 0.0
        for total in np.arange(stats.poisson.ppf(1 - 1e-15, n * rate) + 1):
            model = PoissonSMP().fit(np.r_[total, np.zeros(n - 1)])
            chance = stats.poisson.pmf(total, n * rate)
            excess += chance * (p @ (truth - model.score_samples(k)))
        assert 0 < excess < model.excess_risk_bound_


@pytest.mark.parametrize("value", [-1, 0.5, -0.5, 1e-12])
def test_poisson_needs_counts(value):
    """Negative and fractional counts are refused, at fit and later."""
    with pytest.raises(ValueError, match="non-negative integers"):
        PoissonSMP().fit([[1.0], [value]])
    model = PoissonSMP().fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="non-negative integers"):
        model.score_samples([[value]])


# All ------------------------------------------------------------------------------


def fitted_models():
    """Return one fitted model of each kind and a goodness-of-fit p-value of a sample.

    The p-values take a sample of the model; the densities themselves are tested above.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 2))
    gaussian = GaussianSMP(covariance=COVARIANCES[2]).fit(X)
    counts = PoissonSMP().fit([[3], [0], [2], [2]])
    names = MultinomialSMP(categories=[["a", "b", "c", "d"]])
    names.fit(["a", "a", "a", "c", "d", "d"])

    def of_gaussian(sample):
        white = np.linalg.solve(
            np.linalg.cholesky(16 / 9 * np.array(COVARIANCES[2])),
            (sample - X.mean(axis=0)).T,
        )
        pieces = [*white, (white[0] + white[1]) / np.sqrt(2)]
        return min(stats.kstest(piece, "norm").pvalue for piece in pieces) * 3

    def of_counts(sample):
        cells = np.minimum(sample[:, 0], 12)
        p = np.exp(counts.score_samples(np.arange(12)[:, None]))
        p = np.append(p, 1 - p.sum())
        return stats.chisquare(np.bincount(cells, minlength=13), len(cells) * p).pvalue

    def of_names(sample):
        found = [np.sum(sample == name) for name in "abcd"]
        return stats.chisquare(found, len(sample) * names.proba_).pvalue

    return [(gaussian, of_gaussian), (counts, of_counts), (names, of_names)]


@pytest.mark.parametrize("index", range(3), ids=["gaussian", "poisson", "multinomial"])
def test_samples_follow_the_density(index):
    """Goodness of fit of 20 000 draws; a right sampler fails for 1 seed in 10 000."""
    model, p_value = fitted_models()[index]
    sample = model.sample(20_000, random_state=0)
    assert sample.shape == (20_000, model.n_features_in_)
    assert p_value(sample) > 1e-4
    # The test has power: a twentieth of the draws replaced by one value is noticed.
    spoilt = sample.copy()
    spoilt[:1000] = sample[0]
    assert p_value(spoilt) < 1e-4
    assert_array_equal(model.sample(20_000, random_state=0), sample)
    assert model.sample(random_state=1).shape == (1, model.n_features_in_)


@pytest.mark.parametrize("index", range(3), ids=["gaussian", "poisson", "multinomial"])
def test_bad_use(index):
    """Number of draws, number of columns, weights, missing values."""
    model, _ = fitted_models()[index]
    for n_samples in (0, -1, 1.5, None):
        with pytest.raises(ValueError, match="n_samples must be a positive integer"):
            model.sample(n_samples)
    X = model.sample(5, random_state=0)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, sample_weight=-np.ones(5))
    with pytest.raises(ValueError, match="non-zero"):
        model.fit(X, sample_weight=np.zeros(5))
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(X[:0])
    with pytest.raises(ValueError, match=r"features|columns"):
        model.score_samples(np.hstack([X, X]))
    unfitted = type(model)()
    for method in (lambda: unfitted.sample(), lambda: unfitted.score_samples(X)):
        with pytest.raises(NotFittedError):
            method()
    if index < 2:
        rows = X.astype(float)
        rows[0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.fit(rows)
        with pytest.raises(ValueError, match="NaN"):
            model.score_samples(rows)
    if index > 0:
        with pytest.raises(ValueError, match="one variable"):
            type(model)().fit(np.hstack([X, X]))


def test_poisson_samples_of_large_counts():
    """The table of the law is laid around its mean."""
    draws = PoissonSMP().fit([[10**9], [10**9 + 5]]).sample(2000, random_state=0)
    # Standard error of the mean: sqrt(1e9 * 1.5^3 / 2000) is about 1300.
    assert abs(draws.mean() - 1e9) < 5 * 1300


def test_missing_categories_are_refused():
    """None among strings cannot be sorted."""
    with pytest.raises(ValueError, match="values of one kind"):
        MultinomialSMP().fit(np.array([["a"], [None]], dtype=object))


# ------------------------------------------------ input as people have it


def exact_log_poisson(k, m):
    """Return ln(m^k e^-m / k!) with fifty digits, m a fraction."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        k, m = Decimal(k), Decimal(m.numerator) / Decimal(m.denominator)
        if k < 50:
            factorial = sum((Decimal(i).ln() for i in range(1, int(k) + 1)), Decimal(0))
        else:
            pi = Decimal("3.14159265358979323846264338327950288419716939937510582097")
            terms = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188)]
            factorial = k * k.ln() - k + (2 * pi * k).ln() / 2
            for i, (up, down) in enumerate(terms):
                factorial += Decimal(up) / Decimal(down) / k ** (2 * i + 1)
        return float(k * m.ln() - m - factorial) if k else float(-m)


@pytest.mark.parametrize("scale", [0, 10, 60, 70, 10**3, 10**6, 10**9, 10**13, 10**15])
def test_counts_of_any_size_keep_their_digits(scale):
    """Differences of numbers of the size of k ln k are taken by hand."""
    from fractions import Fraction

    root = int(scale**0.5)
    sample = [max(0, scale + root * j) for j in (-1, 0, 1, 2)]
    density = PoissonSMP().fit(np.reshape(sample, (-1, 1)).astype(float))
    for k in {0, scale, max(0, scale - 3 * root), scale + 5 * root}:
        m = Fraction(sum(sample) + k, 5)
        expected = np.log(0.8) + exact_log_poisson(k, m)
        found = density.score_samples([[float(k)]])[0]
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_declared_categories_are_the_categories():
    """[.5, .33, .17] and not [.6, .4]; a theorem where some have not been seen."""
    pd = pytest.importorskip("pandas", reason="test extra not installed")
    pl = pytest.importorskip("polars", reason="test extra not installed")
    values = ["a", "a", "b"]
    kinds = [
        pd.Series(pd.Categorical(values, categories=["c", "b", "a"])),
        pd.DataFrame({"x": pd.Categorical(values, categories=["a", "b", "c"])}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(["a", "b", "c"]))}),
    ]
    for X in kinds:
        density = MultinomialSMP().fit(X)
        assert density.categories_[0].tolist() == ["a", "b", "c"]
        assert_allclose(density.proba_, [1 / 2, 1 / 3, 1 / 6])
        assert density.bound_valid_
        assert_allclose(density.score_samples(X)[:1], np.log(0.5))
    inferred = MultinomialSMP().fit(pd.Series(values, dtype="category"))
    assert_allclose(inferred.proba_, [0.6, 0.4])
    assert not inferred.bound_valid_
    given = MultinomialSMP(categories=[["a", "b", "z"]]).fit(kinds[0])
    assert given.categories_[0].tolist() == ["a", "b", "z"]
