"""The certified ensemble's part of the tour."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds._tour import Entry, Result, Task, timed_fit
from skbounds.pac_bayes import CertificateDisplay, PACBayesSVMEnsemble


def _ensemble(task: Task):
    # A scaler in front would see the rows that certify.
    return make_pipeline(
        task.preprocess, PACBayesSVMEnsemble(standardize=True, random_state=0)
    )


def _run(task: Task) -> Result:
    search = GridSearchCV(SVC(), {"C": np.logspace(-2, 3, 20)}, cv=5)
    models = {
        "PACBayesSVMEnsemble": _ensemble(task),
        # Centring would make sparse one-hot columns dense.
        "GridSearchCV(SVC), 5 folds": make_pipeline(
            task.preprocess, StandardScaler(with_mean=False), search
        ),
    }
    rows = []
    for name, model in models.items():
        with warnings.catch_warnings():
            # The paragraph says how many rows certify.
            warnings.filterwarnings("ignore", message="Only .* certification rows")
            model, seconds = timed_fit(model, task)
        error = float(np.mean(model.predict(task.X_test) != task.y_test))
        rows.append({"method": name, "test error": error, "seconds": seconds})
    ensemble = models["PACBayesSVMEnsemble"][-1]
    rows[0]["certified error"] = ensemble.vote_bound_
    guarantee = (
        f"with probability {1.0 - ensemble.delta:.2f} over the "
        f"{ensemble.n_certification_} rows set aside, the vote errs on at most "
        f"{ensemble.vote_bound_:.1%} of new rows, and the Gibbs classifier on at most "
        f"{ensemble.risk_bound_:.1%}."
    )
    numbers = {
        "vote_bound": ensemble.vote_bound_,
        "risk_bound": ensemble.risk_bound_,
        "delta": ensemble.delta,
    }
    return Result(rows, guarantee, numbers)


def _plot(task: Task, ax) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Only .* certification rows")
        model = _ensemble(task).fit(task.X_train, task.y_train)
    X_test = model[:-1].transform(task.X_test)
    CertificateDisplay.from_estimator(model[-1], X_test, task.y_test, ax=ax)
    ax.set_title(f"Members, weights and bounds: {task.name}")


ENTRIES = [
    Entry(
        title="PACBayesSVMEnsemble instead of GridSearchCV(SVC)",
        kind="classification",
        run=_run,
        plot=_plot,
        picture="pac_bayes_classification",
    ),
]
