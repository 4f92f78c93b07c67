"""Error estimation from the training rows.

Errors on held-out rows of a few fits on balanced parts of the rows (the default of
`BolsteredScorer`), and the bolstered (generalised resubstitution) estimates of an
estimator's error on new rows from one fit.
"""

from skbounds.bolstering._display import BolsteredEstimateDisplay
from skbounds.bolstering._record import BolsteredComparison, BolsteredEstimate
from skbounds.bolstering._scorer import BolsteredScorer
from skbounds.bolstering._search import BolsteredSearchCV
from skbounds.bolstering._smoothed._families import MomentKernel, SampledKernel
from skbounds.bolstering._smoothed._theory import (
    increment_bound,
    log_pseudo_likelihood,
    vc_bound,
)
from skbounds.bolstering._val_score import (
    FullSampleSplit,
    bolstered_val_score,
    compare_bolstered,
)

__all__ = [
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
]
