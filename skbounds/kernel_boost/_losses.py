"""Losses of boosted functions, at function values of weighted rows.

Labels are -1 and 1, in columns for one class against the rest; the softmax loss takes
indicators; the losses of regression take numbers. Values may be those of several paths
at once: ``f`` of shape (n, n_paths) or (n, n_paths, K) with weights of shape
(n, n_paths), for which y is ``y[:, None]`` and each mean has shape (n_paths,).

Where a loss is boosted on the logarithm of its risk, `risk` is that logarithm.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, logsumexp, softmax, xlogy

_LARGEST_LOG = 700.0
# Mean curvatures below this share of the largest one are taken for it: where most rows
# are beyond the bend of a loss, the mean is near 0 and a step would be without limit.
_LEAST_CURVATURE = 0.05
# Exponents beyond this are cut off; the risk is huge long before.
_LARGEST_EXPONENT = 50.0


def mean_of(values, weight):
    """Return the weighted sums over the rows; means for weights of sum one."""
    return np.einsum("i...,i...->...", weight, values)


def _wide(weight, f):
    """Return weights that fit to the columns of each path."""
    return weight if weight.ndim == f.ndim else weight[..., None]


class _Loss:
    """What is the same for most losses.

    Attributes
    ----------
    smoothness : float or None
        Largest curvature M; None without one.
    saturates : bool
        Whether slopes are bounded, and flat beyond a bend.
    link : float
        For two classes P(y = 1) = expit(link f).
    is_logarithm : bool
        Whether `risk` is the logarithm of the mean loss, or the mean of those of the
        columns.
    """

    saturates = False
    is_logarithm = False

    @classmethod
    def mean(cls, y, f, weight):
        """Return the mean loss."""
        return cls.risk(y, f, weight)

    @staticmethod
    def stretch(risk):
        """Return the length of a step in steps of the risk itself."""
        return np.ones_like(risk)

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        return -mean_of(log_expit(cls.link * y * f), weight)

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

    @staticmethod
    def floor(y, weight):
        """Return the least `deviance` that any values have."""
        return 0.0

    @classmethod
    def doubt(cls, f, weight):
        """Return the mean log loss for labels drawn by chance."""
        return 0.5 * (cls.deviance(1.0, f, weight) + cls.deviance(-1.0, f, weight))

    @staticmethod
    def unit_curvature(eigenvalues, diagonal, targets, share):
        """Return the curvature that steps are one over, where there is no largest."""
        return float(diagonal().max())


class Logistic(_Loss):
    """log(1 + exp(-y f)): LogitBoost."""

    smoothness = 0.25
    link = 1.0

    @staticmethod
    def risk(y, f, weight):
        """Return the mean loss."""
        return -mean_of(log_expit(y * f), weight)

    @staticmethod
    def pull(y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        return -weight * y * expit(-y * f)

    @staticmethod
    def curvature(y, f, weight):
        """Return the mean of phi''."""
        p = expit(f)
        return mean_of(p * (1.0 - p), weight)

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
    is_logarithm = True

    @staticmethod
    def risk(y, f, weight):
        """Return the logarithm of the mean loss."""
        return logsumexp(-y * f, b=weight, axis=0)

    @staticmethod
    def pull(y, f, weight):
        """Return the slopes of the log-risk."""
        return -y * _tilted(-y * f, weight)

    @staticmethod
    def curvature(y, f, weight):
        """Return 1: phi'' is phi, whose mean the steps are divided by."""
        return np.ones(f.shape[1 : weight.ndim])

    @staticmethod
    def bends(y, f):
        """Return phi'(y, f) and phi''(y, f)."""
        loss = np.exp(-y * f)
        return -y * loss, loss

    @classmethod
    def mean(cls, y, f, weight):
        """Return the mean loss, over the columns as well."""
        logs = logsumexp(-y * f, b=_wide(weight, f), axis=0)
        return _over_columns(np.exp(logs), weight)

    @staticmethod
    def stretch(risk):
        """Return the length of a step in steps of the risk itself."""
        return np.exp(np.minimum(-risk, _LARGEST_LOG))


