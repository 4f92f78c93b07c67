"""What the estimators share: rows that are plain arrays, and names of parameters."""

import warnings

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from skbounds._base import SkboundsEstimator, validate_floats


class Estimator(SkboundsEstimator):
    def __init__(self, alpha=1.0, beta=None):
        self.alpha, self.beta = alpha, beta


class Narrower(Estimator):
    def __init__(self, gamma=2):
        super().__init__()
        self.gamma = gamma


def outcome(check, X, seen=None):
    """Return what a check gives: rows and attributes, or error and warnings."""
    estimator = Estimator()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if seen is not None:
                check(estimator, seen, True)
            found = check(estimator, X, seen is None)
        except (ValueError, TypeError) as error:
            return type(error), str(error)
    kept = {name: value for name, value in vars(estimator).items() if name != "beta"}
    if "feature_names_in_" in kept:
        kept["feature_names_in_"] = kept["feature_names_in_"].tolist()
    said = [(w.category, str(w.message)) for w in caught]
    return found.tobytes(), found.dtype, found.shape, kept, said


def slow(estimator, X, reset):
    """Check rows as scikit-learn does."""
    return validate_data(
        estimator, X, dtype=np.float64, reset=reset, ensure_all_finite="allow-nan"
    )


def fast(estimator, X, reset):
    return validate_floats(estimator, X, reset=reset)


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 3))
    counts = rng.integers(-5, 5, size=(7, 3))
    holes, inf, both = X.copy(), X.copy(), X.copy()
    holes[2, 1], inf[0, 0], both[:2, 0] = np.nan, np.inf, (np.inf, -np.inf)
    found = {
        "float64": X, "float32": X.astype(np.float32), "float16": X.astype("f2"),
        "longdouble": X.astype(np.longdouble), "int8": counts.astype(np.int8),
        "uint64": np.abs(counts).astype(np.uint64), "bool": counts > 0,
        "fortran": np.asfortranarray(X), "view": X[::-2], "list": X.tolist(),
        "object": X.astype(object), "complex": X + 1j, "text": X.astype(str),
        "nan": holes, "inf": inf, "inf - inf": both, "huge": np.full((4, 3), 1e308),
        "1d": X[0], "3d": X[None], "no rows": X[:0], "no columns": X[:, :0],
        "other width": X[:, :2], "masked": np.ma.masked_array(X),
        "big endian": X.astype(">f8"),
    }  # fmt: skip
    pandas = pytest.importorskip("pandas")
    return found | {"frame": pandas.DataFrame(X, columns=list("abc"))}


@pytest.mark.parametrize("seen", [None, "float64", "frame"])
@pytest.mark.parametrize("name", list(tables()))
def test_plain_rows_pass_as_scikit_learn_lets_them(name, seen):
    known = tables()
    first = None if seen is None else known[seen]
    assert outcome(fast, known[name], first) == outcome(slow, known[name], first)


def test_plain_rows_are_not_copied():
    X = np.ones((5, 2))
    assert np.shares_memory(validate_floats(Estimator(), X, reset=True), X)


def test_names_of_parameters_belong_to_the_class():
    assert Estimator().get_params() == {"alpha": 1.0, "beta": None}
    assert Narrower(gamma=3).get_params() == {"gamma": 3}
    names = Estimator._get_param_names()
    names.append("other")
    assert Estimator._get_param_names() == ["alpha", "beta"]
