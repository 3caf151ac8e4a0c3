"""Driver of force-feedback sticks connected to an emulated stick (`devices.emulators.pid`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from devices.common.friction import parse_friction
from devices.common.settings import Workspace
from devices.emulated.settings import EmulationSettings
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import EmulatedUsbBackend, emulated_stick
from devices.emulators.wire_faults import STICK_FAULTS
from devices.joystick.device import PidJoystick, StickSettings
from devices.joystick.parameters import StickParameters, build_parameters
from devices.virtual.hands.registry import make_hand
from haptics.errors import ConfigurationError
from haptics.settings import choice, documented, unrestricted


@documented
@dataclass(frozen=True)
class EmulatedStickSettings(EmulationSettings, StickSettings):
    """Settings of an emulated stick: settings of the driver and `EmulationSettings`.

    Fault times count from the opening of the stick.
    """

    NOUN: ClassVar[str] = "stick"

    emulator: str = choice("openffboard", PROFILES, doc="type of the emulated stick")
    friction: Any = unrestricted(
        None, "tables x and y of levels [N]", doc="dry friction of the emulated device, by axis and direction"
    )

    def __post_init__(self) -> None:
        StickSettings.__post_init__(self)
        self.check_emulation(STICK_FAULTS)
        if parse_friction(self.friction) is not None and not self.emulated:
            raise ConfigurationError("device.friction: only an emulated stick can be given friction of its own.")
        if self.emulated and self.transport == "hidraw":
            raise ConfigurationError("device.transport = 'hidraw': an emulated stick is on an emulated USB only.")

    def plug_in(self, hand: Any = None) -> EmulatedUsbBackend:
        """Return a bus with the stick, whose time starts now; `hand` replaces the hand of the settings."""
        return emulated_stick(
            self.emulator,
            hand=self.hand if hand is None else hand,
            seed=self.seed,
            serial=self.serial or None,
            faults=self.wire_faults,
            friction=self.friction,
        )


class EmulatedPidJoystick(PidJoystick):
    """Driver with an emulated stick, which exists from ``open`` on; see `PidJoystick`.

    Without a parameter file it uses the true parameters, as from a perfect calibration.
    """

    settings_class = EmulatedStickSettings
    settings: EmulatedStickSettings

    def _known(self) -> StickParameters:
        own = self.settings
        known = super()._known() or build_parameters(PROFILES[own.emulator].truths(own.serial or None))
        axes = known.axes
        # raises for an invalid hand
        make_hand(own.hand, own.seed, Workspace(axes.workspace_min_m, axes.workspace_max_m))
        return known

    @property
    def _identity(self) -> str:
        return f"emulated {super()._identity}"

    def _bus(self) -> Any:
        if self.backend is None:
            self.backend = self.settings.plug_in()
        return self.backend
