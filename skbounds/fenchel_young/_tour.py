"""The online learners' part of the tour."""

from __future__ import annotations

import time

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from skbounds._tour import Entry, Result, Task
from skbounds.fenchel_young import FenchelYoungOnlineClassifier, SurrogateRegretDisplay


def _rows(task: Task):
    """Return all rows as one stream of numbers: nothing is held out from a stream."""
    parts = [task.preprocess.fit_transform(task.X_train)]
    parts.append(task.preprocess.transform(task.X_test))
    parts = [part.toarray() if hasattr(part, "toarray") else part for part in parts]
    return np.vstack(parts), np.concatenate([task.y_train, task.y_test])


def _run(task: Task) -> Result:
    X, y = _rows(task)
    classes = np.unique(y)
    rows = []
    for decoding in ("argmax", "randomized"):
        clf = FenchelYoungOnlineClassifier(decoding=decoding, random_state=0)
        clf.play(X, y, classes=classes)  # meets cold caches
        clf = FenchelYoungOnlineClassifier(decoding=decoding, random_state=0)
        start = time.perf_counter()
        clf.partial_fit(X, y, classes=classes)
        seconds = time.perf_counter() - start
        n = clf.n_samples_seen_
        rows.append(
            {
                "method": f"{type(clf).__name__}, {decoding} play",
                "progressive log loss": clf.cumulative_surrogate_loss_ / n,
                "progressive error": clf.expected_cumulative_loss_ / n,
                "seconds": seconds,
            }
        )
    rows.append(_run_sgd(X, y, classes))
    certificate = clf.surrogate_regret_certificate(1.0)
    bound = clf.surrogate_regret_bound(1.0)
    guarantee = (
        f"summed over these {n} rows, the randomised plays' expected mistakes exceed "
        f"the log loss of any linear predictor of norm 1 by at most {certificate:.1f}; "
        f"on any stream of any length with rows no longer than these, by at most "
        f"{bound:.1f}."
    )
    return Result(rows, guarantee, {"certificate": certificate, "bound": bound})


def _run_sgd(X, y, classes) -> dict:
    """Predict, then learn, in blocks of ten rows: one by one would take minutes."""
    start = time.perf_counter()
    scaler, sgd = StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)
    losses, errors = [], []
    for begin in range(0, len(y), 10):
        part, labels = X[begin : begin + 10], y[begin : begin + 10]
        if begin == 0:
            proba = np.full((len(part), len(classes)), 1.0 / len(classes))
        else:
            proba = sgd.predict_proba(scaler.transform(part))
        codes = np.searchsorted(classes, labels)
        seen = np.maximum(proba[np.arange(len(codes)), codes], 1e-15)
        losses.extend(-np.log(seen))
        errors.extend(proba.argmax(axis=1) != codes)
        scaler.partial_fit(part)
        sgd.partial_fit(scaler.transform(part), labels, classes=classes)
    return {
        "method": "SGDClassifier on standardised rows",
        "progressive log loss": float(np.mean(losses)),
        "progressive error": float(np.mean(errors)),
        "seconds": time.perf_counter() - start,
    }


def _plot(task: Task, ax) -> None:
    X, y = _rows(task)
    clf = FenchelYoungOnlineClassifier(random_state=0)
    display = SurrogateRegretDisplay.from_estimator(clf, X, y, ax=ax, name="regret")
    display.ax_.set_title(f"Plays against the best linear predictor: {task.name}")


ENTRIES = [
    Entry(
        title="FenchelYoungOnlineClassifier instead of SGDClassifier",
        kind="classification",
        run=_run,
        plot=_plot,
        picture="fenchel_young_classification",
    ),
]
