"""
Forecasts of a series with gaps and outliers
============================================

A sensor that fails now and then, a machine with three regimes, and noise with heavy
tails: :class:`~skbounds.hmm.BaumWelchHMM` is fitted to what is there, and follows the
series row by row. Its forecast is a mixture of the regimes' laws, whose width says how
unsure the next regime is.
"""

# %%
# A tenth of all entries is missing (nan), and the first column for 60 rows in a row.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.hmm import BaumWelchHMM

A = np.array([[0.98, 0.02, 0.0], [0.01, 0.97, 0.02], [0.03, 0.0, 0.97]])
means = np.array([[20.0, 1.0], [35.0, 1.5], [50.0, 4.0]])
scales = np.array([[1.0, 0.1], [2.0, 0.2], [4.0, 0.5]])
rng = np.random.default_rng(0)
regimes = np.zeros(1900, dtype=int)
for i in range(1, 1900):
    regimes[i] = rng.choice(3, p=A[regimes[i - 1]])
X = means[regimes] + scales[regimes] * rng.standard_t(3, size=(1900, 2))
X[rng.random((1900, 2)) < 0.1] = np.nan
X[1640:1700, 0] = np.nan

model = BaumWelchHMM(3, emission="student", n_init=5, random_state=0).fit(X[:1500])
ahead, bands = model.forecast(X[:1500]), []
for row in X[1500:]:
    bands.append(ahead.interval(0.9)[0, 0])
    ahead = ahead.update(row)

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
shown, values = np.arange(1500, 1900), X[1500:, 0]
ax.fill_between(shown, *np.transpose(bands), alpha=0.4, label="90 % of the next row")
ax.plot(shown, values, ".", color="black", ms=4, label="first column")
ax.set(ylim=(5, 75), xlabel="row", ylabel="temperature")
ax.legend(loc="upper left", ncols=2)
plt.show()

# %%
# ``forecast`` starts at the end of the 1500 training rows, and ``update`` takes in one
# row after the other; the band is that of the next row given all rows before. Where the
# first column is missing (rows 1640 to 1700), the second one tells the regime.

low, high = np.transpose(bands)
there = ~np.isnan(values)
print(f"inside: {np.mean((low <= values) & (values <= high), where=there):.0%}")

# %%
# **What has been found**, with standard errors: regimes that last 30 to 60 rows, and t
# noise, which has 3 degrees of freedom here.

for name in ("means", "transmat"):
    print(name, "and their standard errors")
    print(getattr(model, f"{name}_").round(2))
    print(model.standard_errors_[name].round(2))
print("degrees of freedom", model.df_.round(1))

# %%
# **Farther ahead** the regime is forgotten, and the forecast becomes that of the series
# as a whole: slowly in the mean, faster in the upper end. Forecasts from a row in each
# regime:

figure, axes = plt.subplots(1, 3, figsize=(7.5, 3.4), sharey=True, layout="constrained")
for k, ax in enumerate(axes):
    last = np.flatnonzero(regimes[:1500] == k)[-1]
    far = model.forecast(X[: last + 1], steps=60)
    steps = np.arange(1, 61)
    ax.fill_between(steps, *far.interval(0.9)[:, 0].T, alpha=0.3, lw=0, label="90 %")
    ax.plot(steps, far.mean[:, 0], label="mean")
    ax.set(title=f"from regime {k}", xlabel="rows ahead")
axes[0].set_ylabel("temperature")
axes[0].legend(loc="upper left")
plt.show()
