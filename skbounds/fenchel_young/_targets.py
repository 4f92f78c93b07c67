"""Targets that are labels: one class code per row."""

from __future__ import annotations

import numpy as np

from skbounds._labels import check_labels, code_labels, refuse_missing


class ClassTargets:
    """Mixin: targets are labels, coded by their place in ``classes_``."""

    _sort_classes = True

    def _encode(self, y, classes, first, complete):
        y = check_labels(y, warn=True)
        if first:
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
        elif classes is not None and not np.array_equal(
            np.unique(classes) if self._sort_classes else classes, self.classes_
        ):
            raise ValueError(
                f"classes is {classes!r}, but the stream began with "
                f"{self.classes_.tolist()!r}."
            )
        codes = code_labels(y, self.classes_)
        unknown = codes < 0
        if np.any(unknown):
            raise ValueError(
                f"y contains labels that are not in classes_: "
                f"{list(dict.fromkeys(y[unknown].tolist()))[:5]!r}. Pass all classes "
                "on the first call to partial_fit."
            )
        return np.ascontiguousarray(codes, dtype=np.int64).reshape(-1, 1)

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


def _check_classes(classes):
    """Return the classes as an array, or say what they should be."""
    labels = np.asarray(list(classes) if np.iterable(classes) else classes)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"classes must be a sequence of labels; got {classes!r}.")
    refuse_missing(labels, "classes")
    return labels
