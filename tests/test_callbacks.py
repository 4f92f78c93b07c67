"""scikit-learn's callbacks hear of the fits, which stay what they are without any."""

import numpy as np
import pytest
from common import instances, make_data
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skbounds import (
    BaumWelchHMM,
    BolsteredSearchCV,
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineStructured,
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    RidgeSMP,
)
from skbounds._callbacks import current_task, run_tasks
from skbounds.fenchel_young.structures import KSubsets

callback = pytest.importorskip("sklearn.callback")

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:120], y[:120]
Z, t = load_diabetes(return_X_y=True)
Z, t = Z[:150], t[:150]
SUBSETS = np.eye(3)[np.arange(120) % 3]
TREE = DecisionTreeClassifier(random_state=0)
MEMBERS = [("bayes", GaussianNB()), ("tree", TREE)]
CASES = {
    "hmm": (BaumWelchHMM(2, n_init=2, random_state=0), Z[:, :2], t),
    "symmetric hmm": (BaumWelchHMM(structure="symmetric", sigma=0.05), Z[:, :1], t),
    "online": (FenchelYoungOnlineClassifier(max_iter=3, random_state=0), X, y),
    "structured": (
        FenchelYoungOnlineStructured(KSubsets(3, 1), max_iter=3, random_state=0),
        X / 1e3, SUBSETS
    ),
    "svm ensemble": (PACBayesSVMEnsemble(random_state=0), X, y),
    "ensemble": (PACBayesEnsembleClassifier(MEMBERS, random_state=0), X, y),
    "boost": (EarlyStoppedKernelBoost(random_state=0), Z, t),
    "boost, huber": (EarlyStoppedKernelBoost(loss="huber", random_state=0), Z, t),
    "boost, classes": (EarlyStoppedKernelBoostClassifier(random_state=0), X, y),
    "search": (BolsteredSearchCV(TREE, {"max_depth": [1, 2]}, random_state=0), X, y),
    "ridge": (RidgeSMP(), Z, t),
}  # fmt: skip
PARTS = {
    "hmm": {"EM", "iteration"},
    "symmetric hmm": {"EM", "iteration"},
    "online": {"passes", "pass"},
    "structured": {"passes", "pass"},
    "svm ensemble": {"inner folds", "members", "C=0.01"},
    "ensemble": {"inner fold", "member", "member 2"},
    "boost": {"gamma", "relevance", "path"},
    "boost, huber": {"gamma", "path"},
    "boost, classes": {"gamma", "path"},
    "search": {"refit", "GridSearchCV"},
    "ridge": set(),
}


class Recorder:
    """Keeps what it hears; wants tasks of a name to stop."""

    def __init__(self, stop=None):
        self.stop, self.heard, self.fitted = stop, [], []

    def setup(self, estimator, context):
        self.heard.append(("setup", None))

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.heard.append(("end", context.task_name))
        self.fitted.append((context.task_name, fitted_estimator))
        return context.task_name == self.stop

    def teardown(self, estimator, context):
        self.heard.append(("teardown", None))


