"""E-processes beside betting on paired differences.

    python benchmarks/sequential_betting.py [--quick]

The peer tests the mean of bounded variables by betting (Waudby-Smith and Ramdas,
Estimating means of bounded random variables by betting, JRSS B 86, 2024), here of
differences of pairs of rewards, the t-th of the arm less the t-th of the control. Under
the null their mean is not positive, so that the product of 1 + b_t z_t is a
supermartingale for bets b_t in [0, 1) that depend on the past only. Two of the paper's
bets, averaged: the approximate GRAPA (mean by second moment, regularised, at most one
half) and the predictable plug-in.

Both stop at 1 / level, and are looked at at times 1 % apart. Ours is ``log_evalue`` of
the two arms' sums: "binary" where rewards are 0/1, and "bounded". Columns: mean rewards
of an arm until it may be adopted, their ratio, and for equal arms the share of wrong
adoptions up to four times the betting's mean.

Betting learns how rewards vary. It needs pairs, their order, and a bet of its own for
each margin that is asked about; sums do without: one arm's rewards may be many more,
and the state is two or three numbers an arm.
"""

from __future__ import annotations

from _report import parse_options, single_thread

single_thread()

import numpy as np
from _report import format_table, publish

from skbounds.sequential import log_evalue

LEVEL = 0.05
CASES = {
    "rates .5, .55": ("binary", lambda rng, n, up: rng.random(n) < 0.5 + 0.05 * up),
    "rates .1, .12": ("binary", lambda rng, n, up: rng.random(n) < 0.1 + 0.02 * up),
    "rates .02, .03": ("binary", lambda rng, n, up: rng.random(n) < 0.02 + 0.01 * up),
    "Beta(2, 3), Beta(2.2, 2.8)": (
        "bounded",
        lambda rng, n, up: rng.beta(2 + 0.2 * up, 3 - 0.2 * up, n),
    ),
    "Beta(.2, .8), (.25, .75)": (
        "bounded",
        lambda rng, n, up: rng.beta(0.2 + 0.05 * up, 0.8 - 0.05 * up, n),
    ),
    "5 or 7 % buy, min(1, Exp(.3))": (
        "bounded",
        lambda rng, n, up: (
            (rng.random(n) < 0.05 + 0.02 * up)
            * np.minimum(1, rng.exponential(0.3, n))
        ),
    ),
    "narrow: .5, .51, sd .05": (
        "bounded",
        lambda rng, n, up: np.clip(rng.normal(0.5 + 0.01 * up, 0.05, n), 0, 1),
    ),
}  # fmt: skip


def looks(n):
    """Return numbers of pairs to look at, up to n."""
    found, at = [], 1
    while at <= n:
        found.append(at)
        at = max(at + 1, int(at * 1.01))
    return np.array(found)


def log_wealth(z):
    """Return the logarithm of the mean wealth of two ways to bet, after each pair."""
    t = np.arange(1.0, len(z) + 1.0)
    # Regularised by one half in each, before z_t is seen.
    mean = (0.0 + np.r_[0.0, np.cumsum(z)[:-1]]) / t
    second = (0.25 + np.r_[0.0, np.cumsum(z**2)[:-1]]) / t
    grapa = np.clip(mean / np.maximum(second, 1e-12), 0.0, 0.5)
    variance = np.maximum(second - mean**2, 1e-12)
    plug_in = np.minimum(
        np.sqrt(2.0 * np.log(1.0 / LEVEL) / (variance * t * np.log1p(t))), 0.5
    )
    wealth = [np.cumsum(np.log1p(bet * z)) for bet in (grapa, plug_in)]
    return np.logaddexp(*wealth) - np.log(2.0)


def first(passed):
    """Return the number of the first that is true, or -1."""
    return int(np.argmax(passed)) if passed.any() else -1


