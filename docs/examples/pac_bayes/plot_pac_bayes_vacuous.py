r"""
When a certificate says little, and what to do about it
=======================================================

A bound on the error of two classes that is not below one half says nothing that
guessing would not achieve. How high it lies is a matter of the number of rows that
certify, of the error itself, and of whether the weights of the vote were chosen on the
certification rows.
"""

# %%
# Two normal clouds of rows, a fifth of the labels flipped or none; a quarter of the
# rows certifies. Lines: the exact binomial tail for a vote that is wrong on 0, 10, 25
# or 40 % of the m certification rows, with :math:`\delta = 0.05`. Marks: fits of
# :class:`~skbounds.pac_bayes.PACBayesSVMEnsemble`, means over six draws of the rows,
# with weights of the vote fixed before the certification rows are looked at (the
# default) or chosen on them (``posterior="bound"``, certified by twice the bound of the
# Gibbs classifier). On the right the members, weights and bounds of a single fit.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skbounds import CertificateDisplay, PACBayesSVMEnsemble
from skbounds.pac_bayes import binomial_tail_bound

rng = np.random.default_rng(0)


def two_norms(n, flipped):
    """Return two normal clouds in 20 dimensions, some labels flipped."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 20)) + (2 * y[:, None] - 1) * 2 / np.sqrt(20)
    return X, np.where(rng.uniform(size=n) < flipped, 1 - y, y)


def fit(n, flipped, posterior="prior"):
    """Return the ensemble, fitted to n rows."""
    clf = PACBayesSVMEnsemble(posterior=posterior, random_state=0)
    with warnings.catch_warnings():
        # That bounds are weak on few rows is what the picture shows.
        warnings.filterwarnings("ignore", message="Only .* certification rows")
        warnings.filterwarnings("ignore", message=".* is vacuous")
        return clf.fit(*two_norms(n, flipped))


figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
m = np.arange(20, 501, 20)
for error, alpha in [(40, 1.0), (25, 0.75), (10, 0.5), (0, 0.3)]:
    limits = [binomial_tail_bound(error * n // 100, n, delta=0.05) for n in m.tolist()]
    axes[0].plot(m, limits, color="tab:blue", alpha=alpha, label=f"{error} % wrong")
sizes = np.array([60, 120, 250, 500, 1000, 2000])
for flipped, posterior, marker, label in [
    (0.2, "bound", "^", "fifth flipped, chosen weights"),
    (0.2, "prior", "s", "fifth flipped, fixed weights"),
    (0.0, "prior", "o", "none flipped, fixed weights"),
]:
    fits = [[fit(n, flipped, posterior).vote_bound_ for _ in range(6)] for n in sizes]
    axes[0].plot(sizes / 4, np.mean(fits, axis=1), marker, color="tab:red", label=label)
axes[0].set_xscale("log")
axes[0].set_xticks([15, 30, 60, 125, 250, 500], [15, 30, 60, 125, 250, 500])
axes[0].minorticks_off()
axes[0].set_ylim(0.0, 1.35)
axes[0].set_xlabel("certification rows m")
axes[0].set_ylabel("bound on the risk of the vote")
axes[0].legend(ncols=2)

clf = fit(1000, 0.2)
CertificateDisplay.from_estimator(clf, *two_norms(5000, 0.2), ax=axes[1])
axes[1].set_xticks(clf.Cs_, [f"{C:.2g}" for C in clf.Cs_])
axes[1].minorticks_off()
axes[1].set_ylim(0.0, 0.6)  # room for the legend
plt.show()

# %%
# With few rows and noisy labels the certificate is close to one half, and above it
# where the weights were chosen on the certification rows. No cleverer bound can repair
# that: for a fixed classifier the exact tail is the smallest limit that holds for every
# risk. What helps is more rows that certify, by more data or by a larger ``cert_size``,
# which costs training rows; a larger ``delta``, chosen beforehand; and weights that are
# fixed beforehand, which avoid the factor of two. What does not help is to fit several
# times and keep the best certificate: it is then no longer one.
