"""Device interface of the servo: four methods and a specification.

A driver implements ``open``, ``read``, ``write`` and ``close`` and provides a `DeviceSpec`. All units are SI; the
driver converts from the units of its protocol.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Vector = NDArray[np.float64]
"""A float64 array of shape (2,): x and y."""

Channel = tuple[str, str, int]
"""An additional measured quantity of a device: name, unit and number of values."""

MAX_CHANNELS = 24
"""Maximum number of values of all channels of a device together."""


class Causality(StrEnum):
    """Input and output of a device; the element before it must have the same causality."""

    IMPEDANCE = "impedance"
    """Motion in, force out: a backdrivable device; elements B and C."""
    ADMITTANCE = "admittance"
    """Force in, motion out: a device with a force sensor and a stiff position servo; elements A and D."""


_UNKNOWN = np.full(2, np.nan)
_UNKNOWN.flags.writeable = False


@dataclass(slots=True)
class State:
    """Sample of a device at one tick.

    The device may reuse the arrays at the next ``read``; copy them to keep them.

    Attributes
    ----------
    time : float
        Time of the sample on the run's clock [s]. The servo computes the age of the sample from it.
    position : (2,) float array
        End-effector position [m].
    velocity : (2,) float array
        End-effector velocity [m/s], estimated by the driver.
    force : (2,) float array
        Force of the hand on the end effector [N]; zeros without a force sensor.
    buttons : int
        Bit mask of the pressed buttons; bit 0 is the dead-man's switch if the device has one.
    hand_force : (2,) float array
        True force of a virtual hand on the handle [N]; nan for a real hand. It is recorded only.
    channels : (n,) float array or None
        Values of all `DeviceSpec.channels`, concatenated; None if the device has no channels or no values yet. They are
        recorded only.
    """

    time: float = 0.0
    position: Vector = field(default_factory=lambda: np.zeros(2))
    velocity: Vector = field(default_factory=lambda: np.zeros(2))
    force: Vector = field(default_factory=lambda: np.zeros(2))
    buttons: int = 0
    hand_force: Vector = field(default_factory=lambda: _UNKNOWN)
    channels: NDArray[np.float64] | None = None


DEAD_MAN_BUTTON = 1
"""Bit of `State.buttons` that is set while the device's dead-man's switch is held."""


THERMAL_MARGIN = 0.1
"""Share of the permitted heat of the motors, just below it, over which the force limit falls to `continuous_force`."""


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Specification of a device: its capabilities, and the limits that the safety envelope enforces.

    Attributes
    ----------
    name, identity : str
        Backend name, and an identifier of the individual device (serial number, seed).
    causality : Causality
        Determines the elements that the device can be paired with.
    rate_min, rate_max : float
        Range of supported servo rates [Hz].
    workspace_min, workspace_max : (float, float)
        Corners of the permitted rectangle of the end effector [m].
    dimensions : int
        2, or 1 for a device that moves along x only, such as a wheel: y is always 0, and a force along y has no effect.
    max_force, max_force_rate : float
        Largest commanded force [N] and its largest rate of change [N/s] (impedance), or range of the force sensor
        (admittance): samples beyond it are rejected.
    continuous_force, full_force_time : float or None
        Force that the motors can sustain [N], and time for which they can produce ``max_force`` from cold [s]
        (impedance). None if they can sustain ``max_force``.
    max_speed : float
        Largest commanded speed of the end effector (admittance), or the speed above which no force may accelerate it
        further (impedance) [m/s].
    max_acceleration : float
        Largest commanded acceleration of the end effector [m/s^2] (admittance).
    max_sample_age : float
        Samples older than this are stale [s].
    max_following_error : float
        Largest distance of the end effector from its reference [m] (admittance). A larger distance means that the end
        effector is blocked or the motors are off. The default is larger than any workspace and disables the check.
    max_energy : float
        Largest energy that the loop may inject into the hand beyond the energy stored by the element [J].
    plausible_speed : float
        Highest speed at which a hand can move the handle [m/s]; faster samples are rejected as wrong.
    fade_in : float
        Shortest fade-in time of the output [s].
    dead_man : str
        Dead-man's switch that enables the output: ``none``, ``key`` (of the live view) or ``button`` (of the device).
    watchdog : float or None
        Timeout of the device's own watchdog [s], after which it switches to its safe output; None without a watchdog.
    position_resolution : float or None
        Position resolution [m]. This attribute and the following ones serve the parameter advice (`haptics.design`);
        None if unknown.
    mass, damping : float or None
        Moving mass [kg] and viscous damping of the device [N s/m] (impedance).
    delay : float or None
        Delay from a sample to the resulting force or motion [s].
    force_resolution : float or None
        Resolution of the force that reaches the motors [N]; None if unknown or negligible.
    least_friction : float or None
        Residual device friction after compensation [N]; the lowest friction force that can be rendered.
    velocity_lag : float
        Additional delay of a smoothed velocity relative to a backward difference [s].
    servo_frequency, servo_damping_ratio : float or None
        Natural frequency [Hz] and damping ratio of the position servo (admittance).
    servo_knows_velocity : bool
        Whether the position servo receives the velocity of its reference. Without it, the servo lags behind a moving
        reference (admittance).
    grip_stiffness, grip_damping : float or None
        Stiffness [N/m] and damping [N s/m] of the firmest expected grip (admittance).
    handle_mass : float or None
        Mass beyond the force sensor [kg]; its inertia appears in the measured force (admittance).
    least_mass : float or None
        Smallest virtual mass at which a sliding contact remains stable in the firmest grip [kg] (admittance). It is
        computed by devices with known servo law, gears and force sensor (`haptics.design.SampledArm`). If None, the
        advice is derived from the natural frequency of the servo.
    channels : tuple of (str, str, int)
        Additional measured quantities in the order of `State.channels`: name (lower-case letters, digits, underscores),
        unit and number of values. They become columns of a recording (`haptics.records`).

    Raises
    ------
    ConfigurationError
        If the channels are not valid columns of a recording.
    """

    name: str
    causality: Causality
    identity: str
    rate_min: float
    rate_max: float
    workspace_min: tuple[float, float]
    workspace_max: tuple[float, float]
    max_force: float
    max_force_rate: float
    max_speed: float
    max_acceleration: float
    max_sample_age: float
    max_following_error: float = 1000.0
    max_energy: float = 0.1
    plausible_speed: float = 10.0
    fade_in: float = 0.1
    dead_man: str = "none"
    watchdog: float | None = None
    position_resolution: float | None = None
    mass: float | None = None
    damping: float | None = None
    delay: float | None = None
    velocity_lag: float = 0.0
    servo_frequency: float | None = None
    servo_damping_ratio: float | None = None
    servo_knows_velocity: bool = False
    grip_stiffness: float | None = None
    grip_damping: float | None = None
    handle_mass: float | None = None
    least_mass: float | None = None
    least_friction: float | None = None
    force_resolution: float | None = None
    channels: tuple[Channel, ...] = ()
    dimensions: int = 2
    continuous_force: float | None = None
    full_force_time: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", checked_channels(self.channels, self.name))

    @property
    def heating_rate(self) -> float:
        """Rate at which the heat of the motors follows the squared force [1/s]; 0 without a thermal limit.

        The heat is relative to that of the continuous force ``c``. It follows ``(F / c)^2`` with one time constant,
        chosen such that the largest force from cold reaches `THERMAL_MARGIN` below 1 after ``full_force_time``.
        """
        if self.causality is not Causality.IMPEDANCE or not self.continuous_force or not self.full_force_time:
            return 0.0
        share = (1.0 - THERMAL_MARGIN) * (self.continuous_force / self.max_force) ** 2
        return -math.log1p(-share) / self.full_force_time if share < 1.0 - THERMAL_MARGIN else 0.0

    def time_until_warm(self, force: float) -> float:
        """Return the time [s] for which cold motors can sustain a constant `force` [N]; may be infinite."""
        if self.heating_rate == 0.0 or not self.continuous_force or force <= self.continuous_force:
            return math.inf
        return -math.log1p(-(1.0 - THERMAL_MARGIN) * (self.continuous_force / force) ** 2) / self.heating_rate


