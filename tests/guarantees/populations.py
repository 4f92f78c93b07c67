"""Finite populations, whose rows are all known: true risks are means over them."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Population:
    """Rows that samples are drawn from, with replacement.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    """

    def __init__(self, X, y):
        self.X, self.y = np.asarray(X, dtype=float), np.asarray(y)
        self.points, self.at = np.unique(self.X, axis=0, return_inverse=True)
        self.at = self.at.ravel()
        self.n_labels = len(np.unique(self.y))

    def draw(self, rng, n):
        """Return a sample."""
        rows = rng.integers(len(self.y), size=n)
        return self.X[rows], self.y[rows]

    def wrong(self, predict):
        """Return which rows a prediction errs on."""
        return np.asarray(predict(self.points))[self.at] != self.y

    def risk(self, predict):
        """Return the error probability of a prediction."""
        return float(self.wrong(predict).mean())


def with_flips(X, y, share):
    """Return a population with ten rows at each place, of which a share is flipped."""
    X, y = np.repeat(X, 10, axis=0), np.repeat(y, 10)
    flipped = np.arange(len(y)) % 10 < round(10 * share)
    return Population(X, np.where(flipped, 1 - y, y))


_RNG = np.random.default_rng(0)
_GRID = np.stack(np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6)), -1)
_GRID = _GRID.reshape(-1, 2)
_CAUCHY = np.tan(np.pi * (_RNG.permuted(np.tile(np.arange(40) + 0.5, (2, 1)), axis=1)
                          / 40.0 - 0.5)).T  # fmt: skip
# One in 14 rows has another label than its place: what is certified on 32 rows, at
# level .1, when none of them is wrong, is just below that.
_RARE = np.repeat(_RNG.normal(size=(4, 2)), 14, axis=0)
POPULATIONS = {
    "a line, labels flipped": with_flips(_GRID, (_GRID.sum(1) > 0).astype(int), 0.2),
    "noise": with_flips(_RNG.normal(size=(40, 2)), np.zeros(40, int), 0.5),
    "separable": Population(_GRID, _GRID[:, 0] > 0),
    "heavy tails": with_flips(_CAUCHY, (_CAUCHY[:, 0] > 0).astype(int), 0.1),
    "rare label": Population(_RARE, np.arange(56) % 14 == 0),
}
for _population in POPULATIONS.values():
    _population.y = _population.y.astype(int)


class Centres(ClassifierMixin, BaseEstimator):
    """Class of the nearest mean in one feature."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        x = X[:, self.column]
        self.centres_ = np.array([x[y == label].mean() for label in self.classes_])
        return self

    def predict(self, X):
        gaps = np.abs(X[:, [self.column]] - self.centres_)
        return self.classes_[gaps.argmin(axis=1)]


class Memory(ClassifierMixin, BaseEstimator):
    """Label of the nearest training row: no error on rows that it has seen."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.X_, self.y_ = X, y
        return self

    def predict(self, X):
        gaps = ((X[:, None, :] - self.X_) ** 2).sum(axis=-1)
        return self.y_[gaps.argmin(axis=1)]


class Column(ClassifierMixin, BaseEstimator):
    """Predicts the class that a column of X has, whatever the training rows are."""

    def __init__(self, column=0, classes=(0, 1)):
        self.column = column
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.array(self.classes)
        return self

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, self.column].astype(int)]
