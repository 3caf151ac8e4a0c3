"""Driver of the Touch with an emulated library and device, which run in C (`devices.emulators.touch`)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from devices.common.plane import Plane
from devices.emulated.maker_library import MakerLibraryEmulation
from devices.emulated.settings import EmulationSettings
from devices.emulators import touch
from devices.emulators.wire_faults import TOUCH_FAULTS
from devices.touch.device import MODELS, Touch, TouchSettings
from haptics.settings import documented

_NAME = "emulated"
_ROOM = 0.02  # largest distance of the hand from the plane [m]


@documented
@dataclass(frozen=True)
class EmulatedTouchSettings(EmulationSettings, TouchSettings):
    """Settings of an emulated Touch: settings of the driver and `EmulationSettings`.

    ``mass``, ``damping`` and ``resolution`` describe the emulated device; its hand moves in the plane. The ``library``
    is the emulated one.
    """

    NOUN: ClassVar[str] = "Touch"

    def __post_init__(self) -> None:
        TouchSettings.__post_init__(self)
        self.check_emulation(TOUCH_FAULTS)

    @property
    def identity(self) -> str:
        """Identification of the device, for display."""
        return f"emulated {self.configuration}".rstrip()


class EmulatedTouch(MakerLibraryEmulation, Touch):
    """Driver with an emulated library, whose device exists from ``open`` on; see `Touch`."""

    settings_class = EmulatedTouchSettings
    settings: EmulatedTouchSettings

    def _library(self, resources: contextlib.ExitStack) -> str:
        own, plane = self.settings, Plane.of(self.settings)
        width, height = plane.extent(MODELS[own.model])
        body = {
            "name": own.configuration or _NAME,
            "axes": plane.axes.ravel().tolist(),
            "middle": plane.middle.tolist(),
            "half_width": width,
            "half_height": height,
            "room": _ROOM,
            "mass": own.mass,
            "damping": own.damping,
            "hand": own.hand,
            "seed": own.seed,
            "count": own.resolution,
            "homed": False,
        }
        return self._run_device(resources, touch.__name__, touch.MAKER, body)
