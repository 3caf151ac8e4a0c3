"""User-defined friction laws: a level function in plain Python, compiled and solved exactly.

::

    @friction_law
    def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
        return kinetic + (static - kinetic) / (1.0 + speed / width)

    element = MasslessImpedance(rubber(static=5.0), stiffness=6000.0, damping=10.0)

The source of the function is stored, so that the law can be sent to the servo process and to recordings, and compiled
there again. The function must therefore be self-contained; see `haptics.friction.law_source`.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.friction.law_source import build, build_interpreted, defaults, number, parse, rehearse, source_of
from haptics.friction.sliding_kernels import CUSTOM, LAW, custom_levels
from haptics.jit import COMPILED, compile_level
from haptics.settings import unknown

TOP_SPEED = 100.0
"""Speed up to which a level is checked when the law is created [m/s]."""

SLOWEST = 1e-12
"""Speed at which the level is evaluated for its limit at rest [m/s]."""

_SPEEDS = np.concatenate(([0.0, SLOWEST], np.geomspace(1e-7, TOP_SPEED, 6000)))
_REHEARSED = _SPEEDS[[0, 1, *range(2, len(_SPEEDS), 100)]]


@dataclass(frozen=True)
class CustomLaw(Law):
    """Friction law with a user-defined level, created by `friction_law` or from a file.

    The law is solved to machine precision by a bracketed search, also across jumps of the level. Where condition (15)
    fails, the outermost solution is searched at 512 speeds. A level below zero counts as zero, because friction never
    drives.

    Attributes
    ----------
    source : str
        Source of the function ``level(speed, *parameters) -> level``, in m/s and N.
    values : tuple of (str, float)
        Name and value of each parameter, in the order of the function.

    Raises
    ------
    ConfigurationError
        If the function contains a construct that is not allowed, cannot be compiled, or returns a level that is
        negative or not finite anywhere between 0 and `TOP_SPEED`.
    """

    kind: ClassVar[int] = CUSTOM
    name: ClassVar[str] = "custom"
    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_table(cls, source: str, values: Mapping[str, Any]) -> CustomLaw:
        """Return the law of the function in `source`, with `values` in place of its default parameters."""
        function = parse(source)
        known = defaults(function)
        for name in values:
            if name not in known:
                raise unknown("setting", f"law.{name}", [f"law.{other}" for other in known])
        complete = {**known, **{name: number(value, f"law.{name}") for name, value in values.items()}}
        return cls(_standard_text(source), tuple(complete.items()))

    def __post_init__(self) -> None:
        known = tuple(defaults(parse(self.source)))
        if tuple(self.parameters) != known:
            raise ConfigurationError(
                f"law {self.title}: values for {', '.join(self.parameters) or 'nothing'}; it has the parameters "
                f"{', '.join(known) or 'none'}, in this order."
            )
        breakaway, slopes = _examined(self.source, np.array(list(self.parameters.values()), dtype=float).tobytes())
        object.__setattr__(self, "_breakaway", breakaway)
        object.__setattr__(self, "_slopes", slopes)

    @property
    def title(self) -> str:
        """Name of the function."""
        return parse(self.source).name

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the parameters by name."""
        return dict(self.values)

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.breakaway_force, *self.parameters.values()

    @property
    def breakaway_force(self) -> float:
        """Limit of the level at rest [N]."""
        return float(self._breakaway)  # type: ignore[attr-defined]

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level, measured between 6000 speeds up to `TOP_SPEED` [N s/m].

        At a jump the slope is as steep as floating-point numbers resolve, so that a downward jump violates condition
        (15).
        """
        return self._slopes  # type: ignore[attr-defined, no-any-return]

    @property
    def record(self) -> NDArray[Any]:  # noqa: D102 (inherited)
        record = super().record
        record["address"] = _address(self.source, len(self.values))
        return record


@functools.lru_cache(maxsize=256)
def _standard_text(source: str) -> str:
    """Return the function of `source` in the formatting of `ast.unparse`."""
    return ast.unparse(parse(source))


@functools.lru_cache(maxsize=256)
def _examined(source: str, numbers: bytes) -> tuple[float, tuple[float, float]]:
    """Return the limit at rest and the slopes of a level with these parameters; raise if it is invalid.

    `numbers` contains the parameters as bytes, so that the cache distinguishes every bit and the sign of zero. A
    session creates the same law many times.
    """
    values = np.frombuffer(numbers)
    title = parse(source).name
    rehearse(source, _REHEARSED, values.tolist())
    record = np.zeros(1, LAW)
    record["kind"], record["address"] = CUSTOM, _address(source, len(values))
    record["numbers"][0][1 : 1 + len(values)] = values
    found = _levels(record, _SPEEDS)
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
    if len(wrong):
        raise ConfigurationError(
            f"law {title}: its level at {_SPEEDS[wrong[0]]:.4g} m/s is {found[wrong[0]]:.4g} N; it must be "
            f"finite and at least 0 N from rest up to {TOP_SPEED:g} m/s."
        )
    jumps = not math.isclose(found[0], found[1], rel_tol=1e-9, abs_tol=1e-12)
    return float(found[1] if jumps else found[0]), _measure_slopes(record, found[1:])


def _levels(record: NDArray[Any], speeds: NDArray[np.float64]) -> NDArray[np.float64]:
    result = np.empty_like(speeds)
    custom_levels(record, speeds, result)
    return result


def _measure_slopes(record: NDArray[Any], found: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and largest slope, by repeated halving of every interval at its steepest half."""
    lows, highs = _SPEEDS[1:-1].copy(), _SPEEDS[2:].copy()
    low_levels, high_levels = found[:-1].copy(), found[1:].copy()
    noise = 8.0 * np.finfo(float).eps * np.maximum(found[:-1], found[1:])  # rounding error of a difference of levels
    extremes = []
    for _ in range(30):
        change = high_levels - low_levels
        slopes = np.sign(change) * np.maximum(np.abs(change) - noise, 0.0) / (highs - lows)
        extremes += [slopes.min(), slopes.max()]
        middles = 0.5 * (lows + highs)
        middle_levels = _levels(record, middles)
        left = np.abs(middle_levels - low_levels) >= np.abs(high_levels - middle_levels)
        highs, high_levels = np.where(left, middles, highs), np.where(left, middle_levels, high_levels)
        lows, low_levels = np.where(left, lows, middles), np.where(left, low_levels, middle_levels)
    return float(min(extremes)), float(max(extremes))


