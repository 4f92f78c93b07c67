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
# of 0, tested from one side.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from skbounds.sequential import LORD, OnlineFDRDisplay


def stream(share, rng, null_mean=0.0):
    """Return p-values, and which hypotheses are alternatives."""
    alternative = rng.random(300) < share
    return ndtr(-rng.normal(np.where(alternative, 3.0, null_mean))), alternative


p_values, alternative = stream(0.3, np.random.default_rng(0))
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
display = OnlineFDRDisplay.from_procedure(LORD(0.1, horizon=300), p_values, ax=ax)
false = np.sum(display.rejected & ~alternative)
ax.set_title(f"LORD: {display.rejected.sum()} discoveries, {false} of them false")
ax.set_ylim(1e-6, 1.5)
plt.show()

# %%
# Each rejection earns wealth and lifts the level; without any it sinks. Levels are
# known before the p-values, so that an experiment can be run until it has what its
# level asks for (:class:`~skbounds.sequential.MABFDR`). P-values below the picture are
# not shown.
#
# **False discoveries and power**, means over 25 streams; on the left p-values of true
# hypotheses are uniform, on the right true hypotheses are far from the border, with
# mean -1 instead of 0, as in experiments most are. LORD and LORDPlusPlus know the
# number of tests; AlphaSpending controls the probability of any false discovery.

from skbounds.sequential import ADDIS, SAFFRON, AlphaSpending, LORDPlusPlus

methods = {
    "LORD": LORD(0.1, horizon=300),
    "LORDPlusPlus": LORDPlusPlus(0.1, horizon=300),
    "SAFFRON": SAFFRON(0.1),
    "ADDIS": ADDIS(0.1),
    "AlphaSpending": AlphaSpending(0.1),
    "p <= alpha": None,
}
shares = [0.02, 0.1, 0.3, 0.5, 0.7, 0.9]
figure, axes = plt.subplots(
    2, 2, figsize=(7.5, 7), sharex=True, sharey="row", layout="constrained"
)
styles = ["o-", "s-", "^-", "D-", "v-", "k--"]
for (top, low), null_mean in zip(axes.T, (0.0, -1.0), strict=True):
    false, power = np.empty((2, len(methods), len(shares), 25))
    for i, share in enumerate(shares):
        rng = np.random.default_rng(i)
        for run in range(25):
            p, alternative = stream(share, rng, null_mean)
            for k, method in enumerate(methods.values()):
                rejected = method.fit(p).rejected_ if method else p <= 0.1
                true = np.sum(rejected & alternative)
                false[k, i, run] = 1 - true / rejected.sum() if rejected.any() else 0
                power[k, i, run] = true / max(alternative.sum(), 1)
    for k, name in enumerate(methods):
        top.plot(shares, false[k].mean(axis=1), styles[k], ms=5, label=name)
        low.plot(shares, power[k].mean(axis=1), styles[k], ms=5)
    print(
        "at most",
        false[:-1].mean(axis=2).max(axis=1).round(3),
        (false.std(axis=2) / 5).max().round(3),
    )
    print(power.mean(axis=2).round(2))
    print(false.mean(axis=2).round(2))
    top.axhline(0.1, color="0.5", lw=0.8)
    top.set_title(f"mean of true hypotheses {null_mean:g}", fontsize="medium")
    low.set_xlabel("share of alternatives")
axes[0, 0].set_ylabel("share of false discoveries")
axes[1, 0].set_ylabel("share of alternatives that are found")
figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# The thin line is alpha. Without correction most discoveries are false where
# alternatives are rare; where they are common it does no harm. Rewards for discoveries
# give power the more alternatives there are. SAFFRON and ADDIS do not pay for p-values
# that are small, and come near alpha where LORD stays below. Where true hypotheses are
# far from the border, ADDIS alone finds more than before: it discards the p-values near
# 1 that the others pay for.
