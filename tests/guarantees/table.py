"""What a guarantee is, how it is simulated, and when a simulation contradicts it."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

SECTIONS = {
    "limits": "Limits",
    "streams": "For every stream",
    "average": "On average",
    "estimates": "Intervals that are estimates",
    "misuse": "Misuse",
}
# Probability that the simulation contradicts any line of a table that is true. Lines
# share it equally.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class Guarantee:
    """One number of the package, what it says, and laws for it.

    Attributes
    ----------
    name : str
        How the documentation calls it.
    says : str
        What is promised of it.
    section : str
        A key of `SECTIONS`.
    kind : {"frequency", "mean", "never", "coverage"}
        What a law's simulation returns for its repetitions. "frequency": whether the
        promise was broken, which may happen with probability `allowed`. "mean": pairs
        of a value and its bound; in the mean the value is at most the bound. "never":
        such pairs, of which no value exceeds its bound. "coverage": whether an interval
        had what it is for inside, which `allowed` is documented to be the least share
        of; NaN where nothing is.
    allowed : float
    laws : dict of str to callable
        ``law(rng, n)`` simulates n repetitions.
    times : float
        Factor of the number of repetitions, for what is cheap or dear.
    fails : bool
        Of misuse: whether it is documented to break the promise.
    """

    name: str
    says: str
    section: str
    kind: str
    allowed: float
    laws: dict[str, Callable]
    times: float = 1.0
    fails: bool = False


@dataclass(frozen=True)
class Line:
    """What a simulation has found for a guarantee and a law.

    `low` and `high` are the ends of the interval of `observed`, `allowed` is what it is
    compared with, and `ratio` is observed by allowed (of "never" the largest of a value
    by its bound).
    """

    name: str
    law: str
    section: str
    n: int
    observed: float
    low: float
    high: float
    allowed: float
    ratio: float
    holds: bool
    as_documented: bool


def share_interval(count, n, level):
    """Return Clopper and Pearson's limits of a probability, each at the level."""
    low = stats.beta.ppf(level, count, n - count + 1) if count else 0.0
    high = stats.beta.isf(level, count + 1, n - count) if count < n else 1.0
    return float(low), float(high)


def judge(guarantee, law, found, level):
    """Return the line for what a simulation returned.

    Parameters
    ----------
    guarantee : Guarantee
    law : str
    found : ndarray
    level : float
        Probability that a promise that is kept is called broken.
    """
    found, n = np.asarray(found), len(found)
    allowed = guarantee.allowed
    if guarantee.kind in ("frequency", "coverage"):
        assert found.shape == (n,) and found.dtype == bool
        observed = found.mean()
        low, high = share_interval(int(found.sum()), n, level)
        ratio = observed / allowed
        holds = low <= allowed if guarantee.kind == "frequency" else not high < allowed
    else:
        assert found.shape == (n, 2) and np.isfinite(found).all()
        value, bound = found.T
        gap, slack = value - bound, 1e-9 * (1.0 + np.abs(bound))
        if guarantee.kind == "never":
            broken = gap > slack
            observed, allowed = broken.mean(), 0.0
            low, high = share_interval(int(broken.sum()), n, level)
            positive = bound > 1e-12
            ratio = (
                np.max(value[positive] / bound[positive])
                if positive.any()
                else (np.nan)
            )
            holds = not broken.any()
        else:
            reach = stats.t.isf(level, n - 1) / np.sqrt(n)
            observed, allowed = value.mean(), bound.mean()
            spread = reach * value.std(ddof=1)
            low, high = observed - spread, observed + spread
            ratio = observed / allowed if allowed > 0.0 else np.nan
            holds = gap.mean() - reach * gap.std(ddof=1) <= slack.mean()
    return Line(
        guarantee.name, law, guarantee.section, n, float(observed), float(low),
        float(high), float(allowed), float(ratio), bool(holds),
        bool(holds != guarantee.fails),
    )  # fmt: skip


def run(guarantee, law, n, n_lines):
    """Simulate a guarantee under a law, n times, as one of so many lines.

    The seed is that of the names: lines do not depend on which others are run.
    """
    seed = zlib.crc32(f"{guarantee.name}, {law}".encode())
    n = max(round(guarantee.times * n), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = guarantee.laws[law](np.random.default_rng(seed), n)
    return judge(guarantee, law, found, FALSE_ALARM / n_lines)


class Together:
    """One simulation of several lines: what each of them was found at.

    Parameters
    ----------
    name : str
        What its seed is made from.
    once : callable
        ``once(rng)`` simulates one repetition, and returns a value for each line.
    """

    def __init__(self, name, once):
        self.name, self.once, self.found = name, once, {}

    def line(self, place):
        """Return the law of one of the lines."""

        def law(rng, n):
            if n not in self.found:
                own = np.random.default_rng(zlib.crc32(self.name.encode()))
                self.found[n] = [self.once(own) for _ in range(n)]
            return np.array([values[place] for values in self.found[n]])

        return law


def lines(simulations, place):
    """Return the laws of one line of several simulations, by their names."""
    return {name: one.line(place) for name, one in simulations.items()}


def repeat(once):
    """Return a law that calls ``once(rng)`` for each repetition."""

    def law(rng, n):
        return np.array([once(rng) for _ in range(n)])

    return law
