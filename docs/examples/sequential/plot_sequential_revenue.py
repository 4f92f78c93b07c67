"""
Revenue per user
================

Most users spend nothing, some spend a little, a few spend much. What may be said of the
mean, and how soon? Three ways: a cap, estimated variances, and estimated variances with
what users spent before.
"""

# %%
# Of 1000 users 60 buy, for 20 on average, and the tail is long. The treatment sells to
# a third more. Spending is related to last month's.

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import BestArmTest

CAP = 100.0


def visits(n, rng, lift):
    """Return arms, revenue, and what the same users spent before."""
    arms = rng.integers(2, size=n)
    taste = rng.lognormal(0.0, 0.7, size=n)
    share = 0.06 * np.where(arms == 1, 1.0 + lift, 1.0)
    amounts = 15.0 * taste * rng.lognormal(0.0, 0.4, size=n)
    before = (rng.random(n) < 0.5) * 15.0 * taste
    return arms, (rng.random(n) < share) * amounts, before


ways = {
    "bounded, cap at 100": {"rewards": "bounded", "bounds": (0.0, CAP)},
    "binary, cap at 100": {"rewards": "binary", "bounds": (0.0, CAP)},
    "estimated variance": {},
    "estimated, with covariate": {"covariate_coef": 0.05},
}


def play(way, arms, revenue, before, step=500):
    """Return log10 of the p-value after each step."""
    test, path = BestArmTest(2, **ways[way]), []
    if "bounds" in ways[way]:
        revenue = np.minimum(revenue, CAP)
    for k in range(0, len(arms), step):
        part = slice(k, k + step)
        extra = {"covariates": before[part]} if "covariate" in way else {}
        test.observe(arms[part], revenue[part], **extra)
        path.append(test.log_p_value_ / np.log(10.0))
    return test, np.array(path)


log = visits(60_000, np.random.default_rng(0), 1 / 3)
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
tests = {}
for way in ways:
    tests[way], path = play(way, *log)
    ax.plot(500 * np.arange(1, len(path) + 1), path, label=way)
ax.axhline(np.log10(0.05), color="0.5", linewidth=0.8)
ax.set(xlabel="users", ylabel="log10 of the p-value")
ax.legend(fontsize="small")
plt.show()

# %%
# "bounded" looks at how much rewards vary, which is little within so wide a range, and
# is valid as it stands: of revenue above the cap nothing is claimed. "binary" is valid
# too, but thinks of the worst law within the range. Estimated variances need no cap,
# and are asymptotic: the report says so. What users spent before foretells little where
# so few buy, and is no help here; of time on site or page views it halves the users.

print(tests["bounded, cap at 100"].report())
print()
print(tests["estimated variance"].report())

# %%
# **Is that right?** 200 experiments in which the arms do not differ, 20 000 users each,
# at level .05:

for way in ways:
    wrong = 0
    for run in range(200):
        null = visits(20_000, np.random.default_rng(run), 0.0)
        wrong += play(way, *null, step=20_000)[0].p_value_ <= 0.05
    print(f"{way:28s} {wrong / 200:.3f}")

# %%
# All are below. With far fewer buyers, or far fewer users of one arm than of the other,
# estimated variances are wrong more often than they say: the guide has the numbers, and
# a cap is the way out.
