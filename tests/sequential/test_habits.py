"""scikit-learn's habits, for classes that its suite has no data for."""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skbounds.sequential import (
    LORD,
    MABFDR,
    AlphaSpending,
    BestArmTest,
    LORDPlusPlus,
    LORDPrime,
)

PROCEDURES = [
    LORD(0.1),
    LORD(0.1, w0=0.02, horizon=500),
    LORDPrime(0.1),
    LORDPlusPlus(0.1),
    LORDPlusPlus(0.1, gamma=[0.5, 0.3, 0.1]),
    AlphaSpending(0.1),
]
OTHERS = [
    BestArmTest(4, evidence="lil", sigma=1.0, max_pulls=300, random_state=0),
    BestArmTest(
        3, evidence="lil", sigma=0.5, max_pulls=50, epsilon=0.1, sampler="uniform"
    ),
    MABFDR(evidence="lil", sigma=1.0, max_pulls=300, random_state=0),
    MABFDR(
        LORDPrime(0.1),
        alpha=0.1,
        evidence="lil",
        sigma=1.0,
        max_pulls=300,
        random_state=1,
    ),
]
names = lambda item: type(item).__name__


def p_values(n=300):
    rng = np.random.default_rng(0)
    return np.where(rng.uniform(size=n) < 0.2, 1e-8, rng.uniform(size=n))


def draw(arm, size, rng):
    return 1.0 * arm + rng.normal(size=size)


@pytest.mark.parametrize("item", PROCEDURES + OTHERS, ids=names)
def test_parameters(item):
    """get_params, set_params, clone and repr; the constructor stores and no more."""
    params = item.get_params(deep=False)
    twin = clone(item)
    for name, value in twin.get_params(deep=False).items():
        assert value == params[name] or repr(value) == repr(params[name])
    assert set(vars(twin)) == set(params)
    assert repr(item).startswith(type(item).__name__)
    for name, value in params.items():
        twin.set_params(**{name: value})


@pytest.mark.parametrize("item", PROCEDURES, ids=names)
def test_clones_forget(item):
    fitted = clone(item).fit(p_values())
    assert fitted.n_tests_ == 300
    assert clone(fitted).n_tests_ == 0
    assert fitted.reset().n_tests_ == 0


@pytest.mark.parametrize("item", PROCEDURES, ids=names)
@pytest.mark.parametrize("way", ["pickle", "json"])
def test_state_of_procedures_survives(item, way):
    """After any number of tests; levels and wealth are the same bits."""
    p = p_values()
    whole = clone(item).fit(p)
    other = clone(item)
    for j, value in enumerate(p.tolist()):
        if j % 37 == 0:
            if way == "pickle":
                other = pickle.loads(pickle.dumps(other))
            else:
                other = type(item).from_dict(json.loads(json.dumps(other.to_dict())))
        assert other.next_level_ == whole.levels_[j]
        assert other.test(value) == whole.rejected_[j]
        assert other.wealth_ == whole.wealth_path_[j]


@pytest.mark.parametrize("way", ["pickle", "json"])
@pytest.mark.parametrize("options", [{}, {"epsilon": 0.3}, {"sampler": "uniform"}])
def test_state_of_experiments_survives(way, options):
    """Between any two rounds, asked or not."""
    make = lambda: BestArmTest(
        4, evidence="lil", sigma=1.0, max_pulls=200, random_state=3, **options
    )
    whole, other = make().run(draw), make()
    for turn in range(10_000):
        if other.done_:
            break
        if way == "pickle":
            other = pickle.loads(pickle.dumps(other))
        else:
            other = BestArmTest.from_dict(json.loads(json.dumps(other.to_dict())))
        arms = other.ask()
        if turn % 2 and way == "json":
            other = BestArmTest.from_dict(json.loads(json.dumps(other.to_dict())))
            assert_array_equal(other.ask(), arms)
        rng = other._generator()
        other.tell(arms, [float(draw(int(arm), 1, rng)[0]) for arm in arms])
    assert_array_equal(other.counts_, whole.counts_)
    assert_array_equal(other.means_, whole.means_)
    assert other.log_p_value_ == whole.log_p_value_
    assert other.recommendation_ == whole.recommendation_


@pytest.mark.parametrize("item", OTHERS[2:], ids=["default", "prime"])
def test_state_of_studies_survives(item):
    """Between experiments, and within one."""
    whole = clone(item).run([(3, draw)] * 6)
    other = clone(item)
    for _ in range(6):
        other = MABFDR.from_dict(json.loads(json.dumps(other.to_dict())))
        other.begin(3)
        other = MABFDR.from_dict(json.loads(json.dumps(other.to_dict())))
        test = other.open_
        other.finish(test.run(draw))
    assert other.history_ == whole.history_
    assert other.next_level_ == whole.next_level_


@pytest.mark.parametrize("item", OTHERS[2:], ids=["default", "prime"])
def test_same_seed_same_study(item):
    first, second = (clone(item).run([(4, draw)] * 4) for _ in range(2))
    assert first.history_ == second.history_
