"""
The digits as a stream: regret, certificate and progressive error
=================================================================

Each row is predicted first and learnt afterwards.
:class:`~skbounds.fenchel_young.FenchelYoungOnlineClassifier` has no learning rate to
set, and says at any time by how much its plays can exceed the loss of a linear
predictor.
"""

# %%
# Left: expected mistakes of the plays less the log loss of the linear predictor that is
# best in hindsight under a ridge penalty. Right: the share of wrong answers so far,
# beside ``SGDClassifier`` on features standardised by running means and variances, with
# its default learning rate and with the best of five constant ones in hindsight (0.001,
# 0.003, 0.01, 0.03, 0.1). It learns ten rows per call, to save time; one by one its
# error with default settings is not lower.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from skbounds import FenchelYoungOnlineClassifier, SurrogateRegretDisplay

X, y = load_digits(return_X_y=True)
classes = np.arange(10)


def play_sgd(sgd):
    """Return progressive predictions: each block is predicted, then learnt."""
    scaler = StandardScaler()
    predictions = np.zeros(len(y), dtype=int)
    for start in range(0, len(y), 10):
        rows = slice(start, start + 10)
        if start > 0:
            predictions[rows] = sgd.predict(scaler.transform(X[rows]))
        scaler.partial_fit(X[rows])
        sgd.partial_fit(scaler.transform(X[rows]), y[rows], classes=classes)
    return predictions


answers = {}
for name, decoding in [("predictions", "argmax"), ("plays", "randomized")]:
    clf = FenchelYoungOnlineClassifier(decoding=decoding, random_state=0)
    answers[f"online classifier, {name}"] = clf.play(X, y, classes=classes)
sgd = SGDClassifier(loss="log_loss", random_state=0)
answers["SGDClassifier, default rate"] = play_sgd(sgd)
sgd = SGDClassifier(
    loss="log_loss", learning_rate="constant", eta0=0.03, random_state=0
)
answers["SGDClassifier, best rate"] = play_sgd(sgd)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
SurrogateRegretDisplay.from_estimator(
    FenchelYoungOnlineClassifier(random_state=0),
    X,
    y,
    alpha=100.0,
    ax=axes[0],
    name="regret",
)
seen = np.arange(1, len(y) + 1)
for (name, answer), style in zip(answers.items(), ["-", "--", "-.", ":"], strict=True):
    share = np.cumsum(answer != y) / seen
    axes[1].plot(seen[29:], share[29:], style, label=f"{name}: {share[-1]:.3f}")
axes[1].set_xlabel("rows")
axes[1].set_ylabel("share of wrong answers so far")
axes[1].set_ylim(0.0, 0.6)
axes[1].legend()
plt.show()

# %%
# The regret is negative: the plays make far fewer mistakes than the comparator has
# loss. The certificate knows only the comparator's norm, but ends below zero too. The
# bound holds for any stream of any length with rows no longer than these, and is far
# above both. Plays are random where the classifier is unsure, and so make more mistakes
# than predictions; the bound is about plays only.
