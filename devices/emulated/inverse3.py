"""Driver of the Inverse3 connected to an emulated service in a separate process.

The service is in `devices.emulators.inverse3`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from devices.emulated.settings import EmulationSettings
from devices.emulators import child
from devices.emulators.wire_faults import INVERSE3_FAULTS
from devices.inverse3.device import Inverse3, Inverse3Settings
from devices.inverse3.websocket import Address, parse_address
from haptics.settings import documented

_DEVICE_ID = "049D"


@documented
@dataclass(frozen=True)
class EmulatedInverse3Settings(EmulationSettings, Inverse3Settings):
    """Settings of an emulated Inverse3: settings of the driver and `EmulationSettings`.

    ``kind``, ``mass`` and ``damping`` describe the emulated device; its hand moves in the ``plane``. The ``address`` is
    chosen by the emulator.
    """

    NOUN: ClassVar[str] = "Inverse3"

    def __post_init__(self) -> None:
        Inverse3Settings.__post_init__(self)
        self.check_emulation(INVERSE3_FAULTS)

    @property
    def identity(self) -> str:
        """Identification of the device, for display."""
        return f"emulated {self.device_id or _DEVICE_ID}"


class EmulatedInverse3(Inverse3):
    """Driver with an emulated service, which exists from ``open`` on; see `Inverse3`."""

    settings_class = EmulatedInverse3Settings
    settings: EmulatedInverse3Settings

    def _far_end(self, resources: contextlib.ExitStack) -> Address:
        own = self.settings
        table = {name: getattr(own, name) for name in ("kind", "plane", "hand", "seed", "mass", "damping")}
        table |= {"device_id": own.device_id or _DEVICE_ID, "faults": list(own.wire_faults)}
        return parse_address(resources.enter_context(child.spawn("devices.emulators.inverse3", table, "service")))
