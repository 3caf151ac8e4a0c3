"""Interface of a force sensor to the arm: the newest wrench, its age, and whether it is valid.

A separate thread reads the sensor, so that a tick never waits for the communication; only the latest measurement
counts. The age is relative to the reception of the last *valid* measurement. A repeated measurement, or a measurement
that the sensor itself marks as invalid, does not reset it. The safety envelope reacts to an old force; beyond
`patience` the sensor raises a fault with the reason.

There are three sets of axes: *sensor* axes, as printed on it; *flange* axes of the mounting surface; *world* axes,
in whose x and y the arm moves. A wrench is (Fx, Fy, Fz, Tx, Ty, Tz) [N], [N m], with torques about the origin of the
sensor.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from devices.common.latch import Latch, copy_latest
from haptics.clock import pause
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.jit import kernel, record_at
from haptics.records import fields
from haptics.settings import bounded, check, documented, unrestricted

# --- mounting ---------------------------------------------------------------------------------------------------------

MOUNTING = np.dtype(
    [("on_flange", "<f8", (3, 3)), ("gravity", "<f8", (3,)), ("handle", "<f8", (6, 3)), ("offset", "<f8", (6,))]
)
"""Mounting of a sensor: ``on_flange`` rotates sensor axes into flange axes; ``gravity`` in world axes [m/s^2];
``handle`` maps gravity in sensor axes to the wrench of the handle's weight; ``offset`` is the measurement without load.
"""


@kernel
def turn_to_world(m: Any, orientation: Any, to_world: Any, gravity: Any) -> None:
    """Compute `to_world`, (3, 3), the rotation from sensor to world axes, and `gravity`, (3,), in sensor axes [m/s^2].

    `orientation` is the orientation of the flange.
    """
    for i in range(3):
        for j in range(3):
            to_world[i, j] = 0.0
            for k in range(3):
                to_world[i, j] += orientation[i, k] * m.on_flange[k, j]
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
    turn_to_world(m, orientation, to_world, gravity)
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
    gravity: Any = unrestricted((0.0, 0.0, -STANDARD_GRAVITY), "three numbers in m/s^2", doc="gravity in world axes")
    patience: float = bounded(0.05, minimum=5e-3, maximum=1.0, unit="s", doc="longest time without a valid force")
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
        Kernel record (`devices.arm.sensors.force_sensor.MOUNTING`).
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


# --- measurements -----------------------------------------------------------------------------------------------------


class Health(IntEnum):
    """Validity of a measurement."""

    OK = 0
    WARNING = 1
    """Valid, with a condition to report."""
    FAULT = 2
    """Invalid: the sensor is overloaded or broken."""


class Sample(NamedTuple):
    """Measurement as received.

    Attributes
    ----------
    wrench : tuple of 6 floats
        Wrench in sensor axes [N], [N m].
    received : float
        Time of reception [s, perf_counter].
    measured : float
        Time at which this measurement was received first, without repetitions [s, perf_counter].
    health : Health
        Validity.
    words : str
        Description of the problem; empty if none.
    """

    wrench: tuple[float, ...]
    received: float
    measured: float
    health: Health = Health.OK
    words: str = ""


class Wire(ABC):
    """Communication with one kind of sensor.

    Attributes
    ----------
    name : str
        Name of the sensor, for messages.
    silence : str
        Remedy if no data arrive.
    tally : dict
        Counters of received and missing data, by name.
    """

    name: str
    silence: str
    tally: dict[str, int]

    @abstractmethod
    def open(self) -> None:
        """Connect, configure and start the stream.

        Raises `DeviceNotFoundError` or `DeviceOpenError` with the remedy.
        """

    @abstractmethod
    def poll(self, patience: float) -> Sample | None:
        """Wait for at most `patience` [s]; read all data and return the newest sample; raise `DeviceFault`."""

    @abstractmethod
    def close(self) -> None:
        """Stop the stream and disconnect, ignoring errors; may be called at any time."""


READING = 8
"""Number of values in a latched measurement: time of the last valid measurement [s, perf_counter], 1 if the newest one
is invalid, and its wrench in sensor axes.
"""

SENSOR = np.dtype(
    [
        *fields("<i8", "readings lost mounting"),
        ("patience", "<f8"),
        ("latest", "<f8", (READING,)),
        *fields("<f8", "usable age"),
        ("to_world", "<f8", (3, 3)),
        ("gravity", "<f8", (3,)),
        *fields("<f8", "raw wrench", 6),
    ]
)
"""Kernel record of a force sensor. ``readings``, ``lost`` and ``mounting`` are the addresses of the latch, of the float
that becomes 1 when the sensor has failed, and of the mounting record. ``usable`` is the time of the last valid
measurement [s, perf_counter], ``age`` its age, ``patience`` its maximum age [s]. ``raw`` and ``gravity`` are in sensor
axes, ``wrench`` is the wrench of the hand in world axes.
"""


@kernel
def take_reading(q: Any, instant: float, orientation: Any) -> bool:
    """Read the newest measurement at `instant` [s, perf_counter]; return True if a recent one is valid.

    For an invalid measurement ``raw`` is nan and ``wrench`` zero. `orientation`, (3, 3), is the orientation of the
    flange.
    """
    m = record_at(q.mounting, MOUNTING)
    turn_to_world(m, orientation, q.to_world, q.gravity)
    if copy_latest(q.readings, q.latest):
        q.usable = q.latest[0]
        if q.latest[1] == 0.0:
            q.raw[:] = q.latest[2:]
            wrench_of_hand(m, q.to_world, q.gravity, q.raw, q.wrench)
        else:
            q.raw[:], q.wrench[:] = math.nan, 0.0
    q.age = instant - q.usable
    return bool(q.age <= q.patience)


_POLL_TIMEOUT = 0.01  # time for which the reader thread waits for data before it checks whether to stop [s]

START_TIMEOUT = 1.0
"""Timeout of the first valid measurement after starting the sensor [s]."""

_PAUSE = 5e-4  # polling interval while waiting for a measurement [s]


class Reading(NamedTuple):
    """Force at a tick.

    Attributes
    ----------
    wrench : (6,) float array
        Wrench of the hand on the handle, in world axes [N], [N m]; zeros if invalid.
    age : float
        Time since the last valid measurement was received [s].
    health : Health
        Validity of the newest measurement.
    words : str
        Description of the problem; empty if none.
    """

    wrench: Array
    age: float
    health: Health
    words: str


class ForceSensor:
    """Force sensor that is read by a thread.

    Parameters
    ----------
    wire : Wire
        Communication with the sensor.
    settings : SensorSettings
        Mounting of the sensor, and its timeout.

    Attributes
    ----------
    record : (1,) structured array
        Kernel record (`devices.arm.sensors.force_sensor.SENSOR`).
    """

    def __init__(self, wire: Wire, settings: SensorSettings) -> None:
        self._wire = wire
        self._settings = settings
        self._mounting = Mounting(settings)
        self._readings, self._lost = Latch(READING), np.zeros(1)
        record = self.record = np.zeros(1, SENSOR)
        record["readings"], record["lost"] = self._readings.place, self._lost.ctypes.data
        record["mounting"], record["patience"] = self._mounting.record.ctypes.data, settings.patience
        self._latest: tuple[Sample, float] | None = None
        self._failure: Exception | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def tally(self) -> Mapping[str, int]:
        """Counters of received and missing measurements, by name."""
        return dict(self._wire.tally)

    # --- open and close ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, start the stream and wait for a valid measurement; do nothing if already open.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """
        if self._thread is not None:
            return
        self._mounting.gravity()  # compile before the motors are armed
        try:
            self._wire.open()
            self._latest, self._failure = None, None
            self._readings.publish(-math.inf, 1.0, *6 * (0.0,))
            self._lost[0] = 0.0
            self._ending.clear()
            self._thread = threading.Thread(target=self._read_on, name="force sensor", daemon=True)
            self._thread.start()
            latest = time.monotonic() + START_TIMEOUT
            while True:
                with contextlib.suppress(DeviceFault):
                    if self._state() is not None:
                        return
                if self._failure is not None or time.monotonic() > latest:
                    reason = self._failure_reason(time.perf_counter())
                    raise DeviceOpenError(f"{self._wire.name} sends no usable force: {reason}")
                pause(_PAUSE)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the stream and disconnect."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._latest = None
        self._wire.close()

    def _read_on(self) -> None:
        try:
            while not self._ending.is_set():
                sample = self._wire.poll(_POLL_TIMEOUT)
                if sample is not None:
                    self._publish(sample)
        except Exception as error:  # of any type: the tick must be notified
            self._failure = error
            self._lost[0] = 1.0

    def _publish(self, sample: Sample) -> None:
        usable, invalid = sample.measured, sample.health is Health.FAULT
        if invalid:
            usable = self._latest[1] if self._latest is not None else -math.inf
        self._latest = sample, usable
        self._readings.publish(usable, float(invalid), *sample.wrench)

    # --- force -------------------------------------------------------------------------------------------------------

    def latest(self, orientation: Array | None = None) -> Reading:
        """Return the newest force of the hand without waiting.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Rotation from flange to world axes (see `devices.arm.sensors.force_sensor.turn`); by default the identity.

        Raises
        ------
        DeviceFault
            If the sensor has failed, or the last valid measurement is older than `patience`.
        """
        state = self._state()
        if state is None:
            raise DeviceFault(f"{self._wire.name} is not open: call open() first.")
        sample, age = state
        wrench = np.zeros(6) if sample.health is Health.FAULT else self._mounting.hand(sample.wrench, orientation)
        return Reading(wrench, age, sample.health, sample.words)

    def _state(self) -> tuple[Sample, float] | None:
        """Return the newest sample and the age of the last valid one [s]; None before the first sample."""
        latest, now = self._latest, time.perf_counter()
        if self._failure is not None:
            raise self.trouble(math.inf) from self._failure
        if latest is None:
            return None
        age = now - latest[1]
        if age > self._settings.patience:
            raise self.trouble(age)
        return latest[0], age

    def trouble(self, age: float) -> DeviceFault:
        """Return the error for a failed sensor, or for a last valid force with the excessive `age` [s]."""
        reason = self._failure_reason(time.perf_counter())
        if self._failure is not None:
            return DeviceFault(f"{self._wire.name} failed: {reason}")
        return DeviceFault(f"{self._wire.name} has sent no usable force for {1e3 * age:.0f} ms: {reason}")

    def _failure_reason(self, now: float) -> str:
        """Return the reason why no valid force arrives, with the remedy."""
        if self._failure is not None:
            return str(self._failure)
        latest = self._latest
        recent = latest is not None and now - latest[0].received < self._settings.patience
        return (latest[0].words if latest is not None and recent else "") or self._wire.silence

    # --- tare --------------------------------------------------------------------------------------------------------

    def tare(self, orientation: Array | None = None) -> None:
        """Define the present load, without the handle's weight, as zero force (tare).

        The handle must not be touched.

        Parameters
        ----------
        orientation : (3, 3) float array, optional
            Orientation of the flange, as in `latest`.

        Raises
        ------
        DeviceOpenError
            If the force was not steady.
        DeviceFault
            If the sensor fails.
        """
        wanted = self._settings.tare_samples
        wrenches: list[tuple[float, ...]] = []
        last = -math.inf
        while len(wrenches) < wanted:
            state = self._state()
            if state is None:
                raise DeviceFault(f"{self._wire.name} is not open: call open() first.")
            sample = state[0]
            if sample.health is not Health.FAULT and sample.measured > last:
                last = sample.measured
                wrenches.append(sample.wrench)
            time.sleep(_PAUSE)
        samples = np.array(wrenches)
        spread = float(np.ptp(samples[:, :3], axis=0).max())
        if spread > self._settings.tare_spread:
            raise DeviceOpenError(
                f"{self._wire.name} showed forces {spread:.3g} N apart during its tare: let go of the handle and keep "
                "the arm at rest, or allow more with device.sensor.tare_spread."
            )
        self._mounting.tare(samples.mean(axis=0), orientation)
