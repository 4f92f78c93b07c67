"""EM iterations per second of BaumWelchHMM beside hmmlearn's GaussianHMM.

Asks whether, with 4 states and diagonal covariances, EM iterates

- at least 4 times as fast as hmmlearn's default (``implementation="log"``) and 1.8
  times as fast as its fastest implementation on one long sequence: 20000 rows of 4
  features, and 100000 of 10;
- at least 10 and 4 times as fast on many short ones: 200 x 100 and 2000 x 10 rows of 4
  features;
- at least as fast as its fastest on 200 rows, also with Poisson and categorical
  outputs;
- at least 1.6 times as fast with ``n_jobs=2`` on 2000 x 1000 rows, to the same bits;

whether the log-likelihoods are the same, and whether the memory of an E-step grows at
most in proportion to the number of states. Other cases, without a target: few rows,
many states, full covariances. The text lists all that are lost.

All start from the same parameters, hmmlearn's priors are 0, ``reg_covar`` is 0, and
tolerances are such that exactly 20 M-steps run. Times are those of the whole fit,
validation included; iterations per second are 20 / time. Ours has a 21st E-step, which
says what the likelihood of the result is, and hmmlearn has not. Log-likelihoods are
compared at the result: hmmlearn's ``score``, our ``history_[-1]``.

Data: a chain that stays with probability .9 and otherwise moves to any other state,
unit normal outputs, means normal of standard deviation 1.5. Start: true means plus unit
normal noise, variances 4, all transitions alike.

The symmetric structure is compared with the general one with two states, outputs
N(-mu, I) and N(mu, I), |mu| = 1.5, zeta = .8; the general one estimates covariances,
of type "diag".

Times are medians of alternating runs after one untimed run each, in one thread; in
brackets the spread from fastest to slowest, as a share of the median. Memory is the
growth of a process's peak over X, warmed up with few rows (Linux only). Without
hmmlearn, which is no dependency of this package, only our columns are shown, and
README.md is left alone: python -m pip install hmmlearn
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, replace

from _report import (
    alternate_times,
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

from skbounds.hmm import BaumWelchHMM

try:
    from hmmlearn.hmm import CategoricalHMM, GaussianHMM, PoissonHMM
except ImportError:
    CategoricalHMM = GaussianHMM = PoissonHMM = None

N_ITER = 20
OURS, LOG, SCALING, SYMMETRIC = "ours", "hmmlearn log", "hmmlearn scaling", "symmetric"

# What is asked: times as fast as hmmlearn's default, and as its fastest.
TARGETS = {"long": (4.0, 1.8), "short": (10.0, 4.0), "tiny": (1.0, 1.0), None: None}
TWO_JOBS = 1.6
SAME, MEMORY_GROWTH = 1e-9, 2.1


@dataclass(frozen=True)
class Case:
    """Sequences of the same length, and the model that is fitted."""

    n_sequences: int
    length: int
    d: int = 4
    s: int = 4
    covariance_type: str = "diag"
    kind: str | None = None

    @property
    def name(self):
        """What tables call it."""
        return f"{self.n_sequences} x {self.length}, d={self.d}, K={self.s}" + (
            "" if self.covariance_type == "diag" else f", {self.covariance_type}"
        )

    @property
    def lengths(self):
        """Numbers of rows of the sequences."""
        return np.full(self.n_sequences, self.length)

    def draw(self, seed=0):
        """Return rows, and means at the start."""
        rng = np.random.default_rng(seed)
        states = draw_states(self.n_sequences, self.length, self.s, 0.9, rng)
        means = 1.5 * rng.normal(size=(self.s, self.d))
        X = rng.normal(size=(len(states), self.d))
        X += means[states]
        return X, means + rng.normal(size=means.shape)

    def reduced(self, factor):
        """Return a smaller case, for --quick."""
        if self.n_sequences >= factor:
            return replace(self, n_sequences=self.n_sequences // factor)
        return replace(self, length=max(self.length // factor, 100))


ASKED = [
    Case(1, 20_000, kind="long"),
    Case(1, 100_000, d=10, kind="long"),
    Case(200, 100, kind="short"),
    Case(2000, 10, kind="short"),
    Case(1, 200, kind="tiny"),
]
OTHERS = [
    Case(1, 200, covariance_type="full"),
    Case(20, 10),
    Case(1, 20_000, s=16),
    Case(200, 100, s=16),
    Case(1, 20_000, d=10, covariance_type="full"),
    Case(200, 100, d=10, covariance_type="full"),
]
# Of two states.
PAIRS = [
    Case(1, 10_000, d=1, s=2),
    Case(1, 100_000, d=10, s=2),
    Case(200, 100, s=2),
    Case(2000, 10, s=2),
]


def draw_states(n_sequences, length, s, stay, rng):
    """Return the states of all sequences, one after the other."""
    n = n_sequences * length
    steps = np.where(rng.uniform(size=n) < stay, 0, rng.integers(1, s, size=n))
    steps = steps.reshape(n_sequences, length)
    steps[:, 0] = rng.integers(s, size=n_sequences)
    return np.cumsum(steps, axis=1).ravel() % s


def draw_pair(case, seed=0):
    """Return rows of the symmetric model, and mu at the start."""
    rng = np.random.default_rng(seed)
    signs = 2 * draw_states(case.n_sequences, case.length, 2, 0.8, rng) - 1
    mean = np.full(case.d, 1.5 / np.sqrt(case.d))
    X = signs[:, None] * mean + rng.normal(size=(len(signs), case.d))
    return X, 0.75 * mean


# ---------------------------------------------------------------- models


def matrices(case, variance=4.0):
    """Return covariance matrices at the start."""
    return np.repeat(variance * np.eye(case.d)[None], case.s, axis=0)


def fit_ours(X, case, means):
    return BaumWelchHMM(
        case.s,
        covariance_type=case.covariance_type,
        means_init=means,
        covariances_init=matrices(case),
        max_iter=N_ITER,
        tol=0.0,
        reg_covar=0.0,
    ).fit(X, lengths=case.lengths)


def fit_symmetric(X, case, mean):
    return BaumWelchHMM(
        structure="symmetric", sigma=1.0, means_init=mean, max_iter=N_ITER, tol=0.0
    ).fit(X, lengths=case.lengths)


def fit_peer(X, case, means, implementation):
    model = GaussianHMM(
        case.s,
        covariance_type=case.covariance_type,
        min_covar=0.0,
        covars_prior=0.0,
        covars_weight=0.0,
        n_iter=N_ITER,
        tol=-np.inf,
        init_params="",
        implementation=implementation,
    )
    model.startprob_ = np.full(case.s, 1.0 / case.s)
    model.transmat_ = np.full((case.s, case.s), 1.0 / case.s)
    model.means_ = means.copy()
    covariances = matrices(case)
    if case.covariance_type == "diag":
        covariances = np.diagonal(covariances, axis1=1, axis2=2).copy()
    model.covars_ = covariances
    return model.fit(X, case.lengths)


def fitters(case, X, means):
    """Return {method: function that fits and returns the model}."""
    found = {OURS: lambda: fit_ours(X, case, means)}
    if GaussianHMM is not None:
        found[LOG] = lambda: fit_peer(X, case, means, "log")
        found[SCALING] = lambda: fit_peer(X, case, means, "scaling")
    return found


# ---------------------------------------------------------------- runs


def run_fits(case, repeats):
    """Return {method: (seconds, spread)}, the models, rows, and the largest gap.

    The gap is that of log-likelihoods from ours, as a share.
    """
    X, means = case.draw()
    models = {}

    def keep(name, fit):
        def run():
            models[name] = fit()

        return run

    runs = {name: keep(name, fit) for name, fit in fitters(case, X, means).items()}
    seconds = alternate_times(runs, repeats=repeats)
    value, gap = models[OURS].history_[-1], 0.0
    if len(models[OURS].history_) != N_ITER + 1:
        raise RuntimeError("EM stopped early.")
    for name, model in models.items():
        if name != OURS:
            if model.monitor_.iter != N_ITER:
                raise RuntimeError(f"{name} stopped early.")
            other = model.score(X, case.lengths)
            gap = max(gap, abs(other - value) / abs(value))
    return seconds, models, X, gap


def run_predictions(case, models, X, repeats):
    """Return {"predict_proba": {method: (seconds, spread)}, "Viterbi": ...}."""
    lengths = case.lengths
    smooth = {OURS: lambda: models[OURS].predict_proba(X, lengths=lengths)}
    decode = {OURS: lambda: models[OURS].decode(X, lengths=lengths)}
    for name in (LOG, SCALING):
        if name in models:
            smooth[name] = lambda m=models[name]: m.predict_proba(X, lengths)
    if LOG in models:
        # The same for both implementations.
        decode[LOG] = lambda: models[LOG].decode(X, lengths, algorithm="viterbi")
    return {
        "predict_proba": alternate_times(smooth, repeats=repeats),
        "Viterbi": alternate_times(decode, repeats=repeats),
    }


DISCRETE = [Case(1, 200), Case(1, 20_000), Case(200, 100), Case(2000, 10)]


def draw_discrete(case, emission, seed=0):
    """Return rows of counts or categories, and the outputs' law at the start."""
    rng = np.random.default_rng(seed)
    states = draw_states(case.n_sequences, case.length, case.s, 0.9, rng)
    if emission == "poisson":
        rates = rng.gamma(2.0, 3.0, size=(case.s, case.d))
        return rng.poisson(rates[states]), rates * rng.uniform(0.5, 2.0, rates.shape)
    table = rng.dirichlet(np.ones(8), size=case.s)
    edges = np.cumsum(table, axis=1)[states]
    X = (rng.uniform(size=(len(states), 1)) >= edges[:, :-1]).sum(axis=1)
    start = 0.5 * table + 0.5 * rng.dirichlet(np.ones(8), size=case.s)
    return X[:, None], start


