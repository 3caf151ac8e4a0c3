"""The arm on emulated motors and sensors: motion, force, homing, faults, and emulators in another process."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time

import numpy as np
import pytest

from devices import create_device
from devices.arm import device
from devices.arm.motors import stage as stages
from devices.arm.sensors.force_sensor import ForceSensor
from devices.emulated.arm import EmulatedArmSettings
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.wire_faults import MOTORS, SENSOR
from haptics import Coulomb, RigidAdmittance
from haptics.clock import WallClock
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.servo.servo import Servo
from haptics.trace import Trace
from tests.devices.arm.arm_rig import LONG, ArmHere, let_go_by, mean_force, opened, run, settings
from tests.devices.arm.odrive_rig import states
from tests.devices.arm.sensor_rigs import wait_until

pytestmark = pytest.mark.usefixtures("own_cache")


def push(x, y):
    return {"name": "scripted-force", "script": [[0.0, x, y], [60.0, x, y]]}


def test_kernels_are_compiled_before_the_sensor_streams(monkeypatch):
    """A compilation during the stream takes longer than the sensor's `patience` on a busy machine."""
    calls = []

    def logged(owner, name):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *arguments: (calls.append(name), original(*arguments))[1])

    logged(stages, "read_motors")
    logged(device, "take_pose")
    logged(ForceSensor, "open")
    with opened():
        compiled = calls[: calls.index("open")]
    assert set(compiled) == {"read_motors", "take_pose"}


# --- motion and force ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parallel-link", "serial", "five-bar"])
def test_end_effector_follows_the_command_and_holds(kind):
    goal = np.array((0.02, -0.015))
    with opened(arm={"kind": kind}) as arm:
        assert arm.read().position == pytest.approx((0.0, 0.0), abs=1e-4)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]
        run(arm, 0.2, lambda now: min(now / 0.15, 1.0) * goal)
        (*_, last) = run(arm, 0.3, lambda _: goal)
        assert last.position == pytest.approx(goal, abs=2e-4)
        assert arm.plant.handle == pytest.approx(goal, abs=3e-4)  # gears give way a little
        assert np.hypot(*last.velocity) < 5e-3
    assert states(arm.board) == [IDLE, IDLE]


@pytest.mark.parametrize("sensor", ["ati", "onrobot-hex", "optoforce"])
def test_every_sensor_gives_the_force_of_the_hand(sensor):
    with opened(sensor, hand=push(3.0, -4.0)) as arm:
        samples = run(arm, 0.3)
        assert mean_force(samples) == pytest.approx(arm.plant.hand_force, abs=0.1)
        assert mean_force(samples) == pytest.approx((3.0, -4.0), abs=0.1)


def test_data_sheet_follows_the_settings():
    spec = create_device("arm", {"max_speed": 0.4, "motors": {"watchdog": 0.2}}).spec
    assert spec.causality is Causality.ADMITTANCE
    assert spec.max_speed == 0.4
    assert spec.watchdog == pytest.approx(0.22)
    assert spec.workspace_max == (0.2, 0.15)
    assert 1e-7 < (spec.position_resolution or 0.0) < 1e-4


# --- opening and closing ---------------------------------------------------------------------------------------------


def test_arm_can_be_opened_and_closed_repeatedly():
    with opened() as arm:
        arm.open()
        first = arm.board
        arm.close()
        arm.close()
        assert states(first) == [IDLE, IDLE]
        with pytest.raises(DeviceOpenError, match="not open"):
            arm.read()
        arm.open()
        run(arm, 0.02)


def test_arm_is_not_driven_before_it_was_homed(monkeypatch):
    monkeypatch.setattr(EmulatedArmSettings, "held", False)
    arm = ArmHere(settings())
    with pytest.raises(DeviceOpenError, match=r"lose their zero .* home \(0 m, 0 m\).*device.at_home=true"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


def test_arm_outside_its_workspace_times_out():
    arm = ArmHere(settings(homing_timeout=0.1))
    arm._home_angles = arm._body.angles(0.25, 0.0)
    with pytest.raises(DeviceOpenError, match=r"at \(0\.25, .* was not brought into the workspace .* within 0\.1 s"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


def test_inconsistent_samples_end_the_opening(monkeypatch):
    arm = ArmHere(settings())
    look, count = arm._update_state, iter(range(10**9))

    def restless(stage):
        look(stage)
        arm._state.position[0] += 2e-3 * next(count)

    monkeypatch.setattr(arm, "_update_state", restless)
    with pytest.raises(DeviceOpenError, match="no two samples agreed"):
        arm.open()
    assert states(arm.board) == [IDLE, IDLE]


# --- commands and settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"half_width": 0.6}, "workspace"),
        ({"home_x": 3.0}, r"device\.home_x = 3 m, .*does not reach"),
        ({"arm": {"kind": "scara"}}, r"device\.arm\.kind = 'scara'.*parallel-link"),
        ({"arm": {"encoder": "joint"}}, r"device\.arm\.encoder = 'joint': must be 'motor'"),
        ({"arm": 3}, r"device\.arm = 3: must be a table"),
        ({"motors": {"reduction_1": 0.0}}, r"device\.motors\.reduction_1 = 0\.0"),
        ({"sensor": {"name": "scale"}}, "unknown force sensor 'scale'"),
        ({"sensor": {"name": "optoforce"}}, r"device\.sensor\.sensitivity"),
        ({"servo": {"law": "fractional"}}, "must be one of pid, flatness, rigid"),
        ({"emulated": True, "wire_faults": ["unplug@1"]}, r"unknown fault .*motors\.unplug"),
        ({"emulated": True, "wire_faults": ["sensor.damaged@1"]}, r"unknown fault .*sensor\.damaged"),
        ({"max_speed": 0.0}, r"device\.max_speed = 0\.0: .*greater than 0 m/s"),
    ],
)
def test_wrong_setting_is_named(table, message):
    with pytest.raises(ConfigurationError, match=message):
        create_device("arm", table)


