"""Devices with three translational axes, used in a plane.

Friction is rendered in a plane through a chosen point of the device's space; a spring and a damper with a separate
force limit hold the end effector in the plane. The force that holds it is not part of the rendered force.

`PlaneSettings` has the settings, `Plane` the geometry, and `PlaneDriver` the data sheet and the record of a driver. Its
kernels are `place_in_plane` and `estimate_in_plane`, which fill position, height and velocity from the numbers of a
sample, and `spread_force`, which fills the three numbers of a command.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from devices.common.exchange import ExchangeDriver, ExchangeSettings
from devices.common.kernels import estimate_velocity, exchange_fields
from devices.common.velocity import VELOCITY, fill_velocity, prepare_velocity, update_velocity
from haptics.clock import Clock
from haptics.device import Channel
from haptics.errors import ConfigurationError
from haptics.jit import merged_kernel
from haptics.records import fields
from haptics.settings import bounded, documented, string, unrestricted

Floats = NDArray[np.float64]
"""A float64 array."""

APPROACH = 0.05
"""Speed at which the held axis is moved from its initial position to the plane [m/s]."""

HELD_WITHIN = 1e-3
"""Distance from the plane beyond which a holding force at its limit is reported [m]."""

_AXES = re.compile(r"(-?)([xyz])(-?)([xyz])")
_POINT = "three numbers such as [0.0, 0.0, 0.0]"
_POINTS = "nine numbers [m], or [] for the plane of two axes"
_FARTHEST = 0.5
_LEAST_SIDE = 1e-3


@documented
@dataclass(frozen=True)
class PlaneSettings(ExchangeSettings):
    """Settings of a device with three translational axes, in addition to `ExchangeSettings`."""

    plane: str = string(
        "xy",
        allowed="two axes of the device such as xy, xz or x-z",
        doc="axes of the device that become x and y, with a minus sign before a reversed one; the third axis is held",
    )
    plane_points: tuple[float, ...] = unrestricted(
        (),
        _POINTS,
        doc="three points of an inclined plane along the device's axes: the middle of the workspace, a point in the "
        "direction of x, and a point on the side of y; they take the place of plane and origin",
    )
    origin: tuple[float, ...] = unrestricted(
        (0.0, 0.0, 0.0), _POINT, doc="middle of the workspace, along the device's three axes [m]"
    )
    max_force: float = bounded(5.0, above=0.0, maximum=20.0, unit="N", doc="largest force in the plane")
    hold_stiffness: float = bounded(
        300.0, minimum=0.0, maximum=1000.0, unit="N/m", doc="spring that holds the third axis; 0 to leave it free"
    )
    hold_time: float = bounded(
        0.1,
        minimum=0.0,
        maximum=10.0,
        unit="s",
        doc="time in which the holding force removes a remaining distance (integral part); 0 for a spring alone",
    )
    hold_damping: float = bounded(3.0, minimum=0.0, maximum=10.0, unit="N s/m", doc="damper that holds the third axis")
    hold_force: float = bounded(2.0, minimum=0.0, maximum=5.0, unit="N", doc="largest force that holds the third axis")
    resolution: float = bounded(1e-5, minimum=0.0, maximum=1e-3, unit="m", doc="smallest step of the position")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "origin", _numbers("origin", self.origin, (3,), _POINT))  # files contain lists
        object.__setattr__(self, "plane_points", _numbers("plane_points", self.plane_points, (0, 9), _POINTS))
        if self.plane_points and any(self.origin):
            raise ConfigurationError(
                "device.origin: the first of device.plane_points is the middle of the workspace; give only one of them."
            )
        Plane.of(self)


def _numbers(name: str, given: Any, sizes: tuple[int, ...], allowed: str) -> tuple[float, ...]:
    """Return the coordinates of a setting as a tuple."""
    if not (isinstance(given, list | tuple) and len(given) in sizes) or not all(
        isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _FARTHEST for part in given
    ):
        raise ConfigurationError(f"device.{name} = {given!r}: must be {allowed}, each at most {_FARTHEST:g} m from 0.")
    return tuple(float(part) for part in given)


@dataclass(frozen=True)
class Plane:
    """A plane in the space of a device.

    Attributes
    ----------
    axes : (3, 3) array
        Unit vectors along the device's axes: x, y and the direction of the height, in rows.
    middle : (3,) array
        Point of the plane that becomes the origin [m].
    """

    axes: Floats
    middle: Floats

    @classmethod
    def of(cls, settings: PlaneSettings) -> Plane:
        """Return the plane that the settings choose.

        The height is along the device's third axis, in its positive direction; above an inclined plane, it is along
        the cross product of x and y.

        Raises
        ------
        ConfigurationError
            If the axes are no two different ones, or the points do not define a plane.
        """
        if settings.plane_points:
            middle, along, beside = np.array(settings.plane_points).reshape(3, 3)
            x = along - middle
            length = math.hypot(*x)
            if length >= _LEAST_SIDE:
                x /= length
                y = beside - middle
                y -= (y @ x) * x
                width = math.hypot(*y)
                if width >= _LEAST_SIDE:
                    y /= width
                    return cls(np.array([x, y, np.cross(x, y)]), middle)
            raise ConfigurationError(
                f"device.plane_points = {list(settings.plane_points)}: the three points must be at least "
                f"{1e3 * _LEAST_SIDE:g} mm apart, and not on a line."
            )
        found = _AXES.fullmatch(settings.plane)
        if found is None or found[2] == found[4]:
            raise ConfigurationError(
                f"device.plane = {settings.plane!r}: must be two different axes of the device such as xy, xz or x-z."
            )
        numbers = ["xyz".index(found[2]), "xyz".index(found[4])]
        numbers.append(3 - sum(numbers))
        axes = np.zeros((3, 3))
        axes[range(3), numbers] = -1.0 if found[1] else 1.0, -1.0 if found[3] else 1.0, 1.0
        return cls(axes, np.array(settings.origin))

    def extent(self, half: tuple[float, float, float]) -> tuple[float, float]:
        """Return half the sides of a rectangle around the middle that lies within a box around it.

        Parameters
        ----------
        half : (float, float, float)
            Half the sides of the box, along the device's axes [m].
        """
        across, box = np.abs(self.axes[:2]), np.array(half)
        with np.errstate(divide="ignore", over="ignore"):  # an axis may be almost parallel to the plane
            sides = np.min(box / across, axis=1)
        sides /= np.max((sides @ across) / box)
        return float(sides[0]), float(sides[1])


PLANE_CHANNELS: tuple[Channel, ...] = (("height", "m", 1), ("hold_force", "N", 1))
"""Recorded channels of every device in a plane: distance from the plane, and the force that holds it there."""


def plane_fields(sample_size: int, command_size: int) -> list[tuple[Any, ...]]:
    """Return the first fields of the record of a driver of a device in a plane.

    ``axes`` and ``middle`` define the `Plane`. ``height`` is the distance from it [m], ``held_at`` the set-point of the
    spring, ``hold_sum`` its integral part [N], and ``lift`` the velocity estimator of that axis.
    """
    return [
        *exchange_fields(sample_size, command_size),
        ("axes", "<f8", (3, 3)),
        ("middle", "<f8", (3,)),
        *fields("<f8", "period hold_stiffness hold_damping hold_rate hold_limit height held_at hold_sum hold_force"),
        ("lift", VELOCITY),
    ]


class PlaneDriver(ExchangeDriver):
    """Impedance device with three translational axes, used in a plane. Subclasses write `_connect`.

    Parameters
    ----------
    settings, clock, dtype, parts
        See `devices.common.exchange.ExchangeDriver`; `dtype` begins with `plane_fields`.
    identity : callable
        Takes the settings and returns the identity of the device for messages.
    half : callable
        Takes the settings and returns half the sides of the workspace, along the device's axes [m].
    channels : tuple
        Channels after `PLANE_CHANNELS`.
    """

    settings_class: ClassVar[type[PlaneSettings]]
    settings: Any

    def __init__(
        self,
        settings: Mapping[str, Any] | None,
        clock: Clock | None,
        dtype: np.dtype[Any],
        parts: tuple[Callable[..., None], Callable[..., None]],
        *,
        identity: Callable[[Any], str],
        half: Callable[[Any], tuple[float, float, float]],
        channels: tuple[Channel, ...] = (),
    ) -> None:
        super().__init__(settings, clock, dtype, parts)
        own, record, period = self.settings, self._record, self._clock.period
        plane = Plane.of(own)
        across, along = plane.extent(half(own))
        self._set_sheet(
            identity(own),
            (-across, -along),
            (across, along),
            max_force=own.max_force,
            resolution=own.resolution,
            channels=(*PLANE_CHANNELS, *channels),
        )
        fill_velocity(record["lift"], own, own.resolution, period)
        record["axes"], record["middle"], record["period"] = plane.axes, plane.middle, period
        record["hold_stiffness"], record["hold_damping"] = own.hold_stiffness, own.hold_damping
        record["hold_limit"], record["hold_rate"] = own.hold_force, 1.0 / own.hold_time if own.hold_time else 0.0

    def _prepare(self) -> None:
        super()._prepare()
        prepare_velocity(self._record["lift"])
        self._record["lift"]["samples"] = 0

    def review(self, channels: Floats) -> str:
        """Return a warning if the third axis was not held at any tick, because the holding force was at its limit."""
        limit, (height, force) = self.settings.hold_force, np.abs(channels[:, :2].T)
        held = (force < (1.0 - 1e-9) * limit) | (height < HELD_WITHIN)
        if held.any() or not len(held) or limit == 0.0 or self.settings.hold_stiffness == 0.0:
            return ""
        return (
            f"{self.name}: the third axis is pushed with more than device.hold_force = {limit:g} N: the handle is "
            f"{1e3 * height.max():.0f} mm beside the plane. Support its weight, push along the plane only, or increase "
            "device.hold_force."
        )


# --- kernels ----------------------------------------------------------------------------------------------------------


@merged_kernel
def component(s: Any, axis: int, at: int) -> float:
    """Return the component of the vector ``s.sample[at:at + 3]`` along x (0), y (1) or the normal (2) of the plane."""
    found: float = s.axes[axis, 0] * s.sample[at]
    for j in range(1, 3):
        found += s.axes[axis, j] * s.sample[at + j]
    return found


@merged_kernel
def place_in_plane(s: Any, at: int) -> None:
    """Set ``position`` and ``height`` from the position in the device's space, ``s.sample[at:at + 3]`` [m]."""
    x, y, z = s.sample[at] - s.middle[0], s.sample[at + 1] - s.middle[1], s.sample[at + 2] - s.middle[2]
    for i in range(2):
        s.position[i] = s.axes[i, 0] * x + s.axes[i, 1] * y + s.axes[i, 2] * z
    s.height = s.axes[2, 0] * x + s.axes[2, 1] * y + s.axes[2, 2] * z


