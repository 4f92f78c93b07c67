"""Collections of dask, and clusters of processes on this machine."""

from contextlib import contextmanager

import pytest


def chunked(values, size=1700):
    """Return an array as a collection in chunks of so many rows."""
    import dask.array as da

    return da.from_array(values, chunks=(size, *values.shape[1:]))


@contextmanager
def two_processes():
    """Yield a client of dask with two workers; skip where it is not installed."""
    distributed = pytest.importorskip("distributed", reason="extra scale not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client
