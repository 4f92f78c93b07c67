"""Rewards with less variance or in shares, where variances are estimated."""

from __future__ import annotations

import numpy as np

from skbounds._states import ROUNDING, refuse
from skbounds.sequential._evidence import LARGEST_REWARD

# Rewards before the covariate's coefficient is estimated; until then it is 0.
_LEAST = 30


class Covariate:
    """Takes from each reward what a covariate foretells (CUPED).

    With ``coef`` the reward becomes x - coef z. With ``mean``, the covariate's
    expectation, it becomes x - theta (z - mean), theta being the coefficient of a
    regression of earlier rewards on their covariates, within arms. Either way all arms'
    expectations change by the same, if arms are given out without a look at z.

    Parameters
    ----------
    coef, mean : float or None
        One of the two.
    n_arms : int
    """

    def __init__(self, coef, mean, n_arms):
        self.coef, self.mean = coef, mean
        # Number of rewards, means of x and z by arm; pooled products of deviations.
        self.moments = np.zeros((3, n_arms))
        self.xz, self.zz = 0.0, 0.0

    def adjust(self, arms, rewards, covariates):
        """Return rewards without what covariates foretell."""
        if self.coef is not None:
            with np.errstate(over="ignore"):
                return rewards - self.coef * covariates
        found = np.empty(len(rewards))
        count, x_mean, z_mean = self.moments
        total = count.sum()
        triples = zip(arms.tolist(), rewards.tolist(), covariates.tolist(), strict=True)
        for k, (i, x, z) in enumerate(triples):
            known = total >= _LEAST and self.zz > 0.0
            found[k] = x - (self.xz / self.zz if known else 0.0) * (z - self.mean)
            count[i] += 1.0
            total += 1.0
            ahead = z - z_mean[i]
            z_mean[i] += ahead / count[i]
            x_mean[i] += (x - x_mean[i]) / count[i]
            self.zz += ahead * (z - z_mean[i])
            self.xz += ahead * (x - x_mean[i])
        return found

    def state(self):
        """Return what is to be written down."""
        return {"moments": self.moments.tolist(), "xz": self.xz, "zz": self.zz}

    def restore(self, state):
        """Take what was written down."""
        self.moments = state.table("moments", self.moments.shape)
        self.xz, self.zz = state.number("xz"), state.number("zz", 0.0)

    def check_counts(self, engine):
        """Refuse other numbers of rewards than the test's."""
        # With a fixed coefficient nothing is estimated.
        known = engine.counts if self.coef is None else np.zeros(len(engine.counts))
        if (self.moments[0] != known).any():
            refuse("the counts in 'moments'", self.moments[0].tolist(), known.tolist())


class Ratio:
    """Ratios of sums, by the delta method.

    Of n units with numerators y and denominators z an arm's mean is sum(y) / sum(z),
    and its variance is that of (y - r z) / mean(z) over n, with r the ratio.

    Parameters
    ----------
    n_arms : int
    """

    def __init__(self, n_arms):
        # Number, means of y and z, products of deviations yy, zz, yz.
        self.moments = np.zeros((6, n_arms))

    def add(self, arm, y, z):
        """Take a unit; return (n, n times the ratio, squared deviations)."""
        n, y_mean, z_mean, yy, zz, yz = self.moments[:, arm].tolist()
        n += 1.0
        y_ahead, z_ahead = y - y_mean, z - z_mean
        y_mean += y_ahead / n
        z_mean += z_ahead / n
        yy += y_ahead * (y - y_mean)
        zz += z_ahead * (z - z_mean)
        yz += y_ahead * (z - z_mean)
        self.moments[:, arm] = n, y_mean, z_mean, yy, zz, yz
        return self.of(n, y_mean, z_mean, yy, zz, yz)

    def of(self, n, y_mean, z_mean, yy, zz, yz):
        """Return (n, n times the ratio, squared deviations) of an arm's moments."""
        if not z_mean > 0.0:
            return n, 0.0, 0.0
        ratio = y_mean / z_mean
        spread = max(yy - 2.0 * ratio * yz + ratio * ratio * zz, 0.0)
        spread = spread / z_mean / z_mean
        if not (abs(n * ratio) <= LARGEST_REWARD and spread < np.inf):
            raise ValueError(
                f"rewards over denominators must be numbers of at most "
                f"{LARGEST_REWARD:g}."
            )
        return n, n * ratio, spread

    def state(self):
        """Return what is to be written down."""
        return {"moments": self.moments.tolist()}

    def restore(self, state):
        """Take what was written down."""
        self.moments = state.table("moments", self.moments.shape)

    def check_counts(self, engine):
        """Refuse other sums than the test's."""
        known = np.vstack([engine.counts, engine.sums, engine.spread])
        again = Ratio(known.shape[1])
        for arm in range(known.shape[1]):
            found = again.of(*self.moments[:, arm].tolist())
            scale = np.maximum(np.abs(known[:, arm]), np.abs(found))
            if (np.abs(known[:, arm] - found) > ROUNDING * scale).any():
                refuse("a sum in 'moments'", list(found), known[:, arm].tolist())
