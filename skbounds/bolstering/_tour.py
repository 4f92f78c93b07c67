"""The error estimates' part of the tour."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds._tour import Entry, Result, Task
from skbounds.bolstering import (
    BolsteredEstimateDisplay,
    BolsteredScorer,
    bolstered_val_score,
)

# Rows that the error is estimated from: where a few rows more or less matter.
_N_ROWS = 100


def _problem(task: Task):
    """Return a model and few training rows."""
    model = make_pipeline(
        task.preprocess,
        # Centring would make sparse one-hot columns dense.
        StandardScaler(with_mean=False),
        SVC(),
    )
    y = task.y_train
    rng = np.random.default_rng(0)
    kept = rng.permutation(len(y))[:_N_ROWS]
    X = task.X_train
    return model, X.iloc[kept] if hasattr(X, "iloc") else X[kept], y[kept]


def _run(task: Task) -> Result:
    model, X, y = _problem(task)
    test_error = 1.0 - model.fit(X, y).score(task.X_test, task.y_test)
    estimators = {
        "bolstered_val_score": lambda: bolstered_val_score(model, X, y),
        "cross_val_score, 10 folds": lambda: cross_val_score(model, X, y, cv=10),
    }
    rows = []
    with warnings.catch_warnings():
        # Rows of a table that repeat, and classes of fewer than 10 rows.
        warnings.simplefilter("ignore", UserWarning)
        for name, estimate in estimators.items():
            seconds = np.inf
            for _ in range(2):
                start = time.perf_counter()
                scores = estimate()
                seconds = min(seconds, time.perf_counter() - start)
            rows.append(
                {
                    "method": name,
                    "estimated error": float(1.0 - scores.mean()),
                    "seconds": seconds,
                }
            )
        found = BolsteredScorer().estimate(model, X, y)
    low, high = found.interval(0.9)
    guarantee = (
        f"none; {len(y)} rows say that an SVC errs on {found.error:.1%} of new rows, "
        f"with an approximate 90 % interval from {low:.1%} to {high:.1%}; on "
        f"{len(task.y_test)} test rows it errs on {test_error:.1%}."
    )
    numbers = {
        "estimated_error": found.error,
        "interval_90": [low, high],
        "test_error": float(test_error),
    }
    return Result(rows, guarantee, numbers)


def _plot(task: Task, ax) -> None:
    model, X, y = _problem(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        BolsteredEstimateDisplay.from_estimator(
            model,
            X,
            y,
            X_test=task.X_test,
            y_test=task.y_test,
            ax=ax,
        )
    ax.set_title(f"Error of an SVC, estimated from {len(y)} rows: {task.name}")


ENTRIES = [
    Entry(
        title="BolsteredScorer instead of cross_val_score",
        kind="classification",
        run=_run,
        plot=_plot,
        picture="bolstering_classification",
    ),
]
