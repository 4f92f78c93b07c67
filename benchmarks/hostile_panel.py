"""The hostile panel in full: every estimator in situations that nobody tuned on.

``tests/hostile.py`` says what the situations are and what must hold for each estimator:
the answer of the plain data, a loss at most that of a named tool on the same rows plus
a margin, or a clear word. Here with four seeds (one for 20 classes and for 20 000 rows)
and all rows. A cell has the loss of the estimator / of the tool (error rates, absolute
errors in units of the targets' mean absolute deviation, log losses where there is no
other; for `BolsteredScorer` the mean absolute deviation from the true error, beside 10
folds'), "said" where an error or warning is what was asked for, "same" where the answer
of the plain data was, and is bold where what must hold does not. Sequential tests have
streams for rows; their cells have the mean share of false discoveries at level .1,
"said", or "holds".
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

from _report import format_table, parse_options, publish, report, single_thread

if __name__ == "__main__":
    single_thread()

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hostile
from joblib import Parallel, delayed

SEEDS, SLOW = range(4), {"many classes", "long"}
QUICK = ["GaussianSMP", "RidgeSMP", "SMPLogisticRegression"]


def run_pair(name, situation, full):
    """Return what was seen."""
    warnings.simplefilter("ignore")
    seeds = SEEDS[:1] if situation in SLOW or not full else SEEDS
    estimator = hostile.estimators()[name]
    begin = time.perf_counter()
    outcome = hostile.run(name, estimator, situation, seeds=seeds, full=full)
    return outcome, time.perf_counter() - begin


def describe(name, situation, outcome):
    kind = hostile.kind_of(name, hostile.estimators()[name])
    rule = hostile.rule_for(name, kind, situation)
    ours, tool = outcome.numbers["ours"], outcome.numbers["tool"]
    if isinstance(rule, hostile.Says):
        text = "said" if outcome.holds else "silent"
    elif isinstance(rule, hostile.Same):
        text = "same" if outcome.holds else "another"
    elif not ours:
        text = "said" if outcome.holds else "error"
    else:
        key = next(iter(ours))
        text = f"{ours[key]:.3g}"
        if key in tool:
            text += f" / {tool[key]:.3g}"
    return text if outcome.holds else f"**{text}**"


def describe_stream(outcome):
    text = "said" if outcome.said else "holds" if outcome.holds else "fails"
    if outcome.numbers["ours"]:
        text = f"{outcome.numbers['ours']['false']:.3f}"
    return text if outcome.holds else f"**{text}**"


def run_streams(seeds, begin):
    """Return the table of sequential tests."""
    cells = {}
    for pair, case in hostile.STREAM_CASES.items():
        cells[pair] = describe_stream(case(seeds))
        report(begin, f"{', '.join(pair)}: {cells[pair]}")
    names, situations = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    rows = [[name, *(cells.get((name, s), "") for s in situations)] for name in names]
    return format_table(["", *situations], rows)


def main():
    options = parse_options(__doc__.splitlines()[0])
    begin = time.perf_counter()
    pairs = hostile.pairs()
    if options.quick:
        pairs = [p for p in pairs if p[0] in QUICK and p[1] not in SLOW]
    found = Parallel(n_jobs=1 if options.quick else 2, return_as="generator")(
        delayed(run_pair)(*pair, not options.quick) for pair in pairs
    )
    cells, failures = {}, []
    for pair, (outcome, seconds) in zip(pairs, found, strict=True):
        cells[pair] = describe(*pair, outcome)
        report(begin, f"{', '.join(pair)}: {cells[pair]} ({seconds:.0f} s)")
        known = hostile.KNOWN_FAILURES.get(pair)
        if not outcome.holds:
            why = ": ".join(known) if known else "with so many seeds or rows only"
            failures.append(f"- {', '.join(pair)} ({why})")
        elif known:
            failures.append(f"- {', '.join(pair)}: holds here, fails in the tests")
    names = list(dict.fromkeys(name for name, _ in pairs))
    rows = [
        [name, *(cells.get((name, situation), "") for situation in hostile.SITUATIONS)]
        for name in names
    ]
    n_held = sum("**" not in cell for cell in cells.values())
    text = (
        "## The hostile panel\n\n"
        "Situations, estimators and what must hold are those of `tests/hostile.py`; "
        "cells are explained in the script.\n\n"
        f"What must hold does in {n_held} of {len(cells)} cases. The others:\n\n"
        + "\n".join(failures)
        + "\n\n"
        + format_table(["", *hostile.SITUATIONS], rows)
        + "\n\nStreams of tests:\n\n"
        + run_streams(range(1 if options.quick else 10), begin)
    )
    publish("hostile-panel", text, quick=options.quick)


if __name__ == "__main__":
    main()
