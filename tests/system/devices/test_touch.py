"""The Touch driver with the emulated library and devices: planes, two devices, opening, faults, and the end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import devices
from devices.emulators.native.compiler import find_compiler
from devices.touch.hdapi import Style
from devices.touch.link import TouchLink
from haptics import Coulomb, MasslessImpedance, Servo, Trace
from haptics.clock import WallClock, instructed_by
from haptics.errors import DeviceFault, DeviceNotFoundError, DeviceOpenError
from haptics.records import Status
from haptics.servo.kernels import AVAILABLE
from haptics.servo.run import FREEZE_TIMEOUT
from tests.contract import DeviceContract
from tests.devices.inverse3.services import exercise, wait_until
from tests.devices.touch.rigs import body, serving
from tests.processes import ROOT

pytestmark = [
    pytest.mark.wall_clock,  # the servo loop of the library exchanges messages in real time
    pytest.mark.skipif(not (find_compiler() and AVAILABLE), reason="no C compiler, or no compiled loop"),
]

WATCHDOG = 0.05
"""Of the emulated device [s]."""


@pytest.fixture(scope="module")
def rig():
    with serving(body("left"), body("right", point=(0.02, 0.01))) as rig:
        yield rig


@pytest.fixture(autouse=True)
def known_calibration(monkeypatch):
    monkeypatch.setattr("devices.touch.link._FIRST_FRAMES", 2)


@pytest.fixture
def far(rig):
    far = rig.far("left")
    yield far
    far.clear()


class TestTouch(DeviceContract):
    name = "touch"

    @pytest.fixture(autouse=True)
    def at_the_library(self, rig):
        self.settings = {"library": rig.library, "configuration": "left"}

    def test_samples_are_fresh(self, device):
        wait_until(lambda: 0.0 <= device._clock.elapsed() - device.read().time <= device.spec.max_sample_age)


# --- ordinary use ----------------------------------------------------------------------------------------------------


def test_force_and_position_are_those_of_the_plane_and_the_third_axis_is_held(rig, far):
    with rig.driven(configuration="left") as device:
        exercise(device, 0.4, (1.0, -0.5), share=1.0)
        state, entry = device.read(), far.log()[-1]
        x, y, z = entry["position"]
        np.testing.assert_allclose(state.position, (x, -z), atol=2e-4)
        np.testing.assert_allclose(entry["applied"][[0, 2]], (1.0, 0.5), atol=1e-12)
        height, hold, temperature = state.channels
        assert height == pytest.approx(y, abs=2e-4)
        assert hold == pytest.approx(0.3, abs=0.05), "what the resting hand pushes down"
        assert 0.0 < temperature < 1.0
        assert device.facts["serial"] == "left" and device.facts["max_force"] == [3.3]
        assert device.facts["software_force_limit"] is True
        device.compensate(0.0)
        exercise(device, 0.02, (1.0, -0.5))
        assert far.log()[-1]["applied"][1] == 0.0, "the height is free during the safe output"
    assert not far.log()[-1]["applied"].any() and not far.state["forces_on"]


def test_two_devices_share_the_servo_loop_and_keep_their_forces_and_errors(rig, far):
    other = rig.far("right")
    with rig.driven(configuration="left") as left, rig.driven(configuration="right") as right:
        for device, force in ((left, 1.0), (right, -2.0)):
            exercise(device, 0.05, (force, 0.0))
        for _ in range(50):
            for device, force in ((left, 1.0), (right, -2.0)):
                device.read()
                device.write(np.array((force, 0.0)))
            time.sleep(1e-3)
        assert far.log()[-1]["applied"][0] == 1.0 and other.log()[-1]["applied"][0] == -2.0
        assert right.read().position[0] == pytest.approx(0.02, abs=0.015)
        other.set("max-velocity")
        with pytest.raises(DeviceFault, match="moved faster than the maker's limit"):
            wait_until(lambda: exercise(right, 0.01))
        exercise(left, 0.05, (1.0, 0.0))
        assert far.log()[-1]["applied"][0] == 1.0 and not other.log()[-1]["applied"].any()
        other.clear()
        right.close()
        exercise(left, 0.05, (1.0, 0.0))
        assert far.log()[-1]["applied"][0] == 1.0


def test_run_slides_at_its_friction_until_the_motors_are_warm(tmp_path):
    strokes = {"name": "minimum-jerk", "points": [[-0.05, 0.0], [0.05, 0.0]], "speed": 0.1, "rest": 0.0, "pause": 0.0,
               "tremor": 0.0, "stiffness": 1000.0}  # fmt: skip
    clock = WallClock(1e-3)
    with serving(body(hand=strokes)) as rig:
        trace = Trace.create(tmp_path / "trace", capacity=8192)
        element = MasslessImpedance(Coulomb(2.0), 1500.0, 4.0, clock.period)
        servo = Servo(rig.driver(clock, full_force_time=0.3), element, trace, clock=clock)
        servo.run(2.0)
        assert servo.compiled
        assert not rig.far().log()[-1]["applied"].any()
    rows = trace.since(0)
    force, slides = np.hypot(*rows["command"].T), (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
    warm = rows["status"] & int(Status.THERMAL) != 0
    assert np.median(force[slides & (rows["status"] == 0)]) == pytest.approx(2.0, rel=0.01)
    assert warm[-300:].mean() > 0.5 and (force[warm] < 2.0).all() and (force[warm] > 0.87).all()


def test_command_expires_in_the_callback(rig, far):
    with rig.driven(configuration="left", watchdog=0.03) as device:
        exercise(device, 0.05, (1.0, 0.0))
        last = time.monotonic()
        wait_until(lambda: not far.log()[-1]["applied"].any(), 1.0)
        assert time.monotonic() - last < 0.03 + 0.02
        exercise(device, 0.02, (1.0, 0.0))
        assert far.log()[-1]["applied"][0] == 1.0


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "kind", "words"), [
    ("no-inkwell", DeviceOpenError, "not calibrated within device.patience = 0.1 s, .*: put the stylus into"),
    ("no-licence", DeviceOpenError, "'left' was not opened: the OpenHaptics licence is missing .*OH_SDK_LICENSE_PATH"),
    ("wrong-port", DeviceNotFoundError, "another port or adapter than the device's: run the maker's set-up program"),
    ("comm-error", DeviceOpenError, "the communication failed: check the cable"),
])  # fmt: skip
def test_device_that_cannot_be_used_is_said_with_the_remedy(rig, far, fault, kind, words):
    far.set(fault)
    with pytest.raises(kind, match=f"touch: .*{words}"):
        rig.driver(configuration="left", patience=0.1).open()
    assert not far.log()[-1]["applied"].any()
    far.clear()
    with rig.driven(configuration="left") as device:
        exercise(device)


@pytest.mark.parametrize(("settings", "kind", "words"), [
    ({"configuration": "nobody"}, DeviceNotFoundError, "'nobody' was not .*doctor udev.*Touch_Setup.*GTDD_HOME"),
    ({"max_force": 3.2}, DeviceOpenError, r"device.max_force = 3.2 N and device.hold_force = 1.5 N together are 3.53"),
    ({"continuous_force": 1.0}, DeviceOpenError, "device.continuous_force = 1 N: the Touch has 0.88 N"),
    ({"origin": [0.0, 0.0, 0.02]}, DeviceOpenError, "not within the 160 x 120 x 70 mm of the Touch"),
    ({"model": "touch-x"}, DeviceOpenError, "device.model = 'touch-x'"),
])  # fmt: skip
def test_settings_that_do_not_fit_the_device_are_refused_without_a_force(rig, settings, kind, words):
    with pytest.raises(kind, match=words):
        rig.driver(**{"configuration": "left", **settings}).open()
    assert not rig.far("left").state["forces_on"]


def test_person_is_instructed_to_calibrate_and_to_return():
    told = []

    def follow(words):
        told.append(words)
        if "inkwell" in words:
            far.clear()  # and the library updates the calibration
        if "middle" in words:
            far.state["height"] = 0.0

    with serving(body(room=0.1)) as rig:
        far = rig.far()
        far.set("no-inkwell")
        far.state["height"] = -0.08
        with instructed_by(follow), rig.driven() as device:
            assert abs(device.read().channels[0]) < 0.03
        assert told == ["put the stylus into the inkwell.", "move the stylus to the middle of the workspace.", ""]
        far.state["height"] = -0.08
        with pytest.raises(DeviceOpenError, match=r"was not moved into the workspace within device.patience = 0\.1 s"):
            rig.driver(patience=0.1).open()
        far.state["height"] = np.nan
        with pytest.raises(DeviceOpenError, match=r"was not moved into the workspace within device.patience = 0\.1 s"):
            rig.driver(patience=0.1).open()
        far.state["height"], far.state["rise"] = -0.08, 0.0
        with instructed_by(lambda words: far.set("comm-error") if "middle" in words else None):
            with pytest.raises(DeviceOpenError, match="touch: the communication failed: check the cable"):
                rig.driver().open()


def test_encoders_are_not_reset_without_being_asked_for(rig, monkeypatch):
    read = TouchLink._read_facts
    facts = {"calibration_style": Style.ENCODER_RESET}
    monkeypatch.setattr(TouchLink, "_read_facts", staticmethod(lambda library: read(library) | facts))
    told = []
    with serving(body()) as fresh, instructed_by(told.append):
        with pytest.raises(DeviceOpenError, match=r"not calibrated .*right angles, and start with device\.reset_enc"):
            fresh.driver(patience=0.1).open()
    assert told == ["hold all links at right angles, and start with device.reset_encoders=true."]


def test_encoders_that_cannot_be_reset_are_said_and_the_device_is_released(rig):
    with pytest.raises(DeviceOpenError, match="touch: the device reports a fault"):
        rig.driver(configuration="left", reset_encoders=True).open()  # the emulated device has an inkwell
    with rig.driven(configuration="left") as device:
        exercise(device)


def test_device_in_use_is_refused(rig):
    with rig.driven(configuration="left"):
        with pytest.raises(DeviceOpenError, match="'left' was not opened: the device is in use already: end the other"):
            rig.driver(configuration="left").open()


def test_servo_loop_that_does_not_start_is_said(rig, far, monkeypatch):
    monkeypatch.setattr("devices.touch.link._START", 0.1)
    with rig.driven(configuration="right"):
        pass
    far.set("no-timer")
    device = rig.driver(configuration="left")
    with pytest.raises(DeviceOpenError, match="could not keep its timer"):
        device.open()


# --- faults ----------------------------------------------------------------------------------------------------------

FAULTS = {
    "warm-motors": "the motors are too warm: let them cool down",
    "max-force": "the force exceeded the maker's limit: reduce device.max_force",
    "force-impulse": "the force changed faster than the maker's limit",
    "max-velocity": "the stylus moved faster than the maker's limit",
    "force-error": "forces of incompatible kinds were sent",
    "device-fault": "the device reports a fault: check its cables",
    "timer-error": "the maker's servo loop could not keep its timer",
    "comm-error": "the communication failed: check the cable",
    "stall": "the maker's servo loop has not run for 0.1 s",
    "delay-100ms": "the maker's servo loop has not run for 0.1 s",
    "dropout": "the maker's servo loop has not run for 0.1 s",
    "hang": "the maker's servo loop has not run for 0.1 s",
    "unplug": "the communication failed: check the cable",
}
UNCONFIRMED = {"device-fault", "timer-error", "stall", "delay-100ms", "dropout", "hang", "unplug", "comm-error"}
"""Faults during which the driver cannot learn whether the force is zero."""


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_ends_the_run_with_its_cause_and_no_force(rig, far, fault):
    device = rig.driver(configuration="left")
    device.open()
    exercise(device, 0.03, (1.0, 0.5))
    far.set(fault)
    began = time.monotonic()
    with pytest.raises(DeviceFault, match=f"touch: {FAULTS[fault]}.*; let go of the stylus"):
        while True:
            exercise(device, 0.01, (1.0, 0.5))
    assert time.monotonic() - began < 0.3
    closing = time.monotonic()
    if fault in UNCONFIRMED:
        with pytest.raises(DeviceFault, match=r"the force could not be set to 0 \(|does not end its servo loop"):
            device.close()
    else:
        device.close()
    assert time.monotonic() - closing < FREEZE_TIMEOUT - 0.1, "otherwise the application ends the servo process"
    far.clear()
    entry = far.log()
    off = entry["time"][~entry["applied"].any(axis=1) & (entry["time"] >= began)]
    assert off[0] - began < WATCHDOG + 0.1
    wait_until(lambda: not far.log()[-1]["applied"].any())
    device.close()


@pytest.mark.parametrize("fault", ["delay-5ms", "delay-20ms", "stuck"])
def test_fault_that_passes_does_not_end_the_run(rig, far, fault):
    with rig.driven(configuration="left", frame_timeout=0.5) as device:
        exercise(device, 0.02)
        far.set(fault)
        exercise(device, 0.1)
        far.clear()
        exercise(device, 0.1, (1.0, 0.0))
        assert device._clock.elapsed() - device.read().time < 0.02
        assert far.log()[-1]["applied"][0] == 1.0


# --- ends of the process ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time, numpy as np
import devices
device = devices.create_device("touch", {"library": sys.argv[1], "configuration": "left"})
device.open()
print("open", flush=True)
while True:
    device.read()
    device.write(np.array((1.0, 0.0)))
    time.sleep(1e-3)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_device_drops_the_force_of_a_process_that_is_killed_or_stopped(rig, far, number):
    command = [sys.executable, "-c", PROGRAM, rig.library]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            assert process.stdout.readline() == b"open\n"
            wait_until(lambda: far.log()[-1]["applied"][0] == 1.0)
            process.send_signal(number)
            sent = time.monotonic()
            wait_until(lambda: not far.log()[-1]["applied"].any())
            log = far.log()
            zero = np.flatnonzero(log["applied"].any(axis=1))[-1] + 1
            given = log["time"][log["time"] < log["time"][zero]][-1]
            assert log["time"][zero] - given == pytest.approx(WATCHDOG, abs=1e-6)
            assert given < sent + 0.02
        finally:
            process.kill()


@pytest.mark.parametrize(("name", "noun"), [("touch", "Touch"), ("forcedimension", "Force Dimension device")])
def test_starved_emulator_is_the_reason_of_a_failed_run(name, noun):
    known = children()
    device = devices.create_device(name, {"emulated": True})
    device.open()
    (emulator,) = children() - known
    os.kill(emulator, signal.SIGSTOP)
    try:
        with pytest.raises(DeviceFault):
            wait_until(lambda: exercise(device, 0.01, (1.0, 0.5)))
    finally:
        os.kill(emulator, signal.SIGCONT)
    with contextlib.suppress(DeviceFault):
        device.close()
    assert device.explain().startswith(f"this machine is too busy for the emulation: it kept the emulated {noun}")


def children():
    """Return the processes that run an emulator for this process."""
    tasks = Path("/proc/self/task").iterdir()
    found = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return {child for child in found if b"devices.emulators" in Path(f"/proc/{child}/cmdline").read_bytes()}
