"""Compilation of sequential loops with numba, tolerant of read-only installations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite.ir import Constant, FunctionType, IntType, PointerType, VoidType
from numba.core import cgutils, types
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


@intrinsic
def prefetch(typing_context, array, i, j):
    """Ask the processor to load entry (i, j) of an array soon; changes nothing."""

    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        view = make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(
            context, builder, kind, view, arguments[1:], wraparound=False
        )
        byte, word = PointerType(IntType(8)), IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), FunctionType(VoidType(), [byte, word, word, word])
        )
        # For reading, to be kept in the second-level cache, data.
        options = [word(0), word(2), word(1)]
        builder.call(function, [builder.bitcast(pointer, byte), *options])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), codegen


@intrinsic
def where_greater(typing_context, x, y, if_greater, otherwise):
    """Return ``if_greater if x > y else otherwise`` for float64 without NaN.

    The compiler may ignore NaN and the sign of zero, without which it does not
    vectorise maxima and minima; numba sets these flags on no selection.
    """
    flags = ("nnan", "nsz")

    def codegen(context, builder, signature, arguments):
        x, y, if_greater, otherwise = arguments
        greater = builder.fcmp_ordered(">", x, y, flags=flags)
        return builder.select(greater, if_greater, otherwise, flags=flags)

    return types.float64(*[types.float64] * 4), codegen
