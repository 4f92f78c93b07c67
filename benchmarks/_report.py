"""What all benchmark scripts share: options, timing, and the table in README.md."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from pathlib import Path

README = Path(__file__).with_name("README.md")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def single_thread():
    """Restart the script with one BLAS thread, which must be set before NumPy loads."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def parse_options(description, *, plot=False):
    """Return the command line's options; scripts with a picture have one more."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="under a minute; does not touch README.md"
    )
    if plot:
        parser.add_argument("--plot", type=Path, help="file of the picture")
    return parser.parse_args()


def best_time(function, *, repeats=5, budget=20.0):
    """Return the shortest wall time of a call in seconds and its last result.

    One untimed call comes first (caches); repeats stop when the budget of
    seconds is spent.
    """
    function()
    times, begin = [], time.perf_counter()
    while len(times) < repeats and (not times or time.perf_counter() - begin < budget):
        gc.collect()
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def alternate_times(functions, *, repeats=5):
    """Time several functions in turns; return {name: (median, spread)} in seconds.

    Turns expose all of them to the same load of a shared machine.
    """
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            gc.collect()
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {
        name: (statistics.median(values), max(values) - min(values))
        for name, values in times.items()
    }


def report(begin, text):
    """Print what has been done by now."""
    seconds = time.perf_counter() - begin
    print(f"{seconds:.0f} s: {text}", file=sys.stderr, flush=True)


def verdict(value, good, target):
    """Say whether a target is met."""
    return f"{value}: {'met' if good else '**missed**'} (target {target})"


def format_table(header, rows):
    """Return a Markdown table."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines)


def environment():
    """Return one line on versions and processor."""
    import numpy
    import scipy
    import sklearn

    import skbounds

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return (
        f"skbounds {skbounds.__version__}, scikit-learn {sklearn.__version__}, "
        f"numpy {numpy.__version__}, scipy {scipy.__version__}, Python "
        f"{platform.python_version()}, {cpu}, one thread"
    )


def publish(name, text, *, quick):
    """Print a section and, unless quick, write it into README.md between markers."""
    section = f"{text.strip()}\n\n{environment()}\n"
    print(section)
    if quick:
        return
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    block = f"{begin}\n{section}{end}"
    content = README.read_text() if README.exists() else "# Benchmarks\n"
    if begin in content:
        head, rest = content.split(begin, 1)
        content = head + block + rest.split(end, 1)[1]
    else:
        content = content.rstrip("\n") + "\n\n" + block + "\n"
    README.write_text(content)