def run_discrete(case, emission, repeats):
    """Return {method: (seconds, spread)} and the gap of log-likelihoods."""
    X, law = draw_discrete(case, emission)
    models = {}
    uniform = np.full((case.s, case.s), 1.0 / case.s)

    def ours():
        name = "means_init" if emission == "poisson" else "emission_proba_init"
        more = {} if emission == "poisson" else {"categories": [np.arange(8)]}
        models[OURS] = BaumWelchHMM(
            case.s, emission=emission, max_iter=N_ITER, tol=0.0, **{name: law}, **more
        ).fit(X, lengths=case.lengths)

    def peer(implementation):
        options = {
            "n_iter": N_ITER, "tol": -np.inf, "init_params": "",
            "implementation": implementation,
        }  # fmt: skip
        if emission == "poisson":
            # A prior of no weight.
            model = PoissonHMM(case.s, lambdas_prior=0.0, lambdas_weight=0.0, **options)
            model.lambdas_ = law.copy()
        else:
            model = CategoricalHMM(case.s, **options)
            model.emissionprob_, model.n_features = law.copy(), 8
        model.startprob_, model.transmat_ = uniform[0].copy(), uniform.copy()
        models[implementation] = model.fit(X, case.lengths)

    runs = {OURS: ours}
    if GaussianHMM is not None:
        runs[LOG] = lambda: peer("log")
        runs[SCALING] = lambda: peer("scaling")
    seconds = alternate_times(runs, repeats=repeats)
    value, gap = models[OURS].history_[-1], 0.0
    for name, model in models.items():
        if name != OURS:
            gap = max(gap, abs(model.score(X, case.lengths) - value) / abs(value))
    return seconds, gap


