"""Tests per second of the online procedures, LORD++'s accuracy, and bandits' speed.

Asks whether

- `LORD` takes at least 300,000 tests per second and `LORDPlusPlus` at least 100,000,
  sustained over 1e5 tests of which 1 % are rejected;
- the levels of `LORDPlusPlus`, which groups old rejections, are never above the exact
  ones, up to the rounding of a double, and at most a share of 1e-6 below;
- 200 bandit experiments of 50 arms through `MABFDR` take less than 2 s.

p-values are 0 for rejections and uniform in [.3, 1] otherwise, so that which ones are
rejected is known; the rate of 1 % is that of a random order. ``fit`` takes all at once,
``test`` one after the other, which is what online-fdr has. Accuracy is against sums in
long double over all rejections, at up to 2000 tests of each sequence: 1 %, 20 % and all
rejected at random, and bursts of 200 rejections each 5000 tests.

Bandits are those of Figure 4.7 of the thesis, with its evidence: normal rewards,
sigma = 1, the best mean 8, the others in [0, 5], 40 % alternatives; LORD(0.1). Rewards
are drawn by a Python function; "simulated" is `simulate_best_arm_tests`, all compiled.

online-fdr's LORD 3 credits rewards one step late, so that it is not the same procedure
as `LORD`; its LORD++ is, with another normaliser of gamma, and costs a sum over all
rejections at each test, so that it is timed on the first 1e4 tests only. Times are
the processor's, in one thread, which other processes disturb less than the clock's;
medians of alternating runs after one untimed run each, in brackets the spread from
fastest to slowest, as a share of the median. online-fdr has one timed run. Without it,
which is no dependency of this package, its columns are empty: python -m pip install
online-fdr
"""

from __future__ import annotations

import gc
import sys
import time

from _report import (
    format_table,
    parse_options,
    publish,
    report,
    single_thread,
    verdict,
)

if __name__ == "__main__":
    single_thread()

import numpy as np
from sequential_figures import SHARE, draw_means

from skbounds.sequential import (
    ADDIS,
    LOND,
    LORD,
    MABFDR,
    SAFFRON,
    AlphaInvesting,
    AlphaSpending,
    LORDPlusPlus,
    LORDPrime,
    simulate_best_arm_tests,
)

try:
    import online_fdr
    from online_fdr.p_values.investing.addis.addis import Addis
    from online_fdr.p_values.investing.alpha.alpha import Gai
    from online_fdr.p_values.investing.lond.lond import Lond
    from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus
    from online_fdr.p_values.investing.lord.three import LordThree
    from online_fdr.p_values.investing.saffron.saffron import Saffron
except ImportError:
    online_fdr = None

ALPHA, RATE, N_TESTS, N_PEER = 0.1, 0.01, 100_000, 10_000
N_CHECKED = 2000
KINDS = {
    "LORD": LORD,
    "LORDPrime": LORDPrime,
    "LORDPlusPlus": LORDPlusPlus,
    "AlphaSpending": AlphaSpending,
    "SAFFRON": SAFFRON,
    "ADDIS": ADDIS,
    "AlphaInvesting": AlphaInvesting,
    "LOND": LOND,
}
N_EXPERIMENTS, N_ARMS, MAX_PULLS = 200, 50, 100_000

# What is asked: tests per second; accuracy; seconds.
TARGETS = {"LORD": 300_000, "LORDPlusPlus": 100_000}
ABOVE, BELOW, SECONDS = 1e-15, 1e-6, 2.0


