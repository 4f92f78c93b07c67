"""Laws of the rows given the states: what EM, sampling and forecasts know of them.

Each kind has a class whose objects have the settings (and nothing of the data), with

- ``check_rows(X)``, which refuses rows that no law of the kind can have;
- ``features(X)``: columns that starts look for clusters in;
- ``prepare(X)``: rows as the other methods take them, made once;
- ``log_densities(rows, law)``: an array (n, s);
- ``collect(rows, posterior, law, reference)``: sums over rows, a tuple of arrays;
- ``linear(rows, law, reference)``: columns that log-densities are linear in, or None;
- ``maximise(sums, law, reference, fixed)``: the law of greatest expected log-density;
- ``blurred(sums, law)``: means about which sums must be collected again, or None;
- ``score(rows, posterior, law)``: derivatives of the expected log-density;
- ``draw(law, states, rng)``, ``moments(law)``, ``cdf(law, column, values)`` and
  ``ppf(law, column, levels)``.

A law is a dict of arrays whose first axis, or that of whose items, is the state.
"""

from skbounds.hmm._emissions._discrete import Categorical, Poisson
from skbounds.hmm._emissions._gaussian import Gaussian, compress, expand
from skbounds.hmm._emissions._student import Student

__all__ = [
    "Categorical",
    "Gaussian",
    "Poisson",
    "Student",
    "compress",
    "expand",
    "reorder",
]


def reorder(law, order):
    """Return a law with the states in another order."""
    return {
        name: [part[order] for part in value]
        if isinstance(value, list)
        else value[order]
        for name, value in law.items()
    }
