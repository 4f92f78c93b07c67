"""The objects of the theory of early stopping beside what a run does.

The experiment of the chapter: x_i = i / n, f* = |x - 1/2| - 1/4, kernel 1 + min(x, x'),
noise of variance 1/2 (squared loss) or labels of P(y = 1) = 1 / (1 + exp(-f*)). Asked
is, for each n,

- how far the population's radius (the known spectrum of the kernel) and the radius of
  the Gaussian complexity itself are from that of the capped sum of the kernel matrix;
- when the literal rules of Theorem 3, m / (8 M delta_n^2), and of the corollaries,
  1 / (delta_n^2 max(8, M)), stop, when the rule without constants does, and which time
  is best; with the mean squared error of the averaged iterate at each;
- what the bound (3.16) without its constant C is, over that error;
- whether the kernel is regular, and the constants of Lemma 17.

Means over 40 draws (labels: 20).
"""

from __future__ import annotations

import time

from _report import format_table, parse_options, publish, report, single_thread

if __name__ == "__main__":
    single_thread()

import warnings

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    boosting_constants,
    critical_radius,
    kernel_regularity,
    literal_stopping_time,
    population_critical_radius,
    stopped_error_bound,
)

NOISE, NORM = 0.5**0.5, (17.0 / 16.0) ** 0.5
LONGEST = 4000


def design(n):
    x = (np.arange(n) + 1.0)[:, None] / n
    return x, np.abs(x[:, 0] - 0.5) - 0.25


def spectrum(n):
    x = design(n)[0][:, 0]
    return np.linalg.eigvalsh((1.0 + np.minimum.outer(x, x)) / n)[::-1]


def report_radii(sizes):
    rows = []
    for n in sizes:
        mu = np.maximum(spectrum(n), 0.0)
        capped = critical_radius(mu, NOISE, n, norm=NORM)
        gaussian = critical_radius(
            mu, NOISE, n, norm=NORM, kind="gaussian", n_draws=400, random_state=0
        )
        population = population_critical_radius("sobolev", NOISE, n, norm=NORM)
        regular = kernel_regularity(mu, capped)
        rows.append(
            [
                n, f"{capped**2:.4f}", f"{population**2 / capped**2:.3f}",
                f"{gaussian**2 / capped**2:.3f}", regular.dimension,
                f"{regular.ratio:.2f}",
            ]
        )  # fmt: skip
    return format_table(
        [
            "n", "delta_n^2", "population / it", "Gaussian complexity / it", "d_n",
            "tail / (d_n delta_n^2)",
        ],
        rows,
    )  # fmt: skip


def errors_at(model, x, f, times):
    """Return the mean squared errors of the averaged iterate."""
    return {
        t: np.mean((values - f) ** 2)
        for t, values in zip(times, model.staged_predict(x, times), strict=True)
    }


def report_squared(sizes, n_draws, begin):
    rows = []
    for n in sizes:
        x, f = design(n)
        mu = np.maximum(spectrum(n), 0.0)
        delta = critical_radius(mu, NOISE, n)
        step = 1.0 / mu[0]
        theorem = literal_stopping_time(delta).value
        corollary = literal_stopping_time(delta, rule="corollary").value
        own = max(1.0, np.floor(1.0 / (step * delta**2)))
        grid = np.unique(np.round(np.geomspace(1, LONGEST, 60)))
        chosen = {"theorem": max(theorem, 1.0), "corollary": max(corollary, 1.0)}
        chosen["without constants"] = own
        times = np.unique(np.r_[grid, list(chosen.values())])
        total = dict.fromkeys(times, 0.0)
        for seed in range(n_draws):
            y = f + np.random.default_rng(seed).normal(scale=NOISE, size=n)
            model = EarlyStoppedKernelBoost(
                "sobolev", solver="eigh", stopping=None, max_iter=LONGEST, average=True,
                fit_intercept=False, noise=NOISE, norm=1.0,
            ).fit(x, y)  # fmt: skip
            for t, value in errors_at(model, x, f, times).items():
                total[t] += value / n_draws
        best = min(total, key=total.get)
        bound = stopped_error_bound(delta, int(own), step)
        rows.append(
            [
                n,
                *(
                    f"{chosen[rule]:.0f} / {total[chosen[rule]]:.4f}"
                    for rule in ("theorem", "corollary", "without constants")
                ),
                f"{best:.0f} / {total[best]:.4f}",
                f"{bound.value / total[own]:.1f}",
                "; ".join(key for key, holds in bound.conditions.items() if not holds),
            ]
        )
        report(begin, f"squared loss, n = {n}")
    return format_table(
        [
            "n", "Theorem 3: T / error", "corollaries", "without constants", "best",
            "(3.16) / error", "conditions that do not hold there",
        ],
        rows,
    )  # fmt: skip


def report_labels(sizes, n_draws, begin):
    rows = []
    for n in sizes:
        x, f = design(n)
        found = []
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            y = rng.random(n) < expit(f)
            options = {"kernel": "sobolev", "fit_intercept": False, "random_state": 0}
            told = EarlyStoppedKernelBoostClassifier(
                **options, stopping="theory", norm=NORM
            ).fit(x, y)
            default = EarlyStoppedKernelBoostClassifier(**options).fit(x, y)
            error = lambda model, x=x, f=f: np.mean(
                (model.decision_function(x) - f) ** 2
            )
            found.append([told.n_iter_, error(told), default.n_iter_, error(default)])
        mean = np.mean(found, axis=0)
        constants = boosting_constants("log_loss", NORM)
        delta = told.critical_radius_
        literal = literal_stopping_time(
            delta, strong_convexity=constants.strong_convexity,
            smoothness=constants.smoothness,
        )  # fmt: skip
        rows.append(
            [
                n, f"{mean[0]:.0f} / {mean[1]:.4f}", f"{mean[2]:.0f} / {mean[3]:.4f}",
                f"{literal.value:.0f}", f"{constants.strong_convexity:.1e}",
                f"{constants.radius:.2f}",
            ]
        )  # fmt: skip
        report(begin, f"labels, n = {n}")
    return format_table(
        [
            "n", "theory, norm known: T / error", "\"cv\": T / error",
            "Theorem 3 with Lemma 17: T", "m", "C_H",
        ],
        rows,
    )  # fmt: skip


def main():
    options = parse_options(__doc__.splitlines()[0])
    warnings.simplefilter("ignore", ConvergenceWarning)
    begin = time.perf_counter()
    sizes, draws = ([50, 100], 3) if options.quick else ([50, 100, 200, 400, 800], 40)
    text = "\n\n".join(
        [
            "### The theory of early stopping beside a run",
            "Squared critical radii of the kernel 1 + min(x, x'):",
            report_radii(sizes),
            "Squared loss, unit norm: stopping times, and the error of the averaged "
            "iterate.",
            report_squared(sizes, draws, begin),
            "Labels, error of the function. With the constants of Lemma 17 Theorem 3 "
            "does not allow a single step.",
            report_labels(sizes, max(draws // 2, 2), begin),
        ]
    )
    publish("kernel-boost-theory", text, quick=options.quick)


if __name__ == "__main__":
    main()
