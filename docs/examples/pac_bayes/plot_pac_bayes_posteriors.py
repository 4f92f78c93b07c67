r"""
Posterior weights: chi-square beside KL, printed constants beside corrected ones
================================================================================

The weights that minimise a PAC-Bayes bound lie on one curve for each divergence:
:math:`q_i \propto p_i (\mu - l_i)_+` for chi-square and
:math:`q_i \propto p_i e^{-\beta l_i}` for KL, whatever the distance in the bound.
:func:`~skbounds.pac_bayes.optimal_posterior` finds the best point of the curve.
"""

# %%
# Thirty-one members made 10, 11, ..., 40 mistakes on 200 rows; the prior is uniform and
# :math:`\delta = 0.05`. The legends have the bounds.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.pac_bayes import optimal_posterior

risks = np.arange(10, 41) / 200
marks = {"linear": "-", "squared": "--", "kl": "-."}
titles = {"chi2": "chi-square divergence", "kl": "KL divergence"}

figure, axes = plt.subplots(2, 1, figsize=(6.4, 7), sharex=True, layout="constrained")
for ax, (divergence, title) in zip(axes, titles.items(), strict=True):
    for distance, style in marks.items():
        weights, bound = optimal_posterior(
            risks, 200, delta=0.05, divergence=divergence, distance=distance
        )
        ax.plot(risks, weights, style, lw=2, label=f"{distance}: {bound:.3f}")
    ax.axhline(1 / 31, color="gray", ls=":", label="prior")
    ax.set(title=title, ylabel="weight")
    ax.legend(title="distance: bound")
axes[1].set_xlabel("empirical risk of the member")
plt.show()

# %%
# On a chi-square curve weights fall along a straight line and are zero from :math:`\mu`
# on; on a KL curve each further mistake divides the weight by the same number. The KL
# weights are much more concentrated (the scales differ).
#
# The chi-square constants as printed in the paper are too large for two of the
# distances. The bounds that they give, and the weight of the best member:

for distance in marks:
    for constants in ("paper", "exact"):
        weights, bound = optimal_posterior(
            risks,
            200,
            delta=0.05,
            divergence="chi2",
            distance=distance,
            constants=constants,
        )
        print(f"{distance:8s} {constants:6s} {bound:.3f}, weight {weights[0]:.3f}")

# %%
# With the printed constant the kl distance gives the loosest of the chi-square bounds,
# and weights near the prior; with the right one it gives the tightest. All these bounds
# are about the classifier that draws a member for each row; none says that one set of
# weights makes fewer mistakes than another.
