"""Parts: separately compiled functions that compiled loops call by address.

Compiling every combination of element, law, plant and hand into the loop would take too long. Each of them is therefore
a part: it is compiled and cached separately when it is first used, and costs the loop one indirect call. A part takes
one record and two numbers and returns nothing.

A record refers to data outside of it (a table of any length, the record of another part) by an address, which is read
with `record_at`. The code that writes an address into a record must keep the data alive. Memory that other threads or
processes modify is read with `integer_at` and `float_at`, which load at once and in program order. The compiler may
delay any other load until its value is needed, even past a fence.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np

from haptics.jit import COMPILED, kernel

_PARTS: dict[tuple[Callable[..., None], np.dtype[Any]], tuple[int, object]] = {}
"""Address of every part and the object that must be kept alive; callers hold only the address."""

_interpreted: list[tuple[Callable[..., None], np.dtype[Any]]] = []


def address_of_part(function: Callable[..., None], dtype: np.dtype[Any]) -> int:
    """Return the address of the part ``function(record, x, y)`` in this process; compile it on first use.

    Parameters
    ----------
    function : callable
        A kernel.
    dtype : dtype
        Type of the record. The part also accepts longer records that begin with the same fields.
    """
    if (function, dtype) not in _PARTS:
        _PARTS[function, dtype] = _compiled(function, dtype) if COMPILED else _listed(function, dtype)
    return _PARTS[function, dtype][0]


def _listed(function: Callable[..., None], dtype: np.dtype[Any]) -> tuple[int, object]:
    _interpreted.append((function, dtype))
    return len(_interpreted), function  # address 0 is reserved for "no part"


if not COMPILED:

    def record_at(address: int, dtype: np.dtype[Any]) -> Any:
        """Return the record of `dtype` at `address`."""
        memory: Any = (ctypes.c_char * dtype.itemsize).from_address(int(address))
        return np.frombuffer(memory, dtype).view(np.recarray)[0]

    def call_part(address: int, record: Any, x: float, y: float) -> None:
        """Call the part at `address` with a record or with the address of a record."""
        function, dtype = _interpreted[address - 1]
        function(record_at(int(record), dtype) if isinstance(record, int | np.integer) else record, x, y)

    def integer_at(address: int) -> int:
        """Return the integer at `address`."""
        return ctypes.c_int64.from_address(int(address)).value

    def float_at(address: int) -> float:
        """Return the number at `address`."""
        return ctypes.c_double.from_address(int(address)).value

    def fence() -> None:
        """Complete all earlier memory accesses before any later one."""

else:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    from haptics.jit import compile_callback

    @intrinsic  # type: ignore[untyped-decorator]
    def record_at(typing: Any, address: Any, dtype: Any) -> Any:
        """Return the record of `dtype` at `address`."""
        if not isinstance(dtype, types.DType) or not isinstance(dtype.dtype, types.Record):
            return None

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return dtype.dtype(types.int64, dtype), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def call_part(typing: Any, address: Any, record: Any, x: Any, y: Any) -> Any:
        """Call the part at `address` with a record or with the address of a record."""
        if not isinstance(record, types.Record):
            record = types.int64

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            integer, double = ir.IntType(64), ir.DoubleType()
            function = ir.FunctionType(ir.VoidType(), [integer, double, double]).as_pointer()
            place = values[1] if record is types.int64 else builder.ptrtoint(values[1], integer)
            builder.call(builder.inttoptr(values[0], function), [place, values[2], values[3]])
            return context.get_dummy_value()

        return types.void(types.int64, record, types.float64, types.float64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def fence(typing: Any) -> Any:
        """Complete all earlier memory accesses before any later one.

        The compiler moves no plain load across it.
        """

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            stay = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", side_effect=True)
            builder.call(stay, [])
            builder.fence("seq_cst")
            builder.call(stay, [])
            return context.get_dummy_value()

        return types.void(), generate

    def _load(kind: Any, value: Any) -> Any:
        """Return an intrinsic that loads a `value` of numba type `kind` from memory that other threads modify."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.load_atomic(builder.inttoptr(values[0], value.as_pointer()), "acquire", 8)

        return kind(types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def integer_at(typing: Any, address: Any) -> Any:
        """Return the integer at `address`."""
        return _load(types.int64, ir.IntType(64))

    @intrinsic  # type: ignore[untyped-decorator]
    def float_at(typing: Any, address: Any) -> Any:
        """Return the number at `address`."""
        return _load(types.float64, ir.DoubleType())

    def _compiled(function: Any, dtype: np.dtype[Any]) -> tuple[int, object]:
        """Compile the Python function of a kernel directly as a C function of a pointer and two numbers."""
        own = function.py_func
        part = FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__, own.__closure__)
        part.__qualname__ = f"{own.__qualname__}.part"  # separate cache entry: the kernel may be called elsewhere
        signature = types.void(numba.from_dtype(dtype), types.float64, types.float64)
        return compile_callback(part, signature, nopython=True, nogil=True, error_model="numpy")


@kernel
def run_part(address: int, place: int, x: float, y: float) -> None:
    """Call the part at `address` with the record at address `place`; for callers in Python."""
    call_part(address, place, x, y)
