"""Times of the native core beside those of the numba version that it replaced.

Asks whether, against version 0.1 (the last one that compiled with numba, commit
00d0604), the native core takes

- at most 1.15 of the time on every shape, with the instructions that this processor has
  (level v3: AVX2 without fused multiply-adds);
- at most .8 for dense online streams, .75 for the recursions of an HMM with 4 states,
  .85 with 3 states;
- at most .95 in the geometric mean (goal: .8);
- at most 3.0 with the instructions that any x86-64 processor has (level baseline).

The two versions live in two environments. Processes of both, and of the native one at
its lowest level, run in turn; each takes the least CPU time of some repetitions per
shape, in one thread, after an untimed first call. Shown are medians over processes and,
in brackets, the least and the largest ratio of medians of halves of the processes.

    python benchmarks/native_speed.py --numba OTHER_ENVIRONMENT/bin/python

Shapes: online streams of fenchel_young_speed.py's kind; the E-step's recursions alone,
and whole fits, of an HMM; exact and one-step SMP predictions; the path of SVMs on six
sets; kernel boosting's chain and pivoted factor; sequential tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np

BASELINE, V3, NUMBA = "baseline", "v3", "numba"
MOST, MOST_BASELINE, MOST_MEAN = 1.15, 3.0, 0.95
TARGETS = {
    "online, dense, float32": 0.8,
    "online, dense, float64": 0.8,
    "HMM recursions, 1 x 20000, K=4": 0.75,
    "HMM recursions, 200 x 100, K=4": 0.75,
    "HMM recursions, 2000 x 10, K=4": 0.75,
    "HMM recursions, 1 x 20000, K=3": 0.85,
}


def online_shapes():
    """Learn streams with the Fenchel-Young estimators, from scratch."""
    import scipy.sparse as sp

    from skbounds import (
        FenchelYoungOnlineClassifier,
        FenchelYoungOnlineMultilabelClassifier,
        FenchelYoungOnlineOrdinalClassifier,
        FenchelYoungOnlineRanker,
    )

    rng = np.random.default_rng(0)
    n, d, K = 20_000, 50, 10
    X, W = rng.normal(size=(n, d)), rng.normal(size=(d, K))
    y = (X @ W + 3 * rng.gumbel(size=(n, K))).argmax(axis=1)
    rows = np.repeat(np.arange(5000), 75)
    columns = (rng.pareto(0.7, size=len(rows)) * 50).astype(np.int64) % 2**18
    Z = sp.csr_matrix((rng.normal(size=len(rows)), (rows, columns)), (5000, 2**18))
    Z.sum_duplicates()
    labels = rng.integers(20, size=5000)

    def learn(make, X, y, **options):
        params = {"random_state": 0}
        if "certificate" in make().get_params():
            # What version 0.1 computes: the defaults have learnt to do more.
            params |= {"feature_scaling": "standard", "certificate": "safe"}
        return lambda: make(**params).partial_fit(X, y, **options)

    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        yield (
            f"online, dense, {name}",
            learn(FenchelYoungOnlineClassifier, X.astype(dtype), y),
            5,
        )
        yield (
            f"online, sparse, {name}",
            learn(
                FenchelYoungOnlineClassifier,
                Z.astype(dtype),
                labels,
                classes=np.arange(20),
            ),
            5,
        )
    light = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X, y)
    few = list(zip(X[:2000], y[:2000].tolist(), strict=True))

    def learn_one():
        for x, label in few:
            light.learn_one(x, label)

    yield "learn_one, dense", learn_one, 3
    scores = X[:, :20] + rng.normal(size=(n, 20))
    tasks = {
        "sparsemap, 20 labels": (
            FenchelYoungOnlineMultilabelClassifier,
            {"loss": "sparsemap"},
            (scores > 0).astype(int),
        ),
        "sigmoid mixture, 20 labels": (
            FenchelYoungOnlineMultilabelClassifier,
            {"loss": "sigmoid"},
            (scores > 0).astype(int),
        ),
        "ordinal, 10 levels": (
            FenchelYoungOnlineOrdinalClassifier,
            {},
            np.digitize(scores[:, 0], np.linspace(-2, 2, 9)),
        ),
        "permutahedron, 10 items": (
            FenchelYoungOnlineRanker,
            {},
            scores[:, :10].argsort(axis=1).argsort(axis=1) + 1,
        ),
        "birkhoff, 5 items": (
            FenchelYoungOnlineRanker,
            {"structure": "birkhoff"},
            scores[:, :5].argsort(axis=1).argsort(axis=1),
        ),
    }
    for name, (kind, options, targets) in tasks.items():
        few_rows, targets = X[:4000].astype(np.float32), targets[:4000]

        def run(kind=kind, options=options, rows=few_rows, targets=targets):
            kind(random_state=0, **options).partial_fit(rows, targets)

        yield f"online, {name}", run, 4


def hmm_shapes():
    """Run recursions alone, and fits of 20 iterations."""
    from skbounds import BaumWelchHMM

    try:
        from skbounds._core import hmm as core
    except ImportError:
        from skbounds.hmm import _compiled as core

    rng = np.random.default_rng(0)

    def recursions(n_sequences, length, K):
        n = n_sequences * length
        density, out = rng.normal(size=(n, K)), np.empty((n, K))
        top, scale, posterior = np.empty(n), np.empty(n), np.empty((n, K))
        starts = np.arange(0, n + 1, length)
        A, pi = np.full((K, K), 0.1 / max(1, K - 1)), np.full(K, 1.0 / K)
        np.fill_diagonal(A, 0.9)
        pairs = np.zeros((K, K))
        core.subtract_largest(density, out, top)
        b, filtered = np.exp(out), np.empty((n, K))

        def run():
            core.subtract_largest(density, out, top)
            core.forward(b, starts, pi, A, False, filtered, scale)
            core.backward(b, starts, A, filtered, scale, posterior, pairs)

        return run

    for n_sequences, length, K in (
        (1, 20_000, 4),
        (200, 100, 4),
        (2000, 10, 4),
        (1, 20_000, 3),
        (1, 20_000, 7),
        (1, 20_000, 20),
    ):
        name = f"HMM recursions, {n_sequences} x {length}, K={K}"
        yield name, recursions(n_sequences, length, K), 20

    def fit(n_sequences, length, d, **options):
        n = n_sequences * length
        z = np.repeat(rng.integers(4, size=n // 10 + 1), 10)[:n]
        means = 1.5 * rng.normal(size=(4, d))
        X = means[z] + rng.normal(size=(n, d))
        model = BaumWelchHMM(
            4,
            covariance_type="diag",
            means_init=means,
            covariances_init=np.tile(4.0 * np.eye(d), (4, 1, 1)),
            transmat_init=np.full((4, 4), 0.25),
            startprob_init=np.full(4, 0.25),
            max_iter=20,
            tol=0,
            **options,
        )
        lengths = np.full(n_sequences, length)
        return lambda: model.fit(X, lengths=lengths)

    for shape in ((1, 20_000, 4), (1, 100_000, 10), (200, 100, 4), (2000, 10, 4)):
        name = f"HMM fit, {shape[0]} x {shape[1]}, d={shape[2]}, K=4"
        yield name, fit(*shape), 3
    signs = np.where(np.cumsum(rng.random(20_000) < 0.2) % 2, 1.0, -1.0)
    X = signs[:, None] * 0.75 + rng.normal(size=(20_000, 4))
    symmetric = BaumWelchHMM(
        2, structure="symmetric", sigma=1.0, max_iter=20, tol=0, random_state=0
    )
    yield "HMM fit, symmetric", lambda: symmetric.fit(X), 3


def smp_shapes():
    """Predict with logistic SMP."""
    from skbounds import SMPLogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = (X[:, 0] + 0.5 * rng.normal(size=1000) > 0).astype(int)
    rows = rng.normal(size=(1000, 20))
    for method in ("exact", "one-step"):
        model = SMPLogisticRegression(C=1.0, method=method).fit(X, y)
        yield f"SMP, {method} predict", lambda model=model: model.predict_proba(rows), 5


def svm_shapes():
    """Follow the path of C from .01 to 1000 on all rows, kernel matrix given."""
    from pac_bayes_certificate import SIX, load
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.preprocessing import scale

    from skbounds.pac_bayes._kernels import KernelRows
    from skbounds.pac_bayes._svm_path import PairProblem

    class Precomputed:
        name = "precomputed"

    for name in SIX:
        X, y = load(name)
        X, y = scale(X[:1500]), np.unique(y[:1500], return_inverse=True)[1]
        order = np.argsort(y, kind="stable")
        split, n = int((y == 0).sum()), len(y)
        rows = KernelRows(Precomputed, rbf_kernel(X[order]), 1000.0)

        def path(rows=rows, split=split, n=n):
            pieces = [(0, split)], [(split, n)], [(0, n)]
            problem = PairProblem(rows, *pieces, (1.0, 1.0))
            for C in np.logspace(-2, 3, 20):
                problem.advance(C, 1e-2, 10 * n)
                problem.decide()

        yield f"SVM path, {name}", path, 5


def boost_shapes():
    """Fit with the chain of the Sobolev kernel, and with the pivoted factor."""
    from skbounds import EarlyStoppedKernelBoost

    rng = np.random.default_rng(0)
    x = rng.random((1_000_000, 1))
    y = np.sin(6 * x[:, 0]) + rng.normal(size=len(x))
    chain = EarlyStoppedKernelBoost("sobolev")
    yield "banded Sobolev, 1e6 rows", lambda: chain.fit(x, y), 1
    X = rng.normal(size=(5000, 5))
    t = np.sin(X).sum(axis=1) + rng.normal(size=5000)
    factor = EarlyStoppedKernelBoost(gamma=0.2, random_state=0)
    yield "pivoted factor, 5000 rows", lambda: factor.fit(X, t), 3


def sequential_shapes():
    """Run online tests and simulated bandits."""
    from skbounds import LORD, LORDPlusPlus, simulate_best_arm_tests

    rng = np.random.default_rng(0)
    p = np.where(rng.random(100_000) < 0.01, 0.0, rng.uniform(0.5, 1, size=100_000))
    yield "LORD, 1e5 tests", lambda: LORD(0.1).fit(p), 2
    yield "LORD++, 1e5 tests", lambda: LORDPlusPlus(0.1).fit(p), 2
    means = np.tile(np.r_[0.0, rng.uniform(0, 5, size=48), 8.0], (200, 1))

    def bandits():
        simulate_best_arm_tests(means, max_pulls=20_000, random_state=0)

    yield "200 simulated bandits of 50 arms", bandits, 3


GROUPS = {
    "online": online_shapes,
    "hmm": hmm_shapes,
    "smp": smp_shapes,
    "svm": svm_shapes,
    "boost": boost_shapes,
    "sequential": sequential_shapes,
}


def measure(groups):
    """Return {shape: least CPU seconds}."""
    found = {}
    for group in groups:
        for name, call, repeats in GROUPS[group]():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if group != "boost" or repeats > 1:
                    call()
                times = []
                for _ in range(repeats):
                    start = time.process_time()
                    call()
                    times.append(time.process_time() - start)
            found[name] = min(times)
    return found


def run_process(python, level, groups):
    """Measure in a process of another environment."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "SKBOUNDS_CPU_LEVEL": level}
    command = [python, __file__, "--worker", *groups]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def describe(results, n_processes):
    """Return the table and the verdicts.

    The machine's own speed differs between processes by up to a factor of two: the
    ratio of the least times is shown beside that of the medians.
    """
    from _report import format_table, verdict

    rows, ratios, slow = [], [], []
    half = max(1, n_processes // 2)
    for name in results[NUMBA][0]:
        times = {k: np.array([r[name] for r in runs]) for k, runs in results.items()}
        medians = {kind: np.median(values) for kind, values in times.items()}
        ratio = medians[V3] / medians[NUMBA]
        halves = [
            np.median(times[V3][part]) / np.median(times[NUMBA][part])
            for part in (slice(half), slice(-half, None))
        ]
        low, high = min(halves), max(halves)
        target = TARGETS.get(name, MOST)
        ratios.append(ratio)
        base = medians[BASELINE] / medians[NUMBA]
        if ratio > target or base > MOST_BASELINE:
            slow.append(name)
        rows.append(
            [
                name,
                f"{1e3 * medians[NUMBA]:.2f}",
                f"{1e3 * medians[V3]:.2f}",
                f"**{ratio:.2f}** [{low:.2f}, {high:.2f}]",
                f"{times[V3].min() / times[NUMBA].min():.2f}",
                f"{target:g}",
                f"{base:.2f}",
            ]
        )
    header = [
        "shape", "numba, ms", "native, ms", "native / numba", "of the least", "asked",
    ]  # fmt: skip
    table = format_table([*header, "lowest level / numba"], rows)
    mean = float(np.exp(np.mean(np.log(ratios))))
    checked = verdict(f"{mean:.2f}", mean <= MOST_MEAN, f"{MOST_MEAN}, goal .8")
    lines = [
        table,
        "",
        f"Geometric mean of native / numba {checked}.",
        "",
        "Beyond what is asked: " + (", ".join(slow) if slow else "none") + ".",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--numba", help="Python of the environment with version 0.1")
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=GROUPS)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="two processes, no record")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker)))
        return
    if not options.numba:
        parser.error("--numba is needed: see the description")
    from _report import publish

    n_processes = 2 if options.quick else options.processes
    kinds = {
        NUMBA: (options.numba, ""),
        V3: (sys.executable, "v3"),
        BASELINE: (sys.executable, "baseline"),
    }
    results = {kind: [] for kind in kinds}
    for _ in range(n_processes):
        for kind, (python, level) in kinds.items():
            results[kind].append(run_process(python, level, options.groups))
    text = (
        "## Native core: speed beside the numba version\n\n"
        "CPU time of version 0.1, which compiled with numba, and of the native core, "
        f"in two environments; medians of {n_processes} processes of each in turn. In "
        "brackets the ratios of both halves of the processes. Whole calls of "
        "estimators, Python around the loops included, but for the HMM's recursions."
        "\n\n" + describe(results, n_processes)
    )
    whole = set(options.groups) == set(GROUPS)
    publish("native_speed", text, quick=options.quick or not whole)


if __name__ == "__main__":
    main()
