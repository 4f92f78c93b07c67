"""Blocks of rows that keep temporary arrays within scikit-learn's working memory."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn import get_config


def memory_limit() -> int:
    """Return how many doubles fit into scikit-learn's ``working_memory``."""
    return int(get_config()["working_memory"] * 2**20 / 8)


def row_blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` rows (at least one) that cover all rows."""
    size = max(1, int(size))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