def fitted_arrays(model):
    """Return what a fit found."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, (np.ndarray, float, int))
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_tasks_begin_and_end(case):
    """Each within the one before; the fit has the same bits."""
    model, rows, targets = CASES[case]
    recorder = Recorder()
    heard = clone(model).set_callbacks(recorder).fit(rows, targets)
    assert recorder.heard[0][0] == "setup" and recorder.heard[-1][0] == "teardown"
    assert recorder.heard[1] == ("begin", "fit")
    assert recorder.heard[-2] == ("end", "fit")
    open_tasks = []
    for event, name in recorder.heard[1:-1]:
        if event == "begin":
            open_tasks.append(name)
        else:
            assert open_tasks.pop() == name
    assert not open_tasks
    assert PARTS[case] <= {name for _, name in recorder.heard}
    silent = fitted_arrays(clone(model).fit(rows, targets))
    for name, value in fitted_arrays(heard).items():
        if name != "refit_time_":
            np.testing.assert_array_equal(value, silent[name], err_msg=name)
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & set(vars(heard))
    assert not current_task()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "model",
    {type(each): each for each in [*instances(), *instances(outside=True)]}.values(),
    ids=lambda model: type(model).__name__,
)
def test_every_estimator_is_heard(model):
    rows, targets = make_data(model)
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    model.fit(*((rows,) if targets is None else (rows, targets)))
    heard = [event for event, _ in recorder.heard]
    assert heard[:2] == ["setup", "begin"] and heard[-2:] == ["end", "teardown"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("case", "task"),
    [("hmm", "iteration"), ("symmetric hmm", "iteration"), ("online", "pass"),
     ("structured", "pass")],
)  # fmt: skip
def test_what_is_fitted_at_a_task(case, task):
    """An estimator that predicts, and at the last task is the one that is returned."""
    model, rows, targets = CASES[case]
    recorder = Recorder()
    model = clone(model)
    if "hmm" in case:
        model.set_params(n_init=1)
    model.set_callbacks(recorder).fit(rows, targets)
    found = [fitted for name, fitted in recorder.fitted if name == task]
    first, last = found[0].predict(rows), found[-1].predict(rows)
    assert len(first) == len(rows)
    if case in ("online", "structured"):
        # The first pass as it was, whatever came after it.
        once = clone(model).set_params(max_iter=1).fit(rows, targets)
        np.testing.assert_array_equal(found[0].coef_, once.coef_)
        assert found[0].n_iter_ == 1 and not np.array_equal(once.coef_, model.coef_)
    if case == "hmm":
        # States in the order in which the start had them.
        assert found[-1].score(rows) == pytest.approx(model.score(rows), rel=1e-12)
    else:
        np.testing.assert_array_equal(last, model.predict(rows))
    if "hmm" in case:
        assert found[0].score(rows) < found[-1].score(rows)


def test_a_callback_ends_the_passes():
    model = FenchelYoungOnlineClassifier(max_iter=5).set_callbacks(Recorder("pass"))
    once = FenchelYoungOnlineClassifier(max_iter=1).fit(X, y)
    assert model.fit(X, y).n_iter_ == 1
    np.testing.assert_array_equal(model.coef_, once.coef_)


def test_a_callback_ends_em(recwarn):
    model = BaumWelchHMM(2, random_state=0).set_callbacks(Recorder("iteration"))
    model.fit(Z[:, :2])
    assert model.n_iter_ == 1 and not model.converged_
    assert not [w for w in recwarn.list if "did not converge" in str(w.message)]


@pytest.mark.parametrize(
    ("model", "rows"),
    [(BaumWelchHMM(200), Z[:, :2]), (FenchelYoungOnlineClassifier(), X[:, :0])],
)
def test_a_fit_that_fails_tears_down(model, rows):
    """If it began, and leaves nothing behind."""
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    before = set(vars(model))
    with pytest.raises(ValueError):
        model.fit(rows, np.arange(len(rows)) % 2)
    assert recorder.heard[0][0] == "setup" and recorder.heard[-1][0] == "teardown"
    assert set(vars(model)) == before and not current_task()


def test_scores_of_iterations():
    """`ScoringMonitor` shows what EM gains."""
    monitor = callback.ScoringMonitor(
        scoring={"own": lambda model, rows, _: model.score(rows)}
    )
    model = BaumWelchHMM(2, random_state=0).set_callbacks(monitor)
    model.fit(Z[:, :2], t)
    log = monitor.get_logs().data
    scores = [row["own"] for row in log if row["task_name"] == "iteration"]
    assert len(scores) == model.n_iter_
    assert np.all(np.diff(scores) > -1e-12)


def test_scores_of_sequences():
    """Callbacks get what scores of the same rows take."""
    rng = np.random.default_rng(0)
    rows, lengths = rng.normal(size=(200, 1)).cumsum(axis=0) % 3.0, [10] * 20
    monitor = callback.ScoringMonitor(
        scoring={"own": lambda model, X, _, lengths: model.score(X, lengths=lengths)}
    )
    model = BaumWelchHMM(2, random_state=0).set_callbacks(monitor)
    model.fit(rows, np.zeros(200), lengths=lengths)
    log = monitor.get_logs().data
    scores = [row["own"] for row in log if row["task_name"] == "iteration"]
    np.testing.assert_allclose(np.multiply(scores, 200), model.history_[1:], rtol=1e-9)


def test_a_search_hands_on():
    recorder = Recorder()
    recorder.max_propagation_depth = None
    grid = {"max_iter": [1, 2]}
    search = GridSearchCV(FenchelYoungOnlineClassifier(), grid, cv=2)
    search.set_callbacks(recorder).fit(X, y)
    assert [name for _, name in recorder.heard].count("passes") == 2 * 5
    recorder = Recorder()
    recorder.max_propagation_depth = None
    search = BolsteredSearchCV(TREE, {"max_depth": [1, 2]}, random_state=0)
    search.set_callbacks(recorder).fit(X, y)
    names = [name for _, name in recorder.heard]
    assert names.count("candidate-split-evaluation") + names.count("fit") > 3


def test_progress_bar(capsys):
    pytest.importorskip("rich")
    model = FenchelYoungOnlineClassifier(max_iter=3)
    model.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "FenchelYoungOnlineClassifier" in capsys.readouterr().out


def test_jobs_without_callbacks():
    from sklearn.utils.parallel import delayed

    assert run_tasks((delayed(abs)(-k) for k in range(3)), "job") == [0, 1, 2]
