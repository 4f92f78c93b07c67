"""What a wheel must pass wherever it is built."""

from native import smoke


def test_every_estimator_works():
    """A small fit and prediction of each."""
    smoke.main()
