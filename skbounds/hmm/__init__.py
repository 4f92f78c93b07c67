"""Hidden Markov models, by Baum-Welch."""

from skbounds.hmm._display import EMConvergenceDisplay, HMMDisplay
from skbounds.hmm._forecast import HMMForecast
from skbounds.hmm._hmm import BaumWelchHMM

__all__ = ["BaumWelchHMM", "EMConvergenceDisplay", "HMMDisplay", "HMMForecast"]
