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

from devices.arm.sensors.mounting_kernels import MOUNTING, hand_wrench
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, unrestricted

Array = NDArray[np.float64]

STANDARD_GRAVITY = 9.80665
"""Standard gravity [m/s^2]."""


@documented
@dataclass(frozen=True, kw_only=True)
class SensorSettings:
    """Settings that all force sensors share."""

    rotation: Any = unrestricted(
        (0.0, 0.0, 0.0),
        "three angles in degrees",
        doc="turned against the flange: about its x, then its y, then its z axis",
    )
    handle_mass: float = bounded(0.0, minimum=0.0, maximum=50.0, unit="kg", doc="mass that the sensor carries")
    handle_centre: Any = unrestricted(
        (0.0, 0.0, 0.0), "three lengths in m", doc="centre of that mass, in the sensor's axes from its origin"
    )
    gravity: Any = unrestricted(
        (0.0, 0.0, -STANDARD_GRAVITY), "three numbers in m/s^2", doc="gravity in the axes of the world"
    )
    patience: float = bounded(
        0.05, minimum=5e-3, maximum=1.0, unit="s", doc="without a usable force for so long it has failed"
    )
    tare_samples: int = bounded(200, minimum=10, maximum=10_000, doc="measurements of which a tare is the mean")
    tare_spread: float = bounded(
        2.0, above=0.0, maximum=1000.0, unit="N", doc="how much they may differ, or the handle was touched"
    )

    def __post_init__(self) -> None:
        check(self, "device.sensor")
        for name in ("rotation", "handle_centre", "gravity"):
            _check_vector(f"device.sensor.{name}", getattr(self, name))


def check_one_of(settings: Any, name: str, allowed: Sequence[float], unit: str) -> None:
    """Raise `ConfigurationError` if this setting of a sensor is not one of the `allowed` numbers."""
    value = getattr(settings, name)
    if value not in allowed:
        words = ", ".join(f"{number:g}" for number in sorted(allowed))
        raise ConfigurationError(f"device.sensor.{name} = {value!r} {unit}: must be one of {words}.")


def _check_vector(name: str, value: Any) -> None:
    try:
        fine = len(value) == 3 and all(math.isfinite(number) for number in value)
    except TypeError:
        fine = False
    if not fine:
        raise ConfigurationError(f"{name} = {value!r}: must be three finite numbers.")


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
        Kernel record (`devices.arm.sensors.mounting_kernels.MOUNTING`).
    """

    def __init__(self, settings: SensorSettings) -> None:
        about_x, about_y, about_z = (math.radians(angle) for angle in settings.rotation)
        x, y, z = settings.handle_centre
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])  # lever @ F = centre x F
        record = self.record = np.zeros(1, MOUNTING)
        record["on_flange"] = turn(2, about_z) @ turn(1, about_y) @ turn(0, about_x)
        record["gravity"] = settings.gravity
        record["handle"] = settings.handle_mass * np.vstack([np.eye(3), lever])

    def weight(self, orientation: Array | None = None) -> Array:
        """Return the wrench of the handle's weight, (6,), in sensor axes.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Rotation from flange to world axes: v_world = orientation @ v_flange; by default the identity.
        """
        weight: Array = self.record["handle"][0] @ self.gravity(orientation)
        return weight

    def gravity(self, orientation: Array | None = None) -> Array:
        """Return gravity in sensor axes, (3,) [m/s^2]; `orientation` as for `weight`."""
        return self._turned(np.zeros(6), orientation)[1]

    def tare(self, measured: Array, orientation: Array | None = None) -> None:
        """Set the offset from a wrench `measured`, (6,), of the untouched handle, less the handle's weight."""
        self.record["offset"] = measured - self.weight(orientation)

    def hand(self, measured: Sequence[float] | Array, orientation: Array | None = None) -> Array:
        """Return the wrench of the hand, (6,), in world axes.

        Parameters
        ----------
        measured : (6,) floats
            Wrench in sensor axes.
        orientation : (3, 3) float array, optional
            As for `weight`.
        """
        return self._turned(np.asarray(measured, float), orientation)[0]

    def _turned(self, measured: Array, orientation: Array | None) -> tuple[Array, Array]:
        """Return the wrench of the hand in world axes, and gravity in sensor axes."""
        wrench, gravity, flange = np.zeros(6), np.zeros(3), np.eye(3) if orientation is None else orientation
        hand_wrench(self.record, flange, measured, np.zeros((3, 3)), gravity, wrench)
        return wrench, gravity
