"""Hidden Markov models, by Baum-Welch."""

from skbounds.hmm._display import EMConvergenceDisplay, HMMDisplay
from skbounds.hmm._forecast import HMMForecast
from skbounds.hmm._hmm import BaumWelchHMM
from skbounds.hmm._theory import (
    PopulationStep,
    contraction_factor,
    n_em_steps,
    statistical_radius,
    symmetric_em_operator,
    symmetric_population_operator,
    symmetric_surrogate,
    truncation_error,
)

__all__ = [
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
]
