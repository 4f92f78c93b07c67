"""
Is my A/B test done?
====================

Two buttons against the one we have, conversions of some 4 %, and somebody who looks at
the numbers every morning. :class:`~skbounds.sequential.BestArmTest` may be looked at
after every user; a z-test may not.
"""

# %%
# Users come in days of 800. What they did is told to the test day by day: intervals of
# the lift over the control, which hold at all times at once, narrow down until 0 is
# outside, and an arm may be adopted on its own evidence.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from skbounds.sequential import BestArmDisplay, BestArmTest, planned_pulls

names = ["control", "green", "large"]
rates = np.array([0.040, 0.041, 0.055])
rng = np.random.default_rng(0)

test = BestArmTest(names, rewards="binary", delta=0.05)
arms, sold = [], []
for _ in range(30):
    today = test.ask(800)
    bought = rng.random(800) < rates[[names.index(arm) for arm in today]]
    test.tell(today, bought)
    arms.extend(today)
    sold.extend(bought)
    if test.done_:
        break

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
BestArmDisplay.from_log(arms, sold, test=test, ax=ax)
ax.set_ylim(-0.03, 0.05)
plt.show()

# %%
# Each day somebody asks "is it done?", and the report says so, or about how many more
# users it takes.

print(test.report())

# %%
# It could have been planned: so many users of each arm for a lift of 1.5 points, at
# level .05 with two alternatives.

print(planned_pulls(0.015, rewards="binary", base_rate=0.04, n_alternatives=2))

# %%
# **Looking too often.** 200 experiments without any difference, of two arms and 20 000
# users. A z-test that is looked at every 200 users and believed as soon as it is
# significant, beside the e-process, which is looked at after each one.

n_runs, n_users = 200, 20_000
looks = np.arange(200, n_users + 1, 200)
z_wrong, e_wrong = np.zeros((2, n_runs, len(looks)), dtype=bool)
for run in range(n_runs):
    rng = np.random.default_rng(run)
    pair, sold = np.tile([0, 1], n_users // 2), rng.random(n_users) < 0.04
    counts = looks / 2
    treated = np.cumsum(sold & (pair == 1))[looks - 1] / counts
    control = np.cumsum(sold & (pair == 0))[looks - 1] / counts
    pooled = 0.5 * (treated + control)
    z = (treated - control) / np.sqrt(2 * pooled * (1 - pooled) / counts + 1e-12)
    z_wrong[run] = np.logical_or.accumulate(ndtr(-z) <= 0.05)
    null = BestArmTest(2, rewards="binary")
    for k, end in enumerate(looks):
        null.observe(pair[end - 200 : end], sold[end - 200 : end])
        e_wrong[run, k] = null.rejected(0.05)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(looks, z_wrong.mean(axis=0), label="z-test, believed at the first p below .05")
ax.plot(looks, e_wrong.mean(axis=0), label="e-process")
ax.axhline(0.05, color="0.5", linewidth=0.8)
ax.set(xlabel="users", ylabel="share of experiments that were wrong", ylim=(0, None))
ax.legend(fontsize="small")
plt.show()

# %%
# The z-test was made for one look. After a hundred looks it has been wrong in more than
# a third of the experiments, and with more users it would be in all. The e-process
# stays below its level for ever; what that costs is some 1.7 times the users of a
# z-test that is looked at once, on average.
