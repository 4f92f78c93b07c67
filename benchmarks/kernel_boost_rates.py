"""How fast the error of stopped kernel boosting falls; --plot FILE.png draws it.

The experiment of section 3.4 of the thesis: x_i = i/n, kernel 1 + min(x, x'), target
f* = |x - 1/2| - 1/4, no intercept, step size .75, n = 50 to 1600, 40 trials;

- L2: y = f* + N(0, 1/2) (variance 1/2);
- Logit: 5 binomial trials per point with P = 1 / (1 + exp(-f*));
- Exp: the same responses; the minimiser of this loss is f* / 2.

The error is that at the design points, the mean of (f - f*)^2 (of (f - f*/2)^2), of

- the gold standard: the best iterate of each trial;
- T = (7 n)^kappa for kappa = 1/3, 2/3, 1, of which theory promises n^(-2/3) for 2/3;
- the eigenvalue rule, T = 1 / (alpha m delta^2), with the critical radius delta of the
  true noise sigma / m and the true norm sqrt(17/16): m = 1, sigma^2 = 1/2 for L2; m =
  1/4, sigma / m = 2 / sqrt(5) for Logit; m = 1, 1 / sqrt(5) and half the norm for Exp.

Rules are applied to the average of the iterates 1, ..., T, which the theorem is on, and
to the last one, which the estimators return by default.

Asks for what was seen in a prototype, with margins: for L2 and Exp that the slope of
log error on log n is at most -.65 for kappa = 2/3, at least -.4 for 1/3 (too short),
and larger by .1 for 1 (too long) than for 2/3; for all losses that the eigenvalue
rule's is at most -.6 and its error at the largest n at most 1.6 times the gold
standard's (averaged iterates). The gold standard may well fall faster than n^(-2/3),
which is the best for the hardest target of the unit ball: this one is smoother.

L2 uses ``EarlyStoppedKernelBoost``, the trials being outputs, and so do the radii of
all rules. The classifier takes one trial at a time and n^2 operations per step, of
which there are up to 11200; Logit and Exp are the plain iteration (3.9) in this script,
with all trials at once and the O(n) product of this kernel. For the smallest n the text
says how far the estimators are from it, with two weighted rows per point.

Iterates are compared at 1, ..., 100 and 300 further times up to 7 n.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

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
from scipy.special import expit

from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
)

STEP, N_BINOMIAL, NORM = 0.75, 5, np.sqrt(17.0 / 16.0)
KAPPAS = {"1/3": 1.0 / 3.0, "2/3": 2.0 / 3.0, "1": 1.0}
RULE = "eigenvalues"
SIZES, N_TRIALS = [50, 100, 200, 400, 800, 1600], 40
# Of the comparison with the estimators.
N_CHECKED = 3

# What is asked.
PROMISED, SHORT, LONG_GAP, RULE_SLOPE, RULE_SHARE = -0.65, -0.4, 0.1, -0.6, 1.6


@dataclass(frozen=True)
class Loss:
    """A loss near its minimiser.

    Attributes
    ----------
    curvature : float
        m, its second derivative there at P = 1/2.
    noise : float
        Standard deviation of its derivative, divided by m.
    scale : float
        Its minimiser as a share of f*.
    """

    name: str
    curvature: float
    noise: float
    scale: float


LOSSES = {
    "L2": Loss("squared", 1.0, np.sqrt(0.5), 1.0),
    "Logit": Loss("log_loss", 0.25, 2.0 / np.sqrt(N_BINOMIAL), 1.0),
    "Exp": Loss("exponential", 1.0, 1.0 / np.sqrt(N_BINOMIAL), 0.5),
}


# ---------------------------------------------------------------- experiment


def design(n):
    """Return the points and f*."""
    x = np.arange(1, n + 1) / n
    return x, np.abs(x - 0.5) - 0.25


def draw(loss, n, n_trials, rng):
    """Return responses of shape (n_trials, n): values, or shares of successes."""
    _, f = design(n)
    if loss.name == "squared":
        return f + np.sqrt(0.5) * rng.normal(size=(n_trials, n))
    return rng.binomial(N_BINOMIAL, expit(f), size=(n_trials, n)) / N_BINOMIAL


def stopping_times(loss, n):
    """Return {rule: T}."""
    x, f = design(n)
    # Only the radius of the spectrum is used; it does not depend on y.
    model = EarlyStoppedKernelBoost(
        "sobolev",
        solver="eigh",
        step_size=STEP,
        stopping="theory",
        noise=loss.noise,
        norm=loss.scale * NORM,
        fit_intercept=False,
    ).fit(x[:, None], f)
    last = 1.0 / (STEP * loss.curvature * model.critical_radius_**2)
    times = {key: int((7 * n) ** kappa + 1e-9) for key, kappa in KAPPAS.items()}
    return times | {RULE: int(last)}


def grid(n, times):
    """Return the times at which iterates are compared."""
    longest = max(7 * n, *times.values())
    further = np.geomspace(100, longest, 300).astype(int)
    return np.unique(np.r_[np.arange(1, 101), further, [*times.values()]])


def follow_estimator(y, times):
    """Yield t, last and averaged iterates of the squared loss."""
    n = y.shape[1]
    X = design(n)[0][:, None]
    last, mean = (
        EarlyStoppedKernelBoost(
            "sobolev",
            solver="eigh",
            step_size=STEP,
            stopping=None,
            max_iter=int(times[-1]),
            average=average,
            fit_intercept=False,
        ).fit(X, y.T)
        for average in (False, True)
    )
    stages = (model.staged_predict(X, times) for model in (last, mean))
    for t, f, average in zip(times, *stages, strict=True):
        yield t, f.T, average.T


def follow_steps(loss, shares, times):
    """Yield t, last and averaged iterates of f <- f - alpha K phi'(y, f)."""
    n = shares.shape[1]
    x = design(n)[0]
    f, total = np.zeros_like(shares), np.zeros_like(shares)
    wanted = set(times.tolist())
    for t in range(1, int(times[-1]) + 1):
        if loss.name == "log_loss":
            slope = expit(f) - shares
        else:
            grown = np.exp(f)
            slope = (1.0 - shares) * grown - shares / grown
        # sum_j min(x_i, x_j) s_j = sum_{j <= i} x_j s_j + x_i sum_{j > i} s_j.
        before = np.cumsum(slope, axis=1)
        every = before[:, -1:]
        product = np.cumsum(x * slope, axis=1)
        product += x * (every - before)
        product += every
        f = f - (STEP / n) * product
        total += f
        if t in wanted:
            yield t, f, total / t


