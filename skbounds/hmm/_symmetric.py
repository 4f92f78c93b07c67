"""The symmetric two-state model of the thesis: outputs N(z mu, sigma^2 I), z = +-1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skbounds._core import hmm as _core

# What may be left of a block's wrong start.
_ROUNDING = 1e-17
# Blocks that one long sequence is swept in, and their least length in overlaps.
_LANES, _LEAST_BLOCK = 16, 4


@dataclass(frozen=True)
class Symmetric:
    """Parameters of the symmetric model.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    stay : float
        zeta, the probability to stay.
    """

    mean: np.ndarray
    stay: float

    @property
    def tilt(self):
        """tanh(beta) = 2 zeta - 1."""
        return 2.0 * self.stay - 1.0

    @property
    def beta(self):
        return 0.5 * np.log(self.stay / (1.0 - self.stay))

    def distance(self, other):
        """Return |mu - mu'| + |beta - beta'|, the norm of (2.19)."""
        return float(
            np.linalg.norm(self.mean - other.mean) + abs(self.beta - other.beta)
        )


@dataclass(frozen=True)
class Spins:
    """What the E-step finds.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        log p(x_t | x_<t) within the sequence.
    means : ndarray of shape (n,)
        E[Z_i | x].
    agreement : float
        Sum of p(Z_i = Z_{i+1} | x).
    log_odds : ndarray of shape (n,)
        log p(Z_i = 1 | x) - log p(Z_i = -1 | x).
    """

    rows: np.ndarray
    means: np.ndarray
    agreement: float
    log_odds: np.ndarray


class Observed:
    """Rows in units of sigma; missing entries are 0.

    Attributes
    ----------
    values : ndarray of shape (n, d)
    there : ndarray of shape (n, d) or None
        1 where an entry is observed; None if all are.
    squares : ndarray of shape (n,)
    """

    def __init__(self, X, sigma):
        self.values, self.there, self.sigma = X / sigma, None, sigma
        missing = np.isnan(self.values)
        if missing.any():
            self.values[missing] = 0.0
            self.there = 1.0 - missing
        self.squares = np.einsum("ij,ij->i", self.values, self.values)

    def __len__(self):
        return len(self.values)

    @property
    def sizes(self):
        """Numbers of observed entries of the rows."""
        if self.there is None:
            return float(self.values.shape[1])
        return self.there.sum(axis=1)

    def means(self, spins):
        """Return (2.30a), each column over its observed entries."""
        n = float(len(self))
        if self.there is not None:
            n = np.maximum(self.there.sum(axis=0), 1.0)
        return self.sigma * (spins @ self.values) / n


def expectation(model, rows, starts, *, window=None) -> Spins:
    """Run the E-step by the closed recursions of the chain's fields."""
    n, sigma = len(rows), rows.sigma
    center = model.mean / sigma
    own = rows.values @ center
    lean, tilt = np.tanh(own), model.tilt
    left, right = np.empty(n), np.empty(n)
    sweep(lean, starts, tilt, left, right)
    height = np.abs(own)
    if rows.there is None:
        squares = rows.squares + center @ center
    else:
        squares = rows.squares + rows.there @ center**2
    conditional = (
        -0.5 * rows.sizes * np.log(2.0 * np.pi)
        - rows.sizes * np.log(sigma)
        - 0.5 * squares
        + height
        + np.log1p(np.exp(-2.0 * height))
        - np.log(2.0)
        + np.log1p(lean * left)
    )
    if not np.isfinite(conditional).all():
        raise ValueError(
            "the density of a row is 0: the data are too far from the model for double "
            f"precision; sigma={sigma:g}."
        )
    filtered = (lean + left) / (1.0 + lean * left)
    if window is not None and window < np.diff(starts).max() - 1:
        return _in_windows(model, own, starts, conditional, window)
    means = (filtered + right) / (1.0 + filtered * right)
    ahead = (lean + right) / (1.0 + lean * right)
    products = filtered[:-1] * ahead[1:]
    agreement = 0.5 * (1.0 + (tilt + products) / (1.0 + tilt * products))
    inside = np.ones(n - 1, dtype=bool)
    inside[starts[1:-1] - 1] = False
    log_odds = 2.0 * (own + np.arctanh(left) + np.arctanh(right))
    return Spins(conditional, means, float(agreement[inside].sum()), log_odds)


