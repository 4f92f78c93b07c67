"""
Where to stop: the error along the path
=======================================

Boosting first learns and then follows the noise, so that its error falls and rises
again with the number of steps. The stopping rules of
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoost` and
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoostClassifier` look for the lowest
point from the data alone.
"""

# %%
# The setting is that of the experiments of Yang, Wei and Wainwright: the kernel
# 1 + min(x, x'), n = 100 equidistant points, and the function
# :math:`f^*(x) = |x - 1/2| - 1/4`. For the squared loss its values are observed with
# noise of variance 1/2. For LogitBoost and AdaBoost it is the log-odds of 20 trials at
# each point, which enter as numbers of failures and successes through
# ``sample_weight``. All this is done twice, with the function as it is, which is small
# beside the noise, and with eight times the function, on 15 draws each. The error is
# the mean squared difference from the function (for AdaBoost from half of the log-odds,
# which is what it estimates).

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator
from scipy.special import expit, logit

from skbounds import EarlyStoppedKernelBoost, EarlyStoppedKernelBoostClassifier

n, n_trials, n_draws = 100, 20, 15
x = np.arange(1, n + 1) / n
X = x[:, None]
times = np.unique(np.round(np.geomspace(1, 3000, 50)))
options = {"kernel": "sobolev", "fit_intercept": False, "random_state": 0}
losses = {"L2": "squared", "LogitBoost": "log_loss", "AdaBoost": "exponential"}
known = "theory, all known"
rules = {
    "squared": ["gcv", "cp", "loo", "validation", "theory", known],
    "log_loss": ["cv", "auto", "aic", "validation", "theory", known],
    "exponential": ["cv", "auto", "aic", "validation", "theory", known],
}
# Marker, its size and colour: several rules may stop at the same time.
styles = {
    "gcv": ("o", 5, "C0"),
    "cv": ("o", 5, "C0"),
    "auto": ("^", 10, "C2"),
    "cp": ("v", 10, "C1"),
    "aic": ("v", 10, "C1"),
    "loo": ("^", 10, "C2"),
    "validation": ("s", 8, "C4"),
    "theory": ("D", 12, "C3"),
    known: ("*", 12, "C5"),
}


def label(rule):
    """Return the name of a rule, in quotation marks if it is a parameter's value."""
    return rule if rule == known else f'"{rule}"'


def follow(loss, scale, seed):
    """Return the errors along one path, and times and errors of the stopped fits."""
    rng = np.random.default_rng(seed)
    truth = scale * (np.abs(x - 0.5) - 0.25)
    link = 2.0 if loss == "exponential" else 1.0
    # |f|^2 = f(0)^2 + the integral of f'^2
    constants = {"norm": scale * np.sqrt(1 / 16 + 1) / link}
    if loss == "squared":
        constants["noise"] = np.sqrt(0.5)
        data = X, truth + rng.normal(scale=np.sqrt(0.5), size=n)
        make = EarlyStoppedKernelBoost
    else:
        successes = rng.binomial(n_trials, expit(truth))
        counts = np.concatenate([n_trials - successes, successes])
        data = np.vstack([X, X]), np.repeat([0, 1], n), counts

        def make(**params):
            return EarlyStoppedKernelBoostClassifier(loss=loss, **params)

    def error(values):
        return np.mean((values - truth / link) ** 2)

    path = make(stopping=None, max_iter=3000, **options).fit(*data)
    if loss == "squared":
        curve = [error(values) for values in path.staged_predict(X, times)]
    else:
        stages = path.staged_predict_proba(X, times)
        curve = [error(logit(p[:, 1]) / link) for p in stages]
    stopped = []
    for rule in rules[loss]:
        params = {"stopping": "theory", **constants} if rule == known else {}
        model = make(**{"stopping": rule, **options, **params}).fit(*data)
        values = model.predict if loss == "squared" else model.decision_function
        stopped.append((model.n_iter_, error(values(X))))
    return curve, stopped


