"""Settings shared by all tests."""

import os

# Parallel test workers must not compete for cores; set before NumPy loads its BLAS.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

settings.register_profile("skbounds", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("skbounds")
