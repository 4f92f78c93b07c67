"""Sample minmax predictors: near-optimal log loss, also when the model is wrong.

After J. Mourtada and S. Gaïffas (2022), "An improper estimator with optimal excess risk
in misspecified density estimation and logistic regression", JMLR 23(31).
"""

from skbounds.smp._any_classifier import SMPClassifier
from skbounds.smp._any_regressor import SMPRegressor
from skbounds.smp._bounds import eigendecay_bound, small_ball_bound
from skbounds.smp._density import GaussianSMP, MultinomialSMP, PoissonSMP
from skbounds.smp._kernel_ridge import KernelRidgeSMP
from skbounds.smp._logistic import SMPLogisticRegression
from skbounds.smp._logistic_cv import SMPLogisticRegressionCV
from skbounds.smp._regression import log_density_score
from skbounds.smp._ridge import RidgeSMP
from skbounds.smp._ridge_cv import RidgeSMPCV

__all__ = [
    "GaussianSMP",
    "KernelRidgeSMP",
    "MultinomialSMP",
    "PoissonSMP",
    "RidgeSMP",
    "RidgeSMPCV",
    "SMPClassifier",
    "SMPLogisticRegression",
    "SMPLogisticRegressionCV",
    "SMPRegressor",
    "eigendecay_bound",
    "log_density_score",
    "small_ball_bound",
]
