"""Kernels of every kind against slow references and numbers known to ten digits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import bolstering as ref
from reference.part_fits import closest_pairs
from scipy.stats import norm

from bolstering.toy import A_X, A_Y, B_X, B_Y, C_X, C_Y, covariances, polars
from skbounds.bolstering import BolsteredScorer
from skbounds.bolstering._parts._matching import match_pairs
from skbounds.bolstering._smoothed import _bandwidths
from skbounds.bolstering._smoothed._bandwidths import (
    approximate_width,
    chi_mean,
    chi_median,
    diagonal_widths,
    exact_width,
    mean_nearest_distance,
    widths_by_class,
)
from skbounds.bolstering._smoothed._kernels import Kernels, triangular_roots
from skbounds.bolstering._smoothed._mpe import limit_kernels, mpe_kernels
from skbounds.bolstering._smoothed._neighbors import (
    nearest_distances,
    nearest_rows,
)
from skbounds.bolstering._smoothed._nodes import normal_points, sobol
from skbounds.bolstering._table import Coordinates, Table

# Kernels per row that are compared up to the rounding of at most 20 iterations.
SAME = {"rtol": 1e-9, "atol": 1e-12}
# Algorithm 1 adds a ridge of 1e-10 of the mean variance before it takes a root.
RIDGED = {"rtol": 1e-8, "atol": 1e-10}


def ones(X):
    return np.ones(len(X))


def fitted_kernel(X, y, **options):
    """The public attribute, as one matrix per row."""
    kernel = BolsteredScorer(**options).fit(X, y).kernel_
    return np.broadcast_to(kernel, (len(X), *kernel.shape[-2:]))


def with_duplicates(rng, n, d):
    """Rows of which a third are repeated."""
    X = rng.normal(size=(n, d))
    X[: n // 3] = X[n // 3 : 2 * (n // 3)]
    return X


# ---------------------------------------------------------------- chi laws


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 40, 2000])
def test_chi_constants(d):
    """Mean and median of the length of a standard normal vector."""
    assert_allclose(chi_mean(d), ref.chi_mean(d), rtol=1e-12)
    assert_allclose(chi_median(d), ref.chi_median(d), rtol=1e-12)


def test_printed_chi_constants():
    """Four digits of the paper's constants (untruncated)."""
    means = [0.7979, 1.2533, 1.5958, 1.8800, 2.1277]
    medians = [0.6745, 1.1774, 1.5382, 1.8321, 2.0860]
    d = np.arange(1, 6)
    assert_allclose(chi_mean(d), means, rtol=0, atol=5.1e-5)
    assert_allclose(chi_median(d), medians, rtol=0, atol=5.1e-5)


# ---------------------------------------------------------------- approximate widths


@pytest.mark.parametrize(
    "X, center, expected",
    [
        (A_X, "mean", 0.2757291102),
        (A_X, "median", 0.3261724881),
        (B_X, "mean", 0.2785146435),
        (B_X, "median", 0.2964696524),
    ],
)
def test_approximate_width_oracles(X, center, expected):
    """Numbers known to ten digits."""
    actual = approximate_width(X, ones(X), center=center)
    assert_allclose(actual, expected, rtol=0, atol=6e-11)


@pytest.mark.parametrize("X, expected", [(A_X, 0.22), (B_X, 0.3490663401)])
def test_mean_distance_oracles(X, expected):
    """Mean distance to the nearest other row."""
    actual = mean_nearest_distance(X, ones(X))
    assert_allclose(actual, expected, rtol=0, atol=6e-11)


@pytest.mark.parametrize("d", [1, 3, 15])
@pytest.mark.parametrize("center", ["mean", "median"])
def test_approximate_width_with_weights_and_duplicates(d, center):
    """Weighted mean of the distances to the nearest distinct row."""
    rng = np.random.default_rng(d)
    X, w = with_duplicates(rng, 30, d), rng.uniform(0.1, 3.0, size=30)
    actual = approximate_width(X, w, center=center)
    expected = ref.mm_approx(X, center, distinct=True, dim=d, weights=w)
    assert_allclose(actual, expected, rtol=1e-12)


def test_identical_rows_have_no_width():
    """There is no distinct row to measure a distance to."""
    X = np.full((4, 2), 0.3)
    assert approximate_width(X, ones(X)) == 0.0
    assert exact_width(X, ones(X), random_state=0) == 0.0


@pytest.mark.parametrize("center", ["mean", "median"])
def test_widths_by_class(center):
    """Distances within classes; a class of one row measures to any row."""
    rng = np.random.default_rng(5)
    X = with_duplicates(rng, 24, 2)
    codes = np.r_[rng.permutation(np.arange(23) % 3), 3]
    w = rng.uniform(0.1, 3.0, size=24)
    actual = widths_by_class(X, codes, w, center=center)
    expected = ref.mm_approx(
        X, center, codes, distinct=True, dim=2, single="nearest", weights=w
    )
    assert_allclose(actual, [expected[c] for c in range(4)], rtol=1e-12)


