"""What a person can choose about the pantograph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devices.common.compensation import CompensationSettings
from devices.common.velocity import VelocitySettings, check_velocity
from devices.emulators.hapi.faults import WIRE_FAULTS
from devices.emulators.wire_faults import ALLOWED, check_wire_faults
from devices.pantograph.mechanisms import MECHANISMS, Mechanism
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, free


@dataclass(frozen=True)
class PantographSettings(CompensationSettings, VelocitySettings):
    """Settings of the pantograph, besides those of the velocity estimator and of `CompensationSettings`.

    Attributes
    ----------
    mechanism : str
        A key of `devices.pantograph.mechanisms.MECHANISMS`.
    port : str
        Serial port; empty to look for the board.
    at_home : bool
        The person's word that the arms are held at their home pose.
    hold : float
        How long they are watched there [s].
    homing_timeout : float
        How long the person may take to bring the handle into the workspace then [s].
    watchdog : float
        After this long without a command the torques are taken away [s].
    keep_alive : float
        The last command is repeated after this long without a new one [s].
    reply_timeout : float
        How long an answer may take before the board counts as out of step [s].
    resyncs : int
        How often it may get out of step in a run.
    round_trip : float
        Time an exchange is expected to take [s]; for advice on parameters.
    mass, damping : float
        Moving mass at the handle [kg] and its own friction [N s/m]; for advice, and those of the emulated handle.
    emulated : bool
        Whether to start an emulated board in place of a real one.
    wire_faults : sequence of str
        What goes wrong on its wire and when (`devices.emulators.hapi.faults`).
    hand : table
        The hand on the emulated handle (`devices.virtual.hands.registry`).
    seed : int
        Decides everything random about that hand.
    period : float
        Period of a tick where there is no clock [s].
    log : str
        File for the log of commands (`devices.common.log`); empty for none.
    """

    mechanism: str = choice("gen-1", MECHANISMS, doc="which pantograph is on the board")
    port: str = free("", "a serial port such as /dev/ttyACM0", "serial port; empty to look for the board")
    at_home: bool = free(False, "true or false", "your word that the arms are held at their home pose")
    hold: float = bounded(0.2, minimum=0.05, maximum=10.0, unit="s", doc="how long the arms are watched at home")
    homing_timeout: float = bounded(
        30.0, minimum=0.1, maximum=600.0, unit="s", doc="time to bring the handle into the workspace"
    )
    watchdog: float = bounded(0.1, minimum=0.02, maximum=1.0, unit="s", doc="no torque after so long without a command")
    keep_alive: float = bounded(2e-3, minimum=2e-4, maximum=0.01, unit="s", doc="repeat a command after so long")
    reply_timeout: float = bounded(0.05, minimum=5e-3, maximum=0.5, unit="s", doc="longest time to wait for an answer")
    resyncs: int = bounded(3, minimum=0, maximum=1000, doc="how often the board may get out of step")
    round_trip: float = bounded(1e-3, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange")
    mass: float = bounded(0.1, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle")
    damping: float = bounded(0.5, minimum=0.0, maximum=20.0, unit="N s/m", doc="own friction at the handle")
    emulated: bool = free(False, "true or false", "whether to use an emulated board")
    wire_faults: tuple[str, ...] = free((), ALLOWED, "faults of the emulated wire, on demand")
    hand: Any = free(None, "a table", "the hand on the emulated handle")
    seed: int = bounded(0, minimum=0, maximum=2**62, doc="seed of everything random about that hand")
    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick without a clock")
    log: str = free("", "a file", "where to log what was commanded and when")

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        for name in ("resyncs", "seed"):
            if not isinstance(getattr(self, name), int):
                raise ConfigurationError(f"device.{name} = {getattr(self, name)!r}: must be a whole number.")
        if self.reply_timeout > 0.5 * self.watchdog:
            raise ConfigurationError(
                f"device.reply_timeout = {self.reply_timeout:g} s: must be at most half of device.watchdog = "
                f"{self.watchdog:g} s, so that a late answer is not taken for the end of the driver."
            )
        check_wire_faults(self.wire_faults, self.emulated, "pantograph", WIRE_FAULTS)
        if not self.emulated and self.hand is not None:
            raise ConfigurationError("device.hand: only an emulated pantograph has a hand; add device.emulated=true.")
        if self.emulated and self.port:
            raise ConfigurationError(f"device.port = {self.port!r}: an emulated board brings its own; leave it out.")

    @property
    def geometry(self) -> Mechanism:
        """The mechanism itself."""
        return MECHANISMS[self.mechanism]
