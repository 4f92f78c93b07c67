"""
Calibrated probabilities under separation and under noise
=========================================================

Fifty training rows, two kinds of data. Nearly separable classes make plain logistic
regression overconfident only mildly, and a fixed amount of caution (the sample minmax
predictor with one C) far too timid; noisy labels do the reverse. The leave-one-out pool
:class:`~skbounds.smp.SMPLogisticRegressionCV` finds out which is which.
"""

# %%
# Repeated draws of small training sets, with a large test set each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV


def draw(rng, n, scale):
    """Return rows and labels with true log-odds of the given scale."""
    X = rng.normal(size=(n, 10))
    log_odds = scale * (X[:, 0] + X[:, 1] - X[:, 2])
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds))).astype(int)


models = {
    "LogisticRegression": LogisticRegression(C=10.0),
    "SMPLogisticRegression": SMPLogisticRegression(C=10.0),
    "SMPLogisticRegressionCV": SMPLogisticRegressionCV(),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (title, scale) in zip(
    axes, [("nearly separable", 8.0), ("noisy", 0.5)], strict=True
):
    rng = np.random.default_rng(0)
    truth, predicted = [], {name: [] for name in models}
    for _ in range(20):
        X, y = draw(rng, 50, scale)
        X_test, y_test = draw(rng, 500, scale)
        truth.append(y_test)
        for name, model in models.items():
            predicted[name].append(model.fit(X, y).predict_proba(X_test)[:, 1])
    truth = np.concatenate(truth)
    ax.plot([0, 1], [0, 1], color="gray", lw=1)
    for name, parts in predicted.items():
        proba = np.concatenate(parts)
        loss = log_loss(truth, proba)
        observed, mean = calibration_curve(truth, proba, n_bins=10)
        ax.plot(mean, observed, "o-", ms=4, label=f"{name}: {loss:.3f}")
    ax.set_title(f"{title} (log loss in the legend)")
    ax.set_xlabel("predicted probability")
    ax.legend(fontsize=8)
axes[0].set_ylabel("observed frequency")
plt.show()

# %%
# On the left the single sample minmax predictor hedges too much (its curve is steeper
# than the diagonal), on the right the plug-in does not hedge enough (flatter). The pool
# is close to the better of the two on both.
