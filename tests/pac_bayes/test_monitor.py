"""Alarms of a certificate in use: false ones are rare at any time, true ones come."""

import json
from fractions import Fraction
from itertools import pairwise
from math import factorial, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import votes as ref
from scipy.integrate import quad
from scipy.special import logsumexp

from pac_bayes.toy import frozen_vote, twonorm
from skbounds.pac_bayes import (
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    VoteMonitor,
)
from skbounds.pac_bayes._monitor import log_mixture_evalue

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*certification rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*vacuous:UserWarning"),
    pytest.mark.filterwarnings("ignore:No training row has:UserWarning"),
]


def exact_log_evalue(s, t, bound):
    """The average over p in (bound, 1) of the likelihood ratio, by whole numbers.

    The integral of p^s (1 - p)^(t - s) above b is B(s + 1, t - s + 1) times
    P(Bin(t + 1, b) <= s).
    """
    b = Fraction(bound)
    total, term = Fraction(0), (1 - b) ** (t + 1)
    for i in range(s + 1):
        total += term
        term *= Fraction(t + 1 - i, i + 1) * b / (1 - b)
    value = Fraction(factorial(s) * factorial(t - s), factorial(t + 1)) * total
    value /= (1 - b) ** (t - s + 1) * b**s
    return log(value.numerator) - log(value.denominator)


@pytest.mark.parametrize("bound", [0.03125, 0.25, 0.75, 0.9375])
def test_evidence_is_the_average_likelihood_ratio(bound):
    """All counts of some numbers of rows, the far ends included."""
    for t in (0, 1, 2, 9, 60, 700):
        for s in sorted({*range(min(t, 9) + 1), *range(0, t + 1, 61), t}):
            found = float(log_mixture_evalue(s, t, bound))
            assert_allclose(found, exact_log_evalue(s, t, bound), rtol=1e-9, atol=1e-9)


