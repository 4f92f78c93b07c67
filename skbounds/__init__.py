"""Estimators that know something true about their own future error.

Every public name is importable from here and from its topic package; topics are loaded
when one of their names is first used.
"""

from importlib import import_module

__version__ = "0.2.0"

# By its name true for type checkers, which cannot follow names that are loaded late;
# typing itself would take most of the time of this import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from skbounds import bolstering as bolstering
    from skbounds import fenchel_young as fenchel_young
    from skbounds import hmm as hmm
    from skbounds import kernel_boost as kernel_boost
    from skbounds import pac_bayes as pac_bayes
    from skbounds import sequential as sequential
    from skbounds import smp as smp
    from skbounds._show_versions import show_versions as show_versions
    from skbounds.bolstering import *  # noqa: F403
    from skbounds.fenchel_young import *  # noqa: F403
    from skbounds.hmm import *  # noqa: F403
    from skbounds.kernel_boost import *  # noqa: F403
    from skbounds.pac_bayes import *  # noqa: F403
    from skbounds.sequential import *  # noqa: F403
    from skbounds.smp import *  # noqa: F403

_TOPICS = {
    "bolstering": (
        "BolsteredComparison",
        "BolsteredEstimate",
        "BolsteredEstimateDisplay",
        "BolsteredScorer",
        "BolsteredSearchCV",
        "FullSampleSplit",
        "MomentKernel",
        "SampledKernel",
        "bolstered_val_score",
        "compare_bolstered",
        "increment_bound",
        "log_pseudo_likelihood",
        "vc_bound",
    ),
    "fenchel_young": (
        "FenchelYoungOnlineClassifier",
        "FenchelYoungOnlineMultilabelClassifier",
        "FenchelYoungOnlineOrdinalClassifier",
        "FenchelYoungOnlineRanker",
        "FenchelYoungOnlineStructured",
        "SurrogateRegretDisplay",
    ),
    "hmm": (
        "BaumWelchHMM",
        "EMConvergenceDisplay",
        "HMMDisplay",
        "HMMForecast",
        "PopulationStep",
        "contraction_factor",
        "n_em_steps",
        "statistical_radius",
        "symmetric_em_operator",
        "symmetric_population_operator",
        "symmetric_surrogate",
        "truncation_error",
    ),
    "kernel_boost": (
        "EarlyStoppedKernelBoost",
        "EarlyStoppedKernelBoostClassifier",
        "RelevanceDisplay",
        "StoppingPathDisplay",
        "boosting_constants",
        "critical_radius",
        "exponential_family",
        "kernel_regularity",
        "literal_stopping_time",
        "localised_complexity",
        "population_critical_radius",
        "sobolev_eigenvalues",
        "stopped_error_bound",
    ),
    "pac_bayes": (
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
    ),
    "sequential": (
        "ADDIS",
        "AlphaInvesting",
        "AlphaSpending",
        "BatchBH",
        "BestArmDisplay",
        "BestArmTest",
        "ELOND",
        "ExperimentReport",
        "LOND",
        "LORD",
        "LORDPlusPlus",
        "LORDPrime",
        "MABFDR",
        "OnlineFDRDisplay",
        "RunningTest",
        "SAFFRON",
        "StudyReport",
        "Uncorrected",
        "acceptable_arms",
        "always_valid_pvalue",
        "best_arm_discovery_rate",
        "false_discovery_rate",
        "lift_interval",
        "lil_delta",
        "lil_radius",
        "log_evalue",
        "marginal_false_discovery_rate",
        "online_ebh",
        "planned_pulls",
        "sample_complexity_bound",
        "simulate_best_arm_tests",
    ),
    "smp": (
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
    ),
}
_TOPIC_OF = {name: topic for topic, names in _TOPICS.items() for name in names}

__all__ = [*sorted(_TOPIC_OF), *_TOPICS, "show_versions"]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _TOPICS:
            return import_module(f"{__name__}.{name}")
        if name in _TOPIC_OF:
            return getattr(import_module(f"{__name__}.{_TOPIC_OF[name]}"), name)
        if name == "show_versions":
            return import_module(f"{__name__}._show_versions").show_versions
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
