"""
An experiment that stops by itself
==================================

A control and five alternatives. :class:`~skbounds.sequential.BestArmTest` with its
bandit, beside the same test with equal numbers of rewards for all arms: bounds over
time, the p-value, and how many rewards are needed.
"""

# %%
# ``ask`` names the arms of a round, ``tell`` takes their rewards. What was pulled is
# kept in a log, from which :class:`~skbounds.sequential.BestArmDisplay` computes means,
# bounds and p-values at any time.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import BestArmDisplay, BestArmTest, simulate_best_arm_tests

expected = np.array([0.0, 0.1, 0.3, 0.5, 0.8, 1.4])
names = {"lucb": "bandit (Algorithm 1)", "uniform": "all arms equally often"}

figure, axes = plt.subplots(2, 1, figsize=(8, 9), sharex=True, layout="constrained")
for ax, sampler in zip(axes, names, strict=True):
    rng = np.random.default_rng(0)
    test = BestArmTest(6, delta=0.05, sigma=1.0, max_pulls=20_000, sampler=sampler)
    log_arms, log_rewards = [], []
    while not test.done_:
        arms = test.ask()
        rewards = rng.normal(expected[arms])
        test.tell(arms, rewards)
        log_arms.extend(arms)
        log_rewards.extend(rewards)
    display = BestArmDisplay.from_log(
        log_arms, log_rewards, n_arms=6, sigma=1.0, delta=0.05, ax=ax
    )
    display.p_ax_.axhline(np.log10(0.05), color="0.4", linewidth=0.5)
    ax.set_ylim(-1.5, 3.0)
    ax.set_title(
        f"{names[sampler]}: arm {test.recommendation_} after {test.n_pulls_} rewards, "
        f"{test.counts_[0]} of the control"
    )
axes[0].get_legend().remove()
axes[0].set_xlabel("")
plt.show()

# %%
# Both stop once the lower bound of an arm is above all other upper bounds. The bandit
# asks for the two arms between which that is undecided, so that those far behind,
# here the control among them, get few rewards. That has a price: the control's
# bound stays wide, and the p-value (dotted; the thin line is at 0.05) falls late, and
# no further than it must. It is small enough to reject; it does not say how large the
# improvement is.
#
# **How many rewards?** Averages over 100 simulated experiments, in which all but the
# best arm have expectations between 0 and 0.4, and the best has 1.4.

n_arms = [3, 6, 12, 25, 50]
pulls = {sampler: [] for sampler in names}
for size in n_arms:
    rng = np.random.default_rng(size)
    means = rng.uniform(0.0, 0.4, size=(100, size))
    means[:, -1] = 1.4
    for sampler in names:
        found = simulate_best_arm_tests(
            means, max_pulls=100_000, sampler=sampler, random_state=0
        )
        pulls[sampler].append(found["n_pulls"].mean())

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for sampler, name in names.items():
    ax.plot(n_arms, pulls[sampler], "o-", label=name)
ax.set(xlabel="arms, with the control", ylabel="rewards until an arm is certified")
ax.set(xscale="log", yscale="log")
ax.set_xticks(n_arms, n_arms)
ax.set_yticks([200, 500, 1000, 2000, 5000], [200, 500, 1000, 2000, 5000])
ax.minorticks_off()
ax.legend(fontsize="small")
plt.show()

# %%
# The more arms there are, the more is saved: a sixth with 3 arms, 70 % with 50.