@merged_kernel
def estimate_in_plane(s: Any) -> None:
    """Estimate the velocities in the plane and of the height, and set the channels `PLANE_CHANNELS`."""
    if s.now < s.estimator.time:
        s.lift.samples = 0
    estimate_velocity(s)
    update_velocity(s.lift, s.now, s.height, 0.0)
    s.channels[0], s.channels[1] = s.height, s.hold_force


@merged_kernel
def update_hold(s: Any, share: float) -> None:
    """Compute ``hold_force`` [N]: a bounded spring and damper along the third axis, times `share`.

    With ``hold_rate``, an integral part removes the distance that remains under a lasting force. `share` is between 0
    and 1. While it is 0, the set-point follows the height; afterwards it moves slowly to the plane. Without
    a finite height the force is 0 at once, whereas the servo sets the share to 0 one tick later; the next finite height
    is the new set-point.
    """
    if share == 0.0 or not math.isfinite(s.held_at + s.height):
        s.held_at, s.hold_sum, s.hold_force = s.height, 0.0, 0.0
        return
    step = APPROACH * s.period
    s.held_at -= min(max(s.held_at, -step), step)
    spring = s.hold_stiffness * (s.held_at - s.height)
    s.hold_sum = min(max(s.hold_sum + s.hold_rate * s.period * spring, -s.hold_limit), s.hold_limit)
    force = spring + s.hold_sum - s.hold_damping * s.lift.velocity[0]
    s.hold_force = share * min(max(force, -s.hold_limit), s.hold_limit)


@merged_kernel
def spread_force(s: Any) -> None:
    """Set the first three numbers of the command: the force in the plane, and the force that holds the third axis.

    Like friction compensation, the driver and not the servo computes the holding force; it is zero during safe output.
    """
    update_hold(s, min(max(s.assistance, 0.0), 1.0))
    x, y = s.compensation.total[0], s.compensation.total[1]
    for i in range(3):
        s.given[i] = s.axes[0, i] * x + s.axes[1, i] * y + s.axes[2, i] * s.hold_force
