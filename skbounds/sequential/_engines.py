"""What a best-arm test keeps of its rewards, and makes of them.

An engine holds counts and sums of the arms, the running p-values, and says which arm is
certified; arms are numbers here, and rewards are checked before. `LILEngine` is the
thesis, `EvidenceEngine` has e-processes.
"""

from __future__ import annotations

import numpy as np

from skbounds._core import sequential as _core
from skbounds._states import ROUNDING, refuse
from skbounds.sequential._evidence import (
    LARGEST_REWARD,
    REWARDS,
    bet_weights,
    make_bets,
)
from skbounds.sequential._radius import beta, radius

_SAMPLERS = {
    "toptwo": _core.TOP_TWO,
    "lift": _core.LIFT,
    "lucb": _core.LUCB,
    "uniform": _core.UNIFORM,
}


def excess(log_delta):
    """Return beta(1, delta), the part of beta that does not depend on n."""
    return float(beta(1.0, log_delta))


class Engine:
    """Counts and sums of rewards, and what all engines do with them.

    Attributes
    ----------
    counts, sums : ndarray of shape (n_arms,)
    log_p : ndarray of shape (n_alternatives,)
        Logarithms of the arms' running p-values.
    """

    def __init__(self, settings):
        self.settings = settings
        n = settings.n_arms
        self.counts, self.sums = np.zeros(n), np.zeros(n)
        K = n - 1
        self._x_lower = excess(np.log(settings.delta) - np.log(2.0 * K))
        self._x_upper = excess(np.log(settings.delta) - np.log(2.0))

    def means(self):
        """Return mean rewards; nan without any."""
        with np.errstate(invalid="ignore"):
            return self.sums / np.where(self.counts > 0.0, self.counts, np.nan)

    def leader(self):
        """Return the arm that looks best; ties go to the lowest number."""
        means = self.means()
        means[0] += self.settings.handicap
        return int(np.argmax(np.where(np.isnan(means), -np.inf, means)))

    def snapshot(self):
        """Return copies of all that changes."""
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
            if not name.startswith("_") and name != "settings"
        }

    def go_back(self, before):
        """Return to a snapshot."""
        for name, value in before.items():
            if isinstance(value, np.ndarray):
                getattr(self, name)[:] = value
            else:
                setattr(self, name, value)

    def state(self):
        """Return what is to be written down."""
        return {"counts": self.counts.tolist(), "sums": self.sums.tolist()}

    def restore(self, state):
        """Take what was written down, a `State`."""
        n, settings = self.settings.n_arms, self.settings
        self.counts[:] = state.counts("counts", n)
        self.sums[:] = state.numbers("sums", n)
        least, most = -LARGEST_REWARD, LARGEST_REWARD
        if settings.evidence == "eprocess" and settings.rewards != "normal":
            least, most = 0.0, 1.0
        elif settings.evidence == "lil" and settings.sigma == 0.5:
            least, most = 0.0, 1.0
        rounding = ROUNDING * np.abs(self.sums)
        if (
            (self.sums < least * self.counts - rounding)
            | (self.sums > most * self.counts + rounding)
        ).any():
            refuse(
                "'sums'", self.sums.tolist(),
                f"sums of as many rewards from {least:g} to {most:g} as 'counts' say",
            )  # fmt: skip

    def _check_tried(self, evidence, where=None):
        """Refuse evidence of arms without rewards, or with none of the control's."""
        least = self.settings.min_count
        tried = (self.counts[1:] >= least) & (self.counts[0] >= least)
        if where is any:
            tried[:] = tried.any()
        if (evidence[~tried] != 0.0).any():
            refuse("evidence on arms without rewards", evidence.tolist(), "0")


