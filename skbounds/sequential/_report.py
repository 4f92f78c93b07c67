"""What is known of an experiment or a study by now, for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Self

import numpy as np

import skbounds
from skbounds.sequential._evidence import check_level, expected_total


def _number(value, digits=4):
    """Return a number as people read it."""
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return ""
    return f"{value:.{digits}g}"


class _Report:
    """Rows and a summary, as text and as HTML."""

    def _table(self):
        """Return a header, and cells as text."""
        header = list(self.rows[0]) if self.rows else []
        return header, [[_number(row[name]) for name in header] for row in self.rows]

    def _facts(self):
        return [(name, _number(value)) for name, value in self.summary.items()]

    def __str__(self):
        header, cells = self._table()
        lines = [self.title]
        lines += [f"  {name}: {value}" for name, value in self._facts() if value]
        if header:
            table = [header, *cells]
            widths = [max(len(row[k]) for row in table) for k in range(len(header))]
            lines += [
                "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
                for row in table
            ]
        return "\n".join(lines)

    def _repr_html_(self):
        header, cells = self._table()
        facts = "".join(
            f"<li>{escape(name)}: <b>{escape(value)}</b></li>"
            for name, value in self._facts()
            if value
        )
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in cells
        )
        return (
            f"<div class='skbounds-report'><p><b>{escape(self.title)}</b></p>"
            f"<ul>{facts}</ul><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True, repr=False)
class ExperimentReport(_Report):
    """What is known of an experiment by now: `BestArmTest.report`.

    Shown as a table: ``print(report)``, or HTML in a notebook.

    .. versionadded:: 0.2

    Parameters
    ----------
    title : str
        The decision in a sentence.
    summary : dict
        ``"adopted"``, ``"level"``, ``"p-value"``, ``"rewards so far"``,
        ``"expected further rewards"`` (until the arm that looks best may be adopted, if
        its lift is what it is now; None if it is not better) and more.
    rows : list of dict
        Of each arm ``"arm"``, ``"rewards"``, ``"mean"``, ``"lift from"``,
        ``"lift to"``, ``"e-value"``, ``"p-value"`` and ``"adopted"``.

    See Also
    --------
    StudyReport : Of many experiments.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.sequential import BestArmTest
    >>> rng = np.random.default_rng(0)
    >>> test = BestArmTest(["control", "green"], rewards="binary")
    >>> sold = rng.random(1000) < np.tile([0.04, 0.12], 500)
    >>> print(test.observe(["control", "green"] * 500, sold).report())
    green may be adopted
      level: 0.05
      adopted: green
      its e-value: 1.633e+05
      p-value: 5.855e-06
      rewards so far: 1,000
        arm  rewards   mean  lift from  lift to    e-value    p-value  adopted
    control      500  0.024                                                 no
      green      500   0.11    0.03144   0.1454  1.633e+05  5.855e-06      yes
    """

    title: str
    summary: dict
    rows: list

    def __repr__(self):
        return f"<ExperimentReport: {self.title}>"

    @classmethod
    def from_test(cls, test: skbounds.BestArmTest, level: float | None = None) -> Self:
        """Make the report of a test.

        Parameters
        ----------
        test : BestArmTest
            Under way or ended.
        level : float, default=None
            Level of decisions and intervals; None is the test's delta, at most 1/2.

        Returns
        -------
        report : ExperimentReport
            The report.
        """
        test._start()
        settings = test._settings_
        level = min(settings.delta, 0.5) if level is None else check_level(level, 0.5)
        lower, upper = test.lift_intervals(level)
        is_lil = settings.evidence == "lil"
        evalues = np.full(settings.n_arms, np.nan) if is_lil else test.evalues_
        p_values, counts, means = test.p_values_, test.counts_, test.means_
        adopted = np.flatnonzero(test._engine_.log_p <= np.log(level)) + 1
        rows = [
            {
                "arm": str(test._label(i)),
                "rewards": int(counts[i]),
                "mean": float(means[i]),
                "lift from": float(lower[i]),
                "lift to": float(upper[i]),
                "e-value": float(evalues[i]),
                "p-value": float(p_values[i]),
                "adopted": bool(i in adopted),
            }
            for i in range(settings.n_arms)
        ]
        best = test._recommend()
        name = str(test._label(best))
        if len(adopted) and best in adopted:
            title = f"{name} may be adopted"
        elif len(adopted):
            title = f"{test._label(adopted[0])} may be adopted"
        elif test.is_certified_ and best == 0:
            title = f"{name} is the best arm: keep the control"
        elif test.is_certified_:
            title = f"{name} is the best arm, and may not be adopted at level {level:g}"
        elif test.done_:
            title = "the test has ended without a decision"
        else:
            title = "not decided yet"
        chosen = (
            best if best in adopted else (int(adopted[0]) if len(adopted) else None)
        )
        summary = {
            "level": level,
            "adopted": ", ".join(str(test._label(i)) for i in adopted),
            "its e-value": None if chosen is None else float(evalues[chosen]),
            "p-value": test.p_value_,
            "rewards so far": int(counts.sum()),
            "outstanding": test.n_outstanding_ or None,
        }
        if not len(adopted) and not test.done_:
            summary["looks best"] = name
            summary["expected further rewards"] = _further(test, best, level)
        if test.is_asymptotic_:
            summary["guarantee"] = "asymptotic (variances are estimated)"
        return cls(title, summary, rows)


def _further(test, best, level):
    """Return how many more rewards until an arm may be adopted, or None."""
    settings, engine = test._settings_, test._engine_
    if best == 0 or settings.evidence == "lil":
        return None
    means = engine.means()
    gap = means[best] - means[0] - settings.epsilon
    variance = engine.variance_of_mean(best) + engine.variance_of_mean(0)
    if not gap > 0.0 or not 0.0 < variance < np.inf:
        return None
    # The counts grow in proportion.
    share = expected_total(settings.n_arms - 1, level) * 2.0 * variance / gap**2
    n = engine.counts.sum()
    return max(int(np.ceil(n * (share - 1.0))), 1)


@dataclass(frozen=True, repr=False)
class StudyReport(_Report):
    """What is known of many experiments by now: `MABFDR.report`.

    Shown as a table: ``print(report)``, or HTML in a notebook.

    .. versionadded:: 0.2

    Parameters
    ----------
    title : str
        How many discoveries there are.
    summary : dict
        ``"alpha"``, ``"estimated share of false discoveries"``, ``"next level"``,
        ``"experiments open"`` and ``"procedure"``.
    rows : list of dict
        Of each experiment that was finished.

    See Also
    --------
    ExperimentReport : Of one experiment.

    Examples
    --------
    >>> from skbounds.sequential import MABFDR
    >>> study = MABFDR(alpha=0.1, sigma=1.0, max_pulls=2000, random_state=0)
    >>> draw = lambda arm, size, rng: arm + rng.normal(size=size)
    >>> print(study.run([(2, draw), (2, draw)]).report().title)
    2 discoveries in 2 experiments
    """

    title: str
    summary: dict
    rows: list

    def __repr__(self):
        return f"<StudyReport: {self.title}>"

    @classmethod
    def from_study(cls, study: skbounds.MABFDR) -> Self:
        """Make the report of a study.

        Parameters
        ----------
        study : MABFDR
            With its history.

        Returns
        -------
        report : StudyReport
            The report.
        """
        history = study.history_
        rows: list[dict] = []
        for entry in history:
            low, high = entry.get("lift_interval") or (np.nan, np.nan)
            rows.append(
                {
                    "experiment": int(entry.get("number", len(rows) + 1)),
                    "adopted": str(entry["recommendation"])
                    if entry["rejected"]
                    else "",
                    "level": float(entry["level"]),
                    "p-value": float(entry["p_value"]),
                    "e-value": float(entry.get("evalue", np.nan)),
                    "lift from": low,
                    "lift to": high,
                    "rewards": int(entry["n_pulls"]),
                    "FDP estimate": float(entry.get("fdp_estimate", np.nan)),
                }
            )
        n_found = sum(entry["rejected"] for entry in history)
        title = (
            f"{n_found} discover{'y' if n_found == 1 else 'ies'} in {len(history)} "
            f"experiment{'' if len(history) == 1 else 's'}"
        )
        summary = {
            "procedure": type(study._procedure_).__name__,
            "alpha": float(study._procedure_.alpha),
            "estimated share of false discoveries": float(study.fdp_estimate_),
            "next level": float(study.next_level_),
            "experiments open": len(study.open_experiments_) or None,
        }
        return cls(title, summary, rows)
