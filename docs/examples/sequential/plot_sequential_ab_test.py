"""
Is my A/B test done?
====================

Two buttons against the one we have, conversions of some 4 %, and somebody who looks at
the numbers every morning. :class:`~skbounds.sequential.BestArmTest` may be looked at
after every user; a z-test may not.
"""

# %%
# Users come in days of 800. What they did is told to the test day by day: intervals of
# the lift over the control, which hold at all times at once, narrow down, and an arm
# may be adopted on its own evidence (dashed), here just before its interval leaves 0.

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

figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
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

looks, pair = np.arange(200, 20_001, 200), np.tile([0, 1], 100)
z_wrong, e_wrong = np.zeros((2, 200, 100), dtype=bool)
for run in range(200):
    sold = np.random.default_rng(run).random((100, 200)) < 0.04
    control, treated = (sold[:, k::2].sum(axis=1).cumsum() / looks * 2 for k in (0, 1))
    pooled = 0.5 * (treated + control)
    z = (treated - control) / np.sqrt(4 * pooled * (1 - pooled) / looks + 1e-12)
    z_wrong[run] = np.logical_or.accumulate(ndtr(-z) <= 0.05)
    null = BestArmTest(2, rewards="binary")
    for k, block in enumerate(sold):
        null.observe(pair, block)
        e_wrong[run, k] = null.rejected(0.05)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(looks, z_wrong.mean(axis=0))
ax.text(
    20_000, 0.3, "z-test, believed at the first p below .05", color="C0", ha="right"
)
ax.plot(looks, e_wrong.mean(axis=0), lw=2)
ax.text(20_000, 0.02, "e-process", color="C1", ha="right")
ax.axhline(0.05, color="0.5", lw=0.8)
ax.set(xlabel="users", ylabel="share of experiments that were wrong", ylim=(0, None))
plt.show()

# %%
# The z-test was made for one look. After a hundred looks it has been wrong in more than
# a third of the experiments, and with more users it would be in all. The e-process
# stays below its level for ever; what that costs is some 1.7 times the users of a
# z-test that is looked at once, on average.
