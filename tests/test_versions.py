"""Pickles know the version of this package that wrote them."""

import copy
import pickle
import warnings

import pytest
from common import instances, make_data
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import skbounds
from skbounds import MABFDR, BestArmTest, LORDPlusPlus, _base

ESTIMATORS = [
    *{type(e): e for e in instances() + instances(outside=True)}.values(),
    BestArmTest(3, sigma=1.0, max_pulls=100),
    MABFDR(sigma=1.0, max_pulls=100),
    LORDPlusPlus(0.1),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_another_version_is_warned_of(estimator, monkeypatch):
    """And the state is there all the same; copies and the same version are silent."""
    if hasattr(estimator, "fit") and not isinstance(estimator, LORDPlusPlus):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = clone(estimator).fit(*make_data(estimator))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InconsistentVersionWarning)
        written = pickle.dumps(estimator)
        same = pickle.loads(written)
        copy.deepcopy(estimator)
        clone(estimator)
    assert "_skbounds_version" not in vars(same)
    monkeypatch.setattr(_base, "__version__", "99.0")
    name = type(estimator).__name__
    expected = f"{name} from version {skbounds.__version__} when using version 99.0"
    with pytest.warns(InconsistentVersionWarning, match=expected):
        other = pickle.loads(written)
    assert vars(other).keys() == vars(same).keys()


def test_pickles_of_the_first_version_have_none():
    estimator = skbounds.RidgeSMP()
    state = estimator.__getstate__()
    del state["_skbounds_version"]
    with pytest.warns(
        InconsistentVersionWarning, match=r"from version 0\.1 or earlier"
    ):
        skbounds.RidgeSMP.__new__(skbounds.RidgeSMP).__setstate__(state)
