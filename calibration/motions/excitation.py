"""Excitation: motions that show a handle's own friction and its moving mass, within the limits of a device.

Each axis goes to and fro, a few strokes at each of several speeds from very slow to fast. The slow ones show the
friction below the Stribeck velocity, the fast ones the viscosity, and all of them cross zero: what differs between the
directions shows, and what does not depend on them (an offset) cannot be taken for friction. At the ends of the strokes
the mass shows. All of that is done in several equal rounds: a model must predict each round from the others.
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
from haptics.rendering.motion import Motion, holding, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

_ROOM = 0.8
"""Part of the travel that is used."""

_STRENGTH = 0.4
"""Part of the largest force that may go into accelerating."""

_REST = 0.1
"""Between two speeds [s]."""

_APPROACH = 0.05
"""Speed at which the handle is brought to the middle at first [m/s]."""

_HOLD = 0.05
"""A device is held where it is for so long before it moves [s]."""

_UNKNOWN_MASS = 0.3
"""Moving mass where the data sheet has none [kg]."""


@documented
@dataclass(frozen=True)
class Excitation:
    """What motions are asked for."""

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
class Plan:
    """Where the handle is to be, tick by tick, from the middle of the workspace and back there.

    Attributes
    ----------
    position, velocity : (n, 2) float array
        The reference [m], [m/s].
    parts : tuple of tuples of slice
        Which ticks belong to the rounds of x, and which to those of y.
    """

    position: Array
    velocity: Array
    parts: tuple[tuple[slice, ...], tuple[slice, ...]]

    def __len__(self) -> int:
        return len(self.position)


def plan(excitation: Excitation, spec: DeviceSpec, period: float) -> Plan:
    """Return the motion of both axes, one after the other, within the limits of a device.

    Raises
    ------
    ConfigurationError
        If the device leaves no room for the speeds that are asked for.
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
    return Plan(position, _rate(position, middle, period), (tuple(parts[0]), tuple(parts[1])))


def hold_still(move: Callable[..., Motion], period: float) -> Generator[Motion, Rows, Array]:
    """Hold a device where it is; return where that was, (2,) [m]."""
    held = yield move(holding(_HOLD, period), relative=True, label="hold")
    return np.array(held["proxy"][-1])


def go_to(move: Callable[..., Motion], start: Array, end: Array, period: float) -> Generator[Motion, Rows, None]:
    """Bring a device slowly from one place to another, (2,) each [m]; it is not moved if it is there."""
    way = approach(start, end, period)
    if len(way[0]):
        yield move(reference(*way), label="approach")


def approach(start: Array, end: Array, period: float, speed: float = _APPROACH) -> tuple[Array, Array]:
    """Return position [m] and velocity [m/s], (n, 2) each, of a slow way from one place to another."""
    way = float(np.hypot(*(end - start)))
    if way == 0.0:
        return np.empty((0, 2)), np.empty((0, 2))
    along = _stroke(way, speed, speed**2 / min(way, 0.01), period)
    position = start + np.outer(along / way, end - start)
    return position, _rate(position, start, period)


def _rate(position: Array, start: Array, period: float) -> Array:
    return np.asarray(np.diff(position, axis=0, prepend=start[None, :]) / period)


def to_and_fro(excitation: Excitation, travel: float, acceleration: float, max_speed: float, period: float) -> Array:
    """Return the way from the middle [m], tick by tick, through the strokes at all speeds."""
    rest = np.zeros(math.ceil(_REST / period))
    ways = [rest]
    for asked in np.geomspace(excitation.slowest, excitation.fastest, excitation.speeds):
        speed = min(float(asked), 0.5 * max_speed)
        length = min(speed * excitation.stroke_time, travel)
        if speed**2 > 0.5 * acceleration * length:
            length = min(2.0 * speed**2 / acceleration, travel)
            speed = min(speed, math.sqrt(0.5 * acceleration * length))
        if speed < excitation.slowest:
            raise ConfigurationError(
                f"excitation.slowest = {excitation.slowest:g} m/s: the device allows {speed:g} m/s only, for its "
                "travel and its force; choose slower ones."
            )
        ways += [*_strokes(length, speed, acceleration, excitation.strokes, period), rest]
    return np.concatenate(ways)


def _strokes(length: float, speed: float, acceleration: float, count: int, period: float) -> list[Array]:
    """Return the pieces of `count` strokes about the middle, with the ways from there and back."""
    half, whole = (_stroke(way, speed, acceleration, period) for way in (length / 2.0, length))
    pieces, side = [half], 1.0
    for _ in range(count):
        pieces.append(side * (length / 2.0 - whole))
        side = -side
    return [*pieces, side * (length / 2.0 - half)]


def _stroke(way: float, speed: float, acceleration: float, period: float) -> Array:
    """Return the way [m] done at each tick of a stroke that begins and ends at rest."""
    speed = min(speed, math.sqrt(acceleration * way))
    ramp = speed / acceleration
    duration = way / speed + ramp
    time = np.minimum(period * np.arange(1, math.ceil(duration / period) + 1), duration)
    rising, falling = acceleration * time**2 / 2.0, way - acceleration * (duration - time) ** 2 / 2.0
    steady = speed * (time - ramp / 2.0)
    return np.asarray(np.where(time < ramp, rising, np.where(time > duration - ramp, falling, steady)))
