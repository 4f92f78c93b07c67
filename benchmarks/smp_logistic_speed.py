"""Speed of the logistic predictors beside refits and LogisticRegressionCV.

1. Exact prediction against two cold ``LogisticRegression`` refits per row (tol 1e-8),
   with its default solver and with the fastest one, timed on some rows and scaled up;
   with the largest difference of probabilities.
2. One-step prediction against ``LogisticRegression.predict_proba`` plus one triangular
   solve with the d x d factor for all rows.
3. ``C="loo"`` over 20 values against ``LogisticRegressionCV(cv=5)`` over the same.
4. Fit of ``SMPLogisticRegressionCV`` against ``LogisticRegressionCV(cv=5)``, with 7 and
   with its default 10 values of C, on real and simulated data.
"""

from _report import (
    alternate_times,
    best_time,
    format_table,
    parse_options,
    publish,
    single_thread,
)

single_thread()

import warnings

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from skbounds import SMPLogisticRegression, SMPLogisticRegressionCV

warnings.simplefilter("ignore", FutureWarning)
warnings.simplefilter("ignore", ConvergenceWarning)

SEVEN = np.logspace(-2, 1, 7)


def simulate(n, d, *, seed=0, n_test=1000):
    """Return isotropic Gaussian rows with noisy linear labels, and test rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    theta = 2.0 * rng.normal(size=d) / np.sqrt(d)
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(int)
    return X, y, rng.normal(size=(n_test, d))


def refit_predictions(X, y, rows, C, tol, solver):
    """Return SMP probabilities by two cold refits per row."""
    scores = np.empty((len(rows), 2))
    lambda_ = 1.0 / ((len(X) + 1) * C)
    for i, row in enumerate(rows):
        for label in (0, 1):
            model = LogisticRegression(C=C, tol=tol, max_iter=10_000, solver=solver)
            model.fit(np.vstack([X, row]), np.append(y, label))
            margin = (2 * label - 1) * model.decision_function(row[None])[0]
            penalty = 0.5 * lambda_ * np.sum(model.coef_**2)
            scores[i, label] = -np.logaddexp(0.0, -margin) - penalty
    return 1.0 / (1.0 + np.exp(scores[:, 0] - scores[:, 1]))


def exact_prediction(quick):
    cases = [(1000, 20, 1.0, 1000), (1000, 20, "theory", 1000), (200, 5, 1.0, 1000)]
    if not quick:
        cases += [(1000, 100, 1.0, 1000), (20000, 50, 1.0, 1000)]
        cases += [(2000, 20, 1.0, 20_000)]
        cases += [(300, 2000, "theory", 500), (300, 2000, 1.0, 500)]
    rows = []
    for n, d, C, m in cases:
        X, y, X_test = simulate(n, d, n_test=m)
        seconds, proba = best_time(
            lambda X=X, y=y, X_test=X_test, C=C: (
                SMPLogisticRegression(C).fit(X, y).predict_proba(X_test)[:, 1]
            )
        )
        value = SMPLogisticRegression(C).fit(X, y).C_
        timed = 10 if quick else (50 if n < 10_000 and d < 1000 else 5)
        cells = []
        for solver in ("lbfgs", "newton-cholesky"):
            if solver == "newton-cholesky" and d >= 500:
                cells += ["-", "-"]
                continue
            slow, expected = best_time(
                lambda X=X, y=y, rows=X_test[:timed], C=value, solver=solver: (
                    refit_predictions(X, y, rows, C, 1e-8, solver)
                ),
                repeats=1,
            )
            slow *= m / timed
            cells += [f"{slow:.1f}", f"**{slow / seconds:.0f}**"]
            difference = np.abs(proba[:timed] - expected).max()
        rows.append(
            [n, d, m, f"{value:.3g}", f"{seconds:.3f}", *cells, f"{difference:.0e}"]
        )
    header = ["n", "d", "rows", "C", "exact SMP (s)", "lbfgs refits (s)", "ratio"]
    header += ["newton-cholesky refits (s)", "ratio", "max diff"]
    return format_table(header, rows)


def one_step_prediction(quick):
    rows = []
    for n, d, m in [(1000, 20, 1000), (1000, 20, 20_000), (1000, 100, 1000)]:
        X, y, X_test = simulate(n, d, n_test=m)
        one_step = SMPLogisticRegression(method="one-step").fit(X, y)
        plain = LogisticRegression().fit(X, y)
        factor = np.linalg.cholesky(X.T @ X + np.eye(d))

        def competitor(plain=plain, X_test=X_test, factor=factor):
            plain.predict_proba(X_test)
            return solve_triangular(factor, X_test.T, lower=True)

        times = alternate_times(
            {
                "ours": lambda m=one_step, X=X_test: m.predict_proba(X),
                "plain": competitor,
            },
            repeats=5 if quick else 25,
        )
        ours, other = times["ours"][0], times["plain"][0]
        rows.append([n, d, m, f"{1e3 * ours:.2f}", f"{1e3 * other:.2f}"])
        rows[-1].append(f"**{ours / other:.1f}**")
    header = ["n", "d", "rows", "one-step (ms)", "predict_proba + solve (ms)", "ratio"]
    return format_table(header, rows)


def tables(name):
    """Return a standardised real or simulated binary (or multiclass) table."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "digits 3v8":
        X, y = load_digits(return_X_y=True)
        X, y = X[np.isin(y, [3, 8])], y[np.isin(y, [3, 8])]
    elif name == "wine":
        X, y = load_wine(return_X_y=True)
    elif name.endswith("classes"):
        # Of about as many rows each.
        K = int(name.split()[0])
        rng = np.random.default_rng(K)
        y = np.arange(2000) % K
        X = 1.5 * rng.normal(size=(K, 16))[y] + rng.normal(size=(2000, 16))
        return StandardScaler().fit_transform(X), y
    else:
        X, y, _ = simulate(2000, 20, seed=1)
    order = np.random.default_rng(0).permutation(len(y))
    return StandardScaler().fit_transform(X[order]), y[order]


