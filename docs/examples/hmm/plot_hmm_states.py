"""
States along a sequence, and how many of them
=============================================

Where outputs overlap, a row by itself does not tell its state; its neighbours do.
:class:`~skbounds.hmm.BaumWelchHMM` beside scikit-learn's ``GaussianMixture``, which
does not look at neighbours, and the number of states by ``GridSearchCV``.
"""

# %%
# 20 sequences of 100 rows, three states that last 20 rows on average, outputs with
# means -1.5, 0 and 1.5 and standard deviation 1; 15 sequences are for training.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

from skbounds import BaumWelchHMM, HMMDisplay

rng = np.random.default_rng(0)
ids = np.repeat(np.arange(20), 100)  # which rows belong together
moves = rng.integers(1, 3, size=(20, 100)) * (rng.random((20, 100)) < 0.05)
moves[:, 0] = rng.integers(3, size=20)
states = moves.cumsum(axis=1).ravel() % 3
X = 1.5 * (states[:, None] - 1) + rng.normal(size=(2000, 1))
train, test = ids < 15, ids >= 15

hmm = BaumWelchHMM(3, random_state=0).fit(X[train], sequence_id=ids[train])
mixture = GaussianMixture(3, n_init=5, random_state=0).fit(X[train])
# In the order of the means, as the states of the other model are.
order = mixture.means_[:, 0].argsort()
found = {
    "BaumWelchHMM": hmm.predict_proba(X[test], sequence_id=ids[test]),
    "GaussianMixture": mixture.predict_proba(X[test])[:, order],
}

# Colours that the colour-blind can tell apart.
plt.rcParams["axes.prop_cycle"] = plt.cycler(color=["#0072B2", "#E69F00", "#009E73"])
figure, axes = plt.subplots(2, 1, figsize=(6.4, 6), sharex=True, layout="constrained")
for ax, (name, p) in zip(axes, found.items(), strict=True):
    HMMDisplay(
        probabilities=p[:300], starts=np.arange(0, 301, 100), states=states[test][:300]
    ).plot(ax)
    right = np.mean(p.argmax(axis=1) == states[test])
    ax.set_title(f"{name}: {right:.0%} of all test rows right")
axes[0].get_legend().remove()
axes[0].set_xlabel("")
plt.show()

# %%
# Three of the test sequences; the strips on top are the true states, black lines the
# ends of the sequences.
#
# **How many states?** The score is the log-likelihood per row of sequences that were
# left out. Three things must know which rows belong together: the splitter, ``fit``
# and ``score``. Metadata routing gives ``sequence_id`` to the latter two, sliced like
# X, and ``groups`` to the first.

import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

grid, folds = {"n_components": [1, 2, 3, 4]}, GroupKFold(5)
with sklearn.config_context(enable_metadata_routing=True):
    model = BaumWelchHMM(max_iter=5000, random_state=0)
    model.set_fit_request(sequence_id=True).set_score_request(sequence_id=True)
    search = GridSearchCV(model, grid, cv=folds)
    search.fit(X[train], sequence_id=ids[train], groups=ids[train])
other = GridSearchCV(GaussianMixture(random_state=0), grid, cv=folds)
other.fit(X[train], groups=ids[train])

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for result, name in [(search, "BaumWelchHMM"), (other, "GaussianMixture")]:
    scores = result.cv_results_["mean_test_score"]
    (line,) = ax.plot(grid["n_components"], scores, "o-")
    ax.text(4, scores[-1] - 0.01, name, color=line.get_color(), ha="right", va="top")
ax.plot(
    *search.best_params_.values(),
    search.best_score_,
    "o",
    ms=14,
    mfc="none",
    mec="black",
)
ax.text(2.9, search.best_score_, "chosen", ha="right", va="center")
ax.margins(y=0.1)
ax.set(xticks=[1, 2, 3, 4], xlabel="n_components")
ax.set_ylabel("log-density per row, sequences left out")
plt.show()

# %%
# With one state the two are the same model. The mixture hardly gains from more: the
# density of a single row is close to a Gaussian, and what tells the states apart is
# how they follow each other. Beyond three states the score of the other falls, but
# slowly: states that are not needed cost little, and neighbouring numbers are hard to
# tell apart.
