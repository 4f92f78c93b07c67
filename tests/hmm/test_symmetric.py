"""What scikit-learn's suite would check of the symmetric model, with two states."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skbounds.hmm import BaumWelchHMM


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.uniform(size=80) < 0.2) % 2
    X = (2 * states - 1)[:, None] * [1.5, 0.5] + rng.normal(size=(80, 2))
    model = BaumWelchHMM(structure="symmetric", sigma=1.0, random_state=0)
    return model, X


def test_fit_leaves_parameters_alone(problem):
    """check_dont_overwrite_parameters."""
    model, X = problem
    before = dict(model.get_params())
    names = set(vars(model))
    model.fit(X)
    assert model.get_params() == before
    new = set(vars(model)) - names
    assert all(name.startswith("_") or name.endswith("_") for name in new)


def test_one_dimensional_rows_are_refused(problem):
    """check_fit2d_predict1d."""
    model, X = problem
    model.fit(X)
    for method in ("predict", "predict_proba", "score_samples", "decode"):
        with pytest.raises(ValueError, match="Reshape your data"):
            getattr(model, method)(X[0])


def test_order_of_sequences_does_not_matter(problem):
    """Instead of check_methods_sample_order_invariance: rows are in order of time."""
    model, X = problem
    model.set_params(tol=1e-13, max_iter=1000).fit(X, lengths=[20, 30, 30])
    p = model.predict_proba(X, lengths=[20, 30, 30])
    turned = np.r_[X[50:], X[20:50], X[:20]]
    expected = np.r_[p[50:], p[20:50], p[:20]]
    found = model.predict_proba(turned, lengths=[30, 30, 20])
    assert_allclose(found, expected, rtol=1e-12)
    again = clone(model).fit(turned, lengths=[30, 30, 20])
    assert_allclose(again.means_, model.means_, rtol=1e-9)
    assert_allclose(again.history_[-1], model.history_[-1], rtol=1e-12)
    # Rows themselves may not be exchanged.
    mixed = model.predict_proba(X[::-1][np.argsort(np.arange(80) % 3)])
    assert np.abs(mixed - p).max() > 0.01


def test_sequences_are_predicted_by_themselves(problem):
    """Instead of check_methods_subset_invariance."""
    model, X = problem
    model.fit(X)
    parts = [model.predict_proba(X[:30]), model.predict_proba(X[30:])]
    together = model.predict_proba(X, lengths=[30, 50])
    assert_allclose(np.vstack(parts), together, rtol=1e-12)
    assert np.abs(model.predict_proba(X)[29] / parts[0][29] - 1.0).max() > 0.1


@pytest.mark.parametrize("n_components", [1, 3])
def test_other_numbers_of_states(problem, n_components):
    model, X = problem
    with pytest.raises(ValueError, match="two states; got n_components"):
        clone(model).set_params(n_components=n_components).fit(X)


def test_known_middle_is_no_reason_to_warn(problem, recwarn):
    model, X = problem
    model.fit(X - X.mean(axis=0))
    assert not [w for w in recwarn if "mean of X" in str(w.message)]
    with pytest.warns(UserWarning, match="mean of X is"):
        clone(model).fit(X + 5.0)
    assert_array_equal(model.means_[0], -model.means_[1])
