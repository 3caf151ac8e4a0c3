"""Driver of the arm and an emulated arm in one process.

Threads are real; time is stepped by the tests (`tests.devices.stepped_time`).
"""

import contextlib

import numpy as np

from devices.arm import device
from devices.arm.sensors import force_sensor, optoforce, rdt
from devices.common import driver
from devices.emulated.arm import EmulatedArm
from devices.emulators import optoforce as optoforce_emulator
from devices.emulators import rdt as rdt_emulator
from devices.emulators.arm import ArmBoard, ArmPlant, make_sensor
from devices.emulators.odrive.board import EmulatedOdriveBackend
from devices.emulators.wire_faults import MOTORS, SENSOR, WireFaults, of_part, sensor_faults
from devices.virtual.wrench import WrenchSettings
from haptics.device import State
from haptics.errors import DeviceFault
from tests.devices.arm.odrive_rig import living_by, states
from tests.devices.stepped_time import SteppedClock, SteppedTime, settle

PERIOD = 1e-3
# Longer than any fault takes to end a run [s].
LONG = 20.0

# Settings with which a busy machine is no fault while an arm is opened.
PATIENT = {
    "motors": {"watchdog": 0.8, "reply_timeout": 0.4, "protocol": "native"},  # whose answers a stepped time waits for
    "sensor": {"patience": 0.5},
}

# Modules of driver and emulators that read the time, besides the motor modules.
LIVE_BY_IT = (device, driver, force_sensor, optoforce, rdt, rdt_emulator, optoforce_emulator)

# A measurement of the force is of this step or the one before [s].
NEW = 1.5e-3

# A hand that does nothing.
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


def settings(make="ati", **own):
    """Settings of an emulated arm with a sensor of this make, patient ones."""
    parts = {name: {**PATIENT[name], **own.pop(name, {})} for name in ("motors", "sensor")}
    parts["sensor"]["name"] = make
    return {"emulated": True, "hand": STILL, **parts, **own}


class ArmHere(EmulatedArm):
    """An emulated arm whose drive and sensor are served by threads of this process in stepped time."""

    board: ArmBoard
    sensor_faults: WireFaults

    def __init__(self, table, time=None):
        self.time = time or SteppedTime()
        self.clock = SteppedClock(PERIOD, self.time, self.settle)
        super().__init__(table, clock=self.clock)

    def _far_end(self, resources):
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
        unit, found = make_sensor(name, told["sensor"], self.board.wrench, self.board.sensor_faults)
        resources.enter_context(unit)
        return EmulatedOdriveBackend(self.board), told["sensor"] | found

    @property
    def plant(self):
        return self.board.plant

    def settle(self):
        """Wait until drive and sensor have reported in this step, unless a fault is active."""
        stage, sensor = self._open_parts()
        streaming, force = stage._streaming, sensor

        def done():
            now, latest = self.time.now(), force._latest
            heard = latest is not None and now - latest[0].received < NEW
            return bool(streaming.failure) or (streaming.answer.requested >= now and heard)

        def disturbed():
            return bool(self.time.awaited or self.board.faults.at(self.board.now) or self.board.sensor_faults())

        settle(done, disturbed)


@contextlib.contextmanager
def opened(make="ati", **own):
    """Open an arm and close it at the end, also after a fault."""
    arm = ArmHere(settings(make, **own))
    arm.open()
    try:
        yield arm
    finally:
        arm.board.faults.clear()
        with contextlib.suppress(DeviceFault):
            arm.close()


def run(arm, duration, command=None):
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


def let_go_by(arm, duration):
    """Advance the time without a tick."""
    with arm.time.by_hand() as step:
        end = arm.time.now() + duration
        while arm.time.now() < end:
            step()
            states(arm.board)


def mean_force(samples):
    return np.asarray(np.mean([state.force for state in samples], axis=0))