def run(loss, n, n_trials, seed):
    """Return {curve: errors of the trials} and {curve: T}."""
    rng = np.random.default_rng([seed, n])
    y = draw(loss, n, n_trials, rng)
    f_star = loss.scale * design(n)[1]
    chosen = stopping_times(loss, n)
    times = grid(n, chosen)
    if loss.name == "squared":
        path = follow_estimator(y, times)
    else:
        path = follow_steps(loss, y, times)
    errors = {
        t: [np.mean((values - f_star) ** 2, axis=1) for values in stages]
        for t, *stages in path
    }
    curves, at = {}, {}
    for place, iterate in enumerate(("last", "average")):
        table = np.array([errors[t][place] for t in times])
        curves["gold", iterate] = table.min(axis=0)
        at["gold", iterate] = np.mean(times[table.argmin(axis=0)])
        for rule, t in chosen.items():
            curves[rule, iterate] = errors[t][place]
            at[rule, iterate] = t
    return curves, at


def check_estimators(loss, n, n_trials):
    """Return the largest deviation of the classifier's path from the plain steps.

    And by how much its own theory rule, given noise and norm, differs from T.
    """
    rng = np.random.default_rng(n)
    shares = draw(loss, n, n_trials, rng)
    x, _ = design(n)
    X, labels = np.r_[x, x][:, None], np.repeat([1, 0], n)
    chosen = stopping_times(loss, n)
    times = np.array([1, 10, chosen["2/3"]])
    largest, stopped = 0.0, []
    make = lambda **options: EarlyStoppedKernelBoostClassifier(
        "sobolev", loss=loss.name, step_size=STEP, fit_intercept=False, **options
    )
    for share in shares:
        weight = N_BINOMIAL * np.r_[share, 1.0 - share]
        for place, average in ((1, False), (2, True)):
            model = make(
                solver="gd", stopping=None, max_iter=int(times[-1]), average=average
            ).fit(X, labels, sample_weight=weight)
            found = model.staged_predict_proba(x[:, None], times)
            steps = follow_steps(loss, share[None], times)
            for p, stage in zip(found, steps, strict=True):
                wanted = expit(stage[place][0] / loss.scale)
                largest = max(largest, np.abs(p[:, 1] - wanted).max())
        theory = make(
            solver="eigh",
            stopping="theory",
            # Per unit of weight: the trials of a point are separate rows.
            noise=loss.noise * np.sqrt(N_BINOMIAL),
            norm=loss.scale * NORM,
        ).fit(X, labels, sample_weight=weight)
        stopped.append(theory.n_iter_)
    return largest, chosen[RULE], stopped


