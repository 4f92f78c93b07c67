"""What once went wrong, or silently said something else."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import chisquare, hypergeom
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from kernel_boost.toy import classification, regression
from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    StoppingPathDisplay,
)
from skbounds.kernel_boost._counts import draw_counts, split_counts
from skbounds.kernel_boost._rational import (
    approximate,
    fractions,
    left_over,
    prepared_times,
    table,
)

BOOSTS = [EarlyStoppedKernelBoost, EarlyStoppedKernelBoostClassifier]


def two_classes(seed, n):
    return classification(seed, n=n, n_classes=2, labels=["no", "yes"])


# Numbers of rows


@pytest.mark.slow
def test_counts_are_drawn_as_repeated_rows_would_be():
    """The number of drawn copies of a row is hypergeometric."""
    counts, rng = np.array([1.0, 5.0, 2.0, 4.0]), np.random.default_rng(0)
    drawn = np.array([draw_counts(counts, 6, rng) for _ in range(4000)])
    assert (drawn.sum(axis=1) == 6).all()
    assert (drawn <= counts).all()
    for k in (1, 3):
        law = hypergeom(12, int(counts[k]), 6)
        values = np.arange(counts[k] + 1)
        expected = 4000 * law.pmf(values)
        found = [(drawn[:, k] == value).sum() for value in values]
        assert chisquare(found, expected * np.sum(found) / expected.sum()).pvalue > 1e-3


def test_counts_are_split_within_groups():
    """Each class gives its share, a row's copies may go to both parts."""
    weight = np.array([6.0, 4.0, 3.0, 3.0, 14.0])
    groups = np.array([0, 0, 1, 1, 1])
    train, held_out = split_counts(weight, 0.3, np.random.default_rng(0), groups)
    assert_array_equal(train + held_out, weight)
    assert_array_equal(np.bincount(groups, weights=held_out), [3.0, 6.0])
    fractional, rest = split_counts(weight / 7.0, 0.4, np.random.default_rng(0))
    assert_allclose(fractional + rest, weight / 7.0)
    assert (rest > 0.0).sum() == 2
    assert not ((fractional > 0.0) & (rest > 0.0)).any()


def test_counts_beyond_the_hypergeometric_draws():
    """Numpy draws up to 1e9 of them; more are no error."""
    drawn = draw_counts(np.full(100, 1e8), 5000, np.random.default_rng(0))
    assert drawn.sum() == 5000
    X, y = regression(0, n=30)
    model = EarlyStoppedKernelBoost(gamma=0.6, stopping="validation", random_state=0)
    assert np.isfinite(model.fit(X, y, np.full(30, 1e8)).predict(X)).all()


@pytest.mark.parametrize("boost", BOOSTS)
def test_weights_that_are_no_numbers_of_rows(boost):
    X, y = two_classes(0, 30) if boost is BOOSTS[1] else regression(0, n=30)
    with pytest.warns(UserWarning, match="taken for numbers of rows"):
        boost(gamma=0.6).fit(X, y, np.full(30, 1 / 30))


# The rational filter


def test_prepared_fractions():
    """The shipped table, against the filter at other points than it was made with."""
    assert sorted(table()) == prepared_times().astype(int).tolist()
    for T in (8, 27, 256, 11585, 2**20, 2**33):
        found = table()[T]
        s = np.unique(
            np.r_[np.linspace(0.0, min(T, 90.0), 3001), np.geomspace(1e-8, T)]
        )
        terms = s[:, None] / (s[:, None] - found.poles)
        error = np.abs((terms @ found.factors).real - (1.0 - left_over(s, float(T))))
        assert error.max() < 2e-11
        assert found.error < 1e-11
        assert not (
            (np.abs(found.poles.imag) < 1e-10)
            & (found.poles.real >= 0.0)
            & (found.poles.real <= T)
        ).any()


