r"""
Where to stop: the error along the path
=======================================

Boosting first learns and then follows the noise, so that its error falls and rises
again with the number of steps. The stopping rules of
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoost` and
:class:`~skbounds.kernel_boost.EarlyStoppedKernelBoostClassifier` look for the lowest
point from the data alone.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from skbounds import EarlyStoppedKernelBoost, EarlyStoppedKernelBoostClassifier

x = np.arange(1, 101) / 100
X, times = x[:, None], np.unique(np.round(np.geomspace(1, 3000, 30)))
losses = {"squared": "L2", "log_loss": "LogitBoost", "exponential": "AdaBoost"}
options = {"kernel": "sobolev", "fit_intercept": False, "random_state": 0}


def fit(loss, scale, seed, t=None, **params):
    """Return when a fit to a draw is stopped, and its error there or at times t."""
    rng, truth = np.random.default_rng(seed), scale * (np.abs(x - 0.5) - 0.25)
    if loss == "squared":
        model = EarlyStoppedKernelBoost(**options, **params)
        model.fit(X, truth + rng.normal(scale=np.sqrt(0.5), size=100))
        stages = model.staged_predict(X, [model.n_iter_] if t is None else t)
    else:
        won = rng.binomial(20, expit(truth))  # of 20 trials at each point
        weight = np.concatenate([20 - won, won])
        model = EarlyStoppedKernelBoostClassifier(loss=loss, **options, **params)
        model.fit(np.vstack([X, X]), np.repeat([0, 1], 100), sample_weight=weight)
        stages = model.staged_predict_proba(X, [model.n_iter_] if t is None else t)
        stages = (logit(p[:, 1]) for p in stages)
    return model.n_iter_, *(np.mean((values - truth) ** 2) for values in stages)


figure, axes = plt.subplots(2, 3, figsize=(7.5, 5.5), sharex=True, sharey=True)
lowest = {}
for ax, (scale, loss) in zip(axes.flat, product((1, 8), losses), strict=True):
    path = {"t": times, "stopping": None, "max_iter": 3000}
    mean = np.mean([fit(loss, scale, seed, **path)[1:] for seed in range(15)], axis=0)
    lowest[scale, loss] = mean.min()
    ax.plot(times, mean / mean.min(), color="black")
    T, error = np.transpose([fit(loss, scale, seed) for seed in range(15)])
    ax.plot(T, error / mean.min(), "o", color="tab:orange", mec="black", mew=0.5)
    ax.set(xscale="log", yscale="log", title=f"{losses[loss]}, {scale} $f^*$")
figure.supxlabel("steps")
figure.supylabel("error / lowest mean error")
figure.set_layout_engine("constrained")
plt.show()

# %%
# The setting is that of the experiments of Yang, Wei and Wainwright: the kernel
# 1 + min(x, x'), n = 100 equidistant points, and the function
# :math:`f^*(x) = |x - 1/2| - 1/4`. For the squared loss its values are observed with
# noise of variance 1/2. For LogitBoost and AdaBoost it is the log-odds of 20 trials at
# each point, which enter as numbers of failures and successes through
# ``sample_weight``. All this is done twice, with the function as it is, which is small
# beside the noise, and with eight times the function. The curve is the mean squared
# difference from the function over 15 draws; each dot is a draw, stopped by the
# default: generalised cross-validation ("gcv"), and for classes five folds ("cv").
# Stopping times are in units of each loss's own default step.
#
# **All rules**: median times, and mean errors as multiples of the lowest point.

rules = {loss: ["cv", "auto", "aic", "validation", "theory"] for loss in losses}
rules["squared"] = ["gcv", "cp", "loo", "validation", "theory"]
for (scale, loss), least in lowest.items():
    # |f|^2 = f(0)^2 + the integral of f'^2; AdaBoost estimates half of the log-odds.
    norm = scale * np.sqrt(1 / 16 + 1) / (2 if loss == "exponential" else 1)
    known = {"stopping": "theory", "norm": norm}
    if loss == "squared":
        known["noise"] = np.sqrt(0.5)
    print(f"{losses[loss]}, {scale} f*")
    for rule in [*rules[loss], "theory, all known"]:
        params = {"stopping": rule} if rule in rules[loss] else known
        draws = np.array([fit(loss, scale, seed, **params) for seed in range(15)])
        T, error = np.median(draws[:, 0]), draws[:, 1].mean() / least
        print(f"  {rule:18s} {T:5.0f} {error:5.2f}")

# %%
# "theory" stops at :math:`1 / (m \alpha \delta_n^2)`, with the curvature m of the loss
# and the critical radius :math:`\delta_n`; without help it estimates the noise and the
# Hilbert norm of the function that this takes. "theory, all known" is given the norm,
# and for the squared loss the noise (that of the other losses follows from the class
# frequencies).
#
# With eight times the function the defaults stop near the lowest point and lose little.
# Trials at a point are other observations and left out one by one. The theory stops
# later: its time is right up to a constant factor, that is a statement on rates.
# Holding out a tenth of the rows is by far the worst of these rules.
#
# With the function as it is, the noise variance is 24 times the mean square of the
# function (for the squared loss), and the picture is another one. In many draws the
# data do not show that there is any function at all: "theory" stops after one step in
# at least half of them for every loss, and so does "gcv". Only the theory does well
# here, if it is told the constants, which is more than anyone knows about real data.