def cpu_times(functions, *, repeats):
    """Time functions in turns; return {name: (median, spread)} of processor seconds."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            gc.collect()
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {
        name: (float(np.median(values)), max(values) - min(values))
        for name, values in times.items()
    }


# ---------------------------------------------------------------- procedures


def draw_p_values(rejected, rng):
    """Return p-values of 0 where rejected, of at least .3 elsewhere."""
    return np.where(rejected, 0.0, rng.uniform(0.3, 1.0, size=len(rejected)))


def peers():
    """Return {procedure: function that returns online-fdr's}."""
    if online_fdr is None:
        return {}
    half = ALPHA / 2.0
    return {
        "LORD": lambda: LordThree(alpha=ALPHA, wealth=half, reward=half),
        "LORDPlusPlus": lambda: LordPlusPlus(alpha=ALPHA, wealth=half),
        "SAFFRON": lambda: Saffron(ALPHA, half, 0.5),
        "ADDIS": lambda: Addis(ALPHA, half, 0.25, 0.5),
        "AlphaInvesting": lambda: Gai(ALPHA, half),
        "LOND": lambda: Lond(ALPHA),
    }


def run_speed(n, repeats):
    """Return {procedure: {"fit", "test", "online-fdr": (seconds, spread)}}.

    All rejections must be the ones that are meant.
    """
    rng = np.random.default_rng(0)
    rejected = rng.permutation(n) < RATE * n
    p_values = draw_p_values(rejected, rng)
    listed = p_values.tolist()
    results, other = {}, peers()
    for name, kind in KINDS.items():
        if not np.array_equal(kind(ALPHA).fit(p_values).rejected_, rejected):
            raise RuntimeError(f"{name} rejects something else.")

        def one_by_one(kind=kind):
            procedure = kind(ALPHA)
            for p in listed:
                procedure.test(p)

        def theirs(name=name):
            procedure = other[name]()
            for p in listed:
                procedure.test_one(p)

        runs = {"fit": lambda kind=kind: kind(ALPHA).fit(p_values), "test": one_by_one}
        results[name] = cpu_times(runs, repeats=repeats)
        if name in other and (name == "LORD" or n <= N_PEER):
            # Slow: one run after the untimed one at most.
            results[name] |= cpu_times({"online-fdr": theirs}, repeats=1)
    return results


# ---------------------------------------------------------------- accuracy


def sequences(n):
    """Return {name: which tests are rejected}."""
    rng = np.random.default_rng(1)
    return {
        "1 % at random": rng.uniform(size=n) < 0.01,
        "20 % at random": rng.uniform(size=n) < 0.2,
        "all": np.ones(n, bool),
        "bursts": np.arange(n) % 5000 < 200,
    }


def exact_level(j, rejections, gamma, w0):
    """Return the level of test j in long double; gamma[0] is gamma_1."""
    before = rejections[: np.searchsorted(rejections, j)]
    level = w0 * gamma[j - 1]
    if len(before):
        level += (ALPHA - w0) * gamma[j - before[0] - 1]
        level += ALPHA * gamma[j - before[1:] - 1].sum()
    return level


def run_accuracy(n):
    """Return {sequence: (rejections, largest share above, below the exact level)}."""
    w0 = ALPHA / 2.0
    j = np.arange(1, n + 1).astype(np.longdouble)
    gamma = np.log(np.maximum(j, 2)) / (j * np.exp(np.sqrt(np.log(j))))
    # The sum of the whole sequence.
    gamma /= np.longdouble("12.645107872872")
    found = {}
    rng = np.random.default_rng(2)
    for name, rejected in sequences(n).items():
        procedure = LORDPlusPlus(ALPHA)
        levels = np.empty(n)
        for k, decision in enumerate(rejected.tolist()):
            levels[k] = procedure.next_level_
            procedure.update(decision)
        rejections = np.flatnonzero(rejected) + 1
        # The first, the last, and some in between.
        at = np.arange(1, n + 1)
        if n > N_CHECKED:
            some = rng.choice(np.arange(N_CHECKED // 4, n), N_CHECKED // 2, False)
            at = np.r_[1 : N_CHECKED // 4, some, n - N_CHECKED // 4 : n + 1]
        exact = np.array([exact_level(k, rejections, gamma, w0) for k in at])
        # Levels are at most 1.
        exact = np.minimum(exact, np.longdouble(1.0))
        gaps = (levels[at - 1] - exact) / exact
        found[name] = len(rejections), float(gaps.max()), float(-gaps.min())
    return found


# ---------------------------------------------------------------- bandits


def run_bandits(n, repeats):
    """Return {what: (seconds, spread)}, and pulls per experiment and rejections."""
    rng = np.random.default_rng(3)
    alternative = rng.permutation(n) < SHARE * n
    means = draw_means(alternative, N_ARMS, 8.0, 3.0, rng)
    studies = []

    def draw(row):
        return lambda arm, size, rng: row[arm] + rng.normal(size=size)

    def study():
        found = MABFDR(
            alpha=ALPHA, evidence="lil", sigma=1.0, max_pulls=MAX_PULLS, random_state=0
        )
        studies.append(found.run((N_ARMS, draw(row)) for row in means))

    def simulated():
        procedure = LORD(ALPHA)
        for k, row in enumerate(means):
            level = procedure.next_level_
            found = simulate_best_arm_tests(
                row[None],
                delta=level,
                max_pulls=MAX_PULLS,
                evidence="lil",
                random_state=k,
            )
            procedure.update(bool(found["log_p_value"][0] <= np.log(level)))

    timed = cpu_times({"MABFDR": study, "simulated": simulated}, repeats=repeats)
    history = studies[-1].history_
    pulls = np.mean([entry["n_pulls"] for entry in history])
    rejected = np.array([entry["rejected"] for entry in history])
    return timed, pulls, rejected[alternative].mean(), int(rejected[~alternative].sum())


# ---------------------------------------------------------------- tables


def rate(n, timed):
    """Return tests per second and the spread."""
    seconds, spread = timed
    return f"{n / seconds:,.0f} ({100.0 * spread / seconds:.0f} %)"


def describe_speed(results, n):
    """Return a table of tests per second."""
    rows = []
    for name, timed in results.items():
        row = [name, rate(n, timed["fit"]), rate(n, timed["test"])]
        if "online-fdr" in timed:
            ours, theirs = timed["test"][0], timed["online-fdr"][0]
            row += [f"{n / theirs:,.0f}", f"**{theirs / ours:.1f}x**"]
        else:
            row += ["", ""]
        rows.append(row)
    header = [f"tests per second, {n} tests", "`fit`", "`test`", "online-fdr"]
    return format_table([*header, "online-fdr / `test`, times"], rows)


def describe_accuracy(found):
    """Return a table of shares above and below."""
    rows = [
        [name, size, f"{max(above, 0.0):.0e}", f"{below:.1e}"]
        for name, (size, above, below) in found.items()
    ]
    header = ["rejections", "number", "largest share above", "largest share below"]
    return format_table(header, rows)


def summarize(results, n, accuracy, timed):
    """Return which targets are met."""
    lines = []
    for name, target in TARGETS.items():
        for how in ("fit", "test"):
            value = n / results[name][how][0]
            lines.append(
                f"- {name}, `{how}`, tests per second "
                + verdict(f"{value:,.0f}", value >= target, f"at least {target:,}")
            )
    above = max(above for _, above, _ in accuracy.values())
    below = max(below for _, _, below in accuracy.values())
    lines += [
        "- LORD++, largest share of a level above the exact one "
        + verdict(f"{max(above, 0.0):.0e}", above <= ABOVE, f"at most {ABOVE:g}"),
        "- LORD++, largest share below "
        + verdict(f"{below:.1e}", below <= BELOW, f"at most {BELOW:g}"),
    ]
    seconds = timed["MABFDR"][0]
    lines.append(
        f"- bandit experiments through `MABFDR`, {N_ARMS} arms, seconds "
        + verdict(f"{seconds:.2f}", seconds < SECONDS, f"below {SECONDS:g}")
    )
    return "\n".join(lines)


def main():
    options = parse_options(__doc__.splitlines()[0])
    begin = time.perf_counter()
    n, n_small, repeats, n_experiments = N_TESTS, N_TESTS // 10, 7, N_EXPERIMENTS
    if options.quick:
        n, n_small, repeats, n_experiments = N_TESTS // 10, 1000, 1, 50
    version = ""
    if online_fdr is None:
        print(
            "online-fdr is not installed (python -m pip install online-fdr): only our "
            "own times are shown.",
            file=sys.stderr,
        )
        version = " online-fdr was not installed."
    else:
        from importlib.metadata import version as version_of

        version = f" online-fdr is version {version_of('online-fdr')}."
    speeds = {size: run_speed(size, repeats) for size in (n_small, n)}
    report(begin, "procedures")
    accuracy = run_accuracy(n)
    report(begin, "accuracy")
    timed, pulls, power, n_false = run_bandits(n_experiments, repeats)
    report(begin, "bandits")
    tables = "\n\n".join(describe_speed(found, size) for size, found in speeds.items())
    (seconds, spread), (compiled, _) = timed["MABFDR"], timed["simulated"]
    text = (
        "## Sequential tests: speed\n\n"
        f"{RATE:.0%} of the hypotheses are rejected, alpha = {ALPHA:g}. Data and "
        f"protocol are described in the script; in brackets the spread.{version}\n\n"
        f"{summarize(speeds[n], n, accuracy, timed)}\n\n"
        f"### Online procedures\n\n{tables}\n\n"
        f"### Levels of LORD++, {n} tests\n\n{describe_accuracy(accuracy)}\n\n"
        f"### Bandits\n\n{n_experiments} experiments of {N_ARMS} arms under LORD, "
        f"{pulls:.0f} pulls on average, {power:.0%} of the alternatives and {n_false} "
        f"nulls rejected: {seconds:.2f} s ({100.0 * spread / seconds:.0f} %) through "
        f"`MABFDR`, {compiled:.3f} s simulated."
    )
    publish("sequential-speed", text, quick=options.quick)


if __name__ == "__main__":
    main()
