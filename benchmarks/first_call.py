"""What the first call of a process costs beyond the second, for every estimator.

Asks whether, in a fresh process, the first ``fit`` and ``predict`` of every public
estimator on a small table (40 rows) take at most .3 s longer than the second ones,
imports included, and at most 20 ms of CPU time without them.

Each estimator has processes of its own. NumPy, SciPy and scikit-learn's base are loaded
first and timed by themselves; then `skbounds` and the estimator are imported, and three
calls follow. Medians of five processes, CPU time of one thread.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from _report import format_table, parse_options, publish, single_thread, verdict

if __name__ == "__main__":
    single_thread()

TESTS = Path(__file__).resolve().parents[1] / "tests"

WORKER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
begin = time.process_time()
import numpy as np
import sklearn.utils.validation, sklearn.base, sklearn.utils._param_validation
import scipy.sparse, scipy.linalg, scipy.special
import sklearn.naive_bayes, sklearn.neighbors
peers = time.process_time() - begin
begin = time.process_time()
import skbounds
kind = getattr(skbounds, {name!r})
imports = time.process_time() - begin
arguments = {arguments}
fit = arguments.pop("fit")
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
signal = X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=40)
targets = {{
    "classes": (signal > 0).astype(int),
    "numbers": signal,
    "labels": (X @ rng.normal(size=(3, 4)) > 0).astype(int),
    "levels": np.digitize(signal, [-0.5, 0.5]),
    "ranks": rng.random((40, 4)).argsort(axis=1) + 1,
    "none": None,
}}
if fit == "counts":
    X, fit = rng.poisson(3.0, size=(40, 1)), "none"
if fit == "p-values":
    X, fit = rng.random(40), "none"
y = targets[fit]
def call():
    begin = time.process_time()
    model = kind(**arguments).fit(X, y)
    for method in ("predict", "score_samples"):
        if hasattr(model, method):
            getattr(model, method)(X)
            break
    return time.process_time() - begin
first, second, third = call(), call(), call()
print(json.dumps([peers, imports, first, min(second, third)]))
"""

ESTIMATORS = {
    "AlphaSpending": {"fit": "p-values"},
    "BaumWelchHMM": {"fit": "none"},
    "BolsteredScorer": {"fit": "classes"},
    "BolsteredSearchCV": {"fit": "classes"},
    "EarlyStoppedKernelBoost": {"fit": "numbers"},
    "EarlyStoppedKernelBoostClassifier": {"fit": "classes"},
    "FenchelYoungOnlineClassifier": {"fit": "classes"},
    "FenchelYoungOnlineMultilabelClassifier": {"fit": "labels"},
    "FenchelYoungOnlineOrdinalClassifier": {"fit": "levels"},
    "FenchelYoungOnlineRanker": {"fit": "ranks"},
    "GaussianSMP": {"fit": "none"},
    "KernelRidgeSMP": {"fit": "numbers"},
    "LORD": {"fit": "p-values"},
    "LORDPlusPlus": {"fit": "p-values"},
    "LORDPrime": {"fit": "p-values"},
    "MultinomialSMP": {"fit": "counts"},
    "PACBayesEnsembleClassifier": {"fit": "classes"},
    "PACBayesSVMEnsemble": {"fit": "classes"},
    "PoissonSMP": {"fit": "counts"},
    "RidgeSMP": {"fit": "numbers"},
    "RidgeSMPCV": {"fit": "numbers"},
    "SMPLogisticRegression": {"fit": "classes"},
    "SMPLogisticRegressionCV": {"fit": "classes"},
}
# Arguments that take other estimators, which are imported before the clock runs.
NEIGHBORS = "sklearn.neighbors.KNeighborsClassifier()"
WRITTEN_OUT = {
    "BolsteredSearchCV": (
        f'{{"fit": "classes", "estimator": {NEIGHBORS}, '
        '"param_grid": {"n_neighbors": [3, 5]}}'
    ),
    "PACBayesEnsembleClassifier": (
        f'{{"fit": "classes", "estimators": [{NEIGHBORS}, '
        "sklearn.naive_bayes.GaussianNB()]}"
    ),
}


def measure(name, arguments, repeats):
    """Return medians: imports of peers, of skbounds, first call, second call."""
    text = WRITTEN_OUT.get(name, repr(arguments))
    code = WORKER.format(name=name, arguments=text)
    runs = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env=dict(os.environ),
            check=True,
        )
        runs.append(json.loads(done.stdout))
    return [statistics.median(values) for values in zip(*runs, strict=True)]


def main():
    options = parse_options(__doc__)
    rows, worst_total, worst_call = [], 0.0, 0.0
    for name, arguments in ESTIMATORS.items():
        found = measure(name, arguments, 2 if options.quick else 5)
        peers, imports, first, second = found
        total, extra = imports + first - second, first - second
        worst_total, worst_call = max(worst_total, total), max(worst_call, extra)
        rows.append(
            [
                f"`{name}`",
                f"{1e3 * peers:.0f}",
                f"{1e3 * imports:.0f}",
                f"{1e3 * first:.1f}",
                f"{1e3 * second:.1f}",
                f"**{1e3 * extra:.1f}**",
                f"**{1e3 * total:.0f}**",
            ]
        )
    header = ["estimator", "import of NumPy, SciPy, scikit-learn, ms"]
    header += ["import of skbounds, ms", "first call, ms", "second call, ms"]
    header += ["first - second", "with the import of skbounds"]
    text = "\n".join(
        [
            "## The first call of a process",
            "",
            "CPU time of the first `fit` and `predict` on 40 rows beyond the second, "
            "in a fresh process. Lazy imports in the first call count as its time.",
            "",
            format_table(header, rows),
            "",
            "With imports, at most "
            + verdict(f"{worst_total:.2f} s", worst_total <= 0.3, ".3 s")
            + "; without, at most "
            + verdict(f"{1e3 * worst_call:.0f} ms", worst_call <= 0.02, "20 ms")
            + ".",
        ]
    )
    publish("first_call", text, quick=options.quick)


if __name__ == "__main__":
    main()
