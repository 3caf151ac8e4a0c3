"""The one decorator for compiled code.

Compiled kernels are kept in files (haptics.kernel_cache). Where no folder is writable, they compile afresh each time.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import NullCache

from haptics.kernel_cache import KernelCache, find_folder, fingerprint

_F = TypeVar("_F", bound=Callable[..., Any])

_FOLDER = find_folder()

# A kernel for an element's record also serves the larger records that begin with the same fields
# (haptics.elements.models, haptics.rendering.rendering). Numba does that right but calls it experimental at every first
# compilation.
warnings.filterwarnings("ignore", message=r"(?s).*considered a subtype")


def kernel(function: _F) -> _F:
    """Compile `function` in nopython mode, without the GIL and without fast-math (results are reproducible).

    Structured arrays are passed whole and changed in place. With ``NUMBA_DISABLE_JIT=1`` (coverage, debugger) they
    are wrapped so that their fields can be reached as attributes there too.
    """
    return _compiled(function)


def inlined_kernel(function: _F) -> _F:
    """Compile like `kernel`, but copied into every kernel that calls it.

    For what every step runs through: returning several numbers from a call takes a fifth of the time of a step, and
    the compiler does not inline code of that length by itself.
    """
    return _compiled(function, forceinline=True)


def merged_kernel(function: _F) -> _F:
    """Compile like `kernel`, but only as a part of the kernels that call it.

    For what is large and called from one place: with a kernel, all that it calls is optimised once more, so that each
    level between a whole step and its parts takes the compiler as long as the whole step.
    """
    return _compiled(function, inline="always")


def _compiled(function: _F, **options: Any) -> _F:
    if numba.config.DISABLE_JIT:
        return cast(_F, _interpreted(function))
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    compiled._cache = kept(function)
    return cast(_F, compiled)


def kept(function: Callable[..., Any]) -> Any:
    """Return the place where numba is to keep what it compiles from `function`."""
    return NullCache() if _FOLDER is None else KernelCache(_FOLDER, function)


# --- custom laws: functions known by their address -----------------------------------------------------------------
#
# A function as an argument would keep every kernel that takes it out of the cache. An address is a number: kernels stay
# as they are, and a person's own law costs one indirect call.

LEVEL_ARGUMENTS = 9
"""Speed and eight parameters: what a compiled level function takes, all float64."""

COMPILED = not numba.config.DISABLE_JIT
"""Whether kernels are compiled, or run as plain Python (``NUMBA_DISABLE_JIT=1``)."""

_interpreted_levels: list[Callable[..., float]] = []

if not COMPILED:

    def quotients(x: float, y: float, divisor: float) -> tuple[float, float]:
        """Return x and y over `divisor`; both in one instruction, since a processor divides only one at a time."""
        return x / divisor, y / divisor

    def call_level(address: int, *arguments: float) -> float:
        """Call the level function at `address`."""
        return _interpreted_levels[address - 1](*arguments)

else:
    from llvmlite import ir
    from numba import types
    from numba.core import sigutils
    from numba.core.ccallback import CFunc
    from numba.extending import intrinsic

    def compile_callback(function: Callable[..., Any], signature: Any, **options: Any) -> tuple[int, object]:
        """Compile a C function, kept as kernels are; return its address and what keeps it alive."""
        callback: Any = CFunc(function, sigutils.normalize_signature(signature), {}, options)
        callback._cache = kept(function)
        callback.compile()
        return callback.address, callback

    @intrinsic  # type: ignore[untyped-decorator]
    def quotients(typing: Any, x: Any, y: Any, divisor: Any) -> Any:
        """Return x and y over `divisor`; both in one instruction, since a processor divides only one at a time."""

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


def compile_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    """Compile ``function(speed, *parameters)`` with `count` parameters; return its address and what keeps it alive.

    Raises
    ------
    Exception
        Whatever numba has to say about the function.
    """
    return _compiled_level(function, count) if COMPILED else _listed_level(function, count)


def _listed_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    def level(s: float, *numbers: float) -> float:
        try:
            return float(function(s, *numbers[:count]))
        except Exception:
            return math.nan

    _interpreted_levels.append(level)
    return len(_interpreted_levels), level  # from 1 on: an address of 0 means that there is none


def _compiled_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    """Compile a level, or find it among the kept ones. The functions of all laws are called the same.

    What is compiled is known by its name, so each gets one from its fingerprint.
    """
    own = f"level_{fingerprint(function)[:24]}"
    inner = _level_kernel(function, f"{own}_law")

    def shortened(
        s: float, p1: float, p2: float, p3: float, p4: float, p5: float, p6: float, p7: float, p8: float
    ) -> float:
        return float(inner(s, *(p1, p2, p3, p4, p5, p6, p7, p8)[:count]))

    body = _level_kernel(shortened, f"{own}_body")

    def level(
        s: float, p1: float, p2: float, p3: float, p4: float, p5: float, p6: float, p7: float, p8: float
    ) -> float:
        try:
            return float(body(s, p1, p2, p3, p4, p5, p6, p7, p8))
        except Exception:  # C has no exceptions: whoever calls sees a number that is none
            return math.nan

    level.__name__ = level.__qualname__ = own
    return compile_callback(level, numba.float64(*[numba.float64] * LEVEL_ARGUMENTS))


def _level_kernel(function: Callable[..., float], name: str) -> Any:
    """Compile a part of a level; it is kept with the whole."""
    function.__name__ = function.__qualname__ = name
    return numba.njit(error_model="numpy")(function)


def _interpreted(function: _F) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*[_with_attributes(argument) for argument in arguments])

    return call


def _with_attributes(argument: Any) -> Any:
    structured = isinstance(argument, np.ndarray) and argument.dtype.names is not None
    return argument.view(np.recarray) if structured else argument
