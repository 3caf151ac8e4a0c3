"""The driver of the arm in front of an emulated one in the same process, and what its tests share.

Threads are real, time is stepped by the tests (`tests.devices.stepped_time`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from devices.arm import device
from devices.arm.sensors import force_sensor, onrobot, optoforce, rdt
from devices.common import driver
from devices.emulated.arm import EmulatedArm
from devices.emulators.arm import sensors
from devices.emulators.arm.board import ArmBoard
from devices.emulators.arm.faults import MOTORS, SENSOR, of_part, sensor_faults
from devices.emulators.arm.plant import ArmPlant
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from devices.emulators.optoforce import port
from devices.emulators.rdt import box
from devices.emulators.wire_faults import WireFaults
from devices.virtual.wrench import WrenchSettings
from haptics.device import State, Vector
from haptics.errors import DeviceFault
from tests.devices.arm.odrive_rig import living_by, states
from tests.devices.stepped_time import SteppedClock, SteppedTime, settle

PERIOD = 1e-3
LONG = 20.0
"""Longer than any fault takes to end a run [s]."""

PATIENT: dict[str, dict[str, Any]] = {
    "motors": {"watchdog": 0.8, "reply_timeout": 0.4, "protocol": "native"},  # whose answers a stepped time waits for
    "sensor": {"patience": 0.5},
}
"""Settings with which a busy machine is no fault while an arm is opened."""

LIVE_BY_IT = (device, driver, force_sensor, onrobot, optoforce, rdt, box, port)
"""Those of driver and emulators that look at the time, besides those of the motors."""

NEW = 1.5e-3
"""A measurement of the force is of this step or the one before [s]."""

STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""A hand that lies on the handle and does nothing."""


def settings(make: str = "ati", **own: Any) -> dict[str, Any]:
    """Settings of an emulated arm with a sensor of this make, patient ones."""
    parts = {name: {**PATIENT[name], **own.pop(name, {})} for name in ("motors", "sensor")}
    parts["sensor"]["name"] = make
    return {"emulated": True, "hand": STILL, **parts, **own}


class ArmHere(EmulatedArm):
    """An emulated arm whose drive and sensor are served by threads of this process, in a time of its own."""

    board: ArmBoard
    sensor_faults: WireFaults

    def __init__(self, table: dict[str, Any], time: SteppedTime | None = None) -> None:
        self.time = time or SteppedTime()
        self.clock = SteppedClock(PERIOD, self.time, self.settle)
        super().__init__(table, clock=self.clock)

    def _far_end(self, resources: contextlib.ExitStack) -> tuple[Any, dict[str, Any]]:
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
        resources.enter_context(living_by(self.time, LIVE_BY_IT))
        self.sensor_faults = WireFaults(sensor_faults(name), of_part(SENSOR, told["faults"]))
        faults = of_part(MOTORS, told["faults"])
        asked = {"fastest": told["fastest"], "watchdog": told["watchdog"]}
        self.board = ArmBoard(plant, body, faults, self.sensor_faults, self.time, **asked)
        unit, found = sensors.make_sensor(name, told["sensor"], self.board.wrench, self.board.sensor_faults)
        resources.enter_context(unit)
        return EmulatedOdriveBackend(self.board), told["sensor"] | found

    @property
    def plant(self) -> ArmPlant:
        return self.board.plant

    def settle(self) -> None:
        """Wait until drive and sensor have been heard of in this step, unless something is wrong with them."""
        stage, sensor = self._open_parts()
        streaming, force = stage._streaming, sensor  # type: ignore[attr-defined]

        def done() -> bool:
            now, latest = self.time.now(), force._latest
            heard = latest is not None and now - latest[0].received < NEW
            return bool(streaming.failure) or (streaming.sample.time >= now and heard)

        def disturbed() -> bool:
            return bool(self.time.awaited or self.board.faults.at(self.board.now) or self.board.sensor_faults())

        settle(done, disturbed)


@contextlib.contextmanager
def opened(make: str = "ati", **own: Any) -> Iterator[ArmHere]:
    """An open arm; closed at the end whatever has become of it."""
    arm = ArmHere(settings(make, **own))
    arm.open()
    try:
        yield arm
    finally:
        arm.board.faults.clear()
        with contextlib.suppress(DeviceFault):
            arm.close()


def run(arm: ArmHere, duration: float, command: Callable[[float], Vector] | None = None) -> list[State]:
    """Tick for a while, holding where the arm is if there is no command; return copies of the samples."""
    samples, hold = [], arm.read().position.copy()
    with arm.time.by_hand() as step:
        start = arm.time.now()
        while (now := arm.time.now() - start) < duration:
            state = arm.read()
            samples.append(State(state.time, state.position.copy(), state.velocity.copy(), state.force.copy()))
            arm.write(command(now) if command is not None else hold)
            step()
            arm.settle()
    return samples


def let_go_by(arm: ArmHere, duration: float) -> None:
    """Let time go by without a tick."""
    with arm.time.by_hand() as step:
        end = arm.time.now() + duration
        while arm.time.now() < end:
            step()
            states(arm.board)


def mean_force(samples: list[State]) -> Vector:
    return np.asarray(np.mean([state.force for state in samples], axis=0))
