"""Parts: functions that compiled loops call by their address, each compiled and kept by itself.

What varies in a loop (an element with its law, a plant, a hand) would have to be compiled into it in every combination.
As a part it is compiled once, when it is first chosen, and costs the loop one indirect call. A part works on one
record: it gets that and two numbers, and returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from haptics._jit import COMPILED, kept

_PARTS: dict[tuple[Callable[..., None], np.dtype[Any]], tuple[int, object]] = {}
"""Address of every part and what keeps it alive: whoever calls it knows its address alone."""

_interpreted: list[Callable[..., None]] = []


def address_of_part(function: Callable[..., None], dtype: np.dtype[Any]) -> int:
    """Return where the part ``function(record, x, y)`` lies in this process, compiled now if it never was.

    Parameters
    ----------
    function : callable
        A kernel.
    dtype : dtype
        Of the record. The part may also be called with a longer record that begins with the same fields.
    """
    if (function, dtype) not in _PARTS:
        _PARTS[function, dtype] = _compiled(function, dtype) if COMPILED else _listed(function)
    return _PARTS[function, dtype][0]


def _listed(function: Callable[..., None]) -> tuple[int, object]:
    _interpreted.append(function)
    return len(_interpreted), function  # from 1 on: an address of 0 means that there is none


if not COMPILED:

    def call_part(address: int, record: Any, x: float, y: float) -> None:
        """Call the part at `address`."""
        _interpreted[address - 1](record, x, y)

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils, sigutils
    from numba.core.ccallback import CFunc
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def call_part(typing: Any, address: Any, record: Any, x: Any, y: Any) -> Any:
        """Call the part at `address`."""
        if not isinstance(record, types.Record):
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            double = ir.DoubleType()
            function = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, double, double]).as_pointer()
            pointer = builder.bitcast(values[1], cgutils.voidptr_t)
            builder.call(builder.inttoptr(values[0], function), [pointer, values[2], values[3]])
            return context.get_dummy_value()

        return types.void(types.int64, record, types.float64, types.float64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _record_at(typing: Any, pointer: Any) -> Any:
        """Return the record that `pointer` points to."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.bitcast(values[0], context.get_value_type(signature.return_type))

        return pointer.dtype(pointer), generate

    def _compiled(function: Callable[..., None], dtype: np.dtype[Any]) -> tuple[int, object]:
        def part(pointer: Any, x: float, y: float) -> None:
            function(_record_at(pointer), x, y)

        number = types.float64
        signature = types.void(types.CPointer(numba.from_dtype(dtype)), number, number)
        options = {"nopython": True, "nogil": True, "error_model": "numpy"}
        callback: Any = CFunc(part, sigutils.normalize_signature(signature), {}, options)
        callback._cache = kept(part)
        callback.compile()
        return callback.address, callback
