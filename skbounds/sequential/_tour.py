"""The sequential tests' part of the tour."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from skbounds._tour import Entry, Result, Task, timed_fit
from skbounds.sequential import (
    ADDIS,
    LORD,
    AlphaSpending,
    LORDPlusPlus,
    OnlineFDRDisplay,
)

# Rows of a table are no hypotheses, so that tests are simulated: three of ten
# hypotheses are alternatives, with means 3 instead of 0 of a standard normal.
_N_TESTS, _SHARE, _MEAN, _ALPHA = 200, 0.3, 3.0, 0.1


class _Uncorrected:
    """Reject where p <= alpha."""

    def fit(self, p_values, y=None):
        self.rejected_ = p_values <= _ALPHA
        return self


def _stream() -> tuple[np.ndarray, np.ndarray]:
    """Return p-values, and which hypotheses are alternatives."""
    rng = np.random.default_rng(0)
    alternative = rng.random(_N_TESTS) < _SHARE
    return ndtr(-rng.normal(_MEAN * alternative)), alternative


def _run(task: Task) -> Result:
    p_values, alternative = _stream()
    # Its own task: the table is not used.
    stream = Task(
        task.kind, "simulated tests", p_values, p_values, alternative, alternative,
        task.preprocess,
    )  # fmt: skip
    methods = {
        "ADDIS": ADDIS(_ALPHA),
        "LORD": LORD(_ALPHA, horizon=_N_TESTS),
        "LORDPlusPlus": LORDPlusPlus(_ALPHA, horizon=_N_TESTS),
        "AlphaSpending": AlphaSpending(_ALPHA),
        "reject p <= alpha": _Uncorrected(),
    }
    rows, numbers = [], {"n_tests": _N_TESTS, "alpha": _ALPHA}
    for name, method in methods.items():
        fitted, seconds = timed_fit(method, stream)
        rejected = fitted.rejected_
        false = int(np.sum(rejected & ~alternative))
        rows.append(
            {
                "method": name,
                "data": "simulated",
                "test error (false share of discoveries)": false
                / max(int(rejected.sum()), 1),
                "alternatives found": float(np.mean(rejected[alternative])),
                "fit seconds": seconds,
            }
        )
        numbers[f"discoveries {name}"] = int(rejected.sum())
    guarantee = (
        f"the table is not used; {_N_TESTS} hypotheses are simulated, of which "
        f"{int(alternative.sum())} are alternatives, and the test error is the share "
        f"of false discoveries among all discoveries. On average over streams E V / "
        f"(E R + 1) is at most {_ALPHA} for LORD, E[V / max(R, 1)] is for "
        "ADDIS and LORDPlusPlus (independent p-values), and the probability of any "
        "false discovery is for AlphaSpending; of this stream nothing is promised, and "
        "of p <= alpha nothing at all."
    )
    return Result(rows, guarantee, numbers)


def _plot(task: Task, ax) -> None:
    OnlineFDRDisplay.from_procedure(ADDIS(_ALPHA), _stream()[0], ax=ax)
    ax.set_title(f"ADDIS on {_N_TESTS} simulated hypotheses")


ENTRIES = [
    Entry(
        title="ADDIS, LORD, LORDPlusPlus instead of rejecting p <= alpha",
        kind="classification",
        run=_run,
        plot=_plot,
        picture="sequential_fdr",
    )
]