def test_widths_by_class_oracle():
    """Medians of the chi law, data set C."""
    actual = widths_by_class(C_X, (C_Y > 0).astype(int), ones(C_X))
    assert_allclose(actual, [0.8730004551, 0.8403930526], rtol=0, atol=6e-11)


def test_diagonal_widths():
    """Every feature by itself; ties within a feature are passed over."""
    expected = [0.1775528361, 0.1253314137]
    assert_allclose(diagonal_widths(B_X, ones(B_X)), expected, rtol=0, atol=6e-11)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(20, 3)) / 8.0
    actual = diagonal_widths(X, ones(X))
    assert_allclose(actual, ref.mm_diag(X, distinct=True), rtol=1e-12)


# ---------------------------------------------------------------- exact widths


def test_exact_width_on_a_line_oracle():
    """Number known to ten digits."""
    actual = exact_width(A_X, ones(A_X), random_state=0)
    assert_allclose(actual, 0.5639411344, rtol=0, atol=6e-11)


@pytest.mark.parametrize("s", [0.02, 0.1, 1.0, 8.0])
def test_mean_distance_of_draws_on_a_line(s):
    """Closed form against quadrature, rows with duplicates."""
    x = np.array([0.0, 0.1, 0.1, 0.35, 0.6, 1.0, 1.0, 1.0, 3.7])
    actual = _bandwidths._expected_distance_on_a_line(x, np.ones(9))(s)
    assert_allclose(actual, ref.expected_nearest_distance(x, s), rtol=1e-10)


@pytest.mark.parametrize("s, expected", [(0.1, 0.0619963418), (1.0, 0.4701064606)])
def test_mean_distance_of_draws_oracles(s, expected):
    """Numbers known to ten digits."""
    actual = _bandwidths._expected_distance_on_a_line(A_X[:, 0], np.ones(5))(s)
    assert_allclose(actual, expected, rtol=0, atol=6e-11)


@pytest.mark.parametrize("seed", range(3))
def test_exact_width_on_a_line(seed):
    """The first root, by quadrature and bracketing."""
    x = np.random.default_rng(seed).uniform(size=7)
    actual = exact_width(x[:, None], np.ones(7), random_state=0)
    assert_allclose(actual, ref.mm_exact_1d(x), rtol=1e-9)


def test_exact_width_weights_are_shares_of_the_mixture():
    """Whole weights are repeated rows, as distances are to distinct ones."""
    x, w = np.array([0.0, 0.2, 0.5, 1.1, 1.3]), np.array([1, 3, 2, 1, 1])
    actual = exact_width(x[:, None], w.astype(float), random_state=0)
    expected = ref.mm_exact_1d(np.repeat(x, w), distinct=True)
    assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 3])
def test_exact_width_in_the_plane_with_its_own_nodes(seed):
    """The same fixed draws, all distances by brute force."""
    nodes = normal_points(sobol(2, seed), _bandwidths._EXACT_NODES)
    actual = exact_width(B_X, ones(B_X), random_state=seed)
    assert_allclose(actual, ref.mm_exact(B_X, nodes), rtol=1e-10)


def test_exact_width_in_the_plane_oracle(monkeypatch):
    """A tensor grid of 64 x 64 quantiles instead of Sobol points."""
    t = norm.ppf((np.arange(64) + 0.5) / 64)
    grid = np.array([(a, b) for a in t for b in t])
    monkeypatch.setattr(_bandwidths, "normal_points", lambda engine, n: grid)
    actual = exact_width(B_X, ones(B_X), random_state=0)
    assert_allclose(actual, 0.4244477306, rtol=0, atol=6e-11)


def test_exact_width_in_the_plane_approaches_quadrature():
    """256 Sobol points per row give the true root to 2 percent.

    Over 200 seeds the deviation has sd 0.3 percent and no bias; not more digits, as
    the equation is nearly flat near its root.
    """
    actual = np.mean([exact_width(B_X, ones(B_X), random_state=s) for s in range(4)])
    assert_allclose(actual, 0.421264, rtol=0.02)