def sweep(lean, starts, tilt, left, right):
    """Fill in the fields from both sides, one long sequence in blocks."""
    n = len(lean)
    if len(starts) == 2 and abs(tilt) < 1.0:
        overlap = block_overlap(tilt)
        if n >= _LANES * max(_LEAST_BLOCK * overlap, 64):
            _core.fields_in_blocks(lean, tilt, overlap, _LANES, left, right)
            return
    _core.fields(lean, starts, tilt, left, right)


def block_overlap(tilt, tolerance=_ROUNDING):
    """Return how many rows make a wrong start of the field harmless.

    A field is at most |beta|, and each step multiplies what is wrong with it by at most
    |tanh(beta)|.
    """
    if tilt == 0.0:
        return 1
    beta = abs(np.arctanh(tilt))
    return max(1, int(np.ceil(np.log(beta / tolerance) / -np.log(abs(tilt)))))


def _in_windows(model, own, starts, rows, window):
    height = np.abs(own)
    density = np.exp(np.column_stack([-own - height, own - height]))
    half = np.full(2, 0.5)
    transition = transition_matrix(model.stay)
    posterior, pairs = np.empty((len(own), 2)), np.zeros((2, 2))
    failed = np.zeros(len(own), dtype=bool)
    # Neither state can be the only way to the other.
    _core.windows(
        density, starts, half, half, transition, False, window, posterior, pairs, failed
    )
    means = posterior[:, 1] - posterior[:, 0]
    with np.errstate(divide="ignore"):
        log_odds = np.log(posterior[:, 1]) - np.log(posterior[:, 0])
    return Spins(rows, means, float(np.trace(pairs)), log_odds)


def maximise(model, rows, starts, found, bound):
    """Run the M-step (2.30a) to (2.30c).

    Each sequence has the pair of its first row and the unobserved one before it, which
    agree with probability zeta.
    """
    n_sequences = len(starts) - 1
    stay = (n_sequences * model.stay + found.agreement) / len(rows)
    return Symmetric(rows.means(found.means), project(stay, bound))


def project(stay, bound):
    """Return zeta in the feasible set (2.29)."""
    half = 0.5 * min(bound, 1.0 - 1e-15)
    return float(np.clip(stay, 0.5 - half, 0.5 + half))


def transition_matrix(stay):
    return np.array([[stay, 1.0 - stay], [1.0 - stay, stay]])


def probabilities(found):
    """Return p(Z_i = -1 | x) and p(Z_i = 1 | x), also tiny ones."""
    return np.column_stack([expit(-found.log_odds), expit(found.log_odds)])


def truncation_bound(model, reach):
    """Return 2 |beta| rho^k, by which windows change E[Z_i | x] at most."""
    return float(2.0 * abs(model.beta) * abs(model.tilt) ** reach)


class SymmetricModel:
    """The symmetric model with its data, as `skbounds.hmm._em.Climb` takes it."""

    def __init__(self, X, starts, sigma, bound, window=None):
        self.rows, self.starts = Observed(X, sigma), starts
        self.bound, self.window = bound, window
        self.n_rows = len(X)

    def expect(self, model):
        """Return what the E-step finds, and the log-likelihood."""
        found = expectation(model, self.rows, self.starts, window=self.window)
        return found, float(found.rows.sum())

    def whole(self, model):
        """Return what the E-step finds without windows, and the log-likelihood."""
        found = expectation(model, self.rows, self.starts)
        return found, float(found.rows.sum())

    def update(self, model, found):
        """Run the M-step."""
        return maximise(model, self.rows, self.starts, found, self.bound)

    def distance(self, new, old):
        """Return the norm (2.19) of the difference."""
        return new.distance(old)

    def lost(self, found):
        """Return False: states are mirror images."""
        return False
