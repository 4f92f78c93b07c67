"""The tour behind ``python -m skbounds``: what a topic contributes, and its runner.

A topic takes part by having a module ``skbounds/<topic>/_tour.py`` with a list
``ENTRIES`` of :class:`Entry`; nothing else has to be edited.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_MANY_CLASSES = 10


@dataclass(frozen=True)
class Task:
    """A learning problem, split into training and test part.

    Attributes
    ----------
    kind : {'classification', 'regression'}
    name : str
    X_train, X_test : array-like
        Feature tables (arrays or dataframes).
    y_train, y_test : ndarray
    preprocess : estimator
        Unfitted transformer from the table to numbers, for a pipeline's first step.
    """

    kind: str
    name: str
    X_train: Any
    X_test: Any
    y_train: np.ndarray
    y_test: np.ndarray
    preprocess: Any


@dataclass
class Result:
    """What an entry reports.

    Attributes
    ----------
    rows : list of dict
        One dict per method: name, score names and values, seconds.
    guarantee : str
        What the method knows about its own error, in a sentence with numbers.
    numbers : dict
        The guarantee's numbers, for programs.
    """

    rows: list[dict]
    guarantee: str
    numbers: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One paragraph of the tour.

    Attributes
    ----------
    title : str
        The estimator and what it replaces.
    kind : {'classification', 'regression'}
        Tasks that it is run on.
    run : callable
        ``run(task) -> Result``.
    plot : callable or None
        ``plot(task, ax)`` draws its picture; the fitted models may be refitted.
    picture : str
        File name of the picture, without suffix.
    """

    title: str
    kind: str
    run: Callable[[Task], Result]
    plot: Callable | None = None
    picture: str = ""


def entries() -> list[Entry]:
    """Return the entries of all topics, in the order of the topics' names."""
    from skbounds import _TOPICS

    found = []
    for topic in sorted(_TOPICS):
        name = f"skbounds.{topic}._tour"
        if importlib.util.find_spec(name) is not None:
            found += importlib.import_module(name).ENTRIES
    return found


def timed_fit(estimator, task: Task):
    """Return the estimator fitted on the training part, and the seconds it took.

    The better of two fits, if they are quick: the first may meet cold caches.
    """
    seconds = np.inf
    for _ in range(2):
        start = time.perf_counter()
        estimator.fit(task.X_train, task.y_train)
        seconds = min(seconds, time.perf_counter() - start)
        if seconds > 1.0:
            break
    return estimator, seconds


def logistic_regression_cv(task: Task):
    """Return scikit-learn's tuned logistic regression, scored by the log loss.

    With the options that silence the deprecations of scikit-learn 1.9. For many classes
    with fewer fits: 50 of them take a minute.
    """
    many = len(np.unique(task.y_train)) > _MANY_CLASSES
    size = {"Cs": 5, "cv": 3} if many else {"Cs": 10, "cv": 5}
    from sklearn.linear_model import LogisticRegressionCV

    options = {}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        options = {"use_legacy_attributes": False, "l1_ratios": (0.0,)}
    return LogisticRegressionCV(
        **size, scoring="neg_log_loss", max_iter=1000, **options
    )


def run_tour(tasks: list[Task], folder: Path, *, report: Callable[[str], None]) -> dict:
    """Run every entry on the tasks of its kind; return all numbers.

    Parameters
    ----------
    tasks : list of Task
    folder : Path
        Where pictures go.
    report : callable
        Receives paragraphs of text.
    """
    plt = _pyplot()
    collected, pictures = [], []
    for entry in entries():
        for task in tasks:
            if task.kind != entry.kind:
                continue
            result = entry.run(task)
            report(f"{entry.title}\n{'=' * len(entry.title)}")
            report(
                f"{task.name}: {len(task.y_train)} training rows, "
                f"{len(task.y_test)} test rows."
            )
            report(_format_rows(result.rows))
            report(f"Guarantee: {result.guarantee}\n")
            record = {
                "title": entry.title,
                "task": task.name,
                "n_train": len(task.y_train),
                "n_test": len(task.y_test),
                "methods": result.rows,
                "guarantee": result.numbers,
            }
            if entry.plot is not None and plt is not None:
                folder.mkdir(parents=True, exist_ok=True)
                figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
                entry.plot(task, ax)
                path = folder / f"{entry.picture}.png"
                figure.savefig(path, dpi=120)
                plt.close(figure)
                record["picture"] = str(path)
                pictures.append(str(path))
            collected.append(record)
    if plt is None:
        report('No pictures: matplotlib is not installed (the extra "plot" has it).')
    elif pictures:
        report("Pictures: " + ", ".join(pictures))
    return {"entries": collected}


def _pyplot():
    """Return pyplot with a file backend, or None where matplotlib is absent."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _format_rows(rows: list[dict]) -> str:
    names = list(dict.fromkeys(key for row in rows for key in row))
    table = [names] + [
        [
            f"{row[name]:.4g}"
            if isinstance(row.get(name), float)
            else str(row.get(name, "-"))
            for name in names
        ]
        for row in rows
    ]
    widths = [max(len(line[j]) for line in table) for j in range(len(names))]
    lines = [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in table
    ]
    return "\n".join(line.rstrip() for line in lines)
