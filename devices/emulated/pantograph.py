"""Driver of the pantograph connected to an emulated board in a separate process.

The board is in `devices.emulators.hapi`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from devices.emulated.settings import EmulationSettings
from devices.emulators import child
from devices.emulators.wire_faults import HAPI_FAULTS
from devices.pantograph.device import Pantograph, PantographSettings
from haptics.errors import ConfigurationError
from haptics.settings import documented

_REACTION = 10
"""Number of readings after homing for which the emulated operator still holds the arms."""


@documented
@dataclass(frozen=True)
class EmulatedPantographSettings(EmulationSettings, PantographSettings):
    """Settings of an emulated pantograph: settings of the driver and `EmulationSettings`.

    ``mass`` and ``damping`` describe the emulated handle. The emulated operator holds the arms until they are homed.
    """

    NOUN: ClassVar[str] = "pantograph"
    held = True
    identity = "emulated"

    def __post_init__(self) -> None:
        PantographSettings.__post_init__(self)
        self.check_emulation(HAPI_FAULTS)
        if self.emulated and self.port:
            raise ConfigurationError(f"device.port = {self.port!r}: an emulated board brings its own; leave it out.")


class EmulatedPantograph(Pantograph):
    """Driver with an emulated board, which exists from ``open`` on; see `Pantograph`."""

    settings_class = EmulatedPantographSettings
    settings: EmulatedPantographSettings

    def _far_end(self, resources: contextlib.ExitStack) -> str:
        own = self.settings
        table = {name: getattr(own, name) for name in ("mechanism", "hand", "seed", "mass", "damping")}
        table |= {"held": own.home_readings + _REACTION, "faults": list(own.wire_faults)}
        return resources.enter_context(child.spawn("devices.emulators.hapi", table, "board"))