def _tilted(logs, weight):
    """Return w exp(logs) / sum w exp(logs) over the rows."""
    logs = np.where(weight > 0.0, logs, -np.inf)
    tilted = weight * np.exp(logs - logs.max(axis=0))
    return tilted / tilted.sum(axis=0)


def _over_columns(values, weight):
    """Return the mean over the columns of each path."""
    return values.mean(axis=-1) if values.ndim == weight.ndim else values


class PlainExponential(Exponential):
    """exp(-y f) with steps of the risk itself."""

    is_logarithm = False

    @staticmethod
    def risk(y, f, weight):
        """Return the mean loss, infinite where it overflows."""
        weights = np.broadcast_to(_wide(weight, f), f.shape)
        with np.errstate(over="ignore"):
            losses = np.exp(np.where(weights > 0.0, -y * f, -np.inf))
        return _over_columns(mean_of(losses, weights), weight)

    @staticmethod
    def pull(y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        with np.errstate(over="ignore"):
            return -_wide(weight, f) * y * np.exp(-y * f)

    @classmethod
    def curvature(cls, y, f, weight):
        """Return the mean of phi''."""
        return cls.risk(y, f, weight)

    @staticmethod
    def stretch(risk):
        """Return 1."""
        return np.ones_like(risk)


class _OneAgainstRest:
    """Columns of labels, one class against the rest each."""

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        logs = log_expit(cls.link * f)
        own = np.where(y > 0.0, logs, 0.0).sum(axis=-1)
        return mean_of(logsumexp(logs, axis=-1) - own, weight)

    @classmethod
    def doubt(cls, f, weight):
        """Return the mean log loss for labels drawn by chance."""
        logs = log_expit(cls.link * f)
        return mean_of(logsumexp(logs, axis=-1) - logs.mean(axis=-1), weight)

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
        return logsumexp(-y * f, b=_wide(weight, f), axis=0).mean(axis=-1)

    @staticmethod
    def pull(y, f, weight):
        """Return the slopes of the log-risks."""
        return -y * _tilted(-y * f, _wide(weight, f))


class PlainExponentialEach(_OneAgainstRest, PlainExponential):
    """exp(-y f) for each class against the rest, with steps of the risk itself."""


def _exponentials(F):
    """Return the largest value of each row, and exp(F - largest).

    SciPy's logsumexp and softmax take several times as long for small arrays.
    """
    largest = F.max(axis=-1, keepdims=True)
    return largest, np.exp(F - largest)


class Softmax(_Loss):
    """Multinomial log loss."""

    smoothness = 0.5
    link = 1.0

    @staticmethod
    def risk(Y, F, weight):
        """Return the mean loss."""
        largest, E = _exponentials(F)
        own = np.einsum("...k,...k->...", np.broadcast_to(Y, F.shape), F)
        return mean_of(np.log(E.sum(axis=-1)) + largest[..., 0] - own, weight)

    @staticmethod
    def pull(Y, F, weight):
        """Return the weighted slopes, a column per class."""
        P = _exponentials(F)[1]
        P /= P.sum(axis=-1, keepdims=True)
        P -= Y
        P *= weight[..., None]
        return P

    @staticmethod
    def curvature(Y, F, weight):
        """Return the mean eigenvalue of the mean Hessian, without the one that is 0."""
        E = _exponentials(F)[1]
        total = E.sum(axis=-1)
        squares = np.einsum("...k,...k->...", E, E) / total**2
        return mean_of(1.0 - squares, weight) / (F.shape[-1] - 1)

    @classmethod
    def deviance(cls, y, f, weight):
        """Return the mean log loss of the probabilities."""
        return cls.risk(y, f, weight)

    @classmethod
    def doubt(cls, f, weight):
        """Return the mean log loss for labels drawn by chance."""
        return cls.risk(np.full(f.shape, 1.0 / f.shape[-1]), f, weight)

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


class Huber(_Loss):
    """(y - f)^2 / 2 up to |y - f| = delta, and linear beyond.

    Parameters
    ----------
    delta : float
    """

    smoothness = 1.0
    saturates = True

    def __init__(self, delta):
        self.delta = delta

    def risk(self, y, f, weight):
        """Return the mean loss."""
        gap = np.abs(y - f)
        inside = np.minimum(gap, self.delta)
        return mean_of(inside * (gap - 0.5 * inside), weight)

    mean = deviance = risk

    def pull(self, y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        return weight * np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y, f, weight):
        """Return the mean of phi'', not less than a share of the largest."""
        inside = (np.abs(y - f) <= self.delta).astype(np.float64)
        return np.maximum(mean_of(inside, weight), _LEAST_CURVATURE)

    def start(self, y, weight):
        """Return the median."""
        return weighted_quantile(y, weight, 0.5)


class Pinball(_Loss):
    """q (y - f) for y > f and (1 - q) (f - y) else, its slope rounded off.

    Parameters
    ----------
    quantile : float
        q.
    width : float
        The slope goes from -q to 1 - q on an interval of this length around y.
    """

    saturates = True

    def __init__(self, quantile, width):
        self.quantile, self.width = quantile, width
        self.smoothness = 1.0 / width

    def risk(self, y, f, weight):
        """Return the mean of the loss whose slope is rounded off."""
        gap, half = f - y, 0.5 * self.width
        bend = np.clip(gap + half, 0.0, self.width)
        rounded = bend * bend / (2.0 * self.width) + np.maximum(gap - half, 0.0)
        return mean_of(rounded - self.quantile * gap, weight)

    mean = risk

    def deviance(self, y, f, weight):
        """Return the mean pinball loss."""
        gap = y - f
        q = self.quantile
        return mean_of(np.where(gap > 0.0, q * gap, (q - 1.0) * gap), weight)

    def pull(self, y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        part = np.clip((f - y) / self.width + 0.5, 0.0, 1.0)
        return weight * (part - self.quantile)

    def curvature(self, y, f, weight):
        """Return the mean of phi'', not less than a share of the largest."""
        inside = (np.abs(y - f) <= 0.5 * self.width).astype(np.float64)
        share = np.maximum(mean_of(inside, weight), _LEAST_CURVATURE)
        return share * self.smoothness

    def start(self, y, weight):
        """Return the quantile."""
        return weighted_quantile(y, weight, self.quantile)


class Poisson(_Loss):
    """exp(f) - y f: counts with the logarithm of their mean."""

    smoothness = None

    def risk(self, y, f, weight):
        """Return the mean loss."""
        return mean_of(np.exp(np.minimum(f, _LARGEST_EXPONENT)) - y * f, weight)

    mean = deviance = risk

    @staticmethod
    def unit_curvature(eigenvalues, diagonal, targets, share):
        """Return that of the mean."""
        largest = float(eigenvalues[0]) if len(eigenvalues) else 0.0
        return largest * float(share @ targets)

    def pull(self, y, f, weight):
        """Return the weighted slopes w phi'(y, f)."""
        return weight * (np.exp(np.minimum(f, _LARGEST_EXPONENT)) - y)

    def curvature(self, y, f, weight):
        """Return the mean of phi''."""
        return mean_of(np.exp(np.minimum(f, _LARGEST_EXPONENT)), weight)

    def start(self, y, weight):
        """Return the logarithm of the mean, of one half more in all for none."""
        total = weight @ y
        return np.log((total if total > 0.0 else 0.5) / weight.sum())

    @staticmethod
    def floor(y, weight):
        """Return the least mean loss that any values have."""
        return float(weight @ (y - xlogy(y, y)))


def weighted_quantile(values, weight, q):
    """Return the middle of the values at which the share q of the weight is reached."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(weight[order])
    aim = q * total[-1]
    rounding = 1e-12 * total[-1]
    low = np.searchsorted(total, aim - rounding)
    high = np.searchsorted(total, aim + rounding, side="right")
    last = len(values) - 1
    return 0.5 * float(values[min(low, last)] + values[min(high, last)])


def loss_of(name, n_classes, *, plain):
    """Return the loss of classes by its public name.

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
