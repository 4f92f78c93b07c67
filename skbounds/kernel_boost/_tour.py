"""The early-stopped kernel boosts' part of the tour."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbounds._tour import Entry, Result, Task, logistic_regression_cv, timed_fit
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


def _classifier(task):
    return _pipeline(task, EarlyStoppedKernelBoostClassifier(random_state=0))


def _run_classification(task: Task) -> Result:
    n_landmarks = min(100, len(task.y_train))
    peer = make_pipeline(
        Nystroem(n_components=n_landmarks, random_state=0), logistic_regression_cv(task)
    )
    models = {
        "EarlyStoppedKernelBoostClassifier": _classifier(task),
        f"Nystroem({n_landmarks}) + LogisticRegressionCV": _pipeline(task, peer),
    }
    labels = np.unique(task.y_train)
    known = np.isin(task.y_test, labels)
    rows, fitted = [], {}
    for name, model in models.items():
        fitted[name], seconds = timed_fit(model, task)
        proba = model.predict_proba(task.X_test)[known]
        rows.append(
            {
                "method": name,
                "log loss": float(log_loss(task.y_test[known], proba, labels=labels)),
                "accuracy": float(
                    accuracy_score(task.y_test, model.predict(task.X_test))
                ),
                "fit seconds": seconds,
            }
        )
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


def _plot_classification(task: Task, ax) -> None:
    model = _classifier(task).fit(task.X_train, task.y_train)
    StoppingPathDisplay.from_estimator(model[-1], ax=ax)
    ax.set_title(f"When the boosting stopped: {task.name}")


ENTRIES = [
    Entry(
        title="EarlyStoppedKernelBoost instead of GridSearchCV(KernelRidge)",
        kind="regression",
        run=_run_regression,
        plot=_plot_regression,
        picture="kernel_boost_regression",
    ),
    Entry(
        title="EarlyStoppedKernelBoostClassifier instead of LogisticRegressionCV",
        kind="classification",
        run=_run_classification,
        plot=_plot_classification,
        picture="kernel_boost_classification",
    ),
]
