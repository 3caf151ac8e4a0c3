"""Compilation of kernels with numba.

Compiled kernels are cached in files (haptics.kernel_cache). Without a writable folder, every process compiles them
again.
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

# A kernel compiled for an element's record also accepts larger records that begin with the same fields
# (haptics.elements.models, haptics.rendering.rendering). Numba supports this but warns at every first compilation that
# it is experimental.
warnings.filterwarnings("ignore", message=r"(?s).*considered a subtype")


def kernel(function: _F) -> _F:
    """Compile `function` in nopython mode, without the GIL.

    Fast-math is off, so that results are reproducible. Structured arrays are passed by reference and modified in place.
    With ``NUMBA_DISABLE_JIT=1`` (coverage, debugger), arguments are wrapped so that their fields are accessible as
    attributes as well.
    """
    return _compiled(function)


def inlined_kernel(function: _F) -> _F:
    """Compile like `kernel` and inline the code into every calling kernel.

    Use it for functions that run in every step. Returning several numbers from a call takes a fifth of the time of a
    step, and the compiler does not inline functions of this length by itself.
    """
    return _compiled(function, forceinline=True)


def merged_kernel(function: _F) -> _F:
    """Compile like `kernel`, but only as part of the calling kernels.

    Use it for large functions that are called from one place. Every separate kernel optimises the code of its callees
    again, so that each level between a step and its parts takes as long to compile as the whole step.
    """
    return _compiled(function, inline="always")


def _compiled(function: _F, **options: Any) -> _F:
    if numba.config.DISABLE_JIT:
        return cast(_F, _interpreted(function))
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    compiled._cache = kernel_cache_of(function)
    return cast(_F, compiled)


def kernel_cache_of(function: Callable[..., Any]) -> Any:
    """Return the numba cache of `function`; a cache without storage if no folder is writable."""
    return NullCache() if _FOLDER is None else KernelCache(_FOLDER, function)


# --- custom laws ------------------------------------------------------------------------------------------------------
#
# Kernels that take a function as an argument cannot be cached. They take the address of the function instead, which is
# a plain number: the kernels remain unchanged, and a user-defined law costs one indirect call.

LEVEL_ARGUMENTS = 9
"""Number of float64 arguments of a compiled level function: the speed and eight parameters."""

COMPILED = not numba.config.DISABLE_JIT
"""True if kernels are compiled, False if they run as plain Python (``NUMBA_DISABLE_JIT=1``)."""

_interpreted_levels: list[Callable[..., float]] = []

if not COMPILED:

    def quotients(x: float, y: float, divisor: float) -> tuple[float, float]:
        """Return ``x / divisor`` and ``y / divisor``."""
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
        """Compile a cached C function; return its address and the object that must be kept alive."""
        callback: Any = CFunc(function, sigutils.normalize_signature(signature), {}, options)
        callback._cache = kernel_cache_of(function)
        callback.compile()
        return callback.address, callback

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


def compile_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    """Compile ``function(speed, *parameters)`` with `count` parameters as a level function.

    Returns
    -------
    (int, object)
        Address of the compiled function, and the object that must be kept alive.

    Raises
    ------
    Exception
        Any compilation error of numba.
    """
    return _compiled_level(function, count) if COMPILED else _listed_level(function, count)


def _listed_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    def level(s: float, *numbers: float) -> float:
        try:
            return float(function(s, *numbers[:count]))
        except Exception:
            return math.nan

    _interpreted_levels.append(level)
    return len(_interpreted_levels), level  # address 0 is reserved for "no law"


def _compiled_level(function: Callable[..., float], count: int) -> tuple[int, object]:
    """Compile a level function, or load it from the cache.

    Numba identifies compiled functions by their names, but the level functions of all laws have the same name. Each
    therefore gets a unique name from its fingerprint.
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
        except Exception:  # C has no exceptions: return nan instead
            return math.nan

    level.__name__ = level.__qualname__ = own
    return compile_callback(level, numba.float64(*[numba.float64] * LEVEL_ARGUMENTS))


def _level_kernel(function: Callable[..., float], name: str) -> Any:
    """Compile an inner function of a level; it is cached as part of the level."""
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
