"""Driver of the Falcon in real time, with an emulated Falcon in this process and in a separate process."""

import contextlib
import json
import math
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import devices
from devices.common.plane import Plane
from devices.emulated.falcon import EMULATED_LOG
from devices.emulators.falcon import EmulatedFalcon, EmulatedFalconBackend, make_image
from devices.emulators.usb_remote import RemoteBackend
from devices.falcon.device import FalconSettings
from haptics.errors import DeviceFault
from haptics.recording.recording import Recording
from tests.contract import DeviceContract
from tests.devices.falcon.test_wire import HELD, mechanism
from tests.processes import RUN, program, until

pytestmark = pytest.mark.wall_clock  # threads and processes exchange packets in real time

PATIENT = {"reply_timeout": 1.0, "watchdog": 0.5}


def plugged_in(plane="x-z", sag=0.0):
    """Return an emulated Falcon, homed, whose hand is in this plane."""
    return EmulatedFalcon(mechanism(Plane.of(FalconSettings(plane=plane)), sag))


def make(unit, clock=None, **changes):
    device = devices.create_device("falcon", {**PATIENT, **changes}, clock=clock)
    device.backend = EmulatedFalconBackend(unit)
    return device


@contextlib.contextmanager
def driven(unit, **changes):
    device = make(unit, **changes)
    device.open()
    try:
        yield device
    finally:
        device.close()


def exercise(device, duration, force=(0.0, 0.0), share=0.0):
    """Apply a force; return the mean height after half of the duration."""
    begin, heights = time.monotonic(), []
    while (now := time.monotonic()) < begin + duration:
        device.read()
        device.compensate(share)
        device.write(np.array(force))
        if now > begin + 0.5 * duration:
            heights.append(float(device._state.channels[0]))
        time.sleep(1e-3)
    return float(np.mean(heights)) if heights else math.nan


class TestFalcon(DeviceContract):
    name = "falcon"

    def make(self, clock=None, **changes):
        return make(plugged_in(), clock, **changes)

    def test_guardian_is_only_for_real_device_files(self, device):
        assert device._opened().guard is None


@pytest.mark.parametrize("plane", ["x-z", "xy", "-yz"])
def test_position_and_force_are_those_of_the_plane(plane):
    unit, axes = plugged_in(plane), Plane.of(FalconSettings(plane=plane))
    with driven(unit, plane=plane) as device:
        for force in ((2.0, 0.0), (0.0, -3.0)):
            exercise(device, 0.25, force)
            told = unit.observe()
            np.testing.assert_allclose(axes.axes @ told["force"], (*force, 0.0), atol=0.03)
            where = axes.axes @ (np.array(told["place"]) - axes.middle)
            np.testing.assert_allclose(device.read().position, where[:2], atol=2e-4)
            np.testing.assert_allclose(where[:2], np.array(force) / 400.0, atol=1e-3)  # the hand's grip gives way
    assert unit.processor.motors == (0, 0, 0)


@pytest.mark.parametrize("sag", [5.0, -5.0])
def test_third_axis_stays_within_a_millimetre_under_5_newtons(sag):
    unit = plugged_in(sag=sag)
    with driven(unit) as device:
        exercise(device, 0.7, (1.0, 0.5), share=1.0)
        assert abs(exercise(device, 0.4, (1.0, 0.5), share=1.0)) < 1e-3
        assert unit.observe()["force"][1] == pytest.approx(sag, abs=0.3)
        assert abs(exercise(device, 0.1, (1.0, 0.5))) > 1e-3, "the safe output holds nothing"


def test_too_large_motor_numbers_keep_the_direction_of_the_force():
    unit = plugged_in()
    with driven(unit, max_motor=200.0) as device:
        exercise(device, 0.2, (3.0, 1.5))
        force = np.array(unit.observe()["force"])
        assert max(map(abs, unit.processor.motors)) == pytest.approx(200.0, abs=1)
        assert math.degrees(math.acos(force @ (3.0, 0.0, -1.5) / np.linalg.norm(force) / math.hypot(3.0, 1.5))) < 2.0


@pytest.mark.parametrize(
    ("fault", "words", "kept"),
    [("unplug", "the Falcon was unplugged: plug it in", True), ("dropout", r"did not answer within 0\.1 s", False),
     ("unhomed", "no longer homed", False), ("read-error", "a transfer failed", False)],
)  # fmt: skip
def test_fault_ends_the_run_with_its_reason_and_no_force(fault, words, kept):
    unit = plugged_in()
    device = make(unit, reply_timeout=0.1)
    device.open()
    exercise(device, 0.05, (1.0, 0.5))
    assert any(unit.processor.motors)
    unit.faults.set(fault)
    with pytest.raises(DeviceFault, match=f"falcon: .*{words}"):
        exercise(device, 5.0, (1.0, 0.5))
    until(lambda: any(unit.processor.motors) == kept, "the force remains", 1.0)
    with pytest.raises(DeviceFault, match=r"the force could not be set to 0 \(.*switch the Falcon off"):
        device.close()
    device.close()


