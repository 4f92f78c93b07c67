"""Many best-arm tests one after the other, with few false discoveries."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skbounds._base import SkboundsEstimator
from skbounds.sequential._best_arm import BestArmTest, _is_count
from skbounds.sequential._online_procedure import OnlineProcedure
from skbounds.sequential._procedures import LORD, PROCEDURES

# The level of a test that cannot be rejected.
_NO_LEVEL = 1e-300
# The level of a test that is nearly always rejected.
_ALL = 1.0 - 1e-12
_DEFAULT = 0.05


class MABFDR(SkboundsEstimator):
    """Bandit experiments in a row, each at a level that an online procedure gives.

    `begin` opens an experiment at the level that the earlier decisions allow; the
    experiment stops by itself or is stopped; `finish` decides, and tells the procedure
    (Procedures 1 and 2 of [1]_).

    Read more in the :ref:`User Guide <sequential>`.

    .. versionadded:: 0.1

    Parameters
    ----------
    procedure : LORD, LORDPrime, LORDPlusPlus or AlphaSpending, default=None
        The online procedure, of which a fresh clone is used. None is ``LORD(alpha)``.
    alpha : float, default=None
        The false discovery rate that is allowed. None is that of the procedure, or 0.05
        where none is given. With a procedure of another alpha it is an error.
    epsilon : float, default=0.0
        Improvement over the control that is asked for.
    sigma : float
        Sub-Gaussian scale of the rewards: 1 for unit variance, 1/2 for rewards in
        [0, 1], (b - a)/2 for [a, b].
    max_pulls : int
        Largest number of rewards of an experiment.
    sampler : {"lucb", "uniform"}, default="lucb"
        As of `BestArmTest`.
    random_state : int, RandomState instance or None, default=None
        Seed of the experiments' generators.

    Attributes
    ----------
    history_ : list of dict
        For each experiment ``"n_arms"``, ``"level"``, ``"p_value"``,
        ``"log_p_value"``, ``"recommendation"``, ``"n_pulls"``, ``"is_certified"`` and
        ``"rejected"``.

    See Also
    --------
    BestArmTest : One experiment.
    LORD : The levels.

    Notes
    -----
    With LORD the mFDR is at most alpha after each experiment (Theorem 4), with
    LORDPrime the FDR as well (Theorem 5), if experiments do not overlap, if what is
    started, stopped or skipped depends on earlier experiments through their decisions
    only, and if experiments are independent. Within an experiment anything may be
    looked at.

    References
    ----------
    .. [1] F. Yang, A. Ramdas, K. Jamieson and M. Wainwright, "A framework for
       multi-A(rmed)/B(andit) testing with online FDR control", NeurIPS 2017. Numbers
       are those of chapter 4 of F. Yang's thesis.

    Examples
    --------
    >>> from skbounds.sequential import MABFDR
    >>> study = MABFDR(alpha=0.1, sigma=1.0, max_pulls=2000, random_state=0)
    >>> means = [[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    >>> draws = [
    ...     lambda arm, size, rng, m=m: m[arm] + rng.normal(size=size) for m in means
    ... ]
    >>> study = study.run((3, draw) for draw in draws)
    >>> [(entry["rejected"], entry["recommendation"]) for entry in study.history_]
    [(True, 2), (False, 0), (True, 1)]
    """

    def __init__(
        self, procedure=None, *, alpha=None, epsilon=0.0, sigma, max_pulls,
        sampler="lucb", random_state=None,
    ):  # fmt: skip
        self.procedure = procedure
        self.alpha = alpha
        self.epsilon = epsilon
        self.sigma = sigma
        self.max_pulls = max_pulls
        self.sampler = sampler
        self.random_state = random_state

    def _start(self):
        """Begin, unless that was done."""
        if hasattr(self, "_procedure_"):
            return
        if self.procedure is None:
            procedure = LORD(_DEFAULT if self.alpha is None else self.alpha)
        elif not isinstance(self.procedure, OnlineProcedure):
            raise ValueError(
                f"procedure must be one of {sorted(PROCEDURES)}; got "
                f"{self.procedure!r}."
            )
        else:
            if self.alpha not in (None, self.procedure.alpha):
                raise ValueError(
                    f"procedure has alpha={self.procedure.alpha}, and alpha="
                    f"{self.alpha} is given as well; give the procedure's only."
                )
            procedure = clone(self.procedure)
        procedure._start()
        if not _is_count(self.max_pulls) or self.max_pulls < 2:
            raise ValueError(
                f"max_pulls must be an integer, at least 2; got {self.max_pulls!r}."
            )
        self._given_ = self.get_params(deep=False)
        # For its checks.
        self._make(2, 0.05, 0)
        self._seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._open_, self._history_ = None, []
        self._procedure_ = procedure

    def _make(self, n_arms, level, seed):
        given = self._given_
        test = BestArmTest(
            n_arms, delta=min(max(level, _NO_LEVEL), _ALL), epsilon=given["epsilon"],
            sigma=given["sigma"], max_pulls=given["max_pulls"],
            sampler=given["sampler"], random_state=seed,
        )  # fmt: skip
        test._start()
        return test

    @property
    def history_(self):
        """What the experiments so far have found."""
        self._start()
        return [dict(entry) for entry in self._history_]

    @property
    def next_level_(self):
        """Level of the next experiment."""
        self._start()
        return self._procedure_.next_level_

    @property
    def wealth_(self):
        """Wealth of the procedure."""
        self._start()
        return self._procedure_.wealth_

    def begin(self, n_arms):
        """Open the next experiment.

        Parameters
        ----------
        n_arms : int
            Number of its arms, with the control.

        Returns
        -------
        test : BestArmTest
            At the level that the procedure gives.
        """
        self._start()
        if self._open_ is not None:
            raise ValueError(
                "an experiment is open; finish it first. Experiments that overlap have "
                "no guarantee."
            )
        seed = np.random.SeedSequence([self._seed_, len(self._history_)])
        seed = int(seed.generate_state(1)[0] % (2**31 - 1))
        self._open_ = self._make(n_arms, self._procedure_.next_level_, seed)
        return self._open_

    def finish(self, test):
        """Decide on the experiment that is open.

        Parameters
        ----------
        test : BestArmTest
            What `begin` returned, ended or not.

        Returns
        -------
        rejected : bool
            Whether its p-value is at most its level, and its best arm is not the
            control.
        """
        self._start()
        if self._open_ is None or test is not self._open_:
            raise ValueError("finish takes the experiment that begin has opened.")
        level = self._procedure_.next_level_
        best = test.recommendation_
        rejected = test.rejected(level)
        self._procedure_.update(rejected)
        self._history_.append(
            {
                "n_arms": int(test.n_arms),
                "level": float(level),
                "p_value": test.p_value_,
                "log_p_value": float(test.log_p_value_),
                "recommendation": int(best),
                "n_pulls": test.n_pulls_,
                "is_certified": test.is_certified_,
                "rejected": rejected,
            }
        )
        self._open_ = None
        return rejected

    def run(self, experiments):
        """Run experiments to their ends.

        Parameters
        ----------
        experiments : iterable of (n_arms, draw)
            Numbers of arms, and functions ``draw(arm, size, rng)`` that return rewards.

        Returns
        -------
        self : object
            With its history.
        """
        for n_arms, draw in experiments:
            test = self.begin(n_arms)
            self.finish(test.run(draw))
        return self

    def to_dict(self):
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = dict(self._given_)
        params.pop("procedure")
        if not isinstance(params["random_state"], Integral):
            params["random_state"] = None
        params = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in params.items()
        }
        return {
            "params": params,
            "given": self._given_["procedure"] is not None,
            "procedure": self._procedure_.to_dict(),
            "seed": self._seed_,
            "open": None if self._open_ is None else self._open_.to_dict(),
            "history": self.history_,
        }

    @classmethod
    def from_dict(cls, state):
        """Return the study that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`.

        Returns
        -------
        study : MABFDR
            Goes on where the other was. An experiment that was open is in ``open_``.
        """
        kind = PROCEDURES[state["procedure"]["procedure"]]
        procedure = kind.from_dict(state["procedure"])
        given = clone(procedure) if state["given"] else None
        found = cls(given, **state["params"])
        found._start()
        found._procedure_, found._seed_ = procedure, int(state["seed"])
        found._history_ = [dict(entry) for entry in state["history"]]
        if state["open"] is not None:
            found._open_ = BestArmTest.from_dict(state["open"])
        return found

    @property
    def open_(self):
        """The experiment that is open, or None."""
        self._start()
        return self._open_
