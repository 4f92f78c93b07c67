"""Streams larger than memory: batches, one after the other, and checkpoints."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import time
from collections.abc import Callable
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skbounds import __version__
from skbounds._record_batches import n_rows_of, read_batches

# Seconds between two lines of ``verbose``.
_PAUSE = 5.0
_FORMAT = "skbounds checkpoint of a stream, 1"
# What files begin with; a digest of what follows comes next.
_MAGIC = b"skbounds stream\n"


class PlaysBatches:
    """Mixin: play and learn a stream that comes in batches."""

    _has_classes = True

    def play_batches(
        self,
        batches: Any,
        *,
        target: str | list[str] | None = None,
        sample_weight: str | None = None,
        classes: ArrayLike | Literal["grow"] | None = None,
        batch_size: int = 2**16,
        checkpoint: str | PathLike | None = None,
        checkpoint_every: int = 1_000_000,
        progress: Callable[[Any, int], object] | None = None,
    ) -> Self:
        """Go on with the stream batch by batch: play each row, then learn it.

        ``partial_fit`` for all batches in one call, in constant memory: one batch at a
        time is held, and plays are not kept. Losses, bounds and intervals are in the
        stream's accounts at any time. How the stream is cut into batches changes
        nothing, but that the first batch has to say what `partial_fit` wants to know.

        .. versionadded:: 0.2

        Parameters
        ----------
        batches : iterable, path, or table, dataset, file or reader of pyarrow
            Tuples (X, y) or (X, y, sample_weight), or tables (pandas, polars, pyarrow)
            with a column for the target, of which all other columns are features. A
            path is that of a file or a folder of Parquet, CSV or Feather files, a few
            batches of which are in memory at a time. Of a *dataset* of CSV files
            pyarrow reads up to 1 GB ahead.
        target : str or list of str, default=None
            The target's column of tables, or columns for several outputs.
        sample_weight : str, default=None
            The weights' column of tables.
        classes : array-like or 'grow', default=None
            As in `partial_fit`, for the first batch.
        batch_size : int, default=65536
            Largest number of rows that are read at once, where pyarrow reads.
        checkpoint : path, default=None
            A file that the state is kept in, with the number of rows that were taken
            from `batches`. If it is there, the stream goes on from it: its state takes
            the place of what the estimator knows, and as many rows of `batches` are
            passed over. The result has the bits of a run that was never interrupted.
            The file holds a pickle: open only those that you trust. Of `batches` with
            methods ``get_state()`` and ``set_state(state)`` the state is kept as well.
        checkpoint_every : int, default=1_000_000
            Rows after which the state is written again, at the end of a batch. It is
            written at the end of the stream in any case, and replaces the file at
            once: what is there is always whole.
        progress : callable, default=None
            ``progress(estimator, n_rows)`` is called after each batch with the number
            of rows taken so far.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            For batches of another form, and checkpoints of other estimators,
            parameters or versions. Errors of a batch say at which row it begins; what
            was learnt before stays.
        """
        for name, value in (
            ("batch_size", batch_size),
            ("checkpoint_every", checkpoint_every),
        ):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a positive integer; got {value!r}.")
        done, before = 0, dict(vars(self))
        asked = {"target": target, "sample_weight": sample_weight}
        if checkpoint is not None:
            checkpoint = _check_path(checkpoint)
            if checkpoint.exists():
                done = self._resume(checkpoint, asked, batches)
        seen, saved = 0, done
        report = _Report(self, done)
        source = read_batches(
            batches, target, sample_weight, batch_size, has_labels=self._has_classes
        )
        while True:
            try:
                batch = next(source, None)
                if batch is None:
                    break
                n = n_rows_of(batch)
                if seen + n > max(seen, done):
                    self._learn_batch(_rest(batch, max(done - seen, 0)), classes)
            except Exception as error:
                error.add_note(f"In the batch that begins with row {seen}.")
                raise
            seen += n
            if seen <= done or not n:
                continue
            if progress is not None:
                progress(self, seen)
            report(seen)
            if checkpoint is not None and seen - saved >= checkpoint_every:
                self._save(checkpoint, seen, asked, batches)
                saved = seen
        if seen < done:
            vars(self).clear()
            vars(self).update(before)
            raise ValueError(
                f"the checkpoint {str(checkpoint)!r} was written after {done} rows, "
                f"and batches have {seen} only: it has seen more, or another stream."
            )
        if not seen:
            raise ValueError("batches must hold at least one row; got none.")
        if checkpoint is not None and seen > saved:
            self._save(checkpoint, seen, asked, batches)
        report(seen, last=True)
        return self

    def _learn_batch(self, batch, classes):
        if classes is not None and not self._has_classes:
            raise ValueError(
                f"classes is for classifiers; {type(self).__name__} has none."
            )
        given = {"classes": classes, "sample_weight": batch.weight}
        given = {name: value for name, value in given.items() if value is not None}
        if batch.names is None:
            self.partial_fit(batch.X, batch.y, **given)
            return
        # Arrays have no names: these are kept and compared here.
        names = np.asarray(batch.names, dtype=object)
        known = vars(self).get("feature_names_in_")
        if known is not None and not np.array_equal(known, names):
            raise ValueError(
                f"the table has the features {names.tolist()}; the stream began with "
                f"{known.tolist()}."
            )
        vars(self).pop("feature_names_in_", None)
        try:
            self.partial_fit(batch.X, batch.y, **given)
            known = names
        finally:
            if known is not None:
                self.feature_names_in_ = known

    # ------------------------------------------------------------ checkpoints

    def _what_is_fixed(self, asked):
        """Return what a checkpoint must have been written with, as texts."""
        parameters = self.get_params(deep=False) | asked
        del parameters["verbose"]
        if hasattr(parameters.get("random_state"), "randint"):
            # A generator: what was drawn from it is in the state.
            del parameters["random_state"]
        found = {"version of skbounds": __version__, "estimator": type(self).__name__}
        return found | {name: _text(value) for name, value in parameters.items()}

    def _save(self, checkpoint, n_rows, asked, batches):
        found = {
            "format": _FORMAT,
            "fixed": self._what_is_fixed(asked),
            "n_rows": n_rows,
            "state": self.__getstate__(),
        }
        if hasattr(batches, "get_state"):
            found["batches"] = batches.get_state()
        content = pickle.dumps(found, protocol=5)
        # In the same folder, so that replacing is one step.
        part = checkpoint.with_name(f".{os.getpid()}.part")
        try:
            with open(part, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, checkpoint)
        finally:
            part.unlink(missing_ok=True)

    def _resume(self, checkpoint, asked, batches):
        """Take over a checkpoint's state; return how many rows it has seen."""
        content = checkpoint.read_bytes()
        begin = len(_MAGIC) + 32
        digest = hashlib.sha256(content[begin:]).digest()
        if content[:begin] != _MAGIC + digest:
            raise ValueError(
                f"{str(checkpoint)!r} is no checkpoint of a stream, or is damaged."
            )
        try:
            found = pickle.loads(content[begin:])
        except Exception as error:
            raise ValueError(
                f"{str(checkpoint)!r} is no checkpoint that can be read: {error}"
            ) from error
        kinds = {"fixed": dict, "state": dict, "n_rows": int}
        if (
            not isinstance(found, dict)
            or found.get("format") != _FORMAT
            or not all(isinstance(found.get(name), kinds[name]) for name in kinds)
            or found["n_rows"] < 1
        ):
            raise ValueError(f"{str(checkpoint)!r} is no checkpoint of a stream.")
        for name, value in self._what_is_fixed(asked).items():
            before = found["fixed"].get(name, value)
            if before != value:
                raise ValueError(
                    f"the checkpoint {str(checkpoint)!r} was written with {name} "
                    f"{before}; got {value}."
                )
        if found["state"].get("_skbounds_version") != __version__:
            raise ValueError(f"{str(checkpoint)!r} is no checkpoint of a stream.")
        if hasattr(batches, "set_state"):
            batches.set_state(found.get("batches"))
        parameters = self.get_params(deep=False)
        vars(self).clear()
        self.__setstate__(found["state"] | parameters)
        return found["n_rows"]


