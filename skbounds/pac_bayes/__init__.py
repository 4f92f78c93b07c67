"""PAC-Bayes: ensembles of classifiers that certify their own test error.

After P. Sahu and N. Hemachandra, "Optimal posteriors for chi-squared divergence based
PAC-Bayesian bounds and comparison with KL-divergence based optimal posteriors and
cross-validation procedure".
"""

from skbounds.pac_bayes._bounds import (
    c_bound,
    chi2_constant,
    kl_inverse,
    pac_bayes_bound,
    tandem_bound,
)
from skbounds.pac_bayes._display import CertificateDisplay
from skbounds.pac_bayes._ensemble import PACBayesEnsembleClassifier
from skbounds.pac_bayes._monitor import VoteMonitor
from skbounds.pac_bayes._posteriors import optimal_posterior
from skbounds.pac_bayes._renyi import (
    posterior_concentration,
    renyi_bound,
    renyi_constant,
)
from skbounds.pac_bayes._svm_ensemble import PACBayesSVMEnsemble
from skbounds.pac_bayes._tails import binomial_tail_bound, occam_bound

__all__ = [
    "CertificateDisplay",
    "PACBayesEnsembleClassifier",
    "PACBayesSVMEnsemble",
    "VoteMonitor",
    "binomial_tail_bound",
    "c_bound",
    "chi2_constant",
    "kl_inverse",
    "occam_bound",
    "optimal_posterior",
    "pac_bayes_bound",
    "posterior_concentration",
    "renyi_bound",
    "renyi_constant",
    "tandem_bound",
]
