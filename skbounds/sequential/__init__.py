"""Sequential tests that may be watched at any time, with few false discoveries."""

from skbounds.sequential._best_arm import BestArmTest, simulate_best_arm_tests
from skbounds.sequential._display import BestArmDisplay, OnlineFDRDisplay
from skbounds.sequential._functions import (
    always_valid_pvalue,
    lil_delta,
    lil_radius,
    sample_complexity_bound,
)
from skbounds.sequential._mab_fdr import MABFDR
from skbounds.sequential._procedures import LORD, AlphaSpending, LORDPlusPlus, LORDPrime

__all__ = [
    "LORD",
    "MABFDR",
    "AlphaSpending",
    "BestArmDisplay",
    "BestArmTest",
    "LORDPlusPlus",
    "LORDPrime",
    "OnlineFDRDisplay",
    "always_valid_pvalue",
    "lil_delta",
    "lil_radius",
    "sample_complexity_bound",
    "simulate_best_arm_tests",
]