_CHANNEL_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def checked_channels(channels: Any, device: str) -> tuple[Channel, ...]:
    """Validate `channels` and return them in the form of `DeviceSpec.channels`.

    Parameters
    ----------
    channels : object
        Rows of name, unit and number of values.
    device : str
        Name of the device, for messages.

    Raises
    ------
    ConfigurationError
        If the channels are not valid columns of a recording.
    """
    if not isinstance(channels, list | tuple):
        raise ConfigurationError(f"{device}: the channels must be rows of name, unit and size.")
    checked: list[Channel] = []
    for channel in channels:
        match channel:
            case [str(name), str(unit), int(size)] if size > 0 and size is not True and unit:
                if _CHANNEL_NAME.fullmatch(name):
                    checked.append((name, unit, size))
                    continue
        raise ConfigurationError(
            f"{device}: the channel {str(channel)[:60]} must be a name of small letters, digits and underscores, a "
            "unit, and a whole number of at least 1."
        )
    if len({name for name, _, _ in checked}) < len(checked):
        raise ConfigurationError(f"{device}: has two channels of one name.")
    if sum(size for _, _, size in checked) > MAX_CHANNELS:
        raise ConfigurationError(f"{device}: has channels of more than {MAX_CHANNELS} numbers together.")
    return tuple(checked)


