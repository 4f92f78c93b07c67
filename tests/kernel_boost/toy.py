"""Small data sets, kernels to try them with, and the reference's iterates."""

import re
import warnings
from contextlib import contextmanager

import numpy as np
from reference import kernel_boost as ref
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
)

# Parameters of the estimators, with a gamma that suits `regression`.
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.6},
    "laplacian": {"kernel": "laplacian", "gamma": 0.4},
    "sobolev": {"kernel": "sobolev"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 0.5},
    "cosine": {"kernel": "cosine"},
}
LOSSES = ("squared", "logistic", "exponential", "softmax")


def regression(seed, n=14, d=2, m=None):
    """Noisy targets of features that are not negative; `m` outputs (None: a flat y)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, size=(n, d))
    signal = np.sin(2.0 * X @ rng.normal(size=(d, m or 1)))
    y = 1.0 + 2.0 * signal + 0.4 * rng.normal(size=(n, m or 1))
    return X, y if m else y[:, 0]


def classification(seed, n=18, d=2, n_classes=2, labels=None):
    """Overlapping classes of features that are not negative."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    centres = rng.uniform(0.5, 2.5, size=(n_classes, d))
    X = np.abs(centres[codes] + 0.7 * rng.normal(size=(n, d)))
    labels = np.arange(n_classes) if labels is None else np.asarray(labels)
    return X, labels[codes]


def line(seed, n, ties=0, m=None):
    """One feature with some repeated values, in no order."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 2.0, size=n)
    if ties:
        x[rng.permutation(n)[:ties]] = x[rng.integers(n, size=ties)]
    y = np.abs(x - 1.0)[:, None] * np.linspace(1.0, 3.0, m or 1)
    y = y + 0.3 * rng.normal(size=(n, m or 1))
    return x[:, None], y if m else y[:, 0]


def gram(X, Z=None, kernel="rbf", **options):
    """The kernel matrix that the estimators' parameters mean."""
    if kernel == "sobolev" or callable(kernel):
        return ref.gram(X, Z, kernel)
    return pairwise_kernels(X, Z, metric=kernel, filter_params=True, **options)


def signs(y):
    """-1 for the smaller of two labels and 1 for the larger."""
    return np.where(y == np.max(y), 1.0, -1.0)


def codes(y):
    """0, 1, ... for the labels in their order."""
    return np.unique(y, return_inverse=True)[1]


def offset_of(loss, y, weights=None):
    """The offset of the reference, from the user's targets or labels."""
    if loss == "softmax":
        labels = codes(y)
        return ref.softmax_offset(labels, labels.max() + 1, weights)
    return ref.start_offset(loss, y if loss == "squared" else signs(y), weights)


def reference_path(G, y, loss, alpha, n_steps, offset=0.0, log_risk=False, w=None):
    """Dual coefficients of the plain loop after 0, ..., n_steps steps."""
    if loss == "softmax":
        labels = codes(y)
        n_classes = labels.max() + 1
        return ref.boost_softmax(G, labels, n_classes, alpha, n_steps, offset, w)
    targets = y if loss == "squared" else signs(y)
    return ref.boost(G, targets, loss, alpha, n_steps, offset, log_risk, w)[0]


def make(loss, kernel="rbf", **options):
    """The estimator of a loss, with the parameters of one of `KERNELS` or a name."""
    options = {**KERNELS.get(kernel, {"kernel": kernel}), **options}
    if loss == "squared":
        return EarlyStoppedKernelBoost(**options)
    name = "exponential" if loss == "exponential" else "log_loss"
    return EarlyStoppedKernelBoostClassifier(loss=name, **options)


def problem(loss, seed, n=18, d=2):
    """Data for a loss."""
    if loss == "squared":
        return regression(seed, n, d)
    return classification(seed, n, d, n_classes=3 if loss == "softmax" else 2)


def raw(model, X):
    """Function values: the prediction or the decision function."""
    named = "decision_function" if hasattr(model, "classes_") else "predict"
    return getattr(model, named)(X)


def staged(model, X, t=None):
    """Function values at the times t, from the staged predictions."""
    if not hasattr(model, "classes_"):
        return np.array(list(model.staged_predict(X, t=t)))
    P = np.array(list(model.staged_predict_proba(X, t=t)))
    if P.shape[2] > 2:
        F = np.log(P)
        return F - F.mean(axis=2, keepdims=True)
    return logit(P[:, :, 1]) / (2.0 if model.loss == "exponential" else 1.0)


def mean_loss(loss, y, f, weights=None):
    """Mean of phi at function values."""
    if loss == "softmax":
        return ref.softmax_risk(codes(y), f, weights)
    return ref.risk(loss, y if loss == "squared" else signs(y), f, weights)


@contextmanager
def at_the_last_step():
    """The time that a rule chooses may be `max_iter`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def caught(action, *args, **kwargs):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action(*args, **kwargs)
    return found


def numbers_in(text):
    """All numbers that a message contains."""
    found = re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", text)
    return np.array([float(number) for number in found])
