"""Friction along the two axes of a handle, with separate levels forwards and backwards.

It describes the intrinsic friction of the handle of a joystick or of a table with two slides. A plant simulates it
(`devices.virtual.joystick`), and a driver compensates it (`devices.common.compensation`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.friction.laws import Stribeck
from haptics.friction.sliding_kernels import LAW, SLIDING
from haptics.jit import inlined_kernel, kernel
from haptics.settings import bounded, build, check, documented, unknown

AXES = ("x", "y")
DIRECTIONS = ("forward", "backward")

AxisLaws = tuple[tuple[Law, Law], tuple[Law, Law]]
"""Laws for motion forwards and backwards, for each axis."""

AXIS_LAWS = ("axis_laws", LAW, (2, 2))
"""Field of a kernel record: laws by axis and direction."""


@documented
@dataclass(frozen=True)
class AxisFriction:
    """Dry friction along one axis that falls from a static to a Coulomb level, without viscous friction."""

    coulomb_forward: float = bounded(0.0, minimum=0.0, maximum=100.0, unit="N", doc="level at speed, forwards")
    coulomb_backward: float = bounded(0.0, minimum=0.0, maximum=100.0, unit="N", doc="level at speed, backwards")
    static_forward: float = bounded(
        0.0, minimum=0.0, maximum=100.0, unit="N", doc="break-away level, forwards; at least that at speed"
    )
    static_backward: float = bounded(
        0.0, minimum=0.0, maximum=100.0, unit="N", doc="break-away level, backwards; at least that at speed"
    )
    stribeck_velocity: float = bounded(
        0.01, minimum=1e-5, maximum=10.0, unit="m/s", doc="speed over which the level falls"
    )

    def __post_init__(self) -> None:
        check(self, "friction")

    @property
    def laws(self) -> tuple[Law, Law]:
        """Laws for motion forwards and backwards."""
        forward, backward = (
            Stribeck(coulomb, max(static, coulomb), self.stribeck_velocity)
            for coulomb, static in (
                (self.coulomb_forward, self.static_forward),
                (self.coulomb_backward, self.static_backward),
            )
        )
        return forward, backward


def parse_friction(table: Any, where: str = "device.friction") -> AxisLaws | None:
    """Return the laws that a table with the tables ``x`` and ``y`` (`AxisFriction`) describes.

    Parameters
    ----------
    table : mapping or None
        An axis that is not in the table has no friction.
    where : str
        Name of the table in messages.

    Returns
    -------
    AxisLaws or None
        None without friction.

    Raises
    ------
    ConfigurationError
        If an axis or level is unknown, or a level is invalid.
    """
    if not isinstance(table, Mapping | None):
        raise ConfigurationError(f"{where} = {table!r}: must be a table such as {{x = {{coulomb_forward = 1.0}}}}.")
    if not table:
        return None
    for axis, levels in table.items():
        if axis not in AXES:
            raise unknown("axis", f"{where}.{axis}", [f"{where}.{name}" for name in AXES])
        if not isinstance(levels, Mapping):
            raise ConfigurationError(f"{where}.{axis} = {levels!r}: must be a table such as {{coulomb_forward = 1.0}}.")
    x, y = (build(AxisFriction, table.get(axis, {}), f"{where}.{axis}").laws for axis in AXES)
    return (x, y) if any(law.breakaway_force > 0.0 for law in (*x, *y)) else None


def law_records(laws: AxisLaws) -> NDArray[Any]:
    """Return the kernel records of the laws, (2, 2) of dtype `haptics.friction.sliding_kernels.LAW`."""
    return np.array([[law.record[0] for law in axis] for axis in laws], dtype=LAW)


def law_kinds(laws: AxisLaws) -> tuple[int, ...]:
    """Return the sorted kinds of the laws."""
    return tuple(sorted({int(law.record["kind"][0]) for axis in laws for law in axis}))


@functools.cache
def _sliding(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel that solves only laws of these kinds while sliding."""
    first, others = SLIDING[kinds[0]], kinds[1:]
    if not others:
        return first
    kind, rest = kinds[0], _sliding(others)

    @kernel
    def sliding(law: Any, r: float, Z: float) -> Any:
        return first(law, r, Z) if law.kind == kind else rest(law, r, Z)

    return sliding


@functools.cache
def axis_friction(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel ``(law, x, Z)`` of friction along one axis, for laws of these `kinds` only.

    `kinds` is the result of `law_kinds`. The kernel returns (f, v) with f = Phi_Z(x) and v = x - Z f; v is exactly zero
    while sticking; (16). The law must be the law for the direction of x, which is also the direction of motion, because
    Z f never exceeds x.
    """
    sliding = _sliding(kinds)

    @inlined_kernel
    def friction(law: Any, x: float, Z: float) -> tuple[float, float]:
        r = abs(x)
        if r <= Z * law.numbers[0]:
            return x / Z, 0.0
        g, s = sliding(law, r, Z)
        return math.copysign(g, x), math.copysign(s, x)

    return friction
