"""What every virtual hand has in common: where it wants the handle, how firmly it holds it, how it trembles.

A hand is a deterministic function of the device's time: it is asked once per tick where its target is, and pulls the
handle there through its grip, a spring and a damper. The plant interpolates between two such samples.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check

Point = tuple[float, float]
"""x and y [m]."""


class Workspace(NamedTuple):
    """The rectangle a device's end effector may be in: its lower left and upper right corner [m]."""

    lower: Point
    upper: Point

    @property
    def centre(self) -> Point:
        """Middle of the rectangle [m]."""
        return (self.lower[0] + self.upper[0]) / 2.0, (self.lower[1] + self.upper[1]) / 2.0

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Corners of the rectangle [m]."""
        (left, low), (right, high) = self.lower, self.upper
        return (left, low), (left, high), (right, low), (right, high)

    def contains(self, x: float, y: float) -> bool:
        """Tell whether (x, y) [m] is inside or on the edge; nan is outside."""
        return self.lower[0] <= x <= self.upper[0] and self.lower[1] <= y <= self.upper[1]

    def clamp(self, x: float, y: float) -> Point:
        """Return the point inside that is nearest to (x, y) [m]."""
        return (
            min(max(x, self.lower[0]), self.upper[0]),
            min(max(y, self.lower[1]), self.upper[1]),
        )

    def __str__(self) -> str:
        return f"{self.lower[0]:g} to {self.upper[0]:g} m by {self.lower[1]:g} to {self.upper[1]:g} m"


class HandSample(NamedTuple):
    """The hand at one instant.

    Attributes
    ----------
    x, y : float
        Where it wants the handle [m].
    force_x, force_y : float
        Force it adds to that of its grip [N].
    grip : float
        Part of the grip's stiffness and damping that is in effect, 0 (let go) to 1.
    """

    x: float
    y: float
    force_x: float = 0.0
    force_y: float = 0.0
    grip: float = 1.0


class Hand(ABC):
    """A hand on the handle of a virtual device.

    Attributes
    ----------
    stiffness, damping : float
        The grip, a spring [N/m] and a damper [N s/m] between the handle and the hand's target.
    start : (x, y)
        Where the handle is when the device is opened [m].
    """

    stiffness: float
    damping: float
    start: Point

    @abstractmethod
    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; `handle` is where the device last saw its handle, (2,) [m]."""

    def restart(self) -> None:  # noqa: B027 (only a hand with a memory has something to forget)
        """Begin anew at time zero."""


@dataclass(frozen=True)
class HandSettings(ABC):
    """Base of the settings of a hand."""

    @abstractmethod
    def build(self, seed: int, workspace: Workspace) -> Hand:
        """Make the hand; raise `ConfigurationError` if it cannot do what it should within `workspace`."""


@dataclass(frozen=True)
class GripSettings(HandSettings):
    """Settings of every hand that holds the handle.

    Attributes
    ----------
    stiffness : float
        Stiffness of the grip [N/m].
    damping : float
        Damping of the grip [N s/m].
    tremor : float
        Root mean square of the force by which the hand trembles, at 8 to 12 Hz [N].
    """

    stiffness: float = bounded(400.0, minimum=0.0, maximum=3000.0, unit="N/m", doc="stiffness of the grip")
    damping: float = bounded(8.0, minimum=0.0, maximum=50.0, unit="N s/m", doc="damping of the grip")
    tremor: float = bounded(0.0, minimum=0.0, maximum=2.0, unit="N", doc="rms force of the hand's tremor")

    def __post_init__(self) -> None:
        check(self, "hand")


class Tremor:
    """Physiological tremor: a few sinusoids between 8 and 12 Hz with random phases and directions.

    Parameters
    ----------
    amplitude : float
        Root mean square of the norm of the force [N].
    seed : int
        Equal seeds tremble equally.
    """

    WAVES = 5
    LOWEST, HIGHEST = 8.0, 12.0

    def __init__(self, amplitude: float, seed: int) -> None:
        generator = random.Random(seed)
        size = amplitude * math.sqrt(2.0 / self.WAVES)
        self._waves = [self._wave(generator, size) for _ in range(self.WAVES)] if amplitude > 0.0 else []

    def _wave(self, generator: random.Random, size: float) -> tuple[float, float, float, float]:
        frequency = self.LOWEST + (self.HIGHEST - self.LOWEST) * generator.random()
        phase, direction = (2.0 * math.pi * generator.random() for _ in range(2))
        return 2.0 * math.pi * frequency, phase, size * math.cos(direction), size * math.sin(direction)

    def force(self, time: float) -> Point:
        """Return the force at `time` [s], (x, y) [N]."""
        x = y = 0.0
        for pulsation, phase, along_x, along_y in self._waves:
            wave = math.sin(pulsation * time + phase)
            x += along_x * wave
            y += along_y * wave
        return x, y


def number_rows(value: Any, width: int, where: str) -> tuple[tuple[float, ...], ...]:
    """Return `value`, a list of lists of `width` finite numbers, as tuples of floats.

    Raises
    ------
    ConfigurationError
        Naming the row of `where` that is wrong.
    """
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"{where} = {value!r}: must be a list of rows of {width} numbers.")
    rows = []
    for number, row in enumerate(value):
        sound = isinstance(row, list | tuple) and len(row) == width and all(_is_finite(item) for item in row)
        if not sound:
            raise ConfigurationError(f"{where}[{number}] = {row!r}: must be {width} finite numbers.")
        rows.append(tuple(float(item) for item in row))
    return tuple(rows)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
