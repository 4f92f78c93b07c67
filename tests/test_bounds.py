"""Every bound, at its rate: the table of all guarantees, with few repetitions."""

import json
import re
from pathlib import Path

import pytest
from guarantees import TABLE, run

ROOT = Path(__file__).parents[1]
N_LINES = sum(len(guarantee.laws) for guarantee in TABLE)
EACH_LINE = pytest.mark.parametrize(
    ("guarantee", "law"),
    [
        pytest.param(guarantee, law, id=f"{guarantee.name} - {law}")
        for guarantee in TABLE
        for law in guarantee.laws
    ],
)


@EACH_LINE
def test_a_few_times(guarantee, law):
    """No law that meets the conditions breaks a promise so often that few runs tell."""
    line = run(guarantee, law, 5, N_LINES)
    # Misuse need not be seen to fail in so few.
    assert line.holds or guarantee.fails, line


@pytest.mark.slow
@EACH_LINE
def test_at_its_rate(guarantee, law):
    """Violations are not more frequent than they may be; those of misuse are."""
    line = run(guarantee, law, 150, N_LINES)
    assert line.as_documented, line


@pytest.mark.parametrize("section", ["limits", "streams", "average"])
def test_three_laws_each(section):
    """Of every guarantee with a theorem."""
    few = [g.name for g in TABLE if g.section == section and len(g.laws) < 3]
    assert few == []


def test_the_guide_has_the_numbers():
    """What it says of misuse are the frequencies of the benchmark."""
    kept = json.loads((ROOT / "benchmarks/results/bounds_lines.json").read_text())
    found = [line for line in kept["lines"] if line["section"] == "misuse"]
    assert {(line["name"], line["law"]) for line in found} == {
        (g.name, law) for g in TABLE if g.section == "misuse" for law in g.laws
    }
    expected = sorted(
        f"mean {line['observed']:.1f}"
        if line["allowed"] == 1.0
        else f"{line['observed']:.2f}".removeprefix("0")
        for line in found
    )
    guide = (ROOT / "docs/user_guide/guarantees.rst").read_text()
    section = guide.partition(".. _guarantees_misuse:")[2]
    section = section.partition("What no number")[0]
    numbers = re.findall(r"^     - ((?:mean )?\d*\.\d+)$", section, re.M)
    assert sorted(numbers) == expected
