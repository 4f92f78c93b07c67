"""HTML diagrams say what a fitted estimator knows of its error."""

import html

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skbounds import (
    BaumWelchHMM,
    EarlyStoppedKernelBoost,
    FenchelYoungOnlineClassifier,
    KernelRidgeSMP,
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    RidgeSMP,
    RidgeSMPCV,
    SMPClassifier,
    SMPLogisticRegressionCV,
)

X, y = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X[:200]), y[:200]
Z, t = load_diabetes(return_X_y=True)
Z, t = Z[:150], t[:150]
MEMBERS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))]
CASES = [
    (SMPLogisticRegressionCV(), X, y, "expects a log loss of {loo_log_loss_:.3g}"),
    (RidgeSMP(), Z, t, "expects a log loss of {loo_log_loss_:.3g}"),
    (RidgeSMPCV(), Z, t, "expects a log loss of {loo_log_loss_:.3g}"),
    (KernelRidgeSMP(), Z, t, "expects a log loss of {loo_log_loss_:.3g}"),
    (
        PACBayesSVMEnsemble(random_state=0, delta=0.1), X, y,
        "with probability 0.9 at most {vote_bound_:.3g} of new rows are wrong",
    ),
    (
        PACBayesEnsembleClassifier(MEMBERS, random_state=0), X, y,
        "with probability 0.95 at most {vote_bound_:.3g} of new rows",
    ),
    (FenchelYoungOnlineClassifier(), X, y, "plays of 200 rows: "),
    (EarlyStoppedKernelBoost(random_state=0), Z, t, "stopped at T = {n_iter_}, with"),
    (BaumWelchHMM(random_state=0), Z[:, 2:3], None, "about {remaining_gain_:.2g} of"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("model", "rows", "targets", "line"), CASES)
def test_a_line_below_the_name(model, rows, targets, line):
    """Only of a fitted one, also within a pipeline."""
    assert "caption" not in body(model)
    model.fit(rows, targets)
    expected = line.format(**dict(attributes(model)))
    assert html.escape(expected) in body(model)
    if targets is not None:
        pipeline = make_pipeline("passthrough", model)
        assert html.escape(expected) in body(pipeline)


def attributes(model):
    for name in ("loo_log_loss_", "vote_bound_", "n_iter_", "remaining_gain_"):
        if hasattr(model, name):
            value = getattr(model, name)
            yield name, value if name == "n_iter_" else np.mean(value)


def body(model):
    """Return the diagram without its style sheet."""
    return model._repr_html_().rpartition("</style>")[2]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_certifies_nothing_says_so():
    model = PACBayesSVMEnsemble(random_state=0, refit=True)
    assert "not certified" in body(model.fit(X, y))


def test_estimators_of_estimators_show_them():
    assert "GaussianNB" in body(SMPClassifier(GaussianNB()))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_groups_certify_is_said():
    model = PACBayesSVMEnsemble(random_state=0).fit(X, y, groups=np.arange(200) // 2)
    assert "is the mean error rate of new groups" in body(model)


def test_weights_are_counted():
    model = FenchelYoungOnlineClassifier(random_state=0)
    model.partial_fit(X, y, classes=[0, 1], sample_weight=np.full(200, 10.0))
    mean = model.expected_cumulative_loss_ / 2000
    assert mean < 1.0 and f"plays of 200 rows: {mean:.3g}" in body(model)