@given(st.integers(0, 10**6), st.integers(3, 12), st.integers(1, 3))
def test_approximate_width_is_a_lower_bound(seed, n, d):
    """Proposition 15: E[delta](s) <= s E[chi]; equivariance of both widths."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    w = ones(X)
    approximate = approximate_width(X, w)
    # With draws instead of the normal law: what these have for E[chi].
    nodes = normal_points(sobol(d, 0), _bandwidths._EXACT_NODES)
    share = np.sqrt((nodes**2).sum(axis=1)).mean() / chi_mean(d) if d > 1 else 1.0
    exact = exact_width(X, w, random_state=0)
    assert exact * share >= approximate * (1 - 1e-12)
    assert_allclose(approximate_width(3 * X + 7, w), 3 * approximate, rtol=1e-12)
    assert_allclose(exact_width(3 * X + 7, w, random_state=0), 3 * exact, rtol=1e-8)


# ---------------------------------------------------------------- Algorithm 1

A_MPE = [0.0843285811, 0.0657039245, 0.0421146110, 0.0429998177, 0.1041813661]
A_LIMIT = [0.09328125, 0.07078125, 0.041875, 0.05203125, 0.14953125]
A_TENFOLD = [0.0920728992, 0.0701091451, 0.0419117931, 0.0508021408, 0.1432363555]
B_MPE_0 = [0.0477799820, 0.0347542643, 0.0347542643, 0.0419991919]
B_MPE_5 = [0.0201667533, 0.0043632048, 0.0043632048, 0.0164117628]


def test_mpe_oracles():
    """Numbers known to ten digits, iterated until nothing changes."""
    run = lambda Z: mpe_kernels(Z, ones(Z), lam=1.0, tol=1e-13)[0]
    # Half a digit, and the ridge.
    close = {"rtol": 0, "atol": 1.2e-10}
    assert_allclose(run(A_X).ravel(), A_MPE, **close)
    assert_allclose(run(10 * A_X).ravel() / 100, A_TENFOLD, **close)
    kernels = run(B_X)
    assert_allclose(kernels[0].ravel(), B_MPE_0, **close)
    assert_allclose(kernels[5].ravel(), B_MPE_5, **close)
    assert_allclose(np.trace(kernels, axis1=1, axis2=2).mean(), 0.0636017851, **close)
    first = run(np.column_stack([A_X, A_Y]))[0].ravel()
    expected = [0.0896178928, 0.1022659740, 0.1022659740, 0.1220458642]
    assert_allclose(first, expected, **close)


def test_mpe_limit_oracle():
    """Exact decimals."""
    assert_allclose(limit_kernels(A_X, ones(A_X)).ravel(), A_LIMIT, rtol=1e-13)


@pytest.mark.parametrize("q, n", [(1, 7), (2, 9), (3, 8), (4, 6)])
@pytest.mark.parametrize("lam", [0.05, 1.0, 20.0])
def test_mpe_agrees_with_the_reference(q, n, lam):
    """Same start, same stopping rule, with and without weights."""
    rng = np.random.default_rng(10 * q + n)
    Z, w = rng.normal(size=(n, q)), rng.uniform(0.2, 3.0, size=n)
    w *= n / w.sum()
    plain = mpe_kernels(Z, ones(Z), lam=lam)[0]
    assert_allclose(plain, ref.mpe(Z, lam)[0], **RIDGED)
    weighted = mpe_kernels(Z, w, lam=lam)[0]
    assert_allclose(weighted, ref.mpe(Z, lam, weights=w)[0], **RIDGED)
    assert np.abs(weighted - plain).max() > 1e-3


def test_mpe_limit_agrees_with_the_reference():
    """With and without weights, far from the origin."""
    rng = np.random.default_rng(0)
    Z, w = rng.normal(size=(9, 3)) + 50.0, rng.uniform(0.2, 3.0, size=9)
    w *= 9 / w.sum()
    # Multiplied out at distance 50 from the origin: two digits are lost.
    assert_allclose(limit_kernels(Z, ones(Z)), ref.mpe_limit(Z), rtol=1e-10)
    assert_allclose(limit_kernels(Z, w), ref.mpe_limit(Z, w), rtol=1e-10)


@pytest.mark.parametrize("lam, tolerance", [(1e4, 1e-3), (1e7, 1e-6), (1e12, 1e-8)])
def test_mpe_tends_to_its_limit(lam, tolerance):
    """For lam -> infinity, by O(1 / lam)."""
    kernels = mpe_kernels(B_X, ones(B_X), lam=lam)[0]
    assert_allclose(kernels, limit_kernels(B_X, ones(B_X)), rtol=tolerance)


def test_mpe_scales_with_lam_in_units_of_a_density():
    """Ten times the data with lam / 10^q gives 100 times the kernels."""
    # To the limit: the identity start is not scaled. The limit is approached at a
    # linear rate, so that 1e-13 per step leaves less than 1e-11.
    small = mpe_kernels(B_X, ones(B_X), lam=1.0, tol=1e-14)[0]
    large = mpe_kernels(10 * B_X, ones(B_X), lam=0.01, tol=1e-12)[0]
    assert_allclose(large, 100 * small, rtol=1e-8)
    assert not np.allclose(mpe_kernels(10 * B_X, ones(B_X), lam=1.0)[0], 100 * small)


def test_mpe_of_duplicates_and_in_any_order():
    """Repeated rows are harmless, and kernels follow their rows."""
    rng = np.random.default_rng(3)
    Z = with_duplicates(rng, 12, 2)
    kernels = mpe_kernels(Z, ones(Z), lam=1.0)[0]
    assert_allclose(kernels, ref.mpe(Z)[0], **RIDGED)
    order = rng.permutation(12)
    assert_allclose(mpe_kernels(Z[order], ones(Z), lam=1.0)[0], kernels[order], **SAME)


def test_mpe_turns_and_shifts_with_the_data():
    """Rigid motions only: lam is a density."""
    rng = np.random.default_rng(4)
    Z, turn = rng.normal(size=(9, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    kernels = mpe_kernels(Z, ones(Z), lam=1.0)[0]
    moved = mpe_kernels(Z @ turn.T + 5.0, ones(Z), lam=1.0)[0]
    assert_allclose(moved, turn @ kernels @ turn.T, **RIDGED)


def test_mpe_warns_when_it_does_not_settle():
    """One iteration is never enough."""
    with pytest.warns(UserWarning, match="still change"):
        mpe_kernels(B_X, ones(B_X), lam=1.0, max_iter=1)


# ---------------------------------------------------------------- neighbours


def brute_force_neighbors(X, k):
    """Distances and rows, the first rows first among equals."""
    distances, neighbors = [], []
    for i in range(len(X)):
        found = sorted((ref.distance(X[i], X[j]), j) for j in range(len(X)) if j != i)
        distances.append([gap for gap, _ in found[:k]])
        neighbors.append([j for _, j in found[:k]])
    return np.array(distances), np.array(neighbors)


@pytest.mark.parametrize("d", [1, 2, 12, 13, 30])
@pytest.mark.parametrize("k", [1, 3, 39])
def test_nearest_rows(d, k):
    """Trees and products against all pairs, far from the origin."""
    X = np.random.default_rng(d).normal(size=(40, d)) + 100.0
    distances, neighbors = nearest_rows(X, k)
    expected, rows = brute_force_neighbors(X, k)
    assert_allclose(distances, expected, rtol=1e-12)
    assert_array_equal(neighbors, rows)


@pytest.mark.parametrize("d", [2, 13])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_nearest_rows_with_ties(d, k):
    """Repeated rows and equal distances: the first rows come first."""
    X = np.zeros((40, d))
    X[:, :2] = np.random.default_rng(0).integers(0, 4, size=(40, 2))
    distances, neighbors = nearest_rows(X, k)
    expected, rows = brute_force_neighbors(X, k)
    assert_allclose(distances, expected, rtol=1e-12)
    assert_array_equal(neighbors, rows)


def test_nearest_rows_of_some():
    """Only the rows asked for."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    chosen = np.array([3, 17, 0])
    distances, neighbors = nearest_rows(X, 4, chosen)
    expected, rows = brute_force_neighbors(X, 4)
    assert_allclose(distances, expected[chosen], rtol=1e-12)
    assert_array_equal(neighbors, rows[chosen])


