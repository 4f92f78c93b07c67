"""
AdaBoost against LogitBoost
===========================

The exponential loss (AdaBoost) and the logistic loss (LogitBoost) of
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoostClassifier` on the same rows, with
and without mislabelled ones among them.
"""

# %%
# Two half moons of 200 rows, and the same with a fifth of the labels turned round. What
# a row pulls at the next step is the slope of its loss, at most 1 for the logistic loss
# and without limit for the exponential one. The size of a dot is this pull where the
# path is stopped. Rings mark the labels that were turned round.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from skbounds import EarlyStoppedKernelBoostClassifier

X_test, y_test = make_moons(4000, noise=0.2, random_state=1234)
losses = {"log_loss": "LogitBoost", "exponential": "AdaBoost"}


def draw(share, seed):
    """Return moons, their observed labels, and which of these are wrong."""
    rng = np.random.default_rng(seed)
    X, y = make_moons(200, noise=0.2, random_state=seed)
    wrong = rng.random(len(y)) < share
    return X, np.where(wrong, 1 - y, y), wrong


def pulls(model, X, y):
    """Return the sizes of the slopes of the rows' losses."""
    margin = (2 * y - 1) * model.decision_function(X)
    if model.loss == "exponential":
        return np.exp(-margin)
    return 1.0 / (1.0 + np.exp(margin))


first, second = np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.4, 1.9, 200))
grid = np.column_stack([first.ravel(), second.ravel()])
figure, axes = plt.subplots(
    2, 2, figsize=(10, 7), sharex=True, sharey=True, layout="constrained"
)
for row, share in zip(axes, [0.0, 0.2], strict=True):
    X, y, wrong = draw(share, seed=0)
    for ax, (loss, name) in zip(row, losses.items(), strict=True):
        model = EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0).fit(X, y)
        p = model.predict_proba(grid)[:, 1].reshape(first.shape)
        shades = ax.contourf(
            first, second, p, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.6
        )
        ax.contour(first, second, p, levels=[0.5], colors="black")
        size = pulls(model, X, y)
        size = 4 + 30 * size / size.mean()
        colours = np.where(y == 1, "tab:blue", "tab:red")
        ax.scatter(*X.T, s=size, c=colours, edgecolors="white", linewidths=0.5)
        ax.scatter(*X[wrong].T, s=110, facecolors="none", edgecolors="black")
        error = 1.0 - model.score(X_test, y_test)
        ax.set_title(
            f"{name}, {share:.0%} mislabelled: T = {model.n_iter_}, "
            f"test error {error:.3f}",
            fontsize="medium",
        )
figure.colorbar(shades, ax=axes, label="probability of the blue class", shrink=0.6)
plt.show()

# %%
# Early stopping keeps both from following the wrong labels. On the left below is the
# error on fresh rows with right labels, for stopped fits and for paths that were
# followed a hundred times as long, over eight draws. On the right is the log loss along
# the paths of one draw with a fifth of the labels turned round, on fresh rows whose
# labels have been turned round at random as well.

shares = np.array([0.0, 0.05, 0.1, 0.2, 0.3])
n_draws = 8
errors = np.empty((len(losses), 2, len(shares), n_draws))
for j, share in enumerate(shares):
    for seed in range(n_draws):
        X, y, _ = draw(share, seed)
        for i, loss in enumerate(losses):
            model = EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0)
            model.fit(X, y)
            errors[i, 0, j, seed] = 1.0 - model.score(X_test, y_test)
            longer = EarlyStoppedKernelBoostClassifier(
                loss=loss, gamma=model.gamma_, stopping=None,
                max_iter=100 * model.n_iter_,
            )  # fmt: skip
            longer.fit(X, y)
            errors[i, 1, j, seed] = 1.0 - longer.score(X_test, y_test)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
colours = {"log_loss": "tab:green", "exponential": "tab:purple"}
for i, (loss, name) in enumerate(losses.items()):
    for k, (style, text) in enumerate([("-", "stopped"), ("--", "100 times longer")]):
        mean = errors[i, k].mean(axis=1)
        bar = errors[i, k].std(axis=1, ddof=1) / np.sqrt(n_draws)
        axes[0].errorbar(
            100 * shares + 0.3 * (i - 0.5), mean, bar, ls=style, marker="o", ms=4,
            color=colours[loss], label=f"{name}, {text}",
        )  # fmt: skip
axes[0].set_xlabel("mislabelled rows (%)")
axes[0].set_ylabel("test error, right labels")
axes[0].set_ylim(bottom=0.0)
axes[0].legend(fontsize="small")

X, y, _ = draw(0.2, seed=0)
turned = np.random.default_rng(0).random(len(y_test)) < 0.2
y_noisy = np.where(turned, 1 - y_test, y_test)
for loss, name in losses.items():
    model = EarlyStoppedKernelBoostClassifier(loss=loss, random_state=0).fit(X, y)
    path = EarlyStoppedKernelBoostClassifier(
        loss=loss, gamma=model.gamma_, stopping=None, max_iter=10_000
    ).fit(X, y)
    times = np.unique(np.round(np.geomspace(1, 10_000, 60)))
    curve = [
        -np.log(p[np.arange(len(p)), y_noisy]).mean()
        for p in path.staged_predict_proba(X_test, times)
    ]
    axes[1].plot(times, curve, color=colours[loss], label=name)
    axes[1].axvline(model.n_iter_, color=colours[loss], linestyle=":")
axes[1].plot([], [], color="black", linestyle=":", label="stopped")
axes[1].axhline(
    -0.8 * np.log(0.8) - 0.2 * np.log(0.2), color="0.6", label="of true probabilities"
)
axes[1].set(xscale="log", xlabel="steps", ylabel="log loss, turned labels")
axes[1].legend(fontsize="small")
plt.show()

# %%
# Where both are stopped they hardly differ: AdaBoost's mean error is higher for every
# share, by .003 at most. Near the start of the path the functions are small, the slopes
# of the two losses are nearly proportional, and the wrong labels pull at both with
# about the same share of the whole. It matters far more that they are stopped. Paths
# that go on fit the wrong labels one by one, for both losses.
#
# The step of LogitBoost is longer, hence the different times. Both rules look for the
# least log loss, and what is left between them and the grey line is the price of
# 200 rows. The logistic loss is the default: its slope is bounded, so that a single
# wrong label deep within the other class cannot take over.