class LILEngine(Engine):
    """Radii by the law of the iterated logarithm: Algorithm 1 and (4.5), (4.6)."""

    def __init__(self, settings):
        super().__init__(settings)
        self.sigma = float(settings.sigma)
        self.least_log_p = 0.0
        self.log_p = np.zeros(settings.n_arms - 1)

    def tell(self, arms, rewards):
        """Take the rewards of a round; what is certified is seen by `look`."""
        np.add.at(self.counts, arms, 1.0)
        np.add.at(self.sums, arms, rewards)
        changed = np.zeros(len(self.counts), dtype=bool)
        changed[arms] = True
        self.least_log_p = _core.watch(
            np.nan_to_num(self.means()), self.counts, changed, self.sigma,
            self.settings.epsilon, self.least_log_p,
        )  # fmt: skip
        self._watch_arms(changed)
        return -1

    def _watch_arms(self, changed):
        _core.watch_arms(
            np.nan_to_num(self.means()), self.counts, changed, self.sigma,
            self.settings.epsilon, self.log_p,
        )  # fmt: skip

    def replay(self, arms, rewards, certified):
        """Take rewards one by one, look after each; return the first certified arm."""
        first, self.least_log_p = _core.replay(
            arms, rewards, self.counts, self.sums, self._x_lower, self._x_upper,
            self.sigma, self.settings.epsilon, self.least_log_p, self.log_p,
        )  # fmt: skip
        return first if certified < 0 else certified

    def look(self):
        """Return the arm that is certified now, or -1."""
        return self._decide()[0]

    def _decide(self):
        if (self.counts == 0.0).any():
            # Each arm once before anything is decided.
            return -1, np.flatnonzero(self.counts == 0.0)
        lower, upper = self._radii()
        arms = np.empty(4, dtype=np.int64)
        certified, count = _core.decide(
            self.means(), lower, upper, self.settings.epsilon, arms
        )
        return int(certified), arms[:count].copy()

    def _radii(self):
        lower, upper = np.empty(len(self.counts)), np.empty(len(self.counts))
        _core.radii(self.counts, self._x_lower, self._x_upper, self.sigma, lower, upper)
        return lower, upper

    def bounds(self):
        """Return bounds of the arms' expectations; infinite without rewards."""
        tried = self.counts > 0.0
        low, high = np.full((2, len(tried)), np.inf)
        if tried.any():
            below, above = np.empty(tried.sum()), np.empty(tried.sum())
            _core.radii(
                self.counts[tried], self._x_lower, self._x_upper, self.sigma, below,
                above,
            )  # fmt: skip
            low[tried], high[tried] = below, above
        means = np.where(tried, self.means(), 0.0)
        return means - low, means + high

    def round(self, outstanding):
        """Return the arms of the next round."""
        certified, arms = self._decide()
        if self.settings.sampler == "uniform" and certified < 0:
            if not (self.counts == 0.0).any():
                return np.arange(len(self.counts))
        return arms

    def choose(self, size, outstanding):
        """Return the next arms one by one, by the rules of e-processes."""
        helper = EvidenceEngine(self.settings.of_normal_rewards())
        helper.counts[:], helper.sums[:] = self.counts, self.sums
        return helper.choose(size, outstanding)

    def lifts(self, level):
        """Return bounds of all lifts over the control that hold together."""
        K = len(self.counts) - 1
        if not self.counts[0] or K < 1:
            return np.full(K, -np.inf), np.full(K, np.inf)
        gap = self.means()[1:] - self.means()[0]
        own = np.full(K, np.inf)
        tried = self.counts[1:] > 0.0
        own[tried] = radius(self.counts[1:][tried], level / (4.0 * K), self.sigma)
        width = own + radius(self.counts[0], level / 4.0, self.sigma)
        gap = np.where(tried, gap, 0.0)
        return gap - width, gap + width

    def state(self):
        """Return what is to be written down."""
        return {
            **super().state(),
            "log_p": self.least_log_p,
            "log_p_arms": self.log_p.tolist(),
        }

    def restore(self, state):
        """Take what was written down; before version 0.2 without `log_p_arms`."""
        super().restore(state)
        self.least_log_p = state.number("log_p", most=0.0)
        if "log_p_arms" in state:
            self.log_p[:] = state.numbers("log_p_arms", len(self.log_p), most=0.0)
            self._check_tried(self.log_p)
        else:
            self._watch_arms(np.ones(len(self.counts), dtype=bool))
        self._check_tried(np.full(len(self.log_p), self.least_log_p), any)