def friction_law(function: Callable[..., float]) -> Callable[..., CustomLaw]:
    """Convert a level function ``level(speed, name=default, ...)`` [N] of the speed [m/s] to a law.

    Parameters
    ----------
    function : callable
        Function defined in a file, whose parameters have defaults, with arithmetic, ``math`` and its parameters only.

    Returns
    -------
    callable
        Accepts values for the parameters by name and returns the `CustomLaw`. Its ``law_source`` is the source.

    Raises
    ------
    ConfigurationError
        If the function cannot be a law; the message names the reason.
    """
    source = source_of(function)

    @functools.wraps(function)
    def make(**values: float) -> CustomLaw:
        return CustomLaw.from_table(source, values)

    make()
    make.law_source = source  # type: ignore[attr-defined]
    return make


_CODE: dict[tuple[str, int], tuple[int, object]] = {}
"""Address of every compiled function, and the object that keeps the compiled code alive."""


def _address(source: str, count: int) -> int:
    """Return the address of the compiled function, which remains valid until the process ends."""
    if (source, count) not in _CODE:
        function = build(source, math) if COMPILED else build_interpreted(source)
        try:
            _CODE[source, count] = compile_level(function, count)
        except Exception as error:  # numba raises many types, with long messages
            lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
            raise ConfigurationError(
                f"law {parse(source).name}: cannot be compiled ({lines[1].strip() if len(lines) > 1 else error})."
            ) from error
    return _CODE[source, count][0]
