"""
Two ways to learn a ranking
===========================

Six items are ranked by noisy utilities that are linear in the features.
:class:`~skbounds.fenchel_young.FenchelYoungOnlineRanker` can treat a ranking as a point
of the permutahedron, with one score per item, or as a matching of items to positions,
with one score for every pair. The same stream, judged by both losses.
"""

# %%
# A row of targets holds the value of each item, 6 for the top. The matching reads it as
# the number of the item's position, so both structures accept the same targets.

import matplotlib.pyplot as plt
import numpy as np

from skbounds import FenchelYoungOnlineRanker

rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 8))
utility = X @ rng.normal(size=(8, 6))
utility += rng.normal(size=utility.shape)
Y = utility.argsort(axis=1).argsort(axis=1) + 1

figure, axes = plt.subplots(2, 1, figsize=(6.4, 7.5), sharex=True, layout="constrained")
seen = np.arange(1, 5001)
for structure, color in [("permutahedron", "tab:blue"), ("birkhoff", "tab:orange")]:
    for name, decoding, style in [
        ("Algorithm 1", "randomized", "-"),
        ("nearest ranking", "argmax", "--"),
    ]:
        ranker = FenchelYoungOnlineRanker(structure, decoding=decoding, random_state=0)
        plays = ranker.play(X, Y)
        # Spearman's squared distance, scaled to [0, 1], and the matching's loss.
        distance = 3 * ((plays - Y) ** 2).sum(axis=1) / (6 * (6**2 - 1))
        for ax, loss in zip(axes, (distance, (plays != Y).mean(axis=1)), strict=True):
            mean = np.cumsum(loss) / seen
            label = f"{structure}, {name}: {mean[-1]:.2f}"
            ax.plot(seen[9:], mean[9:], style, color=color, label=label)
for ax, name in zip(axes, ["squared rank distance", "misplaced items"], strict=True):
    ax.set(xscale="log", ylim=(0, 1), ylabel=f"{name}, mean so far")
    ax.legend(loc="upper right" if ax is axes[0] else "lower left")
axes[1].set_xlabel("rows")
plt.show()

# %%
# Where one utility per item decides, the permutahedron learns faster in both losses: it
# has 6 scores to learn and not 36. The squared rank distance is its own loss, the share
# of misplaced items that of the matching. The latter is meant for positions that are
# not degrees of one quantity, such as people for jobs; there the order of these curves
# is the other way round. In both, the nearest ranking loses less than the random play,
# which alone carries the regret bound.