@pytest.mark.parametrize("d", [1, 3, 14])
def test_nearest_distances(d):
    """To rows that differ; 0 where there is none."""
    X = with_duplicates(np.random.default_rng(d), 30, d)
    expected = ref.nearest_distances(X, distinct=True)
    assert_allclose(nearest_distances(X), expected, rtol=1e-12)
    assert_array_equal(nearest_distances(np.ones((4, d))), np.zeros(4))
    assert_array_equal(nearest_distances(np.ones((1, d))), np.zeros(1))


# ---------------------------------------------------------------- matching


def as_sets(pairs):
    return {frozenset(int(i) for i in pair) for pair in pairs}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_matching_of_few_rows(n):
    """Every row is in one pair, but for an odd one."""
    X = np.random.default_rng(n).normal(size=(n, 2))
    pairs, leftover = match_pairs(X)
    expected, rest = closest_pairs(X)
    assert pairs.shape == (n // 2, 2) and leftover.shape == (n % 2,)
    assert as_sets(pairs) == as_sets(expected)
    assert leftover.tolist() == rest


@pytest.mark.parametrize("n, d", [(11, 1), (50, 2), (75, 13), (120, 3), (151, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_matching_is_the_greedy_one(n, d, seed):
    """Neighbour lists find the pairs that all distances give."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    pairs, leftover = match_pairs(X)
    expected, rest = closest_pairs(X)
    assert as_sets(pairs) == as_sets(expected)
    assert leftover.tolist() == rest


def greedy_by_sorting(X):
    """The greedy matching from all pairs in order of distance, then of row numbers."""
    n = len(X)
    gaps = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    first, second = np.triu_indices(n, 1)
    order = np.lexsort((second, first, gaps[first, second]))
    free, pairs = np.ones(n, dtype=bool), []
    for i, j in zip(first[order], second[order], strict=True):
        if free[i] and free[j]:
            free[[i, j]] = False
            pairs.append((i, j))
    return pairs, np.flatnonzero(free).tolist()


@pytest.mark.parametrize("n, d", [(300, 2), (299, 5), (300, 20)])
def test_matching_of_many_rows(n, d):
    """Several rounds of lists; clusters use up the lists of their rows."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    X[: n // 2] *= 1e-3
    pairs, leftover = match_pairs(X)
    expected, rest = greedy_by_sorting(X)
    assert as_sets(pairs) == as_sets(expected)
    assert leftover.tolist() == rest


@pytest.mark.parametrize("levels", [2, 5, 12])
@pytest.mark.parametrize("n", [9, 40, 81])
def test_matching_with_ties(n, levels):
    """Whole numbers: among equal distances the lowest row numbers are taken."""
    X = np.random.default_rng(n).integers(0, levels, size=(n, 2)).astype(float)
    pairs, leftover = match_pairs(X)
    expected, rest = greedy_by_sorting(X)
    assert as_sets(pairs) == as_sets(expected)
    assert leftover.tolist() == rest


def test_matching_of_a_line_of_equal_steps():
    """Circles of equal distances end too."""
    X = np.arange(33.0)[:, None]
    pairs, leftover = match_pairs(X)
    assert as_sets(pairs) == {frozenset((2 * i, 2 * i + 1)) for i in range(16)}
    assert leftover.tolist() == [32]


# ---------------------------------------------------------------- coordinates


def coordinates(X, w=None, standardize=True):
    return Coordinates(X, ones(X) if w is None else w, standardize=standardize)


def test_standardised_coordinates():
    """Deviations that divide by n; with weights, weighted ones."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(20, 3)) * [1, 10, 0.1] + 5, rng.uniform(size=20)
    found = coordinates(X)
    assert_allclose(found.points, ref.standardize(X)[0], rtol=1e-12)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-12)
    weighted = coordinates(X, w)
    center = (w @ X) / w.sum()
    expected = np.sqrt(w @ (X - center) ** 2 / w.sum())
    assert_allclose(weighted.scale, expected, rtol=1e-12)
    raw = coordinates(X, standardize=False)
    assert_allclose(raw.points - raw.points[0], X - X[0], atol=1e-13)


def test_constant_columns_are_left_out():
    """Also one that is constant up to the rounding of its mean."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1], X[:, 3] = 0.1, 1e9
    found = coordinates(X)
    assert found.kept.tolist() == [0, 2]
    assert found.n_dimensions == 2
    assert coordinates(np.ones((3, 2))).n_dimensions == 0


@pytest.mark.parametrize("n, p, r", [(4, 6, 3), (6, 6, 5), (10, 4, 2), (2, 3, 1)])
def test_dependent_columns(n, p, r):
    """Coordinates span the rows and keep their distances; moves stay in the span."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, min(r, n))) @ rng.normal(size=(min(r, n), p)) + 3.0
    found = coordinates(X)
    Z = ref.standardize(X)[0]
    assert found.n_dimensions == found.points.shape[1] == r
    gaps = ((found.points[:, None] - found.points) ** 2).sum(axis=2)
    assert_allclose(gaps, ((Z[:, None] - Z) ** 2).sum(axis=2), atol=1e-12)
    back = found.displace(found.points - found.points[0])
    assert_allclose(back, X - X[0], atol=1e-12)
    coef = rng.normal(size=p)
    moves = rng.normal(size=(5, r))
    rises = found.displace(moves) @ coef[found.kept]
    assert_allclose(moves @ found.slopes(coef[found.kept]), rises, atol=1e-12)


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: polars().DataFrame(columns),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_dataframes_move_their_numbers_only(kind):
    """Text, truth values and named columns stay; names and order too."""
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.normal(size=6),
        "text": list("uvwxyz"),
        "b": rng.integers(0, 50, size=6),
        "flag": [True, False, True, True, False, True],
        "named": rng.normal(size=6),
    }
    table = Table(FRAMES[kind](columns), ["named"])
    assert table.movable.tolist() == [0, 2]
    rows = np.array([4, 0, 4])
    moved = table.moved(rows, np.array([1]), np.array([[0.5], [0.25], [-1.0]]))
    assert type(moved) is type(table.X)
    assert list(moved.columns) == list(columns)
    assert_array_equal(moved["a"].to_numpy(), columns["a"][rows])
    expected = columns["b"][rows] + [0.5, 0.25, -1.0]
    assert_array_equal(moved["b"].to_numpy(), expected)
    assert moved["text"].to_list() == ["y", "u", "y"]
    assert moved["flag"].to_list() == [False, True, False]
    # What was given is untouched.
    assert_array_equal(table.X["b"].to_numpy(), columns["b"])


@pytest.mark.parametrize(
    "chosen", [[False, True, False], [1], [-2]], ids=["mask", "number", "from the end"]
)
def test_categorical_features_of_arrays(chosen):
    """Mask or numbers of columns that stay."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    table = Table(X, chosen)
    assert table.movable.tolist() == [0, 2]
    moved = table.moved(np.arange(8), np.array([0, 1]), np.ones((8, 2)))
    assert_array_equal(moved, X + [1, 0, 1])


@pytest.mark.parametrize(
    "chosen, message",
    [
        ([True, False], "one entry for each"),
        ([3], r"in \[0, 3\)"),
        (["a"], "no column names"),
    ],
)
def test_categorical_features_that_do_not_exist(chosen, message):
    """Errors name the parameter."""
    with pytest.raises(ValueError, match=f"categorical_features.*{message}"):
        Table(np.zeros((4, 3)), chosen)


def test_few_values_are_warned_of():
    """From 21 rows on, unless categorical_features says that there are none."""
    X = np.random.default_rng(0).normal(size=(21, 3))
    X[:, 1] = np.arange(21) % 10
    with pytest.warns(UserWarning, match=r"columns \[1\] have at most 10"):
        Table(X, None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "n, levels, chosen", [(20, 4, None), (40, 11, None), (40, 4, [])]
)
def test_enough_values_are_not_warned_of(n, levels, chosen):
    """Few rows, many values, or said to be fine."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    X[:, 0] = np.arange(n) % levels
    Table(X, chosen)


def test_kernels_leave_out_what_does_not_move():
    """Constant and categorical columns count for no distance, and get zeros."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 5)) * [1, 2, 3, 4, 5], rng.normal(size=12)
    X[:, 1] = 7.0
    free = [0, 2, 4]
    options = {"method": "x", "kernel": "mpe"}
    alone = fitted_kernel(X[:, free], y, **options)
    actual = fitted_kernel(X, y, categorical_features=[3], **options)
    expected = np.zeros((12, 5, 5))
    expected[np.ix_(range(12), free, free)] = alone
    assert_allclose(actual, expected, **SAME)
    assert (alone != 0).all()


# ---------------------------------------------------------------- roots


def test_triangular_roots_of_regular_matrices():
    """Lower triangular, and their squares are the covariances."""
    S = covariances(np.random.default_rng(0), 5, 4)
    roots = triangular_roots(S)
    assert_array_equal(roots, np.tril(roots))
    assert_allclose(roots @ roots.transpose(0, 2, 1), S, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_triangular_roots_of_singular_matrices(rank):
    """One singular matrix among regular ones; its own size does not matter."""
    rng = np.random.default_rng(rank)
    S = covariances(rng, 3, 3)
    half = rng.normal(size=(3, rank))
    S[1] = 1e-6 * half @ half.T
    roots = triangular_roots(S)
    assert_array_equal(roots, np.tril(roots))
    # Null directions are known to the square root of rounding only, in the roots.
    assert_allclose(roots @ roots.transpose(0, 2, 1), S, rtol=1e-9, atol=1e-21)


def test_indefinite_matrices_are_refused():
    """Beyond rounding; up to rounding they count as singular."""
    S = np.array([np.eye(2), [[1.0, 0.0], [0.0, -1e-6]]])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        triangular_roots(S)
    S[1, 1, 1] = -1e-12
    roots = triangular_roots(S)
    assert_allclose(roots @ roots.transpose(0, 2, 1), S, atol=2e-12)


@pytest.mark.parametrize("shape", [(1,), (4,), (1, 3), (4, 3), (1, 3, 3), (4, 3, 3)])
def test_kernels_by_their_roots(shape):
    """Moves, variances along slopes and covariances of all three shapes of roots."""
    rng = np.random.default_rng(len(shape))
    roots = rng.uniform(0.2, 1.0, size=shape)
    kernels = Kernels(np.tril(roots) if len(shape) == 3 else roots, 3)
    full = np.zeros((4, 3, 3))
    for i in range(4):
        root = kernels.roots[min(i, shape[0] - 1)]
        full[i] = root if root.ndim == 2 else np.diag(np.broadcast_to(root, 3))
    S = full @ full.transpose(0, 2, 1)
    nodes, slopes = rng.normal(size=(4, 2, 5, 3)), rng.normal(size=(4, 3))
    expected = np.einsum("iab,istb->ista", full, nodes)
    assert_allclose(kernels.move(nodes), expected, rtol=1e-12)
    assert_allclose(np.broadcast_to(kernels.covariances(), S.shape), S, rtol=1e-12)
    assert_allclose(np.broadcast_to(kernels.matrices(), S.shape), full, rtol=1e-12)
    variances = np.einsum("ia,iab,ib->i", slopes, S, slopes)
    assert_allclose(kernels.quadratic(slopes), variances, rtol=1e-12)
    part = kernels.part(np.array([2, 0]))
    nodes = nodes[[2, 0]]
    assert_allclose(part.move(nodes), expected[[2, 0]], rtol=1e-12)


# ---------------------------------------------------------------- fitted scorers


@pytest.mark.parametrize(
    "X, y, options, first",
    [
        (A_X, A_Y, {"method": "x", "kernel": "mpe"}, [A_MPE[0]]),
        (B_X, B_Y, {"method": "x", "kernel": "mpe"}, B_MPE_0),
        (A_X, A_Y, {"method": "x", "kernel": "mm"}, [0.2757291102**2]),
        (A_X, A_Y, {"method": "x", "kernel": "mm_exact"}, [0.5639411344**2]),
        (
            B_X,
            B_Y,
            {"method": "x", "kernel": "mm_diag"},
            [0.1775528361**2, 0, 0, 0.1253314137**2],
        ),
        (
            A_X,
            A_Y,
            {"method": "xy", "kernel": "mpe"},
            [0.0896178928, 0.1022659740, 0.1022659740, 0.1220458642],
        ),
        (C_X, C_Y, {}, [0.8730004551**2, 0, 0, 0.8730004551**2]),
    ],
)
def test_fitted_kernel_oracles(X, y, options, first):
    """The first row's covariance without standardisation, known to ten digits."""
    actual = fitted_kernel(X, y, standardize=False, **options)[0].ravel()
    # Algorithm 1 stops at changes of 1e-8.
    assert_allclose(actual, first, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("method", ["x", "xy"])
@pytest.mark.parametrize("kernel", ["mpe", "mpe_limit"])
@pytest.mark.parametrize("standardize", [True, False])
def test_fitted_kernels_of_algorithm_1(method, kernel, standardize):
    """In units of the columns, of X and y for joint kernels."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(9, 2)) * [1, 20], 3 * rng.normal(size=9)
    Z = np.column_stack([X, y]) if method == "xy" else X
    expected = ref.mpe_limit(Z)
    if kernel == "mpe":
        expected = ref.mpe(Z, scale=standardize)[0]
    actual = fitted_kernel(X, y, method=method, kernel=kernel, standardize=standardize)
    size = np.abs(expected).max(axis=(0,))
    assert_allclose(actual / size, expected / size, **RIDGED)


def test_fitted_kernels_of_several_targets():
    """Joint kernels with two outputs."""
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)) * [5, 0.1]
    actual = fitted_kernel(X, y, method="xy", kernel="mpe")
    expected = ref.mpe(np.column_stack([X, y]), scale=True)[0]
    size = np.abs(expected).max(axis=0)
    assert_allclose(actual / size, expected / size, **RIDGED)


def test_fitted_kernels_of_few_rows():
    """n <= d: kernels within the span of the rows."""
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(5, 8)), rng.normal(size=5)
    actual = fitted_kernel(X, y, method="x", kernel="mpe")
    assert_allclose(actual, ref.mpe(X, scale=True)[0], **RIDGED)
    actual = fitted_kernel(X, y, method="x", kernel="mm")
    Z, _, sd = ref.standardize(X)
    sigma = ref.mm_approx(Z)
    axes = np.linalg.svd(Z)[2][:4]
    expected = sigma**2 * np.outer(sd, sd) * (axes.T @ axes)
    assert_allclose(actual, np.broadcast_to(expected, actual.shape), **SAME)


@pytest.mark.parametrize("kernel", ["mm", "mm_exact", "mm_diag", 0.4])
@pytest.mark.parametrize("standardize", [True, False])
def test_fitted_widths(kernel, standardize):
    """One width for all rows, in units of the columns."""
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(10, 2)) * [1, 3], rng.normal(size=10)
    Z = ref.standardize(X)[0] if standardize else X
    nodes = normal_points(sobol(2, 0), _bandwidths._EXACT_NODES)
    width = {
        "mm": lambda: ref.mm_approx(Z),
        "mm_exact": lambda: ref.mm_exact(Z, nodes),
        "mm_diag": lambda: ref.mm_diag(Z),
    }.get(kernel, lambda: kernel)()
    deviations = width * (X.std(axis=0) if standardize else np.ones(2))
    actual = BolsteredScorer(method="x", kernel=kernel, standardize=standardize)
    actual = actual.fit(X, y).kernel_
    assert actual.shape == (2, 2)
    assert_allclose(actual, np.diag(deviations**2), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["mm", "mm_exact", "mm_diag", "mpe", "mpe_limit"])
def test_fitted_kernels_of_classes(kernel):
    """Every class by itself, after columns were standardised together."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(14, 2)) * [1, 3]
    y = np.array(["b", "a"] * 7)
    Z, _, sd = ref.standardize(X)
    nodes = normal_points(sobol(2, 0), _bandwidths._EXACT_NODES)
    make = {
        "mm": lambda R: ref.mm_approx(R, "median", dim=2) ** 2 * np.eye(2),
        "mm_exact": lambda R: ref.mm_exact(R, nodes) ** 2 * np.eye(2),
        "mm_diag": lambda R: np.diag(ref.mm_diag(R) ** 2),
        "mpe": lambda R: ref.mpe(R)[0],
        "mpe_limit": lambda R: ref.mpe_limit(R),
    }[kernel]
    expected = np.zeros((14, 2, 2))
    expected[y == "a"], expected[y == "b"] = make(Z[y == "a"]), make(Z[y == "b"])
    actual = fitted_kernel(X, y, method="x", kernel=kernel)
    assert_allclose(actual, np.outer(sd, sd) * expected, **RIDGED)


@pytest.mark.parametrize("kernel", ["mpe", "mpe_limit"])
def test_classes_of_two_rows_take_the_pooled_limit(kernel):
    """Fewer than three rows determine no kernel."""
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(12, 2)), np.r_[np.zeros(10, int), 1, 1]
    Z, _, sd = ref.standardize(X)
    actual = fitted_kernel(X, y, method="x", kernel=kernel)
    expected = np.outer(sd, sd) * ref.mpe_limit(Z)
    assert_allclose(actual[10:], expected[10:], **SAME)
    assert not np.allclose(actual[:10], expected[:10])


@pytest.mark.parametrize("kernel", ["mm", "mm_exact", "mm_diag"])
def test_classes_of_one_row_are_moved_too(kernel):
    """They have no distance of their own."""
    X = np.random.default_rng(13).normal(size=(12, 2))
    y = np.r_[np.zeros(11, int), 1]
    actual = fitted_kernel(X, y, method="x", kernel=kernel)
    assert (np.diagonal(actual[11]) > 0).all()


@pytest.mark.parametrize("shape", ["one", "per row"])
@pytest.mark.parametrize("kind", ["array", "callable"])
def test_given_kernels_come_back(shape, kind):
    """Arrays and callables in units of the columns, whatever the standardisation."""
    rng = np.random.default_rng(14)
    X, y = rng.normal(size=(7, 2)) * [1, 10], rng.normal(size=7)
    S = covariances(rng, 7, 2) if shape == "per row" else covariances(rng, 1, 2)[0]
    kernel = S if kind == "array" else lambda X, y: S
    actual = BolsteredScorer(method="x", kernel=kernel).fit(X, y).kernel_
    assert_allclose(actual, S, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel, message",
    [
        (np.eye(3), "shape"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "finite"),
    ],
)
def test_kernels_that_are_none_are_refused(kernel, message):
    """Wrong shape, not symmetric, indefinite, not finite."""
    with pytest.raises(ValueError, match=message):
        BolsteredScorer(method="x", kernel=kernel).fit(B_X, B_Y)


def test_kernels_with_weights():
    """Weights enter the deviations of columns, distances and Algorithm 1."""
    rng = np.random.default_rng(15)
    X, y, w = rng.normal(size=(8, 2)), rng.normal(size=8), rng.uniform(0.2, 3, size=8)
    sd = np.sqrt(w @ (X - w @ X / w.sum()) ** 2 / w.sum())
    Z = X / sd
    fit = lambda kernel: (
        BolsteredScorer(method="x", kernel=kernel).fit(X, y, sample_weight=w).kernel_
    )
    sigma = ref.mm_approx(Z, weights=w)
    assert_allclose(fit("mm"), np.diag((sigma * sd) ** 2), rtol=1e-9)
    expected = ref.mpe(Z, weights=8 * w / w.sum())[0]
    assert_allclose(fit("mpe"), np.outer(sd, sd) * expected, **RIDGED)
    expected = ref.mpe_limit(Z, w)
    assert_allclose(fit("mpe_limit"), np.outer(sd, sd) * expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["mm", "mm_exact", "mm_diag", "mpe", "mpe_limit"])
def test_columns_that_are_constant_in_a_class(kernel):
    """The class is not moved along them, unless one width is for all columns."""
    rng = np.random.default_rng(16)
    X, y = rng.normal(size=(14, 2)), np.arange(14) % 2
    X[y == 1, 1] = 0.7
    Z, _, sd = ref.standardize(X)
    line = Z[y == 1]
    nodes = normal_points(sobol(2, 0), _bandwidths._EXACT_NODES)
    expected = {
        "mm": lambda: ref.mm_approx(line, "median", dim=2) ** 2 * np.eye(2),
        "mm_exact": lambda: ref.mm_exact(line, nodes) ** 2 * np.eye(2),
        "mm_diag": lambda: np.diag([ref.mm_diag(line[:, :1])[0] ** 2, 0.0]),
        "mpe": lambda: ref.mpe(line)[0],
        "mpe_limit": lambda: ref.mpe_limit(line),
    }[kernel]()
    actual = fitted_kernel(X, y, method="x", kernel=kernel)[y == 1]
    expected = np.broadcast_to(np.outer(sd, sd) * expected, actual.shape)
    assert_allclose(actual, expected, **RIDGED)


@pytest.mark.parametrize("kernel", ["mpe", "mpe_limit", "mm", "mm_diag", 0.3])
def test_joint_kernels_with_a_constant_target(kernel):
    """The kernels of the features, and no variance of the target (but a given one)."""
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(9, 2)), np.full(9, 3.0)
    alone = fitted_kernel(X, y, method="x", kernel=kernel, loss="squared")
    joint = fitted_kernel(X, y, method="xy", kernel=kernel, loss="squared")
    assert joint.shape == (9, 3, 3) and np.isfinite(joint).all()
    assert_allclose(joint[:, :2, 2], 0.0, atol=1e-12)
    if kernel in ("mpe", "mpe_limit", "mm_diag"):
        assert_allclose(joint[:, :2, :2], alone, **RIDGED)
        assert_allclose(joint[:, 2, 2], 0.0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["mpe", "mpe_limit"])
def test_joint_kernels_of_an_exact_line(kernel):
    """Targets that are linear in the features: a rank less, no error added."""
    rng = np.random.default_rng(18)
    X = rng.normal(size=(9, 2))
    y = X @ [1.0, -2.0] + 3.0
    Z = np.column_stack([X, y])
    actual = fitted_kernel(X, y, method="xy", kernel=kernel)
    expected = ref.mpe(Z, scale=True)[0] if kernel == "mpe" else ref.mpe_limit(Z)
    assert_allclose(actual, expected, rtol=1e-8, atol=1e-9)
    a = np.array([1.0, -2.0, -1.0])
    assert_allclose(np.einsum("a,iab,b->i", a, actual, a), 0.0, atol=1e-12)


@pytest.mark.filterwarnings("error")
def test_no_width_says_what_it_means():
    """kernel=0.0 is resubstitution, and not a property of the rows."""
    assert (BolsteredScorer(method="x", kernel=0.0).fit(B_X, B_Y).kernel_ == 0).all()


def test_identical_rows_are_warned_of():
    """There is nothing to measure a width by."""
    X, y = np.array([[0.5], [0.5], [0.5]]), np.array([1.0, 2.0, 4.0])
    with pytest.warns(UserWarning, match="resubstitution error"):
        BolsteredScorer(method="x", kernel="mpe").fit(X, y)
