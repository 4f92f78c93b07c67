"""
Predictive bands that widen with leverage
=========================================

The standard deviation of :class:`~skbounds.smp.RidgeSMP` grows like one plus the
leverage of a row, and :class:`~skbounds.smp.KernelRidgeSMP` does the same in a kernel's
feature space: the band says where the training rows are.
"""

# %%
# A gap in the middle of the data, and noise that is not Gaussian.

import matplotlib.pyplot as plt
import numpy as np

from skbounds import KernelRidgeSMP, RidgeSMP

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-3, -1, 20), rng.uniform(1.5, 3, 15)])
y = np.sin(2 * x) + 0.3 * x + 0.15 * rng.standard_t(3, size=len(x))
grid = np.linspace(-5, 5, 400)
models = RidgeSMP(alpha="loo"), KernelRidgeSMP(alpha="loo", kernel="rbf", gamma=0.5)

figure, axes = plt.subplots(2, 1, figsize=(6.4, 6.4), layout="constrained", sharex=True)
for ax, model in zip(axes, models, strict=True):
    model.fit(x[:, None], y)
    lower, median, upper = model.predict_quantiles(grid[:, None], [0.05, 0.5, 0.95]).T
    ax.fill_between(grid, lower, upper, alpha=0.3, label="5 % to 95 %")
    ax.plot(grid, median, label="median")
    ax.plot(x, y, ".", color="black", label="training rows")
    name, loss = type(model).__name__, model.loo_log_loss_
    ax.set(title=f"{name}, leave-one-out log loss {loss:.2f}", ylim=(-4, 4), ylabel="y")
axes[0].legend(ncols=3, loc="lower center")
axes[1].set_xlabel("x")
plt.show()

# %%
# The linear model is wrong, and its noise scale says so: the band is wide everywhere,
# and hardly wider outside, since 35 rows determine two coefficients well. The kernel
# model follows the data, is uncertain in the gap and returns to the prior outside.
