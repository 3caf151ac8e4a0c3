"""Driver of the arm connected to an emulated arm, drive and force sensor (`devices.emulators.arm`)."""

from __future__ import annotations

import contextlib
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from devices.arm.device import Arm, ArmSettings
from devices.arm.motors.settings import CAN, DriveGains
from devices.emulated.settings import EmulationSettings, too_busy
from devices.emulators import child
from devices.emulators.arm import gains_for
from devices.emulators.loop import LINGER
from devices.emulators.odrive import packets
from devices.emulators.odrive.remote import RemotePort
from devices.emulators.optoforce import SENSITIVITY
from devices.emulators.usb_remote import RemoteBackend
from devices.emulators.wire_faults import arm_faults
from devices.virtual.hands.registry import make_hand
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.settings import documented

EMULATED_LOG = "emulated_arm.json"
"""Log file of the emulated drive's final motor state, next to the log of commands."""


@documented
@dataclass(frozen=True)
class EmulatedArmSettings(EmulationSettings, ArmSettings):
    """Settings of an emulated arm: `EmulationSettings` and the driver's settings, which define the arm."""

    NOUN: ClassVar[str] = "arm"
    held = True
    identity = "emulated"

    def __post_init__(self) -> None:
        ArmSettings.__post_init__(self)
        self.check_emulation(arm_faults(self.sensor_name))

    @property
    def home(self) -> tuple[float, float]:
        """Start position of the hand [m], where its operator holds the end effector."""
        return make_hand(self.hand, self.seed, self.workspace).start

    @property
    def drive_gains(self) -> DriveGains | None:
        """Gains of the drive, with the emulated drive's gains as defaults."""
        return self.motor_settings.gains(gains_for(self.body) if self.emulated else None)

    @property
    def sensor_table(self) -> dict[str, Any]:
        """Settings table of the sensor; an emulated OptoForce sensor has its own sensitivity."""
        table = super().sensor_table
        if self.emulated and self.sensor_name == "optoforce":
            table.setdefault("sensitivity", SENSITIVITY)
        return table

    @property
    def emulation(self) -> dict[str, Any]:
        """Parameters of the emulated arm (`devices.emulators.arm.emulator`)."""
        motors, table = self.motor_settings, self.sensor_table
        return {
            "arm": dict(self.arm or {}),
            "ratios": (motors.reduction_1, motors.reduction_2),
            "fastest": max(self.demands.speeds),
            "watchdog": motors.watchdog if motors.protocol == CAN else 0.0,
            **{name: getattr(self, name) for name in ("half_width", "half_height", "hand", "seed")},
            "sensor": table,
            "mounting": {name: table[name] for name in ("rotation", "handle_centre") if name in table},
            "faults": list(self.wire_faults),
            "log": str(Path(self.log).with_name(EMULATED_LOG)) if self.log else "",
        }


class EmulatedArm(Arm):
    """Driver with an emulated arm, whose operator holds it at the start position of the hand; see `Arm`."""

    settings_class = EmulatedArmSettings
    settings: EmulatedArmSettings
    _emulator: RemoteBackend | None = None
    _lost = 0.0

    def open(self) -> None:
        """Start the emulated arm and connect to it; see `Arm.open`."""
        try:
            super().open()
        except (DeviceFault, DeviceOpenError) as error:
            words = too_busy("arm", self._starved())
            if not words:
                raise
            raise type(error)(words) from error

    def _fault_error(self, fault: int) -> DeviceFault:
        """Return the error for `fault`, or a starved emulator as its cause."""
        words = too_busy("arm", self._starved())
        return DeviceFault(words) if words else super()._fault_error(fault)

    def explain(self) -> str:
        """Return an explanation if the emulator was starved before it closed; see `haptics.device.Device`."""
        return too_busy("arm", self._lost)

    def _starved(self) -> float:
        """Return the time for which the emulator was not executed recently [s]; 0 with faults on demand."""
        if self._emulator is None or self.settings.wire_faults:
            return 0.0
        try:
            return self._emulator.stalled()
        except OSError:  # a terminated emulator is a failure
            return 0.0

    def _far_end(self, resources: contextlib.ExitStack) -> tuple[Any, dict[str, Any]]:
        own = self.settings
        farewell = LINGER + child.FAREWELL
        words = resources.enter_context(child.spawn("devices.emulators.arm", own.emulation, "arm", farewell))
        address, _, located = words.partition(" ")
        self._emulator = RemoteBackend(address)

        def record_stall() -> None:  # after the motors are disarmed, and before the emulator ends
            self._lost = self._starved()

        resources.callback(record_stall)
        on_can = own.motor_settings.protocol == CAN
        far_end = functools.partial(RemotePort, packets.can_of(address)) if on_can else self._emulator
        return far_end, own.sensor_table | json.loads(located)
