"""Kernel boosting that knows when to stop."""

from skbounds.kernel_boost._classifier import EarlyStoppedKernelBoostClassifier
from skbounds.kernel_boost._display import RelevanceDisplay, StoppingPathDisplay
from skbounds.kernel_boost._regressor import EarlyStoppedKernelBoost
from skbounds.kernel_boost._theory import (
    boosting_constants,
    critical_radius,
    exponential_family,
    kernel_regularity,
    literal_stopping_time,
    localised_complexity,
    population_critical_radius,
    sobolev_eigenvalues,
    stopped_error_bound,
)

__all__ = [
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
]
