"""
AdaBoost against LogitBoost
===========================

The exponential and the logistic loss of
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoostClassifier` on rows of which some
are mislabelled.
"""

# %%
# Two half moons of 200 rows, some labels turned round, in eight draws; errors on fresh
# rows with right labels, of fits that are stopped or go on a hundred times as long.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from skbounds import EarlyStoppedKernelBoostClassifier

X_test, y_test = make_moons(4000, noise=0.2, random_state=1234)
shares = np.array([0.0, 0.05, 0.1, 0.2, 0.3])


def draw(share, seed):
    X, y = make_moons(200, noise=0.2, random_state=seed)
    wrong = np.random.default_rng(seed).random(200) < share
    return X, np.where(wrong, 1 - y, y), wrong


figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
losses = {"LogitBoost": ("log_loss", "C0o"), "AdaBoost": ("exponential", "C1s")}
for name, (loss, style) in losses.items():
    errors = np.empty((2, len(shares), 8))
    for j, seed in np.ndindex(len(shares), 8):
        X, y, _ = draw(shares[j], seed)
        model = EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0)
        errors[0, j, seed] = 1 - model.fit(X, y).score(X_test, y_test)
        longer = {"stopping": None, "max_iter": 100 * model.n_iter_}
        model.set_params(gamma=model.gamma_, **longer)
        errors[1, j, seed] = 1 - model.fit(X, y).score(X_test, y_test)
    for part, line in zip(errors, ("-", "--"), strict=True):
        bar = part.std(axis=1, ddof=1) / np.sqrt(8)
        at = 100 * shares + (0.3 if style == "C1s" else 0)
        ax.errorbar(at, part.mean(axis=1), bar, fmt=style + line, label=name)
ax.text(15, 0.028, "stopped")
ax.text(19, 0.105, "100 times longer", ha="right")
ax.set(xlabel="mislabelled rows (%)", ylabel="test error, right labels", ylim=(0, None))
ax.legend(*(part[::2] for part in ax.get_legend_handles_labels()), loc="upper left")
plt.show()

# %%
# Early stopping keeps both from following the wrong labels; stopped, they hardly
# differ. Near the start of the path the functions are small, the slopes of the two
# losses are nearly proportional, and the wrong labels pull at both with about the same
# share of the whole. It matters far more that they are stopped. Paths that go on fit
# the wrong labels one by one, for both losses.
#
# **What a row pulls** at the next step is the slope of its loss, at most 1 for the
# logistic loss and without limit for the exponential one. The size of a mark is this
# pull where the path is stopped, in one draw with a fifth of the labels turned round.
# These are the black crosses; the line is the border between the classes.

grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.4, 1.9, 200)))
figure, axes = plt.subplots(2, 1, figsize=(6.4, 8), sharex=True, layout="constrained")
X, y, wrong = draw(0.2, seed=0)
for ax, (name, (loss, _)) in zip(axes, losses.items(), strict=True):
    model = EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0).fit(X, y)
    p = model.predict_proba(grid.reshape(2, -1).T)[:, 1].reshape(200, 200)
    ax.contour(*grid, p, levels=[0.5], colors="black")
    margin = (2 * y - 1) * model.decision_function(X)
    pull = np.exp(-margin) if loss == "exponential" else 1 / (1 + np.exp(margin))
    size = 4 + 30 * pull / pull.mean()
    for label, mark, colour in [(0, "o", "tab:blue"), (1, "s", "tab:orange")]:
        own = y == label
        ax.scatter(
            *X[own].T, s=size[own], c=colour, marker=mark, label=f"class {label}"
        )
    ax.scatter(*X[wrong].T, s=20, c="black", marker="x", label="turned round")
    error = 1 - model.score(X_test, y_test)
    ax.set_title(f"{name}: {model.n_iter_} steps, test error {error:.3f}")
axes[0].legend(loc="lower left")
plt.show()

# %%
# The step of LogitBoost is longer, hence the different times. The logistic loss is the
# default: its slope is bounded, so that a single wrong label deep within the other
# class cannot take over.