# ---------------------------------------------------------------- tables


def slope(sizes, values):
    """Return the slope of log values on log n."""
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def describe_errors(name, results, sizes):
    """Return mean errors and times of one loss, and their slopes."""
    keys = [("gold", "last"), ("gold", "average")]
    keys += [(rule, "average") for rule in (*KAPPAS, RULE)] + [(RULE, "last")]
    rows = []
    for n in sizes:
        curves, at = results[name, n]
        row = [n]
        for key in keys:
            shown = f"{curves[key].mean():.5f}"
            if key[0] not in KAPPAS:
                shown += f" ({at[key]:.0f})"
            row.append(shown)
        rows.append(row)
    row = ["**slope**"]
    for key in keys:
        values = [results[name, n][0][key].mean() for n in sizes]
        shown = f"**{slope(sizes, values):.2f}**"
        if key[0] not in KAPPAS:
            times = [results[name, n][1][key] for n in sizes]
            shown += f" ({slope(sizes, times):.2f})"
        row.append(shown)
    header = ["n", "gold, last", "gold, average"]
    header += [f"(7n)^{kappa}" for kappa in KAPPAS]
    header += ["**eigenvalue rule**", "eigenvalue rule, last"]
    return format_table(header, [*rows, row])


def describe_last(results, sizes):
    """Return slopes of the last iterates."""
    rows = []
    for name in LOSSES:
        row = [name]
        for rule in ("gold", *KAPPAS, RULE):
            values = [results[name, n][0][rule, "last"].mean() for n in sizes]
            row.append(f"{slope(sizes, values):.2f}")
        rows.append(row)
    header = ["slopes, last iterate", "gold"]
    header += [f"(7n)^{kappa}" for kappa in KAPPAS] + ["eigenvalue rule"]
    return format_table(header, rows)


def summarize(results, sizes):
    """Return which targets are met."""
    lines = []
    for name in LOSSES:
        mean = lambda key, n, name=name: results[name, n][0][key].mean()
        slopes = {
            rule: slope(sizes, [mean((rule, "average"), n) for n in sizes])
            for rule in (*KAPPAS, RULE)
        }
        if name != "Logit":
            short, two, long = (slopes[kappa] for kappa in KAPPAS)
            gap = long - two
            lines += [
                f"- {name}, slope of (7n)^2/3 "
                + verdict(f"{two:.2f}", two <= PROMISED, f"at most {PROMISED:g}"),
                f"- {name}, slope of (7n)^1/3 "
                + verdict(f"{short:.2f}", short >= SHORT, f"at least {SHORT:g}"),
                f"- {name}, slope of (7n)^1 minus that of (7n)^2/3 "
                + verdict(f"{gap:.2f}", gap >= LONG_GAP, f"at least {LONG_GAP:g}"),
            ]
        value = slopes[RULE]
        lines.append(
            f"- {name}, slope of the eigenvalue rule "
            + verdict(f"{value:.2f}", value <= RULE_SLOPE, f"at most {RULE_SLOPE:g}")
        )
        share = mean((RULE, "average"), sizes[-1]) / mean(("gold", "last"), sizes[-1])
        lines.append(
            f"- {name}, error of the eigenvalue rule / gold standard at n = "
            f"{sizes[-1]} "
            + verdict(f"{share:.2f}", share <= RULE_SHARE, f"at most {RULE_SHARE:g}")
        )
    return "\n".join(lines)


