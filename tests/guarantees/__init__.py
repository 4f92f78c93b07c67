"""Every number of the package that promises something, and laws that try to break it.

`TABLE` has a `Guarantee` for each line of the sections "Limits", "For every stream" and
"On average" of ``docs/user_guide/guarantees.rst``, for the intervals among its
"Estimates", and for what voids certificates. ``tests/test_bounds.py`` runs it with few
repetitions, ``benchmarks/bounds.py`` in full.
"""

from guarantees import average, estimates, limits, misuse, sequential, streams
from guarantees.table import SECTIONS, Guarantee, Line, run

TABLE = [
    *limits.TABLE,
    *sequential.LIMITS,
    *streams.TABLE,
    *average.TABLE,
    *misuse.TABLE,
    *sequential.AVERAGE,
    *estimates.TABLE,
]

__all__ = ["SECTIONS", "TABLE", "Guarantee", "Line", "run"]
