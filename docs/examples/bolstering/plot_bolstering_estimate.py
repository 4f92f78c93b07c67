"""
An error estimate and its parts
===============================

:class:`~skbounds.bolstering.BolsteredEstimateDisplay` shows what the default of
:class:`~skbounds.bolstering.BolsteredScorer` is made of, beside a cross-validation.
"""

# %%
# Two learners, fitted to 50 rows of the breast cancer data. The dashed line is the
# error on the other 519 rows, which no estimate has seen. This is one sample: which of
# two estimates comes closer here says nothing about others.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skbounds import BolsteredEstimateDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=50, stratify=y, random_state=0
)
learners = {
    "tree": DecisionTreeClassifier(random_state=0),
    "SVC": make_pipeline(StandardScaler(), SVC()),
}
figure, axes = plt.subplots(2, 1, figsize=(6.4, 6.4), sharex=True, layout="constrained")
for ax, (name, learner) in zip(axes, learners.items(), strict=True):
    display = BolsteredEstimateDisplay.from_estimator(
        learner, X_train, y_train, X_test=X_test, y_test=y_test, ax=ax
    )
    ax.get_legend().remove()  # one for both
    found = display.estimate
    ax.set_title(f"{name}: {found.n_fits} fits, {found.n_evaluations} rows predicted")
axes[0].set_xlabel("")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
plt.show()

# %%
# The training error (filled) is far too small for the tree, which makes no mistake on
# its own rows. The open marks are the ingredients: the error of six clones, each fitted
# to a half, on the rows that they have not seen, every row three times; and the error
# of predictions of the same frequencies that have nothing to do with the labels. The
# first is a little too high, as the halves are smaller than the whole, and the further
# it is from the second the more is taken off. The bar is the 90 % interval. The one of
# cross-validation comes from the spread between folds, of five rows each: a fold has no
# mistake or one or two, which are the small orange bars.
