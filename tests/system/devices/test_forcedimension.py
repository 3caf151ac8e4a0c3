"""The Force Dimension driver at an emulated library: contract, motion, faults, killed and stopped processes."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import devices
from devices.common.plane import Plane
from devices.emulators.forcedimension import MAKER, WEIGHT
from devices.emulators.wire_faults import FORCE_DIMENSION_FAULTS
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import WallClock
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.jit import COMPILED
from haptics.records import Status
from haptics.servo.run import FREEZE_TIMEOUT
from tests.c_types import needs_compiler
from tests.contract import DeviceContract
from tests.devices.emulators.far_ends import resting, served
from tests.devices.inverse3.services import exercise, wait_until
from tests.processes import ROOT

pytestmark = [
    pytest.mark.wall_clock,
    needs_compiler,
    pytest.mark.skipif(not COMPILED, reason="the emulated device moves in compiled code"),
]

PATIENT = {"hardware_watchdog": 0.0, "watchdog": 0.5}
"""Patience with a busy machine."""

AXES = Plane.of(devices.create_device("forcedimension").settings).axes


@pytest.fixture(scope="module")
def far_end():
    """An omega.3 at rest."""
    body = resting(name="1234", kind=33, axes=AXES.ravel(), weight=WEIGHT, half_width=0.05, half_height=0.04)
    with served(MAKER, body) as found:
        yield found


@pytest.fixture
def far(far_end):
    found = far_end.far()
    found.clear()
    yield found
    found.clear()


def driver(far_end, clock=None, **changes):
    return devices.create_device("forcedimension", {"library": far_end.library, **PATIENT, **changes}, clock=clock)


class TestForceDimension(DeviceContract):
    name = "forcedimension"

    @pytest.fixture(autouse=True)
    def at_a_library(self, far_end):
        self.settings = {"library": far_end.library, **PATIENT}

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


def is_safe(far):
    """Return True if the motors are off and brake, by the record of the far end."""
    return not far.state["forces_on"] and far.state["braking"] == 1 and not far.log()[-1]["applied"].any()


# --- motion -----------------------------------------------------------------------------------------------------------


def test_force_position_and_weight_are_those_of_the_plane(far_end, far):
    with driver(far_end) as device:
        for force in ((2.0, 0.0), (0.0, -1.5)):
            exercise(device, 0.3, force, share=1.0)
            last = far.log()[-1]
            np.testing.assert_allclose(AXES[:2] @ last["applied"], force, atol=1e-9)
            np.testing.assert_allclose(device.read().position, AXES[:2] @ last["position"], atol=2e-5)
            np.testing.assert_allclose(device.read().position, np.array(force) / 400.0, atol=5e-4)
            held = device.read().channels[1]
            assert last["applied"][2] == pytest.approx(held - WEIGHT[2], abs=0.1), "gravity is compensated"
        wait_until(lambda: exercise(device, 0.05, (0.0, 0.0), share=1.0) or abs(device.read().channels[0]) < 8e-4)
        assert device.read().channels[4] >= 0 and device.read().channels[6] > 100.0
    assert is_safe(far)


def test_device_of_another_program_is_refused(far_end):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.connect(str(far_end.folder / "1234"))
        other.recv(200)
        with pytest.raises(DeviceOpenError, match=r"no usable device: dhdOpenID failed \(device in use\): close other"):
            driver(far_end).open()
    wait_until(lambda: not far_end.far().state["connected"])


# --- faults -----------------------------------------------------------------------------------------------------------

SURVIVED = {"delay-1ms", "delay-5ms", "delay-20ms", "delay-100ms", "stuck", "saturated", "time-guard"}
ENDS = {
    "unplug": r"dhd\w+ failed \(communication error\)",
    "dropout": r"dhd\w+ failed \(timeout\)",
    "position-error": r"dhdGetPosition failed \(communication error\)",
    "force-error": r"dhdSetForce failed \(communication error\)",
    "lost-reference": "not initialised any more",
    "no-power": "no power",
    "off-button": "switched the forces off: its force button",
    "off-velocity": "switched the forces off: its velocity threshold",
    "off-watchdog": "switched the forces off: its watchdog",
    "off-software": "switched the forces off: another command",
    "off-usb": "switched the forces off: its USB connection",
    "off-dead-man": "switched the forces off: its dead-man's switch",
}


def test_every_fault_has_its_effect():
    assert SURVIVED | set(ENDS) == set(FORCE_DIMENSION_FAULTS)


@pytest.mark.parametrize("fault", ENDS)
def test_fault_ends_the_run_with_its_cause_and_no_force(far_end, far, fault):
    device = driver(far_end)
    device.open()
    exercise(device, 0.03, (1.0, 0.5))
    assert far.log()[-1]["applied"].any()
    far.set(fault)
    with pytest.raises(DeviceFault, match=f"forcedimension: .*{ENDS[fault]}.*; its force may last: let go"):
        wait_until(lambda: exercise(device, 5e-3, (1.0, 0.5)))
    if fault != "dropout":
        far.clear()
    closing = time.monotonic()
    try:
        device.close()
    except DeviceFault as error:  # the library cannot confirm it
        assert fault in {"unplug", "dropout"} and "the force could not be set to 0" in str(error)
        far.state["watchdog"] = 0.03  # in its place: the one of a device, which these tests do without
    assert time.monotonic() - closing < FREEZE_TIMEOUT - 0.1, "otherwise the application ends the servo process"
    far.clear()
    wait_until(lambda: is_safe(far))
    far.state["watchdog"] = 0.0


@pytest.mark.parametrize("fault", sorted(SURVIVED - {"delay-100ms"}))
def test_fault_that_a_run_survives(far_end, far, fault):
    with driver(far_end) as device:
        exercise(device, 0.03, (1.0, 0.0))
        far.set(fault)
        exercise(device, 0.15, (1.0, 0.0))
        state = device.read()
        age = device._clock.elapsed() - state.time
        if fault == "saturated":
            assert state.channels[5] > 10 and AXES[0] @ far.log()[-1]["applied"] == pytest.approx(0.5)
        elif fault == "time-guard":
            assert state.channels[4] > 10 and age > 0.05, "the sample is as old as its last reading"
        elif fault != "stuck":
            assert age > 1e-3 * int(fault.partition("-")[2][:-2]), "late, and told"
    assert is_safe(far)


def test_watchdog_of_the_device_ends_a_run_whose_calls_take_too_long(far_end, far):
    device = driver(far_end, hardware_watchdog=0.03)
    device.open()
    exercise(device, 0.02, (1.0, 0.0))
    far.set("delay-100ms")
    with pytest.raises(DeviceFault, match=r"its watchdog received .*; the device switches its forces off"):
        wait_until(lambda: exercise(device, 0.01, (1.0, 0.0)))
    far.clear()
    device.close()
    assert is_safe(far)


def test_motors_of_a_large_device_have_its_largest_force():
    body = resting(name="2", kind=63, axes=AXES.ravel(), weight=(0.0, 0.0, 0.0), most_force=20.0)
    with served(MAKER, body) as found, driver(found, kind="delta", max_force=16.0, serial="2") as device:
        exercise(device, 0.05, (15.0, 0.0))
        assert AXES[0] @ found.far().log()[-1]["applied"] == 15.0
        assert device.read().channels[5] == 0, "no force was saturated"


@pytest.mark.filterwarnings("ignore:forcedimension. the device moves by itself:RuntimeWarning")
def test_cold_device_is_initialised_on_request(monkeypatch):
    monkeypatch.setattr("devices.forcedimension.device.WARNING_TIME", 0.0)
    with served(MAKER, resting(name="5", kind=33, homed=False)) as found:
        with pytest.raises(DeviceOpenError, match="is not initialised"):
            driver(found).open()
        with driver(found, initialise=True) as device:
            exercise(device)
            assert found.far().state["homed"] == 1


def test_time_guard_makes_old_samples_and_no_force(far_end, far, tmp_path):
    clock = WallClock(5e-3)
    device = driver(far_end, clock)
    trace = Trace.create(tmp_path / "trace", capacity=8192)
    servo = Servo(device, MasslessImpedance(Coulomb(0.5), 300.0, 2.0, clock.period), trace, clock=clock)
    threading.Timer(0.6, lambda: far.set("time-guard")).start()
    with pytest.raises(DeviceFault, match="no usable sample since tick"):
        servo.run(20.0)
    assert servo.compiled
    rows = trace.since(0)
    assert (rows["status"][-10:] & int(Status.STALE) != 0).all()
    assert not rows["command"][-10:].any()
    assert is_safe(far)


# --- processes --------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time, devices, numpy
with devices.create_device("forcedimension", {"library": sys.argv[1]}) as device:
    print("open", flush=True)
    while True:
        device.read()
        device.write(numpy.array((1.0, 0.0)))
        time.sleep(1e-3)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_killed_or_stopped_driver_is_without_force_after_the_makers_watchdog(far_end, far, number):
    command = [sys.executable, "-c", HOLDER, far_end.library]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout.readline() == b"open\n"
            wait_until(lambda: AXES[0] @ far.log()[-1]["applied"] == 1.0)
            time.sleep(0.05)
            os.kill(process.pid, number)
            lost = time.monotonic()
            wait_until(lambda: not far.log()[-1]["applied"].any())
            last = far.log()[-1]
            assert last["time"] - lost <= 0.03 + 2e-3
            assert last["cause"] == 3
        finally:
            process.kill()
    wait_until(lambda: not far.state["connected"])
