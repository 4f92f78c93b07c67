"""
Many tests with few false discoveries
=====================================

One hypothesis after the other is tested, and each has to be decided before the next
comes. Rejecting wherever p <= alpha leaves the share of false discoveries to chance;
:class:`~skbounds.sequential.LORD` and its relatives choose the levels so that it
stays below alpha on average.
"""

# %%
# 300 hypotheses, of which 30 % are alternatives: normal statistics with mean 3 instead
# of 0, tested from one side. What LORD makes of them:

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from skbounds.sequential import (
    LORD,
    AlphaSpending,
    LORDPlusPlus,
    LORDPrime,
    OnlineFDRDisplay,
)

n_tests, n_runs, alpha = 300, 25, 0.1


def stream(share, rng):
    """Return p-values, and which hypotheses are alternatives."""
    alternative = rng.random(n_tests) < share
    return ndtr(-rng.normal(3.0 * alternative)), alternative


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
# **False discoveries and power**, means over 25 streams. All know the horizon but
# for AlphaSpending, which controls the probability of any false discovery.

methods = {
    "LORD": LORD(alpha, horizon=n_tests),
    "LORDPlusPlus": LORDPlusPlus(alpha, horizon=n_tests),
    "LORDPrime": LORDPrime(alpha, horizon=n_tests),
    "AlphaSpending": AlphaSpending(alpha),
    "p <= alpha": None,
}
shares = [0.02, 0.1, 0.3, 0.5, 0.7, 0.9]
fdp = {name: np.zeros((len(shares), n_runs)) for name in methods}
power = {name: np.full((len(shares), n_runs), np.nan) for name in methods}
for i, share in enumerate(shares):
    rng = np.random.default_rng(i)
    for run in range(n_runs):
        p_values, alternative = stream(share, rng)
        for name, method in methods.items():
            if method is None:
                rejected = p_values <= alpha
            else:
                rejected = method.fit(p_values).rejected_
            false = np.sum(rejected & ~alternative)
            fdp[name][i, run] = false / max(rejected.sum(), 1)
            if alternative.any():
                power[name][i, run] = np.mean(rejected[alternative])

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for name in methods:
    style = "k--" if name == "p <= alpha" else "o-"
    axes[0].errorbar(
        shares,
        fdp[name].mean(axis=1),
        yerr=fdp[name].std(axis=1) / np.sqrt(n_runs),
        fmt=style,
        ms=4,
        label=name,
    )
    axes[1].plot(shares, np.nanmean(power[name], axis=1), style, ms=4, label=name)
axes[0].axhline(alpha, color="0.5", linewidth=0.8)
axes[0].set(ylabel="share of false discoveries", ylim=(0, None))
axes[1].set(ylabel="share of alternatives that are found", ylim=(0, 1))
for ax in axes:
    ax.set_xlabel("share of alternatives")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
    fontsize="small",
)  # fmt: skip
plt.show()

# %%
# Bars are standard errors, the line is alpha. Without correction most discoveries are
# false where alternatives are rare; where they are common it does no harm, and finds
# more. Rewards for discoveries give LORD and LORDPlusPlus more power the more
# alternatives there are; LORDPrime starts again at each discovery, and AlphaSpending
# only ever spends.
