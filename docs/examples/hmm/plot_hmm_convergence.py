r"""
How far EM has converged, and how far it needs to
=================================================

Each iteration of Baum-Welch brings the means nearer to where EM ends by about the same
factor. Their distance from the true means falls with it only to a floor that the number
of rows sets. :class:`~skbounds.hmm.EMConvergenceDisplay` draws both.
"""

# %%
# One sequence of 1000 rows in ten dimensions, outputs N(-mu, I) or N(mu, I).

import matplotlib.pyplot as plt
import numpy as np

from skbounds import BaumWelchHMM, EMConvergenceDisplay


def draw(snr, seed, n=1000):
    """Return a sequence and mu, of which the signal-to-noise ratio is the norm."""
    rng = np.random.default_rng(seed)
    mu = np.full(10, snr / np.sqrt(10))
    states = np.cumsum(rng.random(n) > 0.2) % 2
    return np.where(states, 1.0, -1.0)[:, None] * mu + rng.normal(size=(n, 10)), mu


model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0)
X, mu = draw(1.5, seed=0)
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
EMConvergenceDisplay.from_estimator(
    model, X, true_means=[-mu, mu], n_iter=50, random_state=0, ax=ax
)
plt.show()

# %%
# The setting is that of the experiments of Yang, Balakrishnan and Wainwright, with
# probability 0.2 to stay in a state. EM starts from five points within a quarter of
# \|mu\| around mu, and from probability 1/2 to stay; \|mu\| / sigma is 1.5. Distances
# are those of both means taken together, the square root of 2 times that of mu.
#
# All five starts end at the same point. After two or three iterations the floor is
# reached, and the rest is optimisation without any use for the estimate.
#
# **The floor** falls like :math:`\sqrt{d/n}`, about what it would be with known states.

sizes = np.repeat([250, 1000, 4000, 16000], 8)
floors = []
for k, size in enumerate(sizes):
    X, mu = draw(1.5, k % 8, size)
    floors.append(np.linalg.norm(model.fit(X).means_[1] - mu))
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.loglog(sizes, floors, "o", alpha=0.5)
ax.loglog(sizes, np.sqrt(10 / sizes), color="black")
ax.text(1100, 0.13, r"$\sqrt{d/n}$")
ax.set(xlabel="rows n, eight sequences each", ylabel="distance from the true mu")
plt.show()

# %%
# **The rate.** Three sequences and two starts for each of four signal-to-noise ratios.
# EM runs for 400 iterations, by which it has all but ended; 100 are shown. In the
# titles are the rates: ``contraction_rate_`` of a fit to each sequence, which can be
# had without knowing the truth.

figure, axes = plt.subplots(
    2, 2, figsize=(7, 6), sharex=True, sharey=True, layout="constrained"
)
precise = BaumWelchHMM(structure="symmetric", sigma=1.0, tol=1e-9, max_iter=1000)
for ax, snr in zip(axes.flat, [0.5, 1.0, 1.5, 2.0], strict=True):
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
        rates.append(precise.fit(X).contraction_rate_)
    EMConvergenceDisplay(optimisation=optimisation, statistical=statistical).plot(ax)
    ax.set(xlim=(0, 100), ylim=(1e-14, 10))
    ax.set_title(f"|mu| / sigma = {snr:g}\nrates {min(rates):.2f} to {max(rates):.2f}")
    if snr > 0.5:
        ax.get_legend().remove()
    ax.label_outer()
plt.show()

# %%
# The less the states overlap, the faster EM is. At 0.5 it takes tens of iterations for
# each decimal, and the floor itself is a third of \|mu\| or more: a rate near 1 also
# says that the data tell little. The theory has a rate of this form, with constants
# that it does not give; the one that can be worked out is below 1 only for squared
# ratios beyond 66.
