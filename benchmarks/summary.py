"""README.md's summary and the pictures of the topics, from results/*.json.

    python benchmarks/summary.py

All ratios say how many times better ours is: the peer's time, error or bound by ours;
of log losses and densities how many times more probable ours takes a row to be. Above
one is better for us. A case is level within 2 % of one, of times within 10 %.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from statistics import median

from _report import HERE, TOPICS, format_table, page_of

NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?")
TIME, ERROR = 1.1, 1.02
BEGIN, END = "<!-- begin summary -->", "<!-- end summary -->"


@dataclass
class Claim:
    """One line of the summary.

    Attributes
    ----------
    section : str
        The section of the results that it comes from.
    claim, peer : str
    cases : dict of str to float
        The ratio in each case.
    beside : str
        What else is to be known: accuracy beside speed, or the other way round.
    band : float
        Ratios between its inverse and itself are level.
    whole : tuple of 3 or None
        The ratio and its least and largest, and
    counts : tuple of 3 or None
        cases that are won, level and lost, where these are known only on the whole.
    main : bool
        Stands on the first page, too.
    """

    section: str
    claim: str
    peer: str
    cases: dict = field(default_factory=dict)
    beside: str = ""
    band: float = ERROR
    whole: tuple | None = None
    counts: tuple | None = None
    main: bool = False

    @property
    def ratio(self):
        """The ratio (the median of the cases'), its least and its largest."""
        if self.whole:
            return self.whole
        values = list(self.cases.values())
        return median(values), min(values), max(values)

    @property
    def results(self):
        """The numbers of cases that are won, level and lost."""
        if self.counts:
            return self.counts
        won = sum(value > self.band for value in self.cases.values())
        lost = sum(value < 1.0 / self.band for value in self.cases.values())
        return won, len(self.cases) - won - lost, lost

    @property
    def verdict(self):
        """What it is on the whole."""
        ratio = self.ratio[0]
        if ratio < 1.0 / self.band:
            return "**lost**"
        return "won" if ratio > self.band else "level"


def load():
    """Return {section: results}."""
    records = {}
    for path in sorted((HERE / "results").glob("*.json")):
        record = json.loads(path.read_text())
        if "section" in record:
            records[record["section"]] = record
    return records


def numbers(cell):
    """Return the numbers of a cell."""
    return [float(found.replace(",", "")) for found in NUMBER.findall(cell)]


def number(cell, place=0):
    """Return one number of a cell, NaN if there is none."""
    found = numbers(cell)
    return found[place] if len(found) > place else math.nan


def rows_of(record, column, title="", place=0):
    """Return {first cell: {column: cell}} of the table that has a column.

    Lines of means are left out; a name that stands there again gets further cells.
    """
    tables = [
        table
        for table in record["tables"]
        if any(column in name for name in table["header"]) and title in table["title"]
    ]
    table, rows = tables[place], {}
    for cells in table["rows"]:
        name = cells[0].strip("*")
        if "mean" in name or "those of gamma given" in name:
            continue
        for cell in cells[1:]:
            if name in rows:
                name = f"{name}, {cell}"
        rows[name] = dict(zip(table["header"], cells, strict=True))
    return rows


def ratios(rows, function):
    """Return {name: function(row)} where it is a number."""
    found = {name: function(row) for name, row in rows.items()}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def quotients(rows, above, below, place=0):
    """Return {name: a number of one column by that of another}."""
    return ratios(
        rows, lambda row: number(row[above], place) / number(row[below], place)
    )


def claims(records):
    """Return all lines of the summary."""
    return [
        *_smp(records),
        *_bolstering(records),
        *_pac_bayes(records),
        *_fenchel_young(records),
        *_kernel_boost(records),
        *_hmm(records),
        *_sequential(records),
        *_large_data(records),
    ]


def _smp(records):
    section = "smp_logistic_accuracy"
    record = records[section]
    for title, what in (
        ("Group 3", "two classes, 26 sets that no default saw"),
        ("Group 4", "two classes, 13 tables of R packages"),
    ):
        rows = rows_of(record, "beats LRCV", title)
        ours, cells = rows["pool (default)"], int(re.search(r"(\d+) cells", next(
            table["title"] for table in record["tables"] if title in table["title"]
        ))[1])  # fmt: skip
        fit = rows_of(record, "fit / LRCV", title)["pool (default)"]["fit / LRCV"]
        for peer, beats in (
            ("LogisticRegressionCV", "beats LRCV"),
            ("Firth, FLIC", None),
        ):
            gain, error = numbers(rows[peer]["default - it"])
            whole = tuple(math.exp(-gain + k * error) for k in (0, -2, 2))
            won = int(number(ours[beats])) if beats else None
            counts = (won, "", cells - won) if beats else None
            beside = f"fit in {number(fit):.2g} of its time" if beats else ""
            beside += ", predictions take longer" if beats else ""
            yield Claim(
                section, f"log loss, {what}", peer, whole=whole, counts=counts,
                beside=beside, main="Group 3" in title and beats is not None,
            )  # fmt: skip
    worst = {}
    for title in ("Group 1", "Group 2", "Group 3", "Group 4"):
        for cell, row in rows_of(record, "best peer", title).items():
            worst[cell] = math.exp(-number(row["regret"]))
    yield Claim(
        section, "log loss, the five worst cells of each group",
        "best of ten peers in hindsight", worst, main=True,
    )  # fmt: skip
    section = "smp-multiclass"
    rows = rows_of(records[section], "difference", place=1)
    cases = ratios(rows, lambda row: math.exp(-number(row["difference"])))
    slower = median(number(row["ratio"]) for row in rows.values())
    yield Claim(
        section, "log loss, 3 to 26 classes", "LogisticRegressionCV", cases,
        f"median fit in {slower:.2g} of its time", main=True,
    )  # fmt: skip
    section = "smp-logistic-speed"
    rows = rows_of(records[section], "ratio to 10")
    rows = {f"{row['data']}, n={row['n']}": row for row in rows.values()}
    cases = ratios(rows, lambda row: 1.0 / number(row["ratio to 10"]))
    yield Claim(
        section, "time of a fit", "LogisticRegressionCV", cases,
        "slower from some ten classes on", TIME, main=True,
    )  # fmt: skip
    rows = rows_of(records[section], "lbfgs refits (s)")
    cases = ratios(rows, lambda row: number(row["ratio"]))
    gap = max(number(row["max diff"]) for row in rows.values())
    yield Claim(
        section, "time of exact prediction", "refits by lbfgs", cases,
        f"same to {gap:.0e}", TIME,
    )  # fmt: skip
    section = "smp-ridge"
    for column, peer in (("BayesianRidge", "BayesianRidge"), ("OLS, Student", "OLS")):
        cases = {}
        for place, name in ((0, "data"), (1, "noise"), (2, "data of R")):
            for row in _every_row(records[section], "OLS, Student", place):
                gap = number(row[column]) - number(row["RidgeSMPCV"])
                cases[f"{row[name]}, n={row['n']}, d={row['d']}"] = math.exp(gap)
        peer = peer if peer != "OLS" else "OLS, Student-t predictive"
        yield Claim(
            section, "density of a number, tables and simulated", peer, cases,
            main=column == "BayesianRidge",
        )  # fmt: skip
    rows = _every_row(records[section], "GP fit (s)")
    cases = {
        f"{row['n']}, {row['KernelRidgeSMP']}": number(row["ratio"]) for row in rows
    }
    worse = max(number(row["loss"]) - number(row["GP loss"]) for row in rows)
    yield Claim(
        section, "time, KernelRidgeSMP", "Gaussian process", cases,
        f"log density up to {worse:.2f} worse", TIME,
    )  # fmt: skip


def _every_row(record, column, place=0):
    table = [
        table
        for table in record["tables"]
        if any(column == name.strip("*") for name in table["header"])
    ][place]
    return [dict(zip(table["header"], cells, strict=True)) for cells in table["rows"]]


def _bolstering(records):
    section, record = "bolstering-accuracy", records["bolstering-accuracy"]
    for title, what in (
        ("Panel N", "labels that are noise"),
        ("Panel G", "hard sets"),
        ("Panel H", "sets used nowhere"),
        ("Panel C", "first version, not seen"),
        ("Panel L", "log loss"),
        ("Panel E", "regression, not seen"),
    ):
        row = rows_of(record, "RMSE / cv10's, geometric mean", title)["default"]
        ratio, error = numbers(row["RMSE / cv10's, geometric mean"])
        cells, share = int(number(row["cells"])), number(row["better in"]) / 100.0
        won = round(cells * share)
        whole = (1.0 / ratio, 1.0 / (ratio + 2 * error), 1.0 / (ratio - 2 * error))
        yield Claim(
            section, f"error of the estimate: {what}", "cross_val_score, 10 folds",
            whole=whole, counts=(won, "", cells - won),
            beside=f"{number(row['time / cv10' + chr(39) + 's']):.2f} of its time, "
            f"worst cell {1.0 / number(row['worst']):.2f}",
            main=title in ("Panel N", "Panel H", "Panel C", "Panel E"),
        )  # fmt: skip
    section, cases = "bolstering-times", {}
    for place in (0, 1):
        for name, row in rows_of(records[section], "n = 1000", place=place).items():
            for column, cell in row.items():
                if column.startswith("n = ") and numbers(cell):
                    cases[f"{name}, {column.split(':')[0]}"] = 1.0 / number(cell)
    yield Claim(
        section, "time of an estimate", "cross_val_score, 10 folds", cases,
        "errors in the lines above", TIME, main=True,
    )  # fmt: skip


def _pac_bayes(records):
    section = "pac-bayes-certificate"
    record = records[section]
    rows = rows_of(record, "five lines", place=0)
    cases = ratios(rows, lambda row: 1.0 / number(row["vote ratio"]))
    further = rows_of(record, "paper's best")
    again = median(1.0 / number(row["vote ratio"]) for row in further.values())
    yield Claim(
        section, "certified limit of the error", "SVM certified on a half held out",
        cases, f"{again:.2f} on as many further seeds", main=True,
    )  # fmt: skip
    rows = rows_of(record, "vote - grid")
    cases = quotients(rows, "grid", "vote")
    worst = max(number(row["vote - grid"]) for row in rows.values())
    yield Claim(
        section, "test error", "GridSearchCV(SVC)", cases,
        f"at most {worst:+.3f}; no certificate there", main=True,
    )  # fmt: skip
    rows = rows_of(record, "grid / ours")
    cases = ratios(rows, lambda row: number(row["grid / ours"]))
    yield Claim(
        section, "time of a fit", "GridSearchCV(SVC)", cases, "errors in another line",
        TIME, main=True,
    )  # fmt: skip
    section = "pac-bayes-votes"
    rows = rows_of(records[section], "SVC, GiB")
    cases = ratios(rows, lambda row: 1.0 / number(row["ratio"]))
    yield Claim(
        section, "time at large n", "one SVC, C given", cases, "20 values of C", TIME
    )


def _fenchel_young(records):
    section = "fenchel-young-peers"
    names = {"VW": "Vowpal Wabbit", "SGD and scaler": "SGDClassifier, scaled"}
    for place, what in ((0, "log loss"), (1, "error")):
        rows = rows_of(records[section], "stream (n, d, K)", place=place)
        for peer in ("SGD and scaler", "river", "river, adaptive", "VW"):
            for kind in ("clean", "spoilt"):
                cases = {}
                for name, row in rows.items():
                    if name.endswith("clean") is (kind == "clean"):
                        theirs, ours = number(row[peer]), number(row["ours"])
                        # A thousandth of the rows: errors may be zero.
                        share = (theirs + 1e-3) / (ours + 1e-3)
                        loss = math.exp(theirs - ours)
                        cases[name] = loss if what == "log loss" else share
                yield Claim(
                    section, f"{what} of {kind} streams, defaults",
                    names.get(peer, peer), cases,
                    main=what == "log loss" and peer in ("river", "VW"),
                )  # fmt: skip
    section = "fenchel-young-speed"
    rows = rows_of(records[section], "default / SGD")
    cases = ratios(rows, lambda row: number(row["default / SGD"]))
    yield Claim(section, "time of a pass", "SGDClassifier", cases, "", TIME)
    rows = rows_of(records[section], "learn_one / river")
    cases = ratios(rows, lambda row: number(row["learn_one / river"]))
    yield Claim(section, "time, row by row", "river", cases, "", TIME, main=True)


def _kernel_boost(records):
    section, record = "kernel-boost-accuracy", records["kernel-boost-accuracy"]
    cases = {}
    for place in (0, 1):
        for name, row in rows_of(record, '"cv" / best', place=place).items():
            best = number(row["best log loss"])
            ratio = number(row["HistGB / best"]) - number(row['**"cv" / best**'])
            cases[f"{name}, n={row['n']}"] = math.exp(best * ratio)
    yield Claim(
        section,
        "log loss, 39 cells of classes",
        "HistGradientBoosting",
        cases,
        main=True,
    )
    rows = rows_of(record, "KernelRidge grid", place=0)
    for peer in ("KernelRidge grid", "GP", "HistGB"):
        cases = quotients(rows, peer, '**"auto"**')
        name = {"GP": "Gaussian process, ARD", "HistGB": "HistGradientBoosting"}
        yield Claim(section, "RMSE, numbers", name.get(peer, peer), cases, main=True)
    section, record = "kernel-boost-speed", records["kernel-boost-speed"]
    rows = rows_of(record, "KernelRidge grid")
    ours = "**default**"
    for title in ("n = 2000", "n = 20000", "n = 100000"):
        rows = rows_of(record, "fit in ms / RMSE", f"Regression, {title}")
        peers = ["Nystroem + RidgeCV"]
        peers += ["KernelRidge grid"] if title == "n = 2000" else []
        peers += ["HistGradientBoosting"]
        for peer in peers:
            cases = quotients(rows, peer, ours)
            errors = quotients(rows, peer, ours, 1)
            yield Claim(
                section, f"time of a fit, {title}", peer, cases,
                f"its RMSE is {median(errors.values()):.2f} times ours", TIME,
                main=peer[0] != "N" and title != "n = 100000",
            )  # fmt: skip
    for title in ("n = 2000", "n = 20000"):
        rows = rows_of(record, "fit in ms / KL", f"Classification, {title}")
        for peer in ("Nystroem + LogisticRegressionCV", "HistGradientBoosting"):
            cases = quotients(rows, peer, ours)
            errors = quotients(rows, peer, ours, 1)
            yield Claim(
                section, f"time of a fit, classes, {title}", peer, cases,
                f"its KL is {median(errors.values()):.2f} times ours", TIME,
            )  # fmt: skip


def _hmm(records):
    section, record = "hmm-speed", records["hmm-speed"]
    for column, place, what in (
        ("ours / fastest", 0, "time of EM, Gaussian"),
        ("ours / fastest", 1, "time of EM, counts and categories"),
        ("fastest / ours", 0, "time of posteriors and states"),
    ):
        rows = rows_of(record, column, place=place)
        cases = {name: number(row[column]) for name, row in rows.items()}
        gaps = [number(row.get("gap of log-likelihoods", "")) for row in rows.values()]
        beside = f"log-likelihoods to {max(gaps):.0e}" if "EM" in what else "the same"
        yield Claim(
            section, what, "hmmlearn, its fastest", cases, beside, TIME,
            main=column == "ours / fastest",
        )  # fmt: skip
    section = "hmm-quality"
    rows = rows_of(records[section], "Student")
    cases = {
        f"df = {name}": (1.0 - number(row["Gaussian"])) / (1.0 - number(row["Student"]))
        for name, row in rows.items()
    }
    yield Claim(section, "wrong states, heavy tails", "Gaussian outputs", cases)


def _sequential(records):
    section, record = "sequential-evidence", records["sequential-evidence"]
    normal = rows_of(record, "e-process", place=0)
    binary = rows_of(record, '"binary"')
    for peer, name in (
        ("LIL", "the thesis' p-values"),
        ("mixture", "a mixture tuned for the very lift"),
        ("fixed", "a fixed horizon, looked at once"),
    ):
        cases = {}
        for rows, ours in ((normal, "e-process"), (binary, '"binary"')):
            for row_name, row in rows.items():
                theirs = 1.0 if peer == "fixed" else number(row[peer])
                if math.isfinite(theirs):
                    cases[row_name] = theirs / number(row[ours])
        yield Claim(section, "rewards until a decision", name, cases, main=True)
    if "sequential-betting" in records:
        rows = rows_of(records["sequential-betting"], "betting / ours")
        for evidence in ("binary", "bounded"):
            cases = ratios(
                {n: row for n, row in rows.items() if row["evidence"] == evidence},
                lambda row: number(row["betting / ours"]),
            )
            yield Claim(
                "sequential-betting", f'rewards until a decision, "{evidence}"',
                "betting on differences", cases, "both keep their level", main=True,
            )  # fmt: skip
    rows = rows_of(record, "ADDIS")
    cases = ratios(rows, lambda row: number(row["ADDIS"], 1) / number(row["LORD++"], 1))
    yield Claim(
        section, "discoveries of ADDIS", "LORD++", cases, "FDR at most .1", main=True
    )
    section = "sequential-speed"
    for place, n in ((0, "1e4"), (1, "1e5")):
        rows = rows_of(records[section], "online-fdr / `test`", place=place)
        cases = ratios(rows, lambda row: number(row["online-fdr / `test`, times"]))
        yield Claim(
            section, f"time of {n} online tests", "online-fdr", cases,
            "same rejections; of LORD its own variant", TIME, main=place == 0,
        )  # fmt: skip


def _large_data(records):
    record = records["large_data"]
    for column, ours, peer in (
        ("Ridge regression", "RidgeSMP, chunks", "Ridge"),
        ("Logistic regression", "SMPLogisticRegressionCV", "LogisticRegressionCV"),
        ("Kernel boosting", "EarlyStoppedKernelBoost, chunks", "HistGradientBoosting"),
        (
            "Kernel boosting of classes",
            "EarlyStoppedKernelBoost",
            "HistGradientBoosting",
        ),
        ("Streams of a Parquet file", "play_batches", "SGDClassifier"),
        ("Hidden Markov models, 20 iterations", "BaumWelchHMM", "hmmlearn"),
    ):
        tables = [table["header"][0] for table in record["tables"]]
        rows = rows_of(record, "n = 1e3", place=tables.index(column))
        ours_row, peer_row = rows[ours], rows[peer]
        cases, errors = {}, []
        for size, cell in ours_row.items():
            if size.startswith("n = ") and number(cell) > 0.0:
                cases[size] = number(peer_row[size]) / number(cell)
                errors.append((number(cell, 2), number(peer_row[size], 2)))
        mine, its = [pair for pair in errors if math.isfinite(sum(pair))][-1]
        yield Claim(
            "large_data", f"time: {ours}{', classes' * ('classes' in column)}", peer,
            cases,
            f"error at the largest n {mine:.4g}, its {its:.4g}", TIME,
            main=ours.startswith(("Ridge", "SMP", "Early")),
        )  # fmt: skip


def line(claim):
    """Return a claim's cells."""
    middle, low, high = claim.ratio
    won, level, lost = claim.results if claim.cases or claim.counts else ("", "", "")
    counts = f"{won} / {level} / {lost}" if claim.cases or claim.counts else "-"
    counts = counts.replace("/  /", "/ - /")
    page = page_of(claim.section)[0].name
    return [
        f"[{claim.claim}]({page})", claim.peer,
        f"{middle:.3g} ({low:.2g} to {high:.3g})", counts, claim.verdict, claim.beside,
    ]  # fmt: skip


def table_of(found):
    """Return lines of the summary in Markdown, those that are lost first."""
    header = ["claim", "beside", "times better (from, to)"]
    header += ["won / level / lost", "", "and"]
    order = sorted(found, key=lambda claim: claim.verdict != "**lost**")
    return format_table(header, [line(claim) for claim in order])


def lost_cases(found, most=10):
    """Return the worst cases of all claims in Markdown."""
    cases = [
        (value, claim, name)
        for claim in found
        for name, value in claim.cases.items()
        if value < 1.0 / claim.band
    ]
    worst = {}
    for value, claim, name in sorted(cases, key=lambda case: case[0]):
        worst.setdefault((claim.section, claim.peer), (value, claim, name))
    rows = [
        [f"{claim.claim}: {name}", claim.peer, f"{value:.2g}"]
        for value, claim, name in list(worst.values())[:most]
    ]
    return format_table(["lost most", "beside", "times better"], rows)


def draw(found):
    """Write a picture for each topic: each case a point; beyond the axes a triangle."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    (HERE / "pictures").mkdir(exist_ok=True)
    for topic, title in TOPICS.items():
        own = [claim for claim in found if page_of(claim.section)[0].stem == topic]
        panels = [
            (f"{title}: errors, bounds, samples", 3.3, _but_times(own)),
            (f"{title}: times", 110.0, [c for c in own if c not in _but_times(own)]),
        ]
        panels = [panel for panel in panels if panel[2]]
        heights = [0.5 + 0.5 * len(shown) for *_, shown in panels]
        fig, axes = plt.subplots(
            len(panels), figsize=(8.0, 0.6 + sum(heights)), height_ratios=heights,
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for ax, (name, limit, shown) in zip(axes[:, 0], panels, strict=True):
            _draw_panel(ax, shown, limit)
            ax.set_title(name, loc="left", fontsize=10)
        axes[-1, 0].set_xlabel("times better than the peer (left of the line: lost)")
        fig.savefig(HERE / "pictures" / f"{topic}.png", dpi=110)
        plt.close(fig)


def _but_times(found):
    return [claim for claim in found if claim.band == ERROR]


def _draw_panel(ax, shown, limit):
    colours = {"won": "#0072B2", "level": "#777777", "lost": "#D55E00"}

    def point(value, place, kind, marker, **style):
        if not 1.0 / limit < value < limit:
            marker = ">" if value > 1.0 else "<"
            value = min(max(value, 1.0 / limit), limit)
        ax.plot(value, place, marker, color=colours[kind], clip_on=False, **style)

    for place, claim in enumerate(reversed(shown)):
        middle, low, high = claim.ratio
        ends = [max(low, 1.0 / limit), min(high, limit)]
        ax.plot(ends, [place, place], color="#cccccc", lw=2, zorder=1)
        for value in claim.cases.values():
            kind = "level"
            if not 1.0 / claim.band <= value <= claim.band:
                kind = "won" if value > 1.0 else "lost"
            point(value, place, kind, "o", ms=4, alpha=0.6)
        kind = claim.verdict.strip("*")
        point(middle, place, kind, "D", ms=8, mec="white", zorder=3)
    names = [f"{claim.claim}\nbeside {claim.peer}" for claim in reversed(shown)]
    ax.set_yticks(range(len(shown)), names, fontsize=8)
    ax.axvline(1.0, color="black", lw=0.8, zorder=0)
    ax.set(xscale="log", xlim=(1.0 / limit, limit), ylim=(-0.6, len(shown) - 0.4))
    ticks = [0.01, 0.1, 1, 10, 100] if limit > 10.0 else [0.3, 0.5, 0.8, 1, 1.25, 2, 3]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)


def write():
    """Write the summaries of README.md and of the topics' pages, and the pictures."""
    found = claims(load())
    main = [claim for claim in found if claim.main or claim.verdict == "**lost**"]
    _replace(HERE / "README.md", f"{table_of(main)}\n\n{lost_cases(found)}")
    for topic in TOPICS:
        own = [claim for claim in found if page_of(claim.section)[0].stem == topic]
        picture = f"![All cases of each line as points](pictures/{topic}.png)"
        _replace(HERE / f"{topic}.md", f"{table_of(own)}\n\n{picture}")
    draw(found)


def _replace(page, text):
    content = page.read_text()
    if BEGIN not in content:
        title, rest = content.split("\n", 1)
        content = f"{title}\n\n{BEGIN}\n{END}\n{rest}"
    head, rest = content.split(BEGIN, 1)
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}")


if __name__ == "__main__":
    write()
