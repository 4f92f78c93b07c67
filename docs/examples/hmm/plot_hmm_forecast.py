"""
Forecasts of a series with gaps and outliers
============================================

A sensor that fails now and then, a machine with three regimes, and noise with heavy
tails: :class:`~skbounds.hmm.BaumWelchHMM` is fitted to what is there, and follows the
series row by row. Its forecast is a mixture of the regimes' laws, whose width says how
unsure the next regime is.
"""

# %%
# Two columns, regimes that last 30 to 60 rows, t noise with 3 degrees of freedom. A
# tenth of all entries is missing, and one column for 60 rows in a row: missing entries
# are nan. The first 1500 rows are for training.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.hmm import BaumWelchHMM

A = np.array([[0.98, 0.02, 0.0], [0.01, 0.97, 0.02], [0.03, 0.0, 0.97]])
means = np.array([[20.0, 1.0], [35.0, 1.5], [50.0, 4.0]])
scales = np.array([[1.0, 0.1], [2.0, 0.2], [4.0, 0.5]])
rng = np.random.default_rng(0)
n, n_train = 1900, 1500
regimes = np.zeros(n, dtype=int)
for i in range(1, n):
    regimes[i] = rng.choice(3, p=A[regimes[i - 1]])
X = means[regimes] + scales[regimes] * rng.standard_t(3, size=(n, 2))
X[rng.random((n, 2)) < 0.1] = np.nan
X[1640:1700, 0] = np.nan

model = BaumWelchHMM(3, emission="student", n_init=5, random_state=0)
model.fit(X[:n_train])
for name in ("means", "transmat"):
    print(name, "and their standard errors")
    print(getattr(model, f"{name}_").round(2))
    print(model.standard_errors_[name].round(2))
print("degrees of freedom", model.df_.round(1))

# %%
# ``forecast`` starts at the end of the training rows, and ``update`` takes in one row
# after the other. The band is that of the next row of the first column given all rows
# before.

ahead, bands, laws = model.forecast(X[:n_train]), [], []
for row in X[n_train:]:
    bands.append(ahead.interval(0.9)[0, 0])
    ahead = ahead.update(row)
    laws.append(ahead.filtered)
bands, laws = np.array(bands), np.array(laws)
shown, values = np.arange(n_train, n), X[n_train:, 0]
there = ~np.isnan(values)
inside = (bands[there, 0] <= values[there]) & (values[there] <= bands[there, 1])

figure, axes = plt.subplots(
    2, 1, figsize=(9, 6), sharex=True, layout="constrained", height_ratios=[2, 1]
)
axes[0].fill_between(shown, *bands.T, alpha=0.3, label="90 % of the next row", lw=0)
axes[0].plot(shown, values, ".", color="black", ms=3, label="first column")
axes[0].set_ylim(5, 75)
axes[0].set(ylabel="temperature", title=f"{np.mean(inside):.0%} of the rows are inside")
axes[0].legend(loc="upper left", fontsize="small", ncols=2)
axes[1].stackplot(shown, laws.T, alpha=0.7, labels=[f"regime {k}" for k in range(3)])
axes[1].set(ylabel="probability", xlabel="row", ylim=(0, 1))
figure.legend(
    *axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3,
    fontsize="small",
)  # fmt: skip
plt.show()

# %%
# Where the first column is missing (rows 1640 to 1700), the second one tells the
# regime.
#
# **Farther ahead** the regime is forgotten, and the forecast becomes that of the series
# as a whole: slowly in the mean, faster in the upper end. Forecasts from a row in each
# regime:

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for k, ax in enumerate(axes):
    last = np.flatnonzero(regimes[:n_train] == k)[-1]
    far = model.forecast(X[: last + 1], steps=60)
    steps = np.arange(1, 61)
    ax.fill_between(steps, *far.interval(0.9)[:, 0].T, alpha=0.3, lw=0, label="90 %")
    ax.plot(steps, far.mean[:, 0], label="mean")
    ax.set(title=f"from regime {k}", xlabel="rows ahead")
axes[0].set_ylabel("temperature")
axes[0].legend(loc="upper left", fontsize="small")
plt.show()