class EvidenceEngine(Engine):
    """E-processes of all arms against the control, adjusted for their number."""

    def __init__(self, settings):
        super().__init__(settings)
        n, K = settings.n_arms, settings.n_arms - 1
        # V, or squared deviations from the mean where sigma is estimated.
        self.spread = np.zeros(n)
        self.log_e, self.peak = np.zeros(K), np.zeros(K)
        self.exact = np.ones(K, dtype=bool)
        bets, relative = make_bets(settings.rewards, settings.bets, settings.max_pulls)
        weights = settings.weights
        self._fixed = {
            "rewards": REWARDS[settings.rewards],
            "epsilon": settings.epsilon,
            "bets": bets,
            "weights": bet_weights(len(bets)),
            "arm_weights": np.full(K, 1.0 / K) if weights is None else weights,
            "sigma": np.empty(0) if settings.sigma is None else settings.sigma,
            "estimated": settings.is_asymptotic,
            "relative": relative,
            "least_count": float(settings.min_count),
        }
        self._make()

    def _make(self):
        names = ("counts", "sums", "spread", "log_e", "peak", "exact")
        self._trial = _core.Trial(
            **self._fixed, **{name: getattr(self, name) for name in names}
        )

    def __getstate__(self):
        return {name: v for name, v in vars(self).items() if name != "_trial"}

    def __setstate__(self, state):
        vars(self).update(state)
        self._make()

    @property
    def log_p(self):
        """Logarithms of the arms' running p-values."""
        return -self.peak

    @property
    def least_log_p(self):
        """Logarithm of the test's p-value."""
        return float(-self.peak.max())

    @property
    def _threshold(self):
        if self.settings.until != "certified":
            return np.inf
        return -np.log(self.settings.delta)

    def tell(self, arms, rewards):
        """Take rewards, look once, and return the certified arm or -1."""
        return self._trial.replay(arms, rewards, True, self._threshold, -1)

    def replay(self, arms, rewards, certified):
        """Take rewards one by one, look after each; return the first certified arm."""
        return self._trial.replay(arms, rewards, False, self._threshold, certified)

    def replace(self, arm, count, total, spread):
        """Set an arm's state; `look_at` is to follow."""
        self.counts[arm], self.sums[arm] = count, total
        self.spread[arm] = spread

    def look_at(self, arms, certified):
        """Look at arms that were changed; return the first certified arm."""
        changed = np.zeros(len(self.counts), dtype=bool)
        changed[arms] = True
        return self._trial.look(changed, self._threshold, certified)

    def look(self):
        """Return the arm that is certified now, or -1."""
        unchanged = np.zeros(len(self.counts), dtype=bool)
        return self._trial.look(unchanged, self._threshold, -1)

    def round(self, outstanding):
        """Return the arms of the next round."""
        waiting = self.counts + outstanding == 0.0
        if self.settings.sampler == "uniform":
            return np.arange(len(self.counts))
        if waiting.any():
            return np.flatnonzero(waiting)
        if (self.counts == 0.0).any():
            # Nothing is known yet of the arms whose first rewards are on their way.
            return np.arange(len(self.counts))
        arms = np.empty(4, dtype=np.int64)
        return arms[: self._trial.bandit_round(self._x_lower, self._x_upper, arms)]

    def choose(self, size, outstanding):
        """Return the next arms one by one."""
        chosen = np.empty(size, dtype=np.int64)
        self._trial.choose(_SAMPLERS[self.settings.sampler], outstanding, chosen)
        return chosen

    def simulate(self, means, deviation, seed):
        """Run the test on rewards of these means; returns what the core does."""
        settings = self.settings
        until_certified = settings.until == "certified"
        threshold = self._threshold if until_certified else -np.log(settings.delta)
        return self._trial.simulate(
            means, np.full(len(means), deviation), _SAMPLERS[settings.sampler],
            self._x_lower, self._x_upper, until_certified, threshold,
            min(settings.max_pulls, 2**62), seed,
        )  # fmt: skip

    def log_evalues(self):
        """Return logarithms of the arms' e-values as of now, adjusted and their own."""
        adjusted = np.empty(len(self.log_e))
        self._trial.settle(adjusted)
        return adjusted, self.log_e.copy()

    def variance_of_mean(self, arm):
        """Return an estimate of the variance of an arm's mean."""
        n = self.counts[arm]
        if n < 1.0:
            return np.inf
        if self.settings.sigma is not None:
            return self.settings.sigma[arm] ** 2 / n
        if self.settings.rewards == "binary":
            share = self.sums[arm] / n
            return share * (1.0 - share) / n
        return self.spread[arm] / n / max(n - 1.0, 1.0)

    def lifts(self, level):
        """Return bounds of all lifts over the control that hold together."""
        K = len(self.log_e)
        lower, upper = np.empty(K), np.empty(K)
        self._trial.lifts(np.log(2.0 * K / level), lower, upper)
        return lower, upper

    def state(self):
        """Return what is to be written down."""
        return {
            **super().state(),
            "spread": self.spread.tolist(),
            "log_peaks": self.peak.tolist(),
        }

    def restore(self, state):
        """Take what was written down; evidence as of now follows from it."""
        super().restore(state)
        self.spread[:] = state.numbers("spread", len(self.spread), 0.0)
        if (self.spread[self.counts == 0.0] > 0.0).any():
            refuse("'spread'", self.spread.tolist(), "0 without rewards")
        self.peak[:] = state.numbers("log_peaks", len(self.peak), 0.0)
        self._check_tried(self.peak)
        # Looks compare with what was known before: all of it, as of now.
        self.exact[:] = False
        now = self.log_evalues()[0]
        # Peaks are the largest evidence so far, of which that of now is a part.
        if not (now <= self.peak + ROUNDING * (1.0 + np.abs(self.peak))).all():
            refuse("'log_peaks'", self.peak.tolist(), f"at least {now.tolist()}")


ENGINES = {"lil": LILEngine, "eprocess": EvidenceEngine}