# --- faults ----------------------------------------------------------------------------------------------------------


def set_fault(arm, fault):
    if fault.startswith(MOTORS):
        arm.board.faults.set(fault.removeprefix(MOTORS))
    else:
        arm.sensor_faults.set(fault.removeprefix(SENSOR))


ENDED_BY_THE_DRIVE = {
    "motors.unplug": "the drive was unplugged",
    "motors.read-error": "an answer was lost",
    "motors.write-error": "a packet was lost",
    "motors.stall": r"the drive refused .* \(stall\)",
    "motors.nak": "the drive did not take a packet in time|the drive does not answer",
    "motors.wrong-crc": "the drive does not answer: it drops packets",
    "motors.lost-answer": "the drive does not answer",
    "motors.short": "the request is unknown to it",
    "motors.motor-fault": "axis 0: motor: fault of the gate driver",
}


@pytest.mark.parametrize("fault", ENDED_BY_THE_DRIVE)
def test_failed_drive_ends_the_run_with_loose_motors(fault):
    with opened(motors={"watchdog": 0.3, "reply_timeout": 0.1}) as arm:
        run(arm, 0.02)
        set_fault(arm, fault)
        with pytest.raises(DeviceFault, match=ENDED_BY_THE_DRIVE[fault]):
            run(arm, LONG)
        with contextlib.suppress(DeviceFault):
            arm.close()
        let_go_by(arm, 0.4)
        assert states(arm.board) == [IDLE, IDLE]


ENDED_BY_THE_SENSOR = {
    ("ati", "saturated"): "has sent no usable force for .* saturated: take the load away",
    ("onrobot-hex", "mute"): "has sent no usable force",
    ("optoforce", "stalled"): "has sent no usable force",
    ("optoforce", "unplug"): "it is gone",
}


@pytest.mark.parametrize(("make", "fault"), ENDED_BY_THE_SENSOR)
@pytest.mark.wall_clock  # the sensor is behind a real socket or terminal
def test_failed_sensor_ends_the_run_and_the_motors_hold_until_then(make, fault):
    with opened(make, hand=push(2.0, -3.0)) as arm:
        before = run(arm, 0.05)[-1]
        set_fault(arm, SENSOR + fault)
        with pytest.raises(DeviceFault, match=ENDED_BY_THE_SENSOR[make, fault]):
            run(arm, LONG)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]
        arm.write(before.position)
        assert arm.plant.handle == pytest.approx(before.position, abs=5e-4)
        arm.close()
        assert states(arm.board) == [IDLE, IDLE]


BRIDGED = {
    ("ati", "sensor.reordered"): "late",
    ("ati", "sensor.flood"): "received",
    ("ati", "sensor.delay-5ms"): "received",
    ("optoforce", "sensor.lost"): "lost",
    ("optoforce", "sensor.damaged"): "",
    ("optoforce", "sensor.delay-5ms"): "",
    ("ati", "motors.delay-5ms"): "received",
}


