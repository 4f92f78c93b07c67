"""
Any model, asked for each answer
================================

:class:`~skbounds.smp.SMPClassifier` refits a classifier with the row itself, once per
label, and :class:`~skbounds.smp.SMPRegressor` does the same for numbers and counts:
what a model would say of any answer, normalised over the answers.
"""

# %%
# Naive Bayes multiplies what it takes for independent. Here its four features are
# readings of one quantity, and it is far too sure.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.naive_bayes import GaussianNB

from skbounds import SMPClassifier, SMPRegressor

rng = np.random.default_rng(4)
y = np.arange(14) % 2
hidden = rng.normal(size=14) + 1.2 * (2 * y - 1)
X = hidden[:, None] + 0.3 * rng.normal(size=(14, 4))
grid = np.linspace(-5, 5, 61)
readings = np.tile(grid[:, None], 4)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for model, style in [(GaussianNB(), "--"), (SMPClassifier(GaussianNB()), "-")]:
    p = model.fit(X, y).predict_proba(readings)[:, 1]
    ax.plot(grid, p, style, lw=2)
ax.plot(hidden, y, "|", color="black", ms=12)
ax.text(5, 0.95, "naive Bayes", color="C0", ha="right", va="top")
ax.text(5, 0.47, "SMPClassifier", color="C1", ha="right", va="top")
ax.text(-1.8, 0.06, "training rows", ha="center")
ax.set(xlabel="all four readings", ylabel="probability of class 1")
plt.show()

# %%
# Where both labels could have been fitted, on the far sides of all rows, the
# probability goes back to one half. Between the classes little changes.
#
# **Counts** have a law that is wider than Poisson's where rows are few.

x = np.sort(rng.uniform(0, 3, 12))
counts = rng.poisson(np.exp(0.3 + 0.8 * x))
line = np.linspace(0, 2.8, 57)
model = SMPRegressor(PoissonRegressor(alpha=0.01), method="influence")
model.fit(x[:, None], counts)
low, middle, high = model.predict_quantiles(line[:, None], (0.05, 0.5, 0.95)).T

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.fill_between(line, low, high, alpha=0.3, step="mid", label="5 % to 95 %")
ax.step(line, middle, where="mid", label="median")
ax.plot(line, model.estimator_.predict(line[:, None]), "--", label="fitted mean")
ax.plot(x, counts, ".", color="black", label="training rows")
ax.set(xlabel="x", ylabel="count")
ax.legend(loc="upper left")
plt.show()

# %%
# The band widens beyond the last row, where one more count would turn the line.
