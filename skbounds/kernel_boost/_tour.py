"""The early-stopped kernel boosts' part of the tour."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skbounds._tour import Entry, Result, Task, timed_fit
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    StoppingPathDisplay,
)


def _pipeline(task, model):
    # Centring would make sparse one-hot columns dense.
    return make_pipeline(task.preprocess, StandardScaler(with_mean=False), model)


def _boost(task):
    return _pipeline(task, EarlyStoppedKernelBoost(random_state=0))


def _run_regression(task: Task) -> Result:
    grid = {"alpha": np.geomspace(1e-3, 1e3, 7), "gamma": [0.001, 0.01, 0.1]}
    # Without an intercept of its own: y is centred for it.
    center = float(np.mean(task.y_train))
    centred = Task(
        task.kind, task.name, task.X_train, task.X_test, task.y_train - center,
        task.y_test, task.preprocess,
    )  # fmt: skip
    models = {
        "EarlyStoppedKernelBoost": (_boost(task), task, 0.0),
        "GridSearchCV(KernelRidge), 21 x 5": (
            _pipeline(task, GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)),
            centred,
            center,
        ),
    }
    rows, fitted = [], {}
    for name, (model, data, shift) in models.items():
        fitted[name], seconds = timed_fit(model, data)
        prediction = model.predict(task.X_test) + shift
        rows.append(
            {
                "method": name,
                "RMSE": float(root_mean_squared_error(task.y_test, prediction)),
                "fit seconds": seconds,
            }
        )
    boost = fitted["EarlyStoppedKernelBoost"][-1]
    guarantee = (
        f"stopped after T = {boost.n_iter_} steps with {boost.df_:.1f} degrees of "
        f"freedom; with the noise estimated as {boost.noise_:.3g} the critical radius "
        f"is {boost.critical_radius_:.2g} in units of the function's norm: by the "
        "theory's rate, without its constants, the fit is off by about "
        f"{boost.critical_radius_ * boost.norm_:.3g}."
    )
    numbers = {
        "stopping_time": boost.n_iter_,
        "critical_radius": float(boost.critical_radius_),
        "noise": float(boost.noise_),
    }
    return Result(rows, guarantee, numbers)


def _plot_regression(task: Task, ax) -> None:
    model = _boost(task).fit(task.X_train, task.y_train)
    StoppingPathDisplay.from_estimator(model[-1], ax=ax)
    ax.set_title(f"When the boosting stopped: {task.name}")


def _run_classification(task: Task) -> Result:
    grid = {"C": np.geomspace(0.01, 100.0, 5), "gamma": [0.001, 0.01, 0.1]}
    models = {
        "EarlyStoppedKernelBoostClassifier": _pipeline(
            task, EarlyStoppedKernelBoostClassifier(random_state=0)
        ),
        "GridSearchCV(SVC), 15 x 5": _pipeline(task, GridSearchCV(SVC(), grid, cv=5)),
    }
    labels = np.unique(task.y_train)
    rows, fitted = [], {}
    for name, model in models.items():
        fitted[name], seconds = timed_fit(model, task)
        row = {
            "method": name,
            "accuracy": float(model.score(task.X_test, task.y_test)),
        }
        if hasattr(model, "predict_proba"):
            known = np.isin(task.y_test, labels)
            proba = model.predict_proba(task.X_test)[known]
            row["log loss"] = float(log_loss(task.y_test[known], proba, labels=labels))
        row["fit seconds"] = seconds
        rows.append(row)
    boost = fitted["EarlyStoppedKernelBoostClassifier"][-1]
    guarantee = (
        f"stopped after T = {boost.n_iter_} steps with {boost.df_:.1f} degrees of "
        f"freedom; the critical radius is {boost.critical_radius_:.2g} in units of the "
        "norm of the log-odds. A rate, no certificate."
    )
    numbers = {
        "stopping_time": boost.n_iter_,
        "critical_radius": float(boost.critical_radius_),
    }
    return Result(rows, guarantee, numbers)


ENTRIES = [
    Entry(
        title="EarlyStoppedKernelBoost instead of GridSearchCV(KernelRidge)",
        kind="regression",
        run=_run_regression,
        plot=_plot_regression,
        picture="kernel_boost_regression",
    ),
    Entry(
        title="EarlyStoppedKernelBoostClassifier instead of GridSearchCV(SVC)",
        kind="classification",
        run=_run_classification,
    ),
]
