"""What the online procedures share: tests one after the other, wealth, JSON."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skbounds._base import SkboundsEstimator
from skbounds.sequential._functions import is_number


def plain(value):
    """Return a parameter in types that JSON knows."""
    if value is None or isinstance(value, str):
        return value
    return np.asarray(value).tolist()


class OnlineProcedure(SkboundsEstimator):
    """What the procedures share.

    Subclasses have ``_begin()``, ``_level()`` and ``_record(rejected, level)``.
    """

    def _check(self):
        """Return the parameters, checked."""
        alpha = self.alpha
        if not is_number(alpha) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must be in (0, 1); got {alpha!r}.")
        horizon = getattr(self, "horizon", None)
        if horizon is not None and (
            not isinstance(horizon, Integral)
            or isinstance(horizon, bool)
            or horizon < 1
        ):
            raise ValueError(
                f"horizon must be a positive integer or None; got {horizon!r}."
            )

    def _start(self):
        """Begin, unless that was done."""
        if not hasattr(self, "_n_tests_"):
            self._check()
            self._n_tests_, self._n_rejections_ = 0, 0
            # Sum of the levels, and what rounding has taken from it.
            self._spent_, self._lost_ = 0.0, 0.0
            # What is set later has no effect on tests under way.
            self._given_ = self.get_params(deep=False)
            self._alpha_ = float(self.alpha)
            horizon = getattr(self, "horizon", None)
            self._last_ = np.inf if horizon is None else horizon
            self._begin()
            self._next_ = None

    @property
    def n_tests_(self):
        """Number of tests so far."""
        self._start()
        return self._n_tests_

    @property
    def next_level_(self):
        """Level of the next test."""
        self._start()
        return self._known_level()

    def _known_level(self):
        if self._next_ is None:
            over = self._n_tests_ >= self._last_
            self._next_ = 0.0 if over else min(self._level(), 1.0)
        return self._next_

    @property
    def wealth_(self):
        """What is left to spend."""
        self._start()
        return self._wealth()

    def test(self, p_value):
        """Test the next hypothesis.

        Parameters
        ----------
        p_value : float
            Its p-value.

        Returns
        -------
        rejected : bool
            Whether the p-value is at most the level (and the level is not 0).
        """
        if not is_number(p_value) or not 0.0 <= p_value <= 1.0:
            raise ValueError(f"p_value must be in [0, 1]; got {p_value!r}.")
        level = self.next_level_
        rejected = bool(0.0 < level and p_value <= level)
        self._update(rejected)
        return rejected

    def update(self, rejected):
        """Say how the next test was decided, at ``next_level_`` by other means.

        Parameters
        ----------
        rejected : bool
            Whether its hypothesis was rejected.

        Returns
        -------
        self : object
            The procedure.
        """
        if not isinstance(rejected, (bool, np.bool_)):
            raise ValueError(f"rejected must be True or False; got {rejected!r}.")
        self._start()
        self._update(bool(rejected))
        return self

    def _update(self, rejected):
        level = self._known_level()
        self._n_tests_ += 1
        if rejected:
            self._n_rejections_ += 1
        # Compensated: the wealth is a difference of long sums.
        term = level - self._lost_
        total = self._spent_ + term
        self._lost_ = (total - self._spent_) - term
        self._spent_ = total
        self._record(rejected, level)
        self._next_ = None

    def fit(self, p_values, y=None):
        """Start afresh, and test many hypotheses in their order.

        Parameters
        ----------
        p_values : array-like of shape (n_tests,)
            Their p-values.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The procedure, with ``rejected_``, ``levels_`` and ``wealth_path_``.
        """
        p_values = np.asarray(p_values, dtype=np.float64)
        if p_values.ndim != 1:
            raise ValueError(
                f"p_values must be one-dimensional; got shape {p_values.shape}."
            )
        if not ((p_values >= 0.0) & (p_values <= 1.0)).all():
            raise ValueError("p_values must be in [0, 1], without NaN.")
        self._check()
        self.reset()
        self._start()
        levels, rejected, wealth = [], [], []
        for p in p_values.tolist():
            level = self._known_level()
            decision = 0.0 < level and p <= level
            self._update(decision)
            levels.append(level)
            rejected.append(decision)
            wealth.append(self._wealth())
        self.rejected_ = np.array(rejected, dtype=bool)
        self.levels_ = np.array(levels, dtype=np.float64)
        self.wealth_path_ = np.array(wealth, dtype=np.float64)
        return self

    def reset(self):
        """Forget all tests.

        Returns
        -------
        self : object
            The procedure.
        """
        for name in list(vars(self)):
            if name.endswith("_") and not name.startswith("__"):
                delattr(self, name)
        return self

    def to_dict(self):
        """Return parameters and state, in types that JSON knows.

        Returns
        -------
        state : dict
            For `from_dict`.
        """
        self._start()
        params = {name: plain(value) for name, value in self._given_.items()}
        return {
            "procedure": type(self).__name__,
            "params": params,
            "n_tests": self._n_tests_,
            "n_rejections": self._n_rejections_,
            "spent": self._spent_,
            "lost": self._lost_,
            "state": self._state(),
        }

    @classmethod
    def from_dict(cls, state):
        """Return the procedure that was written down.

        Parameters
        ----------
        state : dict
            Of `to_dict`.

        Returns
        -------
        procedure : object
            Goes on where the other was.
        """
        if state.get("procedure") != cls.__name__:
            raise ValueError(
                f"this is the state of {state.get('procedure')!r}, not of "
                f"{cls.__name__!r}."
            )
        found = cls(**state["params"])
        found._start()
        found._n_tests_ = int(state["n_tests"])
        found._n_rejections_ = int(state["n_rejections"])
        found._spent_, found._lost_ = float(state["spent"]), float(state["lost"])
        found._restore(state["state"])
        return found

    def _state(self):
        return {}

    def _restore(self, state):
        return None