@runtime_checkable
class Device(Protocol):
    """Interface of a device.

    Creating a device accesses no hardware, so that `spec` can be checked first. ``open`` and ``close`` may be called
    twice. ``read`` and ``write`` block for at most a small part of a period.

    The servo detects four optional attributes by their names; sessions and experiments detect one more each:

    - ``compensate(share)`` sets the share of the friction compensation, 0 to 1, from the next ``write`` on; it is 0
      after ``open``. The servo calls it before every ``write``, with 0 while the output is the safe output. The
      compensation is added to the command inside the device. The sum is limited to `DeviceSpec.max_force`. The
      recording contains the command without the compensation.
    - ``facts`` is a mapping of JSON-serialisable values of the open device, such as the limits of a drive. They are
      recorded as ``device_facts``.
    - ``explain()`` returns a sentence with the cause of the failed run, empty if only the driver's message is known.
      The servo calls it after the device is closed.
    - ``port()`` returns the `Port` of the open device, or None if its present configuration has none.
    - ``review(channels)`` returns a warning about recent values of the channels, (ticks, values), empty without one. A
      session calls it a few times per second on a device that is not open, and shows the first warning.
    - ``digital_output`` is True for a device that sets a digital output to the codes in the file of its setting
      ``output``; the setting is a string, empty without codes.
    """

    @property
    def spec(self) -> DeviceSpec:
        """Specification of the device; available before the device is opened."""
        ...

    def open(self) -> None:
        """Connect and energise the device.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            If the device is missing or cannot be opened; the message contains the remedy.
        """
        ...

    def read(self) -> State:
        """Return the newest sample; raise `DeviceFault` if the device delivers no further samples."""
        ...

    def write(self, command: Vector) -> None:
        """Apply a command: the force on the handle [N] (impedance) or the position reference [m] (admittance)."""
        ...

    def close(self) -> None:
        """Set the force to zero (impedance) or hold the position (admittance), then disconnect."""
        ...


class Managed(ABC):
    """Context manager that opens a device on entry and closes it on exit, also after an exception."""

    @abstractmethod
    def open(self) -> None:
        """Open the device (`Device.open`)."""

    @abstractmethod
    def close(self) -> None:
        """Bring the device to a safe state and close it; a second call has no effect."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- ports ------------------------------------------------------------------------------------------------------------
#
# A port gives the compiled loop access to a device without Python.
#
# A device with a `Port` exchanges its newest sample and its command with the loop through one record. A virtual
# device provides parts (`haptics.jit`) that compute the sample and apply the command within the call. A driver
# provides parts that assemble the sample from the data last received by its threads and pass the command to them
# (`devices.common.driver`). Threads may also write and read the record directly, protected by a seqlock. On an error
# the device sets ``fault``; the loop then returns to Python, where the device's ``read`` or ``write`` raises the
# exception.

PORT_FIELDS: list[tuple[Any, ...]] = [
    ("sequence", "<i8"),
    ("fault", "<i8"),
    ("time", "<f8"),
    ("position", "<f8", (2,)),
    ("velocity", "<f8", (2,)),
    ("force", "<f8", (2,)),
    ("hand_force", "<f8", (2,)),
    ("buttons", "<i8"),
    ("command", "<f8", (2,)),
    ("assistance", "<f8"),
    ("commands", "<i8"),
    ("channels", "<f8", (MAX_CHANNELS,)),
]
"""First fields of the record of a port.

``sequence`` is odd while a thread writes the sample and even otherwise (always 0 if a part provides the sample).
``fault`` is nonzero if ``read`` would raise. ``time`` to ``buttons`` are the sample (`haptics.device.State`);
``hand_force`` is the true force of the hand [N] if known, else nan. ``command`` and ``assistance`` come from the servo
(``compensate``); ``commands`` is odd while the servo writes them for a thread.
``channels`` begins with the values of the device's channels (`haptics.device.DeviceSpec.channels`), which belong to the
sample.
"""


@dataclass(frozen=True)
class Port:
    """The port of an opened device.

    Attributes
    ----------
    record : (1,) structured array
        Begins with `PORT_FIELDS`; its address is fixed until the device is closed.
    read_part : int
        Address of the part ``(record, now, elapsed)`` that updates the sample for the nominal time `now`, with the time
        `elapsed` since the start [s]; 0 if a thread does.
    write_part : int
        Address of the part ``(record, x, y)`` that applies a command; 0 if a thread does.
    wake : int
        File descriptor of an event (``eventfd(2)``) to be signalled after each command; -1 for none.
    """

    record: NDArray[Any]
    read_part: int = 0
    write_part: int = 0
    wake: int = -1


def port_of(device: object) -> Port | None:
    """Return the port of an open `device`, or None without a port equivalent to ``read`` and ``write``.

    A subclass or wrapper that overrides ``read`` or ``write`` of a device with a port expects these methods to be
    called. The port is therefore valid only if it is defined in the same class as both methods, or in a subclass of it.
    """
    order, methods = type(device).__mro__, ("read", "write")
    if not all(any(name in vars(cls) for cls in order) for name in ("port", *methods)):
        return None
    last = {name: next(k for k, cls in enumerate(order) if name in vars(cls)) for name in ("port", *methods)}
    replaced = any(last[name] < last["port"] or name in vars(device) for name in methods)
    port: Port | None = None if replaced else device.port()  # type: ignore[attr-defined]
    return port