def state(x, at):
    """Return counts, sums, and V of ``log_evalue``, at some times."""
    t = np.arange(1.0, len(x) + 1.0)
    sums = np.cumsum(x)
    before = (0.5 + np.r_[0.0, sums[:-1]]) / t
    return at, sums[at - 1], np.cumsum((x - before) ** 2)[at - 1]


def our_stop(x, y, at, kind):
    """Return at which of some looks the e-process passes, or -1."""
    arms, controls = (np.array(state(z, at)).T for z in (x, y))
    wanted = 3 if kind == "bounded" else 2
    for k, (arm, control) in enumerate(zip(arms, controls, strict=True)):
        if arm[1] <= control[1]:
            continue
        log_e = log_evalue(tuple(arm[:wanted]), tuple(control[:wanted]), rewards=kind)
        if log_e >= -np.log(LEVEL):
            return k
    return -1


def compare(draw, kind, n_runs, most):
    """Return mean stops of both, and how often neither passed."""
    stops = {"ours": [], "betting": []}
    at = looks(most)
    for run in range(n_runs):
        rng = np.random.default_rng([7, run])
        x, y = (draw(rng, most, up).astype(float) for up in (1, 0))
        ends = {
            "ours": our_stop(x, y, at, kind),
            "betting": first(log_wealth(x - y)[at - 1] >= -np.log(LEVEL)),
        }
        for name, end in ends.items():
            stops[name].append(at[end] if end >= 0 else np.nan)
    return {name: np.array(values) for name, values in stops.items()}


def wrong(draw, kind, n_runs, most):
    """Return the shares of wrong adoptions under the null."""
    at, found = looks(most), np.zeros((n_runs, 2))
    for run in range(n_runs):
        rng = np.random.default_rng([8, run])
        x, y = (draw(rng, most, 0).astype(float) for _ in range(2))
        found[run] = (
            our_stop(x, y, at, kind) >= 0,
            first(log_wealth(x - y)[at - 1] >= -np.log(LEVEL)) >= 0,
        )
    return found.mean(axis=0)


def main():
    """Run and publish."""
    options = parse_options(__doc__.splitlines()[0])
    n_runs = 10 if options.quick else 200
    rows = []
    for name, (natural, draw) in CASES.items():
        if options.quick and natural != "binary":
            continue
        sample = [
            draw(np.random.default_rng(9), 200_000, up).astype(float) for up in (1, 0)
        ]
        gap = sample[0].mean() - sample[1].mean()
        spread = sample[0].var() + sample[1].var()
        most = int(60.0 * spread / gap**2)
        for kind in ("binary", "bounded") if natural == "binary" else ("bounded",):
            found = compare(draw, kind, n_runs, most)
            both = np.isfinite(found["ours"]) & np.isfinite(found["betting"])
            ours, theirs = (np.mean(found[key][both]) for key in ("ours", "betting"))
            errors = wrong(draw, kind, n_runs, min(most, int(4 * theirs)))
            rows.append([
                f"{name}: {kind}", kind, f"{ours:,.0f}", f"{theirs:,.0f}",
                f"{theirs / ours:.2f}", f"{np.mean(both):.2f}",
                f"{errors[0]:.3f} / {errors[1]:.3f}",
            ])  # fmt: skip
    header = ["rewards", "evidence", "ours", "betting", "betting / ours"]
    header += [
        "share of runs in which both ended",
        "wrong under the null: ours / betting",
    ]
    worst = max(float(row[-1].split(" / ")[0]) for row in rows)
    text = (
        "## Sequential tests: beside betting on paired differences\n\n"
        f"Mean rewards of an arm until it is adopted at the level {LEVEL}, {n_runs} "
        "runs; protocol in the script. Betting knows the order and the pairs, and "
        "learns how rewards vary; ours knows sums.\n\n"
        f"- wrong adoptions, most {worst:.3f} (level {LEVEL})\n\n"
        + format_table(header, rows)
    )
    publish("sequential-betting", text, quick=options.quick)


if __name__ == "__main__":
    main()
