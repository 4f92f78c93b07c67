"""Sequential tests that may be watched at any time, with few false discoveries."""

from skbounds.sequential._adaptive import ADDIS, SAFFRON, AlphaInvesting
from skbounds.sequential._batches import BatchBH, online_ebh
from skbounds.sequential._best_arm import BestArmTest
from skbounds.sequential._display import BestArmDisplay, OnlineFDRDisplay
from skbounds.sequential._evidence import lift_interval, log_evalue, planned_pulls
from skbounds.sequential._functions import (
    always_valid_pvalue,
    lil_delta,
    lil_radius,
    sample_complexity_bound,
)
from skbounds.sequential._lond import ELOND, LOND
from skbounds.sequential._mab_fdr import MABFDR
from skbounds.sequential._online_procedure import RunningTest
from skbounds.sequential._procedures import (
    LORD,
    AlphaSpending,
    LORDPlusPlus,
    LORDPrime,
    Uncorrected,
)
from skbounds.sequential._rates import (
    acceptable_arms,
    best_arm_discovery_rate,
    false_discovery_rate,
    marginal_false_discovery_rate,
)
from skbounds.sequential._report import ExperimentReport, StudyReport
from skbounds.sequential._simulation import simulate_best_arm_tests

__all__ = [
    "ADDIS",
    "ELOND",
    "LOND",
    "LORD",
    "MABFDR",
    "SAFFRON",
    "AlphaInvesting",
    "AlphaSpending",
    "BatchBH",
    "BestArmDisplay",
    "BestArmTest",
    "ExperimentReport",
    "LORDPlusPlus",
    "LORDPrime",
    "OnlineFDRDisplay",
    "RunningTest",
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
]
