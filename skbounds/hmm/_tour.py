"""The hidden Markov models' part of the tour."""

from __future__ import annotations

import numpy as np
from sklearn.mixture import GaussianMixture

from skbounds._tour import Entry, Result, Task, timed_fit
from skbounds.hmm import BaumWelchHMM, HMMDisplay

# Rows of a table have no order, so that the series is simulated: two states at
# distance 1 from 0 with noise 1, which last 20 rows on average.
_N_TRAIN, _N_TEST, _STAY, _MEAN = 1000, 1000, 0.95, np.array([0.8, 0.6])
# Window of which the effect is bounded.
_REACH = 50


def _series() -> tuple[np.ndarray, np.ndarray]:
    """Return rows and states."""
    rng = np.random.default_rng(0)
    changes = rng.random(_N_TRAIN + _N_TEST) > _STAY
    states = np.cumsum(changes) % 2
    noise = rng.normal(size=(len(states), len(_MEAN)))
    return (2.0 * states - 1.0)[:, None] * _MEAN + noise, states


def _run(task: Task) -> Result:
    X, states = _series()
    X_test, true = X[_N_TRAIN:], states[_N_TRAIN:]
    # Its own task: the table is not used.
    series = Task(
        task.kind, "simulated series", X[:_N_TRAIN], X_test, states[:_N_TRAIN], true,
        task.preprocess,
    )  # fmt: skip
    models = {
        "BaumWelchHMM": BaumWelchHMM(startprob="stationary", random_state=0),
        "BaumWelchHMM, symmetric": BaumWelchHMM(
            structure="symmetric", sigma=1.0, mixing_bound=0.99, random_state=0
        ),
        "GaussianMixture": GaussianMixture(2, covariance_type="diag", random_state=0),
    }
    rows, fitted = [], {}
    for name, model in models.items():
        fitted[name], seconds = timed_fit(model, series)
        right = float(np.mean(model.predict(X_test) == true))
        rows.append(
            {
                "method": name,
                "data": "simulated",
                "log-density per row": float(model.score(X_test)),
                # Whichever way round the states are.
                "right states": max(right, 1.0 - right),
                "fit seconds": seconds,
            }
        )
    free, symmetric = fitted["BaumWelchHMM"], fitted["BaumWelchHMM, symmetric"]
    bound = symmetric.truncation_bound(_REACH)
    guarantee = (
        f"the table is not used, since its rows have no order; {_N_TRAIN} training and "
        f"{_N_TEST} test rows with two states are simulated. In the fitted symmetric "
        f"model, rows more than {_REACH} away change the probability of a state by at "
        f"most {0.5 * bound:.2g}, whatever they are (rho_mix = "
        f"{symmetric.rho_mix_:.3f}). Observed, no bound: EM's changes shrank by the "
        f"factor {symmetric.contraction_rate_:.2f} per iteration in the end (free "
        f"model: {free.contraction_rate_:.2f}). Nothing is certified about how far "
        "the estimates are from the truth."
    )
    numbers = {
        "rho_mix": symmetric.rho_mix_,
        "window": _REACH,
        "window_bound": 0.5 * bound,
        "contraction_rate": symmetric.contraction_rate_,
        "contraction_rate_free": free.contraction_rate_,
    }
    return Result(rows, guarantee, numbers)


def _plot(task: Task, ax) -> None:
    X, states = _series()
    model = BaumWelchHMM(startprob="stationary", random_state=0).fit(X[:_N_TRAIN])
    shown = slice(_N_TRAIN, _N_TRAIN + 250)
    HMMDisplay.from_estimator(model, X[shown], states=states[shown], ax=ax)
    ax.set_title("States of a simulated series; true ones on top")


ENTRIES = [
    Entry(
        title="BaumWelchHMM instead of GaussianMixture",
        kind="regression",
        run=_run,
        plot=_plot,
        picture="hmm_states",
    )
]
