"""Compilation of kernels with numba, and parts: compiled functions that other kernels call by address.

Compiled kernels are cached in files (`haptics.kernel_cache`). Without a writable folder, every process compiles them
again.

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
import functools
import math
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np

from haptics.kernel_cache import KernelCache, find_folder, fingerprint

_F = TypeVar("_F", bound=Callable[..., Any])

_FOLDER = find_folder()

COMPILED = not numba.config.DISABLE_JIT
"""True if kernels are compiled, False if they run as plain Python (``NUMBA_DISABLE_JIT=1``)."""

LEVEL_ARGUMENTS = 9
"""Number of float64 arguments of a compiled level function: the speed and eight parameters."""

# Address of every part and the object that must be kept alive; callers hold only the address.
_PARTS: dict[tuple[Callable[..., None], np.dtype[Any]], tuple[int, object]] = {}

# Functions by address, counted from 1, if kernels are not compiled.
_interpreted_parts: list[tuple[Callable[..., None], np.dtype[Any]]] = []
_interpreted_levels: list[Callable[..., float]] = []

# A kernel compiled for an element's record also accepts larger records that begin with the same fields
# (haptics.elements.models, haptics.rendering.rendering). Numba supports this but warns at every first compilation that
# it is experimental.
warnings.filterwarnings("ignore", message=r"(?s).*considered a subtype")


# --- kernels ----------------------------------------------------------------------------------------------------------


def kernel(function: _F, **options: Any) -> _F:
    """Compile `function` in nopython mode, without the GIL; `options` are further options of numba.

    Fast-math is off, so that results are reproducible. Structured arrays are passed by reference and modified in place.
    With ``NUMBA_DISABLE_JIT=1`` (coverage, debugger), arguments are wrapped so that their fields are accessible as
    attributes as well.
    """
    if COMPILED:
        compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
        if _FOLDER is not None:
            KernelCache(_FOLDER, function).attach(compiled)
        return cast(_F, compiled)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        records = [isinstance(argument, np.ndarray) and argument.dtype.names is not None for argument in arguments]
        pairs = zip(arguments, records, strict=True)
        return function(*[argument.view(np.recarray) if record else argument for argument, record in pairs])

    return cast(_F, call)


def inlined_kernel(function: _F) -> _F:
    """Compile like `kernel` and inline the code into every calling kernel.

    Use it for functions that run in every step. Returning several numbers from a call takes a fifth of the time of a
    step, and the compiler does not inline functions of this length by itself.
    """
    return kernel(function, forceinline=True)


def merged_kernel(function: _F) -> _F:
    """Compile like `kernel`, but only as part of the calling kernels.

    Use it for large functions that are called from one place. Every separate kernel optimises the code of its callees
    again, so that each level between a step and its parts takes as long to compile as the whole step.
    """
    return kernel(function, inline="always")


# --- calls by address -------------------------------------------------------------------------------------------------
#
# Kernels that take a function as an argument cannot be cached. They take the address of the function instead, which is
# a plain number: the kernels remain unchanged, and a part or a user-defined law costs one indirect call.

if not COMPILED:

    def quotients(x: float, y: float, divisor: float) -> tuple[float, float]:
        """Return ``x / divisor`` and ``y / divisor``."""
        return x / divisor, y / divisor

    def call_level(address: int, *arguments: float) -> float:
        """Call the level function at `address`."""
        return _interpreted_levels[address - 1](*arguments)

    def record_at(address: int, dtype: np.dtype[Any]) -> Any:
        """Return the record of `dtype` at `address`."""
        memory: Any = (ctypes.c_char * dtype.itemsize).from_address(int(address))
        return np.frombuffer(memory, dtype).view(np.recarray)[0]

    def call_part(address: int, record: Any, x: float, y: float) -> None:
        """Call the part at `address` with a record or with the address of a record."""
        function, dtype = _interpreted_parts[address - 1]
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
    from numba.core import sigutils
    from numba.core.ccallback import CFunc
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def quotients(typing: Any, x: Any, y: Any, divisor: Any) -> Any:
        """Return ``x / divisor`` and ``y / divisor``, computed in one vector instruction.

        A processor executes only one division instruction at a time.
        """

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pair, places = ir.VectorType(ir.DoubleType(), 2), [ir.IntType(32)(k) for k in range(2)]
            above = below = ir.Constant(pair, ir.Undefined)
            for place, value in zip(places, values[:2], strict=True):
                above = builder.insert_element(above, value, place)
                below = builder.insert_element(below, values[2], place)
            both = builder.fdiv(above, below)
            parts = [builder.extract_element(both, place) for place in places]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.UniTuple(types.float64, 2)(*[types.float64] * 3), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def call_level(typing: Any, address: Any, *arguments: Any) -> Any:
        """Call the level function at `address`."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            double = ir.DoubleType()
            pointer = ir.FunctionType(double, [double] * LEVEL_ARGUMENTS).as_pointer()
            numbers = [builder.extract_value(values[1], k) for k in range(LEVEL_ARGUMENTS)]
            return builder.call(builder.inttoptr(values[0], pointer), numbers)

        numbers = types.UniTuple(types.float64, LEVEL_ARGUMENTS)
        return types.float64(types.int64, numbers), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def record_at(typing: Any, address: Any, dtype: Any) -> Any:
        """Return the record of `dtype` at `address`."""
        if not isinstance(dtype, types.DType) or not isinstance(dtype.dtype, types.Record):
            return None
        return dtype.dtype(types.int64, dtype), lambda context, builder, signature, values: builder.inttoptr(
            values[0], context.get_value_type(signature.return_type)
        )

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

    def _load(kind: Any, value: Any) -> Any:
        """Return an intrinsic that loads a `value` of numba type `kind` from memory that other threads modify."""
        return kind(types.int64), lambda context, builder, signature, values: builder.load_atomic(
            builder.inttoptr(values[0], value.as_pointer()), "acquire", 8
        )

    @intrinsic  # type: ignore[untyped-decorator]
    def integer_at(typing: Any, address: Any) -> Any:
        """Return the integer at `address`."""
        return _load(types.int64, ir.IntType(64))

    @intrinsic  # type: ignore[untyped-decorator]
    def float_at(typing: Any, address: Any) -> Any:
        """Return the number at `address`."""
        return _load(types.float64, ir.DoubleType())

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

    def _compile_callback(function: Callable[..., Any], signature: Any, **options: Any) -> tuple[int, object]:
        """Compile a cached C function; return its address and the object that must be kept alive."""
        callback: Any = CFunc(function, sigutils.normalize_signature(signature), {}, options)
        if _FOLDER is not None:
            KernelCache(_FOLDER, function).attach(callback)
        callback.compile()
        return callback.address, callback


