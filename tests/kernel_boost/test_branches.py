"""Branches that no other test takes."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skbounds.kernel_boost import (
    EarlyStoppedKernelBoost,
    EarlyStoppedKernelBoostClassifier,
    RelevanceDisplay,
    StoppingPathDisplay,
)
from skbounds.kernel_boost._class_stopping import working_norm
from skbounds.kernel_boost._folds import numbers_of_split
from skbounds.kernel_boost._hashes import value_hashes
from skbounds.kernel_boost._kernels import scale_gamma
from skbounds.kernel_boost._relevance import _median


def data(n=40, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_gamma_of_sparse_rows():
    X, weight = data()[0], np.arange(1.0, 41.0)
    X[np.abs(X) < 0.5] = 0.0
    share = np.repeat(weight[:, None] / weight.sum() / 3.0, 3, axis=1)
    mean = (share * X).sum()
    expected = 1.0 / (3.0 * (share * (X - mean) ** 2).sum())
    assert_allclose(scale_gamma(X, weight), expected)
    assert_allclose(scale_gamma(sparse.csr_array(X), weight), expected)


def test_hashes_of_sparse_rows():
    """Of values: neither stored zeros nor parts of sums change them."""
    row, column = np.array([0, 1, 1, 2, 2]), np.array([0, 1, 1, 0, 1])
    X = sparse.coo_array(([1.0, 2.0, 3.0, 1.0, 0.0], (row, column)), shape=(4, 2))
    found = value_hashes(X, 3)
    plain = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 5.0], [1.0, 0.0], [0.0, 0.0]]))
    assert_array_equal(found, value_hashes(plain, 3))
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
    assert (found[:3] != value_hashes(X, 4)[:3]).all()


def test_splits_without_test_rows():
    none = np.array([], dtype=int)
    with pytest.raises(ValueError, match="cv has no test rows"):
        numbers_of_split([(np.arange(4), none)], 4, complete=False)
    found = numbers_of_split([(np.arange(2), np.array([2]))], 4, complete=False)
    assert_array_equal(found, [-1, -1, 0, -1])


def test_median_of_rows_that_are_all_the_same():
    assert _median(np.zeros((3, 3)), np.ones(3)) == 1.0
    gaps = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]])
    assert_allclose(_median(gaps, np.ones(3)), 4.0)


def test_targets_that_hardly_vary():
    X, y = data()
    with pytest.raises(ValueError, match=r"y varies by .* only; squares of such"):
        EarlyStoppedKernelBoost().fit(X, 1e-180 * y)


def test_validation_without_rows():
    X, y = data(2)
    model = EarlyStoppedKernelBoost(stopping="validation", validation_fraction=0.01)
    message = r"needs a training and a validation row; got n_samples=1"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=[1.0, 0.0])


def test_validation_targets():
    X, y = data(60)
    model = EarlyStoppedKernelBoost(stopping="validation", random_state=0)
    plain = model.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:]).predict(X)
    column = model.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:, None]).predict(X)
    assert_array_equal(plain, column)
    two = np.column_stack([y, y])[40:]
    with pytest.raises(ValueError, match=r"y_val must have the outputs of y"):
        model.fit(X[:40], y[:40], X_val=X[40:], y_val=two)


def test_given_noise_of_another_loss():
    X, y = data()
    model = EarlyStoppedKernelBoost(loss="huber", noise=0.25, random_state=0).fit(X, y)
    assert model.noise_ == 0.25


def test_classes_of_constant_rows():
    """Nothing is learnt but the shares of the classes."""
    X, y = np.ones((30, 2)), np.repeat([0, 1], [10, 20])
    model = EarlyStoppedKernelBoostClassifier(relevance="ard", random_state=0)
    with pytest.warns(UserWarning, match="The kernel sees the rows as the same"):
        model.fit(X, y)
    proba = model.predict_proba(X)
    assert_allclose(proba, np.tile([1 / 3, 2 / 3], (30, 1)), rtol=1e-6)
    assert (model.predict(X) == 1).all()


@pytest.mark.usefixtures("pictures")
class TestDisplays:
    def test_rows_without_targets(self):
        X, y = data()
        model = EarlyStoppedKernelBoost(random_state=0).fit(X, y)
        for given in ({"X": X}, {"y": y}):
            with pytest.raises(ValueError, match="X and y are given together"):
                StoppingPathDisplay.from_estimator(model, **given)

    @pytest.mark.parametrize("loss", ["squared", "huber"])
    def test_loss_on_other_rows(self, loss):
        X, y = data(80)
        model = EarlyStoppedKernelBoost(loss=loss, random_state=0).fit(X[:40], y[:40])
        display = StoppingPathDisplay.from_estimator(model, X[40:], y[40:])
        labels = [line.get_label() for line in display.ax_.lines]
        assert "loss on other rows" in labels
        gaps = np.abs(y[40:] - model.predict(X[40:]))
        losses = 0.5 * gaps**2
        if loss == "huber":
            delta = model.delta_
            losses = np.where(gaps <= delta, losses, delta * (gaps - 0.5 * delta))
        at = int(np.argmin(np.abs(display.times - display.stopping_time)))
        if display.times[at] == display.stopping_time:
            assert_allclose(display.held_out[at], losses.mean())
        else:
            around = display.held_out[max(at - 1, 0) : at + 2]
            assert around.min() <= losses.mean() <= around.max()

    def test_largest_relevances_only(self):
        import matplotlib.pyplot as plt

        X, y = data(60, 4)
        model = EarlyStoppedKernelBoost(relevance="ard", random_state=0).fit(X, y)
        _, ax = plt.subplots()
        display = RelevanceDisplay.from_estimator(model, max_features=2, ax=ax)
        sizes = np.sqrt(model.relevance_)
        largest = np.sort(np.argsort(-sizes)[:2])
        assert display.names == [f"x{j}" for j in largest]
        assert_allclose(display.relevance, sizes[largest])
        assert len(ax.patches) == 2


def test_offset_of_constant_rows():
    """Of rows that are all the same only the mean is known."""
    X, y = np.ones((20, 2)), np.arange(20.0)
    model = EarlyStoppedKernelBoost(relevance="ard", random_state=0)
    with pytest.warns(UserWarning, match="The kernel sees the rows as the same"):
        model.fit(X, y)
    assert_allclose(model.predict(X), np.full(20, 9.5), rtol=1e-9)


def test_names_of_features():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    X, y = data(60)
    frame = pd.DataFrame(X, columns=["one", "two", "three"])
    model = EarlyStoppedKernelBoost(relevance="ard", random_state=0).fit(frame, y)
    display = RelevanceDisplay.from_estimator(model, plot=False)
    assert display.names == ["one", "two", "three"]
    assert_allclose(display.relevance, np.sqrt(model.relevance_))


def test_norm_of_a_spectrum_without_eigenvalues():
    """A kernel of zeros has no function but 0."""
    none = SimpleNamespace(
        n_samples=5, eigenvalues=np.empty(0), coefficients=np.empty((0, 1))
    )
    assert working_norm(none, 1.0) == 0.0


def test_path_without_theory():
    """Neither a line of theory nor one of other rows is drawn."""
    pytest.importorskip("matplotlib").use("Agg")
    times = np.array([1, 2, 4])
    display = StoppingPathDisplay(
        times=times, criterion=np.array([3.0, 1.0, 2.0]), df=np.array([1.0, 2.0, 3.0]),
        train_loss=np.array([3.0, 2.0, 1.0]), stopping_time=2,
    ).plot()  # fmt: skip
    labels = [line.get_label() for axis in display.figure_.axes for line in axis.lines]
    assert "T = 2" in labels
    assert not any("theory" in label or "other rows" in label for label in labels)
