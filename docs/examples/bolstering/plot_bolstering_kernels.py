r"""
How kernels smooth the training rows
====================================

A bolstered estimate is the mean loss of a fitted model over a cloud around each of its
training rows. What the cloud looks like is a matter of the kernel.
"""

# %%
# Thirty rows of one feature, a cubic polynomial and a tree. With ``method="x"`` rows
# move sideways, all by the same standard deviation (``"mm"``) or each by its own
# (``"mpe"``); with ``method="xy"`` the target moves too. Orange dots are moved rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeRegressor

from skbounds import BolsteredScorer

rng = np.random.default_rng(0)


def wave(n):
    x = np.sort(rng.uniform(size=n))
    return x[:, None], np.sin(2 * np.pi * x) + rng.normal(scale=0.3, size=n)


X, y = wave(30)
cubic = make_pipeline(PolynomialFeatures(3), LinearRegression())
models = {"cubic": cubic, "tree": DecisionTreeRegressor(random_state=0)}
grid = np.linspace(-0.3, 1.3, 400)[:, None]
# That some kernels are too wide for the cubic is what the picture shows.
warnings.filterwarnings("ignore", message="The kernels add")
figure, axes = plt.subplots(3, 2, sharex=True, figsize=(7, 8), layout="constrained")
for line, option in zip(axes, ["x mm", "x mpe", "xy mpe"], strict=True):
    method, kernel = option.split()
    scorer = BolsteredScorer(method=method, kernel=kernel).fit(X, y)
    for ax, (name, model) in zip(line, models.items(), strict=True):
        found = scorer.estimate(model.fit(X, y), X, y)
        ax.plot(*scorer.sample(600, random_state=0), ".", color="tab:orange", ms=2)
        ax.plot(grid, model.predict(grid), color="tab:blue")
        ax.plot(X, y, "o", color="black", ms=4)
        ax.set_title(f'{name}, "{method}", "{kernel}": {found.error:.2f}')
        ax.set(xlim=(-0.3, 1.3), ylim=(-2.1, 2.1))
plt.show()

# %%
# In the titles are the bolstered estimates of the squared error. That on the training
# rows as they are, and that on 5000 others, which is to be estimated:

X_test, y_test = wave(5000)
for name, model in models.items():
    train = np.mean((y - model.predict(X)) ** 2)
    test = np.mean((y_test - model.predict(X_test)) ** 2)
    print(f"{name}: training error {train:.2f}, test error {test:.2f}")

# %%
# The kernels do not know the model. Rows that move by a tenth of the range hardly
# change the error where the cubic is flat, but where it leaves the data it has no
# limits, and neither have the squared errors. The tree is constant there, and its
# training error of zero says nothing: here the wide kernels come closer to the test
# error than the narrow ones. That no width suits both is why the default of
# :class:`~skbounds.bolstering.BolsteredScorer` does not rely on kernels alone, and not
# at all for squared errors.
#
# **In classification** kernels are spherical, in units of the features' standard
# deviations, and each class has a width of its own. A moved row counts as an error if
# the model gives it another class than its row has: these are the crosses.

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.tree import DecisionTreeClassifier


def two_clouds(n):
    """Return a narrow and a wide cloud."""
    y = np.arange(n) % 2
    spread = np.where(y == 1, 1.3, 0.5)[:, None]
    return spread * rng.normal(size=(n, 2)) + 1.6 * y[:, None], y


X, y = two_clouds(40)
X_test, y_test = two_clouds(10_000)
sides = np.linspace(X.min(axis=0) - 1.2, X.max(axis=0) + 1.2, 300).T
mesh = np.stack(np.meshgrid(*sides), axis=-1)
scorer = BolsteredScorer(method="x").fit(X, y)
X_moved, y_moved = scorer.sample(400, random_state=0)

figure, axes = plt.subplots(2, 1, figsize=(6.4, 9), sharex=True, layout="constrained")
for ax, model in zip(
    axes,
    [LinearDiscriminantAnalysis(), DecisionTreeClassifier(random_state=0)],
    strict=True,
):
    found = scorer.estimate(model.fit(X, y), X, y)
    wrong = model.predict(X_moved) != y_moved
    regions = model.predict(mesh.reshape(-1, 2)).reshape(300, 300)
    ax.contour(*sides, regions, levels=[0.5], colors="black")
    for label, colour, mark in [(0, "tab:blue", "o"), (1, "tab:orange", "s")]:
        own = y_moved == label
        ax.plot(*X_moved[own & ~wrong].T, ".", color=colour, ms=3)
        ax.plot(*X_moved[own & wrong].T, "x", color=colour, ms=7)
        rows = X[y == label].T
        ax.plot(*rows, mark, color=colour, mec="black", label=f"class {label}")
    ax.plot([], [], "x", color="black", ms=7, label="moved, and wrong")
    ax.set_title(
        f"{type(model).__name__}: training error {found.resubstitution:.3f},\n"
        f"bolstered {found.error:.3f}, test error {1 - model.score(X_test, y_test):.3f}"
    )
    ax.set_ylabel("second feature")
axes[1].set_xlabel("first feature")
axes[0].legend(loc="upper right")
plt.show()
