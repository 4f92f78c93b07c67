"""
Which features matter, and how sure is the prediction?
======================================================

:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoost` gives each feature a scale of
its own where that helps, keeps its head when a target is wrong by orders of magnitude,
and has intervals for new targets. None of this takes a grid of fits.
"""

# %%
# Strength of concrete from what is in it, simulated such that the truth is known: eight
# quantities, of which five matter, on 300 mixes. The scales are those of greatest
# evidence; they are kept because five folds without their rows say so.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbounds import EarlyStoppedKernelBoost, RelevanceDisplay

names = ["cement", "slag", "ash", "water", "plasticizer", "gravel", "sand", "age"]
units = np.array([280.0, 75.0, 55.0, 180.0, 6.0, 970.0, 770.0, 45.0])


def draw(n, seed):
    """Return mixes, their true strengths and measured ones."""
    rng = np.random.default_rng(seed)
    mixes = pd.DataFrame(units * rng.lognormal(sigma=0.4, size=(n, 8)), columns=names)
    ratio = mixes.water / (mixes.cement + 0.5 * mixes.slag)
    truth = (
        60 * np.exp(-1.2 * ratio) * np.log1p(mixes.age) / 4 + 0.8 * mixes.plasticizer
    )
    return mixes, truth.to_numpy(), (truth + rng.normal(scale=2.0, size=n)).to_numpy()


X, _, y = draw(300, seed=0)
X_test, truth, y_test = draw(2000, seed=1)
model = EarlyStoppedKernelBoost(intervals=True, random_state=0).fit(X, y)
RelevanceDisplay.from_estimator(model)
plt.show()

# %%
# Gravel, sand and ash, which do nothing, have the least relevance. With one width for
# all features (``relevance=None``) the error is larger, and so are the intervals.

one_width = EarlyStoppedKernelBoost(relevance=None, intervals=True, random_state=0)
one_width.fit((X - X.mean()) / X.std(), y)
figure, axes = plt.subplots(
    2, 1, figsize=(6.4, 9), sharex=True, sharey=True, layout="constrained"
)
for ax, title, fitted, rows in (
    (axes[0], "one width", one_width, (X_test - X.mean()) / X.std()),
    (axes[1], "scales", model, X_test),
):
    prediction, bounds = fitted.predict(rows), fitted.predict_interval(rows, level=0.9)
    inside = (bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1])
    error = np.sqrt(np.mean((prediction - truth) ** 2))
    bars = np.abs(bounds.T - prediction)[:, :80]
    ax.errorbar(y_test[:80], prediction[:80], bars, fmt="o", ms=4, lw=1, ecolor="0.6")
    ax.axline((30, 30), slope=1, color="black", lw=0.8)
    ax.set_title(f"{title}: error {error:.2f} MPa, intervals cover {inside.mean():.2f}")
    ax.set_ylabel("prediction, with its interval")
axes[1].set_xlabel("measured strength of new mixes (MPa)")
plt.show()

# %%
# The intervals, of level .9, come from what the functions without each of ten folds
# missed of the rows left out. The functions without folds are known from the same
# factor of the kernel matrix: ten fits more would say the same, and take ten times as
# long.
#
# **Wrong targets.** Somebody types 41000 in place of 41.0, once or many times. The
# squared loss follows; Huber's does not. (Distances between spoilt rows and others tell
# the squared loss nothing, and it says that it sees the rows as unrelated.)

warnings.simplefilter("ignore", UserWarning)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
counts = [0, 1, 3, 10, 30]
for loss, style in [("squared", "s-"), ("huber", "o-")]:
    errors = []
    for count in counts:
        spoilt = y.copy()
        spoilt[:count] *= 1000.0
        robust = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(X, spoilt)
        errors.append(np.sqrt(np.mean((robust.predict(X_test) - truth) ** 2)))
    (line,) = ax.plot(errors, style)
    ax.text(3, 1.5 * errors[3], f'loss="{loss}"', color=line.get_color(), ha="right")
ax.axhline(truth.std(), color="0.4", ls="--")
ax.text(4, 1.2 * truth.std(), "error of the best constant", ha="right")
ax.set(yscale="log", xlabel="wrong targets among 300", ylabel="error (MPa)")
ax.set_xticks(range(5), counts)
plt.show()
