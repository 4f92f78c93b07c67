"""Error estimation from the training rows.

Bolstered (generalised resubstitution) estimates of an estimator's error on new rows,
and the practical default that blends them with a few matched folds.
"""

from skbounds.bolstering._display import BolsteredEstimateDisplay
from skbounds.bolstering._estimates import BolsteredEstimate
from skbounds.bolstering._scorer import BolsteredScorer
from skbounds.bolstering._search import (
    BolsteredSearchCV,
    FullSampleSplit,
    bolstered_val_score,
)

__all__ = [
    "BolsteredEstimate",
    "BolsteredEstimateDisplay",
    "BolsteredScorer",
    "BolsteredSearchCV",
    "FullSampleSplit",
    "bolstered_val_score",
]
