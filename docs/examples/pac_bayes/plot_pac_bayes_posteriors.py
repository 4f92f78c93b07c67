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
# :math:`\delta = 0.05`. Dashed: the best weights for the constants as printed in the
# paper, which are too large. The legends have the bounds.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.pac_bayes import optimal_posterior

n_samples = 200
risks = np.arange(10, 41) / n_samples

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
colours = {"linear": "tab:blue", "squared": "tab:orange", "kl": "tab:green"}
for ax, divergence in zip(axes, ["chi2", "kl"], strict=True):
    for distance, colour in colours.items():
        for constants in ["exact", "paper"] if divergence == "chi2" else ["exact"]:
            weights, bound = optimal_posterior(
                risks,
                n_samples,
                delta=0.05,
                divergence=divergence,
                distance=distance,
                constants=constants,
            )
            if constants == "paper" and distance == "linear":
                continue  # this constant is right as printed
            printed = constants == "paper"
            ax.plot(
                risks,
                weights,
                ls="--" if printed else "-",
                marker="" if printed else ".",
                color=colour,
                label=f"{distance}{', printed' if printed else ''}: {bound:.3f}",
            )
    ax.axhline(1.0 / len(risks), color="gray", ls=":", label="prior")
    ax.set_xlabel("empirical risk of the member")
    ax.legend(title="distance: bound")
axes[0].set_title("chi-square divergence")
axes[1].set_title("KL divergence")
axes[0].set_ylabel("weight")
plt.show()

# %%
# On a chi-square curve weights fall along a straight line and are zero from :math:`\mu`
# on; on a KL curve each further mistake divides the weight by the same number. The KL
# weights are much more concentrated (the scales differ). With the printed constant the
# kl distance gives the loosest of the chi-square bounds, and weights near the prior;
# with the right one it gives the tightest. All these bounds are about the classifier
# that draws a member for each row; none says that one set of weights makes fewer
# mistakes than another.