scales = {"$f^*$": 1.0, "$8 f^*$": 8.0}
found = {
    (setting, name): [follow(loss, scale, seed) for seed in range(n_draws)]
    for setting, scale in scales.items()
    for name, loss in losses.items()
}

# %%
# "theory" stops at :math:`1 / (m \alpha \delta_n^2)`, with the curvature m of the loss
# and the critical radius :math:`\delta_n`; without help it estimates the noise and the
# Hilbert norm of the function that this takes. "theory, all known" is given the norm,
# and for the squared loss the noise (that of the other losses follows from the class
# frequencies).
#
# The black curve is the mean over the draws, the blue one a single draw, with the
# points at which the rules stop it. Stopping times are in units of each loss's own
# default step.

figure, axes = plt.subplots(2, 3, figsize=(11, 7), sharex=True, layout="constrained")
marks = {}
for ax, ((setting, name), draws) in zip(axes.flat, found.items(), strict=True):
    curves = np.array([curve for curve, _ in draws])
    (mean,) = ax.plot(times, curves.mean(axis=0), color="black")
    (single,) = ax.plot(times, curves[0], color="tab:blue", lw=1)
    marks |= {"mean of the draws": mean, "one draw": single}
    for rule, (T, reached) in zip(rules[losses[name]], draws[0][1], strict=True):
        marker, size, colour = styles[rule]
        marks[label(rule)] = ax.plot(
            T, reached, marker, color=colour, ms=size, mfc="none", mew=1.5, zorder=3
        )[0]
    ax.set(xscale="log", yscale="log", title=f"{name}, {setting}")
    ax.set_xlim(0.7, 3e4)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
for ax in axes[1]:
    ax.set_xlabel("steps")
for ax in axes[:, 0]:
    ax.set_ylabel(r"$\|f^t - f^*\|_n^2$")
figure.legend(
    marks.values(), marks.keys(), ncols=5, loc="outside lower center", fontsize="small"
)
plt.show()

# %%
# One draw says little. Below, each dot is one draw's stopping time, the dashed line the
# lowest point of the mean curve, and the number on the right the mean error of the
# stopped fits as a multiple of that lowest point.

figure, axes = plt.subplots(2, 3, figsize=(11, 6.5), sharex=True, layout="constrained")
for ax, ((setting, name), draws) in zip(axes.flat, found.items(), strict=True):
    mean = np.mean([curve for curve, _ in draws], axis=0)
    names = rules[losses[name]]
    for k, rule in enumerate(names):
        T, reached = np.array([stopped[k] for _, stopped in draws]).T
        spread = np.linspace(-0.25, 0.25, n_draws)
        ax.plot(T, k + spread, "o", ms=4, alpha=0.7, color=styles[rule][2])
        ax.text(
            1.02, k, f"{reached.mean() / mean.min():.2f}", va="center",
            transform=ax.get_yaxis_transform(),
        )  # fmt: skip
    ax.axvline(times[mean.argmin()], color="black", linestyle="--")
    ax.set_yticks(range(len(names)), [label(rule) for rule in names], fontsize="small")
    ax.set(xscale="log", title=f"{name}, {setting}")
    ax.set_xlim(0.7, 6e4)
    ax.set_ylim(len(names) - 0.5, -0.5)
for ax in axes[1]:
    ax.set_xlabel("stopping time")
plt.show()

# %%
# With eight times the function the defaults, generalised cross-validation ("gcv") and
# for classes five folds ("cv"), stop near the lowest point and lose little. Trials at a
# point are other observations and left out one by one. The theory stops later: its time
# is right up to a constant factor, that is a statement on rates. Holding out a tenth of
# the rows is by far the worst of these rules.
#
# With the function as it is, the noise variance is 24 times the mean square of the
# function (for the squared loss), and the picture is another one. In many draws the
# data do not show that there is any function at all, and most rules that estimate
# everything from them stop after one step. In the draw that is shown, the error of
# LogitBoost and AdaBoost does not even have the shape of a U. Only the theory does well
# here, if it is told the constants, which is more than anyone knows about real data.
