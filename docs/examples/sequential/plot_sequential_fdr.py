"""
Many tests with few false discoveries
=====================================

One hypothesis after the other is tested, and each has to be decided before the next
comes. Rejecting wherever p <= alpha leaves the share of false discoveries to chance;
:class:`~skbounds.sequential.ADDIS`, :class:`~skbounds.sequential.LORD` and their
relatives choose the levels so that it stays below alpha on average.
"""

# %%
# 300 hypotheses, of which 30 % are alternatives: normal statistics with mean 3 instead
# of 0, tested from one side. What LORD makes of them:

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from skbounds.sequential import (
    ADDIS,
    LORD,
    SAFFRON,
    AlphaSpending,
    LORDPlusPlus,
    OnlineFDRDisplay,
)

n_tests, n_runs, alpha = 300, 25, 0.1


def stream(share, rng, null_mean=0.0):
    """Return p-values, and which hypotheses are alternatives."""
    alternative = rng.random(n_tests) < share
    return ndtr(-rng.normal(np.where(alternative, 3.0, null_mean))), alternative


p_values, alternative = stream(0.3, np.random.default_rng(0))
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
display = OnlineFDRDisplay.from_procedure(LORD(alpha, horizon=n_tests), p_values, ax=ax)
false = np.sum(display.rejected & ~alternative)
ax.set_title(
    f"LORD: {display.rejected.sum()} discoveries, {false} of them false; "
    f"{alternative.sum()} alternatives"
)
ax.set_ylim(1e-6, 1.5)
plt.show()

# %%
# Each rejection earns wealth and lifts the level; without any it sinks. Levels are
# known before the p-values, so that an experiment can be run until it has what its
# level asks for (:class:`~skbounds.sequential.MABFDR`). P-values below the picture are
# not shown.
#
# **False discoveries and power**, means over 25 streams; above where p-values of true
# hypotheses are uniform, below where true hypotheses are far from the border, with mean
# -1 instead of 0, as in experiments most are. LORD and LORDPlusPlus know the number of
# tests; AlphaSpending controls the probability of any false discovery.

methods = {
    "LORD": LORD(alpha, horizon=n_tests),
    "LORDPlusPlus": LORDPlusPlus(alpha, horizon=n_tests),
    "SAFFRON": SAFFRON(alpha),
    "ADDIS": ADDIS(alpha),
    "AlphaSpending": AlphaSpending(alpha),
    "p <= alpha": None,
}
shares = [0.02, 0.1, 0.3, 0.5, 0.7, 0.9]
figure, axes = plt.subplots(2, 2, figsize=(10, 8), sharex=True, layout="constrained")
for row, null_mean in zip(axes, (0.0, -1.0), strict=True):
    fdp = {name: np.zeros((len(shares), n_runs)) for name in methods}
    power = {name: np.full((len(shares), n_runs), np.nan) for name in methods}
    for i, share in enumerate(shares):
        rng = np.random.default_rng(i)
        for run in range(n_runs):
            p_values, alternative = stream(share, rng, null_mean)
            for name, method in methods.items():
                if method is None:
                    rejected = p_values <= alpha
                else:
                    rejected = method.fit(p_values).rejected_
                false = np.sum(rejected & ~alternative)
                fdp[name][i, run] = false / max(rejected.sum(), 1)
                if alternative.any():
                    power[name][i, run] = np.mean(rejected[alternative])
    for k, name in enumerate(methods):
        style = "k--" if name == "p <= alpha" else f"C{k}o-"
        row[0].errorbar(
            shares,
            fdp[name].mean(axis=1),
            yerr=fdp[name].std(axis=1) / np.sqrt(n_runs),
            fmt=style,
            ms=4,
            label=name,
        )
        row[1].plot(shares, np.nanmean(power[name], axis=1), style, ms=4, label=name)
    row[0].axhline(alpha, color="0.5", linewidth=0.8)
    row[0].set(ylabel="share of false discoveries", ylim=(0, None))
    row[1].set(ylabel="share of alternatives that are found", ylim=(0, 1))
    row[0].set_title(f"mean of true hypotheses {null_mean:g}", fontsize="medium")
for ax in axes[1]:
    ax.set_xlabel("share of alternatives")
figure.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6,
    fontsize="small",
)  # fmt: skip
plt.show()

# %%
# Bars are standard errors, the line is alpha. Without correction most discoveries are
# false where alternatives are rare; where they are common it does no harm, and finds
# more. Rewards for discoveries give power the more alternatives there are; SAFFRON does
# not pay for p-values that are small, and comes near alpha where others stay far below.
# Where true hypotheses are far from the border, ADDIS alone finds more than before: it
# discards the p-values near 1 that the others pay for.
