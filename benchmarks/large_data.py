"""What fits cost as rows grow from 1000 to 10 000 000, in memory and in chunks.

Asks from which size on chunks are worth it, what they cost beside rows in memory, and
what scikit-learn's plain tools cost; and whether

- kernel boosting of chunks takes at most 1.5 times as long a row as in memory at 1e6
  rows, and less than 2 GiB beside the data at 1e7;
- the stream of 1e7 rows with 20 features of a Parquet file is learnt in under 60 s.

Each cell is a process of its own with one thread, all of its chunks on that thread
too; a method that would take longer than some minutes at the next size stops there.
Seconds are those of the fit; MB are the growth of the process's peak over what it has
before the fit, without the data where these are in memory. Chunks of 100 000 rows are
read from a file in every pass.

Data: 10 features, uniform on [0, 1], and Friedman's function of five of them with
normal noise of deviation 1 (its median makes two classes); for the stream 20 normal
features, classes by a linear function and noise; for hidden Markov models 4 columns, 4
states, with the same start. Errors are those on 10 000 other rows, of numbers root mean
squared, of classes log losses; of streams the share of rows that were predicted wrongly
before they were learnt; of hidden Markov models minus the log-likelihood a row.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _report import format_table, parse_options, publish, report, single_thread, verdict

if __name__ == "__main__":
    single_thread()

SIZES = [10**3, 10**4, 10**5, 10**6, 10**7]
LIMIT = 240.0
RESULTS = Path(__file__).with_name("results") / "large_data_cells.json"
PICTURE = Path(__file__).parents[1] / "docs" / "user_guide" / "large_data.png"

WORKER = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
n, folder, chunk = {n}, {folder!r}, 100_000

def rows_of(n, seed, d=10):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    f += 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + rng.normal(size=n)

def status(key):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return int(line.split()[1]) / 1024

def read(block_info, name, d):
    begin, end = block_info[None]["array-location"][0]
    found = np.fromfile(
        f"{{folder}}/{{name}}", count=(end - begin) * d, offset=8 * begin * d
    )
    return found.reshape(-1, d) if name == "X" else found

def in_memory(d=10):
    X = np.fromfile(f"{{folder}}/X").reshape(-1, d)[:n]
    return X, np.fromfile(f"{{folder}}/y")[:n]

def in_chunks(d=10):
    import dask, dask.array as da
    dask.config.set(scheduler="synchronous")
    sizes = (chunk,) * (n // chunk) if n >= chunk else (n,)
    X = da.map_blocks(lambda block_info=None: read(block_info, "X", d),
                      chunks=(sizes, (d,)), dtype=float, meta=np.empty((0, 0)))
    y = da.map_blocks(lambda block_info=None: read(block_info, "y", 1), chunks=(sizes,),
                      dtype=float, meta=np.empty(0))
    return X, y

X_test, y_test = rows_of(10_000, 10**9)
middle = 14.4
def rmse(model):
    return float(np.sqrt(np.mean((np.asarray(model.predict(X_test)) - y_test) ** 2)))
def loss(model):
    from sklearn.metrics import log_loss
    return float(log_loss(y_test > middle, np.asarray(model.predict_proba(X_test))))
error = None
{setup}
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
begin = time.perf_counter()
{call}
seconds = time.perf_counter() - begin
peak = status("VmHWM") - before
{after}
print(json.dumps([seconds, peak, error]))
"""
MEMORY, CHUNKS = "X, y = in_memory()\n", "X, y = in_chunks()\n"
FIT = "model = model.fit(X, y)"


def regression(make):
    return make, FIT, "error = rmse(model)"


def classes(make):
    return make + "\ny = y > middle", FIT, "error = loss(model)"


