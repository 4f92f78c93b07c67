"""
A map of where the model does not know
======================================

``log_normalizer`` needs no labels: it says how well *both* labels could have been
fitted at a row. Its mean over fresh rows bounds the excess over any *penalised* linear
model, and as a map it shows where the training rows leave the answer open.
"""

# %%
# Two clusters per class, and a wide window around them.

import matplotlib.pyplot as plt
import numpy as np

from skbounds import SMPLogisticRegression

rng = np.random.default_rng(0)
centres = np.array([[-2, -1], [-1, 1.5], [1, -1], [2, 1]])
X = np.vstack([centre + 0.6 * rng.normal(size=(12, 2)) for centre in centres])
y = np.repeat([0, 0, 1, 1], 12)
model = SMPLogisticRegression(C=1.0).fit(X, y)

side = np.linspace(-12, 12, 121)
rows = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(7.5, 4.4), layout="constrained", sharey=True)
for ax, values, title, top, colours in (
    (axes[0], model.predict_proba(rows)[:, 1], "probability of class 1", 1, "PuOr"),
    (axes[1], model.log_normalizer(rows), "log Z, in nats", np.log(2), "YlGnBu"),
):
    image = ax.pcolormesh(
        side, side, values.reshape(121, 121), vmin=0, vmax=top, cmap=colours
    )
    figure.colorbar(image, ax=ax, location="bottom", label=title)
    for label, mark, name in [(0, "wo", "class 0"), (1, "k^", "class 1")]:
        edge = "black" if label == 0 else "white"
        ax.plot(*X[y == label].T, mark, mec=edge, ms=5, mew=0.7, label=name)
    ax.set_aspect("equal")
axes[1].legend(loc="lower right")
plt.show()

# %%
# Along the boundary, away from the rows, either label could be had for a small change
# of the coefficients: the log normaliser approaches log 2, the prediction one half.
# Among the rows of one class no label changes the fit much, and it is near 0.

print(f"mean log Z, by leave-one-out: {model.log_normalizer_mean_:.3f} nats")
print(f"bound of the excess over models of norm 2: {model.excess_risk_bound(2.0):.3f}")
print(
    f"estimate of that over the best penalised one: {model.excess_risk_penalized_:.3f}"
)
