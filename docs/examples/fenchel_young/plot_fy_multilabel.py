"""
Several labels per row: two surrogate losses
============================================

:class:`~skbounds.fenchel_young.FenchelYoungOnlineMultilabelClassifier` learns ten
labels from one stream: with the sparsemap loss, a projection on the cube, and with the
sigmoid loss, one logistic loss per label, whose experts are mixed. The target loss is
the share of wrong labels.
"""

# %%
# Plays are drawn label by label; predictions are the more probable answers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification

from skbounds import FenchelYoungOnlineMultilabelClassifier

X, Y = make_multilabel_classification(
    n_samples=10_000, n_features=30, n_classes=10, n_labels=3, random_state=0
)
seen = np.arange(1, len(Y) + 1)
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for loss, color in [("sparsemap", "tab:blue"), ("sigmoid", "tab:orange")]:
    for name, decoding, style in [
        ("plays", "coordinatewise", "-"),
        ("predictions", "argmax", "--"),
    ]:
        clf = FenchelYoungOnlineMultilabelClassifier(
            loss, decoding=decoding, random_state=0
        )
        wrong = (clf.play(X, Y) != Y).mean(axis=1)
        mean = np.cumsum(wrong) / seen
        label = f"{loss}, {name}: {mean[-1]:.3f}"
        ax.plot(seen[19:], mean[19:], style, color=color, label=label)
prior = np.minimum(Y.mean(axis=0), 1.0 - Y.mean(axis=0)).mean()
ax.axhline(prior, ls=":", color="gray", label=f"best constant answers: {prior:.3f}")
ax.set_xscale("log")
ax.set_xlabel("rows")
ax.set_ylabel("Hamming loss so far")
ax.legend()
plt.show()

# %%
# Most labels are absent. Sparsemap begins with that answer, as its threshold of 1/2
# lies above scores of 0; the sigmoid loss begins undecided. After some thousand rows
# the mixture is ahead, in plays and in predictions. The labels are noisy, so plays
# remain random and lose more than predictions: the price of a guarantee that holds
# whatever the labels do.