def describe_checks(n):
    """Return how far the classifiers are from the plain steps."""
    lines = []
    for name in ("Logit", "Exp"):
        largest, T, stopped = check_estimators(LOSSES[name], n, N_CHECKED)
        lines.append(
            f'- {name}, n = {n}: probabilities of `solver="gd"` deviate by at most '
            f"{largest:.0e} from the plain steps; the eigenvalue rule gives T = {T}, "
            f'`stopping="theory"` {", ".join(map(str, stopped))}'
        )
    return "\n".join(lines)


def plot(results, sizes, path):
    """Draw errors against n in logarithmic scales."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    styles = {
        ("gold", "last"): ("gold standard", "k:"),
        ("1/3", "average"): (r"$T = (7n)^{1/3}$", "C0s-"),
        ("2/3", "average"): (r"$T = (7n)^{2/3}$", "C1o-"),
        ("1", "average"): (r"$T = 7n$", "C2^-"),
        (RULE, "average"): ("eigenvalue rule", "C3D--"),
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for ax, name in zip(axes, LOSSES, strict=True):
        for key, (label, style) in styles.items():
            values = [results[name, n][0][key] for n in sizes]
            mean = np.array([v.mean() for v in values])
            error = [v.std(ddof=1) / np.sqrt(len(v)) for v in values]
            ax.errorbar(sizes, mean, error, fmt=style, label=label, ms=4, capsize=2)
        first = results[name, sizes[0]][0]["2/3", "average"].mean()
        line = first * (np.array(sizes) / sizes[0]) ** (-2.0 / 3.0)
        ax.plot(sizes, line, color="0.7", lw=1, zorder=0, label=r"$n^{-2/3}$")
        ax.set(xscale="log", yscale="log", xlabel="n", title=name)
        ax.set_xticks(sizes, map(str, sizes))
        ax.set_xticks([], minor=True)
    axes[0].set_ylabel(r"$\|\bar f^T - f^*\|_n^2$")
    axes[0].legend(fontsize="small")
    figure.savefig(path, dpi=150)


def main():
    options = parse_options(__doc__.splitlines()[0], plot=True)
    begin = time.perf_counter()
    sizes, n_trials = SIZES, N_TRIALS
    if options.quick:
        sizes, n_trials = SIZES[:4], 15
    results = {}
    for seed, (name, loss) in enumerate(LOSSES.items()):
        for n in sizes:
            results[name, n] = run(loss, n, n_trials, seed)
            report(begin, f"{name}, n={n}")
    if options.plot is not None:
        plot(results, sizes, options.plot)
    tables = "\n\n".join(
        f"### {name}\n\n{describe_errors(name, results, sizes)}" for name in LOSSES
    )
    text = (
        "## Kernel boosting: rates\n\n"
        "Mean squared error at the design points against n, kernel 1 + min(x, x'), "
        f"{n_trials} trials; section 3.4 of the thesis, described in the script. The "
        "rules are applied to averaged iterates unless a column says last; in brackets "
        "mean stopping times and their slopes.\n\n"
        f"{summarize(results, sizes)}\n\n{tables}\n\n### Last iterates\n\n"
        f"{describe_last(results, sizes)}\n\n### The estimators\n\n"
        f"{describe_checks(sizes[0])}"
    )
    publish("kernel-boost-rates", text, quick=options.quick)


if __name__ == "__main__":
    main()
