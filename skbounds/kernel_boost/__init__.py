"""Kernel boosting that knows when to stop."""

from skbounds.kernel_boost._classifier import EarlyStoppedKernelBoostClassifier
from skbounds.kernel_boost._display import StoppingPathDisplay
from skbounds.kernel_boost._regressor import EarlyStoppedKernelBoost

__all__ = [
    "EarlyStoppedKernelBoost",
    "EarlyStoppedKernelBoostClassifier",
    "StoppingPathDisplay",
]
