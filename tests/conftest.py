"""Settings shared by all tests."""

import os

# Parallel test workers must not compete for cores; set before NumPy loads its BLAS.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sklearn.base import BaseEstimator

# Random examples, to look for failures: see fuzz.py. An option of the command line is
# read after this file, so that --hypothesis-profile=deep wins.
DEEP = int(os.environ.get("SKBOUNDS_EXAMPLES", "2000"))
settings.register_profile(
    "deep",
    settings.get_profile("default"),
    deadline=None,
    max_examples=DEEP,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("skbounds", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("skbounds")

TESTS = Path(__file__).parent
# Checks that every configuration of every estimator runs.
COMMON = (TESTS / "test_common.py", *sorted((TESTS / "native").glob("test_*.py")))


@pytest.fixture
def pictures():
    """Draw, and close what was drawn."""
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the common checks of all but the first configuration of a class as slow."""
    first = {}
    for item in items:
        if item.path not in COMMON or not hasattr(item, "callspec"):
            continue
        estimator = item.callspec.params.get("estimator")
        if isinstance(estimator, BaseEstimator):
            shown = repr(estimator)
            if shown != first.setdefault(type(estimator), shown):
                item.add_marker(pytest.mark.slow)