BOOST = (
    "from skbounds import EarlyStoppedKernelBoost{0}\n"
    "model = EarlyStoppedKernelBoost{0}(max_rank={1}, random_state=0)"
)
ONE_STEP = (
    "from skbounds import SMPLogisticRegression as M\nmodel = M(method='one-step')"
)
POOL = "from skbounds import SMPLogisticRegressionCV as M\nmodel = M(method='one-step')"
STREAM = """
import pyarrow.parquet as pq
table = pq.ParquetFile(f"{folder}/stream.parquet", pre_buffer=False)
from skbounds import FenchelYoungOnlineClassifier
from sklearn.linear_model import SGDClassifier
def batches():
    seen = 0
    for batch in table.iter_batches(batch_size=2**16):
        if seen >= n:
            return
        batch = batch.slice(0, n - seen)
        seen += batch.num_rows
        yield batch
"""
ONLINE = (
    STREAM + "model = FenchelYoungOnlineClassifier(random_state=0)",
    "model.play_batches(batches(), target='y', classes=[0, 1])",
    "error = model.progressive_errors_ / model.n_samples_seen_",
)
SGD = (
    STREAM + "model, wrong = SGDClassifier(loss='log_loss', random_state=0), 0",
    """for k, batch in enumerate(batches()):
    names = [name for name in batch.schema.names if name != "y"]
    rows = np.column_stack([batch.column(name).to_numpy() for name in names])
    y = batch.column("y").to_numpy()
    if k:
        wrong += int((model.predict(rows) != y).sum())
    model.partial_fit(rows, y, classes=[0, 1])""",
    "error = wrong / max(n - 2**16, 1) if n > 2**16 else None",
)
CHAIN = """
rng = np.random.default_rng(0)
steps = np.where(rng.uniform(size=n) < 0.9, 0, rng.integers(1, 4, size=n))
means = 1.5 * rng.normal(size=(4, 4))
X = rng.normal(size=(n, 4)) + means[np.cumsum(steps) % 4]
start = means + rng.normal(size=means.shape)
"""
HMM = (
    CHAIN
    + "from skbounds import BaumWelchHMM\nmodel = BaumWelchHMM(4, means_init=start,"
    " reg_covar=0.0, max_iter=20, tol=0.0)",
    "model = model.fit(X)",
    "error = float(-model.history_[-1] / n)",
)
HMMLEARN = (
    CHAIN
    + """from hmmlearn.hmm import GaussianHMM
model = GaussianHMM(4, n_iter=20, tol=-np.inf, init_params="", min_covar=0.0,
                    covars_prior=0.0, covars_weight=0.0, implementation="scaling")
model.startprob_, model.transmat_ = np.full(4, 0.25), np.full((4, 4), 0.25)
model.means_, model.covars_ = start.copy(), np.tile(X.var(axis=0), (4, 1))""",
    "model = model.fit(X)",
    "error = float(-model.score(X) / n)",
)
SKLEARN = "from sklearn.linear_model import {0}\nmodel = {0}({1})"
TREES = (
    "from sklearn.ensemble import HistGradientBoosting{0} as M\n"
    "model = M(random_state=0)"
)
# Topic: {method: (setup, call, after)}; names that begin with a star are ours.
TOPICS = {
    "Ridge regression": {
        "Ridge": regression(MEMORY + SKLEARN.format("Ridge", "")),
        "BayesianRidge": regression(MEMORY + SKLEARN.format("BayesianRidge", "")),
        "*RidgeSMP": regression(
            MEMORY + "from skbounds import RidgeSMP\nmodel = RidgeSMP()"
        ),
        "*RidgeSMP, chunks": regression(
            CHUNKS + "from skbounds import RidgeSMP\nmodel = RidgeSMP()"
        ),
    },
    "Logistic regression": {
        "LogisticRegression": classes(
            MEMORY + SKLEARN.format("LogisticRegression", "")
        ),
        "LogisticRegressionCV": classes(
            MEMORY
            + SKLEARN.format(
                "LogisticRegressionCV",
                "scoring='neg_log_loss', use_legacy_attributes=False, l1_ratios=(0,)",
            )
        ),
        "*SMPLogisticRegression": classes(MEMORY + ONE_STEP),
        "*SMPLogisticRegression, chunks": classes(CHUNKS + ONE_STEP),
        "*SMPLogisticRegressionCV": classes(MEMORY + POOL),
        "*SMPLogisticRegressionCV, chunks": classes(CHUNKS + POOL),
    },
    "Kernel boosting": {
        "HistGradientBoosting": regression(MEMORY + TREES.format("Regressor")),
        "*EarlyStoppedKernelBoost": regression(MEMORY + BOOST.format("", 512)),
        "*EarlyStoppedKernelBoost, chunks": regression(CHUNKS + BOOST.format("", 512)),
        "*max_rank=128, chunks": regression(CHUNKS + BOOST.format("", 128)),
    },
    "Kernel boosting of classes": {
        "HistGradientBoosting": classes(MEMORY + TREES.format("Classifier")),
        "*EarlyStoppedKernelBoost": classes(MEMORY + BOOST.format("Classifier", 512)),
        "*max_rank=128": classes(MEMORY + BOOST.format("Classifier", 128)),
        "*max_rank=128, chunks": classes(CHUNKS + BOOST.format("Classifier", 128)),
    },
    "Streams of a Parquet file": {"SGDClassifier": SGD, "*play_batches": ONLINE},
    "Hidden Markov models, 20 iterations": {"hmmlearn": HMMLEARN, "*BaumWelchHMM": HMM},
}