@pytest.mark.parametrize("T", [9, 10, 11, 13, 17, 100, 999, 123457])
def test_fractions_of_any_time(T):
    """Made when they are needed."""
    found = approximate(float(T))
    s = np.unique(np.r_[np.linspace(0.0, min(T, 90.0), 3001), np.geomspace(1e-8, T)])
    terms = s[:, None] / (s[:, None] - found.poles)
    error = np.abs((terms @ found.factors).real - (1.0 - left_over(s, float(T))))
    assert error.max() < 2e-11
    assert fractions(float(T)) is fractions(float(T))


# Stopping rules


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leave_one_out_of_averaged_iterates(fit_intercept):
    """Refits without each row, at small times and some larger one."""
    X, y = regression(1, n=16)
    options = {"gamma": 0.6, "average": True, "fit_intercept": fit_intercept}
    model = EarlyStoppedKernelBoost(stopping="loo", **options).fit(X, y)
    path = model.stopping_path_
    for k in (0, 2, 5, 20):
        t = int(path["t"][k])
        errors = []
        for i in range(16):
            rest = np.delete(np.arange(16), i)
            # The step per row stays what it is with all rows.
            part = EarlyStoppedKernelBoost(
                stopping=None, max_iter=t, step_size=model.step_size_ * 15 / 16,
                **options,
            ).fit(X[rest], y[rest])  # fmt: skip
            errors.append((y[i] - part.predict(X[[i]])[0]) ** 2)
        assert_allclose(path["criterion"][k], np.mean(errors), rtol=1e-8)


def test_leave_one_out_of_one_row():
    with pytest.raises(ValueError, match="at least 2 rows; got n_samples=1"):
        EarlyStoppedKernelBoost(stopping="loo").fit([[1.0]], [1.0])


def test_leave_one_out_with_equal_weights():
    """Weights are numbers of rows, and a row twice is not one row."""
    X, y = regression(1)
    with pytest.raises(ValueError, match="sample_weight"):
        EarlyStoppedKernelBoost(stopping="loo").fit(X, y, np.full(len(y), 2.0))


def test_theory_does_not_depend_on_the_names_of_classes():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(200, 2))
    y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=200), [0.5, 0.9])
    times = []
    for names in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        model = EarlyStoppedKernelBoostClassifier(
            gamma=0.6, loss="exponential", stopping="theory"
        )
        times.append(model.fit(X, np.array(names)[y]).n_iter_)
    assert times[0] > 1
    assert len(set(times)) == 1


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_the_theory_of_classifiers_is_consistent(loss):
    """Noise, norm and radius are those that stopped the path."""
    X, y = two_classes(4, 60)
    model = EarlyStoppedKernelBoostClassifier(
        gamma=0.6, loss=loss, stopping="theory"
    ).fit(X, y)
    display = StoppingPathDisplay.from_estimator(model, plot=False)
    assert display.theory_time == model.n_iter_
    if loss == "log_loss":
        m = 1.0 / model.noise_**2
        expected = 1.0 / (m * model.step_size_ * model.critical_radius_**2)
        assert model.n_iter_ == max(1, int(expected))


def test_theory_with_hardly_any_noise():
    """Times beyond all integers end at the longest one."""
    X, y = regression(2, n=30)
    model = EarlyStoppedKernelBoost(gamma=3.0, stopping="theory", noise=1e-10)
    assert model.fit(X, y).n_iter_ == 10**9
    StoppingPathDisplay.from_estimator(model, plot=False)


