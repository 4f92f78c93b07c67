"""The benchmarks' summaries and the README's numbers are those of the results."""

import json
import re
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
README = " ".join((ROOT / "README.md").read_text().split())


@pytest.fixture(scope="module")
def summary():
    sys.path.insert(0, str(FOLDER))
    try:
        import summary
    finally:
        sys.path.remove(str(FOLDER))
    return summary


@pytest.fixture(scope="module")
def records(summary):
    return summary.load()


def kept(page):
    """Return the summary that a page has."""
    text = (FOLDER / page).read_text()
    return text.partition("<!-- begin summary -->\n")[2].partition("\n<!-- end")[0]


def test_the_summary_is_made_from_the_results(summary, records):
    found = summary.claims(records)
    main = [claim for claim in found if claim.main or claim.verdict == "**lost**"]
    text = f"{summary.table_of(main)}\n\n{summary.lost_cases(found)}"
    assert kept("README.md") == text


@pytest.mark.parametrize(
    "topic",
    ["smp", "bolstering", "pac_bayes", "fenchel_young", "kernel_boost", "hmm"]
    + ["sequential", "large_data"],
)
def test_pages_are_made_from_the_results(topic, summary, records):
    own = [
        claim
        for claim in summary.claims(records)
        if summary.page_of(claim.section)[0].stem == topic
    ]
    assert own and summary.table_of(own) in kept(f"{topic}.md")
    picture = re.search(r"\((pictures/\w+\.png)\)", kept(f"{topic}.md"))[1]
    assert (FOLDER / picture).stat().st_size > 10_000


def test_lost_lines_are_on_the_first_page(summary, records):
    """All of them, first; and the worst case of all."""
    lines = kept("README.md").splitlines()
    found = summary.claims(records)
    lost = [claim for claim in found if claim.verdict == "**lost**"]
    assert len(lost) > 10
    for number, claim in enumerate(lost):
        cells = [cell.strip() for cell in lines[2 + number].strip("|").split(" | ")]
        assert cells == [cell.strip() for cell in summary.line(claim)]
    verdicts = [line.split(" | ")[4] for line in lines[2:] if line.count(" | ") >= 5]
    assert verdicts.count("**lost**") == len(lost)
    worst = min(min(claim.cases.values()) for claim in found if claim.cases)
    assert f"| {worst:.2g} |" in kept("README.md")


def test_every_section_has_results_and_a_page(summary, records):
    """And the results are the page's tables."""
    from _report import page_of, parse_section

    for name, record in records.items():
        text = page_of(name)[0].read_text()
        section = text.partition(f"<!-- begin {name} -->\n")[2]
        section = section.partition(f"<!-- end {name} -->")[0]
        again = parse_section(name, section)
        assert again == {key: record[key] for key in again}
        assert record["measured_with"].startswith("skbounds ")


def test_verdicts(summary):
    claim = summary.Claim("hmm-speed", "time", "it", {"a": 2.0, "b": 1.05, "c": 0.5})
    claim.band = summary.TIME
    assert claim.results == (1, 1, 1)
    assert claim.ratio == (1.05, 0.5, 2.0) and claim.verdict == "level"
    claim = summary.Claim("hmm-speed", "error", "it", {"a": 0.9, "b": 0.99})
    assert claim.results == (0, 1, 1) and claim.verdict == "**lost**"


def test_results_are_json():
    for path in (FOLDER / "results").glob("*.json"):
        json.loads(path.read_text())


# ------------------------------------------------------------ the README's own numbers


def said(pattern):
    """Return the numbers that the README says, by a pattern with groups."""
    found = re.search(pattern, README)
    assert found, f"the README does not say {pattern!r}"
    return [float(group) for group in found.groups()]


def test_readme_hidden_markov_models(summary, records):
    least, most = said(
        r"\(([\d.]+) times on 200 rows to (\d+) times on many short series of numbers\)"
    )
    rows = summary.rows_of(records["hmm-speed"], "ours / fastest")
    speed = {name: summary.number(row["ours / fastest"]) for name, row in rows.items()}
    assert least == min(speed.values()) and int(max(speed.values())) == most
    assert "1 x 200" in min(speed, key=speed.get)
    assert "2000 x 10" in max(speed, key=speed.get)


def test_readme_rewards(summary, records):
    (low, high) = said(r"at ([\d.]+) to ([\d.]+) times the users of a test")
    record, found = records["sequential-evidence"], []
    for name, row in summary.rows_of(record, "e-process").items():
        if ":" not in name:
            found.append(summary.number(row["e-process"]))
    for row in summary.rows_of(record, '"binary"').values():
        found += [summary.number(row['"binary"']), summary.number(row['"bounded"'])]
    assert low == round(min(found), 1) and high == round(max(found), 1)


def test_readme_kernel_boosting(summary, records):
    (times,) = said(r"the same accuracy some (\d+) times faster with one width")
    rows = summary.rows_of(
        records["kernel-boost-speed"], "fit in ms / RMSE", "n = 2000"
    )
    one, grid = "gamma auto, one width", "KernelRidge grid"
    speed = summary.quotients(rows, grid, one)
    error = summary.quotients(rows, grid, one, 1)
    assert times == round(median(speed.values()))
    assert 0.95 < median(error.values()) < 1.2


def test_readme_certificates(summary, records):
    (times,) = said(r"a certified upper limit of the test error, (\d+) times faster or")
    rows = summary.rows_of(records["pac-bayes-certificate"], "grid / ours")
    assert times <= min(summary.number(row["grid / ours"]) for row in rows.values())


def test_readme_error_estimates(records, summary):
    ends = said(
        r"at ([\d.]+) to ([\d.]+) of the cost for classifiers and ([\d.]+) to ([\d.]+)"
    )
    found = []
    for place in (0, 1):
        rows = summary.rows_of(records["bolstering-times"], "n = 1000", place=place)
        cells = [
            summary.number(cell)
            for row in rows.values()
            for column, cell in row.items()
            if column.startswith("n = ") and summary.numbers(cell)
        ]
        found += [min(cells), max(cells)]
    assert ends == found
    (percent,) = said(r"within (\d+) % of its accuracy on average \(up to 500 rows\)")
    for table in "FGHABCLDE":
        rows = summary.rows_of(
            records["bolstering-accuracy"], "time", f"Panel {table}:"
        )
        ratio = summary.number(rows["default"]["RMSE / cv10's, geometric mean"])
        assert ratio <= 1.0 + percent / 100.0, table


def test_readme_large_kernels(summary, records):
    assert "100 000 rows in seconds" in README
    rows = summary.rows_of(
        records["kernel-boost-speed"], "fit in ms / RMSE", "n = 100000"
    )
    seconds = [summary.number(row["**default**"]) / 1e3 for row in rows.values()]
    assert max(seconds) < 10.0


def test_readme_has_no_other_numbers():
    """Each one in its prose is looked at above, or says nothing of a result."""
    prose = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`", "", prose)
    found = set(re.findall(r"(?<![\w+.-])\d[\d.]*(?: \d{3})?(?!\w)", prose))
    tested = {"5", "500", "27", "100 000", "14", "5000", "53", "1.1", "200", "1.6"}
    tested |= {"2.5", "36", "71", "03", "66"}
    assert found <= tested, found - tested
