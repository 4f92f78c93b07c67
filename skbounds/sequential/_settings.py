"""The parameters of a best-arm test, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from skbounds.sequential._evidence import check_rewards_kind, check_shift, make_bets
from skbounds.sequential._functions import (
    as_floats,
    check_epsilon,
    check_sigma,
    is_number,
)

SAMPLERS = ("toptwo", "lift", "lucb", "uniform")
# Arms come one by one, not in rounds.
ONE_BY_ONE = ("toptwo", "lift")
_DEFAULT_SAMPLER = {"eprocess": "toptwo", "lil": "lucb"}
# Rewards of both arms before there is evidence, where their variance is estimated.
MIN_COUNT = 100
_WEIGHT_ROUNDING = 1e-9
_LARGEST_PULLS = 2**62 - 1


def is_count(value):
    """Tell whether this is an integer, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Settings:
    """What a test goes by; rewards are in units in which bounded ones are in [0, 1].

    Attributes
    ----------
    names : tuple of str or None
    low, high : float
        Rewards x are taken as (x - low) / (high - low).
    sigma : float, ndarray of shape (n_arms,) or None
        A float for "lil", otherwise of "normal" rewards of known scale.
    until : {"certified", "rejected"}
        What ends the test.
    """

    n_arms: int
    names: tuple | None
    delta: float
    epsilon: float
    evidence: str
    rewards: str
    low: float
    high: float
    sigma: object
    bets: np.ndarray | None
    weights: np.ndarray | None
    max_pulls: int | None
    sampler: str
    until: str

    @property
    def width(self):
        """Range of bounded rewards."""
        return self.high - self.low

    @property
    def is_asymptotic(self):
        """Whether variances are estimated."""
        normal = self.evidence == "eprocess" and self.rewards == "normal"
        return normal and self.sigma is None

    @property
    def min_count(self):
        """Rewards of an arm before there is evidence."""
        return MIN_COUNT if self.is_asymptotic else 1

    @property
    def handicap(self):
        """What the control's mean is thought to be larger, when arms are compared."""
        return self.epsilon if self.evidence == "eprocess" else 0.0

    def of_normal_rewards(self):
        """Return the settings of e-processes with the same sigma."""
        sigma = np.full(self.n_arms, self.sigma)
        return replace(self, evidence="eprocess", sigma=sigma)


def check_settings(params, until=None):
    """Return the `Settings` of constructor parameters.

    Parameters
    ----------
    params : dict
    until : {"certified", "rejected"} or None
        None goes by the sampler.
    """
    n_arms, names = _check_arms(params["n_arms"])
    delta = params["delta"]
    if not is_number(delta) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be in (0, 1); got {delta!r}.")
    evidence, sampler = params["evidence"], params["sampler"]
    if not isinstance(evidence, str) or evidence not in _DEFAULT_SAMPLER:
        raise ValueError(
            f"evidence must be one of {tuple(_DEFAULT_SAMPLER)}; got {evidence!r}."
        )
    if sampler is None:
        sampler = _DEFAULT_SAMPLER[evidence]
    if not isinstance(sampler, str) or sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {SAMPLERS} or None; got {sampler!r}.")
    max_pulls = _check_max_pulls(params["max_pulls"], n_arms, evidence)
    rewards = check_rewards_kind(params["rewards"])
    epsilon = check_epsilon(params["epsilon"])
    low, high = 0.0, 1.0
    if evidence == "lil":
        given = {name: params[name] for name in ("bets", "weights")}
        given["rewards"] = None if rewards == "normal" else rewards
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name} is for evidence='eprocess'; with evidence='lil' rewards "
                    f"are known by their sigma alone. Got {value!r}."
                )
        sigma = check_sigma(params["sigma"])
        bets, weights = None, None
    else:
        if rewards != "normal":
            low, high = _check_bounds(params["bounds"])
            epsilon = check_shift(epsilon, rewards, high - low) / (high - low)
        sigma = _check_sigmas(params["sigma"], rewards, n_arms)
        bets = params["bets"]
        if bets is not None:
            bets = make_bets(rewards, bets)[0]
        weights = _check_weights(params["weights"], n_arms)
        if sampler == "lucb" and rewards == "normal" and sigma is None:
            raise ValueError(
                "sampler='lucb' needs sigma; take 'toptwo', 'lift' or 'uniform' where "
                "it is estimated."
            )
    if until is None:
        until = "rejected" if sampler == "lift" and evidence != "lil" else "certified"
    return Settings(
        n_arms, names, float(delta), epsilon, evidence, rewards, low, high, sigma,
        bets, weights, max_pulls, sampler, until,
    )  # fmt: skip


def _check_arms(n_arms):
    """Return the number of arms, and their names or None."""
    if np.ndim(n_arms) == 1 or isinstance(n_arms, (list, tuple)):
        names = tuple(str(name) if isinstance(name, str) else name for name in n_arms)
        good = all(isinstance(name, str) for name in names)
        if not good or len(set(names)) < len(names) or len(names) < 2:
            raise ValueError(
                "n_arms must be a number or distinct names, at least 2 (the control "
                f"first); got {n_arms!r}."
            )
        return len(names), names
    if not is_count(n_arms) or n_arms < 2:
        raise ValueError(
            "n_arms must be an integer, at least 2 (the control and another), or as "
            f"many names; got {n_arms!r}."
        )
    return int(n_arms), None


def _check_max_pulls(max_pulls, n_arms, evidence):
    if max_pulls is None and evidence == "eprocess":
        return None
    if not is_count(max_pulls) or not n_arms <= max_pulls <= _LARGEST_PULLS:
        raise ValueError(
            f"max_pulls must be an integer, at least n_arms={n_arms} and below 2**62"
            + (", or None" if evidence == "eprocess" else "")
            + f"; got {max_pulls!r}."
        )
    return int(max_pulls)


def _check_bounds(bounds):
    try:
        low, high = (float(v) if is_number(v) else np.nan for v in bounds)
    except (TypeError, ValueError, OverflowError):
        low, high = np.nan, np.nan
    if not np.isfinite([low, high, high - low]).all() or low >= high:
        raise ValueError(
            f"bounds must be two finite numbers, the lower one first; got {bounds!r}."
        )
    return low, high


def _check_sigmas(sigma, rewards, n_arms):
    """Return one sigma for each arm, or None where it is estimated or not needed."""
    if rewards != "normal":
        if sigma is not None:
            raise ValueError(
                f"sigma is for rewards='normal' only, or evidence='lil'; got {sigma!r} "
                f"with rewards={rewards!r}."
            )
        return None
    if sigma is None:
        return None
    if is_number(sigma):
        return np.full(n_arms, check_sigma(sigma))
    values = np.asarray(sigma, dtype=object)
    if values.shape != (n_arms,):
        raise ValueError(
            f"sigma must be a number or one for each of the {n_arms} arms; got "
            f"{sigma!r}."
        )
    return np.array([check_sigma(value) for value in values.tolist()])


def _check_weights(weights, n_arms):
    if weights is None:
        return None
    found = as_floats(weights, "weights", ndim=None)
    if found.shape != (n_arms - 1,):
        raise ValueError(
            f"weights must be one for each of the {n_arms - 1} alternatives; got "
            f"{weights!r}."
        )
    good = np.isfinite(found).all() and (found > 0.0).all()
    if not good or abs(found.sum() - 1.0) > _WEIGHT_ROUNDING:
        raise ValueError(
            f"weights must be positive with a sum of 1; got {weights!r} (sum "
            f"{found.sum():g})."
        )
    return found / found.sum()
