"""
An experiment that stops by itself
==================================

How many rewards does it take to find the best of some arms?
:class:`~skbounds.sequential.BestArmTest` with its bandit, beside the same test with
equal numbers of rewards for all arms, and the radius of the thesis ("lil"), which knew
no e-processes.
"""

# %%
# Averages over 100 simulated experiments, in which all but the best arm have
# expectations between 0 and 0.4, and the best has 1.4.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import BestArmDisplay, BestArmTest, simulate_best_arm_tests

methods = {
    "all equally, thesis": ({"evidence": "lil", "sampler": "uniform"}, "C1s--"),
    "bandit, thesis": ({"evidence": "lil"}, "C0o--"),
    "all equally often": ({"sampler": "uniform"}, "C1s-"),
    "bandit": ({}, "C0o-"),
}
sizes = [3, 6, 12, 25, 50]
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for name, (options, style) in methods.items():
    pulls = []
    for size in sizes:
        means = np.random.default_rng(size).uniform(0.0, 0.4, size=(100, size))
        means[:, -1] = 1.4
        found = simulate_best_arm_tests(
            means, max_pulls=100_000, random_state=0, **options
        )
        pulls.append(found["n_pulls"].mean())
    ax.plot(sizes, pulls, style, label=name)
    print(f"{name:20}", *(f"{value:7.0f}" for value in pulls))
ax.set(xscale="log", yscale="log", xlabel="arms, with the control")
ax.set_ylabel("rewards until an arm is certified")
ax.set_xticks(sizes, sizes)
ax.set_yticks([50, 200, 1000, 5000], [50, 200, 1000, 5000])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The more arms there are, the more the bandit saves, and e-processes save again.
#
# **One experiment**, with a control and three alternatives. ``ask`` names the arm to be
# tried next, ``tell`` takes its reward. What was pulled is kept in a log, from which
# :class:`~skbounds.sequential.BestArmDisplay` computes lifts, their intervals and
# p-values at any time.

expected = np.array([0.0, 0.3, 0.8, 1.4])
rng = np.random.default_rng(2)
test = BestArmTest(4, delta=0.05, sigma=1.0)
arms, rewards = [], []
while not test.done_:
    asked = test.ask()
    got = rng.normal(expected[asked])
    test.tell(asked, got)
    arms.extend(asked)
    rewards.extend(got)

figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
BestArmDisplay.from_log(arms, rewards, test=test, ax=ax)
ax.set_ylim(-2.0, 3.5)
plt.show()
print(f"arm {test.recommendation_}; rewards of each arm: {test.counts_}")

# %%
# It stops once there is evidence that one arm is better than each of the others. The
# bandit asks for the two arms between which that is undecided, so that those far
# behind, here the control among them, get few rewards. Dashed lines show from when on
# an arm may be adopted, being better than the control. The p-value (dotted) is small
# enough to reject; how large the improvement is the intervals say.
