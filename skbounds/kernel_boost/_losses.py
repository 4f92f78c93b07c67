"""Losses of boosted classifiers, at function values of weighted rows.

Labels are -1 and 1, in columns for one class against the rest; the softmax loss takes
indicators. Weights have sum one. Where a loss is boosted on the logarithm of its risk,
`risk` is that logarithm.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, logsumexp, softmax

_LARGEST_LOG = 700.0


class _Loss:
    """What is the same for most losses."""

    @classmethod
    def mean(cls, y, f, weight):
        """Return the mean loss."""
        return cls.risk(y, f, weight)

    @staticmethod
    def stretch(risk):
        """Return the length of a step in steps of the risk itself."""
        return 1.0

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        return float(-(weight @ log_expit(cls.link * y * f)))

    @classmethod
    def probabilities(cls, f):
        """Return the probabilities of all classes."""
        return np.column_stack([expit(-cls.link * f), expit(cls.link * f)])

    @classmethod
    def start(cls, share):
        """Return the best constant for the shares of the classes."""
        return np.log(share[1] / share[0]) / cls.link

    @staticmethod
    def encode(codes, n_classes):
        """Return the targets of class numbers."""
        return np.where(codes == 1, 1.0, -1.0)


class Logistic(_Loss):
    """log(1 + exp(-y f)): LogitBoost."""

    # Largest curvature, and P(y = 1) = expit(link f).
    smoothness = 0.25
    link = 1.0

    @staticmethod
    def risk(y, f, weight):
        """Return the mean loss."""
        return float(-(weight @ log_expit(y * f)))

    @staticmethod
    def pull(y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        return -weight * y * expit(-y * f)

    @staticmethod
    def curvature(y, f, weight):
        """Return the mean of phi''."""
        p = expit(f)
        return float(weight @ (p * (1.0 - p)))

    @staticmethod
    def bends(y, f):
        """Return phi'(y, f) and phi''(y, f)."""
        p = expit(f)
        return -y * expit(-y * f), p * (1.0 - p)


class Exponential(_Loss):
    """exp(-y f): AdaBoost, by steps on the logarithm of the risk.

    These are steps of the risk itself divided by the risk; they cannot overflow.
    """

    smoothness = None
    link = 2.0

    @staticmethod
    def risk(y, f, weight):
        """Return the logarithm of the mean loss."""
        return float(logsumexp(-y * f, b=weight))

    @staticmethod
    def pull(y, f, weight):
        """Return the slopes of the log-risk."""
        return -y * softmax(np.log(weight) - y * f)

    @staticmethod
    def curvature(y, f, weight):
        """Return 1: phi'' is phi, whose mean the steps are divided by."""
        return 1.0

    @staticmethod
    def bends(y, f):
        """Return phi'(y, f) and phi''(y, f)."""
        loss = np.exp(-y * f)
        return -y * loss, loss

    @classmethod
    def mean(cls, y, f, weight):
        """Return the mean loss, over the columns as well."""
        weight = weight if y.ndim == 1 else weight[:, None]
        return float(np.exp(logsumexp(-y * f, b=weight, axis=0)).mean())

    @staticmethod
    def stretch(risk):
        """Return the length of a step in steps of the risk itself."""
        return float(np.exp(min(-risk, _LARGEST_LOG)))


class PlainExponential(Exponential):
    """exp(-y f) with steps of the risk itself."""

    @staticmethod
    def risk(y, f, weight):
        """Return the mean loss, infinite where it overflows."""
        with np.errstate(over="ignore"):
            return float((weight @ np.exp(-y * f)).mean())

    @staticmethod
    def pull(y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        weight = weight if y.ndim == 1 else weight[:, None]
        with np.errstate(over="ignore"):
            return -weight * y * np.exp(-y * f)

    @classmethod
    def curvature(cls, y, f, weight):
        """Return the mean of phi''."""
        return cls.risk(y, f, weight)

    @staticmethod
    def stretch(risk):
        """Return 1."""
        return 1.0


class _OneAgainstRest:
    """Columns of labels, one class against the rest each."""

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        logs = log_expit(cls.link * f)
        own = np.where(y > 0.0, logs, 0.0).sum(axis=1)
        return float(weight @ (logsumexp(logs, axis=1) - own))

    @classmethod
    def probabilities(cls, f):
        """Return the probabilities of all classes: those of the columns, of sum 1."""
        return softmax(log_expit(cls.link * f), axis=1)

    @classmethod
    def start(cls, share):
        """Return the best constants for the shares of the classes."""
        return np.log(share / (1.0 - share)) / cls.link

    @staticmethod
    def encode(codes, n_classes):
        """Return the targets of class numbers."""
        return np.where(np.eye(n_classes)[codes] > 0.0, 1.0, -1.0)


class ExponentialEach(_OneAgainstRest, Exponential):
    """exp(-y f) for each class against the rest, by steps on the log-risks."""

    @staticmethod
    def risk(y, f, weight):
        """Return the mean of the columns' log-risks."""
        return float(logsumexp(-y * f, b=weight[:, None], axis=0).mean())

    @staticmethod
    def pull(y, f, weight):
        """Return the slopes of the log-risks."""
        return -y * softmax(np.log(weight)[:, None] - y * f, axis=0)


class PlainExponentialEach(_OneAgainstRest, PlainExponential):
    """exp(-y f) for each class against the rest, with steps of the risk itself."""


class Softmax(_Loss):
    """Multinomial log loss."""

    smoothness = 0.5
    link = 1.0

    @staticmethod
    def risk(Y, F, weight):
        """Return the mean loss."""
        return float(weight @ (logsumexp(F, axis=1) - (Y * F).sum(axis=1)))

    @staticmethod
    def pull(Y, F, weight):
        """Return the weighted slopes, a column per class."""
        return weight[:, None] * (softmax(F, axis=1) - Y)

    @staticmethod
    def curvature(Y, F, weight):
        """Return the mean eigenvalue of the mean Hessian, without the one that is 0."""
        P = softmax(F, axis=1)
        total = float((weight @ (P * (1.0 - P))).sum())
        return total / (P.shape[1] - 1)

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        return cls.risk(y, f, weight)

    @staticmethod
    def probabilities(f):
        """Return the probabilities of all classes."""
        return softmax(f, axis=1)

    @staticmethod
    def start(share):
        """Return the best constants for the shares of the classes."""
        return np.log(share) - np.log(share).mean()

    @staticmethod
    def encode(codes, n_classes):
        """Return the targets of class numbers."""
        return np.eye(n_classes)[codes]


def loss_of(name, n_classes, *, plain):
    """Return the loss by its public name.

    Parameters
    ----------
    name : {"log_loss", "exponential"}
    n_classes : int
    plain : bool
        Whether steps are those of the risk itself.
    """
    if name == "log_loss":
        return Logistic if n_classes == 2 else Softmax
    if n_classes == 2:
        return PlainExponential if plain else Exponential
    return PlainExponentialEach if plain else ExponentialEach
