"""
Any model, asked for each answer
================================

:class:`~skbounds.smp.SMPClassifier` refits a classifier with the row itself, once per
label, and :class:`~skbounds.smp.SMPRegressor` does the same for numbers and counts:
what a model would say of any answer, normalised over the answers.
"""

# %%
# Naive Bayes multiplies what it takes for independent, and is far too sure; counts have
# a law that is wider than Poisson's where rows are few.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.naive_bayes import GaussianNB

from skbounds import SMPClassifier, SMPRegressor

rng = np.random.default_rng(4)
n = 14
y = np.arange(n) % 2
hidden = rng.normal(size=n) + 1.2 * (2 * y - 1)
# Four readings of one quantity.
X = hidden[:, None] + 0.3 * rng.normal(size=(n, 4))
grid = np.linspace(-5, 5, 61)
readings = np.tile(grid[:, None], 4)

plain = GaussianNB().fit(X, y)
careful = SMPClassifier(GaussianNB()).fit(X, y)

x = np.sort(rng.uniform(0, 3, 12))
counts = rng.poisson(np.exp(0.3 + 0.8 * x))
line = np.linspace(0, 2.8, 57)
model = SMPRegressor(PoissonRegressor(alpha=0.01), method="influence")
model.fit(x[:, None], counts)

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].plot(grid, plain.predict_proba(readings)[:, 1], label="naive Bayes")
axes[0].plot(grid, careful.predict_proba(readings)[:, 1], label="SMPClassifier")
axes[0].plot(hidden, y, "|", color="black", markersize=12, label="training rows")
axes[0].set(xlabel="all four readings", ylabel="probability of class 1")
axes[0].legend(loc="lower right")
low, middle, high = model.predict_quantiles(line[:, None], (0.05, 0.5, 0.95)).T
axes[1].fill_between(line, low, high, alpha=0.3, step="mid", label="5 % to 95 %")
axes[1].step(line, middle, where="mid", label="median")
axes[1].plot(line, model.estimator_.predict(line[:, None]), "--", label="fitted mean")
axes[1].plot(x, counts, ".", color="black", label="training rows")
axes[1].set(xlabel="x", ylabel="count")
axes[1].legend(loc="upper left")
plt.show()

# %%
# Where both labels could have been fitted, on the far sides of all rows, the
# probability goes back towards one half; between the classes little changes. The band
# of the counts widens beyond the last row, where one more count would turn the line.
