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
# Gravel, sand and ash, which do nothing, have hardly any relevance. With one width for
# all features (``relevance=None``) the error is larger, and so are the intervals.

one_width = EarlyStoppedKernelBoost(relevance=None, intervals=True, random_state=0)
one_width.fit((X - X.mean()) / X.std(), y)
scaled_test = (X_test - X.mean()) / X.std()
figure, axes = plt.subplots(
    1, 2, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained"
)
for ax, (title, fitted, rows) in zip(
    axes,
    [("one width", one_width, scaled_test), ("scales", model, X_test)],
    strict=True,
):
    few = slice(0, 80)
    prediction = fitted.predict(rows)
    bounds = fitted.predict_interval(rows, level=0.9)
    inside = (bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1])
    error = np.sqrt(np.mean((prediction - truth) ** 2))
    ax.errorbar(
        y_test[few], prediction[few], np.abs(bounds[few].T - prediction[few]),
        fmt="o", ms=3, lw=0.8, color="tab:blue", ecolor="0.7",
    )  # fmt: skip
    ends = [y_test[few].min(), y_test[few].max()]
    ax.plot(ends, ends, color="black", lw=0.8)
    ax.set_xlabel("measured strength of new mixes (MPa)")
    covered = f"intervals of level .9 cover {inside.mean():.2f}"
    ax.set_title(f"{title}: error {error:.2f} MPa\n{covered}")
axes[0].set_ylabel("prediction, with its interval")
plt.show()

# %%
# The intervals come from what the functions without each of ten folds missed of the
# rows left out. The functions without folds are known from the same factor of the
# kernel matrix: ten fits more would say the same, and take ten times as long.
#
# Last, somebody types 41000 in place of 41.0, once or many times. The squared loss
# follows; Huber's does not. (Distances between spoilt rows and others tell the squared
# loss nothing, and it says that it sees the rows as unrelated.)

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
wrong_counts = [0, 1, 3, 10, 30]
for loss, colour in [("squared", "tab:red"), ("huber", "tab:green")]:
    errors = []
    for count in wrong_counts:
        spoilt = y.copy()
        spoilt[:count] *= 1000.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            robust = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(X, spoilt)
        errors.append(np.sqrt(np.mean((robust.predict(X_test) - truth) ** 2)))
    ax.plot(wrong_counts, errors, "o-", color=colour, label=f'loss="{loss}"')
ax.axhline(truth.std(), color="0.6", ls="--", label="error of the best constant")
ax.set(yscale="log", xlabel="wrong targets among 300", ylabel="error (MPa)")
ax.set_xscale("symlog", linthresh=1)
ax.set_xticks(wrong_counts, wrong_counts)
ax.legend()
plt.show()
