"""Fit every public estimator on a small table; needs nothing but an installed wheel."""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import skbounds
from skbounds import _core

TESTS = Path(__file__).resolve().parents[1]


def main():
    """Fit and predict, and say how many estimators did."""
    sys.path.insert(0, str(TESTS))
    from common import instances, make_data

    assert find_spec("numba") is None and find_spec("llvmlite") is None
    done = 0
    for estimator in [*instances(), *instances(outside=True)]:
        X, y = make_data(estimator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
            for method in ("predict", "predict_proba", "score_samples"):
                if hasattr(estimator, method):
                    assert len(getattr(estimator, method)(X)) == len(X)
        done += 1
    p = np.random.default_rng(0).random(1000)
    for procedure in (skbounds.LORD(), skbounds.LORDPrime(), skbounds.LORDPlusPlus()):
        procedure.fit(p)
        done += 1
    found = skbounds.simulate_best_arm_tests(
        [[0.0, 5.0]], max_pulls=2000, random_state=0
    )
    assert found["certified"][0] == 1
    print(f"{done} estimators, {Path(skbounds.__file__).parent}, {_core.level()}")


if __name__ == "__main__":
    main()
