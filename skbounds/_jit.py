"""Compilation of sequential loops with numba, tolerant of read-only installations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite.ir import Constant
from numba.core.extending import intrinsic
from numba.np.arrayobj import make_array


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


@intrinsic
def borrow(typing_context, array):
    """Return the array without its reference count, inside compiled code.

    Loops that hand arrays to other compiled functions otherwise spend a third of their
    time counting references. The argument must outlive the result: use it on arguments
    of the outermost function only, never on arrays allocated in compiled code.
    """

    def codegen(context, builder, signature, arguments):
        view = make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = Constant(view.meminfo.type, None)
        view.parent = Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen
