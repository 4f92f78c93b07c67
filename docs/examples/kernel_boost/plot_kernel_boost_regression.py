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
# the mean squared error, and so is what is shown of the criterion.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from skbounds import EarlyStoppedKernelBoost, StoppingPathDisplay

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=142, random_state=0)
scaler = StandardScaler().fit(X_train)
model = EarlyStoppedKernelBoost(random_state=0)
model.fit(scaler.transform(X_train), y_train)

figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
StoppingPathDisplay.from_estimator(model, scaler.transform(X_test), y_test, ax=ax)
plt.show()

# %%
# The path is stopped not far from the lowest point of the loss on other rows. The
# degrees of freedom there are few: most of the path, up to interpolation, is useless on
# data with so much noise.
#
# **KernelRidge** has a penalty instead of a time. A grid of five penalties and seven
# widths takes 175 fits with five folds; the path has all times at once, and its width,
# or one for each feature where folds of rows show that this pays, is chosen by the
# evidence. Both see the same twelve splits into 300 training and 142 test rows.

grid = {"alpha": np.logspace(-2, 2, 5), "gamma": 4.0 ** np.arange(-6, 1)}
models = {
    "EarlyStoppedKernelBoost": EarlyStoppedKernelBoost(random_state=0),
    "GridSearchCV(KernelRidge)": GridSearchCV(KernelRidge(kernel="rbf"), grid),
}
scores, seconds = np.empty((2, 2, 12))
for split in range(12):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=142, random_state=split
    )
    scaler = StandardScaler().fit(X_train)
    mean = y_train.mean()  # KernelRidge has no intercept
    for k, model in enumerate(models.values()):
        start = time.process_time()
        model.fit(scaler.transform(X_train), y_train - mean)
        seconds[k, split] = time.process_time() - start
        scores[k, split] = model.score(scaler.transform(X_test), y_test - mean)
for name, score, second in zip(models, scores, seconds, strict=True):
    print(
        f"{name:25} mean R2 {score.mean():.3f}, {np.median(second):.2f} s of CPU time"
    )

figure, ax = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
ax.plot(*scores, "o")
ax.locator_params(nbins=5)
ax.axline((0.5, 0.5), slope=1, color="0.6", zorder=0)
first, second = models
ax.set(xlabel=f"$R^2$ of {first}", ylabel=f"$R^2$ of {second}", aspect="equal")
plt.show()

# %%
# On these data the two are equally good, split by split; the difference is the cost. A
# linear model is about as good here as well: the example is about how to stop, not
# about what kernels can do.