def write_data(folder, largest):
    """Write the rows of all sizes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    scope = {"np": np}
    source = WORKER[WORKER.index("def rows_of") : WORKER.index("def status")]
    exec(source, scope)
    size = 100_000
    with open(f"{folder}/X", "wb") as rows, open(f"{folder}/y", "wb") as targets:
        for k in range(max(largest // size, 1)):
            X, y = scope["rows_of"](size, k)
            X.tofile(rows)
            y.tofile(targets)
    rng = np.random.default_rng(0)
    coef = rng.normal(size=20)
    schema = pa.schema(
        [(f"x{j}", pa.float32()) for j in range(20)] + [("y", pa.int8())]
    )
    with pq.ParquetWriter(f"{folder}/stream.parquet", schema) as out:
        for _ in range(max(largest // 500_000, 1)):
            X = rng.normal(size=(500_000, 20)).astype("f4")
            y = (X @ coef + 2.0 * rng.normal(size=len(X)) > 0).astype("i1")
            columns = [pa.array(X[:, j]) for j in range(20)] + [pa.array(y)]
            out.write_table(pa.table(columns, schema=schema), row_group_size=500_000)


def run(method, n, folder):
    """Return seconds, MB and error of a cell, None where it fails."""
    setup, call, after = method
    code = WORKER.format(n=n, folder=folder, setup=setup, call=call, after=after)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if found.returncode:
        print(found.stderr[-2000:], file=sys.stderr)
        return None
    return json.loads(found.stdout)


def run_all(sizes, limit):
    """Return {topic: {method: {n: [seconds, MB, error]}}}."""
    begin, results = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder, sizes[-1])
        report(begin, "data")
        for topic, methods in TOPICS.items():
            results[topic] = {}
            for name, method in methods.items():
                cells, last = {}, 0.0
                for n in sizes:
                    # Ten times the rows take at least ten times as long.
                    if 10.0 * last > limit:
                        break
                    found = run(method, n, folder)
                    if found is None:
                        break
                    cells[n] = found
                    last = found[0] if n >= 10**5 else 0.0
                results[topic][name] = cells
                report(begin, f"{topic}: {name}, {cells}")
    return results


def plot(results, path):
    """Draw seconds against rows, a panel for each topic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12, 7.5), sharex=True, sharey=True)
    for ax, (topic, methods) in zip(axes.ravel(), results.items(), strict=True):
        k = 0
        for name, cells in methods.items():
            sizes = [int(n) for n in cells]
            seconds = [cell[0] for cell in cells.values()]
            ours = name.startswith("*")
            style = {"color": f"C{k}", "marker": "o"} if ours else {
                "color": "gray", "marker": "s" if name.endswith("CV") else "^",
                "linestyle": ":",
            }  # fmt: skip
            k += ours
            ax.plot(sizes, seconds, label=name.lstrip("*"), markersize=4, **style)
        ax.set(xscale="log", yscale="log", ylim=(2e-3, 2e4), title=topic)
        ax.legend(fontsize=7, loc="upper left")
        ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("rows")
    for ax in axes[:, 0]:
        ax.set_ylabel("seconds of a fit")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def _cell(found):
    """Return seconds, MB and the error of a fit as a text."""
    if found is None:
        return "-"
    seconds, megabytes, error = found
    return f"{seconds:.3g} ({megabytes:.0f})" + (f" {error:.4f}" if error else "")


def tables(results, sizes):
    """Return the section's text."""
    parts = ["## Large data: growth from a thousand to ten million rows", ""]
    boost = results["Kernel boosting"]
    there = boost["*EarlyStoppedKernelBoost, chunks"]
    here = boost["*EarlyStoppedKernelBoost"]
    million, ten = 10**6, 10**7
    if million in here and million in there:
        ratio = there[million][0] / here[million][0]
        parts.append(
            "- kernel boosting, 1e6 rows, chunks beside memory: "
            + verdict(f"{ratio:.2f}x", ratio <= 1.5, "at most 1.5x")
        )
    small = boost["*max_rank=128, chunks"]
    for name, cells in (("max_rank=512", there), ("max_rank=128", small)):
        if ten in cells:
            peak = cells[ten][1]
            parts.append(
                f"- kernel boosting, 1e7 rows, {name}, memory beside the data: "
                + verdict(f"{peak:.0f} MB", peak < 2048, "less than 2048 MB")
            )
    stream = results["Streams of a Parquet file"]["*play_batches"]
    if ten in stream:
        seconds = stream[ten][0]
        parts.append(
            "- a stream of 1e7 rows and 20 features: "
            + verdict(f"{seconds:.1f} s", seconds < 60, "less than 60 s")
        )
    parts += ["", "Seconds, in brackets MB beside the data, and the error:"]
    for topic, methods in results.items():
        rows = []
        for name, cells in methods.items():
            bold = f"**{name[1:]}**" if name.startswith("*") else name
            rows.append([bold, *(_cell(cells.get(n)) for n in sizes)])
        header = [topic, *(f"n = {n:.0e}".replace("e+0", "e") for n in sizes)]
        parts += ["", format_table(header, rows)]
    return "\n".join(parts)


def main():
    quick = parse_options(__doc__).quick
    sizes = SIZES[:1] if quick else SIZES
    results = run_all(sizes, 5.0 if quick else LIMIT)
    if not quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        plot(results, PICTURE)
    publish("large_data", tables(results, sizes), quick=quick)


if __name__ == "__main__":
    main()
