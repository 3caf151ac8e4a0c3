"""Settings of an ODrive and its two motors."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, string

WHERE = "device.motors"
"""Name of this settings table."""

AUTOMATIC, TEXT, NATIVE, CAN = "auto", "text", "native", "can"

GEAR = "turns of the motor per turn of the joint, negative if it turns the other way"


@dataclass(frozen=True)
class DriveGains:
    """Gains of an ODrive's axis: position error to speed, speed error to torque.

    Attributes
    ----------
    position : float
        Speed per position error [1/s].
    speed : float
        Torque per speed error [N m s/turn].
    integrator : float
        Rate of the torque per speed error [N m/turn].
    """

    position: float
    speed: float
    integrator: float


@dataclass(frozen=True)
class Demands:
    """Requirements of an arm on its motors; 0 where unknown.

    Attributes
    ----------
    torque : float
        Maximum torque at a motor's shaft [N m].
    speeds : (float, float)
        Maximum speed of each motor [turn/s].
    torque_setting, speed_setting : str
        Settings from which they follow, for messages.
    """

    torque: float = 0.0
    speeds: tuple[float, float] = (0.0, 0.0)
    torque_setting: str = ""
    speed_setting: str = ""


@documented
@dataclass(frozen=True)
class OdriveSettings:
    """Settings of a motor stage with an ODrive; where 0 is allowed, it keeps the drive's own value."""

    serial: str = string("", doc="serial number of the drive, hexadecimal, if several are plugged in")
    reduction_1: float = bounded(1.0, minimum=-1000.0, maximum=1000.0, doc=GEAR)
    reduction_2: float = bounded(1.0, minimum=-1000.0, maximum=1000.0, doc=GEAR)
    watchdog: float = bounded(
        0.1, minimum=0.02, maximum=1.0, unit="s", doc="time without a command after which the drive disables its motors"
    )
    reply_timeout: float = bounded(0.03, minimum=0.002, maximum=0.5, unit="s", doc="timeout of a reply")
    min_voltage: float = bounded(10.0, minimum=8.0, maximum=56.0, unit="V", doc="lowest voltage of the supply")
    max_voltage: float = bounded(56.0, minimum=8.0, maximum=60.0, unit="V", doc="highest voltage of the supply")
    speed_limit: float = bounded(
        0.0,
        minimum=0.0,
        maximum=200.0,
        unit="turn/s",
        doc="speed limit; a drive with default settings disables motors at 1.2 times it",
    )
    position_gain: float = bounded(0.0, minimum=0.0, maximum=1000.0, unit="1/s", doc="speed per error of the position")
    speed_gain: float = bounded(0.0, minimum=0.0, maximum=100.0, unit="N m s/turn", doc="torque per error of the speed")
    integrator_gain: float = bounded(
        -1.0, minimum=-1.0, maximum=1000.0, unit="N m/turn", doc="torque rate per speed error; negative to keep it"
    )
    protocol: str = choice(
        AUTOMATIC,
        (AUTOMATIC, TEXT, NATIVE, CAN),
        doc="transfer of commands and samples while the motors are armed: lines of text at the drive's serial port on "
        "USB (one transfer each way), by its native protocol (about fifteen), as text where the drive answers it; or "
        "all of it on a CAN bus (ODrive with firmware 0.5, Pro, S1)",
    )
    interface: str = string("can0", doc="with can: name of the CAN interface")
    node_1: int = bounded(0, minimum=0, maximum=63, doc="with can: node of the first motor")
    node_2: int = bounded(1, minimum=0, maximum=63, doc="with can: node of the second motor")
    clear_errors: bool = flag(
        False, doc="whether to clear errors of earlier runs; expired watchdogs are always cleared"
    )

    def __post_init__(self) -> None:
        check(self, WHERE)
        for name in ("reduction_1", "reduction_2"):
            if getattr(self, name) == 0.0:
                raise ConfigurationError(f"{WHERE}.{name} = 0.0: must not be 0; it is the {GEAR}.")
        if self.min_voltage >= self.max_voltage:
            raise ConfigurationError(
                f"{WHERE}.min_voltage = {self.min_voltage:g} V: must be less than {WHERE}.max_voltage = "
                f"{self.max_voltage:g} V."
            )
        if self.protocol != CAN:
            return
        if self.node_1 == self.node_2:
            raise ConfigurationError(f"{WHERE}.node_2 = {self.node_2}: must not be that of the first motor.")
        if not self.interface:
            raise ConfigurationError(f"{WHERE}.interface = '': must be the name of a CAN interface, such as can0.")
        if self.serial:
            raise ConfigurationError(
                f"{WHERE}.serial = {self.serial!r}: a drive on CAN is known by its nodes, {WHERE}.node_1 and node_2."
            )
        if self.speed_limit > 0.0:
            raise ConfigurationError(
                f"{WHERE}.speed_limit = {self.speed_limit:g} turn/s: CAN sets it only together with the limit of the "
                "current; set it in the drive, with odrivetool: odrv0.axis0.controller.config.vel_limit."
            )
        if (self.speed_gain > 0.0) != (self.integrator_gain >= 0.0):
            raise ConfigurationError(
                f"{WHERE}.speed_gain and integrator_gain: CAN sets both together; give both, or neither."
            )

    def gains(self, drive_gains: DriveGains | None = None) -> DriveGains | None:
        """Return the gains of both axes, from the settings or the drive (`drive_gains`); None if one is unknown."""
        given = {
            "position": self.position_gain if self.position_gain > 0.0 else None,
            "speed": self.speed_gain if self.speed_gain > 0.0 else None,
            "integrator": self.integrator_gain if self.integrator_gain >= 0.0 else None,
        }
        known = {} if drive_gains is None else asdict(drive_gains)
        known |= {name: value for name, value in given.items() if value is not None}
        return DriveGains(**known) if len(known) == len(given) else None
