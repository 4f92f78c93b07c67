"""
A stream on which argmax play has unbounded regret
==================================================

Every row shows a feature that no row before had. The learner knows nothing about it,
and the label is always the class that a deterministic tie-break does not choose.
Playing the most probable class is then wrong every time, and its regret grows without
bound with the length of the stream. Algorithm 1, the default of
:class:`~skbounds.fenchel_young.FenchelYoungOnlineClassifier`, plays at random and stays
below a bound that does not depend on the length.
"""

# %%
# The comparator gives the classes the weights :math:`-v` and :math:`v` on every
# feature, with :math:`v = 10 / \sqrt{2T}`, so that its norm is 10 whatever the length T
# of the stream. Its log loss is :math:`T \ln(1 + e^{-2v})`.

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from skbounds import FenchelYoungOnlineClassifier

norm = 10.0
lengths = np.unique(np.logspace(0.5, 5, 40).astype(int))
regrets = {"argmax": [], "randomized": []}
for n_rows in lengths:
    X = sp.csr_array(sp.eye_array(n_rows, format="csr"))
    y = np.ones(n_rows, dtype=int)
    comparator_loss = n_rows * np.log1p(np.exp(-2.0 * norm / np.sqrt(2.0 * n_rows)))
    for decoding, regret in regrets.items():
        options = {"fit_intercept": False, "random_state": 0}
        clf = FenchelYoungOnlineClassifier(decoding=decoding, **options)
        clf.partial_fit(X, y, classes=[0, 1])
        regret.append(clf.expected_cumulative_loss_ - comparator_loss)
bound = clf.surrogate_regret_bound(norm)

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.plot(lengths, regrets["argmax"], "s-", ms=4)
ax.text(2e3, 5e3, "argmax play", color="C0", ha="right")
ax.plot(lengths, regrets["randomized"], "o-", ms=4)
ax.text(4e3, -2e3, "Algorithm 1", color="C1", ha="right")
ax.axhline(bound, ls=":", color="black")
ax.text(3, 1.2 * bound, f"bound: {bound:.0f}")
ax.axhline(0.0, color="black", lw=0.5)
ax.set(xscale="log", xlabel="length T of the stream", ylabel="surrogate regret")
ax.set_yscale("symlog", linthresh=10.0)
plt.show()

# %%
# The comparator's log loss per row tends to ln 2, about 0.69. Argmax play makes one
# mistake per row, more than that, and its regret passes any bound. Algorithm 1 makes
# half a mistake per row: its regret rises at first, stays below the bound and then
# falls without limit. Nothing can be learnt on this stream. It shows what randomisation
# insures against, not what usual data look like.