def run_jobs(case, repeats):
    """Return {n_jobs: (seconds, spread)}."""
    X, means = case.draw()
    models = {}

    def fit(n_jobs):
        models[n_jobs] = BaumWelchHMM(
            case.s, means_init=means, covariances_init=matrices(case),
            max_iter=N_ITER, tol=0.0, n_jobs=n_jobs,
        ).fit(X, lengths=case.lengths)  # fmt: skip

    seconds = alternate_times(
        {1: lambda: fit(1), 2: lambda: fit(2)}, repeats=min(repeats, 5)
    )
    same = np.array_equal(models[1].history_, models[2].history_)
    return seconds, same and np.array_equal(models[1].means_, models[2].means_)


def run_windows(n, repeats):
    """Return {reach: (seconds, spread)} of predict_proba; None is all rows."""
    case = Case(1, n)
    X, means = case.draw()
    found = {}
    for reach in (None, 5, 20, 200, 2000):
        model = BaumWelchHMM(case.s, means_init=means, max_iter=3, window=reach).fit(X)
        run = {reach: lambda model=model: model.predict_proba(X)}
        found |= alternate_times(run, repeats=repeats)
    return found


def run_pair(case, repeats):
    """Return {method: (seconds, spread)} of fits and of predict_proba."""
    X, mean = draw_pair(case)
    means, lengths = np.array([-mean, mean]), case.lengths
    fits = {SYMMETRIC: lambda: fit_symmetric(X, case, mean)}
    fits |= fitters(case, X, means)
    models = {name: fits[name]() for name in (SYMMETRIC, OURS)}
    smooth = {
        name: lambda m=model: m.predict_proba(X, lengths=lengths)
        for name, model in models.items()
    }
    return alternate_times(fits, repeats=repeats), alternate_times(
        smooth, repeats=repeats
    )