def _check_path(checkpoint):
    """Return where the checkpoint is; refuse what no file can be written to."""
    path = Path(checkpoint).resolve()
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(
            f"checkpoint must be a file in a folder that is there; got "
            f"{str(checkpoint)!r}."
        )
    return path


def _text(value):
    """Return a parameter as a text that is the same in every process."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


class _Report:
    """What ``verbose`` prints on the way, every few seconds."""

    def __init__(self, estimator, n_rows):
        self.estimator, self.first = estimator, n_rows
        self.begun = self.told = time.perf_counter()

    def __call__(self, n_rows, last=False):
        now = time.perf_counter()
        if not self.estimator.verbose or (now - self.told < _PAUSE and not last):
            return
        self.told = now
        weight = self.estimator.sum_of_weights_ or 1.0
        rate = (n_rows - self.first) / max(now - self.begun, 1e-9)
        loss = self.estimator.expected_cumulative_loss_ / weight
        print(
            f"[{type(self.estimator).__name__}] {n_rows} rows, {rate:.0f} a second; "
            f"mean expected loss {loss:.4g}"
        )


def _rest(batch, first):
    """Return a batch without its first rows."""
    if not first:
        return batch
    cut = lambda values: (
        values.iloc[first:] if hasattr(values, "iloc") else values[first:]
    )
    weight = None if batch.weight is None else cut(batch.weight)
    return batch._replace(X=cut(batch.X), y=cut(batch.y), weight=weight)
