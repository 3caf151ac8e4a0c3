"""Driver of a Force Dimension device with an emulated library and device.

They are in `devices.emulators.forcedimension`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from devices.common.plane import Plane
from devices.emulated.maker_library import MakerLibraryEmulation
from devices.emulated.settings import EmulationSettings
from devices.emulators import forcedimension
from devices.emulators.wire_faults import FORCE_DIMENSION_FAULTS
from devices.forcedimension.device import KINDS, LONGEST_WATCHDOG, TYPES, ForceDimension, ForceDimensionSettings
from haptics.settings import bounded, documented, flag

_SERIAL = "1234"


@documented
@dataclass(frozen=True)
class EmulatedForceDimensionSettings(EmulationSettings, ForceDimensionSettings):
    """Settings of an emulated Force Dimension device: settings of the driver and `EmulationSettings`.

    ``kind``, ``mass``, ``damping`` and ``resolution`` describe the emulated device; its hand moves in the plane. The
    ``library`` is chosen by the emulator.
    """

    NOUN: ClassVar[str] = "Force Dimension device"

    hardware_watchdog: float = bounded(
        0.0,
        minimum=0.0,
        maximum=LONGEST_WATCHDOG,
        unit="s",
        doc="time without a force after which the emulated device switches off; a busy machine would trip it",
    )
    cold_start: bool = flag(False, doc="the emulated device was just switched on, and is not initialised")

    def __post_init__(self) -> None:
        ForceDimensionSettings.__post_init__(self)
        self.check_emulation(FORCE_DIMENSION_FAULTS)

    @property
    def identity(self) -> str:
        """Identification of the device, for display."""
        return f"emulated {self.kind} {self.serial or _SERIAL}"


class EmulatedForceDimension(MakerLibraryEmulation, ForceDimension):
    """Driver with an emulated library and device, which exist from ``open`` on; see `ForceDimension`."""

    settings_class = EmulatedForceDimensionSettings
    settings: EmulatedForceDimensionSettings

    def _library(self, resources: contextlib.ExitStack) -> str:
        own, plane, kind = self.settings, Plane.of(self.settings), KINDS[self.settings.kind]
        across, along = plane.extent(kind.half)
        device = {
            "name": own.serial or _SERIAL,
            "kind": next(number for number, family in TYPES.items() if family == own.kind),
            "axes": plane.axes.ravel().tolist(),
            "middle": plane.middle.tolist(),
            "half_width": 1.1 * across,
            "half_height": 1.1 * along,
            "room": 1.1 * max(kind.half),
            "count": own.resolution,
            "most_force": kind.max_force,
            "homed": not own.cold_start,
            **{name: getattr(own, name) for name in ("mass", "damping", "hand", "seed")},
        }
        return self._run_device(resources, forcedimension.__name__, forcedimension.MAKER, device)
