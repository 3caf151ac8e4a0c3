"""Procedures in wall-clock time: motions after the end of a run are ignored, and an interrupt ends the run."""

import threading
import time

import pytest

from calibration.motions import Mover, drive
from calibration.motions.procedure import PROCEDURE
from devices.faults import parse_fault
from haptics.device import Causality
from haptics.errors import DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.rendering.programs import Motion, constant_reference

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@pytest.mark.parametrize("ends_badly", [False, True])
def test_a_procedure_that_outlasts_a_device_fault_is_ignored(ends_badly, tmp_path):
    failed = threading.Event()

    def hold(label):
        return Motion(Causality.IMPEDANCE, constant_reference(0.05, 1e-3), 1.0, relative=True, label=label)

    def procedure():
        yield hold("first")
        failed.wait(30.0)
        if ends_badly:
            raise ZeroDivisionError
        yield hold("second")

    mover = Mover.of("virtual-joystick", {"hand": NOBODY}, [parse_fault("unplug@0.4")], live=True)
    with pytest.raises(DeviceFault, match=r"unplug|such device"):
        drive(mover, procedure(), tmp_path / "run")
    failed.set()
    until = time.monotonic() + 10.0
    while any(one.name == PROCEDURE for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    recording = Recording(tmp_path / "run")
    assert [entry["motion"]["label"] for entry in recording.settings] == ["first"]
    assert recording.metadata["state"] == "complete"
    assert not recording.rows["command"][-1].any()


def test_an_interrupt_during_a_motion_completes_the_recording(tmp_path):
    def procedure():
        yield Motion(Causality.IMPEDANCE, constant_reference(30.0, 1e-3), 1.0, relative=True, label="first")

    def interrupt(seconds):
        if seconds > 0.2:
            raise KeyboardInterrupt

    mover = Mover.of("virtual-joystick", {"hand": NOBODY}, live=True)
    with pytest.raises(KeyboardInterrupt):
        drive(mover, procedure(), tmp_path / "run", progress=interrupt)
    recording = Recording(tmp_path / "run")
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "interrupted")
    assert verify(recording).mismatches == 0
    assert len(recording.rows) > 200
    assert not recording.rows["command"][-1].any()
