"""Numbers that look random and depend on a key and a seed only."""

from __future__ import annotations

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def number_hashes(numbers, seed):
    """Return a hash of each number."""
    with np.errstate(over="ignore"):
        return mix(numbers.astype(np.uint64) ^ key_of(np.uint64(seed), 0))


def key_of(seed, j):
    """Return the j-th key of a seed."""
    with np.errstate(over="ignore"):
        return mix(seed + GOLDEN * (np.asarray(j, dtype=np.uint64) + np.uint64(1)))


def mix(h):
    """Return the finaliser of SplitMix64: each bit depends on all bits."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
