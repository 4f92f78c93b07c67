"""
An experiment that stops by itself
==================================

A control and five alternatives. :class:`~skbounds.sequential.BestArmTest` with its
bandit, beside the same test with equal numbers of rewards for all arms: lifts over the
control over time, the p-value, and how many rewards are needed.
"""

# %%
# ``ask`` names the arm to be tried next, ``tell`` takes its reward. What was pulled is
# kept in a log, from which :class:`~skbounds.sequential.BestArmDisplay` computes lifts,
# their intervals and p-values at any time.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import BestArmDisplay, BestArmTest, simulate_best_arm_tests

expected = np.array([0.0, 0.1, 0.3, 0.5, 0.8, 1.4])
names = {"toptwo": "bandit: the leader and its rival", "uniform": "all equally often"}

figure, axes = plt.subplots(2, 1, figsize=(8, 9), layout="constrained")
for ax, sampler in zip(axes, names, strict=True):
    rng = np.random.default_rng(2)
    test = BestArmTest(6, delta=0.05, sigma=1.0, sampler=sampler)
    log_arms, log_rewards = [], []
    while not test.done_:
        arms = test.ask()
        rewards = rng.normal(expected[arms])
        test.tell(arms, rewards)
        log_arms.extend(arms)
        log_rewards.extend(rewards)
    display = BestArmDisplay.from_log(log_arms, log_rewards, test=test, ax=ax)
    display.p_ax_.axhline(np.log10(0.05), color="0.4", linewidth=0.5)
    ax.set_ylim(-2.0, 3.5)
    ax.set_title(
        f"{names[sampler]}: arm {test.recommendation_} after {test.n_pulls_} rewards, "
        f"{test.counts_[0]} of the control"
    )
axes[0].get_legend().remove()
plt.show()

# %%
# Both stop once there is evidence that one arm is better than each of the others. The
# bandit asks for the two arms between which that is undecided, so that those far
# behind, here the control among them, get few rewards. Dashed lines show from when on
# an arm may be adopted, being better than the control, which may be known long before
# it is known which one is best. The p-value (dotted; the thin line is at 0.05) is small
# enough to reject; how large the improvement is the intervals say.
#
# **How many rewards?** Averages over 100 simulated experiments, in which all but the
# best arm have expectations between 0 and 0.4, and the best has 1.4; beside them the
# radius of the thesis, which knew no e-processes.

n_arms = [3, 6, 12, 25, 50]
methods = {
    "bandit": {"sampler": "toptwo"},
    "all equally often": {"sampler": "uniform"},
    "bandit of the thesis": {"evidence": "lil"},
    "thesis, all equally often": {"evidence": "lil", "sampler": "uniform"},
}
pulls = {name: [] for name in methods}
for size in n_arms:
    rng = np.random.default_rng(size)
    means = rng.uniform(0.0, 0.4, size=(100, size))
    means[:, -1] = 1.4
    for name, options in methods.items():
        found = simulate_best_arm_tests(
            means, max_pulls=100_000, random_state=0, **options
        )
        pulls[name].append(found["n_pulls"].mean())

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for k, name in enumerate(methods):
    ax.plot(
        n_arms, pulls[name], "o-" if k < 2 else "o--", color=f"C{k % 2}", label=name
    )
ax.set(xlabel="arms, with the control", ylabel="rewards until an arm is certified")
ax.set(xscale="log", yscale="log")
ax.set_xticks(n_arms, n_arms)
ax.set_yticks([50, 200, 500, 1000, 2000, 5000], [50, 200, 500, 1000, 2000, 5000])
ax.minorticks_off()
ax.legend(fontsize="small")
plt.show()

for name in methods:
    print(f"{name:28s}", *(f"{value:7.0f}" for value in pulls[name]))

# %%
# The more arms there are, the more the bandit saves, and e-processes save again.