GROWTH = """
import warnings
import numpy as np
warnings.simplefilter("ignore")
n, s, d = {n}, {s}, 4
rng = np.random.default_rng(0)
X = rng.standard_normal((n, d))
means = rng.standard_normal((s, d))
{setup}
fit(X[:1000]).predict_proba(X[:1000])
model = fit(X[:1000])
def status(key):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return 1024 * int(line.split()[1])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # Forget the peak.
before = status("VmRSS")
{call}
print(status("VmHWM") - before)
"""
SETUP_OURS = """
from skbounds.hmm import BaumWelchHMM
fit = lambda X: BaumWelchHMM(s, means_init=means, max_iter=1).fit(X)
"""
SETUP_PEER = """
from hmmlearn.hmm import GaussianHMM
def fit(X):
    model = GaussianHMM(s, n_iter=1, init_params="", implementation="{0}")
    model.startprob_, model.transmat_ = np.full(s, 1 / s), np.full((s, s), 1 / s)
    model.means_, model.covars_ = means.copy(), np.ones((s, d))
    return model.fit(X)
"""


def growth(setup, call, n, s):
    """Return by how many bytes a process grows, None where that is not known."""
    code = GROWTH.format(n=n, s=s, setup=setup, call=call)
    try:
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        # No /proc, or too little memory.
        return None
    return int(result.stdout)


def run_memory(n, states, *, only_ours=False):
    """Return {what: {s: bytes or None}}; only of the E-step of ours if asked."""
    smooth, fit = "model.predict_proba(X)", "fit(X)"
    cases = {"**ours, an E-step (predict_proba)**": (SETUP_OURS, smooth)}
    if not only_ours:
        cases["ours, a fit of one iteration"] = SETUP_OURS, fit
    if GaussianHMM is not None and not only_ours:
        for name in ("log", "scaling"):
            setup = SETUP_PEER.format(name)
            cases[f"hmmlearn {name}, a fit of one iteration"] = setup, fit
    return {
        name: {s: growth(*case, n, s) for s in states} for name, case in cases.items()
    }


# ---------------------------------------------------------------- tables


def three_digits(value):
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def rate(timed):
    """Return iterations per second and the spread."""
    seconds, spread = timed
    return f"{three_digits(N_ITER / seconds)} ({100.0 * spread / seconds:.0f} %)"


def milliseconds(timed):
    seconds, spread = timed
    return f"{three_digits(1e3 * seconds)} ({100.0 * spread / seconds:.0f} %)"


def faster(timed, ours=OURS):
    """Return how many times faster ours is than hmmlearn's default and fastest."""
    peers = [timed[name][0] for name in (LOG, SCALING) if name in timed]
    return peers[0] / timed[ours][0], min(peers) / timed[ours][0]


def describe_fits(results):
    """Return a table of iterations per second."""
    some = next(iter(results.values()))[0]
    rows = []
    for case, (timed, gap) in results.items():
        row = [case.name, *(rate(timed[name]) for name in some)]
        if LOG in timed:
            default, fastest = faster(timed)
            row += [f"**{default:.1f}x**", f"**{fastest:.1f}x**", f"{gap:.0e}"]
        rows.append(row)
    header = ["iterations per second", *some]
    if LOG in some:
        header += ["ours / default", "ours / fastest", "gap of log-likelihoods"]
    return format_table(header, rows)


def describe_predictions(results):
    """Return a table of times of one call."""
    rows = []
    for case, tasks in results.items():
        for task, timed in tasks.items():
            row = [f"{task}, {case.name}", milliseconds(timed[OURS])]
            if LOG in timed:
                row += [
                    milliseconds(timed[name]) if name in timed else "same"
                    for name in (LOG, SCALING)
                ]
                default, fastest = faster(timed)
                row += [f"**{default:.1f}x**", f"**{fastest:.1f}x**"]
            rows.append(row)
    header = ["ms", OURS]
    if len(rows[0]) > 2:
        header += [LOG, SCALING, "default / ours", "fastest / ours"]
    return format_table(header, rows)


