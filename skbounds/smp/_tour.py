"""The sample minmax predictors' part of the tour."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline

from skbounds._tour import Entry, Result, Task, logistic_regression_cv, timed_fit
from skbounds.smp import (
    RidgeSMP,
    RidgeSMPCV,
    SMPLogisticRegression,
    SMPLogisticRegressionCV,
    log_density_score,
)


def _run_classification(task: Task) -> Result:
    models = {
        "SMPLogisticRegressionCV": SMPLogisticRegressionCV(),
        "SMPLogisticRegression": SMPLogisticRegression(),
        "LogisticRegressionCV": logistic_regression_cv(task),
    }
    rows, fitted = [], {}
    labels = np.unique(task.y_train)
    for name, model in models.items():
        pipeline = make_pipeline(task.preprocess, model)
        fitted[name], seconds = timed_fit(pipeline, task)
        proba = pipeline.predict_proba(task.X_test)
        known = np.isin(task.y_test, labels)
        rows.append(
            {
                "method": name,
                "log loss": float(
                    log_loss(task.y_test[known], proba[known], labels=labels)
                ),
                "accuracy": float(
                    accuracy_score(task.y_test, pipeline.predict(task.X_test))
                ),
                "fit seconds": seconds,
            }
        )
    pool = fitted["SMPLogisticRegressionCV"][-1]
    single = fitted["SMPLogisticRegression"][-1]
    log_normalizer = single.log_normalizer_mean_
    guarantee = (
        f"the pool estimates its own log loss by leave-one-out as "
        f"{pool.loo_log_loss_:.3f}; for SMPLogisticRegression the expected log loss "
        f"exceeds the *penalised* loss of any linear model by at most "
        f"{log_normalizer:.3f} nats (leave-one-out estimate of E log Z), whatever the "
        "law of the labels"
    )
    excess = single.excess_risk_penalized_
    if np.isfinite(excess):
        guarantee += f"; it is estimated to exceed the best of these by {excess:.3f}"
    guarantee += "."
    numbers = {
        "loo_log_loss": pool.loo_log_loss_,
        "log_normalizer_mean": log_normalizer,
        "excess_risk_penalized": excess if np.isfinite(excess) else None,
    }
    return Result(rows, guarantee, numbers)


def _plot_classification(task: Task, ax) -> None:
    pool = make_pipeline(task.preprocess, SMPLogisticRegressionCV())
    pool.fit(task.X_train, task.y_train)
    weights = pool[-1].weights_
    image = ax.imshow(weights, origin="lower", aspect="auto", cmap="viridis")
    ax.figure.colorbar(image, label="weight in the pool")
    ax.set_xticks(
        range(weights.shape[1]), [f"{w:g}" for w in pool[-1].virtual_weights_]
    )
    ax.set_yticks(range(weights.shape[0]), [f"{C:.2g}" for C in pool[-1].Cs_])
    ax.set_xlabel("virtual weight (0: plug-in, 1: sample minmax)")
    ax.set_ylabel("C")
    ax.set_title(f"What leave-one-out chose: {task.name}")


def _run_regression(task: Task) -> Result:
    pool = make_pipeline(task.preprocess, RidgeSMPCV())
    pool, pool_seconds = timed_fit(pool, task)
    ridge = make_pipeline(task.preprocess, RidgeSMP("loo"))
    ridge, seconds = timed_fit(ridge, task)
    bayes = make_pipeline(task.preprocess, BayesianRidge())
    bayes, bayes_seconds = timed_fit(bayes, task)
    mean, std = bayes.predict(task.X_test, return_std=True)
    rows = [
        {
            "method": "RidgeSMPCV",
            "negative log density": -log_density_score(pool, task.X_test, task.y_test),
            "R2": float(pool.score(task.X_test, task.y_test)),
            "fit seconds": pool_seconds,
        },
        {
            "method": "RidgeSMP",
            "negative log density": -log_density_score(ridge, task.X_test, task.y_test),
            "R2": float(ridge.score(task.X_test, task.y_test)),
            "fit seconds": seconds,
        },
        {
            "method": "BayesianRidge",
            "negative log density": -float(norm.logpdf(task.y_test, mean, std).mean()),
            "R2": float(bayes.score(task.X_test, task.y_test)),
            "fit seconds": bayes_seconds,
        },
    ]
    model = ridge[-1]
    guarantee = (
        f"leave-one-out estimates RidgeSMPCV's negative log density as "
        f"{pool[-1].loo_log_loss_:.3f} and RidgeSMP's as {model.loo_log_loss_:.3f}; "
        "the latter exceeds the *penalised* loss of any linear "
        f"model with noise scale {model.sigma_[0]:.3g} by at most "
        f"{model.log_normalizer_mean_:.3f} nats (leave-one-out estimate of E log Z), "
        "whatever the law of the targets."
    )
    numbers = {
        "loo_log_loss": pool[-1].loo_log_loss_,
        "log_normalizer_mean": model.log_normalizer_mean_,
    }
    return Result(rows, guarantee, numbers)


def _plot_regression(task: Task, ax) -> None:
    ridge = make_pipeline(task.preprocess, RidgeSMPCV())
    ridge.fit(task.X_train, task.y_train)
    rows = ridge[:-1].transform(task.X_test)
    bands = ridge[-1].predict_quantiles(rows, [0.05, 0.5, 0.95])
    order = np.argsort(bands[:, 1])
    position = np.arange(len(order))
    ax.fill_between(
        position, bands[order, 0], bands[order, 2], alpha=0.3, label="5 % to 95 %"
    )
    ax.plot(position, bands[order, 1], label="predictive mean")
    ax.plot(position, task.y_test[order], ".", ms=3, color="black", label="observed")
    inside = np.mean((task.y_test >= bands[:, 0]) & (task.y_test <= bands[:, 2]))
    ax.set_xlabel("test rows, by prediction")
    ax.set_ylabel("target")
    ax.set_title(f"RidgeSMPCV, {task.name}: {inside:.0%} of the test rows in the band")
    ax.legend()


ENTRIES = [
    Entry(
        title="SMPLogisticRegressionCV instead of LogisticRegressionCV",
        kind="classification",
        run=_run_classification,
        plot=_plot_classification,
        picture="smp_classification",
    ),
    Entry(
        title="RidgeSMPCV instead of BayesianRidge",
        kind="regression",
        run=_run_regression,
        plot=_plot_regression,
        picture="smp_regression",
    ),
]
