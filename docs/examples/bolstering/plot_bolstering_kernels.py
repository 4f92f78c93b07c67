r"""
How kernels smooth the training rows
====================================

A bolstered estimate is the mean loss of a fitted model over a cloud around each of its
training rows. What the cloud looks like is a matter of the kernel.
"""

# %%
# Thirty rows of one feature, fitted by a cubic polynomial and by a tree. With
# ``method="x"`` rows move sideways: by the same standard deviation everywhere
# (``"mm"``), or by one of their own (``"mpe"``). With ``method="xy"`` the target moves
# too, along with the feature. Bars and ellipses are one standard deviation; dots are
# draws by :meth:`~skbounds.bolstering.BolsteredScorer.sample`. The test error is the
# mean over 5000 further rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skbounds import BolsteredScorer

rng = np.random.default_rng(0)


def wave(n):
    """Return rows of a sine and noise."""
    x = np.sort(rng.uniform(size=n))
    return x[:, None], np.sin(2.0 * np.pi * x) + rng.normal(scale=0.3, size=n)


def draw_ellipses(ax, centers, covariances, colours):
    """Draw one standard deviation around each row."""
    for center, covariance, colour in zip(centers, covariances, colours, strict=True):
        sizes, directions = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
        height, width = 2.0 * np.sqrt(sizes)
        ax.add_patch(
            Ellipse(center, width, height, angle=angle, fill=False, ec=colour, lw=1.2)
        )


X, y = wave(30)
X_test, y_test = wave(5000)
models = {
    "cubic": make_pipeline(PolynomialFeatures(3), LinearRegression()),
    "tree": DecisionTreeRegressor(random_state=0),
}
kernels = [("x", "mm"), ("x", "mpe"), ("xy", "mpe")]
grid = np.linspace(-0.3, 1.3, 400)[:, None]

figure, axes = plt.subplots(
    2, 3, figsize=(11, 6.4), sharex=True, sharey=True, layout="constrained"
)
for line, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    test_error = np.mean((y_test - model.predict(X_test)) ** 2)
    for ax, (method, kernel) in zip(line, kernels, strict=True):
        scorer = BolsteredScorer(method=method, kernel=kernel).fit(X, y)
        with warnings.catch_warnings():
            # That some kernels are too wide for the cubic is what the picture shows.
            warnings.filterwarnings("ignore", message="The kernels add")
            found = scorer.estimate(model, X, y)
        X_moved, y_moved = scorer.sample(600, random_state=0)
        ax.plot(X_moved[:, 0], y_moved, ".", color="tab:orange", ms=2, label="moved")
        ax.plot(grid, model.predict(grid), color="tab:blue", label="model")
        ax.plot(X[:, 0], y, "o", color="black", ms=4, label="rows")
        covariances = np.broadcast_to(
            scorer.kernel_, (len(X), *scorer.kernel_.shape[-2:])
        )
        if method == "x":
            deviations = np.sqrt(covariances[:, 0, 0])
            ax.errorbar(X[:, 0], y, xerr=deviations, fmt="none", color="tab:red")
        else:
            centers = np.column_stack([X[:, 0], y])
            draw_ellipses(ax, centers, covariances, ["tab:red"] * len(X))
        ax.set_title(
            f"{name}, method={method!r}, kernel={kernel!r}\nresubstitution "
            f"{found.resubstitution:.2f}, bolstered {found.error:.2f}, "
            f"test {test_error:.2f}",
            fontsize="medium",
        )
axes[0, 0].set_xlim(-0.3, 1.3)
axes[0, 0].set_ylim(-2.1, 2.1)
for ax in axes[1]:
    ax.set_xlabel("feature")
for ax in axes[:, 0]:
    ax.set_ylabel("target")
axes[0, 0].plot([], [], color="tab:red", label="kernel, one standard deviation")
figure.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4
)
plt.show()

# %%
# The kernels do not know the model. Rows that move by a tenth of the range hardly
# change the error where the cubic is flat, but where it leaves the data it has no
# limits, and neither have the squared errors. The tree is constant there, and its
# training error of zero says nothing: here the wide kernels come closer to the test
# error than the narrow ones. That no width suits both is why the default of
# :class:`~skbounds.bolstering.BolsteredScorer` does not rely on kernels alone, and not
# at all for squared errors.
#
# In classification kernels are spherical, in units of the features' standard
# deviations, and each class has a width of its own. A moved row counts as an error if
# the model gives it another class than its row has: these are the crosses.


def two_clouds(n):
    """Return a narrow and a wide cloud."""
    y = np.arange(n) % 2
    spread = np.where(y == 1, 1.3, 0.5)[:, None]
    return spread * rng.normal(size=(n, 2)) + 1.6 * y[:, None], y


X, y = two_clouds(40)
X_test, y_test = two_clouds(10_000)
low, high = X.min(axis=0) - 1.2, X.max(axis=0) + 1.2
mesh = np.stack(np.meshgrid(*np.linspace(low, high, 300).T), axis=-1)
colours = np.array(["tab:blue", "tab:orange"])

figure, axes = plt.subplots(1, 2, figsize=(11, 5.0), sharey=True, layout="constrained")
for ax, model in zip(
    axes,
    [LinearDiscriminantAnalysis(), DecisionTreeClassifier(random_state=0)],
    strict=True,
):
    model.fit(X, y)
    scorer = BolsteredScorer(method="x").fit(X, y)
    found = scorer.estimate(model, X, y)
    X_moved, y_moved = scorer.sample(400, random_state=0)
    wrong = model.predict(X_moved) != y_moved
    regions = model.predict(mesh.reshape(-1, 2)).reshape(mesh.shape[:2])
    ax.contourf(
        mesh[..., 0], mesh[..., 1], regions, levels=[-0.5, 0.5, 1.5],
        colors=list(colours), alpha=0.12,
    )  # fmt: skip
    for label, colour in enumerate(colours):
        at = y == label
        ax.plot(*X[at].T, "o", color=colour, ms=5, mec="black", label=f"class {label}")
        right = (y_moved == label) & ~wrong
        ax.plot(*X_moved[right].T, ".", color=colour, ms=3)
        missed = (y_moved == label) & wrong
        ax.plot(*X_moved[missed].T, "x", color=colour, ms=6)
    ax.plot([], [], "kx", ms=6, label="moved, and wrong")
    draw_ellipses(ax, X, scorer.kernel_, colours[y])
    ax.set_title(
        f"{type(model).__name__}\nresubstitution {found.resubstitution:.3f}, "
        f"bolstered {found.error:.3f}, test {1.0 - model.score(X_test, y_test):.3f}",
        fontsize="medium",
    )
    ax.set_xlabel("first feature")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
axes[0].set_ylabel("second feature")
axes[0].legend(loc="lower right", fontsize="small")
plt.show()
