"""Speed and memory of the Fenchel-Young online learners beside SGDClassifier.

All numbers are of one thread, with float32 rows on both sides, timed in turns within
one run: ratios are comparable, single figures vary with the load of the machine.

1. One ``partial_fit`` of a fresh ``FenchelYoungOnlineClassifier`` over the stream, with
   playing, drawing, learning and accounting, with the default experts and with
   ``experts=(1.5, 6)``, against one ``partial_fit`` of a fresh
   ``SGDClassifier(loss="log_loss")``, which only learns. Sparse, ours includes the
   allocation of the table of all features.
2. Streams under way, whose rows come one by one or (last column) in one call:
   ``learn_one`` and one-row ``partial_fit``, against one-row ``partial_fit`` of
   SGDClassifier and, where it is installed, ``learn_one`` of river's
   SoftmaxRegression, on dictionaries that were made before.
3. Structured outputs: rows per second of one ``partial_fit`` of a fresh estimator.
4. Memory: growth of a process's peak over a stream that shows all of 2^20 features.
"""

from _report import (
    alternate_times,
    format_table,
    parse_options,
    publish,
    single_thread,
)

single_thread()

import subprocess
import sys

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from skbounds.fenchel_young import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
)

FAST = (1.5, 6.0)
N_HASHED = 2**18


