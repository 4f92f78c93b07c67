"""Many tests on simulated rewards, compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.parallel import Parallel, delayed

from skbounds._core import sequential as _core
from skbounds._typing import RandomState
from skbounds.sequential._best_arm import BestArmTest
from skbounds.sequential._engines import EvidenceEngine, excess
from skbounds.sequential._functions import as_floats, check_sigma, draw_seeds
from skbounds.sequential._settings import ONE_BY_ONE, check_settings

# Parts of the runs for each process, which end at different times.
_PARTS = 4


def simulate_best_arm_tests(
    means: ArrayLike,
    *,
    delta: float | ArrayLike = 0.05,
    epsilon: float = 0.0,
    sigma: float = 1.0,
    max_pulls: int,
    evidence: Literal["eprocess", "lil"] = "eprocess",
    sampler: Literal["toptwo", "lift", "lucb", "uniform"] | None = None,
    until: Literal["certified", "rejected"] | None = None,
    rewards: Literal["normal", "bernoulli"] = "normal",
    n_jobs: int | None = None,
    random_state: RandomState | np.random.Generator = None,
) -> dict[str, np.ndarray]:
    """Run many tests on simulated rewards.

    .. versionadded:: 0.1

    .. versionchanged:: 0.2
       E-processes are the default; ``evidence="lil"`` is version 0.1.

    Parameters
    ----------
    means : array-like of shape (n_runs, n_arms)
        Expectations of the arms in each run; the first is the control's.
    delta : float or array-like of shape (n_runs,), default=0.05
        Probability of certifying a wrong arm.
    epsilon : float, default=0.0
        Improvement that is asked for.
    sigma : float, default=1.0
        Sub-Gaussian scale, and the standard deviation of normal rewards.
    max_pulls : int
        Largest number of rewards of a test.
    evidence : {"eprocess", "lil"}, default="eprocess"
        As of `BestArmTest`. Bernoulli rewards are "binary" ones.
    sampler : {"toptwo", "lift", "lucb", "uniform"}, default=None
        As of `BestArmTest`; "toptwo" and "lift" with "eprocess" only.
    until : {"certified", "rejected"}, default=None
        With "eprocess": what ends a test, beside `max_pulls`: an arm that is certified,
        or one that may be adopted at level `delta`. None is "rejected" for the sampler
        "lift", otherwise "certified".
    rewards : {"normal", "bernoulli"}, default="normal"
        Law of the rewards.
    n_jobs : int, default=None
        Processes that share the runs, by joblib. Each run has its own seed: results do
        not depend on it.

        .. versionadded:: 0.2
    random_state : int, RandomState, Generator or None, default=None
        Seed of the rewards.

    Returns
    -------
    results : dict of ndarray of shape (n_runs,)
        ``"certified"``: the certified arm or -1; ``"best"``: the arm of largest mean;
        ``"n_pulls"``; ``"log_p_value"``; with "eprocess" ``"log_evalue"``, the largest
        adjusted one at the end.

    See Also
    --------
    BestArmTest : One test, on real rewards.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.sequential import simulate_best_arm_tests
    >>> found = simulate_best_arm_tests(
    ...     np.tile([0.0, 1.0, 2.0], (100, 1)), max_pulls=5000, random_state=0
    ... )
    >>> print(np.mean(found["certified"] == 2))
    1.0
    """
    means = np.atleast_2d(as_floats(means, "means", ndim=None))
    if means.ndim != 2:
        raise ValueError(f"means must be of shape (n_runs, n_arms); got {means.shape}.")
    n_runs, n_arms = means.shape
    sigma = check_sigma(sigma)
    if max_pulls is None:
        raise ValueError("max_pulls must be an integer; got None.")
    if until is not None and evidence == "lil":
        raise ValueError(f"until is for evidence='eprocess'; got {until!r}.")
    if rewards not in ("normal", "bernoulli"):
        raise ValueError(f"rewards must be 'normal' or 'bernoulli'; got {rewards!r}.")
    if until not in (None, "certified", "rejected"):
        raise ValueError(
            f"until must be 'certified', 'rejected' or None; got {until!r}."
        )
    params = BestArmTest(
        n_arms, epsilon=epsilon, evidence=evidence, sigma=sigma, max_pulls=max_pulls,
        sampler=sampler,
    ).get_params(deep=False)  # fmt: skip
    if evidence == "eprocess" and rewards == "bernoulli":
        params.update(rewards="binary", sigma=None)
    settings = check_settings(params, until)
    if evidence == "lil" and settings.sampler in ONE_BY_ONE:
        raise ValueError(f"sampler={sampler!r} is for evidence='eprocess' here.")
    if not np.isfinite(means).all():
        raise ValueError("means must be finite.")
    if rewards == "bernoulli" and ((means < 0.0) | (means > 1.0)).any():
        raise ValueError("means of Bernoulli rewards must be in [0, 1].")
    delta = as_floats(delta, "delta", ndim=None)
    if delta.shape not in ((), (n_runs,)):
        raise ValueError(
            f"delta must be a number or one for each of {n_runs} runs; got shape "
            f"{delta.shape}."
        )
    delta = np.broadcast_to(delta, n_runs)
    if not ((delta > 0.0) & (delta < 1.0)).all():
        raise ValueError("delta must be in (0, 1).")
    seeds = draw_seeds(random_state, n_runs)
    names = ["certified", "best", "n_pulls", "log_p_value"]
    if evidence == "eprocess":
        names.append("log_evalue")
    laws = {"is_uniform": sampler == "uniform", "is_binary": rewards == "bernoulli"}
    jobs = effective_n_jobs(n_jobs)
    parts = np.array_split(
        np.arange(n_runs), min(_PARTS * jobs, n_runs) if n_runs else 1
    )
    tasks = [
        (means[rows], delta[rows], seeds[rows], settings, sigma, int(max_pulls), laws)
        for rows in parts
    ]
    if jobs == 1:
        found = [_simulate(*task) for task in tasks]
    else:
        found = Parallel(n_jobs=n_jobs)(delayed(_simulate)(*task) for task in tasks)
    columns: Iterable = zip(*(run for part in found for run in part), strict=True)
    kinds = [np.int64, np.int64, np.int64, np.float64, np.float64]
    if not n_runs:
        columns = [[] for _ in names]
    return {
        name: np.array(values, dtype=kind)
        for name, values, kind in zip(names, columns, kinds, strict=False)
    }


def _simulate(means, delta, seeds, settings, sigma, max_pulls, laws):
    """Return what each of some runs ends with."""
    found = []
    n_arms = means.shape[1]
    for mean, level, seed in zip(means, delta.tolist(), seeds.tolist(), strict=True):
        if settings.evidence == "eprocess":
            engine = EvidenceEngine(replace(settings, delta=level))
            end = engine.simulate(mean, sigma, seed)
            end = (*end, engine.log_evalues()[0].max())
        else:
            end = _core.simulate(
                mean, sigma, float(settings.epsilon),
                excess(np.log(level) - np.log(2.0 * (n_arms - 1))),
                excess(np.log(level) - np.log(2.0)), max_pulls,
                laws["is_uniform"], laws["is_binary"], seed,
                np.zeros(n_arms), np.zeros(n_arms),
            )  # fmt: skip
        found.append(end)
    return found
