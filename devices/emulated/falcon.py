"""Driver of the Falcon connected to an emulated Falcon in a separate process (`devices.emulators.falcon`)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from devices.common.plane import Plane
from devices.emulated.settings import EmulationSettings, too_busy
from devices.emulators import child, falcon_guardian
from devices.emulators.handle import SAG
from devices.emulators.loop import LINGER
from devices.emulators.usb_remote import RemoteBackend
from devices.emulators.wire_faults import FALCON_FAULTS
from devices.falcon import guardian, wire
from devices.falcon.device import Falcon, FalconSettings
from devices.falcon.kinematics import HALF
from haptics.settings import bounded, choice, documented

EMULATED_LOG = "emulated_falcon.json"
"""Log file of the emulated Falcon's final state, next to the log of commands."""

_STATES = ("switched on", "loaded", "homed")


@documented
@dataclass(frozen=True)
class EmulatedFalconSettings(EmulationSettings, FalconSettings):
    """Settings of an emulated Falcon: settings of the driver and `EmulationSettings`.

    ``mass`` and ``damping`` describe the emulated device; its hand moves in the plane. Fault times count from the first
    force.
    """

    NOUN: ClassVar[str] = "Falcon"

    state: str = choice("loaded", _STATES, doc="state of the emulated Falcon before the driver opens it")
    sag: float = bounded(
        SAG, minimum=-8.0, maximum=8.0, unit="N", doc="force of the emulated hand against the third axis"
    )
    true_scale: float = bounded(
        0.0,
        minimum=0.0,
        maximum=100000.0,
        unit="1/(N m)",
        doc="motor number per torque of the emulated Falcon; 0 for motor_scale, as after a perfect calibration",
    )

    def __post_init__(self) -> None:
        FalconSettings.__post_init__(self)
        self.check_emulation(FALCON_FAULTS)

    @property
    def identity(self) -> str:
        """Identification of the device, for display."""
        return f"emulated {self.serial or 'Falcon'}"


class EmulatedFalcon(Falcon):
    """Driver with an emulated Falcon, which exists from ``open`` on; see `Falcon`."""

    settings_class = EmulatedFalconSettings
    settings: EmulatedFalconSettings
    _address = ""
    _lost = 0.0

    def explain(self) -> str:
        """Return an explanation if the emulator was starved before it closed; see `haptics.device.Device`."""
        return too_busy(self.settings.NOUN, self._lost)

    def _bus(self, resources: contextlib.ExitStack) -> Any:
        own, plane = self.settings, Plane.of(self.settings)
        across, along = self.spec.workspace_max
        table = {name: getattr(own, name) for name in ("hand", "seed", "mass", "damping", "sag", "state")}
        table |= {
            "axes": plane.axes.tolist(),
            "middle": plane.middle.tolist(),
            "room": (across, along, min(HALF)),
            "scale": own.true_scale or own.motor_scale,
            "serial": own.serial or "EMULATED",
            "faults": list(own.wire_faults),
            "log": str(Path(own.log).with_name(EMULATED_LOG)) if own.log else "",
        }
        farewell = LINGER + child.FAREWELL
        self._address = resources.enter_context(child.spawn("devices.emulators.falcon", table, "Falcon", farewell))
        backend = self.backend = RemoteBackend(self._address)

        def record_stall() -> None:  # after the motors are off, and before the emulator ends
            with contextlib.suppress(OSError):  # a terminated emulator is a failure
                self._lost = 0.0 if own.wire_faults else backend.stalled()

        resources.callback(record_stall)
        return backend

    def _guardian(self, line: wire.FalconLine) -> tuple[str, list[str]]:
        zero = wire.encode((0, 0, 0), wire.RED | wire.HOMING).hex()
        return falcon_guardian.__file__, [self._address, zero, guardian.__file__]
