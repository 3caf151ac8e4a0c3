"""Excitation motions that identify a handle's friction and moving mass, within the limits of a device.

Each axis moves back and forth, a few strokes at each of several speeds. Slow strokes identify the friction below the
Stribeck velocity, fast ones the viscosity. All of them cross zero velocity, so that asymmetry is observable and an
offset is separable from friction. The ends of the strokes identify the mass. The sequence is repeated in equal rounds
for cross-validation between rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haptics.device import DeviceSpec
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.programs import Motion, constant_reference, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

_ROOM = 0.8
"""Fraction of the travel that is used."""

_STRENGTH = 0.4
"""Fraction of the maximum force that may be used for acceleration."""

_REST = 0.1
"""Pause between two speeds [s]."""

_APPROACH = 0.05
"""Speed of the initial motion to the middle [m/s]."""

_HOLD = 0.05
"""Duration of the initial hold before the device moves [s]."""

_UNKNOWN_MASS = 0.3
"""Moving mass assumed if the data sheet states none [kg]."""


@documented
@dataclass(frozen=True)
class Excitation:
    """Settings of the excitation."""

    slowest: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="m/s", doc="speed of the slowest strokes")
    fastest: float = bounded(0.12, minimum=1e-4, maximum=2.0, unit="m/s", doc="speed of the fastest strokes")
    speeds: int = bounded(
        8, minimum=2, maximum=50, doc="number of speeds from the slowest to the fastest, in equal ratios"
    )
    rounds: int = bounded(3, minimum=2, maximum=50, doc="how often all of it is done")
    strokes: int = bounded(2, minimum=1, maximum=100, doc="strokes at each speed of a round")
    stroke_time: float = bounded(
        0.6, minimum=0.05, maximum=60.0, unit="s", doc="duration of a stroke, unless the travel is too short for it"
    )
    acceleration: float = bounded(
        4.0, minimum=0.01, maximum=100.0, unit="m/s^2", doc="acceleration at the ends of the strokes"
    )

    def __post_init__(self) -> None:
        check(self, "excitation")
        if not self.slowest < self.fastest:
            raise ConfigurationError(
                f"excitation.slowest = {self.slowest:g} m/s: must be less than excitation.fastest = {self.fastest:g} "
                "m/s."
            )


@dataclass(frozen=True, eq=False)
class ExcitationPlan:
    """Reference of the handle at each tick, starting and ending in the middle of the workspace.

    Attributes
    ----------
    position, velocity : (n, 2) float array
        Reference [m], [m/s].
    parts : tuple of tuples of slice
        Ticks of the rounds of x, and of the rounds of y.
    """

    position: Array
    velocity: Array
    parts: tuple[tuple[slice, ...], tuple[slice, ...]]

    def __len__(self) -> int:
        return len(self.position)


def plan(excitation: Excitation, spec: DeviceSpec, period: float) -> ExcitationPlan:
    """Return the motion of both axes in sequence, within the limits of a device.

    Raises
    ------
    ConfigurationError
        If the limits of the device do not permit the requested speeds.
    """
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    middle, travel = (lower + upper) / 2.0, _ROOM * (upper - lower)
    strongest = _STRENGTH * spec.max_force / (spec.mass or _UNKNOWN_MASS)
    acceleration = min(excitation.acceleration, strongest, spec.max_acceleration)
    positions, count = [], 0
    parts: tuple[list[slice], list[slice]] = [], []
    for axis in range(2):
        along = to_and_fro(excitation, float(travel[axis]), acceleration, spec.max_speed, period)
        place = np.tile(middle, (len(along), 1))
        place[:, axis] += along
        for _ in range(excitation.rounds):
            positions.append(place)
            parts[axis].append(slice(count, count + len(along)))
            count += len(along)
    position = np.concatenate(positions)
    return ExcitationPlan(position, _rate(position, middle, period), (tuple(parts[0]), tuple(parts[1])))


def hold_still(move: Callable[..., Motion], period: float) -> Generator[Motion, Rows, Array]:
    """Hold a device at its present position and return that position, (2,) [m]."""
    held = yield move(constant_reference(_HOLD, period), relative=True, label="hold")
    return np.array(held["proxy"][-1])


def go_to(move: Callable[..., Motion], start: Array, end: Array, period: float) -> Generator[Motion, Rows, None]:
    """Move a device slowly between two positions, (2,) each [m]; no motion if they are equal."""
    way = approach(start, end, period)
    if len(way[0]):
        yield move(reference(*way), label="approach")


def approach(start: Array, end: Array, period: float, speed: float = _APPROACH) -> tuple[Array, Array]:
    """Return position [m] and velocity [m/s], (n, 2) each, of a slow motion between two positions."""
    way = float(np.hypot(*(end - start)))
    if way == 0.0:
        return np.empty((0, 2)), np.empty((0, 2))
    along = _stroke(way, speed, speed**2 / min(way, 0.01), period)
    position = start + np.outer(along / way, end - start)
    return position, _rate(position, start, period)


def _rate(position: Array, start: Array, period: float) -> Array:
    return np.asarray(np.diff(position, axis=0, prepend=start[None, :]) / period)


def to_and_fro(excitation: Excitation, travel: float, acceleration: float, max_speed: float, period: float) -> Array:
    """Return the displacement from the middle [m] at each tick, through the strokes at all speeds."""
    rest = np.zeros(math.ceil(_REST / period))
    ways = [rest]
    for wanted in np.geomspace(excitation.slowest, excitation.fastest, excitation.speeds):
        speed = min(float(wanted), 0.5 * max_speed)
        length = min(speed * excitation.stroke_time, travel)
        if speed**2 > 0.5 * acceleration * length:
            length = min(2.0 * speed**2 / acceleration, travel)
            speed = min(speed, math.sqrt(0.5 * acceleration * length))
        if speed < excitation.slowest:
            raise ConfigurationError(
                f"excitation.slowest = {excitation.slowest:g} m/s: the device allows {speed:g} m/s only, for its "
                "travel and its force; choose slower ones."
            )
        # strokes about the middle, including the motions from there and back
        half, whole = (_stroke(way, speed, acceleration, period) for way in (length / 2.0, length))
        ways.append(half)
        side = 1.0
        for _ in range(excitation.strokes):
            ways.append(side * (length / 2.0 - whole))
            side = -side
        ways += [side * (length / 2.0 - half), rest]
    return np.concatenate(ways)


def _stroke(way: float, speed: float, acceleration: float, period: float) -> Array:
    """Return the displacement [m] at each tick of a stroke that begins and ends at rest."""
    speed = min(speed, math.sqrt(acceleration * way))
    ramp = speed / acceleration
    duration = way / speed + ramp
    time = np.minimum(period * np.arange(1, math.ceil(duration / period) + 1), duration)
    rising, falling = acceleration * time**2 / 2.0, way - acceleration * (duration - time) ** 2 / 2.0
    steady = speed * (time - ramp / 2.0)
    return np.asarray(np.where(time < ramp, rising, np.where(time > duration - ramp, falling, steady)))