@given(st.integers(0, 300), st.floats(0.0, 1.0), st.floats(0.01, 0.99))
def test_evidence_is_an_integral(t, share, bound):
    """By numerical integration of the ratio over p uniform on (bound, 1)."""
    s = round(share * t)

    def ratio(p):
        return np.exp(
            s * np.log(p / bound) + (t - s) * np.log((1 - p) / (1 - bound)) - top
        )

    best = min(max(s / t, bound), 1 - 1e-12) if t else bound
    top = s * np.log(best / bound) + (t - s) * np.log((1 - best) / (1 - bound))
    # The mass is at the peak, or in a layer above the bound.
    layer = (1 - bound) / (t + 1)
    points = [best, *(best + layer * k for k in (1, 4, 16, 64) if best + layer * k < 1)]
    points += [best - layer * k for k in (1, 4, 16, 64) if best - layer * k > bound]
    edges = np.unique([bound, *points, 1.0])
    value = sum(
        quad(ratio, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in pairwise(edges)
    )
    expected = np.log(value) + top - np.log(1 - bound)
    assert_allclose(log_mixture_evalue(s, t, bound), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("bound", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("t", [3000, 10**5, 10**7])
def test_evidence_after_very_many_rows(bound, t):
    """Far below the bound, at it, and above: finite, and right to many digits."""
    for share in (0.0, 0.5, 0.9, 0.999, 1.0, 1.001, 1.05):
        s = min(round(share * bound * t), t)
        rest = t - s
        # A grid in units of the layer's width, in logarithms.
        slope = max(abs(rest / (1 - bound) - s / bound), np.sqrt(t / bound))
        width = max(2000.0 / slope, 2.0 * (s / t - bound))
        near = np.linspace(0.0, width, 400_001)[1:]
        p = bound + near
        p = p[p < 1.0]
        logs = s * np.log1p((p - bound) / bound)
        logs += rest * np.log1p(-(p - bound) / (1 - bound))
        step = near[1] - near[0]
        weights = np.full(len(p), step)
        ends = np.logaddexp(logsumexp(logs, b=weights), np.log(step / 2))
        expected = ends - np.log(1 - bound)
        found = float(log_mixture_evalue(s, t, bound))
        assert np.isfinite(found)
        assert_allclose(found, expected, rtol=1e-5, atol=2e-4)


@given(st.integers(0, 200), st.floats(0.0, 1.0), st.floats(0.01, 0.99))
def test_evidence_is_a_fair_game_at_the_bound(t, share, bound):
    """One more row leaves its mean where it is; a smaller error rate lowers it."""
    s = round(share * t)
    now, right, wrong = (
        float(log_mixture_evalue(*counts, bound))
        for counts in ((s, t), (s, t + 1), (s + 1, t + 1))
    )
    fair = np.logaddexp(np.log(bound) + wrong, np.log1p(-bound) + right)
    assert_allclose(fair, now, rtol=1e-9, atol=1e-8)
    assert wrong >= right - 1e-9


def test_evidence_is_that_of_bets():
    """The mixture of likelihood ratios is a mixture of bets on errors."""
    rng = np.random.default_rng(0)
    bound, errors = 0.2, (rng.uniform(size=80) < 0.35).astype(int)
    # The ratio with p is the wealth of the bet (p - b) / (b (1 - b)).
    p = bound + (1 - bound) * (np.arange(4000) + 0.5) / 4000
    bets = (p - bound) / (bound * (1 - bound))
    wealth = ref.betting_log_evalue(errors, bound, bets)
    found = log_mixture_evalue(np.cumsum(errors), np.arange(1, 81), bound)
    assert_allclose(found, wealth[1:], atol=1e-5)


# ------------------------------------------------------------------- false alarms


@pytest.mark.parametrize("alpha", [0.02, 0.2])
@pytest.mark.parametrize("bound", [0.05, 0.3, 0.8])
def test_no_adversary_raises_false_alarms(bound, alpha):
    """The best strategy of error rates up to the bound, by dynamic programming."""
    horizon = 400
    chance = np.zeros(horizon + 1)
    at_bound = np.zeros(horizon + 1)
    for t in range(horizon, 0, -1):
        s = np.arange(t + 1)
        alarm = log_mixture_evalue(s, np.full(t + 1, t), bound) >= -np.log(alpha)
        reached = np.where(alarm, 1.0, chance[: t + 1])
        reached_at = np.where(alarm, 1.0, at_bound[: t + 1])
        wrong, right = reached[1:], reached[:-1]
        # Linear in the rate: it is 0 or the bound.
        chance = np.maximum(bound * wrong + (1 - bound) * right, right)
        at_bound = bound * reached_at[1:] + (1 - bound) * reached_at[:-1]
    assert at_bound[0] <= chance[0] <= alpha + 1e-12
    # It is a test, not an idle one.
    assert at_bound[0] > 0.2 * alpha


def test_alarms_come_soon_after_a_change():
    """About log(1/alpha) over the divergence of the new error from the bound."""
    rng = np.random.default_rng(1)
    bound, alpha = 0.1, 0.05
    for rate in (0.2, 0.3, 0.6):
        errors = np.cumsum(rng.uniform(size=(200, 1000)) < rate, axis=1)
        evidence = log_mixture_evalue(errors, np.arange(1, 1001), bound)
        alarm = evidence >= -np.log(alpha)
        assert alarm.any(axis=1).all()
        divergence = rate * np.log(rate / bound)
        divergence += (1 - rate) * np.log((1 - rate) / (1 - bound))
        # The mixture costs half the log of the number of rows, and a little.
        assert np.median(alarm.argmax(axis=1)) < (-np.log(alpha) + 3) / divergence + 5


# ------------------------------------------------------------------- the monitor


def watched(n=200, n_wrong=20, **params):
    """Return an ensemble with a known number of errors, that echoes column 0."""
    votes = np.zeros((n, 1), dtype=int)
    X, members = frozen_vote(votes)
    truth = (np.arange(n) < n_wrong).astype(int)
    return PACBayesEnsembleClassifier(members, random_state=0, **params).fit(X, truth)


def test_monitor_counts_errors_and_remembers_alarms():
    """Row by row, in pieces, or at once: the same; an alarm stays."""
    clf = watched()
    rng = np.random.default_rng(2)
    y = np.r_[rng.uniform(size=60) < 0.9, np.zeros(2000)].astype(int)
    X = np.zeros((len(y), 1))
    at_once = clf.monitor(alpha=0.01).update(X, y)
    assert at_once.bound == clf.vote_bound_ and at_once.alpha == 0.01
    pieces = clf.monitor(alpha=0.01)
    log_values = [0.0]
    for rows in np.split(np.arange(len(y)), [1, 2, 30, 700]):
        pieces.update(X[rows], y[rows])
        log_values.append(pieces.log_evalue_)
        assert pieces.n_seen_ == rows[-1] + 1
    # Much later the evidence is gone; the alarm of the first rows is not.
    assert at_once.log_evalue_ < -np.log(0.01) < max(log_values)
    for monitor in (at_once, pieces):
        assert monitor.alarm_ and monitor.n_seen_ == 2060
        assert monitor.n_errors_ == y.sum()
        expected = exact_log_evalue(int(y[:60].sum()), 60, clf.vote_bound_)
    assert_allclose(at_once.log_evalue_, pieces.log_evalue_)
    sixty = clf.monitor().update(X[:60], y[:60])
    assert_allclose(sixty.log_evalue_, expected, rtol=1e-9)


def test_monitor_starts_without_evidence():
    """No rows, no evidence; rows without errors are evidence against."""
    monitor = watched().monitor()
    assert (monitor.n_seen_, monitor.n_errors_, monitor.alarm_) == (0, 0, False)
    assert monitor.log_evalue_ == 0.0 and monitor.alpha == 0.05
    monitor.update(np.zeros((50, 1)), np.zeros(50, dtype=int))
    assert monitor.log_evalue_ < 0.0 and not monitor.alarm_


def test_labels_that_are_unknown_are_errors():
    """The certificate counts them, and so does the monitor."""
    monitor = watched().monitor().update(np.zeros((4, 1)), [0, 1, 5, 0])
    assert monitor.n_errors_ == 2
    X, y = twonorm(np.random.default_rng(3), 120)
    names = np.array(["no", "yes"])[y]
    clf = PACBayesSVMEnsemble(Cs=3, random_state=0).fit(X, names)
    labels = np.where(np.arange(120) < 7, "perhaps", clf.predict(X))
    assert clf.monitor().update(X, labels).n_errors_ == 7


def test_monitor_goes_on_from_a_dict():
    """Through JSON, as if it had never stopped."""
    clf = watched()
    rng = np.random.default_rng(4)
    X, y = np.zeros((300, 1)), (rng.uniform(size=300) < 0.3).astype(int)
    whole = clf.monitor(0.1).update(X, y)
    first = clf.monitor(0.1).update(X[:120], y[:120])
    state = json.loads(json.dumps(first.to_dict()))
    again = VoteMonitor.from_dict(state, clf)
    assert again.log_evalue_ == pytest.approx(first.log_evalue_)
    again.update(X[120:], y[120:])
    assert again.to_dict() == whole.to_dict()
    assert again.log_evalue_ == pytest.approx(whole.log_evalue_)
    assert again.ensemble is clf
    # An alarm of the past is in the state.
    past = VoteMonitor.from_dict({**state, "alarm": True}, clf)
    assert past.update(X[:1], y[:1]).alarm_


def test_bad_monitors():
    """Nothing to watch, bad levels, states that cannot be, rows without labels."""
    clf = watched()
    for alpha in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\)"):
            clf.monitor(alpha)
    with pytest.raises(ValueError, match=r"without a bound in \(0, 1\)"):
        watched(5, 5).monitor()
    state = clf.monitor().to_dict()
    with pytest.raises(ValueError, match=r"state lacks 'n_seen'"):
        VoteMonitor.from_dict({k: v for k, v in state.items() if k != "n_seen"}, clf)
    with pytest.raises(ValueError, match=r"from 0 to 2 as 'n_errors'; got 3"):
        VoteMonitor.from_dict({**state, "n_seen": 2, "n_errors": 3}, clf)
    with pytest.raises(ValueError, match=r"y must have shape \(4,\)"):
        clf.monitor().update(np.zeros((4, 1)), [0, 1])
    X, y = twonorm(np.random.default_rng(5), 120)
    with pytest.warns(UserWarning, match=r"refit=True"):
        again = PACBayesSVMEnsemble(Cs=3, refit=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"without a bound in \(0, 1\)"):
        again.monitor()


@pytest.mark.parametrize("rates", ["constant", "after errors", "while it looks bad"])
def test_false_alarms_of_real_updates(rates):
    """Error rates up to the bound that depend on what happened, alarms counted."""
    clf = watched(60, 10)
    bound, alpha, repeats = clf.vote_bound_, 0.2, 100
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(repeats):
        uniform, y, evidence = rng.uniform(size=150), np.zeros(150, dtype=int), 0.0
        for t in range(150):
            rate = bound
            if rates == "after errors" and t and not y[t - 1]:
                rate = 0.5 * bound
            if rates == "while it looks bad" and evidence < -1.0:
                rate = 0.0
            y[t] = uniform[t] < rate
            if rates == "while it looks bad":
                evidence = log_mixture_evalue(y[: t + 1].sum(), t + 1, bound)
        monitor = clf.monitor(alpha)
        for rows in np.split(np.arange(150), [20, 21, 90]):
            monitor.update(np.zeros((len(rows), 1)), y[rows])
        alarms += monitor.alarm_
    # Three standard errors above alpha.
    assert alarms <= repeats * alpha + 3 * np.sqrt(repeats * alpha * (1 - alpha))
