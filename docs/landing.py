"""Draw the picture of the first page: what was said of an error, and what it was.

python docs/landing.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds import PACBayesSVMEnsemble, SMPLogisticRegressionCV
from skbounds.bolstering import bolstered_val_score

DRAWS = 12


def tables():
    """Return pairs (X, y) of two classes: easy and hard ones, the last of noise."""
    X, y = load_digits(return_X_y=True)
    found = [load_breast_cancer(return_X_y=True)]
    for low, high in ((3, 8), (1, 8)):
        rows = np.isin(y, (low, high))
        found.append((X[rows] / 16.0, y[rows] == low))
    found.append((X[:, 20:28] / 16.0, y % 2))
    rng = np.random.default_rng(0)
    found.append((rng.normal(size=(1500, 10)), rng.integers(2, size=1500)))
    return found


def draws(n):
    """Yield training rows and all others, of each table several times."""
    for X, y in tables():
        for seed in range(DRAWS):
            yield train_test_split(X, y, train_size=n, stratify=y, random_state=seed)


def log_losses():
    """Return what SMPLogisticRegressionCV says of its log loss, and what it is."""
    for X, X_test, y, y_test in draws(80):
        model = make_pipeline(StandardScaler(), SMPLogisticRegressionCV()).fit(X, y)
        yield model[-1].loo_log_loss_, log_loss(y_test, model.predict_proba(X_test))


def certificates():
    """Return certificates of the vote's error, and the error."""
    for X, X_test, y, y_test in draws(250):
        model = PACBayesSVMEnsemble(standardize=True, random_state=0).fit(X, y)
        yield model.vote_bound_, 1.0 - model.score(X_test, y_test)


def estimates():
    """Return estimates of an SVM's error from its training rows, and the error."""
    for X, X_test, y, y_test in draws(80):
        model = make_pipeline(StandardScaler(), SVC())
        accuracy = bolstered_val_score(model, X, y, random_state=0).mean()
        yield 1.0 - accuracy, 1.0 - model.fit(X, y).score(X_test, y_test)


def main():
    """Draw it."""
    panels = [
        ("SMPLogisticRegressionCV\nlog loss from 80 rows", log_losses),
        ("bolstered_val_score\nerror from 80 rows, six fits", estimates),
        ("PACBayesSVMEnsemble\ncertificate from 250 rows", certificates),
    ]
    fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), layout="constrained")
    colours = np.repeat(["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#777777"], DRAWS)
    for ax, (title, pairs) in zip(axes, panels, strict=True):
        said, was = np.array(list(pairs())).T
        print(f"{title}: above what was said in {(was > said).mean():.2f} of the draws")
        limit = 1.05 * max(said.max(), was.max())
        ax.plot([0, limit], [0, limit], color="black", lw=0.8)
        ax.scatter(said, was, s=16, c=colours, alpha=0.7, lw=0)
        ax.set(xlim=(0, limit), ylim=(0, limit), xlabel="what it said", title=title)
        ax.title.set_fontsize(9)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("what it was on all other rows")
    fig.savefig(Path(__file__).with_name("landing.png"), dpi=120)


if __name__ == "__main__":
    main()