def dense_stream(n, d=50, n_classes=10, *, seed=0):
    """Return isotropic Gaussian rows and labels drawn from a softmax teacher."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(scale=5.0 / np.sqrt(d), size=(d, n_classes))
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ weights + rng.gumbel(size=(n, n_classes)), axis=1)


def sparse_stream(n, n_classes=20, *, share=0.07, seed=0):
    """Return rows of hashed tokens, about 75 non-zeros each, and their labels.

    Tokens follow Zipf's law. Most are drawn from one vocabulary, a share of them from
    that of the row's class; both are hashed to 2^18 columns with signs. The value of
    a token is one plus the logarithm of its count.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    length = rng.poisson(84.0, size=n) + 1
    rows = np.repeat(np.arange(n), length)
    special = rng.random(len(rows)) < share
    # The integer part of V^u has probabilities close to 1 / rank.
    vocabulary = np.where(special, 5000.0, 500_000.0)
    token = (vocabulary ** rng.random(len(rows))).astype(np.uint64)
    token += np.where(special, (y[rows] + 1) * 1_000_000, 0).astype(np.uint64)
    with np.errstate(over="ignore"):
        hashed = (token + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
        hashed *= np.uint64(0xBF58476D1CE4E5B9)
    columns = (hashed >> np.uint64(46)).astype(np.int32)
    signs = np.where(hashed & np.uint64(1), 1.0, -1.0)
    X = sp.csr_matrix((signs, (rows, columns)), shape=(n, N_HASHED))
    X.sum_duplicates()
    X.eliminate_zeros()
    X.data = np.sign(X.data) * (1.0 + np.log(np.abs(X.data)))
    return X, y


def workloads(n):
    """Return {name: (X, y, classes)} with rows in float32."""
    X, y = dense_stream(n)
    Z, labels = sparse_stream(n)
    width = Z.nnz / n
    return {
        "dense, d=50, K=10": (X.astype(np.float32), y, np.arange(10)),
        f"sparse, d=2^18, {width:.0f} non-zeros, K=20": (
            Z.astype(np.float32),
            labels,
            np.arange(20),
        ),
    }


def learn(make, X, y, classes):
    """Return a call that learns the stream from scratch."""
    return lambda: make().partial_fit(X, y, classes=classes)


def make_default():
    return FenchelYoungOnlineClassifier(random_state=0)


def make_fast():
    return FenchelYoungOnlineClassifier(experts=FAST, random_state=0)


def make_sgd():
    return SGDClassifier(loss="log_loss", random_state=0)


def whole_streams(data, quick):
    rows = []
    for name, (X, y, classes) in data.items():
        times = alternate_times(
            {
                "default": learn(make_default, X, y, classes),
                "fast": learn(make_fast, X, y, classes),
                "sgd": learn(make_sgd, X, y, classes),
            },
            repeats=3 if quick else 15,
        )
        speed = {key: len(y) / median / 1e3 for key, (median, _) in times.items()}
        noise = max(spread / median for median, spread in times.values())
        rows.append(
            [
                f"{name}, n={len(y)}",
                *(f"{speed[key]:.0f}" for key in ("default", "fast", "sgd")),
                f"**{speed['default'] / speed['sgd']:.1f}**",
                f"**{speed['fast'] / speed['sgd']:.1f}**",
                f"{noise:.0%}",
            ]
        )
    header = ["stream", "default (1000 rows/s)", "experts (1.5, 6)", "SGD, learn only"]
    header += ["default / SGD", "(1.5, 6) / SGD", "largest spread / median"]
    return format_table(header, rows)


def single_rows(X):
    """Return a stream's rows as ours, as one-row arrays, and as dictionaries."""
    slices = [X[i : i + 1] for i in range(X.shape[0])]
    if sp.issparse(X):
        pairs = [(row.indices, row.data) for row in slices]
        columns = [row.indices.tolist() for row in slices]
        values = [row.data.tolist() for row in slices]
    else:
        pairs = list(X)
        columns = [range(X.shape[1])] * len(X)
        values = X.tolist()
    dictionaries = [
        dict(zip(keys, row, strict=True))
        for keys, row in zip(columns, values, strict=True)
    ]
    return pairs, slices, dictionaries


def one_by_one(data, quick):
    try:
        from river.linear_model import SoftmaxRegression
    except ImportError:
        SoftmaxRegression = None
    rows = []
    for name, (X, y, classes) in data.items():
        light, checked = make_default(), make_default()
        sgd = make_sgd()
        for model in (light, checked, sgd):
            # Touch the memory of all features before the clock runs.
            model.partial_fit(X, y, classes=classes)
        pairs, slices, dictionaries = single_rows(X[:2000])
        labels = y[:2000].tolist()
        few = 50 if quick else 200

        def learn_one(light=light, pairs=pairs, labels=labels):
            for x, label in zip(pairs, labels, strict=True):
                light.learn_one(x, label)

        def learn_slices(model, slices=slices, y=y, few=few):
            for i in range(few):
                model.partial_fit(slices[i], y[i : i + 1])

        functions = {
            "learn_one": learn_one,
            "partial_fit": lambda model=checked, run=learn_slices: run(model),
            "sgd": lambda model=sgd, run=learn_slices: run(model),
        }
        if SoftmaxRegression is not None:
            other = SoftmaxRegression()

            def learn_river(other=other, rows=dictionaries, labels=labels, few=few):
                for i in range(few):
                    other.learn_one(rows[i], labels[i])

            functions["river"] = learn_river
            functions["call"] = lambda model=checked, X=X, y=y: model.partial_fit(X, y)
        times = alternate_times(functions, repeats=3 if quick else 9)
        counts = dict.fromkeys(functions, few)
        counts |= {"learn_one": len(labels), "call": len(y)}
        speed = {key: counts[key] / times[key][0] for key in functions}
        cells = [
            name,
            *(f"{speed[key]:.0f}" for key in ("learn_one", "partial_fit", "sgd")),
            f"**{speed['learn_one'] / speed['sgd']:.0f}**",
            f"**{speed['partial_fit'] / speed['sgd']:.1f}**",
        ]
        if SoftmaxRegression is None:
            cells += ["not installed", "-", "-"]
        else:
            cells.append(f"{speed['river']:.0f}")
            cells.append(f"**{speed['learn_one'] / speed['river']:.0f}**")
            cells.append(f"**{speed['call'] / speed['river']:.0f}**")
        rows.append(cells)
    header = ["rows/s", "learn_one", "partial_fit", "SGD partial_fit"]
    header += ["learn_one / SGD", "partial_fit / SGD"]
    header += ["river learn_one", "learn_one / river", "one call / river"]
    return format_table(header, rows)


def structured(quick):
    n, d = (4000, 50) if quick else (20_000, 50)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)

    def scores(size):
        noise = rng.normal(size=(n, size))
        return X @ rng.normal(size=(d, size)) / np.sqrt(d) + 0.5 * noise

    labels = (scores(20) > 0).astype(int)
    levels = np.clip(np.floor(2.0 * scores(1)[:, 0] + 5.0), 0, 9).astype(int)
    cases = {
        "multilabel sparsemap, 20 labels": (
            lambda: FenchelYoungOnlineMultilabelClassifier("sparsemap", random_state=0),
            labels,
        ),
        "multilabel sigmoid (mixture), 20 labels": (
            lambda: FenchelYoungOnlineMultilabelClassifier(random_state=0),
            labels,
        ),
        "ordinal, 10 levels": (
            lambda: FenchelYoungOnlineOrdinalClassifier(random_state=0),
            levels,
        ),
        "permutahedron, 10 items": (
            lambda: FenchelYoungOnlineRanker(random_state=0),
            scores(10).argsort(axis=1).argsort(axis=1) + 1,
        ),
    }
    for size in (5, 10):
        cases[f"birkhoff, {size} items"] = (
            lambda: FenchelYoungOnlineRanker("birkhoff", random_state=0),
            scores(size).argsort(axis=1).argsort(axis=1),
        )
    times = alternate_times(
        {
            name: lambda make=make, y=y: make().partial_fit(X, y)
            for name, (make, y) in cases.items()
        },
        repeats=3 if quick else 9,
    )
    rows = [
        [name, f"{n / median / 1e3:.0f}", f"{spread / median:.0%}"]
        for name, (median, spread) in times.items()
    ]
    header = [f"output, d={d}, n={n}", "1000 rows/s", "spread / median"]
    return format_table(header, rows)


