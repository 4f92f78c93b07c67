"""Every bound, at its rate: all guarantees of the package, simulated.

``tests/guarantees`` has the table: what each number promises, and laws of its rows,
some of which are meant to break it (labels that are noise, limits at their edge, heavy
tails, sorted rows, drift, whoever sees the past, stopping at the worst moment). True
risks are known exactly, as populations are finite. Each line has 1000 repetitions or
more (the interval of kernel boosting 200), with a seed of its own; the page says how
many have not been run so often yet.

A limit "fails" where the lower limit of the frequency of its violations (Clopper and
Pearson) is above what is allowed, a mean where its excess over the bound has a lower
limit above 0 (Student's t), and a certain statement at the first violation. All limits
are at .001 by the number of lines: the chance that a true table has any line that fails
is .001 at most (about so for means). For intervals that are estimates it is the upper
limit of the coverage that must not be below the documented one. Under "Misuse" it is
the other way round, but for what is harmless or done right.

    python benchmarks/bounds.py [--quick] [--only NAME] [--resume] [--repetitions N]

``--only`` runs the guarantees whose names contain a text, ``--resume`` what has not
been run so often: lines are kept in ``results/bounds_lines.json`` one by one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from _report import HERE, format_table, publish, report, single_thread

if __name__ == "__main__":
    single_thread()

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from guarantees import SECTIONS, TABLE, Line, run

REPETITIONS, FEW = 1000, 5
KEPT = HERE / "results" / "bounds_lines.json"


def load():
    """Return the lines that were kept, by guarantee and law."""
    if not KEPT.exists():
        return {}
    return {(line["name"], line["law"]): Line(**line) for line in _read(KEPT)}


def _read(path):
    lines = json.loads(path.read_text())["lines"]
    return [
        {key: float("nan") if value is None else value for key, value in line.items()}
        for line in lines
    ]


def keep(lines):
    """Write all lines, NaN as null."""
    plain = [
        {key: None if value != value else value for key, value in asdict(line).items()}
        for line in lines.values()
    ]
    KEPT.write_text(json.dumps({"lines": plain}, indent=0, ensure_ascii=False) + "\n")


def number(value):
    return "" if value != value else f"{value:.3g}"


def cells(line, guarantee):
    observed = f"{number(line.observed)} ({number(line.low)} to {number(line.high)})"
    verdict = "holds" if line.holds else "**fails**"
    if guarantee.fails:
        verdict = "fails" if not line.holds else "**holds**"
    if line.allowed != line.allowed:
        verdict = ""
    ratio = "below 0" if line.ratio < 0.0 else number(line.ratio)
    found = [observed, number(line.allowed), ratio, verdict]
    return [f"{line.name}: {line.law}", line.n, *found]


def section_text(section, lines):
    """Return the heading and the table of a section."""
    header = ["", "repetitions", "observed (interval)", "allowed", "observed / allowed"]
    rows = []
    for guarantee in TABLE:
        if guarantee.section == section:
            found = [lines.get((guarantee.name, law)) for law in guarantee.laws]
            rows += [cells(line, guarantee) for line in found if line is not None]
    return f"### {SECTIONS[section]}\n\n{format_table([*header, ''], rows)}"


def text_of(lines):
    pairs = {(g.name, law): g for g in TABLE for law in g.laws}
    found = {pair: line for pair, line in lines.items() if pair in pairs}
    promises = [x for x in found.values() if x.section != "misuse"]
    held = sum(line.holds for line in promises)
    tight = sorted(
        (line for line in promises if pairs[line.name, line.law].kind == "frequency"),
        key=lambda line: -line.ratio,
    )
    few = sum(
        line.n < round(pairs[pair].times * REPETITIONS) for pair, line in found.items()
    )
    broken = [line for line in promises if not line.holds]
    return (
        "## Every bound, at its rate\n\n"
        'The laws are those of `tests/guarantees`; what "fails" means is said in the '
        "script. Frequencies are of violations; means and certain statements have "
        "values beside their bounds, and of the latter the largest ratio.\n\n"
        f"{held} of {len(promises)} lines hold. Used best, of the limits: "
        + ", ".join(f"{x.name} ({x.law}) {x.ratio:.2f}" for x in tight[:3])
        + "."
        + (f" {few} lines have fewer repetitions than planned, a quarter." * (few > 0))
        + "\n"
        + "".join(f"\n- fails: {line.name}, {line.law}" for line in broken)
        + "\n\n"
        + "\n\n".join(section_text(section, found) for section in SECTIONS)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="keeps nothing")
    parser.add_argument("--only", default="", help="part of the names to be run")
    parser.add_argument("--resume", action="store_true", help="what is not yet kept")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    options = parser.parse_args()
    begin = time.perf_counter()
    lines = {} if options.quick else load()
    n_lines = sum(len(guarantee.laws) for guarantee in TABLE)
    for guarantee in TABLE:
        if options.only not in guarantee.name:
            continue
        for law in guarantee.laws:
            n = FEW if options.quick else options.repetitions
            kept = lines.get((guarantee.name, law))
            if options.resume and kept and kept.n >= round(guarantee.times * n):
                continue
            line = run(guarantee, law, n, n_lines)
            lines[guarantee.name, law] = line
            if not options.quick:
                keep(lines)
            report(begin, f"{', '.join(map(str, cells(line, guarantee)))}")
    publish("bounds", text_of(lines), quick=options.quick)


if __name__ == "__main__":
    main()
