"""Mounting of a force sensor and its handle: from the measured wrench to the force of the hand.

There are three sets of axes: *sensor* axes, as printed on it; *flange* axes of the mounting surface; *world* axes,
in whose x and y the arm moves. A wrench is (Fx, Fy, Fz, Tx, Ty, Tz) [N], [N m], with torques about the origin of the
sensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.settings import bounded, check, documented, unrestricted

MOUNTING = np.dtype(
    [("on_flange", "<f8", (3, 3)), ("gravity", "<f8", (3,)), ("handle", "<f8", (6, 3)), ("offset", "<f8", (6,))]
)
"""Mounting of a sensor: ``on_flange`` rotates sensor axes into flange axes; ``gravity`` in world axes [m/s^2];
``handle`` maps gravity in sensor axes to the wrench of the handle's weight; ``offset`` is the measurement without load.
"""


@kernel
def turn_to_world(m: Any, orientation: Any, to_world: Any) -> None:
    """Compute `to_world`, (3, 3), the rotation from sensor to world axes; `orientation` is the flange's."""
    for i in range(3):
        for j in range(3):
            to_world[i, j] = 0.0
            for k in range(3):
                to_world[i, j] += orientation[i, k] * m.on_flange[k, j]


@kernel
def gravity_in_sensor(m: Any, to_world: Any, gravity: Any) -> None:
    """Compute `gravity`, (3,), in sensor axes [m/s^2]."""
    for i in range(3):
        gravity[i] = to_world[0, i] * m.gravity[0] + to_world[1, i] * m.gravity[1] + to_world[2, i] * m.gravity[2]


@kernel
def wrench_of_hand(m: Any, to_world: Any, gravity: Any, measured: Any, wrench: Any) -> None:
    """Compute the hand's `wrench`, (6,), in world axes; `gravity` and `measured` are in sensor axes."""
    for first in (0, 3):
        for i in range(3):
            wrench[first + i] = 0.0
        for j in range(3):
            row = first + j
            weight = m.handle[row, 0] * gravity[0] + m.handle[row, 1] * gravity[1] + m.handle[row, 2] * gravity[2]
            own = measured[row] - m.offset[row] - weight
            for i in range(3):
                wrench[first + i] += to_world[i, j] * own


@kernel
def hand_wrench(mountings: Any, orientation: Any, measured: Any, to_world: Any, gravity: Any, wrench: Any) -> None:
    """Compute `to_world`, `gravity` and `wrench`, for the (1,) array `mountings`."""
    m = mountings[0]
    turn_to_world(m, orientation, to_world)
    gravity_in_sensor(m, to_world, gravity)
    wrench_of_hand(m, to_world, gravity, measured, wrench)


Array = NDArray[np.float64]

STANDARD_GRAVITY = 9.80665
"""Standard gravity [m/s^2]."""


@documented
@dataclass(frozen=True, kw_only=True)
class SensorSettings:
    """Settings that all force sensors share."""

    rotation: Any = unrestricted(
        (0.0, 0.0, 0.0), "three angles in degrees", doc="rotation relative to the flange: about x, then y, then z"
    )
    handle_mass: float = bounded(0.0, minimum=0.0, maximum=50.0, unit="kg", doc="mass that the sensor carries")
    handle_centre: Any = unrestricted(
        (0.0, 0.0, 0.0), "three lengths in m", doc="centre of that mass, in the sensor's axes from its origin"
    )
    gravity: Any = unrestricted(
        (0.0, 0.0, -STANDARD_GRAVITY), "three numbers in m/s^2", doc="gravity in the axes of the world"
    )
    patience: float = bounded(
        0.05, minimum=5e-3, maximum=1.0, unit="s", doc="time without a valid force after which the sensor has failed"
    )
    tare_samples: int = bounded(200, minimum=10, maximum=10_000, doc="number of measurements of a tare")
    tare_spread: float = bounded(
        2.0,
        above=0.0,
        maximum=1000.0,
        unit="N",
        doc="largest difference of these measurements; it is exceeded if the handle is touched",
    )

    def __post_init__(self) -> None:
        check(self, "device.sensor")
        for name in ("rotation", "handle_centre", "gravity"):
            value = getattr(self, name)
            try:
                valid = len(value) == 3 and all(math.isfinite(number) for number in value)
            except TypeError:
                valid = False
            if not valid:
                raise ConfigurationError(f"device.sensor.{name} = {value!r}: must be three finite numbers.")


def check_one_of(settings: Any, name: str, allowed: Sequence[float], unit: str) -> None:
    """Raise `ConfigurationError` if this setting of a sensor is not one of the `allowed` numbers."""
    value = getattr(settings, name)
    if value not in allowed:
        words = ", ".join(f"{number:g}" for number in sorted(allowed))
        raise ConfigurationError(f"device.sensor.{name} = {value!r} {unit}: must be one of {words}.")


def turn(axis: int, angle: float) -> Array:
    """Return the rotation, (3, 3), by `angle` [rad] about axis 0 (x), 1 (y) or 2 (z)."""
    cosine, sine = math.cos(angle), math.sin(angle)
    matrix = np.eye(3)
    before, after = (axis + 1) % 3, (axis + 2) % 3
    matrix[before, before] = matrix[after, after] = cosine
    matrix[before, after], matrix[after, before] = -sine, sine
    return matrix


class Mounting:
    """Conversion of a sensor's measurement to the force of the hand in world axes.

    The inertial force of the handle is not subtracted: the handle is mass that the hand has to move as well.

    Parameters
    ----------
    settings : SensorSettings
        Orientation of the sensor and its handle.

    Attributes
    ----------
    record : (1,) structured array
        Kernel record (`devices.arm.sensors.mounting.MOUNTING`).
    """

    def __init__(self, settings: SensorSettings) -> None:
        about_x, about_y, about_z = (math.radians(angle) for angle in settings.rotation)
        x, y, z = settings.handle_centre
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])  # lever @ F = centre x F
        record = self.record = np.zeros(1, MOUNTING)
        record["on_flange"] = turn(2, about_z) @ turn(1, about_y) @ turn(0, about_x)
        record["gravity"] = settings.gravity
        record["handle"] = settings.handle_mass * np.vstack([np.eye(3), lever])

    def gravity(self, orientation: Array | None = None) -> Array:
        """Return gravity in sensor axes, (3,) [m/s^2]; `orientation` as for `hand`."""
        return self._turned(np.zeros(6), orientation)[1]

    def tare(self, measured: Array, orientation: Array | None = None) -> None:
        """Set the offset from a wrench `measured`, (6,), of the untouched handle, less the handle's weight."""
        self.record["offset"] = measured - self.record["handle"][0] @ self.gravity(orientation)

    def hand(self, measured: Sequence[float] | Array, orientation: Array | None = None) -> Array:
        """Return the wrench of the hand, (6,), in world axes.

        Parameters
        ----------
        measured : (6,) floats
            Wrench in sensor axes.
        orientation : (3, 3) float array, optional
            Rotation from flange to world axes: v_world = orientation @ v_flange; by default the identity.
        """
        return self._turned(np.asarray(measured, float), orientation)[0]

    def _turned(self, measured: Array, orientation: Array | None) -> tuple[Array, Array]:
        """Return the wrench of the hand in world axes, and gravity in sensor axes."""
        wrench, gravity, flange = np.zeros(6), np.zeros(3), np.eye(3) if orientation is None else orientation
        hand_wrench(self.record, flange, measured, np.zeros((3, 3)), gravity, wrench)
        return wrench, gravity
