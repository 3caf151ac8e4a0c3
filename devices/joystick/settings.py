"""What a person can choose about a force-feedback stick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devices.common.compensation import CompensationSettings
from devices.common.friction import parse_friction
from devices.common.velocity import VelocitySettings, check_velocity
from devices.emulators.pid.faults import WIRE_FAULTS
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.wire_faults import ALLOWED, check_wire_faults
from devices.joystick.usb.finding import TRANSPORTS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, free

EMULATORS = tuple(PROFILES)
LONGEST = 0.25
"""A force of a host that has died must not stay for longer [s]."""


@dataclass(frozen=True)
class StickSettings(CompensationSettings, VelocitySettings):
    """Settings of a stick, besides those of the velocity estimator and of `CompensationSettings`.

    Attributes
    ----------
    parameters : str
        The parameter file that calibrating the stick has made; an emulated stick has its own.
    serial : str
        Serial number of the stick, where several are plugged in.
    transport : str
        ``usb`` (libusb), ``hidraw`` (Linux) or ``auto``: hidraw where libusb does not do.
    force_duration : float
        After this long without a restart the device itself ends the force [s].
    keep_alive : float
        How often the force is started anew, and how long a command counts [s].
    emulated : bool
        Whether the driver talks to an emulated stick.
    emulator : str
        Which one.
    wire_faults : sequence of str
        What goes wrong on its bus and when (`devices.emulators.pid.faults`), from the time the stick is opened.
    friction : mapping or None
        Dry friction of an emulated stick: tables ``x`` and ``y`` of `devices.common.friction.AxisFriction`.
    seed : int
        Decides everything random about an emulated stick and its hand.
    period : float
        Period of a tick where there is no clock [s].
    log : str
        File for the log of commands (`devices.common.log`); empty for none.
    """

    parameters: str = free("", "a file", "parameter file of the stick, from haptics calibrate joystick")
    serial: str = free("", "text", "serial number of the stick, where several are plugged in")
    transport: str = choice("auto", TRANSPORTS, "how to reach the stick")
    force_duration: float = bounded(
        0.2, minimum=0.02, maximum=LONGEST, unit="s", doc="the device ends a force by itself"
    )
    keep_alive: float = bounded(
        0.05, minimum=0.01, maximum=LONGEST / 2.0, unit="s", doc="how often a force is started anew"
    )
    emulated: bool = free(False, "true or false", "whether the driver talks to an emulated stick")
    emulator: str = choice("openffboard", EMULATORS, "which stick is emulated")
    wire_faults: tuple[str, ...] = free((), ALLOWED, "faults of the emulated wire, on demand")
    friction: Any = free(None, "tables x and y of levels [N]", "own dry friction, emulated only")
    seed: int = bounded(0, minimum=0, maximum=2**62, doc="seed of everything random, emulated only")
    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick without a clock")
    log: str = free("", "a file", "where to log what was commanded and when")

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        for name in ("parameters", "serial", "log"):
            if not isinstance(getattr(self, name), str):
                raise ConfigurationError(f"device.{name} = {getattr(self, name)!r}: must be text.")
        if not isinstance(self.seed, int):
            raise ConfigurationError(f"device.seed = {self.seed!r}: must be a whole number of at least 0.")
        if self.keep_alive > 0.5 * self.force_duration:
            raise ConfigurationError(
                f"device.keep_alive = {self.keep_alive:g} s: must be at most half of device.force_duration = "
                f"{self.force_duration:g} s, or the force would end in between."
            )
        check_wire_faults(self.wire_faults, self.emulated, "stick", WIRE_FAULTS)
        if parse_friction(self.friction) is not None and not self.emulated:
            raise ConfigurationError("device.friction: only an emulated stick can be given friction of its own.")
        if self.emulated and self.transport == "hidraw":
            raise ConfigurationError("device.transport = 'hidraw': an emulated stick is on an emulated USB only.")
