"""The driver of the arm in front of an emulated one in the same process, and what its tests share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from devices.arm.device import Arm
from devices.arm.motors import OdriveStage
from devices.arm.sensors.choosing import make_sensor
from devices.arm.sensors.force_sensor import ForceSensor
from devices.emulators.arm import sensors
from devices.emulators.arm.board import ArmBoard
from devices.emulators.arm.faults import MOTORS, SENSOR, of_part, sensor_faults
from devices.emulators.arm.plant import ArmPlant
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from devices.emulators.wire_faults import WireFaults
from devices.virtual.wrench import WrenchSettings
from haptics.clock import WallClock
from haptics.device import State, Vector
from haptics.errors import DeviceFault

PERIOD = 1e-3
LONG = 20.0
"""Patience with a busy machine [s]."""

PATIENT: dict[str, dict[str, Any]] = {
    "motors": {"watchdog": 0.8, "reply_timeout": 0.4},
    "sensor": {"patience": 0.5},
}
"""Settings with which a busy machine is no fault."""

STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""A hand that lies on the handle and does nothing."""


def settings(make: str = "ati", **own: Any) -> dict[str, Any]:
    """Settings of an emulated arm with a sensor of this make, patient ones."""
    parts = {name: {**PATIENT[name], **own.pop(name, {})} for name in ("motors", "sensor")}
    parts["sensor"]["name"] = make
    return {"emulated": True, "hand": STILL, **parts, **own}


class ArmHere(Arm):
    """An emulated arm whose drive and sensor are served by threads of this process."""

    board: ArmBoard
    sensor_faults: WireFaults

    def _connect(self, resources: contextlib.ExitStack) -> tuple[OdriveStage, ForceSensor]:
        told, body = self.settings.emulation, self.settings.body
        name = told["sensor"]["name"]
        plant = ArmPlant(
            body,
            told["ratios"],
            self.settings.workspace,
            told["hand"],
            told["seed"],
            WrenchSettings(**told["mounting"]),
        )
        self.sensor_faults = WireFaults(sensor_faults(name), of_part(SENSOR, told["faults"]))
        self.board = ArmBoard(plant, body, of_part(MOTORS, told["faults"]), self.sensor_faults)
        box, found = sensors.make_sensor(name, told["sensor"], self.board.wrench, self.board.sensor_faults)
        resources.enter_context(box)
        stage = OdriveStage(self.settings.motor_table, period=PERIOD, backend=EmulatedOdriveBackend(self.board))
        return stage, make_sensor(told["sensor"] | found)

    @property
    def plant(self) -> ArmPlant:
        return self.board.plant


@contextlib.contextmanager
def opened(make: str = "ati", **own: Any) -> Iterator[ArmHere]:
    """An open arm; closed at the end whatever has become of it."""
    arm = ArmHere(settings(make, **own), clock=WallClock(PERIOD))
    arm.open()
    try:
        yield arm
    finally:
        arm.board.faults.clear()
        with contextlib.suppress(DeviceFault):
            arm.close()


def run(arm: Arm, duration: float, command: Callable[[float], Vector] | None = None) -> list[State]:
    """Tick for a while, holding where the arm is if there is no command; return copies of the samples."""
    start, samples, hold = time.perf_counter(), [], arm.read().position.copy()
    while (now := time.perf_counter() - start) < duration:
        state = arm.read()
        samples.append(State(state.time, state.position.copy(), state.velocity.copy(), state.force.copy()))
        arm.write(command(now) if command is not None else hold)
        time.sleep(PERIOD)
    return samples


def mean_force(samples: list[State]) -> Vector:
    return np.asarray(np.mean([state.force for state in samples], axis=0))
