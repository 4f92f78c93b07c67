"""
Diabetes: one path instead of a grid search
===========================================

:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoost` on a data set of scikit-learn,
with :class:`~skbounds.kernel_boost.StoppingPathDisplay`, beside a grid search over the
penalty and the kernel's width of ``KernelRidge``.
"""

# %%
# 442 patients, ten features, and how far the disease has got a year later. The path
# starts at the mean; every further step makes the fit less smooth. The display shows
# what the stopping rule minimises, the loss on the training rows, and, as these are
# given here, the loss on 142 others, which the rule has not seen. Losses are half of
# the mean squared error, and so is what is shown of the criterion. The kernel on the
# left is Gaussian; on the right it is 1 + min(x, x'), the product over features scaled
# to [0, 1], which is rougher.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skbounds import EarlyStoppedKernelBoost, StoppingPathDisplay

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=142, random_state=0)
kernels = {"rbf": StandardScaler(), "sobolev": MinMaxScaler(clip=True)}
figure, axes = plt.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
for ax, (kernel, scaler) in zip(axes, kernels.items(), strict=True):
    model = EarlyStoppedKernelBoost(kernel, random_state=0)
    model.fit(scaler.fit_transform(X_train), y_train)
    Z_test = scaler.transform(X_test)
    StoppingPathDisplay.from_estimator(model, Z_test, y_test, ax=ax)
    ax.set_title(f'kernel="{kernel}": test $R^2$ = {model.score(Z_test, y_test):.2f}')
plt.show()

# %%
# With both kernels the path is stopped not far from the lowest point of the loss on
# other rows. The degrees of freedom there are few: most of the path, up to
# interpolation, is useless on data with so much noise.
#
# ``KernelRidge`` has a penalty instead of a time. A grid of five penalties and seven
# widths takes 175 fits with five folds; the path has all times at once, and its width,
# or one for each feature where folds of rows show that this pays, is chosen by the
# evidence. Both see the same twelve splits into 300 training and 142 test rows.

n_splits = 12
scores, seconds = np.empty((2, n_splits)), np.empty((2, n_splits))
for split in range(n_splits):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=142, random_state=split
    )
    scaler = StandardScaler().fit(X_train)
    boost = EarlyStoppedKernelBoost(random_state=0)
    search = GridSearchCV(
        KernelRidge(kernel="rbf"),
        {"alpha": np.logspace(-2, 2, 5), "gamma": 4.0 ** np.arange(-6, 1)},
    )
    mean = y_train.mean()  # KernelRidge has no intercept
    for k, model in enumerate([boost, search]):
        start = time.process_time()
        model.fit(scaler.transform(X_train), y_train - mean)
        seconds[k, split] = time.process_time() - start
        scores[k, split] = model.score(scaler.transform(X_test), y_test - mean)

names = ["EarlyStoppedKernelBoost", "GridSearchCV(KernelRidge)"]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].plot(*scores, "o")
ends = [scores.min() - 0.01, scores.max() + 0.01]
axes[0].plot(ends, ends, color="0.6", zorder=0)
axes[0].set(xlabel=f"$R^2$ of {names[0]}", ylabel=f"$R^2$ of {names[1]}")
axes[0].set_title(f"means {scores[0].mean():.3f} and {scores[1].mean():.3f}")
axes[0].set_aspect("equal")
time_spent = np.median(seconds, axis=1)
bars = axes[1].barh([0, 1], time_spent, color=["tab:blue", "tab:orange"])
axes[1].bar_label(bars, [f" {value:.2g} s" for value in time_spent])
axes[1].set_yticks([0, 1], names)
axes[1].invert_yaxis()
axes[1].set_xlim(right=1.2 * time_spent.max())
axes[1].set_xlabel("CPU time of a fit (s), median")
plt.show()

# %%
# On these data the two are equally good, split by split; the difference is the cost. A
# linear model is about as good here as well: the example is about how to stop, not
# about what kernels can do.
