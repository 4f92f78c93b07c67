"""Data with a known law for the tests of certified ensembles."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if


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


class Echo(ClassifierMixin, BaseEstimator):
    """Predicts what a column of X says: class codes, and a decision if there is one.

    Parameters
    ----------
    labels : list
        The classes.
    column : int
        Column of the codes.
    decision : int or None
        Column of the decision values, of as many as there are classes, or one for two.
    """

    def __init__(self, labels=(0, 1), column=0, decision=None):
        self.labels = labels
        self.column = column
        self.decision = decision

    def fit(self, X=None, y=None):
        self.classes_ = np.unique(self.labels)
        return self

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, self.column].astype(int)]

    @available_if(lambda self: self.decision is not None)
    def decision_function(self, X):
        k = len(self.classes_)
        if k == 2:
            return np.asarray(X)[:, self.decision]
        return np.asarray(X)[:, self.decision : self.decision + k]


def frozen_vote(votes, labels=(0, 1)):
    """Return rows and frozen members of which the h-th predicts votes[:, h]."""
    votes = np.asarray(votes)
    members = [
        FrozenEstimator(Echo(labels, column).fit()) for column in range(votes.shape[1])
    ]
    return votes.astype(float), members
