"""
How good is my classifier really?
=================================

80 patients with their diagnoses, a classifier fitted to all of them, and no others to
try it on. How often will it be wrong, how sure is that, and is the other classifier
better?
"""

# %%
# The breast cancer table has 569 rows, so that the truth can be looked up: 80 are drawn
# to train, the others tell the error. Six fits on parts of the rows beside ten folds,
# forty draws.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skbounds import BolsteredScorer, compare_bolstered

X, y = load_breast_cancer(return_X_y=True)
tree = DecisionTreeClassifier(random_state=0)


def draw(seed):
    """Return 80 rows to train, and the others."""
    return train_test_split(X, y, train_size=80, stratify=y, random_state=seed)


n_draws = 40
truth, limits = np.zeros(n_draws), np.zeros((2, n_draws, 2))
errors, seconds = np.zeros((2, n_draws)), np.zeros(2)
for k in range(n_draws):
    X_80, X_rest, y_80, y_rest = draw(k)
    model = clone(tree).fit(X_80, y_80)
    truth[k] = 1.0 - model.score(X_rest, y_rest)
    start = time.perf_counter()
    found = BolsteredScorer().estimate(model, X_80, y_80)
    middle = time.perf_counter()
    folds = 1.0 - cross_val_score(model, X_80, y_80, cv=10)
    seconds += [middle - start, time.perf_counter() - middle]
    errors[:, k] = found.error, folds.mean()
    half = 1.83 * folds.std(ddof=1) / np.sqrt(10)  # Student's t of ten folds
    limits[:, k] = found.interval(0.9), (folds.mean() - half, folds.mean() + half)

order = np.argsort(truth)
figure, axes = plt.subplots(
    2, 1, figsize=(6, 7), sharex=True, sharey=True, layout="constrained"
)
names = ["six part fits, BolsteredScorer", "ten folds, Student's t"]
for ax, name, estimate, interval in zip(axes, names, errors, limits, strict=True):
    missed = (truth < interval[:, 0]) | (interval[:, 1] < truth)
    for rows, color in [(~missed[order], "C0"), (missed[order], "C1")]:
        where = np.flatnonzero(rows)
        ax.vlines(where, *interval[order][rows].T, color=color, lw=2)
        ax.plot(where, estimate[order][rows], "o", color=color, ms=4)
    ax.plot(np.arange(n_draws), truth[order], "k", drawstyle="steps-mid")
    ax.set_title(f"{name}: {missed.sum()} of {n_draws} miss the truth (black)")
    ax.set(ylabel="error", ylim=(-0.03, 0.33))
axes[1].set_xlabel("draw of 80 patients, in the order of the truth")
plt.show()

# %%
# The intervals are nominally of 90 %. Those that miss are orange. On its own 80 rows
# the tree makes no mistake at all.

for name, estimate, interval, spent, fits in zip(
    names, errors, limits, seconds, [found.n_fits, 10], strict=True
):
    off = np.sqrt(np.mean((estimate - truth) ** 2))
    print(
        f"{name}: {fits} fits, {1000 * spent / n_draws:.0f} ms, "
        f"mean {estimate.mean():.3f} (truth {truth.mean():.3f}), off by {off:.3f}, "
        f"width {np.diff(interval).mean():.2f}"
    )

# %%
# Either says what the tree's error is to within .04, which is almost half of it: 80
# patients are few, and no method changes that. Ten folds are right on average, and the
# part fits a little too high; yet these scatter less and come closer, at half of the
# time. Their interval keeps its 90 %. The usual one of ten folds is too narrow, as the
# folds are not independent.
#
# **Is a support vector machine better?** On the first five draws, from the differences
# row by row:

svm = make_pipeline(StandardScaler(), SVC())
for k in range(5):
    X_80, X_rest, y_80, y_rest = draw(k)
    found = compare_bolstered(svm, tree, X_80, y_80)
    low, high = found.interval(0.9)
    scores = [model.fit(X_80, y_80).score(X_rest, y_rest) for model in (tree, svm)]
    print(
        f"difference of errors {found.difference:.3f}, 90 % from {low:.3f} to "
        f"{high:.3f}; truth {scores[0] - scores[1]:.3f}"
    )

# %%
# In truth it is better each time, by .04 to .06. The estimates have the right sign, but
# 0 is in every interval: with 80 rows a difference of this size cannot be shown.
#
# **If there is nothing to learn**, as the labels are shuffled, the tree errs on nearly
# half of the rows, whatever it does. Forty times:

rng = np.random.default_rng(0)
noise = []
for _ in range(40):
    rows = rng.choice(len(y), 80, replace=False)
    X_80, y_80 = X[rows], rng.permutation(y)[:80]
    found = BolsteredScorer().estimate(tree.fit(X_80, y_80), X_80, y_80)
    noise.append([found.error, 1.0 - cross_val_score(tree, X_80, y_80, cv=10).mean()])
for name, mean, spread in zip(
    names, np.mean(noise, axis=0), np.std(noise, axis=0), strict=True
):
    print(f"{name}: {mean:.2f} on average, standard deviation {spread:.3f}")

# %%
# Neither sees anything where nothing is, and the part fits scatter less.
#
# **What to take away.** For a number and an interval from some tens of rows take
# :class:`~skbounds.bolstering.BolsteredScorer`, or ``bolstered_val_score`` for the
# number alone: about as accurate as ten folds, with fewer fits, and a 90 % interval
# that holds in .86 to .97 of the samples on the panels of the benchmarks. It is not so
# everywhere: with 80 rows of the Pima table these three kinds of models had estimates
# that were 12 to 14 % farther off than those of ten folds. For the mean of many
# studies, many rows, or targets that follow a rule, ten folds are as good or better
# (:ref:`bolstering`).
