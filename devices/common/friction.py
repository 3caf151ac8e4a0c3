"""Friction along the two axes of a handle, each with levels of its own forwards and backwards.

That is what the handle of a stick or a table with two slides has of its own: a plant moves with it
(`devices.virtual.joystick`), a driver compensates it (`devices.common.compensation`).
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
"""For each axis the law of motion forwards and the one of motion backwards."""

AXIS_LAWS = ("axis_laws", LAW, (2, 2))
"""Field of a kernel's record: the laws by axis and direction."""


@documented
@dataclass(frozen=True)
class AxisFriction:
    """Dry friction along one axis that falls from a static to Coulomb's level; viscous friction is told elsewhere."""

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
        """The laws of motion forwards and backwards."""
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
        An axis that it does not have is without friction.
    where : str
        How a person names the table, for messages.

    Returns
    -------
    AxisLaws or None
        None without friction.

    Raises
    ------
    ConfigurationError
        On an unknown axis or level, or a level that is not allowed.
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
    """Return the laws as kernels read them, (2, 2) of dtype `haptics.friction.sliding_kernels.LAW`."""
    return np.array([[law.record[0] for law in axis] for axis in laws], dtype=LAW)


def law_kinds(laws: AxisLaws) -> tuple[int, ...]:
    """Return which kinds of laws there are among `laws`, in order."""
    return tuple(sorted({int(law.record["kind"][0]) for axis in laws for law in axis}))


@functools.cache
def _sliding(kinds: tuple[int, ...]) -> Callable[..., Any]:
    """Return the kernel that solves laws of these kinds while they slide, and no others."""
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
    """Return the kernel ``(law, x, Z)`` of friction along one axis, for laws of these `kinds` alone (`law_kinds`).

    It returns (f, v): f = Phi_Z(x) and v = x - Z f, exactly zero when sticking; (16). The law is that of the direction
    of x, which is also the direction of the motion: Z f never exceeds x.
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
