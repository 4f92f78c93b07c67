"""Procedures that decide about many tests together."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skbounds._states import (
    State,
    at_least,
    at_most,
    reads_state,
    refuse,
)
from skbounds.sequential._functions import as_floats, is_number
from skbounds.sequential._online_procedure import (
    OnlineProcedure,
    Started,
    check_procedure,
    given_params,
    plain,
)
from skbounds.sequential._sequences import Gamma


class BatchBH(Started):
    """Benjamini and Hochberg's procedure, batch after batch.

    Batch s is tested by their procedure at a level that is what earlier batches have
    left of alpha (gamma_1 + ... + gamma_s), times (n + R) / n with the size n of the
    batch and the number R of rejections before [1]_.

    Read more in the :ref:`User Guide <sequential_procedures>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    gamma : {"power", "log"} or array-like, default="power"
        How it is spread over batches.

    Attributes
    ----------
    n_batches_ : int
        Number of batches so far.
    n_rejections_ : int
        Number of rejections so far.
    level_ : float
        Level of the last batch.

    See Also
    --------
    ADDIS : One test after the other.

    Notes
    -----
    FDR at most alpha after each batch, for independent p-values.

    References
    ----------
    .. [1] T. Zrnic, D. Jiang, A. Ramdas and M. Jordan, "The power of batching in
       multiple hypothesis testing", AISTATS 2020.

    Examples
    --------
    >>> from skbounds.sequential import BatchBH
    >>> procedure = BatchBH(0.1)
    >>> procedure.test([1e-4, 0.3, 1e-3]).tolist()
    [True, False, True]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        gamma: Literal["power", "log"] | ArrayLike = "power",
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma

    def _start(self):
        """Begin, unless that was done."""
        if hasattr(self, "_batches_"):
            return
        if not is_number(self.alpha) or not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha must be in (0, 1); got {self.alpha!r}.")
        self._gamma_ = Gamma(self.gamma, None, decreasing=True)
        self._given_ = given_params(self)
        self._alpha_ = float(self.alpha)
        # Of each batch: level, number of rejections, and what it would be at most with
        # one p-value replaced by 0.
        self._batches_ = []

    @property
    def n_batches_(self) -> int:
        """Number of batches so far."""
        self._start()
        return len(self._batches_)

    @property
    def n_rejections_(self) -> int:
        """Number of rejections so far."""
        self._start()
        return sum(found for _, found, _ in self._batches_)

    def test(self, p_values: ArrayLike) -> np.ndarray:
        """Test a batch of hypotheses.

        Parameters
        ----------
        p_values : array-like of shape (n,)
            Their p-values.

        Returns
        -------
        rejected : ndarray of bool of shape (n,)
            The decisions.
        """
        p_values = as_floats(p_values, "p_values", ndim=None)
        if p_values.ndim != 1 or not len(p_values):
            raise ValueError(
                "p_values must be one-dimensional, at least one; got shape "
                f"{p_values.shape}."
            )
        if not ((p_values >= 0.0) & (p_values <= 1.0)).all():
            raise ValueError("p_values must be in [0, 1], without NaN.")
        self._start()
        n, R = len(p_values), self.n_rejections_
        level = self._share() * (n + R) / n
        ordered = np.sort(p_values)
        found = _benjamini_hochberg(ordered, level)
        most = _benjamini_hochberg(np.r_[0.0, ordered[:-1]], level)
        self._batches_.append([level, found, most])
        self.level_ = level
        return p_values <= (ordered[found - 1] if found else -1.0)

    def _share(self):
        """Return what earlier batches have left for the next one."""
        R = self.n_rejections_
        spent = sum(
            level * most / (most + R - found)
            for level, found, most in self._batches_
            if most
        )
        share = sum(self._gamma_[s] for s in range(1, len(self._batches_) + 2))
        return max(self._alpha_ * share - spent, 0.0)

    def reset(self) -> Self:
        """Forget all batches.

        Returns
        -------
        self : object
            The procedure.
        """
        return OnlineProcedure.reset(self)

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        return {
            "procedure": type(self).__name__,
            "params": {name: plain(value) for name, value in self._given_.items()},
            "batches": [list(batch) for batch in self._batches_],
        }

    @classmethod
    @reads_state
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the procedure that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`.

        Returns
        -------
        procedure : object
            Goes on where the other was.

        Raises
        ------
        ValueError
            For what is no state, or cannot be one: its values must go together.
        """
        given = State(state)
        check_procedure(given, cls)
        found = cls(**given.params(cls))
        found._start()
        for row in given.rows("batches", 3):
            batch = State(dict(zip(("level", "found", "most"), row, strict=True)),
                          "a batch")  # fmt: skip
            level, most = batch.number("level", 0.0), batch.count("most")
            # The size of the batch is not known, but that it was no less than `most`.
            least, earned = found._share(), found.n_rejections_
            at_least("the level of a batch", level, least)
            at_most("the level of a batch", level, least * (1 + earned / max(most, 1)))
            found._batches_.append([level, batch.count("found", 0, most), most])
            if bool(most) != (level > 0.0):
                refuse("'most'", most, "0 for batches of level 0 only")
            found.level_ = level
        return found


def _benjamini_hochberg(ordered, level):
    """Return how many of p-values in ascending order are rejected."""
    n = len(ordered)
    small = np.flatnonzero(ordered <= level * np.arange(1, n + 1) / n)
    return int(small[-1]) + 1 if len(small) and level > 0.0 else 0


def online_ebh(
    log_e: ArrayLike,
    alpha: float = 0.05,
    *,
    gamma: Literal["log", "power"] | ArrayLike = "log",
) -> np.ndarray:
    """Return which e-values are significant after each test, by online e-BH.

    After t tests those j <= t are rejected that have e_j >= 1 / (k alpha gamma_j), with
    the largest k for which there are k of them. A rejection is never taken back; tests
    may be rejected long after they were made. The false discovery rate is at most alpha
    at all times, whatever the dependence between tests [1]_.

    .. versionadded:: 0.2

    Parameters
    ----------
    log_e : array-like of shape (n_tests,)
        Natural logarithms of e-values in the order of tests.
    alpha : float, default=0.05
        The false discovery rate that is allowed.
    gamma : {"log", "power"} or array-like, default="log"
        As of `LORD`.

    Returns
    -------
    rejected_at : ndarray of int of shape (n_tests,)
        After how many tests each was rejected; 0 for those that are not.

    See Also
    --------
    ELOND : Decisions that are made at once.

    References
    ----------
    .. [1] Z. Xu and A. Ramdas, "Online multiple testing with e-values", AISTATS 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.sequential import online_ebh
    >>> online_ebh(np.log([1e4, 3.0, 80.0, 1e5]), 0.1)
    array([1, 0, 0, 4])
    """
    log_e = as_floats(log_e, "log_e", ndim=None)
    if log_e.ndim != 1 or np.isnan(log_e).any():
        raise ValueError("log_e must be numbers in one dimension, without NaN.")
    if not is_number(alpha) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be in (0, 1); got {alpha!r}.")
    n = len(log_e)
    table = Gamma(gamma, None).table(n)[:n]
    # Test j is significant if k is at least that.
    needed, some = np.full(n, np.inf), table > 0.0
    needed[some] = np.exp(np.minimum(-log_e[some] - np.log(alpha * table[some]), 700.0))
    needs = np.maximum(np.ceil(needed), 1.0)
    found, n_by_need = np.zeros(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    sizes = np.arange(n + 1)
    for t in range(1, n + 1):
        if needs[t - 1] > n:
            continue
        n_by_need[int(needs[t - 1])] += 1
        # At 0 there are always enough.
        enough = np.flatnonzero(np.cumsum(n_by_need[: t + 1]) >= sizes[: t + 1])
        new = (needs[:t] <= enough[-1]) & (found[:t] == 0)
        found[:t][new] = t
    return found