def describe_pairs(results):
    """Return a table of the symmetric structure and the general one."""
    rows = []
    for case, (fits, smooth) in results.items():
        row = [case.name, *(rate(timed) for timed in fits.values())]
        row += [f"**{fits[OURS][0] / fits[SYMMETRIC][0]:.1f}x**"]
        if LOG in fits:
            default, fastest = faster(fits, SYMMETRIC)
            row += [f"{default:.1f}x, {fastest:.1f}x"]
        row += [" / ".join(milliseconds(smooth[name]) for name in (SYMMETRIC, OURS))]
        rows.append(row)
    header = ["iterations per second", *fits, "symmetric / ours"]
    if LOG in fits:
        header += ["symmetric / hmmlearn default, fastest"]
    header += ["predict_proba, ms, symmetric / ours"]
    return format_table([h.replace(OURS, "general") for h in header], rows)


def describe_memory(results, n):
    """Return a table of the growth of peaks."""
    rows = []
    for name, sizes in results.items():
        row = [name]
        for s, size in sizes.items():
            if size is None:
                row.append("not measured")
            else:
                row.append(f"{size / 1e6:.0f} ({size / (n * s):.0f})")
        rows.append(row)
    states = list(next(iter(results.values())))
    header = [f"MB, n = {n}, d = 4 (bytes per row and state)"]
    return format_table(header + [f"K = {s}" for s in states], rows)


def describe_discrete(results):
    """Return a table of iterations per second."""
    rows = []
    for (emission, case), (timed, gap) in results.items():
        name = f"{emission}, {case.n_sequences} x {case.length}"
        row = [name, *(rate(t) for t in timed.values())]
        if LOG in timed:
            default, fastest = faster(timed)
            row += [f"**{default:.1f}x**", f"**{fastest:.1f}x**", f"{gap:.0e}"]
        rows.append(row)
    header = ["iterations per second", *next(iter(results.values()))[0]]
    if LOG in header:
        header += ["ours / default", "ours / fastest", "gap of log-likelihoods"]
    return format_table(header, rows)


def describe_windows(timed, n):
    """Return a table of times."""
    names = ["all rows" if reach is None else f"window={reach}" for reach in timed]
    return format_table(
        [f"predict_proba, ms, n = {n}", *names],
        [["K = 4", *(milliseconds(t) for t in timed.values())]],
    )


def summarize(fits, memory, discrete, jobs):
    """Return which targets are met."""
    lines = []
    for (emission, case), (timed, _) in discrete.items():
        if LOG in timed and case.length == 200:
            value = faster(timed)[1]
            lines.append(
                f"- {emission}, 1 x 200: times as fast as hmmlearn's fastest "
                + verdict(f"{value:.1f}x", value >= 1.0, "at least 1x")
            )
    (timed, same) = jobs
    value = timed[1][0] / timed[2][0]
    lines.append(
        "- 2000 x 1000, n_jobs=2: times as fast as n_jobs=1 "
        + verdict(f"{value:.2f}x", value >= TWO_JOBS, f"at least {TWO_JOBS:g}x")
        + f"; the same bits: {'yes' if same else '**no**'}"
    )
    for case, (timed, _) in fits.items():
        if case.kind is None or LOG not in timed:
            continue
        for value, target, peer in zip(
            faster(timed), TARGETS[case.kind], ("default", "fastest"), strict=True
        ):
            lines.append(
                f"- {case.name}: times as fast as hmmlearn's {peer} "
                + verdict(f"{value:.1f}x", value >= target, f"at least {target:g}x")
            )
    if lines:
        gap = max(gap for _, gap in fits.values())
        lines.append(
            f"- log-likelihoods after {N_ITER} iterations, largest gap as a share "
            + verdict(f"{gap:.0e}", gap <= SAME, f"at most {SAME:g}")
        )
    sizes = next(iter(memory.values()))
    few, many = list(sizes)[-2:]
    if sizes[few] and sizes[many]:
        value = sizes[many] / sizes[few]
        lines.append(
            f"- memory of an E-step, K = {many} / K = {few} "
            + verdict(
                f"{value:.2f}", value <= MEMORY_GROWTH, f"at most {MEMORY_GROWTH:g}"
            )
        )
    return "\n".join(lines)


