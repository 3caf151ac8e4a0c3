r"""Six-axis force sensor between an arm and its handle: load, output, and estimated hand force.

A wrench is (Fx, Fy, Fz, Tx, Ty, Tz) [N], [N m], with torques about the origin of the sensor, in the axes of the sensor.
The sensor is mounted on a flange that rotates about the z axis of the world as the arm moves in x and y. The handle is
a point mass m at :math:`c` in the axes of the sensor, and the hand pulls at it with h. The load of the sensor is

.. math::
    F = R^T \bigl(h + m (g - a)\bigr), \qquad \tau = c \times F

with the acceleration a of the handle and the rotation R of the sensor. The output is the load plus a bias, a slow drift
(a random walk) and white noise, with quantisation and a limited range. The hand force (`hand_force`) is computed as for
a real sensor (`devices.arm.sensors.force_sensor`): output minus tare minus weight. The inertial force is not removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.sensors.force_sensor import STANDARD_GRAVITY, turn
from devices.common.kernels import quantise
from devices.virtual.noise import NOISE_FIELDS, normal_pair
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, documented, flag, unrestricted

WRENCH = np.dtype(
    [
        *NOISE_FIELDS,
        ("mass", "<f8"),
        ("centre", "<f8", (3,)),
        ("on_flange", "<f8", (3, 3)),
        ("gravity", "<f8", (3,)),
        *fields("<f8", "bias noise walk resolution range drift truth shown offset", 6),
    ]
)
"""Record of sensor and handle: ``truth`` is the load, ``shown`` the output, ``offset`` the tare."""

TARE_SAMPLES = 200
"""Number of measurements averaged for a tare."""


@documented
@dataclass(frozen=True)
class WrenchSettings:
    """Settings of the simulated force sensor."""

    noise: float = bounded(
        0.05, minimum=0.0, maximum=5.0, unit="N", doc="white noise of a force, root mean square per axis"
    )
    torque_noise: float = bounded(
        0.002, minimum=0.0, maximum=1.0, unit="N m", doc="white noise of a torque, root mean square per axis"
    )
    bias: Any = unrestricted(
        (2.0, -1.0, 3.0, 0.02, -0.05, 0.01), "six numbers in N and N m", doc="reading without load after switching on"
    )
    drift: float = bounded(
        0.002,
        minimum=0.0,
        maximum=10.0,
        unit="N",
        doc=(
            "drift of the bias of a force, per axis: standard deviation after one second; it grows with the "
            "square root of time"
        ),
    )
    torque_drift: float = bounded(
        1e-4, minimum=0.0, maximum=1.0, unit="N m", doc="drift of the bias of a torque, in the same way"
    )
    resolution: float = bounded(0.01, minimum=0.0, maximum=1.0, unit="N", doc="step of a force; 0 for a perfect one")
    torque_resolution: float = bounded(
        5e-4, minimum=0.0, maximum=1.0, unit="N m", doc="step of a torque; 0 for a perfect one"
    )
    range: float = bounded(
        50.0, above=0.0, maximum=10_000.0, unit="N", doc="largest force that the sensor measures, per axis"
    )
    torque_range: float = bounded(
        5.0, above=0.0, maximum=10_000.0, unit="N m", doc="largest torque that the sensor measures, per axis"
    )
    rotation: Any = unrestricted(
        (0.0, 0.0, 0.0),
        "three angles in degrees",
        doc="rotation relative to the flange: about its x, then its y, then its z axis",
    )
    handle_centre: Any = unrestricted(
        (0.0, 0.0, 0.05),
        "three lengths in m",
        doc="centre of the handle's mass and point of attack of the hand, in the sensor's axes",
    )
    tare: bool = flag(True, doc="tare the sensor when the device is opened, before the hand grips")

    def __post_init__(self) -> None:
        check(self, "device.sensor")
        for name, count in (("bias", 6), ("rotation", 3), ("handle_centre", 3)):
            value = getattr(self, name)
            try:
                fine = len(value) == count and all(math.isfinite(number) for number in value)
            except TypeError:
                fine = False
            if not fine:
                raise ConfigurationError(f"device.sensor.{name} = {value!r}: must be {count} finite numbers.")
            object.__setattr__(self, name, tuple(float(number) for number in value))


def fill_wrench(record: NDArray[Any], settings: WrenchSettings, mass: float, tilt: float, seed: int) -> None:
    """Initialise a sensor in `record`, (1,) of dtype `WRENCH`, with zero output and without tare.

    Parameters
    ----------
    mass : float
        Mass of the handle [kg].
    tilt : float
        Gravity within the plane of the arm, along -y of the world [m/s^2]; the remaining gravity is along -z.
    seed : int
        Seed of noise and drift.
    """
    about_x, about_y, about_z = (math.radians(angle) for angle in settings.rotation)
    record["noise_state"] = seed
    record["mass"], record["centre"] = mass, settings.handle_centre
    record["on_flange"] = turn(2, about_z) @ turn(1, about_y) @ turn(0, about_x)
    record["gravity"] = 0.0, -tilt, -math.sqrt(max(STANDARD_GRAVITY**2 - tilt**2, 0.0))
    record["bias"] = settings.bias
    for field, force, torque in (
        ("noise", settings.noise, settings.torque_noise),
        ("walk", settings.drift, settings.torque_drift),
        ("resolution", settings.resolution, settings.torque_resolution),
        ("range", settings.range, settings.torque_range),
    ):
        record[field] = (force,) * 3 + (torque,) * 3
    for field in ("drift", "truth", "shown", "offset"):
        record[field] = 0.0


@kernel
def _turned(s: Any, column: int, cosine: float, sine: float) -> tuple[float, float, float]:
    """Return an axis of the sensor in the axes of the world: a column of its rotation matrix."""
    x, y = s.on_flange[0, column], s.on_flange[1, column]
    return cosine * x - sine * y, sine * x + cosine * y, s.on_flange[2, column]


@kernel
def true_wrench(s: Any, angle: float, fx: float, fy: float, ax: float, ay: float) -> None:
    """Fill ``s.truth`` with the load of the sensor.

    Parameters
    ----------
    s : record of dtype `WRENCH`
    angle : float
        Angle of the flange about the z axis of the world [rad].
    fx, fy : float
        Force of the hand on the handle, in the axes of the world [N].
    ax, ay : float
        Acceleration of the handle [m/s^2].
    """
    m, wrench = s.mass, s.truth
    x, y, z = fx + m * (s.gravity[0] - ax), fy + m * (s.gravity[1] - ay), m * s.gravity[2]
    cosine, sine = math.cos(angle), math.sin(angle)
    for i in range(3):
        a, b, c = _turned(s, i, cosine, sine)
        wrench[i] = a * x + b * y + c * z
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        wrench[3 + i] = s.centre[j] * wrench[k] - s.centre[k] * wrench[j]


@kernel
def measure_wrench(s: Any, period: float) -> None:
    """Fill ``s.shown`` with the quantised and limited sum of ``s.truth``, bias, drift and noise.

    `period` is the time since the last measurement [s].
    """
    root = math.sqrt(period)
    for i in range(6):
        noise, walk = normal_pair(s)
        s.drift[i] += s.walk[i] * root * walk
        shown = quantise(s.truth[i] + s.bias[i] + s.drift[i] + s.noise[i] * noise, s.resolution[i])
        s.shown[i] = min(max(shown, -s.range[i]), s.range[i])


@kernel
def hand_force(s: Any, angle: float) -> tuple[float, float]:
    """Return the force of the hand [N] in the axes of the world from ``s.shown`` and the flange `angle`."""
    cosine, sine = math.cos(angle), math.sin(angle)
    x, y = -s.mass * s.gravity[0], -s.mass * s.gravity[1]
    for i in range(3):
        a, b, _ = _turned(s, i, cosine, sine)
        own = s.shown[i] - s.offset[i]
        x += a * own
        y += b * own
    return x, y


@kernel
def gravity_seen(s: Any, angle: float) -> tuple[float, float, float]:
    """Return gravity in the axes of the sensor [m/s^2] for a flange `angle`."""
    cosine, sine = math.cos(angle), math.sin(angle)
    x, y, z = s.gravity[0], s.gravity[1], s.gravity[2]
    a, b, c = _turned(s, 0, cosine, sine)
    d, e, f = _turned(s, 1, cosine, sine)
    g, h, i = _turned(s, 2, cosine, sine)
    return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z


@kernel
def tare_wrench(records: Rows, samples: int, period: float, angle: float) -> None:
    """Tare the sensor with the mean of `samples` measurements of the resting handle.

    The offset is the mean minus the known weight of the handle. `records` is (1,).
    """
    s = records[0]
    true_wrench(s, angle, 0.0, 0.0, 0.0, 0.0)
    for i in range(6):
        s.offset[i] = -s.truth[i]
    for _ in range(samples):
        measure_wrench(s, period)
        for i in range(6):
            s.offset[i] += s.shown[i] / samples
