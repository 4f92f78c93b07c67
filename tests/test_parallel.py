"""Loops over fits run through joblib: the same bits wherever they run.

Each entry of `LOOPS` returns numbers that must not depend on ``n_jobs``, nor on whether
threads, processes, or a cluster do the work.
"""

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor

import numpy as np
import pytest
from dask_tools import two_processes
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skbounds import (
    BaumWelchHMM,
    BolsteredSearchCV,
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    SMPClassifier,
    SMPLogisticRegression,
    bolstered_val_score,
)
from skbounds.bolstering import compare_bolstered
from skbounds.sequential import simulate_best_arm_tests

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def _scores(n_jobs):
    X, y = CANCER
    model = RandomForestClassifier(n_estimators=5, random_state=0)
    found = bolstered_val_score(
        model, X[:80], y[:80], scoring=["accuracy", "neg_log_loss", "roc_auc"],
        random_state=0, n_jobs=n_jobs,
    )  # fmt: skip
    return [found[name] for name in sorted(found)]


def _weighted_scores(n_jobs):
    X, y = load_diabetes(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    return [
        bolstered_val_score(
            DecisionTreeRegressor(random_state=0), X[:90], y[:90],
            params={"sample_weight": weight}, n_jobs=n_jobs,
        )
    ]  # fmt: skip


def _comparison(n_jobs):
    X, y = CANCER
    trees = [DecisionTreeClassifier(max_depth=d, random_state=0) for d in (1, 4)]
    found = compare_bolstered(*trees, X[:70], y[:70], n_jobs=n_jobs)
    return [found.difference, *found.interval(0.9), found.p_value]


def _search(n_jobs):
    X, y = CANCER
    search = BolsteredSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4]}, n_jobs=n_jobs
    ).fit(X[:70], y[:70])
    return [search.cv_results_["mean_test_score"], search.best_index_]


def _ensemble(n_jobs):
    X, y = IRIS
    members = [
        DecisionTreeClassifier(random_state=0),
        KNeighborsClassifier(3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ]
    model = PACBayesEnsembleClassifier(members, n_jobs=n_jobs, random_state=0)
    model.fit(X, y)
    return [model.vote_bound_, model.posterior_, model.vote_shares(X)]


def _machines(n_jobs):
    X, y = IRIS
    model = PACBayesSVMEnsemble(standardize=True, n_jobs=n_jobs, random_state=0)
    model.fit(X, y)
    return [model.vote_bound_, model.posterior_, model.decision_function(X)]


def _simulation(n_jobs):
    means = np.random.default_rng(0).normal(size=(23, 3))
    found = []
    for evidence in ("eprocess", "lil"):
        ends = simulate_best_arm_tests(
            means, max_pulls=300, evidence=evidence, n_jobs=n_jobs, random_state=1
        )
        found += [ends[name] for name in sorted(ends)]
    return found


def _chain(n_jobs):
    X = np.random.default_rng(0).normal(size=(70_000, 1))
    X[::7] += 3.0
    model = BaumWelchHMM(2, max_iter=3, tol=0.0, n_jobs=n_jobs, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(X, lengths=[35_000, 35_000])
    return [model.means_, model.history_]


def _refits(n_jobs):
    X, y = IRIS
    model = SMPClassifier(DecisionTreeClassifier(random_state=0), n_jobs=n_jobs)
    return [model.fit(X[::3], y[::3]).predict_proba(X[:6])]


def _virtual_fits(n_jobs):
    X, y = CANCER
    model = SMPLogisticRegression(n_jobs=n_jobs).fit(X[:200, :4] / 100, y[:200])
    return [model.predict_proba(X[:300, :4] / 100)]


LOOPS = {
    loop.__name__[1:]: loop
    for loop in (
        _scores, _weighted_scores, _comparison, _search, _ensemble, _machines,
        _simulation, _chain, _refits, _virtual_fits,
    )
}  # fmt: skip


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def serial():
    known = {}

    def run(name):
        if name not in known:
            known[name] = LOOPS[name](None)
        return known[name]

    return run


@pytest.fixture(scope="module")
def client():
    with two_processes() as found:
        yield found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("name", LOOPS)
def test_same_bits_in_threads_and_processes(name, backend, serial):
    with parallel_config(backend=backend):
        same(LOOPS[name](2), serial(name))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LOOPS)
def test_same_bits_on_a_cluster(name, serial, client):
    with parallel_config(backend="dask"):
        same(LOOPS[name](2), serial(name))


class Slow(LogisticRegression):
    """Says which process it is fitted in, and takes its time."""

    def fit(self, X, y):
        time.sleep(0.5)
        self.pid_ = os.getpid()
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_worker_that_is_killed_changes_nothing(client):
    X, y = CANCER
    expected = bolstered_val_score(LogisticRegression(), X[:80], y[:80])
    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    timer = threading.Timer(0.7, os.kill, (victim, signal.SIGKILL))
    timer.start()
    with parallel_config(backend="dask"):
        found = bolstered_val_score(Slow(), X[:80], y[:80], n_jobs=2)
    timer.join()
    same(found, expected)
    client.wait_for_workers(2)
    assert victim not in client.run(os.getpid).values()


class Failing(Ridge):
    def fit(self, X, y):
        raise ZeroDivisionError("the estimator's own words")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_errors_are_the_estimator_s_own(n_jobs):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ZeroDivisionError, match="own words") as caught:
        bolstered_val_score(Failing(), X[:60], y[:60], loss="absolute", n_jobs=n_jobs)
    assert "method='auto'" in "".join(caught.value.__notes__)


def test_invalid_parameters_are_refused_in_processes_too():
    X, y = CANCER
    with pytest.raises(ValueError, match="max_depth"):
        bolstered_val_score(
            DecisionTreeClassifier(max_depth=-1), X[:60], y[:60], n_jobs=2
        )


class Dying(DecisionTreeClassifier):
    """Kills the process that fits it."""

    def fit(self, X, y):
        if os.getpid() != self.random_state:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def test_a_dead_worker_is_no_reason_for_other_parts():
    X, y = CANCER
    model = Dying(random_state=os.getpid())
    with pytest.raises(BrokenExecutor), parallel_config(backend="loky"):
        bolstered_val_score(model, X[:60], y[:60], n_jobs=2)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_numbers_of_jobs(n_jobs):
    X, y = CANCER
    with pytest.raises(ValueError, match="n_jobs must be"):
        bolstered_val_score(DecisionTreeClassifier(), X[:60], y[:60], n_jobs=n_jobs)