def cross_validated(Cs, cv=5):
    options = {"cv": cv, "scoring": "neg_log_loss", "max_iter": 1000}
    return LogisticRegressionCV(Cs=Cs, **options)


def loo_search(quick):
    rows = []
    Cs = np.logspace(-3, 2, 20)
    for name in ["simulated d=20", "breast_cancer", "digits 3v8"]:
        X, y = tables(name)
        X, y = X[:300], y[:300]
        times = alternate_times(
            {
                "ours": lambda X=X, y=y: SMPLogisticRegression("loo", Cs=Cs).fit(X, y),
                "cv": lambda X=X, y=y: cross_validated(Cs).fit(X, y),
            },
            repeats=1 if quick else 5,
        )
        ours, other = times["ours"][0], times["cv"][0]
        rows.append([name, f"{1e3 * ours:.0f}", f"{1e3 * other:.0f}"])
        rows[-1].append(f"**{ours / other:.2f}**")
    header = ["data, n=300", 'C="loo" (ms)', "LogisticRegressionCV (ms)", "ratio"]
    return format_table(header, rows)


def pool_fit(quick):
    rows = []
    cases = [
        ("breast_cancer", 50),
        ("breast_cancer", 100),
        ("breast_cancer", 300),
        ("digits 3v8", 300),
        ("simulated d=20", 300),
        ("simulated d=20", 1000),
        ("wine", 150),
        ("digits", 200),
        ("digits", 1000),
        ("26 classes", 1000),
        ("40 classes", 120),
        ("100 classes", 300),
    ]
    for name, n in cases[:6] if quick else cases:
        X, y = tables(name)
        cv = int(min(5, np.unique(y[:n], return_counts=True)[1].min()))
        times = alternate_times(
            {
                "ours": lambda X=X[:n], y=y[:n]: SMPLogisticRegressionCV().fit(X, y),
                "7": lambda X=X[:n], y=y[:n], cv=cv: cross_validated(SEVEN, cv).fit(
                    X, y
                ),
                "10": lambda X=X[:n], y=y[:n], cv=cv: cross_validated(10, cv).fit(X, y),
            },
            repeats=2 if quick or len(np.unique(y)) > 50 else 9,
        )
        model = SMPLogisticRegressionCV().fit(X[:n], y[:n])
        test = np.resize(X[n:], (100, X.shape[1]))
        predict, _ = best_time(lambda m=model, t=test: m.predict_proba(t))
        ours, seven, ten = (times[key][0] for key in ("ours", "7", "10"))
        rows.append(
            [
                *(name, n, len(np.unique(y)), f"{1e3 * ours:.1f}"),
                *(f"{1e3 * seven:.1f}", f"{1e3 * ten:.1f}"),
                *(f"**{ours / seven:.2f}**", f"**{ours / ten:.2f}**"),
                f"{model.method_}: {1e3 * predict:.1f}",
            ]
        )
    header = ["data", "n", "classes", "pool fit (ms)", "CV, 7 C (ms)", "CV, 10 C (ms)"]
    header += ["ratio to 7", "ratio to 10", "predict 100 rows (ms)"]
    return format_table(header, rows)


def main():
    options = parse_options(__doc__.splitlines()[0])
    text = [
        "## Logistic: speed",
        "Exact prediction (fit included) against two cold refits per row:",
        exact_prediction(options.quick),
        "One-step prediction:",
        one_step_prediction(options.quick),
        "Leave-one-out choice among 20 values of C:",
        loo_search(options.quick),
        "Fit of the pool (`SMPLogisticRegressionCV`) against `LogisticRegressionCV` "
        "with 5 folds:",
        pool_fit(options.quick),
    ]
    publish("smp-logistic-speed", "\n\n".join(text), quick=options.quick)


if __name__ == "__main__":
    main()
