"""Partial fractions for what boosting leaves of a component: (1 - s / T)^T on [0, T].

The AAA algorithm (Nakatsukasa, Sete and Trefethen 2018, "The AAA algorithm for rational
approximation", SIAM J. Sci. Comput. 40) chooses the poles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eig, lstsq, svd

# Term counts that are tried; the best one differs from time to time.
_TERMS = (8, 9, 10, 11, 12, 13, 14)
# Below this many steps the filter is a polynomial without accurate poles.
FEWEST_STEPS = 8
# Nothing varies beyond.
_QUIET = 1e5
# From here on poles hardly move.
_LARGE = 11585
_TABLE = Path(__file__).with_name("_poles.npz")


@dataclass(frozen=True)
class Fractions:
    """1 - (1 - s / T)^T ~ sum_k Re d_k s / (s - z_k).

    Attributes
    ----------
    poles, factors : ndarray of complex
        z_k and d_k, one of each conjugate pair with twice its factor.
    error : float
        Largest error found on [0, T].
    """

    poles: np.ndarray
    factors: np.ndarray
    error: float


@lru_cache(maxsize=1)
def table():
    """Return {T: Fractions} for the times that were prepared."""
    with np.load(_TABLE) as stored:
        times, counts = stored["times"], stored["counts"]
        ends = np.cumsum(counts)
        return {
            int(T): Fractions(
                stored["poles"][end - count : end],
                stored["factors"][end - count : end],
                float(error),
            )
            for T, count, end, error in zip(
                times, counts, ends, stored["errors"], strict=True
            )
        }


@lru_cache(maxsize=256)
def fractions(T) -> Fractions:
    """Return the partial fractions for T >= 8 steps."""
    return table().get(T) or approximate(T)


def prepared_times():
    """Return the times of the table: 8 times powers of 2^(1/4), rounded."""
    return np.unique(np.round(8.0 * 2.0 ** (0.25 * np.arange(121))))


def write_table():
    """Make the file that `table` reads."""
    times = prepared_times()
    found = [approximate(T) for T in times]
    np.savez_compressed(
        _TABLE,
        times=times,
        counts=[len(item.poles) for item in found],
        poles=np.concatenate([item.poles for item in found]),
        factors=np.concatenate([item.factors for item in found]),
        errors=[item.error for item in found],
    )


def left_over(s, T):
    """Return (1 - s / T)^T."""
    with np.errstate(divide="ignore"):
        return np.exp(T * np.log1p(-s / T))


def sample_points(T, n=400):
    """Return points of [0, T], dense where the function varies."""
    knee = min(60.0, T)
    near = np.concatenate([np.linspace(0.0, knee, n), np.geomspace(1e-6, knee, n // 2)])
    # Nothing happens far out: a few points keep the approximation quiet there.
    end = min(T, _QUIET)
    far = np.geomspace(knee, end, n) if T > knee else np.empty(0)
    beyond = (
        np.geomspace(end, T, 20)
        if T > end
        else T - np.geomspace(1e-3 * T, 0.5 * T, n // 4)
    )
    return np.unique(np.clip(np.concatenate([near, far, beyond, [T]]), 0.0, T))


def approximate(T) -> Fractions:
    """Find partial fractions for T >= 8 steps.

    The number of terms is that of the smallest error without a pole on [0, T].
    """
    s = sample_points(T)
    check = np.sort(np.concatenate([s, 0.5 * (s[1:] + s[:-1])]))
    if T > _LARGE:
        # The filter is exp(-s) nearly, and so are the poles the same.
        return _fit(fractions(_LARGE).poles, s, check, T)
    best: Any = None
    for nodes, weights in _aaa(s, left_over(s, T), max(_TERMS)):
        if len(nodes) not in _TERMS:
            continue
        poles = _poles(nodes, weights)
        real = np.abs(poles.imag) < 1e-10 * np.abs(poles)
        if (real & (poles.real > -1e-12) & (poles.real < T * (1.0 + 1e-12))).any():
            continue
        poles = np.where(real, poles.real, poles)
        found = _fit(poles[poles.imag >= 0.0], s, check, T)
        if best is None or found.error < best.error:
            best = found
    return best


def _fit(poles, s, check, T):
    """Return the fractions with given poles, by least squares."""
    terms = lambda s: s[:, None] / (s[:, None] - poles)
    design = np.hstack([terms(s).real, -terms(s).imag])
    found = lstsq(design, 1.0 - left_over(s, T))[0]
    factors = found[: len(poles)] + 1j * found[len(poles) :]
    error = np.abs((terms(check) @ factors).real - (1.0 - left_over(check, T))).max()
    return Fractions(poles, factors, float(error))


def _aaa(s, f, most):
    """Yield support points and barycentric weights, one more each time."""
    left = np.ones(len(s), dtype=bool)
    approx = np.full(len(s), f.mean())
    nodes, values = [], []
    for _ in range(most + 1):
        k = np.argmax(np.where(left, np.abs(f - approx), -1.0))
        nodes.append(s[k])
        values.append(f[k])
        left[k] = False
        z, v = np.array(nodes), np.array(values)
        cauchy = 1.0 / (s[left, None] - z)
        weights = svd((f[left, None] - v) * cauchy, full_matrices=False)[2][-1]
        approx = f.copy()
        approx[left] = (cauchy @ (weights * v)) / (cauchy @ weights)
        yield z, weights


def _poles(nodes, weights):
    """Return the zeros of the barycentric denominator."""
    m = len(nodes)
    arrow, mass = np.diag(np.r_[0.0, nodes]), np.eye(m + 1)
    arrow[0, 1:], arrow[1:, 0], mass[0, 0] = weights, 1.0, 0.0
    found = eig(arrow, mass, right=False)
    return found[np.isfinite(found)]
