r"""
When a certificate says little, and what to do about it
=======================================================

A bound on the error of two classes that is not below one half says nothing that
guessing would not achieve. How high it lies is a matter of the number of rows that
certify, of the error itself, and of whether the weights of the vote were chosen on the
certification rows.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skbounds import CertificateDisplay, PACBayesSVMEnsemble

# That bounds are weak on few rows is what the picture shows.
warnings.filterwarnings("ignore", message="Only .* certification rows")
warnings.filterwarnings("ignore", message=".* is vacuous")
rng = np.random.default_rng(0)


def two_norms(n, flipped):
    """Return two normal clouds in 20 dimensions, some labels flipped."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 20)) + (2 * y[:, None] - 1) * 2 / np.sqrt(20)
    return X, np.where(rng.uniform(size=n) < flipped, 1 - y, y)


figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for flipped, posterior, style, label in [
    (0.2, "bound", "^-", "a fifth flipped, chosen weights"),
    (0.2, "prior", "s-", "a fifth flipped, fixed weights"),
    (0.0, "prior", "o-", "none flipped, fixed weights"),
]:
    points = []
    for n in np.repeat([60, 120, 250, 500, 1000, 2000], 6):
        clf = PACBayesSVMEnsemble(posterior=posterior, random_state=0)
        clf.fit(*two_norms(n, flipped))
        points.append((clf.n_certification_, clf.vote_bound_))
    m, bound = np.mean(np.reshape(points, (6, 6, 2)), axis=1).T
    ax.plot(m, bound, style, ms=7, label=label)
ax.axhline(0.5, color="black", lw=0.8)
ax.set(xscale="log", xlabel="certification rows m", ylim=(0, 1.05))
ax.set_xticks(m, m.astype(int))
ax.minorticks_off()
ax.set_ylabel("bound on the risk of the vote")
ax.legend()
plt.show()

# %%
# Two normal clouds of rows, a fifth of the labels flipped or none; three tenths of the
# rows certify. Means over six draws, with :math:`\delta = 0.05`. The weights are fixed
# before the certification rows are looked at (the default) or chosen on them
# (``posterior="bound"``, certified by twice the bound of the Gibbs classifier).
#
# With few rows and noisy labels the certificate is close to one half, and above it
# where the weights were chosen on the certification rows. No cleverer bound can repair
# that: for a fixed classifier the exact binomial tail is the smallest limit that holds
# for every risk. For a vote that is wrong on so many of the m rows it is

from skbounds.pac_bayes import binomial_tail_bound

print("    m", *(f"{error:4d} %" for error in (0, 10, 25, 40)))
for rows in (20, 60, 180, 600):
    limits = [
        binomial_tail_bound(error * rows // 100, rows, delta=0.05)
        for error in (0, 10, 25, 40)
    ]
    print(f"{rows:5d}", *(f"{limit:6.3f}" for limit in limits))

# %%
# What helps is more rows that certify, by more data or by a larger ``cert_size``, which
# costs training rows; a larger ``delta``, chosen beforehand; and weights that are fixed
# beforehand, which avoid the factor of two. What does not help is to fit several times
# and keep the best certificate: it is then no longer one.
#
# **The members**, weights and bounds of a single fit, and errors on 5000 other rows:

clf = PACBayesSVMEnsemble(random_state=0).fit(*two_norms(1000, 0.2))
figure, ax = plt.subplots(figsize=(6.4, 5.5), layout="constrained")
CertificateDisplay.from_estimator(clf, *two_norms(5000, 0.2), ax=ax)
ax.set_xticks(clf.Cs_, [f"{C:.2g}" for C in clf.Cs_])
ax.minorticks_off()
ax.set_ylim(0.0, 0.6)  # room for the legend
plt.show()
