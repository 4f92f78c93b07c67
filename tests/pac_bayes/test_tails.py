"""Exact limits fail with probability delta at most, by enumeration of all outcomes."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import votes as ref
from scipy.stats import binom, kstest, multinomial

from pac_bayes.toy import frozen_vote
from skbounds.pac_bayes import PACBayesEnsembleClassifier, binomial_tail_bound
from skbounds.pac_bayes._tails import (
    hoeffding_bentkus_limit,
    randomized_tail_limit,
    tail_limit,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*certification rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*vacuous:UserWarning"),
    pytest.mark.filterwarnings("ignore:No training row has:UserWarning"),
]

GRID = np.unique(np.r_[np.geomspace(1e-4, 0.5, 40), np.linspace(0.01, 0.99, 99)])


def certified(predicted, truth, labels=(0, 1), **params):
    """Return an ensemble whose vote made these predictions on certification rows."""
    X, members = frozen_vote(np.asarray(predicted)[:, None], labels)
    params = {"random_state": 0, **params}
    return PACBayesEnsembleClassifier(members, **params).fit(X, truth)


# ------------------------------------------------------------------- the exact tail


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.4, 0.9])
def test_exact_tail_is_that_of_whole_numbers(delta):
    """All counts of some sample sizes against sums of whole numbers."""
    for m in (1, 2, 7, 23, 60):
        k = np.arange(m + 1)
        expected = [ref.exact_tail(i, m, delta) for i in k]
        assert_allclose(tail_limit(k, m, delta), expected, rtol=1e-9)
        assert_allclose(binomial_tail_bound(k, m, delta=delta), expected, rtol=1e-9)
    assert tail_limit(0, 0, delta) == 1.0


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_exact_tail_fails_seldom_enough(delta):
    """P(p > limit) by enumeration, on a grid of p and just below every limit."""
    for m in range(1, 61):
        k = np.arange(m + 1)
        limit = tail_limit(k, m, delta)
        # The probability of failure is largest just above a limit.
        p = np.r_[GRID, limit[:-1] * (1.0 + 1e-12)]
        chance = binom.pmf(k, m, p[:, None])
        failures = np.sum(chance * (p[:, None] > limit), axis=1)
        assert failures.max() <= delta + 1e-9
        # And it is the smallest such limit: there it fails with probability delta.
        assert_allclose(failures[len(GRID) :], delta, rtol=1e-6)


# ------------------------------------------------------------------- the random tail


@given(
    st.integers(1, 40), st.floats(0.0, 1.0), st.floats(1e-4, 0.9), st.floats(0.0, 1.0)
)
def test_randomized_tail_is_that_of_the_definition(m, share, delta, u):
    """Against bisection in whole numbers; never above the exact tail."""
    k = round(share * m)
    limit = randomized_tail_limit(k, m, delta, u)
    expected = ref.randomized_tail(k, m, delta, u)
    if 1.0 - 1e-9 < expected < 1.0 or abs(u - delta) < 1e-9:
        # Next to certainty the two sides of the equation are equal to rounding.
        return
    assert_allclose(limit, expected, rtol=1e-8, atol=1e-10)
    assert limit <= tail_limit(k, m, delta) + 1e-15


@pytest.mark.parametrize(("k", "u", "limit"), [(0, 0.04, 0.0), (9, 0.06, 1.0)])
def test_randomized_tail_at_the_ends(k, u, limit):
    """No errors and a small u: 0; nothing but errors and a large u: 1."""
    assert randomized_tail_limit(k, 9, 0.05, u) == limit


@pytest.mark.parametrize(
    ("m", "ps"), [(1, (0.02, 0.3, 0.97)), (7, (0.05, 0.4, 0.8)), (60, (0.03, 0.3))]
)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_randomized_tail_fails_with_probability_delta(m, ps, delta):
    """The u below which it fails, for every count: their mean is delta."""
    for p in ps:
        total = 0.0
        for k in range(m + 1):
            low, high = 0.0, 1.0
            if p <= randomized_tail_limit(k, m, delta, 0.0):
                continue
            if p > randomized_tail_limit(k, m, delta, 1.0):
                low = 1.0
            while high - low > 1e-9:
                u = 0.5 * (low + high)
                below = p > randomized_tail_limit(k, m, delta, u)
                low, high = (u, high) if below else (low, u)
            total += low * binom.pmf(k, m, p)
        assert_allclose(total, delta, atol=1e-7)


def test_the_number_that_randomizes_is_uniform():
    """Drawn from random_state: other states, other limits, of the right law."""
    wrong = np.arange(40) < 9
    found, exact = [], ref.exact_tail(9, 40, 0.05)
    for seed in range(250):
        clf = certified(wrong, np.zeros(40), tail="randomized", random_state=seed)
        assert clf.vote_bound_ <= exact
        assert clf.bound_terms_["vote_randomized_tail"] == clf.vote_bound_
        found.append(clf.vote_bound_)
    again = certified(wrong, np.zeros(40), tail="randomized", random_state=249)
    assert again.vote_bound_ == found[-1]
    p = np.array(found)
    u = (0.05 - binom.cdf(8, 40, p)) / binom.pmf(9, 40, p)
    assert kstest(u, "uniform").pvalue > 1e-4
    assert_allclose(again.vote_bound(0.2), ref.randomized_tail(9, 40, 0.2, u[-1]))
    assert certified(wrong, np.zeros(40)).vote_bound_ == pytest.approx(exact)


# ------------------------------------------------------------------- class by class


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("delta", [None, 0.2])
def test_class_bounds_are_those_of_the_definition(delta, simultaneous):
    """Counts, levels and limits of every class; classes without rows have 1."""
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c", "d"])
    truth = rng.choice(3, size=90, p=[0.6, 0.3, 0.1])
    predicted = np.where(rng.uniform(size=90) < 0.3, rng.integers(3, size=90), truth)
    # "a" is never predicted of itself, "d" occurs neither here nor there.
    clf = certified(predicted, labels[truth], list(labels), delta=0.07)
    found = clf.class_bounds(delta=delta, simultaneous=simultaneous)
    level = 0.07 if delta is None else delta
    expected = ref.class_bounds(
        labels[predicted], labels[truth], labels, level, simultaneous
    )
    assert set(found) == {*expected, "n_true", "n_predicted", "delta"}
    for name, limits in expected.items():
        assert_allclose(found[name], limits, rtol=1e-9)
    assert_array_equal(found["n_true"], [*np.bincount(truth, minlength=3), 0])
    assert_array_equal(found["n_predicted"], [*np.bincount(predicted), 0])
    assert found["recall_error"][3] == found["precision_error"][3] == 1.0
    assert_allclose(found["delta"], level / 8 if simultaneous else level)


def test_class_bounds_count_unknown_labels_as_false_alarms():
    """A row of no class is an error of what was predicted for it."""
    predicted, truth = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 9, 1, 1, 9, 1])
    found = certified(predicted, truth).class_bounds()
    assert_array_equal(found["n_true"], [1, 3])
    assert_array_equal(found["n_predicted"], [3, 3])
    expected = ref.class_bounds(predicted, truth, [0, 1], 0.05)
    for name in ("recall_error", "precision_error"):
        assert_allclose(found[name], expected[name], rtol=1e-9)


@pytest.mark.parametrize("simultaneous", [False, True])
def test_class_bounds_fail_seldom_enough(simultaneous):
    """All outcomes of few rows: four cells, their probabilities, the failures."""
    m, delta = 14, 0.15
    cells = [c for c in product(range(m + 1), repeat=4) if sum(c) == m]
    bounds = {}
    for a, b, c, d in cells:
        # Truth and prediction 00, 01, 10, 11.
        for n, wrong in ((a + b, b), (c + d, c), (a + c, c), (b + d, b)):
            if (n, wrong) not in bounds:
                truth = np.r_[np.zeros(n), np.ones(14)].astype(int)
                guess = np.r_[np.ones(wrong), np.zeros(n - wrong), np.zeros(14)]
                found = certified(guess.astype(int), truth).class_bounds(
                    delta, simultaneous
                )
                bounds[n, wrong] = found["recall_error"][0]
    for law in ([0.4, 0.1, 0.2, 0.3], [0.7, 0.1, 0.1, 0.1], [0.05, 0.02, 0.03, 0.9]):
        chance = multinomial.pmf(cells, m, law)
        assert_allclose(chance.sum(), 1.0)
        pa, pb, pc, pd = law
        risks = (pb / (pa + pb), pc / (pc + pd), pc / (pa + pc), pb / (pb + pd))
        failed = np.array(
            [
                [risk > bounds[n, k] for risk, (n, k) in zip(risks, pairs, strict=True)]
                for pairs in (
                    ((a + b, b), (c + d, c), (a + c, c), (b + d, b))
                    for a, b, c, d in cells
                )
            ]
        )
        each, together = chance @ failed, chance @ failed.any(axis=1)
        assert each.max() <= delta + 1e-9
        if simultaneous:
            assert together <= delta + 1e-9
            assert each.max() <= delta / 4 + 1e-9


@pytest.mark.parametrize("m", [5, 30, 60])
def test_bounds_of_unseen_classes_fail_seldom_enough(m):
    """Classes of probability p that no training row has: by enumeration."""
    delta = 0.05
    limits = []
    for k in range(m + 1):
        truth = np.r_[np.full(k, 7), np.zeros(m - k)].astype(int)
        clf = certified(np.zeros(m, dtype=int), truth)
        assert_array_equal(clf.trained_classes_, [0, 1])
        limits.append(clf.unseen_class_bound_)
    assert_allclose(limits, [ref.exact_tail(k, m, delta) for k in range(m + 1)])
    chance = binom.pmf(np.arange(m + 1), m, GRID[:, None])
    failures = np.sum(chance * (GRID[:, None] > np.array(limits)), axis=1)
    assert failures.max() <= delta + 1e-9


# ------------------------------------------------------------------- costs


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.floats(1e-4, 0.5))
def test_hoeffding_bentkus_is_that_of_the_definition(m, mean, delta):
    """Against bisection on the p-value."""
    expected = ref.hoeffding_bentkus(mean, m, delta)
    assert_allclose(hoeffding_bentkus_limit(mean, m, delta), expected, rtol=1e-7)


def test_hoeffding_bentkus_with_whole_numbers_of_errors():
    """A mean of 7/100 is seven errors, not eight: products round."""
    for k in range(101):
        limit = hoeffding_bentkus_limit(k / 100, 100, 0.05)
        assert_allclose(limit, ref.hoeffding_bentkus(k / 100, 100, 0.05), rtol=1e-7)
        assert limit >= ref.exact_tail(k, 100, 0.05) * (1.0 - 1e-12)


COSTS = {
    "errors": [[0, 1], [1, 0]],
    "one kind": [[0, 0], [30, 0]],
    "two kinds": [[0, 1], [10, 0]],
    "all rows": [[2, 2], [2, 2]],
    "answers cost": [[1, 3], [2, 0]],
}


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS.keys())
def test_cost_bounds_are_those_of_the_definition(costs):
    """The exact tail for costs 0 and c, otherwise Hoeffding-Bentkus."""
    rng = np.random.default_rng(1)
    truth, predicted = rng.integers(2, size=(2, 50))
    truth[:3] = 9
    costs, largest = np.array(costs, dtype=float), np.max(costs)
    paid = [costs[t, p] if t < 2 else largest for t, p in zip(truth, predicted,
                                                              strict=True)]  # fmt: skip
    clf = certified(predicted, truth)
    for delta in (None, 0.2):
        level = 0.05 if delta is None else delta
        if set(costs.ravel()) <= {0.0, largest}:
            expected = ref.exact_tail(np.count_nonzero(paid), 50, level)
        else:
            expected = ref.hoeffding_bentkus(np.mean(paid) / largest, 50, level)
        assert_allclose(clf.cost_bound(costs, delta), largest * expected, rtol=1e-7)
    assert clf.cost_bound(np.zeros((2, 2))) == 0.0
    assert_allclose(clf.cost_bound(1 - np.eye(2)), clf.vote_bound_, rtol=1e-9)
    assert_allclose(clf.cost_bound(costs * 7), 7 * clf.cost_bound(costs), rtol=1e-7)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_cost_bounds_fail_seldom_enough(delta):
    """All outcomes of 30 rows that cost 0, 1 or 4, for several laws."""
    m = 30
    cells = [(a, b, m - a - b) for a in range(m + 1) for b in range(m + 1 - a)]
    # Costs nothing, 1, 4: predictions of two kinds for one class.
    limits = []
    for _, one, four in cells:
        mean = (one + 4 * four) / (4 * m)
        limits.append(4 * hoeffding_bentkus_limit(mean, m, delta))
    truth, predicted = np.array([0, 0, 1]), np.array([0, 1, 0])
    clf = certified(np.repeat(predicted, cells[200]), np.repeat(truth, cells[200]))
    assert_allclose(clf.cost_bound([[0, 1], [4, 0]], delta), limits[200])
    for law in ([0.5, 0.3, 0.2], [0.8, 0.19, 0.01], [0.9, 0.0, 0.1], [0.1, 0.1, 0.8]):
        chance = multinomial.pmf(cells, m, law)
        cost = law[1] + 4 * law[2]
        assert chance @ (cost > np.array(limits)) <= delta + 1e-9


@pytest.mark.parametrize(
    "costs", [[[0, 1]], [[0, -1], [1, 0]], [[0, np.nan], [1, 0]], [[0, np.inf], [1, 0]]]
)
def test_bad_costs(costs):
    """Of the wrong shape, negative, not finite."""
    clf = certified(np.array([0, 1, 0]), np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"costs must be finite and non-negative"):
        clf.cost_bound(costs)


def test_only_a_vote_fixed_before_has_such_bounds():
    """Weights that saw the rows have none; nor have members trained again."""
    rng = np.random.default_rng(2)
    X, members = frozen_vote(rng.integers(2, size=(60, 3)))
    truth = rng.integers(2, size=60)
    for kind in ("bound", "tandem"):
        clf = PACBayesEnsembleClassifier(members, posterior=kind, random_state=0)
        clf.fit(X, truth)
        with pytest.raises(ValueError, match=r"class_bounds needs a vote whose"):
            clf.class_bounds()
        with pytest.raises(ValueError, match=r"cost_bound needs a vote whose"):
            clf.cost_bound(1 - np.eye(2))
    clf = PACBayesEnsembleClassifier(members, random_state=0).fit(X, truth)
    for call in (clf.class_bounds, lambda d: clf.cost_bound(1 - np.eye(2), d)):
        with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\)"):
            call(1.0)


def test_number_of_outcomes_is_right():
    """The enumerations above are complete."""
    assert sum(1 for c in product(range(15), repeat=4) if sum(c) == 14) == comb(17, 3)
