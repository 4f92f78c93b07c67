"""Targets that are labels: one class code per row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from skbounds._labels import check_labels, code_labels, refuse_missing
from skbounds.fenchel_young._arrays import csr_arrays
from skbounds.fenchel_young._growth import with_more_outputs


class ClassTargets:
    """Mixin: targets are labels, coded by their place in ``classes_``."""

    _sort_classes = True

    def _encode(self, y, classes, first, complete):
        y = check_labels(y, warn=True)
        growing = asks_to_grow(classes)
        if growing and not first and not self._classes_grow_:
            raise ValueError(
                "classes is 'grow', but the stream began with a fixed set of classes: "
                f"{self.classes_.tolist()!r}."
            )
        if growing:
            classes = None
        if first:
            self._classes_grow_ = growing
            self._new_labels_ = y[:0]
        if first and growing:
            self._check_that_classes_may_grow()
            self.classes_ = y[:1].copy()
        elif first:
            labels = np.unique(y) if classes is None else None
            if classes is not None:
                labels = _check_classes(classes)
                if len(np.unique(labels)) != len(labels):
                    raise ValueError(f"classes must not repeat; got {classes!r}.")
                if self._sort_classes:
                    labels = np.unique(labels)
            elif not complete and len(labels) < 2:
                raise ValueError(
                    "classes must be passed on the first call to partial_fit or play "
                    f"where y does not show them all; y has only {labels.tolist()!r}."
                )
            self.classes_ = labels
        elif classes is not None and not (
            np.array_equal(np.unique(classes), np.unique(self.classes_))
            if self._sort_classes
            else np.array_equal(classes, self.classes_)
        ):
            raise ValueError(
                f"classes is {classes!r}, but the stream began with "
                f"{self.classes_.tolist()!r}."
            )
        if self._classes_grow_:
            y = self._like_classes(y)
        codes = code_labels(y, self.classes_)
        unknown = codes < 0
        if np.any(unknown) and self._classes_grow_ and not complete:
            # In the order in which they appear.
            fresh = y[unknown]
            first = np.unique(fresh, return_index=True)[1]
            self._new_labels_ = fresh[np.sort(first)]
            codes[unknown] = len(self.classes_) + code_labels(fresh, self._new_labels_)
        elif np.any(unknown):
            raise ValueError(
                f"y contains labels that are not in classes_: "
                f"{list(dict.fromkeys(y[unknown].tolist()))[:5]!r}. Pass all classes "
                "on the first call to partial_fit."
            )
        return np.ascontiguousarray(codes, dtype=np.int64).reshape(-1, 1)

    # ------------------------------------------------------------ new classes

    def _rows_of_new_classes(self, targets):
        """Return the first rows of classes that were not there before."""
        known = len(self.classes_)
        if targets.max(initial=0) < known:
            return []
        codes, first = np.unique(targets[:, 0], return_index=True)
        return np.sort(first[codes >= known]).tolist()

    def _bring_class(self, row, code, weight):
        """Play a row with a new class, add the class, and learn the row if it counts.

        Returns the play as a code, shape (1, 1).
        """
        label = self._new_labels_[[code - len(self.classes_)]]
        if not weight:
            play = self._play_only(row)
            self._add_class(label)
            return play
        light = self._light_path()
        if sp.issparse(row):
            arrays = tuple(array.copy() for array in csr_arrays(row))
        else:
            arrays = (np.array(row, order="C"),)
        ticket = self._play_ahead(light, arrays, float(weight))
        self._learn_ticket(ticket, label[0])
        return ticket.drawn

    def _add_class(self, label):
        """Add a class, an array of one label, with weights that are zero."""
        before = len(self.classes_)
        added = np.concatenate([self.classes_, label])
        self._state_ = with_more_outputs(
            self._state_, before, before + 1, self._n_sums(self._state_["rates"])
        )
        self._new_labels_ = self._new_labels_[1:]
        self.classes_ = added

    def _like_classes(self, labels):
        """Return labels that can be in one array with the classes, or refuse them."""
        kinds = _kind(self.classes_), _kind(labels)
        if kinds[0] == kinds[1]:
            # Texts may be objects, and dates have units.
            same = kinds[0] in ("number", "text")
            return labels if same else labels.astype(self.classes_.dtype)
        if kinds[0] == "date" and labels.dtype.kind == "O":
            try:
                return labels.astype(self.classes_.dtype)
            except (TypeError, ValueError):
                pass
        raise ValueError(
            f"y has labels like {labels.tolist()[0]!r}, of another kind than classes_: "
            f"{self.classes_.tolist()!r}."
        )

    def _as_label(self, y):
        """Return one label as an array."""
        if self.classes_.dtype.kind in "mM":
            # Dates come in several types.
            try:
                y = np.asarray(y, dtype=self.classes_.dtype)[()]
            except (TypeError, ValueError):
                pass
        return check_labels([y])

    def _code_one(self, y, target):
        if self._classes_grow_:
            label = self._like_classes(self._as_label(y))
            if code_labels(label, self.classes_)[0] < 0:
                return label
            y = label[0]
        self._encode_one(y, target)
        return None

    def _encode_one(self, y, target):
        codes = vars(self).get("_codes")
        if codes is None or codes[0] is not self.classes_:
            labels = self.classes_.tolist()
            codes = (self.classes_, {label: code for code, label in enumerate(labels)})
            self._codes = codes
        try:
            if self.classes_.dtype.kind in "mM":
                # Dates come in several types and units.
                y = np.asarray(y, dtype=self.classes_.dtype).item()
            target[0] = codes[1][y]
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"y is {y!r}, which is not in classes_: {self.classes_.tolist()!r}."
            ) from None

    def _decode_plays(self, plays):
        return self.classes_[plays[:, 0]]

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_codes", None)
        return state


def _kind(labels):
    """Return what an array of labels holds: number, text, date or object."""
    if labels.dtype.kind == "O":
        texts = all(isinstance(label, str) for label in labels.tolist())
        return "text" if texts else "object"
    kinds = {"U": "text", "S": "text", "M": "date", "m": "duration"}
    return kinds.get(labels.dtype.kind, "number")


def asks_to_grow(classes):
    """Tell whether classes says that new ones may appear."""
    return isinstance(classes, str) and classes == "grow"


def _check_classes(classes):
    """Return the classes as an array, or say what they should be."""
    labels = np.asarray(list(classes) if np.iterable(classes) else classes)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"classes must be a sequence of labels; got {classes!r}.")
    refuse_missing(labels, "classes")
    return labels
