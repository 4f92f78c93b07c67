"""Fenchel-Young online learning: structured predictions with finite surrogate regret.

After S. Sakaue, H. Bao, T. Tsuchiya and T. Oki (2024), "Online structured prediction
with Fenchel-Young losses and improved surrogate regret for online multiclass
classification with logistic loss", COLT 2024.
"""

from skbounds.fenchel_young import structures as structures
from skbounds.fenchel_young._classifier import FenchelYoungOnlineClassifier
from skbounds.fenchel_young._display import SurrogateRegretDisplay
from skbounds.fenchel_young._multilabel import FenchelYoungOnlineMultilabelClassifier
from skbounds.fenchel_young._ordinal import FenchelYoungOnlineOrdinalClassifier
from skbounds.fenchel_young._ranker import FenchelYoungOnlineRanker
from skbounds.fenchel_young._structured import FenchelYoungOnlineStructured

__all__ = [
    "FenchelYoungOnlineClassifier",
    "FenchelYoungOnlineMultilabelClassifier",
    "FenchelYoungOnlineOrdinalClassifier",
    "FenchelYoungOnlineRanker",
    "FenchelYoungOnlineStructured",
    "SurrogateRegretDisplay",
]
