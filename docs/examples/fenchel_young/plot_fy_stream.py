"""
The digits as a stream: regret, certificate and progressive error
=================================================================

Each row is predicted first and learnt afterwards.
:class:`~skbounds.fenchel_young.FenchelYoungOnlineClassifier` has no learning rate to
set, and says at any time by how much its plays can exceed the loss of a linear
predictor.
"""

# %%
# The regret is the expected number of mistakes of the plays less the log loss of the
# linear predictor that is best in hindsight under a ridge penalty.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skbounds import FenchelYoungOnlineClassifier, SurrogateRegretDisplay

X, y = load_digits(return_X_y=True)
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
SurrogateRegretDisplay.from_estimator(
    FenchelYoungOnlineClassifier(random_state=0),
    X,
    y,
    alpha=100.0,
    ax=ax,
    name="regret",
)
ax.legend(loc="center right")
plt.show()

# %%
# The regret is negative: the plays make far fewer mistakes than the comparator has
# loss. The certificate knows only the comparator's norm, but ends below zero too. The
# bound holds for any stream of any length with rows no longer than these, and is far
# above both.
#
# **The share of wrong answers** so far, beside ``SGDClassifier`` on features
# standardised by running means and variances, with its default learning rate and with
# the best of five constant ones in hindsight (0.001, 0.003, 0.01, 0.03, 0.1). It learns
# ten rows per call, to save time; one by one its error with default settings is not
# lower.

from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

classes = np.arange(10)


def play_sgd(**options):
    """Return progressive predictions: each block is predicted, then learnt."""
    sgd, scaler = SGDClassifier("log_loss", random_state=0, **options), StandardScaler()
    predictions = np.zeros(len(y), dtype=int)
    for start in range(0, len(y), 10):
        rows = slice(start, start + 10)
        if start > 0:
            predictions[rows] = sgd.predict(scaler.transform(X[rows]))
        scaler.partial_fit(X[rows])
        sgd.partial_fit(scaler.transform(X[rows]), y[rows], classes=classes)
    return predictions


best = {"learning_rate": "constant", "eta0": 0.03}
answers = {
    "SGDClassifier, default rate": play_sgd(),
    "online classifier, plays": FenchelYoungOnlineClassifier(random_state=0),
    "SGDClassifier, best rate": play_sgd(**best),
    "online classifier, predictions": FenchelYoungOnlineClassifier(decoding="argmax"),
}
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
seen = np.arange(1, len(y) + 1)
for (name, answer), style in zip(answers.items(), ["-.", "--", ":", "-"], strict=True):
    if name.startswith("online"):
        answer = answer.play(X, y, classes=classes)
    share = np.cumsum(answer != y) / seen
    ax.plot(seen[29:], share[29:], style, label=f"{name}: {share[-1]:.3f}")
ax.set(xlabel="rows", ylabel="share of wrong answers so far", ylim=(0, 0.6))
ax.legend()
plt.show()

# %%
# Plays are random where the classifier is unsure, and so make more mistakes than
# predictions; the bound is about plays only.