def describe_losses(fits, predictions, pairs, discrete):
    """Return the comparisons in which something else is faster."""
    timed = {f"fit, {case.name}": times for case, (times, _) in fits.items()}
    for (emission, case), (times, _) in discrete.items():
        timed[f"fit, {emission}, {case.n_sequences} x {case.length}"] = times
    for case, tasks in predictions.items():
        timed |= {f"{task}, {case.name}": times for task, times in tasks.items()}
    lost = []
    for name, times in timed.items():
        for peer in (LOG, SCALING):
            if peer in times and times[peer][0] < times[OURS][0]:
                share = times[OURS][0] / times[peer][0]
                lost.append(f"- {name}: {peer} is {share:.2f} times as fast as ours")
    for case, tasks in pairs.items():
        for task, times in zip(("fit", "predict_proba"), tasks, strict=True):
            for peer in (OURS, LOG, SCALING):
                if peer in times and times[peer][0] < times[SYMMETRIC][0]:
                    share = times[SYMMETRIC][0] / times[peer][0]
                    peer = "general" if peer == OURS else peer
                    lost.append(
                        f"- {task}, {case.name}: {peer} is {share:.2f} times as fast "
                        "as symmetric"
                    )
    return "\n".join(lost) or "None."


def main():
    options = parse_options(__doc__.splitlines()[0])
    # About so few iterations, and about rounding of the likelihood near its maximum.
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    asked, others, pairs = ASKED, OTHERS, PAIRS
    repeats, n_memory, states = 7, 1_000_000, [2, 4, 8, 16]
    if options.quick:
        asked, others, pairs = (
            [case.reduced(10) for case in cases] for cases in (asked, others, pairs)
        )
        repeats, n_memory, states = 1, 100_000, [8, 16]
    begin = time.perf_counter()
    version, note = "", ""
    if options.quick:
        note = "A tenth of the rows (--quick), for which targets are not meant.\n\n"
    if GaussianHMM is None:
        print(
            "hmmlearn is not installed (python -m pip install hmmlearn): only our own "
            "times are shown, and README.md is left alone.",
            file=sys.stderr,
        )
    else:
        import hmmlearn

        version = f" (version {hmmlearn.__version__})"
    fits, predictions = {}, {}
    for case in [*asked, *others]:
        timed, models, X, gap = run_fits(case, repeats)
        fits[case] = timed, gap
        predictions[case] = run_predictions(case, models, X, repeats)
        report(begin, ", ".join([case.name, *map(rate, timed.values())]))
    pairs = {case: run_pair(case, repeats) for case in pairs}
    report(begin, "pairs")
    kinds = DISCRETE if not options.quick else [case.reduced(10) for case in DISCRETE]
    discrete = {
        (emission, case): run_discrete(case, emission, min(repeats, 3))
        for emission in ("poisson", "categorical")
        for case in kinds
    }
    report(begin, "discrete outputs")
    jobs = run_jobs(Case(200 if options.quick else 2000, 1000), repeats)
    n_windows = 2000 if options.quick else 20_000
    windows = run_windows(n_windows, repeats)
    report(begin, "two jobs, windows")
    memory = run_memory(n_memory, states, only_ours=options.quick)
    report(begin, "memory")
    text = (
        "## Hidden Markov models: time and memory\n\n"
        f"`BaumWelchHMM` beside hmmlearn's `GaussianHMM`{version}, {N_ITER} iterations "
        "of EM from the same parameters to the same likelihood, diagonal covariances "
        "unless a row says otherwise. Data and protocol are described in the script; "
        "in brackets the spread of the times.\n\n"
        f"{note}{summarize(fits, memory, discrete, jobs)}\n\n"
        f"### EM\n\n{describe_fits(fits)}\n\n"
        f"### Posteriors and states\n\n{describe_predictions(predictions)}\n\n"
        f"### Counts and categories\n\n`PoissonHMM`, 4 columns; `CategoricalHMM`, one "
        f"column of 8 categories.\n\n{describe_discrete(discrete)}\n\n"
        f"### Windows\n\n{describe_windows(windows, n_windows)}\n\n"
        "### The symmetric structure\n\n"
        f"{describe_pairs(pairs)}\n\n"
        f"### Memory\n\nGrowth of the peak over X.\n\n"
        f"{describe_memory(memory, n_memory)}\n\n"
        f"### Lost\n\n{describe_losses(fits, predictions, pairs, discrete)}"
    )
    publish("hmm-speed", text, quick=options.quick or GaussianHMM is None)


if __name__ == "__main__":
    main()
