"""Types of arguments, for annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

# Arrays, tables, sparse matrices and collections of dask: no one type has them all.
MatrixLike: TypeAlias = Any

RandomState: TypeAlias = int | np.random.RandomState | None

# What decorators take and give back.
Function = TypeVar("Function", bound=Callable)

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from sklearn.model_selection import BaseCrossValidator as Splitter
else:
    # Imported by those who need them, not by all.
    Axes = Splitter = Any
