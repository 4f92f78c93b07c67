"""
Calibrated probabilities under separation and under noise
=========================================================

With nearly separable classes plain logistic regression is only mildly overconfident,
and a fixed amount of caution, the sample minmax predictor with one C, far too timid.
With noisy labels it is the former that is far too sure. The leave-one-out pool of
:class:`~skbounds.smp.SMPLogisticRegressionCV` finds out which is which.
"""

# %%
# Twenty draws of 50 training rows each, with 500 test rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV


def draw(rng, n, scale):
    X = rng.normal(size=(n, 10))
    log_odds = scale * (X[:, 0] + X[:, 1] - X[:, 2])
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds))).astype(int)


models = (
    LogisticRegression(C=10),
    SMPLogisticRegression(C=10),
    SMPLogisticRegressionCV(),
)
figure, axes = plt.subplots(2, 1, figsize=(6.4, 8), layout="constrained", sharex=True)
for ax, title, scale in zip(axes, ["nearly separable", "noisy"], [8, 0.5], strict=True):
    rng = np.random.default_rng(0)
    draws = [(*draw(rng, 50, scale), *draw(rng, 500, scale)) for _ in range(20)]
    truth = np.concatenate([y_test for *_, y_test in draws])
    for model, mark in zip(models, "s^o", strict=True):
        p = [model.fit(X, y).predict_proba(Z)[:, 1] for X, y, Z, _ in draws]
        p = np.concatenate(p)
        name = f"{type(model).__name__} {log_loss(truth, p):.3f}"
        CalibrationDisplay.from_predictions(
            truth, p, n_bins=10, ax=ax, name=name, marker=mark
        )
    ax.set(title=title, xlabel="predicted probability", ylabel="observed frequency")
    ax.legend(title="log loss", loc="upper left", handlelength=1)
plt.show()

# %%
# Above, the sample minmax predictor with one C hedges too much: its curve is steeper
# than the diagonal. Below, the signal is weak, and with 50 rows of ten features all
# curves are flatter than the diagonal, that of the plug-in most. The pool has about the
# log loss of the better of the two on both.
