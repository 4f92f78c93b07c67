"""Compilation of sequential loops with numba, tolerant of read-only installations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compile_nogil(**options: Any) -> Callable[[Callable], Callable]:
    """Return a decorator like ``numba.njit`` with disk cache and released GIL.

    numba refuses ``cache=True`` outright when it finds no folder it may write to
    (a read-only installation with a read-only home); compiling once per process is
    then the right thing to do, so that case falls back to no cache, silently.

    Parameters
    ----------
    **options : dict
        Further options of ``numba.njit``.
    """

    def decorate(function: Callable) -> Callable:
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            return numba.njit(nogil=True, **options)(function)

    return decorate
