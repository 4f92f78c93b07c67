"""Streams row by row, and labels that come later than the plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from skbounds._base import unchanged_on_error
from skbounds._core import fenchel_young as _core
from skbounds.fenchel_young._arrays import check_row_weights
from skbounds.fenchel_young._light import LightPath


@dataclass(frozen=True, eq=False)
class Ticket:
    """A play whose label is still to come; made by ``play_one``.

    It holds the row, so that ``learn_one(ticket, y)`` needs nothing else, and can be
    pickled.

    Attributes
    ----------
    number : int
        Place of the play in the stream, from 0.
    play : object
        What was played, in the form of the targets.
    sample_weight : float
        Importance of the row.
    """

    number: int
    play: Any
    sample_weight: float
    stream: str = field(repr=False)
    arrays: tuple = field(repr=False)
    drawn: np.ndarray = field(repr=False)
    nearest: np.ndarray = field(repr=False)
    means: np.ndarray = field(repr=False)


class RowByRow:
    """Mixin: the light path, for one row at a time."""

    if TYPE_CHECKING:
        # Of the classes that it is mixed into.
        def __getattr__(self, name: str) -> Any: ...

    def play_one(
        self,
        x: ArrayLike | tuple[ArrayLike, ArrayLike] | Mapping[Any, float],
        sample_weight: float = 1.0,
    ) -> Ticket:
        """Play one row whose target is not known yet.

        Parameters
        ----------
        x : array-like of shape (n_features,), tuple of (indices, values) or dict
            The row, as in `learn_one`.
        sample_weight : float, default=1.0
            Its importance, positive.

        Returns
        -------
        ticket : Ticket
            ``ticket.play`` is the play; ``learn_one(ticket, y)`` learns the row when
            its target is known, whatever was played or learnt since, in any order.

        Notes
        -----
        Nothing else changes, but that new features of the row are known from here on.
        The accounts of the plays (`cumulative_loss_`, `expected_cumulative_loss_`,
        `progressive_errors_`) are of what was played then; those of regret are of the
        predictions at the time when rows are learnt, in the order of learning.
        `error_interval` covers all plays, also those without a label.
        """
        light = self._begun()
        check_row_weights([sample_weight], 1, light.dtype)
        if not sample_weight > 0.0:
            raise ValueError(f"sample_weight must be positive; got {sample_weight!r}.")
        light = self._take(light, x)
        return self._play_ahead(light, light.copied_arrays(), float(sample_weight))

    @unchanged_on_error
    def learn_one(
        self,
        x: ArrayLike | tuple[ArrayLike, ArrayLike] | Mapping[Any, float] | Ticket,
        y: Any,
        sample_weight: float = 1.0,
    ) -> Any:
        """Play one row, then learn it: the light path, for streams row by row.

        Parameters
        ----------
        x : array-like of shape (n_features,), tuple, dict or Ticket
            The row: a tuple of indices and values where the stream is sparse, a dict
            where its rows are dicts. A ticket of `play_one` stands for the row that it
            was made for.
        y : object
            Its target.
        sample_weight : float, default=1.0
            Its importance, as in `play`; that of a ticket was given to `play_one`.

        Returns
        -------
        play : object
            What was played.

        Raises
        ------
        NotFittedError
            Before the first `fit`, `partial_fit` or `play`, which tell the classes and
            the number of features.
        """
        light = self._begun()
        if isinstance(x, Ticket):
            if sample_weight != 1.0:
                raise ValueError(
                    "sample_weight of a ticket was given to play_one; got "
                    f"{sample_weight!r} for a ticket of {x.sample_weight!r}."
                )
            return self._learn_ticket(x, y)
        # Names of new features are known for good: what can be refused comes before.
        target = light.targets[0]
        late = self._code_one(y, target)
        if sample_weight != 1.0:
            check_row_weights([sample_weight], 1, light.dtype)
        taken = self._take(light, x)
        if taken is not light:
            light = taken
            light.targets[0] = target
        if not sample_weight:
            play = self._decode_plays(self._play_only(light.as_rows()))[0]
            if late is not None:
                self._add_class(late)
            return play
        if late is not None:
            ticket = self._play_ahead(light, light.arrays, float(sample_weight))
            return self._learn_ticket(ticket, y)
        light.weight[0] = sample_weight
        before = light.scalars[_core.BEYOND]
        light.run(self._log_, self._n_plays())
        if light.scalars[_core.BEYOND] > before == 0:
            self._warn_of_long_row()
        return self._decode_plays(light.plays.copy())[0]

    @property
    def n_open_tickets_(self) -> int:
        """Plays of `play_one` that were not learnt yet."""
        self._require_state()
        return len(self._tickets_)

    def _begun(self):
        if "_state_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} instance does not know its classes and "
                "features yet. Call 'partial_fit' (with 'classes') first."
            )
        return self._light_path()

    def _take(self, light, x):
        """Check a row and take it over, with the features that it brings."""
        if not light.grows and not isinstance(x, Mapping):
            light.fill(x)
            return light
        fresh = {}
        if isinstance(x, Mapping) or self._vocabulary is not None:
            x = self._code_row(x, fresh)
        light.fill(x)
        if fresh:
            self.vocabulary_.update(fresh)
        if light.n_needed > self.n_features_in_:
            self._reach(light.n_needed)
            arrays, light = light.arrays, self._light_path()
            light.arrays = arrays
        return light

    def _code_one(self, y, target):
        """Write the target of one row; return it instead if its class is to be added.

        As an array of one label.
        """
        self._encode_one(y, target)
        return None

    def _n_plays(self):
        """Return the plays so far: rows learnt, and those to be learnt."""
        return int(self._state_["scalars"][_core.ROWS]) + len(self._tickets_)

    def _play_ahead(self, light, arrays, weight):
        """Play a row, and remember that it was."""
        number = self._n_plays()
        drawn, nearest, means = light.try_row(arrays, weight, number)
        play = self._decode_plays(drawn.copy())[0]
        self._tickets_[number] = weight
        return Ticket(
            number, play, weight, self._stream_, arrays, drawn, nearest, means
        )  # fmt: skip

    def _learn_ticket(self, ticket, y):
        if ticket.number not in self._tickets_ or ticket.stream != self._stream_:
            raise ValueError(
                f"ticket {ticket.number} was learnt before, or is of another stream."
            )
        light = self._light_path()
        late = self._code_one(y, light.targets[0])
        if late is not None:
            self._add_class(late)
            light = self._light_path()
            light.targets[0] = len(self.classes_) - 1
        means = np.zeros((1, self._make_loss().n_outputs))
        # Classes that came after the play could not be played.
        means[0, : ticket.means.shape[1]] = ticket.means
        scalars = light.scalars
        before = scalars[_core.BEYOND]
        at_learning = scalars[_core.AT_LEARNING]
        light.weight[0] = ticket.sample_weight
        light.learn(self._log_, ticket.arrays, ticket.drawn, ticket.nearest, means)
        if late is not None and self._log_:
            scalars[_core.AT_LEARNING] = at_learning + ticket.sample_weight
            self._late_weight_ += ticket.sample_weight
        del self._tickets_[ticket.number]
        if scalars[_core.BEYOND] > before == 0:
            self._warn_of_long_row()
        return ticket.play

    def _light_path(self):
        light = vars(self).get("_light")
        if light is None or light.table is not self._state_["table"]:
            light = LightPath(self)
            self._light = light
        return light

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_light", None)
        return state
