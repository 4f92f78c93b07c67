"""
States along a sequence, and how many of them
=============================================

Where outputs overlap, a row by itself does not tell its state; its neighbours do.
:class:`~skbounds.hmm.BaumWelchHMM` beside scikit-learn's ``GaussianMixture``, which
does not look at neighbours, and the number of states by ``GridSearchCV``.
"""

# %%
# 20 sequences of 100 rows, three states that last 20 rows on average, outputs with
# means -1.5, 0 and 1.5 and standard deviation 1. ``sequence_id`` says which rows belong
# together. 15 sequences are for training.

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, GroupKFold

from skbounds import BaumWelchHMM, HMMDisplay

n_sequences, length = 20, 100
rng = np.random.default_rng(0)
sequence_id = np.repeat(np.arange(n_sequences), length)
states = np.empty(n_sequences * length, dtype=int)
for i in range(len(states)):
    if i % length == 0:
        states[i] = rng.integers(3)
    elif rng.random() < 0.05:
        states[i] = (states[i - 1] + rng.integers(1, 3)) % 3
    else:
        states[i] = states[i - 1]
X = 1.5 * (states[:, None] - 1) + rng.normal(size=(len(states), 1))
train, test = sequence_id < 15, sequence_id >= 15

hmm = BaumWelchHMM(3, random_state=0)
hmm.fit(X[train], sequence_id=sequence_id[train])
mixture = GaussianMixture(3, n_init=5, random_state=0).fit(X[train])
# In the order of the means, as the states of the other model are.
order = mixture.means_[:, 0].argsort()

figure, axes = plt.subplots(
    3, 1, figsize=(9, 8), sharex=True, layout="constrained", height_ratios=[2, 3, 3]
)
shown = np.flatnonzero(test)[:300]
axes[0].scatter(np.arange(300), X[shown, 0], c=[f"C{k}" for k in states[shown]], s=8)
axes[0].set(ylabel="output", title="three test sequences, coloured by the true state")
display = HMMDisplay.from_estimator(
    hmm, X[shown], sequence_id=sequence_id[shown], states=states[shown], ax=axes[1]
)
HMMDisplay(
    probabilities=mixture.predict_proba(X[shown])[:, order],
    starts=display.starts,
    states=states[shown],
).plot(axes[2])
guesses = {
    "BaumWelchHMM": hmm.predict(X[test], sequence_id=sequence_id[test]),
    "GaussianMixture": order.argsort()[mixture.predict(X[test])],
}
for ax, (name, guess) in zip(axes[1:], guesses.items(), strict=True):
    ax.set_title(f"{name}: {np.mean(guess == states[test]):.0%} of all test rows right")
for ax in axes[1:]:
    ax.get_legend().remove()
axes[1].set_xlabel("")
handles = axes[2].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3, fontsize="small")
plt.show()

# %%
# The strips on top are the true states, black lines the ends of the sequences.
#
# **How many states?** The score is the log-likelihood per row of sequences that were
# left out. Three things must know which rows belong together: the splitter, ``fit``
# and ``score``. Metadata routing gives ``sequence_id`` to the latter two, sliced like
# X, and ``groups`` to the first.

grid = {"n_components": [1, 2, 3, 4]}
with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        BaumWelchHMM(max_iter=5000, random_state=0)
        .set_fit_request(sequence_id=True)
        .set_score_request(sequence_id=True),
        grid,
        cv=GroupKFold(5),
    )
    ids = sequence_id[train]
    search.fit(X[train], sequence_id=ids, groups=ids)
other = GridSearchCV(GaussianMixture(random_state=0), grid, cv=GroupKFold(5))
other.fit(X[train], groups=ids)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for result, name in [(search, "BaumWelchHMM"), (other, "GaussianMixture")]:
    scores = result.cv_results_["mean_test_score"]
    ax.plot(grid["n_components"], scores, "o-", label=name)
ax.plot(
    search.best_params_["n_components"], search.best_score_, "o", ms=14, mfc="none",
    color="black", label="chosen",
)  # fmt: skip
ax.set_xticks(grid["n_components"])
ax.set(xlabel="n_components", ylabel="log-density per row, sequences left out")
ax.legend(fontsize="small")
plt.show()

# %%
# With one state the two are the same model. The mixture hardly gains from more: the
# density of a single row is close to a Gaussian, and what tells the states apart is
# how they follow each other. Beyond three states the score of the other falls, but
# slowly: states that are not needed cost little, and neighbouring numbers are hard to
# tell apart.
