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
n_rows, n_features, n_items = 5000, 8, 6
X = rng.normal(size=(n_rows, n_features))
utility = X @ rng.normal(size=(n_features, n_items))
utility += rng.normal(size=utility.shape)
Y = utility.argsort(axis=1).argsort(axis=1) + 1


def rank_distance(plays):
    """Return Spearman's squared rank distance, scaled to [0, 1]."""
    return 3.0 * ((plays - Y) ** 2).sum(axis=1) / (n_items * (n_items**2 - 1))


def misplaced(plays):
    """Return the share of items in a wrong position."""
    return (plays != Y).mean(axis=1)


panels = [
    ("squared rank distance: the permutahedron's loss", rank_distance),
    ("share of misplaced items: the matching's loss", misplaced),
]
seen = np.arange(1, n_rows + 1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for structure, color in [("permutahedron", "tab:blue"), ("birkhoff", "tab:orange")]:
    for name, decoding, style in [
        ("Algorithm 1", "randomized", "-"),
        ("nearest ranking", "argmax", "--"),
    ]:
        ranker = FenchelYoungOnlineRanker(structure, decoding=decoding, random_state=0)
        plays = ranker.play(X, Y)
        for ax, (_, loss) in zip(axes, panels, strict=True):
            mean = np.cumsum(loss(plays)) / seen
            label = f"{structure}, {name}: {mean[-1]:.2f}"
            ax.plot(seen[9:], mean[9:], style, color=color, label=label)
for ax, (title, _) in zip(axes, panels, strict=True):
    ax.set_title(title)
    ax.set_xscale("log")
    ax.set_xlabel("rows")
axes[0].set_ylim(0.0, 0.6)
axes[0].legend(fontsize=8, loc="upper right")
axes[1].set_ylim(0.0, 1.0)
axes[1].legend(fontsize=8, loc="lower left")
axes[0].set_ylabel("mean loss so far")
plt.show()

# %%
# Where one utility per item decides, the permutahedron learns faster in both losses: it
# has 6 scores to learn and not 36. The matching is meant for positions that are not
# degrees of one quantity, such as people for jobs; there the order of these curves is
# the other way round. In both, the nearest ranking loses less than the random play,
# which alone carries the regret bound.
