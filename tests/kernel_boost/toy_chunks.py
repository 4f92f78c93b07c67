"""Factors with the landmarks of another fit."""

from scipy import linalg


class FixedFactor:
    """The factor of given pivots, in the place of one with random ones."""

    exhausted = False

    def __init__(self, pivots):
        self.chosen = pivots

    def __call__(self, kernel, diagonal, weight, max_rank, rng):
        L = linalg.cholesky(kernel(self.chosen, self.chosen), lower=True)
        K = kernel(slice(None), self.chosen)
        self.whole = linalg.solve_triangular(L, K.T, lower=True).T
        self.diagonal, self.max_rank, self.rank = diagonal, len(self.chosen), 0
        return self

    def grow(self, rank):
        self.rank = min(rank, self.max_rank)

    def check_definite(self):
        pass

    @property
    def factor(self):
        return self.whole[:, : self.rank]

    @property
    def pivots(self):
        return self.chosen[: self.rank]

    @property
    def residual(self):
        return self.diagonal - (self.factor**2).sum(axis=1)