@inlined_kernel
def element_at(address: int, index: int) -> float:
    """Return element `index` of the float64 array at `address`."""
    return float(float_at(address + 8 * index))


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
        if COMPILED:  # compile the Python function of the kernel as a C function of a pointer and two numbers
            signature = types.void(numba.from_dtype(dtype), types.float64, types.float64)
            _PARTS[function, dtype] = _compile_kernel(function, "part", signature)
        else:
            _interpreted_parts.append((function, dtype))
            _PARTS[function, dtype] = len(_interpreted_parts), function  # address 0 is reserved for "no part"
    return _PARTS[function, dtype][0]


def compile_callback(function: Callable[[int], int]) -> tuple[int, object]:
    """Compile ``function(address) -> int``, a kernel, as a C function ``unsigned f(void *)`` for another library.

    Its thread may be unknown to the interpreter, and does not need the GIL.

    Returns
    -------
    (int, object)
        Address of the C function, and the object that must be kept alive.
    """
    if not COMPILED:
        callback = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p)(function)
        return int(ctypes.cast(callback, ctypes.c_void_p).value or 0), callback
    return _compile_kernel(function, "callback", types.uint32(types.int64))


def _compile_kernel(function: Callable[..., Any], use: str, signature: Any) -> tuple[int, object]:
    """Compile a kernel as a C function, with a separate cache entry because it may be called elsewhere too."""
    own = cast(Any, function).py_func
    copy = FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__, own.__closure__)
    copy.__qualname__ = f"{own.__qualname__}.{use}"
    return _compile_callback(copy, signature, nopython=True, nogil=True, error_model="numpy")


@kernel
def run_part(address: int, place: int, x: float, y: float) -> None:
    """Call the part at `address` with the record at address `place`; for callers in Python."""
    call_part(address, place, x, y)


def compile_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    """Compile ``function(speed, *parameters)`` with `count` parameters as a level function, or load it from the cache.

    Numba identifies compiled functions by their names, but the level functions of all laws have the same name. Each
    therefore gets a unique name from its fingerprint. An exception in the function gives nan, as C has no exceptions.

    Returns
    -------
    (int, object)
        Address of the compiled function, and the object that must be kept alive.

    Raises
    ------
    Exception
        Any compilation error of numba.
    """
    if not COMPILED:

        def interpreted(s: float, *numbers: float) -> float:
            try:
                return float(function(s, *numbers[:count]))
            except Exception:
                return math.nan

        _interpreted_levels.append(interpreted)
        return len(_interpreted_levels), interpreted  # address 0 is reserved for "no law"

    own = f"level_{fingerprint(function)[:24]}"
    function.__name__ = function.__qualname__ = f"{own}_law"
    inner = numba.njit(error_model="numpy")(function)

    def shortened(
        s: float, p1: float, p2: float, p3: float, p4: float, p5: float, p6: float, p7: float, p8: float
    ) -> float:
        return float(inner(s, *(p1, p2, p3, p4, p5, p6, p7, p8)[:count]))

    shortened.__name__ = shortened.__qualname__ = f"{own}_body"
    body = numba.njit(error_model="numpy")(shortened)

    def level(
        s: float, p1: float, p2: float, p3: float, p4: float, p5: float, p6: float, p7: float, p8: float
    ) -> float:
        try:
            return float(body(s, p1, p2, p3, p4, p5, p6, p7, p8))
        except Exception:
            return math.nan

    level.__name__ = level.__qualname__ = own
    return _compile_callback(level, numba.float64(*[numba.float64] * LEVEL_ARGUMENTS))
