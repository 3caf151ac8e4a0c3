"""Runs in a real servo process: after every end the servo has exited and the recording states the reason."""

import functools
import os
import signal
import time

import pytest

from haptics import Causality, ConfigurationError, HapticError, Recording
from haptics.recording.recorder import Recorder
from haptics.servo.kernels import HEARTBEAT_TIMEOUT
from haptics.servo.run import Run, StartCancelled
from tests.haptics.doubles import BenchDevice
from tests.processes import ended
from tests.system.haptics.test_process import make_bench, make_job, make_nothing


class ScriptedRun(Run):
    """A run with one action after 100 ticks."""

    def __init__(self, folder, act, factory=None):
        recorder = Recorder(folder, {})
        job = make_job(recorder.folder, factory or functools.partial(make_bench, None), None)
        super().__init__(recorder, job, "bench", lambda line: None)
        self._acts = [act]

    def run_periodic_tasks(self):
        if self._acts and self.servo.trace.count > 100:
            self._acts.pop()(self)


class DeviceWithFacts(BenchDevice):
    """A device with facts that are known once it is open."""

    @property
    def facts(self):
        return {"current_limit_a": 10.0, "torque_limit_nm": None} if self.opened else {"open": False}


def make_with_facts(clock):
    return DeviceWithFacts(clock)


def test_stopped_run_is_recorded_and_certified(tmp_path):
    run = ScriptedRun(tmp_path / "run", Run.stop, make_with_facts)
    reason = run.follow()
    assert (reason, run.ending.fault) == ("stopped", None)
    found = run.ending.certify(Causality.IMPEDANCE, used=run.servo.used, granted=run.granted)
    recording = Recording(tmp_path / "run")
    assert len(recording.rows) == found["ticks"] == run.servo.trace.count > 100
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "stopped")
    assert recording.metadata["certificate"].items() >= {**run.granted, "lost_ticks": 0}.items()
    assert recording.metadata["device_facts"] == {"current_limit_a": 10.0, "torque_limit_nm": None}
    assert ended(run.servo.pid)


def test_long_work_is_no_silence(tmp_path):
    def busy():
        until = time.monotonic() + 1.3 * HEARTBEAT_TIMEOUT
        while time.monotonic() < until:  # as a compiler is: at work in Python
            pass
        return 7

    found: list[int] = []

    def act(run):
        found.append(run.run_with_heartbeats(busy))
        run.stop()

    run = ScriptedRun(tmp_path / "run", act)
    reason = run.follow()
    assert (reason, run.ending.fault, found) == ("stopped", None, [7])
    assert run.recorder.count > 1e3 * HEARTBEAT_TIMEOUT


def test_error_of_long_work_is_raised(tmp_path):
    def slow():
        raise TimeoutError("mine")

    run = ScriptedRun(tmp_path / "run", lambda run: run.run_with_heartbeats(slow))
    with pytest.raises(TimeoutError, match="mine"):
        run.follow()


def test_error_beside_a_run_ends_it_and_closes_its_recording(tmp_path):
    run = ScriptedRun(tmp_path / "run", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.follow()
    recording = Recording(tmp_path / "run")
    assert recording.metadata["state"] == "interrupted"
    assert len(recording.rows) == run.servo.trace.count > 100
    assert ended(run.servo.pid)


@pytest.mark.parametrize(
    ("number", "words", "state"),
    [
        (signal.SIGKILL, "bench lost its servo: the servo process died", "interrupted"),
        (signal.SIGTERM, "bench was brought to its safe output after tick .* another program terminated", "complete"),
    ],
)
def test_servo_ended_by_a_signal_is_a_fault(number, words, state, tmp_path):
    run = ScriptedRun(tmp_path / "run", lambda run: os.kill(run.servo.pid, number))
    run.follow()
    with pytest.raises(HapticError, match=words):
        raise run.ending.fault or AssertionError
    recording = Recording(tmp_path / "run")
    assert (recording.metadata["state"], recording.metadata["reason"]) == (state, "fault")
    assert len(recording.rows) == run.servo.trace.count
    assert ended(run.servo.pid)


def test_run_cancelled_before_opening_leaves_nothing(tmp_path):
    run = ScriptedRun(tmp_path / "run", Run.stop)
    run.stop()
    with pytest.raises(StartCancelled):
        run.follow()
    assert list(tmp_path.iterdir()) == []
    assert ended(run.servo.pid)


def test_device_that_cannot_be_created_leaves_nothing(tmp_path):
    run = ScriptedRun(tmp_path / "run", Run.stop, make_nothing)
    with pytest.raises(ConfigurationError, match=r"bench\.gain"):
        run.follow()
    assert list(tmp_path.iterdir()) == []
