"""Data with a known law for the tests of certified ensembles."""

import numpy as np


def twonorm(rng, n, d=5):
    """Two normal classes whose means are two deviations apart."""
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + (2 * y[:, None] - 1) / np.sqrt(d), y


def noisy_rings(rng, n, d=5, noise=0.2):
    """A wide and a narrow normal class, with flipped labels."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, d)) * np.where(y[:, None] == 1, 2.0, 1.0)
    return X, np.where(rng.uniform(size=n) < noise, 1 - y, y)


def blobs(rng, n, n_classes=4, d=3, spread=1.5):
    """Several overlapping normal classes."""
    y = np.arange(n) % n_classes
    centres = np.random.RandomState(0).normal(size=(n_classes, d)) * spread
    return rng.normal(size=(n, d)) + centres[y], y