GROWTH = """
import os, resource
import numpy as np, scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from skbounds.fenchel_young import FenchelYoungOnlineClassifier
d, K, width = 2**20, 20, 64
def stream(d):
    rng = np.random.default_rng(0)
    n = d // width
    X = sp.csr_matrix(
        (np.ones(d, np.float32), rng.permutation(d).astype(np.int32),
         np.arange(0, d + 1, width)), shape=(n, d))
    X.sort_indices()
    return X, rng.integers(K, size=n)
make = lambda: {make}
X, y = stream(2**10)
make().partial_fit(X, y, classes=np.arange(K))
X, y = stream(d)
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
model = make().partial_fit(X, y, classes=np.arange(K))
peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((peak - before) / 1e6)
"""


def memory():
    cases = {
        "default": "FenchelYoungOnlineClassifier()",
        "experts (1.5, 6)": f"FenchelYoungOnlineClassifier(experts={FAST})",
        "SGDClassifier": 'SGDClassifier(loss="log_loss")',
    }
    rows = []
    for name, make in cases.items():
        code = GROWTH.replace("{make}", make)
        try:
            result = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            rows.append([name, f"{float(result.stdout):.0f}"])
        except (OSError, subprocess.CalledProcessError):
            # No /proc, or too little memory.
            rows.append([name, "not measured"])
    return format_table(["sparse, d=2^20, K=20", "growth of the peak (MB)"], rows)


def main():
    options = parse_options(__doc__.splitlines()[0])
    data = workloads(4000 if options.quick else 20_000)
    text = [
        "## Fenchel-Young online learning: speed",
        "One `partial_fit` from scratch, float32. Ours plays, draws, learns and keeps "
        "accounts; `SGDClassifier(loss='log_loss')` only learns. Medians of turns:",
        whole_streams(data, options.quick),
        "Rows one by one, on streams under way; ours play and learn, the others only "
        "learn:",
        one_by_one(data, options.quick),
        "Structured outputs, one `partial_fit` from scratch:",
        structured(options.quick),
        "Memory of the learner's state, every feature seen, float32 rows:",
        memory(),
    ]
    publish("fenchel-young-speed", "\n\n".join(text), quick=options.quick)


if __name__ == "__main__":
    main()
