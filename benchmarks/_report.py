"""What all benchmark scripts share: options, timing, tables, and where they stand."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from itertools import takewhile
from pathlib import Path

HERE = Path(__file__).parent
# What the names of a topic's sections begin with, and its page's title.
TOPICS = {
    "smp": "Probabilities and predictive distributions",
    "bolstering": "Error estimates",
    "pac_bayes": "Certificates",
    "fenchel_young": "Online learning",
    "kernel_boost": "Kernel boosting",
    "hmm": "Hidden Markov models",
    "sequential": "Sequential tests",
    "large_data": "Large data",
}
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
        "--quick", action="store_true", help="under a minute; keeps nothing"
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


def parse_section(name, text):
    """Return what a section states, for programs: its tables, and its lists.

    Each table is {"title": the heading above it, "header": [...], "rows": [[...]]}, of
    texts; a list's item is a text.
    """
    lines = text.splitlines()
    tables, statements, title = [], [], ""
    for number, line in enumerate(lines):
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.lstrip().startswith("- "):
            statements.append(line.strip()[2:])
        elif line.startswith("|---"):
            rows = takewhile(lambda line: line.startswith("|"), lines[number + 1 :])
            cells = [_cells(row) for row in [lines[number - 1], *rows]]
            tables.append({"title": title, "header": cells[0], "rows": cells[1:]})
    head = next(line.lstrip("# ") for line in lines if line.startswith("#"))
    return {"section": name, "title": head, "tables": tables, "statements": statements}


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def page_of(name):
    """Return the page that a section stands in."""
    for topic, title in TOPICS.items():
        if name.startswith((topic, topic.replace("_", "-"))):
            return HERE / f"{topic}.md", title
    return HERE / "package.md", "The package as a whole"


def publish(name, text, *, quick):
    """Print a section and, unless quick, keep it.

    In the topic's page between markers, and in ``results/<name>.json`` for programs;
    README.md's summary is made from the latter.
    """
    section = f"{text.strip()}\n\n{environment()}\n"
    print(section)
    if quick:
        return
    keep(name, section, environment())
    import summary

    summary.write()


def keep(name, section, measured_with):
    """Write a section into its page and its results."""
    record = parse_section(name, section) | {"measured_with": measured_with}
    path = HERE / "results" / f"{name.replace('-', '_')}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    page, title = page_of(name)
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    block = f"{begin}\n{section}{end}"
    content = page.read_text() if page.exists() else f"# {title}\n"
    if begin in content:
        head, rest = content.split(begin, 1)
        content = head + block + rest.split(end, 1)[1]
    else:
        content = content.rstrip("\n") + "\n\n" + block + "\n"
    page.write_text(content)