def test_encoder_counts_of_no_position_end_the_run():
    unit = plugged_in()
    with driven(unit) as device:
        exercise(device, 0.05, (1.0, 0.5))
        unit.mechanism._errors = [4000, -4000, 0]
        with pytest.raises(DeviceFault, match=r"the encoder counts .* belong to no position of the handle"):
            exercise(device, 1.0, (1.0, 0.5))
    assert unit.processor.motors == (0, 0, 0)


def test_faults_that_a_run_survives():
    unit = plugged_in()
    with driven(unit) as device:
        for fault, duration in (("malformed", 0.2), ("nak", 0.02), ("delay-5ms", 0.1)):
            exercise(device, 0.05, (1.0, 0.0))
            unit.faults.set(fault)
            exercise(device, duration, (1.0, 0.0))
            unit.faults.clear()
            exercise(device, 0.2, (1.0, 0.0))
            assert unit.observe()["force"][0] == pytest.approx(1.0, abs=0.05)
            assert device._clock.elapsed() - device.read().time < device.spec.max_sample_age
        assert device.facts["malformed"] > 10


# --- in a separate process --------------------------------------------------------------------------------------------

HOST = """
import json, sys, time, numpy as np, devices
device = devices.open_device("falcon", json.loads(sys.argv[1]))
print(device._address, flush=True)
while True:
    device.read()
    device.write(np.array((1.0, 0.5)))
    time.sleep(1e-3)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_stopped_driver_leaves_no_force(number, tmp_path):
    """The emulated Falcon keeps the last motor numbers; the guardian sends zeros."""
    settings = {"emulated": True, "state": "homed", "hand": HELD, "log": str(tmp_path / "log.npy")}
    with program("-c", HOST, json.dumps(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        emulated = RemoteBackend(process.stdout.readline().strip())
        until(lambda: any(emulated.observe()["motors"]), "there is no force")
        ended = time.monotonic()
        process.send_signal(number)
        if number == signal.SIGSTOP:
            until(lambda: not any(emulated.observe()["motors"]), "the force remains")
            found = emulated.observe()
            process.send_signal(signal.SIGCONT)
            _, words = process.communicate(timeout=20.0)
            assert "DeviceFault: falcon: the guardian process has ended" in words
        else:
            del emulated  # the emulator ends with its last force
            until((tmp_path / EMULATED_LOG).exists, "the emulated Falcon does not end")
            found = json.loads((tmp_path / EMULATED_LOG).read_text())
        assert found["motors"] == [0, 0, 0]
        assert 0.0 < found["zero_at"] - ended < 0.25


def test_session_loads_the_firmware_and_instructs_the_person(tmp_path):
    image = tmp_path / "firmware.bin"
    image.write_bytes(make_image())
    own = ("device.emulated=true", "device.state=switched on", f"device.firmware={image}")
    words = [word for text in own for word in ("--set", text)]
    where = ("--headless", "--record", str(tmp_path))
    done = subprocess.PIPE
    with program(
        *RUN, "--device", "falcon", "--model", "C", "--duration", "0.5", *words, *where, stdout=done, stderr=done
    ) as run:
        out, err = run.communicate(timeout=60.0)
    assert run.returncode == 0, err
    assert "pull the handle of the Falcon all the way out, then push it all the way in" in err
    recording = Recording(Path(json.loads(out)["recording"]))
    assert recording.metadata["device_facts"]["serial"] == "EMULATED"
    assert np.isfinite(recording.rows["position"]).all()
    assert (recording.rows["channel_motor"] != 0.0).any()


def test_starved_emulator_is_the_reason_of_a_failed_run():
    device = devices.create_device("falcon", {"emulated": True, "state": "homed", "hand": HELD})
    device.open()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wire:
        wire.connect(device._address)
        emulator = struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    os.kill(emulator, signal.SIGSTOP)
    try:
        with pytest.raises(DeviceFault, match=r"did not answer within 0\.1 s|guardian"):
            exercise(device, 5.0, (1.0, 0.5))
    finally:
        os.kill(emulator, signal.SIGCONT)
    with contextlib.suppress(DeviceFault):
        device.close()
    assert device.explain().startswith("this machine is too busy for the emulation: it kept the emulated Falcon")
