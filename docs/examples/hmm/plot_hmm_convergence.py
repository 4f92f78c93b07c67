"""
How far EM has converged, and how far it needs to
=================================================

Each iteration of Baum-Welch brings the means nearer to where EM ends by about the same
factor. Their distance from the true means falls with it only to a floor that the number
of rows sets. :class:`~skbounds.hmm.EMConvergenceDisplay` draws both.
"""

# %%
# The setting is that of the experiments of Yang, Balakrishnan and Wainwright: one
# sequence of 1000 rows in ten dimensions, outputs N(-mu, I) or N(mu, I), and
# probability 0.2 to stay in a state. EM starts from five points within a quarter of
# \|mu\| around mu, and from probability 1/2 to stay. The signal-to-noise ratio
# \|mu\| / sigma is 1.5 in the first picture. Distances are those of both means taken
# together, the square root of 2 times that of mu.

import matplotlib.pyplot as plt
import numpy as np

from skbounds import BaumWelchHMM, EMConvergenceDisplay

n, d, stay = 1000, 10, 0.2


def draw(snr, seed, n=n):
    """Return a sequence and mu."""
    rng = np.random.default_rng(seed)
    mu = np.full(d, snr / np.sqrt(d))
    states = np.cumsum(rng.random(n) > stay) % 2
    return np.where(states, 1.0, -1.0)[:, None] * mu + rng.normal(size=(n, d)), mu


model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0)
X, mu = draw(1.5, seed=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
EMConvergenceDisplay.from_estimator(
    model, X, true_means=[-mu, mu], n_iter=50, random_state=0, ax=axes[0]
)
axes[0].set_title(f"n = {n}, |mu| / sigma = 1.5")

sizes = np.array([250, 1000, 4000, 16000])
floors = np.empty((len(sizes), 8))
for i, size in enumerate(sizes):
    for seed in range(8):
        X, mu = draw(1.5, seed, size)
        floors[i, seed] = np.linalg.norm(model.fit(X).means_[1] - mu)
axes[1].loglog(sizes, floors, "o", color="C3", alpha=0.5, ms=4)
axes[1].loglog(sizes, np.sqrt(d / sizes), color="black", label=r"$\sqrt{d/n}$")
axes[1].plot([], [], "o", color="C3", label=r"$\|\mu - \mu^*\|$, eight sequences each")
axes[1].set(xlabel="rows", title="the floor")
axes[1].legend(fontsize="small")
plt.show()

# %%
# All five starts end at the same point. After two or three iterations the floor is
# reached, and the rest is optimisation without any use for the estimate. The floor
# falls like :math:`\sqrt{d/n}`, about what it would be with known states.
#
# Below, three sequences and two starts for each of four signal-to-noise ratios. EM
# runs for 400 iterations, by which it has all but ended; 100 are shown. In the titles
# are the rates: ``contraction_rate_`` of a fit to each sequence, which can be had
# without knowing the truth.

figure, axes = plt.subplots(1, 4, figsize=(12, 4), sharey=True, layout="constrained")
for ax, snr in zip(axes, [0.5, 1.0, 1.5, 2.0], strict=True):
    rates, optimisation, statistical = [], [], []
    for seed in range(3):
        X, mu = draw(snr, seed)
        display = EMConvergenceDisplay.from_estimator(
            model, X, true_means=[-mu, mu], n_starts=2, n_iter=400, random_state=seed,
            plot=False,
        )  # fmt: skip
        # What is below 1e-14 is rounding.
        optimisation += [np.where(e > 1e-14, e, 0.0) for e in display.optimisation]
        statistical += display.statistical
        fitted = BaumWelchHMM(
            structure="symmetric", sigma=1.0, tol=1e-9, max_iter=1000
        ).fit(X)
        rates.append(fitted.contraction_rate_)
    EMConvergenceDisplay(optimisation=optimisation, statistical=statistical).plot(ax)
    ax.set(xlim=(0, 100), ylim=(1e-14, 10))
    ax.set_title(f"|mu| / sigma = {snr:g}\nrates {min(rates):.2f} to {max(rates):.2f}")
    if snr > 0.5:
        ax.get_legend().remove()
        ax.set_ylabel("")
plt.show()

# %%
# The less the states overlap, the faster EM is. At 0.5 it takes tens of iterations for
# each decimal, and the floor itself is a third of \|mu\|: a rate near 1 also says that
# the data tell little. The theory has a rate of this form, with constants that it does
# not give; the one that can be worked out is below 1 only for squared ratios beyond 66.