@pytest.mark.parametrize(("make", "fault"), BRIDGED)
@pytest.mark.wall_clock  # the sensor is behind a real socket or terminal
def test_minor_fault_does_not_change_the_force(make, fault):
    with opened(make, hand=push(2.0, -3.0)) as arm:
        run(arm, 0.02)
        before = dict(arm.tally)
        set_fault(arm, fault)
        samples = run(arm, 0.3)
        assert mean_force(samples[len(samples) // 3 :]) == pytest.approx((2.0, -3.0), abs=0.15)
        counted = BRIDGED[make, fault]
        assert not counted or arm.tally[counted] > before[counted] + 10
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]


@pytest.mark.parametrize("fault", ["motors.nak", "motors.lost-answer", "sensor.mute", "sensor.saturated"])
def test_short_fault_is_survived(fault):
    with opened() as arm:
        run(arm, 0.02)
        set_fault(arm, fault)
        run(arm, 0.03)
        arm.board.faults.clear()
        arm.sensor_faults.clear()
        run(arm, 0.2)
        wait_until(lambda: arm._clock.elapsed() - arm.read().time < 0.1)
        assert states(arm.board) == [CLOSED_LOOP, CLOSED_LOOP]


# --- an emulator in another process ----------------------------------------------------------------------------------

PATIENCE = 30.0
STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
PATIENT = {"motors": {"watchdog": 1.0, "reply_timeout": 0.4}, "sensor": {"patience": 0.8}}


@contextlib.contextmanager
def emulated_arm(motors=None, **settings):
    motors = {**PATIENT["motors"], **(motors or {})}
    arm = create_device("arm", {"emulated": True, "hand": STILL, **PATIENT, "motors": motors, **settings})
    try:
        arm.open()
        yield arm
    finally:
        with contextlib.suppress(DeviceFault):  # its motors are disabled already
            arm.close()


def emulator_of(arm):
    """Return the process of the emulator."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wire:
        wire.connect(arm._emulator._address)
        return int(struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def failure_of(arm, meanwhile=lambda: None):
    """Tick until it fails; return the message."""
    latest = time.monotonic() + PATIENCE
    with pytest.raises(DeviceFault) as caught:
        home = arm.read().position.copy()
        while time.monotonic() < latest:
            arm.read()
            arm.write(home)
            meanwhile()
            time.sleep(1e-3)
    return str(caught.value)


@pytest.mark.parametrize("lasting", [False, True])
def test_starved_emulator_is_the_fault_of_the_machine(lasting):
    """The emulator runs again before the driver fails, or it does not."""
    with emulated_arm() as arm:
        process = emulator_of(arm)
        arm.read()
        os.kill(process, signal.SIGSTOP)
        try:
            if not lasting:
                time.sleep(1.5)  # so its watchdogs will have expired
                os.kill(process, signal.SIGCONT)
            message = failure_of(arm)
        finally:
            os.kill(process, signal.SIGCONT)
    assert message.startswith("this machine is too busy for the emulation: it kept the emulated arm from running for ")
    assert "supply" not in message
    assert "cable" not in message


@pytest.mark.wall_clock  # this process must get its samples until then
def test_old_samples_of_a_starved_emulator_are_the_fault_of_the_machine(tmp_path):
    """The driver is patient; the envelope ends the run."""
    clock = WallClock(1e-3)
    arm = create_device("arm", {"emulated": True, "hand": STILL, **PATIENT}, clock=clock)
    trace = Trace.create(tmp_path / "trace", capacity=4096)
    run = Servo(arm, RigidAdmittance(Coulomb(4.0), 2.0), trace, clock=clock)

    def send(process, number):
        with contextlib.suppress(ProcessLookupError):  # the run has ended
            os.kill(process, number)

    def starve():
        for later, number in ((0.2, signal.SIGSTOP), (0.5, signal.SIGCONT)):
            threading.Timer(later, send, (emulator_of(arm), number)).start()

    with pytest.raises(DeviceFault, match=r"too busy for the emulation.*\(It was noticed as: .*was too old"):
        run.run(5.0, opened=starve)


def test_timed_fault_has_the_message_of_the_driver():
    with emulated_arm(wire_faults=["sensor.mute@0.1"]) as arm:
        process, started = emulator_of(arm), time.monotonic()

        def starve():
            if time.monotonic() - started > 0.05:
                os.kill(process, signal.SIGSTOP)
                time.sleep(0.05)
                os.kill(process, signal.SIGCONT)

        assert "has sent no usable force" in failure_of(arm, starve)


def test_killed_emulator_is_a_lost_drive():
    with emulated_arm() as arm:
        os.kill(emulator_of(arm), signal.SIGKILL)
        assert "too busy" not in failure_of(arm)


def test_arm_is_driven_over_the_can_bus_of_another_process():
    with emulated_arm({"protocol": "can"}) as arm:
        assert arm.facts["motors"]["interface"] == "can0"
        home, latest = arm.read().position.copy(), time.monotonic() + 0.5
        while time.monotonic() < latest:
            arm.read()
            arm.write(home)
            time.sleep(1e-3)
        assert arm._emulator.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
        arm.close()


def test_timed_fault_of_the_can_bus_ends_the_run():
    with emulated_arm({"protocol": "can"}, wire_faults=["motors.link-down@0.1"]) as arm:
        assert "the CAN interface can0 is down" in failure_of(arm)
        wait_until(lambda: arm._emulator.observe()["states"] == [IDLE, IDLE])
