"""The contract between the servo and a device: four methods and a data sheet.

A driver author writes ``open``, ``read``, ``write`` and ``close`` and fills in a `DeviceSpec`. Units are
SI throughout; whatever the wire speaks is converted inside the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from haptics.errors import ConfigurationError

Vector = NDArray[np.float64]
"""A float64 array of shape (2,): x and y."""

Channel = tuple[str, str, int]
"""Something else that a device measures: name, unit, and how many numbers it is."""

MOST_CHANNELS = 24
"""Numbers that all channels of a device may have together."""


class Causality(StrEnum):
    """What a device takes and gives: the element in front of it must be of the same kind."""

    IMPEDANCE = "impedance"
    """Motion in, force out: a backdrivable device; elements B and C."""
    ADMITTANCE = "admittance"
    """Force in, motion out: a device with a force sensor and a stiff position servo; elements A and D."""


def _zeros() -> Vector:
    return np.zeros(2)


_UNKNOWN = np.full(2, np.nan)
_UNKNOWN.flags.writeable = False


@dataclass(slots=True)
class State:
    """What a device reports at one tick.

    The arrays may be reused by the device at the next ``read``: copy what you keep.

    Attributes
    ----------
    time : float
        When the sample was taken, on the run's clock [s]; the servo turns it into an age.
    position : (2,) float array
        End-effector position [m].
    velocity : (2,) float array
        End-effector velocity [m/s], estimated by the driver, which knows its encoder.
    force : (2,) float array
        Force of the hand on the end effector [N]; zeros where there is no sensor.
    buttons : int
        Buttons that are held, one bit each; bit 0 is the dead-man's, where the device has one.
    hand_force : (2,) float array
        What the hand really does to the handle [N], where the hand is virtual; nan elsewhere. It is recorded, and used
        for nothing.
    channels : (n,) float array or None
        The numbers of all `DeviceSpec.channels`, one after the other; None where there are none, or none yet. They are
        recorded, and used for nothing.
    """

    time: float = 0.0
    position: Vector = field(default_factory=_zeros)
    velocity: Vector = field(default_factory=_zeros)
    force: Vector = field(default_factory=_zeros)
    buttons: int = 0
    hand_force: Vector = field(default_factory=lambda: _UNKNOWN)
    channels: NDArray[np.float64] | None = None


DEAD_MAN_BUTTON = 1
"""Bit of `State.buttons` that is set while the device's dead-man's switch is held."""


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device's data sheet: what may be asked of it. The envelope takes its limits from here.

    Attributes
    ----------
    name, identity : str
        Backend name, and what tells this very device from its siblings (serial number, seed).
    causality : Causality
        Which elements it can be paired with.
    rate_min, rate_max : float
        Servo rates it can serve [Hz].
    workspace_min, workspace_max : (float, float)
        Corners of the rectangle the end effector may be in [m].
    dimensions : int
        2, or 1 for a device that moves along x only, such as a wheel: its y is 0, and a force along y does nothing.
    max_force, max_force_rate : float
        Largest force that may be commanded [N] and its largest rate of change [N/s] (impedance), or the
        range of the force sensor (admittance): a sample beyond it is refused.
    max_speed : float
        Largest commanded speed of the end effector (admittance); speed from which on no force drives it on (impedance)
        [m/s].
    max_acceleration : float
        Largest commanded acceleration of the end effector [m/s^2] (admittance).
    max_sample_age : float
        Samples older than this are stale [s].
    max_following_error : float
        Largest distance of the end effector from its reference [m] (admittance); one that is farther away is blocked,
        or its motors are off. By default farther than any arm reaches: it is not watched.
    max_energy : float
        Largest energy that the loop may give the hand beyond what the element itself had stored [J].
    plausible_speed : float
        No hand moves the handle faster [m/s]: a sample that says so is wrong.
    fade_in : float
        Shortest time in which the output may come up [s].
    dead_man : str
        What must be held for any output: ``none``, ``key`` (of the live view) or ``button`` (of the device).
    watchdog : float or None
        After this long without a command the device itself goes to its safe output [s]; None if it does not.
    position_resolution : float or None
        Smallest position step the device can tell [m]. This and all that follows is for advice on parameters
        (`haptics.design`); None if it is not known.
    mass, damping : float or None
        Moving mass [kg] and own viscous damping [N s/m] (impedance).
    delay : float or None
        From taking a sample to the force or the motion commanded for it [s].
    force_resolution : float or None
        Smallest step of the force that reaches the motors [N]; None if it is not known, or finer than matters.
    least_friction : float or None
        Residual device friction: the device's own that is not compensated, the least that can be rendered [N].
    velocity_lag : float
        How much later than a backward difference the velocity comes, where it is smoothed [s].
    servo_frequency, servo_damping_ratio : float or None
        Of the position servo: natural frequency [Hz], damping relative to critical (admittance).
    servo_knows_velocity : bool
        Whether the servo is told the velocity of its reference; without, it lags behind a moving one (admittance).
    grip_stiffness, grip_damping : float or None
        The firmest grip to be expected, spring [N/m] and damper [N s/m] (admittance).
    handle_mass : float or None
        What moves beyond the force sensor, which shows its inertia as a force [kg] (admittance).
    least_mass : float or None
        The smallest virtual mass with which a sliding contact does not shake the device in that grip [kg], as a device
        finds it that knows its servo law, gears and force sensor (`haptics.design.SampledArm`); without it the advice
        goes by the servo's frequency (admittance).
    channels : tuple of (str, str, int)
        What else it measures, in the order of `State.channels`: name (small letters, digits, underscores), unit, and
        how many numbers. A recording has them as columns (`haptics.recording.columns`).

    Raises
    ------
    ConfigurationError
        If the channels cannot be columns.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", checked_channels(self.channels, self.name))


_CHANNEL_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def checked_channels(channels: Any, device: str) -> tuple[Channel, ...]:
    """Return `channels`, which may come from a file, as a data sheet has them.

    Raises
    ------
    ConfigurationError
        If they cannot be columns of a recording; `device` is its name.
    """
    if not isinstance(channels, list | tuple):
        raise ConfigurationError(f"{device}: the channels must be rows of name, unit and size.")
    checked = tuple(_checked_channel(channel, device) for channel in channels)
    if len({name for name, _, _ in checked}) < len(checked):
        raise ConfigurationError(f"{device}: has two channels of one name.")
    if sum(size for _, _, size in checked) > MOST_CHANNELS:
        raise ConfigurationError(f"{device}: has channels of more than {MOST_CHANNELS} numbers together.")
    return checked


def _checked_channel(channel: Any, device: str) -> Channel:
    match channel:
        case [str(name), str(unit), int(size)] if size > 0 and size is not True:
            if _CHANNEL_NAME.fullmatch(name) and unit:
                return name, unit, size
    raise ConfigurationError(
        f"{device}: the channel {str(channel)[:60]} must be a name of small letters, digits and underscores, a unit, "
        "and a whole number of at least 1."
    )


class Compensating(Protocol):
    """A device with friction compensation; the servo looks for it by the method's name.

    What it adds to a command is bounded by `DeviceSpec.max_force` together with it, and is no part of it: a recording
    has the command alone.
    """

    def compensate(self, share: float) -> None:
        """Apply this share of the friction compensation, 0 to 1, from the next ``write`` on; 0 after ``open``.

        The servo says it before every ``write``: nothing while the output is the safe one.
        """
        ...


class Telling(Protocol):
    """A device that says more of itself when it is open; the servo looks for that by the attribute's name."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What goes into the recording as ``device_facts``, such as the limits of a drive: values that JSON has."""
        ...


class Explaining(Protocol):
    """A device that may know better why it failed; the servo looks for it by the method's name."""

    def explain(self) -> str:
        """Return why the run that has just failed did so, in a sentence; empty if only the driver's words are known.

        The servo asks once the device is closed.
        """
        ...


@runtime_checkable
class Device(Protocol):
    """What the servo needs of a device; see `Compensating`, `Telling` and `Explaining` for what it may have besides.

    Building a device touches no hardware, so that `spec` can be checked first. ``open`` and ``close`` may be
    called twice. ``read`` and ``write`` never block for longer than a small part of a period.
    """

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet; known before the device is opened."""
        ...

    def open(self) -> None:
        """Connect and energise; raise `DeviceNotFoundError` or `DeviceOpenError` with the remedy."""
        ...

    def read(self) -> State:
        """Return the newest sample; raise `DeviceFault` when there will be no more."""
        ...

    def write(self, command: Vector) -> None:
        """Take a command: the force on the handle [N] (impedance) or the position reference [m] (admittance)."""
        ...

    def close(self) -> None:
        """Leave the device without force (impedance) or holding its position (admittance) and disconnect."""
        ...
