"""Data sets with known numbers, and small ones at random."""

import re

import numpy as np
import pytest

A_X = np.array([0.0, 0.1, 0.35, 0.6, 1.0])[:, None]
A_Y = np.array([0.9, 1.2, 1.5, 1.4, 2.1])
B_X = np.array(
    [[0.1, 0.2], [0.4, 0.9], [0.7, 0.3], [0.9, 0.8], [0.2, 0.6], [0.55, 0.5]]
)
B_Y = np.array([1.3, 2.2, 2.1, 2.8, 1.7, 2.0])
C_X = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0], [2.0, 2.0], [2.5, 1.2], [1.1, 1.4]])
C_Y = np.array([-1, -1, -1, 1, 1, 1])


def covariances(rng, n, q, size=0.3):
    """Random regular covariance matrices with deviations of about `size`."""
    roots = rng.normal(size=(n, q, q)) / np.sqrt(q)
    return size**2 * (roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(q))


def scales(rng, n, d, size=0.3):
    """Random deviations, and the diagonal covariance matrices that have them."""
    deviations = size * rng.uniform(0.3, 1.7, size=(n, d))
    return deviations, deviations[:, :, None] ** 2 * np.eye(d)


def regression(seed, n=10, d=2, m=None):
    """A curved regression problem with noise, `m` outputs (None: a flat y)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1.0, 2.0, d) + np.arange(d)
    y = np.sin(X @ rng.normal(size=(d, m or 1))) + 0.3 * rng.normal(size=(n, m or 1))
    return X, y if m else y[:, 0]


def classification(seed, n=30, d=2, n_classes=2, labels=None):
    """Overlapping normal classes; every class has at least n // n_classes rows."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    centers = 1.2 * rng.normal(size=(n_classes, d))
    X = (centers[codes] + rng.normal(size=(n, d))) * np.linspace(0.5, 3.0, d)
    labels = np.arange(n_classes) if labels is None else np.asarray(labels)
    return X, labels[codes]


def polars():
    """Return polars, or skip the test."""
    return pytest.importorskip("polars", reason="not known to the oldest versions")


def label(value):
    """Return an identifier that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
