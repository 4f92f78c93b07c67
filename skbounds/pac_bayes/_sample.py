"""What certification rows are independent draws of: rows, or groups of rows."""

from __future__ import annotations

import numpy as np

from skbounds._base import warn_user
from skbounds._copies import copy_ids
from skbounds.pac_bayes._constants import invert_upper
from skbounds.pac_bayes._tails import occam_limits, tail_limit

# Share of copies beyond which a certificate of independent rows says too much.
_MANY_COPIES = 0.1


class RowSample:
    """Independent rows: mistakes are counted, and the counts are binomial.

    Attributes
    ----------
    size : int
        Number of independent draws.
    shares : ndarray of shape (n_rows,)
        What each row counts in a mean.
    """

    grouped = False

    def __init__(self, n_rows):
        self.size = int(n_rows)
        self.shares = np.full(self.size, 1.0 / self.size)

    def mean(self, flags):
        """Return the mean over the draws, for each column."""
        return flags.mean(axis=0)

    def limit(self, flags, level):
        """Return an upper limit of the probability that a row has a flag."""
        return float(tail_limit(int(np.sum(flags)), self.size, level))

    def limits(self, rates, levels):
        """Return upper limits of several probabilities, from the rates seen."""
        return occam_limits(rates, self.size, levels)


class GroupSample:
    """Independent groups of rows, each of which counts by the mean of its rows.

    The means lie in [0, 1], are independent, and have the mean over groups of a group's
    rate; by Chernoff's bound kl(seen || true) is at most ln(1/delta) / n_groups.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
        Numbers of groups; some may have no rows.
    """

    grouped = True

    def __init__(self, groups):
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        self.size = len(sizes)
        self.shares = 1.0 / (self.size * sizes[codes.ravel()])

    def mean(self, flags):
        """Return the mean over groups of their means, for each column."""
        # Shares sum to one up to rounding.
        return np.minimum(self.shares @ flags, 1.0)

    def limit(self, flags, level):
        """Return an upper limit of the mean over groups of a group's rate."""
        return float(self.limits(self.mean(flags), level))

    def limits(self, rates, levels):
        """Return upper limits of several such means, from those seen."""
        with np.errstate(divide="ignore"):
            return invert_upper(rates, -np.log(levels) / self.size)


def make_sample(n_rows, groups=None):
    """Return the sample of some rows, or of their groups."""
    return RowSample(n_rows) if groups is None else GroupSample(groups)


def warn_of_copies(values, codes, train, cert):
    """Warn if certification rows are copies of training rows, label included.

    Parameters
    ----------
    values : {ndarray, sparse matrix} of shape (n_rows, n_features)
    codes : ndarray of int of shape (n_rows,)
    train, cert : ndarrays of int
    """
    if not (len(train) and len(cert)):
        return
    ids = copy_ids(values, codes)
    if ids is None:
        return
    share = float(np.isin(ids[cert], ids[train]).mean())
    if share > _MANY_COPIES:
        warn_user(
            f"{share:.0%} of the certification rows are copies of training rows, label "
            "included. The certificate is about independent rows: if these are copies "
            "of one observation, it is too low. Give groups= that keep copies "
            "together, or remove them."
        )
