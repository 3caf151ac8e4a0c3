"""Settings of the pantograph."""

from __future__ import annotations

from dataclasses import dataclass

from devices.common.compensation import CompensationSettings
from devices.common.settings import RunSettings, VelocitySettings, check_velocity
from devices.pantograph.mechanisms import MECHANISMS, Mechanism
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, string


@documented
@dataclass(frozen=True)
class PantographSettings(RunSettings, CompensationSettings, VelocitySettings):
    """Settings of the pantograph.

    They extend `RunSettings`, `CompensationSettings` and `VelocitySettings`.
    """

    mechanism: str = choice("gen-1", MECHANISMS, doc="which pantograph is on the board")
    port: str = string("", allowed="a serial port such as /dev/ttyACM0", doc="serial port; empty to look for the board")
    at_home: bool = flag(False, doc="your word that the arms are held at their home pose")
    hold: float = bounded(0.2, minimum=0.05, maximum=10.0, unit="s", doc="how long the arms are watched at home")
    homing_timeout: float = bounded(
        30.0, minimum=0.1, maximum=600.0, unit="s", doc="time to bring the handle into the workspace"
    )
    watchdog: float = bounded(0.1, minimum=0.02, maximum=1.0, unit="s", doc="no torque after so long without a command")
    keep_alive: float = bounded(
        2e-3, minimum=2e-4, maximum=0.01, unit="s", doc="the last command is repeated after this long without a new one"
    )
    reply_timeout: float = bounded(
        0.05, minimum=5e-3, maximum=0.5, unit="s", doc="after this long without an answer it is out of step"
    )
    resyncs: int = bounded(3, minimum=0, maximum=1000, doc="how often the board may get out of step in a run")
    round_trip: float = bounded(
        1e-3, above=0.0, maximum=0.1, unit="s", doc="expected time of an exchange, for advice on parameters"
    )
    mass: float = bounded(
        0.1, minimum=0.05, maximum=5.0, unit="kg", doc="moving mass at the handle, for advice and emulation"
    )
    damping: float = bounded(
        0.5, minimum=0.0, maximum=20.0, unit="N s/m", doc="own friction at the handle, for advice and emulation"
    )

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        if self.reply_timeout > 0.5 * self.watchdog:
            raise ConfigurationError(
                f"device.reply_timeout = {self.reply_timeout:g} s: must be at most half of device.watchdog = "
                f"{self.watchdog:g} s, so that a late answer is not taken for the end of the driver."
            )

    @property
    def held(self) -> bool:
        """Whether the user confirmed that the arms are held at their home pose."""
        return self.at_home

    @property
    def identity(self) -> str:
        """Identity of the board for messages."""
        return self.port or "the only board"

    @property
    def geometry(self) -> Mechanism:
        """Mechanism selected by name."""
        return MECHANISMS[self.mechanism]
