r"""
Certificate against test error on four data sets
================================================

:class:`~skbounds.pac_bayes.PACBayesSVMEnsemble` replaces a grid search over the C of an
SVM and certifies the vote that it predicts with. The certificate is beside what five
lines of code would certify, and beside the error on rows that nothing has seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds import PACBayesSVMEnsemble
from skbounds.pac_bayes import kl_inverse


def five_lines(X, y, seed):
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.5, random_state=seed)
    models = [make_pipeline(StandardScaler(), SVC(C=C)) for C in np.logspace(-2, 3, 20)]
    errors = [1 - model.fit(X, y).score(X_held, y_held) for model in models]
    bound = kl_inverse(min(errors), np.log(20 / 0.05) / len(y_held))
    return models[np.argmin(errors)], bound


rng = np.random.default_rng(0)
inner, flipped = rng.random((2, 1000)) < [[0.5], [0.2]]
rings = rng.normal(size=(1000, 20)) * (2 - inner[:, None]), inner ^ flipped
loaded = [
    load(return_X_y=True) for load in (load_wine, load_breast_cancer, load_digits)
]
ticks = ["wine", "breast cancer", "digits", "noisy rings"]
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for row, data in enumerate([*loaded, rings]):
    found = []
    for seed in range(5):
        X, X_test, y, y_test = train_test_split(*data, test_size=0.3, random_state=seed)
        vote = PACBayesSVMEnsemble(standardize=True, random_state=seed).fit(X, y)
        model, bound = five_lines(X, y, seed)
        errors = [1 - fitted.score(X_test, y_test) for fitted in (vote, model)]
        found.append([errors[0], vote.vote_bound_, errors[1], bound])
    ticks[row] += f"\n{vote.n_certification_} certify"
    for k, ends in enumerate(np.mean(found, axis=0).reshape(2, 2)):
        ax.plot(ends, [row + 0.25 * k] * 2, "os"[k] + "-", color=f"C{k}", lw=2)
ax.text(0.13, 0, "vote", color="C0", va="center")
ax.text(0.15, 0.25, "five lines", color="C1", va="center")
ax.set_yticks(range(4), ticks)
ax.set(xlim=(0, None), ylim=(3.5, -0.4))
ax.set_xlabel("share of wrong predictions, from the test error to the bound")
plt.show()

# %%
# The five lines: train on half of the rows with each of 20 values of C, take the one
# with the fewest mistakes on the m rows of the other half, and invert
# :math:`\mathrm{kl}(\text{error} \,\|\, \text{risk}) \le \ln(20 / \delta) / m`, a union
# bound over the 20. Everything is a mean over five splits into rows to fit and rows to
# test, with :math:`\delta = 0.05` for each bound on its own. Noisy rings are a narrow
# cloud inside a wide one, with a fifth of the labels flipped.
#
# The certificate of the vote is the lower bound on every set, and the errors hardly
# differ. How far a bound lies above the error is a matter of the number of rows that
# certify and of the error itself: 37 rows of wine prove little, although the vote is
# nearly always right.