def test_the_rank_does_not_depend_on_the_unit():
    """Criteria that are logarithms have no relative gain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    y = np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=700)
    ranks = [
        EarlyStoppedKernelBoost(
            gamma=1.0, stopping="aicc", random_state=0, rank_gain_tol=0.05
        ).fit(X, scale * y).rank_
        for scale in (1e-4, 0.9, 10.0, 1e20)
    ]  # fmt: skip
    assert len(set(ranks)) == 1


def test_the_rank_of_the_second_fit_is_that_of_the_first():
    """After a split for validation: rank and learning time are kept."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1200, 3))
    y = np.sin(9.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=1200)
    options = {"gamma": 3.0, "stopping": "validation", "solver": "lowrank"}
    model = EarlyStoppedKernelBoost(random_state=0, **options).fit(X, y)
    other = EarlyStoppedKernelBoost(
        random_state=0, rank_gain_tol=0.0, rank_tol=1e-9, max_rank=300, **options
    ).fit(X, y)
    assert other.rank_ == 300
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e8 + 0.1])
@pytest.mark.parametrize("kernel", ["rbf", "sobolev"])
def test_rounding_of_the_mean_is_no_signal(value, kernel):
    X = np.random.default_rng(0).uniform(size=(60, 1))
    model = EarlyStoppedKernelBoost(kernel, gamma=3.0).fit(X, np.full(60, value))
    assert model.n_iter_ == 1
    assert_allclose(model.predict(X), value, rtol=1e-14)


def test_limit_of_plain_steps():
    X, y = regression(5, n=20)
    model = EarlyStoppedKernelBoost(
        gamma=0.6, solver="gd", learning_rate=1e-6, stopping="discrepancy", noise=1e-3
    )
    with pytest.warns(ConvergenceWarning, match="limit 10000"):
        model.fit(X, y)


# Classifiers


def test_late_stops_keep_all_components():
    """Whatever the pilot says, what is learnt at the end is in the fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.5 * rng.normal(size=600) > 0.0
    losses = []
    for solver in ("eigh", "lowrank"):
        model = EarlyStoppedKernelBoostClassifier(
            gamma=0.5, stopping=None, max_iter=10**7, solver=solver, max_rank=600,
            rank_tol=0.0, rank_gain_tol=0.0, random_state=0,
        ).fit(X, y)  # fmt: skip
        losses.append(model.stopping_path_["train_loss"][-1])
    assert_allclose(*losses, rtol=5e-3)


def test_missing_degrees_of_freedom_of_several_classes():
    """The bound counts all free outputs."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(550, 3))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.0)
    for T in (5, 20):
        options = {"gamma": 1.0, "stopping": None, "max_iter": T, "random_state": 0}
        full = EarlyStoppedKernelBoostClassifier(solver="eigh", **options).fit(X, y)
        part = EarlyStoppedKernelBoostClassifier(
            solver="lowrank", max_rank=64, **options
        ).fit(X, y)
        assert full.df_ - part.df_ <= 1.02 * part.missing_df_


