"""Seeds of estimators that bring none."""

from __future__ import annotations

from sklearn.base import clone


def seeded(estimator, seed: int):
    """Return a clone in which all random states that are None are the seed."""
    result = clone(estimator)
    unset = [
        key
        for key, value in result.get_params(deep=True).items()
        if value is None and key.rpartition("__")[2] == "random_state"
    ]
    return result.set_params(**dict.fromkeys(unset, seed))