@pytest.mark.parametrize("average", [True, False])
def test_separable_classes_do_not_overflow(average):
    X, _ = regression(6, n=40)
    X = np.r_[X + 5.0, X - 5.0]
    y = np.repeat([1, 0], 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EarlyStoppedKernelBoostClassifier(
            gamma=0.05, loss="exponential", stopping=None, max_iter=3000, solver="gd",
            average=average,
        ).fit(X, y)  # fmt: skip
    assert model.score(X, y) == 1.0


def test_mean_loss_of_one_against_rest():
    X, y = classification(7, n=30, n_classes=3)
    for options in ({}, {"step_size": 0.1}):
        model = EarlyStoppedKernelBoostClassifier(
            gamma=0.6, loss="exponential", stopping=None, max_iter=7, **options
        ).fit(X, y)
        labels = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
        expected = np.exp(-labels * model.decision_function(X)).mean()
        assert_allclose(model.stopping_path_["train_loss"][-1], expected, rtol=1e-10)


# Input


@pytest.mark.parametrize("boost", BOOSTS)
def test_sparse_validation_rows(boost):
    X, y = two_classes(8, 40) if boost is BOOSTS[1] else regression(8, n=40)
    fits = [
        boost(gamma=0.6, stopping="validation").fit(
            X[:30], y[:30], X_val=kind(X[30:]), y_val=y[30:]
        )
        for kind in (np.asarray, sparse.csr_matrix, sparse.csr_array)
    ]
    assert_array_equal([model.n_iter_ for model in fits[1:]], fits[0].n_iter_)


def test_parameters_after_the_fit_change_nothing():
    X, y = regression(9)
    model = EarlyStoppedKernelBoost(gamma=0.6).fit(X, y)
    before = model.predict(X - 9.0)
    assert_array_equal(model.set_params(kernel="sobolev").predict(X - 9.0), before)
    assert_array_equal(model.predict(sparse.csr_array(X - 9.0)), before)


@pytest.mark.parametrize("boost", BOOSTS)
def test_kernels_with_a_zero_diagonal(boost):
    """Not positive semidefinite, also where few entries are looked at."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(520, 3))
    y = (X[:, 0] > 0.5).astype(int)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        boost("additive_chi2").fit(X, y)
    A = rng.normal(size=(520, 520))
    A += A.T
    np.fill_diagonal(A, 0.0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        boost("precomputed").fit(A, y)


def test_streamed_factor_of_weighted_rows():
    """Recomputed blocks give what a kept factor gives, up to the choice of pivots."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 2))
    y = np.sin(4.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=5000)
    weight = rng.integers(1, 4, size=5000)
    options = {"gamma": 3.0, "random_state": 0, "max_rank": 60}
    kept = EarlyStoppedKernelBoost(**options).fit(X, y, weight)
    with config_context(working_memory=0.5):
        streamed = EarlyStoppedKernelBoost(**options).fit(X, y, weight)
    gap = np.abs(kept.predict(X) - streamed.predict(X)).max()
    assert gap < 0.05 * y.std()
    assert_allclose(streamed.df_, kept.df_, rtol=0.1)
    expected = np.average((y - streamed.predict(X)) ** 2, weights=weight) / 2
    at = np.searchsorted(streamed.stopping_path_["t"], streamed.n_iter_)
    assert_allclose(streamed.stopping_path_["train_loss"][at], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("times", "message"),
    [([1.0, np.inf], "whole numbers"), ([2, 1], "increasing"), ([0.5], "whole")],
)
def test_times_that_are_none(times, message):
    X, y = regression(9)
    model = EarlyStoppedKernelBoost(gamma=0.6).fit(X, y)
    with pytest.raises(ValueError, match=message):
        next(model.staged_predict(X, t=times))


# The picture


def test_display_of_other_rows():
    X, y = two_classes(10, 60)
    model = EarlyStoppedKernelBoostClassifier(gamma=0.6).fit(X[:40], y[:40])
    display = StoppingPathDisplay.from_estimator(model, X[40:], y[40:], plot=False)
    stages = list(model.staged_predict_proba(X[40:], t=model.stopping_path_["t"][:3]))
    codes = (y[40:] == "yes").astype(int)
    expected = [-np.log(p[np.arange(20), codes]).mean() for p in stages]
    assert_allclose(display.held_out[:3], expected, rtol=1e-10)
    with pytest.raises(ValueError, match="not fitted on"):
        StoppingPathDisplay.from_estimator(model, X[40:], ["maybe"] * 20, plot=False)


def test_display_of_several_outputs():
    X, y = regression(11, n=40, m=2)
    model = EarlyStoppedKernelBoost(gamma=0.6).fit(X, y)
    display = StoppingPathDisplay.from_estimator(model, output=1, plot=False)
    assert display.stopping_time == model.n_iter_[1]
    path = model.stopping_path_
    assert_array_equal(display.train_loss, path["train_loss"][:, 1])
    # Half of it, as the loss is half of the squared error.
    assert_allclose(display.criterion, 0.5 * path["criterion"][:, 1])
    with pytest.raises(ValueError, match=r"output must be in \[0, 2\)"):
        StoppingPathDisplay.from_estimator(model, output=2, plot=False)
